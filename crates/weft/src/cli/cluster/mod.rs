//! `--cluster`: looks at, makes and mends clusters of Redis and Valkey, with redis-cli's commands and words.
//!
//! Owns the command line of it. Reading order: [`slots`], [`nodes`] (what a cluster is), [`check`] (what is wrong with
//! it), [`create`], [`moving`] (a slot with its keys), [`plan`] (reshard, rebalance), [`fix`], [`members`] (the rest).

mod check;
mod create;
mod fix;
mod members;
mod moving;
mod nodes;
mod plan;
mod slots;

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use weft_client::{Config, Protocol};

use self::nodes::Cluster;

/// Where a node listens.
type Place = (String, u16);

/// How much longer than a node may take to move keys its answer is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The flags of `--cluster`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Clusters")]
pub(super) struct Flags {
    /// Look at, make or mend a cluster; `--cluster help` lists the commands
    #[arg(long = "cluster", value_names = ["COMMAND", "ARGUMENT"], num_args = 1.., group = "mode")]
    pub(super) cluster_command: Vec<OsString>,
    /// Answer every question with yes
    #[arg(long = "cluster-yes")]
    yes: bool,
    /// create: replicas of each master
    #[arg(long = "cluster-replicas", value_name = "N", default_value_t = 0)]
    replicas: u32,
    /// check, fix: look for slots that several masters have, too
    #[arg(long = "cluster-search-multiple-owners")]
    search_multiple_owners: bool,
    /// fix: take the slots of masters that cannot be reached for lost
    #[arg(long = "cluster-fix-with-unreachable-masters")]
    fix_with_unreachable_masters: bool,
    /// reshard: who gives slots, ids with commas, or all; import: the server whose keys are imported
    #[arg(long = "cluster-from", value_name = "IDS|HOST:PORT")]
    from: Option<String>,
    /// import: user of the source
    #[arg(long = "cluster-from-user", value_name = "NAME")]
    from_user: Option<String>,
    /// import: password of the source
    #[arg(long = "cluster-from-pass", value_name = "PASSWORD")]
    from_pass: Option<String>,
    /// import: ask for the password of the source
    #[arg(long = "cluster-from-askpass", conflicts_with = "from_pass")]
    from_askpass: bool,
    /// reshard: who gets slots
    #[arg(long = "cluster-to", value_name = "ID")]
    to: Option<String>,
    /// reshard: how many slots
    #[arg(long = "cluster-slots", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16_384))]
    slots: Option<u16>,
    /// Milliseconds that a node may take to send keys to another
    #[arg(long = "cluster-timeout", value_name = "MS", default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    timeout: u64,
    /// Keys that are sent at a time
    #[arg(long = "cluster-pipeline", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pipeline: u32,
    /// Replace keys that the target has, too
    #[arg(long = "cluster-replace")]
    replace: bool,
    /// import: leave the keys at the source, too
    #[arg(long = "cluster-copy")]
    copy: bool,
    /// rebalance: how much of the slots a master is to have beside others that have 1
    #[arg(long = "cluster-weight", value_name = "ID=WEIGHT", num_args = 1..)]
    weight: Vec<String>,
    /// rebalance: masters without slots get some, too
    #[arg(long = "cluster-use-empty-masters")]
    use_empty_masters: bool,
    /// rebalance: only say what would be moved
    #[arg(long = "cluster-simulate")]
    simulate: bool,
    /// rebalance: percent that a master may have more or less than it is to have
    #[arg(long = "cluster-threshold", value_name = "PERCENT", default_value_t = 2.0)]
    threshold: f64,
    /// add-node: the new node becomes a replica
    #[arg(long = "cluster-slave", alias = "cluster-replica")]
    slave: bool,
    /// add-node: whose replica
    #[arg(long = "cluster-master-id", value_name = "ID", requires = "slave")]
    master_id: Option<String>,
    /// call: masters alone
    #[arg(long = "cluster-only-masters", conflicts_with = "only_replicas")]
    only_masters: bool,
    /// call: replicas alone
    #[arg(long = "cluster-only-replicas")]
    only_replicas: bool,
}

