//! Rows of parameter tables that the families of soft trees share.

use crate::params::param_group;

param_group! {
    /// Leaves of soft trees.
    soft_leaves {
        /// Leaf values: `constant`, or `linear` in the inputs. Linear leaves suit smooth functions
        /// and extrapolate linearly; auto: linear if `max_depth` or `leaf_mixing` is given, else
        /// chosen on the validation set.
        leaf_model ("leaf"): Option<crate::variational::options::Leaf> = None;
    }
}

param_group! {
    /// Gates and posterior of soft trees.
    soft_posterior {
        /// Inverse temperature of the gates. Larger values give sharper splits under the same prior
        /// on the weights.
        beta: f64 = 1.0, [0.01, 100.0];
        /// Rank of the low-rank part of the posterior covariance, besides its diagonal (at most the
        /// number of weights). 0 means independent weights; larger values model more correlations
        /// and take longer.
        rank: usize = 5, [0, 100_000];
    }
}

param_group! {
    /// Prior of the weights of soft trees.
    soft_prior {
        /// Prior variances of the weights: `ard` learns one per input and kind of weight and so
        /// shrinks irrelevant inputs, `group` learns one per kind of weight, `fixed` uses
        /// `prior_scale` for all weights.
        prior: crate::variational::options::Prior = crate::variational::options::Prior::Ard;
    }
}

param_group! {
    /// Training of the posterior of soft trees.
    soft_training {
        /// Prior standard deviation of the weights; the initial value if `prior` is `ard` or
        /// `group`. Smaller values regularise more.
        prior_scale: f64 = 0.5, [1e-3, 100.0];
        /// Weight of the KL term in the ELBO. 1 is the Bayesian posterior; smaller values fit the
        /// data more closely.
        kl_weight: f64 = 1.0, [0.0, 10.0];
        /// Peak learning rate of Adam, which falls to zero by a cosine schedule. Reduce it if
        /// training diverges; auto: 0.01 for regression, 0.02 for classification.
        learning_rate: Option<f64> = None, [1e-6, 1.0];
        /// Number of rows per optimiser step; auto: 64, 128 or 256, depending on the number of
        /// rows.
        batch_size: Option<usize> = None, [1, 1_000_000];
    }
}

param_group! {
    /// Posterior draws in the training of soft trees.
    soft_draws {
        /// Number of posterior draws per optimiser step, in antithetic pairs if more than one. More
        /// draws give gradients with less variance and take longer; auto: 4 below 3000 rows, else
        /// 2.
        n_draws: Option<usize> = None, [1, 64];
    }
}

param_group! {
    /// Averaging of fits of soft trees.
    soft_fits {
        /// Number of fits whose posteriors are averaged: of the candidates near the best on the
        /// validation set, in turn. More fits predict better and take longer in proportion.
        n_fits: usize = 4, [1, 100];
    }
}

param_group! {
    /// Calibration of the noise of single soft trees.
    soft_calibration {
        /// Whether the scale and the tails of a learned noise are corrected after training, on the
        /// validation set (regression).
        calibrate_noise: bool = true;
    }
}

param_group! {
    /// Members as draws from the posterior of soft trees.
    soft_sampling {
        /// How members are drawn from the posterior over the weights: `variational` (from a Gaussian
        /// approximation, which training finds) or `hmc` (by Hamiltonian Monte Carlo, from that
        /// approximation on). `hmc` is nearer to the posterior and takes a third to a half longer with
        /// the default `n_members`. Without a prior (`kl_weight` = 0) and with constant noise members
        /// are always `variational`; auto: `hmc` if `n_epochs` times `n_draws` is at least 700, which by
        /// default holds up to about 4300 training rows.
        posterior: Option<crate::variational::options::PosteriorMethod> = None;
    }
}

param_group! {
    /// Members of soft trees.
    soft_members {
        /// Number of posterior draws kept for prediction. More draws give smoother predictive
        /// distributions and slower predictions.
        n_members: usize = 100, [1, 10_000];
    }
}

param_group! {
    /// Validation set and encoding of soft trees.
    soft_inputs {
        /// Whether a training run keeps the epoch with the best validation score instead of the
        /// last one.
        early_stopping: bool = true;
        /// Fraction of the training rows in the validation set, if no validation set is given.
        validation_fraction: f64 = 0.1, [0.01, 0.5];
        /// Scaling of numeric inputs: `standard` (mean 0, standard deviation 1), or `quantile`
        /// (ranks mapped to a standard Normal), which suits skewed columns; auto: chosen on the
        /// validation set.
        scaling: Option<crate::data::encoding::Scaling> = None;
        /// Rotation of numeric inputs: `none`, `pca` (whitened principal components) or `both`
        /// (original and rotated inputs). Rotation suits correlated columns; auto: chosen on the
        /// validation set.
        rotation: Option<crate::data::encoding::Rotation> = None;
        /// Whether squares of the numeric inputs are added as inputs, which suits quadratic
        /// effects; auto: chosen on the validation set.
        squares: Option<bool> = None;
        /// Maximum number of categories per column with an input of their own; rarer categories
        /// share one input.
        max_categories: usize = 32, [1, 10_000];
        /// Lower bound on the predicted noise standard deviation, in units of the standard
        /// deviation of the target. Increase it if predictions are overconfident; auto: 0.001, or
        /// half the step of a target with few distinct values.
        min_scale: Option<f64> = None, [0.0, 10.0];
    }
}
