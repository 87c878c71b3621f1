//! `weft bench --workload` from outside: the files of bench/workloads, with fewer keys, over each wire, and what is
//! said of a reply, a file and a server that are not as they must be.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::Path;

use common::servers::Server;
use common::{Folder, good, run, stderr};
use serde_json::Value;

/// A workload of the repository with few keys, so that a server is filled in no time.
fn few(folder: &Folder, path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = ["1_000_000", "500_000", "100_000", "5_000"]
        .iter()
        .fold(text, |text, many| text.replace(many, "2_000"));
    // A clearing of sequential keys needs as many as are on their way, twice.
    let text = text.replace("10_000", "2_000").replace("[1, 100, 1000]", "[1, 30]");
    // Large still for one read from a socket; as many of the real size are 800 MB a wire.
    let text = text.replace("\"67485\"", "\"17000\"");
    folder.file(&path.file_name().unwrap().to_string_lossy(), text.as_bytes())
}

fn files() -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/workloads");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_workload_is_answered_as_it_says_over_each_wire() {
    let folder = Folder::new();
    let server = Server::weft(&[]);
    for path in files() {
        let file = few(&folder, &path);
        for wire in ["-2", "-3", "-4"] {
            for pipeline in ["1", "16"] {
                let args = ["bench", "-s", &server.socket, wire, "--workload", &file, "-P", pipeline];
                let output = run(&[&args[..], &["-n", "4000", "--json"]].concat(), b"");
                let place = format!("{} {wire} -P {pipeline}", path.display());
                assert!(output.status.success(), "{place}: {}", stderr(&output));
                let value: Value = serde_json::from_slice(&output.stdout).unwrap();
                for test in value["tests"].as_array().unwrap() {
                    let replies = test["replies"].as_u64().unwrap();
                    assert!(replies >= 4000 && test["errors"] == 0, "{place}: {test}");
                }
            }
        }
    }
    // What is compared is compared: there are no keys of another workload under these names.
    let cache = few(&folder, &files()[0]);
    let args = ["bench", "-s", &server.socket, "--workload", &cache, "-n", "2000", "--json"];
    let value: Value = serde_json::from_slice(&good(&args, b"")).unwrap();
    assert!(value["tests"][0]["values_checked"].as_u64().unwrap() > 1000, "{value}");
}

#[test]
fn replies_that_are_not_what_they_must_be_are_told() {
    let folder = Folder::new();
    let server = Server::weft(&[]);
    let head = "title = \"t\"\nsource = \"s\"\nkeys = 10\nvalues = \"20\"\n";
    for (name, rest, expected) in [
        (
            "kind",
            "[[request]]\nrun = \"INCR n:__rand_int__\"\nreply = \"word\"\n",
            "INCR n:__rand_int__ was answered by an integer",
        ),
        (
            "absent",
            "[[request]]\nrun = \"GET none:__rand_int__\"\nreply = \"present\"\n",
            "GET none:__rand_int__ was answered by null",
        ),
        (
            "value",
            "[[prepare]]\ntimes = 10\nrun = \"HSET h:__rand_int__ f other\"\n[[request]]\nrun = \"HGETALL \
             h:__rand_int__\"\nreply = \"pairs\"\n",
            "held 5 bytes that were not stored for it",
        ),
        (
            "subscribers",
            "[subscribers]\nclients = 2\nrun = \"SUBSCRIBE other\"\n[[request]]\nrun = \"PUBLISH x __data__\"\nreply = \"integer\"\n",
            "requests without a reply",
        ),
    ] {
        let file = folder.file(&format!("{name}.toml"), format!("{head}{rest}").as_bytes());
        for wire in ["-3", "-4"] {
            // Subscribers that hear nothing are waited for.
            let args =
                ["bench", "-s", &server.socket, wire, "--workload", &file, "-n", "50", "--timeout", "1"];
            let output = run(&args, b"");
            let said = stderr(&output);
            assert!(!output.status.success() && said.contains(expected), "{name} {wire}: {said}");
        }
    }
}

#[test]
fn a_wrong_file_is_told_by_its_line_and_a_server_by_its_settings() {
    let folder = Folder::new();
    let server = Server::weft(&[]);
    let file = folder.file("a.toml", b"title = \"t\"\nsource = \"s\"\nkeys = \"ten\"\n");
    let output = run(&["bench", "-s", &server.socket, "--workload", &file], b"");
    let said = stderr(&output);
    let expected = "a.toml: line 3: keys: a number from 0 to 1000000000000 is expected, not a text";
    assert!(!output.status.success() && said.contains(expected), "{said}");
    let text = "title = \"t\"\nsource = \"s\"\n[server]\nmaxmemory = \"7mb\"\n[[request]]\nrun = \"PING\"\nreply = \"word\"\n";
    let file = folder.file("b.toml", text.as_bytes());
    let output = run(&["bench", "-s", &server.socket, "--workload", &file, "-n", "100", "-q"], b"");
    assert!(
        output.status.success() && stderr(&output).contains("t: maxmemory is 0 there, and 7mb in the file")
    );
    good(&["cli", "-s", &server.socket, "config", "set", "maxmemory", "7mb"], b"");
    let output = run(&["bench", "-s", &server.socket, "--workload", &file, "-n", "100", "-q"], b"");
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    for (flags, why) in [
        (&["-r", "5"][..], "cannot be used with"),
        (&["--http"], "take -2, -3 or -4"),
        (&["-t", "get"], "cannot be used with"),
    ] {
        let output = run(&[&["bench", "-s", &server.socket, "--workload", &file][..], flags].concat(), b"");
        assert!(!output.status.success() && stderr(&output).contains(why), "{flags:?}: {}", stderr(&output));
    }
}
