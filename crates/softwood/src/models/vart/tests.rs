//! Tests of the model: gradients, mixture weights, skipped subtrees, and the published estimate of
//! the KL divergence.

use crate::inference::lowrank_gaussian::{LossScale, LowRank, Sampler};
use crate::inference::objective::Objective;
use crate::likelihood::soft::SoftLikelihood;
use crate::models::vart::objective::{Temperatures, VartObjective, VartSettings};
use crate::models::vart::relaxed_kl::RelaxedKl;
use crate::models::vart::spec::VartSpec;
use crate::models::vart::structure_kl::SplitPrior;
use crate::numerics::gaussian::Gaussian;
use crate::numerics::real::LANES;
use crate::rng::{Key, uniform};
use crate::soft::forward::{Activations, Components, ForwardScratch, components};
use crate::soft::general_layout::LeafShape;
use crate::soft::layout::TreeLayout;
use crate::soft::packed::{PackedWeights, transpose};
use crate::soft::stopping_tree::StoppingTree;
use crate::soft::stopping_weights::NodeShape;
use crate::soft::tree::{Batch, Workspace, log_likelihood};
use crate::variational::encoded_rows::EncodedRows;
use softwood_testkit::{central_difference, close};

const PRIOR: SplitPrior = SplitPrior {
    base: 0.9,
    power: 1.0,
};

/// Relative learning rate of the logits.
const SPLIT_RATE: f32 = 3.0;

fn random(len: usize, scale: f64, key: Key) -> Vec<f64> {
    let mut rng = key.rng();
    (0..len)
        .map(|_| scale * (2.0 * uniform(&mut rng) - 1.0))
        .collect()
}

/// A tree in which nodes 0, 1, 2 and 4 of a heap may split, on three inputs.
fn spec(likelihood: SoftLikelihood, mixing_levels: usize, has_constant_scale: bool) -> VartSpec {
    let (tree, _) = StoppingTree::of_heap(|node| [0, 1, 2, 4].contains(&node));
    let n_channels = if likelihood == SoftLikelihood::Categorical {
        3
    } else {
        2
    };
    VartSpec {
        added: StoppingTree::of_heap(|node| node < 3).0,
        first: tree,
        n_added: 0,
        shape: NodeShape {
            leaf: LeafShape {
                n_inputs: 3,
                n_channels,
                is_linear: true,
            },
            has_constant_scale,
        },
        mixing_levels,
        likelihood,
        beta: 1.3,
    }
}

/// Log-likelihood and gradient with respect to weights and stop logits, in double precision.
fn value_and_gradient(spec: &VartSpec, parameters: &[f64]) -> (f64, Vec<f64>) {
    let n_weights = spec.n_weights();
    let (weights, stop_logits) = parameters.split_at(n_weights);
    let n_rows = LANES;
    let width = spec.shape.rule_size();
    let key = Key::from_seed(17);
    let mut inputs = random(n_rows * width, 2.0, key.child(1));
    for row in inputs.chunks_exact_mut(width) {
        row[width - 1] = 1.0;
    }
    let is_class = spec.likelihood == SoftLikelihood::Categorical;
    let target = if is_class {
        (0..n_rows).map(|row| (row % 3) as f64).collect()
    } else {
        random(n_rows, 1.5, key.child(2))
    };
    let batch = Batch {
        inputs: &inputs,
        target: &target,
        weight: &vec![0.7; n_rows],
        offset: &[],
    };
    let active = spec.active(|_| true);
    let n_kernel = active.kernel.stack.n_weights();
    let (mut kernel, mut kernel_gradient) = (vec![0.0; n_kernel], vec![0.0; n_kernel]);
    active.expand(spec, weights, stop_logits, &mut kernel);
    let mut workspace = Workspace::new(&active.kernel, n_rows, 1);
    let value = log_likelihood(
        &active.kernel,
        &batch,
        &kernel,
        &mut kernel_gradient,
        &mut workspace,
    );
    let mut gradient = vec![0.0; n_weights];
    let mut stop_gradient = vec![0.0; stop_logits.len()];
    active.collect(spec, &kernel_gradient, &mut gradient, &mut stop_gradient);
    gradient.extend(stop_gradient);
    (value, gradient)
}

