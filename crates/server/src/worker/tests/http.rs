//! HTTP on a worker by itself: what is asked for, in which form, and in which order it is answered.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use super::{Alone, received};
use crate::http::events::HEARTBEAT_MS;

/// One answer.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Got {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("it is text")
    }
    pub(super) fn has(&self, line: &str) -> bool {
        self.head.lines().any(|other| other.eq_ignore_ascii_case(line))
    }
}

/// The answers in what has come; `false`: the last one is not whole.
pub(super) fn answers(mut bytes: &[u8]) -> (Vec<Got>, bool) {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { return (all, false) };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        bytes = &bytes[end + 4..];
        let status: u16 =
            head.strip_prefix("HTTP/1.1 ").expect("a status line")[..3].parse().expect("a status");
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        let mut body = Vec::new();
        if let Some(len) = header("content-length") {
            let len: usize = len.parse().expect("a length");
            if bytes.len() < len {
                return (all, false);
            }
            body.extend_from_slice(&bytes[..len]);
            bytes = &bytes[len..];
        } else if header("transfer-encoding").is_some() {
            loop {
                let Some(end) = bytes.windows(2).position(|part| part == b"\r\n") else {
                    all.push(Got { status, head, body });
                    return (all, false);
                };
                let len = std::str::from_utf8(&bytes[..end]).expect("a length");
                let len = usize::from_str_radix(len, 16).expect("a length");
                body.extend_from_slice(&bytes[end + 2..end + 2 + len]);
                assert_eq!(&bytes[end + 2 + len..end + 4 + len], b"\r\n");
                bytes = &bytes[end + 4 + len..];
                if len == 0 {
                    break;
                }
            }
        }
        all.push(Got { status, head, body });
    }
    (all, true)
}

pub(super) fn ask(alone: &mut Alone, client: &mut UnixStream, request: &[u8]) -> Vec<Got> {
    client.write_all(request).expect("it fits into the socket");
    (0..4).for_each(|_| alone.tick());
    answers(&received(client)).0
}

pub(super) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}
pub(super) fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    let len = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len}\r\n\r\n{body}")
        .into_bytes()
}

/// The only answer to a request.
pub(super) fn one(alone: &mut Alone, client: &mut UnixStream, request: &[u8]) -> Got {
    let mut got = ask(alone, client, request);
    assert_eq!(got.len(), 1, "{} has {got:?}", String::from_utf8_lossy(request));
    got.remove(0)
}

