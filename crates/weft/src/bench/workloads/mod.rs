//! `weft bench --workload FILE`: a mix as somebody runs it, with its keys, values and times to live, from a file.
//!
//! Owns what a file can say and its limits; how it is written is [`toml`]'s. `bench/workloads` has those that are
//! measured beside Valkey, docs/bench.md says what each entry is.

pub(super) mod toml;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use weft_client::{Connection, Protocol, Reply};

use self::toml::{Item, Table, Value};
use super::CLIENTS;
use super::cases::{self, ARGUMENTS_MAX, COMMANDS_MAX, Case, Command, Setup, Subscription};
use super::keys::Distribution;
use super::run::{Plan, Server};
use super::sizes::Sizes;
use super::template::{DATA, PASS, RANDOM, SAME, TTL};
use super::verify::Expect;

/// Keys at most: their numbers have twelve digits.
const KEYS_MAX: u64 = 1_000_000_000_000;
/// Times that a command of the preparation is run at most.
const TIMES_MAX: u64 = 100_000_000;
/// Clients at most, and subscribers.
const CLIENTS_MAX: u64 = 60_000;
const SUBSCRIBERS_MAX: u64 = 10_000;
/// Settings of the server at most.
const SETTINGS_MAX: usize = 64;

/// A workload as its file describes it.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) title: String,
    /// Where its figures come from; whoever reads a result is to find it in the file.
    source: String,
    keyspace: u64,
    distribution: Distribution,
    sizes: Sizes,
    ttls: Sizes,
    /// Connections, or clients on shared ones where there are so many.
    pub(super) clients: u32,
    /// Connections that these share, if they do: over RESP by pipelining, over RESPB as channels.
    pub(super) connections: Option<u32>,
    /// What the server is to be set to.
    pub(super) settings: Vec<(String, String)>,
    setup: Vec<Setup>,
    commands: Vec<Command>,
    subscribers: Vec<Subscription>,
}

