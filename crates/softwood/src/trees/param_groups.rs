//! Rows of parameter tables that the families of hard trees share.

use crate::params::param_group;

param_group! {
    /// Binning of hard trees.
    hard_bins {
        /// Maximum number of bins of a column. Fewer bins are faster but make thresholds coarser.
        max_bins: usize = 255, [2, 255];
    }
}

param_group! {
    /// Floor of the standard deviation of hard trees.
    hard_min_scale {
        /// Minimum predicted standard deviation, in units of the standard deviation of the target;
        /// auto: 0.001, or half the resolution of a rounded target.
        min_scale: Option<f64> = None, [1e-6, 10.0];
    }
}
