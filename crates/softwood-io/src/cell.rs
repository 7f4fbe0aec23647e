//! Parses one text cell: missing, a number, a date, or other text.

use crate::date::parse_date;

/// Texts that stand for a missing cell, in upper or lower case.
const MISSING_TOKENS: [&str; 7] = ["NA", "N/A", "NaN", "NaT", "null", "None", "?"];

/// Size from which on a 64-bit float cannot hold every integer.
pub(crate) const EXACT_INTEGERS: u64 = 1 << 53;

/// The content of a text cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    /// Empty, or a missing-value token.
    Missing,
    /// A number, finite or infinite.
    Number(f64),
    /// A date or date-time, in seconds since 1970.
    Date(f64),
    /// Any other text.
    Text,
}

/// Whether the text is empty or a missing-value token.
pub(crate) fn is_missing(text: &str) -> bool {
    let text = text.trim();
    let is_token = |token: &str| token.eq_ignore_ascii_case(text);
    text.is_empty() || (text.len() <= 4 && MISSING_TOKENS.iter().any(|token| is_token(token)))
}

/// Parses a cell; surrounding blanks are ignored.
pub(crate) fn parse_cell(text: &str) -> Cell {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Cell::Missing;
    }
    match trimmed.parse::<f64>() {
        Ok(number) if number.is_nan() => Cell::Missing,
        Ok(number) => Cell::Number(number),
        Err(_) if is_missing(trimmed) => Cell::Missing,
        Err(_) => parse_date(trimmed).map_or(Cell::Text, Cell::Date),
    }
}

/// Whether the text is an integer whose digits `number`, its value as a float, does not reproduce.
pub(crate) fn loses_digits(text: &str, number: f64) -> bool {
    if number.abs() < EXACT_INTEGERS as f64 || !number.is_finite() {
        return false;
    }
    let text = text.trim();
    let digits = text.trim_start_matches(['+', '-']);
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer && format!("{:.0}", number.abs()) != digits.trim_start_matches('0')
}

/// The category name of a text cell: the text itself, except that `true` and `false` are converted
/// to lower case, because tools write booleans in different cases.
pub(crate) fn category(text: &str) -> &str {
    let trimmed = text.trim();
    ["true", "false"]
        .into_iter()
        .find(|word| word.eq_ignore_ascii_case(trimmed))
        .unwrap_or(text)
}

/// A cell as messages quote it: in backticks, shortened if it is long.
pub(crate) fn quote_cell(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut shown: String = text.chars().take(MAX_CHARS).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("`{}`", shown.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_value_tokens_are_recognised_in_any_case() {
        for text in [
            "", "  ", "NA", "na", "n/a", "NaN", "nan", "-nan", "NaT", "NULL", "none", " ? ",
        ] {
            assert_eq!(parse_cell(text), Cell::Missing, "{text:?}");
        }
        for text in ["nano", "nil", "-", "??", "N A"] {
            assert_eq!(parse_cell(text), Cell::Text, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_parsed_as_rust_floats_after_trimming() {
        for (text, number) in [
            (" 1.5 ", 1.5),
            ("+2", 2.0),
            ("1e3", 1e3),
            (".5", 0.5),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(parse_cell(text), Cell::Number(number), "{text:?}");
        }
        for text in ["1,5", "0x10", "1_000", "12 kg", "1e"] {
            assert_eq!(parse_cell(text), Cell::Text, "{text:?}");
        }
    }

    #[test]
    fn integers_that_a_float_cannot_hold_lose_digits() {
        for (text, loses) in [
            ("9007199254740992", false),
            ("9007199254740993", true),
            ("-9007199254740993", true),
            ("0009007199254740994", false),
            ("18446744073709551615", true),
            ("1e300", false),
            ("9007199254740993.0", false),
            ("inf", false),
        ] {
            assert_eq!(loses_digits(text, text.parse().unwrap()), loses, "{text}");
        }
    }

    #[test]
    fn booleans_become_lower_case() {
        assert_eq!(category("TRUE"), "true");
        assert_eq!(category(" False"), "false");
        assert_eq!(category(" Truely"), " Truely");
    }

    #[test]
    fn long_cells_are_shortened_in_messages() {
        assert_eq!(quote_cell("a\nb"), "`a\\nb`");
        assert!(quote_cell(&"é".repeat(100)).ends_with("é...`"));
    }
}
