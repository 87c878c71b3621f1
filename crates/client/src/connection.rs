//! Owns one connection that one thread uses at a time: what is sent, what is due, what has arrived. Does not own the
//! socket, the encodings, nor what a command does to the session.

mod arrival;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use weft_protocol::respb::Control;
use weft_protocol::{Reply, table};

use crate::codec::{Decoder, Encoder};
use crate::config::{Config, Protocol, Timeouts};
use crate::error::{Error, Result, ServerError, Waiting};
use crate::handshake::{self, ServerInfo, Step};
use crate::input::Input;
use crate::pipeline::Pipeline;
use crate::raw::Raw;
use crate::session::{Change, Session};
use crate::stream::{Socket, Stream, remaining};
use crate::value::{FromReply, convert};
use crate::waiting::Patience;

/// Sent and unanswered bytes above which a write also reads: both sides would otherwise wait for each other once the
/// replies fill the buffers between them.
const DUPLEX_BYTES: usize = 64 << 10;
/// Unsent bytes above which [`Connection::send`] sends.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// A connection to a server; over RESPB one channel of it, 0 unless [`Config::channel`] says another.
///
/// ```no_run
/// # fn main() -> Result<(), weft_client::Error> {
/// use weft_client::{Config, Connection, Protocol};
///
/// let config = Config::new("localhost", 6379).with_protocol(Protocol::Respb);
/// let mut connection = Connection::connect(&config)?;
/// for n in 0..100 {
///     connection.send(&["INCRBY", "sum", &n.to_string()])?;
/// }
/// for _ in 0..100 {
///     println!("{:?}", connection.receive()?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    encoder: Encoder,
    decoder: Decoder,
    input: Input,
    output: Vec<u8>,
    /// Requests that are not answered, in order.
    expected: VecDeque<Expected>,
    /// Confirmations of the foremost request, which asks for subscriptions, and how many are still to come.
    gathered: Vec<Reply>,
    gather_left: Option<usize>,
    /// Replies that came while a push was waited for; as many as requests were made.
    replies: VecDeque<Reply>,
    /// At most `pushes_max`.
    pushes: VecDeque<Reply>,
    pushes_max: usize,
    session: Session,
    server: ServerInfo,
    timeouts: Timeouts,
    /// The time that the socket has for reading.
    read_limit: Option<Duration>,
    channel: u16,
    /// The number of the next request on the channel.
    sequence: u32,
    /// Bytes sent since all was answered.
    unanswered_bytes: usize,
    finished: bool,
    /// GOAWAY has come, with this.
    goes_away: Option<Error>,
}

/// A request that is not answered.
#[derive(Debug)]
pub(crate) struct Expected {
    patience: Patience,
    change: Option<Box<Change>>,
}

/// What came from the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The answer to the oldest unanswered request.
    Reply(Reply),
    /// Something that answers nothing: a message, an invalidation, a line of MONITOR.
    Push(Reply),
}

impl Connection {
    /// Connects, negotiates the protocol, authenticates, names the connection and selects the database.
    ///
    /// A server that does not speak the protocol gives [`Error::NoProtocol`], a refused password
    /// [`Error::Handshake`].
    pub fn connect(config: &Config) -> Result<Connection> {
        // RESPB is asked for in RESP3 (section 7.2).
        let first = if config.protocol == Protocol::Respb { Protocol::Resp3 } else { config.protocol };
        let encoder = Encoder::of(&Config { protocol: first, ..config.clone() });
        let mut connection = Connection {
            stream: Stream::connect(config)?,
            encoder,
            decoder: Decoder::new(first, config.limits, config.capabilities),
            input: Input::default(),
            output: Vec::new(),
            expected: VecDeque::new(),
            gathered: Vec::new(),
            gather_left: None,
            replies: VecDeque::new(),
            pushes: VecDeque::new(),
            pushes_max: config.pushes_max,
            session: Session::new(config),
            server: ServerInfo::default(),
            timeouts: config.timeouts,
            read_limit: config.timeouts.reply,
            channel: 0,
            sequence: 0,
            unanswered_bytes: 0,
            finished: false,
            goes_away: None,
        };
        if let Some((_, args)) = handshake::hello(config) {
            connection.enqueue(&args)?;
            let reply = connection.receive()?;
            connection.server = handshake::info(config, reply)?;
        }
        if let Some(respb) = &connection.server.respb
            && config.protocol == Protocol::Respb
        {
            connection.encoder = Encoder::new(Protocol::Respb, &config.limits);
            connection.encoder.set_server(respb);
            connection.decoder = Decoder::new(Protocol::Respb, config.limits, config.capabilities);
            connection.sequence = 0;
            connection.channel = config.channel;
        }
        if config.channel != 0 {
            connection.run_steps(&handshake::for_channel(config))?;
        } else {
            connection.run_steps(&handshake::after_hello(config))?;
        }
        Ok(connection)
    }

