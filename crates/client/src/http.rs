//! Owns: commands as requests of HTTP, and the replies in its answers, in the form that Upstash's REST API has: a
//! command in a path or in JSON, `{"result":…}` or a reply in RESP2. Does not own: the connection, what is pipelined.
//!
//! | a command | goes as |
//! |---|---|
//! | whose arguments but the last need no escapes | `/NAME/argument/…`, a long or binary last one as the body |
//! | that is text | `POST /`, an array of JSON |
//! | else | the path, with escapes |

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use weft_protocol::outcome::{Malformed, WireError};
use weft_protocol::reply::{Aggregate, ReplyVisitor, Text};
use weft_protocol::request::Arguments;
use weft_protocol::table::{self, acl, flag};

use crate::config::{Address, Config};

/// Bytes of a path, unless it has to be longer: half of what servers take as a line.
const PATH_BYTES_MAX: usize = 4 << 10;
/// Bytes of a last argument that stand in the path.
const WORD_BYTES_MAX: usize = 64;
/// Headers of an answer, at most.
const HEADERS_MAX: usize = 64;

/// What every request of a connection says alike: whole lines.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    own: Box<str>,
    /// Replies come in RESP2, as what their bytes are; in JSON else.
    resp2: bool,
}

impl Lines {
    pub(crate) fn new(config: &Config) -> Self {
        let host = match &config.address {
            Address::Tcp(..) => config.address.to_string(),
            Address::Unix(_) => "localhost".to_owned(),
        };
        let login = match (&config.username, &config.password) {
            (Some(user), Some(password)) => {
                format!("Authorization: Basic {}\r\n", base64(format!("{user}:{password}").as_bytes()))
            }
            (None, Some(token)) => format!("Authorization: Bearer {token}\r\n"),
            _ => String::new(),
        };
        Self { own: format!("Host: {host}\r\n{login}").into(), resp2: true }
    }
    pub(crate) fn in_json(self) -> Self {
        Self { resp2: false, ..self }
    }

    /// Appends a request with this line's beginning.
    fn request(&self, start: &[u8], body: &[u8], out: &mut Vec<u8>) {
        for part in [start, b" HTTP/1.1\r\n", self.own.as_bytes()] {
            out.extend_from_slice(part);
        }
        if self.resp2 {
            out.extend_from_slice(b"Upstash-Response-Format: resp2\r\n");
        }
        if !body.is_empty() {
            out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
    }

    /// Appends the request that a command is.
    pub(crate) fn command(&self, args: &(impl Arguments + ?Sized), out: &mut Vec<u8>) {
        let words = words(args);
        let Some((last, before)) = words.split_last() else { return };
        let aside =
            !before.is_empty() && !last.is_empty() && (last.len() > WORD_BYTES_MAX || !is_plain(last));
        let in_path = if aside { before } else { &words[..] };
        let bytes: usize = in_path.iter().map(|word| word.len() + 1).sum();
        let is_short = in_path.iter().all(|word| is_plain(word)) && bytes <= PATH_BYTES_MAX;
        let is_text = words.iter().all(|word| std::str::from_utf8(word).is_ok());
        if words[0].is_empty() || !is_short && is_text {
            let mut body = Vec::new();
            array(&words, &mut body);
            return self.request(b"POST /", &body, out);
        }
        let (body, reads): (&[u8], bool) = if aside { (last, false) } else { (&[], only_reads(&words)) };
        let mut start = if reads { b"GET".to_vec() } else { b"POST".to_vec() };
        start.push(b' ');
        for (index, word) in in_path.iter().enumerate() {
            start.push(b'/');
            let from = start.len();
            push_escaped(word, &mut start);
            if index == 0 {
                // Paths of ours, and those of event streams, are in small letters.
                start[from..].make_ascii_uppercase();
            }
        }
        self.request(&start, body, out);
    }

    /// The request for a body that commands were [put into](array).
    pub(crate) fn pipeline(&self, body: &[u8], out: &mut Vec<u8>) {
        self.request(b"POST /pipeline", body, out);
    }
}

fn words(args: &(impl Arguments + ?Sized)) -> Vec<Vec<u8>> {
    let word = |index| {
        let mut text = Vec::new();
        args.arg(index).push_text(&mut text);
        text
    };
    (0..args.len()).map(word).collect()
}

/// Whether the table says that a command only reads, so that a GET may ask for it. A script may never end: servers take
/// it by POST.
fn only_reads(words: &[Vec<u8>]) -> bool {
    let Some(id) = table::by_name(&words[0]) else { return false };
    let sub = words.get(1).and_then(|name| table::subcommand(id, name));
    let spec = sub.unwrap_or(id).spec();
    spec.flags & flag::READONLY != 0 && spec.acl & acl::SCRIPTING == 0
}

/// Whether a word stands in a path as it is.
fn is_plain(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:!$'()*,;=@".contains(byte))
}

fn push_escaped(word: &[u8], out: &mut Vec<u8>) {
    for byte in word {
        if is_plain(&[*byte]) {
            out.push(*byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
}

/// Appends a command as an array of JSON; what is no UTF-8 is replaced.
pub(crate) fn array<T: AsRef<[u8]>>(words: &[T], out: &mut Vec<u8>) {
    let words: Vec<Cow<'_, str>> = words.iter().map(|word| String::from_utf8_lossy(word.as_ref())).collect();
    serde_json::to_writer(out, &words).expect("memory takes everything, and text is JSON");
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]);
            text.push(if at > group.len() { '=' } else { digit });
        }
    }
    text
}

