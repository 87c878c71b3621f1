//! Owns: every way to change a stream. Each tells what it does and what takes it back, if anybody wants to know
//! (`crate::recorder`). Does not own: the structures.

use super::Stream;
use super::block::{Entry, StreamLimit};
use super::group::{Claim, Claimed, ConsumerId, Group, Pending};
use super::id::StreamId;
use super::log::{AppendError, Log, NewId, Trim};
use super::undo::{GroupUndo, LogUndo, StreamUndo};
use crate::effect::{Effect, Pairs};
use crate::recorder::Pen;
use crate::undo::Undo;
use crate::value::Part;
use std::ops::{Bound, Deref};

/// A stream, to be changed.
#[derive(Debug)]
pub struct StreamMut<'a> {
    stream: &'a mut Stream,
    pen: Option<Pen<'a>>,
}

impl Deref for StreamMut<'_> {
    type Target = Stream;
    fn deref(&self) -> &Stream {
        self.stream
    }
}

impl<'a> StreamMut<'a> {
    /// To change a stream that is not in a shard: when a value is built before it is set.
    pub const fn new(stream: &'a mut Stream) -> Self {
        Self { stream, pen: None }
    }
    pub(crate) const fn with(stream: &'a mut Stream, pen: Option<Pen<'a>>) -> Self {
        Self { stream, pen }
    }

    /// The id that an entry added now would get.
    pub fn next_id(&self, want: NewId, now_ms: u64) -> Result<StreamId, AppendError> {
        self.stream.log.next_id(want, now_ms)
    }
    /// Adds an entry at the end: O(1) amortised, and O(log blocks) when a block is full. The id must be above the last
    /// one.
    pub fn append<'f>(
        &mut self,
        id: StreamId,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        limit: StreamLimit,
    ) -> Result<(), AppendError> {
        if self.pen.is_some() {
            let fields: Vec<_> = fields.collect();
            return self.append_told(id, &fields, limit);
        }
        self.stream.log.append(id, fields, limit)
    }
    #[cold]
    fn append_told(
        &mut self,
        id: StreamId,
        fields: &[(&[u8], &[u8])],
        limit: StreamLimit,
    ) -> Result<(), AppendError> {
        let log = &mut self.stream.log;
        let counters = log.counters();
        let bytes = fields.iter().map(|(name, value)| (name.len() + value.len()) as u64).sum();
        let block = log.before_append(id, bytes, limit);
        log.append(id, fields.iter().copied(), limit)?;
        if let Some(pen) = &mut self.pen {
            pen.tell(&Effect::StreamAppend { id, fields: Pairs::Slices(fields) });
            if pen.undoes() {
                pen.undo(Undo::Stream(StreamUndo::Log(LogUndo { counters, blocks: vec![block] })));
            }
        }
        Ok(())
    }
    /// Adds an entry read from a dump. Where the dump begins a block, `block` gives the id that it counts from and the
    /// names that its entries share. The ids must ascend. Only for a stream that is built.
    pub fn load<'f>(
        &mut self,
        id: StreamId,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        block: Option<(StreamId, impl Iterator<Item = &'f [u8]> + Clone)>,
    ) -> Result<(), AppendError> {
        debug_assert!(self.pen.is_none(), "a dump is loaded before its key is set");
        self.stream.log.load(id, fields, block)
    }
    /// Removes the entry with this id, if there is one: as XDEL does, leaving its mark in `max_deleted_id`.
    pub fn delete(&mut self, id: StreamId) -> bool {
        if self.pen.is_none() {
            return self.stream.log.delete(id, None);
        }
        let counters = self.stream.log.counters();
        let mut blocks = Vec::new();
        let deleted = self.stream.log.delete(id, self.keeps().then_some(&mut blocks));
        if deleted && let Some(pen) = &mut self.pen {
            pen.tell(&Effect::StreamDelete { id });
            Self::kept(pen, LogUndo { counters, blocks });
        }
        deleted
    }
    /// Trims from the front: whole blocks in O(log blocks) each, then inside one. Returns how many entries went.
    pub fn trim(&mut self, trim: Trim) -> u64 {
        if self.pen.is_none() {
            return self.stream.log.trim(trim, None);
        }
        let counters = self.stream.log.counters();
        let mut blocks = Vec::new();
        let removed = self.stream.log.trim(trim, self.keeps().then_some(&mut blocks));
        if removed > 0
            && let Some(pen) = &mut self.pen
        {
            pen.tell(&Effect::StreamTrim { len: self.stream.log.len() });
            Self::kept(pen, LogUndo { counters, blocks });
        }
        removed
    }
    /// XSETID, and what RDB knows of a stream: sets the counters. The caller has checked them.
    pub fn set_counters(&mut self, last_id: StreamId, entries_added: u64, max_deleted_id: StreamId) {
        let counters = self.stream.log.counters();
        self.stream.log.set_counters(last_id, entries_added, max_deleted_id);
        if let Some(pen) = &mut self.pen {
            pen.tell(&Effect::StreamCounters { last_id, entries_added, max_deleted_id });
            Self::kept(pen, LogUndo { counters, blocks: Vec::new() });
        }
    }
    fn keeps(&self) -> bool {
        self.pen.as_ref().is_some_and(Pen::undoes)
    }
    fn kept(pen: &mut Pen<'_>, undo: LogUndo) {
        if pen.undoes() {
            pen.undo(Undo::Stream(StreamUndo::Log(undo)));
        }
    }

    /// Adds a group. `false` if there is one of this name.
    pub fn create_group(&mut self, name: &[u8], group: Group) -> bool {
        if self.stream.groups.contains_key(name) {
            return false;
        }
        if let Some(pen) = &mut self.pen {
            tell_group(pen, name, &group);
            group.pending_from(StreamId::MIN).for_each(|(id, _)| tell_pending(pen, name, &group, id));
            if pen.undoes() {
                pen.undo(Undo::Stream(StreamUndo::CreateGroup(name.into())));
            }
        }
        self.stream.put_group(name.into(), Box::new(group));
        true
    }
    /// Removes a group. What it held may be large: drop it after the lock. Kept if it may have to come back.
    pub fn remove_group(&mut self, name: &[u8]) -> Option<Option<Box<Group>>> {
        let group = self.stream.take_group(name)?;
        if let Some(pen) = &mut self.pen {
            pen.tell(&Effect::GroupDestroy { group: name });
            if pen.undoes() {
                pen.undo(Undo::Stream(StreamUndo::RemoveGroup(name.into(), group)));
                return Some(None);
            }
        }
        Some(Some(group))
    }
    /// The group of this name, to change it, beside the entries.
    pub fn group_mut<'s>(&'s mut self, name: &'s [u8]) -> Option<(&'s Log, GroupMut<'s>)> {
        let Stream { log, groups, within_bytes } = &mut *self.stream;
        let group = &mut **groups.get_mut(name)?;
        let bytes_before = group.memory_bytes();
        let pen = self.pen.as_mut().map(Pen::lend);
        Some((log, GroupMut { group, name, pen, bytes_before, within_bytes }))
    }
}

