//! HTTP from whoever means harm: requests that two programs could read in two ways, limits, slow ones, pages of other
//! origins, names that point here.

use std::io::{Read, Write};

use super::http::{answers, ask, get, one, post};
use super::{Alone, received, sends};
use crate::connection::Life;

/// A request, with `|` for its line ends, and the status that it must have; the connection ends with it.
const REFUSED: &[(&str, u16)] = &[
    // Two lengths, or one that can be read in two ways.
    ("POST /set/k HTTP/1.1|Host: localhost|Content-Length: 1|Content-Length: 1||x", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Content-Length: 1|Content-Length: 2||xy", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Content-Length: 1, 1||x", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Content-Length: +1||x", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Content-Length: -1||x", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Content-Length: 0x1||x", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Content-Length: 1 1||x", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Content-Length:||x", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Content-Length: 9999999999999999999||x", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Content-Length: 4|Transfer-Encoding: chunked||0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked|Content-Length: 4||0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked|Content-Length: 0||0||", 400),
    ("POST /set/k HTTP/1.0|Transfer-Encoding: chunked||0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked|Transfer-Encoding: chunked||0||", 501),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked, identity||0||", 501),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: gzip, chunked||0||", 501),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: identity|Content-Length: 1||x", 501),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: xchunked||0||", 501),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: \x0bchunked||0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding : chunked||0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost| Transfer-Encoding: chunked||0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|X: y|\tTransfer-Encoding: chunked||0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Content-Encoding: gzip|Content-Length: 1||x", 415),
    // Chunks.
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||1 |x|0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||0x1|x|0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||1|xy|0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||1\nx|0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||1|x\n0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||FFFFFFFFFFFFFFFF|x|0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||-1|x|0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||1;a\n=b|x|0||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||0|A : b||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||0|: b||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked||0|A: b| c: d||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding: chunked;q=1||0||", 501),
    ("POST /set/k HTTP/1.1|Host: localhost|Transfer-Encoding:||0||", 501),
    // Lines and bytes.
    ("GET /get/k HTTP/1.1|Host: localhost\n|", 400),
    ("GET /get/k HTTP/1.1|Host: localhost\nX: y||", 400),
    ("GET /get/k HTTP/1.1|X: a\rHost: localhost||", 400),
    ("GET /get/k HTTP/1.1|Host: localhost|X: a\0b||", 400),
    ("GET /get/k HTTP/1.1|Host: localhost|X\0: b||", 400),
    ("GET /get/k HTTP/1.1|Host: localhost|X y: b||", 400),
    ("GET /get/k HTTP/1.1|Host: localhost|: b||", 400),
    ("GET /get/k HTTP/1.1|Host: localhost|no colon||", 400),
    ("GET /get/k HTTP/1.1|Host: localhost|X: b| folded||", 400),
    ("GET  /get/k HTTP/1.1|Host: localhost||", 400),
    ("GET /get/k  HTTP/1.1|Host: localhost||", 505),
    ("GET /get/k\x7f HTTP/1.1|Host: localhost||", 400),
    ("GET\t/get/k HTTP/1.1|Host: localhost||", 400),
    ("G<T /get/k HTTP/1.1|Host: localhost||", 400),
    // Methods and versions.
    ("CONNECT localhost:80 HTTP/1.1|Host: localhost||", 501),
    ("TRACE / HTTP/1.1|Host: localhost||", 501),
    ("get / HTTP/1.1|Host: localhost||", 501),
    ("GET /get/k HTTP/1.2|Host: localhost||", 505),
    // The host and the target.
    ("GET /get/k HTTP/1.1|X: y||", 400),
    ("GET /get/k HTTP/1.1|Host: localhost|Host: localhost||", 400),
    ("GET /get/k HTTP/1.1|Host: localhost|Host: b||", 400),
    ("GET /get/k HTTP/1.1|Host: a b||", 400),
    ("GET /get/k HTTP/1.1|Host: a/b||", 400),
    ("GET /get/k HTTP/1.1|Host: a@b||", 400),
    ("GET /get/k HTTP/1.1|Host: a,b||", 400),
    ("GET http://b/get/k HTTP/1.1|Host: localhost||", 400),
    ("GET http://localhost HTTP/1.1|Host: localhost||", 400),
    ("GET ftp://localhost/get/k HTTP/1.1|Host: localhost||", 400),
    ("GET get/k HTTP/1.1|Host: localhost||", 400),
    ("GET * HTTP/1.1|Host: localhost||", 400),
    ("GET /get/k HTTP/1.1|Host: localhost|Authorization: Bearer x|Authorization: Bearer y||", 400),
    ("GET /get/k HTTP/1.1|Host: localhost|Origin: http://localhost|Origin: http://b||", 400),
    ("POST /set/k HTTP/1.1|Host: localhost|Expect: 200-ok|Content-Length: 1||x", 417),
];

