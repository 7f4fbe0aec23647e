//! Sums of exponentials without overflow or underflow: log-sum-exp, log-mean-exp, softmax.

use multiversion::multiversion;

use crate::numerics::real::Real;

/// `ln sum_i exp(v_i)`; minus infinity for no values.
pub(crate) fn log_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest
        + values
            .map(|value| (value - largest).exp())
            .sum::<f64>()
            .ln()
}

/// `ln (1/n sum_i exp(v_i))`: the log density of a mixture with equal weights, from the log
/// densities of its components.
pub(crate) fn log_mean_exp(values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let n = values.len() as f64;
    let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = values.map(|value| (value - largest).exp()).sum();
    largest + (sum / n).ln()
}

/// Turns logits into probabilities in place. `values` is classes x `stride`: each of the `stride`
/// columns is one softmax.
pub(crate) fn softmax(values: &mut [f64], stride: usize) {
    let n_classes = values.len() / stride;
    for row in 0..stride {
        let at = |class: usize| class * stride + row;
        let largest = (0..n_classes)
            .map(|class| values[at(class)])
            .fold(f64::NEG_INFINITY, f64::max);
        let mut total = 0.0;
        for class in 0..n_classes {
            values[at(class)] = (values[at(class)] - largest).exp();
            total += values[at(class)];
        }
        for class in 0..n_classes {
            values[at(class)] /= total;
        }
    }
}

/// Softmax of the logits of each row in single precision, for training loops. `logits` and `p` are
/// rows x `n_classes`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]
pub(crate) fn softmax_rows(logits: &[f32], n_classes: usize, p: &mut [f32]) {
    let rows = logits.chunks_exact(n_classes);
    for (logits, p) in rows.zip(p.chunks_exact_mut(n_classes)) {
        let mut largest = f32::NEG_INFINITY;
        for &logit in logits {
            largest = largest.largest(logit);
        }
        for (p, &logit) in p.iter_mut().zip(logits) {
            *p = logit - largest;
        }
    }
    // one plain loop over all rows, which the compiler vectorises
    for p in &mut *p {
        *p = Real::exp(*p);
    }
    for p in p.chunks_exact_mut(n_classes) {
        let total: f32 = p.iter().sum();
        let inverse = 1.0 / total;
        for p in p {
            *p *= inverse;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softwood_testkit::close;

    #[test]
    fn sums_agree_with_the_definition_and_survive_large_numbers() {
        let values = [0.3_f64, -1.2, 2.5];
        let exact = values.iter().map(|v| v.exp()).sum::<f64>().ln();
        for shift in [0.0, 1e4, -1e4] {
            let shifted = values.iter().map(|v| v + shift);
            close(&[log_sum_exp(shifted.clone()) - shift], &[exact], 1e-9);
            let mean = exact - 3.0_f64.ln();
            close(
                &[log_mean_exp(values.map(|v| v + shift).into_iter()) - shift],
                &[mean],
                1e-9,
            );
        }
        assert!(log_sum_exp(std::iter::empty()) < f64::MIN);
    }

    #[test]
    fn softmax_works_column_by_column() {
        let logits = [[1.0, 900.0], [2.0, 900.0], [0.0, -900.0]];
        let mut p = logits.as_flattened().to_vec();
        softmax(&mut p, 2);
        let total: f64 = [1.0_f64, 2.0, 0.0].iter().map(|v| v.exp()).sum();
        let first = [1.0_f64, 2.0, 0.0].map(|v| v.exp() / total);
        close(&[p[0], p[2], p[4]], &first, 1e-12);
        close(&[p[1], p[3], p[5]], &[0.5, 0.5, 0.0], 1e-12);
        let mut rows = [0.0; 6];
        softmax_rows(&[1.0, 2.0, 0.0, 101.0, 102.0, 100.0], 3, &mut rows);
        for row in rows.chunks_exact(3) {
            let row: Vec<f64> = row.iter().map(|&p| f64::from(p)).collect();
            close(&row, &first, 1e-6);
        }
    }
}
