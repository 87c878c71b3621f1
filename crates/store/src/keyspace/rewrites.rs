//! Owns: writing strings over what a batch has seen of their keys, with what is asked each time asked once. Does not
//! own: seeing (`crate::entry::sight`), every other way of setting a key (`crate::shard`).

use super::{Batch, Counters, Keyspace};
use crate::access::AccessMode;
use crate::counters::Counter;
use crate::effect::wants;
use crate::entry::heap::Key;
use crate::entry::sight::{Rewrote, Sights};
use crate::epoch::Closed;
use crate::groups::Row;
use crate::recorder::Recorder;
use crate::table::array::Array;

impl Batch<'_> {
    /// [`Batch::rewrite`] for many keys of a database, with what it asks each time asked once.
    #[inline]
    pub fn rewrites<'b>(
        &'b mut self,
        (db, now_ms): (u8, u64),
        recorder: &'b Recorder,
    ) -> Option<Rewrites<'b>> {
        let mode = self.keyspace.access_mode();
        (mode == AccessMode::Lru && recorder.wanted() == 0).then(|| Rewrites {
            sights: self.sights,
            keyspace: self.keyspace,
            alone: self.alone.as_ref(),
            counters: self.counters,
            recorder,
            tells: true,
            row: None,
            epoch: None,
            db,
            times: (mode.fresh(now_ms), now_ms),
            writes: 0,
        })
    }
}

/// Strings of one database that are written over, one by one.
pub struct Rewrites<'b> {
    sights: &'b Sights,
    keyspace: &'b Keyspace,
    alone: Option<&'b Closed<'b, Array>>,
    counters: &'b Counters,
    recorder: &'b Recorder,
    /// Each is a group by itself, of which a log may be told here; otherwise only what nobody is told of is written.
    tells: bool,
    /// Where a log is told of them, once the first one was to be.
    row: Option<Row<'b>>,
    /// The epoch of all of them, where nobody else is in the keyspace.
    epoch: Option<u64>,
    db: u8,
    /// The access clock of what is written, and the time.
    times: (u32, u64),
    /// Not counted yet.
    writes: i64,
}

impl Rewrites<'_> {
    /// Writes a string that is no number over the one that stage two has seen as number `at`: see [`Batch::rewrite`].
    #[inline(always)]
    pub fn text(&mut self, at: usize, key: &Key<'_>, text: &[u8]) -> bool {
        if !self.sights.has(at) {
            return false;
        }
        let shard = self.keyspace.shard_of(key);
        let Some(mut hold) = self.keyspace.shard(shard).hold_in_time(self.keyspace, self.alone) else {
            return false;
        };
        // Asked under the lock: who wants to know and has locked the key before is told.
        let wanted = self.keyspace.wanted_of(key);
        if hold.is_awaited() || wanted != 0 && !self.tells(wanted) {
            return false;
        }
        match self.sights.rewrite((at, key), (shard, &mut hold), self.times, text) {
            Rewrote::Nothing => return false,
            Rewrote::Text => {}
            Rewrote::TextAndExpiry => {
                hold.heap.lost_expiry(self.db as usize);
                self.counters.add_expiring(self.db as usize, -1);
            }
        }
        hold.rewrote(self.db, key.hash);
        if wanted != 0
            && let Some(row) = &mut self.row
        {
            let count = hold.next_group();
            let epoch = match self.epoch {
                Some(epoch) => epoch,
                None => {
                    let epoch = self.keyspace.hub().begin_group(self.keyspace.directory.domain.epoch());
                    self.recorder.told_in(epoch);
                    // Nobody else writes meanwhile who could have told of a later one in this shard before.
                    self.epoch = self.alone.map(|_| epoch);
                    epoch
                }
            };
            row.set(epoch, (shard, count), self.db, (key.bytes(), text));
        }
        self.writes += 1;
        true
    }
}

impl Rewrites<'_> {
    /// The same of what may be one of several keys of one group: where a log is to be told, nothing is written.
    #[inline]
    pub(super) fn untold_text(&mut self, at: usize, key: &Key<'_>, text: &[u8]) -> bool {
        self.tells = false;
        self.text(at, key, text)
    }
    /// Whether all that is wanted is told here: what a log wants, and there is room for it.
    #[inline]
    fn tells(&mut self, wanted: u32) -> bool {
        if self.tells && self.row.is_none() && wanted == wants::GROUPS | wants::VALUES {
            self.row = self.recorder.row();
        }
        self.row.is_some() && wanted == wants::GROUPS | wants::VALUES
    }
}

impl Drop for Rewrites<'_> {
    #[inline]
    fn drop(&mut self) {
        self.counters.add(Counter::Writes, self.writes);
    }
}
