//! Reading fitted models.

use std::path::Path;

use crate::error::Result;
use crate::model::Model;
use crate::models::registry::Family;
use crate::store::{container, file};

/// Reads a model file, which [`Model::save`] writes.
///
/// # Errors
/// When the file cannot be read or is not a model; the message names the file.
pub fn load(path: &Path) -> Result<Box<dyn Model>> {
    let bytes = file::read(path)?;
    from_bytes(&bytes).map_err(|error| error.within(path))
}

/// Reads a model from the content of its file, which [`Model::to_bytes`] makes.
///
/// # Errors
/// When the bytes are not a model that this version can read.
pub fn from_bytes(bytes: &[u8]) -> Result<Box<dyn Model>> {
    Family::restore(&container::from_bytes(bytes)?)
}
