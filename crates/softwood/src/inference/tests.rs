//! Training of models without trees: the loop, the posterior and the hooks of `Objective`.

use std::ops::ControlFlow;

use softwood_testkit::close;

use crate::error::{Error, Result};
use crate::inference::lowrank_gaussian::{LossScale, LowRank};
use crate::inference::objective::{Objective, ValidationScores};
use crate::inference::prior::WeightPrior;
use crate::inference::schedule::TrainingSchedule;
use crate::inference::train::{EpochReport, PosteriorRun, TrainedPosterior, train};
use crate::numerics::cholesky;
use crate::numerics::gaussian::Gaussian;
use crate::numerics::logspace::log_mean_exp;
use crate::numerics::normal::HALF_LN_TAU;
use crate::rng::Key;
use crate::stop::Stop;

const N_ROWS: usize = 60;
const N_WEIGHTS: usize = 3;
const PRIOR_SCALE: f64 = 0.8;
const NOISE_SD: f64 = 0.5;
/// Precision of the Normal prior on the log noise scale where it is a parameter.
const LOG_SD_PRECISION: f64 = 40.0;

/// Bayesian linear regression: `y ~ N(w.x, sd^2)`.
struct LinearRegression {
    inputs: Vec<[f64; N_WEIGHTS]>,
    target: Vec<f64>,
    /// Logarithm of the noise scale.
    log_sd: [f32; 1],
    /// Whether the noise scale is a parameter; else it is known.
    learns_noise: bool,
    /// Derivative of the log-likelihood with respect to the log scale, summed over draws.
    d_log_sd: f64,
    n_epochs: usize,
    ended_early: bool,
}

impl LinearRegression {
    fn new(learns_noise: bool) -> Self {
        let mut numbers = vec![0.0; N_ROWS * (N_WEIGHTS + 1)];
        Gaussian::new(Key::from_seed(11)).fill(&mut numbers);
        let mut inputs = Vec::new();
        let mut target = Vec::new();
        for row in numbers.chunks_exact(N_WEIGHTS + 1) {
            let z = [f64::from(row[0]), f64::from(row[1]), f64::from(row[2])];
            // correlated inputs, hence correlated weights
            let x = [z[0], 0.8 * z[0] + 0.6 * z[1], 1.0 + 0.3 * z[2]];
            target.push(x[0] - 0.5 * x[1] + 0.3 * x[2] + NOISE_SD * f64::from(row[3]));
            inputs.push(x);
        }
        Self {
            inputs,
            target,
            log_sd: [NOISE_SD.ln() as f32],
            learns_noise,
            d_log_sd: 0.0,
            n_epochs: 0,
            ended_early: false,
        }
    }

    fn sd(&self) -> f64 {
        f64::from(self.log_sd[0]).exp()
    }

    fn residual(&self, row: usize, weights: &[f32]) -> f64 {
        let terms = self.inputs[row].iter().zip(weights);
        self.target[row] - terms.map(|(x, &w)| x * f64::from(w)).sum::<f64>()
    }

    fn log_density(&self, row: usize, weights: &[f32]) -> f64 {
        let u = self.residual(row, weights) / self.sd();
        -0.5 * u * u - self.sd().ln() - HALF_LN_TAU
    }

    /// Mean and covariance of the exact posterior under a noise scale.
    fn exact(&self, sd: f64) -> (Vec<f64>, Vec<f64>) {
        let n = N_WEIGHTS;
        let mut precision = vec![0.0; n * n];
        let mut mean = vec![0.0; n];
        for (x, y) in self.inputs.iter().zip(&self.target) {
            for i in 0..n {
                mean[i] += x[i] * y / (sd * sd);
                for j in 0..n {
                    precision[i * n + j] += x[i] * x[j] / (sd * sd);
                }
            }
        }
        for i in 0..n {
            precision[i * n + i] += 1.0 / (PRIOR_SCALE * PRIOR_SCALE);
        }
        assert!(cholesky::factor(&mut precision, n));
        cholesky::solve(&precision, n, &mut mean);
        let mut covariance = vec![0.0; n * n];
        cholesky::inverse(&precision, n, &mut covariance);
        (mean, covariance)
    }
}

impl Objective for LinearRegression {
    type State = f64;

    fn n_weights(&self) -> usize {
        N_WEIGHTS
    }

    fn n_rows(&self) -> usize {
        N_ROWS
    }

    fn total_weight(&self) -> f64 {
        N_ROWS as f64
    }

