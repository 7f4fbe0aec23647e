//! Tests of the network: golden values, gradients against central differences, entropy terms
//! against their definition.

use softwood_testkit::{central_difference, close};

use crate::gaussian_process::hyperparameters::{
    EstimationProblem, FixedHyperparameters, HyperSpace, MODEL_PRIOR,
};
use crate::gaussian_process::kernel::KernelShape;
use crate::gaussian_process::noise_levels::{LevelProblem, LevelShares};
use crate::gaussian_process::points::{Points, TargetRows};
use crate::numerics::real::{LANES, Lanes};
use crate::recurrent::imitation::{TargetSplit, imitate};
use crate::recurrent::network::NetworkShape;
use crate::recurrent::node_splits::{RecurrentUnit, node_splits};
use crate::recurrent::objective::{
    BatchRows, EntropyTerms, LeafScores, RouteObjective, ScoreTerms,
};
use crate::recurrent::routes::probabilities;
use crate::recurrent::scale_leaves::{RouteProbabilities, ScaleLeaves};
use crate::recurrent::unroll::{BLOCK, Sharpness};
use crate::rng::Key;

const SHAPE: NetworkShape = NetworkShape {
    n_inputs: 3,
    n_hidden: 5,
    depth: 3,
};
/// Sharpness of the decisions.
const SHARPNESS: [Sharpness; 2] = [
    Sharpness::PUBLISHED,
    Sharpness {
        share: 1.5,
        threshold: 0.7,
        decision: 4.0,
    },
];
const ELBO: EntropyTerms = EntropyTerms {
    kl_weight: 1.0,
    row_sign: 1.0,
};

/// Leaf scores that are linear in the target, so that every leaf has another one.
struct LinearScores {
    n_leaves: usize,
    target: Vec<f64>,
    observed: Vec<f64>,
}

impl LeafScores<f64> for LinearScores {
    fn scores(&self, at: usize, out: &mut [Lanes<f64>]) {
        for (leaf, score) in out.iter_mut().enumerate() {
            for lane in 0..LANES {
                let slope = leaf as f64 / self.n_leaves as f64 - 0.4;
                score[lane] = slope * self.target[at + lane] - 0.1 * (leaf % 3) as f64;
            }
        }
    }

    fn observe(&mut self, _: usize, probability: &[Lanes<f64>]) {
        for (sum, p) in self.observed.iter_mut().zip(probability) {
            *sum += p.iter().sum::<f64>();
        }
    }
}

struct RouteProblem {
    inputs: Vec<f64>,
    weight: Vec<f64>,
    noise: Vec<f64>,
    target: Vec<f64>,
}

impl RouteProblem {
    /// Two blocks, the second of which has padding rows.
    fn new(shape: &NetworkShape) -> Self {
        let (n_rows, n) = (BLOCK + 20, 2 * BLOCK);
        let key = Key::from_seed(3);
        let centred = |label: u64, len: usize, width: f64| -> Vec<f64> {
            let draws = key.child(label).uniforms(len);
            draws.iter().map(|u| width * (u - 0.5)).collect()
        };
        let mut weight: Vec<f64> = key.child(4).uniforms(n).iter().map(|u| 0.5 + u).collect();
        weight[n_rows..].fill(0.0);
        Self {
            inputs: centred(1, shape.n_inputs * n, 3.0),
            noise: centred(2, shape.depth * n, 1.0),
            target: centred(3, n, 4.0),
            weight,
        }
    }

    fn rows(&self) -> BatchRows<'_, f64> {
        BatchRows {
            inputs: &self.inputs,
            weight: &self.weight,
            noise: &self.noise,
        }
    }

    fn evaluate(&self, weights: &[f64], terms: EntropyTerms) -> (f64, Vec<f64>, Vec<f64>) {
        self.evaluate_sharp(weights, terms, Sharpness::PUBLISHED)
    }

    fn evaluate_sharp(
        &self,
        weights: &[f64],
        terms: EntropyTerms,
        sharpness: Sharpness,
    ) -> (f64, Vec<f64>, Vec<f64>) {
        let n_leaves = SHAPE.n_leaves();
        let mut objective = RouteObjective::new(SHAPE, self.weight.len(), terms, sharpness);
        let mut leaves = LinearScores {
            n_leaves,
            target: self.target.clone(),
            observed: vec![0.0; n_leaves],
        };
        let mut gradient = vec![0.0; weights.len()];
        let value = objective.evaluate(weights, &self.rows(), &mut leaves, &mut gradient);
        close(&leaves.observed, &objective.occupancy(), 1e-9);
        (value, gradient, leaves.observed)
    }
}

