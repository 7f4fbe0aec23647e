//! `softwood models`: the model families, the parameters of one family, or the content of a model
//! file.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;
use softwood::data::Schema;
use softwood::model::Training;
use softwood::params::ParamSpec;
use softwood::{Error, Family, load};

use crate::args::ModelsArgs;
use crate::print::{self, text};

/// One line of the list of families.
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
    /// Whether a fitted model can be trained further (warm start).
    pub(crate) supports_warm_start: bool,
    /// Whether the target may be classes.
    pub(crate) supports_classes: bool,
}

/// The content of a model file.
#[derive(Debug, Serialize)]
pub(crate) struct SavedReport {
    pub(crate) file: PathBuf,
    pub(crate) model: String,
    pub(crate) n_members: usize,
    pub(crate) schema: Schema,
    /// Parameters of the fit, if the file has them.
    pub(crate) params: Option<Value>,
    pub(crate) training: Training,
}

pub(crate) fn run(args: &ModelsArgs) -> Result<()> {
    let Some(name) = &args.name else {
        let report: Vec<_> = Family::ALL
            .iter()
            .map(|family| family_report(*family))
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
                supports_classes: family.supports_classes(),
            };
            print::emit(args.json, false, &report, || text::parameters(&report))
        }
        Err(_) if Path::new(name).exists() => {
            let report = saved_report(Path::new(name))?;
            print::emit(args.json, false, &report, || text::saved(&report))
        }
        Err(error) => {
            let problem = format!("there is no file `{name}`, and {error}");
            Err(Error::Parameters(vec![problem]).into())
        }
    }
}

fn family_report(family: Family) -> FamilyReport {
    FamilyReport {
        model: family.name(),
        summary: family.summary(),
    }
}

fn saved_report(path: &Path) -> softwood::Result<SavedReport> {
    let model = load(path)?;
    let record = model.record();
    Ok(SavedReport {
        file: path.to_owned(),
        params: serde_json::from_str(&model.params_json()).ok(),
        model: record.family,
        n_members: model.n_members(),
        schema: model.schema().clone(),
        training: model.training().clone(),
    })
}
