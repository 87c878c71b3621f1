//! Owns: what is there at the start, and loading it. Does not own: reading files (`weft_persist`), applying effects
//! (`weft_store::replay`).
//!
//! The keys of a snapshot are independent of each other: its blocks are loaded by several threads. Blocks that share a
//! key make a chain, which one thread loads in its order. What is in the log is applied in its order. Nobody runs a
//! command meanwhile that looks at a key.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use weft_engine::Engine;
use weft_persist::block::{FILE_HEAD_BYTES, FileHead};
use weft_persist::disk::Disk;
use weft_persist::{Decoder, Folder, Kept, Mark, Place, Problem, Strange, Summary, read_snapshot};
use weft_store::{Replayer, Told, Worker};

use super::Places;
use crate::{notice, warning};

/// Threads that load a snapshot, at most.
pub(crate) const LOADERS_MAX: usize = 4;
/// Blocks that wait for them.
const BLOCKS_WAITING: usize = 8;
/// How often progress is said.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// What is there at the start.
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// The folder of a log that has none yet.
    Folder(Arc<dyn Disk>),
    /// A log.
    Log(Arc<dyn Disk>, Kept),
    /// A snapshot by itself, with the log's folder where there is to be one.
    Snapshot(String, Option<Arc<dyn Disk>>),
}

/// What was loaded.
pub(super) struct Loaded {
    /// The log's folder.
    pub(super) disk: Option<Arc<dyn Disk>>,
    /// The log that goes on, and its last epoch.
    pub(super) kept: Option<(Kept, u64)>,
    pub(super) keys: usize,
}

fn stop(text: String) -> io::Error {
    io::Error::other(text)
}
fn problem(problem: Problem) -> io::Error {
    stop(problem.to_string())
}

