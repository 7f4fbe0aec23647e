//! Channels blended from the leaves up to the mixing level: `F_n = (1 - g_n) F_left + g_n F_right`.

use crate::numerics::real::{LANES, Lanes, Real};
use crate::soft::layout::TreeLayout;

/// Fills `blended` (node-major: `node * n_channels + channel`) from the activations of the leaves
/// and the gates.
#[inline(always)]
pub(crate) fn blend_up<T: Real, L: TreeLayout>(
    layout: &L,
    activation: impl Fn(usize) -> Lanes<T>,
    gates: &[Lanes<T>],
    blended: &mut [Lanes<T>],
) {
    let (n_gates, n_leaves, n_channels) =
        (layout.n_gates(), layout.n_leaves(), layout.n_channels());
    for leaf in 0..n_leaves {
        for channel in 0..n_channels {
            let value = activation(n_gates + channel * n_leaves + leaf);
            blended[(n_gates + leaf) * n_channels + channel] = value;
        }
    }
    for node in (layout.n_mixing_gates()..n_gates).rev() {
        let g = gates[node];
        let [left_child, right_child] = layout.children(node);
        for channel in 0..n_channels {
            let left = blended[left_child * n_channels + channel];
            let right = blended[right_child * n_channels + channel];
            let mut out = left;
            for lane in 0..LANES {
                out[lane] = g[lane].fma(right[lane] - left[lane], left[lane]);
            }
            blended[node * n_channels + channel] = out;
        }
    }
}
