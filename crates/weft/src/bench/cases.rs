//! What is measured: redis-benchmark's tests under their names, and ours. Owns the commands, with what each needs to
//! find in the server.

use anyhow::{Result, bail, ensure};
use weft_client::Protocol;

use super::template::{DATA, RANDOM, TAG};
use super::verify::Expect;

/// The most commands of a mix.
pub(super) const COMMANDS_MAX: usize = 64;
/// The most arguments of a command from a file.
pub(super) const ARGUMENTS_MAX: usize = 1024;

/// A command of a case and how often it comes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Command {
    /// Its name in results.
    pub(super) label: String,
    /// Name and arguments, with `__rand_int__` and `__data__`.
    pub(super) argv: Vec<String>,
    pub(super) weight: u32,
    /// Sent as words on a line, which RESP alone has.
    pub(super) inline: bool,
    /// Sent right behind the command before it, and only there.
    pub(super) follows: bool,
    /// What its replies must be.
    pub(super) expect: Expect,
}

impl Command {
    /// One by itself.
    pub(super) fn new(label: &str, argv: Vec<String>, weight: u32) -> Command {
        let expect = Expect::of(&argv);
        Command { label: label.to_string(), argv, weight, inline: false, follows: false, expect }
    }
}

/// What one row of results measures.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Case {
    /// Its name in results.
    pub(super) label: String,
    pub(super) commands: Vec<Command>,
    /// Commands that are run once before, so that there is something to find.
    pub(super) setup: Vec<Setup>,
    /// Clients that listen meanwhile.
    pub(super) subscribers: Option<Subscription>,
}

/// Who listens, and to what.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Subscription {
    pub(super) clients: u32,
    pub(super) argv: Vec<String>,
}

/// A command that is run so many times before the case; its numbers count up from 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setup {
    pub(super) argv: Vec<String>,
    pub(super) times: u64,
}

/// The test whose command is words on a line.
const INLINE: &str = "ping_inline";

/// A test by name: its command, and what it needs (times, command).
struct Test {
    name: &'static str,
    label: &'static str,
    command: &'static str,
    setup: &'static [(u64, &'static str)],
}

const fn test(name: &'static str, label: &'static str, command: &'static str) -> Test {
    Test { name, label, command, setup: &[] }
}

const fn prepared(
    name: &'static str,
    label: &'static str,
    command: &'static str,
    setup: &'static [(u64, &'static str)],
) -> Test {
    Test { name, label, command, setup }
}

/// Elements of `mylist`, as in redis-benchmark at most 600 are read.
const LIST: &[(u64, &str)] = &[(1, "DEL mylist"), (600, "LPUSH mylist __data__")];
/// The hash, the sorted set and the set that are read as a whole.
const HASH_50: &[(u64, &str)] = &[(1, "DEL myhash50"), (50, "HSET myhash50 element:__rand_int__ __data__")];
const ZSET_100: &[(u64, &str)] =
    &[(1, "DEL myzset100"), (100, "ZADD myzset100 __rand_int__ element:__rand_int__")];
const SET_100: &[(u64, &str)] = &[(1, "DEL myset100"), (100, "SADD myset100 element:__rand_int__")];

/// Those that run without `-t`, in redis-benchmark's order, then ours.
const TESTS: &[Test] = &[
    test(INLINE, "PING_INLINE", "PING"),
    test("ping_mbulk", "PING_MBULK", "PING"),
    test("set", "SET", "SET key:__rand_int__ __data__"),
    test("get", "GET", "GET key:__rand_int__"),
    test("incr", "INCR", "INCR counter:__rand_int__"),
    test("lpush", "LPUSH", "LPUSH mylist __data__"),
    test("rpush", "RPUSH", "RPUSH mylist __data__"),
    test("lpop", "LPOP", "LPOP mylist"),
    test("rpop", "RPOP", "RPOP mylist"),
    test("sadd", "SADD", "SADD myset element:__rand_int__"),
    test("hset", "HSET", "HSET myhash element:__rand_int__ __data__"),
    test("spop", "SPOP", "SPOP myset"),
    test("zadd", "ZADD", "ZADD myzset __rand_int__ element:__rand_int__"),
    test("zpopmin", "ZPOPMIN", "ZPOPMIN myzset"),
    prepared("lrange_100", "LRANGE_100 (first 100 elements)", "LRANGE mylist 0 99", LIST),
    prepared("lrange_300", "LRANGE_300 (first 300 elements)", "LRANGE mylist 0 299", LIST),
    prepared("lrange_500", "LRANGE_500 (first 500 elements)", "LRANGE mylist 0 499", LIST),
    prepared("lrange_600", "LRANGE_600 (first 600 elements)", "LRANGE mylist 0 599", LIST),
    test(
        "mset",
        "MSET (10 keys)",
        "MSET key:__rand_int__ __data__ key:__rand_int__ __data__ key:__rand_int__ __data__ key:__rand_int__ \
         __data__ key:__rand_int__ __data__ key:__rand_int__ __data__ key:__rand_int__ __data__ \
         key:__rand_int__ __data__ key:__rand_int__ __data__ key:__rand_int__ __data__",
    ),
    test("xadd", "XADD", "XADD mystream * myfield __data__"),
];

