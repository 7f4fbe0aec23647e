//! Figure 3 of Irsoy et al. 2012: the response of a soft tree to a sinusoid while it grows.

use std::f64::consts::PI;
use std::ops::RangeInclusive;

use softwood::Result;

use super::curves::moments_at;
use super::toy_rows::{curve_dataset, mean_squared_error, normals, uniforms};
use super::{Figure, FigureRun, spec};
use crate::plot::Scene;
use crate::plot::chart::{
    Chart, ChartPanel, INK, PALETTE, POINT, Series, SeriesStyle, equidistant,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "irsoy-figure-3",
    paper: "irsoy",
    place: "figure 3",
    title: "a soft tree grows on a sinusoid",
    caption: "Every split of a leaf joins two straight pieces by a smooth step: four leaves follow the sinusoid, while a \
              hard tree of as many leaves has four constant levels.",
    reading: Some(
        "Rows and sizes of the trees are ours, and the leaves are linear in x; those of the paper are constant.",
    ),
    data: None,
    draw,
};

const N_ROWS: usize = 400;
const NOISE: f64 = 0.2;
const RANGE: RangeInclusive<f64> = -1.0..=1.0;
/// Numbers of leaves of the panels.
const LEAVES: [usize; 6] = [1, 2, 3, 4, 5, 6];

/// Soft trees with linear leaves on the column itself.
const SOFT: [(&str, &str); 4] = [
    ("leaf_model", "linear"),
    ("scaling", "standard"),
    ("rotation", "none"),
    ("squares", "false"),
];

/// Random streams.
mod streams {
    pub(super) const PLACES: u64 = 1;
    pub(super) const NOISE: u64 = 2;
    pub(super) const FIT: u64 = 3;
}

fn sinusoid(x: f64) -> f64 {
    (2.0 * PI * x).sin()
}

fn draw(figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
    let xs = uniforms(run.key(streams::PLACES), N_ROWS, [-1.0, 1.0]);
    let noise = normals(run.key(streams::NOISE), N_ROWS);
    let ys: Vec<f64> = xs
        .iter()
        .zip(noise)
        .map(|(x, noise)| sinusoid(*x) + NOISE * noise)
        .collect();
    let data = curve_dataset(&xs, &ys)?;
    let grid = equidistant(&RANGE, 201);
    let truth: Vec<f64> = grid.iter().map(|x| sinusoid(*x)).collect();
    let panels = run.each(LEAVES.len(), |run, at| {
        let n_leaves = LEAVES[at].to_string();
        let curve = |family: &str, more: &[(&str, &str)]| {
            let size = [("max_leaf_nodes", &*n_leaves)];
            let spec = spec(family, &[&size[..], more].concat())?;
            let model = run.fit(&spec, &data, run.key(streams::FIT))?;
            Ok((
                moments_at(model.as_ref(), &grid, run)?.mean,
                model.n_nodes(),
            ))
        };
        let ((soft, n_nodes), (hard, _)) = (curve("soft-tree", &SOFT)?, curve("tree", &[])?);
        let line = |name: &str, width: f32, colour, ys: &[f64]| {
            Series::new(name, SeriesStyle::Line(width), colour, &grid, ys)
        };
        Ok(ChartPanel {
            title: format!(
                "{}: squared error {:.3}",
                node_count(n_nodes.unwrap_or(1.0)),
                mean_squared_error(&soft, &truth)
            ),
            x_name: "x".to_owned(),
            y_name: "y".to_owned(),
            x: RANGE,
            y: -1.75..=1.75,
            x_labels: Vec::new(),
            series: vec![
                Series::new("training rows", SeriesStyle::Points(1.8), POINT, &xs, &ys),
                Series::new("sinusoid", SeriesStyle::Dashed, INK, &grid, &truth),
                line("tree of as many leaves", 1.4, PALETTE[1], &hard),
                line("soft-tree", 2.6, PALETTE[0], &soft),
            ],
        })
    })?;
    let chart = Chart {
        title: figure.heading(),
        subtitle: vec![format!(
            "{N_ROWS} rows of sin(2πx) with noise of standard deviation {NOISE}; nodes and error of soft-tree, error \
             against the sinusoid"
        )],
        n_columns: 3,
        extent: [270.0, 200.0],
        panels,
    };
    Ok(chart.scene())
}

/// A number of nodes in words.
fn node_count(n: f64) -> String {
    if n > 1.0 {
        format!("{n} nodes")
    } else {
        "1 node".to_owned()
    }
}
