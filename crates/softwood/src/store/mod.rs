//! Model files: the container of bytes, and the record of named arrays inside it, which is
//! independent of the model family.

pub(crate) mod container;
pub(crate) mod file;
pub(crate) mod record;

pub use record::{Array, Record};
