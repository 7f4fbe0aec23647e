//! Export of a single tree as rules, text or SVG: conditions, leaf values and row counts in the
//! user's units.

pub(crate) mod binned;
mod format;
pub(crate) mod linear;
pub(crate) mod nodes;
mod structure;
mod svg;
mod svg_layout;
mod svg_text;
mod text;

use serde::Serialize;

pub use linear::{LinearFunction, LinearTerm, TermValue};
pub use structure::{NodeProbability, StructurePosterior};

/// A tree; node 0 is the root, and children come after their parents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TreeExport {
    /// Name of the target.
    pub target: String,
    /// Class names; `None` for regression.
    pub classes: Option<Vec<String>>,
    /// All nodes.
    pub nodes: Vec<ExportNode>,
}

impl TreeExport {
    /// A tree of nodes; node 0 is the root, and children come after their parents.
    pub fn new(target: String, classes: Option<Vec<String>>, nodes: Vec<ExportNode>) -> Self {
        Self {
            target,
            classes,
            nodes,
        }
    }

    /// The tree as indented rules, one line per node. Numbers are rounded, and long lists of
    /// categories are abbreviated; the fields hold the exact values.
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// The tree as an SVG picture with the root at the left.
    pub fn svg(&self) -> String {
        svg::write(self)
    }
}

/// A node: its value and its split.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExportNode {
    /// Weight of the training rows of the node.
    pub weight: f64,
    /// Value that the node would predict as a leaf.
    pub answer: LeafValue,
    /// The split of the node; `None` for a leaf.
    pub split: Option<ExportSplit>,
    /// The linear function that a leaf predicts; `None` for a leaf that predicts a constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<LinearFunction>,
}

impl ExportNode {
    /// A leaf that predicts a constant.
    pub fn new(weight: f64, answer: LeafValue) -> Self {
        Self {
            weight,
            answer,
            split: None,
            function: None,
        }
    }
}

/// The predicted value of a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LeafValue {
    /// Mean and standard deviation of the target (regression).
    Number {
        /// Mean of the target over the training rows of the node.
        mean: f64,
        /// Standard deviation of the target over the training rows of the node.
        sd: f64,
    },
    /// Class probabilities (classification).
    Classes(Vec<f64>),
    /// Standard deviation of the noise, for the tree of a noise.
    Noise {
        /// Standard deviation of the noise over the training rows of the node.
        sd: f64,
    },
}

/// The split of a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExportSplit {
    /// Column of the condition; the one with the largest share of a linear condition.
    pub column: String,
    /// Condition under which a row goes right.
    pub question: Condition,
    /// Whether a row with a missing cell goes right; for a linear condition, a row whose cells are
    /// all missing.
    pub missing_right: bool,
    /// Decrease of the loss by this split, as a share of the loss of the root; for the tree of a noise,
    /// increase of the mean log-likelihood of a training row.
    pub gain: f64,
    /// Indices of the left and the right child.
    pub children: [usize; 2],
}

impl ExportSplit {
    /// A split without gain that sends missing cells left.
    pub fn new(column: String, question: Condition, children: [usize; 2]) -> Self {
        Self {
            column,
            question,
            missing_right: false,
            gain: 0.0,
            children,
        }
    }
}

/// The condition of a split; rows that fulfil it go right.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Condition {
    /// The number is above this threshold.
    Above(f64),
    /// The category is one of these.
    Among(Vec<String>),
    /// The cell is missing.
    Missing,
    /// The sum of the terms is above the threshold.
    Linear {
        /// The terms, by decreasing share of the sum.
        terms: Vec<LinearTerm>,
        /// The threshold of the sum.
        threshold: f64,
        /// For a soft split the slope `s` of its gate: a row goes right with probability
        /// `sigmoid(s (sum - threshold))`. A hard split has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        steepness: Option<f64>,
    },
}
