//! Owns the tests of the slab against a model.

use super::*;
use crate::clock::{Rng, XorShift};
use std::collections::HashMap;

/// Live slots by a number that each holds twice: in its header word, and in its last bytes.
struct Model {
    slab: Slab,
    source: PageSource,
    live: HashMap<u64, (NonNull<u8>, usize)>,
    next: u64,
}

impl Model {
    fn new() -> Self {
        Self { slab: Slab::new(), source: PageSource::new(false), live: HashMap::new(), next: 1 }
    }
    fn alloc(&mut self, bytes: usize) {
        let slot = self.slab.alloc(bytes, &self.source);
        // A live header: kind 1, the number above.
        write(slot, bytes, self.next);
        self.live.insert(self.next, (slot, bytes));
        self.next += 1;
    }
    fn free(&mut self, number: u64) {
        let (slot, bytes) = self.live.remove(&number).unwrap();
        assert_eq!(read(slot, bytes), number);
        // SAFETY: the slot is live in this slab, and the model has forgotten it.
        unsafe { self.slab.free(slot, &self.source) };
    }
    fn any(&self, rng: &mut XorShift) -> Option<u64> {
        (0..64).map(|_| 1 + rng.next_u64() % self.next).find(|number| self.live.contains_key(number))
    }
    fn check(&self) {
        for (&number, &(slot, bytes)) in &self.live {
            assert_eq!(read(slot, bytes), number);
        }
        let least: usize = self.live.values().map(|(_, bytes)| class_of(*bytes) * 8).sum();
        assert!(self.slab.used_bytes() >= least);
        assert!(self.slab.used_bytes() <= least + least / 4 + 8 * self.live.len());
    }
    fn compact(&mut self) -> usize {
        let mut moves = Vec::new();
        if !self.slab.choose_sparse() {
            return 0;
        }
        let Self { slab, source, live, .. } = self;
        // SAFETY: a live slot's first word is its number, under which `live` has its bytes; the one reference to each
        // is in `live` too, which is corrected below before it is used.
        let moved = unsafe {
            let bytes_of = |slot: NonNull<u8>| live[&(slot.cast::<u64>().read() >> 8)].1;
            slab.evacuate(7, source, bytes_of, |old, new| moves.push((old, new)))
        };
        for (old, new) in moves {
            let entry = self.live.values_mut().find(|(slot, _)| *slot == old).unwrap();
            entry.0 = new;
        }
        moved.slots
    }
}

fn write(slot: NonNull<u8>, bytes: usize, number: u64) {
    // SAFETY: the slot has at least 16 bytes.
    unsafe {
        slot.cast::<u64>().write(number << 8 | 1);
        slot.add(bytes - 8).cast::<u64>().write_unaligned(number << 8 | 1);
    }
}

fn read(slot: NonNull<u8>, bytes: usize) -> u64 {
    // SAFETY: the slot has at least 16 bytes, written by `write`.
    let (head, tail) =
        unsafe { (slot.cast::<u64>().read(), slot.add(bytes - 8).cast::<u64>().read_unaligned()) };
    assert_eq!(head, tail);
    head >> 8
}

#[test]
fn slots_keep_their_bytes() {
    for seed in 1..12 {
        println!("seed {seed}");
        let mut rng = XorShift::new(seed);
        let mut model = Model::new();
        for round in 0..40 {
            for _ in 0..200 {
                if rng.below(10) < if round % 4 == 3 { 1 } else { 6 } {
                    let bytes = if seed % 2 == 0 { 16 + rng.below(1137) } else { 40 + 8 * rng.below(3) };
                    model.alloc(bytes as usize);
                } else if let Some(number) = model.any(&mut rng) {
                    model.free(number);
                }
            }
            if round % 5 == 4 {
                while model.compact() > 0 {}
            }
            model.check();
        }
        let numbers: Vec<u64> = model.live.keys().copied().collect();
        numbers.into_iter().for_each(|number| model.free(number));
        assert_eq!(model.slab.used_bytes(), 0);
        assert_eq!(model.source.stats().used_pages, 0, "every span went back");
        while model.source.purge(1) > 0 {}
    }
}

#[test]
fn compaction_ends_dense() {
    let mut rng = XorShift::new(9);
    let mut model = Model::new();
    (0..20_000).for_each(|_| model.alloc(48));
    let full = model.source.stats().used_pages;
    let mut numbers: Vec<u64> = model.live.keys().copied().collect();
    numbers.sort_unstable();
    numbers.retain(|_| rng.below(2) == 0);
    let freed = numbers.len();
    numbers.into_iter().for_each(|number| model.free(number));
    while model.compact() > 0 {}
    let left = model.source.stats().used_pages;
    let given = (full - left) * PAGE_BYTES;
    assert!(given * 10 >= freed * 48 * 8, "gave back {given} of {}", freed * 48);
    model.check();
}

#[test]
fn spans_lose_little() {
    for class in 2..CLASSES {
        let bytes = PAGES_OF[class] as usize * PAGE_BYTES;
        let lost = bytes - SLOTS_OF[class] as usize * class * 8;
        assert!(lost * 30 <= bytes, "class {class} loses {lost} of {bytes}");
    }
}

/// One size after the other, each evicting what was there before: what is left of the sizes that are gone stands close.
#[test]
fn sizes_that_are_gone_leave_little() {
    let mut rng = XorShift::new(29);
    let mut model = Model::new();
    // As much as a shard of many has.
    const LIMIT_BYTES: usize = 300 << 10;
    let mut numbers = Vec::new();
    for round in 0..60 {
        let bytes = 16 + rng.below(span::SLOT_BYTES_MAX as u32 - 16) as usize;
        for _ in 0..LIMIT_BYTES / 8 / bytes {
            numbers.push(model.next);
            model.alloc(bytes);
            while model.slab.used_bytes() > LIMIT_BYTES {
                let at = rng.below(numbers.len() as u32) as usize;
                model.free(numbers.swap_remove(at));
            }
        }
        while model.compact() > 0 {}
        // The second look knows what has not grown.
        while model.compact() > 0 {}
        model.check();
        let (used, held) = (model.slab.used_bytes(), model.source.stats().used_pages * PAGE_BYTES);
        assert!(held * 4 <= used * 5, "round {round}: {held} held for {used}");
    }
}
