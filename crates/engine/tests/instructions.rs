//! Guards the cost of requests from their bytes to those of the reply: instructions per request, counted by callgrind,
//! against `instructions.json`. Sockets are not in it.

#[allow(dead_code)]
#[path = "../../protocol/tests/support/callgrind.rs"]
mod callgrind;

#[test]
#[cfg_attr(debug_assertions, ignore = "counts a release build: make test-instructions")]
fn requests_cost_no_more_than_they_did() {
    callgrind::check("weft-engine", "request_cost", include_str!("instructions.json"));
}
