//! A disk that fails, takes its time, may not be written to, or is another server's too: what docs/persistence.md
//! promises for that, each on servers that run. What else it promises for when something goes wrong: `promises.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;

use common::Folder;
use common::kept::{FailingDisk, Server, digests, refused};

/// Of two servers in one folder one at a time writes the snapshot of a name.
#[test]
fn two_servers_write_no_snapshot_at_once() {
    let (disk, folder, other) = (FailingDisk::new(), Folder::new(), Folder::new());
    let one = Server::start_on(&disk, &folder, &["--save", ""]);
    let two = Server::start(&other, &["--save", "", "--enable-protected-configs", "yes"]);
    assert_eq!(two.ask(&["CONFIG", "SET", "dir", &folder.0.to_string_lossy()]), "OK");
    assert_eq!(one.ask(&["SET", "k", "one"]), "OK");
    assert_eq!(two.ask(&["SET", "k", "two"]), "OK");
    disk.begin("sync-waits");
    assert_eq!(one.ask(&["BGSAVE"]), "Background saving started");
    // It waits at its end at the latest.
    while !folder.0.join("dump.weft.tmp").exists() {
        thread::yield_now();
    }
    let said = two.ask(&["SAVE"]);
    assert!(said.contains("another server is writing") && said.contains("dbfilename"), "{said}");
    disk.end("sync-waits");
    one.wait_for("rdb_saves", "1");
    assert_eq!(two.ask(&["SAVE"]), "OK", "then it is its turn");
    one.kill();
    assert_eq!(Server::start(&folder, &["--save", ""]).ask(&["GET", "k"]), "two");
}

/// What was not synced for two seconds holds writes back until it is; reads go on, and INFO counts it.
#[test]
fn a_disk_that_is_slow_holds_writes_back() {
    let (disk, folder) = (FailingDisk::new(), Folder::new());
    let server = Server::start_on(&disk, &folder, &["--save", "", "--appendonly", "yes"]);
    assert_eq!(server.info("aof_delayed_fsync"), "0");
    disk.begin("sync-waits");
    assert_eq!(server.ask(&["SET", "k", "1"]), "OK");
    while server.info("aof_delayed_fsync") == "0" {
        thread::yield_now();
    }
    let mut writer = UnixStream::connect(&server.socket).unwrap();
    writer.write_all(b"SET k 2\r\n").unwrap();
    // The server has it.
    while !server.ask(&["CLIENT", "LIST"]).contains(" tot-net-in=9 ") {
        thread::yield_now();
    }
    for _ in 0..100 {
        assert_eq!(server.ask(&["GET", "k"]), "1", "reads go on, and the write waits");
    }
    disk.end("sync-waits");
    let mut reply = [0; 5];
    writer.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+OK\r\n");
    assert_eq!(server.ask(&["GET", "k"]), "2");
}

/// The device fails: nothing that was acknowledged is lost, writes are refused, and go on behind a new log when the
/// device is well again.
#[test]
fn a_disk_that_fails_refuses_writes_until_it_is_well() {
    for (fault, setting) in [
        ("write-fails", "always"),
        ("sync-fails", "always"),
        ("write-fails", "everysec"),
        ("sync-fails", "everysec"),
    ] {
        let (disk, folder) = (FailingDisk::new(), Folder::new());
        let flags = ["--save", "", "--appendonly", "yes", "--appendfsync", setting];
        let server = Server::start_on(&disk, &folder, &flags);
        assert_eq!(server.ask(&["SET", "before", "1"]), "OK");
        assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
        disk.begin(fault);
        let reply = server.ask(&["SET", "meanwhile", "1"]);
        if setting == "always" {
            let unknown =
                "MISCONF the log could not be written: whether what this request did is kept is unknown";
            assert!(reply.starts_with(unknown), "{fault}: {reply}");
        }
        while !server.ask(&["SET", "refused", "1"]).starts_with("MISCONF the log cannot be written (") {
            thread::yield_now();
        }
        assert_eq!(server.info("aof_last_write_status"), "err", "{fault} {setting}");
        assert_eq!(server.ask(&["GET", "before"]), "1", "reads go on");
        server.says(&format!("The log cannot be written: {}", folder.path("appendonlydir")));
        server.says("A log cannot be begun");
        disk.end(fault);
        while server.ask(&["SET", "behind", "1"]) != "OK" {
            thread::yield_now();
        }
        assert_eq!(server.info("aof_last_write_status"), "ok", "{fault} {setting}");
        assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
        let keys = server.ask(&["DBSIZE"]);
        server.kill();
        let server = Server::start(&folder, &flags);
        assert_eq!(server.ask(&["EXISTS", "before", "behind"]), "2", "{fault} {setting}");
        assert_eq!(server.ask(&["DBSIZE"]), keys, "what memory had is what the new log has");
    }
}

