//! Eviction: each policy takes the keys that it should, and stops where it should.
// Helpers outside #[test] functions are still tests.
#![allow(clippy::unwrap_used)]

use weft_store::evict::RoomOutcome;
use weft_store::{
    AccessMode, Cause, Config, Effect, Evictor, Expiry, KeyHasher, Keyspace, Maintenance, NewValue, Op,
    Policy, Recorder, wants,
};

const KEYS: u32 = 4000;

/// The numbers of evicted keys.
fn evicted(recorder: &Recorder) -> Vec<u32> {
    let evicted =
        recorder.tape().read().filter(|told| told.effect == Effect::Delete { cause: Cause::Evicted });
    evicted.map(|told| std::str::from_utf8(told.key).unwrap().parse().unwrap()).collect()
}

/// Keys 0 to 3999, key n used at second n, every second one expiring at an hour plus n.
fn filled(mode: AccessMode) -> Keyspace {
    let hasher = KeyHasher::with_seed(4);
    let keyspace = Keyspace::new(Config { shards: 16, hasher, seed: 4, ..Config::default() });
    keyspace.set_access_mode(mode);
    let mut worker = keyspace.worker().unwrap();
    let mut sink = Recorder::default();
    for number in 0..KEYS {
        let name = number.to_string();
        let key = keyspace.key(name.as_bytes());
        let batch = worker.enter();
        let mut shard = batch.lock(&key);
        let mut op = Op::new(0, u64::from(number) * 1000, &mut sink);
        let expiry =
            if number % 2 == 0 { Expiry::At(3_600_000_000 + u64::from(number)) } else { Expiry::None };
        shard.set(&mut op, &key, NewValue::string(&[b'v'; 40]), expiry);
        // Under LFU the later half is used more.
        for _ in 0..if number >= KEYS / 2 { 30 } else { 0 } {
            shard.get(&mut op, &key);
        }
    }
    drop(worker);
    keyspace
}

fn evict(policy: &str, mode: AccessMode) -> (Vec<u32>, RoomOutcome) {
    let keyspace = filled(mode);
    let mut worker = keyspace.worker().unwrap();
    let limit = keyspace.used_bytes() * 7 / 8;
    let mut evictor = Evictor::new(6);
    let mut recorder = Recorder::default();
    recorder.want(wants::EVENTS);
    let policy = Policy::from_name(policy).unwrap();
    let mut outcome = RoomOutcome::More;
    let mut calls = 0;
    while outcome == RoomOutcome::More {
        let batch = worker.enter();
        let now_ms = u64::from(KEYS) * 1000;
        (outcome, _) = evictor.evict_until(&batch, (policy, 5), (limit, 10), now_ms, &mut recorder);
        calls += 1;
        assert!(calls < 1000);
    }
    if outcome == RoomOutcome::Enough {
        assert!(keyspace.used_bytes() <= limit);
    }
    let mut maintenance = Maintenance::default();
    while !maintenance.step(&worker.enter()).idle {}
    let evicted = evicted(&recorder);
    assert_eq!(keyspace.len(0), KEYS as usize - evicted.len());
    (evicted, outcome)
}

/// The share of victims for which `good` holds.
fn share(victims: &[u32], good: impl Fn(u32) -> bool) -> f64 {
    victims.iter().filter(|&&number| good(number)).count() as f64 / victims.len() as f64
}

const LFU: AccessMode = AccessMode::Lfu { log_factor: 10, decay_min: 0 };

#[test]
fn lru_takes_the_oldest() {
    for policy in ["allkeys-lru", "volatile-lru"] {
        let (victims, outcome) = evict(policy, AccessMode::Lru);
        assert_eq!(outcome, RoomOutcome::Enough);
        let old = share(&victims, |number| number < KEYS / 2);
        assert!(old > 0.9, "{policy}: {old}");
    }
}

#[test]
fn lfu_takes_the_least_used() {
    for policy in ["allkeys-lfu", "volatile-lfu"] {
        let (victims, outcome) = evict(policy, LFU);
        assert_eq!(outcome, RoomOutcome::Enough);
        let rare = share(&victims, |number| number < KEYS / 2);
        assert!(rare > 0.9, "{policy}: {rare}");
    }
}

#[test]
fn ttl_takes_the_soonest() {
    let (victims, outcome) = evict("volatile-ttl", AccessMode::Lru);
    assert_eq!(outcome, RoomOutcome::Enough);
    assert!(share(&victims, |number| number < KEYS * 2 / 3) > 0.9);
}

