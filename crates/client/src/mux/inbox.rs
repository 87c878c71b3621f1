//! Owns what one channel has been sent and is due: replies in order, pushes apart, the end and its reason, credit. Does
//! not own the connection.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use weft_protocol::Reply;

use super::lock;
use crate::error::{Error, Result, Waiting};
use crate::waiting::Patience;

#[derive(Debug)]
pub(super) struct Inbox {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    /// Requests that are not answered, in order.
    due: VecDeque<Due>,
    /// Replies that nobody has taken, with their length on the wire. No more than were asked for.
    replies: VecDeque<(Reply, usize)>,
    /// The same of pushes; bounded by the configuration, and by credit if there is.
    pushes: VecDeque<(Reply, usize)>,
    /// Nobody reads: pushes are dropped. Channel 0 between two users.
    abandoned: bool,
    /// The number of the next request.
    sequence: u32,
    /// Something has been sent on it: until then it is idle to the server, which would not answer CLOSE.
    pub(super) is_open: bool,
    /// Why the channel ended.
    end: Option<Error>,
    /// When a part of a reply last came.
    last_slice: Option<Instant>,
    /// Bytes that were taken and are not yet given back as credit.
    owed: usize,
    /// Bytes of slices of a reply that is not whole. They are given back once nothing else waits to be taken: the
    /// server could otherwise wait for credit in the midst of a reply larger than all of it.
    slices: usize,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    patience: Patience,
    /// Whoever asked has given up: the reply is dropped.
    abandoned: bool,
}

/// What a server must not send.
pub(super) const IDLE: Error = Error::Unexpected("a frame for a channel that was not opened");

/// What was waited for did not come in time.
pub(super) struct TooLate;

impl Inbox {
    /// An empty inbox; `sequence` is the number of the next request.
    pub(super) fn new(sequence: u32) -> Self {
        let state = State {
            due: VecDeque::new(),
            replies: VecDeque::new(),
            pushes: VecDeque::new(),
            abandoned: false,
            sequence,
            is_open: false,
            end: None,
            last_slice: None,
            owed: 0,
            slices: 0,
        };
        Inbox { state: Mutex::new(state), arrived: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Does something that must not happen after the channel's end.
    pub(super) fn while_open<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T> {
        let mut state = self.lock();
        match &state.end {
            Some(error) => Err(error.clone()),
            None => Ok(act(&mut state)),
        }
    }

    /// Ends the channel, once; `close` is called under the lock, and only if it had not ended.
    pub(super) fn end(&self, error: Error, close: impl FnOnce(&State)) -> bool {
        let was_open = self.mark(error, close);
        if was_open {
            self.wake();
        }
        was_open
    }
    /// The first half of [`end`](Self::end): no request is taken from here on, and nobody has been told yet.
    pub(super) fn mark(&self, error: Error, close: impl FnOnce(&State)) -> bool {
        let mut state = self.lock();
        let was_open = state.end.is_none();
        if was_open {
            state.end = Some(error);
            close(&state);
        }
        was_open
    }
    /// The second half.
    pub(super) fn wake(&self) {
        self.arrived.notify_all();
    }

    /// A reply has come. Gives the credit that is to be granted.
    pub(super) fn reply(&self, reply: Reply, wire_bytes: usize, window: Option<u32>) -> Result<Option<u32>> {
        let mut state = self.lock();
        state.last_slice = None;
        let Some(due) = state.due.pop_front() else {
            return Err(Error::Unexpected("a reply that nothing asked for"));
        };
        if due.abandoned {
            state.owed += wire_bytes;
        } else {
            state.replies.push_back((reply, wire_bytes));
            self.arrived.notify_all();
        }
        Ok(state.credit(window))
    }

    /// A push has come; false when there are too many.
    pub(super) fn push(&self, push: Reply, wire_bytes: usize, pushes_max: usize) -> Result<bool> {
        let mut state = self.lock();
        state.expect_open()?;
        if state.abandoned {
            state.owed += wire_bytes;
            return Ok(true);
        }
        if state.pushes.len() >= pushes_max {
            return Ok(false);
        }
        state.pushes.push_back((push, wire_bytes));
        self.arrived.notify_all();
        Ok(true)
    }

    /// A part of a reply has come. Gives the credit that is to be granted.
    pub(super) fn slice(&self, wire_bytes: usize, window: Option<u32>) -> Result<Option<u32>> {
        let mut state = self.lock();
        state.expect_open()?;
        state.slices += wire_bytes;
        state.last_slice = Some(Instant::now());
        Ok(state.credit(window))
    }

    /// Nobody reads any more, and somebody else will.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        state.replies.clear();
        state.pushes.clear();
        state.due.iter_mut().for_each(|due| due.abandoned = true);
    }

    /// Somebody reads.
    pub(super) fn adopt(&self) {
        self.lock().abandoned = false;
    }

    /// The reply that is next in turn.
    pub(super) fn take_reply(&self, usual: Option<Duration>) -> Result<Result<Reply, TooLate>> {
        let mut state = self.lock();
        let started = Instant::now();
        loop {
            if let Some((reply, wire_bytes)) = state.replies.pop_front() {
                state.owed += wire_bytes;
                return Ok(Ok(reply));
            }
            if let Some(error) = &state.end {
                return Err(error.clone());
            }
            let Some(due) = state.due.iter().find(|due| !due.abandoned) else {
                return Err(Error::Config("every request has been answered".into()));
            };
            let Some(limit) = due.patience.limit(usual) else {
                state = self.wait(state, None);
                continue;
            };
            let since = state.last_slice.map_or(started, |slice| slice.max(started));
            let left = limit.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Ok(Err(TooLate));
            }
            state = self.wait(state, Some(left));
        }
    }

