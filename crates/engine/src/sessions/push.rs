//! Owns: what a client gets without having asked for it just then, in a form that is shared by all who get it, and how
//! it is written. Does not own: who gets it.

use std::sync::{Arc, OnceLock};

use crate::reply::{Output, Protocol, ReplySink, Wire};

/// One push.
#[derive(Debug)]
pub enum Push {
    /// A message on a channel.
    Message {
        /// `message` or `smessage`.
        kind: &'static str,
        /// The channel.
        channel: Arc<[u8]>,
        /// What was published.
        payload: Box<[u8]>,
        /// Where many get it.
        written: Option<Box<Written>>,
    },
    /// A message on a channel that matches a pattern.
    PatternMessage {
        /// The pattern.
        pattern: Arc<[u8]>,
        /// The channel.
        channel: Box<[u8]>,
        /// What was published.
        payload: Box<[u8]>,
    },
    /// Keys that a tracking client may have cached; none for all of them.
    Invalidate(Option<Vec<Box<[u8]>>>),
    /// The target of tracking's redirection is gone.
    TrackingRedirBroken(u64),
    /// A line of MONITOR.
    Monitor(Box<str>),
}

/// A message as it is written, which it is once the first has got it on such a wire.
#[derive(Debug, Default)]
pub struct Written {
    resp: OnceLock<Box<[u8]>>,
    respb: OnceLock<Box<[u8]>>,
}

/// As many as this get a message before it is written once for all of them.
const RECEIVERS_MIN: usize = 8;
/// What is longer is not kept twice.
const WRITTEN_BYTES_MAX: usize = 16 << 10;

impl Push {
    /// A message on a channel, for so many.
    #[must_use]
    pub fn message(kind: &'static str, channel: &Arc<[u8]>, payload: &[u8], receivers: usize) -> Self {
        let is_kept = receivers >= RECEIVERS_MIN && payload.len() <= WRITTEN_BYTES_MAX;
        let written = is_kept.then(Box::default);
        Self::Message { kind, channel: Arc::clone(channel), payload: payload.into(), written }
    }
    /// Bytes of what it says, without their form: so many count for each who gets it. That it is kept written too is
    /// once for all.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Message { channel, payload, .. } => channel.len() + payload.len(),
            Self::PatternMessage { pattern, channel, payload } => {
                pattern.len() + channel.len() + payload.len()
            }
            Self::Monitor(line) => line.len(),
            Self::Invalidate(keys) => {
                keys.iter().flatten().map(|key| key.len() + size_of::<Box<[u8]>>()).sum()
            }
            Self::TrackingRedirBroken(_) => 0,
        }
    }
    /// Whether it is about keys that somebody may have cached, or says that he is not told of them.
    pub(crate) const fn is_invalidation(&self) -> bool {
        matches!(self, Self::Invalidate(_) | Self::TrackingRedirBroken(_))
    }
    /// Writes it. In RESP2 a push is an array; MONITOR's lines are simple strings in RESP2 and RESP3.
    pub fn write(&self, sink: &mut ReplySink<'_>) {
        match self {
            Self::Message { kind, channel, payload, written } => {
                let message = [kind.as_bytes(), channel, payload];
                match written.as_ref().and_then(|written| written.on(sink.wire().protocol, message)) {
                    Some(written) => sink.written_push(written),
                    None => write_message(message, sink),
                }
            }
            Self::PatternMessage { pattern, channel, payload } => {
                sink.push(4);
                sink.bulk(b"pmessage");
                sink.bulk(pattern);
                sink.bulk(channel);
                sink.bulk(payload);
            }
            Self::Invalidate(keys) => self.write_invalidate(keys.as_deref(), sink),
            Self::TrackingRedirBroken(client) => {
                sink.push(2);
                sink.bulk(b"tracking-redir-broken");
                sink.int(*client as i64);
            }
            Self::Monitor(line) => match sink.wire().protocol {
                Protocol::Resp2 | Protocol::Resp3 | Protocol::Json(_) => sink.simple(line),
                Protocol::Respb | Protocol::Captured => {
                    sink.push(2);
                    sink.bulk(b"monitor");
                    sink.bulk(line.as_bytes());
                }
            },
        }
    }

    /// Clients without pushes get invalidations as messages of the channel they redirected to.
    fn write_invalidate(&self, keys: Option<&[Box<[u8]>]>, sink: &mut ReplySink<'_>) {
        if sink.wire().protocol.has_pushes() {
            sink.push(2);
            sink.bulk(b"invalidate");
        } else {
            sink.push(3);
            sink.bulk(b"message");
            sink.bulk(b"__redis__:invalidate");
        }
        // Not a null array, as from Valkey.
        let Some(keys) = keys else { return sink.null() };
        sink.array(keys.len());
        keys.iter().for_each(|key| sink.bulk(key));
    }
}

impl Written {
    /// The bytes on a wire, unless it is one on which nothing is written.
    fn on(&self, protocol: Protocol, message: [&[u8]; 3]) -> Option<&[u8]> {
        let (place, protocol) = match protocol {
            Protocol::Resp2 | Protocol::Resp3 => (&self.resp, Protocol::Resp3),
            Protocol::Respb => (&self.respb, Protocol::Respb),
            Protocol::Captured | Protocol::Json(_) => return None,
        };
        let write = || {
            let mut output = Output::default();
            write_message(message, &mut ReplySink::new(&mut output, Wire { protocol, channel: 0 }));
            output.to_vec().into()
        };
        Some(place.get_or_init(write))
    }
}

fn write_message(message: [&[u8]; 3], sink: &mut ReplySink<'_>) {
    sink.push(message.len());
    message.iter().for_each(|part| sink.bulk(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(push: &Push, protocol: Protocol) -> Vec<u8> {
        let mut output = Output::default();
        push.write(&mut ReplySink::new(&mut output, Wire { protocol, channel: 7 }));
        output.to_vec()
    }

    #[test]
    fn that_all_keys_have_changed_is_a_null() {
        let all = Push::Invalidate(None);
        let message = b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n$-1\r\n";
        assert_eq!(written(&all, Protocol::Resp2), message);
        assert_eq!(written(&all, Protocol::Resp3), b">2\r\n$10\r\ninvalidate\r\n_\r\n");
    }

    /// To however many it goes: to those who get it, and to those who count what waits for them.
    #[test]
    fn what_is_written_once_for_many_is_what_each_would_get() {
        for len in [0, 1, WRITTEN_BYTES_MAX, WRITTEN_BYTES_MAX + 1] {
            let payload = vec![b'x'; len];
            for kind in ["message", "smessage"] {
                let [few, many] = [RECEIVERS_MIN - 1, RECEIVERS_MIN]
                    .map(|receivers| Push::message(kind, &b"news"[..].into(), &payload, receivers));
                let is_kept = |push: &Push| matches!(push, Push::Message { written: Some(_), .. });
                assert_eq!((is_kept(&few), is_kept(&many)), (false, len <= WRITTEN_BYTES_MAX));
                assert_eq!(few.bytes(), many.bytes());
                for protocol in [Protocol::Resp2, Protocol::Resp3, Protocol::Respb] {
                    for _ in 0..2 {
                        assert_eq!(written(&few, protocol), written(&many, protocol), "{len} {kind}");
                    }
                }
            }
        }
        let many = Push::message("message", &b"c"[..].into(), b"m", RECEIVERS_MIN);
        assert_eq!(written(&many, Protocol::Resp2), b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
        assert_eq!(written(&many, Protocol::Resp3), b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
    }
}
