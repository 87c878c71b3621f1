//! Owns: the errors that a function written in Rust gives back, worded and placed as Lua's own libraries do it. Does
//! not own: raising them (`super::enter`).

use std::ffi::{CStr, c_int};

use mlua_sys as ffi;

use super::{Frame, Raise};

impl Frame<'_> {
    /// The error on top, to be raised.
    pub const fn raise_top(&mut self) -> Raise {
        Raise(())
    }
    /// An error with the place of whoever called the function.
    #[cold]
    pub fn error(&mut self, text: impl AsRef<[u8]>) -> Raise {
        let mut line = self.position(1).into_bytes();
        line.extend_from_slice(text.as_ref());
        // The stack has places in reserve for errors.
        // SAFETY: as `push_bytes`, also when the stack is full: Lua keeps `EXTRA_STACK` places beyond it.
        unsafe {
            ffi::lua_pushlstring(self.l, line.as_ptr().cast(), line.len());
        }
        Raise(())
    }
    /// An error without a place, as Lua raises its own in functions of C.
    #[cold]
    pub(crate) fn plain_error(&mut self, text: &str) -> Raise {
        self.push_bytes(text.as_bytes());
        Raise(())
    }
    /// The table that `redis.error_reply` gives as an error: `err` is the line, its code first.
    #[cold]
    pub fn raise_table(&mut self, line: &str) -> Raise {
        self.push_error(line);
        Raise(())
    }
    /// Pushes a table with an error's line.
    pub fn push_error(&mut self, line: &str) {
        self.push_table(0, 1);
        self.push_bytes(line.as_bytes());
        self.set_field(-2, "err");
    }
    /// `user_script:1: `, where the function of a level stands.
    pub(crate) fn position(&self, level: c_int) -> String {
        self.info(level, c"Sl").filter(|info| info.currentline > 0).map_or_else(String::new, |info| {
            // SAFETY: Lua has filled it with a text that ends.
            let source = unsafe { CStr::from_ptr(info.short_src.as_ptr()) };
            format!("{}:{}: ", source.to_string_lossy(), info.currentline)
        })
    }
    /// Where the function of a level was defined and what line runs; whether it is of C.
    pub(crate) fn place_of(&self, level: c_int) -> Option<(bool, String, i32)> {
        self.info(level, c"Sl").map(|info| {
            // SAFETY: Lua has filled both with texts that end.
            let (what, source) = unsafe { (CStr::from_ptr(info.what), CStr::from_ptr(info.source)) };
            (what == c"C", source.to_string_lossy().into_owned(), info.currentline)
        })
    }
    fn info(&self, level: c_int, what: &CStr) -> Option<ffi::lua_Debug> {
        // SAFETY: a structure of C that Lua fills: zeros are a value of it. What it fills are the parts asked for.
        unsafe {
            let mut info: ffi::lua_Debug = std::mem::zeroed();
            if ffi::lua_getstack(self.l, level, &raw mut info) == 0 {
                return None;
            }
            ffi::lua_getinfo(self.l, what.as_ptr(), &raw mut info);
            Some(info)
        }
    }
    /// The error about an argument, as Lua's own libraries word it.
    #[cold]
    pub fn arg_error(&mut self, arg: usize, text: impl AsRef<[u8]>) -> Raise {
        let (name, is_method) = self.info(0, c"n").map_or((None, false), |info| {
            let text = |place: *const std::ffi::c_char| {
                // SAFETY: what is not null is a text that ends.
                (!place.is_null()).then(|| unsafe { CStr::from_ptr(place) }.to_string_lossy().into_owned())
            };
            (text(info.name), text(info.namewhat).as_deref() == Some("method"))
        });
        let name = name.unwrap_or_else(|| "?".to_owned());
        let what = match (is_method, arg) {
            (true, 1) => format!("calling '{name}' on bad self ("),
            (true, arg) => format!("bad argument #{} to '{name}' (", arg - 1),
            (false, arg) => format!("bad argument #{arg} to '{name}' ("),
        };
        self.error([what.as_bytes(), text.as_ref(), b")"].concat())
    }
    /// The error about the type of an argument.
    #[cold]
    pub fn type_error(&mut self, arg: usize, expected: &str) -> Raise {
        let text = format!("{expected} expected, got {}", self.kind(arg as i32).name());
        self.arg_error(arg, &text)
    }
}
