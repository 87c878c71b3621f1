//! Owns: requests to effects. Does not own: the way there (`super::encode`).

use weft_protocol::number::{parse_double, parse_int};
use weft_protocol::respb::{Frame, RequestDecoder, StringFrame};
use weft_protocol::{Arg, ArgList, Limits, Outcome};
use weft_store::Section;
use weft_store::effect::{Cause, Effect, KeyedEffect, Pairs, Text};
use weft_store::list::End;
use weft_store::stream::StreamId;

use super::{KINDS, SECTIONS, name};

/// A frame that says no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strange {
    /// Where it begins in the bytes that were given.
    pub offset: usize,
    /// What is wrong with it.
    pub why: &'static str,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Effects, which were given.
    Effects,
    /// What follows belongs together.
    Begin,
    /// What belongs together ends.
    End,
}

/// Strings that are given together, at most.
pub const ROW_MAX: usize = 32;

/// No limits but those of the format: what is read was written by this program, and its block was proven whole.
const LIMITS: Limits = Limits { argument_bytes_max: u32::MAX, frame_bytes_max: u32::MAX, ..Limits::DEFAULT };

/// Reads requests. Kept from one to the next for its memory.
#[derive(Debug)]
pub struct Decoder {
    requests: RequestDecoder,
    arguments: ArgList,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { requests: RequestDecoder::new(LIMITS), arguments: ArgList::new() }
    }
}

