//! Log-likelihood of a batch and its gradient with respect to the weights: one matrix product, the
//! fused kernel, one matrix product.

use crate::numerics::gemm::{Matrix, product, product_transposed};
use crate::numerics::real::{LANES, Real};
use crate::soft::kernel::{BlockRows, Scratch, SoftTreeSpec, gradient, gradient_f32};
use crate::soft::layout::TreeLayout;

/// Encoded rows: `inputs` is `n_rows x width` with a last column of ones. `n_rows` is a multiple of
/// [`LANES`]; padding rows have weight 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch<'a, T> {
    pub(crate) inputs: &'a [T],
    pub(crate) target: &'a [T],
    pub(crate) weight: &'a [T],
    /// Output of the first tree if it is an offset: `AdditiveLayout::n_offset` x `n_rows`.
    pub(crate) offset: &'a [T],
}

/// Workspace for one batch; allocated once per worker.
#[derive(Debug, Clone)]
pub(crate) struct Workspace<T> {
    activations: Vec<T>,
    /// Log-likelihood of each row under each draw: `n_draws x n_rows`.
    pub(crate) scores: Vec<T>,
    scratch: Scratch<T>,
}

impl<T: Real> Workspace<T> {
    /// A workspace for `max_rows` rows and `n_draws` draws.
    pub(crate) fn new<L: TreeLayout>(
        spec: &SoftTreeSpec<L>,
        max_rows: usize,
        n_draws: usize,
    ) -> Self {
        let rows = max_rows.next_multiple_of(LANES);
        Self {
            activations: vec![T::ZERO; n_draws * spec.stack.n_activations() * rows],
            scores: vec![T::ZERO; n_draws * rows],
            scratch: Scratch::new(&spec.stack),
        }
    }
}

/// Number types that the gradient can be computed in.
pub(crate) trait Kernel: Real {
    /// Replaces activations by gradients, see [`gradient`].
    fn fused<L: TreeLayout>(
        spec: &SoftTreeSpec<L>,
        rows: &mut BlockRows<'_, Self>,
        scratch: &mut Scratch<Self>,
    );
}

impl Kernel for f32 {
    fn fused<L: TreeLayout>(
        spec: &SoftTreeSpec<L>,
        rows: &mut BlockRows<'_, f32>,
        scratch: &mut Scratch<f32>,
    ) {
        gradient_f32(spec, rows, scratch);
    }
}

impl Kernel for f64 {
    fn fused<L: TreeLayout>(
        spec: &SoftTreeSpec<L>,
        rows: &mut BlockRows<'_, f64>,
        scratch: &mut Scratch<f64>,
    ) {
        gradient(spec, rows, scratch);
    }
}

/// Weighted log-likelihood of the batch, summed over draws. Writes the gradient of each draw.
///
/// `weights` and `gradients` hold the draws one after the other, `n_weights` values each.
pub(crate) fn log_likelihood<T: Kernel, L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    batch: &Batch<'_, T>,
    weights: &[T],
    gradients: &mut [T],
    workspace: &mut Workspace<T>,
) -> f64 {
    let n_rows = batch.target.len();
    row_scores(spec, batch, weights, workspace);
    weight_gradients(
        spec,
        Matrix::new(batch.inputs, n_rows, spec.stack.width()),
        &workspace.activations,
        gradients,
    );
    let n_draws = weights.len() / spec.stack.n_weights();
    let scores = workspace.scores[..n_draws * n_rows].chunks_exact(n_rows);
    let weighted_sum = |scores: &[T]| {
        scores
            .iter()
            .zip(batch.weight)
            .map(|(s, w)| s.wide() * w.wide())
            .sum::<f64>()
    };
    scores.map(weighted_sum).sum()
}

/// Writes the log-likelihood of each row under each draw to `workspace.scores`.
pub(crate) fn row_scores<T: Kernel, L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    batch: &Batch<'_, T>,
    weights: &[T],
    workspace: &mut Workspace<T>,
) {
    let n_rows = batch.target.len();
    let size = spec.stack.n_activations() * n_rows;
    activate(
        spec,
        Matrix::new(batch.inputs, n_rows, spec.stack.width()),
        weights,
        &mut workspace.activations,
    );
    let n_draws = weights.len() / spec.stack.n_weights();
    let draws = workspace.activations[..n_draws * size].chunks_exact_mut(size);
    for (activations, scores) in draws.zip(workspace.scores.chunks_exact_mut(n_rows)) {
        let mut rows = BlockRows {
            activations,
            target: batch.target,
            weight: batch.weight,
            offset: batch.offset,
            scores,
        };
        T::fused(spec, &mut rows, &mut workspace.scratch);
    }
}

