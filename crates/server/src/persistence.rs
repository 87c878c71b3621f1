//! Owns: the thread that keeps what the engine tells: orders, when the log is written and synced, what follows when
//! that fails, when snapshots are made. Does not own: the bytes (`weft_persist`), what is loaded at the start (`load`),
//! writing a snapshot (`snapshot`).
//!
//! One thread follows the merger: it writes what has become true, syncs as `appendfsync` says, and then says up to
//! which epoch all is safe. Workers write nothing and wait for nothing; with `always` their replies wait in their
//! outputs. A snapshot has a thread of its own, so that the log goes on meanwhile.
//!
//! **When the log cannot be written** memory is ahead of it: replies that wait become errors, since it is not known
//! whether what they say is kept, and writes are refused until a new log has begun behind a snapshot, which is tried
//! again and again. **When the disk is full** the next segment has no room, and writes are refused while the present
//! one still has some: nothing is lost, and they go on as soon as there is room.

mod begin;
mod desk;
mod due;
mod import;
mod load;
mod log;
mod snapshot;

pub(crate) use desk::Desk;
pub use import::{Import, ImportCommand};
pub(crate) use load::LOADERS_MAX;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::Scope;
use std::time::{Duration, Instant};

use weft_engine::Engine;
use weft_engine::durable::{Farewell, Order, Refuser, Waiting};
use weft_engine::error::Error;
use weft_persist::disk::{Disk, cause};
use weft_persist::{Folder, LogOptions, SEGMENT_BYTES};
use weft_store::Worker;

use crate::{notice, warning};
use load::{Found, Loaded};
use log::Following;
use snapshot::{Job, Purpose, SnapshotOutcome};

/// Sleeps between two looks at what has become true, when there was much and when there was nothing.
const SLEEP_MIN: Duration = Duration::from_millis(2);
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// The same while replies wait for a batch that is still running.
const SLEEP_WITHHELD: Duration = Duration::from_micros(50);
/// How long until a log that failed is begun anew, or room is asked for again.
const RETRY: Duration = Duration::from_secs(1);
/// How long who has failed waits for batches that had begun before: those of scripts may take longer.
const BATCHES_MAX: Duration = Duration::from_secs(1);
/// How often save points are looked at.
const SECOND: Duration = Duration::from_secs(1);

/// Where a server keeps things.
#[derive(Clone, Debug)]
struct Places {
    /// The log's folder.
    folder: PathBuf,
    /// What the names of its files begin with.
    base: String,
}

impl Places {
    /// As the settings name them just now: `dir` is where the process works. A log that has begun stays where it is.
    fn now(engine: &Engine) -> io::Result<Self> {
        let text = |name: &str| String::from_utf8_lossy(&engine.config.text(name)).into_owned();
        let folder = std::path::absolute(text("appenddirname"))?;
        Ok(Self { folder, base: text("appendfilename") })
    }
    /// The log's folder, for this server alone.
    fn lock(&self) -> io::Result<Arc<dyn Disk>> {
        let folder = &self.folder;
        Folder::lock(folder).map(|disk| Arc::new(disk) as Arc<dyn Disk>).map_err(|error| {
            let text = match error.kind() {
                io::ErrorKind::WouldBlock => {
                    format!("another server keeps its log in {}: choose another dir", folder.display())
                }
                _ => format!("cannot keep a log: {error}"),
            };
            io::Error::new(error.kind(), text)
        })
    }
}

/// What is kept, before the server runs.
pub(crate) struct Persistence {
    engine: &'static Engine,
    desk: Arc<Desk>,
    places: Places,
    /// Whether there was to be a log when the server started. What CONFIG SET says since is an order.
    wants_log: bool,
    found: Found,
    import: Option<Import>,
}

