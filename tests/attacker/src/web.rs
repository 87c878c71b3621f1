//! Owns: HTTP as clients speak it: a request's bytes, an answer's parts, an honest client that keeps its connection.
//! Does not own: what is asked.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use weft_client::Reply;

/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;
/// An answer that these clients ask for is not longer.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// A request of a user with a body.
pub(crate) fn post(target: &str, user: (&str, &str), body: &[u8]) -> Vec<u8> {
    let (name, secret) = user;
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {name}.{secret}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The first answer in bytes that have come, and its length; nothing where a part of it has not.
    pub(crate) fn first(bytes: &[u8]) -> Result<Option<(usize, Self)>> {
        ensure!(bytes.len() <= ANSWER_BYTES_MAX, "an answer of {} bytes has no end", bytes.len());
        let Some(head_len) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&bytes[..head_len]).context("a head that is no text")?;
        let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.with_context(|| format!("{line:?} is no line of a status"))?;
        let len =
            headers.split("\r\n").filter_map(|header| header.split_once(": ")).find_map(|(name, value)| {
                name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>())
            });
        let len = len.with_context(|| format!("{line:?} has no length"))??;
        let (from, to) = (head_len + 4, head_len + 4 + len);
        Ok(bytes.get(from..to).map(|body| (to, Self { status, body: body.to_vec() })))
    }

    /// What it would be over RESP.
    pub(crate) fn reply(&self) -> Result<Reply> {
        let Value::Object(mut answer) = serde_json::from_slice(&self.body)? else {
            bail!("{self:?} is no answer to a command")
        };
        Ok(match (answer.remove("result"), answer.remove("error")) {
            (None, Some(Value::String(error))) => Reply::Error(error.into_bytes()),
            (Some(Value::Null), None) => Reply::Null,
            (Some(Value::Number(number)), None) => {
                Reply::Int(number.as_i64().context("a number that is no i64")?)
            }
            (Some(Value::String(text)), None) if text == "OK" => Reply::Simple(text.into_bytes()),
            (Some(Value::String(text)), None) => Reply::Bulk(text.into_bytes()),
            (result, error) => bail!("an answer of {result:?} and {error:?}"),
        })
    }
}

/// A connection that is kept.
pub(crate) struct Web {
    socket: TcpStream,
    user: (&'static str, &'static str),
    received: Vec<u8>,
}

impl Web {
    pub(crate) fn connect(port: u16, user: (&'static str, &'static str), patience: Duration) -> Result<Self> {
        let socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(patience))?;
        socket.set_write_timeout(Some(patience))?;
        Ok(Self { socket, user, received: Vec::new() })
    }

    /// A command, whose words must be text.
    pub(crate) fn send(&mut self, words: &[Vec<u8>]) -> Result<()> {
        let words = words.iter().map(|word| std::str::from_utf8(word)).collect::<Result<Vec<_>, _>>()?;
        let body = serde_json::to_vec(&words)?;
        Ok(self.socket.write_all(&post("/", self.user, &body))?)
    }

    pub(crate) fn receive(&mut self) -> Result<Reply> {
        let mut buffer = [0; READ_BYTES];
        loop {
            if let Some((len, answer)) = Answer::first(&self.received)? {
                self.received.drain(..len);
                return answer.reply();
            }
            match self.socket.read(&mut buffer) {
                Ok(0) => bail!("the server has closed"),
                Ok(len) => self.received.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
