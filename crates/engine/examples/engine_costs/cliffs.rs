//! Runs requests under conditions that are common in use, to see that none of the conditions costs much.
//!
//! Each batch is what four clients with a pipeline of 16 have sent. For every condition and command [`BATCHES`] of them
//! go through [`counted_batch`], which is all that is counted, and [`end_of_cell`] ends the count; what prepares a
//! batch stands between them. A line for each cell says condition, command and requests. With an argument, only the
//! conditions run whose name has it, and with a second one only that command: to look at them by themselves.

use std::hint::black_box;

use crate::worker::{Worker, encode, engine};
use weft_engine::reply::Protocol;

/// Clients that send, and requests of one of them in a batch.
const CLIENTS: usize = 4;
const PIPELINE: usize = 16;
/// The client that sets a condition up, and who tracks or listens.
const ADMIN: usize = CLIENTS;
const OTHER: usize = CLIENTS + 1;
/// Keys of each kind.
const KEYS: usize = 512;
/// Keys of MGET.
const MANY: usize = 10;
/// Batches that are counted for one cell: each request about another key.
const BATCHES: usize = KEYS / (CLIENTS * PIPELINE);

const COMMANDS: [&str; 8] = ["GET", "SET", "SET EX", "MGET", "INCR", "HGET", "EXPIRE", "PUBLISH"];
const MIX: &str = "mix";

/// Something that is so while requests run.
struct Condition {
    name: &'static str,
    /// Every key has a time to live whenever a request meets it.
    ttl: bool,
    workers: u16,
    /// What somebody runs before: the place of the client and the command.
    before: &'static [(usize, &'static str)],
    /// Triggers, and what their patterns begin with, behind which their number stands.
    triggers: (usize, &'static str),
}

const PLAIN: Condition = Condition { name: "plain", ttl: false, workers: 1, before: &[], triggers: (0, "") };

