//! Owns: attacks by HTTP: broken and doubtful requests, sizes, slowness, bodies that are cut, streams that nobody
//! reads. Does not own: what commands do (`frames`, `logic`).

use crate::attacks::limits::is_refused;
use crate::hostile::{Hostile, Line, Outcome, Trouble, USER, wrong};
use crate::server::HTTP_BODY_BYTES_MAX;
use crate::web::post;
use crate::words::{as_resp, mutate};

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "BREW"];
const PATHS: [&str; 12] = [
    "/",
    "/v1/keys/a:1",
    "/v1/docs",
    "/v1/openapi.json",
    "/get/a:1",
    "/set/a:1/v?EX=10",
    "/pipeline",
    "/multi-exec",
    "/subscribe/a:news",
    "/metrics",
    "/../../etc/passwd",
    "/%00%ff%zz",
];
const HEADERS: [&str; 14] = [
    "Content-Length: 5",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Connection: keep-alive",
    "Connection: close",
    "Authorization: Bearer nothing",
    "Authorization: Bearer attacker.a-known-secret",
    "Accept-Encoding: gzip",
    "Upstash-Encoding: base64",
    "Upgrade: websocket",
    "Expect: 100-continue",
    "Host: a\x00b",
];
const BODIES: [&str; 6] =
    ["", "hello", "5\r\nhello\r\n0\r\n\r\n", "[[\"GET\",\"a:1\"]]", "[\"SET\",\"a:1\",1.50]", "[[["];
/// Requests that two programs could read in two ways, `|` for line ends. None of them may run, nor what is behind it.
const DOUBTFUL: [&str; 12] = [
    "POST /set/a:smuggled HTTP/1.1|Host: localhost|Content-Length: 1|Content-Length: 2||xy",
    "POST /set/a:smuggled HTTP/1.1|Host: localhost|Content-Length: 4|Transfer-Encoding: chunked||0||",
    "POST /set/a:smuggled HTTP/1.1|Host: localhost|Transfer-Encoding: chunked|Content-Length: 4||0||",
    "POST /set/a:smuggled HTTP/1.1|Host: localhost|Transfer-Encoding: xchunked||0||",
    "POST /set/a:smuggled HTTP/1.1|Host: localhost|Transfer-Encoding : chunked||0||",
    "POST /set/a:smuggled HTTP/1.1|Host: localhost|Transfer-Encoding: chunked|Transfer-Encoding: identity||0||",
    "POST /set/a:smuggled HTTP/1.1|Host: localhost|X: y| Content-Length: 1||x",
    "POST /set/a:smuggled HTTP/1.1|Host: localhost|Content-Length: +1||x",
    "POST /set/a:smuggled HTTP/1.1|Host: localhost|Content-Length: 1, 1||x",
    "POST /set/a:smuggled HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||1\nx|0||",
    "POST /set/a:smuggled HTTP/1.0|Transfer-Encoding: chunked||0||",
    "GET /get/a:1 HTTP/1.1|Host: localhost|Host: elsewhere||",
];
/// `http-line-bytes`, `http-head-bytes`, `http-headers`.
const LINE_BYTES_MAX: usize = 16 << 10;
const HEAD_BYTES_MAX: usize = 32 << 10;
const HEADERS_MAX: usize = 64;
/// What a body may have before authentication.
const UNAUTHENTICATED_BODY_BYTES_MAX: usize = 16 << 10;
/// Bytes of a message that nobody reads.
const MESSAGE_BYTES: usize = 200_000;

/// A command of the attacker's.
fn ask(line: &mut Line, body: &str) -> Result<crate::web::Answer, Trouble> {
    line.send(&post("/", USER, body.as_bytes()))?;
    line.answer()
}

/// That a key was not made. It is of this round alone.
fn is_missing(hostile: &mut Hostile, key: &str) -> Outcome {
    let mut line = hostile.line()?;
    let answer = ask(&mut line, &format!("[\"EXISTS\",\"{key}\"]"))?;
    hostile.count(&line);
    if answer.body == b"{\"result\":1}" {
        wrong(format!("{key} was made by what must not run"))
    } else {
        Ok(())
    }
}

/// Requests of parts that are right by themselves and broken together, some with bytes changed.
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
        bytes.extend(hostile.rng.pick(&BODIES).bytes());
    }
    if hostile.rng.one_in(2) {
        mutate(&mut hostile.rng, &mut bytes);
    }
    let sent = line.send(&bytes);
    line.drain();
    hostile.end(line);
    Ok(sent?)
}

