//! Owns: what is there at the start, and loading it. Does not own: reading files (`weft_persist`), applying effects
//! (`weft_store::replay`).
//!
//! Several threads load, each the keys of its own shards ([`Part`]); at an effect on several keys they wait for each
//! other ([`Meeting`]). Nobody runs a command meanwhile that looks at a key, so what is true in between is seen by
//! nobody.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use weft_engine::Engine;
use weft_persist::block::{FILE_HEAD_BYTES, FileHead, HEAD_BYTES};
use weft_persist::disk::{Disk, cause};
use weft_persist::{Decoder, Folder, FoundLog, Mark, Place, Problem, Strange, Summary, read_snapshot};
use weft_store::effect::Effect;
use weft_store::{Replayer, Section, Worker};

use super::Places;
use crate::{notice, warning};

/// Threads that load a snapshot, at most.
pub(crate) const LOADERS_MAX: usize = 4;
/// Blocks that wait for them, and bytes of those: one that is larger waits alone.
const BLOCKS_WAITING: usize = 8;
const WAITING_BYTES_MAX: usize = 64 << 20;
/// How often progress is said.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// What is there at the start.
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// The folder of a log that has none yet.
    Folder(Arc<dyn Disk>),
    /// A log.
    Log(Arc<dyn Disk>, FoundLog),
    /// A snapshot by itself, with the log's folder where there is to be one.
    Snapshot(String, Option<Arc<dyn Disk>>),
}

/// What was loaded.
pub(super) struct Loaded {
    /// The log's folder.
    pub(super) disk: Option<Arc<dyn Disk>>,
    /// The log that goes on, and its last epoch.
    pub(super) kept: Option<(FoundLog, u64)>,
}

fn stop(text: String) -> io::Error {
    io::Error::other(text)
}
fn problem(problem: Problem) -> io::Error {
    stop(problem.to_string())
}

impl Found {
    /// Looks at what is there. The log wins: it is the later one, unless it was ended by CONFIG SET and a snapshot was
    /// made behind that.
    pub(super) fn look(places: &Places, wants_log: bool, dbfilename: &str) -> io::Result<Self> {
        let disk = if wants_log { Some(places.lock()?) } else { None };
        if let Some(disk) = &disk {
            // One that names no files never counted: the snapshot that it was to begin behind was not whole.
            let kept = FoundLog::find(Arc::clone(disk), &places.base).map_err(problem)?;
            if let Some(kept) = kept.filter(|kept| !kept.is_empty()) {
                return Ok(Self::Log(Arc::clone(disk), kept));
            }
            let manifest = format!("{}.manifest", places.base);
            if disk.names()?.contains(&manifest) {
                return Err(stop(format!(
                    "{} is the log of Redis or Valkey, which stays as it is: choose another appenddirname",
                    disk.shown(&manifest)
                )));
            }
        }
        let here = Folder::unlocked(Path::new("."));
        match here.open(dbfilename) {
            Ok(file) => {
                let mut head = [0; FILE_HEAD_BYTES];
                let read = file.read(0, &mut head)?;
                if FileHead::begins(&head[..read]) {
                    return Ok(Self::Snapshot(dbfilename.into(), disk));
                }
                if head.starts_with(b"REDIS") || head.starts_with(b"VALKEY") {
                    return Err(stop(format!(
                        "{dbfilename} was written by Redis or Valkey and stays as it is: choose another dbfilename"
                    )));
                }
                Err(stop(format!("{dbfilename} is no snapshot of Weft: choose another dbfilename")))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(disk.map_or(Self::Nothing, Self::Folder))
            }
            Err(error) => Err(stop(format!("{dbfilename} cannot be read: {}", cause(&error)))),
        }
    }
    /// Whether there is something to load.
    pub(super) const fn is_something(&self) -> bool {
        matches!(self, Self::Log(..) | Self::Snapshot(..))
    }
}

