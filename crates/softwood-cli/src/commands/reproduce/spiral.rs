//! The spiral of Malinin et al. 2021: three classes on three arms, and maps of total, data and
//! knowledge uncertainty of `sglb` in and around them.

use std::f64::consts::PI;

use softwood::observer::Observer;
use softwood::{Column, Dataset, Distribution, Family, Key, Pool, Result, Roles, Run, Table};

use crate::plot::axes::Axes;
use crate::plot::{Colour, Scene, TextLabel, heat_map};

pub(crate) const TITLE: &str = "Uncertainty of an sglb ensemble on three spirals";

const N_CLASSES: usize = 3;
const ROWS_PER_CLASS: usize = 1500;
/// Cells of a map along each axis.
const GRID: usize = 96;
/// The maps reach this much farther than the arms.
const MARGIN: f64 = 1.25;
/// Largest angle of an arm; the radius is its square.
const MAX_ANGLE: f64 = 6.0 * PI;

/// Random streams.
const POINTS: u64 = 1;
const FIT: u64 = 2;

const INK: Colour = Colour::hex(0x001f_2733);
const ARMS: [Colour; N_CLASSES] = [
    Colour::hex(0x00d9_5f02).with_opacity(0.55),
    Colour::hex(0x001b_9e77).with_opacity(0.55),
    Colour::hex(0x0075_70b3).with_opacity(0.55),
];

/// Ensemble of a run; a quick one is smaller.
pub(crate) struct SpiralModel {
    pub(crate) n_members: usize,
    pub(crate) n_estimators: usize,
}

/// The points of a class.
struct SpiralPoints {
    x: Vec<f64>,
    y: Vec<f64>,
}

/// Fits the ensemble and draws the three maps.
pub(crate) fn draw(
    model: &SpiralModel,
    seed: u64,
    pool: &Pool,
    observer: &dyn Observer,
) -> Result<Scene> {
    let key = Key::from_seed(seed);
    let classes: Vec<SpiralPoints> = (0..N_CLASSES)
        .map(|class| arm(class, key.child(POINTS).child(class as u64)))
        .collect();
    let all = SpiralPoints {
        x: classes
            .iter()
            .flat_map(|points| &points.x)
            .copied()
            .collect(),
        y: classes
            .iter()
            .flat_map(|points| &points.y)
            .copied()
            .collect(),
    };
    let labels: Vec<Option<String>> = (0..all.x.len())
        .map(|row| Some((row / ROWS_PER_CLASS).to_string()))
        .collect();
    let table = features(&all)?.with_column(Column::categorical("class", &labels))?;
    let roles = Roles {
        target: "class".to_owned(),
        ..Roles::default()
    };
    let data = Dataset::from_table(table, &roles)?;
    let params = [
        ("max_depth", 6.to_string()),
        ("learning_rate", 0.1.to_string()),
        ("n_members", model.n_members.to_string()),
        ("n_estimators", model.n_estimators.to_string()),
    ];
    let params = params.map(|(key, value)| (key.to_owned(), value));
    let spec = Family::from_name("sglb")?.params(&params)?;
    let run = Run::new(key.child(FIT), pool).observer(observer);
    let fitted = spec.fit_with(&data, &run)?;

    let reach = MARGIN * MAX_ANGLE * MAX_ANGLE;
    let grid = features(&grid_points(reach))?;
    let parts = Distribution::new(fitted.as_ref(), &grid, pool)?.uncertainty()?;
    let mut scene = Scene::new(1080.0, 430.0);
    scene.text(TextLabel::new([20.0, 34.0], TITLE, 20.0, INK).bold());
    let maps = [
        ("total: entropy of the mean", parts.total),
        ("data: mean entropy of the members", parts.data),
        ("knowledge: mutual information", parts.knowledge),
    ];
    for (at, (name, values)) in maps.iter().enumerate() {
        let axes = Axes {
            corner: [20.0 + 355.0 * at as f32, 70.0],
            extent: [330.0, 330.0],
            x: -reach..=reach,
            y: -reach..=reach,
        };
        let place = [axes.corner[0], axes.corner[1] - 10.0];
        scene.text(TextLabel::new(place, *name, 14.0, INK));
        heat_map::draw(&mut scene, &axes, values, GRID);
        for (points, colour) in classes.iter().zip(ARMS) {
            // every fifth point: the maps stay visible
            for (x, y) in points.x.iter().zip(&points.y).step_by(5) {
                scene.circle(axes.pixel(*x, *y), 1.1, colour);
            }
        }
    }
    Ok(scene)
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

/// Centres of the cells of a map, row by row from the lowest `y`.
fn grid_points(reach: f64) -> SpiralPoints {
    let place = |at: usize| reach * (2.0 * (at as f64 + 0.5) / GRID as f64 - 1.0);
    let cells = (0..GRID).flat_map(|row| (0..GRID).map(move |column| (place(column), place(row))));
    let (x, y) = cells.unzip();
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
