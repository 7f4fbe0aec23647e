//! The choice of shape and encoding by held-out log-likelihood: short runs of many, longer runs of the best.

use std::ops::ControlFlow;

use crate::data::dataset::Dataset;
use crate::data::encoding::{Encoder, Encoding, Rotation, Scaling};
use crate::error::{Error, Result};
use crate::fit::Run;
use crate::inference::lowrank_gaussian::LowRank;
use crate::inference::schedule::TrainingSchedule;
use crate::model::{CurvePoint, Trial};
use crate::observer::Progress;
use crate::rng::Key;
use crate::soft::additive::AdditiveLayout;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::Layout;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::{EncodedSplit, TargetScale};
use crate::variational::init;
use crate::variational::optimizer_state::start_posterior;
use crate::variational::options::{Leaf, LeafMixing};
use crate::variational::train::{OnEpoch, Trained, TrainingRun, train};

/// A shape and an encoding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) depth: usize,
    pub(crate) mixing_levels: usize,
    pub(crate) leaf: Leaf,
    pub(crate) encoding: Encoding,
}

impl Candidate {
    /// The tree and its posterior before training.
    pub(crate) fn begin(
        &self,
        config: &SoftTreeConfig,
        split: &EncodedSplit,
        key: Key,
    ) -> (SoftTreeSpec, LowRank) {
        let layout = Layout {
            n_inputs: split.encoder.n_inputs(),
            depth: self.depth,
            mixing_levels: self.mixing_levels,
            n_channels: split.scale.n_channels,
            is_linear: self.leaf == Leaf::Linear,
        };
        let likelihood = split.scale.likelihood;
        let spec = SoftTreeSpec {
            stack: AdditiveLayout::single(layout),
            likelihood,
            beta: config.beta,
        };
        let weights = init::weights(
            &split.train,
            likelihood,
            None,
            &layout,
            config.beta,
            key.child(1),
        );
        (spec, start_posterior(config, weights, key.child(2)))
    }

    /// As a user reads it.
    pub(crate) fn describe(&self) -> String {
        let mixing = match self.mixing_levels {
            0 => "blend".to_owned(),
            levels if levels == self.depth => "mixture".to_owned(),
            levels => format!("hybrid({levels})"),
        };
        let scaling = if self.encoding.scaling == Scaling::Quantile {
            ", quantile scaling"
        } else {
            ""
        };
        let rotation = match self.encoding.rotation {
            Rotation::None => "",
            Rotation::Pca => ", rotation pca",
            Rotation::Both => ", rotation both",
        };
        let squares = if self.encoding.squares {
            ", squares"
        } else {
            ""
        };
        let leaf = if self.leaf == Leaf::Constant {
            ", constant leaves"
        } else {
            ""
        };
        let depth = self.depth;
        format!("{mixing}, depth {depth}{leaf}{scaling}{rotation}{squares}")
    }
}

/// Depth, mixing levels and leaves.
type Shape = (usize, usize, Leaf);

/// Shapes tried by default.
const SHAPES: &[Shape] = &[
    (2, 0, Leaf::Linear),
    (3, 0, Leaf::Linear),
    (4, 0, Leaf::Linear),
    (5, 0, Leaf::Linear),
    (4, 1, Leaf::Linear),
    (4, 2, Leaf::Linear),
    (5, 3, Leaf::Linear),
    (5, 5, Leaf::Linear),
    (6, 4, Leaf::Linear),
    (7, 5, Leaf::Linear),
    (5, 0, Leaf::Constant),
    (5, 2, Leaf::Constant),
];
/// Shape where nothing is held out to choose by.
const SAFE_SHAPE: (usize, usize) = (2, 1);
/// Candidates this far behind the best are not averaged with it: a useless one of four would cost ln(4/3) = 0.29 nats.
const MARGIN: f64 = 0.1;
/// Nor are those behind by more than this many standard errors of the difference on the held-out rows.
const STANDARD_ERRORS: f64 = 2.0;
/// Rows that a leaf's worth of weights needs at the least.
const ROWS_PER_LEAF: usize = 4;

/// What a choice works with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SelectionContext<'a> {
    pub(crate) config: &'a SoftTreeConfig,
    pub(crate) data: &'a Dataset,
    pub(crate) held_out: Option<&'a Dataset>,
    /// Training rows before equal ones were merged; a weight counts as that many rows.
    pub(crate) n_rows: usize,
    pub(crate) scale: TargetScale,
    /// TrainingSchedule of a full run.
    pub(crate) schedule: TrainingSchedule,
    pub(crate) run: &'a Run<'a>,
}

impl SelectionContext<'_> {
    pub(crate) fn split(&self, encoding: Encoding) -> EncodedSplit {
        EncodedSplit::new(self.data, self.held_out, self.scale, encoding)
    }
}

