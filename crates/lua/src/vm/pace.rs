//! Owns: how many instructions of Lua run between two looks. Does not own: what a look does (`Frame::tick`).
//!
//! An instruction may take long: `a .. b`, `a < b` and a call of one of Lua's own functions go through whole strings,
//! others through whole tables. None goes through more than a few blocks of memory, and what it makes is a block. So
//! the next look comes sooner
//!
//! | while | than behind |
//! |---|---|
//! | there is a large block ([`Blocks`](crate::memory::Blocks)) | the usual instructions: [`WALKED_BYTES_MAX`] of it |
//! | many bytes have been taken since the last look | those instructions: at the next one |
//! | instructions have taken long | those instructions: a part of them, twice as many when they have not |
//!
//! What a command takes that a script calls, no count of instructions says: the clock is asked behind each call while
//! calls take long, and behind [`CALLS_MAX`] while they do not.
//!
//! The hook of the coroutine that runs is the one that counts, so it is known which that is.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use mlua_sys as ffi;
use mlua_sys::lua_State;

use crate::frame::{Frame, STEPS_MAX, Shared, shared};
use crate::memory::Blocks;

/// Bytes that the instructions between two looks go through at most, if each goes through the largest block.
const WALKED_BYTES_MAX: usize = 128 << 20;
/// Instructions that took longer were too many.
const LONG: Duration = Duration::from_millis(4);
/// What as many of them take as run next.
const WANTED: Duration = Duration::from_millis(1);
/// Instructions that run before it is known how long they take, where there are large blocks.
const FIRST: u32 = 64;
/// The host is asked no more often, unless [`STEPS_MAX`] instructions have run.
const RARE: Duration = Duration::from_millis(1);
/// Calls of commands between two looks at the clock: first, and at most.
const CALLS_FIRST: u32 = 2;
const CALLS_MAX: u32 = 8;

/// How fast a state goes through its script.
pub(crate) struct Pace {
    /// The coroutine that runs, while something does.
    running: *mut lua_State,
    /// Instructions between two looks, by how long they took.
    by_time: u32,
    /// When the hook was called last, in this run, and when the host was asked.
    hooked: Option<Instant>,
    looked: Option<Instant>,
    /// Calls of commands until the clock is asked, how many they are, and when it was asked last.
    calls_left: u32,
    calls: u32,
    called: Option<Instant>,
}

impl Pace {
    pub(crate) const fn new() -> Self {
        Self {
            running: std::ptr::null_mut(),
            by_time: STEPS_MAX,
            hooked: None,
            looked: None,
            calls_left: CALLS_FIRST,
            calls: CALLS_FIRST,
            called: None,
        }
    }
    /// Whether nothing runs, or this coroutine. Another one may be collected, and is not to be told anything then.
    pub(crate) fn is_at_rest_or(&self, coroutine: *mut lua_State) -> bool {
        self.running.is_null() || self.running == coroutine
    }
    /// A run begins.
    pub(super) const fn begin(&mut self) {
        (self.by_time, self.hooked, self.looked) = (STEPS_MAX, None, None);
        (self.calls_left, self.calls, self.called) = (CALLS_FIRST, CALLS_FIRST, None);
    }
    /// The host was asked.
    pub(crate) fn looked(&mut self) {
        let now = Some(Instant::now());
        (self.hooked, self.looked) = (now, now);
    }
    /// Whether it is time to ask the host for who loops in one function.
    pub(crate) fn is_due(&self) -> bool {
        self.looked.is_none_or(|at| at.elapsed() >= RARE)
    }
    /// A command is about to be called. Says whether it is time to ask the host.
    #[inline]
    pub(crate) fn calls(&mut self) -> bool {
        self.calls_left -= 1;
        self.calls_left == 0 && self.have_called()
    }
    fn have_called(&mut self) -> bool {
        let now = Instant::now();
        let is_quick = self.called.replace(now).is_some_and(|at| now - at < RARE);
        self.calls = if is_quick { (self.calls * 2).min(CALLS_MAX) } else { 1 };
        self.calls_left = self.calls;
        self.looked.get_or_insert(now).checked_add(RARE).is_some_and(|next| now >= next)
    }
    /// So many instructions have run. Says whether it is time to ask the host.
    fn have_stepped(&mut self, count: u32) -> bool {
        let now = Instant::now();
        let before = self.hooked.replace(now);
        let is_time = self.looked.get_or_insert(now).checked_add(RARE).is_some_and(|next| now >= next);
        let Some(took) = before.map(|at| now - at) else { return false };
        if took > LONG {
            let part = u128::from(count) * WANTED.as_micros() / took.as_micros();
            self.by_time = u32::try_from(part).unwrap_or(STEPS_MAX).clamp(1, STEPS_MAX);
        } else if took < WANTED {
            self.by_time = self.by_time.saturating_mul(2).min(STEPS_MAX);
        }
        is_time
    }
    /// Instructions until the next look.
    fn instructions(&self, blocks: &Blocks) -> u32 {
        match blocks.largest_bytes() {
            0 => self.by_time,
            bytes => self.by_time.min(u32::try_from(WALKED_BYTES_MAX / bytes).unwrap_or(STEPS_MAX).max(1)),
        }
    }
}

