//! One training run: minibatch steps on the ELBO with a cosine step size, watched on held-out rows.

use std::ops::ControlFlow;

use crate::data::dataset::{Dataset, Target};
use crate::error::{Error, Result};
use crate::infer::adam::Adam;
use crate::infer::lowrank::{LossScale, LowRank, Sampler};
use crate::infer::prior::Groups;
use crate::numerics::gaussian::Gaussian;
use crate::numerics::real::LANES;
use crate::posterior::CurvePoint;
use crate::rng::{Key, shuffle};
use crate::soft::kernel::Pass;
use crate::soft::law::{HALF_LN_TWO_PI, Law};
use crate::soft::layout::Layout;
use crate::soft::stack::Stack;
use crate::soft::tree::{Batch, Workspace, log_likelihood, row_scores};
use crate::variational::options::Prior;
use crate::variational::problem::Coded;
use crate::variational::recipe::{Noise, Recipe};

/// How long a run is, and how large its steps are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    pub(crate) n_epochs: usize,
    pub(crate) batch_size: usize,
    pub(crate) n_draws: usize,
    pub(crate) learning_rate: f64,
}

/// Steps of a full run, unless epochs are given.
const N_STEPS: usize = 12_000;
/// Fewest and most passes over the rows, unless given.
const EPOCHS: (usize, usize) = (40, 1500);
/// Rows from which the noise of the minibatches, not of the draws, rules a step.
const MANY_ROWS: usize = 3000;

impl Pace {
    /// That of a full run on these rows.
    pub(crate) fn full(recipe: &Recipe, data: &Dataset) -> Self {
        let n_rows = data.n_rows();
        let learning_rate = match data.target() {
            Target::Numeric(_) => 0.01,
            Target::Classes(_) => 0.02,
        };
        let batch_size = recipe.batch_size.unwrap_or(match n_rows {
            ..2_000 => 64,
            2_000..10_000 => 128,
            _ => 256,
        });
        let steps_per_epoch = n_rows.div_ceil(batch_size);
        let n_epochs = (N_STEPS / steps_per_epoch).clamp(EPOCHS.0, EPOCHS.1);
        let n_draws = if n_rows < MANY_ROWS { 4 } else { 2 };
        Self {
            n_epochs: recipe.n_epochs.unwrap_or(n_epochs),
            batch_size,
            n_draws: recipe.n_draws.unwrap_or(n_draws),
            learning_rate: recipe.learning_rate.unwrap_or(learning_rate),
        }
    }

    /// The same for a part of the length.
    pub(crate) fn part(self, share: f64) -> Self {
        let n_epochs = (self.n_epochs as f64 * share).ceil().max(1.0) as usize;
        Self { n_epochs, ..self }
    }
}

/// What a run trains, and where it starts.
pub(crate) struct Job<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) pass: Pass,
    pub(crate) train: &'a Coded,
    pub(crate) held_out: Option<&'a Coded>,
    pub(crate) start: LowRank,
    pub(crate) pace: Pace,
    /// Whether the start is a fitted posterior: then the KL term counts in full at once.
    pub(crate) is_warm: bool,
    /// What earlier trees say, drawn anew for every epoch; none where it stays as the rows have it.
    pub(crate) refresh: Option<&'a dyn Fn(usize) -> Vec<f32>>,
}

