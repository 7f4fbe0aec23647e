//! Figure 3 of Antoran et al. 2020: the pulse of eight levels and trees of depth 3.

use std::ops::RangeInclusive;

use softwood::{Dataset, Result};

use super::curves::moments_at;
use super::toy_rows::{curve_dataset, mean_squared_error};
use super::{Figure, FigureRun, spec};
use crate::plot::Scene;
use crate::plot::chart::{Chart, ChartPanel, PALETTE, POINT, Series, SeriesStyle, equidistant};

pub(crate) const FIGURE: Figure = Figure {
    name: "rnn-tree-figure-3",
    paper: "rnn-tree",
    place: "figure 3",
    title: "trees of depth 3 on a pulse of eight levels",
    caption: "Eight leaves are enough for eight levels, but a greedy tree does not find them with its first splits; the \
              recurrent network optimises all splits together and does.",
    reading: Some("The levels of the pulse are ours."),
    data: None,
    draw,
};

const N_ROWS: usize = 400;
const RANGE: RangeInclusive<f64> = -4.0..=4.0;
/// Levels on unit cells from -4.
const LEVELS: [f64; 8] = [1.0, 4.0, 2.5, 5.0, 1.5, 3.5, 0.5, 2.5];
/// Random stream of the fits.
pub(super) const FIT: u64 = 1;

/// The rows of the pulse.
pub(super) struct PulseRows {
    pub(super) xs: Vec<f64>,
    pub(super) ys: Vec<f64>,
    pub(super) data: Dataset,
}

impl PulseRows {
    pub(super) fn new() -> Result<Self> {
        let xs = equidistant(&RANGE, N_ROWS);
        let level = |x: &f64| LEVELS[((x - RANGE.start()) as usize).min(LEVELS.len() - 1)];
        let ys: Vec<f64> = xs.iter().map(level).collect();
        Ok(Self {
            data: curve_dataset(&xs, &ys)?,
            xs,
            ys,
        })
    }

    /// The predictions of a family with these parameters for the rows, and their squared error.
    pub(super) fn fitted(
        &self,
        family: &str,
        params: &[(&str, &str)],
        run: &FigureRun<'_>,
    ) -> Result<(Vec<f64>, f64)> {
        let model = run.fit(&spec(family, params)?, &self.data, run.key(FIT))?;
        let means = moments_at(model.as_ref(), &self.xs, run)?.mean;
        let error = mean_squared_error(&means, &self.ys);
        Ok((means, error))
    }
}

fn draw(figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
    let rows = PulseRows::new()?;
    let fits = run.each(2, |run, at| {
        let params: [&[(&str, &str)]; 2] = [
            &[("max_depth", "3")],
            &[("max_depth", "3"), ("n_trees", "1")],
        ];
        rows.fitted(["tree", "rnn-tree"][at], params[at], run)
    })?;
    let mut series = vec![Series::new(
        "rows",
        SeriesStyle::Points(4.2),
        POINT.with_opacity(0.18),
        &rows.xs,
        &rows.ys,
    )];
    for ((name, colour), (means, error)) in [("tree", PALETTE[1]), ("rnn-tree", PALETTE[0])]
        .iter()
        .zip(&fits)
    {
        series.push(Series::new(
            format!("{name}, depth 3: squared error {error:.3}"),
            SeriesStyle::Line(2.2),
            *colour,
            &rows.xs,
            means,
        ));
    }
    let chart = Chart {
        title: figure.heading(),
        subtitle: vec![format!("{N_ROWS} rows without noise")],
        n_columns: 1,
        extent: [850.0, 330.0],
        panels: vec![ChartPanel {
            title: String::new(),
            x_name: "x".to_owned(),
            y_name: "y".to_owned(),
            x: RANGE,
            y: 0.0..=5.5,
            x_labels: Vec::new(),
            series,
        }],
    };
    Ok(chart.scene())
}
