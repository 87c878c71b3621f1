//! The body stands in `engine`.

#![no_main]

#[path = "../engine/mod.rs"]
#[allow(dead_code)]
mod engine;

libfuzzer_sys::fuzz_target!(|data: &[u8]| engine::program(data));
