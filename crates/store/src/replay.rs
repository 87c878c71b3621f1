//! Owns: applying effects to another keyspace. Does not own: where they come from; in which order (a
//! [`crate::Merger`]'s).
//!
//! It looks at no clock, throws no dice, and expires and evicts nothing: what went away was told. What it makes has the
//! encodings that its own limits give, and streams have blocks of their own: neither is part of what is true.

use crate::effect::{Effect, KeyedEffect, Kind, Text};
use crate::entry::Garbage;
use crate::hash_object::{FieldExpiry, HashLimits, HashMut};
use crate::keyspace::{Keyspace, Worker, World};
use crate::list::{End, ListLimit, ListMut};
use crate::recorder::Recorder;
use crate::set::{SetLimits, SetMut};
use crate::shard::{Changed, Expiry, Op, ShardGuard};
use crate::sorted_set::{SortedSetLimits, SortedSetMut};
use crate::stream::{Group, Pending, StreamLimit, StreamMut, Trim, TrimTo};
use crate::value::{NewValue, Object};

/// Effects whose keys are asked for together.
const ROW_MAX: usize = 32;

/// When collections change their form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayLimits {
    /// Of lists.
    pub list: ListLimit,
    /// Of hashes.
    pub hash: HashLimits,
    /// Of sets.
    pub set: SetLimits,
    /// Of sorted sets.
    pub sorted_set: SortedSetLimits,
    /// Of streams.
    pub stream: StreamLimit,
}

/// Applies effects, one by one.
#[derive(Debug, Default)]
pub struct Replayer {
    limits: ReplayLimits,
    recorder: Recorder,
}

impl Replayer {
    /// Which makes collections by these limits.
    #[must_use]
    pub fn new(limits: ReplayLimits) -> Self {
        Self { limits, recorder: Recorder::default() }
    }

