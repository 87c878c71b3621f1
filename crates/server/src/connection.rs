//! Owns: one connection: its socket, the bytes on their way in and out, and whose they are. Does not own: what is kept
//! of its input (`input`), the loop (`crate::worker`), RESPB's channels (`crate::channels`).
//!
//! An idle connection holds no buffer: input that is whole is decoded where the worker received it, and an output goes
//! back to the worker when it has been sent.

mod input;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use weft_engine::args::Slot;
use weft_engine::config::Settings;
use weft_engine::mailbox::Recipient;
use weft_engine::reply::Output;
use weft_engine::requests::Origin;
use weft_engine::session::{ClientInfo, ConnectionInfo, Session, client_flag};
use weft_engine::{Engine, Requests};
use weft_protocol::{Limits, Malformed, Outcome, resp};
use weft_store::Keyspace;

use crate::channels::Channels;
use crate::client::Client;
use crate::http::{Bench, Http};
use crate::limits::{SENT_BYTES_MAX, SHARED_OUTPUT_BYTES_MAX, SLICES_MAX, UNAUTHENTICATED};
use crate::poll::{borrowed, receive};
use crate::shared::Counted;
use crate::timers::Alarm;
use crate::tls::{FIRST_BYTE, Opened, Transport};

/// Who is at the other end.
pub(crate) enum Peer {
    /// A RESP client, or one that has not sent anything.
    Resp(Box<Single>),
    /// A RESPB connection with its channels.
    Respb(Box<Channels>),
    /// A connection that speaks HTTP.
    Http(Box<Http>),
}

impl Peer {
    /// One of its clients, if there is one of that number.
    #[inline]
    pub(crate) fn client(&mut self, channel: u16) -> Option<&mut Client> {
        match self {
            Self::Resp(single) => Some(&mut single.client),
            Self::Respb(channels) => channels.client_mut(channel),
            Self::Http(http) => Some(&mut http.client),
        }
    }
    /// Its only client, if it can have one only.
    pub(crate) fn only(&self) -> Option<&Client> {
        match self {
            Self::Resp(single) => Some(&single.client),
            Self::Respb(_) => None,
            Self::Http(http) => Some(&http.client),
        }
    }
}

/// The one client of a RESP connection.
pub(crate) struct Single {
    pub(crate) client: Client,
    pub(crate) decoder: resp::RequestDecoder,
    /// Whether the first bytes have been looked at.
    pub(crate) detected: bool,
    /// Bytes of the first line that have been looked at before and are not its end.
    seen: usize,
}

/// Where the bytes of a connection's requests lie while they are decoded and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the worker's arena.
    Arena,
    /// In the connection's own buffer.
    Own,
}

/// How far a connection is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Open,
    /// Nothing more is decoded; it ends when the output has been sent.
    Closing,
    /// The server has ended its direction; so much more of what comes is read, and thrown away.
    Draining {
        left_bytes: usize,
    },
    /// It is taken away at the end of the tick.
    Dead,
}

