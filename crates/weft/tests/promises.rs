//! What docs/persistence.md promises for when something goes wrong, each on a server that runs: signals, damage, the
//! files of others, WAITAOF, what INFO says meanwhile. Disks that fail: `failing_disks.rs`; what comes back:
//! `persistence.rs`; snapshots: `snapshots.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use weft_client::Protocol;

use common::kept::{FailingDisk, Server, refused, show, spawn};
use common::{Folder, resp};

/// One SIGTERM: what is kept is on the disk, with save points or with a log.
#[test]
fn a_signal_ends_a_server_that_keeps_all() {
    for flags in [&["--save", "3600 1"][..], &["--save", "", "--appendonly", "yes"]] {
        let folder = Folder::new();
        let server = Server::start(&folder, flags);
        assert_eq!(server.ask(&["SET", "k", "v"]), "OK");
        server.terminate();
        let said = server.ends_saying();
        assert!(said.contains(" is on the disk") && !said.contains("is gone"), "{said}");
        assert!(!said.contains("Nothing is kept"), "{said}");
        let server = Server::start(&folder, flags);
        assert_eq!(server.ask(&["GET", "k"]), "v", "{flags:?}");
        if flags.len() == 2 {
            server.send_only(&["SHUTDOWN", "NOSAVE"]);
            let said = server.ends_saying();
            assert!(said.contains("What has changed since the snapshot that was loaded is gone"), "{said}");
            assert!(!said.contains("Nothing is kept"), "{said}");
        }
    }
}

/// A second one does not wait for a snapshot that cannot be made.
#[test]
fn a_second_signal_ends_a_server_at_once() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--save", "3600 1"]);
    assert_eq!(server.ask(&["SET", "k", "v"]), "OK");
    std::fs::create_dir(folder.0.join("dump.weft")).unwrap();
    server.terminate();
    server.says("It is tried every second; a second SIGTERM stops the server without one");
    server.terminate();
    server.ends_badly();
}

/// While it loads a server stops at once, by a signal or SHUTDOWN, whatever it loads, and nothing of it is written.
/// Here no loading would end.
#[test]
fn a_server_that_loads_is_stopped_at_once() {
    let disk = FailingDisk::new();
    let log = ["--save", "", "--appendonly", "yes"];
    let points = ["--save", "3600 1", "--appendonly", "no"];
    for (flags, by_signal) in [(log, true), (points, true), (log, false), (points, false)] {
        let folder = Folder::new();
        let server = Server::start(&folder, &flags);
        assert_eq!(server.ask(&["SET", "k", "v"]), "OK");
        server.terminate();
        server.ends();
        let kept = all_files(&folder.0);
        disk.begin("read-waits");
        let server = Server::loading(&disk, &folder, &flags);
        if by_signal {
            server.terminate();
        } else {
            server.send_only(&["SHUTDOWN"]);
        }
        server.says("It was still loading: nothing is written, and what was kept stays as it was");
        server.ends();
        disk.end("read-waits");
        assert_eq!(all_files(&folder.0), kept, "{flags:?}");
        assert_eq!(Server::start(&folder, &flags).ask(&["GET", "k"]), "v", "{flags:?}");
    }
    for flags in [log, points] {
        let folder = Folder::new();
        let pipe = folder.path("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let server = Server::loading(&disk, &folder, &[&flags[..], &["--import", &pipe]].concat());
        // Half of it has come, and nothing more comes.
        let mut half = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        half.write_all(&resp(&["SET", "half", "1"])).unwrap();
        server.terminate();
        server.says("An import begins anew at the next start");
        server.ends();
        drop(half);
        let file = folder.file("whole.aof", &resp(&["SET", "whole", "1"]));
        let server = Server::start(&folder, &[&flags[..], &["--import", &file]].concat());
        assert_eq!(server.ask(&["EXISTS", "half"]), "0", "half of it is nothing: {flags:?}");
        assert_eq!(server.ask(&["EXISTS", "whole"]), "1", "{flags:?}");
    }
}

/// A connection that came before the default user had its password back is closed: nobody has asked it for one.
#[test]
fn who_came_before_a_password_was_loaded_is_closed() {
    let (disk, folder) = (FailingDisk::new(), Folder::new());
    let flags = ["--save", "", "--appendonly", "yes"];
    let server = Server::start(&folder, &flags);
    assert_eq!(server.ask(&["ACL", "SETUSER", "default", ">secret"]), "OK");
    server.terminate();
    server.ends();
    disk.begin("read-waits");
    let server = Server::loading(&disk, &folder, &flags);
    let mut early = UnixStream::connect(&server.socket).unwrap();
    early.write_all(b"PING\r\n").unwrap();
    let mut reply = [0; 7];
    early.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
    disk.end("read-waits");
    assert_eq!(early.read(&mut reply).unwrap(), 0, "it is closed");
    assert_eq!(server.ask(&["DBSIZE"]), "NOAUTH Authentication required.");
}

/// What CONFIG SET appendonly says while a server loads holds when it has loaded, whatever the log was to begin with.
#[test]
fn a_log_that_is_ended_while_it_is_loaded_has_ended() {
    let disk = FailingDisk::new();
    let log = ["--save", "", "--appendonly", "yes"];
    for before in [log, ["--save", "3600 1", "--appendonly", "no"]] {
        let folder = Folder::new();
        let server = Server::start(&folder, &before);
        assert_eq!(server.ask(&["SET", "k", "v"]), "OK");
        server.stop(&["SHUTDOWN"]);
        disk.begin("read-waits");
        let server = Server::loading(&disk, &folder, &log);
        let mut client = UnixStream::connect(&server.socket).unwrap();
        client.write_all(b"CONFIG SET appendonly no\r\n").unwrap();
        while server.ask(&["CONFIG", "GET", "appendonly"]) != "appendonly no" {}
        disk.end("read-waits");
        let mut reply = [0; 5];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(
            (&reply, &*server.info("aof_enabled"), &*server.ask(&["GET", "k"])),
            (b"+OK\r\n", "0", "v")
        );
    }
}

/// The files of a folder and of those in it, but sockets and pipes, with what they hold.
fn all_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(all_files(&path));
        } else if path.is_file() {
            let content = std::fs::read(&path).unwrap();
            files.insert(path, content);
        }
    }
    files
}

