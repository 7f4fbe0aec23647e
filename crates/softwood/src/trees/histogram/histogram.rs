//! Histograms: sums of quantized gradients by bin, for the columns of one group.

use multiversion::multiversion;

use crate::data::binning::binned::GROUP;
use crate::numerics::prefetch::{AHEAD, prefetch};

/// Number of bins of a column.
pub(crate) const BINS: usize = 256;

/// Histogram of one column: the sums of the entries of the rows in each bin.
pub(crate) type Bins<const L: usize> = [[i32; L]; BINS];

/// Histograms of the columns of one group.
#[derive(Debug, Clone)]
pub(crate) struct Histogram<const L: usize>(Vec<Bins<L>>);

impl<const L: usize> Histogram<L> {
    pub(crate) fn new(n_columns: usize) -> Self {
        Self(vec![[[0; L]; BINS]; n_columns])
    }

    /// All sums, columns x bins x entries.
    pub(crate) fn sums_mut(&mut self) -> &mut [i32] {
        self.0.as_flattened_mut().as_flattened_mut()
    }

    pub(crate) fn column(&self, at: usize) -> &Bins<L> {
        &self.0[at]
    }

    /// Computes the histograms of `rows`, which ascend without repetition, for some columns. `bins`
    /// holds all rows of the table, `grad_hess` only those in `rows`. The sums of other columns,
    /// and of bins that a column does not use, are undefined.
    pub(crate) fn fill(
        &mut self,
        columns: &CountedColumns,
        bins: &[[u8; GROUP]],
        grad_hess: &[[i16; L]],
        rows: &[u32],
    ) {
        for column in columns.iter() {
            self.0[column.slot][..column.n_bins].fill([0; L]);
        }
        if columns.0.len() == self.0.len() {
            add(&mut self.0, bins, grad_hess, rows);
        } else {
            add_some(&mut self.0, &columns.0, bins, grad_hess, rows);
        }
    }

    /// Subtracts the histogram of one child, which leaves the histogram of the other child.
    pub(crate) fn subtract(&mut self, part: &Self, columns: &CountedColumns) {
        for &CountedColumn { slot, n_bins } in columns.iter() {
            subtract(&mut self.0[slot][..n_bins], &part.0[slot][..n_bins]);
        }
    }
}

/// A column of a group whose histograms are computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedColumn {
    /// Index of the column within its group.
    pub(crate) slot: usize,
    /// Number of bins that its cells can have.
    pub(crate) n_bins: usize,
}

/// The columns of a group whose histograms are computed, ascending.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountedColumns(Vec<CountedColumn>);

