//! The likelihood of the target given the raw outputs of a boosted model.

use serde::{Deserialize, Serialize};

use crate::boosting::chain::Chain;
use crate::boosting::inputs::{BoostingData, BoostingSettings};
use crate::boosting::train_chain::{OnRound, TrainedChain, grow};
use crate::error::{Error, Result};
use crate::likelihood::OutputNames;
use crate::likelihood::categorical::{Binary, MAX_SHOWN, Multiclass};
use crate::likelihood::normal::Normal;
use crate::likelihood::squared::Squared;
use crate::rng::Key;
use crate::store::range;

/// Smallest model shrink rate for classification. Shrinkage acts as a prior: it draws logits that
/// the data rarely change towards zero.
const CLASS_SHRINK_RATE: f64 = 0.01;

/// The distribution whose parameters are the raw outputs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "lowercase")]
pub(super) enum BoostingLikelihood {
    /// Outputs: mean and log scale of a Normal distribution; the scale is at least `floor`.
    Normal { floor: f64 },
    /// Output: mean of a Normal distribution with one standard deviation for all rows.
    Squared { sd: f64 },
    /// Output: logit of the second class.
    Binary,
    /// Outputs: one logit per class.
    Multiclass { classes: usize },
}

/// Largest number of classes.
const MAX_CLASSES: usize = 1000;

impl BoostingLikelihood {
    /// Names of the raw outputs.
    pub(super) fn output_names(self) -> OutputNames {
        match self {
            Self::Normal { .. } => Normal::OUTPUT_NAMES,
            Self::Squared { .. } => Squared::OUTPUT_NAMES,
            Self::Binary => Binary::OUTPUT_NAMES,
            Self::Multiclass { .. } => Multiclass::OUTPUT_NAMES,
        }
    }

    pub(super) fn is_classification(self) -> bool {
        matches!(self, Self::Binary | Self::Multiclass { .. })
    }

    pub(super) fn n_outputs(self) -> usize {
        let n_classes = match self {
            Self::Multiclass { classes } => classes,
            _ => 0,
        };
        self.output_names().n_outputs(n_classes)
    }

    /// Checks the numbers of a likelihood that was read from a file.
    ///
    /// # Errors
    /// When a standard deviation is out of range.
    pub(super) fn check_ranges(self) -> Result<()> {
        match self {
            Self::Normal { floor } => range::check("law.floor", floor, &range::FLOORS),
            Self::Squared { sd } => range::check("law.sd", sd, &range::STANDARD_DEVIATIONS),
            Self::Binary | Self::Multiclass { .. } => Ok(()),
        }
    }

    /// Trains a chain with this likelihood, from a constant or from the chain `warm_start`.
    ///
    /// # Errors
    /// When there are too many classes, training diverges, or `on_round` discards it.
    pub(super) fn grow(
        self,
        data: &BoostingData<'_>,
        settings: &BoostingSettings,
        warm_start: Option<&Chain>,
        key: Key,
        on_round: OnRound<'_>,
    ) -> Result<TrainedChain> {
        match self {
            Self::Normal { floor } => {
                grow::<4>(&Normal { floor }, data, settings, warm_start, key, on_round)
            }
            Self::Squared { .. } => grow::<2>(&Squared, data, settings, warm_start, key, on_round),
            Self::Binary => grow::<2>(&Binary, data, settings, warm_start, key, on_round),
            Self::Multiclass { classes } => {
                let likelihood = Multiclass::new(classes);
                match classes {
                    ..=3 => grow::<8>(&likelihood, data, settings, warm_start, key, on_round),
                    4 => grow::<12>(&likelihood, data, settings, warm_start, key, on_round),
                    5..=7 => grow::<16>(&likelihood, data, settings, warm_start, key, on_round),
                    8 => grow::<24>(&likelihood, data, settings, warm_start, key, on_round),
                    9..=15 => grow::<32>(&likelihood, data, settings, warm_start, key, on_round),
                    16..=MAX_CLASSES => {
                        grow::<64>(&likelihood, data, settings, warm_start, key, on_round)
                    }
                    _ => Err(Error::Table(format!(
                        "the target has {classes} classes; boosted trees take at most {MAX_CLASSES}"
                    ))),
                }
            }
        }
    }

    /// Default model shrink rate of a Langevin chain.
    pub(super) fn shrink_rate(self, total_weight: f64) -> f64 {
        let regression = 0.5 / total_weight;
        match self {
            Self::Normal { .. } | Self::Squared { .. } => regression,
            // with many classes a round changes some of the logits but shrinks all of them
            Self::Binary | Self::Multiclass { .. } => {
                self.fraction_updated() * regression.max(CLASS_SHRINK_RATE)
            }
        }
    }

    /// Fraction of the rounds that update an output.
    pub(super) fn fraction_updated(self) -> f64 {
        (MAX_SHOWN as f64 / self.n_outputs() as f64).min(1.0)
    }

    /// Standard deviation of a Normal distribution with the raw log scale `raw`.
    pub(super) fn sd(self, raw: f64) -> f64 {
        match self {
            Self::Normal { floor } => Normal { floor }.log_scale(raw).exp(),
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shrinkage_of_a_logit_between_updates_does_not_depend_on_the_number_of_classes() {
        let rate = |classes| BoostingLikelihood::Multiclass { classes }.shrink_rate(1e4);
        assert!((rate(3) / CLASS_SHRINK_RATE - 1.0).abs() < 1e-12);
        assert!((rate(310) * 10.0 / rate(31) - 1.0).abs() < 1e-12);
    }
}
