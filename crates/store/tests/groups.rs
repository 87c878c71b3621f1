//! Groups of effects from workers to who reads them elsewhere: their order, what holds it back, and its bounds.
// Helpers outside #[test] functions are still tests.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use weft_store::effect::{Effect, Text};
use weft_store::{
    Batch, Config, Expiry, Group, KeyHasher, Keyspace, Merger, NewValue, Op, Overrun, Recorder, Worker, wants,
};

fn keyspace() -> Keyspace {
    let hasher = KeyHasher::with_seed(1);
    Keyspace::new(Config { shards: 8, databases: 2, workers: 4, hasher, seed: 1, huge_pages: false })
}

fn recorder(keyspace: &Keyspace) -> Recorder {
    let mut recorder = Recorder::default();
    recorder.attach(keyspace);
    recorder
}

/// Sets keys to a number, as one group.
fn set(batch: &Batch<'_>, recorder: &mut Recorder, names: &[&str], number: i64) {
    let keys: Vec<_> = names.iter().map(|name| batch.keyspace().key(name.as_bytes())).collect();
    let mut guards = batch.lock_keys(&keys);
    for key in &keys {
        guards.shard(key).set(&mut Op::new(0, 1, recorder), key, NewValue::Int(number), Expiry::None);
    }
    recorder.end_group();
    recorder.clear();
}

/// A group as text.
fn shown(group: Group<'_>) -> String {
    let told = group.read().map(|told| match told.effect {
        Effect::Set { value: Text::Int(value), .. } => {
            format!("{}={value}", std::str::from_utf8(told.key).unwrap())
        }
        Effect::Set { value: Text::Bytes(text), expire_ms } => {
            let text = std::str::from_utf8(text).unwrap();
            format!("{}={text}{}", std::str::from_utf8(told.key).unwrap(), expire_ms.map_or("", |_| "!"))
        }
        other => format!("{other:?}"),
    });
    told.collect::<Vec<_>>().join(" ")
}

fn poll(merger: &mut Merger<'_>) -> Result<Vec<String>, Overrun> {
    let mut all = Vec::new();
    merger.poll(|group| {
        let text = shown(group);
        match group.row() {
            Some((_, count)) => {
                let before = all.len();
                all.extend(text.split(' ').map(String::from));
                assert_eq!(all.len() - before, count as usize, "groups of one effect each: {text}");
            }
            None => all.push(text),
        }
    })?;
    Ok(all)
}

#[test]
fn groups_come_in_the_order_in_which_they_became_true() {
    let keyspace = keyspace();
    let (mut one, mut two) = (keyspace.worker().unwrap(), keyspace.worker().unwrap());
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    assert!(keyspace.worker().unwrap().merger(wants::VALUES).is_none(), "one merger");
    let (mut first, mut second) = (recorder(&keyspace), recorder(&keyspace));
    let (batch, other) = (one.enter(), two.enter());
    set(&other, &mut second, &["a", "b"], 1);
    set(&batch, &mut first, &["b", "c"], 2);
    set(&other, &mut second, &["c"], 3);
    assert_eq!(poll(&mut merger), Ok(vec![]), "who is in a batch may still tell of this epoch");
    drop(other);
    assert_eq!(poll(&mut merger), Ok(vec![]));
    drop(batch);
    assert_eq!(poll(&mut merger).unwrap(), ["a=1 b=1", "b=2 c=2", "c=3"]);
    assert_eq!(poll(&mut merger), Ok(vec![]));
}

/// What is told of a copy names its source, which another shard has: it has its place among the writes there.
#[test]
fn a_copy_stands_between_the_writes_of_its_source() {
    let keyspace = keyspace();
    let (mut one, mut two) = (keyspace.worker().unwrap(), keyspace.worker().unwrap());
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    let (mut first, mut second) = (recorder(&keyspace), recorder(&keyspace));
    let (a, b) = (keyspace.key(b"a"), keyspace.key(b"b"));
    assert_ne!(keyspace.shard_of(&a), keyspace.shard_of(&b), "or it shows nothing");
    let copied = r#"Copy { to_db: 0, to: [98] }"#;
    // Whichever of the two is asked first.
    for (number, swapped) in [(1, false), (3, true)] {
        let (batch, other) = (one.enter(), two.enter());
        let (writes, copies) = if swapped { (&batch, &other) } else { (&other, &batch) };
        let (writer, copier) = if swapped { (&mut first, &mut second) } else { (&mut second, &mut first) };
        set(writes, writer, &["a"], number);
        {
            let mut guards = copies.lock_keys([&a, &b]);
            let copy = guards.shard(&a).copy(&mut Op::new(0, 1, copier), &a).unwrap();
            keyspace.discard(guards.shard(&b).put(&mut Op::new(0, 1, copier), &b, copy));
            copier.end_group();
            copier.clear();
        }
        set(writes, writer, &["a"], number + 1);
        drop((batch, other));
        let (before, behind) = (format!("a={number}"), format!("a={}", number + 1));
        assert_eq!(poll(&mut merger).unwrap(), [before.as_str(), copied, behind.as_str()]);
    }
}

