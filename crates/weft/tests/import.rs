//! `weft import` and `weft export`: data of real servers come in and go out, and are the same.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use weft_client::{Connection, Protocol, Reply};

use common::kept;
use common::servers::Server;
use common::{Folder, run, stderr, weft};

/// A time far away, so that nothing expires while the test runs.
const LATER_MS: &str = "4102444800123";

fn ask(connection: &mut Connection, line: &str) -> Reply {
    let reply = connection.exchange(&line.split(' ').collect::<Vec<_>>()).unwrap();
    assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
    reply
}

/// Keys of every type in small and large forms, in two databases.
fn fill(connection: &mut Connection) {
    for line in [
        "SET text hello",
        "SET number 12345",
        "SET long 9223372036854775807",
        "SET negative -77",
        "SET float 3.25",
        "RPUSH list a b 3 -400 70000",
        "SADD ints 1 2 3 70000 -9",
        "SADD words one two three",
        "HSET hash f v g 17",
        "ZADD zset 1 a 2.5 b -inf c +inf d 3 e",
        "PFADD hll a b c d",
        "SETBIT bits 77 1",
        "XADD stream 1-1 f v",
        "XADD stream 1-2 f w",
        "XADD stream 5-0 other x more y",
        "XADD stream 6-0 f gone",
        "XDEL stream 6-0",
        "XGROUP CREATE stream group 0",
        "XGROUP CREATE stream second 1-2 ENTRIESREAD 2",
        "XREADGROUP GROUP group alice COUNT 2 STREAMS stream >",
        "XREADGROUP GROUP group bob COUNT 1 STREAMS stream >",
        "XACK stream group 1-1",
        "SELECT 3",
        "SET other database",
        "SET with:time v",
    ] {
        ask(connection, line);
    }
    ask(connection, &format!("PEXPIREAT with:time {LATER_MS}"));
    let big = "x".repeat(100_000);
    ask(connection, &format!("SET big {big}"));
    ask(connection, "SELECT 0");
    for at in 0..700 {
        ask(connection, &format!("RPUSH long:list element:{at}"));
        ask(connection, &format!("SADD long:set member:{at}"));
        ask(connection, &format!("HSET long:hash field:{at} value:{at}"));
        ask(connection, &format!("ZADD long:zset {at}.5 member:{at}"));
        ask(connection, &format!("XADD long:stream 7-{at} n {at}", at = at + 1));
    }
    let value = connection.exchange(&[&b"SET"[..], b"binary\x00\r\n\xff", b"\x00\xfe\r\n"]).unwrap();
    assert_eq!(value, Reply::Simple(b"OK".to_vec()));
}

/// A library of functions.
const LIBRARY: &str = "#!lua name=lib\nredis.register_function('two', function() return 2 end)";

/// What `FCALL two 0` gives is what the library says.
fn calls(connection: &mut Connection) {
    assert_eq!(exchange(connection, &[b"FCALL", b"two", b"0"]), Reply::Int(2));
}

/// All that can be seen of the keys.
fn seen(connection: &mut Connection) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for db in 0..16 {
        ask(connection, &format!("SELECT {db}"));
        let Reply::Array(keys) = ask(connection, "KEYS *") else { panic!("KEYS") };
        for key in keys {
            let Reply::Bulk(key) = key else { panic!("a key") };
            let mut told = String::new();
            let Reply::Simple(kind) = exchange(connection, &[b"TYPE", &key]) else { panic!("TYPE") };
            let reads: &[&[&[u8]]] = match kind.as_slice() {
                b"string" => &[&[b"GET", &key]],
                b"list" => &[&[b"LRANGE", &key, b"0", b"-1"]],
                b"set" => &[&[b"SMEMBERS", &key]],
                b"hash" => &[&[b"HGETALL", &key]],
                b"zset" => &[&[b"ZRANGE", &key, b"0", b"-1", b"WITHSCORES"]],
                b"stream" => &[&[b"XRANGE", &key, b"-", b"+"], &[b"XINFO", b"GROUPS", &key]],
                other => panic!("{}", String::from_utf8_lossy(other)),
            };
            for read in reads {
                told += &shown(exchange(connection, read), matches!(kind.as_slice(), b"set" | b"hash"));
            }
            if kind == b"stream" && key == b"stream" {
                let pending = exchange(connection, &[b"XPENDING", &key, b"group"]);
                told += &shown(pending, false);
            }
            told += &shown(exchange(connection, &[b"PEXPIRETIME", &key]), false);
            all.insert(format!("{db} {}", String::from_utf8_lossy(&key)), told);
        }
    }
    all
}

