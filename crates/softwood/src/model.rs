//! The interface of every fitted model, and the report of its training.

use std::any::Any;
use std::fmt::Debug;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::schema::Schema;
use crate::data::table::{Rows, Table};
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::explain::tree_export::{StructurePosterior, TreeExport};
use crate::extrapolation::Extrapolation;
use crate::predictive::block::{Block, Head};
use crate::store::range;
use crate::store::record::Record;
use crate::store::{container, file};

/// One point of the training curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CurvePoint {
    /// Epochs or trees so far, as [`Training::step`] tells.
    pub epoch: usize,
    /// Evidence lower bound per row; for families without one, the mean log-likelihood of the
    /// training rows.
    #[serde(serialize_with = "range::serialize_finite")]
    pub elbo: f64,
    /// Mean log-likelihood of the validation rows in units of the standardised target, if it was
    /// computed.
    pub held_out: Option<f64>,
}

impl CurvePoint {
    /// A point without a validation score.
    pub fn new(epoch: usize, elbo: f64) -> Self {
        Self {
            epoch,
            elbo,
            held_out: None,
        }
    }

    /// The point with the mean log-likelihood of the validation rows.
    #[must_use]
    pub fn with_held_out(self, held_out: f64) -> Self {
        Self {
            held_out: Some(held_out),
            ..self
        }
    }
}

/// A configuration that model selection tried, with its validation score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trial {
    /// The configuration, as shown to users.
    pub what: String,
    /// Mean log-likelihood of the validation rows in units of the standardised target.
    #[serde(serialize_with = "range::serialize_finite")]
    pub held_out: f64,
}

/// Unit of the points of a training curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CurveUnit {
    /// Epochs; the curve holds the evidence lower bound.
    #[default]
    Epoch,
    /// Boosted trees; the curve holds the log-likelihood.
    Tree,
}

/// Report of the training of a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Training {
    /// Training curve of the final run.
    pub curve: Vec<CurvePoint>,
    /// Configurations that model selection tried, in order.
    pub trials: Vec<Trial>,
    /// The selected configuration, as shown to users.
    pub chosen: String,
    /// Standard deviation of the training target, divided by n; `None` for classification.
    #[serde(default)]
    pub target_sd: Option<f64>,
    /// Unit of the points of the curve.
    #[serde(default)]
    pub step: CurveUnit,
    /// How much the members differ, for families that report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<MemberReport>,
    /// Whether an observer stopped the fit before its end and kept the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stopped: bool,
}

/// How much the members of an ensemble differ on a sample of training rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemberReport {
    /// Number of members.
    pub n_members: usize,
    /// Number of chains that the members come from.
    pub n_chains: usize,
    /// Number of rows of the comparison.
    pub n_rows: usize,
    /// Effective number of independent members, for the outputs that determine knowledge
    /// uncertainty.
    #[serde(serialize_with = "range::serialize_finite")]
    pub effective: f64,
    /// One entry per output.
    pub outputs: Vec<OutputSpread>,
    /// Reason not to trust knowledge uncertainty, if there is one.
    pub warning: Option<String>,
}

/// How much the members differ in one output; variances are means over rows, for a mean in squared
/// units of the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OutputSpread {
    /// Name of the output, as shown to users.
    pub name: String,
    /// Effective number of independent members.
    #[serde(serialize_with = "range::serialize_finite")]
    pub effective: f64,
    /// R-hat: square root of the variance of all members over that within a chain, near 1 where
    /// chains agree; `None` unless there are several chains of several members.
    pub r_hat: Option<f64>,
    /// Variance over all members.
    #[serde(serialize_with = "range::serialize_finite")]
    pub variance: f64,
    /// Variance of the chain means; `None` for a single chain.
    pub between_chains: Option<f64>,
    /// Mean variance of the members of a chain; `None` for chains of one member.
    pub within_chains: Option<f64>,
    /// Variance of all members relative to that of a model that predicts a constant.
    #[serde(serialize_with = "range::serialize_finite")]
    pub spread: f64,
}

/// A joint Normal distribution of the means of several rows, in the target's units.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct JointNormal {
    /// Mean of each row.
    pub mean: Vec<f64>,
    /// Covariance matrix (row-major, rows x rows).
    pub covariance: Vec<f64>,
}

impl JointNormal {
    /// A joint Normal distribution.
    ///
    /// # Panics
    /// When the covariance is not a matrix of rows x rows.
    pub fn new(mean: Vec<f64>, covariance: Vec<f64>) -> Self {
        assert_eq!(covariance.len(), mean.len() * mean.len());
        Self { mean, covariance }
    }
}

