//! Owns the tests of hashes against a map, across conversions.

use super::*;
use crate::clock::XorShift;
use crate::dict::tests::Ground;
use std::collections::{BTreeMap, BTreeSet};

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

fn live(model: &Model, now_ms: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let live = model.iter().filter(|(_, (_, at))| at.is_none_or(|at| at > now_ms));
    live.map(|(field, (value, _))| (field.clone(), value.clone())).collect()
}

/// A text of so many kinds; one in `long` is longer than a `listpack` may have it.
fn text(rng: &mut XorShift, kinds: u32, long: u32) -> Vec<u8> {
    let len = if rng.below(long) == 0 { 65 + rng.below(240) } else { rng.below(9) };
    let mut text = format!("{}", rng.below(kinds)).into_bytes();
    text.resize(text.len().max(len as usize), b'.');
    text
}

fn check(hash: &Hash, model: &Model, now_ms: u64) {
    let view = hash.view().at(now_ms);
    let expected = live(model, now_ms);
    let all: BTreeMap<_, _> = view.iter().map(|(field, value)| (field.to_vec(), value.to_vec())).collect();
    let mut visited = BTreeMap::new();
    view.visit(|field, value| assert_eq!(visited.insert(field.to_vec(), value.to_vec()), None));
    assert_eq!(visited, all);
    assert_eq!(all, expected);
    assert_eq!(view.len(), expected.len());
    // In an order of their own, with some that are not there.
    let asked: Vec<Vec<u8>> =
        expected.keys().rev().cloned().chain([b"none".to_vec()]).chain(expected.keys().cloned()).collect();
    let mut got = Vec::new();
    view.get_each(asked.iter().map(Vec::as_slice), |value| got.push(value.map(<[u8]>::to_vec)));
    assert_eq!(got, asked.iter().map(|field| expected.get(field).cloned()).collect::<Vec<_>>());
    let mut scanned = BTreeMap::new();
    let mut cursor = 0;
    loop {
        cursor = view.scan(cursor, 7, |field, value| drop(scanned.insert(field.to_vec(), value.to_vec())));
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned, expected);
}

fn check_random(hash: &Hash, model: &Model, now_ms: u64, rng: &mut XorShift) {
    let expected = live(model, now_ms);
    let view = hash.view().at(now_ms);
    let count = rng.below(40) as usize;
    let mut met = BTreeSet::new();
    view.random_distinct(count, rng, |field, value| {
        assert_eq!(expected.get(field).map(Vec::as_slice), Some(value));
        assert!(met.insert(field.to_vec()));
    });
    assert_eq!(met.len(), count.min(expected.len()));
    let mut rolls = 0;
    view.random_each(count, rng, |field, _| {
        assert!(expected.contains_key(field));
        rolls += 1;
    });
    assert_eq!(rolls, if expected.is_empty() { 0 } else { count });
}

