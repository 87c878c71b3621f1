//! Owns the one error type and what a server's error consists of. Does not own texts of servers.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use weft_protocol::{Reply, WireError};

use crate::config::Protocol;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    text: String,
}

impl ServerError {
    /// From the bytes of an error reply; what is no UTF-8 is replaced.
    pub fn new(text: &[u8]) -> Self {
        ServerError { text: String::from_utf8_lossy(text).into_owned() }
    }

    /// The first word: `ERR`, `WRONGTYPE`, `NOAUTH`, …
    pub fn code(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    /// The whole text, its code included.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What was waited for when the time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// A connection to be accepted.
    Connect,
    /// The server to take what is sent.
    Write,
    /// A reply, or the next part of it.
    Reply,
    /// A connection of the pool to be given back.
    Pool,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Waiting::Connect => "the connection was not made in time",
            Waiting::Write => "the server did not take what was sent in time",
            Waiting::Reply => "the reply did not come in time",
            Waiting::Pool => "no connection of the pool came free in time",
        })
    }
}

/// Everything that can go wrong.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A URL that cannot be read.
    Url(&'static str),
    /// A setting, or a request, that cannot be.
    Config(String),
    /// A name without an address.
    Resolve {
        /// The name.
        host: String,
        /// Why.
        source: Arc<io::Error>,
    },
    /// No connection: refused, unreachable, no such socket.
    Connect {
        /// Where to.
        address: String,
        /// Why.
        source: Arc<io::Error>,
    },
    /// TLS could not be agreed on, or a certificate could not be read.
    Tls(String),
    /// The socket failed.
    Io(Arc<io::Error>),
    /// The time was over.
    Timeout(Waiting, Duration),
    /// The server closed the connection.
    Closed,
    /// The channel was closed by the server, with its code (section 8.4 of the specification) and reason. What was
    /// asked on it and has no reply did not run, and may be sent again on another channel.
    ChannelClosed {
        /// Which channel.
        channel: u16,
        /// Why, as a number.
        code: u16,
        /// Why, in words.
        reason: String,
    },
    /// The server ended the connection and said why, with a code (section 8.4 of the specification) and a reason. What
    /// was asked and has no reply did not run, and may be sent again on another connection.
    GoAway {
        /// Why, as a number.
        code: u16,
        /// Why, in words.
        reason: String,
    },
    /// Bytes that are no reply.
    Wire(WireError),
    /// A reply where none was due, or of a shape that it cannot have.
    Unexpected(&'static str),
    /// The server answered a command with an error.
    Server(ServerError),
    /// The server said this, unasked, and closes the connection: it has too many clients, or could not read a request.
    Dismissed(ServerError),
    /// The server refused a step of the handshake: the password, the database.
    Handshake {
        /// The command, without a password: `AUTH`, `HELLO 3`, `SELECT 7`.
        step: String,
        /// Its answer.
        error: ServerError,
    },
    /// The server does not speak the protocol that was asked for.
    NoProtocol {
        /// What was asked for.
        protocol: Protocol,
        /// What the server answered.
        error: ServerError,
    },
    /// An earlier error ended the connection, or channel.
    Finished,
    /// The connection that this channel is part of was lost.
    Lost(Arc<Error>),
    /// The connection was lost after the request was sent and before its reply came: it may have run or not. It is not
    /// sent again.
    OutcomeUnknown(Arc<Error>),
    /// The connection was lost inside a transaction, or with watched keys, which cannot be restored.
    TransactionLost(Arc<Error>),
    /// All channels of the connection are in use.
    TooManyChannels(u32),
    /// That channel is in use.
    ChannelInUse(u16),
    /// More pushes came than are kept; nobody took them.
    TooManyPushes(usize),
    /// A reply that is not of the type that was asked for.
    Convert {
        /// The type.
        wanted: &'static str,
        /// What came, shortened.
        got: String,
    },
}

impl Error {
    /// Whether the connection is usable after this error.
    pub fn is_harmless(&self) -> bool {
        matches!(
            self,
            Error::Server(_)
                | Error::Convert { .. }
                | Error::Config(_)
                | Error::Url(_)
                | Error::TooManyChannels(_)
                | Error::ChannelInUse(_)
        )
    }

    /// Whether the server has said that the request did not run: it may be sent again, whatever it does.
    pub fn did_not_run(&self) -> bool {
        match self {
            Error::GoAway { .. } | Error::ChannelClosed { .. } => true,
            Error::Lost(error) => error.did_not_run(),
            _ => false,
        }
    }

    /// The server's words, where it is the server that refused.
    pub fn server_error(&self) -> Option<&ServerError> {
        match self {
            Error::Server(error)
            | Error::Dismissed(error)
            | Error::Handshake { error, .. }
            | Error::NoProtocol { error, .. } => Some(error),
            _ => None,
        }
    }

    /// A reply that does not fit.
    pub(crate) fn convert(wanted: &'static str, got: &Reply) -> Error {
        const SHOWN_MAX: usize = 80;
        let mut got = format!("{got:?}");
        if got.len() > SHOWN_MAX {
            let end = (0..=SHOWN_MAX).rev().find(|&at| got.is_char_boundary(at)).unwrap_or(0);
            got.truncate(end);
            got.push('…');
        }
        Error::Convert { wanted, got }
    }

    /// Bytes that are no reply. An alert of TLS says what they are.
    pub(crate) fn malformed(error: WireError, bytes: &[u8]) -> Error {
        const ALERT: &[u8] = &[0x15, 0x03];
        match bytes.starts_with(ALERT) {
            true => Error::Tls("the server answers with an alert of TLS: this port takes TLS alone".into()),
            false => Error::Wire(error),
        }
    }

    /// An error of a socket that is being read or written.
    pub(crate) fn from_socket(error: io::Error, waiting: Waiting, limit: Option<Duration>) -> Error {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Error::Timeout(waiting, limit.unwrap_or_default())
            }
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Error::Closed,
            _ => {
                #[cfg(feature = "tls")]
                if let Some(error) = crate::stream::tls::of_socket(&error) {
                    return error;
                }
                Error::Io(Arc::new(error))
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Url(what) => write!(f, "invalid URL: {what}"),
            Error::Config(what) => f.write_str(what),
            Error::Resolve { host, source } => write!(f, "cannot resolve {host}: {source}"),
            Error::Connect { address, source } => write!(f, "cannot connect to {address}: {source}"),
            Error::Tls(what) => write!(f, "TLS: {what}"),
            Error::Io(source) => write!(f, "{source}"),
            Error::Timeout(waiting, limit) => write!(f, "{waiting} ({} ms)", limit.as_millis()),
            Error::Closed => f.write_str("the server closed the connection"),
            Error::GoAway { code, reason } if reason.is_empty() => {
                write!(f, "the server ended the connection (code {code})")
            }
            Error::GoAway { code, reason } => {
                write!(f, "the server ended the connection (code {code}): {reason}")
            }
            Error::ChannelClosed { channel, code, reason } if reason.is_empty() => {
                write!(f, "the server closed channel {channel} (code {code})")
            }
            Error::ChannelClosed { channel, code, reason } => {
                write!(f, "the server closed channel {channel} (code {code}): {reason}")
            }
            Error::Wire(error) => write!(f, "the server sent what is no reply: {error}"),
            Error::Unexpected(what) => f.write_str(what),
            Error::Server(error) => write!(f, "{error}"),
            Error::Dismissed(error) => write!(f, "the server closed the connection: {error}"),
            Error::Handshake { step, error } => write!(f, "{step} failed: {error}"),
            Error::NoProtocol { protocol, error } => {
                write!(f, "the server does not speak {protocol}; it answered: {error}")
            }
            Error::Finished => f.write_str("an earlier error ended the connection"),
            Error::Lost(source) => write!(f, "the connection was lost: {source}"),
            Error::OutcomeUnknown(source) => {
                write!(f, "the connection was lost before the reply came, the command may have run: {source}")
            }
            Error::TransactionLost(source) => {
                write!(f, "the connection was lost and with it the transaction: {source}")
            }
            Error::TooManyChannels(limit) => write!(f, "all {limit} channels of the connection are in use"),
            Error::ChannelInUse(channel) => write!(f, "channel {channel} is in use"),
            Error::TooManyPushes(limit) => write!(f, "more than {limit} pushes that nobody took"),
            Error::Convert { wanted, got } => write!(f, "the reply is no {wanted}: {got}"),
        }
    }
}

// No `source`: what lies beneath is part of the text, and who prints a chain of sources would print it twice.
impl std::error::Error for Error {}

impl From<WireError> for Error {
    fn from(error: WireError) -> Self {
        Error::Wire(error)
    }
}
