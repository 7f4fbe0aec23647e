//! Writes a scene as SVG, with text elements that can be selected and read by screen readers.

use std::fmt::Write as _;

use crate::plot::{Anchor, Colour, Scene, SceneShape, TextLabel};

const FONTS: &str = "Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif";

/// The text of an SVG file; `title` is the accessible title.
pub(crate) fn write(scene: &Scene, title: &str) -> String {
    let (width, height) = (scene.width, scene.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\" role=\"img\">\n\
         <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escape(title)
    );
    for shape in &scene.shapes {
        write_shape(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

fn write_shape(out: &mut String, shape: &SceneShape) {
    let written = match shape {
        SceneShape::Polygon { points, fill } => {
            writeln!(
                out,
                "<polygon points=\"{}\" {}/>",
                list(points),
                paint("fill", *fill)
            )
        }
        SceneShape::Rectangles { rectangles, fill } => {
            let path = |[left, top, width, height]: &[f32; 4]| {
                format!("M{left:.1} {top:.1}h{width:.1}v{height:.1}h-{width:.1}z")
            };
            let paths: String = rectangles.iter().map(path).collect();
            writeln!(out, "<path d=\"{paths}\" {}/>", paint("fill", *fill))
        }
        SceneShape::Line {
            points,
            colour,
            width,
            dash,
        } => {
            let dash = dash.map_or_else(String::new, |[on, off]| {
                format!(" stroke-dasharray=\"{on} {off}\"")
            });
            writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" {} stroke-width=\"{width}\" \
                 stroke-linejoin=\"round\" stroke-linecap=\"round\"{dash}/>",
                list(points),
                paint("stroke", *colour)
            )
        }
        SceneShape::Circle {
            centre: [x, y],
            radius,
            fill,
        } => writeln!(
            out,
            "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius}\" {}/>",
            paint("fill", *fill)
        ),
        SceneShape::TextLabel(text) => write_text(out, text),
    };
    written.expect("writing to a String cannot fail");
}

fn write_text(out: &mut String, text: &TextLabel) -> std::fmt::Result {
    let [x, y] = text.at;
    let anchor = match text.anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let weight = if text.bold {
        " font-weight=\"600\""
    } else {
        ""
    };
    let turn = if text.upright {
        format!(" transform=\"rotate(-90 {x} {y})\"")
    } else {
        String::new()
    };
    writeln!(
        out,
        "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{}\" text-anchor=\"{anchor}\"{weight}{turn} {}>{}</text>",
        text.size,
        paint("fill", text.colour),
        escape(&text.content)
    )
}

fn list(points: &[[f32; 2]]) -> String {
    let points: Vec<String> = points
        .iter()
        .map(|[x, y]| format!("{x:.2},{y:.2}"))
        .collect();
    points.join(" ")
}

fn paint(role: &str, colour: Colour) -> String {
    let [red, green, blue] = colour.rgb;
    let opacity = if colour.opacity < 1.0 {
        format!(" {role}-opacity=\"{}\"", colour.opacity)
    } else {
        String::new()
    };
    format!("{role}=\"#{red:02x}{green:02x}{blue:02x}\"{opacity}")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_tags_closed() {
        let mut scene = Scene::new(10.0, 10.0);
        scene.text(TextLabel::new([1.0, 2.0], "a < b & c", 5.0, Colour::hex(0)));
        scene.circle([1.0, 1.0], 2.0, Colour::hex(0x00ff_0000).with_opacity(0.5));
        scene.rectangles(vec![[1.0, 2.0, 3.0, 4.0]], Colour::hex(0));
        let svg = write(&scene, "x > y");
        assert!(svg.contains("<path d=\"M1.0 2.0h3.0v4.0h-3.0z\" fill=\"#000000\"/>"));
        assert!(svg.contains("a &lt; b &amp; c") && svg.contains("<title>x &gt; y</title>"));
        assert!(svg.contains("fill=\"#ff0000\" fill-opacity=\"0.5\""));
        assert!(svg.ends_with("</svg>\n"));
    }
}
