//! Owns the tests of tapes: any effects, written and read.

use super::*;
use crate::catalogue::Section;
use crate::clock::{Rng, XorShift};
use crate::effect::{Cause, Kind, Pairs};
use crate::list::End;

fn bytes(rng: &mut XorShift, room: &mut Vec<u8>) -> &'static [u8] {
    let len = [0, 1, 7, 127, 128, 300][rng.below(6) as usize];
    room.clear();
    room.resize(len, rng.below(200) as u8);
    // A test's memory lives as long as the test.
    Vec::leak(room.clone())
}

fn number(rng: &mut XorShift) -> u64 {
    [0, 1, 127, 128, 1 << 40, u64::MAX - 1, u64::MAX][rng.below(7) as usize]
}

fn any(rng: &mut XorShift) -> Effect<'static> {
    let mut room = Vec::new();
    let mut text = |rng: &mut XorShift| bytes(rng, &mut room);
    let optional = |rng: &mut XorShift| (rng.below(2) == 0).then(|| number(rng));
    let id = |rng: &mut XorShift| StreamId::new(number(rng), number(rng));
    let end = if rng.below(2) == 0 { End::Front } else { End::Back };
    let cause = [Cause::Deleted, Cause::Expired, Cause::Overdue, Cause::Evicted][rng.below(4) as usize];
    let kind = [Kind::List, Kind::Hash, Kind::Set, Kind::SortedSet, Kind::Stream][rng.below(5) as usize];
    match rng.below(40) {
        0 => Effect::Set { value: Text::Bytes(text(rng)), expire_ms: optional(rng) },
        1 => Effect::Set { value: Text::Int(number(rng) as i64), expire_ms: optional(rng) },
        2 => Effect::New { kind, expire_ms: optional(rng) },
        3 => Effect::Write { offset: number(rng), bytes: text(rng) },
        4 => Effect::Expire { expire_ms: optional(rng) },
        5 => Effect::Delete { cause },
        6 => Effect::Move { to_db: 3, to: text(rng) },
        7 => Effect::Copy { to_db: 15, to: text(rng) },
        8 => Effect::ListPush { end, element: text(rng) },
        9 => Effect::ListPop { end, count: number(rng) },
        10 => Effect::ListSet { index: number(rng), element: text(rng) },
        11 => Effect::ListInsert { index: number(rng), element: text(rng) },
        12 => Effect::ListRemove { index: number(rng) },
        13 => Effect::HashSet { field: text(rng), value: text(rng), expire_ms: optional(rng) },
        14 => Effect::HashExpire { field: text(rng), expire_ms: optional(rng) },
        15 => Effect::HashDelete { field: text(rng) },
        16 => Effect::FieldExpired { field: text(rng) },
        17 => Effect::FieldsExpired { last: rng.below(2) == 0 },
        18 => Effect::SetAdd { member: text(rng) },
        19 => Effect::SetRemove { member: text(rng) },
        20 => Effect::SortedSetAdd { member: text(rng), score: f64::from(rng.below(9)) / 3.0 },
        21 => Effect::SortedSetRemove { member: text(rng) },
        22 => {
            let pairs: Vec<(&[u8], &[u8])> = (0..rng.below(3)).map(|_| (text(rng), text(rng))).collect();
            Effect::StreamAppend { id: id(rng), fields: Pairs::Slices(Vec::leak(pairs)) }
        }
        23 => Effect::StreamDelete { id: id(rng) },
        24 => Effect::StreamTrim { len: number(rng) },
        25 => {
            Effect::StreamCounters { last_id: id(rng), entries_added: number(rng), max_deleted_id: id(rng) }
        }
        26 => Effect::GroupCreate { group: text(rng), last_id: id(rng), entries_read: optional(rng) },
        27 => Effect::GroupDestroy { group: text(rng) },
        28 => Effect::GroupPosition { group: text(rng), last_id: id(rng), entries_read: optional(rng) },
        29 => {
            let (seen_ms, active_ms) = (number(rng), optional(rng));
            Effect::Consumer { group: text(rng), consumer: text(rng), seen_ms, active_ms }
        }
        30 => Effect::ConsumerDelete { group: text(rng), consumer: text(rng) },
        31 => {
            let (id, delivered_ms, deliveries) = (id(rng), number(rng), number(rng));
            Effect::Pending { group: text(rng), consumer: text(rng), id, delivered_ms, deliveries }
        }
        32 => Effect::PendingRemove { group: text(rng), id: id(rng) },
        33 => Effect::Flush,
        34 => Effect::Swap { with: 9 },
        35 => Effect::Wrote { by_itself: rng.below(2) == 0 },
        36 => Effect::Created,
        37 => Effect::Missed,
        38 => {
            let section = Section::ALL[rng.below(Section::ALL.len() as u32) as usize];
            Effect::Catalogue { section, value: (rng.below(2) == 0).then(|| text(rng)) }
        }
        _ => Effect::Event { class: rng.below(1 << 20), name: "xgroup-createconsumer" },
    }
}

