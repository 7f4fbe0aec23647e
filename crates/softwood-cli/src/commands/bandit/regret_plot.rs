//! The plot of `bandit`: mean cumulative regret of each agent, with a band of one standard deviation
//! over the seeds.

use crate::commands::BanditReport;
use crate::plot::axes::Axes;
use crate::plot::{Colour, Scene, TextLabel};

pub(crate) const TITLE: &str = "Cumulative regret";

const INK: Colour = Colour::hex(0x001f_2733);
const QUIET: Colour = Colour::hex(0x006b_7686);
/// Colours of the agents, in turn.
const AGENTS: [Colour; 6] = [
    Colour::hex(0x0014_5da0),
    Colour::hex(0x00d9_6b0b),
    Colour::hex(0x002e_8b57),
    Colour::hex(0x00a0_2c5a),
    Colour::hex(0x006a_51a3),
    Colour::hex(0x0060_6a78),
];

pub(crate) fn draw(report: &BanditReport) -> Scene {
    let top = report
        .agents
        .iter()
        .flat_map(|agent| agent.curve_mean.iter().zip(&agent.curve_sd))
        .map(|(mean, sd)| mean + sd)
        .fold(f64::MIN_POSITIVE, f64::max);
    let axes = Axes {
        corner: [90.0, 100.0],
        extent: [830.0, 380.0],
        x: 0.0..=report.n_steps as f64,
        y: 0.0..=1.05 * top,
    };
    let mut scene = Scene::new(960.0, 560.0);
    let title = format!("{TITLE}: {}", report.problem);
    scene.text(TextLabel::new([90.0, 42.0], title, 22.0, INK).bold());
    let subtitle = format!(
        "{} arms, {} seeds; bands are one standard deviation over the seeds",
        report.arms.len(),
        report.seeds.len()
    );
    scene.text(TextLabel::new([90.0, 66.0], subtitle, 14.0, QUIET));
    axes.draw_grid(&mut scene);
    let mut left = 90.0;
    for (agent, colour) in report.agents.iter().zip(AGENTS.iter().cycle()) {
        let xs: Vec<f64> = agent.curve_steps.iter().map(|&step| step as f64).collect();
        let edge = |sign: f64| -> Vec<f64> {
            let points = agent.curve_mean.iter().zip(&agent.curve_sd);
            points.map(|(mean, sd)| mean + sign * sd).collect()
        };
        scene.polygon(
            axes.band(&xs, &edge(-1.0), &edge(1.0)),
            colour.with_opacity(0.18),
        );
        for piece in axes.curve(&xs, &agent.curve_mean) {
            scene.line(piece, *colour, 2.4);
        }
        scene.line(vec![[left, 85.0], [left + 24.0, 85.0]], *colour, 2.4);
        scene.text(TextLabel::new([left + 32.0, 90.0], &agent.agent, 13.0, INK));
        left += 48.0 + 8.0 * agent.agent.len() as f32;
    }
    axes.draw_frame(&mut scene, "step", "cumulative regret");
    scene
}
