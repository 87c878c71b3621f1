//! Code generation and checks.

fn main() {}