/// Ours, which run by name only.
const FURTHER: &[Test] = &[
    test(
        "mget",
        "MGET (10 keys)",
        "MGET key:__rand_int__ key:__rand_int__ key:__rand_int__ key:__rand_int__ key:__rand_int__ \
         key:__rand_int__ key:__rand_int__ key:__rand_int__ key:__rand_int__ key:__rand_int__",
    ),
    test("del", "DEL", "DEL key:__rand_int__"),
    test("exists", "EXISTS", "EXISTS key:__rand_int__"),
    test("setex", "SET EX 60", "SET key:__rand_int__ __data__ EX 60"),
    prepared("hgetall_50", "HGETALL (50 fields)", "HGETALL myhash50", HASH_50),
    prepared("hget", "HGET", "HGET myhash50 element:000000000007", HASH_50),
    prepared("zrange_100", "ZRANGE (100 members)", "ZRANGE myzset100 0 99", ZSET_100),
    prepared("smembers_100", "SMEMBERS (100 members)", "SMEMBERS myset100", SET_100),
];

/// Names that stand for others, as in redis-benchmark.
const GROUPS: &[(&str, &[&str])] = &[
    ("ping", &[INLINE, "ping_mbulk"]),
    ("lrange", &["lrange_100", "lrange_300", "lrange_500", "lrange_600"]),
];

impl Test {
    fn case(&self) -> Case {
        let setup =
            self.setup.iter().map(|(times, command)| Setup { argv: words(command), times: *times }).collect();
        Case { label: self.label.to_string(), commands: vec![self.command(1)], setup, subscribers: None }
    }

    fn command(&self, weight: u32) -> Command {
        Command { inline: self.name == INLINE, ..Command::new(self.label, words(self.command), weight) }
    }
}

pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

fn find(name: &str) -> Option<&'static Test> {
    TESTS.iter().chain(FURTHER).find(|test| test.name.eq_ignore_ascii_case(name))
}

/// The tests that run when none is named.
pub(super) fn default_cases() -> Vec<Case> {
    TESTS.iter().map(Test::case).collect()
}

/// `-t set,get`
pub(super) fn named(names: &str) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let alone = [name];
        let names = GROUPS
            .iter()
            .find(|(group, _)| group.eq_ignore_ascii_case(name))
            .map_or(&alone[..], |(_, names)| *names);
        for name in names {
            let Some(test) = find(name) else {
                let known: Vec<&str> = TESTS.iter().chain(FURTHER).map(|test| test.name).collect();
                bail!("there is no test {name:?}; there are {}", known.join(", "));
            };
            cases.push(test.case());
        }
    }
    ensure!(!cases.is_empty(), "-t names no test");
    Ok(cases)
}

/// How the keys of the tests begin.
const KEYS: &[&str] = &["key:", "counter:", "mylist", "myset", "myhash", "myzset", "mystream"];

/// A word of a test as it is for a cluster: a key has a tag. In front of its number, so that each number has its own.
fn tagged(word: &mut String) {
    if !KEYS.iter().any(|key| word.starts_with(key)) {
        return;
    }
    match word.strip_suffix(RANDOM) {
        Some(before) => *word = format!("{before}{TAG}:{RANDOM}"),
        None => *word = format!("{word}:{TAG}"),
    }
}

impl Case {
    /// The same for a cluster.
    pub(super) fn with_tags(mut self) -> Case {
        self.commands.iter_mut().flat_map(|command| &mut command.argv).for_each(tagged);
        self.setup = self.setup.into_iter().map(Setup::with_tags).collect();
        self
    }

    /// Requests that a step of the mix sends in the mean: a sequence of commands is one step.
    pub(super) fn requests_per_step(&self) -> f64 {
        let (mut weights, mut requests, mut weight) = (0.0, 0.0, 0.0);
        for command in &self.commands {
            if !command.follows {
                weight = f64::from(command.weight);
                weights += weight;
            }
            requests += weight;
        }
        requests / weights
    }
}

impl Setup {
    /// The same for a cluster.
    pub(super) fn with_tags(mut self) -> Setup {
        self.argv.iter_mut().for_each(tagged);
        self
    }

    /// Whether the masters of a cluster share its keys; otherwise each has them all.
    pub(super) fn is_shared(&self) -> bool {
        let numbered = format!("{TAG}:{RANDOM}");
        self.argv.iter().any(|word| word.ends_with(&numbered))
    }
}

/// One command from the command line.
pub(super) fn single(argv: &[String]) -> Case {
    let label = argv.join(" ");
    Case {
        commands: vec![Command::new(&label, argv.to_vec(), 1)],
        label,
        setup: Vec::new(),
        subscribers: None,
    }
}

