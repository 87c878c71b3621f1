//! Guards the cost of requests over HTTP, from a worker's look at its sockets to what it has sent: instructions per
//! command, counted by callgrind, against `instructions.json`, beside the same over RESP. Calls of the system count by
//! what leads to them.

#[allow(dead_code)]
#[path = "../../protocol/tests/support/callgrind.rs"]
mod callgrind;

#[test]
#[cfg_attr(debug_assertions, ignore = "counts a release build: make test-instructions")]
fn requests_over_http_cost_no_more_than_they_did() {
    callgrind::check("weft-server", "http_cost", include_str!("instructions.json"));
}
