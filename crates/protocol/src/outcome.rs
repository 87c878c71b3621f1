//! The three outcomes of every decoder and the one list of ways in which bytes can be wrong.
//!
//! Owns the error names and their texts. What a server does with them (reply, then close) is decided elsewhere.

/// What a decoder says of the bytes that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// A whole frame was there.
    Complete(T),
    /// The frame is well-formed so far and not yet whole.
    Incomplete {
        /// The decoder makes no progress before this many bytes, counted from the start of the frame, are there.
        /// At least one more than it was given. It is a hint for reading, never a size to allocate. Only when the
        /// visitor has no room left (`has_room`) is it a number that is there already.
        need: usize,
    },
    /// The bytes can never become a frame.
    Invalid(WireError),
}

/// Malformed bytes: what is wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireError {
    /// What is wrong.
    pub kind: Malformed,
    /// Offset, from the start of the frame, of the field that is wrong.
    pub offset: usize,
}

impl core::fmt::Display for WireError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} at offset {}", self.kind.text(), self.offset)
    }
}

impl core::error::Error for WireError {}

/// Why a decoder stops early, for `?` inside the decoders.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// [`Outcome::Incomplete`]
    Need(usize),
    /// [`Outcome::Invalid`]
    Bad(WireError),
}

impl Stop {
    /// The visitor has no room: it is asked again when the decoder is called again, with as few bytes as there can be.
    pub(crate) const FULL: Stop = Stop::Need(1);

    pub(crate) const fn bad(kind: Malformed, offset: usize) -> Stop {
        Stop::Bad(WireError { kind, offset })
    }
}

/// What a step of a decoder gives.
pub(crate) type Step<T> = Result<T, Stop>;

impl<T> From<Step<T>> for Outcome<T> {
    fn from(step: Step<T>) -> Self {
        match step {
            Ok(value) => Outcome::Complete(value),
            Err(Stop::Need(need)) => Outcome::Incomplete { need },
            Err(Stop::Bad(error)) => Outcome::Invalid(error),
        }
    }
}

macro_rules! malformed {
    ($($(#[$doc:meta])* $name:ident = $id:literal, $text:literal;)*) => {
        /// Every way in which a frame can be wrong. `name()` is the name that the specification and the vectors use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Malformed { $($(#[$doc])* $name,)* }

        impl Malformed {
            /// All of them, in the order of the specification.
            pub const ALL: &'static [Malformed] = &[$(Malformed::$name,)*];

            /// The name in `spec/errors.json` and in the vectors.
            pub const fn name(self) -> &'static str {
                match self { $(Malformed::$name => $id,)* }
            }

            /// The text of the error reply, without its code. Texts of RESP requests are those of Redis.
            pub const fn text(self) -> &'static str {
                match self { $(Malformed::$name => $text,)* }
            }
        }
    };
}

