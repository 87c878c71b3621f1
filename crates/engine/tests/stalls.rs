//! Nobody waits for a large collection: no command that adds or removes one element, none that lets go of all of them,
//! and no step of the background takes long, at any size.
//!
//! Owns the measurement, which is CPU time of the thread: it stands still while a busy machine lets the thread wait.
//! A command is measured with everything that runs under the locks of its keys. What a resize or a free costs when it
//! is done at once grows with the collection, so that with the few elements of `make test` a bound far above the noise
//! tells it from one in steps.
//!
//! # Ten million elements
//!
//! ```text
//! WEFT_STALLS_ELEMENTS=10000000 cargo test --release -p weft-engine --test stalls -- --nocapture
//! WEFT_HOLDS_KINDS=hash,list   these only
//! WEFT_HOLDS_ROUNDS=3          what breaks the bound is measured again, up to so many times, and the least of a
//!                              command's times counts: a machine shared with others takes milliseconds at random
//! ```
//!
//! prints the table of docs/benchmarks/server.md, in milliseconds, and asserts its bound of one for what somebody may
//! have to wait for: commands, and steps under a lock. Memory is given back to the system outside all locks.

mod support;

use std::time::Duration;

use support::{Bench, cpu_ns};
use weft_engine::background::{Background, Part};
use weft_engine::reply::Protocol;

/// Elements without `WEFT_STALLS_ELEMENTS`.
const ELEMENTS: u64 = 20_000;
/// What a command or step may take then. It is a build without optimization, in which moving or freeing this many
/// elements at once takes several times as long.
const BOUND: Duration = Duration::from_millis(5);
/// The same for what has much to do whatever is stored: a command that evicts 64 keys, or flushes all shards of all
/// databases.
const BOUND_MANY: Duration = Duration::from_millis(40);
/// What it may take with as many elements as the goal names.
const BOUND_LARGE: Duration = Duration::from_millis(1);
/// From so many on the bound is the goal's.
const LARGE: u64 = 1_000_000;
/// How often a kind with few elements is measured again that breaks a bound: what the machine does to one measurement
/// it does not do to all.
const MORE_ROUNDS: usize = 2;
/// Commands that are shown with their numbers.
const SHOWN: usize = 6;
/// Elements of a command that only prepares.
const TOGETHER: u64 = 500;
/// Steps of the background after which it should be done: no structure has more pieces.
const STEPS_MAX: u32 = 50_000_000;
/// Bytes of a string for each element of the others, up to the longest string there is.
const STRING_BYTES_EACH: u64 = 53;
const STRING_BYTES_MAX: u64 = 512 << 20;

/// What is made large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Keys,
    String,
    Hash,
    Set,
    Integers,
    SortedSet,
    List,
    Stream,
}

const KINDS: [(Kind, &str); 8] = [
    (Kind::Keys, "keys"),
    (Kind::String, "string"),
    (Kind::Hash, "hash"),
    (Kind::Set, "set"),
    (Kind::Integers, "set of integers"),
    (Kind::SortedSet, "sorted set"),
    (Kind::List, "list"),
    (Kind::Stream, "stream"),
];

/// How it is let go of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Del,
    Unlink,
    Overwritten,
    RenamedOver,
    ExpiredOnSight,
    ExpiredByCycle,
    Evicted,
    Flushall,
    FlushallAsync,
}

const ENDS: [End; 9] = [
    End::Del,
    End::Unlink,
    End::Overwritten,
    End::RenamedOver,
    End::ExpiredOnSight,
    End::ExpiredByCycle,
    End::Evicted,
    End::Flushall,
    End::FlushallAsync,
];

impl Kind {
    /// Adds elements `from..from + count`.
    fn add(self, from: u64, count: u64) -> Vec<Vec<u8>> {
        let mut words: Vec<Vec<u8>> = match self {
            Self::Keys => vec!["MSET".into()],
            Self::String => return vec!["SETRANGE".into(), "k".into(), from.to_string().into(), "x".into()],
            Self::Hash => vec!["HSET".into(), "k".into()],
            Self::Set | Self::Integers => vec!["SADD".into(), "k".into()],
            Self::SortedSet => vec!["ZADD".into(), "k".into()],
            Self::List => vec!["RPUSH".into(), "k".into()],
            Self::Stream => vec!["XADD".into(), "k".into(), format!("{}-1", from + 1).into()],
        };
        for at in from..from + count {
            match self {
                Self::SortedSet => words.extend([score(at), name(at)]),
                Self::Keys | Self::Hash => words.extend([name(at), b"some value".to_vec()]),
                Self::Stream => words.extend([b"field".to_vec(), name(at)]),
                Self::Integers => words.push(at.to_string().into()),
                _ => words.push(name(at)),
            }
        }
        words
    }

