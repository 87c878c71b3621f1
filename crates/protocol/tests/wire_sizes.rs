//! `spec/wire-sizes.md`: what common requests and replies take on each wire, computed by the encoders.
//!
//! Owns the choice of examples and the page. The test fails when the page is not what the encoders give; with
//! `WEFT_WRITE=1` it writes the page instead.

use std::fmt::Write as _;
use std::path::Path;

use weft_protocol::request::Texts;
use weft_protocol::{Reply, resp, respb};

const HEAD: &str = "\
# Annex B: wire sizes

Computed by the encoders of this repository; `crates/protocol/tests/wire_sizes.rs` fails when a number is not what they
give. Bytes of one frame, everything included. RESP2 and RESP3 requests are the same.

";

/// Forty requests, as a user types them; `~n` stands for a value of n bytes.
const REQUESTS: [&str; 40] = [
    "PING",
    "GET mykey",
    "GET user:1000:profile:x1",
    "SET key val",
    "SET user:1000:profile:x1 ~50",
    "SET user:1000:profile:x1 ~1024",
    "SET session:42 ~64 EX 3600",
    "SET lock:42 token-1 NX PX 30000",
    "GETEX session:42 EX 3600",
    "MGET k1 k2 k3",
    "MSET k1 v1 k2 v2 k3 v3",
    "INCR counter",
    "INCRBY counter 10",
    "APPEND log ~32",
    "DEL k1 k2",
    "EXISTS mykey",
    "EXPIRE mykey 60",
    "TTL mykey",
    "SCAN 0 MATCH user:* COUNT 100",
    "LPUSH queue job-1",
    "RPOP queue",
    "LRANGE list 0 99",
    "BLPOP queue 5",
    "HSET user:1 name Ada",
    "HGET user:1 name",
    "HMGET user:1 name email age",
    "HGETALL hash",
    "SADD tags red green blue",
    "SISMEMBER tags red",
    "ZADD board 1500 alice",
    "ZRANGE board 0 9 WITHSCORES",
    "ZRANGEBYSCORE board (1500 +inf",
    "XADD stream * field value",
    "XREAD COUNT 10 BLOCK 5000 STREAMS s1 s2 0 0",
    "PUBLISH news ~32",
    "EVALSHA ~40 1 key arg",
    "HELLO 3",
    "CLIENT SETNAME worker-1",
    "JSON.SET profile .name \"JohnDoe\"",
    "BF.ADD filter item",
];

fn words(line: &str) -> Vec<Vec<u8>> {
    let word = |word: &str| match word.strip_prefix('~').and_then(|count| count.parse().ok()) {
        Some(count) => vec![b'v'; count],
        None => word.as_bytes().to_vec(),
    };
    line.split(' ').map(word).collect()
}

