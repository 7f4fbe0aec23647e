//! Categorical likelihoods: logistic for two classes, softmax for more; soft trees have a logit per
//! class for two classes too ([`Softmax`]).
//!
//! Two classes: `raw = (f)`, `p = sigmoid(f)` is the probability of the second class; gradient
//! `y - p`, hessian `p (1 - p)`. `C` classes: one logit per class, `p = softmax(f)`; gradient
//! `[y = k] - p_k`, hessian `C/(C - 1) p_k (1 - p_k)`. The factor `C/(C - 1)` accounts for the
//! simultaneous steps of the other logits (Friedman 2001).

use crate::likelihood::{Likelihood, OutputNames, OutputTerms, TargetDensity};
use crate::numerics::logspace::softmax_rows;
use crate::numerics::real::{LANES, Lanes, Real};
use crate::rng::{Key, shuffle};

/// Least hessian of a row of weight one: bounds the steps in leaves whose rows have probabilities
/// near 0 or 1.
const MIN_HESSIAN: f32 = 1e-3;
/// Largest step of a logit in one leaf.
const MAX_STEP: f64 = 4.0;
/// Hessian of a typical row, the unit of `l2`.
const TYPICAL_HESSIAN: f64 = 0.25;
/// Rows whose probabilities are computed at once; they stay in the first-level cache.
const CHUNK: usize = 64;
/// Least probability in a log-likelihood.
const MIN_PROBABILITY: f64 = 1e-12;

/// Derivative of the log-likelihood with respect to the logit of a class with probability `p`.
#[inline(always)]
fn d_logit<T: Real>(is_target: bool, p: T) -> T {
    (if is_target { T::ONE } else { T::ZERO }) - p
}

/// Derivative of a weighted sum of log-likelihoods with respect to the logit of a class, from the
/// weight of the rows of this class and of all rows.
pub(crate) fn d_logit_of_sums(of_class: f64, total: f64, p: f64) -> f64 {
    of_class - total * p
}

/// Writes `e^{z_k - max z}` for the logits `z`; returns `max z` and the sum of the exponentials.
#[inline(always)]
pub(crate) fn exponentials<T: Real>(
    logits: &[Lanes<T>],
    out: &mut [Lanes<T>],
) -> (Lanes<T>, Lanes<T>) {
    let mut max_logit = logits[0];
    for logit in &logits[1..] {
        for lane in 0..LANES {
            max_logit[lane] = max_logit[lane].largest(logit[lane]);
        }
    }
    let mut sum = Lanes::of(T::ZERO);
    for (out, logit) in out.iter_mut().zip(logits) {
        for lane in 0..LANES {
            let e = (logit[lane] - max_logit[lane]).exp();
            out[lane] = e;
            sum[lane] += e;
        }
    }
    (max_logit, sum)
}

/// Density of the class with one logit per class; targets are class numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Softmax;

impl TargetDensity for Softmax {
    fn output_names(&self) -> OutputNames {
        Multiclass::OUTPUT_NAMES
    }

    /// `log f = z_y - ln sum_k e^{z_k}`, `d/dz_k = [k = y] - softmax_k`.
    #[inline(always)]
    fn log_density<T: Real>(
        &self,
        outputs: &[Lanes<T>],
        target: &Lanes<T>,
        gradient: &mut [Lanes<T>],
    ) -> Lanes<T> {
        let mut out = Lanes::of(T::ZERO);
        let (max_logit, mut sum) = exponentials(outputs, gradient);
        for lane in 0..LANES {
            out[lane] = -max_logit[lane] - sum[lane].ln();
            sum[lane] = T::ONE / sum[lane];
        }
        for (class, logits) in outputs.iter().enumerate() {
            let code = T::of(class as f64);
            for lane in 0..LANES {
                let is_target = target[lane] == code;
                out[lane] += if is_target { logits[lane] } else { T::ZERO };
                gradient[class][lane] = d_logit(is_target, gradient[class][lane] * sum[lane]);
            }
        }
        out
    }
}

