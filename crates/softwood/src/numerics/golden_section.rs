//! Golden-section search for the maximum of a function of one variable.

/// A maximum: its place and the value there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Maximum {
    pub(crate) at: f64,
    pub(crate) value: f64,
}

/// The maximum of a unimodal function between `low` and `high`. Each of the `n_steps` steps
/// evaluates the function once and keeps 0.618 of the interval.
pub(crate) fn maximize(
    mut low: f64,
    mut high: f64,
    n_steps: usize,
    function: impl Fn(f64) -> f64,
) -> Maximum {
    let ratio = 0.5 * (5.0_f64.sqrt() - 1.0);
    let inner = |low: f64, high: f64| (high - ratio * (high - low), low + ratio * (high - low));
    let evaluate = |at: f64| Maximum {
        at,
        value: function(at),
    };
    let (a, b) = inner(low, high);
    let (mut a, mut b) = (evaluate(a), evaluate(b));
    for _ in 0..n_steps {
        if a.value > b.value {
            high = b.at;
            b = a;
            a = evaluate(inner(low, high).0);
        } else {
            low = a.at;
            a = b;
            b = evaluate(inner(low, high).1);
        }
    }
    if a.value > b.value { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_the_maximum() {
        for peak in [-0.49, -0.1, 0.21, 0.5] {
            let found = maximize(-0.5, 0.5, 12, |x| 1.0 - (x - peak).powi(2));
            assert!((found.at - peak).abs() < 4e-3, "{peak}: {found:?}");
            assert!((found.value - 1.0).abs() < 2e-5, "{peak}: {found:?}");
        }
    }
}
