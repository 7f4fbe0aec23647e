//! Histogram trees on binned columns: quantized gradients, histograms, split search and growth.

pub(crate) mod candidate;
pub(crate) mod chooser;
pub(crate) mod grower;
#[expect(
    clippy::module_inception,
    reason = "the folder grows histogram trees; this file holds the histogram itself"
)]
pub(crate) mod histogram;
pub(crate) mod histogram_builder;
pub(crate) mod output_lanes;
pub(crate) mod partition;
pub(crate) mod quantized_gradients;
pub(crate) mod reduce;
pub(crate) mod splitter;