    /// Takes one element away.
    fn remove(self, at: u64) -> Vec<Vec<u8>> {
        let word = |name: &str| name.as_bytes().to_vec();
        match self {
            Self::Keys => vec![word("DEL"), name(at)],
            Self::String => vec![word("STRLEN"), word("k")],
            Self::Hash => vec![word("HDEL"), word("k"), name(at)],
            Self::Set => vec![word("SREM"), word("k"), name(at)],
            Self::Integers => vec![word("SREM"), word("k"), at.to_string().into()],
            Self::SortedSet => vec![word("ZREM"), word("k"), name(at)],
            Self::List => vec![word("LPOP"), word("k")],
            Self::Stream => vec![word("XDEL"), word("k"), format!("{}-1", at + 1).into()],
        }
    }
}

fn name(at: u64) -> Vec<u8> {
    format!("element:{at:08}").into()
}

/// In no order.
fn score(at: u64) -> Vec<u8> {
    (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40).to_string().into()
}

/// A server of one worker, and what its background would do.
struct Server {
    bench: Bench,
    client: u32,
    elements: u64,
}

/// The longest of one kind of thing.
#[derive(Clone, Copy, Debug, Default)]
struct Longest {
    /// Of a command.
    command_ns: u64,
    /// Of the background's steps, while it holds a shard.
    step_ns: u64,
    /// Of the background's steps, while it holds nothing.
    outside_ns: u64,
}

impl Longest {
    fn merge(self, other: Self, choose: fn(u64, u64) -> u64) -> Self {
        Self {
            command_ns: choose(self.command_ns, other.command_ns),
            step_ns: choose(self.step_ns, other.step_ns),
            outside_ns: choose(self.outside_ns, other.outside_ns),
        }
    }
}

impl Server {
    fn new(elements: u64) -> Self {
        let (bench, client) = Bench::with(Protocol::Resp3);
        Self { bench, client, elements }
    }

    /// Runs a command and gives its time. It is no error.
    fn run<T: AsRef<[u8]>>(&mut self, words: &[T]) -> u64 {
        let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        let (ns, reply) = self.bench.cost(self.client, &words, cpu_ns);
        assert!(!reply.starts_with(b"-"), "{}", reply.escape_ascii());
        ns
    }

    fn line(&mut self, line: &str) -> u64 {
        self.run(&line.split(' ').collect::<Vec<_>>())
    }

    /// Everything at once that can be, for what comes after it.
    fn fill(&mut self, kind: Kind) {
        if kind == Kind::String {
            let bytes = (self.elements * STRING_BYTES_EACH).min(STRING_BYTES_MAX);
            self.run(&kind.add(bytes - 1, 1));
            return;
        }
        let together = if kind == Kind::Stream { 1 } else { TOGETHER };
        for from in (0..self.elements).step_by(together as usize) {
            self.run(&kind.add(from, together.min(self.elements - from)));
        }
    }

    /// One element a command. Gives each command's time.
    fn grow(&mut self, kind: Kind, times: &mut Vec<u32>) {
        times.clear();
        if kind != Kind::String {
            for at in 0..self.elements {
                let ns = self.run(&kind.add(at, 1));
                times.push(u32::try_from(ns).unwrap_or(u32::MAX));
            }
        }
    }

    /// Takes every second one away, one a command.
    fn shrink(&mut self, kind: Kind, times: &mut Vec<u32>) {
        times.clear();
        if kind != Kind::String {
            for at in (0..self.elements).step_by(2) {
                let ns = self.run(&kind.remove(at));
                times.push(u32::try_from(ns).unwrap_or(u32::MAX));
            }
        }
    }