/// An answer that has come as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer<'a> {
    /// Its bytes on the wire.
    pub(crate) len: usize,
    pub(crate) body: Cow<'a, [u8]>,
    /// The body is a reply in RESP2; it is JSON else.
    pub(crate) is_resp2: bool,
}

/// No answer of HTTP, or one without an end.
const NO_ANSWER: WireError = WireError { kind: Malformed::UnknownProtocol, offset: 0 };
const TOO_LONG: WireError = WireError { kind: Malformed::FrameTooLong, offset: 0 };

/// The answer at the beginning of `bytes`; nothing when it is not whole.
pub(crate) fn answer(bytes: &[u8], body_bytes_max: usize) -> Result<Option<Answer<'_>>, WireError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let head = match response.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(NO_ANSWER),
    };
    let header = |name: &str| {
        response
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value)
    };
    let is_resp2 = header("content-type").is_some_and(|kind| kind.starts_with(b"application/octet-stream"));
    if header("transfer-encoding").is_some() {
        let mut body = Vec::new();
        let len = chunks(&bytes[head..], body_bytes_max, &mut body)?;
        return Ok(len.map(|len| Answer { len: head + len, body: Cow::Owned(body), is_resp2 }));
    }
    let len = header("content-length").and_then(|len| std::str::from_utf8(len).ok()?.parse::<usize>().ok());
    let len = len.ok_or(NO_ANSWER)?;
    if len > body_bytes_max {
        return Err(TOO_LONG);
    }
    let body = bytes[head..].get(..len);
    Ok(body.map(|body| Answer { len: head + len, body: Cow::Borrowed(body), is_resp2 }))
}

/// Puts chunks together; gives their length on the wire when the last one has come.
fn chunks(bytes: &[u8], body_bytes_max: usize, body: &mut Vec<u8>) -> Result<Option<usize>, WireError> {
    let mut at = 0;
    loop {
        let (line, len) = match httparse::parse_chunk_size(&bytes[at..]) {
            Ok(httparse::Status::Complete((line, len))) => (line, len),
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(NO_ANSWER),
        };
        if len > (body_bytes_max - body.len()) as u64 {
            return Err(TOO_LONG);
        }
        let (from, len) = (at + line, len as usize);
        let Some(chunk) = bytes.get(from..from + len + 2) else { return Ok(None) };
        if !chunk.ends_with(b"\r\n") {
            return Err(NO_ANSWER);
        }
        body.extend_from_slice(&chunk[..len]);
        at = from + len + 2;
        if len == 0 {
            return Ok(Some(at));
        }
    }
}

/// Hands the values of the replies in a body of JSON to a visitor, `behind` each of them calling that, and gives how
/// many replies there are. Of an aggregate with elements these alone are told.
pub(crate) fn replies<V: ReplyVisitor>(
    body: &[u8],
    visitor: &mut V,
    behind: impl FnMut(&mut V),
) -> Result<u32, WireError> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = json.deserialize_any(Replies { visitor, behind });
    read.and_then(|count| json.end().map(|()| count)).map_err(|_| NO_ANSWER)
}

