//! Choices that the parameters of several families offer.

use crate::params::choices;

choices! {
    /// What stands in a leaf.
    Leaf {
        /// A constant.
        Constant = "constant",
        /// A linear function of the inputs.
        Linear = "linear",
    }
}

choices! {
    /// How the leaves of a tree become one distribution.
    LeafMixing {
        /// Each leaf is a component of a mixture.
        Mixture = "mixture",
        /// One distribution whose parameters are the gate-weighted averages of the leaves'.
        Blend = "blend",
        /// The top levels choose a component, the levels below blend.
        Hybrid = "hybrid",
    }
}

choices! {
    /// Where the prior variances come from.
    Prior {
        /// Learned for each kind of weight and each input (automatic relevance determination).
        Ard = "ard",
        /// Learned for each kind of weight.
        Group = "group" ("kind"),
        /// `prior_scale` squared for every weight.
        Fixed = "fixed",
    }
}
