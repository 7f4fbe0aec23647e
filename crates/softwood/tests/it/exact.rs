//! Exact posterior: a tree of depth 0 with a linear leaf and known noise is Bayesian linear
//! regression.
//!
//! With standardized rows `x` (bias last), standardized target `y`, noise `s` in units of the
//! standard deviation of the target, and prior scale `t`, the posterior of the weights is Normal
//! with precision `P = X'X/s^2 + I/t^2` and mean `P^-1 X'y/s^2`. The best diagonal approximation
//! has the same mean and the variances `1/P_ii`.

use crate::problems::normals;
use softwood::models::{
    LeafMixing, PosteriorMethod, Prior, Rotation, Scaling, VartParams, VstParams,
};
use softwood::{Column, Dataset, Distribution, Fit, Key, Pool, Roles, Run, Table};

const N_ROWS: usize = 80;
const NOISE: f64 = 0.7;
const PRIOR_SCALE: f64 = 0.5;
/// Number of weights of the leaf mean: three inputs and a bias. The unused scale has as many
/// weights.
const N: usize = 4;
/// Draws are antithetic pairs and the log-likelihood is quadratic, so the mean has no Monte Carlo
/// error, only rounding errors of single precision (below 1e-6 over twelve seeds).
const MEAN_TOLERANCE: f64 = 1e-4;
/// Entries of the covariance have a standard deviation of at most 0.0055 over twelve seeds; six
/// standard deviations and ten entries give a failure probability of 1e-7.
const COVARIANCE_TOLERANCE: f64 = 0.035;

/// Three correlated inputs and a target.
fn columns() -> ([Vec<f64>; 3], Vec<f64>) {
    let key = Key::from_seed(11);
    let z = |label: u64| normals(key.child(label), N_ROWS);
    let mix = |a: &[f64], b: &[f64], r: f64| -> Vec<f64> {
        let rest = (1.0 - r * r).sqrt();
        a.iter()
            .zip(b)
            .map(|(a, b)| 10.0 + 3.0 * (r * a + rest * b))
            .collect()
    };
    let (first, noise) = (z(1), z(4));
    let inputs = [
        mix(&first, &first, 1.0),
        mix(&first, &z(2), 0.8),
        mix(&first, &z(3), -0.6),
    ];
    let target = (0..N_ROWS)
        .map(|row| {
            let mean = 1.0 + 0.5 * inputs[0][row] - 0.3 * inputs[1][row] + 0.1 * inputs[2][row];
            mean + NOISE * noise[row]
        })
        .collect();
    (inputs, target)
}

fn dataset() -> Dataset {
    let ([a, b, c], y) = columns();
    let table = Table::new(vec![
        Column::numeric("a", a),
        Column::numeric("b", b),
        Column::numeric("c", c),
        Column::numeric("y", y),
    ]);
    let roles = Roles {
        target: "y".to_owned(),
        ..Roles::default()
    };
    Dataset::from_table(table.unwrap(), &roles).unwrap()
}

/// Values with mean 0 and standard deviation 1 (dividing by n), and their standard deviation
/// before.
fn standardized(values: &[f64]) -> (Vec<f64>, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sd = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    (values.iter().map(|v| (v - mean) / sd).collect(), sd)
}

/// Precision (row-major, N x N) and mean of the exact posterior.
fn exact() -> (Vec<f64>, Vec<f64>) {
    let (inputs, target) = columns();
    let (y, sd) = standardized(&target);
    let noise = NOISE / sd;
    let mut x: Vec<Vec<f64>> = inputs.iter().map(|input| standardized(input).0).collect();
    x.push(vec![1.0; N_ROWS]);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut precision = vec![0.0; N * N];
    for i in 0..N {
        for j in 0..N {
            precision[i * N + j] = dot(&x[i], &x[j]) / (noise * noise);
        }
        precision[i * N + i] += 1.0 / (PRIOR_SCALE * PRIOR_SCALE);
    }
    let covariance = inverse(&precision);
    let moment: Vec<f64> = x.iter().map(|x| dot(x, &y) / (noise * noise)).collect();
    let mean = (0..N)
        .map(|i| dot(&covariance[i * N..(i + 1) * N], &moment))
        .collect();
    (precision, mean)
}