fn request_sizes(argv: &[Vec<u8>]) -> (usize, usize, bool) {
    let (mut resp, mut respb) = (Vec::new(), Vec::new());
    resp::encode::request(None, &Texts(argv), &mut resp);
    let typed = respb::RequestWriter::new(&mut respb, 0).command(argv, respb::Mode::Exact);
    (resp.len(), respb.len(), typed)
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

/// Twenty replies with their names.
fn replies() -> [(&'static str, Reply); 20] {
    let texts =
        |count: usize, len: usize| (0..count).map(|_| Reply::Bulk(vec![b'v'; len])).collect::<Vec<_>>();
    let pair = |key: &str, value: &str| (bulk(key), bulk(value));
    let error = "WRONGTYPE Operation against a key holding the wrong kind of value";
    [
        ("OK", Reply::Simple(b"OK".to_vec())),
        ("PONG", Reply::Simple(b"PONG".to_vec())),
        ("null", Reply::Null),
        ("integer 1", Reply::Int(1)),
        ("integer 1000", Reply::Int(1000)),
        ("integer 1700000000000", Reply::Int(1_700_000_000_000)),
        ("value of 5 bytes", Reply::Bulk(vec![b'v'; 5])),
        ("value of 16 bytes", Reply::Bulk(vec![b'v'; 16])),
        ("value of 255 bytes", Reply::Bulk(vec![b'v'; 255])),
        ("value of 1,024 bytes", Reply::Bulk(vec![b'v'; 1024])),
        ("error WRONGTYPE", Reply::Error(error.as_bytes().to_vec())),
        ("double 3.25", Reply::Double(3.25)),
        ("true", Reply::Bool(true)),
        ("empty array", Reply::Array(vec![])),
        ("MGET: 3 values of 10 bytes", Reply::Array(texts(3, 10))),
        ("MGET: 3 values, one missing", Reply::Array(vec![bulk("a"), Reply::Null, bulk("b")])),
        ("LRANGE: 100 values of 16 bytes", Reply::Array(texts(100, 16))),
        ("HGETALL: 2 fields", Reply::Map(vec![pair("name", "Ada"), pair("email", "ada@example.org")])),
        ("SMEMBERS: 3 members", Reply::Set(vec![bulk("red"), bulk("green"), bulk("blue")])),
        ("pub/sub message", Reply::Push(vec![bulk("message"), bulk("news"), Reply::Bulk(vec![b'v'; 32])])),
    ]
}

fn reply_sizes(reply: &Reply) -> [usize; 3] {
    let (mut resp2, mut resp3, mut respb) = (Vec::new(), Vec::new(), Vec::new());
    reply.visit(&mut resp::ReplyWriter::new(&mut resp2, resp::Version::Resp2));
    reply.visit(&mut resp::ReplyWriter::new(&mut resp3, resp::Version::Resp3));
    reply.visit(&mut respb::ReplyWriter::new(&mut respb, 0));
    [resp2.len(), resp3.len(), respb.len()]
}

/// Examples of the founding documents (`_` is a blank inside a word): what they print for RESP and for RESPB.
const CLAIMS: [(&str, &str, usize, usize); 8] = [
    ("the proposal", "GET mykey", 24, 11),
    ("the proposal", "SET key val", 37, 18),
    ("the proposal", "MGET k1 k2 k3", 51, 22),
    ("the proposal", "PING", 14, 4),
    ("the proposal", "HGETALL hash", 32, 10),
    ("the benchmark", "GET mykey", 24, 10),
    ("the benchmark", "JSON.SET profile .name \"John_Doe\"", 64, 44),
    ("the benchmark, as passthrough", "SET foo bar", 33, 41),
];

fn share(before: usize, after: usize) -> String {
    format!("{:.0} %", 100.0 - 100.0 * after as f64 / before as f64)
}

fn page() -> String {
    let mut page = String::from(HEAD);
    page.push_str(
        "## Requests\n\n`~n` is a value of n bytes.\n\n\
         | request | RESP | RESPB | saved | frame |\n|---|---:|---:|---:|---|\n",
    );
    for line in REQUESTS {
        let (resp, respb, typed) = request_sizes(&words(line));
        let frame = if typed { "typed" } else { "ARGV" };
        let _ = writeln!(page, "| `{line}` | {resp} | {respb} | {} | {frame} |", share(resp, respb));
    }
    page.push_str(
        "\n## Replies\n\n| reply | RESP2 | RESP3 | RESPB | saved of RESP3 |\n|---|---:|---:|---:|---:|\n",
    );
    for (name, reply) in replies() {
        let [resp2, resp3, respb] = reply_sizes(&reply);
        let _ = writeln!(page, "| {name} | {resp2} | {resp3} | {respb} | {} |", share(resp3, respb));
    }
    page.push_str(
        "\nWhere the saving is negative, the channel, which RESP does not have, costs more than binary \
         lengths save.\n",
    );
    page.push_str("\n## Sizes that the founding documents give\n\nBold: not what the document says.\n\n");
    page.push_str(
        "| document | request | RESP there | RESP | RESPB there | RESPB |\n|---|---|---:|---:|---:|---:|\n",
    );
    CLAIMS.iter().for_each(|claim| claim_row(claim, &mut page));
    page
}

fn claim_row(&(document, line, claimed_resp, claimed_respb): &(&str, &str, usize, usize), page: &mut String) {
    let blank = |byte: u8| if byte == b'_' { b' ' } else { byte };
    let argv: Vec<Vec<u8>> =
        words(line).into_iter().map(|word| word.into_iter().map(blank).collect()).collect();
    let (resp, mut respb, _) = request_sizes(&argv);
    if document.ends_with("passthrough") {
        let mut frame = Vec::new();
        respb::RequestWriter::new(&mut frame, 0).passthrough(&Texts(&argv));
        respb = frame.len();
    }
    let mark = |claimed, actual: usize| {
        if claimed == actual { format!("{actual}") } else { format!("**{actual}**") }
    };
    let (resp, respb) = (mark(claimed_resp, resp), mark(claimed_respb, respb));
    let line = line.replace('_', " ");
    let _ = writeln!(page, "| {document} | `{line}` | {claimed_resp} | {resp} | {claimed_respb} | {respb} |");
}

#[test]
fn the_page_is_what_the_encoders_give() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/wire-sizes.md");
    if std::env::var_os("WEFT_WRITE").is_some() {
        std::fs::write(&path, page()).expect("spec/wire-sizes.md can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page(), "spec/wire-sizes.md is not up to date: run `make gen`");
}

#[test]
fn sizes_that_the_design_fixes() {
    assert_eq!(request_sizes(&words("GET mykey")), (24, 11, true));
    assert_eq!(request_sizes(&words("PING")), (14, 4, true));
    assert_eq!(reply_sizes(&Reply::Simple(b"OK".to_vec()))[2], 4);
}
