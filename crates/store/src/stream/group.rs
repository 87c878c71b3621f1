//! Owns: a consumer group: how far it has read, its consumers, what they have not acknowledged, in the group's order
//! and in each consumer's. Does not own: the entries, which may be gone while they are pending; how groups are found.
//!
//! A pending entry stands in the group's tree, with its state, and as an id in its consumer's tree: every operation on
//! one costs O(log n). Consumers are numbered, so that a pending entry names its owner in 4 bytes.

use super::block::Entry;
use super::id::StreamId;
use super::log::Log;
use super::tree_bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// XAUTOCLAIM looks at so many pending entries for each that it may return.
const AUTOCLAIM_LOOKS_PER_ENTRY: u64 = 10;
/// Memory of a consumer, or of the place of one who is gone; there is room for some more.
const CONSUMER_BYTES: usize = size_of::<Option<Consumer>>() * 9 / 8;
/// Of a name beside its bytes: who counts on it.
const NAME_BYTES: usize = 2 * size_of::<usize>();

/// The number of a consumer in its group, until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerId(u32);

/// A delivery that has not been acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Who has it.
    pub consumer: ConsumerId,
    /// When it was last delivered.
    pub delivered_ms: u64,
    /// How often.
    pub deliveries: u64,
}

impl Pending {
    /// Time since the delivery; a clock that went back counts as none.
    #[must_use]
    pub const fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.delivered_ms)
    }
}

/// One reader of a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Arc<[u8]>,
    /// When it last tried to do something.
    pub seen_ms: u64,
    /// When it last got something.
    pub active_ms: Option<u64>,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }
    /// How many entries it has not acknowledged.
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }
    /// The ids of those from `start` on.
    pub fn pending_from(&self, start: StreamId) -> impl Iterator<Item = StreamId> + '_ {
        self.pending.range(start..).copied()
    }
}

/// What XCLAIM asks for.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The present.
    pub now_ms: u64,
    /// Entries that were delivered later than so long ago stay where they are; 0 takes all.
    pub min_idle_ms: u64,
    /// The delivery time that they get.
    pub delivered_ms: u64,
    /// RETRYCOUNT: the number of deliveries that they get.
    pub deliveries: Option<u64>,
    /// JUSTID: not counted as a delivery.
    pub just_id: bool,
    /// FORCE: also entries that are not pending.
    pub force: bool,
}

/// What became of one id of XCLAIM.
#[derive(Debug)]
pub enum Claimed<'a> {
    /// It is the consumer's now.
    Taken(Entry<'a>),
    /// It was pending, but the entry is gone: it is pending no longer.
    Gone,
    /// Nothing happened.
    Left,
}

/// A consumer group.
#[derive(Clone, Debug)]
pub struct Group {
    last_id: StreamId,
    entries_read: Option<u64>,
    pending: BTreeMap<StreamId, Pending>,
    names: BTreeMap<Arc<[u8]>, ConsumerId>,
    consumers: Vec<Option<Consumer>>,
    names_bytes: usize,
}