/// Likelihood of two classes. The entries of a row are gradient and hessian.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binary;

impl Binary {
    pub(crate) const OUTPUT_NAMES: OutputNames = OutputNames::Each(&["logit"]);
}

impl Likelihood<2> for Binary {
    fn outputs(&self, l2: f64, _: &[f64; 2]) -> Vec<OutputTerms> {
        vec![OutputTerms {
            gradient: 0,
            hessian: 1,
            factor: 1.0,
            l2: TYPICAL_HESSIAN * l2,
        }]
    }

    fn weight_entry(&self) -> usize {
        1
    }

    fn start(&self, target: &[f32], weight: &[f32]) -> Vec<f64> {
        let frequencies = frequencies(2, target, weight);
        vec![(frequencies[1] / frequencies[0]).ln()]
    }

    fn grad_hess(&self, raw: &[f32], target: &[f32], weight: &[f32], out: &mut [[f32; 2]]) {
        for (((out, &logit), &y), &w) in out.iter_mut().zip(raw).zip(target).zip(weight) {
            let p = 1.0 / (1.0 + (-logit).exp());
            *out = [w * (y - p), w * (p * (1.0 - p)).max(MIN_HESSIAN)];
        }
    }

    fn step_limit(&self, _: usize) -> f64 {
        MAX_STEP
    }

    fn log_densities(&self, raw: &[f32], target: &[f32], out: &mut [f64]) {
        for ((out, &logit), &y) in out.iter_mut().zip(raw).zip(target) {
            let logit = f64::from(logit) * f64::from(2.0 * y - 1.0);
            // ln sigmoid(logit), without overflow
            *out = logit.min(0.0) - (-logit.abs()).exp().ln_1p();
        }
    }
}

/// The entry of the first hessian if a row of [`Multiclass`] has `L` entries. Hessians start at a
/// multiple of the lanes of a vector, so that the split search loads them in whole vectors.
pub(crate) const fn first_hessian<const L: usize>() -> usize {
    match L {
        12 => 4,
        24 => 8,
        _ => L / 2,
    }
}

/// Most classes that one tree updates.
pub(crate) const MAX_SHOWN: usize = 31;

/// Likelihood of several classes. The entries of a row are the gradients of the updated classes,
/// their hessians from [`first_hessian`] on, and last the weight. With more than [`MAX_SHOWN`] classes every round draws the
/// classes that it updates.
#[derive(Debug, Clone)]
pub(crate) struct Multiclass {
    n_classes: usize,
    /// The updated classes, ascending; empty for all.
    updated: Vec<u16>,
}

impl Multiclass {
    pub(crate) const OUTPUT_NAMES: OutputNames = OutputNames::PerClass("logit");

    pub(crate) fn new(n_classes: usize) -> Self {
        Self {
            n_classes,
            updated: Vec::new(),
        }
    }

    /// Classes that the entries describe.
    fn updated_classes(&self) -> Vec<usize> {
        if self.updated.is_empty() {
            return (0..self.n_classes).collect();
        }
        self.updated.iter().map(|&class| class.into()).collect()
    }
}

impl<const L: usize> Likelihood<L> for Multiclass {
    fn outputs(&self, l2: f64, _: &[f64; L]) -> Vec<OutputTerms> {
        let n = self.updated_classes().len();
        let output = |at: usize| OutputTerms {
            gradient: at,
            hessian: first_hessian::<L>() + at,
            factor: 1.0,
            l2: TYPICAL_HESSIAN * l2,
        };
        (0..n).map(output).collect()
    }

    fn for_round(&self, key: Key) -> Option<Self> {
        (self.n_classes > MAX_SHOWN).then(|| {
            let mut classes: Vec<u16> = (0..self.n_classes as u16).collect();
            shuffle(&mut key.rng(), &mut classes);
            classes.truncate(MAX_SHOWN);
            classes.sort_unstable();
            Self {
                updated: classes,
                ..*self
            }
        })
    }