    /// Applies effects on one key each, in their order, of the keys of some shards: what they touch is asked for before
    /// the first of them is applied.
    pub fn apply_row(
        &mut self,
        worker: &mut Worker<'_>,
        row: &[KeyedEffect<'_>],
        takes: impl Fn(u32) -> bool,
    ) {
        for row in row.chunks(ROW_MAX) {
            let batch = &mut worker.enter();
            let mut hashes = [0; ROW_MAX];
            let mut taken = [0; ROW_MAX];
            let mut count = 0;
            for (at, told) in row.iter().enumerate() {
                let key = batch.keyspace().key(told.key);
                if takes(batch.keyspace().shard_of(&key)) {
                    batch.prefetch_bucket(told.db, key.hash(), false);
                    (hashes[count], taken[count]) = (key.hash(), at);
                    count += 1;
                }
            }
            batch.prefetch_entries(0, hashes[..count].iter().map(|hash| (*hash, false)));
            for (hash, at) in hashes[..count].iter().zip(taken) {
                let told = &row[at];
                let key = batch.keyspace().key_with_hash(told.key, *hash);
                let op = &mut Op::new(told.db, 0, &mut self.recorder);
                self.limits.apply_to_key(&mut batch.lock(&key), op, &told.effect, &key);
            }
        }
    }

    /// Whether an effect is on one key, and needs the lock of its shard only.
    #[must_use]
    pub const fn is_of_one_key(effect: &Effect<'_>) -> bool {
        !matches!(
            effect,
            Effect::Flush
                | Effect::Swap { .. }
                | Effect::Catalogue { .. }
                | Effect::Move { .. }
                | Effect::Copy { .. }
        )
    }

    /// Applies an effect on one key, under the lock of its shard. Says whether it has: one on several keys, or on a
    /// whole database, needs [`Replayer::apply`].
    #[cfg(test)]
    pub(crate) fn apply_in(&mut self, batch: &crate::Batch<'_>, told: &KeyedEffect<'_>) -> bool {
        match told.effect {
            effect if !Self::is_of_one_key(&effect) => return false,
            Effect::Wrote { .. }
            | Effect::Created
            | Effect::Missed
            | Effect::Event { .. }
            | Effect::FieldsExpired { .. } => return true,
            _ => {}
        }
        let key = batch.keyspace().key(told.key);
        let mut guard = batch.lock(&key);
        // At time 0 nothing has expired.
        let op = &mut Op::new(told.db, 0, &mut self.recorder);
        self.limits.apply_to_key(&mut guard, op, &told.effect, &key);
        true
    }

    /// Applies an effect, with the keyspace to itself.
    pub fn apply(&mut self, world: &World<'_>, told: &KeyedEffect<'_>) {
        let keyspace = world.keyspace();
        let KeyedEffect { db, key, effect } = *told;
        // At time 0 nothing has expired.
        let op = &mut Op::new(db, 0, &mut self.recorder);
        let key = keyspace.key(key);
        let mut guards = world.guards();
        match effect {
            Effect::Wrote { .. }
            | Effect::Created
            | Effect::Missed
            | Effect::Event { .. }
            | Effect::FieldsExpired { .. } => {}
            Effect::Flush => {
                world.flush(op, db..=db);
            }
            Effect::Swap { with } => world.swap(op, with),
            Effect::Catalogue { section, value } => {
                guards.shard(&key).set_entry(op, section, key.bytes(), value);
            }
            Effect::Move { to_db, to } | Effect::Copy { to_db, to } => {
                let guard = guards.shard(&key);
                let is_move = matches!(effect, Effect::Move { .. });
                let content = if is_move { guard.take(op, &key) } else { guard.copy(op, &key) };
                let (to, op) = (keyspace.key(to), &mut Op::new(to_db, 0, op.recorder));
                if let Some(content) = content {
                    keyspace.discard(guards.shard(&to).put(op, &to, content));
                }
            }
            _ => self.limits.apply_to_key(guards.shard(&key), op, &told.effect, &key),
        }
    }
}

/// Of a change that must have found its kind of value.
fn expect<R, E>(result: Result<R, E>) {
    debug_assert!(result.is_ok(), "effects are of the keyspace that they are replayed to");
}

impl ReplayLimits {
    fn apply_to_key(
        &self,
        guard: &mut ShardGuard<'_>,
        op: &mut Op<'_>,
        effect: &Effect<'_>,
        key: &crate::Key<'_>,
    ) {
        let keyspace: &Keyspace = guard.keyspace;
        let expiry = |expire_ms: Option<u64>| expire_ms.map_or(Expiry::None, Expiry::At);
        match *effect {
            Effect::Set { value, expire_ms } => {
                let value = match value {
                    // What a log has kept of numbers are texts.
                    Text::Bytes(bytes) => NewValue::string(bytes),
                    Text::Int(value) => NewValue::Int(value),
                };
                keyspace.discard(guard.set(op, key, value, expiry(expire_ms)).0);
            }
            Effect::New { kind, expire_ms } => {
                let value = NewValue::Object(Box::new(match kind {
                    Kind::List => Object::List(Default::default()),
                    Kind::Hash => Object::Hash(Default::default()),
                    Kind::Set => Object::Set(Default::default()),
                    Kind::SortedSet => Object::SortedSet(Default::default()),
                    Kind::Stream => Object::Stream(Default::default()),
                }));
                keyspace.discard(guard.set(op, key, value, expiry(expire_ms)).0);
            }
            Effect::Write { offset, bytes } => expect(guard.set_range(op, key, offset as usize, bytes)),
            Effect::Expire { expire_ms } => drop(guard.set_expire_ms(op, key, expire_ms)),
            Effect::Delete { .. } => {
                keyspace.discard(guard.remove(op, key).unwrap_or(Garbage::Nothing));
            }
            Effect::ListPush { .. }
            | Effect::ListPop { .. }
            | Effect::ListSet { .. }
            | Effect::ListInsert { .. }
            | Effect::ListRemove { .. } => expect(guard.change_list(op, key, true, self.list, |list| {
                list_effect(list, effect);
                Changed::yes(())
            })),
            Effect::HashSet { .. }
            | Effect::HashExpire { .. }
            | Effect::HashDelete { .. }
            | Effect::FieldExpired { .. } => {
                expect(guard.change_hash(op, key, true, self.hash, |hash| {
                    hash_effect(hash, effect);
                    Changed::yes(())
                }));
            }
            Effect::SetAdd { .. } | Effect::SetRemove { .. } => {
                expect(guard.change_set(op, key, true, self.set, |set| {
                    set_effect(set, effect);
                    Changed::yes(())
                }));
            }
            Effect::SortedSetAdd { .. } | Effect::SortedSetRemove { .. } => {
                expect(guard.change_sorted_set(op, key, true, self.sorted_set, |set| {
                    sorted_set_effect(set, effect);
                    Changed::yes(())
                }));
            }
            _ => expect(guard.change_stream(op, key, true, |stream| {
                self.stream_effect(stream, effect);
                Changed::yes(())
            })),
        }
    }

