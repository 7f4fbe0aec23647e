//! One fused pass over a block of activations: gates, path probabilities, component densities,
//! responsibilities, and the gradient with respect to every activation, which overwrites it.
//!
//! With `t_n = beta a_n`, `g_n = sigmoid(t_n)`, components `c` at level `m`, conditional path
//! probabilities (reach) `q` below `c`, blended channels `F_n = (1 - g_n) F_left + g_n F_right`,
//! responsibilities `r_c` and their subtree sums `R`:
//!
//! - levels above `m`: `d ll/d t_n = R_right - g_n R_n`
//! - levels below `m`: `d ll/d t_n = q_n g_n (1 - g_n) sum_k delta_k (F_right,k - F_left,k)`,
//!   `delta = r_c d log f_c/d F_c`
//! - leaves: `d ll/d leaf_k = delta_k q_leaf`
//!
//! The levels of an added tree all blend, and its root is added to the channels of every component:
//! its `delta` is the sum over the components. A subtree that replaces a node of a tree is an added
//! tree times the reach `A` of that node, and the rest of the tree is the offset `c`: `F = c + A
//! F_subtree`. So the cost of training a new split does not depend on the size of the tree.
//!
//! Activations are activations x rows, rows contiguous. SIMD lanes are rows.

use multiversion::multiversion;

use crate::likelihood::TargetDensity;
use crate::likelihood::soft::SoftLikelihood;
use crate::numerics::real::{LANES, Lanes, Real, both, gate, lanes_at, sigmoid};
use crate::soft::additive::AdditiveLayout;
use crate::soft::blend::blend_up;
use crate::soft::layout::{Layout, TreeLayout};

/// Floor of path probabilities: it keeps their products with gradients out of the subnormal range.
const MIN_REACH: f64 = 1e-12;

/// A sum of soft trees without its weights: layout, likelihood and gate temperature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SoftTreeSpec<L = Layout> {
    /// Layout of the trees.
    pub(crate) stack: AdditiveLayout<L>,
    pub(crate) likelihood: SoftLikelihood,
    /// Inverse temperature of the gates.
    pub(crate) beta: f64,
}

/// Scratch memory for one chunk of rows; allocated once per worker.
#[derive(Debug, Clone)]
pub(crate) struct Scratch<T> {
    first: TreeScratch<T>,
    added: Vec<TreeScratch<T>>,
    /// Sum of the roots of the added trees, by channel; later the gradient with respect to it.
    root_sum: Vec<Lanes<T>>,
    /// Gradient of each component's log density, component-major.
    gradient: Vec<Lanes<T>>,
    /// Responsibilities and their subtree sums, by node.
    responsibilities: Vec<Lanes<T>>,
    /// Entry `c` is the largest log joint density of the first `c` components. Not one value that is
    /// updated in place, because the compiler makes a masked store of that, which is slow.
    max_joint: Vec<Lanes<T>>,
    /// Sum of the densities relative to the largest. A field because the compiler does not vectorise
    /// a loop that carries it in a local array.
    sum: Lanes<T>,
}

/// Scratch memory of one tree.
#[derive(Debug, Clone)]
struct TreeScratch<T> {
    /// Probability of going right at every gate.
    gates: Vec<Lanes<T>>,
    /// Path probability by node: its logarithm above the mixing level, itself below.
    reach: Vec<Lanes<T>>,
    /// Blended channels, node-major: `node * n_channels + channel`.
    blended: Vec<Lanes<T>>,
}

impl<T: Real> TreeScratch<T> {
    fn new<L: TreeLayout>(layout: &L) -> Self {
        let n_nodes = layout.n_nodes();
        let zeros = |len: usize| vec![Lanes::of(T::ZERO); len];
        Self {
            gates: zeros(layout.n_gates()),
            reach: zeros(n_nodes),
            blended: zeros(n_nodes * layout.n_channels()),
        }
    }
}

impl<T: Real> Scratch<T> {
    pub(crate) fn new<L: TreeLayout>(stack: &AdditiveLayout<L>) -> Self {
        let zeros = |len: usize| vec![Lanes::of(T::ZERO); len];
        let first = &stack.first;
        Self {
            first: TreeScratch::new(first),
            added: vec![TreeScratch::new(&stack.added); stack.n_added],
            root_sum: zeros(first.n_channels()),
            gradient: zeros(first.n_components() * first.n_channels()),
            responsibilities: zeros(first.n_nodes()),
            max_joint: zeros(first.n_components() + 1),
            sum: Lanes::of(T::ZERO),
        }
    }
}

