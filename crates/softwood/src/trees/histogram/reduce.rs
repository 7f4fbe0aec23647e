//! Sums over the processes of a fit, between counting histograms and searching them.
//!
//! Every process has some of the rows, in the same bins and with gradients quantized in the same
//! units. Counts and histograms are integers, so that their sums, and with them the tree, are
//! exactly those of one process with all rows.

use crate::error::Result;

/// Sums integers over all processes. Every process calls the same methods in the same order with
/// slices of the same lengths.
pub(crate) trait Reduce: std::fmt::Debug + Sync {
    /// Whether this process has all rows: then nothing is summed, and a group of columns is counted
    /// and searched without waiting for the others.
    fn is_local(&self) -> bool {
        false
    }

    /// Replaces numbers of rows by their sums.
    ///
    /// # Errors
    /// When another process cannot be reached.
    fn sum_counts(&self, counts: &mut [usize]) -> Result<()>;

    /// Replaces the histograms of the nodes just counted by their sums: those of the first group of
    /// columns node by node, then those of the next group. Sums fit into 32 bits, because
    /// gradients are quantized for the rows of all processes.
    ///
    /// # Errors
    /// When another process cannot be reached.
    fn sum_histograms(&self, histograms: &mut [&mut [i32]]) -> Result<()>;
}

/// The only process of a fit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SingleProcess;

impl Reduce for SingleProcess {
    fn is_local(&self) -> bool {
        true
    }

    fn sum_counts(&self, _: &mut [usize]) -> Result<()> {
        Ok(())
    }

