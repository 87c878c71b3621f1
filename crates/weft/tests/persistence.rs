//! What a server keeps: killed at any moment and started again, stopped and started again, with a log, with a snapshot,
//! with both. `WEFT_CRASH_ROUNDS` says how often it is killed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use weft_client::{Config, Connection, Protocol, Reply, Timeouts};

use common::servers::LONG;
use common::{Folder, Random, weft};

/// A server in a folder that outlives it.
struct Server {
    child: Child,
    socket: String,
}

impl Server {
    fn start(folder: &Folder, options: &[&str]) -> Self {
        let (mut child, socket) = spawn(folder, options);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let is_up = lines.any(|line| line.contains("Listening on /"));
        assert!(is_up, "the server listens");
        // Read to its end, so that the server never waits for whoever reads it.
        thread::spawn(move || lines.for_each(|line| println!("{line}")));
        let server = Self { child, socket };
        let mut connection = server.connect(Protocol::Resp2);
        while matches!(connection.exchange(&["DBSIZE"]).unwrap(), Reply::Error(_)) {
            thread::yield_now();
        }
        server
    }
    fn connect(&self, protocol: Protocol) -> Connection {
        let config =
            Config::unix(&self.socket).with_protocol(protocol).with_timeouts(Timeouts::all(Some(LONG)));
        Connection::connect(&config).expect("the server takes a connection")
    }
    fn ask(&self, words: &[&str]) -> String {
        show(self.connect(Protocol::Resp2).exchange(words).unwrap())
    }
    fn info(&self, field: &str) -> String {
        let text = self.ask(&["INFO", "persistence"]);
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("INFO has no {field}")).to_string()
    }
    fn wait_for(&self, field: &str, value: &str) {
        while self.info(field) != value {
            thread::yield_now();
        }
    }
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
    fn stop(mut self, words: &[&str]) {
        // There is no answer.
        let _ = self.connect(Protocol::Resp2).exchange(words);
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(folder: &Folder, options: &[&str]) -> (Child, String) {
    let socket = folder.path("socket");
    let mut command = weft();
    command.args(["serve", "--port", "0", "--unixsocket", &socket, "--dir"]).arg(&folder.0).args(options);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    (child, socket)
}

/// The server does not start, and says why.
fn refused(folder: &Folder, options: &[&str]) -> String {
    let (mut child, _) = spawn(folder, options);
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(!child.wait().unwrap().success(), "{text}");
    text
}

fn show(reply: Reply) -> String {
    match reply {
        Reply::Simple(text) | Reply::Error(text) | Reply::Bulk(text) => String::from_utf8(text).unwrap(),
        Reply::Int(number) => number.to_string(),
        Reply::Array(items) => items.into_iter().map(show).collect::<Vec<_>>().join(" "),
        other => format!("{other:?}"),
    }
}

/// Writes numbers from `from` on, each in a transaction of its own that writes it three times, until the server is
/// gone. Gives the last number that was acknowledged, and counts.
fn write_until_gone(mut connection: Connection, name: &str, from: u64, acknowledged: &AtomicU64) -> u64 {
    let (one, two, list) = (format!("{name}:one"), format!("{name}:two"), format!("{name}:list"));
    let mut last = from;
    loop {
        let number = (last + 1).to_string();
        let words: [&[&str]; 5] = [
            &["MULTI"],
            &["SET", &one, &number],
            &["RPUSH", &list, &number],
            &["SET", &two, &number],
            &["EXEC"],
        ];
        for words in words {
            match connection.exchange(words) {
                Ok(Reply::Error(text)) => panic!("{}", String::from_utf8_lossy(&text)),
                Ok(_) => {}
                Err(_) => return last,
            }
        }
        last += 1;
        acknowledged.fetch_add(1, SeqCst);
    }
}

/// Several clients over each protocol write until the server is killed: with `always` nothing that was acknowledged is
/// missing, and there never is a half of a transaction. Now and then a snapshot takes the log's place meanwhile.
#[test]
fn what_was_acknowledged_outlives_kills() {
    let rounds = std::env::var("WEFT_CRASH_ROUNDS").ok().map_or(6, |text| text.parse().unwrap());
    let mut random = Random::new("what_was_acknowledged_outlives_kills");
    let folder = Folder::new();
    let options = ["--appendonly", "yes", "--appendfsync", "always", "--threads", "2"];
    let clients = [Protocol::Resp2, Protocol::Resp3, Protocol::Respb, Protocol::Respb];
    let mut last = [0_u64; 4];
    for round in 0..rounds {
        let server = Server::start(&folder, &options);
        let acknowledged = AtomicU64::new(0);
        let enough = random.below(120) as u64;
        let rewrites = random.below(2) == 0;
        let ended: Vec<u64> = thread::scope(|scope| {
            let threads: Vec<_> = clients
                .iter()
                .enumerate()
                .map(|(at, protocol)| {
                    let (connection, acknowledged) = (server.connect(*protocol), &acknowledged);
                    let from = last[at];
                    scope.spawn(move || write_until_gone(connection, &format!("c{at}"), from, acknowledged))
                })
                .collect();
            if rewrites {
                server.ask(&["BGREWRITEAOF"]);
            }
            while acknowledged.load(SeqCst) < enough {
                thread::yield_now();
            }
            server.kill();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let server = Server::start(&folder, &options);
        for (at, acknowledged) in ended.into_iter().enumerate() {
            let [one, two] = ["one", "two"].map(|key| server.ask(&["GET", &format!("c{at}:{key}")]));
            let count = server.ask(&["LLEN", &format!("c{at}:list")]);
            assert_eq!(one, two, "round {round}: half of a transaction");
            let kept = if one == "Null" { 0 } else { one.parse::<u64>().unwrap() };
            assert_eq!(count, kept.to_string(), "round {round}: half of a transaction");
            // One more was under way.
            assert!(
                kept == acknowledged || kept == acknowledged + 1,
                "round {round}, client {at}: {acknowledged} were acknowledged, {kept} are there"
            );
            last[at] = kept;
        }
        if round % 2 == 0 {
            server.stop(&["SHUTDOWN"]);
        } else {
            server.kill();
        }
    }
    assert!(last.iter().sum::<u64>() > rounds, "something was written");
}

/// All types, with expiries, in two databases, by commands of which each leaves another effect.
const KINDS: &[&[&str]] = &[
    &["SET", "text", "a text with\r\nlines"],
    &["SET", "number", "-12345"],
    &["SET", "passes", "v", "PXAT", "4102444800000"],
    &["APPEND", "text", " and more"],
    &["SETRANGE", "range", "5", "x"],
    &["RPUSH", "list", "a", "b", "c", "d"],
    &["LINSERT", "list", "BEFORE", "c", "x"],
    &["LREM", "list", "1", "b"],
    &["LPOP", "list"],
    &["HSET", "hash", "f", "1", "g", "2"],
    &["HPEXPIREAT", "hash", "4102444800000", "FIELDS", "1", "f"],
    &["SADD", "set", "1", "2", "three"],
    &["SREM", "set", "2"],
    &["ZADD", "zset", "1.5", "m", "-inf", "n"],
    &["XADD", "stream", "1-1", "f", "v"],
    &["XADD", "stream", "2-1", "f", "v", "g", "w"],
    &["XGROUP", "CREATE", "stream", "g", "0"],
    &["XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "stream", ">"],
    &["XDEL", "stream", "1-1"],
    &["COPY", "zset", "copied", "DB", "1"],
    &["RENAME", "range", "renamed"],
    &["PFADD", "hll", "a", "b"],
    &["SUNIONSTORE", "stored", "set"],
];

fn digest(server: &Server) -> String {
    server.ask(&["DEBUG", "DIGEST"])
}

#[test]
fn all_types_come_back_from_the_log_from_a_snapshot_and_from_both() {
    let folder = Folder::new();
    let debug = ["--enable-debug-command", "yes"];
    let with_log = ["--appendonly", "yes", "--enable-debug-command", "yes"];
    let server = Server::start(&folder, &with_log);
    KINDS.iter().for_each(|words| drop(server.ask(words)));
    let expected = digest(&server);
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    server.kill();
    let server = Server::start(&folder, &with_log);
    assert_eq!(digest(&server), expected, "from the log");
    assert_eq!(server.ask(&["SAVE"]), "OK");
    assert_eq!(server.info("rdb_saves"), "1");
    server.ask(&["BGREWRITEAOF"]);
    server.wait_for("aof_rewrites", "1");
    server.stop(&["SHUTDOWN"]);
    let server = Server::start(&folder, &with_log);
    assert_eq!(digest(&server), expected, "from the log's snapshot");
    server.ask(&["SET", "later", "1"]);
    server.ask(&["FLUSHDB"]);
    server.ask(&["SET", "last", "1"]);
    let later = digest(&server);
    server.stop(&["SHUTDOWN"]);
    let server = Server::start(&folder, &with_log);
    assert_eq!(digest(&server), later, "from the log's snapshot and what came behind it");
    server.kill();
    // Without the log it is the snapshot that counts.
    let server = Server::start(&folder, &debug);
    assert_eq!(digest(&server), expected, "from the snapshot");
    server.stop(&["SHUTDOWN", "NOSAVE"]);
    let server = Server::start(&folder, &debug);
    assert_eq!(
        server.info("rdb_last_load_keys_loaded"),
        server.ask(&["DBSIZE"]).parse::<u64>().map_or_else(|_| String::new(), |keys| (keys + 1).to_string())
    );
}

#[test]
fn a_log_begins_on_a_server_that_runs_and_ends_again() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--appenddirname", "other", "--save", ""]);
    for number in 0..500 {
        server.ask(&["SET", &format!("key:{number}"), "v"]);
    }
    assert!(server.ask(&["WAITAOF", "1", "0", "0"]).starts_with("ERR WAITAOF cannot be used"));
    assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", "yes"]), "OK");
    server.ask(&["SET", "behind", "v"]);
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    // The room that it has made for its next segment outlives the snapshot behind which it began.
    for rewrites in ["2", "3"] {
        server.ask(&["BGREWRITEAOF"]);
        server.wait_for("aof_rewrites", rewrites);
        assert_eq!(server.info("aof_last_write_status"), "ok");
        assert_eq!(server.ask(&["SET", "behind", "w"]), "OK");
    }
    let again = refused(&folder, &["--appendonly", "yes", "--appenddirname", "other"]);
    assert!(again.contains("another server keeps its log in other"), "{again}");
    server.kill();
    let server = Server::start(&folder, &["--appendonly", "yes", "--appenddirname", "other"]);
    assert_eq!(server.ask(&["DBSIZE"]), "501");
    assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", "no"]), "OK");
    server.wait_for("aof_enabled", "0");
    server.ask(&["SET", "lost", "v"]);
    server.stop(&["SHUTDOWN"]);
    let server = Server::start(&folder, &["--appendonly", "yes", "--appenddirname", "other"]);
    assert_eq!(server.ask(&["DBSIZE"]), "501");
}

/// With `always` replies wait for the log: when it ends they wait for nothing any more.
#[test]
fn a_server_goes_on_when_its_log_ends_and_begins_again() {
    let folder = Folder::new();
    let options = ["--appendonly", "yes", "--appendfsync", "always"];
    let server = Server::start(&folder, &options);
    for round in 1..=3 {
        server.ask(&["SET", "kept", "v"]);
        assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", "no"]), "OK");
        server.ask(&["SET", &format!("without:{round}"), "v"]);
        assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", "yes"]), "OK");
        server.ask(&["SET", &format!("again:{round}"), "v"]);
        assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0", "round {round}");
    }
    server.kill();
    let server = Server::start(&folder, &options);
    assert_eq!(server.ask(&["DBSIZE"]), "7");
    // Also while the snapshot is made behind which it begins.
    for round in 8..=12 {
        for wanted in ["no", "yes", "no", "yes"] {
            assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", wanted]), "OK");
            server.ask(&["SET", &format!("key:{round}"), wanted]);
        }
        assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0", "round {round}");
    }
    server.kill();
    let server = Server::start(&folder, &options);
    assert_eq!(server.ask(&["DBSIZE"]), "12");
    assert_eq!(server.ask(&["GET", "key:12"]), "yes");
}

/// What users have stored beside their keys acts again, from the log and from a snapshot, and what triggers have yet to
/// do is done.
#[test]
fn programs_triggers_functions_and_what_waits_act_after_a_restart() {
    let folder = Folder::new();
    let options = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Server::start(&folder, &options);
    let library =
        "#!lua name=lib\nredis.register_function('f', function(k) return redis.call('INCR', k[1]) end)";
    server.ask(&["FUNCTION", "LOAD", library]);
    let count = r#"{"params":[{"name":"event","type":"object"}],"steps":[["INCR","counted"]]}"#;
    server.ask(&["PROGRAM", "SET", "count", count]);
    server.ask(&["TRIGGER", "SET", "inside", r#"{"key":"in:*","inside":"count"}"#]);
    let later = r#"{"params":[{"name":"event","type":"object"}],"steps":[
        {"do":["EXISTS","open"],"as":"open"}, {"assert":"${open}"}, ["INCR","done"]]}"#;
    server.ask(&["PROGRAM", "SET", "later", later]);
    server.ask(&["TRIGGER", "SET", "after", r#"{"key":"out:*","after":"later"}"#]);
    for round in 1..=3 {
        assert_eq!(server.ask(&["FCALL", "f", "1", "called"]), round.to_string());
        assert_eq!(server.ask(&["SET", "in:1", "v"]), "OK");
        assert_eq!(server.ask(&["GET", "counted"]), round.to_string());
        // Waits until `open` is there, in an entry of its own.
        assert_eq!(server.ask(&["SET", &format!("out:{round}"), "v"]), "OK");
        server.kill();
        server = Server::start(&folder, &options);
        if round == 1 {
            server.ask(&["BGREWRITEAOF"]);
            server.wait_for("aof_rewrites", "1");
        }
    }
    server.ask(&["SET", "open", "1"]);
    while server.ask(&["GET", "done"]) != "3" {
        thread::yield_now();
    }
}

#[test]
fn what_is_damaged_or_another_s_is_not_taken() {
    let folder = Folder::new();
    let options = ["--appendonly", "yes"];
    let server = Server::start(&folder, &options);
    for number in 0..100 {
        server.ask(&["SET", &format!("key:{number}"), "v"]);
    }
    server.stop(&["SHUTDOWN"]);
    let log = folder.0.join("appendonlydir/appendonly.aof.1.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let whole = bytes.clone();
    // In the first block.
    bytes[40] ^= 4;
    std::fs::write(&log, &bytes).unwrap();
    let text = refused(&folder, &options);
    assert!(text.contains("is damaged at byte 32") && text.contains("restore it from a backup"), "{text}");
    assert_eq!(std::fs::read(&log).unwrap(), bytes, "it stays as it is");
    std::fs::write(&log, &whole).unwrap();
    Server::start(&folder, &options).stop(&["SHUTDOWN"]);
    let folder = Folder::new();
    folder.file("dump.rdb", b"REDIS0011");
    let text = refused(&folder, &["--dbfilename", "dump.rdb"]);
    assert!(text.contains("dump.rdb was written by Redis or Valkey"), "{text}");
}
