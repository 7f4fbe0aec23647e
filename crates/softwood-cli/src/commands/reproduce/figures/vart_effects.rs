//! Figures 5 and 6 of Salazar 2023: the effect of a treatment in two simulations, given `x`.

use softwood::Result;
use softwood::data::Values;
use softwood::decide::causal::problems::{CausalProblem, CausalToy, OUTCOME, TREATMENT};
use softwood::decide::causal::{CausalConfig, CausalMethod, estimate};
use softwood::{Run, Table};

use super::toy_rows::grid;
use super::{Figure, FigureRun, spec};
use crate::plot::Scene;
use crate::plot::chart::{
    Chart, ChartPanel, DATA_BAND, INK, PALETTE, Series, SeriesStyle, equidistant, padded_range,
};

pub(crate) const LITTLE_OVERLAP: Figure = Figure {
    name: "vart-figure-5",
    paper: "vart",
    place: "figure 5",
    title: "effect of a treatment when treated and control rows overlap little",
    caption: "The estimate is near the true effect where both groups have rows; the band is wide where one group has \
              none.",
    reading: None,
    data: None,
    draw: |figure, run| draw(figure, run, CausalToy::LittleOverlap),
};

pub(crate) const GOOD_OVERLAP: Figure = Figure {
    name: "vart-figure-6",
    paper: "vart",
    place: "figure 6",
    title: "effect of a treatment when treated and control rows overlap well",
    caption: "With rows of both groups at most places, the estimate follows the true effect, and the band is narrow.",
    reading: None,
    data: None,
    draw: |figure, run| draw(figure, run, CausalToy::GoodOverlap),
};

const N_ROWS: usize = 500;
/// Probability of the band, that of the figures of the paper.
const LEVEL: f64 = 0.8;
/// Random streams.
const ROWS: u64 = 1;
const FIT: u64 = 2;

fn draw(figure: &Figure, run: &FigureRun<'_>, toy: CausalToy) -> Result<Scene> {
    let problem = toy.draw(N_ROWS, run.key(ROWS))?;
    let xs = numbers(&problem.table, "x");
    let range = padded_range(xs.iter().copied(), 0.0);
    let grid_xs = equidistant(&range, 201);
    let quick: &[(&str, &str)] = &[("n_fits", "1"), ("n_epochs", "300")];
    let model = spec("vart", run.choose(quick, &[]))?;
    let config = CausalConfig::new(model).method(CausalMethod::PerArm);
    let fit = Run::new(run.key(FIT), run.pool).observer(run.observer);
    let model = estimate(&problem.table, &problem.roles(), &config, &fit)?;
    let found = model.conditional_effects(&grid(&grid_xs)?, LEVEL, run.pool)?;
    let truth: Vec<f64> = grid_xs.iter().map(|&x| toy.effect(x)).collect();
    let effects = vec![
        Series::band(
            "80% band of the effect",
            DATA_BAND,
            &grid_xs,
            [&found.lower, &found.upper],
        ),
        Series::new(
            "estimated effect",
            SeriesStyle::Line(2.4),
            PALETTE[0],
            &grid_xs,
            &found.mean,
        ),
        Series::new("true effect", SeriesStyle::Dashed, INK, &grid_xs, &truth),
    ];
    let all = truth.iter().chain(&found.mean);
    let panel = |title: &str, y_name: &str, y, series| ChartPanel {
        title: title.to_owned(),
        x_name: "x".to_owned(),
        y_name: y_name.to_owned(),
        x: range.clone(),
        y,
        x_labels: Vec::new(),
        series,
    };
    let outcomes = numbers(&problem.table, OUTCOME);
    let chart = Chart {
        title: figure.heading(),
        subtitle: vec![format!(
            "{N_ROWS} rows; average effect {:.2} (estimate of the rows {:.2}); vart, one model per arm",
            problem.true_effect,
            model.average_effect(LEVEL, run.pool)?.mean
        )],
        n_columns: 2,
        extent: [410.0, 300.0],
        panels: vec![
            panel(
                "outcomes",
                "outcome",
                padded_range(outcomes.iter().copied(), 0.05),
                groups(&problem, xs, outcomes),
            ),
            panel(
                "expected outcome with minus without treatment",
                "effect",
                padded_range(all.copied(), 0.25),
                effects,
            ),
        ],
    };
    Ok(chart.scene())
}

/// The rows of both groups.
fn groups(problem: &CausalProblem, xs: &[f64], ys: &[f64]) -> Vec<Series> {
    let treatment = numbers(&problem.table, TREATMENT);
    let group = |name: &str, colour, is_treated: bool| {
        let rows = || (0..xs.len()).filter(|&row| (treatment[row] > 0.5) == is_treated);
        let take = |values: &[f64]| rows().map(|row| values[row]).collect::<Vec<f64>>();
        Series::new(name, SeriesStyle::Points(2.4), colour, &take(xs), &take(ys))
    };
    vec![
        group("treated rows", PALETTE[1].with_opacity(0.6), true),
        group("control rows", PALETTE[2].with_opacity(0.6), false),
    ]
}

fn numbers<'a>(table: &'a Table, name: &str) -> &'a [f64] {
    match table.column(name).map(|column| &column.values) {
        Ok(Values::Numeric(values)) => values,
        _ => &[],
    }
}
