//! Collections in the keyspace: expiry of fields on sight and by the cycle, effects, memory that is counted and given
//! back, and large ones freed in steps.
// Helpers outside #[test] functions are still tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use weft_store::{
    Changed, Config, Effect, EffectSink, Expiry, ExpiryCycle, FieldExpiry, HashLimits, KeyHasher, Keyspace,
    Maintenance, NoEffects, Op, SetLimits,
};

fn keyspace() -> Keyspace {
    Keyspace::new(Config {
        shards: 4,
        databases: 2,
        workers: 2,
        hasher: KeyHasher::with_seed(1),
        seed: 1,
        huge_pages: false,
    })
}

/// Remembers fields that expired and keys that were deleted.
#[derive(Default)]
struct Seen {
    fields: BTreeSet<Vec<u8>>,
    deleted: Vec<Vec<u8>>,
}

impl EffectSink for Seen {
    fn emit(&mut self, _: u64, _: u8, effect: &Effect<'_>) {
        match effect {
            Effect::FieldsExpired { fields, .. } => {
                self.fields.extend(fields.iter().map(|field| field.to_vec()));
            }
            Effect::Delete { key, .. } => self.deleted.push(key.to_vec()),
            _ => {}
        }
    }
}

/// A hash with fields 0 to `count`, of which field n expires at 1,000 + n, and one that stays if `stays`.
fn fill(keyspace: &Keyspace, key: &[u8], db: u8, count: u64, stays: bool) {
    let mut worker = keyspace.worker().unwrap();
    let batch = worker.enter();
    let key = keyspace.key(key);
    let mut sink = NoEffects;
    let mut op = Op::new(db, 1, &mut sink);
    let filled = batch.lock(&key).change_hash(&mut op, &key, true, HashLimits::default(), |hash| {
        for number in 0..count {
            hash.set_with(&number.to_le_bytes(), b"value", FieldExpiry::At(1000 + number));
        }
        if stays {
            hash.set(b"stays", b"value");
        }
        Changed::yes(())
    });
    assert_eq!(filled, Ok(Some(())));
}

#[test]
fn fields_expire_on_sight() {
    let keyspace = keyspace();
    fill(&keyspace, b"h", 0, 5000, true);
    let mut worker = keyspace.worker().unwrap();
    let batch = worker.enter();
    let key = keyspace.key(b"h");
    let mut seen = Seen::default();
    for now_ms in [999, 1000, 1010, 4500, 7000] {
        let mut op = Op::new(0, now_ms, &mut seen);
        let mut shard = batch.lock(&key);
        let hash = shard.get_hash(&mut op, &key).unwrap().unwrap();
        let left = (1000 + 4999_u64).saturating_sub(now_ms).min(5000) as usize;
        assert_eq!(hash.iter().count(), left + 1, "at {now_ms}");
        assert!(hash.get(&0_u64.to_le_bytes()).is_none() || now_ms < 1000);
        assert_eq!(hash.get(b"stays"), Some(&b"value"[..]));
    }
    let mut op = Op::new(0, 7000, &mut seen);
    for _ in 0..40 {
        batch.lock(&key).get_hash(&mut op, &key).unwrap();
    }
    assert_eq!(batch.lock(&key).get_hash(&mut op, &key).unwrap().unwrap().len(), 1);
    assert_eq!(seen.fields.len(), 5000);
    assert!(seen.deleted.is_empty());
}

#[test]
fn fields_expire_by_the_cycle() {
    let keyspace = keyspace();
    for name in [&b"one"[..], b"two", b"three", b"four"] {
        fill(&keyspace, name, 0, 1000, false);
    }
    fill(&keyspace, b"five", 1, 10, true);
    let mut worker = keyspace.worker().unwrap();
    let mut seen = Seen::default();
    let mut cycle = ExpiryCycle::default();
    let mut run = |seen: &mut Seen, now_ms| {
        for _ in 0..1000 {
            if cycle.step(&worker.enter(), now_ms, 100, seen).round_done {
                return;
            }
        }
        panic!("the round does not end");
    };
    run(&mut seen, 999);
    assert!(seen.fields.is_empty());
    run(&mut seen, 1499);
    assert_eq!(seen.fields.len(), 500);
    assert!(seen.deleted.is_empty());
    run(&mut seen, 5000);
    assert_eq!(seen.fields.len(), 1000);
    assert_eq!(seen.deleted.len(), 4);
    assert_eq!((keyspace.len(0), keyspace.len(1)), (0, 1));
    assert_eq!(keyspace.total(weft_store::Counter::ExpiredFields), 4010);
}

#[test]
fn field_index_follows_the_keys() {
    let keyspace = keyspace();
    fill(&keyspace, b"a", 0, 10, true);
    let mut worker = keyspace.worker().unwrap();
    let (a, b) = (keyspace.key(b"a"), keyspace.key(b"b"));
    let mut seen = Seen::default();
    {
        let batch = worker.enter();
        let mut guards = batch.lock_keys([&a, &b]);
        let mut op = Op::new(0, 1, &mut seen);
        let copy = guards.shard(&a).peek(&mut op, &a).unwrap().to_new();
        let weft_store::NewValue::Object(copy) = copy else { panic!("a hash is an object") };
        let taken = guards.shard(&a).take(&mut op, &a).unwrap();
        let mut text = Vec::new();
        guards.shard(&b).set(&mut op, &b, taken.value.into_new(&mut text), Expiry::None);
        let mut elsewhere = Op::new(1, 1, &mut seen);
        let copy = weft_store::NewValue::Object(copy);
        guards.shard(&a).set(&mut elsewhere, &a, copy, Expiry::None);
    }
    worker.world().swap(0, 1, &mut seen);
    let mut cycle = ExpiryCycle::default();
    while !cycle.step(&worker.enter(), 1004, 100, &mut seen).round_done {}
    assert_eq!(keyspace.total(weft_store::Counter::ExpiredFields), 10, "five in each of two hashes");
    worker.world().flush(&mut Op::new(1, 1004, &mut seen));
    while !cycle.step(&worker.enter(), 5000, 100, &mut seen).round_done {}
    assert_eq!(keyspace.total(weft_store::Counter::ExpiredFields), 15, "a flushed hash has none");
}

#[test]
fn memory_is_counted_and_large_values_are_freed_in_steps() {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().unwrap();
    let key = keyspace.key(b"set");
    let empty = keyspace.used_bytes();
    let mut sink = NoEffects;
    for round in 0..10_u32 {
        let batch = worker.enter();
        let mut op = Op::new(0, 1, &mut sink);
        let added = batch.lock(&key).change_set(&mut op, &key, true, SetLimits::default(), |set| {
            for number in 0..20_000_u32 {
                set.add(format!("{round}:{number}").as_bytes());
            }
            Changed::yes(set.view().len())
        });
        assert_eq!(added, Ok(Some(20_000 * (round as usize + 1))));
    }
    assert!(keyspace.used_bytes() > 200_000 * 25);
    let garbage = {
        let batch = worker.enter();
        let mut op = Op::new(0, 1, &mut sink);
        batch.lock(&key).remove(&mut op, &key).unwrap()
    };
    assert_eq!(keyspace.used_bytes(), empty);
    let bytes = garbage.memory_bytes();
    keyspace.discard(garbage);
    assert!(keyspace.discarded_bytes() >= bytes, "what takes long waits for maintenance");
    let mut maintenance = Maintenance::default();
    let mut steps = 0;
    while keyspace.discarded_bytes() > 0 {
        maintenance.step(&worker.enter());
        steps += 1;
        assert!(steps < 1000);
    }
    assert!(steps > 4, "in steps, not at once");
}
