//! Keys as resources: what is written is read, conditions hold under the key's lock, parts, collections, lists.

use std::io::Write;
use std::os::unix::net::UnixStream;

use super::http::{Got, ask, one};
use super::{Alone, received};

/// A client and its worker.
pub(super) struct Web {
    pub(super) alone: Alone,
    pub(super) client: UnixStream,
}

pub(super) fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let len = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

impl Web {
    pub(super) fn new() -> Self {
        let mut alone = Alone::new();
        let client = alone.connect();
        Self { alone, client }
    }
    pub(super) fn asks(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Got {
        let request = request(method, path, headers, body);
        if method == "HEAD" {
            self.client.write_all(&request).expect("it fits");
            (0..4).for_each(|_| self.alone.tick());
            // Its length is that of a body that does not follow.
            let head = String::from_utf8(received(&mut self.client)).expect("a head");
            let head = head.strip_suffix("\r\n\r\n").expect("a head and nothing else").to_owned();
            let status = head.strip_prefix("HTTP/1.1 ").expect("a status line")[..3].parse();
            return Got { status: status.expect("a status"), head, body: Vec::new() };
        }
        let mut got = ask(&mut self.alone, &mut self.client, &request);
        assert_eq!(got.len(), 1, "{method} {path} {headers:?} has {got:?}");
        got.remove(0)
    }
    fn key(&mut self, method: &str, key: &str, headers: &str, body: &[u8]) -> Got {
        self.asks(method, &format!("/v1/db/0/keys/{key}"), headers, body)
    }
    /// A command, as Upstash has it.
    pub(super) fn runs(&mut self, command: &str) -> String {
        let got = self.asks("POST", "/", "", command.as_bytes());
        got.text().to_owned()
    }
    fn status(&mut self, method: &str, key: &str, headers: &str, body: &[u8]) -> u16 {
        self.key(method, key, headers, body).status
    }
}

/// The value of a header.
pub(super) fn header<'g>(got: &'g Got, name: &str) -> Option<&'g str> {
    let mut lines = got.head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

pub(super) fn tag(got: &Got) -> String {
    header(got, "ETag").unwrap_or_else(|| panic!("no tag: {got:?}")).to_owned()
}

#[test]
fn what_is_put_is_got() {
    let mut web = Web::new();
    assert_eq!(web.status("GET", "k", "", b""), 404);
    let put = web.key("PUT", "k", "", b"a\0b\xff\r\n");
    assert_eq!((put.status, put.body.len()), (201, 0));
    let got = web.key("GET", "k", "", b"");
    assert_eq!((got.status, &got.body[..]), (200, &b"a\0b\xff\r\n"[..]));
    for line in [
        "Content-Type: application/octet-stream",
        "X-Content-Type-Options: nosniff",
        "Content-Security-Policy: sandbox; default-src 'none'",
        "Accept-Ranges: bytes",
        "Weft-Type: string",
    ] {
        assert!(got.has(line), "{line}: {got:?}");
    }
    assert_eq!(tag(&got), tag(&put));
    assert_eq!(header(&got, "Weft-TTL-Ms"), None);
    assert_eq!(web.key("PUT", "k", "", b"").status, 204);
    let empty = web.key("GET", "k", "", b"");
    assert_eq!((empty.status, empty.body.len()), (200, 0));
    assert_eq!(web.key("PUT", "k?ttl=100", "", b"v").status, 204);
    let left: u64 =
        header(&web.key("GET", "k", "", b""), "Weft-TTL-Ms").expect("it has a time").parse().unwrap();
    assert!((90_000..=100_000).contains(&left), "{left}");
    assert_eq!(web.key("PUT", "k?ttl=keep", "", b"w").status, 204);
    assert!(header(&web.key("GET", "k", "", b""), "Weft-TTL-Ms").is_some());
    assert_eq!(web.key("PUT", "k?ttl_ms=100000", "", b"12").status, 204);
    assert_eq!(web.key("GET", "k", "", b"").body, b"12", "a number is its digits");
    assert_eq!(web.status("DELETE", "k", "", b""), 204);
    assert_eq!(web.status("DELETE", "k", "", b""), 404);
    assert_eq!(web.status("GET", "k", "", b""), 404);
}

