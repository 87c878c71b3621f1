//! How long a script may compute before anybody looks whether it is to end, when its strings are long: `looks BYTES
//! [NAME]` prints the longest time for each loop, and what it said at its end.
#![allow(missing_docs)]

#[path = "../tests/support/long.rs"]
mod long;

use std::time::{Duration, Instant};

fn main() {
    let mut args = std::env::args().skip(1);
    let bytes = args.next().and_then(|arg| arg.parse().ok()).expect("usage: looks BYTES [NAME]");
    let only = args.next();
    for of in long::LOOPS {
        if only.as_ref().is_some_and(|only| !of.0.contains(only.as_str())) {
            continue;
        }
        let begun = Instant::now();
        let mut watch = long::Watch::new(|| begun.elapsed(), (u32::MAX, Duration::from_millis(1500)));
        let said = long::run(*of, bytes, &mut watch);
        println!("{:28} {:9.1} ms {:8} looks  {said}", of.0, watch.longest.as_secs_f64() * 1e3, watch.looks);
    }
}
