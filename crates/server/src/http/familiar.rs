//! Owns: the headers of the request before, of a connection: those of the next one are mostly the same bytes and need
//! not be read again, since a program's requests differ in their first line and often nowhere else. Does not own:
//! reading headers for the first time, and what is refused (`super::head`).
//!
//! A head is recognized by all of its bytes, so that it means what it meant; everything that could be read in two ways
//! has been refused the first time. What is not recognized goes the full way.

use super::access;
use super::head::{Head, HeadLimits, Method, Span};

/// Bytes of headers that are kept for each connection: a program's have some hundred, a browser's are read anew.
const LINES_BYTES_MAX: usize = 512;

const VERSION: &[u8] = b" HTTP/1.1\r\n";

/// Headers that have been read.
#[derive(Debug)]
pub(crate) struct Familiar {
    /// From behind the first line to the empty line and with it.
    lines: Vec<u8>,
    /// The head that they were in, its spans counted from their first byte.
    head: Head,
    limits: HeadLimits,
}

impl Familiar {
    /// Keeps the headers of the head at the beginning of `bytes` in place of those before.
    pub(crate) fn keep(place: &mut Option<Box<Self>>, head: &Head, bytes: &[u8], limits: HeadLimits) {
        let line = bytes.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let lines = bytes.get(line..head.len).unwrap_or_default();
        if head.is_old || lines.len() > LINES_BYTES_MAX {
            return;
        }
        let of = Head { path: Span::default(), query: None, ..head.moved(-(line as i64)) };
        match place {
            Some(familiar) => {
                familiar.lines.clear();
                familiar.lines.extend_from_slice(lines);
                (familiar.head, familiar.limits) = (of, limits);
            }
            None => *place = Some(Box::new(Self { lines: lines.to_vec(), head: of, limits })),
        }
    }

    /// The head at the beginning of `bytes`, if it is a GET or a POST of a path, with these headers.
    pub(crate) fn head(&self, bytes: &[u8], limits: HeadLimits) -> Option<Head> {
        let (method, from) = match bytes {
            [b'G', b'E', b'T', b' ', b'/', ..] => (Method::Get, 4),
            [b'P', b'O', b'S', b'T', b' ', b'/', ..] => (Method::Post, 5),
            _ => return None,
        };
        let target = &bytes[from..];
        let len = plain(target);
        let mut end = len;
        while target.get(end) == Some(&b'?') {
            end += 1 + plain(&target[end + 1..]);
        }
        let line = from + end + VERSION.len();
        let lines = bytes.get(line..)?.get(..self.lines.len())?;
        let is_it = target[end..].starts_with(VERSION)
            && limits == self.limits
            && line <= limits.line_bytes
            && line + lines.len() <= limits.head_bytes
            && access::same(lines, &self.lines);
        let span = |at: usize, end: usize| Span { from: (from + at) as u32, len: (end - at) as u32 };
        is_it.then(|| Head {
            method,
            len: line + lines.len(),
            path: span(0, len),
            query: (end > len).then(|| span(len + 1, end)),
            ..self.head.moved(line as i64)
        })
    }
}

/// Which bytes stand in a target for themselves or for an escape, whoever reads it.
const PLAIN: [bool; 256] = {
    let marks = b"-._~/:%=&+,;@";
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        plain[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < marks.len() {
        plain[marks[at] as usize] = true;
        at += 1;
    }
    plain
};

/// How many such bytes there are at the beginning.
#[inline]
fn plain(target: &[u8]) -> usize {
    let mut len = 0;
    while len < target.len() && PLAIN[usize::from(target[len])] {
        len += 1;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::super::head::parse;
    use super::*;

    const LIMITS: HeadLimits = HeadLimits { line_bytes: 60, head_bytes: 500, headers: 12 };
    /// Each of those whose place is noted.
    const HEADERS: &str = "Host: localhost:6379\r\nAuthorization: Bearer t\r\nX-Request-Id: 7\r\nOrigin: http://o\r\n\
                           Sec-Fetch-Site: none\r\nIf-Match: \"a\"\r\nIf-None-Match: *\r\nIf-Range: \"b\"\r\n\
                           Range: bytes=1-2\r\nContent-Range: bytes 1-2/*\r\nLast-Event-ID: 3-4\r\n\r\n";

    fn kept(first: &str, limits: HeadLimits) -> Option<Box<Familiar>> {
        let mut place = None;
        if let Ok(Some(head)) = parse(first.as_bytes(), 0, limits) {
            Familiar::keep(&mut place, &head, first.as_bytes(), limits);
        }
        place
    }

    #[test]
    fn what_is_recognized_is_what_would_be_read() {
        let familiar = kept(&format!("PUT /a HTTP/1.1\r\n{HEADERS}"), LIMITS).expect("it is kept");
        let mut recognized = 0;
        for line in [
            "GET / HTTP/1.1",
            "GET /get/k HTTP/1.1",
            "POST /set/k/%20+v?EX=10&NX HTTP/1.1",
            "GET /? HTTP/1.1",
            "GET /a?b?c HTTP/1.1",
            "GET /a\"b HTTP/1.1",
            "GET /ü HTTP/1.1",
            "GET  /a HTTP/1.1",
            "GET /a  HTTP/1.1",
            "GET /a HTTP/1.0",
            "GET /a HTTP/1.1 ",
            "GET /a HTTP/1.1\r",
            "GET a HTTP/1.1",
            "GET http://localhost:6379/a HTTP/1.1",
            "get /a HTTP/1.1",
            "HEAD /a HTTP/1.1",
            &format!("POST /{} HTTP/1.1", "k".repeat(43)),
            &format!("POST /{} HTTP/1.1", "k".repeat(44)),
        ] {
            for headers in
                [HEADERS, &HEADERS.replace("Bearer t", "Bearer u"), &HEADERS.to_uppercase(), "\r\n"]
            {
                let text = format!("{line}\r\n{headers}body");
                for end in 0..=text.len() {
                    let bytes = &text.as_bytes()[..end];
                    if let Some(head) = familiar.head(bytes, LIMITS) {
                        assert_eq!(parse(bytes, 0, LIMITS), Ok(Some(head)), "{line}");
                        recognized += 1;
                    }
                }
            }
        }
        assert_eq!(recognized, 6 * 5, "six of them, with all of the body's beginnings");
    }

    #[test]
    fn what_is_kept_is_bounded_and_of_todays_limits() {
        let long = |len: usize| format!("GET /a HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(len - 16));
        let limits = HeadLimits { head_bytes: 1000, ..LIMITS };
        assert!(kept(&long(LINES_BYTES_MAX), limits).is_some());
        assert!(kept(&long(LINES_BYTES_MAX + 1), limits).is_none());
        let text = format!("GET /a HTTP/1.1\r\n{HEADERS}");
        assert!(kept(&text.replace("1.1", "1.0"), LIMITS).is_none());
        let familiar = kept(&text, LIMITS).expect("it is kept");
        assert!(familiar.head(text.as_bytes(), LIMITS).is_some());
        for limits in [
            HeadLimits { line_bytes: 16, ..LIMITS },
            HeadLimits { head_bytes: text.len() - 1, ..LIMITS },
            HeadLimits { headers: 2, ..LIMITS },
        ] {
            assert_eq!(familiar.head(text.as_bytes(), limits), None);
        }
    }
}
