//! Groups of weights that share a prior variance: by role (rule, or channel of a leaf), by tree, and
//! with automatic relevance determination also by input.

use crate::inference::prior::Groups;
use crate::likelihood::TargetDensity;
use crate::models::vart::spec::VartSpec;
use crate::variational::options::Prior;

/// The groups of all weights; `None` for a fixed prior.
pub(super) fn groups(spec: &VartSpec, prior: Prior, initial_scale: f64) -> Option<Groups> {
    if prior == Prior::Fixed {
        return None;
    }
    let shape = &spec.shape;
    let (width, n_channels) = (shape.rule_size(), shape.leaf.n_channels);
    let mut of_weight = Vec::with_capacity(spec.n_weights());
    for (at, tree) in spec.trees().enumerate() {
        // the bias has its own group: its scale is that of levels, not of linear effects
        let group = |role: usize, input: usize| {
            let is_bias = input + 1 == width;
            let column = match prior {
                Prior::Ard => input,
                _ => usize::from(is_bias),
            };
            ((at * (1 + n_channels) + role) * width + column) as u32
        };
        for _ in 0..tree.tree.n_splits() {
            of_weight.extend((0..width).map(|input| group(0, input)));
        }
        for _ in 0..tree.tree.n_nodes() {
            for channel in 0..n_channels {
                let role = 1 + spec.likelihood.output_names().role(channel);
                let size = shape.channel(channel).len();
                of_weight.extend((width - size..width).map(|input| group(role, input)));
            }
        }
    }
    Some(Groups::new(of_weight, initial_scale))
}