#[test]
fn what_is_asked_wrongly_changes_nothing() {
    let mut web = Web::new();
    assert_eq!(web.status("PUT", "k", "", b"v"), 201);
    for (method, path, headers, status) in [
        ("PUT", "k?ttl=0", "", 400),
        ("PUT", "k?ttl=x", "", 400),
        ("PUT", "k?ttl=1&ttl_ms=1", "", 400),
        ("PUT", "k?ttl=1&ttl=2", "", 400),
        ("PUT", "k?nothing", "", 400),
        ("DELETE", "k?ttl=1", "", 400),
        ("PUT", "k?nx", "If-None-Match: *\r\n", 400),
        ("PUT", "k", "If-Match: unquoted\r\n", 400),
        ("PUT", "k", "If-Match: \"a\"\r\nIf-Match: \"a\"\r\n", 400),
        ("PUT", "k", "Content-Range: bytes 0-1/*\r\n", 400),
        ("PATCH", "k", "Content-Range: bytes 0-0/*\r\n", 400),
        ("PATCH", "k", "Content-Range: 0-1\r\n", 400),
        ("PATCH", "k", "Content-Range: bytes 999999999999-1000000000000/*\r\n", 413),
        ("POST", "k", "", 405),
        ("PUT", "%zz", "", 400),
    ] {
        // A head that can be read in two ways ends its connection.
        web.client = web.alone.connect();
        let got = web.key(method, path, headers, b"xx");
        assert_eq!(got.status, status, "{method} {path} {headers}: {}", got.text());
        assert!(got.text().starts_with("{\"error\":\""), "{got:?}");
    }
    web.client = web.alone.connect();
    assert_eq!(web.key("GET", "k", "", b"").body, b"v");
    for (path, status) in [
        ("/v1/db/16/keys/k", 404),
        ("/v1/db/x/keys/k", 404),
        ("/v1/db/0/nothing", 404),
        ("/v1/db/0", 404),
        ("/v1/db/0/keys?key64=?", 400),
        ("/v1/db/0/keys?limit=0", 400),
        ("/v1/db/0/keys?limit=1001", 400),
        ("/v1/db/0/keys?cursor=x", 400),
        ("/v1/db/0/keys?type=x&match=a&match=b", 400),
        ("/v1/db/0/keys/k?key64=aw==", 400),
        ("/v1/db/0/mget", 405),
    ] {
        assert_eq!(web.asks("GET", path, "", b"").status, status, "{path}");
    }
}

