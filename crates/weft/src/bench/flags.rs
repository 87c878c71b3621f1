//! The command line of `weft bench`. Owns the names, which are redis-benchmark's where it has them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::endpoint::{Wire, database, host};
use crate::tls::TlsFlags;

const EXAMPLES: &str = "\
Examples:
  weft bench -t set,get -n 1000000 -P 16 -q
  weft bench -4 --mux 500 -c 4 -t get -r 100000 --preload
  weft bench -3 --rps 20000 --duration 30 --mix get=9,set=1 -r 1000000 --keys zipf -d 16-1024
  weft bench -4 -t get,set -P 100 --vs 127.0.0.1:6380,resp3 --rounds 5
  weft bench -r 1000 EVALSHA abc 1 key:__rand_int__
  weft bench --preset mux
  weft bench -4 --workload bench/workloads/sessions.toml -P 16 --duration 5
  weft bench --http -t set,get -P 100 --pipeline-body
  weft bench --cluster -p 7000 -t set,get -r 100000 --preload

Tests for -t: ping_inline ping_mbulk set get incr lpush rpush lpop rpop sadd hset spop zadd zpopmin lrange_100
lrange_300 lrange_500 lrange_600 mset xadd; by name only: mget del exists setex hget hgetall_50 zrange_100
smembers_100.
Status: 0 all was answered and nothing was an error; 1 otherwise. Guide: docs/bench.md";

/// Flags that redis-benchmark has and this has not, and why.
pub(crate) const LACKING: &[(&str, &str)] = &[
    ("--tls-ciphers", "the cipher suites are those of rustls, all of them of today"),
    ("--tls-ciphersuites", "the cipher suites are those of rustls, all of them of today"),
    ("--dbsize", "it is --dbnum"),
];

/// Measure a server: RESP2, RESP3, HTTP, or RESPB with any number of logical clients on each connection
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true, disable_version_flag = true, args_override_self = true)]
pub(crate) struct Options {
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    pub(super) help: Option<bool>,
    /// Print version
    #[arg(short = 'v', short_alias = 'V', long, action = clap::ArgAction::Version)]
    pub(super) version: Option<bool>,

    /// Server host
    #[arg(short = 'h', value_name = "HOST", default_value = "127.0.0.1", value_parser = host)]
    pub(super) host: String,
    /// Server port
    #[arg(short, value_name = "PORT", default_value_t = 6379)]
    pub(super) port: u16,
    /// Server Unix socket, instead of host and port
    #[arg(short, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
    /// Server URL, instead of all of these: redis://[user:password@]host[:port][/db], rediss://… for TLS, unix://path,
    /// http://[token@]host[:port]
    #[arg(short = 'u', value_name = "URL", conflicts_with_all = ["host", "port", "socket", "password", "user"])]
    pub(super) url: Option<String>,
    /// Password; without it WEFTCLI_AUTH, VALKEYCLI_AUTH or REDISCLI_AUTH
    #[arg(short = 'a', value_name = "PASSWORD")]
    pub(super) password: Option<String>,
    /// User, with -a
    #[arg(long, value_name = "NAME")]
    pub(super) user: Option<String>,
    /// Database
    #[arg(long = "dbnum", value_name = "DB", default_value_t = 0, allow_negative_numbers = true, value_parser = database)]
    pub(super) db: u32,

    #[command(flatten)]
    pub(super) tls: TlsFlags,

