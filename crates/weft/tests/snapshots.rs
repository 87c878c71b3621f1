//! Snapshots of a server that runs: cancelled, beside that of the log, at the end, those that fail. What comes back
//! from one: `persistence.rs`; a server that is killed: `crash.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use common::Folder;
use common::kept::Server;

#[test]
fn a_snapshot_is_cancelled() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--save", "", "--enable-debug-command", "yes"]);
    let none = server.ask(&["BGSAVE", "CANCEL"]);
    assert!(none.starts_with("ERR Background saving is currently not in progress"), "{none}");
    server.ask(&["DEBUG", "POPULATE", "300000", "key", "100"]);
    // In one piece, so that it is cancelled before it has ended however slow this machine is.
    let mut socket = UnixStream::connect(&server.socket).unwrap();
    socket.write_all(b"BGSAVE\r\nBGSAVE CANCEL\r\n").unwrap();
    let replies: Vec<String> = BufReader::new(socket).lines().take(2).map(Result::unwrap).collect();
    assert_eq!(replies, ["+Background saving started", "+Background saving cancelled"]);
    server.wait_for("rdb_bgsave_in_progress", "0");
    // As in Valkey it is no failure.
    assert_eq!((server.info("rdb_saves"), server.info("rdb_last_bgsave_status")), ("0".into(), "ok".into()));
    assert!(!folder.0.join("dump.rdb").exists());
    assert_eq!(server.ask(&["SAVE"]), "OK");
}

/// One that is asked for while another one takes the place of the log waits for it; and a start knows what its log
/// began with.
#[test]
fn a_snapshot_waits_for_that_of_the_log() {
    let folder = Folder::new();
    let flags = ["--save", "", "--appendonly", "yes", "--enable-debug-command", "yes"];
    let server = Server::start(&folder, &flags);
    server.ask(&["DEBUG", "POPULATE", "300000", "key", "100"]);
    let started = [
        "+Background append only file rewriting started",
        "+Background saving started",
        "-ERR Background save",
    ];
    for (saves, asked, answers) in [
        ("1", "BGREWRITEAOF\r\nBGSAVE\r\nBGSAVE\r\n", &started[..]),
        ("2", "BGREWRITEAOF\r\nSAVE\r\n", &[started[0], "+OK"]),
    ] {
        // In one piece, so that they come while the rewrite is made.
        let mut socket = UnixStream::connect(&server.socket).unwrap();
        socket.write_all(asked.as_bytes()).unwrap();
        let mut replies = BufReader::new(socket).lines().map(Result::unwrap);
        for answer in answers {
            let reply = replies.next().unwrap();
            assert!(reply.starts_with(answer), "{reply}, not {answer}");
        }
        server.wait_for("rdb_saves", saves);
        server.wait_for("aof_rewrites", saves);
        server.wait_for("aof_rewrite_in_progress", "0");
        server.wait_for("rdb_bgsave_in_progress", "0");
        assert!(folder.0.join("dump.weft").exists());
    }
    let base = server.info("aof_base_size");
    server.stop(&["SHUTDOWN"]);
    let server = Server::start(&folder, &flags);
    let bytes = [base, server.info("aof_base_size")].map(|bytes| bytes.parse::<i64>().unwrap());
    // The one counts the head of its first segment too.
    assert!(bytes[1] > 1 << 20 && (bytes[0] - bytes[1]).abs() < 1 << 10, "{bytes:?}");
}

/// The one at the end is made though another one is being made when the server stops.
#[test]
fn a_server_that_stops_while_it_saves_keeps_all() {
    let folder = Folder::new();
    let flags = ["--save", "3600 1", "--enable-debug-command", "yes"];
    for (farewell, keys) in [("SHUTDOWN", 300_001), ("SHUTDOWN SAVE", 300_002)] {
        let server = Server::start(&folder, &flags);
        server.ask(&["DEBUG", "POPULATE", "300000", "key", "100"]);
        server.ask(&["SET", farewell, "before"]);
        let mut socket = UnixStream::connect(&server.socket).unwrap();
        // In one piece, so that it stops before the snapshot is made.
        socket.write_all(format!("BGSAVE\r\nSET {keys} late\r\n{farewell}\r\n").as_bytes()).unwrap();
        let mut replies = BufReader::new(socket).lines().map(Result::unwrap);
        assert_eq!(replies.next().unwrap(), "+Background saving started");
        server.ends();
        let server = Server::start(&folder, &flags);
        assert_eq!(server.ask(&["GET", &keys.to_string()]), "late");
        assert_eq!(server.ask(&["GET", farewell]), "before");
        server.stop(&["SHUTDOWN", "NOSAVE"]);
    }
}

