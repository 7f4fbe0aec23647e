//! Training a chain: round after round, with a validation score every few rounds.

use std::ops::ControlFlow;

use crate::boosting::chain::Chain;
use crate::boosting::early_stopping::{ValidationPoint, is_stale};
use crate::boosting::inputs::{BoostingData, BoostingSettings};
use crate::boosting::round::ChainTrainer;
use crate::boosting::validation_window::{ValidationWindow, mixture};
use crate::error::{Error, Result};
use crate::likelihood::{Likelihood, weighted_mean};
use crate::rng::Key;
use crate::stop::{self, Stop};

/// Rounds between two validation points.
const VALIDATE_EVERY: usize = 5;

mod streams {
    /// First stream of the parallel chains, beyond those of the rounds of the first chain.
    pub(super) const PARALLEL_CHAINS: u64 = 1 << 32;
}

/// A trained chain with its validation curve, which is empty without a validation set.
#[derive(Debug, Clone)]
pub(crate) struct TrainedChain {
    pub(crate) chain: Chain,
    pub(crate) curve: Vec<ValidationPoint>,
    /// Residual variance of the training rows under a likelihood without a scale of its own.
    pub(crate) dispersion: f64,
    /// Raw outputs of the leading training rows (rows x outputs), as many rows as the data ask for.
    pub(crate) kept_raw: Vec<f32>,
    /// Whether the observer stopped training.
    pub(crate) is_stopped: bool,
    /// Whether training reached its end.
    pub(crate) is_complete: bool,
}

/// A chain after a round of training.
pub(crate) struct RoundReport<'a> {
    /// Number of new trees.
    pub(crate) n_trees: usize,
    /// The last validation score.
    pub(crate) held_out: Option<f64>,
    /// Copies the chain as it is now.
    pub(crate) copy_chain: &'a dyn Fn() -> TrainedChain,
}

/// Callback after every round; it may stop training.
pub(crate) type OnRound<'a> = &'a mut dyn FnMut(&RoundReport<'_>) -> ControlFlow<Stop>;

/// Trains a chain, from the best constant or from the chain of a fitted model.
///
/// If `on_round` stops training and keeps the chain, the chain ends after the present round.
///
/// # Errors
/// When `on_round` discards the chain, or the gradients are not finite.
pub(crate) fn grow<const L: usize>(
    likelihood: &impl Likelihood<L>,
    data: &BoostingData<'_>,
    settings: &BoostingSettings,
    warm_start: Option<&Chain>,
    key: Key,
    on_round: OnRound<'_>,
) -> Result<TrainedChain> {
    let mut first = ChainTrainer::new(likelihood, *data, settings, warm_start, key);
    let parallel = (0..).zip(data.parallel_chains).map(|(at, &train)| {
        let data = BoostingData { train, ..*data };
        let key = key.child(streams::PARALLEL_CHAINS + at);
        ChainTrainer::new(likelihood, data, settings, warm_start, key)
    });
    let mut parallel: Vec<_> = parallel.collect();
    let mut window = ValidationWindow::new(settings.sampling);
    let mut curve = Vec::new();
    let n_earlier = warm_start.map_or(0, |chain| chain.trees.len());
    let (mut is_stopped, mut is_complete) = (false, true);
    if n_earlier > 0 {
        curve.extend(validate(&first, &parallel, data, &mut window, 0));
    }
    for n_trees in 1..=settings.n_trees {
        let round = n_earlier + n_trees - 1;
        first.round(round)?;
        for chain in &mut parallel {
            stop::check()?;
            chain.round(round)?;
        }
        if n_trees % VALIDATE_EVERY == 0 || n_trees == settings.n_trees {
            curve.extend(validate(&first, &parallel, data, &mut window, n_trees));
            if is_stale(&curve, settings.patience) {
                break;
            }
        }
        let report = RoundReport {
            n_trees,
            held_out: curve.last().map(|point| point.held_out),
            copy_chain: &|| first.trained(n_earlier),
        };
        match on_round(&report) {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(Stop::Discard) => return Err(Error::Cancelled),
            ControlFlow::Break(Stop::Keep) => {
                if curve.last().is_none_or(|point| point.n_trees < n_trees) {
                    curve.extend(validate(&first, &parallel, data, &mut window, n_trees));
                }
                is_stopped = true;
                is_complete = n_trees == settings.n_trees;
                break;
            }
        }
    }
    Ok(TrainedChain {
        curve,
        is_stopped,
        is_complete,
        ..first.trained(n_earlier)
    })
}

/// Scores the chains after `n_trees` rounds, if there is a validation set.
fn validate<M: Likelihood<L>, const L: usize>(
    first: &ChainTrainer<'_, M, L>,
    parallel: &[ChainTrainer<'_, M, L>],
    data: &BoostingData<'_>,
    window: &mut ValidationWindow,
    n_trees: usize,
) -> Option<ValidationPoint> {
    let held_out = data.held_out?;
    let chains = std::iter::once(first).chain(parallel);
    let log_densities: Vec<Vec<f64>> = chains
        .filter_map(ChainTrainer::held_out_log_densities)
        .collect();
    window.push(mixture(&log_densities.iter()));
    Some(ValidationPoint {
        n_trees,
        train: first.train_log_likelihood(),
        held_out: weighted_mean(&window.mixture(), held_out.weight),
        scale_correction: first.scale_correction()?,
    })
}
