//! Owns: following the merger into a log: writing, syncing as `appendfsync` says, saying what is safe, cutting the log
//! where a snapshot begins. Does not own: what follows an error, when a snapshot is made (`super`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use weft_engine::Engine;
use weft_engine::config::settings::SYNCS;
use weft_engine::durable::Refuser;
use weft_engine::special;
use weft_persist::disk::Disk;
use weft_persist::{FoundLog, Log, LogOptions, Snapshot};
use weft_store::{Merger, Overrun, Worker, wants};

use super::SLEEP_WITHHELD;
use crate::{notice, warning};

/// How long what is written may be unsynced with `everysec`.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// How long nothing has come when the log says that all of it is on the disk.
const REST: Duration = Duration::from_secs(1);

/// How long what was told last is waited for when the log ends.
const CLOSE_MAX: Duration = Duration::from_secs(10);

/// When the log is synced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syncs {
    No,
    EverySecond,
    Always,
}

/// Where the log is cut for a snapshot.
#[derive(Clone, Copy)]
enum Cut {
    /// Before the first group of a later epoch.
    Behind(u64),
    /// It is: so many segments are before it.
    Done(usize),
}

/// A log that follows the merger.
pub(super) struct Following {
    engine: &'static Engine,
    merger: Merger<'static>,
    log: Log,
    /// What the epochs of this process are counted from.
    base_epoch: u64,
    /// All groups up to this epoch were written.
    complete: u64,
    /// They are on the disk.
    synced: u64,
    unsynced_since: Option<Instant>,
    /// When something was last written.
    written_at: Instant,
    cut: Option<Cut>,
    /// It was said that there is no room.
    is_full: bool,
}

impl Following {
    fn new(
        engine: &'static Engine,
        worker: &mut Worker<'static>,
        log: Log,
        base_epoch: u64,
    ) -> io::Result<Self> {
        let busy = || io::Error::other("somebody else follows what is told");
        let merger = worker.merger(wants::VALUES).ok_or_else(busy)?;
        Ok(Self {
            engine,
            merger,
            log,
            base_epoch,
            complete: 0,
            synced: 0,
            unsynced_since: None,
            written_at: Instant::now(),
            cut: None,
            is_full: false,
        })
    }
    /// The first log of a keyspace in which nothing is.
    pub(super) fn first(
        engine: &'static Engine,
        worker: &mut Worker<'static>,
        (disk, options): (Arc<dyn Disk>, LogOptions),
    ) -> io::Result<Self> {
        let log = Log::begin(disk, options)?;
        Self::new(engine, worker, log, 0)
    }
    /// The log goes on that was loaded.
    pub(super) fn go_on(
        engine: &'static Engine,
        worker: &mut Worker<'static>,
        (disk, options): (Arc<dyn Disk>, LogOptions),
        (kept, epoch): (FoundLog, u64),
    ) -> io::Result<Self> {
        let log = Log::go_on(disk, options, kept)?;
        // What the log is long beside is what it begins with.
        engine.durable.log.base_bytes.store(log.snapshot_bytes(), Relaxed);
        Self::new(engine, worker, log, epoch)
    }
    /// A log of what is there: it counts from its first snapshot on.
    pub(super) fn begin(
        engine: &'static Engine,
        worker: &mut Worker<'static>,
        disk: Arc<dyn Disk>,
        options: LogOptions,
    ) -> io::Result<Self> {
        let log = Log::begin_pending(disk, options)?;
        Self::new(engine, worker, log, 0)
    }

    pub(super) const fn log(&mut self) -> &mut Log {
        &mut self.log
    }
    pub(super) const fn is_pending(&self) -> bool {
        self.log.is_pending()
    }
    /// An epoch of this process as the log counts.
    pub(super) const fn epoch_in_log(&self, epoch: u64) -> u64 {
        self.base_epoch + epoch
    }
    /// The first epoch of the process of which not all is on the disk; 0 where nothing is.
    pub(super) const fn unsynced_epoch(&self) -> u64 {
        if self.log.is_pending() { 0 } else { self.synced + 1 }
    }

