//! Incremental soft decision tree. `soft_tree.md` has the model in formulas; it is also the
//! documentation of [`SoftTreeParams`].

mod encoding_choice;
mod fitted;
mod growing_tree;
mod growth;
mod growth_rows;
mod hard_split;
mod idle_leaves;
mod online;
mod params;
mod point_training;
mod posterior;
mod published;
mod split_training;
mod streams;
mod train;
mod warm_start;

pub use fitted::SoftTree;
pub use params::{GrowthOrder, SoftTreeParams, Variant, WeightPosterior};
