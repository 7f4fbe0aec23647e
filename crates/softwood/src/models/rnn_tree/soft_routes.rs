//! The posterior over routes as predictive distribution: a mixture of the leaves with the
//! probabilities of the routes of a row.
//!
//! The leaves are fitted by expectation maximisation: a row counts in leaf `l` by its
//! responsibility, which is proportional to `P_l(x) p(y | l)`; before the first iteration by
//! `P_l(x)`.

use crate::likelihood::normal::log_density_of_square;
use crate::models::rnn_tree::pruning::HeldOutPredictions;
use crate::models::rnn_tree::rows::{FitRow, RouteRows, ScoredRows};
use crate::recurrent::network::NetworkShape;
use crate::recurrent::schedule::FINAL_SHARE;
use crate::recurrent::soft_gates::SoftGates;
use crate::recurrent::unroll::Sharpness;
use crate::rng::Key;
use crate::stop::until_cancelled;
use crate::trees::cart::CartTarget;
use crate::trees::leaf_posterior::{SmoothedLeaves, Smoothing};

/// Sharpness of the thresholds that are compared.
const THRESHOLDS: [f64; 6] = [1.5, 3.0, 6.0, 12.0, 25.0, 50.0];
/// Numbers of iterations that are compared.
const N_ITERATIONS: [usize; 2] = [0, 4];
/// Numbers of pseudo-rows of a leaf that are compared.
const N_PSEUDO_ROWS: [f64; 4] = [0.5, 2.0, 8.0, 32.0];
/// Leaves with a smaller weight of training rows are left out.
const MIN_WEIGHT: f64 = 1.0;
/// Largest number of training rows of the comparison; the chosen leaves are fitted to all rows.
const MAX_COMPARED: usize = 4000;

/// Soft routes and the leaves that they lead to.
#[derive(Debug, Clone)]
pub(super) struct SoftRoutes {
    pub(super) gates: SoftGates,
    /// Leaves of the gates that the mixture has.
    pub(super) kept: Vec<u32>,
    pub(super) leaves: SmoothedLeaves,
}

/// Route probabilities of rows, rows x leaves.
struct Reach {
    n_leaves: usize,
    values: Vec<f32>,
}

impl Reach {
    fn new(gates: &SoftGates, rows: &ScoredRows<'_>, n_rows: usize) -> Self {
        let n_leaves = gates.n_leaves();
        let mut nodes = vec![0.0; 2 * n_leaves - 1];
        let mut values = Vec::with_capacity(n_rows * n_leaves);
        for &row in until_cancelled(rows.rows.iter().take(n_rows)) {
            gates.fill(|column| rows.binned.bin(row as usize, column), &mut nodes);
            values.extend(nodes[n_leaves - 1..].iter().map(|&p| p as f32));
        }
        values.resize(n_rows * n_leaves, 0.0);
        Self { n_leaves, values }
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.n_leaves..(row + 1) * self.n_leaves]
    }
}

/// Statistics of the leaves, leaves x statistics, with the smoothing of their distributions.
struct MixtureLeaves {
    kind: CartTarget,
    stats: Vec<f64>,
    smoothing: Smoothing,
}

impl MixtureLeaves {
    /// Leaves in which rows count by the probability of their route.
    fn of_routes(
        kind: CartTarget,
        rows: &ScoredRows<'_>,
        reach: &Reach,
        plain: &Smoothing,
    ) -> Self {
        let mut leaves = Self {
            kind,
            stats: vec![0.0; reach.n_leaves * kind.n_stats()],
            smoothing: plain.clone(),
        };
        for ((_, weight, target), at) in rows.iter().zip(0..reach.values.len() / reach.n_leaves) {
            leaves.push(reach.row(at).iter().map(|&p| f64::from(p)), target, weight);
        }
        leaves.set_prior();
        leaves
    }

    /// Adds a row with its share in each leaf.
    fn push(&mut self, shares: impl Iterator<Item = f64>, target: f32, weight: f64) {
        let n_stats = self.kind.n_stats();
        for (stats, share) in self.stats.chunks_exact_mut(n_stats).zip(shares) {
            if share > 0.0 {
                self.kind.push(stats, target, weight * share);
            }
        }
    }

    /// The pseudo-rows of a regression have the mean variance within leaves.
    fn set_prior(&mut self) {
        if self.kind == CartTarget::Number {
            let stats = || self.stats.chunks_exact(3);
            let weight: f64 = stats().map(|stats| stats[0]).sum();
            let square: f64 = stats().map(|stats| stats[2]).sum();
            self.smoothing.prior = vec![(square / weight).max(self.smoothing.floor)];
        }
    }

