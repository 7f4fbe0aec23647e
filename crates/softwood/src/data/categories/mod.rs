//! Categories of many levels: target encoding, category crosses, groups of rows.

pub(crate) mod crosses;
pub(crate) mod groups;
pub(crate) mod target_encoding;
