//! A tree as indented rules.

use std::fmt::Write as _;

use crate::explain::tree_export::TreeExport;
use crate::explain::tree_export::format::{function, or_missing, rows, side, subject};

/// Largest length of a list of categories; the others are counted.
const MAX_LIST_CHARACTERS: usize = 60;
/// Number of classes that are shown with their probabilities.
const N_CLASSES: usize = 3;

pub(super) fn write(export: &TreeExport) -> String {
    let mut out = String::new();
    // prefix of the node's line, prefix of its children's lines, index of the node, and the rule
    // that leads to it
    let mut open = vec![(String::new(), String::new(), 0, export.target.clone())];
    while let Some((lead, below, at, rule)) = open.pop() {
        let Some(node) = export.nodes.get(at) else {
            continue;
        };
        let answer = export.value_text(&node.answer, N_CLASSES);
        let function = node.function.as_ref().map_or_else(String::new, function);
        let _ = writeln!(
            out,
            "{lead}{rule}: {answer}, {}{function}",
            rows(node.weight)
        );
        let Some(split) = &node.split else { continue };
        for right in [true, false] {
            let child = split.children[usize::from(right)];
            // children come after their parents; otherwise the loop would not end
            if child <= at {
                continue;
            }
            let missing = or_missing(split, right);
            let fits = |text: &str| text.chars().count() <= MAX_LIST_CHARACTERS;
            let rule = format!("{}{}{missing}", subject(split), side(split, right, fits));
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
