//! Owns: a stream in an RDB payload, both ways. Does not own: the stream itself.
//!
//! A node is the id that its entries count from, as 16 bytes, and a listpack: number of entries, number of deleted
//! ones, number of names, names, 0; then for each entry flags, two differences, with its own names their number, names
//! and values, and how many elements these are. Kinds 19 and 21 added counters and the time of activity.

use super::cursor::Cursor;
use super::packed::{Listpack, ListpackWriter, Piece};
use super::{Malformed, encode, kind};
use std::collections::BTreeMap;
use weft_store::stream::{BlockRef, Group, Pending};
use weft_store::value::Digits;
use weft_store::{Stream, StreamId, StreamMut};

/// The entry is deleted.
const FLAG_DELETED: i64 = 1;
/// The entry has the names of its node.
const FLAG_SAME_NAMES: i64 = 2;
/// A group does not know how many entries it has read.
const ENTRIES_READ_UNKNOWN: u64 = u64::MAX;

fn id(cursor: &mut Cursor<'_>) -> Result<StreamId, Malformed> {
    Ok(StreamId::new(cursor.length()?, cursor.length()?))
}

fn raw_id(bytes: [u8; 16]) -> StreamId {
    let all = u128::from_be_bytes(bytes);
    StreamId::new((all >> 64) as u64, all as u64)
}

pub(super) fn read(kind: u8, cursor: &mut Cursor<'_>) -> Result<Stream, Malformed> {
    let mut built = Stream::default();
    let mut stream = StreamMut::new(&mut built);
    for _ in 0..cursor.count()? {
        let key = cursor.string()?;
        let master = raw_id(<[u8; 16]>::try_from(&*key).map_err(|_| Malformed)?);
        read_node(master, &cursor.string()?, &mut stream)?;
    }
    read_counters(kind, cursor, &mut stream)?;
    for _ in 0..cursor.count()? {
        let name = cursor.string()?;
        let last_id = id(cursor)?;
        let entries_read = if kind == kind::STREAM {
            stream.log().position_of(last_id)
        } else {
            Some(cursor.length()?).filter(|&read| read != ENTRIES_READ_UNKNOWN)
        };
        let group = read_group(kind, cursor, Group::new(last_id, entries_read))?;
        if !stream.create_group(&name, group) {
            return Err(Malformed);
        }
    }
    Ok(built)
}

fn read_node(master: StreamId, packed: &[u8], stream: &mut StreamMut<'_>) -> Result<(), Malformed> {
    let mut pieces = Listpack::new(packed)?;
    let (live, dead) = (pieces.expect()?.int()?, pieces.expect()?.int()?);
    let mut names = Vec::new();
    for _ in 0..pieces.expect()?.int()? {
        names.push(pieces.expect()?);
    }
    if pieces.expect()?.int()? != 0 || live < 0 || dead < 0 {
        return Err(Malformed);
    }
    let (mut seen_live, mut seen_dead) = (0, 0);
    let mut digits = Vec::new();
    while !pieces.is_at_end() {
        let flags = pieces.expect()?.int()?;
        let (ms, seq) = (pieces.expect()?.int()?, pieces.expect()?.int()?);
        let id = StreamId::new(master.ms.wrapping_add(ms as u64), master.seq.wrapping_add(seq as u64));
        let same = flags & FLAG_SAME_NAMES != 0;
        let count = if same { names.len() as i64 } else { pieces.expect()?.int()? };
        let mut fields = Vec::new();
        for at in 0..count {
            let name = if same { names[at as usize] } else { pieces.expect()? };
            fields.push((name, pieces.expect()?));
        }
        let parts =
            if same { count.checked_add(3) } else { count.checked_mul(2).and_then(|all| all.checked_add(4)) };
        if Some(pieces.expect()?.int()?) != parts || count < 0 {
            return Err(Malformed);
        }
        if flags & FLAG_DELETED != 0 {
            seen_dead += 1;
            continue;
        }
        load(stream, id, &fields, &mut digits, (seen_live == 0).then_some((master, &names)))?;
        seen_live += 1;
    }
    if seen_live == live && seen_dead == dead { Ok(()) } else { Err(Malformed) }
}

