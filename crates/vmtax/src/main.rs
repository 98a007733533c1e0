//! The `vmtax` command.
fn main() {}
