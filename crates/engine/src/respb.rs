//! Owns: what a server promises about RESPB when a client asks (spec sections 7.4 and 10): version, capabilities,
//! limits. Does not own: keeping to the limits, which the server does, nor frames (`weft_protocol::respb`).

/// Version of the protocol.
pub const VERSION: i64 = 1;

/// Bit of a capability mask: the client puts FRAGMENT frames together.
pub const CAP_FRAGMENT: u64 = 1 << 0;
/// What this server can; of a client's mask the rest is left out.
pub const CAPS: u64 = CAP_FRAGMENT;

/// The limits in force, with the names and defaults of spec section 10. Set before the engine is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Channels open on a connection, channel 0 included.
    pub channels: u32,
    /// The same, before authentication.
    pub unauthenticated_channels: u32,
    /// Bytes that wait behind a blocked request, for each channel.
    pub queue_bytes: u64,
    /// Replies and pushes not yet sent, for each channel.
    pub output_bytes: u64,
    /// A frame in either direction.
    pub frame_bytes: u32,
    /// Arguments of the argument form.
    pub arguments: u32,
    /// One byte string of a request or a reply.
    pub argument_bytes: u32,
    /// Aggregates inside each other in a reply.
    pub nesting: u8,
    /// The count of an aggregate.
    pub elements: u32,
    /// A slice of a FRAGMENT.
    pub fragment_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            channels: 1 << 16,
            unauthenticated_channels: 16,
            queue_bytes: 1 << 20,
            output_bytes: 256 << 20,
            frame_bytes: 1 << 30,
            arguments: i32::MAX as u32,
            argument_bytes: 512 << 20,
            nesting: 128,
            elements: u32::MAX,
            fragment_bytes: 64 << 10,
        }
    }
}

impl Limits {
    /// Names and values, as HELLO announces them.
    #[must_use]
    pub fn list(&self) -> [(&'static str, u64); 10] {
        [
            ("channels", self.channels.into()),
            ("unauthenticated_channels", self.unauthenticated_channels.into()),
            ("queue_bytes", self.queue_bytes),
            ("output_bytes", self.output_bytes),
            ("frame_bytes", self.frame_bytes.into()),
            ("arguments", self.arguments.into()),
            ("argument_bytes", self.argument_bytes.into()),
            ("nesting", self.nesting.into()),
            ("elements", self.elements.into()),
            ("fragment_bytes", self.fragment_bytes.into()),
        ]
    }
}
