//! Gradients quantized to integers, whose sums are exact and do not depend on the order of
//! addition.
//!
//! A row has `L` entries: gradients, hessians, weight. Each entry is scaled by a power of two such
//! that its largest absolute value fits into 30 bits. These *wide* integers are summed in 64 bits
//! and give leaf values. Histograms sum *narrow* integers of 16 bits in 32 bits: the wide integers
//! without their last `shift` bits, stochastically rounded, which makes them unbiased. A narrow
//! integer deviates from its wide integer by less than `2^shift` units; a sum over `n` rows
//! deviates by less than `n 2^shift` and, since roundings are independent, typically by
//! `sqrt(n) 2^shift / 2`.

use multiversion::multiversion;

use crate::numerics::prefetch::visit;
use crate::numerics::real::truncate;
use crate::rng::mix;

/// Bits of the largest wide integer, without its sign.
const WIDE_BITS: i32 = 30;
/// Fewest bits that a narrow integer drops, such that the remaining ones fit into 16 bits.
const MIN_SHIFT: u32 = 16;
/// Rows of a chunk, which stays in the first-level cache between the steps of quantization.
const CHUNK: usize = 256;

/// Quantized entries of all rows.
#[derive(Debug, Clone)]
pub(crate) struct QuantizedGradients<const L: usize> {
    pub(crate) wide: Vec<[i32; L]>,
    pub(crate) narrow: Vec<[i16; L]>,
    /// Value of one wide unit of each entry.
    pub(crate) unit: [f64; L],
    /// Whether rows without narrow gradients are not counted: the split search uses a sample.
    pub(crate) is_sampled: bool,
    /// Bits that a narrow integer drops.
    pub(crate) shift: u32,
    /// Exact sums of the wide integers over all rows, times their units.
    pub(crate) totals: [f64; L],
}

/// What processes with different rows agree on before they quantize, so that their integers are
/// those of one process with all rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuantizationScale<const L: usize> {
    /// Largest absolute value of each entry in all processes.
    pub(crate) largest: [f32; L],
    /// Number of rows in the processes before this one.
    pub(crate) first_row: usize,
}

impl<const L: usize> QuantizationScale<L> {
    /// The scale of the only process.
    pub(crate) fn of(values: &[[f32; L]]) -> Self {
        Self {
            largest: largest(values),
            first_row: 0,
        }
    }
}

impl<const L: usize> QuantizedGradients<L> {
    /// Allocates memory for `n_rows` rows.
    pub(crate) fn new(n_rows: usize) -> Self {
        Self::of_part(n_rows, n_rows)
    }

    /// Allocates memory for `n_rows` rows of a process; all processes have `n_all` rows.
    pub(crate) fn of_part(n_rows: usize, n_all: usize) -> Self {
        Self {
            wide: vec![[0; L]; n_rows],
            narrow: vec![[0; L]; n_rows],
            unit: [1.0; L],
            is_sampled: false,
            // n_all (2^(30 - shift) + 1) is below 2^31: histograms cannot overflow
            shift: n_all.next_power_of_two().ilog2().max(MIN_SHIFT),
            totals: [0.0; L],
        }
    }

    /// Value of one narrow unit of an entry.
    pub(crate) fn narrow_unit(&self, entry: usize) -> f64 {
        self.unit[entry] * f64::from(1_u32 << self.shift)
    }

    /// Quantizes the entries of all rows. The rounding of row `i` depends on `salt` and `i` alone.
    pub(crate) fn set(&mut self, values: &[[f32; L]], salt: u64) {
        self.set_scaled(values, salt, &QuantizationScale::of(values));
    }

    /// As [`QuantizedGradients::set`] with an agreed scale; the rounding depends on the number of
    /// the row in all processes.
    pub(crate) fn set_scaled(
        &mut self,
        values: &[[f32; L]],
        salt: u64,
        agreed: &QuantizationScale<L>,
    ) {
        let mut scale = [0.0; L];
        for entry in 0..L {
            let exponent = WIDE_BITS - exponent_of(agreed.largest[entry]);
            scale[entry] = power_of_two(exponent);
            self.unit[entry] = power_of_two(-exponent);
        }
        let scales = scale.repeat(CHUNK);
        let mut counter = (mix(salt) as u32).wrapping_add((agreed.first_row * L) as u32);
        let mut totals = [0_i64; L];
        let chunks = values.chunks(CHUNK).zip(self.wide.chunks_mut(CHUNK));
        for ((values, wide), narrow) in chunks.zip(self.narrow.chunks_mut(CHUNK)) {
            let sums = round(values, &scales, wide, narrow, counter, self.shift);
            for entry in 0..L {
                totals[entry] += sums[entry];
            }
            counter = counter.wrapping_add((CHUNK * L) as u32);
        }
        self.is_sampled = false;
        self.totals = self.in_units(totals);
    }

    fn in_units(&self, sums: [i64; L]) -> [f64; L] {
        std::array::from_fn(|entry| sums[entry] as f64 * self.unit[entry])
    }

    /// Exact sums of the wide integers over some rows, times their units.
    pub(crate) fn sums(&self, rows: &[u32]) -> [f64; L] {
        let mut sums = [0_i64; L];
        visit(&self.wide, rows, |wide| {
            for entry in 0..L {
                sums[entry] += i64::from(wide[entry]);
            }
        });
        self.in_units(sums)
    }
}

