//! Owns: what an answer looks like on the wire: its head, its date, and the answers to requests that are refused before
//! anybody asks what they want. Does not own: which answer a request gets (`super::routes`), when it is written
//! (`super::ledger`), compression (`super::gzip`).

use std::borrow::Cow;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weft_engine::calendar;

use crate::limits::ZIPPED_PER_TICK_BYTES_MAX;
use crate::log::{self, Level};

pub(crate) const JSON: &str = "application/json";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const BYTES: &str = "application/octet-stream";
pub(crate) const EVENTS: &str = "text/event-stream";

/// A request that cannot be read, or not in one way only: it is answered, and the connection ends, since nobody knows
/// where the next request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) text: &'static str,
}

macro_rules! refusals {
    ($($name:ident = $status:literal, $text:literal;)*) => {
        impl Refusal { $(pub(crate) const $name: Self = Self { status: $status, text: $text };)* }
    };
}

refusals! {
    MALFORMED = 400, "the request is not well-formed HTTP/1.1";
    LINE_END = 400, "each line of a request's head ends with CR and LF";
    TARGET = 400, "the request's target must be a path that begins with /, or an http:// address with one";
    TARGET_HOST = 400, "the request's target names another host than its Host header";
    NO_HOST = 400, "an HTTP/1.1 request needs a Host header";
    HOST = 400, "there must be one Host header, with a name or an address and perhaps a port";
    TWICE = 400, "Authorization, Origin, Range and conditions may each stand there once";
    LENGTH = 400, "Content-Length must be one number of at most 18 digits";
    TWO_LENGTHS = 400, "a request's length may be said once: one Content-Length, or Transfer-Encoding: chunked";
    OLD_CHUNKED = 400, "HTTP/1.0 has no Transfer-Encoding";
    CHUNK = 400, "a chunk of the body is not well-formed";
    CHUNKS = 400, "the lines around the chunks of the body are too long: send larger chunks";
    HEAD_TIME = 408, "the request's head did not come in its time (http-head-timeout)";
    BODY_TIME = 408, "the request's body did not come in its time (http-body-timeout)";
    BODY = 413, "the body is larger than http-body-bytes allows";
    UNAUTHENTICATED_BODY = 413, "without credentials a request may have a body of 16384 bytes";
    LINE = 414, "the request's line is longer than http-line-bytes allows: send the value as the body";
    CONTENT_CODING = 415, "bodies are taken as they are: send it without Content-Encoding";
    EXPECT = 417, "of what a request can expect only 100-continue is known";
    HEAD = 431, "the request's head is larger than http-head-bytes allows";
    HEADERS = 431, "the request has more headers than http-headers allows";
    METHOD = 501, "the methods are GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS";
    CODING = 501, "of transfer codings only chunked is known, and once";
    VERSION = 505, "the versions are HTTP/1.0 and HTTP/1.1";
}

/// The words of a status.
pub(crate) const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "Answer",
    }
}

/// An answer that no command writes.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    /// Whole header lines.
    pub(crate) headers: Cow<'static, str>,
    pub(crate) body: Cow<'static, [u8]>,
}

impl Answer {
    pub(crate) fn new(
        status: u16,
        content_type: &'static str,
        body: impl Into<Cow<'static, [u8]>>,
    ) -> Box<Self> {
        Box::new(Self { status, content_type, headers: Cow::Borrowed(""), body: body.into() })
    }
    /// `{"error":"…"}`.
    pub(crate) fn error(status: u16, text: &str) -> Box<Self> {
        let text = serde_json::to_string(text).unwrap_or_default();
        Self::new(status, JSON, format!("{{\"error\":{text}}}").into_bytes())
    }
    pub(crate) fn with(mut self: Box<Self>, headers: impl Into<Cow<'static, str>>) -> Box<Self> {
        self.headers = headers.into();
        self
    }
}

impl From<Refusal> for Box<Answer> {
    fn from(refusal: Refusal) -> Self {
        Answer::error(refusal.status, &format!("ERR {}", refusal.text))
    }
}

/// What of a request its answer depends on, besides what it asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub(crate) keeps_alive: bool,
    /// HTTP/1.0: it has no chunks, and keeps a connection only if it says so.
    pub(crate) is_old: bool,
    /// HEAD: the body is not sent.
    pub(crate) head_only: bool,
    pub(crate) gzip: bool,
    /// The reply is RESP2, not JSON.
    pub(crate) resp2: bool,
    pub(crate) extra: Option<Box<Extra>>,
}

/// What few requests have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// The origin that CORS allows.
    pub(crate) origin: Option<Box<str>>,
    pub(crate) request_id: Option<Box<str>>,
    /// Who asks for what, where the log is to tell of it.
    pub(crate) logged: Option<Box<str>>,
}

/// A number for a request that has brought none: the process's and its own.
pub(crate) fn request_id() -> Box<str> {
    static PROCESS: OnceLock<u32> = OnceLock::new();
    static REQUESTS: AtomicU64 = AtomicU64::new(1);
    let process = PROCESS.get_or_init(|| RandomState::new().hash_one(()) as u32);
    format!("{process:08x}-{}", REQUESTS.fetch_add(1, Relaxed)).into()
}