    /// The next push; none when the time is over.
    pub(super) fn take_push(&self, limit: Option<Duration>) -> Result<Option<Reply>> {
        let mut state = self.lock();
        let started = Instant::now();
        loop {
            if let Some((push, wire_bytes)) = state.pushes.pop_front() {
                state.owed += wire_bytes;
                return Ok(Some(push));
            }
            if let Some(error) = &state.end {
                return Err(error.clone());
            }
            let left = limit.map(|limit| limit.saturating_sub(started.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            state = self.wait(state, left);
        }
    }

    fn wait<'a>(&'a self, state: MutexGuard<'a, State>, limit: Option<Duration>) -> MutexGuard<'a, State> {
        use std::sync::PoisonError;
        match limit {
            None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => self.arrived.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0,
        }
    }

    /// Gives up the request that is next in turn: its number, and what to say of it.
    pub(super) fn give_up(&self, usual: Option<Duration>) -> Option<(u32, Error)> {
        let mut state = self.lock();
        let count = state.due.len();
        let index = state.due.iter().position(|due| !due.abandoned)?;
        let due = &mut state.due[index];
        due.abandoned = true;
        let limit = due.patience.limit(usual).unwrap_or_default();
        let number = state.sequence.wrapping_sub((count - index) as u32);
        Some((number, Error::Timeout(Waiting::Reply, limit)))
    }
}

impl State {
    /// Notes a request; gives its number.
    pub(super) fn note_request(&mut self, patience: Patience) -> u32 {
        self.due.push_back(Due { patience, abandoned: false });
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        sequence
    }

    /// What comes on a channel that is idle to the server is the end of the connection (section 8.1).
    fn expect_open(&self) -> Result<()> {
        if self.is_open { Ok(()) } else { Err(IDLE) }
    }

    /// Whether no reply is due or waits to be taken.
    pub(super) fn is_idle(&self) -> bool {
        self.replies.is_empty() && self.due.iter().all(|due| due.abandoned)
    }

    /// Why the channel ended.
    pub(super) fn ended(&self) -> Option<&Error> {
        self.end.as_ref()
    }

    /// The credit to be granted, once half of the window has been taken.
    pub(super) fn credit(&mut self, window: Option<u32>) -> Option<u32> {
        let window = window?;
        if self.replies.is_empty() && self.pushes.is_empty() {
            self.owed += std::mem::take(&mut self.slices);
        }
        if self.owed == 0 || self.owed < window as usize / 2 {
            return None;
        }
        let more = u32::try_from(self.owed).unwrap_or(u32::MAX);
        self.owed -= more as usize;
        Some(more)
    }
}
