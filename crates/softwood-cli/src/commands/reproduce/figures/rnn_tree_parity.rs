//! Figure 5 of Antoran et al. 2020: accuracy on the parity of eight noisy bits.

use softwood::{Column, Dataset, Distribution, Result, Table};

use super::toy_rows::{dataset, normals};
use super::{Figure, FigureRun, spec};
use crate::plot::Scene;
use crate::plot::chart::{Chart, ChartPanel, PALETTE, Series, SeriesStyle};

pub(crate) const FIGURE: Figure = Figure {
    name: "rnn-tree-figure-5",
    paper: "rnn-tree",
    place: "figure 5",
    title: "parity of eight bits: accuracy against noise",
    caption: "No single split of a bit helps, so that a greedy tree stays at chance; `rnn-tree` finds all splits while the \
              noise leaves the bits recognisable.",
    reading: Some("The noise levels and the number of rows are ours."),
    data: None,
    draw,
};

const N_BITS: usize = 8;
const N_PATTERNS: usize = 1 << N_BITS;
const N_ROWS: usize = 3000;
/// Standard deviations of the noise.
const NOISES: [f64; 9] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
const QUICK_NOISES: [f64; 3] = [0.0, 0.3, 0.6];

/// Random streams.
mod streams {
    pub(super) const BITS: u64 = 1;
    pub(super) const NOISE: u64 = 2;
    pub(super) const FIT: u64 = 3;
}

fn draw(figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
    let noises = run.choose(&QUICK_NOISES[..], &NOISES[..]);
    let families = ["tree", "rnn-tree"];
    let quick: &[(&str, &str)] = &[("max_depth", "8"), ("n_restarts", "3")];
    let params: [&[(&str, &str)]; 2] = [&[("max_depth", "12")], run.choose(quick, &quick[..1])];
    let accuracies = run.each(families.len() * noises.len(), |run, at| {
        let (family, noise) = (at / noises.len(), noises[at % noises.len()]);
        let data = noisy_rows(noise, run)?;
        let spec = spec(families[family], params[family])?;
        let model = run.fit(&spec, &data, run.key(streams::FIT))?;
        let all: Vec<usize> = (0..N_PATTERNS).collect();
        let clean = bits(&all, &vec![0.0; N_BITS * N_PATTERNS])?;
        let labels = Distribution::new(model.as_ref(), &clean, run.pool)?.labels()?;
        let classes = model.schema().classes().unwrap_or_default();
        let is_right = |pattern: &usize| classes[labels[*pattern] as usize] == parity(*pattern);
        Ok(all.iter().filter(|pattern| is_right(pattern)).count() as f64 / N_PATTERNS as f64)
    })?;
    let series = accuracies.chunks_exact(noises.len()).enumerate();
    let series = series.map(|(at, shares)| {
        let name = ["tree, depth 12", "rnn-tree, depth 8"][at];
        Series::new(
            name,
            SeriesStyle::DottedLine,
            PALETTE[1 - at],
            noises,
            shares,
        )
    });
    let most = noises.last().copied().unwrap_or(1.0);
    let chart = Chart {
        title: figure.heading(),
        subtitle: vec![format!(
            "{N_ROWS} rows of {N_BITS} bits with Normal noise; tested on the {N_PATTERNS} patterns without noise"
        )],
        n_columns: 1,
        extent: [760.0, 330.0],
        panels: vec![ChartPanel {
            title: String::new(),
            x_name: "standard deviation of the noise".to_owned(),
            y_name: "accuracy".to_owned(),
            x: -0.02..=most + 0.02,
            y: 0.4..=1.03,
            x_labels: Vec::new(),
            series: series.collect(),
        }],
    };
    Ok(chart.scene())
}

/// Whether the number of ones is even, as a label.
fn parity(pattern: usize) -> &'static str {
    if pattern.count_ones().is_multiple_of(2) {
        "even"
    } else {
        "odd"
    }
}

/// Columns of the bits of some patterns plus noise (row-major, rows x bits).
fn bits(patterns: &[usize], noise: &[f64]) -> Result<Table> {
    let column = |bit: usize| {
        let rows = patterns.iter().enumerate();
        let values =
            rows.map(|(row, pattern)| (pattern >> bit & 1) as f64 + noise[row * N_BITS + bit]);
        Column::numeric(format!("bit{bit}"), values.collect())
    };
    Table::new((0..N_BITS).map(column).collect())
}

/// Training rows: random patterns with noise of this standard deviation.
fn noisy_rows(noise: f64, run: &FigureRun<'_>) -> Result<Dataset> {
    let draws = run.key(streams::BITS).uniforms(N_ROWS).into_iter();
    let patterns: Vec<usize> = draws
        .map(|draw| (draw * N_PATTERNS as f64) as usize)
        .collect();
    let unit = normals(run.key(streams::NOISE), N_ROWS * N_BITS).into_iter();
    let noise: Vec<f64> = unit.map(|unit| noise * unit).collect();
    let labels: Vec<Option<&str>> = patterns.iter().map(|p| Some(parity(*p))).collect();
    let target = Column::categorical("parity", &labels);
    dataset(bits(&patterns, &noise)?, target, true)
}
