//! Owns: an io_uring: its two queues and the buffers that the kernel receives into, all of them memory shared with the
//! kernel. Does not own: what is asked of it (`crate::poll::uring`).
//!
//! Nothing that can be asked here names memory but the ring's own buffers, so that no request can outlive what it
//! points to. A buffer is the kernel's until a completion hands it out as a [`Lease`], and ours until the lease is
//! given back.

use std::io;
use std::mem::size_of;
use std::os::fd::RawFd;
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use rustix::event::Timespec;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::io_uring::{
    IORING_CQE_BUFFER_SHIFT, IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringCqeFlags, IoringEnterFlags,
    IoringFeatureFlags, IoringOp, IoringPollFlags, IoringRecvFlags, IoringRegisterOp, IoringSetupFlags,
    IoringSqeFlags, io_uring_buf_reg, io_uring_enter, io_uring_enter_arg, io_uring_getevents_arg,
    io_uring_params, io_uring_ptr, io_uring_register, io_uring_setup, io_uring_sqe,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// Requests that can wait to be submitted; when there are more, those before are submitted at once.
const SUBMISSIONS: u32 = 512;
/// Completions that can wait to be looked at; the kernel keeps those beyond by itself.
const COMPLETIONS: u32 = 8192;
/// Bytes of a buffer: a batch of 100 short commands, or a few large values.
const BUFFER_BYTES: usize = 16 << 10;
/// Buffers at most: 16 MiB, of which what was never received into is not there.
const BUFFERS_MAX: u16 = 1024;
/// Buffers at first. The kernel takes them in turn, so that few of them stay in the cache; it is given more when it
/// runs out.
const BUFFERS_MIN: u16 = 64;
/// The one group of buffers.
const GROUP: u16 = 0;
/// Where in the ring of buffers its tail stands: in the first entry's spare field.
const BUFFER_TAIL_AT: usize = 14;

/// `POLLIN`, `POLLOUT` and `POLLERR`, which are the same everywhere that Linux runs.
const POLL_IN: u32 = 0x1;
const POLL_OUT: u32 = 0x4;
/// Something is wrong with what was waited for.
pub(crate) const POLL_ERR: i32 = 0x8;

/// Something that the kernel can be asked for. Whoever asks sees to it that a descriptor is open until the next
/// [`Ring::enter`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    /// Everything that comes from a socket, a completion each, until it ends or is cancelled.
    Receive(RawFd),
    /// Once, that a socket takes something again.
    Room(RawFd),
    /// Each time that there is something to read.
    Readable(RawFd),
    /// The end of another request.
    Cancel(u64),
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Completion {
    /// What the request was given to be known by.
    pub(crate) user_data: u64,
    /// Bytes, or flags; below 0 an error.
    pub(crate) result: i32,
    /// Further completions of the request will come.
    pub(crate) more: bool,
    /// The buffer that was received into.
    pub(crate) lease: Option<Lease>,
}

/// A buffer with bytes that were received. It is given back, not dropped: a lost one is never received into again.
#[derive(Debug)]
pub(crate) struct Lease {
    buffer: u16,
    len: u32,
}

/// Memory that is mapped as long as this lives.
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is plain memory; nothing about it belongs to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(bytes: usize) -> io::Result<Self> {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a private anonymous mapping at an address of the kernel's choice touches no other memory.
        let base = unsafe { mmap_anonymous(null_mut(), bytes, flags, MapFlags::PRIVATE)? };
        NonNull::new(base.cast()).map(|base| Self { base, bytes }).ok_or_else(|| Errno::NOMEM.into())
    }
    fn of(fd: &OwnedFd, bytes: usize, offset: u64) -> io::Result<Self> {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a shared mapping of the ring's own memory, at an address of the kernel's choice.
        let base =
            unsafe { mmap(null_mut(), bytes, flags, MapFlags::SHARED | MapFlags::POPULATE, fd, offset)? };
        NonNull::new(base.cast()).map(|base| Self { base, bytes }).ok_or_else(|| Errno::NOMEM.into())
    }
    /// Where something stands in it. Panics beyond its end.
    fn at<T>(&self, offset: usize) -> NonNull<T> {
        assert!(offset + size_of::<T>() <= self.bytes, "the kernel's offsets lie in what was mapped");
        // SAFETY: just checked to be inside.
        unsafe { self.base.add(offset).cast() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` or `of` with this length; whoever has pointers into it has dropped them before.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// The kernel's form of a completion.
#[repr(C)]
#[derive(Clone, Copy)]
struct Cqe {
    user_data: u64,
    result: i32,
    flags: u32,
}

/// The kernel's form of an entry in the ring of buffers, without its last two bytes: in the first entry those are the
/// ring's tail.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    address: u64,
    len: u32,
    buffer: u16,
}

/// An io_uring of one thread.
pub(crate) struct Ring {
    // Closed before anything is unmapped.
    fd: OwnedFd,
    queues: Mapping,
    requests: Mapping,
    entries: Mapping,
    buffers: Mapping,
    sq: Queue,
    cq: Queue,
    completions_at: usize,
    buffer_tail: u16,
    /// Buffers that the kernel was given at all.
    buffers_live: u16,
}

/// A queue: where its ends stand, and ours.
struct Queue {
    head: NonNull<AtomicU32>,
    tail: NonNull<AtomicU32>,
    mask: u32,
    /// The end that is ours to move.
    own: u32,
}

// SAFETY: the pointers lead into the mappings of the ring that the queue is part of.
unsafe impl Send for Queue {}

impl Queue {
    fn head(&self) -> &AtomicU32 {
        // SAFETY: it lies in a mapping that lives as long as the ring, aligned by the kernel; both sides use it
        // atomically.
        unsafe { self.head.as_ref() }
    }
    fn tail(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.tail.as_ref() }
    }
}

impl Ring {
    /// A ring that is not enabled yet: the thread that will use it must enable it. Fails where the kernel is older than
    /// 6.1, or where it is not allowed.
    pub(crate) fn new() -> io::Result<Self> {
        let mut params = io_uring_params::default();
        params.flags = IoringSetupFlags::CQSIZE
            | IoringSetupFlags::R_DISABLED
            | IoringSetupFlags::SUBMIT_ALL
            | IoringSetupFlags::SINGLE_ISSUER
            | IoringSetupFlags::DEFER_TASKRUN;
        params.cq_entries = COMPLETIONS;
        // SAFETY: no other ring's work queue is named.
        let fd = unsafe { io_uring_setup(SUBMISSIONS, &mut params)? };
        let needed =
            IoringFeatureFlags::SINGLE_MMAP | IoringFeatureFlags::NODROP | IoringFeatureFlags::EXT_ARG;
        if !params.features.contains(needed) {
            return Err(Errno::NOSYS.into());
        }
        let (sq, cq) = (&params.sq_off, &params.cq_off);
        let sq_end = sq.array as usize + params.sq_entries as usize * size_of::<u32>();
        let cq_end = cq.cqes as usize + params.cq_entries as usize * size_of::<Cqe>();
        let queues = Mapping::of(&fd, sq_end.max(cq_end), IORING_OFF_SQ_RING)?;
        let requests = params.sq_entries as usize * size_of::<io_uring_sqe>();
        let requests = Mapping::of(&fd, requests, IORING_OFF_SQES)?;
        for at in 0..params.sq_entries {
            // SAFETY: inside the mapping. Each place of the queue names the request of the same number, for good; the
            // kernel does not look before something is submitted.
            unsafe { queues.at::<u32>(sq.array as usize + at as usize * size_of::<u32>()).write(at) };
        }
        let ring = Self {
            sq: Queue {
                head: queues.at(sq.head as usize),
                tail: queues.at(sq.tail as usize),
                mask: params.sq_entries - 1,
                own: 0,
            },
            cq: Queue {
                head: queues.at(cq.head as usize),
                tail: queues.at(cq.tail as usize),
                mask: params.cq_entries - 1,
                own: 0,
            },
            completions_at: cq.cqes as usize,
            entries: Mapping::new(usize::from(BUFFERS_MAX) * (size_of::<Entry>()))?,
            buffers: Mapping::new(usize::from(BUFFERS_MAX) * BUFFER_BYTES)?,
            buffer_tail: 0,
            buffers_live: 0,
            fd,
            queues,
            requests,
        };
        let mut register = io_uring_buf_reg::default();
        register.ring_addr = io_uring_ptr::new(ring.entries.base.as_ptr().cast());
        register.ring_entries = u32::from(BUFFERS_MAX);
        register.bgid = GROUP;
        // SAFETY: the entries are page-aligned memory of this length, which is there until the group is unregistered.
        unsafe {
            let register: *const io_uring_buf_reg = &register;
            io_uring_register(ring.fd.as_fd(), IoringRegisterOp::RegisterPbufRing, register.cast(), 1)?;
        }
        Ok(ring)
    }

    /// Enables it, for the calling thread alone.
    pub(crate) fn enable(&mut self) -> io::Result<()> {
        // SAFETY: the operation has no argument.
        unsafe { io_uring_register(self.fd.as_fd(), IoringRegisterOp::RegisterEnableRings, null(), 0)? };
        self.more_buffers();
        Ok(())
    }

    /// Notes a request; the kernel sees it at the next [`Ring::enter`].
    pub(crate) fn ask(&mut self, ask: Ask, user_data: u64) -> io::Result<()> {
        if self.sq.own.wrapping_sub(self.sq.head().load(Ordering::Acquire)) > self.sq.mask {
            self.submit()?;
        }
        let mut request = io_uring_sqe::default();
        request.user_data.u64_ = user_data;
        match ask {
            Ask::Receive(fd) => {
                request.opcode = IoringOp::Recv;
                request.fd = fd;
                request.flags = IoringSqeFlags::BUFFER_SELECT;
                request.ioprio.recv_flags = IoringRecvFlags::MULTISHOT;
                request.buf.buf_group = GROUP;
            }
            Ask::Room(fd) => {
                request.opcode = IoringOp::PollAdd;
                request.fd = fd;
                request.op_flags.poll32_events = POLL_OUT.rotate_left(POLL_ROTATION);
            }
            Ask::Readable(fd) => {
                request.opcode = IoringOp::PollAdd;
                request.fd = fd;
                request.len.poll_flags = IoringPollFlags::ADD_MULTI;
                request.op_flags.poll32_events = POLL_IN.rotate_left(POLL_ROTATION);
            }
            Ask::Cancel(other) => {
                request.opcode = IoringOp::AsyncCancel;
                request.fd = -1;
                request.addr_or_splice_off_in.user_data.u64_ = other;
            }
        }
        let at = (self.sq.own & self.sq.mask) as usize;
        // SAFETY: inside the mapping; the kernel has taken what stood there, since the queue is not full.
        unsafe { self.requests.at::<io_uring_sqe>(at * size_of::<io_uring_sqe>()).write(request) };
        self.sq.own = self.sq.own.wrapping_add(1);
        Ok(())
    }

    /// Requests that the kernel has not taken.
    fn publish(&mut self) -> u32 {
        self.sq.tail().store(self.sq.own, Ordering::Release);
        self.sq.own.wrapping_sub(self.sq.head().load(Ordering::Acquire))
    }

    fn submit(&mut self) -> io::Result<()> {
        let count = self.publish();
        // SAFETY: requests name descriptors and the ring's own buffers only.
        unsafe { io_uring_enter(self.fd.as_fd(), count, 0, IoringEnterFlags::empty())? };
        Ok(())
    }

    /// Submits what was asked, and waits for a completion, `timeout_ms` at most.
    pub(crate) fn enter(&mut self, timeout_ms: u64) -> io::Result<()> {
        let count = self.publish();
        let result = if timeout_ms == 0 {
            // SAFETY: requests name descriptors and the ring's own buffers only.
            unsafe { io_uring_enter(self.fd.as_fd(), count, 0, IoringEnterFlags::GETEVENTS) }
        } else {
            let mut time = Timespec {
                tv_sec: i64::try_from(timeout_ms / 1000).unwrap_or(i64::MAX),
                tv_nsec: (timeout_ms % 1000 * 1_000_000) as _,
            };
            let mut argument = io_uring_getevents_arg::default();
            let time: *mut Timespec = &mut time;
            argument.ts = io_uring_ptr::new(time.cast());
            let flags = IoringEnterFlags::GETEVENTS | IoringEnterFlags::EXT_ARG;
            // SAFETY: as above; the time is there as long as the call takes, and there is no signal mask.
            unsafe { io_uring_enter_arg(self.fd.as_fd(), count, 1, flags, Some(&argument)) }
        };
        match result {
            // The time has passed, a signal came, or completions wait that must be looked at first.
            Ok(_) | Err(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The next completion, if there is one.
    pub(crate) fn complete(&mut self) -> Option<Completion> {
        if self.cq.own == self.cq.tail().load(Ordering::Acquire) {
            return None;
        }
        let at = self.completions_at + (self.cq.own & self.cq.mask) as usize * size_of::<Cqe>();
        // SAFETY: inside the mapping, and written by the kernel before it moved the tail, which was just acquired.
        let Cqe { user_data, result, flags } = unsafe { self.queues.at::<Cqe>(at).read() };
        self.cq.own = self.cq.own.wrapping_add(1);
        self.cq.head().store(self.cq.own, Ordering::Release);
        let flag = |flag: IoringCqeFlags| flags & flag.bits() != 0;
        let lease = flag(IoringCqeFlags::BUFFER).then(|| {
            let buffer = (flags >> IORING_CQE_BUFFER_SHIFT) as u16;
            Lease { buffer, len: result.clamp(0, BUFFER_BYTES as i32) as u32 }
        });
        Some(Completion { user_data, result, more: flag(IoringCqeFlags::MORE), lease })
    }

    /// What was received.
    pub(crate) fn bytes(&self, lease: &Lease) -> &[u8] {
        let start = usize::from(lease.buffer) * BUFFER_BYTES;
        assert!(start + lease.len as usize <= self.buffers.bytes);
        // SAFETY: inside the mapping. The kernel has filled it and writes to it no more until the lease is given back,
        // which takes the lease away and the ring for itself.
        unsafe { std::slice::from_raw_parts(self.buffers.base.add(start).as_ptr(), lease.len as usize) }
    }

    /// The kernel may receive into the buffer again.
    pub(crate) fn give_back(&mut self, lease: Lease) {
        self.offer(lease.buffer);
        self.publish_buffers();
    }

    /// The kernel had no buffer: it gets as many again, up to the limit.
    pub(crate) fn more_buffers(&mut self) {
        let wanted = (self.buffers_live * 2).clamp(BUFFERS_MIN, BUFFERS_MAX);
        for buffer in self.buffers_live..wanted {
            self.offer(buffer);
        }
        self.buffers_live = wanted;
        self.publish_buffers();
    }

    fn offer(&mut self, buffer: u16) {
        let at = usize::from(self.buffer_tail & (BUFFERS_MAX - 1));
        let start = usize::from(buffer) * BUFFER_BYTES;
        let address = self.buffers.at::<[u8; BUFFER_BYTES]>(start).as_ptr() as u64;
        let entry: NonNull<Entry> = self.entries.at(at * size_of::<Entry>());
        // SAFETY: inside the mapping, and before the tail, so that the kernel does not look at it yet. Fields are
        // written one by one, since behind the first entry's last one stands the tail.
        unsafe {
            (&raw mut (*entry.as_ptr()).address).write(address);
            (&raw mut (*entry.as_ptr()).len).write(BUFFER_BYTES as u32);
            (&raw mut (*entry.as_ptr()).buffer).write(buffer);
        }
        self.buffer_tail = self.buffer_tail.wrapping_add(1);
    }

    fn publish_buffers(&mut self) {
        let tail: NonNull<AtomicU16> = self.entries.at(BUFFER_TAIL_AT);
        // SAFETY: inside the mapping and aligned; the kernel only reads it.
        unsafe { tail.as_ref() }.store(self.buffer_tail, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut register = io_uring_buf_reg::default();
        register.bgid = GROUP;
        let register: *const io_uring_buf_reg = &register;
        // SAFETY: the argument is there as long as the call. After it the kernel takes no buffer any more. It fails
        // only where no group was registered.
        let _ = unsafe {
            io_uring_register(self.fd.as_fd(), IoringRegisterOp::UnregisterPbufRing, register.cast(), 1)
        };
    }
}

/// The kernel wants the halves of a poll mask swapped on big-endian machines.
const POLL_ROTATION: u32 = if cfg!(target_endian = "big") { 16 } else { 0 };

const _: () = assert!(size_of::<Entry>() == 16 && size_of::<Cqe>() == 16 && BUFFERS_MAX.is_power_of_two());
