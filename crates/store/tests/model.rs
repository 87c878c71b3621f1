//! The keyspace against a plain map with a fake clock: random commands, every result compared. The seed is printed.
// Helpers outside #[test] functions are still tests.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use weft_store::{
    Cause, Changed, Config, Cursor, Digest, Effect, End, Expiry, ExpiryCycle, KeyHasher, Keyspace, ListLimit,
    ListMut, Maintenance, NewValue, ObjectRef, Op, Recorder, Replayer, Rng, ValueRef, Worker, XorShift,
    wants,
};

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
}

#[derive(Clone, Debug, PartialEq)]
struct Item {
    value: Value,
    expire_ms: Option<u64>,
}

type Model = BTreeMap<(u8, Vec<u8>), Item>;

/// Another keyspace, which is fed nothing but the effects.
struct Follower<'k> {
    worker: Worker<'k>,
    replayer: Replayer,
    expired: usize,
}

impl Follower<'_> {
    /// Applies what was told.
    fn follow(&mut self, recorder: &mut Recorder) {
        recorder.end_group();
        let world = self.worker.world();
        for told in recorder.tape().read() {
            self.expired +=
                usize::from(matches!(told.effect, Effect::Delete { cause: Cause::Expired | Cause::Overdue }));
            self.replayer.apply(&world, &told);
        }
        recorder.clear();
    }
    fn digest(&mut self) -> Digest {
        Digest::of_keyspace(&self.worker.world())
    }
}

fn owned(value: &ValueRef<'_>) -> Value {
    match value {
        ValueRef::Object(ObjectRef::List(list)) => Value::List(list.iter().map(<[u8]>::to_vec).collect()),
        text => Value::Text(text.as_bytes(&mut weft_store::Digits::default()).unwrap().to_vec()),
    }
}

fn swap(keys: &mut Model, one: u8, two: u8) {
    let old = std::mem::take(keys);
    keys.extend(old.into_iter().map(|((db, key), item)| {
        let db = if db == one {
            two
        } else if db == two {
            one
        } else {
            db
        };
        ((db, key), item)
    }));
}

struct Run<'k> {
    keyspace: &'k Keyspace,
    worker: Worker<'k>,
    model: Model,
    follower: Follower<'k>,
    recorder: Recorder,
    now_ms: u64,
    rng: XorShift,
    maintenance: Maintenance,
    cycle: ExpiryCycle,
}

