//! Reports of an evaluation: scores and costs per model and fold, their mean and standard
//! deviation.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::evaluate::scores::Scores;
use crate::models::registry::ModelSpec;

/// One model fitted and scored on one fold.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FoldReport {
    /// Index of the fold, from 0.
    pub fold: usize,
    /// Scores on the fold's test rows.
    pub scores: Scores,
    /// Wall time of the fit.
    pub fit_seconds: f64,
    /// Wall time of the prediction of moments or class probabilities for the test rows.
    pub predict_seconds: f64,
    /// Peak memory of the whole process so far; 0 if the operating system does not report it.
    pub peak_rss_bytes: u64,
    /// Number of nodes of the model, if it is a single tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_nodes: Option<f64>,
    /// Result of model selection on validation rows, as shown to users.
    pub chosen: String,
}

/// One model on all folds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelReport {
    /// Name of the family.
    pub model: String,
    /// Parameters of the model.
    pub params: ModelSpec,
    /// One report per fold.
    pub folds: Vec<FoldReport>,
    /// Mean of every score and cost over the folds that have it.
    pub mean: BTreeMap<String, f64>,
    /// Standard deviation over folds, divided by n - 1; 0 for one fold.
    pub sd: BTreeMap<String, f64>,
}

/// A whole evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The protocol, as given.
    pub protocol: String,
    /// Number of rows of the table.
    pub n_rows: usize,
    /// The seed.
    pub seed: u64,
    /// One report per model.
    pub models: Vec<ModelReport>,
}

impl Report {
    /// The report of an evaluation by a protocol.
    pub fn new(protocol: String, n_rows: usize, seed: u64, models: Vec<ModelReport>) -> Self {
        Self {
            protocol,
            n_rows,
            seed,
            models,
        }
    }
}

impl ModelReport {
    /// Collects the folds and computes means and standard deviations.
    pub(crate) fn new(params: ModelSpec, folds: Vec<FoldReport>) -> Self {
        let mut columns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for fold in &folds {
            for (name, value) in fold.named_values() {
                columns.entry(name).or_default().push(value);
            }
        }
        let summaries = |summary: fn(&[f64]) -> f64| {
            columns
                .iter()
                .map(|(name, values)| (name.clone(), summary(values)))
                .collect()
        };
        Self {
            model: params.family().name().to_owned(),
            params,
            mean: summaries(mean),
            sd: summaries(standard_deviation),
            folds,
        }
    }
}

impl FoldReport {
    /// Scores and costs by name.
    fn named_values(&self) -> impl Iterator<Item = (String, f64)> {
        let costs = [
            ("fit_seconds", self.fit_seconds),
            ("predict_seconds", self.predict_seconds),
            ("peak_rss_bytes", self.peak_rss_bytes as f64),
        ];
        let scores = self.scores.values.iter();
        let n_nodes = self.n_nodes.map(|n_nodes| ("n_nodes", n_nodes));
        let costs = costs.into_iter().chain(n_nodes);
        scores
            .map(|(name, &value)| (name.clone(), value))
            .chain(costs.map(|(name, value)| (name.to_owned(), value)))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}
