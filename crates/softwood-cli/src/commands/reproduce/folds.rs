//! The runner of tables of scores and of out-of-domain detection: fits a model to one split and
//! measures it on the test rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use softwood::data::Target;
use softwood::evaluate::{FittedFold, Protocol, Separation, Split, fit_fold, ood, score};
use softwood::observer::Observer;
use softwood::{Dataset, Distribution, Key, ModelSpec, Pool, Result, Run};

use super::data_files::{self, MissingFile, SetFiles};
use super::ood_rows::{OodColumns, mean_and_sd};
use super::published::{PublishedSet, PublishedTable};
use super::run::{CellRunner, ReproduceRun, SetRunner};

/// Random stream of the out-of-domain rows, beside the folds.
const OOD_ROWS: u64 = 0x006f_6f64;

/// Prefix of the scores of single members.
const MEMBER_RMSE: &str = "member_rmse_";

/// A set with its splits.
struct FoldRunner {
    data: Dataset,
    splits: Vec<SeededSplit>,
    /// Columns of out-of-domain rows, if the table needs them.
    other: Option<OodColumns>,
    /// Whether the table scores single members.
    needs_members: bool,
    /// Protocol and origin of the out-of-domain rows, as settings of the cells.
    settings: Value,
}

/// A split, the seed that it was drawn with, and its number among the splits of that seed.
struct SeededSplit {
    seed: u64,
    fold: usize,
    split: Split,
}

/// Reads the set and its splits.
pub(crate) fn prepare(
    table: &PublishedTable,
    set: &PublishedSet,
    run: &ReproduceRun<'_>,
) -> Result<SetRunner> {
    let (data, given) = match data_files::read(run.data, set)? {
        SetFiles::Found { data, splits } => (data, splits),
        SetFiles::Missing(file) => return Ok(SetRunner::Missing(file)),
    };
    let mut other = None;
    if let Some(origin) = &table.ood {
        other = OodColumns::read(run.data, &set.name, origin)?;
        if other.is_none() {
            let files = origin.own_files.get(&set.name).unwrap_or(&origin.files);
            return Ok(SetRunner::Missing(MissingFile {
                set: set.name.clone(),
                file: files.join(" or "),
                source: None,
            }));
        }
    }
    let protocol = match (&*table.protocol, &set.splits) {
        ("splits", Some(file)) => Protocol::Splits(run.data.join(file)),
        (text, _) => Protocol::parse(text)?,
    };
    let mut splits = Vec::new();
    for repeat in 0..table.repeats as u64 {
        let seed = run.seed.wrapping_add(repeat);
        let found = protocol.splits(&data, seed, given.as_ref())?;
        let seeded = |(fold, split)| SeededSplit { seed, fold, split };
        splits.extend(found.into_iter().enumerate().map(seeded));
    }
    let mut scores = table.metrics.iter().map(|metric| &metric.score);
    Ok(SetRunner::Ready(Box::new(FoldRunner {
        needs_members: scores.any(|score| score.starts_with(MEMBER_RMSE)),
        settings: json!({ "protocol": table.protocol, "rows": data.n_rows(), "ood": table.ood }),
        data,
        splits,
        other,
    })))
}

impl CellRunner for FoldRunner {
    fn n_splits(&self) -> usize {
        self.splits.len()
    }

    fn settings(&self) -> Value {
        self.settings.clone()
    }