impl Run<'_> {
    fn key(&mut self) -> Vec<u8> {
        let number = self.rng.below(600);
        match number % 50 {
            0 => vec![b'L'; 65_533 + (number % 7) as usize],
            1 => format!("{number}-{}", "k".repeat(1000)).into_bytes(),
            _ => format!("key{number}").into_bytes(),
        }
    }
    fn text(&mut self) -> Vec<u8> {
        let len = match self.rng.below(20) {
            0 => 4090 + self.rng.below(12),
            1 => self.rng.below(10_000),
            2 => 1100 + self.rng.below(60),
            3..=5 => return self.rng.below(1_000_000).to_string().into_bytes(),
            _ => self.rng.below(120),
        };
        (0..len).map(|at| b'a' + (at % 23) as u8).collect()
    }
    /// What the model has under a key, after expiry.
    fn seen(&mut self, db: u8, key: &[u8]) -> Option<Item> {
        let name = (db, key.to_vec());
        let item = self.model.get(&name)?.clone();
        if item.expire_ms.is_some_and(|at| at <= self.now_ms) {
            self.model.remove(&name);
            return None;
        }
        Some(item)
    }

    fn step(&mut self) {
        let (db, key, text) = (self.rng.below(3) as u8, self.key(), self.text());
        let expected = self.seen(db, &key);
        let choice = self.rng.below(100);
        let by = i64::from(self.rng.below(100)) - 50;
        let offset = self.rng.below(if choice.is_multiple_of(5) { 6000 } else { 50 }) as usize;
        let at = self.now_ms + 1 + u64::from(self.rng.below(5000));
        let name = (db, key.clone());
        let named = self.keyspace.key(&key);
        let mut batch = self.worker.enter();
        batch.prefetch_bucket(db, named.hash(), false);
        batch.prefetch_entries(0, [(named.hash(), true)]);
        let mut op = Op::new(db, self.now_ms, &mut self.recorder);
        let mut shard = batch.lock(&named);
        match choice {
            0..=24 => {
                let expiry = [Expiry::None, Expiry::Keep, Expiry::At(at)][choice as usize % 3];
                let (_, created) = shard.set(&mut op, &named, NewValue::string(&text), expiry);
                assert_eq!(created, expected.is_none());
                let expire_ms = match expiry {
                    Expiry::None => None,
                    Expiry::Keep => expected.and_then(|item| item.expire_ms),
                    Expiry::At(at) => Some(at),
                };
                self.model.insert(name, Item { value: Value::Text(text), expire_ms });
            }
            25..=39 => {
                let got = shard.get(&mut op, &named).map(|value| owned(&value));
                assert_eq!(got, expected.as_ref().map(|item| item.value.clone()));
                let expire_ms = shard.expire_ms(&mut op, &named);
                assert_eq!(expire_ms, expected.map(|item| item.expire_ms));
            }
            40..=54 => {
                assert_eq!(shard.remove(&mut op, &named).is_some(), expected.is_some());
                self.model.remove(&name);
            }
            55..=61 => {
                let set = choice.is_multiple_of(2).then_some(at);
                assert_eq!(shard.set_expire_ms(&mut op, &named, set), expected.is_some());
                if let Some(item) = self.model.get_mut(&name) {
                    item.expire_ms = set;
                }
            }
            62..=68 => {
                let got = shard.append(&mut op, &named, &text);
                let item = expected.unwrap_or(Item { value: Value::Text(vec![]), expire_ms: None });
                let Value::Text(mut old) = item.value else { return assert!(got.is_err()) };
                old.extend_from_slice(&text);
                assert_eq!(got, Ok(old.len()));
                self.model.insert(name, Item { value: Value::Text(old), expire_ms: item.expire_ms });
            }
            69..=74 => {
                let got = shard.set_range(&mut op, &named, offset, &text);
                let item = expected.unwrap_or(Item { value: Value::Text(vec![]), expire_ms: None });
                let Value::Text(mut old) = item.value else { return assert!(got.is_err()) };
                old.resize(old.len().max(offset + text.len()), 0);
                old[offset..offset + text.len()].copy_from_slice(&text);
                assert_eq!(got, Ok(old.len()));
                self.model.insert(name, Item { value: Value::Text(old), expire_ms: item.expire_ms });
            }
            75..=80 => {
                let got = shard.increment(&mut op, &named, by);
                let item = expected.unwrap_or(Item { value: Value::Text(b"0".to_vec()), expire_ms: None });
                let number = match &item.value {
                    Value::Text(text) => weft_store::parse_int(text),
                    Value::List(_) => None,
                };
                assert_eq!(got.ok(), number.map(|number| number + by));
                if let Some(number) = number {
                    let value = Value::Text((number + by).to_string().into_bytes());
                    self.model.insert(name, Item { value, expire_ms: item.expire_ms });
                }
            }
            81..=92 => {
                let push = |list: &mut ListMut<'_>| {
                    list.push(End::Back, &text);
                    Changed::yes(list.len())
                };
                let pop = |list: &mut ListMut<'_>| {
                    list.pop(End::Front, |_| ());
                    Changed::yes(list.len())
                };
                let item = expected.clone().unwrap_or(Item { value: Value::List(vec![]), expire_ms: None });
                let Value::List(mut old) = item.value else {
                    return assert!(
                        shard.change_list(&mut op, &named, true, ListLimit::default(), push).is_err()
                    );
                };
                if choice < 88 {
                    let got = shard.change_list(&mut op, &named, true, ListLimit::default(), push);
                    old.push(text);
                    assert_eq!(got, Ok(Some(old.len())));
                } else if !old.is_empty() {
                    let got = shard.change_list(&mut op, &named, false, ListLimit::default(), pop);
                    old.remove(0);
                    assert_eq!(got, Ok(Some(old.len())));
                } else {
                    assert_eq!(
                        shard.change_list(&mut op, &named, false, ListLimit::default(), pop),
                        Ok(None)
                    );
                }
                if old.is_empty() {
                    self.model.remove(&name);
                } else {
                    self.model.insert(name, Item { value: Value::List(old), expire_ms: item.expire_ms });
                }
            }
            _ => {
                let taken = shard.take(&mut op, &named);
                assert_eq!(taken.is_some(), expected.is_some());
                self.model.remove(&name);
                if let (Some(taken), Some(item)) = (taken, expected) {
                    // Moved to the next database, as MOVE does: the same shard.
                    op.db = (db + 1) % 3;
                    self.keyspace.discard(shard.put(&mut op, &named, taken));
                    self.model.insert(((db + 1) % 3, key.clone()), item);
                }
            }
        }
    }

    fn background(&mut self) {
        for _ in 0..20 {
            self.maintenance.step(&self.worker.enter());
        }
        if self.rng.below(4) == 0 {
            self.now_ms += u64::from(self.rng.below(400));
            while !self.cycle.step(&self.worker.enter(), self.now_ms, 10, &mut self.recorder).round_done {}
            let now_ms = self.now_ms;
            self.model.retain(|_, item| item.expire_ms.is_none_or(|at| at > now_ms));
            let expiring = self.model.values().filter(|item| item.expire_ms.is_some()).count();
            assert_eq!((0..3).map(|db| self.keyspace.expiring(db)).sum::<usize>(), expiring);
        }
        if self.rng.below(60) == 0 {
            let world = self.worker.world();
            world.swap(&mut Op::new(0, self.now_ms, &mut self.recorder), 2);
            swap(&mut self.model, 0, 2);
        }
        if self.rng.below(100) == 0 {
            let world = self.worker.world();
            let removed = world.flush(&mut Op::new(1, self.now_ms, &mut self.recorder), 1..=1);
            assert_eq!(removed, self.model.keys().filter(|(db, _)| *db == 1).count());
            self.model.retain(|(db, _), _| *db != 1);
        }
        for db in 0..3 {
            let len = self.model.keys().filter(|(in_db, _)| *in_db == db).count();
            assert_eq!(self.keyspace.len(db), len, "DBSIZE counts what has not been removed");
        }
    }

    /// SCAN sees exactly the keys that have not expired; the effects alone give the same keys.
    fn check(&mut self) {
        let now_ms = self.now_ms;
        self.model.retain(|_, item| item.expire_ms.is_none_or(|at| at > now_ms));
        for db in 0..3 {
            let mut met = BTreeMap::new();
            let mut cursor = Cursor::START;
            loop {
                let mut op = Op::new(db, now_ms, &mut self.recorder);
                let visit = |key: &[u8], value: ValueRef<'_>| {
                    assert!(met.insert(key.to_vec(), owned(&value)).is_none(), "met twice");
                };
                cursor = self.worker.enter().scan(&mut op, cursor, 10, visit).expect("nobody keeps a shard");
                assert!(cursor.as_u64() < 1 << 53);
                if cursor.is_end() {
                    break;
                }
            }
            let model = self.model.iter().filter(|((in_db, _), _)| *in_db == db);
            let model: BTreeMap<_, _> =
                model.map(|((_, key), item)| (key.clone(), item.value.clone())).collect();
            assert_eq!(met, model);
        }
        self.follower.follow(&mut self.recorder);
        assert_eq!(self.follower.digest(), Digest::of_keyspace(&self.worker.world()));
    }
}

