//! Owns: what a client gets without having asked for it just then, in a form that is shared by all who get it, and how
//! it is written. Does not own: who gets it.

use crate::reply::{Protocol, ReplySink};

/// One push.
#[derive(Debug)]
pub enum Push {
    /// A message on a channel.
    Message {
        /// `message` or `smessage`.
        kind: &'static str,
        /// The channel.
        channel: Box<[u8]>,
        /// What was published.
        payload: Box<[u8]>,
    },
    /// A message on a channel that matches a pattern.
    PatternMessage {
        /// The pattern.
        pattern: Box<[u8]>,
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

impl Push {
    /// Bytes of what it says, without their form.
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
            Self::Message { kind, channel, payload } => {
                sink.push(3);
                sink.bulk(kind.as_bytes());
                sink.bulk(channel);
                sink.bulk(payload);
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
        let Some(keys) = keys else { return sink.null_array() };
        sink.array(keys.len());
        keys.iter().for_each(|key| sink.bulk(key));
    }
}
