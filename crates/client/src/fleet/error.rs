//! Why a fleet could not be made or could not go on. Owns the texts.

use std::fmt;
use std::io;
use std::time::Duration;

use weft_protocol::WireError;

/// What went wrong before or between runs. What goes wrong during one is counted.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No connection.
    Connect {
        /// Where to.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The server closed the connection before it had answered.
    Closed,
    /// The server answered nothing for so long.
    Silent(Duration),
    /// The server refused a step of the handshake.
    Refused {
        /// The command.
        step: &'static str,
        /// Its error reply.
        text: String,
    },
    /// The server does not speak RESPB; its answer to the question.
    NoRespb(String),
    /// The server sent what is no reply.
    Malformed(WireError),
    /// The system refused something.
    Io(io::Error),
    /// More channels than a connection can have, or none, or several without RESPB.
    Channels(u32),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Connect { address, source } => write!(f, "cannot connect to {address}: {source}"),
            Error::Closed => f.write_str("the server closed the connection without an answer"),
            Error::Silent(time) => write!(f, "the server answered nothing for {} s", time.as_secs_f64()),
            Error::Refused { step, text } => write!(f, "the server refused {step}: {text}"),
            Error::NoRespb(text) => write!(f, "the server does not speak RESPB: it answered {text:?}"),
            Error::Malformed(error) => write!(f, "the server sent what is no reply: {error}"),
            Error::Io(error) => write!(f, "{error}"),
            Error::Channels(0) => f.write_str("a connection has at least one channel"),
            Error::Channels(count) => {
                write!(f, "{count} channels on a connection: only RESPB has several, at most 65536")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Connect { source, .. } | Error::Io(source) => Some(source),
            Error::Malformed(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Error::Io(error.into())
    }
}