fn keyspace(shards: usize, seed: u64) -> Keyspace {
    let hasher = KeyHasher::with_seed(seed);
    Keyspace::new(Config { shards, databases: 3, workers: 4, hasher, seed, huge_pages: false })
}

#[test]
fn behaves_like_a_map() {
    for seed in 1..=12 {
        println!("seed {seed}");
        let keyspace = keyspace(if seed % 2 == 0 { 1 } else { 8 }, seed);
        // Of another hash: what is told does not depend on it.
        let other = self::keyspace(4, seed + 100);
        let mut recorder = Recorder::default();
        recorder.want(wants::VALUES);
        let mut run = Run {
            recorder,
            keyspace: &keyspace,
            worker: keyspace.worker().unwrap(),
            model: Model::new(),
            follower: Follower { worker: other.worker().unwrap(), replayer: Replayer::default(), expired: 0 },
            now_ms: 1_000_000,
            rng: XorShift::new(seed),
            maintenance: Maintenance::default(),
            cycle: ExpiryCycle::default(),
        };
        for _ in 0..150 {
            (0..40).for_each(|_| run.step());
            run.background();
            run.follower.follow(&mut run.recorder);
        }
        run.check();
        assert!(run.follower.expired > 0);
        let keys: Vec<_> = run.model.keys().cloned().collect();
        for (db, key) in keys {
            let named = keyspace.key(&key);
            let batch = run.worker.enter();
            assert!(
                batch.lock(&named).remove(&mut Op::new(db, run.now_ms, &mut run.recorder), &named).is_some()
            );
        }
        run.now_ms += 100_000;
        let mut cycle = ExpiryCycle::default();
        while !cycle.step(&run.worker.enter(), run.now_ms, 1000, &mut run.recorder).round_done {}
        while !run.maintenance.step(&run.worker.enter()).idle {}
        assert_eq!(keyspace.used_bytes(), 0, "an empty keyspace uses nothing: every count was exact");
        assert_eq!(keyspace.page_stats().used_pages, 0);
    }
}

