//! Learning rate, sharpness and KL weight over a training run.

use crate::recurrent::unroll::Sharpness;

/// Factor of the logits of the inputs at the end of a run; it is 1 at the beginning.
pub(crate) const FINAL_SHARE: f64 = 4.0;
/// Share of a run in which the learning rate is constant.
const CONSTANT_SHARE: f64 = 0.5;

/// The largest values of a run; `progress` is the share of its steps that are done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RouteSchedule {
    pub(crate) learning_rate: f64,
    pub(crate) kl_weight: f64,
    pub(crate) initial_sharpness: f64,
    pub(crate) final_sharpness: f64,
    pub(crate) decision_sharpness: f64,
}

impl RouteSchedule {
    /// Learning rate: constant, then falling to zero as a cosine.
    pub(crate) fn learning_rate(&self, progress: f64) -> f64 {
        if progress < CONSTANT_SHARE {
            return self.learning_rate;
        }
        let falling = (progress - CONSTANT_SHARE) / (1.0 - CONSTANT_SHARE);
        self.learning_rate * 0.5 * (1.0 + (std::f64::consts::PI * falling).cos())
    }

    /// Weight of the KL divergence, which falls to zero: the tree ends as a hard one.
    pub(crate) fn kl_weight(&self, progress: f64) -> f64 {
        self.kl_weight * (1.0 - progress)
    }

    /// Sharpness of the decisions, which grows by a constant factor per step.
    pub(crate) fn sharpness(&self, progress: f64) -> Sharpness {
        let grown = self.final_sharpness / self.initial_sharpness;
        Sharpness {
            share: FINAL_SHARE.powf(progress),
            threshold: self.initial_sharpness * grown.powf(progress),
            decision: self.decision_sharpness,
        }
    }
}