impl Group {
    /// A group that goes on after `last_id`. `entries_read` is how many entries that is, if known.
    #[must_use]
    pub fn new(last_id: StreamId, entries_read: Option<u64>) -> Self {
        Self {
            last_id,
            entries_read,
            pending: BTreeMap::new(),
            names: BTreeMap::new(),
            consumers: Vec::new(),
            names_bytes: 0,
        }
    }
    /// The last id delivered.
    #[must_use]
    pub const fn last_id(&self) -> StreamId {
        self.last_id
    }
    /// How many entries that is, if known.
    #[must_use]
    pub const fn entries_read(&self) -> Option<u64> {
        self.entries_read
    }
    /// XGROUP SETID.
    pub const fn set_position(&mut self, last_id: StreamId, entries_read: Option<u64>) {
        self.last_id = last_id;
        self.entries_read = entries_read;
    }
    /// XCLAIM LASTID: moves on to an id, never back. Says whether it moved.
    pub fn advance(&mut self, last_id: StreamId) -> bool {
        let moves = last_id > self.last_id;
        if moves {
            self.last_id = last_id;
        }
        moves
    }
    /// Entries not yet delivered, if that can be known.
    #[must_use]
    pub fn lag(&self, log: &Log) -> Option<i64> {
        let added = log.entries_added();
        let read = match self.entries_read {
            _ if added == 0 => 0,
            Some(read) if !log.has_gap_from(self.last_id) => read,
            _ => log.position_of(self.last_id)?,
        };
        Some(added.wrapping_sub(read) as i64)
    }
    pub(super) fn memory_bytes(&self) -> usize {
        let (pending, consumers) = (self.pending.len(), self.names.len());
        // As if all who have something had as much.
        let busy = pending.min(consumers);
        let theirs = if busy > 0 { tree_bytes(pending.div_ceil(busy), size_of::<StreamId>()) } else { 0 };
        tree_bytes(pending, size_of::<(StreamId, Pending)>())
            + busy * theirs
            + tree_bytes(consumers, size_of::<(Arc<[u8]>, ConsumerId)>())
            + self.consumers.len() * CONSUMER_BYTES
            + consumers * NAME_BYTES
            + self.names_bytes
    }

