//! Training and validation rows of a fit.

use std::borrow::Cow;

use crate::data::dataset::Dataset;
use crate::fit::Run;
use crate::rng::Key;
use crate::variational::config::SoftTreeConfig;

/// Training and validation rows of a fit: the validation rows of the run, or a random split.
#[derive(Debug)]
pub(crate) struct FitRows<'a> {
    train: Cow<'a, Dataset>,
    validation: Option<Cow<'a, Dataset>>,
}

impl<'a> FitRows<'a> {
    /// Splits off a validation set unless the run has one or none is needed.
    pub(crate) fn new(config: &SoftTreeConfig, data: &'a Dataset, run: &Run<'a>, key: Key) -> Self {
        Self::split(config, data, run, key).unwrap_or(Self {
            train: Cow::Borrowed(data),
            validation: run.held_out.map(Cow::Borrowed),
        })
    }

    /// A random split; `None` if the run has a validation set or none is needed.
    pub(crate) fn split(
        config: &SoftTreeConfig,
        data: &Dataset,
        run: &Run<'_>,
        key: Key,
    ) -> Option<Self> {
        if run.held_out.is_some() {
            return None;
        }
        let (train, validation) = config.validation_split(data, key)?;
        Some(Self {
            train: Cow::Owned(train),
            validation: Some(Cow::Owned(validation)),
        })
    }

    pub(crate) fn train(&self) -> &Dataset {
        &self.train
    }

    pub(crate) fn validation(&self) -> Option<&Dataset> {
        self.validation.as_deref()
    }
}
