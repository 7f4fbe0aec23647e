//! Parameters of the Gaussian process.

use crate::gaussian_process::kernel::KernelShape;
use crate::params::params;
use crate::trees::param_groups::hard_min_scale;

params! {
    #[doc = include_str!("gp.md")]
    GpParams, across = |_: &GpParams| None, {
        /// Kernel: how smooth the functions are. `squared_exponential` functions are infinitely
        /// differentiable, `matern52` ones twice, `matern32` ones once, and `matern12` ones are
        /// continuous and rough.
        kernel: KernelShape = KernelShape::Matern52;
        /// Length scale of every encoded input, in its standard deviations; auto: one length scale
        /// per input, estimated.
        length_scale: Option<f64> = None, [1e-3, 1e4];
        /// Standard deviation of the functions, in units of the standard deviation of the target;
        /// auto: estimated.
        signal_scale: Option<f64> = None, [1e-3, 1e3];
        /// Standard deviation of the noise, in units of the standard deviation of the target; auto:
        /// estimated, and at least `min_scale`.
        noise_scale: Option<f64> = None, [1e-4, 1e2];
        /// Number of further starting points of the search for length scales, signal and noise.
        n_restarts: usize = 1, [0, 100];
        /// Maximum number of iterations of this search.
        max_iterations: usize = 100, [0, 10_000];
        /// Number of inducing points of a sparse process; auto: none (an exact process) up to
        /// `max_exact_rows` different rows, and 512 beyond. More points are more accurate; time grows
        /// with their square and memory too.
        n_inducing: Option<usize> = None, [1, 8192];
        /// Maximum number of different rows of an exact process, whose time grows with the cube of the
        /// rows and whose memory with the square, unless `n_inducing` is given.
        max_exact_rows: usize = 2000, [2, 50_000];
        /// Number of passes over the rows that a sparse process is trained for.
        n_epochs: usize = 10, [0, 10_000];
        /// Maximum number of categories per column with an input of their own; rarer categories
        /// share one input.
        max_categories: usize = 32, [1, 10_000];
        /// Number of ensemble members: functions drawn from the posterior, in pairs around its mean. An
        /// odd number adds the mean itself.
        n_members: usize = 128, [1, 1000];
        use hard_min_scale;
    }
}
