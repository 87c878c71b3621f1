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
    let readme = std::fs::read_to_string(root.join("conformance/README.md")).unwrap();
    for (folder, count) in vectors::counts(&commands).unwrap() {
        let count = match count {
            1000.. => format!("{},{:03}", count / 1000, count % 1000),
            _ => count.to_string(),
        };
        assert!(readme.contains(&format!("| {folder} | {count} |")), "README: {folder} has {count}");
    }
}
