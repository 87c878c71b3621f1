//! Owns: functions of Lua's own that are called by ours: those that run a coroutine, so that it is known which one
//! runs, and those that go through long strings. Does not own: the others.
//!
//! A function of ours calls Lua's as C does, in the same call of Lua: errors are worded and placed as ever, and nothing
//! here owns anything when one is raised.

use std::ffi::c_int;

use mlua_sys as ffi;
use mlua_sys::lua_State;

use super::pace;
use crate::frame::{CFunction, Frame, shared};

/// What a coroutine that is run counts as, beside its own instructions: each has a hook that begins anew.
const RESUME_STEPS: usize = 100;

/// Puts ours in the place of Lua's.
pub(crate) fn open(frame: &mut Frame<'_>, names: i32) {
    let functions: [(&str, &str, ffi::lua_CFunction); 3] =
        [("coroutine", "resume", resume), ("coroutine", "wrap", wrap), ("string", "format", format)];
    for (library, name, function) in functions {
        frame.field(names, library);
        frame.field(-1, name);
        frame.push_function(CFunction(function), 1);
        frame.set_field(-2, name);
        frame.pop_any(1);
    }
}

/// Counts steps; otherwise an error stands on top.
///
/// # Safety
/// Lua has called with its own state.
unsafe fn counts(l: *mut lua_State, steps: usize) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let shared: *mut _ = shared(l);
        let depth = (*shared).memory.enter();
        let goes_on = Frame::over(l).step(steps).is_ok();
        (*shared).memory.leave(depth);
        goes_on
    }
}

/// Calls the function that stands at a place.
///
/// # Safety
/// Lua has called with its own state; one of its functions stands there.
unsafe fn original(l: *mut lua_State, at: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { ffi::lua_tocfunction(l, at).map_or(0, |function| function(l)) }
}

/// Lets a coroutine run by one of Lua's functions.
///
/// # Safety
/// As for `original`; the coroutine stands on the stack or is kept by the function that runs.
unsafe fn run(l: *mut lua_State, coroutine: *mut lua_State, at: c_int) -> c_int {
    // SAFETY: the caller's. Where Lua's function raises, whoever catches it says who runs: `Frame::call`, `Vm::run`,
    // or this in a coroutine further out.
    unsafe {
        if !counts(l, RESUME_STEPS) {
            ffi::lua_error(l);
        }
        let shared: *mut _ = shared(l);
        if !coroutine.is_null() {
            pace::runs(coroutine, shared);
        }
        let results = original(l, at);
        pace::runs(l, shared);
        results
    }
}

unsafe extern "C-unwind" fn resume(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; its own function is kept.
    unsafe { run(l, ffi::lua_tothread(l, 1), ffi::lua_upvalueindex(1)) }
}

unsafe extern "C-unwind" fn wrap(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it. Its own gives a function that keeps the coroutine as the first of its values; ours does as
    // well, so that Lua's finds it there.
    unsafe {
        original(l, ffi::lua_upvalueindex(1));
        ffi::lua_getupvalue(l, -1, 1);
        ffi::lua_insert(l, -2);
        ffi::lua_pushcclosure(l, wrapped, 2);
        1
    }
}

unsafe extern "C-unwind" fn wrapped(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; `wrap` has set what it keeps.
    unsafe { run(l, ffi::lua_tothread(l, ffi::lua_upvalueindex(1)), ffi::lua_upvalueindex(2)) }
}

unsafe extern "C-unwind" fn format(l: *mut lua_State) -> c_int {
    // SAFETY: Lua calls it; its own function is kept.
    unsafe {
        let lengths = (1..=ffi::lua_gettop(l)).map(|at| match ffi::lua_type(l, at) {
            ffi::LUA_TSTRING => ffi::lua_objlen(l, at),
            _ => 0,
        });
        if !counts(l, lengths.sum::<usize>() / 64) {
            ffi::lua_error(l);
        }
        original(l, ffi::lua_upvalueindex(1))
    }
}
