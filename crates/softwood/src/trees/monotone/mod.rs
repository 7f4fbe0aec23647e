//! Monotone constraints: which leaves are compared, and leaf values that respect the order.

pub(crate) mod directions;
pub(crate) mod pairs;
pub(crate) mod projection;