/// What Lua calls between two instructions.
unsafe extern "C-unwind" fn hook(l: *mut lua_State, _: *mut ffi::lua_Debug) {
    // SAFETY: Lua calls it between two instructions of a state of ours; nothing here owns anything when it raises.
    unsafe {
        let shared: *mut Shared = shared(l);
        let depth = (*shared).memory.enter();
        (*shared).pace.running = l;
        let count = u32::try_from(ffi::lua_gethookcount(l)).unwrap_or(1);
        let is_time = (*shared).pace.have_stepped(count) || (*shared).memory.is_high();
        let mut frame = Frame::over(l);
        let ended = if is_time || (*shared).killed.is_some() {
            frame.tick().is_err()
        } else {
            frame.step(count as usize).is_err()
        };
        (*shared).memory.leave(depth);
        (*shared).memory.blocks.looked();
        if ended {
            // At every instruction from now on, so that catching the error does not help.
            set(l, 1);
            ffi::lua_error(l);
        }
        let next = (*shared).pace.instructions(&(*shared).memory.blocks);
        if next != count {
            set(l, next);
        }
    }
}

/// # Safety
/// A state or a coroutine that is there.
unsafe fn set(l: *mut lua_State, instructions: u32) {
    let count = c_int::try_from(instructions).unwrap_or(c_int::MAX);
    // SAFETY: it only writes numbers of the state; Lua allows it at any time.
    unsafe {
        ffi::lua_sethook(l, Some(hook), ffi::LUA_MASKCOUNT, count);
    }
}

/// A state counts its instructions from now on.
///
/// # Safety
/// A state that is there.
pub(super) unsafe fn count(l: *mut lua_State) {
    // SAFETY: the caller's.
    unsafe { set(l, STEPS_MAX) }
}

/// A state or coroutine runs from now on, or again.
///
/// # Safety
/// It is there for as long as it runs, and this is told who runs then.
pub(crate) unsafe fn runs(l: *mut lua_State, shared: *mut Shared) {
    // SAFETY: the caller's; nobody else has what is shared.
    unsafe {
        (*shared).pace.running = l;
        let ends = (*shared).killed.is_some();
        let next = if ends { 1 } else { (*shared).pace.instructions(&(*shared).memory.blocks) };
        if next < STEPS_MAX && u32::try_from(ffi::lua_gethookcount(l)).unwrap_or(0) > next {
            set(l, next);
        }
    }
}

/// Nothing runs any more.
pub(super) const fn rests(shared: &mut Shared) {
    shared.pace.running = std::ptr::null_mut();
}

/// The allocator has taken a large block, or many bytes: the next instruction looks.
///
/// # Safety
/// What is shared lives; whoever runs is there.
#[cold]
pub(crate) unsafe fn hurry(shared: *mut Shared) {
    // SAFETY: the caller's.
    unsafe {
        let pace = &mut (*shared).pace;
        let running = pace.running;
        // How long they take is to be seen.
        pace.by_time = pace.by_time.min(FIRST);
        if !running.is_null() && ffi::lua_gethookcount(running) > 1 {
            set(running, 1);
        }
    }
}