/// Trains one tree of a candidate's shape.
pub(crate) fn train_one(
    context: &SelectionContext<'_>,
    split: &EncodedSplit,
    candidate: &Candidate,
    schedule: TrainingSchedule,
    key: Key,
    on_epoch: OnEpoch<'_>,
) -> Result<Trained> {
    let (spec, start) = candidate.begin(context.config, split, key.child(1));
    let training_run = TrainingRun {
        config: context.config,
        spec,
        train: &split.train,
        held_out: split.held_out.as_ref(),
        start,
        schedule,
        is_warm: false,
        keeps_scale: false,
        redraw_offset: None,
    };
    train(&training_run, key, on_epoch)
}

/// A candidate and its run in the last round, where there was one.
#[derive(Debug, Clone)]
pub(crate) struct RankedCandidate {
    pub(crate) candidate: Candidate,
    pub(crate) short_run: Option<Trained>,
}

/// The candidates of the last round that come near the best, best first, and what was tried.
pub(crate) fn choose(context: &SelectionContext<'_>) -> Result<(Vec<RankedCandidate>, Vec<Trial>)> {
    let config = context.config;
    let encoding = Encoding {
        scaling: config.scaling.unwrap_or(Scaling::Standard),
        rotation: config.rotation.unwrap_or(Rotation::None),
        squares: config.squares.unwrap_or(false),
        max_categories: config.max_categories,
    };
    let mut field: Vec<RankedCandidate> = shapes(context)
        .into_iter()
        .map(|(depth, mixing_levels, leaf)| {
            RankedCandidate::new(Candidate {
                depth,
                mixing_levels,
                leaf,
                encoding,
            })
        })
        .collect();
    let mut trials = Vec::new();
    if context.held_out.is_none() {
        return Ok((field, trials));
    }
    if field.len() > 1 {
        field = best(context, field, 0.1, "choosing", &mut trials)?;
        if config.prefers_blend {
            field = blends_first(field);
        }
        field.truncate(3);
    }
    let encodings = encodings(context, encoding);
    if encodings.len() > 1 || field.len() > 1 {
        let leader = field[0].candidate;
        let others = encodings.into_iter().skip(1);
        field.extend(others.map(|encoding| RankedCandidate::new(Candidate { encoding, ..leader })));
        field = best(context, field, 0.25, "choosing again", &mut trials)?;
        field = within_margin(field);
        if config.prefers_blend && field.iter().any(RankedCandidate::is_blend) {
            field.retain(RankedCandidate::is_blend);
        }
    }
    Ok((field, trials))
}

/// The blends that come near the best, then the others; each in the order of their scores.
fn blends_first(field: Vec<RankedCandidate>) -> Vec<RankedCandidate> {
    let near = within_margin(field.clone());
    let is_near_blend = |ranked: &RankedCandidate| {
        let candidate = &ranked.candidate;
        ranked.is_blend() && near.iter().any(|near| near.candidate == *candidate)
    };
    let (mut blends, others): (Vec<_>, Vec<_>) = field.into_iter().partition(is_near_blend);
    blends.extend(others);
    blends
}

/// The candidates that held-out rows cannot tell from the first, or hardly.
fn within_margin(mut field: Vec<RankedCandidate>) -> Vec<RankedCandidate> {
    let Some(top) = field.first().and_then(|first| first.short_run.clone()) else {
        return field;
    };
    field.retain(|ranked| {
        (ranked.short_run.as_ref()).is_some_and(|run| is_near(&top.row_scores, &run.row_scores))
    });
    field
}

/// Whether a candidate's scores are behind the best one's by no more than [`MARGIN`] and than chance would have it.
fn is_near(top: &[f64], scores: &[f64]) -> bool {
    let n = top.len() as f64;
    let behind = |at: usize| top[at] - scores[at];
    let mean = (0..top.len()).map(behind).sum::<f64>() / n;
    let square = |at: usize| (behind(at) - mean).powi(2);
    let variance = (0..top.len()).map(square).sum::<f64>() / n;
    let error = (variance / n).sqrt();
    mean <= (STANDARD_ERRORS * error).min(MARGIN)
}

/// Shapes that the parameters leave open.
fn shapes(context: &SelectionContext<'_>) -> Vec<Shape> {
    let config = context.config;
    let leaf = config.leaf.unwrap_or(Leaf::Linear);
    let levels = |depth: usize| match config.leaf_mixing {
        Some(LeafMixing::Blend) => Some(0),
        Some(LeafMixing::Mixture) => Some(depth),
        Some(LeafMixing::Hybrid) => Some(config.mixing_levels.unwrap_or(depth.div_ceil(2))),
        None => None,
    };
    let enough = |depth: usize| context.n_rows >= ROWS_PER_LEAF << depth;
    let mut shapes: Vec<Shape> = match (config.depth, config.leaf_mixing) {
        (Some(depth), Some(_)) => vec![(depth, levels(depth).unwrap_or(0), leaf)],
        (Some(depth), None) => (0..=depth).map(|levels| (depth, levels, leaf)).collect(),
        (None, Some(_)) => (1..=6)
            .filter(|&d| enough(d))
            .map(|d| (d, levels(d).unwrap_or(0).min(d), leaf))
            .collect(),
        (None, None) => open_shapes(config.leaf)
            .filter(|&(depth, ..)| enough(depth))
            .collect(),
    };
    if shapes.is_empty() {
        shapes.push((1, levels(1).unwrap_or(0).min(1), leaf));
    }
    if context.held_out.is_none() && shapes.len() > 1 {
        let (depth, mixing) = SAFE_SHAPE;
        let depth = config
            .depth
            .unwrap_or(if enough(depth) { depth } else { 1 });
        shapes = vec![(depth, levels(depth).unwrap_or(mixing.min(depth)), leaf)];
    }
    shapes
}