/// A trained posterior.
#[derive(Debug, Clone)]
pub(crate) struct Trained {
    pub(crate) pass: Pass,
    pub(crate) posterior: LowRank,
    /// Mean held-out log-likelihood in standard units at the epoch kept; NaN where nothing is held out.
    pub(crate) held_out: f64,
    /// Log-likelihood of each held-out row at the epoch kept.
    pub(crate) row_scores: Vec<f64>,
    pub(crate) curve: Vec<CurvePoint>,
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
pub(crate) type Hear<'a> = &'a mut dyn FnMut(usize, &CurvePoint) -> ControlFlow<()>;

/// Trains a posterior.
///
/// # Errors
/// When asked to stop, or when the ELBO leaves the finite numbers.
pub(crate) fn train(job: &Job<'_>, key: Key, hear: Hear<'_>) -> Result<Trained> {
    let mut state = State::new(job, key);
    let pace = &job.pace;
    let n_rows = job.train.n_rows();
    let mut order: Vec<usize> = (0..n_rows).collect();
    let steps_per_epoch = n_rows.div_ceil(pace.batch_size);
    let n_steps = pace.n_epochs * steps_per_epoch;
    let look_every = pace.n_epochs.div_ceil(N_LOOKS);
    let mut best: Option<Best> = None;
    let mut curve = Vec::new();
    let mut latest = CurvePoint {
        epoch: 0,
        elbo: f64::NAN,
        held_out: None,
    };
    for epoch in 0..pace.n_epochs {
        shuffle(&mut key.child(3).child(epoch as u64).rng(), &mut order);
        if let Some(refresh) = job.refresh {
            state.given = refresh(epoch);
        }
        let mut score = 0.0;
        for (at, rows) in order.chunks(pace.batch_size).enumerate() {
            let step = epoch * steps_per_epoch + at;
            let progress = step as f64 / n_steps as f64;
            let rate = pace.learning_rate * cosine(progress);
            if !job.is_warm {
                state.warm_up(progress);
            }
            score += state.step(job.train, rows, rate as f32);
        }
        let is_last = epoch + 1 == pace.n_epochs;
        if is_last || (epoch + 1) % look_every == 0 {
            let scores;
            (latest, scores) = state.look(job, epoch + 1, score, key.child(4).child(epoch as u64));
            if !latest.elbo.is_finite() {
                let what = "the ELBO is not finite".to_owned();
                return Err(Error::Diverged {
                    step: epoch + 1,
                    what,
                });
            }
            curve.push(latest);
            // before the end of the warm-up the posterior is not yet that of the full KL term
            let is_warm =
                job.is_warm || is_last || (epoch + 1) as f64 >= WARM_UP * pace.n_epochs as f64;
            if let Some(held_out) = latest.held_out
                && is_warm
                && best
                    .as_ref()
                    .is_none_or(|best| held_out > best.held_out || !job.recipe.early_stopping)
            {
                best = Some(Best {
                    held_out,
                    pass: state.pass,
                    posterior: state.posterior.clone(),
                    scores,
                });
            }
        }
        state.learn_noise(job, score);
        if hear(epoch + 1, &latest).is_break() {
            return Err(Error::Cancelled);
        }
    }
    let best = best.unwrap_or(Best {
        held_out: f64::NAN,
        pass: state.pass,
        posterior: state.posterior,
        scores: Vec::new(),
    });
    Ok(Trained {
        pass: best.pass,
        posterior: best.posterior,
        held_out: best.held_out,
        row_scores: best.scores,
        curve,
    })
}

/// The fits that did not diverge; an error where all did, or where one was stopped.
///
/// # Errors
/// As said.
pub(crate) fn converged<T>(fits: Vec<Result<T>>) -> Result<Vec<T>> {
    let mut kept = Vec::with_capacity(fits.len());
    let mut failure = None;
    for fit in fits {
        match fit {
            Ok(fit) => kept.push(fit),
            Err(error @ Error::Diverged { .. }) => failure = Some(error),
            Err(error) => return Err(error),
        }
    }
    match failure {
        Some(error) if kept.is_empty() => Err(error),
        _ => Ok(kept),
    }
}

/// Where held-out rows were foretold best.
struct Best {
    held_out: f64,
    pass: Pass,
    posterior: LowRank,
    scores: Vec<f64>,
}

/// From one at the start to zero at the end.
fn cosine(progress: f64) -> f64 {
    0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
}

/// Everything a step touches; nothing is allocated inside a step.
pub(crate) struct State {
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
    /// What earlier trees say in this epoch, if that changes.
    given: Vec<f32>,
    kl_weight: f64,
    /// Part of the KL term that counts, and whether the prior is learned, at this point of the run.
    warmth: f64,
    learns_prior: bool,
    n_draws: usize,
    n_steps: usize,
}

impl State {
    pub(crate) fn new(job: &Job<'_>, key: Key) -> Self {
        let (pass, recipe, pace) = (job.pass, job.recipe, &job.pace);
        let stack = &pass.stack;
        let n_weights = stack.n_weights();
        let batch_rows = pace
            .batch_size
            .min(job.train.n_rows())
            .next_multiple_of(LANES);
        let posterior = job.start.clone();
        Self {
            sampler: Sampler::new(&posterior, pace.n_draws),
            adam: Adam::new(posterior.values.len()),
            groups: groups(recipe, stack, pass.law),
            precision: vec![(1.0 / recipe.prior_scale.powi(2)) as f32; n_weights],
            moments: vec![0.0; n_weights],
            gaussian: Gaussian::new(key.child(2)),
            room: Workspace::new(&pass, batch_rows, pace.n_draws),
            slopes: vec![0.0; pace.n_draws * n_weights],
            batch: Gathered::new(batch_rows, stack),
            given: Vec::new(),
            kl_weight: recipe.kl_weight,
            warmth: 1.0,
            learns_prior: true,
            n_draws: pace.n_draws,
            n_steps: 0,
            posterior,
            pass,
        }
    }

