//! Model files: the container of bytes, and the record of named arrays inside it, which is
//! independent of the model family. [`atomic`] writes files of any kind.

pub mod atomic;
pub(crate) mod container;
pub(crate) mod file;
pub(crate) mod range;
pub(crate) mod record;

pub use record::{Array, Record};
