//! Owns: a hostile client's connections and what they count. Does not own: what is sent over them (`attacks`).

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};
use weft_client::{CAPABILITY_FRAGMENT, Decoder, Incoming, Limits, Protocol, Reply, TlsConfig};

use crate::rng::Rng;
use crate::web::Answer;
use crate::words::{as_resp, frame};

/// Their user, who may use keys that begin with `a:`.
pub(crate) const USER: (&str, &str) = ("attacker", "a-known-secret");
/// Keys that they share: few, so that they meet each other's.
pub(crate) const KEYS: usize = 16;
/// How long a server that takes nothing is waited for.
const WRITE_MAX: Duration = Duration::from_millis(200);
/// How long silence is waited for before it counts as the end of what comes.
const SILENCE: Duration = Duration::from_millis(10);
/// An answer that must come takes no longer, unless it is lost: minutes, since a machine with other work stalls.
const ANSWER_MAX: Duration = Duration::from_secs(120);
/// What is read of answers that nobody wants.
const DRAINED_BYTES_MAX: usize = 4 << 20;

/// How an attack ends early.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The server has cut it off, or takes nothing more: what it should do to such a client.
    Cut(#[expect(dead_code, reason = "what the report of a finding shows")] io::Error),
    /// The server has done what it must not.
    Wrong(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Cut(error)
    }
}

pub(crate) type Outcome = Result<(), Trouble>;

pub(crate) fn wrong<T>(text: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Wrong(text.into()))
}

/// Nothing was done, since a script of somebody takes its time.
pub(crate) fn is_busy(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with(b"BUSY "))
}

/// Nothing was done, since memory is full.
pub(crate) fn is_full(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.starts_with(b"OOM "))
}

/// The machine stood still for longer than `auth-timeout`: a client is cut off as it should be.
pub(crate) fn is_late(incoming: &Incoming) -> bool {
    const HINT: &str = "send AUTH or HELLO first";
    match incoming {
        Incoming::Reply { reply: Reply::Error(text), .. } => text.ends_with(HINT.as_bytes()),
        Incoming::GoAway { reason, .. } => reason.ends_with(HINT),
        _ => false,
    }
}

/// Where the server is and how TLS is spoken to it.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Arc<rustls::ClientConfig>,
    /// Requests may have to wait for the end of a pause, and who ends sending meanwhile is not answered.
    pub(crate) pauses: bool,
}

impl Target {
    pub(crate) fn new(port: u16, pauses: bool) -> weft_client::Result<Self> {
        let insecure = TlsConfig { insecure: true, ..TlsConfig::default() };
        let tls = Arc::new(weft_client::tls_client_config(&insecure)?);
        Ok(Self { address: ([127, 0, 0, 1], port).into(), tls, pauses })
    }
}

/// What an attack has come to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rounds: u64,
    pub(crate) connections: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    /// Rounds that the server has ended by closing, or by taking nothing more.
    pub(crate) cut: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, connections, cut, sent_bytes, received_bytes } = self;
        let (sent, received) = (sent_bytes >> 10, received_bytes >> 10);
        write!(f, "{rounds:>7} {connections:>11} {cut:>7} {sent:>9} {received:>9}")
    }
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.connections += other.connections;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.cut += other.cut;
    }
}

/// One hostile client: where to, its dice, what it has done in this round, when the round must end.
pub(crate) struct Hostile {
    pub(crate) target: Target,
    pub(crate) rng: Rng,
    pub(crate) tally: Tally,
    pub(crate) until: Instant,
    /// Rounds so far.
    pub(crate) rounds: u64,
}

