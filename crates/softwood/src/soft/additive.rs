//! A sum of soft trees: the first tree may choose among components, and the others add to the
//! channels of every component.
//!
//! The weights of the trees are stored one after the other, and so are their activations: with
//! linear leaves one matrix product computes the activations of all trees.

use std::ops::Range;

use crate::soft::layout::{Layout, TreeLayout};

/// Shapes of the trees of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct AdditiveLayout<L = Layout> {
    /// The first tree; its mixing levels define the components.
    pub(crate) first: L,
    /// Whether the output of the first tree is an offset that comes with the rows; the first tree
    /// then has no weights here.
    #[serde(rename = "is_given")]
    pub(crate) has_offset: bool,
    /// Whether the added trees are multiplied by a factor that comes with the offset of each row:
    /// the probability that the row reaches the node that a new subtree replaces. Only in training.
    #[serde(skip)]
    pub(crate) has_reach: bool,
    /// Each added tree; all its levels blend.
    pub(crate) added: L,
    /// Number of added trees.
    pub(crate) n_added: usize,
}

impl<L: TreeLayout> AdditiveLayout<L> {
    /// One tree.
    pub(crate) fn single(first: L) -> Self
    where
        L: Clone,
    {
        Self {
            added: first.clone(),
            first,
            has_offset: false,
            has_reach: false,
            n_added: 0,
        }
    }

    /// One tree that is added to an offset.
    pub(crate) fn on_offset(first: L, added: L) -> Self {
        Self {
            first,
            has_offset: true,
            has_reach: false,
            added,
            n_added: 1,
        }
    }

    /// One subtree that replaces a node of a tree: the output is the offset, plus the reach of the
    /// node times the output of the subtree.
    pub(crate) fn at_node(first: L, subtree: L) -> Self {
        Self {
            has_reach: true,
            ..Self::on_offset(first, subtree)
        }
    }

    /// The layouts of the trees that have weights, in order.
    pub(crate) fn trees(&self) -> impl Iterator<Item = &L> {
        let first = (!self.has_offset).then_some(&self.first);
        first
            .into_iter()
            .chain(std::iter::repeat_n(&self.added, self.n_added))
    }

    /// The layout and the range of the weights of each tree.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (&L, Range<usize>)> {
        let mut start = 0;
        self.trees().map(move |layout| {
            let range = start..start + layout.n_weights();
            start = range.end;
            (layout, range)
        })
    }

    /// Number of inputs, with the bias.
    pub(crate) fn width(&self) -> usize {
        self.first.width()
    }

    /// Number of weights of all trees.
    pub(crate) fn n_weights(&self) -> usize {
        self.trees().map(L::n_weights).sum()
    }

    /// Number of activations per row.
    pub(crate) fn n_activations(&self) -> usize {
        self.trees().map(L::n_activations).sum()
    }

    /// Index of the first activation of an added tree.
    pub(crate) fn first_activation(&self, added: usize) -> usize {
        let first = if self.has_offset {
            0
        } else {
            self.first.n_activations()
        };
        first + added * self.added.n_activations()
    }

    /// Number of offset values per row: the log weights of all components, then their channels,
    /// then the reach of the added trees, if they have one.
    pub(crate) fn n_offset(&self) -> usize {
        if self.has_offset {
            self.first.n_components() * (1 + self.first.n_channels()) + usize::from(self.has_reach)
        } else {
            0
        }
    }

    /// Whether every activation is an output of the matrix product.
    pub(crate) fn is_linear(&self) -> bool {
        self.trees().all(L::is_linear)
    }
}
