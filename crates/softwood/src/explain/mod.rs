//! Explanations of fitted models: permutation importance and the export of a single tree.

pub(crate) mod permutation_importance;
pub(crate) mod tree_export;

pub use permutation_importance::{
    ColumnImportance, Estimate, Importances, PermutationOptions, importances,
};
pub use tree_export::{
    Condition, ExportNode, ExportSplit, LeafValue, LinearFunction, LinearTerm, NodeProbability,
    StructurePosterior, TermValue, TreeExport,
};
