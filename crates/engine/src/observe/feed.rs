//! Owns: what happened to keys, numbered and kept for a while, for whoever follows it (HTTP's `/v1/events`), and who of
//! the workers is to be told that there is more. Does not own: keyspace notifications (`crate::notify`), which are the
//! same events for subscribers; filters, and how an event is written (the server).
//!
//! An event is added while the shard of its key is locked, so the events of a key come in the order of its writes. As
//! long as nobody follows nothing is told, and nothing is kept: whoever comes back is told that he has missed some. A
//! feed whose last follower has gone goes on for [`LINGER_MS`], for those who connect again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Relaxed, Ordering::Release,
};

use parking_lot::Mutex;

use crate::config::classes;
use crate::mailbox::{Mailboxes, Message};

/// Events that are kept for those who come back.
pub const EVENTS_MAX: usize = 16_384;
/// Bytes that the names of their keys have together: of longer ones fewer are kept.
pub const EVENT_BYTES_MAX: usize = 16 << 20;
/// How long a feed goes on that nobody follows.
pub const LINGER_MS: u64 = 60_000;

/// The kinds of events, as requests name them.
pub const KINDS: [(&str, u32); 10] = [
    ("generic", classes::GENERIC),
    ("string", classes::STRING),
    ("list", classes::LIST),
    ("set", classes::SET),
    ("hash", classes::HASH),
    ("zset", classes::ZSET),
    ("stream", classes::STREAM),
    ("expired", classes::EXPIRED),
    ("evicted", classes::EVICTED),
    ("new", classes::NEW),
];

/// Something that has happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number: the next one's is greater by one.
    pub number: u64,
    /// The key's database.
    pub db: u8,
    /// Its kind, as a bit of [`KINDS`].
    pub class: u32,
    /// What it is called: `set`, `expired`.
    pub name: Box<str>,
    /// The key.
    pub key: Box<[u8]>,
}

/// Some that were asked for are not kept any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed;

/// The events that are kept.
#[derive(Debug, Default)]
struct KeptEvents {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The number that the next one has.
    next: u64,
}

impl KeptEvents {
    fn first(&self) -> u64 {
        self.next - self.events.len() as u64
    }
    fn push(&mut self, event: Event) {
        self.bytes += event.key.len();
        self.next += 1;
        self.events.push_back(Arc::new(event));
        while self.events.len() > EVENTS_MAX || self.bytes > EVENT_BYTES_MAX && self.events.len() > 1 {
            self.bytes -= self.events.pop_front().map_or(0, |event| event.key.len());
        }
    }
    fn forget(&mut self) {
        // Those that nobody was told of have numbers too: who comes back has missed some.
        *self = Self { next: self.next + 1, ..Self::default() };
    }
}

/// One worker's followers.
#[derive(Debug, Default)]
struct Followers {
    count: AtomicUsize,
    /// It has been told that there is more, and has not looked yet.
    is_woken: AtomicBool,
}

/// The events, and who follows them.
#[derive(Debug)]
pub struct Feed {
    /// Numbers of another process are not these.
    epoch: u64,
    kept: Mutex<KeptEvents>,
    followers: Box<[Followers]>,
    /// Events are told and kept.
    is_on: AtomicBool,
    /// Since when nobody follows; 0 while somebody does.
    idle_since_ms: AtomicU64,
    /// Held by whoever switches it on or off.
    switching: Mutex<()>,
}

impl Feed {
    pub(crate) fn new(workers: u16, epoch: u64) -> Self {
        Self {
            epoch,
            kept: Mutex::default(),
            followers: (0..workers.max(1)).map(|_| Followers::default()).collect(),
            is_on: AtomicBool::new(false),
            idle_since_ms: AtomicU64::new(0),
            switching: Mutex::new(()),
        }
    }
    /// What tells the numbers of this process from those of another.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }
    /// The classes of events that are told for it.
    #[must_use]
    pub(crate) fn classes(&self) -> u32 {
        if self.is_on.load(Relaxed) { classes::ALL | classes::NEW } else { 0 }
    }
    /// The number that the next event will have.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.kept.lock().next
    }
    /// The events from a number on, some of them: the caller asks again until there are none.
    ///
    /// # Errors
    /// When the first of them is not kept any more, or was never told.
    pub fn read(&self, from: u64, count: usize) -> Result<Vec<Arc<Event>>, Missed> {
        let kept = self.kept.lock();
        let behind = from.checked_sub(kept.first()).ok_or(Missed)?;
        if from > kept.next {
            return Err(Missed);
        }
        Ok(kept.events.range(behind as usize..).take(count).map(Arc::clone).collect())
    }
    /// A worker looks at what there is: from now on it is to be told of more.
    pub fn looks(&self, worker: u16) {
        self.followers[usize::from(worker)].is_woken.store(false, Release);
    }
    fn is_followed(&self) -> bool {
        self.followers.iter().any(|followers| followers.count.load(Relaxed) > 0)
    }
}

