//! Hamiltonian Monte Carlo (Neal 2011): draws from a density whose gradient is known.
//!
//! A trajectory is a number of leapfrog steps, drawn uniformly between 1 and twice its mean, so that no
//! length is in phase with the density. The warm-up adapts the step size to an acceptance rate by dual
//! averaging (Hoffman and Gelman 2014) and the masses to the variances of the weights so far. The mass of
//! a weight is its prior precision plus a curvature of the likelihood: where prior precisions are drawn
//! too, the masses follow them, so that one step size suits narrow and wide priors.

use std::ops::ControlFlow;

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::{Error, Result};
use crate::numerics::dot::dot;
use crate::numerics::gaussian::Gaussian;
use crate::rng::{Key, uniform};
use crate::stop::{self, Stop};

/// Acceptance rate that the step size is adapted to.
const TARGET_ACCEPTANCE: f64 = 0.65;
/// Step size before adaptation, in units of the standard deviations of the weights.
const INITIAL_STEP: f64 = 0.1;
/// Smallest step of a trajectory relative to the adapted one.
const MIN_STEP_SHARE: f64 = 0.5;
/// Constants of dual averaging, with the names of the paper: `t0`, `gamma` and `kappa`.
const DELAY: f64 = 10.0;
const SHRINKAGE: f64 = 0.05;
const DECAY: f64 = 0.75;
/// Ends of the windows after which the masses are adapted, as fractions of the warm-up.
const WINDOWS: [f64; 3] = [0.2, 0.4, 0.7];
/// Number of trajectories that the masses so far count as.
const MASS_STRENGTH: f64 = 5.0;
/// Smallest share of the likelihood in the mass of a weight.
const MIN_LIKELIHOOD_SHARE: f64 = 1e-3;
/// Below this acceptance rate after the warm-up a chain is discarded.
const MIN_ACCEPTANCE: f64 = 0.2;

/// Random streams of a chain.
mod streams {
    pub(super) const MOMENTA: u64 = 1;
    pub(super) const DECISIONS: u64 = 2;
}

/// A density of weights, up to a constant.
pub(crate) trait LogDensity {
    /// The logarithm of the density; writes its gradient.
    fn evaluate(&mut self, weights: &[f64], gradient: &mut [f64]) -> f64;

    /// Precision of the Normal prior of each weight; it is a factor of the density.
    fn prior_precision(&self) -> &[f64];

    /// Draws parameters of the density from their distribution given the weights (a Gibbs step), and
    /// updates the logarithm of the density and its gradient.
    fn draw_parameters(&mut self, _at: &mut Position, _rng: &mut Xoshiro256PlusPlus) {}
}

/// Weights with the logarithm of their density and its gradient.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    pub(crate) weights: Vec<f64>,
    pub(crate) log_density: f64,
    pub(crate) gradient: Vec<f64>,
}

impl Position {
    fn new(weights: &[f64], density: &mut impl LogDensity) -> Self {
        let mut gradient = vec![0.0; weights.len()];
        Self {
            log_density: density.evaluate(weights, &mut gradient),
            weights: weights.to_vec(),
            gradient,
        }
    }

    fn is_finite(&self) -> bool {
        self.log_density.is_finite() && self.gradient.iter().all(|value| value.is_finite())
    }
}

/// Length of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainLength {
    /// Trajectories before the first draw.
    pub(crate) n_warmup: usize,
    pub(crate) n_draws: usize,
    /// Number of trajectories per draw.
    pub(crate) thinning: usize,
    /// Mean number of steps of a trajectory.
    pub(crate) n_steps: usize,
}

impl ChainLength {
    /// Smallest number of trajectories before the first draw.
    const MIN_WARMUP: usize = 40;
    /// Bounds of the mean number of steps of a trajectory.
    const STEPS: std::ops::RangeInclusive<usize> = 8..=50;
    /// Fraction of the trajectories before the first draw, if there are more than the smallest number.
    const WARMUP_SHARE: f64 = 0.4;

    /// A chain of `n_draws` draws with about `n_gradients` gradients: long trajectories first, then more
    /// of them.
    pub(crate) fn within(n_gradients: usize, n_draws: usize) -> Self {
        let n_fewest = Self::MIN_WARMUP + n_draws;
        let n_steps = (n_gradients / n_fewest).clamp(*Self::STEPS.start(), *Self::STEPS.end());
        let n_trajectories = (n_gradients / n_steps).max(n_fewest);
        let n_after = n_trajectories as f64 * (1.0 - Self::WARMUP_SHARE);
        let thinning = (n_after as usize / n_draws.max(1)).max(1);
        Self {
            n_warmup: (n_trajectories - (thinning * n_draws).min(n_trajectories))
                .max(Self::MIN_WARMUP),
            n_draws,
            thinning,
            n_steps,
        }
    }

