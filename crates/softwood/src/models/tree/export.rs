//! The fitted tree as a reader sees it: thresholds and means in the user's units, categories by name.

use crate::data::binning::binned::{Cut, Cuts, MISSING_BIN};
use crate::data::schema::{FieldKind, Schema};
use crate::data::target::TargetUnits;
use crate::explain::tree_export::{Condition, ExportNode, ExportSplit, LeafValue, TreeExport};
use crate::models::tree::leaf::Smoothing;
use crate::trees::cart::CartTarget;
use crate::trees::cart::pruning::NodeStatistics;
use crate::trees::condition::{BinCondition, RightBins};
use crate::trees::structure::TreeStructure;

/// Nodes are renumbered so that a branch stands together: a node, its left branch, its right branch.
pub(super) fn tree_export(
    schema: &Schema,
    standard: &TargetUnits,
    (cuts, structure): (&Cuts, &TreeStructure),
    tree: &NodeStatistics,
    smoothing: &Smoothing,
) -> TreeExport {
    let losses = tree.losses();
    let order = preorder(&tree.children);
    let mut place = vec![0; tree.n_nodes()];
    for (at, &node) in order.iter().enumerate() {
        place[node] = at;
    }
    let nodes = order.iter().map(|&node| {
        let stats = tree.stats(node);
        let split = tree.children.get(node).map(|pair| {
            let condition = &structure.conditions()[node];
            ExportSplit {
                column: schema.fields[condition.column].name.clone(),
                question: question(
                    condition,
                    &cuts.columns[condition.column],
                    &schema.fields[condition.column].kind,
                ),
                missing_right: condition.goes_right(MISSING_BIN),
                gain: (losses[node] - losses[pair[0]] - losses[pair[1]]).max(0.0),
                children: pair.map(|child| place[child]),
            }
        });
        ExportNode {
            weight: tree.kind.weight(stats),
            answer: answer(tree.kind, stats, standard, smoothing),
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
    let mut waiting = vec![0];
    while let Some(node) = waiting.pop() {
        order.push(node);
        if let Some(&[left, right]) = children.get(node) {
            waiting.extend([right, left]);
        }
    }
    order
}

fn answer(
    kind: CartTarget,
    stats: &[f64],
    standard: &TargetUnits,
    smoothing: &Smoothing,
) -> LeafValue {
    match kind {
        CartTarget::Number => LeafValue::Number {
            mean: standard.shift + standard.scale * stats[1],
            sd: standard.scale * (stats[2] / stats[0]).sqrt(),
        },
        CartTarget::Classes(n) => LeafValue::Classes(
            (0..n)
                .map(|class| smoothing.probability(stats, class))
                .collect(),
        ),
    }
}

fn question(condition: &BinCondition, cut: &Cut, kind: &FieldKind) -> Condition {
    match (condition.right_bins, cut, kind) {
        (RightBins::Above { bin, .. }, Cut::Number { edges, .. }, _) => {
            // a condition beyond the last edge parts missing cells from all others
            let edge = edges.get(bin as usize - 1).copied();
            edge.map_or(Condition::Missing, Condition::Above)
        }
        (_, Cut::Category { bins }, FieldKind::Categorical { levels }) => {
            let goes_right =
                |&(_, &bin): &(&String, &u8)| bin != MISSING_BIN && condition.goes_right(bin);
            let names = levels.iter().zip(bins).filter(goes_right);
            Condition::Among(names.map(|(level, _)| level.clone()).collect())
        }
        // a set on a column of numbers is in no model that we write
        _ => Condition::Among(Vec::new()),
    }
}