/// A save point whose snapshot failed is tried again, without being asked for.
#[test]
fn a_save_point_is_tried_again() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--save", "1 1"]);
    let blocked = folder.0.join("dump.weft");
    std::fs::create_dir(&blocked).unwrap();
    assert_eq!(server.ask(&["SET", "k", "v"]), "OK");
    server.says("A save point is reached");
    server.says("No snapshot could be made");
    assert_eq!(server.info("rdb_last_bgsave_status"), "err");
    std::fs::remove_dir(&blocked).unwrap();
    server.wait_for("rdb_saves", "1");
    assert_eq!(server.info("rdb_last_bgsave_status"), "ok");
    assert_eq!(server.ask(&["SET", "k", "w"]), "OK", "writes go on");
}

/// Where no snapshot could be made writes are refused, and go on as soon as BGSAVE has made one, or at once when they
/// are not to wait for it.
#[test]
fn writes_that_a_snapshot_has_stopped_go_on() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--save", "3600 1000"]);
    let blocked = folder.0.join("dump.weft");
    for goes_on in [&["BGSAVE"][..], &["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]] {
        std::fs::create_dir(&blocked).unwrap();
        assert_eq!(server.ask(&["BGSAVE"]), "Background saving started");
        server.wait_for("rdb_last_bgsave_status", "err");
        let refused = server.ask(&["SET", "k", "v"]);
        assert!(refused.starts_with("MISCONF "), "{refused}");
        std::fs::remove_dir(&blocked).unwrap();
        server.ask(goes_on);
        while server.ask(&["SET", "k", "v"]) != "OK" {
            thread::yield_now();
        }
        // It may have been the one that has made the next one.
        let _ = std::fs::remove_file(&blocked);
    }
}

