//! RESP2 and RESP3: requests as arrays of bulks or inline lines, replies as typed lines.
//!
//! [`request`] decodes what a client sends, [`inline`] the lines that people type, [`reply`] what a server sends;
//! [`encode`] writes requests, [`encode_reply`] writes replies of both versions.

pub mod encode;
pub mod encode_reply;
pub mod inline;
pub mod reply;
pub mod request;
mod shape;

pub use encode_reply::{ReplyWriter, Version};
pub use reply::ReplyDecoder;
pub use request::{RequestDecoder, RequestFrame};
pub use shape::Shape;