#[test]
fn what_is_told_is_read() {
    for seed in 1..200 {
        println!("seed {seed}");
        let mut rng = XorShift::new(seed);
        let mut tape = Tape::default();
        let mut told: Vec<(u8, Vec<u8>, Effect<'static>)> = Vec::new();
        let mut marks = Vec::new();
        // Where the present group begins.
        let mut begun = (TapeMark::default(), 0);
        for _ in 0..200 {
            match rng.below(40) {
                0 => marks.push((tape.mark(), told.len())),
                1 => {
                    if let Some((mark, len)) = marks.pop() {
                        tape.rollback(mark);
                        told.truncate(len);
                        if begun.1 >= len {
                            tape.forget_key();
                            begun = (tape.mark(), len);
                        }
                    }
                }
                2 => {
                    tape.forget_key();
                    begun = (tape.mark(), told.len());
                }
                3 => {
                    let lent = tape.lend_from(begun.0);
                    let read = Read::new(lent.bytes()).map(|told| (told.db, told.key.to_vec(), told.effect));
                    assert!(read.eq(told[begun.1..].iter().cloned()), "whoever it is lent to reads the same");
                    begun = (tape.mark(), told.len());
                }
                _ => {
                    let (db, key) = (rng.below(2) as u8, vec![b'k'; rng.below(3) as usize]);
                    let effect = any(&mut rng);
                    tape.push(db, &key, &effect);
                    told.push((db, key, effect));
                }
            }
            let from = marks.last().map_or((TapeMark::default(), 0), |&mark| mark);
            let read = tape.read_from(from.0).map(|told| (told.db, told.key.to_vec(), told.effect));
            assert!(read.eq(told[from.1..].iter().cloned()));
        }
        let read = tape.read().map(|told| (told.db, told.key.to_vec(), told.effect));
        assert!(read.eq(told));
        tape.clear();
        assert!(tape.is_empty() && tape.read().next().is_none());
    }
}

#[test]
fn a_key_is_written_once_for_its_effects_in_a_row() {
    let mut tape = Tape::default();
    let effect = Effect::SetAdd { member: b"m" };
    tape.push(0, &[b'k'; 100], &effect);
    let one = tape.bytes().len();
    tape.push(0, &[b'k'; 100], &effect);
    assert_eq!(tape.bytes().len() - one, 3, "verb, length, member");
    tape.forget_key();
    let two = tape.bytes().len();
    tape.push(0, &[b'k'; 100], &effect);
    assert_eq!(tape.bytes().len() - two, one, "what follows stands for itself");
}

#[test]
fn a_large_tape_gives_its_memory_back() {
    let mut tape = Tape::default();
    for len in [KEPT_BYTES_MAX, KEPT_BYTES_MAX + 1, 1 << 20] {
        tape.push(0, b"k", &Effect::SetAdd { member: &vec![0; len] });
        tape.clear();
        assert!(tape.bytes.capacity() <= KEPT_BYTES_MAX && tape.is_empty());
    }
}
