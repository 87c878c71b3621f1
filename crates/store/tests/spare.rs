//! The 8 bytes of an expiry: a key that is given a time to live and loses it again keeps its memory, at most these 8
//! bytes more than it needs, whatever was done before; and what is taken back comes back to the byte.
// Helpers outside #[test] functions are still tests.
#![allow(clippy::unwrap_used)]

use weft_store::{Config, Expiry, Key, Keyspace, NewValue, Op, Recorder, Rng, ShardGuard, Worker, XorShift};

const NOW_MS: u64 = 1_700_000_000_000;
/// Far away.
const LATER: Expiry = Expiry::At(NOW_MS + 1_000_000);
const KEY: &[u8] = b"some:key";

fn keyspace() -> Keyspace {
    Keyspace::new(Config { shards: 1, ..Config::default() })
}

fn with<R>(
    worker: &mut Worker<'_>,
    key: &[u8],
    run: impl FnOnce(&mut ShardGuard<'_>, &mut Op<'_>, &Key<'_>) -> R,
) -> R {
    let keyspace = worker.keyspace();
    let batch = worker.enter();
    let (key, mut recorder) = (keyspace.key(key), Recorder::default());
    run(&mut batch.lock(&key), &mut Op::new(0, NOW_MS, &mut recorder), &key)
}

fn set(worker: &mut Worker<'_>, key: &[u8], text: &[u8], expiry: Expiry) {
    with(worker, key, |shard, op, key| drop(shard.set(op, key, NewValue::string(text), expiry)));
}

fn expire(worker: &mut Worker<'_>, key: &[u8], at: Option<u64>) {
    assert!(with(worker, key, |shard, op, key| shard.set_expire_ms(op, key, at)));
}

/// What a key takes that is set so and has not been there.
fn fresh_bytes(key: &[u8], text: &[u8], expiry: Expiry) -> usize {
    let keyspace = keyspace();
    set(&mut keyspace.worker().unwrap(), key, text, expiry);
    keyspace.used_bytes()
}

#[test]
fn a_time_to_live_comes_and_goes_in_place() {
    // In the slab, and larger than its slots.
    for len in [16, 4000] {
        let keyspace = keyspace();
        let mut worker = keyspace.worker().unwrap();
        let text = vec![b'v'; len];
        set(&mut worker, KEY, &text, LATER);
        let with_expiry = keyspace.used_bytes();
        assert_eq!(with_expiry, fresh_bytes(KEY, &text, Expiry::None) + 8);
        for round in 0..3 {
            let same = |what: &str| assert_eq!(keyspace.used_bytes(), with_expiry, "{what}, {len}, {round}");
            set(&mut worker, KEY, &text, Expiry::None);
            same("SET");
            expire(&mut worker, KEY, Some(NOW_MS + 5000));
            same("EXPIRE");
            expire(&mut worker, KEY, None);
            same("PERSIST");
            set(&mut worker, KEY, &text, LATER);
            same("SET EX");
            assert_eq!(keyspace.expiring(0), 1);
        }
        // A value that is 8 bytes longer takes them.
        set(&mut worker, KEY, &text, Expiry::None);
        set(&mut worker, KEY, &[&text[..], b"8 bytes."].concat(), Expiry::None);
        assert_eq!(keyspace.used_bytes(), with_expiry);
        set(&mut worker, KEY, &text, Expiry::None);
        assert_eq!(keyspace.used_bytes(), with_expiry - 8, "it is not an expiry that has gone");
        with(&mut worker, KEY, |shard, op, key| drop(shard.remove(op, key)));
        assert_eq!((keyspace.used_bytes(), keyspace.expiring(0)), (0, 0));
    }
}

#[test]
fn it_never_adds_up() {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().unwrap();
    // So short that no class of memory shares another's.
    for len in (0..=80).rev().step_by(8) {
        let text = vec![b'v'; len];
        set(&mut worker, KEY, &text, LATER);
        set(&mut worker, KEY, &text, Expiry::None);
        let fresh = fresh_bytes(KEY, &text, Expiry::None);
        assert!(keyspace.used_bytes() <= fresh + 8, "{len}: {} and {fresh}", keyspace.used_bytes());
    }
}

/// Random settings, half of them taken back.
#[test]
fn what_is_taken_back_has_its_memory() {
    let seed = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(17);
    println!("seed {seed} (WEFT_SEED)");
    let mut rng = XorShift::new(seed);
    let keyspace = keyspace();
    let mut worker = keyspace.worker().unwrap();
    let keys: [&[u8]; 3] = [b"some:key", b"another:key", b"k"];
    // The table stays.
    set(&mut worker, b"one more", b"", Expiry::None);
    for round in 0..2000 {
        let mut recorder = Recorder::default();
        let world = worker.world();
        let before = keyspace.used_bytes();
        let begun = recorder.begin_undo();
        let mut guards = world.guards();
        for _ in 0..=rng.below(4) {
            let op = &mut Op::new(0, NOW_MS, &mut recorder);
            let [key, other] = [0; 2].map(|_| keyspace.key(keys[rng.below(3) as usize]));
            let text = vec![b'v'; 8 * rng.below(5) as usize + 9];
            let expiry = if rng.below(2) == 0 { LATER } else { Expiry::None };
            match rng.below(5) {
                0 | 1 => drop(guards.shard(&key).set(op, &key, NewValue::string(&text), expiry)),
                2 => drop(guards.shard(&key).set_expire_ms(op, &key, Some(NOW_MS + 1000))),
                3 => drop(guards.shard(&key).set_expire_ms(op, &key, None)),
                _ => {
                    // Nobody renames a key to itself.
                    if key.hash() != other.hash()
                        && let Some(taken) = guards.shard(&key).take(op, &key)
                    {
                        drop(guards.shard(&other).put(op, &other, taken));
                    }
                }
            }
        }
        if rng.below(2) == 0 {
            guards.rollback(&mut recorder, begun);
            guards.commit(&mut recorder);
            drop(guards);
            assert_eq!(keyspace.used_bytes(), before, "round {round}");
        } else {
            guards.commit(&mut recorder);
        }
    }
}