impl Extra {
    /// Of a request from there that cannot be read.
    #[cold]
    pub(crate) fn of_unread(peer: &impl Display) -> Self {
        Self { origin: None, request_id: Some(request_id()), logged: Some(format!("{peer} - -").into()) }
    }
    /// Tells the log of an answer; of those that went well only where it tells everything.
    fn log(&self, status: u16) {
        if let Some(logged) = &self.logged {
            let level = if status < 400 { Level::Debug } else { Level::Verbose };
            let id = self.request_id.as_deref().unwrap_or("-");
            log::line(level, format_args!("HTTP {logged} {status} request-id={id}"));
        }
    }
}

/// How the end of an answer's body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Bytes(usize),
    Chunks,
    /// The end of the connection.
    Connection,
}

/// Writes heads: what of them is the same for a second stands ready.
pub(crate) struct Pen {
    second: u64,
    date: String,
    /// Of the commonest answer, all that comes before its length.
    ready: Vec<u8>,
    head: Vec<u8>,
    /// Bytes that may be compressed in this tick.
    may_compress: usize,
}

impl Pen {
    pub(crate) fn new() -> Self {
        let may_compress = ZIPPED_PER_TICK_BYTES_MAX;
        Self { second: u64::MAX, date: String::new(), ready: Vec::new(), head: Vec::new(), may_compress }
    }
    /// Whether so many bytes may still be compressed in this tick: others wait for it.
    pub(super) fn may_compress(&mut self, bytes: usize) -> bool {
        let left = self.may_compress.checked_sub(bytes);
        self.may_compress = left.unwrap_or(self.may_compress);
        left.is_some()
    }
    /// A tick begins, at this time.
    pub(crate) fn set_time(&mut self, now_ms: u64) {
        self.may_compress = ZIPPED_PER_TICK_BYTES_MAX;
        if now_ms / 1000 == self.second {
            return;
        }
        self.second = now_ms / 1000;
        self.date = date(self.second);
        self.ready.clear();
        push_status(&mut self.ready, 200, JSON, &self.date);
        self.ready.extend_from_slice(b"Content-Length: ");
    }
    /// A head. It is to be used before the next one is asked for.
    pub(crate) fn head(
        &mut self,
        status: u16,
        content_type: &str,
        extent: Extent,
        about: &About,
    ) -> &mut Vec<u8> {
        let head = &mut self.head;
        head.clear();
        match extent {
            Extent::Bytes(len) if status == 200 && content_type == JSON => {
                head.extend_from_slice(&self.ready);
                push_number(head, len);
            }
            extent => {
                push_status(head, status, content_type, &self.date);
                match extent {
                    Extent::Bytes(_) if status == 204 || status == 304 => {}
                    Extent::Bytes(len) => {
                        head.extend_from_slice(b"Content-Length: ");
                        push_number(head, len);
                    }
                    Extent::Chunks => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
                    Extent::Connection => {}
                }
            }
        }
        if !about.keeps_alive || extent == Extent::Connection {
            head.extend_from_slice(b"Connection: close\r\n");
        } else if about.is_old {
            head.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        if let Some(extra) = &about.extra {
            push_extra(head, extra);
            extra.log(status);
        }
        head
    }
}

fn push_status(head: &mut Vec<u8>, status: u16, content_type: &str, date: &str) {
    head.extend_from_slice(b"HTTP/1.1 ");
    head.extend_from_slice(status.to_string().as_bytes());
    for part in [" ", reason(status), "\r\nDate: ", date, "\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
    if status != 204 && status != 304 {
        for part in ["Content-Type: ", content_type, "\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
    }
    if status == 503 {
        // What passes by itself: loading, a script that takes its time, writes that cannot be kept.
        head.extend_from_slice(b"Retry-After: 1\r\n");
    }
    // What is stored is nobody's to keep, and no page, whatever it looks like.
    head.extend_from_slice(b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
}

fn push_number(head: &mut Vec<u8>, number: usize) {
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    head.extend_from_slice(&digits[at..]);
    head.extend_from_slice(b"\r\n");
}

#[cold]
fn push_extra(head: &mut Vec<u8>, extra: &Extra) {
    let mut line = |name: &str, value: &str| {
        for part in [name, ": ", value, "\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
    };
    if let Some(origin) = &extra.origin {
        line("Access-Control-Allow-Origin", origin);
        line("Access-Control-Expose-Headers", "ETag, Content-Range, Weft-TTL-Ms, Weft-Type, X-Request-Id");
        line("Vary", "Origin");
    }
    if let Some(id) = &extra.request_id {
        line("X-Request-Id", id);
    }
}

/// An answer as it is sent, with which the connection ends.
pub(crate) fn last(answer: &Answer, now_ms: u64) -> Vec<u8> {
    let mut pen = Pen::new();
    pen.set_time(now_ms);
    let extent = Extent::Bytes(answer.body.len());
    let head = pen.head(answer.status, answer.content_type, extent, &About::default());
    [&head[..], b"\r\n", &answer.body].concat()
}

pub(crate) const GZIPPED: &[u8] = b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n";

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(second: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let (days, in_day) = (second / 86_400, second % 86_400);
    let (year, month, day) = calendar::date(days as i64);
    format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        calendar::MONTHS[month as usize - 1],
        in_day / 3600,
        in_day / 60 % 60,
        in_day % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (second, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (1_767_225_599, "Wed, 31 Dec 2025 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(date(second), text);
        }
    }
}