    fn stream_effect(&self, stream: &mut StreamMut<'_>, effect: &Effect<'_>) {
        match *effect {
            Effect::StreamAppend { id, fields } => expect(stream.append(id, fields.iter(), self.stream)),
            Effect::StreamDelete { id } => drop(stream.delete(id)),
            Effect::StreamTrim { len } => {
                stream.trim(Trim { to: TrimTo::Length(len), approximate: false, limit: 0 });
            }
            Effect::StreamCounters { last_id, entries_added, max_deleted_id } => {
                stream.set_counters(last_id, entries_added, max_deleted_id);
            }
            Effect::GroupCreate { group, last_id, entries_read } => {
                stream.create_group(group, Group::new(last_id, entries_read));
            }
            Effect::GroupDestroy { group } => drop(stream.remove_group(group)),
            _ => group_effect(stream, effect),
        }
    }
}

fn list_effect(list: &mut ListMut<'_>, effect: &Effect<'_>) {
    match *effect {
        Effect::ListPush { end, element } => list.push(end, element),
        Effect::ListPop { end, count } => {
            let (count, len) = (count as usize, list.len());
            match end {
                End::Front => list.trim(count.min(len), len),
                End::Back => list.trim(0, len.saturating_sub(count)),
            }
        }
        Effect::ListSet { index, element } => drop(list.set(index as usize, element)),
        Effect::ListInsert { index, element } => list.insert(index as usize, element),
        Effect::ListRemove { index } => list.remove_at(index as usize),
        _ => {}
    }
}

fn hash_effect(hash: &mut HashMut<'_>, effect: &Effect<'_>) {
    match *effect {
        Effect::HashSet { field, value, expire_ms } => {
            hash.set_with(field, value, expire_ms.map_or(FieldExpiry::None, FieldExpiry::At));
        }
        Effect::HashExpire { field, expire_ms } => drop(hash.set_expire_ms(field, expire_ms)),
        Effect::HashDelete { field } | Effect::FieldExpired { field } => drop(hash.remove(field, |_| ())),
        _ => {}
    }
}

fn set_effect(set: &mut SetMut<'_>, effect: &Effect<'_>) {
    match *effect {
        Effect::SetAdd { member } => drop(set.add(member)),
        Effect::SetRemove { member } => drop(set.remove(member)),
        _ => {}
    }
}

fn sorted_set_effect(set: &mut SortedSetMut<'_>, effect: &Effect<'_>) {
    match *effect {
        Effect::SortedSetAdd { member, score } => drop(set.add(member, score)),
        Effect::SortedSetRemove { member } => drop(set.remove(member)),
        _ => {}
    }
}

fn group_effect(stream: &mut StreamMut<'_>, effect: &Effect<'_>) {
    let (Effect::GroupPosition { group: name, .. }
    | Effect::Consumer { group: name, .. }
    | Effect::ConsumerDelete { group: name, .. }
    | Effect::Pending { group: name, .. }
    | Effect::PendingRemove { group: name, .. }) = *effect
    else {
        return;
    };
    let Some((_, mut group)) = stream.group_mut(name) else {
        return debug_assert!(false, "a group is told before what happens in it");
    };
    match *effect {
        Effect::GroupPosition { last_id, entries_read, .. } => group.set_position(last_id, entries_read),
        Effect::Consumer { consumer, seen_ms, active_ms, .. } => {
            let (id, _) = group.find_or_create_consumer(consumer, seen_ms);
            group.set_times(id, seen_ms, active_ms);
        }
        Effect::ConsumerDelete { consumer, .. } => drop(group.remove_consumer(consumer)),
        Effect::Pending { consumer, id, delivered_ms, deliveries, .. } => {
            let (consumer, _) = group.find_or_create_consumer(consumer, delivered_ms);
            group.set_pending(id, Pending { consumer, delivered_ms, deliveries });
        }
        Effect::PendingRemove { id, .. } => drop(group.acknowledge(id)),
        _ => {}
    }
}
