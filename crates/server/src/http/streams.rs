//! Owns: requests whose answers have no end: channels, what happens to keys, the entries of a stream, MONITOR; which
//! command each is. Does not own: how events are written (`super::events`), when they come (`crate::worker`).

use weft_engine::Engine;
use weft_engine::error::{Error, ErrorCode};
use weft_engine::reply::Output;
use weft_engine::resource::{Asked, Does};
use weft_engine::session::Session;

use super::answer::{About, Answer};
use super::entries::Entries;
use super::events::{self, Opening};
use super::following::{Following, Follows};
use super::ledger::{Kind, Ledger};
use super::resources::{Asks, wrong};
use super::{Bench, Http, Next, Whole, target};
use crate::connection::Stop;

impl Http {
    pub(super) fn subscribe(
        &mut self,
        bytes: &[u8],
        at: usize,
        (whole, kind, about): (&Whole, &'static str, &About),
        bench: &mut Bench<'_>,
    ) -> Result<Next, Box<Answer>> {
        let path = whole.head.path.of(&bytes[at..]);
        let names = path.split(|&byte| byte == b'/').skip(2).map(|name| {
            let mut decoded = Vec::new();
            target::decode(name, false, &mut decoded).map(|()| decoded.into_boxed_slice())
        });
        let names: Vec<Box<[u8]>> =
            names.collect::<Result<_, _>>().map_err(|why| Answer::error(400, &why))?;
        if names.is_empty() {
            return Err(Answer::error(400, &format!("ERR /{kind}/ needs a name behind it")));
        }
        self.stream(bytes, at, (Opening::Subscribed(kind, names, events::Form::Upstash), about), bench)
    }

    /// What happens to keys, or each second.
    pub(super) fn follow(
        &mut self,
        bytes: &[u8],
        at: usize,
        (whole, about): (&Whole, &About),
        bench: &mut Bench<'_>,
    ) -> Result<Next, Box<Answer>> {
        let follows = Asks::of(whole, &bytes[at..], bench).follows()?;
        let opening = if matches!(follows, Follows::Keys(_)) { Opening::Follow } else { Opening::Watch };
        self.follows = Some(Box::new(follows));
        // Before it runs, all that was decoded has: this is its own kind of reply.
        self.client.session.ask(Some(Asked::plainly(Does::Follow)));
        self.stream(bytes, at, (opening, about), bench)
    }
    /// What it follows of keys, and the session that it does so with, while its stream flows.
    pub(crate) fn following(&mut self) -> Option<(&Following, &mut Ledger, &mut Session)> {
        match self.follows.as_deref().filter(|_| self.ledger.flows())? {
            Follows::Keys(following) => Some((following, &mut self.ledger, &mut self.client.session)),
            Follows::Figures | Follows::Hot => None,
        }
    }
    /// The session that something is told to each second, while that flows, and whether it is which keys are hot rather
    /// than the figures.
    pub(crate) fn watching(&mut self) -> Option<(bool, &mut Ledger, &mut Session)> {
        let is_hot = match self.follows.as_deref().filter(|_| self.ledger.flows())? {
            Follows::Keys(_) => return None,
            Follows::Figures => false,
            Follows::Hot => true,
        };
        Some((is_hot, &mut self.ledger, &mut self.client.session))
    }

    /// Channels by their names, or patterns of them, in JSON.
    pub(super) fn channels(
        &mut self,
        bytes: &[u8],
        at: usize,
        (whole, about): (&Whole, &About),
        bench: &mut Bench<'_>,
    ) -> Result<Next, Box<Answer>> {
        let asks = Asks::of(whole, &bytes[at..], bench);
        asks.only(&[b"channel", b"pattern"])?;
        let (channels, patterns) = (asks.parameters(b"channel")?, asks.parameters(b"pattern")?);
        let (kind, names) = match (channels.is_empty(), patterns.is_empty()) {
            (false, true) => ("subscribe", channels),
            (true, false) => ("psubscribe", patterns),
            _ => {
                return Err(wrong(
                    "name channels by ?channel=NAME&channel=NAME, or by ?pattern=news*, not by both",
                ));
            }
        };
        self.stream(bytes, at, (Opening::Subscribed(kind, names, events::Form::Json), about), bench)
    }

    /// The entries of a stream.
    pub(super) fn entries(
        &mut self,
        request: &[u8],
        (whole, about): (&Whole, &About),
        bench: &Bench<'_>,
    ) -> Result<Next, Box<Answer>> {
        let mut entries = Asks::of(whole, request, bench).entries()?;
        entries.about = about.clone();
        self.ledger.read_stream(entries);
        self.ended = true;
        Ok(Next::GoOn)
    }
    /// What a stream has on is read, if that is due.
    pub(super) fn read_on(&mut self, bytes: &[u8], bench: &mut Bench<'_>) -> Stop {
        let origin = self.origin(bench.index);
        let Some(entries) = self.ledger.entries() else { return Stop::Incomplete };
        if !entries.give(bench.requests.visitor()) {
            return Stop::Incomplete;
        }
        bench.requests.end_http(&bench.engine.keyspace, origin, (bytes, bytes.len()));
        self.ledger.owe(Kind::Entries, About::default());
        Stop::Barrier
    }
    /// A stream whose credentials no longer hold ends, and says so. Says whether it does.
    pub(crate) fn ends_with_its_token(&mut self, engine: &Engine, output: &mut Output) -> bool {
        let ends = self.ledger.flows() && !self.identity.still_holds(engine);
        if ends {
            let answer = Answer::error(401, &Error::from(ErrorCode::WrongPass).line());
            self.ledger.end_stream(&answer.body, output);
        }
        ends
    }
    /// All has been sent: whether more of a stream is to be read.
    pub(crate) fn has_sent_all(&mut self) -> bool {
        self.ledger.entries().map(Entries::make_due).is_some()
    }

    /// A stream of events: its command runs as that of a client that pushes are sent to.
    pub(super) fn stream(
        &mut self,
        bytes: &[u8],
        at: usize,
        (opening, about): (Opening, &About),
        bench: &mut Bench<'_>,
    ) -> Result<Next, Box<Answer>> {
        let slots = bench.requests.visitor();
        match &opening {
            Opening::Monitor => slots.aside(|side| side.extend_from_slice(b"MONITOR")),
            // Whoever may list keys may be told of them.
            Opening::Follow => {
                [b"SCAN", &b"0"[..]].iter().for_each(|word| slots.aside(|side| side.extend_from_slice(word)));
            }
            Opening::Watch => slots.aside(|side| side.extend_from_slice(b"INFO")),
            Opening::Subscribed(kind, names, _) => {
                slots.aside(|side| side.extend_from_slice(kind.as_bytes()));
                names.iter().for_each(|name| slots.aside(|side| side.extend_from_slice(name)));
            }
        }
        let origin = self.origin(bench.index);
        bench.requests.end_http(&bench.engine.keyspace, origin, (bytes, at));
        self.ledger.owe(Kind::Events(opening), about.clone());
        self.ended = true;
        Ok(Next::Stop(Stop::Barrier))
    }
}
