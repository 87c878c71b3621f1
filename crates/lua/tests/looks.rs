//! However long a string or table is: a script that goes through it again and again is looked at often enough to be
//! ended.
#![allow(missing_docs)]

#[path = "support/long.rs"]
mod long;

use std::time::Duration;

/// The processor's time that this thread has had, as the kernel counts it.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let ns = stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("it begins with a number");
    Duration::from_nanos(ns)
}

#[test]
fn no_loop_goes_through_long_strings_unseen() {
    // What is gone through is the same in each; Lua is not optimized in a build for tests.
    let (bytes, longest) = (2 << 20, Duration::from_millis(250));
    for of in long::LOOPS {
        let mut watch = long::Watch::new(cpu, (200, Duration::from_millis(150)));
        let said = long::run(*of, bytes, &mut watch);
        assert!(said.starts_with("ERR told to end"), "{}: {said}", of.0);
        assert!(watch.longest < longest, "{}: nobody looked for {:?}", of.0, watch.longest);
    }
}
