//! Protocols: which rows train, which are held out for early stopping, which test.

use std::fmt;
use std::path::PathBuf;

use crate::data::dataset::{Dataset, MIN_ROWS};
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::evaluate::splits_file;
use crate::rng::{Key, shuffle};

/// Row numbers of one fold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Split {
    /// Rows to train on.
    pub train: Vec<usize>,
    /// Rows free for early stopping and choices; may be empty.
    pub held_out: Vec<usize>,
    /// Rows to score.
    pub test: Vec<usize>,
}

/// How an evaluation splits the rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Protocol {
    /// `holdout:F`: one split, a share F of the rows as test.
    Holdout(f64),
    /// `cv:K`: each of K folds is the test rows once.
    Cv(usize),
    /// `paper:F,K`: a share F as test for all folds; of the rest, each of K folds is held out once
    /// while the others train.
    Paper {
        /// Share of the rows to test on.
        test: f64,
        /// Folds of the rest.
        folds: usize,
    },
    /// `splits:FILE`: splits from a table with one row for each row of the data.
    Splits(PathBuf),
}

/// Label of the stream that orders the rows.
const ORDER: u64 = 0x006f_7264_6572;

impl Protocol {
    /// Reads a protocol as typed by a user.
    ///
    /// # Errors
    /// [`Error::Parameters`] says what would be right.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let parsed = match name {
            "holdout" => share(rest).map(Self::Holdout),
            "cv" => folds(rest).map(Self::Cv),
            "paper" => rest.split_once(',').and_then(|(test, k)| {
                Some(Self::Paper {
                    test: share(test)?,
                    folds: folds(k)?,
                })
            }),
            "splits" if !rest.is_empty() => Some(Self::Splits(PathBuf::from(rest))),
            _ => None,
        };
        parsed.ok_or_else(|| {
            Error::Parameters(vec![format!(
                "protocol `{text}`: expected holdout:F, cv:K, paper:F,K or splits:FILE, F a share between 0 and 1 \
                 and K at least 2 folds, as in paper:0.2,10"
            )])
        })
    }

    /// The splits of `data`. `given` is the table of a splits file, for [`Protocol::Splits`]. The
    /// seed draws the order of the rows for the others.
    ///
    /// # Errors
    /// When there are too few rows, or the splits table does not fit the data.
    pub fn splits(&self, data: &Dataset, seed: u64, given: Option<&Table>) -> Result<Vec<Split>> {
        let n_rows = data.n_rows();
        let splits = match self {
            Self::Holdout(test) => {
                let (test, train) = parted(shuffled(n_rows, seed), *test);
                vec![Split {
                    train,
                    held_out: Vec::new(),
                    test,
                }]
            }
            Self::Cv(folds) => cross_validation(&shuffled(n_rows, seed), *folds),
            Self::Paper { test, folds } => {
                let (test, rest) = parted(shuffled(n_rows, seed), *test);
                hold_out_in_turn(&rest, *folds, &test)
            }
            Self::Splits(path) => {
                let table = given.ok_or_else(|| {
                    Error::file(path, "the table of splits was not read before it was used")
                })?;
                splits_file::splits(table, n_rows).map_err(|error| error.within(path))?
            }
        };
        check(&splits, n_rows)?;
        Ok(splits)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holdout(test) => write!(f, "holdout:{test}"),
            Self::Cv(folds) => write!(f, "cv:{folds}"),
            Self::Paper { test, folds } => write!(f, "paper:{test},{folds}"),
            Self::Splits(path) => write!(f, "splits:{}", path.display()),
        }
    }
}

fn share(text: &str) -> Option<f64> {
    let share = text.trim().parse::<f64>().ok()?;
    (share > 0.0 && share < 1.0).then_some(share)
}

fn folds(text: &str) -> Option<usize> {
    let folds = text.trim().parse::<usize>().ok()?;
    (folds >= 2).then_some(folds)
}

fn shuffled(n_rows: usize, seed: u64) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n_rows).collect();
    shuffle(&mut Key::from_seed(seed).child(ORDER).rng(), &mut rows);
    rows
}

/// The first `share` of the rows and the rest.
fn parted(mut rows: Vec<usize>, share: f64) -> (Vec<usize>, Vec<usize>) {
    let rest = rows.split_off((share * rows.len() as f64).round() as usize);
    (rows, rest)
}

/// Bounds of fold `fold` of `folds`, whose lengths differ by at most one.
fn fold_range(n_rows: usize, folds: usize, fold: usize) -> std::ops::Range<usize> {
    fold * n_rows / folds..(fold + 1) * n_rows / folds
}

fn without(rows: &[usize], range: &std::ops::Range<usize>) -> Vec<usize> {
    [&rows[..range.start], &rows[range.end..]].concat()
}

fn cross_validation(rows: &[usize], folds: usize) -> Vec<Split> {
    (0..folds)
        .map(|fold| {
            let range = fold_range(rows.len(), folds, fold);
            Split {
                train: without(rows, &range),
                held_out: Vec::new(),
                test: rows[range].to_vec(),
            }
        })
        .collect()
}

fn hold_out_in_turn(rows: &[usize], folds: usize, test: &[usize]) -> Vec<Split> {
    (0..folds)
        .map(|fold| {
            let range = fold_range(rows.len(), folds, fold);
            Split {
                train: without(rows, &range),
                held_out: rows[range].to_vec(),
                test: test.to_vec(),
            }
        })
        .collect()
}

/// Refuses splits that cannot be run.
pub(crate) fn check(splits: &[Split], n_rows: usize) -> Result<()> {
    for (fold, split) in splits.iter().enumerate() {
        let problem = if split.train.len() < MIN_ROWS {
            format!("only {} rows to train on", split.train.len())
        } else if split.test.is_empty() {
            "no rows to test on".to_owned()
        } else {
            let mut rows = [&split.train, &split.held_out, &split.test]
                .into_iter()
                .flatten();
            match rows.find(|&&row| row >= n_rows) {
                Some(row) => format!("row {row} does not exist"),
                None => continue,
            }
        };
        return Err(Error::Table(format!(
            "fold {fold} of {} has {problem}; the table has {n_rows} rows",
            splits.len()
        )));
    }
    if splits.is_empty() {
        return Err(Error::Table("there are no folds to run".to_owned()));
    }
    Ok(())
}