/// The text of an answer that is an error by itself.
pub(crate) fn error_text(body: &[u8]) -> Vec<u8> {
    let read: Result<serde_json::Value, _> = serde_json::from_slice(body);
    let text = read.ok().and_then(|value| Some(value.get("error")?.as_str()?.as_bytes().to_vec()));
    text.unwrap_or_else(|| b"ERR an answer that is no reply".to_vec())
}

/// One reply, or an array of them.
struct Replies<'v, V, F> {
    visitor: &'v mut V,
    behind: F,
}

impl<'de, V: ReplyVisitor, F: FnMut(&mut V)> Visitor<'de> for Replies<'_, V, F> {
    type Value = u32;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("replies")
    }
    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> Result<u32, A::Error> {
        One(self.visitor).visit_map(map)?;
        (self.behind)(self.visitor);
        Ok(1)
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<u32, A::Error> {
        let mut count = 0;
        while seq.next_element_seed(One(self.visitor))?.is_some() {
            (self.behind)(self.visitor);
            count += 1;
        }
        Ok(count)
    }
}

/// `{"result":…}` or `{"error":"…"}`.
struct One<'v, V>(&'v mut V);

impl<'de, V: ReplyVisitor> DeserializeSeed<'de> for One<'_, V> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de, V: ReplyVisitor> Visitor<'de> for One<'_, V> {
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("an object with a result or an error")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut replies = 0;
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            match &*key {
                "result" => map.next_value_seed(Value(self.0))?,
                "error" => self.0.text(Text::Error, 0, map.next_value::<String>()?.as_bytes()),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            }
            replies += 1;
        }
        if replies == 1 { Ok(()) } else { Err(A::Error::custom("not one reply")) }
    }
}

/// A value within a reply.
struct Value<'v, V>(&'v mut V);