/// One connection.
pub(crate) struct Connection {
    pub(crate) fd: OwnedFd,
    pub(crate) transport: Transport,
    pub(crate) info: Arc<ConnectionInfo>,
    pub(crate) peer: Peer,
    pub(crate) output: Output,
    /// Bytes of `output` that have been sent.
    pub(crate) sent: usize,
    /// Input that has not been decoded, from `pending_at` on: what stands before it has run.
    pub(crate) pending: Vec<u8>,
    pub(crate) pending_at: usize,
    /// The same while its requests run, where one of them may keep it.
    pub(crate) offered: Option<Arc<Vec<u8>>>,
    /// Arguments of the request that is not whole.
    pub(crate) partial: Vec<Slot>,
    pub(crate) source: Source,
    /// What it counts for among all that have not authenticated.
    pub(crate) counted: Counted,
    /// By when it must have authenticated; 0 where it need not, or has.
    pub(crate) authenticate_by_ms: u64,
    /// By when it must have done what it is waited for.
    pub(crate) alarm: Alarm,
    /// Input is taken from it.
    pub(crate) reading: bool,
    /// There may be input of which no event will tell.
    pub(crate) unread: bool,
    /// It has brought nothing yet but a part of a handshake.
    pub(crate) is_new: bool,
    /// Stands in the list of those that begin or end.
    pub(crate) passing: bool,
    /// Its own buffer has input that a later tick decodes: it stands in the list of those, and nothing is received.
    pub(crate) put_off: bool,
    /// Its last requests were large: what it sends is received in pieces that are small until one is known to be.
    pub(crate) sends_large: bool,
    /// Nothing more of it is carried out before more of its answers has been sent.
    pub(crate) waits_for_room: bool,
    /// The peer will send no more than what is there.
    pub(crate) ended: bool,
    /// All that it has sent has been taken; it is looked at again when some of it has been answered.
    pub(crate) is_last_awaited: bool,
    pub(crate) life: Life,
    /// Stands in the list of those with replies that wait until something is safe.
    pub(crate) waiting_for_safe: bool,
    /// Stands in the list of those whose output is to be sent.
    pub(crate) touched: bool,
    /// When it brought something last, on its worker's clock.
    pub(crate) active_us: u64,
    /// When an output above the soft limit was first seen.
    pub(crate) over_soft_ms: u64,
    /// Bytes of its clients' replies that have come to a gateway and wait there for earlier ones.
    pub(crate) replies_bytes: usize,
}

/// Why decoding stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// All whole requests are decoded.
    Incomplete,
    /// The batch is full.
    Full,
    /// The batch is full for a page: it is sent before anything else is asked for.
    Page,
    /// The last request must run before anything behind it is decoded.
    Barrier,
    /// A control frame was met; it is applied when the requests before it have run.
    Control,
    /// The rest is of another protocol.
    Switch,
    /// The bytes are wrong; with the one that is.
    Invalid(Malformed, Option<u8>),
    /// A frame is wrong; with the bytes that it begins with.
    InvalidFrame(Malformed, [u8; 8]),
    /// It is HTTP.
    Http,
    /// It is TLS, which may be served.
    Tls,
}

/// What a first byte says of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Resp,
    Respb,
    /// A letter or a quote: HTTP or an inline command, which its first line tells.
    Line,
    Tls,
    Unknown,
}

fn first(byte: u8) -> First {
    match byte {
        0x00..=0x07 | 0xF0..=0xFF => First::Respb,
        b'*' => First::Resp,
        FIRST_BYTE => First::Tls,
        b'a'..=b'z' | b'A'..=b'Z' | b'"' | b'\'' => First::Line,
        _ => First::Unknown,
    }
}

impl Connection {
    pub(crate) fn new(
        fd: OwnedFd,
        info: Arc<ConnectionInfo>,
        (session, limits): (Session, Limits),
        now_us: u64,
    ) -> Self {
        let decoder = resp::RequestDecoder::new(limits);
        let single = Single { client: Client::new(session), decoder, detected: false, seen: 0 };
        Self {
            fd,
            transport: Transport::Plain,
            info,
            peer: Peer::Resp(Box::new(single)),
            output: Output::default(),
            sent: 0,
            pending: Vec::new(),
            pending_at: 0,
            offered: None,
            partial: Vec::new(),
            source: Source::Arena,
            counted: Counted::default(),
            authenticate_by_ms: 0,
            alarm: Alarm::default(),
            reading: true,
            unread: false,
            is_new: true,
            passing: false,
            put_off: false,
            sends_large: false,
            waits_for_room: false,
            ended: false,
            is_last_awaited: false,
            life: Life::Open,
            waiting_for_safe: false,
            touched: false,
            active_us: now_us,
            over_soft_ms: 0,
            replies_bytes: 0,
        }
    }

