//! The model file: a container of bytes, and the record of named arrays inside it. Knows arrays,
//! not families.

pub(crate) mod container;
pub(crate) mod file;
pub(crate) mod record;
