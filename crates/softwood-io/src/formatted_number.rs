//! Recognises formatted numbers such as `1,5`, `1,234.50`, `$20` and `7 %`, so that an error can
//! name them. They are not parsed: a wrong guess at the decimal separator would be off by a factor
//! of 1000.

/// Thousands separators other than the point.
const THOUSANDS_SEPARATORS: [char; 5] = [',', ' ', '\u{a0}', '\u{202f}', '\''];
/// Currency and percent signs, before or after the number.
const SIGNS: [char; 5] = ['$', '€', '£', '¥', '%'];

/// Whether the text is a number with a currency or percent sign, a decimal comma or thousands
/// separators.
pub(crate) fn is_formatted_number(text: &str) -> bool {
    let text = text.trim();
    let bare = text
        .trim_start_matches(['+', '-'])
        .trim_start_matches(SIGNS)
        .trim_end_matches(SIGNS)
        .trim()
        .trim_start_matches(['+', '-']);
    let has_sign = text.contains(SIGNS);
    (has_sign && is_plain(bare)) || has_decimal_comma(bare) || is_grouped(bare)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Digits with an optional decimal point: `12`, `12.5`.
fn is_plain(text: &str) -> bool {
    match text.split_once('.') {
        Some((whole, part)) => is_digits(whole) && is_digits(part),
        None => is_digits(text),
    }
}

/// Digits with a decimal comma: `12,5`.
fn has_decimal_comma(text: &str) -> bool {
    text.split_once(',')
        .is_some_and(|(whole, part)| is_digits(whole) && is_digits(part))
}

/// Digits in groups of three: `1,234`, `1 234,5`, `1.234,5`.
fn is_grouped(text: &str) -> bool {
    let with = |group: char, decimal: char| {
        let (whole, part) = text.split_once(decimal).unwrap_or((text, "0"));
        let mut groups = whole.split(group);
        let is_first = |first: &str| is_digits(first) && first.len() <= 3;
        let are_rest = |rest: &str| is_digits(rest) && rest.len() == 3;
        whole.contains(group)
            && is_digits(part)
            && groups.next().is_some_and(is_first)
            && groups.all(are_rest)
    };
    THOUSANDS_SEPARATORS.iter().any(|&group| with(group, '.'))
        || THOUSANDS_SEPARATORS[1..]
            .iter()
            .any(|&group| with(group, ','))
        || (text.contains(',') && with('.', ','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatted_numbers_are_recognised() {
        for text in [
            "1,5",
            " -12,75",
            "1,234",
            "1,234.5",
            "1 234,5",
            "1.234,50",
            "1'234.5",
            "$20",
            "-$3.50",
            "€ 1,234",
            "20 €",
            "7%",
            "7,5 %",
            "$-4",
        ] {
            assert!(is_formatted_number(text), "{text}");
        }
    }

    #[test]
    fn plain_numbers_and_other_texts_are_not_formatted_numbers() {
        for text in [
            "",
            "$",
            "12",
            "12.5",
            "a,b",
            "1,",
            ",5",
            "1,2,3",
            "12:30",
            "2024-01-05",
            "05.01.2024",
            "192.168.0.1",
            "10.123.456",
            "555 123 4567",
            "%",
            "12 kg",
            "1e3",
        ] {
            assert!(!is_formatted_number(text), "{text}");
        }
    }
}