/// Activations of every draw: `n_activations x n_rows` each. With linear leaves one product
/// computes those of all draws and trees.
fn activate<T: Real, L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    inputs: Matrix<'_, T>,
    weights: &[T],
    out: &mut [T],
) {
    let stack = &spec.stack;
    let n_rows = inputs.rows();
    let width = stack.width();
    if stack.is_linear() {
        let n_products = weights.len() / width;
        product_transposed(out, Matrix::new(weights, n_products, width), inputs);
        return;
    }
    let mut out = out;
    for draw in weights.chunks_exact(stack.n_weights()) {
        for (layout, range) in stack.ranges() {
            let (activations, remaining) = out.split_at_mut(layout.n_activations() * n_rows);
            let (products, constants) = draw[range].split_at(layout.n_products() * width);
            product_transposed(
                activations,
                Matrix::new(products, layout.n_products(), width),
                inputs,
            );
            let rows = activations[layout.n_products() * n_rows..].chunks_exact_mut(n_rows);
            for (constant, row) in constants.iter().zip(rows) {
                row.fill(*constant);
            }
            out = remaining;
        }
    }
}

/// Gradients of the weights from gradients of the activations.
fn weight_gradients<T: Real, L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    inputs: Matrix<'_, T>,
    activations: &[T],
    gradients: &mut [T],
) {
    let stack = &spec.stack;
    let n_rows = inputs.rows();
    let width = stack.width();
    if stack.is_linear() {
        let n_products = gradients.len() / width;
        product(
            gradients,
            Matrix::new(activations, n_products, n_rows),
            inputs,
        );
        return;
    }
    let mut activations = activations;
    for draw in gradients.chunks_exact_mut(stack.n_weights()) {
        for (layout, range) in stack.ranges() {
            let (gradient, remaining) = activations.split_at(layout.n_activations() * n_rows);
            let (products, constants) = draw[range].split_at_mut(layout.n_products() * width);
            product(
                products,
                Matrix::new(gradient, layout.n_products(), n_rows),
                inputs,
            );
            let rows = gradient[layout.n_products() * n_rows..].chunks_exact(n_rows);
            for (constant, row) in constants.iter_mut().zip(rows) {
                *constant = row.iter().fold(T::ZERO, |sum, &value| sum + value);
            }
            activations = remaining;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood::soft::SoftLikelihood;
    use crate::rng::{Key, uniform};
    use crate::soft::additive::AdditiveLayout;
    use crate::soft::layout::Layout;
    use softwood_testkit::{central_difference, close};

    fn check(stack: AdditiveLayout, likelihood: SoftLikelihood, beta: f64) {
        let spec = SoftTreeSpec {
            stack,
            likelihood,
            beta,
        };
        let layout = stack.first;
        let mut rng = Key::from_seed(5).child(stack.n_weights() as u64).rng();
        let n_rows = LANES;
        let mut inputs: Vec<f64> = (0..n_rows * layout.width())
            .map(|_| 4.0 * uniform(&mut rng) - 2.0)
            .collect();
        for row in inputs.chunks_exact_mut(layout.width()) {
            row[layout.n_inputs] = 1.0;
        }
        let is_class = likelihood == SoftLikelihood::Categorical;
        let target: Vec<f64> = (0..n_rows)
            .map(|row| {
                if is_class {
                    (row % layout.n_channels) as f64
                } else {
                    3.0 * uniform(&mut rng) - 1.5
                }
            })
            .collect();
        let weight: Vec<f64> = (0..n_rows)
            .map(|row| if row < 11 { uniform(&mut rng) } else { 0.0 })
            .collect();
        let weights: Vec<f64> = (0..2 * stack.n_weights())
            .map(|_| 2.0 * uniform(&mut rng) - 1.0)
            .collect();
        let offset: Vec<f64> = (0..stack.n_offset() * n_rows)
            .map(|_| uniform(&mut rng) - 1.0)
            .collect();
        let batch = Batch {
            inputs: &inputs,
            target: &target,
            weight: &weight,
            offset: &offset,
        };
        let value = |theta: &[f64]| {
            let mut workspace = Workspace::new(&spec, n_rows, 2);
            log_likelihood(
                &spec,
                &batch,
                theta,
                &mut vec![0.0; theta.len()],
                &mut workspace,
            )
        };
        let mut gradients = vec![0.0; weights.len()];
        let mut workspace = Workspace::new(&spec, n_rows, 2);
        log_likelihood(&spec, &batch, &weights, &mut gradients, &mut workspace);
        // the third derivative, and so the error of a central difference, grows with the number of
        // trees
        let tolerance = if stack.n_added == 0 { 2e-8 } else { 1e-7 };
        close(&gradients, &central_difference(value, &weights), tolerance);
    }

    #[test]
    fn gradients_agree_with_differences_for_every_leaf_mixing_and_task() {
        let likelihoods = [
            (2, SoftLikelihood::Normal { floor: 1e-3 }),
            (2, SoftLikelihood::KnownNoise { sd: 0.7 }),
            (1, SoftLikelihood::KnownNoise { sd: 0.7 }),
            (2, SoftLikelihood::Categorical),
            (4, SoftLikelihood::Categorical),
        ];
        for (n_channels, likelihood) in likelihoods {
            for (depth, mixing_levels) in [(0, 0), (1, 0), (1, 1), (3, 0), (3, 1), (3, 2), (3, 3)] {
                for is_linear in [false, true] {
                    let first = Layout {
                        n_inputs: 3,
                        depth,
                        mixing_levels,
                        n_channels,
                        is_linear,
                    };
                    check(AdditiveLayout::single(first), likelihood, 1.7);
                    let added = Layout {
                        depth: 2,
                        mixing_levels: 0,
                        ..first
                    };
                    let stack = AdditiveLayout::on_offset(first, added);
                    check(stack, likelihood, 1.7);
                    check(AdditiveLayout::at_node(first, added), likelihood, 1.7);
                    let (has_offset, n_added) = (false, 3);
                    let sum = AdditiveLayout {
                        has_offset,
                        n_added,
                        ..stack
                    };
                    check(sum, likelihood, 1.7);
                }
            }
        }
    }

    /// Golden value 2 of the fact sheet: a tree of depth 1.
    #[test]
    fn a_tree_of_depth_one_has_the_golden_likelihood_and_gradient() {
        let layout = Layout {
            n_inputs: 2,
            depth: 1,
            mixing_levels: 1,
            n_channels: 2,
            is_linear: false,
        };
        let spec = SoftTreeSpec {
            stack: AdditiveLayout::single(layout),
            likelihood: SoftLikelihood::Normal { floor: 0.0 },
            beta: 2.0,
        };
        let raw = |s: f64| s.exp_m1().ln();
        let weights = [0.5, 0.25, 0.1, -1.0, 2.0, raw(0.5), raw(1.0)];
        let mut inputs = vec![0.0; LANES * 3];
        inputs[..3].copy_from_slice(&[1.0, -2.0, 1.0]);
        let mut weight = vec![0.0; LANES];
        weight[0] = 1.0;
        let target = vec![0.7; LANES];
        let batch = Batch {
            inputs: &inputs,
            target: &target,
            weight: &weight,
            offset: &[],
        };
        let mut gradients = [0.0; 7];
        let mut workspace = Workspace::new(&spec, LANES, 1);
        let value = log_likelihood(&spec, &batch, &weights, &mut gradients, &mut workspace);
        close(&[value], &[-2.350_372_075_0], 1e-10);
        // derivative of softplus at the raw scale of a standard deviation `s`
        let d_soft = |s: f64| -(-s).exp_m1();
        let expected = [
            0.877_057_831_9,
            -1.754_115_663_7,
            0.877_057_831_9,
            0.079_132_189_9,
            -1.284_871_787_2,
            0.245_775_272_2 * d_soft(0.5),
            0.681_970_410_1 * d_soft(1.0),
        ];
        close(&gradients, &expected, 1e-9);
    }

    #[test]
    fn single_precision_agrees_with_double() {
        let layout = Layout {
            n_inputs: 6,
            depth: 4,
            mixing_levels: 2,
            n_channels: 2,
            is_linear: true,
        };
        let spec = SoftTreeSpec {
            stack: AdditiveLayout::single(layout),
            likelihood: SoftLikelihood::Normal { floor: 1e-3 },
            beta: 1.0,
        };
        let mut rng = Key::from_seed(9).rng();
        let n_rows = 48;
        let mut draw = |len: usize| {
            (0..len)
                .map(|_| 2.0 * uniform(&mut rng) - 1.0)
                .collect::<Vec<f64>>()
        };
        let (inputs, target, weights) = (
            draw(n_rows * layout.width()),
            draw(n_rows),
            draw(layout.n_weights()),
        );
        let weight = vec![1.0; n_rows];
        let narrow = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
        let mut wide_gradients = vec![0.0; weights.len()];
        let batch = Batch {
            inputs: &inputs,
            target: &target,
            weight: &weight,
            offset: &[],
        };
        let exact = log_likelihood(
            &spec,
            &batch,
            &weights,
            &mut wide_gradients,
            &mut Workspace::new(&spec, n_rows, 1),
        );
        let mut gradients = vec![0.0_f32; weights.len()];
        let (inputs, target, weight, weights) = (
            narrow(&inputs),
            narrow(&target),
            narrow(&weight),
            narrow(&weights),
        );
        let batch = Batch {
            inputs: &inputs,
            target: &target,
            weight: &weight,
            offset: &[],
        };
        let found = log_likelihood(
            &spec,
            &batch,
            &weights,
            &mut gradients,
            &mut Workspace::new(&spec, n_rows, 1),
        );
        close(&[found], &[exact], 1e-5);
        close(
            &gradients.iter().map(|&g| f64::from(g)).collect::<Vec<_>>(),
            &wide_gradients,
            2e-4,
        );
    }
}
