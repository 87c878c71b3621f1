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

/// What a worker waits for on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// A socket that something can be done with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer is gone, or the socket has an error.
    pub(crate) broken: bool,
}

/// A way to wait for many sockets. Level-triggered: what is not read now is told again.
pub(crate) trait Poll {
    fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;
    fn change(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;
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

fn flags(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::RDHUP;
    flags.set(EventFlags::IN, interest.read);
    flags.set(EventFlags::OUT, interest.write);
    flags
}

impl Poll for Epoll {
    fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), flags(interest))?)
    }
    fn change(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, EventData::new_u64(token), flags(interest))?)
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
                readable: flags.intersects(EventFlags::IN | EventFlags::RDHUP),
                writable: flags.contains(EventFlags::OUT),
                broken: flags.intersects(EventFlags::ERR | EventFlags::HUP),
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