fn exchange(connection: &mut Connection, words: &[&[u8]]) -> Reply {
    let reply = connection.exchange(words).unwrap();
    assert!(!matches!(reply, Reply::Error(_)), "{words:?}: {reply:?}");
    reply
}

/// A reply in words; of what has no order the parts are sorted, pairs kept together.
fn shown(reply: Reply, unordered: bool) -> String {
    let Reply::Array(mut parts) = reply else { return format!("{reply:?} ") };
    if unordered {
        // Fields and their values are sorted as pairs; members have none, and are sorted either way.
        let is_hash = parts
            .iter()
            .any(|part| matches!(part, Reply::Bulk(text) if text.starts_with(b"field:") || text == b"f"));
        let size = if is_hash { 2 } else { 1 };
        let mut chunks: Vec<String> = parts.chunks(size).map(|chunk| format!("{chunk:?}")).collect();
        chunks.sort();
        return chunks.concat();
    }
    parts.iter_mut().fold(String::new(), |told, part| format!("{told}{part:?} "))
}

fn tool(server: &Server, words: &[&str]) -> Output {
    Command::output(weft().args(words).args(["-s", &server.socket])).unwrap()
}

fn good(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", stderr(output));
    text
}

#[test]
fn files_of_real_servers_come_in() {
    for source in Server::others(&["--dbfilename", "dump.rdb"]) {
        let mut connection = source.connect(Protocol::Resp2);
        fill(&mut connection);
        exchange(&mut connection, &[b"FUNCTION", b"LOAD", LIBRARY.as_bytes()]);
        let expected = seen(&mut connection);
        assert_eq!(expected.len(), 22, "keys");
        ask(&mut connection, "SAVE");
        let target = Server::weft(&[]);
        let path = source.folder.path("dump.rdb");
        let said = good(&tool(&target, &["import", &path]));
        assert!(said.starts_with("22 keys, 1 libraries of functions, written by "), "{said}");
        assert!(said.contains("errors: 0"), "{said}");
        assert_eq!(seen(&mut target.connect(Protocol::Resp2)), expected);
        calls(&mut target.connect(Protocol::Resp2));

        // A second time everything is there.
        let again = tool(&target, &["import", &path]);
        assert_eq!(again.status.code(), Some(1));
        assert!(stderr(&again).contains("BUSYKEY"), "{}", stderr(&again));
        assert!(stderr(&again).contains("RESTORE \""), "errors name their keys: {}", stderr(&again));
        good(&tool(&target, &["import", "--replace", &path]));
        assert_eq!(seen(&mut target.connect(Protocol::Resp2)), expected);
    }
}

/// A server that loads out.rdb when it is told to.
const OUT: [&str; 6] =
    ["--dbfilename", "out.rdb", "--enable-debug-command", "yes", "--enable-protected-configs", "yes"];

#[test]
fn what_goes_out_is_loaded_by_real_servers() {
    let source = Server::weft(&[]);
    let mut connection = source.connect(Protocol::Resp2);
    fill(&mut connection);
    exchange(&mut connection, &[b"FUNCTION", b"LOAD", LIBRARY.as_bytes()]);
    let expected = seen(&mut connection);
    let folder = Folder::new();
    let path = folder.path("out.rdb");
    let said = good(&tool(&source, &["export", "rdb", &path]));
    assert!(said.starts_with("22 keys in ") && said.trim_end().ends_with("RDB version 10"), "{said}");
    let folder_name = folder.0.to_str().unwrap();
    for target in Server::others(&OUT) {
        let mut connection = target.connect(Protocol::Resp2);
        // A server of its own folder: it is told where the file is, and reads it.
        ask(&mut connection, &format!("CONFIG SET dir {folder_name}"));
        ask(&mut connection, "DEBUG RELOAD NOSAVE NOFLUSH");
        assert_eq!(seen(&mut connection), expected);
        calls(&mut connection);
    }
    // And by Weft itself.
    let again = Server::weft(&[]);
    good(&tool(&again, &["import", &path]));
    assert_eq!(seen(&mut again.connect(Protocol::Resp2)), expected);
}

