//! One training run: minibatch steps on the ELBO with a cosine step size, watched on held-out rows.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::infer::adam::Adam;
use crate::infer::lowrank::{LossScale, LowRank, Sampler};
use crate::infer::prior::Groups;
use crate::models::vst::params::{Prior, VstParams};
use crate::models::vst::problem::{Coded, Problem};
use crate::models::vst::start;
use crate::numerics::gaussian::Gaussian;
use crate::numerics::real::LANES;
use crate::posterior::CurvePoint;
use crate::rng::{Key, shuffle};
use crate::soft::kernel::Pass;
use crate::soft::law::Law;
use crate::soft::layout::Layout;
use crate::soft::tree::{Batch, Workspace, log_likelihood, row_scores};

/// Shape of a tree and length of its training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plan {
    pub(super) depth: usize,
    pub(super) mixing_levels: usize,
    pub(super) is_linear: bool,
    pub(super) n_epochs: usize,
    pub(super) batch_size: usize,
    pub(super) n_draws: usize,
    pub(super) learning_rate: f64,
}

/// A trained tree.
#[derive(Debug, Clone)]
pub(super) struct Trained {
    pub(super) pass: Pass,
    pub(super) posterior: LowRank,
    /// Mean held-out log-likelihood in standard units at the epoch kept; NaN where nothing is held out.
    pub(super) held_out: f64,
    /// Log-likelihood of each held-out row at the epoch kept.
    pub(super) row_scores: Vec<f64>,
    pub(super) curve: Vec<CurvePoint>,
}

/// Spread of the posterior at the start, for a prior scale of one or more.
const START_SD: f64 = 0.05;
/// Spread of the low-rank part at the start, relative to the diagonal; zero would be a saddle.
const START_CORRELATION: f64 = 0.1;
/// Part of a run over which the KL term grows to its full weight. At full weight from the start, weights that have not
/// found their use yet are pressed to zero, and the learned prior keeps them there.
const WARM_UP: f64 = 0.5;
/// Part of a run before the prior is learned, for the same reason.
const PRIOR_FROM: f64 = 0.1;
/// Steps between two looks at the prior.
const PRIOR_EVERY: usize = 8;
/// Draws by which held-out rows are scored.
const SCORE_DRAWS: usize = 32;
/// Least log-likelihood of a held-out row.
const WORST_SCORE: f64 = -1e30;
/// Looks at the held-out rows in one run.
const N_LOOKS: usize = 25;
/// Rows scored at once.
const SCORE_ROWS: usize = 256;

/// Hears of every epoch, with the latest look; may ask to stop.
pub(super) type Hear<'a> = &'a mut dyn FnMut(usize, &CurvePoint) -> ControlFlow<()>;

/// Trains a tree of the planned shape.
///
/// # Errors
/// When asked to stop, or when the ELBO leaves the finite numbers.
pub(super) fn train(
    problem: &Problem,
    params: &VstParams,
    plan: &Plan,
    key: Key,
    hear: Hear<'_>,
) -> Result<Trained> {
    let mut state = State::new(problem, params, plan, key);
    let n_rows = problem.train.n_rows();
    let mut order: Vec<usize> = (0..n_rows).collect();
    let steps_per_epoch = n_rows.div_ceil(plan.batch_size);
    let n_steps = plan.n_epochs * steps_per_epoch;
    let look_every = plan.n_epochs.div_ceil(N_LOOKS);
    let mut best: Option<(f64, LowRank, Vec<f64>)> = None;
    let mut curve = Vec::new();
    let mut latest = CurvePoint {
        epoch: 0,
        elbo: f64::NAN,
        held_out: None,
    };
    for epoch in 0..plan.n_epochs {
        shuffle(&mut key.child(3).child(epoch as u64).rng(), &mut order);
        let mut score = 0.0;
        for (at, rows) in order.chunks(plan.batch_size).enumerate() {
            let step = epoch * steps_per_epoch + at;
            let progress = step as f64 / n_steps as f64;
            let rate = plan.learning_rate * cosine(progress);
            state.warm_up(progress);
            score += state.step(problem, rows, rate as f32);
        }
        let is_last = epoch + 1 == plan.n_epochs;
        if is_last || (epoch + 1) % look_every == 0 {
            let scores;
            (latest, scores) =
                state.look(problem, epoch + 1, score, key.child(4).child(epoch as u64));
            if !latest.elbo.is_finite() {
                let what = "the ELBO is not finite".to_owned();
                return Err(Error::Diverged {
                    step: epoch + 1,
                    what,
                });
            }
            curve.push(latest);
            // before the end of the warm-up the posterior is not yet that of the full KL term
            let is_warm = is_last || (epoch + 1) as f64 >= WARM_UP * plan.n_epochs as f64;
            if let Some(held_out) = latest.held_out
                && is_warm
                && best
                    .as_ref()
                    .is_none_or(|(top, ..)| held_out > *top || !params.early_stopping)
            {
                best = Some((held_out, state.posterior.clone(), scores));
            }
        }
        if hear(epoch + 1, &latest).is_break() {
            return Err(Error::Cancelled);
        }
    }
    let (held_out, posterior, row_scores) = best.unwrap_or((f64::NAN, state.posterior, Vec::new()));
    Ok(Trained {
        pass: state.pass,
        posterior,
        held_out,
        row_scores,
        curve,
    })
}

