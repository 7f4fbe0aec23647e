//! The content of a model file: the name of the family, JSON metadata and named arrays. `container`
//! converts it to bytes.

use serde_json::Value;

use crate::error::{Error, Result};

/// Values of one array.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Array {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// 32-bit integers.
    U32(Vec<u32>),
}

/// A fitted model as plain data.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Name of the model family.
    pub family: String,
    /// Schema, parameters, training report and everything else that is not an array.
    pub(crate) meta: Value,
    /// Named arrays, in order.
    pub arrays: Vec<(String, Array)>,
}

impl Record {
    /// A record from its parts.
    ///
    /// # Errors
    /// When `meta` is not valid JSON.
    pub fn new(family: &str, meta: &str, arrays: Vec<(String, Array)>) -> Result<Self> {
        let meta = serde_json::from_str(meta)
            .map_err(|error| Error::Format(format!("the metadata is not valid JSON: {error}")))?;
        let family = family.to_owned();
        Ok(Self {
            family,
            meta,
            arrays,
        })
    }

    /// The metadata as JSON: schema, parameters, training report and everything else that is not an
    /// array.
    pub fn meta_json(&self) -> String {
        self.meta.to_string()
    }

    /// Reads one entry of the metadata.
    ///
    /// # Errors
    /// When the entry is absent or has another form.
    pub fn part<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T> {
        let value = self.meta.get(name).cloned().unwrap_or(Value::Null);
        serde_json::from_value(value)
            .map_err(|error| Error::Format(format!("`{name}` in the header: {error}")))
    }

    /// The 32-bit floats called `name`, which must be `len` many.
    ///
    /// # Errors
    /// When the array is absent or has another type or length.
    pub fn f32s(&self, name: &str, len: usize) -> Result<&[f32]> {
        match self.array(name) {
            Some(Array::F32(values)) if values.len() == len => Ok(values),
            found => Err(wrong_array(name, &format!("{len} 32-bit floats"), found)),
        }
    }

    /// The 32-bit floats called `name`, of any length.
    ///
    /// # Errors
    /// When the array is absent or has another type.
    pub fn all_f32s(&self, name: &str) -> Result<&[f32]> {
        match self.array(name) {
            Some(Array::F32(values)) => Ok(values),
            found => Err(wrong_array(name, "32-bit floats", found)),
        }
    }

    /// The 32-bit integers called `name`, of any length.
    ///
    /// # Errors
    /// When the array is absent or has another type.
    pub fn u32s(&self, name: &str) -> Result<&[u32]> {
        match self.array(name) {
            Some(Array::U32(values)) => Ok(values),
            found => Err(wrong_array(name, "32-bit integers", found)),
        }
    }

    /// The 64-bit floats called `name`, which must be `len` many.
    ///
    /// # Errors
    /// When the array is absent or has another type or length.
    pub fn f64s(&self, name: &str, len: usize) -> Result<&[f64]> {
        match self.array(name) {
            Some(Array::F64(values)) if values.len() == len => Ok(values),
            found => Err(wrong_array(name, &format!("{len} 64-bit floats"), found)),
        }
    }

    fn array(&self, name: &str) -> Option<&Array> {
        let (_, array) = self.arrays.iter().find(|(found, _)| found == name)?;
        Some(array)
    }
}

fn wrong_array(name: &str, expected: &str, found: Option<&Array>) -> Error {
    let found = match found {
        None => "there is no such array".to_owned(),
        Some(Array::F32(values)) => format!("found {} 32-bit floats", values.len()),
        Some(Array::F64(values)) => format!("found {} 64-bit floats", values.len()),
        Some(Array::U32(values)) => format!("found {} 32-bit integers", values.len()),
    };
    Error::Format(format!("array `{name}`: expected {expected}, {found}"))
}