    /// Writes what has become true, and syncs if that is due, or somebody waits for it. Says whether there was
    /// anything.
    pub(super) fn follow(&mut self, is_pressed: bool, now: Instant) -> io::Result<bool> {
        self.log.make_way(self.engine.keyspace.backlog_bytes() as u64)?;
        let (log, cut, base) = (&mut self.log, &mut self.cut, self.base_epoch);
        let mut outcome = Ok(());
        let polled = self.merger.poll(|group| {
            if outcome.is_ok() {
                if let Some(Cut::Behind(epoch)) = *cut
                    && group.epoch() > epoch
                {
                    outcome = log.cut().map(|segments| *cut = Some(Cut::Done(segments)));
                }
                let epoch = base + group.epoch();
                outcome = std::mem::replace(&mut outcome, Ok(())).and_then(|()| match group.row() {
                    Some(row) => log.push_row(epoch, row),
                    None => log.push(epoch, group.read()),
                });
            }
        });
        outcome?;
        let polled = polled.map_err(|Overrun| {
            io::Error::other("it is too far behind what is written, or one command has told more than 4 GiB")
        })?;
        self.log.flush()?;
        if self.log.lacks_room() && !self.is_full && !self.log.is_pending() {
            // Not with the next look: in the second until then a segment can be filled.
            self.say_room()?;
        }
        self.complete = polled.complete;
        if polled.given > 0 {
            self.written_at = now;
        }
        if self.engine.special.has(special::BEHIND) {
            // Who waits goes on as soon as the disk has followed.
            self.engine.look_at_log(now);
        }
        self.sync(is_pressed, now)?;
        self.update_figures();
        Ok(polled.given > 0)
    }

    fn mode(&self) -> Syncs {
        match SYNCS[usize::from(self.engine.settings.appendfsync.load(Relaxed)) % SYNCS.len()] {
            "always" => Syncs::Always,
            "everysec" => Syncs::EverySecond,
            _ => Syncs::No,
        }
    }
    /// Syncs if that is due, and says what is safe, or that replies wait for it from now on.
    pub(super) fn sync(&mut self, is_pressed: bool, now: Instant) -> io::Result<()> {
        let mode = self.mode();
        let durable = &self.engine.durable;
        // What waits for no sync is not late. When that changes it waits from then on.
        if mode == Syncs::No {
            self.unsynced_since = None;
        }
        if self.log.unsynced_bytes() > 0 {
            let is_due = mode != Syncs::No && {
                let since = *self.unsynced_since.get_or_insert(now);
                mode == Syncs::Always || now - since >= SYNC_EVERY
            };
            // Said before the disk is waited for.
            *durable.unsynced_since.lock() = self.unsynced_since;
            if is_due || is_pressed {
                self.log.sync()?;
                durable.log.syncs.fetch_add(1, Relaxed);
            }
        }
        if self.log.unsynced_bytes() == 0 {
            self.unsynced_since = None;
            self.synced = self.complete;
            *durable.unsynced_since.lock() = None;
        }
        if !self.log.is_pending() {
            self.engine.set_unsynced(self.unsynced_epoch());
        }
        Ok(())
    }

    /// Says in the log that all of it is on the disk, if that is so and nothing has come for a while.
    pub(super) fn rest(&mut self, now: Instant) -> io::Result<()> {
        if now.saturating_duration_since(self.written_at) >= REST && self.log.vouch()? {
            self.engine.durable.log.syncs.fetch_add(1, Relaxed);
            self.update_figures();
        }
        Ok(())
    }

    fn update_figures(&self) {
        let log = &self.engine.durable.log;
        log.bytes.store(self.log.bytes() + self.log.snapshot_bytes(), Relaxed);
        log.unsynced_bytes.store(self.log.unsynced_bytes(), Relaxed);
    }

    /// Asks for room where there was none, and says when that changes. An error where the log is gone.
    pub(super) fn look_at_room(&mut self) -> io::Result<()> {
        self.log.look_for_itself()?;
        self.log.make_room()?;
        if self.log.lacks_room() == self.is_full {
            return Ok(());
        }
        self.say_room()?;
        if !self.is_full {
            notice!("There is room for the log: writes go on");
        }
        Ok(())
    }
    /// Writes go on, or are refused for want of room.
    pub(super) fn say_room(&mut self) -> io::Result<()> {
        self.log.make_room()?;
        let was_full = std::mem::replace(&mut self.is_full, self.log.lacks_room());
        let why = "the disk is full: there is no room for the log; writes go on when there is some";
        if self.is_full && !was_full {
            warning!("Writes are refused: {why}");
        }
        self.engine.refuse_writes(Refuser::Log, self.is_full.then_some(why));
        Ok(())
    }