    /// Whether one of its clients has authenticated, or need not.
    pub(crate) fn is_authenticated(&self) -> bool {
        match &self.peer {
            Peer::Resp(single) => single.client.session.authenticated,
            Peer::Respb(channels) => channels.authenticated,
            Peer::Http(http) => http.client.session.authenticated,
        }
    }

    /// The client that has come first, if it is there.
    pub(crate) fn first_client(&self) -> Option<&Arc<ClientInfo>> {
        match &self.peer {
            Peer::Resp(single) => Some(&single.client.session.info),
            Peer::Respb(channels) => channels.get(0).map(|open| &open.client.session.info),
            Peer::Http(http) => Some(&http.client.session.info),
        }
    }

    /// Memory that its undecoded input takes.
    pub(crate) fn input_bytes(&self) -> usize {
        let sealed = match &self.transport {
            Transport::Plain => 0,
            Transport::Tls(tls) => tls.input_bytes(),
        };
        let offered = self.offered.as_ref().map_or(0, |offered| offered.capacity());
        self.pending.capacity() + offered + self.partial.capacity() * size_of::<Slot>() + sealed
    }

    /// What it counts for, as one that has not authenticated: beside its input what is kept of it otherwise.
    pub(crate) fn unauthenticated(&self) -> Counted {
        let kept = self.input_bytes()
            + match &self.peer {
                Peer::Resp(_) => 0,
                Peer::Respb(channels) => channels.table_bytes(),
                Peer::Http(http) => http.kept_bytes(),
            };
        match &self.transport {
            Transport::Tls(tls) if !tls.is_established() => Counted { kept: 0, handshake: kept },
            _ => Counted { kept, handshake: 0 },
        }
    }
    /// What of its output are pages that lie in memory once for all.
    pub(crate) fn fixed_bytes(&self) -> usize {
        match &self.peer {
            Peer::Http(http) if !http.client.session.authenticated => self.output.pinned_bytes,
            _ => 0,
        }
    }

    /// Bytes that TLS has encrypted and not sent.
    fn sealed(&self) -> usize {
        match &self.transport {
            Transport::Plain => 0,
            Transport::Tls(tls) => tls.unsent(),
        }
    }
    /// Bytes that wait to be sent.
    pub(crate) fn unsent(&self) -> usize {
        self.output.len() - self.sent + self.sealed()
    }

    /// The same, with what waits in queues of channels.
    pub(crate) fn owed_bytes(&self) -> usize {
        let queued = match &self.peer {
            Peer::Resp(_) | Peer::Http(_) => 0,
            Peer::Respb(channels) => channels.queued_bytes(),
        };
        self.unsent() + queued
    }

    /// Whether replies of channels would soon wait in queues of their own, and none does: the socket may take what is
    /// there.
    pub(crate) fn fills_up(&self) -> bool {
        match &self.peer {
            Peer::Respb(channels) => {
                !channels.has_turns() && self.output.len() >= SHARED_OUTPUT_BYTES_MAX / 2
            }
            Peer::Resp(_) | Peer::Http(_) => false,
        }
    }

    /// What is owed, with replies that wait at a gateway, without pages that lie in memory once for all: what its limit
    /// is about.
    pub(crate) fn limited_bytes(&self) -> usize {
        self.owed_bytes().saturating_sub(self.fixed_bytes()) + self.replies_bytes
    }
    /// So many bytes of a client's replies wait at a gateway from now on.
    pub(crate) fn set_replies_bytes(&mut self, channel: u16, bytes: usize) {
        let client = match &mut self.peer {
            Peer::Resp(single) => Some(&mut single.client),
            Peer::Http(http) => Some(&mut http.client),
            Peer::Respb(channels) => channels.client_mut(channel),
        };
        if let Some(client) = client {
            self.replies_bytes -= std::mem::replace(&mut client.replies_bytes, bytes);
            self.replies_bytes += bytes;
        }
    }

