//! The evb command.
fn main() {}
