//! Minibatches for the kernel, and log-likelihood scores of encoded rows.

use crate::numerics::logspace::log_mean_exp;
use crate::numerics::real::LANES;
use crate::soft::additive::AdditiveLayout;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::TreeLayout;
use crate::soft::tree::{Batch, Workspace, row_scores};
use crate::stop::until_cancelled;
use crate::variational::encoded_rows::EncodedRows;

/// Floor of the log-likelihood of a row.
const MIN_SCORE: f64 = -1e30;
/// Number of rows per batch when rows are scored.
const SCORE_ROWS: usize = 256;

/// Log-likelihood of each row under the mixture of the draws, in standard units.
pub(crate) fn score_rows<L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    draws: &[f32],
    rows: &EncodedRows,
) -> Vec<f64> {
    let n_draws = draws.len() / spec.stack.n_weights();
    let mut gathered = Minibatch::new(SCORE_ROWS, &spec.stack);
    let mut workspace = Workspace::new(spec, SCORE_ROWS, n_draws);
    let order: Vec<usize> = (0..rows.n_rows()).collect();
    let mut scores = Vec::with_capacity(rows.n_rows());
    for chunk in until_cancelled(order.chunks(SCORE_ROWS)) {
        let batch = gathered.gather(rows, &rows.offset, chunk);
        row_scores(spec, &batch, draws, &mut workspace);
        let stride = batch.target.len();
        for at in 0..chunk.len() {
            // a row far outside the predictions of all draws overflows single precision
            let score =
                |draw: usize| f64::from(workspace.scores[draw * stride + at]).max(MIN_SCORE);
            scores.push(log_mean_exp((0..n_draws).map(score)));
        }
    }
    // only if the work is cancelled
    scores.resize(rows.n_rows(), MIN_SCORE);
    scores
}

/// Buffers for the rows of a batch; padding rows have weight 0.
pub(crate) struct Minibatch {
    inputs: Vec<f32>,
    target: Vec<f32>,
    weight: Vec<f32>,
    offset: Vec<f32>,
    width: usize,
    n_offset: usize,
}

impl Minibatch {
    /// A placeholder without buffers.
    pub(crate) fn empty() -> Self {
        Self {
            inputs: Vec::new(),
            target: Vec::new(),
            weight: Vec::new(),
            offset: Vec::new(),
            width: 0,
            n_offset: 0,
        }
    }

    pub(crate) fn new<L: TreeLayout>(max_rows: usize, stack: &AdditiveLayout<L>) -> Self {
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

    /// Copies the rows with these indices; `offset` holds the offset of all rows, row by row.
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
                for (out, value) in self.offset[at..].iter_mut().step_by(padded).zip(source) {
                    *out = *value;
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
