//! The spiral of Malinin et al. 2021: three classes on three arms, and maps of total, data and
//! knowledge uncertainty of `sglb` in and around them.

use std::f64::consts::PI;
use std::ops::RangeInclusive;

use softwood::{Column, Dataset, Distribution, Key, ModelSpec, Result, Table};

use super::toy_rows::dataset;
use super::uncertainty_maps::{MapRow, UncertaintyMap, cell_centres};
use super::{Figure, FigureRun, spec};
use crate::plot::axes::Axes;
use crate::plot::{Colour, Scene};

pub(crate) const FIGURE: Figure = Figure {
    name: "malinin-spiral",
    paper: "malinin",
    place: "figures 2 to 4",
    title: "uncertainty of an sglb ensemble on three spirals",
    caption: "Data uncertainty is large between the arms, where two classes meet, and knowledge uncertainty is large \
              around the spirals, where there are no rows.",
    reading: None,
    data: None,
    draw,
};

const N_CLASSES: usize = 3;
const ROWS_PER_CLASS: usize = 1500;
/// Cells of a map along each axis.
const GRID: usize = 80;
/// Largest angle of an arm; the radius is its square.
const MAX_ANGLE: f64 = 6.0 * PI;
/// The maps reach farther than the arms, whose largest radius is 355.
pub(super) const RANGE: RangeInclusive<f64> = -450.0..=450.0;

/// Random streams.
const POINTS: u64 = 1;
const FIT: u64 = 2;

const ARMS: [Colour; N_CLASSES] = [
    Colour::hex(0x00d9_5f02).with_opacity(0.55),
    Colour::hex(0x001b_9e77).with_opacity(0.55),
    Colour::hex(0x0075_70b3).with_opacity(0.55),
];

/// The points of a class.
struct SpiralPoints {
    x: Vec<f64>,
    y: Vec<f64>,
}

/// The training rows of all classes.
pub(super) struct SpiralRows {
    classes: Vec<SpiralPoints>,
    pub(super) data: Dataset,
}

/// Fits the ensemble and draws the three maps.
fn draw(figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
    let rows = SpiralRows::draw(run)?;
    let spec = sglb(run, &[])?;
    let model = run.fit(&spec, &rows.data, run.key(FIT))?;
    let parts = Distribution::new(model.as_ref(), &map_cells()?, run.pool)?.uncertainty()?;
    let map = |title: &str, values| UncertaintyMap {
        title: title.to_owned(),
        values,
    };
    let maps = vec![
        map("total: entropy of the mean", parts.total),
        map("data: mean entropy of the members", parts.data),
        map("knowledge: mutual information", parts.knowledge),
    ];
    Ok(rows.maps(figure, maps))
}

/// `sglb` with the settings of the paper; a quick run has fewer trees and members.
pub(super) fn sglb(run: &FigureRun<'_>, more: &[(&str, &str)]) -> Result<ModelSpec> {
    let params = [
        ("max_depth", "6"),
        ("learning_rate", "0.1"),
        ("n_members", run.choose("4", "20")),
        ("n_estimators", run.choose("100", "1000")),
    ];
    spec("sglb", &[&params[..], more].concat())
}

/// The cells of a map, as rows of features.
pub(super) fn map_cells() -> Result<Table> {
    let (x, y) = cell_centres(&RANGE, GRID);
    features(&SpiralPoints { x, y })
}

impl SpiralRows {
    pub(super) fn draw(run: &FigureRun<'_>) -> Result<Self> {
        let key = run.key(POINTS);
        let classes: Vec<SpiralPoints> = (0..N_CLASSES)
            .map(|class| arm(class, key.child(class as u64)))
            .collect();
        let all = |coordinate: fn(&SpiralPoints) -> &Vec<f64>| -> Vec<f64> {
            classes.iter().flat_map(coordinate).copied().collect()
        };
        let all = SpiralPoints {
            x: all(|points| &points.x),
            y: all(|points| &points.y),
        };
        let labels: Vec<Option<String>> = (0..all.x.len())
            .map(|row| Some((row / ROWS_PER_CLASS).to_string()))
            .collect();
        let data = dataset(features(&all)?, Column::categorical("class", &labels), true)?;
        Ok(Self { classes, data })
    }