    /// Everything has been sent and nothing follows: TLS says so.
    pub(crate) fn say_goodbye(&mut self) {
        if let Transport::Tls(tls) = &mut self.transport {
            tls.end();
            // Who is gone need not be told.
            let _ = self.send(0);
        }
    }

    /// Whether a helper has what is needed to read and to write.
    pub(crate) const fn is_away(&self) -> bool {
        match &self.transport {
            Transport::Plain => false,
            Transport::Tls(tls) => tls.is_away(),
        }
    }

    /// Receives into a buffer. `None` when there is nothing now; 0 at the end of the stream. `scratch` is where what is
    /// encrypted goes.
    pub(crate) fn receive(&mut self, scratch: &mut [u8], buffer: &mut [u8]) -> Option<usize> {
        let (room, fd) = (buffer.len(), borrowed(&self.fd));
        match &mut self.transport {
            Transport::Plain => {
                let result = receive(fd, buffer);
                self.received(result, room)
            }
            Transport::Tls(tls) => {
                let result = tls.open(buffer, scratch, |into| receive(fd, into));
                self.opened(result)
            }
        }
    }

    /// Notes what came. A receive that did not fill its room has emptied the socket, and the next event tells of more.
    fn received(&mut self, result: rustix::io::Result<usize>, room: usize) -> Option<usize> {
        let drained = result.is_ok_and(|len| len < room);
        self.opened(result.map(|len| Opened { len, drained, ended: len == 0 }))
    }

    /// Notes what came, where that does not follow from how much it was.
    fn opened(&mut self, result: rustix::io::Result<Opened>) -> Option<usize> {
        match result {
            Ok(Opened { len, drained, ended }) => {
                self.unread = !drained || self.ended;
                self.info.bytes_in.store(self.info.bytes_in.load(Relaxed) + len as u64, Relaxed);
                (len > 0 || ended).then_some(len)
            }
            Err(Errno::INTR) => {
                self.unread = true;
                None
            }
            Err(Errno::WOULDBLOCK) => {
                self.unread = false;
                None
            }
            Err(_) => Some(0),
        }
    }

    /// Whether replies wait until something is safe.
    pub(crate) fn waits_for_safe(&self) -> bool {
        self.output.is_withheld()
            || match &self.peer {
                Peer::Resp(_) | Peer::Http(_) => false,
                Peer::Respb(channels) => channels.waits_for_safe(),
            }
    }

