//! Owns: the one table of errors that commands answer: code, prefix, text, HTTP status. Does not own: malformed wire
//! (`weft_protocol::Malformed`), how an error is written (`crate::reply`).

use std::borrow::Cow;

/// What most of the engine answers: something, or the error that the client is told.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal, $text:literal, $http:literal;)*) => {
        /// Every kind of error that a command can answer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $name,)* }

        impl ErrorCode {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
            /// The first word of the reply, which clients switch on.
            #[must_use]
            pub const fn prefix(self) -> &'static str {
                match self { $(Self::$name => $prefix,)* }
            }
            /// The text behind the prefix, where the error brings none of its own.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
            /// The status of an HTTP answer.
            #[must_use]
            pub const fn http_status(self) -> u16 {
                match self { $(Self::$name => $http,)* }
            }
        }
    };
}

error_codes! {
    /// An error whose text says all there is.
    Generic = "ERR", "error", 400;
    /// Options that do not belong together, or an argument out of place.
    Syntax = "ERR", "syntax error", 400;
    /// Not a canonical 64-bit integer.
    NotAnInteger = "ERR", "value is not an integer or out of range", 400;
    /// Not a number.
    NotAFloat = "ERR", "value is not a valid float", 400;
    /// INCR and DECR past the ends.
    Overflow = "ERR", "increment or decrement would overflow", 400;
    /// The key is not there, where it must be.
    NoSuchKey = "ERR", "no such key", 404;
    /// An index beyond the list.
    OutOfRange = "ERR", "index out of range", 400;
    /// Another type than the command is for.
    WrongType = "WRONGTYPE", "Operation against a key holding the wrong kind of value", 400;
    /// A collection at a key that is to be written as a resource.
    Collection = "WRONGTYPE", "the key holds a collection, which is only read and deleted here: use its commands", 409;
    /// What is too large to be read in one piece.
    TooLarge = "ERR", "too large", 413;
    /// `If-Match` and `If-None-Match`, or `nx` and `xx`, of a resource.
    Precondition = "ERR", "the key is not as the request's conditions want it", 412;
    /// `Range` of a resource.
    NotInRange = "ERR", "the value has none of these bytes", 416;
    /// `maxmemory` is reached and nothing may be evicted.
    OutOfMemory = "OOM", "command not allowed when used memory > 'maxmemory'.", 507;
    /// The connection must authenticate first.
    NoAuth = "NOAUTH", "Authentication required.", 401;
    /// Wrong user or password.
    WrongPass = "WRONGPASS", "invalid username-password pair or user is disabled.", 401;
    /// The user may not.
    NoPerm = "NOPERM", "this user has no permissions to run the command", 403;
    /// HELLO with a protocol that there is not.
    NoProto = "NOPROTO", "unsupported protocol version", 400;
    /// A queued command was refused.
    ExecAbort = "EXECABORT", "Transaction discarded because of previous errors.", 409;
    /// CLIENT UNBLOCK … ERROR.
    Unblocked = "UNBLOCKED", "client unblocked via CLIENT UNBLOCK", 409;
    /// RESPB's CANCEL.
    Cancelled = "CANCELLED", "the request was cancelled by its client", 409;
    /// RESTORE onto a key that exists.
    BusyKey = "BUSYKEY", "Target key name already exists.", 409;
    /// XGROUP CREATE of a group that exists.
    BusyGroup = "BUSYGROUP", "Consumer Group name already exists", 409;
    /// A group that is not there.
    NoGroup = "NOGROUP", "No such consumer group", 404;
    /// EVALSHA of a script that is not there.
    NoScript = "NOSCRIPT", "No matching script. Please use EVAL.", 404;
    /// `protected-mode`.
    Denied = "DENIED", "Weft is running in protected mode", 403;
    /// The string would be longer than `proto-max-bulk-len`.
    StringTooLong = "ERR", "string exceeds maximum allowed size (proto-max-bulk-len)", 413;
    /// A command came to a key that was not among those that it was given locks for.
    Undeclared = "ERR", "the key was not declared for this command", 400;
    /// A command came to more than the locks of its operation: it runs again with the keyspace to itself, where it may.
    NeedsWorld = "ERR", "this needs the whole keyspace, and keys were declared", 400;
    /// A program has failed, and nothing of it stays; the text says at which step.
    Program = "ERR", "the program failed", 409;
    /// A program that is not stored.
    NoProgram = "NOPROGRAM", "no such program is stored", 404;
    /// What a trigger does inside a command has failed, and the command with it; the text names the triggers.
    Trigger = "ERR", "a trigger failed", 409;
    /// A trigger that is not stored.
    NoTrigger = "NOTRIGGER", "no such trigger is stored", 404;
    /// Another version than the one that was expected.
    WrongVersion = "WRONGVERSION", "the version is another", 412;
    /// What was kept is being loaded.
    Loading = "LOADING", "Weft is loading the dataset in memory", 503;
    /// A script takes its time, and others wait.
    Busy = "BUSY", "Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", 503;
    /// A write that could not be kept.
    Misconfigured = "MISCONF", "writes are refused: they cannot be kept", 503;
    /// A limit of the server's own; the text says which.
    Limit = "ERR", "limit exceeded", 429;
    /// The server behind a gateway cannot be reached, or its answer is lost; the text says what is known.
    Upstream = "ERR", "the server behind the gateway cannot be reached", 502;
    /// A stored representation that cannot be read (HyperLogLog, DUMP).
    InvalidObject = "INVALIDOBJ", "Corrupted HLL object detected", 400;
}

