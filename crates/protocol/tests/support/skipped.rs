//! Owns how a test says that it could not run, or a part of it: what it needs is not installed. A test has no other way
//! to say so than to pass; the line goes around what the test runner keeps of a test that passes, and `scripts/step`
//! counts and lists it.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::Write as _;

/// The whole test is skipped: it counts as such, and not as one that passed.
pub(crate) fn skipped(why: &str) {
    say("skipped", why);
}

/// A part of the test is left out.
pub(crate) fn left_out(why: &str) {
    say("left out", why);
}

fn say(what: &str, why: &str) {
    let thread = std::thread::current();
    let line = format!("{what}: {}: {why}\n", thread.name().unwrap_or("a test"));
    // If nobody reads it, nobody reads that.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
