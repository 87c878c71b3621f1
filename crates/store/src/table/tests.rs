//! Owns the tests of the table against a model.

use super::*;
use crate::clock::{Rng, XorShift};
use crate::hash::position_of;
use crate::table::head::{Home, Private};
use std::collections::{BTreeMap, HashSet};
use std::ptr::NonNull;

/// What a pointer in these tests points to.
#[repr(align(8))]
struct Fake {
    hash: u64,
    expire_ms: u64,
}

/// A table whose entries are boxes, with its model beside it.
struct Pair {
    table: Table,
    model: BTreeMap<u64, u64>,
}

fn fake(tagged: Tagged) -> &'static Fake {
    // SAFETY: tests put only leaked boxes of Fake into tables, and free them only after taking them out.
    unsafe { tagged.entry().cast::<Fake>().as_ref() }
}

fn facts(tagged: Tagged) -> Facts {
    (fake(tagged).hash, fake(tagged).expire_ms)
}

impl Pair {
    fn new(jitter: u8) -> Self {
        Self { table: Table::new(jitter), model: BTreeMap::new() }
    }
    fn find(&self, hash: u64) -> Option<Pos> {
        self.table.find(hash, |tagged| fake(tagged).hash == hash)
    }
    fn insert(&mut self, hash: u64, expire_ms: u64) {
        if self.find(hash).is_some() {
            return;
        }
        let entry = NonNull::from(Box::leak(Box::new(Fake { hash, expire_ms }))).cast();
        let tagged = Tagged::new(entry, expire_ms != u64::MAX);
        let pos = self.table.insert((hash, expire_ms), tagged, &facts, &Private);
        assert_eq!(self.table.at(pos), tagged);
        self.model.insert(hash, expire_ms);
    }
    fn remove(&mut self, hash: u64) {
        let found = self.find(hash);
        assert_eq!(found.is_some(), self.model.remove(&hash).is_some());
        if let Some(pos) = found {
            free(self.table.remove(pos, hash, &facts, &Private));
        }
    }
    fn random(&self, rng: &mut XorShift) -> u64 {
        let from = rng.next_u64();
        self.model.range(from..).chain(&self.model).next().map_or(from, |(&hash, _)| hash)
    }
    fn check(&self) {
        assert_eq!(self.table.len(), self.model.len());
        for &hash in self.model.keys() {
            assert!(self.find(hash).is_some());
        }
        let marked = self.model.values().filter(|expire_ms| **expire_ms != u64::MAX).count();
        assert_eq!(self.table.marked(), marked);
        let earliest = self.model.values().copied().min().unwrap_or(u64::MAX);
        assert!(self.table.next_expiry_ms() <= earliest, "a hint is never too late");
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        while !self.table.take(&Private).step(u32::MAX, &Private, free) {}
    }
}

fn free(tagged: Tagged) {
    // SAFETY: the pointer is that of a leaked box, and it has just been taken out of its table.
    drop(unsafe { Box::from_raw(tagged.entry().cast::<Fake>().as_ptr()) });
}

/// Hashes that crowd a few buckets when `mask` is small, to force overflow.
fn hash(rng: &mut XorShift, mask: u64) -> u64 {
    let value = rng.next_u64();
    value & mask | value.rotate_left(40) & 0x00ff_ffff
}

#[test]
fn behaves_like_a_map() {
    for (seed, mask) in
        [(1, u64::MAX), (2, u64::MAX), (3, 0xf000_000f_ffff_ffff), (4, 0x00ff_ffff), (5, u64::MAX)]
    {
        println!("seed {seed}");
        let mut rng = XorShift::new(seed);
        let mut pair = Pair::new(seed as u8);
        for round in 0..30 {
            let growing = round % 3 != 2;
            for _ in 0..400 {
                let expire_ms = if rng.below(4) == 0 { rng.next_u64() >> 20 } else { u64::MAX };
                if rng.below(10) < if growing { 8 } else { 1 } {
                    pair.insert(hash(&mut rng, mask), expire_ms);
                } else {
                    pair.remove(pair.random(&mut rng));
                }
            }
            pair.check();
        }
        while let Some((&hash, _)) = pair.model.first_key_value() {
            pair.remove(hash);
        }
        assert_eq!(pair.table.bytes(), 0, "an empty table has no memory");
    }
}

#[test]
fn load_stays_between_two_thirds_and_growth_limit() {
    let mut rng = XorShift::new(11);
    let mut pair = Pair::new(7);
    let mut worst: f64 = 0.0;
    while pair.table.len() < 50_000 {
        pair.insert(rng.next_u64(), u64::MAX);
        if pair.table.len() > 2000 && !pair.table.resizing() {
            worst = worst.max(pair.table.bytes() as f64 / pair.table.len() as f64);
        }
    }
    assert!(worst < 13.2, "{worst} bytes a key");
}

/// A home where many entries come in.
struct Filling(usize);

impl Home for Filling {
    fn publish(&self, _: Option<&Array>, _: Option<&Array>) {}
    fn advance(&self, _: u32) {}
    fn retire(&self, _: Array) {}
    fn ahead(&self, len: usize) -> Option<usize> {
        Some(self.0.max(2 * len))
    }
}