/// Without a log it is an error; with `always` all is there at once, with `no` it is what syncs.
#[test]
fn waitaof_waits_whatever_appendfsync_says() {
    for (setting, syncs) in [("always", true), ("everysec", false), ("no", false)] {
        let folder = Folder::new();
        let server = Server::start(&folder, &["--save", "", "--appendonly", "yes", "--appendfsync", setting]);
        let mut connection = server.connect(Protocol::Resp2);
        let mut run = |words: &[&str]| show(connection.exchange(words).unwrap());
        assert_eq!(run(&["SET", "k", "v"]), "OK");
        if syncs {
            assert_eq!(server.info("aof_unsynced_bytes"), "0", "its reply came behind the sync");
        }
        assert_eq!(run(&["WAITAOF", "1", "0", "0"]), "1 0", "{setting}");
        assert_eq!(server.info("aof_unsynced_bytes"), "0", "{setting}");
        assert_ne!(server.info("aof_syncs"), "0", "{setting}");
        // Nobody copies the log: who waits for a copy waits in vain, and is told of this one.
        assert_eq!(run(&["WAITAOF", "0", "1", "10"]), "1 0", "{setting}");
        server.kill();
        let server = Server::start(&folder, &["--save", "", "--appendonly", "yes"]);
        assert_eq!(server.ask(&["GET", "k"]), "v", "{setting}");
    }
}

/// A log that has grown by `auto-aof-rewrite-percentage` is rewritten without being asked for; where that finds no room
/// the log goes on, nothing is left of it, and it is tried again, after a rest.
#[test]
fn a_log_that_has_grown_is_rewritten_and_tried_again() {
    let (disk, folder) = (FailingDisk::new(), Folder::new());
    let grows = ["--auto-aof-rewrite-percentage", "100", "--auto-aof-rewrite-min-size", "100kb"];
    let flags = ["--save", "", "--appendonly", "yes", "--enable-debug-command", "yes"];
    let server = Server::start_on(&disk, &folder, &[&flags[..], &grows].concat());
    let value = "v".repeat(1000);
    let grow = |writes: usize| {
        let mut connection = server.connect(Protocol::Resp2);
        for _ in 0..writes {
            assert_eq!(show(connection.exchange(&["SET", "k", &value]).unwrap()), "OK");
        }
    };
    let number = |field: &str| server.info(field).parse::<u64>().unwrap();
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    grow(50);
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    assert_eq!(server.info("aof_rewrites"), "0", "it is shorter than the least");
    grow(100);
    server.says("The log has become long: a snapshot takes its place");
    server.wait_for("aof_rewrites", "1");
    assert!(number("aof_current_size") < 100 << 10, "it is short again");
    assert_eq!(server.ask(&["DEBUG", "REWRITE-REST", "3600000"]), "OK");
    disk.begin("no-room-for-snapshots");
    grow(150);
    server.says("No space left on device");
    assert_eq!(server.info("aof_last_bgrewrite_status"), "err");
    assert_eq!(server.info("aof_last_write_status"), "ok", "the log goes on");
    let left = all_files(&folder.0.join("appendonlydir")).into_keys();
    let left: Vec<PathBuf> = left.filter(|path| path.to_string_lossy().ends_with(".tmp")).collect();
    assert_eq!(left.len(), 1, "but for the room of the next segment: {left:?}");
    disk.end("no-room-for-snapshots");
    // While it rests it is not tried: what is due every second is done several times.
    let syncs = number("aof_syncs");
    while number("aof_syncs") < syncs + 4 {
        grow(1);
    }
    assert_eq!(
        (server.info("aof_rewrites"), server.info("aof_rewrite_in_progress")),
        ("1".into(), "0".into())
    );
    assert_eq!(server.ask(&["DEBUG", "REWRITE-REST", "1"]), "OK");
    server.wait_for("aof_rewrites", "2");
    assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
    server.kill();
    assert_eq!(Server::start(&folder, &flags).ask(&["GET", "k"]), value);
}

