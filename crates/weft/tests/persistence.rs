//! What a server keeps: stopped and started again, with a log, with a snapshot, with both; on a full disk, damaged,
//! begun with the data of another. Killed at any moment: `crash.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use weft_client::Protocol;

use common::Folder;
use common::kept::{Server, digest, refused, show};

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
    assert_eq!(server.ask(&["OBJECT", "ENCODING", "number"]), "int");
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
    assert_eq!(server.ask(&["OBJECT", "ENCODING", "number"]), "int");
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
    // It is answered when there is one: what comes behind it is kept.
    assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", "yes"]), "OK");
    assert_eq!(server.info("aof_rewrites"), "1");
    server.ask(&["SET", "behind", "v"]);
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    // The room that it has made for its next segment outlives the snapshot behind which it began.
    for rewrites in ["2", "3"] {
        server.ask(&["BGREWRITEAOF"]);
        server.wait_for("aof_rewrites", rewrites);
        server.wait_for("aof_rewrite_in_progress", "0");
        assert_eq!(server.info("aof_last_write_status"), "ok");
        assert_eq!(server.ask(&["SET", "behind", "w"]), "OK");
    }
    let again = refused(&folder, &["--appendonly", "yes", "--appenddirname", "other"]);
    let place = folder.0.join("other").canonicalize().unwrap();
    assert!(again.contains(&format!("another server keeps its log in {}", place.display())), "{again}");
    server.kill();
    let server = Server::start(&folder, &["--appendonly", "yes", "--appenddirname", "other"]);
    assert_eq!(server.ask(&["DBSIZE"]), "501");
    assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", "no"]), "OK");
    // It is answered when there is none: what comes behind it is not kept, and nobody has the folder.
    let lock = std::fs::File::open(folder.0.join("other/lock")).unwrap();
    lock.try_lock().unwrap();
    // Not by closing it: another test may start a program just now, which has it too until it runs.
    lock.unlock().unwrap();
    // Another server that has it is named, with what to do, as at a start.
    let elsewhere = Folder::new();
    let dir = folder.0.to_str().unwrap();
    let flags = ["--appendonly", "yes", "--appenddirname", "other", "--dir", dir];
    let other = Server::start(&elsewhere, &flags);
    let said = server.ask(&["CONFIG", "SET", "appendonly", "yes"]);
    let named = format!("another server keeps its log in {}: choose another dir", place.display());
    assert_eq!(said, format!("ERR There is no log yet: {named}. It is tried every second"));
    assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", "no"]), "OK");
    drop(other);
    server.ask(&["SET", "lost", "v"]);
    server.stop(&["SHUTDOWN"]);
    let server = Server::start(&folder, &["--appendonly", "yes", "--appenddirname", "other"]);
    assert_eq!(server.ask(&["DBSIZE"]), "501");
}

/// A log is what a start with `appendonly yes` loads, though it was ended before the snapshot was made.
#[test]
fn a_log_that_was_ended_goes_before_a_later_snapshot() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--appendonly", "yes", "--save", ""]);
    assert_eq!(server.ask(&["SET", "in both", "1"]), "OK");
    assert_eq!(server.ask(&["CONFIG", "SET", "appendonly", "no"]), "OK");
    assert_eq!(server.ask(&["SET", "in the snapshot", "1"]), "OK");
    assert_eq!(server.ask(&["SAVE"]), "OK");
    server.kill();
    let loads = |setting| {
        let server = Server::start(&folder, &["--appendonly", setting, "--save", ""]);
        let keys = server.ask(&["EXISTS", "in both", "in the snapshot"]);
        server.kill();
        keys
    };
    assert_eq!((loads("no"), loads("yes")), ("2".into(), "1".into()));
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
    let began = Instant::now();
    while server.ask(&["GET", "done"]) != "3" {
        // It is given up behind 8 attempts.
        let told = || {
            [&["TRIGGER", "STATS"][..], &["XRANGE", "weft:triggers:dead", "-", "+"]]
                .map(|ask| server.ask(ask))
        };
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", told());
        thread::yield_now();
    }
}

