//! Sums of gradients by bin, for the columns of one group: the inner loop of growing a tree.

use multiversion::multiversion;

use crate::data::binned::GROUP;
use crate::numerics::prefetch::{AHEAD, prefetch};

/// Bins of a column.
pub(crate) const BINS: usize = 256;

/// Sums of one column.
pub(crate) type Bins<const L: usize> = [[i32; L]; BINS];

/// Sums of the columns of one group.
#[derive(Debug, Clone)]
pub(crate) struct Histogram<const L: usize>(Vec<Bins<L>>);

impl<const L: usize> Histogram<L> {
    pub(crate) fn new(n_columns: usize) -> Self {
        Self(vec![[[0; L]; BINS]; n_columns])
    }

    pub(crate) fn column(&self, at: usize) -> &Bins<L> {
        &self.0[at]
    }

    /// The sums over some rows (ascending, each once); `bins` holds all rows, `lanes` only these.
    pub(crate) fn fill(&mut self, bins: &[[u8; GROUP]], lanes: &[[i16; L]], rows: &[u32]) {
        self.0.fill([[0; L]; BINS]);
        match self.0.as_mut_slice() {
            [a] => add(std::array::from_mut(a), bins, lanes, rows),
            wide => {
                let n = wide.len();
                match n {
                    2 => add::<2, L>(wide.try_into().expect(LENGTH), bins, lanes, rows),
                    3 => add::<3, L>(wide.try_into().expect(LENGTH), bins, lanes, rows),
                    4 => add::<4, L>(wide.try_into().expect(LENGTH), bins, lanes, rows),
                    5 => add::<5, L>(wide.try_into().expect(LENGTH), bins, lanes, rows),
                    6 => add::<6, L>(wide.try_into().expect(LENGTH), bins, lanes, rows),
                    7 => add::<7, L>(wide.try_into().expect(LENGTH), bins, lanes, rows),
                    _ => add::<8, L>(wide.try_into().expect(LENGTH), bins, lanes, rows),
                }
            }
        }
    }

    /// Takes the sums of a part away: what is left are the sums of the other part.
    pub(crate) fn subtract(&mut self, part: &Self) {
        subtract(self.0.as_flattened_mut(), part.0.as_flattened());
    }
}

const LENGTH: &str = "the slice has the length that was matched";

#[multiversion(targets = "simd")]
fn add<const N: usize, const L: usize>(
    sums: &mut [Bins<L>; N],
    bins: &[[u8; GROUP]],
    lanes: &[[i16; L]],
    rows: &[u32],
) {
    if rows.len() == bins.len() {
        // all rows, in the order of the table
        for (bins, lanes) in bins.iter().zip(lanes) {
            add_row(sums, bins, lanes);
        }
        return;
    }
    let (soon, last) = rows.split_at(rows.len().saturating_sub(AHEAD));
    for ((&row, &later), lanes) in soon.iter().zip(&rows[rows.len() - soon.len()..]).zip(lanes) {
        prefetch(bins, later as usize);
        add_row(sums, &bins[row as usize], lanes);
    }
    for (&row, lanes) in last.iter().zip(&lanes[soon.len()..]) {
        add_row(sums, &bins[row as usize], lanes);
    }
}

#[inline(always)]
fn add_row<const N: usize, const L: usize>(
    sums: &mut [Bins<L>; N],
    bins: &[u8; GROUP],
    lanes: &[i16; L],
) {
    let mut wide = [0; L];
    for lane in 0..L {
        wide[lane] = i32::from(lanes[lane]);
    }
    for column in 0..N {
        let sum = &mut sums[column][bins[column] as usize];
        for lane in 0..L {
            sum[lane] = sum[lane].wrapping_add(wide[lane]);
        }
    }
}

#[multiversion(targets = "simd")]
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
        let lanes: Vec<[i16; 4]> = (0..n as i16).map(|i| [i, -i, 1, i * 31 % 1000]).collect();
        let all: Vec<u32> = (0..n as u32).collect();
        for n_columns in 1..=GROUP {
            let fill = |rows: &[u32]| {
                let mut sums = Histogram::<4>::new(n_columns);
                let lanes: Vec<_> = rows.iter().map(|&row| lanes[row as usize]).collect();
                sums.fill(&bins, &lanes, rows);
                sums
            };
            let (mut whole, part) = (fill(&all), fill(&all[100..350]));
            for column in 0..n_columns {
                for bin in 0..BINS {
                    let plain = (0..n)
                        .filter(|&i| bins[i][column] as usize == bin)
                        .map(|i| i32::from(lanes[i][3]))
                        .sum::<i32>();
                    assert_eq!(whole.column(column)[bin][3], plain);
                }
            }
            whole.subtract(&part);
            let rest: Vec<u32> = (0..100).chain(350..n as u32).collect();
            assert_eq!(whole.0, fill(&rest).0);
        }
    }
}
