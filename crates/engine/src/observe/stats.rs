//! Owns: what INFO counts. Does not own: when it is counted.
//!
//! What every command adds to stands in a part for each worker, which only that worker writes. CONFIG RESETSTAT cannot
//! write into it either: it begins a new generation, and a worker clears its part before its next batch; until then
//! the part counts as empty.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use weft_protocol::table::{COMMANDS, CommandId};

use crate::error::{Error, ErrorCode};
use crate::histogram::{Counts, Histogram, bucket_of};

/// Kinds of errors with a prefix of their own (of scripts) that are told apart.
const OTHER_ERRORS_MAX: usize = 128;
/// Bytes of such a prefix, as in Valkey; an error with a longer one is counted as `ERR`.
const WORD_BYTES_MAX: usize = 30;
/// What they are counted under when there are more.
const OVERFLOW: &str = "ERRORSTATS_OVERFLOW";
/// Samples that a rate is the mean of.
const SAMPLES: usize = 16;

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
    /// How long it took how often, in nanoseconds; made when the command first runs.
    histogram: OnceLock<Box<Histogram>>,
}

impl CommandStats {
    /// Counts `times` runs of `ns` each.
    #[inline]
    pub fn took(&self, ns: u64, times: u64, with_histogram: bool) {
        bump(&self.time_ns, ns.saturating_mul(times));
        if with_histogram {
            self.histogram.get_or_init(Box::default).add(bucket_of(ns), times);
        }
    }
}

/// What one worker has received and sent.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Bytes received.
    pub bytes_in: AtomicU64,
    /// Bytes sent.
    pub bytes_out: AtomicU64,
    /// Reads from sockets that brought something.
    pub reads: AtomicU64,
    /// Times that something was sent to a socket.
    pub writes: AtomicU64,
}

impl Traffic {
    /// Bytes have come. Only the worker itself calls this.
    #[inline]
    pub fn received(&self, bytes: u64) {
        bump(&self.bytes_in, bytes);
        bump(&self.reads, 1);
    }
    /// Bytes have gone. Only the worker itself calls this.
    #[inline]
    pub fn sent(&self, bytes: u64) {
        bump(&self.bytes_out, bytes);
        bump(&self.writes, 1);
    }
    const fn figures(&self) -> [&AtomicU64; 4] {
        [&self.bytes_in, &self.bytes_out, &self.reads, &self.writes]
    }
}

/// The rounds of one worker's loop, each from when it wakes until it waits again.
#[derive(Debug, Default)]
pub struct Ticks {
    count: AtomicU64,
    time_ns: AtomicU64,
}

impl Ticks {
    /// So many rounds have passed, of which the last one took so long. Only the worker itself calls this, and not for
    /// every round: a look at the clock is one part in a hundred of a round with one command.
    pub fn passed(&self, rounds: u64, last_ns: u64) {
        bump(&self.count, rounds);
        bump(&self.time_ns, last_ns.saturating_mul(rounds));
    }
}

/// One worker's figures, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerStats {
    /// Requests that ran.
    pub commands: AtomicU64,
    /// Batches that they ran in.
    batches: AtomicU64,
    /// Error replies.
    pub errors: AtomicU64,
    /// Its sockets.
    pub traffic: Traffic,
    /// Its loop.
    pub ticks: Ticks,
    /// By command.
    pub by_command: Box<[CommandStats]>,
    /// Error replies by [`ErrorCode`].
    by_error: [AtomicU64; ErrorCode::ALL.len()],
    /// Error replies by a prefix of their own.
    by_prefix: Mutex<BTreeMap<Box<str>, u64>>,
    /// [`Stats::generation`] when the part was last cleared.
    generation: AtomicU64,
}

/// What keeps being sampled: a rate per second over the last 1.6 seconds or so.
#[derive(Debug, Default)]
struct Rate {
    last: u64,
    samples: [u64; SAMPLES],
    at: usize,
}