impl Found {
    /// Looks at what is there. The log wins, since it is the later one.
    pub(super) fn look(places: &Places, wants_log: bool, dbfilename: &str) -> io::Result<Self> {
        let disk = if wants_log { Some(places.lock()?) } else { None };
        if let Some(disk) = &disk {
            // One that names no files never counted: the snapshot that it was to begin behind was not whole.
            let kept = Kept::find(Arc::clone(disk), &places.base).map_err(problem)?;
            if let Some(kept) = kept.filter(|kept| kept.manifest().names().next().is_some()) {
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
            Err(error) => Err(stop(format!("{dbfilename} cannot be read: {error}"))),
        }
    }
    /// Whether there is something to load.
    pub(super) const fn is_something(&self) -> bool {
        matches!(self, Self::Log(..) | Self::Snapshot(..))
    }
}

/// Loads what was found.
pub(super) fn load(
    engine: &'static Engine,
    worker: &mut Worker<'static>,
    found: Found,
) -> io::Result<Loaded> {
    let started = Instant::now();
    let loading = &engine.durable.loading;
    loading.started_ms.store(engine.clock.now_ms(), Relaxed);
    let (disk, kept, summary) = match found {
        Found::Nothing => return Ok(Loaded { disk: None, kept: None, keys: 0 }),
        Found::Folder(disk) => return Ok(Loaded { disk: Some(disk), kept: None, keys: 0 }),
        Found::Log(disk, mut kept) => {
            notice!("Loading the log");
            let summary = read(engine, worker, |give| kept.replay(give))?;
            (Some(disk), Some((kept, summary.epoch)), summary)
        }
        Found::Snapshot(name, disk) => {
            notice!("Loading the snapshot {name}");
            let here = Folder::unlocked(Path::new("."));
            let summary = read(engine, worker, |give| read_snapshot(&here, &name, give))?;
            (disk, None, summary)
        }
    };
    if let Some((file, at, bytes)) = &summary.torn {
        warning!(
            "{file} ends in the middle of what was being written: the last {bytes} bytes, from {at} on, were never \
             confirmed to be safe, and are cut off"
        );
    }
    for problem in engine.load_catalogue() {
        warning!("{problem}: it stays where it is, and does not act");
    }
    let keys = (0..engine.keyspace.database_count()).map(|db| engine.keyspace.len(db as u8)).sum();
    loading.keys.store(keys as u64, Relaxed);
    notice!(
        "{keys} keys are loaded, from {} bytes in {:.1} s",
        summary.bytes,
        started.elapsed().as_secs_f64()
    );
    Ok(Loaded { disk, kept, keys })
}

/// Gives blocks in their order.
type Give<'g> = &'g mut dyn FnMut(Place<'_>, &[u8]) -> Result<(), Strange>;

/// Applies all blocks that a reader gives: those of snapshots on several threads.
fn read(
    engine: &'static Engine,
    worker: &mut Worker<'static>,
    replay: impl FnOnce(Give<'_>) -> Result<Summary, Problem>,
) -> io::Result<Summary> {
    let mut applier = Applier::new(engine);
    let mut progress = Progress::new();
    let failed: Mutex<Option<Strange>> = Mutex::default();
    std::thread::scope(|scope| {
        let mut loaders: Option<Loaders<'_>> = None;
        let mut is_begun = false;
        let summary = replay(&mut |place, requests| {
            progress.tell(engine, place.progress);
            if place.is_snapshot {
                if !is_begun {
                    is_begun = true;
                    loaders = Loaders::start(engine, scope, &failed);
                }
                if let Some(loaders) = &mut loaders {
                    return loaders.give(requests, place.head.goes_on, &failed);
                }
            } else if let Some(loaders) = loaders.take() {
                loaders.finish(&failed)?;
            }
            applier.apply(worker, requests)
        })
        .map_err(problem)?;
        if let Some(loaders) = loaders.take() {
            let strange =
                |strange: Strange| stop(format!("a block of the snapshot cannot be loaded: {}", strange.why));
            loaders.finish(&failed).map_err(strange)?;
        }
        Ok(summary)
    })
}

/// What a thread takes.
enum Work {
    Block(Vec<u8>),
    /// Blocks that are to be applied in their order.
    Chain(Receiver<Vec<u8>>),
}

/// Threads that apply blocks in any order, but for those of a chain.
struct Loaders<'s> {
    work: SyncSender<Work>,
    /// The chain that the last block belongs to, if it goes on.
    chain: Option<SyncSender<Vec<u8>>>,
    threads: Vec<ScopedJoinHandle<'s, ()>>,
}

impl<'s> Loaders<'s> {
    /// Nothing where one thread is all there is.
    fn start<'e>(
        engine: &'static Engine,
        scope: &'s std::thread::Scope<'s, 'e>,
        failed: &'s Mutex<Option<Strange>>,
    ) -> Option<Self> {
        let count = std::thread::available_parallelism().map_or(1, usize::from).min(LOADERS_MAX);
        let (work, taken) = sync_channel::<Work>(BLOCKS_WAITING);
        let taken = Arc::new(Mutex::new(taken));
        let mut threads = Vec::new();
        for _ in 0..count {
            let (Some(worker), taken) = (engine.keyspace.worker(), Arc::clone(&taken)) else { break };
            let thread = std::thread::Builder::new().name("weft-loader".into());
            let spawned = thread.spawn_scoped(scope, move || load_blocks(engine, worker, &taken, failed));
            threads.extend(spawned.ok());
        }
        (!threads.is_empty()).then_some(Self { work, chain: None, threads })
    }
    fn give(
        &mut self,
        requests: &[u8],
        goes_on: bool,
        failed: &Mutex<Option<Strange>>,
    ) -> Result<(), Strange> {
        if let Some(strange) = *failed.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(strange);
        }
        // Who takes them ends when they end: nothing is sent in vain.
        if self.chain.is_none() && goes_on {
            let (chain, blocks) = sync_channel(BLOCKS_WAITING);
            let _ = self.work.send(Work::Chain(blocks));
            self.chain = Some(chain);
        }
        let _ = match &self.chain {
            Some(chain) => chain.send(requests.into()).is_ok(),
            None => self.work.send(Work::Block(requests.into())).is_ok(),
        };
        if !goes_on {
            self.chain = None;
        }
        Ok(())
    }
    fn finish(self, failed: &Mutex<Option<Strange>>) -> Result<(), Strange> {
        drop((self.chain, self.work));
        let has_panicked =
            self.threads.into_iter().map(|thread| thread.join().is_err()).fold(false, |a, b| a | b);
        if has_panicked {
            return Err(Strange { offset: 0, why: "a thread that loads it has panicked" });
        }
        failed.lock().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

fn load_blocks(
    engine: &'static Engine,
    mut worker: Worker<'static>,
    taken: &Mutex<Receiver<Work>>,
    failed: &Mutex<Option<Strange>>,
) {
    let mut applier = Applier::new(engine);
    let mut apply = |block: Vec<u8>| {
        if let Err(strange) = applier.apply(&mut worker, &block) {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(strange);
        }
    };
    loop {
        let next = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(Work::Block(block)) => apply(block),
            Ok(Work::Chain(blocks)) => blocks.into_iter().for_each(&mut apply),
            Err(_) => return,
        }
    }
}

/// Applies blocks, one by one.
struct Applier {
    decoder: Decoder,
    replayer: Replayer,
    databases: usize,
}

impl Applier {
    fn new(engine: &Engine) -> Self {
        Self {
            decoder: Decoder::default(),
            replayer: Replayer::new(engine.settings.forms()),
            databases: engine.keyspace.database_count(),
        }
    }
    /// A block holds whole groups, so their marks say nothing here.
    fn apply(&mut self, worker: &mut Worker<'static>, requests: &[u8]) -> Result<(), Strange> {
        let Self { decoder, replayer, databases } = self;
        let mut beyond = false;
        decoder.each(requests, |mark, told| {
            let (Mark::Effects, Some(told)) = (mark, told) else { return };
            if usize::from(told.db) >= *databases {
                beyond = true;
                return;
            }
            apply(replayer, worker, told);
        })?;
        if beyond {
            let why = "a key is in a database that there is not; raise 'databases' to what it was";
            return Err(Strange { offset: 0, why });
        }
        Ok(())
    }
}

fn apply(replayer: &mut Replayer, worker: &mut Worker<'static>, told: &Told<'_>) {
    if !replayer.apply_in(&worker.enter(), told) {
        replayer.apply(&worker.world(), told);
    }
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
    pub(super) fn tell(&mut self, engine: &Engine, (done, all): (u64, u64)) {
        let loading = &engine.durable.loading;
        loading.bytes.store(all, Relaxed);
        loading.done_bytes.store(done, Relaxed);
        if self.said.elapsed() < PROGRESS_EVERY {
            return;
        }
        self.said = Instant::now();
        let spent_s = self.started.elapsed().as_secs_f64();
        let left_s = spent_s * all.saturating_sub(done) as f64 / done.max(1) as f64;
        let filled = (done * 20 / all.max(1)).min(20) as usize;
        let bar = format!("{}{}", "#".repeat(filled), ".".repeat(20 - filled));
        notice!("Loading [{bar}] {:.0} %, {left_s:.0} s left", engine.durable.loading.percent());
    }
}
