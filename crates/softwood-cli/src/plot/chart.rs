//! Charts: panels of series under one title, subtitle and legend.

use std::ops::RangeInclusive;

use crate::plot::axes::Axes;
use crate::plot::{Colour, Scene, TextLabel};

pub(crate) const INK: Colour = Colour::hex(0x001f_2733);
pub(crate) const QUIET: Colour = Colour::hex(0x006b_7686);
pub(crate) const DATA_BAND: Colour = Colour::hex(0x0088_b8e3);
pub(crate) const KNOWLEDGE_BAND: Colour = Colour::hex(0x00fb_c78a);
pub(crate) const POINT: Colour = Colour::hex(0x0026_3445).with_opacity(0.35);
/// Colours of series, in turn.
pub(crate) const PALETTE: [Colour; 6] = [
    Colour::hex(0x0014_5da0),
    Colour::hex(0x00d9_6b0b),
    Colour::hex(0x002e_8b57),
    Colour::hex(0x00a0_2c5a),
    Colour::hex(0x006a_51a3),
    Colour::hex(0x0060_6a78),
];

/// Margins of a chart and distances between its panels, in pixels.
const LEFT: f32 = 70.0;
const RIGHT: f32 = 36.0;
const BOTTOM: f32 = 62.0;
const GAP: [f32; 2] = [82.0, 106.0];
/// Height of a line of the subtitle or of the legend.
const LINE_HEIGHT: f32 = 21.0;
/// Mean width of a letter of the legend.
const LETTER: f32 = 6.9;
/// Share of a unit of the x axis that a bar fills.
const BAR_WIDTH: f64 = 0.78;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SeriesStyle {
    /// A line of this width.
    Line(f32),
    /// A thin dashed line.
    Dashed,
    /// A line with a dot at every point.
    DottedLine,
    /// The area between `ys` and `upper`.
    Band,
    /// Dots of this radius.
    Points(f32),
    /// Bars from zero to `ys`.
    Bars,
}

/// Points, a curve, a band or bars.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Name in the legend; series of one name share an entry, and those without a name have none.
    pub(crate) name: String,
    pub(crate) style: SeriesStyle,
    pub(crate) colour: Colour,
    pub(crate) xs: Vec<f64>,
    pub(crate) ys: Vec<f64>,
    /// Upper edge of a band.
    pub(crate) upper: Vec<f64>,
}

impl Series {
    pub(crate) fn new(
        name: impl Into<String>,
        style: SeriesStyle,
        colour: Colour,
        xs: &[f64],
        ys: &[f64],
    ) -> Self {
        Self {
            name: name.into(),
            style,
            colour,
            xs: xs.to_vec(),
            ys: ys.to_vec(),
            upper: Vec::new(),
        }
    }

    /// The area between two curves.
    pub(crate) fn band(
        name: impl Into<String>,
        colour: Colour,
        xs: &[f64],
        [lower, upper]: [&[f64]; 2],
    ) -> Self {
        Self {
            upper: upper.to_vec(),
            ..Self::new(name, SeriesStyle::Band, colour, xs, lower)
        }
    }

    fn draw(&self, scene: &mut Scene, axes: &Axes) {
        let inside = || {
            let points = self.xs.iter().zip(&self.ys);
            points.filter(|(x, y)| axes.x.contains(x) && axes.y.contains(y))
        };
        let dots = |scene: &mut Scene, radius: f32| {
            for (x, y) in inside() {
                scene.circle(axes.pixel(*x, *y), radius, self.colour);
            }
        };
        match self.style {
            SeriesStyle::Line(width) => {
                for piece in axes.curve(&self.xs, &self.ys) {
                    scene.line(piece, self.colour, width);
                }
            }
            SeriesStyle::Dashed => {
                for piece in axes.curve(&self.xs, &self.ys) {
                    scene.dashed(piece, self.colour, 1.6);
                }
            }
            SeriesStyle::DottedLine => {
                for piece in axes.curve(&self.xs, &self.ys) {
                    scene.line(piece, self.colour, 2.2);
                }
                dots(scene, 3.6);
            }
            SeriesStyle::Band => {
                scene.polygon(axes.band(&self.xs, &self.ys, &self.upper), self.colour);
            }
            SeriesStyle::Points(radius) => dots(scene, radius),
            SeriesStyle::Bars => {
                for (x, y) in self.xs.iter().zip(&self.ys) {
                    let [left, top] = axes.pixel(x - 0.5 * BAR_WIDTH, *y);
                    let [right, bottom] = axes.pixel(x + 0.5 * BAR_WIDTH, 0.0);
                    scene.rectangle([left, top], [right - left, bottom - top], self.colour);
                }
            }
        }
    }

