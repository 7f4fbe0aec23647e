//! Where each weight of a soft tree stands in its flat parameter vector.
//!
//! Gates come first, one row of `n_inputs + 1` weights each (bias last); then the leaves, channel by channel, one row
//! each: as long as a gate's where leaves are linear, a single bias where they are constant.

use std::ops::Range;

/// Shape of a soft tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Layout {
    /// Inputs, the bias apart.
    pub(crate) n_inputs: usize,
    /// Levels of gates.
    pub(crate) depth: usize,
    /// Levels that choose a component; the rest blend.
    pub(crate) mixing_levels: usize,
    /// Channels per leaf.
    pub(crate) n_channels: usize,
    /// Whether leaves are linear in the inputs.
    pub(crate) is_linear: bool,
}

impl Layout {
    /// Gates.
    pub(crate) fn n_gates(&self) -> usize {
        (1 << self.depth) - 1
    }

    /// Leaves.
    pub(crate) fn n_leaves(&self) -> usize {
        1 << self.depth
    }

    /// Components of the mixture.
    pub(crate) fn n_components(&self) -> usize {
        1 << self.mixing_levels
    }

    /// Inputs and the bias.
    pub(crate) fn width(&self) -> usize {
        self.n_inputs + 1
    }

    /// Activations per row: gates, then leaves channel by channel.
    pub(crate) fn n_activations(&self) -> usize {
        self.n_gates() + self.n_channels * self.n_leaves()
    }

    /// Weights per leaf channel.
    pub(crate) fn leaf_width(&self) -> usize {
        if self.is_linear { self.width() } else { 1 }
    }

    /// All weights.
    pub(crate) fn n_weights(&self) -> usize {
        self.n_gates() * self.width() + self.n_channels * self.n_leaves() * self.leaf_width()
    }

    /// [`Layout::n_weights`] of a shape read from a file; `None` where it overflows.
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

    /// Activations that come out of the matrix product; the others are constants.
    pub(crate) fn n_products(&self) -> usize {
        if self.is_linear {
            self.n_activations()
        } else {
            self.n_gates()
        }
    }

    /// Weights of a gate.
    pub(crate) fn gate(&self, gate: usize) -> Range<usize> {
        gate * self.width()..(gate + 1) * self.width()
    }

    /// Weights of one channel of a leaf; the bias is the last.
    pub(crate) fn leaf(&self, channel: usize, leaf: usize) -> Range<usize> {
        let start = self.n_gates() * self.width();
        let row = channel * self.n_leaves() + leaf;
        start + row * self.leaf_width()..start + (row + 1) * self.leaf_width()
    }
}