/// A group open for change. Its memory is counted when this is dropped.
#[derive(Debug)]
pub struct GroupMut<'a> {
    group: &'a mut Group,
    name: &'a [u8],
    pen: Option<Pen<'a>>,
    bytes_before: usize,
    within_bytes: &'a mut usize,
}

impl Deref for GroupMut<'_> {
    type Target = Group;
    fn deref(&self) -> &Group {
        self.group
    }
}

impl Drop for GroupMut<'_> {
    fn drop(&mut self) {
        *self.within_bytes = *self.within_bytes + self.group.memory_bytes() - self.bytes_before;
    }
}

impl GroupMut<'_> {
    /// XGROUP SETID.
    pub fn set_position(&mut self, last_id: StreamId, entries_read: Option<u64>) {
        self.told((Vec::new(), None), |group| group.set_position(last_id, entries_read));
    }
    /// XCLAIM LASTID: moves on to an id, never back. Says whether it moved.
    pub fn advance(&mut self, last_id: StreamId) -> bool {
        self.told((Vec::new(), None), |group| group.advance(last_id))
    }
    /// A consumer has tried to do something.
    pub fn set_seen(&mut self, consumer: ConsumerId, seen_ms: u64) {
        self.told((Vec::new(), Some(consumer)), |group| group.consumer_mut(consumer).seen_ms = seen_ms);
    }
    /// The consumer of this name, and whether it had to be made.
    pub fn find_or_create_consumer(&mut self, name: &[u8], now_ms: u64) -> (ConsumerId, bool) {
        let (id, is_new) = self.group.find_or_create_consumer(name, now_ms);
        if is_new && let Some(pen) = &mut self.pen {
            tell_consumer(pen, self.name, self.group, id);
            if pen.undoes() {
                let undo = GroupUndo::CreateConsumer(name.into());
                pen.undo(Undo::Stream(StreamUndo::Group(self.name.into(), undo)));
            }
        }
        (id, is_new)
    }
    /// A consumer's times, as they were told.
    pub(crate) fn set_times(&mut self, consumer: ConsumerId, seen_ms: u64, active_ms: Option<u64>) {
        let consumer = self.group.consumer_mut(consumer);
        (consumer.seen_ms, consumer.active_ms) = (seen_ms, active_ms);
    }
    /// Makes an entry pending, as it was told.
    pub(crate) fn set_pending(&mut self, id: StreamId, pending: Pending) {
        self.group.own(id, pending);
    }
    /// Removes a consumer with what it has pending: O(log n) for each. Returns how many those were.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let Some(pen) = &mut self.pen else { return self.group.remove_consumer(name) };
        let id = self.group.find_consumer(name)?;
        pen.tell(&Effect::ConsumerDelete { group: self.name, consumer: name });
        if pen.undoes() {
            let consumer = self.group.consumer(id);
            let pending = consumer.pending_from(StreamId::MIN);
            let pending = pending.filter_map(|id| Some((id, *self.group.pending(id)?))).collect();
            let undo = GroupUndo::RemoveConsumer(id, Box::new(consumer.clone()), pending);
            pen.undo(Undo::Stream(StreamUndo::Group(self.name.into(), undo)));
        }
        self.group.remove_consumer(name)
    }
    /// XACK of one id: says whether it was pending.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        self.told((vec![id], None), |group| group.acknowledge(id))
    }
    /// See [`Group::deliver`].
    pub fn deliver<'l>(
        &mut self,
        log: &'l Log,
        consumer: Option<ConsumerId>,
        count: u64,
        now_ms: u64,
        visit: impl FnMut(Entry<'l>),
    ) -> u64 {
        let ids = match self.group.last_id().next() {
            Some(start) if self.pen.is_some() => {
                let count = if count == 0 { usize::MAX } else { count as usize };
                log.range(start, StreamId::MAX).take(count).map(|entry| entry.id).collect()
            }
            _ => Vec::new(),
        };
        self.told((ids, consumer), |group| group.deliver(log, consumer, count, now_ms, visit))
    }
    /// See [`Group::redeliver`].
    pub fn redeliver<'l>(
        &mut self,
        log: &'l Log,
        consumer: ConsumerId,
        (start, count): (StreamId, u64),
        now_ms: u64,
        visit: impl FnMut(StreamId, Option<Entry<'l>>),
    ) -> u64 {
        let ids = if self.pen.is_some() {
            let count = if count == 0 { usize::MAX } else { count as usize };
            self.group.consumer(consumer).pending_from(start).take(count).collect()
        } else {
            Vec::new()
        };
        self.told((ids, Some(consumer)), |group| group.redeliver(log, consumer, start, count, now_ms, visit))
    }
    /// See [`Group::claim`].
    pub fn claim<'l>(
        &mut self,
        log: &'l Log,
        consumer: ConsumerId,
        id: StreamId,
        claim: &Claim,
    ) -> Claimed<'l> {
        self.told((vec![id], Some(consumer)), |group| group.claim(log, consumer, id, claim))
    }
    /// See [`Group::claim_from`].
    pub fn claim_from<'l>(
        &mut self,
        log: &'l Log,
        consumer: ConsumerId,
        (start, count): (StreamId, u64),
        claim: &Claim,
        visit: impl FnMut(StreamId, Option<Entry<'l>>),
    ) -> StreamId {
        let ids = if self.pen.is_some() {
            let looks = Group::claim_looks(count);
            self.group.pending_from(start).take(looks).map(|(id, _)| id).collect()
        } else {
            Vec::new()
        };
        self.told((ids, Some(consumer)), |group| group.claim_from(log, consumer, start, count, claim, visit))
    }

    /// Changes at most the group's position, these pending entries and this consumer's times, and tells of those that
    /// are other than before.
    fn told<R>(
        &mut self,
        (ids, consumer): (Vec<StreamId>, Option<ConsumerId>),
        change: impl FnOnce(&mut Group) -> R,
    ) -> R {
        let Some(pen) = &mut self.pen else { return change(self.group) };
        let position = |group: &Group| (group.last_id(), group.entries_read());
        let times = |group: &Group| consumer.map(|id| (id, group.times(id)));
        let (position_before, times_before) = (position(self.group), times(self.group));
        let before: Vec<_> = ids.into_iter().map(|id| (id, self.group.pending(id).copied())).collect();
        let result = change(self.group);
        let group: &Group = self.group;
        let undo = |pen: &mut Pen<'_>, undo| {
            if pen.undoes() {
                pen.undo(Undo::Stream(StreamUndo::Group(self.name.into(), undo)));
            }
        };
        for (id, was) in before {
            let is = group.pending(id).copied();
            if is != was {
                tell_pending(pen, self.name, group, id);
                undo(pen, GroupUndo::Pending(id, was));
            }
        }
        if position(group) != position_before {
            let (last_id, entries_read) = position(group);
            pen.tell(&Effect::GroupPosition { group: self.name, last_id, entries_read });
            undo(pen, GroupUndo::Position(position_before.0, position_before.1));
        }
        if let Some((id, was)) = times_before
            && group.times(id) != was
        {
            tell_consumer(pen, self.name, group, id);
            undo(pen, GroupUndo::Times(id, was));
        }
        result
    }
}

