//! Owns the tests of streams against a model.

use super::*;
use crate::clock::{Rng, XorShift};
use std::collections::BTreeMap;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Entries with the block that each is in, as Valkey would cut them.
#[derive(Default)]
struct Model {
    entries: BTreeMap<StreamId, Pairs>,
    last_id: StreamId,
    max_deleted_id: StreamId,
    added: u64,
    groups: BTreeMap<Vec<u8>, ModelGroup>,
}

#[derive(Default)]
struct ModelGroup {
    last_id: StreamId,
    consumers: BTreeMap<Vec<u8>, ()>,
    pending: BTreeMap<StreamId, (Vec<u8>, u64, u64)>,
}

fn borrowed(pairs: &Pairs) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    pairs.iter().map(|(name, value)| (&**name, &**value))
}

fn owned(fields: Fields<'_>) -> Pairs {
    let pairs: Pairs = fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    assert_eq!(pairs.len(), fields.len());
    pairs
}

fn text(rng: &mut XorShift) -> Vec<u8> {
    match rng.below(12) {
        0 => vec![b'x'; 100 + rng.below(300) as usize],
        1..=4 => rng.below(100_000).to_string().into_bytes(),
        5 => Vec::new(),
        _ => vec![b'a' + rng.below(3) as u8; rng.below(9) as usize],
    }
}

fn pairs(rng: &mut XorShift) -> Pairs {
    if rng.below(3) > 0 {
        return vec![(b"name".to_vec(), text(rng)), (b"age".to_vec(), text(rng))];
    }
    (0..1 + rng.below(4)).map(|_| (text(rng), text(rng))).collect()
}

fn some_id(model: &Model, rng: &mut XorShift) -> StreamId {
    let near = |id: StreamId, rng: &mut XorShift| match rng.below(4) {
        0 => id.next().unwrap_or(id),
        1 => id.previous().unwrap_or(id),
        _ => id,
    };
    match rng.below(10) {
        0 => StreamId::MIN,
        1 => StreamId::MAX,
        _ if model.entries.is_empty() => StreamId::new(u64::from(rng.below(50)), 0),
        _ => {
            let at = rng.below(model.entries.len() as u32) as usize;
            let id = *model.entries.keys().nth(at).unwrap();
            near(id, rng)
        }
    }
}

fn check(stream: &Stream, model: &Model) {
    let log = stream.log();
    assert_eq!(log.len() as usize, model.entries.len());
    assert_eq!(log.first_id(), model.entries.keys().next().copied().unwrap_or_default());
    assert_eq!((log.last_id(), log.max_deleted_id()), (model.last_id, model.max_deleted_id));
    assert_eq!(log.entries_added(), model.added);
    let all: Vec<_> = log.range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id).collect();
    assert!(all.iter().eq(model.entries.keys()));
    let blocks: Vec<_> = log.blocks().collect();
    assert_eq!(blocks.len(), log.block_count());
    assert!(blocks.iter().all(|block| !block.is_empty() && block.entries().count() as u64 == block.len()));
    assert_eq!(blocks.iter().map(|block| block.len()).sum::<u64>(), log.len());
    for (name, group) in stream.groups() {
        let expected = &model.groups[name];
        assert_eq!(group.last_id(), expected.last_id);
        assert!(group.consumers().map(Consumer::name).eq(expected.consumers.keys()));
        let pending = group.pending_from(StreamId::MIN).map(|(id, pending)| {
            let consumer = group.consumer(pending.consumer);
            (id, (consumer.name().to_vec(), pending.delivered_ms, pending.deliveries))
        });
        assert!(pending.eq(expected.pending.iter().map(|(&id, pending)| (id, pending.clone()))));
        for consumer in group.consumers() {
            let theirs = expected.pending.iter().filter(|(_, (name, ..))| name == consumer.name());
            assert!(consumer.pending_from(StreamId::MIN).eq(theirs.map(|(&id, _)| id)));
        }
    }
    let groups: usize = stream.groups().map(|(name, group)| name.len() + group.memory_bytes()).sum();
    assert_eq!(stream.within_bytes, groups);
    assert_eq!(log.memory_bytes(), log.counted_bytes());
}