/// Largest absolute value of each entry.
#[multiversion(targets("x86_64+avx2+fma"))]
fn largest<const L: usize>(values: &[[f32; L]]) -> [f32; L] {
    let mut largest = [0.0_f32; L];
    // eight independent maxima: none has to wait for the result of the previous row
    let mut partial = [[0.0_f32; L]; 8];
    let (chunks, remaining) = values.as_chunks::<8>();
    for rows in chunks {
        for (largest, row) in partial.iter_mut().zip(rows) {
            for entry in 0..L {
                largest[entry] = largest[entry].max(row[entry].abs());
            }
        }
    }
    for row in partial.iter().chain(remaining) {
        for entry in 0..L {
            largest[entry] = largest[entry].max(row[entry].abs());
        }
    }
    largest
}

/// Computes the wide and narrow integers of some rows; returns the sums of the wide ones. The
/// rounding of the integer at place `i` uses the random bits of `counter + i`.
#[multiversion(targets("x86_64+avx2+fma"))]
fn round<const L: usize>(
    values: &[[f32; L]],
    scales: &[f32],
    wide: &mut [[i32; L]],
    narrow: &mut [[i16; L]],
    counter: u32,
    shift: u32,
) -> [i64; L] {
    // plain loops of one length, which the compiler vectorises
    let values = values.as_flattened();
    let n = values.len();
    let (scales, narrow) = (&scales[..n], &mut narrow.as_flattened_mut()[..n]);
    let flat = &mut wide.as_flattened_mut()[..n];
    for at in 0..n {
        flat[at] = truncate(values[at] * scales[at]);
    }
    let mask = (1_u32 << shift) - 1;
    for at in 0..n {
        let random = scramble(counter.wrapping_add(at as u32)) & mask;
        narrow[at] = (flat[at].wrapping_add(random as i32) >> shift) as i16;
    }
    let mut sums = [0_i64; L];
    for row in wide.iter() {
        for entry in 0..L {
            sums[entry] += i64::from(row[entry]);
        }
    }
    sums
}

/// A bijective hash of 32 bits (Wellons' `lowbias32`), cheap in SIMD lanes.
#[inline(always)]
fn scramble(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// The exponent `e` with `2^(e-1) <= x < 2^e`; 0 if `x` is zero, subnormal or not finite.
fn exponent_of(x: f32) -> i32 {
    if !x.is_normal() {
        return 0;
    }
    // within these bounds the scale and its inverse are normal numbers
    ((x.to_bits() >> 23) as i32 - 126).clamp(-90, 128)
}

fn power_of_two<T: From<f32>>(exponent: i32) -> T {
    f32::from_bits(((exponent + 127) as u32) << 23).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(n: usize) -> Vec<[f32; 2]> {
        let at = |i: usize| (scramble(i as u32) as f32 / 4e9 - 0.5, 1.0 + (i % 7) as f32);
        (0..n).map(|i| [at(i).0.powi(3), at(i).1]).collect()
    }

    #[test]
    fn wide_sums_are_exact_to_a_unit_per_row_in_any_order() {
        let values = rows(1000);
        let mut quantized = QuantizedGradients::<2>::new(1000);
        quantized.set(&values, 1);
        let mut order: Vec<u32> = (0..1000).collect();
        let sums = quantized.sums(&order);
        for entry in 0..2 {
            let exact: f64 = values.iter().map(|row| f64::from(row[entry])).sum();
            assert!((sums[entry] - exact).abs() <= 1000.0 * quantized.unit[entry]);
        }
        order.reverse();
        assert_eq!(
            quantized.sums(&order).map(f64::to_bits),
            sums.map(f64::to_bits)
        );
    }

    #[test]
    fn narrow_sums_are_unbiased_and_within_the_stated_bound() {
        let n = 20_000;
        let values = rows(n);
        let mut quantized = QuantizedGradients::<2>::new(n);
        let all: Vec<u32> = (0..n as u32).collect();
        for salt in 0..20 {
            quantized.set(&values, salt);
            let wide = quantized.sums(&all);
            for entry in 0..2 {
                let narrow: i64 = quantized
                    .narrow
                    .iter()
                    .map(|row| i64::from(row[entry]))
                    .sum();
                let error = (narrow as f64 * quantized.narrow_unit(entry) - wide[entry]).abs();
                // six standard deviations of a sum of independent roundings: fails once in 10^9
                assert!(error <= 6.0 * 0.5 * (n as f64).sqrt() * quantized.narrow_unit(entry));
            }
        }
        for (wide, narrow) in quantized.wide.iter().zip(&quantized.narrow) {
            for entry in 0..2 {
                let error = (i64::from(narrow[entry]) << quantized.shift) - i64::from(wide[entry]);
                assert!(error.abs() < 1 << quantized.shift);
            }
        }
    }

    #[test]
    fn histograms_cannot_overflow() {
        for n in [1, 2, 3, 1000, 1 << 20, (1 << 20) + 1] {
            let shift = QuantizedGradients::<2>::new(n).shift;
            assert!(
                n as i64 * ((1_i64 << (WIDE_BITS as u32)) / (1 << shift) + 1)
                    <= i64::from(i32::MAX) + 1,
                "{n}"
            );
        }
    }

    #[test]
    fn zeros_and_extreme_values_are_quantized() {
        let mut quantized = QuantizedGradients::<2>::new(3);
        quantized.set(&[[0.0, 1e-30], [0.0, 0.0], [0.0, 3e37]], 0);
        assert_eq!(quantized.wide[0], [0, 0]);
        assert!((quantized.sums(&[2])[1] / 3e37 - 1.0).abs() < 1e-6);
    }
}