fn weights(shape: &NetworkShape) -> Vec<f64> {
    let weights = shape.random_weights(2.0, Key::from_seed(1));
    weights.iter().map(|&w| f64::from(w)).collect()
}

/// FACTS 17.7: one hidden unit.
#[test]
fn the_recurrent_unit_has_its_golden_value() {
    let unit = RecurrentUnit {
        n_hidden: 1,
        decision_weights: vec![0.5, -0.4, 0.8],
        decision_bias: vec![0.1, 0.0, -0.1],
        state_weights: vec![0.3, 0.6, -0.7],
        state_bias: vec![0.05, -0.05, 0.2],
    };
    close(&unit.next(&[-0.2], 0.3), &[0.096_747_410_7], 1e-10);
}

#[test]
fn gradients_agree_with_central_differences() {
    let problem = RouteProblem::new(&SHAPE);
    let weights = weights(&SHAPE);
    let other = EntropyTerms {
        kl_weight: 0.7,
        row_sign: -1.0,
    };
    for (terms, sharpness) in [ELBO, other].into_iter().zip(SHARPNESS) {
        let (_, gradient, _) = problem.evaluate_sharp(&weights, terms, sharpness);
        for at in 0..weights.len() {
            let shifted = |step: f64| {
                let mut weights = weights.clone();
                weights[at] += step;
                problem.evaluate_sharp(&weights, terms, sharpness).0
            };
            let difference = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
            let error = (gradient[at] - difference).abs();
            assert!(
                error < 1e-6 * (1.0 + difference.abs()),
                "{at}: {} {difference}",
                gradient[at]
            );
        }
    }
}

/// [`LinearScores`] are sums of two terms, 1 and the target.
#[test]
fn scores_of_few_terms_give_the_same_gradient() {
    let problem = RouteProblem::new(&SHAPE);
    let weights = weights(&SHAPE);
    let (value, gradient, observed) = problem.evaluate(&weights, ELBO);
    let n_leaves = SHAPE.n_leaves();
    let of_leaf = |leaf: usize| {
        let slope = leaf as f64 / n_leaves as f64 - 0.4;
        [-0.1 * (leaf % 3) as f64, slope]
    };
    let coefficients: Vec<f64> = (0..n_leaves).flat_map(of_leaf).collect();
    let terms = ScoreTerms {
        coefficients: &coefficients,
        values: &problem.target,
    };
    let n_rows = problem.weight.len();
    let mut objective = RouteObjective::new(SHAPE, n_rows, ELBO, Sharpness::PUBLISHED);
    let mut of_terms = vec![0.0; weights.len()];
    let found = objective.evaluate_terms(&weights, &problem.rows(), terms, &mut of_terms);
    close(&[found], &[value], 1e-9 * value.abs());
    close(&of_terms, &gradient, 1e-9);
    let (counts, targets) = objective.term_sums().split_at(n_leaves);
    close(counts, &observed, 1e-9);
    let weighted = problem.weight.iter().zip(&problem.target);
    let total: f64 = weighted.map(|(weight, target)| weight * target).sum();
    close(&[targets.iter().sum::<f64>()], &[total], 1e-9);
}

/// The KL divergence of the definition, with one term per node.
#[test]
fn the_divergence_is_the_sum_over_all_nodes() {
    let problem = RouteProblem::new(&SHAPE);
    let weights = weights(&SHAPE);
    let value = |kl_weight: f64, row_sign: f64| {
        let terms = EntropyTerms {
            kl_weight,
            row_sign,
        };
        problem.evaluate(&weights, terms).0
    };
    // the row terms cancel in the mean over both signs
    let aggregate = value(0.0, 1.0) - 0.5 * (value(1.0, 1.0) + value(1.0, -1.0));
    let (_, _, leaves) = problem.evaluate(&weights, ELBO);
    let total: f64 = leaves.iter().sum();
    let entropy = |q: f64| -q * q.ln() - (1.0 - q) * (1.0 - q).ln();
    let mut expected = total * 3.0 * f64::ln(2.0);
    for level in 0..SHAPE.depth {
        let width = SHAPE.n_leaves() >> level;
        for node in leaves.chunks_exact(width) {
            let (n, right) = (
                node.iter().sum::<f64>(),
                node[width / 2..].iter().sum::<f64>(),
            );
            expected -= n * entropy(right / n);
        }
    }
    close(&[aggregate], &[expected], 1e-9 * expected.abs());
}

