//! The report of a run: every table with ours beside the paper's figures.

use std::path::PathBuf;

use serde::Serialize;

use super::compare::{ComparisonMark, LEVEL, MarkCounts, mark, mean_and_sd, pair_test};
use super::data_files::MissingFile;
use super::models::ReproducedModel;
use super::published::{PairRule, PublishedMetric, PublishedRow, PublishedTable, TieRule};
use super::run::{SetValues, TableValues};

/// A run of `reproduce`.
#[derive(Debug, Serialize)]
pub(crate) struct ReproduceReport {
    pub(crate) version: &'static str,
    /// Day of the run, as `YYYY-MM-DD`.
    pub(crate) date: String,
    /// Cores, architecture and operating system.
    pub(crate) machine: String,
    pub(crate) data: PathBuf,
    pub(crate) seed: u64,
    pub(crate) quick: bool,
    /// Largest number of splits of a set, if the user gave one.
    pub(crate) splits: Option<u16>,
    /// Drawn figures, and the page that shows them.
    pub(crate) figures: Vec<PathBuf>,
    /// Figures that were not drawn because their data are missing.
    pub(crate) left_out: Vec<MissingFigure>,
    /// File with the results as Markdown, if one was written.
    #[serde(skip)]
    pub(crate) file: Option<PathBuf>,
    pub(crate) tables: Vec<ReproducedTable>,
}

/// A figure whose data are missing.
#[derive(Debug, Serialize)]
pub(crate) struct MissingFigure {
    pub(crate) figure: &'static str,
    /// Path below the data directory, without suffix.
    pub(crate) file: String,
}

/// One table.
#[derive(Debug, Serialize)]
pub(crate) struct ReproducedTable {
    pub(crate) name: String,
    /// Citation and place in the paper.
    pub(crate) source: String,
    pub(crate) title: String,
    pub(crate) protocol: String,
    pub(crate) rule: TieRule,
    /// Number of splits of a set, at most.
    pub(crate) n_splits: usize,
    /// Our models with the parameters that are not default, such as `vst n_fits=1`.
    pub(crate) models: Vec<String>,
    pub(crate) metrics: Vec<ReproducedMetric>,
    pub(crate) pairs: Vec<PairResult>,
    pub(crate) missing: Vec<MissingFile>,
    /// Sets that a quick run leaves out because of their size.
    pub(crate) left_out: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// Number of cells that earlier runs had finished.
    pub(crate) n_found: usize,
}

/// One metric of a table.
#[derive(Debug, Serialize)]
pub(crate) struct ReproducedMetric {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) higher_is_better: bool,
    /// True value, if there is one: the nearer figure is better.
    pub(crate) truth: Option<f64>,
    pub(crate) digits: usize,
    pub(crate) models: Vec<ModelComparison>,
}

/// One of our models on all sets.
#[derive(Debug, Serialize)]
pub(crate) struct ModelComparison {
    pub(crate) model: String,
    /// Rows of the paper that the model is compared with: the better one counts.
    pub(crate) rows: Vec<String>,
    pub(crate) sets: Vec<SetComparison>,
    /// Against these rows.
    pub(crate) counts: MarkCounts,
    /// Against the best row of the paper.
    pub(crate) counts_of_best: MarkCounts,
}

/// One of our models on one set.
#[derive(Debug, Serialize)]
pub(crate) struct SetComparison {
    pub(crate) set: String,
    pub(crate) n_splits: usize,
    pub(crate) mean: f64,
    pub(crate) sd: f64,
    pub(crate) paper: Option<PaperValue>,
    pub(crate) best: Option<PaperValue>,
}

/// A figure of the paper and our mark beside it.
#[derive(Debug, Serialize)]
pub(crate) struct PaperValue {
    pub(crate) row: String,
    pub(crate) mean: f64,
    pub(crate) sd: Option<f64>,
    pub(crate) mark: ComparisonMark,
}

/// A test of two of our models on one set.
#[derive(Debug, Serialize)]
pub(crate) struct PairResult {
    pub(crate) rule: PairRule,
    pub(crate) metric: String,
    pub(crate) set: String,
    pub(crate) first: String,
    pub(crate) second: String,
    pub(crate) p_value: f64,
    /// The model that is better; `None` if the test is not significant (5%).
    pub(crate) better: Option<String>,
}

