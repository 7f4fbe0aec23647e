//! Classification and regression trees: squared error of a number, or of class indicators, which is
//! the Gini criterion.

pub(crate) mod depth_first;
mod exact_small_node;
pub(crate) mod pruning;

use std::ops::ControlFlow;

use crate::data::binning::binned::Binned;
use crate::error::{Error, Result};
use crate::likelihood::OutputTerms;
use crate::likelihood::squared::residual;
use crate::par::Pool;
use crate::rng::Key;
use crate::stop::Stop;
use crate::trees::cart::depth_first::{DepthFirstOptions, DepthFirstTree};
use crate::trees::histogram::candidate::ColumnInfo;
use crate::trees::histogram::chooser::SplitChooser;
use crate::trees::histogram::grower::{GrowTask, Grower, Growth, Limits};
use crate::trees::histogram::quantized_gradients::QuantizedGradients;
use crate::trees::histogram::reduce::SingleProcess;
use crate::trees::histogram::splitter::{GainSpec, ScaledGain};
use crate::trees::structure::TreeStructure;

/// The kind of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CartTarget {
    /// A number.
    Number,
    /// One of this many classes.
    Classes(usize),
}

/// Most classes of a tree.
pub(crate) const MAX_CLASSES: usize = 63;

impl CartTarget {
    /// Number of statistics of a node: weight, mean and sum of squared deviations for a number, the
    /// weight of each class for classes.
    pub(crate) fn n_stats(self) -> usize {
        match self {
            Self::Number => 3,
            Self::Classes(n) => n,
        }
    }

    /// Adds a row to the statistics of a node.
    #[inline]
    pub(crate) fn push(self, stats: &mut [f64], target: f32, weight: f64) {
        match self {
            Self::Number => merge(stats, &[weight, f64::from(target), 0.0]),
            Self::Classes(_) => stats[target as usize] += weight,
        }
    }

    /// Adds the statistics of another node.
    pub(crate) fn merge(self, stats: &mut [f64], other: &[f64]) {
        match self {
            Self::Number => merge(stats, other),
            Self::Classes(_) => {
                for (sum, other) in stats.iter_mut().zip(other) {
                    *sum += other;
                }
            }
        }
    }

    /// Total weight of the rows of a node.
    pub(crate) fn weight(self, stats: &[f64]) -> f64 {
        match self {
            Self::Number => stats[0],
            Self::Classes(_) => stats.iter().sum(),
        }
    }

    /// Loss of a node as a leaf: sum of squared deviations, or weight times Gini index.
    pub(crate) fn loss(self, stats: &[f64]) -> f64 {
        match self {
            Self::Number => stats[2],
            Self::Classes(_) => {
                let total: f64 = stats.iter().sum();
                let squares: f64 = stats.iter().map(|weight| weight * weight).sum();
                if total > 0.0 {
                    (total - squares / total).max(0.0)
                } else {
                    0.0
                }
            }
        }
    }
}

/// Merges weight, mean and sum of squared deviations of two sets of rows (Chan et al. 1983).
fn merge(stats: &mut [f64], other: &[f64]) {
    let total = stats[0] + other[0];
    if total <= 0.0 {
        return;
    }
    let difference = other[1] - stats[1];
    stats[2] += other[2] + difference * difference * stats[0] * other[0] / total;
    stats[1] += difference * other[0] / total;
    stats[0] = total;
}

/// Binned rows with their targets: standardised numbers, or class indices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CartData<'a> {
    pub(crate) binned: &'a Binned,
    pub(crate) columns: &'a ColumnInfo,
    pub(crate) target: &'a [f32],
    pub(crate) kind: CartTarget,
    pub(crate) pool: &'a Pool,
}

/// Limits of the growth of a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CartLimits {
    pub(crate) max_depth: usize,
    /// Least weight of a leaf.
    pub(crate) min_weight: f64,
    /// Number of columns that each node chooses from; `None` for all.
    pub(crate) n_tried: Option<usize>,
}

/// A grown tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cart {
    pub(crate) structure: TreeStructure,
    /// Statistics of the leaves, leaves x statistics.
    pub(crate) leaves: Vec<f64>,
    /// Gain of each condition.
    pub(crate) gains: Vec<f32>,
    /// Whether the observer stopped growth before its end.
    pub(crate) is_stopped: bool,
}

