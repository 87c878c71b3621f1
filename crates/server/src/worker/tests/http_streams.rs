//! Channels in JSON, and the entries of a stream as events: what is told, from where on, at whose pace.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use super::http_resources::{Web, request};
use super::received;
use crate::http::events::HEARTBEAT_MS;

impl Web {
    /// A client of a stream, and what has come first.
    fn opens(&mut self, path: &str, headers: &str) -> (UnixStream, String) {
        let mut client = self.alone.connect();
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        client.write_all(head.as_bytes()).expect("it fits");
        let text = self.hears(&mut client);
        (client, text)
    }
    fn hears(&mut self, client: &mut UnixStream) -> String {
        (0..6).for_each(|_| self.alone.tick());
        String::from_utf8(received(client)).expect("it is text")
    }
    fn adds(&mut self, key: &str, id: &str) {
        let added = self.runs(&format!(r#"["XADD","{key}","{id}","f","v"]"#));
        assert!(added.contains(id), "{added}");
    }
}

fn data(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
}

fn ids(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("id: ")).collect()
}

#[test]
fn entries_are_told_as_they_come() {
    let mut web = Web::new();
    web.adds("s", "1-1");
    let (mut new, begin) = web.opens("/v1/db/0/streams/s", "");
    assert!(
        begin.contains("Content-Type: text/event-stream") && begin.contains("event: ready\nid: 1-1\n"),
        "{begin}"
    );
    let (mut old, begin) = web.opens("/v1/db/0/streams/s?after=0", "");
    assert_eq!(data(&begin), ["{}", r#"{"id":"1-1","fields":["f","v"]}"#], "{begin}");
    let (mut none, begin) = web.opens("/v1/db/0/streams/none", "");
    assert!(begin.contains("id: 0-0\n"), "{begin}");
    for at in 2..5 {
        web.adds("s", &format!("{at}-0"));
        let event = format!("id: {at}-0\ndata: {{\"id\":\"{at}-0\",\"fields\":[\"f\",\"v\"]}}\n\n");
        for client in [&mut new, &mut old] {
            let text = web.hears(client);
            assert!(text.contains(&event), "{text}");
        }
    }
    web.adds("none", "0-1");
    assert_eq!(ids(&web.hears(&mut none)), ["0-1"]);
    // Who comes back goes on, whatever the address says.
    let (_, text) = web.opens("/v1/db/0/streams/s?after=$", "Last-Event-ID: 3-0\r\n");
    assert_eq!(ids(&text), ["3-0", "4-0"], "{text}");
    // Another database, another name.
    assert_eq!(web.asks("POST", "/v1/db/3/mset", "", b"{}").status, 400);
    let (_, text) = web.opens("/v1/db/3/streams?key64=cw==&after=0", "");
    assert_eq!(ids(&text), ["0"], "database 3 has no such stream: {text}");
    let (_, text) = web.opens("/v1/db/0/streams?key64=cw==&after=3-0", "");
    assert_eq!(ids(&text), ["3-0", "4-0"], "{text}");
}

#[test]
fn a_long_stream_comes_in_parts_at_the_readers_pace() {
    let mut web = Web::new();
    let value = "x".repeat(1000);
    for at in 0..40 {
        let adds: Vec<String> = (0..50)
            .map(|entry| format!(r#"["XADD","s","{}-1","f","{value}"]"#, at * 50 + entry + 1))
            .collect();
        web.asks("POST", "/pipeline", "", format!("[{}]", adds.join(",")).as_bytes());
    }
    let (mut slow, mut text) = web.opens("/v1/db/0/streams/s?after=0", "");
    let unread = |web: &mut Web| web.alone.worker.io.slots.iter().flatten().map(|one| one.unsent()).max();
    // He does not read: what is on its way is one part, however often it is looked.
    (0..200).for_each(|_| web.alone.tick());
    assert!(unread(&mut web).is_some_and(|unsent| unsent < 200_000), "{:?}", unread(&mut web));
    for _ in 0..500 {
        text.push_str(&web.hears(&mut slow));
        if text.contains("id: 2000-1\n") {
            break;
        }
    }
    let told: Vec<String> = ids(&text).into_iter().skip(1).map(str::to_owned).collect();
    assert_eq!(told, (1..=2000).map(|at| format!("{at}-1")).collect::<Vec<_>>());
    web.adds("s", "3000-0");
    assert!(web.hears(&mut slow).contains("id: 3000-0\n"));
}

#[test]
fn a_silent_stream_beats() {
    let mut web = Web::new();
    let (mut client, _) = web.opens("/v1/db/0/streams/s", "");
    let now_ms = web.alone.engine.clock.now_ms();
    for beat in 1..=2 {
        let now_us = web.alone.worker.clock_us();
        web.alone.worker.tick(now_ms + beat * (HEARTBEAT_MS + 2000), now_us);
        assert_eq!(received(&mut client), b"3\r\n:\n\n\r\n", "{beat}");
        assert_eq!(web.hears(&mut client), "");
    }
    web.adds("s", "1-1");
    assert!(web.hears(&mut client).contains("id: 1-1\n"));
    // What else it sends is passed over; when it goes nothing is left.
    client.write_all(&request("GET", "/get/k", "", b"")).expect("it fits");
    assert_eq!(web.hears(&mut client), "");
    drop(client);
    web.alone.ticks_until(1);
    web.adds("s", "1-2");
}

#[test]
fn what_cannot_be_read_is_refused_or_ends() {
    let mut web = Web::new();
    web.runs(r#"["SET","text","v"]"#);
    web.runs(r#"["ACL","SETUSER","app","on",">secret","~app:*","+xread","+xrevrange"]"#);
    let who = "Authorization: Bearer app.secret\r\n";
    for (path, headers, status) in [
        ("/v1/db/0/streams/text", "", 400),
        ("/v1/db/0/streams/text?after=0", "", 400),
        ("/v1/db/0/streams/s?after=x", "", 400),
        ("/v1/db/0/streams/s?after=1-2-3", "", 400),
        ("/v1/db/0/streams/s?count=1", "", 400),
        ("/v1/db/0/streams", "", 400),
        ("/v1/db/0/streams/s?key64=cw==", "", 400),
        ("/v1/db/16/streams/s", "", 404),
        ("/v1/db/0/streams/other", who, 403),
        ("/v1/db/0/streams/app:s", "Authorization: Bearer app.wrong\r\n", 401),
    ] {
        let (_, text) = web.opens(path, headers);
        assert!(
            text.starts_with(&format!("HTTP/1.1 {status}")) && text.contains("{\"error\":"),
            "{path}: {text}"
        );
    }
    assert_eq!(web.asks("POST", "/v1/db/0/streams/s", "", b"").status, 405);
    assert_eq!(web.asks("POST", "/v1/channels", "", b"").status, 405);
    let (mut client, _) = web.opens("/v1/db/0/streams/app:s", who);
    web.adds("app:s", "1-1");
    assert!(web.hears(&mut client).contains("id: 1-1\n"));
    // Rights that are taken away are gone with the next look.
    web.runs(r#"["ACL","SETUSER","app","-xread"]"#);
    web.adds("app:s", "1-2");
    let text = web.hears(&mut client);
    assert!(
        text.contains("event: error\ndata: {\"error\":\"NOPERM") && text.ends_with("0\r\n\r\n"),
        "{text}"
    );
    assert_eq!(client.read(&mut [0]).expect("it has ended"), 0);
}

#[test]
fn channels_are_told_in_json() {
    let mut web = Web::new();
    let (mut named, begin) = web.opens("/v1/channels?channel=a,b&channel=c%20d", "");
    assert!(begin.contains("event: ready\ndata: {}\n\n"), "{begin}");
    let (mut matching, _) = web.opens("/v1/channels?pattern=a*", "");
    web.asks("POST", "/publish/a,b", "", b"two\nlines, \xFF");
    let payload = r#"{"base64":"dHdvCmxpbmVzLCD/"}"#;
    assert_eq!(data(&web.hears(&mut named)), [format!(r#"{{"channel":"a,b","payload":{payload}}}"#)]);
    let text = web.hears(&mut matching);
    assert_eq!(data(&text), [format!(r#"{{"pattern":"a*","channel":"a,b","payload":{payload}}}"#)]);
    web.asks("POST", "/publish/c%20d", "", b"\"x\"\n");
    assert_eq!(data(&web.hears(&mut named)), [r#"{"channel":"c d","payload":"\"x\"\n"}"#]);
    for query in ["", "?channel=a&pattern=b", "?name=a", "?channel=%zz"] {
        let (_, text) = web.opens(&format!("/v1/channels{query}"), "");
        assert!(text.starts_with("HTTP/1.1 400"), "{query}: {text}");
    }
}

/// A token that is taken away ends what is streamed for it, and nothing else.
#[test]
fn a_stream_ends_with_its_token() {
    let mut web = Web::new();
    web.runs(r#"["ACL","SETUSER","app","on",">secret",">other","~*","&*","+@all"]"#);
    let paths = ["/v1/db/0/streams/s", "/v1/channels?channel=c", "/v1/events", "/subscribe/c", "/monitor"];
    let who = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let mut gone: Vec<_> = paths.iter().map(|path| web.opens(path, &who("app.secret")).0).collect();
    let mut stay: Vec<_> = paths.iter().map(|path| web.opens(path, &who("app.other")).0).collect();
    stay.extend(paths[..4].iter().map(|path| web.opens(path, "").0));
    web.runs(r#"["ACL","SETUSER","app","<secret"]"#);
    let now_ms = web.alone.engine.clock.now_ms();
    for second in 1..=3 {
        let now_us = web.alone.worker.clock_us();
        web.alone.worker.tick(now_ms + second * 1100, now_us);
    }
    for (client, path) in gone.iter_mut().zip(paths) {
        let text = web.hears(client);
        let ends = text.contains("event: error\ndata: {\"error\":\"WRONGPASS") && text.ends_with("0\r\n\r\n");
        assert!(ends, "{path}: {text}");
        assert_eq!(client.read(&mut [0]).expect("it has ended"), 0, "{path}");
    }
    for client in &mut stay {
        assert!(!web.hears(client).contains("event: error"));
    }
    web.adds("s", "1-1");
    assert!(web.hears(&mut stay[0]).contains("id: 1-1\n"));
    // Where the default user is given a password, who has shown none is no longer served.
    web.runs(r#"["CONFIG","SET","requirepass","main"]"#);
    for second in 4..=6 {
        let now_us = web.alone.worker.clock_us();
        web.alone.worker.tick(now_ms + second * 1100, now_us);
    }
    for (at, client) in stay.iter_mut().enumerate() {
        assert_eq!(web.hears(client).contains("event: error"), at >= paths.len(), "{at}");
    }
}