#[test]
fn random_takes_any() {
    let (victims, _) = evict("allkeys-random", AccessMode::Lru);
    let old = share(&victims, |number| number < KEYS / 2);
    assert!((0.35..0.65).contains(&old), "{old}");
}

#[test]
fn volatile_takes_only_what_expires() {
    for policy in ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"] {
        let (victims, _) = evict(policy, AccessMode::Lru);
        assert!(!victims.is_empty() && victims.iter().all(|number| number % 2 == 0), "{policy}");
    }
}

#[test]
fn nothing_to_evict_is_said() {
    let (victims, outcome) = evict("noeviction", AccessMode::Lru);
    assert_eq!((victims.len(), outcome), (0, RoomOutcome::Nothing));
    let keyspace = Keyspace::new(Config { shards: 4, ..Config::default() });
    let mut worker = keyspace.worker().unwrap();
    let batch = worker.enter();
    let key = keyspace.key(b"stays");
    batch.lock(&key).set(&mut Op::new(0, 1, &mut Recorder::default()), &key, NewValue::Int(1), Expiry::None);
    let policy = Policy::from_name("volatile-ttl").unwrap();
    let (outcome, evicted) =
        Evictor::new(1).evict_until(&batch, (policy, 5), (0, 100), 1, &mut Recorder::default());
    assert_eq!((outcome, evicted), (RoomOutcome::Nothing, 0));
    let policy = Policy::from_name("ALLKEYS-RANDOM").unwrap();
    let (outcome, evicted) =
        Evictor::new(1).evict_until(&batch, (policy, 5), (0, 100), 1, &mut Recorder::default());
    assert_eq!((outcome, evicted), (RoomOutcome::Enough, 1));
}

/// What may go is found among very many keys that stay: the last ones behind all that went before, and the only one of
/// a small database beside a large one.
#[test]
fn the_last_that_expire_go_too() {
    for db in [0, 1] {
        let hasher = KeyHasher::with_seed(7);
        let keyspace = Keyspace::new(Config { shards: 1, hasher, seed: 7, ..Config::default() });
        let mut worker = keyspace.worker().unwrap();
        let mut recorder = Recorder::default();
        let batch = worker.enter();
        let mut set = |db, number: u32, expiry| {
            let name = number.to_string();
            let key = keyspace.key(name.as_bytes());
            batch.lock(&key).set(&mut Op::new(db, 1, &mut recorder), &key, NewValue::Int(1), expiry);
        };
        (0..40_000).for_each(|number| set(0, number, Expiry::None));
        let expiring = if db == 0 { 20_000 } else { 1 };
        (0..expiring).for_each(|number| set(db, 100_000 + number, Expiry::At(1_000_000)));
        let policy = Policy::from_name("volatile-random").unwrap();
        let (outcome, evicted) =
            Evictor::new(1).evict_until(&batch, (policy, 5), (0, usize::MAX), 1, &mut recorder);
        assert_eq!((outcome, evicted), (RoomOutcome::Nothing, expiring as usize));
        assert_eq!((keyspace.expiring(db), keyspace.len(0)), (0, 40_000));
    }
}

#[test]
fn names_are_redis_names() {
    for name in [
        "noeviction",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
    ] {
        assert_eq!(Policy::from_name(name).map(Policy::name), Some(name));
    }
    assert_eq!(Policy::from_name("allkeys-ttl"), None);
}

#[test]
fn what_is_flushed_is_freed_by_who_had_nothing_to_do() {
    let keyspace = Keyspace::new(Config {
        shards: 64,
        workers: 1,
        hasher: KeyHasher::with_seed(3),
        ..Config::default()
    });
    let mut worker = keyspace.worker().unwrap();
    let (mut maintenance, mut recorder) = (Maintenance::default(), Recorder::default());
    while !maintenance.step(&worker.enter()).idle {}
    let before = keyspace.used_bytes();
    for round in 0..20 {
        {
            let batch = worker.enter();
            let key = keyspace.key(b"one");
            let value = NewValue::string(&[b'x'; 100_000]);
            batch.lock(&key).set(&mut Op::new(0, 1, &mut recorder), &key, value, Expiry::None);
        }
        worker.world().flush(&mut Op::new(0, 1, &mut recorder), 0..=0);
        // It had found nothing to do in any shard: now it looks at all of them, and not at the next one alone.
        let mut steps = 0;
        while !maintenance.step(&worker.enter()).idle {
            steps += 1;
        }
        assert!(steps >= 63, "round {round}: {steps} steps");
        assert_eq!(keyspace.used_bytes(), before, "round {round}");
    }
}
