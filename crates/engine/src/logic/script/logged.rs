//! Owns: the time of commands inside of a script, and what the logs of slow commands and large replies have of them.
//! Does not own: the logs (`crate::command_log`), when quick commands are timed ([`Measures`]).
//!
//! A script that may run again tells the logs when it is over: of a run that is taken back they have nothing.

use std::collections::VecDeque;
use std::time::{Duration, Instant};
use weft_protocol::table::CommandId;

use crate::args::{Args, command_id};
use crate::command_log::{LogEntry, LogKind};
use crate::context::Context;
use crate::engine::Engine;
use crate::error::Error;
use crate::executor::measure::{Measures, is_quick};
use crate::inner::Inner;
use crate::stats::bump;

/// Entries that are kept of a script that may run again: the last ones.
const KEPT_MAX: usize = 1024;

/// What a kept reply may have more in RESP, in times of its bytes: `:-9223372036854775808` is kept as nine.
const RESP_TIMES: usize = 3;

/// What is measured of the commands of one run.
pub(super) struct Logged {
    measures: Measures,
    /// What the logs are told when the run is over, and how many commands have run.
    kept: VecDeque<(LogKind, LogEntry)>,
    ran: u64,
}

impl Logged {
    pub(super) fn new(engine: &Engine) -> Self {
        Self { measures: Measures::new(&engine.settings), kept: VecDeque::new(), ran: 0 }
    }
    /// A command begins: since when, if it is timed.
    #[inline]
    pub(super) fn begin(&self, id: CommandId) -> Option<Instant> {
        (self.measures.every || !is_quick(id)).then(Instant::now)
    }
    /// It has run, and its reply stands there for a script that sees RESP of a version, unless it is an error.
    #[inline]
    pub(super) fn end(
        &mut self,
        inner: &mut Inner<'_, '_, '_>,
        args: &Args<'_>,
        begun: Option<Instant>,
        (resp, error): (u8, Option<&Error>),
    ) {
        self.ran += 1;
        if let Some(begun) = begun {
            self.took(inner, args, begun.elapsed());
        }
        if self.measures.reply_bytes <= inner.reply_bytes().saturating_mul(RESP_TIMES) || error.is_some() {
            self.large(inner, args, (resp, error));
        }
    }
    fn took(&mut self, inner: &mut Inner<'_, '_, '_>, args: &Args<'_>, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let context = inner.context();
        let stats = &context.engine.stats.workers[usize::from(context.local.worker)];
        stats.by_command[usize::from(command_id(args).0)].took(ns, 1, self.measures.histograms);
        if self.measures.concerns(ns) {
            context.engine.monitor_took(args, took, context.now_ms);
            let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            self.offer(inner, LogKind::Slow, (args, us));
        }
    }
    #[cold]
    fn large(&mut self, inner: &mut Inner<'_, '_, '_>, args: &Args<'_>, of: (u8, Option<&Error>)) {
        let bytes = match of {
            // A minus before it, its end behind it.
            (_, Some(error)) => error.line().len() + 3,
            (resp, None) => inner.captured().map_or(0, |reply| reply.resp_bytes(resp)),
        };
        self.offer(inner, LogKind::LargeReply, (args, bytes as u64));
    }
    fn offer(&mut self, inner: &mut Inner<'_, '_, '_>, kind: LogKind, (args, value): (&Args<'_>, u64)) {
        let at_once = inner.has_world();
        let Context { engine, session, now_ms, .. } = &*inner.context();
        let Some(entry) = LogEntry::of(kind, &engine.settings, (session, args), (value, *now_ms)) else {
            return;
        };
        // It does not run again.
        if at_once {
            return engine.command_logs.keep(kind, &engine.settings, entry);
        }
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((kind, entry));
    }
    /// The run is over, and is not taken back to run again.
    pub(super) fn note_all(&mut self, context: &Context<'_, '_>) {
        let engine = context.engine;
        bump(&engine.stats.workers[usize::from(context.local.worker)].commands, self.ran);
        for (kind, entry) in self.kept.drain(..) {
            engine.command_logs.keep(kind, &engine.settings, entry);
        }
    }
}
