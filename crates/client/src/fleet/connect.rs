//! Making a connection: address, protocol, who one is. Owns the handshake, which blocks with a limit.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weft_protocol::reply::{Reply, ReplyBuilder};
use weft_protocol::respb::{Mode, RequestWriter};
use weft_protocol::{Arg, Limits, Outcome, resp, respb};

use super::Error;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Host, by name or number, and port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// RESP2, which every server speaks.
    Resp2,
    /// RESP3.
    Resp3,
    /// RESPB/1: binary, with channels.
    Respb,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Resp2 => "RESP2",
            Protocol::Resp3 => "RESP3",
            Protocol::Respb => "RESPB",
        })
    }
}

/// A server, and as whom one speaks to it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it is.
    pub address: Address,
    /// Which protocol is spoken.
    pub protocol: Protocol,
    /// The user; without it `password` is the default user's.
    pub username: Option<String>,
    /// The password; without it nobody is authenticated.
    pub password: Option<String>,
    /// The database.
    pub db: u32,
    /// The longest time without any answer while one is due, and the longest time a connection takes.
    pub patience: Duration,
}

impl Target {
    /// The default user, database 0, ten seconds of patience.
    pub fn new(address: Address, protocol: Protocol) -> Target {
        Target { address, protocol, username: None, password: None, db: 0, patience: Duration::from_secs(10) }
    }
}

/// A connection that waits for each answer: for what is asked before and after a run.
#[derive(Debug)]
pub struct Session {
    stream: Stream,
    protocol: Protocol,
    patience: Duration,
    received: Vec<u8>,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Bytes that are asked for at once.
const READ_BYTES: usize = 16 << 10;

impl Session {
    /// Connects and says who one is.
    pub fn open(target: &Target) -> Result<Session, Error> {
        let stream = Stream::connect(&target.address, target.patience)
            .map_err(|source| Error::Connect { address: target.address.to_string(), source })?;
        stream.limit(target.patience)?;
        let patience = target.patience;
        let mut session = Session { stream, protocol: Protocol::Resp2, patience, received: Vec::new() };
        session.greet(target)?;
        Ok(session)
    }

    /// One request in RESP2 at least, so that a connection is known to be accepted before the next one is made.
    fn greet(&mut self, target: &Target) -> Result<(), Error> {
        let credentials: Vec<&str> = match (&target.username, &target.password) {
            (user, Some(password)) => vec![user.as_deref().unwrap_or("default"), password],
            _ => Vec::new(),
        };
        match target.protocol {
            Protocol::Resp2 if credentials.is_empty() => self.step("PING", &["PING"])?,
            Protocol::Resp2 if target.username.is_none() => self.step("AUTH", &["AUTH", credentials[1]])?,
            Protocol::Resp2 => self.step("AUTH", &["AUTH", credentials[0], credentials[1]])?,
            Protocol::Resp3 | Protocol::Respb => {
                let respb = target.protocol == Protocol::Respb;
                let mut hello = vec!["HELLO", "3"];
                if respb {
                    hello.extend(["PROTO", "respb"]);
                }
                if !credentials.is_empty() {
                    hello.push("AUTH");
                    hello.extend(&credentials);
                }
                match self.ask(&hello)? {
                    Reply::Error(text) => {
                        let text = String::from_utf8_lossy(&text).into_owned();
                        let credentials = ["WRONGPASS", "NOAUTH", "NOPERM"];
                        return Err(if respb && !credentials.iter().any(|code| text.starts_with(code)) {
                            Error::NoRespb(text)
                        } else {
                            Error::Refused { step: "HELLO", text }
                        });
                    }
                    _ => self.protocol = target.protocol,
                }
            }
        }
        if target.db != 0 {
            self.step("SELECT", &["SELECT", &target.db.to_string()])?;
        }
        Ok(())
    }