#[test]
fn locks_of_many_keys_serve_transfers_between_workers() {
    let keyspace = keyspace(16, 3);
    let names: Vec<Vec<u8>> = (0..20).map(|number| format!("account{number}").into_bytes()).collect();
    let mut sink = Recorder::default();
    {
        let mut worker = keyspace.worker().unwrap();
        let batch = worker.enter();
        for name in &names {
            let key = keyspace.key(name);
            batch.lock(&key).set(&mut Op::new(0, 1, &mut sink), &key, NewValue::Int(1000), Expiry::None);
        }
    }
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (keyspace, names) = (&keyspace, &names);
            scope.spawn(move || {
                let mut worker = keyspace.worker().unwrap();
                let mut rng = XorShift::new(thread + 1);
                for turn in 0..4000 {
                    let pick = [rng.below(20) as usize, rng.below(20) as usize];
                    let keys = pick.map(|at| keyspace.key(&names[at]));
                    let mut sink = Recorder::default();
                    let mut op = Op::new(0, 1, &mut sink);
                    if turn % 500 == 0 {
                        let world = worker.world();
                        let mut guards = world.guards();
                        let sum: i64 =
                            names.iter().map(|name| balance(&mut guards, &mut op, &keyspace.key(name))).sum();
                        assert_eq!(sum, 20_000);
                        continue;
                    }
                    let batch = worker.enter();
                    let mut guards = batch.lock_keys(&keys);
                    guards.shard(&keys[0]).increment(&mut op, &keys[0], -7).unwrap();
                    guards.shard(&keys[1]).increment(&mut op, &keys[1], 7).unwrap();
                }
            });
        }
    });
    let mut worker = keyspace.worker().unwrap();
    let world = worker.world();
    let mut op = Op::new(0, 1, &mut sink);
    let sum: i64 = names.iter().map(|name| balance(&mut world.guards(), &mut op, &keyspace.key(name))).sum();
    assert_eq!(sum, 20_000);
}

fn balance(guards: &mut weft_store::Guards<'_>, op: &mut Op<'_>, key: &weft_store::Key<'_>) -> i64 {
    match guards.shard(key).get(op, key) {
        Some(ValueRef::Int(number)) => number,
        other => panic!("{other:?}"),
    }
}