#[test]
fn fields_that_expire_make_it_valkeys_version() {
    let source = Server::weft(&[]);
    let mut connection = source.connect(Protocol::Resp2);
    ask(&mut connection, "HSET hash a 1 b 2");
    ask(&mut connection, &format!("HPEXPIREAT hash {LATER_MS} FIELDS 1 a"));
    let folder = Folder::new();
    let path = folder.path("out.rdb");
    let said = good(&tool(&source, &["export", "rdb", &path]));
    assert!(said.trim_end().ends_with("RDB version 80"), "{said}");
    assert!(fs::read(&path).unwrap().starts_with(b"VALKEY080"));
    let again = Server::weft(&[]);
    good(&tool(&again, &["import", &path]));
    let expected = Reply::Array(vec![Reply::Int(LATER_MS.parse().unwrap()), Reply::Int(-1)]);
    let times = "HPEXPIRETIME hash FIELDS 2 a b";
    assert_eq!(ask(&mut again.connect(Protocol::Resp2), times), expected);
    // Those that know times of fields load it, and what they save comes in.
    for target in Server::others(&OUT) {
        let mut connection = target.connect(Protocol::Resp2);
        if matches!(connection.exchange(&["HPEXPIRETIME", "k", "FIELDS", "1", "f"]), Ok(Reply::Error(_))) {
            continue;
        }
        ask(&mut connection, &format!("CONFIG SET dir {}", folder.0.display()));
        ask(&mut connection, "DEBUG RELOAD NOSAVE NOFLUSH");
        assert_eq!(ask(&mut connection, times), expected);
        ask(&mut connection, "SAVE");
        assert!(fs::read(&path).unwrap().starts_with(b"VALKEY080"));
        let back = Server::weft(&[]);
        good(&tool(&back, &["import", &path]));
        assert_eq!(ask(&mut back.connect(Protocol::Resp2), times), expected);
        println!("a server of others has loaded it");
    }
}

/// A server that begins with a file stops at values of modules, and leaves them out where that is asked for.
#[test]
fn a_server_begins_without_values_of_modules_if_it_is_told_to() {
    let folder = Folder::new();
    let mut module = SMALL[..SMALL.len() - 9].to_vec();
    module.extend_from_slice(b"\x07\x01m\x81abcdefgh\x02\x05\x00\xff\0\0\0\0\0\0\0\0");
    let path = folder.file("modules.rdb", &module);
    let said = kept::refused(&folder, &["--save", "", "--import", &path]);
    assert!(said.contains("the module type YWJjZGVmZ has the key \"m\""), "{said}");
    let last = said.lines().rfind(|line| line.contains("the module type")).unwrap_or_default();
    assert_eq!(last.matches(&path).count(), 1, "it names its file once: {last}");
    let server = kept::Server::start(&folder, &["--save", "", "--import", &path, "--skip-modules"]);
    assert_eq!((server.ask(&["GET", "k"]), server.ask(&["DBSIZE"])), ("v".into(), "1".into()));
}

#[test]
fn append_only_files_come_in() {
    for preamble in ["yes", "no"] {
        let options = ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble, "--appendfsync", "no"];
        for source in Server::others(&options) {
            let mut connection = source.connect(Protocol::Resp2);
            fill(&mut connection);
            ask(&mut connection, "BGREWRITEAOF");
            loop {
                let Reply::Bulk(info) = ask(&mut connection, "INFO persistence") else { panic!("INFO") };
                let info = String::from_utf8_lossy(&info).into_owned();
                if info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0") {
                    break;
                }
            }
            ask(&mut connection, "SELECT 0");
            ask(&mut connection, "SET after:rewrite yes");
            ask(&mut connection, "MULTI");
            ask(&mut connection, "INCR number");
            ask(&mut connection, "LPUSH list first");
            ask(&mut connection, "EXEC");
            let expected = seen(&mut connection);
            // Nothing of it stays in the server's buffer when it ends in good order.
            drop(connection.exchange(&["SHUTDOWN"]));
            let folder = source.folder.path("appendonlydir");
            let target = Server::weft(&[]);
            let said = good(&tool(&target, &["import", &folder]));
            assert!(said.contains("errors: 0"), "{said}");
            assert_eq!(seen(&mut target.connect(Protocol::Resp2)), expected, "preamble {preamble}");
        }
    }
}

