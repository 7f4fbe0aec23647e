//! Splits delimited text into records, with limits on the size of a cell, the number of columns and
//! the size of the text. The `csv` crate's own reader grows its buffers without limit; this one
//! drives the same parser (`csv-core`).

use std::io::{ErrorKind, Read};

use csv_core::ReadRecordResult;
use softwood::{Error, Result};

use crate::limits::{ReadLimits, exceeded, reserve, size_text};
use crate::source::text_problem;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;
/// Largest length of a row in units of the largest length of a cell.
const MAX_ROW_CELLS: usize = 16;

/// Records of a text, one at a time.
pub(crate) struct RecordReader<'a> {
    parser: csv_core::Reader,
    input: Box<dyn Read + 'a>,
    gzip: bool,
    limits: ReadLimits,
    /// Bytes read from the input so far.
    n_bytes: u64,
    buffer: Box<[u8]>,
    /// Part of the buffer that is not parsed yet.
    unparsed: std::ops::Range<usize>,
    /// Unquoted cells of the current record, one after the other.
    cells: Vec<u8>,
    /// End of each cell.
    ends: Vec<usize>,
    n_cells: usize,
    line: u64,
}

impl<'a> RecordReader<'a> {
    pub(crate) fn new(
        input: Box<dyn Read + 'a>,
        gzip: bool,
        delimiter: u8,
        limits: ReadLimits,
    ) -> Self {
        let parser = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        Self {
            parser,
            input,
            gzip,
            limits,
            n_bytes: 0,
            buffer: vec![0; BUFFER].into(),
            unparsed: 0..0,
            cells: vec![0; 1024],
            ends: vec![0; 64],
            n_cells: 0,
            line: 1,
        }
    }

    /// Number of cells of the current record.
    pub(crate) fn n_cells(&self) -> usize {
        self.n_cells
    }

    /// A cell of the current record.
    pub(crate) fn cell(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.cells[start..self.ends[at]]
    }

    /// Line of the parser before the current record.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Line of the parser after the current record.
    pub(crate) fn next_line(&self) -> u64 {
        self.parser.line()
    }

    /// Reads the next record; `false` at the end.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let (mut n_bytes, mut n_cells) = (0, 0);
        self.line = self.parser.line();
        loop {
            if self.unparsed.is_empty() {
                self.refill()?;
            }
            let (outcome, n_read, n_written, n_ends) = self.parser.read_record(
                &self.buffer[self.unparsed.clone()],
                &mut self.cells[n_bytes..],
                &mut self.ends[n_cells..],
            );
            self.unparsed.start += n_read;
            n_bytes += n_written;
            n_cells += n_ends;
            self.limits.check_columns(n_cells)?;
            let last_end = n_cells.checked_sub(1).map_or(0, |last| self.ends[last]);
            if n_bytes.saturating_sub(last_end) > self.limits.cell_bytes {
                return Err(self.too_long("cell", self.limits.cell_bytes));
            }
            let max_row_bytes = self.limits.cell_bytes.saturating_mul(MAX_ROW_CELLS);
            if n_bytes > max_row_bytes {
                return Err(self.too_long("row", max_row_bytes));
            }
            match outcome {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => double(&mut self.cells)?,
                ReadRecordResult::OutputEndsFull => double(&mut self.ends)?,
                ReadRecordResult::Record => {
                    self.n_cells = n_cells;
                    return Ok(true);
                }
                ReadRecordResult::End => {
                    self.n_cells = 0;
                    return Ok(false);
                }
            }
        }
    }

    fn refill(&mut self) -> Result<()> {
        let n_read = loop {
            match self.input.read(&mut self.buffer) {
                Ok(n_read) => break n_read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Table(text_problem(&error, self.gzip))),
            }
        };
        self.unparsed = 0..n_read;
        self.n_bytes += n_read as u64;
        if self.n_bytes > self.limits.table_bytes {
            let decompressed = if self.gzip { "decompressed " } else { "" };
            let size = size_text(self.limits.table_bytes);
            return Err(exceeded(&format!(
                "the {decompressed}text is longer than {size}"
            )));
        }
        Ok(())
    }

    fn too_long(&self, what: &str, max_bytes: usize) -> Error {
        exceeded(&format!(
            "a {what} that begins near line {} is longer than {}; check the delimiters and quotes there",
            self.line,
            size_text(max_bytes as u64)
        ))
    }
}

/// Doubles a buffer; an error instead of an abort if there is not enough memory.
fn double<T: Copy + Default>(buffer: &mut Vec<T>) -> Result<()> {
    let len = buffer.len();
    reserve(buffer, len)?;
    buffer.resize(2 * len, T::default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str, limits: ReadLimits) -> Result<Vec<Vec<String>>> {
        let mut reader = RecordReader::new(Box::new(text.as_bytes()), false, b',', limits);
        let mut found = Vec::new();
        while reader.advance()? {
            let cell = |at| String::from_utf8(reader.cell(at).to_vec()).unwrap();
            found.push((0..reader.n_cells()).map(cell).collect());
        }
        Ok(found)
    }

    #[test]
    fn records_longer_than_the_buffers_are_read() {
        let long = "é".repeat(100_000);
        let wide = vec!["1"; 5000].join(",");
        let text = format!("a,\"x\"\"{long}\"\r\n{wide}\n\nend");
        let found = records(&text, ReadLimits::default()).unwrap();
        assert_eq!(found[0], ["a", &format!("x\"{long}")]);
        assert_eq!((found[1].len(), found[2].len()), (5000, 1));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn sizes_beyond_the_limits_are_errors() {
        let limits = ReadLimits {
            cell_bytes: 5000,
            columns: 100,
            table_bytes: 200_000,
        };
        let cell = "x".repeat(4999);
        assert!(records(&format!("a,b\n{cell},{cell}\n"), limits).is_ok());
        for (text, part) in [
            (format!("a\n\"{cell}\nxx"), "a cell that begins near line 2"),
            ("a,".repeat(101), "more than 100 columns"),
            (format!("{cell}\n").repeat(41), "longer than 200 kB"),
        ] {
            let message = records(&text, limits).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
            assert!(message.contains("--no-size-limits"), "{message}");
        }
    }
}
