//! Positions of the weights of a soft tree in its flat parameter vector.
//!
//! Gates come first, one row of `n_inputs + 1` weights each (bias last). The leaves follow, channel
//! by channel, one row each: `n_inputs + 1` weights for linear leaves, a single bias for constant
//! leaves.

use std::ops::Range;

/// Shape of a soft tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Layout {
    /// Number of inputs, without the bias.
    pub(crate) n_inputs: usize,
    /// Number of levels of gates.
    pub(crate) depth: usize,
    /// Number of top levels that choose a component; the levels below blend.
    pub(crate) mixing_levels: usize,
    /// Number of channels per leaf.
    pub(crate) n_channels: usize,
    /// Whether leaves are linear in the inputs.
    pub(crate) is_linear: bool,
}

impl Layout {
    /// Number of gates.
    pub(crate) fn n_gates(&self) -> usize {
        (1 << self.depth) - 1
    }

    /// Number of leaves.
    pub(crate) fn n_leaves(&self) -> usize {
        1 << self.depth
    }

    /// Number of components of the mixture.
    pub(crate) fn n_components(&self) -> usize {
        1 << self.mixing_levels
    }

    /// Number of inputs, with the bias.
    pub(crate) fn width(&self) -> usize {
        self.n_inputs + 1
    }

    /// Number of activations per row: gates, then leaves channel by channel.
    pub(crate) fn n_activations(&self) -> usize {
        self.n_gates() + self.n_channels * self.n_leaves()
    }

    /// Number of weights per leaf channel.
    pub(crate) fn leaf_width(&self) -> usize {
        if self.is_linear { self.width() } else { 1 }
    }

    /// Number of weights.
    pub(crate) fn n_weights(&self) -> usize {
        self.n_gates() * self.width() + self.n_channels * self.n_leaves() * self.leaf_width()
    }

    /// [`Layout::n_weights`] of a layout that was read from a file; `None` on overflow.
    pub(crate) fn checked_n_weights(&self) -> Option<usize> {
        let n_leaves = 1_usize.checked_shl(u32::try_from(self.depth).ok()?)?;
        let width = self.n_inputs.checked_add(1)?;
        let leaf_width = if self.is_linear { width } else { 1 };
        let leaves = self
            .n_channels
            .checked_mul(n_leaves)?
            .checked_mul(leaf_width)?;
        n_leaves
            .checked_sub(1)?
            .checked_mul(width)?
            .checked_add(leaves)
    }

    /// Number of activations that the matrix product computes; the others are constant leaves.
    pub(crate) fn n_products(&self) -> usize {
        if self.is_linear {
            self.n_activations()
        } else {
            self.n_gates()
        }
    }

    /// Range of the weights of a gate.
    pub(crate) fn gate(&self, gate: usize) -> Range<usize> {
        gate * self.width()..(gate + 1) * self.width()
    }

    /// Range of the weights of one channel of a leaf; the bias is the last.
    pub(crate) fn leaf(&self, channel: usize, leaf: usize) -> Range<usize> {
        let start = self.n_gates() * self.width();
        let row = channel * self.n_leaves() + leaf;
        start + row * self.leaf_width()..start + (row + 1) * self.leaf_width()
    }
}
