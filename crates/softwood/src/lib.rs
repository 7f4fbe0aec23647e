//! Softwood: tree models that know what they do not know.
//!
//! A fitted model predicts a full distribution for every row of a table and splits its uncertainty
//! into *data* (aleatoric) uncertainty, the noise that no amount of training data removes, and
//! *knowledge* (epistemic) uncertainty, which shrinks as the model sees more rows of that kind.
//!
//! Data flow one way: a [`Table`] of named columns becomes a [`Dataset`] by its [`Roles`]; a set of
//! parameters that implements [`Fit`] is fitted to it and gives a [`Model`]; a [`Distribution`] is
//! the model's prediction for a table.
//!
//! ```
//! use softwood::{
//!     Column, Dataset, Distribution, Fit, Key, Pool, Model, Roles, Run, Table, VstParams,
//!     read_model, write_model,
//! };
//!
//! // 200 rows: a sine, and a deviation that repeats every 19 rows
//! let x: Vec<f64> = (0..200).map(|row| f64::from(row) / 50.0 - 2.0).collect();
//! let y = x.iter().zip(0..).map(|(x, row)| x.sin() + 0.02 * f64::from(row * 7 % 19 - 9)).collect();
//! let table = Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)])?;
//! let data = Dataset::from_table(&table, &Roles { target: "y".to_owned(), ..Roles::default() })?;
//!
//! // parameters are plain fields; a field that is not set keeps its default
//! let params = VstParams { max_depth: Some(2), n_epochs: Some(60), ..VstParams::default() };
//! let pool = Pool::new(0)?;
//! let run = Run::new(Key::from_seed(0), &pool);
//! let model = params.fit(&data, &run)?;
//!
//! // one row inside the range of the training rows, one far outside
//! let rows = Table::new(vec![Column::numeric("x", vec![0.5, 8.0])])?;
//! let prediction = Distribution::new(&model, &rows, &pool)?;
//! let mean = prediction.mean()?;
//! let interval = prediction.interval(0.9)?; // rows x 2: lower end, upper end
//! assert!(interval[0] < mean[0] && mean[0] < interval[1]);
//!
//! // variances: total = data (aleatoric) + knowledge (epistemic)
//! let parts = prediction.uncertainty()?;
//! assert!((parts.total[0] - parts.data[0] - parts.knowledge[0]).abs() < 1e-9);
//! assert!(parts.knowledge[1] > parts.knowledge[0]);
//!
//! // a model that is read from a file predicts the same bits
//! let path = std::env::temp_dir().join(format!("softwood-front-page-{}.softwood", std::process::id()));
//! write_model(&path, &model.record())?;
//! let loaded = read_model(&path)?;
//! assert_eq!(Distribution::new(loaded.as_ref(), &rows, &pool)?.mean()?, mean);
//! # std::fs::remove_file(&path).ok();
//! # Ok::<(), softwood::Error>(())
//! ```
//!
//! # Where to look
//!
//! - tables: [`Table`], [`Column`], [`Schema`]; the crate `softwood-io` reads and writes table
//!   files
//! - model families: [`Family`] lists them; each has a parameter type such as [`VstParams`], whose
//!   page describes the model and whose fields are its parameters
//! - predictions: [`Distribution`] for moments, quantiles, densities, samples, class probabilities
//! - scores: [`score()`] of one prediction, [`evaluate()`] of model families by a [`Protocol`],
//!   [`ood()`] for out-of-domain detection
//! - explanations: permutation [`importances()`] of columns, [`Model::gains`] of splits,
//!   [`Model::tree_export`] of a single tree
//! - progress, time limits and early cancellation: [`Observer`]
//! - model files: [`write_model`], [`read_model`]; in memory: [`model_to_bytes`],
//!   [`model_from_bytes`]
//!
//! The same seed, data and version give the same bits on any number of threads.

mod boosting;
mod data;
mod distribution;
mod error;
mod evaluate;
mod explain;
mod fit;
mod inference;
mod likelihood;
mod model;
mod models;
mod numerics;
mod observer;
mod par;
mod params;
mod predictive;
mod rng;
mod score;
mod soft;
mod store;
mod trees;
mod variational;

pub use data::column::{Column, MISSING, UNSEEN, Values};
pub use data::dataset::{Dataset, MIN_ROWS, Roles};
pub use data::encoding::{Rotation, Scaling};
pub use data::schema::{Field, FieldKind, Labels, Schema, Task};
pub use data::table::{Rows, Table};
pub use data::target::Target;
pub use distribution::Distribution;
pub use error::{Error, Result};
pub use evaluate::ood::{Ood, Separation, ood};
pub use evaluate::protocol::{Protocol, Split};
pub use evaluate::report::{FoldReport, ModelReport, Report};
pub use evaluate::run::evaluate;
pub use evaluate::scores::{Scores, score};
pub use explain::permutation_importance::{
    ColumnImportance, Estimate, Importances, PermutationOptions, importances,
};
pub use explain::tree_export::{Condition, ExportNode, ExportSplit, LeafValue, TreeExport};
pub use fit::{Fit, Run};
pub use likelihood::NoiseModel;
pub use model::{CurvePoint, CurveUnit, MemberReport, Model, OutputSpread, Training, Trial};
pub use models::boosting::{Boosted, GrowPolicy, LangevinNoise, SgbParams, SglbParams};
pub use models::file::{model_from_bytes, model_to_bytes, read_model, write_model};
pub use models::forest::{Forest, ForestParams};
pub use models::registry::{Family, ModelSpec};
pub use models::tree::{Tree, TreeParams};
pub use models::vsgbm::{NoiseUpdate, Residuals, Vsgbm, VsgbmParams};
pub use models::vst::{Vst, VstParams};
pub use observer::{NoObserver, Observer, Progress};
pub use par::Pool;
pub use params::{
    Checked, ClassWeight, Directions, ParamKind, ParamSpec, ParamValue, Params, WeightRule,
};
pub use predictive::block::{Block, Head, LANES};
pub use predictive::moments::{Moments, Uncertainty};
pub use rng::Key;
pub use store::record::{Array, Record};
pub use variational::options::{Leaf, LeafMixing, Prior};
#[cfg(feature = "bench")]
pub use variational::probe::{ProbeShape, ProbeTrees, StepProbe};

// the examples of the README run as doctests
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
