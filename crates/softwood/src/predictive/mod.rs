//! The one predictive distribution: everything a user asks is derived here from the members' distributions.

pub(crate) mod block;
