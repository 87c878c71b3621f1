//! `weft inspect --follow` between a client and a server that are both this test, so that it knows every byte.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};

use common::{resp, weft};

/// The relay under test. It is killed when the test ends.
struct Follow {
    child: Child,
    lines: BufReader<ChildStdout>,
    address: String,
    server: Option<TcpListener>,
}

impl Follow {
    fn start(more: &[&str]) -> Follow {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = server.local_addr().unwrap().to_string();
        let mut child = weft()
            .args(["inspect", "--follow", &to, "--listen", "127.0.0.1:0"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        let start = first.find("127.0.0.1:").expect("the address");
        let address: String = first[start..]
            .chars()
            .take_while(|char| char.is_ascii_digit() || matches!(char, '.' | ':'))
            .collect();
        Follow { child, lines, address, server: Some(server) }
    }

    /// A client and the server's side of its connection.
    fn connect(&self) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(&self.address).unwrap();
        let (server, _) = self.server.as_ref().unwrap().accept().unwrap();
        (client, server)
    }

    /// Reads lines until one has all of these texts.
    fn wait_for(&mut self, texts: &[&str]) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended before a line with {texts:?}");
            if texts.iter().all(|text| line.contains(text)) {
                return line;
            }
        }
    }

    /// Interrupts it and returns the rest of its output.
    fn interrupt(mut self) -> String {
        let status = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        rest
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends bytes into one end and expects them, untouched, from the other.
fn pass(from: &mut TcpStream, to: &mut TcpStream, bytes: &[u8]) {
    from.write_all(bytes).unwrap();
    let mut there = vec![0; bytes.len()];
    to.read_exact(&mut there).unwrap();
    assert_eq!(there, bytes);
}

#[test]
fn requests_and_replies_are_matched_also_in_pieces() {
    let mut follow = Follow::start(&[]);
    let (mut client, mut server) = follow.connect();
    for byte in resp(&["GET", "key"]) {
        pass(&mut client, &mut server, &[byte]);
    }
    follow.wait_for(&["#1 ->", " 0  GET key", "(22 bytes)"]);
    pass(&mut client, &mut server, &resp(&["INCR", "n"]));
    pass(&mut server, &mut client, b"$5\r\nva");
    pass(&mut server, &mut client, b"lue\r\n:41\r\n");
    follow.wait_for(&["#1 <-", " 0  bulk \"value\"", "(11 bytes, ", "s)"]);
    follow.wait_for(&["#1 <-", " 1  integer 41"]);
    let (mut other, mut other_server) = follow.connect();
    pass(&mut other, &mut other_server, &resp(&["PING"]));
    follow.wait_for(&["#2 ->", " 0  PING"]);
    let summary = follow.interrupt();
    assert!(summary.contains("summary: 2 connections, 3 requests, 2 replies (0 errors)"), "{summary}");
    assert!(summary.lines().any(|line| line.starts_with("INCR") && line.contains('1')), "{summary}");
}

#[test]
fn hello_switches_to_respb_and_channels_are_matched_each_for_itself() {
    let mut follow = Follow::start(&[]);
    let (mut client, mut server) = follow.connect();
    pass(&mut client, &mut server, &resp(&["HELLO", "3", "PROTO", "respb"]));
    pass(&mut server, &mut client, b"-NOPROTO no\r\n");
    pass(&mut client, &mut server, &resp(&["HELLO", "3", "PROTO", "respb"]));
    // The reply and the first push in RESPB come in one piece.
    pass(&mut server, &mut client, b"%1\r\n+proto\r\n:3\r\n\x80\x0a\x00\x00\x00\x00\x00\x01\x81x");
    follow.wait_for(&["switch", "both sides speak RESPB"]);
    follow.wait_for(&["<- ch 0", "push ", "\"x\""]);
    let mut two = b"\x00\x00\x00\x05\x00\x01a".to_vec();
    two.extend(b"\x00\x00\x00\x09\x00\x01b\x00\x00\x00\x05\x00\x01c");
    pass(&mut client, &mut server, &two);
    follow.wait_for(&["-> ch 5", " 0  GET a"]);
    follow.wait_for(&["-> ch 9", " 0  GET b"]);
    follow.wait_for(&["-> ch 5", " 1  GET c"]);
    // Channel 9 is answered first; the second answer of channel 5 comes in two fragments.
    pass(&mut server, &mut client, b"\x82\x01\x00\x09B\x82\x01\x00\x05A");
    follow.wait_for(&["<- ch 9", " 0  bulk \"B\""]);
    follow.wait_for(&["<- ch 5", " 0  bulk \"A\""]);
    pass(&mut server, &mut client, b"\xff\x10\x00\x05\x00\x00\x00\x04\x00\x82\x01\x00");
    pass(&mut server, &mut client, b"\xff\x10\x00\x05\x00\x00\x00\x03\x01\x05C");
    follow.wait_for(&["<- ch 5", " 1  bulk \"C\""]);
    let summary = follow.interrupt();
    assert!(
        summary.contains("5 requests, 5 replies (1 errors), 1 pushes, 2 control frames, 0 lost"),
        "{summary}"
    );
}

#[test]
fn malformed_bytes_and_half_closes_are_passed_on() {
    let mut follow = Follow::start(&[]);
    let (mut client, mut server) = follow.connect();
    pass(&mut client, &mut server, &resp(&["PING"]));
    pass(&mut client, &mut server, b"*1\r\n!!!!\x00\xff garbage");
    follow.wait_for(&["lost", "the client", "expected-bulk"]);
    pass(&mut client, &mut server, b"and more of it");
    pass(&mut server, &mut client, b"+PONG\r\n");
    follow.wait_for(&["#1 <-", " 0  simple string \"PONG\""]);
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.read(&mut [0; 9]).unwrap(), 0, "the half-close arrives");
    pass(&mut server, &mut client, b"+still here\r\n");
    drop(server);
    assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
    follow.wait_for(&["closed", "all answered"]);
    // RESPB from the first byte, as JSON below; here only the detection.
    let (mut client, mut server) = follow.connect();
    pass(&mut client, &mut server, b"\x03\x00\x00\x07");
    follow.wait_for(&["#2 -> ch 7", "PING"]);
    let summary = follow.interrupt();
    assert!(summary.contains("1 lost streams"), "{summary}");
}

