//! Linear discriminant tree. `ldt.md` describes the model; the parameter type includes it.

mod class_groups;
mod export;
mod fitted;
mod grow;
mod node_scatter;
mod oblique_tree;
mod params;
mod pruning;
mod rows;
mod selection;
mod threshold;
mod train;

pub use fitted::Ldt;
pub use params::LdtParams;

/// Random streams of a fit: children of the key of the run.
mod streams {
    /// Split into training and validation rows.
    pub(super) const VALIDATION: u64 = 0;
    /// Posterior draws of the leaves.
    pub(super) const MEMBERS: u64 = 1;
    /// Substitutes for unseen categories.
    pub(super) const UNSEEN: u64 = 2;
}
