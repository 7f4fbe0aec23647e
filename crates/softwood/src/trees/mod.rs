//! The hard-tree kernel: greedy growth on dense inputs, and histogram trees on bins.

pub(crate) mod cart;
pub(crate) mod codec;
pub(crate) mod dense;
pub(crate) mod ground;
pub(crate) mod histogram;
pub(crate) mod order;
pub(crate) mod route;
pub(crate) mod skeleton;
pub(crate) mod test;
