//! Owns: what the engine does about what is kept on disk: refusing writes and holding them back, holding replies until
//! what they tell is safe. Does not own: its figures and orders (`crate::durable`), the last safe epoch
//! (`crate::safe`), files, threads (the server's).

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};

use crate::config::settings::SYNCS;
use crate::durable::{Order, Refuser};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode};
use crate::mailbox::Message;
use crate::reply::{Output, OutputPlace};
use crate::special;

/// What is answered then; Valkey's words.
const SNAPSHOT_FAILED: &str = "Valkey is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may \
     modify the data set are disabled, because this instance is configured to report errors during writes if RDB \
     snapshotting fails (stop-writes-on-bgsave-error option). Please check the Valkey logs for details about the RDB \
     error.";

/// What is answered when the server has ended a script that has written.
const STOPS: &str = "the server stops in the middle of what a script has written";

/// How long what was told may not be on the disk before writes are held back.
const UNSYNCED_MAX: Duration = Duration::from_secs(2);
/// How long a write waits until it is looked at again whether it is still to be held back.
const BEHIND_MS: u64 = 5;

impl Engine {
    /// From now on writes are refused, with these words; or not any more, for this reason.
    pub fn refuse_writes(&self, by: Refuser, why: Option<&str>) {
        let mut refusals = self.durable.refusals.lock();
        refusals[by as usize] = why.map(Box::from);
        self.special.set(special::REFUSING, refusals.iter().any(Option::is_some));
    }
    /// The server stops without keeping what a script has written: what would follow from it is not done.
    pub(crate) fn stop_in_the_middle(&self) {
        self.refuse_writes(Refuser::Stop, Some(STOPS));
    }
    /// Whether half of what a script writes is all that there will be of it.
    pub(crate) fn stops_in_the_middle(&self) -> bool {
        self.special.has(special::REFUSING) && self.durable.refusals.lock()[Refuser::Stop as usize].is_some()
    }
    /// `stop-writes-on-bgsave-error`: writes are refused where snapshots are wanted and the last one failed.
    pub fn look_at_snapshots(&self) {
        let wanted = self.settings.stop_writes.load(Relaxed) && self.settings.has_save_points.load(Relaxed);
        let refuses = wanted && self.durable.saves.has_failed.load(Relaxed);
        self.refuse_writes(Refuser::Snapshot, refuses.then_some(SNAPSHOT_FAILED));
    }
    /// Whether writes are to be held back for a moment, since what was told is not on the disk for too long.
    pub fn hold_writes_back(&self, hold: bool) {
        if self.special.has(special::BEHIND) != hold {
            self.special.set(special::BEHIND, hold);
        }
    }
    /// Looks whether what was told is not on the disk for too long, or is too much: whoever keeps it may wait for the
    /// disk just now.
    pub fn look_at_log(&self, now: Instant) {
        let since = *self.durable.unsynced_since.lock();
        let is_late = since.is_some_and(|since| now.saturating_duration_since(since) > UNSYNCED_MAX);
        if is_late && !self.special.has(special::BEHIND) {
            self.durable.log.syncs_late.fetch_add(1, Relaxed);
        }
        self.hold_writes_back(is_late || self.keyspace.is_behind());
    }
    /// What is kept is being loaded, or is there.
    pub fn set_loading(&self, is_loading: bool) {
        if is_loading {
            self.durable.loading.started_ms.store(self.clock.now_ms(), Relaxed);
        }
        self.special.set(special::LOADING, is_loading);
    }

    /// CONFIG SET appendonly. At the start nobody takes orders yet: the server looks for itself.
    pub(crate) fn follow_appendonly(&self, wanted: bool) {
        if self.durable.check().is_ok() && self.durable.log.is_on.swap(wanted, Relaxed) != wanted {
            // It is never refused: there is one for each change.
            let _ = self.durable.order(Order::Log(wanted));
        }
    }

