//! A server that knows nothing and answers everything: the floor of what a benchmark can measure, and the troublesome
//! peer of tests.
//!
//! Owns one event loop on one thread. A request is decoded once; the next ones that differ from it in their arguments'
//! bytes alone, and not in their name, cost comparisons of what stands between these and a copy of the reply. Whoever
//! subscribes gets all that is published, whatever it has subscribed to.

mod news;

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use weft_protocol::request::ArgVisitor;
use weft_protocol::table::{TABLE_HASH, TABLE_NAME, TABLE_VERSION};
use weft_protocol::{Arg, Limits, Outcome, Reply, resp, respb};

use news::{Message, News};

/// Requests that a connection knows; a further one takes the place of the oldest.
const KNOWN_MAX: usize = 16;
/// Where a RESPB frame names its channel.
const CHANNEL: Range<usize> = 2..4;
/// Bytes that are received at once; no request may be longer.
const RECEIVE_BYTES: usize = 1 << 20;
/// Connections at once; further ones wait in the backlog.
const CONNECTIONS_MAX: usize = 16_384;
/// The token of the listener.
const LISTENER: u64 = u64::MAX;
/// How often the end is looked for.
const TICK_NS: i64 = 50_000_000;
/// How long a client may not read before its connection is closed.
const SEND_PATIENCE_S: i64 = 30;

/// What goes wrong, after so many commands on all connections together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// Connections are closed and no more are taken.
    Dies(u64),
    /// Nothing is answered any more.
    FallsSilent(u64),
    /// Nothing is read any more.
    StopsReading(u64),
    /// Answers are bytes that are no reply.
    Garbage(u64),
    /// Answers are errors.
    Errors(u64),
    /// Each answer is given twice.
    Twice(u64),
}

/// The server, before it serves.
#[derive(Debug)]
pub struct Stub {
    listener: TcpListener,
    value: Vec<u8>,
    trouble: Trouble,
}

impl Stub {
    /// Listens at an address; values of GET have `value_bytes` bytes.
    pub fn bind(address: &str, value_bytes: usize, trouble: Trouble) -> io::Result<Stub> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Stub { listener, value: vec![b'x'; value_bytes], trouble })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is set; returns how many commands it was sent.
    pub fn serve(self, stop: &AtomicBool) -> io::Result<u64> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, self.listener.as_fd(), EventData::new_u64(LISTENER), EventFlags::IN)?;
        let mut serving = Serving {
            stub: self,
            epoll,
            peers: HashMap::new(),
            next: 0,
            buffer: vec![0; RECEIVE_BYTES],
            commands: 0,
            news: News::default(),
        };
        let mut events = Vec::with_capacity(512);
        while !stop.load(Ordering::Relaxed) {
            events.clear();
            let sleep = Timespec { tv_sec: 0, tv_nsec: TICK_NS };
            match epoll::wait(&serving.epoll, rustix::buffer::spare_capacity(&mut events), Some(&sleep)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    LISTENER => serving.accept()?,
                    id => serving.serve(id),
                }
            }
            serving.tell();
        }
        Ok(serving.commands)
    }
}

struct Serving {
    stub: Stub,
    epoll: OwnedFd,
    peers: HashMap<u64, Peer>,
    next: u64,
    buffer: Vec<u8>,
    commands: u64,
    news: News,
}

/// One connection.
struct Peer {
    socket: OwnedFd,
    binary: bool,
    /// The start of a request.
    rest: Vec<u8>,
    out: Vec<u8>,
    known: Vec<Known>,
    /// How many it has learned.
    learned: usize,
    /// Channels that have subscribed; over RESP the only one there is, 0.
    listens: Vec<u16>,
}

/// A request that has been decoded, and the reply to all that differ from it in the bytes of arguments alone: these
/// have its length.
struct Known {
    len: usize,
    /// What must be equal, with where it begins.
    fixed: Vec<(usize, Box<[u8]>)>,
    reply: Vec<u8>,
    /// What PUBLISH sends.
    message: Option<Message>,
}

