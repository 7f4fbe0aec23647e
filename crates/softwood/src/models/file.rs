//! Saving and loading of fitted models.

use std::path::Path;

use crate::error::Result;
use crate::model::Model;
use crate::models::registry::Family;
use crate::store::record::Record;
use crate::store::{container, file};

/// Writes a model file; after an error no partial file is left.
///
/// # Errors
/// When the folder does not exist or the file cannot be written.
pub fn write_model(path: &Path, record: &Record) -> Result<()> {
    file::write(path, &model_to_bytes(record))
}

/// Reads a model file.
///
/// # Errors
/// When the file cannot be read or is not a model; the message names the file.
pub fn read_model(path: &Path) -> Result<Box<dyn Model>> {
    let bytes = file::read(path)?;
    model_from_bytes(&bytes).map_err(|error| error.within(path))
}

/// The content of a model file.
pub fn model_to_bytes(record: &Record) -> Vec<u8> {
    container::to_bytes(record)
}

/// Reads a model from the content of its file.
///
/// # Errors
/// When the bytes are not a model that this version can read.
pub fn model_from_bytes(bytes: &[u8]) -> Result<Box<dyn Model>> {
    Family::restore(&container::from_bytes(bytes)?)
}