fn step(stream: &mut Stream, model: &mut Model, rng: &mut XorShift, limit: StreamLimit) {
    match rng.below(20) {
        0..=7 => append(stream, model, rng, limit),
        8..=9 => {
            let id = some_id(model, rng);
            let there = model.entries.remove(&id).is_some();
            assert_eq!(StreamMut::new(stream).delete(id), there);
            if there {
                model.max_deleted_id = model.max_deleted_id.max(id);
            }
        }
        10 => trim(stream, model, rng),
        11..=13 => range(stream, model, rng),
        _ => group_step(stream, model, rng),
    }
}

fn append(stream: &mut Stream, model: &mut Model, rng: &mut XorShift, limit: StreamLimit) {
    let now_ms = model.last_id.ms.saturating_add(u64::from(rng.below(4))).saturating_sub(1);
    let want = match rng.below(5) {
        0 => NewId::AutoSeq(now_ms),
        1 => NewId::Exact(some_id(model, rng)),
        _ => NewId::Auto,
    };
    let pairs = pairs(rng);
    if want == NewId::Exact(StreamId::MAX) {
        return;
    }
    match stream.log().next_id(want, now_ms) {
        Ok(id) => {
            assert!(id > model.last_id);
            StreamMut::new(stream).append(id, borrowed(&pairs), limit).unwrap();
            model.entries.insert(id, pairs);
            model.last_id = id;
            model.added += 1;
        }
        Err(_) => match want {
            NewId::Exact(id) => assert!(id <= model.last_id),
            NewId::AutoSeq(ms) => assert!(ms < model.last_id.ms),
            NewId::Auto => panic!("there is always an id to find"),
        },
    }
}

fn trim(stream: &mut Stream, model: &mut Model, rng: &mut XorShift) {
    let to = if rng.below(2) == 0 {
        TrimTo::Length(u64::from(rng.below(model.entries.len() as u32 + 3)))
    } else {
        TrimTo::Id(some_id(model, rng))
    };
    if rng.below(3) > 0 && matches!(to, TrimTo::Id(_)) {
        return;
    }
    let approximate = rng.below(2) == 0;
    let limit = if approximate { u64::from(rng.below(3) * 10) } else { 0 };
    let removed = StreamMut::new(stream).trim(Trim { to, approximate, limit });
    assert!(limit == 0 || removed <= limit);
    for _ in 0..removed {
        let (id, _) = model.entries.pop_first().expect("no more are removed than there are");
        assert!(matches!(to, TrimTo::Length(_)) || matches!(to, TrimTo::Id(to) if id < to));
    }
    match to {
        TrimTo::Length(length) if approximate => {
            assert!(removed == 0 || model.entries.len() as u64 >= length);
        }
        TrimTo::Length(length) => assert!(model.entries.len() as u64 <= length),
        TrimTo::Id(id) => assert!(approximate || model.entries.keys().all(|&left| left >= id)),
    }
}

fn range(stream: &Stream, model: &Model, rng: &mut XorShift) {
    let (start, end) = (some_id(model, rng), some_id(model, rng));
    let got: Vec<_> = stream.log().range(start, end).map(|entry| (entry.id, owned(entry.fields))).collect();
    let mut back: Vec<_> =
        stream.log().range_back(start, end).map(|entry| (entry.id, owned(entry.fields))).collect();
    back.reverse();
    let expected: Vec<_> = if start > end {
        Vec::new()
    } else {
        model.entries.range(start..=end).map(|(&id, pairs)| (id, pairs.clone())).collect()
    };
    assert_eq!(got, expected);
    assert_eq!(back, expected);
    assert_eq!(stream.log().get(start).map(|entry| owned(entry.fields)), model.entries.get(&start).cloned());
}

