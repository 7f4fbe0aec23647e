//! Softwood: tree models that know what they do not know.
//!
//! A fitted model answers every row of a table with a full predictive distribution, and splits its uncertainty into
//! *data* (noise that no amount of data removes) and *knowledge* (what the model has not seen enough of). Data flow one
//! way: a [`Table`] of named columns becomes a [`Dataset`] by its [`Roles`]; parameters with [`Fit`] turn it into a
//! [`Model`]; a [`Distribution`] is that posterior's answer to a table.
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
//! // parameters are plain fields; whatever is left out keeps its default
//! let params = VstParams { max_depth: Some(2), n_epochs: Some(60), ..VstParams::default() };
//! let pool = Pool::new(0)?;
//! let run = Run::new(Key::from_seed(0), &pool);
//! let model = params.fit(&data, &run)?;
//!
//! // one row where there was data, one far from all of it
//! let rows = Table::new(vec![Column::numeric("x", vec![0.5, 8.0])])?;
//! let answer = Distribution::new(&model, &rows, &pool)?;
//! let mean = answer.mean()?;
//! let interval = answer.interval(0.9)?; // row by row: lower end, upper end
//! assert!(interval[0] < mean[0] && mean[0] < interval[1]);
//!
//! // variances: total = data + knowledge
//! let parts = answer.uncertainty()?;
//! assert!((parts.total[0] - parts.data[0] - parts.knowledge[0]).abs() < 1e-9);
//! assert!(parts.knowledge[1] > parts.knowledge[0]);
//!
//! // a model file is data: whoever reads it gets the same answers
//! let path = std::env::temp_dir().join(format!("softwood-front-page-{}.softwood", std::process::id()));
//! write_model(&path, &model.record())?;
//! let again = read_model(&path)?;
//! assert_eq!(Distribution::new(again.as_ref(), &rows, &pool)?.mean()?, mean);
//! # std::fs::remove_file(&path).ok();
//! # Ok::<(), softwood::Error>(())
//! ```
//!
//! # Where to look
//!
//! - tables: [`Table`], [`Column`], [`Schema`]; the crate `softwood-io` reads and writes them as files
//! - families: [`Family`] lists them; [`VstParams`] is the first: its page says what it is, its fields are its parameters
//! - answers: [`Distribution`] for moments, quantiles, densities, samples, probabilities
//! - scores: [`score()`] one answer, [`evaluate()`] families by a [`Protocol`], [`ood()`] out-of-domain alarms
//! - explanations: [`importances()`] of columns, [`Model::gains`], [`Model::outline`] of a tree
//! - progress, time limits and stopping: [`Observer`]
//! - model files: [`write_model`], [`read_model`], and the same in memory
//!
//! The same seed, data and version give the same bits on any number of threads.

mod boosting;
mod data;
mod error;
mod evaluate;
mod fit;
mod inference;
mod likelihood;
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
pub use model::{
    CurvePoint, CurveUnit, Distribution, MemberReport, Model, OutputSpread, Training, Trial,
};
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

// the examples of the README are tests too
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
pub(crate) mod explain;
mod model;
