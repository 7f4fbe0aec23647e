//! Training and validation rows of a fit, in bins, and the loss of a hard tree on them.

use crate::data::binning::binned::Binned;
use crate::data::dataset::Dataset;
use crate::data::split::n_validation_rows;
use crate::recurrent::bin_inputs::{BinInputs, BinnedRows};
use crate::recurrent::hard_tree::HardTree;
use crate::recurrent::unroll::BLOCK;
use crate::rng::{Key, shuffle};
use crate::trees::cart::CartTarget;
use crate::trees::training_set::TreeTrainingSet;

/// Largest number of inputs of the network; of more, the best ones are used.
const MAX_INPUTS: usize = 128;
/// Largest number of copies of a deduplicated row that are split separately.
const MAX_COPIES: usize = 64;
/// Weight of the prior value of a leaf when the loss on validation rows is computed.
const PRIOR_WEIGHT: f64 = 1.0;

/// A row of a fit: its index among the binned rows, its weight and its target.
pub(super) type FitRow = (usize, f64, f32);

/// Rows that are routed and scored.
#[derive(Debug)]
pub(super) struct ScoredRows<'a> {
    pub(super) binned: &'a Binned,
    /// Row indices.
    pub(super) rows: Vec<u32>,
    pub(super) target: &'a [f32],
    /// Weight of each of `rows`.
    pub(super) weight: Vec<f32>,
}

/// A validation set that was given, in the bins of the training rows.
#[derive(Debug)]
pub(super) struct GivenRows {
    binned: Binned,
    /// Rows without cells that training knows nothing of, which only the members of a model replace; all
    /// rows, if each has such a cell.
    rows: Vec<u32>,
    target: Vec<f32>,
    weight: Vec<f32>,
}

impl GivenRows {
    pub(super) fn new(set: &TreeTrainingSet, data: &Dataset) -> Self {
        let n_rows = data.n_rows();
        let weights = data.weights();
        let mut is_known = vec![true; n_rows];
        for cell in set.cuts.unseen(&data.features().rows(0..n_rows)) {
            is_known[cell.row] = false;
        }
        if is_known.iter().all(|is_known| !is_known) {
            is_known.fill(true);
        }
        let known = is_known.iter().zip(0..).filter(|(is_known, _)| **is_known);
        Self {
            rows: known.map(|(_, row)| row).collect(),
            binned: set.cuts.bin_range(&data.features().rows(0..n_rows)),
            target: set.units.encode(data.target(), 0..n_rows),
            weight: (0..n_rows)
                .map(|row| weights.map_or(1.0, |weights| weights[row] as f32))
                .collect(),
        }
    }
}

/// Rows of a fit.
#[derive(Debug)]
pub(super) struct RouteRows<'a> {
    pub(super) set: &'a TreeTrainingSet,
    pub(super) inputs: BinInputs,
    pub(super) train: ScoredRows<'a>,
    /// Rows that stop training and prune the tree; none of few rows.
    pub(super) validation: Option<ScoredRows<'a>>,
    /// Whether the validation rows are a part of the training rows.
    pub(super) is_split: bool,
    /// Scores of the training rows, inputs x padded rows.
    pub(super) scores: Vec<f32>,
    /// Padded targets and weights.
    pub(super) target: Vec<f32>,
    pub(super) weight: Vec<f32>,
}

