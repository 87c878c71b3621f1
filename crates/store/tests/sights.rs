//! What a batch has seen while it prefetched, against a plain map: whatever happens to the keys behind it, a sight
//! gives the key's present value or nothing. The seed is printed.
// Helpers outside #[test] functions are still tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use weft_store::stream::Group;
use weft_store::{
    Changed, Config, End, Expiry, HashLimits, KeyHasher, Keyspace, ListLimit, NewValue, Op, Recorder, Rng,
    SetLimits, SortedSetLimits, StreamId, ValueRef, Worker, XorShift,
};

/// The sizes of the first test. Under Miri, which takes some thousand times as long, it is a small model of itself:
/// fewer keys, so that they meet as often.
const KEYS: u32 = if cfg!(miri) { 40 } else { 400 };
const BATCHES: usize = if cfg!(miri) { 6 } else { 400 };
const LOOKED_FOR: usize = if cfg!(miri) { 16 } else { 64 };
const COMMANDS: usize = if cfg!(miri) { 40 } else { 200 };
/// Keys that come and go beside those.
const OTHERS: u32 = if cfg!(miri) { 10 } else { 40 };
/// What a batch reads through sights, writes over, writes over that had an expiry, and asks for too late, at least, in
/// all four hundred.
const LEAST: [usize; 4] = if cfg!(miri) { [400, 80, 0, 0] } else { [2000, 300, 30, 100] };
/// Keys of the last test, and how many of them may not be found.
const MANY: u32 = if cfg!(miri) { 300 } else { 20_000 };
const NOW_MS: u64 = 1_700_000_000_000;

/// What expires does so within so many milliseconds; between two commands pass at most some.
const EXPIRES_MS: u32 = 2000;
const PASSES_MS: u32 = 3;

/// Texts, and when they expire.
#[derive(Default)]
struct Model {
    texts: BTreeMap<(u8, u32), (Vec<u8>, u64)>,
    now_ms: u64,
}

impl Model {
    fn get(&self, name: (u8, u32)) -> Option<&Vec<u8>> {
        self.texts.get(&name).filter(|(_, expires)| *expires > self.now_ms).map(|(text, _)| text)
    }
}

/// What came of the sights of some batches.
#[derive(Clone, Copy, Default, Debug)]
struct Came {
    read: usize,
    written: usize,
    /// Of the written ones, those that had an expiry.
    lost: usize,
    /// Of entries that had expired since they were seen, those that were asked for.
    too_late: usize,
}

fn name(number: u32) -> Vec<u8> {
    // Short and long ones, so that both ways of comparing are used.
    if number.is_multiple_of(3) { format!("key:{number:030}").into() } else { format!("k{number}").into() }
}

/// A keyspace that has what a test looks at, and little else.
fn config(shards: usize, seed: u64) -> Config {
    let hasher = KeyHasher::with_seed(seed);
    Config { shards, databases: 2, workers: 2, hasher, seed, ..Config::default() }
}

fn text(rng: &mut XorShift) -> Vec<u8> {
    let len = [3, 16, 17, 40, 700, 6000][rng.below(6) as usize];
    let first = rng.below(26) as usize;
    (first..first + len).map(|at| b'a' + (at % 26) as u8).collect()
}

fn bytes(value: &ValueRef<'_>) -> Vec<u8> {
    value.as_bytes(&mut weft_store::Digits::default()).unwrap().to_vec()
}

