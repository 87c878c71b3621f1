//! Collections in the keyspace: expiry of fields on sight and by the cycle, effects, memory that is counted and given
//! back, and large ones freed in steps.
// Helpers outside #[test] functions are still tests.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use weft_store::{
    Changed, Config, Effect, Expiry, ExpiryCycle, FieldExpiry, Garbage, HashLimits, KeyHasher, KeyedEffect,
    Keyspace, Maintenance, NewValue, Op, Recorder, Rng, SetLimits, ShardGuard, SharedBytes, SortedSetLimits,
    XorShift, wants,
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

impl Seen {
    /// What was told so far.
    fn of(recorder: &Recorder) -> Self {
        let mut seen = Self::default();
        for KeyedEffect { key, effect, .. } in recorder.tape().read() {
            match effect {
                Effect::FieldExpired { field } => drop(seen.fields.insert(field.to_vec())),
                Effect::Delete { .. } => seen.deleted.push(key.to_vec()),
                _ => {}
            }
        }
        seen
    }
}

/// One whose tape is read.
fn recorder() -> Recorder {
    let mut recorder = Recorder::default();
    recorder.want(wants::VALUES);
    recorder
}

/// A hash with fields 0 to `count`, of which field n expires at 1,000 + n, and one that stays if `stays`.
fn fill(keyspace: &Keyspace, key: &[u8], db: u8, count: u64, stays: bool) {
    let mut worker = keyspace.worker().unwrap();
    let batch = worker.enter();
    let key = keyspace.key(key);
    let mut sink = Recorder::default();
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
    let mut seen = recorder();
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
    assert_eq!(Seen::of(&seen).fields.len(), 5000);
    assert!(Seen::of(&seen).deleted.is_empty());
}

#[test]
fn fields_expire_by_the_cycle() {
    let keyspace = keyspace();
    for name in [&b"one"[..], b"two", b"three", b"four"] {
        fill(&keyspace, name, 0, 1000, false);
    }
    fill(&keyspace, b"five", 1, 10, true);
    let mut worker = keyspace.worker().unwrap();
    let mut seen = recorder();
    let mut cycle = ExpiryCycle::default();
    let mut run = |seen: &mut Recorder, now_ms| {
        for _ in 0..1000 {
            if cycle.step(&worker.enter(), now_ms, 100, seen).round_done {
                return;
            }
        }
        panic!("the round does not end");
    };
    run(&mut seen, 999);
    assert!(Seen::of(&seen).fields.is_empty());
    run(&mut seen, 1499);
    assert_eq!(Seen::of(&seen).fields.len(), 500);
    assert!(Seen::of(&seen).deleted.is_empty());
    run(&mut seen, 5000);
    assert_eq!(Seen::of(&seen).fields.len(), 1000);
    assert_eq!(Seen::of(&seen).deleted.len(), 4);
    assert_eq!((keyspace.len(0), keyspace.len(1)), (0, 1));
    assert_eq!(keyspace.total(weft_store::Counter::ExpiredFields), 4010);
}

#[test]
fn field_index_follows_the_keys() {
    let keyspace = keyspace();
    fill(&keyspace, b"a", 0, 10, true);
    let mut worker = keyspace.worker().unwrap();
    let (a, b) = (keyspace.key(b"a"), keyspace.key(b"b"));
    let mut seen = recorder();
    {
        let batch = worker.enter();
        let mut guards = batch.lock_keys([&a, &b]);
        let mut op = Op::new(0, 1, &mut seen);
        let copy = guards.shard(&a).copy(&mut op, &a).unwrap();
        let taken = guards.shard(&a).take(&mut op, &a).unwrap();
        keyspace.discard(guards.shard(&b).put(&mut op, &b, taken));
        keyspace.discard(guards.shard(&a).put(&mut Op::new(1, 1, &mut seen), &a, copy));
    }
    worker.world().swap(&mut Op::new(0, 1004, &mut seen), 1);
    let mut cycle = ExpiryCycle::default();
    while !cycle.step(&worker.enter(), 1004, 100, &mut seen).round_done {}
    assert_eq!(keyspace.total(weft_store::Counter::ExpiredFields), 10, "five in each of two hashes");
    worker.world().flush(&mut Op::new(1, 1004, &mut seen), 1..=1);
    while !cycle.step(&worker.enter(), 5000, 100, &mut seen).round_done {}
    assert_eq!(keyspace.total(weft_store::Counter::ExpiredFields), 15, "a flushed hash has none");
}

