//! Standard Normal numbers in bulk: sixteen xoshiro128++ generators side by side and the Box-Muller
//! transform. The numbers of a stream depend on its key alone, not on how the caller divides a
//! slice into calls of whole chunks.

use multiversion::multiversion;
use rand_core::Rng;

use crate::numerics::real::{LANES, Real};
use crate::rng::Key;

/// A stream of standard Normal numbers.
#[derive(Debug, Clone)]
pub(crate) struct Gaussian {
    state: [[u32; LANES]; 4],
}

impl Gaussian {
    pub(crate) fn new(key: Key) -> Self {
        let mut rng = key.rng();
        let mut state = [[0; LANES]; 4];
        for word in state.as_flattened_mut() {
            *word = rng.next_u32();
        }
        Self { state }
    }

    /// Fills `out` with independent standard Normal numbers.
    pub(crate) fn fill(&mut self, out: &mut [f32]) {
        fill(&mut self.state, out);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
fn fill(state: &mut [[u32; LANES]; 4], out: &mut [f32]) {
    let mut chunks = out.chunks_exact_mut(2 * LANES);
    for chunk in &mut chunks {
        let (cosines, sines) = pair(state);
        chunk[..LANES].copy_from_slice(&cosines);
        chunk[LANES..].copy_from_slice(&sines);
    }
    let remainder = chunks.into_remainder();
    if !remainder.is_empty() {
        let (cosines, sines) = pair(state);
        for (index, value) in remainder.iter_mut().enumerate() {
            *value = if index < LANES {
                cosines[index]
            } else {
                sines[index - LANES]
            };
        }
    }
}

/// Two Normal numbers per lane: `r cos(2 pi u)` and `r sin(2 pi u)` with `r = sqrt(-2 ln v)`.
#[inline(always)]
fn pair(state: &mut [[u32; LANES]; 4]) -> ([f32; LANES], [f32; LANES]) {
    let (u, v) = (next(state), next(state));
    let (mut cosines, mut sines) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let positive = ((v[lane] >> 8) as f32 + 1.0) * (1.0 / 16_777_216.0);
        let radius = (-2.0 * Real::ln(positive)).sqrt();
        let half_turn = std::f32::consts::PI * ((u[lane] >> 8) as f32 * (1.0 / 16_777_216.0) - 0.5);
        let (sine, cosine) = sine_cosine(half_turn);
        cosines[lane] = radius * (cosine * cosine - sine * sine);
        sines[lane] = radius * (2.0 * sine * cosine);
    }
    (cosines, sines)
}

/// Taylor series of sine and cosine on [-pi/2, pi/2], absolute error below 1e-7.
#[inline(always)]
fn sine_cosine(x: f32) -> (f32, f32) {
    let z = x * x;
    let mut s = -1.0 / 39_916_800.0;
    s = z.mul_add(s, 1.0 / 362_880.0);
    s = z.mul_add(s, -1.0 / 5040.0);
    s = z.mul_add(s, 1.0 / 120.0);
    s = z.mul_add(s, -1.0 / 6.0);
    s = z.mul_add(s, 1.0);
    let mut c = 1.0 / 479_001_600.0;
    c = z.mul_add(c, -1.0 / 3_628_800.0);
    c = z.mul_add(c, 1.0 / 40_320.0);
    c = z.mul_add(c, -1.0 / 720.0);
    c = z.mul_add(c, 1.0 / 24.0);
    c = z.mul_add(c, -0.5);
    c = z.mul_add(c, 1.0);
    (s * x, c)
}

/// One step of xoshiro128++ in every lane.
#[inline(always)]
fn next(state: &mut [[u32; LANES]; 4]) -> [u32; LANES] {
    let mut out = [0; LANES];
    for lane in 0..LANES {
        let [a, b, c, d] = [
            state[0][lane],
            state[1][lane],
            state[2][lane],
            state[3][lane],
        ];
        out[lane] = a.wrapping_add(d).rotate_left(7).wrapping_add(a);
        let (c2, d2) = (c ^ a, d ^ b);
        state[1][lane] = b ^ c2;
        state[0][lane] = a ^ d2;
        state[2][lane] = c2 ^ (b << 9);
        state[3][lane] = d2.rotate_left(11);
    }
    out
}

/// `n` standard Normal numbers of the stream `key`.
pub(crate) fn normals(key: Key, n: usize) -> Vec<f64> {
    let mut numbers = vec![0.0; n];
    Gaussian::new(key).fill(&mut numbers);
    numbers.into_iter().map(f64::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::{ks_distance, ks_limit};
    use statrs::distribution::{ContinuousCDF, Normal};

    #[test]
    fn numbers_follow_the_normal_distribution() {
        let mut numbers = vec![0.0_f32; 200_000];
        Gaussian::new(Key::from_seed(1)).fill(&mut numbers);
        let normal = Normal::standard();
        let sample: Vec<f64> = numbers.iter().map(|&x| f64::from(x)).collect();
        assert!(ks_distance(&sample, |x| normal.cdf(x)) < ks_limit(sample.len(), 1e-7));
        // the sample correlation has standard deviation 1/sqrt(n); a deviation of six of them has
        // probability 2e-9
        for lag in [1, LANES, 2 * LANES] {
            let pairs = sample.iter().zip(&sample[lag..]);
            let correlation = pairs.map(|(a, b)| a * b).sum::<f64>() / sample.len() as f64;
            assert!(
                correlation.abs() < 6.0 / (sample.len() as f64).sqrt(),
                "lag {lag}: {correlation}"
            );
        }
    }

    #[test]
    fn a_stream_repeats_and_streams_differ() {
        let draw = |seed| {
            let mut numbers = [0.0_f32; 40];
            Gaussian::new(Key::from_seed(seed)).fill(&mut numbers);
            numbers.map(f32::to_bits)
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
