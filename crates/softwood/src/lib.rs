//! Softwood: tree models that know what they do not know.

mod data;
mod error;
mod evaluate;
mod fit;
mod models;
mod numerics;
mod par;
mod params;
mod posterior;
mod predictive;
mod rng;
mod score;
mod store;

pub use data::column::{Column, MISSING, UNSEEN, Values};
pub use data::dataset::{Dataset, MIN_ROWS, Roles, Target};
pub use data::schema::{Field, FieldKind, Schema, Task};
pub use data::table::{Rows, Table};
pub use error::{Error, Result};
pub use evaluate::protocol::{Protocol, Split};
pub use evaluate::report::{FoldReport, ModelReport, Report};
pub use evaluate::run::{Entrant, evaluate};
pub use evaluate::scores::{Scores, score};
pub use fit::{Fit, Progress, Run, Silent, Watch};
pub use models::any::Family;
pub use models::file::{model_from_bytes, model_to_bytes, read_model, write_model};
pub use models::vst::{Leaf, LeafMixing, Prior, Rotation, Scaling, Vst, VstParams};
pub use par::Pool;
pub use params::{Checked, Kind, Params, Spec};
pub use posterior::{CurvePoint, Distribution, Posterior, Training, Trial};
pub use predictive::block::{Block, Head, LANES};
pub use predictive::uncertainty::{Moments, Uncertainty};
pub use rng::Key;
pub use store::record::{Numbers, Record};
