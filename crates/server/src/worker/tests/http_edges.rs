//! JSON's edges: a test for each sentence of docs/http.md that says what becomes of them.

use std::os::unix::net::UnixStream;

use super::Alone;
use super::http::{Got, get, one, post};
use crate::http::json::ARGUMENTS_MAX;

struct Web {
    alone: Alone,
    client: UnixStream,
}

impl Web {
    fn new() -> Self {
        let mut alone = Alone::new();
        let client = alone.connect();
        Self { alone, client }
    }
    fn asks(&mut self, path: &str, headers: &str, body: &str) -> Got {
        one(&mut self.alone, &mut self.client, &post(path, headers, body))
    }
    /// What a command in JSON is answered.
    fn says(&mut self, body: &str) -> String {
        self.asks("/", "", body).text().to_owned()
    }
    /// The same, which must be refused with these words.
    fn refuses(&mut self, body: &str, why: &str) {
        let got = self.asks("/", "", body);
        assert!(got.status == 400 && got.text().contains(why), "{body}: {} {}", got.status, got.text());
    }
}

fn result(json: &str) -> String {
    format!("{{\"result\":{json}}}")
}

#[test]
fn numbers_that_are_sent_keep_their_digits() {
    let mut web = Web::new();
    let (long, deep) = ("7".repeat(5000), format!("0.{}1", "0".repeat(5000)));
    for digits in ["1.50", "-0", "1e400", "1E+2", "0.10", "12345678901234567890123", &long, &deep] {
        assert_eq!(web.says(&format!(r#"["SET","k",{digits}]"#)), result("\"OK\""));
        assert_eq!(web.says(r#"["GET","k"]"#), result(&format!("\"{digits}\"")));
    }
    for bad in ["01", "+1", "1.", ".5", "1e", "0x1", "NaN", "Infinity", "-Infinity", "1_000"] {
        web.refuses(&format!(r#"["SET","k",{bad}]"#), "the body is not a command");
    }
}

#[test]
fn true_and_false_are_those_words() {
    let mut web = Web::new();
    assert_eq!(web.says(r#"["MSET","a",true,"b",false]"#), result("\"OK\""));
    assert_eq!(web.says(r#"["MGET","a","b"]"#), result(r#"["true","false"]"#));
    web.refuses(r#"["SET","k",True]"#, "the body is not a command");
}

#[test]
fn integers_beyond_two_to_the_53_are_numbers() {
    let mut web = Web::new();
    for digits in ["9007199254740993", "9223372036854775807", "-9223372036854775808"] {
        web.says(&format!(r#"["SET","n",{digits}]"#));
        assert_eq!(web.says(r#"["INCRBY","n",0]"#), result(digits));
        assert_eq!(
            web.says(r#"["GET","n"]"#),
            result(&format!("\"{digits}\"")),
            "read as a string it is whole"
        );
    }
}

#[test]
fn doubles_infinities_and_nan_are_text() {
    let mut web = Web::new();
    web.says(r#"["ZADD","z","inf","a","-inf","b",1.5,"c",1e100,"d"]"#);
    for (member, text) in [("a", "inf"), ("b", "-inf"), ("c", "1.5"), ("d", "1e+100")] {
        assert_eq!(web.says(&format!(r#"["ZSCORE","z","{member}"]"#)), result(&format!("\"{text}\"")));
    }
    let double = |value: &str| format!(r#"["EVAL","redis.setresp(3) return {{double={value}}}",0]"#);
    assert_eq!(web.says(&double("0/0")), result("\"nan\""));
    assert_eq!(web.says(&double("1/0")), result("\"inf\""));
    assert_eq!(web.says(&double("2.25")), result("\"2.25\""));
    assert!(web.says(r#"["ZINCRBY","z","-inf","a"]"#).contains("not a number (NaN)"));
}

#[test]
fn maps_are_flat_lists_and_booleans_numbers() {
    let mut web = Web::new();
    web.says(r#"["HSET","h","f","1","g","2"]"#);
    assert_eq!(web.says(r#"["HGETALL","h"]"#), result(r#"["f","1","g","2"]"#));
    assert_eq!(web.says(r#"["CONFIG","GET","maxmemory"]"#), result(r#"["maxmemory","0"]"#));
    assert_eq!(web.says(r#"["EVAL","redis.setresp(3) return true",0]"#), result("1"));
    assert_eq!(web.says(r#"["SISMEMBER","none","m"]"#), result("0"));
}

#[test]
fn null_arrays_and_objects_are_no_arguments() {
    let mut web = Web::new();
    web.refuses(r#"["GET",null]"#, "null is no argument: leave it out, or send an empty string");
    for value in [r#"["a"]"#, r#"{"a":1}"#, "[]", "{}"] {
        web.refuses(&format!(r#"["SET","k",{value}]"#), "send it as a string that holds its JSON");
    }
    assert_eq!(web.says(r#"["SET","k","{\"a\":[null]}"]"#), result("\"OK\""));
    assert_eq!(web.says(r#"["GET","k"]"#), result(r#""{\"a\":[null]}""#));
}

#[test]
fn what_stands_twice_in_an_object_is_refused() {
    let mut web = Web::new();
    for (path, body) in [
        ("/v1/db/0/mset", r#"{"a":"1","a":"2"}"#),
        ("/v1/db/0/mset", r#"{"a":{"base64":"eA==","base64":"eQ=="}}"#),
        ("/v1/db/0/mget", r#"[{"base64":"eA==","base64":"eQ=="}]"#),
        ("/v1/programs", r#"{"program":{"steps":[]},"program":{"steps":[]}}"#),
        ("/v1/programs", r#"{"program":{"steps":[],"steps":[]}}"#),
    ] {
        let got = web.asks(path, "", body);
        assert!(got.status == 400 && got.text().contains("stands twice"), "{body}: {}", got.text());
    }
    // As pairs it may: the last one stays.
    assert_eq!(web.asks("/v1/db/0/mset", "", r#"[["a","1"],["a","2"]]"#).status, 204);
    assert_eq!(web.says(r#"["GET","a"]"#), result("\"2\""));
}

#[test]
fn bytes_that_are_no_utf8_go_as_a_body_and_come_as_base64() {
    let mut web = Web::new();
    let head = "POST /set/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n";
    let request = [head.as_bytes(), b"\xFF\0\xC3\x28"].concat();
    assert_eq!(one(&mut web.alone, &mut web.client, &request).status, 200);
    assert_eq!(web.asks("/get/k", "Upstash-Encoding: base64\r\n", "").text(), result("\"/wDDKA==\""));
    assert_eq!(web.says(r#"["GET","k"]"#), result("\"\u{FFFD}\\u0000\u{FFFD}(\""));
    for body in [&b"[\"GET\",\"\xFF\"]"[..], b"[\"GET\",\"\xC3\"]", b"[\"GET\",\"\xED\xA0\x80\"]"] {
        let head = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
        let got = one(&mut web.alone, &mut web.client, &[head.as_bytes(), body].concat());
        assert!(got.status == 400 && got.text().contains("not UTF-8"), "{got:?}");
    }
    for half in ["\\ud800", "\\udc00", "\\ud800x", "\\ud800\\u0041"] {
        web.refuses(&format!(r#"["GET","{half}"]"#), "the body is not a command");
    }
    assert_eq!(web.says(r#"["ECHO","\ud83d\ude00"]"#), result("\"😀\""));
}

#[test]
fn a_body_that_is_cut_or_wrong_in_one_command_changes_nothing() {
    let mut web = Web::new();
    let whole = r#"[["SET","k","é\n"],["INCR","n"],["GET",1.5]]"#;
    for path in ["/pipeline", "/multi-exec"] {
        for end in (0..whole.len()).filter(|&end| whole.is_char_boundary(end)) {
            let got = web.asks(path, "", &whole[..end]);
            assert_eq!(got.status, 400, "{path} {}", &whole[..end]);
        }
        for wrong in [r#"[["SET","k","v"],["GET",null]]"#, r#"[["SET","k","v"],7]"#, r#"[["SET","k","v"]]]"#]
        {
            assert_eq!(web.asks(path, "", wrong).status, 400, "{path} {wrong}");
        }
    }
    let one = r#"["SET","k","v"]"#;
    for end in 0..one.len() {
        assert_eq!(web.asks("/", "", &one[..end]).status, 400, "{}", &one[..end]);
    }
    assert_eq!(web.says(r#"["EXISTS","k","n"]"#), result("0"));
}

#[test]
fn arguments_have_a_limit_and_depth_needs_none() {
    let mut web = Web::new();
    let of = |count: usize| format!(r#"[["EXISTS"{}],["GET","k"]]"#, r#","k""#.repeat(count - 3));
    for (count, status) in [(ARGUMENTS_MAX, 200), (ARGUMENTS_MAX + 1, 400)] {
        let request = post("/pipeline", "", &of(count));
        let mut sent = 0;
        let mut got = Vec::new();
        // A socket takes it in pieces.
        while sent < request.len() {
            let end = (sent + 100_000).min(request.len());
            got = super::http::ask(&mut web.alone, &mut web.client, &request[sent..end]);
            sent = end;
        }
        assert_eq!(got.first().map(|got| got.status), Some(status), "{count}");
    }
    for deep in ["[".repeat(60_000), "[\"GET\",".repeat(10_000), "{\"a\":".repeat(10_000)] {
        web.refuses(&deep, "the body is not a command");
    }
}

#[test]
fn a_big_array_comes_whole() {
    let mut web = Web::new();
    let items: Vec<String> = (0..20_000).map(|at| format!("\"{at}\"")).collect();
    for part in items.chunks(4000) {
        web.says(&format!(r#"["RPUSH","l",{}]"#, part.join(",")));
    }
    let got = one(&mut web.alone, &mut web.client, &get("/lrange/l/0/-1"));
    assert!(got.text() == result(&format!("[{}]", items.join(","))), "{}", got.body.len());
}

#[test]
fn control_bytes_and_quotes_are_escaped_in_answers() {
    let mut web = Web::new();
    let every: String = (0..=0x7F_u8).map(char::from).collect();
    let sent = serde_json::to_string(&["SET", "k", &every]).expect("it is JSON");
    assert_eq!(web.says(&sent), result("\"OK\""));
    let got: serde_json::Value = serde_json::from_str(&web.says(r#"["GET","k"]"#)).expect("it is JSON");
    assert_eq!(got["result"], every);
}
