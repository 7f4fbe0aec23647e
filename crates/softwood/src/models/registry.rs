//! The list of model families, and dispatch by family. No other module enumerates the families.

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::data::dataset::Dataset;
use crate::error::{Error, Result};
use crate::fit::{Fit, Run, no_warm_start};
use crate::model::Model;
use crate::models::boosting::{SgbParams, SglbParams};
use crate::models::forest::ForestParams;
use crate::models::gp::{GpParams, GpRnnTreeParams};
use crate::models::ldt::LdtParams;
use crate::models::rnn_tree::RnnTreeParams;
use crate::models::soft_tree::SoftTreeParams;
use crate::models::tree::TreeParams;
use crate::models::vart::VartParams;
use crate::models::vsgbm::VsgbmParams;
use crate::models::vst::VstParams;
use crate::params::{self, ParamSpec, Params};
use crate::store::record::Record;
use crate::suggestion::{did_you_mean, similar_name};

/// Names of models in other libraries, and the family that is nearest to each.
const PEERS: &[(&str, &str)] = &[
    ("random_forest", "forest"),
    ("randomforest", "forest"),
    ("rf", "forest"),
    ("decision_tree", "tree"),
    ("cart", "tree"),
    ("gbm", "sgb"),
    ("gbdt", "sgb"),
    ("boosting", "sgb"),
    ("lightgbm", "sgb"),
    ("xgboost", "sgb"),
    ("catboost", "sgb"),
    ("sdt", "soft-tree"),
    ("soft_tree", "vst"),
    ("lda", "ldt"),
    ("linear_discriminant", "ldt"),
    ("discriminant", "ldt"),
    ("oblique_tree", "ldt"),
    ("gaussian_process", "gp"),
    ("gpr", "gp"),
    ("svgp", "gp"),
    ("kriging", "gp"),
    ("heteroscedastic_gp", "gp-rnn-tree"),
];

/// Declares the families: variant, parameter type and summary. The name is [`Fit::FAMILY`].
macro_rules! families {
    ($($(#[$meta:meta])* $variant:ident($params:ty): $summary:literal),+ $(,)?) => {
        /// A model family.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Family { $($(#[$meta])* $variant),+ }

        /// A model family with checked parameters.
        #[derive(Debug, Clone, PartialEq)]
        pub struct ModelSpec(AnyParams);

        #[derive(Debug, Clone, PartialEq)]
        enum AnyParams { $($variant($params)),+ }

        impl Family {
            /// All families, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Name of the family on the command line and in model files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => <$params as Fit>::FAMILY),+ }
            }

            /// One-line description.
            pub fn summary(self) -> &'static str {
                match self { $(Self::$variant => $summary),+ }
            }

            /// Specifications of its parameters.
            pub fn table(self) -> Vec<ParamSpec> {
                match self { $(Self::$variant => <$params as Params>::table()),+ }
            }

            /// Whether a fitted model can be trained further.
            pub fn supports_warm_start(self) -> bool {
                match self { $(Self::$variant => <$params as Fit>::SUPPORTS_WARM_START),+ }
            }

            /// Whether training a fitted model further takes a small part of the time of a fit.
            pub fn warm_start_is_short(self) -> bool {
                match self { $(Self::$variant => <$params as Fit>::WARM_START_IS_SHORT),+ }
            }

            /// Whether the target may be classes; all families take numeric targets.
            pub fn supports_classes(self) -> bool {
                match self { $(Self::$variant => <$params as Fit>::SUPPORTS_CLASSES),+ }
            }

            /// Parameters from `KEY=VALUE` pairs; parameters that are not given have their
            /// defaults.
            ///
            /// # Errors
            /// When a name is unknown, a value cannot be read or is out of range; the message lists
            /// all problems.
            pub fn params(self, pairs: &[(String, String)]) -> Result<ModelSpec> {
                Ok(ModelSpec(match self {
                    $(Self::$variant => AnyParams::$variant(params::from_texts(pairs)?)),+
                }))
            }

            fn params_from_value(self, object: &Value) -> Result<ModelSpec> {
                Ok(ModelSpec(match self {
                    $(Self::$variant => AnyParams::$variant(params::from_json(object)?)),+
                }))
            }

            /// A note for each former parameter name or value in `pairs`, with its replacement.
            pub fn former_names(self, pairs: &[(String, String)]) -> Vec<String> {
                match self { $(Self::$variant => params::former_names::<$params>(pairs)),+ }
            }

            /// Builds a fitted model from its record.
            ///
            /// # Errors
            /// When the family is unknown or the record is incomplete.
            pub fn restore(record: &Record) -> Result<Box<dyn Model>> {
                let family = Self::from_name(&record.family)
                    .map_err(|error| Error::Format(error.to_string()))?;
                match family {
                    $(Self::$variant => Ok(Box::new(<$params as Fit>::restore(record)?))),+
                }
            }
        }

        impl ModelSpec {
            /// The family.
            pub fn family(&self) -> Family {
                match &self.0 { $(AnyParams::$variant(_) => Family::$variant),+ }
            }

            /// A copy with the parameters of `KEY=VALUE` pairs replaced.
            ///
            /// # Errors
            /// As [`Family::params`].
            pub fn updated(&self, pairs: &[(String, String)]) -> Result<Self> {
                Ok(Self(match &self.0 {
                    $(AnyParams::$variant(params) => AnyParams::$variant(params::updated(params, pairs)?)),+
                }))
            }

            /// Fits a model of the family with seed 0 on all threads of the machine.
            ///
            /// # Errors
            /// As [`ModelSpec::fit_with`].
            pub fn fit(&self, data: &Dataset) -> Result<Box<dyn Model>> {
                match &self.0 { $(AnyParams::$variant(params) => Ok(Box::new(params.fit(data)?))),+ }
            }

            /// Fits a model of the family.
            ///
            /// # Errors
            /// When the data cannot be used, the observer discards the fit, or training diverges.
            pub fn fit_with(&self, data: &Dataset, run: &Run<'_>) -> Result<Box<dyn Model>> {
                match &self.0 { $(AnyParams::$variant(params) => Ok(Box::new(params.fit_with(data, run)?))),+ }
            }
        }

        impl Serialize for ModelSpec {
            fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                match &self.0 { $(AnyParams::$variant(params) => params.serialize(serializer)),+ }
            }
        }

        $(impl From<$params> for ModelSpec {
            fn from(params: $params) -> Self {
                Self(AnyParams::$variant(params))
            }
        })+
    };
}

