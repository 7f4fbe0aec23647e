//! `Real`: the floating-point type of the soft-tree kernel, f32 for training and f64 for tests of
//! its gradients.
//!
//! The f32 functions are branch-free polynomials, which the compiler vectorises in loops over
//! lanes; their error is at most 2 units in the last place over the ranges stated with each. The
//! f64 functions are those of `std`.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Deref, DerefMut, Div, Mul, Neg, Sub};

use crate::numerics::gemm::Product;

/// Number of rows that a kernel processes at once.
pub(crate) const LANES: usize = 16;
/// One value per lane, aligned to a cache line: a vector that straddles two lines costs two
/// accesses.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Lanes<T>(pub(crate) [T; LANES]);

impl<T: Real> Lanes<T> {
    /// The same value in every lane.
    #[inline(always)]
    pub(crate) fn of(value: T) -> Self {
        Self([value; LANES])
    }
}

impl<T> Deref for Lanes<T> {
    type Target = [T; LANES];
    #[inline(always)]
    fn deref(&self) -> &[T; LANES] {
        &self.0
    }
}

impl<T> DerefMut for Lanes<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T; LANES] {
        &mut self.0
    }
}

/// Applies `combine` to each pair of lanes. Arguments are passed by value: the compiler does not
/// vectorise a loop that reads and writes through references that may alias.
#[inline(always)]
pub(crate) fn both<T: Real>(a: Lanes<T>, b: Lanes<T>, combine: impl Fn(T, T) -> T) -> Lanes<T> {
    let mut out = Lanes::of(T::ZERO);
    for lane in 0..LANES {
        out[lane] = combine(a[lane], b[lane]);
    }
    out
}

/// The values from index `at` on, one per lane.
#[inline(always)]
pub(crate) fn lanes_at<T: Real>(values: &[T], at: usize) -> Lanes<T> {
    let mut out = Lanes::of(T::ZERO);
    out.copy_from_slice(&values[at..at + LANES]);
    out
}