impl Rate {
    fn sample(&mut self, total: u64, passed_ms: u64) {
        // RESETSTAT makes totals smaller: nothing is known then.
        let per_second = total.saturating_sub(self.last).saturating_mul(1000) / passed_ms.max(1);
        self.last = total;
        self.samples[self.at % SAMPLES] = per_second;
        self.at += 1;
    }
    fn per_second(&self) -> u64 {
        self.samples.iter().sum::<u64>() / SAMPLES as u64
    }
}

#[derive(Debug, Default)]
struct Rates {
    sampled_ms: u64,
    commands: Rate,
    bytes_in: Rate,
    bytes_out: Rate,
    ticks: Rate,
    tick_ns: Rate,
}

/// The longest of some kind so far. Of background work: a command waits for a step at most, and only where both want
/// the same shard, so this bounds what expiry and compaction cost anybody. Of a worker's rounds: whoever has sent
/// something waits for the one under way.
#[derive(Debug, Default)]
pub struct LongestStep {
    wall_ns: AtomicU64,
    cpu_ns: AtomicU64,
}

impl LongestStep {
    /// A step has taken so long by the wall, in which its thread was on a CPU for `cpu_ns`.
    pub fn note(&self, wall_ns: u64, cpu_ns: u64) {
        self.wall_ns.fetch_max(wall_ns, Relaxed);
        self.cpu_ns.fetch_max(cpu_ns, Relaxed);
    }
    /// The longest by the wall and the longest by CPU time, in microseconds; they need not be the same step.
    #[must_use]
    pub fn us(&self) -> [u64; 2] {
        [&self.wall_ns, &self.cpu_ns].map(|figure| figure.load(Relaxed) / 1000)
    }
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
    /// Clients closed because they sent too much at once.
    pub query_limit_closed: AtomicU64,
    /// Clients closed because they did not read what was sent.
    pub output_limit_closed: AtomicU64,
    /// Handshakes of TLS that have succeeded, those of them that resumed a session, and those that have failed.
    pub tls_handshakes: AtomicU64,
    /// See there.
    pub tls_handshakes_resumed: AtomicU64,
    /// See there.
    pub tls_handshakes_failed: AtomicU64,
    /// Threads that drive workers.
    pub active_threads: AtomicU32,
    /// How often workers have gone from one thread to another.
    pub thread_handovers: AtomicU64,
    /// Most memory that was in use at once.
    pub used_peak_bytes: AtomicUsize,
    /// Background work.
    pub longest_step: LongestStep,
    /// The workers' rounds, of each millisecond the first.
    pub longest_tick: LongestStep,
    /// By worker.
    pub workers: Box<[WorkerStats]>,
    generation: AtomicU64,
    rates: Mutex<Rates>,
    /// The keyspace's counters when the present generation began.
    pub(crate) keyspace_base: [AtomicU64; 9],
    /// Cleared by RESETSTAT, so that the next sample begins anew.
    fresh: AtomicBool,
}

/// Adds to a figure that only one thread writes: no atomic addition.
#[inline]
pub fn bump(figure: &AtomicU64, by: u64) {
    figure.store(figure.load(Relaxed).wrapping_add(by), Relaxed);
}

/// The word of an error that it is counted under, if that is one of its own. One that is long, or behind which nothing
/// stands, is none: that is text, of which there may be any.
fn own_word(error: &Error) -> Option<&str> {
    let prefix = error.prefix.as_deref()?;
    let word = prefix.strip_suffix(' ').or_else(|| (!error.text.is_empty()).then_some(prefix))?;
    (word.len() <= WORD_BYTES_MAX).then_some(word)
}