    /// Number of all trajectories.
    pub(crate) fn n_trajectories(&self) -> usize {
        self.n_warmup + self.n_draws * self.thinning
    }
}

/// Callback before every trajectory of a chain.
pub(crate) type OnTrajectory<'a> = &'a mut dyn FnMut(usize) -> ControlFlow<Stop>;

/// First weights of a chain, and variances for its first masses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainStart<'a> {
    pub(crate) weights: &'a [f64],
    pub(crate) variances: &'a [f64],
}

/// The draws of a chain, one after the other; `None` if the density is not finite at the start, or if
/// nearly all trajectories are rejected.
///
/// `on_trajectory` gets the number of trajectories so far; if it stops the chain, there are no draws.
///
/// # Errors
/// When the work is cancelled or the callback discards it.
pub(crate) fn sample(
    density: &mut impl LogDensity,
    start: ChainStart<'_>,
    length: ChainLength,
    key: Key,
    on_trajectory: OnTrajectory<'_>,
) -> Result<Option<Vec<f32>>> {
    let position = Position::new(start.weights, density);
    if !position.is_finite() {
        return Ok(None);
    }
    let mut chain = HmcChain {
        curvature: start.variances.iter().map(|v| 1.0 / v).collect(),
        step: StepSize::new(INITIAL_STEP),
        momenta: Gaussian::new(key.child(streams::MOMENTA)),
        rng: key.child(streams::DECISIONS).rng(),
        position,
    };
    let mut adaptation = Adaptation::new(start.weights.len(), length.n_warmup);
    let mut draws = Vec::with_capacity(length.n_draws * start.weights.len());
    let mut acceptance = 0.0;
    for trajectory in 0..length.n_trajectories() {
        match on_trajectory(trajectory) {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(Stop::Keep) => return Ok(None),
            ControlFlow::Break(Stop::Discard) => return Err(Error::Cancelled),
        }
        let is_warmup = trajectory < length.n_warmup;
        let step = if is_warmup {
            chain.step.current()
        } else {
            chain.step.average()
        };
        let probability = chain.advance(density, step, length.n_steps)?;
        if is_warmup {
            adaptation.update(&mut chain, density, probability);
            continue;
        }
        acceptance += probability;
        if (trajectory + 1 - length.n_warmup).is_multiple_of(length.thinning) {
            draws.extend(chain.position.weights.iter().map(|&weight| weight as f32));
        }
    }
    let is_useful = acceptance >= MIN_ACCEPTANCE * (length.n_draws * length.thinning) as f64;
    Ok(is_useful.then_some(draws))
}

/// The state of a chain.
struct HmcChain {
    position: Position,
    /// Curvature of the log-likelihood along each weight, with the sign changed.
    curvature: Vec<f64>,
    step: StepSize,
    momenta: Gaussian,
    rng: Xoshiro256PlusPlus,
}

impl HmcChain {
    /// Proposes the end of a trajectory; returns the probability that it is accepted.
    fn advance(
        &mut self,
        density: &mut impl LogDensity,
        step: f64,
        mean_steps: usize,
    ) -> Result<f64> {
        stop::check()?;
        density.draw_parameters(&mut self.position, &mut self.rng);
        let masses = self.curvature.iter().zip(density.prior_precision());
        let scale = masses.map(|(curvature, precision)| 1.0 / (curvature + precision).sqrt());
        let scale: Vec<f64> = scale.collect();
        let mut momentum = vec![0.0_f32; scale.len()];
        self.momenta.fill(&mut momentum);
        let mut momentum: Vec<f64> = momentum.into_iter().map(f64::from).collect();
        let energy = self.position.log_density - 0.5 * dot(&momentum, &momentum);
        // a chain in a narrow region leaves it by a short step
        let step = step * (MIN_STEP_SHARE + (1.0 - MIN_STEP_SHARE) * uniform(&mut self.rng));
        let n_steps = 1 + (uniform(&mut self.rng) * (2 * mean_steps) as f64) as usize;
        let mut end = self.position.clone();
        for _ in 0..n_steps {
            for (at, momentum) in momentum.iter_mut().enumerate() {
                *momentum += 0.5 * step * scale[at] * end.gradient[at];
                end.weights[at] += step * scale[at] * *momentum;
            }
            end.log_density = density.evaluate(&end.weights, &mut end.gradient);
            if !end.is_finite() {
                return Ok(0.0);
            }
            for (at, momentum) in momentum.iter_mut().enumerate() {
                *momentum += 0.5 * step * scale[at] * end.gradient[at];
            }
        }
        let gain = end.log_density - 0.5 * dot(&momentum, &momentum) - energy;
        let probability = if gain.is_nan() {
            0.0
        } else {
            gain.exp().min(1.0)
        };
        if uniform(&mut self.rng) < probability {
            self.position = end;
        }
        Ok(probability)
    }
}