impl Workload {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Workload> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).with_context(|| name.clone())?;
        Workload::parse(&text).with_context(|| name)
    }

    pub(super) fn parse(text: &str) -> Result<Workload> {
        let tables = toml::parse(text)?;
        let mut workload = Workload {
            title: String::new(),
            source: String::new(),
            keyspace: 0,
            distribution: Distribution::Uniform,
            sizes: Sizes::Fixed(16),
            ttls: Plan::default().ttls,
            clients: CLIENTS,
            connections: None,
            settings: Vec::new(),
            setup: Vec::new(),
            commands: Vec::new(),
            subscribers: Vec::new(),
        };
        for table in &tables {
            match (&*table.name, table.listed) {
                ("", _) => workload.head(table)?,
                ("server", false) => workload.settings = settings(table)?,
                ("subscribers", false) => workload.subscribers = subscribers(table)?,
                ("prepare", true) => workload.setup.push(prepare(table)?),
                ("request", true) => workload.commands.extend(request(table)?),
                (name, _) => bail!(
                    "line {}: there is no table {name}; there are [server], [subscribers], [[prepare]] and [[request]]",
                    table.line
                ),
            }
        }
        ensure!(!workload.title.is_empty(), "line 1: title = \"…\" is expected before the first table");
        ensure!(
            !workload.source.is_empty(),
            "line 1: source = \"…\" is expected: where its figures come from"
        );
        let case = Case {
            label: workload.title.clone(),
            commands: workload.commands.clone(),
            setup: Vec::new(),
            subscribers: None,
        };
        cases::checked(case).context("[[request]]")?;
        let passes = workload.commands.iter().any(|command| has(command, PASS));
        ensure!(
            !passes || workload.distribution == Distribution::Sequential,
            "{PASS} grows when the keys begin again: distribution = \"sequential\" is expected"
        );
        Ok(workload)
    }

    fn head(&mut self, table: &Table) -> Result<()> {
        for (name, item) in &table.entries {
            let at = |error: anyhow::Error| anyhow!("line {}: {name}: {error:#}", item.line);
            match name.as_str() {
                "title" => self.title = text(name, item)?,
                "source" => self.source = text(name, item)?,
                "keys" => self.keyspace = number(name, item, 0..=KEYS_MAX)?,
                "distribution" => self.distribution = Distribution::parse(&text(name, item)?).map_err(at)?,
                "values" => self.sizes = Sizes::parse(&text(name, item)?).map_err(at)?,
                "ttl-seconds" => self.ttls = Sizes::parse(&text(name, item)?).map_err(at)?,
                "clients" => self.clients = number(name, item, 1..=CLIENTS_MAX)? as u32,
                "connections" => self.connections = Some(number(name, item, 1..=CLIENTS_MAX)? as u32),
                _ => {
                    return Err(unknown(
                        name,
                        item,
                        "title, source, keys, distribution, values, ttl-seconds, clients, connections",
                    ));
                }
            }
        }
        if let Some(connections) = self.connections {
            ensure!(
                self.clients.is_multiple_of(connections),
                "clients = {} cannot share connections = {connections}: a multiple of it is expected",
                self.clients
            );
        }
        Ok(())
    }

    /// Bytes of its longest value.
    pub(super) fn value_bytes(&self) -> usize {
        self.sizes.max()
    }

    /// A plan with what the file says; `clients` of the command line go before its own, and then each has a connection.
    pub(super) fn plan(&self, plan: &Plan, clients: Option<u32>) -> Result<Plan> {
        let (connections, channels) = match (clients, self.connections) {
            (Some(clients), _) => (clients, plan.channels),
            (None, Some(connections)) if plan.channels == 1 => (connections, self.clients / connections),
            (None, _) => (self.clients / plan.channels, plan.channels),
        };
        ensure!(connections > 0, "--mux {}: the file's clients = {} are fewer", plan.channels, self.clients);
        let in_flight = u64::from(connections) * u64::from(channels) * u64::from(plan.pipeline);
        if self.commands.iter().any(|command| has(command, PASS)) {
            ensure!(
                self.keyspace >= 2 * in_flight,
                "keys = {}: with {PASS} twice as many as are on their way are expected, {}",
                self.keyspace,
                2 * in_flight
            );
            ensure!(plan.threads == 1, "--threads {}: with {PASS} the keys are one thread's", plan.threads);
        }
        Ok(Plan {
            connections,
            channels,
            keyspace: self.keyspace,
            distribution: self.distribution,
            sizes: self.sizes.clone(),
            ttls: self.ttls.clone(),
            verify: true,
            ..plan.clone()
        })
    }

    /// One case, or one for each number of subscribers.
    pub(super) fn cases(&self) -> Vec<Case> {
        let case = |label: String, subscribers: Option<Subscription>| Case {
            label,
            commands: self.commands.clone(),
            setup: self.setup.clone(),
            subscribers,
        };
        if self.subscribers.is_empty() {
            return vec![case(self.title.clone(), None)];
        }
        let label = |count: u32| format!("{}, {count} subscribers", self.title);
        self.subscribers.iter().map(|some| case(label(some.clients), Some(some.clone()))).collect()
    }

    /// Says which settings of the server are not those of the file.
    pub(super) fn remind(&self, server: &Server) {
        let config = weft_client::Config { protocol: Protocol::Resp2, ..server.config.clone() };
        let Ok(mut connection) = Connection::connect(&config) else { return };
        for (name, wanted) in &self.settings {
            let Ok(Reply::Array(pair)) = connection.command(&["CONFIG", "GET", name.as_str()]) else {
                continue;
            };
            let Some(Reply::Bulk(value)) = pair.get(1) else { continue };
            let value = String::from_utf8_lossy(value);
            if value != *wanted && bytes_of(wanted).is_none_or(|bytes| bytes.to_string() != value) {
                eprintln!("{}: {name} is {value} there, and {wanted} in the file", self.title);
            }
        }
    }
}

/// `64mb` as the server says it.
fn bytes_of(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let unit = match unit {
        "kb" => 1 << 10,
        "mb" => 1 << 20,
        "gb" => 1 << 30,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? * unit)
}

fn has(command: &Command, mark: &str) -> bool {
    command.argv.iter().any(|word| word.contains(mark))
}

fn unknown(name: &str, item: &Item, known: &str) -> anyhow::Error {
    anyhow!("line {}: {name} is not known here; there are {known}", item.line)
}

fn text(name: &str, item: &Item) -> Result<String> {
    match &item.value {
        Value::Text(text) => Ok(text.clone()),
        other => {
            bail!("line {}: {name}: a text in double quotes is expected, not {}", item.line, other.kind())
        }
    }
}

fn number(name: &str, item: &Item, range: std::ops::RangeInclusive<u64>) -> Result<u64> {
    match &item.value {
        Value::Integer(number) if range.contains(number) => Ok(*number),
        other => bail!(
            "line {}: {name}: a number from {} to {} is expected, not {}",
            item.line,
            range.start(),
            range.end(),
            match other {
                Value::Integer(number) => number.to_string(),
                other => other.kind().to_string(),
            }
        ),
    }
}

