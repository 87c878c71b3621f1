//! Owns: the head of a request: its line and its headers, read by `httparse`, and everything about them that two
//! programs could read in two ways, which is refused. Does not own: the body's bytes (`super::body`), what is asked for
//! (`super::routes`), who asks (`super::access`).
//!
//! Nothing here copies: what is needed later is a [`Span`] of the bytes, from the request's first.

use std::mem::MaybeUninit;

use super::access;
use super::answer::Refusal;

/// Headers of one request that are looked at, at most; the setting can be lower.
pub(crate) const HEADERS_MAX: usize = 128;
/// Digits of Content-Length: any number of them fits into 64 bits.
const LENGTH_DIGITS_MAX: usize = 18;

/// A part of a request's bytes, from its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) from: u32,
    pub(crate) len: u32,
}

impl Span {
    /// The place of `part` within `whole`.
    pub(crate) fn within(whole: &[u8], part: &[u8]) -> Self {
        let from = part.as_ptr().addr() - whole.as_ptr().addr();
        Self { from: from as u32, len: part.len() as u32 }
    }
    pub(crate) fn of<'b>(&self, request: &'b [u8]) -> &'b [u8] {
        request.get(self.from as usize..).and_then(|rest| rest.get(..self.len as usize)).unwrap_or_default()
    }
}

/// What a request wants to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl Method {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "PATCH" => Self::Patch,
            "DELETE" => Self::Delete,
            "OPTIONS" => Self::Options,
            _ => return None,
        })
    }
    /// Whether it is one of those that only look, by the meaning that HTTP gives them.
    pub(crate) const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options)
    }
}

/// Whether bytes are the beginning of a request, as far as a few of them tell.
pub(crate) fn begins_with_method(bytes: &[u8]) -> bool {
    let blank = bytes.iter().position(|&byte| byte == b' ');
    blank.is_some_and(|blank| {
        let name = std::str::from_utf8(&bytes[..blank]).unwrap_or_default();
        Method::named(name).is_some() && bytes.get(blank + 1) == Some(&b'/')
    })
}

/// How the end of a request's body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is none.
    None,
    /// By its length.
    Length(u64),
    /// In chunks.
    Chunked,
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) method: Method,
    /// HTTP/1.0, or else HTTP/1.1.
    pub(crate) is_old: bool,
    /// Bytes of the head, the empty line included.
    pub(crate) len: usize,
    /// The target's path, and what stands behind its question mark.
    pub(crate) path: Span,
    pub(crate) query: Option<Span>,
    pub(crate) framing: Framing,
    /// The connection goes on behind the answer.
    pub(crate) keeps_alive: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) expects: bool,
    pub(crate) host: Option<Span>,
    /// Nobody can point the host elsewhere.
    pub(crate) is_local: bool,
    pub(crate) authorization: Option<Span>,
    pub(crate) origin: Option<Span>,
    /// `Sec-Fetch-Site`, and whether `Sec-Fetch-Mode` is `navigate`.
    pub(crate) site: Option<Span>,
    pub(crate) navigates: bool,
    pub(crate) request_id: Option<Span>,
    /// `If-Match`, `If-None-Match`, `If-Range`: what a resource must be like.
    pub(crate) if_match: Option<Span>,
    pub(crate) if_none_match: Option<Span>,
    pub(crate) if_range: Option<Span>,
    /// `Range`: which part of it is wanted; `Content-Range`: which part of it the body is.
    pub(crate) range: Option<Span>,
    pub(crate) content_range: Option<Span>,
    /// `Last-Event-ID`: the last event that the client has seen.
    pub(crate) last_event: Option<Span>,
    /// `Access-Control-Request-Method` is there: it asks whether it may ask.
    pub(crate) is_preflight: bool,
    /// `Upstash-Encoding: base64`.
    pub(crate) base64: bool,
    /// `Upstash-Response-Format: resp2`.
    pub(crate) resp2: bool,
    /// The client takes gzip.
    pub(crate) gzip: bool,
    /// It is a browser's page that is wanted.
    pub(crate) html: bool,
    /// Of metrics it is OpenMetrics that is wanted.
    pub(crate) openmetrics: bool,
}

impl Head {
    /// The same head so many bytes further on.
    pub(crate) fn moved(self, by: i64) -> Self {
        let span = |span: Option<Span>| {
            span.map(|span| Span { from: (i64::from(span.from) + by) as u32, len: span.len })
        };
        Self {
            host: span(self.host),
            authorization: span(self.authorization),
            origin: span(self.origin),
            site: span(self.site),
            request_id: span(self.request_id),
            if_match: span(self.if_match),
            if_none_match: span(self.if_none_match),
            if_range: span(self.if_range),
            range: span(self.range),
            content_range: span(self.content_range),
            last_event: span(self.last_event),
            ..self
        }
    }
}