/// Adaptation of step size and masses in the warm-up.
struct Adaptation {
    /// Trajectories after which the masses are adapted.
    windows: [usize; 3],
    n_trajectories: usize,
    variances: RunningVariances,
}

impl Adaptation {
    fn new(n_weights: usize, n_warmup: usize) -> Self {
        Self {
            windows: WINDOWS.map(|end| (end * n_warmup as f64) as usize),
            n_trajectories: 0,
            variances: RunningVariances::new(n_weights),
        }
    }

    /// Updates the chain after a trajectory with this probability of acceptance.
    fn update(&mut self, chain: &mut HmcChain, density: &impl LogDensity, probability: f64) {
        self.n_trajectories += 1;
        chain.step.adapt(probability);
        self.variances
            .add(&chain.position.weights, density.prior_precision());
        if self.windows.contains(&self.n_trajectories) {
            self.variances.adapt(&mut chain.curvature);
            self.variances = RunningVariances::new(chain.curvature.len());
            chain.step = StepSize::new(chain.step.average());
        }
    }
}

/// Dual averaging of the logarithm of the step size.
struct StepSize {
    centre: f64,
    log_step: f64,
    log_average: f64,
    error: f64,
    n: f64,
}

impl StepSize {
    fn new(step: f64) -> Self {
        Self {
            centre: step.ln(),
            log_step: step.ln(),
            log_average: step.ln(),
            error: 0.0,
            n: 0.0,
        }
    }

    fn current(&self) -> f64 {
        self.log_step.exp()
    }

    fn average(&self) -> f64 {
        self.log_average.exp()
    }

    fn adapt(&mut self, acceptance: f64) {
        self.n += 1.0;
        self.error += (TARGET_ACCEPTANCE - acceptance - self.error) / (self.n + DELAY);
        self.log_step = self.centre - self.n.sqrt() / SHRINKAGE * self.error;
        self.log_average += self.n.powf(-DECAY) * (self.log_step - self.log_average);
    }
}

/// Variances of the weights of a window (Welford's algorithm), and sums of their prior precisions.
struct RunningVariances {
    n: f64,
    mean: Vec<f64>,
    square: Vec<f64>,
    precision: Vec<f64>,
}

impl RunningVariances {
    fn new(n_weights: usize) -> Self {
        Self {
            n: 0.0,
            mean: vec![0.0; n_weights],
            square: vec![0.0; n_weights],
            precision: vec![0.0; n_weights],
        }
    }

    fn add(&mut self, weights: &[f64], precision: &[f64]) {
        self.n += 1.0;
        for (sum, precision) in self.precision.iter_mut().zip(precision) {
            *sum += precision;
        }
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((mean, square), weight) in moments.zip(weights) {
            let before = weight - *mean;
            *mean += before / self.n;
            *square += before * (weight - *mean);
        }
    }

