//! A sum of soft trees: the first may choose among components, and the others add to the channels of every component.
//!
//! The weights of the trees stand one after the other, and so do their activations: with linear leaves all trees go through one matrix
//! product.

use std::ops::Range;

use crate::soft::layout::Layout;

/// Shapes of the trees of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Stack {
    /// The tree that makes the components.
    pub(crate) first: Layout,
    /// Whether what it says is given with the rows; then it has no weights here.
    pub(crate) is_given: bool,
    /// Each of the others; it blends at all levels.
    pub(crate) added: Layout,
    pub(crate) n_added: usize,
}

impl Stack {
    /// One tree.
    pub(crate) fn single(first: Layout) -> Self {
        Self {
            first,
            is_given: false,
            added: first,
            n_added: 0,
        }
    }

    /// A tree to be added to components that are given.
    pub(crate) fn on_given(first: Layout, added: Layout) -> Self {
        Self {
            first,
            is_given: true,
            added,
            n_added: 1,
        }
    }

    /// The layouts of the trees that have weights, in their order.
    pub(crate) fn trees(&self) -> impl Iterator<Item = Layout> + '_ {
        let first = (!self.is_given).then_some(self.first);
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
        let first = if self.is_given {
            0
        } else {
            self.first.n_activations()
        };
        first + added * self.added.n_activations()
    }

    /// Numbers per row where the first tree is given: the log weight of each component, then its channels.
    pub(crate) fn n_given(&self) -> usize {
        if self.is_given {
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
