//! Figure A of Salazar 2023: the posterior over the number of leaves.

use softwood::{Column, Dataset, Key, Result, Table};

use super::toy_rows::{TARGET, dataset, normals};
use super::{Figure, FigureRun, spec};
use crate::plot::Scene;
use crate::plot::chart::{Chart, ChartPanel, PALETTE, Series, SeriesStyle};

pub(crate) const FIGURE: Figure = Figure {
    name: "vart-figure-a",
    paper: "vart",
    place: "figure A",
    title: "posterior over the number of leaves of a variational regression tree",
    caption: "The rows come from a soft tree with four leaves. With 1000 rows the posterior has most of its mass there; \
              with 100 rows it is spread over neighbouring numbers.",
    reading: Some("The tree that the rows come from is ours."),
    data: None,
    draw,
};

const N_LEAVES: usize = 4;
const NOISE: f64 = 0.25;
const SHARPNESS: f64 = 5.0;
/// Largest number of leaves that is shown.
const MAX_SHOWN: usize = 10;
const SIZES: [usize; 2] = [100, 1000];
/// A fit that gives up splits that the data do not need.
const PARAMS: [(&str, &str); 9] = [
    ("leaf_model", "constant"),
    ("leaf_mixing", "mixture"),
    ("start_depth", "3"),
    ("n_fits", "1"),
    ("initial_split", "0.73"),
    ("split_rate", "5"),
    ("squares", "false"),
    ("rotation", "none"),
    ("scaling", "standard"),
];

/// Random streams.
mod streams {
    pub(super) const ROWS: u64 = 1;
    pub(super) const FIT: u64 = 2;
}

fn draw(figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
    let n_sets = run.choose(2, 8);
    let found = run.each(SIZES.len() * n_sets, |run, at| {
        let (size, set) = (SIZES[at / n_sets], (at % n_sets) as u64);
        let data = rows(size, run.key(streams::ROWS).child(set))?;
        let model = run.fit(&spec("vart", &PARAMS)?, &data, run.key(streams::FIT))?;
        Ok(model
            .structure()
            .map_or_else(Vec::new, |posterior| posterior.n_leaves))
    })?;
    let panel = |(size, sets): (&usize, &[Vec<f64>])| {
        let share = |n_leaves: usize| {
            let shares = sets.iter().map(|set| set.get(n_leaves - 1).copied());
            shares.map(|share| share.unwrap_or(0.0)).sum::<f64>() / n_sets as f64
        };
        let bars = |name: &str, colour, keep: fn(&usize) -> bool| {
            let numbers: Vec<usize> = (1..=MAX_SHOWN).filter(keep).collect();
            let xs: Vec<f64> = numbers.iter().map(|&n| n as f64).collect();
            let ys: Vec<f64> = numbers.iter().map(|&n| share(n)).collect();
            Series::new(name, SeriesStyle::Bars, colour, &xs, &ys)
        };
        ChartPanel {
            title: format!("{size} rows"),
            x_name: "number of leaves".to_owned(),
            y_name: "posterior probability".to_owned(),
            x: 0.3..=MAX_SHOWN as f64 + 0.7,
            y: 0.0..=1.0,
            x_labels: Vec::new(),
            series: vec![
                bars("true number", PALETTE[0], |n| *n == N_LEAVES),
                bars("other numbers", PALETTE[5].with_opacity(0.55), |n| {
                    *n != N_LEAVES
                }),
            ],
        }
    };
    let chart = Chart {
        title: figure.heading(),
        subtitle: vec![format!(
            "rows of a soft tree with {N_LEAVES} leaves, two inputs and noise of {NOISE}; mean of {n_sets} sets of rows"
        )],
        n_columns: 2,
        extent: [400.0, 260.0],
        panels: SIZES
            .iter()
            .zip(found.chunks_exact(n_sets))
            .map(panel)
            .collect(),
    };
    Ok(chart.scene())
}

/// Rows of two standard Normal columns; the gates of the tree draw sides.
fn rows(n: usize, key: Key) -> Result<Dataset> {
    let [a, b, noise] = [0, 1, 2].map(|stream| normals(key.child(stream), n));
    let sides = key.child(3).uniforms(3 * n);
    let level = |row: usize| {
        let draws = &sides[3 * row..3 * row + 3];
        let goes_right = |draw: f64, t: f64| draw < 1.0 / (1.0 + (-SHARPNESS * t).exp());
        match goes_right(draws[0], a[row]) {
            true if goes_right(draws[1], b[row] - 0.2) => 2.0,
            true => 0.5,
            false if goes_right(draws[2], b[row] + 0.3) => -1.0,
            false => -2.5,
        }
    };
    let ys: Vec<f64> = (0..n).map(|row| level(row) + NOISE * noise[row]).collect();
    let features = Table::new(vec![Column::numeric("a", a), Column::numeric("b", b)])?;
    dataset(features, Column::numeric(TARGET, ys), false)
}
