//! Owns the tests of dictionaries against a map, and of SCAN's promise while they grow.

use super::*;
use crate::clock::XorShift;
use crate::hash::KeyHasher;
use crate::reaper::Reaper;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;

pub(crate) struct Ground {
    hasher: KeyHasher,
    reaper: Reaper,
    dicts: AtomicU64,
}

impl Ground {
    pub(crate) fn new(seed: u64) -> Self {
        Self { hasher: KeyHasher::with_seed(seed), reaper: Reaper::default(), dicts: AtomicU64::new(0) }
    }
    pub(crate) fn backing(&self) -> Backing<'_> {
        Backing { hasher: &self.hasher, reaper: &self.reaper, dicts: &self.dicts }
    }
}

fn key(rng: &mut XorShift) -> Vec<u8> {
    format!("key{}", rng.below(3000)).into_bytes()
}

fn value(rng: &mut XorShift) -> Vec<u8> {
    let len = match rng.below(60) {
        0 => 900 + rng.below(300),
        1 => 5000,
        2..=20 => rng.below(200),
        _ => rng.below(20),
    };
    vec![rng.next_u64() as u8; len as usize]
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

fn check(dict: &Dict, model: &Model) {
    assert_eq!(dict.len(), model.len());
    let mut all = Model::new();
    for record in dict.iter() {
        assert!(all.insert(record.key.to_vec(), (record.value.to_vec(), record.expire_ms)).is_none());
    }
    assert_eq!(all, *model);
    let expiring = model.values().filter(|(_, expire_ms)| *expire_ms != NEVER).count();
    assert_eq!(dict.expiring(), expiring);
    let earliest = model.values().map(|(_, expire_ms)| *expire_ms).min().unwrap_or(NEVER);
    assert!(dict.next_due_ms() <= earliest);
}

fn step(dict: &mut Dict, model: &mut Model, rng: &mut XorShift, ground: &Ground, growing: bool) {
    let key = key(rng);
    let expire_ms = if rng.below(5) == 0 { 1 + u64::from(rng.below(1_000_000)) } else { NEVER };
    if rng.below(10) < if growing { 7 } else { 2 } {
        let value = value(rng);
        match dict.find(&key) {
            Some(spot) => {
                dict.replace(spot, &value, expire_ms);
            }
            None => {
                dict.insert(&key, &value, expire_ms, ground.backing());
            }
        }
        model.insert(key, (value, expire_ms));
    } else if let Some(spot) = dict.find(&key) {
        if rng.below(4) == 0 {
            dict.set_expire_ms(spot, expire_ms);
            model.get_mut(&key).unwrap().1 = expire_ms;
        } else {
            dict.remove(spot, ground.backing());
            assert!(model.remove(&key).is_some());
        }
    } else {
        assert!(!model.contains_key(&key));
    }
    dict.tidy();
}

#[test]
fn behaves_like_a_map() {
    for seed in 1..12 {
        println!("seed {seed}");
        let ground = Ground::new(seed);
        let mut rng = XorShift::new(seed);
        let (mut dict, mut model) = (Dict::new(true, Waste::Little, ground.backing()), Model::new());
        for round in 0..24 {
            for _ in 0..600 {
                step(&mut dict, &mut model, &mut rng, &ground, round % 4 < 2);
            }
            check(&dict, &model);
            check(&dict.duplicate(), &model);
            if round % 6 == 5 {
                let due: BTreeSet<_> =
                    model.iter().filter(|(_, (_, at))| *at <= 400_000).map(|(key, _)| key.clone()).collect();
                let mut gone = BTreeSet::new();
                dict.expire_due(400_000, usize::MAX, ground.backing(), |record| {
                    assert!(gone.insert(record.key.to_vec()));
                });
                assert_eq!(gone, due);
                model.retain(|key, _| !due.contains(key));
                check(&dict, &model);
            }
        }
        let bytes = dict.memory_bytes();
        while !dict.free_step(1) {}
        assert!(dict.memory_bytes() < bytes);
    }
}

#[test]
fn memory_comes_back_after_removals() {
    let ground = Ground::new(1);
    let mut dict = Dict::new(false, Waste::Little, ground.backing());
    let name = |number: u32| format!("member:{number:09}").into_bytes();
    for number in 0..100_000 {
        dict.insert(&name(number), b"", NEVER, ground.backing());
    }
    let full = dict.memory_bytes();
    // 24 bytes and 10 to 13 in the table, of which there may be two.
    assert!(full < 100_000 * 50, "{full}");
    for number in 0..95_000 {
        let spot = dict.find(&name(number)).unwrap();
        dict.remove(spot, ground.backing());
        dict.tidy();
    }
    assert!(dict.memory_bytes() < full / 8, "{} of {full}", dict.memory_bytes());
    assert!((95_000..100_000).all(|number| dict.find(&name(number)).is_some()));
}

#[test]
fn scan_meets_what_stays() {
    for seed in 1..10 {
        println!("seed {seed}");
        let ground = Ground::new(seed);
        let mut rng = XorShift::new(seed);
        let mut dict = Dict::new(false, Waste::Little, ground.backing());
        let stable: BTreeSet<Vec<u8>> = (0..700).map(|number| format!("s{number}").into_bytes()).collect();
        stable.iter().for_each(|key| {
            dict.insert(key, b"", NEVER, ground.backing());
        });
        let (mut met, mut cursor, mut calls) = (BTreeSet::new(), 0, 0);
        loop {
            cursor = dict.scan(cursor, 10, |record| {
                met.insert(record.key.to_vec());
            });
            calls += 1;
            if cursor == 0 {
                break;
            }
            for _ in 0..rng.below(100) {
                let extra = format!("x{}", rng.below(4000)).into_bytes();
                let found = dict.find(&extra);
                if seed % 2 == 0 || calls < 40 {
                    if found.is_none() {
                        dict.insert(&extra, b"", NEVER, ground.backing());
                    }
                } else if let Some(spot) = found {
                    dict.remove(spot, ground.backing());
                    dict.tidy();
                }
            }
        }
        assert!(met.is_superset(&stable), "{calls} calls");
    }
}

#[test]
fn every_record_is_as_likely() {
    let ground = Ground::new(3);
    let mut rng = XorShift::new(3);
    for len in [1_u32, 5, 40, 130] {
        let mut dict = Dict::new(false, Waste::Little, ground.backing());
        for number in 0..len {
            dict.insert(&number.to_le_bytes(), b"", NEVER, ground.backing());
        }
        let mut counts = vec![0_u32; len as usize];
        for _ in 0..len * 400 {
            let key = dict.random(&mut rng).unwrap().key;
            counts[u32::from_le_bytes(*key.first_chunk().unwrap()) as usize] += 1;
        }
        // 400 expected, with a deviation of 20.
        assert!(counts.iter().all(|&count| (300..500).contains(&count)), "{counts:?}");
    }
}

/// What is walked in one and added to another comes in no order that the other has: in its own order each member would
/// be looked for past all before it.
#[test]
fn a_walk_of_one_is_no_order_of_another() {
    let ground = Ground::new(5);
    let mut walked = Dict::new(false, Waste::Little, ground.backing());
    for number in 0..10_000 {
        walked.insert(format!("member:{number}").as_bytes(), b"", NEVER, ground.backing());
    }
    // Also where both begin with the same member: who knows one can choose it.
    let mut order: Vec<Vec<u8>> = walked.iter().map(|record| record.key.to_vec()).collect();
    let first = order.iter().position(|key| key == b"member:0").expect("it is there");
    order[..=first].rotate_right(1);
    let place: BTreeMap<&[u8], usize> = order.iter().zip(0..).map(|(key, at)| (&key[..], at)).collect();
    let mut other = Dict::new(false, Waste::Little, ground.backing());
    for key in &order {
        other.insert(key, b"", NEVER, ground.backing());
    }
    let places: Vec<usize> = other.iter().map(|record| place[record.key]).collect();
    for (tenth, places) in places.chunks(1000).enumerate() {
        let same = places.iter().filter(|&&at| at / 1000 == tenth).count();
        assert!(same < 200, "{same} of 1000 members of tenth {tenth} stand there in the other too");
    }
}
