//! One case against one server: connections, preparation, warm-up, the measured run. Owns the threads and their phases.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use hdrhistogram::Histogram;
use weft_client::fleet::{Counts, Ended, Fleet, Pace, Until};
use weft_client::{Config, Connection, Encoder, Protocol};
use weft_protocol::Reply;

use super::cases::{self, Case, Command, Setup};
use super::cluster::Shard;
use super::generator::{Generator, Live, Recipe, histogram};
use super::keys::{Distribution, Keys, part_of};
use super::live::LiveLine;
use super::process::Usage;
use super::sizes::{Filler, Sizes};
use super::subscribers::Subscribers;
use super::verify::Wrong;

/// Keys from which on a server is filled over several connections.
const MANY_KEYS: u64 = 1_000_000;

/// Everything about how a case is run but the case and the server. Of itself: 50 connections that have one request on
/// its way each, for as long as there are requests.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) connections: u32,
    pub(crate) channels: u32,
    pub(crate) pipeline: u32,
    /// HTTP: the requests of a batch are one body for /pipeline.
    pub(crate) in_one_body: bool,
    pub(crate) threads: u32,
    pub(crate) requests: u64,
    pub(crate) duration: Option<Duration>,
    pub(crate) warmup: Option<Duration>,
    pub(crate) rate: Option<f64>,
    pub(crate) keyspace: u64,
    pub(crate) distribution: Distribution,
    pub(crate) sizes: Sizes,
    /// Times to live, in seconds, where a command has one.
    pub(crate) ttls: Sizes,
    pub(crate) seed: u64,
    pub(crate) verify: bool,
    pub(crate) reconnect: bool,
    /// CLIENT TRACKING ON for each client.
    pub(crate) tracking: bool,
    /// A line on the terminal while it runs.
    pub(crate) live: bool,
    /// How long the server's CPU time still counts when everything is answered: for what it does behind its answers.
    pub(crate) rest: Option<Duration>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            connections: 50,
            channels: 1,
            pipeline: 1,
            in_one_body: false,
            threads: 1,
            requests: u64::MAX,
            duration: None,
            warmup: None,
            rate: None,
            keyspace: 0,
            distribution: Distribution::Uniform,
            sizes: Sizes::Fixed(16),
            ttls: Sizes::Fixed(60),
            seed: 1,
            verify: false,
            reconnect: false,
            tracking: false,
            live: false,
            rest: None,
        }
    }
}

/// A server under test.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) config: Config,
    /// Its process, if it is on this machine.
    pub(crate) pid: Option<u32>,
    /// The masters of its cluster, if all of them are driven.
    pub(crate) shards: Vec<Shard>,
}

impl Server {
    /// One by itself.
    pub(crate) fn alone(config: Config, pid: Option<u32>) -> Server {
        Server { config, pid, shards: Vec::new() }
    }

    /// Each server that is driven.
    fn each(&self) -> Vec<(&Config, Option<u32>)> {
        match &self.shards[..] {
            [] => vec![(&self.config, self.pid)],
            shards => shards.iter().map(|shard| (&shard.config, shard.pid)).collect(),
        }
    }

    /// Threads, each of which has one server, and a connection at least.
    pub(crate) fn threads(&self, plan: &Plan) -> u32 {
        let servers = self.shards.len().max(1) as u32;
        let wanted = plan.threads.min(plan.connections).next_multiple_of(servers);
        if wanted > plan.connections { servers } else { wanted }
    }

    /// What their processes have used, if all are to be seen.
    fn usage(&self) -> Option<Usage> {
        let usages = self.each().into_iter().map(|(_, pid)| pid.and_then(Usage::of));
        usages.reduce(|sum, usage| Some(sum? + usage?)).flatten()
    }

