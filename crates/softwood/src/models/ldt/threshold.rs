//! The best threshold on a projection: the largest information gain (classes) or reduction of the
//! squared error (numbers).

use crate::models::ldt::rows::InputRows;
use crate::trees::cart::CartTarget;

/// Smallest gain of a split, as a fraction of the loss of the node: less is rounding.
const MIN_GAIN: f64 = 1e-9;

/// A threshold and what it gains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ThresholdChoice {
    pub(super) threshold: f64,
    /// Decrease of the loss of the node.
    pub(super) gain: f64,
}

/// Searches the threshold of `projections`, one for each of `rows`. Both sides have at least
/// `min_weight`; `None` if no threshold gains anything.
pub(super) fn best_threshold(
    data: &InputRows,
    rows: &[u32],
    projections: &[f64],
    min_weight: f64,
) -> Option<ThresholdChoice> {
    let mut order: Vec<(f64, u32)> = projections
        .iter()
        .copied()
        .zip(rows.iter().copied())
        .collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut left = SideLoss::new(data.kind);
    let mut right = SideLoss::new(data.kind);
    for &row in rows {
        right.add(data, row, 1.0);
    }
    let whole = right.loss();
    let mut best: Option<ThresholdChoice> = None;
    for pair in order.windows(2) {
        let [(here, row), (next, _)] = [pair[0], pair[1]];
        left.add(data, row, 1.0);
        right.add(data, row, -1.0);
        if here >= next || left.weight < min_weight {
            continue;
        }
        if right.weight < min_weight {
            break;
        }
        let gain = whole - left.loss() - right.loss();
        if gain > MIN_GAIN * whole && best.is_none_or(|best| gain > best.gain) {
            best = Some(ThresholdChoice {
                threshold: midpoint(here, next),
                gain,
            });
        }
    }
    best
}

/// A number from `low` up to, but not including, `high`.
fn midpoint(low: f64, high: f64) -> f64 {
    let middle = 0.5 * low + 0.5 * high;
    if middle < high { middle } else { low }
}

/// Loss of the rows on one side: entropy times weight, or sum of squared deviations.
#[derive(Debug, Clone)]
struct SideLoss {
    weight: f64,
    /// Weight of each class (classes), or sum and sum of squares (numbers).
    sums: Vec<f64>,
    /// Sum of `n ln n` over the classes.
    sum_n_ln_n: f64,
    is_number: bool,
}

impl SideLoss {
    fn new(kind: CartTarget) -> Self {
        Self {
            weight: 0.0,
            sums: match kind {
                CartTarget::Number => vec![0.0; 2],
                CartTarget::Classes(n) => vec![0.0; n],
            },
            sum_n_ln_n: 0.0,
            is_number: kind == CartTarget::Number,
        }
    }

    /// Adds a row (`sign` 1) or removes it (`sign` -1).
    fn add(&mut self, data: &InputRows, row: u32, sign: f64) {
        let target = data.target[row as usize];
        let weight = sign * data.weight[row as usize];
        self.weight += weight;
        if self.is_number {
            let y = f64::from(target);
            self.sums[0] += weight * y;
            self.sums[1] += weight * y * y;
        } else {
            let n = &mut self.sums[target as usize];
            self.sum_n_ln_n -= n_ln_n(*n);
            *n += weight;
            self.sum_n_ln_n += n_ln_n(*n);
        }
    }

    fn loss(&self) -> f64 {
        if self.is_number {
            self.sums[1] - self.sums[0] * self.sums[0] / self.weight
        } else {
            n_ln_n(self.weight) - self.sum_n_ln_n
        }
    }
}

fn n_ln_n(n: f64) -> f64 {
    if n > 0.0 { n * n.ln() } else { 0.0 }
}
