//! Binned rows in row-major order: routing from root to leaf reads the cells of one row.

use crate::data::binning::binned::Binned;
use crate::trees::structure::TreeStructure;

/// Bins, rows x columns.
#[derive(Debug, Clone)]
pub(crate) struct RowBins {
    bins: Vec<u8>,
    n_columns: usize,
}

impl RowBins {
    pub(crate) fn new(binned: &Binned) -> Self {
        let (n_rows, n_columns) = (binned.n_rows(), binned.n_columns());
        let mut bins = vec![0; n_rows * n_columns];
        for column in 0..n_columns {
            let (rows, at) = binned.place(column);
            let cells = bins.iter_mut().skip(column).step_by(n_columns.max(1));
            for (bin, row) in cells.zip(rows) {
                *bin = row[at];
            }
        }
        Self { bins, n_columns }
    }

    /// The bin of a cell.
    #[inline]
    pub(crate) fn bin(&self, row: usize, column: usize) -> u8 {
        self.bins[row * self.n_columns + column]
    }

    /// The leaf that a row is routed to.
    #[inline]
    pub(crate) fn leaf(&self, structure: &TreeStructure, row: usize) -> usize {
        let cells = &self.bins[row * self.n_columns..(row + 1) * self.n_columns];
        structure.leaf(|column| cells[column])
    }
}