families! {
    /// Variational soft tree.
    Vst(VstParams): "variational soft tree: one soft tree with a Gaussian posterior over all weights",
    /// Boosted variational soft trees.
    Vsgbm(VsgbmParams): "boosted variational soft trees: a sum of soft trees with a posterior over all weights",
    /// Stochastic gradient boosting.
    Sgb(SgbParams): "stochastic gradient boosting: an ensemble of boosted hard trees, one per seed",
    /// Stochastic gradient Langevin boosting.
    Sglb(SglbParams): "Langevin boosting: boosted hard trees whose ensemble members are posterior samples",
    /// Random forest.
    Forest(ForestParams): "random forest: bagged hard trees; groups of trees act as ensemble members",
    /// Variational regression tree.
    Vart(VartParams): "variational regression tree: one soft tree with a posterior over its structure and all weights",
    /// Incremental soft decision tree.
    SoftTree(SoftTreeParams): "incremental soft tree: one soft tree that grows while the validation error falls",
    /// Classification or regression tree.
    Tree(TreeParams): "classification or regression tree: one hard tree, pruned by cross-validation",
    /// Linear discriminant tree.
    Ldt(LdtParams): "linear discriminant tree: one hard tree whose splits are linear in all columns, \
        pruned on validation rows",
    /// RNN-Tree.
    RnnTree(RnnTreeParams): "RNN-Tree: decision trees that a recurrent network writes, optimised as a whole",
    /// Gaussian process.
    Gp(GpParams): "Gaussian process: a distribution over smooth functions, exact or with inducing points; regression only",
    /// Gaussian process whose noise is an RNN-Tree.
    GpRnnTree(GpRnnTreeParams): "Gaussian process with tree-shaped noise: a recurrent network writes the tree of the noise; \
        regression only",
}

impl Family {
    /// The family of this name.
    ///
    /// # Errors
    /// When no family has this name; the message lists the names.
    pub fn from_name(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|family| family.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|family| family.name()).collect();
            let peer = PEERS.iter().find(|(peer, _)| *peer == name);
            let meant = peer.map(|(_, ours)| *ours);
            let meant = meant.or_else(|| similar_name(name, names.iter().copied()));
            Error::Parameters(vec![format!(
                "no model is called `{name}`; there are {}{}",
                names.join(", "),
                did_you_mean(meant)
            )])
        })
    }

    /// Parameters from a JSON object; parameters that are not given have their defaults.
    ///
    /// # Errors
    /// When the text is not a JSON object, a name is unknown, or a value cannot be read or is out of
    /// range.
    pub fn params_from_json(self, object: &str) -> Result<ModelSpec> {
        let object: Value = serde_json::from_str(object)
            .map_err(|error| Error::Parameters(vec![format!("parameters as JSON: {error}")]))?;
        self.params_from_value(&object)
    }

    /// Checks that fitted models of the family can be trained further, before any data are read.
    ///
    /// # Errors
    /// When the family does not support a warm start.
    pub fn check_warm_start(self) -> Result<()> {
        if self.supports_warm_start() {
            return Ok(());
        }
        Err(no_warm_start(self.name()))
    }
}