/// Several keys of one command are one group of the log, whichever of them stand already.
#[test]
fn keys_of_one_command_are_kept_together() {
    let folder = Folder::new();
    let flags = ["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--threads", "2"];
    let server = Server::start(&folder, &flags);
    assert_eq!(server.ask(&["SET", "a", "short"]), "OK");
    // Neighbours, of which each finds one key that is there.
    let mut client = UnixStream::connect(&server.socket).unwrap();
    let asked: String = (10..26).map(|at| format!("MSET new:{at} x a at-{at} too:{at} x\r\n")).collect();
    client.write_all(asked.as_bytes()).unwrap();
    let mut replies = vec![0; 16 * "+OK\r\n".len()];
    client.read_exact(&mut replies).unwrap();
    assert_eq!(replies, b"+OK\r\n".repeat(16));
    assert_eq!(server.info("aof_last_write_status"), "ok");
    server.kill();
    let server = Server::start(&folder, &flags);
    for (key, value) in [("a", "at-25"), ("new:10", "x"), ("too:25", "x")] {
        assert_eq!(server.ask(&["GET", key]), value);
    }
}

/// What rests on the disk is told from what was being written, also if nothing came behind it: one bit of the last
/// write is found, though the server was killed.
#[test]
fn damage_of_the_last_write_is_found_when_the_log_had_a_rest() {
    for setting in ["always", "everysec"] {
        let folder = Folder::new();
        let flags = ["--save", "", "--appendonly", "yes", "--appendfsync", setting];
        let server = Server::start(&folder, &flags);
        assert_eq!(server.ask(&["SET", "a", "1"]), "OK");
        // With another thread's write in the same epoch the order in a block need not be that of the replies.
        assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
        assert_eq!(server.ask(&["SET", "b", "the last one"]), "OK");
        let file = folder.0.join("appendonlydir/appendonly.aof.1.log");
        let place = |bytes: &[u8]| bytes.windows(12).position(|bytes| bytes == b"the last one");
        // Behind the last write stands the block that says that it is on the disk.
        let (at, mut bytes) = loop {
            let bytes = std::fs::read(&file).unwrap();
            if let Some(at) = place(&bytes)
                && bytes[at + 13..].iter().any(|byte| *byte != 0)
            {
                break (at, bytes);
            }
            thread::yield_now();
        };
        assert_eq!(server.info("aof_unsynced_bytes"), "0", "{setting}");
        server.kill();
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        let said = refused(&folder, &flags);
        assert!(said.contains("appendonly.aof.1.log is damaged at byte"), "{said}");
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(Server::start(&folder, &flags).ask(&["GET", "b"]), "the last one");
    }
}

/// What was being written when the power went is cut off, and a line of the log says how much of which file.
#[test]
fn a_torn_end_is_cut_off_and_said() {
    let folder = Folder::new();
    let flags = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let server = Server::start(&folder, &flags);
    assert_eq!(server.ask(&["SET", "a", "1"]), "OK");
    assert_eq!(server.ask(&["SET", "b", "the last one"]), "OK");
    server.kill();
    let file = folder.0.join("appendonlydir/appendonly.aof.1.log");
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(12).position(|bytes| bytes == b"the last one").unwrap();
    bytes[at + 4..].fill(0);
    std::fs::write(&file, &bytes).unwrap();
    let server = Server::start(&folder, &flags);
    server.says("appendonly.aof.1.log ends in the middle of what was being written: the last ");
    assert_eq!(server.ask(&["MGET", "a"]), "1");
    assert_eq!(server.ask(&["EXISTS", "b"]), "0");
    server.kill();
    let server = Server::start(&folder, &flags);
    server.terminate();
    assert!(!server.ends_saying().contains("in the middle"), "once");
}

