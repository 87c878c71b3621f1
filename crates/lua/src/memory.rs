//! Owns: the memory of a Lua state: what it takes, the limit that all states share, who is refused above it. Does not
//! own: what is done with it.
//!
//! Lua answers a refused allocation by raising an error, past whatever runs. So nothing is refused while a function of
//! Rust runs (`crate::frame`): it takes what it needs, after it has asked whether a large result [fits](Memory::fits).

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What all Lua states of a server take together, and may take.
#[derive(Debug)]
pub struct Budget {
    used_bytes: AtomicUsize,
    limit_bytes: AtomicUsize,
}

impl Budget {
    /// Nothing is taken yet.
    #[must_use]
    pub const fn new(limit_bytes: usize) -> Self {
        Self { used_bytes: AtomicUsize::new(0), limit_bytes: AtomicUsize::new(limit_bytes) }
    }
    /// What all states take, to some 64 KiB for each.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Relaxed)
    }
    /// What they may take.
    pub fn set_limit(&self, bytes: usize) {
        self.limit_bytes.store(bytes, Relaxed);
    }
}

/// A change of a state's memory that the others are told of.
const TOLD_BYTES: isize = 64 << 10;

/// A state's part.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: Arc<Budget>,
    /// Taken or given back since the others were told.
    untold_bytes: isize,
    used_bytes: usize,
    /// Functions of Rust that run, one inside the other.
    depth: u32,
}

impl Memory {
    pub(crate) const fn new(budget: Arc<Budget>) -> Self {
        // Until the state stands there is nobody to catch an error.
        Self { budget, untold_bytes: 0, used_bytes: 0, depth: 1 }
    }
    pub(crate) const fn used_bytes(&self) -> usize {
        self.used_bytes
    }
    fn total(&self) -> usize {
        self.budget.used_bytes().saturating_add_signed(self.untold_bytes)
    }
    /// Whether so many bytes more are within the limit.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.total().saturating_add(bytes) <= self.budget.limit_bytes.load(Relaxed)
    }
    /// Whether it is time to collect everything that is not used.
    pub(crate) fn is_high(&self) -> bool {
        self.total() > self.budget.limit_bytes.load(Relaxed) / 4 * 3
    }
    /// A function of Rust begins; gives what [`leave`](Self::leave) is told.
    pub(crate) const fn enter(&mut self) -> u32 {
        self.depth += 1;
        self.depth - 1
    }
    pub(crate) const fn leave(&mut self, depth: u32) {
        self.depth = depth;
    }
    /// It calls back into Lua.
    pub(crate) const fn pause(&mut self) -> u32 {
        std::mem::replace(&mut self.depth, 0)
    }
    pub(crate) const fn resume(&mut self, depth: u32) {
        self.depth = depth;
    }
    fn count(&mut self, bytes: isize) {
        self.used_bytes = self.used_bytes.saturating_add_signed(bytes);
        self.untold_bytes += bytes;
        if self.untold_bytes.abs() > TOLD_BYTES {
            self.tell();
        }
    }
    fn tell(&mut self) {
        let bytes = std::mem::take(&mut self.untold_bytes);
        if bytes >= 0 {
            self.budget.used_bytes.fetch_add(bytes.unsigned_abs(), Relaxed);
        } else {
            self.budget.used_bytes.fetch_sub(bytes.unsigned_abs(), Relaxed);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.tell();
    }
}

const ALIGN: usize = 16;

/// Lua's allocator: `lua_Alloc` over the program's.
///
/// # Safety
/// As Lua calls it: `place` is the state's `Shared`; `old` has `old_bytes` and came from here, or is null.
pub(crate) unsafe extern "C" fn allocate(
    place: *mut c_void,
    old: *mut c_void,
    old_bytes: usize,
    new_bytes: usize,
) -> *mut c_void {
    // SAFETY: the allocator's datum is a `Shared` that outlives the state. Only this field is borrowed, for this call,
    // which calls nobody.
    let memory = unsafe { &mut (*place.cast::<crate::frame::Shared>()).memory };
    let old_bytes = if old.is_null() { 0 } else { old_bytes };
    let layout = |bytes: usize| Layout::from_size_align(bytes, ALIGN).ok();
    if new_bytes == 0 {
        if let (false, Some(layout)) = (old.is_null(), layout(old_bytes)) {
            // SAFETY: it came from here with this size.
            unsafe { dealloc(old.cast(), layout) };
            memory.count(-(old_bytes as isize));
        }
        return std::ptr::null_mut();
    }
    let more = new_bytes as isize - old_bytes as isize;
    if more > 0 && memory.depth == 0 && !memory.fits(more.unsigned_abs()) {
        return std::ptr::null_mut();
    }
    let (Some(new_layout), Some(old_layout)) = (layout(new_bytes), layout(old_bytes)) else {
        return std::ptr::null_mut();
    };
    // SAFETY: neither size is 0; what there was came from here with its size.
    let new = unsafe {
        if old_bytes == 0 { alloc(new_layout) } else { realloc(old.cast(), old_layout, new_bytes) }
    };
    if !new.is_null() {
        memory.count(more);
    }
    new.cast()
}
