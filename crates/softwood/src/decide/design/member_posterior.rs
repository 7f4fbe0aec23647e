//! What the labels of the chosen rows leave unknown, in terms of the members.
//!
//! With the scaled deviations `a_i` of the chosen rows as the rows of `A`, a function is the mean of
//! the members plus their deviations with weights of covariance `B = (1 + Aᵀ A)⁻¹` (members x
//! members). The label of a further row with deviations `a` has the variance `1 + aᵀ w`, in units of
//! its noise, with `w = B a`, and changes `B` to `B - w wᵀ / (1 + aᵀ w)`. This is a pivoted Cholesky
//! decomposition that stores `B` instead of a column for each chosen row.

use crate::numerics::dot::dot;

/// Covariance of the weights of the members, given the labels of the chosen rows.
#[derive(Debug)]
pub(super) struct MemberPosterior {
    n_members: usize,
    /// The matrix `B`.
    covariance: Vec<f64>,
}

/// A row under the posterior.
pub(super) struct PosteriorRow {
    /// `w = B a` of each output (outputs x members).
    pub(super) weights: Vec<f64>,
    /// `1 + aᵀ w` of each pair of outputs (outputs x outputs).
    pub(super) variance: Vec<f64>,
}

impl MemberPosterior {
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

    /// Weights and variance of a row; `row` has its deviations (outputs x members).
    pub(super) fn row(&self, row: &[f64], n_outputs: usize) -> PosteriorRow {
        let outputs = || row.chunks_exact(self.n_members);
        let mut weights = Vec::with_capacity(row.len());
        let mut variance = vec![0.0; n_outputs * n_outputs];
        for (i, a) in outputs().enumerate() {
            let of_output = self.times(a);
            for (j, b) in outputs().enumerate().take(i + 1) {
                let product = dot(&of_output, b);
                variance[i * n_outputs + j] = product;
                variance[j * n_outputs + i] = product;
            }
            // not negative, but for rounding
            let diagonal = &mut variance[i * n_outputs + i];
            *diagonal = 1.0 + diagonal.max(0.0);
            weights.extend(of_output);
        }
        PosteriorRow { weights, variance }
    }

    /// Conditions on the label of a row, one output after the other.
    pub(super) fn add(&mut self, row: &[f64]) {
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