/// What a handler answers when it does not answer a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind.
    pub code: ErrorCode,
    /// The text behind the prefix.
    pub text: Cow<'static, str>,
    /// Another prefix than the code's: errors of scripts and modules name their own.
    pub prefix: Option<Box<str>>,
}

impl Error {
    /// An error with a text of its own, `ERR` before it.
    #[must_use]
    pub fn err(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::Generic, text)
    }
    /// An error of a kind with a text of its own.
    #[must_use]
    pub fn new(code: ErrorCode, text: impl Into<Cow<'static, str>>) -> Self {
        Self { code, text: text.into(), prefix: None }
    }
    /// An error with another prefix than that of a kind.
    #[must_use]
    pub fn with_prefix(prefix: &str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { prefix: Some(prefix.into()), ..Self::err(text) }
    }
    /// The prefix that the reply begins with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or_else(|| self.code.prefix())
    }
    /// The prefix and the text as one line: a line end of what it repeats is left out at its end, and a blank inside.
    #[must_use]
    pub fn line(&self) -> String {
        // A script's error may be one word.
        let blank = if self.prefix.is_some() && self.text.is_empty() { "" } else { " " };
        let line = format!("{}{blank}{}", self.prefix(), self.text);
        line.trim_end_matches(['\r', '\n']).replace(['\r', '\n'], " ")
    }
    /// `ERR wrong number of arguments for 'get' command`, with `client|id` for subcommands.
    #[must_use]
    pub fn arity(spec: &weft_protocol::table::CommandSpec) -> Self {
        Self::err(format!("wrong number of arguments for '{}' command", full_name(spec)))
    }
}

/// `get`, `client|id`: how messages, ACL and statistics name a command.
#[must_use]
pub fn full_name(spec: &weft_protocol::table::CommandSpec) -> String {
    match spec.container {
        Some(container) => format!("{}|{}", container.spec().name, spec.name).to_ascii_lowercase(),
        None => spec.name.to_ascii_lowercase(),
    }
}

impl From<ErrorCode> for Error {
    #[inline]
    fn from(code: ErrorCode) -> Self {
        Self { code, text: Cow::Borrowed(code.text()), prefix: None }
    }
}

impl From<weft_store::WrongType> for Error {
    fn from(_: weft_store::WrongType) -> Self {
        ErrorCode::WrongType.into()
    }
}

impl From<weft_store::NumberError> for Error {
    fn from(error: weft_store::NumberError) -> Self {
        match error {
            weft_store::NumberError::WrongType => ErrorCode::WrongType,
            weft_store::NumberError::NotAnInteger => ErrorCode::NotAnInteger,
            weft_store::NumberError::Overflow => ErrorCode::Overflow,
        }
        .into()
    }
}
