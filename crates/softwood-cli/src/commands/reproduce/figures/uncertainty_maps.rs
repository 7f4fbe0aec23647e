//! Maps of uncertainty over the plane of two columns, side by side.

use std::ops::RangeInclusive;

use crate::plot::axes::Axes;
use crate::plot::chart::{INK, QUIET, draw_heading};
use crate::plot::{Scene, TextLabel, heat_map};

/// Width and height of a map, in pixels, and the distance of two maps.
const EXTENT: f32 = 300.0;
const GAP: f32 = 80.0;
const LEFT: f32 = 70.0;

/// A map: values on a grid of cells, row by row from the lowest `y`.
pub(super) struct UncertaintyMap {
    pub(super) title: String,
    pub(super) values: Vec<f64>,
}

/// Maps with common axes.
pub(super) struct MapRow {
    pub(super) title: String,
    pub(super) subtitle: Vec<String>,
    /// Range of both axes.
    pub(super) range: RangeInclusive<f64>,
    /// Number of cells along an axis.
    pub(super) n_cells: usize,
    /// Names of the axes.
    pub(super) names: [&'static str; 2],
    pub(super) maps: Vec<UncertaintyMap>,
}

impl MapRow {
    /// Draws the maps; `overlay` draws over each, by its number.
    pub(super) fn scene(&self, overlay: impl Fn(&mut Scene, &Axes, usize)) -> Scene {
        let n = self.maps.len() as f32;
        let mut scene = Scene::new(LEFT + n * (EXTENT + GAP) - GAP + 30.0, 0.0);
        let top = draw_heading(&mut scene, &self.title, &self.subtitle) + 38.0;
        for (at, map) in self.maps.iter().enumerate() {
            let axes = Axes {
                corner: [LEFT + at as f32 * (EXTENT + GAP), top],
                extent: [EXTENT, EXTENT],
                x: self.range.clone(),
                y: self.range.clone(),
            };
            let line = |up: f32| [axes.corner[0], top - up];
            scene.text(TextLabel::new(line(28.0), &map.title, 14.0, INK));
            scene.text(TextLabel::new(
                line(10.0),
                scale_text(&map.values),
                12.0,
                QUIET,
            ));
            axes.draw_grid(&mut scene);
            heat_map::draw(&mut scene, &axes, &map.values, self.n_cells);
            overlay(&mut scene, &axes, at);
            axes.draw_frame(&mut scene, self.names[0], self.names[1]);
        }
        scene.height = top + EXTENT + 62.0;
        scene
    }
}

/// What the lightest and the darkest colour stand for.
fn scale_text(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("light {}, dark {}", short(least), short(most))
}

/// A number with two or three digits that count.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 0.1 => format!("{value:.2}"),
        size if size >= 0.001 => format!("{value:.4}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.1e}"),
    }
}

/// Centres of the cells of a map, row by row from the lowest `y`: their `x` and their `y`.
pub(super) fn cell_centres(range: &RangeInclusive<f64>, n_cells: usize) -> (Vec<f64>, Vec<f64>) {
    let width = (range.end() - range.start()) / n_cells as f64;
    let place = |at: usize| range.start() + width * (at as f64 + 0.5);
    let cells =
        (0..n_cells).flat_map(|row| (0..n_cells).map(move |column| (place(column), place(row))));
    cells.unzip()
}
