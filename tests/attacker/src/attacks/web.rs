//! Owns: attacks by HTTP, right and broken. Does not own: HTTP.

use crate::hostile::{Hostile, Outcome};
use crate::words::mutate;

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "BREW"];
const PATHS: [&str; 8] = [
    "/",
    "/v1/keys/a:1",
    "/get/a:1",
    "/pipeline",
    "/multi-exec",
    "/metrics",
    "/../../etc/passwd",
    "/%00%ff%zz",
];
const HEADERS: [&str; 10] = [
    "Content-Length: 5",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Connection: keep-alive",
    "Authorization: Bearer nothing",
    "Upgrade: websocket",
    "Expect: 100-continue",
    "Host: a\x00b",
];

pub(super) fn requests(hostile: &mut Hostile) -> Outcome {
    let mut line = hostile.line()?;
    let mut bytes = Vec::new();
    for _ in 0..hostile.rng.between(1, 10) {
        let (method, path) = (*hostile.rng.pick(&METHODS), *hostile.rng.pick(&PATHS));
        bytes.extend(format!("{method} {path} HTTP/1.1\r\n").into_bytes());
        for _ in 0..hostile.rng.below(6) {
            bytes.extend(hostile.rng.pick(&HEADERS).bytes());
            bytes.extend(b"\r\n");
        }
        if hostile.rng.one_in(10) {
            bytes.extend(format!("X-Long: {}\r\n", "h".repeat(100_000)).into_bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(
            hostile.rng.pick(&["", "hello", "5\r\nhello\r\n0\r\n\r\n", "[[\"GET\",\"a:1\"]]"]).bytes(),
        );
    }
    if hostile.rng.one_in(2) {
        mutate(&mut hostile.rng, &mut bytes);
    }
    let sent = line.send(&bytes);
    line.drain();
    hostile.end(line);
    Ok(sent?)
}