/// Grows a tree on the rows of positive weight.
///
/// # Errors
/// When the observer discards the tree, or the target has more than [`MAX_CLASSES`] classes.
pub(crate) fn grow(
    data: &CartData<'_>,
    weight: &[f32],
    limits: &CartLimits,
    key: Key,
    observer: &(dyn Fn() -> ControlFlow<Stop> + Sync),
) -> Result<Cart> {
    match data.kind {
        CartTarget::Number | CartTarget::Classes(..=2) => {
            grow_with::<2>(data, weight, limits, key, observer)
        }
        CartTarget::Classes(3) => grow_with::<4>(data, weight, limits, key, observer),
        CartTarget::Classes(4..=7) => grow_with::<8>(data, weight, limits, key, observer),
        CartTarget::Classes(8..=15) => grow_with::<16>(data, weight, limits, key, observer),
        CartTarget::Classes(16..=31) => grow_with::<32>(data, weight, limits, key, observer),
        CartTarget::Classes(32..=MAX_CLASSES) => {
            grow_with::<64>(data, weight, limits, key, observer)
        }
        CartTarget::Classes(n) => Err(Error::Table(format!(
            "the target has {n} classes; a tree takes at most {MAX_CLASSES}"
        ))),
    }
}

/// Random streams of one tree.
mod streams {
    pub(super) const ROUNDING: u64 = 0;
    pub(super) const COLUMNS: u64 = 1;
}

/// Grows a tree whose rows have `L` entries: a gradient per output, and last the weight.
fn grow_with<const L: usize>(
    data: &CartData<'_>,
    weight: &[f32],
    limits: &CartLimits,
    key: Key,
    observer: &(dyn Fn() -> ControlFlow<Stop> + Sync),
) -> Result<Cart> {
    let n_rows = data.binned.n_rows();
    let rows: Vec<u32> = (0..n_rows as u32)
        .filter(|&row| weight[row as usize] > 0.0)
        .collect();
    let mut root = vec![0.0; data.kind.n_stats()];
    add_rows(data, weight, &rows, &mut root);
    let mut quantized = QuantizedGradients::<L>::new(n_rows);
    let salt = key.child(streams::ROUNDING).word();
    quantized.set(&grad_hess(data, weight, &root), salt);
    let gain_spec = gain_spec(data.kind, L, limits.min_weight);
    let task = GrowTask {
        binned: data.binned,
        columns: data.columns,
        quantized: &quantized,
        scaled_gain: &ScaledGain::new(&gain_spec, &quantized),
        limits: Limits {
            growth: Growth::Depthwise,
            max_depth: limits.max_depth,
            max_leaves: usize::MAX,
        },
        allowed: &vec![true; data.binned.n_columns()],
        chooser: SplitChooser::Best,
        pool: data.pool,
        reduce: &SingleProcess,
    };
    let options = DepthFirstOptions {
        gain_spec: &gain_spec,
        target: data.target,
        n_tried: limits.n_tried,
        key: key.child(streams::COLUMNS),
        observer,
    };
    let mut grower = Grower::new(data.binned);
    let DepthFirstTree {
        tree: grown,
        is_stopped,
    } = grower.grow_depth_first(&task, &options, rows)?;
    let n_stats = data.kind.n_stats();
    let mut leaves = vec![0.0; grown.leaves.len() * n_stats];
    for (stats, rows) in leaves.chunks_exact_mut(n_stats).zip(&grown.leaves) {
        add_rows(data, weight, grower.partition.rows(rows), stats);
    }
    Ok(Cart {
        structure: grown.structure,
        leaves,
        gains: grown.gains,
        is_stopped,
    })
}

/// Adds rows to the statistics of a node.
fn add_rows(data: &CartData<'_>, weight: &[f32], rows: &[u32], stats: &mut [f64]) {
    for &row in rows {
        let row = row as usize;
        data.kind
            .push(stats, data.target[row], f64::from(weight[row]));
    }
}

/// Squared error: the hessian of every output is the weight, the last of `n_entries` entries.
fn gain_spec(kind: CartTarget, n_entries: usize, min_weight: f64) -> GainSpec {
    let output = |gradient: usize| OutputTerms {
        gradient,
        hessian: n_entries - 1,
        factor: 1.0,
        l2: 0.0,
    };
    let n_outputs = match kind {
        CartTarget::Number | CartTarget::Classes(..=2) => 1,
        CartTarget::Classes(n) => n,
    };
    GainSpec {
        outputs: (0..n_outputs).map(output).collect(),
        weight: n_entries - 1,
        min_weight,
    }
}

