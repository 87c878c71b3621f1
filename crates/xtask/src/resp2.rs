//! Just enough of a RESP2 client to ask a server about its commands.
//!
//! It owns one blocking connection and the reading of replies. It is a tool of the checks; the codecs that the product
//! uses are in `crates/protocol`.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// A server that says nothing for so long is taken to be gone.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Greatest length of one string or array in a reply: `COMMAND DOCS` has thousands of elements and short strings.
const LENGTH_MAX: usize = 1 << 20;

/// Greatest nesting of a reply: arguments of arguments are some six levels deep, each with an array and a map.
const DEPTH_MAX: usize = 64;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Simple string or bulk string.
    Text(String),
    /// Integer.
    Integer(i64),
    /// Array.
    Array(Vec<Value>),
    /// Null string or array.
    Null,
}

impl Value {
    /// The text; empty for anything else.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    /// The number; none for anything else.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The elements; none of them for anything but an array.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// The value behind a key of a flat map.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.pairs().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The pairs of a flat map.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.items().chunks_exact(2).map(|pair| (pair[0].text(), &pair[1]))
    }
}

/// A connection.
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects to `HOST:PORT`.
    ///
    /// # Errors
    /// When nothing answers there.
    pub fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends a command and reads its reply.
    ///
    /// # Errors
    /// When the connection breaks, the reply is not RESP2, or it is an error.
    pub fn call(&mut self, arguments: &[&str]) -> Result<Value> {
        let mut request = format!("*{}\r\n", arguments.len());
        for argument in arguments {
            request.push_str(&format!("${}\r\n{argument}\r\n", argument.len()));
        }
        self.stream.get_mut().write_all(request.as_bytes())?;
        read(&mut self.stream, 0).with_context(|| format!("reply to {}", arguments.join(" ")))
    }
}

fn read(stream: &mut impl BufRead, depth: usize) -> Result<Value> {
    ensure!(depth < DEPTH_MAX, "nested deeper than {DEPTH_MAX}");
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let Some(line) = line.strip_suffix("\r\n") else { bail!("the connection ended") };
    ensure!(line.is_char_boundary(1), "no RESP2: {line:?}");
    let (kind, rest) = line.split_at(1);
    match kind {
        "+" => Ok(Value::Text(rest.to_owned())),
        "-" => bail!("the server says {rest}"),
        ":" => Ok(Value::Integer(rest.parse()?)),
        "$" | "*" if rest == "-1" => Ok(Value::Null),
        "$" => read_bulk(stream, length(rest)?),
        "*" => (0..length(rest)?).map(|_| read(stream, depth + 1)).collect::<Result<_>>().map(Value::Array),
        _ => bail!("no RESP2: {line:?}"),
    }
}

fn length(digits: &str) -> Result<usize> {
    let length = digits.parse()?;
    ensure!(length <= LENGTH_MAX, "length {length} is over {LENGTH_MAX}");
    Ok(length)
}

fn read_bulk(stream: &mut impl BufRead, length: usize) -> Result<Value> {
    let mut bytes = vec![0; length + 2];
    stream.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(Value::Text(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies() {
        let parse = |text: &str| read(&mut text.as_bytes(), 0);
        let reply = parse("*4\r\n$1\r\na\r\n:-3\r\n+b\r\n*1\r\n$-1\r\n").unwrap();
        assert_eq!(reply.get("a").and_then(Value::integer), Some(-3));
        assert_eq!(reply.get("b").map(|value| value.items().to_vec()), Some(vec![Value::Null]));
        assert!(parse("-ERR no\r\n").is_err());
        assert!(parse("*1\r\n").is_err());
        assert!(parse("$1048577\r\n").is_err());
        assert!(parse(&"*1\r\n".repeat(DEPTH_MAX + 1)).is_err());
    }
}
