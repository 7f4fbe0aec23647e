//! Writes a scene as PNG. Text is drawn with the built-in stroke font, so no system font is needed.

use anyhow::{Context, Result};
use tiny_skia::{
    FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};

use crate::plot::{Anchor, Colour, Scene, SceneShape, TextLabel, font};

/// The bytes of a PNG file; `scale` is the number of pixels per pixel of the scene.
pub(crate) fn write(scene: &Scene, scale: f32) -> Result<Vec<u8>> {
    let (width, height) = ((scene.width * scale) as u32, (scene.height * scale) as u32);
    let mut page = Pixmap::new(width, height).context("the plot has no pixels")?;
    page.fill(tiny_skia::Color::WHITE);
    let zoom = Transform::from_scale(scale, scale);
    for shape in &scene.shapes {
        draw(&mut page, shape, zoom);
    }
    page.encode_png().context("encoding the plot")
}

fn draw(page: &mut Pixmap, shape: &SceneShape, zoom: Transform) {
    match shape {
        SceneShape::Polygon { points, fill } => {
            if let Some(path) = polyline(points, true) {
                page.fill_path(&path, &paint(*fill), FillRule::Winding, zoom, None);
            }
        }
        SceneShape::Line {
            points,
            colour,
            width,
            dash,
        } => {
            if let Some(path) = polyline(points, false) {
                let dash = dash.and_then(|lengths| StrokeDash::new(lengths.to_vec(), 0.0));
                page.stroke_path(&path, &paint(*colour), &pen(*width, dash), zoom, None);
            }
        }
        SceneShape::Circle {
            centre: [x, y],
            radius,
            fill,
        } => {
            if let Some(path) = PathBuilder::from_circle(*x, *y, *radius) {
                page.fill_path(&path, &paint(*fill), FillRule::Winding, zoom, None);
            }
        }
        SceneShape::TextLabel(text) => draw_text(page, text, zoom),
    }
}

fn draw_text(page: &mut Pixmap, text: &TextLabel, zoom: Transform) {
    let unit = text.size / font::SIZE;
    let length = font::width(&text.content);
    let shift = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => -length / 2.0,
        Anchor::End => -length,
    };
    let Some(path) = font::path(&text.content) else {
        return;
    };
    let turn = if text.upright { -90.0 } else { 0.0 };
    // the font's y axis points up
    let place = Transform::from_translate(shift, 0.0)
        .post_scale(unit, -unit)
        .post_concat(Transform::from_rotate(turn))
        .post_translate(text.at[0], text.at[1])
        .post_concat(zoom);
    let weight = if text.bold { font::BOLD } else { font::REGULAR };
    page.stroke_path(&path, &paint(text.colour), &pen(weight, None), place, None);
}

fn polyline(points: &[[f32; 2]], closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    builder.move_to(first[0], first[1]);
    for [x, y] in rest {
        builder.line_to(*x, *y);
    }
    if closed {
        builder.close();
    }
    builder.finish()
}

fn pen(width: f32, dash: Option<StrokeDash>) -> Stroke {
    Stroke {
        width,
        line_cap: LineCap::Round,
        line_join: LineJoin::Round,
        dash,
        ..Stroke::default()
    }
}

fn paint(colour: Colour) -> Paint<'static> {
    let [red, green, blue] = colour.rgb;
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, (colour.opacity * 255.0).round() as u8);
    paint.anti_alias = true;
    paint
}
