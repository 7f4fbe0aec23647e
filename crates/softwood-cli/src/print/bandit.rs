//! The report of `bandit` as text: one line per agent.

use std::fmt::Write as _;

use crate::commands::BanditReport;
use crate::print::number::short;

pub(crate) fn text(report: &BanditReport) -> String {
    let mut out = format!(
        "{}: {} arms, {} steps, {} seeds\n\n",
        report.problem,
        report.arms.len(),
        report.n_steps,
        report.seeds.len()
    );
    let head = ["regret", "sd", "of random", "simple", "refits", "seconds"];
    let width = report.agents.iter().map(|agent| agent.agent.len());
    let width = width.max().unwrap_or(0).max(5) + 1;
    out += &line("agent", &head.map(str::to_owned), width);
    for agent in &report.agents {
        let share = agent.mean / agent.uniform_regret;
        let numbers = [agent.mean, agent.sd, share, agent.simple_mean];
        let mut cells = numbers.map(short).to_vec();
        cells.push(format!("{:.0}", agent.n_refits));
        cells.push(format!("{:.1}", agent.seconds));
        out += &line(&agent.agent, &cells, width);
    }
    let _ = writeln!(
        out,
        "\nregret: cumulative regret, mean and standard deviation over the seeds.\n\
         of random: regret as a share of that of random choices.\n\
         simple: mean regret of the last steps."
    );
    out
}

fn line(name: &str, cells: &[String], width: usize) -> String {
    let mut out = format!("{name:<width$}");
    for cell in cells {
        let _ = write!(out, "{cell:>11}");
    }
    out.push('\n');
    out
}
