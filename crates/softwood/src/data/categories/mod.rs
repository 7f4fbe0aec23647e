//! High-cardinality categories: target encoding, category crosses, and groups of rows.

pub(crate) mod crosses;
pub(crate) mod groups;
pub(crate) mod target_encoding;