/// Users that nobody has saved to a file come back from the log and from a snapshot; the configuration's word stands
/// before theirs.
#[test]
fn users_act_after_a_restart() {
    let folder = Folder::new();
    let options = ["--appendonly", "yes", "--appendfsync", "always"];
    let may = |server: &Server, user: &str, command: &[&str]| {
        let words: Vec<&str> = ["ACL", "DRYRUN", user].iter().chain(command).copied().collect();
        server.ask(&words)
    };
    let mut server = Server::start(&folder, &options);
    let rules = ["on", ">secret", "~app:*", "+get", "(~other:* +set)", "&news", "resetchannels"];
    server.ask(&[&["ACL", "SETUSER", "bob"], &rules[..]].concat());
    server.ask(&["ACL", "SETUSER", "gone", "on", "nopass"]);
    server.ask(&["ACL", "SETUSER", "carol", "on", "nopass", "+@all", "~*"]);
    assert_eq!(server.ask(&["ACL", "DELUSER", "gone", "nobody"]), "1");
    let expected = server.ask(&["ACL", "LIST"]);
    for round in 1..=2 {
        server.kill();
        server = Server::start(&folder, &options);
        assert_eq!(server.ask(&["ACL", "LIST"]), expected, "round {round}");
        assert_eq!(may(&server, "bob", &["GET", "app:1"]), "OK");
        assert_eq!(may(&server, "bob", &["SET", "other:1", "v"]), "OK");
        assert_ne!(may(&server, "bob", &["SET", "app:1", "v"]), "OK");
        assert_eq!(server.ask(&["AUTH", "bob", "secret"]), "OK");
        if round == 1 {
            server.ask(&["BGREWRITEAOF"]);
            server.wait_for("aof_rewrites", "1");
        }
    }
    // A file of users has all of them; a user of the configuration is as it stands there.
    server.kill();
    let server =
        Server::start(&folder, &[&options[..], &["--user", "bob", "on", "nopass", "+get", "~*"]].concat());
    assert_eq!(may(&server, "bob", &["GET", "any"]), "OK");
    assert_ne!(may(&server, "bob", &["SET", "other:1", "v"]), "OK");
    assert_eq!(may(&server, "carol", &["SET", "any", "v"]), "OK");
    server.kill();
    let users = folder.file("users.acl", b"user default on nopass ~* &* +@all\n");
    let server = Server::start(&folder, &[&options[..], &["--aclfile", &users]].concat());
    assert_eq!(server.ask(&["ACL", "USERS"]), "default");
    server.ask(&["ACL", "SETUSER", "dave", "on"]);
    server.kill();
    // A password that the default user was given holds from the start on.
    let server = Server::start(&folder, &options);
    assert_eq!(server.ask(&["ACL", "USERS"]), "bob carol default");
    server.ask(&["ACL", "SETUSER", "default", ">first"]);
    server.kill();
    let server = Server::start(&folder, &options);
    assert_eq!(server.ask(&["PING"]), "NOAUTH Authentication required.");
    assert_eq!(server.ask(&["AUTH", "first"]), "OK");
    server.kill();
    let server = Server::start(&folder, &[&options[..], &["--requirepass", "second"]].concat());
    assert_eq!(server.ask(&["AUTH", "second"]), "OK");
}

