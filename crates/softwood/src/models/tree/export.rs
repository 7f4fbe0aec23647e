//! Export of the fitted tree: thresholds and means in the units of the table, categories by name.

use crate::data::binning::binned::{Cut, MISSING_BIN};
use crate::data::schema::FieldKind;
use crate::data::target::TargetUnits;
use crate::explain::tree_export::{Condition, ExportNode, ExportSplit, LeafValue, TreeExport};
use crate::trees::cart::CartTarget;
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::leaf_posterior::Smoothing;
use crate::trees::structure::TreeStructure;
use crate::trees::training_set::TreeInputs;

/// Exports a tree. Nodes are renumbered in preorder: a node, its left branch, its right branch.
pub(super) fn tree_export(
    inputs: &TreeInputs,
    structure: &TreeStructure,
    tree: &NodeStatistics,
    smoothing: &Smoothing,
) -> TreeExport {
    let schema = &inputs.schema;
    let losses = tree.losses();
    let order = preorder(&tree.children);
    let mut position = vec![0; tree.n_nodes()];
    for (at, &node) in order.iter().enumerate() {
        position[node] = at;
    }
    let nodes = order.iter().map(|&node| {
        let stats = tree.stats(node);
        let split = tree.children.get(node).map(|pair| {
            let condition = &structure.conditions()[node];
            let field = &schema.fields[condition.column];
            let cut = &inputs.cuts.columns[condition.column];
            ExportSplit {
                column: field.name.clone(),
                question: export_condition(condition, cut, &field.kind),
                missing_right: condition.goes_right(MISSING_BIN),
                gain: (losses[node] - losses[pair[0]] - losses[pair[1]]).max(0.0),
                children: pair.map(|child| position[child]),
            }
        });
        ExportNode {
            weight: tree.kind.weight(stats),
            answer: leaf_value(tree.kind, stats, &inputs.units, smoothing),
            split,
        }
    });
    TreeExport {
        target: schema.target.clone(),
        classes: schema.classes().map(<[String]>::to_vec),
        nodes: nodes.collect(),
    }
}

fn preorder(children: &[[usize; 2]]) -> Vec<usize> {
    let mut order = Vec::with_capacity(2 * children.len() + 1);
    let mut stack = vec![0];
    while let Some(node) = stack.pop() {
        order.push(node);
        if let Some(&[left, right]) = children.get(node) {
            stack.extend([right, left]);
        }
    }
    order
}

fn leaf_value(
    kind: CartTarget,
    stats: &[f64],
    units: &TargetUnits,
    smoothing: &Smoothing,
) -> LeafValue {
    match kind {
        CartTarget::Number => LeafValue::Number {
            mean: units.shift + units.scale * stats[1],
            sd: units.scale * (stats[2] / stats[0]).sqrt(),
        },
        CartTarget::Classes(n) => LeafValue::Classes(
            (0..n)
                .map(|class| smoothing.probability(stats, class))
                .collect(),
        ),
    }
}

fn export_condition(condition: &BinCondition, cut: &Cut, kind: &FieldKind) -> Condition {
    match (condition.right_bins, cut, kind) {
        (RightBins::Above { bin, .. }, Cut::Number { edges, .. }, _) => {
            // a threshold above the last edge separates missing cells from all others
            let edge = edges.get(bin as usize - 1).copied();
            edge.map_or(Condition::Missing, Condition::Above)
        }
        (_, Cut::Category { bins }, FieldKind::Categorical { levels }) => {
            let goes_right =
                |&(_, &bin): &(&String, &u8)| bin != MISSING_BIN && condition.goes_right(bin);
            let names = levels.iter().zip(bins).filter(goes_right);
            Condition::Among(names.map(|(level, _)| level.clone()).collect())
        }
        // no model that this library writes has a set condition on a numeric column
        _ => Condition::Among(Vec::new()),
    }
}
