//! Owns: making a snapshot: its moment, the thread that writes it while everything goes on, its figures. Does not own:
//! which keys are told (`weft_store::save`), its bytes (`weft_persist::snapshot`), when one is made (`super`).

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, Release},
};
use std::time::Instant;

use weft_engine::Engine;
use weft_engine::durable::Waiting;
use weft_engine::error::Error;
use weft_persist::block::{FILE_HEAD_BYTES, FileHead};
use weft_persist::disk::Disk;
use weft_persist::{Folder, Snapshot, SnapshotWriter};
use weft_store::effect::{Read, Tape};
use weft_store::{Counter, Saver, Worker};

use super::log::Following;
use super::{Desk, RETRY};
use crate::{clock, notice, warning};

/// Bytes that are told before they are written.
const TAPE_BYTES: usize = 64 << 10;
/// Keys between two looks at whether it goes on.
const STEPS_BETWEEN: u32 = 256;
/// Snapshots that a barrier may make void, one behind the other, before it is given up.
const VOID_MAX: u32 = 16;

/// What a snapshot is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// SAVE, BGSAVE or a save point. Who waits for it.
    ByItself(Option<Waiting>),
    /// It takes the place of the log so far.
    Rewrite,
}

/// A snapshot that is being made.
pub(super) struct Job {
    purpose: Purpose,
    started: Instant,
    writes: i64,
    voids: u32,
    /// What it makes is not wanted any more.
    is_orphaned: Arc<AtomicBool>,
}

/// What its thread does.
pub(super) struct Task {
    saver: Saver<'static>,
    tape: Tape,
    writer: SnapshotWriter,
    is_orphaned: Arc<AtomicBool>,
}

/// How a task has ended.
pub(super) enum SnapshotOutcome {
    Done(Snapshot),
    /// FLUSHALL or SWAPDB has come: it is to be begun anew.
    Void,
    Failed(io::Error),
}

/// A task that has ended.
pub(super) struct Made {
    pub(super) outcome: SnapshotOutcome,
    pub(super) epoch: u64,
}

impl Job {
    pub(super) fn new(engine: &Engine, purpose: Purpose) -> Self {
        let saves = &engine.durable.saves;
        saves.started_ms.store(engine.clock.now_ms(), Relaxed);
        let flag = match purpose {
            Purpose::ByItself(_) => &saves.is_saving,
            Purpose::Rewrite => &engine.durable.log.is_rewriting,
        };
        flag.store(true, Relaxed);
        Self { purpose, started: Instant::now(), writes: 0, voids: 0, is_orphaned: Arc::default() }
    }
    pub(super) const fn purpose(&self) -> &Purpose {
        &self.purpose
    }
    /// The log has ended whose place it was to take.
    pub(super) fn orphan(&self) {
        if matches!(self.purpose, Purpose::Rewrite) {
            self.cancel();
        }
    }
    /// Nobody wants what it makes any more: it is given up soon.
    pub(super) fn cancel(&self) {
        self.is_orphaned.store(true, Relaxed);
    }
    pub(super) fn is_orphaned(&self) -> bool {
        self.is_orphaned.load(Relaxed)
    }
    /// Whether it was to take the place of a log that has ended, whose folder it still has.
    pub(super) fn is_of_no_log(&self) -> bool {
        matches!(self.purpose, Purpose::Rewrite) && self.is_orphaned()
    }
    /// This is the moment that it is of.
    pub(super) fn begin(
        &mut self,
        engine: &'static Engine,
        worker: &mut Worker<'static>,
        following: Option<&mut Following>,
    ) -> io::Result<Task> {
        self.voids += 1;
        if self.voids > VOID_MAX {
            return Err(io::Error::other("databases are emptied or swapped faster than a snapshot is made"));
        }
        let mut tape = Tape::default();
        let busy = |_| io::Error::other("another snapshot is being made");
        let saver = worker.saver(&mut tape).map_err(busy)?;
        self.writes = engine.keyspace.total(Counter::Writes);
        let keys: usize = (0..engine.keyspace.database_count()).map(|db| engine.keyspace.len(db as u8)).sum();
        engine.durable.saves.keys_total.store(keys as u64, Relaxed);
        let writer = match (&self.purpose, following) {
            (Purpose::Rewrite, Some(following)) => {
                following.cut_behind(saver.epoch());
                let number = following.log().take_number();
                let epoch = following.epoch_in_log(saver.epoch());
                let (disk, base) = following.log().place();
                SnapshotWriter::of_log(disk, base, number, epoch)?
            }
            _ => by_itself(engine, saver.epoch())?,
        };
        Ok(Task { saver, tape, writer, is_orphaned: Arc::clone(&self.is_orphaned) })
    }