#[test]
fn what_can_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_read() {
    let mut alone = Alone::new();
    for &(text, status) in REFUSED {
        let request = text.replace('|', "\r\n");
        // Another request stands behind it, as one that is smuggled would.
        let whole = [request.as_bytes(), &post("/set/smuggled/x", "", "")].concat();
        for step in [whole.len(), 1] {
            let mut client = alone.connect();
            for part in whole.chunks(step) {
                // It may have been answered, and the connection ended, before all of it is sent.
                let _ = client.write_all(part);
                alone.tick();
            }
            (0..3).for_each(|_| alone.tick());
            let mut bytes = Vec::new();
            client.set_nonblocking(true).expect("it can be set");
            let _ = client.read_to_end(&mut bytes);
            let (got, is_whole) = answers(&bytes);
            assert!(is_whole && got.len() == 1, "{text:?} has {got:?}");
            assert_eq!(got[0].status, status, "{text:?}: {}", got[0].text());
            assert!(got[0].head.contains("\r\nConnection: close"), "{text:?}");
            assert!(got[0].text().starts_with("{\"error\":\"ERR "), "{text:?}");
        }
    }
    let mut client = alone.connect();
    let got = one(&mut alone, &mut client, &post("/", "", r#"["EXISTS","smuggled","k"]"#));
    assert_eq!(got.text(), r#"{"result":0}"#);
}

#[test]
fn heads_and_bodies_have_limits() {
    let mut alone = Alone::new();
    let set = |alone: &Alone, name: &str, value: &str| {
        alone.engine.set_config(&[(name.as_bytes(), value.as_bytes())], false).expect("it can be set");
    };
    set(&alone, "http-line-bytes", "2000");
    set(&alone, "http-head-bytes", "4000");
    set(&alone, "http-headers", "5");
    set(&alone, "http-body-bytes", "1024");
    let line = |len: usize| get(&format!("/echo/{}", "x".repeat(len - "GET /echo/ HTTP/1.1\r\n".len())));
    let head = |len: usize| {
        let rest = "GET /ping HTTP/1.1\r\nHost: localhost\r\nX: \r\n\r\n".len();
        format!("GET /ping HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(len - rest)).into_bytes()
    };
    let headers = |count: usize| {
        let more: String = (1..count).map(|at| format!("X{at}: y\r\n")).collect();
        format!("GET /ping HTTP/1.1\r\nHost: localhost\r\n{more}\r\n").into_bytes()
    };
    let body = |len: usize| post("/echo", "", &"x".repeat(len));
    let chunk = |len: usize| {
        let head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}{len:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(len)).into_bytes()
    };
    for (at, past, status) in [
        (line(2000), line(2001), 414),
        (head(4000), head(4001), 431),
        (headers(5), headers(6), 431),
        (body(1024), body(1025), 413),
        (chunk(1024), chunk(1025), 413),
    ] {
        let mut client = alone.connect();
        assert_eq!(one(&mut alone, &mut client, &at).status, 200);
        assert_eq!(one(&mut alone, &mut client, &past).status, status);
        (0..2).for_each(|_| alone.tick());
        // Without its end, as far as the limit reaches and a byte more.
        let mut client = alone.connect();
        let endless = &past[..past.len() - 2];
        let got = ask(&mut alone, &mut client, endless);
        assert!(got.is_empty() || got[0].status == status, "{got:?}");
    }
    // A body's length is refused before a byte of it has come, and nothing is kept for it.
    let mut client = alone.connect();
    let got = one(
        &mut alone,
        &mut client,
        b"POST /set/k HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1025\r\n\r\n",
    );
    assert_eq!(got.status, 413);
    let endless = b"GET /".repeat(1000);
    let mut client = alone.connect();
    one(&mut alone, &mut client, &get("/ping"));
    assert_eq!(one(&mut alone, &mut client, &endless).status, 414);
}

#[test]
fn a_request_that_does_not_come_has_a_time() {
    let mut alone = Alone::new();
    let body = "http-body-timeout";
    for (part, directive, seconds) in [
        (&b"GET /ping HTTP/1.1\r\nHost:"[..], "http-head-timeout", 20),
        (b"GET /ping HTTP/1.1\r\nHost:", "http-head-timeout", 30),
        (b"POST /set/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabc", body, 20),
        (b"POST /set/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabc", body, 40),
        (b"POST /set/k HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", body, 50),
    ] {
        let value = seconds.to_string();
        alone.engine.set_config(&[(directive.as_bytes(), value.as_bytes())], false).expect("it can be set");
        let second_ms = seconds * 1000;
        let mut client = alone.connect();
        let mut other = alone.connect();
        assert!(ask(&mut alone, &mut client, part).is_empty());
        assert_eq!(one(&mut alone, &mut other, b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
        let (now_ms, now_us) = (alone.engine.clock.now_ms(), alone.worker.clock_us());
        alone.worker.tick(now_ms + second_ms - 5000, now_us);
        assert!(received(&mut client).is_empty());
        alone.worker.tick(now_ms + second_ms + 1000, now_us);
        let (got, _) = answers(&received(&mut client));
        assert_eq!(got.first().map(|got| got.status), Some(408), "{got:?}");
        // Who waits between requests has all the time.
        assert_eq!(one(&mut alone, &mut other, b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
    }
}

#[test]
fn a_get_without_credentials_only_reads() {
    let (mut alone, [mut client]) = Alone::with_clients();
    for path in [
        "/set/k/v",
        "/flushall",
        "/shutdown",
        "/config/set/maxmemory/1",
        "/publish/c/m",
        "/getdel/k",
        "/client/kill/x",
        "/monitor",
        "/acl/deluser/x",
        "/eval/x/0",
        "/auth/x",
        "/multi",
        "/wait/1/0",
        "/hello/3",
    ] {
        let got = one(&mut alone, &mut client, &get(path));
        assert_eq!(got.status, 403, "{path}: {}", got.text());
    }
    for path in [
        "/get/k",
        "/ping",
        "/mget/a/b",
        "/hgetall/h",
        "/keys/*",
        "/dbsize",
        "/command/count",
        "/echo/x",
        "/time",
    ] {
        assert_eq!(one(&mut alone, &mut client, &get(path)).status, 200, "{path}");
    }
    let got = one(
        &mut alone,
        &mut client,
        b"GET /set/k/v HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer any\r\n\r\n",
    );
    assert_eq!(got.status, 200, "who shows credentials means it: {}", got.text());
    // Of a token in the address only where not any will do: a link can have one.
    let rules: Vec<&[u8]> = vec![b"on", b">secret", b"+@all", b"~*"];
    alone.engine.set_user(b"app", &rules).expect("they are rules");
    for (path, status) in [
        ("/set/k/w?_token=any", 403),
        ("/set/k/w?_token=", 403),
        ("/monitor?_token=any", 403),
        ("/set/k/w?_token=app.wrong", 401),
        ("/set/k/w?_token=app.secret", 200),
        ("/get/k?_token=any", 200),
    ] {
        assert_eq!(one(&mut alone, &mut client, &get(path)).status, status, "{path}");
    }
    alone.engine.set_config(&[(b"requirepass", b"main")], false).expect("it can be set");
    assert_eq!(one(&mut alone, &mut client, &get("/set/k/x?_token=main")).status, 200);
}

#[test]
fn pages_of_other_origins_and_names_that_point_here_are_refused() {
    let (mut alone, [mut client]) = Alone::with_clients();
    let with =
        |method: &str, headers: &str| format!("{method} /get/k HTTP/1.1\r\n{headers}\r\n").into_bytes();
    let cases = |alone: &mut Alone, client: &mut _, cases: &[(&str, u16)]| {
        for &(headers, status) in cases {
            let headers = headers.replace('|', "\r\n");
            let got = one(alone, client, &with("GET", &headers));
            assert_eq!(got.status, status, "{headers}: {}", got.text());
        }
    };
    cases(
        &mut alone,
        &mut client,
        &[
            ("Host: localhost:6379|", 200),
            ("Host: 127.0.0.1|", 200),
            ("Host: [::1]:80|", 200),
            ("Host: evil.example|", 403),
            ("Host: localhost.evil.example|", 403),
            ("Host: localhost|Origin: http://localhost|", 200),
            ("Host: localhost|Origin: http://evil.example|", 403),
            ("Host: localhost|Origin: null|", 403),
            ("Host: localhost|Origin: http://localhost:81|", 403),
            ("Host: localhost|Sec-Fetch-Site: same-origin|", 200),
            ("Host: localhost|Sec-Fetch-Site: none|", 200),
            ("Host: localhost|Sec-Fetch-Site: cross-site|", 403),
            ("Host: localhost|Sec-Fetch-Site: same-site|", 403),
            ("Host: localhost|Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: navigate|", 403),
        ],
    );
    let link = b"GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n\r\n";
    assert_eq!(one(&mut alone, &mut client, link).status, 200, "people may come by a link");
    alone
        .engine
        .set_config(
            &[(b"http-hosts", b"cache.example"), (b"http-cors-origins", b"http://app.example")],
            false,
        )
        .expect("they can be set");
    cases(
        &mut alone,
        &mut client,
        &[
            ("Host: cache.example:6379|", 200),
            ("Host: evil.example|", 403),
            ("Host: cache.example|Origin: http://app.example|Sec-Fetch-Site: cross-site|", 200),
            ("Host: cache.example|Origin: http://evil.example|Sec-Fetch-Site: cross-site|", 403),
        ],
    );
    let headers = "Host: localhost\r\nOrigin: http://app.example\r\n";
    let got = one(&mut alone, &mut client, &with("GET", headers));
    assert!(got.head.contains("Access-Control-Allow-Origin: http://app.example\r\n"), "{}", got.head);
    let preflight = format!("{headers}Access-Control-Request-Method: POST\r\nSec-Fetch-Site: cross-site\r\n");
    let got = one(&mut alone, &mut client, &with("OPTIONS", &preflight));
    assert!(
        got.status == 204 && got.head.contains("Access-Control-Allow-Headers: Authorization"),
        "{}",
        got.head
    );
    // By whatever name: a browser shows no credentials with it.
    let named = preflight.replace("localhost", "cache.other");
    assert_eq!(one(&mut alone, &mut client, &with("OPTIONS", &named)).status, 204);
    assert_eq!(one(&mut alone, &mut client, &with("GET", &named)).status, 403);
    let foreign = preflight.replace("app.example", "evil.example");
    let got = one(&mut alone, &mut client, &with("OPTIONS", &foreign));
    assert!(got.status == 403 && !got.head.contains("Access-Control"), "{}", got.head);
}

#[test]
fn http_beside_resp_disturbs_nobody() {
    let (mut alone, [mut http, mut resp]) = Alone::with_clients();
    http.write_all(b"POST /set/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        .expect("it fits");
    for _ in 0..100 {
        http.write_all(&[b'x'; 1000]).expect("it fits");
        resp.write_all(b"PING\r\n").expect("it fits");
        alone.tick();
        alone.tick();
        assert_eq!(received(&mut resp), b"+PONG\r\n");
    }
    assert!(received(&mut http).is_empty());
    drop(http);
    alone.ticks_until(1);
    resp.write_all(b"EXISTS k\r\n").expect("it fits");
    (0..2).for_each(|_| alone.tick());
    assert_eq!(received(&mut resp), b":0\r\n");
}

/// A small body can ask for gigabytes. What nobody reads is not made, and nobody else waits for it.
#[test]
fn answers_that_nobody_reads_are_not_made() {
    const COUNT: usize = 1000;
    let (mut alone, [mut other]) = Alone::with_clients();
    let value = "v".repeat(50_000);
    one(&mut alone, &mut other, &post("/set/k", "", &value));
    let list = format!("[{}]", [r#"["GET","k"]"#; COUNT].join(","));
    for (requests, answers_count) in [
        (post("/pipeline", "", &list), 1),
        (get("/get/k").repeat(COUNT), COUNT),
        (post("/multi-exec", "", &list), 1),
        (get("/v1/openapi.json").repeat(100), 100),
    ] {
        let mut client = alone.connect();
        client.write_all(&requests).expect("it fits");
        // All has been sent, and so has its end.
        client.shutdown(std::net::Shutdown::Write).expect("it can be");
        for _ in 0..20 {
            alone.tick();
            let unsent: usize = alone.worker.io.slots.iter().flatten().map(|one| one.unsent()).sum();
            // A batch is made, and a transaction as a whole.
            let most = if requests.starts_with(b"POST /multi") {
                COUNT
            } else {
                3 * weft_engine::requests::BATCH_MAX
            };
            assert!(unsent < most * (value.len() + 100) + (2 << 20), "{unsent} bytes");
        }
        assert_eq!(one(&mut alone, &mut other, &get("/ping")).status, 200);
        let mut bytes = Vec::new();
        client.set_nonblocking(true).expect("it can be set");
        while client.read_to_end(&mut bytes).is_err() {
            alone.tick();
        }
        let (got, is_whole) = answers(&bytes);
        assert!(is_whole && got.len() == answers_count, "{}", got.len());
        let values: usize = got.iter().map(|got| got.text().matches(&value).count()).sum();
        assert_eq!(values, if requests.starts_with(b"GET /v1/") { 0 } else { COUNT });
    }
}

/// Each request has one answer and each command one reply, in the form that was asked for, whatever a command would
/// change over RESP.
#[test]
fn commands_cannot_change_how_they_are_answered() {
    let (mut alone, [mut other]) = Alone::with_clients();
    for form in ["", "Upstash-Response-Format: resp2\r\n"] {
        for (command, error) in [
            (r#"["CLIENT","REPLY","OFF"]"#, "CLIENT REPLY is not available over HTTP"),
            (r#"["CLIENT","REPLY","SKIP"]"#, "CLIENT REPLY is not available over HTTP"),
            (r#"["QUIT"]"#, "QUIT is not available over HTTP"),
            (r#"["SUBSCRIBE","a","b"]"#, "no single answer"),
            (r#"["MONITOR"]"#, "no single answer"),
            (r#"["UNSUBSCRIBE","a","b"]"#, ""),
            (r#"["HELLO","3"]"#, ""),
            (r#"["HELLO","3","PROTO","RESPB"]"#, ""),
            (r#"["RESET"]"#, ""),
            (r#"["CLIENT","TRACKING","ON","BCAST"]"#, ""),
        ] {
            let mut client = alone.connect();
            let list = format!(r#"[["SET","k","v"],{command},["SET","k","w"],["GET","k"]]"#);
            let requests = [post("/pipeline", form, &list), post("/", form, command), get("/ping")].concat();
            let got = ask(&mut alone, &mut client, &requests);
            assert_eq!(got.len(), 3, "{form}{command}: {got:?}");
            assert_eq!(got[2].text(), r#"{"result":"PONG"}"#, "{form}{command}");
            let (many, single) = (got[0].text(), got[1].text());
            assert!(many.contains(error) && single.contains(error), "{form}{command}: {many} {single}");
            assert_eq!(got[1].status, if error.is_empty() { 200 } else { 400 }, "{form}{command}: {single}");
            if form.is_empty() {
                let items: Vec<serde_json::Value> = serde_json::from_str(many).expect("it is JSON");
                assert_eq!((items.len(), &items[3]["result"]), (4, &"w".into()), "{command}: {many}");
            } else {
                assert!(many.starts_with("*4\r\n") && many.ends_with("$1\r\nw\r\n"), "{command}: {many}");
                assert!(
                    !many.lines().any(|line| line.starts_with(['%', '>', '_', '#'])),
                    "it is RESP2: {many}"
                );
            }
            // Nobody is sent what he cannot be sent.
            assert!(one(&mut alone, &mut other, &post("/publish/a/x", "", "")).text().ends_with(":0}"));
            assert!(received(&mut client).is_empty());
        }
    }
    // A stream has no head alone.
    for path in ["/subscribe/a", "/psubscribe/a", "/monitor"] {
        let mut client = alone.connect();
        let head = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n\r\n");
        client.write_all(&[head.as_bytes(), &get("/ping")].concat()).expect("it fits");
        (0..4).for_each(|_| alone.tick());
        let text = String::from_utf8(received(&mut client)).expect("it is text");
        assert!(
            text.starts_with("HTTP/1.1 405 ") && text.ends_with(r#"{"result":"PONG"}"#),
            "{path}: {text}"
        );
    }
    let mut client = alone.connect();
    assert_eq!(one(&mut alone, &mut client, &post("/monitor/x", "", "")).status, 400);
}

#[test]
fn http_can_be_switched_off() {
    let mut alone = Alone::new();
    alone.engine.set_config(&[(b"http-detect", b"no")], false).expect("it can be set");
    let mut client = alone.connect();
    client.write_all(&get("/ping")).expect("it fits");
    (0..3).for_each(|_| alone.tick());
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("it ends");
    assert!(answer.starts_with("-ERR Protocol error"), "{answer}");
}

#[test]
fn a_first_line_is_http_by_its_end_and_a_digit() {
    for (line, answer) in [
        (&b"ECHO HTTP/1.x\r\n"[..], &b"$8\r\nHTTP/1.x\r\n"[..]),
        (b"ECHO HTTP/1.\n", b"$7\r\nHTTP/1.\r\n"),
        (b"ECHO xHTTP/1.1\r\n", b"$9\r\nxHTTP/1.1\r\n"),
        (b"\r\n PING\r\n", b"+PONG\r\n"),
        (b"GET /ping HTTP/1.1\r\n\r\n", b"HTTP/1.1 "),
        (b"GET /ping HTTP/1.7\n\n", b"HTTP/1."),
    ] {
        let mut whole = Alone::new();
        let mut client = whole.connect();
        sends(&mut whole, &mut client, line);
        let all = received(&mut client);
        assert!(all.starts_with(answer), "{:?}", String::from_utf8_lossy(&all));
        let mut pieces = Alone::new();
        let mut client = pieces.connect();
        line.iter().for_each(|byte| sends(&mut pieces, &mut client, &[*byte]));
        assert!(received(&mut client).starts_with(answer), "in pieces");
    }
}

/// A line that just does not fit is no command either: what stands behind it would be commands too.
#[test]
fn a_first_line_past_the_limit_is_never_a_command() {
    let limit = crate::limits::UNAUTHENTICATED_FRAME_BYTES_MAX as usize;
    let (begin, end) = ("POST /echo/", " HTTP/1.1\r\n");
    for past in [1, 2, 3, 100] {
        let word = "p".repeat(limit + past - begin.len() - end.len());
        let request = format!("{begin}{word}{end}Host: localhost\r\nContent-Length: 6\r\n\r\nPING\r\n");
        for first in [request.len(), limit - 1, limit, limit + 1, limit + 2] {
            let mut alone = protected(60);
            let mut client = alone.connect();
            sends(&mut alone, &mut client, &request.as_bytes()[..first]);
            // It may have been refused by then.
            let _ = client.write_all(&request.as_bytes()[first..]);
            (0..3).for_each(|_| alone.tick());
            let answer = String::from_utf8_lossy(&received(&mut client)).into_owned();
            let is_refused = answer.starts_with("HTTP/1.1 414") || answer.starts_with("-ERR Protocol error");
            assert!(is_refused && answer.matches("-ERR").count() < 2, "{past}, {first}: {answer}");
            assert!(alone.worker.io.get(0).is_none_or(|open| open.life != Life::Open), "{past}, {first}");
        }
    }
}

fn protected(auth_timeout_s: u64) -> Alone {
    let alone = Alone::new();
    let timeout = auth_timeout_s.to_string();
    let values: [(&[u8], &[u8]); 2] = [(b"requirepass", b"secret"), (b"auth-timeout", timeout.as_bytes())];
    alone.engine.set_config(&values, false).expect("they can be set");
    alone
}

#[test]
fn before_authentication_bodies_have_a_limit_of_their_own() {
    let limit = crate::limits::UNAUTHENTICATED_FRAME_BYTES_MAX as usize;
    let mut alone = protected(60);
    for (method, path, status) in [("OPTIONS", "/", 204), ("GET", "/healthz", 200)] {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
        let whole =
            |len: usize| format!("{head}Content-Length: {len}\r\n\r\n{}", "x".repeat(len)).into_bytes();
        let mut client = alone.connect();
        assert_eq!(one(&mut alone, &mut client, &whole(limit)).status, status);
        // One more is refused by the head: none of it has come.
        let more = format!("{head}Content-Length: {}\r\n\r\n", limit + 1);
        assert_eq!(one(&mut alone, &mut client, more.as_bytes()).status, 413);
        let chunk = |len: usize| format!("{head}Transfer-Encoding: chunked\r\n\r\n{len:x}\r\n").into_bytes();
        let mut client = alone.connect();
        assert_eq!(one(&mut alone, &mut client, &chunk(limit + 1)).status, 413);
        // Many small ones, whose lines take more than they hold: what is kept has a limit.
        let mut client = alone.connect();
        let many = [&chunk(1)[..], b"x\r\n", &b"1\r\nx\r\n".repeat(limit)].concat();
        let mut kept = 0;
        for part in many.chunks(8192) {
            let _ = client.write_all(part);
            (0..2).for_each(|_| alone.tick());
            let bytes = alone.worker.io.slots.iter().flatten().map(|open| open.counted.kept).max();
            kept = kept.max(bytes.unwrap_or(0));
        }
        assert_eq!(answers(&received(&mut client)).0.first().map(|got| got.status), Some(413));
        assert!((limit..8 * limit).contains(&kept), "{kept} bytes were kept");
    }
    let mut client = alone.connect();
    let set = format!(
        "POST /set/k HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Length: {}\r\n\r\n{}",
        2 * limit,
        "x".repeat(2 * limit)
    );
    assert_eq!(one(&mut alone, &mut client, set.as_bytes()).status, 200, "with credentials there is more");
}

#[test]
fn asking_does_not_prolong_the_time_to_authenticate() {
    let ask_public = get("/healthz");
    for again in [&b"\r\n"[..], &ask_public, b"GET /get/k HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        let mut alone = protected(60);
        let mut client = alone.connect();
        assert_eq!(one(&mut alone, &mut client, &ask_public).status, 200);
        let (now_ms, now_us) = (alone.engine.clock.now_ms(), alone.worker.clock_us());
        for second in 1..=61 {
            // It may have been closed.
            let _ = client.write_all(again);
            alone.worker.look(0).expect("sockets can be looked at");
            alone.worker.tick(now_ms + second * 1000, now_us);
            if second < 50 {
                received(&mut client);
                assert!(alone.worker.io.get(0).is_some_and(|open| open.life == Life::Open), "{second} s");
            }
        }
        let is_open = alone.worker.io.get(0).is_some_and(|open| open.life == Life::Open);
        assert!(!is_open, "{}", String::from_utf8_lossy(again));
    }
    // Who has authenticated has all the time.
    let mut alone = protected(60);
    let mut client = alone.connect();
    let ping = b"GET /ping HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n";
    assert_eq!(one(&mut alone, &mut client, ping).status, 200);
    let (now_ms, now_us) = (alone.engine.clock.now_ms(), alone.worker.clock_us());
    alone.worker.tick(now_ms + 100_000, now_us);
    assert_eq!(one(&mut alone, &mut client, ping).status, 200);
}

/// Of a page 20,000 bytes lie in no socket's buffer, and it is large.
#[test]
fn before_authentication_a_page_comes_whole_whatever_its_client_takes_at_once() {
    let mut alone = protected(60);
    let mut client = alone.connect();
    client.write_all(&get("/v1/openapi.json").repeat(2)).expect("it is sent");
    (0..20).for_each(|_| alone.tick());
    let owed = alone.worker.io.get(0).expect("it is there").unsent();
    assert!(owed > 100_000, "the socket has not taken {owed} bytes");
    let pages = crate::limits::UNAUTHENTICATED_OUTPUT_BYTES_MAX;
    let output = &alone.worker.io.get(0).expect("it is there").output;
    assert!(output.bytes.len() < pages && output.pins.len() == 1, "one at a time, from where it lies");
    let mut all = Vec::new();
    while answers(&all).0.len() < 2 {
        alone.tick();
        let come = received(&mut client);
        assert!(!come.is_empty() || alone.worker.io.get(0).is_some(), "cut off after {}", all.len());
        all.extend(come);
    }
    let (got, is_whole) = answers(&all);
    assert!(is_whole && got.iter().all(|got| got.status == 200 && got.body.len() > 400_000));
}

#[test]
fn pages_are_sent_some_in_each_tick() {
    const ASKED: usize = 40;
    let mut alone = protected(60);
    let mut client = alone.connect();
    let page = b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n";
    client.write_all(&page.repeat(ASKED)).expect("it fits into the socket");
    let (mut all, mut ticks) = (Vec::new(), 0);
    while answers(&all).0.len() < ASKED {
        let before = answers(&all).0.len();
        alone.tick();
        all.extend(received(&mut client));
        let now = answers(&all).0.len();
        assert!(now - before <= crate::limits::PAGES_PER_TICK_MAX as usize, "{before}, {now}");
        ticks += 1;
        assert!(ticks < 10_000);
    }
}
