//! Owns: beginning a log on a server that runs, and ending it: whose folder it is, what follows where that fails, who
//! waits for it. Does not own: writing it (`super::log`), what is loaded at the start (`super::load`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use weft_engine::durable::{Refuser, Waiting};
use weft_engine::error::Error;
use weft_persist::FoundLog;
use weft_persist::disk::{Disk, cause};

use super::log::Following;
use super::snapshot::Job;
use super::{Keeper, Places, RETRY};
use crate::warning;

impl Keeper {
    /// CONFIG SET appendonly yes: as in Valkey, in the `dir` of that moment, whatever log was there before.
    pub(super) fn begin_log_here(&mut self) {
        if self.disk.is_none() {
            match Places::now(self.engine) {
                Ok(places) => self.places = places,
                Err(error) => return self.begin_failed(&error),
            }
        }
        self.begin_log(true);
    }

    /// The log's folder for this server alone. Where it is tried again, and is not the one that this server has had all
    /// the time, a log that stands there is somebody else's: it is not written over.
    fn take_folder(&mut self, is_ordered: bool) -> io::Result<Arc<dyn Disk>> {
        if let Some(disk) = self.disk.take().filter(|disk| disk.is_ours()) {
            return Ok(disk);
        }
        let disk = self.places.lock()?;
        let found = FoundLog::find(Arc::clone(&disk), &self.places.base);
        let is_free = matches!(&found, Ok(kept) if kept.as_ref().is_none_or(FoundLog::is_empty));
        if is_ordered || is_free {
            return Ok(disk);
        }
        Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            format!("there is another log in {} by now, which stays as it is", self.places.folder.display()),
        ))
    }

    /// A log begins behind a snapshot of all that there is: what is told is followed from now on, and counts when the
    /// snapshot is there.
    pub(super) fn begin_log(&mut self, is_ordered: bool) {
        self.retry_at = None;
        if self.following.is_some() {
            return;
        }
        if self.job.as_ref().is_some_and(Job::is_of_no_log) {
            self.begins_behind = true;
            return;
        }
        let disk = match self.take_folder(is_ordered) {
            Ok(disk) => disk,
            Err(error) => return self.begin_failed(&error),
        };
        self.disk = Some(Arc::clone(&disk));
        let options = self.options();
        match Following::begin(self.engine, &mut self.worker, disk, options) {
            Ok(following) => {
                self.following = Some(following);
                self.rewrite_ordered = true;
            }
            Err(error) => self.begin_failed(&error),
        }
    }
    /// Who has asked for a log is answered when what is told is kept; for none, when there is none.
    pub(super) fn answer_when_settled(&mut self, waiting: Waiting) {
        let has_failed = self.engine.durable.log.has_failed.load(Relaxed);
        match &self.following {
            Some(following) if !following.is_pending() => self.engine.answer(&waiting, |sink| sink.ok()),
            None if !has_failed && !self.begins_behind => self.engine.answer(&waiting, |sink| sink.ok()),
            _ => self.begun.push(waiting),
        }
        if has_failed && self.following.is_none() {
            let why = self.why_not_begun.clone();
            self.refuse_begun(&why);
        }
    }
    /// There is no log yet.
    pub(super) fn refuse_begun(&mut self, why: &str) {
        let error = Error::err(format!("There is no log yet: {why}"));
        for waiting in self.begun.drain(..) {
            self.engine.answer(&waiting, |sink| sink.error(&error));
        }
    }
    pub(super) fn begin_failed(&mut self, error: &io::Error) {
        // What is somebody else's is left to him.
        let tries = error.kind() != io::ErrorKind::ResourceBusy;
        let then =
            if tries { "it is tried every second" } else { "it is not tried again: choose another dir" };
        warning!("A log cannot be begun: {error}; {then}");
        if error.kind() == io::ErrorKind::NotFound {
            // The folder is gone, and its lock with it: the next try makes another one.
            self.disk = None;
        }
        if self.engine.special.has(weft_engine::special::LOADING) {
            let why = format!("the log could not be begun ({}); {then}", cause(error));
            self.engine.refuse_writes(Refuser::Log, Some(&why));
            self.engine.set_loading(false);
        } else if self.is_ahead {
            let why = format!(
                "the log cannot be written, and no other one can be begun ({}); {then}",
                cause(error)
            );
            self.engine.refuse_writes(Refuser::Log, Some(&why));
        }
        let why = format!("{error}. I{}", &then[1..]);
        self.refuse_begun(&why);
        self.why_not_begun = why;
        self.engine.durable.log.has_failed.store(true, Relaxed);
        self.retry_at = tries.then(|| Instant::now() + RETRY);
    }

    /// CONFIG SET appendonly no. What was written stays where it is.
    pub(super) fn end_log(&mut self) {
        self.retry_at = None;
        // Until it has ended replies wait for it, and nothing holds them behind it.
        let ended = self.following.take().map_or(Ok(()), Following::close);
        if let Err(error) = &ended {
            warning!("The log could not be ended: {error}");
        }
        self.engine.end_synced(ended.is_err());
        self.engine.hold_writes_back(false);
        self.engine.refuse_writes(Refuser::Log, None);
        self.is_ahead = false;
        self.engine.durable.log.has_failed.store(false, Relaxed);
        self.fail_waiting();
        self.refuse_begun("it was ended before it had begun");
        self.orphan_job();
        self.rewrite_ordered = false;
        self.engine.durable.log.is_rewrite_scheduled.store(false, Relaxed);
        self.begins_behind = false;
        self.disk = None;
        // One that had not begun yet was waited for.
        self.engine.set_loading(false);
    }
}