    fn step(&mut self, step: &'static str, argv: &[&str]) -> Result<(), Error> {
        match self.ask(argv)? {
            Reply::Error(text) => {
                Err(Error::Refused { step, text: String::from_utf8_lossy(&text).into_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Sends a command on channel 0 and waits for its reply.
    pub fn ask<T: AsRef<[u8]>>(&mut self, argv: &[T]) -> Result<Reply, Error> {
        self.send(0, argv)?;
        self.reply()
    }

    /// Selects a database on further channels, where each begins with database 0.
    pub(super) fn select_on_channels(&mut self, channels: u32, db: u32) -> Result<(), Error> {
        for channel in 1..channels {
            self.send(channel as u16, &["SELECT", &db.to_string()])?;
            if let Reply::Error(text) = self.reply()? {
                let text = String::from_utf8_lossy(&text).into_owned();
                return Err(Error::Refused { step: "SELECT", text });
            }
        }
        Ok(())
    }

    fn send<T: AsRef<[u8]>>(&mut self, channel: u16, argv: &[T]) -> Result<(), Error> {
        let mut request = Vec::new();
        if self.protocol == Protocol::Respb {
            RequestWriter::new(&mut request, channel).command(argv, Mode::Exact);
        } else {
            let args: Vec<Arg<'_>> = argv.iter().map(|arg| Arg::Bytes(arg.as_ref())).collect();
            resp::encode::request(None, args.as_slice(), &mut request);
        }
        self.stream.write(&request).map_err(|error| self.failed(error))
    }

    /// The next reply; pushes are passed over.
    fn reply(&mut self) -> Result<Reply, Error> {
        let mut resp = resp::reply::ReplyDecoder::new(Limits::DEFAULT);
        let mut respb = respb::ReplyDecoder::new(Limits::DEFAULT);
        let mut builder = ReplyBuilder::new();
        loop {
            let outcome = match self.protocol {
                Protocol::Respb => match respb.decode(&self.received, &mut builder) {
                    Outcome::Complete(frame) => {
                        Outcome::Complete((frame.len, frame.kind == respb::reply::ReplyKind::Reply))
                    }
                    Outcome::Incomplete { need } => Outcome::Incomplete { need },
                    Outcome::Invalid(error) => Outcome::Invalid(error),
                },
                _ => match resp.decode(&self.received, &mut builder) {
                    Outcome::Complete(frame) => Outcome::Complete((frame.len, !frame.push)),
                    Outcome::Incomplete { need } => Outcome::Incomplete { need },
                    Outcome::Invalid(error) => Outcome::Invalid(error),
                },
            };
            match outcome {
                Outcome::Complete((len, is_reply)) => {
                    self.received.drain(..len);
                    let reply = builder.take();
                    if let Some(reply) = reply.filter(|_| is_reply) {
                        return Ok(reply);
                    }
                }
                Outcome::Incomplete { .. } => self.receive()?,
                Outcome::Invalid(error) => return Err(Error::Malformed(error)),
            }
        }
    }

    fn receive(&mut self) -> Result<(), Error> {
        let mut buffer = [0; READ_BYTES];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(Error::Closed),
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Silent(self.patience),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Error::Closed,
            _ => Error::Io(error),
        }
    }

    /// The socket, from now on without waiting.
    pub(super) fn into_socket(self) -> io::Result<OwnedFd> {
        Ok(match self.stream {
            Stream::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                stream.into()
            }
            Stream::Unix(stream) => {
                stream.set_nonblocking(true)?;
                stream.into()
            }
        })
    }
}

impl Stream {
    fn connect(address: &Address, patience: Duration) -> io::Result<Stream> {
        match address {
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path)?)),
            Address::Tcp(host, port) => {
                let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, patience) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(Stream::Tcp(stream));
                        }
                        Err(error) => failure = error,
                    }
                }
                Err(failure)
            }
        }
    }

    fn limit(&self, patience: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream
                .set_read_timeout(Some(patience))
                .and_then(|()| stream.set_write_timeout(Some(patience))),
            Stream::Unix(stream) => stream
                .set_read_timeout(Some(patience))
                .and_then(|()| stream.set_write_timeout(Some(patience))),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
        }
    }
}

/// Lets this process have as many files open as the system allows; returns how many that are.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused the old limit holds, and a connection too many fails with its reason.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