/// A network whose root splits on the first input at zero, whatever the state is.
fn constant_split(bias: f64, slope: f64) -> Vec<f64> {
    let mut weights = vec![0.0; SHAPE.n_weights()];
    let heads = SHAPE.head_bias();
    weights[heads.start] = 60.0;
    weights[heads.start + SHAPE.n_inputs] = bias;
    weights[heads.start + 2 * SHAPE.n_inputs] = slope;
    weights
}

/// The divergence of a confident tree with `b` balanced levels of `D` is `W (D - b) ln 2`.
#[test]
fn a_confident_tree_pays_for_unbalanced_levels_alone() {
    let mut problem = RouteProblem::new(&SHAPE);
    // one half of the weight on either side of zero
    problem.weight.fill(0.0);
    problem.weight[..40].fill(1.0);
    for (row, x) in problem.inputs[..40].iter_mut().enumerate() {
        *x = if row % 2 == 0 { -1.0 } else { 1.0 };
    }
    let divergence = |weights: &[f64]| {
        let without = EntropyTerms {
            kl_weight: 0.0,
            row_sign: 1.0,
        };
        problem.evaluate(weights, without).0 - problem.evaluate(weights, ELBO).0
    };
    // all rows go right at every level
    let all_right = divergence(&constant_split(50.0, 0.0));
    close(&[all_right], &[40.0 * 3.0 * f64::ln(2.0)], 0.01);
    // the first level is balanced, and the others repeat its decision
    let repeated = divergence(&constant_split(0.0, 50.0));
    close(&[repeated], &[40.0 * 2.0 * f64::ln(2.0)], 0.01);
    // the prior of counts is not normalised over rows, so undecided rows earn `ln 2` per level
    let undecided = divergence(&constant_split(0.0, 0.0));
    close(&[undecided], &[-40.0 * 3.0 * f64::ln(2.0)], 1e-6);
}

#[test]
fn leaf_probabilities_sum_to_one() {
    let right = [0.2, 0.7, 0.9].map(Lanes::of);
    let mut nodes = vec![Lanes::of(0.0_f64); 16];
    probabilities(&right, &mut nodes);
    let sum: f64 = nodes[8..].iter().map(|p| p[0]).sum();
    close(&[sum, nodes[8 + 0b101][0]], &[1.0, 0.2 * 0.3 * 0.9], 1e-12);
}

#[test]
fn a_network_learns_to_write_a_given_tree() {
    let shape = NetworkShape {
        n_inputs: 6,
        n_hidden: 16,
        depth: 4,
    };
    let n_nodes = shape.n_leaves() - 1;
    let draws = Key::from_seed(5).uniforms(2 * n_nodes);
    let targets: Vec<_> = (0..n_nodes)
        .map(|node| {
            let threshold = 2.0 * draws[node] - 1.0;
            Some(TargetSplit {
                input: (6.0 * draws[n_nodes + node]) as usize,
                bias: -threshold,
                slope: 1.0,
            })
        })
        .collect();
    let mut weights = shape.random_weights(1.0, Key::from_seed(2));
    imitate(shape, &targets, &mut weights);
    for (split, target) in node_splits(&shape, &weights).iter().zip(targets) {
        let target = target.unwrap();
        assert_eq!(split.input(), target.input);
        let threshold = -split.biases[target.input] / split.slopes[target.input];
        assert!((threshold + target.bias / target.slope).abs() < 0.1);
    }
}

