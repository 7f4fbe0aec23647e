//! Figure 2 of Cinquin et al. 2023: predictive distributions on one column with a gap in the rows.

use std::ops::RangeInclusive;

use softwood::Result;
use softwood::data::Values;

use super::curves::{moments_at, prediction_series};
use super::toy_rows::curve_dataset;
use super::{Figure, FigureRun, spec};
use crate::commands::demo::data::{self, TRAINING_RANGES};
use crate::plot::Scene;
use crate::plot::chart::{
    Chart, ChartPanel, INK, POINT, Series, SeriesStyle, equidistant, padded_range,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "vst-figure-2",
    paper: "vst",
    place: "figure 2",
    title: "predictive distributions where there are no rows",
    caption: "Between the two groups of rows and to the right of them, knowledge uncertainty grows in every model; near \
              the rows the band is that of the noise.",
    reading: Some("The rows are those of `softwood demo`: those of the paper are not known."),
    data: None,
    draw,
};

const N_ROWS: usize = 160;
const RANGE: RangeInclusive<f64> = -5.3..=5.0;
/// Random streams.
const ROWS: u64 = 1;
const FIT: u64 = 2;

/// Families of the panels, with default parameters.
const FAMILIES: [&str; 4] = ["vst", "vsgbm", "sglb", "gp"];

fn draw(figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
    let rows = data::draw(N_ROWS, &TRAINING_RANGES, run.key(ROWS))?;
    let [xs, ys] = ["x", "y"].map(
        |name| match rows.column(name).map(|column| &column.values) {
            Ok(Values::Numeric(values)) => values.clone(),
            _ => Vec::new(),
        },
    );
    let training = curve_dataset(&xs, &ys)?;
    let grid = equidistant(&RANGE, 301);
    let truth: Vec<f64> = grid.iter().map(|x| data::mean(*x)).collect();
    let y_range = padded_range(ys.iter().chain(&truth).copied(), 0.3);
    let panels = run.each(FAMILIES.len(), |run, at| {
        let model = run.fit(&spec(FAMILIES[at], &[])?, &training, run.key(FIT))?;
        let mut series = prediction_series(&grid, &moments_at(model.as_ref(), &grid, run)?);
        let points = Series::new("training rows", SeriesStyle::Points(2.2), POINT, &xs, &ys);
        series.insert(2, points);
        series.push(Series::new(
            "true mean",
            SeriesStyle::Dashed,
            INK,
            &grid,
            &truth,
        ));
        Ok(ChartPanel {
            title: FAMILIES[at].to_owned(),
            x_name: "x".to_owned(),
            y_name: "y".to_owned(),
            x: RANGE,
            y: y_range.clone(),
            x_labels: Vec::new(),
            series,
        })
    })?;
    let chart = Chart {
        title: figure.heading(),
        subtitle: vec![format!(
            "{N_ROWS} rows on two intervals; the noise is largest in the middle of the left one"
        )],
        n_columns: 2,
        extent: [400.0, 220.0],
        panels,
    };
    Ok(chart.scene())
}
