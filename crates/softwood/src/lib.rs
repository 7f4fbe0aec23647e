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
//! use softwood::models::VstParams;
//! use softwood::{Column, Dataset, Fit, Model, Roles, Table};
//!
//! // 200 rows: a sine, and a deviation that repeats every 19 rows
//! let x: Vec<f64> = (0..200).map(|row| f64::from(row) / 50.0 - 2.0).collect();
//! let y = x.iter().zip(0..).map(|(x, row)| x.sin() + 0.02 * f64::from(row * 7 % 19 - 9)).collect();
//! let table = Table::new(vec![Column::numeric("x", x), Column::numeric("y", y)])?;
//! let data = Dataset::from_table(&table, &Roles { target: "y".to_owned(), ..Roles::default() })?;
//!
//! // parameters are plain fields; a field that is not set keeps its default
//! let params = VstParams { max_depth: Some(2), n_epochs: Some(60), ..VstParams::default() };
//! let model = params.fit(&data)?;
//!
//! // one row inside the range of the training rows, one far outside
//! let rows = Table::new(vec![Column::numeric("x", vec![0.5, 8.0])])?;
//! let prediction = model.predict(&rows)?;
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
//! model.save(&path)?;
//! let loaded = softwood::load(&path)?;
//! assert_eq!(loaded.predict(&rows)?.mean()?, mean);
//! # std::fs::remove_file(&path).ok();
//! # Ok::<(), softwood::Error>(())
//! ```
//!
//! `params.fit(&data)` uses seed 0 and all threads. [`Fit::fit_with`] takes a [`Run`]: random key,
//! thread pool, observer, validation set, and a fitted model to continue from.
//!
//! # Where to look
//!
//! - [`data`]: tables, columns, schemas, datasets; the crate `softwood-io` reads and writes table
//!   files
//! - [`models`]: the families; each has a parameter type such as [`models::VstParams`], whose page
//!   describes the model and whose fields are its parameters; [`Family`] lists them
//! - [`distribution`]: predictions: moments, quantiles, densities, samples, class probabilities,
//!   contrasts of two tables
//! - [`mod@evaluate`]: scores of one prediction, protocols that compare families, out-of-domain
//!   detection
//! - [`explain`]: permutation importances of columns, export of a single tree; [`Model::gains`]
//! - [`decide`]: bandits, effects of treatments, the next rows to label
//! - [`observer`]: progress, time limits, checkpoints and cancellation
//! - [`Model::save`] and [`load`]: model files; [`Model::to_bytes`] and [`from_bytes`]: in memory
//!
//! The same seed, data and version give the same bits on any number of threads.

mod boosting;
pub mod data;
pub mod decide;
pub mod distribution;
mod error;
pub mod evaluate;
pub mod explain;
mod extrapolation;
mod fit;
mod gaussian_process;
mod inference;
mod likelihood;
pub mod model;
pub mod models;
mod numerics;
pub mod observer;
mod par;
pub mod params;
mod predictive;
mod recurrent;
mod reserve;
mod rng;
mod score;
mod soft;
mod stop;
pub mod store;
mod suggestion;
mod trees;
mod variational;

pub use data::{Column, Dataset, Roles, Table};
pub use distribution::Distribution;
pub use error::{Error, Result};
pub use fit::{Fit, Run};
pub use model::Model;
#[cfg(feature = "bench")]
pub use models::vart::probe::StructureStepProbe;
pub use models::{Family, ModelSpec, from_bytes, load};
pub use par::Pool;
pub use rng::Key;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub use variational::probe::{ProbeShape, ProbeTrees, StepProbe};

// the examples of the README run as doctests
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
