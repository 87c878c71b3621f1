//! The structs and numbers of `include/respb.h`, field by field.
//!
//! Owns the layout in memory. `tests/ffi/abi.c` is compiled with what Rust says of it, so that the two cannot differ.

use core::ffi::c_char;

use weft_protocol::Limits;
use weft_protocol::limits::NESTING_MAX;

/// `RESPB_ABI_VERSION`, and the number in the shared library's name.
pub const ABI_VERSION: u32 = 0;
/// `RESPB_VALUES_MIN`: what a decoder may hand out in one step.
pub const VALUES_MIN: usize = weft_protocol::request::STEP_ARGUMENTS_MAX;
/// `RESPB_NO_OFFSET`
pub const NO_OFFSET: u32 = u32::MAX;
/// `RESPB_NO_COMMAND`
pub const NO_COMMAND: u16 = u16::MAX;

/// `respb_status`
pub type Status = i32;
/// `RESPB_OK`
pub const OK: Status = 0;
/// `RESPB_INCOMPLETE`
pub const INCOMPLETE: Status = 1;
/// `RESPB_FULL`
pub const FULL: Status = 2;
/// `RESPB_INVALID`
pub const INVALID: Status = -1;
/// `RESPB_EINVAL`
pub const EINVAL: Status = -2;
/// `RESPB_EDEPTH`
pub const EDEPTH: Status = -3;

/// A protocol of a decoder or writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `RESPB_PROTOCOL_RESP2`
    Resp2,
    /// `RESPB_PROTOCOL_RESP3`
    Resp3,
    /// `RESPB_PROTOCOL_RESPB`
    Respb,
}

impl Protocol {
    /// The protocol of a number.
    pub fn of(number: i32) -> Option<Protocol> {
        match number {
            2 => Some(Protocol::Resp2),
            3 => Some(Protocol::Resp3),
            4 => Some(Protocol::Respb),
            _ => None,
        }
    }
}

/// Numbers of `respb_value.kind`.
#[allow(missing_docs, reason = "the header describes them")]
pub mod kind {
    pub const BYTES: u8 = 0;
    pub const QUOTED: u8 = 1;
    pub const INTEGER: u8 = 2;
    pub const DOUBLE: u8 = 3;
    pub const KEYWORD: u8 = 4;
    pub const SIMPLE: u8 = 5;
    pub const ERROR: u8 = 6;
    pub const BIG_NUMBER: u8 = 7;
    pub const VERBATIM: u8 = 8;
    pub const BOOLEAN: u8 = 9;
    pub const NULL: u8 = 10;
    pub const NULL_ARRAY: u8 = 11;
    pub const ARRAY: u8 = 12;
    pub const MAP: u8 = 13;
    pub const SET: u8 = 14;
    pub const PUSH: u8 = 15;
    pub const ATTRIBUTE: u8 = 16;
    pub const CLOSE: u8 = 17;
    pub const TEXT: u8 = 18;
}

/// Numbers of `respb_frame.kind`.
#[allow(missing_docs, reason = "the header describes them")]
pub mod frame_kind {
    pub const RESP: u8 = 0;
    pub const CORE: u8 = 1;
    pub const MODULE: u8 = 2;
    pub const ARGV: u8 = 3;
    pub const PASSTHROUGH: u8 = 4;
    pub const CLOSE: u8 = 5;
    pub const CANCEL: u8 = 6;
    pub const WINDOW: u8 = 7;
    pub const GOAWAY: u8 = 8;
    pub const FRAGMENT: u8 = 9;
    pub const UNKNOWN: u8 = 10;
    pub const IGNORED: u8 = 11;
    pub const REPLY: u8 = 12;
    pub const PUSH: u8 = 13;
}

/// The union in `respb_value`.
#[derive(Clone, Copy)]
#[repr(C)]
pub union Payload {
    /// Of the kinds that are bytes.
    pub data: *const c_char,
    /// Of integers, booleans and aggregates.
    pub integer: i64,
    /// Of doubles.
    pub number: f64,
}

impl core::fmt::Debug for Payload {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Payload")
    }
}

/// `respb_value`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Value {
    /// What it says; `kind` says which.
    pub value: Payload,
    /// Bytes at `value.data`.
    pub len: u32,
    /// Offset of the bytes in the frame.
    pub offset: u32,
    /// A number of [`kind`].
    pub kind: u8,
    /// Of a verbatim text.
    pub format: [u8; 3],
    /// 0
    pub reserved: u32,
}

