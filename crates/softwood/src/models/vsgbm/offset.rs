//! Output of the earlier trees, the offset of the next one, and residuals.

use crate::likelihood::soft::SoftLikelihood;
use crate::numerics::logspace::softmax;
use crate::soft::forward::{Activations, ForwardScratch, add_root, offset};
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::TreeLayout;
use crate::soft::packed::{PackedWeights, transpose};
use crate::stop::until_cancelled;
use crate::variational::encoded_rows::EncodedRows;

/// Number of rows per block.
const ROWS: usize = 256;

/// Log weights, then channels of all components, row by row, for one set of weights.
pub(super) fn predict_offset(spec: &SoftTreeSpec, weights: &[f32], rows: &EncodedRows) -> Vec<f32> {
    let stack = &spec.stack;
    let width = stack.width();
    let trees: Vec<PackedWeights> = stack
        .ranges()
        .map(|(layout, range)| PackedWeights::new(*layout, &weights[range]))
        .collect();
    let n_offset = stack.first.n_components() * (1 + stack.first.n_channels);
    let widest = stack.trees().map(TreeLayout::n_activations).max();
    let mut values = vec![0.0; widest.unwrap_or(0) * ROWS];
    let mut root_sum = vec![0.0; stack.first.n_channels * ROWS];
    let mut block = vec![0.0; n_offset * ROWS];
    let mut scratch = ForwardScratch::new(&stack.first);
    let mut added_scratch = ForwardScratch::new(&stack.added);
    let mut out = Vec::with_capacity(n_offset * rows.n_rows());
    let mut padded = vec![0.0; ROWS * width];
    for inputs in until_cancelled(rows.inputs.chunks(ROWS * width)) {
        padded[..inputs.len()].copy_from_slice(inputs);
        let transposed = transpose(&padded, width);
        root_sum.fill(0.0);
        for tree in &trees[1..] {
            let values = &mut values[..stack.added.n_activations() * ROWS];
            tree.activate(0, &transposed, values);
            let n_rows = ROWS;
            let activations = Activations { values, n_rows };
            add_root(
                &stack.added,
                spec.beta,
                activations,
                &mut added_scratch,
                &mut root_sum,
            );
        }
        let values = &mut values[..stack.first.n_activations() * ROWS];
        trees[0].activate(0, &transposed, values);
        let n_rows = ROWS;
        let activations = Activations { values, n_rows };
        offset(spec, activations, &root_sum, &mut scratch, &mut block);
        for row in 0..inputs.len() / width {
            out.extend(block[row..].iter().step_by(ROWS));
        }
    }
    // only if the work is cancelled
    out.resize(n_offset * rows.n_rows(), 0.0);
    out
}

/// Residuals, rows x outputs: target minus mean, or class indicators minus class probabilities.
/// `offset` is the output of [`predict_offset`].
pub(super) fn residuals(spec: &SoftTreeSpec, offset: &[f32], rows: &EncodedRows) -> Vec<f64> {
    let first = &spec.stack.first;
    let (n_components, n_channels) = (first.n_components(), first.n_channels);
    let mut out = Vec::with_capacity(rows.n_rows());
    let offsets = offset.chunks_exact(n_components * (1 + n_channels));
    let (mut p, mut softmaxed) = (vec![0.0; n_channels], vec![0.0; n_channels]);
    for (offset, &target) in offsets.zip(&rows.target) {
        let (weights, channels) = offset.split_at(n_components);
        let components = weights.iter().zip(channels.chunks_exact(n_channels));
        if spec.likelihood != SoftLikelihood::Categorical {
            let mean = components.map(|(&w, z)| f64::from(w).exp() * f64::from(z[0]));
            out.push(f64::from(target) - mean.sum::<f64>());
            continue;
        }
        p.fill(0.0);
        for (&weight, logits) in components {
            for (value, &logit) in softmaxed.iter_mut().zip(logits) {
                *value = f64::from(logit);
            }
            softmax(&mut softmaxed, 1);
            for (p, value) in p.iter_mut().zip(&softmaxed) {
                *p += f64::from(weight).exp() * value;
            }
        }
        let indicator = |class: usize| f64::from(u8::from(target as usize == class));
        out.extend(p.iter().enumerate().map(|(class, p)| indicator(class) - p));
    }
    out
}