impl WorkerStats {
    fn new() -> Self {
        Self {
            commands: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            traffic: Traffic::default(),
            ticks: Ticks::default(),
            by_command: COMMANDS.iter().map(|_| CommandStats::default()).collect(),
            by_error: std::array::from_fn(|_| AtomicU64::new(0)),
            by_prefix: Mutex::default(),
            generation: AtomicU64::new(0),
        }
    }
    /// An error was answered.
    #[cold]
    pub fn error(&self, error: &Error) {
        bump(&self.errors, 1);
        let Some(word) = own_word(error) else { return bump(&self.by_error[error.code as usize], 1) };
        let mut prefixes = self.by_prefix.lock();
        let known = prefixes.len() < OTHER_ERRORS_MAX || prefixes.contains_key(word);
        let word = if known { word } else { OVERFLOW };
        *prefixes.entry(word.into()).or_default() += 1;
    }
    fn clear(&self) {
        let traffic = self.traffic.figures();
        let others = [&self.commands, &self.batches, &self.errors, &self.ticks.count, &self.ticks.time_ns];
        for figure in others.into_iter().chain(traffic).chain(&self.by_error) {
            figure.store(0, Relaxed);
        }
        for command in &self.by_command {
            for figure in [&command.calls, &command.time_ns, &command.rejected, &command.failed] {
                figure.store(0, Relaxed);
            }
            if let Some(histogram) = command.histogram.get() {
                histogram.clear();
            }
        }
        self.by_prefix.lock().clear();
    }
}

impl Stats {
    pub(crate) fn new(workers: u16, now_ms: u64) -> Self {
        Self {
            started_ms: now_ms,
            connections: AtomicU64::new(0),
            rejected_connections: AtomicU64::new(0),
            query_limit_closed: AtomicU64::new(0),
            output_limit_closed: AtomicU64::new(0),
            tls_handshakes: AtomicU64::new(0),
            tls_handshakes_resumed: AtomicU64::new(0),
            tls_handshakes_failed: AtomicU64::new(0),
            active_threads: AtomicU32::new(u32::from(workers)),
            thread_handovers: AtomicU64::new(0),
            used_peak_bytes: AtomicUsize::new(0),
            longest_step: LongestStep::default(),
            longest_tick: LongestStep::default(),
            workers: (0..workers.max(1)).map(|_| WorkerStats::new()).collect(),
            generation: AtomicU64::new(0),
            rates: Mutex::new(Rates { sampled_ms: now_ms, ..Rates::default() }),
            keyspace_base: Default::default(),
            fresh: AtomicBool::new(true),
        }
    }

    /// Whether one thread runs the batches of all workers, so that they seldom meet anybody.
    #[inline]
    pub(crate) fn one_thread(&self) -> bool {
        self.active_threads.load(Relaxed) == 1
    }
    /// A worker begins a batch: its figures are of the present generation from here on.
    #[inline]
    pub(crate) fn begin(&self, worker: &WorkerStats) {
        let generation = self.generation.load(Relaxed);
        if worker.generation.load(Relaxed) != generation {
            worker.clear();
            worker.generation.store(generation, Relaxed);
        }
        bump(&worker.batches, 1);
    }
    /// Everything begins at nothing again. `worker`: whose thread this is.
    pub(crate) fn reset(&self, worker: u16) {
        self.generation.fetch_add(1, Relaxed);
        self.begin(&self.workers[usize::from(worker)]);
        for figure in [
            &self.connections,
            &self.rejected_connections,
            &self.query_limit_closed,
            &self.output_limit_closed,
            &self.tls_handshakes,
            &self.tls_handshakes_resumed,
            &self.tls_handshakes_failed,
            &self.longest_step.wall_ns,
            &self.longest_step.cpu_ns,
            &self.longest_tick.wall_ns,
            &self.longest_tick.cpu_ns,
        ] {
            figure.store(0, Relaxed);
        }
        self.fresh.store(true, Relaxed);
    }
    /// The workers' parts of the present generation.
    fn current(&self) -> impl Iterator<Item = &WorkerStats> {
        let generation = self.generation.load(Relaxed);
        self.workers.iter().filter(move |worker| worker.generation.load(Relaxed) == generation)
    }

