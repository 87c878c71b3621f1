//! Owns: effects to requests. Does not own: the way back (`super::decode`).

use std::convert::Infallible;

use weft_protocol::Arg;
use weft_protocol::respb::{Mode, RequestWriter};
use weft_store::effect::{Effect, KeyedEffect, Kind, Read, Text};
use weft_store::list::End;
use weft_store::stream::StreamId;
use weft_store::wants;

use super::{KINDS, MEMBERS_MAX, SECTIONS, name};

/// Bytes of a request beside its first member from which on no more members join it.
const REQUEST_BYTES_MAX: usize = 64 << 10;

/// An argument of a request that is being made. Numbers that a frame has no room for as such go as text.
#[derive(Clone, Copy, Debug)]
enum Word<'a> {
    Plain(Arg<'a>),
    Id(StreamId),
}

/// What a request needs until it is written.
#[derive(Debug, Default)]
pub struct Encoder {
    /// Texts of ids, one behind the other; a request has two at most.
    ids: [IdText; 2],
}

/// The digits of an id.
#[derive(Clone, Copy, Debug)]
struct IdText {
    bytes: [u8; 41],
    len: usize,
}

impl Default for IdText {
    fn default() -> Self {
        Self { bytes: [0; 41], len: 0 }
    }
}

impl IdText {
    fn write(&mut self, id: StreamId) {
        use std::io::Write as _;
        let mut rest = &mut self.bytes[..];
        // Two numbers of 20 digits and a dash are the room that there is.
        let _ = write!(rest, "{}-{}", id.ms, id.seq);
        self.len = 41 - rest.len();
    }
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Encoder {
    /// Appends a group, with its marks if it is more than one request. Says how many requests they are, marks included;
    /// none where nothing of it is to be kept.
    pub fn group(&mut self, effects: Read<'_>, out: &mut Vec<u8>) -> u32 {
        if let Some((db, key, text)) = effects.as_set() {
            RequestWriter::new(out, db.into()).set(key, text);
            return 1;
        }
        let Ok(count) = self.requests(effects, true, out, |_| Ok::<(), Infallible>(()));
        count
    }
    /// The same of a large group: between two requests `pass` may take away what stands there.
    ///
    /// # Errors
    /// Those of `pass`.
    pub fn large_group<E>(
        &mut self,
        effects: Read<'_>,
        out: &mut Vec<u8>,
        pass: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<u32, E> {
        self.requests(effects, true, out, pass)
    }

    /// Appends effects that need not be kept together. Says how many requests they are.
    pub fn run(&mut self, effects: Read<'_>, out: &mut Vec<u8>) -> u32 {
        let Ok(count) = self.requests(effects, false, out, |_| Ok::<(), Infallible>(()));
        count
    }

    fn requests<E>(
        &mut self,
        effects: Read<'_>,
        has_marks: bool,
        out: &mut Vec<u8>,
        mut pass: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<u32, E> {
        let mut kept = effects.filter(|told| told.effect.wanted_by() & wants::VALUES != 0);
        let mut next = kept.next().map(Open::new);
        let (mut requests, mut is_marked) = (0, false);
        while let Some(mut open) = next {
            next = kept.find(|told| !open.takes(told)).map(Open::new);
            if has_marks && requests == 0 && next.is_some() {
                is_marked = true;
                RequestWriter::new(out, 0).command(&[b"MULTI"], Mode::Exact);
            }
            self.request(&open, out);
            requests += 1;
            pass(out)?;
        }
        if is_marked {
            RequestWriter::new(out, 0).command(&[b"EXEC"], Mode::Exact);
            requests += 2;
        }
        Ok(requests)
    }

    /// Appends one effect.
    pub fn effect(&mut self, told: &KeyedEffect<'_>, out: &mut Vec<u8>) {
        self.request(&Open::new(*told), out);
    }

    fn request(&mut self, open: &Open<'_>, out: &mut Vec<u8>) {
        let KeyedEffect { db, effect, .. } = open.first;
        let mut words = Vec::with_capacity(8 + open.more.len() * 2);
        name_and_key(&mut words, &open.first);
        fields(&mut words, &effect);
        open.more.iter().for_each(|effect| member(&mut words, effect));
        self.write(&words, db, out);
    }

    fn write(&mut self, words: &[Word<'_>], db: u8, out: &mut Vec<u8>) {
        let ids = words.iter().filter_map(|word| if let Word::Id(id) = word { Some(*id) } else { None });
        ids.zip(&mut self.ids).for_each(|(id, text)| text.write(id));
        let mut texts = self.ids.iter().map(IdText::as_bytes);
        let argv: Vec<Arg<'_>> = words
            .iter()
            .map(|word| match *word {
                Word::Plain(arg) => arg,
                Word::Id(_) => Arg::Bytes(texts.next().unwrap_or_default()),
            })
            .collect();
        RequestWriter::new(out, db.into()).arguments(&argv[..], Mode::Exact);
    }
}

/// A request that more members may join.
struct Open<'a> {
    first: KeyedEffect<'a>,
    more: Vec<Effect<'a>>,
    bytes: usize,
}

impl<'a> Open<'a> {
    const fn new(first: KeyedEffect<'a>) -> Self {
        Self { first, more: Vec::new(), bytes: 0 }
    }
    /// Takes an effect that is another member of the same request.
    fn takes(&mut self, told: &KeyedEffect<'a>) -> bool {
        let first = &self.first;
        let is_alike = match (first.effect, told.effect) {
            (Effect::ListPush { end, .. }, Effect::ListPush { end: other, .. }) => end == other,
            (Effect::HashSet { expire_ms: None, .. }, Effect::HashSet { expire_ms: None, .. }) => true,
            (one, other) => {
                use Effect::{HashDelete, SetAdd, SetRemove, SortedSetAdd, SortedSetRemove};
                matches!(
                    (one, other),
                    (SetAdd { .. }, SetAdd { .. })
                        | (SetRemove { .. }, SetRemove { .. })
                        | (HashDelete { .. }, HashDelete { .. })
                        | (SortedSetAdd { .. }, SortedSetAdd { .. })
                        | (SortedSetRemove { .. }, SortedSetRemove { .. })
                )
            }
        };
        let joins = is_alike
            && first.db == told.db
            && first.key == told.key
            && self.more.len() + 1 < MEMBERS_MAX
            && self.bytes < REQUEST_BYTES_MAX;
        if joins {
            self.bytes += match told.effect {
                Effect::ListPush { element, .. } => element.len(),
                Effect::HashSet { field, value, .. } => field.len() + value.len(),
                Effect::SetAdd { member } | Effect::SetRemove { member } => member.len(),
                Effect::SortedSetAdd { member, .. } | Effect::SortedSetRemove { member } => member.len(),
                _ => 0,
            };
            self.more.push(told.effect);
        }
        joins
    }
}

const fn bytes(bytes: &[u8]) -> Word<'_> {
    Word::Plain(Arg::Bytes(bytes))
}
const fn keyword(word: &'static str) -> Word<'static> {
    Word::Plain(Arg::Keyword(word))
}
/// Times, counts and offsets stay far below 2^63.
fn number(value: u64) -> Word<'static> {
    Word::Plain(Arg::Int(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn name_and_key<'a>(words: &mut Vec<Word<'a>>, told: &KeyedEffect<'a>) {
    let KeyedEffect { db, key, effect } = *told;
    let name = match effect {
        Effect::Set { .. } => "SET",
        Effect::New { .. } => name::NEW,
        Effect::Write { .. } => "SETRANGE",
        Effect::Expire { expire_ms: Some(_) } => "PEXPIREAT",
        Effect::Expire { expire_ms: None } => "PERSIST",
        Effect::Delete { .. } => "DEL",
        Effect::Move { .. } => name::MOVE,
        Effect::Copy { .. } => "COPY",
        Effect::ListPush { end: End::Front, .. } => "LPUSH",
        Effect::ListPush { end: End::Back, .. } => "RPUSH",
        Effect::ListPop { end: End::Front, .. } => "LPOP",
        Effect::ListPop { end: End::Back, .. } => "RPOP",
        Effect::ListSet { .. } => "LSET",
        Effect::ListInsert { .. } => name::LIST_INSERT,
        Effect::ListRemove { .. } => name::LIST_REMOVE,
        Effect::HashSet { expire_ms: None, .. } => "HSET",
        Effect::HashSet { expire_ms: Some(_), .. } => "HSETEX",
        Effect::HashExpire { expire_ms: Some(_), .. } => "HPEXPIREAT",
        Effect::HashExpire { expire_ms: None, .. } => "HPERSIST",
        Effect::HashDelete { .. } | Effect::FieldExpired { .. } => "HDEL",
        Effect::SetAdd { .. } => "SADD",
        Effect::SetRemove { .. } => "SREM",
        Effect::SortedSetAdd { .. } => "ZADD",
        Effect::SortedSetRemove { .. } => "ZREM",
        Effect::StreamAppend { .. } => "XADD",
        Effect::StreamDelete { .. } => "XDEL",
        Effect::StreamTrim { .. } => "XTRIM",
        Effect::StreamCounters { .. } => "XSETID",
        Effect::GroupCreate { .. } => {
            return words.extend([keyword("XGROUP"), keyword("CREATE"), bytes(key)]);
        }
        Effect::GroupDestroy { .. } => {
            return words.extend([keyword("XGROUP"), keyword("DESTROY"), bytes(key)]);
        }
        Effect::GroupPosition { .. } => {
            return words.extend([keyword("XGROUP"), keyword("SETID"), bytes(key)]);
        }
        Effect::ConsumerDelete { .. } => {
            return words.extend([keyword("XGROUP"), keyword("DELCONSUMER"), bytes(key)]);
        }
        Effect::Consumer { .. } => name::CONSUMER,
        Effect::Pending { .. } => name::PENDING,
        Effect::PendingRemove { .. } => "XACK",
        Effect::Flush => return words.push(keyword("FLUSHDB")),
        Effect::Swap { .. } => return words.extend([keyword("SWAPDB"), number(db.into())]),
        Effect::Catalogue { .. } => name::ENTRY,
        Effect::FieldsExpired { .. }
        | Effect::Wrote { .. }
        | Effect::Created
        | Effect::Missed
        | Effect::Event { .. } => unreachable!("what stands beside the data is not kept"),
    };
    words.extend([keyword(name), bytes(key)]);
}

/// What follows name and key.
fn fields<'a>(words: &mut Vec<Word<'a>>, effect: &Effect<'a>) {
    match *effect {
        Effect::Set { value, expire_ms } => {
            words.push(match value {
                Text::Bytes(text) => bytes(text),
                Text::Int(value) => Word::Plain(Arg::Int(value)),
            });
            if let Some(at) = expire_ms {
                words.extend([keyword("PXAT"), number(at)]);
            }
        }
        Effect::New { kind, expire_ms } => {
            let name = KINDS.iter().find(|(_, other)| *other == kind).map_or("", |(name, _)| name);
            words.push(keyword(name));
            words.extend(expire_ms.map(number));
        }
        Effect::Write { offset, bytes: text } => words.extend([number(offset), bytes(text)]),
        Effect::Expire { expire_ms } => words.extend(expire_ms.map(number)),
        Effect::Move { to_db, to } => words.extend([number(to_db.into()), bytes(to)]),
        Effect::Copy { to_db, to } => {
            words.extend([bytes(to), keyword("DB"), number(to_db.into()), keyword("REPLACE")]);
        }
        Effect::ListPop { count, .. } => words.push(number(count)),
        Effect::ListSet { index, element } | Effect::ListInsert { index, element } => {
            words.extend([number(index), bytes(element)]);
        }
        Effect::ListRemove { index } => words.push(number(index)),
        Effect::HashSet { field, value, expire_ms: Some(at) } => words.extend([
            keyword("PXAT"),
            number(at),
            keyword("FIELDS"),
            number(1),
            bytes(field),
            bytes(value),
        ]),
        Effect::HashExpire { field, expire_ms } => {
            words.extend(expire_ms.map(number));
            words.extend([keyword("FIELDS"), number(1), bytes(field)]);
        }
        Effect::Swap { with } => words.push(number(with.into())),
        Effect::Catalogue { section, value } => {
            words.push(keyword(SECTIONS[section as usize]));
            words.extend(value.map(bytes));
        }
        _ => member(words, effect),
    }
}

/// A member of a request that may have several, or what a stream's effect says.
fn member<'a>(words: &mut Vec<Word<'a>>, effect: &Effect<'a>) {
    match *effect {
        Effect::ListPush { element, .. } => words.push(bytes(element)),
        Effect::HashSet { field, value, .. } => words.extend([bytes(field), bytes(value)]),
        Effect::HashDelete { field } | Effect::FieldExpired { field } => words.push(bytes(field)),
        Effect::SetAdd { member } | Effect::SetRemove { member } | Effect::SortedSetRemove { member } => {
            words.push(bytes(member));
        }
        Effect::SortedSetAdd { member, score } => {
            words.extend([Word::Plain(Arg::Double(score)), bytes(member)]);
        }
        _ => stream(words, effect),
    }
}

fn stream<'a>(words: &mut Vec<Word<'a>>, effect: &Effect<'a>) {
    match *effect {
        Effect::StreamAppend { id, fields } => {
            words.push(Word::Id(id));
            fields.iter().for_each(|(name, value)| words.extend([bytes(name), bytes(value)]));
        }
        Effect::StreamDelete { id } => words.push(Word::Id(id)),
        Effect::StreamTrim { len } => words.extend([keyword("MAXLEN"), number(len)]),
        Effect::StreamCounters { last_id, entries_added, max_deleted_id } => words.extend([
            Word::Id(last_id),
            keyword("ENTRIESADDED"),
            number(entries_added),
            keyword("MAXDELETEDID"),
            Word::Id(max_deleted_id),
        ]),
        Effect::GroupCreate { group, last_id, entries_read } => {
            words.extend([bytes(group), Word::Id(last_id), keyword("MKSTREAM")]);
            if let Some(read) = entries_read {
                words.extend([keyword("ENTRIESREAD"), number(read)]);
            }
        }
        Effect::GroupPosition { group, last_id, entries_read } => {
            words.extend([bytes(group), Word::Id(last_id)]);
            if let Some(read) = entries_read {
                words.extend([keyword("ENTRIESREAD"), number(read)]);
            }
        }
        Effect::GroupDestroy { group } => words.push(bytes(group)),
        Effect::Consumer { group, consumer, seen_ms, active_ms } => {
            words.extend([bytes(group), bytes(consumer), number(seen_ms)]);
            words.extend(active_ms.map(number));
        }
        Effect::ConsumerDelete { group, consumer } => words.extend([bytes(group), bytes(consumer)]),
        Effect::Pending { group, consumer, id, delivered_ms, deliveries } => words.extend([
            bytes(group),
            bytes(consumer),
            Word::Id(id),
            number(delivered_ms),
            number(deliveries),
        ]),
        Effect::PendingRemove { group, id } => words.extend([bytes(group), Word::Id(id)]),
        _ => {}
    }
}

const _: () = assert!(KINDS.len() == Kind::Stream as usize + 1, "every kind has a name");