/// A fitted model.
pub trait Model: Any + AsModel + Debug + Send + Sync {
    /// Name of the family.
    fn family(&self) -> &'static str;
    /// Columns and task of the model.
    fn schema(&self) -> &Schema;
    /// Shape of the distributions of its members.
    fn head(&self) -> Head;
    /// Number of members.
    fn n_members(&self) -> usize;
    /// Writes the distribution of every member on a block of rows to `out`, which has the right
    /// shape.
    ///
    /// # Errors
    /// When the rows do not match the schema.
    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()>;
    /// Report of the training.
    fn training(&self) -> &Training;
    /// The model as a record, from which it can be restored.
    fn record(&self) -> Record;
    /// The parameters of the fit, as a JSON object.
    fn params_json(&self) -> String {
        let record = self.record();
        record
            .meta
            .get("params")
            .unwrap_or(&serde_json::Value::Null)
            .to_string()
    }
    /// Total gain of the splits on each column, as shares of the sum; `None` for families without
    /// splits on columns.
    fn gains(&self) -> Option<Vec<f64>> {
        None
    }
    /// The tree, for a model that is a single hard tree; `None` otherwise.
    fn tree_export(&self) -> Option<TreeExport> {
        None
    }
    /// The posterior over the structure of the tree, for families that have one; `None` otherwise.
    fn structure(&self) -> Option<StructurePosterior> {
        None
    }
    /// Number of nodes, internal ones and leaves, of a model that is a single tree; `None` otherwise.
    /// A mean over several trees may be a fraction.
    fn n_nodes(&self) -> Option<f64> {
        None
    }
    /// The joint distribution of the regression function at several rows, for models that have it
    /// in closed form; `None` for the others, whose members are functions and so describe the
    /// joint distribution by themselves.
    ///
    /// # Errors
    /// When the rows do not match the schema.
    fn joint(&self, _rows: &Rows<'_>) -> Result<Option<JointNormal>> {
        Ok(None)
    }
    /// What widens the predictions away from the training rows; `None` for models without it.
    fn extrapolation(&self) -> Option<&Extrapolation> {
        None
    }
    /// The predictive distribution for the rows of a table, on all threads of the machine; columns
    /// are matched by name. [`Distribution::new`] takes a thread pool.
    ///
    /// # Errors
    /// When a column is absent or of the wrong kind.
    fn predict(&self, table: &Table) -> Result<Distribution<'_>> {
        Distribution::on_all_threads(self.as_model(), table)
    }
    /// A model of the same family from a record, as [`load`](crate::load) builds it.
    ///
    /// # Errors
    /// When the record is incomplete or a value is out of range.
    fn restored(&self, record: &Record) -> Result<Box<dyn Model>>;
    /// Writes the model to a file, which [`load`](crate::load) reads. The file is read back before
    /// it replaces an earlier one; after an error the earlier file is unchanged and no partial file
    /// is left. A symbolic link is followed, and a replaced file keeps its permissions.
    ///
    /// # Errors
    /// When the path is a directory, a device or a pipe, its directory does not exist, the file
    /// cannot be written, or the model cannot be read back.
    fn save(&self, path: &Path) -> Result<()> {
        let bytes = self.to_bytes();
        check_restored(self, &bytes).map_err(|error| {
            let problem = format!(
                "not written: the model cannot be read back ({error}); please report this bug"
            );
            Error::file(path, problem)
        })?;
        file::write(path, &bytes)
    }
    /// The content of the model's file, which [`from_bytes`](crate::from_bytes) reads.
    fn to_bytes(&self) -> Vec<u8> {
        container::to_bytes(&self.record())
    }
}

/// Returns an error unless a model that is restored from the bytes of this one has the same bytes
/// again.
fn check_restored<M: Model + ?Sized>(model: &M, bytes: &[u8]) -> Result<()> {
    // each record is gone before the next one is made, and the bytes are not copied: one more model
    // and one more record are in memory at most
    let restored = {
        let record = container::from_bytes(bytes)?;
        model.restored(&record)?
    };
    let record = restored.record();
    drop(restored);
    if container::is_content(bytes, &record) {
        return Ok(());
    }
    Err(Error::Format(
        "its bytes differ after it was read".to_owned(),
    ))
}

/// Conversion of a model to `&dyn Model`; every model has it.
pub trait AsModel {
    /// The model behind its interface.
    fn as_model(&self) -> &dyn Model;
}

impl<M: Model> AsModel for M {
    fn as_model(&self) -> &dyn Model {
        self
    }
}