    /// Requests that ran.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.current().map(|worker| worker.commands.load(Relaxed)).sum()
    }
    /// Batches that they ran in.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.current().map(|worker| worker.batches.load(Relaxed)).sum()
    }
    /// Bytes received, bytes sent, reads, writes.
    #[must_use]
    pub fn traffic(&self) -> [u64; 4] {
        let mut sum = [0; 4];
        for worker in self.current() {
            let figures = worker.traffic.figures();
            sum.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure.load(Relaxed));
        }
        sum
    }
    /// Rounds of the workers' loops, and how long they took, in nanoseconds.
    #[must_use]
    pub fn ticks(&self) -> [u64; 2] {
        let figures = self
            .current()
            .map(|worker| [worker.ticks.count.load(Relaxed), worker.ticks.time_ns.load(Relaxed)]);
        figures.fold([0; 2], |[count, ns], [more, more_ns]| [count + more, ns + more_ns])
    }
    /// How long all commands took, in nanoseconds.
    #[must_use]
    pub fn command_ns(&self) -> u64 {
        let worker = |worker: &WorkerStats| -> u64 {
            worker.by_command.iter().map(|command| command.time_ns.load(Relaxed)).sum()
        };
        self.current().map(worker).sum()
    }
    /// Error replies.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.current().map(|worker| worker.errors.load(Relaxed)).sum()
    }
    /// Error replies by prefix.
    #[must_use]
    pub fn errors_by_prefix(&self) -> BTreeMap<Box<str>, u64> {
        let mut sums: BTreeMap<Box<str>, u64> = BTreeMap::new();
        for worker in self.current() {
            for (code, count) in ErrorCode::ALL.iter().zip(&worker.by_error) {
                match count.load(Relaxed) {
                    0 => {}
                    count => *sums.entry(code.prefix().into()).or_default() += count,
                }
            }
            for (prefix, count) in worker.by_prefix.lock().iter() {
                *sums.entry(prefix.clone()).or_default() += count;
            }
        }
        sums
    }
    /// One command's calls, nanoseconds, rejections and failures.
    #[must_use]
    pub fn command(&self, id: CommandId) -> [u64; 4] {
        let mut sum = [0; 4];
        for worker in self.current() {
            let stats = &worker.by_command[usize::from(id.0)];
            let figures = [&stats.calls, &stats.time_ns, &stats.rejected, &stats.failed];
            sum.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure.load(Relaxed));
        }
        sum
    }
    /// How long one command took how often, in nanoseconds; nothing when it never ran.
    #[must_use]
    pub fn histogram(&self, id: CommandId) -> Option<Counts> {
        let mut sum: Option<Counts> = None;
        for worker in self.current() {
            if let Some(part) = worker.by_command[usize::from(id.0)].histogram.get() {
                sum.get_or_insert_default().add(part);
            }
        }
        sum.filter(|counts| !counts.is_empty())
    }

    /// How long all commands took how often, in nanoseconds.
    #[must_use]
    pub fn times(&self) -> Counts {
        let mut sum = Counts::default();
        for worker in self.current() {
            worker
                .by_command
                .iter()
                .filter_map(|command| command.histogram.get())
                .for_each(|part| sum.add(part));
        }
        sum
    }

    /// Takes a sample of the rates, if a tenth of a second has passed since the last one.
    pub(crate) fn sample(&self, now_ms: u64) {
        let Some(mut rates) = self.rates.try_lock() else { return };
        if self.fresh.swap(false, Relaxed) {
            *rates = Rates { sampled_ms: now_ms, ..Rates::default() };
            return;
        }
        let passed_ms = now_ms.saturating_sub(rates.sampled_ms);
        if passed_ms < 100 {
            return;
        }
        rates.sampled_ms = now_ms;
        rates.commands.sample(self.commands(), passed_ms);
        let [bytes_in, bytes_out, ..] = self.traffic();
        rates.bytes_in.sample(bytes_in, passed_ms);
        rates.bytes_out.sample(bytes_out, passed_ms);
        let [ticks, tick_ns] = self.ticks();
        rates.ticks.sample(ticks, passed_ms);
        rates.tick_ns.sample(tick_ns, passed_ms);
    }
    /// Commands, bytes received and bytes sent per second.
    #[must_use]
    pub fn rates(&self) -> [u64; 3] {
        let rates = self.rates.lock();
        [rates.commands.per_second(), rates.bytes_in.per_second(), rates.bytes_out.per_second()]
    }
    /// Rounds of the workers' loops per second, and how many nanoseconds one took.
    #[must_use]
    pub fn tick_rates(&self) -> [u64; 2] {
        let rates = self.rates.lock();
        let per_second = rates.ticks.per_second();
        [per_second, rates.tick_ns.per_second() / per_second.max(1)]
    }
}