#[test]
fn behaves_like_a_map() {
    for seed in 1..13 {
        println!("seed {seed}");
        let ground = Ground::new(seed);
        let backing = ground.backing();
        let mut rng = XorShift::new(seed);
        // Few fields with long values, which stay in one buffer for long; some more, which leave it by their bytes or
        // their number; or many.
        let (kinds, long, entries_max) = match seed % 4 {
            2 => (2, 6, 42),
            0 => (16, [1, 12][seed as usize / 4 % 2], 100),
            _ => (100, 400, 40 + seed as usize),
        };
        let limits = HashLimits { entries_max, value_bytes_max: 64 };
        let (mut hash, mut model) = (Hash::default(), Model::new());
        let (mut was_table, mut wide) = (false, 0);
        let expiring = seed % 3 == 0;
        for step in 0..3000_u64 {
            let (now_ms, field) = (step, text(&mut rng, kinds, 400));
            let mut change = HashMut::new(&mut hash, limits, backing).with(now_ms, None);
            let old = model.get(&field).filter(|(_, at)| at.is_none_or(|at| at > now_ms)).cloned();
            match rng.below(12) {
                0..=5 => {
                    let value = text(&mut rng, 100_000, long);
                    let at = now_ms + 1 + u64::from(rng.below(500));
                    let (expiry, at) = match rng.below(4) {
                        0 if expiring => (FieldExpiry::At(at), Some(at)),
                        1 => (FieldExpiry::Keep, old.as_ref().and_then(|(_, at)| *at)),
                        _ => (FieldExpiry::None, None),
                    };
                    assert_eq!(change.set_with(&field, &value, expiry), old.is_none());
                    model.insert(field, (value, at));
                    // More at once, as HSET sets them, the same again too.
                    for _ in 0..rng.below(4) {
                        let (field, value) = (text(&mut rng, kinds, 400), text(&mut rng, 100_000, long));
                        let is_new = !live(&model, now_ms).contains_key(&field);
                        assert_eq!(change.set(&field, &value), is_new);
                        model.insert(field, (value, None));
                    }
                }
                6..=8 => {
                    let taken = change.remove(&field, <[u8]>::to_vec);
                    assert_eq!(taken, old.map(|(value, _)| value));
                    model.remove(&field);
                }
                9 if expiring => {
                    let at = (rng.below(3) > 0).then_some(now_ms + 1 + u64::from(rng.below(500)));
                    assert_eq!(change.set_expire_ms(&field, at), old.is_some());
                    if old.is_some() {
                        model.get_mut(&field).unwrap().1 = at;
                    }
                }
                10 => {
                    let view = change.view();
                    assert_eq!(view.get(&field), old.as_ref().map(|(value, _)| value.as_slice()));
                    assert_eq!(view.contains(&field), old.is_some());
                    assert_eq!(view.expire_ms(&field), old.map(|(_, at)| at));
                }
                11 if rng.below(20) == 0 => {
                    hash.expire_due(now_ms, usize::MAX, backing, |record| {
                        assert!(model.remove(record.key).unwrap().1.is_some_and(|at| at <= now_ms));
                    });
                    assert!(hash.next_due_ms() > now_ms);
                }
                _ => check_random(&hash, &model, now_ms, &mut rng),
            }
            if step % 50 == 0 {
                check(&hash, &model, now_ms);
                check(&hash.view().duplicate(), &model, now_ms);
            }
            let is_table = hash.view().encoding() == "hashtable";
            assert!(is_table || !was_table || model.is_empty(), "never back");
            was_table = is_table;
            wide += usize::from(is_table && hash.is_compact());
            assert!(!hash.is_compact() || hash.memory_bytes() <= WIDE_BYTES_MAX * 9 / 8 || !is_table);
        }
        assert!(was_table);
        assert!(seed % 4 != 2 || expiring || wide > 100, "{wide} steps with a wide one");
        assert!(seed % 4 != 0 || !hash.is_compact(), "it has become too large for one buffer");
    }
}

#[test]
fn converts_at_the_limits() {
    let ground = Ground::new(1);
    let backing = ground.backing();
    let limits = HashLimits { entries_max: 3, value_bytes_max: 5 };
    let encoding_after = |pairs: &[(&str, &str)]| {
        let mut hash = Hash::default();
        for (field, value) in pairs {
            HashMut::new(&mut hash, limits, backing).set(field.as_bytes(), value.as_bytes());
        }
        hash.view().encoding()
    };
    assert_eq!(encoding_after(&[("a", "1"), ("b", "2"), ("c", "12345"), ("c", "3")]), "listpack");
    assert_eq!(encoding_after(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]), "hashtable");
    assert_eq!(encoding_after(&[("a", "123456")]), "hashtable");
    assert_eq!(encoding_after(&[("123456", "a")]), "hashtable");
    let mut hash = Hash::default();
    let lower = HashLimits { entries_max: 1, ..limits };
    for field in [b"a", b"b"] {
        HashMut::new(&mut hash, limits, backing).set(field, b"1");
    }
    assert_eq!(hash.view().encoding(), "listpack");
    HashMut::new(&mut hash, lower, backing).set(b"a", b"2");
    assert_eq!(hash.view().encoding(), "hashtable");
    let mut hash = Hash::default();
    HashMut::new(&mut hash, limits, backing).announce(3);
    assert_eq!(hash.view().encoding(), "listpack");
    HashMut::new(&mut hash, limits, backing).announce(4);
    assert_eq!(hash.view().encoding(), "hashtable");
}

