//! An average with its uncertainty: from the values of the members of a model and the variance of
//! the scores of the rows.

use rand_distr::{Distribution as _, StandardNormal};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::error::{Error, Result};
use crate::rng::Key;

/// Degrees of freedom beyond which a t distribution is a Normal one.
const MAX_FREEDOM: f64 = 1e6;

/// An estimated average with its interval and draws of its distribution.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EffectEstimate {
    /// Estimate.
    pub mean: f64,
    /// Standard deviation (standard error) of the estimate.
    pub std: f64,
    /// Probability of the interval.
    pub level: f64,
    /// Lower end of the central interval.
    pub lower: f64,
    /// Upper end of the central interval.
    pub upper: f64,
    /// Draws of the average: those of the members plus the sampling error of the scores.
    #[serde(skip)]
    pub draws: Vec<f64>,
}

impl EffectEstimate {
    /// The estimate of the quantity plus a constant.
    pub(super) fn shifted(self, by: f64) -> Self {
        Self {
            mean: self.mean + by,
            lower: self.lower + by,
            upper: self.upper + by,
            draws: self.draws.into_iter().map(|draw| draw + by).collect(),
            ..self
        }
    }
}

/// What an estimate is made from.
#[derive(Debug, Clone)]
pub(super) struct EstimateParts {
    /// The average under each member.
    pub(super) members: Vec<f64>,
    /// Variance of the sampling error, which the members do not show.
    pub(super) sampling_variance: f64,
}

impl EstimateParts {
    /// The estimate with a central interval of this level. The truth is taken for one more draw of
    /// the distribution that the members come from, so that few members give a wide interval:
    /// Student's t with the degrees of freedom of Welch and Satterthwaite.
    ///
    /// # Errors
    /// When the level is not between 0 and 1.
    pub(super) fn estimate(self, level: f64, n_draws: usize, key: Key) -> Result<EffectEstimate> {
        check_level(level)?;
        let spread = MemberSpread::of(&self.members);
        let half = spread.half_width(self.sampling_variance, level);
        let (lower, upper) = (spread.mean - half, spread.mean + half);
        let mut rng = key.rng();
        let sampling_sd = self.sampling_variance.sqrt();
        let draws = (0..n_draws).map(|draw| {
            let z: f64 = StandardNormal.sample(&mut rng);
            self.members[draw % self.members.len()] + sampling_sd * z
        });
        Ok(EffectEstimate {
            mean: spread.mean,
            std: (spread.variance + self.sampling_variance).sqrt(),
            level,
            lower,
            upper,
            draws: draws.collect(),
        })
    }
}

/// Mean and variance over the members.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberSpread {
    pub(super) mean: f64,
    /// Unbiased variance; zero for a single member.
    pub(super) variance: f64,
    n_members: usize,
}

impl MemberSpread {
    pub(super) fn of(members: &[f64]) -> Self {
        let n = members.len() as f64;
        let mean = members.iter().sum::<f64>() / n;
        let squares: f64 = members.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            mean,
            variance: squares / (n - 1.0).max(1.0),
            n_members: members.len(),
        }
    }

    /// Half of the central interval of a new draw with a sampling error of the given variance.
    fn half_width(&self, sampling_variance: f64, level: f64) -> f64 {
        let n = self.n_members as f64;
        let member_variance = self.variance * (1.0 + 1.0 / n);
        let total = member_variance + sampling_variance;
        let freedom = (n - 1.0) * (total / member_variance).powi(2);
        total.sqrt() * t_quantile(0.5 + 0.5 * level, freedom)
    }
}

/// Half of the central interval of a new draw, in standard deviations of `n_members` members.
pub(super) fn half_widths_in_sd(n_members: usize, level: f64) -> f64 {
    let n = n_members as f64;
    (1.0 + 1.0 / n).sqrt() * t_quantile(0.5 + 0.5 * level, n - 1.0)
}

/// Quantile of Student's t; of the Normal distribution for many or undefined degrees of freedom.
fn t_quantile(level: f64, freedom: f64) -> f64 {
    let t = (freedom < MAX_FREEDOM)
        .then(|| StudentsT::new(0.0, 1.0, freedom).ok())
        .flatten();
    match t {
        Some(t) => t.inverse_cdf(level),
        None => Normal::standard().inverse_cdf(level),
    }
}

pub(super) fn check_level(level: f64) -> Result<()> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(Error::Parameters(vec![format!(
        "level {level}: expected a number above 0 and below 1"
    )]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn few_members_widen_the_interval_by_student_t() {
        // by hand: mean 2, variance 1, t(0.95; 2) = 2.91999, sqrt(4/3)
        let found = MemberSpread::of(&[1.0, 2.0, 3.0]).half_width(0.0, 0.9);
        let half = 2.919_985_580_355_516 * (4.0_f64 / 3.0).sqrt();
        close(&[found, half_widths_in_sd(3, 0.9)], &[half, half], 1e-9);
    }

    #[test]
    fn one_member_leaves_the_sampling_error() {
        let parts = EstimateParts {
            members: vec![2.0],
            sampling_variance: 0.25,
        };
        let found = parts.estimate(0.9, 4000, Key::from_seed(1)).unwrap();
        let half = 0.5 * 1.644_853_626_951_472;
        close(
            &[found.lower, found.upper, found.std],
            &[2.0 - half, 2.0 + half, 0.5],
            1e-9,
        );
        let mean = found.draws.iter().sum::<f64>() / 4000.0;
        // the standard error of the mean is 0.008
        assert!((mean - 2.0).abs() < 0.05, "{mean}");
    }

    #[test]
    fn levels_outside_of_the_unit_interval_are_rejected() {
        for level in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(check_level(level).is_err());
        }
    }
}
