//! Positions of the weights of a soft tree in its flat parameter vector.
//!
//! Gates come first, one row of `n_inputs + 1` weights each (bias last). The leaves follow, channel
//! by channel, one row each: `n_inputs + 1` weights for linear leaves, a single bias for constant
//! leaves.
//!
//! Nodes are numbered gates first, parents before their children, then the leaves from left to
//! right or in any other order: node `n_gates + leaf` is a leaf. The gates that choose a component
//! of a mixture come before the gates that blend.

use std::fmt::Debug;
use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Shape of a soft tree and of its leaves, as the kernels see it.
pub(crate) trait TreeLayout {
    /// Number of inputs, without the bias.
    fn n_inputs(&self) -> usize;

    /// Number of channels per leaf.
    fn n_channels(&self) -> usize;

    /// Whether leaves are linear in the inputs.
    fn is_linear(&self) -> bool;

    /// Number of gates.
    fn n_gates(&self) -> usize;

    /// Number of gates that choose a component of the mixture; they are the first gates, and the
    /// parent of such a gate is one too.
    fn n_mixing_gates(&self) -> usize;

    /// Left and right child of a gate.
    fn children(&self, gate: usize) -> [usize; 2];

    /// Topmost node of a component: a child of a gate that mixes, or the root.
    fn component_root(&self, component: usize) -> usize;

    /// Component of a node that is not a gate that mixes.
    fn component_of(&self, node: usize) -> usize;

    /// Whether a node is the topmost one of its component; the node is not a gate that mixes.
    #[inline]
    fn is_component_root(&self, node: usize) -> bool {
        self.component_root(self.component_of(node)) == node
    }

    /// Number of leaves.
    #[inline]
    fn n_leaves(&self) -> usize {
        self.n_gates() + 1
    }

    /// Number of gates and leaves.
    #[inline]
    fn n_nodes(&self) -> usize {
        self.n_gates() + self.n_leaves()
    }

    /// Number of components of the mixture.
    #[inline]
    fn n_components(&self) -> usize {
        self.n_mixing_gates() + 1
    }

    /// Number of inputs, with the bias.
    #[inline]
    fn width(&self) -> usize {
        self.n_inputs() + 1
    }

    /// Number of activations per row: gates, then leaves channel by channel.
    #[inline]
    fn n_activations(&self) -> usize {
        self.n_gates() + self.n_channels() * self.n_leaves()
    }

    /// Number of weights per leaf channel.
    #[inline]
    fn leaf_width(&self) -> usize {
        if self.is_linear() { self.width() } else { 1 }
    }

    /// Number of weights.
    fn n_weights(&self) -> usize {
        self.n_gates() * self.width() + self.n_channels() * self.n_leaves() * self.leaf_width()
    }

    /// Number of activations that the matrix product computes; the others are constant leaves.
    fn n_products(&self) -> usize {
        if self.is_linear() {
            self.n_activations()
        } else {
            self.n_gates()
        }
    }

    /// Range of the weights of a gate.
    fn gate(&self, gate: usize) -> Range<usize> {
        gate * self.width()..(gate + 1) * self.width()
    }

    /// Range of the weights of one channel of a leaf; the bias is the last.
    fn leaf(&self, channel: usize, leaf: usize) -> Range<usize> {
        let start = self.n_gates() * self.width();
        let row = channel * self.n_leaves() + leaf;
        start + row * self.leaf_width()..start + (row + 1) * self.leaf_width()
    }
}

/// A layout that a model file can hold.
pub(crate) trait StoredLayout:
    TreeLayout + Clone + Debug + Send + Sync + Serialize + DeserializeOwned
{
    /// Whether a layout that was read from a file can be evaluated; its sizes may still be too
    /// large.
    fn is_storable(&self) -> bool;

    /// [`TreeLayout::n_weights`] of a layout that was read from a file; `None` on overflow.
    fn checked_n_weights(&self) -> Option<usize>;
}

/// Maximum depth of a complete tree in a model file.
const MAX_STORED_DEPTH: usize = 16;

/// Shape of a complete soft tree, whose nodes are in heap order: the children of gate `n` are
/// `2n + 1` and `2n + 2`.
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

impl TreeLayout for Layout {
    #[inline]
    fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    #[inline]
    fn n_channels(&self) -> usize {
        self.n_channels
    }

    #[inline]
    fn is_linear(&self) -> bool {
        self.is_linear
    }

    #[inline]
    fn n_gates(&self) -> usize {
        (1 << self.depth) - 1
    }

    #[inline]
    fn n_mixing_gates(&self) -> usize {
        (1 << self.mixing_levels) - 1
    }

    #[inline]
    fn children(&self, gate: usize) -> [usize; 2] {
        [2 * gate + 1, 2 * gate + 2]
    }

    #[inline]
    fn component_root(&self, component: usize) -> usize {
        self.n_mixing_gates() + component
    }

    #[inline]
    fn component_of(&self, node: usize) -> usize {
        let level = (node + 1).ilog2() as usize;
        (node + 1 - (1 << level)) >> (level - self.mixing_levels)
    }

    #[inline]
    fn is_component_root(&self, node: usize) -> bool {
        node < 2 * self.n_mixing_gates() + 1
    }
}

impl StoredLayout for Layout {
    fn is_storable(&self) -> bool {
        self.depth <= MAX_STORED_DEPTH && self.mixing_levels <= self.depth
    }

    fn checked_n_weights(&self) -> Option<usize> {
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
}
