//! Owns: what INFO counts. Does not own: when it is counted.
//!
//! What every command adds to stands in a part for each worker, which only that worker writes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weft_protocol::table::{COMMANDS, CommandId};

/// One command's figures, of one worker.
#[derive(Debug, Default)]
pub struct CommandStats {
    /// Times it ran.
    pub calls: AtomicU64,
    /// Time it took, in nanoseconds; fast commands share the time of their batch.
    pub time_ns: AtomicU64,
    /// Times it was refused before it ran.
    pub rejected: AtomicU64,
    /// Times it answered an error.
    pub failed: AtomicU64,
}

/// One worker's figures, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerStats {
    /// Requests that ran.
    pub commands: AtomicU64,
    /// Error replies.
    pub errors: AtomicU64,
    /// By command.
    pub by_command: Box<[CommandStats]>,
}

/// All figures.
#[derive(Debug)]
pub struct Stats {
    /// When the server started.
    pub started_ms: u64,
    /// Clients that have come.
    pub connections: AtomicU64,
    /// Connections refused by `maxclients`.
    pub rejected_connections: AtomicU64,
    /// Bytes received.
    pub bytes_in: AtomicU64,
    /// Bytes sent.
    pub bytes_out: AtomicU64,
    /// By worker.
    pub workers: Box<[WorkerStats]>,
}

/// Adds to a figure that only one thread writes: no atomic addition.
#[inline]
pub fn bump(figure: &AtomicU64, by: u64) {
    figure.store(figure.load(Relaxed).wrapping_add(by), Relaxed);
}

impl Stats {
    pub(crate) fn new(workers: u16, now_ms: u64) -> Self {
        let worker = || WorkerStats {
            commands: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            by_command: COMMANDS.iter().map(|_| CommandStats::default()).collect(),
        };
        Self {
            started_ms: now_ms,
            connections: AtomicU64::new(0),
            rejected_connections: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            workers: (0..workers.max(1)).map(|_| worker()).collect(),
        }
    }
    /// Requests that ran.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.workers.iter().map(|worker| worker.commands.load(Relaxed)).sum()
    }
    /// One command's calls, nanoseconds, rejections and failures.
    #[must_use]
    pub fn command(&self, id: CommandId) -> [u64; 4] {
        let mut sum = [0; 4];
        for worker in &self.workers {
            let stats = &worker.by_command[usize::from(id.0)];
            let figures = [&stats.calls, &stats.time_ns, &stats.rejected, &stats.failed];
            sum.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure.load(Relaxed));
        }
        sum
    }
}
