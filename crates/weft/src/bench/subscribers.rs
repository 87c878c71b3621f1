//! Clients that listen while a case runs, on a thread of their own. Owns how they begin, and how it is known that they
//! have heard all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use weft_client::fleet::{Counts, Fleet};
use weft_client::{Config, Protocol};

use super::cases::Subscription;

/// Channels of RESPB that subscribers have at most on a connection.
const CHANNELS_MAX: u32 = 250;
/// How long what was published may be on its way when all of it has been answered, where nothing else is said.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks whether it has come.
const LOOK: Duration = Duration::from_millis(1);

/// Subscribers that are there.
pub(super) struct Subscribers {
    clients: u32,
    patience: Duration,
    stop: Arc<AtomicBool>,
    heard: Arc<AtomicU64>,
    thread: JoinHandle<weft_client::Result<Counts>>,
}

impl Subscribers {
    /// Connects and subscribes: over RESP each is a connection, over RESPB a channel. RESP2 has no pushes, so that they
    /// take RESP3 for it.
    pub(super) fn start(config: &Config, subscription: &Subscription) -> Result<Subscribers> {
        let Subscription { clients, argv } = subscription;
        let (protocol, channels) = match config.protocol {
            Protocol::Respb => {
                (Protocol::Respb, (1..=CHANNELS_MAX.min(*clients)).rev().find(|n| clients.is_multiple_of(*n)))
            }
            _ => (Protocol::Resp3, None),
        };
        let channels = channels.unwrap_or(1);
        let patience = config.timeouts.reply.unwrap_or(PATIENCE);
        let config = Config { protocol, ..config.clone() };
        let mut fleet = Fleet::connect(&config, clients / channels, channels)?;
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        fleet.subscribe(&words)?;
        let (stop, heard) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, hears) = (Arc::clone(&stop), Arc::clone(&heard));
        let thread = std::thread::Builder::new()
            .name("subscribers".into())
            .spawn(move || fleet.listen(&stopped, &hears))
            .context("a thread for the subscribers")?;
        Ok(Subscribers { clients: *clients, patience, stop, heard, thread })
    }

    /// Waits until each has heard what was published so many times; what did not come counts as lost.
    pub(super) fn end(self, published: u64) -> Result<Counts> {
        let due = published * u64::from(self.clients);
        let began = Instant::now();
        while self.heard.load(Ordering::Relaxed) < due
            && began.elapsed() < self.patience
            && !self.thread.is_finished()
        {
            std::thread::sleep(LOOK);
        }
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.thread.join().map_err(|_| anyhow!("the subscribers' thread panicked"))?;
        let mut counts = joined.context("subscribers")?;
        counts.lost += due.saturating_sub(counts.pushes);
        Ok(counts)
    }
}