    /// Runs commands of a handshake in one round trip.
    pub(crate) fn run_steps(&mut self, steps: &[Step]) -> Result<()> {
        for (_, args) in steps {
            self.enqueue(args)?;
        }
        let mut refused = None;
        for (step, _) in steps {
            if let Reply::Error(text) = self.receive()? {
                refused
                    .get_or_insert(Error::Handshake { step: step.clone(), error: ServerError::new(&text) });
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Sends a command, its name first, and gives its reply; an error reply as [`Error::Server`].
    pub fn command<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Result<Reply> {
        match self.exchange(args)? {
            Reply::Error(text) => Err(Error::Server(ServerError::new(&text))),
            reply => Ok(reply),
        }
    }

    /// Like [`command`](Self::command), with the reply as a type of Rust.
    pub fn query<V: FromReply>(&mut self, args: &[impl AsRef<[u8]>]) -> Result<V> {
        convert(self.command(args)?)
    }

    /// Like [`command`](Self::command), with an error reply as a [`Reply`].
    pub fn exchange<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Result<Reply> {
        self.idle()?;
        self.send(args)?;
        self.receive()
    }

    /// An error unless the next reply belongs to the next request.
    pub(crate) fn idle(&self) -> Result<()> {
        self.usable()?;
        if !self.is_idle() {
            return Err(Error::Config("earlier requests have replies that were not received".into()));
        }
        Ok(())
    }

    /// Notes a request for sending, and gives its number on the channel. It leaves with the next
    /// [`flush`](Self::flush) or receiving, or when 64 KiB have come together.
    pub fn send<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Result<u32> {
        refuse(self.session.protocol(), args)?;
        self.enqueue(args)
    }

    fn enqueue<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Result<u32> {
        self.usable()?;
        self.look_behind()?;
        self.encoder.encode(self.channel, args, &mut self.output)?;
        self.expected.push_back(Expected::of(args));
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        if self.output.len() > OUTPUT_BYTES_MAX {
            self.flush()?;
        }
        Ok(sequence)
    }

    /// Requests that are added one by one and sent together; see [`Pipeline`].
    pub fn pipeline(&mut self) -> Pipeline<'_> {
        Pipeline::new(self)
    }

    /// The channel that requests go to, and what encodes them.
    pub(crate) fn encoder(&self) -> (u16, Encoder) {
        (self.channel, self.encoder.clone())
    }

    /// Sends requests that were encoded elsewhere.
    pub(crate) fn send_encoded(&mut self, bytes: &mut Vec<u8>, expected: &mut Vec<Expected>) -> Result<()> {
        self.usable()?;
        self.look_behind()?;
        self.output.append(bytes);
        self.sequence = self.sequence.wrapping_add(expected.len() as u32);
        self.expected.extend(expected.drain(..));
        self.flush()
    }

    /// Sends what is noted.
    pub fn flush(&mut self) -> Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        self.usable()?;
        if self.goes_away.is_some() {
            // The server would throw it away. Whoever waits for an answer is told at the end of the stream.
            self.output.clear();
            return Ok(());
        }
        self.unanswered_bytes += self.output.len();
        let written = if self.unanswered_bytes > DUPLEX_BYTES {
            self.write_and_read()
        } else {
            let limit = self.timeouts.write;
            let written = self.stream.write_all(&self.output);
            written.map_err(|error| Error::from_socket(error, Waiting::Write, limit))
        };
        self.output.clear();
        if self.output.capacity() > 4 * OUTPUT_BYTES_MAX {
            self.output = Vec::new();
        }
        written.map_err(|error| self.fail(error))
    }

    /// Writes the output and reads what comes meanwhile.
    fn write_and_read(&mut self) -> Result<()> {
        let limit = self.timeouts.write;
        let io = |error| Error::from_socket(error, Waiting::Write, limit);
        self.stream.set_nonblocking(true).map_err(io)?;
        let result = self.write_and_read_nonblocking();
        self.stream.set_nonblocking(false).map_err(io)?;
        result
    }

    fn write_and_read_nonblocking(&mut self) -> Result<()> {
        let limit = self.timeouts.write;
        let io = |error| Error::from_socket(error, Waiting::Write, limit);
        let mut at = 0;
        let mut deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            let written = match self.output.get(at..) {
                Some([]) | None => self.stream.flush().map(|()| 0),
                Some(rest) => self.stream.write(rest),
            };
            match written {
                Ok(_) if at == self.output.len() => return Ok(()),
                Ok(len) => {
                    at += len;
                    deadline = limit.map(|limit| Instant::now() + limit);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(io(error)),
            }
            let left = remaining(deadline);
            if left == Some(Duration::ZERO) {
                return Err(Error::Timeout(Waiting::Write, limit.unwrap_or_default()));
            }
            let (readable, _) = self.stream.wait(true, left).map_err(io)?;
            if readable {
                match self.stream.read(self.input.spare()) {
                    Ok(0) => return Err(Error::Closed),
                    Ok(len) => self.input.add(len),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(io(error)),
                }
            }
        }
    }

    /// The answer to the oldest unanswered request; an error reply as a [`Reply`]. Pushes that come before it are kept
    /// for [`receive_push`](Self::receive_push).
    pub fn receive(&mut self) -> Result<Reply> {
        self.usable()?;
        self.flush()?;
        if let Some(reply) = self.replies.pop_front() {
            return Ok(reply);
        }
        let Some(expected) = self.expected.front() else {
            return Err(Error::Config("every request has been answered".into()));
        };
        let limit = expected.patience.limit(self.timeouts.reply);
        let started = Instant::now();
        loop {
            match self.arrive(limit)? {
                Some(Event::Reply(reply)) => return Ok(reply),
                Some(Event::Push(push)) => {
                    self.keep_push(push)?;
                    // Pushes are no sign that the reply comes.
                    if limit.is_none_or(|limit| started.elapsed() < limit) {
                        continue;
                    }
                }
                None => {}
            }
            return Err(self.fail(Error::Timeout(Waiting::Reply, limit.unwrap_or_default())));
        }
    }

    /// What has come behind the last reply while nothing is asked for: pushes. A reply would be taken for that of the
    /// next request, so it is the end (section 8.1).
    fn look_behind(&mut self) -> Result<()> {
        while self.expected.is_empty() && !self.input.filled().is_empty() {
            match self.arrived()? {
                Some(Event::Push(push)) => self.keep_push(push)?,
                Some(Event::Reply(reply)) => self.replies.push_back(reply),
                None => break,
            }
        }
        Ok(())
    }

    fn keep_push(&mut self, push: Reply) -> Result<()> {
        if self.pushes.len() >= self.pushes_max {
            return Err(self.fail(Error::TooManyPushes(self.pushes_max)));
        }
        self.pushes.push_back(push);
        Ok(())
    }

    /// The next push, a [`Reply::Push`] over each protocol; none when the time is over. Replies that come before it are
    /// kept for [`receive`](Self::receive).
    pub fn receive_push(&mut self, limit: Option<Duration>) -> Result<Option<Reply>> {
        self.usable()?;
        self.flush()?;
        if let Some(push) = self.pushes.pop_front() {
            return Ok(Some(push));
        }
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            match self.arrive(remaining(deadline))? {
                Some(Event::Push(push)) => return Ok(Some(push)),
                Some(Event::Reply(reply)) => self.replies.push_back(reply),
                None => return Ok(None),
            }
        }
    }