/// Nobody else may read what is kept; who may read a snapshot may read the next one.
#[test]
fn what_is_kept_is_readable_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let mode = |name: &str| std::fs::metadata(folder.0.join(name)).unwrap().permissions().mode() & 0o777;
    let server = Server::start(&folder, &["--appendonly", "yes", "--dbfilename", "dump.weft"]);
    server.ask(&["SET", "k", "v"]);
    assert_eq!(server.ask(&["SAVE"]), "OK");
    server.ask(&["BGREWRITEAOF"]);
    server.wait_for("aof_rewrites", "1");
    assert_eq!((mode("appendonlydir"), mode("dump.weft")), (0o700, 0o600));
    let files: Vec<_> =
        std::fs::read_dir(folder.0.join("appendonlydir")).unwrap().map(Result::unwrap).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let of = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(of, 0o600, "{file:?}");
    }
    let group = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(folder.0.join("dump.weft"), group).unwrap();
    assert_eq!(server.ask(&["SAVE"]), "OK");
    assert_eq!(mode("dump.weft"), 0o640);
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
    assert!(
        text.contains("is damaged at byte 32") && text.contains("restore the folder from a backup"),
        "{text}"
    );
    assert_eq!(std::fs::read(&log).unwrap(), bytes, "it stays as it is");
    std::fs::write(&log, &whole).unwrap();
    Server::start(&folder, &options).stop(&["SHUTDOWN"]);
    let folder = Folder::new();
    folder.file("dump.rdb", b"REDIS0011");
    let text = refused(&folder, &["--dbfilename", "dump.rdb"]);
    assert!(text.contains("dump.rdb was written by Redis or Valkey"), "{text}");
}

/// A file system of its own, of so few bytes; nothing where this user may not mount one.
struct SmallDisk(Folder);

impl SmallDisk {
    fn mount(megabytes: u32) -> Option<Self> {
        let disk = Self(Folder::new());
        disk.run("mount", &["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"]).then_some(disk)
    }
    fn resize(&self, megabytes: u32) {
        assert!(self.run("mount", &["-o", &format!("remount,size={megabytes}m")]));
    }
    fn run(&self, program: &str, words: &[&str]) -> bool {
        let status =
            std::process::Command::new(program).args(words).arg(&self.0.0).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // It goes with the last who uses it.
        self.run("umount", &["-l"]);
    }
}

/// The disk is full: writes are refused, a rewrite fails and leaves nothing, a start comes up, and all goes on when
/// there is room; what was acknowledged is there.
#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount(150) else {
        println!("left out: this user may not mount a file system");
        return;
    };
    let folder = &disk.0;
    let options =
        ["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--enable-debug-command", "yes"];
    let server = Server::start(folder, &options);
    // What does not pack: a snapshot of it needs as much room as the log.
    let mut random = 1_u64;
    let value: String = (0..1 << 20)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'0' + (random >> 58) as u8)
        })
        .collect();
    let refused = (0..200).find_map(|number| {
        let reply = server.ask(&["SET", &format!("key:{}", number % 50), &value]);
        (reply != "OK").then_some(reply)
    });
    let refused = refused.expect("the disk becomes full");
    assert!(refused.starts_with("MISCONF the disk is full"), "{refused}");
    let files = || std::fs::read_dir(folder.0.join("appendonlydir")).unwrap().count();
    let before = files();
    for _ in 0..3 {
        server.ask(&["BGREWRITEAOF"]);
        server.wait_for("aof_rewrite_in_progress", "0");
        server.wait_for("aof_last_bgrewrite_status", "err");
    }
    assert_eq!(server.info("aof_last_write_status"), "ok", "the log goes on");
    assert!(files() <= before + 3, "{} files, {before} before", files());
    assert!(server.ask(&["SET", "late", "v"]).starts_with("MISCONF"));
    let expected = digest(&server);
    server.kill();
    // The room of the killed one is found again, and filled.
    let server = Server::start(folder, &options);
    assert_eq!(digest(&server), expected);
    let filler = folder.path("filler");
    let _ = std::fs::write(&filler, vec![1; 160 << 20]);
    server.kill();
    let server = Server::start(folder, &options);
    assert_eq!(digest(&server), expected);
    assert!(server.ask(&["SET", "late", "v"]).starts_with("MISCONF"));
    disk.resize(400);
    while server.ask(&["SET", "late", "v"]) != "OK" {
        thread::yield_now();
    }
    server.ask(&["BGREWRITEAOF"]);
    server.wait_for("aof_last_bgrewrite_status", "ok");
    let expected = digest(&server);
    server.kill();
    let server = Server::start(folder, &options);
    assert_eq!(digest(&server), expected);
}

