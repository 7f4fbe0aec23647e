//! Predictions of random mixtures against slow computations.

use proptest::prelude::*;

use crate::numerics::normal::INV_SQRT_TAU;
use crate::predictive::block::{Block, Head};
use crate::predictive::{cdf_grid, crps, density, moments, quantile, row_mixture};
use softwood_testkit::close;

/// Components of one row: weight before normalisation, mean, sd.
fn components(sizes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<[f64; 3]>> {
    let component = (0.0..1.0_f64, -3.0..3.0_f64, -6.0..1.0_f64)
        .prop_map(|(weight, mean, log_sd)| [weight + 1e-6, mean, log_sd.exp()]);
    prop::collection::vec(component, sizes)
}

/// A block of one member and one row.
fn block(parts: &[[f64; 3]]) -> Block {
    let head = Head::Normal {
        components: parts.len(),
    };
    let mut block = Block::new(head, 1, 1);
    let total: f64 = parts.iter().map(|part| part[0]).sum();
    block.normal_mut().sd.fill(1.0);
    for (component, &[weight, mean, sd]) in parts.iter().enumerate() {
        let at = block.at(0, component);
        block.weight[at] = weight / total;
        let normal = block.normal_mut();
        (normal.mean[at], normal.sd[at]) = (mean, sd);
    }
    (block.shift, block.scale) = (10.0, 3.0);
    block
}

fn cdf(block: &Block, y: f64) -> f64 {
    let mut out = [0.0];
    density::cdf(block, &[y], &mut out);
    out[0]
}

fn sd(block: &Block) -> f64 {
    let mut out = [0.0; moments::MOMENTS];
    moments::moments(block, &mut out);
    out[3]
}

/// The quantile by bisection alone.
fn bisected(block: &Block, level: f64) -> f64 {
    let (mut low, mut high) = (-1000.0, 1000.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if cdf(block, middle) < level {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn quantiles_invert_the_cdf(parts in components(1..40), level in 1e-4..(1.0 - 1e-4_f64)) {
        let block = block(&parts);
        let mut out = [0.0];
        quantile::quantiles(&block, &[level], &mut out);
        let expected = bisected(&block, level);
        // where the cdf is flat, only its value is determined
        let same_level = (cdf(&block, out[0]) - level).abs() < 1e-9;
        prop_assert!((out[0] - expected).abs() <= 1e-6 * sd(&block) || same_level, "{} {expected}", out[0]);
    }

    #[test]
    fn log_density_is_the_log_of_the_plain_sum(parts in components(1..40), y in 0.0..20.0_f64) {
        let block = block(&parts);
        let mut out = [0.0];
        density::log_density(&block, &[y], &mut out);
        let z = (y - 10.0) / 3.0;
        let total: f64 = parts.iter().map(|part| part[0]).sum();
        let plain: f64 = parts
            .iter()
            .map(|[weight, mean, sd]| weight / total / sd * INV_SQRT_TAU * (-0.5 * ((z - mean) / sd).powi(2)).exp())
            .sum();
        // the plain sum underflows far from the components
        prop_assume!(plain > 1e-290);
        prop_assert!((out[0] - (plain / 3.0).ln()).abs() < 1e-10 * out[0].abs().max(1.0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn crps_is_the_integral_of_the_squared_cdf_gap(parts in components(1..12), y in 0.0..20.0_f64) {
        let block = block(&parts);
        let mut out = [0.0];
        crps::crps(&block, &[y], &mut out);
        // midpoints on both sides of y, where the integrand jumps
        let gap = |t: f64| (cdf(&block, t) - f64::from(u8::from(t > y))).powi(2);
        let side = |from: f64, to: f64| {
            let n = 40_000;
            let width = (to - from) / n as f64;
            (0..n).map(|at| gap(from + (at as f64 + 0.5) * width)).sum::<f64>() * width
        };
        let expected = side(-40.0, y) + side(y, 60.0);
        prop_assert!((out[0] - expected).abs() < 1e-5 * expected.max(0.1), "{} {expected}", out[0]);
    }

    #[test]
    fn the_grid_agrees_with_the_sum_over_pairs(
        parts in components(97..400),
        narrow in -8.0..0.0_f64,
        far in 0.0..5.0_f64,
    ) {
        // some components are made narrower, some are moved away
        let mut parts = parts;
        for (at, part) in parts.iter_mut().enumerate() {
            if at % 3 == 0 {
                part[2] *= narrow.exp();
            }
            if at % 5 == 0 {
                part[1] += far.exp();
            }
        }
        let block = block(&parts);
        row_mixture::each_row(&block, 1e-8, |_, mixture| {
            let exact = crps::half_distance(mixture);
            let sd = mixture.summary.sd;
            if let Some(found) = cdf_grid::CdfGrid::default().half_distance(mixture) {
                assert!((found - exact).abs() < 1e-6 * sd, "{found} {exact} {sd}");
            }
        });
    }
}

#[test]
fn many_narrow_components_among_few_wide_ones_keep_their_crps() {
    let mut parts: Vec<[f64; 3]> = (0..1500)
        .map(|at| {
            [
                1.0,
                1e-3 * f64::from(at % 37),
                1e-4 * (1.0 + f64::from(at % 5)),
            ]
        })
        .collect();
    parts.extend((0..50).map(|at| [1e-3, f64::from(at) / 10.0 - 2.5, 0.5]));
    row_mixture::each_row(&block(&parts), 1e-8, |_, mixture| {
        let found = cdf_grid::CdfGrid::default().half_distance(mixture).unwrap();
        let exact = crps::half_distance(mixture);
        assert!(
            (found - exact).abs() < 1e-6 * mixture.summary.sd,
            "{found} {exact}"
        );
    });
}

#[test]
fn wide_and_very_narrow_components_keep_their_crps() {
    let mut parts: Vec<[f64; 3]> = (0..200)
        .map(|at| [1.0, 1e-2 * f64::from(at), 1.0])
        .collect();
    parts.extend((0..10).map(|at| [1e-2, f64::from(at), 1e-5]));
    row_mixture::each_row(&block(&parts), 1e-8, |_, mixture| {
        let exact = crps::half_distance(mixture);
        if let Some(found) = cdf_grid::CdfGrid::default().half_distance(mixture) {
            assert!(
                (found - exact).abs() < 1e-6 * mixture.summary.sd,
                "{found} {exact}"
            );
        }
    });
}

#[test]
fn far_apart_narrow_modes_have_quantiles_in_the_right_mode() {
    let block = block(&[[0.3, -3.0, 1e-4], [0.7, 3.0, 1e-4]]);
    let mut out = [0.0; 4];
    quantile::quantiles(&block, &[0.1, 0.29, 0.31, 0.999], &mut out);
    for (found, level) in out.iter().zip([0.1, 0.29, 0.31, 0.999]) {
        assert!((found - bisected(&block, level)).abs() < 1e-6, "{found}");
    }
}

#[test]
fn far_targets_have_a_finite_log_density() {
    let block = block(&[[1.0, 0.0, 1e-3], [1e-280, 0.0, 1.0]]);
    let mut out = [0.0];
    density::log_density(&block, &[10.0 + 3.0 * 40.0], &mut out);
    // the wide component of weight 1e-280 dominates there
    let expected = -280.0 * 10.0_f64.ln() - 0.5 * 40.0 * 40.0 + (INV_SQRT_TAU / 3.0).ln();
    assert!((out[0] - expected).abs() < 1e-9, "{} {expected}", out[0]);
}

#[test]
fn extreme_levels_are_exact() {
    let block = block(&[[1.0, 0.0, 1.0]]);
    let mut out = [0.0; 2];
    quantile::quantiles(&block, &[1e-12, 1.0 - 1e-12], &mut out);
    // the standard Normal's quantile of 1e-12
    let expected = 7.034_483_825_264_5;
    assert!((out[0] - (10.0 - 3.0 * expected)).abs() < 1e-6);
    assert!((out[1] - (10.0 + 3.0 * expected)).abs() < 1e-3);
}

/// Log density, cdf and CRPS at one target value.
fn scores(block: &Block, y: f64) -> [f64; 3] {
    let mut out = [[0.0]; 3];
    density::log_density(block, &[y], &mut out[0]);
    density::cdf(block, &[y], &mut out[1]);
    crps::crps(block, &[y], &mut out[2]);
    out.map(|[value]| value)
}

/// A target value with a magnitude from 1e-300 to 1e300, of either sign.
fn any_magnitude() -> impl Strategy<Value = f64> {
    (-300.0..300.0_f64, any::<bool>()).prop_map(|(exponent, negative)| {
        let size = 10.0_f64.powf(exponent);
        if negative { -size } else { size }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn targets_of_any_magnitude_have_finite_scores(
        parts in components(1..130),
        y in any_magnitude(),
        shift in any_magnitude(),
        log_scale in -300.0..300.0_f64,
    ) {
        for (shift, scale) in [(10.0, 3.0), (shift, 10.0_f64.powf(log_scale))] {
            let block = Block { shift, scale, ..block(&parts) };
            let [log_density, cdf, crps] = scores(&block, y);
            prop_assert!(log_density.is_finite(), "log density {log_density}");
            prop_assert!((0.0..=1.0).contains(&cdf), "cdf {cdf}");
            prop_assert!(crps.is_finite() && crps >= 0.0, "crps {crps}");
            let farther = scores(&block, 2.0 * y);
            // beyond a hundred standard deviations of every component, scores only get worse
            if ((y - shift) / scale).abs() > 1e3 && (y - shift) * y > 0.0 {
                prop_assert!(farther[0] <= log_density, "{log_density} {}", farther[0]);
                prop_assert!(farther[2] >= crps, "{crps} {}", farther[2]);
                prop_assert!((cdf - f64::from(u8::from(y > shift))).abs() < 1e-12, "cdf {cdf}");
            }
        }
    }
}

#[test]
fn far_log_densities_and_crps_have_their_asymptotes() {
    // sd of 0.48 in the units of the target
    let narrow = block(&[[0.5, 0.0, 0.16], [0.5, 0.1, 0.16]]);
    for y in [1e6, 1e9, 1e10, 1e20, 1e100, -1e100, 1e150] {
        let [log_density, cdf, crps] = scores(&narrow, y);
        let z = (y - 10.0) / 3.0 / 0.16;
        assert!(
            (log_density / (-0.5 * z * z) - 1.0).abs() < 1e-5,
            "{y}: {log_density}"
        );
        close(
            &[cdf, crps / y.abs()],
            &[f64::from(u8::from(y > 0.0)), 1.0],
            2e-5,
        );
    }
    assert!(scores(&narrow, 1e300)[0] <= f64::MIN);
    close(&[scores(&narrow, 1e308)[2] / 1e308], &[1.0], 1e-12);
}

#[test]
fn a_near_component_without_weight_does_not_hide_a_far_one() {
    let mut block = block(&[[1.0, 0.0, 1.0], [1.0, 0.0, 1.0]]);
    for (component, weight, mean) in [(0, 1.0, 0.0), (1, 0.0, 600.0)] {
        let at = block.at(0, component);
        (block.weight[at], block.normal_mut().mean[at]) = (weight, mean);
    }
    let expected = -0.5 * 600.0 * 600.0 + (INV_SQRT_TAU / 3.0).ln();
    close(
        &[scores(&block, 10.0 + 3.0 * 600.0)[0] / expected],
        &[1.0],
        1e-12,
    );
}

#[test]
fn infinite_targets_have_the_limits_and_nan_stays_nan() {
    let block = block(&[[0.3, -3.0, 0.1], [0.7, 3.0, 2.0]]);
    for (y, expected_cdf) in [(f64::INFINITY, 1.0), (f64::NEG_INFINITY, 0.0)] {
        let [log_density, cdf, crps] = scores(&block, y);
        assert!(log_density <= f64::NEG_INFINITY && crps >= f64::INFINITY);
        close(&[cdf], &[expected_cdf], 0.0);
    }
    assert!(scores(&block, f64::NAN).iter().all(|score| score.is_nan()));
}