/// One batch: sights of many keys, then commands to some while time passes, and reads through the sights between them.
/// Where the batch is not `alone`, another worker changes keys between them too.
fn run(workers: &mut [Worker<'_>; 2], alone: bool, rng: &mut XorShift, model: &mut Model, came: &mut Came) {
    let [worker, other] = workers;
    let keyspace = worker.keyspace();
    let mut batch = if alone { worker.enter_alone() } else { worker.enter() };
    let looked_for: Vec<(u8, u32)> = (0..LOOKED_FOR).map(|_| (rng.below(2) as u8, rng.below(KEYS))).collect();
    let hash = |number| keyspace.key(&name(number)).hash();
    for &(db, number) in &looked_for {
        let reads = rng.below(2) == 0;
        batch.prefetch_bucket(db, hash(number), reads);
    }
    batch.prefetch_entries(0, looked_for.iter().map(|&(_, number)| (hash(number), rng.below(2) == 0)));
    batch.prefetch_passed();
    for _ in 0..COMMANDS {
        model.now_ms += u64::from(rng.below(PASSES_MS));
        let now_ms = model.now_ms;
        let at = rng.below(LOOKED_FOR as u32) as usize;
        let (db, number) = looked_for[at];
        let bytes_of_key = name(number);
        let key = keyspace.key(&bytes_of_key);
        let mut sink = Recorder::default();
        let mut op = Op::new(db, now_ms, &mut sink);
        let is_late =
            batch.saw(at) && model.texts.contains_key(&(db, number)) && model.get((db, number)).is_none();
        match rng.below(10) {
            0 | 1 => {
                let others = (!alone && rng.below(2) == 0).then(|| other.enter());
                let mut shard = others.as_ref().unwrap_or(&batch).lock(&key);
                if rng.below(2) == 0 {
                    let is_there = model.get((db, number)).is_some();
                    assert_eq!(shard.remove(&mut op, &key).is_some(), is_there);
                    model.texts.remove(&(db, number));
                } else {
                    let value = text(rng);
                    let expires = (rng.below(3) == 0).then(|| now_ms + 1 + u64::from(rng.below(EXPIRES_MS)));
                    let expiry = expires.map_or(Expiry::None, Expiry::At);
                    shard.set(&mut op, &key, NewValue::string(&value), expiry);
                    model.texts.insert((db, number), (value, expires.unwrap_or(u64::MAX)));
                }
            }
            2 => {
                // Others come and go, so that tables grow and shrink.
                for other in 0..OTHERS {
                    let bytes = name(KEYS + other);
                    let other_key = keyspace.key(&bytes);
                    let mut shard = batch.lock(&other_key);
                    if rng.below(2) == 0 {
                        shard.set(&mut op, &other_key, NewValue::string(b"x"), Expiry::None);
                    } else {
                        shard.remove(&mut op, &other_key);
                    }
                }
            }
            3..=5 => {
                let value = text(rng);
                came.too_late += usize::from(is_late);
                if batch.rewrite(at, &mut op, &key, &value) {
                    assert!(model.get((db, number)).is_some(), "only what is there is written over");
                    assert_eq!(batch.lock(&key).expire_ms(&mut op, &key), Some(None));
                    let (_, expired) = model.texts.insert((db, number), (value, u64::MAX)).unwrap();
                    came.lost += usize::from(expired != u64::MAX);
                    came.written += 1;
                }
            }
            _ => {
                came.too_late += usize::from(is_late);
                // Another's sight, of the same database, has another entry, mostly of another shard.
                let is_its_own = rng.below(8) > 0;
                let others = || looked_for.iter().position(|&(its, other)| its == db && other != number);
                let at = if is_its_own { at } else { others().unwrap_or(at) };
                let mut seen = Vec::new();
                let take = |value: &ValueRef<'_>| {
                    seen = bytes(value);
                    true
                };
                if batch.read(at, &key, now_ms, take) {
                    assert_eq!(Some(&seen), model.get((db, number)), "key {number} of database {db}");
                    came.read += 1;
                }
            }
        }
        let there = batch.lock(&key).get(&mut op, &key).map(|value| bytes(&value));
        assert_eq!(there.as_ref(), model.get((db, number)), "key {number} of database {db}");
    }
    drop(batch);
    let mut expiring = [0; 2];
    worker.world().each_key(|db, _, _, expire_ms| expiring[db as usize] += usize::from(expire_ms.is_some()));
    assert_eq!(expiring, [0, 1].map(|db| keyspace.expiring(db)), "every expiry is counted");
}

