//! Owns the socket: connecting within a time, reading and writing, also from two threads at once, plain or under TLS.
//! Does not own what is read or written.

#[cfg(feature = "tls")]
mod said;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(feature = "tls")]
mod trust;

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_keepalive;

use crate::config::{Address, Config};
use crate::error::{Error, Result, Waiting};

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;
/// The shortest time that a socket can be given: zero would mean for ever.
const SHORTEST: Duration = Duration::from_millis(1);

/// A connected socket. All methods take it shared, so that one thread reads while others write.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    #[cfg(feature = "tls")]
    tls: Option<tls::Tls>,
}

/// A connected socket, in blocking mode.
#[derive(Debug)]
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

impl Socket {
    fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = match self {
                Socket::Tcp(socket) => (&*socket).read(into),
                Socket::Unix(socket) => (&*socket).read(into),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let result = match self {
                Socket::Tcp(socket) => (&*socket).write(bytes),
                Socket::Unix(socket) => (&*socket).write(bytes),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn set_timeouts(&self, read: Option<Duration>, write: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(read)?;
        let write = write.map(|limit| limit.max(SHORTEST));
        match self {
            Socket::Tcp(socket) => socket.set_write_timeout(write),
            Socket::Unix(socket) => socket.set_write_timeout(write),
        }
    }

    fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        let limit = limit.map(|limit| limit.max(SHORTEST));
        match self {
            Socket::Tcp(socket) => socket.set_read_timeout(limit),
            Socket::Unix(socket) => socket.set_read_timeout(limit),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}

impl Stream {
    /// Connects, under TLS if so configured, and sets the times for reading and writing.
    pub(crate) fn connect(config: &Config) -> Result<Stream> {
        config.check()?;
        let socket = match &config.address {
            Address::Tcp(host, port) => Socket::Tcp(connect_tcp(config, host, *port)?),
            Address::Unix(path) => {
                let socket = UnixStream::connect(path).map_err(|source| refused(config, source))?;
                Socket::Unix(socket)
            }
        };
        #[cfg(feature = "tls")]
        let tls = match (&config.tls, &config.address) {
            (Some(settings), Address::Tcp(host, _)) => {
                let limit = config.timeouts.connect;
                socket.set_timeouts(limit, limit).map_err(|source| refused(config, source))?;
                Some(tls::Tls::connect(&socket, settings, host, limit)?)
            }
            _ => None,
        };
        let stream = Stream {
            socket,
            #[cfg(feature = "tls")]
            tls,
        };
        let times = config.timeouts;
        stream.socket.set_timeouts(times.reply, times.write).map_err(|source| refused(config, source))?;
        Ok(stream)
    }

    /// Reads what there is, at least a byte; 0 is the end.
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.read(&self.socket, into);
        }
        self.socket.read(into)
    }

    /// Writes some of the bytes; under TLS they may be kept until [`flush`](Self::flush).
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.write(&self.socket, bytes);
        }
        self.socket.write(bytes)
    }

    /// Writes what TLS kept.
    pub(crate) fn flush(&self) -> io::Result<()> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.flush(&self.socket);
        }
        Ok(())
    }

    /// Writes all of it; the socket must be blocking.
    pub(crate) fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                len => bytes = &bytes[len..],
            }
        }
        self.flush()
    }

    pub(crate) fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(limit)
    }

    pub(crate) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match &self.socket {
            Socket::Tcp(socket) => socket.set_nonblocking(nonblocking),
            Socket::Unix(socket) => socket.set_nonblocking(nonblocking),
        }
    }

    /// Waits until bytes can be read or, if asked for, written: which of them. Neither when the time is over or a
    /// signal came. What TLS has decrypted already does not count.
    pub(crate) fn wait(&self, writable: bool, limit: Option<Duration>) -> io::Result<(bool, bool)> {
        let mut events = PollFlags::IN;
        events.set(PollFlags::OUT, writable);
        let mut fds = [PollFd::new(self, events)];
        // A time that a timespec cannot hold is as good as none.
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let got = fds[0].revents();
        let failed = got.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
        Ok((failed || got.contains(PollFlags::IN), failed || got.contains(PollFlags::OUT)))
    }

    /// Ends both directions; a thread that reads gets the end.
    pub(crate) fn shutdown(&self) {
        // What is closed already is what is wanted.
        let _ = match &self.socket {
            Socket::Tcp(socket) => socket.shutdown(Shutdown::Both),
            Socket::Unix(socket) => socket.shutdown(Shutdown::Both),
        };
    }

    /// The socket, and TLS if there is some.
    pub(crate) fn into_wire(self) -> (Socket, Option<Box<crate::fleet::Session>>) {
        #[cfg(feature = "tls")]
        let session = self.tls.map(|tls| Box::new(tls.into_session()));
        #[cfg(not(feature = "tls"))]
        let session = None;
        (self.socket, session)
    }

    pub(crate) fn into_socket(self) -> Result<Socket> {
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            return Err(Error::Config("the socket is under TLS".into()));
        }
        Ok(self.socket)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn refused(config: &Config, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            Error::Timeout(Waiting::Connect, config.timeouts.connect.unwrap_or_default())
        }
        _ => Error::Connect { address: config.address.to_string(), source: Arc::new(source) },
    }
}

/// Tries the addresses of the name in turn.
fn connect_tcp(config: &Config, host: &str, port: u16) -> Result<TcpStream> {
    let resolve = |source| Error::Resolve { host: host.to_string(), source: Arc::new(source) };
    let addresses = (host, port).to_socket_addrs().map_err(resolve)?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses.take(ADDRESSES_MAX) {
        let connected = match config.timeouts.connect {
            Some(limit) => TcpStream::connect_timeout(&address, limit.max(SHORTEST)),
            None => TcpStream::connect(address),
        };
        match connected.and_then(prepare) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(refused(config, last))
}

/// Requests leave at once, and a peer that vanished without a word is noticed, if late.
fn prepare(socket: TcpStream) -> io::Result<TcpStream> {
    socket.set_nodelay(true)?;
    set_socket_keepalive(&socket, true)?;
    Ok(socket)
}

/// What is left of a time that ends at `deadline`.
pub(crate) fn remaining(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
}
