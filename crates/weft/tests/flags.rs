//! What all programs of `weft` do alike: a flag that there is not is refused, with what may have been meant, before
//! anything is sent to anybody; a reader who has seen enough ends them quietly.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::ErrorKind;
use std::net::TcpListener;

use std::process::Stdio;

use common::{run, stderr, weft};

/// A port on which somebody listens, and whether anybody came.
struct Door(TcpListener);

impl Door {
    fn new() -> Door {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Door(listener)
    }

    fn port(&self) -> String {
        self.0.local_addr().unwrap().port().to_string()
    }

    /// A connection that was made stands in the listener's queue, also when its maker has ended.
    fn nobody_came(&self) -> bool {
        self.0.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

#[test]
fn a_flag_that_does_not_exist_is_refused_before_anything_is_sent() {
    let door = Door::new();
    let port = door.port();
    for (line, said) in [
        ("cli -p PORT --scan --patern tmp:*", "'--pattern'"),
        ("cli --patern tmp:* -p PORT --scan", "'--pattern'"),
        ("cli --bogus -p PORT ping", "'--bogus'"),
        ("cli -p PORT --bogus ping", "'--bogus'"),
        ("cli -p PORT -9 ping", "'-9'"),
        ("cli -p PORT -n -1 ping", "databases are numbered from 0"),
        ("cli -p PORT -n all ping", "databases are numbered from 0"),
        ("cli -p PORT -h [x] ping", "an address of IPv6"),
        ("bench -p PORT --dbnum -1", "databases are numbered from 0"),
        ("cli -p PORT --jsn get k", "'--json'"),
        ("cli -p PORT --scan tmp --pattern tmp:*", "--scan takes no command"),
        ("cli -p PORT --pipe --bigkeys", "'--pipe'"),
        ("cli -p PORT --stat get", "--stat takes no command: what is 'get' for?\n"),
        ("cli -p PORT --pipe ping", "--pipe takes no command: what is 'ping' for? It reads"),
        ("bench -p PORT --bogus -t get", "'--bogus'"),
        ("bench --bogus -p PORT", "'--bogus'"),
        ("bench -p PORT --pipline 3", "unexpected argument '--pipline'"),
        ("bench -p PORT -t get set", "cannot be used with"),
    ] {
        let line = line.replace("PORT", &port);
        let words: Vec<&str> = line.split(' ').collect();
        let output = run(&words, b"");
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{line}: {}", stderr(&output));
        // Behind `--` it would be a command, and sent.
        assert!(!stderr(&output).contains("-- "), "{line}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{line}");
        assert!(door.nobody_came(), "{line}");
    }
}

#[test]
fn what_stands_behind_a_commands_first_word_is_the_commands() {
    let server = common::servers::Server::weft(&[]);
    let cli = |words: &[&str]| run(&[&["cli", "-s", &server.socket][..], words].concat(), b"");
    assert_eq!(cli(&["SET", "k", "--raw"]).stdout, b"OK\n");
    assert_eq!(cli(&["GET", "k"]).stdout, b"--raw\n");
    assert_eq!(cli(&["ECHO", "-1"]).stdout, b"-1\n");
    assert_eq!(cli(&["--", "ECHO", "--"]).stdout, b"--\n");
    // Values that begin with a hyphen are the flag's, as redis-cli has it.
    assert_eq!(cli(&["-d", "--", "MGET", "k", "k"]).stdout, b"--raw----raw\n");
    // Of a flag that is given twice the last counts, so that an alias can be overruled.
    assert_eq!(cli(&["-n", "5", "-n", "0", "GET", "k"]).stdout, b"--raw\n");
    let output = cli(&["--no-auth-warning", "-a", "-secret", "PING"]);
    assert!(stderr(&output).contains("AUTH"), "{}", stderr(&output));
}

#[test]
fn a_reader_who_has_seen_enough_ends_every_tool_quietly() {
    let server = common::servers::Server::weft(&[]);
    let socket = &server.socket;
    let bench = ["bench", "-s", socket, "-n", "100", "-t", "get,set"];
    for line in [
        [&bench[..], &["--json"]].concat(),
        [&bench[..], &["--csv"]].concat(),
        [&bench[..], &["-q"]].concat(),
        bench.to_vec(),
        vec!["cli", "-s", socket, "PING"],
        vec!["cli", "-s", socket, "--bigkeys"],
        vec!["cli", "-s", socket, "--stat", "-r", "2", "-i", "0.01"],
        vec!["inspect", "--hex", "0000000000056d796b6579"],
        vec!["serve", "--help"],
        vec!["workload", "--help"],
        vec!["--version"],
    ] {
        let mut child = weft()
            .args(&line)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Nobody reads from the start.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(stderr(&output), "", "{line:?}");
        assert_eq!(output.status.code(), Some(0), "{line:?}");
    }
}

#[test]
fn what_is_wrong_and_nobody_hears_ends_a_tool_quietly() {
    for line in [
        &["inspect", "--hex", "zz"][..],
        &["cli", "-e", "nosuch"],
        &["cli", "-p", "1", "ping"],
        &["cli", "--cluster", "check", "127.0.0.1:1"],
        &["bench", "-p", "1"],
        &["man", "nosuch"],
        &["nosuch"],
        &["convert", "/nonexistent"],
    ] {
        // Both streams are one pipe, as in `2>&1 | head`, whose reader is gone.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = weft();
        command.args(line).stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let status = command.spawn().unwrap().wait().unwrap();
        // Something was wrong, and is not said: that it was a panic would be 101.
        assert!(matches!(status.code(), Some(1 | 2)), "{line:?}: {status}");
    }
}

#[test]
fn the_program_says_what_it_is() {
    let text = |words: &[&str]| {
        let output = run(words, b"");
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let version = format!("weft {}\n", env!("CARGO_PKG_VERSION"));
    for words in ["version", "--version", "-V"] {
        assert_eq!(text(&[words]), version);
    }
    for command in [
        "bench",
        "cli",
        "completions",
        "convert",
        "export",
        "gateway",
        "import",
        "inspect",
        "log",
        "man",
        "peers",
        "program",
        "script",
        "serve",
        "token",
        "wire",
        "workload",
    ] {
        assert_eq!(text(&["help", command]), text(&[command, "--help"]), "{command}");
        let expected = format!("weft-{command} {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(text(&[command, "--version"]), expected, "{command}");
        let page = text(&["man", command]);
        let title = format!(".TH weft-{command} 1  \"weft {}\" Weft\n", env!("CARGO_PKG_VERSION"));
        assert!(page.contains(&title) && page.contains(".SH SYNOPSIS"), "{title}{page}");
    }
    for words in [&["help"][..], &["help", "help"], &["help", "version"], &["version", "--help"]] {
        assert_eq!(text(words), text(&["--help"]), "{words:?}");
    }
    assert!(text(&["man", "serve"]).contains("maxmemory\\-policy"));
    for (shell, word) in
        [("bash", "complete -F _weft"), ("zsh", "#compdef weft"), ("fish", "complete -c weft")]
    {
        let script = text(&["completions", shell]);
        assert!(script.contains(word) && script.contains("seed-throughput"), "{shell}");
    }
    let folder = common::Folder::new();
    text(&["man", "--folder", &folder.path("man1")]);
    let pages: Vec<_> =
        std::fs::read_dir(folder.path("man1")).unwrap().map(|page| page.unwrap().path()).collect();
    assert!(pages.len() > 17, "{pages:?}");
    // What a page leads to is there.
    for page in &pages {
        for line in std::fs::read_to_string(page).unwrap().lines() {
            let name = line
                .strip_suffix("(1)")
                .filter(|name| name.starts_with("weft"))
                .map(|name| name.replace('\\', ""));
            let file = name.map(|name| page.with_file_name(format!("{name}.1")));
            assert!(file.is_none_or(|file| pages.contains(&file)), "{}: {line}", page.display());
        }
    }
    assert!(text(&["man", "token", "create"]).contains(".TH weft-token-create 1 "));
    for (words, said) in [
        (&["man", "nosuch"][..], "there is no command 'nosuch'; `weft --help` lists them"),
        (&["man", "token", "nosuch"], "there is no command 'nosuch'; `weft token --help` lists them"),
    ] {
        let output = run(words, b"");
        assert!(output.status.code() == Some(1) && stderr(&output).contains(said), "{}", stderr(&output));
    }
}

#[test]
fn commands_of_the_server_are_told_from_those_of_the_program() {
    for (words, instead) in [
        (&["help", "get"][..], "weft cli help get"),
        (&["help", "cli", "GET"], "weft cli help GET"),
        (&["get", "k"], "weft cli get"),
    ] {
        let output = run(words, b"");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).trim_end().ends_with(&format!("of the server: {instead}")), "{words:?}");
    }
    let output = run(&["help", "nosuch"], b"");
    assert!(output.status.code() == Some(2) && stderr(&output).contains("Commands:"), "{}", stderr(&output));
}

#[test]
fn a_command_is_guessed_where_what_was_typed_is_near_to_one() {
    for (word, tip) in [
        ("bnech", Some("'bench'")),
        ("srve", Some("'serve'")),
        ("hlep", Some("'help'")),
        ("nosuch", None),
        ("xyz", None),
    ] {
        let said = stderr(&run(&[word], b""));
        assert!(said.contains(&format!("unrecognized subcommand '{word}'")), "{said}");
        assert_eq!(said.contains("tip:"), tip.is_some(), "{said}");
        assert!(!said.contains("\n\n\n"), "a gap where a tip was: {said}");
        assert!(said.contains(tip.unwrap_or_default()), "{said}");
    }
}

#[test]
fn a_flag_is_guessed_where_what_was_typed_is_near_to_one() {
    for (line, tip) in [
        (&["cli", "--patern", "x"][..], Some("'--pattern'")),
        (&["bench", "--pipline-body"], Some("'--pipeline-body'")),
        (&["bench", "--bogus"], None),
        (&["cli", "--frobnicate", "ping"], None),
    ] {
        let said = stderr(&run(line, b""));
        assert!(said.contains(&format!("unexpected argument '{}'", line[1])), "{said}");
        assert_eq!(said.contains("tip:"), tip.is_some(), "{said}");
        assert!(said.contains(tip.unwrap_or("For more information, try '--help'.")), "{said}");
        assert!(!said.contains("\n\n\n"), "{said}");
    }
}

#[test]
fn words_too_many_behind_help_and_version_are_asked_about() {
    for (words, said) in [
        (
            &["help", "bench", "extra"][..],
            "weft: help takes one command: what is 'extra' for? Try: weft help bench",
        ),
        (&["version", "x"], "weft: version takes nothing: what is 'x' for?"),
    ] {
        let output = run(words, b"");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(stderr(&output).trim_end(), said);
    }
}

#[test]
fn versions_are_told_under_the_flags_of_redis_cli_and_redis_benchmark() {
    for (tool, name) in [("cli", "weft-cli"), ("bench", "weft-bench")] {
        for flag in ["-v", "--version", "-V"] {
            let output = run(&[tool, flag], b"");
            let expected = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
            assert_eq!(
                (output.status.code(), output.stdout),
                (Some(0), expected.into_bytes()),
                "{tool} {flag}"
            );
        }
    }
}

#[test]
fn commands_are_explained_without_a_server() {
    let door = Door::new();
    let port = door.port();
    for words in [&["help", "get"][..], &["HELP", "GET"], &["?", "get"]] {
        let output = run(&[&["cli", "-p", &port], words].concat(), b"");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("GET key\n  summary: "), "{text}");
    }
    let output = run(&["cli", "-p", &port], b"help @string\nquit\n");
    assert!(String::from_utf8(output.stdout).unwrap().contains("APPEND key value"));
    assert!(door.nobody_came());
}

#[test]
fn what_redis_cli_and_redis_benchmark_have_besides_is_refused_by_name() {
    let door = Door::new();
    let port = door.port();
    for (program, flag) in
        [("cli", "--ldb"), ("cli", "--tls-ciphers"), ("bench", "--tls-ciphers"), ("bench", "--dbsize")]
    {
        for words in [&[program, "-p", &port, flag][..], &[program, flag, "x", "-p", &port]] {
            let output = run(words, b"");
            assert_eq!(output.status.code(), Some(2), "{words:?}");
            let said = stderr(&output);
            assert!(said.starts_with(&format!("weft {program}: {flag}, which redis-")), "{said}");
            assert!(said.contains("cannot be had yet: ") && door.nobody_came(), "{said}");
        }
    }
}
