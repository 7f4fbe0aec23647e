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

    /// Computes the histograms of `rows`, which ascend without repetition. `bins` holds all rows of
    /// the table, `grad_hess` only those in `rows`.
    pub(crate) fn fill(&mut self, bins: &[[u8; GROUP]], grad_hess: &[[i16; L]], rows: &[u32]) {
        self.0.fill([[0; L]; BINS]);
        add(&mut self.0, bins, grad_hess, rows);
    }

    /// Subtracts the histogram of one child, which leaves the histogram of the other child.
    pub(crate) fn subtract(&mut self, part: &Self) {
        subtract(self.0.as_flattened_mut(), part.0.as_flattened());
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
    let mut wide = [0; L];
    for entry in 0..L {
        wide[entry] = i32::from(grad_hess[entry]);
    }
    // The compiler unrolls a loop of constant length. Its exit is predicted, as all rows have the
    // same number of columns, so one instance is as fast as one for each number.
    for column in 0..GROUP {
        if column >= sums.len() {
            break;
        }
        let sum = &mut sums[column][bins[column] as usize];
        for entry in 0..L {
            sum[entry] = sum[entry].wrapping_add(wide[entry]);
        }
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
            let fill = |rows: &[u32]| {
                let mut sums = Histogram::<4>::new(n_columns);
                let grad_hess: Vec<_> = rows.iter().map(|&row| grad_hess[row as usize]).collect();
                sums.fill(&bins, &grad_hess, rows);
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
            whole.subtract(&part);
            let remaining: Vec<u32> = (0..100).chain(350..n as u32).collect();
            assert_eq!(whole.0, fill(&remaining).0);
        }
    }
}