    /// Runs the server's background work until nothing is left, and gives its longest parts.
    fn settle(&self) -> Longest {
        let engine = self.bench.engine;
        let mut worker = engine.keyspace.worker().expect("a place for a worker");
        let mut background = Background::new(engine);
        let mut longest = Longest::default();
        for _ in 0..STEPS_MAX {
            let mut begun = cpu_ns();
            let done = background.step(engine, &mut worker, |part| {
                let ended = cpu_ns();
                let longest = match part {
                    Part::Removed | Part::Locked => &mut longest.step_ns,
                    Part::Outside => &mut longest.outside_ns,
                };
                *longest = (ended - begun).max(*longest);
                begun = cpu_ns();
            });
            if done.is_idle {
                return longest;
            }
        }
        panic!("the background does not come to its end");
    }

    /// Lets go of what there is.
    fn end(&mut self, kind: Kind, end: End) -> Longest {
        self.line("SET other v");
        let mut command_ns = match end {
            End::Del => self.line("DEL k"),
            End::Unlink => self.line("UNLINK k"),
            End::Overwritten => self.line("SET k v"),
            End::RenamedOver => self.line("RENAME other k"),
            End::Flushall => self.line("FLUSHALL"),
            End::FlushallAsync => self.line("FLUSHALL ASYNC"),
            End::ExpiredOnSight | End::ExpiredByCycle if kind == Kind::Keys => {
                self.expire_keys();
                0
            }
            End::ExpiredOnSight => {
                self.line("PEXPIRE k 1000");
                self.bench.pass(2000);
                self.line("EXISTS k")
            }
            End::ExpiredByCycle => {
                self.line("PEXPIRE k 1000");
                self.bench.pass(2000);
                0
            }
            End::Evicted => self.evict(),
        };
        let settled = self.settle();
        // Whatever is left is no part of it.
        command_ns = command_ns.max(self.line("GET none"));
        self.line("FLUSHALL");
        self.settle();
        Longest { command_ns, ..settled }
    }

    /// All keys come to their end in the same moment.
    fn expire_keys(&mut self) {
        for at in 0..self.elements {
            self.run(&[b"PEXPIRE".to_vec(), name(at), b"100000000".to_vec()]);
        }
        self.bench.pass(200_000_000);
    }

    /// Room for nothing: each command takes from what there is, until little is left.
    fn evict(&mut self) -> u64 {
        self.line("CONFIG SET maxmemory-policy allkeys-random maxmemory 1");
        let mut longest_ns = 0;
        for _ in 0..self.elements {
            let (ns, reply) = self.bench.cost(self.client, &[b"SET", b"next", b"v"], cpu_ns);
            longest_ns = longest_ns.max(ns);
            if reply.starts_with(b"-OOM") || self.bench.text(self.client, "DBSIZE") == "0" {
                break;
            }
        }
        self.line("CONFIG SET maxmemory 0 maxmemory-policy noeviction");
        longest_ns
    }
}

/// The least of some rounds for each command: what one round has alone is the machine's.
#[derive(Default)]
struct Least {
    times: Vec<u32>,
    rounds: usize,
    steps: Option<Longest>,
}