/// A script takes the lock of a key that it has not declared when it comes to it: meanwhile others may have written
/// there, in later epochs than the one in which its group began.
#[test]
fn a_group_that_comes_late_to_a_shard_is_behind_those_who_were_there() {
    let keyspace = keyspace();
    let (mut one, mut two) = (keyspace.worker().unwrap(), keyspace.worker().unwrap());
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    let (mut first, mut second) = (recorder(&keyspace), recorder(&keyspace));
    let (a, b) = (keyspace.key(b"a"), keyspace.key(b"b"));
    assert_ne!(keyspace.shard_of(&a), keyspace.shard_of(&b), "or it shows nothing");
    let batch = one.enter();
    let mut guards = batch.lock_keys([&a]);
    guards.shard(&a).set(&mut Op::new(0, 1, &mut first), &a, NewValue::Int(1), Expiry::None);
    assert_eq!(poll(&mut merger), Ok(vec![]), "another epoch begins");
    set(&two.enter(), &mut second, &["b"], 2);
    assert!(guards.try_cover(&b));
    guards.shard(&b).set(&mut Op::new(0, 1, &mut first), &b, NewValue::Int(3), Expiry::None);
    first.end_group();
    first.clear();
    drop(guards);
    drop(batch);
    set(&two.enter(), &mut second, &["a", "b"], 4);
    assert_eq!(poll(&mut merger).unwrap(), ["b=2", "a=1 b=3", "a=4 b=4"]);
}

#[test]
fn batches_that_have_begun_are_outlasted() {
    let keyspace = keyspace();
    let mut one = keyspace.worker().unwrap();
    let batch = one.enter();
    assert!(!keyspace.outlast_batches(Duration::from_millis(5)), "it is not over");
    drop(batch);
    assert!(keyspace.outlast_batches(Duration::ZERO), "nobody is inside");
}

#[test]
fn a_later_epoch_waits_for_those_who_are_in_an_earlier_one() {
    let keyspace = keyspace();
    let (mut one, mut two) = (keyspace.worker().unwrap(), keyspace.worker().unwrap());
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    let (mut first, mut second) = (recorder(&keyspace), recorder(&keyspace));
    let long = one.enter();
    set(&two.enter(), &mut second, &["a"], 1);
    assert_eq!(poll(&mut merger), Ok(vec![]));
    set(&two.enter(), &mut second, &["a"], 2);
    assert_eq!(poll(&mut merger), Ok(vec![]));
    set(&long, &mut first, &["b"], 3);
    drop(long);
    assert_eq!(poll(&mut merger).unwrap(), ["a=1", "a=2", "b=3"]);
}

/// A group that is large comes out between the small ones that it stands between, is read where it was told, and counts
/// until it was given.
#[test]
fn large_groups_keep_their_place() {
    let keyspace = keyspace();
    let mut one = keyspace.worker().unwrap();
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    let mut first = recorder(&keyspace);
    let text = vec![b'v'; 3 << 20];
    let key = keyspace.key(b"large");
    {
        let batch = one.enter();
        let mut marks = Vec::new();
        for number in 0..3_i64 {
            // All on one tape, as a command and what follows it are.
            let mark = first.tape().mark();
            marks.push((mark, 1));
            let mut op = Op::new(0, 1, &mut first);
            batch.lock(&key).set(&mut op, &key, NewValue::Int(number), Expiry::None);
            first.end_group();
            marks.push((first.tape().mark(), 2));
            batch.lock(&key).set(&mut Op::new(0, 1, &mut first), &key, NewValue::Bytes(&text), Expiry::None);
            batch.lock(&key).set(&mut Op::new(0, 1, &mut first), &key, NewValue::Int(number), Expiry::None);
            first.end_group();
        }
        assert_eq!(first.tape().read().count(), 9);
        let mut left = 9;
        for (mark, count) in marks {
            assert_eq!(first.tape().read_from(mark).count(), left);
            left -= count;
        }
        first.clear();
    }
    assert!(keyspace.backlog_bytes() > 9 << 20 && keyspace.backlog_bytes() < (9 << 20) + 1000);
    let mut seen = Vec::new();
    let given = merger.poll(|group| {
        let told = group.read().map(|told| match told.effect {
            Effect::Set { value: Text::Int(number), .. } => number,
            Effect::Set { value: Text::Bytes(bytes), .. } if bytes == text => -1,
            other => panic!("{other:?}"),
        });
        seen.push(told.collect::<Vec<_>>());
    });
    assert_eq!(given.unwrap().given, 6);
    assert_eq!(seen, [vec![0], vec![-1, 0], vec![1], vec![-1, 1], vec![2], vec![-1, 2]]);
    assert_eq!(keyspace.backlog_bytes(), 0);
}