/// Rows of a block. Their number is a multiple of [`LANES`]; padding rows have weight 0.
#[derive(Debug)]
pub(crate) struct BlockRows<'a, T> {
    /// `n_activations x n_rows`; overwritten by their gradients.
    pub(crate) activations: &'a mut [T],
    pub(crate) target: &'a [T],
    pub(crate) weight: &'a [T],
    /// Output of the first tree if it is an offset: `AdditiveLayout::n_offset` x `n_rows`.
    pub(crate) offset: &'a [T],
    /// Output: unweighted log-likelihood of each row.
    pub(crate) scores: &'a mut [T],
}

/// [`gradient`] in single precision, compiled for several SIMD instruction sets.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
pub(crate) fn gradient_f32<L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    rows: &mut BlockRows<'_, f32>,
    scratch: &mut Scratch<f32>,
) {
    gradient(spec, rows, scratch);
}

/// Replaces activations by weighted gradients of the log-likelihood, and writes the log-likelihood
/// of each row.
#[inline(always)]
pub(crate) fn gradient<T: Real, L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    rows: &mut BlockRows<'_, T>,
    scratch: &mut Scratch<T>,
) {
    let n_rows = rows.target.len();
    for start in (0..n_rows).step_by(LANES) {
        let mut view = BlockView {
            activations: rows.activations,
            first: 0,
            n_rows,
            start,
        };
        let target = lanes_at(rows.target, start);
        let weight = lanes_at(rows.weight, start);
        let scores = chunk_gradient(spec, &mut view, rows.offset, &target, &weight, scratch);
        rows.scores[start..start + LANES].copy_from_slice(&scores[..]);
    }
}

/// One chunk of rows of the activations of one tree.
struct BlockView<'a, T> {
    activations: &'a mut [T],
    /// First activation of the tree.
    first: usize,
    /// Rows of the block.
    n_rows: usize,
    /// First row of the chunk.
    start: usize,
}

impl<T: Real> BlockView<'_, T> {
    #[inline(always)]
    fn get(&self, activation: usize) -> Lanes<T> {
        lanes_at(
            self.activations,
            (self.first + activation) * self.n_rows + self.start,
        )
    }
    #[inline(always)]
    fn set(&mut self, activation: usize, value: &Lanes<T>) {
        let at = (self.first + activation) * self.n_rows + self.start;
        self.activations[at..at + LANES].copy_from_slice(&value[..]);
    }
}

#[inline(always)]
fn chunk_gradient<T: Real, L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    view: &mut BlockView<'_, T>,
    offset: &[T],
    target: &Lanes<T>,
    weight: &Lanes<T>,
    scratch: &mut Scratch<T>,
) -> Lanes<T> {
    let stack = &spec.stack;
    let beta = T::of(spec.beta);
    let first = &stack.first;
    scratch.root_sum.fill(Lanes::of(T::ZERO));
    for (at, tree) in scratch.added.iter_mut().enumerate() {
        view.first = stack.first_activation(at);
        descend(&stack.added, beta, view, tree);
        let leaves = |activation| view.get(activation);
        blend_up(&stack.added, leaves, &tree.gates, &mut tree.blended);
        for (sum, root) in scratch.root_sum.iter_mut().zip(&tree.blended) {
            *sum = both(*sum, *root, |sum, root| sum + root);
        }
    }
    let reach = stack.has_reach.then(|| {
        let last = (stack.n_offset() - 1) * view.n_rows;
        lanes_at(offset, last + view.start)
    });
    if let Some(reach) = reach {
        multiply(&mut scratch.root_sum, reach);
    }
    if stack.has_offset {
        load_offset(first, offset, view, &mut scratch.first);
    } else {
        view.first = 0;
        descend(first, beta, view, &mut scratch.first);
        let leaves = |activation| view.get(activation);
        blend_up(
            first,
            leaves,
            &scratch.first.gates,
            &mut scratch.first.blended,
        );
    }
    if stack.n_added > 0 {
        add_root_sum(first, scratch);
    }
    let scores = components(spec, target, weight, scratch);
    weight_gradients(first, scratch);
    if !stack.has_offset {
        view.first = 0;
        mixing_gates(first, beta, view, scratch);
        blending_gates(first, beta, view, &scratch.first, &scratch.gradient);
    }
    if stack.n_added > 0 {
        sum_gradients(first, scratch);
        if let Some(reach) = reach {
            multiply(&mut scratch.root_sum, reach);
        }
        for (at, tree) in scratch.added.iter().enumerate() {
            view.first = stack.first_activation(at);
            blending_gates(&stack.added, beta, view, tree, &scratch.root_sum);
        }
    }
    scores
}

