//! The console's files and its stream of figures: for whom, what they begin with, what comes then, when they end.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use super::http_resources::{Web, header};
use super::received;

impl Web {
    fn watches(&mut self, headers: &str) -> (UnixStream, String) {
        self.follows_at("/v1/console/stream", headers)
    }
    fn follows_at(&mut self, path: &str, headers: &str) -> (UnixStream, String) {
        let mut client = self.alone.connect();
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        client.write_all(head.as_bytes()).expect("it fits");
        (0..4).for_each(|_| self.alone.tick());
        let text = self.catches(&mut client);
        (client, text)
    }
    /// What has come on a stream.
    fn catches(&mut self, client: &mut UnixStream) -> String {
        (0..3).for_each(|_| self.alone.tick());
        String::from_utf8(received(client)).expect("it is text")
    }
    /// So many seconds pass.
    fn passes(&self, from_s: u64, seconds: u64) {
        (from_s..from_s + seconds).for_each(|second| self.alone.engine.sample(second * 1000));
    }
}

#[test]
fn files_are_for_everybody_and_may_do_little() {
    let mut web = Web::new();
    for (path, kind) in [
        ("/console", "text/html; charset=utf-8"),
        ("/console/", "text/html; charset=utf-8"),
        ("/console/app.js", "text/javascript; charset=utf-8"),
        ("/console/app.css", "text/css; charset=utf-8"),
    ] {
        let got = web.asks("GET", path, "", b"");
        assert_eq!((got.status, header(&got, "Content-Type")), (200, Some(kind)), "{path}");
        let policy = header(&got, "Content-Security-Policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }
    assert_eq!(web.asks("GET", "/console/app.js?x", "", b"").status, 200);
    assert_eq!(web.asks("GET", "/console/other", "", b"").status, 404);
    assert_eq!(web.asks("POST", "/console", "", b"").status, 405);
    web.runs(r#"["CONFIG","SET","requirepass","secret"]"#);
    assert_eq!(web.asks("GET", "/console/app.js", "", b"").status, 200);
    assert_eq!(web.asks("GET", "/v1/console/stream", "", b"").status, 401);
}

#[test]
fn a_name_that_others_can_point_here_gets_the_files_and_nothing_else() {
    let mut alone = super::Alone::new();
    let mut client = alone.connect();
    for (path, status) in [("/console", "200"), ("/console/app.js", "200"), ("/get/k", "403")] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: weft.example\r\n\r\n");
        client.write_all(request.as_bytes()).expect("it fits");
        (0..4).for_each(|_| alone.tick());
        let got = received(&mut client);
        assert_eq!(std::str::from_utf8(&got[9..12]), Ok(status), "{path}");
    }
}

#[test]
fn each_second_is_told_behind_those_that_are_kept() {
    let mut web = Web::new();
    web.passes(1000, 3);
    web.runs(r#"["SET","k","v"]"#);
    web.passes(1003, 1);
    let (mut client, begin) = web.watches("");
    assert!(begin.contains("event: begin\ndata: {\"names\":[\"time_s\",\"up_s\",\"commands\","), "{begin}");
    assert!(begin.contains("\"rows\":[[1001,") && begin.contains("],[1003,"), "{begin}");
    web.passes(1004, 1);
    let row = web.catches(&mut client);
    assert!(row.contains("data: [1004,") && !row.contains("[1003,"), "{row}");
    // A second one is told the same rows from then on, and nobody any of them twice.
    let (mut other, begin) = web.watches("");
    assert!(begin.contains(",[1004,"), "{begin}");
    web.passes(1005, 1);
    for client in [&mut client, &mut other] {
        let row = web.catches(client);
        assert_eq!(row.matches("data: [").count(), 1, "{row}");
        assert!(row.contains("data: [1005,"), "{row}");
    }
    drop(other);
    (0..4).for_each(|_| web.alone.tick());
    web.passes(1006, 1);
    assert!(web.catches(&mut client).contains("data: [1006,"));
    assert_eq!(web.asks("GET", "/v1/console/stream?x=1", "", b"").status, 400);
}

#[test]
fn who_may_not_call_info_is_told_nothing_and_no_more() {
    let mut web = Web::new();
    web.runs(r#"["ACL","SETUSER","reader","on",">one","~*","+@read"]"#);
    web.runs(r#"["ACL","SETUSER","watcher","on",">two","+info"]"#);
    let (_, refused) = web.watches("Authorization: Bearer reader.one\r\n");
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    let (mut client, begin) = web.watches("Authorization: Bearer watcher.two\r\n");
    assert!(begin.contains("event: begin\n"), "{begin}");
    web.passes(1000, 2);
    assert!(web.catches(&mut client).contains("data: [1001,"));
    web.runs(r#"["ACL","SETUSER","watcher","-info"]"#);
    web.passes(1002, 1);
    (0..4).for_each(|_| web.alone.tick());
    client.set_nonblocking(false).expect("a socket");
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).expect("its end");
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
}

#[test]
fn hot_keys_are_sampled_while_somebody_looks_and_told_to_whom_may_read_them() {
    let mut web = Web::new();
    web.runs(r#"["ACL","SETUSER","all","on",">one","~*","+@all"]"#);
    web.runs(r#"["ACL","SETUSER","some","on",">two","~open:*","+info"]"#);
    web.runs(r#"["ACL","SETUSER","none","on",">three","~*","+@read"]"#);
    let is_sampled = |web: &Web| web.alone.engine.special.has(weft_engine::special::SAMPLED);
    assert!(!is_sampled(&web));
    let (_, refused) = web.follows_at("/v1/console/hot", "Authorization: Bearer none.three\r\n");
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    assert!(!is_sampled(&web), "who is refused does not look");
    let (mut all, begin) = web.follows_at("/v1/console/hot", "Authorization: Bearer all.one\r\n");
    assert!(begin.contains("event: begin\ndata: {}\n\n"), "{begin}");
    let (mut some, _) = web.follows_at("/v1/console/hot", "Authorization: Bearer some.two\r\n");
    assert!(is_sampled(&web));
    web.passes(1000, 1);
    web.catches(&mut all);
    web.catches(&mut some);
    for _ in 0..20 {
        web.runs(r#"["GET","open:door"]"#);
        web.runs(r#"["MGET","shut:door","shut:door"]"#);
    }
    web.runs(r#"["GET","once"]"#);
    web.passes(1001, 1);
    let told = web.catches(&mut all);
    let line = told.lines().find_map(|line| line.strip_prefix("data: ")).expect("an event");
    let found: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let names = |found: &serde_json::Value| -> Vec<String> {
        found["keys"].as_array().expect("a list").iter().map(|key| key["key"].to_string()).collect()
    };
    assert_eq!(names(&found), [r#""open:door""#, r#""shut:door""#], "{line}");
    assert_eq!(found["keys"][0]["base64"], "b3Blbjpkb29y");
    assert!(found["requests_per_s"].as_u64().is_some_and(|requests| requests > 0), "{line}");
    let told = web.catches(&mut some);
    assert!(told.contains("open:door") && !told.contains("shut:door"), "{told}");
    // A second later the same keys stand there still, and when nobody looks any more nothing is kept.
    web.passes(1002, 1);
    assert!(web.catches(&mut all).contains("shut:door"));
    drop((all, some));
    (0..4).for_each(|_| web.alone.tick());
    assert!(!is_sampled(&web));
    web.runs(r#"["GET","open:door"]"#);
    let (mut all, _) = web.follows_at("/v1/console/hot", "Authorization: Bearer all.one\r\n");
    web.passes(1003, 1);
    assert!(web.catches(&mut all).contains("\"keys\":[]"));
}

#[test]
fn what_a_user_may_is_told_to_nobody_but_him() {
    let mut web = Web::new();
    let commands = |web: &mut Web, headers: &str| {
        let got = web.asks("GET", "/v1/console/rights", headers, b"");
        let said: serde_json::Value = serde_json::from_slice(&got.body).expect("JSON");
        let commands = said["commands"]
            .as_array()
            .map(|all| all.iter().map(|name| name.as_str().expect("a name").to_owned()).collect::<Vec<_>>());
        (got.status, said["user"].as_str().unwrap_or_default().to_owned(), commands.unwrap_or_default())
    };
    let (status, user, all) = commands(&mut web, "");
    assert_eq!((status, &*user), (200, "default"));
    assert!(
        ["get", "client|kill", "program|run", "flushall"]
            .iter()
            .all(|name| all.iter().any(|one| one == name))
    );
    web.runs(
        r#"["ACL","SETUSER","ann","on",">secret","%R~a:*","+@read","+program|run|sell","(+unlink ~b:*)","-get"]"#,
    );
    web.runs(r#"["CONFIG","SET","requirepass","other"]"#);
    assert_eq!(commands(&mut web, "").0, 401);
    let ann = "Authorization: Basic YW5uOnNlY3JldA==\r\n";
    let (status, user, hers) = commands(&mut web, ann);
    assert_eq!((status, &*user), (200, "ann"));
    for (name, may) in
        [("strlen", true), ("program|run", true), ("unlink", true), ("get", false), ("set", false)]
    {
        assert_eq!(hers.iter().any(|one| one == name), may, "{name}");
    }
    assert_eq!(web.asks("POST", "/v1/console/rights", ann, b"").status, 405);
}
