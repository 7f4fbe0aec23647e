//! Tail probabilities of Student's t and of the F distribution, from the regularised incomplete beta
//! function of `statrs`.

use statrs::function::beta::checked_beta_reg;

/// Probability that a variable of Student's t distribution with `degrees` degrees of freedom is at
/// least as far from zero as `t`; NaN if `t` is NaN or `degrees` is not positive.
pub(crate) fn two_sided_t(t: f64, degrees: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(0.5 * degrees, 0.5, degrees / (degrees + t * t))
}

/// Probability that a variable of the F distribution with these degrees of freedom exceeds `f`; NaN
/// if `f` is NaN or a number of degrees is not positive.
pub(crate) fn upper_f(f: f64, numerator: f64, denominator: f64) -> f64 {
    if f.is_infinite() && f > 0.0 {
        return 0.0;
    }
    let x = denominator / (denominator + numerator * f.max(0.0));
    incomplete_beta(
        0.5 * denominator,
        0.5 * numerator,
        if f.is_nan() { f } else { x },
    )
}

/// `I_x(a, b)`; NaN outside its domain.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    checked_beta_reg(a, b, x).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn student_t_and_f_agree_with_scipy() {
        // 2 * scipy.stats.t.sf(|t|, degrees) and scipy.stats.f.sf(f, 10, 5), scipy 1.17.1
        let t = [
            (0.5, 3.0),
            (2.0, 9.0),
            (-3.3, 19.0),
            (40.0, 4.0),
            (1e-3, 1.0),
        ];
        close(
            &t.map(|(t, degrees)| two_sided_t(t, degrees)),
            &[
                0.651_447_964_848_151,
                0.076_552_823_770_701,
                0.003_765_350_876_512_253,
                2.334_016_322_601_268e-6,
                0.999_363_380_439_815_9,
            ],
            1e-10,
        );
        close(
            &[1.0, 4.74, 0.3, 250.0].map(|f| upper_f(f, 10.0, 5.0)),
            &[
                0.534_880_573_462_199_6,
                0.049_895_785_980_515_6,
                0.950_303_258_866_488_4,
                4.152_149_896_933_041e-6,
            ],
            1e-10,
        );
    }

    #[test]
    fn extreme_statistics_have_probabilities_at_the_ends() {
        close(
            &[two_sided_t(0.0, 4.0), upper_f(0.0, 10.0, 5.0)],
            &[1.0; 2],
            1e-12,
        );
        close(
            &[
                two_sided_t(f64::NEG_INFINITY, 4.0),
                upper_f(f64::INFINITY, 10.0, 5.0),
            ],
            &[0.0; 2],
            0.0,
        );
        assert!(two_sided_t(f64::NAN, 4.0).is_nan() && upper_f(f64::NAN, 10.0, 5.0).is_nan());
    }
}
