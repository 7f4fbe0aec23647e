//! Prediction: the components of a sum of soft trees for a block of rows, without gradients.
//!
//! Trees are evaluated one by one. The outputs of the added trees (the blended channels at their
//! roots) are summed first; the sum is then added to every component of the first tree.

use multiversion::multiversion;

use crate::likelihood::categorical::exponentials;
use crate::likelihood::soft::SoftLikelihood;
use crate::numerics::real::{LANES, Lanes, Real, both, lanes_at, sigmoid};
use crate::soft::blend::blend_up;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::TreeLayout;

/// Floor of a component's weight before its logarithm is taken.
const MIN_REACH: f32 = 1e-30;

/// Scratch memory of one tree for one chunk of rows.
#[derive(Debug, Clone)]
pub(crate) struct ForwardScratch {
    gates: Vec<Lanes<f32>>,
    reach: Vec<Lanes<f32>>,
    blended: Vec<Lanes<f32>>,
    /// Exponentials of the logits of a component.
    classes: Vec<Lanes<f32>>,
}

impl ForwardScratch {
    pub(crate) fn new<L: TreeLayout>(layout: &L) -> Self {
        let n_nodes = layout.n_nodes();
        let zeros = |len: usize| vec![Lanes::of(0.0); len];
        Self {
            gates: zeros(layout.n_gates()),
            reach: zeros(n_nodes),
            blended: zeros(n_nodes * layout.n_channels()),
            classes: zeros(layout.n_channels()),
        }
    }
}

/// Output of one member: components (or classes) x stride, rows contiguous. `mean` and `sd` are
/// empty for classification.
#[derive(Debug)]
pub(crate) struct Components<'a> {
    pub(crate) weight: &'a mut [f64],
    pub(crate) mean: &'a mut [f64],
    pub(crate) sd: &'a mut [f64],
    pub(crate) stride: usize,
}

impl Components<'_> {
    /// Sets the weights of the components from `first` on to zero: this tree has fewer components
    /// than the block has room for.
    pub(crate) fn clear_from(&mut self, first: usize) {
        let start = first * self.stride;
        self.weight[start..].fill(0.0);
        for (values, neutral) in [(&mut *self.mean, 0.0), (&mut *self.sd, 1.0)] {
            if let Some(unused) = values.get_mut(start..) {
                unused.fill(neutral);
            }
        }
    }
}

/// The activations of one tree on a block: `n_activations x n_rows`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Activations<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) n_rows: usize,
}

/// Adds the output of an added tree to `sums` (channels x rows).
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
pub(crate) fn add_root<L: TreeLayout>(
    layout: &L,
    beta: f64,
    activations: Activations<'_>,
    scratch: &mut ForwardScratch,
    sums: &mut [f32],
) {
    let n_rows = activations.n_rows;
    for start in (0..n_rows).step_by(LANES) {
        descend(layout, beta, activations, start, scratch);
        for (channel, root) in scratch.blended[..layout.n_channels()].iter().enumerate() {
            let sums = &mut sums[channel * n_rows + start..][..LANES];
            for lane in 0..LANES {
                sums[lane] += root[lane];
            }
        }
    }
}

/// Components of every row from the activations of the first tree and `root_sum`, the sum of the
/// outputs of the added trees (channels x rows; empty if there are none).
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
pub(crate) fn components<L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    activations: Activations<'_>,
    root_sum: &[f32],
    scratch: &mut ForwardScratch,
    out: &mut Components<'_>,
) {
    for start in (0..activations.n_rows).step_by(LANES) {
        descend(&spec.stack.first, spec.beta, activations, start, scratch);
        add_root_sum(spec, activations.n_rows, start, root_sum, scratch);
        match spec.likelihood {
            SoftLikelihood::Categorical => write_classes(spec, start, scratch, out),
            SoftLikelihood::Normal { .. } | SoftLikelihood::KnownNoise { .. } => {
                write_normals(spec, start, scratch, out);
            }
        }
    }
}

/// Offset for the next added tree: the log weights of all components, then their channels (rows
/// contiguous).
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
pub(crate) fn offset<L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    activations: Activations<'_>,
    root_sum: &[f32],
    scratch: &mut ForwardScratch,
    out: &mut [f32],
) {
    let layout = &spec.stack.first;
    let (n_components, n_channels) = (layout.n_components(), layout.n_channels());
    let n_rows = activations.n_rows;
    for start in (0..n_rows).step_by(LANES) {
        descend(layout, spec.beta, activations, start, scratch);
        add_root_sum(spec, n_rows, start, root_sum, scratch);
        for component in 0..n_components {
            let node = layout.component_root(component);
            let reach = scratch.reach[node];
            let log_reach = &mut out[component * n_rows + start..][..LANES];
            for lane in 0..LANES {
                log_reach[lane] = Real::ln(reach[lane].largest(MIN_REACH));
            }
            for channel in 0..n_channels {
                let at = n_components + component * n_channels + channel;
                out[at * n_rows + start..][..LANES]
                    .copy_from_slice(&scratch.blended[node * n_channels + channel][..]);
            }
        }
    }
}

