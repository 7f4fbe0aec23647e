//! Decisions from predictive distributions. Everything here works with any family, through
//! [`ModelSpec`](crate::ModelSpec) and [`Distribution`](crate::Distribution) alone.

pub mod bandit;
pub mod causal;
pub mod design;