#[test]
fn commands_come_in_paths_and_in_json() {
    let (mut alone, [mut client]) = Alone::with_clients();
    let mut asks = |request: &[u8]| {
        let got = one(&mut alone, &mut client, request);
        (got.status, got.text().to_owned())
    };
    let ok = |text: &str| (200, text.to_owned());
    assert_eq!(asks(&post("/set/k/v?EX=10&NX", "", "")), ok(r#"{"result":"OK"}"#));
    assert_eq!(asks(&get("/get/k")), ok(r#"{"result":"v"}"#));
    assert_eq!(asks(&get("/ttl/k")), ok(r#"{"result":10}"#));
    assert_eq!(asks(&post("/set/k", "", "a \"body\"\n")), ok(r#"{"result":"OK"}"#));
    assert_eq!(asks(&get("/get/k")), ok(r#"{"result":"a \"body\"\n"}"#));
    assert_eq!(asks(&post("/set/k?EX=9", "", "x")), ok(r#"{"result":"OK"}"#));
    assert_eq!(asks(&post("/", "", r#"["MSET","a\u00e9",1.50,"b",true]"#)), ok(r#"{"result":"OK"}"#));
    assert_eq!(asks(&post("/", "", r#"["MGET","aé","b","none"]"#)), ok(r#"{"result":["1.50","true",null]}"#));
    assert_eq!(asks(&get("/get/a%C3%A9")), ok(r#"{"result":"1.50"}"#));
    assert_eq!(asks(&get("/get/none")), ok(r#"{"result":null}"#), "a null is no missing resource");
    assert_eq!(asks(&post("/", "", r#"["LPUSH","k","x"]"#)).0, 400);
    assert_eq!(
        asks(&post("/", "", r#"["NOSUCH"]"#)),
        (400, r#"{"error":"ERR unknown command 'NOSUCH', with args beginning with: "}"#.into())
    );
    let (status, text) = asks(&post("/", "", r#"["GET",null]"#));
    assert!(status == 400 && text.contains("null is no argument"), "{text}");
    assert_eq!(asks(&post("/nothing/here", "", "")).0, 400);
    assert_eq!(asks(&get("/v1/nothing")).0, 404);
}

#[test]
fn replies_are_base64_or_resp2_where_that_is_asked_for() {
    let (mut alone, [mut client]) = Alone::with_clients();
    let mut asks = |path: &str, headers: &str, body: &str| {
        let got = one(&mut alone, &mut client, &post(path, headers, body));
        (got.status, String::from_utf8_lossy(&got.body).into_owned())
    };
    let base64 = "Upstash-Encoding: base64\r\n";
    assert_eq!(asks("/", base64, r#"["SET","k","OK"]"#), (200, r#"{"result":"OK"}"#.into()));
    assert_eq!(asks("/", base64, r#"["GET","k"]"#), (200, r#"{"result":"T0s="}"#.into()));
    assert_eq!(
        asks("/", base64, r#"["INCR","k"]"#).1,
        r#"{"error":"ERR value is not an integer or out of range"}"#
    );
    let list = r#"[["SET","k","v"],["GET","k"],["LPOP","k"],["PING"]]"#;
    let wrong = r#"{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}"#;
    assert_eq!(
        asks("/pipeline", base64, list).1,
        format!(r#"[{{"result":"OK"}},{{"result":"dg=="}},{wrong},{{"result":"UE9ORw=="}}]"#)
    );
    assert_eq!(
        asks("/multi-exec", base64, list).1,
        format!(r#"[{{"result":"OK"}},{{"result":"dg=="}},{wrong},{{"result":"UE9ORw=="}}]"#)
    );
    let resp2 = "Upstash-Response-Format: resp2\r\n";
    assert_eq!(asks("/", resp2, r#"["MGET","k","none"]"#), (200, "*2\r\n$1\r\nv\r\n$-1\r\n".into()));
    assert_eq!(asks("/pipeline", resp2, r#"[["GET","k"],["LPOP","k"]]"#).1.lines().next(), Some("*2"));
    assert_eq!(asks("/", resp2, r#"["LPOP","k"]"#).0, 400);
    let both = format!("{base64}{resp2}");
    assert_eq!(asks("/", &both, r#"["GET","k"]"#).0, 400);
}

#[test]
fn many_commands_are_one_list() {
    let (mut alone, [mut client]) = Alone::with_clients();
    let got = one(
        &mut alone,
        &mut client,
        &post("/pipeline", "", r#"[["SET","k","7"],["INCR","k"],["NOSUCH"],["GET","k"]]"#),
    );
    assert_eq!(got.status, 200);
    assert!(
        got.text().starts_with(r#"[{"result":"OK"},{"result":8},{"error":"ERR unknown"#),
        "{}",
        got.text()
    );
    assert!(got.text().ends_with(r#"},{"result":"8"}]"#), "{}", got.text());
    assert_eq!(one(&mut alone, &mut client, &post("/pipeline", "", "[]")).text(), "[]");
    assert_eq!(one(&mut alone, &mut client, &post("/multi-exec", "", "[]")).text(), "[]");
    // Nothing of a body runs that is not whole and right.
    for body in [
        r#"[["INCR","k"],["GET",null]]"#,
        r#"[["INCR","k"],["GET","k"]"#,
        r#"[["INCR","k"],"GET"]"#,
        r#"[["INCR","k"],[]]"#,
    ] {
        for path in ["/pipeline", "/multi-exec"] {
            assert_eq!(one(&mut alone, &mut client, &post(path, "", body)).status, 400, "{body}");
        }
    }
    assert_eq!(one(&mut alone, &mut client, &get("/get/k")).text(), r#"{"result":"8"}"#);
    // More than a batch, and more than is sent at once: in chunks, and the same list.
    let value = "v".repeat(500);
    let commands: Vec<String> = (0..300).map(|at| format!(r#"["ECHO","{at} {value}"]"#)).collect();
    let got = one(&mut alone, &mut client, &post("/pipeline", "", &format!("[{}]", commands.join(","))));
    let replies: Vec<String> = (0..300).map(|at| format!(r#"{{"result":"{at} {value}"}}"#)).collect();
    assert_eq!(got.text(), format!("[{}]", replies.join(",")));
    assert!(got.has("Transfer-Encoding: chunked"), "{}", got.head);
}

#[test]
fn a_transaction_is_all_or_nothing() {
    let (mut alone, [mut client]) = Alone::with_clients();
    let got = one(
        &mut alone,
        &mut client,
        &post("/multi-exec", "", r#"[["SET","k","7"],["INCR","k"],["LPOP","k"],["MGET","k"]]"#),
    );
    let wrong = r#"{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}"#;
    assert_eq!(got.text(), format!(r#"[{{"result":"OK"}},{{"result":8}},{wrong},{{"result":["8"]}}]"#));
    let got = one(&mut alone, &mut client, &post("/multi-exec", "", r#"[["SET","k","9"],["NOSUCH"]]"#));
    assert_eq!(
        (got.status, got.text()),
        (409, r#"{"error":"EXECABORT Transaction discarded because of previous errors."}"#)
    );
    assert_eq!(one(&mut alone, &mut client, &get("/get/k")).text(), r#"{"result":"8"}"#);
    // Who may not begin one runs none of its commands.
    for rules in ["+@all", "-multi"] {
        let rules: Vec<&[u8]> = vec![b"on", b">secret", b"~*", rules.as_bytes()];
        alone.engine.set_user(b"worker", &rules).expect("they are rules");
    }
    let token = "Authorization: Bearer worker.secret\r\n";
    let got =
        one(&mut alone, &mut client, &post("/multi-exec", token, r#"[["SET","k","10"],["SET","k","11"]]"#));
    assert_eq!(got.status, 403, "{}", got.text());
    assert_eq!(one(&mut alone, &mut client, &get("/get/k")).text(), r#"{"result":"8"}"#);
}

#[test]
fn lists_of_commands_run_where_the_connection_ends_with_them() {
    let mut alone = Alone::new();
    for path in ["/pipeline", "/multi-exec"] {
        let mut client = alone.connect();
        let list = r#"[["SET","k","v"],["GET","k"]]"#;
        let got = one(&mut alone, &mut client, &post(path, "Connection: close\r\n", list));
        assert_eq!(got.text(), r#"[{"result":"OK"},{"result":"v"}]"#, "{path}");
        assert!(got.has("Connection: close"), "{}", got.head);
        let mut old = alone.connect();
        let request = format!("POST {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{list}", list.len());
        old.write_all(request.as_bytes()).expect("it fits");
        (0..4).for_each(|_| alone.tick());
        let text = String::from_utf8(received(&mut old)).expect("it is text");
        assert!(text.ends_with(got.text()), "{path}: {text}");
    }
}

#[test]
fn what_would_end_a_transaction_is_no_part_of_one() {
    let (mut alone, [mut client]) = Alone::with_clients();
    for ends in ["EXEC", "discard", "RESET", "\\u0051UIT"] {
        let list = format!(r#"[["SET","k","1"],["{ends}"],["SET","k","2"]]"#);
        for form in ["", "Upstash-Response-Format: resp2\r\n"] {
            let got = one(&mut alone, &mut client, &post("/multi-exec", form, &list));
            assert_eq!(got.status, 400, "{ends}: {}", got.text());
            assert!(got.text().contains("leave it out"), "{}", got.text());
        }
    }
    assert_eq!(one(&mut alone, &mut client, &get("/get/k")).text(), r#"{"result":null}"#);
}

#[test]
fn a_list_in_resp2_is_whole_however_often_it_is_looked_at() {
    let (mut alone, [mut client]) = Alone::with_clients();
    // What is behind EXEC, SELECT and their like runs in another batch.
    let list = r#"[["SET","k","v"],["EXEC"],["SELECT",1],["BLPOP","none",0.001],["SELECT",0],["GET","k"]]"#;
    let request = [post("/pipeline", "Upstash-Response-Format: resp2\r\n", list), get("/get/k")].concat();
    client.write_all(&request).expect("it fits into the socket");
    let mut bytes = Vec::new();
    while !bytes.ends_with(br#"{"result":"v"}"#) {
        alone.tick();
        bytes.extend(received(&mut client));
    }
    let (got, is_whole) = answers(&bytes);
    assert!(is_whole && got.len() == 2, "{got:?}");
    assert_eq!(got[0].text(), "*6\r\n+OK\r\n-ERR EXEC without MULTI\r\n+OK\r\n*-1\r\n+OK\r\n$1\r\nv\r\n");
}

#[test]
fn a_stream_that_is_refused_is_an_answer_in_json_and_the_last() {
    let mut alone = Alone::new();
    let rules: Vec<&[u8]> = vec![b"on", b">secret", b"+@all", b"-monitor", b"resetchannels"];
    alone.engine.set_user(b"worker", &rules).expect("they are rules");
    for path in ["/subscribe/news", "/monitor"] {
        let mut client = alone.connect();
        let got = one(&mut alone, &mut client, &post(path, "Authorization: Bearer worker.secret\r\n", ""));
        assert_eq!(got.status, 403, "{path}");
        assert!(
            got.text().starts_with(r#"{"error":"NOPERM "#) && got.text().ends_with(r#""}"#),
            "{}",
            got.text()
        );
        assert!(got.has("Connection: close"), "{}", got.head);
    }
}

#[test]
fn answers_come_in_the_order_of_requests() {
    let (mut alone, [mut client]) = Alone::with_clients();
    let many = [
        get("/ping"),
        post("/", "", r#"["SET","k","v"]"#),
        get("/healthz"),
        post("/pipeline", "", r#"[["GET","k"],["GET","none"]]"#),
        get("/v1/none"),
        post("/multi-exec", "", r#"[["GET","k"]]"#),
        get("/get/k"),
        post("/", "", "no json"),
        get("/get/k"),
    ];
    let all = many.concat();
    for step in [all.len(), 1, 7, 64] {
        let mut got = Vec::new();
        for part in all.chunks(step) {
            got.extend(
                ask(&mut alone, &mut client, part).into_iter().map(|got| (got.status, got.text().to_owned())),
            );
        }
        let texts: Vec<&str> = got.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts.len(), many.len(), "{texts:?}");
        assert_eq!(texts[0], r#"{"result":"PONG"}"#);
        assert_eq!(texts[2], "ok\n");
        assert_eq!(texts[3], r#"[{"result":"v"},{"result":null}]"#);
        assert_eq!((got[4].0, got[7].0), (404, 400));
        assert_eq!(texts[5], r#"[{"result":"v"}]"#);
        assert_eq!((texts[6], texts[8]), (r#"{"result":"v"}"#, r#"{"result":"v"}"#));
    }
}

#[test]
fn what_waits_holds_back_what_is_behind_it_and_nothing_else() {
    let (mut alone, [mut client, mut other]) = Alone::with_clients();
    let requests = [post("/", "", r#"["BLPOP","list",0]"#), get("/ping"), get("/healthz")].concat();
    assert!(ask(&mut alone, &mut client, &requests).is_empty());
    let pipeline = post("/pipeline", "", r#"[["PING"],["BLPOP","other",0],["PING"]]"#);
    let mut third = alone.connect();
    // What is before it in its list is there already: a part of the answer.
    let got = ask(&mut alone, &mut third, &pipeline);
    assert_eq!(got.iter().map(Got::text).collect::<Vec<_>>(), [r#"[{"result":"PONG"}"#]);
    assert_eq!(
        one(&mut alone, &mut other, &post("/", "", r#"["RPUSH","list","a"]"#)).text(),
        r#"{"result":1}"#
    );
    (0..4).for_each(|_| alone.tick());
    let (got, whole) = answers(&received(&mut client));
    let texts: Vec<&str> = got.iter().map(Got::text).collect();
    assert!(whole);
    assert_eq!(texts, [r#"{"result":["list","a"]}"#, r#"{"result":"PONG"}"#, "ok\n"]);
    assert_eq!(
        one(&mut alone, &mut other, &post("/", "", r#"["RPUSH","other","b"]"#)).text(),
        r#"{"result":1}"#
    );
    (0..4).for_each(|_| alone.tick());
    let rest = String::from_utf8(received(&mut third)).expect("it is text");
    assert!(rest.contains(r#",{"result":["other","b"]}"#) && rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[test]
fn a_request_leaves_nothing_to_the_next() {
    let (mut alone, [mut client]) = Alone::with_clients();
    let selects =
        post("/pipeline", "", r#"[["SELECT",3],["SET","k","3"],["CLIENT","SETNAME","me"],["MULTI"]]"#);
    assert_eq!(one(&mut alone, &mut client, &selects).status, 200);
    assert_eq!(one(&mut alone, &mut client, &get("/get/k")).text(), r#"{"result":null}"#);
    assert_eq!(one(&mut alone, &mut client, &post("/client/getname", "", "")).text(), r#"{"result":null}"#);
    let got = one(&mut alone, &mut client, &post("/pipeline", "", r#"[["SELECT",3],["GET","k"]]"#));
    assert_eq!(got.text(), r#"[{"result":"OK"},{"result":"3"}]"#);
    // Nor does a single command, also when the next request has come with it.
    let clean = one(&mut alone, &mut client, &post("/client/trackinginfo", "", "")).body;
    for marks in ["/multi", "/select/3", "/client/setname/me", "/client/tracking/on", "/watch/k"] {
        let more = ["/get/k", "/client/getname", "/client/trackinginfo"].map(|path| post(path, "", ""));
        let got = ask(&mut alone, &mut client, &[post(marks, "", ""), more.concat()].concat());
        let bodies: Vec<&[u8]> = got.iter().map(|got| &*got.body).collect();
        let null = &br#"{"result":null}"#[..];
        assert_eq!(bodies, [&br#"{"result":"OK"}"#[..], null, null, &clean], "{marks}");
    }
    for refused in [r#"["SUBSCRIBE","c"]"#, r#"["MONITOR"]"#, r#"["CLIENT","REPLY","OFF"]"#] {
        assert_eq!(one(&mut alone, &mut client, &post("/", "", refused)).status, 400, "{refused}");
    }
    assert_eq!(one(&mut alone, &mut client, &get("/ping")).text(), r#"{"result":"PONG"}"#);
}

#[test]
fn bodies_come_in_chunks_and_after_continue() {
    let (mut alone, [mut client]) = Alone::with_clients();
    let chunked = b"POST /set/k HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
    for step in [chunked.len(), 1, 5] {
        let got: Vec<Got> =
            chunked.chunks(step).flat_map(|part| ask(&mut alone, &mut client, part)).collect();
        assert_eq!(got.iter().map(Got::text).collect::<Vec<_>>(), [r#"{"result":"OK"}"#]);
        assert_eq!(one(&mut alone, &mut client, &get("/get/k")).text(), r#"{"result":"abcde"}"#);
    }
    let json = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n[\"GET\",\"k\"]\r\n\r\n0\r\n\r\n";
    assert_eq!(one(&mut alone, &mut client, json).text(), r#"{"result":"abcde"}"#);
    let head =
        b"POST /set/k HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    client.write_all(head).expect("it fits");
    (0..3).for_each(|_| alone.tick());
    assert_eq!(received(&mut client), b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(one(&mut alone, &mut client, b"new").text(), r#"{"result":"OK"}"#);
    // What would be in vain is not asked for.
    for (line, status) in [("PUT /set/k", 405), ("POST /v1/nothing", 404), ("POST /healthz", 405)] {
        let mut other = alone.connect();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        );
        let got = one(&mut alone, &mut other, head.as_bytes());
        assert!(got.status == status && got.has("Connection: close"), "{line}: {got:?}");
    }
    let mut other = alone.connect();
    other.write_all(b"HEAD /get/k HTTP/1.1\r\nHost: localhost\r\nX y: z\r\n\r\n").expect("it fits");
    (0..3).for_each(|_| alone.tick());
    let text = String::from_utf8(received(&mut other)).expect("it is text");
    assert!(text.starts_with("HTTP/1.1 400 ") && text.ends_with("\r\n\r\n"), "HEAD has no body: {text}");
    // A large one, in pieces, beside another client.
    let mut other = alone.connect();
    let value = "x".repeat(300_000);
    let request = post("/set/large", "", &value);
    let mut sent = 0;
    while sent < request.len() {
        let end = (sent + 50_000).min(request.len());
        let got = ask(&mut alone, &mut client, &request[sent..end]);
        sent = end;
        assert_eq!(got.len(), usize::from(sent == request.len()));
        assert_eq!(one(&mut alone, &mut other, &get("/ping")).status, 200);
    }
    let got = ask(&mut alone, &mut client, &get("/strlen/large"));
    assert_eq!(got[0].text(), r#"{"result":300000}"#);
}

#[test]
fn a_connection_ends_where_the_request_or_its_version_says_so() {
    let mut alone = Alone::new();
    for (request, stays, header) in [
        (
            &b"GET /ping HTTP/1.1\r\nHost: a.localhost\r\nConnection: close\r\n\r\n"[..],
            false,
            "Connection: close",
        ),
        (b"GET /ping HTTP/1.0\r\n\r\n", false, "Connection: close"),
        (b"GET /ping HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true, "Connection: keep-alive"),
        (
            b"GET http://localhost/ping HTTP/1.1\r\nHost: localhost\r\n\r\n",
            true,
            "Content-Type: application/json",
        ),
    ] {
        let mut client = alone.connect();
        let got = one(&mut alone, &mut client, &[request, &get("/ping")[..usize::from(stays)]].concat());
        assert!(got.status == 200 && got.has(header), "{}", got.head);
        (0..2).for_each(|_| alone.tick());
        let mut byte = [0];
        client.set_nonblocking(true).expect("it can be set");
        let ended = matches!(std::io::Read::read(&mut client, &mut byte), Ok(0));
        assert_eq!(ended, !stays, "{}", String::from_utf8_lossy(request));
    }
    // What stands behind the last request is not run.
    let mut client = alone.connect();
    let last = b"POST /set/k/v HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let got = ask(&mut alone, &mut client, &[&last[..], &post("/del/k", "", "")].concat());
    assert_eq!(got.len(), 1);
    let mut client = alone.connect();
    assert_eq!(one(&mut alone, &mut client, &get("/get/k")).text(), r#"{"result":"v"}"#);
}

#[test]
fn head_options_and_pages_for_people() {
    let (mut alone, [mut client]) = Alone::with_clients();
    client.write_all(b"HEAD /echo/hello HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it fits");
    (0..3).for_each(|_| alone.tick());
    let head = String::from_utf8(received(&mut client)).expect("it is text");
    assert!(head.contains("Content-Length: 18\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let got = one(&mut alone, &mut client, b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(got.status == 204 && got.head.contains("Allow: GET"), "{}", got.head);
    let got =
        one(&mut alone, &mut client, b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html,*/*\r\n\r\n");
    assert!(
        got.text().starts_with("<!doctype html>") && got.head.contains("default-src 'none'"),
        "{}",
        got.head
    );
    assert!(one(&mut alone, &mut client, &get("/")).text().starts_with("This is Weft."));
    assert_eq!(one(&mut alone, &mut client, &get("/readyz")).text(), "ok\n");
    for (method, path) in [("DELETE", "/"), ("PUT", "/set/k/v"), ("GET", "/pipeline"), ("POST", "/healthz")] {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let got = one(&mut alone, &mut client, request.as_bytes());
        assert!(got.status == 405 && got.head.contains("\r\nAllow: "), "{method} {path}: {}", got.head);
    }
    let value = "compress me ".repeat(500);
    one(&mut alone, &mut client, &post("/set/k", "", &value));
    let got = one(
        &mut alone,
        &mut client,
        b"GET /get/k HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: br, gzip;q=0.5\r\n\r\n",
    );
    assert!(got.has("Content-Encoding: gzip") && got.body.len() < 500 && got.body.starts_with(&[0x1f, 0x8b]));
    let got = one(
        &mut alone,
        &mut client,
        b"GET /get/k HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip;q=0\r\nX-Request-Id: a-1\r\n\r\n",
    );
    assert!(got.body.len() > value.len() && got.has("X-Request-Id: a-1"), "{}", got.head);
}

#[test]
fn events_flow_in_the_form_that_the_sdk_reads() {
    let (mut alone, [mut client, mut pattern, mut other]) = Alone::with_clients();
    let got =
        ask(&mut alone, &mut client, &post("/subscribe/news/a%20b", "Accept: text/event-stream\r\n", "[]"));
    assert_eq!(got[0].text(), "data: subscribe,news,1\n\ndata: subscribe,a b,2\n\n");
    assert!(got[0].has("Content-Type: text/event-stream"), "{}", got[0].head);
    let got = ask(&mut alone, &mut pattern, &get("/psubscribe/n*"));
    assert_eq!(got[0].text(), "data: psubscribe,n*,1\n\n");
    assert_eq!(
        one(&mut alone, &mut other, &post("/publish/news", "", "two\nlines")).text(),
        r#"{"result":2}"#
    );
    alone.tick();
    let event = "data: message,news,two\ndata: lines\n\n";
    assert_eq!(received(&mut client), format!("{:x}\r\n{event}\r\n", event.len()).into_bytes());
    let event = "data: pmessage,n*,news,two\ndata: lines\n\n";
    assert_eq!(received(&mut pattern), format!("{:x}\r\n{event}\r\n", event.len()).into_bytes());
    // What else it sends is passed over, and a heartbeat comes in its time, again and again.
    assert!(ask(&mut alone, &mut client, &get("/ping")).is_empty());
    let now_ms = alone.engine.clock.now_ms();
    for beat in 1..=2 {
        let now_us = alone.worker.clock_us();
        alone.worker.tick(now_ms + beat * (HEARTBEAT_MS + 2000), now_us);
        assert_eq!(received(&mut client), b"3\r\n:\n\n\r\n");
    }
    drop((client, pattern));
    alone.ticks_until(1);
    assert_eq!(one(&mut alone, &mut other, &post("/publish/news/x", "", "")).text(), r#"{"result":0}"#);
    let mut monitor = alone.connect();
    let got = ask(&mut alone, &mut monitor, &post("/monitor", "", ""));
    assert_eq!(got[0].text(), "data: \"OK\"\n\n");
    one(&mut alone, &mut other, &get("/get/seen"));
    alone.tick();
    let line = String::from_utf8(received(&mut monitor)).expect("it is text");
    assert!(line.contains("data: ") && line.contains("\"get\" \"seen\""), "{line}");
    // In HTTP/1.0 there are no chunks.
    let mut old = alone.connect();
    old.write_all(b"GET /subscribe/c HTTP/1.0\r\n\r\n").expect("it fits");
    (0..3).for_each(|_| alone.tick());
    let text = String::from_utf8(received(&mut old)).expect("it is text");
    assert!(text.ends_with("\r\n\r\ndata: subscribe,c,1\n\n"), "{text}");
}

#[test]
fn credentials_are_users() {
    let mut alone = Alone::new();
    let rules: Vec<&[u8]> = vec![b"on", b">secret", b"~app:*", b"+get", b"+set"];
    alone.engine.set_user(b"app", &rules).expect("they are rules");
    alone.engine.set_config(&[(b"requirepass", b"main")], false).expect("it can be set");
    let mut client = alone.connect();
    let with = |header: &str, path: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{header}Content-Length: 0\r\n\r\n").into_bytes()
    };
    for (header, path, status) in [
        ("", "/get/app:k", 401),
        ("Authorization: Bearer main\r\n", "/set/other/v", 200),
        ("Authorization: Bearer app.secret\r\n", "/get/app:k", 200),
        ("Authorization: Bearer app.secret\r\n", "/get/other", 403),
        ("Authorization: Bearer app.wrong\r\n", "/get/app:k", 401),
        ("Authorization: bearer nobody.secret\r\n", "/get/app:k", 401),
        ("Authorization: Basic YXBwOnNlY3JldA==\r\n", "/get/app:k", 200),
        ("Authorization: Basic OnNlY3JldA==\r\n", "/get/app:k", 401),
        ("Authorization: Digest x\r\n", "/get/app:k", 401),
        ("", "/get/app:k?_token=app.secret", 200),
        ("", "/get/app:k?_token=app%2esecret", 200),
        ("", "/get/app:k?_token=app.none", 401),
        ("", "/get/app:k", 401),
        ("", "/healthz", 401),
        ("Authorization: Bearer main\r\n", "/get/other", 200),
    ] {
        let got = one(&mut alone, &mut client, &with(header, path));
        assert_eq!(got.status, status, "{header}{path}: {}", got.text());
        assert_eq!(got.head.contains("WWW-Authenticate: Bearer"), status == 401, "{}", got.head);
    }
    assert_eq!(one(&mut alone, &mut client, &get("/healthz")).status, 200);
    // A token that is taken away ends with the next request, also on a connection that has used it.
    let token = with("Authorization: Bearer app.secret\r\n", "/get/app:k");
    assert_eq!(one(&mut alone, &mut client, &token).status, 200);
    alone.engine.set_user(b"app", &[b"<secret"]).expect("it is a rule");
    assert_eq!(one(&mut alone, &mut client, &token).status, 401);
    // Requests of several users at once: each has its own rights.
    let main = with("Authorization: Bearer main\r\n", "/get/other");
    let got = ask(&mut alone, &mut client, &[main.clone(), token.clone(), main, token].concat());
    assert_eq!(got.iter().map(|got| got.status).collect::<Vec<_>>(), [200, 401, 200, 401]);
}

#[test]
fn what_passes_by_itself_is_503_and_says_when_to_come_again() {
    let mut alone = Alone::new();
    alone.engine.set_loading(true);
    let mut client = alone.connect();
    for path in ["/readyz", "/get/k", "/v1/db/0/keys/k", "/v1/events"] {
        let got = one(&mut alone, &mut client, &get(path));
        assert!(got.status == 503 && got.text().contains("LOADING") && got.text().contains('%'), "{got:?}");
        assert!(got.has("Retry-After: 1"), "{got:?}");
    }
    // A stream that is refused is the last answer of its connection.
    let mut client = alone.connect();
    assert_eq!(one(&mut alone, &mut client, &get("/healthz")).status, 200, "it lives");
    alone.engine.set_loading(false);
    assert_eq!(one(&mut alone, &mut client, &get("/readyz")).text(), "ok\n");
    let busy = weft_engine::error::Error::from(weft_engine::ErrorCode::Busy);
    assert_eq!((busy.code.http_status(), busy.prefix()), (503, "BUSY"));
}

#[test]
fn what_is_no_single_answer_is_refused_with_what_is_served() {
    let (mut alone, [mut client]) = Alone::with_clients();
    for command in [r#"["SUBSCRIBE","c"]"#, r#"["SSUBSCRIBE","c"]"#] {
        let got = one(&mut alone, &mut client, &post("/", "", command));
        assert!(got.status == 400 && got.text().contains("/psubscribe, /monitor and"), "{got:?}");
        assert!(!got.text().contains("/ssubscribe"), "there is no such stream: {got:?}");
    }
}

/// CLIENT KILL ends a connection that speaks HTTP, a stream too; CLIENT PAUSE holds its writes and lets them go.
#[test]
fn clients_are_killed_and_paused() {
    let (mut alone, [mut client, mut stream, mut held]) = Alone::with_clients();
    ask(&mut alone, &mut stream, &get("/v1/events"));
    assert_eq!(alone.clients(), 3);
    let kill = post("/", "", r#"["CLIENT","KILL","TYPE","normal","SKIPME","yes"]"#);
    assert_eq!(one(&mut alone, &mut client, &kill).text(), r#"{"result":2}"#);
    alone.ticks_until(1);
    assert!(received(&mut held).is_empty());
    let mut held = alone.connect();
    one(&mut alone, &mut client, &post("/", "", r#"["CLIENT","PAUSE","100000","WRITE"]"#));
    let put = b"PUT /v1/db/0/keys/k?nx HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nv".repeat(2);
    assert!(ask(&mut alone, &mut held, &put).is_empty(), "it waits");
    assert_eq!(one(&mut alone, &mut client, &get("/get/k")).text(), r#"{"result":null}"#);
    one(&mut alone, &mut client, &post("/", "", r#"["CLIENT","UNPAUSE"]"#));
    (0..4).for_each(|_| alone.tick());
    let statuses: Vec<u16> = answers(&received(&mut held)).0.iter().map(|got| got.status).collect();
    assert_eq!(statuses, [201, 412], "what was asked of the first is asked of it, and not of the other");
}

#[test]
fn lists_are_compressed_also_as_they_come() {
    let (mut alone, [mut client]) = Alone::with_clients();
    let value: String = (0..600).map(|at| format!("{at},")).collect();
    one(&mut alone, &mut client, &post("/set/k", "", &value));
    for (count, in_chunks) in [(1, false), (40, true)] {
        // A part is sent when what runs next must wait for what ran before.
        let gets = format!("[{}]", [r#"["GET","k"],["SELECT","0"]"#].repeat(count).join(","));
        let plain = one(&mut alone, &mut client, &post("/pipeline", "", &gets));
        let zipped = one(&mut alone, &mut client, &post("/pipeline", "Accept-Encoding: gzip\r\n", &gets));
        assert!(zipped.has("Content-Encoding: gzip") && zipped.has("Vary: Accept-Encoding"), "{zipped:?}");
        assert_eq!(zipped.has("Transfer-Encoding: chunked"), in_chunks);
        assert!(zipped.body.len() < plain.body.len() / 2);
        let mut unzipped = Vec::new();
        flate2::read::GzDecoder::new(&zipped.body[..]).read_to_end(&mut unzipped).expect("it is gzip");
        assert!(unzipped == plain.body, "{count}");
    }
    // In RESP2 it is as it is, and so it is where little comes.
    let resp2 = "Accept-Encoding: gzip\r\nUpstash-Response-Format: resp2\r\n";
    let got = one(&mut alone, &mut client, &post("/pipeline", resp2, r#"[["GET","k"],["GET","k"]]"#));
    assert!(!got.has("Content-Encoding: gzip") && got.body.starts_with(b"*2\r\n$"), "{}", got.head);
    let got = one(&mut alone, &mut client, &post("/pipeline", "Accept-Encoding: gzip\r\n", r#"[["PING"]]"#));
    assert_eq!((got.text(), got.has("Content-Encoding: gzip")), (r#"[{"result":"PONG"}]"#, false));
}
