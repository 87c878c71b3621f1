//! What happens to keys as an event stream: which events, for whom, from where on, and what they cost when nobody
//! looks.

use std::io::Write;
use std::os::unix::net::UnixStream;

use weft_engine::feed::{EVENTS_MAX, LINGER_MS};
use weft_engine::special;

use super::http_resources::Web;
use super::received;

impl Web {
    /// A client that follows, and what its stream begins with.
    fn follows(&mut self, query: &str, headers: &str) -> (UnixStream, String) {
        let mut client = self.alone.connect();
        let head = format!("GET /v1/events{query} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        client.write_all(head.as_bytes()).expect("it fits");
        (0..4).for_each(|_| self.alone.tick());
        let text = self.heard(&mut client);
        (client, text)
    }
    /// What has come on a stream.
    fn heard(&mut self, client: &mut UnixStream) -> String {
        (0..3).for_each(|_| self.alone.tick());
        String::from_utf8(received(client)).expect("it is text")
    }
    fn is_heard(&self) -> bool {
        self.alone.engine.special.has(special::EVENTS)
    }
}

/// The data of the events in a text, and the number behind the last `id`.
fn events(text: &str) -> (Vec<&str>, String) {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let id = text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap_or_default();
    (data, id.to_owned())
}

#[test]
fn what_happens_is_told() {
    let mut web = Web::new();
    let (mut all, begin) = web.follows("", "");
    assert!(begin.starts_with("HTTP/1.1 200 OK\r\n") && begin.contains("Content-Type: text/event-stream"));
    assert!(begin.contains("event: ready\ndata: {}\n\n"), "{begin}");
    web.runs(r#"["SET","user:1","v"]"#);
    web.runs(r#"["HSET","h","f","v"]"#);
    web.asks("POST", "/set/%FF", "", b"x");
    web.runs(r#"["DEL","user:1"]"#);
    web.runs(r#"["GET","none"]"#);
    let text = web.heard(&mut all);
    let (data, id) = events(&text);
    assert_eq!(
        data,
        [
            r#"{"event":"set","kind":"string","db":0,"key":"user:1"}"#,
            r#"{"event":"hset","kind":"hash","db":0,"key":"h"}"#,
            r#"{"event":"set","kind":"string","db":0,"key":{"base64":"/w=="}}"#,
            r#"{"event":"del","kind":"generic","db":0,"key":"user:1"}"#,
        ],
        "{text}"
    );
    assert!(id.split_once('-').is_some_and(|(_, number)| number.parse::<u64>().is_ok()), "{id}");
    // Some of them.
    let (mut users, _) = web.follows("?match=user:*&kinds=string,expired&db=3", "");
    web.runs(r#"["SET","user:1","v"]"#);
    web.asks("PUT", "/v1/db/3/keys/user:2", "", b"v");
    web.asks("PUT", "/v1/db/3/keys/other", "", b"v");
    web.asks("DELETE", "/v1/db/3/keys/user:2", "", b"");
    let text = web.heard(&mut users);
    assert_eq!(events(&text).0, [r#"{"event":"set","kind":"string","db":3,"key":"user:2"}"#], "{text}");
    let (mut new, _) = web.follows("?kinds=new", "");
    web.runs(r#"["SET","fresh","v"]"#);
    assert_eq!(events(&web.heard(&mut new)).0, [r#"{"event":"new","kind":"new","db":0,"key":"fresh"}"#]);
}

#[test]
fn what_is_taken_back_is_told_to_nobody() {
    let mut web = Web::new();
    let (mut all, _) = web.follows("", "");
    let failing = r#"{"program":{"steps":[["SET","k","v"],{"fail":"NO"}]}}"#;
    assert_eq!(web.asks("POST", "/v1/programs", "", failing.as_bytes()).status, 409);
    assert_eq!(web.asks("PUT", "/v1/db/0/keys/k?xx", "", b"v").status, 412);
    web.runs(r#"["SET","k","v"]"#);
    assert_eq!(events(&web.heard(&mut all)).0.len(), 1);
}

#[test]
fn who_comes_back_misses_nothing_or_is_told() {
    let mut web = Web::new();
    let (mut first, _) = web.follows("", "");
    web.runs(r#"["SET","a","1"]"#);
    let told = web.heard(&mut first);
    let (_, id) = events(&told);
    drop(first);
    web.alone.ticks_until(1);
    web.runs(r#"["SET","b","2"]"#);
    web.runs(r#"["SET","c","3"]"#);
    let (mut second, text) = web.follows("", &format!("Last-Event-ID: {id}\r\n"));
    assert!(text.contains("event: ready\n"), "{text}");
    let (data, last) = events(&text);
    assert!(
        data.len() == 3 && data[1].contains(r#""key":"b""#) && data[2].contains(r#""key":"c""#),
        "{text}"
    );
    assert_ne!(last, id);
    web.runs(r#"["SET","d","4"]"#);
    assert!(web.heard(&mut second).contains(r#""key":"d""#));
    for strange in
        ["1-1", "nonsense", "", &format!("{}0", id), "-", "18446744073709551615-18446744073709551615"]
    {
        let (_, text) = web.follows("", &format!("Last-Event-ID: {strange}\r\n"));
        assert!(text.contains("event: reset\n"), "{strange}: {text}");
    }
    // More has happened than is kept.
    for at in 0..EVENTS_MAX / 64 + 1 {
        let sets: Vec<String> = (0..64).map(|key| format!(r#"["SET","k{at}:{key}","v"]"#)).collect();
        web.asks("POST", "/pipeline", "", format!("[{}]", sets.join(",")).as_bytes());
    }
    let (_, text) = web.follows("", &format!("Last-Event-ID: {id}\r\n"));
    assert!(text.contains("event: reset\n") && !text.contains("\"key\""), "{text}");
}

#[test]
fn nothing_is_told_where_nobody_follows() {
    let mut web = Web::new();
    web.runs(r#"["SET","a","1"]"#);
    assert!(!web.is_heard());
    let (first, text) = web.follows("", "");
    let (second, _) = web.follows("", "");
    assert!(web.is_heard());
    web.runs(r#"["SET","a","2"]"#);
    drop(first);
    web.alone.ticks_until(2);
    let engine = web.alone.engine;
    engine.look_at_feed(engine.clock.now_ms() + 10 * LINGER_MS);
    assert!(web.is_heard(), "one is still there");
    drop(second);
    web.alone.ticks_until(1);
    engine.look_at_feed(engine.clock.now_ms() + LINGER_MS / 2);
    assert!(web.is_heard(), "they may come back");
    engine.look_at_feed(engine.clock.now_ms() + 2 * LINGER_MS);
    assert!(!web.is_heard());
    // What happened meanwhile was not counted.
    let epoch = engine.feed.epoch();
    let (_, text_again) = web.follows("", &format!("Last-Event-ID: {epoch}-0\r\n"));
    assert!(text.contains("event: ready\n") && text_again.contains("event: reset\n"), "{text_again}");
}

#[test]
fn events_are_for_who_may_read_the_key() {
    let mut web = Web::new();
    web.runs(r#"["ACL","SETUSER","app","on",">secret","~app:*","+scan"]"#);
    web.runs(r#"["ACL","SETUSER","none","on",">secret","~*","+get"]"#);
    let who = |name: &str| format!("Authorization: Bearer {name}.secret\r\n");
    let (mut app, _) = web.follows("", &who("app"));
    let (_, refused) = web.follows("", &who("none"));
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("NOPERM"), "{refused}");
    let (_, wrong) = web.follows("", "Authorization: Bearer app.wrong\r\n");
    assert!(wrong.starts_with("HTTP/1.1 401"), "{wrong}");
    web.runs(r#"["SET","app:1","v"]"#);
    web.runs(r#"["SET","other","v"]"#);
    let text = web.heard(&mut app);
    assert!(text.contains("app:1") && !text.contains("other"), "{text}");
    // Rights that are taken away are gone with the next event.
    web.runs(r#"["ACL","SETUSER","app","resetkeys","~else:*"]"#);
    web.runs(r#"["SET","app:2","v"]"#);
    web.runs(r#"["SET","else:2","v"]"#);
    let text = web.heard(&mut app);
    assert!(!text.contains("app:2") && text.contains("else:2"), "{text}");
}

#[test]
fn a_slow_reader_is_cut_and_nobody_else() {
    let mut web = Web::new();
    web.runs(r#"["CONFIG","SET","client-output-buffer-limit","pubsub 1mb 0 0"]"#);
    let (mut quick, _) = web.follows("?kinds=string", "");
    let (slow, _) = web.follows("?kinds=string", "");
    let clients = web.alone.clients();
    let value = "v".repeat(40);
    for at in 0..200 {
        let key = "k".repeat(300);
        let sets: Vec<String> = (0..64).map(|n| format!(r#"["SET","{key}{at}:{n}","{value}"]"#)).collect();
        web.asks("POST", "/pipeline", "", format!("[{}]", sets.join(",")).as_bytes());
        web.heard(&mut quick);
        if web.alone.clients() < clients {
            break;
        }
    }
    assert_eq!(web.alone.clients(), clients - 1, "the slow one is gone");
    web.runs(r#"["SET","last","v"]"#);
    assert!(web.heard(&mut quick).contains("\"last\""));
    drop(slow);
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let mut web = Web::new();
    for (query, status) in
        [("?kinds=nothing", 400), ("?db=16", 400), ("?db=x", 400), ("?match=%zz", 400), ("?x=1", 400)]
    {
        let (_, text) = web.follows(query, "");
        assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{query}: {text}");
    }
    assert_eq!(web.asks("POST", "/v1/events", "", b"").status, 405);
    assert!(!web.is_heard());
}