/// A text, or a list of them.
fn texts(name: &str, item: &Item) -> Result<Vec<(usize, String)>> {
    match &item.value {
        Value::List(items) => items.iter().map(|item| Ok((item.line, text(name, item)?))).collect(),
        _ => Ok(vec![(item.line, text(name, item)?)]),
    }
}

/// The words of a command.
fn argv(line: usize, text: &str) -> Result<Vec<String>> {
    let words = cases::words(text);
    ensure!(
        (1..=ARGUMENTS_MAX).contains(&words.len()),
        "line {line}: a command of 1 to {ARGUMENTS_MAX} words is expected, not {}",
        words.len()
    );
    for word in &words {
        for mark in word.match_indices("__").step_by(2).map(|(at, _)| &word[at..]) {
            let known = [RANDOM, SAME, PASS, TTL, DATA];
            ensure!(
                known.iter().any(|known| mark.starts_with(known)),
                "line {line}: {word}: one of {} is expected",
                known.join(", ")
            );
        }
    }
    Ok(words)
}

fn settings(table: &Table) -> Result<Vec<(String, String)>> {
    ensure!(
        table.entries.len() <= SETTINGS_MAX,
        "line {}: at most {SETTINGS_MAX} settings are expected",
        table.line
    );
    table.entries.iter().map(|(name, item)| Ok((name.clone(), text(name, item)?))).collect()
}

fn subscribers(table: &Table) -> Result<Vec<Subscription>> {
    let (mut words, mut counts) = (None, Vec::new());
    for (name, item) in &table.entries {
        match (name.as_str(), &item.value) {
            ("run", _) => words = Some(argv(item.line, &text(name, item)?)?),
            ("clients", Value::List(items)) => {
                for item in items {
                    counts.push(number(name, item, 1..=SUBSCRIBERS_MAX)? as u32);
                }
            }
            ("clients", _) => counts.push(number(name, item, 1..=SUBSCRIBERS_MAX)? as u32),
            _ => return Err(unknown(name, item, "run, clients")),
        }
    }
    let Some(argv) = words.filter(|_| !counts.is_empty()) else {
        bail!("line {}: [subscribers]: run and clients are expected", table.line)
    };
    Ok(counts.into_iter().map(|clients| Subscription { clients, argv: argv.clone() }).collect())
}

fn prepare(table: &Table) -> Result<Setup> {
    let (mut words, mut times) = (None, 1);
    for (name, item) in &table.entries {
        match name.as_str() {
            "run" => words = Some(argv(item.line, &text(name, item)?)?),
            "times" => times = number(name, item, 1..=TIMES_MAX)?,
            _ => return Err(unknown(name, item, "run, times")),
        }
    }
    let Some(argv) = words else {
        bail!("line {}: [[prepare]]: run = \"COMMAND …\" is expected", table.line)
    };
    Ok(Setup { argv, times })
}

