//! The numbers of the frame layer (spec sections 3, 5 and 8), shared by both directions, and the control frames.

use crate::buffer::Buffer;
use crate::outcome::{Malformed, Step, Stop};

/// `[opcode u16][channel u16]`
pub const HEADER_LEN: usize = 4;
/// A header, then `[len u32]`: ARGV, passthrough, control frames and everything unknown from 0xF001 on.
pub const LONG_HEADER_LEN: usize = 8;

/// The last opcode of a core request.
pub const CORE_LAST: u16 = 0x07FF;
/// The first opcode of a reply.
pub const REPLY_FIRST: u16 = 0x8000;
/// The last opcode of a reply.
pub const REPLY_LAST: u16 = 0x8FFF;
/// A module command: `[module u16][command u16]` follows the header.
pub const MODULE: u16 = 0xF000;
/// Any command as `u32`-length arguments.
pub const ARGV: u16 = 0xF001;
/// From here on every frame carries its length, so that an unknown one can be skipped.
pub const EXTENDED_FIRST: u16 = 0xF002;
/// From here on an unknown frame is ignored rather than answered with an error.
pub const IGNORABLE_FIRST: u16 = 0xFF00;
/// Ends a channel.
pub const CLOSE: u16 = 0xFF01;
/// Ends a request that waits or blocks.
pub const CANCEL: u16 = 0xFF02;
/// Grants credit.
pub const WINDOW: u16 = 0xFF03;
/// Ends the connection.
pub const GOAWAY: u16 = 0xFF04;
/// A slice of a reply frame.
pub const FRAGMENT: u16 = 0xFF10;
/// The most bytes of a slice.
pub const FRAGMENT_BYTES_MAX: usize = 65_536;
/// Exactly one RESP command.
pub const PASSTHROUGH: u16 = 0xFFFF;

/// Reply opcodes are `0x8000 | type`, element tags are the type alone.
pub mod kind {
    /// `OK`, header only.
    pub const OK: u8 = 0x00;
    /// `[u16 len][text]`
    pub const ERROR: u8 = 0x01;
    /// `[i64]`
    pub const INT: u8 = 0x02;
    /// `[u32 len][bytes]`
    pub const BULK: u8 = 0x03;
    /// `[u32 count]` elements
    pub const ARRAY: u8 = 0x04;
    /// Nothing
    pub const NULL: u8 = 0x05;
    /// `[u8]`, 0 or 1
    pub const BOOL: u8 = 0x06;
    /// `[f64]`
    pub const DOUBLE: u8 = 0x07;
    /// `[u32 pairs]` twice as many elements
    pub const MAP: u8 = 0x08;
    /// `[u32 count]` elements
    pub const SET: u8 = 0x09;
    /// `[u32 count]` elements, never inside another
    pub const PUSH: u8 = 0x0A;
    /// `[u16 len][text]`
    pub const SIMPLE: u8 = 0x0B;
    /// `[u32 len][decimal digits]`
    pub const BIG_NUMBER: u8 = 0x0C;
    /// `[3 bytes format][u32 len][bytes]`
    pub const VERBATIM: u8 = 0x0D;
    /// `[u32 pairs]` twice as many elements, then the element they belong to
    pub const ATTRIBUTE: u8 = 0x0E;
    /// `[u32 len][text]`, an error too long for [`ERROR`]
    pub const LONG_ERROR: u8 = 0x0F;
    /// `[i32]`
    pub const INT32: u8 = 0x10;
}

/// High byte of the header-only small integers, 0x8100 to 0x81FF.
pub const SMALL_INT: u8 = 0x81;
/// High byte of bulks whose length is in the opcode.
pub const SHORT_BULK: u8 = 0x82;
/// High byte of simple strings whose length is in the opcode.
pub const SHORT_SIMPLE: u8 = 0x83;

/// First element tag of the small integers; it stands for −1.
pub const TAG_INT_FIRST: u8 = 0x40;
/// Last element tag of the small integers; it stands for 62.
pub const TAG_INT_LAST: u8 = 0x7F;
/// First element tag of short bulks; the low 7 bits are the length.
pub const TAG_BULK_FIRST: u8 = 0x80;