impl ReproducedTable {
    /// The report of a table that was run.
    pub(crate) fn new(
        table: &PublishedTable,
        citation: &str,
        models: &[ReproducedModel],
        found: TableValues,
    ) -> Self {
        let metrics = table.metrics.iter();
        let metrics = metrics.map(|metric| compare_metric(table, metric, models, &found.values));
        let described = models.iter().map(|model| {
            let mut words = vec![model.name.clone()];
            words.extend(model.settings.iter().cloned());
            words.join(" ")
        });
        Self {
            metrics: metrics.filter(|metric| !metric.models.is_empty()).collect(),
            pairs: test_pairs(table, models, &found.values),
            models: described.collect(),
            n_splits: found.n_splits,
            missing: found.missing,
            left_out: found.left_out,
            n_found: found.n_found,
            name: table.name.clone(),
            source: format!("{citation}, {}", table.place),
            title: table.title.clone(),
            protocol: table.protocol.clone(),
            rule: table.rule,
            notes: table.notes.clone(),
        }
    }
}

fn compare_metric(
    table: &PublishedTable,
    metric: &PublishedMetric,
    models: &[ReproducedModel],
    values: &[SetValues],
) -> ReproducedMetric {
    let compared = models.iter().map(|model| {
        let own = values.iter().filter(|one| one.model == model.name);
        let sets: Vec<SetComparison> = own
            .filter_map(|one| compare_set(table, metric, model, one))
            .collect();
        let marks = |value: fn(&SetComparison) -> &Option<PaperValue>| {
            MarkCounts::of(
                sets.iter()
                    .filter_map(|set| value(set).as_ref().map(|v| v.mark)),
            )
        };
        ModelComparison {
            model: model.name.clone(),
            rows: model.rows.clone(),
            counts: marks(|set| &set.paper),
            counts_of_best: marks(|set| &set.best),
            sets,
        }
    });
    ReproducedMetric {
        name: metric.name.clone(),
        unit: metric.unit.clone(),
        higher_is_better: metric.higher_is_better,
        truth: metric.truth,
        digits: metric.digits,
        models: compared.filter(|model| !model.sets.is_empty()).collect(),
    }
}

/// Ours and the paper's on one set; `None` if our model does not have the score, or the paper has no
/// figure of the metric for the set.
fn compare_set(
    table: &PublishedTable,
    metric: &PublishedMetric,
    model: &ReproducedModel,
    values: &SetValues,
) -> Option<SetComparison> {
    let ours = figures(metric, values);
    if ours.is_empty() {
        return None;
    }
    let (mean, sd) = mean_and_sd(&ours);
    let paper = |is_compared: &dyn Fn(&PublishedRow) -> bool| {
        let rows = table.rows.iter().filter(|row| is_compared(row));
        let found = rows.filter_map(|row| {
            let figure = *row.figures_of(metric)?.get(&values.set)?;
            Some((row, figure))
        });
        let merit = |figure: f64| metric.merit(figure);
        let (row, figure) =
            found.max_by(|(_, a), (_, b)| merit(a.mean()).total_cmp(&merit(b.mean())))?;
        Some(PaperValue {
            row: row.name.clone(),
            mean: figure.mean(),
            sd: figure.sd(),
            mark: mark(table.rule, metric, &ours, figure),
        })
    };
    let best = paper(&|_| true)?;
    Some(SetComparison {
        set: values.set.clone(),
        n_splits: ours.len(),
        mean,
        sd,
        paper: paper(&|row| model.rows.contains(&row.name)),
        best: Some(best),
    })
}

/// Our figures in the units of the paper, by split.
fn figures(metric: &PublishedMetric, values: &SetValues) -> Vec<f64> {
    let splits = values.splits.iter();
    splits.filter_map(|values| metric.of(values)).collect()
}

/// Tests the first model against each other one, on every set.
fn test_pairs(
    table: &PublishedTable,
    models: &[ReproducedModel],
    values: &[SetValues],
) -> Vec<PairResult> {
    let (Some(rule), Some((first, others))) = (table.pairs, models.split_first()) else {
        return Vec::new();
    };
    let mut results = Vec::new();
    for metric in &table.metrics {
        for (set, second) in table
            .sets
            .iter()
            .flat_map(|set| others.iter().map(move |o| (set, o)))
        {
            let of = |model: &ReproducedModel| {
                let found = values
                    .iter()
                    .find(|one| one.model == model.name && one.set == set.name);
                found.map(|one| figures(metric, one)).unwrap_or_default()
            };
            let (a, b) = (of(first), of(second));
            let Some(p_value) = pair_test(rule, &a, &b) else {
                continue;
            };
            let is_first = metric.merit(mean_and_sd(&a).0) > metric.merit(mean_and_sd(&b).0);
            let better = if is_first { first } else { second };
            results.push(PairResult {
                rule,
                metric: metric.name.clone(),
                set: set.name.clone(),
                first: first.name.clone(),
                second: second.name.clone(),
                p_value,
                better: (p_value <= LEVEL).then(|| better.name.clone()),
            });
        }
    }
    results
}
