//! Owns: connections on an io_uring: a multishot receive on each, what has come and was not taken yet, and when the
//! receiving stops. Does not own: the memory shared with the kernel (`crate::sys::ring`), sending.
//!
//! The kernel receives by itself into buffers of the ring, so one system call a tick brings the input of all
//! connections. What the worker has not taken by the next tick is copied to where it holds no buffer up, and a
//! connection that has much of it, or is not read from, is not received from.
//!
//! A completion is matched by the place of its connection and the generation of that place: those of a predecessor
//! give their buffer back and are forgotten, in whatever order they come.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::{Poll, Ready, Waker};
use crate::limits::ASIDE_BYTES_MAX;
use crate::sys::ring::{Ask, Completion, Lease, POLL_ERR, Ring};

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Receive = 1,
    Room = 2,
    Wake = 3,
    Cancel = 4,
}

/// How a request is known: `kind` in the first byte, the generation in the next three, the place in the last four.
fn name(kind: Kind, generation: u32, place: u32) -> u64 {
    (kind as u64) << 56 | u64::from(generation & GENERATION_MASK) << 32 | u64::from(place)
}
const GENERATION_MASK: u32 = 0xff_ffff;

/// A request that stays with the kernel until its last completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Standing {
    #[default]
    Not,
    Asked,
    Cancelled,
}

/// One connection, or its place.
#[derive(Default)]
struct Slot {
    generation: u32,
    fd: Option<RawFd>,
    /// Input is wanted.
    reading: bool,
    receive: Standing,
    room: Standing,
    /// Somebody waits for room to send.
    wants_room: bool,
    /// It stands in the list of those to be looked at before the next wait.
    listed: bool,
    /// What has come since then, in buffers of the ring, and how much of the first is taken.
    leases: VecDeque<Lease>,
    taken: usize,
    /// What has come before and was not taken.
    aside: VecDeque<u8>,
    /// The peer has sent its last byte.
    ended: bool,
    failed: Option<Errno>,
}

/// io_uring.
pub(crate) struct Uring {
    ring: Ring,
    worker: u16,
    wake: Waker,
    enabled: bool,
    wakes: bool,
    slots: Vec<Slot>,
    /// Places to be looked at before the next wait.
    listed: Vec<u32>,
    /// Requests of connections that are gone.
    cancelled: Vec<u64>,
}

impl Uring {
    /// Fails where the kernel has no io_uring, an old one, or does not allow it.
    pub(crate) fn new(worker: u16) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self {
            ring: Ring::new()?,
            worker,
            wake: Waker(Arc::new(wake)),
            enabled: false,
            wakes: false,
            slots: Vec::new(),
            listed: Vec::new(),
            cancelled: Vec::new(),
        })
    }

    fn list(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        if !slot.listed {
            slot.listed = true;
            self.listed.push(place);
        }
    }

    /// Asks for what is wanted and not asked for, and takes back what is asked for and not wanted. Before this, what
    /// was not taken goes aside.
    fn ask_for_all(&mut self) -> io::Result<()> {
        for request in self.cancelled.drain(..) {
            self.ring.ask(Ask::Cancel(request), name(Kind::Cancel, 0, 0))?;
        }
        if !self.wakes {
            self.ring.ask(Ask::Readable(self.wake.0.as_raw_fd()), name(Kind::Wake, 0, 0))?;
            self.wakes = true;
        }
        while let Some(place) = self.listed.pop() {
            let slot = &mut self.slots[place as usize];
            slot.listed = false;
            while let Some(lease) = slot.leases.pop_front() {
                slot.aside.extend(&self.ring.bytes(&lease)[slot.taken..]);
                slot.taken = 0;
                self.ring.give_back(lease);
            }
            let Some(fd) = slot.fd else { continue };
            let request = name(Kind::Receive, slot.generation, place);
            match slot.receive {
                Standing::Not if slot.receives() => {
                    self.ring.ask(Ask::Receive(fd), request)?;
                    slot.receive = Standing::Asked;
                }
                Standing::Asked if !slot.receives() => {
                    self.ring.ask(Ask::Cancel(request), name(Kind::Cancel, 0, 0))?;
                    slot.receive = Standing::Cancelled;
                }
                _ => {}
            }
            if slot.wants_room && slot.room == Standing::Not {
                self.ring.ask(Ask::Room(fd), name(Kind::Room, slot.generation, place))?;
                slot.room = Standing::Asked;
            }
        }
        Ok(())
    }

    fn completed(&mut self, completion: Completion, ready: &mut Vec<Ready>) {
        let Completion { user_data, result, more, lease } = completion;
        let worker = self.worker;
        let (place, generation) = (user_data as u32, (user_data >> 32) as u32 & GENERATION_MASK);
        let kind = (user_data >> 56) as u8;
        if kind == Kind::Wake as u8 {
            let _ = rustix::io::read(&*self.wake.0, &mut [0_u8; 8]);
            self.wakes = more;
            return;
        }
        let slot = self.slots.get_mut(place as usize);
        let Some(slot) = slot.filter(|slot| slot.fd.is_some() && slot.generation == generation) else {
            // Of a connection that is gone, or of a cancellation.
            lease.into_iter().for_each(|lease| self.ring.give_back(lease));
            return;
        };
        let mut event =
            Ready { worker, place, readable: false, writable: false, ended: false, broken: false };
        if kind == Kind::Room as u8 {
            slot.room = Standing::Not;
            slot.wants_room = false;
            event.writable = true;
            event.broken = result < 0 || result & POLL_ERR != 0;
        } else if kind == Kind::Receive as u8 {
            if !more {
                slot.receive = Standing::Not;
            }
            match (result, lease) {
                (1.., Some(lease)) => {
                    event.readable = true;
                    slot.leases.push_back(lease);
                }
                (_, lease) => {
                    lease.into_iter().for_each(|lease| self.ring.give_back(lease));
                    match (result < 0).then(|| Errno::from_raw_os_error(-result)) {
                        None => {
                            slot.ended = true;
                            event.ended = true;
                        }
                        Some(Errno::NOBUFS) => self.ring.more_buffers(),
                        // It is asked again, if that is still wanted.
                        Some(Errno::CANCELED | Errno::INTR | Errno::AGAIN) => {}
                        Some(error) => {
                            slot.failed = Some(error);
                            event.broken = true;
                        }
                    }
                }
            }
            self.list(place);
        }
        if event.readable || event.writable || event.ended || event.broken {
            ready.push(event);
        }
    }

    /// Hands out what has come to `take`, which says how much it took.
    fn hand_out(&mut self, token: u64, mut take: impl FnMut(&[u8]) -> usize) -> rustix::io::Result<usize> {
        let place = token as u32;
        let Some(slot) = self.slots.get_mut(place as usize) else { return Ok(0) };
        let mut len = 0;
        while !slot.aside.is_empty() {
            let taken = take(slot.aside.as_slices().0);
            slot.aside.drain(..taken);
            len += taken;
            if taken == 0 {
                return Ok(len);
            }
        }
        if len > 0 {
            // It may be received from again; and what it held is let go of.
            slot.aside = VecDeque::new();
            if slot.receive == Standing::Not && !slot.listed {
                slot.listed = true;
                self.listed.push(place);
            }
        }
        while let Some(lease) = slot.leases.front() {
            let rest = &self.ring.bytes(lease)[slot.taken..];
            let taken = take(rest);
            len += taken;
            if taken < rest.len() {
                slot.taken += taken;
                return Ok(len);
            }
            slot.taken = 0;
            if let Some(lease) = slot.leases.pop_front() {
                self.ring.give_back(lease);
            }
        }
        match slot.failed {
            _ if len > 0 => Ok(len),
            Some(error) => Err(error),
            None if slot.ended => Ok(0),
            None => Err(Errno::WOULDBLOCK),
        }
    }
}

