//! What has been published since the last look at the sockets, and who has subscribed. Owns the form of messages on
//! both wires; every one of them goes to everybody.

use std::collections::BTreeMap;
use std::ops::Range;

use weft_protocol::{Reply, resp, respb};

use super::CHANNEL;

const LINE_END: &[u8] = b"\r\n";

/// A message of known length: written once, and again with other bytes.
pub(super) struct Message {
    /// Where its payload stands in the request.
    payload: Range<usize>,
    /// What stands before it: in RESP, where a line's end stands behind it, and in RESPB.
    resp: Vec<u8>,
    respb: Vec<u8>,
}

impl Message {
    pub(super) fn new(channel: &[u8], payload: Range<usize>) -> Message {
        let parts = [b"message".to_vec(), channel.to_vec(), vec![b'x'; payload.len()]];
        let push = Reply::Push(parts.map(Reply::Bulk).to_vec());
        let (mut resp, mut respb) = (Vec::new(), Vec::new());
        push.visit(&mut resp::ReplyWriter::new(&mut resp, resp::Version::Resp3));
        push.visit(&mut respb::ReplyWriter::new(&mut respb, 0));
        resp.truncate(resp.len() - payload.len() - LINE_END.len());
        respb.truncate(respb.len() - payload.len());
        Message { payload, resp, respb }
    }
}

/// See the module's comment.
#[derive(Default)]
pub(super) struct News {
    /// By connection, how many of its channels listen, and whether it speaks RESPB.
    listeners: BTreeMap<u64, (usize, bool)>,
    resp: Vec<u8>,
    respb: Vec<u8>,
    /// Where the frames of RESPB begin.
    frames: Vec<usize>,
    /// Whether somebody listens over RESPB, and over RESP.
    binary: bool,
    text: bool,
}

impl News {
    pub(super) fn join(&mut self, connection: u64, channels: usize, binary: bool) {
        if self.listeners.insert(connection, (channels, binary)) != Some((channels, binary)) {
            self.look();
        }
    }
    pub(super) fn leave(&mut self, connection: u64, channels: &[u16]) {
        if !channels.is_empty() && self.listeners.remove(&connection).is_some() {
            self.look();
        }
    }
    /// On which wires somebody listens.
    fn look(&mut self) {
        self.binary = self.listeners.values().any(|&(_, binary)| binary);
        self.text = self.listeners.values().any(|&(_, binary)| !binary);
    }
    /// How many listen.
    pub(super) fn count(&self) -> i64 {
        self.listeners.values().map(|&(channels, _)| channels as i64).sum()
    }
    pub(super) fn publish(&mut self, message: &Message, request: &[u8]) {
        let payload = &request[message.payload.clone()];
        if self.text {
            self.resp.extend_from_slice(&message.resp);
            self.resp.extend_from_slice(payload);
            self.resp.extend_from_slice(LINE_END);
        }
        if self.binary {
            self.frames.push(self.respb.len());
            self.respb.extend_from_slice(&message.respb);
            self.respb.extend_from_slice(payload);
        }
    }
    /// The connections that are to be told something.
    pub(super) fn listeners(&self) -> Vec<u64> {
        if self.resp.is_empty() && self.respb.is_empty() {
            return Vec::new();
        }
        self.listeners.keys().copied().collect()
    }
    /// All of it, for each of the channels.
    pub(super) fn write(&self, binary: bool, channels: &[u16], out: &mut Vec<u8>) {
        if !binary {
            return out.extend_from_slice(&self.resp);
        }
        for channel in channels {
            let at = out.len();
            out.extend_from_slice(&self.respb);
            for frame in &self.frames {
                out[at + frame + CHANNEL.start..at + frame + CHANNEL.end]
                    .copy_from_slice(&channel.to_be_bytes());
            }
        }
    }
    pub(super) fn forget(&mut self) {
        self.resp.clear();
        self.respb.clear();
        self.frames.clear();
    }
}
