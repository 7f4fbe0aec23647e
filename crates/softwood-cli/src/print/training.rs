//! The training record of a model as text: results of model selection and the learning curve.

use std::fmt::Write as _;

use softwood::model::{CurvePoint, CurveUnit, Training};

use crate::print::number::short;

/// Largest number of regularly spaced points of the learning curve that are printed.
const MAX_POINTS: usize = 15;

/// The step with the highest validation log-likelihood, and that log-likelihood.
fn best(training: &Training) -> Option<(usize, f64)> {
    let validated = training
        .curve
        .iter()
        .filter_map(|point| Some((point.epoch, point.held_out?)));
    validated.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The best validation log-likelihood in one line.
pub(crate) fn validation(training: &Training) -> Option<String> {
    let (step, value) = best(training)?;
    let step = match training.step {
        CurveUnit::Tree => format!("best number of trees {step}"),
        _ => format!("best epoch {step}"),
    };
    let unit = unit(training).map_or_else(String::new, |unit| format!(" ({unit})"));
    Some(format!(
        "log-likelihood {} per row{unit}, {step}",
        short(value)
    ))
}

/// The units of log-likelihoods in training: regression targets are standardised.
fn unit(training: &Training) -> Option<&'static str> {
    training.target_sd.map(|_| "target scaled to unit variance")
}

/// The end of a heading about log-likelihoods.
fn per_row(training: &Training) -> String {
    unit(training).map_or_else(|| "per row".to_owned(), |unit| format!("per row, {unit}"))
}

/// The candidates of model selection, the best first.
pub(crate) fn trials(training: &Training) -> String {
    if training.trials.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<_> = training.trials.iter().collect();
    sorted.sort_by(|a, b| b.held_out.total_cmp(&a.held_out));
    let mut out = format!(
        "\nModel selection (validation log-likelihood {})\n",
        per_row(training)
    );
    for trial in sorted {
        let _ = writeln!(out, "  {:>9}  {}", short(trial.held_out), trial.what);
    }
    out
}

/// The learning curve at a few steps, including the best one.
pub(crate) fn curve(training: &Training) -> String {
    if training.curve.is_empty() {
        return String::new();
    }
    let best = best(training).map(|(step, _)| step);
    let (what, header) = match training.step {
        CurveUnit::Tree => ("log-likelihood", "trees    training  validation"),
        _ => (
            "ELBO and validation log-likelihood",
            "epoch        ELBO  validation",
        ),
    };
    let mut out = format!(
        "\nLearning curve ({what} {})\n  {header}\n",
        per_row(training)
    );
    for point in thinned(&training.curve, best) {
        let validation = point.held_out.map_or_else(|| "-".to_owned(), short);
        let mark = if Some(point.epoch) == best {
            "  best"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "  {:>5}  {:>10}  {validation:>10}{mark}",
            point.epoch,
            short(point.elbo)
        );
    }
    out
}

/// At most about [`MAX_POINTS`] points of the curve, always with the best and the last one.
fn thinned(curve: &[CurvePoint], best: Option<usize>) -> Vec<&CurvePoint> {
    let every = curve.len().div_ceil(MAX_POINTS);
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
    fn epochs_and_trees_are_named() {
        let curve = vec![CurvePoint::new(40, -1.25).with_held_out(-1.5)];
        let mut training = Training::default();
        training.curve = curve;
        let text = |training: &Training| validation(training).unwrap() + &super::curve(training);
        let epochs = text(&training);
        assert!(
            epochs.contains("best epoch 40") && epochs.contains("ELBO"),
            "{epochs}"
        );
        training.step = CurveUnit::Tree;
        let trees = text(&training);
        assert!(
            trees.contains("best number of trees 40")
                && trees.contains("  trees    training  validation"),
            "{trees}"
        );
        assert!(
            !trees.contains("ELBO") && !trees.contains("epoch"),
            "{trees}"
        );
    }

    #[test]
    fn only_regressions_have_units() {
        let curve = vec![CurvePoint::new(120, 1.25).with_held_out(1.345)];
        let mut training = Training::default();
        training.curve = curve;
        assert_eq!(
            validation(&training).unwrap(),
            "log-likelihood 1.345 per row, best epoch 120"
        );
        training.target_sd = Some(3.0);
        assert_eq!(
            validation(&training).unwrap(),
            "log-likelihood 1.345 per row (target scaled to unit variance), best epoch 120"
        );
    }

    #[test]
    fn the_thinned_curve_keeps_the_best_and_the_last_point() {
        let point =
            |epoch: usize| CurvePoint::new(epoch, -1.0).with_held_out(-(epoch as f64 - 77.0).abs());
        let curve: Vec<_> = (1..=200).map(point).collect();
        let shown: Vec<usize> = thinned(&curve, Some(77))
            .iter()
            .map(|point| point.epoch)
            .collect();
        assert!(
            shown.len() <= MAX_POINTS + 2 && shown.contains(&77) && shown.contains(&200),
            "{shown:?}"
        );
    }
}
