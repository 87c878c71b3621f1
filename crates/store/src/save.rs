//! Owns: all keys as they were at one moment, told while others go on changing them. Does not own: where they are
//! written to.
//!
//! A [`Saver`] begins behind the gate: from that moment on each key is told as it was then, once. It walks the shards
//! in the order of hashes, some keys under each lock. Whoever is about to change a key that the walk has not come to
//! tells it first (`ShardGuard::wanted`, which every primitive asks before its first change), and notes it, so that the
//! walk passes it over. So memory grows by 16 bytes and a half for each key that was changed early in the shards that
//! are still to come, and by what was told early and not taken yet.
//!
//! **Large values** are told by piece, and nobody waits longer for one than for small ones. A collection that the walk
//! meets stays where it is, and some of it is told under each lock. Who is about to change it before all of it is told
//! sets a copy aside first: memory as it stands, 10 ms for a million members. Large strings are counted, so theirs
//! costs nothing: it is set aside at once, and told as a string and what is written into it. What was set aside is told
//! without a lock. The pieces of a key come out in their order, with others' keys between them.
//!
//! FLUSHDB, FLUSHALL and SWAPDB change all keys at once: they make the saver void, and it is to be begun anew.

use crate::effect::{Effect, Tape, Text, wants};
use crate::entry::heap::Key;
use crate::entry::{Entry, Garbage};
use crate::hash::{KeyHasher, position_of};
use crate::keyspace::{Keyspace, Worker};
use crate::recorder::{Pen, Recorder};
use crate::shard::ShardGuard;
use crate::sync::{Mutex, lock};
use crate::value::{Object, ObjectRef, Part, ValueRef};
use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes of keys told early that may wait to be taken before writes are held back.
pub const EARLY_BYTES_MAX: usize = 64 << 20;
/// Bytes that are told under one lock, and what the last of the keys takes: 20 µs or so.
const STEP_BYTES: usize = 32 << 10;
/// Keys that are told under one lock: each is a miss of all caches.
const STEP_KEYS: usize = 64;
/// Bytes of a value from which on it is told by piece.
const LARGE_BYTES: usize = 64 << 10;
/// Bytes of copies that were set aside before writes are held back, where there is more than one.
const ASIDE_BYTES_MAX: usize = 64 << 20;

/// How far a shard is saved.
#[derive(Debug, Default)]
struct Progress {
    /// The database that the walk stands in; those before it are saved.
    db: u8,
    /// The position in it: keys before it are saved.
    position: u32,
    /// Keys behind that place that need not be told any more.
    done: HashSet<Done>,
    /// Collections before that place that are told by piece, the first one up to its part: few, since the walk waits
    /// for them.
    large: VecDeque<Large>,
}

/// Which key was told before the walk came to it: 120 bits of two hashes, and its database. One hash would not do: of
/// ten million keys two have the same 64 bits once in 370,000 times, and one of them would not be told as it was.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Done {
    hash: u64,
    /// The database in the upper 8 bits.
    other: u64,
}

/// The seed of the other hash. Whoever cannot choose keys of one hash cannot choose them of both.
const OTHER_SEED: u64 = 0x5a7e_0a51_de00_0001;

impl Done {
    fn of(db: u8, key: &[u8], hash: u64) -> Self {
        let other = KeyHasher::with_seed(OTHER_SEED).hash(key);
        Self { hash, other: u64::from(db) << 56 | other >> 8 }
    }
}

/// A collection that is told by piece where it stands. Nobody has changed it since the moment.
#[derive(Debug)]
struct Large {
    db: u8,
    key: Box<[u8]>,
    part: Part,
}

/// A value that was set aside, to be told by piece.
#[derive(Debug)]
struct Aside {
    db: u8,
    key: Box<[u8]>,
    value: Garbage,
    expire_ms: Option<u64>,
    part: Part,
    /// Memory that it takes beside the keyspace's own.
    bytes: usize,
}

/// What a shard knows of a saver: nothing when there is none, or when all of it is saved.
#[derive(Debug, Default)]
pub(crate) struct Saving(RefCell<Option<Box<Progress>>>);