/// FLUSHALL is of every shard, but takes the count of one: no batch behind it may share its epoch, even when the merger
/// has begun one while it ran.
#[test]
fn a_barrier_comes_before_what_is_behind_it() {
    let keyspace = keyspace();
    let (mut one, mut two) = (keyspace.worker().unwrap(), keyspace.worker().unwrap());
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    // The outbox of whoever comes later is looked at first.
    let (mut later, mut sooner) = (recorder(&keyspace), recorder(&keyspace));
    set(&two.enter(), &mut later, &["a", "b", "c", "d", "e"], 1);
    poll(&mut merger).unwrap();
    {
        let world = one.world();
        assert_eq!(poll(&mut merger), Ok(vec![]), "an epoch begins");
        world.flush(&mut Op::new(0, 1, &mut sooner), 0..=0);
        sooner.end_group();
        sooner.clear();
    }
    for (number, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        set(&two.enter(), &mut later, &[name], number as i64);
    }
    assert_eq!(poll(&mut merger).unwrap(), ["Flush", "a=0", "b=1", "c=2", "d=3", "e=4"]);
}

/// Writes strings over what is there, as SETs of one client that follow each other; says how many.
fn set_over(worker: &mut Worker<'_>, recorder: &Recorder, names: &[&str], text: &str) -> usize {
    let mut batch = worker.enter();
    let keys: Vec<_> = names.iter().map(|name| batch.keyspace().key(name.as_bytes())).collect();
    keys.iter().for_each(|key| batch.prefetch_bucket(0, key.hash(), false));
    batch.prefetch_entries(0, keys.iter().map(|key| (key.hash(), true)));
    let mut rewrites = batch.rewrites((0, 1), recorder).unwrap();
    (0..keys.len()).filter(|&at| rewrites.text(at, &keys[at], text.as_bytes())).count()
}

#[test]
fn strings_that_are_written_over_in_a_row_come_as_groups_of_one() {
    let keyspace = keyspace();
    let (mut one, mut two) = (keyspace.worker().unwrap(), keyspace.worker().unwrap());
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    let (mut first, mut second) = (recorder(&keyspace), recorder(&keyspace));
    {
        let batch = one.enter();
        for name in ["a", "b", "c"] {
            let key = keyspace.key(name.as_bytes());
            let expiry = if name == "b" { Expiry::At(1 << 40) } else { Expiry::None };
            let mut op = Op::new(0, 1, &mut first);
            batch.lock(&key).set(&mut op, &key, NewValue::string(b"before"), expiry);
            first.end_group();
            first.clear();
        }
    }
    assert_eq!(poll(&mut merger).unwrap(), ["a=before", "b=before!", "c=before"]);
    // What is not there is not written over.
    assert_eq!(set_over(&mut one, &first, &["c", "a", "missing", "b", "a"], "behind"), 4);
    assert!(first.told_epoch() >= keyspace.told_epoch() && first.is_clear());
    // Others in the same shards.
    set(&two.enter(), &mut second, &["a", "b", "c"], 7);
    assert_eq!(set_over(&mut two, &second, &["a"], "no string of text"), 0, "it holds a number");
    assert!(keyspace.backlog_bytes() > 4 * "abehind".len());
    let all = ["c=behind", "a=behind", "b=behind", "a=behind", "a=7 b=7 c=7"];
    assert_eq!(poll(&mut merger).unwrap(), all);
    assert_eq!(keyspace.backlog_bytes(), 0);
    // Others want to know more than a log does: the full way tells them.
    keyspace.subscribe(wants::KEYS);
    assert_eq!(set_over(&mut one, &first, &["c"], "text"), 0);
    keyspace.unsubscribe(wants::KEYS);
    drop(merger);
    assert_eq!(keyspace.wanted(), 0, "nobody wants to know");
}

#[test]
fn rows_of_strings_are_bounded_too() {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().unwrap();
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    let mut told = recorder(&keyspace);
    {
        let batch = worker.enter();
        let key = keyspace.key(b"a");
        batch.lock(&key).set(&mut Op::new(0, 1, &mut told), &key, NewValue::string(b"before"), Expiry::None);
        told.end_group();
        told.clear();
    }
    keyspace.set_backlog_bytes(100);
    let written = (0..20).map(|_| set_over(&mut worker, &told, &["a"], "behind")).sum::<usize>();
    assert!((3..8).contains(&written), "{written} SETs were told of before there was no room");
    assert!(keyspace.is_behind());
    assert_eq!(poll(&mut merger).unwrap().len(), 1 + written, "none is lost");
    assert!(!keyspace.is_behind());
    assert_eq!(set_over(&mut worker, &told, &["a"], "behind"), 1);
}

