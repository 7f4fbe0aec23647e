//! How a model came about, as text: what was tried and the loss curve.

use std::fmt::Write as _;

use softwood::{CurvePoint, CurveUnit, Training};

use crate::print::number::short;

/// Points of the loss curve that are shown.
const SHOWN: usize = 15;

/// The step at which held-out rows were likeliest.
fn best(training: &Training) -> Option<(usize, f64)> {
    let measured = training
        .curve
        .iter()
        .filter_map(|point| Some((point.epoch, point.held_out?)));
    measured.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// What held-out rows said, in a line.
pub(crate) fn held_out(training: &Training) -> Option<String> {
    let (at, value) = best(training)?;
    let at = match (training.step, at) {
        (CurveUnit::Epoch, at) => format!("at epoch {at}"),
        (CurveUnit::Tree, 1) => "with 1 tree".to_owned(),
        (CurveUnit::Tree, at) => format!("with {at} trees"),
    };
    Some(format!(
        "log-likelihood {} a row {at}, standardised units",
        short(value)
    ))
}

/// What was tried, likeliest first.
pub(crate) fn trials(training: &Training) -> String {
    if training.trials.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<_> = training.trials.iter().collect();
    sorted.sort_by(|a, b| b.held_out.total_cmp(&a.held_out));
    let mut out = "\nTried (held-out log-likelihood, standardised units)\n".to_owned();
    for trial in sorted {
        let _ = writeln!(out, "  {:>9}  {}", short(trial.held_out), trial.what);
    }
    out
}

/// The loss curve at a few steps, the best one among them.
pub(crate) fn curve(training: &Training) -> String {
    if training.curve.is_empty() {
        return String::new();
    }
    let best = best(training).map(|(step, _)| step);
    let mut out = match training.step {
        CurveUnit::Epoch => {
            "\nLoss curve (per row, standardised units)\n  epoch       ELBO   held-out\n"
        }
        CurveUnit::Tree => {
            "\nLog-likelihood (per row, standardised units)\n  trees   training   held-out\n"
        }
    }
    .to_owned();
    for point in thinned(&training.curve, best) {
        let held_out = point.held_out.map_or_else(|| "-".to_owned(), short);
        let mark = if Some(point.epoch) == best {
            "  best"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "  {:>5}  {:>9}  {held_out:>9}{mark}",
            point.epoch,
            short(point.elbo)
        );
    }
    out
}

fn thinned(curve: &[CurvePoint], best: Option<usize>) -> Vec<&CurvePoint> {
    let every = curve.len().div_ceil(SHOWN);
    let is_shown = |at: usize| {
        at.is_multiple_of(every) || at + 1 == curve.len() || Some(curve[at].epoch) == best
    };
    (0..curve.len())
        .filter(|at| is_shown(*at))
        .map(|at| &curve[at])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_called_what_they_are() {
        let curve = vec![CurvePoint {
            epoch: 40,
            elbo: -1.25,
            held_out: Some(-1.5),
        }];
        let mut training = Training {
            curve,
            ..Training::default()
        };
        let text = |training: &Training| held_out(training).unwrap() + &super::curve(training);
        let epochs = text(&training);
        assert!(
            epochs.contains("at epoch 40") && epochs.contains("ELBO"),
            "{epochs}"
        );
        training.step = CurveUnit::Tree;
        let trees = text(&training);
        assert!(
            trees.contains("with 40 trees") && trees.contains("  trees   training"),
            "{trees}"
        );
        assert!(
            !trees.contains("ELBO") && !trees.contains("epoch"),
            "{trees}"
        );
    }

    #[test]
    fn the_curve_is_thinned_but_keeps_its_best_and_last() {
        let point = |epoch: usize| CurvePoint {
            epoch,
            elbo: -1.0,
            held_out: Some(-(epoch as f64 - 77.0).abs()),
        };
        let curve: Vec<_> = (1..=200).map(point).collect();
        let shown: Vec<usize> = thinned(&curve, Some(77))
            .iter()
            .map(|point| point.epoch)
            .collect();
        assert!(
            shown.len() <= SHOWN + 2 && shown.contains(&77) && shown.contains(&200),
            "{shown:?}"
        );
    }
}