/// Adds an entry, integers as their digits, for which `digits` has the room.
fn load(
    stream: &mut StreamMut<'_>,
    id: StreamId,
    fields: &[(Piece<'_>, Piece<'_>)],
    digits: &mut Vec<(Digits, Digits)>,
    block: Option<(StreamId, &Vec<Piece<'_>>)>,
) -> Result<(), Malformed> {
    digits.resize_with(digits.len().max(fields.len()), Default::default);
    let pairs: Vec<_> = fields
        .iter()
        .zip(digits)
        .map(|((name, value), (name_digits, value_digits))| {
            (name.bytes(name_digits), value.bytes(value_digits))
        })
        .collect();
    let mut name_digits = vec![Digits::default(); block.map_or(0, |(_, names)| names.len())];
    let block = block.map(|(master, names)| {
        let texts = names.iter().zip(&mut name_digits).map(|(name, digits)| name.bytes(digits));
        (master, texts.collect::<Vec<_>>().into_iter())
    });
    stream.load(id, pairs.into_iter(), block).map_err(|_| Malformed)
}

fn read_counters(kind: u8, cursor: &mut Cursor<'_>, stream: &mut StreamMut<'_>) -> Result<(), Malformed> {
    let length = cursor.length()?;
    let last_id = id(cursor)?;
    let (max_deleted_id, entries_added) = if kind == kind::STREAM {
        (StreamId::MIN, length)
    } else {
        // The first id is known from the entries.
        id(cursor)?;
        (id(cursor)?, cursor.length()?)
    };
    if length != stream.log().len() || last_id < stream.log().last_id() {
        return Err(Malformed);
    }
    stream.set_counters(last_id, entries_added, max_deleted_id);
    Ok(())
}

fn read_group(kind: u8, cursor: &mut Cursor<'_>, mut group: Group) -> Result<Group, Malformed> {
    let time = |cursor: &mut Cursor<'_>| cursor.i64_le();
    let mut unowned = BTreeMap::new();
    for _ in 0..cursor.count()? {
        let id = raw_id(cursor.array()?);
        let delivered_ms = u64::try_from(time(cursor)?).unwrap_or(0);
        let deliveries = cursor.length()?;
        if unowned.insert(id, (delivered_ms, deliveries)).is_some() {
            return Err(Malformed);
        }
    }
    for _ in 0..cursor.count()? {
        let name = cursor.string()?;
        let (consumer, new) = group.find_or_create_consumer(&name, 0);
        if !new {
            return Err(Malformed);
        }
        let seen_ms = time(cursor)?;
        // Before kind 21 only one of the two times was kept.
        let active_ms = if kind == kind::STREAM_3 { time(cursor)? } else { seen_ms };
        let state = group.consumer_mut(consumer);
        state.seen_ms = u64::try_from(seen_ms).unwrap_or(0);
        state.active_ms = u64::try_from(active_ms).ok();
        for _ in 0..cursor.count()? {
            let id = raw_id(cursor.array()?);
            let (delivered_ms, deliveries) = unowned.remove(&id).ok_or(Malformed)?;
            group.load_pending(id, Pending { consumer, delivered_ms, deliveries });
        }
    }
    if unowned.is_empty() { Ok(group) } else { Err(Malformed) }
}

/// Whether a consumer was active at another time than he was seen, or never: kind 19 has one time for both.
pub(super) fn has_activity(stream: &Stream) -> bool {
    let mut consumers = stream.groups().flat_map(|(_, group)| group.consumers());
    consumers.any(|consumer| consumer.active_ms != Some(consumer.seen_ms))
}

/// Writes a stream as kind 19 does, which Redis 7.0 reads, or as kind 21 with the times of activity.
pub(super) fn write(kind: u8, stream: &Stream, out: &mut Vec<u8>) {
    let log = stream.log();
    encode::length(out, log.block_count() as u64);
    for block in log.blocks() {
        write_node(block, out);
    }
    let counters = [log.last_id(), log.first_id(), log.max_deleted_id()];
    encode::length(out, log.len());
    for id in counters {
        write_id(id, out);
    }
    encode::length(out, log.entries_added());
    encode::length(out, stream.groups().len() as u64);
    for (name, group) in stream.groups() {
        encode::string(out, name);
        write_id(group.last_id(), out);
        encode::length(out, group.entries_read().unwrap_or(ENTRIES_READ_UNKNOWN));
        write_group(kind, group, out);
    }
}

fn write_id(id: StreamId, out: &mut Vec<u8>) {
    encode::length(out, id.ms);
    encode::length(out, id.seq);
}

fn write_raw_id(id: StreamId, out: &mut Vec<u8>) {
    out.extend(id.ms.to_be_bytes());
    out.extend(id.seq.to_be_bytes());
}

fn write_node(block: BlockRef<'_>, out: &mut Vec<u8>) {
    let master = block.first_id();
    encode::length(out, 16);
    write_raw_id(master, out);
    let mut node = ListpackWriter::default();
    node.push_int(block.len() as i64);
    node.push_int(0);
    node.push_int(block.names().len() as i64);
    block.names().for_each(|name| node.push(name));
    node.push_int(0);
    for entry in block.entries() {
        let same = entry.fields.shares_names();
        let count = entry.fields.len() as i64;
        node.push_int(if same { FLAG_SAME_NAMES } else { 0 });
        node.push_int(entry.id.ms.wrapping_sub(master.ms) as i64);
        node.push_int(entry.id.seq.wrapping_sub(master.seq) as i64);
        if !same {
            node.push_int(count);
        }
        for (name, value) in entry.fields.iter() {
            if !same {
                node.push(name);
            }
            node.push(value);
        }
        node.push_int(if same { count + 3 } else { 2 * count + 4 });
    }
    encode::raw_string(out, &node.finish());
}

fn write_group(kind: u8, group: &Group, out: &mut Vec<u8>) {
    encode::length(out, group.pending_len() as u64);
    for (id, pending) in group.pending_from(StreamId::MIN) {
        write_raw_id(id, out);
        out.extend((pending.delivered_ms as i64).to_le_bytes());
        encode::length(out, pending.deliveries);
    }
    encode::length(out, group.consumers().len() as u64);
    for consumer in group.consumers() {
        encode::string(out, consumer.name());
        out.extend((consumer.seen_ms as i64).to_le_bytes());
        if kind == kind::STREAM_3 {
            // One who was never active has -1.
            out.extend(consumer.active_ms.map_or(-1, |time| time as i64).to_le_bytes());
        }
        encode::length(out, consumer.pending_len() as u64);
        for id in consumer.pending_from(StreamId::MIN) {
            write_raw_id(id, out);
        }
    }
}
