//! `softwood models`: the families, one family's parameters, or what a model file holds.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;
use softwood::{Error, Family, ParamSpec, Schema, Training, read_model};

use crate::args::ModelsArgs;
use crate::print::{self, text};

/// A family in a line.
#[derive(Debug, Serialize)]
pub(crate) struct FamilyReport {
    pub(crate) model: &'static str,
    pub(crate) summary: &'static str,
}

/// A family and its parameters.
#[derive(Debug, Serialize)]
pub(crate) struct ParametersReport {
    pub(crate) model: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) parameters: Vec<ParamSpec>,
    /// Whether a fitted model can be trained further.
    pub(crate) supports_warm_start: bool,
}

/// A saved model.
#[derive(Debug, Serialize)]
pub(crate) struct SavedReport {
    pub(crate) file: PathBuf,
    pub(crate) model: String,
    pub(crate) n_members: usize,
    pub(crate) schema: Schema,
    /// As they were given to the fit, where the file holds them.
    pub(crate) params: Option<Value>,
    pub(crate) training: Training,
}

pub(crate) fn run(args: &ModelsArgs) -> Result<()> {
    let Some(name) = &args.name else {
        let report: Vec<_> = Family::ALL
            .iter()
            .map(|family| in_a_line(*family))
            .collect();
        return print::emit(args.json, false, &report, || text::families(&report));
    };
    match Family::from_name(name) {
        Ok(family) => {
            let report = ParametersReport {
                model: family.name(),
                summary: family.summary(),
                parameters: family.table(),
                supports_warm_start: family.supports_warm_start(),
            };
            print::emit(args.json, false, &report, || text::parameters(&report))
        }
        Err(_) if Path::new(name).exists() => {
            let report = saved(Path::new(name))?;
            print::emit(args.json, false, &report, || text::saved(&report))
        }
        Err(error) => {
            let problem = format!("{error}; and there is no file of that name");
            Err(Error::Parameters(vec![problem]).into())
        }
    }
}

fn in_a_line(family: Family) -> FamilyReport {
    FamilyReport {
        model: family.name(),
        summary: family.summary(),
    }
}

fn saved(path: &Path) -> softwood::Result<SavedReport> {
    let posterior = read_model(path)?;
    let record = posterior.record();
    Ok(SavedReport {
        file: path.to_owned(),
        params: serde_json::from_str(&posterior.params_json()).ok(),
        model: record.family,
        n_members: posterior.n_members(),
        schema: posterior.schema().clone(),
        training: posterior.training().clone(),
    })
}
