//! A start that writes a given tree: the network is trained to give every node of the tree its
//! split.

use crate::inference::radam::RectifiedAdam;
use crate::recurrent::bin_inputs::BinInputs;
use crate::recurrent::network::NetworkShape;
use crate::recurrent::unroll::{
    BLOCK, BlockInputs, Decisions, Network, Sharpness, Tape, UnrollKernels, UnrollScratch,
};
use crate::recurrent::unroll_backward::{HeadGradient, add_weight_gradients};
use crate::stop::is_cancelled;
use crate::trees::structure::TreeStructure;

/// Steps of the training.
const N_STEPS: usize = 600;
const LEARNING_RATE: f64 = 0.02;
/// Weight of the squared error of a threshold, beside the log share of its input.
const THRESHOLD_WEIGHT: f64 = 3.0;

/// The split that a node should have: a row goes right if `bias + slope x` is positive for this
/// input; the slope is about one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TargetSplit {
    pub(crate) input: usize,
    pub(crate) bias: f64,
    pub(crate) slope: f64,
}

/// The splits of the nodes of a tree in the order of
/// [`node_splits`](crate::recurrent::node_splits::node_splits), down to the depth of the network; a
/// node whose condition is not one of a single input is free, and so are the nodes below it.
pub(crate) fn target_splits(
    shape: &NetworkShape,
    inputs: &BinInputs,
    structure: &TreeStructure,
) -> Vec<Option<TargetSplit>> {
    let mut splits = vec![None; shape.n_leaves() - 1];
    let TreeStructure::General {
        conditions,
        children,
    } = structure
    else {
        return splits;
    };
    let mut places = Vec::new();
    if !conditions.is_empty() {
        places.push((0_usize, 0_usize));
    }
    while let Some((at, node)) = places.pop() {
        let Some((input, threshold, is_right)) = inputs.of_condition(&conditions[at]) else {
            continue;
        };
        let Some(split) = splits.get_mut(node) else {
            continue;
        };
        let sign = if is_right { 1.0 } else { -1.0 };
        *split = Some(TargetSplit {
            input,
            bias: -sign * threshold,
            slope: sign,
        });
        for (side, &child) in children[at].iter().enumerate() {
            if child >= 0 {
                places.push((child as usize, 2 * node + 1 + side));
            }
        }
    }
    splits
}

/// Trains the weights so that the nodes have these splits, in the order of
/// [`node_splits`](crate::recurrent::node_splits::node_splits); a node without a target is free.
pub(crate) fn imitate(shape: NetworkShape, targets: &[Option<TargetSplit>], weights: &mut [f32]) {
    // one row per node of the last level: its route passes through all nodes above
    let n_rows = 1_usize << (shape.depth - 1);
    let n_blocks = n_rows.div_ceil(BLOCK);
    let mut tape = Tape::new(&shape, true);
    let mut scratch = UnrollScratch::new(&shape);
    let mut optimiser = RectifiedAdam::new(shape.n_weights());
    let mut of_heads = vec![0.0; shape.n_head_rows() * tape.stride()];
    let zeros = vec![0.0; shape.n_inputs * BLOCK];
    let inputs = BlockInputs {
        values: &zeros,
        stride: BLOCK,
        start: 0,
    };
    let mut gradient = vec![0.0; weights.len()];
    for step in 0..N_STEPS {
        if is_cancelled() {
            return;
        }
        gradient.fill(0.0);
        let network = Network::new(shape, weights, Sharpness::PUBLISHED);
        for block in 0..n_blocks {
            let path = block_path(&shape, block, n_rows);
            f32::forward(
                &network,
                &inputs,
                Decisions::Given(&path),
                &mut tape,
                &mut scratch,
            );
            of_heads.fill(0.0);
            for row in 0..BLOCK.min(n_rows - block * BLOCK) {
                let route = Route {
                    shape: &shape,
                    n_rows,
                    row: block * BLOCK + row,
                };
                route.fill(targets, &tape, row, &mut of_heads);
            }
            let entering = HeadGradient::OfHeads(&of_heads);
            f32::backward_lanes(
                &network,
                &inputs,
                &tape,
                entering,
                &mut scratch,
                &mut gradient,
            );
            add_weight_gradients(&shape, &tape, &mut scratch, &mut gradient);
        }
        let progress = step as f64 / N_STEPS as f64;
        optimiser.ascend(weights, &gradient, LEARNING_RATE * (1.0 - progress));
    }
}

/// Decisions of the routes of a block, steps x [`BLOCK`].
fn block_path(shape: &NetworkShape, block: usize, n_rows: usize) -> Vec<f32> {
    let mut path = vec![0.0; shape.depth * BLOCK];
    for row in 0..BLOCK.min(n_rows - block * BLOCK) {
        for step in 0..shape.depth - 1 {
            let bit = (block * BLOCK + row) >> (shape.depth - 2 - step) & 1;
            path[step * BLOCK + row] = bit as f32;
        }
    }
    path
}

/// The route to a node of the last level.
struct Route<'a> {
    shape: &'a NetworkShape,
    n_rows: usize,
    row: usize,
}

impl Route<'_> {
    /// Writes the gradient with respect to the heads along the route; every node has the same weight.
    fn fill(
        &self,
        targets: &[Option<TargetSplit>],
        tape: &Tape<f32>,
        row_of_block: usize,
        of_heads: &mut [f32],
    ) {
        let n_inputs = self.shape.n_inputs;
        for step in 0..self.shape.depth {
            let on_level = self.row >> (self.shape.depth - 1 - step);
            let Some(Some(target)) = targets.get((1 << step) - 1 + on_level) else {
                continue;
            };
            // a node of level `step` lies on many routes; the weights of all nodes add up to one
            let share = (1_usize << step) as f64 / self.n_rows as f64;
            let weight = (share / targets.len() as f64) as f32;
            let at = |row: usize| row * tape.stride() + step * BLOCK + row_of_block;
            let logit = |input: usize| tape.heads[at(input)];
            let largest = (0..n_inputs).map(logit).fold(f32::MIN, f32::max);
            let total: f32 = (0..n_inputs)
                .map(|input| (logit(input) - largest).exp())
                .sum();
            for input in 0..n_inputs {
                let share = (logit(input) - largest).exp() / total;
                let wanted = f32::from(u8::from(input == target.input));
                of_heads[at(input)] = weight * (wanted - share);
            }
            let scale = THRESHOLD_WEIGHT as f32;
            for (head, wanted) in [(1, target.bias), (2, target.slope)] {
                let place = at(head * n_inputs + target.input);
                of_heads[place] = weight * scale * (wanted as f32 - tape.heads[place]);
            }
        }
    }
}