/// A small file, made by hand: version 11, one key.
const SMALL: &[u8] = b"REDIS0011\xfa\x09redis-ver\x057.2.4\xfe\x00\x00\x01k\x01v\xff\0\0\0\0\0\0\0\0";

/// A value whose length is right and whose inside is not: a list whose one piece is no listpack.
#[test]
fn a_value_that_nobody_takes_is_named_with_its_place() {
    let folder = Folder::new();
    let broken =
        [&SMALL[..SMALL.len() - 9], b"\x12\x04l\x00\x1b[\x01\x02\x07\xff\xfe\x1b[2J\0\xff\0\0\0\0\0\0\0\0"]
            .concat();
    let path = folder.file("broken.rdb", &broken);
    let place = format!("{path}: byte {}: ", SMALL.len() - 9);
    let dry = run(&["import", "--dry-run", &path], b"");
    assert_eq!(dry.status.code(), Some(1));
    let found = String::from_utf8_lossy(&dry.stdout).into_owned();
    assert!(found.starts_with("2 keys, 1 of them with a value that cannot be read, written by"), "{found}");
    let named = format!("weft import: {place}the value of the key \"l\\x00\\x1b[\" cannot be read\n");
    assert_eq!(stderr(&dry), named);
    let target = Server::weft(&[]);
    let sent = tool(&target, &["import", &path]);
    assert_eq!(sent.status.code(), Some(1));
    let named = format!("{place}RESTORE \"l\\x00\\x1b[\": ERR Bad data format\n");
    assert_eq!(stderr(&sent), named, "once, and nothing that moves a cursor");
    let said = kept::refused(&folder, &["--save", "", "--import", &path]);
    let named = format!("weft serve: {place}'RESTORE l\\x00\\x1b[ …' answers ERR Bad data format");
    assert!(said.contains(&named), "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[test]
fn what_is_broken_is_told_with_its_place() {
    let folder = Folder::new();
    let path = folder.path("small.rdb");
    let dry = |bytes: &[u8], words: &[&str]| {
        fs::write(&path, bytes).unwrap();
        run(&[&["import", "--dry-run"], words, &[&path]].concat(), b"")
    };
    let whole = dry(SMALL, &[]);
    assert_eq!(good(&whole), "1 keys, written by redis 7.2.4\n");
    for cut in 1..SMALL.len() {
        let output = dry(&SMALL[..cut], &[]);
        // A few letters are not seen to be an RDB.
        let expected = if cut < 5 { "expected '*'" } else { &format!("byte {cut}: the RDB ends here") };
        assert!(!output.status.success() && stderr(&output).contains(expected), "{cut}: {}", stderr(&output));
    }
    let mut module = SMALL[..SMALL.len() - 9].to_vec();
    module.extend_from_slice(b"\x07\x01m\x81abcdefgh\x02\x05\x00\xff\0\0\0\0\0\0\0\0");
    let output = dry(&module, &[]);
    assert!(stderr(&output).contains("the module type YWJjZGVmZ has the key \"m\""), "{}", stderr(&output));
    let skipped = good(&dry(&module, &["--skip-modules"]));
    assert!(skipped.contains("left out: 1 values of the module type YWJjZGVmZ"), "{skipped}");
    // The end where a value must stand.
    let output = dry(&[&SMALL[..SMALL.len() - 11], &SMALL[SMALL.len() - 9..]].concat(), &[]);
    let said = stderr(&output);
    assert!(said.contains("the RDB ends here, by its mark 0xff, where a string or a length must"), "{said}");
    let torn = b"*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n*2\r\n$4\r\nIN";
    let said = good(&dry(torn, &[]));
    assert!(said.contains("the last 10 bytes") && said.contains("the last transaction"), "{said}");
}