/// A list whose only element is moved onto itself is the same list: its expiry comes back too.
#[test]
fn a_list_that_is_turned_keeps_its_expiry() {
    let folder = Folder::new();
    let options = ["--appendonly", "yes", "--save", ""];
    let server = Server::start(&folder, &options);
    let turns: [&[&str]; 4] = [
        &["LMOVE", "list", "list", "LEFT", "RIGHT"],
        &["LMOVE", "list", "list", "RIGHT", "RIGHT"],
        &["RPOPLPUSH", "list", "list"],
        &["BLMOVE", "list", "list", "LEFT", "LEFT", "0"],
    ];
    for words in [&["RPUSH", "list", "a"][..], &["PEXPIREAT", "list", "4102444800000"]] {
        server.ask(words);
    }
    for words in turns {
        assert_eq!(server.ask(words), "a");
    }
    assert_eq!(server.ask(&["RPUSH", "list", "b", "c"]), "3");
    assert_eq!((server.ask(turns[0]), server.ask(turns[2])), ("a".into(), "a".into()));
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    server.kill();
    let server = Server::start(&folder, &options);
    assert_eq!(server.ask(&["PEXPIRETIME", "list"]), "4102444800000");
    assert_eq!(server.ask(&["LRANGE", "list", "0", "-1"]), "a b c");
}

/// What one command tells is more than may wait for the log: it is written all the same.
#[test]
fn one_command_may_tell_more_than_may_wait() {
    let folder = Folder::new();
    let options = ["--appendonly", "yes", "--save", "", "--enable-debug-command", "yes", "--threads", "2"];
    let server = Server::start(&folder, &options);
    let value = "v".repeat(50 << 20);
    let words = ["MSET", "a", &value, "b", &value, "c", &value];
    thread::scope(|scope| {
        let others = scope.spawn(|| {
            let mut connection = server.connect(Protocol::Resp2);
            (0..2000)
                .for_each(|number| drop(connection.exchange(&["SET", "n", &number.to_string()]).unwrap()));
        });
        assert_eq!(server.ask(&words), "OK");
        others.join().unwrap();
    });
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    assert_eq!(
        (server.info("aof_last_write_status"), server.info("aof_rewrites")),
        ("ok".into(), "0".into())
    );
    let expected = digest(&server);
    server.kill();
    let server = Server::start(&folder, &options);
    assert_eq!(digest(&server), expected);
}

/// Collections that are saved by piece, changed meanwhile: what is loaded is what there was, from the log's snapshot
/// with the log, and from a snapshot by itself.
#[test]
fn large_collections_come_back_that_change_while_they_are_saved() {
    const PIECE: usize = 2000;
    let folder = Folder::new();
    let debug = ["--enable-debug-command", "yes", "--save", "", "--threads", "2"];
    let options = [&debug[..], &["--appendonly", "yes"]].concat();
    let server = Server::start(&folder, &options);
    let mut connection = server.connect(Protocol::Resp2);
    let mut run = |words: &[&str]| {
        let reply = show(connection.exchange(words).unwrap());
        assert!(!reply.starts_with("ERR") && !reply.starts_with("WRONGTYPE"), "{words:?}: {reply}");
    };
    run(&["XGROUP", "CREATE", "stream", "g", "0", "MKSTREAM"]);
    for piece in 0..20 {
        let numbers: Vec<String> = (piece * PIECE..(piece + 1) * PIECE).map(|n| n.to_string()).collect();
        let words = |command: &str, key: &str, with_score: bool| {
            let mut words = vec![command.to_owned(), key.to_owned()];
            for number in &numbers {
                words.extend(with_score.then(|| number.clone()));
                words.push(format!("member:{number}"));
                words.extend((command == "HSET").then(|| format!("value:{number}")));
            }
            words
        };
        for (command, key, with_score) in [
            ("RPUSH", "list", false),
            ("HSET", "hash", false),
            ("SADD", "set", false),
            ("ZADD", "zset", true),
        ] {
            let words = words(command, key, with_score);
            run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        }
        for number in numbers.iter().step_by(10) {
            run(&["XADD", "stream", &format!("{}-1", 1 + number.parse::<u64>().unwrap()), "field", "value"]);
        }
        run(&["XREADGROUP", "GROUP", "g", "c", "COUNT", "100", "STREAMS", "stream", ">"]);
    }
    run(&["SETRANGE", "text", "3000000", "x"]);
    for snapshot in ["BGREWRITEAOF", "BGSAVE"] {
        run(&[snapshot]);
        for number in 0..200_u32 {
            let member = format!("member:{}", number * 190);
            let id = format!("{}-1", 1 + number * 100);
            run(&["LPOP", "list"]);
            run(&["HSET", "hash", &member, snapshot]);
            run(&["SREM", "set", &member]);
            run(&["ZADD", "zset", &number.to_string(), &member]);
            run(&["XDEL", "stream", &id]);
            run(&["XACK", "stream", "g", &id]);
            run(&["SETRANGE", "text", &(number * 10_000).to_string(), snapshot]);
        }
        server.wait_for("aof_rewrite_in_progress", "0");
        server.wait_for("rdb_bgsave_in_progress", "0");
    }
    assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
    run(&["WAITAOF", "1", "0", "0"]);
    let expected = digest(&server);
    server.kill();
    let server = Server::start(&folder, &options);
    assert_eq!(digest(&server), expected, "from the log");
    assert_eq!(server.ask(&["SAVE"]), "OK");
    server.kill();
    let server = Server::start(&folder, &debug);
    assert_eq!(digest(&server), expected, "from the snapshot");
}