    fn run(
        &self,
        spec: &ModelSpec,
        split: usize,
        pool: &Pool,
        observer: &dyn Observer,
    ) -> Result<BTreeMap<String, f64>> {
        let SeededSplit { seed, fold, split } = &self.splits[split];
        let key = Key::from_seed(*seed);
        let run = Run::new(key.child(*fold as u64), pool).observer(observer);
        let fitted = fit_fold(spec, &self.data, split, &run)?;
        let inside = fitted.predict(pool)?.observed_by(observer);
        let mut values = self.scores(&fitted, &inside)?;
        if let Some(other) = &self.other {
            let rows = other.rows(&self.data, split, key.child(OOD_ROWS))?;
            let outside = Distribution::new(fitted.model.as_ref(), &rows, pool)?;
            let found = ood(&inside, &outside.observed_by(observer))?;
            add_separation(&mut values, "total", &found.total);
            add_separation(&mut values, "knowledge", &found.knowledge);
        }
        if fitted.model.n_members() == 1 {
            // a single member has no knowledge uncertainty to rank rows by
            values.retain(|name, _| !name.ends_with("knowledge"));
        }
        values.insert("fit_seconds".to_owned(), fitted.fit_seconds);
        Ok(values)
    }
}

impl FoldRunner {
    /// Scores of the test rows, the number of nodes, and properties of the whole target.
    fn scores(
        &self,
        fitted: &FittedFold,
        prediction: &Distribution<'_>,
    ) -> Result<BTreeMap<String, f64>> {
        let mut values = score(prediction, fitted.test.target(), fitted.target_sd)?.values;
        if let Some(n_nodes) = fitted.model.n_nodes() {
            values.insert("n_nodes".to_owned(), n_nodes);
        }
        if let (Target::Numeric(all), Target::Numeric(y)) =
            (self.data.target(), fitted.test.target())
        {
            if let Some(log_likelihood) = values.get("log_likelihood") {
                values.insert("nll".to_owned(), -log_likelihood);
            }
            let range = range_of(all);
            let (_, sd) = mean_and_sd(all.iter().copied());
            values.insert("target_range".to_owned(), range);
            values.insert("target_half_range".to_owned(), 0.5 * range);
            values.insert("target_sd".to_owned(), sd);
            if self.needs_members {
                add_member_errors(&mut values, &prediction.members()?, y);
            }
        }
        Ok(values)
    }
}

fn add_separation(values: &mut BTreeMap<String, f64>, kind: &str, found: &Separation) {
    values.insert(format!("auroc_{kind}"), found.auroc);
    values.insert(format!("one_split_auroc_{kind}"), found.one_split_auroc);
}

/// Median and outer tenths of the RMSE of single members (`means`: row-major, rows x members).
fn add_member_errors(values: &mut BTreeMap<String, f64>, means: &[f64], y: &[f64]) {
    let n_members = means.len() / y.len().max(1);
    let rmse = |member: usize| {
        let squares = y.iter().enumerate().map(|(row, y)| {
            let error = means[row * n_members + member] - y;
            error * error
        });
        (squares.sum::<f64>() / y.len() as f64).sqrt()
    };
    let mut errors: Vec<f64> = (0..n_members).map(rmse).collect();
    errors.sort_by(f64::total_cmp);
    for (name, level) in [("best_tenth", 0.1), ("median", 0.5), ("worst_tenth", 0.9)] {
        let Some(value) = quantile(&errors, level) else {
            return;
        };
        values.insert(format!("{MEMBER_RMSE}{name}"), value);
    }
}

/// A quantile of sorted numbers, interpolated between neighbours.
fn quantile(sorted: &[f64], level: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = level * last as f64;
    let (lower, share) = (place.floor() as usize, place.fract());
    let upper = sorted[(lower + 1).min(last)];
    Some(sorted[lower] + share * (upper - sorted[lower]))
}

fn range_of(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_single_members_are_ordered() {
        let mut values = BTreeMap::new();
        // members 0, 1 and 2 are wrong by 1, 3 and 2 on both rows
        add_member_errors(&mut values, &[1.0, 3.0, 2.0, 9.0, 7.0, 8.0], &[0.0, 10.0]);
        let value = |name: &str| values[&format!("member_rmse_{name}")];
        assert!((value("median") - 2.0).abs() < 1e-12);
        assert!((value("best_tenth") - 1.2).abs() < 1e-12);
        assert!((value("worst_tenth") - 2.8).abs() < 1e-12);
    }
}
