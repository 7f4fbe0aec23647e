//! Posteriors that are known exactly: a tree of depth 0 with a linear leaf and known noise is Bayesian linear
//! regression.
//!
//! With standardised rows `x` (bias last), target `y` and noise `s` in units of the target's standard deviation and
//! prior scale `t`, the posterior of the weights is Normal with precision `P = X'X/s^2 + I/t^2` and mean
//! `P^-1 X'y/s^2`. The best posterior without correlations has the same mean and variances `1/P_ii`.

use crate::problems::normals;
use softwood::{
    Column, Dataset, Fit, Key, LeafMixing, NoObserver, Pool, Prior, Roles, Rotation, Run, Scaling,
    Table, VstParams,
};

const N_ROWS: usize = 80;
const NOISE: f64 = 0.7;
const PRIOR_SCALE: f64 = 0.5;
/// Weights of the leaf's mean: three inputs and a bias. As many stand behind its unused scale.
const N: usize = 4;
/// Draws come in antithetic pairs and the log-likelihood is quadratic: the mean has no Monte-Carlo error, only that of
/// single precision (below 1e-6 over twelve seeds).
const MEAN_TOLERANCE: f64 = 1e-4;
/// Entries of the covariance scatter by 0.0055 or less over twelve seeds; six standard deviations, ten entries: a
/// failure in 1e7.
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
    Dataset::from_table(&table.unwrap(), &roles).unwrap()
}

/// Mean to 0, standard deviation to 1; the standard deviation divides by n.
fn standardised(values: &[f64]) -> (Vec<f64>, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sd = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    (values.iter().map(|v| (v - mean) / sd).collect(), sd)
}

/// Precision (row-major, N x N) and mean of the exact posterior.
fn exact() -> (Vec<f64>, Vec<f64>) {
    let (inputs, target) = columns();
    let (y, sd) = standardised(&target);
    let noise = NOISE / sd;
    let mut x: Vec<Vec<f64>> = inputs.iter().map(|input| standardised(input).0).collect();
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

/// Gauss and Jordan's inverse of an N x N matrix that needs no pivoting.
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

/// Mean and covariance (row-major, 2N x 2N) of the fitted weights: the leaf's mean, then its scale.
fn fitted(rank: usize) -> (Vec<f64>, Vec<f64>) {
    let params = VstParams {
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
    };
    let data = dataset();
    let pool = Pool::new(1).unwrap();
    let run = Run {
        key: Key::from_seed(0),
        pool: &pool,
        observer: &NoObserver,
        // with rows given, none is taken from the training rows; they decide nothing here
        held_out: Some(&data),
        warm_start: None,
    };
    let (mean, covariance) = params.fit(&data, &run).unwrap().weights(0).unwrap();
    assert_eq!(mean.len(), 2 * N);
    (mean, covariance)
}

/// Largest error of the mean in posterior standard deviations, and of the covariance in `sqrt(C_ii C_jj)`, over the
/// weights from `start` on.
fn errors(start: usize, fit: (&[f64], &[f64]), truth: (&[f64], &[f64])) -> (f64, f64) {
    let ((mean, covariance), (true_mean, true_covariance)) = (fit, truth);
    let sd = |i: usize| true_covariance[i * N + i].sqrt();
    let (mut of_mean, mut of_covariance) = (0.0_f64, 0.0_f64);
    for i in 0..N {
        of_mean = of_mean.max((mean[start + i] - true_mean[i]).abs() / sd(i));
        for j in 0..N {
            let found = covariance[(start + i) * 2 * N + start + j];
            let gap = (found - true_covariance[i * N + j]).abs() / (sd(i) * sd(j));
            of_covariance = of_covariance.max(gap);
        }
    }
    (of_mean, of_covariance)
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
    // correlated inputs: a posterior without correlations would be far off
    assert!(truth[1].abs() / (truth[0] * truth[N + 1]).sqrt() > 0.5);
    let found = errors(0, (&mean, &covariance), (&true_mean, &truth));
    assert!(
        found.0 < MEAN_TOLERANCE && found.1 < COVARIANCE_TOLERANCE,
        "{found:?}"
    );
}

#[test]
fn weights_that_the_data_do_not_touch_keep_their_prior() {
    let (mean, covariance) = fitted(2 * N);
    let prior = diagonal(|_| PRIOR_SCALE * PRIOR_SCALE);
    let found = errors(N, (&mean, &covariance), (&[0.0; N], &prior));
    assert!(
        found.0 < MEAN_TOLERANCE && found.1 < COVARIANCE_TOLERANCE,
        "{found:?}"
    );
}

#[test]
fn rank_zero_gives_the_best_posterior_without_correlations() {
    let (precision, true_mean) = exact();
    let (mean, covariance) = fitted(0);
    let truth = diagonal(|i| 1.0 / precision[i * N + i]);
    let found = errors(0, (&mean, &covariance), (&true_mean, &truth));
    assert!(
        found.0 < MEAN_TOLERANCE && found.1 < COVARIANCE_TOLERANCE,
        "{found:?}"
    );
}