/// From one at the start to zero at the end.
fn cosine(progress: f64) -> f64 {
    0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
}

/// Everything a step touches; nothing is allocated inside a step.
pub(super) struct State {
    pass: Pass,
    posterior: LowRank,
    sampler: Sampler,
    adam: Adam,
    groups: Option<Groups>,
    precision: Vec<f32>,
    moments: Vec<f32>,
    gaussian: Gaussian,
    room: Workspace<f32>,
    slopes: Vec<f32>,
    batch: Gathered,
    kl_weight: f64,
    /// Part of the KL term that counts, and whether the prior is learned, at this point of the run.
    warmth: f64,
    learns_prior: bool,
    n_draws: usize,
    n_steps: usize,
}

impl State {
    pub(super) fn new(problem: &Problem, params: &VstParams, plan: &Plan, key: Key) -> Self {
        let layout = Layout {
            n_inputs: problem.encoder.n_inputs(),
            depth: plan.depth,
            mixing_levels: plan.mixing_levels,
            n_channels: problem.scale.n_channels,
            is_linear: plan.is_linear,
        };
        let pass = Pass {
            layout,
            law: problem.scale.law,
            beta: params.beta,
        };
        let posterior = start_posterior(problem, params, &layout, key.child(1));
        let n_weights = layout.n_weights();
        let batch_rows = plan
            .batch_size
            .min(problem.train.n_rows())
            .next_multiple_of(LANES);
        Self {
            pass,
            sampler: Sampler::new(&posterior, plan.n_draws),
            adam: Adam::new(posterior.values.len()),
            groups: groups(params, &layout, pass.law),
            precision: vec![(1.0 / params.prior_scale.powi(2)) as f32; n_weights],
            moments: vec![0.0; n_weights],
            gaussian: Gaussian::new(key.child(2)),
            room: Workspace::new(&pass, batch_rows, plan.n_draws),
            slopes: vec![0.0; plan.n_draws * n_weights],
            batch: Gathered::new(batch_rows, layout.width()),
            kl_weight: params.kl_weight,
            warmth: 1.0,
            learns_prior: true,
            n_draws: plan.n_draws,
            n_steps: 0,
            posterior,
        }
    }

    pub(super) fn layout(&self) -> Layout {
        self.pass.layout
    }

    /// Sets what depends on the part of the run that is done.
    fn warm_up(&mut self, progress: f64) {
        self.warmth = (progress / WARM_UP).min(1.0);
        self.learns_prior = progress >= PRIOR_FROM;
    }

    /// One step on the rows given; the mean over draws of their weighted log-likelihood.
    pub(super) fn step(&mut self, problem: &Problem, rows: &[usize], learning_rate: f32) -> f64 {
        if let Some(groups) = &self.groups
            && self.learns_prior
            && self.n_steps.is_multiple_of(PRIOR_EVERY)
        {
            self.posterior.second_moments(&mut self.moments);
            groups.learn(&self.moments, &mut self.precision);
        }
        self.n_steps += 1;
        self.sampler.draw(&self.posterior, &mut self.gaussian);
        let batch = self.batch.gather(&problem.train, rows);
        let sum = log_likelihood(
            &self.pass,
            &batch,
            &self.sampler.draws,
            &mut self.slopes,
            &mut self.room,
        );
        // sum_i w_i ll_i is estimated by n/B times the batch's; the loss is the ELBO per unit of weight
        let total = problem.train.total_weight;
        let share = problem.train.n_rows() as f64 / (rows.len() as f64 * total);
        let scale = LossScale {
            likelihood: (share / self.n_draws as f64) as f32,
            kl: (self.warmth * self.kl_weight / total) as f32,
        };
        self.sampler
            .pull_back(&self.posterior, &self.slopes, &self.precision, scale);
        self.adam.step(
            &mut self.posterior.values,
            &self.sampler.gradient,
            learning_rate,
        );
        sum / self.n_draws as f64
    }

    /// Where training stands, and the log-likelihood of each held-out row.
    fn look(
        &self,
        problem: &Problem,
        epoch: usize,
        score: f64,
        key: Key,
    ) -> (CurvePoint, Vec<f64>) {
        let kl = self.posterior.kl(&self.precision);
        let elbo = (score - self.kl_weight * kl) / problem.train.total_weight;
        let scores = problem
            .held_out
            .as_ref()
            .map(|rows| score_rows(&self.pass, &self.posterior, rows, key));
        let held_out = (problem.held_out.as_ref())
            .zip(scores.as_ref())
            .map(|(rows, scores)| rows.mean(scores));
        let point = CurvePoint {
            epoch,
            elbo,
            held_out,
        };
        (point, scores.unwrap_or_default())
    }
}