    fn log_likelihood(&mut self, rows: &[usize], draws: &[f32], gradients: &mut [f32]) -> f64 {
        gradients.fill(0.0);
        self.d_log_sd = 0.0;
        let precision = 1.0 / (self.sd() * self.sd());
        let mut sum = 0.0;
        for (weights, gradient) in draws
            .chunks_exact(N_WEIGHTS)
            .zip(gradients.chunks_exact_mut(N_WEIGHTS))
        {
            for &row in rows {
                let residual = self.residual(row, weights);
                sum += self.log_density(row, weights);
                self.d_log_sd += residual * residual * precision - 1.0;
                for (out, x) in gradient.iter_mut().zip(&self.inputs[row]) {
                    *out += (precision * residual * x) as f32;
                }
            }
        }
        sum
    }

    fn validation(&self, draws: &[f32]) -> Option<ValidationScores> {
        let score = |row: usize| {
            let draws = draws.chunks_exact(N_WEIGHTS);
            log_mean_exp(draws.map(|weights| self.log_density(row, weights)))
        };
        let of_rows: Vec<f64> = (0..N_ROWS).map(score).collect();
        let mean = of_rows.iter().sum::<f64>() / N_ROWS as f64;
        Some(ValidationScores { of_rows, mean })
    }

    fn state(&self) -> f64 {
        self.sd()
    }

    fn end_epoch(&mut self, _: f64) {
        self.n_epochs += 1;
    }

    fn end_early(&mut self, _: &mut LowRank) {
        self.ended_early = true;
    }

    fn kl(&self, posterior: &LowRank, precision: &[f32]) -> f64 {
        let penalty = 0.5 * LOG_SD_PRECISION * f64::from(self.log_sd[0]).powi(2);
        posterior.kl(precision) + if self.learns_noise { penalty } else { 0.0 }
    }

    fn parameters(&mut self) -> &mut [f32] {
        if self.learns_noise {
            &mut self.log_sd
        } else {
            &mut []
        }
    }

    fn parameter_gradient(&self, _: &LowRank, _: &[f32], scale: LossScale, out: &mut [f32]) {
        if let [d_log_sd] = out {
            *d_log_sd = scale.kl * LOG_SD_PRECISION as f32 * self.log_sd[0]
                - scale.likelihood * self.d_log_sd as f32;
        }
    }
}

fn run(n_epochs: usize, early_stopping: bool) -> PosteriorRun {
    PosteriorRun {
        start: LowRank::initial(
            vec![0.0; N_WEIGHTS],
            N_WEIGHTS,
            PRIOR_SCALE,
            Key::from_seed(1),
        ),
        prior: WeightPrior {
            scale: PRIOR_SCALE,
            groups: None,
        },
        kl_weight: 1.0,
        schedule: TrainingSchedule {
            n_epochs,
            batch_size: N_ROWS,
            n_draws: 8,
            learning_rate: 0.02,
        },
        early_stopping,
        is_warm_start: false,
        patience: None,
    }
}

/// Trains and stops with `decision` after `stop_at` epochs.
fn train_until(
    model: &mut LinearRegression,
    stop_at: usize,
    decision: Stop,
) -> Result<TrainedPosterior<f64>> {
    train(model, run(100, true), Key::from_seed(2), &mut |report| {
        if report.epoch == stop_at {
            ControlFlow::Break(decision)
        } else {
            ControlFlow::Continue(())
        }
    })
}

fn means(trained: &TrainedPosterior<f64>) -> Vec<f64> {
    let mean = trained.posterior.mean();
    mean.iter().map(|&value| f64::from(value)).collect()
}

/// Covariances are compared in units of the exact standard deviations.
fn close_covariances(found: &[f64], exact: &[f64], tolerance: f64) {
    let n = N_WEIGHTS;
    let unit = |at: usize| (exact[at / n * (n + 1)] * exact[at % n * (n + 1)]).sqrt();
    let scaled = |values: &[f64]| -> Vec<f64> {
        let values = values.iter().enumerate();
        values.map(|(at, value)| value / unit(at)).collect()
    };
    close(&scaled(found), &scaled(exact), tolerance);
}

