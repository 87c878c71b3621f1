//! HTTP: a connection that speaks it, from bytes to requests.
//!
//! Owns: where a request ends, which commands it asks for, and that its answers come in order. Does not own: commands,
//! the form of their replies (`weft_engine::reply`), when bytes are received and sent (`crate::worker`).
//!
//! A request's head is read (`head`), or recognized as that of the request before (`familiar`), looked at (`access`),
//! its body waited for (`body`), and what it asks for (`routes`) becomes commands of the worker's batch (`target`,
//! `json`, `resources`), beside those of RESP and RESPB. What they reply is framed by the `ledger`, which knows the
//! order of the answers; `answer` writes their heads. `streams` begins what has no end: `events` of channels, of keys
//! (`following`), `entries` of a stream.

pub(crate) mod access;
pub(crate) mod answer;
pub(crate) mod body;
mod console;
pub(crate) mod entries;
pub(crate) mod events;
pub(crate) mod familiar;
mod fixed;
pub(crate) mod following;
mod gzip;
pub(crate) mod head;
pub(crate) mod json;
pub(crate) mod ledger;
pub(crate) mod resources;
pub(crate) mod routes;
mod stored;
mod streams;
pub(crate) mod target;

use std::sync::atomic::Ordering::Relaxed;

use weft_engine::acl::DEFAULT_USER;
use weft_engine::config::Settings;
use weft_engine::error::Error;
use weft_engine::reply::{JsonForm, Protocol, Wire};
use weft_engine::requests::{Origin, What};
use weft_engine::session::Session;
use weft_engine::{Engine, Requests};
use weft_protocol::request::ArgVisitor;
use weft_protocol::table::policy;

use crate::client::Client;
use crate::connection::Stop;
use crate::limits::SEND_EARLY_BYTES;
use crate::log::{self, Level};
use access::{Form, Identity, Shown};
use answer::{About, Answer, Extra, Refusal};
use body::Chunks;
use events::Opening;
use familiar::Familiar;
use following::Follows;
use head::{Framing, Head, HeadLimits, Method, Span};
use json::{Commands, Place};
use ledger::{Kind, Ledger};
use resources::Asks;
use routes::Route;

/// A connection that speaks HTTP.
pub(crate) struct Http {
    pub(crate) client: Client,
    pub(crate) ledger: Ledger,
    reading: Reading,
    identity: Identity,
    /// The headers of the request before.
    familiar: Option<Box<Familiar>>,
    /// The part of a request that has not come, and since when it is waited for.
    waits: Option<(Part, u64)>,
    /// What it follows, once its last request was to do so.
    follows: Option<Box<Follows>>,
    /// The last request has been read: what comes behind it is passed over.
    ended: bool,
}

/// What of the input is being read.
enum Reading {
    /// A head; of so many bytes it is known that it is not whole.
    Head { seen: usize },
    /// A body.
    Body(Box<Body>),
    /// Commands of a body that is whole.
    Commands(Box<Listed>),
}

/// A body that is not whole.
struct Body {
    head: Head,
    chunks: Option<Chunks>,
}

/// Commands of a request, some of which have been given to the engine.
struct Listed {
    commands: Commands,
    /// Bytes of the request.
    len: usize,
    transaction: Option<Transaction>,
}

/// How far a transaction is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transaction {
    Multi,
    Queue,
    Exec,
}

/// A request that is whole.
struct Whole {
    head: Head,
    len: usize,
    body: Content,
}

/// Where its body is.
enum Content {
    Frame(Span),
    Aside(Vec<u8>),
}

/// Why a request is not carried out: the answer, and whether the connection must end with it.
struct Declined {
    answer: Box<Answer>,
    ends: bool,
}

impl From<Refusal> for Declined {
    fn from(refusal: Refusal) -> Self {
        Self { answer: refusal.into(), ends: true }
    }
}

/// What is to be done behind a step.
enum Next {
    Stop(Stop),
    GoOn,
}

/// What decoding needs beside the bytes.
pub(crate) struct Bench<'b> {
    pub(crate) requests: &'b mut Requests,
    pub(crate) engine: &'b Engine,
    /// The connection, in the worker's numbering.
    pub(crate) index: u32,
}

impl Http {
    pub(crate) fn new(mut session: Session) -> Self {
        let protocol = Protocol::Json(JsonForm::Upstash);
        session.over_http = true;
        session.set_protocol(protocol);
        session.wire = Wire { protocol, channel: 0 };
        Self {
            client: Client::new(session),
            ledger: Ledger::default(),
            reading: Reading::Head { seen: 0 },
            identity: Identity::default(),
            familiar: None,
            waits: None,
            follows: None,
            ended: false,
        }
    }