    /// Density of a target in each leaf.
    fn densities(&self, target: f32) -> impl Iterator<Item = f64> + '_ {
        let of_leaf = move |stats: &[f64]| match self.kind {
            CartTarget::Number => {
                let square = (f64::from(target) - stats[1]).powi(2);
                let variance = self.smoothing.variance(stats) * (1.0 + 1.0 / stats[0].max(1.0));
                log_density_of_square(square, variance).exp()
            }
            CartTarget::Classes(_) => self.smoothing.probability(stats, target as usize),
        };
        self.stats.chunks_exact(self.kind.n_stats()).map(of_leaf)
    }

    /// One iteration of expectation maximisation.
    fn improved(&self, rows: &ScoredRows<'_>, reach: &Reach) -> Self {
        let mut next = Self {
            kind: self.kind,
            stats: vec![0.0; self.stats.len()],
            smoothing: self.smoothing.clone(),
        };
        let n_rows = reach.values.len() / reach.n_leaves;
        for ((_, weight, target), at) in rows.iter().zip(0..n_rows) {
            next.push_responsibilities(self, reach.row(at), target, weight);
        }
        next.set_prior();
        next
    }

    /// Adds a row by its responsibilities in other leaves.
    fn push_responsibilities(&mut self, of: &Self, reach: &[f32], target: f32, weight: f64) {
        let joint: Vec<f64> = (reach.iter().zip(of.densities(target)))
            .map(|(&p, density)| f64::from(p) * density)
            .collect();
        let total: f64 = joint.iter().sum();
        if total > 0.0 {
            self.push(joint.iter().map(|joint| joint / total), target, weight);
        } else {
            self.push(reach.iter().map(|&p| f64::from(p)), target, weight);
        }
    }

    /// Which leaves have enough rows.
    fn kept(&self) -> Vec<bool> {
        let leaves = self.stats.chunks_exact(self.kind.n_stats());
        leaves
            .map(|stats| self.kind.weight(stats) >= MIN_WEIGHT)
            .collect()
    }

    /// Density of a target in the mixture of the kept leaves.
    fn mixture(&self, kept: &[bool], reach: &[f32], target: f32) -> f64 {
        let (mut joint, mut mass) = (0.0, f64::MIN_POSITIVE);
        let leaves = reach.iter().zip(self.densities(target)).zip(kept);
        for ((&p, density), _) in leaves.filter(|(_, is_kept)| **is_kept) {
            joint += f64::from(p) * density;
            mass += f64::from(p);
        }
        joint / mass
    }

    /// Mean of a regression under the mixture of the kept leaves.
    fn mean(&self, kept: &[bool], reach: &[f32]) -> f64 {
        let (mut sum, mut mass) = (0.0, f64::MIN_POSITIVE);
        let stats = self.stats.chunks_exact(self.kind.n_stats());
        let leaves = reach.iter().zip(stats).zip(kept);
        for ((&p, stats), _) in leaves.filter(|(_, is_kept)| **is_kept) {
            sum += f64::from(p) * stats[1];
            mass += f64::from(p);
        }
        sum / mass
    }

    /// Mean log-likelihood of rows.
    fn score(&self, rows: &ScoredRows<'_>, reach: &Reach) -> f64 {
        let kept = self.kept();
        let (mut sum, mut total) = (0.0, 0.0);
        for (at, (_, weight, target)) in until_cancelled(rows.iter().enumerate()) {
            let density = self.mixture(&kept, reach.row(at), target);
            sum += weight * density.max(f64::MIN_POSITIVE).ln();
            total += weight;
        }
        sum / total
    }
}

/// A fitted mixture and what it predicts for the validation rows.
pub(super) struct FittedRoutes {
    pub(super) routes: SoftRoutes,
    pub(super) held_out: HeldOutPredictions,
}