    /// It is whole and on the disk. That it is over is said last: who waits for that finds how it went.
    pub(super) fn succeeded(self, engine: &Engine, bytes: u64) {
        let (saves, log) = (&engine.durable.saves, &engine.durable.log);
        let took_s = self.started.elapsed().as_secs() as i64;
        let keys = saves.keys.load(Relaxed);
        match self.purpose {
            Purpose::ByItself(waiting) => {
                saves.has_failed.store(false, Relaxed);
                saves.last_ms.store(engine.clock.now_ms(), Relaxed);
                saves.writes.store(self.writes, Relaxed);
                saves.last_s.store(took_s, Relaxed);
                saves.count.fetch_add(1, Relaxed);
                engine.look_at_snapshots();
                saves.is_saving.store(false, Release);
                if let Some(waiting) = waiting {
                    engine.answer(&waiting, |sink| sink.ok());
                }
            }
            Purpose::Rewrite => {
                log.rewrites_failed.store(0, Relaxed);
                log.rewrite_s.store(took_s, Relaxed);
                log.rewrites.fetch_add(1, Relaxed);
                log.is_rewriting.store(false, Release);
            }
        }
        notice!(
            "A snapshot of {keys} keys is on the disk: {bytes} bytes, {:.1} s",
            self.started.elapsed().as_secs_f64()
        );
    }
    /// It was cancelled: how the one before it ended still counts.
    pub(super) fn given_up(self, engine: &Engine) {
        if let Purpose::ByItself(waiting) = self.purpose {
            give_up(engine, waiting);
        }
    }
    pub(super) fn failed(self, engine: &Engine, error: &io::Error) {
        match self.purpose {
            Purpose::ByItself(waiting) => {
                engine.durable.saves.has_failed.store(true, Relaxed);
                engine.look_at_snapshots();
                engine.durable.saves.is_saving.store(false, Release);
                if let Some(waiting) = waiting {
                    let error = Error::err(format!("No snapshot could be made: {error}"));
                    engine.answer(&waiting, |sink| sink.error(&error));
                }
            }
            Purpose::Rewrite => {
                engine.durable.log.rewrites_failed.fetch_add(1, Relaxed);
                engine.durable.log.is_rewriting.store(false, Release);
            }
        }
        warning!("No snapshot could be made: {error}");
    }
}

/// SAVE and BGSAVE are over without a snapshot, since somebody did not want it any more.
pub(super) fn give_up(engine: &Engine, waiting: Option<Waiting>) {
    notice!("The snapshot that was wanted is cancelled");
    engine.durable.saves.is_saving.store(false, Relaxed);
    if let Some(waiting) = waiting {
        engine.answer(&waiting, |sink| sink.error(&Error::err("The snapshot was cancelled")));
    }
}

/// What a kill has left of a snapshot goes: the next one may be long in coming.
pub(super) fn clear_what_is_left(name: &str) {
    match weft_persist::clear_unfinished(&Folder::unlocked(Path::new(".")), name) {
        Ok(true) => notice!("What was left of a snapshot that was not finished is removed"),
        Ok(false) => {}
        Err(error) => {
            warning!("What was left of a snapshot that was not finished cannot be removed: {error}")
        }
    }
}

