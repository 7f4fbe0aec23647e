//! The report of `causal` as text: average effects, effects of single rows, policy, overlap.

use std::fmt::Write as _;

use softwood::decide::causal::{EffectEstimate, EffectScope};

use crate::commands::CausalReport;
use crate::print::escape::line;
use crate::print::number::{duration, percent, short};

pub(crate) fn text(report: &CausalReport) -> String {
    let overlap = &report.overlap;
    let mut out = format!(
        "effect of {} ({} against {}) on {}\n",
        line(&report.treatment),
        line(&report.treated),
        line(&report.control),
        line(&report.outcome)
    );
    let rows = format!(
        "{} ({} treated, {} control){}",
        report.n_rows,
        overlap.n_treated,
        overlap.n_control,
        match report.n_left_out {
            0 => String::new(),
            n => format!("; {n} rows of other levels left out"),
        }
    );
    let method = format!(
        "{} with {}, propensities by {}, {} folds",
        report.method, report.model, report.propensity_model, report.n_folds
    );
    out += &entry("rows", &rows);
    out += &entry("method", &method);
    out += &entry("time", &duration(report.seconds));
    let scope = if report.scope == EffectScope::Population {
        "the population of these rows"
    } else {
        "these rows"
    };
    let level = 100.0 * report.average_effect.level;
    let _ = writeln!(
        out,
        "\nAverage effect on {scope} ({}% interval)",
        short(level).trim_end_matches('0').trim_end_matches('.')
    );
    out += &entry("  all", &with_interval(&report.average_effect));
    out += &entry("  treated", &with_interval(&report.effect_on_treated));
    out += &entry(
        "  unadjusted",
        &format!(
            "{} (difference of the mean outcomes)",
            short(report.naive_difference)
        ),
    );
    out += &row_effects(report);
    out += &policy(report);
    out += &overlap_text(report);
    if let Some(file) = &report.file {
        let _ = writeln!(out, "\neffects of all rows: {}", file.display());
    }
    for note in overlap.warnings.iter().chain(&report.notes) {
        let _ = writeln!(out, "\nnote: {}", line(note));
    }
    out
}

fn row_effects(report: &CausalReport) -> String {
    let rows = &report.rows;
    let share =
        |count: usize, share: f64| format!("{count} of {} rows ({})", rows.n_rows, percent(share));
    let mut out = "\nEffects of single rows\n".to_owned();
    out += &entry(
        "  estimates",
        &format!("{} to {}", short(rows.smallest), short(rows.largest)),
    );
    out += &entry(
        "  positive",
        &format!(
            "{} with an interval above 0",
            share(rows.n_positive, rows.share_positive)
        ),
    );
    out += &entry(
        "  negative",
        &format!(
            "{} with an interval below 0",
            share(rows.n_negative, rows.share_negative)
        ),
    );
    out
}

fn policy(report: &CausalReport) -> String {
    let policy = &report.policy;
    let who = match &report.policy_column {
        Some(column) => format!("treat where {} is 1", line(column)),
        None => format!("treat where the effect exceeds {}", policy.cost),
    };
    let mut out = format!(
        "\nPolicy: {who} ({} of the rows); mean outcome less costs\n",
        percent(policy.share_treated)
    );
    out += &entry("  policy", &with_interval(&policy.value));
    out += &entry("  treat all", &with_interval(&policy.treat_all));
    out += &entry("  treat none", &with_interval(&policy.treat_none));
    out += &entry(
        "  gain",
        &format!("{} over treating none", with_interval(&policy.gain)),
    );
    out
}

fn overlap_text(report: &CausalReport) -> String {
    let overlap = &report.overlap;
    let mut out = "\nOverlap\n".to_owned();
    out += &entry(
        "  propensity",
        &format!(
            "below 0.05 for {} rows, above 0.95 for {} rows ({} outside)",
            overlap.n_below,
            overlap.n_above,
            percent(overlap.share_outside)
        ),
    );
    if overlap.n_clipped > 0 {
        out += &entry(
            "  clipped",
            &format!("{} propensities in the scores", overlap.n_clipped),
        );
    }
    out += &entry(
        "  knowledge",
        &format!(
            "median sd {} for outcomes under the treatment of the row, {} under the other one",
            short(overlap.median_factual_knowledge),
            short(overlap.median_counterfactual_knowledge)
        ),
    );
    out += &entry(
        "  extrapolated",
        &format!("{} rows", overlap.n_extrapolated),
    );
    out
}

fn with_interval(estimate: &EffectEstimate) -> String {
    format!(
        "{}  ({} to {}, sd {})",
        short(estimate.mean),
        short(estimate.lower),
        short(estimate.upper),
        short(estimate.std)
    )
}

fn entry(name: &str, value: &str) -> String {
    format!("{name:<16}{value}\n")
}
