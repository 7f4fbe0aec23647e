//! The commands, one file each.

mod bandit;
mod causal;
mod data_notes;
mod demo;
mod evaluate;
mod explain;
mod fit;
mod models;
mod notes;
mod ood;
mod path_checks;
mod predict;
pub(crate) mod reproduce;
mod safe_csv;
mod score;
mod settings;

use anyhow::Result;

use crate::args::Command;

pub(crate) use bandit::BanditReport;
pub(crate) use causal::CausalReport;
pub(crate) use demo::{DemoReport, Region};
pub(crate) use explain::ExplainReport;
pub(crate) use fit::FitReport;
pub(crate) use models::{FamilyReport, ParametersReport, SavedReport};
pub(crate) use ood::OodReport;
pub(crate) use score::ScoreReport;
pub(crate) use settings::DEFAULT_MODEL;

/// Runs a command.
pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Fit(args) => fit::run(args),
        Command::Predict(args) => predict::run(args),
        Command::Score(args) => score::run(args),
        Command::Evaluate(args) => evaluate::run(args),
        Command::Ood(args) => ood::run(args),
        Command::Bandit(args) => bandit::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Causal(args) => causal::run(args),
        Command::Models(args) => models::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Demo(args) => demo::run(args),
    }
}