/// Adds the sum of the outputs of the added trees to the channels of every component.
#[inline(always)]
fn add_root_sum<L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    n_rows: usize,
    start: usize,
    root_sum: &[f32],
    scratch: &mut ForwardScratch,
) {
    if root_sum.is_empty() {
        return;
    }
    let layout = &spec.stack.first;
    let n_channels = layout.n_channels();
    for component in 0..layout.n_components() {
        let node = layout.component_root(component);
        for channel in 0..n_channels {
            let sum = lanes_at(root_sum, channel * n_rows + start);
            let value = &mut scratch.blended[node * n_channels + channel];
            for lane in 0..LANES {
                value[lane] += sum[lane];
            }
        }
    }
}

/// Gates, path probabilities above the mixing level, and channels blended up to it.
#[inline(always)]
fn descend<L: TreeLayout>(
    layout: &L,
    beta: f64,
    activations: Activations<'_>,
    start: usize,
    scratch: &mut ForwardScratch,
) {
    let Activations { values, n_rows } = activations;
    let beta = beta as f32;
    let n_mixing = layout.n_mixing_gates();
    scratch.reach[0] = Lanes::of(1.0);
    for node in 0..layout.n_gates() {
        let a = lanes_at(values, node * n_rows + start);
        let mut g = Lanes::of(0.0);
        for lane in 0..LANES {
            g[lane] = sigmoid(beta * a[lane]);
        }
        scratch.gates[node] = g;
        if node >= n_mixing {
            continue;
        }
        let up = scratch.reach[node];
        let (mut left, mut right) = (up, up);
        for lane in 0..LANES {
            right[lane] = up[lane] * g[lane];
            left[lane] = up[lane] - right[lane];
        }
        let [left_child, right_child] = layout.children(node);
        scratch.reach[left_child] = left;
        scratch.reach[right_child] = right;
    }
    let leaves = |activation| lanes_at(values, activation * n_rows + start);
    blend_up(layout, leaves, &scratch.gates, &mut scratch.blended);
}

#[inline(always)]
fn write_normals<L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    start: usize,
    scratch: &ForwardScratch,
    out: &mut Components<'_>,
) {
    let layout = &spec.stack.first;
    let (n_components, n_channels) = (layout.n_components(), layout.n_channels());
    for component in 0..n_components {
        let node = layout.component_root(component);
        let at = component * out.stride + start;
        // with known noise there may be no scale channel; `raw` is then the mean and is not used
        let channels = &scratch.blended[node * n_channels..(node + 1) * n_channels];
        let (mean, raw) = (channels[0], channels[n_channels - 1]);
        let mut sd = raw;
        for lane in 0..LANES {
            sd[lane] = spec.likelihood.sd(raw[lane]);
        }
        out.weight[at..at + LANES].copy_from_slice(&widen(scratch.reach[node]));
        out.mean[at..at + LANES].copy_from_slice(&widen(mean));
        out.sd[at..at + LANES].copy_from_slice(&widen(sd));
    }
}

#[inline(always)]
fn widen(values: Lanes<f32>) -> [f64; LANES] {
    let mut out = [0.0; LANES];
    for lane in 0..LANES {
        out[lane] = f64::from(values[lane]);
    }
    out
}

/// Class probabilities: the reach-weighted softmax of each component.
#[inline(always)]
fn write_classes<L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    start: usize,
    scratch: &mut ForwardScratch,
    out: &mut Components<'_>,
) {
    let layout = &spec.stack.first;
    let (n_components, n_classes) = (layout.n_components(), layout.n_channels());
    for class in 0..n_classes {
        out.weight[class * out.stride + start..][..LANES].fill(0.0);
    }
    for component in 0..n_components {
        let node = layout.component_root(component);
        let logits = &scratch.blended[node * n_classes..(node + 1) * n_classes];
        let (_, sum) = exponentials(logits, &mut scratch.classes);
        let factor = both(scratch.reach[node], sum, |reach, sum| reach / sum);
        for (class, exponential) in scratch.classes.iter().enumerate() {
            let out = &mut out.weight[class * out.stride + start..][..LANES];
            for lane in 0..LANES {
                out[lane] += f64::from(factor[lane] * exponential[lane]);
            }
        }
    }
}
