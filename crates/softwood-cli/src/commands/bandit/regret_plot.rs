//! The plot of `bandit`: mean cumulative regret of each agent, with a band of one standard deviation
//! over the seeds.

use softwood::decide::bandit::RegretSummary;

use crate::commands::BanditReport;
use crate::plot::Scene;
use crate::plot::chart::{Chart, ChartPanel, PALETTE, Series, SeriesStyle};

pub(crate) const TITLE: &str = "Cumulative regret";

pub(crate) fn draw(report: &BanditReport) -> Scene {
    let chart = Chart {
        title: format!("{TITLE}: {}", report.problem),
        subtitle: vec![format!(
            "{} arms, {} seeds; bands are one standard deviation over the seeds",
            report.arms.len(),
            report.seeds.len()
        )],
        n_columns: 1,
        extent: [830.0, 380.0],
        panels: vec![panel(&report.agents)],
    };
    chart.scene()
}

/// The regrets of some agents on one problem.
pub(crate) fn panel(agents: &[RegretSummary]) -> ChartPanel {
    let mut bands = Vec::new();
    let mut lines = Vec::new();
    let (mut n_steps, mut top) = (1, f64::MIN_POSITIVE);
    for (agent, colour) in agents.iter().zip(PALETTE.iter().cycle()) {
        let xs: Vec<f64> = agent.curve_steps.iter().map(|&step| step as f64).collect();
        let edge = |sign: f64| -> Vec<f64> {
            let points = agent.curve_mean.iter().zip(&agent.curve_sd);
            points.map(|(mean, sd)| mean + sign * sd).collect()
        };
        let (lower, upper) = (edge(-1.0), edge(1.0));
        top = upper.iter().copied().fold(top, f64::max);
        n_steps = n_steps.max(agent.n_steps);
        let style = SeriesStyle::Line(2.4);
        lines.push(Series::new(
            &agent.agent,
            style,
            *colour,
            &xs,
            &agent.curve_mean,
        ));
        bands.push(Series::band(
            "",
            colour.with_opacity(0.18),
            &xs,
            [&lower, &upper],
        ));
    }
    bands.extend(lines);
    ChartPanel {
        title: String::new(),
        x_name: "step".to_owned(),
        y_name: "cumulative regret".to_owned(),
        x: 0.0..=n_steps as f64,
        y: 0.0..=1.05 * top,
        x_labels: Vec::new(),
        series: bands,
    }
}