fn start_posterior(problem: &Problem, params: &VstParams, layout: &Layout, key: Key) -> LowRank {
    let n_weights = layout.n_weights();
    let rank = params.rank.min(n_weights);
    let mut values = start::weights(problem, layout, params.beta, key.child(1));
    let sd = START_SD * params.prior_scale.min(1.0);
    values.resize(2 * n_weights, sd.ln() as f32);
    let mut factors = vec![0.0; rank * n_weights];
    Gaussian::new(key.child(2)).fill(&mut factors);
    let spread = (START_CORRELATION / (rank as f64).sqrt()) as f32;
    values.extend(factors.iter().map(|factor| spread * factor));
    LowRank {
        n_weights,
        rank,
        values,
    }
}

/// Groups of weights that share a prior variance: kind of weight, and for relevance determination also the input.
fn groups(params: &VstParams, layout: &Layout, law: Law) -> Option<Groups> {
    if params.prior == Prior::Fixed {
        return None;
    }
    let width = layout.width();
    let by_input = params.prior == Prior::Ard;
    // the bias is a group of its own: it carries levels, not slopes
    let group = |kind: usize, input: usize| {
        let place = if by_input {
            input
        } else {
            usize::from(input == layout.n_inputs)
        };
        (kind * width + place) as u32
    };
    let mut of_weight = vec![0; layout.n_weights()];
    for gate in 0..layout.n_gates() {
        for (input, at) in layout.gate(gate).enumerate() {
            of_weight[at] = group(0, input);
        }
    }
    for channel in 0..layout.n_channels {
        // mean and scale are different kinds; logits are all of one
        let kind = if law == Law::Categorical {
            1
        } else {
            1 + channel
        };
        for leaf in 0..layout.n_leaves() {
            let range = layout.leaf(channel, leaf);
            let first_input = width - range.len();
            for (offset, at) in range.enumerate() {
                of_weight[at] = group(kind, first_input + offset);
            }
        }
    }
    Some(Groups::new(of_weight, params.prior_scale))
}

/// Log-likelihood of each row under draws of the posterior, in standard units.
pub(super) fn score_rows(pass: &Pass, posterior: &LowRank, rows: &Coded, key: Key) -> Vec<f64> {
    let mut sampler = Sampler::new(posterior, SCORE_DRAWS);
    sampler.draw(posterior, &mut Gaussian::new(key));
    let mut gathered = Gathered::new(SCORE_ROWS, pass.layout.width());
    let mut room = Workspace::new(pass, SCORE_ROWS, SCORE_DRAWS);
    let order: Vec<usize> = (0..rows.n_rows()).collect();
    let mut scores = Vec::with_capacity(rows.n_rows());
    for chunk in order.chunks(SCORE_ROWS) {
        let batch = gathered.gather(rows, chunk);
        row_scores(pass, &batch, &sampler.draws, &mut room);
        let stride = batch.target.len();
        for at in 0..chunk.len() {
            // a row far beyond every draw overflows single precision: the worst score, but a number
            let score = |draw: usize| f64::from(room.scores[draw * stride + at]).max(WORST_SCORE);
            let top = (0..SCORE_DRAWS)
                .map(score)
                .fold(f64::NEG_INFINITY, f64::max);
            let mean = (0..SCORE_DRAWS)
                .map(|draw| (score(draw) - top).exp())
                .sum::<f64>()
                / SCORE_DRAWS as f64;
            scores.push(top + mean.ln());
        }
    }
    scores
}

/// Rows of a batch, copied side by side; padding rows have weight 0.
struct Gathered {
    inputs: Vec<f32>,
    target: Vec<f32>,
    weight: Vec<f32>,
    width: usize,
}

impl Gathered {
    fn new(max_rows: usize, width: usize) -> Self {
        let rows = max_rows.next_multiple_of(LANES);
        Self {
            inputs: vec![0.0; rows * width],
            target: vec![0.0; rows],
            weight: vec![0.0; rows],
            width,
        }
    }

    fn gather(&mut self, from: &Coded, rows: &[usize]) -> Batch<'_, f32> {
        let padded = rows.len().next_multiple_of(LANES);
        for (at, &row) in rows.iter().enumerate() {
            let source = &from.inputs[row * self.width..(row + 1) * self.width];
            self.inputs[at * self.width..(at + 1) * self.width].copy_from_slice(source);
            self.target[at] = from.target[row];
            self.weight[at] = from.weight[row];
        }
        self.weight[rows.len()..padded].fill(0.0);
        Batch {
            inputs: &self.inputs[..padded * self.width],
            target: &self.target[..padded],
            weight: &self.weight[..padded],
        }
    }
}
