//! One case against one server: connections, preparation, warm-up, the measured run. Owns the threads and their phases.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use hdrhistogram::Histogram;
use weft_client::fleet::{Counts, Ended, Fleet, Pace, Until};
use weft_client::{Config, Connection, Protocol};
use weft_protocol::Reply;

use super::cases::{Case, Command, Setup};
use super::generator::{Generator, Live, Recipe, Wrong, histogram};
use super::keys::{Distribution, Keys};
use super::live::LiveLine;
use super::process::Usage;
use super::sizes::{Filler, Sizes};

/// Keys from which on a server is filled over several connections.
const MANY_KEYS: u64 = 1_000_000;

/// Everything about how a case is run but the case and the server.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) connections: u32,
    pub(crate) channels: u32,
    pub(crate) pipeline: u32,
    pub(crate) threads: u32,
    pub(crate) requests: u64,
    pub(crate) duration: Option<Duration>,
    pub(crate) warmup: Option<Duration>,
    pub(crate) rate: Option<f64>,
    pub(crate) keyspace: u64,
    pub(crate) distribution: Distribution,
    pub(crate) sizes: Sizes,
    pub(crate) seed: u64,
    pub(crate) verify: bool,
    pub(crate) reconnect: bool,
    /// A line on the terminal while it runs.
    pub(crate) live: bool,
}

/// A server under test.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) config: Config,
    /// Its process, if it is on this machine.
    pub(crate) pid: Option<u32>,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) label: String,
    pub(crate) protocol: Protocol,
    pub(crate) counts: Counts,
    pub(crate) elapsed: Duration,
    /// Since a batch was due.
    pub(crate) latency: Histogram<u64>,
    /// Since it was sent, at a fixed rate.
    pub(crate) service: Option<Histogram<u64>>,
    /// Of a mix, each command.
    pub(crate) kinds: Vec<(String, u64, Histogram<u64>)>,
    /// Values that were compared, and those that were wrong.
    pub(crate) checked: u64,
    pub(crate) mismatches: u64,
    /// The first of them: the key, what it held, shortened, and how many bytes that were.
    pub(crate) wrong: Option<Wrong>,
    /// CPU time of this process's sending threads.
    pub(crate) client_cpu_ns: u64,
    /// The server's process before and after.
    pub(crate) server: Option<(Usage, Usage)>,
    /// Commands that the server says it ran in between, the two questions left out.
    pub(crate) server_commands: Option<u64>,
}

impl Measured {
    /// Requests answered in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.counts.replies as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The server's CPU time for each request, in microseconds: by what the server counted, if it counts.
    pub(crate) fn server_cpu_us(&self) -> Option<f64> {
        let (before, after) = self.server?;
        let commands = self.server_commands.filter(|&count| count > 0).unwrap_or(self.counts.replies);
        (commands > 0).then(|| (after.cpu_ns.saturating_sub(before.cpu_ns)) as f64 / commands as f64 / 1e3)
    }

    /// This generator's CPU time for each request, in microseconds.
    pub(crate) fn client_cpu_us(&self) -> f64 {
        self.client_cpu_ns as f64 / self.counts.replies.max(1) as f64 / 1e3
    }

    /// Whether everything was answered, without an error, and every value was right.
    pub(crate) fn is_clean(&self) -> bool {
        self.counts.is_clean() && self.mismatches == 0
    }
}