/// What of a head is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadLimits {
    pub(crate) line_bytes: usize,
    pub(crate) head_bytes: usize,
    pub(crate) headers: usize,
}

/// The head at the beginning of `bytes`, of which the first `seen` were there when it was not whole. Nothing when it is
/// not whole yet.
pub(crate) fn parse(bytes: &[u8], seen: usize, limits: HeadLimits) -> Result<Option<Head>, Refusal> {
    if seen > 0 && !has_end(&bytes[seen.saturating_sub(3)..]) {
        return within_limits(bytes, limits).map(|()| None);
    }
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let room = &mut headers[..limits.headers.min(HEADERS_MAX)];
    match request.parse_with_uninit_headers(bytes, room) {
        Ok(httparse::Status::Partial) => within_limits(bytes, limits).map(|()| None),
        Ok(httparse::Status::Complete(len)) => {
            within_limits(&bytes[..len], limits)?;
            let line_ends = |wanted: u8| bytes[..len].iter().filter(|&&byte| byte == wanted).count();
            // The parser takes a bare LF for a line's end, and lets no CR stand elsewhere.
            if line_ends(b'\n') != line_ends(b'\r') {
                return Err(Refusal::LINE_END);
            }
            read(bytes, len, &request).map(Some)
        }
        Err(error) => {
            within_limits(bytes, limits)?;
            Err(match error {
                httparse::Error::TooManyHeaders => Refusal::HEADERS,
                httparse::Error::Version => Refusal::VERSION,
                _ => Refusal::MALFORMED,
            })
        }
    }
}

/// Whether an empty line, of any line ends, may stand there.
fn has_end(bytes: &[u8]) -> bool {
    let ends = bytes.iter().enumerate().filter(|&(_, &byte)| byte == b'\n');
    ends.into_iter().any(|(at, _)| bytes[at + 1..].starts_with(b"\r\n") || bytes.get(at + 1) == Some(&b'\n'))
}

fn within_limits(bytes: &[u8], limits: HeadLimits) -> Result<(), Refusal> {
    let line = bytes.iter().take(limits.line_bytes).position(|&byte| byte == b'\n');
    if line.is_none() && bytes.len() >= limits.line_bytes {
        return Err(Refusal::LINE);
    }
    if bytes.len() > limits.head_bytes { Err(Refusal::HEAD) } else { Ok(()) }
}

/// What has been seen of headers that may stand there once only.
#[derive(Default)]
struct Once {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

fn read(bytes: &[u8], len: usize, request: &httparse::Request<'_, '_>) -> Result<Head, Refusal> {
    let method = Method::named(request.method.unwrap_or_default()).ok_or(Refusal::METHOD)?;
    let target = request.path.unwrap_or_default().as_bytes();
    let is_old = request.version == Some(0);
    let mut head = Head {
        method,
        is_old,
        len,
        path: Span::default(),
        query: None,
        framing: Framing::None,
        keeps_alive: false,
        expects: false,
        host: None,
        is_local: true,
        authorization: None,
        origin: None,
        site: None,
        navigates: false,
        request_id: None,
        if_match: None,
        if_none_match: None,
        if_range: None,
        range: None,
        content_range: None,
        last_event: None,
        is_preflight: false,
        base64: false,
        resp2: false,
        gzip: false,
        html: false,
        openmetrics: false,
    };
    let mut once = Once::default();
    for header in request.headers.iter() {
        take(&mut head, &mut once, bytes, header)?;
    }
    head.framing = match once {
        Once { chunked: true, length: Some(_), .. } => return Err(Refusal::TWO_LENGTHS),
        Once { chunked: true, .. } if is_old => return Err(Refusal::OLD_CHUNKED),
        Once { chunked: true, .. } => Framing::Chunked,
        Once { length: None | Some(0), .. } => Framing::None,
        Once { length: Some(length), .. } => Framing::Length(length),
    };
    head.keeps_alive = if is_old { once.keep_alive && !once.close } else { !once.close };
    head.expects &= !is_old && head.framing != Framing::None;
    if head.host.is_none() && !is_old {
        return Err(Refusal::NO_HOST);
    }
    let target = origin_form(&head, bytes, target)?;
    match target.iter().position(|&byte| byte == b'?') {
        Some(mark) => {
            head.path = Span::within(bytes, &target[..mark]);
            head.query = Some(Span::within(bytes, &target[mark + 1..]));
        }
        None => head.path = Span::within(bytes, target),
    }
    Ok(head)
}

/// The target without scheme and host, which must be that of the header if they are there.
fn origin_form<'b>(head: &Head, bytes: &[u8], target: &'b [u8]) -> Result<&'b [u8], Refusal> {
    if target.first() == Some(&b'/') || target == b"*" && head.method == Method::Options {
        return Ok(target);
    }
    let scheme = [&b"http://"[..], b"https://"]
        .into_iter()
        .find(|scheme| target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let rest = scheme.and_then(|scheme| target.get(scheme.len()..)).ok_or(Refusal::TARGET)?;
    let (authority, path) = rest.split_at(rest.iter().position(|&byte| byte == b'/').ok_or(Refusal::TARGET)?);
    match head.host {
        Some(host) if host.of(bytes).eq_ignore_ascii_case(authority) => Ok(path),
        None => Ok(path),
        Some(_) => Err(Refusal::TARGET_HOST),
    }
}