/// What held a part of the keys for longest is said, and is a small part of the whole: a large collection is saved by
/// piece. By CPU time, so that it is the same on a machine that stalls.
#[test]
fn the_longest_step_of_a_snapshot_is_short() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--save", "", "--enable-debug-command", "yes"]);
    assert_eq!(server.info("rdb_longest_step_cpu_us"), "0");
    server.ask(&["DEBUG", "POPULATE", "100000", "key", "100"]);
    for piece in 0..20 {
        let members: Vec<String> = (0..10_000).map(|at| format!("member:{piece}:{at}")).collect();
        let words: Vec<&str> =
            ["SADD", "set"].into_iter().chain(members.iter().map(String::as_str)).collect();
        assert_eq!(server.ask(&words), "10000");
    }
    let cpu_us = || {
        let text = server.ask(&["INFO", "cpu"]);
        let value =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse::<f64>();
        ((value("used_cpu_user:").unwrap() + value("used_cpu_sys:").unwrap()) * 1e6) as u64
    };
    let before_us = cpu_us();
    assert_eq!(server.ask(&["SAVE"]), "OK");
    let spent_us = cpu_us() - before_us;
    let longest_us: u64 = server.info("rdb_longest_step_cpu_us").parse().unwrap();
    assert!(longest_us > 0 && longest_us * 10 < spent_us, "{longest_us} of {spent_us} µs");
}

/// Where snapshots are wanted and the last one failed, writes are refused, as Valkey does it; a server that has them
/// nowhere else does not stop without one.
#[test]
fn a_snapshot_that_fails_is_noticed() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--save", "3600 1"]);
    // What stands in the way of its file.
    let blocked = folder.0.join("dump.weft");
    std::fs::create_dir(&blocked).unwrap();
    assert_eq!(server.ask(&["SET", "k", "1"]), "OK");
    let failed = server.ask(&["SAVE"]);
    assert!(failed.starts_with("ERR No snapshot could be made"), "{failed}");
    let refused = "MISCONF Valkey is configured to save RDB snapshots";
    for words in [&["SET", "k", "2"][..], &["EVAL", "return redis.call('SET', 'k', 2)", "0"]] {
        let reply = server.ask(words);
        assert!(reply.starts_with(refused), "{words:?}: {reply}");
    }
    assert_eq!(server.ask(&["GET", "k"]), "1");
    for (name, value, back) in [("stop-writes-on-bgsave-error", "no", "yes"), ("save", "", "3600 1")] {
        server.ask(&["CONFIG", "SET", name, value]);
        assert_eq!(server.ask(&["SET", "k", "3"]), "OK", "{name}");
        server.ask(&["CONFIG", "SET", name, back]);
        assert!(server.ask(&["SET", "k", "4"]).starts_with(refused), "{name}");
    }
    server.send_only(&["SHUTDOWN"]);
    server.says("It is tried every second");
    std::fs::remove_dir(&blocked).unwrap();
    server.ends();
    let server = Server::start(&folder, &["--save", "3600 1"]);
    assert_eq!(server.ask(&["GET", "k"]), "3");
    // With FORCE it stops in any case.
    std::fs::remove_file(&blocked).unwrap();
    std::fs::create_dir(&blocked).unwrap();
    server.ask(&["SET", "k", "5"]);
    server.stop(&["SHUTDOWN", "FORCE"]);
}

/// The other way round; INFO says so meanwhile.
#[test]
fn a_rewrite_waits_for_a_snapshot() {
    let folder = Folder::new();
    let flags = ["--save", "", "--appendonly", "yes", "--enable-debug-command", "yes"];
    let server = Server::start(&folder, &flags);
    server.ask(&["DEBUG", "POPULATE", "300000", "key", "100"]);
    let mut socket = UnixStream::connect(&server.socket).unwrap();
    socket.write_all(b"BGSAVE\r\nBGREWRITEAOF\r\nPING\r\n").unwrap();
    let replies: Vec<String> = BufReader::new(socket).lines().take(3).map(Result::unwrap).collect();
    let answers = ["+Background saving started", "+Background append only file rewriting scheduled", "+PONG"];
    assert_eq!(replies, answers);
    server.wait_for("aof_rewrites", "1");
    assert_eq!(server.info("rdb_saves"), "1");
    assert_eq!(server.info("aof_rewrite_scheduled"), "0");
    assert_eq!(server.info("aof_rewrites_consecutive_failures"), "0");
}

