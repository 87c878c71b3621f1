//! `weft log`, `weft inspect` and `weft convert` on what a server has kept.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Stdio;

use common::{Folder, good, run, stderr, weft};

/// A log of a server that has run these commands, one by one, and ended.
fn kept(folder: &Folder, commands: &str) -> String {
    let socket = folder.path("socket");
    let mut command = weft();
    command
        .args(["serve", "--port", "0", "--unixsocket", &socket, "--appendonly", "yes", "--dir"])
        .arg(&folder.0);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !std::path::Path::new(&socket).exists() {
        assert!(child.try_wait().unwrap().is_none(), "the server runs");
        std::thread::yield_now();
    }
    // It loads what there is.
    while !run(&["cli", "-s", &socket, "DBSIZE"], b"").stdout.first().is_some_and(u8::is_ascii_digit) {
        std::thread::yield_now();
    }
    good(&["cli", "-s", &socket], commands.as_bytes());
    run(&["cli", "-s", &socket, "SHUTDOWN"], b"");
    assert!(child.wait().unwrap().success());
    folder.path("appendonlydir")
}

const COMMANDS: &str = "SET key value\nMULTI\nSELECT 3\nRPUSH list a b\nSET other 1\nEXEC\nHSET hash f v\n";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_log_is_checked_dumped_inspected_and_converted() {
    let folder = Folder::new();
    let log = kept(&folder, COMMANDS);
    let checked = text(good(&["log", "check", &log], b""));
    assert!(checked.contains("appendonly.aof.1.log: ") && checked.ends_with("whole\n"), "{checked}");
    // As a start says it.
    assert!(text(good(&["log", "check", &log, "--databases", "4"], b"")).ends_with("whole\n"));
    let few = run(&["log", "check", &log, "--databases", "3"], b"");
    let said = text(few.stdout);
    assert!(!few.status.success() && said.contains("it wants 4 databases"), "{said}");
    assert!(said.ends_with("a server does not start with it\n"), "{said}");
    let dumped = text(good(&["log", "dump", &log], b""));
    for line in [
        "db 0: SET \"key\" \"value\"",
        "db 0: MULTI",
        "db 3: \"WEFT.NEW\" \"list\"",
        "db 3: RPUSH \"list\"",
        "db 3: HSET \"hash\"",
    ] {
        assert!(dumped.contains(line), "{line}: {dumped}");
    }
    let segment = format!("{log}/appendonly.aof.1.log");
    let inspected = text(good(&["inspect", &segment], b""));
    assert!(inspected.starts_with("block at 32: epoch "), "{inspected}");
    assert!(
        inspected.contains("SET  typed request, channel 0") && inspected.contains("at offset 56"),
        "{inspected}"
    );
    let resp = text(good(&["convert", "--to", "resp", &log], b""));
    assert!(resp.starts_with("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n"), "{resp}");
    assert!(resp.contains("*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"), "{resp}");
    assert_eq!(text(good(&["convert", "--to", "resp", &segment], b"")), resp);
    let refused = stderr(&run(&["convert", "--to", "respb", &log], b""));
    assert!(refused.contains("RESPB already"), "{refused}");
}

/// Long words are cut, unless they are wanted whole; a block to begin with is named by its place, as the dump says it.
#[test]
fn a_dump_shows_what_is_asked_for() {
    let folder = Folder::new();
    let long = "x".repeat(70_000);
    let log = kept(&folder, &format!("SET first {long}\nSET second 2\n"));
    let dumped = text(good(&["log", "dump", &log], b""));
    assert!(dumped.contains("\"first\"") && !dumped.contains(&long), "{dumped}");
    assert!(text(good(&["log", "dump", &log, "--whole"], b"")).contains(&long));
    let segment = format!("{log}/appendonly.aof.1.log");
    let dumped = text(good(&["log", "dump", &segment], b""));
    let places: Vec<&str> = dumped.lines().filter(|line| line.contains(": epoch ")).collect();
    let [.., last] = places[..] else { panic!("it has blocks: {dumped}") };
    let from = last.split(" at ").nth(1).unwrap().split(':').next().unwrap();
    let rest = text(good(&["log", "dump", &segment, "--from", from], b""));
    assert_eq!(rest.lines().filter(|line| line.contains(": epoch ")).collect::<Vec<_>>(), [last]);
    assert!(dumped.ends_with(&rest) && rest.len() < dumped.len(), "{rest}");
}

#[test]
fn a_damaged_log_is_named_and_repaired_into_another_folder() {
    let folder = Folder::new();
    let log = kept(&folder, COMMANDS);
    // In a segment of its own.
    kept(&folder, "SET behind 1\n");
    let segment = format!("{log}/appendonly.aof.1.log");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(5).position(|part| part == b"other").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, &bytes).unwrap();
    let checked = run(&["log", "check", &log], b"");
    let said = text(checked.stdout);
    assert!(
        !checked.status.success() && said.contains("is damaged at byte") && said.contains("are lost"),
        "{said}"
    );
    assert!(said.contains("weft log repair"), "{said}");
    let repaired = folder.path("repaired");
    let said = text(good(&["log", "repair", &log, "--to", &repaired], b""));
    assert!(said.contains("a new log of"), "{said}");
    assert_eq!(std::fs::read(&segment).unwrap(), bytes, "it stays as it is");
    let dumped = text(good(&["log", "dump", &repaired], b""));
    for word in ["list", "hash", "behind"] {
        assert!(!dumped.contains(word), "{word}: {dumped}");
    }
    let again = stderr(&run(&["log", "repair", &log, "--to", &repaired], b""));
    assert!(again.contains("is not empty"), "{again}");
    // What is behind the damage is taken only where that is asked for.
    let rest = folder.path("rest");
    let said = text(good(&["log", "repair", &log, "--to", &rest, "--keep-rest"], b""));
    assert!(said.contains("a new log of"), "{said}");
    let dumped = text(good(&["log", "dump", &rest], b""));
    assert!(dumped.contains("\"behind\"") && !dumped.contains("\"other\""), "{dumped}");
    assert_eq!(std::fs::read(&segment).unwrap(), bytes, "it stays as it is");
    // A server starts with it.
    let other = Folder::new();
    std::fs::rename(&repaired, other.0.join("appendonlydir")).unwrap();
    kept(&other, "SET more 1\n");
    assert!(text(good(&["log", "check", &other.path("appendonlydir")], b"")).ends_with("whole\n"));
}
