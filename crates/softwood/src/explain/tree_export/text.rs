//! A tree as indented rules.

use std::fmt::Write as _;

use crate::explain::tree_export::TreeExport;
use crate::explain::tree_export::words::{or_missing, rows, side};

/// Letters of a list of categories, beyond which the rest is counted.
const LIST: usize = 60;
/// Classes that are named with their probabilities.
const CLASSES: usize = 3;

pub(super) fn write(export: &TreeExport) -> String {
    let mut out = String::new();
    // what stands before a node's line, before its children's, the node, and how it is reached
    let mut open = vec![(String::new(), String::new(), 0, export.target.clone())];
    while let Some((lead, below, at, rule)) = open.pop() {
        let Some(node) = export.nodes.get(at) else {
            continue;
        };
        let answer = export.answer(&node.answer, CLASSES);
        let _ = writeln!(out, "{lead}{rule}: {answer}, {}", rows(node.weight));
        let Some(split) = &node.split else { continue };
        for right in [true, false] {
            let child = split.children[usize::from(right)];
            // children stand after their parents; anything else would go round in circles
            if child <= at {
                continue;
            }
            let missing = or_missing(split, right);
            let fits = |text: &str| text.chars().count() <= LIST;
            let rule = format!("{}{}{missing}", split.column, side(split, right, fits));
            let (branch, stem) = if right {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            open.push((
                format!("{below}{branch}"),
                format!("{below}{stem}"),
                child,
                rule,
            ));
        }
    }
    out
}