/// A deep tree with one input per level, whose states do not depend on the decisions at first.
#[test]
fn a_network_learns_to_write_a_deep_balanced_tree() {
    let shape = NetworkShape {
        n_inputs: 8,
        n_hidden: 16,
        depth: 8,
    };
    let level = |node: usize| (node + 1).ilog2() as usize;
    let targets: Vec<_> = (0..shape.n_leaves() - 1)
        .map(|node| {
            Some(TargetSplit {
                input: (level(node) * 3 + 1) % 8,
                bias: 0.0,
                slope: 1.0,
            })
        })
        .collect();
    let mut weights = shape.random_weights(1.0, Key::from_seed(1));
    weights[shape.decision_weights()].fill(0.0);
    imitate(shape, &targets, &mut weights);
    for (split, target) in node_splits(&shape, &weights).iter().zip(targets) {
        assert_eq!(split.input(), target.unwrap().input);
    }
}

/// The bound of a Gaussian process whose noise scales are the leaves, as a function of the weights of
/// the network: its gradient is that of the route objective with the expected squared errors.
#[test]
fn gradients_of_the_bound_of_a_gaussian_process_agree_with_central_differences() {
    const N_ROWS: usize = 12;
    let space = HyperSpace {
        shape: KernelShape::Matern32,
        n_inputs: 1,
        fixed: FixedHyperparameters {
            length: Some(1.0),
            signal_sd: Some(1.0),
            noise_sd: Some(1.0),
        },
        min_noise_sd: 0.0,
        prior: MODEL_PRIOR,
    };
    let mut problem = RouteProblem::new(&SHAPE);
    problem.weight[N_ROWS..].fill(0.0);
    problem.noise.fill(0.0);
    let n_leaves = SHAPE.n_leaves();
    let log_scales: Vec<f64> = (0..n_leaves).map(|leaf| leaf as f64 / 4.0 - 1.0).collect();
    let points = Points::from_columns(problem.inputs[..N_ROWS].to_vec(), N_ROWS, 1);
    let ones = [1.0; N_ROWS];
    let rows = TargetRows {
        points: &points,
        targets: &problem.target[..N_ROWS],
        weights: &problem.weight[..N_ROWS],
        noise_factors: &ones,
    };
    let process = |weights: &[f64]| {
        let mut objective = RouteObjective::new(SHAPE, 2 * BLOCK, ELBO, Sharpness::PUBLISHED);
        let mut routes = RouteProbabilities::new(n_leaves, &problem.weight).unwrap();
        let mut unused = vec![0.0; weights.len()];
        // with scores of zero the objective is minus the divergence
        let divergence = -objective.evaluate(weights, &problem.rows(), &mut routes, &mut unused);
        routes.values.truncate(N_ROWS * n_leaves);
        let levels = LevelProblem {
            estimation: EstimationProblem {
                space: &space,
                rows,
            },
            shares: &LevelShares::Several(routes.values),
        };
        let bound = levels.bound(&[], &log_scales).unwrap().unwrap();
        (bound.value - divergence, bound.squares)
    };
    let weights = weights(&SHAPE);
    let (_, mut squares) = process(&weights);
    squares.resize(2 * BLOCK, 0.0);
    let mut leaves = ScaleLeaves::new(&log_scales, &squares);
    let mut objective = RouteObjective::new(SHAPE, 2 * BLOCK, ELBO, Sharpness::PUBLISHED);
    let mut gradient = vec![0.0; weights.len()];
    objective.evaluate(&weights, &problem.rows(), &mut leaves, &mut gradient);
    let differences = central_difference(|weights| process(weights).0, &weights);
    close(&gradient, &differences, 1e-5);
}

#[test]
fn gradients_of_leaf_scales_agree_with_central_differences() {
    let problem = RouteProblem::new(&SHAPE);
    let weights = weights(&SHAPE);
    let squares: Vec<f64> = problem.target.iter().map(|y| y * y).collect();
    let log_scales: Vec<f64> = (0..SHAPE.n_leaves())
        .map(|leaf| 0.3 - leaf as f64 / 9.0)
        .collect();
    let evaluate = |log_scales: &[f64]| {
        let mut objective = RouteObjective::new(SHAPE, 2 * BLOCK, ELBO, Sharpness::PUBLISHED);
        let mut leaves = ScaleLeaves::new(log_scales, &squares);
        let mut unused = vec![0.0; weights.len()];
        let value = objective.evaluate(&weights, &problem.rows(), &mut leaves, &mut unused);
        (value, leaves.gradient())
    };
    let differences = central_difference(|m| evaluate(m).0, &log_scales);
    close(&evaluate(&log_scales).1, &differences, 1e-6);
}