    /// The keys of the thread of this number: all, or those of its master.
    fn keys(&self, plan: &Plan, thread: u64, threads: u64, seed: u64) -> Keys {
        let count = self.shards.len().max(1) as u64;
        let (index, space) = (thread % count, part_of(plan.keyspace, thread % count, count));
        // The threads of one master begin at places of their own.
        let keys =
            Keys::new(plan.distribution, space, space * (thread / count) * count / threads, seed + thread);
        match self.shards.get(index as usize) {
            Some(shard) => keys.in_part(index, count, &shard.tags),
            None => keys,
        }
    }
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
    /// Values that were to be compared and not there.
    pub(crate) absent: u64,
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
        let (servers, threads) = (server.each(), server.threads(plan));
        let (count, connections) = (servers.len() as u32, plan.connections);
        ensure!(connections >= threads, "-c {connections}: a cluster of {count} masters needs as many");
        let share = |thread: u32| plan.connections / threads + u32::from(thread < plan.connections % threads);
        let connect = |thread: u32| -> Result<Fleet> {
            let (config, _) = servers[(thread % count) as usize];
            let mut fleet = Fleet::connect(config, share(thread), plan.channels)?;
            fleet.reconnect(plan.reconnect);
            if plan.tracking {
                fleet.command(&["CLIENT", "TRACKING", "ON"]).context("--enable-tracking")?;
            }
            Ok(fleet)
        };
        Ok(Fleets((0..threads).map(connect).collect::<Result<_>>()?))
    }

    /// What encodes requests as the servers read them.
    fn encoder(&self) -> Encoder {
        self.0[0].encoder()
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

/// What is sent before a case: in order, each number once; to each master of a cluster what it has of it.
pub(crate) fn prepare(server: &Server, plan: &Plan, setup: &[Setup], stop: &AtomicBool) -> Result<()> {
    if server.shards.is_empty() {
        let all = |times| Keys::new(Distribution::Sequential, times, 0, plan.seed);
        return setup
            .iter()
            .try_for_each(|step| prepare_one(server, plan, step, all(step.times), step.times, stop));
    }
    for (index, shard) in server.shards.iter().enumerate() {
        let (index, count) = (index as u64, server.shards.len() as u64);
        let one = Server::alone(shard.config.clone(), shard.pid);
        for step in setup {
            let times = if step.is_shared() { part_of(step.times, index, count) } else { step.times };
            let keys = Keys::new(Distribution::Sequential, times, 0, plan.seed);
            let keys = keys.in_part(index, count, &shard.tags);
            if times > 0 {
                prepare_one(&one, plan, step, keys, times, stop)?;
            }
        }
    }
    Ok(())
}

/// Sends one step so many times.
fn prepare_one(
    server: &Server,
    plan: &Plan,
    step: &Setup,
    keys: Keys,
    times: u64,
    stop: &AtomicBool,
) -> Result<()> {
    let filler = Arc::new(Filler::new(plan.sizes.max()));
    let label = &step.argv[0];
    let command = Command::new(label, step.argv.clone(), 1);
    // Keys of their own may come in any order: with several connections the server has work while this side writes.
    let connections = if times >= MANY_KEYS && label == "SET" { 8 } else { 1 };
    let connection =
        Plan { connections, channels: 1, threads: 1, reconnect: false, tracking: false, ..plan.clone() };
    let mut fleets = Fleets::connect(server, &connection)?;
    let recipe = Recipe {
        encoder: fleets.encoder(),
        commands: std::slice::from_ref(&command),
        sizes: &plan.sizes,
        ttls: &plan.ttls,
        filler: &filler,
        // A deep pipeline on one connection: quick, and the numbers come in order.
        pipeline: 256.min(times as usize),
        in_one_body: false,
        verified: true,
        tagged: keys.is_tagged(),
    };
    let generator = Generator::new(&recipe, keys, times, plan.seed)?;
    let done = phase(&mut fleets, vec![generator], Pace::Closed, Until::Exhausted, stop, None)?;
    if let Some((text, _)) = done.counts.error_texts.first() {
        bail!("{}, sent before the test, was answered {text:?}", step.argv.join(" "));
    }
    ensure!(done.counts.ended == Ended::Done, "the server did not answer all of {}", step.argv.join(" "));
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
        !inline || cases::has_lines(server.config.protocol),
        "{}: {} has no words on a line",
        case.label,
        server.config.protocol
    );
    let filler = Arc::new(Filler::new(plan.sizes.max()));
    let recipe = Recipe {
        encoder: fleets.encoder(),
        commands: &case.commands,
        sizes: &plan.sizes,
        ttls: &plan.ttls,
        filler: &filler,
        pipeline: plan.pipeline as usize,
        in_one_body: plan.in_one_body && server.config.protocol == Protocol::Http,
        verified: plan.verify,
        tagged: !server.shards.is_empty(),
    };
    let threads = fleets.0.len() as u64;
    let generators = |budget: u64, seed: u64| -> Result<Vec<Generator>> {
        let one = |thread: u64| {
            let keys = server.keys(plan, thread, threads, seed);
            let share = budget / threads + u64::from(thread < budget % threads);
            Generator::new(&recipe, keys, share, seed + thread)
        };
        (0..threads).map(one).collect()
    };
    let pace = plan.rate.map_or(Pace::Closed, |rate| Pace::Fixed {
        batches_per_second: rate / (f64::from(plan.pipeline) * case.requests_per_step()) / threads as f64,
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
    let mut askers: Vec<Asker> = server.each().into_iter().map(|(config, _)| Asker::open(config)).collect();
    let mut commands = || -> Option<u64> { askers.iter_mut().map(Asker::commands).sum() };
    let subscribers = case
        .subscribers
        .as_ref()
        .map(|subscription| Subscribers::start(&server.config, subscription))
        .transpose()
        .context("subscribers")?;
    let (commands_before, usage_before) = (commands(), server.usage());
    let done = phase(fleets, ready, pace, until, stop, live.as_ref())?;
    plan.rest.into_iter().for_each(std::thread::sleep);
    let usage_after = server.usage();
    let commands_after = commands();
    let heard = subscribers.map(|subscribers| subscribers.end(done.counts.replies)).transpose()?;
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
        absent: 0,
        wrong: None,
        client_cpu_ns: done.cpu_ns,
        server: usage_before.zip(usage_after),
        // The second question is not counted when it is answered, the first one is.
        server_commands: commands_before
            .zip(commands_after)
            .map(|(a, b)| b.saturating_sub(a + server.each().len() as u64)),
    };
    measured.gather(&done.generators, &case.commands)?;
    if let Some(heard) = heard {
        measured.counts.pushes += heard.pushes;
        measured.counts.closed += heard.closed;
        measured.counts.lost += heard.lost;
    }
    Ok(measured)
}

impl Measured {
    fn gather(&mut self, generators: &[Generator], commands: &[Command]) -> Result<()> {
        for generator in generators {
            self.latency.add(&generator.latency).context("latencies")?;
            if let (Some(sum), Some(one)) = (&mut self.service, &generator.service) {
                sum.add(one).context("latencies")?;
            }
            let (checked, mismatches, absent) = generator.verified();
            self.checked += checked;
            self.absent += absent;
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
    fn open(config: &Config) -> Asker {
        let config = Config { protocol: Protocol::Resp2, ..config.clone() };
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