/// A control frame. None has a reply of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// Ends the channel; either side.
    Close {
        /// Why: a number of spec section 8.4. 0 is a normal end.
        code: u16,
        /// Why, for people; UTF-8.
        reason: &'a [u8],
    },
    /// Client to server: ends the request of this number, if it waits or blocks.
    Cancel {
        /// Requests on the channel count from 0.
        sequence: u32,
    },
    /// Client to server: so many more bytes may be sent on this channel.
    Window {
        /// Bytes, headers included.
        more: u32,
    },
    /// Server to client: the connection ends. Whatever its header names, it is about all channels.
    Goaway {
        /// Why: a number of spec section 8.4.
        code: u16,
        /// Why, for people; UTF-8.
        reason: &'a [u8],
    },
    /// Server to client: a slice of a frame.
    Fragment {
        /// No slice follows.
        last: bool,
        /// The slice.
        slice: &'a [u8],
    },
    /// A frame of 0xFF00 to 0xFFFE that this version does not know, to be ignored.
    Unknown {
        /// Its opcode.
        opcode: u16,
    },
}

impl<'a> Control<'a> {
    /// Reads the payload of a control frame. `offset` is where it starts in the frame.
    pub(crate) fn parse(opcode: u16, payload: &'a [u8], offset: usize) -> Step<Control<'a>> {
        let bad = Err(Stop::bad(Malformed::BadControl, offset));
        Ok(match (opcode, payload) {
            (CLOSE, []) => Control::Close { code: 0, reason: &[] },
            (CLOSE, [high, low, reason @ ..]) => {
                Control::Close { code: u16::from_be_bytes([*high, *low]), reason }
            }
            (GOAWAY, [high, low, reason @ ..]) => {
                Control::Goaway { code: u16::from_be_bytes([*high, *low]), reason }
            }
            (CANCEL, &[a, b, c, d]) => Control::Cancel { sequence: u32::from_be_bytes([a, b, c, d]) },
            (WINDOW, &[a, b, c, d]) => Control::Window { more: u32::from_be_bytes([a, b, c, d]) },
            (FRAGMENT, [flags @ 0..=1, slice @ ..]) if slice.len() <= FRAGMENT_BYTES_MAX => {
                Control::Fragment { last: *flags == 1, slice }
            }
            (CLOSE | CANCEL | WINDOW | GOAWAY | FRAGMENT, _) => return bad,
            (opcode, _) => Control::Unknown { opcode },
        })
    }

    /// Appends the frame.
    pub fn encode(&self, channel: u16, out: &mut impl Buffer) {
        let mut head = |opcode: u16, len: usize| {
            out.extend_from_slice(&opcode.to_be_bytes());
            out.extend_from_slice(&channel.to_be_bytes());
            out.extend_from_slice(&(len as u32).to_be_bytes());
        };
        match *self {
            Control::Close { code: 0, reason: [] } => head(CLOSE, 0),
            Control::Close { code, reason } => {
                head(CLOSE, 2 + reason.len());
                out.extend_from_slice(&code.to_be_bytes());
                out.extend_from_slice(reason);
            }
            Control::Goaway { code, reason } => {
                head(GOAWAY, 2 + reason.len());
                out.extend_from_slice(&code.to_be_bytes());
                out.extend_from_slice(reason);
            }
            Control::Cancel { sequence } => {
                head(CANCEL, 4);
                out.extend_from_slice(&sequence.to_be_bytes());
            }
            Control::Window { more } => {
                head(WINDOW, 4);
                out.extend_from_slice(&more.to_be_bytes());
            }
            Control::Fragment { last, slice } => {
                head(FRAGMENT, 1 + slice.len());
                out.push(u8::from(last));
                out.extend_from_slice(slice);
            }
            Control::Unknown { opcode } => head(opcode, 0),
        }
    }
}
