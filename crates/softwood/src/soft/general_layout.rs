//! Layout of a soft tree of any shape, given by the children of its gates.

use serde::{Deserialize, Serialize};

use crate::soft::layout::{StoredLayout, TreeLayout};

/// Shape of a soft tree that need not be complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredShape", into = "StoredShape")]
pub(crate) struct GeneralLayout {
    n_inputs: usize,
    n_channels: usize,
    is_linear: bool,
    n_mixing_gates: usize,
    /// Left and right child of each gate.
    children: Vec<[usize; 2]>,
    /// Topmost node of each component.
    component_roots: Vec<usize>,
    /// Component of each node; not used for gates that mix.
    component_of: Vec<usize>,
}

/// The form of a [`GeneralLayout`] in a model file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredShape {
    leaf: LeafShape,
    n_mixing_gates: usize,
    children: Vec<[usize; 2]>,
}

impl From<GeneralLayout> for StoredShape {
    fn from(layout: GeneralLayout) -> Self {
        Self {
            leaf: layout.leaf_shape(),
            n_mixing_gates: layout.n_mixing_gates,
            children: layout.children,
        }
    }
}

impl TryFrom<StoredShape> for GeneralLayout {
    type Error = String;

    fn try_from(shape: StoredShape) -> Result<Self, String> {
        Self::try_new(shape.children, shape.n_mixing_gates, shape.leaf)
    }
}

/// Leaves of a [`GeneralLayout`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeafShape {
    /// Number of inputs, without the bias.
    pub(crate) n_inputs: usize,
    /// Number of channels per leaf.
    pub(crate) n_channels: usize,
    /// Whether leaves are linear in the inputs.
    pub(crate) is_linear: bool,
}

impl GeneralLayout {
    /// A tree whose gate `n` has the left and right child `children[n]`. Node 0 is the root, nodes
    /// below `children.len()` are gates, the others are leaves. The first `n_mixing_gates` gates
    /// choose a component.
    ///
    /// # Panics
    /// When a node does not have exactly one parent, when a gate does not follow its parent, or
    /// when a gate that mixes has a parent that blends.
    pub(crate) fn new(children: Vec<[usize; 2]>, n_mixing_gates: usize, leaf: LeafShape) -> Self {
        Self::try_new(children, n_mixing_gates, leaf).expect("the children of the gates are a tree")
    }

    /// [`GeneralLayout::new`] with an error instead of a panic.
    fn try_new(
        children: Vec<[usize; 2]>,
        n_mixing_gates: usize,
        leaf: LeafShape,
    ) -> Result<Self, String> {
        let n_gates = children.len();
        let n_nodes = 2 * n_gates + 1;
        if n_mixing_gates > n_gates {
            return Err(format!("there are {n_gates} gates"));
        }
        let mut parents: Vec<Option<usize>> = vec![None; n_nodes];
        for (gate, children) in children.iter().enumerate() {
            for &child in children {
                if child <= gate || child >= n_nodes {
                    return Err(format!("gate {gate} cannot have the child {child}"));
                }
                if parents[child].is_some() {
                    return Err(format!("node {child} has two parents"));
                }
                parents[child] = Some(gate);
            }
        }
        let mut component_roots = Vec::with_capacity(n_mixing_gates + 1);
        let mut component_of = vec![0; n_nodes];
        for node in 0..n_nodes {
            let parent = parents[node];
            if parent.is_none() && node > 0 {
                return Err(format!("node {node} has no parent"));
            }
            let is_below_mixing = parent.is_none_or(|parent| parent < n_mixing_gates);
            if node < n_mixing_gates {
                if !is_below_mixing {
                    return Err(format!("gate {node} has a parent that blends"));
                }
            } else if is_below_mixing {
                component_of[node] = component_roots.len();
                component_roots.push(node);
            } else if let Some(parent) = parent {
                component_of[node] = component_of[parent];
            }
        }
        let LeafShape {
            n_inputs,
            n_channels,
            is_linear,
        } = leaf;
        Ok(Self {
            n_inputs,
            n_channels,
            is_linear,
            n_mixing_gates,
            children,
            component_roots,
            component_of,
        })
    }

