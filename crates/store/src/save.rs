//! Owns: all keys as they were at one moment, told while others go on changing them. Does not own: where they are
//! written to.
//!
//! A [`Saver`] begins behind the gate: from that moment on each key is told as it was then, once. It walks the shards
//! in the order of hashes, some keys under each lock. Whoever is about to change a key that the walk has not come to
//! tells it first (`ShardGuard::wanted`, which every primitive asks before its first change), and notes it, so that the
//! walk passes it over. So memory grows by 16 bytes and a half for each key that was changed early in the shards that
//! are still to come, and by what was told early and not taken yet.
//!
//! FLUSHDB, FLUSHALL and SWAPDB change all keys at once: they make the saver void, and it is to be begun anew.

use crate::effect::{Effect, Tape, Text, wants};
use crate::entry::heap::Key;
use crate::hash::position_of;
use crate::keyspace::{Batch, Keyspace, Worker};
use crate::recorder::{Pen, Recorder};
use crate::shard::ShardGuard;
use crate::sync::{Mutex, lock};
use crate::value::ValueRef;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes of keys told early that may wait to be taken before writes are held back.
pub const EARLY_BYTES_MAX: usize = 64 << 20;
/// Bytes that are told under one lock, and what the last of the keys takes: 20 µs or so.
const STEP_BYTES: usize = 32 << 10;
/// Keys that are told under one lock: each is a miss of all caches.
const STEP_KEYS: usize = 64;

/// How far a shard is saved.
#[derive(Debug, Default)]
struct Progress {
    /// The database that the walk stands in; those before it are saved.
    db: u8,
    /// The position in it: keys before it are saved.
    position: u32,
    /// Keys behind that place that need not be told any more.
    done: HashSet<(u8, u64)>,
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
    keys: AtomicU64,
}

impl Saves {
    /// All keys of a database change at once.
    pub(crate) fn make_void(&self) {
        self.is_void.store(true, Relaxed);
    }
    pub(crate) fn is_behind(&self) -> bool {
        self.early_bytes.load(Relaxed) > EARLY_BYTES_MAX
    }
}

/// Tells all keys as they were at one moment. One for a keyspace.
pub struct Saver<'k> {
    keyspace: &'k Keyspace,
    shard: u32,
    epoch: u64,
    recorder: Recorder,
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
        Ok(Saver { keyspace, shard: 0, epoch, recorder: Recorder::default() })
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
    pub fn step(&mut self, batch: &Batch<'_>, tape: &mut Tape) -> bool {
        self.take_early(tape);
        if self.shard < self.keyspace.shard_count() {
            let guard = batch.lock_shard(self.shard);
            if guard.save_some(&mut self.recorder, tape) {
                self.shard += 1;
            }
            return true;
        }
        // Whoever has told a key early has done so under a lock that was held before the shard was through.
        self.take_early(tape);
        false
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
            tape.push(db, key, &Effect::New { kind: object.kind(), expire_ms });
            recorder.clear();
            if let Some(mut pen) = Pen::new(recorder, wants::VALUES, db, key) {
                object.tell(&mut pen);
            }
            tape.append(recorder.tape());
            recorder.clear();
            return;
        }
    };
    tape.push(db, key, &Effect::Set { value: text, expire_ms });
}

impl ShardGuard<'_> {
    /// Before a key is changed, or looked at by who may change it: tells it if the walk has not come to it.
    #[cold]
    pub(crate) fn save_first(&self, db: u8, key: &Key<'_>) {
        let mut saving = self.data.saving.0.borrow_mut();
        let Some(progress) = &mut *saving else { return };
        let is_passed = db < progress.db || db == progress.db && position_of(key.hash()) < progress.position;
        if is_passed || !progress.done.insert((db, key.hash())) {
            return;
        }
        let Some(found) = self.heap().find(db as usize, key) else { return };
        let entry = self.heap().entry(db as usize, found);
        let expire_ms = entry.expire_ms();
        let saves = self.keyspace.saves();
        let mut early = lock(&saves.early);
        let before = early.bytes().len();
        let value = (entry.value(), (expire_ms != u64::MAX).then_some(expire_ms));
        tell_key(&mut Recorder::default(), &mut early, (db, key.bytes()), value);
        saves.early_bytes.fetch_add(early.bytes().len() - before, Relaxed);
        saves.keys.fetch_add(1, Relaxed);
    }

    /// Tells some keys of the shard, and says whether it is through.
    fn save_some(&self, recorder: &mut Recorder, tape: &mut Tape) -> bool {
        let mut saving = self.data.saving.0.borrow_mut();
        let Some(progress) = &mut *saving else { return true };
        let env = self.keyspace.env(self.id());
        let (end, mut keys) = (tape.bytes().len() + STEP_BYTES, 0);
        while usize::from(progress.db) < self.keyspace.database_count() {
            let db = progress.db;
            let next = self.heap().scan(env, db.into(), progress.position, |entry, hash| {
                keys += 1;
                if !progress.done.remove(&(db, hash)) {
                    let expire_ms = entry.expire_ms();
                    let value = (entry.value(), (expire_ms != u64::MAX).then_some(expire_ms));
                    tell_key(recorder, tape, (db, entry.key()), value);
                    self.keyspace.saves().keys.fetch_add(1, Relaxed);
                }
            });
            match next {
                Some(position) => progress.position = position,
                None => (progress.db, progress.position) = (db + 1, 0),
            }
            if keys >= STEP_KEYS || tape.bytes().len() >= end {
                return false;
            }
        }
        *saving = None;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Rng, XorShift};
    use crate::effect::Cause;
    use crate::shard::{Expiry, Op};
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
            while saver.step(&worker.enter(), &mut tape) {
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

    #[test]
    fn a_barrier_makes_it_void_and_who_gives_up_leaves_nothing() {
        let keyspace = keyspace(1);
        let (mut worker, mut other) = (keyspace.worker().unwrap(), keyspace.worker().unwrap());
        let mut recorder = Recorder::default();
        let mut rng = XorShift::new(1);
        (0..100).for_each(|_| change(&other.enter(), &mut recorder, &mut rng));
        let mut saver = worker.saver(&mut Tape::default()).unwrap();
        saver.step(&worker.enter(), &mut Tape::default());
        other.world().flush(&mut Op::new(0, 1, &mut recorder), 0..=0);
        assert!(saver.is_void());
        drop(saver);
        (0..100).for_each(|_| change(&other.enter(), &mut recorder, &mut rng));
        let mut tape = Tape::default();
        let mut saver = worker.saver(&mut tape).unwrap();
        assert!(!saver.is_void());
        while saver.step(&worker.enter(), &mut tape) {}
        assert_eq!(saver.keys(), (0..3).map(|db| keyspace.len(db) as u64).sum::<u64>());
        assert!(tape.read().all(|told| told.effect != Effect::Delete { cause: Cause::Deleted }));
    }
}
