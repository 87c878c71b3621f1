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

/// A socket that something can be done with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: u64,
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
    pub(crate) fn new(way: Way) -> io::Result<Self> {
        Ok(match way {
            Way::Epoll => Self::Epoll(Epoll::new()?),
            Way::Uring => Self::Uring(Box::new(Uring::new()?)),
        })
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

/// epoll.
pub(crate) struct Epoll {
    epoll: OwnedFd,
    wake: Waker,
}

/// The token of the waker.
const WAKE: u64 = u64::MAX;

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Self { epoll, wake: Waker(Arc::new(wake)) })
    }
    /// Watches a socket that listens: told of as long as somebody waits to be accepted.
    pub(crate) fn add_listener(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN)?)
    }
}

impl Poll for Epoll {
    fn add(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), flags)?)
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
            if token == WAKE {
                let _ = rustix::io::read(&*self.wake.0, &mut [0_u8; 8]);
                continue;
            }
            let flags = event.flags;
            ready.push(Ready {
                token,
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