impl Least {
    fn add(&mut self, times: &[u32], steps: Longest) {
        if self.rounds == 0 {
            self.times = times.to_vec();
        }
        self.times.iter_mut().zip(times).for_each(|(least, &time)| *least = time.min(*least));
        self.steps = Some(self.steps.map_or(steps, |before| before.merge(steps, u64::min)));
        self.rounds += 1;
    }
    /// The longest of all commands, and of the steps.
    fn longest(&self) -> Longest {
        let command_ns = self.times.iter().copied().max().map_or(0, u64::from);
        Longest { command_ns, ..self.steps.unwrap_or_default() }
    }
    /// The longest commands with their numbers, in milliseconds.
    fn places(&self) -> String {
        let mut places: Vec<usize> = (0..self.times.len()).collect();
        places.sort_unstable_by_key(|&at| std::cmp::Reverse(self.times[at]));
        let shown =
            places.iter().take(SHOWN).map(|&at| format!("#{at} {:.3}", f64::from(self.times[at]) / 1e6));
        format!("{} ({} rounds)", shown.collect::<Vec<_>>().join(", "), self.rounds)
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

/// What is done to one kind, and how long it takes at most.
struct Row {
    what: String,
    longest: Longest,
    bound: Duration,
}

impl Row {
    fn is_broken(&self) -> bool {
        Duration::from_nanos(self.longest.command_ns.max(self.longest.step_ns)) > self.bound
    }
    fn line(&self) -> String {
        let ms = |ns: u64| ns as f64 / 1e6;
        let Longest { command_ns, step_ns, outside_ns } = self.longest;
        let (command, step, outside) = (ms(command_ns), ms(step_ns), ms(outside_ns));
        format!("| {} | {command:.3} | {step:.3} | {outside:.3} |", self.what)
    }
}

fn measure((kind, name): (Kind, &str), elements: u64, rounds: usize) -> Vec<Row> {
    let is_large = elements >= LARGE;
    let row = |what: &str, longest, bound| {
        let bound = if is_large { BOUND_LARGE } else { bound };
        let row = Row { what: format!("{name} | {what}"), longest, bound };
        // What takes minutes is shown as it comes.
        if is_large {
            println!("{}", row.line());
        }
        row
    };
    let (mut server, mut times) = (Server::new(elements), Vec::new());
    let bound_ns = if is_large { BOUND_LARGE.as_nanos() as u64 } else { u64::MAX };
    let holds = |longest: Longest| longest.command_ns.max(longest.step_ns) <= bound_ns;
    let (mut grown, mut shrunk) = (Least::default(), Least::default());
    for _ in 0..rounds {
        server.grow(kind, &mut times);
        grown.add(&times, server.settle());
        server.shrink(kind, &mut times);
        shrunk.add(&times, server.settle());
        server.line("FLUSHALL");
        server.settle();
        if holds(grown.longest()) && holds(shrunk.longest()) {
            break;
        }
    }
    if is_large {
        println!("{name} grows, the longest: {}", grown.places());
        println!("{name} shrinks, the longest: {}", shrunk.places());
    }
    let (grown, shrunk) = (grown.longest(), shrunk.longest());
    let mut rows = vec![
        row("grows, one element a command", grown, BOUND),
        row("every second one removed", shrunk, BOUND),
    ];
    for end in ENDS {
        // Keys have no name of their own to be deleted by.
        let alone =
            matches!(end, End::Del | End::Unlink | End::Overwritten | End::RenamedOver | End::ExpiredOnSight);
        if kind == Kind::Keys && alone {
            continue;
        }
        let once = |server: &mut Server| {
            server.fill(kind);
            server.end(kind, end)
        };
        let mut longest = once(&mut server);
        for _ in 1..rounds {
            if holds(longest) {
                break;
            }
            longest = longest.merge(once(&mut server), u64::min);
        }
        let many = matches!(end, End::Evicted | End::Flushall | End::FlushallAsync);
        rows.push(row(&format!("{end:?}"), longest, if many { BOUND_MANY } else { BOUND }));
    }
    rows
}

#[test]
fn no_command_and_no_step_takes_long() {
    let elements = number("WEFT_STALLS_ELEMENTS").unwrap_or(ELEMENTS);
    let rounds = number("WEFT_HOLDS_ROUNDS").unwrap_or(1) as usize;
    let asked = std::env::var("WEFT_HOLDS_KINDS").ok();
    let mut broken = Vec::new();
    println!("| {elements} elements | what happens | command | step, under a lock | step, outside |");
    println!("|---|---|---:|---:|---:|");
    for (kind, text) in KINDS {
        if asked.as_ref().is_some_and(|asked| !asked.split(',').any(|name| name == text)) {
            continue;
        }
        let mut rows = measure((kind, text), elements, rounds);
        for _ in 0..MORE_ROUNDS {
            if elements < LARGE && rows.iter().any(Row::is_broken) {
                let again = measure((kind, text), elements, rounds);
                for (row, again) in rows.iter_mut().zip(again) {
                    row.longest = row.longest.merge(again.longest, u64::min);
                }
            }
        }
        if elements < LARGE {
            rows.iter().for_each(|row| println!("{}", row.line()));
        }
        broken.extend(rows.iter().filter(|row| row.is_broken()).map(Row::line));
    }
    assert!(broken.is_empty(), "longer than is allowed:\n{}", broken.join("\n"));
}
