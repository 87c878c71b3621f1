//! The command line of `weft cli`. Owns the names, which are redis-cli's where it has them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::cluster;
use crate::endpoint::{Endpoint, Wire, database, seconds};

const EXAMPLES: &str = "\
Examples:
  weft cli                                    a prompt with completion, history and hints; `help` there says more
  weft cli -4 --mux 7 -n 2                    the same over RESPB, on channel 7, in database 2
  weft cli -u rediss://user@host:6380/1 GET k
  weft cli -u http://token@host:8080 GET k
  cat value | weft cli -x SET k
  weft cli --scan --pattern 'user:*' | xargs -r weft cli DEL
  weft cli -4 --pipe < commands.resp
  weft cli --eval script.lua key1 key2 , arg1

The password is taken from WEFTCLI_AUTH, VALKEYCLI_AUTH or REDISCLI_AUTH when it is not given.
Status: 0 done; 1 the server could not be reached, does not speak the protocol, or, with -e, answered an error.";

/// Flags that redis-cli has and this has not, and why.
pub(crate) const LACKING: &[(&str, &str)] = &[
    ("--ldb", "there is no debugger of scripts; --eval runs one"),
    ("--ldb-sync-mode", "there is no debugger of scripts; --eval runs one"),
    ("--tls-ciphers", "the cipher suites are those of rustls, all of them of today"),
    ("--tls-ciphersuites", "the cipher suites are those of rustls, all of them of today"),
];

/// Talk to a server: a prompt, single commands, and tools that look around in it
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES, disable_version_flag = true, args_override_self = true)]
pub(crate) struct Options {
    /// Print version
    #[arg(short = 'v', short_alias = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,

    #[command(flatten)]
    pub(super) endpoint: Endpoint,
    /// Database
    #[arg(short = 'n', value_name = "DB", allow_negative_numbers = true, value_parser = database)]
    pub(super) db: Option<u32>,
    /// Name of the connection
    #[arg(long = "name", value_name = "NAME")]
    pub(super) client_name: Option<String>,
    #[command(flatten)]
    pub(super) wire: Wire,
    /// Channel of the RESPB connection
    #[arg(long, value_name = "N", requires = "respb")]
    pub(super) mux: Option<u16>,

    /// Repeat the command so many times, -1 for ever; so many lines of --stat and --lru-test
    #[arg(short = 'r', value_name = "TIMES", allow_negative_numbers = true)]
    pub(super) repeat: Option<i64>,
    /// Seconds between repetitions, and between the lines of the tools
    #[arg(short = 'i', value_name = "SECONDS", value_parser = seconds)]
    pub(super) interval: Option<f64>,
    /// Read the last argument from standard input
    #[arg(short = 'x')]
    pub(super) stdin: bool,
    /// Read the argument TAG from standard input
    #[arg(short = 'X', value_name = "TAG", conflicts_with = "stdin")]
    pub(super) stdin_tag: Option<OsString>,
    /// Follow -MOVED and -ASK of a cluster
    #[arg(short = 'c')]
    pub(super) cluster: bool,
    /// Status 1 when a command is answered with an error
    #[arg(short = 'e')]
    pub(super) error_status: bool,
    /// The arguments are in quotes with escapes
    #[arg(long)]
    pub(super) quoted_input: bool,

    /// Show values alone, as when the output is no terminal; of the five that say how, the last counts
    #[arg(long, overrides_with_all = ["no_raw", "csv", "json", "quoted_json"])]
    pub(super) raw: bool,
    /// Show types and quotes, as on a terminal
    #[arg(long, overrides_with_all = ["csv", "json", "quoted_json"])]
    pub(super) no_raw: bool,
    /// Show CSV
    #[arg(long, overrides_with_all = ["json", "quoted_json"])]
    pub(super) csv: bool,
    /// Show JSON; speaks RESP3 unless told otherwise
    #[arg(long, overrides_with = "quoted_json")]
    pub(super) json: bool,
    /// Show JSON whose texts have only ASCII
    #[arg(long)]
    pub(super) quoted_json: bool,
    /// What stands between the elements of a raw reply
    #[arg(
        short = 'd',
        value_name = "TEXT",
        default_value = "\n",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub(super) element_delimiter: String,
    /// What stands behind a raw reply
    #[arg(
        short = 'D',
        value_name = "TEXT",
        default_value = "\n",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub(super) reply_delimiter: String,
    /// Show pushes that no command asked for
    #[arg(long, value_name = "yes|no", value_parser = yes_or_no)]
    pub(super) show_pushes: Option<bool>,
    /// Program that shows replies longer than the screen at the prompt; WEFTCLI_PAGER
    #[arg(long, value_name = "COMMAND")]
    pub(super) pager: Option<String>,

