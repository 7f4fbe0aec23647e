//! A sum of soft trees: the first may choose among components, and the others add to the channels of every component.
//!
//! The weights of the trees stand one after the other, and so do their activations: with linear leaves all trees go through one matrix
//! product.

use std::ops::Range;

use crate::soft::layout::Layout;

/// Shapes of the trees of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct AdditiveLayout {
    /// The tree that makes the components.
    pub(crate) first: Layout,
    /// Whether what it says comes with the rows as an offset; then it has no weights here.
    #[serde(rename = "is_given")]
    pub(crate) has_offset: bool,
    /// Each of the others; it blends at all levels.
    pub(crate) added: Layout,
    pub(crate) n_added: usize,
}

impl AdditiveLayout {
    /// One tree.
    pub(crate) fn single(first: Layout) -> Self {
        Self {
            first,
            has_offset: false,
            added: first,
            n_added: 0,
        }
    }

    /// A tree to be added to an offset.
    pub(crate) fn on_offset(first: Layout, added: Layout) -> Self {
        Self {
            first,
            has_offset: true,
            added,
            n_added: 1,
        }
    }

    /// The layouts of the trees that have weights, in their order.
    pub(crate) fn trees(&self) -> impl Iterator<Item = Layout> + '_ {
        let first = (!self.has_offset).then_some(self.first);
        first
            .into_iter()
            .chain(std::iter::repeat_n(self.added, self.n_added))
    }

    /// The layout and the weights of each tree.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (Layout, Range<usize>)> + '_ {
        let mut start = 0;
        self.trees().map(move |layout| {
            let range = start..start + layout.n_weights();
            start = range.end;
            (layout, range)
        })
    }

    /// Inputs and the bias.
    pub(crate) fn width(&self) -> usize {
        self.first.width()
    }

    /// All weights.
    pub(crate) fn n_weights(&self) -> usize {
        self.trees().map(|layout| layout.n_weights()).sum()
    }

    /// Activations per row.
    pub(crate) fn n_activations(&self) -> usize {
        self.trees().map(|layout| layout.n_activations()).sum()
    }

    /// Where the activations of an added tree begin.
    pub(crate) fn first_activation(&self, added: usize) -> usize {
        let first = if self.has_offset {
            0
        } else {
            self.first.n_activations()
        };
        first + added * self.added.n_activations()
    }

    /// Numbers per row where the first tree is an offset: the log weight of each component, then its channels.
    pub(crate) fn n_offset(&self) -> usize {
        if self.has_offset {
            self.first.n_components() * (1 + self.first.n_channels)
        } else {
            0
        }
    }

    /// Whether every activation comes out of the matrix product.
    pub(crate) fn is_linear(&self) -> bool {
        self.trees().all(|layout| layout.is_linear)
    }
}