    /// A snapshot of this moment begins: the log is cut there.
    pub(super) const fn cut_behind(&mut self, epoch: u64) {
        self.cut = Some(Cut::Behind(epoch));
    }
    /// There is no snapshot that the log is to be cut for.
    pub(super) const fn cut_nowhere(&mut self) {
        self.cut = None;
    }
    /// A snapshot of this epoch takes the place of what is before it.
    pub(super) fn replace(&mut self, epoch: u64, snapshot: Snapshot) -> io::Result<()> {
        if !matches!(self.cut, Some(Cut::Done(_))) {
            self.cut = Some(Cut::Behind(epoch));
            // Whatever was told before the snapshot ended is there now: what is behind its moment makes the cut.
            while self.complete < epoch {
                if !self.follow(false, Instant::now())? {
                    // A batch that began before is still running.
                    std::thread::sleep(SLEEP_WITHHELD);
                }
            }
        }
        let segments = match self.cut.take() {
            Some(Cut::Done(segments)) => segments,
            _ => self.log.cut()?,
        };
        self.log.replace(segments, snapshot)?;
        self.update_figures();
        let log = &self.engine.durable.log;
        log.base_bytes.store(log.bytes.load(Relaxed), Relaxed);
        Ok(())
    }

    /// The end: all that was told is on the disk. A thread that is still in a batch, if only to tidy up, holds back
    /// what was told since it has begun: it is waited for.
    pub(super) fn close(self) -> io::Result<()> {
        self.close_waiting(|| std::thread::sleep(SLEEP_WITHHELD))
    }
    /// The same, with how long it waits between two looks.
    fn close_waiting(mut self, mut wait: impl FnMut()) -> io::Result<()> {
        let (told, began) = (self.engine.keyspace.told_epoch(), Instant::now());
        loop {
            self.follow(true, Instant::now())?;
            if self.complete >= told {
                break;
            }
            if began.elapsed() > CLOSE_MAX {
                return Err(io::Error::other("what was told last is held back by a batch without end"));
            }
            wait();
        }
        if self.log.is_pending() {
            return Ok(());
        }
        self.log.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_persist::disk::simulated::Simulated;
    use weft_persist::{Decoder, FoundLog};
    use weft_store::{Config, Expiry, Keyspace, NewValue, Op, Recorder, SystemClock};

    const BASE: &str = "a.aof";
    /// Looks at the log come at most so far apart here, three times as far as the server has them.
    const STEP: Duration = Duration::from_millis(300);

    /// Numbers below a million, from a seed.
    fn dice(seed: &mut u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed % 1_000_000
    }

    /// The keys of a log, which are numbers in their order, after the power went.
    fn kept(disk: &Simulated) -> Vec<u64> {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        let mut keys = Vec::new();
        let Some(mut kept) = FoundLog::find(disk, BASE).expect("its manifest is whole") else { return keys };
        let mut decoder = Decoder::default();
        let number = |key: &[u8]| std::str::from_utf8(key).ok().and_then(|key| key.parse::<u64>().ok());
        kept.replay(|_, requests| {
            decoder.each(requests, |_, told| keys.extend(told.iter().filter_map(|told| number(told.key))))
        })
        .expect("what was synced is whole");
        keys
    }

    /// A log that is followed, of an engine in which nothing is, and what tells it.
    fn begun(disk: &Simulated, mode: &str) -> (&'static Engine, Worker<'static>, Recorder, Following) {
        let keyspace = Keyspace::new(Config { shards: 4, ..Config::default() });
        let setup = weft_engine::Setup { keyspace, clock: Box::new(SystemClock), workers: 1 };
        let engine: &'static Engine = Box::leak(Box::new(Engine::new(setup)));
        syncs_as(engine, mode);
        let mut worker = engine.keyspace.worker().expect("there is a place");
        let options = LogOptions { base: BASE.into(), segment_bytes: 4000 };
        let following = Following::first(engine, &mut worker, (Arc::new(disk.clone()), options));
        let mut recorder = Recorder::default();
        recorder.attach(&engine.keyspace);
        (engine, worker, recorder, following.expect("nothing fails"))
    }
    fn syncs_as(engine: &Engine, mode: &str) {
        let at = SYNCS.iter().position(|name| *name == mode).expect("it is one");
        engine.settings.appendfsync.store(at as u8, Relaxed);
    }
    fn set(engine: &Engine, worker: &mut Worker<'static>, recorder: &mut Recorder, name: &str) {
        let key = engine.keyspace.key(name.as_bytes());
        let mut op = Op::new(0, 1, recorder);
        worker.enter().lock(&key).set(&mut op, &key, NewValue::Int(1), Expiry::None);
        recorder.end_group();
        recorder.clear();
    }

    /// Where `no` becomes `everysec`, what was written before has its second from then on; if the disk takes longer
    /// than that, writes are held back, as for what comes later.
    #[test]
    fn what_no_has_left_is_late_two_seconds_behind_the_change() {
        let disk = Simulated::default();
        let (engine, mut worker, mut recorder, mut following) = begun(&disk, "no");
        let since = || *engine.durable.unsynced_since.lock();
        let mut now = Instant::now();
        set(engine, &mut worker, &mut recorder, "0");
        following.follow(false, now).expect("nothing fails");
        now += Duration::from_secs(3600);
        following.follow(false, now).expect("nothing fails");
        assert_eq!(since(), None, "nothing is late");
        syncs_as(engine, "everysec");
        following.follow(false, now).expect("nothing fails");
        assert_eq!(since(), Some(now));
        following.follow(false, now + SYNC_EVERY).expect("nothing fails");
        assert_eq!(since(), None);
        assert_eq!(kept(&disk.after_cut(&mut |_| 0)), [0]);
        // Back to `no`, nothing is late any more.
        set(engine, &mut worker, &mut recorder, "1");
        following.follow(false, now).expect("nothing fails");
        assert_eq!(since(), Some(now));
        syncs_as(engine, "no");
        following.follow(false, now + SYNC_EVERY * 5).expect("nothing fails");
        assert_eq!(since(), None);
    }

    /// A snapshot that could not be made leaves no cut for the next write to make.
    #[test]
    fn a_cut_that_is_not_wanted_any_more_is_not_made() {
        for (is_wanted, segments) in [(true, 2), (false, 1)] {
            let disk = Simulated::default();
            let (engine, mut worker, mut recorder, mut following) = begun(&disk, "no");
            set(engine, &mut worker, &mut recorder, "1");
            following.follow(false, Instant::now()).expect("nothing fails");
            following.cut_behind(recorder.told_epoch());
            if !is_wanted {
                following.cut_nowhere();
            }
            set(engine, &mut worker, &mut recorder, "2");
            following.follow(false, Instant::now()).expect("nothing fails");
            let names = disk.names().expect("nothing fails");
            assert_eq!(names.iter().filter(|name| name.ends_with(".log")).count(), segments, "{names:?}");
        }
    }

    /// A thread that is in a batch when the log ends holds back what was told: it is not lost.
    #[test]
    fn a_batch_that_is_not_over_at_the_end_loses_nothing() {
        let disk = Simulated::default();
        let (engine, mut worker, mut recorder, mut following) = begun(&disk, "everysec");
        following.follow(false, Instant::now()).expect("nothing fails");
        let (entered, is_entered) = std::sync::mpsc::channel();
        let (ending, is_ending) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut other = engine.keyspace.worker().expect("there is a place");
                let batch = other.enter();
                entered.send(()).expect("somebody listens");
                is_ending.recv().expect("somebody says so");
                drop(batch);
            });
            is_entered.recv().expect("it enters");
            set(engine, &mut worker, &mut recorder, "0");
            // The batch ends when it was seen that it is not over.
            let mut looks = 0;
            let waited = following.close_waiting(|| {
                looks += 1;
                let _ = ending.send(());
                std::thread::yield_now();
            });
            waited.expect("nothing fails");
            assert!(looks > 0, "it held back what was told");
        });
        assert_eq!(kept(&disk), [0]);
    }

    /// With `everysec` the power takes what came in the last two seconds at most, whenever it goes; with `always`
    /// nothing that was said to be safe.
    #[test]
    fn a_cut_takes_no_more_than_appendfsync_allows() {
        for (seed, mode) in [(1, "everysec"), (2, "always"), (3, "everysec")] {
            println!("seed {seed}, {mode}");
            let disk = Simulated::default();
            let (engine, mut worker, mut recorder, mut following) = begun(&disk, mode);
            let (mut chance, mut now) = (seed * 0x9e37_79b9, Instant::now());
            // When each number was written, and the epoch that it is safe with.
            let mut written: Vec<(Instant, u64)> = Vec::new();
            let mut lost = 0;
            for _ in 0..400 {
                for _ in 0..dice(&mut chance) % 4 {
                    set(engine, &mut worker, &mut recorder, &written.len().to_string());
                    written.push((now, recorder.told_epoch()));
                }
                now += STEP * dice(&mut chance) as u32 / 1_000_000;
                following.follow(false, now).expect("nothing fails");
                // The power may go at any time until the next look.
                let cut = now + STEP * dice(&mut chance) as u32 / 1_000_000;
                let there = kept(&disk.after_cut(&mut |below| dice(&mut chance) as usize % below.max(1)));
                assert_eq!(there, (0..there.len() as u64).collect::<Vec<_>>(), "in order, and none twice");
                let is_safe = |(at, epoch): &(Instant, u64)| match mode {
                    "always" => *epoch < following.unsynced_epoch(),
                    _ => cut - *at > Duration::from_secs(2),
                };
                let safe = written.iter().take_while(|written| is_safe(written)).count();
                assert!(there.len() >= safe, "{} of {safe} that were safe are there", there.len());
                lost += written.len() - there.len();
            }
            assert!(lost > 100 || mode == "always", "{lost} were lost: the cuts took something");
        }
    }
}