impl<'a> RouteRows<'a> {
    pub(super) fn new(
        set: &'a TreeTrainingSet,
        given: Option<&'a GivenRows>,
        inputs: BinInputs,
        split: Option<&ValidationSplit>,
        fold: usize,
    ) -> Self {
        let scored = |weight: &[f32]| {
            let rows: Vec<u32> = (0..weight.len() as u32)
                .filter(|&row| weight[row as usize] > 0.0)
                .collect();
            ScoredRows {
                binned: &set.binned,
                weight: rows.iter().map(|&row| weight[row as usize]).collect(),
                rows,
                target: &set.target,
            }
        };
        let split = split.map(|split| split.weights(&set.weight, fold));
        let train = scored(split.as_ref().map_or(&set.weight, |(train, _)| train));
        let is_split = split.is_some();
        let validation = match given {
            Some(given) => Some(ScoredRows {
                binned: &given.binned,
                rows: given.rows.clone(),
                target: &given.target,
                weight: (given.rows.iter().map(|&row| given.weight[row as usize])).collect(),
            }),
            None => split.map(|(_, validation)| scored(&validation)),
        };
        let n_padded = train.rows.len().next_multiple_of(BLOCK);
        let padded = |mut values: Vec<f32>| {
            values.resize(n_padded, 0.0);
            values
        };
        let target = train.rows.iter().map(|&row| set.target[row as usize]);
        Self {
            scores: inputs.scores(&set.binned, &train.rows, n_padded),
            target: padded(target.collect()),
            weight: padded(train.weight.clone()),
            set,
            inputs,
            train,
            validation,
            is_split,
        }
    }

    /// The inputs of the network.
    pub(super) fn inputs(set: &TreeTrainingSet, max_categories: usize) -> BinInputs {
        let rows = BinnedRows {
            cuts: &set.cuts,
            binned: &set.binned,
            weight: &set.weight,
            target: &set.target,
            kind: set.kind,
        };
        BinInputs::fit(&rows, max_categories, MAX_INPUTS)
    }

    pub(super) fn kind(&self) -> CartTarget {
        self.set.kind
    }

    /// Whether some inputs were left out because of the targets.
    pub(super) fn has_selected_inputs(&self) -> bool {
        self.inputs.len() >= MAX_INPUTS
    }

    /// All rows of the fit: training rows, and validation rows that were split off.
    pub(super) fn all(&self) -> Vec<FitRow> {
        let own_validation = self.validation.iter().filter(|_| self.is_split);
        let validation = own_validation.flat_map(ScoredRows::iter);
        self.train.iter().chain(validation).collect()
    }

    /// All rows of the fit but the validation rows `fold`, `fold + n_folds` and so on.
    pub(super) fn without(&self, fold: usize, n_folds: usize) -> Vec<FitRow> {
        let own_validation = self.validation.iter().filter(|_| self.is_split);
        let validation = own_validation.flat_map(|rows| rows.iter().enumerate());
        let others = validation.filter(|(at, _)| at % n_folds != fold);
        self.train
            .iter()
            .chain(others.map(|(_, row)| row))
            .collect()
    }

    /// Statistics of all leaves of a hard tree on the training rows.
    pub(super) fn leaf_stats(&self, tree: &HardTree) -> Vec<f64> {
        let n_stats = self.kind().n_stats();
        let mut stats = vec![0.0; (tree.splits.len() + 1) * n_stats];
        for (row, weight, target) in self.train.iter() {
            let leaf = tree.leaf(self.train.binned, row);
            let stats = &mut stats[leaf * n_stats..(leaf + 1) * n_stats];
            self.kind().push(stats, target, weight);
        }
        stats
    }

    /// Statistics of all training rows.
    pub(super) fn root_stats(&self) -> Vec<f64> {
        let mut root = vec![0.0; self.kind().n_stats()];
        for (_, weight, target) in self.train.iter() {
            self.kind().push(&mut root, target, weight);
        }
        root
    }

