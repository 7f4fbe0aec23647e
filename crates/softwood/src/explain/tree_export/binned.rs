//! Export of a tree with conditions on bins: thresholds in the units of the table, categories by
//! name.

use crate::data::binning::binned::{Cut, Cuts, MISSING_BIN};
use crate::data::schema::FieldKind;
use crate::explain::tree_export::nodes::{FittedNodes, NodeCondition};
use crate::explain::tree_export::{Condition, TreeExport};
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::leaf_posterior::SmoothedLeaves;
use crate::trees::structure::TreeStructure;
use crate::trees::training_set::TreeInputs;

/// Conditions of a tree on bins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BinnedConditions<'a> {
    pub(crate) structure: &'a TreeStructure,
    pub(crate) cuts: &'a Cuts,
}

/// Exports a tree with these leaves and statistics of its nodes.
pub(crate) fn export_binned(
    inputs: &TreeInputs,
    structure: &TreeStructure,
    leaves: &SmoothedLeaves,
    statistics: &NodeStatistics,
) -> TreeExport {
    let nodes = FittedNodes {
        schema: &inputs.schema,
        statistics,
        units: inputs.units,
        smoothing: &leaves.smoothing,
    };
    let conditions = BinnedConditions {
        structure,
        cuts: &inputs.cuts,
    };
    export_binned_nodes(&nodes, conditions)
}

/// Exports a tree with these nodes.
pub(crate) fn export_binned_nodes(
    nodes: &FittedNodes<'_>,
    conditions: BinnedConditions<'_>,
) -> TreeExport {
    nodes.export(|node| {
        let condition = &conditions.structure.conditions()[node];
        let field = &nodes.schema.fields[condition.column];
        let cut = &conditions.cuts.columns[condition.column];
        NodeCondition {
            column: field.name.clone(),
            condition: export_condition(condition, cut, &field.kind),
            missing_right: condition.goes_right(MISSING_BIN),
        }
    })
}

fn export_condition(condition: &BinCondition, cut: &Cut, kind: &FieldKind) -> Condition {
    match (condition.right_bins, cut, kind) {
        (RightBins::Above { bin, .. }, Cut::Number { edges, .. }, _) => {
            // a threshold above the last edge separates missing cells from all others
            let edge = edges.get(bin as usize - 1).copied();
            edge.map_or(Condition::Missing, Condition::Above)
        }
        (_, Cut::Category { bins, .. }, FieldKind::Categorical { levels }) => {
            let goes_right =
                |&(_, &bin): &(&String, &u8)| bin != MISSING_BIN && condition.goes_right(bin);
            let names = levels.iter().zip(bins).filter(goes_right);
            Condition::Among(names.map(|(level, _)| level.clone()).collect())
        }
        // no model that this library writes has a set condition on a numeric column
        _ => Condition::Among(Vec::new()),
    }
}
