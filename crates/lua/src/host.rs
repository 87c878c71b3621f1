//! Owns: what a script needs of whoever runs it. Does not own: how that is done (the engine; the command line).

use crate::frame::Frame;

/// What is to become of a script that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    GoOn,
    /// It ends with this error, its code first, whatever it catches.
    End(Box<str>),
}

/// Levels of `redis.log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// LOG_DEBUG.
    Debug,
    /// LOG_VERBOSE.
    Verbose,
    /// LOG_NOTICE.
    Notice,
    /// LOG_WARNING.
    Warning,
}

/// What a call of a command has pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// A reply.
    Reply,
    /// An error's table: `redis.call` raises it.
    Error,
    /// Nothing: there is no memory for the reply.
    NoRoom,
}

/// Who runs a script.
pub trait Host {
    /// Runs a command and pushes its reply, one value.
    fn call(&mut self, args: &[&[u8]], reply: &mut Frame<'_>) -> Called;
    /// Pushes the reply of the last call once more, where that has found no room for it: there may be some now.
    fn push_again(&mut self, _: &mut Frame<'_>) -> Called {
        Called::NoRoom
    }
    /// Asked from time to time, while the script computes. It may take its time: the script stands still.
    fn tick(&mut self) -> Verdict;
    /// `redis.log`.
    fn log(&mut self, level: Level, text: &[u8]);
    /// `redis.setresp`: 2 or 3.
    fn set_resp(&mut self, version: u8);
    /// `redis.acl_check_cmd`: whether the user may; `None` where there is no such command.
    fn may(&mut self, args: &[&[u8]]) -> Option<bool>;
}

/// What a script's result is written to, value by value.
pub trait Out {
    /// The protocol that the script has chosen: in 3 a boolean is one.
    fn resp(&self) -> u8;
    /// A string.
    fn bulk(&mut self, bytes: &[u8]);
    /// A status.
    fn status(&mut self, text: &[u8]);
    /// An error's line, its code first. `counted`: it is that of a command, which has been counted.
    fn error(&mut self, line: &[u8], counted: bool);
    /// An integer.
    fn int(&mut self, value: i64);
    /// A double.
    fn double(&mut self, value: f64);
    /// A boolean of RESP3.
    fn boolean(&mut self, value: bool);
    /// A big number's digits.
    fn big_number(&mut self, digits: &[u8]);
    /// Text with its format.
    fn verbatim(&mut self, format: &[u8], text: &[u8]);
    /// Null.
    fn null(&mut self);
    /// An array of so many values, which follow.
    fn array(&mut self, len: usize);
    /// A map of so many pairs, which follow.
    fn map(&mut self, len: usize);
    /// A set of so many values, which follow.
    fn set(&mut self, len: usize);
}