    /// Whatever comes next; none when the time is over, after which the connection goes on. With a limit of zero it
    /// does not wait, which is what a loop over [`AsFd`] needs: to be called until it gives none.
    pub fn next_event(&mut self, limit: Option<Duration>) -> Result<Option<Event>> {
        self.usable()?;
        self.flush()?;
        if let Some(push) = self.pushes.pop_front() {
            return Ok(Some(Event::Push(push)));
        }
        if let Some(reply) = self.replies.pop_front() {
            return Ok(Some(Event::Reply(reply)));
        }
        self.arrive(limit)
    }

    /// Subscribes to channels. Messages are [pushes](Self::receive_push).
    pub fn subscribe<T: AsRef<[u8]>>(&mut self, channels: &[T]) -> Result<()> {
        self.subscription("SUBSCRIBE", channels)
    }

    /// Subscribes to patterns of channels.
    pub fn psubscribe<T: AsRef<[u8]>>(&mut self, patterns: &[T]) -> Result<()> {
        self.subscription("PSUBSCRIBE", patterns)
    }

    /// Ends subscriptions to channels; with no names, to all.
    pub fn unsubscribe<T: AsRef<[u8]>>(&mut self, channels: &[T]) -> Result<()> {
        self.subscription("UNSUBSCRIBE", channels)
    }