#[test]
fn linear_regression_has_its_exact_posterior() {
    let mut model = LinearRegression::new(false);
    let trained = train(&mut model, run(6000, false), Key::from_seed(2), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let (mean, covariance) = model.exact(NOISE_SD);
    close(&means(&trained), &mean, 2e-3);
    close_covariances(&trained.posterior.covariance(), &covariance, 0.03);
    assert_eq!(model.n_epochs, 6000);
    assert_eq!(trained.curve.len(), 25);
}

/// The ELBO has its maximum in the noise scale where
/// `E[sum of squares] / sd^2 - n = LOG_SD_PRECISION ln sd`.
#[test]
fn parameters_without_a_posterior_are_trained_with_their_own_penalty() {
    let mut model = LinearRegression::new(true);
    let trained = train(&mut model, run(6000, false), Key::from_seed(2), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let sd = trained.state;
    let (mean, covariance) = model.exact(sd);
    close(&means(&trained), &mean, 2e-3);
    close_covariances(&trained.posterior.covariance(), &covariance, 0.03);
    let mut squares = 0.0;
    let mean: Vec<f32> = mean.iter().map(|&value| value as f32).collect();
    for (row, x) in model.inputs.iter().enumerate() {
        squares += model.residual(row, &mean).powi(2);
        for i in 0..N_WEIGHTS {
            for j in 0..N_WEIGHTS {
                squares += x[i] * x[j] * covariance[i * N_WEIGHTS + j];
            }
        }
    }
    let derivative = squares / (sd * sd) - N_ROWS as f64 - LOG_SD_PRECISION * sd.ln();
    assert!(derivative.abs() < 0.01 * N_ROWS as f64, "{derivative}");
    assert!(
        (sd - NOISE_SD).abs() > 0.02,
        "the penalty has an effect: {sd}"
    );
}

#[test]
fn a_run_with_patience_ends_early_with_its_best_epoch() {
    let trained_with = |patience: Option<usize>| {
        let mut model = LinearRegression::new(false);
        let run = PosteriorRun {
            patience,
            ..run(1000, true)
        };
        let proceed = &mut |_: &EpochReport<'_, f64>| ControlFlow::Continue(());
        train(&mut model, run, Key::from_seed(2), proceed).unwrap()
    };
    let (whole, early) = (trained_with(None), trained_with(Some(1)));
    assert!(early.is_complete && !early.is_stopped);
    let n = early.curve.len();
    assert!(n < whole.curve.len() && early.curve == whole.curve[..n]);
    let score = |at: usize| early.curve[at].validation_score.unwrap();
    assert!(score(n - 1) < score(n - 2));
    let best = early.scores.unwrap().mean;
    assert_eq!(best.to_bits(), score(n - 2).to_bits());
}

#[test]
fn a_run_that_is_stopped_keeps_its_best_epoch_or_is_discarded() {
    let mut model = LinearRegression::new(false);
    let discarded = train_until(&mut model, 7, Stop::Discard);
    assert!(matches!(discarded, Err(Error::Cancelled)));
    assert_eq!((model.n_epochs, model.ended_early), (7, false));

    // before the end of KL annealing no epoch is eligible: the current posterior is kept
    let mut model = LinearRegression::new(false);
    let early = train_until(&mut model, 7, Stop::Keep).unwrap();
    assert!(model.ended_early);
    assert_eq!(early.curve.last().map(|point| point.epoch), Some(7));
    assert_eq!(
        early.scores.map(|scores| scores.of_rows.len()),
        Some(N_ROWS)
    );

    let mut model = LinearRegression::new(false);
    let late = train_until(&mut model, 90, Stop::Keep).unwrap();
    assert_eq!((model.n_epochs, model.ended_early), (90, false));
    let eligible = late.curve.iter().filter(|point| point.epoch >= 50);
    let best = eligible.filter_map(|point| point.validation_score);
    let kept = late.scores.map(|scores| scores.mean);
    assert_eq!(best.max_by(f64::total_cmp), kept);
}

/// A mean without a posterior: the loop maximises its likelihood.
struct PointEstimate {
    mean: [f32; 1],
    gradient: f32,
}

impl Objective for PointEstimate {
    type State = f32;

    fn n_weights(&self) -> usize {
        0
    }

    fn n_rows(&self) -> usize {
        2
    }

    fn total_weight(&self) -> f64 {
        2.0
    }

    fn log_likelihood(&mut self, rows: &[usize], _: &[f32], _: &mut [f32]) -> f64 {
        let residuals = rows.iter().map(|&row| row as f32 + 1.0 - self.mean[0]);
        self.gradient = residuals.clone().sum();
        residuals
            .map(|residual| -0.5 * f64::from(residual).powi(2))
            .sum()
    }

    fn validation(&self, _: &[f32]) -> Option<ValidationScores> {
        None
    }

    fn state(&self) -> f32 {
        self.mean[0]
    }

    fn parameters(&mut self) -> &mut [f32] {
        &mut self.mean
    }

    fn parameter_gradient(&self, _: &LowRank, _: &[f32], scale: LossScale, out: &mut [f32]) {
        out[0] = -scale.likelihood * self.gradient;
    }
}

#[test]
fn a_model_without_weights_is_trained() {
    let start = LowRank::initial(Vec::new(), 4, 1.0, Key::from_seed(0));
    let mut run = PosteriorRun {
        start,
        ..run(500, false)
    };
    run.schedule.n_draws = 1;
    let mut model = PointEstimate {
        mean: [0.0],
        gradient: 0.0,
    };
    let trained = train(&mut model, run, Key::from_seed(0), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!((trained.state - 1.5).abs() < 1e-3, "{}", trained.state);
    assert!(trained.scores.is_none());
}
