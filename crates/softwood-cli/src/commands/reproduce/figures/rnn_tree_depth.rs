//! Figure 4 of Antoran et al. 2020, as we read it: error on the pulse against the depth of the tree.

use softwood::Result;

use super::rnn_tree_pulse::PulseRows;
use super::{Figure, FigureRun};
use crate::plot::Scene;
use crate::plot::chart::{Chart, ChartPanel, PALETTE, Series, SeriesStyle, padded_range};

pub(crate) const FIGURE: Figure = Figure {
    name: "rnn-tree-figure-4",
    paper: "rnn-tree",
    place: "figure 4",
    title: "error on the pulse of eight levels against depth",
    caption: "Eight leaves, so depth 3, are enough for the pulse: at that depth `rnn-tree` has hardly any error, and a \
              greedy tree still misses some levels.",
    reading: Some(
        "What the figure of the paper shows beside the pulse is not known to us: this sweep is our reading.",
    ),
    data: None,
    draw,
};

const MAX_DEPTH: usize = 6;

fn draw(figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
    let rows = PulseRows::new()?;
    let max_depth = run.choose(4, MAX_DEPTH);
    let families = ["tree", "rnn-tree"];
    let errors = run.each(families.len() * max_depth, |run, at| {
        let depth = (1 + at % max_depth).to_string();
        let single: &[(&str, &str)] = &[("max_depth", &depth), ("n_trees", "1")];
        let params = if at < max_depth { &single[..1] } else { single };
        Ok(rows.fitted(families[at / max_depth], params, run)?.1)
    })?;
    let places: Vec<f64> = (0..max_depth).map(|at| at as f64).collect();
    let style = SeriesStyle::DottedLine;
    let series = errors.chunks_exact(max_depth).enumerate();
    let series = series
        .map(|(at, errors)| Series::new(families[at], style, PALETTE[1 - at], &places, errors));
    let chart = Chart {
        title: figure.heading(),
        subtitle: vec!["400 rows without noise; mean squared error on these rows".to_owned()],
        n_columns: 1,
        extent: [760.0, 330.0],
        panels: vec![ChartPanel {
            title: String::new(),
            x_name: "maximum depth".to_owned(),
            y_name: "mean squared error".to_owned(),
            x: -0.2..=max_depth as f64 - 0.8,
            y: padded_range(errors.iter().copied(), 0.06),
            x_labels: (1..=max_depth).map(|depth| depth.to_string()).collect(),
            series: series.collect(),
        }],
    };
    Ok(chart.scene())
}
