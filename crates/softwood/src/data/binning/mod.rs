//! Columns as bins of one byte: cuts, binned tables, and the lookup of bins.

pub(crate) mod bin_lookup;
pub(crate) mod binned;