impl Known {
    /// `free`: what may differ, in order.
    fn new(request: &[u8], free: &[Range<usize>], reply: Vec<u8>) -> Known {
        let ends = free.iter().map(|free| free.start).chain([request.len()]);
        let starts = [0].into_iter().chain(free.iter().map(|free| free.end));
        let between = starts.zip(ends).filter(|(start, end)| start < end);
        let fixed = between.map(|(start, end)| (start, request[start..end].into())).collect();
        Known { len: request.len(), fixed, reply, message: None }
    }
    #[inline]
    fn fits(&self, bytes: &[u8]) -> bool {
        bytes.len() >= self.len && self.fixed.iter().all(|(at, fixed)| bytes[*at..].starts_with(fixed))
    }
}

/// The arguments of a request, and where those stand that are bytes of it.
#[derive(Default)]
struct Arguments {
    argv: Vec<Vec<u8>>,
    places: Vec<Range<usize>>,
}

impl Arguments {
    fn push(&mut self, argument: Arg<'_>) {
        let mut text = Vec::new();
        argument.push_text(&mut text);
        self.argv.push(text);
    }
}

impl ArgVisitor for Arguments {
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.places.push(offset..offset + bytes.len());
        self.push(Arg::Bytes(bytes));
    }
    fn int(&mut self, value: i64) {
        self.push(Arg::Int(value));
    }
    fn double(&mut self, value: f64) {
        self.push(Arg::Double(value));
    }
    fn keyword(&mut self, word: &'static str) {
        self.push(Arg::Keyword(word));
    }
    fn quoted(&mut self, _offset: usize, raw: &[u8]) {
        self.push(Arg::Bytes(raw));
    }
}

impl Serving {
    fn accept(&mut self) -> io::Result<()> {
        while self.peers.len() < CONNECTIONS_MAX {
            let socket = match self.stub.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            let socket = OwnedFd::from(socket);
            epoll::add(&self.epoll, socket.as_fd(), EventData::new_u64(self.next), EventFlags::IN)?;
            let peer = Peer {
                socket,
                binary: false,
                rest: Vec::new(),
                out: Vec::new(),
                known: Vec::new(),
                learned: 0,
                listens: Vec::new(),
            };
            self.peers.insert(self.next, peer);
            self.next += 1;
        }
        Ok(())
    }

    fn serve(&mut self, id: u64) {
        let trouble = self.stub.trouble;
        if matches!(trouble, Trouble::StopsReading(after) if self.commands >= after) {
            if let Some(peer) = self.peers.get(&id) {
                // Left open, so that the client's bytes pile up.
                let _ = epoll::delete(&self.epoll, peer.socket.as_fd());
            }
            return;
        }
        let dies = matches!(trouble, Trouble::Dies(after) if self.commands >= after);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let count = &mut Count { commands: &mut self.commands, news: &mut self.news };
        if dies || !peer.exchange(&mut self.buffer, &self.stub, count) {
            self.news.leave(id, &peer.listens);
            self.peers.remove(&id);
        } else if !peer.listens.is_empty() {
            self.news.join(id, peer.listens.len(), peer.binary);
        }
    }

    /// Tells those who have subscribed what has been published.
    fn tell(&mut self) {
        for id in self.news.listeners() {
            let Some(peer) = self.peers.get_mut(&id) else { continue };
            self.news.write(peer.binary, &peer.listens, &mut peer.out);
            if !peer.send() {
                self.news.leave(id, &peer.listens);
                self.peers.remove(&id);
            }
        }
        self.news.forget();
    }
}

/// What requests of all connections add to.
struct Count<'s> {
    commands: &'s mut u64,
    news: &'s mut News,
}