fn keys(engine: &Engine) -> usize {
    (0..engine.keyspace.database_count()).map(|db| engine.keyspace.len(db as u8)).sum()
}
/// Whether there is anything that a log would have to begin with: keys, functions, users and the like.
pub(super) fn holds_something(engine: &Engine) -> bool {
    let catalogue = engine.keyspace.catalogue();
    keys(engine) > 0 || Section::ALL.iter().any(|section| !catalogue.is_empty(*section))
}

/// Loads what was found.
pub(super) fn load(
    engine: &'static Engine,
    worker: &mut Worker<'static>,
    found: Found,
) -> io::Result<Loaded> {
    let started = Instant::now();
    let loading = &engine.durable.loading;
    let (disk, kept, summary) = match found {
        Found::Nothing => return Ok(Loaded { disk: None, kept: None }),
        Found::Folder(disk) => return Ok(Loaded { disk: Some(disk), kept: None }),
        Found::Log(disk, mut kept) => {
            notice!("Loading the log");
            let summary = read(engine, worker, &*disk, |give| kept.replay(give))?;
            (Some(disk), Some((kept, summary.epoch)), summary)
        }
        Found::Snapshot(name, disk) => {
            notice!("Loading the snapshot {name}");
            let here = Folder::unlocked(Path::new("."));
            let summary = read(engine, worker, &here, |give| read_snapshot(&here, &name, give))?;
            (disk, None, summary)
        }
    };
    if let Some((file, at, bytes)) = &summary.torn {
        warning!(
            "{file} ends in the middle of what was being written: the last {bytes} bytes, from {at} on, are not \
             whole, nothing stands behind them, and they are cut off"
        );
    }
    for problem in engine.load_catalogue() {
        warning!("{problem}: it stays where it is, and does not act");
    }
    engine.load_libraries();
    let keys = keys(engine);
    loading.keys.store(keys as u64, Relaxed);
    notice!(
        "{keys} keys are loaded, from {} bytes in {:.1} s",
        summary.bytes,
        started.elapsed().as_secs_f64()
    );
    Ok(Loaded { disk, kept })
}