#[test]
fn a_sight_gives_what_is_there_or_nothing() {
    let seed = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(11);
    println!("seed {seed} (WEFT_SEED)");
    let mut rng = XorShift::new(seed);
    let keyspace = Keyspace::new(config(4, seed));
    let mut workers = [keyspace.worker().unwrap(), keyspace.worker().unwrap()];
    let mut model = Model { now_ms: NOW_MS, ..Model::default() };
    let mut recorder = Recorder::default();
    for number in 0..KEYS / 2 {
        let (bytes, value) = (name(number), text(&mut rng));
        let (key, db) = (keyspace.key(&bytes), (number % 2) as u8);
        let op = &mut Op::new(db, NOW_MS, &mut recorder);
        workers[0].enter().lock(&key).set(op, &key, NewValue::string(&value), Expiry::None);
        model.texts.insert((db, number), (value, u64::MAX));
    }
    let mut came = Came::default();
    for round in 0..BATCHES {
        run(&mut workers, round % 2 == 0, &mut rng, &mut model, &mut came);
    }
    // What the tables have counted goes with them.
    let (worker, now_ms) = (&mut workers[0], model.now_ms);
    worker.world().flush(&mut Op::new(0, now_ms, &mut recorder), 0..=1);
    for db in 0..2 {
        let key = keyspace.key(b"key");
        let op = &mut Op::new(db, now_ms, &mut recorder);
        worker.enter().lock(&key).set(op, &key, NewValue::string(b"text"), Expiry::At(now_ms + 5));
        assert_eq!(keyspace.expiring(db), 1);
    }
    let counts = [came.read, came.written, came.lost, came.too_late];
    assert!(
        counts.iter().zip(LEAST).all(|(came, least)| *came >= least * BATCHES / 400),
        "sights are good for something, and some come too late: {came:?}"
    );
    println!("{came:?}");
}

#[test]
fn a_sight_is_forgotten_with_its_batch() {
    let keyspace = Keyspace::new(config(4, 5));
    let mut worker = keyspace.worker().unwrap();
    let key = keyspace.key(b"key");
    let mut sink = Recorder::default();
    let mut op = Op::new(0, NOW_MS, &mut sink);
    let mut batch = worker.enter();
    batch.lock(&key).set(&mut op, &key, NewValue::string(b"value"), Expiry::None);
    batch.prefetch_bucket(0, key.hash(), true);
    batch.prefetch_entries(0, [(key.hash(), true)]);
    assert!(batch.read(0, &key, NOW_MS, |_| true));
    assert!(!batch.read(0, &key, NOW_MS, |_| false), "whoever reads wants another way");
    assert!(!batch.read(1, &key, NOW_MS, |_| true));
    drop(batch);
    assert!(!worker.enter().read(0, &key, NOW_MS, |_| true));
}

/// In a small keyspace of many keys some share a tag with another of their bucket, and some have passed theirs: a sight
/// finds both, all but a few.
#[test]
fn a_sight_finds_equal_tags_and_passed_keys() {
    let keyspace = Keyspace::new(config(1, 3));
    let mut worker = keyspace.worker().unwrap();
    let mut sink = Recorder::default();
    let mut op = Op::new(0, NOW_MS, &mut sink);
    let batch = worker.enter();
    for number in 0..MANY {
        let bytes = name(number);
        let key = keyspace.key(&bytes);
        batch.lock(&key).set(&mut op, &key, NewValue::string(&bytes), Expiry::None);
    }
    drop(batch);
    let mut missed = 0;
    for from in (0..MANY).step_by(50) {
        let mut batch = worker.enter();
        let numbers = from..from + 50;
        numbers.clone().for_each(|number| {
            batch.prefetch_bucket(0, keyspace.key(&name(number)).hash(), true);
        });
        batch.prefetch_entries(0, numbers.clone().map(|number| (keyspace.key(&name(number)).hash(), true)));
        batch.prefetch_passed();
        for (at, number) in numbers.enumerate() {
            let bytes_of_key = name(number);
            let key = keyspace.key(&bytes_of_key);
            let mut read = |at| {
                batch.read(at, &key, NOW_MS, |value| {
                    assert_eq!(bytes(value), bytes_of_key, "key {number}");
                    true
                })
            };
            missed += u32::from(!read(at));
            // Another's sight has another entry: it gives the key's value or nothing.
            read((at + 1) % 50);
        }
    }
    println!("{missed} of {MANY} were not found");
    assert!(missed < MANY / 100, "{missed} of {MANY}");
}