/// The file of `dbfilename`, unless what stands there is another program's.
fn by_itself(engine: &Engine, epoch: u64) -> io::Result<SnapshotWriter> {
    let name = String::from_utf8_lossy(&engine.config.text("dbfilename")).into_owned();
    // Where it is begun it ends, whatever becomes of `dir` meanwhile.
    let disk: Arc<dyn Disk> = Arc::new(Folder::unlocked(&std::path::absolute(".")?));
    match disk.open(&name) {
        Ok(file) => {
            let mut head = [0; FILE_HEAD_BYTES];
            let read = file.read(0, &mut head)?;
            if read > 0 && !FileHead::begins(&head[..read]) {
                return Err(io::Error::other(format!(
                    "{name} was written by another program and stays as it is: choose another dbfilename"
                )));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    SnapshotWriter::create(disk, name, 0, epoch)
}

/// Makes a snapshot on a thread of its own, and hands it in.
pub(super) fn run(engine: &'static Engine, desk: &Desk, task: Task) {
    let epoch = task.saver.epoch();
    let outcome = match engine.keyspace.worker() {
        Some(mut worker) => write(engine, &mut worker, task, || desk.is_stopping()),
        None => SnapshotOutcome::Failed(io::Error::other(
            "the keyspace has no place for the thread that makes it",
        )),
    };
    desk.hand_in(Made { outcome, epoch });
}

/// Makes one when no command runs any more. What is nowhere but in memory is not given up for a disk that is full: it
/// is tried until it succeeds, unless SHUTDOWN FORCE or a second signal says otherwise.
pub(super) fn at_the_end(engine: &'static Engine, worker: &mut Worker<'static>, is_logged: bool) {
    let mut told = String::new();
    loop {
        let error = match at_once(engine, worker) {
            Ok(bytes) => {
                engine.durable.saves.last_ms.store(engine.clock.now_ms(), Relaxed);
                return notice!("A snapshot of {bytes} bytes is on the disk");
            }
            Err(error) => error.to_string(),
        };
        if is_logged || engine.durable.is_forced() {
            return warning!("No snapshot could be made: {error}. The server stops without one");
        }
        if told != error {
            warning!(
                "No snapshot could be made: {error}. It is tried every second; a second SIGTERM stops the server \
                 without one"
            );
            told = error;
        }
        std::thread::sleep(RETRY);
    }
}

fn at_once(engine: &'static Engine, worker: &mut Worker<'static>) -> io::Result<u64> {
    let task = Job::new(engine, Purpose::ByItself(None)).begin(engine, worker, None)?;
    match write(engine, worker, task, || false) {
        SnapshotOutcome::Done(snapshot) => Ok(snapshot.bytes()),
        SnapshotOutcome::Failed(error) => Err(error),
        SnapshotOutcome::Void => Err(io::Error::other("a database was emptied meanwhile")),
    }
}

fn write(
    engine: &Engine,
    worker: &mut Worker<'static>,
    task: Task,
    gives_up: impl Fn() -> bool,
) -> SnapshotOutcome {
    let Task { mut saver, mut tape, mut writer, is_orphaned } = task;
    let mut longest_ns = 0;
    let mut written = || -> io::Result<bool> {
        let mut steps = 0_u32;
        loop {
            let before = clock::cpu_ns();
            let more = saver.step(worker, &mut tape);
            longest_ns = longest_ns.max(clock::cpu_ns() - before);
            if !more || tape.bytes().len() >= TAPE_BYTES {
                writer.push_all(Read::new(tape.bytes()))?;
                tape.clear();
            }
            if !more {
                return Ok(!saver.is_void());
            }
            steps += 1;
            if steps.is_multiple_of(STEPS_BETWEEN) {
                engine.durable.saves.keys.store(saver.keys(), Relaxed);
                if gives_up() {
                    return Err(io::Error::other("the server stops"));
                }
                if is_orphaned.load(Relaxed) {
                    return Err(io::Error::other("it is not wanted any more"));
                }
                if saver.is_void() {
                    return Ok(false);
                }
            }
        }
    };
    let outcome = written();
    engine.durable.saves.longest_step_us.store(longest_ns / 1000, Relaxed);
    match outcome {
        Ok(true) => {}
        Ok(false) => return SnapshotOutcome::Void,
        Err(error) => return SnapshotOutcome::Failed(error),
    }
    engine.durable.saves.keys.store(saver.keys(), Relaxed);
    // Nobody need tell anything early any more.
    drop(saver);
    match writer.finish() {
        Ok(snapshot) => SnapshotOutcome::Done(snapshot),
        Err(error) => SnapshotOutcome::Failed(error),
    }
}
