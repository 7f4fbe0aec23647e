//! Protocols: which rows are for training, validation and testing.

use std::fmt;
use std::path::PathBuf;

use crate::data::dataset::{Dataset, MIN_ROWS};
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::evaluate::splits_file;
use crate::rng::{Key, shuffle};

/// Row indices of one fold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Split {
    /// Training rows.
    pub train: Vec<usize>,
    /// Validation rows for early stopping and model selection; may be empty.
    pub held_out: Vec<usize>,
    /// Test rows.
    pub test: Vec<usize>,
}

/// How an evaluation splits the rows.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Protocol {
    /// `holdout:F`: one split with a share F of the rows for testing.
    Holdout(f64),
    /// `cv:K`: K-fold cross-validation.
    Cv(usize),
    /// `paper:F,K`: a share F of the rows for testing in all folds; of the others, each of K folds
    /// is the validation set once while the rest is for training.
    Paper {
        /// Share of the test rows.
        test: f64,
        /// Number of folds of the other rows.
        folds: usize,
    },
    /// `splits:FILE`: splits from a table with one row for each row of the data.
    Splits(PathBuf),
}

/// Random stream of the order of the rows.
const ORDER: u64 = 0x006f_7264_6572;

impl Protocol {
    /// Parses a protocol.
    ///
    /// # Errors
    /// [`Error::Parameters`] lists the valid forms.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, arguments) = text.split_once(':').unwrap_or((text, ""));
        let parsed = match name {
            "holdout" => share(arguments).map(Self::Holdout),
            "cv" => folds(arguments).map(Self::Cv),
            "paper" => arguments.split_once(',').and_then(|(test, k)| {
                Some(Self::Paper {
                    test: share(test)?,
                    folds: folds(k)?,
                })
            }),
            "splits" if !arguments.is_empty() => Some(Self::Splits(PathBuf::from(arguments))),
            _ => None,
        };
        parsed.ok_or_else(|| {
            Error::Parameters(vec![format!(
                "protocol `{text}`: expected holdout:F, cv:K, paper:F,K or splits:FILE, F a share between 0 and 1 \
                 and K at least 2 folds, as in paper:0.2,10"
            )])
        })
    }

    /// The splits of `data`. `splits_table` is the table of a splits file, for
    /// [`Protocol::Splits`]; the other protocols shuffle the rows with `seed`.
    ///
    /// # Errors
    /// When there are too few rows, or the splits table does not match the data.
    pub fn splits(
        &self,
        data: &Dataset,
        seed: u64,
        splits_table: Option<&Table>,
    ) -> Result<Vec<Split>> {
        let n_rows = data.n_rows();
        if let Self::Cv(folds) | Self::Paper { folds, .. } = self
            && *folds > n_rows
        {
            // before memory is allocated for the folds
            return Err(Error::Table(format!(
                "{folds} folds of {n_rows} rows: expected at most as many folds as rows"
            )));
        }
        let splits = match self {
            Self::Holdout(test) => {
                let (test, train) = split_by_share(shuffled(n_rows, seed), *test);
                vec![Split {
                    train,
                    held_out: Vec::new(),
                    test,
                }]
            }
            Self::Cv(folds) => cross_validation(&shuffled(n_rows, seed), *folds),
            Self::Paper { test, folds } => {
                let (test, others) = split_by_share(shuffled(n_rows, seed), *test);
                rotate_validation(&others, *folds, &test)
            }
            Self::Splits(path) => {
                let table = splits_table.ok_or_else(|| {
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

/// The first `share` of the rows, and the others.
fn split_by_share(mut rows: Vec<usize>, share: f64) -> (Vec<usize>, Vec<usize>) {
    let others = rows.split_off((share * rows.len() as f64).round() as usize);
    (rows, others)
}

/// Range of fold `fold` of `folds`; the lengths differ by at most one.
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

fn rotate_validation(rows: &[usize], folds: usize, test: &[usize]) -> Vec<Split> {
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

/// Checks that every fold has training and test rows and that all rows exist.
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
