//! Input bytes from a file, or from memory for streams, which cannot be read twice; and messages
//! for I/O errors.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use softwood::{Error, Result};

use crate::file_format::{GZIP, is_stream};

/// Byte order mark that some programs write before UTF-8 text.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Input that can be read more than once.
#[derive(Debug)]
pub(crate) enum InputSource<'a> {
    /// A regular file.
    File(&'a Path),
    /// The bytes of a pipe, of standard input or of a slice.
    Memory(Cow<'a, [u8]>),
}

/// The name of a path in error messages.
pub(crate) fn input_name(path: &Path) -> PathBuf {
    if is_stream(path) {
        PathBuf::from("standard input")
    } else {
        path.to_owned()
    }
}

/// The message for an I/O error; `access` is `read` or `write`.
pub(crate) fn io_problem(error: &io::Error, access: &str) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => format!("no permission to {access} this file"),
        ErrorKind::IsADirectory => "this is a directory; give the path of a file".to_owned(),
        _ => format!("cannot {access}: {error}"),
    }
}

/// The message for an I/O error while text is read, compressed by gzip or not.
pub(crate) fn text_problem(error: &io::Error, gzip: bool) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof if gzip => {
            "the gzip data ends early; the file is truncated".to_owned()
        }
        ErrorKind::InvalidData | ErrorKind::InvalidInput if gzip => {
            format!("the gzip data is damaged: {error}")
        }
        _ => io_problem(error, "read"),
    }
}

/// Opens an existing file that is not a directory.
pub(crate) fn open(path: &Path) -> Result<File> {
    let failed = |error: &io::Error| Error::file(path, io_problem(error, "read"));
    let file = File::open(path).map_err(|error| failed(&error))?;
    let metadata = file.metadata().map_err(|error| failed(&error))?;
    if metadata.is_dir() {
        return Err(failed(&ErrorKind::IsADirectory.into()));
    }
    Ok(file)
}

impl<'a> InputSource<'a> {
    /// The input at a path. Pipes and standard input are read into memory.
    pub(crate) fn at(path: &'a Path) -> Result<Self> {
        let failed = |error: &io::Error| Error::file(input_name(path), io_problem(error, "read"));
        let mut bytes = Vec::new();
        if is_stream(path) {
            let mut input = io::stdin().lock();
            input
                .read_to_end(&mut bytes)
                .map_err(|error| failed(&error))?;
            return Ok(Self::Memory(bytes.into()));
        }
        let mut file = open(path)?;
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Ok(Self::File(path));
        }
        file.read_to_end(&mut bytes)
            .map_err(|error| failed(&error))?;
        Ok(Self::Memory(bytes.into()))
    }

    /// A reader from the beginning of the input, which decompresses gzip.
    pub(crate) fn text(&self) -> Result<TextSource<'_>> {
        let mut raw: Box<dyn Read + '_> = match self {
            Self::File(path) => Box::new(BufReader::with_capacity(1 << 16, open(path)?)),
            Self::Memory(bytes) => Box::new(&bytes[..]),
        };
        let failed = |error: &io::Error, gzip| Error::Table(text_problem(error, gzip));
        let head = peek(&mut raw, GZIP.len()).map_err(|error| failed(&error, false))?;
        let gzip = head.starts_with(&GZIP);
        let is_empty = head.is_empty();
        let whole = Cursor::new(head).chain(raw);
        let mut reader: Box<dyn Read + '_> = if gzip {
            Box::new(MultiGzDecoder::new(whole))
        } else {
            Box::new(whole)
        };
        let mut start = peek(&mut reader, BYTE_ORDER_MARK.len()).map_err(|e| failed(&e, gzip))?;
        if start == BYTE_ORDER_MARK {
            start.clear();
        }
        let reader = Box::new(Cursor::new(start).chain(reader));
        Ok(TextSource {
            reader,
            gzip,
            is_empty,
        })
    }
}

/// Text input for the CSV parser.
pub(crate) struct TextSource<'a> {
    /// Decompressed bytes without a byte order mark.
    pub reader: Box<dyn Read + 'a>,
    /// Whether the input is compressed by gzip.
    pub gzip: bool,
    /// Whether the input has no bytes.
    pub is_empty: bool,
}

/// The first `n` bytes, or fewer if the input is shorter.
fn peek(reader: &mut dyn Read, n: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(n);
    reader.take(n as u64).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_have_readable_messages() {
        let message = |kind: ErrorKind| io_problem(&kind.into(), "read");
        assert_eq!(message(ErrorKind::NotFound), "there is no such file");
        assert_eq!(
            message(ErrorKind::PermissionDenied),
            "no permission to read this file"
        );
        assert!(message(ErrorKind::IsADirectory).contains("directory"));
        assert!(message(ErrorKind::TimedOut).starts_with("cannot read: "));
    }
}
