//! Finished cells: one model on one split of one set. They are appended to a file as soon as they are
//! finished, so that an interrupted run continues where it stopped.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use softwood::{Error, Result};

use crate::commands::path_checks::read_problem;

/// Name of the file in the output directory.
pub(crate) const FILE_NAME: &str = "cells.jsonl";

/// What identifies a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellName {
    pub(crate) table: String,
    pub(crate) set: String,
    pub(crate) model: String,
    /// Number of the split, from 0.
    pub(crate) split: usize,
    /// Version, seed, protocol, parameters of the model and number of rows.
    pub(crate) settings: Value,
}

/// A finished cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResultCell {
    #[serde(flatten)]
    pub(crate) name: CellName,
    /// Scores by name, in the units of the data.
    pub(crate) values: BTreeMap<String, f64>,
}

/// Finished cells, in memory and in the file.
#[derive(Debug)]
pub(crate) struct CellFile {
    file: Option<(PathBuf, Mutex<File>)>,
    cells: Mutex<Vec<ResultCell>>,
}

impl CellFile {
    /// Cells without a file.
    pub(crate) fn in_memory() -> Self {
        Self {
            file: None,
            cells: Mutex::default(),
        }
    }

    /// Opens the file in `folder`, or creates it. Lines that are not complete are ignored: their
    /// cells are computed again.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE_NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::file(&path, read_problem(&error))),
        };
        let cells = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let cells = cells.collect();
        let cannot_write = |error| Error::file(&path, format!("cannot write: {error}"));
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(cannot_write)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(cannot_write)?;
        }
        Ok(Self {
            file: Some((path.clone(), Mutex::new(file))),
            cells: Mutex::new(cells),
        })
    }

    /// The values of a finished cell.
    pub(crate) fn find(&self, name: &CellName) -> Option<BTreeMap<String, f64>> {
        let cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cells.iter().rev().find(|cell| cell.name == *name);
        found.map(|cell| cell.values.clone())
    }

    /// Adds a finished cell and writes it to the file.
    pub(crate) fn add(&self, cell: ResultCell) -> Result<()> {
        if let Some((path, file)) = &self.file {
            let line = serde_json::to_string(&cell).expect("a cell has texts as keys") + "\n";
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(line.as_bytes())
                .and_then(|()| file.flush())
                .map_err(|error| Error::file(path, format!("cannot write: {error}")))?;
        }
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        cells.push(cell);
        Ok(())
    }

    /// Path of the file, if there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(split: usize) -> ResultCell {
        ResultCell {
            name: CellName {
                table: "t".to_owned(),
                set: "s".to_owned(),
                model: "tree".to_owned(),
                split,
                settings: serde_json::json!({"seed": 0, "params": {"l2": 0.1}}),
            },
            values: BTreeMap::from([("rmse".to_owned(), 0.1 + 0.2)]),
        }
    }

    #[test]
    fn finished_cells_are_found_again_and_half_a_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let cells = CellFile::open(folder.path()).unwrap();
        cells.add(cell(0)).unwrap();
        let path = folder.path().join(FILE_NAME);
        let half = serde_json::to_string(&cell(1)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text + &half[..half.len() / 2]).unwrap();
        let again = CellFile::open(folder.path()).unwrap();
        assert_eq!(again.find(&cell(0).name), Some(cell(0).values));
        assert_eq!(again.find(&cell(1).name), None);
        again.add(cell(1)).unwrap();
        let last = CellFile::open(folder.path()).unwrap();
        assert_eq!(last.find(&cell(1).name), Some(cell(1).values));
    }

    #[test]
    fn other_settings_are_another_cell() {
        let cells = CellFile::in_memory();
        cells.add(cell(0)).unwrap();
        let mut other = cell(0).name;
        other.settings = serde_json::json!({"seed": 1, "params": {"l2": 0.1}});
        assert!(cells.find(&other).is_none() && cells.find(&cell(0).name).is_some());
    }
}
