//! The schedule of a variational training run: epochs, minibatches, draws, learning rate, KL
//! annealing.

/// Length of a training run, its minibatches and its learning rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TrainingSchedule {
    pub(crate) n_epochs: usize,
    pub(crate) batch_size: usize,
    /// Posterior draws per step.
    pub(crate) n_draws: usize,
    /// Peak learning rate.
    pub(crate) learning_rate: f64,
}

/// User settings of a schedule; `None` means a default that depends on the number of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScheduleOptions {
    pub(crate) n_epochs: Option<usize>,
    pub(crate) batch_size: Option<usize>,
    pub(crate) n_draws: Option<usize>,
    pub(crate) learning_rate: f64,
}

/// Default number of steps of a full run; it determines the default number of epochs.
const N_STEPS: usize = 12_000;
/// Bounds of the default number of epochs.
const EPOCHS: std::ops::RangeInclusive<usize> = 40..=1500;
/// Number of rows from which two draws per step suffice: the gradient variance then comes mostly
/// from the minibatches.
const MANY_ROWS: usize = 3000;
/// Fraction of a run over which the weight of the KL term grows from 0 to 1. At full weight from
/// the start, the KL term shrinks weights to zero before the likelihood gradient can move them, and
/// the learned prior keeps them there.
const KL_ANNEALING: f64 = 0.5;
/// Fraction of a run during which the prior stays fixed: learned earlier, it would keep weights at
/// zero.
const PRIOR_LEARNING_START: f64 = 0.1;

impl TrainingSchedule {
    /// The schedule of a full run on `n_rows` rows.
    pub(crate) fn full(options: &ScheduleOptions, n_rows: usize) -> Self {
        let batch_size = options.batch_size.unwrap_or(match n_rows {
            ..2_000 => 64,
            2_000..10_000 => 128,
            _ => 256,
        });
        let steps_per_epoch = n_rows.div_ceil(batch_size);
        let n_epochs = (N_STEPS / steps_per_epoch).clamp(*EPOCHS.start(), *EPOCHS.end());
        let n_draws = if n_rows < MANY_ROWS { 4 } else { 2 };
        Self {
            n_epochs: options.n_epochs.unwrap_or(n_epochs),
            batch_size,
            n_draws: options.n_draws.unwrap_or(n_draws),
            learning_rate: options.learning_rate,
        }
    }

    /// This schedule with a fraction of the epochs.
    pub(crate) fn part(self, fraction: f64) -> Self {
        let n_epochs = (self.n_epochs as f64 * fraction).ceil().max(1.0) as usize;
        Self { n_epochs, ..self }
    }

    /// Learning rate after a fraction `progress` of the run: a cosine from the peak to zero.
    pub(crate) fn learning_rate_at(&self, progress: f64) -> f64 {
        self.learning_rate * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
    }

    /// Whether the KL term has its full weight after `epoch` epochs.
    pub(crate) fn is_annealed(&self, epoch: usize) -> bool {
        epoch as f64 >= KL_ANNEALING * self.n_epochs as f64
    }
}

/// Weight of the KL term after a fraction `progress` of a run without warm start.
pub(crate) fn kl_annealing(progress: f64) -> f64 {
    (progress / KL_ANNEALING).min(1.0)
}

/// Whether the prior is learned after a fraction `progress` of a run without warm start.
pub(crate) fn learns_prior(progress: f64) -> bool {
    progress >= PRIOR_LEARNING_START
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: ScheduleOptions = ScheduleOptions {
        n_epochs: None,
        batch_size: None,
        n_draws: None,
        learning_rate: 0.01,
    };

    #[test]
    fn the_number_of_steps_hardly_depends_on_the_number_of_rows() {
        for n_rows in [2_000, 5_000, 20_000, 70_000] {
            let schedule = TrainingSchedule::full(&AUTO, n_rows);
            let n_steps = schedule.n_epochs * n_rows.div_ceil(schedule.batch_size);
            assert!(
                (N_STEPS - 300..=N_STEPS).contains(&n_steps),
                "{n_rows}: {n_steps}"
            );
        }
        assert_eq!(TrainingSchedule::full(&AUTO, 10).n_epochs, *EPOCHS.end());
        assert_eq!(
            TrainingSchedule::full(&AUTO, 10_000_000).n_epochs,
            *EPOCHS.start()
        );
    }

    #[test]
    fn user_settings_override_the_defaults() {
        let options = ScheduleOptions {
            n_epochs: Some(7),
            batch_size: Some(3),
            n_draws: Some(1),
            ..AUTO
        };
        let schedule = TrainingSchedule::full(&options, 100);
        let found = (schedule.n_epochs, schedule.batch_size, schedule.n_draws);
        assert_eq!(found, (7, 3, 1));
        assert_eq!(schedule.part(0.5).n_epochs, 4);
    }

    #[test]
    fn the_kl_weight_grows_to_one_and_the_learning_rate_falls_to_zero() {
        let weights = [0.0, 0.25, 0.5, 1.0].map(kl_annealing);
        softwood_testkit::close(&weights, &[0.0, 0.5, 1.0, 1.0], 1e-12);
        let schedule = TrainingSchedule::full(&AUTO, 1000).part(0.1);
        assert!(!schedule.is_annealed(schedule.n_epochs / 2 - 1));
        assert!(schedule.is_annealed(schedule.n_epochs.div_ceil(2)));
        let rates = [0.0, 0.5, 1.0].map(|progress| schedule.learning_rate_at(progress));
        softwood_testkit::close(&rates, &[0.01, 0.005, 0.0], 1e-12);
    }
}