mod sealed {
    pub(crate) trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// The integer part of a number; 0 for NaN and for numbers beyond 32 bits. Unlike `as`, it
/// vectorises.
#[inline(always)]
pub(crate) fn truncate(x: f32) -> i32 {
    let x = if x.abs() < 2_147_483_648.0 { x } else { 0.0 };
    #[expect(unsafe_code, reason = "the conversion without checks has no safe form")]
    // SAFETY: the line above leaves only finite numbers in the range of an `i32`.
    unsafe {
        x.to_int_unchecked()
    }
}

/// A floating-point number of the kernels.
pub(crate) trait Real:
    sealed::Sealed
    + Product
    + Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    const ZERO: Self;
    const ONE: Self;
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
    /// `self * a + b`, rounded once.
    fn fma(self, a: Self, b: Self) -> Self;
    fn largest(self, other: Self) -> Self;
    /// `e^x`; the f32 version clamps the argument to at least -40.
    fn exp(self) -> Self;
    /// `e^-|x|`; the f32 version clamps the argument to at least -40.
    fn decay(self) -> Self;
    /// Natural logarithm of a positive, normal number.
    fn ln(self) -> Self;
    /// `ln(1 + x)` for x in [0, 1], with full relative accuracy near 0.
    fn ln_1p(self) -> Self;
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    fn of(x: f64) -> Self {
        x
    }
    fn wide(self) -> f64 {
        self
    }
    fn fma(self, a: Self, b: Self) -> Self {
        self.mul_add(a, b)
    }
    fn largest(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
    fn exp(self) -> Self {
        f64::exp(self)
    }
    fn decay(self) -> Self {
        f64::exp(-f64::abs(self))
    }
    fn ln(self) -> Self {
        f64::ln(self)
    }
    fn ln_1p(self) -> Self {
        f64::ln_1p(self)
    }
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn fma(self, a: Self, b: Self) -> Self {
        self.mul_add(a, b)
    }
    #[inline(always)]
    fn largest(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
    #[inline(always)]
    fn exp(self) -> Self {
        exp_f32(self)
    }
    #[inline(always)]
    fn decay(self) -> Self {
        decay_f32(self)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        ln_f32(self)
    }
    #[inline(always)]
    fn ln_1p(self) -> Self {
        ln_1p_f32(self)
    }
}

/// Adding and subtracting 1.5 * 2^23 rounds to a whole number, whose bits are then the low bits of
/// the sum.
const ROUNDER: f32 = 12_582_912.0;
/// ln 2 in two parts: the first has trailing zeros, so that n * first is exact for |n| < 2^9.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// Smallest argument; smaller ones are clamped. e^-40 = 4e-18 is negligible in any sum of
/// probabilities, and products of a few such numbers stay normal: subnormal numbers would slow a
/// loop a hundredfold.
const EXP_FLOOR: f32 = -40.0;

/// Minimax polynomial of (e^r - 1 - r)/r^2 for |r| <= ln(2)/2, lowest degree first.
const EXP: [f32; 5] = [
    0.499_999_94,
    0.166_665_2,
    0.041_668_4,
    0.008_368_851,
    0.001_381_432,
];

/// e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln(2)/2, and a polynomial for e^r; x in [-40,
/// 88].
#[inline(always)]
fn exp_inside(x: f32) -> f32 {
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    let p = r.mul_add(r.mul_add(horner(&EXP, r), 1.0), 1.0);
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    p * power
}

#[inline(always)]
fn exp_f32(x: f32) -> f32 {
    let x = if x > EXP_FLOOR { x } else { EXP_FLOOR };
    exp_inside(if x < 88.0 { x } else { 88.0 })
}

#[inline(always)]
fn decay_f32(x: f32) -> f32 {
    let x = -x.abs();
    exp_inside(if x > EXP_FLOOR { x } else { EXP_FLOOR })
}

/// Bits of sqrt(1/2): mantissas lie in [sqrt(1/2), sqrt(2)).
const SQRT_HALF_BITS: u32 = 0x3f35_04f3;

/// Minimax polynomial of (ln(1+f) - f + f^2/2)/f^3 for 1+f in [sqrt(1/2), sqrt(2)], lowest degree
/// first.
const LN: [f32; 9] = [
    0.333_333_13,
    -0.250_000_1,
    0.200_021_24,
    -0.166_680_05,
    0.142_194_51,
    -0.124_053_426,
    0.118_887_09,
    -0.116_775_05,
    0.067_476_92,
];

/// ln x = k ln 2 + ln m with m in [sqrt(1/2), sqrt(2)). A polynomial in m - 1, because one division
/// would cost as much as the whole polynomial.
#[inline(always)]
fn ln_f32(x: f32) -> f32 {
    let bits = x.to_bits().wrapping_add(0x3f80_0000 - SQRT_HALF_BITS);
    let k = ((bits >> 23) as i32 - 127) as f32;
    let f = f32::from_bits((bits & 0x007f_ffff) + SQRT_HALF_BITS) - 1.0;
    let square = f * f;
    let tail = k.mul_add(LN2_LOW, square * f * horner(&LN, f));
    k.mul_add(LN2_HIGH, f + (-0.5_f32).mul_add(square, tail))
}

/// Minimax polynomial of (ln(1+x) - x)/x^2 on [0, 1], lowest degree first.
const LN_1P: [f32; 10] = [
    -0.499_999_88,
    0.333_326_9,
    -0.249_885_78,
    0.198_979_29,
    -0.161_293_24,
    0.124_670_96,
    -0.083_073_7,
    0.041_981_05,
    -0.013_631_333,
    0.002_072_918_2,
];

/// ln(1 + x) = x + x^2 p(x) on [0, 1].
#[inline(always)]
fn ln_1p_f32(x: f32) -> f32 {
    (x * x).mul_add(horner(&LN_1P, x), x)
}

#[inline(always)]
fn horner<const N: usize>(coefficients: &[f32; N], x: f32) -> f32 {
    let mut sum = coefficients[N - 1];
    for power in (0..N - 1).rev() {
        sum = sum.mul_add(x, coefficients[power]);
    }
    sum
}

/// (sigmoid(t), softplus(t), softplus(-t)), from one exponential and one logarithm.
#[inline(always)]
pub(crate) fn gate<T: Real>(t: T) -> (T, T, T) {
    let e = t.decay();
    let inverse = T::ONE / (T::ONE + e);
    let g = if t > T::ZERO { inverse } else { e * inverse };
    let log = e.ln_1p();
    (g, log + t.largest(T::ZERO), log + (-t).largest(T::ZERO))
}

/// sigmoid(t).
#[inline(always)]
pub(crate) fn sigmoid<T: Real>(t: T) -> T {
    let e = t.decay();
    let inverse = T::ONE / (T::ONE + e);
    if t > T::ZERO { inverse } else { e * inverse }
}

/// sigmoid(t) with t clamped to [-40, 40]: without a selection between two forms, which costs a tenth
/// of a loop over sigmoids.
#[inline(always)]
pub(crate) fn bounded_sigmoid<T: Real>(t: T) -> T {
    let limit = T::of(f64::from(-EXP_FLOOR));
    let falling = if -t < limit { -t } else { limit };
    T::ONE / (T::ONE + falling.exp())
}

/// softplus(t) = ln(1 + e^t).
#[inline(always)]
pub(crate) fn softplus<T: Real>(t: T) -> T {
    t.decay().ln_1p() + t.largest(T::ZERO)
}

/// The inverse of softplus: the t with softplus(t) = s, for s > 0.
pub(crate) fn inverse_softplus(s: f64) -> f64 {
    if s > 30.0 { s } else { s.exp_m1().ln() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps(found: f32, exact: f64) -> f64 {
        let nearest = exact as f32;
        let unit =
            f64::from(f32::from_bits(nearest.abs().to_bits() + 1)) - f64::from(nearest.abs());
        (f64::from(found) - exact).abs() / unit
    }

    #[test]
    fn exp_is_within_two_ulp() {
        let mut worst = 0.0_f64;
        for step in 0..1_000_000 {
            let x = -39.9 + 127.0 * (step as f32) / 1e6;
            worst = worst.max(ulps(exp_f32(x), f64::from(x).exp()));
            if x <= 0.0 {
                worst = worst.max(ulps(decay_f32(x), f64::from(x).exp()));
            }
        }
        assert!(worst <= 2.0, "{worst}");
    }

    #[test]
    fn ln_is_within_two_ulp() {
        let mut worst = 0.0_f64;
        for step in 1..1_000_000_u32 {
            let near_one = 0.5 + step as f32 / 1e6;
            worst = worst.max(ulps(ln_f32(near_one), f64::from(near_one).ln()));
            let any = f32::from_bits(0x0080_0000 + step * 2100);
            worst = worst.max(ulps(ln_f32(any), f64::from(any).ln()));
        }
        assert!(worst <= 2.0, "{worst}");
    }

    #[test]
    fn ln_1p_is_within_two_ulp() {
        let mut worst = 0.0_f64;
        for step in 1..=1_000_000 {
            let x = step as f32 / 1e6;
            for x in [x, x * 1e-4, x * 1e-12] {
                worst = worst.max(ulps(ln_1p_f32(x), f64::from(x).ln_1p()));
            }
        }
        assert!(worst <= 2.0, "{worst}");
    }

    #[test]
    fn gate_and_softplus_agree_with_their_definitions() {
        for step in -380..380 {
            let t = f64::from(step) / 10.0;
            let (g, above, below) = gate(t as f32);
            let exact_gate = 1.0 / (1.0 + (-t).exp());
            assert!((f64::from(g) - exact_gate).abs() < 2e-7);
            assert!((f64::from(bounded_sigmoid(t as f32)) - exact_gate).abs() < 2e-7);
            assert!((f64::from(above) - t.exp().ln_1p()).abs() < 2e-7 * (1.0 + t.abs()));
            assert!((f64::from(below) - (-t).exp().ln_1p()).abs() < 2e-7 * (1.0 + t.abs()));
            let exact = t.exp().ln_1p();
            assert!(
                (f64::from(softplus(t as f32)) / exact - 1.0).abs() < 1e-5,
                "{t}"
            );
            assert!(
                (softplus(inverse_softplus(exact)) / exact - 1.0).abs() < 1e-9 || exact < 1e-12
            );
        }
    }
}