#[test]
fn a_table_that_grew_ahead_gets_the_size_that_it_needs() {
    for (expected, seed) in [(0, 1), (5_000, 2), (200_000, 3)] {
        println!("seed {seed}");
        let mut rng = XorShift::new(seed);
        let (mut grown, mut pair) = (0, Pair::new(3));
        while pair.table.len() < 20_000 {
            let (hash, before) = (rng.next_u64(), pair.table.bytes());
            let entry = NonNull::from(Box::leak(Box::new(Fake { hash, expire_ms: u64::MAX }))).cast();
            pair.table.insert((hash, u64::MAX), Tagged::new(entry, false), &facts, &Filling(expected));
            pair.model.insert(hash, u64::MAX);
            grown += usize::from(pair.table.bytes() > before);
        }
        assert!(grown < 16, "it has grown {grown} times");
        pair.check();
        pair.table.fit(&facts, &Private);
        pair.check();
        assert!(!pair.table.resizing());
        let each = pair.table.bytes() as f64 / 20_000.0;
        assert!(each < 13.2, "{each} bytes a key");
        for _ in 0..10_000 {
            let hash = pair.random(&mut rng);
            pair.remove(hash);
        }
        pair.check();
    }
}

#[test]
fn scan_meets_stable_keys_once_and_ends() {
    for seed in 1..20 {
        println!("seed {seed}");
        let mut rng = XorShift::new(seed);
        let mut pair = Pair::new(0);
        let stable: HashSet<u64> = (0..2000).map(|_| rng.next_u64()).collect();
        stable.iter().for_each(|&hash| pair.insert(hash, u64::MAX));
        let mut met = HashSet::new();
        let mut from = Some(0);
        let mut steps = 0;
        while let Some(position) = from {
            from = pair.table.scan(position, &|tagged| facts(tagged).0, |_, hash| {
                assert!(met.insert(hash) || !stable.contains(&hash), "twice");
            });
            assert!(from.is_none_or(|next| next > position), "the cursor grows");
            steps += 1;
            // Grow in one half of the walk, shrink in the other, so that resizes run both ways below the cursor.
            for _ in 0..rng.below(12) {
                let extra = rng.next_u64();
                if steps < 300 {
                    pair.insert(extra, u64::MAX);
                } else {
                    let victim = pair.random(&mut rng);
                    if !stable.contains(&victim) {
                        pair.remove(victim);
                    }
                }
            }
        }
        assert!(stable.is_subset(&met));
    }
}

#[test]
fn due_groups_cover_every_due_key() {
    let mut rng = XorShift::new(5);
    let mut pair = Pair::new(3);
    for _ in 0..5000 {
        let expire_ms = if rng.below(3) == 0 { 1000 + u64::from(rng.below(1000)) } else { u64::MAX };
        pair.insert(rng.next_u64(), expire_ms);
        let mut met = HashSet::new();
        let mut start = 0;
        while let Some((number, group)) = pair.table.due_group(start, 1100) {
            pair.table.visit_group(group, |tagged| {
                met.insert(fake(tagged).hash);
            });
            start = number + 1;
        }
        let due = pair.model.iter().filter(|(_, expire_ms)| **expire_ms <= 1100).map(|(hash, _)| *hash);
        if rng.below(50) == 0 {
            assert!(due.collect::<HashSet<_>>().is_subset(&met));
        }
    }
}

/// How far from its home the entry stands that is farthest, in buckets.
fn farthest(pair: &Pair) -> u32 {
    let far = |&hash: &u64| {
        let pos = pair.find(hash).expect("it is there");
        let count = pair.table.array(pos.in_next).count();
        (pos.place.bucket + count - home(position_of(hash), count)) % count
    };
    pair.model.keys().map(far).max().unwrap_or(0)
}

/// SCAN and DEL, SSCAN and SREM: what is left stands at the end of the order, and is to be found as quickly as before.
#[test]
fn what_is_emptied_in_its_own_order_is_never_crowded() {
    const COUNT: usize = 50_000;
    // The last 1/128 of them, 7 to a bucket, are taken to be spread.
    const FARTHEST: u32 = 128;
    let (mut rng, mut pair) = (XorShift::new(7), Pair::new(0));
    for _ in 0..COUNT {
        pair.insert(rng.next_u64(), u64::MAX);
    }
    let most = pair.table.bytes();
    let order: Vec<u64> = pair.model.keys().copied().collect();
    for (at, &hash) in order.iter().enumerate() {
        pair.remove(hash);
        if at % 1000 == 0 {
            let far = farthest(&pair);
            assert!(far < FARTHEST, "behind {at} removals an entry stands {far} buckets from its home");
        }
    }
    // By chance it is as small as ever.
    order.iter().for_each(|&hash| pair.insert(hash, u64::MAX));
    for _ in 0..COUNT * 9 / 10 {
        let hash = pair.random(&mut rng);
        pair.remove(hash);
    }
    assert!(
        pair.table.bytes() < most / 4,
        "{} of {most} bytes for a tenth of the entries",
        pair.table.bytes()
    );
    pair.check();
}
