//! `weft serve` from outside: its command line, its file, its log, its end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Stdio};

use common::{Folder, resp, run, stderr, weft};

/// A server that listens on a Unix socket in a folder of its own.
struct Served {
    child: Child,
    log: BufReader<ChildStdout>,
    socket: String,
}

impl Served {
    /// Starts it and waits until it listens.
    fn new(folder: &Folder, words: &[&str]) -> Self {
        let socket = folder.path("weft.sock");
        let mut command = weft();
        command.arg("serve").args(words).args(["--port", "0", "--threads", "1", "--unixsocket"]).arg(&socket);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("Listening on") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the server has ended");
        }
        Self { child, log, socket }
    }
    /// Sends commands on a connection of their own and gives all replies, up to the end of the connection.
    fn ask(&self, commands: &[&[&str]]) -> String {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| resp(command)).collect();
        self.ask_raw(&[bytes, resp(&["QUIT"])].concat())
    }
    /// The same for bytes that make the server close the connection.
    fn ask_raw(&self, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.write_all(bytes).unwrap();
        let mut replies = String::new();
        stream.read_to_string(&mut replies).unwrap();
        replies
    }
    /// Ends it by SHUTDOWN and gives the rest of its log.
    fn end(mut self) -> String {
        self.ask(&[&["SHUTDOWN", "NOSAVE"]]);
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        assert!(self.child.wait().unwrap().success());
        log
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended already, or the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_file_is_read_and_written() {
    let folder = Folder::new();
    let file = folder.path("weft.conf");
    std::fs::write(&file, "# mine\nmaxmemory 100mb\nuser ann on >secret ~* +@all\n").unwrap();
    let served = Served::new(&folder, &[&file, "--timeout", "7"]);
    let replies = served.ask(&[
        &["CONFIG", "GET", "maxmemory", "timeout"],
        &["AUTH", "ann", "secret"],
        &["CONFIG", "SET", "hz", "20", "loglevel", "verbose"],
        &["CONFIG", "REWRITE"],
        &["INFO", "server"],
    ]);
    assert!(replies.starts_with(
        "*4\r\n$9\r\nmaxmemory\r\n$9\r\n104857600\r\n$7\r\ntimeout\r\n$1\r\n7\r\n+OK\r\n+OK\r\n+OK\r\n"
    ));
    assert!(replies.contains("\r\nserver_name:weft\r\n") && replies.contains("listener0:name=unix,bind="));
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# mine\nmaxmemory 100mb\nuser ann on >secret ~* +@all\n"), "{written}");
    assert!(written.contains("\nhz 20\n") && written.contains("\nloglevel verbose\n"), "{written}");
    assert!(served.end().contains("Weft has stopped"));
}

#[test]
fn a_password_and_limits_hold_for_connections() {
    let folder = Folder::new();
    let served = Served::new(&folder, &["--requirepass", "secret", "--client-query-buffer-limit", "1mb"]);
    let value = "x".repeat(2 << 20);
    let begun = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2097152\r\n";
    let commands = [resp(&["PING"]), resp(&["AUTH", "secret"]), resp(&["PING"]), begun.to_vec()].concat();
    let replies = served.ask_raw(&commands);
    let expected = "-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n-ERR Protocol error";
    assert!(replies.starts_with(expected), "{replies}");
    served.ask(&[
        &["AUTH", "secret"],
        &["CONFIG", "SET", "requirepass", "", "client-query-buffer-limit", "1gb"],
    ]);
    assert_eq!(served.ask(&[&["SET", "k", &value], &["STRLEN", "k"]]), "+OK\r\n:2097152\r\n+OK\r\n");
    let traffic = served.ask(&[&["INFO", "stats"]]);
    let bytes_in = traffic.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:")).unwrap();
    assert!(bytes_in.parse::<u64>().unwrap() > 2 << 20, "{bytes_in}");
}

#[test]
fn what_is_wrong_is_said_before_anything_starts() {
    let folder = Folder::new();
    let file = folder.path("weft.conf");
    std::fs::write(&file, "port 7000\nmaxmemroy 1gb\n").unwrap();
    for (words, expected) in [
        (vec!["serve", &file], "weft.conf:2: there is no directive 'maxmemroy'; is 'maxmemory' meant?"),
        (
            vec!["serve", "--appendonly", "yes"],
            "'yes' is not served: Weft has no append-only file yet; use 'no'",
        ),
        (vec!["serve", "--port"], "weft serve: --port: needs a value behind it"),
    ] {
        let output = run(&words, b"");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    let help = run(&["serve", "--help"], b"");
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(
        help.status.success() && text.contains("--maxmemory-policy") && text.contains("[noeviction]"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 120), "a line of the help is too long");
}

#[test]
fn the_log_has_three_formats() {
    for (format, expected) in [
        ("legacy", " * Weft has stopped\n"),
        ("logfmt", " level=notice message=\"Weft has stopped\"\n"),
        ("json", ",\"level\":\"notice\",\"message\":\"Weft has stopped\"}\n"),
    ] {
        let folder = Folder::new();
        let log = Served::new(&folder, &["--log-format", format]).end();
        assert!(log.ends_with(expected), "{log}");
    }
}