    /// Mean log-likelihood of the validation rows (or else of the training rows) in a hard tree whose
    /// leaves have the values of the training rows; for regression with the noise variance that fits
    /// best.
    pub(super) fn score(&self, tree: &HardTree) -> f64 {
        let kind = self.kind();
        let n_stats = kind.n_stats();
        let stats = self.leaf_stats(tree);
        let mut root = vec![0.0; n_stats];
        for leaf in stats.chunks_exact(n_stats) {
            kind.merge(&mut root, leaf);
        }
        let root_weight = kind.weight(&root).max(f64::MIN_POSITIVE);
        let scored = self.validation.as_ref().unwrap_or(&self.train);
        let (mut sum, mut total) = (0.0, 0.0);
        for (row, weight, target) in scored.iter() {
            let leaf = tree.leaf(scored.binned, row);
            let stats = &stats[leaf * n_stats..(leaf + 1) * n_stats];
            total += weight;
            sum += weight
                * match kind {
                    CartTarget::Number => {
                        let mean = (stats[0] * stats[1] + PRIOR_WEIGHT * root[1])
                            / (stats[0] + PRIOR_WEIGHT);
                        (f64::from(target) - mean).powi(2)
                    }
                    CartTarget::Classes(_) => {
                        let class = target as usize;
                        let n: f64 = stats.iter().sum();
                        let prior = (root[class] + 0.5) / (root_weight + 0.5 * n_stats as f64);
                        ((stats[class] + PRIOR_WEIGHT * prior) / (n + PRIOR_WEIGHT)).ln()
                    }
                };
        }
        match kind {
            CartTarget::Number => {
                let variance = (sum / total).max(self.set.floor * self.set.floor);
                -0.5 * (std::f64::consts::TAU * variance).ln() - 0.5
            }
            CartTarget::Classes(_) => sum / total,
        }
    }
}

impl ScoredRows<'_> {
    /// Index, weight and target of each row.
    pub(super) fn iter(&self) -> impl Iterator<Item = FitRow> + '_ {
        let rows = self.rows.iter().zip(&self.weight);
        rows.map(|(&row, &weight)| {
            let row = row as usize;
            (row, f64::from(weight), self.target[row])
        })
    }
}

/// Copies of rows in random order, whose parts are validation sets. A row of weight `w` stands for
/// about `w` equal rows.
#[derive(Debug)]
pub(super) struct ValidationSplit {
    copies: Vec<u32>,
    n_validation: usize,
}

impl ValidationSplit {
    /// `None` if there are too few rows.
    pub(super) fn new(weight: &[f32], fraction: f64, key: Key) -> Option<Self> {
        let mut copies: Vec<u32> = (0..weight.len() as u32)
            .flat_map(|row| std::iter::repeat_n(row, n_copies(weight[row as usize])))
            .collect();
        let n_validation = n_validation_rows(copies.len(), fraction);
        if n_validation == 0 {
            return None;
        }
        shuffle(&mut key.rng(), &mut copies);
        Some(Self {
            copies,
            n_validation,
        })
    }

    /// Number of validation sets that have no copies in common.
    pub(super) fn n_folds(&self) -> usize {
        self.copies.len() / self.n_validation
    }

    /// Weights of the training and of the validation rows of a fold.
    fn weights(&self, weight: &[f32], fold: usize) -> (Vec<f32>, Vec<f32>) {
        let start = fold * self.n_validation;
        let mut parts = (vec![0.0; weight.len()], vec![0.0; weight.len()]);
        for (at, &row) in self.copies.iter().enumerate() {
            let row = row as usize;
            let is_validation = (start..start + self.n_validation).contains(&at);
            let part = if is_validation {
                &mut parts.1
            } else {
                &mut parts.0
            };
            part[row] += weight[row] / n_copies(weight[row]) as f32;
        }
        parts
    }
}

/// Number of copies of a deduplicated row.
fn n_copies(weight: f32) -> usize {
    (weight.round() as usize).clamp(1, MAX_COPIES)
}

/// Loss of a row in a leaf with these statistics: squared error, or Brier score.
pub(super) fn row_loss(kind: CartTarget, stats: &[f64], target: f32) -> f64 {
    match kind {
        CartTarget::Number => (f64::from(target) - stats[1]).powi(2),
        CartTarget::Classes(_) => {
            let total = stats.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            let squares: f64 = stats.iter().map(|weight| (weight / total).powi(2)).sum();
            squares - 2.0 * stats[target as usize] / total
        }
    }
}