#[test]
fn memory_is_counted_and_large_values_are_freed_in_steps() {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().unwrap();
    let key = keyspace.key(b"set");
    let empty = keyspace.used_bytes();
    let mut sink = Recorder::default();
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

/// What is freed was none of the shards': maintenance that has looked at them all does not for it look again.
#[test]
fn what_is_freed_brings_no_new_look_at_all_shards() {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().unwrap();
    let mut maintenance = Maintenance::default();
    while !maintenance.step(&worker.enter()).idle {}
    for _ in 0..100 {
        keyspace.discard(Garbage::Shared(SharedBytes::new(vec![0; 1 << 20])));
        assert!(keyspace.discarded_bytes() > 0);
        let step = maintenance.step(&worker.enter());
        assert!(step.worked && !step.idle);
        assert_eq!(keyspace.discarded_bytes(), 0);
        assert!(maintenance.step(&worker.enter()).idle);
    }
}

/// Adds or removes a member of a hash, a set or a sorted set, whichever the key's first letter says.
fn change(
    shard: &mut ShardGuard<'_>,
    op: &mut Op<'_>,
    key: &weft_store::Key<'_>,
    member: &[u8],
    add: bool,
) -> bool {
    let done = match key.bytes()[0] {
        b'h' => shard.change_hash(op, key, add, HashLimits::default(), |hash| {
            let done = if add { hash.set(member, member) } else { hash.remove(member, |_| ()).is_some() };
            Changed { result: done, changed: done }
        }),
        b's' | b'i' => shard.change_set(op, key, add, SetLimits::default(), |set| {
            let done = if add { set.add(member) } else { set.remove(member) };
            Changed { result: done, changed: done }
        }),
        _ => shard.change_sorted_set(op, key, add, SortedSetLimits::default(), |set| {
            let done = if add { set.add(member, 1.5) } else { set.remove(member).is_some() };
            Changed { result: done, changed: done }
        }),
    };
    done.unwrap().unwrap_or(false)
}

/// All members of a key, whatever it is.
fn members(shard: &mut ShardGuard<'_>, op: &mut Op<'_>, key: &weft_store::Key<'_>) -> BTreeSet<Vec<u8>> {
    let Some(value) = shard.get(op, key) else { return BTreeSet::new() };
    if let Some(hash) = value.as_hash() {
        return hash.iter().map(|(field, _)| field.to_vec()).collect();
    }
    if let Some(set) = value.as_set() {
        return set.iter().map(|member| member.to_vec()).collect();
    }
    let set = value.as_sorted_set().unwrap();
    set.iter(0..set.len()).map(|element| element.member.to_vec()).collect()
}

/// Collections of every form, small ones inside their entries: changed, copied, renamed, given an expiry.
#[test]
fn collections_live_in_entries_and_boxes() {
    for seed in 1..6 {
        println!("seed {seed}");
        let keyspace = keyspace();
        let mut worker = keyspace.worker().unwrap();
        let mut rng = XorShift::new(seed);
        let mut model: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>> = BTreeMap::new();
        let mut sink = Recorder::default();
        let mut maintenance = Maintenance::default();
        for _ in 0..30_000 {
            let (letter, number) = (b"hsiz"[rng.below(4) as usize], rng.below(12));
            let name = format!("{}{number}", letter as char).into_bytes();
            let other = format!("{}{}", letter as char, rng.below(12)).into_bytes();
            let kinds = [5, 20, 60, 400][number as usize % 4];
            let member = match letter {
                b'i' => rng.below(kinds).to_string(),
                _ => format!("member:{}", rng.below(kinds)),
            };
            let (key, second) = (keyspace.key(&name), keyspace.key(&other));
            let batch = worker.enter();
            let mut guards = batch.lock_keys([&key, &second]);
            let mut op = Op::new(0, 1, &mut sink);
            match rng.below(40) {
                0 => {
                    let copy = guards.shard(&key).peek(&mut op, &key).map(|value| value.to_new());
                    let Some(NewValue::Object(copy)) = copy else { continue };
                    guards.shard(&second).set(&mut op, &second, NewValue::Object(copy), Expiry::At(1000));
                    model.insert(other, model[&name].clone());
                }
                1 if name != other => {
                    let Some(taken) = guards.shard(&key).take(&mut op, &key) else { continue };
                    keyspace.discard(guards.shard(&second).put(&mut op, &second, taken));
                    let moved = model.remove(&name).unwrap();
                    model.insert(other, moved);
                }
                2 => {
                    let at = (rng.below(2) == 0).then_some(500);
                    let found = guards.shard(&key).set_expire_ms(&mut op, &key, at);
                    assert_eq!(found, model.contains_key(&name));
                }
                3 if rng.below(4) == 0 => {
                    let gone = guards.shard(&key).remove(&mut op, &key);
                    assert_eq!(gone.is_some(), model.remove(&name).is_some());
                }
                choice => {
                    let add = choice < 26;
                    let done = change(guards.shard(&key), &mut op, &key, member.as_bytes(), add);
                    let set = model.entry(name.clone()).or_default();
                    let expected =
                        if add { set.insert(member.into_bytes()) } else { set.remove(member.as_bytes()) };
                    assert_eq!(done, expected);
                    if set.is_empty() {
                        model.remove(&name);
                    }
                }
            }
            let shard = guards.shard(&key);
            assert_eq!(members(shard, &mut op, &key), model.get(&name).cloned().unwrap_or_default());
            drop(guards);
            maintenance.step(&batch);
        }
        assert_eq!(keyspace.len(0), model.len());
        for name in model.keys() {
            let key = keyspace.key(name);
            let batch = worker.enter();
            batch.lock(&key).remove(&mut Op::new(0, 1, &mut sink), &key).unwrap();
        }
        assert_eq!(keyspace.used_bytes(), 0, "everything that was counted is given back");
    }
}
