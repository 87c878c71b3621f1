//! Owns: waiting for sockets, behind a small trait, and waking a worker that waits. Does not own: what is read or
//! written.

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;

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

/// A way to wait for many sockets.
///
/// A connection is told of once when input comes, when there is room to send again, and when it ends. Whoever leaves
/// input unread, or has only some of it, must come back by itself: the kernel then looks at a socket once for each
/// request and not twice, which is 4 % of a request that comes alone.
pub(crate) trait Poll {
    /// Watches a connection.
    fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()>;
    /// Watches a socket that listens: told of as long as somebody waits to be accepted.
    fn add_listener(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()>;
    fn remove(&self, fd: BorrowedFd<'_>);
    /// Waits until something is ready, `timeout_ms` has passed, or the waker was used; fills `ready` anew.
    fn wait(&mut self, timeout_ms: u64, ready: &mut Vec<Ready>) -> io::Result<()>;
    /// What wakes it from another thread.
    fn waker(&self) -> Waker;
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
}

impl Poll for Epoll {
    fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), flags)?)
    }
    fn add_listener(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN)?)
    }
    fn remove(&self, fd: BorrowedFd<'_>) {
        // A socket that is about to be closed leaves epoll by that too.
        let _ = epoll::delete(&self.epoll, fd);
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
