//! Owns: waiting for sockets and receiving from them, behind a small trait, and waking a worker that waits. Does not
//! own: what is received, sending.

mod uring;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{RecvFlags, recv};
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;

use uring::Uring;

/// Events taken from the kernel at once.
const EVENTS_MAX: usize = 256;

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

/// A way to wait for many sockets and to receive from them. A connection is known by its token, which is free for
/// another one as soon as it is removed.
///
/// A connection is told of once when input comes, when there is room to send again, and when it ends. Whoever leaves
/// input unread, or has only some of it, must come back by itself: the kernel then looks at a socket once for each
/// request and not twice, which is 4 % of a request that comes alone.
pub(crate) trait Poll {
    /// Watches a connection. Its descriptor stays open until it is removed.
    fn add(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()>;
    fn remove(&mut self, fd: BorrowedFd<'_>, token: u64);
    /// Nothing more is taken from a connection for now, so that nothing need be received; or it is again.
    fn set_reading(&mut self, token: u64, reading: bool);
    /// Something was not sent: an event is to tell when there is room.
    fn await_room(&mut self, token: u64);
    /// Receives what is there; 0 at the end of the stream.
    fn receive(&mut self, fd: BorrowedFd<'_>, token: u64, into: &mut [u8]) -> rustix::io::Result<usize>;
    /// The same, behind what `into` has, into memory that it has already.
    fn receive_behind(
        &mut self,
        fd: BorrowedFd<'_>,
        token: u64,
        into: &mut Vec<u8>,
    ) -> rustix::io::Result<usize>;
    /// Waits until something is ready, `timeout_ms` has passed, or the waker was used; fills `ready` anew.
    fn wait(&mut self, timeout_ms: u64, ready: &mut Vec<Ready>) -> io::Result<()>;
    /// What wakes it from another thread.
    fn waker(&self) -> Waker;
}

/// How sockets are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Epoll,
    Uring,
}

impl Way {
    /// Its name in configuration and INFO.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
            Self::Uring => "io_uring",
        }
    }
}

/// The way that was chosen.
pub(crate) enum Backend {
    Epoll(Epoll),
    Uring(Box<Uring>),
}

impl Backend {
    pub(crate) fn new(way: Way, worker: u16) -> io::Result<Self> {
        Ok(match way {
            Way::Epoll => Self::Epoll(Epoll::new(worker)?),
            Way::Uring => Self::Uring(Box::new(Uring::new(worker)?)),
        })
    }
    pub(crate) const fn epoll(&self) -> Option<&Epoll> {
        match self {
            Self::Epoll(epoll) => Some(epoll),
            Self::Uring(_) => None,
        }
    }
    pub(crate) const fn epoll_mut(&mut self) -> Option<&mut Epoll> {
        match self {
            Self::Epoll(epoll) => Some(epoll),
            Self::Uring(_) => None,
        }
    }
}

/// Calls one or the other.
macro_rules! either {
    ($backend:expr, $poll:ident => $call:expr) => {
        match $backend {
            Backend::Epoll($poll) => $call,
            Backend::Uring($poll) => $call,
        }
    };
}

impl Poll for Backend {
    fn add(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        either!(self, poll => poll.add(fd, token))
    }
    fn remove(&mut self, fd: BorrowedFd<'_>, token: u64) {
        either!(self, poll => poll.remove(fd, token));
    }
    fn set_reading(&mut self, token: u64, reading: bool) {
        either!(self, poll => poll.set_reading(token, reading));
    }
    fn await_room(&mut self, token: u64) {
        either!(self, poll => poll.await_room(token));
    }
    #[inline]
    fn receive(&mut self, fd: BorrowedFd<'_>, token: u64, into: &mut [u8]) -> rustix::io::Result<usize> {
        either!(self, poll => poll.receive(fd, token, into))
    }
    fn receive_behind(
        &mut self,
        fd: BorrowedFd<'_>,
        token: u64,
        into: &mut Vec<u8>,
    ) -> rustix::io::Result<usize> {
        either!(self, poll => poll.receive_behind(fd, token, into))
    }
    fn wait(&mut self, timeout_ms: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        either!(self, poll => poll.wait(timeout_ms, ready))
    }
    fn waker(&self) -> Waker {
        either!(self, poll => poll.waker())
    }
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

/// epoll. Several workers of one thread wait with the instance of one of them.
pub(crate) struct Epoll {
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

impl Epoll {
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
}

impl Poll for Epoll {
    fn add(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, self.token(token), EVENTS)?)
    }
    fn remove(&mut self, fd: BorrowedFd<'_>, _: u64) {
        // A socket that is about to be closed leaves epoll by that too.
        let _ = epoll::delete(&self.epoll, fd);
    }
    fn set_reading(&mut self, _: u64, _: bool) {
        // What is not received stays with the kernel.
    }
    fn await_room(&mut self, _: u64) {
        // An edge tells of it in any case.
    }
    #[inline]
    fn receive(&mut self, fd: BorrowedFd<'_>, _: u64, into: &mut [u8]) -> rustix::io::Result<usize> {
        recv(fd, into, RecvFlags::empty()).map(|(len, _)| len)
    }
    fn receive_behind(
        &mut self,
        fd: BorrowedFd<'_>,
        _: u64,
        into: &mut Vec<u8>,
    ) -> rustix::io::Result<usize> {
        let before = into.len();
        recv(fd, rustix::buffer::spare_capacity(into), RecvFlags::empty()).map(|_| into.len() - before)
    }
    fn wait(&mut self, timeout_ms: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
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
    fn waker(&self) -> Waker {
        self.wake.clone()
    }
}

/// The descriptor of a socket, borrowed.
pub(crate) fn borrowed(fd: &OwnedFd) -> BorrowedFd<'_> {
    fd.as_fd()
}