/// The clock of the calling thread's CPU time.
fn thread_cpu_ns() -> u64 {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Connections of all threads to a server, which further runs use again.
pub(crate) struct Fleets(Vec<Fleet>);

impl Fleets {
    pub(crate) fn connect(server: &Server, plan: &Plan) -> Result<Fleets> {
        let threads = plan.threads.min(plan.connections);
        let share = |thread: u32| plan.connections / threads + u32::from(thread < plan.connections % threads);
        let fleets: Result<Vec<Fleet>, _> = (0..threads)
            .map(|thread| {
                let mut fleet = Fleet::connect(&server.config, share(thread), plan.channels)?;
                fleet.reconnect(plan.reconnect);
                Ok(fleet)
            })
            .collect();
        fleets.map(Fleets).map_err(|error: weft_client::Error| error.into())
    }
}

/// What all threads of a phase made.
struct Phase {
    counts: Counts,
    elapsed: Duration,
    generators: Vec<Generator>,
    cpu_ns: u64,
}

/// Runs prepared generators, one on each thread, to the end.
fn phase(
    fleets: &mut Fleets,
    generators: Vec<Generator>,
    pace: Pace,
    until: Until,
    stop: &AtomicBool,
    live: Option<&LiveLine>,
) -> Result<Phase> {
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let work = |fleet: &'_ mut Fleet, mut generator: Generator| {
            let (before, started) = (thread_cpu_ns(), Instant::now());
            let counts = fleet.run(&mut generator, pace, until, stop);
            counts.map(|counts| (counts, generator, thread_cpu_ns() - before, started.elapsed()))
        };
        // A single one runs here: thread and process are then one for those who look from outside.
        if fleets.0.len() == 1 && live.is_none() {
            let fleet = &mut fleets.0[0];
            return generators.into_iter().map(|generator| work(fleet, generator)).collect();
        }
        let threads: Vec<_> = fleets
            .0
            .iter_mut()
            .zip(generators)
            .map(|(fleet, generator)| scope.spawn(move || work(fleet, generator)))
            .collect();
        if let Some(live) = live {
            live.show_while(|| threads.iter().any(|thread| !thread.is_finished()));
        }
        let joined = threads.into_iter().map(|thread| thread.join().expect("a thread that drives panics"));
        joined.collect()
    });
    let mut phase =
        Phase { counts: Counts::default(), elapsed: Duration::ZERO, generators: Vec::new(), cpu_ns: 0 };
    for outcome in outcomes {
        let (counts, generator, cpu_ns, elapsed) = outcome?;
        phase.elapsed = phase.elapsed.max(elapsed);
        phase.counts.add(&counts);
        phase.generators.push(generator);
        phase.cpu_ns += cpu_ns;
    }
    Ok(phase)
}

/// What is sent before a case: in order, each number once.
pub(crate) fn prepare(server: &Server, plan: &Plan, setup: &[Setup], stop: &AtomicBool) -> Result<()> {
    let filler = Arc::new(Filler::new(plan.sizes.max()));
    for step in setup {
        let label = &step.argv[0];
        let command = Command { label: label.clone(), argv: step.argv.clone(), weight: 1, inline: false };
        let recipe = Recipe {
            protocol: server.config.protocol,
            commands: std::slice::from_ref(&command),
            sizes: &plan.sizes,
            filler: &filler,
            // A deep pipeline on one connection: quick, and the numbers come in order.
            pipeline: 256.min(step.times as usize),
            verified: true,
        };
        let keys = Keys::new(Distribution::Sequential, step.times, 0, plan.seed);
        let generator = Generator::new(&recipe, keys, step.times, plan.seed)?;
        // Keys of their own may come in any order: with several connections the server has work while this side writes.
        let connections = if step.times >= MANY_KEYS && label == "SET" { 8 } else { 1 };
        let connection = Plan { connections, channels: 1, threads: 1, reconnect: false, ..plan.clone() };
        let mut fleets = Fleets::connect(server, &connection)?;
        let done = phase(&mut fleets, vec![generator], Pace::Closed, Until::Exhausted, stop, None)?;
        if let Some((text, _)) = done.counts.error_texts.first() {
            bail!("{}, sent before the test, was answered {text:?}", step.argv.join(" "));
        }
        ensure!(done.counts.ended == Ended::Done, "the server did not answer all of {}", step.argv.join(" "));
    }
    Ok(())
}

/// Runs a case, its preparation included, and measures it.
pub(crate) fn run(server: &Server, plan: &Plan, case: &Case, stop: &AtomicBool) -> Result<Measured> {
    prepare(server, plan, &case.setup, stop).with_context(|| case.label.clone())?;
    let mut fleets = Fleets::connect(server, plan)?;
    run_on(&mut fleets, server, plan, case, stop)
}