/// Applies all blocks that a reader gives, on several threads.
fn read(
    engine: &'static Engine,
    worker: &mut Worker<'static>,
    disk: &dyn Disk,
    replay: impl FnOnce(Give<'_>) -> Result<Summary, Problem>,
) -> io::Result<Summary> {
    let mut progress = Progress::new();
    let mut expected = Expected::default();
    let meeting = Meeting::default();
    engine.keyspace.is_filling(None);
    let read = std::thread::scope(|scope| {
        let mut loaders = Loaders::start(engine, scope, &meeting).map_err(stop)?;
        // Where no thread can be had, this one does it.
        let mut alone = loaders.threads.is_empty().then(|| Applier::new(engine, Part::ALL));
        let summary = replay(&mut |place, requests| {
            progress.show(engine, place.progress);
            expected.look(engine, &place);
            match &mut alone {
                Some(applier) => applier.apply(worker, (requests, place.is_snapshot), &meeting),
                None => loaders.give(place, requests, &meeting),
            }
        });
        if alone.is_some() {
            Part::ALL.fit(engine, worker);
        }
        loaders.finish();
        match meeting.failed() {
            Some(Failure { file, at, strange }) => {
                Err(problem(Problem::strange(disk.shown(&file), at, strange)))
            }
            None => summary.map_err(problem),
        }
    });
    engine.keyspace.is_filled();
    read
}

/// How many keys a snapshot has: tables need not grow to that step by step.
#[derive(Default)]
struct Expected {
    requests: u64,
}

impl Expected {
    /// As many as its requests, if it goes on as it began. What was too many is given back at the end.
    fn look(&mut self, engine: &Engine, place: &Place<'_>) {
        if !place.is_snapshot {
            return;
        }
        self.requests += u64::from(place.head.count);
        let read = place.at + HEAD_BYTES as u64 + u64::from(place.head.len);
        let all = u128::from(self.requests) * u128::from(place.file_bytes) / u128::from(read.max(1));
        engine.keyspace.is_filling(usize::try_from(all).ok());
    }
}

/// Gives blocks in their order.
type Give<'g> = &'g mut dyn FnMut(Place<'_>, &[u8]) -> Result<(), Strange>;

/// The shards of one thread.
#[derive(Clone, Copy)]
struct Part {
    index: u32,
    of: u32,
}

impl Part {
    const ALL: Self = Self { index: 0, of: 1 };

    const fn has(self, shard: u32) -> bool {
        shard % self.of == self.index
    }
    /// Its tables get the size that they need.
    fn fit(self, engine: &Engine, worker: &mut Worker<'static>) {
        (0..engine.keyspace.shard_count())
            .filter(|shard| self.has(*shard))
            .for_each(|shard| worker.fit(shard));
    }
}

/// A block on its way to the threads.
struct Block {
    file: String,
    at: u64,
    is_of_snapshot: bool,
    requests: Vec<u8>,
    /// What it takes of the room for blocks.
    _taken: Taken,
}

/// The room that blocks take until all threads are done with them: a log may consist of blocks of hundreds of MiB.
#[derive(Clone, Default)]
struct Room(Arc<(Mutex<Filled>, Condvar)>);

#[derive(Default)]
struct Filled {
    bytes: usize,
    /// Those that wait for room.
    #[cfg(test)]
    waiting: usize,
}

/// Bytes of it; they are given back at the end.
struct Taken(Room, usize);

impl Room {
    fn filled(&self) -> MutexGuard<'_, Filled> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Waits until there is room.
    fn take(&self, bytes: usize) -> Taken {
        let mut filled = self.filled();
        while filled.bytes > 0 && filled.bytes + bytes > WAITING_BYTES_MAX {
            #[cfg(test)]
            (filled.waiting += 1);
            filled = self.0.1.wait(filled).unwrap_or_else(PoisonError::into_inner);
            #[cfg(test)]
            (filled.waiting -= 1);
        }
        filled.bytes += bytes;
        drop(filled);
        Taken(self.clone(), bytes)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.filled().bytes -= self.1;
        self.0.0.1.notify_all();
    }
}

/// Threads that load: each reads all blocks, in their order, and applies what is on keys of its own shards. So effects
/// on one key keep their order, and no two threads want the same lock.
struct Loaders<'s> {
    threads: Vec<(SyncSender<Arc<Block>>, ScopedJoinHandle<'s, ()>)>,
    room: Room,
}

impl<'s> Loaders<'s> {
    /// None where one thread is all there is.
    fn start<'e>(
        engine: &'static Engine,
        scope: &'s std::thread::Scope<'s, 'e>,
        meeting: &'s Meeting,
    ) -> Result<Self, String> {
        let count = std::thread::available_parallelism().map_or(1, usize::from).min(LOADERS_MAX);
        let workers: Vec<Worker<'static>> = (0..count).map_while(|_| engine.keyspace.worker()).collect();
        let of = workers.len() as u32;
        meeting.expect(of);
        let mut threads = Vec::new();
        for (index, worker) in (0..of).zip(workers) {
            let (sender, blocks) = sync_channel(BLOCKS_WAITING);
            let thread = std::thread::Builder::new().name("weft-loader".into());
            let load = move || load_blocks(engine, worker, &blocks, Part { index, of }, meeting);
            let spawned = thread.spawn_scoped(scope, load);
            threads.push((sender, spawned.map_err(|error| format!("no thread to load with: {error}"))?));
        }
        Ok(Self { threads, room: Room::default() })
    }
    fn give(&mut self, place: Place<'_>, requests: &[u8], meeting: &Meeting) -> Result<(), Strange> {
        if meeting.failed().is_some() {
            return Err(Strange { offset: 0, why: "it cannot be loaded" });
        }
        let (file, is_of_snapshot) = (place.file.into(), place.is_snapshot);
        let taken = self.room.take(requests.len());
        let block =
            Arc::new(Block { file, at: place.at, is_of_snapshot, requests: requests.into(), _taken: taken });
        // Who takes them ends early only when that has failed.
        self.threads.iter().for_each(|(blocks, _)| drop(blocks.send(Arc::clone(&block))));
        Ok(())
    }
    /// Waits until all is applied.
    fn finish(self) {
        let (senders, threads): (Vec<_>, Vec<_>) = self.threads.into_iter().unzip();
        drop(senders);
        threads.into_iter().for_each(|thread| thread.join().expect("one that panics ends the process"));
    }
}

fn load_blocks(
    engine: &'static Engine,
    mut worker: Worker<'static>,
    blocks: &Receiver<Arc<Block>>,
    part: Part,
    meeting: &Meeting,
) {
    let mut applier = Applier::new(engine, part);
    for block in blocks {
        let requests = (&block.requests[..], block.is_of_snapshot);
        if let Err(strange) = applier.apply(&mut worker, requests, meeting) {
            return meeting.fail(Failure { file: block.file.clone(), at: block.at, strange });
        }
    }
    part.fit(engine, &mut worker);
}

/// Why loading has failed.
#[derive(Clone)]
struct Failure {
    file: String,
    at: u64,
    strange: Strange,
}

/// Where the threads that load wait for each other, at an effect on several keys.
#[derive(Default)]
struct Meeting {
    state: Mutex<Attendance>,
    changed: Condvar,
}

#[derive(Default)]
struct Attendance {
    expected: u32,
    here: u32,
    round: u64,
    failed: Option<Failure>,
}

impl Meeting {
    fn state(&self) -> MutexGuard<'_, Attendance> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn expect(&self, count: u32) {
        self.state().expected = count;
    }
    fn failed(&self) -> Option<Failure> {
        self.state().failed.clone()
    }
    fn fail(&self, failure: Failure) {
        self.state().failed.get_or_insert(failure);
        self.changed.notify_all();
    }
    /// Waits until all are here. An error says that somebody will not come.
    fn meet(&self) -> Result<(), Strange> {
        let mut state = self.state();
        state.here += 1;
        if state.here >= state.expected {
            state.here = 0;
            state.round += 1;
            self.changed.notify_all();
            return Ok(());
        }
        let round = state.round;
        while state.round == round {
            if state.failed.is_some() {
                return Err(Strange { offset: 0, why: "another thread that loads has failed" });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

/// Applies blocks, one by one: what is on keys of its part.
struct Applier {
    engine: &'static Engine,
    decoder: Decoder,
    replayer: Replayer,
    databases: usize,
    part: Part,
}

impl Applier {
    fn new(engine: &'static Engine, part: Part) -> Self {
        Self {
            engine,
            decoder: Decoder::default(),
            replayer: Replayer::new(engine.settings.forms()),
            databases: engine.keyspace.database_count(),
            part,
        }
    }
    /// A block holds whole groups, so their marks say nothing here.
    fn apply(
        &mut self,
        worker: &mut Worker<'static>,
        (requests, is_of_snapshot): (&[u8], bool),
        meeting: &Meeting,
    ) -> Result<(), Strange> {
        let Self { engine, decoder, replayer, databases, part } = self;
        let loading = &engine.durable.loading;
        // All see all blocks: one of them counts.
        let counts_up_to = (is_of_snapshot && part.index == 0).then(|| loading.started_ms.load(Relaxed));
        let mut expired = 0;
        let mut result = Ok(());
        decoder.each(requests, |mark, told| {
            if mark != Mark::Effects || result.is_err() {
                return;
            }
            if told.iter().any(|told| usize::from(told.last_db()) >= *databases) {
                let why = "a key is in a database that there is not: raise 'databases' to what it was";
                result = Err(Strange { offset: 0, why });
                return;
            }
            match told {
                [one] if !Replayer::is_of_one_key(&one.effect) => {
                    result = meeting.meet().and_then(|()| {
                        if part.index == 0 {
                            replayer.apply(&worker.world(), one);
                        }
                        meeting.meet()
                    });
                }
                row => {
                    if let Some(now_ms) = counts_up_to {
                        expired += row.iter().filter(|told| expires_by(&told.effect, now_ms)).count() as u64;
                    }
                    replayer.apply_row(worker, row, |shard| part.has(shard));
                }
            }
        })?;
        if expired > 0 {
            loading.keys_expired.fetch_add(expired, Relaxed);
        }
        result
    }
}

/// Whether a key of a snapshot, which begins with this effect, has expired by then.
fn expires_by(effect: &Effect<'_>, now_ms: u64) -> bool {
    let (Effect::Set { expire_ms, .. } | Effect::New { expire_ms, .. }) = effect else { return false };
    expire_ms.is_some_and(|expire_ms| expire_ms <= now_ms)
}

/// How far it has come, said now and then.
pub(super) struct Progress {
    started: Instant,
    said: Instant,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), said: Instant::now() }
    }
    pub(super) fn show(&mut self, engine: &Engine, (done, all): (u64, u64)) {
        let loading = &engine.durable.loading;
        loading.bytes.store(all, Relaxed);
        loading.done_bytes.store(done, Relaxed);
        if self.said.elapsed() < PROGRESS_EVERY {
            return;
        }
        self.said = Instant::now();
        notice!("Loading {}", shown(self.started.elapsed(), done, all));
    }
}

/// A bar, and how long it takes if it goes on so.
fn shown(spent: Duration, done: u64, all: u64) -> String {
    let left_s = spent.as_secs_f64() * all.saturating_sub(done) as f64 / done.max(1) as f64;
    let filled = (u128::from(done) * 20 / u128::from(all.max(1))).min(20) as usize;
    let percent = (u128::from(done) * 100 / u128::from(all.max(1))).min(100);
    format!("[{}{}] {percent} %, {left_s:.0} s left", "#".repeat(filled), ".".repeat(20 - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_shown_with_what_is_left() {
        let minute = Duration::from_secs(60);
        assert_eq!(shown(minute, 1 << 30, 4 << 30), "[#####...............] 25 %, 180 s left");
        assert_eq!(shown(minute, 3, 3), "[####################] 100 %, 0 s left");
        assert_eq!(shown(Duration::ZERO, 0, 0), "[....................] 0 %, 0 s left");
        assert_eq!(
            shown(minute, 5, 3),
            "[####################] 100 %, 0 s left",
            "a file that has become longer"
        );
    }

    /// However large blocks are, few bytes of them wait: who reads is held up until who applies is done.
    #[test]
    fn blocks_that_wait_are_bounded_by_their_bytes() {
        let room = Room::default();
        let large = room.take(WAITING_BYTES_MAX * 3);
        let (sender, taken) = sync_channel(8);
        std::thread::scope(|scope| {
            let reader = room.clone();
            scope.spawn(move || {
                for bytes in [WAITING_BYTES_MAX / 2, WAITING_BYTES_MAX / 2, 1] {
                    sender.send(reader.take(bytes)).expect("somebody listens");
                }
            });
            let waits = || {
                while room.filled().waiting == 0 {
                    assert!(taken.try_recv().is_err(), "it has taken what it was to wait for");
                    std::thread::yield_now();
                }
                assert!(taken.try_recv().is_err(), "it waits for what it has not taken");
            };
            // A large one waits alone.
            waits();
            drop(large);
            let two = [taken.recv().expect("it has room"), taken.recv().expect("both have room")];
            // There is no room for one byte more.
            waits();
            drop(two);
            drop(taken.recv().expect("it has room"));
            assert_eq!(room.filled().bytes, 0);
        });
    }

    /// Who waits for others at an effect on several keys is let go when one of them will not come.
    #[test]
    fn a_meeting_ends_when_somebody_fails() {
        let meeting = Meeting::default();
        meeting.expect(3);
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..2).map(|_| scope.spawn(|| meeting.meet().is_err())).collect();
            let strange = Strange { offset: 7, why: "as it is to be" };
            meeting.fail(Failure { file: "a.aof.1.log".into(), at: 32, strange });
            for waiting in waiting {
                assert!(waiting.join().expect("it comes back"), "the third will not come");
            }
        });
        assert_eq!(meeting.failed().map(|failure| failure.at), Some(32));
        // All come, twice.
        let meeting = Meeting::default();
        meeting.expect(3);
        std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..3).map(|_| scope.spawn(|| (0..100).all(|_| meeting.meet().is_ok()))).collect();
            assert!(all.into_iter().all(|thread| thread.join().expect("it comes back")));
        });
    }
}
