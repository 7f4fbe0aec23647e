//! A small stroke font: letters as lines and elliptic arcs, drawn with a round pen.
//!
//! Units: capital letters have height 10, small letters 7, descenders reach -3; y points up from
//! the baseline. A glyph is a sequence of commands: `M x y` moves the pen, `L x y` draws a line, `O
//! cx cy rx ry` an ellipse, `a cx cy rx ry from to` an elliptic arc (degrees, counter-clockwise),
//! and `A cx cy rx ry from to` an arc that is joined to the previous stroke by a line.

use tiny_skia::{Path, PathBuilder};

/// Font size, in the font's units.
pub(crate) const SIZE: f32 = 13.8;
/// Width of the pen.
pub(crate) const REGULAR: f32 = 1.12;
/// Width of the pen for bold texts.
pub(crate) const BOLD: f32 = 1.65;

/// Space on each side of a letter.
const BEARING: f32 = 1.15;
const SPACE: f32 = 3.9;
/// Glyph of characters that the font does not have.
const BOX: (f32, &str) = (5.0, "M 0 0 L 5 0 L 5 9 L 0 9 L 0 0");

/// Width of a text in the font's units.
pub(crate) fn width(text: &str) -> f32 {
    text.chars().map(advance).sum()
}

/// The strokes of a text that starts at the origin.
pub(crate) fn path(text: &str) -> Option<Path> {
    let mut builder = PathBuilder::new();
    let mut left = 0.0;
    for letter in text.chars() {
        if letter != ' ' {
            trace(&mut builder, glyph(letter).1, left + BEARING);
        }
        left += advance(letter);
    }
    builder.finish()
}

fn advance(letter: char) -> f32 {
    if letter == ' ' {
        SPACE
    } else {
        glyph(letter).0 + 2.0 * BEARING
    }
}

fn trace(builder: &mut PathBuilder, outline: &str, left: f32) {
    let mut words = outline.split_ascii_whitespace();
    while let Some(command) = words.next() {
        let mut next = || {
            words
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or(0.0)
        };
        match command {
            "M" => builder.move_to(left + next(), next()),
            "L" => builder.line_to(left + next(), next()),
            command => {
                let (centre, radii) = ([left + next(), next()], [next(), next()]);
                let [from, to] = match command {
                    "O" => [0.0, 360.0],
                    _ => [next(), next()],
                };
                let arc = EllipticArc {
                    centre,
                    radii,
                    from,
                    to,
                };
                arc.draw(builder, command == "A");
            }
        }
    }
}

/// A part of an ellipse whose axes are parallel to the coordinate axes.
struct EllipticArc {
    centre: [f32; 2],
    radii: [f32; 2],
    /// First angle in degrees, counter-clockwise from the x axis.
    from: f32,
    /// Last angle in degrees; below `from` for a clockwise arc.
    to: f32,
}

impl EllipticArc {
    /// Draws the arc as cubic Bézier curves of at most 90 degrees each. A line leads to its start
    /// if `joined`.
    fn draw(&self, builder: &mut PathBuilder, joined: bool) {
        let ([cx, cy], [rx, ry]) = (self.centre, self.radii);
        let pieces = ((self.to - self.from).abs() / 90.0).ceil().max(1.0);
        let turn = ((self.to - self.from) / pieces).to_radians();
        // distance of the control points that keeps the middle of the curve on the ellipse
        let arm = 4.0 / 3.0 * (turn / 4.0).tan();
        let mut angle = self.from.to_radians();
        let start = [cx + rx * angle.cos(), cy + ry * angle.sin()];
        if joined {
            builder.line_to(start[0], start[1]);
        } else {
            builder.move_to(start[0], start[1]);
        }
        for _ in 0..pieces as usize {
            let ((sin, cos), (sin_to, cos_to)) = (angle.sin_cos(), (angle + turn).sin_cos());
            builder.cubic_to(
                cx + rx * (cos - arm * sin),
                cy + ry * (sin + arm * cos),
                cx + rx * (cos_to + arm * sin_to),
                cy + ry * (sin_to - arm * cos_to),
                cx + rx * cos_to,
                cy + ry * sin_to,
            );
            angle += turn;
        }
    }
}

/// Width and strokes of a character.
fn glyph(letter: char) -> (f32, &'static str) {
    match letter {
        'a'..='z' => small(letter),
        'A'..='Z' => capital(letter),
        _ => digit_or_sign(letter),
    }
}