    /// Moves curvatures towards those that explain the variances of the window.
    fn adapt(&self, curvature: &mut [f64]) {
        for (at, curvature) in curvature.iter_mut().enumerate() {
            let precision = self.precision[at] / self.n;
            let before = 1.0 / (*curvature + precision);
            let variance = (self.square[at] + MASS_STRENGTH * before) / (self.n + MASS_STRENGTH);
            *curvature = (1.0 / variance - precision).max(MIN_LIKELIHOOD_SHARE / variance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::gamma::gamma;

    const LONG: ChainLength = ChainLength {
        n_warmup: 300,
        n_draws: 8000,
        thinning: 1,
        n_steps: 6,
    };

    fn never_stop(_: usize) -> ControlFlow<Stop> {
        ControlFlow::Continue(())
    }

    fn draws(density: &mut impl LogDensity, start: &[f64], variances: &[f64]) -> Vec<Vec<f64>> {
        let start = ChainStart {
            weights: start,
            variances,
        };
        let draws = sample(density, start, LONG, Key::from_seed(3), &mut never_stop).unwrap();
        let draws = draws.expect("the chain moves");
        let draw = |draw: &[f32]| draw.iter().map(|&weight| f64::from(weight)).collect();
        draws.chunks_exact(variances.len()).map(draw).collect()
    }

    fn mean(draws: &[Vec<f64>], value: impl Fn(&[f64]) -> f64) -> f64 {
        draws.iter().map(|draw| value(draw)).sum::<f64>() / draws.len() as f64
    }

    /// Two Normal weights with correlation 0.9, standard deviations 1 and 10.
    struct Correlated;

    impl LogDensity for Correlated {
        fn evaluate(&mut self, weights: &[f64], gradient: &mut [f64]) -> f64 {
            let (a, b) = (weights[0] - 3.0, weights[1] / 10.0);
            let scale = 1.0 / (1.0 - 0.81);
            gradient[0] = -scale * (a - 0.9 * b);
            gradient[1] = -scale * (b - 0.9 * a) / 10.0;
            -0.5 * scale * (a * a - 1.8 * a * b + b * b)
        }

        fn prior_precision(&self) -> &[f64] {
            &[0.0, 0.0]
        }
    }

    /// Masses begin far off: variances of 100 and 1.
    #[test]
    fn moments_of_correlated_normal_weights() {
        let draws = draws(&mut Correlated, &[0.0, 0.0], &[100.0, 1.0]);
        let centred = |draw: &[f64]| (draw[0] - 3.0, draw[1] / 10.0);
        // standard errors are below .02 over ten seeds
        let found = [
            mean(&draws, |draw| centred(draw).0),
            mean(&draws, |draw| centred(draw).1),
            mean(&draws, |draw| centred(draw).0.powi(2)),
            mean(&draws, |draw| centred(draw).1.powi(2)),
            mean(&draws, |draw| centred(draw).0 * centred(draw).1),
        ];
        for (found, expected) in found.iter().zip([0.0, 0.0, 1.0, 1.0, 0.9]) {
            assert!((found - expected).abs() < 0.1, "{found} {expected}");
        }
    }

    /// Density proportional to `exp(-x^4/4)`.
    struct Quartic;

    impl LogDensity for Quartic {
        fn evaluate(&mut self, weights: &[f64], gradient: &mut [f64]) -> f64 {
            gradient[0] = -weights[0].powi(3);
            -0.25 * weights[0].powi(4)
        }

        fn prior_precision(&self) -> &[f64] {
            &[0.0]
        }
    }

    /// `E[x^2] = 2 Γ(3/4) / Γ(1/4)` and `E[x^4] = 1`.
    #[test]
    fn moments_of_a_density_that_is_not_normal() {
        let draws = draws(&mut Quartic, &[0.5], &[1.0]);
        let (square, fourth) = (
            mean(&draws, |draw| draw[0].powi(2)),
            mean(&draws, |draw| draw[0].powi(4)),
        );
        assert!((square - 0.675_978).abs() < 0.04, "{square}");
        assert!((fourth - 1.0).abs() < 0.1, "{fourth}");
    }

    /// A Normal weight whose precision has the Gamma distribution with shape 5 and rate 5: Student's t
    /// with 10 degrees of freedom.
    struct Hierarchical {
        precision: [f64; 1],
    }

    impl LogDensity for Hierarchical {
        fn evaluate(&mut self, weights: &[f64], gradient: &mut [f64]) -> f64 {
            gradient[0] = -self.precision[0] * weights[0];
            -0.5 * self.precision[0] * weights[0].powi(2)
        }

        fn prior_precision(&self) -> &[f64] {
            &self.precision
        }

        fn draw_parameters(&mut self, at: &mut Position, rng: &mut Xoshiro256PlusPlus) {
            let rate = 5.0 + 0.5 * at.weights[0].powi(2);
            self.precision = [gamma(5.5, rng).unwrap() / rate];
            let weights = at.weights.clone();
            at.log_density = self.evaluate(&weights, &mut at.gradient);
        }
    }

    #[test]
    fn drawn_parameters_give_the_marginal_density() {
        let draws = draws(&mut Hierarchical { precision: [1.0] }, &[0.0], &[1.0]);
        let square = mean(&draws, |draw| draw[0].powi(2));
        let beyond = mean(&draws, |draw| f64::from(u8::from(draw[0].abs() > 1.812)));
        assert!((square - 10.0 / 8.0).abs() < 0.12, "{square}");
        assert!((beyond - 0.1).abs() < 0.02, "{beyond}");
    }

    #[test]
    fn a_density_that_is_not_finite_gives_no_draws() {
        struct Nowhere;
        impl LogDensity for Nowhere {
            fn evaluate(&mut self, _: &[f64], _: &mut [f64]) -> f64 {
                f64::NAN
            }

            fn prior_precision(&self) -> &[f64] {
                &[0.0]
            }
        }
        let start = ChainStart {
            weights: &[0.0],
            variances: &[1.0],
        };
        let none = sample(
            &mut Nowhere,
            start,
            LONG,
            Key::from_seed(0),
            &mut never_stop,
        )
        .unwrap();
        assert!(none.is_none());
    }

    #[test]
    fn a_chain_has_about_as_many_gradients_as_it_may() {
        for n_gradients in [900, 2150, 7800] {
            let length = ChainLength::within(n_gradients, 25);
            let found = length.n_trajectories() * length.n_steps;
            assert!(found <= n_gradients, "{length:?}");
            assert!(found * 10 > n_gradients * 9, "{length:?}");
        }
        let one = ChainLength::within(100, 1);
        assert_eq!((one.n_draws, one.n_warmup, one.n_steps), (1, 40, 8));
    }
}
