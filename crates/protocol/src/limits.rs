//! The named limits of the decoders, with the defaults that Redis has.

/// What a decoder refuses. A limit is the largest value that is still accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Arguments of one request, its name included (Redis: 2³¹ − 1).
    pub arguments_max: u32,
    /// Bytes of one argument (Redis: `proto-max-bulk-len`, 512 MiB).
    pub argument_bytes_max: u32,
    /// Bytes of one frame, request or reply, from its first byte to its last (Redis: `client-query-buffer-limit`, 1
    /// GiB).
    pub frame_bytes_max: u32,
    /// Bytes of an inline command or of a line of a reply, line end not counted (Redis: 64 KiB).
    pub inline_bytes_max: u32,
    /// Aggregates inside each other in a reply. At most [`NESTING_MAX`].
    pub nesting_max: u8,
    /// Elements of one aggregate of a reply.
    pub elements_max: u32,
    /// The connection has not authenticated: errors about size say so.
    pub unauthenticated: bool,
}

/// The deepest nesting that any setting allows: the decoder's stack of open aggregates has this many places.
pub const NESTING_MAX: u8 = 128;

impl Limits {
    /// What a client with a session may send.
    pub const DEFAULT: Limits = Limits {
        arguments_max: i32::MAX as u32,
        argument_bytes_max: 512 << 20,
        frame_bytes_max: 1 << 30,
        inline_bytes_max: 64 << 10,
        nesting_max: NESTING_MAX,
        elements_max: u32::MAX,
        unauthenticated: false,
    };

    /// What a server may answer: a line of it, an error or a status, is as long as a script has made it.
    pub const OF_REPLIES: Limits = Limits { inline_bytes_max: 1 << 30, ..Limits::DEFAULT };

    /// What a client may send before it has authenticated where that is required (specification, section 10); over
    /// RESP, too. Redis has 10 arguments of 16 KiB; a HELLO with all its options has 11.
    pub const UNAUTHENTICATED: Limits = Limits {
        arguments_max: 16,
        argument_bytes_max: 16_384,
        frame_bytes_max: 16_384,
        inline_bytes_max: 16_384,
        unauthenticated: true,
        ..Limits::DEFAULT
    };
}

impl Default for Limits {
    fn default() -> Self {
        Limits::DEFAULT
    }
}
