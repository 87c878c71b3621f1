//! Owns: what a request asks for, by its method and path. Does not own: reading it (`super::head`), doing it.
//!
//! | path | is |
//! |---|---|
//! | `/` | POST: a command; GET: the start page |
//! | `/pipeline`, `/multi-exec` | many commands |
//! | `/subscribe/…`, `/psubscribe/…`, `/monitor` | an event stream |
//! | `/healthz`, `/readyz` | whether it lives, and serves |
//! | `/metrics` | what INFO tells, for Prometheus |
//! | `/v1/docs`, `/v1/openapi.json` | what there is, for people and for tools |
//! | `/v1/db/N/…` | keys as resources (`super::resources`) |
//! | `/v1/events` | what happens to keys, as an event stream (`super::following`) |
//! | `/v1/channels` | messages of channels, as an event stream |
//! | `/v1/db/N/streams/…` | the entries of a stream, as an event stream (`super::entries`) |
//! | `/v1/console/stream`, `/v1/console/hot` | each second's figures, and keys that are hot, the same way |
//! | `/v1/console/rights` | which commands whoever asks may run |
//! | `/console…` | the console (`super::console`) |
//! | `/v1/programs…`, `/v1/triggers…` | programs and triggers (`super::stored`) |
//! | other `/v1/…` | Weft's own: nothing |
//! | any other | a command, its arguments in the path |

use weft_engine::error::Error;

use super::answer::{Answer, HTML, JSON, TEXT};
use super::console;
use super::head::Method;
use super::resources;