#[test]
fn gradients_of_rules_leaves_and_logits_agree_with_differences() {
    let normal = SoftLikelihood::Normal { floor: 1e-3 };
    for (likelihood, has_constant_scale) in [
        (normal, false),
        (normal, true),
        (SoftLikelihood::KnownNoise { sd: 0.6 }, false),
        (SoftLikelihood::Categorical, false),
    ] {
        for (mixing_levels, n_added) in [(0, 0), (1, 0), (3, 0), (0, 2)] {
            let spec = VartSpec {
                n_added,
                ..spec(likelihood, mixing_levels, has_constant_scale)
            };
            let n_parameters = spec.n_weights() + spec.n_logits();
            let parameters = random(n_parameters, 1.0, Key::from_seed(4));
            let (_, gradient) = value_and_gradient(&spec, &parameters);
            let value = |parameters: &[f64]| value_and_gradient(&spec, parameters).0;
            close(&gradient, &central_difference(value, &parameters), 1e-7);
        }
    }
}

/// The weights of the components of a mixture of all leaves.
#[test]
fn mixture_weights_sum_to_one_for_any_indicators() {
    let spec = spec(SoftLikelihood::Normal { floor: 1e-3 }, 3, false);
    let active = spec.active(|_| true);
    let layout = &active.kernel.stack.first;
    assert_eq!(layout.n_components(), spec.first.n_nodes());
    let narrow = |values: Vec<f64>| values.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
    for seed in 0..20 {
        let key = Key::from_seed(seed);
        let weights = narrow(random(spec.n_weights(), 2.0, key.child(0)));
        let logits = narrow(random(spec.n_logits(), 8.0, key.child(1)));
        let inputs = narrow(random(LANES * layout.width(), 3.0, key.child(2)));
        let mut kernel = vec![0.0; layout.n_weights()];
        active.expand(&spec, &weights, &logits, &mut kernel);
        let packed = PackedWeights::new(layout.clone(), &kernel);
        let mut activations = vec![0.0; layout.n_activations() * LANES];
        packed.activate(0, &transpose(&inputs, layout.width()), &mut activations);
        let n = layout.n_components() * LANES;
        let (mut weight, mut mean, mut sd) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let activations = Activations {
            values: &activations,
            n_rows: LANES,
        };
        let mut out = Components {
            weight: &mut weight,
            mean: &mut mean,
            sd: &mut sd,
            stride: LANES,
        };
        let mut scratch = ForwardScratch::new(layout);
        components(&active.kernel, activations, &[], &mut scratch, &mut out);
        for row in 0..LANES {
            let sum: f64 = weight.iter().skip(row).step_by(LANES).sum();
            close(&[sum], &[1.0], 1e-5);
        }
    }
}

/// Rows with a target near a step function.
fn rows(n_rows: usize, n_inputs: usize) -> EncodedRows {
    let width = n_inputs + 1;
    let mut inputs = random(n_rows * width, 1.7, Key::from_seed(8));
    let mut target = Vec::with_capacity(n_rows);
    for row in inputs.chunks_exact_mut(width) {
        row[n_inputs] = 1.0;
        let step = if row[0] > 0.2 { 1.0 } else { -1.0 };
        target.push((step + 0.1 * row[1]) as f32);
    }
    EncodedRows {
        inputs: std::sync::Arc::new(inputs.iter().map(|&x| x as f32).collect()),
        target,
        weight: vec![1.0; n_rows],
        total_weight: n_rows as f64,
        offset: Vec::new(),
    }
}

fn settings(spec: VartSpec, logits: Vec<f32>) -> VartSettings {
    VartSettings {
        spec,
        logits,
        prior: PRIOR,
        temperatures: Temperatures {
            first: 0.1,
            last: 0.1,
        },
        n_epochs: 1,
        batch_size: 256,
        n_draws: 2,
        split_rate: SPLIT_RATE,
        has_relaxed_kl: false,
    }
}