impl Feed {
    /// A client of a worker follows the events from now on; `wanted` is called if nobody did before.
    pub(crate) fn join(&self, worker: u16, wanted: impl FnOnce()) {
        let _switching = self.switching.lock();
        self.followers[usize::from(worker)].count.fetch_add(1, Relaxed);
        self.idle_since_ms.store(0, Relaxed);
        if !self.is_on.swap(true, Relaxed) {
            wanted();
        }
    }
    /// It does not any more.
    pub(crate) fn leave(&self, worker: u16, now_ms: u64) {
        let _switching = self.switching.lock();
        self.followers[usize::from(worker)].count.fetch_sub(1, Relaxed);
        if !self.is_followed() {
            self.idle_since_ms.store(now_ms.max(1), Relaxed);
        }
    }
    /// Ends it when nobody has followed it for long; `unwanted` is called then, before what is kept is forgotten.
    pub(crate) fn look(&self, now_ms: u64, unwanted: impl FnOnce()) {
        let is_idle = || {
            let since_ms = self.idle_since_ms.load(Relaxed);
            since_ms != 0 && now_ms >= since_ms + LINGER_MS
        };
        if !is_idle() {
            return;
        }
        let _switching = self.switching.lock();
        if is_idle() {
            self.idle_since_ms.store(0, Relaxed);
            self.is_on.store(false, Relaxed);
            unwanted();
            self.kept.lock().forget();
        }
    }
    /// Something has happened to a key, whose shard is locked.
    #[cold]
    pub(crate) fn add(&self, mailboxes: &Mailboxes, db: u8, (class, name): (u32, &str), key: &[u8]) {
        {
            let mut kept = self.kept.lock();
            let number = kept.next;
            kept.push(Event { number, db, class, name: name.into(), key: key.into() });
        }
        for (followers, worker) in self.followers.iter().zip(0..) {
            if followers.count.load(Relaxed) > 0 && !followers.is_woken.swap(true, AcqRel) {
                mailboxes.of(worker).send(Message::Events);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(key: &[u8], number: u64) -> Event {
        Event { number, db: 0, class: classes::STRING, name: "set".into(), key: key.into() }
    }

    #[test]
    fn the_last_ones_are_kept() {
        let feed = Feed::new(1, 7);
        let push = |count: usize, key: &[u8]| {
            for _ in 0..count {
                let mut kept = feed.kept.lock();
                let number = kept.next;
                kept.push(event(key, number));
            }
        };
        push(EVENTS_MAX, b"k");
        assert_eq!(feed.read(0, 3).map(|events| events.len()), Ok(3));
        push(1, b"k");
        assert_eq!(feed.read(0, 3), Err(Missed));
        assert_eq!(feed.read(1, usize::MAX).map(|events| events.len()), Ok(EVENTS_MAX));
        assert_eq!(feed.read(feed.next(), 3), Ok(Vec::new()));
        assert_eq!(feed.read(feed.next() + 1, 3), Err(Missed), "the number of another process");
        // Long names: fewer of them, but the last one always.
        let long = vec![b'x'; EVENT_BYTES_MAX / 4];
        push(4, &long);
        assert_eq!(feed.kept.lock().events.len(), 4);
        push(1, &long);
        assert_eq!(feed.kept.lock().events.len(), 4);
        push(1, &vec![b'x'; EVENT_BYTES_MAX + 1]);
        let bytes = feed.kept.lock().bytes;
        assert_eq!((feed.kept.lock().events.len(), bytes), (1, EVENT_BYTES_MAX + 1));
        let next = feed.next();
        feed.kept.lock().forget();
        assert_eq!(feed.read(next, 1), Err(Missed), "what was not told in between is missed");
    }
}
