//! Assignment of the weights of a sum of soft trees to groups that share a prior variance.

use crate::inference::prior::Groups;
use crate::likelihood::TargetDensity;
use crate::likelihood::soft::SoftLikelihood;
use crate::soft::additive::AdditiveLayout;
use crate::soft::layout::TreeLayout;
use crate::variational::config::SoftTreeConfig;
use crate::variational::options::Prior;

/// Groups of weights that share a prior variance. Weights are grouped by role (gate or leaf
/// channel) and by tree, because the first tree has larger weights than the added ones. Automatic
/// relevance determination also groups by input.
pub(crate) fn groups<L: TreeLayout>(
    config: &SoftTreeConfig,
    stack: &AdditiveLayout<L>,
    likelihood: SoftLikelihood,
) -> Option<Groups> {
    if config.prior == Prior::Fixed {
        return None;
    }
    let mut of_weight = vec![0; stack.n_weights()];
    let n_groups = (1 + stack.first.n_channels()) * stack.width();
    for (tree, (layout, range)) in stack.ranges().enumerate() {
        let by_input = config.prior == Prior::Ard;
        group_tree(layout, likelihood, by_input, &mut of_weight[range.clone()]);
        for group in &mut of_weight[range] {
            *group += (tree * n_groups) as u32;
        }
    }
    Some(Groups::new(of_weight, config.prior_scale))
}

/// Groups of the weights of one tree.
fn group_tree<L: TreeLayout>(
    layout: &L,
    likelihood: SoftLikelihood,
    by_input: bool,
    of_weight: &mut [u32],
) {
    let width = layout.width();
    // the bias has its own group: its scale is that of levels, not of linear effects
    let group = |role: usize, input: usize| {
        let column = if by_input {
            input
        } else {
            usize::from(input == layout.n_inputs())
        };
        (role * width + column) as u32
    };
    for gate in 0..layout.n_gates() {
        for (input, at) in layout.gate(gate).enumerate() {
            of_weight[at] = group(0, input);
        }
    }
    for channel in 0..layout.n_channels() {
        // mean and scale have different roles; all logits have one role
        let role = 1 + likelihood.output_names().role(channel);
        for leaf in 0..layout.n_leaves() {
            let range = layout.leaf(channel, leaf);
            let first_input = width - range.len();
            for (input, at) in (first_input..).zip(range) {
                of_weight[at] = group(role, input);
            }
        }
    }
}