/// Multiplies each of several values by a factor.
#[inline(always)]
fn multiply<T: Real>(values: &mut [Lanes<T>], factor: Lanes<T>) {
    for value in values {
        *value = both(*value, factor, |value, factor| value * factor);
    }
}

/// Reads the components from the offset instead of computing them.
#[inline(always)]
fn load_offset<T: Real, L: TreeLayout>(
    layout: &L,
    offset: &[T],
    view: &BlockView<'_, T>,
    tree: &mut TreeScratch<T>,
) {
    let (n_components, n_channels) = (layout.n_components(), layout.n_channels());
    let value = |at: usize| lanes_at(offset, at * view.n_rows + view.start);
    for component in 0..n_components {
        let node = layout.component_root(component);
        tree.reach[node] = value(component);
        for channel in 0..n_channels {
            tree.blended[node * n_channels + channel] =
                value(n_components + component * n_channels + channel);
        }
    }
}

/// Adds the sum of the roots of the added trees to the channels of every component.
#[inline(always)]
fn add_root_sum<T: Real, L: TreeLayout>(layout: &L, scratch: &mut Scratch<T>) {
    let n_channels = layout.n_channels();
    for component in 0..layout.n_components() {
        let node = layout.component_root(component);
        let channels = &mut scratch.first.blended[node * n_channels..(node + 1) * n_channels];
        for (channel, root_sum) in channels.iter_mut().zip(&scratch.root_sum) {
            *channel = both(*channel, *root_sum, |a, b| a + b);
        }
    }
}

/// Multiplies the gradients of the components by their responsibilities.
#[inline(always)]
fn weight_gradients<T: Real, L: TreeLayout>(layout: &L, scratch: &mut Scratch<T>) {
    let n_channels = layout.n_channels();
    for component in 0..layout.n_components() {
        let responsibility = scratch.responsibilities[layout.component_root(component)];
        for partial in &mut scratch.gradient[component * n_channels..(component + 1) * n_channels] {
            *partial = both(*partial, responsibility, |partial, responsibility| {
                partial * responsibility
            });
        }
    }
}

/// Sums the weighted gradients over components, into `root_sum`.
#[inline(always)]
fn sum_gradients<T: Real, L: TreeLayout>(layout: &L, scratch: &mut Scratch<T>) {
    scratch.root_sum.fill(Lanes::of(T::ZERO));
    for gradient in scratch.gradient.chunks_exact(layout.n_channels()) {
        for (sum, partial) in scratch.root_sum.iter_mut().zip(gradient) {
            *sum = both(*sum, *partial, |sum, partial| sum + partial);
        }
    }
}

/// Gates and path probabilities, from the root down.
#[inline(always)]
fn descend<T: Real, L: TreeLayout>(
    layout: &L,
    beta: T,
    view: &BlockView<'_, T>,
    tree: &mut TreeScratch<T>,
) {
    let n_mixing = layout.n_mixing_gates();
    tree.reach[0] = Lanes::of(T::ZERO);
    for node in 0..n_mixing {
        let a = view.get(node);
        let up = tree.reach[node];
        let (mut left, mut right, mut g) = (up, up, up);
        for lane in 0..LANES {
            let (value, above, below) = gate(beta * a[lane]);
            g[lane] = value;
            left[lane] = up[lane] - above;
            right[lane] = up[lane] - below;
        }
        tree.gates[node] = g;
        let [left_child, right_child] = layout.children(node);
        tree.reach[left_child] = left;
        tree.reach[right_child] = right;
    }
    for node in n_mixing..layout.n_gates() {
        let a = view.get(node);
        let up = if layout.is_component_root(node) {
            Lanes::of(T::ONE)
        } else {
            tree.reach[node]
        };
        let (mut left, mut right, mut g) = (up, up, up);
        for lane in 0..LANES {
            let value = sigmoid(beta * a[lane]);
            g[lane] = value;
            right[lane] = (up[lane] * value).largest(T::of(MIN_REACH));
            left[lane] = (up[lane] - up[lane] * value).largest(T::of(MIN_REACH));
        }
        tree.gates[node] = g;
        let [left_child, right_child] = layout.children(node);
        tree.reach[left_child] = left;
        tree.reach[right_child] = right;
    }
}