    /// Ends subscriptions to patterns; with no names, to all.
    pub fn punsubscribe<T: AsRef<[u8]>>(&mut self, patterns: &[T]) -> Result<()> {
        self.subscription("PUNSUBSCRIBE", patterns)
    }

    fn subscription<T: AsRef<[u8]>>(&mut self, command: &str, names: &[T]) -> Result<()> {
        let mut args = vec![command.as_bytes()];
        args.extend(names.iter().map(AsRef::as_ref));
        self.command(&args).map(drop)
    }

    /// RESPB: ends the request of this number if it waits or blocks; it then answers `CANCELLED`. Otherwise nothing
    /// happens (section 8.6).
    pub fn cancel(&mut self, sequence: u32) -> Result<()> {
        if self.session.protocol() != Protocol::Respb {
            return Err(Error::Config("only RESPB can cancel a request".into()));
        }
        self.usable()?;
        Control::Cancel { sequence }.encode(self.channel, &mut self.output);
        self.flush()
    }

    /// What the session is like.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What the server said of itself.
    pub fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// The waits in force.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Changes the longest wait for a reply.
    pub fn set_reply_timeout(&mut self, limit: Option<Duration>) {
        self.timeouts.reply = limit;
    }

    /// Whether every request has been answered and every answer received.
    pub fn is_idle(&self) -> bool {
        self.expected.is_empty() && self.replies.is_empty()
    }

    /// Whether another user of the connection would find it as it was made.
    pub(crate) fn is_as_made(&self, config: &Config) -> bool {
        !self.finished
            && self.is_idle()
            && self.output.is_empty()
            && self.pushes.is_empty()
            && self.session.is_fresh(config)
    }

