//! Prediction: the components of a soft tree for a block of rows, without gradients.

use multiversion::multiversion;

use crate::numerics::real::{LANES, Lanes, Real, sigmoid};
use crate::soft::blend::{blend_up, lanes_at};
use crate::soft::kernel::Pass;
use crate::soft::law::Law;

/// Room for one chunk of lanes.
#[derive(Debug, Clone)]
pub(crate) struct ForwardScratch {
    gates: Vec<Lanes<f32>>,
    reach: Vec<Lanes<f32>>,
    blended: Vec<Lanes<f32>>,
}

impl ForwardScratch {
    pub(crate) fn new(pass: &Pass) -> Self {
        let n_nodes = 2 * pass.layout.n_leaves() - 1;
        let zeros = |len: usize| vec![Lanes::of(0.0); len];
        Self {
            gates: zeros(pass.layout.n_gates()),
            reach: zeros(n_nodes),
            blended: zeros(n_nodes * pass.layout.n_channels),
        }
    }
}

/// Where the components go: components (or classes) x stride, rows contiguous. `mean` and `sd` are empty for classes.
#[derive(Debug)]
pub(crate) struct Components<'a> {
    pub(crate) weight: &'a mut [f64],
    pub(crate) mean: &'a mut [f64],
    pub(crate) sd: &'a mut [f64],
    pub(crate) stride: usize,
}

impl Components<'_> {
    /// Gives components from `first` on weight zero: the tree has fewer than the widest.
    pub(crate) fn clear_from(&mut self, first: usize) {
        let start = first * self.stride;
        self.weight[start..].fill(0.0);
        for (values, neutral) in [(&mut *self.mean, 0.0), (&mut *self.sd, 1.0)] {
            if let Some(rest) = values.get_mut(start..) {
                rest.fill(neutral);
            }
        }
    }
}

/// Components of every row from activations (`n_activations x n_rows`).
#[multiversion(targets = "simd")]
pub(crate) fn components(
    pass: &Pass,
    activations: &[f32],
    n_rows: usize,
    scratch: &mut ForwardScratch,
    out: &mut Components<'_>,
) {
    for start in (0..n_rows).step_by(LANES) {
        descend(pass, activations, n_rows, start, scratch);
        let leaves = |activation| lanes_at(activations, activation * n_rows + start);
        blend_up(&pass.layout, leaves, &scratch.gates, &mut scratch.blended);
        match pass.law {
            Law::Categorical => classes(pass, start, scratch, out),
            Law::Normal { .. } | Law::KnownNoise { .. } => normals(pass, start, scratch, out),
        }
    }
}

#[inline(always)]
fn descend(
    pass: &Pass,
    activations: &[f32],
    n_rows: usize,
    start: usize,
    scratch: &mut ForwardScratch,
) {
    let beta = pass.beta as f32;
    let first = pass.layout.n_components() - 1;
    scratch.reach[0] = Lanes::of(1.0);
    for node in 0..pass.layout.n_gates() {
        let a = lanes_at(activations, node * n_rows + start);
        let mut g = Lanes::of(0.0);
        for lane in 0..LANES {
            g[lane] = sigmoid(beta * a[lane]);
        }
        scratch.gates[node] = g;
        if node >= first {
            continue;
        }
        let up = scratch.reach[node];
        let (mut left, mut right) = (up, up);
        for lane in 0..LANES {
            right[lane] = up[lane] * g[lane];
            left[lane] = up[lane] - right[lane];
        }
        scratch.reach[2 * node + 1] = left;
        scratch.reach[2 * node + 2] = right;
    }
}

#[inline(always)]
fn normals(pass: &Pass, start: usize, scratch: &ForwardScratch, out: &mut Components<'_>) {
    let n_components = pass.layout.n_components();
    for component in 0..n_components {
        let node = n_components - 1 + component;
        let at = component * out.stride + start;
        let (mean, raw) = (scratch.blended[2 * node], scratch.blended[2 * node + 1]);
        let mut sd = raw;
        for lane in 0..LANES {
            sd[lane] = pass.law.sd(raw[lane]);
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
fn classes(pass: &Pass, start: usize, scratch: &ForwardScratch, out: &mut Components<'_>) {
    let (n_components, n_classes) = (pass.layout.n_components(), pass.layout.n_channels);
    for class in 0..n_classes {
        out.weight[class * out.stride + start..][..LANES].fill(0.0);
    }
    for component in 0..n_components {
        let node = n_components - 1 + component;
        let logits = &scratch.blended[node * n_classes..(node + 1) * n_classes];
        let mut top = logits[0];
        for class in logits {
            for lane in 0..LANES {
                top[lane] = top[lane].largest(class[lane]);
            }
        }
        let mut sum = Lanes::of(0.0);
        for class in logits {
            for lane in 0..LANES {
                sum[lane] += Real::exp(class[lane] - top[lane]);
            }
        }
        for (class, logit) in logits.iter().enumerate() {
            let out = &mut out.weight[class * out.stride + start..][..LANES];
            for lane in 0..LANES {
                let share =
                    scratch.reach[node][lane] / sum[lane] * Real::exp(logit[lane] - top[lane]);
                out[lane] += f64::from(share);
            }
        }
    }
}