    /// `appendfsync`: with `always` replies wait from now on, though whoever keeps the log is busy with the disk. When
    /// they wait no more he says.
    pub(crate) fn follow_appendfsync(&self, place: u8) {
        let _changes = self.safe.changes.lock();
        self.settings.appendfsync.store(place, Relaxed);
        let unsynced = self.durable.unsynced_epoch.load(Relaxed);
        if self.waits_for_disk() && unsynced != 0 && !self.special.has(special::WITHHELD) {
            self.set_safe(unsynced - 1);
            self.set_withheld(true);
        }
    }
    /// Whether `appendfsync` is `always`.
    fn waits_for_disk(&self) -> bool {
        SYNCS.get(usize::from(self.settings.appendfsync.load(Relaxed))) == Some(&"always")
    }
    /// What is told is kept by a log that counts: all before this epoch is on the disk. Says what is safe, if replies
    /// wait for that, and whether they do from now on, as `appendfsync` says.
    pub fn set_unsynced(&self, epoch: u64) {
        let synced = epoch - 1;
        self.durable.unsynced_epoch.store(epoch, Relaxed);
        if self.special.has(special::WITHHELD) != self.waits_for_disk() {
            let _changes = self.safe.changes.lock();
            match (self.special.has(special::WITHHELD), self.waits_for_disk()) {
                (false, true) => {
                    self.set_safe(synced);
                    self.set_withheld(true);
                }
                (true, false) => self.set_withheld(false),
                // It has changed meanwhile.
                _ => {}
            }
        }
        if self.special.has(special::WITHHELD)
            && self.keyspace.told_epoch() > self.safe.epoch()
            && synced > self.safe.epoch()
        {
            self.set_safe(synced);
        }
    }
    /// No log keeps what is told any more: replies do not wait, and where it was lost those that waited are errors.
    pub fn end_synced(&self, is_lost: bool) {
        let _changes = self.safe.changes.lock();
        self.durable.unsynced_epoch.store(0, Relaxed);
        *self.durable.unsynced_since.lock() = None;
        if is_lost {
            self.lose_withheld();
        } else {
            self.set_withheld(false);
        }
    }

    /// When the last snapshot was made, or the server started.
    pub(crate) fn last_save_ms(&self) -> u64 {
        match self.durable.saves.last_ms.load(Relaxed) {
            0 => self.stats.started_ms,
            at_ms => at_ms,
        }
    }

    /// Why a write cannot run now.
    pub(crate) fn refusal(&self) -> Option<Error> {
        let refusals = self.durable.refusals.lock();
        let why = refusals.iter().flatten().next()?;
        Some(Error::new(ErrorCode::Misconfigured, why.to_string()))
    }
    /// What a client is told while what was kept is loaded.
    pub(crate) fn loading_error(&self) -> Error {
        let text =
            format!("Weft is loading the dataset in memory: {:.0}% done", self.durable.loading.percent());
        Error::new(ErrorCode::Loading, text)
    }
    /// Why nothing is served yet: what was kept is being loaded, so far.
    #[must_use]
    pub fn loading(&self) -> Option<Error> {
        self.special.has(special::LOADING).then(|| self.loading_error())
    }
    /// When a request that was held back is looked at again.
    #[must_use]
    pub fn held_back_until_ms(&self, now_ms: u64) -> u64 {
        let pause = self.pause.until_ms();
        if pause <= now_ms && self.special.has(special::BEHIND) { now_ms + BEHIND_MS } else { pause }
    }

    /// Epochs up to this one are safe: what waits for them is sent.
    pub fn set_safe(&self, epoch: u64) {
        self.safe.epoch.store(epoch, Release);
        self.post_all(|| Message::Safe);
    }

    /// Replies wait for what was told to be safe, or not any more.
    pub fn set_withheld(&self, withheld: bool) {
        self.safe.is_lost.store(false, Release);
        self.special.set(special::WITHHELD, withheld);
        if !withheld {
            self.set_safe(u64::MAX);
        }
    }
    /// What was told and is not safe never will be: replies that wait for it become errors, and later ones do not wait.
    pub fn lose_withheld(&self) {
        // In this order: whoever is told has nothing withheld any more.
        self.special.set(special::WITHHELD, false);
        self.safe.is_lost.store(true, Release);
        self.post_all(|| Message::Safe);
    }

    /// What others have brought for a client, behind this place of its output, waits as its own replies do: for all
    /// that was told when it came, where it is the reply of a request, or readers wait too.
    pub fn withhold_brought(&self, output: &mut Output, from: OutputPlace, is_reply: bool) {
        let told = if is_reply { self.keyspace.told_epoch() } else { 0 };
        if self.special.has(special::WITHHELD) && self.withhold_output(output, from, told) {
            self.safe.wake();
        }
    }

    /// Whether what others bring that is no reply may have to wait.
    #[must_use]
    pub fn may_withhold_brought(&self) -> bool {
        self.special.has(special::WITHHELD) && self.settings.strict_reads.load(Relaxed)
    }

    /// What was written behind this place waits, if anything has been told that is not safe yet: who reads does not see
    /// it before either (`strict-reads`). `own`: the last epoch that the writer has told something in. Says whether it
    /// waits.
    #[cold]
    pub fn withhold_output(&self, output: &mut Output, from: OutputPlace, own: u64) -> bool {
        let strict = self.settings.strict_reads.load(Relaxed);
        let epoch = if strict { self.keyspace.told_epoch() } else { own };
        let waits = epoch > self.safe.epoch() && (output.end() != from || output.has_resource_state());
        if waits {
            output.withhold(from, epoch);
        }
        waits
    }
}
