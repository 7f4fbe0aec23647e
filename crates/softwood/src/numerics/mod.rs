//! Shared mathematics, each piece once, in a file named after it.

pub(crate) mod normal;
pub(crate) mod special;
