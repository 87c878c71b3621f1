//! The body stands in `server`.

#![no_main]

#[path = "../server/mod.rs"]
#[allow(dead_code)]
mod server;

libfuzzer_sys::fuzz_target!(|data: &[u8]| server::http_target(data));
