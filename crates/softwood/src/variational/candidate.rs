//! Candidates of model selection: tree shapes and encodings that the parameters leave open.

use crate::data::encoding::{Encoder, Encoding, Rotation, Scaling};
use crate::data::table::Table;
use crate::inference::lowrank_gaussian::LowRank;
use crate::rng::Key;
use crate::soft::additive::AdditiveLayout;
use crate::soft::kernel::SoftTreeSpec;
use crate::soft::layout::Layout;
use crate::variational::config::SoftTreeConfig;
use crate::variational::encoded_rows::EncodedSplit;
use crate::variational::init::WeightInitializer;
use crate::variational::options::{Leaf, LeafMixing};
use crate::variational::streams::initial_posterior as streams;

/// Depth, mixing levels and leaf model of a tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TreeShape {
    pub(crate) depth: usize,
    pub(crate) mixing_levels: usize,
    pub(crate) leaf: Leaf,
}

impl TreeShape {
    const fn linear(depth: usize, mixing_levels: usize) -> Self {
        Self {
            depth,
            mixing_levels,
            leaf: Leaf::Linear,
        }
    }

    const fn constant(depth: usize, mixing_levels: usize) -> Self {
        Self {
            depth,
            mixing_levels,
            leaf: Leaf::Constant,
        }
    }
}

impl TreeShape {
    /// The layout of a tree of this shape on encoded rows.
    pub(crate) fn layout(self, split: &EncodedSplit) -> Layout {
        Layout {
            n_inputs: split.encoder.n_inputs(),
            depth: self.depth,
            mixing_levels: self.mixing_levels,
            n_channels: split.scale.n_channels,
            is_linear: self.leaf == Leaf::Linear,
        }
    }
}

/// Shapes that are tried by default.
const SHAPES: &[TreeShape] = &[
    TreeShape::linear(2, 0),
    TreeShape::linear(3, 0),
    TreeShape::linear(4, 0),
    TreeShape::linear(5, 0),
    TreeShape::linear(4, 1),
    TreeShape::linear(4, 2),
    TreeShape::linear(5, 3),
    TreeShape::linear(5, 5),
    TreeShape::linear(6, 4),
    TreeShape::linear(7, 5),
    TreeShape::constant(5, 0),
    TreeShape::constant(5, 2),
];
/// Depths that are tried if only the leaf mixing is given.
const DEPTHS: std::ops::RangeInclusive<usize> = 1..=6;
/// Shape without a validation set.
const DEFAULT_SHAPE: TreeShape = TreeShape::linear(2, 1);
/// Minimum number of training rows per leaf of a candidate.
const MIN_ROWS_PER_LEAF: usize = 4;

/// Largest number of weights per training row of a candidate; the smallest candidate may have more.
/// On wide tables, larger trees take most of the time of the selection and are seldom selected. The
/// limit has no effect up to about 60 inputs, because a leaf has at least [`MIN_ROWS_PER_LEAF`] rows.
const MAX_WEIGHTS_PER_ROW: usize = 50;

/// A tree shape and an encoding of the inputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) shape: TreeShape,
    pub(crate) encoding: Encoding,
}

impl Candidate {
    /// The tree and its initial posterior.
    pub(crate) fn initialize(
        &self,
        config: &SoftTreeConfig,
        split: &EncodedSplit,
        key: Key,
    ) -> (SoftTreeSpec, LowRank) {
        let layout = self.shape.layout(split);
        let spec = SoftTreeSpec {
            stack: AdditiveLayout::single(layout),
            likelihood: split.scale.likelihood,
            beta: config.beta,
        };
        let initializer = WeightInitializer {
            train: &split.train,
            likelihood: split.scale.likelihood,
            residuals: None,
            beta: config.beta,
        };
        let weights = initializer.weights(&layout, key.child(streams::WEIGHTS));
        let posterior = config.initial_posterior(weights, key.child(streams::FACTORS));
        (spec, posterior)
    }

    /// Whether all levels of the tree blend.
    pub(crate) fn is_blend(&self) -> bool {
        self.shape.mixing_levels == 0
    }

    /// Description for users.
    pub(crate) fn describe(&self) -> String {
        let TreeShape {
            depth,
            mixing_levels,
            leaf,
        } = self.shape;
        let mixing = match mixing_levels {
            0 => "blend".to_owned(),
            levels if levels == depth => "mixture".to_owned(),
            levels => format!("hybrid({levels})"),
        };
        let leaf = if leaf == Leaf::Constant {
            ", constant leaves"
        } else {
            ""
        };
        let scaling = if self.encoding.scaling == Scaling::Quantile {
            ", quantile scaling"
        } else {
            ""
        };
        let rotation = match self.encoding.rotation {
            Rotation::None => "",
            Rotation::Pca => ", rotation pca",
            Rotation::Both => ", rotation both",
        };
        let squares = if self.encoding.squares {
            ", squares"
        } else {
            ""
        };
        format!("{mixing}, depth {depth}{leaf}{scaling}{rotation}{squares}")
    }
}

