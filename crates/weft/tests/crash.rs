//! A server that is killed: at any moment while clients write, while it makes snapshots, while it loads. What was
//! acknowledged with `always` is there, there never is a half of a transaction, and what comes back is what was.
//!
//! `WEFT_CRASH_ROUNDS` says how often it is killed under clients (`make crash ROUNDS=1000`), `WEFT_TEST_SEED` from
//! which seed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use weft_client::{Connection, Protocol, Reply};

use common::kept::{Server, digests, show, spawn};
use common::{Folder, Random, resp};

/// Rounds without a variable that says how many.
const ROUNDS: u64 = 30;

fn rounds() -> u64 {
    std::env::var("WEFT_CRASH_ROUNDS").ok().map_or(ROUNDS, |text| text.parse().unwrap())
}

/// How a client asks: over a protocol of its own, or HTTP.
enum Client {
    Wire(Box<Connection>),
    Http(UnixStream),
}

impl Client {
    /// Runs a transaction; `false` when the server is gone.
    fn transact(&mut self, commands: &[&[&str]]) -> bool {
        match self {
            Self::Wire(connection) => {
                let exec: [&[&str]; 2] = [&["MULTI"], &["EXEC"]];
                exec[..1].iter().chain(commands).chain(&exec[1..]).all(|words| {
                    match connection.exchange(words) {
                        Ok(Reply::Error(text)) => panic!("{}", String::from_utf8_lossy(&text)),
                        result => result.is_ok(),
                    }
                })
            }
            Self::Http(stream) => {
                let body = serde_json::to_string(commands).unwrap();
                let request = format!(
                    "POST /multi-exec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(request.as_bytes()).is_ok() && answered(stream)
            }
        }
    }
}

/// Reads an answer of HTTP to its end; `false` when the server is gone before.
fn answered(stream: &mut UnixStream) -> bool {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let len = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            if body.len() >= len.parse().unwrap() {
                assert!(head.starts_with("HTTP/1.1 200") && !body.contains("error"), "{text}");
                return true;
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return false,
            Ok(len) => answer.extend_from_slice(&piece[..len]),
        }
    }
}

/// Writes numbers from `from` on, each in a transaction of its own that writes it three times, until the server is
/// gone. Gives the last number that was acknowledged, and counts.
fn write_until_gone(mut client: Client, name: &str, from: u64, acknowledged: &AtomicU64) -> u64 {
    let (one, two, list) = (format!("{name}:one"), format!("{name}:two"), format!("{name}:list"));
    let mut last = from;
    loop {
        let number = (last + 1).to_string();
        let commands: [&[&str]; 3] =
            [&["SET", &one, &number], &["RPUSH", &list, &number], &["SET", &two, &number]];
        if !client.transact(&commands) {
            return last;
        }
        last += 1;
        acknowledged.fetch_add(1, SeqCst);
    }
}

