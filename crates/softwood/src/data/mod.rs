//! Tables, schemas and targets, and their dense encoding for soft models.

pub(crate) mod column;
pub(crate) mod dataset;
pub(crate) mod encode;
pub(crate) mod schema;
pub(crate) mod standardise;
pub(crate) mod table;
