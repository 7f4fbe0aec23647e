//! Conditions, values and numbers as text.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::explain::tree_export::{
    Condition, ExportSplit, LeafValue, LinearFunction, LinearTerm, TreeExport,
};
use crate::numerics::order::descending;

/// Significant digits of a threshold.
const THRESHOLD_DIGITS: usize = 6;
/// Significant digits of a predicted value or a weight.
const VALUE_DIGITS: usize = 4;
/// Number of terms of a linear condition that are shown; the others are counted.
const MAX_TERMS: usize = 3;

/// Formats a number with about `digits` significant digits, without trailing zeros.
pub(super) fn number(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0" } else { "?" }.to_owned();
    }
    let power = value.abs().log10().floor() as i32;
    if !(-4..10).contains(&power) {
        let text = format!("{value:.*e}", digits - 1);
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", without_trailing_zeros(digits));
    }
    let decimals = (digits as i32 - 1 - power).max(0) as usize;
    without_trailing_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.');
    }
    text
}

/// What the rules of a split are about: its column, or the largest terms of a linear condition.
pub(super) fn subject(split: &ExportSplit) -> Cow<'_, str> {
    match &split.question {
        Condition::Linear { terms, .. } => Cow::Owned(sum(terms)),
        _ => Cow::Borrowed(&split.column),
    }
}

/// The function of a leaf: its intercept and its largest terms.
pub(super) fn function(function: &LinearFunction) -> String {
    let intercept = number(function.intercept, VALUE_DIGITS);
    if function.terms.is_empty() {
        return format!(", predicts {intercept}");
    }
    let sum = sum(&function.terms);
    match sum.strip_prefix('-') {
        Some(rest) => format!(", predicts {intercept} - {rest}"),
        None => format!(", predicts {intercept} + {sum}"),
    }
}

/// The largest terms of a sum, and the number of the others.
fn sum(terms: &[LinearTerm]) -> String {
    let mut out = String::new();
    for (at, term) in terms.iter().take(MAX_TERMS).enumerate() {
        let sign = match (at, term.weight < 0.0) {
            (0, false) => "",
            (0, true) => "-",
            (_, false) => " + ",
            (_, true) => " - ",
        };
        let weight = number(term.weight.abs(), VALUE_DIGITS);
        let _ = write!(out, "{sign}{weight} {}", term.value_text());
    }
    match terms.len().saturating_sub(MAX_TERMS) {
        0 if terms.is_empty() => "0".to_owned(),
        0 => out,
        more => format!("{out} and {more} more"),
    }
}

/// The rule of the left or the right side of a split without its subject: ` <= 3.5`,
/// ` is red or blue`. It names as many categories as `fits` allows.
pub(super) fn side(split: &ExportSplit, right: bool, fits: impl Fn(&str) -> bool) -> String {
    match (&split.question, right) {
        (Condition::Above(at), false) => format!(" <= {}", number(*at, THRESHOLD_DIGITS)),
        (Condition::Above(at), true) => format!(" > {}", number(*at, THRESHOLD_DIGITS)),
        (Condition::Among(names), false) => list_names(" is not ", names, fits),
        (Condition::Among(names), true) => list_names(" is ", names, fits),
        (Condition::Missing, false) => " is there".to_owned(),
        (Condition::Missing, true) => " is missing".to_owned(),
        (
            Condition::Linear {
                threshold,
                steepness,
                ..
            },
            right,
        ) => {
            let sign = if right { ">" } else { "<=" };
            let threshold = number(*threshold, THRESHOLD_DIGITS);
            format!(" {sign} {threshold}{}", softness(*steepness))
        }
    }
}

/// How far from the threshold the gate of a soft split reaches about three quarters:
/// `sigmoid(1) = 0.73`.
fn softness(steepness: Option<f64>) -> String {
    let width = steepness.map(|steepness| number(1.0 / steepness.abs(), VALUE_DIGITS));
    width.map_or_else(String::new, |width| format!(" (soft, ± {width})"))
}

