//! The committed vectors are those that the generator writes, so that no edit of either goes unseen.

#![allow(clippy::unwrap_used, reason = "a folder that cannot be read fails the test")]

use std::path::Path;

use xtask::{model, vectors};

#[test]
fn committed_vectors_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let commands = model::load(&root).unwrap();
    let stale: Vec<_> = vectors::stale(&root, &commands).unwrap().into_iter().map(|(path, _)| path).collect();
    assert!(stale.is_empty(), "run `cargo run -p xtask -- vectors`: {stale:?}");
    let count: usize = vectors::counts(&commands).unwrap().values().sum();
    assert!(count >= 1200, "{count} vectors");
}
