//! Figure 2 of Antoran et al. 2020: a Gaussian process whose noise is a tree.

use std::ops::RangeInclusive;

use softwood::Result;

use super::curves::{moments_at, prediction_series};
use super::toy_rows::{curve_dataset, normals};
use super::{Figure, FigureRun, spec};
use crate::plot::Scene;
use crate::plot::chart::{
    Chart, ChartPanel, INK, PALETTE, POINT, Series, SeriesStyle, equidistant,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "rnn-tree-figure-2",
    paper: "rnn-tree",
    place: "figure 2",
    title: "a Gaussian process whose noise is a tree",
    caption: "The noise has four levels. `gp-rnn-tree` finds the steps between them and the level of each part; a \
              process with constant noise has one level for all.",
    reading: None,
    data: None,
    draw,
};

const RANGE: RangeInclusive<f64> = -2.0..=1.0;
/// Logarithms of the standard deviation of the noise on four parts of equal length.
const LOG_SCALES: [f64; 4] = [0.0, 2.0 / 3.0, 2.0, 10.0 / 3.0];
/// Random streams.
const NOISE: u64 = 1;
const FIT: u64 = 2;

fn log_scale(x: f64) -> f64 {
    let part = (x - RANGE.start()) / (RANGE.end() - RANGE.start()) * LOG_SCALES.len() as f64;
    LOG_SCALES[(part.max(0.0) as usize).min(LOG_SCALES.len() - 1)]
}

fn mean(x: f64) -> f64 {
    x * x - x * x * x
}

fn draw(figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
    let n_rows = run.choose(400, 1200);
    let xs = equidistant(&RANGE, n_rows);
    let noise = normals(run.key(NOISE), n_rows);
    let ys: Vec<f64> = xs
        .iter()
        .zip(noise)
        .map(|(x, noise)| mean(*x) + log_scale(*x).exp() * noise)
        .collect();
    let data = curve_dataset(&xs, &ys)?;
    let grid = equidistant(&RANGE, 301);
    let families = ["gp-rnn-tree", "gp"];
    let moments = run.each(families.len(), |run, at| {
        let model = run.fit(&spec(families[at], &[])?, &data, run.key(FIT))?;
        moments_at(model.as_ref(), &grid, run)
    })?;
    let of_grid = |value: fn(f64) -> f64| -> Vec<f64> { grid.iter().map(|x| value(*x)).collect() };
    let mut fits = prediction_series(&grid, &moments[0]);
    let points = Series::new("training rows", SeriesStyle::Points(1.6), POINT, &xs, &ys);
    fits.insert(2, points);
    fits.push(Series::new(
        "truth",
        SeriesStyle::Dashed,
        INK,
        &grid,
        &of_grid(mean),
    ));
    let mut scales = vec![Series::new(
        "truth",
        SeriesStyle::Dashed,
        INK,
        &grid,
        &of_grid(log_scale),
    )];
    for at in [1, 0] {
        let logs: Vec<f64> = moments[at]
            .variance
            .data
            .iter()
            .map(|variance| 0.5 * variance.ln())
            .collect();
        let name = format!("noise of {}", families[at]);
        scales.push(Series::new(
            name,
            SeriesStyle::Line(2.2),
            PALETTE[2 - at],
            &grid,
            &logs,
        ));
    }
    let panel = |title: &str, y_name: &str, y, series| ChartPanel {
        title: title.to_owned(),
        x_name: "x".to_owned(),
        y_name: y_name.to_owned(),
        x: RANGE,
        y,
        x_labels: Vec::new(),
        series,
    };
    let chart = Chart {
        title: figure.heading(),
        subtitle: vec![format!(
            "{n_rows} rows of x² - x³ with noise of four levels"
        )],
        n_columns: 2,
        extent: [410.0, 300.0],
        panels: vec![
            panel("rows and gp-rnn-tree", "y", -70.0..=70.0, fits),
            panel(
                "logarithm of the standard deviation of the noise",
                "log noise",
                -0.8..=4.0,
                scales,
            ),
        ],
    };
    Ok(chart.scene())
}
