//! Smooth random functions `z`, one for each member, with mean 0 and variance 1 over the members at
//! every point: `z = W φ(x)` with random Fourier features `φ` of length 1 and orthogonal weights.

use crate::numerics::dot::dot;
use crate::numerics::gaussian::normals;
use crate::rng::Key;

/// Largest number of features.
const MAX_FEATURES: usize = 16;
/// Degrees of freedom of the frequencies of a Matern 5/2 kernel.
const DEGREES: usize = 5;

/// Random streams of the functions.
mod streams {
    pub(super) const FREQUENCIES: u64 = 0;
    pub(super) const TAILS: u64 = 1;
    pub(super) const PHASES: u64 = 2;
    pub(super) const WEIGHTS: u64 = 3;
}

#[derive(Debug, Clone)]
pub(super) struct MemberFunctions {
    /// Features x inputs, for inputs divided by the length scales.
    frequencies: Vec<f64>,
    phases: Vec<f64>,
    /// Outputs x members x features; the columns of an output are orthogonal, have mean 0 and mean
    /// square 1.
    weights: Vec<f64>,
    n_inputs: usize,
    /// Outputs times members.
    n_values: usize,
}

impl MemberFunctions {
    /// Functions with `n_outputs` values each.
    pub(super) fn new(n_inputs: usize, n_members: usize, n_outputs: usize, key: Key) -> Self {
        let n_features = MAX_FEATURES.min(n_members.saturating_sub(1));
        let mut frequencies = normals(key.child(streams::FREQUENCIES), n_features * n_inputs);
        let tails = normals(key.child(streams::TAILS), n_features * DEGREES);
        for (at, tail) in tails.chunks_exact(DEGREES).enumerate() {
            let factor = (DEGREES as f64 / dot(tail, tail).max(f64::MIN_POSITIVE)).sqrt();
            for frequency in &mut frequencies[at * n_inputs..(at + 1) * n_inputs] {
                *frequency *= factor;
            }
        }
        let phases = key.child(streams::PHASES).uniforms(n_features);
        let mut weights = Vec::with_capacity(n_outputs * n_members * n_features);
        for output in 0..n_outputs {
            let key = key.child(streams::WEIGHTS).child(output as u64);
            let columns = orthogonal_columns(n_members, n_features, key);
            for member in 0..n_members {
                weights.extend(columns.iter().map(|column| column[member]));
            }
        }
        Self {
            frequencies,
            phases: phases.iter().map(|u| std::f64::consts::TAU * u).collect(),
            weights,
            n_inputs,
            n_values: n_outputs * n_members,
        }
    }

    /// The functions of all members at a point, whose inputs are divided by the length scales
    /// (outputs x members).
    pub(super) fn at(&self, point: &[f64]) -> Vec<f64> {
        let n_features = self.phases.len();
        if n_features == 0 {
            // a single member has nobody to differ from
            return vec![0.0; self.n_values];
        }
        let angle = |at: usize| {
            let frequencies = &self.frequencies[at * self.n_inputs..(at + 1) * self.n_inputs];
            dot(frequencies, point) + self.phases[at]
        };
        let mut features: Vec<f64> = (0..n_features).map(|at| angle(at).cos()).collect();
        let length = dot(&features, &features).sqrt();
        if length > 0.0 {
            for feature in &mut features {
                *feature /= length;
            }
        }
        let weights = self.weights.chunks_exact(n_features);
        weights.map(|weights| dot(weights, &features)).collect()
    }
}

/// `n_columns` random columns of `n` numbers that are orthogonal to each other and to the constant, with
/// mean square 1. Less than `n` columns.
fn orthogonal_columns(n: usize, n_columns: usize, key: Key) -> Vec<Vec<f64>> {
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for at in 0..n_columns {
        let mut column = normals(key.child(at as u64), n);
        // twice, because rounding leaves a remainder the first time
        for _ in 0..2 {
            let mean = column.iter().sum::<f64>() / n as f64;
            for value in &mut column {
                *value -= mean;
            }
            for other in &columns {
                let share = dot(&column, other) / n as f64;
                let pairs = column.iter_mut().zip(other);
                pairs.for_each(|(value, other)| *value -= share * other);
            }
        }
        let scale = (n as f64 / dot(&column, &column)).sqrt();
        for value in &mut column {
            *value *= scale;
        }
        columns.push(column);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Key;
    use softwood_testkit::close;

    #[test]
    fn functions_have_mean_zero_and_variance_one_over_the_members() {
        for n_members in [2, 3, 10, 128] {
            let functions = MemberFunctions::new(2, n_members, 1, Key::from_seed(3));
            for point in [[0.0, 0.0], [1.5, -7.0]] {
                let z = functions.at(&point);
                let n = n_members as f64;
                let moments = [z.iter().sum::<f64>() / n, dot(&z, &z) / n];
                close(&moments, &[0.0, 1.0], 1e-9);
            }
        }
    }

    #[test]
    fn functions_are_smooth() {
        let functions = MemberFunctions::new(1, 128, 1, Key::from_seed(3));
        let correlation = |x: f64| dot(&functions.at(&[0.0]), &functions.at(&[x])) / 128.0;
        assert!(correlation(0.01) > 0.99);
        assert!(correlation(20.0).abs() < 0.7);
    }
}
