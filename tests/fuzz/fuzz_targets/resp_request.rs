//! The body stands in `weft_fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weft_fuzz::resp_request(data));
