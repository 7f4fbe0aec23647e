//! Knowledge uncertainty away from the training rows.
//!
//! The members of a tree model are functions that were trained on the same rows. In a gap between
//! the rows, and beyond them, they agree more than the data justify: hard trees predict a constant
//! there, and variational posteriors are too narrow. A small Gaussian process, fitted to a sample of
//! the same rows, knows how far the target can move over a distance that the rows do not cover. With
//! its mean `m`, the variance `v` of its function, and the largest such variance `b` and the largest
//! squared residual `r` at held-out training rows that are not far from all others, a row has the weight
//!
//! `w = max(0, 1 - b/v, 1 - (r + 9 s)/(μ - m)²)`
//!
//! of a new row, where `μ` is the mean and `s` the total variance of the model: the process is unsure
//! about it, or contradicts the model (regression only). The process expects the variance
//!
//! `c = 1.5 max(0, v - b) + w (μ - m)²`.
//!
//! The first term is the variance of the function of the process, the second the disagreement of the
//! two means. With the variance `k` of the members' means, the knowledge variance becomes
//! `(1 - w) k + max(w k, c)`: nothing changes where `w` is 0, and far from the rows the larger of the
//! two counts.
//!
//! The term `e² = max(w k, c)` widens the components of every member, so densities, quantiles and scores
//! contain it; the deviations of the members' means shrink by `sqrt(1 - w)`. So the density is smooth
//! where few members disagree by more than their noise. Members differ in the share of `e²` they get,
//! so that the mixture over the members has the tails of Student's t distribution with 4 degrees of
//! freedom. As functions, members keep their own deviations and differ further by a multiple of smooth
//! random functions `z(x)`. Members that satisfy constraints keep their means and get `max(0, c - w k)`.
//!
//! For classes the process is fitted to their indices. Members then differ in their logits, by
//! `l e(x) z(x)` for each class with a constant `l` and without the disagreement of the means.

mod fit;
mod member_functions;
mod process;
mod stored;
mod tails;
mod widen;

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::data::encoding::Encoder;
use crate::data::table::Rows;
use crate::data::target::TargetUnits;
use crate::gaussian_process::points::Points;
use crate::params::param_group;
use crate::predictive::block::{Block, Head};
use crate::rng::Key;

use member_functions::MemberFunctions;
use process::Process;
pub(crate) use tails::variance_factors;

param_group! {
    /// Knowledge uncertainty away from the training rows.
    away_from_data {
        /// Whether knowledge uncertainty grows away from the training rows, at least to what a small
        /// Gaussian process fitted to the same rows expects there.
        extrapolation: bool = true;
    }
}

/// The Gaussian process that widens the predictions of a model away from its training rows.
#[derive(Debug, Clone)]
pub struct Extrapolation {
    encoder: Encoder,
    /// Encoded inputs that the process uses.
    inputs: Vec<usize>,
    /// Units of the target of the process.
    units: TargetUnits,
    process: Process,
    /// Largest variance of the function at held-out training rows, or twice the largest without outlying ones.
    baseline: f64,
    /// Largest squared residual of the process at the same rows.
    residual_baseline: f64,
    /// Key of the functions of the members.
    key: Key,
    /// Whether the members differ as functions, too. Members that satisfy constraints do not.
    shifts_members: bool,
    /// What the members of the model get; computed at the first use. Snapshots of a fit share the
    /// process with its model, and may have fewer members.
    shares: OnceLock<MemberShares>,
}

/// Shares of the members in the added variance.
#[derive(Debug, Clone)]
struct MemberShares {
    n_outputs: usize,
    /// Factor of the added variance for each member; their mean is 1.
    tails: Vec<f64>,
    functions: MemberFunctions,
}

impl Extrapolation {
    /// The inputs of the process for rows of a table, divided by the length scales.
    fn scaled_points(&self, rows: &Rows<'_>) -> Points {
        let points = Points::encoded(&self.encoder, rows);
        let is_whole = self.inputs.len() == points.n_inputs();
        if is_whole {
            self.process.kernel.scaled(&points)
        } else {
            self.process.kernel.scaled(&points.inputs(&self.inputs))
        }
    }

    /// The same for a model whose members satisfy constraints: they stay the functions that they are.
    pub(crate) fn without_shifts(self) -> Self {
        Self {
            shifts_members: false,
            ..self
        }
    }

    fn shares(&self, block: &Block) -> Cow<'_, MemberShares> {
        let n_outputs = match block.head {
            Head::Normal { .. } => 1,
            Head::Categorical { classes } => classes,
        };
        let (n_inputs, n_members) = (self.inputs.len(), block.n_members);
        let compute = || MemberShares {
            n_outputs,
            tails: variance_factors(n_members),
            functions: MemberFunctions::new(n_inputs, n_members, n_outputs, self.key),
        };
        let kept = self.shares.get_or_init(compute);
        if kept.tails.len() == n_members && kept.n_outputs == n_outputs {
            Cow::Borrowed(kept)
        } else {
            Cow::Owned(compute())
        }
    }
}
