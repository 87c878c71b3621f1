//! Owns: what a server promises about RESPB when a client asks (spec sections 7.4 and 10): version, profiles, table,
//! capabilities, limits. Does not own: keeping to the limits, which the server does, nor frames
//! (`weft_protocol::respb`).

use std::sync::atomic::Ordering::Relaxed;
use weft_protocol::limits::NESTING_MAX;
use weft_protocol::respb::frame::FRAGMENT_BYTES_MAX;
use weft_protocol::table::{TABLE_HASH, TABLE_NAME, TABLE_VERSION};

use crate::config::Settings;
use crate::reply::ReplySink;

/// Version of the protocol.
pub const VERSION: i64 = 1;

/// Bit of a capability mask: the client puts FRAGMENT frames together.
pub const CAP_FRAGMENT: u64 = 1 << 0;
/// What this server can; of a client's mask the rest is left out.
pub const CAPS: u64 = CAP_FRAGMENT;
/// Bit of what is kept of a connection's capabilities: its first HELLO has fixed them.
pub const CAPS_FIXED: u64 = 1 << 63;

/// Why HELLO does not change a connection's protocol where its client is in the middle of something.
pub(crate) const NO_SWITCH: &str = "HELLO with PROTO is not allowed inside a transaction";

/// What this server speaks (spec section 1.4).
pub const PROFILES: [&str; 5] = ["channels", "typed", "flow", "cancel", "passthrough"];

/// Writes which command table this is (spec section 13.2).
pub fn write_table(sink: &mut ReplySink<'_>) {
    sink.map(3);
    sink.bulk(b"name");
    sink.bulk(TABLE_NAME.as_bytes());
    sink.bulk(b"version");
    sink.int(TABLE_VERSION.into());
    sink.bulk(b"hash");
    sink.bulk(TABLE_HASH.as_bytes());
}

/// The limits, with the names of spec section 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Channels open on a connection, channel 0 included.
    pub channels: u32,
    /// The same, before authentication.
    pub unauthenticated_channels: u32,
    /// Bytes that wait behind a blocked request, for each channel.
    pub queue_bytes: usize,
    /// Replies and pushes not yet sent, for each channel.
    pub output_bytes: usize,
    /// Bytes that wait behind blocked requests, for all channels of a connection.
    pub connection_queue_bytes: usize,
    /// Replies and pushes not yet sent, for all channels of a connection.
    pub connection_output_bytes: usize,
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

impl Limits {
    /// Those in force.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let argument_bytes = settings.string_bytes_max.load(Relaxed);
        let frame_bytes = settings.respb_frame_bytes_max.load(Relaxed);
        Self {
            channels: settings.respb_channels_max.load(Relaxed),
            unauthenticated_channels: settings.respb_unauthenticated_channels_max.load(Relaxed),
            queue_bytes: settings.respb_queue_bytes_max.load(Relaxed),
            output_bytes: settings.respb_output_bytes_max.load(Relaxed),
            connection_queue_bytes: settings.respb_connection_queue_bytes_max.load(Relaxed),
            connection_output_bytes: settings.respb_connection_output_bytes_max.load(Relaxed),
            frame_bytes: u32::try_from(frame_bytes).unwrap_or(u32::MAX),
            arguments: i32::MAX as u32,
            argument_bytes: u32::try_from(argument_bytes).unwrap_or(u32::MAX),
            nesting: NESTING_MAX,
            elements: u32::MAX,
            fragment_bytes: FRAGMENT_BYTES_MAX as u32,
        }
    }
    /// Names and values, as HELLO announces them.
    #[must_use]
    pub fn list(&self) -> [(&'static str, u64); 12] {
        [
            ("channels", self.channels.into()),
            ("unauthenticated_channels", self.unauthenticated_channels.into()),
            ("queue_bytes", self.queue_bytes as u64),
            ("output_bytes", self.output_bytes as u64),
            ("connection_queue_bytes", self.connection_queue_bytes as u64),
            ("connection_output_bytes", self.connection_output_bytes as u64),
            ("frame_bytes", self.frame_bytes.into()),
            ("arguments", self.arguments.into()),
            ("argument_bytes", self.argument_bytes.into()),
            ("nesting", self.nesting.into()),
            ("elements", self.elements.into()),
            ("fragment_bytes", self.fragment_bytes.into()),
        ]
    }
}