    /// The sign of the series in the legend.
    fn draw_sign(&self, scene: &mut Scene, [left, middle]: [f32; 2]) {
        let line = vec![[left, middle], [left + 24.0, middle]];
        match self.style {
            SeriesStyle::Line(width) => scene.line(line, self.colour, width),
            SeriesStyle::Dashed => scene.dashed(line, self.colour, 1.6),
            SeriesStyle::DottedLine => {
                scene.line(line, self.colour, 2.2);
                scene.circle([left + 12.0, middle], 3.6, self.colour);
            }
            SeriesStyle::Band | SeriesStyle::Bars => {
                scene.rectangle([left, middle - 6.0], [24.0, 12.0], self.colour);
            }
            SeriesStyle::Points(radius) => {
                scene.circle([left + 12.0, middle], radius.max(2.4), self.colour);
            }
        }
    }
}

/// One pair of axes with its series.
#[derive(Debug, Clone)]
pub(crate) struct ChartPanel {
    pub(crate) title: String,
    pub(crate) x_name: String,
    pub(crate) y_name: String,
    pub(crate) x: RangeInclusive<f64>,
    pub(crate) y: RangeInclusive<f64>,
    /// Labels at 0, 1, 2, ... on the x axis; empty: round numbers.
    pub(crate) x_labels: Vec<String>,
    /// In the order in which they are drawn.
    pub(crate) series: Vec<Series>,
}

/// A picture of panels, row by row.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// Lines below the title.
    pub(crate) subtitle: Vec<String>,
    /// Number of panels in a row.
    pub(crate) n_columns: usize,
    /// Width and height of a panel, in pixels.
    pub(crate) extent: [f32; 2],
    pub(crate) panels: Vec<ChartPanel>,
}

impl Chart {
    /// Draws the chart.
    pub(crate) fn scene(&self) -> Scene {
        let n_columns = self.n_columns.clamp(1, self.panels.len().max(1));
        let n_rows = self.panels.len().div_ceil(n_columns);
        let span = |n: usize, axis: usize| {
            n as f32 * self.extent[axis] + n.saturating_sub(1) as f32 * GAP[axis]
        };
        let width = LEFT + span(n_columns, 0) + RIGHT;
        let mut scene = Scene::new(width, 0.0);
        let mut y = draw_heading(&mut scene, &self.title, &self.subtitle);
        y = self.draw_legend(&mut scene, y, width - RIGHT);
        let has_titles = self.panels.iter().any(|panel| !panel.title.is_empty());
        let top = if has_titles { y + 18.0 } else { y };
        for (at, panel) in self.panels.iter().enumerate() {
            let (row, column) = (at / n_columns, at % n_columns);
            let axes = Axes {
                corner: [
                    LEFT + column as f32 * (self.extent[0] + GAP[0]),
                    top + row as f32 * (self.extent[1] + GAP[1]),
                ],
                extent: self.extent,
                x: panel.x.clone(),
                y: panel.y.clone(),
            };
            panel.draw(&mut scene, &axes);
        }
        scene.height = top + span(n_rows, 1) + BOTTOM;
        scene
    }

    /// Draws the names of the series, in as many lines as they need; returns where the panels begin.
    fn draw_legend(&self, scene: &mut Scene, top: f32, right: f32) -> f32 {
        let mut names: Vec<&str> = Vec::new();
        let [mut x, mut y] = [LEFT, top + 8.0];
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if series.name.is_empty() || names.contains(&&*series.name) {
                continue;
            }
            names.push(&series.name);
            let width = 36.0 + LETTER * series.name.chars().count() as f32;
            if x > LEFT && x + width > right {
                [x, y] = [LEFT, y + LINE_HEIGHT];
            }
            series.draw_sign(scene, [x, y - 4.5]);
            scene.text(TextLabel::new([x + 32.0, y], &series.name, 13.0, INK));
            x += width + 18.0;
        }
        if names.is_empty() { top } else { y + 18.0 }
    }
}