/// What a request asks for.
#[derive(Debug)]
pub(crate) enum Route {
    /// A command, its arguments in the path.
    Path,
    /// A command as JSON.
    Command,
    /// Commands as JSON, each by itself.
    Pipeline,
    /// Commands as JSON, all or none.
    Transaction,
    /// SUBSCRIBE and PSUBSCRIBE, by the name of the command.
    Subscribe(&'static str),
    Monitor,
    /// Whether it serves.
    Ready,
    /// What happens to keys.
    Events,
    /// Messages of channels.
    Channels,
    /// The entries of a stream.
    Entries,
    /// Which commands whoever asks may run.
    Rights,
    /// Resources: keys, programs, triggers.
    Resource,
    /// It is known already.
    Fixed(Box<Answer>),
}

const START_PAGE: &str = include_str!("start.html");

/// Pages load nothing and run nothing.
const PAGE_POLICY: &str = "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n";

/// Both are generated from the command table.
const DOCS: &str = include_str!("docs_gen.html");
const OPENAPI: &str = include_str!("openapi_gen.json");

/// What is asked for. Only these need no credentials: [`is_public`].
pub(crate) fn find(method: Method, path: &[u8], wants_html: bool) -> Route {
    let reads = matches!(method, Method::Get | Method::Head);
    let first = path.get(1..).unwrap_or_default().split(|&byte| byte == b'/').next().unwrap_or_default();
    match (first, path) {
        (_, b"/") if reads => Route::Fixed(start(wants_html)),
        (_, b"/") if method == Method::Post => Route::Command,
        (_, b"/") => not_allowed("GET, HEAD, POST"),
        (_, b"/healthz") if reads => Route::Fixed(Answer::new(200, TEXT, &b"ok\n"[..])),
        (_, b"/readyz") if reads => Route::Ready,
        (_, b"/healthz" | b"/readyz") => not_allowed("GET, HEAD"),
        (_, b"/metrics") if reads => Route::Resource,
        (_, b"/metrics") => not_allowed("GET, HEAD"),
        (_, b"/pipeline" | b"/multi-exec") if method != Method::Post => not_allowed("POST"),
        (_, b"/pipeline") => Route::Pipeline,
        (_, b"/multi-exec") => Route::Transaction,
        (_, b"/v1/docs" | b"/v1/openapi.json") if !reads => not_allowed("GET, HEAD"),
        (_, b"/v1/docs") => Route::Fixed(Answer::new(200, HTML, DOCS.as_bytes()).with(PAGE_POLICY)),
        (_, b"/v1/openapi.json") => Route::Fixed(Answer::new(200, JSON, OPENAPI.as_bytes())),
        (b"v1", b"/v1/events" | b"/v1/console/stream" | b"/v1/console/hot") if method != Method::Get => {
            not_allowed("GET")
        }
        (b"v1", b"/v1/events" | b"/v1/console/stream" | b"/v1/console/hot") => Route::Events,
        (b"v1", b"/v1/console/rights") if reads => Route::Rights,
        (b"v1", b"/v1/console/rights") => not_allowed("GET, HEAD"),
        (b"v1", b"/v1/channels") if method != Method::Get => not_allowed("GET"),
        (b"v1", b"/v1/channels") => Route::Channels,
        (b"v1", _) if resources::is_entries(path) && method != Method::Get => not_allowed("GET"),
        (b"v1", _) if resources::is_entries(path) => Route::Entries,
        (b"console", _) if !reads => not_allowed("GET, HEAD"),
        (b"console", _) => Route::Fixed(console::file(path).unwrap_or_else(missing)),
        (b"v1", _) if is_resource(path) => Route::Resource,
        (b"v1", _) => Route::Fixed(missing()),
        (b"favicon.ico", _) => Route::Fixed(missing()),
        _ if !reads && method != Method::Post => not_allowed("GET, HEAD, POST"),
        (b"subscribe" | b"psubscribe", _) | (_, b"/monitor") if method == Method::Head => {
            not_allowed("GET, POST")
        }
        (b"subscribe", _) => Route::Subscribe("subscribe"),
        (b"psubscribe", _) => Route::Subscribe("psubscribe"),
        (_, b"/monitor") => Route::Monitor,
        _ => Route::Path,
    }
}

fn is_resource(path: &[u8]) -> bool {
    let below = |root: &[u8]| path.strip_prefix(root).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
    path.starts_with(b"/v1/db/") || below(b"/v1/programs") || below(b"/v1/triggers")
}

/// Whether whoever has no credentials may ask for it.
pub(crate) fn is_public(method: Method, path: &[u8]) -> bool {
    let is_file = console::is_file(path);
    method.is_safe()
        && (is_file
            || matches!(
                path,
                b"/" | b"/healthz" | b"/readyz" | b"/favicon.ico" | b"/v1/docs" | b"/v1/openapi.json"
            ))
}

/// Whether the server serves: not while it loads what was kept.
pub(crate) fn ready(loading: Option<&Error>) -> Box<Answer> {
    match loading {
        None => Answer::new(200, TEXT, &b"ok\n"[..]),
        Some(error) => Answer::error(error.code.http_status(), &error.line()),
    }
}

fn start(wants_html: bool) -> Box<Answer> {
    if wants_html {
        return Answer::new(200, HTML, START_PAGE.as_bytes()).with(PAGE_POLICY);
    }
    let text = "This is Weft. A command is a path, GET /get/KEY, or a POST of its arguments in JSON, [\"SET\",\"KEY\",\"VALUE\"].\n";
    Answer::new(200, TEXT, text.as_bytes())
}

pub(super) fn missing() -> Box<Answer> {
    Answer::error(404, "ERR there is nothing at this path")
}

fn not_allowed(methods: &'static str) -> Route {
    Route::Fixed(other_methods(methods))
}

/// The answer to a method that a path does not have.
pub(super) fn other_methods(methods: &'static str) -> Box<Answer> {
    let answer = Answer::error(405, &format!("ERR the methods here are {methods}"));
    answer.with(format!("Allow: {methods}\r\n"))
}

/// The answer to OPTIONS: what may be asked for and, to a page whose origin is allowed, with which headers.
pub(crate) fn options(is_preflight: bool) -> Box<Answer> {
    let headers = if is_preflight {
        "Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE\r\n\
         Access-Control-Allow-Headers: Authorization, Content-Type, Content-Range, If-Match, If-None-Match, \
         If-Range, Range, Last-Event-ID, X-Request-Id, Upstash-Encoding, Upstash-Response-Format, \
         Upstash-Sync-Token, Upstash-Telemetry-Runtime, Upstash-Telemetry-Platform, Upstash-Telemetry-Sdk, \
         Upstash-Telemetry-Retry\r\n\
         Access-Control-Max-Age: 600\r\n"
    } else {
        "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"
    };
    Answer::new(204, TEXT, &b""[..]).with(headers)
}
