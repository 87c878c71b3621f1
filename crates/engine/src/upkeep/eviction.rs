//! Owns: making room when `maxmemory` is exceeded, before a command or in the background. Does not own: which keys go
//! (`weft_store::evict`), how what has been flushed is freed (`weft_store::maintain`).

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use weft_protocol::table::{CommandSpec, flag, policy};
use weft_store::evict::RoomOutcome;
use weft_store::{Batch, Evictor, Policy};

use crate::context::EffectReader;
use crate::engine::Engine;

/// Keys that go between two looks at the clock.
const KEYS_MAX: usize = 64;
/// How long one call evicts if there is still no room; more is found by the next ones, and in the background.
const USUAL: Duration = Duration::from_micros(500);
/// The same where less has gone than came since the call before: large values that push out small ones.
const OWING: Duration = Duration::from_millis(20);

/// One thread's eviction.
#[derive(Debug)]
pub struct Eviction {
    evictor: Evictor,
    /// The policy that the evictor's candidates are for.
    by: Policy,
    /// Bytes that requests may still bring before used memory is looked at again.
    room: isize,
    /// Memory that was in use behind the last call, less what that owed still.
    left_bytes: usize,
}

/// What a call owes at most.
const OWED_BYTES_MAX: usize = 16 << 20;

/// How far above `maxmemory` those may go that add to keys without the flag `denyoom` (policy `grows`), and programs
/// and triggers where keys are evicted, as a part of it and in bytes, whichever is more. Consumers that begin and
/// entries that are handed out are what empties a full stream, so that they are not refused at the limit; but names of
/// consumers or keys would go on without an end.
const BEYOND_PART: isize = 16;
const BEYOND_BYTES: isize = 16 << 20;

/// A key of one byte with a value of one, as used memory counts it.
const SMALLEST_BYTES: usize = 96;

/// More than any request of one key makes the store grow by, for each byte that it brings and besides: an entry, its
/// place in a table, a block of a stream, the larger form of a small collection.
const GROWTH: (isize, isize) = (4, 64 * 1024);

/// What a call has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Whether a command that needs memory may run.
    pub is_there: bool,
    /// Keys that went.
    pub evicted: usize,
}

impl Engine {
    /// What keys and values may take, if there is a limit: of `maxmemory` what stored programs leave. One that holds no
    /// key at all is below 0, and refuses the first write too.
    fn limit_bytes(&self) -> Option<isize> {
        let limit = self.settings.maxmemory_bytes.load(Relaxed);
        if limit == 0 {
            return None;
        }
        // There may be more of them where it was lowered.
        let programs = self.programs.bytes().min(limit / 2);
        Some(if limit < SMALLEST_BYTES { -1 } else { (limit - programs) as isize })
    }
    /// Whether used memory, as it is counted now, is below `maxmemory`, if there is one.
    pub(crate) fn has_room(&self) -> bool {
        self.limit_bytes().is_none_or(|limit| self.keyspace.used_bytes() as isize <= limit)
    }
    /// Whether so many bytes may come at once: beside what is there, or, where that gives way, alone.
    pub(crate) fn has_room_for(&self, bytes: u64) -> bool {
        self.limit_bytes().is_none_or(|limit| {
            let used = if self.evicts() { 0 } else { self.keyspace.used_bytes() as i128 };
            used + i128::from(bytes) <= limit as i128
        })
    }
    /// Whether keys are evicted at the limit.
    pub(crate) fn evicts(&self) -> bool {
        self.settings.policy() != Policy::NoEviction && !self.keyspace.is_importing()
    }
    /// Whether it is not far above it.
    pub(crate) fn has_room_beyond(&self) -> bool {
        self.limit_bytes().is_none_or(|limit| {
            let beyond = limit.saturating_add((limit / BEYOND_PART).max(BEYOND_BYTES));
            self.keyspace.used_bytes() as isize <= beyond
        })
    }
    /// Whether there is no room because evicting takes its time: a script may begin to write as any other command may.
    pub(crate) fn makes_room(&self) -> bool {
        self.evicts() && !self.nothing_goes.load(Relaxed)
    }
    /// The same where it is not far above the limit: what programs and triggers write within a request that made room
    /// before it began.
    pub(crate) fn gives_way(&self) -> bool {
        self.makes_room() && self.has_room_beyond()
    }
    /// Whether a command may run when used memory is above the limit.
    pub(crate) fn may_run_without_room(&self, spec: &CommandSpec) -> bool {
        spec.flags & flag::DENYOOM == 0 && (spec.policy & policy::GROWS == 0 || self.has_room_beyond())
    }
}

