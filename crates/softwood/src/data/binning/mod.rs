//! Columns as bins of one byte: the cuts of each column, binned rows, and the lookup of bins.

pub(crate) mod bin_lookup;
pub(crate) mod binned;
pub(crate) mod cuts;