    fn sum_histograms(&self, _: &mut [&mut [i32]]) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, Mutex};

    use super::*;
    use crate::data::binning::binned::Cuts;
    use crate::data::column::Column;
    use crate::data::table::Table;
    use crate::likelihood::OutputTerms;
    use crate::par::Pool;
    use crate::rng::Key;
    use crate::trees::histogram::candidate::ColumnInfo;
    use crate::trees::histogram::chooser::{SplitChooser, SplitNoise, SplitSampling};
    use crate::trees::histogram::grower::{GrowTask, Grower, Growth, HistogramTree, Limits};
    use crate::trees::histogram::quantized_gradients::{QuantizationScale, QuantizedGradients};
    use crate::trees::histogram::splitter::{GainSpec, ScaledGain};

    const N: usize = 3000;
    /// Rows of the first of two processes.
    const N_FIRST: usize = 1100;
    const SALT: u64 = 7;

    /// Two threads that stand for two processes.
    #[derive(Debug)]
    struct TwoProcesses {
        sums: Mutex<Vec<i64>>,
        barrier: Barrier,
    }

    impl TwoProcesses {
        fn sum(&self, values: Vec<i64>) -> Vec<i64> {
            {
                let mut sums = self.sums.lock().unwrap();
                if sums.is_empty() {
                    *sums = values;
                } else {
                    assert_eq!(sums.len(), values.len(), "both sum the same nodes");
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum += value;
                    }
                }
            }
            self.barrier.wait();
            let total = self.sums.lock().unwrap().clone();
            if self.barrier.wait().is_leader() {
                self.sums.lock().unwrap().clear();
            }
            self.barrier.wait();
            total
        }
    }

    impl Reduce for TwoProcesses {
        fn sum_counts(&self, counts: &mut [usize]) -> Result<()> {
            let total = self.sum(counts.iter().map(|&count| count as i64).collect());
            for (count, total) in counts.iter_mut().zip(total) {
                *count = total as usize;
            }
            Ok(())
        }

        fn sum_histograms(&self, histograms: &mut [&mut [i32]]) -> Result<()> {
            let own = histograms.iter().flat_map(|part| part.iter());
            let total = self.sum(own.map(|&sum| i64::from(sum)).collect());
            let own = histograms.iter_mut().flat_map(|part| part.iter_mut());
            for (sum, total) in own.zip(total) {
                *sum = i32::try_from(total).expect("sums fit into 32 bits");
            }
            Ok(())
        }
    }

    /// Nine numeric columns, one of which has missing cells only in the first process, and a
    /// categorical one: two groups of columns.
    fn table() -> Table {
        let numeric = |column: usize| {
            let mut cells = Key::from_seed(3).child(column as u64).uniforms(N);
            if column == 2 {
                cells[..N_FIRST]
                    .iter_mut()
                    .step_by(4)
                    .for_each(|cell| *cell = f64::NAN);
            }
            Column::numeric(format!("{column}"), cells)
        };
        let texts: Vec<_> = (0..N)
            .map(|row| Some((row * 31 % 17 % 6).to_string()))
            .collect();
        let category = Column::categorical("category", &texts);
        Table::new((0..9).map(numeric).chain([category]).collect()).unwrap()
    }

    fn gradients() -> Vec<[f32; 2]> {
        let noise = Key::from_seed(4).uniforms(2 * N);
        let x = Key::from_seed(3).child(0).uniforms(N);
        let row = |row: usize| {
            let jump = if row * 31 % 17 % 6 > 2 { 1.0 } else { 0.0 };
            let gradient = (6.0 * x[row]).sin() + jump + noise[row] - 1.0;
            [gradient as f32, 0.5 + noise[N + row] as f32]
        };
        (0..N).map(row).collect()
    }

    fn limits(growth: Growth) -> Limits {
        Limits {
            growth,
            max_depth: 6,
            max_leaves: 40,
        }
    }

    /// Grows a tree on the rows `rows`, with gradients that were quantized in an agreed scale.
    fn grow(
        rows: std::ops::Range<usize>,
        growth: Growth,
        chooser: SplitChooser,
        reduce: &dyn Reduce,
    ) -> HistogramTree {
        let (table, values) = (table(), gradients());
        let all: Vec<u32> = (0..N as u32).collect();
        let cuts = Cuts::fit(&table, &all, &vec![1.0; N], 64);
        let columns = ColumnInfo::new(&cuts, &cuts.bin_rows(&table, &all));
        let binned = cuts.bin_rows(&table, &all[rows.clone()]);
        let scale = QuantizationScale {
            first_row: rows.start,
            ..QuantizationScale::of(&values)
        };
        let mut quantized = QuantizedGradients::<2>::of_part(rows.len(), N);
        quantized.set_scaled(&values[rows], SALT, &scale);
        let gain_spec = GainSpec {
            outputs: vec![OutputTerms {
                gradient: 0,
                hessian: 1,
                factor: 1.0,
                l2: 1.0,
            }],
            weight: 1,
            min_weight: 2.0,
        };
        let task = GrowTask {
            binned: &binned,
            columns: &columns,
            quantized: &quantized,
            scaled_gain: &ScaledGain::new(&gain_spec, &quantized),
            limits: limits(growth),
            allowed: &[true; 10],
            chooser,
            pool: &Pool::new(2).unwrap(),
            reduce,
        };
        Grower::new(&binned).grow(&task).unwrap()
    }

    #[test]
    fn two_processes_with_some_rows_each_grow_the_tree_of_all_rows() {
        let noise = SplitNoise {
            sd: 3.0,
            key: Key::from_seed(5),
        };
        let sampling = SplitSampling {
            noise_variance: 0.5,
            base: 0.95,
            power: 0.5,
            key: Key::from_seed(6),
        };
        for (growth, chooser) in [
            (Growth::Symmetric, SplitChooser::Best),
            (Growth::Depthwise, SplitChooser::Best),
            (Growth::Leafwise, SplitChooser::Noisy(noise)),
            (Growth::Depthwise, SplitChooser::Sampled(sampling)),
        ] {
            let whole = grow(0..N, growth, chooser, &SingleProcess);
            let processes = TwoProcesses {
                sums: Mutex::new(Vec::new()),
                barrier: Barrier::new(2),
            };
            let parts = std::thread::scope(|scope| {
                let handles = [0..N_FIRST, N_FIRST..N].map(|rows| {
                    let processes = &processes;
                    scope.spawn(move || grow(rows, growth, chooser, processes))
                });
                handles.map(|handle| handle.join().unwrap())
            });
            assert!(whole.leaves.len() > 8, "{growth:?} {chooser:?}");
            for part in &parts {
                assert_eq!(part.structure, whole.structure, "{growth:?} {chooser:?}");
                assert_eq!(part.gains, whole.gains);
            }
            for (leaf, rows) in whole.leaves.iter().enumerate() {
                let n_parts: usize = parts.iter().map(|part| part.leaves[leaf].len()).sum();
                assert_eq!(n_parts, rows.len());
            }
        }
    }
}
