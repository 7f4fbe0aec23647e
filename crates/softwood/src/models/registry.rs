//! The list of families; the only place that enumerates them.

use serde_json::Value;

use crate::data::dataset::Dataset;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run, no_warm_start};
use crate::model::Model;
use crate::models::boosting::{Boosted, SgbParams, SglbParams};
use crate::models::forest::{Forest, ForestParams};
use crate::models::tree::{Tree, TreeParams};
use crate::models::vsgbm::{Vsgbm, VsgbmParams};
use crate::models::vst::{Vst, VstParams};
use crate::params::{self, ParamSpec, Params};
use crate::store::record::Record;

/// A model family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Variational soft tree.
    Vst,
    /// Boosted variational soft trees.
    Vsgbm,
    /// Stochastic gradient boosting.
    Sgb,
    /// Stochastic gradient Langevin boosting.
    Sglb,
    /// Random forest.
    Forest,
    /// Classification or regression tree.
    Tree,
}

/// An expression in the parameter type of a family.
macro_rules! with_params {
    ($family:expr, $P:ident => $said:expr) => {
        match $family {
            Family::Vst => {
                type $P = VstParams;
                $said
            }
            Family::Vsgbm => {
                type $P = VsgbmParams;
                $said
            }
            Family::Sgb => {
                type $P = SgbParams;
                $said
            }
            Family::Sglb => {
                type $P = SglbParams;
                $said
            }
            Family::Forest => {
                type $P = ForestParams;
                $said
            }
            Family::Tree => {
                type $P = TreeParams;
                $said
            }
        }
    };
}

impl Family {
    /// All families, in the order they are listed.
    pub const ALL: &'static [Self] = &[
        Self::Vst,
        Self::Vsgbm,
        Self::Sgb,
        Self::Sglb,
        Self::Forest,
        Self::Tree,
    ];

    /// Name on the command line and in model files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vst => "vst",
            Self::Vsgbm => "vsgbm",
            Self::Sgb => "sgb",
            Self::Sglb => "sglb",
            Self::Forest => "forest",
            Self::Tree => "tree",
        }
    }

    /// What it is, in one line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Vst => {
                "variational soft tree: one soft tree with a Gaussian posterior over all its weights"
            }
            Self::Vsgbm => {
                "boosted variational soft trees: a sum of soft trees with a posterior over all weights"
            }
            Self::Sgb => "stochastic gradient boosting: ensembles of boosted hard trees",
            Self::Sglb => {
                "Langevin boosting: boosted hard trees whose members are posterior samples"
            }
            Self::Forest => "random forest: bagged hard trees, in blocks that are its members",
            Self::Tree => {
                "classification or regression tree: one tree of hard tests, pruned by cross-validation"
            }
        }
    }

    /// The family of this name.
    ///
    /// # Errors
    /// When there is none; the message lists the names there are.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|family| family.name() == name)
            .ok_or_else(|| {
                let names: Vec<_> = Self::ALL.iter().map(|family| family.name()).collect();
                Error::Parameters(vec![format!(
                    "no model is called `{name}`; there are {}",
                    names.join(", ")
                )])
            })
    }

    /// Its parameters.
    pub fn table(self) -> Vec<ParamSpec> {
        with_params!(self, P => P::table())
    }

    /// All parameters as JSON, from `KEY=VALUE` texts and defaults.
    ///
    /// # Errors
    /// When a name is unknown, a value unreadable, or a rule broken; the message lists them all.
    pub fn params_from_texts(self, pairs: &[(String, String)]) -> Result<Value> {
        with_params!(self, P => Ok(to_json(&params::from_texts::<P>(pairs)?)))
    }

    /// All parameters as JSON, from `KEY=VALUE` texts over those of a fitted model.
    ///
    /// # Errors
    /// As [`Family::params_from_texts`], and when the earlier parameters are not those of the family.
    pub fn params_over(self, earlier: &Value, pairs: &[(String, String)]) -> Result<Value> {
        with_params!(self, P => Ok(to_json(&params::over::<P>(earlier, pairs)?)))
    }

    /// Whether it can go on from a fitted model.
    pub fn supports_warm_start(self) -> bool {
        with_params!(self, P => P::SUPPORTS_WARM_START)
    }

    /// Refuses a family that cannot go on from a fitted model, before any data are read.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check_warm_start(self) -> Result<()> {
        if self.supports_warm_start() {
            return Ok(());
        }
        Err(no_warm_start(self.name()))
    }

    /// Fits the family to data with parameters given as a JSON object (absent names keep their defaults).
    ///
    /// # Errors
    /// When a parameter or the data cannot be used, the observer asked to stop, or training diverged.
    pub fn fit(self, params: &Value, data: &Dataset, run: &Run<'_>) -> Result<Box<dyn Model>> {
        with_params!(self, P => fit_as::<P>(params, data, run))
    }

    /// Builds a fitted model from its record.
    ///
    /// # Errors
    /// When the record is not one of a known family or is incomplete.
    pub fn restore(record: &Record) -> Result<Box<dyn Model>> {
        match Self::from_name(&record.family).map_err(|error| Error::Format(error.to_string()))? {
            Self::Vst => Ok(Box::new(Vst::from_record(record)?)),
            Self::Vsgbm => Ok(Box::new(Vsgbm::from_record(record)?)),
            family @ (Self::Sgb | Self::Sglb) => {
                Ok(Box::new(Boosted::from_record(family.name(), record)?))
            }
            Self::Forest => Ok(Box::new(Forest::from_record(record)?)),
            Self::Tree => Ok(Box::new(Tree::from_record(record)?)),
        }
    }
}

fn fit_as<P: Fit>(params: &Value, data: &Dataset, run: &Run<'_>) -> Result<Box<dyn Model>>
where
    P::Fitted: 'static,
{
    Ok(Box::new(params::from_json::<P>(params)?.fit(data, run)?))
}

fn to_json<P: Params>(params: &P) -> Value {
    serde_json::to_value(params).unwrap_or_default()
}
