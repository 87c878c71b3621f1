//! Owns: what a channel may send and what of it waits: credit, queued pieces, slices. Does not own: when there is room.

use std::collections::VecDeque;

use weft_engine::error::Error;
use weft_engine::reply::{Output, OutputPlace, Protocol, Wire};
use weft_protocol::respb::Control;
use weft_protocol::respb::frame::LONG_HEADER_LEN;

use super::turns::Turn;
use super::{Channels, Place, Writing, close};
use crate::limits::{FRAGMENT_BYTES, JOINED_BYTES_MAX, SHARED_OUTPUT_BYTES_MAX};

/// What waits: a frame, or small ones that stand behind each other.
#[derive(Default)]
struct Piece {
    output: Output,
    /// Where each of them ends but the last.
    ends: Vec<u32>,
}

impl Piece {
    /// What it takes beside its bytes: its place in the queue and its allocations' heads.
    const fn own_bytes(&self) -> usize {
        size_of::<Self>() + 16 + size_of::<u32>() * self.ends.len()
    }
    /// Memory that it takes.
    fn memory(&self) -> usize {
        self.output.len() + self.own_bytes()
    }
    /// Whether a small frame of so many bytes may stand behind what is there.
    fn has_room(&self, bytes: usize) -> bool {
        self.output.len() + bytes <= JOINED_BYTES_MAX
            && self.output.pins.is_empty()
            && !self.output.is_withheld()
    }
    /// Takes a frame from the end of an output.
    fn join(&mut self, output: &mut Output, from: OutputPlace) {
        self.ends.push(self.output.len() as u32);
        self.output.bytes.extend_from_slice(&output.bytes[from.bytes..]);
        output.take_back(from);
    }
    /// Where the frames end of which the first begins at byte `at`, if so much credit is left.
    fn end_of_credit(&self, at: usize, mut credit: i64) -> usize {
        let mut end = at;
        let next = self.ends.partition_point(|&one| one as usize <= at);
        let ends = self.ends[next..].iter().map(|&one| one as usize);
        for one in ends.chain([self.output.len()]) {
            if credit <= 0 {
                break;
            }
            credit -= (one - end) as i64;
            end = one;
        }
        end
    }
}

/// A channel's output that does not go straight to the socket.
#[derive(Default)]
pub(crate) struct Flow {
    /// Bytes that may be sent; nothing before the first WINDOW.
    credit: Option<i64>,
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that have been sent.
    sent: usize,
    /// Memory that they take, but for what has been sent of the first.
    bytes: usize,
    /// When they were first seen to be above the soft limit of its class; 0 for not.
    pub(crate) over_soft_ms: u64,
    /// Its place among those that could send.
    pub(super) turn: Turn,
}

impl Flow {
    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
    /// What waits may be sent, whatever credit is left.
    pub(super) const fn release_credit(&mut self) {
        self.credit = None;
    }
    /// Memory of what waits.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether a frame may be begun.
    fn may_send(&self) -> bool {
        self.credit.is_none_or(|credit| credit > 0)
    }
    fn spend(&mut self, bytes: usize) {
        if let Some(credit) = &mut self.credit {
            *credit -= bytes as i64;
        }
    }
}

impl Channels {
    /// What of a channel's output does not go straight to the socket, also of one that ends.
    fn flow(&self, channel: u16) -> Option<&Flow> {
        match self.table.get(channel)? {
            Place::Open(open) => open.flow.as_deref(),
            Place::Ending(ending) => ending.flow.as_deref(),
        }
    }
    fn flow_mut(&mut self, channel: u16) -> Option<&mut Option<Box<Flow>>> {
        match self.table.get_mut(channel)? {
            Place::Open(open) => Some(&mut open.flow),
            Place::Ending(ending) => Some(&mut ending.flow),
        }
    }

    /// Before a request runs: its channel, and where its reply will begin. Gives the channel that has been ended, if
    /// the request before has gone past a limit.
    #[inline]
    pub(crate) fn lend(&mut self, channel: u16, output: &mut Output) -> Option<u16> {
        let ended = self.settle(output);
        self.writing = Some(Writing { channel, from: output.end() });
        ended
    }

    /// After requests have run: what was written before this place has been seen to be little.
    pub(crate) fn lent_from(&mut self, channel: u16, from: OutputPlace) {
        self.writing = Some(Writing { channel, from });
    }

    /// What a channel may write, by one request or several, and be [settled](Self::settle) with a glance.
    #[inline]
    pub(crate) fn shared_bytes(&self, channel: u16, output: &Output) -> usize {
        if self.get(channel).is_some_and(|open| open.flow.is_some()) {
            return 0;
        }
        FRAGMENT_BYTES.min(SHARED_OUTPUT_BYTES_MAX.saturating_sub(output.len()))
    }

