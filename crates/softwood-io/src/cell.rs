//! One cell of text: missing, a number, or words.

const MISSING_TOKENS: [&str; 6] = ["NA", "N/A", "NaN", "null", "None", "?"];

/// What a text cell says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    /// Nothing.
    Missing,
    /// A number, finite or infinite.
    Number(f64),
    /// Anything else.
    Words,
}

/// Whether the text stands for a missing cell.
pub(crate) fn is_missing(text: &str) -> bool {
    let text = text.trim();
    let is_token = |token: &str| token.eq_ignore_ascii_case(text);
    text.is_empty() || (text.len() <= 4 && MISSING_TOKENS.iter().any(|token| is_token(token)))
}

/// Reads a cell; blanks around it do not count.
pub(crate) fn read_cell(text: &str) -> Cell {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Cell::Missing;
    }
    match trimmed.parse::<f64>() {
        Ok(number) if number.is_nan() => Cell::Missing,
        Ok(number) => Cell::Number(number),
        Err(_) if is_missing(trimmed) => Cell::Missing,
        Err(_) => Cell::Words,
    }
}

/// The name of the category a cell of text belongs to: the text as it stands, but `true` and `false` in lower case,
/// since tools write them in every case and mean the same.
pub(crate) fn category(text: &str) -> &str {
    let trimmed = text.trim();
    ["true", "false"]
        .into_iter()
        .find(|word| word.eq_ignore_ascii_case(trimmed))
        .unwrap_or(text)
}

/// A cell as it is shown in a message: in backticks, cut where it is long.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = text.chars().take(LONGEST).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("`{}`", shown.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_missing_in_any_case() {
        for text in [
            "", "  ", "NA", "na", "n/a", "NaN", "nan", "-nan", "NULL", "none", " ? ",
        ] {
            assert_eq!(read_cell(text), Cell::Missing, "{text:?}");
        }
        for text in ["nano", "nil", "-", "??", "N A"] {
            assert_eq!(read_cell(text), Cell::Words, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_what_rust_parses_after_trimming() {
        for (text, number) in [
            (" 1.5 ", 1.5),
            ("+2", 2.0),
            ("1e3", 1e3),
            (".5", 0.5),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(read_cell(text), Cell::Number(number), "{text:?}");
        }
        for text in ["1,5", "0x10", "1_000", "12 kg", "1e"] {
            assert_eq!(read_cell(text), Cell::Words, "{text:?}");
        }
    }

    #[test]
    fn truth_values_are_written_in_lower_case() {
        assert_eq!(category("TRUE"), "true");
        assert_eq!(category(" False"), "false");
        assert_eq!(category(" Truely"), " Truely");
    }

    #[test]
    fn long_cells_are_cut_in_messages() {
        assert_eq!(shown("a\nb"), "`a\\nb`");
        assert!(shown(&"é".repeat(100)).ends_with("é...`"));
    }
}