#[test]
fn few_long_fields_stay_in_one_buffer() {
    let ground = Ground::new(1);
    let backing = ground.backing();
    let set = |hash: &mut Hash, number: usize, len: usize| {
        let field = format!("field{number}");
        HashMut::new(hash, HashLimits::default(), backing).set(field.as_bytes(), &vec![b'v'; len])
    };
    let mut hash = Hash::default();
    for number in 0..10 {
        assert!(set(&mut hash, number, 100));
    }
    assert_eq!((hash.is_compact(), hash.view().encoding()), (true, "hashtable"));
    assert!(hash.memory_bytes() < 10 * 120, "{} bytes", hash.memory_bytes());
    // Short values later: a client who has seen a hashtable does not see a listpack.
    for number in 0..9 {
        assert!(!set(&mut hash, number, 1));
    }
    HashMut::new(&mut hash, HashLimits::default(), backing).remove(b"field9", |_| ());
    assert_eq!((hash.is_compact(), hash.view().encoding()), (true, "hashtable"));
    assert_eq!((hash.view().len(), hash.view().duplicate().view().encoding()), (9, "hashtable"));

    // Bytes: the same field may take up all that there is, again and again.
    for len in [1000, 1500, 1000, 1900] {
        assert!(!set(&mut hash, 3, len));
        assert!(hash.is_compact(), "{len}");
    }
    // What it does not need any more is given back.
    assert!(!set(&mut hash, 3, 10));
    hash.give_back();
    assert!(hash.memory_bytes() < 512, "{} bytes", hash.memory_bytes());
    assert!(!set(&mut hash, 3, 1900));
    assert!(!set(&mut hash, 4, 200));
    assert!(!hash.is_compact());
    assert_eq!((hash.view().len(), hash.view().get(b"field4").map(<[u8]>::len)), (9, Some(200)));
    // To the byte: a head of 4, a length of 1 and a name of 6, a length of 2.
    for (len, compact) in [(WIDE_BYTES_MAX - 13, true), (WIDE_BYTES_MAX - 12, false)] {
        let mut hash = Hash::default();
        for new in [true, false] {
            assert_eq!(set(&mut hash, 1, len), new);
            assert_eq!(hash.is_compact(), compact);
        }
    }
    // Fields: as many short ones as there are when the long one comes.
    for (fields, compact) in [(WIDE_FIELDS_MAX - 1, true), (WIDE_FIELDS_MAX, false)] {
        let mut hash = Hash::default();
        (0..fields).for_each(|number| assert!(set(&mut hash, number, 1)));
        assert_eq!((hash.is_compact(), hash.view().encoding()), (true, "listpack"));
        assert!(set(&mut hash, fields, 65));
        assert_eq!((hash.is_compact(), hash.view().encoding()), (compact, "hashtable"));
        assert!(set(&mut hash, fields + 1, 1));
        assert!(!hash.is_compact());
    }
    // An expiry makes it a table.
    let mut hash = Hash::default();
    set(&mut hash, 0, 100);
    HashMut::new(&mut hash, HashLimits::default(), backing).set_expire_ms(b"field0", Some(5));
    assert!(!hash.is_compact());
}

/// Of a wide one count the settings too, where they are lower; what they let in as a listpack is none.
#[test]
fn wide_ones_keep_to_the_settings() {
    let ground = Ground::new(1);
    let backing = ground.backing();
    let set = |hash: &mut Hash, (entries_max, value_bytes_max): (usize, usize), number: usize, len: usize| {
        let limits = HashLimits { entries_max, value_bytes_max };
        HashMut::new(hash, limits, backing).set(format!("f{number}").as_bytes(), &vec![b'v'; len])
    };
    for (entries_max, most) in [(0, 0), (1, 1), (5, 5), (31, 31), (32, 32), (33, 32), (1000, 32)] {
        let mut hash = Hash::default();
        for number in 0..40 {
            assert!(set(&mut hash, (entries_max, 10), number, 11));
            assert_eq!(hash.is_compact(), number < most, "{entries_max}: field {number}");
            assert_eq!(hash.view().encoding(), "hashtable");
        }
    }
    // Neither number nor bytes of a listpack are those of a wide one.
    for (fields, len, compact) in [(20, 70, true), (32, 10, true), (33, 10, false), (20, 200, false)] {
        let mut hash = Hash::default();
        (0..fields).for_each(|number| assert!(set(&mut hash, (1000, 3000), number, len)));
        assert_eq!((hash.is_compact(), hash.view().encoding()), (true, "listpack"));
        // The limit is lowered: what is short stays as it is, what is long by now makes it a wide one, or a table.
        assert!(!set(&mut hash, (1000, 5), 0, 5));
        assert_eq!((hash.is_compact(), hash.view().encoding()), (true, "listpack"));
        assert!(!set(&mut hash, (1000, 5), 0, 6));
        assert_eq!((hash.is_compact(), hash.view().encoding()), (compact, "hashtable"), "{fields}, {len}");
        assert_eq!(hash.view().len(), fields);
        // And raised again: it is one of many fields no more.
        assert!(!set(&mut hash, (1000, 3000), 1, len));
        assert_eq!((hash.is_compact(), hash.view().encoding()), (compact, "hashtable"));
    }
}