/// `--mix get=9,set=1`
pub(super) fn mix(text: &str) -> Result<Case> {
    let mut commands = Vec::new();
    let mut setup = Vec::new();
    for part in text.split(',') {
        let (name, weight) = part.split_once(['=', ':']).unwrap_or((part, "1"));
        let Some(test) = find(name.trim()) else { bail!("--mix: there is no test {name:?}") };
        commands.push(test.command(parse_weight(weight)?));
        setup.extend(test.case().setup);
    }
    checked(Case { label: format!("mix {text}"), commands, setup, subscribers: None })
}

/// Lines `WEIGHT COMMAND ARGUMENT…`; empty ones and those that begin with `#` are passed over.
pub(super) fn mix_file(name: &str, text: &str) -> Result<Case> {
    let mut commands = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut argv = words(line);
        let weight = argv.remove(0);
        let Ok(weight) = parse_weight(&weight) else {
            bail!("{name}:{}: a line is WEIGHT COMMAND ARGUMENT…, and {weight:?} is no weight", number + 1);
        };
        if argv.is_empty() || argv.len() > ARGUMENTS_MAX {
            bail!("{name}:{}: a command has 1 to {ARGUMENTS_MAX} words", number + 1);
        }
        let label = argv[0].to_uppercase();
        commands.push(Command::new(&label, argv, weight));
    }
    checked(Case { label: format!("mix of {name}"), commands, setup: Vec::new(), subscribers: None })
}

fn parse_weight(text: &str) -> Result<u32> {
    match text.trim().parse() {
        Ok(weight) if weight <= 1_000_000 => Ok(weight),
        _ => bail!("{text:?} is no weight: a number up to 1000000"),
    }
}

pub(super) fn checked(case: Case) -> Result<Case> {
    ensure!(case.commands.iter().any(|command| command.weight > 0), "a mix needs a weight above 0");
    ensure!(case.commands.len() <= COMMANDS_MAX, "a mix has at most {COMMANDS_MAX} commands");
    Ok(case)
}

/// Whether a protocol has commands as words on a line.
pub(super) const fn has_lines(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Resp2 | Protocol::Resp3)
}

/// Those that the protocol has.
pub(super) fn possible(cases: Vec<Case>, protocol: Protocol) -> Result<Vec<Case>> {
    let is_possible =
        |case: &Case| has_lines(protocol) || !case.commands.iter().any(|command| command.inline);
    let possible: Vec<Case> = cases.into_iter().filter(is_possible).collect();
    ensure!(!possible.is_empty(), "{INLINE}: {protocol} has no words on a line; take -2 or -3");
    Ok(possible)
}

/// `SET` of every key in order, so that what reads finds something.
pub(super) fn preload(keys: u64) -> Setup {
    Setup { argv: vec!["SET".into(), format!("key:{RANDOM}"), DATA.into()], times: keys.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_by_name_and_group() {
        let labels = |names: &str| -> Vec<String> {
            named(names).unwrap().into_iter().map(|case| case.label).collect()
        };
        assert_eq!(labels("SET,get"), ["SET", "GET"]);
        assert_eq!(labels("lrange").len(), 4);
        assert_eq!(labels("ping"), ["PING_INLINE", "PING_MBULK"]);
        // redis-benchmark's, in its order.
        let defaults: Vec<String> = default_cases().into_iter().map(|case| case.label).collect();
        assert_eq!(defaults[..4], ["PING_INLINE", "PING_MBULK", "SET", "GET"]);
        let error = named("set,nix").unwrap_err().to_string();
        assert!(error.contains("nix") && error.contains("lrange_100"), "{error}");
        assert!(named(",").is_err());
        assert_eq!(named("mset").unwrap()[0].commands[0].argv.len(), 21);
    }

    #[test]
    fn the_keys_of_every_test_have_a_tag_in_a_cluster() {
        let tags = |argv: &[String]| argv.iter().filter(|word| word.contains(TAG)).count();
        for test in TESTS.iter().chain(FURTHER) {
            let case = test.case().with_tags();
            let keys = match test.name {
                INLINE | "ping_mbulk" => 0,
                "mset" | "mget" => 10,
                _ => 1,
            };
            for command in &case.commands {
                assert_eq!(tags(&command.argv), keys, "{:?}", command.argv);
            }
            assert!(case.setup.iter().all(|setup| tags(&setup.argv) == 1 && !setup.is_shared()));
        }
        assert!(preload(5).with_tags().is_shared());
    }

    #[test]
    fn mixes_have_weights() {
        let case = mix("get=9,set").unwrap();
        assert_eq!(case.commands.iter().map(|command| command.weight).collect::<Vec<_>>(), [9, 1]);
        let case = mix_file("f", "# reads\n9 GET key:__rand_int__\n\n1 INCR n\n").unwrap();
        assert_eq!(case.commands[1].argv, ["INCR", "n"]);
        for bad in ["x GET k", "5", "0 GET k", ""] {
            assert!(mix_file("f", bad).is_err(), "{bad}");
        }
        assert!(mix("get=x").is_err() && mix("nix=1").is_err());
    }
}
