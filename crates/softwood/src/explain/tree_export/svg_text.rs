//! Text elements of an SVG picture: their width, truncation and XML escapes.

/// A position in the picture, in pixels from the top left.
#[derive(Debug, Clone, Copy)]
pub(super) struct SvgPoint {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// A `text` element; `attributes` holds further attributes, each with a leading blank.
pub(super) fn text_element(
    position: SvgPoint,
    size: f64,
    colour: &str,
    attributes: &str,
    text: &str,
) -> String {
    let SvgPoint { x, y } = position;
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\"{attributes}>{}</text>\n",
        escape(text)
    )
}

/// Truncates a text to a width, with an ellipsis.
pub(super) fn truncated(text: &str, max_width: f64, size: f64) -> String {
    if text_width(text, size) <= max_width {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = text_width("…", size);
    for character in text.chars() {
        used += character_width(character) * size;
        if used > max_width {
            break;
        }
        short.push(character);
    }
    short + "…"
}

pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(character_width).sum::<f64>() * size
}

/// Width of a character in a wide sans-serif font, in units of the font size; text that fits in
/// this font fits in others.
fn character_width(character: char) -> f64 {
    match character {
        ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | 'i' | 'j' | 'l' | 'I' => 0.36,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '-' | '/' => 0.45,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '<' | '>' | '=' | '+' | '±' | '≤' => 0.98,
        _ if character.is_ascii_uppercase() => 0.76,
        _ if (character as u32) < 0x0250 => 0.64,
        _ if (character as u32) < 0x2e80 => 0.8,
        _ => 1.05,
    }
}

/// Escapes a text for XML; characters that XML does not allow are dropped.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            _ if character.is_control() => {}
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_truncated_and_special_characters_escaped() {
        assert_eq!(truncated("short", 100.0, 10.0), "short");
        let cut = truncated("a very long name of a column", 80.0, 10.0);
        assert!(
            cut.ends_with('…') && text_width(&cut, 10.0) <= 80.0,
            "{cut}"
        );
        assert_eq!(escape("a<b & \"c\"\u{0}\n"), "a&lt;b &amp; &quot;c&quot; ");
    }
}