    /// Print what the server does, a line at a time
    #[arg(long, group = "mode")]
    pub(super) stat: bool,
    /// Measure how long PING takes
    #[arg(long, group = "mode")]
    pub(super) latency: bool,
    /// The same, with a new line every 15 seconds (-i)
    #[arg(long, group = "mode")]
    pub(super) latency_history: bool,
    /// The same, as a spectrum of colours every second (-i)
    #[arg(long, group = "mode")]
    pub(super) latency_dist: bool,
    /// Measure for so many seconds how long this machine keeps a program from running; without a server
    #[arg(long, value_name = "SECONDS", group = "mode", value_parser = seconds)]
    pub(super) intrinsic_latency: Option<f64>,
    /// Read and fill a cache of so many keys, four fifths of it a fifth of them, and show hits and misses
    #[arg(long, value_name = "KEYS", group = "mode", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(super) lru_test: Option<u64>,
    /// Look for the keys with the most elements
    #[arg(long, group = "mode")]
    pub(super) bigkeys: bool,
    /// Look for the keys that take the most memory
    #[arg(long, group = "mode")]
    pub(super) memkeys: bool,
    /// Samples of nested values for --memkeys; 0 for all
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(super) memkeys_samples: u32,
    /// Look for the keys that are used most; needs an LFU policy
    #[arg(long, group = "mode")]
    pub(super) hotkeys: bool,
    /// Print all keys
    #[arg(long, group = "mode")]
    pub(super) scan: bool,
    /// Keys that --scan, --bigkeys, --memkeys and --hotkeys look at
    #[arg(long, value_name = "GLOB")]
    pub(super) pattern: Option<String>,
    /// The same in quotes with escapes
    #[arg(long, value_name = "GLOB", conflicts_with = "pattern")]
    pub(super) quoted_pattern: Option<String>,
    /// Keys of this type alone, for --scan
    #[arg(long = "type", value_name = "TYPE", requires = "scan")]
    pub(super) key_type: Option<String>,
    /// Keys that a step of --scan looks at
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) count: u32,
    /// Send the commands of standard input, RESP or RESPB, all at once
    #[arg(long, group = "mode")]
    pub(super) pipe: bool,
    /// Seconds without a reply after which --pipe gives up; 0 for never
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(super) pipe_timeout: u64,
    /// Copy the data of a server into a file, an RDB, as a replica gets it; - for the standard output
    #[arg(long, value_name = "FILE", group = "mode")]
    pub(super) rdb: Option<PathBuf>,
    /// Copy its functions alone
    #[arg(long, value_name = "FILE", group = "mode")]
    pub(super) functions_rdb: Option<PathBuf>,
    /// Show what a server tells its replicas
    #[arg(long, alias = "slave", group = "mode")]
    pub(super) replica: bool,
    /// Run a Lua script: --eval FILE KEY… , ARGUMENT…
    #[arg(long, value_name = "FILE", group = "mode")]
    pub(super) eval: Option<PathBuf>,

    #[command(flatten)]
    pub(super) manage: cluster::Flags,

    /// Say on the standard error which server was reached, and how
    #[arg(long)]
    pub(super) verbose: bool,

    /// A command with its arguments; without one there is a prompt, or commands are read from standard input
    ///
    /// What stands behind its first word is the command's; before it every flag must be one of the above.
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub(super) command: Vec<OsString>,
}

impl Options {
    /// Lines that a tool prints which would go on for ever: `-r`.
    pub(super) fn lines_max(&self) -> u64 {
        self.repeat.and_then(|lines| u64::try_from(lines).ok()).unwrap_or(u64::MAX)
    }

    /// The tool that was asked for, where it is one that takes no command. The words behind a command's first are its
    /// own, so that in `--scan x --pattern p` the pattern would be lost.
    pub(super) fn tool_without_command(&self) -> Option<&'static str> {
        let tools = [
            ("--stat", self.stat),
            ("--latency", self.latency),
            ("--latency-history", self.latency_history),
            ("--latency-dist", self.latency_dist),
            ("--intrinsic-latency", self.intrinsic_latency.is_some()),
            ("--lru-test", self.lru_test.is_some()),
            ("--bigkeys", self.bigkeys),
            ("--memkeys", self.memkeys),
            ("--hotkeys", self.hotkeys),
            ("--scan", self.scan),
            ("--pipe", self.pipe),
            ("--rdb", self.rdb.is_some()),
            ("--functions-rdb", self.functions_rdb.is_some()),
            ("--replica", self.replica),
            ("--cluster", !self.manage.cluster_command.is_empty()),
        ];
        tools.iter().find(|(_, asked)| *asked).map(|(name, _)| *name)
    }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "y" => Ok(true),
        "no" | "n" => Ok(false),
        _ => Err("yes or no".into()),
    }
}
