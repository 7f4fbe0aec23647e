//! What an evaluation says: scores and costs per model and fold, and their mean and spread.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::evaluate::scores::Scores;
use crate::models::registry::ModelSpec;

/// One model fitted and scored on one fold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoldReport {
    /// Index of the fold, from 0.
    pub fold: usize,
    /// Scores on the fold's test rows.
    pub scores: Scores,
    /// Wall time of the fit.
    pub fit_seconds: f64,
    /// Wall time of asking for the moments or probabilities of the test rows.
    pub predict_seconds: f64,
    /// Greatest memory in use by the whole process so far; 0 where the system does not tell.
    pub peak_rss_bytes: u64,
    /// What the model chose on held-out rows, as a user reads it.
    pub chosen: String,
}

/// One model on all folds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelReport {
    /// Name of the family.
    pub model: String,
    /// Parameters given.
    pub params: ModelSpec,
    /// Each fold.
    pub folds: Vec<FoldReport>,
    /// Mean over folds of every score and cost, over the folds that have it.
    pub mean: BTreeMap<String, f64>,
    /// Standard deviation over folds, dividing by n - 1; 0 for one fold.
    pub sd: BTreeMap<String, f64>,
}

/// A whole evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The protocol, as typed.
    pub protocol: String,
    /// Rows of the table.
    pub n_rows: usize,
    /// The seed.
    pub seed: u64,
    /// Each model.
    pub models: Vec<ModelReport>,
}

impl ModelReport {
    /// Gathers folds and computes mean and standard deviation.
    pub(crate) fn new(params: ModelSpec, folds: Vec<FoldReport>) -> Self {
        let mut columns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for fold in &folds {
            for (name, value) in fold.numbers() {
                columns.entry(name).or_default().push(value);
            }
        }
        let summarised = |summary: fn(&[f64]) -> f64| {
            columns
                .iter()
                .map(|(name, values)| (name.clone(), summary(values)))
                .collect()
        };
        Self {
            model: params.family().name().to_owned(),
            params,
            mean: summarised(mean),
            sd: summarised(standard_deviation),
            folds,
        }
    }
}

impl FoldReport {
    /// Scores and costs by name.
    fn numbers(&self) -> impl Iterator<Item = (String, f64)> {
        let costs = [
            ("fit_seconds", self.fit_seconds),
            ("predict_seconds", self.predict_seconds),
            ("peak_rss_bytes", self.peak_rss_bytes as f64),
        ];
        let scores = self.scores.values.iter();
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