impl<'de, V: ReplyVisitor> DeserializeSeed<'de> for Value<'_, V> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de, V: ReplyVisitor> Visitor<'de> for Value<'_, V> {
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a reply")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.null(false);
        Ok(())
    }
    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0.boolean(value);
        Ok(())
    }
    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.0.int(value);
        Ok(())
    }
    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.0.int(value),
            Err(_) => self.0.double(value as f64),
        }
        Ok(())
    }
    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.0.double(value);
        Ok(())
    }
    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.text(Text::Bulk, 0, text.as_bytes());
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut is_empty = true;
        while seq.next_element_seed(Value(self.0))?.is_some() {
            is_empty = false;
        }
        if is_empty {
            self.0.open(Aggregate::Array, Some(0));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use weft_protocol::request::Texts;

    use super::*;

    fn lines() -> Lines {
        Lines::new(&Config::new("h", 1).with_auth(None, "t")).in_json()
    }
    fn sent(words: &[&[u8]]) -> String {
        let mut out = Vec::new();
        lines().command(&Texts(words), &mut out);
        String::from_utf8(out).expect("these are text")
    }

    #[test]
    fn commands_are_paths_or_json() {
        let rest = " HTTP/1.1\r\nHost: h:1\r\nAuthorization: Bearer t\r\n";
        for (words, start, body) in [
            (&[&b"get"[..], b"k:1"][..], "GET /GET/k:1", ""),
            (&[b"PING"], "POST /PING", ""),
            (&[b"FCALL_RO", b"f", b"0"], "POST /FCALL_RO/f/0", ""),
            (&[b"GET", b""], "GET /GET/", ""),
            (&[b"subscribe", b"x"], "POST /SUBSCRIBE/x", ""),
            (&[b"SET", b"k", b"v"], "POST /SET/k/v", ""),
            (&[b"SET", b"k", b"two words"], "POST /SET/k", "two words"),
            (&[b"APPEND", b"k", b"\x7f\n"], "POST /APPEND/k", "\x7f\n"),
            (&[b"SET", b"k", b"two words", b"EX", b"9"], "POST /", r#"["SET","k","two words","EX","9"]"#),
            (&[b""], "POST /", r#"[""]"#),
            (&[b"HSET", b"k", b"a/b\xff", b"v"], "POST /HSET/k/a%2Fb%FF/v", ""),
        ] {
            let length =
                if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
            assert_eq!(sent(words), format!("{start}{rest}{length}\r\n{body}"), "{words:?}");
        }
        let long = [b'x'; WORD_BYTES_MAX + 1];
        assert!(sent(&[b"SET", b"k", &long[1..]]).starts_with("POST /SET/k/x"));
        assert!(sent(&[b"SET", b"k", &long]).starts_with("POST /SET/k HTTP"));
        let key = [b'x'; PATH_BYTES_MAX - 6];
        assert!(sent(&[b"DEL", &key[1..], b"y"]).starts_with("POST /DEL/x"));
        assert!(sent(&[b"DEL", &key, b"y"]).starts_with("POST / HTTP"));
    }

    #[test]
    fn logins_are_tokens_or_names_with_passwords() {
        let lines = Lines::new(&Config::new("::1", 7).with_auth(Some("al"), "open sesame"));
        assert_eq!(&*lines.own, "Host: [::1]:7\r\nAuthorization: Basic YWw6b3BlbiBzZXNhbWU=\r\n");
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
    }

    #[test]
    fn answers_are_whole_or_not() {
        let json =
            b"HTTP/1.1 200 OK\r\ncontent-length: 13\r\nContent-Type: application/json\r\n\r\n{\"result\":17}";
        let chunked =
            b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\
                        \r\n3\r\n:17\r\n2\r\n\r\n\r\n0\r\n\r\n";
        for (bytes, body, is_resp2) in
            [(&json[..], &b"{\"result\":17}"[..], false), (chunked, b":17\r\n", true)]
        {
            for end in 0..bytes.len() {
                assert_eq!(answer(&bytes[..end], 100), Ok(None), "{end}");
            }
            let more = [bytes, b"HTTP"].concat();
            let whole = Answer { len: bytes.len(), body: Cow::Borrowed(body), is_resp2 };
            assert_eq!(answer(&more, 13), Ok(Some(whole)));
            assert_eq!(answer(&more, body.len() - 1), Err(TOO_LONG));
        }
        for wrong in
            [&b"-ERR no\r\n"[..], b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"]
        {
            assert!(answer(wrong, 100).is_err(), "{:?}", String::from_utf8_lossy(wrong));
        }
    }

    /// Says what it was told.
    #[derive(Default)]
    struct Told(Vec<String>);

    impl ReplyVisitor for Told {
        fn text(&mut self, kind: Text, _: usize, bytes: &[u8]) {
            self.0.push(format!("{kind:?} {}", String::from_utf8_lossy(bytes)));
        }
        fn int(&mut self, value: i64) {
            self.0.push(value.to_string());
        }
        fn double(&mut self, value: f64) {
            self.0.push(format!("double {value}"));
        }
        fn boolean(&mut self, value: bool) {
            self.0.push(value.to_string());
        }
        fn null(&mut self, _: bool) {
            self.0.push("null".into());
        }
        fn open(&mut self, _: Aggregate, len: Option<u32>) {
            self.0.push(format!("open {len:?}"));
        }
        fn close(&mut self) {}
        fn open_text(&mut self) {}
    }

    #[test]
    fn replies_are_told_value_by_value() {
        let told = |body: &str| {
            let mut told = Told::default();
            let count = replies(body.as_bytes(), &mut told, |told| told.0.push("|".into()));
            (count, told.0.join(" "))
        };
        assert_eq!(told(r#"{"result":"a\nb"}"#), (Ok(1), "Bulk a\nb |".into()));
        assert_eq!(told(r#"{"error":"ERR no"}"#), (Ok(1), "Error ERR no |".into()));
        let list = r#"[{"result":[1,null,["x"],[]]},{"error":"E"},{"result":-9007199254740993}]"#;
        assert_eq!(told(list), (Ok(3), "1 null Bulk x open Some(0) | Error E | -9007199254740993 |".into()));
        assert_eq!(told("[]"), (Ok(0), String::new()));
        for wrong in [
            "",
            "{}",
            "7",
            r#"{"result":1"#,
            r#"{"result":1,"error":"x"}"#,
            r#"{"result":{"a":1}}"#,
            r#"[1]"#,
        ] {
            assert_eq!(told(wrong).0, Err(NO_ANSWER), "{wrong}");
        }
    }
}