/// What a keyspace knows of its saver.
#[derive(Debug, Default)]
pub(crate) struct Saves {
    is_running: AtomicBool,
    /// A barrier has come.
    is_void: AtomicBool,
    /// Told by those who were about to change it.
    early: Mutex<Tape>,
    early_bytes: AtomicUsize,
    /// Large values that were about to be changed.
    asides: Mutex<VecDeque<Aside>>,
    /// How many, and their bytes, with the one that is being told.
    aside_count: AtomicUsize,
    aside_bytes: AtomicUsize,
    keys: AtomicU64,
}

impl Saves {
    /// All keys of a database change at once.
    pub(crate) fn make_void(&self) {
        self.is_void.store(true, Relaxed);
    }
    /// One copy alone is no reason: writes would wait until all of it is told, however large it is.
    pub(crate) fn is_behind(&self) -> bool {
        self.early_bytes.load(Relaxed) > EARLY_BYTES_MAX
            || self.aside_count.load(Relaxed) > 1 && self.aside_bytes.load(Relaxed) > ASIDE_BYTES_MAX
    }
    fn set_aside(&self, aside: Aside) {
        let mut asides = lock(&self.asides);
        self.aside_bytes.fetch_add(aside.bytes, Relaxed);
        self.aside_count.fetch_add(1, Relaxed);
        asides.push_back(aside);
    }
    fn has_told(&self, aside: &Aside) {
        self.aside_bytes.fetch_sub(aside.bytes, Relaxed);
        self.aside_count.fetch_sub(1, Relaxed);
    }
}

/// Tells all keys as they were at one moment. One for a keyspace.
pub struct Saver<'k> {
    keyspace: &'k Keyspace,
    shard: u32,
    epoch: u64,
    recorder: Recorder,
    /// What is told without a lock.
    aside: Option<Aside>,
}

/// Another saver is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsSaving;

impl<'k> Worker<'k> {
    /// Begins to save: this is the moment. What stands outside of databases is told at once. Closes the gate for some
    /// microseconds.
    ///
    /// # Errors
    /// When another saver is at work.
    pub fn saver(&mut self, tape: &mut Tape) -> Result<Saver<'k>, IsSaving> {
        let keyspace = self.keyspace();
        let world = self.world();
        let saves = keyspace.saves();
        if saves.is_running.swap(true, Relaxed) {
            return Err(IsSaving);
        }
        saves.is_void.store(false, Relaxed);
        saves.keys.store(0, Relaxed);
        let mut guards = world.guards();
        for id in 0..keyspace.shard_count() {
            guards.shard_by_id(id).data.saving.0.replace(Some(Box::default()));
        }
        for section in crate::catalogue::Section::ALL {
            for (name, value) in keyspace.catalogue().entries(section) {
                tape.push(0, &name, &Effect::Catalogue { section, value: Some(&value) });
            }
        }
        keyspace.subscribe(wants::SAVE);
        let epoch = keyspace.directory.domain.epoch();
        let recorder = Recorder::default();
        Ok(Saver { keyspace, shard: 0, epoch, recorder, aside: None })
    }
}