fn small(letter: char) -> (f32, &'static str) {
    match letter {
        'a' => (5.0, "O 2.5 3.5 2.5 3.5 M 5 7 L 5 0"),
        'b' => (5.0, "M 0 10 L 0 0 O 2.5 3.5 2.5 3.5"),
        'c' => (4.5, "a 2.6 3.5 2.6 3.5 48 312"),
        'd' => (5.0, "O 2.5 3.5 2.5 3.5 M 5 10 L 5 0"),
        'e' => (5.0, "M 0.1 3.7 L 5 3.7 A 2.5 3.5 2.5 3.5 3 318"),
        'f' => (3.2, "a 2.9 8.1 1.8 1.9 75 180 L 1.1 0 M 0 6.8 L 3 6.8"),
        'g' => (
            5.0,
            "O 2.5 3.5 2.5 3.5 M 5 7 L 5 -0.5 A 2.5 -0.5 2.5 2.5 0 -150",
        ),
        'h' => (4.8, "M 0 10 L 0 0 M 0 4.3 A 2.4 4.3 2.4 2.7 180 0 L 4.8 0"),
        'i' => (0.0, "M 0 7 L 0 0 O 0 9.6 0.2 0.2"),
        'j' => (
            1.2,
            "M 1.2 7 L 1.2 -1.3 A -0.4 -1.3 1.6 1.7 0 -80 O 1.2 9.6 0.2 0.2",
        ),
        'k' => (4.5, "M 0 10 L 0 0 M 4.3 7 L 0 2.8 M 1.5 4.3 L 4.5 0"),
        'l' => (0.0, "M 0 10 L 0 0"),
        'm' => (
            7.8,
            "M 0 7 L 0 0 M 0 4.7 A 1.95 4.7 1.95 2.3 180 0 L 3.9 0 M 3.9 4.7 A 5.85 4.7 1.95 2.3 180 0 L 7.8 0",
        ),
        'n' => (4.8, "M 0 7 L 0 0 M 0 4.3 A 2.4 4.3 2.4 2.7 180 0 L 4.8 0"),
        'o' => (5.2, "O 2.6 3.5 2.6 3.5"),
        'p' => (5.0, "M 0 7 L 0 -3 O 2.5 3.5 2.5 3.5"),
        'q' => (5.0, "O 2.5 3.5 2.5 3.5 M 5 7 L 5 -3"),
        'r' => (2.8, "M 0 7 L 0 0 M 0 4 A 2.5 4 2.5 3 180 80"),
        's' => (4.2, "a 2.1 5.3 1.9 1.7 35 262 A 2.1 1.8 2.1 1.8 82 -145"),
        't' => (
            3.0,
            "M 1.1 9.2 L 1.1 1.9 A 2.8 1.9 1.7 1.9 180 275 M 0 6.8 L 3 6.8",
        ),
        'u' => (
            4.8,
            "M 0 7 L 0 2.7 A 2.4 2.7 2.4 2.7 180 360 M 4.8 7 L 4.8 0",
        ),
        'v' => (5.0, "M 0 7 L 2.5 0 L 5 7"),
        'w' => (7.6, "M 0 7 L 1.9 0 L 3.8 6.6 L 5.7 0 L 7.6 7"),
        'x' => (4.6, "M 0 7 L 4.6 0 M 4.6 7 L 0 0"),
        'y' => (5.0, "M 0 7 L 2.5 0 M 5 7 L 1.43 -3"),
        'z' => (4.5, "M 0.1 7 L 4.4 7 L 0 0 L 4.5 0"),
        _ => BOX,
    }
}

fn capital(letter: char) -> (f32, &'static str) {
    match letter {
        'A' => (7.2, "M 0 0 L 3.6 10 L 7.2 0 M 1.25 3.4 L 5.95 3.4"),
        'B' => (
            6.2,
            "M 0 5.3 L 3.3 5.3 A 3.3 7.65 2.4 2.35 -90 90 L 0 10 L 0 0 L 3.5 0 A 3.5 2.65 2.7 2.65 -90 90",
        ),
        'C' => (7.3, "a 4.2 5 4.2 5 45 315"),
        'D' => (6.8, "M 0 0 L 0 10 L 2.4 10 A 2.4 5 4.4 5 90 -90 L 0 0"),
        'E' => (5.4, "M 5.4 10 L 0 10 L 0 0 L 5.4 0 M 0 5.2 L 4.7 5.2"),
        'F' => (5.2, "M 5.2 10 L 0 10 L 0 0 M 0 5.1 L 4.6 5.1"),
        'G' => (7.6, "a 4.2 5 4.2 5 48 322 L 7.5 4.7 L 4.7 4.7"),
        'H' => (6.4, "M 0 10 L 0 0 M 6.4 10 L 6.4 0 M 0 5.2 L 6.4 5.2"),
        'I' => (0.0, "M 0 10 L 0 0"),
        'J' => (4.0, "M 4 10 L 4 2.7 A 1.9 2.7 2.1 2.7 0 -160"),
        'K' => (6.0, "M 0 10 L 0 0 M 5.8 10 L 0 4 M 2.2 6.3 L 6 0"),
        'L' => (5.0, "M 0 10 L 0 0 L 5 0"),
        'M' => (8.0, "M 0 0 L 0 10 L 4 3 L 8 10 L 8 0"),
        'N' => (6.4, "M 0 0 L 0 10 L 6.4 0 L 6.4 10"),
        'O' => (8.6, "O 4.3 5 4.3 5"),
        'P' => (
            5.9,
            "M 0 0 L 0 10 L 3.3 10 A 3.3 7.4 2.6 2.6 90 -90 L 0 4.8",
        ),
        'Q' => (8.6, "O 4.3 5 4.3 5 M 5.4 2.6 L 8.2 -0.6"),
        'R' => (
            6.0,
            "M 0 0 L 0 10 L 3.3 10 A 3.3 7.4 2.6 2.6 90 -90 L 0 4.8 M 3.1 4.8 L 6 0",
        ),
        'S' => (6.0, "a 3 7.5 2.7 2.5 32 262 A 3 2.5 3 2.5 82 -150"),
        'T' => (6.6, "M 0 10 L 6.6 10 M 3.3 10 L 3.3 0"),
        'U' => (6.4, "M 0 10 L 0 3.2 A 3.2 3.2 3.2 3.2 180 360 L 6.4 10"),
        'V' => (7.0, "M 0 10 L 3.5 0 L 7 10"),
        'W' => (10.4, "M 0 10 L 2.6 0 L 5.2 9.4 L 7.8 0 L 10.4 10"),
        'X' => (6.4, "M 0 10 L 6.4 0 M 6.4 10 L 0 0"),
        'Y' => (6.6, "M 0 10 L 3.3 4.8 L 6.6 10 M 3.3 4.8 L 3.3 0"),
        'Z' => (6.0, "M 0.2 10 L 5.9 10 L 0 0 L 6 0"),
        _ => BOX,
    }
}

