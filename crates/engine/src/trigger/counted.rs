//! Owns: what is counted while a command fires, so that one that runs again with the keyspace to itself is counted
//! once. Does not own: the figures.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weft_protocol::table::CommandId;

use super::Figures;
use crate::stats::{WorkerStats, bump};

/// What was counted.
#[derive(Debug)]
enum Once {
    /// A command, and whether it has failed.
    Command(CommandId, bool),
    Fired(Arc<Figures>),
    PassedOver(Arc<Figures>),
}

/// What the present request has counted since it fired, if it may have to run again.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    notes: bool,
    all: Vec<Once>,
}

impl Counted {
    /// From now on it is noted what is counted.
    pub(super) const fn begin(&mut self) {
        self.notes = true;
    }
    /// A command has been counted.
    #[inline]
    pub(crate) fn command(&mut self, id: CommandId, failed: bool) {
        if self.notes {
            self.all.push(Once::Command(id, failed));
        }
    }
    /// Counts a trigger that has fired.
    pub(super) fn fired(&mut self, figures: &Arc<Figures>) {
        Figures::count(&figures.fired);
        if self.notes {
            self.all.push(Once::Fired(Arc::clone(figures)));
        }
    }
    /// Counts a trigger whose condition does not hold.
    pub(super) fn passed_over(&mut self, figures: &Arc<Figures>) {
        Figures::count(&figures.passed_over);
        if self.notes {
            self.all.push(Once::PassedOver(Arc::clone(figures)));
        }
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
        for once in self.all.drain(..).filter(|_| again) {
            match once {
                Once::Command(id, failed) => {
                    let stats = &stats.by_command[usize::from(id.0)];
                    bump(&stats.calls, 1_u64.wrapping_neg());
                    bump(&stats.failed, u64::from(failed).wrapping_neg());
                }
                Once::Fired(figures) => _ = figures.fired.fetch_sub(1, Relaxed),
                Once::PassedOver(figures) => _ = figures.passed_over.fetch_sub(1, Relaxed),
            }
        }
    }
}
