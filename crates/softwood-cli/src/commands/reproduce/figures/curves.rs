//! Predictions of a model of one column as series: a mean, and 90% bands of data and of total
//! uncertainty.

use softwood::distribution::Moments;
use softwood::{Distribution, Model, Result};

use super::FigureRun;
use super::toy_rows::grid;
use crate::plot::chart::{DATA_BAND, KNOWLEDGE_BAND, PALETTE, Series, SeriesStyle};

/// Half the width of the central 90% interval of a Normal distribution, in standard deviations.
const HALF_90: f64 = 1.644_853_626_951_472_8;

/// Moments of the predictions at these points.
pub(super) fn moments_at(model: &dyn Model, xs: &[f64], run: &FigureRun<'_>) -> Result<Moments> {
    Distribution::new(model, &grid(xs)?, run.pool)?.moments()
}

/// The bands, the wider one first, and the mean.
pub(super) fn prediction_series(xs: &[f64], moments: &Moments) -> Vec<Series> {
    let edge = |variances: &[f64], sign: f64| -> Vec<f64> {
        let pairs = moments.mean.iter().zip(variances);
        pairs
            .map(|(mean, variance)| mean + sign * HALF_90 * variance.sqrt())
            .collect()
    };
    let band = |name: &str, colour, variances: &[f64]| {
        let (lower, upper) = (edge(variances, -1.0), edge(variances, 1.0));
        Series::band(name, colour, xs, [&lower, &upper])
    };
    vec![
        band(
            "plus knowledge uncertainty",
            KNOWLEDGE_BAND,
            &moments.variance.total,
        ),
        band(
            "90% band: data uncertainty",
            DATA_BAND,
            &moments.variance.data,
        ),
        Series::new(
            "predicted mean",
            SeriesStyle::Line(2.4),
            PALETTE[0],
            xs,
            &moments.mean,
        ),
    ]
}
