//! What the trees so far say of rows, for the tree that comes next.

use crate::numerics::logspace::softmax;
use crate::soft::forward::{Activations, ForwardScratch, add_root, offset};
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::likelihood::SoftLikelihood;
use crate::soft::packed::{PackedWeights, transpose};
use crate::variational::encoded_rows::EncodedRows;

/// Rows asked at once.
const ROWS: usize = 256;

/// Log weight and channels of every component, row by row, for one set of weights.
pub(super) fn predict_raw(spec: &SoftTreeSpec, weights: &[f32], rows: &EncodedRows) -> Vec<f32> {
    let stack = &spec.stack;
    let width = stack.width();
    let trees: Vec<PackedWeights> = stack
        .ranges()
        .map(|(layout, range)| PackedWeights::new(layout, &weights[range]))
        .collect();
    let n_raw = stack.first.n_components() * (1 + stack.first.n_channels);
    let widest = stack.trees().map(|layout| layout.n_activations()).max();
    let mut values = vec![0.0; widest.unwrap_or(0) * ROWS];
    let mut root_sum = vec![0.0; stack.first.n_channels * ROWS];
    let mut block = vec![0.0; n_raw * ROWS];
    let mut scratch = ForwardScratch::new(&stack.first);
    let mut added_scratch = ForwardScratch::new(&stack.added);
    let mut out = Vec::with_capacity(n_raw * rows.n_rows());
    let mut padded = vec![0.0; ROWS * width];
    for inputs in rows.inputs.chunks(ROWS * width) {
        padded[..inputs.len()].copy_from_slice(inputs);
        let turned = transpose(&padded, width);
        root_sum.fill(0.0);
        for tree in &trees[1..] {
            let values = &mut values[..stack.added.n_activations() * ROWS];
            tree.activate(0, &turned, values);
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
        trees[0].activate(0, &turned, values);
        let n_rows = ROWS;
        let activations = Activations { values, n_rows };
        offset(spec, activations, &root_sum, &mut scratch, &mut block);
        for row in 0..inputs.len() / width {
            out.extend(block[row..].iter().step_by(ROWS));
        }
    }
    out
}

/// What those trees leave of the targets, rows x outputs: residuals of the mean, or class indicators less their probabilities.
pub(super) fn residuals(spec: &SoftTreeSpec, predict_raw: &[f32], rows: &EncodedRows) -> Vec<f64> {
    let first = &spec.stack.first;
    let (n_components, n_channels) = (first.n_components(), first.n_channels);
    let mut out = Vec::with_capacity(rows.n_rows());
    let predict_raw = predict_raw.chunks_exact(n_components * (1 + n_channels));
    let (mut p, mut own) = (vec![0.0; n_channels], vec![0.0; n_channels]);
    for (predict_raw, &target) in predict_raw.zip(&rows.target) {
        let (weights, channels) = predict_raw.split_at(n_components);
        let components = weights.iter().zip(channels.chunks_exact(n_channels));
        if spec.likelihood != SoftLikelihood::Categorical {
            let mean = components.map(|(&w, z)| f64::from(w).exp() * f64::from(z[0]));
            out.push(f64::from(target) - mean.sum::<f64>());
            continue;
        }
        p.fill(0.0);
        for (&weight, logits) in components {
            for (own, &logit) in own.iter_mut().zip(logits) {
                *own = f64::from(logit);
            }
            softmax(&mut own, 1);
            for (p, own) in p.iter_mut().zip(&own) {
                *p += f64::from(weight).exp() * own;
            }
        }
        let indicator = |class: usize| f64::from(u8::from(target as usize == class));
        out.extend(p.iter().enumerate().map(|(class, p)| indicator(class) - p));
    }
    out
}
