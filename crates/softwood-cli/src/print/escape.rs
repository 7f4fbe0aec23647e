//! Escapes control characters in text for a terminal: names in a table may contain sequences that
//! move the cursor, change colours or rewrite the title.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character could change how a terminal shows the text around it: control characters,
/// line separators and marks of the writing direction.
fn is_control(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// The text with control characters other than line breaks written as `\u{1b}`.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter != '\n' && is_control(letter))
}

/// The text on one line: with all control characters escaped.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_control)
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_escaped(letter) {
            let _ = write!(out, "{}", letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let text = "a\u{1b}[31m\r\t\u{7f}\u{9b}1m\u{202e}é\n";
        let wanted = "a\\u{1b}[31m\\r\\t\\u{7f}\\u{9b}1m\\u{202e}é";
        assert_eq!(line(text), format!("{wanted}\\n"));
        assert_eq!(lines(text), format!("{wanted}\n"));
        assert!(matches!(lines("größe ± 值\n"), Cow::Borrowed(_)));
    }
}