    /// Maps with the points over them.
    pub(super) fn maps(&self, figure: &Figure, maps: Vec<UncertaintyMap>) -> Scene {
        let row = MapRow {
            title: figure.heading(),
            subtitle: vec![format!(
                "{} rows of three classes; a dot is every eighth row. Uncertainty in nats.",
                N_CLASSES * ROWS_PER_CLASS
            )],
            range: RANGE,
            n_cells: GRID,
            names: ["x", "y"],
            maps,
        };
        row.scene(|scene, axes, _| self.draw_points(scene, axes))
    }

    fn draw_points(&self, scene: &mut Scene, axes: &Axes) {
        for (points, colour) in self.classes.iter().zip(ARMS) {
            // every eighth point: the maps stay visible
            for (x, y) in points.x.iter().zip(&points.y).step_by(8) {
                scene.circle(axes.pixel(*x, *y), 1.1, colour);
            }
        }
    }
}

/// One arm: angle `a = 6 pi sqrt(u)`, radius `a²`, and uniform noise of width `0.4 a^1.5` in each
/// coordinate; arms are turned by a third of a circle each.
fn arm(class: usize, key: Key) -> SpiralPoints {
    let turn = 2.0 * PI * class as f64 / N_CLASSES as f64;
    let draws = key.uniforms(3 * ROWS_PER_CLASS);
    let point = |u: &[f64]| {
        let angle = MAX_ANGLE * u[0].sqrt();
        let (radius, width) = (angle * angle, 0.4 * angle.powf(1.5));
        let direction = angle + turn;
        (
            radius * direction.cos() + width * u[1],
            radius * direction.sin() + width * u[2],
        )
    };
    let (x, y) = draws.chunks_exact(3).map(point).unzip();
    SpiralPoints { x, y }
}

/// Factors of both coordinates in the linear features.
const LINEAR: [(&str, [f64; 2]); 8] = [
    ("x", [1.0, 0.0]),
    ("y", [0.0, 1.0]),
    ("x + y", [1.0, 1.0]),
    ("x - y", [1.0, -1.0]),
    ("2x + y", [2.0, 1.0]),
    ("x - 2y", [1.0, -2.0]),
    ("x + 2y", [1.0, 2.0]),
    ("2x - y", [2.0, -1.0]),
];

/// The nine features of the paper: both coordinates, six sums of them, and the radius.
fn features(points: &SpiralPoints) -> Result<Table> {
    let pairs = || points.x.iter().zip(&points.y);
    let linear = LINEAR
        .map(|(name, [a, b])| Column::numeric(name, pairs().map(|(x, y)| a * x + b * y).collect()));
    let radius = Column::numeric("radius", pairs().map(|(x, y)| x.hypot(*y)).collect());
    Table::new(linear.into_iter().chain([radius]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_turned_copies_but_for_noise() {
        let radius = |points: &SpiralPoints| {
            let pairs = points.x.iter().zip(&points.y);
            pairs.map(|(x, y)| x.hypot(*y)).fold(0.0, f64::max)
        };
        for class in 0..N_CLASSES {
            let points = arm(class, Key::from_seed(class as u64));
            assert_eq!(points.x.len(), ROWS_PER_CLASS);
            // at most 0.4 a^1.5 in each coordinate beyond a²
            let most = MAX_ANGLE * MAX_ANGLE + 0.6 * MAX_ANGLE.powf(1.5);
            assert!((0.9 * MAX_ANGLE * MAX_ANGLE..most).contains(&radius(&points)));
        }
    }
}
