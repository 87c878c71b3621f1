//! `weft convert` of append-only files that a real server has written: with every data type, as commands and behind a
//! snapshot, in one file and in several.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::servers::Server;
use common::{Folder, good, read, run, stderr};
use weft_client::Protocol;

/// The servers to try: those of the distribution, and what WEFT_TEST_SERVERS names, separated by colons.
fn servers() -> Vec<String> {
    let more = std::env::var("WEFT_TEST_SERVERS").unwrap_or_default();
    let names =
        ["redis-server", "valkey-server"].into_iter().chain(more.split(':').filter(|name| !name.is_empty()));
    let there = |name: &&str| Command::new(name).arg("--version").stdout(Stdio::null()).status().is_ok();
    let found: Vec<String> = names.filter(there).map(String::from).collect();
    if found.is_empty() {
        common::skipped::skipped("neither redis-server nor valkey-server is installed");
    }
    found
}

fn start(program: &str, preamble: &str) -> Server {
    let log = ["--save", "", "--appendonly", "yes", "--appendfsync", "no", "--aof-timestamp-enabled", "yes"];
    let more = ["--aof-use-rdb-preamble", preamble, "--enable-debug-command", "yes"];
    Server::of(program, &[&log[..], &more].concat())
}

/// Runs commands one after the other; what a server lacks it answers with an error.
fn fill(server: &Server, commands: &[Vec<Vec<u8>>]) {
    let mut connection = server.connect(Protocol::Resp2);
    for command in commands {
        connection.exchange(command).expect("the server answers");
    }
}

/// Rewrites the file and waits until that is done: INFO is asked until it says so.
fn rewrite(server: &Server) {
    let mut connection = server.connect(Protocol::Resp2);
    connection.command(&["BGREWRITEAOF"]).unwrap();
    let ended = "aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0";
    while !connection.query::<String>(&["INFO", "persistence"]).unwrap().contains(ended) {}
}

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Commands that leave a key of every type and encoding behind; a server that lacks one answers an error.
fn data() -> Vec<Vec<Vec<u8>>> {
    let mut commands: Vec<Vec<Vec<u8>>> = [
        "SET string value",
        "SET int 12345",
        "SET negative -7",
        "SET big 123456789012",
        "SET ttl v EX 100000",
        "PEXPIREAT ttl 33000000000000",
        "RPUSH list a b c 1 2 3",
        "SADD ints 1 2 3 70000",
        "SADD words a b c",
        "ZADD scores 1.5 a -inf b 3 c",
        "HSET hash f v g 1",
        "HSET expiring f v g w",
        "HEXPIRE expiring 100000 FIELDS 1 f",
        "PFADD pf a b c",
        "SETBIT bits 1000 1",
        "GEOADD geo 13.361389 38.115556 Palermo",
        "XADD stream 1-1 f v",
        "XADD stream 1-2 f v g w",
        "XGROUP CREATE stream group 0",
        "XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >",
        "XDEL stream 1-1",
        "SELECT 3",
        "SET other db",
        "SELECT 0",
    ]
    .map(words)
    .into();
    commands.push(vec![b"SET".to_vec(), b"compressible".to_vec(), vec![b'x'; 5000]]);
    commands.push(vec![
        b"SET".to_vec(),
        b"long".to_vec(),
        (0..70_000u32).map(|i| ((i * 7919) >> 3) as u8).collect(),
    ]);
    commands.push(vec![b"RPUSH".to_vec(), b"plain".to_vec(), vec![b'p'; 20_000], b"small".to_vec()]);
    let library = "#!lua name=lib\nredis.register_function('f', function(keys, args) return 1 end)";
    commands.push(vec![b"FUNCTION".to_vec(), b"LOAD".to_vec(), library.into()]);
    for i in 0..600 {
        commands.push(words(&format!("HSET large-hash field{i} {i}")));
        commands.push(words(&format!("SADD large-set member{i}")));
        commands.push(words(&format!("ZADD large-zset {i}.25 member{i}")));
        commands.push(words(&format!("RPUSH large-list {}", "e".repeat(i))));
    }
    commands
}

