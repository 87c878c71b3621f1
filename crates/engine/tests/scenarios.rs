//! Owns: `conformance/scenarios/commands`: each command in its normal, its edge and its error forms, over each wire,
//! and the check that no command that is served lacks one. Does not own: replies whose form differs with the protocol
//! (vectors, and the tests of each group), random arguments (`differential`).
//!
//! A scenario is commands, one a line, each followed by its reply, which is indented. The reply is its values in order,
//! without the brackets of arrays, maps and sets, so that it is one for all protocols; what is not printable is `\xHH`,
//! nothing at all is `(nothing)`, and `*` stands for any. The replies were recorded from Valkey 9.1.2.

#[path = "support/scenarios.rs"]
mod files;
mod support;

use std::collections::{BTreeMap, BTreeSet};

use files::{command, has_streams, is_same, leaves, scenarios, words};
use support::Bench;
use weft_engine::blocking::End;
use weft_engine::reply::{Captured, JsonForm, Output, Protocol, ReplySink, Wire};
use weft_protocol::table::{COMMANDS, CommandId};

/// The wires that replies can be read of without loss. Plain JSON says of values that are no text what they are, which
/// only `leaves` does not.
const ALL: [Protocol; 5] = [
    Protocol::Resp2,
    Protocol::Resp3,
    Protocol::Respb,
    Protocol::Json(JsonForm::UpstashBase64),
    Protocol::Json(JsonForm::Plain),
];

/// Served commands without a scenario, and where they are tested instead.
const ELSEWHERE: &[(&str, &str)] = &[
    ("ACL HELP", "the lines of HELP are Weft's own"),
    ("CLIENT HELP", "the lines of HELP are Weft's own"),
    ("COMMAND HELP", "the lines of HELP are Weft's own"),
    ("COMMANDLOG HELP", "the lines of HELP are Weft's own"),
    ("CONFIG HELP", "the lines of HELP are Weft's own"),
    ("LATENCY HELP", "the lines of HELP are Weft's own"),
    ("MEMORY HELP", "the lines of HELP are Weft's own"),
    ("MODULE HELP", "the lines of HELP are Weft's own"),
    ("OBJECT HELP", "the lines of HELP are Weft's own"),
    ("PROGRAM HELP", "the lines of HELP are Weft's own"),
    ("PROGRAM STATS", "times: tests/programs"),
    ("PUBSUB HELP", "the lines of HELP are Weft's own"),
    ("SCRIPT HELP", "the lines of HELP are Weft's own"),
    ("FUNCTION HELP", "the lines of HELP are Weft's own"),
    ("SCRIPT KILL", "needs a script that runs: crates/weft/tests/scripts.rs"),
    ("FUNCTION KILL", "needs a function that runs: crates/weft/tests/scripts.rs"),
    ("SENTINEL HELP", "the lines of HELP are Weft's own"),
    ("TRIGGER HELP", "the lines of HELP are Weft's own"),
    ("SLOWLOG HELP", "the lines of HELP are Weft's own"),
    ("XGROUP HELP", "the lines of HELP are Weft's own"),
    ("XINFO HELP", "the lines of HELP are Weft's own"),
    ("ACL CAT", "what is served decides: tests/acl.rs"),
    ("ACL GENPASS", "random: tests/acl.rs"),
    ("ACL GETUSER", "tests/acl.rs"),
    ("ACL LIST", "tests/acl.rs"),
    ("ACL LOAD", "needs a file: tests/acl.rs"),
    ("ACL SAVE", "needs a file: tests/acl.rs"),
    ("CLIENT INFO", "tests/clients.rs"),
    ("CLIENT KILL", "needs another client: tests/clients.rs"),
    ("CLIENT LIST", "tests/clients.rs"),
    ("CLIENT REPLY", "not over RESPB: tests/clients.rs"),
    ("COMMAND", "the table: crates/weft/tests, conformance of the table"),
    ("COMMAND COUNT", "what is served decides"),
    ("COMMAND OPCODES", "Weft's own: tests/clients.rs"),
    ("CONFIG REWRITE", "needs a file: tests/config.rs"),
    ("DEBUG", "off unless it is allowed: tests/logs.rs"),
    ("HELLO", "changes the protocol: tests/clients.rs"),
    ("INFO", "tests/info.rs"),
    ("LATENCY DOCTOR", "the text is Weft's own: tests/logs.rs"),
    ("LATENCY GRAPH", "needs an event: tests/logs.rs"),
    ("LATENCY HISTOGRAM", "tests/logs.rs"),
    ("LOLWUT", "the picture is Weft's own"),
    ("MEMORY DOCTOR", "the text is Weft's own"),
    ("MEMORY MALLOC-STATS", "the text is Weft's own"),
    ("MEMORY STATS", "figures of the store: tests/info.rs"),
    ("MODULE LIST", "Weft has none: Valkey names its engine of scripts"),
    ("MONITOR", "never ends: tests/logs.rs, tests/e2e"),
    ("QUIT", "ends the connection: tests/e2e"),
    ("RESET", "changes the protocol: tests/clients.rs"),
    ("SHUTDOWN", "ends the server: crates/weft/tests/serve.rs"),
    ("TIME", "the clock: tests/e2e"),
    ("AUTH", "tests/acl.rs, tests/e2e"),
    ("BGREWRITEAOF", "needs a disk: crates/weft/tests/persistence.rs"),
    ("BGSAVE", "needs a disk: crates/weft/tests/persistence.rs"),
    ("SAVE", "needs a disk: crates/weft/tests/persistence.rs"),
    ("FAILOVER", "refused: there are no replicas"),
    ("OBJECT FREQ", "needs an LFU policy: tests/maxmemory.rs"),
];