/// A complete tree of depth 7 whose nodes mostly do not split, or are not reached.
#[test]
fn skipped_subtrees_change_the_likelihood_and_its_gradient_by_less_than_the_bound() {
    let (tree, _) = StoppingTree::of_heap(|node| node < 127);
    let rows = rows(256, 3);
    let order: Vec<usize> = (0..256).collect();
    // logits below which hardly a node splits, and biases that send all rows to the right
    for (logit, bias) in [(-1.0, 0.0), (6.0, 20.0)] {
        for mixing_levels in [0, 2, 10] {
            let spec = VartSpec {
                added: tree.clone(),
                first: tree.clone(),
                ..spec(SoftLikelihood::Normal { floor: 1e-3 }, mixing_levels, false)
            };
            let n_weights = spec.n_weights();
            let mut draws: Vec<f32> = random(2 * n_weights, 0.5, Key::from_seed(2))
                .into_iter()
                .map(|x| x as f32)
                .collect();
            for draw in draws.chunks_exact_mut(n_weights) {
                for node in 0..spec.first.n_splits() {
                    draw[spec.shape.rule(node).end - 1] += bias;
                }
            }
            let evaluate = |skips: bool| {
                let settings = settings(spec.clone(), vec![logit; spec.n_logits()]);
                let objective = VartObjective::new(settings, &rows, None, Key::from_seed(1));
                let mut objective = if skips {
                    objective
                } else {
                    objective.without_skipping()
                };
                let mut gradients = vec![0.0; 2 * n_weights];
                let value = objective.log_likelihood(&order, &draws, &mut gradients);
                gradients.extend_from_slice(objective.logit_gradient());
                (value, gradients, objective.n_skipped())
            };
            let (plain, plain_gradients, _) = evaluate(false);
            let (skipped, skipped_gradients, n_skipped) = evaluate(true);
            assert!(n_skipped > 20, "{logit} {mixing_levels}: {n_skipped}");
            // 512 rows and draws, up to 127 nodes of at most 1e-6 each, and changes of the log
            // density per channel of the order of 1; the rest is the rounding of the sum
            let error = (plain - skipped).abs() / plain.abs();
            assert!(error < 2e-6, "{logit} {mixing_levels}: {error}");
            let largest = plain_gradients
                .iter()
                .fold(0.0_f32, |largest, gradient| largest.max(gradient.abs()));
            for (plain, skipped) in plain_gradients.iter().zip(&skipped_gradients) {
                let error = (plain - skipped).abs() / largest;
                assert!(error < 2e-5, "{logit} {mixing_levels}: {plain} {skipped}");
            }
        }
    }
}

/// With the noise of the indicators fixed by the key, the loss is a function of the logits.
#[test]
fn the_gradient_of_the_logits_agrees_with_differences_of_the_loss() {
    let spec = spec(SoftLikelihood::Normal { floor: 1e-3 }, 1, false);
    let rows = rows(64, 3);
    let order: Vec<usize> = (0..64).collect();
    let n_weights = spec.n_weights();
    let narrow = |values: Vec<f64>| values.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
    let draws = narrow(random(2 * n_weights, 0.7, Key::from_seed(6)));
    let posterior = LowRank::initial(draws[..n_weights].to_vec(), 2, 0.5, Key::from_seed(7));
    let posterior = posterior.with_blocks(spec.block_ends());
    let precision = vec![4.0; n_weights];
    let scale = LossScale {
        likelihood: 0.3,
        kl: 0.02,
    };
    let logits = [0.4_f32, -0.7, 1.1, 0.2];
    let objective = |logits: &[f32]| {
        let settings = VartSettings {
            temperatures: Temperatures {
                first: 0.7,
                last: 0.7,
            },
            ..settings(spec.clone(), logits.to_vec())
        };
        let mut objective = VartObjective::new(settings, &rows, None, Key::from_seed(1));
        let mut gradients = vec![0.0; 2 * n_weights];
        let value = objective.log_likelihood(&order, &draws, &mut gradients);
        (objective, value)
    };
    let loss = |logits: &[f32]| {
        let (objective, value) = objective(logits);
        let kl = objective.kl(&posterior, &precision);
        f64::from(scale.kl) * kl - f64::from(scale.likelihood) * value
    };
    let mut gradient = vec![0.0; logits.len()];
    let (start, _) = objective(&logits);
    start.parameter_gradient(&posterior, &precision, scale, &mut gradient);
    let step = 1.0 / 64.0;
    for at in 0..logits.len() {
        let moved = |step: f32| {
            let mut logits = logits;
            logits[at] += step;
            loss(&logits)
        };
        let difference = (moved(step) - moved(-step)) / (2.0 * f64::from(step));
        // single precision: the loss is of the order of 100
        close(
            &[f64::from(gradient[at] / SPLIT_RATE)],
            &[difference],
            5e-3 * difference.abs().max(1.0),
        );
    }
}

