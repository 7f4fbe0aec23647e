//! Parameters as training needs them, common to both families.

use crate::gaussian_process::kernel::KernelShape;
use crate::models::gp::params::{GpParams, GpRnnTreeParams, process_kernel, process_training};
use crate::params::with_groups;
use crate::trees::param_groups::hard_min_scale;

/// Parameters of a process.
#[derive(Debug, Clone)]
pub(super) struct GpConfig {
    pub(super) kernel: KernelShape,
    pub(super) length_scale: Option<f64>,
    pub(super) signal_scale: Option<f64>,
    pub(super) noise_scale: Option<f64>,
    pub(super) n_restarts: usize,
    pub(super) max_iterations: usize,
    pub(super) n_inducing: Option<usize>,
    pub(super) max_exact_rows: usize,
    pub(super) n_epochs: usize,
    pub(super) max_categories: usize,
    pub(super) n_members: usize,
    pub(super) calibrate_noise: bool,
    pub(super) min_scale: Option<f64>,
}

impl GpConfig {
    /// Whether a process on this many different rows is exact.
    pub(super) fn is_exact(&self, n_rows: usize) -> bool {
        self.n_inducing.is_none() && n_rows <= self.max_exact_rows
    }

    /// Whether the noise is estimated and then calibrated.
    pub(super) fn calibrates(&self) -> bool {
        self.calibrate_noise && self.noise_scale.is_none()
    }
}

impl From<&GpParams> for GpConfig {
    fn from(params: &GpParams) -> Self {
        with_groups! {
            params, [process_kernel, process_training, hard_min_scale] => GpConfig {
                noise_scale: params.noise_scale,
            }
        }
    }
}

impl From<&GpRnnTreeParams> for GpConfig {
    fn from(params: &GpRnnTreeParams) -> Self {
        with_groups! {
            params, [process_kernel, process_training, hard_min_scale] => GpConfig {
                noise_scale: None,
            }
        }
    }
}
