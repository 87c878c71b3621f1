//! Owns: what a connection keeps of its input, and the memory that it is received into. Does not own: what is decoded
//! of it (`super`), when it is received (`crate::worker`).

use std::sync::Arc;

use super::{Connection, Peer};
use crate::client::Client;
use crate::limits::{BEHIND_LARGE_BYTES, LARGE_AHEAD_BYTES, LARGE_BYTES_MIN};
use crate::poll::{borrowed, receive, receive_behind};
use crate::tls::Transport;

impl Connection {
    /// Keeps input that came into another buffer. There is room for the rest of what is announced, as far as a receive
    /// would make some.
    pub(crate) fn keep(&mut self, input: &[u8]) {
        let announced = if self.is_authenticated() { self.announced(input.len()) } else { 0 };
        if announced >= LARGE_BYTES_MIN {
            let more = announced.min(LARGE_AHEAD_BYTES) + BEHIND_LARGE_BYTES;
            self.pending.reserve_exact(input.len() + more);
        }
        self.pending.extend_from_slice(input);
    }

    /// What it has sent that has not run, as far as that is its own and no channel's.
    pub(crate) fn not_run_bytes(&self) -> usize {
        self.kept().len() + self.peer.only().map_or(0, Client::held_bytes)
    }
    /// What has been kept of its input.
    pub(crate) fn kept(&self) -> &[u8] {
        let all = self.offered.as_deref().unwrap_or(&self.pending);
        &all[self.pending_at..]
    }
    /// What has been decoded of its own buffer is about to run: one large argument may be kept there.
    pub(crate) fn offer(&mut self) {
        let may_be_kept = !matches!(self.peer, Peer::Http(_));
        if may_be_kept && self.sends_large && self.pending.len() >= LARGE_BYTES_MIN {
            self.offered = Some(Arc::new(std::mem::take(&mut self.pending)));
        }
    }
    /// Lets go of the input that has been decoded, up to `at` of its own buffer. The rest moves to the front when it is
    /// less than what is let go: each byte is moved once on average, however often the connection stops.
    pub(crate) fn let_go_until(&mut self, at: usize) {
        match self.offered.take().map(Arc::try_unwrap) {
            None => {}
            Some(Ok(pending)) => self.pending = pending,
            Some(Err(kept)) => {
                (self.pending, self.pending_at) = (kept[at..].to_vec(), 0);
                return;
            }
        }
        self.pending_at = at;
        if at == self.pending.len() {
            (self.pending, self.pending_at) = (Vec::new(), 0);
        } else if self.pending_at * 2 >= self.pending.len() {
            self.pending.drain(..at);
            self.pending_at = 0;
        }
    }
    /// Lets go of all its input.
    pub(crate) fn forget_input(&mut self) {
        (self.pending, self.pending_at, self.offered) = (Vec::new(), 0, None);
    }

    /// What is announced of a large argument and has not come: 0 where it is not much.
    pub(crate) fn missing(&self) -> usize {
        Some(self.announced(self.kept().len())).filter(|&missing| missing >= LARGE_BYTES_MIN).unwrap_or(0)
    }
    /// What its decoder needs to go on beyond so much of a request.
    fn announced(&self, kept: usize) -> usize {
        let need = match &self.peer {
            Peer::Resp(single) => single.decoder.need(),
            Peer::Respb(channels) => channels.need(),
            Peer::Http(_) => 0,
        };
        need.saturating_sub(kept)
    }

    /// Receives behind what is pending, into memory that grows with what has come; of a large argument little more than
    /// is missing, so that hardly anything of the next request need be moved, and all of it is one request's.
    pub(crate) fn receive_pending(&mut self, scratch: &mut [u8], len_max: usize) -> Option<usize> {
        let (before, fd) = (self.pending.len(), borrowed(&self.fd));
        let (announced, spare) = (self.announced(self.kept().len()), self.pending.capacity() - before);
        if announced == 0 || announced.max(before) < LARGE_BYTES_MIN {
            self.pending.reserve(len_max.max(before / 2));
        } else if spare < announced.max(BEHIND_LARGE_BYTES / 2) {
            // Much that is small may follow what is large: it must not come byte by byte.
            let more = announced.min(LARGE_AHEAD_BYTES.max(before)).max(before / 64);
            self.pending.reserve_exact(more + BEHIND_LARGE_BYTES);
        }
        let room = self.pending.capacity() - before;
        match &mut self.transport {
            Transport::Plain => {
                let result = receive_behind(fd, &mut self.pending);
                self.received(result, room)
            }
            Transport::Tls(tls) => {
                self.pending.resize(before + room.min(len_max), 0);
                let into = &mut self.pending[before..];
                let result = tls.open(into, scratch, |into| receive(fd, into));
                self.pending.truncate(before + result.map_or(0, |opened| opened.len));
                self.opened(result)
            }
        }
    }
}
