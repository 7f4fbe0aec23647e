//! The error type of the library. Exit codes belong to the program, not to this file.

use std::path::PathBuf;

/// What went wrong, in words that a user can act on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One or more invalid parameters; all of them are listed.
    #[error("{}", .0.join("; "))]
    Parameters(Vec<String>),
    /// A cell that cannot be used. `row` counts data rows from 1, without the header.
    #[error("column `{column}`, row {row}: {problem}")]
    Cell {
        /// Name of the column.
        column: String,
        /// Data row, counted from 1.
        row: usize,
        /// What was found and what is expected.
        problem: String,
    },
    /// A column that is absent, duplicated or of the wrong kind.
    #[error("column `{column}`: {problem}")]
    Column {
        /// Name of the column.
        column: String,
        /// What was found and what is expected.
        problem: String,
    },
    /// A table that cannot be used as a whole.
    #[error("{0}")]
    Table(String),
    /// A file that cannot be read or written.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was found and what is expected.
        problem: String,
    },
    /// Bytes that are not a model that this version can read.
    #[error("not a readable model: {0}")]
    Format(String),
    /// An error about the content of a file, with the path of the file.
    #[error("{}: {inner}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong with its content.
        inner: Box<Error>,
    },
    /// The observer stopped the work before there was a result.
    #[error("stopped before there was a result")]
    Cancelled,
    /// A result that does not fit into memory.
    #[error(
        "{what} need {:.1} GB of memory, more than is available; ask for fewer at a time",
        *bytes as f64 / 1e9
    )]
    Memory {
        /// What was to be stored.
        what: String,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A training step gave a value that is not finite.
    #[error("training diverged at step {step}: {what}")]
    Diverged {
        /// Step of the first such value.
        step: usize,
        /// The quantity that is not finite.
        what: String,
    },
}

/// Result with Softwood's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error about one column.
    pub fn column(column: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Column {
            column: column.into(),
            problem: problem.into(),
        }
    }

    /// An error about one cell; `row` counts data rows from 1.
    pub fn cell(column: impl Into<String>, row: usize, problem: impl Into<String>) -> Self {
        Self::Cell {
            column: column.into(),
            row,
            problem: problem.into(),
        }
    }

    /// An error about one file.
    pub fn file(path: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        Self::File {
            path: path.into(),
            problem: problem.into(),
        }
    }

    /// Adds the path of the file in which the error was found; errors that name a file already, and
    /// errors that do not concern a file's content, stay unchanged.
    #[must_use]
    pub fn within(self, path: impl Into<PathBuf>) -> Self {
        match self {
            Self::File { .. }
            | Self::In { .. }
            | Self::Parameters(_)
            | Self::Memory { .. }
            | Self::Cancelled => self,
            other => Self::In {
                path: path.into(),
                inner: Box::new(other),
            },
        }
    }

    /// Whether the user can fix the cause. Only diverged training is a failure of the library.
    pub fn is_user_error(&self) -> bool {
        match self {
            Self::Diverged { .. } => false,
            Self::In { inner, .. } => inner.is_user_error(),
            _ => true,
        }
    }
}
