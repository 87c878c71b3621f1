//! Owns: effects as DRYRUN shows them: a name, the database, the key, and what the effect says. Does not own: effects
//! (`weft_store::effect`).

use weft_store::effect::Text;
use weft_store::list::End;
use weft_store::{Effect, KeyedEffect, StreamId};

use crate::reply::ReplySink;

/// A field of an effect.
enum Field<'e> {
    Bytes(&'e [u8]),
    Int(u64),
    Signed(i64),
    Double(f64),
    Time(Option<u64>),
    Id(StreamId),
}

/// Answers an effect: an array of its name, database, key and fields. These may say what the key held (a command may
/// remove members by their rank): who may not read the key `sees` none of them.
pub(crate) fn answer(told: &KeyedEffect<'_>, sees: bool, sink: &mut ReplySink<'_>) {
    let (name, mut fields) = fields(&told.effect);
    if !sees {
        fields.clear();
    }
    sink.array(3 + fields.len());
    sink.bulk(name.as_bytes());
    sink.int(told.db.into());
    sink.bulk(told.key);
    for field in fields {
        match field {
            Field::Bytes(bytes) => sink.bulk(bytes),
            Field::Int(value) => sink.int(value as i64),
            Field::Signed(value) => sink.int(value),
            Field::Double(value) => sink.double(value),
            Field::Time(Some(value)) => sink.int(value as i64),
            Field::Time(None) => sink.null(),
            Field::Id(id) => sink.bulk(format!("{}-{}", id.ms, id.seq).as_bytes()),
        }
    }
}

const fn end(end: End) -> Field<'static> {
    Field::Bytes(match end {
        End::Front => b"front",
        End::Back => b"back",
    })
}

fn fields<'e>(effect: &Effect<'e>) -> (&'static str, Vec<Field<'e>>) {
    use Field::{Bytes, Double, Int, Signed, Time};
    match *effect {
        Effect::Set { value: Text::Bytes(bytes), expire_ms } => ("set", vec![Bytes(bytes), Time(expire_ms)]),
        Effect::Set { value: Text::Int(value), expire_ms } => ("set", vec![Signed(value), Time(expire_ms)]),
        Effect::New { expire_ms, .. } => ("new", vec![Time(expire_ms)]),
        Effect::Write { offset, bytes } => ("write", vec![Int(offset), Bytes(bytes)]),
        Effect::Expire { expire_ms } => ("expire", vec![Time(expire_ms)]),
        Effect::Delete { .. } => ("delete", vec![]),
        Effect::Move { to_db, to } => ("move", vec![Int(to_db.into()), Bytes(to)]),
        Effect::Copy { to_db, to } => ("copy", vec![Int(to_db.into()), Bytes(to)]),
        Effect::ListPush { end: at, element } => ("list-push", vec![end(at), Bytes(element)]),
        Effect::ListPop { end: at, count } => ("list-pop", vec![end(at), Int(count)]),
        Effect::ListSet { index, element } => ("list-set", vec![Int(index), Bytes(element)]),
        Effect::ListInsert { index, element } => ("list-insert", vec![Int(index), Bytes(element)]),
        Effect::ListRemove { index } => ("list-remove", vec![Int(index)]),
        Effect::HashSet { field, value, expire_ms } => {
            ("hash-set", vec![Bytes(field), Bytes(value), Time(expire_ms)])
        }
        Effect::HashExpire { field, expire_ms } => ("hash-expire", vec![Bytes(field), Time(expire_ms)]),
        Effect::HashDelete { field } => ("hash-delete", vec![Bytes(field)]),
        Effect::FieldExpired { field } => ("field-expired", vec![Bytes(field)]),
        Effect::SetAdd { member } => ("set-add", vec![Bytes(member)]),
        Effect::SetRemove { member } => ("set-remove", vec![Bytes(member)]),
        Effect::SortedSetAdd { member, score } => ("sorted-set-add", vec![Bytes(member), Double(score)]),
        Effect::SortedSetRemove { member } => ("sorted-set-remove", vec![Bytes(member)]),
        Effect::Flush => ("flush", vec![]),
        Effect::Swap { with } => ("swap", vec![Int(with.into())]),
        _ => stream_fields(effect),
    }
}

fn stream_fields<'e>(effect: &Effect<'e>) -> (&'static str, Vec<Field<'e>>) {
    use Field::{Bytes, Id, Int, Time};
    match *effect {
        Effect::StreamAppend { id, fields } => {
            let mut all = vec![Id(id)];
            for (name, value) in fields.iter() {
                all.extend([Bytes(name), Bytes(value)]);
            }
            ("stream-append", all)
        }
        Effect::StreamDelete { id } => ("stream-delete", vec![Id(id)]),
        Effect::StreamTrim { len } => ("stream-trim", vec![Int(len)]),
        Effect::StreamCounters { last_id, entries_added, .. } => {
            ("stream-counters", vec![Id(last_id), Int(entries_added)])
        }
        Effect::GroupCreate { group, last_id, .. } => ("group-create", vec![Bytes(group), Id(last_id)]),
        Effect::GroupDestroy { group } => ("group-destroy", vec![Bytes(group)]),
        Effect::GroupPosition { group, last_id, .. } => ("group-position", vec![Bytes(group), Id(last_id)]),
        Effect::Consumer { group, consumer, seen_ms, active_ms } => {
            ("consumer", vec![Bytes(group), Bytes(consumer), Int(seen_ms), Time(active_ms)])
        }
        Effect::ConsumerDelete { group, consumer } => {
            ("consumer-delete", vec![Bytes(group), Bytes(consumer)])
        }
        Effect::Pending { group, consumer, id, delivered_ms, deliveries } => {
            ("pending", vec![Bytes(group), Bytes(consumer), Id(id), Int(delivered_ms), Int(deliveries)])
        }
        Effect::PendingRemove { group, id } => ("pending-remove", vec![Bytes(group), Id(id)]),
        Effect::Catalogue { .. } => ("catalogue", vec![]),
        _ => ("beside the data", vec![]),
    }
}