impl Persistence {
    /// Finds what was kept, and has the log's folder to itself where there is to be one.
    ///
    /// # Errors
    /// What keeps the server from starting.
    pub(crate) fn find(engine: &'static Engine, import: Option<Import>) -> io::Result<Self> {
        let text = |name: &str| String::from_utf8_lossy(&engine.config.text(name)).into_owned();
        let places = Places::now(engine)?;
        let wants_log = engine.config.text("appendonly") == b"yes";
        let found = Found::look(&places, wants_log, &text("dbfilename"))?;
        snapshot::clear_what_is_left(&text("dbfilename"));
        // Behind this CONFIG SET gives orders, also while what was kept is loaded.
        engine.durable.log.is_on.store(wants_log, Relaxed);
        let desk = Arc::new(Desk::default());
        let (orders, held) = (Arc::clone(&desk), Arc::clone(&desk));
        engine.durable.set_taker(Box::new(move |order| orders.order(order)));
        engine.safe.set_waker(move || held.wake());
        let behind = Arc::clone(&desk);
        engine.keyspace.on_behind(move || {
            engine.hold_writes_back(true);
            behind.wake();
        });
        // Nothing is written before the log that is to have it.
        engine.set_loading(wants_log || found.is_something() || import.is_some());
        if found.is_something() || import.is_some() {
            desk.loads();
        }
        Ok(Self { engine, desk, places, wants_log, found, import })
    }
    /// How the thread is told to stop.
    pub(crate) fn desk(&self) -> Arc<Desk> {
        Arc::clone(&self.desk)
    }

    /// Loads what was kept, and keeps what is told until the server stops.
    ///
    /// # Errors
    /// When what was kept cannot be loaded: the server must not go on without it.
    pub(crate) fn run<'s>(self, scope: &'s Scope<'s, '_>) -> io::Result<()> {
        let Self { engine, desk, places, wants_log, found, import } = self;
        let no_place = || io::Error::other("the keyspace has no place for the thread that keeps it");
        let worker = engine.keyspace.worker().ok_or_else(no_place)?;
        let mut keeper = Keeper {
            engine,
            desk,
            places,
            worker,
            following: None,
            disk: None,
            waiting: Vec::new(),
            job: None,
            job_is_to_begin: false,
            rewrite_ordered: false,
            save_ordered: None,
            begun: Vec::new(),
            why_not_begun: String::new(),
            begins_behind: false,
            rest: due::Rest::default(),
            is_ahead: false,
            retry_at: None,
            second_at: Instant::now() + SECOND,
            sleep: SLEEP_MIN,
        };
        let loaded = keeper.load(found, import);
        if keeper.desk.ends_loading() {
            return Ok(());
        }
        keeper.start(loaded?, wants_log)?;
        // A log that begins behind a snapshot of what was loaded is waited for: what is answered is kept.
        if keeper.following.as_ref().is_none_or(|following| !following.is_pending()) {
            engine.set_loading(false);
        }
        keeper.keep(scope);
        Ok(())
    }
}

/// Whether it is for want of room.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The thread's own.
struct Keeper {
    engine: &'static Engine,
    desk: Arc<Desk>,
    places: Places,
    worker: Worker<'static>,
    /// The log that is written.
    following: Option<Following>,
    /// Its folder, which stays locked as long as a log is wanted.
    disk: Option<Arc<dyn Disk>>,
    /// Clients that wait until an epoch is on the disk.
    waiting: Vec<(Waiting, u64)>,
    /// The snapshot that is being made.
    job: Option<Job>,
    /// It has no moment yet.
    job_is_to_begin: bool,
    /// Another one is to follow, for the log.
    rewrite_ordered: bool,
    /// And one by itself, which somebody may wait for.
    save_ordered: Option<Option<Waiting>>,
    /// Clients that wait until a log has begun.
    begun: Vec<Waiting>,
    /// Why the last try to begin one has failed.
    why_not_begun: String,
    /// One is to begin when the snapshot that was for the log before has given its folder up.
    begins_behind: bool,
    /// A log that is long is left as it is for a while.
    rest: due::Rest,
    /// Memory is ahead of a log that failed: writes are refused until there is another one.
    is_ahead: bool,
    /// When a log is begun again that failed.
    retry_at: Option<Instant>,
    second_at: Instant,
    sleep: Duration,
}

