//! The likelihood of the target as a boosted model knows it, and its way into a block.

use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

use crate::boosting::chain::Chain;
use crate::boosting::inputs::{BoostingData, BoostingSettings};
use crate::boosting::train_chain::{TrainedChain, grow};
use crate::error::{Error, Result};
use crate::likelihood::categorical::{Binary, MAX_SHOWN, Multiclass};
use crate::likelihood::normal::Normal;
use crate::likelihood::squared::Squared;
use crate::rng::Key;

/// Least shrinkage for classes: what the trees seldom point at is drawn towards nothing, as by a prior.
const CLASS_SHRINK_RATE: f64 = 0.01;

/// What the raw outputs mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "lowercase")]
pub(super) enum BoostingLikelihood {
    /// Mean and log scale, the scale at least `floor`.
    Normal { floor: f64 },
    /// Mean; one scale for all rows.
    Squared { sd: f64 },
    /// Logit of the second class.
    Binary,
    /// One logit per class.
    Multiclass { classes: usize },
}

/// Most classes.
const MAX_CLASSES: usize = 1000;

impl BoostingLikelihood {
    pub(super) fn n_outputs(self) -> usize {
        match self {
            Self::Normal { .. } => 2,
            Self::Squared { .. } | Self::Binary => 1,
            Self::Multiclass { classes } => classes,
        }
    }

    /// Grows a chain under this likelihood.
    pub(super) fn grow(
        self,
        ground: &BoostingData<'_>,
        settings: &BoostingSettings,
        base: Option<&Chain>,
        key: Key,
        observer: &mut dyn FnMut(usize, Option<f64>) -> ControlFlow<()>,
    ) -> Result<TrainedChain> {
        match self {
            Self::Normal { floor } => {
                grow::<4>(&Normal { floor }, ground, settings, base, key, observer)
            }
            Self::Squared { .. } => grow::<2>(&Squared, ground, settings, base, key, observer),
            Self::Binary => grow::<2>(&Binary, ground, settings, base, key, observer),
            Self::Multiclass { classes } => {
                let likelihood = Multiclass::new(classes);
                match classes {
                    ..=3 => grow::<8>(&likelihood, ground, settings, base, key, observer),
                    4..=7 => grow::<16>(&likelihood, ground, settings, base, key, observer),
                    8..=15 => grow::<32>(&likelihood, ground, settings, base, key, observer),
                    16..=MAX_CLASSES => {
                        grow::<64>(&likelihood, ground, settings, base, key, observer)
                    }
                    _ => Err(Error::Table(format!(
                        "the target has {classes} classes; boosted trees take at most {MAX_CLASSES}"
                    ))),
                }
            }
        }
    }

    /// What the sum of a Langevin chain shrinks by before each tree, times the step size, unless told.
    pub(super) fn shrink_rate(self, total_weight: f64) -> f64 {
        let least = 0.5 / total_weight;
        match self {
            Self::Normal { .. } | Self::Squared { .. } => least,
            // a logit that is moved in some rounds shrinks in all
            Self::Binary | Self::Multiclass { .. } => {
                self.part_moved() * least.max(CLASS_SHRINK_RATE)
            }
        }
    }

    /// Part of the rounds that move an output.
    pub(super) fn part_moved(self) -> f64 {
        (MAX_SHOWN as f64 / self.n_outputs() as f64).min(1.0)
    }

    /// Log scale of a Normal member as it is read.
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
    fn a_logit_shrinks_as_much_between_its_moves_however_many_classes() {
        let rate = |classes| BoostingLikelihood::Multiclass { classes }.shrink_rate(1e4);
        assert!((rate(3) / CLASS_SHRINK_RATE - 1.0).abs() < 1e-12);
        assert!((rate(310) * 10.0 / rate(31) - 1.0).abs() < 1e-12);
    }
}