    /// After a request has run: looks at what it wrote. Ends the channel, and gives it, if that is past a limit.
    #[inline]
    pub(crate) fn settle(&mut self, output: &mut Output) -> Option<u16> {
        let writing = self.writing.take()?;
        let written = output.len() - writing.from.len;
        let plain = self.flow(writing.channel).is_none();
        let small = written <= FRAGMENT_BYTES || !self.fragments();
        let withheld = output.is_withheld_behind(writing.from);
        if written == 0 || plain && small && !withheld && output.len() <= SHARED_OUTPUT_BYTES_MAX {
            return None;
        }
        self.settle_slowly(writing, written, output)
    }

    #[cold]
    fn settle_slowly(&mut self, writing: Writing, written: usize, output: &mut Output) -> Option<u16> {
        let (fragments, limit) = (self.fragments(), self.limits.output_bytes);
        // Others go on while this one waits.
        let lags = writing.from.len > SHARED_OUTPUT_BYTES_MAX || output.is_withheld_behind(writing.from);
        let place = self.flow_mut(writing.channel)?;
        let flow = place.get_or_insert_default();
        let sliced = fragments && written > FRAGMENT_BYTES;
        if flow.pieces.is_empty() && flow.may_send() && !sliced && !lags {
            flow.spend(written);
            place.take_if(|flow| flow.credit.is_none());
            return None;
        }
        let before = flow.bytes;
        flow.queue(output, writing.from);
        let bytes = flow.bytes;
        self.count(writing.channel, before, bytes);
        self.take_turn(writing.channel);
        let reason = if bytes > limit {
            &close::OUTPUT
        } else if self.queued_bytes > self.limits.connection_output_bytes {
            &close::CONNECTION_OUTPUT
        } else {
            return None;
        };
        // It gives back what it takes only when its client reads that. Where those that end alone are too much, so is
        // the connection.
        let has_ended = self.end(writing.channel, reason);
        if self.ending_bytes > self.limits.connection_output_bytes && self.end(0, &close::CONNECTION_OUTPUT) {
            return Some(0);
        }
        has_ended.then_some(writing.channel)
    }

    /// What the waiting frames of a channel take, before and now.
    fn count(&mut self, channel: u16, before: usize, now: usize) {
        self.queued_bytes = self.queued_bytes + now - before;
        if matches!(self.table.get(channel), Some(Place::Ending(_))) {
            self.ending_bytes = self.ending_bytes + now - before;
        }
    }

    /// A channel queues up if it has something to send and may, or notes what it waits for.
    pub(super) fn take_turn(&mut self, channel: u16) {
        let flow = match self.table.get_mut(channel) {
            Some(Place::Open(open)) => &mut open.flow,
            Some(Place::Ending(ending)) => &mut ending.flow,
            _ => return,
        };
        let Some(flow) = flow else { return };
        match flow.pieces.front() {
            Some(first) if first.output.is_withheld() => {
                self.waiting_for_safe.insert(channel);
            }
            Some(_) if flow.may_send() => self.turns.join(&mut flow.turn, channel),
            _ => {}
        }
    }

    /// Whether frames wait until something is safe.
    pub(crate) fn waits_for_safe(&self) -> bool {
        !self.waiting_for_safe.is_empty()
    }
    /// Epochs up to `safe` are: what waited for no more than them queues up.
    pub(crate) fn release_safe(&mut self, safe: u64) {
        for channel in std::mem::take(&mut self.waiting_for_safe) {
            let flow = self.flow_mut(channel);
            if let Some(first) = flow.and_then(|flow| flow.as_mut()?.pieces.front_mut()) {
                first.output.sendable(safe);
            }
            self.take_turn(channel);
        }
    }

    /// What waits for a later epoch than `safe` waits in vain: each reply becomes this error. Says whether that could
    /// be.
    pub(crate) fn lose_withheld(&mut self, safe: u64, error: &Error) -> bool {
        let mut is_said = true;
        for channel in std::mem::take(&mut self.waiting_for_safe) {
            let wire = Wire { protocol: Protocol::Respb, channel };
            let Some(Some(flow)) = self.flow_mut(channel) else { continue };
            let before = flow.bytes;
            for Piece { output, .. } in &mut flow.pieces {
                output.sendable(safe);
                let len = output.len();
                is_said &= output.lose_withheld(wire, error);
                flow.bytes = flow.bytes + output.len() - len;
            }
            let now = flow.bytes;
            self.count(channel, before, now);
            self.take_turn(channel);
        }
        is_said
    }

