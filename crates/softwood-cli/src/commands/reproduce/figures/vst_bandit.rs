//! Figure 6 of Cinquin et al. 2023, as we read it: regret of bandits.

use softwood::decide::bandit::{AgentSettings, PublicProblem, simulate_seeds};
use softwood::{Key, Result};

use super::{Figure, FigureRun, spec};
use crate::commands::bandit::regret_plot;
use crate::plot::Scene;
use crate::plot::chart::Chart;

pub(crate) const FIGURE: Figure = Figure {
    name: "vst-figure-6",
    paper: "vst",
    place: "figure 6",
    title: "cumulative regret of agents on the exploration problem",
    caption: "Each of twenty arms pays on its own twentieth of the interval. Regret grows less steeply once an agent has \
              found where the arms pay; a linear model cannot represent such rewards.",
    reading: Some(
        "The content of the figure of the paper is not known to us: curves of regret are our reading.",
    ),
    data: None,
    draw,
};

fn draw(figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
    let n_steps = run.choose(400, 2000);
    let n_seeds = run.choose(2, 3);
    let seeds: Vec<u64> = (0..n_seeds).map(|at| run.seed.wrapping_add(at)).collect();
    let vst = [
        ("n_fits", "1"),
        ("n_epochs", "100"),
        ("max_depth", "4"),
        ("leaf_model", "constant"),
    ];
    let forest = [("n_estimators", "50")];
    let agents = [
        AgentSettings::thompson(spec("vst", &vst)?),
        AgentSettings::thompson(spec("forest", &forest)?),
        AgentSettings::thompson(spec("tree", &[])?),
        AgentSettings::linear(),
        AgentSettings::uniform(),
    ];
    let draw = |key: Key| PublicProblem::Exploration.draw(None, Some(n_steps), key);
    let simulate = |settings| simulate_seeds(draw, settings, &seeds, run.pool, run.observer);
    let agents: Vec<_> = agents.iter().map(simulate).collect::<Result<_>>()?;
    let chart = Chart {
        title: figure.heading(),
        subtitle: vec![format!(
            "Thompson sampling, {n_steps} steps, {n_seeds} seeds; bands are one standard deviation over the seeds"
        )],
        n_columns: 1,
        extent: [830.0, 360.0],
        panels: vec![regret_plot::panel(&agents)],
    };
    Ok(chart.scene())
}