fn digit_or_sign(letter: char) -> (f32, &'static str) {
    match letter {
        '0' => (5.6, "O 2.8 5 2.8 5"),
        '1' => (5.6, "M 1 8 L 3.2 10 L 3.2 0"),
        '2' => (5.6, "a 2.8 7.3 2.6 2.7 165 -28 L 0.1 0 L 5.6 0"),
        '3' => (5.6, "a 2.7 7.6 2.4 2.4 150 -90 A 2.7 2.6 2.8 2.6 90 -155"),
        '4' => (5.8, "M 4.2 0 L 4.2 10 L 0 3 L 5.8 3"),
        '5' => (
            5.6,
            "M 5 10 L 1.1 10 L 0.72 5.46 A 2.7 3.2 2.8 3.2 135 -150",
        ),
        '6' => (5.6, "O 2.8 3.1 2.8 3.1 M 0 3.1 A 4.6 3.6 4.6 6.4 180 105"),
        '7' => (5.4, "M 0 10 L 5.4 10 L 1.8 0"),
        '8' => (5.6, "O 2.8 7.5 2.35 2.5 O 2.8 2.5 2.8 2.5"),
        '9' => (5.6, "O 2.8 6.9 2.8 3.1 a 1 6.4 4.6 6.4 0 -75"),
        '.' => (0.0, "O 0 0.1 0.2 0.2"),
        ',' => (0.6, "M 0.5 0.2 L -0.1 -1.7"),
        ':' => (0.0, "O 0 0.2 0.2 0.2 O 0 5.4 0.2 0.2"),
        ';' => (0.6, "M 0.5 0.2 L -0.1 -1.7 O 0.4 5.4 0.2 0.2"),
        '\'' => (0.0, "M 0 10 L 0 7.8"),
        '-' => (3.4, "M 0 4 L 3.4 4"),
        '+' => (5.2, "M 0 4.5 L 5.2 4.5 M 2.6 1.9 L 2.6 7.1"),
        '=' => (5.2, "M 0 3 L 5.2 3 M 0 6 L 5.2 6"),
        '%' => (7.8, "O 1.7 7.8 1.7 2.2 O 6.1 2.2 1.7 2.2 M 6.3 10 L 1.5 0"),
        '(' => (1.6, "a 3.6 3.6 3.4 7.4 125 235"),
        ')' => (1.6, "a -2 3.6 3.4 7.4 55 -55"),
        '/' => (4.0, "M 0 -1 L 4 10.6"),
        '_' => (5.0, "M 0 -1.5 L 5 -1.5"),
        _ => BOX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_glyph_can_be_parsed() {
        let letters = ('a'..='z')
            .chain('A'..='Z')
            .chain('0'..='9')
            .chain(".,:;'-+=%()/_".chars());
        for letter in letters {
            let (_, outline) = glyph(letter);
            assert_ne!(outline, BOX.1, "no outline for `{letter}`");
            let words: Vec<&str> = outline.split_ascii_whitespace().collect();
            let mut at = 0;
            while at < words.len() {
                let n_numbers = match words[at] {
                    "M" | "L" => 2,
                    "O" => 4,
                    "a" | "A" => 6,
                    other => panic!("`{letter}`: no command `{other}`"),
                };
                let numbers = &words[at + 1..=at + n_numbers];
                assert!(
                    numbers.iter().all(|word| word.parse::<f32>().is_ok()),
                    "`{letter}`"
                );
                at += n_numbers + 1;
            }
        }
    }

    #[test]
    fn longer_texts_are_wider() {
        assert!(width("softwood") > width("soft"));
        assert!(path("   ").is_none());
    }
}
