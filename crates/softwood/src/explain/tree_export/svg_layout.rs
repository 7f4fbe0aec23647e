//! Layout of the SVG picture of a tree: the depth and the height of every node.

use crate::explain::tree_export::TreeExport;

/// Position of a node in the picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodePosition {
    pub(super) depth: usize,
    /// Vertical centre of the box, in leaves from the top.
    pub(super) height: f64,
}

/// Positions of all nodes: leaves from top to bottom, left children first; a parent is at the mean
/// height of its children. `None` for nodes that are not reachable.
pub(super) fn positions(export: &TreeExport) -> Vec<Option<NodePosition>> {
    let mut positions = vec![None; export.nodes.len()];
    let mut next_height = 0.0;
    let mut open = if export.nodes.is_empty() {
        vec![]
    } else {
        vec![(0, 0)]
    };
    while let Some((node, depth)) = open.pop() {
        let children = [true, false].map(|right| child_of(export, node, right));
        let mut height = f64::NAN;
        if children == [None, None] {
            height = next_height;
            next_height += 1.0;
        }
        positions[node] = Some(NodePosition { depth, height });
        let children = children.into_iter().flatten();
        open.extend(children.map(|child| (child, depth + 1)));
    }
    for node in (0..export.nodes.len()).rev() {
        let children = [false, true].map(|right| child_of(export, node, right));
        let heights: Vec<f64> = children
            .into_iter()
            .flatten()
            .filter_map(|child| positions[child].map(|position| position.height))
            .collect();
        if let (Some(position), false) = (&mut positions[node], heights.is_empty()) {
            position.height = heights.iter().sum::<f64>() / heights.len() as f64;
        }
    }
    positions
}

/// A child of a node, if its index is valid and above that of its parent.
pub(super) fn child_of(export: &TreeExport, node: usize, right: bool) -> Option<usize> {
    let split = export.nodes.get(node)?.split.as_ref()?;
    let child = split.children[usize::from(right)];
    (child > node && child < export.nodes.len()).then_some(child)
}
