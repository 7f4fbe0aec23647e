//! The predictive distribution: moments, quantiles, densities, scores and samples, all computed
//! from the distributions of the members.

pub(crate) mod block;
pub(crate) mod categorical;
pub(crate) mod cdf_grid;
pub(crate) mod crps;
pub(crate) mod density;
pub(crate) mod moments;
pub(crate) mod noise_calibration;
pub(crate) mod quantile;
pub(crate) mod row_mixture;
pub(crate) mod sample;
pub(crate) mod seen_residuals;

#[cfg(test)]
mod tests;
