//! Owns: what is counted while a command fires or a script runs, so that one that runs again with the keyspace to
//! itself is counted once. Does not own: the figures.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weft_protocol::table::CommandId;

use super::Figures;
use crate::stats::{WorkerStats, bump};

/// How often a trigger has fired and was passed over.
#[derive(Debug)]
struct Fired {
    figures: Arc<Figures>,
    fired: u64,
    passed_over: u64,
}

/// What the present request has counted since it fired, or its script began, if it may have to run again.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    notes: bool,
    /// Commands, how often they ran and how often they failed. They are few: what goes round goes round the same ones.
    commands: Vec<(CommandId, u64, u64)>,
    /// By where their figures are.
    triggers: HashMap<usize, Fired>,
}

impl Counted {
    /// From now on it is noted what is counted.
    pub(crate) const fn begin(&mut self) {
        self.notes = true;
    }
    /// A command has been counted.
    #[inline]
    pub(crate) fn command(&mut self, id: CommandId, failed: bool) {
        if self.notes {
            self.note_command(id, failed.into());
        }
    }
    fn note_command(&mut self, id: CommandId, failed: u64) {
        match self.commands.iter_mut().find(|(other, ..)| *other == id) {
            Some((_, calls, failures)) => (*calls, *failures) = (*calls + 1, *failures + failed),
            None => self.commands.push((id, 1, failed)),
        }
    }
    /// Counts a trigger that has fired.
    pub(crate) fn fired(&mut self, figures: &Arc<Figures>) {
        Figures::count(&figures.fired);
        if self.notes {
            self.of(figures).fired += 1;
        }
    }
    /// Counts a trigger whose condition does not hold.
    pub(crate) fn passed_over(&mut self, figures: &Arc<Figures>) {
        Figures::count(&figures.passed_over);
        if self.notes {
            self.of(figures).passed_over += 1;
        }
    }
    fn of(&mut self, figures: &Arc<Figures>) -> &mut Fired {
        let new = || Fired { figures: Arc::clone(figures), fired: 0, passed_over: 0 };
        self.triggers.entry(Arc::as_ptr(figures).addr()).or_insert_with(new)
    }
    /// The request has run. `again`: it is going to run again, and nothing of it counts.
    #[inline]
    pub(crate) fn end(&mut self, stats: &WorkerStats, again: bool) {
        if self.notes {
            self.end_notes(stats, again);
        }
    }
    fn end_notes(&mut self, stats: &WorkerStats, again: bool) {
        self.notes = false;
        for (id, calls, failed) in self.commands.drain(..).filter(|_| again) {
            let stats = &stats.by_command[usize::from(id.0)];
            bump(&stats.calls, calls.wrapping_neg());
            bump(&stats.failed, failed.wrapping_neg());
        }
        for (_, Fired { figures, fired, passed_over }) in self.triggers.drain().filter(|_| again) {
            figures.fired.fetch_sub(fired, Relaxed);
            figures.passed_over.fetch_sub(passed_over, Relaxed);
        }
    }
}
