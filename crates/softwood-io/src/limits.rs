//! Limits on the size of a table that is read, and memory that is reserved without aborting.

use softwood::{Error, Result};

/// Largest sizes that are read. A file of a few megabytes can decompress to terabytes, and a wrong
/// delimiter or an unclosed quote makes one cell of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadLimits {
    /// Bytes of one text cell.
    pub cell_bytes: usize,
    /// Columns of the table.
    pub columns: usize,
    /// Bytes of the whole table: of decompressed text, or of the decoded cells of a binary format.
    pub table_bytes: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            cell_bytes: 16_000_000,
            columns: 1_000_000,
            table_bytes: 16_000_000_000,
        }
    }
}

impl ReadLimits {
    /// No limits: memory alone decides.
    pub const NONE: Self = Self {
        cell_bytes: usize::MAX,
        columns: usize::MAX,
        table_bytes: u64::MAX,
    };

    /// Rejects a table with too many columns.
    pub(crate) fn check_columns(&self, n_columns: usize) -> Result<()> {
        if n_columns <= self.columns {
            return Ok(());
        }
        let problem = format!("the table has more than {} columns", self.columns);
        Err(exceeded(&problem))
    }

    /// Rejects a table whose decoded cells need more than the allowed bytes.
    #[cfg(any(feature = "parquet", feature = "ipc"))]
    pub(crate) fn check_cells(&self, n_rows: u64, n_columns: usize) -> Result<()> {
        let bytes = n_rows.saturating_mul(8 * n_columns as u64);
        if bytes <= self.table_bytes {
            return Ok(());
        }
        Err(exceeded(&format!(
            "the file claims {n_rows} rows of {n_columns} columns, more than {} of cells",
            size_text(self.table_bytes)
        )))
    }
}

/// The error for a table beyond a limit.
pub(crate) fn exceeded(problem: &str) -> Error {
    Error::Table(format!(
        "{problem}; if the file is right, read it with --no-size-limits"
    ))
}

/// A number of bytes in decimal units.
pub(crate) fn size_text(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
    let unit = units.into_iter().find(|(size, _)| bytes >= *size);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(size, name)| format!("{} {name}", bytes / size),
    )
}

/// Reserves memory for `n` more elements; an error instead of an abort if there is not enough.
pub(crate) fn reserve<T>(cells: &mut Vec<T>, n: usize) -> Result<()> {
    cells.try_reserve(n).map_err(|_| {
        let found = cells.len();
        let problem = format!("not enough memory for the table after {found} cells of a column");
        Error::Table(format!("{problem}; read fewer rows or columns"))
    })
}

/// Appends an element; an error instead of an abort if there is not enough memory.
pub(crate) fn push<T>(cells: &mut Vec<T>, cell: T) -> Result<()> {
    if cells.len() == cells.capacity() {
        reserve(cells, 1)?;
    }
    cells.push(cell);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_reservations_are_errors() {
        let mut cells = vec![1.0];
        let message = reserve(&mut cells, usize::MAX / 16).unwrap_err();
        assert!(
            message.to_string().contains("not enough memory"),
            "{message}"
        );
        push(&mut cells, 2.0).unwrap();
        assert_eq!(cells, [1.0, 2.0]);
    }

    #[test]
    fn sizes_have_units() {
        let texts = [12, 2500, 16_000_000, 16_000_000_000].map(size_text);
        assert_eq!(texts, ["12 bytes", "2 kB", "16 MB", "16 GB"]);
    }
}