fn group_step(stream: &mut Stream, model: &mut Model, rng: &mut XorShift) {
    let name = [b'g', b'0' + rng.below(3) as u8];
    let (id, id_to) = (some_id(model, rng), some_id(model, rng));
    let now_ms = 1000 + u64::from(rng.below(1000));
    if rng.below(30) == 0 {
        assert_eq!(
            StreamMut::new(stream).remove_group(&name).is_some(),
            model.groups.remove(&name[..]).is_some()
        );
    }
    let mut stream = StreamMut::new(stream);
    let Some((log, mut group)) = stream.group_mut(&name) else {
        assert!(stream.create_group(&name, Group::new(id, None)));
        assert!(!stream.create_group(&name, Group::new(id, None)));
        model.groups.insert(name.to_vec(), ModelGroup { last_id: id, ..ModelGroup::default() });
        return;
    };
    let expected = model.groups.get_mut(&name[..]).unwrap();
    let consumer_name = vec![b'c', b'0' + rng.below(4) as u8];
    if rng.below(20) == 0 {
        let gone = group.remove_consumer(&consumer_name);
        let before = expected.pending.len();
        expected.pending.retain(|_, (owner, ..)| *owner != consumer_name);
        assert_eq!(gone.unwrap_or(0), before - expected.pending.len());
        assert_eq!(gone.is_some(), expected.consumers.remove(&consumer_name).is_some());
        return;
    }
    let (consumer, new) = group.find_or_create_consumer(&consumer_name, now_ms);
    assert_eq!(new, expected.consumers.insert(consumer_name.clone(), ()).is_none());
    let count = u64::from(rng.below(8));
    let limit = if count == 0 { usize::MAX } else { count as usize };
    match rng.below(12) {
        0..=2 => {
            let after = expected.last_id;
            let wanted: Vec<_> = model.entries.keys().copied().filter(|&id| id > after).take(limit).collect();
            let mut got = Vec::new();
            group.deliver(log, Some(consumer), count, now_ms, |entry| got.push(entry.id));
            assert_eq!(got, wanted);
            for id in wanted {
                expected.last_id = id;
                expected.pending.insert(id, (consumer_name.clone(), now_ms, 1));
            }
        }
        3..=4 => {
            let theirs = expected.pending.range_mut(id..).filter(|(_, (owner, ..))| *owner == consumer_name);
            let mut wanted = Vec::new();
            for (&id, pending) in theirs.take(limit) {
                let there = model.entries.contains_key(&id);
                if there {
                    (pending.1, pending.2) = (now_ms, pending.2 + 1);
                }
                wanted.push((id, there));
            }
            let mut got = Vec::new();
            group.redeliver(log, consumer, (id, count), now_ms, |id, entry| got.push((id, entry.is_some())));
            assert_eq!(got, wanted);
        }
        5..=6 => {
            let id = expected.pending.range(id..).next().map_or(id, |(&id, _)| id);
            assert_eq!(group.acknowledge(id), expected.pending.remove(&id).is_some());
        }
        7..=8 => {
            let force = rng.below(2) == 0;
            let claim = StreamClaim {
                now_ms,
                min_idle_ms: 0,
                delivered_ms: now_ms,
                deliveries: None,
                just_id: true,
                force,
            };
            let taken = group.claim(log, consumer, id, &claim);
            let there = model.entries.contains_key(&id);
            let before = expected.pending.get(&id).cloned();
            match taken {
                Claimed::Taken(entry) => {
                    assert!(entry.id == id && there && (force || before.is_some()));
                    let deliveries = before.map_or(1, |(_, _, deliveries)| deliveries);
                    expected.pending.insert(id, (consumer_name, now_ms, deliveries));
                }
                Claimed::Gone => assert!(!there && expected.pending.remove(&id).is_some()),
                Claimed::Left => assert!(before.is_none() && (!there || !force)),
            }
        }
        9 => claim_from(log, &mut group, expected, &model.entries, &consumer_name, id, now_ms),
        10 => {
            group.set_position(id_to, None);
            expected.last_id = id_to;
        }
        _ => {
            let bounds = group.pending_bounds();
            assert_eq!(bounds.map(|(first, _)| first), expected.pending.keys().next().copied());
            assert_eq!(bounds.map(|(_, last)| last), expected.pending.keys().next_back().copied());
        }
    }
}

