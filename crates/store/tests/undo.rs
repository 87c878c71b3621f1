//! Each primitive of large collections taken back by its inverse. Small values, which are kept as a whole, and all
//! together stand in `crates/engine/tests/effects`.
#![allow(clippy::unwrap_used)]

use weft_store::{
    Changed, Config, Digest, End, HashLimits, Keyspace, ListLimit, ListMut, Op, Recorder, SetLimits,
    SortedSetLimits,
};

/// Changes a list of 3,000 elements, of which every tenth is `x`, takes it back, and compares.
fn list(name: &str, change: impl Fn(&mut ListMut<'_>)) {
    let keyspace = Keyspace::new(Config { shards: 2, ..Config::default() });
    let mut worker = keyspace.worker().unwrap();
    let key = keyspace.key(b"list");
    let mut recorder = Recorder::default();
    let world = worker.world();
    let run = |recorder: &mut Recorder, work: &dyn Fn(&mut ListMut<'_>)| {
        let mut guards = world.guards();
        let op = &mut Op::new(0, 1, recorder);
        let changed = guards.shard(&key).change_list(op, &key, true, ListLimit::default(), |list| {
            work(list);
            Changed::yes(())
        });
        assert_eq!(changed, Ok(Some(())));
    };
    run(&mut recorder, &|list| {
        for at in 0..3000 {
            let element = if at % 10 == 0 { "x".into() } else { format!("element {at}") };
            list.push(End::Back, element.as_bytes());
        }
    });
    let before = Digest::of_keyspace(&world);
    let begun = recorder.begin_undo();
    run(&mut recorder, &change);
    assert_ne!(Digest::of_keyspace(&world), before, "{name} changes something");
    world.guards().rollback(&mut recorder, begun);
    assert_eq!(Digest::of_keyspace(&world), before, "{name} is taken back");
    assert!(world.guards().commit(&mut recorder).is_empty());
    let (kept, counted, _) = world.value_bytes();
    assert_eq!(kept, counted, "{name}: what is counted is what is there");
}

#[test]
fn lists() {
    list("push", |list| list.push(End::Front, b"new"));
    list("pop", |list| assert!(list.pop(End::Back, |_| ()).is_some()));
    list("set", |list| assert!(list.set(1500, &[b'l'; 9000])));
    list("insert", |list| list.insert(777, b"new"));
    list("remove from the front", |list| assert_eq!(list.remove(7, b"x"), 7));
    list("remove from the back", |list| assert_eq!(list.remove(-7, b"x"), 7));
    list("remove all", |list| assert_eq!(list.remove(0, b"x"), 300));
    list("remove one place", |list| list.remove_at(2999));
    list("trim", |list| list.trim(1000, 1003));
    list("down to one and up again", |list| {
        list.trim(5, 6);
        list.push(End::Back, b"new");
        list.push(End::Front, b"new");
    });
}

/// Members of large collections: one that is new, one that is another, one that is gone.
#[test]
fn members() {
    let keyspace = Keyspace::new(Config { shards: 2, ..Config::default() });
    let mut worker = keyspace.worker().unwrap();
    let (hash, set, zset) = (keyspace.key(b"hash"), keyspace.key(b"set"), keyspace.key(b"zset"));
    let mut recorder = Recorder::default();
    let world = worker.world();
    let change = |recorder: &mut Recorder, range: std::ops::Range<u32>, remove: bool, add: u32| {
        let mut guards = world.guards();
        let op = &mut Op::new(0, 1, recorder);
        for at in range {
            let (name, value) = (format!("member {at}"), format!("value {}", at + add));
            let (name, score) = (name.as_bytes(), f64::from(at + add));
            let done = guards.shard(&hash).change_hash(op, &hash, true, HashLimits::default(), |hash| {
                let _ = if remove {
                    hash.remove(name, |_| ()).is_some()
                } else {
                    hash.set(name, value.as_bytes())
                };
                Changed::yes(())
            });
            assert!(done.is_ok());
            let done = guards.shard(&set).change_set(op, &set, true, SetLimits::default(), |set| {
                let _ = if remove { set.remove(name) } else { set.add(name) };
                Changed::yes(())
            });
            assert!(done.is_ok());
            let limits = SortedSetLimits::default();
            let done = guards.shard(&zset).change_sorted_set(op, &zset, true, limits, |zset| {
                let _ = if remove { zset.remove(name).is_some() } else { zset.add(name, score) };
                Changed::yes(())
            });
            assert!(done.is_ok());
        }
    };
    change(&mut recorder, 0..2000, false, 0);
    let before = Digest::of_keyspace(&world);
    for (range, remove, add) in [(1990..2500, false, 0), (100..300, false, 7), (0..1900, true, 0)] {
        let begun = recorder.begin_undo();
        change(&mut recorder, range, remove, add);
        assert_ne!(Digest::of_keyspace(&world), before);
        world.guards().rollback(&mut recorder, begun);
        assert_eq!(Digest::of_keyspace(&world), before);
        assert!(world.guards().commit(&mut recorder).is_empty());
    }
}