    /// Whether it must not end yet: replies are to be sent, or will be.
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent() > 0 || self.waits_for_safe()
    }

    /// Whether it goes away and a reply of one of its channels has still to come: of this one, or of any.
    pub(crate) fn owes(&self, channel: Option<u16>) -> bool {
        match &self.peer {
            Peer::Resp(_) | Peer::Http(_) => false,
            Peer::Respb(channels) => channel.map_or(channels.owes(), |channel| channels.owes_to(channel)),
        }
    }

    /// Whether another server is to answer its only client: what does not block there will come.
    pub(crate) fn waits_for_upstream(&self) -> bool {
        let session = self.peer.only().map(|client| &client.session);
        session.is_some_and(|session| session.forwarded > 0 && !session.info.has(client_flag::BLOCKED))
    }

    /// Whether it is known that all that has come was decoded, but for a frame that is not whole: only RESPB decodes on
    /// while a client waits.
    pub(crate) fn has_decoded_all(&self) -> bool {
        let Peer::Respb(channels) = &self.peer else { return false };
        !channels.is_held_back() && !self.put_off && !self.waits_for_room
    }

    /// Whether replies will come that its peer, who sends no more, is to be sent; nothing where that takes
    /// another look.
    pub(crate) fn is_under_way(&mut self, awaits: &mut dyn FnMut(Recipient) -> bool) -> Option<bool> {
        match &mut self.peer {
            Peer::Resp(single) => Some(single.client.is_under_way(awaits)),
            Peer::Http(http) => Some(http.client.is_under_way(awaits)),
            Peer::Respb(channels) => channels.are_under_way(awaits),
        }
    }

    /// Sends what waits and may go now that epochs up to `safe` are, with one call where the socket takes it; how many
    /// bytes it took. `Err` when the peer is gone.
    pub(crate) fn send(&mut self, safe: u64) -> Result<u64, ()> {
        let mut all = 0;
        let end = self.output.sendable(safe);
        while self.sent < end || self.sealed() > 0 {
            let result = match &mut self.transport {
                Transport::Plain if self.output.pins.is_empty() => {
                    send(&self.fd, &self.output.bytes[self.sent..end], SendFlags::NOSIGNAL)
                }
                transport => {
                    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                    let count = slices_of(&self.output, self.sent..end, &mut slices);
                    match transport {
                        Transport::Plain => rustix::io::writev(&self.fd, &slices[..count]),
                        Transport::Tls(tls) => tls
                            .seal(&slices[..count], &mut Socket(&self.fd))
                            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::WOULDBLOCK)),
                    }
                }
            };
            match result {
                Ok(len) => {
                    self.sent += len;
                    all += len as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => break,
                Err(_) => return Err(()),
            }
        }
        // Half of it at least, so that each byte is moved once on average.
        if self.sent >= SENT_BYTES_MAX && self.sent < self.output.len() && self.sent * 2 >= self.output.len()
        {
            self.sent = self.output.consume(self.sent);
        }
        Ok(all)
    }

    /// Decodes requests from `bytes`, beginning at `at`, which moves on. `bytes` is what the connection lends for them.
    pub(crate) fn decode(
        &mut self,
        index: u32,
        (bytes, at): (&[u8], &mut usize),
        requests: &mut Requests,
        engine: &Engine,
    ) -> Stop {
        let keyspace = &engine.keyspace;
        if !self.partial.is_empty() {
            requests.resume(&self.partial);
            self.partial.clear();
        }
        let stop = match &mut self.peer {
            Peer::Respb(channels) => channels.decode(index, (bytes, at), requests, keyspace),
            Peer::Resp(single) => single.decode(index, (bytes, at), requests, keyspace),
            Peer::Http(http) => http.decode((bytes, at), &mut Bench { requests, engine, index }),
        };
        match stop {
            Stop::Incomplete if requests.is_open() => requests.take_open(&mut self.partial),
            Stop::Invalid(..) | Stop::InvalidFrame(..) => requests.drop_open(),
            _ => {}
        }
        stop
    }

    /// Whether requests of the connection may be decoded: nothing that was decoded waits to run.
    pub(crate) fn may_go_on(&self) -> bool {
        self.life == Life::Open
            && match &self.peer {
                Peer::Resp(_) | Peer::Http(_) => {
                    !self.waits_for_room && self.peer.only().is_some_and(Client::may_go_on)
                }
                // What a channel must not run yet waits in its own queue, unless a pause has filled those.
                Peer::Respb(channels) => !self.waits_for_room && !channels.is_held_back(),
            }
    }
}

/// The decoder's limits for a session on RESP.
pub(crate) fn limits(session: &Session, settings: &Settings) -> Limits {
    if !session.authenticated {
        return UNAUTHENTICATED;
    }
    let u32 = |bytes: &AtomicUsize| u32::try_from(bytes.load(Relaxed)).unwrap_or(u32::MAX);
    Limits {
        argument_bytes_max: u32(&settings.string_bytes_max),
        frame_bytes_max: u32(&settings.query_bytes_max),
        ..Limits::DEFAULT
    }
}

