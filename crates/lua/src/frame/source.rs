//! Owns: compiling source text, piece by piece: between two of them it is asked whether to go on. Does not own: who is
//! asked.

use std::ffi::{CStr, c_char, c_void};

use mlua_sys as ffi;
use mlua_sys::lua_State;

use super::Frame;

impl Frame<'_> {
    /// Compiles source text and pushes it as a function, or the message why it is none.
    pub(crate) fn load(&mut self, source: &[u8], name: &CStr) -> Result<(), ()> {
        // Stands there while it is compiled, as in Valkey (CVE-2025-49844): Lua by itself keeps the name nowhere at
        // first.
        self.push_bytes(name.to_bytes());
        self.place();
        // Behind a blank bytecode is text too, and an error in it, as in Valkey.
        let is_binary = source.first() == Some(&ffi::LUA_SIGNATURE[0]);
        let mut reading = Reading { before: if is_binary { b" " } else { b"" }, rest: source, frame: self };
        let data = (&raw mut reading).cast();
        let depth = reading.frame.shared().memory.pause();
        // SAFETY: compiling is protected by Lua itself, and its errors come as a code, that of memory among them; the
        // source and the frame are there meanwhile.
        let code = unsafe { ffi::lua_load(reading.frame.l, read, data, name.as_ptr()) };
        self.shared().memory.resume(depth);
        self.remove(-2);
        if code == ffi::LUA_OK { Ok(()) } else { Err(()) }
    }
}

/// A source on its way to the compiler.
struct Reading<'r, 'f> {
    /// What comes first.
    before: &'static [u8],
    rest: &'r [u8],
    frame: &'r mut Frame<'f>,
}

/// Bytes of a source that are compiled between two looks.
const READ_BYTES: usize = 64 << 10;

/// Gives the compiler the next piece: `lua_Reader`. The source ends early if the script is to end.
unsafe extern "C-unwind" fn read(_: *mut lua_State, data: *mut c_void, bytes: *mut usize) -> *const c_char {
    // SAFETY: `load` has given it, and waits.
    let reading = unsafe { &mut *data.cast::<Reading<'_, '_>>() };
    if !reading.before.is_empty() {
        let before = std::mem::take(&mut reading.before);
        // SAFETY: Lua asks for it there.
        unsafe { *bytes = before.len() };
        return before.as_ptr().cast();
    }
    let (piece, rest) = reading.rest.split_at(reading.rest.len().min(READ_BYTES));
    let depth = reading.frame.shared().memory.enter();
    let ends =
        reading.rest.len() > READ_BYTES && reading.frame.shared().pace.is_due() && !reading.frame.look();
    reading.frame.shared().memory.leave(depth);
    reading.rest = rest;
    // SAFETY: Lua asks for it there.
    unsafe { *bytes = if ends { 0 } else { piece.len() } };
    piece.as_ptr().cast()
}
