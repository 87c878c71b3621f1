//! Owns: the wires, and in what they differ beyond the form of a value. Does not own: the form of a value (`super` and
//! its other files).
//!
//! Nothing compares with one wire and takes the rest together: each question is a `match` over all of them, so that a
//! new wire does not compile until every question is answered for it.

/// The protocol that a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    /// RESP2.
    #[default]
    Resp2,
    /// RESP3.
    Resp3,
    /// RESPB.
    Respb,
    /// JSON.
    Json(JsonForm),
    /// None: the reply is kept as the values that it was written as ([`super::Captured`]).
    Captured,
}

/// What replies look like in JSON. The numbers leave those before them to the wires that are asked for most, so that a
/// `match` over all of them is two comparisons for RESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum JsonForm {
    /// The Upstash contract: `{"result":…}` or `{"error":…}` with what RESP2 says.
    Upstash = 4,
    /// The same, each string but an `OK` that is the whole result in base64 (`Upstash-Encoding: base64`).
    UpstashBase64,
    /// What EXEC answers of each command as a reply of its own: `[{"result":…},{"error":…}]`.
    UpstashEach,
    /// The same in base64.
    UpstashEachBase64,
    /// Values as JSON has them: objects, fractions, booleans.
    Plain,
}

impl JsonForm {
    /// Whether it says what RESP2 says: flat lists, text and integers.
    pub(crate) const fn is_flat(self) -> bool {
        match self {
            Self::Upstash | Self::UpstashBase64 | Self::UpstashEach | Self::UpstashEachBase64 => true,
            Self::Plain => false,
        }
    }
    /// Whether byte strings are written in base64.
    pub(super) const fn is_base64(self) -> bool {
        match self {
            Self::UpstashBase64 | Self::UpstashEachBase64 => true,
            Self::Upstash | Self::UpstashEach | Self::Plain => false,
        }
    }
    /// In how many aggregates a value stands that is inside an object of its own.
    pub(super) const fn envelope(self) -> Option<usize> {
        match self {
            Self::Upstash | Self::UpstashBase64 => Some(0),
            Self::UpstashEach | Self::UpstashEachBase64 => Some(1),
            Self::Plain => None,
        }
    }
}

/// Where a client's replies go: its protocol and, on RESPB, its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Wire {
    /// The protocol.
    pub protocol: Protocol,
    /// The channel; 0 but for RESPB.
    pub channel: u16,
}

/// What a wire has for what comes in pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One list; and no other type than text and integers.
    Flat,
    /// A list for each pair, and maps.
    Paired,
    /// It is kept what it was.
    AsWritten,
}

impl Protocol {
    /// What CLIENT LIST says of it (`resp=`).
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 | Self::Captured => 3,
            Self::Json(form) if form.is_flat() => 2,
            Self::Json(_) => 3,
            Self::Respb => 4,
        }
    }
    /// Whether it is one of the two that HELLO and RESET choose between.
    #[must_use]
    pub const fn is_resp(self) -> bool {
        match self {
            Self::Resp2 | Self::Resp3 => true,
            Self::Respb | Self::Json(_) | Self::Captured => false,
        }
    }
    /// What it has for what comes in pairs and for what is written one by one.
    pub(super) const fn shape(self) -> Shape {
        match self {
            Self::Resp2 => Shape::Flat,
            Self::Resp3 | Self::Respb => Shape::Paired,
            Self::Json(form) if form.is_flat() => Shape::Flat,
            Self::Json(_) => Shape::Paired,
            Self::Captured => Shape::AsWritten,
        }
    }
    /// Its name, if every request has a reply over it.
    #[must_use]
    pub const fn always_answers(self) -> Option<&'static str> {
        match self {
            Self::Resp2 | Self::Resp3 | Self::Captured => None,
            Self::Respb => Some("RESPB"),
            Self::Json(_) => Some("HTTP"),
        }
    }
    /// Whether a command may be answered by what comes later, without end: SUBSCRIBE, MONITOR.
    #[must_use]
    pub const fn has_streams(self) -> bool {
        match self {
            Self::Json(_) => false,
            Self::Resp2 | Self::Resp3 | Self::Respb | Self::Captured => true,
        }
    }
    /// Whether a push can stand beside replies.
    #[must_use]
    pub const fn has_pushes(self) -> bool {
        match self {
            Self::Resp2 | Self::Json(_) => false,
            Self::Resp3 | Self::Respb | Self::Captured => true,
        }
    }
}