/// A connection, plain or under TLS.
pub(crate) struct Line {
    stream: Stream,
    /// What has come and was not looked at.
    received: Vec<u8>,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Hostile {
    pub(crate) fn new(target: &Target, seed: u64) -> Self {
        let (target, rng) = (target.clone(), Rng::new(seed));
        Self { target, rng, tally: Tally::default(), until: Instant::now(), rounds: 0 }
    }

    /// Throws away what hostile clients have stored, so that an hour of them does not fill the memory.
    pub(crate) fn throw_away(&mut self) -> Outcome {
        let mut line = self.authenticated()?;
        let keys = (0..KEYS).map(|at| format!("a:{at}"));
        let words: Vec<String> = std::iter::once("UNLINK".to_string()).chain(keys).collect();
        line.send(&as_resp(&words))?;
        line.drain();
        self.end(line);
        Ok(())
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    pub(crate) fn socket(&mut self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect_timeout(&self.target.address, ANSWER_MAX)?;
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(WRITE_MAX))?;
        socket.set_read_timeout(Some(ANSWER_MAX))?;
        self.tally.connections += 1;
        Ok(socket)
    }

    pub(crate) fn plain(&mut self) -> Result<Line, Trouble> {
        Ok(Line::new(Stream::Plain(self.socket()?)))
    }

    pub(crate) fn tls(&mut self) -> Result<Line, Trouble> {
        let socket = self.socket()?;
        Line::under(self.session()?, socket)
    }

    /// TLS that has not begun.
    pub(crate) fn session(&self) -> Result<ClientConnection, Trouble> {
        let name = rustls::pki_types::ServerName::from(self.target.address.ip());
        ClientConnection::new(Arc::clone(&self.target.tls), name)
            .map_err(|error| Trouble::Wrong(format!("no TLS to attack with: {error}")))
    }

    /// One or the other.
    pub(crate) fn line(&mut self) -> Result<Line, Trouble> {
        if self.rng.one_in(4) { self.tls() } else { self.plain() }
    }

    /// One that has authenticated, for RESP.
    pub(crate) fn authenticated(&mut self) -> Result<Line, Trouble> {
        let mut line = self.line()?;
        line.authenticate(Protocol::Resp2)?;
        Ok(line)
    }
    /// The same for RESPB.
    pub(crate) fn authenticated_respb(&mut self) -> Result<Line, Trouble> {
        let mut line = self.line()?;
        line.authenticate(Protocol::Respb)?;
        Ok(line)
    }

    /// What has passed over a connection that the round needs no more.
    pub(crate) fn count(&mut self, line: &Line) {
        self.tally.sent_bytes += line.sent_bytes;
        self.tally.received_bytes += line.received_bytes;
    }

    /// Ends it in one of the ways that there are.
    pub(crate) fn end(&mut self, mut line: Line) {
        self.count(&line);
        match self.rng.below(4) {
            0 => line.reset(),
            1 => {
                line.end_sending();
                line.drain();
            }
            2 => line.end_session(),
            _ => {}
        }
    }
    /// The same of many.
    pub(crate) fn end_all(&mut self, lines: Vec<Line>) {
        lines.into_iter().for_each(|line| self.end(line));
    }
}

impl Line {
    fn new(stream: Stream) -> Self {
        Self { stream, received: Vec::new(), sent_bytes: 0, received_bytes: 0 }
    }