/// Inverse of an N x N matrix by Gauss-Jordan elimination without pivoting.
fn inverse(matrix: &[f64]) -> Vec<f64> {
    let mut left = matrix.to_vec();
    let mut right = vec![0.0; N * N];
    for i in 0..N {
        right[i * N + i] = 1.0;
    }
    for pivot in 0..N {
        let by = left[pivot * N + pivot];
        for j in 0..N {
            left[pivot * N + j] /= by;
            right[pivot * N + j] /= by;
        }
        for i in (0..N).filter(|&i| i != pivot) {
            let times = left[i * N + pivot];
            for j in 0..N {
                left[i * N + j] -= times * left[pivot * N + j];
                right[i * N + j] -= times * right[pivot * N + j];
            }
        }
    }
    right
}

/// Mean and covariance (row-major, 2N x 2N) of the fitted weights: those of the leaf mean, then
/// those of the scale.
fn fitted(rank: usize) -> (Vec<f64>, Vec<f64>) {
    let params = vst_params(rank);
    let data = dataset();
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(0), &pool).held_out(&data);
    let (mean, covariance) = params.fit_with(&data, &run).unwrap().weights(0).unwrap();
    assert_eq!(mean.len(), 2 * N);
    (mean, covariance)
}

/// Means and covariance of a `vart` whose only node cannot split.
fn fitted_vart(rank: usize) -> (Vec<f64>, Vec<f64>) {
    let VstParams {
        leaf_mixing,
        prior,
        prior_scale,
        noise_scale,
        learning_rate,
        batch_size,
        n_epochs,
        n_draws,
        n_fits,
        early_stopping,
        scaling,
        rotation,
        squares,
        ..
    } = vst_params(rank);
    let params = VartParams {
        max_depth: 0,
        leaf_mixing,
        rank,
        prior,
        prior_scale,
        noise_scale,
        learning_rate,
        batch_size,
        n_epochs,
        n_draws,
        n_fits: Some(n_fits),
        early_stopping,
        scaling,
        rotation,
        squares,
        ..VartParams::default()
    };
    let data = dataset();
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(0), &pool).held_out(&data);
    params.fit_with(&data, &run).unwrap().weights(0).unwrap()
}

fn vst_params(rank: usize) -> VstParams {
    VstParams {
        max_depth: Some(0),
        leaf_mixing: Some(LeafMixing::Blend),
        rank,
        prior: Prior::Fixed,
        prior_scale: PRIOR_SCALE,
        noise_scale: Some(NOISE),
        learning_rate: Some(0.01),
        batch_size: Some(N_ROWS),
        n_epochs: Some(20_000),
        n_draws: Some(64),
        n_fits: 1,
        early_stopping: false,
        scaling: Some(Scaling::Standard),
        rotation: Some(Rotation::None),
        squares: Some(false),
        ..VstParams::default()
    }
}

/// Mean and covariance of a Normal distribution.
#[derive(Clone, Copy)]
struct MeanCovariance<'a> {
    mean: &'a [f64],
    covariance: &'a [f64],
}

/// Largest error of the mean in posterior standard deviations, and of the covariance in
/// `sqrt(C_ii C_jj)`, over the weights of `fitted` from `start` on.
fn errors(start: usize, fitted: MeanCovariance<'_>, exact: MeanCovariance<'_>) -> (f64, f64) {
    let MeanCovariance { mean, covariance } = fitted;
    let (true_mean, true_covariance) = (exact.mean, exact.covariance);
    let sd = |i: usize| true_covariance[i * N + i].sqrt();
    let (mut mean_error, mut covariance_error) = (0.0_f64, 0.0_f64);
    for i in 0..N {
        mean_error = mean_error.max((mean[start + i] - true_mean[i]).abs() / sd(i));
        for j in 0..N {
            let found = covariance[(start + i) * 2 * N + start + j];
            let gap = (found - true_covariance[i * N + j]).abs() / (sd(i) * sd(j));
            covariance_error = covariance_error.max(gap);
        }
    }
    (mean_error, covariance_error)
}

/// Asserts that the weights of `fitted` from `start` on have this mean and covariance.
fn assert_close(start: usize, fitted: MeanCovariance<'_>, mean: &[f64], covariance: &[f64]) {
    let found = errors(start, fitted, MeanCovariance { mean, covariance });
    assert!(
        found.0 < MEAN_TOLERANCE && found.1 < COVARIANCE_TOLERANCE,
        "{found:?}"
    );
}

