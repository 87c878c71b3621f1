//! What is kept, on a server whose clock jumps: no promise hangs on it, and what comes back looks at none.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

mod common;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

use common::Folder;
use common::kept::{FailingDisk, Server, digests};
use common::servers::LONG;

const OPTIONS: [&str; 6] = ["--save", "", "--appendonly", "yes", "--enable-debug-command", "yes"];

/// Waits until a field of INFO is another than this.
fn wait_while(server: &Server, field: &str, value: &str) {
    let late = Instant::now() + LONG;
    while server.info(field) == value {
        assert!(Instant::now() < late, "{field} stays {value}");
        thread::yield_now();
    }
}

/// A clock that is set back hides no disk that is slow, and what is held back meanwhile goes on with the disk, not when
/// the clock is where it was.
#[test]
fn a_clock_that_is_set_back_changes_no_bound() {
    let (disk, folder) = (FailingDisk::new(), Folder::new());
    let server = Server::start_on(&disk, &folder, &OPTIONS);
    disk.begin("sync-waits");
    assert_eq!(server.ask(&["SET", "k", "1"]), "OK");
    wait_while(&server, "aof_unsynced_bytes", "0");
    disk.begin("clock-an-hour-back");
    wait_while(&server, "aof_delayed_fsync", "0");
    let mut writer = UnixStream::connect(&server.socket).unwrap();
    writer.set_read_timeout(Some(LONG)).unwrap();
    writer.write_all(b"SET k 2\r\n").unwrap();
    // The server has it.
    while !server.ask(&["CLIENT", "LIST"]).contains(" tot-net-in=9 ") {
        thread::yield_now();
    }
    assert_eq!(server.ask(&["GET", "k"]), "1", "the write waits");
    disk.end("clock-an-hour-back");
    disk.begin("clock-two-hours-back");
    assert_eq!(server.ask(&["GET", "k"]), "1", "the write waits");
    disk.end("sync-waits");
    let mut reply = [0; 5];
    writer.read_exact(&mut reply).expect("the disk has followed");
    assert_eq!(&reply, b"+OK\r\n");
    assert_eq!(server.ask(&["GET", "k"]), "2");
}

/// What has expired by a clock that ran ahead stays gone; what a clock that is behind has given its time keeps it. A
/// kill, and starts by other clocks, change nothing of what is kept but by what has expired.
#[test]
fn what_comes_back_looks_at_no_clock() {
    let (disk, folder) = (FailingDisk::new(), Folder::new());
    let server = Server::start_on(&disk, &folder, &OPTIONS);
    let ok = |words: &[&str]| assert!(!server.ask(words).starts_with("ERR"), "{words:?}");
    ok(&["SET", "soon", "1", "EX", "1800"]);
    ok(&["SET", "late", "1", "EX", "1000000"]);
    ok(&["HSET", "hash", "f", "1", "g", "2"]);
    ok(&["HEXPIRE", "hash", "1800", "FIELDS", "1", "f"]);
    ok(&["XADD", "stream", "*", "f", "now"]);
    disk.begin("clock-an-hour-ahead");
    assert_eq!(server.ask(&["EXISTS", "soon"]), "0");
    assert_eq!(server.ask(&["HKEYS", "hash"]), "g");
    ok(&["XADD", "stream", "*", "f", "ahead"]);
    ok(&["SET", "ahead", "1", "EX", "1000"]);
    disk.end("clock-an-hour-ahead");
    assert_eq!(server.ask(&["EXISTS", "soon", "late"]), "1", "what has expired stays gone");
    disk.begin("clock-an-hour-back");
    ok(&["XADD", "stream", "*", "f", "back"]);
    ok(&["SET", "back", "1", "EX", "1000"]);
    assert_eq!(server.ask(&["XLEN", "stream"]), "3");
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    let expected = digests(&server);
    server.kill();
    // By the same clock, twice: from the log, and behind a snapshot; by one that is further behind.
    let server = Server::start_on(&disk, &folder, &OPTIONS);
    assert_eq!(digests(&server), expected);
    assert_eq!(server.ask(&["BGREWRITEAOF"]), "Background append only file rewriting started");
    server.wait_for("aof_rewrites", "1");
    server.kill();
    disk.end("clock-an-hour-back");
    disk.begin("clock-two-hours-back");
    let server = Server::start_on(&disk, &folder, &OPTIONS);
    assert_eq!(digests(&server), expected);
    server.kill();
    disk.end("clock-two-hours-back");
    // By the right one its time has passed: it goes, and nothing else does.
    let server = Server::start_on(&disk, &folder, &OPTIONS);
    assert_eq!(server.ask(&["EXISTS", "back"]), "0");
    assert_eq!(server.ask(&["EXISTS", "late", "ahead", "hash", "stream"]), "4");
    server.kill();
    let server = Server::start_on(&disk, &folder, &OPTIONS);
    assert_eq!(server.ask(&["EXISTS", "back"]), "0");
    assert_eq!(server.ask(&["DBSIZE"]), "4");
}
