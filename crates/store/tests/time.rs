//! What time it is in a shard: small differences between workers do not bring back what has expired, and a clock that
//! was set back is followed.
#![allow(clippy::unwrap_used)]

use weft_store::{Config, Expiry, Key, Keyspace, NewValue, Op, Recorder, Worker};

const NOW_MS: u64 = 1_700_000_000_000;
/// How far behind an operation may be and still run at the shard's time.
const LAG_MS_MAX: u64 = 100;

fn put(worker: &mut Worker<'_>, key: &Key<'_>, now_ms: u64, expire_ms: u64) {
    let mut sink = Recorder::default();
    let mut op = Op::new(0, now_ms, &mut sink);
    worker.enter().lock(key).set(&mut op, key, NewValue::string(b"v"), Expiry::At(expire_ms));
}

fn is_there(worker: &mut Worker<'_>, key: &Key<'_>, now_ms: u64) -> bool {
    let mut sink = Recorder::default();
    let mut op = Op::new(0, now_ms, &mut sink);
    let batch = worker.enter();
    let mut guards = batch.lock_keys([key]);
    let is_there = guards.shard(key).exists(&mut op, key);
    assert_eq!(guards.view(0, key, now_ms).is_some(), is_there, "views agree");
    is_there
}

#[test]
fn a_clock_that_was_set_back_is_followed() {
    let keyspace = Keyspace::new(Config { shards: 1, ..Config::default() });
    let mut worker = keyspace.worker().unwrap();
    let (early, late) = (keyspace.key(b"early"), keyspace.key(b"late"));
    let hour_ms = 3_600_000;
    put(&mut worker, &early, NOW_MS + hour_ms, NOW_MS + hour_ms + 10_000);
    assert!(is_there(&mut worker, &early, NOW_MS + hour_ms));
    put(&mut worker, &late, NOW_MS, NOW_MS + 10_000);
    assert!(is_there(&mut worker, &late, NOW_MS), "a time to live of 10 s is not over at once");
    assert!(is_there(&mut worker, &late, NOW_MS + 9_999));
    assert!(!is_there(&mut worker, &late, NOW_MS + 10_000), "and over after 10 s");
    // A batch that has read the clock before it was set back does not bring that time back for longer than its own.
    put(&mut worker, &late, NOW_MS, NOW_MS + 10_000);
    assert!(is_there(&mut worker, &early, NOW_MS + hour_ms));
    assert!(is_there(&mut worker, &late, NOW_MS));
}

#[test]
fn what_was_seen_to_have_expired_stays_so_for_who_is_a_little_behind() {
    let keyspace = Keyspace::new(Config { shards: 1, ..Config::default() });
    let mut worker = keyspace.worker().unwrap();
    let key = keyspace.key(b"key");
    put(&mut worker, &key, NOW_MS, NOW_MS + 1);
    // Otherwise seeing it would remove it, and its time would be of no more use.
    keyspace.pause_expiry(u64::MAX);
    let seen_ms = NOW_MS + LAG_MS_MAX;
    assert!(!is_there(&mut worker, &key, seen_ms));
    assert!(!is_there(&mut worker, &key, NOW_MS), "the time of the shard");
    assert!(is_there(&mut worker, &key, NOW_MS - 1), "the clock was set back");
}