/// Several clients over each protocol write until the server is killed: with `always` nothing that was acknowledged is
/// missing, and there never is a half of a transaction. Now and then a snapshot is made meanwhile, for the log or by
/// itself, and the start that follows is killed while it loads.
#[test]
fn what_was_acknowledged_outlives_kills() {
    let rounds = rounds();
    let mut random = Random::new("what_was_acknowledged_outlives_kills");
    let folder = Folder::new();
    let options = ["--appendonly", "yes", "--appendfsync", "always", "--threads", "2", "--save", ""];
    let clients =
        [Some(Protocol::Resp2), Some(Protocol::Resp3), Some(Protocol::Respb), Some(Protocol::Respb), None];
    let mut last = [0_u64; 5];
    let mut killed_loading = 0;
    for round in 0..rounds {
        let server = Server::start(&folder, &options);
        let acknowledged = AtomicU64::new(0);
        let enough = random.below(120) as u64;
        let snapshot = [None, Some("BGREWRITEAOF"), Some("BGSAVE")][random.below(3)];
        let ended: Vec<u64> = thread::scope(|scope| {
            let threads: Vec<_> = clients
                .iter()
                .enumerate()
                .map(|(at, protocol)| {
                    let client = match protocol {
                        Some(protocol) => Client::Wire(Box::new(server.connect(*protocol))),
                        None => Client::Http(UnixStream::connect(&server.socket).unwrap()),
                    };
                    let (from, acknowledged) = (last[at], &acknowledged);
                    scope.spawn(move || write_until_gone(client, &format!("c{at}"), from, acknowledged))
                })
                .collect();
            if let Some(command) = snapshot {
                server.ask(&[command]);
            }
            while acknowledged.load(SeqCst) < enough {
                thread::yield_now();
            }
            server.kill();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        if random.below(2) == 0 {
            // While it looks at its files, reads them, or makes its first segment.
            killed_loading += 1;
            let (mut child, _) = spawn(&folder, &options);
            let moment = Instant::now() + Duration::from_micros(random.below(60_000) as u64);
            while Instant::now() < moment {
                thread::yield_now();
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
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
    println!(
        "{rounds} kills under clients, {killed_loading} while loading, {} transactions acknowledged",
        last.iter().sum::<u64>()
    );
    assert!(last.iter().sum::<u64>() > rounds, "something was written");
}

/// SHUTDOWN NOSAVE ends a script in the middle of what it writes: neither that is kept, nor what triggers would do
/// about it.
#[test]
fn what_a_script_has_written_half_sets_nothing_going() {
    let folder = Folder::new();
    let options = ["--threads", "1", "--appendonly", "yes", "--appendfsync", "always"];
    let scripts = ["--busy-reply-threshold", "50", "--script-kill-undo", "no"];
    let options = [&options[..], &scripts].concat();
    let server = Server::start(&folder, &options);
    server.ask(&["PROGRAM", "SET", "count", r#"{"steps":[["INCR","done"]]}"#]);
    server.ask(&["TRIGGER", "SET", "t", r#"{"key":"k*","after":"count"}"#]);
    server.ask(&["SET", "k", "v"]);
    while server.ask(&["GET", "done"]) != "1" {
        thread::yield_now();
    }
    let mut looping = server.connect(Protocol::Resp2);
    let script = "redis.call('SET', KEYS[1], 'half') while true do end";
    let running = thread::spawn(move || looping.exchange(&["EVAL", script, "1", "k1"]).is_err());
    while !server.ask(&["PING"]).starts_with("BUSY") {
        thread::yield_now();
    }
    server.stop(&["SHUTDOWN", "NOSAVE"]);
    running.join().unwrap();
    let server = Server::start(&folder, &options);
    assert_eq!(server.ask(&["GET", "done"]), "1", "once, for what was kept");
    assert_eq!(server.ask(&["EXISTS", "k1"]), "0");
}

/// Whether a script takes its time. Who asks before it is known to do so may be answered only when what others have
/// written meanwhile is safe, which is when it ends: he is not waited for.
fn is_told_busy(server: &Server) -> bool {
    let mut client = UnixStream::connect(&server.socket).unwrap();
    client.set_read_timeout(Some(std::time::Duration::from_millis(100))).unwrap();
    client.write_all(b"PING\r\n").unwrap();
    let mut begins = [0; 5];
    client.read_exact(&mut begins).is_ok() && begins == *b"-BUSY"
}

/// With `always` nothing that others write while a script runs is safe before it ends: SHUTDOWN NOSAVE ends it, they
/// are answered, and the server need not wait for them.
#[test]
fn who_waits_behind_a_script_is_no_reason_to_wait_at_the_end() {
    let folder = Folder::new();
    let log = ["--appendonly", "yes", "--appendfsync", "always", "--shutdown-timeout", "36000"];
    let threads = ["--threads", "2", "--threads-always-active", "yes"];
    let server = Server::start(&folder, &[&log[..], &threads, &["--busy-reply-threshold", "200"]].concat());
    // On both workers.
    let mut clients: Vec<_> = (0..7).map(|_| UnixStream::connect(&server.socket).unwrap()).collect();
    let mut looping = clients.pop().unwrap();
    loop {
        looping.write_all(&resp(&["EVAL", "while true do end", "1", "k"])).unwrap();
        for (client, name) in clients.iter_mut().zip(0..) {
            client.write_all(&resp(&["SET", &format!("key:{name}"), "1"])).unwrap();
        }
        while !is_told_busy(&server) {}
        let mut waiting = 0;
        for client in &mut clients {
            client.set_nonblocking(true).unwrap();
            waiting += usize::from(client.read(&mut [0; 1024]).is_err());
            client.set_nonblocking(false).unwrap();
        }
        if waiting > 0 {
            break;
        }
        // This test has stalled, and all of them were told that it is busy.
        assert_eq!(server.ask(&["SCRIPT", "KILL"]), "OK");
        let _ = looping.read(&mut [0; 1024]).unwrap();
    }
    server.stop(&["SHUTDOWN", "NOSAVE"]);
}

/// A snapshot by itself is there as a whole or as the one before, wherever it was killed, and is of one moment.
#[test]
fn a_snapshot_that_was_killed_leaves_the_one_before() {
    let mut random = Random::new("a_snapshot_that_was_killed_leaves_the_one_before");
    let folder = Folder::new();
    let options = ["--save", "", "--enable-debug-command", "yes", "--threads", "2"];
    let mut server = Server::start(&folder, &options);
    server.ask(&["DEBUG", "POPULATE", "20000", "key", "64"]);
    server.ask(&["MSET", "one", "0", "two", "0"]);
    assert_eq!(server.ask(&["SAVE"]), "OK");
    let mut renewed = 0;
    for round in 1..=(rounds() / 3).max(5) {
        let before = server.ask(&["GET", "one"]);
        let acknowledged = AtomicU64::new(0);
        thread::scope(|scope| {
            let (mut connection, acknowledged) = (server.connect(Protocol::Resp2), &acknowledged);
            scope.spawn(move || {
                for number in 1_u64.. {
                    let number = format!("{round}{number:05}");
                    if connection.exchange(&["MSET", "one", &number, "two", &number]).is_err() {
                        return;
                    }
                    acknowledged.fetch_add(1, SeqCst);
                }
            });
            while acknowledged.load(SeqCst) < 10 {
                thread::yield_now();
            }
            server.ask(&["BGSAVE"]);
            let moment = Instant::now() + Duration::from_micros(random.below(150_000) as u64);
            while Instant::now() < moment {
                thread::yield_now();
            }
            server.kill();
        });
        server = Server::start(&folder, &options);
        let [one, two] = ["one", "two"].map(|key| server.ask(&["GET", key]));
        assert_eq!(one, two, "round {round}: it is of one moment");
        assert_eq!(server.ask(&["DBSIZE"]), "20002", "round {round}: it is whole");
        renewed += u32::from(one != before);
    }
    println!("{renewed} snapshots were whole when the server was killed");
}

/// Commands of all types from a seed; what comes back after a kill is what was, and again behind a snapshot.
#[test]
fn random_commands_come_back_after_kills() {
    let mut random = Random::new("random_commands_come_back_after_kills");
    let folder = Folder::new();
    let options = [
        "--appendonly",
        "yes",
        "--save",
        "",
        "--enable-debug-command",
        "yes",
        "--list-max-listpack-size",
        "4",
    ];
    for round in 0..(rounds() / 5).max(4) {
        let server = Server::start(&folder, &options);
        let mut connection = server.connect(Protocol::Resp2);
        for at in 0..400 {
            if at == 200 && round % 2 == 0 {
                show(connection.exchange(&["BGREWRITEAOF"]).unwrap());
            }
            let words = command(&mut random);
            connection.exchange(&words).unwrap();
        }
        let expected = digests(&server);
        assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
        server.kill();
        let server = Server::start(&folder, &options);
        assert_eq!(digests(&server), expected, "round {round}");
        server.kill();
    }
}

/// The same commands to Weft and to others: what Weft has after a kill is what they have after loading their AOF, as
/// another Weft reads it from a snapshot of theirs.
#[test]
fn what_comes_back_is_what_others_have_after_their_restart() {
    let mut random = Random::new("what_comes_back_is_what_others_have_after_their_restart");
    let options = ["--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"];
    for other in common::servers::Server::others(&options) {
        for round in 0..(rounds() / 10).max(3) {
            let folder = Folder::new();
            let server = Server::start(&folder, &[&options[..], &["--save", ""]].concat());
            let mut connections = [server.connect(Protocol::Resp2), other.connect(Protocol::Resp2)];
            connections[1].exchange(&["FLUSHALL"]).unwrap();
            for at in 0..400 {
                let mut words = command(&mut random);
                match words[0].as_str() {
                    // Each has its own dice and its own clock.
                    "SPOP" | "PEXPIRE" | "XREADGROUP" | "XAUTOCLAIM" => continue,
                    "XADD" => words[2] = format!("{}-{at}", round + 1),
                    _ => {}
                }
                let theirs = connections[1].exchange(&words).unwrap();
                // An older server does not know all commands.
                if matches!(&theirs, Reply::Error(text) if text.starts_with(b"ERR unknown command")) {
                    continue;
                }
                let own = connections[0].exchange(&words).unwrap();
                let failed = [own, theirs].map(|reply| matches!(reply, Reply::Error(_)));
                assert_eq!(failed[0], failed[1], "{words:?}");
            }
            assert_eq!(show(connections[1].exchange(&["DEBUG", "LOADAOF"]).unwrap()), "OK");
            assert_eq!(show(connections[1].exchange(&["SAVE"]).unwrap()), "OK");
            let theirs = Folder::new();
            let snapshot = other.folder.path("dump.rdb");
            let import = ["--enable-debug-command", "yes", "--save", "", "--import", &snapshot];
            let copy = Server::start(&theirs, &import);
            server.kill();
            let server = Server::start(&folder, &[&options[..], &["--save", ""]].concat());
            assert_eq!(digests(&server), digests(&copy), "round {round}");
            copy.kill();
            server.kill();
        }
    }
}

/// One command of any type on one of few keys; most of them meet a key of their type.
fn command(random: &mut Random) -> Vec<String> {
    const KINDS: &[&[&str]] = &[
        &[
            "SET s# @",
            "APPEND s# @",
            "SETRANGE s# 3 @",
            "INCRBY n# 7",
            "GETDEL s#",
            "SETBIT b# 9 1",
            "PFADD p# @ x",
            "SET s# @ PXAT 4102444800000",
        ],
        &[
            "RPUSH l# @ b @",
            "LPUSH l# @",
            "LPOP l# 2",
            "RPOP l#",
            "LSET l# 0 @",
            "LINSERT l# BEFORE b @",
            "LREM l# 1 b",
            "LTRIM l# 0 9",
            "LMOVE l# l1 LEFT RIGHT",
        ],
        &[
            "HSET h# f @ g @",
            "HDEL h# f",
            "HINCRBYFLOAT h# n 1.5",
            "HPEXPIREAT h# 4102444800000 FIELDS 1 f",
            "HSET h# @ @",
            "HGETDEL h# FIELDS 1 g",
        ],
        &["SADD t# @ b c", "SREM t# b", "SPOP t#", "SMOVE t# t1 c", "SUNIONSTORE t1 t# t2", "SADD t# 1 2 3"],
        &[
            "ZADD z# 1.5 @ 2 b",
            "ZINCRBY z# 3 b",
            "ZREM z# b",
            "ZPOPMIN z#",
            "ZUNIONSTORE z1 2 z# z2",
            "ZREMRANGEBYRANK z# 0 1",
            "GEOADD z# 1 2 P",
        ],
        &[
            "XADD x# * f @",
            "XTRIM x# MAXLEN 3",
            "XGROUP CREATE x# g 0 MKSTREAM",
            "XREADGROUP GROUP g c COUNT 2 STREAMS x# >",
            "XAUTOCLAIM x# g d 0 0",
            "XGROUP DESTROY x# g",
            "XSETID x# 9999999999999-1",
        ],
        &[
            "DEL s#",
            "RENAME s# s1",
            "COPY h# h1 REPLACE",
            "MOVE t# 2",
            "PEXPIRE l# 90000000",
            "PERSIST l#",
            "SWAPDB 0 1",
            "EXPIREAT z# 1",
            "SORT l# ALPHA STORE l2",
            "UNLINK x#",
            "RESTORE s# 0 bad",
        ],
    ];
    let kind = KINDS[random.below(KINDS.len())];
    let text = kind[random.below(kind.len())];
    let key = random.below(3).to_string();
    let words = text.split(' ').map(|word| match word {
        "@" => format!("value:{}", random.below(40)),
        word => word.replace('#', &key),
    });
    words.collect()
}
