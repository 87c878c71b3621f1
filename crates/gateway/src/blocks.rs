//! Owns: the time of a request: since when its client waits, how long it blocks, when it is late, what of its time is
//! left when it is sent. Does not own: what becomes of one that is late (`crate::late`).

use std::borrow::Cow;

use weft_engine::forward::{BlockTime, Kind};
use weft_protocol::request::Texts;
use weft_protocol::resp::encode::request;

use crate::options::Options;
use crate::scripts::{requests, words};

/// A connection is made in less, as a rule.
const MADE_MS: u64 = 1_000;

/// The time of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Since {
    /// Since when its client waits.
    pub(crate) begun_ms: u64,
    /// How long it blocks, if it does.
    blocks: Option<BlockTime>,
}

impl Since {
    pub(crate) const fn of(kind: &Kind, begun_ms: u64) -> Self {
        let blocks = if let Kind::Blocks(time) = kind { Some(*time) } else { None };
        Self { begun_ms, blocks }
    }
    /// When its own time is over, if that ever is.
    fn ends_ms(&self) -> Option<u64> {
        let time = self.blocks.filter(|time| time.ms > 0)?;
        Some(self.begun_ms.saturating_add(time.ms))
    }
    /// Until when it may wait for a connection of its own, from now on. However short it blocks, one can be made for
    /// it: without it would not be known whether there was something.
    pub(crate) fn waits_until_ms(&self, options: &Options, now_ms: u64) -> u64 {
        let own_ms = match (self.blocks, options.late_ms(self.begun_ms)) {
            (Some(_), _) => self.ends_ms().map(|ends_ms| ends_ms.max(now_ms + MADE_MS)),
            (None, 0) => None,
            (None, late_ms) => Some(late_ms),
        };
        let until_ms = now_ms + options.timeout_ms;
        own_ms.map_or(until_ms, |own_ms| own_ms.min(until_ms))
    }
    /// When its client is told that it takes too long if it is sent now, over a connection of its own; 0 for never. One
    /// that blocks has its own time, and the limit beyond that.
    pub(crate) fn late_ms(&self, options: &Options, now_ms: u64) -> u64 {
        match self.blocks {
            Some(_) => self.ends_ms().map_or(0, |ends_ms| {
                let limit_ms = match options.command_timeout_ms {
                    0 => options.timeout_ms,
                    limit_ms => limit_ms,
                };
                ends_ms.max(now_ms).saturating_add(limit_ms)
            }),
            None => options.late_ms(self.begun_ms),
        }
    }
    /// The request as it is sent now, behind so many others: it blocks for what is left of its time. Of what is over
    /// the least is left that is not for ever.
    pub(crate) fn sent<'b>(&self, bytes: &'b [u8], before: u32, now_ms: u64) -> Cow<'b, [u8]> {
        let Some((ends_ms, time)) = self.ends_ms().zip(self.blocks).filter(|_| now_ms > self.begun_ms) else {
            return bytes.into();
        };
        let left_ms = ends_ms.saturating_sub(now_ms).max(1);
        let begin: usize = requests(bytes).take(before as usize).map(<[u8]>::len).sum();
        let left = match time.in_seconds {
            true => format!("{}.{:03}", left_ms / 1_000, left_ms % 1_000),
            false => left_ms.to_string(),
        };
        let mut words: Vec<&[u8]> = words(&bytes[begin..]).collect();
        if let Some(word) = words.get_mut(time.argument) {
            *word = left.as_bytes();
        }
        let mut changed = bytes[..begin].to_vec();
        request(None, &Texts(&words), &mut changed);
        changed.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request_of;

    const SECONDS: BlockTime = BlockTime { argument: 2, ms: 5_000, in_seconds: true };
    const MS: BlockTime = BlockTime { argument: 2, ms: 5_000, in_seconds: false };
    const FOR_EVER: BlockTime = BlockTime { argument: 2, ms: 0, in_seconds: true };

    fn since(time: BlockTime) -> Since {
        Since::of(&Kind::Blocks(time), 1_000)
    }

    #[test]
    fn what_has_passed_counts() {
        let bytes = request_of(&["BLPOP", "k", "5"]);
        let behind = [request_of(&["ASKING"]), bytes.clone()].concat();
        for (time, now_ms, left) in [
            (SECONDS, 1_000, "5"),
            (SECONDS, 1_001, "4.999"),
            (SECONDS, 5_950, "0.050"),
            (SECONDS, 9_000, "0.001"),
            (MS, 3_000, "3000"),
            (MS, 9_000, "1"),
            (FOR_EVER, 9_000, "5"),
        ] {
            let sent = request_of(&["BLPOP", "k", left]);
            assert_eq!(*since(time).sent(&bytes, 0, now_ms), *sent, "{time:?}");
            let sent = [request_of(&["ASKING"]), sent].concat();
            assert_eq!(*since(time).sent(&behind, 1, now_ms), *sent, "{time:?}");
        }
    }

    #[test]
    fn what_blocks_has_its_own_time_and_the_limit() {
        let mut options = Options::to("redis://host").expect("it is a URL");
        let plain = Since::of(&Kind::Plain, 1_000);
        assert_eq!((plain.late_ms(&options, 2_000), plain.waits_until_ms(&options, 1_000)), (0, 11_000));
        assert_eq!(since(SECONDS).late_ms(&options, 2_000), 6_000 + options.timeout_ms);
        options.set("command-timeout", "500").expect("it is a number");
        assert_eq!((plain.late_ms(&options, 2_000), plain.waits_until_ms(&options, 1_000)), (1_500, 1_500));
        assert_eq!(since(SECONDS).late_ms(&options, 2_000), 6_500);
        assert_eq!(since(SECONDS).late_ms(&options, 9_000), 9_500);
        assert_eq!(
            [1_000, 5_500].map(|now_ms| since(SECONDS).waits_until_ms(&options, now_ms)),
            [6_000, 6_500]
        );
        assert_eq!(since(FOR_EVER).late_ms(&options, 2_000), 0);
        assert_eq!(since(FOR_EVER).waits_until_ms(&options, 1_000), 11_000);
    }
}