fn claim_from(
    log: &Log,
    group: &mut GroupMut<'_>,
    expected: &mut ModelGroup,
    entries: &BTreeMap<StreamId, Pairs>,
    name: &[u8],
    start: StreamId,
    now_ms: u64,
) {
    let consumer = group.find_consumer(name).unwrap();
    let claim = StreamClaim {
        now_ms,
        min_idle_ms: 400,
        delivered_ms: now_ms,
        deliveries: None,
        just_id: false,
        force: false,
    };
    let mut got = Vec::new();
    let next = group.claim_from(log, consumer, (start, 2), &claim, |id, entry| {
        got.push((id, entry.is_some()));
    });
    let (mut looks, mut left, mut wanted) = (20, 2, Vec::new());
    let ids: Vec<_> = expected.pending.range(start..).map(|(&id, _)| id).collect();
    let mut ids = ids.into_iter().peekable();
    while looks > 0 && left > 0 {
        let Some(id) = ids.next() else { break };
        looks -= 1;
        let pending = expected.pending.get_mut(&id).unwrap();
        if !entries.contains_key(&id) {
            expected.pending.remove(&id);
            wanted.push((id, false));
        } else if now_ms.saturating_sub(pending.1) >= 400 {
            *pending = (name.to_vec(), now_ms, pending.2 + 1);
            wanted.push((id, true));
        } else {
            continue;
        }
        left -= 1;
    }
    assert_eq!(got, wanted);
    assert_eq!(next, ids.peek().copied().unwrap_or_default());
}

#[test]
fn behaves_like_a_model() {
    for seed in 1..=40 {
        println!("seed {seed}");
        let mut rng = XorShift::new(seed);
        let limit = StreamLimit {
            block_bytes_max: [0, 60, 300, 4096][rng.below(4) as usize],
            block_entries_max: [0, 1, 3, 10, 100][rng.below(5) as usize],
        };
        let (mut stream, mut model) = (Stream::default(), Model::default());
        for _ in 0..1500 {
            step(&mut stream, &mut model, &mut rng, limit);
            check(&stream, &model);
        }
        let copy = stream.clone();
        check(&copy, &model);
        while stream.free_some(7) {}
        assert!(stream.groups.is_empty() && stream.log().block_count() <= 1);
    }
}

/// Lengths that Valkey 9.1 leaves: the blocks end where its listpacks do.
#[test]
fn approximate_trimming_cuts_where_valkey_does() {
    let mut stream = Stream::default();
    for number in 1..=1000_u64 {
        let value = number.to_string();
        let pairs = [(&b"item"[..], value.as_bytes())];
        StreamMut::new(&mut stream)
            .append(StreamId::new(number, 1), pairs.into_iter(), StreamLimit::default())
            .unwrap();
    }
    assert_eq!(stream.log().block_count(), 10);
    let trim = |to, limit| Trim { to, approximate: true, limit };
    assert_eq!(StreamMut::new(&mut stream).trim(trim(TrimTo::Length(655), 0)), 300);
    assert_eq!(StreamMut::new(&mut stream).trim(trim(TrimTo::Length(600), 0)), 100);
    assert_eq!(StreamMut::new(&mut stream).trim(trim(TrimTo::Length(0), 150)), 100);
    assert_eq!(StreamMut::new(&mut stream).trim(trim(TrimTo::Id(StreamId::new(701, 1)), 0)), 200);
    assert_eq!(stream.log().first_id(), StreamId::new(701, 1));
}