impl Saver<'_> {
    /// The epoch of the moment: what became true in an earlier one is told, what does in a later one is not.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }
    /// Whether a barrier has come: what was told is of no moment.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.keyspace.saves().is_void.load(Relaxed)
    }
    /// Keys that were told.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.keyspace.saves().keys.load(Relaxed)
    }

    /// Tells some more keys. Says whether there are more; at the end all were told, and nobody tells any early.
    pub fn step(&mut self, worker: &mut Worker<'_>, tape: &mut Tape) -> bool {
        self.take_early(tape);
        if self.tell_aside(tape) {
            return true;
        }
        if self.shard < self.keyspace.shard_count() {
            let batch = worker.enter();
            let guard = batch.lock_shard(self.shard);
            if !guard.save_some(&mut self.recorder, tape) {
                self.shard += 1;
            }
            return true;
        }
        // Whoever has told a key early, or set one aside, has done so under a lock that was held before the shard was
        // through.
        self.take_early(tape);
        self.tell_aside(tape)
    }
    /// Tells some of what was set aside, without a lock; says whether there was any.
    fn tell_aside(&mut self, tape: &mut Tape) -> bool {
        let saves = self.keyspace.saves();
        if self.aside.is_none() && saves.aside_count.load(Relaxed) > 0 {
            self.aside = lock(&saves.asides).pop_front();
        }
        let Some(aside) = &mut self.aside else { return false };
        let (db, key, expire_ms) = (aside.db, &*aside.key, aside.expire_ms);
        let next = match &aside.value {
            Garbage::Object(object) => {
                let value = (object.view(), expire_ms);
                tell_piece(&mut self.recorder, tape, (db, key), value, &aside.part)
            }
            Garbage::Shared(bytes) => tell_text(tape, (db, key), (bytes.as_slice(), expire_ms), &aside.part),
            Garbage::Nothing => None,
        };
        match next {
            Some(part) => aside.part = part,
            None => {
                saves.has_told(aside);
                if let Some(aside) = self.aside.take() {
                    self.keyspace.discard(aside.value);
                }
            }
        }
        true
    }
    fn take_early(&self, tape: &mut Tape) {
        let saves = self.keyspace.saves();
        if saves.early_bytes.load(Relaxed) > 0 {
            let early = std::mem::take(&mut *lock(&saves.early));
            saves.early_bytes.fetch_sub(early.bytes().len(), Relaxed);
            tape.append(&early);
        }
    }
}

impl Drop for Saver<'_> {
    fn drop(&mut self) {
        self.keyspace.unsubscribe(wants::SAVE);
        let saves = self.keyspace.saves();
        let early = std::mem::take(&mut *lock(&saves.early));
        saves.early_bytes.fetch_sub(early.bytes().len(), Relaxed);
        let asides = std::mem::take(&mut *lock(&saves.asides));
        for aside in asides.into_iter().chain(self.aside.take()) {
            saves.has_told(&aside);
            self.keyspace.discard(aside.value);
        }
        saves.is_running.store(false, Relaxed);
    }
}

