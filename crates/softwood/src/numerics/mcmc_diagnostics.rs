//! Effective sample size and R-hat of Markov chains.
//!
//! For `m` chains of `n` draws with mean within-chain variance `W` and variance `B` of the chain
//! means, the pooled variance is `V = (n - 1)/n W + B` and R-hat is `sqrt(V / W)`, near 1 for
//! chains that have converged. The autocorrelation at lag `t` is `rho_t = 1 - (W - c_t)/V` with the
//! mean autocovariance `c_t`; the effective sample size is `m n / (1 + 2 sum_t rho_t)`, where the
//! sum stops at the first pair of neighbouring terms that is not positive (Geyer 1992; Gelman et
//! al., Bayesian Data Analysis, 11.5).
//!
//! Several quantities, such as predictions for several rows, can be added: all moments are then
//! means over the quantities.

/// Largest lag of the autocorrelation sum; draws that are still correlated at this distance
/// contribute almost nothing.
const MAX_LAGS: usize = 100;

/// Moments of chains, summed over quantities.
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

    /// Adds a quantity: `draws` holds the draws of each chain, one chain after the other.
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

    /// Mean variance within a chain; `None` for chains of one draw.
    pub(crate) fn within(&self) -> Option<f64> {
        (self.length > 1).then(|| self.mean(self.within))
    }

    /// Variance of the chain means; `None` for a single chain.
    pub(crate) fn between(&self) -> Option<f64> {
        (self.n_chains > 1).then(|| self.mean(self.between))
    }

    /// Pooled variance of all draws.
    pub(crate) fn variance(&self) -> f64 {
        let n = self.length as f64;
        let within = self.within().map_or(0.0, |within| within * (n - 1.0) / n);
        match self.between() {
            Some(between) => within + between,
            None => self.within().unwrap_or(0.0),
        }
    }

    /// R-hat; `None` for a single chain, for chains of one draw and without variance within chains.
    pub(crate) fn r_hat(&self) -> Option<f64> {
        let within = self.within().filter(|within| *within > 0.0)?;
        self.between()?;
        Some((self.variance() / within).sqrt())
    }

    /// Effective sample size: between the number of chains, which are independent, and the number
    /// of draws; 1 where all draws are equal.
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
        let (mut autocorrelation_time, mut previous) = (-1.0, f64::INFINITY);
        for lag in (0..self.covariance.len()).step_by(2) {
            let pair = rho(lag) + rho(lag + 1);
            if pair <= 0.0 {
                break;
            }
            // the pair sums of a reversible chain decrease, so an increase is noise
            previous = pair.min(previous);
            autocorrelation_time += 2.0 * previous;
        }
        (all / autocorrelation_time.max(1.0)).max(self.n_chains as f64)
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / self.n_added.max(1) as f64
    }
}

/// Sample variance, divided by `n - 1`; zero for fewer than two values.
fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    squares.sum::<f64>() / (n - 1.0)
}

/// Effective sample size of `n` draws with autocorrelation `rho^t` at lag `t`: the number of
/// independent draws whose mean has the same variance.
pub(crate) fn effective_of(n: usize, rho: f64) -> f64 {
    let n_draws = n as f64;
    let (mut autocorrelation_time, mut power) = (1.0, 1.0);
    for lag in 1..n {
        power *= rho;
        autocorrelation_time += 2.0 * (1.0 - lag as f64 / n_draws) * power;
    }
    n_draws / autocorrelation_time
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::gaussian::Gaussian;
    use crate::rng::Key;

    /// AR(1) chains `x -> rho x + noise`, stationary with variance 1, one chain after the other.
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

    /// Subtracting the sample mean of 2000 draws removes about 5% of the correlation at
    /// `rho = 0.9`; the means over 200 quantities spread by 2%. The tolerance is 10%.
    #[test]
    fn the_effective_size_of_an_autoregression_is_known() {
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
    fn independent_draws_count_in_full_for_any_number_of_chains() {
        for (n_chains, n_draws) in [(10, 1), (1, 10), (5, 2), (2, 5)] {
            let found = chains(0.0, n_chains, n_draws).effective();
            assert!(
                (8.5..=10.0).contains(&found),
                "{n_chains} x {n_draws}: {found}"
            );
        }
    }

    /// A chain that does not move is worth one draw, and R-hat shows that the chains disagree.
    #[test]
    fn stuck_chains_count_once() {
        let mut stuck = Draws::new(4, 25);
        for quantity in 0..300 {
            let levels = autoregression(0.0, 1, 4, Key::from_seed(9).child(quantity));
            let noise = autoregression(0.0, 1, 100, Key::from_seed(8).child(quantity));
            let draws: Vec<f64> = (0..100)
                .map(|at| levels[at / 25] + 1e-2 * noise[at])
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
    fn the_effective_size_of_a_known_correlation_follows_from_the_variance_of_the_mean() {
        assert!((effective_of(7, 0.0) - 7.0).abs() < 1e-12);
        assert!((effective_of(7, 1.0) - 1.0).abs() < 1e-12);
        assert!((effective_of(100_000, 0.5) / 100_000.0 - 1.0 / 3.0).abs() < 1e-4);
    }
}