/// Functions and users are kept where there is not one key: by a log too that begins with a snapshot of them.
#[test]
fn a_log_begins_with_functions_and_users_alone() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--save", ""]);
    let code = "#!lua name=lib\nredis.register_function('one', function() return 1 end)";
    assert_eq!(server.ask(&["FUNCTION", "LOAD", code]), "lib");
    assert_eq!(server.ask(&["ACL", "SETUSER", "bob", "on", "nopass", "+@all", "~*"]), "OK");
    assert_eq!(server.ask(&["SAVE"]), "OK");
    server.kill();
    for start in ["from the snapshot", "from the log"] {
        let server = Server::start(&folder, &["--save", "", "--appendonly", "yes"]);
        assert_eq!(server.ask(&["FCALL", "one", "0"]), "1", "{start}");
        assert_eq!(server.ask(&["ACL", "USERS"]), "bob default", "{start}");
        server.kill();
    }
}

/// Whoever removes the log's folder has no log; the server begins another one, with all that it has.
#[test]
fn a_folder_that_is_gone_is_made_anew() {
    let folder = Folder::new();
    let server = Server::start(&folder, &["--appendonly", "yes"]);
    assert_eq!(server.ask(&["SET", "before", "1"]), "OK");
    std::fs::remove_dir_all(folder.0.join("appendonlydir")).unwrap();
    server.ask(&["BGREWRITEAOF"]);
    while server.info("aof_rewrites") != "1" {
        // What is written finds that it is gone.
        server.ask(&["SET", "meanwhile", "1"]);
    }
    assert_eq!(server.ask(&["SET", "behind", "1"]), "OK");
    assert_eq!(server.ask(&["WAITAOF", "1", "0", "0"]), "1 0");
    server.kill();
    let server = Server::start(&folder, &["--appendonly", "yes"]);
    assert_eq!(server.ask(&["EXISTS", "before", "behind"]), "2");
}

/// With `always` the first write behind it is kept, too: its reply waits.
#[test]
fn what_goes_on_behind_a_log_that_is_begun_anew_is_kept() {
    let (folder, options) = (Folder::new(), ["--appendonly", "yes", "--appendfsync", "always"]);
    let mut server = Server::start(&folder, &options);
    for round in 1..=3 {
        std::fs::remove_dir_all(folder.0.join("appendonlydir")).unwrap();
        server.ask(&["BGREWRITEAOF"]);
        server.wait_for("aof_rewrites", "1");
        assert_eq!(server.ask(&["SET", &format!("behind:{round}"), "1"]), "OK");
        server.kill();
        server = Server::start(&folder, &options);
        assert_eq!(server.ask(&["DBSIZE"]), round.to_string());
    }
}

