//! One connection of a fleet: what has not been sent yet, and the start of a reply that has not come as a whole.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::Counts;
use super::decode::Decoder;
use super::wire::Wire;

/// Room for unsent bytes that is kept when all of them are sent.
const KEPT_BYTES_MAX: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Connection {
    /// Gone when the connection has ended.
    pub(super) wire: Option<Wire>,
    /// Bytes that wait to be sent; those before `sent` are on their way.
    out: Vec<u8>,
    sent: usize,
    /// Whether the event loop tells when the socket takes bytes again.
    waits_to_send: bool,
    /// The other side has sent its last; it may not have been received yet.
    pub(super) ends: bool,
    /// Whether it is in the list of connections with bytes to send.
    pub(super) dirty: bool,
    /// The start of a reply.
    pub(super) partial: Option<Partial>,
    /// Where several clients share a RESP connection: whose requests were sent, in order, and how many of each.
    pub(super) turns: VecDeque<(u16, u32)>,
}

/// The start of a reply, and how far it has been read.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) decoder: Box<Decoder>,
    pub(super) bytes: Vec<u8>,
    /// Texts and nulls that were handed out already.
    pub(super) part: u32,
}

impl Connection {
    pub(super) fn new(wire: Wire) -> Connection {
        Connection {
            wire: Some(wire),
            out: Vec::new(),
            sent: 0,
            waits_to_send: false,
            ends: false,
            dirty: false,
            partial: None,
            turns: VecDeque::new(),
        }
    }

    /// Puts a new socket in the place of one that has ended.
    pub(super) fn replace(&mut self, wire: Wire) {
        *self = Connection { dirty: self.dirty, ..Connection::new(wire) };
    }

    /// One reply has come to whoever's turn it is.
    pub(super) fn took_turn(&mut self) {
        let Some((_, left)) = self.turns.front_mut() else { return };
        *left -= 1;
        if *left == 0 {
            self.turns.pop_front();
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.out.is_empty() && !self.keeps_some()
    }

    /// Whether TLS has bytes that the socket did not take.
    fn keeps_some(&self) -> bool {
        self.wire.as_ref().is_some_and(Wire::keeps_some)
    }

    /// Appends bytes to be sent by [`flush`](Self::flush).
    pub(super) fn queue(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Sends bytes at once; what the socket does not take waits.
    #[inline]
    pub(super) fn send(&mut self, bytes: &[u8], index: u64, epoll: &OwnedFd, counts: &mut Counts) {
        let taken = self.give(bytes, counts);
        if taken < bytes.len() || self.keeps_some() {
            self.out.extend_from_slice(&bytes[taken..]);
            self.watch(index, epoll);
        }
    }

    /// Sends what waits.
    pub(super) fn flush(&mut self, index: u64, epoll: &OwnedFd, counts: &mut Counts) {
        self.dirty = false;
        if self.is_idle() {
            return self.watch(index, epoll);
        }
        let out = std::mem::take(&mut self.out);
        self.sent += self.give(&out[self.sent..], counts);
        self.out = out;
        if self.sent == self.out.len() {
            self.sent = 0;
            self.out.clear();
            self.out.shrink_to(KEPT_BYTES_MAX);
        } else if self.sent > KEPT_BYTES_MAX {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        self.watch(index, epoll);
    }

    /// Gives bytes to the socket; returns how many it took. A socket that is broken takes all: receiving from it will
    /// tell, after what the server may still have said.
    fn give(&mut self, bytes: &[u8], counts: &mut Counts) -> usize {
        let Some(wire) = &mut self.wire else { return bytes.len() };
        counts.sends += 1;
        match wire.send(bytes) {
            Ok(count) => {
                counts.sent_bytes += count as u64;
                count
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => 0,
            Err(_) => bytes.len(),
        }
    }

    /// Asks to be told when the socket takes bytes, or no longer.
    fn watch(&mut self, index: u64, epoll: &OwnedFd) {
        let waits = !self.is_idle();
        let Some(wire) = self.wire.as_ref().filter(|_| waits != self.waits_to_send) else { return };
        self.waits_to_send = waits;
        // A socket that epoll holds can be changed there; were it not so, receiving would say why.
        let _ = epoll::modify(epoll, wire.as_fd(), EventData::new_u64(index), interest(waits));
    }

    /// Ends it; nothing more is sent or received.
    pub(super) fn end(&mut self) {
        self.wire = None;
        self.out = Vec::new();
        self.sent = 0;
        self.partial = None;
    }
}

/// Edge-triggered: the kernel need not look again at a connection that was emptied. What is left over after a receiving
/// that filled its room, and the end of the stream behind data, are the event loop's to remember.
pub(super) fn interest(waits_to_send: bool) -> EventFlags {
    let events = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if waits_to_send { events | EventFlags::OUT } else { events }
}