fn after() -> Vec<Vec<Vec<u8>>> {
    ["SET string again", "DEL list", "INCR int", "HDEL hash f"].map(words).into()
}

/// The commands of a file without its annotations; the data has no line that begins with `#TS:`.
fn commands_of(path: &Path) -> Vec<u8> {
    let bytes = read(path);
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| !line.starts_with(b"#TS:")).flatten().copied().collect()
}

/// The files of the folder whose names end so, in order.
fn parts(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(end))
        .collect();
    paths.sort();
    paths
}

fn round_trip(file: &str) -> (Vec<u8>, String) {
    let output = run(&["convert", "--to", "respb", "--stats", file], b"");
    assert!(output.status.success(), "{}", stderr(&output));
    (good(&["convert", "--to", "resp"], &output.stdout), stderr(&output))
}

#[test]
fn files_of_real_servers_come_back() {
    for program in servers() {
        for preamble in ["yes", "no"] {
            println!("{program}, preamble {preamble}");
            let mut server = start(&program, preamble);
            fill(&server, &data());
            rewrite(&server);
            fill(&server, &after());
            // A clean end writes what is left; the reply never comes.
            let _ = server.connect(Protocol::Resp2).exchange(&["SHUTDOWN", "NOSAVE"]);
            server.exit();

            let directory = server.folder.0.join("appendonlydir");
            let increments = parts(&directory, ".incr.aof");
            assert!(!increments.is_empty(), "a server of version 7 or later");
            let increment: Vec<u8> = increments.iter().flat_map(|path| commands_of(path)).collect();
            assert!(increment.windows(5).any(|window| window == b"again"));
            let rdb = parts(&directory, ".base.rdb");
            let base: Vec<u8> =
                parts(&directory, ".base.aof").iter().flat_map(|path| commands_of(path)).collect();
            assert_eq!((rdb.len(), base.is_empty()), if preamble == "yes" { (1, true) } else { (0, false) });

            let expected = [base, increment.clone()].concat();
            let (back, said) = round_trip(&directory.display().to_string());
            assert!(back == expected, "{program}, preamble {preamble}: other bytes came back");
            // The server writes one for each second in which it writes commands.
            let annotated = increments.iter().any(|path| read(path).windows(4).any(|bytes| bytes == b"#TS:"));
            assert_eq!(said.contains("annotations"), annotated || preamble == "no", "{said}");
            let manifest = parts(&directory, ".manifest").remove(0).display().to_string();
            assert!(round_trip(&manifest).0 == expected);
            if let [rdb] = &rdb[..] {
                in_one_file(&server.folder, &read(rdb), &increment, &said);
            }
        }
    }
}

/// The form of older servers: the commands behind the snapshot, in one file.
fn in_one_file(folder: &Folder, rdb: &[u8], increment: &[u8], said: &str) {
    let passed =
        said.lines().find(|line| line.contains("passed over an RDB")).expect("a message about the snapshot");
    let keys: usize = passed
        .split(" with ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next()?.replace(',', "").parse().ok())
        .unwrap();
    assert!((22..30).contains(&keys), "{passed}");
    assert!(passed.contains("and 1 function libraries"), "{passed}");
    let file = folder.file("appendonly.aof", &[rdb, increment].concat());
    let (back, again) = round_trip(&file);
    assert!(back == increment, "other bytes came back");
    assert!(again.contains(&format!("with {keys} keys")), "{again}");
    // The last of the snapshot's own bytes is missing: what follows is not where it should be.
    let cut = folder.file("cut.aof", &rdb[..rdb.len() - 1]);
    let output = run(&["convert", "--to", "respb", &cut], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains(&format!("byte {}: the RDB ends here", rdb.len() - 1)),
        "{}",
        stderr(&output)
    );
}
