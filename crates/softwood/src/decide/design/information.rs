//! Greedy choice of the rows whose labels carry most information about the model.
//!
//! For labels `y_i = f(i) + noise` and jointly Normal `f`, the mutual information between the labels
//! of a batch `S` and the function is, with the scaled deviations `a_i` of its rows as the rows of `A`,
//!
//! ```text
//! I(S) = ½ ln det(1 + K_S / s²) = ½ ln det(1 + A Aᵀ)
//! ```
//!
//! and a further row adds `½ ln(1 + aᵀ B a)` with `B = (1 + Aᵀ A)⁻¹` (members x members), which a
//! chosen row changes to `B - w wᵀ / (1 + aᵀ w)`, `w = B a`. This is a pivoted Cholesky decomposition
//! that stores `B` instead of a column per chosen row. Gains only fall while rows are added, so that
//! an earlier gain is an upper bound and few rows are computed again at each step.
//!
//! For classes the outputs of a row are treated as Normal with unit noise. To second order in the
//! deviations, the information of a single row is then the mutual information of class and member.

use crate::decide::design::deviations::ScaledDeviations;
use crate::error::Result;
use crate::numerics::cholesky;
use crate::numerics::dot::dot;
use crate::stop;

/// What the chosen rows have left unknown.
#[derive(Debug)]
pub(super) struct InformationState {
    n_members: usize,
    /// The matrix `B`: covariance of the weights of the members, given the labels of the chosen rows.
    covariance: Vec<f64>,
}

/// A row with its last computed gain.
struct BoundedGain {
    position: usize,
    gain: f64,
    /// Number of chosen rows when the gain was computed.
    n_chosen: usize,
}

impl InformationState {
    /// No row is chosen.
    pub(super) fn new(n_members: usize) -> Self {
        let mut covariance = vec![0.0; n_members * n_members];
        for diagonal in covariance.iter_mut().step_by(n_members + 1) {
            *diagonal = 1.0;
        }
        Self {
            n_members,
            covariance,
        }
    }

    /// Chooses `n` of the candidates one after the other; returns their positions and gains in nats.
    ///
    /// # Errors
    /// When the work is cancelled.
    pub(super) fn choose(
        &mut self,
        candidates: &ScaledDeviations,
        n_candidates: usize,
        n: usize,
    ) -> Result<Vec<(usize, f64)>> {
        let n_outputs = candidates.n_outputs();
        let mut open = Vec::with_capacity(n_candidates);
        for position in 0..n_candidates {
            stop::check()?;
            open.push(BoundedGain {
                position,
                gain: self.gain(candidates.row(position), n_outputs),
                n_chosen: 0,
            });
        }
        let mut chosen = Vec::with_capacity(n);
        while chosen.len() < n && !open.is_empty() {
            stop::check()?;
            let best = first_largest(&open);
            let row = candidates.row(open[best].position);
            if open[best].n_chosen < chosen.len() {
                open[best].gain = self.gain(row, n_outputs).min(open[best].gain);
                open[best].n_chosen = chosen.len();
                continue;
            }
            self.add(row);
            // the order of the others decides between equal gains
            let best = open.remove(best);
            chosen.push((best.position, best.gain));
        }
        Ok(chosen)
    }

    /// What the label of a row would add, in nats; `row` has its deviations (outputs x members).
    fn gain(&self, row: &[f64], n_outputs: usize) -> f64 {
        let outputs = || row.chunks_exact(self.n_members);
        let mut matrix = vec![0.0; n_outputs * n_outputs];
        for (i, a) in outputs().enumerate() {
            let weights = self.times(a);
            for (j, b) in outputs().enumerate().take(i + 1) {
                let product = dot(&weights, b) + if i == j { 1.0 } else { 0.0 };
                matrix[i * n_outputs + j] = product;
                matrix[j * n_outputs + i] = product;
            }
        }
        if n_outputs == 1 {
            return 0.5 * matrix[0].max(1.0).ln();
        }
        let is_definite = cholesky::factor(&mut matrix, n_outputs);
        // eigenvalues are one or more, but for rounding
        if is_definite {
            0.5 * cholesky::ln_det(&matrix, n_outputs).max(0.0)
        } else {
            0.0
        }
    }

    /// Conditions on the label of a row, one output after the other.
    fn add(&mut self, row: &[f64]) {
        for a in row.chunks_exact(self.n_members) {
            let weights = self.times(a);
            let variance = 1.0 + dot(&weights, a).max(0.0);
            let lines = self.covariance.chunks_exact_mut(self.n_members);
            for (line, weight) in lines.zip(&weights) {
                let factor = weight / variance;
                for (value, other) in line.iter_mut().zip(&weights) {
                    *value -= factor * other;
                }
            }
        }
    }

    /// `B a`.
    fn times(&self, a: &[f64]) -> Vec<f64> {
        let lines = self.covariance.chunks_exact(self.n_members);
        lines.map(|line| dot(line, a)).collect()
    }
}

/// The first of the rows with the largest gain.
fn first_largest(open: &[BoundedGain]) -> usize {
    let mut best = 0;
    for (at, row) in open.iter().enumerate() {
        if row.gain > open[best].gain {
            best = at;
        }
    }
    best
}