/// Tells a key with all that it holds.
fn tell_key(
    recorder: &mut Recorder,
    tape: &mut Tape,
    (db, key): (u8, &[u8]),
    (value, expire_ms): (ValueRef<'_>, Option<u64>),
) {
    let text = match value {
        ValueRef::Bytes(bytes) => Text::Bytes(bytes),
        ValueRef::Int(value) => Text::Int(value),
        ValueRef::Shared(bytes) => Text::Bytes(bytes.as_slice()),
        ValueRef::Object(object) => {
            return drop(tell(recorder, tape, (db, key), (object, expire_ms), (&Part::Start, usize::MAX)));
        }
    };
    tape.push(db, key, &Effect::Set { value: text, expire_ms });
}
/// Tells a piece of a large string, and gives the part up to which it was told; nothing at its end.
fn tell_text(
    tape: &mut Tape,
    (db, key): (u8, &[u8]),
    (text, expire_ms): (&[u8], Option<u64>),
    part: &Part,
) -> Option<Part> {
    let from = part.number() as usize;
    let to = text.len().min(from + STEP_BYTES);
    let piece = &text[from..to];
    let write = |at: usize, bytes| Effect::Write { offset: at as u64, bytes };
    if from > 0 {
        tape.push(db, key, &write(from, piece));
    } else {
        tape.push(db, key, &Effect::Set { value: Text::Bytes(piece), expire_ms });
        // It gets its length at once: whoever loads it moves nothing.
        tape.push(db, key, &write(text.len() - 1, &text[text.len() - 1..]));
    }
    (to < text.len()).then_some(Part::At(to as u64))
}
/// Tells a piece of an object, and gives the part up to which it was told; nothing at its end.
fn tell_piece(
    recorder: &mut Recorder,
    tape: &mut Tape,
    key: (u8, &[u8]),
    value: (ObjectRef<'_>, Option<u64>),
    part: &Part,
) -> Option<Part> {
    tell(recorder, tape, key, value, (part, STEP_BYTES))
}
fn tell(
    recorder: &mut Recorder,
    tape: &mut Tape,
    (db, key): (u8, &[u8]),
    (object, expire_ms): (ObjectRef<'_>, Option<u64>),
    (part, bytes_max): (&Part, usize),
) -> Option<Part> {
    if *part == Part::Start {
        tape.push(db, key, &Effect::New { kind: object.kind(), expire_ms });
    }
    recorder.clear();
    let mut pen = Pen::new(recorder, wants::VALUES, db, key)?;
    let next = object.tell_piece(&mut pen, part, bytes_max);
    tape.append(recorder.tape());
    recorder.clear();
    next
}

/// What a key holds, if it is to be told by piece, and the memory that a copy takes.
fn large(entry: Entry<'_>) -> Option<(ValueRef<'_>, usize)> {
    let value = entry.value();
    match value {
        ValueRef::Shared(bytes) => (bytes.as_slice().len() >= LARGE_BYTES).then_some((value, 0)),
        ValueRef::Object(_) => {
            let bytes = entry.object().filter(|object| !object.is_compact()).map_or(0, Object::memory_bytes);
            (bytes >= LARGE_BYTES).then_some((value, bytes))
        }
        ValueRef::Bytes(_) | ValueRef::Int(_) => None,
    }
}

fn expiry(entry: Entry<'_>) -> Option<u64> {
    Some(entry.expire_ms()).filter(|expire_ms| *expire_ms != u64::MAX)
}

/// A copy of a large value.
fn set_aside(
    saves: &Saves,
    (db, key): (u8, &[u8]),
    (value, bytes): (ValueRef<'_>, usize),
    (expire_ms, part): (Option<u64>, Part),
) {
    let value = match value {
        ValueRef::Object(object) => Garbage::Object(object.duplicate()),
        ValueRef::Shared(bytes) => Garbage::Shared(bytes.clone()),
        ValueRef::Bytes(_) | ValueRef::Int(_) => Garbage::Nothing,
    };
    saves.set_aside(Aside { db, key: key.into(), value, expire_ms, part, bytes });
}

impl ShardGuard<'_> {
    /// Before a key is changed, or looked at by who may change it: tells it if the walk has not come to it.
    #[cold]
    pub(crate) fn save_first(&self, db: u8, key: &Key<'_>) {
        let mut saving = self.data.saving.0.borrow_mut();
        let Some(progress) = &mut *saving else { return };
        let saves = self.keyspace.saves();
        let begun = progress.large.iter().position(|large| large.db == db && *large.key == *key.bytes());
        let begun = begun.and_then(|at| progress.large.remove(at));
        if begun.is_none() {
            let is_passed =
                db < progress.db || db == progress.db && position_of(key.hash()) < progress.position;
            if is_passed || !progress.done.insert(Done::of(db, key.bytes(), key.hash())) {
                return;
            }
        }
        let Some(found) = self.heap().find(db as usize, key) else { return };
        let entry = self.heap().entry(db as usize, found);
        let (place, expire_ms) = ((db, key.bytes()), expiry(entry));
        if begun.is_none() {
            saves.keys.fetch_add(1, Relaxed);
        }
        if let Some(value) = large(entry) {
            return set_aside(
                saves,
                place,
                value,
                (expire_ms, begun.map_or(Part::Start, |large| large.part)),
            );
        }
        let mut early = lock(&saves.early);
        let before = early.bytes().len();
        tell_key(&mut Recorder::default(), &mut early, place, (entry.value(), expire_ms));
        saves.early_bytes.fetch_add(early.bytes().len() - before, Relaxed);
    }

    /// Tells some keys of the shard, and says whether there are more.
    fn save_some(&self, recorder: &mut Recorder, tape: &mut Tape) -> bool {
        let mut saving = self.data.saving.0.borrow_mut();
        let Some(progress) = &mut *saving else { return false };
        if let Some(first) = progress.large.front_mut() {
            if !self.save_piece(first, recorder, tape) {
                progress.large.pop_front();
            }
            return true;
        }
        let (env, saves) = (self.keyspace.env(self.id()), self.keyspace.saves());
        let (end, mut keys) = (tape.bytes().len() + STEP_BYTES, 0);
        while usize::from(progress.db) < self.keyspace.database_count() {
            let db = progress.db;
            let Progress { done, large: pieces, position, .. } = &mut **progress;
            let next = self.heap().scan(env, db.into(), *position, |entry, hash| {
                keys += 1;
                if !done.is_empty() && done.remove(&Done::of(db, entry.key(), hash)) {
                    return;
                }
                saves.keys.fetch_add(1, Relaxed);
                match large(entry) {
                    Some((ValueRef::Object(_), _)) => {
                        pieces.push_back(Large { db, key: entry.key().into(), part: Part::Start });
                    }
                    Some(value) => {
                        set_aside(saves, (db, entry.key()), value, (expiry(entry), Part::Start));
                    }
                    None => tell_key(recorder, tape, (db, entry.key()), (entry.value(), expiry(entry))),
                }
            });
            match next {
                Some(position) => progress.position = position,
                None => (progress.db, progress.position) = (db + 1, 0),
            }
            if keys >= STEP_KEYS || tape.bytes().len() >= end || !progress.large.is_empty() {
                return true;
            }
        }
        *saving = None;
        false
    }
    /// Tells a piece of a collection where it stands; says whether there is more of it.
    fn save_piece(&self, large: &mut Large, recorder: &mut Recorder, tape: &mut Tape) -> bool {
        let found = self.heap().find(large.db.into(), &self.keyspace.key(&large.key));
        debug_assert!(found.is_some(), "whoever removes it sets it aside first");
        let Some(found) = found else { return false };
        let entry = self.heap().entry(large.db.into(), found);
        let ValueRef::Object(object) = entry.value() else { return false };
        let value = (object, expiry(entry));
        let next = tell_piece(recorder, tape, (large.db, &large.key), value, &large.part);
        next.is_some_and(|part| {
            large.part = part;
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Rng, XorShift};
    use crate::effect::{Cause, KeyedEffect, Pairs};
    use crate::keyspace::Batch;
    use crate::list::End;
    use crate::shard::{Expiry, Op};
    use crate::stream::StreamId;
    use crate::value::NewValue;
    use crate::{Config, Digest, KeyHasher, Replayer, SetLimits};

    fn keyspace(seed: u64) -> Keyspace {
        Keyspace::new(Config {
            shards: 8,
            databases: 3,
            hasher: KeyHasher::with_seed(seed),
            seed,
            ..Config::default()
        })
    }

    /// A random change of a random key.
    fn change(batch: &Batch<'_>, recorder: &mut Recorder, rng: &mut XorShift) {
        let name = format!("key:{}", rng.below(600));
        let key = batch.keyspace().key(name.as_bytes());
        let op = &mut Op::new(rng.below(3) as u8, 1000, recorder);
        let mut guard = batch.lock(&key);
        match rng.below(8) {
            0 => drop(guard.remove(op, &key)),
            1 => drop(guard.set_expire_ms(op, &key, Some(2000 + u64::from(rng.below(1000))))),
            2 => drop(guard.increment(op, &key, 7)),
            3 => {
                let member = rng.next_u64().to_le_bytes();
                let add = guard.change_set(op, &key, true, SetLimits::default(), |set| {
                    set.add(&member);
                    crate::Changed::yes(())
                });
                assert!(add.is_ok() || add == Err(crate::WrongType));
            }
            4 => drop(guard.set_range(op, &key, 3, b"xyz")),
            _ => {
                let value = rng.next_u64().to_string();
                drop(guard.set(op, &key, NewValue::text(value.as_bytes()), Expiry::Keep));
            }
        }
        recorder.end_group();
        recorder.clear();
    }

    #[test]
    fn what_is_saved_is_of_one_moment_whatever_happens_meanwhile() {
        for seed in 1..40 {
            println!("seed {seed}");
            let (keyspace, copy) = (keyspace(seed), keyspace(seed + 100));
            let mut rng = XorShift::new(seed);
            let (mut worker, mut other) = (keyspace.worker().unwrap(), keyspace.worker().unwrap());
            let mut recorder = Recorder::default();
            (0..2000).for_each(|_| change(&other.enter(), &mut recorder, &mut rng));
            let moment = Digest::of_keyspace(&worker.world());
            let mut tape = Tape::default();
            let mut saver = worker.saver(&mut tape).unwrap();
            assert!(keyspace.worker().unwrap().saver(&mut Tape::default()).is_err(), "one at a time");
            while saver.step(&mut worker, &mut tape) {
                (0..rng.below(40)).for_each(|_| change(&other.enter(), &mut recorder, &mut rng));
            }
            assert!(!saver.is_void());
            drop(saver);
            assert_eq!(keyspace.wanted(), 0);
            let mut there = copy.worker().unwrap();
            let world = there.world();
            let mut replayer = Replayer::default();
            tape.read().for_each(|told| replayer.apply(&world, &told));
            assert_eq!(Digest::of_keyspace(&world), moment);
            assert_ne!(Digest::of_keyspace(&worker.world()), moment, "it has changed");
        }
    }

    /// Members of each large value at first.
    const MEMBERS: u64 = 5000;

    /// A random change of a value of each type.
    fn change_large(batch: &Batch<'_>, replayer: &mut Replayer, number: u64, dice: u64) {
        let text = format!("member:{number:>20}");
        let member = text.as_bytes();
        let mut told = |key: &str, effect| {
            assert!(replayer.apply_in(batch, &KeyedEffect { db: 1, key: key.as_bytes(), effect }));
        };
        let id = StreamId::new(number + 1, 0);
        match dice {
            0 => told("list", Effect::ListPush { end: End::Back, element: member }),
            1 => told("hash", Effect::HashSet { field: member, value: b"a value", expire_ms: None }),
            2 => told("hash", Effect::HashSet { field: member, value: b"", expire_ms: Some(1 << 40) }),
            3 => told("set", Effect::SetAdd { member }),
            4 => told("zset", Effect::SortedSetAdd { member, score: (number % 97) as f64 }),
            5 => told("stream", Effect::StreamAppend { id, fields: Pairs::Slices(&[(b"field", member)]) }),
            6 => told("text", Effect::Write { offset: number * 20, bytes: member }),
            7 => {
                let (consumer, group, delivered_ms) = (b"consumer", b"two", 1);
                told("stream", Effect::Pending { group, consumer, id, delivered_ms, deliveries: 1 });
            }
            // What takes something away, at both ends and in the middle.
            8 => told("list", Effect::ListPop { end: End::Front, count: 1 }),
            9 => told("list", Effect::ListRemove { index: number % 1000 }),
            10 => told("hash", Effect::HashDelete { field: member }),
            11 => told("set", Effect::SetRemove { member }),
            12 => told("zset", Effect::SortedSetRemove { member }),
            13 => told("stream", Effect::StreamDelete { id }),
            14 => told("stream", Effect::PendingRemove { group: b"two", id }),
            15 => told("zset", Effect::Expire { expire_ms: Some(1 << 41) }),
            _ => told("set", Effect::Delete { cause: Cause::Deleted }),
        }
    }

    /// No step tells more than a piece, whatever is there and whoever changes it; what is told comes back in any order
    /// of chains.
    #[test]
    fn large_values_are_told_by_piece_and_are_of_the_same_moment() {
        let mut aside = 0;
        for seed in 1..5 {
            println!("seed {seed}");
            let (keyspace, copy) = (keyspace(seed), keyspace(seed + 100));
            let mut rng = XorShift::new(seed);
            let (mut worker, mut other) = (keyspace.worker().unwrap(), keyspace.worker().unwrap());
            let (mut recorder, mut replayer) = (Recorder::default(), Replayer::default());
            (0..500).for_each(|_| change(&other.enter(), &mut recorder, &mut rng));
            for group in [&b"one"[..], b"three", b"two"] {
                let effect = Effect::GroupCreate { group, last_id: StreamId::MIN, entries_read: None };
                assert!(replayer.apply_in(&other.enter(), &KeyedEffect { db: 1, key: b"stream", effect }));
            }
            for number in 0..MEMBERS {
                (0..8).for_each(|dice| change_large(&other.enter(), &mut replayer, number, dice));
            }
            // None are touched meanwhile, some, or all.
            let (changes, kinds) = [(0, 1), (2, 5), (3, 17), (6, 17)][seed as usize - 1];
            let moment = Digest::of_keyspace(&worker.world());
            let mut tape = Tape::default();
            let mut saver = worker.saver(&mut tape).unwrap();
            let mut tapes = vec![tape];
            let (mut steps, mut added) = (0, MEMBERS);
            loop {
                let mut tape = Tape::default();
                let more = saver.step(&mut worker, &mut tape);
                steps += 1;
                assert!(tape.bytes().len() < 3 * STEP_BYTES, "{}", tape.bytes().len());
                tapes.push(tape);
                if !more {
                    break;
                }
                aside += usize::from(keyspace.saves().aside_count.load(Relaxed) > 0);
                for _ in 0..changes {
                    // Numbers ascend, as ids of a stream do, and go back where that takes something away.
                    added += 1;
                    let dice = u64::from(rng.below(kinds));
                    let number = if dice < 8 { added } else { u64::from(rng.below(MEMBERS as u32)) };
                    change_large(&other.enter(), &mut replayer, number, dice);
                    change(&other.enter(), &mut recorder, &mut rng);
                }
            }
            assert!(steps > 30, "{steps} steps: they were told by piece");
            drop(saver);
            let saves = keyspace.saves();
            assert_eq!((saves.aside_count.load(Relaxed), saves.aside_bytes.load(Relaxed)), (0, 0));
            assert_eq!(keyspace.wanted(), 0);
            let mut there = copy.worker().unwrap();
            let world = there.world();
            // Keys by themselves, as those who load have theirs.
            for part in [1, 0] {
                let has = |told: &KeyedEffect<'_>| copy.shard_of(&copy.key(told.key)) % 2 == part;
                let all = tapes.iter().flat_map(Tape::read).filter(has);
                all.for_each(|told| replayer.apply(&world, &told));
            }
            assert_eq!(Digest::of_keyspace(&world), moment);
        }
        assert!(aside > 10, "{aside} steps found values that were set aside");
    }

    #[test]
    fn a_barrier_makes_it_void_and_who_gives_up_leaves_nothing() {
        let keyspace = keyspace(1);
        let (mut worker, mut other) = (keyspace.worker().unwrap(), keyspace.worker().unwrap());
        let mut recorder = Recorder::default();
        let mut rng = XorShift::new(1);
        (0..100).for_each(|_| change(&other.enter(), &mut recorder, &mut rng));
        let mut saver = worker.saver(&mut Tape::default()).unwrap();
        saver.step(&mut worker, &mut Tape::default());
        other.world().flush(&mut Op::new(0, 1, &mut recorder), 0..=0);
        assert!(saver.is_void());
        drop(saver);
        (0..100).for_each(|_| change(&other.enter(), &mut recorder, &mut rng));
        let mut tape = Tape::default();
        let mut saver = worker.saver(&mut tape).unwrap();
        assert!(!saver.is_void());
        while saver.step(&mut worker, &mut tape) {}
        assert_eq!(saver.keys(), (0..3).map(|db| keyspace.len(db) as u64).sum::<u64>());
        assert!(tape.read().all(|told| told.effect != Effect::Delete { cause: Cause::Deleted }));
    }

    /// That one key was told early says nothing of another one that has the same hash.
    #[test]
    fn two_keys_of_one_hash_are_two() {
        let mut done = HashSet::new();
        for (db, key) in [(0, "a"), (0, "b"), (1, "a")] {
            assert!(done.insert(Done::of(db, key.as_bytes(), 7)), "{db} {key}");
            assert!(!done.insert(Done::of(db, key.as_bytes(), 7)), "{db} {key}");
        }
        assert!(done.remove(&Done::of(0, b"b", 7)) && done.len() == 2);
        assert_eq!(size_of::<Done>(), 16, "it is what a key takes that is changed early");
    }
}
