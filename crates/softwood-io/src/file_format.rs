//! The format of a table file, from its suffix; gzip is also recognised by its first bytes.

use std::path::Path;

use softwood::{Error, Result};

/// First bytes of a gzip stream.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Suffixes that are read and written, for messages.
const KNOWN_SUFFIXES: &str = ".csv, .csv.gz, .tsv, .tsv.gz, .parquet, .pq, .arrow, .ipc, .feather";

/// Format of a table on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// Delimited text.
    Text {
        /// Byte between two cells.
        delimiter: u8,
        /// Whether the suffix ends in `.gz`.
        gzip: bool,
    },
    /// Apache Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
    /// Arrow IPC file format; the stream format is read too, never written.
    #[cfg(feature = "ipc")]
    Ipc,
}

/// The format of standard input and output.
pub(crate) const PLAIN_CSV: FileFormat = FileFormat::Text {
    delimiter: b',',
    gzip: false,
};

/// Whether the path is `-`: standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl FileFormat {
    /// The format of the file's suffix, in upper or lower case; `-` is CSV.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        if is_stream(path) {
            return Ok(PLAIN_CSV);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_ascii_lowercase();
        let (stem, gzip) = match name.strip_suffix(".gz") {
            Some(stem) => (stem, true),
            None => (name.as_str(), false),
        };
        let suffix = stem.rsplit_once('.').map(|(_, suffix)| suffix);
        match (suffix, gzip) {
            (Some("csv"), _) => Ok(Self::Text {
                delimiter: b',',
                gzip,
            }),
            (Some("tsv"), _) => Ok(Self::Text {
                delimiter: b'\t',
                gzip,
            }),
            #[cfg(feature = "parquet")]
            (Some("parquet" | "pq"), false) => Ok(Self::Parquet),
            #[cfg(not(feature = "parquet"))]
            (Some("parquet" | "pq"), false) => Err(not_included(path, "Parquet", "parquet")),
            #[cfg(feature = "ipc")]
            (Some("arrow" | "ipc" | "feather"), false) => Ok(Self::Ipc),
            #[cfg(not(feature = "ipc"))]
            (Some("arrow" | "ipc" | "feather"), false) => {
                Err(not_included(path, "Arrow IPC", "ipc"))
            }
            _ => {
                let problem =
                    format!("unknown file format; the suffix must be one of {KNOWN_SUFFIXES}");
                Err(Error::file(path, problem))
            }
        }
    }
}

/// The error for a format that this build does not include.
#[cfg(not(all(feature = "parquet", feature = "ipc")))]
fn not_included(path: &Path, format: &str, feature: &str) -> Error {
    let problem = format!(
        "this build does not support {format}; build it with the cargo feature `{feature}`, or use a CSV file"
    );
    Error::file(path, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_decides_the_format_in_any_case() {
        let of = |name: &str| FileFormat::of(Path::new(name)).unwrap();
        assert_eq!(of("-"), PLAIN_CSV);
        assert_eq!(of("dir.x/a.b.CSV"), PLAIN_CSV);
        let tsv = FileFormat::Text {
            delimiter: b'\t',
            gzip: true,
        };
        assert_eq!(of("a.Tsv.GZ"), tsv);
        #[cfg(feature = "parquet")]
        for name in ["a.parquet", "a.PQ"] {
            assert_eq!(of(name), FileFormat::Parquet);
        }
        #[cfg(feature = "ipc")]
        for name in ["a.arrow", "a.ipc", "a.Feather"] {
            assert_eq!(of(name), FileFormat::Ipc);
        }
    }

    #[test]
    fn unknown_suffixes_are_rejected_with_the_list_of_known_ones() {
        for name in ["a", "a.xlsx", "csv", "a.parquet.gz", "a.gz", ".."] {
            let message = FileFormat::of(Path::new(name)).unwrap_err().to_string();
            assert!(message.contains(".feather"), "{message}");
        }
    }
}