const CONDITIONS: [Condition; 13] = [
    PLAIN,
    Condition { name: "ttl", ttl: true, ..PLAIN },
    Condition {
        name: "maxmemory allkeys-lru",
        before: &[(ADMIN, "CONFIG SET maxmemory 100gb maxmemory-policy allkeys-lru")],
        ..PLAIN
    },
    Condition {
        name: "maxmemory volatile-ttl",
        before: &[(ADMIN, "CONFIG SET maxmemory 100gb maxmemory-policy volatile-ttl")],
        ..PLAIN
    },
    Condition {
        name: "restricted user",
        before: &[
            (ADMIN, "ACL SETUSER app on nopass ~app:* &app:* +@all -@dangerous"),
            (0, "AUTH app x"),
            (1, "AUTH app x"),
            (2, "AUTH app x"),
            (3, "AUTH app x"),
        ],
        ..PLAIN
    },
    Condition { name: "two threads", workers: 2, ..PLAIN },
    Condition {
        name: "other tracks",
        before: &[(OTHER, "HELLO 3"), (OTHER, "CLIENT TRACKING ON"), (OTHER, "GET app:other")],
        ..PLAIN
    },
    Condition { name: "other subscribed", before: &[(OTHER, "SUBSCRIBE news")], ..PLAIN },
    Condition { name: "events", before: &[(ADMIN, "CONFIG SET notify-keyspace-events KEA")], ..PLAIN },
    Condition { name: "10 triggers elsewhere", triggers: (10, "elsewhere:"), ..PLAIN },
    Condition { name: "1,000 triggers elsewhere", triggers: (1000, "elsewhere:"), ..PLAIN },
    Condition { name: "1,000 triggers beside the keys", triggers: (1000, "app:text:"), ..PLAIN },
    Condition {
        name: "a trigger that counts SETs",
        before: &[
            (ADMIN, r#"PROGRAM SET count {"steps":[["INCR","count"]]}"#),
            (ADMIN, r#"TRIGGER SET counts {"key":"app:text:*","inside":"count"}"#),
        ],
        ..PLAIN
    },
];

pub(crate) fn run(only: &[String]) {
    let is_wanted = |name: &str| only.first().is_none_or(|only| name.contains(only.as_str()));
    for condition in CONDITIONS.iter().filter(|condition| is_wanted(condition.name)) {
        let mut worker = Worker::of(engine(condition.workers), 0, Protocol::Resp2, CLIENTS as u32 + 2);
        for (client, line) in condition.before {
            let words: Vec<Vec<u8>> = line.split(' ').map(Into::into).collect();
            let mut sent = vec![Vec::new(); client + 1];
            encode(&words, Protocol::Resp2, &mut sent[*client]);
            checked(&mut worker, &sent);
        }
        for number in 0..condition.triggers.0 {
            let text = format!("{{\"key\":\"{}{number}:*\",\"publish\":\"c\"}}", condition.triggers.1);
            let words = ["TRIGGER", "SET", &format!("t{number}"), &text].map(|word| word.as_bytes().to_vec());
            let mut sent = vec![Vec::new(); ADMIN + 1];
            encode(&words, Protocol::Resp2, &mut sent[ADMIN]);
            checked(&mut worker, &sent);
        }
        let commands = COMMANDS.into_iter().chain([MIX]);
        for command in commands.filter(|command| only.get(1).is_none_or(|only| only == command)) {
            cell(&mut worker, condition, command);
            end_of_cell();
            println!("{} | {command} | {}", condition.name, BATCHES * CLIENTS * PIPELINE);
        }
    }
}

/// All requests of a cell. The first time they only warm the server up.
fn cell(worker: &mut Worker, condition: &Condition, command: &str) {
    // Every key is there, as if nobody had asked for anything yet.
    for kind in ["SET", "SET number", "HSET"] {
        (0..BATCHES).for_each(|at| checked(worker, &batch(kind, at)));
    }
    for counts in [false, true] {
        for at in 0..BATCHES {
            if condition.ttl {
                for kind in ["EXPIRE", "EXPIRE number", "EXPIRE hash"] {
                    checked(worker, &batch(kind, at));
                }
            }
            let batch = batch(command, at);
            if counts {
                counted_batch(worker, &batch);
            } else {
                checked(worker, &batch);
            }
        }
    }
}

/// What is counted.
#[inline(never)]
fn counted_batch(worker: &mut Worker, batch: &[Vec<u8>]) {
    black_box(worker.run(batch));
}

/// Ends the count of a cell.
#[inline(never)]
fn end_of_cell() {
    black_box(());
}

/// Runs a batch that answers no error: no value has a minus.
fn checked(worker: &mut Worker, batch: &[Vec<u8>]) {
    worker.run(batch);
    for client in 0..batch.len() {
        let replies = worker.replies(client);
        assert!(!replies.contains(&b'-') || replies.starts_with(b"%"), "{}", replies.escape_ascii());
    }
}

/// What the clients have sent for one batch.
fn batch(command: &str, at: usize) -> Vec<Vec<u8>> {
    let sent = |client: usize| {
        let mut bytes = Vec::new();
        for place in 0..PIPELINE {
            let number = (at * CLIENTS + client) * PIPELINE + place;
            let command = if command == MIX { COMMANDS[number % COMMANDS.len()] } else { command };
            encode(&words(command, number), Protocol::Resp2, &mut bytes);
        }
        bytes
    };
    (0..CLIENTS).map(sent).collect()
}

fn words(command: &str, at: usize) -> Vec<Vec<u8>> {
    let key = |kind: &str, more: usize| format!("app:{kind}:{:012}", (at + more) % KEYS);
    let (text, number, hash) = (key("text", 0), key("number", 0), key("hash", 0));
    let line = match command {
        "GET" => format!("GET {text}"),
        "SET" => format!("SET {text} vvvvvvvvvvvvvvvv"),
        "SET EX" => format!("SET {text} vvvvvvvvvvvvvvvv EX 100000"),
        "MGET" => {
            let keys: Vec<String> = (0..MANY).map(|more| key("text", more)).collect();
            format!("MGET {}", keys.join(" "))
        }
        "SET number" => format!("SET {number} 1"),
        "INCR" => format!("INCR {number}"),
        "HSET" => format!("HSET {hash} one 1 field vvvvvvvvvvvvvvvv three 3"),
        "HGET" => format!("HGET {hash} field"),
        "EXPIRE" => format!("EXPIRE {text} 100000"),
        "EXPIRE number" => format!("EXPIRE {number} 100000"),
        "EXPIRE hash" => format!("EXPIRE {hash} 100000"),
        // Nobody listens there.
        "PUBLISH" => format!("PUBLISH app:{} vvvvvvvvvvvvvvvv", at % CLIENTS),
        _ => panic!("no command {command}"),
    };
    line.split(' ').map(Into::into).collect()
}
