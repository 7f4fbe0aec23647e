//! Layout of a soft tree of any shape, given by the children of its gates.

#![cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "all families have complete trees; this is for those that will not"
    )
)]

use crate::soft::layout::TreeLayout;

/// Shape of a soft tree that need not be complete.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Leaves of a [`GeneralLayout`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        let n_gates = children.len();
        let n_nodes = 2 * n_gates + 1;
        assert!(n_mixing_gates <= n_gates, "there are {n_gates} gates");
        let mut parents: Vec<Option<usize>> = vec![None; n_nodes];
        for (gate, children) in children.iter().enumerate() {
            for &child in children {
                assert!(child > gate, "gate {gate} comes after its child {child}");
                assert_eq!(parents[child], None, "node {child} has two parents");
                parents[child] = Some(gate);
            }
        }
        let mut component_roots = Vec::with_capacity(n_mixing_gates + 1);
        let mut component_of = vec![0; n_nodes];
        for node in 0..n_nodes {
            let parent = parents[node];
            assert!(parent.is_some() || node == 0, "node {node} has no parent");
            let is_below_mixing = parent.is_none_or(|parent| parent < n_mixing_gates);
            if node < n_mixing_gates {
                assert!(is_below_mixing, "gate {node} has a parent that blends");
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
        Self {
            n_inputs,
            n_channels,
            is_linear,
            n_mixing_gates,
            children,
            component_roots,
            component_of,
        }
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