    /// Memory of the frames that wait to be sent, of all channels.
    pub(crate) const fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// WINDOW: more credit.
    pub(crate) fn window(&mut self, channel: u16, more: u32) {
        let Some(open) = self.get_mut(channel) else { return };
        let flow = open.flow.get_or_insert_default();
        flow.credit = Some(flow.credit.unwrap_or(0).saturating_add(i64::from(more)));
        self.take_turn(channel);
    }

    /// Whether frames wait that may be sent when there is room.
    pub(crate) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Moves waiting pieces and slices into the output, one of each channel in turn, up to a bound: `unsent` bytes of
    /// the output are still to be sent. CLOSE is the last frame of a channel that ends.
    pub(crate) fn pump(&mut self, output: &mut Output, mut unsent: usize) {
        while unsent < SHARED_OUTPUT_BYTES_MAX {
            let Some(channel) = self.turns.next() else { return };
            let fragments = self.fragments();
            let Some(place) = self.flow_mut(channel) else { continue };
            let Some(flow) = place else { continue };
            flow.turn = Turn::default();
            // Its first WINDOW may have come behind its turn.
            if !flow.may_send() {
                continue;
            }
            let before = output.len();
            let gone = flow.next(channel, fragments, output);
            unsent += output.len() - before;
            flow.spend(output.len() - before);
            place.take_if(|flow| flow.credit.is_none() && flow.pieces.is_empty());
            self.count(channel, gone, 0);
            // A channel without credit leaves the round until its next WINDOW.
            self.take_turn(channel);
            self.close_if_done(channel, output);
        }
    }
}

impl Flow {
    /// Takes what stands behind a place of an output.
    fn queue(&mut self, output: &mut Output, from: OutputPlace) {
        let is_plain = output.pins.len() == from.pins && !output.is_withheld_behind(from);
        let bytes = output.len() - from.len;
        match self.pieces.back_mut().filter(|last| is_plain && last.has_room(bytes)) {
            Some(last) => {
                self.bytes -= last.own_bytes();
                last.join(output, from);
                self.bytes += bytes + last.own_bytes();
            }
            None => {
                let piece = Piece { output: output.split_off(from.bytes, from.pins), ends: Vec::new() };
                self.bytes += piece.memory();
                self.pieces.push_back(piece);
            }
        }
    }
    /// Puts the first piece, what credit there is for of it, or its next slice, into the output; gives how much memory
    /// less what waits takes.
    fn next(&mut self, channel: u16, fragments: bool, output: &mut Output) -> usize {
        let Some(piece) = self.pieces.front() else { return 0 };
        let len = piece.output.len();
        let is_sliced = fragments && len > FRAGMENT_BYTES;
        let take = if is_sliced {
            FRAGMENT_BYTES.min(len - self.sent)
        } else {
            piece.end_of_credit(self.sent, self.credit.unwrap_or(i64::MAX)) - self.sent
        };
        let mut gone = take;
        if take == len && !is_sliced {
            if let Some(mut piece) = self.pieces.pop_front() {
                gone += piece.own_bytes();
                output.take_from(&mut piece.output);
            }
            self.bytes -= gone;
            return gone;
        }
        let is_last = self.sent + take == len;
        if is_sliced {
            output.bytes.reserve(take + LONG_HEADER_LEN + 1);
            // The head of an empty slice, its length then corrected: the bytes need not be gathered first.
            let head = output.bytes.len();
            Control::Fragment { last: is_last, slice: &[] }.encode(channel, &mut output.bytes);
            output.bytes[head + 4..head + 8].copy_from_slice(&(take as u32 + 1).to_be_bytes());
        }
        copy_range(&piece.output, self.sent, take, &mut output.bytes);
        self.sent += take;
        if is_last {
            gone += piece.own_bytes();
            self.sent = 0;
            self.pieces.pop_front();
        }
        self.bytes -= gone;
        gone
    }
}

/// Copies `len` bytes of an output from byte `from` on.
fn copy_range(output: &Output, from: usize, len: usize, into: &mut Vec<u8>) {
    let (mut skip, mut left) = (from, len);
    let mut piece = |bytes: &[u8]| {
        let passed = skip.min(bytes.len());
        let take = (bytes.len() - passed).min(left);
        into.extend_from_slice(&bytes[passed..passed + take]);
        skip -= passed;
        left -= take;
    };
    let mut at = 0;
    for pin in &output.pins {
        piece(&output.bytes[at..pin.at]);
        piece(pin.value.as_slice());
        at = pin.at;
    }
    piece(&output.bytes[at..]);
}
