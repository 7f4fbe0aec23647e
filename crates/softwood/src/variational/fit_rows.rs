//! Training and validation rows of a fit.

use crate::data::dataset::Dataset;
use crate::fit::Run;
use crate::rng::Key;
use crate::variational::config::SoftTreeConfig;

/// Training and validation rows of a fit: the validation rows of the run, or a random split.
#[derive(Debug)]
pub(crate) enum FitRows<'a> {
    /// The run has validation rows, or there is no validation set.
    Whole {
        train: &'a Dataset,
        validation: Option<&'a Dataset>,
    },
    /// A random split of the training data.
    Split { train: Dataset, validation: Dataset },
}

impl<'a> FitRows<'a> {
    /// Splits off a validation set unless the run has one or none is needed.
    pub(crate) fn new(config: &SoftTreeConfig, data: &'a Dataset, run: &Run<'a>, key: Key) -> Self {
        let split = match run.held_out {
            Some(_) => None,
            None => config.validation_split(data, key),
        };
        match split {
            Some((train, validation)) => Self::Split { train, validation },
            None => Self::Whole {
                train: data,
                validation: run.held_out,
            },
        }
    }

    pub(crate) fn train(&self) -> &Dataset {
        match self {
            Self::Whole { train, .. } => train,
            Self::Split { train, .. } => train,
        }
    }

    pub(crate) fn validation(&self) -> Option<&Dataset> {
        match self {
            Self::Whole { validation, .. } => *validation,
            Self::Split { validation, .. } => Some(validation),
        }
    }
}
