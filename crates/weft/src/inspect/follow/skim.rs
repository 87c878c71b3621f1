//! Finding where a frame ends without looking at what is in it, so that a frame in many pieces costs its bytes once.
//!
//! Owns the decoders of one direction. They resume; drawing a picture does not.

use weft_protocol::reply::Passed;
use weft_protocol::{Limits, Outcome, resp, respb};

use super::super::Way;

/// The decoders of one direction, at most one of them inside a frame.
pub(super) struct Skim {
    resp_requests: resp::RequestDecoder,
    respb_requests: respb::RequestDecoder,
    resp_replies: resp::ReplyDecoder,
    respb_replies: respb::ReplyDecoder,
}

impl Skim {
    pub(super) fn new() -> Skim {
        Skim {
            resp_requests: resp::RequestDecoder::new(Limits::DEFAULT),
            respb_requests: respb::RequestDecoder::new(Limits::DEFAULT),
            resp_replies: resp::ReplyDecoder::new(Limits::DEFAULT),
            respb_replies: respb::ReplyDecoder::new(Limits::DEFAULT),
        }
    }

    /// Whether the frame at the start of `bytes` can be drawn: it is whole, or can never be.
    pub(super) fn is_ready(&mut self, way: Way, bytes: &[u8]) -> bool {
        fn incomplete<T>(outcome: Outcome<T>) -> bool {
            matches!(outcome, Outcome::Incomplete { .. })
        }
        let incomplete = match (way.binary, way.replies) {
            (true, false) => incomplete(self.respb_requests.decode(bytes, &mut Passed)),
            (true, true) => incomplete(self.respb_replies.decode(bytes, &mut Passed)),
            (false, false) => incomplete(self.resp_requests.decode(bytes, &mut Passed)),
            (false, true) => incomplete(self.resp_replies.decode(bytes, &mut Passed)),
        };
        !incomplete
    }
}
