//! Texts of a picture: how wide they are, cut to what fits, and as XML holds them.

pub(super) fn letters(
    [x, y]: [f64; 2],
    size: f64,
    colour: &str,
    style: &str,
    words: &str,
) -> String {
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\"{style}>{}</text>\n",
        escape(words)
    )
}

/// The text, cut where it would be too wide.
pub(super) fn shortened(text: &str, room: f64, size: f64) -> String {
    if width_of(text, size) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = width_of("…", size);
    for letter in text.chars() {
        used += width_of_letter(letter) * size;
        if used > room {
            break;
        }
        short.push(letter);
    }
    short + "…"
}

pub(super) fn width_of(text: &str, size: f64) -> f64 {
    text.chars().map(width_of_letter).sum::<f64>() * size
}

/// Width of a letter in a wide sans-serif face, in units of its size: what fits there fits in the
/// others.
fn width_of_letter(letter: char) -> f64 {
    match letter {
        ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | 'i' | 'j' | 'l' | 'I' => 0.36,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '-' | '/' => 0.45,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '<' | '>' | '=' | '+' | '±' | '≤' => 0.98,
        _ if letter.is_ascii_uppercase() => 0.76,
        _ if (letter as u32) < 0x0250 => 0.64,
        _ if (letter as u32) < 0x2e80 => 0.8,
        _ => 1.05,
    }
}

/// Texts as XML holds them; what it cannot hold is left out.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            _ if letter.is_control() => {}
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_marks_escaped() {
        assert_eq!(shortened("short", 100.0, 10.0), "short");
        let cut = shortened("a very long name of a column", 80.0, 10.0);
        assert!(cut.ends_with('…') && width_of(&cut, 10.0) <= 80.0, "{cut}");
        assert_eq!(escape("a<b & \"c\"\u{0}\n"), "a&lt;b &amp; &quot;c&quot; ");
    }
}