impl ChartPanel {
    fn draw(&self, scene: &mut Scene, axes: &Axes) {
        let [left, top] = axes.corner;
        if !self.title.is_empty() {
            scene.text(TextLabel::new([left, top - 9.0], &self.title, 14.0, INK));
        }
        if self.x_labels.is_empty() {
            axes.draw_grid(scene);
        } else {
            let labels = self.x_labels.iter().enumerate();
            let ticks: Vec<(f64, String)> = labels
                .map(|(at, label)| (at as f64, label.clone()))
                .collect();
            axes.draw_grid_at(scene, &ticks);
        }
        for series in &self.series {
            series.draw(scene, axes);
        }
        axes.draw_frame(scene, &self.x_name, &self.y_name);
    }
}

/// Draws title and subtitle; returns the baseline of the next line.
pub(crate) fn draw_heading(scene: &mut Scene, title: &str, subtitle: &[String]) -> f32 {
    scene.text(TextLabel::new([LEFT, 42.0], title, 22.0, INK).bold());
    let mut y = 46.0;
    for line in subtitle {
        y += LINE_HEIGHT;
        scene.text(TextLabel::new([LEFT, y], line, 14.0, QUIET));
    }
    y + LINE_HEIGHT
}

/// The range of some numbers with a margin of this share of it on both sides.
pub(crate) fn padded_range(
    values: impl Iterator<Item = f64> + Clone,
    margin: f64,
) -> RangeInclusive<f64> {
    let finite = values.filter(|value| value.is_finite());
    let least = finite.clone().fold(f64::INFINITY, f64::min);
    let most = finite.fold(f64::NEG_INFINITY, f64::max);
    if least > most {
        return 0.0..=1.0;
    }
    let width = (most - least).max(1e-9 * least.abs().max(1e-3));
    least - margin * width..=most + margin * width
}

/// `n` equidistant numbers from one end of a range to the other.
pub(crate) fn equidistant(range: &RangeInclusive<f64>, n: usize) -> Vec<f64> {
    let step = (range.end() - range.start()) / n.saturating_sub(1).max(1) as f64;
    (0..n).map(|at| range.start() + step * at as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::SceneShape;

    #[test]
    fn series_of_one_name_share_an_entry_and_long_legends_have_lines() {
        let line =
            |name: &str| Series::new(name, SeriesStyle::Line(2.0), INK, &[0.0, 1.0], &[0.0, 1.0]);
        let panel = ChartPanel {
            title: "panel".to_owned(),
            x_name: "x".to_owned(),
            y_name: "y".to_owned(),
            x: 0.0..=1.0,
            y: 0.0..=1.0,
            x_labels: Vec::new(),
            series: vec![line("first"), line(""), line(&"long ".repeat(12))],
        };
        let chart = Chart {
            title: "chart".to_owned(),
            subtitle: vec!["one line".to_owned()],
            n_columns: 1,
            extent: [300.0, 200.0],
            panels: vec![panel.clone(), panel],
        };
        let scene = chart.scene();
        let labels = |start: &str| -> Vec<[f32; 2]> {
            let texts = scene.shapes.iter().filter_map(|shape| match shape {
                SceneShape::TextLabel(text) if text.content.starts_with(start) => Some(text.at),
                _ => None,
            });
            texts.collect()
        };
        let (first, long) = (labels("first"), labels("long"));
        assert_eq!((first.len(), long.len(), labels("panel").len()), (1, 1, 2));
        assert!(long[0][1] > first[0][1]);
        assert!(labels("panel")[1][1] < scene.height);
    }

    #[test]
    fn ranges_have_a_margin_and_ignore_what_is_not_finite() {
        let values = [1.0, f64::NAN, 3.0, f64::INFINITY];
        assert_eq!(padded_range(values.into_iter(), 0.5), 0.0..=4.0);
        assert_eq!(padded_range([].into_iter(), 0.5), 0.0..=1.0);
        assert_eq!(equidistant(&(0.0..=2.0), 3), [0.0, 1.0, 2.0]);
    }
}
