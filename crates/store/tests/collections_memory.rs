//! What collections say that they take, against an allocator that counts.
// Helpers outside #[test] functions are still tests.
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use weft_store::stream::Group;
use weft_store::{
    Config, FieldExpiry, Hash, HashLimits, HashMut, KeyHasher, Keyspace, Rng, Set, SetLimits, SetMut,
    SortedSet, SortedSetLimits, SortedSetMut, Stream, StreamId, StreamLimit, StreamMut, XorShift,
};

thread_local! {
    /// Of this thread alone: other tests and those of the test's frame allocate too, whenever they are scheduled.
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

/// Counts bytes that are asked for and not given back.
struct Counting;

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.set(LIVE.get().wrapping_add(layout.size()));
        // SAFETY: passed on as it came.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get().wrapping_sub(layout.size()));
        // SAFETY: passed on as it came.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Asserts that what is said is what was allocated, but for 1 % and some bytes.
fn check(name: &str, said: usize, before: usize) {
    let real = LIVE.get().wrapping_sub(before);
    let near = real / 100 + 64;
    assert!(said.abs_diff(real) <= near, "{name}: says {said}, has allocated {real}");
}

fn member(rng: &mut XorShift) -> Vec<u8> {
    let longest = if rng.below(50) == 0 { 3000 } else { 24 };
    let len = 8 + rng.below(longest) as usize;
    let mut member = vec![b'.'; len];
    member[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
    member
}

/// Of trees nobody knows how full they are: a fifth.
fn check_trees(name: &str, said: usize, before: usize) {
    let real = LIVE.get().wrapping_sub(before);
    println!("{name}: says {said}, has allocated {real}");
    assert!(said.abs_diff(real) <= real / 5 + 64, "{name}: says {said}, has allocated {real}");
}

/// Streams with groups, consumers and what is pending, from one of each to many.
#[test]
fn streams_count_their_groups() {
    let id = |number: usize| StreamId { ms: 1 + number as u64, seq: 0 };
    for (groups, consumers, pending) in [
        (1, 0, 0),
        (1, 1, 0),
        (1, 1, 1),
        (3, 2, 4),
        (10, 1, 12),
        (3, 1, 12),
        (1, 1, 19),
        (1, 100, 1100),
        (1, 1, 5000),
        (1, 300, 5000),
        (12, 12, 12),
        (500, 1, 1),
    ] {
        let before = LIVE.get();
        let mut stream = Box::new(Stream::default());
        let mut change = StreamMut::new(&mut stream);
        for number in 0..pending {
            let fields = [(&b"field"[..], &b"value"[..])];
            change.append(id(number), fields.into_iter(), StreamLimit::default()).unwrap();
        }
        for group in 0..groups {
            let name = format!("group{group}").into_bytes();
            assert!(change.create_group(&name, Group::new(StreamId::MIN, None)));
            let (log, mut group) = change.group_mut(&name).unwrap();
            let who: Vec<_> = (0..consumers)
                .map(|number| group.find_or_create_consumer(format!("reader{number}").as_bytes(), 1).0)
                .collect();
            for number in 0..pending {
                group.deliver(log, Some(who[number % consumers]), 1, 1, |_| ());
            }
        }
        let said = size_of::<Stream>() + stream.memory_bytes();
        check_trees(&format!("{groups} groups, {consumers} consumers, {pending} pending"), said, before);
    }
}

/// What is said is what an allocator counts.
#[test]
fn memory_is_what_was_allocated() {
    let config = Config { shards: 1, workers: 1, hasher: KeyHasher::with_seed(1), ..Config::default() };
    let keyspace = Keyspace::new(config);
    let backing = keyspace.backing();
    let mut rng = XorShift::new(9);
    for count in [1, 10, 100, 600, 20_000] {
        let before = LIVE.get();
        let mut set = Set::default();
        for _ in 0..count {
            SetMut::new(&mut set, SetLimits::default(), backing).add(&member(&mut rng));
        }
        check("set", set.memory_bytes(), before);
        drop(set);
        let before = LIVE.get();
        let mut hash = Hash::default();
        for number in 0..count {
            // Without one it may stay in one buffer.
            let expires = number % 5 == 0 && count > 10;
            let expiry = if expires { FieldExpiry::At(77) } else { FieldExpiry::None };
            let mut change = HashMut::new(&mut hash, HashLimits::default(), backing);
            change.set_with(&member(&mut rng), &member(&mut rng), expiry);
        }
        check("hash", hash.memory_bytes(), before);
        drop(hash);
        let before = LIVE.get();
        let mut sorted = SortedSet::default();
        let mut names = Vec::new();
        for _ in 0..count {
            let (name, score) = (member(&mut rng), rng.next_u64() as f64);
            SortedSetMut::new(&mut sorted, SortedSetLimits::default(), backing).add(&name, score);
            names.push(name);
        }
        for name in names.drain(..).step_by(3) {
            SortedSetMut::new(&mut sorted, SortedSetLimits::default(), backing).remove(&name);
        }
        drop(names);
        check("sorted set", sorted.memory_bytes(), before);
        drop(sorted);
        assert!(LIVE.get().wrapping_sub(before) < 4096, "everything is given back");
    }
}