    /// All pending entries, with their owners.
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }
    /// The first and the last id pending.
    #[must_use]
    pub fn pending_bounds(&self) -> Option<(StreamId, StreamId)> {
        let (first, _) = self.pending.first_key_value()?;
        let (last, _) = self.pending.last_key_value()?;
        Some((*first, *last))
    }
    /// The pending entries from `start` on.
    pub fn pending_from(&self, start: StreamId) -> impl Iterator<Item = (StreamId, &Pending)> + '_ {
        self.pending.range(start..).map(|(&id, pending)| (id, pending))
    }
    /// One pending entry.
    #[must_use]
    pub fn pending(&self, id: StreamId) -> Option<&Pending> {
        self.pending.get(&id)
    }
    /// Puts a pending entry in, as a dump has it. The consumer must be one of this group. `false` if it is there
    /// already.
    pub fn load_pending(&mut self, id: StreamId, pending: Pending) -> bool {
        if self.pending.contains_key(&id) {
            return false;
        }
        self.own(id, pending);
        true
    }

    /// Consumers in the order of their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> + '_ {
        self.names.values().map(|&id| self.consumer(id))
    }
    /// The consumer of this name.
    #[must_use]
    pub fn find_consumer(&self, name: &[u8]) -> Option<ConsumerId> {
        self.names.get(name).copied()
    }
    /// The consumer of this name, and whether it had to be made.
    pub fn find_or_create_consumer(&mut self, name: &[u8], now_ms: u64) -> (ConsumerId, bool) {
        if let Some(id) = self.find_consumer(name) {
            return (id, false);
        }
        let name: Arc<[u8]> = name.into();
        self.names_bytes += name.len();
        let consumer =
            Some(Consumer { name: name.clone(), seen_ms: now_ms, active_ms: None, pending: BTreeSet::new() });
        // A free number can exist only when there are more numbers than names.
        let free = (self.names.len() < self.consumers.len())
            .then(|| self.consumers.iter().position(Option::is_none))
            .flatten();
        let at = match free {
            Some(at) => {
                self.consumers[at] = consumer;
                at
            }
            None => {
                // Most groups have few, of whom a `Vec` by itself makes room for four at once.
                if self.consumers.len() == self.consumers.capacity() {
                    self.consumers.reserve_exact(1 + self.consumers.len() / 4);
                }
                self.consumers.push(consumer);
                self.consumers.len() - 1
            }
        };
        let id = ConsumerId(u32::try_from(at).expect("4 billion consumers do not fit in memory"));
        self.names.insert(name, id);
        (id, true)
    }
    /// A consumer. The number is of this group, and the consumer has not been removed.
    #[must_use]
    pub fn consumer(&self, id: ConsumerId) -> &Consumer {
        self.consumers[id.0 as usize].as_ref().expect("a consumer's number is used as long as it is there")
    }
    /// A consumer, to set its times.
    pub fn consumer_mut(&mut self, id: ConsumerId) -> &mut Consumer {
        self.consumers[id.0 as usize].as_mut().expect("a consumer's number is used as long as it is there")
    }
    /// Removes a consumer with what it has pending: O(log n) for each. Returns how many those were.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let id = self.names.remove(name)?;
        let consumer = self.consumers[id.0 as usize].take()?;
        self.names_bytes -= consumer.name.len();
        for entry in &consumer.pending {
            self.pending.remove(entry);
        }
        Some(consumer.pending.len())
    }

    /// Puts a consumer back that was removed, under its number, with what it had pending.
    pub(super) fn put_back(&mut self, id: ConsumerId, consumer: Consumer, pending: Vec<(StreamId, Pending)>) {
        let at = id.0 as usize;
        if self.consumers.len() <= at {
            self.consumers.resize_with(at + 1, || None);
        }
        self.names_bytes += consumer.name.len();
        self.names.insert(Arc::clone(&consumer.name), id);
        // Whose these are stands in the consumer already.
        self.pending.extend(pending);
        self.consumers[at] = Some(consumer);
    }

    /// Makes an entry pending for a consumer, whoever had it.
    pub(super) fn own(&mut self, id: StreamId, pending: Pending) {
        let before = self.pending.insert(id, pending);
        if before.is_none_or(|before| before.consumer != pending.consumer) {
            if let Some(before) = before {
                self.consumer_mut(before.consumer).pending.remove(&id);
            }
            self.consumer_mut(pending.consumer).pending.insert(id);
        }
    }
    /// XACK of one id: says whether it was pending.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        self.consumer_mut(pending.consumer).pending.remove(&id);
        true
    }

    /// XREADGROUP `>`: up to `count` entries after the last one delivered, or all for 0. With `consumer` they become
    /// pending for it; without (NOACK) only the position moves. `visit` sees each entry when its state is set, and the
    /// group's position.
    pub fn deliver<'l>(
        &mut self,
        log: &'l Log,
        consumer: Option<ConsumerId>,
        count: u64,
        now_ms: u64,
        mut visit: impl FnMut(Entry<'l>),
    ) -> u64 {
        let Some(start) = self.last_id.next() else { return 0 };
        let mut delivered = 0;
        for entry in log.range(start, StreamId::MAX) {
            self.pass(log, entry.id);
            if let Some(consumer) = consumer {
                self.own(entry.id, Pending { consumer, delivered_ms: now_ms, deliveries: 1 });
                self.consumer_mut(consumer).active_ms = Some(now_ms);
            }
            visit(entry);
            delivered += 1;
            if delivered == count {
                break;
            }
        }
        delivered
    }
    /// Moves the position to an entry that is being delivered.
    fn pass(&mut self, log: &Log, id: StreamId) {
        self.entries_read = match self.entries_read {
            Some(read) if self.last_id >= log.first_id() && !log.has_gap_from(self.last_id) => {
                Some(read.wrapping_add(1))
            }
            _ if log.entries_added() > 0 => log.position_of(id),
            unchanged => unchanged,
        };
        self.last_id = id;
    }

    /// XREADGROUP with an id: what the consumer has pending from `start` on, up to `count` (0: all), delivered once
    /// more. `visit` gets nothing for entries that are gone.
    pub fn redeliver<'l>(
        &mut self,
        log: &'l Log,
        consumer: ConsumerId,
        start: StreamId,
        count: u64,
        now_ms: u64,
        mut visit: impl FnMut(StreamId, Option<Entry<'l>>),
    ) -> u64 {
        let mut delivered = 0;
        let Some(consumer) = &self.consumers[consumer.0 as usize] else { return 0 };
        for &id in consumer.pending.range(start..) {
            if count > 0 && delivered == count {
                break;
            }
            let entry = log.get(id);
            if let (Some(_), Some(pending)) = (entry, self.pending.get_mut(&id)) {
                pending.delivered_ms = now_ms;
                pending.deliveries = pending.deliveries.wrapping_add(1);
            }
            visit(id, entry);
            delivered += 1;
        }
        delivered
    }

    /// XCLAIM of one id.
    pub fn claim<'l>(
        &mut self,
        log: &'l Log,
        consumer: ConsumerId,
        id: StreamId,
        claim: &Claim,
    ) -> Claimed<'l> {
        let before = self.pending.get(&id).copied();
        let Some(entry) = log.get(id) else {
            return if self.acknowledge(id) { Claimed::Gone } else { Claimed::Left };
        };
        let deliveries = match before {
            Some(before) if claim.min_idle_ms > 0 && before.idle_ms(claim.now_ms) < claim.min_idle_ms => {
                return Claimed::Left;
            }
            Some(before) => before.deliveries,
            // A forced delivery counts as one from the start.
            None if claim.force => 1,
            None => return Claimed::Left,
        };
        let deliveries = claim.deliveries.unwrap_or(deliveries.wrapping_add(u64::from(!claim.just_id)));
        self.own(id, Pending { consumer, delivered_ms: claim.delivered_ms, deliveries });
        self.consumer_mut(consumer).active_ms = Some(claim.now_ms);
        Claimed::Taken(entry)
    }

    /// Pending entries that XAUTOCLAIM looks at, at most.
    pub(super) const fn claim_looks(count: u64) -> usize {
        count.saturating_mul(AUTOCLAIM_LOOKS_PER_ENTRY) as usize
    }
    /// When a consumer last tried to do something, and when it last got something.
    pub(super) fn times(&self, id: ConsumerId) -> (u64, Option<u64>) {
        let consumer = self.consumer(id);
        (consumer.seen_ms, consumer.active_ms)
    }
    /// XAUTOCLAIM: claims up to `count` entries from `start` on, entries that are gone included, which `visit` gets as
    /// nothing. Returns where to go on, or `0-0` at the end.
    pub fn claim_from<'l>(
        &mut self,
        log: &'l Log,
        consumer: ConsumerId,
        start: StreamId,
        count: u64,
        claim: &Claim,
        mut visit: impl FnMut(StreamId, Option<Entry<'l>>),
    ) -> StreamId {
        let (mut looks, mut left) = (Self::claim_looks(count), count);
        let mut from = Some(start);
        let next = |group: &Self, from: Option<StreamId>| {
            from.and_then(|from| group.pending.range(from..).next()).map(|(&id, _)| id)
        };
        while looks > 0 && left > 0 {
            looks -= 1;
            let Some(id) = next(self, from) else { return StreamId::MIN };
            from = id.next();
            match self.claim(log, consumer, id, claim) {
                Claimed::Taken(entry) => visit(id, Some(entry)),
                Claimed::Gone => visit(id, None),
                Claimed::Left => continue,
            }
            left -= 1;
        }
        next(self, from).unwrap_or(StreamId::MIN)
    }

    /// Frees up to `budget` pending entries, and says whether any are left. The group is of no use afterwards.
    pub(super) fn free_some(&mut self, budget: &mut usize) -> bool {
        while *budget > 0 && self.pending.pop_first().is_some() {
            *budget -= 1;
        }
        while *budget > 0 {
            let Some(Some(consumer)) = self.consumers.last_mut() else {
                if self.consumers.pop().is_none() {
                    break;
                }
                continue;
            };
            if consumer.pending.pop_first().is_none() {
                self.consumers.pop();
            }
            *budget -= 1;
        }
        !self.pending.is_empty() || !self.consumers.is_empty()
    }
}