    fn updated_outputs(&self) -> &[u16] {
        &self.updated
    }

    fn weight_entry(&self) -> usize {
        L - 1
    }

    fn start(&self, target: &[f32], weight: &[f32]) -> Vec<f64> {
        frequencies(self.n_classes, target, weight)
            .iter()
            .map(|frequency| frequency.ln())
            .collect()
    }

    fn grad_hess(&self, raw: &[f32], target: &[f32], weight: &[f32], out: &mut [[f32; L]]) {
        let n = self.n_classes;
        let factor = n as f32 / (n as f32 - 1.0);
        let mut p = vec![0.0_f32; CHUNK * n];
        let classes = self.updated_classes();
        let chunks = raw.chunks(CHUNK * n).zip(out.chunks_mut(CHUNK));
        let rows = target.chunks(CHUNK).zip(weight.chunks(CHUNK));
        for ((raw, out), (target, weight)) in chunks.zip(rows) {
            let p = &mut p[..raw.len()];
            softmax_rows(raw, n, p);
            let rows = p.chunks_exact(n).zip(target).zip(weight);
            for (((p, &y), &w), out) in rows.zip(out) {
                for (at, &class) in classes.iter().enumerate() {
                    let hessian = factor * p[class] * (1.0 - p[class]);
                    out[at] = w * d_logit(y as usize == class, p[class]);
                    out[first_hessian::<L>() + at] = w * hessian.max(MIN_HESSIAN);
                }
                out[L - 1] = w;
            }
        }
    }

    fn step_limit(&self, _: usize) -> f64 {
        MAX_STEP
    }

    fn log_densities(&self, raw: &[f32], target: &[f32], out: &mut [f64]) {
        let n = self.n_classes;
        let mut p = vec![0.0_f32; CHUNK * n];
        let chunks = raw.chunks(CHUNK * n).zip(target.chunks(CHUNK));
        for ((raw, target), out) in chunks.zip(out.chunks_mut(CHUNK)) {
            let p = &mut p[..raw.len()];
            softmax_rows(raw, n, p);
            for ((p, &y), out) in p.chunks_exact(n).zip(target).zip(out) {
                *out = f64::from(p[y as usize]).max(MIN_PROBABILITY).ln();
            }
        }
    }
}

/// Weighted class frequencies, with half a row added to every class so that none is zero.
fn frequencies(n_classes: usize, target: &[f32], weight: &[f32]) -> Vec<f64> {
    let mut sums = vec![0.5; n_classes];
    for (&y, &w) in target.iter().zip(weight) {
        sums[y as usize] += f64::from(w);
    }
    let total: f64 = sums.iter().sum();
    sums.iter().map(|sum| sum / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::central_difference;

    #[test]
    fn gradients_agree_with_central_differences() {
        for (logit, y) in [(0.3, 1.0), (-2.0, 0.0), (1.5, 0.0)] {
            let mut out = [[0.0; 2]];
            Binary.grad_hess(&[logit], &[y], &[1.0], &mut out);
            let exact = central_difference(
                |f| {
                    let p = 1.0 / (1.0 + (-f[0]).exp());
                    f64::from(y) * p.ln() + (1.0 - f64::from(y)) * (1.0 - p).ln()
                },
                &[f64::from(logit)],
            );
            assert!((f64::from(out[0][0]) - exact[0]).abs() < 1e-6);
        }
        let raw = [0.2_f32, -1.0, 0.7];
        let likelihood = Multiclass::new(3);
        let mut out = [[0.0; 8]];
        likelihood.grad_hess(&raw, &[2.0], &[1.0], &mut out);
        let exact = central_difference(
            |f| f[2] - f.iter().map(|f| f.exp()).sum::<f64>().ln(),
            &raw.map(f64::from),
        );
        for class in 0..3 {
            assert!((f64::from(out[0][class]) - exact[class]).abs() < 1e-6);
        }
        assert!((out[0][7] - 1.0).abs() < 1e-6);
    }
}