const HELP: &str = "\
Cluster Manager Commands:
  create         host1:port1 ... hostN:portN
                 --cluster-replicas <arg>
  check          <host:port> or <host> <port> - separated by either colon or space
                 --cluster-search-multiple-owners
  info           <host:port> or <host> <port> - separated by either colon or space
  fix            <host:port> or <host> <port> - separated by either colon or space
                 --cluster-search-multiple-owners
                 --cluster-fix-with-unreachable-masters
  reshard        <host:port> or <host> <port> - separated by either colon or space
                 --cluster-from <arg>
                 --cluster-to <arg>
                 --cluster-slots <arg>
                 --cluster-yes
                 --cluster-timeout <arg>
                 --cluster-pipeline <arg>
                 --cluster-replace
  rebalance      <host:port> or <host> <port> - separated by either colon or space
                 --cluster-weight <node1=w1...nodeN=wN>
                 --cluster-use-empty-masters
                 --cluster-timeout <arg>
                 --cluster-simulate
                 --cluster-pipeline <arg>
                 --cluster-threshold <arg>
                 --cluster-replace
  add-node       new_host:new_port existing_host:existing_port
                 --cluster-slave
                 --cluster-master-id <arg>
  del-node       host:port node_id
  call           host:port command arg arg .. arg
                 --cluster-only-masters
                 --cluster-only-replicas
  set-timeout    host:port milliseconds
  import         host:port
                 --cluster-from <arg>
                 --cluster-from-user <arg>
                 --cluster-from-pass <arg>
                 --cluster-from-askpass
                 --cluster-copy
                 --cluster-replace
  backup         host:port backup_directory
  help

For check, fix, reshard, del-node, set-timeout, info, rebalance, call, import, backup you can specify the host and \
port of any working node in the cluster.
";