impl CountedColumns {
    pub(crate) fn new(columns: impl Iterator<Item = CountedColumn>) -> Self {
        Self(columns.collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CountedColumn> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn add_some<const L: usize>(
    sums: &mut [Bins<L>],
    columns: &[CountedColumn],
    bins: &[[u8; GROUP]],
    grad_hess: &[[i16; L]],
    rows: &[u32],
) {
    for (at, (&row, grad_hess)) in rows.iter().zip(grad_hess).enumerate() {
        if let Some(&later) = rows.get(at + AHEAD) {
            prefetch(bins, later as usize);
        }
        let wide = widened(grad_hess);
        let bins = &bins[row as usize];
        for column in columns {
            let slot = column.slot % GROUP;
            add_to(&mut sums[slot][bins[slot] as usize], &wide);
        }
    }
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn add<const L: usize>(
    sums: &mut [Bins<L>],
    bins: &[[u8; GROUP]],
    grad_hess: &[[i16; L]],
    rows: &[u32],
) {
    if rows.len() == bins.len() {
        // all rows in table order: no indirection
        for (bins, grad_hess) in bins.iter().zip(grad_hess) {
            add_row(sums, bins, grad_hess);
        }
        return;
    }
    let (soon, last) = rows.split_at(rows.len().saturating_sub(AHEAD));
    for ((&row, &later), grad_hess) in soon
        .iter()
        .zip(&rows[rows.len() - soon.len()..])
        .zip(grad_hess)
    {
        prefetch(bins, later as usize);
        add_row(sums, &bins[row as usize], grad_hess);
    }
    for (&row, grad_hess) in last.iter().zip(&grad_hess[soon.len()..]) {
        add_row(sums, &bins[row as usize], grad_hess);
    }
}

#[inline(always)]
fn add_row<const L: usize>(sums: &mut [Bins<L>], bins: &[u8; GROUP], grad_hess: &[i16; L]) {
    let wide = widened(grad_hess);
    // The compiler unrolls a loop of constant length. Its exit is predicted, as all rows have the
    // same number of columns, so one instance is as fast as one for each number.
    for column in 0..GROUP {
        if column >= sums.len() {
            break;
        }
        add_to(&mut sums[column][bins[column] as usize], &wide);
    }
}

#[inline(always)]
fn widened<const L: usize>(grad_hess: &[i16; L]) -> [i32; L] {
    let mut wide = [0; L];
    for entry in 0..L {
        wide[entry] = i32::from(grad_hess[entry]);
    }
    wide
}

#[inline(always)]
fn add_to<const L: usize>(sum: &mut [i32; L], wide: &[i32; L]) {
    for entry in 0..L {
        sum[entry] = sum[entry].wrapping_add(wide[entry]);
    }
}

#[multiversion(targets("x86_64+avx2+fma"))]
fn subtract<const L: usize>(whole: &mut [[i32; L]], part: &[[i32; L]]) {
    for (whole, part) in whole.as_flattened_mut().iter_mut().zip(part.as_flattened()) {
        *whole = whole.wrapping_sub(*part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_agree_with_a_plain_loop_and_with_subtraction() {
        let n = 500_usize;
        let bins: Vec<[u8; GROUP]> = (0..n)
            .map(|i| std::array::from_fn(|c| (i * (c + 3) % 251) as u8))
            .collect();
        let grad_hess: Vec<[i16; 4]> = (0..n as i16).map(|i| [i, -i, 1, i * 31 % 1000]).collect();
        let all: Vec<u32> = (0..n as u32).collect();
        for n_columns in 1..=GROUP {
            let columns = CountedColumns::new(
                (0..n_columns).map(|slot| CountedColumn { slot, n_bins: BINS }),
            );
            let fill = |rows: &[u32]| {
                let mut sums = Histogram::<4>::new(n_columns);
                let grad_hess: Vec<_> = rows.iter().map(|&row| grad_hess[row as usize]).collect();
                sums.fill(&columns, &bins, &grad_hess, rows);
                sums
            };
            let (mut whole, part) = (fill(&all), fill(&all[100..350]));
            for column in 0..n_columns {
                for bin in 0..BINS {
                    let plain = (0..n)
                        .filter(|&i| bins[i][column] as usize == bin)
                        .map(|i| i32::from(grad_hess[i][3]))
                        .sum::<i32>();
                    assert_eq!(whole.column(column)[bin][3], plain);
                }
            }
            whole.subtract(&part, &columns);
            let remaining: Vec<u32> = (0..100).chain(350..n as u32).collect();
            assert_eq!(whole.0, fill(&remaining).0);
        }
    }

    #[test]
    fn only_the_counted_columns_and_their_bins_are_computed() {
        let n = 300_usize;
        let bins: Vec<[u8; GROUP]> = (0..n)
            .map(|i| std::array::from_fn(|c| (i * (c + 3) % 40) as u8))
            .collect();
        let grad_hess: Vec<[i16; 2]> = (0..n as i16).map(|i| [i, 1]).collect();
        let rows: Vec<u32> = (0..n as u32).collect();
        let column = |slot| CountedColumn { slot, n_bins: 40 };
        let all = CountedColumns::new((0..GROUP).map(column));
        let some = CountedColumns::new([2, 5].into_iter().map(column));
        let (mut whole, mut part) = (Histogram::<2>::new(GROUP), Histogram::<2>::new(GROUP));
        part.0.fill([[9; 2]; BINS]);
        whole.fill(&all, &bins, &grad_hess, &rows);
        part.fill(&some, &bins, &grad_hess, &rows);
        for slot in 0..GROUP {
            if [2, 5].contains(&slot) {
                assert_eq!(part.0[slot][..40], whole.0[slot][..40]);
                assert_eq!(part.0[slot][40..], [[9; 2]; BINS - 40]);
            } else {
                assert_eq!(part.0[slot], [[9; 2]; BINS]);
            }
        }
    }
}