/// A command, or several that go one behind the other.
fn request(table: &Table) -> Result<Vec<Command>> {
    let (mut runs, mut replies, mut weight) = (Vec::new(), Vec::new(), 1);
    for (name, item) in &table.entries {
        match name.as_str() {
            "run" => runs = texts(name, item)?,
            "reply" => replies = texts(name, item)?,
            "weight" => weight = number(name, item, 0..=1_000_000)? as u32,
            _ => return Err(unknown(name, item, "run, reply, weight")),
        }
    }
    ensure!(!runs.is_empty(), "line {}: [[request]]: run = \"COMMAND …\" is expected", table.line);
    ensure!(
        replies.len() == runs.len(),
        "line {}: [[request]]: reply is expected for each of {} commands, and stands here {} times",
        table.line,
        runs.len(),
        replies.len()
    );
    ensure!(
        runs.len() < COMMANDS_MAX,
        "line {}: at most {} commands in a sequence",
        table.line,
        COMMANDS_MAX - 1
    );
    let commands = runs.into_iter().zip(replies).enumerate().map(|(index, ((line, run), (at, reply)))| {
        let argv = argv(line, &run)?;
        let names = Expect::NAMES.map(|(name, _)| name);
        let Some((_, expect)) = Expect::NAMES.into_iter().find(|(name, _)| *name == reply) else {
            bail!("line {at}: reply: one of {} is expected, not {reply:?}", names.join(", "))
        };
        let label = argv[0].to_uppercase();
        let follows = index > 0;
        let weight = if follows { 0 } else { weight };
        Ok(Command { follows, expect, ..Command::new(&label, argv, weight) })
    });
    commands.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "title = \"t\"\nsource = \"s\"\n";

    #[test]
    fn the_files_of_the_repository_are_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/workloads");
        let mut count = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let workload = Workload::read(&path).unwrap();
                assert!(!workload.cases().is_empty());
                for pipeline in [1, 16] {
                    workload.plan(&Plan { pipeline, ..Plan::default() }, None).unwrap();
                }
                count += 1;
            }
        }
        assert_eq!(count, 11);
    }

    #[test]
    fn a_sequence_is_one_step() {
        let text = format!(
            "{HEAD}keys = 10\n[[request]]\nweight = 3\nrun = [\"MULTI\", \"INCR k:__rand_int__\", \"EXEC\"]\nreply = \
             [\"word\", \"word\", \"list\"]\n[[request]]\nrun = \"GET k:__rand_int__\"\nreply = \"any\"\n"
        );
        let case = Workload::parse(&text).unwrap().cases().remove(0);
        let follows: Vec<bool> = case.commands.iter().map(|command| command.follows).collect();
        assert_eq!(follows, [false, true, true, false]);
        assert_eq!(case.requests_per_step(), 2.5);
    }

    #[test]
    fn errors_name_the_line_and_what_was_expected() {
        for (text, expected) in [
            ("title = 1", "line 1: title: a text in double quotes is expected, not a number"),
            ("source = \"s\"", "line 1: title = \"…\" is expected"),
            ("title = \"t\"", "line 1: source = \"…\" is expected"),
            ("keys = 1_000_000_000_001", "line 1: keys: a number from 0 to 1000000000000 is expected, not 1"),
            ("clients = 0", "line 1: clients: a number from 1 to 60000 is expected, not 0"),
            ("\ncolour = 1", "line 2: colour is not known here; there are title, source,"),
            ("distribution = \"gauss\"", "line 1: distribution: \"gauss\" is none of uniform"),
            ("values = \"x\"", "line 1: values: \"x\" is no size of a value"),
            ("clients = 5\nconnections = 2", "clients = 5 cannot share connections = 2: a multiple"),
            ("[servers]", "line 1: there is no table servers; there are [server]"),
            ("[[request]]\nreply = \"any\"", "line 1: [[request]]: run = "),
            ("[[request]]\nrun = \"GET k\"", "line 1: [[request]]: reply is expected for each of 1 commands"),
            ("[[request]]\nrun = \"GET k\"\nreply = \"yes\"", "line 3: reply: one of any, word, "),
            ("[[request]]\nrun = \"GET __rnd__\"\nreply = \"any\"", "line 2: __rnd__: one of __rand_int__"),
            ("[[prepare]]\ntimes = 0", "line 2: times: a number from 1 to 100000000 is expected, not 0"),
            ("[subscribers]\nclients = 10_001", "line 2: clients: a number from 1 to 10000 is expected"),
            ("[subscribers]\nclients = 1", "line 1: [subscribers]: run and clients are expected"),
        ] {
            let error = format!("{:#}", Workload::parse(text).unwrap_err());
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        let error = Workload::parse(HEAD).unwrap_err();
        assert!(format!("{error:#}").contains("a mix needs a weight above 0"), "{error:#}");
        let text = format!(
            "{HEAD}keys = 9\n[[request]]\nrun = \"XADD s:__rand_int__ __pass__-1 f v\"\nreply = \"any\"\n"
        );
        assert!(Workload::parse(&text).unwrap_err().to_string().contains("sequential"));
        let text = text.replace("keys = 9\n", "keys = 9\ndistribution = \"sequential\"\nclients = 5\n");
        let error = Workload::parse(&text).unwrap().plan(&Plan::default(), None).unwrap_err().to_string();
        assert!(error.contains("twice as many as are on their way are expected, 10"), "{error}");
    }

    #[test]
    fn clients_share_the_connections_of_the_file() {
        let text = format!(
            "{HEAD}clients = 2000\nconnections = 4\n[[request]]\nrun = \"GET k:__rand_int__\"\nreply = \"value\"\n"
        );
        let workload = Workload::parse(&text).unwrap();
        let shape = |clients| {
            let plan = workload.plan(&Plan::default(), clients).unwrap();
            (plan.connections, plan.channels)
        };
        assert_eq!((shape(None), shape(Some(50))), ((4, 500), (50, 1)));
    }

    #[test]
    fn sizes_are_bytes() {
        assert_eq!(
            (bytes_of("64mb"), bytes_of("1gb"), bytes_of("x"), bytes_of("12")),
            (Some(64 << 20), Some(1 << 30), None, None)
        );
    }
}