/// Shapes that the parameters leave open. `n_rows` is the number of training rows; without a
/// validation set there is a single shape.
pub(crate) fn shapes(
    config: &SoftTreeConfig,
    n_rows: usize,
    has_validation: bool,
) -> Vec<TreeShape> {
    let leaf = config.leaf.unwrap_or(Leaf::Linear);
    let has_enough_rows = |depth: usize| n_rows >= MIN_ROWS_PER_LEAF << depth;
    let fixed_levels = |depth: usize| fixed_mixing_levels(config, depth);
    let shape = |depth: usize, mixing_levels: usize| TreeShape {
        depth,
        mixing_levels,
        leaf,
    };
    let mut shapes: Vec<TreeShape> = match (config.depth, config.leaf_mixing) {
        (Some(depth), Some(_)) => vec![shape(depth, fixed_levels(depth).unwrap_or(0))],
        (Some(depth), None) => (0..=depth).map(|levels| shape(depth, levels)).collect(),
        (None, Some(_)) => DEPTHS
            .filter(|&depth| has_enough_rows(depth))
            .map(|depth| shape(depth, fixed_levels(depth).unwrap_or(0).min(depth)))
            .collect(),
        (None, None) => default_shapes(config.leaf)
            .filter(|shape| has_enough_rows(shape.depth))
            .collect(),
    };
    if config.depth.is_none() {
        shapes.retain(|shape| shape.depth <= config.max_depth);
    }
    if shapes.is_empty() {
        shapes.push(shape(1, fixed_levels(1).unwrap_or(0).min(1)));
    }
    if !has_validation && shapes.len() > 1 {
        let depth = config
            .depth
            .unwrap_or(if has_enough_rows(DEFAULT_SHAPE.depth) {
                DEFAULT_SHAPE.depth
            } else {
                1
            });
        let levels = fixed_levels(depth).unwrap_or(DEFAULT_SHAPE.mixing_levels.min(depth));
        shapes = vec![shape(depth, levels)];
    }
    shapes
}

/// The shapes with at most [`MAX_WEIGHTS_PER_ROW`] weights per row, or those with the fewest
/// weights.
pub(crate) fn small_enough(
    mut shapes: Vec<TreeShape>,
    n_rows: usize,
    n_weights: impl Fn(&TreeShape) -> usize,
) -> Vec<TreeShape> {
    let fewest = shapes.iter().map(&n_weights).min().unwrap_or(0);
    let max_weights = fewest.max(MAX_WEIGHTS_PER_ROW * n_rows);
    shapes.retain(|shape| n_weights(shape) <= max_weights);
    shapes
}

/// Mixing levels of a tree of this depth, if the leaf mixing is given.
fn fixed_mixing_levels(config: &SoftTreeConfig, depth: usize) -> Option<usize> {
    config.leaf_mixing.map(|mixing| match mixing {
        LeafMixing::Blend => 0,
        LeafMixing::Mixture => depth,
        LeafMixing::Hybrid => config.mixing_levels.unwrap_or(depth.div_ceil(2)),
    })
}

/// The default shapes. If the leaf model is given, it replaces the linear leaves, and the shapes
/// with constant leaves are left out.
fn default_shapes(leaf: Option<Leaf>) -> impl Iterator<Item = TreeShape> {
    SHAPES
        .iter()
        .filter(move |shape| leaf.is_none() || shape.leaf == Leaf::Linear)
        .map(move |&shape| TreeShape {
            leaf: leaf.unwrap_or(shape.leaf),
            ..shape
        })
}

/// The encoding without optional transformations, unless the parameters ask for them.
pub(crate) fn plain_encoding(config: &SoftTreeConfig) -> Encoding {
    Encoding {
        scaling: config.scaling.unwrap_or(Scaling::Standard),
        rotation: config.rotation.unwrap_or(Rotation::None),
        squares: config.squares.unwrap_or(false),
        max_categories: config.max_categories,
    }
}

/// Encodings besides the plain one that the parameters leave open.
pub(crate) fn other_encodings(config: &SoftTreeConfig, features: &Table) -> Vec<Encoding> {
    let plain = plain_encoding(config);
    let rotate = config.rotation.is_none() && Encoder::can_rotate(features);
    let square = config.squares.is_none() && Encoder::can_square(features);
    let rotated = Encoding {
        rotation: Rotation::Pca,
        ..plain
    };
    let mut encodings = Vec::new();
    encodings.extend(rotate.then_some(rotated));
    encodings.extend(config.scaling.is_none().then_some(Encoding {
        scaling: Scaling::Quantile,
        ..plain
    }));
    encodings.extend(square.then_some(Encoding {
        squares: true,
        ..plain
    }));
    // squares of rotated inputs contain products of the inputs: a general quadratic form
    encodings.extend((rotate && square).then_some(Encoding {
        squares: true,
        ..rotated
    }));
    encodings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_with_too_many_weights_for_the_rows_are_left_out_but_for_the_smallest() {
        let all: Vec<TreeShape> = SHAPES.to_vec();
        let weights = |n_inputs: usize| {
            move |shape: &TreeShape| {
                let leaf_width = match shape.leaf {
                    Leaf::Linear => n_inputs + 1,
                    Leaf::Constant => 1,
                };
                ((1 << shape.depth) - 1) * (n_inputs + 1) + 2 * (1 << shape.depth) * leaf_width
            }
        };
        // on a narrow table the number of rows alone decides
        assert_eq!(small_enough(all.clone(), 512, weights(60)), all);
        let wide = small_enough(all.clone(), 400, weights(300));
        assert!(
            wide.contains(&TreeShape::linear(3, 0)) && !wide.contains(&TreeShape::linear(5, 0))
        );
        assert!(wide.contains(&TreeShape::constant(5, 0)));
        let widest = small_enough(all, 20, weights(20_000));
        assert_eq!(widest, [TreeShape::linear(2, 0)]);
    }
}
