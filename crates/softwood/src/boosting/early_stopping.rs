//! Early stopping: validation scores along a chain, the best of them, and the patience to wait for
//! a better one.

use crate::boosting::inputs::Patience;

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
pub(super) fn is_stale(curve: &[ValidationPoint], patience: Option<Patience>) -> bool {
    let (Some(best), Some(last), Some(patience)) = (best_point(curve), curve.last(), patience)
    else {
        return false;
    };
    let in_proportion = (patience.fraction * best.n_trees as f64) as usize;
    last.n_trees >= best.n_trees + in_proportion + patience.rounds
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_stops_a_constant_and_a_fraction_after_the_best_score() {
        let point = |n_trees: usize| ValidationPoint {
            n_trees,
            train: 0.0,
            held_out: -(n_trees.abs_diff(100) as f64),
            scale_correction: Vec::new(),
        };
        let curve: Vec<ValidationPoint> = (1..=40).map(|at| point(5 * at)).collect();
        let patience = Some(Patience {
            fraction: 0.5,
            rounds: 40,
        });
        let first_stale = (1..=40).find(|&n| is_stale(&curve[..n], patience));
        assert_eq!(first_stale.map(|n| 5 * n), Some(190));
        assert!(!is_stale(&curve, None));
    }
}
