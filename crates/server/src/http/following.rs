//! Owns: `/v1/events`, and the console's streams beside it: which events a client follows, from which on, and how they
//! are written. Does not own: the events (`weft_engine::feed`), who may see them (`weft_engine::acl`), when they are
//! sent (`crate::worker`).
//!
//! `id: EPOCH-NUMBER`, then `data: {"event":"set","kind":"string","db":0,"key":"k"}`. A stream begins with the event
//! `ready`, or with `reset` where the one that `Last-Event-ID` names cannot be gone on behind.

use std::sync::Arc;

use weft_engine::Engine;
use weft_engine::feed::{Event, KINDS};
use weft_engine::glob;
use weft_engine::reply::{JsonForm, Output, Protocol, ReplySink, Wire};
use weft_engine::session::Session;

use super::answer::Answer;
use super::resources::{Asks, wrong};

/// Kinds that are followed where none is named: a key that is new is told of as what it was set to, too.
const KINDS_UNLESS_NAMED: u32 = !weft_engine::notify::NEW;

/// What an event stream of ours tells.
#[derive(Debug)]
pub(crate) enum Follows {
    /// `/v1/events`.
    Keys(Following),
    /// `/v1/console/stream`: each second's figures (`weft_engine::history`).
    Figures,
    /// `/v1/console/hot`: which keys are asked for most (`weft_engine::hot`).
    Hot,
}

/// What a client follows.
#[derive(Debug)]
pub(crate) struct Following {
    pattern: Option<Box<[u8]>>,
    /// Bits of [`KINDS`].
    kinds: u32,
    db: Option<u8>,
    /// The last event that it has seen, of this process or another.
    last: Option<(u64, u64)>,
}

/// Events as text, which many clients are sent.
pub(crate) struct Written {
    event: Arc<Event>,
    text: Vec<u8>,
}

impl Written {
    pub(crate) fn of(event: Arc<Event>, epoch: u64) -> Self {
        let mut output = Output::default();
        let mut sink = ReplySink::new(
            &mut output,
            Wire { protocol: Protocol::Json(JsonForm::Plain), ..Wire::default() },
        );
        let kind = KINDS.iter().find(|(_, class)| *class == event.class).map_or("other", |(name, _)| name);
        sink.map(4);
        sink.bulk(b"event");
        sink.bulk(event.name.as_bytes());
        sink.bulk(b"kind");
        sink.bulk(kind.as_bytes());
        sink.bulk(b"db");
        sink.int(event.db.into());
        sink.bulk(b"key");
        sink.bulk(&event.key);
        let mut text = format!("id: {epoch}-{}\ndata: ", event.number).into_bytes();
        // JSON has no line end in it.
        text.append(&mut output.bytes);
        text.extend_from_slice(b"\n\n");
        Self { event, text }
    }
}

impl Following {
    /// Where its events begin: at a number, or with the next one where that cannot be.
    pub(crate) fn begin(&self, engine: &Engine) -> Result<u64, u64> {
        let next = engine.feed.next();
        match self.last {
            None => Ok(next),
            Some((epoch, number)) if epoch == engine.feed.epoch() => match engine.feed.read(number + 1, 0) {
                Ok(_) => Ok(number + 1),
                Err(_) => Err(next),
            },
            Some(_) => Err(next),
        }
    }
    /// Appends those of the events that it is about and that its user may know of.
    pub(crate) fn write(&self, events: &[Written], session: &Session, into: &mut Vec<u8>) {
        for Written { event, text } in events {
            let is_wanted = event.class & self.kinds != 0
                && self.db.is_none_or(|db| db == event.db)
                && self.pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, &event.key));
            if is_wanted && session.user.reads_key_in(event.db, &event.key) {
                into.extend_from_slice(text);
            }
        }
    }
}

/// What a stream begins with; or, in the middle, that some events are missing.
pub(crate) fn mark(name: &str, epoch: u64, next: u64) -> Vec<u8> {
    // What was before the first event of all has no number.
    let id = next.checked_sub(1).map_or(String::new(), |last| format!("id: {epoch}-{last}\n"));
    format!("event: {name}\n{id}data: {{}}\n\n").into_bytes()
}

impl Asks<'_> {
    /// What a request for `/v1/events`, `/v1/console/stream` or `/v1/console/hot` follows.
    pub(super) fn follows(&self) -> Result<Follows, Box<Answer>> {
        let path = self.head.path.of(self.request);
        if path == b"/v1/events" {
            return self.following().map(Follows::Keys);
        }
        self.only(&[])?;
        Ok(if path == b"/v1/console/hot" { Follows::Hot } else { Follows::Figures })
    }

    fn following(&self) -> Result<Following, Box<Answer>> {
        self.only(&[b"match", b"kinds", b"db"])?;
        let kinds = match self.parameter(b"kinds")? {
            None => KINDS_UNLESS_NAMED,
            Some(names) => names.split(|&byte| byte == b',').try_fold(0, |kinds, name| {
                let known = KINDS.iter().find(|(other, _)| other.as_bytes() == name);
                known.map(|(_, class)| kinds | class).ok_or_else(|| {
                    let all: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
                    wrong(format!("the kinds of events are {}", all.join(", ")))
                })
            })?,
        };
        let db = match self.parameter(b"db")? {
            None => None,
            Some(db) => {
                let number = std::str::from_utf8(&db).ok().and_then(|db| db.parse::<u8>().ok());
                let number = number.filter(|&db| usize::from(db) < self.databases);
                Some(
                    number
                        .ok_or_else(|| wrong(format!("db is a number from 0 to {}", self.databases - 1)))?,
                )
            }
        };
        let last = self.head.last_event.map(|span| {
            let text = std::str::from_utf8(span.of(self.request)).unwrap_or_default();
            let parts = text.split_once('-');
            // What is no number of ours is that of another process.
            parts
                .and_then(|(epoch, number)| Some((epoch.parse().ok()?, number.parse().ok()?)))
                .filter(|&(_, number): &(u64, u64)| number < u64::MAX)
                .unwrap_or_default()
        });
        Ok(Following { pattern: self.parameter(b"match")?.map(Vec::into_boxed_slice), kinds, db, last })
    }
}