/// What a key of the last test holds: a kind, and how many elements.
fn fill(batch: &weft_store::Batch<'_>, key: &weft_store::Key<'_>, kind: u32, elements: u32) {
    let mut sink = Recorder::default();
    let op = &mut Op::new(0, NOW_MS, &mut sink);
    let mut shard = batch.lock(key);
    let element = |at: u32| format!("element{at:040}").into_bytes();
    match kind {
        0 => drop(shard.change_set(op, key, true, SetLimits::default(), |set| {
            (0..elements).for_each(|at| assert!(set.add(&element(at))));
            Changed::yes(())
        })),
        1 => drop(shard.change_hash(op, key, true, HashLimits::default(), |hash| {
            (0..elements).for_each(|at| assert!(hash.set(&element(at), b"value")));
            Changed::yes(())
        })),
        2 => drop(shard.change_sorted_set(op, key, true, SortedSetLimits::default(), |set| {
            (0..elements).for_each(|at| assert!(set.add(&element(at), f64::from(at))));
            Changed::yes(())
        })),
        3 => drop(shard.change_list(op, key, true, ListLimit::default(), |list| {
            (0..elements).for_each(|at| list.push(End::Back, &element(at)));
            Changed::yes(())
        })),
        _ => drop(shard.change_stream(op, key, true, |stream| {
            assert!(stream.create_group(b"group", Group::new(StreamId::MIN, None)));
            Changed::yes(())
        })),
    }
}

#[test]
fn objects_are_asked_for_whatever_becomes_of_them() {
    let (kinds, sizes) = (5, if cfg!(miri) { [3, 40, 150] } else { [3, 40, 400] });
    let keyspace = Keyspace::new(config(4, 5));
    let mut worker = keyspace.worker().unwrap();
    let mut rng = XorShift::new(5);
    for round in 0..if cfg!(miri) { 3 } else { 200 } {
        let mut batch = if round % 4 == 3 { worker.enter() } else { worker.enter_alone() };
        let names: Vec<Vec<u8>> = (0..LOOKED_FOR).map(|_| name(rng.below(KEYS / 8))).collect();
        let keys: Vec<_> = names.iter().map(|name| keyspace.key(name)).collect();
        keys.iter().for_each(|key| batch.prefetch_bucket(0, key.hash(), false));
        batch.prefetch_entries(0, keys.iter().map(|key| (key.hash(), false)));
        batch.prefetch_passed();
        batch.prefetch_objects();
        for key in &keys {
            let mut sink = Recorder::default();
            let op = &mut Op::new(0, NOW_MS, &mut sink);
            match rng.below(4) {
                0 => drop(batch.lock(key).remove(op, key)),
                1 => drop(batch.lock(key).set(op, key, NewValue::string(b"text"), Expiry::None)),
                _ => {
                    batch.lock(key).remove(op, key);
                    fill(&batch, key, rng.below(kinds), sizes[rng.below(3) as usize]);
                    assert!(batch.lock(key).get(op, key).is_some());
                }
            }
            // What was seen is another one's by now, or nobody's.
            if rng.below(8) == 0 {
                batch.prefetch_objects();
            }
        }
    }
}
