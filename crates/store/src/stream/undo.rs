//! Owns: what takes a change of a stream back. Does not own: the journal it stands in (`crate::undo`).
//!
//! Entries are taken back by block: of one that an entry is added to, its length and counts; of one that is cut into,
//! a copy (some KiB); of one that goes away, itself.

use super::Stream;
use super::block::{Block, BlockEnd};
use super::group::{Consumer, ConsumerId, Group, Pending};
use super::id::StreamId;
use super::log::{Log, LogCounters, block_bytes};

/// What takes one change of a stream back.
#[derive(Debug)]
pub(crate) enum StreamUndo {
    Log(LogUndo),
    CreateGroup(Box<[u8]>),
    RemoveGroup(Box<[u8]>, Box<Group>),
    Group(Box<[u8]>, GroupUndo),
}

/// The counters of a log, and the blocks that are to be as they were.
#[derive(Debug)]
pub(crate) struct LogUndo {
    pub(super) counters: LogCounters,
    pub(super) blocks: Vec<(StreamId, BlockUndo)>,
}

#[derive(Debug)]
pub(crate) enum BlockUndo {
    /// It was not there.
    Absent,
    /// It ended here.
    End(BlockEnd),
    /// It was this one.
    Was(Box<Block>),
}

#[derive(Debug)]
pub(crate) enum GroupUndo {
    Position(StreamId, Option<u64>),
    Pending(StreamId, Option<Pending>),
    Times(ConsumerId, (u64, Option<u64>)),
    CreateConsumer(Box<[u8]>),
    RemoveConsumer(ConsumerId, Box<Consumer>, Vec<(StreamId, Pending)>),
}

impl Stream {
    /// Takes a change back. Those behind it have been taken back.
    pub(crate) fn undo(&mut self, undo: StreamUndo) {
        match undo {
            StreamUndo::Log(undo) => self.log.undo(undo),
            StreamUndo::CreateGroup(name) => drop(self.take_group(&name)),
            StreamUndo::RemoveGroup(name, group) => self.put_group(name, group),
            StreamUndo::Group(name, undo) => {
                let Some(group) = self.groups.get_mut(&name) else { return };
                self.within_bytes -= group.memory_bytes();
                group.undo(undo);
                self.within_bytes += group.memory_bytes();
            }
        }
    }
}

impl Log {
    /// The blocks as a tree, to be changed as such.
    fn undo(&mut self, undo: LogUndo) {
        if let Some(tail) = self.tail.take() {
            self.full.insert(tail.first, tail);
        }
        for (first, block) in undo.blocks.into_iter().rev() {
            let gone = match block {
                BlockUndo::Absent => self.full.remove(&first),
                BlockUndo::End(end) => {
                    // Its memory stays what it is.
                    self.full.get_mut(&first).into_iter().for_each(|block| block.cut_back(end));
                    None
                }
                BlockUndo::Was(block) => {
                    self.block_bytes += block_bytes(&block);
                    self.full.insert(first, block)
                }
            };
            self.block_bytes -= gone.map_or(0, |block| block_bytes(&block));
        }
        self.tail = self.full.pop_last().map(|(_, block)| block);
        self.restore(undo.counters);
    }
}

impl Group {
    fn undo(&mut self, undo: GroupUndo) {
        match undo {
            GroupUndo::Position(last_id, entries_read) => self.set_position(last_id, entries_read),
            GroupUndo::Pending(id, Some(pending)) => self.own(id, pending),
            GroupUndo::Pending(id, None) => drop(self.acknowledge(id)),
            GroupUndo::Times(id, times) => {
                let consumer = self.consumer_mut(id);
                (consumer.seen_ms, consumer.active_ms) = times;
            }
            GroupUndo::CreateConsumer(name) => drop(self.remove_consumer(&name)),
            GroupUndo::RemoveConsumer(id, consumer, pending) => self.put_back(id, *consumer, pending),
        }
    }
}