/// What can be read in two ways has one answer, an error, and nothing behind it is read.
pub(super) fn smuggled(hostile: &mut Hostile) -> Outcome {
    for _ in 0..hostile.rng.between(1, 6) {
        let (text, key) = (*hostile.rng.pick(&DOUBTFUL), format!("a:smuggled:{}", hostile.rng.next()));
        let doubtful = text.replace('|', "\r\n").replace("a:smuggled", &key);
        let bytes = [doubtful.as_bytes(), &post(&format!("/set/{key}/x"), USER, b"")].concat();
        let mut line = hostile.line()?;
        let step = if hostile.rng.one_in(4) { 1 } else { bytes.len() };
        // The connection may end before all of it is sent.
        let _ = bytes.chunks(step).try_for_each(|part| line.send(part));
        let said = line.until_closed()?;
        hostile.count(&line);
        let answers = said.windows(9).filter(|word| word == b"HTTP/1.1 ").count();
        if answers > 1 || answers == 1 && !said.starts_with(b"HTTP/1.1 4") && !said.starts_with(b"HTTP/1.1 5")
        {
            return wrong(format!("{text:?} is answered {}", said.escape_ascii()));
        }
        is_missing(hostile, &key)?;
    }
    Ok(())
}

/// At a limit a request is served, one past it is not.
pub(super) fn sizes(hostile: &mut Hostile) -> Outcome {
    let line_of = |len: usize| {
        let rest = "POST /echo/ HTTP/1.1\r\n".len();
        post(&format!("/echo/{}", "p".repeat(len - rest)), USER, b"")
    };
    let with_headers = |more: &str| {
        let plain = String::from_utf8_lossy(&post("/ping", USER, b"")).into_owned();
        plain.replacen("\r\n", &format!("\r\n{more}"), 1).into_bytes()
    };
    let head_of = |len: usize| {
        let rest = with_headers("X: \r\n").len();
        with_headers(&format!("X: {}\r\n", "h".repeat(len - rest)))
    };
    // Host, Authorization and Content-Length are there.
    let headers_of = |count: usize| with_headers(&"X: y\r\n".repeat(count - 3));
    // The body is a key, of those that the attacker may use.
    let body_of = |len: usize| post("/exists", USER, format!("a:{}", "b".repeat(len - 2)).as_bytes());
    let cases: [(&str, Vec<u8>, Vec<u8>); 4] = [
        ("a line", line_of(LINE_BYTES_MAX), line_of(LINE_BYTES_MAX + 1)),
        ("a head", head_of(HEAD_BYTES_MAX), head_of(HEAD_BYTES_MAX + 1)),
        ("headers", headers_of(HEADERS_MAX), headers_of(HEADERS_MAX + 1)),
        ("a body", body_of(HTTP_BODY_BYTES_MAX), body_of(HTTP_BODY_BYTES_MAX + 1)),
    ];
    let (what, at, past) = hostile.rng.pick(&cases);
    let mut line = hostile.line()?;
    line.send(at)?;
    let answer = line.answer()?;
    // A script may be running.
    if answer.status != 200 && !answer.body.windows(4).any(|word| word == b"BUSY") {
        return wrong(format!("{what} at the limit is answered {answer:?}"));
    }
    hostile.count(&line);
    let mut line = hostile.line()?;
    let _ = line.send(past);
    is_refused(&mut line, &format!("{what} past the limit"))?;
    hostile.count(&line);
    Ok(())
}

/// Heads and bodies that come a byte at a time, on many connections, and never end.
pub(super) fn slow(hostile: &mut Hostile) -> Outcome {
    let whole = post("/set/a:slow", USER, &[b's'; 300]);
    let mut lines = Vec::new();
    for _ in 0..hostile.rng.between(10, 60) {
        let at = hostile.rng.below(whole.len() - 1);
        let mut line = hostile.line()?;
        line.send(&whole[..at])?;
        lines.push((line, at));
    }
    while !hostile.is_over() && !lines.is_empty() {
        let which = hostile.rng.below(lines.len());
        let (line, at) = &mut lines[which];
        // The last byte is never sent.
        let is_cut = *at + 1 < whole.len() && line.send(&whole[*at..=*at]).is_err();
        *at += 1;
        if is_cut {
            let (line, _) = lines.swap_remove(which);
            hostile.end(line);
        }
        std::thread::yield_now();
    }
    for (line, _) in lines {
        hostile.end(line);
    }
    Ok(())
}

