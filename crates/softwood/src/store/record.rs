//! What a model file holds: a family name, JSON metadata and named arrays. How it becomes bytes is
//! `container`'s business.

use serde_json::Value;

use crate::error::{Error, Result};

/// Numbers of one array.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// 32-bit whole numbers.
    U32(Vec<u32>),
}

/// A model as data: no code, no references.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Name of the family that can read it.
    pub family: String,
    /// Schema, parameters, training report and whatever else is not an array.
    pub(crate) meta: Value,
    /// Named arrays, in order.
    pub arrays: Vec<(String, Array)>,
}

impl Record {
    /// A record of its parts.
    ///
    /// # Errors
    /// When `meta` is no JSON text.
    pub fn new(family: &str, meta: &str, arrays: Vec<(String, Array)>) -> Result<Self> {
        let meta = serde_json::from_str(meta)
            .map_err(|error| Error::Format(format!("the metadata: {error}")))?;
        let family = family.to_owned();
        Ok(Self {
            family,
            meta,
            arrays,
        })
    }

    /// Schema, parameters, training report and whatever else is not an array, as JSON.
    pub fn meta_json(&self) -> String {
        self.meta.to_string()
    }

    /// A part of the metadata.
    ///
    /// # Errors
    /// When it is absent or of another form.
    pub fn part<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T> {
        let value = self.meta.get(name).cloned().unwrap_or(Value::Null);
        serde_json::from_value(value)
            .map_err(|error| Error::Format(format!("`{name}` in the header: {error}")))
    }

    /// The 32-bit floats called `name`, which must be `len` many.
    ///
    /// # Errors
    /// When they are absent, of another type or of another length.
    pub fn f32s(&self, name: &str, len: usize) -> Result<&[f32]> {
        match self.arrays.iter().find(|(found, _)| found == name) {
            Some((_, Array::F32(numbers))) if numbers.len() == len => Ok(numbers),
            _ => Err(Error::Format(format!(
                "the array `{name}` of {len} 32-bit floats is not there"
            ))),
        }
    }

    /// The 32-bit floats called `name`, however many.
    ///
    /// # Errors
    /// When they are absent or of another type.
    pub fn all_f32s(&self, name: &str) -> Result<&[f32]> {
        match self.arrays.iter().find(|(found, _)| found == name) {
            Some((_, Array::F32(numbers))) => Ok(numbers),
            _ => Err(Error::Format(format!(
                "the array `{name}` of 32-bit floats is not there"
            ))),
        }
    }

    /// The whole numbers called `name`, however many.
    ///
    /// # Errors
    /// When they are absent or of another type.
    pub fn u32s(&self, name: &str) -> Result<&[u32]> {
        match self.arrays.iter().find(|(found, _)| found == name) {
            Some((_, Array::U32(numbers))) => Ok(numbers),
            _ => Err(Error::Format(format!(
                "the array `{name}` of whole numbers is not there"
            ))),
        }
    }

    /// The 64-bit floats called `name`, which must be `len` many.
    ///
    /// # Errors
    /// When they are absent, of another type or of another length.
    pub fn f64s(&self, name: &str, len: usize) -> Result<&[f64]> {
        match self.arrays.iter().find(|(found, _)| found == name) {
            Some((_, Array::F64(numbers))) if numbers.len() == len => Ok(numbers),
            _ => Err(Error::Format(format!(
                "the array `{name}` of {len} 64-bit floats is not there"
            ))),
        }
    }
}
