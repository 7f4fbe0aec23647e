//! Greedy choice of the rows whose labels reduce the knowledge variance of the predictions for the
//! pool most (Cohn 1996, "Neural network exploration using optimal experiment design").
//!
//! With the unscaled deviations `d_j` of reference rows, `G = Σ_j d_j d_jᵀ` (members x members) and the
//! matrix `B` of [`MemberPosterior`], the knowledge variances of the reference rows sum to `tr(G B)`,
//! and the label of a row with weights `w` and variance `v` under the posterior reduces the sum by
//! `wᵀ G w / v`. A reduction may grow when other rows are added, so that all candidates are computed
//! at each step.

use crate::decide::design::deviations::ScaledDeviations;
use crate::decide::design::information::first_largest;
use crate::decide::design::member_posterior::MemberPosterior;
use crate::error::Result;
use crate::numerics::cholesky;
use crate::numerics::dot::dot;
use crate::par::Pool;
use crate::stop;

/// Candidates of a task.
const ROWS_PER_TASK: usize = 64;

/// The deviations of the members on the reference rows.
#[derive(Debug)]
pub(super) struct ReferenceRows {
    n_members: usize,
    /// The matrix `G`, divided by the number of reference rows.
    products: Vec<f64>,
}

impl ReferenceRows {
    /// The sums over all rows and outputs.
    ///
    /// # Errors
    /// When the work is cancelled.
    pub(super) fn new(rows: &ScaledDeviations) -> Result<Self> {
        let n_members = rows.n_members;
        let mut products = vec![0.0; n_members * n_members];
        let weight = 1.0 / rows.n_rows().max(1) as f64;
        for position in 0..rows.n_rows() {
            stop::check()?;
            for d in rows.row(position).chunks_exact(n_members) {
                for (line, value) in products.chunks_exact_mut(n_members).zip(d) {
                    let factor = weight * value;
                    for (sum, other) in line.iter_mut().zip(d) {
                        *sum += factor * other;
                    }
                }
            }
        }
        Ok(Self {
            n_members,
            products,
        })
    }

    /// Chooses `n` of the candidates one after the other; returns their positions and by how much
    /// each reduces the mean variance of the reference rows.
    ///
    /// # Errors
    /// When the work is cancelled.
    pub(super) fn choose(
        &self,
        posterior: &mut MemberPosterior,
        candidates: &ScaledDeviations,
        n: usize,
        pool: &Pool,
    ) -> Result<Vec<(usize, f64)>> {
        let mut open: Vec<usize> = (0..candidates.n_rows()).collect();
        let mut chosen = Vec::with_capacity(n);
        while chosen.len() < n && !open.is_empty() {
            stop::check()?;
            let reductions = pool.map_blocks(open.len(), ROWS_PER_TASK, |block| {
                let of_row = |&at: &usize| self.reduction(posterior, candidates, at);
                open[block].iter().map(of_row).collect::<Vec<f64>>()
            });
            let reductions = reductions.concat();
            let best = first_largest(reductions.iter().copied());
            let position = open.remove(best);
            posterior.add(candidates.row(position));
            chosen.push((position, reductions[best]));
        }
        Ok(chosen)
    }

    /// `tr(V⁻¹ W G Wᵀ)` with the weights `W` and the variance `V` of the outputs of a candidate.
    fn reduction(
        &self,
        posterior: &MemberPosterior,
        candidates: &ScaledDeviations,
        position: usize,
    ) -> f64 {
        let n = candidates.n_outputs();
        let mut row = posterior.row(candidates.row(position), n);
        let outputs = || row.weights.chunks_exact(self.n_members);
        let mut products = Vec::with_capacity(n * n);
        for w in outputs() {
            let lines = self.products.chunks_exact(self.n_members);
            let moved: Vec<f64> = lines.map(|line| dot(line, w)).collect();
            products.extend(outputs().map(|other| dot(&moved, other)));
        }
        if n == 1 {
            return (products[0] / row.variance[0]).max(0.0);
        }
        if !cholesky::factor(&mut row.variance, n) {
            return 0.0;
        }
        let mut trace = 0.0;
        // the matrix is symmetric: its lines are its columns
        for (output, column) in products.chunks_exact_mut(n).enumerate() {
            cholesky::solve(&row.variance, n, column);
            trace += column[output];
        }
        trace.max(0.0)
    }
}