    /// One under TLS, whose handshake is over or is brought to its end.
    pub(crate) fn under(mut session: ClientConnection, mut socket: TcpStream) -> Result<Self, Trouble> {
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(Self::new(Stream::Tls(Box::new(StreamOwned::new(session, socket)))))
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => &stream.sock,
        }
    }
    /// TLS of it, if it has some.
    pub(crate) fn session(&mut self) -> Option<&mut ClientConnection> {
        match &mut self.stream {
            Stream::Plain(_) => None,
            Stream::Tls(stream) => Some(&mut stream.conn),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent_bytes += bytes.len() as u64;
        match &mut self.stream {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }
    /// The same past TLS.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent_bytes += bytes.len() as u64;
        self.socket().write_all(bytes)
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = match &mut self.stream {
            Stream::Plain(socket) => socket.read(into)?,
            Stream::Tls(stream) => stream.read(into)?,
        };
        self.received_bytes += len as u64;
        Ok(len)
    }

    /// Reads what comes and throws it away, until nothing more does. Whether the server has closed.
    pub(crate) fn drain(&mut self) -> bool {
        self.received.clear();
        let _ = self.socket().set_read_timeout(Some(SILENCE));
        let mut buffer = vec![0; 64 << 10];
        let mut all = 0;
        while all < DRAINED_BYTES_MAX {
            match self.read(&mut buffer) {
                Ok(0) => return true,
                Ok(len) => all += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return true,
            }
        }
        let _ = self.socket().set_read_timeout(Some(ANSWER_MAX));
        false
    }

    /// Everything up to the end of the stream, which must come.
    pub(crate) fn until_closed(&mut self) -> Result<Vec<u8>, Trouble> {
        let mut all = std::mem::take(&mut self.received);
        let mut buffer = [0; 16 << 10];
        while all.len() < DRAINED_BYTES_MAX {
            match self.read(&mut buffer) {
                Ok(0) => return Ok(all),
                Ok(len) => all.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return wrong(format!("a connection that must end is open: {}", all.escape_ascii()));
                }
                Err(_) => return Ok(all),
            }
        }
        wrong("a connection that must end goes on to answer")
    }

    /// The next frame that the server sends.
    pub(crate) fn frame(&mut self, protocol: Protocol) -> Result<Incoming, Trouble> {
        let mut decoder = Decoder::new(protocol, Limits::DEFAULT, CAPABILITY_FRAGMENT);
        let mut buffer = [0; 16 << 10];
        loop {
            match decoder.decode(&self.received) {
                Ok(Some((len, incoming))) => {
                    self.received.drain(..len);
                    if let Some(incoming) = incoming {
                        return Ok(incoming);
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => {
                    let begins = self.received[..self.received.len().min(200)].escape_ascii();
                    return wrong(format!("what the server sends is no {protocol}: {error:?}: {begins}"));
                }
            }
            self.receive(&mut buffer)?;
        }
    }

    /// The next answer over HTTP.
    pub(crate) fn answer(&mut self) -> Result<Answer, Trouble> {
        let mut buffer = [0; 16 << 10];
        loop {
            match Answer::first(&self.received) {
                Ok(Some((len, answer))) => {
                    self.received.drain(..len);
                    return Ok(answer);
                }
                Ok(None) => self.receive(&mut buffer)?,
                Err(error) => return wrong(format!("what the server sends is no HTTP: {error:#}")),
            }
        }
    }

    /// Reads what must come.
    fn receive(&mut self, buffer: &mut [u8]) -> Outcome {
        match self.read(buffer) {
            Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(len) => {
                self.received.extend_from_slice(&buffer[..len]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wrong("an answer that must come does not")
            }
            Err(error) => Err(error.into()),
        }
    }

    fn authenticate(&mut self, protocol: Protocol) -> Outcome {
        let words = ["AUTH", USER.0, USER.1];
        let request = if protocol == Protocol::Respb { frame(0, &words) } else { as_resp(&words) };
        self.send(&request)?;
        match self.frame(protocol)? {
            Incoming::Reply { reply: Reply::Simple(text), .. } if text == b"OK" => Ok(()),
            late if is_late(&late) => Err(Trouble::Cut(io::ErrorKind::TimedOut.into())),
            other => wrong(format!("AUTH is answered {other:?}")),
        }
    }

    pub(crate) fn end_sending(&mut self) {
        // One that is closed already is as good.
        let _ = self.socket().shutdown(Shutdown::Write);
    }
    /// TLS says its farewell; the socket goes without one.
    fn end_session(&mut self) {
        if let Stream::Tls(stream) = &mut self.stream {
            stream.conn.send_close_notify();
            let _ = stream.conn.write_tls(&mut stream.sock);
        }
    }
    /// Closing sends a reset instead of an end.
    pub(crate) fn reset(self) {
        let _ = rustix::net::sockopt::set_socket_linger(self.socket(), Some(Duration::ZERO));
    }
}