#[test]
fn json_lines() {
    let mut follow = Follow::start(&["--json"]);
    let (mut client, mut server) = follow.connect();
    pass(&mut client, &mut server, b"\x00\x00\x00\x05\x00\x01a");
    pass(&mut server, &mut client, b"\x80\x05\x00\x05");
    let line = follow.wait_for(&["\"from\":\"server\""]);
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["channel"], &line["sequence"]), (&5.into(), &0.into()));
    assert_eq!(line["text"], "null");
    assert!(line["latency_us"].is_u64());
    // CLOSE voids what is unanswered, and the channel counts from 0 again.
    pass(&mut client, &mut server, b"\x00\x00\x00\x05\x00\x01a\xff\x01\x00\x05\x00\x00\x00\x00");
    pass(&mut server, &mut client, b"\xff\x01\x00\x05\x00\x00\x00\x00");
    pass(&mut client, &mut server, b"\x00\x00\x00\x05\x00\x01z");
    let line = follow.wait_for(&["GET z"]);
    assert!(line.contains("\"sequence\":0"), "{line}");
    drop((client, server));
    follow.wait_for(&["\"closed\"", "1 requests unanswered"]);
    let rest = follow.interrupt();
    let summary: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(summary["summary"]["requests"], 3);
    assert_eq!(summary["summary"]["commands"][0]["command"], "GET");
}

#[test]
fn a_server_that_is_not_there_is_said() {
    let mut follow = Follow::start(&[]);
    follow.server = None;
    let mut client = TcpStream::connect(&follow.address).unwrap();
    follow.wait_for(&["#1 no server", "refused"]);
    assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
    follow.interrupt();
}