/// The snapshot of the log before still has the folder: the next log waits for that, and what it makes goes.
#[test]
fn a_log_that_ends_and_begins_beside_its_rewrite_waits_for_it() {
    let folder = Folder::new();
    let flags = ["--save", "", "--appendonly", "yes", "--enable-debug-command", "yes"];
    let server = Server::start(&folder, &flags);
    server.ask(&["DEBUG", "POPULATE", "300000", "key", "100"]);
    let mut socket = UnixStream::connect(&server.socket).unwrap();
    socket.write_all(b"BGREWRITEAOF\r\nCONFIG SET appendonly no\r\nCONFIG SET appendonly yes\r\n").unwrap();
    let replies: Vec<String> = BufReader::new(socket).lines().take(3).map(Result::unwrap).collect();
    assert_eq!(replies, ["+Background append only file rewriting started", "+OK", "+OK"]);
    assert_eq!(server.ask(&["SET", "behind", "v"]), "OK");
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    let names = std::fs::read_dir(folder.0.join("appendonlydir")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let snapshots: Vec<String> = names.filter(|name| name.contains("snapshot")).collect();
    assert_eq!(snapshots.len(), 1, "{snapshots:?}");
    server.kill();
    let server = Server::start(&folder, &flags);
    assert_eq!(server.ask(&["DBSIZE"]), "300001");
}

/// `dir` says where snapshots go from now on; the log stays where it was begun.
#[test]
fn another_dir_leaves_the_log_where_it_is() {
    let (folder, other) = (Folder::new(), Folder::new());
    let flags = ["--save", "", "--appendonly", "yes", "--enable-protected-configs", "yes"];
    let server = Server::start(&folder, &flags);
    server.ask(&["SET", "before", "v"]);
    assert_eq!(server.ask(&["CONFIG", "SET", "dir", other.0.to_str().unwrap()]), "OK");
    assert_eq!(server.ask(&["SET", "behind", "v"]), "OK");
    server.ask(&["BGREWRITEAOF"]);
    server.wait_for("aof_rewrites", "1");
    assert_eq!(server.ask(&["SET", "at the end", "v"]), "OK");
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    assert_eq!(server.ask(&["SAVE"]), "OK");
    assert!(!other.0.join("appendonlydir").exists());
    server.kill();
    let server = Server::start(&folder, &flags);
    assert_eq!(server.ask(&["DBSIZE"]), "3");
    server.kill();
    let server = Server::start(&other, &["--save", ""]);
    assert_eq!(server.ask(&["DBSIZE"]), "3");
}

/// One that is begun while the server runs begins in the `dir` of that moment, as in Valkey.
#[test]
fn a_log_begins_in_the_dir_of_its_moment() {
    let (folder, other) = (Folder::new(), Folder::new());
    let flags = ["--save", "", "--enable-protected-configs", "yes"];
    let with_log = [&flags[..], &["--appendonly", "yes"]].concat();
    let server = Server::start(&folder, &with_log);
    server.ask(&["SET", "before", "v"]);
    assert_eq!(server.ask(&["CONFIG", "SET", "dir", other.0.to_str().unwrap()]), "OK");
    for wanted in ["no", "yes"] {
        assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", wanted]), "OK");
    }
    server.ask(&["SET", "behind", "v"]);
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    server.kill();
    for (place, keys) in [(&folder, "1"), (&other, "2")] {
        let server = Server::start(place, &with_log);
        assert_eq!(server.ask(&["DBSIZE"]), keys);
    }
}

/// What a kill has left of one is removed at the next start; what only has its name is not.
#[test]
fn what_is_left_of_a_snapshot_goes_at_the_next_start() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--save", ""]);
    server.ask(&["SET", "k", "v"]);
    assert_eq!(server.ask(&["SAVE"]), "OK");
    let name = server.ask(&["CONFIG", "GET", "dbfilename"]).split_whitespace().last().unwrap().to_owned();
    server.kill();
    let (whole, left) = (folder.0.join(&name), folder.0.join(format!("{name}.tmp")));
    for (content, stays) in
        [(std::fs::read(&whole).unwrap()[..40].to_vec(), false), (b"letters".to_vec(), true)]
    {
        std::fs::write(&left, &content).unwrap();
        let server = Server::start(&folder, &["--save", ""]);
        assert_eq!(server.ask(&["GET", "k"]), "v");
        assert_eq!(left.exists(), stays);
        server.kill();
    }
}

/// It ends in the folder in which it was begun.
#[test]
fn another_dir_moves_no_snapshot_that_is_being_made() {
    let (folder, other) = (Folder::new(), Folder::new());
    let flags = ["--save", "", "--enable-protected-configs", "yes", "--enable-debug-command", "yes"];
    let server = Server::start(&folder, &flags);
    server.ask(&["DEBUG", "POPULATE", "300000", "key", "100"]);
    let mut socket = UnixStream::connect(&server.socket).unwrap();
    let asked = format!("BGSAVE\r\nCONFIG SET dir {}\r\n", other.0.display());
    socket.write_all(asked.as_bytes()).unwrap();
    let replies: Vec<String> = BufReader::new(socket).lines().take(2).map(Result::unwrap).collect();
    assert_eq!(replies, ["+Background saving started", "+OK"]);
    server.wait_for("rdb_bgsave_in_progress", "0");
    assert_eq!((server.info("rdb_saves"), server.info("rdb_last_bgsave_status")), ("1".into(), "ok".into()));
    server.kill();
    // It may have begun behind the change, but it is whole in one of them and nowhere else.
    let server = Server::start(&folder, &flags);
    let here = server.ask(&["DBSIZE"]);
    server.kill();
    let server = Server::start(&other, &flags);
    let there = server.ask(&["DBSIZE"]);
    let mut both = [here, there];
    both.sort();
    assert_eq!(both, ["0", "300000"]);
}