    #[command(flatten)]
    pub(super) wire: Wire,
    /// Send the requests of -P as one body to /pipeline, rather than one behind the other (HTTP)
    #[arg(long)]
    pub(super) pipeline_body: bool,
    /// Logical clients on each connection: over RESPB each a channel of its own, over RESP their requests go out one
    /// behind the other as they come
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) mux: u32,

    /// Connections [default: 50, or what the file of --workload says]
    #[arg(short, value_name = "CLIENTS", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(super) clients: Option<u32>,
    /// Requests of each test [default: 100000; the presets run for --duration instead]
    #[arg(short = 'n', value_name = "REQUESTS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) requests: Option<u64>,
    /// Requests that a client sends before it waits for their answers
    #[arg(short = 'P', value_name = "REQUESTS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) pipeline: u32,
    /// Bytes of a value: SIZE, LOW-HIGH, or SIZE:WEIGHT,SIZE:WEIGHT,…
    #[arg(short = 'd', value_name = "SIZES", default_value = "3")]
    pub(super) data: String,
    /// Keys: __rand_int__ in a command is a number below this; without it there is one key
    #[arg(short = 'r', value_name = "KEYS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000))]
    pub(super) keyspace: u64,
    /// How keys are chosen: uniform, zipf, zipf:EXPONENT, sequential
    #[arg(long = "keys", value_name = "HOW", default_value = "uniform")]
    pub(super) distribution: String,
    /// Store every key of -r before the first test, so that reads find something
    #[arg(long)]
    pub(super) preload: bool,
    /// Threads, each with its share of the connections
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) threads: u32,
    /// 0: make a connection anew for each batch
    #[arg(short = 'k', value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(super) keep_alive: u8,
    /// Seed of keys and sizes
    #[arg(long, value_name = "N", default_value_t = 12345)]
    pub(super) seed: u64,

    /// Drive all masters of the cluster that the server is a node of; each by a thread of its own
    #[arg(long, conflicts_with_all = ["respb", "versus", "preset", "delay", "socket"])]
    pub(super) cluster: bool,
    /// CLIENT TRACKING ON for each client before the tests (RESP3, RESPB)
    #[arg(long)]
    pub(super) enable_tracking: bool,

    /// Tests, with commas
    #[arg(short = 't', value_name = "TESTS")]
    pub(super) tests: Option<String>,
    /// One mixed test: TEST=WEIGHT,TEST=WEIGHT,…
    #[arg(long, value_name = "MIX", conflicts_with_all = ["tests", "command"])]
    pub(super) mix: Option<String>,
    /// One mixed test from a file of lines WEIGHT COMMAND ARGUMENT…
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tests", "mix", "command"])]
    pub(super) mix_file: Option<PathBuf>,
    /// A workload from a file, such as those of bench/workloads: its keys, values, times to live and mix, with every
    /// reply compared; see docs/bench.md
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "tests", "mix", "mix_file", "command", "keyspace", "distribution", "data", "preload", "cluster", "pipeline_body"
    ])]
    pub(super) workload: Option<PathBuf>,
    /// Several tables in one go, RESP3 beside RESPB, or with --http beside HTTP: seed-throughput, seed-pipeline, mux,
    /// network, types
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tests", "mix", "mix_file", "command", "versus", "workload"])]
    pub(super) preset: Option<Preset>,
    /// Read the last argument of COMMAND from standard input
    #[arg(short = 'x', requires = "command")]
    pub(super) stdin: bool,
    /// Repeat the tests until interrupted
    #[arg(short = 'l')]
    pub(super) forever: bool,
    /// Only open the connections, and wait until interrupted
    #[arg(short = 'I')]
    pub(super) idle: bool,

    /// Send at a fixed rate of requests a second; latencies count from when a request was due
    #[arg(long, value_name = "RATE", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) rps: Option<u64>,
    /// End each test after so many seconds instead of -n
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) duration: Option<f64>,
    /// Run each test for so many seconds before it is measured
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) warmup: Option<f64>,
    /// Go through a relay that adds so many milliseconds to a round trip
    #[arg(long, value_name = "MS", value_parser = seconds, conflicts_with = "socket")]
    pub(super) delay: Option<f64>,
    /// Give up after so many seconds without an answer that is due
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    pub(super) timeout: f64,
    /// Compare the values that come back with those that were stored
    #[arg(long)]
    pub(super) verify: bool,

    /// Compare with another server in the same run: HOST:PORT[,resp2|resp3|respb|http][,mux=N]; may be given again
    #[arg(long = "vs", value_name = "TARGET")]
    pub(super) versus: Vec<String>,
    /// Rounds of a comparison, one target after the other in each
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) rounds: u32,
    /// The process whose CPU time and memory are shown; without it, the one that listens on the port
    #[arg(long, value_name = "PID")]
    pub(super) server_pid: Option<u32>,

    /// Show errors of the server: they are always shown
    #[arg(short = 'e')]
    pub(super) show_errors: bool,
    /// One line for each test
    #[arg(short = 'q')]
    pub(super) quiet: bool,
    /// Decimals of latencies in milliseconds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=6))]
    pub(super) precision: u8,
    /// Print CSV, redis-benchmark's columns first
    #[arg(long, conflicts_with = "json")]
    pub(super) csv: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write the JSON into a file, beside what is printed
    #[arg(long, value_name = "FILE")]
    pub(super) save: Option<PathBuf>,
    /// Write each test's latencies as a percentile file of HDR histograms into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) hdr: Option<PathBuf>,
    /// Write a page with the table and the plot
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Draw the latencies by percentile
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,

    /// A command of your own, with __rand_int__ and __data__, and with {tag} in the key for --cluster
    #[arg(value_name = "COMMAND", trailing_var_arg = true, conflicts_with = "tests")]
    pub(super) command: Vec<String>,
}

/// Tables that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Preset {
    /// GET and SET, 128 clients, pipeline 128, 1 KB: the founding proposal's first table
    SeedThroughput,
    /// GET at pipeline 1, 10, 50, 100, 200: its second table
    SeedPipeline,
    /// 10 to 10,000 logical clients as connections and as channels: CPU, memory
    Mux,
    /// 50 clients through 0, 0.2, 1 and 20 ms of network
    Network,
    /// Every type's commands
    Types,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && (0.0..=1e6).contains(&value) => Ok(value),
        _ => Err("a number from 0 to 1000000".to_string()),
    }
}