/// Prefetches run without a lock while tables grow, shrink and are freed below them.
#[test]
fn prefetch_races_with_resizes() {
    let keyspace = keyspace(2, 9);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut worker = keyspace.worker().unwrap();
            let mut number = 0_u64;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let mut batch = worker.enter();
                let numbers = number..number + 64;
                let hash = |number: u64| keyspace.key(&number.to_ne_bytes()).hash();
                for number in numbers.clone() {
                    batch.prefetch_bucket((number % 3) as u8, hash(number), number.is_multiple_of(3));
                }
                let even = |number: u64| number.is_multiple_of(2);
                batch.prefetch_entries(0, numbers.clone().map(|number| (hash(number), even(number))));
                number = numbers.end;
                batch.prefetch_passed();
            }
        });
        let mut worker = keyspace.worker().unwrap();
        let mut sink = Recorder::default();
        for round in 0..6_u64 {
            for number in 0..6000_u64 {
                let (db, bytes) = ((number % 3) as u8, number.to_ne_bytes());
                let key = keyspace.key(&bytes);
                let batch = worker.enter();
                let mut op = Op::new(db, 1, &mut sink);
                if round % 2 == 0 {
                    batch.lock(&key).set(&mut op, &key, NewValue::Int(1), Expiry::None);
                } else {
                    batch.lock(&key).remove(&mut op, &key);
                }
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let mut worker = keyspace.worker().unwrap();
    let mut maintenance = Maintenance::default();
    while !maintenance.step(&worker.enter()).idle {}
    assert_eq!((keyspace.limbo_bytes(), keyspace.used_bytes()), (0, 0));
}

#[test]
fn random_key_reaches_all_keys() {
    let keyspace = keyspace(4, 5);
    let mut worker = keyspace.worker().unwrap();
    let mut sink = Recorder::default();
    let batch = worker.enter();
    let op = Op::new(0, 1, &mut sink);
    assert_eq!(batch.random_key(&op, &mut XorShift::new(1)), None);
    let mut sink = Recorder::default();
    for number in 0..100_u8 {
        let bytes = [number];
        let key = keyspace.key(&bytes);
        batch.lock(&key).set(&mut Op::new(0, 1, &mut sink), &key, NewValue::Int(1), Expiry::None);
    }
    let mut rng = XorShift::new(8);
    let met: BTreeSet<Vec<u8>> = (0..5000).filter_map(|_| batch.random_key(&op, &mut rng)).collect();
    assert_eq!(met.len(), 100);
}

#[test]
fn pinned_bytes_do_not_change() {
    let keyspace = keyspace(1, 1);
    let mut worker = keyspace.worker().unwrap();
    let batch = worker.enter();
    let mut sink = Recorder::default();
    let mut op = Op::new(0, 1, &mut sink);
    let key = keyspace.key(b"large");
    let mut shard = batch.lock(&key);
    shard.set(&mut op, &key, NewValue::string(&[b'x'; 5000]), Expiry::None);
    let Some(ValueRef::Shared(bytes)) = shard.get(&mut op, &key) else {
        panic!("5,000 bytes are out of line")
    };
    let pinned = bytes.clone();
    assert!(pinned.is_pinned());
    shard.append(&mut op, &key, b"more").unwrap();
    shard.set_range(&mut op, &key, 0, b"yy").unwrap();
    assert!(pinned.as_slice().iter().all(|&byte| byte == b'x') && pinned.as_slice().len() == 5000);
    let value = shard.get(&mut op, &key).map(|value| owned(&value));
    assert!(matches!(value, Some(Value::Text(text)) if text.starts_with(b"yyx") && text.ends_with(b"more")));
    drop(shard);
}

#[test]
fn encodings_have_redis_names() {
    let keyspace = keyspace(1, 1);
    let mut worker = keyspace.worker().unwrap();
    let batch = worker.enter();
    let mut sink = Recorder::default();
    let mut op = Op::new(0, 5000, &mut sink);
    let mut encoding = HashMap::new();
    // 15 bytes, the key and the string are 128 for the one, and one more for the other.
    let texts: [(&str, &[u8]); 4] =
        [("int", b"12345"), ("embstr", &[b'e'; 107]), ("raw", &[b'r'; 111]), ("large", &[b'l'; 9000])];
    for (name, text) in texts {
        let key = keyspace.key(name.as_bytes());
        let mut shard = batch.lock(&key);
        shard.set(&mut op, &key, NewValue::string(text), Expiry::None);
        encoding.insert(name, shard.info(&mut op, &key).unwrap().encoding);
    }
    assert_eq!(
        encoding,
        HashMap::from([("int", "int"), ("embstr", "embstr"), ("raw", "raw"), ("large", "raw")])
    );
    let key = keyspace.key(b"int");
    let mut shard = batch.lock(&key);
    shard.append(&mut op, &key, b"6").unwrap();
    op.now_ms = 65_000;
    op.touch = false;
    assert!(shard.get(&mut op, &key).is_some());
    let info = shard.info(&mut op, &key).unwrap();
    assert_eq!((info.encoding, info.idle_s), ("raw", 60));
}