/// The same where nobody asks for anything: it is seen within a second, and not only when the next file is made.
#[test]
fn a_log_that_somebody_removes_is_begun_anew_by_itself() {
    for whole in [true, false] {
        let folder = Folder::new();
        let options = ["--appendonly", "yes", "--appendfsync", "always"];
        let server = Server::start(&folder, &options);
        assert_eq!(server.ask(&["SET", "before", "1"]), "OK");
        let place = folder.0.join("appendonlydir");
        if whole {
            std::fs::remove_dir_all(&place).unwrap();
        } else {
            let files = std::fs::read_dir(&place).unwrap().map(|file| file.unwrap().path());
            files.filter(|file| file.extension().is_some_and(|end| end == "log")).for_each(|file| {
                std::fs::remove_file(file).unwrap();
            });
        }
        while server.info("aof_rewrites") != "1" {
            std::thread::yield_now();
        }
        assert_eq!(server.ask(&["SET", "behind", "1"]), "OK");
        server.kill();
        let server = Server::start(&folder, &options);
        assert_eq!(server.ask(&["EXISTS", "before", "behind"]), "2", "whole folder: {whole}");
    }
}

/// With fewer databases than there were a start says so, wherever one of those is named.
#[test]
fn a_log_of_more_databases_says_how_many_it_wants() {
    for words in [&["SWAPDB", "0", "9"][..], &["MOVE", "key", "9"], &["COPY", "key", "key", "DB", "9"]] {
        let folder = Folder::new();
        let server = Server::start(&folder, &["--appendonly", "yes"]);
        server.ask(&["SET", "key", "v"]);
        server.ask(words);
        server.stop(&["SHUTDOWN"]);
        let said = refused(&folder, &["--appendonly", "yes", "--databases", "4"]);
        assert!(said.contains("raise 'databases' to what it was"), "{words:?}: {said}");
    }
}

/// What `weft serve --import` begins with: an append-only file with scripts, transactions and databases, once; what was
/// kept wins at later starts.
#[test]
fn a_server_begins_with_the_data_of_another() {
    let folder = Folder::new();
    let script = "redis.call('SET', KEYS[1], ARGV[1]) redis.call('INCR', 'counted') return 1";
    let commands: &[&[&str]] = &[
        &["SELECT", "3"],
        &["SET", "in three", "1"],
        &["SELECT", "0"],
        &["EVAL", script, "1", "by script", "v"],
        &["MULTI"],
        &["SET", "one", "1"],
        &["RPUSH", "list", "a", "b"],
        &["EXEC"],
        &["MULTI"],
        &["SET", "without an end", "1"],
    ];
    let mut bytes = Vec::new();
    for words in commands {
        bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        words
            .iter()
            .for_each(|word| bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes()));
    }
    let file = folder.file("other.aof", &bytes);
    let options = ["--appendonly", "yes", "--requirepass", "", "--import", &file];
    let server = Server::start(&folder, &options);
    for (key, value) in [("by script", "v"), ("counted", "1"), ("one", "1"), ("without an end", "Null")] {
        assert_eq!(server.ask(&["GET", key]), value, "{key}");
    }
    assert_eq!(server.ask(&["LRANGE", "list", "0", "-1"]), "a b");
    // What was imported is kept before anybody is answered.
    server.kill();
    std::fs::write(&file, b"*1\r\n$8\r\nFLUSHALL\r\n").unwrap();
    let server = Server::start(&folder, &options);
    assert_eq!((server.ask(&["DBSIZE"]), server.ask(&["GET", "counted"])), ("4".into(), "1".into()));
    server.kill();
    let folder = Folder::new();
    let file = folder.file("other.aof", b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*2\r\n$6\r\nNOSUCH\r\n$1\r\nk\r\n");
    let text = refused(&folder, &["--import", &file]);
    assert!(text.contains("there is no command 'NOSUCH k'"), "{text}");
}