/// Densities of the components, their log-sum-exp, and weighted responsibilities.
#[inline(always)]
fn components<T: Real, L: TreeLayout>(
    spec: &SoftTreeSpec<L>,
    target: &Lanes<T>,
    weight: &Lanes<T>,
    scratch: &mut Scratch<T>,
) -> Lanes<T> {
    let layout = &spec.stack.first;
    let (n_components, n_channels) = (layout.n_components(), layout.n_channels());
    scratch.max_joint[0] = Lanes::of(T::of(-1e30));
    for component in 0..n_components {
        let node = layout.component_root(component);
        let z = &scratch.first.blended[node * n_channels..(node + 1) * n_channels];
        let gradient = &mut scratch.gradient[component * n_channels..(component + 1) * n_channels];
        let density = spec.likelihood.log_density(z, target, gradient);
        let joint = both(density, scratch.first.reach[node], |f, reach| f + reach);
        scratch.responsibilities[node] = joint;
        scratch.max_joint[component + 1] = both(scratch.max_joint[component], joint, Real::largest);
    }
    if n_components == 1 {
        let scores = scratch.responsibilities[0];
        scratch.responsibilities[0] = *weight;
        return scores;
    }
    let max_joint = scratch.max_joint[n_components];
    scratch.sum = Lanes::of(T::ZERO);
    for component in 0..n_components {
        let node = layout.component_root(component);
        let relative = both(scratch.responsibilities[node], max_joint, |a, b| {
            (a - b).exp()
        });
        scratch.responsibilities[node] = relative;
        scratch.sum = both(scratch.sum, relative, |a, b| a + b);
    }
    let factor = both(*weight, scratch.sum, |weight, sum| weight / sum);
    for component in 0..n_components {
        let node = layout.component_root(component);
        scratch.responsibilities[node] = both(
            scratch.responsibilities[node],
            factor,
            |responsibility, factor| responsibility * factor,
        );
    }
    both(max_joint, scratch.sum, |max, sum| max + sum.ln())
}

/// Gradients of the gates above the mixing level, which choose a component.
#[inline(always)]
fn mixing_gates<T: Real, L: TreeLayout>(
    layout: &L,
    beta: T,
    view: &mut BlockView<'_, T>,
    scratch: &mut Scratch<T>,
) {
    for node in (0..layout.n_mixing_gates()).rev() {
        let [left, right] = layout
            .children(node)
            .map(|child| scratch.responsibilities[child]);
        let sum = both(left, right, |left, right| left + right);
        let part = both(scratch.first.gates[node], sum, |g, sum| g * sum);
        let out = both(right, part, |right, part| beta * (right - part));
        scratch.responsibilities[node] = sum;
        view.set(node, &out);
    }
}

/// Gradients of the gates below the mixing level and of the leaves, from the weighted gradients of
/// the components (component-major).
#[inline(always)]
fn blending_gates<T: Real, L: TreeLayout>(
    layout: &L,
    beta: T,
    view: &mut BlockView<'_, T>,
    tree: &TreeScratch<T>,
    gradient: &[Lanes<T>],
) {
    let (n_gates, n_leaves, n_channels) =
        (layout.n_gates(), layout.n_leaves(), layout.n_channels());
    for node in layout.n_mixing_gates()..n_gates {
        let component = layout.component_of(node);
        let [left_child, right_child] = layout.children(node);
        let mut derivative = Lanes::of(T::ZERO);
        for channel in 0..n_channels {
            let partial = gradient[component * n_channels + channel];
            let left = tree.blended[left_child * n_channels + channel];
            let right = tree.blended[right_child * n_channels + channel];
            let difference = both(right, left, |right, left| right - left);
            for lane in 0..LANES {
                derivative[lane] = partial[lane].fma(difference[lane], derivative[lane]);
            }
        }
        let (g, right) = (tree.gates[node], tree.reach[right_child]);
        for lane in 0..LANES {
            derivative[lane] = beta * derivative[lane] * right[lane] * (T::ONE - g[lane]);
        }
        view.set(node, &derivative);
    }
    for leaf in 0..n_leaves {
        let node = n_gates + leaf;
        let component = layout.component_of(node);
        let reach = if layout.is_component_root(node) {
            Lanes::of(T::ONE)
        } else {
            tree.reach[node]
        };
        for channel in 0..n_channels {
            let partial = gradient[component * n_channels + channel];
            let out = both(partial, reach, |partial, reach| partial * reach);
            view.set(n_gates + channel * n_leaves + leaf, &out);
        }
    }
}