impl Eviction {
    /// An eviction without candidates. `seed` is of its dice.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { evictor: Evictor::new(seed), by: Policy::NoEviction, room: 0, left_bytes: 0 }
    }

    /// Looks at used memory: before a batch, and behind an eviction.
    pub fn look(&mut self, engine: &Engine) {
        self.room =
            engine.limit_bytes().map_or(isize::MAX, |limit| limit - engine.keyspace.used_bytes() as isize);
    }
    /// What a request has stored was not estimated: whoever asks next looks.
    #[inline]
    pub const fn forget(&mut self) {
        self.room = isize::MIN;
    }
    /// Whether there is room before a request that, if it may store at all, brings so many bytes. Far from the limit
    /// that is an estimate, near it a look at used memory.
    #[inline]
    pub fn has_room(&mut self, engine: &Engine, brings: Option<usize>) -> bool {
        let growth = brings.map_or(0, |bytes| GROWTH.0 * bytes as isize + GROWTH.1);
        if self.room < growth {
            self.look(engine);
        }
        let is_there = self.room >= 0;
        self.room -= growth;
        is_there
    }

    /// Frees what has been flushed, and then evicts, until there is room, if there is a limit. The caller holds no
    /// lock.
    pub fn make_room(
        &mut self,
        engine: &Engine,
        batch: &Batch<'_>,
        now_ms: u64,
        effects: &mut EffectReader,
    ) -> Room {
        let settings = &engine.settings;
        // A pause of writes is one of eviction and expiry too.
        self.look(engine);
        if self.room >= 0 || engine.pause.until_ms() > now_ms {
            return Room { is_there: true, evicted: 0 };
        }
        let limit = engine.limit_bytes().unwrap_or(isize::MAX);
        let (holds_a_key, limit) = (limit >= 0, limit.max(0) as usize);
        match batch.free_flushed(limit) {
            RoomOutcome::Nothing => {}
            RoomOutcome::Enough | RoomOutcome::More => {
                self.look(engine);
                return Room { is_there: holds_a_key, evicted: 0 };
            }
        }
        let samples = settings.maxmemory_samples.load(Relaxed) as usize;
        // What is brought in is complete or refused.
        let importing = engine.keyspace.is_importing();
        let policy = if importing { Policy::NoEviction } else { settings.policy() };
        if policy != self.by {
            self.evictor.reset();
            self.by = policy;
        }
        let began = Instant::now();
        let used_bytes = engine.keyspace.used_bytes();
        // What is owed for a limit that was lowered is not paid by those who come.
        let owed_bytes = used_bytes.saturating_sub(self.left_bytes.max(limit)).min(OWED_BYTES_MAX);
        let mut evicted = 0;
        let outcome = loop {
            let bounds = (limit, KEYS_MAX);
            let how = (policy, samples);
            let (outcome, count) =
                self.evictor.evict_until(batch, how, bounds, now_ms, &mut effects.recorder);
            evicted += count;
            if outcome != RoomOutcome::More {
                break outcome;
            }
            let owes = engine.keyspace.used_bytes() > used_bytes.saturating_sub(owed_bytes);
            if began.elapsed() >= if owes { OWING } else { USUAL } {
                break outcome;
            }
        };
        engine.nothing_goes.store(outcome == RoomOutcome::Nothing, Relaxed);
        self.left_bytes = engine.keyspace.used_bytes().min(used_bytes.saturating_sub(owed_bytes));
        let threshold_ms = settings.latency_threshold_ms.load(Relaxed);
        if threshold_ms != 0 {
            engine.event_took("eviction-cycle", began.elapsed(), threshold_ms, now_ms);
        }
        self.look(engine);
        Room { is_there: holds_a_key && outcome != RoomOutcome::Nothing, evicted }
    }
}