fn tell_pending(pen: &mut Pen<'_>, name: &[u8], group: &Group, id: StreamId) {
    match group.pending(id) {
        Some(&Pending { consumer, delivered_ms, deliveries }) => pen.tell(&Effect::Pending {
            group: name,
            consumer: group.consumer(consumer).name(),
            id,
            delivered_ms,
            deliveries,
        }),
        None => pen.tell(&Effect::PendingRemove { group: name, id }),
    }
}

fn tell_consumer(pen: &mut Pen<'_>, name: &[u8], group: &Group, id: ConsumerId) {
    let consumer = group.consumer(id);
    let (seen_ms, active_ms) = (consumer.seen_ms, consumer.active_ms);
    pen.tell(&Effect::Consumer { group: name, consumer: consumer.name(), seen_ms, active_ms });
}

/// A group without what is pending.
/// A group, without what is pending in it.
fn tell_group(pen: &mut Pen<'_>, name: &[u8], group: &Group) {
    let (last_id, entries_read) = (group.last_id(), group.entries_read());
    pen.tell(&Effect::GroupCreate { group: name, last_id, entries_read });
    for consumer in group.consumers() {
        let id = group.find_consumer(consumer.name());
        id.into_iter().for_each(|id| tell_consumer(pen, name, group, id));
    }
}

