//! Owns: the arguments that a function of Rust was called with, as C's functions take them, and whether there is memory
//! for a result. Does not own: the other values (`super`), the errors' words (`super::errors`).

use super::{Frame, Kind, Raise};

impl<'f> Frame<'f> {
    /// The bytes of an argument that is a string or a number.
    pub fn arg_bytes(&mut self, arg: usize) -> Result<&'f [u8], Raise> {
        if arg > self.args || !matches!(self.kind(arg as i32), Kind::String | Kind::Number) {
            return Err(self.type_error(arg, "string"));
        }
        let bytes = self.bytes(arg as i32).unwrap_or_default();
        // SAFETY: a string among the arguments stays there for the function's lifetime: see the head.
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) })
    }
    /// The bytes of an argument of which [`kind`](Self::kind) says that it is a string; of another one nothing.
    #[inline]
    pub(crate) fn arg_string(&mut self, arg: usize) -> &'f [u8] {
        assert!(arg <= self.args, "an argument");
        let bytes = self.bytes(arg as i32).unwrap_or_default();
        // SAFETY: as in `arg_bytes`.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }
    }
    /// An argument that is a number.
    pub fn arg_number(&mut self, arg: usize) -> Result<f64, Raise> {
        match self.number(arg as i32) {
            Some(number) => Ok(number),
            None => Err(self.type_error(arg, "number")),
        }
    }
    /// An argument that is a number, as C makes an integer of it on the machines that scripts were written for: what is
    /// none that fits is the least.
    pub fn arg_integer(&mut self, arg: usize) -> Result<i64, Raise> {
        let number = self.arg_number(arg)?;
        let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number);
        Ok(if fits { number as i64 } else { i64::MIN })
    }
    /// An argument that is a number, as C makes an `int` of it: what Lua's own index and count with. It may be left out
    /// where there is a default.
    pub(crate) fn arg_int(&mut self, arg: usize, default: Option<i32>) -> Result<i32, Raise> {
        let number = match default {
            Some(default) => self.arg_integer_or(arg, default.into()),
            None => self.arg_integer(arg),
        };
        number.map(|number| number as i32)
    }
    /// Which of some words an argument is. C's text of it ends with a zero.
    pub(crate) fn arg_option(&mut self, arg: usize, words: &[&str]) -> Result<usize, Raise> {
        let given = self.arg_bytes(arg)?.split(|byte| *byte == 0).next().unwrap_or_default();
        let known = words.iter().position(|word| word.as_bytes() == given);
        known.ok_or_else(|| self.arg_error(arg, [b"invalid option '", given, b"'"].concat()))
    }
    /// The bytes of a string that the running function keeps.
    pub(crate) fn kept_bytes(&mut self, at: i32) -> &'f [u8] {
        let bytes = self.bytes(Self::kept(at)).unwrap_or_default();
        // SAFETY: what the function keeps stays as long as it runs, and nothing here sets another value there.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }
    }
    /// An argument that may be left out.
    pub fn arg_integer_or(&mut self, arg: usize, default: i64) -> Result<i64, Raise> {
        match self.kind(arg as i32) {
            Kind::None | Kind::Nil => Ok(default),
            _ => self.arg_integer(arg),
        }
    }
    /// An argument that is a table.
    pub fn arg_table(&mut self, arg: usize) -> Result<(), Raise> {
        if self.kind(arg as i32) == Kind::Table { Ok(()) } else { Err(self.type_error(arg, "table")) }
    }
    /// An argument that is a function.
    pub fn arg_function(&mut self, arg: usize) -> Result<(), Raise> {
        if self.kind(arg as i32) == Kind::Function { Ok(()) } else { Err(self.type_error(arg, "function")) }
    }
    /// An argument that is there.
    pub fn arg_any(&mut self, arg: usize) -> Result<(), Raise> {
        if self.kind(arg as i32) == Kind::None { Err(self.arg_error(arg, "value expected")) } else { Ok(()) }
    }
    /// Whether so many bytes more are within the limit, as it is: nothing is collected, and nobody is asked.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        // SAFETY: only read, while nobody else has what is shared.
        unsafe { (*self.shared).memory.fits(bytes) }
    }
    /// Bytes of memory that a result of this size would take are refused above the limit.
    pub(crate) fn fits(&mut self, bytes: usize) -> Result<(), Raise> {
        if self.shared().memory.fits(bytes) { Ok(()) } else { self.fits_behind_all(bytes) }
    }
    /// The same when everything that is not used has been collected.
    #[cold]
    fn fits_behind_all(&mut self, bytes: usize) -> Result<(), Raise> {
        self.collect();
        if self.shared().memory.fits(bytes) { Ok(()) } else { Err(self.error("not enough memory")) }
    }
}
