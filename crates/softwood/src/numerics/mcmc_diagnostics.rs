//! How many independent draws some chains are worth, and how far they agree.
//!
//! For `m` chains of `n` draws with mean within-chain variance `W` and variance of chain means `B`: pooled variance
//! `V = (n - 1)/n W + B`, and `R = sqrt(V / W)`, near 1 where the chains have forgotten where they began. Autocorrelation
//! at lag `t` is `1 - (W - c_t)/V`, `c_t` being the mean autocovariance; the effective size is `m n / (1 + 2 sum_t rho_t)`, the sum
//! taken while pairs of neighbouring terms are positive (Geyer 1992; Gelman et al., Bayesian Data Analysis, 11.5).
//!
//! Several quantities, such as the rows of a table, may be added up: moments are then means over them.

/// Most lags that are looked at: draws that are still alike so far apart are worth next to nothing.
const MAX_LAGS: usize = 100;

/// Moments of chains, summed over some quantities.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    n_chains: usize,
    length: usize,
    n_added: usize,
    within: f64,
    between: f64,
    /// Mean autocovariance of the chains, by lag.
    covariance: Vec<f64>,
}

impl Draws {
    pub(crate) fn new(n_chains: usize, n_draws: usize) -> Self {
        Self {
            n_chains,
            length: n_draws,
            n_added: 0,
            within: 0.0,
            between: 0.0,
            covariance: vec![0.0; n_draws.min(MAX_LAGS)],
        }
    }

    /// Adds a quantity: the draws of each chain, chain after chain.
    pub(crate) fn add(&mut self, draws: &[f64]) {
        let (m, n) = (self.n_chains as f64, self.length as f64);
        let mut means = Vec::with_capacity(self.n_chains);
        for chain in draws.chunks_exact(self.length) {
            let mean = chain.iter().sum::<f64>() / n;
            for (lag, sum) in self.covariance.iter_mut().enumerate() {
                let pairs = chain.iter().zip(&chain[lag..]);
                let products = pairs.map(|(a, b)| (a - mean) * (b - mean));
                *sum += products.sum::<f64>() / (n * m);
            }
            means.push(mean);
        }
        if self.length > 1 {
            let squares = draws.chunks_exact(self.length).zip(&means);
            let squares = squares.map(|(chain, mean)| -> f64 {
                chain.iter().map(|draw| (draw - mean).powi(2)).sum()
            });
            self.within += squares.sum::<f64>() / ((n - 1.0) * m);
        }
        self.between += variance(&means);
        self.n_added += 1;
    }

    /// Mean variance within a chain; none where chains have one draw.
    pub(crate) fn within(&self) -> Option<f64> {
        (self.length > 1).then(|| self.mean(self.within))
    }

    /// Variance between the means of chains; none where there is one.
    pub(crate) fn between(&self) -> Option<f64> {
        (self.n_chains > 1).then(|| self.mean(self.between))
    }

    /// Variance of all draws.
    pub(crate) fn variance(&self) -> f64 {
        let n = self.length as f64;
        let within = self.within().map_or(0.0, |within| within * (n - 1.0) / n);
        match self.between() {
            Some(between) => within + between,
            None => self.within().unwrap_or(0.0),
        }
    }

    /// Square root of the variance of all draws over that within a chain, where there are several of both.
    pub(crate) fn r_hat(&self) -> Option<f64> {
        let within = self.within().filter(|within| *within > 0.0)?;
        self.between()?;
        Some((self.variance() / within).sqrt())
    }

    /// Independent draws that all draws are worth: from the number of chains, which are independent, to that of draws; one where
    /// all are equal.
    pub(crate) fn effective(&self) -> f64 {
        let all = (self.n_chains * self.length) as f64;
        let variance = self.variance();
        if variance <= 0.0 {
            return 1.0;
        }
        let Some(within) = self.within() else {
            return all;
        };
        let rho = |lag: usize| match self.covariance.get(lag) {
            None => 0.0,
            Some(_) if lag == 0 => 1.0,
            Some(&covariance) => 1.0 - (within - self.mean(covariance)) / variance,
        };
        let (mut time, mut last) = (-1.0, f64::INFINITY);
        for lag in (0..self.covariance.len()).step_by(2) {
            let pair = rho(lag) + rho(lag + 1);
            if pair <= 0.0 {
                break;
            }
            // a sum that rises again is noise
            last = pair.min(last);
            time += 2.0 * last;
        }
        (all / time.max(1.0)).max(self.n_chains as f64)
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / self.n_added.max(1) as f64
    }
}