malformed! {
    /// RESP: the number after `*` is no canonical number or out of range.
    MultibulkLength = "multibulk-length", "Protocol error: invalid multibulk length";
    /// RESP: the line after `*` has no end.
    MultibulkLine = "multibulk-line", "Protocol error: too big mbulk count string";
    /// RESP: an argument does not start with `$`.
    ExpectedBulk = "expected-bulk", "Protocol error: expected '$'";
    /// RESP: the number after `$` is no canonical number or out of range.
    BulkLength = "bulk-length", "Protocol error: invalid bulk length";
    /// RESP: the line after `$` has no end.
    BulkLine = "bulk-line", "Protocol error: too big bulk count string";
    /// RESP: the bytes of a bulk are not followed by CR LF.
    BulkEnd = "bulk-end", "Protocol error: invalid CRLF in request";
    /// RESP: an inline command longer than the limit.
    InlineTooLong = "inline-too-long", "Protocol error: too big inline request";
    /// RESP: an inline command with a quote that is not closed, or not followed by a blank.
    UnbalancedQuotes = "unbalanced-quotes", "Protocol error: unbalanced quotes in request";
    /// More arguments than the limit allows.
    TooManyArguments = "too-many-arguments", "Protocol error: too many arguments";
    /// More arguments than are allowed before authentication.
    UnauthenticatedArguments = "unauthenticated-arguments", "Protocol error: unauthenticated multibulk length";
    /// An argument longer than the limit.
    ArgumentTooLong = "argument-too-long", "Protocol error: invalid bulk length";
    /// An argument longer than is allowed before authentication.
    UnauthenticatedArgument = "unauthenticated-argument", "Protocol error: unauthenticated bulk length";
    /// A frame longer than the limit.
    FrameTooLong = "frame-too-long", "Protocol error: frame exceeds the frame size limit";

    /// RESP reply: the first byte names no type.
    UnknownType = "unknown-type", "Protocol error: unknown reply type";
    /// RESP reply: a line without end.
    LineTooLong = "line-too-long", "Protocol error: reply line too long";
    /// RESP reply: CR without LF, LF without CR, or a byte that the type does not allow.
    BadLine = "bad-line", "Protocol error: malformed reply line";
    /// A number that is none, or out of range.
    BadNumber = "bad-number", "Protocol error: malformed number";
    /// A length that is none, or out of range.
    BadLength = "bad-length", "Protocol error: malformed length";
    /// A boolean that is neither true nor false.
    BadBool = "bad-bool", "Protocol error: malformed boolean";
    /// A verbatim string without its format.
    BadVerbatim = "bad-verbatim", "Protocol error: malformed verbatim string";
    /// Aggregates nested deeper than the limit.
    TooDeep = "too-deep", "Protocol error: reply nested too deeply";
    /// An aggregate of more elements than the limit.
    TooManyElements = "too-many-elements", "Protocol error: too many elements";
    /// A push inside an aggregate, or an attribute before nothing.
    Misplaced = "misplaced", "Protocol error: type not allowed here";
    /// The end of a streamed aggregate where none is open, or a chunk out of place.
    BadStream = "bad-stream", "Protocol error: malformed streamed value";

    /// RESPB: a core or module opcode that this version does not know. The length is unknown: the stream is lost.
    UnknownOpcode = "unknown-opcode", "Protocol error: unknown opcode";
    /// RESPB: a reply opcode in a stream of requests or the other way round.
    WrongDirection = "wrong-direction", "Protocol error: opcode of the other direction";
    /// RESPB: an option bit that the layout does not name.
    UnknownBit = "unknown-bit", "Protocol error: unknown option bit";
    /// RESPB: option bits that exclude each other.
    ExclusiveBits = "exclusive-bits", "Protocol error: option bits exclude each other";
    /// RESPB: an option bit without the one that it needs.
    MissingBit = "missing-bit", "Protocol error: option bit without the one it needs";
    /// RESPB: a value that an enumeration does not have.
    BadEnum = "bad-enum", "Protocol error: value not in the enumeration";
    /// RESPB: lengths inside a frame contradict the length of the frame.
    LengthMismatch = "length-mismatch", "Protocol error: lengths contradict each other";
    /// RESPB: an ARGV frame without a command name.
    EmptyCommand = "empty-command", "Protocol error: no command name";
    /// RESPB: passthrough with something other than exactly one RESP command.
    NotOneCommand = "not-one-command", "Protocol error: passthrough carries exactly one RESP command";
    /// RESPB: a control frame whose payload is not what it must be.
    BadControl = "bad-control", "Protocol error: malformed control frame";
    /// RESPB: an element tag that is reserved.
    UnknownTag = "unknown-tag", "Protocol error: unknown element tag";
    /// The first byte of a connection belongs to no protocol.
    UnknownProtocol = "unknown-protocol", "Protocol error: first byte belongs to no known protocol";
    /// The first frame of a connection is one that a stream of zero bytes would give.
    ZeroStream = "zero-stream", "Protocol error: first frame has an empty key on channel 0";
}