    /// Whether a request has been received in part, and which part of it has not come.
    /// With it the time since which this is so.
    pub(crate) fn waits_for(&mut self, now_ms: u64) -> Option<(Part, u64)> {
        let part = match &self.reading {
            Reading::Head { seen: 0 } | Reading::Commands(_) => None,
            Reading::Head { .. } => Some(Part::Head),
            Reading::Body(_) => Some(Part::Body),
        };
        let since_ms =
            self.waits.filter(|&(before, _)| Some(before) == part).map_or(now_ms, |(_, since)| since);
        self.waits = part.map(|part| (part, since_ms));
        self.waits
    }
    /// The rest of a request has not come in its time.
    pub(crate) fn give_up(&mut self) {
        let refusal = match self.reading {
            Reading::Body(_) => Refusal::BODY_TIME,
            _ => Refusal::HEAD_TIME,
        };
        self.decline(refusal.into(), About::default());
    }

    /// Nothing more is read of the connection, for this reason.
    pub(crate) fn refuse(&mut self, error: &Error) {
        let answer = Answer::error(error.code.http_status(), &error.line());
        self.decline(Declined { answer, ends: true }, About::default());
    }

    /// Whether everything that was asked for has been answered, and requests have left something on the session.
    pub(crate) fn wants_renewal(&self) -> bool {
        self.ledger.is_empty() && !self.ledger.flows() && !self.is_within() && !self.client.session.is_fresh()
    }
    const fn is_within(&self) -> bool {
        matches!(self.reading, Reading::Commands(_))
    }
    /// What it keeps beside its input.
    pub(crate) fn kept_bytes(&self) -> usize {
        match &self.reading {
            Reading::Body(body) => body.chunks.as_ref().map_or(0, |chunks| chunks.bytes.capacity()),
            Reading::Head { .. } | Reading::Commands(_) => 0,
        }
    }
    /// A command has run that may have changed who the client is.
    pub(crate) fn forget_identity(&mut self) {
        self.identity.forget();
    }
    /// Everything before has run: the session becomes that of the request whose head stands at the beginning of
    /// `bytes`.
    pub(crate) fn sign_in(&mut self, bytes: &[u8], engine: &Engine) {
        if let Ok(Some(head)) = head::parse(bytes, 0, head_limits(&engine.settings)) {
            let shown = Shown::of(&head, bytes);
            self.identity = Identity::of(shown, form(&head, bytes), &mut self.client.session, engine);
        }
    }

    /// Decodes requests from `bytes`, beginning at `at`, which moves on.
    pub(crate) fn decode(&mut self, (bytes, at): (&[u8], &mut usize), bench: &mut Bench<'_>) -> Stop {
        loop {
            if self.ended && !self.is_within() {
                *at = bytes.len();
                return self.read_on(bytes, bench);
            }
            if let Next::Stop(stop) = self.step(bytes, at, bench) {
                return stop;
            }
        }
    }

    fn step(&mut self, bytes: &[u8], at: &mut usize, bench: &mut Bench<'_>) -> Next {
        match &mut self.reading {
            Reading::Commands(_) => return self.next_command(bytes, at, bench),
            Reading::Head { seen: 0 } => {
                // Some clients send an empty line behind a body.
                while let Some(b'\r' | b'\n') = bytes.get(*at) {
                    *at += 1;
                }
            }
            _ => {}
        }
        let request = &bytes[*at..];
        if request.is_empty() {
            return Next::Stop(Stop::Incomplete);
        }
        match self.read(request, bench.engine) {
            Ok(Read::Whole(whole)) => self.carry_out(bytes, at, whole, bench),
            Ok(Read::Part) => Next::Stop(Stop::Incomplete),
            Ok(Read::Stranger) => Next::Stop(Stop::Control),
            Err((declined, about, len)) => {
                *at += len;
                self.decline(declined, about);
                Next::GoOn
            }
        }
    }

