//! Clients of a fleet that subscribe and listen. Owns how it is known that they have subscribed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::connect::Once;
use super::{Batch, Counts, Done, Fleet, Load, Pace, Until};
use crate::{Protocol, Result};

/// So seldom that a run sees the first one alone, which is due at once.
const NEVER_AGAIN: f64 = 1e-9;

impl Fleet {
    /// Subscribes each client, to channels of messages or patterns. RESP3 answers with pushes alone, so that a PING
    /// behind it says that they have come; RESP2 is refused, whose messages are told from replies by nothing.
    pub fn subscribe(&mut self, args: &[&str]) -> Result<()> {
        match self.protocol() {
            Protocol::Respb => self.command(args),
            Protocol::Resp3 => {
                let encoder = self.encoder();
                let mut load = Once::new(&encoder, args, self.clients())?;
                load.and_then(&encoder, &["PING"])?;
                self.run_once(&mut load)
            }
            Protocol::Resp2 | Protocol::Http => {
                Err(crate::Error::Config("subscribers take RESP3 or RESPB".to_string()))
            }
        }
    }

    /// Takes what comes until `stop` is set; `heard` says how many pushes that were.
    pub fn listen(&mut self, stop: &AtomicBool, heard: &AtomicU64) -> Result<Counts> {
        let mut ping = Vec::new();
        self.encoder().encode(0, &["PING"], &mut ping)?;
        let mut load = Listening { ping, heard };
        self.run(&mut load, Pace::Fixed { batches_per_second: NEVER_AGAIN }, Until::Exhausted, stop)
    }
}

/// Asks once, so that the run has begun, and then listens.
struct Listening<'h> {
    ping: Vec<u8>,
    heard: &'h AtomicU64,
}

impl Load for Listening<'_> {
    fn next(&mut self, _client: u32) -> Option<Batch<'_>> {
        Some(Batch { bytes: &mut self.ping, frames: &[0], tag: 0 })
    }
    fn done(&mut self, _done: Done) {}
    fn tick(&mut self, counts: &Counts) {
        self.heard.store(counts.pushes, Ordering::Relaxed);
    }
}