/// A socket that is written to, for rustls.
struct Socket<'s>(&'s OwnedFd);

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(self.0, slices)?)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The slices of a part of an output.
fn slices_of<'o>(output: &'o Output, part: Range<usize>, slices: &mut [IoSlice<'o>; SLICES_MAX]) -> usize {
    let mut count = 0;
    let (mut skip, mut left) = (part.start, part.len());
    let mut push = |bytes: &'o [u8]| {
        let passed = skip.min(bytes.len());
        skip -= passed;
        let len = (bytes.len() - passed).min(left);
        left -= len;
        if len > 0 && count < SLICES_MAX {
            slices[count] = IoSlice::new(&bytes[passed..passed + len]);
            count += 1;
        }
    };
    let mut at = 0;
    for pin in &output.pins {
        push(&output.bytes[at..pin.at]);
        push(pin.value.as_slice());
        at = pin.at;
    }
    push(&output.bytes[at..]);
    count
}

impl Single {
    fn decode(
        &mut self,
        index: u32,
        (bytes, at): (&[u8], &mut usize),
        requests: &mut Requests,
        keyspace: &Keyspace,
    ) -> Stop {
        if !self.detected
            && let Some(stop) = self.detect(bytes, at)
        {
            return stop;
        }
        let client = Origin { connection: index, channel: 0, db: self.client.session.db };
        loop {
            if self.decoder.is_straight() && !requests.is_open() {
                *at = requests.repeat_resp(keyspace, client, (bytes, *at));
                if requests.is_full() {
                    return Stop::Full;
                }
                if *at == bytes.len() {
                    return Stop::Incomplete;
                }
            }
            match self.decoder.decode(&bytes[*at..], requests.visitor()) {
                Outcome::Complete(frame) => {
                    let frame_at = *at;
                    *at += frame.len;
                    if frame.arguments == 0 {
                        continue;
                    }
                    if requests.end_resp(keyspace, client, (bytes, frame_at)) {
                        return Stop::Barrier;
                    }
                    if requests.is_full() {
                        return Stop::Full;
                    }
                }
                Outcome::Incomplete { .. } => return Stop::Incomplete,
                Outcome::Invalid(error) => {
                    let rest = bytes.get(*at + error.offset..).unwrap_or_default();
                    return Stop::Invalid(as_valkey_says(error.kind, rest), rest.first().copied());
                }
            }
        }
    }

    /// Looks at the first bytes; says why nothing is to be decoded as RESP, if so.
    fn detect(&mut self, bytes: &[u8], at: &mut usize) -> Option<Stop> {
        while let Some(b'\r' | b'\n' | b' ' | b'\t') = bytes.get(*at) {
            *at += 1;
        }
        let rest = &bytes[*at..];
        match first(*rest.first()?) {
            First::Resp => {}
            First::Respb => return Some(Stop::Switch),
            First::Tls => return Some(Stop::Tls),
            First::Unknown => return Some(Stop::Invalid(Malformed::UnknownProtocol, None)),
            First::Line => {
                // All that the decoder would take as a line: else the head of a longer one would be commands to it.
                let line_max = self.decoder.limits().inline_bytes_max as usize;
                let new = rest.iter().take(line_max + 2).skip(self.seen);
                let Some(end) = new.clone().position(|&byte| byte == b'\n').map(|at| self.seen + at) else {
                    self.seen += new.len();
                    // A line without an end is the decoder's to refuse.
                    let fits =
                        rest.len() <= line_max || rest.len() == line_max + 1 && rest.last() == Some(&b'\r');
                    return fits.then_some(Stop::Incomplete);
                };
                let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
                if let Some((digit, version)) = line.split_last()
                    && digit.is_ascii_digit()
                    && version.ends_with(b" HTTP/1.")
                {
                    return Some(Stop::Http);
                }
            }
        }
        self.detected = true;
        None
    }
}

/// A length line whose CR has no LF behind it is that to Valkey, whatever the number is.
fn as_valkey_says(kind: Malformed, rest: &[u8]) -> Malformed {
    let is_length = matches!(kind, Malformed::MultibulkLength | Malformed::BulkLength);
    let behind = rest.iter().position(|&byte| byte == b'\r').and_then(|at| rest.get(at + 1));
    if is_length && behind.is_some_and(|&byte| byte != b'\n') { Malformed::BulkEnd } else { kind }
}