/// A log that fails with more before it than may wait: nobody waits for what it will never write. Without it all goes
/// on at once.
#[test]
fn a_log_that_fails_far_behind_holds_nothing_back() {
    let (disk, folder) = (FailingDisk::new(), Folder::new());
    let server = Server::start_on(&disk, &folder, &["--save", "", "--appendonly", "yes"]);
    disk.begin("sync-waits");
    let socket = server.socket.clone();
    // One after the other tells more than may wait, up to the one that is held back, and then refused.
    let filling = thread::spawn(move || {
        let text = "redis.call('set', KEYS[1], string.rep('x', 72 * 1024 * 1024))";
        let request = format!("*4\r\n$4\r\nEVAL\r\n${}\r\n{text}\r\n$1\r\n1\r\n$1\r\nk\r\n", text.len());
        let mut stream = BufReader::new(UnixStream::connect(socket).unwrap());
        let mut reply = String::new();
        while !reply.starts_with('-') {
            stream.get_mut().write_all(request.as_bytes()).unwrap();
            reply.clear();
            stream.read_line(&mut reply).unwrap();
        }
        reply
    });
    // It waits for the disk, and more is there than may wait.
    while server.info("aof_buffer_length").parse::<usize>().unwrap() <= 64 << 20 {
        thread::yield_now();
    }
    // What it has not looked at yet when the sync fails waits for nobody then.
    disk.begin("sync-fails");
    disk.end("sync-waits");
    server.says("A log cannot be begun");
    let reply = filling.join().unwrap();
    assert!(reply.contains("MISCONF the log cannot be written ("), "{reply}");
    assert_eq!(server.ask(&["PUBLISH", "channel", "text"]), "0", "what writes nothing goes on");
    assert_eq!(server.ask(&["EVAL", "return 1", "0"]), "1");
    assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", "no"]), "OK");
    assert_eq!(server.ask(&["SET", "k", "2"]), "OK");
}

/// What the system takes in parts is written whole, in the log and in snapshots.
#[test]
fn a_disk_that_takes_writes_in_parts_keeps_all() {
    let (disk, folder) = (FailingDisk::new(), Folder::new());
    let flags = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let flags = [&flags[..], &["--enable-debug-command", "yes"]].concat();
    disk.begin("writes-are-short");
    let server = Server::start_on(&disk, &folder, &flags);
    for len in [0, 1, 100, 5000, 100_000, 2_000_000] {
        assert_eq!(server.ask(&["SET", &format!("k{len}"), &"v".repeat(len)]), "OK");
    }
    let expected = digests(&server);
    server.kill();
    // From the log; then from a snapshot that was written in parts, and a log behind it.
    let server = Server::start_on(&disk, &folder, &flags);
    assert_eq!(digests(&server), expected);
    server.ask(&["BGREWRITEAOF"]);
    server.wait_for("aof_rewrites", "1");
    server.kill();
    assert_eq!(digests(&Server::start(&folder, &flags)), expected);
}

/// A snapshot that the device does not take leaves the one before.
#[test]
fn a_disk_that_fails_leaves_the_snapshot_before() {
    for fault in ["write-fails", "sync-fails"] {
        let (disk, folder) = (FailingDisk::new(), Folder::new());
        let server = Server::start_on(&disk, &folder, &["--save", ""]);
        assert_eq!(server.ask(&["SET", "k", "1"]), "OK");
        assert_eq!(server.ask(&["SAVE"]), "OK");
        let whole = std::fs::read(folder.0.join("dump.weft")).unwrap();
        assert_eq!(server.ask(&["SET", "k", "2"]), "OK");
        disk.begin(fault);
        let failed = server.ask(&["SAVE"]);
        assert!(failed.starts_with("ERR No snapshot could be made: "), "{failed}");
        assert!(failed.contains("dump.weft.tmp: Input/output error"), "{failed}");
        assert_eq!(std::fs::read(folder.0.join("dump.weft")).unwrap(), whole, "{fault}");
        assert!(!folder.0.join("dump.weft.tmp").exists(), "{fault}");
        disk.end(fault);
        assert_eq!(server.ask(&["SAVE"]), "OK");
        server.kill();
        assert_eq!(Server::start(&folder, &[]).ask(&["GET", "k"]), "2");
    }
}

/// Where nothing can be written a start says which file it is, and that there is no log.
#[test]
fn a_folder_that_may_only_be_read_is_named() {
    let folder = Folder::new();
    let mount = |words: &[&str]| {
        let mut command = Command::new("mount");
        command.args(words).arg(&folder.0).stderr(std::process::Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=8m", "tmpfs"]) {
        println!("left out: this user may not mount a file system");
        return;
    }
    let server = Server::start(&folder, &["--save", ""]);
    server.ask(&["SET", "k", "v"]);
    assert_eq!(server.ask(&["SAVE"]), "OK");
    server.stop(&["SHUTDOWN", "NOSAVE"]);
    // The socket stands elsewhere; what is kept may be read.
    assert!(mount(&["-o", "remount,ro"]));
    let elsewhere = Folder::new();
    let place = folder.0.to_str().unwrap();
    let flags = ["--save", "", "--enable-protected-configs", "yes", "--dir", place];
    let said = refused(&elsewhere, &[&flags[..], &["--appendonly", "yes"]].concat());
    let named = format!("cannot keep a log: {}: Read-only file system", folder.path("appendonlydir"));
    assert!(said.contains(&named), "{said}");
    let server = Server::start(&elsewhere, &flags);
    assert_eq!(server.ask(&["GET", "k"]), "v");
    let said = server.ask(&["SAVE"]);
    assert!(said.contains(&format!("{place}/dump.weft.tmp: Read-only file system")), "{said}");
    let said = server.ask(&["CONFIG", "SET", "appendonly", "yes"]);
    assert_eq!(said, format!("ERR There is no log yet: {named} (os error 30). It is tried every second"));
    server.says(&format!("A log cannot be begun: {named}"));
    server.kill();
    assert!(Command::new("umount").arg("-l").arg(&folder.0).status().unwrap().success());
}
