//! RESPB: frames of `[opcode u16][channel u16][payload]`, big endian (spec/RESPB.md).
//!
//! [`request`] decodes what a client sends, [`reply`] what a server sends; [`encode`] writes requests from arguments,
//! [`encode_reply`] writes replies; [`frame`] holds the numbers that both directions share;
//! [`StringFrame`] is what logs mostly consist of.

mod ahead;
pub mod encode;
pub mod encode_reply;
pub mod frame;
mod module;
mod plain;
pub mod reply;
pub mod request;
mod string;
mod walk;

pub use encode::{Mode, RequestWriter};
pub use encode_reply::ReplyWriter;
pub use frame::{Control, HEADER_LEN};
pub use reply::{ReplyDecoder, ReplyFrame};
pub use request::{Frame, Payload, Piece, Plain, RequestDecoder, RequestFrame};
pub use string::StringFrame;
