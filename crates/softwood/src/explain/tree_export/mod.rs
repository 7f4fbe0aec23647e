//! A single tree as a reader sees it: questions, answers and row counts in the user's units.

mod letters;
mod svg;
mod text;
mod words;

use serde::Serialize;

/// A tree; node 0 is the root and children stand after their parents.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreeExport {
    /// What is predicted.
    pub target: String,
    /// Class names; none for regression.
    pub classes: Option<Vec<String>>,
    /// All nodes.
    pub nodes: Vec<ExportNode>,
}

impl TreeExport {
    /// The tree as indented rules, a line a node. Numbers are rounded and long lists of categories
    /// counted; the fields hold everything.
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// The tree as the text of an SVG picture, the root at the left.
    pub fn svg(&self) -> String {
        svg::write(self)
    }
}

/// A node: what it would answer, and where it sends its rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExportNode {
    /// Weight of the training rows that came here.
    pub weight: f64,
    /// What it answers, were it a leaf.
    pub answer: LeafValue,
    /// How it parts its rows; none for a leaf.
    pub split: Option<ExportSplit>,
}

/// What a node answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LeafValue {
    /// A number and how far the training rows lie around it.
    Number {
        /// Mean of the target.
        mean: f64,
        /// Standard deviation of the target.
        sd: f64,
    },
    /// A probability per class.
    Classes(Vec<f64>),
}

/// How a node parts its rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExportSplit {
    /// The column that is asked.
    pub column: String,
    /// What sends a row right.
    pub question: Condition,
    /// Whether a row without the cell goes right.
    pub missing_right: bool,
    /// Part of the root's loss that this split takes away.
    pub gain: f64,
    /// Left and right child.
    pub children: [usize; 2],
}

/// What sends a row right.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// A number above this.
    Above(f64),
    /// A category among these.
    Among(Vec<String>),
    /// No cell at all.
    Missing,
}