/// `appendfsync always` holds from its answer on: that comes when replies wait, and what was answered before is on the
/// disk, however long the disk takes for what it is at.
#[test]
fn always_is_answered_when_it_holds() {
    let (disk, folder) = (FailingDisk::new(), Folder::new());
    let server = Server::start_on(&disk, &folder, &["--save", "", "--appendonly", "yes"]);
    disk.begin("sync-waits");
    assert_eq!(server.ask(&["SET", "k", "1"]), "OK");
    while server.info("aof_delayed_fsync") == "0" {
        thread::yield_now();
    }
    let clients = [
        ("MULTI\r\nCONFIG SET appendfsync always\r\nEXEC\r\n", "*1\r\n+OK\r\n"),
        ("CONFIG SET appendfsync always\r\n", "+OK\r\n"),
    ];
    let clients = clients.map(|(asked, reply)| {
        let mut client = UnixStream::connect(&server.socket).unwrap();
        client.write_all(asked.as_bytes()).unwrap();
        let mut before = vec![0; if asked.starts_with("MULTI") { "+OK\r\n+QUEUED\r\n".len() } else { 0 }];
        client.read_exact(&mut before).unwrap();
        // What is expected is that nothing comes.
        client.set_read_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
        let early = client.read(&mut [0]).expect_err("it waits for the disk");
        assert_eq!(early.kind(), std::io::ErrorKind::WouldBlock);
        client.set_read_timeout(None).unwrap();
        (client, reply)
    });
    disk.end("sync-waits");
    for (mut client, reply) in clients {
        let mut answer = vec![0; reply.len()];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), reply);
    }
    assert_eq!(server.info("aof_unsynced_bytes"), "0", "what was answered before is on the disk");
    for _ in 0..20 {
        assert_eq!(server.ask(&["SET", "k", "2"]), "OK");
        assert_eq!(server.info("aof_unsynced_bytes"), "0", "its reply came behind the sync");
    }
    for setting in ["no", "everysec", "always"] {
        assert_eq!(server.ask(&["CONFIG", "SET", "appendfsync", setting]), "OK");
    }
    // Nobody waits for a log that is not there.
    assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", "no", "appendfsync", "everysec"]), "OK");
    assert_eq!(server.ask(&["CONFIG", "SET", "appendfsync", "always"]), "OK");
    assert_eq!(server.ask(&["SET", "k", "3"]), "OK");
}

/// Who was refused a folder since another server keeps its log there does not take it when that one stops.
#[test]
fn the_log_of_another_server_is_not_written_over() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let flags = ["--save", "", "--appendonly", "yes"];
    let first = Server::start(&folder, &flags);
    assert_eq!(first.ask(&["SET", "precious", "1"]), "OK");
    let place = folder.0.to_str().unwrap();
    let second = Server::start(&elsewhere, &["--save", "", "--dir", place]);
    assert_eq!(second.ask(&["SET", "another", "1"]), "OK");
    let said = second.ask(&["CONFIG", "SET", "appendonly", "yes"]);
    assert!(said.contains("another server keeps its log in"), "{said}");
    first.terminate();
    first.ends();
    second.says("which stays as it is; it is not tried again");
    assert_eq!(second.ask(&["SET", "another", "2"]), "OK", "it has no log, as before");
    assert_eq!(second.info("aof_last_write_status"), "err");
    let first = Server::start(&folder, &flags);
    assert_eq!(first.ask(&["GET", "precious"]), "1");
    assert_eq!(first.ask(&["DBSIZE"]), "1");
}

/// Another log in the place of the one that is written, as a backup that somebody has put there under a running server:
/// writes are refused, and it is not written over unless that is asked for.
#[test]
fn a_log_that_another_one_has_taken_the_place_of_is_noticed() {
    let folder = Folder::new();
    let options = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
    let server = Server::start(&folder, &options);
    assert_eq!(server.ask(&["SET", "before", "1"]), "OK");
    let [place, backup, moved] = ["appendonlydir", "backup", "moved"].map(|name| folder.0.join(name));
    std::fs::create_dir(&backup).unwrap();
    for file in std::fs::read_dir(&place).unwrap().map(|file| file.unwrap().path()) {
        std::fs::copy(&file, backup.join(file.file_name().unwrap())).unwrap();
    }
    std::fs::rename(&place, moved).unwrap();
    std::fs::rename(&backup, &place).unwrap();
    let refused =
        "MISCONF the log cannot be written, and no other one can be begun (there is another log in ";
    while !server.ask(&["SET", "behind", "1"]).starts_with(refused) {
        thread::yield_now();
    }
    assert_eq!(server.ask(&["GET", "before"]), "1", "reads go on");
    // It is whole, and nobody has it: another server may begin with it.
    let elsewhere = Folder::new();
    let flags = [&options[..], &["--dir", folder.0.to_str().unwrap()]].concat();
    let other = Server::start(&elsewhere, &flags);
    assert_eq!(other.ask(&["GET", "before"]), "1");
    other.stop(&["SHUTDOWN"]);
    for wanted in ["no", "yes"] {
        assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", wanted]), "OK");
    }
    assert_eq!(server.ask(&["SET", "asked for", "1"]), "OK");
    server.kill();
    assert_eq!(Server::start(&folder, &options).ask(&["EXISTS", "before", "asked for"]), "2");
}

