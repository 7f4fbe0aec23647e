//! Helpers of Softwood's tests: approximate equality, finite differences, the Kolmogorov-Smirnov
//! test.

/// Asserts that two slices agree within `tolerance`: absolute where both values are below one in
/// magnitude, relative above.
///
/// # Panics
/// When they differ; the message names the first index.
pub fn close(left: &[f64], right: &[f64], tolerance: f64) {
    assert_eq!(left.len(), right.len(), "lengths differ");
    for (index, (a, b)) in left.iter().zip(right).enumerate() {
        let scale = 1.0_f64.max(a.abs()).max(b.abs());
        assert!(
            (a - b).abs() <= tolerance * scale,
            "index {index}: {a} and {b} differ by more than {tolerance}"
        );
    }
}

/// Gradient of `f` at `x` by central differences.
pub fn central_difference(f: impl Fn(&[f64]) -> f64, x: &[f64]) -> Vec<f64> {
    let mut point = x.to_vec();
    (0..x.len())
        .map(|index| {
            let step = 1e-5 * x[index].abs().max(1.0);
            point[index] = x[index] + step;
            let above = f(&point);
            point[index] = x[index] - step;
            let below = f(&point);
            point[index] = x[index];
            (above - below) / (2.0 * step)
        })
        .collect()
}

/// Kolmogorov-Smirnov distance between a sample and a cdf.
pub fn ks_distance(sample: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let gap = |(index, &x): (usize, &f64)| {
        let p = cdf(x);
        (p - index as f64 / n)
            .abs()
            .max((p - (index + 1) as f64 / n).abs())
    };
    sorted.iter().enumerate().map(gap).fold(0.0, f64::max)
}

/// Critical value: a sample of size `n` from the cdf exceeds this distance with probability at most
/// `alpha` (Dvoretzky-Kiefer-Wolfowitz inequality).
pub fn ks_limit(n: usize, alpha: f64) -> f64 {
    ((2.0 / alpha).ln() / (2.0 * n as f64)).sqrt()
}
