//! Starts of the training runs: a network that writes a CART tree, one that writes a balanced tree
//! with one input per level, and random ones.

use crate::data::bootstrap::bootstrap_weights;
use crate::error::Result;
use crate::fit::Run;
use crate::models::rnn_tree::rows::RouteRows;
use crate::models::rnn_tree::streams;
use crate::par::Pool;
use crate::recurrent::hard_tree::HardTree;
use crate::recurrent::imitation::{TargetSplit, imitate, target_splits};
use crate::recurrent::network::NetworkShape;
use crate::rng::{Key, below, shuffle};
use crate::trees::cart::{CartLimits, CartTarget, grow};

/// Least weight of a leaf of the CART start.
const MIN_LEAF_WEIGHT: f64 = 5.0;
/// Weight of the prior value of a leaf.
const PRIOR_WEIGHT: f64 = 1.0;

/// A start of a training run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartKind {
    /// A CART tree of the training rows.
    Cart,
    /// A CART tree of a bootstrap sample.
    BaggedCart,
    /// A tree with one random input per level, which splits at its median.
    Balanced,
    /// Random weights.
    Random,
}

impl StartKind {
    /// The start of a restart.
    pub(super) fn of(restart: usize) -> Self {
        match restart % 4 {
            0 if restart == 0 => Self::Cart,
            1 => Self::Balanced,
            2 => Self::Random,
            _ => Self::BaggedCart,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cart => "CART",
            Self::BaggedCart => "bagged CART",
            Self::Balanced => "balanced",
            Self::Random => "random",
        }
    }
}

/// Weights of the network, and a value of each leaf (means, or logits: classes x leaves).
#[derive(Debug)]
pub(super) struct Start {
    pub(super) weights: Vec<f32>,
    pub(super) leaf_values: Vec<f32>,
}

impl Start {
    pub(super) fn new(
        kind: StartKind,
        shape: NetworkShape,
        rows: &RouteRows<'_>,
        run: &Run<'_>,
        key: Key,
    ) -> Result<Self> {
        let mut weights = shape.random_weights(1.0, key.child(streams::WEIGHTS));
        let key = key.child(streams::START);
        let targets = match kind {
            StartKind::Random => {
                let leaf_values = scattered_values(rows, shape.n_leaves(), key);
                return Ok(Self {
                    weights,
                    leaf_values,
                });
            }
            StartKind::Balanced => {
                // all nodes of a level have the same split
                weights[shape.decision_weights()].fill(0.0);
                balanced_splits(&shape, key)
            }
            StartKind::Cart => cart_splits(&shape, rows, &train_weight(rows), run, key)?,
            StartKind::BaggedCart => {
                let weight = bootstrap_weights(&train_weight(rows), key);
                cart_splits(&shape, rows, &weight, run, key)?
            }
        };
        imitate(shape, &targets, &mut weights);
        let tree = HardTree::new(&shape, &weights, &rows.inputs, &rows.set.cuts);
        Ok(Self {
            leaf_values: fitted_values(rows, &tree),
            weights,
        })
    }
}

/// Weights of all binned rows: zero for rows that are not training rows.
fn train_weight(rows: &RouteRows<'_>) -> Vec<f32> {
    let mut weight = vec![0.0; rows.set.n_rows()];
    for (row, of_row, _) in rows.train.iter() {
        weight[row] = of_row as f32;
    }
    weight
}

/// Every level has one input, which is split at its median; inputs are used once before any is used
/// again, then at other quantiles.
fn balanced_splits(shape: &NetworkShape, key: Key) -> Vec<Option<TargetSplit>> {
    let mut rng = key.rng();
    let mut order: Vec<usize> = (0..shape.n_inputs).collect();
    shuffle(&mut rng, &mut order);
    let mut splits = Vec::new();
    for level in 0..shape.depth {
        let input = order[level % shape.n_inputs];
        let round = level / shape.n_inputs;
        for node in 0..1_usize << level {
            // a repeated input halves the interval that its earlier decisions have left
            let mut centre = 0.0;
            let mut width = f64::sqrt(3.0);
            for earlier in 0..round {
                let bit =
                    node >> (level - 1 - (level % shape.n_inputs + earlier * shape.n_inputs)) & 1;
                width /= 2.0;
                centre += if bit == 1 { width } else { -width };
            }
            splits.push(Some(TargetSplit {
                input,
                bias: -centre,
                slope: 1.0,
            }));
        }
    }
    splits
}

/// The splits of a CART tree of this depth.
fn cart_splits(
    shape: &NetworkShape,
    rows: &RouteRows<'_>,
    weight: &[f32],
    run: &Run<'_>,
    key: Key,
) -> Result<Vec<Option<TargetSplit>>> {
    let limits = CartLimits {
        max_depth: shape.depth,
        min_weight: MIN_LEAF_WEIGHT,
        n_tried: None,
    };
    let pool = Pool::new(1)?;
    let observer = || {
        let event = crate::observer::Event::new("growing", 0, 1);
        run.observer.on_event(&event)
    };
    let cart = grow(&rows.set.cart_data(&pool), weight, &limits, key, &observer)?;
    Ok(target_splits(shape, &rows.inputs, &cart.structure))
}

/// Values of the leaves of a hard tree on the training rows.
fn fitted_values(rows: &RouteRows<'_>, tree: &HardTree) -> Vec<f32> {
    let kind = rows.kind();
    let stats = rows.leaf_stats(tree);
    let leaves = stats.chunks_exact(kind.n_stats());
    let n_leaves = leaves.len();
    match kind {
        CartTarget::Number => leaves
            .map(|stats| (stats[0] * stats[1] / (stats[0] + PRIOR_WEIGHT)) as f32)
            .collect(),
        CartTarget::Classes(classes) => {
            let mut logits = vec![0.0; classes * n_leaves];
            for (leaf, stats) in leaves.enumerate() {
                let total: f64 = stats.iter().sum();
                for (class, weight) in stats.iter().enumerate() {
                    let p = (weight + PRIOR_WEIGHT / classes as f64) / (total + PRIOR_WEIGHT);
                    logits[class * n_leaves + leaf] = p.ln() as f32;
                }
            }
            logits
        }
    }
}

/// Values that differ between leaves: targets at equally spaced ranks in random order, or the logits
/// of random classes.
fn scattered_values(rows: &RouteRows<'_>, n_leaves: usize, key: Key) -> Vec<f32> {
    let mut rng = key.rng();
    let mut sorted: Vec<f32> = rows.train.iter().map(|(_, _, target)| target).collect();
    sorted.sort_by(f32::total_cmp);
    match rows.kind() {
        CartTarget::Number => {
            let place = |leaf: usize| (2 * leaf + 1) * sorted.len() / (2 * n_leaves);
            let mut values: Vec<f32> = (0..n_leaves).map(|leaf| sorted[place(leaf)]).collect();
            shuffle(&mut rng, &mut values);
            values
        }
        CartTarget::Classes(classes) => {
            let mut logits = vec![0.0; classes * n_leaves];
            for leaf in 0..n_leaves {
                let class = sorted[below(&mut rng, sorted.len())] as usize;
                logits[class * n_leaves + leaf] = 1.0;
            }
            logits
        }
    }
}
