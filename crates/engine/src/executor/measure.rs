//! Owns: what is counted and timed when commands run. Does not own: the figures (`crate::stats`), the logs.
//!
//! Two looks at the clock cost as much as a GET, so commands that always take about the same short time are not timed
//! one by one: they share the time of their batch. Only a low `slowlog-log-slower-than` or the latency monitor has
//! every command timed.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use weft_protocol::table::{CommandId, policy};

use super::Core;
use crate::args::Args;
use crate::command_log::LogKind;
use crate::config::Settings;
use crate::session::Session;
use crate::stats::bump;
use crate::traits;

/// A threshold of the slow log below which quick commands may reach it: they are timed then.
const QUICK_US_MAX: i64 = 1000;

/// What a batch's commands are measured for, as the settings were when it began, or behind what has changed them.
pub(crate) struct Measures {
    /// `latency-tracking`.
    pub(crate) histograms: bool,
    /// Quick commands are timed too.
    pub(crate) every: bool,
    /// Requests of so many bytes may be for the log.
    pub(super) request_bytes: usize,
    /// Replies of so many bytes are for the log.
    pub(crate) reply_bytes: usize,
}

impl Measures {
    pub(crate) fn new(settings: &Settings) -> Self {
        let slow_us = settings.slowlog_slower_than_us.load(Relaxed);
        let bytes =
            |kind: LogKind| usize::try_from(kind.threshold(settings).load(Relaxed)).unwrap_or(usize::MAX);
        Self {
            histograms: settings.latency_tracking.load(Relaxed),
            every: (0..QUICK_US_MAX).contains(&slow_us) || settings.latency_threshold_ms.load(Relaxed) != 0,
            request_bytes: bytes(LogKind::LargeRequest),
            reply_bytes: bytes(LogKind::LargeReply),
        }
    }
    /// Whether who watches may be told of a command that took so long. Whom a shorter time than a slow one's concerns
    /// has every command timed.
    #[inline]
    pub(crate) fn concerns(&self, ns: u64) -> bool {
        self.every || ns >= QUICK_US_MAX.unsigned_abs() * 1000
    }
}

/// How a command began.
pub(super) struct Begun {
    timed: Option<Instant>,
    errors: u32,
    output_bytes: usize,
}

impl Begun {
    /// Errors of its sink before it.
    pub(super) const fn errors(&self) -> u32 {
        self.errors
    }
}