impl Peer {
    /// Receives once and answers; returns whether the connection goes on.
    fn exchange(&mut self, buffer: &mut [u8], stub: &Stub, count: &mut Count<'_>) -> bool {
        let kept = self.rest.len();
        buffer[..kept].copy_from_slice(&self.rest);
        let received = match recv(&self.socket, &mut buffer[kept..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return false,
            Ok((received, _)) => received,
            Err(Errno::AGAIN | Errno::INTR) => return true,
            Err(_) => return false,
        };
        let bytes = &buffer[..kept + received];
        let mut at = 0;
        while at < bytes.len() {
            match self.request(&bytes[at..], stub, count) {
                Ok(0) => break,
                Ok(len) => at += len,
                Err(()) => return false,
            }
        }
        self.rest.clear();
        self.rest.extend_from_slice(&bytes[at..]);
        self.send()
    }

    /// Answers the request at the start of `bytes`; returns its length, or 0 when it is not whole.
    #[inline]
    fn request(&mut self, bytes: &[u8], stub: &Stub, count: &mut Count<'_>) -> Result<usize, ()> {
        if let Some(known) = self.known.iter().find(|known| known.fits(bytes)) {
            *count.commands += 1;
            if let Some(message) = &known.message {
                count.news.publish(message, bytes);
            }
            let before = self.out.len();
            self.out.extend_from_slice(&known.reply);
            if self.binary {
                self.out[before + CHANNEL.start..before + CHANNEL.end].copy_from_slice(&bytes[CHANNEL]);
            }
            if stub.trouble != Trouble::None {
                disturb(&mut self.out, self.binary, before, stub.trouble, *count.commands);
            }
            return Ok(known.len);
        }
        self.learn(bytes, stub, count)
    }

    /// Decodes the request and remembers the reply; HELLO, which may change the protocol, is answered at once.
    #[cold]
    fn learn(&mut self, bytes: &[u8], stub: &Stub, count: &mut Count<'_>) -> Result<usize, ()> {
        let mut arguments = Arguments::default();
        let (len, name) = if self.binary {
            match respb::RequestDecoder::new(Limits::DEFAULT).decode(bytes, &mut arguments) {
                Outcome::Complete(frame) => (frame.len, frame.frame.command().map(|id| id.spec().name)),
                Outcome::Incomplete { .. } => return Ok(0),
                Outcome::Invalid(_) => return Err(()),
            }
        } else {
            match resp::RequestDecoder::new(Limits::DEFAULT).decode(bytes, &mut arguments) {
                Outcome::Complete(frame) => (frame.len, None),
                Outcome::Incomplete { .. } => return Ok(0),
                Outcome::Invalid(_) => return Err(()),
            }
        };
        let Arguments { mut argv, places: mut free } = arguments;
        match name {
            Some(name) => argv.insert(0, name.as_bytes().to_vec()),
            // The first argument is the name.
            None => drop(free.drain(..free.len().min(1))),
        }
        if self.binary {
            free.insert(0, CHANNEL);
        }
        let name = argv.first().map_or(Vec::new(), |name| name.to_ascii_uppercase());
        let mut reply = Vec::new();
        let answer = match name.as_slice() {
            b"GET" => Reply::Bulk(stub.value.clone()),
            b"MGET" => Reply::Array(vec![Reply::Bulk(stub.value.clone()); argv.len() - 1]),
            b"PING" => Reply::Simple(b"PONG".to_vec()),
            b"HELLO" => hello(),
            b"CONFIG" => Reply::Array(vec![Reply::Bulk(b"save".to_vec()), Reply::Bulk(Vec::new())]),
            b"INCR" => Reply::Int(1),
            b"PUBLISH" => Reply::Int(count.news.count()),
            b"SUBSCRIBE" if self.binary => Reply::Simple(b"OK".to_vec()),
            b"SUBSCRIBE" => {
                let channel = argv.get(1).cloned().unwrap_or_default();
                Reply::Push(vec![Reply::Bulk(name.clone()), Reply::Bulk(channel), Reply::Int(1)])
            }
            _ => Reply::Simple(b"OK".to_vec()),
        };
        if self.binary {
            answer.visit(&mut respb::ReplyWriter::new(&mut reply, 0));
        } else {
            answer.visit(&mut resp::ReplyWriter::new(&mut reply, resp::Version::Resp3));
        }
        if matches!(name.as_slice(), b"HELLO" | b"CONFIG" | b"SUBSCRIBE") {
            let channel = if self.binary { [bytes[CHANNEL.start], bytes[CHANNEL.start + 1]] } else { [0; 2] };
            if self.binary {
                reply[CHANNEL].copy_from_slice(&channel);
            }
            if name == b"SUBSCRIBE" {
                self.listens.push(u16::from_be_bytes(channel));
            }
            self.out.extend_from_slice(&reply);
            if argv.iter().any(|arg| arg == b"respb") {
                self.binary = true;
                self.known.clear();
            }
            return Ok(len);
        }
        let mut known = Known::new(&bytes[..len], &free, reply);
        if name == b"PUBLISH"
            && let (Some(payload), Some(channel)) = (free.last(), argv.get(1))
        {
            known.message = Some(Message::new(channel, payload.clone()));
        }
        if self.known.len() < KNOWN_MAX {
            self.known.push(known);
        } else {
            self.known[self.learned % KNOWN_MAX] = known;
        }
        self.learned += 1;
        self.request(bytes, stub, count)
    }

    /// Sends all answers; returns whether the connection goes on.
    fn send(&mut self) -> bool {
        let mut sent = 0;
        while sent < self.out.len() {
            match send(&self.socket, &self.out[sent..], SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.can_send() => {}
                Err(_) => return false,
            }
        }
        self.out.clear();
        true
    }

    /// Waits for a client to read. It holds up the others, to whom this server has no duty.
    fn can_send(&self) -> bool {
        let mut polled = [PollFd::new(&self.socket, PollFlags::OUT)];
        let patience = Timespec { tv_sec: SEND_PATIENCE_S, tv_nsec: 0 };
        loop {
            match poll(&mut polled, Some(&patience)) {
                Err(Errno::INTR) => {}
                outcome => return outcome.is_ok_and(|count| count > 0),
            }
        }
    }
}

/// Spoils the answer that begins at `before`.
fn disturb(out: &mut Vec<u8>, binary: bool, before: usize, trouble: Trouble, commands: u64) {
    match trouble {
        Trouble::FallsSilent(after) if commands > after => out.truncate(before),
        Trouble::Garbage(after) if commands > after => {
            out.truncate(before);
            out.extend_from_slice(b"\x7fGARBAGE\r\n");
        }
        Trouble::Errors(after) if commands > after => {
            let channel = u16::from_be_bytes([out[before + 2], out[before + 3]]);
            out.truncate(before);
            let answer = Reply::Error(b"ERR trouble".to_vec());
            if binary {
                answer.visit(&mut respb::ReplyWriter::new(out, channel));
            } else {
                answer.visit(&mut resp::ReplyWriter::new(out, resp::Version::Resp2));
            }
        }
        Trouble::Twice(after) if commands > after => out.extend_from_within(before..),
        _ => {}
    }
}

/// What a client looks for in the reply to HELLO.
fn hello() -> Reply {
    let entry = |name: &str, value: Reply| (Reply::Bulk(name.as_bytes().to_vec()), value);
    let table = vec![
        entry("name", Reply::Bulk(TABLE_NAME.into())),
        entry("version", Reply::Int(TABLE_VERSION.into())),
        entry("hash", Reply::Bulk(TABLE_HASH.into())),
    ];
    let respb = vec![
        entry("version", Reply::Int(1)),
        entry(
            "profiles",
            Reply::Array(vec![Reply::Bulk(b"channels".to_vec()), Reply::Bulk(b"typed".to_vec())]),
        ),
        entry("table", Reply::Map(table)),
        entry("capabilities", Reply::Int(0)),
        entry("limits", Reply::Map(Vec::new())),
    ];
    Reply::Map(vec![
        entry("server", Reply::Bulk(b"stub".to_vec())),
        entry("version", Reply::Bulk(b"0".to_vec())),
        entry("proto", Reply::Int(3)),
        entry("respb", Reply::Map(respb)),
    ])
}