    /// Reads the request at the beginning of `bytes`. An error says how many of them it concerns.
    fn read(&mut self, bytes: &[u8], engine: &Engine) -> Result<Read, (Declined, About, usize)> {
        // What stands behind a head that says so is no body, whatever else is wrong with it.
        let about_unread = About { head_only: bytes.starts_with(b"HEAD "), ..About::default() };
        let refused = |refusal: Refusal| (Declined::from(refusal), about_unread.clone(), bytes.len());
        let limit = body::limit(self.client.session.authenticated, &engine.settings);
        if let Reading::Head { seen } = &mut self.reading {
            let limits = head_limits(&engine.settings);
            let recognized = self.familiar.as_ref().and_then(|familiar| familiar.head(bytes, limits));
            let head = match recognized {
                Some(head) => head,
                None => {
                    let Some(head) = head::parse(bytes, *seen, limits).map_err(refused)? else {
                        *seen = bytes.len();
                        return Ok(Read::Part);
                    };
                    Familiar::keep(&mut self.familiar, &head, bytes, limits);
                    head
                }
            };
            let shown = Shown::of(&head, bytes);
            if !self.identity.is(shown, form(&head, bytes), engine) {
                return Ok(Read::Stranger);
            }
            if let Err(answer) = self.look(&head, bytes, shown, engine) {
                // What is behind the head is passed over if it is there; else nobody knows how long it takes.
                let len = match head.framing {
                    Framing::None => Some(head.len),
                    Framing::Length(body) => Some(head.len + body as usize).filter(|&len| len <= bytes.len()),
                    Framing::Chunked => None,
                };
                let about = about(&head, bytes, (&self.client.session, engine));
                let declined = Declined { answer, ends: len.is_none() };
                return Err((declined, about, len.unwrap_or(bytes.len())));
            }
            let chunks = (head.framing == Framing::Chunked).then(Chunks::default);
            let mut body = Body { head, chunks };
            let whole = body.read(bytes, limit).map_err(|refusal| {
                let about = about(&head, bytes, (&self.client.session, engine));
                (Declined::from(refusal), about, bytes.len())
            })?;
            if let Some(whole) = whole {
                self.reading = Reading::Head { seen: 0 };
                return Ok(Read::Whole(whole));
            }
            if head.expects && bytes.len() == head.len {
                self.ledger.owe(Kind::Continue, about(&head, bytes, (&self.client.session, engine)));
            }
            self.reading = Reading::Body(Box::new(body));
            return Ok(Read::Part);
        }
        let Reading::Body(body) = &mut self.reading else { return Ok(Read::Part) };
        let Some(whole) = body.read(bytes, limit).map_err(refused)? else { return Ok(Read::Part) };
        self.reading = Reading::Head { seen: 0 };
        Ok(Read::Whole(whole))
    }

    /// Whether the request of a head may be made at all.
    fn look(&self, head: &Head, bytes: &[u8], shown: Shown<'_>, engine: &Engine) -> Result<(), Box<Answer>> {
        let path = head.path.of(bytes);
        let is_public = routes::is_public(head.method, path);
        // The console's files are the same for everybody, by whatever name they are asked for.
        let shows =
            shown != Shown::Nothing && engine.settings.auth_required.load(Relaxed) || console::is_file(path);
        access::check(head, bytes, engine, (shows, is_public))?;
        if head.base64 && head.resp2 {
            return Err(Answer::error(
                400,
                "ERR a reply in RESP2 has no base64: leave one of the two headers out",
            ));
        }
        if head.method == Method::Options || is_public {
            return Ok(());
        }
        if let Some(refusal) = self.identity.refusal(&self.client.session) {
            return Err(refusal);
        }
        // Whoever asks before he sends a body is told now that it would be in vain.
        if head.expects
            && let Route::Fixed(answer) = routes::find(head.method, path, head.html)
            && answer.status >= 400
        {
            return Err(answer);
        }
        Ok(())
    }

    /// A request is answered without being carried out.
    fn decline(&mut self, declined: Declined, mut about: About) {
        if about.extra.is_none() && log::writes(Level::Verbose) {
            about.extra = Some(Box::new(Extra::of_unread(&self.client.session.info.connection.peer)));
        }
        about.keeps_alive &= !declined.ends;
        self.ended |= !about.keeps_alive;
        self.ledger.owe(Kind::Ready(declined.answer), about);
        self.reading = Reading::Head { seen: 0 };
    }

