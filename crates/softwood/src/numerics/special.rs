//! Exponential and scaled complementary error function without branches, so that the compiler
//! vectorises loops over them.
//!
//! Both functions are always inlined: `multiversion` compiles a loop for several instruction sets
//! together with the functions that are inlined into it, and no others.

#![allow(clippy::inline_always)]

const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// The leading 32 bits of ln 2: its product with a small whole number is exact.
const LN_2_HIGH: f64 = 0.693_147_180_485_539_1;
const LN_2_LOW: f64 = 7.440_617_110_012_397e-11;
/// Adding this constant to a small number leaves the nearest whole number in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// Below this argument `exp` returns zero, because the result would be subnormal.
const EXP_MIN: f64 = -708.0;
const EXP_MAX: f64 = 709.0;

/// `e^x` to 2 ulp for x in [-708, 709]; zero below, `e^709` above.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    let clamped = x.clamp(EXP_MIN, EXP_MAX);
    let shifted = clamped.mul_add(LOG2_E, ROUND);
    let whole = shifted - ROUND;
    let r = whole.mul_add(-LN_2_LOW, whole.mul_add(-LN_2_HIGH, clamped));
    // the Taylor series on |r| <= ln(2) / 2, cut where its next term is below 2^-56
    let mut sum = 1.0 / 6_227_020_800.0;
    for factor in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        sum = r.mul_add(sum, factor);
    }
    let scaled = f64::from_bits(sum.to_bits().wrapping_add(shifted.to_bits() << 52));
    if x < EXP_MIN { 0.0 } else { scaled }
}

/// Centre of the map `u = (CENTRE - z) / (CENTRE + z)` from z >= 0 to (-1, 1].
const CENTRE: f64 = 5.0;

/// `(CENTRE + z) Phi(-z) e^{z²/2}` as a polynomial in `u`, lowest power first: the Chebyshev series
/// of degree 20, computed with 60 digits. The truncation error is below 1e-14.
const MILLS: [f64; 21] = [
    7.691_930_497_500_625e-1,
    6.653_825_028_900_677e-1,
    4.953_056_159_700_711e-1,
    3.135_331_566_704_741e-1,
    1.650_203_661_665_697_3e-1,
    6.911_863_872_479_145e-2,
    2.079_506_685_979_103e-2,
    2.993_376_579_968_300_2e-3,
    -7.978_698_802_034_63e-4,
    -5.448_979_692_661_98e-4,
    -5.937_347_687_275_569_6e-5,
    4.975_895_122_529_546e-5,
    1.667_471_028_786_146_6e-5,
    -3.972_127_975_384_589e-6,
    -2.757_403_910_585_628e-6,
    3.235_771_494_198_306_3e-7,
    4.197_067_951_476_196e-7,
    -2.986_825_140_321_094e-8,
    -5.715_700_399_386_878e-8,
    2.371_100_749_784_467_4e-9,
    4.955_130_020_751_130_6e-9,
];

/// `Phi(-z) e^{z²/2}` for z >= 0, to a relative 1e-13: half the scaled complementary error function
/// of `z / √2`.
#[inline(always)]
pub(crate) fn scaled_tail(z: f64) -> f64 {
    let inverse = 1.0 / (CENTRE + z);
    let u = (CENTRE - z) * inverse;
    let mut sum = MILLS[20];
    for power in (0..20).rev() {
        sum = sum.mul_add(u, MILLS[power]);
    }
    sum * inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exp_agrees_with_the_standard_library(x in -708.0..709.0_f64) {
            let expected = x.exp();
            prop_assert!((exp(x) - expected).abs() <= 2.0 * f64::EPSILON * expected, "{x}");
        }
    }

    #[test]
    fn exp_is_zero_far_below_one_at_zero_and_finite_far_above() {
        assert!(exp(-1e300) <= 0.0 && exp(f64::NEG_INFINITY) <= 0.0);
        assert!((exp(0.0) - 1.0).abs() <= 0.0);
        assert!(exp(1e300).is_finite());
    }
}