impl Value {
    /// A value that is no bytes.
    #[inline(always)]
    pub fn number(kind: u8, value: Payload) -> Value {
        Value { value, len: 0, offset: NO_OFFSET, kind, format: [0; 3], reserved: 0 }
    }

    /// A value that is bytes.
    #[inline(always)]
    pub fn bytes(kind: u8, offset: u32, bytes: &[u8]) -> Value {
        let value = Payload { data: bytes.as_ptr().cast() };
        // Lengths fit: a frame's are within `frame_bytes_max`, a u32, and keywords are short.
        Value { value, len: bytes.len() as u32, offset, kind, format: [0; 3], reserved: 0 }
    }
}

/// `respb_frame`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Frame {
    /// Its first byte.
    pub data: *const c_char,
    /// Its bytes.
    pub len: u32,
    /// Index of its first value.
    pub first: u32,
    /// Its values.
    pub count: u32,
    /// Values that were taken before.
    pub taken: u32,
    /// Of a control frame.
    pub number: u32,
    /// Its channel.
    pub channel: u16,
    /// Its opcode.
    pub opcode: u16,
    /// Index in the command table.
    pub command: u16,
    /// Option bits.
    pub options: u16,
    /// A number of [`frame_kind`].
    pub kind: u8,
    /// Of FRAGMENT.
    pub last: u8,
    /// 0
    pub reserved: [u8; 2],
}

/// `respb_batch`
#[derive(Debug)]
#[repr(C)]
pub struct Batch {
    /// Array of the caller.
    pub frames: *mut Frame,
    /// Its places.
    pub frames_capacity: usize,
    /// Whole frames.
    pub frames_len: usize,
    /// Array of the caller.
    pub values: *mut Value,
    /// Its places.
    pub values_capacity: usize,
    /// Values in it.
    pub values_len: usize,
    /// First value of the frame that is not whole.
    pub partial: usize,
    /// Values of it that were taken.
    pub taken: usize,
    /// Bytes of whole frames.
    pub consumed: usize,
    /// Bytes that the next frame needs.
    pub need: usize,
    /// Number of the error.
    pub error: u32,
    /// Its place in its frame.
    pub error_offset: u32,
    /// The channel to answer on.
    pub error_channel: u16,
    /// 0
    pub reserved: [u16; 3],
}

/// `respb_limits`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LimitsC {
    /// As [`Limits::arguments_max`].
    pub arguments_max: u32,
    /// As [`Limits::argument_bytes_max`].
    pub argument_bytes_max: u32,
    /// As [`Limits::frame_bytes_max`].
    pub frame_bytes_max: u32,
    /// As [`Limits::inline_bytes_max`].
    pub inline_bytes_max: u32,
    /// As [`Limits::elements_max`].
    pub elements_max: u32,
    /// As [`Limits::nesting_max`].
    pub nesting_max: u8,
    /// As [`Limits::unauthenticated`].
    pub unauthenticated: u8,
    /// The decoder stands at a connection's start.
    pub first_frame: u8,
    /// 0
    pub reserved: u8,
}

/// The largest frame: an offset must stay below [`NO_OFFSET`], with room for a line end.
const FRAME_BYTES_MAX: u32 = u32::MAX - 16;

impl LimitsC {
    /// From the limits of the protocol crate.
    pub fn from(limits: Limits) -> LimitsC {
        LimitsC {
            arguments_max: limits.arguments_max,
            argument_bytes_max: limits.argument_bytes_max,
            frame_bytes_max: limits.frame_bytes_max,
            inline_bytes_max: limits.inline_bytes_max,
            elements_max: limits.elements_max,
            nesting_max: limits.nesting_max,
            unauthenticated: u8::from(limits.unauthenticated),
            first_frame: 0,
            reserved: 0,
        }
    }

    /// To the limits of the protocol crate.
    pub fn to_limits(self) -> Limits {
        Limits {
            arguments_max: self.arguments_max,
            argument_bytes_max: self.argument_bytes_max,
            frame_bytes_max: self.frame_bytes_max.min(FRAME_BYTES_MAX),
            inline_bytes_max: self.inline_bytes_max.min(FRAME_BYTES_MAX),
            elements_max: self.elements_max,
            nesting_max: self.nesting_max.min(NESTING_MAX),
            unauthenticated: self.unauthenticated != 0,
        }
    }
}