#[test]
fn conditions_are_compare_and_set() {
    let mut web = Web::new();
    assert_eq!(web.status("PUT", "k", "If-Match: *\r\n", b"v"), 412);
    assert_eq!(web.status("PUT", "k?xx", "", b"v"), 412);
    assert_eq!(web.status("GET", "k", "", b""), 404);
    let first = tag(&web.key("PUT", "k", "If-None-Match: *\r\n", b"1"));
    assert_eq!(web.status("PUT", "k", "If-None-Match: *\r\n", b"x"), 412);
    assert_eq!(web.status("PUT", "k?nx", "", b"x"), 412);
    assert_eq!(web.status("PUT", "k?nx=1", "", b"x"), 412);
    assert_eq!(web.status("PUT", "k?nx=false", "", b"x"), 400);
    assert_eq!(web.status("PUT", "k?nx&xx", "", b"x"), 400);
    let second = tag(&web.key("PUT", "k?xx", "", b"2"));
    assert_ne!(first, second);
    let is = |tag: &str| format!("If-Match: {tag}\r\n");
    let is_not = |tag: &str| format!("If-None-Match: {tag}\r\n");
    for method in ["PUT", "PATCH", "DELETE", "GET", "HEAD"] {
        assert_eq!(web.status(method, "k", &is(&first), b"x"), 412, "{method}");
        assert_eq!(web.status(method, "k", &is(&format!("W/{second}")), b"x"), 412, "{method}");
        assert_eq!(web.status(method, "none", &is("*"), b"x"), 412, "{method}");
    }
    for method in ["PUT", "PATCH", "DELETE"] {
        assert_eq!(web.status(method, "k", &is_not(&second), b"x"), 412, "{method}");
    }
    assert_eq!(web.key("GET", "k", &is(&format!("\"x\", {second}")), b"").body, b"2");
    let same = web.key("GET", "k", &is_not(&format!("W/{second}")), b"");
    assert_eq!((same.status, same.body.len(), tag(&same)), (304, 0, second.clone()));
    assert_eq!(web.status("HEAD", "k", &is_not("*"), b""), 304);
    assert_eq!(web.status("GET", "none", &is_not("*"), b""), 404);
    assert_eq!(web.status("GET", "k", &is_not(&first), b""), 200);
    assert_eq!(web.status("PATCH", "k", &is(&second), b"3"), 204);
    let third = tag(&web.key("GET", "k", "", b""));
    assert_eq!(web.key("GET", "k", "", b"").body, b"23");
    assert_eq!(web.status("DELETE", "k", &is(&third), b""), 204);
    assert_eq!(tag(&web.key("PUT", "k", "", b"23")), third, "a tag is that of the value");
    // The same bytes as another command leaves them.
    web.runs(r#"["SET","n","5"]"#);
    let five = tag(&web.key("GET", "n", "", b""));
    web.runs(r#"["INCR","n"]"#);
    assert_eq!(web.status("PUT", "n", &is(&five), b"9"), 412);
    web.runs(r#"["DECR","n"]"#);
    assert_eq!(web.status("PUT", "n", &is(&five), b"9"), 204);
}

/// Several clients count in one value, each by compare and set: no step is lost.
#[test]
fn a_lost_update_is_refused() {
    let mut web = Web::new();
    let mut others: Vec<UnixStream> = (0..4).map(|_| web.alone.connect()).collect();
    web.key("PUT", "n", "", b"0");
    let (mut done, mut lost) = (0, 0);
    while done < 20 {
        // All read, then all write: one is in time.
        let all: Vec<_> = others
            .iter_mut()
            .map(|client| one(&mut web.alone, client, &request("GET", "/v1/db/0/keys/n", "", b"")))
            .collect();
        for (client, got) in others.iter_mut().zip(&all) {
            let next = (got.text().parse::<u32>().unwrap() + 1).to_string();
            let put =
                request("PUT", "/v1/db/0/keys/n", &format!("If-Match: {}\r\n", tag(got)), next.as_bytes());
            match one(&mut web.alone, client, &put).status {
                204 => done += 1,
                412 => lost += 1,
                status => panic!("{status}"),
            }
        }
    }
    assert_eq!(web.key("GET", "n", "", b"").text(), done.to_string());
    assert_eq!(lost, 3 * done);
}

#[test]
fn parts_are_read_and_written() {
    let mut web = Web::new();
    let value: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    let put = web.key("PUT", "k", "", &value);
    assert_eq!(put.status, 201);
    let range = |text: &str| format!("Range: {text}\r\n");
    for (text, from, to) in [
        ("bytes=0-0", 0, 0),
        ("bytes=5-20004", 5, 20_004),
        ("bytes=99999-", 99_999, 99_999),
        ("bytes=-10", 99_990, 99_999),
        ("bytes=-200000", 0, 99_999),
        ("bytes=99990-200000", 99_990, 99_999),
    ] {
        let got = web.key("GET", "k", &range(text), b"");
        assert_eq!((got.status, &got.body[..]), (206, &value[from..=to]), "{text}");
        assert!(got.has(&format!("Content-Range: bytes {from}-{to}/100000")), "{got:?}");
        assert_eq!(tag(&got), tag(&put));
    }
    for text in ["bytes=100000-", "bytes=-0"] {
        let got = web.key("GET", "k", &range(text), b"");
        assert!(got.status == 416 && got.has("Content-Range: bytes */100000"), "{got:?}");
    }
    for text in ["bytes=0-1,5-6", "bytes=5-2", "lines=1-2", "bytes=x-"] {
        let got = web.key("GET", "k", &range(text), b"");
        assert!(got.status == 200 && got.body == value, "{text}: {}", got.status);
    }
    let with = |of: &str| format!("Range: bytes=0-1\r\nIf-Range: {of}\r\n");
    assert_eq!(web.status("GET", "k", &with(&tag(&put)), b""), 206);
    assert_eq!(web.status("GET", "k", &with("\"other\""), b""), 200);
    assert_eq!(web.status("GET", "k", &with("Sun, 06 Nov 1994 08:49:37 GMT"), b""), 200);
    let head = web.key("HEAD", "k", &range("bytes=0-1"), b"");
    assert!(head.status == 200 && head.has("Content-Length: 100000"), "{head:?}");
    assert_eq!(web.status("PATCH", "new", "", b"abc"), 201);
    assert_eq!(web.status("PATCH", "new", "", b"def"), 204);
    assert_eq!(web.status("PATCH", "new", "Content-Range: bytes 1-2/*\r\n", b"BC"), 204);
    let patched = web.key("PATCH", "new", "Content-Range: bytes 8-8/*\r\n", b"!");
    let got = web.key("GET", "new", "", b"");
    assert_eq!((&got.body[..], tag(&got)), (&b"aBCdef\0\0!"[..], tag(&patched)));
}

#[test]
fn values_have_tags_up_to_a_size() {
    let mut web = Web::new();
    let max = weft_engine::resource::TAG_BYTES_MAX;
    let large = |len: usize| format!(r#"["SETRANGE","k",{},"x"]"#, len - 1);
    web.runs(&large(max));
    assert!(header(&web.key("HEAD", "k", "", b""), "ETag").is_some());
    web.runs(&large(max + 1));
    assert_eq!(header(&web.key("HEAD", "k", "", b""), "ETag"), None);
    assert_eq!(web.status("DELETE", "k", "If-Match: \"00\"\r\n", b""), 412);
    assert_eq!(web.status("DELETE", "k", "If-Match: *\r\n", b""), 204, "that it is there is known");
}

#[test]
fn collections_are_read() {
    let mut web = Web::new();
    for (make, type_name, json) in [
        (r#"["RPUSH","k","a","b\"c"]"#, "list", r#"["a","b\"c"]"#),
        (r#"["HSET","k","f","1","g","x"]"#, "hash", r#"{"f":"1","g":"x"}"#),
        (r#"["SADD","k","m"]"#, "set", r#"["m"]"#),
        (r#"["ZADD","k","1.5","m","2","n"]"#, "zset", r#"[["m",1.5],["n",2]]"#),
        (r#"["XADD","k","1-1","f","v"]"#, "stream", r#"[["1-1",["f","v"]]]"#),
    ] {
        web.runs(make);
        let got = web.key("GET", "k", "", b"");
        assert_eq!((got.status, got.text()), (200, json), "{make}");
        assert!(got.has("Content-Type: application/json") && got.has(&format!("Weft-Type: {type_name}")));
        let own = format!("If-None-Match: {}\r\n", tag(&got));
        assert_eq!(web.status("GET", "k", &own, b""), 304);
        for method in ["PUT", "PATCH"] {
            let refused = web.key(method, "k", "", b"x");
            assert!(refused.status == 409 && refused.text().contains("WRONGTYPE"), "{refused:?}");
        }
        let own = format!("If-Match: {}\r\n", tag(&got));
        assert_eq!(web.status("DELETE", "k", &own, b""), 204);
    }
    // The order in which members were added is no part of a set.
    web.runs(r#"["SADD","s","a","b"]"#);
    let before = tag(&web.key("GET", "s", "", b""));
    web.runs(r#"["SREM","s","a"]"#);
    assert_ne!(tag(&web.key("GET", "s", "", b"")), before);
    web.runs(r#"["SADD","s","a"]"#);
    assert_eq!(tag(&web.key("GET", "s", "", b"")), before);
    let value = "x".repeat(60_000);
    for _ in 0..18 {
        web.runs(&format!(r#"["RPUSH","large","{value}"]"#));
    }
    let got = web.key("GET", "large", "", b"");
    assert!(got.status == 413 && got.text().contains("read it in parts"), "{got:?}");
    assert_eq!(web.status("DELETE", "large", "", b""), 204);
}

#[test]
fn keys_are_any_bytes_in_any_database() {
    let mut web = Web::new();
    assert_eq!(web.status("PUT", "a%2Fb%00%FF", "", b"1"), 201);
    assert_eq!(web.status("PUT", "a/b", "", b"2"), 201);
    assert_eq!(web.runs(r#"["GET","a/b"]"#), r#"{"result":"2"}"#);
    let path = |key: &str| format!("/v1/db/0/keys?key64={key}");
    assert_eq!(web.asks("GET", &path("YS9iAP8="), "", b"").body, b"1");
    assert_eq!(web.asks("GET", &path("YS9iAP8"), "", b"").body, b"1");
    assert_eq!(web.asks("PUT", &path(""), "", b"of no name").status, 201);
    assert_eq!(web.key("GET", "", "", b"").body, b"of no name");
    assert_eq!(web.asks("DELETE", &path(""), "", b"").status, 204);
    assert_eq!(web.asks("PUT", "/v1/db/3/keys/k", "", b"three").status, 201);
    assert_eq!(web.status("GET", "k", "", b""), 404);
    assert_eq!(web.asks("GET", "/v1/db/3/keys/k", "", b"").body, b"three");
    assert_eq!(web.runs(r#"["EXISTS","k"]"#), r#"{"result":0}"#, "a request leaves no database behind");
    // Pipelined: each finds its own.
    let both = [
        request("PUT", "/v1/db/1/keys/p", "", b"one"),
        request("GET", "/v1/db/2/keys/p", "", b""),
        request("GET", "/v1/db/1/keys/p", "", b""),
        request("GET", "/get/p", "", b""),
        request("DELETE", "/v1/db/1/keys/p", "", b""),
        request("GET", "/v1/db/1/keys/p", "", b""),
    ]
    .concat();
    let got = ask(&mut web.alone, &mut web.client, &both);
    let statuses: Vec<u16> = got.iter().map(|got| got.status).collect();
    assert_eq!(statuses, [201, 404, 200, 200, 204, 404], "{got:?}");
    assert_eq!((&got[2].body[..], got[3].text()), (&b"one"[..], r#"{"result":null}"#));
}

#[test]
fn keys_are_listed() {
    let mut web = Web::new();
    for at in 0..30 {
        web.runs(&format!(r#"["SET","user:{at}","x"]"#));
    }
    web.runs(r#"["RPUSH","list","x"]"#);
    assert_eq!(web.asks("PUT", "/v1/db/0/keys/%FF", "", b"v").status, 201);
    let mut found = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let got = web.asks("GET", &format!("/v1/db/0/keys?match=user:*&limit=4&cursor={cursor}"), "", b"");
        let page: serde_json::Value = serde_json::from_str(got.text()).expect("it is JSON");
        let keys = page["keys"].as_array().expect("keys");
        found.extend(keys.iter().map(|key| key.as_str().expect("text").to_owned()));
        cursor = page["cursor"].as_str().expect("a cursor").to_owned();
        if cursor == "0" {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 30);
    let list = web.asks("GET", "/v1/db/0/keys?type=list&limit=1000", "", b"");
    assert_eq!(list.text(), r#"{"cursor":"0","keys":["list"]}"#);
    let binary = web.asks("GET", "/v1/db/0/keys?match=%FF&limit=1000", "", b"");
    assert_eq!(binary.text(), r#"{"cursor":"0","keys":[{"base64":"/w=="}]}"#);
    assert_eq!(web.asks("GET", "/v1/db/1/keys", "", b"").text(), r#"{"cursor":"0","keys":[]}"#);
}

#[test]
fn many_keys_go_in_one_request() {
    let mut web = Web::new();
    let mut posts = |path: &str, body: &str| {
        let got = web.asks("POST", &format!("/v1/db/2/{path}"), "", body.as_bytes());
        (got.status, got.text().to_owned())
    };
    assert_eq!(posts("mset", r#"{"a":"1","b":2.50,"c":{"base64":"/w=="}}"#), (204, String::new()));
    assert_eq!(
        posts("mget", r#"["a","b","none","c"]"#),
        (200, r#"["1","2.50",null,{"base64":"/w=="}]"#.into())
    );
    assert_eq!(posts("mset", r#"[[{"base64":"/w=="},"x"],["d",true]]"#).0, 204);
    assert_eq!(posts("mget", r#"[{"base64":"/w=="},"d"]"#), (200, r#"["x","true"]"#.into()));
    assert_eq!(posts("mset?nx", r#"{"a":"9","new":"9"}"#).0, 412);
    assert_eq!(posts("mget", r#"["a","new"]"#).1, r#"["1",null]"#, "all or nothing");
    assert_eq!(posts("mset?nx&ttl=50", r#"{"new":"9"}"#).0, 204);
    assert_eq!(posts("mset?xx", r#"{"none":"9"}"#).0, 412);
    for (path, body) in [
        ("mget", "{}"),
        ("mget", "[]"),
        ("mget", "[null]"),
        ("mget", r#"[{"base64":"?"}]"#),
        ("mget", r#"["a""#),
        ("mset", "[]"),
        ("mset", "{}"),
        ("mset", r#"["a","b"]"#),
        ("mset", r#"[["a"]]"#),
        ("mset", r#"{"a":null}"#),
        ("mset", r#"{"a":{"base64":"","x":""}}"#),
        ("mset", r#"{"a":"1","\u0061":"2"}"#),
        ("mset", r#"{"a":{"base64":"","base64":"eA=="}}"#),
        ("mset?ttl=0", r#"{"a":"1"}"#),
        ("mset?ttk=1", r#"{"a":"1"}"#),
    ] {
        let (status, text) = posts(path, body);
        assert!(status == 400 && text.starts_with("{\"error\""), "{path} {body}: {status} {text}");
    }
    let left = header(&web.asks("GET", "/v1/db/2/keys/new", "", b""), "Weft-TTL-Ms").map(str::to_owned);
    assert!(left.is_some(), "it was given a time");
}

#[test]
fn rights_are_those_of_the_commands() {
    let mut web = Web::new();
    web.runs(r#"["HSET","app:h","f","v"]"#);
    web.runs(r#"["ACL","SETUSER","reader","on",">secret","~app:*","+get"]"#);
    let who = "Authorization: Bearer reader.secret\r\n";
    let asks = |web: &mut Web, method: &str, key: &str| web.status(method, key, who, b"x");
    assert_eq!(web.status("PUT", "app:k", "", b"v"), 201);
    assert_eq!(asks(&mut web, "GET", "app:k"), 200);
    assert_eq!(asks(&mut web, "GET", "other"), 403);
    assert_eq!(asks(&mut web, "GET", "app:h"), 403, "HGETALL is another right");
    for method in ["PUT", "PATCH", "DELETE"] {
        assert_eq!(asks(&mut web, method, "app:k"), 403, "{method}");
    }
    assert_eq!(web.asks("GET", "/v1/db/0/keys", who, b"").status, 403);
    web.runs(r#"["ACL","SETUSER","reader","+hgetall","+append"]"#);
    assert_eq!(asks(&mut web, "GET", "app:h"), 200);
    assert_eq!(asks(&mut web, "PATCH", "app:k"), 204);
    let wrong = web.key("GET", "app:k", "Authorization: Bearer reader.wrong\r\n", b"");
    assert_eq!(wrong.status, 401);
    // What was asked of a key that was refused is not asked of the next one.
    let refused = [
        request("DELETE", "/v1/db/0/keys/app:k", &format!("{who}If-Match: \"x\"\r\n"), b""),
        request("GET", "/get/app:k", who, b""),
        request("GET", "/v1/db/0/keys/app:k", who, b""),
    ]
    .concat();
    let got = ask(&mut web.alone, &mut web.client, &refused);
    let statuses: Vec<u16> = got.iter().map(|got| got.status).collect();
    assert_eq!(statuses, [403, 200, 200], "{got:?}");
    assert_eq!(got[1].text(), r#"{"result":"vx"}"#);
}

/// A tag is compared with a guess by anybody: only who may read the key is told it, or has it compared.
#[test]
fn who_may_only_write_is_told_nothing_of_the_value() {
    let mut web = Web::new();
    web.runs(r#"["SET","pin","1234","EX","100"]"#);
    web.runs(r#"["ACL","SETUSER","writer","on",">secret","%W~*","+append","+set","+del"]"#);
    let who = "Authorization: Bearer writer.secret\r\n";
    let seen = tag(&web.key("GET", "pin", "", b""));
    for (method, status) in [("PATCH", 204), ("PUT", 204)] {
        for condition in ["If-Match", "If-None-Match"] {
            let headers = format!("{who}{condition}: {seen}\r\n");
            assert_eq!(web.status(method, "pin", &headers, b""), 403, "{method} {condition}");
        }
        let got = web.key(method, "pin", who, b"");
        assert_eq!(got.status, status, "{method}");
        assert_eq!((header(&got, "ETag"), header(&got, "Weft-TTL-Ms")), (None, None), "{method}");
        assert!(header(&web.key(method, "pin", "", b""), "ETag").is_some(), "who may read it is told");
    }
    assert_eq!(web.status("DELETE", "pin", &format!("{who}If-Match: {seen}\r\n"), b""), 403);
    assert_eq!(web.status("DELETE", "pin", &format!("{who}If-Match: *\r\n"), b""), 204);
}

#[test]
fn no_memory_is_507() {
    let mut web = Web::new();
    assert_eq!(web.status("PUT", "k", "", b"v"), 201);
    web.runs(r#"["CONFIG","SET","maxmemory","1"]"#);
    assert_eq!(web.status("PUT", "k", "", b"w"), 507);
    assert_eq!(web.status("GET", "k", "", b""), 200);
    assert_eq!(web.status("DELETE", "k", "", b""), 204);
}

#[test]
fn a_body_in_chunks_is_the_value() {
    let mut web = Web::new();
    let chunk = "0123456789abcdef".repeat(4096);
    let mut put =
        b"PUT /v1/db/0/keys/k HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    put.extend_from_slice(format!("{:x}\r\n{chunk}\r\n3\r\nend\r\n0\r\n\r\n", chunk.len()).as_bytes());
    let got = one(&mut web.alone, &mut web.client, &put);
    assert_eq!(got.status, 201);
    assert_eq!(web.key("GET", "k", "", b"").body, [chunk.as_bytes(), b"end"].concat());
}
