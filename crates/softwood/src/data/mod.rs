//! Tables, schemas, datasets and targets; the dense encoding of a table for soft trees and its bins
//! for hard trees.

mod append;
pub(crate) mod binning;
pub(crate) mod bootstrap;
pub(crate) mod categories;
pub(crate) mod column;
pub(crate) mod dataset;
pub(crate) mod dedup;
pub(crate) mod encoding;
pub(crate) mod ranks;
pub(crate) mod schema;
pub(crate) mod split;
pub(crate) mod table;
pub(crate) mod target;
pub(crate) mod unseen;

pub use column::{Column, MISSING, UNSEEN, Values};
pub use dataset::{Dataset, MIN_ROWS, Roles};
pub use schema::{Field, FieldKind, Labels, Schema, Task};
pub use table::{Rows, Table};
pub use target::Target;