/// A file of another program that has come to stand where the snapshot goes is not written over.
#[test]
fn a_snapshot_is_not_written_over_what_is_another_s() {
    for content in [&b"REDIS0011\xff"[..], b"letters"] {
        let folder = Folder::new();
        let server = Server::start(&folder, &["--save", "", "--dbfilename", "dump.rdb"]);
        assert_eq!(server.ask(&["SET", "k", "v"]), "OK");
        let file = folder.file("dump.rdb", content);
        let said = server.ask(&["SAVE"]);
        let stays = "dump.rdb was written by another program and stays as it is: choose another dbfilename";
        assert!(said.contains(stays), "{said}");
        assert_eq!(std::fs::read(&file).unwrap(), content);
        assert_eq!(server.ask(&["CONFIG", "SET", "save", ""]), "OK");
        // An empty one is nobody's.
        std::fs::write(&file, b"").unwrap();
        assert_eq!(server.ask(&["SAVE"]), "OK");
    }
}

/// While it loads it says how far it has come, and refuses what looks at keys; a second later all is there.
#[test]
fn info_says_how_far_loading_has_come() {
    let folder = Folder::new();
    let flags = ["--save", "", "--appendonly", "yes", "--enable-debug-command", "yes"];
    let server = Server::start(&folder, &flags);
    server.ask(&["DEBUG", "POPULATE", "300000", "key", "100"]);
    // Only the log, so that all of it is replayed.
    server.stop(&["SHUTDOWN"]);
    let (mut child, socket) = spawn(&folder, &flags);
    while UnixStream::connect(&socket).is_err() {
        thread::yield_now();
    }
    let config = weft_client::Config::unix(&socket).with_protocol(Protocol::Resp2);
    let mut connection = weft_client::Connection::connect(&config).unwrap();
    let mut run = |words: &[&str]| show(connection.exchange(words).unwrap());
    let (mut seen, mut before) = (0, 0);
    loop {
        let text = run(&["INFO", "persistence"]);
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.map(str::to_owned)
        };
        if field("loading").unwrap() == "0" {
            assert_eq!(field("loading_loaded_bytes"), None);
            break;
        }
        let number = |name: &str| field(name).unwrap().parse::<u64>().unwrap();
        let (done, all) = (number("loading_loaded_bytes"), number("loading_total_bytes"));
        assert!(done >= before && done <= all, "{text}");
        assert!(field("loading_loaded_perc").unwrap().parse::<f64>().unwrap() <= 100.0);
        assert!(number("loading_start_time") > 1_700_000_000);
        assert_eq!(run(&["PING"]), "PONG");
        let reply = run(&["GET", "key:1"]);
        // It may have ended meanwhile.
        let is_loading = reply.starts_with("LOADING Weft is loading the dataset in memory: ");
        assert!(is_loading || run(&["INFO", "persistence"]).contains("loading:0"), "{reply}");
        seen += u32::from(done > before);
        before = done;
    }
    assert!(seen > 0, "it was seen to go on");
    assert_eq!(run(&["DBSIZE"]), "300000");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Keys whose time has passed while nobody served them are counted, and go behind the start.