impl Slot {
    /// Whether the kernel is to receive from it.
    fn receives(&self) -> bool {
        self.reading && self.aside.len() <= ASIDE_BYTES_MAX && !self.ended && self.failed.is_none()
    }
}

impl Poll for Uring {
    fn add(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let place = token as u32;
        if self.slots.len() <= place as usize {
            self.slots.resize_with(place as usize + 1, Slot::default);
        }
        let slot = &mut self.slots[place as usize];
        slot.fd = Some(fd.as_raw_fd());
        slot.reading = true;
        self.list(place);
        Ok(())
    }

    fn remove(&mut self, _: BorrowedFd<'_>, token: u64) {
        let place = token as u32;
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        let next = Slot {
            generation: (slot.generation + 1) & GENERATION_MASK,
            listed: slot.listed,
            ..Slot::default()
        };
        let old = std::mem::replace(slot, next);
        old.leases.into_iter().for_each(|lease| self.ring.give_back(lease));
        // They hold the socket open.
        for (kind, standing) in [(Kind::Receive, old.receive), (Kind::Room, old.room)] {
            if standing == Standing::Asked {
                self.cancelled.push(name(kind, old.generation, place));
            }
        }
    }

    fn set_reading(&mut self, token: u64, reading: bool) {
        let place = token as u32;
        if let Some(slot) = self.slots.get_mut(place as usize)
            && slot.fd.is_some()
            && slot.reading != reading
        {
            slot.reading = reading;
            self.list(place);
        }
    }

    fn await_room(&mut self, token: u64) {
        let place = token as u32;
        if let Some(slot) = self.slots.get_mut(place as usize)
            && slot.fd.is_some()
            && !slot.wants_room
        {
            slot.wants_room = true;
            self.list(place);
        }
    }

    fn receive(&mut self, _: BorrowedFd<'_>, token: u64, into: &mut [u8]) -> rustix::io::Result<usize> {
        let mut at = 0;
        self.hand_out(token, |bytes| {
            let len = bytes.len().min(into.len() - at);
            into[at..at + len].copy_from_slice(&bytes[..len]);
            at += len;
            len
        })
    }

    fn receive_behind(
        &mut self,
        _: BorrowedFd<'_>,
        token: u64,
        into: &mut Vec<u8>,
    ) -> rustix::io::Result<usize> {
        self.hand_out(token, |bytes| {
            let len = bytes.len().min(into.capacity() - into.len());
            into.extend_from_slice(&bytes[..len]);
            len
        })
    }

    fn wait(&mut self, timeout_ms: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        if !self.enabled {
            self.ring.enable()?;
            self.enabled = true;
        }
        self.ask_for_all()?;
        self.ring.enter(timeout_ms)?;
        while let Some(completion) = self.ring.complete() {
            self.completed(completion, ready);
        }
        Ok(())
    }

    fn waker(&self) -> Waker {
        self.wake.clone()
    }
}
