//! Making the connections of a fleet. Owns what comes after the handshake: what every client says once, a socket that
//! does not wait.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::wire::Wire;
use super::{Batch, Done, Load};
use crate::{Config, Connection, Encoder, Error, Protocol, Result, Socket};

/// Connects, and returns the socket once the server has answered something: so that a thousand connections made one
/// after the other do not overrun its backlog. With it goes what encodes requests as this server reads them.
pub(super) fn wire(config: &Config) -> Result<(Wire, Encoder)> {
    let mut connection = Connection::connect(config)?;
    let said_hello = matches!(config.protocol, Protocol::Resp3 | Protocol::Respb);
    if config.protocol == Protocol::Http || !said_hello && config.password.is_none() && config.db == 0 {
        connection.command(&["PING"])?;
    }
    let (_, encoder) = connection.encoder();
    Ok((without_waiting(connection)?, encoder.in_json()))
}

/// The socket of a connection on which nothing is due, for an event loop.
pub(crate) fn without_waiting(connection: Connection) -> Result<Wire> {
    let (socket, session) = connection.into_wire()?;
    Ok(Wire::new(nonblocking(socket).map_err(system)?, session))
}

/// A call of the system that failed.
pub(super) fn system(error: impl Into<io::Error>) -> Error {
    Error::Io(Arc::new(error.into()))
}

fn nonblocking(socket: Socket) -> io::Result<OwnedFd> {
    Ok(match socket {
        Socket::Tcp(socket) => {
            socket.set_nonblocking(true)?;
            socket.into()
        }
        Socket::Unix(socket) => {
            socket.set_nonblocking(true)?;
            socket.into()
        }
    })
}

/// A command once by each client.
pub(super) struct Once {
    bytes: Vec<u8>,
    left: u32,
}

impl Once {
    pub(super) fn new(encoder: &Encoder, args: &[&str], clients: u32) -> Result<Once> {
        let mut bytes = Vec::new();
        encoder.encode(0, args, &mut bytes)?;
        Ok(Once { bytes, left: clients })
    }

    /// Puts a command behind it whose reply is the only one.
    pub(super) fn and_then(&mut self, encoder: &Encoder, args: &[&str]) -> Result<()> {
        encoder.encode(0, args, &mut self.bytes)
    }
}

impl Load for Once {
    fn next(&mut self, _client: u32) -> Option<Batch<'_>> {
        self.left = self.left.checked_sub(1)?;
        Some(Batch { bytes: &mut self.bytes, frames: &[0], tag: 0 })
    }
    fn done(&mut self, _done: Done) {}
}

/// Lets this process have as many files open as the system allows; returns how many that are.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused the old limit holds, and a connection too many fails with its reason.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
