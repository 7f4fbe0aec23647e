//! Weights that share a prior variance.

use crate::inference::prior::Groups;
use crate::soft::additive::AdditiveLayout;
use crate::soft::layout::Layout;
use crate::soft::likelihood::SoftLikelihood;
use crate::variational::config::SoftTreeConfig;
use crate::variational::options::Prior;

/// Groups of weights that share a prior variance: kind of weight, for relevance determination also the input, and the tree: the first
/// one carries more than those that are added to it.
pub(crate) fn groups(
    config: &SoftTreeConfig,
    stack: &AdditiveLayout,
    likelihood: SoftLikelihood,
) -> Option<Groups> {
    if config.prior == Prior::Fixed {
        return None;
    }
    let mut of_weight = vec![0; stack.n_weights()];
    let n_groups = (1 + stack.first.n_channels) * stack.width();
    for (tree, (layout, range)) in stack.ranges().enumerate() {
        let by_input = config.prior == Prior::Ard;
        group_tree(&layout, likelihood, by_input, &mut of_weight[range.clone()]);
        for group in &mut of_weight[range] {
            *group += (tree * n_groups) as u32;
        }
    }
    Some(Groups::new(of_weight, config.prior_scale))
}

fn group_tree(layout: &Layout, likelihood: SoftLikelihood, by_input: bool, of_weight: &mut [u32]) {
    let width = layout.width();
    // the bias is a group of its own: it carries levels, not gradient
    let group = |kind: usize, input: usize| {
        let place = if by_input {
            input
        } else {
            usize::from(input == layout.n_inputs)
        };
        (kind * width + place) as u32
    };
    for gate in 0..layout.n_gates() {
        for (input, at) in layout.gate(gate).enumerate() {
            of_weight[at] = group(0, input);
        }
    }
    for channel in 0..layout.n_channels {
        // mean and scale are different kinds; logits are all of one
        let kind = if likelihood == SoftLikelihood::Categorical {
            1
        } else {
            1 + channel
        };
        for leaf in 0..layout.n_leaves() {
            let range = layout.leaf(channel, leaf);
            let first_input = width - range.len();
            for (offset, at) in range.enumerate() {
                of_weight[at] = group(kind, first_input + offset);
            }
        }
    }
}