/// Suffix of a rule for rows with a missing cell.
pub(super) fn or_missing(split: &ExportSplit, right: bool) -> &'static str {
    match split.question {
        // the terms of a linear condition have values of their own for missing cells
        Condition::Missing | Condition::Linear { .. } => "",
        _ if split.missing_right == right => " or missing",
        _ => "",
    }
}

/// As many names as fit, and the number of the others; a single name is always shown.
fn list_names(start: &str, names: &[String], fits: impl Fn(&str) -> bool) -> String {
    let with = |n: usize| {
        let shown = &names[..n];
        let text = match (shown, names.len() - n) {
            ([], 0) => "any".to_owned(),
            ([], more) => format!("one of {more}"),
            ([one], 0) => one.clone(),
            ([first @ .., last], 0) => format!("{} or {last}", first.join(", ")),
            (_, more) => format!("{} or {more} more", shown.join(", ")),
        };
        format!("{start}{text}")
    };
    let most = (1..=names.len()).rev().map(with).find(|text| fits(text));
    most.unwrap_or_else(|| with(usize::from(names.len() == 1)))
}

impl TreeExport {
    /// The value of a node: `12.3 ± 1.2`, or its most probable classes.
    pub(super) fn value_text(&self, value: &LeafValue, n_classes: usize) -> String {
        let shares = match value {
            LeafValue::Number { mean, sd } => {
                return format!(
                    "{} ± {}",
                    number(*mean, VALUE_DIGITS),
                    number(*sd, VALUE_DIGITS)
                );
            }
            LeafValue::Noise { sd } => return format!("noise ± {}", number(*sd, VALUE_DIGITS)),
            LeafValue::Classes(shares) => shares,
        };
        let likely = by_probability(shares).into_iter().take(n_classes);
        let texts =
            likely.map(|class| format!("{} {}", self.class_name(class), percent(shares[class])));
        texts.collect::<Vec<_>>().join(", ")
    }

    /// The name of a class.
    pub(super) fn class_name(&self, at: usize) -> &str {
        let classes = self.classes.as_deref().unwrap_or_default();
        classes.get(at).map_or("?", String::as_str)
    }
}

/// Classes by decreasing probability, the first of equals first.
pub(super) fn by_probability(shares: &[f64]) -> Vec<usize> {
    descending(shares)
}

fn percent(share: f64) -> String {
    match 100.0 * share {
        whole if share <= 0.0 || share >= 1.0 => format!("{whole:.0}%"),
        most if most > 99.5 => ">99%".to_owned(),
        least if least < 0.5 => "<1%".to_owned(),
        other => format!("{other:.0}%"),
    }
}

/// The number of rows of a node.
pub(super) fn rows(weight: f64) -> String {
    let one = (weight - 1.0).abs() < 1e-9;
    format!(
        "{} row{}",
        number(weight, VALUE_DIGITS),
        if one { "" } else { "s" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_drop_zeros() {
        let shown = [112.5, 100.0, -0.25, 123_456.7, 1e-7, 2.5e12, 0.0, f64::NAN];
        let texts = shown.map(|value| number(value, 4));
        let wanted = [
            "112.5", "100", "-0.25", "123457", "1e-7", "2.5e12", "0", "?",
        ];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn as_many_categories_are_named_as_fit() {
        let names: Vec<String> = (0..9).map(|at| format!("level{at}")).collect();
        let text =
            |n: usize, most: usize| list_names(" is ", &names[..n], |text| text.len() <= most);
        assert_eq!(text(1, 40), " is level0");
        assert_eq!(text(2, 40), " is level0 or level1");
        assert_eq!(text(9, 40), " is level0, level1, level2 or 6 more");
        assert_eq!(text(9, 4), " is one of 9");
        assert_eq!(text(1, 4), " is level0");
        assert_eq!(text(0, 40), " is any");
    }

    #[test]
    fn probabilities_never_round_to_certainty() {
        let texts = [0.0, 0.001, 0.5, 0.999, 1.0].map(percent);
        assert_eq!(texts, ["0%", "<1%", "50%", ">99%", "100%"]);
    }
}