/// Lengths of blocks for entries of many sizes, counted on a Valkey 9.1.2.
#[test]
fn blocks_end_where_valkeys_listpacks_do() {
    let lens = |block_bytes_max| {
        let limit = StreamLimit { block_bytes_max, ..StreamLimit::default() };
        let mut log = Log::default();
        for number in 1..=200_u64 {
            let (square, name) = ((number * number * 37).to_string(), "n".repeat(number as usize % 90 + 1));
            let pairs = [(&b"id"[..], square.as_bytes()), (b"name", name.as_bytes())];
            log.append(StreamId::new(number, number % 7), pairs.into_iter(), limit).unwrap();
        }
        log.blocks().map(BlockRef::len).collect::<Vec<_>>()
    };
    assert_eq!(lens(4096), [75, 72, 53]);
    let two = |block_bytes_max| {
        let limit = StreamLimit { block_bytes_max, ..StreamLimit::default() };
        let (mut log, pairs) = (Log::default(), [(&b"a"[..], &b"b"[..])]);
        for ms in 1..=2 {
            log.append(StreamId::new(ms, 1), pairs.into_iter(), limit).unwrap();
        }
        log.block_count()
    };
    assert_eq!((two(31), two(32)), (2, 1));
    assert_eq!(
        lens(300),
        [
            13, 8, 6, 6, 5, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 5, 11, 8, 6, 5, 5, 4, 4, 4, 4,
            3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 9, 9, 4
        ]
    );
}

#[test]
fn lag_is_known_where_valkey_knows_it() {
    let mut stream = Stream::default();
    let add = |stream: &mut Stream, ms| {
        let pairs = [(&b"a"[..], &b"b"[..])];
        StreamMut::new(stream)
            .append(StreamId::new(ms, 0), pairs.into_iter(), StreamLimit::default())
            .unwrap();
    };
    let lag = |stream: &Stream| stream.group(b"g").unwrap().lag(stream.log());
    let read = |stream: &mut Stream, count| {
        let mut stream = StreamMut::new(stream);
        let (log, mut group) = stream.group_mut(b"g").unwrap();
        group.deliver(log, None, count, 0, |_| {});
    };
    assert!(StreamMut::new(&mut stream).create_group(b"g", Group::new(StreamId::MIN, None)));
    assert_eq!(lag(&stream), Some(0));
    for ms in 1..=5 {
        add(&mut stream, ms);
    }
    assert_eq!(lag(&stream), Some(5));
    read(&mut stream, 1);
    assert_eq!((lag(&stream), stream.group(b"g").unwrap().entries_read()), (Some(4), Some(1)));
    read(&mut stream, 1);
    assert_eq!((lag(&stream), stream.group(b"g").unwrap().entries_read()), (Some(3), Some(2)));
    assert!(StreamMut::new(&mut stream).delete(StreamId::new(4, 0)));
    assert_eq!(lag(&stream), None);
    read(&mut stream, 1);
    assert_eq!(lag(&stream), None);
    read(&mut stream, 0);
    assert_eq!((lag(&stream), stream.group(b"g").unwrap().entries_read()), (Some(0), Some(5)));
    add(&mut stream, 6);
    assert_eq!(lag(&stream), Some(1));
}

#[test]
fn ids_come_to_an_end() {
    let mut log = Log::default();
    let pairs = [(&b"a"[..], &b"b"[..])];
    let limit = StreamLimit::default();
    assert_eq!(log.append(StreamId::MIN, pairs.into_iter(), limit), Err(AppendError::NotAbove));
    let last = StreamId::new(5, u64::MAX);
    log.append(last, pairs.into_iter(), limit).unwrap();
    assert_eq!(log.next_id(NewId::AutoSeq(5), 0), Err(AppendError::NotAbove));
    assert_eq!(log.next_id(NewId::Auto, 0), Ok(StreamId::new(6, 0)));
    log.append(StreamId::MAX, pairs.into_iter(), limit).unwrap();
    assert_eq!(log.next_id(NewId::Auto, u64::MAX), Err(AppendError::NotAbove));
    assert_eq!(log.range_back(StreamId::MIN, StreamId::MAX).count(), 2);
    assert_eq!(log.range(StreamId::MAX, StreamId::MAX).count(), 1);
}
