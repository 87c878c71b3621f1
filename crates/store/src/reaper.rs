//! Owns: what takes long to free, until maintenance frees it in bounded steps outside all locks. Does not own: what it
//! was; nobody can reach it any more.

use crate::entry::Garbage;
use crate::hash::KeyHasher;
use crate::sync::{Mutex, lock};
use crate::table::array::{Array, Tagged};
use crate::table::head::Home;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Things that wait at most; whoever brings one more frees it himself, outside locks.
const QUEUE_MAX: usize = 1 << 16;
/// Arrays below this are freed where they are: about 10 µs.
const ARRAY_BYTES_MIN: usize = 256 << 10;
/// Garbage that owns less is dropped where it is: about 20 µs.
const GARBAGE_BYTES_MIN: usize = 64 << 10;
/// The same of a string, which is one piece of memory: what frees it elsewhere costs more than freeing it.
const STRING_BYTES_MIN: usize = 512 << 10;
/// Bytes that wait to be freed from which on strings do not wait with them.
const STRINGS_PENDING_MAX: usize = 32 << 20;

enum Thing {
    Array(Array),
    Garbage(Garbage),
}

/// The queue. One for a keyspace.
#[derive(Default)]
pub(crate) struct Reaper {
    queue: Mutex<VecDeque<Thing>>,
    bytes: AtomicUsize,
    objects: AtomicUsize,
}

/// What a step has done.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reaped {
    /// Something was there.
    pub(crate) worked: bool,
    /// Deleted values that are gone now.
    pub(crate) objects: usize,
}

impl Reaper {
    fn push(&self, thing: Thing, bytes: usize) -> Option<Thing> {
        let mut queue = lock(&self.queue);
        if queue.len() >= QUEUE_MAX {
            return Some(thing);
        }
        self.objects.fetch_add(usize::from(matches!(thing, Thing::Garbage(_))), Relaxed);
        queue.push_back(thing);
        self.bytes.fetch_add(bytes, Relaxed);
        None
    }
    /// Takes what a deleted value owned: drops it if that is quick, else keeps it for [`Reaper::step`]. A string is one
    /// piece of memory: where much is kept already it is dropped at once, so that a pipeline that replaces large ones
    /// does not outrun maintenance.
    pub(crate) fn discard(&self, garbage: Garbage) {
        let bytes = garbage.memory_bytes();
        let waits = match garbage {
            Garbage::Shared(_) => {
                bytes >= STRING_BYTES_MIN && self.pending_bytes() + bytes <= STRINGS_PENDING_MAX
            }
            _ => bytes >= GARBAGE_BYTES_MIN,
        };
        if waits {
            drop(self.push(Thing::Garbage(garbage), bytes));
        }
    }
    /// Memory that waits to be freed.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
    /// Deleted values that wait to be freed.
    pub(crate) fn pending_objects(&self) -> usize {
        self.objects.load(Relaxed)
    }
    /// Frees up to `chunks` pieces of about 64 KiB.
    pub(crate) fn step(&self, chunks: usize) -> Reaped {
        let Some(thing) = lock(&self.queue).pop_front() else { return Reaped::default() };
        let mut reaped = Reaped { worked: true, objects: 0 };
        match thing {
            Thing::Array(array) => {
                self.bytes.fetch_sub(array.bytes(), Relaxed);
                drop(array);
            }
            Thing::Garbage(mut garbage) => {
                let before = garbage.memory_bytes();
                let done = garbage.free_step(chunks);
                let after = if done { 0 } else { garbage.memory_bytes() };
                self.bytes.fetch_sub(before.saturating_sub(after), Relaxed);
                if done {
                    drop(garbage);
                    self.objects.fetch_sub(1, Relaxed);
                    reaped.objects = 1;
                } else {
                    lock(&self.queue).push_back(Thing::Garbage(garbage));
                }
            }
        }
        reaped
    }
}

/// What a collection needs of its keyspace when it changes: the key of the hash, a number that no other dictionary has,
/// and a place for what takes long to free.
#[derive(Clone, Copy)]
pub struct Backing<'k> {
    pub(crate) hasher: &'k KeyHasher,
    pub(crate) reaper: &'k Reaper,
    /// Dictionaries that were made so far.
    pub(crate) dicts: &'k AtomicU64,
}

impl Home for Backing<'_> {
    // Names of records, which only their dictionary knows.
    fn ask_for(&self, _: Tagged) {}
    fn publish(&self, _: Option<&Array>, _: Option<&Array>) {}
    fn advance(&self, _: u32) {}
    fn retire(&self, array: Array) {
        let bytes = array.bytes();
        if bytes >= ARRAY_BYTES_MIN {
            drop(self.reaper.push(Thing::Array(array), bytes));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::value::SharedBytes;

    #[test]
    fn strings_wait_up_to_a_bound() {
        let reaper = Reaper::default();
        let text = || Garbage::Shared(SharedBytes::new(vec![0; 1 << 20]));
        let each = text().memory_bytes();
        for _ in 0..100 {
            reaper.discard(text());
        }
        assert!(reaper.pending_bytes() <= STRINGS_PENDING_MAX, "{}", reaper.pending_bytes());
        assert!(reaper.pending_bytes() > STRINGS_PENDING_MAX - each, "up to it they wait");
        let reaper = Reaper::default();
        reaper.discard(Garbage::Shared(SharedBytes::new(vec![0; STRING_BYTES_MIN / 2])));
        assert_eq!(reaper.pending_bytes(), 0, "smaller ones do not");
    }
}