/// Fits the mixture of a network; sharpness, iterations and smoothing are chosen on the validation
/// rows.
pub(super) fn fit_routes(
    rows: &RouteRows<'_>,
    shape: &NetworkShape,
    weights: &[f32],
    floor: f64,
    key: Key,
) -> Option<FittedRoutes> {
    let validation = rows.validation.as_ref()?;
    let kind = rows.kind();
    let n_compared = rows.train.rows.len().min(MAX_COMPARED);
    let root = rows.root_stats();
    let plain = Smoothing::plain(kind, &root, floor);
    let gates = |threshold: f64| {
        let sharpness = Sharpness {
            share: FINAL_SHARE,
            threshold,
            decision: 0.0,
        };
        SoftGates::new(shape, weights, &rows.inputs, sharpness)
    };
    let mut best: Option<(f64, f64, usize, f64)> = None;
    for threshold in until_cancelled(THRESHOLDS) {
        let gates = gates(threshold);
        let reach = Reach::new(&gates, &rows.train, n_compared);
        let of_validation = Reach::new(&gates, validation, validation.rows.len());
        for n_pseudo_rows in N_PSEUDO_ROWS {
            let smoothing = Smoothing {
                n_pseudo_rows,
                ..plain.clone()
            };
            let mut leaves = MixtureLeaves::of_routes(kind, &rows.train, &reach, &smoothing);
            for iteration in 0..=N_ITERATIONS[1] {
                if N_ITERATIONS.contains(&iteration) {
                    let score = leaves.score(validation, &of_validation);
                    if best.is_none_or(|(found, ..)| score > found) {
                        best = Some((score, threshold, iteration, n_pseudo_rows));
                    }
                }
                if iteration < N_ITERATIONS[1] {
                    leaves = leaves.improved(&rows.train, &reach);
                }
            }
        }
    }
    let (_, threshold, n_iterations, n_pseudo_rows) = best?;
    let gates = gates(threshold);
    let reach = Reach::new(&gates, &rows.train, rows.train.rows.len());
    let smoothing = Smoothing {
        n_pseudo_rows,
        ..plain
    };
    let mut leaves = MixtureLeaves::of_routes(kind, &rows.train, &reach, &smoothing);
    for _ in 0..n_iterations {
        leaves = leaves.improved(&rows.train, &reach);
    }
    let of_validation = Reach::new(&gates, validation, validation.rows.len());
    let densities = |smoothing: &Smoothing| {
        let scaled = MixtureLeaves {
            kind,
            stats: leaves.stats.clone(),
            smoothing: smoothing.clone(),
        };
        let kept = scaled.kept();
        let density = |(at, (.., target)): (usize, FitRow)| {
            scaled.mixture(&kept, of_validation.row(at), target)
        };
        validation.iter().enumerate().map(density).collect()
    };
    let kept = leaves.kept();
    let n_validation = validation.rows.len();
    let means = (0..n_validation).map(|at| leaves.mean(&kept, of_validation.row(at)));
    let held_out = HeldOutPredictions::new(kind, &leaves.smoothing, densities, means.collect());
    if rows.is_split {
        let of_training = MixtureLeaves {
            kind,
            stats: leaves.stats.clone(),
            smoothing: leaves.smoothing.clone(),
        };
        for (at, (_, weight, target)) in validation.iter().enumerate() {
            leaves.push_responsibilities(&of_training, of_validation.row(at), target, weight);
        }
    }
    Some(FittedRoutes {
        routes: leaves.finished(gates, key),
        held_out,
    })
}

impl MixtureLeaves {
    /// The leaves that have enough rows; the heaviest one if none has.
    fn finished(self, gates: SoftGates, key: Key) -> SoftRoutes {
        let n_stats = self.kind.n_stats();
        let weight = |leaf: usize| {
            self.kind
                .weight(&self.stats[leaf * n_stats..(leaf + 1) * n_stats])
        };
        let n_leaves = gates.n_leaves();
        let mut kept: Vec<u32> = (0..n_leaves)
            .filter(|&leaf| weight(leaf) >= MIN_WEIGHT)
            .map(|leaf| leaf as u32)
            .collect();
        if kept.is_empty() {
            let heaviest = (0..n_leaves).max_by(|&a, &b| weight(a).total_cmp(&weight(b)));
            kept.push(heaviest.unwrap_or(0) as u32);
        }
        let stats = kept.iter().flat_map(|&leaf| {
            let start = leaf as usize * n_stats;
            self.stats[start..start + n_stats].iter().copied()
        });
        SoftRoutes {
            leaves: SmoothedLeaves {
                kind: self.kind,
                stats: stats.collect(),
                smoothing: self.smoothing,
                key,
            },
            gates,
            kept,
        }
    }
}

impl SoftRoutes {
    /// Fills the weights of the kept leaves for a row; `nodes` is scratch memory.
    pub(super) fn fill(&self, bin: impl Fn(usize) -> u8, nodes: &mut Vec<f64>, out: &mut Vec<f64>) {
        let n_leaves = self.gates.n_leaves();
        nodes.resize(2 * n_leaves - 1, 0.0);
        self.gates.fill(bin, nodes);
        out.clear();
        out.extend(
            self.kept
                .iter()
                .map(|&leaf| nodes[n_leaves - 1 + leaf as usize]),
        );
        let total: f64 = out.iter().sum();
        if total > 1e-9 {
            for weight in &mut *out {
                *weight /= total;
            }
        } else {
            out.fill(1.0 / self.kept.len() as f64);
        }
    }
}