    /// Whether the server has not ended the connection, as far as is known here. Asks the socket, not the server.
    pub fn is_open(&mut self) -> bool {
        if self.usable().is_err() || self.goes_away.is_some() {
            return false;
        }
        match self.stream.wait(false, Some(Duration::ZERO)) {
            Ok((false, _)) => return true,
            Ok((true, _)) => {}
            Err(_) => return false,
        }
        // What has come may be the end of the channel as well as a push.
        loop {
            match self.arrive(Some(Duration::ZERO)) {
                Ok(None) => return self.goes_away.is_none(),
                Ok(Some(Event::Reply(reply))) => self.replies.push_back(reply),
                Ok(Some(Event::Push(push))) => {
                    if self.keep_push(push).is_err() {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
    }

    /// The socket, for an event loop of one's own with [`Encoder`] and [`Decoder`]; the handshake is done. Not under
    /// TLS, and only while everything sent is answered.
    pub fn into_socket(self) -> Result<Socket> {
        if !self.is_idle() || !self.input.filled().is_empty() {
            return Err(Error::Config("something has arrived, or is due".into()));
        }
        self.stream.into_socket()
    }

    /// The connection as bytes, under TLS too, for what is no request and reply; only while everything sent is
    /// answered.
    pub fn into_raw(self) -> Result<Raw> {
        self.idle()?;
        Ok(Raw::new(self.stream, self.input))
    }

    /// The connection as a socket that waits for nothing, for an event loop of one's own; nothing may be due.
    pub fn without_waiting(self) -> Result<crate::fleet::Wire> {
        crate::fleet::without_waiting(self)
    }

    /// The socket, and TLS if there is some; nothing may be due or have come.
    pub(crate) fn into_wire(self) -> Result<(Socket, Option<Box<crate::fleet::Session>>)> {
        self.idle()?;
        if !self.input.filled().is_empty() {
            return Err(Error::Config("something has arrived".into()));
        }
        Ok(self.stream.into_wire())
    }

    pub(crate) fn next_sequence(&self) -> u32 {
        self.sequence
    }

    /// What a shared connection goes on with; nothing must be due.
    pub(crate) fn into_parts(self) -> Result<(Stream, Encoder, Decoder, Input, ServerInfo)> {
        self.idle()?;
        Ok((self.stream, self.encoder, self.decoder, self.input, self.server))
    }

    fn usable(&self) -> Result<()> {
        if self.finished { Err(Error::Finished) } else { Ok(()) }
    }

    /// Ends the connection because of an error, and gives the error back.
    pub(crate) fn fail(&mut self, error: Error) -> Error {
        self.finished = true;
        self.stream.shutdown();
        error
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Expected {
    pub(crate) fn of<T: AsRef<[u8]>>(args: &[T]) -> Expected {
        Expected { patience: Patience::of(args), change: Change::of(args).map(Box::new) }
    }
}

/// Whether a command is one for a session that lasts: over HTTP nothing of it would.
fn needs_session<T: AsRef<[u8]>>(args: &[T]) -> bool {
    let Some(name) = args.first() else { return false };
    let Some(id) = table::by_name(name.as_ref()) else { return false };
    let streams = id.spec().policy & table::policy::STREAMS != 0;
    streams || id.spec().acl & table::acl::TRANSACTION != 0 || Change::of(args).is_some()
}

/// Commands that would break the rule of one reply for each request, or change the protocol under way.
pub(crate) fn refuse<T: AsRef<[u8]>>(protocol: Protocol, args: &[T]) -> Result<()> {
    let Some(name) = args.first().map(AsRef::as_ref) else { return Ok(()) };
    if protocol == Protocol::Http && needs_session(args) {
        let name = String::from_utf8_lossy(name).to_ascii_uppercase();
        return Err(Error::Config(format!(
            "{name} is for what comes behind it, and over HTTP each request is for itself: use RESP"
        )));
    }
    let is = |index: usize, word: &str| {
        args.get(index).is_some_and(|arg| arg.as_ref().eq_ignore_ascii_case(word.as_bytes()))
    };
    let refused = match name.len() {
        4 if is(0, "SYNC") => "SYNC",
        5 if is(0, "PSYNC") => "PSYNC",
        5 if is(0, "HELLO") && (2..args.len()).any(|index| is(index, "PROTO")) => "HELLO with PROTO",
        6 if is(0, "CLIENT") && is(1, "REPLY") && !is(2, "ON") => "CLIENT REPLY",
        _ => return Ok(()),
    };
    Err(Error::Config(format!("{refused} is not available in this client")))
}