    /// What a whole request asks for becomes commands of the batch, or an answer.
    fn carry_out(&mut self, bytes: &[u8], at: &mut usize, mut whole: Whole, bench: &mut Bench<'_>) -> Next {
        let request = &bytes[*at..];
        let head = whole.head;
        let about = about(&head, request, (&self.client.session, bench.engine));
        self.ended |= !about.keeps_alive;
        let route = match head.method {
            Method::Options => Route::Fixed(routes::options(head.is_preflight)),
            method => routes::find(method, head.path.of(request), head.html),
        };
        let done = match route {
            Route::Fixed(answer) => Err(answer),
            Route::Path | Route::Command => {
                let is_path = matches!(route, Route::Path);
                let barrier = self.one(bytes, *at, (&whole, is_path), bench);
                barrier.map(|barrier| {
                    self.ledger.owe(Kind::One, about.clone());
                    *at += whole.len;
                    stop_behind(barrier, bench.requests)
                })
            }
            Route::Pipeline => self.many(&whole, request, (None, &about)).map(|()| Next::GoOn),
            Route::Transaction => {
                self.many(&whole, request, (Some(Transaction::Multi), &about)).map(|()| Next::GoOn)
            }
            Route::Subscribe(kind) => self.subscribe(bytes, *at, (&whole, kind, &about), bench),
            Route::Monitor if self.is_bare(&head, request, bench.engine) => Err(only_reads()),
            Route::Monitor => self.stream(bytes, *at, (Opening::Monitor, &about), bench),
            Route::Ready => Err(routes::ready(bench.engine.loading().as_ref())),
            Route::Rights => {
                bench.engine.keep_user(&mut self.client.session);
                Err(console::rights(&self.client.session))
            }
            Route::Events => self.follow(bytes, *at, (&whole, &about), bench),
            Route::Channels => self.channels(bytes, *at, (&whole, &about), bench),
            Route::Entries => self.entries(&bytes[*at..], (&whole, &about), bench),
            Route::Resource => self.resource(bytes, *at, &mut whole, bench).map(|()| {
                self.ledger.owe(Kind::One, about.clone());
                *at += whole.len;
                // What it asks stands on the session: it runs before the next request is read.
                Next::Stop(Stop::Full)
            }),
        };
        match done {
            Ok(next) => next,
            Err(answer) => {
                *at += whole.len;
                bench.requests.drop_open();
                // A page is sent before the next one is asked for.
                let is_page = answer.body.len() >= SEND_EARLY_BYTES;
                self.ledger.owe(Kind::Ready(answer), about);
                if is_page { Next::Stop(Stop::Page) } else { Next::GoOn }
            }
        }
    }

    /// One command, in the path or as JSON. Says whether it is a barrier.
    fn one(
        &mut self,
        bytes: &[u8],
        at: usize,
        (whole, is_path): (&Whole, bool),
        bench: &mut Bench<'_>,
    ) -> Result<bool, Box<Answer>> {
        let (head, request) = (&whole.head, &bytes[at..]);
        let slots = bench.requests.visitor();
        let place = whole.body.place(request);
        let read = if is_path {
            target::path(request, head.path, slots).and_then(|()| {
                match place.at {
                    _ if place.body.is_empty() => {}
                    Some(at) => slots.bytes(at, place.body),
                    None => slots.aside(|side| side.extend_from_slice(place.body)),
                }
                head.query.map_or(Ok(()), |query| target::query(request, query, slots))
            })
        } else {
            json::command(place, slots)
        };
        read.map_err(|why| Answer::error(400, &why))?;
        let spec = bench.requests.recognize((bytes, at)).spec();
        if self.is_bare(head, request, bench.engine) && !access::only_reads(spec) {
            return Err(only_reads());
        }
        let barrier = bench.requests.end_http(&bench.engine.keyspace, self.origin(bench.index), (bytes, at));
        Ok(barrier || access::marks_session(spec))
    }

    /// A resource.
    fn resource(
        &mut self,
        bytes: &[u8],
        at: usize,
        whole: &mut Whole,
        bench: &mut Bench<'_>,
    ) -> Result<(), Box<Answer>> {
        let body = std::mem::replace(&mut whole.body, Content::Frame(Span::default()));
        let asks = Asks::of(whole, &bytes[at..], bench);
        let asked = asks.compose(body, bench.requests.visitor())?;
        self.client.session.ask(asked);
        bench.requests.end_http(&bench.engine.keyspace, self.origin(bench.index), (bytes, at));
        Ok(())
    }

    /// Whether a page, a picture's address or a link can have made a browser send it: a header it could not, but a
    /// token of the address where any would do.
    fn is_bare(&self, head: &Head, request: &[u8], engine: &Engine) -> bool {
        let shows = match Shown::of(head, request) {
            Shown::Nothing => false,
            Shown::Header(_) => true,
            Shown::Token(_) => {
                engine.settings.auth_required.load(Relaxed) || *self.client.session.user.name != *DEFAULT_USER
            }
        };
        head.method.is_safe() && !shows
    }