/// With fixed relaxed indicators and Normal numbers, the estimate is a function of means, logarithms
/// of standard deviations and logits.
#[test]
fn the_gradient_of_the_published_estimate_agrees_with_differences() {
    let spec = spec(SoftLikelihood::Normal { floor: 1e-3 }, 0, true);
    let (n, n_logits) = (spec.n_weights(), spec.n_logits());
    let values: Vec<f32> = random(2 * n, 0.6, Key::from_seed(5))
        .into_iter()
        .map(|x| x as f32)
        .collect();
    let posterior = |values: &[f32]| LowRank {
        n_weights: n,
        rank: 0,
        values: values.to_vec(),
        block_ends: spec.block_ends(),
    };
    let precision: Vec<f32> = (0..n).map(|i| 0.5 + i as f32 / 50.0).collect();
    let logits = [0.4_f32, -0.7, 1.1, 0.2];
    let noise = [0.3_f32, -0.5, 0.1, 0.9, -0.3, 0.5, -0.1, -0.9];
    let temperature = 0.8;
    let estimate = |values: &[f32], logits: &[f32]| {
        let posterior = posterior(values);
        let mut sampler = Sampler::new(&posterior, 2);
        sampler.draw(&posterior, &mut Gaussian::new(Key::from_seed(1)));
        let relaxed: Vec<f32> = (0..2 * n_logits)
            .map(|at| (logits[at % n_logits] + noise[at]) / temperature as f32)
            .collect();
        (posterior, sampler, relaxed)
    };
    let value = |values: &[f32], logits: &[f32]| {
        let (posterior, sampler, relaxed) = estimate(values, logits);
        let kl = RelaxedKl {
            spec: &spec,
            prior: PRIOR,
            logits,
            relaxed: &relaxed,
            draws: &sampler.draws,
            temperature,
        };
        kl.value(&posterior, &precision)
    };
    let (start, mut sampler, relaxed) = estimate(&values, &logits);
    let kl = RelaxedKl {
        spec: &spec,
        prior: PRIOR,
        logits: &logits,
        relaxed: &relaxed,
        draws: &sampler.draws.clone(),
        temperature,
    };
    let step = 1.0 / 256.0;
    let logit_gradient = kl.logit_gradient(&start, &precision);
    for at in 0..n_logits {
        let moved = |step: f32| {
            let mut logits = logits;
            logits[at] += step;
            value(&values, &logits)
        };
        let difference = (moved(step) - moved(-step)) / (2.0 * f64::from(step));
        close(&[logit_gradient[at]], &[difference], 2e-3);
    }
    // the closed form, whose gradient is replaced
    let mut block_weights = vec![0.0; start.n_blocks()];
    let ranges = spec.trees().next().unwrap();
    ranges.posterior(&logits).block_weights(&mut block_weights);
    let scale = LossScale {
        likelihood: 0.0,
        kl: 1.0,
    };
    sampler.loss_gradient(&start, &vec![0.0; 2 * n], &precision, &block_weights, scale);
    let mut gradient = sampler.gradient.clone();
    kl.replace_weight_gradient(&start, &precision, 1.0, &mut gradient);
    for at in (0..2 * n).step_by(7) {
        let moved = |step: f32| {
            let mut values = values.clone();
            values[at] += step;
            value(&values, &logits)
        };
        let difference = (moved(step) - moved(-step)) / (2.0 * f64::from(step));
        close(&[f64::from(gradient[at])], &[difference], 2e-3);
    }
}
