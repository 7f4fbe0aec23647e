//! Rows side by side for the kernel, and their scores.

use crate::numerics::logspace::log_mean_exp;
use crate::numerics::real::LANES;
use crate::soft::additive::AdditiveLayout;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::tree::{Batch, Workspace, row_scores};
use crate::variational::encoded_rows::EncodedRows;

/// Least log-likelihood of a held-out row.
const WORST_SCORE: f64 = -1e30;
/// Rows scored at once.
const SCORE_ROWS: usize = 256;

/// Log-likelihood of each row under draws of the weights, in standard units.
pub(crate) fn score_rows(spec: &SoftTreeSpec, draws: &[f32], rows: &EncodedRows) -> Vec<f64> {
    let n_draws = draws.len() / spec.stack.n_weights();
    let mut gathered = Minibatch::new(SCORE_ROWS, &spec.stack);
    let mut workspace = Workspace::new(spec, SCORE_ROWS, n_draws);
    let order: Vec<usize> = (0..rows.n_rows()).collect();
    let mut scores = Vec::with_capacity(rows.n_rows());
    for chunk in order.chunks(SCORE_ROWS) {
        let batch = gathered.gather(rows, &rows.offset, chunk);
        row_scores(spec, &batch, draws, &mut workspace);
        let stride = batch.target.len();
        for at in 0..chunk.len() {
            // a row far beyond every draw overflows single precision: the worst score, but a number
            let score =
                |draw: usize| f64::from(workspace.scores[draw * stride + at]).max(WORST_SCORE);
            scores.push(log_mean_exp((0..n_draws).map(score)));
        }
    }
    scores
}

/// Rows of a batch, copied side by side; padding rows have weight 0.
pub(crate) struct Minibatch {
    inputs: Vec<f32>,
    target: Vec<f32>,
    weight: Vec<f32>,
    offset: Vec<f32>,
    width: usize,
    n_offset: usize,
}

impl Minibatch {
    pub(crate) fn new(max_rows: usize, stack: &AdditiveLayout) -> Self {
        let rows = max_rows.next_multiple_of(LANES);
        let (width, n_offset) = (stack.width(), stack.n_offset());
        Self {
            inputs: vec![0.0; rows * width],
            target: vec![0.0; rows],
            weight: vec![0.0; rows],
            offset: vec![0.0; rows * n_offset],
            width,
            n_offset,
        }
    }

    /// The rows of these numbers; `offset` is what earlier trees say of all rows, row by row.
    pub(crate) fn gather(
        &mut self,
        from: &EncodedRows,
        offset: &[f32],
        rows: &[usize],
    ) -> Batch<'_, f32> {
        let padded = rows.len().next_multiple_of(LANES);
        for (at, &row) in rows.iter().enumerate() {
            let source = &from.inputs[row * self.width..(row + 1) * self.width];
            self.inputs[at * self.width..(at + 1) * self.width].copy_from_slice(source);
            self.target[at] = from.target[row];
            self.weight[at] = from.weight[row];
            if self.n_offset > 0 {
                let source = &offset[row * self.n_offset..(row + 1) * self.n_offset];
                for (place, value) in self.offset[at..].iter_mut().step_by(padded).zip(source) {
                    *place = *value;
                }
            }
        }
        self.weight[rows.len()..padded].fill(0.0);
        Batch {
            inputs: &self.inputs[..padded * self.width],
            target: &self.target[..padded],
            weight: &self.weight[..padded],
            offset: &self.offset[..padded * self.n_offset],
        }
    }
}
