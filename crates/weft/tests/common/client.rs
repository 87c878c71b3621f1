//! A client that writes requests and reads what comes, with no library between.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::net::UnixStream;

use super::resp;
use super::servers::{LONG, Server};

impl Server {
    /// A socket that waits for what must come.
    pub(crate) fn stream(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream
    }
}

/// These bytes come next.
pub(crate) fn expect(stream: &mut impl Read, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert!(bytes == expected, "{:?}…", String::from_utf8_lossy(&bytes[..bytes.len().min(80)]));
}

/// What comes up to the end of the connection.
pub(crate) fn rest(mut stream: impl Read) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

pub(crate) struct Client(pub(crate) BufReader<UnixStream>);

impl Client {
    pub(crate) fn new(server: &Server) -> Self {
        Self(BufReader::new(server.stream()))
    }
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }
    pub(crate) fn send<T: AsRef<[u8]>>(&mut self, words: &[T]) {
        self.write(&resp(words));
    }
    pub(crate) fn expect(&mut self, expected: &str) {
        expect(&mut self.0, expected.as_bytes());
    }
    /// The next line, without its end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
    pub(crate) fn ask<T: AsRef<[u8]>>(&mut self, words: &[T]) -> String {
        self.send(words);
        self.line()
    }
    /// The bulk strings of a reply, and nothing else of it.
    pub(crate) fn bulks(&mut self, words: &[&str]) -> Vec<String> {
        let bulks = self.byte_bulks(words).into_iter();
        bulks.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
    }
    pub(crate) fn byte_bulks(&mut self, words: &[&str]) -> Vec<Vec<u8>> {
        self.send(words);
        let (mut bulks, mut left) = (Vec::new(), 1);
        while left > 0 {
            let head = self.line();
            left -= 1;
            let count = head[1..].parse().unwrap_or(0);
            if head.starts_with('*') {
                left += count;
            } else if head.starts_with('$') && head != "$-1" {
                let mut text = vec![0; count + 2];
                self.0.read_exact(&mut text).unwrap();
                text.truncate(count);
                bulks.push(text);
            }
        }
        bulks
    }
}