/// Runs a case on connections that stand, and measures it.
pub(crate) fn run_on(
    fleets: &mut Fleets,
    server: &Server,
    plan: &Plan,
    case: &Case,
    stop: &AtomicBool,
) -> Result<Measured> {
    let inline = case.commands.iter().any(|command| command.inline);
    ensure!(
        !inline || server.config.protocol != Protocol::Respb,
        "{}: RESPB has no words on a line",
        case.label
    );
    let filler = Arc::new(Filler::new(plan.sizes.max()));
    let recipe = Recipe {
        protocol: server.config.protocol,
        commands: &case.commands,
        sizes: &plan.sizes,
        filler: &filler,
        pipeline: plan.pipeline as usize,
        verified: plan.verify,
    };
    let threads = fleets.0.len() as u64;
    let generators = |budget: u64, seed: u64| -> Result<Vec<Generator>> {
        let one = |thread: u64| {
            let first = plan.keyspace * thread / threads;
            let keys = Keys::new(plan.distribution, plan.keyspace, first, seed + thread);
            let share = budget / threads + u64::from(thread < budget % threads);
            Generator::new(&recipe, keys, share, seed + thread)
        };
        (0..threads).map(one).collect()
    };
    let pace = plan.rate.map_or(Pace::Closed, |rate| Pace::Fixed {
        batches_per_second: rate / f64::from(plan.pipeline) / threads as f64,
    });
    if let Some(time) = plan.warmup.filter(|time| !time.is_zero()) {
        let warm = generators(u64::MAX, plan.seed ^ 0x3a7)?;
        phase(fleets, warm, pace, Until::Elapsed(time), stop, None)?;
    }
    let (budget, until) = match plan.duration {
        Some(time) => (u64::MAX, Until::Elapsed(time)),
        None => (plan.requests, Until::Exhausted),
    };
    let mut ready = generators(budget, plan.seed)?;
    if plan.rate.is_some() {
        ready.iter_mut().for_each(Generator::keep_service);
    }
    let live = plan.live.then(|| {
        let shared: Vec<_> = ready.iter().map(|_| Arc::new(Mutex::new(Live::new()))).collect();
        ready.iter_mut().zip(&shared).for_each(|(generator, live)| generator.show_live(Arc::clone(live)));
        LiveLine::new(&case.label, shared)
    });
    let mut asker = Asker::open(server);
    let (commands_before, usage_before) = (asker.commands(), server.pid.and_then(Usage::of));
    let done = phase(fleets, ready, pace, until, stop, live.as_ref())?;
    let usage_after = server.pid.and_then(Usage::of);
    let commands_after = asker.commands();
    let mut measured = Measured {
        label: case.label.clone(),
        protocol: server.config.protocol,
        counts: done.counts,
        elapsed: done.elapsed,
        latency: histogram(),
        service: plan.rate.map(|_| histogram()),
        kinds: Vec::new(),
        checked: 0,
        mismatches: 0,
        wrong: None,
        client_cpu_ns: done.cpu_ns,
        server: usage_before.zip(usage_after),
        // The second question is not counted when it is answered, the first one is.
        server_commands: commands_before.zip(commands_after).map(|(a, b)| b.saturating_sub(a + 1)),
    };
    measured.gather(&done.generators, &case.commands)?;
    Ok(measured)
}

impl Measured {
    fn gather(&mut self, generators: &[Generator], commands: &[Command]) -> Result<()> {
        for generator in generators {
            self.latency.add(&generator.latency).context("latencies")?;
            if let (Some(sum), Some(one)) = (&mut self.service, &generator.service) {
                sum.add(one).context("latencies")?;
            }
            let (checked, mismatches) = generator.verified();
            self.checked += checked;
            self.mismatches += mismatches;
            self.wrong = self.wrong.take().or_else(|| generator.wrong());
            for (index, kind) in generator.kinds.iter().enumerate() {
                if self.kinds.len() <= index {
                    self.kinds.push((commands[index].label.clone(), 0, histogram()));
                }
                self.kinds[index].1 += kind.replies;
                self.kinds[index].2.add(&kind.latency).context("latencies")?;
            }
        }
        Ok(())
    }
}

/// Asks the server how many commands it has run. One that does not say is not asked again.
struct Asker(Option<Connection>);

impl Asker {
    fn open(server: &Server) -> Asker {
        let config = Config { protocol: Protocol::Resp2, ..server.config.clone() };
        Asker(Connection::connect(&config).ok())
    }

    fn commands(&mut self) -> Option<u64> {
        let reply = self.0.as_mut()?.command(&["INFO", "stats"]);
        let count = match reply {
            Ok(Reply::Bulk(text) | Reply::Verbatim(_, text)) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                let line = text.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
                line.and_then(|count| count.trim().parse().ok())
            }
            _ => None,
        };
        if count.is_none() {
            self.0 = None;
        }
        count
    }
}