/// Entries of each row: the weighted residual of every output at the root, and last the weight.
fn grad_hess<const L: usize>(data: &CartData<'_>, weight: &[f32], root: &[f64]) -> Vec<[f32; L]> {
    let total: f64 = root.iter().sum();
    let rows = data.target.iter().zip(weight);
    rows.map(|(&y, &w)| {
        let mut grad_hess = [0.0; L];
        grad_hess[L - 1] = w;
        match data.kind {
            CartTarget::Number => grad_hess[0] = w * residual(y, root[1] as f32),
            CartTarget::Classes(..=2) => grad_hess[0] = w * residual(y, (root[1] / total) as f32),
            CartTarget::Classes(n) => {
                for class in 0..n {
                    let indicator = f32::from(u8::from(y as usize == class));
                    grad_hess[class] = w * residual(indicator, (root[class] / total) as f32);
                }
            }
        }
        grad_hess
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::binning::binned::Cuts;
    use crate::data::column::Column;
    use crate::data::table::Table;

    const N: usize = 300;

    /// Three columns with few distinct values; the second has missing cells.
    fn cells() -> Vec<[f64; 3]> {
        let draw = Key::from_seed(4).uniforms(3 * N);
        let cell = |row: &[f64]| {
            let b = if row[1] < 0.2 {
                f64::NAN
            } else {
                (row[1] * 9.0).floor()
            };
            [(row[0] * 7.0).floor(), b, (row[2] * 12.0).floor()]
        };
        draw.chunks_exact(3).map(cell).collect()
    }

    fn target(cells: &[[f64; 3]]) -> Vec<f32> {
        let noise = Key::from_seed(5).uniforms(N);
        let value = |(row, noise): (&[f64; 3], &f64)| {
            let b = if row[1].is_nan() { 3.0 } else { row[1] };
            ((row[0] - 3.0) * (b - 4.0) + (row[2] - 5.0).abs() + 2.0 * noise) as f32
        };
        cells.iter().zip(&noise).map(value).collect()
    }

    fn grown(
        cells: &[[f64; 3]],
        target: &[f32],
        kind: CartTarget,
        limits: &CartLimits,
    ) -> (Cart, Vec<usize>) {
        let column =
            |at: usize| Column::numeric(format!("{at}"), cells.iter().map(|row| row[at]).collect());
        let table = Table::new((0..3).map(column).collect()).unwrap();
        let rows: Vec<u32> = (0..cells.len() as u32).collect();
        let cuts = Cuts::fit(&table, &rows, &vec![1.0; cells.len()], 255);
        let binned = cuts.bin_rows(&table, &rows);
        let columns = ColumnInfo::new(&cuts, &binned);
        let pool = Pool::new(1).unwrap();
        let data = CartData {
            binned: &binned,
            columns: &columns,
            target,
            kind,
            pool: &pool,
        };
        let observer = || ControlFlow::Continue(());
        let cart = grow(
            &data,
            &vec![1.0; cells.len()],
            limits,
            Key::from_seed(0),
            &observer,
        )
        .unwrap();
        let leaves = (0..cells.len())
            .map(|row| cart.structure.leaf(|column| binned.bin(row, column)))
            .collect();
        (cart, leaves)
    }

    fn loss_of(kind: CartTarget, target: &[f32], rows: &[usize]) -> f64 {
        let mut stats = vec![0.0; kind.n_stats()];
        for &row in rows {
            kind.push(&mut stats, target[row], 1.0);
        }
        kind.loss(&stats)
    }

    /// A problem for exhaustive search.
    #[derive(Clone, Copy)]
    struct Exhaustive<'a> {
        cells: &'a [[f64; 3]],
        target: &'a [f32],
        kind: CartTarget,
        min_rows: usize,
    }

    /// Grows a tree by trying every split of every column; appends the rows of each leaf.
    fn brute_force(
        problem: Exhaustive<'_>,
        rows: Vec<usize>,
        depth: usize,
        leaves: &mut Vec<Vec<usize>>,
    ) {
        let Exhaustive {
            cells,
            target,
            kind,
            min_rows,
        } = problem;
        let own = loss_of(kind, target, &rows);
        let mut best: Option<(f64, Vec<usize>, Vec<usize>)> = None;
        for column in 0..3 {
            let mut values: Vec<f64> = rows
                .iter()
                .map(|&row| cells[row][column])
                .filter(|v| !v.is_nan())
                .collect();
            values.sort_by(f64::total_cmp);
            values.dedup();
            for &threshold in &values {
                for missing_right in [false, true] {
                    let goes_right = |&row: &usize| {
                        let value = cells[row][column];
                        if value.is_nan() {
                            missing_right
                        } else {
                            value > threshold
                        }
                    };
                    let (right, left): (Vec<usize>, Vec<usize>) =
                        rows.iter().partition(|row| goes_right(row));
                    if left.len().min(right.len()) < min_rows.max(1) {
                        continue;
                    }
                    let gain = own - loss_of(kind, target, &left) - loss_of(kind, target, &right);
                    if best
                        .as_ref()
                        .is_none_or(|best| gain > best.0 * (1.0 + 1e-9))
                    {
                        best = Some((gain, left, right));
                    }
                }
            }
        }
        match best {
            Some((gain, left, right)) if depth > 0 && gain > 1e-6 * own.max(1e-3) => {
                for side in [left, right] {
                    brute_force(problem, side, depth - 1, leaves);
                }
            }
            _ => leaves.push(rows),
        }
    }

    /// Whether two partitions of the rows are equal.
    fn is_same_partition(leaves: &[usize], expected: &[Vec<usize>]) -> bool {
        let mut number = vec![0; leaves.len()];
        for (at, rows) in expected.iter().enumerate() {
            for &row in rows {
                number[row] = at;
            }
        }
        let pairs: std::collections::BTreeSet<(usize, usize)> =
            leaves.iter().copied().zip(number).collect();
        pairs.len() == expected.len()
    }

    #[test]
    fn a_tree_equals_that_of_exhaustive_search() {
        let cells = cells();
        let numbers = target(&cells);
        let coded: Vec<f32> = numbers
            .iter()
            .map(|y| f32::from(u8::from(*y > 0.0) + u8::from(*y > 5.0)))
            .collect();
        let two: Vec<f32> = coded.iter().map(|y| y.min(1.0)).collect();
        for (kind, target) in [
            (CartTarget::Number, &numbers),
            (CartTarget::Classes(2), &two),
            (CartTarget::Classes(3), &coded),
        ] {
            for (depth, min_rows) in [(2, 1), (4, 1), (30, 5), (30, 20)] {
                let limits = CartLimits {
                    max_depth: depth,
                    min_weight: min_rows as f64,
                    n_tried: None,
                };
                let (cart, leaves) = grown(&cells, target, kind, &limits);
                let mut expected = Vec::new();
                let problem = Exhaustive {
                    cells: &cells,
                    target,
                    kind,
                    min_rows,
                };
                brute_force(problem, (0..N).collect(), depth, &mut expected);
                let loss: f64 = cart
                    .leaves
                    .chunks_exact(kind.n_stats())
                    .map(|stats| kind.loss(stats))
                    .sum();
                let exact: f64 = expected
                    .iter()
                    .map(|rows| loss_of(kind, target, rows))
                    .sum();
                assert!(
                    is_same_partition(&leaves, &expected),
                    "{kind:?}, depth {depth}: {loss} and {exact}"
                );
            }
        }
    }

    #[test]
    fn a_full_tree_has_a_leaf_per_bin_and_min_weight_bounds_leaves() {
        let cells: Vec<[f64; 3]> = (0..N).map(|row| [row as f64, 0.0, f64::NAN]).collect();
        let target: Vec<f32> = (0..N).map(|row| (row * 7919 % N) as f32).collect();
        let limits = CartLimits {
            max_depth: 1000,
            min_weight: 1.0,
            n_tried: Some(1),
        };
        // 300 distinct values share 255 bins
        let (cart, _) = grown(&cells, &target, CartTarget::Number, &limits);
        assert_eq!(cart.structure.n_leaves(), 255);
        let limits = CartLimits {
            min_weight: 7.0,
            ..limits
        };
        let (cart, _) = grown(&cells, &target, CartTarget::Number, &limits);
        assert!(cart.leaves.chunks_exact(3).all(|stats| stats[0] >= 7.0));
    }
}