    fn origin(&self, index: u32) -> Origin {
        Origin { connection: index, channel: 0, db: self.client.session.db }
    }

    /// Many commands, as JSON.
    fn many(
        &mut self,
        whole: &Whole,
        request: &[u8],
        (transaction, about): (Option<Transaction>, &About),
    ) -> Result<(), Box<Answer>> {
        let commands = Commands::read(whole.body.place(request)).map_err(|why| Answer::error(400, &why))?;
        let ends = |name: &[u8]| What::of(name, None).spec().policy & policy::IN_MULTI != 0;
        if transaction.is_some()
            && let Some(name) = commands.names(request).find(|name| ends(name))
        {
            let name = String::from_utf8_lossy(name);
            return Err(Answer::error(
                400,
                &format!("ERR '{name}' would end the transaction, which ends with its list: leave it out"),
            ));
        }
        let total = commands.len() as u32;
        let kind = match (transaction, total) {
            (None, 0) if about.resp2 => Kind::Ready(Answer::new(200, answer::BYTES, &b"*0\r\n"[..])),
            (None, 0) => Kind::Ready(Answer::new(200, answer::JSON, &b"[]"[..])),
            (None, total) => Kind::Many { total, begun: false, zipped: None },
            (Some(_), total) => Kind::Last { left: total + 2, begun: false },
        };
        self.ledger.owe(kind, about.clone());
        self.reading = Reading::Commands(Box::new(Listed { commands, len: whole.len, transaction }));
        Ok(())
    }

    /// Gives the engine the next command of a list.
    fn next_command(&mut self, bytes: &[u8], at: &mut usize, bench: &mut Bench<'_>) -> Next {
        let origin = self.origin(bench.index);
        let Reading::Commands(listed) = &mut self.reading else { return Next::GoOn };
        let slots = bench.requests.visitor();
        let is_over = listed.commands.is_over();
        // Whether what follows is queued is known when it has run.
        let is_multi = listed.transaction == Some(Transaction::Multi);
        match listed.transaction {
            None if !is_over => listed.commands.give(slots),
            Some(Transaction::Queue) if !is_over && self.client.session.in_multi() => {
                listed.commands.give(slots)
            }
            None => {
                *at += listed.len;
                self.reading = Reading::Head { seen: 0 };
                // What it has left on the session is taken back before another request.
                return Next::Stop(Stop::Barrier);
            }
            // MULTI was refused, and its error is the answer.
            Some(Transaction::Queue) if !self.client.session.in_multi() => {
                *at += listed.len;
                self.reading = Reading::Head { seen: 0 };
                return Next::GoOn;
            }
            Some(Transaction::Multi) => {
                slots.aside(|side| side.extend_from_slice(b"MULTI"));
                listed.transaction = Some(Transaction::Queue);
            }
            Some(Transaction::Queue) => {
                slots.aside(|side| side.extend_from_slice(b"EXEC"));
                listed.transaction = Some(Transaction::Exec);
            }
            Some(Transaction::Exec) => {
                *at += listed.len;
                self.reading = Reading::Head { seen: 0 };
                // What it leaves on the session is taken from it before the next request.
                return Next::Stop(Stop::Barrier);
            }
        }
        let barrier = bench.requests.end_http(&bench.engine.keyspace, origin, (bytes, *at));
        stop_behind(barrier || is_multi, bench.requests)
    }
}

/// How far a request has been read.
#[allow(
    clippy::large_enum_variant,
    reason = "one at a time, on the stack: a box for each request costs more"
)]
enum Read {
    Whole(Whole),
    /// More must come.
    Part,
    /// The session is another's: everything before must run, and then [`Http::sign_in`].
    Stranger,
}

/// What of a request has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Head,
    Body,
}

impl Body {
    /// The request, when all of its body is there.
    fn read(
        &mut self,
        bytes: &[u8],
        (body_max, too_long): (usize, Refusal),
    ) -> Result<Option<Whole>, Refusal> {
        let head = self.head;
        let whole = |len: usize, body: Content| Some(Whole { head, len: head.len + len, body });
        let frame = |len: usize| Content::Frame(Span { from: head.len as u32, len: len as u32 });
        match (head.framing, &mut self.chunks) {
            (Framing::Length(len), _) if len > body_max as u64 => Err(too_long),
            (Framing::Length(len), _) if (bytes.len() - head.len) as u64 >= len => {
                Ok(whole(len as usize, frame(len as usize)))
            }
            (Framing::Length(_), _) => Ok(None),
            (Framing::Chunked, Some(chunks)) => {
                let body = &bytes[head.len..];
                let len = chunks
                    .read(body, body_max)
                    .map_err(|refusal| if refusal == Refusal::BODY { too_long } else { refusal })?;
                // The lines of its chunks are kept as well until it is whole.
                if len.is_none() && too_long != Refusal::BODY && body.len() > 2 * body_max {
                    return Err(too_long);
                }
                Ok(len.and_then(|len| whole(len, Content::Aside(std::mem::take(&mut chunks.bytes)))))
            }
            _ => Ok(whole(0, frame(0))),
        }
    }
}