/// A body that is cut changes nothing: in its bytes, or in its JSON.
pub(super) fn cut(hostile: &mut Hostile) -> Outcome {
    let key = format!("a:cut:{}", hostile.rng.next());
    let body = format!("[[\"SET\",\"{key}\",\"1\"],[\"SET\",\"{key}\",\"2\"],[\"SET\",\"{key}\",\"3\"]]");
    let path = *hostile.rng.pick(&["/pipeline", "/multi-exec"]);
    let mut line = hostile.line()?;
    if hostile.rng.one_in(2) {
        // Its length is right, its JSON is not.
        let len = hostile.rng.below(body.len());
        line.send(&post(path, USER, &body.as_bytes()[..len]))?;
        let answer = line.answer()?;
        if answer.status != 400 {
            return wrong(format!("{len} bytes of {body} are answered {answer:?}"));
        }
    } else {
        let bytes = post(path, USER, body.as_bytes());
        let cut = hostile.rng.between(1, body.len());
        line.send(&bytes[..bytes.len() - cut])?;
        line.end_sending();
        let said = line.until_closed()?;
        if said.starts_with(b"HTTP/1.1 200") {
            return wrong(format!("half of a body is answered {}", said.escape_ascii()));
        }
    }
    hostile.count(&line);
    is_missing(hostile, &key)
}

/// Event streams that nobody reads, until the server has enough or the round is over.
pub(super) fn streams(hostile: &mut Hostile) -> Outcome {
    let mut lines = Vec::new();
    for _ in 0..hostile.rng.between(1, 20) {
        let target = *hostile.rng.pick(&["/subscribe/a:news", "/psubscribe/a:*"]);
        let mut line = hostile.line()?;
        line.send(&post(target, USER, b""))?;
        // Something behind it, which has its turn never.
        line.send(&post("/get/a:1", USER, b""))?;
        lines.push(line);
    }
    let mut other = hostile.authenticated()?;
    let publish = as_resp(&["PUBLISH", "a:news", &"n".repeat(MESSAGE_BYTES)]);
    while !hostile.is_over() {
        other.send(&publish)?;
        other.drain();
        if hostile.rng.one_in(10) && !lines.is_empty() {
            let at = hostile.rng.below(lines.len());
            let line = lines.swap_remove(at);
            hostile.end(line);
        }
    }
    lines.push(other);
    hostile.end_all(lines);
    Ok(())
}

/// What needs no credentials, again and again, and with a body: pages, OPTIONS, passwords that are long and wrong.
pub(super) fn public(hostile: &mut Hostile) -> Outcome {
    let mut line = hostile.plain()?;
    let count = hostile.rng.between(1, 300);
    let page = *hostile.rng.pick(&["/v1/openapi.json", "/v1/docs", "/console/app.js", "/"]);
    let coding = *hostile.rng.pick(&["gzip", "identity"]);
    let page = format!("GET {page} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {coding}\r\n\r\n");
    // Whoever does not read is not waited for.
    let _ = line.send(page.repeat(count).as_bytes());
    line.drain();
    hostile.end(line);
    let mut line = hostile.plain()?;
    let len = UNAUTHENTICATED_BODY_BYTES_MAX + 1;
    line.send(format!("OPTIONS / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len}\r\n\r\n").as_bytes())?;
    let answer = line.answer()?;
    hostile.end(line);
    if answer.status != 413 {
        return wrong(format!("a body of {len} bytes before authentication is answered {}", answer.status));
    }
    let secret = "x".repeat(hostile.rng.between(1, 30_000));
    let mut lines = Vec::new();
    for _ in 0..hostile.rng.between(1, 30) {
        let mut line = hostile.plain()?;
        line.send(
            format!("GET /get/a:1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n")
                .as_bytes(),
        )?;
        let answer = line.answer()?;
        if answer.status != 401 {
            return wrong(format!("a wrong password is answered {}", answer.status));
        }
        lines.push(line);
        if hostile.is_over() {
            break;
        }
    }
    hostile.end_all(lines);
    Ok(())
}
