//! Owns: waiting for sockets with epoll, receiving from them, and waking a worker that waits. Does not own: what is
//! received, sending.

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
pub(crate) use rustix::fd::BorrowedFd;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{RecvFlags, recv};
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Events taken from the kernel at once.
const EVENTS_MAX: usize = 128;

/// A socket that something can be done with, or a waker that was used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The worker that it is for.
    pub(crate) worker: u16,
    /// The token of the connection, which is a place; [`WAKE`] of the waker.
    pub(crate) place: u32,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer will send no more.
    pub(crate) ended: bool,
    /// The socket has an error.
    pub(crate) broken: bool,
}

/// Wakes a worker. Any number of calls before it wakes count as one.
#[derive(Clone, Debug)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(crate) fn wake(&self) {
        // Fails only when the counter is full, and then the worker is about to wake anyway.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// A way to wait for many sockets. Several workers of one thread wait with the instance of one of them. A connection
/// is known by its token, which is free for another one as soon as it is removed.
///
/// A connection is told of once when input comes, when there is room to send again, and when it ends. Whoever leaves
/// input unread, or has only some of it, must come back by itself: the kernel then looks at a socket once for each
/// request and not twice, which is 4 % of a request that comes alone.
pub(crate) struct Poll {
    /// The instance in use: its own, or the one of another worker.
    epoll: Arc<OwnedFd>,
    own: Arc<OwnedFd>,
    wake: Waker,
    worker: u16,
}

/// What stands for the waker where a connection's place stands in a token: no place is that large.
const WAKE: u32 = u32::MAX;

/// The events of a connection. Each is told of once.
const EVENTS: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

impl Poll {
    pub(crate) fn new(worker: u16) -> io::Result<Self> {
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let poll = Self { own: Arc::clone(&epoll), epoll, wake: Waker(Arc::new(wake)), worker };
        poll.watch_waker()?;
        Ok(poll)
    }
    /// An event that carries no more than that somebody was woken: each use of the waker is one, nothing is read.
    fn watch_waker(&self) -> io::Result<()> {
        let token = self.token(u64::from(WAKE));
        Ok(epoll::add(&self.epoll, &self.wake.0, token, EventFlags::IN | EventFlags::ET)?)
    }
    fn token(&self, token: u64) -> EventData {
        EventData::new_u64(u64::from(self.worker) << 32 | token)
    }
    /// Watches a socket that listens: told of as long as somebody waits to be accepted.
    pub(crate) fn add_listener(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN)?)
    }
    /// Waits with another one's instance from now on, or with its own again. Every socket is told of anew, so that
    /// nothing is lost that happens meanwhile. Gives those of which it cannot be told any more.
    pub(crate) fn move_to<'s>(
        &mut self,
        other: Option<&Self>,
        sockets: impl Iterator<Item = (BorrowedFd<'s>, u64)>,
    ) -> io::Result<Vec<u64>> {
        let mut lost = Vec::new();
        let to = Arc::clone(other.map_or(&self.own, |other| &other.epoll));
        if Arc::ptr_eq(&to, &self.epoll) {
            return Ok(lost);
        }
        let from = std::mem::replace(&mut self.epoll, to);
        // What is not there need not be taken away.
        let _ = epoll::delete(&from, &self.wake.0);
        self.watch_waker()?;
        for (fd, token) in sockets {
            let _ = epoll::delete(&from, fd);
            if epoll::add(&self.epoll, fd, self.token(token), EVENTS).is_err() {
                lost.push(token);
            }
        }
        Ok(lost)
    }
    /// Watches a connection. Its descriptor stays open until it is removed.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, self.token(token), EVENTS)?)
    }
    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        // A socket that is about to be closed leaves epoll by that too.
        let _ = epoll::delete(&self.epoll, fd);
    }
    /// Waits until something is ready, `timeout_ms` has passed, or the waker was used; fills `ready` anew.
    pub(crate) fn wait(&self, timeout_ms: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS_MAX];
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout_ms / 1000).unwrap_or(i64::MAX),
            tv_nsec: (timeout_ms % 1000 * 1_000_000) as _,
        };
        let events = match epoll::wait(&self.epoll, &mut events[..], Some(&timeout)) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            let token = event.data.u64();
            let flags = event.flags;
            ready.push(Ready {
                worker: (token >> 32) as u16,
                place: token as u32,
                readable: flags.contains(EventFlags::IN),
                writable: flags.contains(EventFlags::OUT),
                ended: flags.intersects(EventFlags::RDHUP | EventFlags::HUP),
                broken: flags.contains(EventFlags::ERR),
            });
        }
        Ok(())
    }
    /// What wakes it from another thread.
    pub(crate) fn waker(&self) -> Waker {
        self.wake.clone()
    }
}

/// Receives what is there; 0 at the end of the stream.
#[inline]
pub(crate) fn receive(fd: BorrowedFd<'_>, into: &mut [u8]) -> rustix::io::Result<usize> {
    recv(fd, into, RecvFlags::empty()).map(|(len, _)| len)
}

/// The same, behind what `into` has, into memory that it has already.
pub(crate) fn receive_behind(fd: BorrowedFd<'_>, into: &mut Vec<u8>) -> rustix::io::Result<usize> {
    let before = into.len();
    recv(fd, rustix::buffer::spare_capacity(into), RecvFlags::empty()).map(|_| into.len() - before)
}

/// The descriptor of a socket, borrowed.
pub(crate) fn borrowed(fd: &OwnedFd) -> BorrowedFd<'_> {
    fd.as_fd()
}
