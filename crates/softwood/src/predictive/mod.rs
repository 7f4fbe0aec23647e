//! The one predictive distribution: everything a user asks is derived here from the members' distributions.

pub(crate) mod block;
pub(crate) mod categorical;
pub(crate) mod crps;
pub(crate) mod density;
pub(crate) mod quantile;
pub(crate) mod sample;

pub(crate) mod cdf_grid;
pub(crate) mod moments;
pub(crate) mod row_mixture;
#[cfg(test)]
mod tests;