impl Core<'_> {
    /// What commands are measured for, by the settings of now.
    pub(super) fn look_at_measures(&mut self) {
        self.measures = Measures::new(&self.engine.settings);
    }
    /// A command is about to run. `errors` and `output_bytes`: of its sink, so far.
    #[inline]
    pub(super) fn begin_command(&mut self, id: CommandId, errors: u32, output_bytes: usize) -> Begun {
        self.local.began = None;
        let begins = self.begins.take();
        let timed =
            (self.measures.every || !is_quick(id) || self.is_long_message(id)).then(|| self.start(begins));
        Begun { timed, errors, output_bytes }
    }
    /// Whether it is a message that may take long, although most take a short time.
    fn is_long_message(&self, id: CommandId) -> bool {
        self.engine.pubsub.may_take_long() && id.spec().policy & policy::CHANNEL_FIRST != 0
    }
    /// A command is about to run that is timed: since when.
    #[inline]
    pub(super) fn start(&mut self, begins: Option<Instant>) -> Instant {
        *self.local.began.insert(begins.unwrap_or_else(Instant::now))
    }

    /// A command has run.
    #[inline]
    pub(super) fn end_command(
        &mut self,
        (id, args): (CommandId, &Args<'_>),
        session: &Session,
        begun: &Begun,
        (errors, output_bytes): (u32, usize),
    ) {
        let stats = &self.stats.by_command[usize::from(id.0)];
        bump(&self.stats.commands, 1);
        if errors > begun.errors {
            bump(&stats.failed, 1);
        }
        self.note_large(session, args, output_bytes.saturating_sub(begun.output_bytes));
        // One that blocks is counted when its wait has ended.
        let Some(timed) = begun.timed else { return self.count_quick(id, u32::from(session.wait.is_none())) };
        bump(&stats.calls, u64::from(session.wait.is_none()));
        self.took((id, args), session, timed);
    }

    /// A command that was timed has run.
    #[inline]
    pub(super) fn took(&mut self, (id, args): (CommandId, &Args<'_>), session: &Session, started: Instant) {
        self.took_until((id, args), session, (started, Instant::now()));
    }
    /// The same, when that was.
    pub(super) fn took_until(
        &mut self,
        (id, args): (CommandId, &Args<'_>),
        session: &Session,
        (started, ended): (Instant, Instant),
    ) {
        let took = ended.saturating_duration_since(started);
        self.ended = Some(ended);
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.charged_ns = self.charged_ns.saturating_add(ns);
        // The logs are told of one that blocks when it has ended.
        if let Some(wait) = &session.wait {
            return wait.spent(ns);
        }
        self.stats.by_command[usize::from(id.0)].took(ns, 1, self.measures.histograms);
        if self.measures.concerns(ns) {
            self.engine.took(session, args, took, self.now_ms);
        }
    }

    /// A command has run whose request or reply may be for the logs of large ones.
    #[inline]
    pub(super) fn note_large(&self, session: &Session, args: &Args<'_>, reply_bytes: usize) {
        if reply_bytes >= self.measures.reply_bytes || args.bytes_max() >= self.measures.request_bytes {
            self.engine.was_large(session, args, reply_bytes, self.now_ms);
        }
    }

    /// A quick command has run, so many times. Its time is known when the batch is over.
    #[inline]
    pub(super) fn count_quick(&mut self, id: CommandId, times: u32) {
        bump(&self.stats.by_command[usize::from(id.0)].calls, u64::from(times));
        // Neighbours are mostly alike.
        match self.quick.last_mut() {
            Some((last, before)) if *last == id => *before += times,
            _ => self.quick.push((id, times)),
        }
    }

    /// Commands of a transaction are about to run under their locks, whose time is EXEC's too.
    pub(super) fn begin_inner(&mut self, started: Instant) -> Outer {
        std::mem::swap(&mut self.quick, &mut self.quick_outside);
        Outer { started, charged_ns: self.charged_ns }
    }
    /// They have run, until now: quick ones share what the others have not taken. To the batch all of it is EXEC's
    /// time.
    pub(super) fn charge_inner(&mut self, outer: &Outer, ended: Instant) {
        self.charge((outer.started, ended), self.charged_ns - outer.charged_ns);
        self.charged_ns = outer.charged_ns;
        self.quick.clear();
        std::mem::swap(&mut self.quick, &mut self.quick_outside);
    }

    /// A batch is over.
    #[inline]
    pub(super) fn charge_batch(&mut self, started: Instant) {
        if !self.quick.is_empty() {
            self.charge((started, Instant::now()), self.charged_ns);
        }
    }

    /// Quick commands share this time, less what others were charged with: two looks at the clock for up to 64 commands
    /// rather than 128.
    fn charge(&self, (started, ended): (Instant, Instant), others_ns: u64) {
        let total_ns = u64::try_from(ended.saturating_duration_since(started).as_nanos()).unwrap_or(u64::MAX);
        let count = self.quick.iter().map(|&(_, times)| u64::from(times)).sum();
        let Some(share) = total_ns.saturating_sub(others_ns).checked_div(count) else { return };
        for &(id, times) in &self.quick {
            let stats = &self.stats.by_command[usize::from(id.0)];
            stats.took(share, u64::from(times), self.measures.histograms);
        }
    }
}

/// What a batch stood at when a transaction's commands began.
pub(super) struct Outer {
    started: Instant,
    charged_ns: u64,
}

/// Whether a command always takes about the same short time.
#[inline]
pub(crate) fn is_quick(id: CommandId) -> bool {
    traits::of(id) & traits::QUICK != 0
}