fn run(bench: &mut Bench, client: u32, words: &[Vec<u8>]) -> String {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let mut replies = bench.run_args(client, &words);
    if replies.is_empty() && bench.is_waiting(client) {
        replies = bench.end_wait(client, End::Timeout);
    }
    let mut all = Vec::new();
    replies.iter().for_each(|reply| leaves(reply, &mut all));
    if all.is_empty() { "(nothing)".into() } else { all.join(" ") }
}

fn full_name(id: CommandId) -> String {
    let spec = id.spec();
    spec.container
        .map_or(spec.name.to_owned(), |container| format!("{} {}", container.spec().name, spec.name))
}

fn served(bench: &Bench) -> Vec<CommandId> {
    (0..COMMANDS.len() as u16).map(CommandId).filter(|id| bench.engine.serves(*id)).collect()
}

/// Whether a scenario can be had over a protocol: over HTTP what is subscribed to comes as an event stream, which the
/// server's tests look at, and the commands are refused.
fn is_for(protocol: Protocol, steps: &[(String, String)]) -> bool {
    protocol.has_streams() || !has_streams(steps)
}

#[test]
fn scenarios_answer_alike_over_each_protocol() {
    let mut wrong = Vec::new();
    for (name, steps) in scenarios() {
        for protocol in ALL.into_iter().filter(|&protocol| is_for(protocol, &steps)) {
            let (mut bench, client) = Bench::with(protocol);
            for (line, expected) in &steps {
                let got = run(&mut bench, client, &words(line));
                if !is_same(&got, expected) {
                    wrong.push(format!(
                        "{name}, {protocol:?}: {line}\n  got      {got}\n  expected {expected}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} replies differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Runs a command, and its wait to the end, and gives what was written.
fn written(bench: &mut Bench, client: u32, words: &[Vec<u8>]) -> Output {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    bench.execute(client, &words);
    if bench.is_waiting(client) {
        bench.give_up(client, End::Timeout);
    }
    bench.take_output(client)
}

#[test]
fn a_reply_that_is_kept_is_written_as_it_would_have_been() {
    let mut compared = 0;
    for protocol in ALL.into_iter().chain([Protocol::Json(JsonForm::Upstash)]) {
        for (name, steps) in scenarios().into_iter().filter(|(_, steps)| is_for(protocol, steps)) {
            let (mut direct, mut kept) = (Bench::new(), Bench::new());
            let (client, keeper) = (direct.connect(protocol), kept.connect(Protocol::Captured));
            for (line, reply) in &steps {
                let words = words(line);
                let expected = written(&mut direct, client, &words);
                let captured = Captured::new(written(&mut kept, keeper, &words));
                // How long something took.
                if reply == "*" && line.contains("LEN") {
                    continue;
                }
                let mut output = Output::default();
                captured.write(&mut ReplySink::new(&mut output, Wire { protocol, channel: 0 }));
                let show = |output: &Output| String::from_utf8_lossy(&output.to_vec()).into_owned();
                assert_eq!(show(&output), show(&expected), "{name}, {protocol:?}: {line}");
                assert_eq!(output.to_vec(), expected.to_vec(), "{name}, {protocol:?}: {line}");
                assert_eq!(output.pins.len(), expected.pins.len(), "{name}, {protocol:?}: {line}");
                compared += 1;
            }
        }
    }
    println!("{compared} replies");
}

#[test]
fn every_command_has_a_scenario() {
    let bench = Bench::new();
    let mut answered: BTreeSet<u16> = BTreeSet::new();
    for (_, steps) in scenarios() {
        let is_error = |reply: &str| {
            reply
                .strip_prefix('-')
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
        };
        let good = steps.iter().filter(|(_, reply)| !is_error(reply));
        answered.extend(good.filter_map(|(line, _)| command(&words(line))).map(|id| id.0));
    }
    // What a server that is no cluster, has no modules and does not replicate refuses, whatever the arguments.
    let refused = |name: &str| {
        ["CLUSTER ", "MODULE "].iter().any(|start| name.starts_with(start))
            || ["ASKING", "CLUSTERSCAN", "SYNC", "PSYNC", "REPLCONF"].contains(&name)
    };
    let elsewhere: BTreeMap<&str, &str> = ELSEWHERE.iter().copied().collect();
    let served = served(&bench);
    let missing: Vec<String> = served
        .iter()
        .filter(|id| !answered.contains(&id.0) && !elsewhere.contains_key(full_name(**id).as_str()))
        .filter(|id| !refused(&full_name(**id)))
        .map(|id| full_name(*id))
        .collect();
    assert!(missing.is_empty(), "no scenario has these answer anything but an error: {missing:?}");
    let names: BTreeSet<String> = served.iter().map(|id| full_name(*id)).collect();
    let stale: Vec<&&str> = elsewhere.keys().filter(|name| !names.contains(**name)).collect();
    assert!(stale.is_empty(), "not served: {stale:?}");
    println!("{} commands are served, {} with a scenario", served.len(), served.len() - elsewhere.len());
}

#[test]
fn every_command_refuses_a_wrong_number_of_arguments() {
    for protocol in ALL {
        let (mut bench, client) = Bench::with(protocol);
        for id in served(&bench) {
            let spec = id.spec();
            let arity = spec.arity;
            let count = if arity > 0 { arity as usize + 1 } else { arity.unsigned_abs() as usize - 1 };
            let name = full_name(id);
            let mut words: Vec<Vec<u8>> = name.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            if count < words.len() || spec.name == "DEBUG" {
                continue;
            }
            words.resize(count, b"1".to_vec());
            let got = run(&mut bench, client, &words);
            let shown = name.to_ascii_lowercase().replace(' ', "|");
            // A refused EXEC ends the transaction, also where there is none.
            let prefix = if name == "EXEC" { "EXECABORT Transaction discarded because of:" } else { "ERR" };
            let expected = format!("-{prefix} wrong number of arguments for '{shown}' command");
            assert_eq!(got, expected, "{protocol:?}: {name} with {count} words");
        }
    }
}