fn diagonal(values: impl Fn(usize) -> f64) -> Vec<f64> {
    (0..N * N)
        .map(|at| {
            if at / N == at % N {
                values(at / N)
            } else {
                0.0
            }
        })
        .collect()
}

#[test]
fn full_rank_recovers_bayesian_linear_regression() {
    let (precision, true_mean) = exact();
    let (mean, covariance) = fitted(2 * N);
    let truth = inverse(&precision);
    // the inputs are correlated: a diagonal posterior would be far off
    assert!(truth[1].abs() / (truth[0] * truth[N + 1]).sqrt() > 0.5);
    let fitted = MeanCovariance {
        mean: &mean,
        covariance: &covariance,
    };
    assert_close(0, fitted, &true_mean, &truth);
}

#[test]
fn a_structure_without_splits_recovers_bayesian_linear_regression() {
    let (precision, true_mean) = exact();
    for (rank, truth) in [
        (2 * N, inverse(&precision)),
        (0, diagonal(|i| 1.0 / precision[i * N + i])),
    ] {
        let (mean, covariance) = fitted_vart(rank);
        let fitted = MeanCovariance {
            mean: &mean,
            covariance: &covariance,
        };
        assert_close(0, fitted, &true_mean, &truth);
    }
}

#[test]
fn weights_that_the_likelihood_does_not_use_keep_their_prior() {
    let (mean, covariance) = fitted(2 * N);
    let prior = diagonal(|_| PRIOR_SCALE * PRIOR_SCALE);
    let fitted = MeanCovariance {
        mean: &mean,
        covariance: &covariance,
    };
    assert_close(N, fitted, &[0.0; N], &prior);
}

#[test]
fn rank_zero_gives_the_best_diagonal_posterior() {
    let (precision, true_mean) = exact();
    let (mean, covariance) = fitted(0);
    let truth = diagonal(|i| 1.0 / precision[i * N + i]);
    let fitted = MeanCovariance {
        mean: &mean,
        covariance: &covariance,
    };
    assert_close(0, fitted, &true_mean, &truth);
}

/// Draws by Hamiltonian Monte Carlo have the exact posterior although the chain starts at a diagonal one.
/// The knowledge variances of all rows, relative to the exact ones, are within .12 over eight seeds; the
/// means are within .1 posterior standard deviations.
#[test]
fn chains_recover_bayesian_linear_regression() {
    let params = VstParams {
        posterior: Some(PosteriorMethod::Hmc),
        n_epochs: Some(500),
        n_members: 1500,
        extrapolation: false,
        ..vst_params(0)
    };
    let data = dataset();
    let pool = Pool::new(1).unwrap();
    let run = Run::new(Key::from_seed(0), &pool).held_out(&data);
    let model = params.fit_with(&data, &run).unwrap();
    let (inputs, target) = columns();
    let names = ["a", "b", "c"].into_iter().zip(inputs.clone());
    let table = names.map(|(name, values)| Column::numeric(name, values));
    let table = Table::new(table.collect()).unwrap();
    let dist = Distribution::new(&model, &table, &pool).unwrap();
    let found = dist.moments().unwrap();
    let (precision, mean) = exact();
    let covariance = inverse(&precision);
    let (_, sd) = standardized(&target);
    let centre = target.iter().sum::<f64>() / N_ROWS as f64;
    let x = inputs.map(|input| standardized(&input).0);
    let mut means = 0.0_f64;
    for row in 0..N_ROWS {
        let x = [x[0][row], x[1][row], x[2][row], 1.0];
        let product = |i: usize| (0..N).map(|j| covariance[i * N + j] * x[j]).sum::<f64>();
        let variance = (0..N).map(|i| x[i] * product(i)).sum::<f64>() * sd * sd;
        let exact_mean = centre + sd * (0..N).map(|i| x[i] * mean[i]).sum::<f64>();
        means = means.max((found.mean[row] - exact_mean).abs() / variance.sqrt());
        let ratio = found.knowledge_std[row].powi(2) / variance;
        assert!((ratio - 1.0).abs() < 0.3, "{row}: {ratio}");
    }
    assert!(means < 0.25, "{means}");
}