impl Stream {
    /// See [`crate::value::ObjectRef::tell_piece`].
    pub(crate) fn tell_piece(&self, pen: &mut Pen<'_>, from: &Part, bytes_max: usize) -> Option<Part> {
        let mut part = from.clone();
        if let Part::Start | Part::Entry(_) | Part::At(_) = part {
            let from = if let Part::Entry(id) = part { id } else { StreamId::MIN };
            for entry in self.log.range(from, StreamId::MAX) {
                if pen.told_bytes() >= bytes_max {
                    return Some(Part::Entry(entry.id));
                }
                let fields: Vec<_> = entry.fields.iter().collect();
                pen.tell(&Effect::StreamAppend { id: entry.id, fields: Pairs::Slices(&fields) });
            }
            let log = &self.log;
            pen.tell(&Effect::StreamCounters {
                last_id: log.last_id(),
                entries_added: log.entries_added(),
                max_deleted_id: log.max_deleted_id(),
            });
            part = self.next_group(pen, Bound::Unbounded)?;
        }
        while let Part::Pending(name, from) = &part {
            if let Some(group) = self.groups.get(name) {
                for (id, _) in group.pending_from(*from) {
                    if pen.told_bytes() >= bytes_max {
                        return Some(Part::Pending(name.clone(), id));
                    }
                    tell_pending(pen, name, group, id);
                }
            }
            part = self.next_group(pen, Bound::Excluded(name))?;
        }
        None
    }
    /// Tells of the first group behind a name, up to what is pending in it.
    fn next_group(&self, pen: &mut Pen<'_>, behind: Bound<&[u8]>) -> Option<Part> {
        let (name, group) = self.groups.range::<[u8], _>((behind, Bound::Unbounded)).next()?;
        tell_group(pen, name, group);
        Some(Part::Pending(name.clone(), StreamId::MIN))
    }
}