/// The default shapes; where the leaves are given, those tried with linear ones, with the leaves given.
fn open_shapes(leaf: Option<Leaf>) -> impl Iterator<Item = Shape> {
    SHAPES
        .iter()
        .filter(move |shape| leaf.is_none() || shape.2 == Leaf::Linear)
        .map(move |&(depth, levels, own)| (depth, levels, leaf.unwrap_or(own)))
}

/// Encodings that the parameters leave open, the plain one first.
fn encodings(context: &SelectionContext<'_>, plain: Encoding) -> Vec<Encoding> {
    let config = context.config;
    let features = context.data.features();
    let rotate = config.rotation.is_none() && Encoder::can_rotate(features);
    let square = config.squares.is_none() && Encoder::can_square(features);
    let rotated = Encoding {
        rotation: Rotation::Pca,
        ..plain
    };
    let mut all = vec![plain];
    all.extend(rotate.then_some(rotated));
    all.extend(config.scaling.is_none().then_some(Encoding {
        scaling: Scaling::Quantile,
        ..plain
    }));
    all.extend(square.then_some(Encoding {
        squares: true,
        ..plain
    }));
    // squares of rotated inputs are products of the inputs as well: a quadratic form
    all.extend((rotate && square).then_some(Encoding {
        squares: true,
        ..rotated
    }));
    all
}

/// Candidates after runs of `share` of the full length, best first. A run that diverges comes last.
fn best(
    context: &SelectionContext<'_>,
    field: Vec<RankedCandidate>,
    share: f64,
    stage: &str,
    trials: &mut Vec<Trial>,
) -> Result<Vec<RankedCandidate>> {
    let runs = context.run.pool.map(field.len(), |at| {
        let place = (stage, at, field.len());
        attempt(context, &field[at].candidate, share, place)
    });
    let mut ranked = Vec::with_capacity(field.len());
    for (RankedCandidate { candidate, .. }, run) in field.into_iter().zip(runs) {
        let short_run = match run {
            Ok(trained) => Some(trained),
            Err(Error::Diverged { .. }) => None,
            Err(error) => return Err(error),
        };
        if let Some(trained) = &short_run {
            let what = candidate.describe();
            let held_out = trained.held_out;
            trials.push(Trial { what, held_out });
        }
        ranked.push(RankedCandidate {
            candidate,
            short_run,
        });
    }
    ranked.sort_by(|a, b| b.held_out().total_cmp(&a.held_out()));
    Ok(ranked)
}

impl RankedCandidate {
    fn new(candidate: Candidate) -> Self {
        Self {
            candidate,
            short_run: None,
        }
    }

    fn is_blend(&self) -> bool {
        self.candidate.mixing_levels == 0
    }

    /// Held-out log-likelihood of the short run; least where there was none.
    fn held_out(&self) -> f64 {
        let found = self.short_run.as_ref().map(|trained| trained.held_out);
        found
            .filter(|held_out| !held_out.is_nan())
            .unwrap_or(f64::NEG_INFINITY)
    }

    /// The better of a full run and the short one: where rows are few, less training may be better training.
    pub(crate) fn better(&self, full: Trained) -> Trained {
        match &self.short_run {
            Some(short) if short.held_out > full.held_out => short.clone(),
            _ => full,
        }
    }
}

fn attempt(
    context: &SelectionContext<'_>,
    candidate: &Candidate,
    share: f64,
    (stage, at, n): (&str, usize, usize),
) -> Result<Trained> {
    let split = context.split(candidate.encoding);
    let schedule = context.schedule.part(share);
    // all candidates of a stage share their random numbers: differences are then due to the candidates
    let key = context.run.key.child(10);
    let observer = context.run.observer;
    let mut on_epoch = |epoch: usize, point: &CurvePoint| -> ControlFlow<()> {
        let done = at * schedule.n_epochs + epoch;
        observer.step(&Progress {
            stage,
            done,
            total: n * schedule.n_epochs,
            elbo: Some(point.elbo).filter(|elbo| elbo.is_finite()),
            held_out: point.held_out,
        })
    };
    train_one(context, &split, candidate, schedule, key, &mut on_epoch)
}