impl Content {
    fn place<'b>(&'b self, request: &'b [u8]) -> Place<'b> {
        match self {
            Self::Frame(span) => Place { body: span.of(request), at: Some(span.from as usize) },
            Self::Aside(body) => Place { body, at: None },
        }
    }
}

fn only_reads() -> Box<Answer> {
    Answer::error(403, "NOPERM a GET without credentials only reads: send a POST, or a token")
}

fn stop_behind(barrier: bool, requests: &Requests) -> Next {
    match (barrier, requests.is_full()) {
        (true, _) => Next::Stop(Stop::Barrier),
        (false, true) => Next::Stop(Stop::Full),
        (false, false) => Next::GoOn,
    }
}

fn head_limits(settings: &Settings) -> HeadLimits {
    HeadLimits {
        line_bytes: settings.http_line_bytes_max.load(Relaxed),
        head_bytes: settings.http_head_bytes_max.load(Relaxed),
        headers: settings.http_headers_max.load(Relaxed),
    }
}

/// The form of a request.
fn form(head: &Head, request: &[u8]) -> Form {
    let db = resources::database(head.path.of(request)).unwrap_or_default();
    Form { protocol: protocol(head, request), db }
}

/// The form of the replies to a request.
fn protocol(head: &Head, request: &[u8]) -> Protocol {
    let path = head.path.of(request);
    if [&b"/subscribe/"[..], b"/psubscribe/"].iter().any(|start| path.starts_with(start))
        || matches!(
            path,
            b"/monitor" | b"/v1/events" | b"/v1/channels" | b"/v1/console/stream" | b"/v1/console/hot"
        )
    {
        // Its reply is not sent: what follows it is.
        return Protocol::Resp3;
    }
    if path.starts_with(b"/v1/") || path == b"/metrics" {
        return Protocol::Json(JsonForm::Plain);
    }
    let is_each = path == b"/multi-exec";
    match (head.resp2, head.base64, is_each) {
        (true, ..) => Protocol::Resp2,
        (_, true, false) => Protocol::Json(JsonForm::UpstashBase64),
        (_, true, true) => Protocol::Json(JsonForm::UpstashEachBase64),
        (_, false, false) => Protocol::Json(JsonForm::Upstash),
        (_, false, true) => Protocol::Json(JsonForm::UpstashEach),
    }
}

fn about(head: &Head, request: &[u8], (session, engine): (&Session, &Engine)) -> About {
    let text = |span: Span| String::from_utf8_lossy(span.of(request)).into();
    let origin = head.origin.filter(|origin| engine.web.allows_origin(origin.of(request))).map(text);
    let logged = log::writes(Level::Verbose).then(|| logged(head, request, session));
    // One that stands in no log would name nothing.
    let request_id = head.request_id.map(text).or_else(|| logged.is_some().then(answer::request_id));
    let extra = (origin.is_some() || request_id.is_some() || logged.is_some())
        .then(|| Box::new(Extra { origin, request_id, logged }));
    About {
        keeps_alive: head.keeps_alive,
        is_old: head.is_old,
        head_only: head.method == Method::Head,
        gzip: head.gzip,
        resp2: head.resp2,
        extra,
    }
}

/// Who asks for what, for the log. Arguments of commands are none of its business: they may be secrets.
#[cold]
fn logged(head: &Head, request: &[u8], session: &Session) -> Box<str> {
    let path = head.path.of(request);
    let end = path.iter().skip(1).position(|&byte| byte == b'/').filter(|_| !path.starts_with(b"/v1/"));
    let path = String::from_utf8_lossy(&path[..end.map_or(path.len(), |end| end + 1)]);
    let path = log::harmless(&path);
    let method = request.split(|&byte| byte == b' ').next().map(String::from_utf8_lossy).unwrap_or_default();
    format!("{} {method} {path}", session.info.connection.peer).into()
}
