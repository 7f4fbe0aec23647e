//! Monotone constraints: pairs of leaves in a required order, and leaf values that satisfy it.

pub(crate) mod directions;
pub(crate) mod pairs;
pub(crate) mod projection;