#[test]
fn a_start_counts_what_has_expired_meanwhile() {
    let folder = Folder::new();
    let flags = ["--save", "", "--enable-debug-command", "yes"];
    let server = Server::start(&folder, &flags);
    assert_eq!(server.ask(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]), "OK");
    for number in 0..20 {
        server.ask(&["SET", &format!("passes:{number}"), "v", "PX", "1"]);
        server.ask(&["HSET", &format!("stays:{number}"), "f", "v"]);
        server.ask(&["SET", &format!("stays longer:{number}"), "v", "PXAT", "4102444800000"]);
    }
    for number in 0..5 {
        let key = format!("list:{number}");
        server.ask(&["RPUSH", &key, "a"]);
        server.ask(&["PEXPIRE", &key, "1"]);
    }
    // Nobody has looked at them since: they are there, and stand in the snapshot.
    assert_eq!(server.ask(&["DBSIZE"]), "65");
    assert_eq!(server.ask(&["SAVE"]), "OK");
    server.kill();
    let server = Server::start(&folder, &flags);
    assert_eq!(server.info("rdb_last_load_keys_expired"), "25");
    while server.ask(&["DBSIZE"]) != "40" {
        thread::yield_now();
    }
    server.kill();
}

/// A script that takes long has done the half of what it does when the server is to stop.
#[test]
fn half_a_script_is_never_kept() {
    let flags =
        ["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--busy-reply-threshold", "20"];
    let begin = |server: &Server, script: &str| {
        let mut client = BufReader::new(UnixStream::connect(&server.socket).unwrap());
        let words = ["EVAL", script, "2", "{x}a", "{x}b"];
        client.get_mut().write_all(&resp(&words)).unwrap();
        client.get_mut().set_nonblocking(true).unwrap();
        while !server.ask(&["PING"]).starts_with("BUSY") {
            // Where this test has stalled for as long as it takes, it is asked for again.
            if client.fill_buf().is_ok() {
                let len = client.buffer().len();
                client.consume(len);
                client.get_mut().write_all(&resp(&words)).unwrap();
            }
        }
        client.get_mut().set_nonblocking(false).unwrap();
        client
    };
    let line = |client: &mut BufReader<UnixStream>| {
        let mut line = String::new();
        client.read_line(&mut line).unwrap();
        line
    };
    for save in ["", "3600 1"] {
        let folder = Folder::new();
        let server = Server::start(&folder, &[&flags[2..], &["--save", save]].concat());
        assert_eq!(server.ask(&["SET", "before", "1"]), "OK");
        // It goes on until the server stops, for which it is waited for.
        let goes_on = "redis.call('SET', KEYS[1], '1') for i = 1, 100000000 do end redis.call('SET', KEYS[2], '1') return 'whole'";
        let mut client = begin(&server, goes_on);
        server.terminate();
        assert_eq!(line(&mut client) + &line(&mut client), "$5\r\nwhole\r\n", "it is answered");
        server.ends();
        let server = Server::start(&folder, &flags);
        assert_eq!(server.ask(&["EXISTS", "before", "{x}a", "{x}b"]), "3");
        // One that has not written ends.
        let mut client = begin(&server, "while true do end");
        server.terminate();
        let error = line(&mut client);
        assert!(error.contains("Script killed"), "{error}");
        server.ends();
        let server = Server::start(&folder, &flags);
        server.ask(&["DEL", "{x}a", "{x}b"]);
        let _client = begin(&server, "redis.call('SET', KEYS[1], '1') while true do end");
        server.stop(&["SHUTDOWN", "NOSAVE"]);
        let server = Server::start(&folder, &flags);
        assert_eq!(server.ask(&["EXISTS", "before", "{x}a", "{x}b"]), "1");
        // Nor half a transaction, of what stands before the script and behind it.
        let mut client = UnixStream::connect(&server.socket).unwrap();
        let looping = ["EVAL", "redis.call('SET', KEYS[1], '1') while true do end", "1", "{x}a"];
        let program = r#"{"steps":[["SET","{x}d","1"]]}"#;
        let set = |key| ["SET", key, "1"];
        let behind = [&set("{x}c")[..], &["PROGRAM", "EVAL", program], &["EVAL", "while true do end", "0"]];
        for words in [&["MULTI"][..], &set("{x}b"), &looping].into_iter().chain(behind).chain([&["EXEC"][..]])
        {
            client.write_all(&resp(words)).unwrap();
        }
        while !server.ask(&["PING"]).starts_with("BUSY") {}
        server.stop(&["SHUTDOWN", "NOSAVE"]);
        let server = Server::start(&folder, &flags);
        assert_eq!(server.ask(&["EXISTS", "before", "{x}a", "{x}b", "{x}c", "{x}d"]), "1");
    }
}