#[test]
fn what_was_taken_back_leaves_no_hole() {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().unwrap();
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    let mut told = recorder(&keyspace);
    set(&worker.enter(), &mut told, &["a"], 1);
    {
        let batch = worker.enter();
        let key = keyspace.key(b"a");
        let mut guards = batch.lock_keys([&key]);
        let begun = told.begin_undo();
        guards.shard(&key).set(&mut Op::new(0, 1, &mut told), &key, NewValue::Int(2), Expiry::None);
        guards.rollback(&mut told, begun);
        assert!(guards.commit(&mut told).is_empty());
        told.end_group();
        told.clear();
    }
    set(&worker.enter(), &mut told, &["a"], 3);
    assert_eq!(poll(&mut merger).unwrap(), ["a=1", "a=3"]);
}

/// Bytes of a group that sets `a` to a number below 64.
fn bytes_of_one(worker: &mut Worker<'_>, keyspace: &Keyspace, told: &mut Recorder) -> usize {
    let mut bytes = 0;
    keyspace.set_backlog_bytes(0);
    set(&worker.enter(), told, &["a"], 1);
    while keyspace.is_behind() {
        bytes += 1;
        keyspace.set_backlog_bytes(bytes);
    }
    bytes
}

#[test]
fn what_waits_is_bounded() {
    let keyspace = keyspace();
    let mut worker = keyspace.worker().unwrap();
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    let mut told = recorder(&keyspace);
    let bytes = bytes_of_one(&mut worker, &keyspace, &mut told);
    keyspace.set_backlog_bytes(4 * bytes);
    for number in 2..=4 {
        set(&worker.enter(), &mut told, &["a"], number);
    }
    assert!(!keyspace.is_behind(), "at the bound");
    set(&worker.enter(), &mut told, &["a"], 5);
    assert!(keyspace.is_behind(), "one past it");
    assert_eq!(poll(&mut merger).unwrap().len(), 5, "nothing is lost yet");
    assert!(!keyspace.is_behind());
    for number in 1..=9 {
        set(&worker.enter(), &mut told, &["a"], number);
    }
    assert_eq!(poll(&mut merger).unwrap().len(), 9, "up to twice the bound, and the one that passes it");
    for number in 1..=10 {
        set(&worker.enter(), &mut told, &["a"], number);
    }
    assert_eq!(poll(&mut merger), Err(Overrun), "then the readers begin anew");
    assert!(keyspace.is_behind());
    drop(merger);
    assert!(!keyspace.is_behind(), "nobody waits for one that is gone");
    assert_eq!(keyspace.backlog_bytes(), 0, "and nothing waits for it");
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    set(&worker.enter(), &mut told, &["a"], 11);
    assert_eq!(poll(&mut merger).unwrap(), ["a=11"]);
}

/// One command may tell more than may wait: what others tell meanwhile is not thrown away for it, and who writes is
/// told at once that it is to wait.
#[test]
fn a_large_group_is_no_reason_to_begin_anew() {
    let keyspace = keyspace();
    let behind = Arc::new(AtomicUsize::new(0));
    let told_behind = Arc::clone(&behind);
    keyspace.on_behind(move || {
        told_behind.fetch_add(1, Relaxed);
    });
    let mut worker = keyspace.worker().unwrap();
    let mut merger = keyspace.worker().unwrap().merger(wants::VALUES).unwrap();
    let mut told = recorder(&keyspace);
    keyspace.set_backlog_bytes(1000);
    let large = vec![b'x'; 1 << 20];
    for _ in 0..3 {
        let batch = worker.enter();
        let key = keyspace.key(b"large");
        let mut guard = batch.lock(&key);
        guard.set(&mut Op::new(0, 1, &mut told), &key, NewValue::text(&large), Expiry::None);
        drop(guard);
        told.end_group();
        told.clear();
        set(&batch, &mut told, &["a"], 1);
    }
    assert!(keyspace.is_behind());
    assert_eq!(behind.load(Relaxed), 6, "each that has come since");
    assert_eq!(poll(&mut merger).unwrap().len(), 6);
    assert!(!keyspace.is_behind());
    // What was begun before the merger went, and is told of behind that.
    {
        let batch = worker.enter();
        let key = keyspace.key(b"large");
        let mut guard = batch.lock(&key);
        guard.set(&mut Op::new(0, 1, &mut told), &key, NewValue::text(&large), Expiry::None);
        drop(guard);
        drop(merger);
        told.end_group();
        told.clear();
    }
    assert!(!keyspace.is_behind(), "no merger takes it");
}
