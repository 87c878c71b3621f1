//! `weft cli --rdb`, `--functions-rdb` and `--replica` with real servers, Redis and Valkey; and what Weft answers to
//! them. Without either server the tests say so and pass.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use common::cluster::{Node, binaries};
use common::servers::Server;
use common::{Folder, read, run, stderr, weft};

fn send(node: &Node, line: &str) {
    let output = run(&["cli", "-p", &node.port.to_string()], line.as_bytes());
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Starts a server from a copy and asks it.
fn served_again(binary: &std::path::PathBuf, copy: &str, line: &str) -> String {
    let options = format!("dbfilename copy.rdb\ndir {}\n", copy.trim_end_matches("/copy.rdb"));
    let again = Node::start(binary, &options);
    let output = run(&["cli", "-p", &again.port.to_string()], line.as_bytes());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_data_of_a_server_is_copied_and_can_be_served_again() {
    for binary in binaries() {
        for diskless in ["yes", "no"] {
            let folder = Folder::new();
            let node = Node::start(&binary, &format!("repl-diskless-sync {diskless}\n"));
            let big = "x".repeat(200_000);
            send(&node, &format!("SET greeting hello\nSET big {big}\nRPUSH l a b c\n"));
            let copy = folder.path("copy.rdb");
            let output = run(&["cli", "-p", &node.port.to_string(), "--rdb", &copy], b"");
            let said = stderr(&output);
            assert!(output.status.success() && said.contains("Transfer finished with success"), "{said}");
            assert!(
                said.starts_with("sending REPLCONF capa eof\nsending REPLCONF rdb-only 1\nSYNC sent"),
                "{said}"
            );
            assert_eq!(
                served_again(&binary, &copy, "GET greeting\nSTRLEN big\nLLEN l\n"),
                "hello\n200000\n3\n"
            );
            // To the standard output, and nothing else.
            let output = run(&["cli", "-p", &node.port.to_string(), "--rdb", "-"], b"");
            assert!(output.status.success() && output.stdout.len() > 100, "{}", stderr(&output));
            assert_eq!(output.stdout[..9], read(&copy)[..9]);
        }
    }
}

#[test]
fn the_functions_of_a_server_are_copied_alone() {
    for binary in binaries() {
        let folder = Folder::new();
        let node = Node::start(&binary, "");
        send(
            &node,
            "SET k v\nFUNCTION LOAD \"#!lua name=lib\\nredis.register_function('f', function() return 7 end)\"\n",
        );
        let copy = folder.path("copy.rdb");
        let output = run(&["cli", "-p", &node.port.to_string(), "--functions-rdb", &copy], b"");
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(served_again(&binary, &copy, "DBSIZE\nFCALL f 0\n"), "0\n7\n");
    }
}

#[test]
fn what_a_server_tells_its_replicas_is_shown() {
    for binary in binaries() {
        for diskless in ["yes", "no"] {
            let node = Node::start(&binary, &format!("repl-diskless-sync {diskless}\n"));
            send(&node, "SET before 1\n");
            let mut child = weft()
                .args(["cli", "-p", &node.port.to_string(), "--replica"])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let said = BufReader::new(child.stderr.take().unwrap());
            let said: Vec<String> = said
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.contains("Logging commands"))
                .collect();
            assert!(said.iter().any(|line| line.starts_with("SYNC with master, discarding")), "{said:?}");
            send(&node, "SET after \"a \\\"b\\\"\"\nINCR n\n");
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
            let shown: Vec<String> =
                lines.by_ref().filter(|line| !line.eq_ignore_ascii_case("\"PING\"")).take(3).collect();
            // The replica is there before anything is changed, so that all of it is shown, and nothing else.
            assert_eq!(shown[0].to_uppercase(), "\"SELECT\",\"0\"");
            assert_eq!(shown[1..], [r#""SET","after","a \"b\"""#, r#""INCR","n""#]);
            // The end of the server is the end.
            drop(node);
            assert_eq!(lines.count(), 0);
            assert!(child.wait().unwrap().success());
        }
    }
}

#[test]
fn a_server_that_does_not_replicate_says_what_to_do_instead() {
    let server = Server::weft(&[]);
    let folder = Folder::new();
    let file = folder.file("x.rdb", b"yesterday");
    for flag in [&["--rdb", &file][..], &["--functions-rdb", &file], &["--replica"], &["-4", "--rdb", &file]]
    {
        let output = run(&[&["cli", "-s", &server.socket][..], flag].concat(), b"");
        assert_eq!(output.status.code(), Some(1), "{flag:?}");
        let said = stderr(&output);
        assert!(said.contains("does not replicate") && said.contains("weft export rdb FILE"), "{said}");
    }
    assert_eq!(read(&file), b"yesterday");
}
