//! The plot of the demonstration: training rows, true mean, predicted mean, and a 90% band of data
//! and knowledge uncertainty.

use softwood::data::Values;
use softwood::distribution::Moments;
use softwood::{Distribution, Model, Pool, Result, Table};

use crate::commands::demo::data;
use crate::plot::axes::Axes;
use crate::plot::{Anchor, Colour, Scene, TextLabel};

pub(crate) const TITLE: &str = "Predictive distribution of a variational soft tree";
const SUBTITLE: &str = "Away from the training data, knowledge uncertainty widens the 90% band by as much as the target may vary there.";

const INK: Colour = Colour::hex(0x001f_2733);
const QUIET: Colour = Colour::hex(0x006b_7686);
const MEAN: Colour = Colour::hex(0x0014_5da0);
const DATA_BAND: Colour = Colour::hex(0x0088_b8e3);
const KNOWLEDGE_BAND: Colour = Colour::hex(0x00fb_c78a);
const POINT: Colour = Colour::hex(0x0026_3445).with_opacity(0.42);
const EMPTY: Colour = Colour::hex(0x00f6_f7f9);

/// Half the width of the central 90% interval of a Normal distribution, in standard deviations.
const HALF_90: f64 = 1.644_853_626_951_472_8;
/// Points on the x axis at which the model is evaluated.
const GRID: usize = 401;
const X_RANGE: std::ops::RangeInclusive<f64> = -5.3..=5.0;

/// Draws the training rows and the predictions on a grid of `x`.
pub(crate) fn draw(model: &dyn Model, train: &Table, pool: &Pool) -> Result<Scene> {
    let (left, right) = (*X_RANGE.start(), *X_RANGE.end());
    let xs: Vec<f64> = (0..GRID)
        .map(|at| left + (right - left) * at as f64 / (GRID - 1) as f64)
        .collect();
    let grid = Table::new(vec![softwood::Column::numeric("x", xs.clone())])?;
    let moments = Distribution::new(model, &grid, pool)?.moments()?;
    let ys = numbers(train, "y")?;
    let true_mean: Vec<f64> = xs.iter().map(|x| data::mean(*x)).collect();
    let axes = Axes {
        corner: [70.0, 118.0],
        extent: [850.0, 370.0],
        x: X_RANGE,
        y: y_range(ys, &true_mean),
    };
    let mut scene = Scene::new(960.0, 560.0);
    draw_heading(&mut scene);
    shade_empty(&mut scene, &axes);
    axes.draw_grid(&mut scene);
    label_empty(&mut scene, &axes);
    draw_bands(&mut scene, &axes, &xs, &moments);
    for (x, y) in numbers(train, "x")?.iter().zip(ys) {
        scene.circle(axes.pixel(*x, *y), 2.8, POINT);
    }
    for piece in axes.curve(&xs, &moments.mean) {
        scene.line(piece, MEAN, 2.6);
    }
    for piece in axes.curve(&xs, &true_mean) {
        scene.dashed(piece, INK, 1.6);
    }
    axes.draw_frame(&mut scene, "x", "y");
    draw_legend(&mut scene);
    Ok(scene)
}

fn draw_bands(scene: &mut Scene, axes: &Axes, xs: &[f64], moments: &Moments) {
    let edges = |variances: &[f64]| {
        let pairs = moments.mean.iter().zip(variances);
        let edge = |(mean, variance): (&f64, &f64)| {
            let half = HALF_90 * variance.sqrt();
            (mean - half, mean + half)
        };
        pairs.map(edge).collect::<(Vec<f64>, Vec<f64>)>()
    };
    let (lower, upper) = edges(&moments.variance.total);
    scene.polygon(axes.band(xs, &lower, &upper), KNOWLEDGE_BAND);
    let (lower, upper) = edges(&moments.variance.data);
    scene.polygon(axes.band(xs, &lower, &upper), DATA_BAND);
}

/// Shades the regions without training rows.
fn shade_empty(scene: &mut Scene, axes: &Axes) {
    for range in &data::EMPTY_RANGES {
        let [left, top] = axes.pixel(*range.start(), *axes.y.end());
        let [right, bottom] = axes.pixel(*range.end(), *axes.y.start());
        scene.rectangle([left, top], [right - left, bottom - top], EMPTY);
    }
}

fn label_empty(scene: &mut Scene, axes: &Axes) {
    for range in &data::EMPTY_RANGES {
        let [x, top] = axes.pixel(f64::midpoint(*range.start(), *range.end()), *axes.y.end());
        let note = TextLabel::new([x, top + 22.0], "no training data", 13.0, QUIET);
        scene.text(note.anchored(Anchor::Middle));
    }
}

fn draw_heading(scene: &mut Scene) {
    scene.text(TextLabel::new([70.0, 42.0], TITLE, 22.0, INK).bold());
    scene.text(TextLabel::new([70.0, 66.0], SUBTITLE, 14.0, QUIET));
}

fn draw_legend(scene: &mut Scene) {
    let y = 96.0;
    let mut x = 70.0;
    let entries: [(&str, f32); 5] = [
        ("training data", 136.0),
        ("true mean", 125.0),
        ("predicted mean", 160.0),
        ("90% band: data uncertainty", 239.0),
        ("plus knowledge uncertainty", 0.0),
    ];
    for (at, (name, width)) in entries.into_iter().enumerate() {
        let middle = y - 4.5;
        match at {
            0 => scene.circle([x + 9.0, middle], 3.4, POINT),
            1 => scene.dashed(vec![[x, middle], [x + 24.0, middle]], INK, 1.6),
            2 => scene.line(vec![[x, middle], [x + 24.0, middle]], MEAN, 2.6),
            3 => scene.rectangle([x, middle - 6.0], [24.0, 12.0], DATA_BAND),
            _ => scene.rectangle([x, middle - 6.0], [24.0, 12.0], KNOWLEDGE_BAND),
        }
        let offset = if at == 0 { 20.0 } else { 32.0 };
        scene.text(TextLabel::new([x + offset, y], name, 13.0, INK));
        x += width;
    }
}

/// The range of the training rows and the true mean, with a margin; bands are clipped to it.
fn y_range(ys: &[f64], true_mean: &[f64]) -> std::ops::RangeInclusive<f64> {
    let all = || ys.iter().chain(true_mean).copied();
    let (least, most) = (
        all().fold(f64::MAX, f64::min),
        all().fold(f64::MIN, f64::max),
    );
    let margin = 0.22 * (most - least);
    least - margin..=most + margin
}

fn numbers<'a>(table: &'a Table, name: &str) -> Result<&'a [f64]> {
    match &table.column(name)?.values {
        Values::Numeric(values) => Ok(values),
        Values::Categorical { .. } => Ok(&[]),
    }
}