impl Keeper {
    /// Loads what was found, or the import where that is nothing. Nothing is written.
    fn load(&mut self, found: Found, import: Option<Import>) -> io::Result<Loaded> {
        let engine = self.engine;
        let loaded = load::load(engine, &mut self.worker, found)?;
        match import {
            Some(import) if loaded.kept.is_some() || load::holds_something(engine) => {
                notice!("{} is not imported: there is what this server has kept", import.name);
            }
            Some(import) => import::import(engine, import)?,
            None => {}
        }
        Ok(loaded)
    }
    /// Begins the log, or goes on with it.
    fn start(&mut self, loaded: Loaded, wants_log: bool) -> io::Result<()> {
        let engine = self.engine;
        if !wants_log {
            return Ok(());
        }
        let disk = match loaded.disk {
            Some(disk) => disk,
            None => self.places.lock()?,
        };
        self.disk = Some(Arc::clone(&disk));
        let (options, shown) = (self.options(), disk.shown("."));
        let following = match loaded.kept {
            Some(kept) => Following::go_on(engine, &mut self.worker, (disk, options), kept),
            // What came from elsewhere is in no log: one begins behind a snapshot of it.
            None if load::holds_something(engine) => {
                self.begin_log(true);
                return Ok(());
            }
            None => Following::first(engine, &mut self.worker, (disk, options)),
        };
        match following {
            Ok(following) => {
                self.following = Some(following);
                self.log_goes_on()?;
            }
            // What was kept is whole, and can be read meanwhile.
            Err(error) if is_full(&error) => self.begin_failed(&error),
            Err(error) => {
                return Err(io::Error::new(
                    error.kind(),
                    format!("the log in {shown} cannot go on: {error}"),
                ));
            }
        }
        Ok(())
    }

