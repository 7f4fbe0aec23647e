//! The likelihoods of soft trees, chosen at run time: the channels of a leaf are the outputs.

use crate::likelihood::categorical::Softmax;
use crate::likelihood::normal::{KnownNoise, SoftplusNormal};
use crate::likelihood::{OutputNames, TargetDensity};
use crate::numerics::real::{Lanes, Real};

/// Distribution of the target under a component. Values are stored in model files by these names.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) enum SoftLikelihood {
    /// Normal with channels (mean, raw scale): sd = softplus(raw) + floor.
    Normal {
        /// Lower bound on the standard deviation.
        floor: f64,
    },
    /// Normal with a known standard deviation; the raw scale channel, if there is one, is not used.
    KnownNoise {
        /// Standard deviation of the target.
        sd: f64,
    },
    /// Categorical with one logit per class; targets are class numbers.
    Categorical,
}

impl SoftLikelihood {
    /// Standard deviation of a component with raw scale `raw`.
    #[inline(always)]
    pub(crate) fn sd<T: Real>(self, raw: T) -> T {
        match self {
            Self::Normal { floor } => SoftplusNormal { floor }.sd(raw),
            Self::KnownNoise { sd } => T::of(sd),
            Self::Categorical => T::ONE,
        }
    }
}

impl TargetDensity for SoftLikelihood {
    fn output_names(&self) -> OutputNames {
        match *self {
            // the names are those of a Normal with a scale channel: the channel may exist
            Self::Normal { .. } | Self::KnownNoise { .. } => {
                SoftplusNormal { floor: 0.0 }.output_names()
            }
            Self::Categorical => Softmax.output_names(),
        }
    }

    #[inline(always)]
    fn log_density<T: Real>(
        &self,
        outputs: &[Lanes<T>],
        target: &Lanes<T>,
        gradient: &mut [Lanes<T>],
    ) -> Lanes<T> {
        match *self {
            Self::Normal { floor } => {
                SoftplusNormal { floor }.log_density(outputs, target, gradient)
            }
            Self::KnownNoise { sd } => KnownNoise { sd }.log_density(outputs, target, gradient),
            Self::Categorical => Softmax.log_density(outputs, target, gradient),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihood::Likelihood;
    use crate::likelihood::categorical::Multiclass;
    use crate::likelihood::normal::Normal;
    use crate::numerics::real::inverse_softplus;
    use softwood_testkit::{central_difference, close};

    /// Log density and gradient of one row.
    fn of_row(likelihood: SoftLikelihood, outputs: &[f64], y: f64) -> (f64, Vec<f64>) {
        let lanes: Vec<Lanes<f64>> = outputs.iter().map(|&output| Lanes::of(output)).collect();
        let mut gradient = lanes.clone();
        let value = likelihood.log_density(&lanes, &Lanes::of(y), &mut gradient);
        (
            value[0],
            gradient.iter().map(|partial| partial[0]).collect(),
        )
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        let cases: [(SoftLikelihood, &[f64], f64); 4] = [
            (SoftLikelihood::Normal { floor: 0.1 }, &[0.3, -0.4], 1.1),
            (SoftLikelihood::KnownNoise { sd: 0.7 }, &[0.3, -0.4], 1.1),
            (SoftLikelihood::KnownNoise { sd: 0.7 }, &[-1.0], 1.1),
            (SoftLikelihood::Categorical, &[0.2, -1.0, 0.7], 2.0),
        ];
        for (likelihood, outputs, y) in cases {
            let value = |outputs: &[f64]| of_row(likelihood, outputs, y).0;
            let (_, gradient) = of_row(likelihood, outputs, y);
            close(&gradient, &central_difference(value, outputs), 1e-8);
        }
    }

    #[test]
    fn soft_and_boosted_trees_have_the_same_densities() {
        let (floor, sd, y) = (1e-3, 0.6_f64, 1.25);
        let soft = SoftLikelihood::Normal { floor };
        let (normal, _) = of_row(soft, &[0.5, inverse_softplus(sd - floor)], y);
        let mut boosted = [0.0];
        Normal { floor }.log_densities(&[0.5, sd.ln() as f32], &[y as f32], &mut boosted);
        close(&boosted, &[normal], 1e-6);
        let (class, _) = of_row(SoftLikelihood::Categorical, &[0.25, -1.0, 0.75], 1.0);
        let multiclass: &dyn Likelihood<8> = &Multiclass::new(3);
        multiclass.log_densities(&[0.25, -1.0, 0.75], &[1.0], &mut boosted);
        close(&boosted, &[class], 1e-6);
    }

    #[test]
    fn outputs_of_one_name_have_one_role() {
        let normal = SoftLikelihood::Normal { floor: 0.0 }.output_names();
        assert_eq!([0, 1].map(|output| normal.role(output)), [0, 1]);
        assert_eq!(normal.n_outputs(0), 2);
        let classes = SoftLikelihood::Categorical.output_names();
        assert_eq!([0, 1, 2].map(|output| classes.role(output)), [0, 0, 0]);
        assert_eq!((classes.n_outputs(3), classes.name(2)), (3, "logit"));
    }
}
