//! Parameters of Gaussian processes.

use crate::gaussian_process::kernel::KernelShape;
use crate::params::{param_group, params};
use crate::trees::param_groups::{hard_bins, hard_min_scale};

param_group! {
    /// Kernel of a Gaussian process.
    process_kernel {
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
    }
}

param_group! {
    /// Estimation of a Gaussian process and members of the model.
    process_training {
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
        /// Whether the scale and the tails of an estimated noise are corrected after training, on
        /// rows that are left out one at a time. If not, the noise is Normal.
        calibrate_noise: bool = true;
    }
}

params! {
    #[doc = include_str!("gp.md")]
    GpParams, across = |_: &GpParams| None, {
        use process_kernel;
        /// Standard deviation of the noise, in units of the standard deviation of the target; auto:
        /// estimated, and at least `min_scale`.
        noise_scale: Option<f64> = None, [1e-4, 1e2];
        use process_training;
        use hard_min_scale;
    }
}

params! {
    #[doc = include_str!("gp_rnn_tree.md")]
    GpRnnTreeParams, across = |_: &GpRnnTreeParams| None, {
        use process_kernel;
        /// Depth of the tree of the noise that the network writes. Splits that do not raise the
        /// likelihood enough are removed.
        max_depth: usize = 3, [1, 10];
        /// Number of hidden units of the network.
        n_hidden: usize = 16, [1, 256];
        /// Number of training runs of the network from different starts.
        n_tree_restarts: usize = 4, [1, 1000];
        /// Number of optimisation steps of a training run of the network.
        n_steps: usize = 400, [1, 1_000_000];
        /// Learning rate of the network.
        learning_rate: f64 = 0.01, [1e-6, 1.0];
        /// Weight of the KL divergence between routes and the prior of balanced trees.
        kl_weight: f64 = 0.1, [0.0, 100.0];
        use process_training;
        use hard_bins;
        use hard_min_scale;
    }
}