    /// Sets what depends on the part of the run that is done.
    fn warm_up(&mut self, progress: f64) {
        self.warmth = (progress / WARM_UP).min(1.0);
        self.learns_prior = progress >= PRIOR_FROM;
    }

    /// One step on the rows given; the mean over draws of their weighted log-likelihood.
    pub(crate) fn step(&mut self, train: &Coded, rows: &[usize], learning_rate: f32) -> f64 {
        if let Some(groups) = &self.groups
            && self.learns_prior
            && self.n_steps.is_multiple_of(PRIOR_EVERY)
        {
            self.posterior.second_moments(&mut self.moments);
            groups.learn(&self.moments, &mut self.precision);
        }
        self.n_steps += 1;
        self.sampler.draw(&self.posterior, &mut self.gaussian);
        let given = if self.given.is_empty() {
            &train.given
        } else {
            &self.given
        };
        let batch = self.batch.gather(train, given, rows);
        let sum = log_likelihood(
            &self.pass,
            &batch,
            &self.sampler.draws,
            &mut self.slopes,
            &mut self.room,
        );
        // sum_i w_i ll_i is estimated by n/B times the batch's; the loss is the ELBO per unit of weight
        let total = train.total_weight;
        let share = train.n_rows() as f64 / (rows.len() as f64 * total);
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

    /// Sets a constant noise to the mode of its posterior, given the squared residuals of the last epoch, which its score tells.
    fn learn_noise(&mut self, job: &Job<'_>, score: f64) {
        if let (Noise::Constant { shape, scale }, Law::KnownNoise { sd }) =
            (job.recipe.noise, self.pass.law)
        {
            let total = job.train.total_weight;
            let squares = -2.0 * sd * sd * (score + total * (sd.ln() + HALF_LN_TWO_PI));
            let variance = (scale + 0.5 * squares.max(0.0)) / (shape + 0.5 * total + 1.0);
            self.pass.law = Law::KnownNoise {
                sd: variance.sqrt(),
            };
        }
    }

    /// Where training stands, and the log-likelihood of each held-out row.
    fn look(&self, job: &Job<'_>, epoch: usize, score: f64, key: Key) -> (CurvePoint, Vec<f64>) {
        let kl = self.posterior.kl(&self.precision);
        let elbo = (score - self.kl_weight * kl) / job.train.total_weight;
        let draws = draws_of(&self.posterior, SCORE_DRAWS, key);
        let scores = job
            .held_out
            .map(|rows| score_rows(&self.pass, &draws, rows));
        let held_out = (job.held_out)
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

/// A posterior around the weights given, narrow and hardly correlated.
pub(crate) fn start_posterior(recipe: &Recipe, mut weights: Vec<f32>, key: Key) -> LowRank {
    let n_weights = weights.len();
    let rank = recipe.rank.min(n_weights);
    let sd = START_SD * recipe.prior_scale.min(1.0);
    weights.resize(2 * n_weights, sd.ln() as f32);
    let mut factors = vec![0.0; rank * n_weights];
    Gaussian::new(key).fill(&mut factors);
    let spread = (START_CORRELATION / (rank as f64).sqrt()) as f32;
    weights.extend(factors.iter().map(|factor| spread * factor));
    LowRank {
        n_weights,
        rank,
        values: weights,
    }
}

/// Draws of a posterior, one after the other.
pub(crate) fn draws_of(posterior: &LowRank, n_draws: usize, key: Key) -> Vec<f32> {
    let mut sampler = Sampler::new(posterior, n_draws);
    sampler.draw(posterior, &mut Gaussian::new(key));
    sampler.draws
}

/// Groups of weights that share a prior variance: kind of weight, for relevance determination also the input, and the tree: the first
/// one carries more than those that are added to it.
fn groups(recipe: &Recipe, stack: &Stack, law: Law) -> Option<Groups> {
    if recipe.prior == Prior::Fixed {
        return None;
    }
    let mut of_weight = vec![0; stack.n_weights()];
    let n_groups = (1 + stack.first.n_channels) * stack.width();
    for (tree, (layout, range)) in stack.ranges().enumerate() {
        let by_input = recipe.prior == Prior::Ard;
        group_tree(&layout, law, by_input, &mut of_weight[range.clone()]);
        for group in &mut of_weight[range] {
            *group += (tree * n_groups) as u32;
        }
    }
    Some(Groups::new(of_weight, recipe.prior_scale))
}

fn group_tree(layout: &Layout, law: Law, by_input: bool, of_weight: &mut [u32]) {
    let width = layout.width();
    // the bias is a group of its own: it carries levels, not slopes
    let group = |kind: usize, input: usize| {
        let place = if by_input {
            input
        } else {
            usize::from(input == layout.n_inputs)
        };
        (kind * width + place) as u32
    };
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
}

/// Log-likelihood of each row under draws of the weights, in standard units.
pub(crate) fn score_rows(pass: &Pass, draws: &[f32], rows: &Coded) -> Vec<f64> {
    let n_draws = draws.len() / pass.stack.n_weights();
    let mut gathered = Gathered::new(SCORE_ROWS, &pass.stack);
    let mut room = Workspace::new(pass, SCORE_ROWS, n_draws);
    let order: Vec<usize> = (0..rows.n_rows()).collect();
    let mut scores = Vec::with_capacity(rows.n_rows());
    for chunk in order.chunks(SCORE_ROWS) {
        let batch = gathered.gather(rows, &rows.given, chunk);
        row_scores(pass, &batch, draws, &mut room);
        let stride = batch.target.len();
        for at in 0..chunk.len() {
            // a row far beyond every draw overflows single precision: the worst score, but a number
            let score = |draw: usize| f64::from(room.scores[draw * stride + at]).max(WORST_SCORE);
            let top = (0..n_draws).map(score).fold(f64::NEG_INFINITY, f64::max);
            let mean = (0..n_draws)
                .map(|draw| (score(draw) - top).exp())
                .sum::<f64>()
                / n_draws as f64;
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
    given: Vec<f32>,
    width: usize,
    n_given: usize,
}

impl Gathered {
    fn new(max_rows: usize, stack: &Stack) -> Self {
        let rows = max_rows.next_multiple_of(LANES);
        let (width, n_given) = (stack.width(), stack.n_given());
        Self {
            inputs: vec![0.0; rows * width],
            target: vec![0.0; rows],
            weight: vec![0.0; rows],
            given: vec![0.0; rows * n_given],
            width,
            n_given,
        }
    }

    /// The rows of these numbers; `given` is what earlier trees say of all rows, row by row.
    fn gather(&mut self, from: &Coded, given: &[f32], rows: &[usize]) -> Batch<'_, f32> {
        let padded = rows.len().next_multiple_of(LANES);
        for (at, &row) in rows.iter().enumerate() {
            let source = &from.inputs[row * self.width..(row + 1) * self.width];
            self.inputs[at * self.width..(at + 1) * self.width].copy_from_slice(source);
            self.target[at] = from.target[row];
            self.weight[at] = from.weight[row];
            if self.n_given > 0 {
                let source = &given[row * self.n_given..(row + 1) * self.n_given];
                for (place, value) in self.given[at..].iter_mut().step_by(padded).zip(source) {
                    *place = *value;
                }
            }
        }
        self.weight[rows.len()..padded].fill(0.0);
        Batch {
            inputs: &self.inputs[..padded * self.width],
            target: &self.target[..padded],
            weight: &self.weight[..padded],
            given: &self.given[..padded * self.n_given],
        }
    }
}