impl Decoder {
    /// Gives the effects of whole requests, in order, with the marks of groups. Strings that follow each other come
    /// together, up to [`ROW_MAX`] of them.
    ///
    /// # Errors
    /// At a request that says no effect. Those before it have been given.
    pub fn each(
        &mut self,
        bytes: &[u8],
        mut give: impl FnMut(Mark, &[KeyedEffect<'_>]),
    ) -> Result<(), Strange> {
        let mut at = 0;
        let mut row = Vec::with_capacity(ROW_MAX);
        while at < bytes.len() {
            if let Some((told, len)) = string(&bytes[at..]) {
                row.push(told);
                at += len;
                if row.len() < ROW_MAX {
                    continue;
                }
            }
            if !row.is_empty() {
                give(Mark::Effects, &row);
                row.clear();
                continue;
            }
            let strange = |why| Strange { offset: at, why };
            self.arguments.clear();
            let frame = match self.requests.decode(&bytes[at..], &mut self.arguments) {
                Outcome::Complete(frame) => frame,
                Outcome::Incomplete { .. } => return Err(strange("a request is not whole")),
                Outcome::Invalid(_) => {
                    return Err(strange("something is no request; was it written by a later version?"));
                }
            };
            let whole = &bytes[at..at + frame.len];
            let (name, first): (&[u8], usize) = match frame.frame {
                Frame::Core(_) | Frame::Module(_) => {
                    (frame.frame.command().map_or(&b""[..], |id| id.spec().name.as_bytes()), 0)
                }
                Frame::Argv if !self.arguments.is_empty() => match self.arguments.get(whole, 0) {
                    Arg::Bytes(name) => (name, 1),
                    _ => return Err(strange("a request has no name")),
                },
                _ => return Err(strange("a request is none of a log; was it written by a later version?")),
            };
            let words = Words { list: &self.arguments, frame: whole, first };
            match name {
                b"MULTI" => give(Mark::Begin, &[]),
                b"EXEC" => give(Mark::End, &[]),
                _ => {
                    let db = u8::try_from(frame.channel)
                        .map_err(|_| strange("a database has a number that there is not"))?;
                    let given = words.effects(name, db, &mut |told| give(Mark::Effects, &[told]));
                    given.ok_or_else(|| {
                        strange("a request says no effect that is known; was it written by a later version?")
                    })?;
                }
            }
            at += frame.len;
        }
        if !row.is_empty() {
            give(Mark::Effects, &row);
        }
        Ok(())
    }
}

/// A string that is set, where that is what comes next, and the bytes that say so.
#[inline]
fn string(bytes: &[u8]) -> Option<(KeyedEffect<'_>, usize)> {
    let StringFrame { channel, key, value, expire_ms, len } = StringFrame::read(bytes)?;
    let effect = Effect::Set { value: Text::Bytes(value), expire_ms };
    Some((KeyedEffect { db: u8::try_from(channel).ok()?, key, effect }, len))
}

/// The arguments behind the name.
#[derive(Clone, Copy)]
struct Words<'a> {
    list: &'a ArgList,
    frame: &'a [u8],
    first: usize,
}

impl<'a> Words<'a> {
    fn len(self) -> usize {
        self.list.len() - self.first
    }
    fn get(self, at: usize) -> Option<Arg<'a>> {
        (at < self.len()).then(|| self.list.get(self.frame, self.first + at))
    }
    fn bytes(self, at: usize) -> Option<&'a [u8]> {
        match self.get(at)? {
            Arg::Bytes(bytes) => Some(bytes),
            Arg::Keyword(word) => Some(word.as_bytes()),
            Arg::Int(_) | Arg::Double(_) => None,
        }
    }
    fn number(self, at: usize) -> Option<u64> {
        match self.get(at)? {
            Arg::Int(value) => u64::try_from(value).ok(),
            Arg::Bytes(text) => parse_int(text).and_then(|value| u64::try_from(value).ok()),
            Arg::Double(_) | Arg::Keyword(_) => None,
        }
    }
    fn double(self, at: usize) -> Option<f64> {
        match self.get(at)? {
            Arg::Double(value) => Some(value),
            Arg::Bytes(text) => parse_double(text),
            Arg::Int(_) | Arg::Keyword(_) => None,
        }
    }
    fn db(self, at: usize) -> Option<u8> {
        u8::try_from(self.number(at)?).ok()
    }
    fn id(self, at: usize) -> Option<StreamId> {
        let text = std::str::from_utf8(self.bytes(at)?).ok()?;
        let (ms, seq) = text.split_once('-')?;
        Some(StreamId::new(ms.parse().ok()?, seq.parse().ok()?))
    }
    /// Exactly these words stand there.
    fn is(self, at: usize, words: &[&str]) -> Option<()> {
        let all = words.iter().enumerate().all(|(next, word)| {
            self.bytes(at + next).is_some_and(|bytes| bytes == word.as_bytes())
                || self.number(at + next).is_some_and(|number| *word == "1" && number == 1)
        });
        all.then_some(())
    }
    /// A number that ends the request, if it is there.
    fn last_number(self, at: usize) -> Option<Option<u64>> {
        if self.len() <= at { Some(None) } else { Some(Some(self.number(at)?)) }
    }
    /// A number behind a word, that ends the request, if it is there.
    fn last_option(self, at: usize, word: &str) -> Option<Option<u64>> {
        if self.len() <= at {
            return Some(None);
        }
        self.is(at, &[word])?;
        self.last_number(at + 1)
    }

    /// Gives what a request says; nothing when it says no effect.
    fn effects(self, name: &[u8], db: u8, give: &mut dyn FnMut(KeyedEffect<'_>)) -> Option<()> {
        match name {
            b"FLUSHDB" => give(KeyedEffect { db, key: b"", effect: Effect::Flush }),
            b"SWAPDB" => {
                give(KeyedEffect { db: self.db(0)?, key: b"", effect: Effect::Swap { with: self.db(1)? } })
            }
            b"XGROUP" => {
                let (key, group) = (self.bytes(1)?, self.bytes(2)?);
                give(KeyedEffect { db, key, effect: self.group(self.bytes(0)?, group)? });
            }
            _ => {
                let key = self.bytes(0)?;
                if let Some(effect) = self.single(name) {
                    give(KeyedEffect { db, key, effect });
                } else if name == b"XADD" {
                    self.append(|effect| give(KeyedEffect { db, key, effect }))?;
                } else {
                    self.members(name, |effect| give(KeyedEffect { db, key, effect }))?;
                }
            }
        }
        Some(())
    }

    /// A request that is one effect on its first argument.
    fn single(self, name: &[u8]) -> Option<Effect<'a>> {
        Some(match name {
            b"SET" => {
                Effect::Set { value: Text::Bytes(self.bytes(1)?), expire_ms: self.last_option(2, "PXAT")? }
            }
            b"SETRANGE" => Effect::Write { offset: self.number(1)?, bytes: self.bytes(2)? },
            b"PEXPIREAT" => Effect::Expire { expire_ms: Some(self.number(1)?) },
            b"PERSIST" => Effect::Expire { expire_ms: None },
            b"DEL" if self.len() == 1 => Effect::Delete { cause: Cause::Deleted },
            b"COPY" => {
                self.is(2, &["DB"])?;
                Effect::Copy { to_db: self.db(3)?, to: self.bytes(1)? }
            }
            b"LPOP" => Effect::ListPop { end: End::Front, count: self.number(1)? },
            b"RPOP" => Effect::ListPop { end: End::Back, count: self.number(1)? },
            b"LSET" => Effect::ListSet { index: self.number(1)?, element: self.bytes(2)? },
            b"HSETEX" => {
                self.is(1, &["PXAT"])?;
                self.is(3, &["FIELDS", "1"])?;
                let (field, value) = (self.bytes(5)?, self.bytes(6)?);
                Effect::HashSet { field, value, expire_ms: Some(self.number(2)?) }
            }
            b"HPEXPIREAT" => {
                self.is(2, &["FIELDS", "1"])?;
                Effect::HashExpire { field: self.bytes(4)?, expire_ms: Some(self.number(1)?) }
            }
            b"HPERSIST" => {
                self.is(1, &["FIELDS", "1"])?;
                Effect::HashExpire { field: self.bytes(3)?, expire_ms: None }
            }
            b"XDEL" => Effect::StreamDelete { id: self.id(1)? },
            b"XTRIM" => {
                self.is(1, &["MAXLEN"])?;
                Effect::StreamTrim { len: self.number(2)? }
            }
            b"XSETID" => {
                self.is(2, &["ENTRIESADDED"])?;
                self.is(4, &["MAXDELETEDID"])?;
                Effect::StreamCounters {
                    last_id: self.id(1)?,
                    entries_added: self.number(3)?,
                    max_deleted_id: self.id(5)?,
                }
            }
            b"XACK" => Effect::PendingRemove { group: self.bytes(1)?, id: self.id(2)? },
            _ => return self.named(std::str::from_utf8(name).ok()?),
        })
    }

    /// What no command says.
    fn named(self, name: &str) -> Option<Effect<'a>> {
        Some(match name {
            name::NEW => {
                let word = self.bytes(1)?;
                let (_, kind) = *KINDS.iter().find(|(name, _)| name.as_bytes() == word)?;
                Effect::New { kind, expire_ms: self.last_number(2)? }
            }
            name::MOVE => Effect::Move { to_db: self.db(1)?, to: self.bytes(2)? },
            name::LIST_INSERT => Effect::ListInsert { index: self.number(1)?, element: self.bytes(2)? },
            name::LIST_REMOVE => Effect::ListRemove { index: self.number(1)? },
            name::CONSUMER => Effect::Consumer {
                group: self.bytes(1)?,
                consumer: self.bytes(2)?,
                seen_ms: self.number(3)?,
                active_ms: self.last_number(4)?,
            },
            name::PENDING => Effect::Pending {
                group: self.bytes(1)?,
                consumer: self.bytes(2)?,
                id: self.id(3)?,
                delivered_ms: self.number(4)?,
                deliveries: self.number(5)?,
            },
            name::ENTRY => {
                let word = self.bytes(1)?;
                let number = SECTIONS.iter().position(|name| name.as_bytes() == word)?;
                let value = if self.len() > 2 { Some(self.bytes(2)?) } else { None };
                Effect::Catalogue { section: Section::ALL[number], value }
            }
            _ => return None,
        })
    }

    /// XGROUP, whose subcommand stands before the key.
    fn group(self, subcommand: &[u8], group: &'a [u8]) -> Option<Effect<'a>> {
        Some(match subcommand {
            b"CREATE" => {
                self.is(4, &["MKSTREAM"])?;
                Effect::GroupCreate {
                    group,
                    last_id: self.id(3)?,
                    entries_read: self.last_option(5, "ENTRIESREAD")?,
                }
            }
            b"SETID" => Effect::GroupPosition {
                group,
                last_id: self.id(3)?,
                entries_read: self.last_option(4, "ENTRIESREAD")?,
            },
            b"DESTROY" => Effect::GroupDestroy { group },
            b"DELCONSUMER" => Effect::ConsumerDelete { group, consumer: self.bytes(3)? },
            _ => return None,
        })
    }

    fn append(self, give: impl FnOnce(Effect<'_>)) -> Option<()> {
        let pairs = (2..self.len()).step_by(2).map(|at| Some((self.bytes(at)?, self.bytes(at + 1)?)));
        let pairs: Vec<(&[u8], &[u8])> = pairs.collect::<Option<_>>()?;
        give(Effect::StreamAppend { id: self.id(1)?, fields: Pairs::Slices(&pairs) });
        Some(())
    }

    /// Requests with several members.
    fn members(self, name: &[u8], mut give: impl FnMut(Effect<'a>)) -> Option<()> {
        let step = if matches!(name, b"HSET" | b"ZADD") { 2 } else { 1 };
        let given = self.len() - 1;
        if given == 0 || !given.is_multiple_of(step) {
            return None;
        }
        for at in (1..self.len()).step_by(step) {
            give(match name {
                b"LPUSH" => Effect::ListPush { end: End::Front, element: self.bytes(at)? },
                b"RPUSH" => Effect::ListPush { end: End::Back, element: self.bytes(at)? },
                b"HSET" => {
                    Effect::HashSet { field: self.bytes(at)?, value: self.bytes(at + 1)?, expire_ms: None }
                }
                b"HDEL" => Effect::HashDelete { field: self.bytes(at)? },
                b"SADD" => Effect::SetAdd { member: self.bytes(at)? },
                b"SREM" => Effect::SetRemove { member: self.bytes(at)? },
                b"ZADD" => Effect::SortedSetAdd { member: self.bytes(at + 1)?, score: self.double(at)? },
                b"ZREM" => Effect::SortedSetRemove { member: self.bytes(at)? },
                _ => return None,
            });
        }
        Some(())
    }
}