    fn options(&self) -> LogOptions {
        LogOptions { base: self.places.base.clone(), segment_bytes: SEGMENT_BYTES }
    }
    fn keep<'s>(&mut self, scope: &'s Scope<'s, '_>) {
        loop {
            let stops = self.desk.is_stopping();
            self.take_orders();
            let was_busy = self.follow();
            self.take_made();
            self.look_at_clock();
            self.start_job(scope);
            if stops {
                return self.end();
            }
            self.sleep = if was_busy { SLEEP_MIN } else { (self.sleep * 2).min(SLEEP_MAX) };
            let engine = self.engine;
            let held = engine.special.has(weft_engine::special::WITHHELD)
                && engine.keyspace.told_epoch() > engine.safe.epoch();
            self.desk.wait(if held { SLEEP_WITHHELD } else { self.sleep });
        }
    }

    /// Writes and syncs what has become true. Says whether there was anything.
    fn follow(&mut self) -> bool {
        let is_pressed = !self.waiting.is_empty();
        let Some(following) = &mut self.following else { return false };
        match following.follow(is_pressed, Instant::now()) {
            Ok(was_busy) => {
                let unsynced = following.unsynced_epoch();
                let engine = self.engine;
                self.waiting.retain(|(waiting, epoch)| {
                    if *epoch < unsynced {
                        engine.answer(waiting, |sink| {
                            sink.array(2);
                            sink.int(1);
                            sink.int(0);
                        });
                    }
                    *epoch >= unsynced && !engine.waits_no_more(waiting)
                });
                was_busy
            }
            Err(error) => {
                self.log_failed(&error);
                true
            }
        }
    }

    /// The log could not be written: memory is ahead of it.
    fn log_failed(&mut self, error: &io::Error) {
        let Some(following) = self.following.take() else { return };
        drop(following);
        self.orphan_job();
        warning!(
            "The log cannot be written: {error}. Writes are refused until a new one has begun behind a snapshot"
        );
        let why = format!(
            "the log cannot be written ({}); writes go on when a new one has begun, which is tried every second",
            cause(error)
        );
        self.engine.refuse_writes(Refuser::Log, Some(&why));
        self.is_ahead = true;
        self.engine.durable.log.has_failed.store(true, Relaxed);
        // What was let in before waits, with its replies, for the log that is lost, and is told so.
        self.engine.keyspace.outlast_batches(BATCHES_MAX);
        self.engine.end_synced(true);
        self.engine.hold_writes_back(false);
        self.fail_waiting();
        self.why_not_begun = format!("{error}. It is tried every second");
        self.retry_at = Some(Instant::now() + RETRY);
    }
    /// There is no log any more.
    fn fail_waiting(&mut self) {
        for (waiting, _) in self.waiting.drain(..) {
            self.engine.answer(&waiting, |sink| {
                sink.array(2);
                sink.int(0);
                sink.int(0);
            });
        }
    }

    /// It is written. Whether there is to be one is said at the start and by CONFIG SET, whose orders may still wait.
    /// Replies wait for it, if they are to, before the first write goes on.
    fn log_goes_on(&mut self) -> io::Result<()> {
        if let Some(following) = &mut self.following {
            following.sync(false, Instant::now())?;
        }
        self.is_ahead = false;
        self.engine.durable.log.has_failed.store(false, Relaxed);
        self.engine.set_loading(false);
        match &mut self.following {
            Some(following) => following.say_room(),
            None => Ok(()),
        }
    }
    /// Who has asked for a log has it, and its figures say so.
    fn answer_begun(&mut self) {
        for waiting in self.begun.drain(..) {
            self.engine.answer(&waiting, |sink| sink.ok());
        }
    }

    fn take_orders(&mut self) {
        let orders = std::mem::take(&mut self.desk.inbox().orders);
        for order in orders {
            match order {
                Order::Snapshot(waiting) => self.save(waiting),
                Order::Rewrite if self.following.is_none() => self.save(None),
                Order::Rewrite => self.order_rewrite(),
                Order::Cancel => self.cancel_save(),
                Order::Log(true) => self.begin_log_here(),
                Order::Log(false) => self.end_log(),
                Order::Settled(waiting) => self.answer_when_settled(waiting),
                Order::Synced(waiting, epoch) => {
                    self.waiting.push((waiting, epoch));
                    if self.following.is_none() {
                        self.fail_waiting();
                    }
                }
            }
        }
    }

    /// A snapshot that was to take the place of a log that has ended is of an earlier moment than the next log begins.
    fn orphan_job(&mut self) {
        if let Some(job) = &self.job {
            job.orphan();
        }
    }

    /// SAVE and BGSAVE, and save points.
    fn save(&mut self, waiting: Option<Waiting>) {
        let saves = self.job.as_ref().is_some_and(|job| matches!(job.purpose(), Purpose::ByItself(_)));
        if saves || self.save_ordered.is_some() {
            if let Some(waiting) = waiting {
                let error = Error::err("Background save already in progress");
                self.engine.answer(&waiting, |sink| sink.error(&error));
            }
            return;
        }
        if self.job.is_some() {
            // It waits for the one that takes the place of the log.
            self.engine.durable.saves.is_saving.store(true, Relaxed);
            self.save_ordered = Some(waiting);
            return;
        }
        self.job = Some(Job::new(self.engine, Purpose::ByItself(waiting)));
        self.job_is_to_begin = true;
    }

    /// BGSAVE CANCEL.
    fn cancel_save(&mut self) {
        if let Some(waiting) = self.save_ordered.take() {
            snapshot::give_up(self.engine, waiting);
        } else if let Some(job) = &self.job
            && matches!(job.purpose(), Purpose::ByItself(_))
        {
            job.cancel();
        }
    }

    /// What the clock asks for: room, a log that failed, save points, a log that has become long.
    fn look_at_clock(&mut self) {
        let now = Instant::now();
        if self.retry_at.is_some_and(|at| at <= now) {
            self.begin_log(false);
        }
        if now < self.second_at {
            return;
        }
        self.second_at = now + SECOND;
        if let Some(following) = &mut self.following {
            let result = following.look_at_room().and_then(|()| following.rest(now));
            if let Err(error) = result {
                return self.log_failed(&error);
            }
        }
        if self.job.is_none() {
            if due::is_save_due(self.engine) {
                notice!("A save point is reached: a snapshot is made");
                self.save(None);
            } else if let Some(following) = &mut self.following
                && self.rest.is_over(self.engine, now)
                && (following.log().is_of_many() || due::is_log_long(self.engine))
            {
                notice!("The log has become long: a snapshot takes its place");
                self.rewrite_ordered = true;
            }
        }
    }

    /// A snapshot is to take the place of the log, as soon as no other one is made.
    fn order_rewrite(&mut self) {
        self.rewrite_ordered = true;
        self.engine.durable.log.is_rewrite_scheduled.store(self.job.is_some(), Relaxed);
    }
    fn start_job<'s>(&mut self, scope: &'s Scope<'s, '_>) {
        if self.rewrite_ordered && self.job.is_none() && self.following.is_some() {
            self.rewrite_ordered = false;
            self.engine.durable.log.is_rewrite_scheduled.store(false, Relaxed);
            self.job = Some(Job::new(self.engine, Purpose::Rewrite));
            self.job_is_to_begin = true;
        } else if self.job.is_none()
            && let Some(waiting) = self.save_ordered.take()
        {
            self.save(waiting);
        }
        if !std::mem::take(&mut self.job_is_to_begin) {
            return;
        }
        let Some(mut job) = self.job.take() else { return };
        let begun = job.begin(self.engine, &mut self.worker, self.following.as_mut()).and_then(|task| {
            let (engine, desk) = (self.engine, Arc::clone(&self.desk));
            let thread = std::thread::Builder::new().name("weft-snapshot".into());
            thread.spawn_scoped(scope, move || snapshot::run(engine, &desk, task)).map(drop)
        });
        match begun {
            Ok(()) => self.job = Some(job),
            Err(error) => self.job_failed(job, &error),
        }
    }

    /// A snapshot is over.
    fn take_made(&mut self) {
        let made = self.desk.inbox().made.take();
        let Some(made) = made else { return };
        let Some(job) = self.job.take() else { return };
        let snapshot = match (made.outcome, job.purpose()) {
            // The file was whole before it was cancelled.
            (SnapshotOutcome::Done(snapshot), Purpose::ByItself(_)) => snapshot,
            (_, Purpose::ByItself(_)) if job.is_orphaned() => return job.given_up(self.engine),
            (outcome, Purpose::Rewrite) if job.is_orphaned() => return self.take_orphan(outcome, job),
            (SnapshotOutcome::Done(snapshot), Purpose::Rewrite) => snapshot,
            (SnapshotOutcome::Failed(error), _) => return self.job_failed(job, &error),
            (SnapshotOutcome::Void, _) => {
                self.job = Some(job);
                self.job_is_to_begin = true;
                return;
            }
        };
        let bytes = snapshot.bytes();
        let Some(following) = self.following.as_mut().filter(|_| matches!(job.purpose(), Purpose::Rewrite))
        else {
            return job.succeeded(self.engine, bytes);
        };
        match following.replace(made.epoch, snapshot) {
            Ok(()) => {
                let goes_on = self.log_goes_on();
                job.succeeded(self.engine, bytes);
                match goes_on {
                    Ok(()) => self.answer_begun(),
                    Err(error) => self.log_failed(&error),
                }
            }
            Err(error) => {
                self.job_failed(job, &error);
                self.log_failed(&error);
            }
        }
    }
    /// What was to take the place of a log that has ended is over.
    fn take_orphan(&mut self, outcome: SnapshotOutcome, job: Job) {
        job.failed(self.engine, &io::Error::other("its log has ended meanwhile"));
        if let SnapshotOutcome::Done(snapshot) = outcome
            && let Err(error) = snapshot.discard()
        {
            warning!("A snapshot that nobody needs cannot be removed: {error}");
        }
        if std::mem::take(&mut self.begins_behind) {
            self.begin_log(true);
        }
    }
    fn job_failed(&mut self, job: Job, error: &io::Error) {
        if matches!(job.purpose(), Purpose::Rewrite) {
            // A log that was to begin behind it has not; another one goes on whole.
            if self.following.take_if(|following| following.is_pending()).is_some() {
                self.begin_failed(error);
            }
            if error.kind() == io::ErrorKind::NotFound {
                // The folder is gone, and what is written to it is lost.
                self.log_failed(error);
            }
            if let Some(following) = &mut self.following {
                following.cut_nowhere();
            }
        }
        self.rest.begin(Instant::now());
        job.failed(self.engine, error);
    }

    /// The server stops: what was told is written and synced; a snapshot, if one is wanted.
    fn end(&mut self) {
        let engine = self.engine;
        // A snapshot that is being made is over soon, and the one at the end begins only then.
        while self.job.is_some() && !self.job_is_to_begin {
            self.desk.wait(SLEEP_MAX);
            self.take_made();
        }
        let mut is_logged = false;
        if let Some(following) = self.following.take() {
            let is_pending = following.is_pending();
            match following.close() {
                Ok(()) if is_pending => warning!("The log had not begun yet: it is not kept"),
                Ok(()) => {
                    is_logged = true;
                    notice!("The log is on the disk");
                }
                Err(error) => warning!("The log could not be ended: {error}"),
            }
        }
        let has_points = !engine.config.text("save").is_empty();
        let saves = match engine.durable.farewell() {
            Farewell::Save => true,
            Farewell::AsConfigured => has_points,
            Farewell::NoSave => false,
        };
        if saves {
            snapshot::at_the_end(engine, &mut self.worker, is_logged);
        }
    }
}
