//! Finite differences, closeness and distribution tests, for Softwood's own tests only.

/// Asserts that two slices agree within `tolerance`, absolute below one and relative above.
///
/// # Panics
/// When they do not, naming the first place.
pub fn close(left: &[f64], right: &[f64], tolerance: f64) {
    assert_eq!(left.len(), right.len(), "lengths differ");
    for (at, (a, b)) in left.iter().zip(right).enumerate() {
        let scale = 1.0_f64.max(a.abs()).max(b.abs());
        assert!(
            (a - b).abs() <= tolerance * scale,
            "at {at}: {a} and {b} differ by more than {tolerance}"
        );
    }
}

/// Gradient of `f` at `x` by central differences.
pub fn central_difference(f: impl Fn(&[f64]) -> f64, x: &[f64]) -> Vec<f64> {
    let mut point = x.to_vec();
    (0..x.len())
        .map(|at| {
            let step = 1e-5 * x[at].abs().max(1.0);
            point[at] = x[at] + step;
            let above = f(&point);
            point[at] = x[at] - step;
            let below = f(&point);
            point[at] = x[at];
            (above - below) / (2.0 * step)
        })
        .collect()
}

/// Kolmogorov and Smirnov's distance between a sample and a cdf.
pub fn ks_distance(sample: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let gap = |(at, &x): (usize, &f64)| {
        let p = cdf(x);
        (p - at as f64 / n)
            .abs()
            .max((p - (at + 1) as f64 / n).abs())
    };
    sorted.iter().enumerate().map(gap).fold(0.0, f64::max)
}

/// The distance that a true sample of size `n` exceeds with probability `alpha` (Dvoretzky, Kiefer, Wolfowitz).
pub fn ks_limit(n: usize, alpha: f64) -> f64 {
    ((2.0 / alpha).ln() / (2.0 * n as f64)).sqrt()
}
