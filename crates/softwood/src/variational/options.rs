//! Parameter values that the families of soft trees share.

use crate::params::choices;

choices! {
    /// Leaf model of a soft tree.
    Leaf {
        /// Leaf values are constants.
        Constant = "constant",
        /// Leaf values are linear functions of the inputs.
        Linear = "linear",
    }
}

choices! {
    /// How the leaves of a soft tree combine into one distribution.
    LeafMixing {
        /// Each leaf is a component of a mixture.
        Mixture = "mixture",
        /// One distribution; its parameters are averages of the leaf values, weighted by the path
        /// probabilities.
        Blend = "blend",
        /// The top levels choose a component of a mixture; the levels below blend.
        Hybrid = "hybrid",
    }
}

choices! {
    /// Prior variances of the weights.
    Prior {
        /// One learned variance per kind of weight and input (automatic relevance determination).
        Ard = "ard",
        /// One learned variance per kind of weight.
        Group = "group" ("kind"),
        /// The square of `prior_scale` for every weight.
        Fixed = "fixed",
    }
}

choices! {
    /// How the members of a soft tree are drawn from the posterior over its weights.
    PosteriorMethod {
        /// From a Gaussian approximation, fitted by maximising the ELBO.
        Variational = "variational",
        /// By Hamiltonian Monte Carlo, from the Gaussian approximation on.
        Hmc = "hmc",
    }
}

/// The problem with `mixing_levels`, if there is one: it needs a hybrid tree of a given depth.
pub(crate) fn check_mixing_levels(
    mixing_levels: Option<usize>,
    leaf_mixing: Option<LeafMixing>,
    max_depth: Option<usize>,
) -> Option<String> {
    let levels = mixing_levels?;
    match (leaf_mixing, max_depth) {
        (Some(LeafMixing::Hybrid), Some(depth)) if levels > depth => Some(format!(
            "`mixing_levels` = {levels} exceeds `max_depth` = {depth}"
        )),
        (Some(LeafMixing::Hybrid), Some(_)) => None,
        _ => Some(
            "`mixing_levels` is only used with `leaf_mixing` = hybrid and a given `max_depth`"
                .to_owned(),
        ),
    }
}