    /// Shape of the leaves.
    pub(crate) fn leaf_shape(&self) -> LeafShape {
        LeafShape {
            n_inputs: self.n_inputs,
            n_channels: self.n_channels,
            is_linear: self.is_linear,
        }
    }
}

impl StoredLayout for GeneralLayout {
    /// The shape is checked when it is read.
    fn is_storable(&self) -> bool {
        true
    }

    fn checked_n_weights(&self) -> Option<usize> {
        let width = self.n_inputs.checked_add(1)?;
        let leaf_width = if self.is_linear { width } else { 1 };
        let leaves = self.n_channels.checked_mul(self.n_leaves())?;
        let gates = self.n_gates().checked_mul(width)?;
        gates.checked_add(leaves.checked_mul(leaf_width)?)
    }
}

impl TreeLayout for GeneralLayout {
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
        self.children.len()
    }

    #[inline]
    fn n_mixing_gates(&self) -> usize {
        self.n_mixing_gates
    }

    #[inline]
    fn children(&self, gate: usize) -> [usize; 2] {
        self.children[gate]
    }

    #[inline]
    fn component_root(&self, component: usize) -> usize {
        self.component_roots[component]
    }

    #[inline]
    fn component_of(&self, node: usize) -> usize {
        self.component_of[node]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood::soft::SoftLikelihood;
    use crate::numerics::real::LANES;
    use crate::rng::Key;
    use crate::soft::additive::AdditiveLayout;
    use crate::soft::forward::{Activations, Components, ForwardScratch, components};
    use crate::soft::kernel::SoftTreeSpec;
    use crate::soft::layout::Layout;
    use crate::soft::packed::{PackedWeights, transpose};
    use crate::soft::tree::{Batch, Kernel, Workspace, log_likelihood};
    use softwood_testkit::{central_difference, close};

    /// The layout of a complete tree as a general one.
    fn generalized(layout: &Layout) -> GeneralLayout {
        let children = (0..layout.n_gates()).map(|gate| layout.children(gate));
        let leaf = LeafShape {
            n_inputs: layout.n_inputs,
            n_channels: layout.n_channels,
            is_linear: layout.is_linear,
        };
        GeneralLayout::new(children.collect(), layout.n_mixing_gates(), leaf)
    }

    fn spec<L: TreeLayout + Clone>(layout: L) -> SoftTreeSpec<L> {
        let likelihood = if layout.n_channels() == 2 {
            SoftLikelihood::Normal { floor: 1e-3 }
        } else {
            SoftLikelihood::Categorical
        };
        SoftTreeSpec {
            stack: AdditiveLayout::single(layout),
            likelihood,
            beta: 1.3,
        }
    }

    /// Log-likelihood and gradient of generated rows.
    fn value_and_gradient<T: Kernel, L: TreeLayout + Clone>(
        layout: &L,
        weights: &[f64],
    ) -> (f64, Vec<f64>) {
        let (width, n_channels) = (layout.width(), layout.n_channels());
        let mut inputs = Key::from_seed(1).uniforms(LANES * width);
        for row in inputs.chunks_exact_mut(width) {
            row[width - 1] = 1.0;
        }
        let target: Vec<f64> = if n_channels == 2 {
            Key::from_seed(2).uniforms(LANES)
        } else {
            (0..LANES).map(|row| (row % n_channels) as f64).collect()
        };
        let of = |values: &[f64]| values.iter().map(|&x| T::of(x)).collect::<Vec<T>>();
        let batch = Batch {
            inputs: &of(&inputs),
            target: &of(&target),
            weight: &of(&Key::from_seed(3).uniforms(LANES)),
            offset: &[],
        };
        let spec = spec(layout.clone());
        let mut gradients = vec![T::ZERO; weights.len()];
        let mut workspace = Workspace::new(&spec, LANES, 1);
        let value = log_likelihood(&spec, &batch, &of(weights), &mut gradients, &mut workspace);
        (value, gradients.iter().map(|g| g.wide()).collect())
    }

    fn weights<L: TreeLayout>(layout: &L) -> Vec<f64> {
        let draws = Key::from_seed(4).uniforms(layout.n_weights());
        draws.iter().map(|u| 2.0 * u - 1.0).collect()
    }

    /// Mixture weights and means of generated rows.
    fn predicted<L: TreeLayout + Clone>(layout: &L, weights: &[f64]) -> [Vec<f64>; 2] {
        let spec = spec(layout.clone());
        let draw: Vec<f32> = weights.iter().map(|&weight| weight as f32).collect();
        let inputs = Key::from_seed(1).uniforms(LANES * layout.width());
        let inputs: Vec<f32> = inputs.iter().map(|&x| x as f32).collect();
        let mut values = vec![0.0; layout.n_activations() * LANES];
        let packed = PackedWeights::new(layout.clone(), &draw);
        packed.activate(0, &transpose(&inputs, layout.width()), &mut values);
        let size = layout.n_components().max(layout.n_channels()) * LANES;
        let mut out = [vec![0.0; size], vec![0.0; size], vec![0.0; size]];
        let [weight, mean, sd] = &mut out;
        let mut block = Components {
            weight,
            mean,
            sd,
            stride: LANES,
        };
        let activations = Activations {
            values: &values,
            n_rows: LANES,
        };
        let mut scratch = ForwardScratch::new(layout);
        components(&spec, activations, &[], &mut scratch, &mut block);
        let [weight, mean, _] = out;
        [weight, mean]
    }

    #[test]
    fn a_complete_tree_has_the_same_bits_as_a_general_layout() {
        for (n_channels, is_linear) in [(2, true), (2, false), (3, true)] {
            for (depth, mixing_levels) in [(0, 0), (1, 0), (1, 1), (3, 0), (3, 1), (3, 3)] {
                let complete = Layout {
                    n_inputs: 3,
                    depth,
                    mixing_levels,
                    n_channels,
                    is_linear,
                };
                let general = generalized(&complete);
                assert_eq!(general.n_weights(), complete.n_weights());
                let weights = weights(&complete);
                let bits = |(value, gradient): (f64, Vec<f64>)| {
                    let gradient = gradient.iter().map(|g| g.to_bits());
                    (value.to_bits(), gradient.collect::<Vec<_>>())
                };
                assert_eq!(
                    bits(value_and_gradient::<f32, _>(&general, &weights)),
                    bits(value_and_gradient::<f32, _>(&complete, &weights))
                );
                let exact = |values: [Vec<f64>; 2]| values.concat();
                close(
                    &exact(predicted(&general, &weights)),
                    &exact(predicted(&complete, &weights)),
                    0.0,
                );
            }
        }
    }

    /// Incomplete trees: a chain to the right; a chain to the left with the leaves in another
    /// order; a small bushy tree.
    fn incomplete() -> Vec<Vec<[usize; 2]>> {
        vec![
            vec![[4, 1], [5, 2], [6, 3], [7, 8]],
            vec![[1, 3], [2, 6], [5, 4]],
            vec![[1, 2], [5, 3], [7, 4], [6, 8], [9, 10]],
        ]
    }

    #[test]
    fn gradients_of_incomplete_trees_agree_with_differences() {
        for children in incomplete() {
            for (n_channels, is_linear) in [(2, true), (2, false), (3, true)] {
                for n_mixing in 0..=children.len() {
                    let leaf = LeafShape {
                        n_inputs: 2,
                        n_channels,
                        is_linear,
                    };
                    let layout = GeneralLayout::new(children.clone(), n_mixing, leaf);
                    let weights = weights(&layout);
                    let value = |weights: &[f64]| value_and_gradient::<f64, _>(&layout, weights).0;
                    let (_, gradient) = value_and_gradient::<f64, _>(&layout, &weights);
                    close(&gradient, &central_difference(value, &weights), 2e-8);
                }
            }
        }
    }

    /// Output channels of a tree and reach of one of its leaves, in double precision.
    fn output_and_reach(
        layout: &GeneralLayout,
        weights: &[f64],
        x: &[f64],
        leaf: usize,
    ) -> (Vec<f64>, f64) {
        let dot = |range: std::ops::Range<usize>| -> f64 {
            let inputs = &x[x.len() - range.len()..];
            weights[range].iter().zip(inputs).map(|(w, x)| w * x).sum()
        };
        let mut reach = vec![1.0; layout.n_nodes()];
        for gate in 0..layout.n_gates() {
            let right = 1.0 / (1.0 + (-dot(layout.gate(gate))).exp());
            let [left_child, right_child] = layout.children(gate);
            reach[right_child] = reach[gate] * right;
            reach[left_child] = reach[gate] * (1.0 - right);
        }
        let channels = (0..layout.n_channels()).map(|channel| {
            (0..layout.n_leaves())
                .map(|at| reach[layout.n_gates() + at] * dot(layout.leaf(channel, at)))
                .sum()
        });
        (channels.collect(), reach[layout.n_gates() + leaf])
    }

    /// A leaf of a tree is split. The likelihood and the gradient of the new gate and leaves are the
    /// same from the whole tree and from the cached output and reach of the other nodes.
    #[test]
    fn a_split_on_cached_reach_has_the_likelihood_and_gradient_of_the_whole_tree() {
        for (n_channels, is_linear) in [(1, false), (1, true), (2, true), (3, false), (3, true)] {
            let leaf = LeafShape {
                n_inputs: 2,
                n_channels,
                is_linear,
            };
            // leaf 1 (node 3) of a tree of three leaves becomes gate 2 with two leaves
            let before = GeneralLayout::new(vec![[1, 2], [3, 4]], 0, leaf);
            let after = GeneralLayout::new(vec![[1, 3], [2, 4], [5, 6]], 0, leaf);
            let (leaf_before, gate_after, leaves_after) = (1, 2, [2, 3]);
            let likelihood = match n_channels {
                1 => SoftLikelihood::KnownNoise { sd: 0.7 },
                2 => SoftLikelihood::Normal { floor: 1e-3 },
                _ => SoftLikelihood::Categorical,
            };
            let all = weights(&after);
            let mut frozen = weights(&before);
            for (from, to) in [(0, 0), (1, 1)] {
                frozen[before.gate(to)].copy_from_slice(&all[after.gate(from)]);
            }
            for channel in 0..n_channels {
                for (from, to) in [(0, 0), (1, 2)] {
                    frozen[before.leaf(channel, to)]
                        .copy_from_slice(&all[after.leaf(channel, from)]);
                }
                frozen[before.leaf(channel, leaf_before)].fill(0.0);
            }
            let mut inputs = Key::from_seed(1).uniforms(LANES * 3);
            for row in inputs.chunks_exact_mut(3) {
                row[2] = 1.0;
            }
            let target: Vec<f64> = if n_channels == 3 {
                (0..LANES).map(|row| (row % 3) as f64).collect()
            } else {
                Key::from_seed(2).uniforms(LANES)
            };
            // offset values x rows: log weight, channels, reach
            let mut offset = vec![0.0; (n_channels + 2) * LANES];
            for (row, x) in inputs.chunks_exact(3).enumerate() {
                let (channels, reach) = output_and_reach(&before, &frozen, x, leaf_before);
                for (channel, value) in channels.into_iter().enumerate() {
                    offset[(1 + channel) * LANES + row] = value;
                }
                offset[(n_channels + 1) * LANES + row] = reach;
            }
            let split_layout = |depth: usize| Layout {
                n_inputs: 2,
                depth,
                mixing_levels: 0,
                n_channels,
                is_linear,
            };
            let split = split_layout(1);
            let mut local = vec![0.0; split.n_weights()];
            local[split.gate(0)].copy_from_slice(&all[after.gate(gate_after)]);
            for channel in 0..n_channels {
                for (to, from) in leaves_after.into_iter().enumerate() {
                    local[split.leaf(channel, to)].copy_from_slice(&all[after.leaf(channel, from)]);
                }
            }
            let weight = vec![1.0; LANES];
            let batch = Batch {
                inputs: &inputs,
                target: &target,
                weight: &weight,
                offset: &offset,
            };
            let cached = SoftTreeSpec {
                stack: AdditiveLayout::at_node(split_layout(0), split),
                likelihood,
                beta: 1.0,
            };
            let whole = SoftTreeSpec {
                stack: AdditiveLayout::single(after.clone()),
                likelihood,
                beta: 1.0,
            };
            let mut gradient = vec![0.0; local.len()];
            let mut workspace = Workspace::new(&cached, LANES, 1);
            let value = log_likelihood(&cached, &batch, &local, &mut gradient, &mut workspace);
            let mut expected = vec![0.0; all.len()];
            let mut workspace = Workspace::new(&whole, LANES, 1);
            let whole_value = log_likelihood(&whole, &batch, &all, &mut expected, &mut workspace);
            close(&[value], &[whole_value], 1e-10);
            close(
                &gradient[split.gate(0)],
                &expected[after.gate(gate_after)],
                1e-10,
            );
            for channel in 0..n_channels {
                for (to, from) in leaves_after.into_iter().enumerate() {
                    close(
                        &gradient[split.leaf(channel, to)],
                        &expected[after.leaf(channel, from)],
                        1e-10,
                    );
                }
            }
        }
    }

    #[test]
    fn a_layout_in_a_file_is_read_back_or_refused() {
        let leaf = LeafShape {
            n_inputs: 2,
            n_channels: 2,
            is_linear: true,
        };
        let layout = GeneralLayout::new(vec![[1, 3], [2, 4], [5, 6]], 0, leaf);
        let json = serde_json::to_value(&layout).unwrap();
        let read: GeneralLayout = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(read, layout);
        assert_eq!(read.checked_n_weights(), Some(layout.n_weights()));
        for (pointer, value) in [
            ("/children/0/0", 0),
            ("/children/0/0", 6),
            ("/children/2/1", 7),
            ("/n_mixing_gates", 4),
        ] {
            let mut damaged = json.clone();
            *damaged.pointer_mut(pointer).unwrap() = value.into();
            assert!(serde_json::from_value::<GeneralLayout>(damaged).is_err());
        }
    }

    #[test]
    fn the_components_of_an_incomplete_tree_sum_to_one() {
        for children in incomplete() {
            for n_mixing in 0..=children.len() {
                let leaf = LeafShape {
                    n_inputs: 2,
                    n_channels: 2,
                    is_linear: true,
                };
                let layout = GeneralLayout::new(children.clone(), n_mixing, leaf);
                let [weight, _] = predicted(&layout, &weights(&layout));
                for row in 0..LANES {
                    let components = (0..layout.n_components()).map(|at| weight[at * LANES + row]);
                    close(&[components.sum::<f64>()], &[1.0], 1e-6);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "two parents")]
    fn a_node_with_two_parents_is_refused() {
        let leaf = LeafShape {
            n_inputs: 1,
            n_channels: 2,
            is_linear: false,
        };
        GeneralLayout::new(vec![[1, 2], [2, 3]], 0, leaf);
    }
}
