//! Export of a soft tree: gates and linear leaves in the units of the table.

use crate::data::encoding::Encoder;
use crate::data::schema::Schema;
use crate::data::target::TargetUnits;
use crate::explain::tree_export::TreeExport;
use crate::explain::tree_export::linear::{DescribedInputs, EncodedCondition};
use crate::explain::tree_export::nodes::FittedNodes;
use crate::soft::general_layout::GeneralLayout;
use crate::soft::layout::TreeLayout;
use crate::trees::leaf_posterior::Smoothing;
use crate::trees::training_set::cart_target;
use crate::variational::tree_summary::TreeSummary;

/// Smallest standard deviation of a leaf in the export.
const FLOOR: f64 = 1e-9;

/// A soft tree, with what is needed to describe it in the terms of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExportedTree<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) encoder: &'a Encoder,
    pub(crate) units: TargetUnits,
    pub(crate) layout: &'a GeneralLayout,
    pub(crate) weights: &'a [f32],
    /// Inverse temperature of the gates.
    pub(crate) beta: f64,
    pub(crate) summary: &'a TreeSummary,
}

impl ExportedTree<'_> {
    pub(crate) fn export(&self) -> TreeExport {
        let Self {
            schema,
            layout,
            weights,
            summary,
            ..
        } = *self;
        let kind = cart_target(schema);
        let statistics = summary.nodes(kind, layout);
        let nodes = FittedNodes {
            schema,
            statistics: &statistics,
            units: self.units,
            smoothing: &Smoothing::plain(kind, statistics.stats(0), FLOOR),
        };
        let inputs = self.encoder.inputs(schema);
        let inputs = DescribedInputs {
            schema,
            inputs: &inputs,
            sd: &summary.input_sd,
        };
        let n_inputs = layout.n_inputs();
        let mut export = nodes.export(|gate| {
            let gate = &weights[layout.gate(gate)];
            inputs.export(EncodedCondition {
                weights: &gate[..n_inputs],
                threshold: -f64::from(gate[n_inputs]),
                steepness: Some(self.beta),
            })
        });
        if layout.is_linear() && schema.classes().is_none() {
            let leaves = export.nodes.iter_mut().filter(|node| node.split.is_none());
            for (leaf, node) in leaves_in_order(layout).into_iter().zip(leaves) {
                let leaf = &weights[layout.leaf(0, leaf)];
                let function = inputs.function(&leaf[..n_inputs], leaf[n_inputs], self.units);
                node.function = Some(function);
            }
        }
        export
    }
}

/// The leaves of a tree from left to right.
fn leaves_in_order(layout: &GeneralLayout) -> Vec<usize> {
    let n_gates = layout.n_gates();
    let mut leaves = Vec::with_capacity(layout.n_leaves());
    let mut stack = vec![0];
    while let Some(node) = stack.pop() {
        if node < n_gates {
            stack.extend(layout.children(node).iter().rev());
        } else {
            leaves.push(node - n_gates);
        }
    }
    leaves
}
