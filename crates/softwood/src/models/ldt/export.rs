//! Export of the fitted tree: linear conditions in the units of the table, and the gains of columns.

use crate::explain::tree_export::TreeExport;
use crate::explain::tree_export::linear::{DescribedInputs, EncodedCondition};
use crate::explain::tree_export::nodes::FittedNodes;
use crate::models::ldt::fitted::LdtParts;
use crate::trees::column_gains::as_shares;

pub(super) fn tree_export(parts: &LdtParts) -> TreeExport {
    let nodes = FittedNodes {
        schema: &parts.schema,
        statistics: &parts.nodes(),
        units: parts.units,
        smoothing: &parts.leaves.smoothing,
    };
    let inputs = DescribedInputs {
        schema: &parts.schema,
        inputs: &parts.encoder.inputs(&parts.schema),
        sd: &parts.input_sd,
    };
    nodes.export(|node| {
        inputs.export(EncodedCondition {
            weights: parts.tree.weights(node),
            threshold: parts.tree.thresholds[node],
            steepness: None,
        })
    })
}

/// Gain of the splits on each column, as shares of the sum: a split shares its gain among the
/// columns as they share the spread of its projection.
pub(super) fn column_gains(parts: &LdtParts) -> Vec<f64> {
    let inputs = DescribedInputs {
        schema: &parts.schema,
        inputs: &parts.encoder.inputs(&parts.schema),
        sd: &parts.input_sd,
    };
    let nodes = parts.nodes();
    let losses = nodes.losses();
    let mut gains = vec![0.0; parts.schema.fields.len()];
    for (node, &[left, right]) in nodes.children.iter().enumerate() {
        let gain = (losses[node] - losses[left] - losses[right]).max(0.0);
        let shares = inputs.column_shares(parts.tree.weights(node));
        for (sum, share) in gains.iter_mut().zip(shares) {
            *sum += gain * share;
        }
    }
    as_shares(gains)
}