/// Variance of numbers, dividing by one less than their number; zero of one.
fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    squares.sum::<f64>() / (n - 1.0)
}

/// Effective size of `n` draws whose correlation falls by the factor `rho` from each to the next: that with the same
/// variance of the mean.
pub(crate) fn effective_of(n: usize, rho: f64) -> f64 {
    let n_draws = n as f64;
    let (mut time, mut power) = (1.0, 1.0);
    for lag in 1..n {
        power *= rho;
        time += 2.0 * (1.0 - lag as f64 / n_draws) * power;
    }
    n_draws / time
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::gaussian::Gaussian;
    use crate::rng::Key;

    /// `x -> rho x + noise`, stationary with variance 1; chain after chain.
    fn autoregression(rho: f64, n_chains: usize, n_draws: usize, key: Key) -> Vec<f64> {
        let mut normals = vec![0.0_f32; n_chains * n_draws];
        Gaussian::new(key).fill(&mut normals);
        let mut draws: Vec<f64> = normals.into_iter().map(f64::from).collect();
        for chain in draws.chunks_exact_mut(n_draws) {
            for at in 1..n_draws {
                chain[at] = rho * chain[at - 1] + (1.0 - rho * rho).sqrt() * chain[at];
            }
        }
        draws
    }

    fn chains(rho: f64, n_chains: usize, n_draws: usize) -> Draws {
        let mut chains = Draws::new(n_chains, n_draws);
        for quantity in 0..200 {
            let key = Key::from_seed(n_chains as u64).child(quantity);
            chains.add(&autoregression(rho, n_chains, n_draws, key));
        }
        chains
    }

    /// With the mean of 2000 draws a part of their correlation is taken off, about 5% at 0.9; the means of 200 quantities spread
    /// by 2%. Bands are 10%.
    #[test]
    fn an_autoregression_has_its_known_size() {
        for (rho, n_chains) in [(0.0, 1), (0.5, 1), (0.9, 1), (0.5, 4), (0.9, 4)] {
            let chains = chains(rho, n_chains, 2000);
            let exact = n_chains as f64 * 2000.0 * (1.0 - rho) / (1.0 + rho);
            let found = chains.effective();
            assert!(
                (found / exact - 1.0).abs() < 0.1,
                "{rho} {n_chains}: {found} for {exact}"
            );
            assert!((chains.variance() - 1.0).abs() < 0.1);
            assert!(
                chains
                    .r_hat()
                    .is_none_or(|r_hat| (r_hat - 1.0).abs() < 0.02)
            );
        }
    }

    #[test]
    fn independent_draws_count_in_full_however_they_are_shared_out() {
        for (n_chains, n_draws) in [(10, 1), (1, 10), (5, 2), (2, 5)] {
            let found = chains(0.0, n_chains, n_draws).effective();
            assert!(
                (8.5..=10.0).contains(&found),
                "{n_chains} x {n_draws}: {found}"
            );
        }
    }

    /// Draws that never leave their place are worth one draw each, and disagree.
    #[test]
    fn stuck_chains_count_once() {
        let mut stuck = Draws::new(4, 25);
        for quantity in 0..300 {
            let places = autoregression(0.0, 1, 4, Key::from_seed(9).child(quantity));
            let moves = autoregression(0.0, 1, 100, Key::from_seed(8).child(quantity));
            let draws: Vec<f64> = (0..100)
                .map(|at| places[at / 25] + 1e-2 * moves[at])
                .collect();
            stuck.add(&draws);
        }
        let found = stuck.effective();
        assert!((4.0..5.0).contains(&found), "{found}");
        assert!(stuck.r_hat().is_some_and(|r_hat| r_hat > 50.0));
        let mut same = Draws::new(3, 2);
        same.add(&[0.5; 6]);
        assert!((same.effective() - 1.0).abs() < 1e-12 && same.variance() < 1e-12);
    }

    #[test]
    fn the_size_of_a_known_correlation_is_that_of_its_mean() {
        assert!((effective_of(7, 0.0) - 7.0).abs() < 1e-12);
        assert!((effective_of(7, 1.0) - 1.0).abs() < 1e-12);
        assert!((effective_of(100_000, 0.5) / 100_000.0 - 1.0 / 3.0).abs() < 1e-4);
    }
}
