//! Owns: what becomes of replies that waited until something is safe when it never will be: each becomes an error, and
//! pushes among them stay. Does not own: when that is so (`crate::safe`), answers of HTTP (the server's).

use weft_protocol::reply::Passed;
use weft_protocol::respb::reply::ReplyKind;
use weft_protocol::{Limits, Outcome, resp, respb};

use super::{Output, Protocol, ReplySink, Wire};
use crate::error::Error;

impl Output {
    /// Each reply that waits for an epoch becomes this error. Says whether that could be: what waits are whole replies
    /// of this wire.
    pub fn lose_withheld(&mut self, wire: Wire, error: &Error) -> bool {
        let Some(from) = self.first_withheld() else { return true };
        let withheld = self.split_off(from.bytes, from.pins).to_vec();
        let mut rest = &withheld[..];
        while !rest.is_empty() {
            let Some((len, is_reply)) = first_of(rest, wire) else { return false };
            if is_reply {
                ReplySink::new(self, wire).error(error);
            } else {
                self.bytes.extend_from_slice(&rest[..len]);
            }
            rest = &rest[len..];
        }
        true
    }
}

/// How long the first of these frames is, and whether it answers a request.
fn first_of(bytes: &[u8], wire: Wire) -> Option<(usize, bool)> {
    // The server wrote them: they are as long as they are.
    let limits = Limits { frame_bytes_max: u32::MAX, argument_bytes_max: u32::MAX, ..Limits::DEFAULT };
    match wire.protocol {
        Protocol::Resp2 | Protocol::Resp3 => match resp::ReplyDecoder::new(limits).decode(bytes, &mut Passed)
        {
            Outcome::Complete(frame) => Some((frame.len, !frame.push)),
            _ => None,
        },
        Protocol::Respb => match respb::ReplyDecoder::new(limits).decode(bytes, &mut Passed) {
            Outcome::Complete(frame) => Some((frame.len, frame.kind == ReplyKind::Reply)),
            _ => None,
        },
        _ => None,
    }
}
