//! Guards the cost of requests over HTTP, from a worker's look at its sockets to what it has sent: instructions per
//! command, counted by callgrind, against `instructions.json`, beside the same over RESP. And that of SETs that a log
//! is told of, from their bytes to those that the log's thread writes, against `log_instructions.json`. Calls of the
//! system count by what leads to them.

#[allow(dead_code)]
#[path = "../../protocol/tests/support/callgrind.rs"]
mod callgrind;

#[test]
#[cfg_attr(debug_assertions, ignore = "counts a release build: make test-instructions")]
fn requests_over_http_cost_no_more_than_they_did() {
    callgrind::check("server_costs", Some("http"), include_str!("instructions.json"));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "counts a release build: make test-instructions")]
fn what_a_log_is_told_of_costs_no_more_than_it_did() {
    callgrind::check("server_costs", Some("log"), include_str!("log_instructions.json"));
}
