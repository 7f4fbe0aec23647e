//! Leaf likelihoods: the log density of a target given a component's channels, and its gradient.

use crate::numerics::real::{LANES, Lanes, Real, gate, softplus};

/// ln(2 pi) / 2.
pub(crate) const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_7;

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
    /// Log density of `target` given the channels `z`; writes its gradient to `dz`.
    #[inline(always)]
    pub(crate) fn log_density<T: Real>(
        self,
        z: &[Lanes<T>],
        target: &Lanes<T>,
        dz: &mut [Lanes<T>],
    ) -> Lanes<T> {
        match self {
            Self::Normal { floor } => normal(T::of(floor), z, target, dz),
            Self::KnownNoise { sd } => known_noise(T::of(sd), z, target, dz),
            Self::Categorical => categorical(z, target, dz),
        }
    }

    /// Standard deviation of a component with raw scale `raw`.
    #[inline(always)]
    pub(crate) fn sd<T: Real>(self, raw: T) -> T {
        match self {
            Self::Normal { floor } => softplus(raw) + T::of(floor),
            Self::KnownNoise { sd } => T::of(sd),
            Self::Categorical => T::ONE,
        }
    }
}

/// With `u = (y - m)/s`: `log f = -u^2/2 - ln s - ln(2 pi)/2`, `d/dm = u/s`,
/// `d/d raw = (u^2 - 1)/s sigmoid(raw)`.
#[inline(always)]
fn normal<T: Real>(floor: T, z: &[Lanes<T>], target: &Lanes<T>, dz: &mut [Lanes<T>]) -> Lanes<T> {
    let (mean, raw, target) = (z[0], z[1], *target);
    let mut out = Lanes::of(T::ZERO);
    let (mut d_mean, mut d_raw) = (out, out);
    for lane in 0..LANES {
        let (d_soft, soft, _) = gate(raw[lane]);
        let sd = floor + soft;
        let inverse = T::ONE / sd;
        let u = (target[lane] - mean[lane]) * inverse;
        out[lane] = -(T::of(0.5) * u).fma(u, sd.ln() + T::of(HALF_LN_TWO_PI));
        d_mean[lane] = u * inverse;
        d_raw[lane] = (u * u - T::ONE) * inverse * d_soft;
    }
    (dz[0], dz[1]) = (d_mean, d_raw);
    out
}

#[inline(always)]
fn known_noise<T: Real>(sd: T, z: &[Lanes<T>], target: &Lanes<T>, dz: &mut [Lanes<T>]) -> Lanes<T> {
    let inverse = T::ONE / sd;
    let constant = sd.ln() + T::of(HALF_LN_TWO_PI);
    let mut out = Lanes::of(T::ZERO);
    for lane in 0..LANES {
        let u = (target[lane] - z[0][lane]) * inverse;
        out[lane] = -(T::of(0.5) * u).fma(u, constant);
        dz[0][lane] = u * inverse;
    }
    for d_raw in &mut dz[1..] {
        *d_raw = Lanes::of(T::ZERO);
    }
    out
}

/// `log f = z_y - ln sum_k e^{z_k}`, `d/dz_k = [k = y] - softmax_k`.
#[inline(always)]
fn categorical<T: Real>(z: &[Lanes<T>], target: &Lanes<T>, dz: &mut [Lanes<T>]) -> Lanes<T> {
    let mut out = Lanes::of(T::ZERO);
    let mut max_logit = z[0];
    for logits in &z[1..] {
        for lane in 0..LANES {
            max_logit[lane] = max_logit[lane].largest(logits[lane]);
        }
    }
    let mut sum = Lanes::of(T::ZERO);
    for (class, logits) in z.iter().enumerate() {
        for lane in 0..LANES {
            let e = (logits[lane] - max_logit[lane]).exp();
            dz[class][lane] = e;
            sum[lane] += e;
        }
    }
    for lane in 0..LANES {
        out[lane] = -max_logit[lane] - sum[lane].ln();
        sum[lane] = T::ONE / sum[lane];
    }
    for (class, logits) in z.iter().enumerate() {
        let code = T::of(class as f64);
        for lane in 0..LANES {
            let is_target = target[lane] == code;
            out[lane] += if is_target { logits[lane] } else { T::ZERO };
            dz[class][lane] =
                (if is_target { T::ONE } else { T::ZERO }) - dz[class][lane] * sum[lane];
        }
    }
    out
}