/// Notes one header. Those that say where a request ends must say it once and in one way.
fn take(
    head: &mut Head,
    once: &mut Once,
    bytes: &[u8],
    header: &httparse::Header<'_>,
) -> Result<(), Refusal> {
    let (name, value) = (header.name, header.value);
    let span = Some(Span::within(bytes, value));
    let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
    // By length first: most headers of a browser are none of these.
    match name.len() {
        4 if is("host") => {
            if head.host.is_some() || !is_host(value) {
                return Err(Refusal::HOST);
            }
            head.host = span;
            head.is_local = access::is_local_name(value);
        }
        5 if is("range") => once_only(&mut head.range, span)?,
        6 if is("accept") => {
            head.html = contains(value, b"text/html");
            head.openmetrics = contains(value, b"application/openmetrics-text");
        }
        6 if is("origin") => once_only(&mut head.origin, span)?,
        6 if is("expect") => {
            if !value.eq_ignore_ascii_case(b"100-continue") {
                return Err(Refusal::EXPECT);
            }
            head.expects = true;
        }
        8 if is("if-match") => once_only(&mut head.if_match, span)?,
        8 if is("if-range") => once_only(&mut head.if_range, span)?,
        10 if is("connection") => tokens(value).for_each(|token| {
            once.close |= token.eq_ignore_ascii_case(b"close");
            once.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }),
        12 if is("x-request-id") => head.request_id = span.filter(|_| is_request_id(value)),
        13 if is("if-none-match") => once_only(&mut head.if_none_match, span)?,
        13 if is("content-range") => once_only(&mut head.content_range, span)?,
        13 if is("last-event-id") => once_only(&mut head.last_event, span)?,
        13 if is("authorization") => once_only(&mut head.authorization, span)?,
        14 if is("content-length") => {
            if once.length.is_some() {
                return Err(Refusal::TWO_LENGTHS);
            }
            once.length = Some(length(value)?);
        }
        14 if is("sec-fetch-site") => head.site = span,
        14 if is("sec-fetch-mode") => head.navigates = value.eq_ignore_ascii_case(b"navigate"),
        15 if is("accept-encoding") => head.gzip = takes_gzip(value),
        16 if is("upstash-encoding") => head.base64 = value.eq_ignore_ascii_case(b"base64"),
        17 if is("transfer-encoding") => {
            if once.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Refusal::CODING);
            }
            once.chunked = true;
        }
        16 if is("content-encoding") && !value.eq_ignore_ascii_case(b"identity") => {
            return Err(Refusal::CONTENT_CODING);
        }
        23 if is("upstash-response-format") => head.resp2 = value.eq_ignore_ascii_case(b"resp2"),
        29 if is("access-control-request-method") => head.is_preflight = true,
        _ => {}
    }
    Ok(())
}

fn once_only(place: &mut Option<Span>, span: Option<Span>) -> Result<(), Refusal> {
    if place.is_some() {
        return Err(Refusal::TWICE);
    }
    *place = span;
    Ok(())
}

/// Digits and nothing else: signs, blanks, lists and numbers beyond 64 bits are read in more than one way.
fn length(value: &[u8]) -> Result<u64, Refusal> {
    let is_number = (1..=LENGTH_DIGITS_MAX).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    if !is_number {
        return Err(Refusal::LENGTH);
    }
    Ok(value.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// What a Host header may hold: a name or an address, and a port. An empty one is that of a target without a host.
fn is_host(value: &[u8]) -> bool {
    value.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]%~".contains(byte))
}

fn is_request_id(value: &[u8]) -> bool {
    (1..=64).contains(&value.len())
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

fn takes_gzip(value: &[u8]) -> bool {
    tokens(value).any(|token| {
        let mut parts = token.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"gzip"));
        let zero = |weight: &[u8]| {
            let digits = weight.strip_prefix(b"q=").or_else(|| weight.strip_prefix(b"Q="));
            digits.is_some_and(|digits| digits.iter().all(|byte| matches!(byte, b'0' | b'.')))
        };
        named && !parts.any(zero)
    })
}

fn contains(value: &[u8], wanted: &[u8]) -> bool {
    value.windows(wanted.len()).any(|part| part.eq_ignore_ascii_case(wanted))
}
