//! The `softwood` program.
fn main() {}