/// Runs the command. What cannot be done is said on the standard error, with status 1.
pub(super) fn run(config: &Config, flags: &Flags) -> Result<ExitCode> {
    // Words of a command line are bytes; only those of `call` may be no text.
    let words: Vec<Vec<u8>> = flags.cluster_command.iter().map(|word| word.as_bytes().to_vec()).collect();
    let patience = Some(Duration::from_millis(flags.timeout) + PATIENCE);
    let mut config = Config { protocol: Protocol::Resp2, channel: 0, db: 0, ..config.clone() };
    (config.timeouts.reply, config.timeouts.write) = (patience, patience);
    match command(&config, flags, &words) {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::FAILURE),
        Err(error) => {
            let text = format!("{error:#}");
            // What is wrong with a cluster is told where its state is, as redis-cli has it; what is wrong with the
            // command line, or with the connection, is not.
            match text.starts_with("[ERR]") && !error.is::<WrongLine>() {
                true => println!("{text}"),
                false => eprintln!("{text}"),
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

/// A command line that `--cluster` does not take.
#[derive(Debug)]
struct WrongLine(String);

impl std::fmt::Display for WrongLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongLine {}

impl WrongLine {
    /// A command with too few or too many words.
    fn arguments(name: &str) -> anyhow::Error {
        // The help has a line for each command, and its flags below.
        let usage =
            HELP.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap_or_default();
        WrongLine(format!(
            "[ERR] Wrong number of arguments for specified --cluster sub command\n{usage}\n`weft cli --cluster help` \
             lists all"
        ))
        .into()
    }
}

fn command(config: &Config, flags: &Flags, words: &[Vec<u8>]) -> Result<bool> {
    let [name, args @ ..] = words else { bail!("{HELP}") };
    let name = String::from_utf8_lossy(name).into_owned();
    if name == "help" {
        print!("{HELP}");
        return Ok(true);
    }
    if name == "call" {
        return call(config, flags, args);
    }
    let args: Vec<String> = args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let load = |args: &[&str]| -> Result<Cluster> {
        let (host, port) = places(args)?;
        Cluster::load(config, &host, port)
    };
    let done = |()| true;
    match (name.as_str(), &args[..]) {
        ("create", [_, ..]) => {
            let all: Result<Vec<Place>> = args.iter().map(|text| place(text)).collect();
            create::create(config, flags, &all?)
        }
        ("info", [_] | [_, _]) => check::info(&mut load(&args)?).map(done),
        ("check", [_] | [_, _]) => {
            let mut cluster = load(&args)?;
            check::info(&mut cluster)?;
            check::check(&mut cluster, flags, false, false)
        }
        ("fix", [_] | [_, _]) => {
            let mut cluster = load(&args)?;
            check::info(&mut cluster)?;
            check::check(&mut cluster, flags, true, false)
        }
        ("reshard", [_] | [_, _]) => plan::reshard(&mut load(&args)?, flags).map(done),
        ("rebalance", [_] | [_, _]) => plan::rebalance(&mut load(&args)?, flags).map(done),
        ("add-node", [new, known]) => {
            members::add(config, flags, &place(new)?, &mut load(&[known])?).map(done)
        }
        ("del-node", [node, id]) => members::delete(&mut load(&[node])?, id).map(done),
        ("set-timeout", [node, ms]) => members::set_timeout(&mut load(&[node])?, ms),
        ("import", [_] | [_, _]) => members::import(config, flags, &mut load(&args)?).map(done),
        ("backup", [node, folder]) => members::backup(config, flags, &mut load(&[node])?, Path::new(folder)),
        (name, _) if HELP.lines().any(|line| line.split_whitespace().next() == Some(name)) => {
            Err(WrongLine::arguments(name))
        }
        (name, _) => {
            bail!("Unknown --cluster subcommand: {name}; `weft cli --cluster help` lists those there are")
        }
    }
}

fn call(config: &Config, flags: &Flags, args: &[Vec<u8>]) -> Result<bool> {
    let [node, args @ ..] = args else { return Err(WrongLine::arguments("call")) };
    let (host, port) = place(&String::from_utf8_lossy(node))?;
    if args.is_empty() {
        return Err(WrongLine::arguments("call"));
    }
    members::call(&mut Cluster::load(config, &host, port)?, flags, args)?;
    Ok(true)
}

/// `HOST:PORT`
fn place(text: &str) -> Result<Place> {
    let parsed = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parsed.with_context(|| format!("Invalid arguments: '{text}' is no HOST:PORT"))?;
    Ok((host.trim_matches(['[', ']']).to_string(), port))
}

/// `HOST:PORT`, or `HOST PORT`.
fn places(args: &[&str]) -> Result<Place> {
    match args {
        [host, port] => place(&format!("{host}:{port}")),
        args => place(args.first().copied().unwrap_or_default()),
    }
}

/// What somebody answers to a question.
fn answer(question: &str) -> Result<String> {
    print!("{question}");
    std::io::stdout().flush()?;
    let mut line = String::new();
    let len = std::io::stdin().read_line(&mut line)?;
    if len == 0 {
        bail!("\nnobody answers: the flags that answer stand in --cluster help");
    }
    Ok(line.trim().to_string())
}

/// Whether somebody says yes.
fn confirmed(flags: &Flags, question: &str) -> Result<bool> {
    Ok(flags.yes || answer(question)?.eq_ignore_ascii_case("yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let of = |text| place(text).ok();
        assert_eq!(of("127.0.0.1:7000"), Some(("127.0.0.1".into(), 7000)));
        assert_eq!(of("[::1]:7000"), Some(("::1".into(), 7000)));
        assert_eq!(places(&["host", "7000"]).ok(), Some(("host".into(), 7000)));
        assert_eq!((of("host"), of("host:"), of("host:70000")), (None, None, None));
    }
}
