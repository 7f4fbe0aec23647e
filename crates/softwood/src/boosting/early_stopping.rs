//! Early stopping: validation scores along a chain, the best of them, and the patience to wait for
//! a better one.

use crate::boosting::inputs::BoostingSettings;
use crate::boosting::langevin::Sampling;

/// Rounds that a Langevin chain continues at least after its best validation score.
const MIN_PATIENCE: usize = 200;

/// Mean log-likelihoods after `n_trees` trees.
#[derive(Debug, Clone)]
pub(crate) struct ValidationPoint {
    pub(crate) n_trees: usize,
    /// On the training rows.
    pub(crate) train: f64,
    /// On the validation set, under the mixture of the parallel chains and, with Langevin noise, of
    /// the second half of their rounds. It estimates the score of an ensemble of such chains.
    pub(crate) held_out: f64,
    /// Shift of each raw output that corrects the scale on the validation set; may be empty.
    pub(crate) scale_correction: Vec<f64>,
}

/// Whether to stop after the last point of the curve.
///
/// Without `patience` a chain without noise never stops early; a Langevin chain stops once the
/// rounds after its best point outnumber those before it by [`MIN_PATIENCE`].
pub(super) fn is_stale(curve: &[ValidationPoint], settings: &BoostingSettings) -> bool {
    let (Some(best), Some(last)) = (best_point(curve), curve.last()) else {
        return false;
    };
    let patience = settings.patience.or_else(|| {
        let is_langevin = settings.sampling != Sampling::Off;
        is_langevin.then_some(best.n_trees + MIN_PATIENCE)
    });
    patience.is_some_and(|patience| last.n_trees >= best.n_trees + patience)
}

/// The point with the best validation score; the first of equals.
pub(crate) fn best_point(curve: &[ValidationPoint]) -> Option<ValidationPoint> {
    curve.iter().cloned().reduce(|best, point| {
        if point.held_out > best.held_out {
            point
        } else {
            best
        }
    })
}
