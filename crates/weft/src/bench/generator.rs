//! What one thread sends and what it makes of the answers. Owns the ring of prepared batches, the budget and
//! latencies.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use hdrhistogram::Histogram;
use weft_client::Encoder;
use weft_client::fleet::{self, Batch, Counts, Done, Load};

use super::cases::Command;
use super::keys::Keys;
use super::sizes::{Filler, Sizes};
use super::template::{Form, Request, Requests, TTL};
use super::verify::{Verify, Wrong};
use weft_measure::Random;

/// Requests in the ring of a mix or of values of several sizes; then they come again with other keys.
const RING_REQUESTS: usize = 4096;
/// Bytes of a ring, unless a single batch is longer.
const RING_BYTES_MAX: usize = 64 << 20;

/// The shortest and the longest latency that is told apart, and the digits kept.
const LATENCY_NS_MIN: u64 = 100;
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
const LATENCY_DIGITS: u8 = 3;

/// An empty histogram of nanoseconds.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(LATENCY_NS_MIN, LATENCY_NS_MAX, LATENCY_DIGITS)
        .expect("the bounds are constants")
}

/// What a live line is made of.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) counts: Counts,
    pub(super) latency: Histogram<u64>,
}

impl Live {
    pub(super) fn new() -> Live {
        Live { counts: Counts::default(), latency: histogram() }
    }
}

/// What all threads send alike.
pub(super) struct Recipe<'a> {
    /// As the server reads it.
    pub(super) encoder: Encoder,
    pub(super) commands: &'a [Command],
    pub(super) sizes: &'a Sizes,
    pub(super) ttls: &'a Sizes,
    pub(super) filler: &'a Arc<Filler>,
    pub(super) pipeline: usize,
    /// HTTP: whether the requests of a batch are one body.
    pub(super) in_one_body: bool,
    /// Whether values say whose they are, and are looked at when they come back.
    pub(super) verified: bool,
    /// Whether keys have tags of a cluster's slots.
    pub(super) tagged: bool,
}

/// The answers to one command of a mix.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) replies: u64,
    pub(super) latency: Histogram<u64>,
}

/// The load of one thread.
pub(super) struct Generator {
    ring: Vec<Requests>,
    next: usize,
    keys: Keys,
    /// Requests that may still be sent.
    left: u64,
    verify: Option<Verify>,
    /// Since the batch was due.
    pub(super) latency: Histogram<u64>,
    /// Since the batch was sent, where that differs.
    pub(super) service: Option<Histogram<u64>>,
    pub(super) kinds: Vec<Kind>,
    live: Option<Arc<Mutex<Live>>>,
}

impl Generator {
    pub(super) fn new(recipe: &Recipe<'_>, keys: Keys, budget: u64, seed: u64) -> Result<Generator> {
        let mut random = Random::new(seed ^ 0x5eed);
        let ring = ring(recipe, &mut random)?;
        let verify = recipe.verified.then(|| Verify::new(recipe, &keys));
        let kind = Kind { replies: 0, latency: histogram() };
        Ok(Generator {
            ring,
            next: 0,
            keys,
            left: budget,
            verify,
            latency: histogram(),
            service: None,
            kinds: if recipe.commands.len() > 1 { vec![kind; recipe.commands.len()] } else { Vec::new() },
            live: None,
        })
    }

    /// Keeps the time since sending beside the time since a batch was due.
    pub(super) fn keep_service(&mut self) {
        self.service = Some(histogram());
    }

    pub(super) fn show_live(&mut self, live: Arc<Mutex<Live>>) {
        self.live = Some(live);
    }

    /// The first value that was wrong.
    pub(super) fn wrong(&self) -> Option<Wrong> {
        self.verify.as_ref().and_then(|verify| verify.wrong().cloned())
    }

    /// Values that were looked at, those of them that were wrong, and what was asked for and not there.
    pub(super) fn verified(&self) -> (u64, u64, u64) {
        self.verify.as_ref().map_or((0, 0, 0), Verify::counts)
    }
}

/// Prepares batches. One is enough where all requests are alike; otherwise their commands stand in the ratio of the
/// weights, and in no order.
fn ring(recipe: &Recipe<'_>, random: &mut Random) -> Result<Vec<Requests>> {
    let has_ttl = recipe.commands.iter().any(|command| command.argv.iter().any(|word| word.contains(TTL)));
    let sequences = recipe.commands.iter().any(|command| command.follows);
    let varied =
        recipe.commands.len() > 1 || !recipe.sizes.is_fixed() || (has_ttl && !recipe.ttls.is_fixed());
    let count = if varied {
        RING_REQUESTS.max(recipe.pipeline).next_multiple_of(recipe.pipeline)
    } else {
        recipe.pipeline
    };
    let mut order = by_weight(recipe.commands, count);
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    let (mut ring, mut bytes) = (Vec::new(), 0);
    for kinds in order.chunks(recipe.pipeline) {
        let mut requests = Requests::default();
        for kind in kinds.iter().flat_map(|&kind| sequence(recipe.commands, kind)) {
            let command = &recipe.commands[usize::from(kind)];
            let size = recipe.sizes.draw(random);
            let argv = with_ttl(&command.argv, recipe.ttls, random);
            let request = match command.inline {
                true => Request::inline(&command.argv),
                false => Request::new(
                    if recipe.in_one_body { Form::Element } else { Form::Whole(&recipe.encoder) },
                    &argv,
                    recipe.filler,
                    size,
                    recipe.verified,
                    recipe.tagged,
                )?,
            };
            requests.push(kind, &request);
        }
        if recipe.in_one_body {
            requests.enclose(&recipe.encoder);
        }
        requests.is_whole |= sequences;
        bytes += requests.bytes.len();
        ring.push(requests);
        if bytes > RING_BYTES_MAX {
            break;
        }
    }
    Ok(ring)
}

/// A command and those that follow it.
fn sequence(commands: &[Command], kind: u8) -> impl Iterator<Item = u8> {
    let from = usize::from(kind);
    let more = commands[from + 1..].iter().take_while(|command| command.follows).count();
    kind..=kind + more as u8
}

/// The words of a command with a time to live in its place.
fn with_ttl<'c>(argv: &'c [String], ttls: &Sizes, random: &mut Random) -> Cow<'c, [String]> {
    if !argv.iter().any(|word| word.contains(TTL)) {
        return Cow::Borrowed(argv);
    }
    let ttl = ttls.draw(random).to_string();
    Cow::Owned(argv.iter().map(|word| word.replace(TTL, &ttl)).collect())
}

/// So many commands in the ratio of their weights: each time the one that is furthest behind.
fn by_weight(commands: &[Command], count: usize) -> Vec<u8> {
    let total: i64 = commands.iter().map(|command| i64::from(command.weight)).sum();
    let mut credit = vec![0; commands.len()];
    let mut order = Vec::with_capacity(count);
    for _ in 0..count {
        let mut best = 0;
        for (index, command) in commands.iter().enumerate() {
            credit[index] += i64::from(command.weight);
            if credit[index] > credit[best] {
                best = index;
            }
        }
        credit[best] -= total;
        order.push(best as u8);
    }
    order
}

impl Load for Generator {
    #[inline]
    fn next(&mut self, client: u32) -> Option<Batch<'_>> {
        if self.left == 0 {
            return None;
        }
        let index = self.next;
        self.next = if index + 1 == self.ring.len() { 0 } else { index + 1 };
        let requests = &mut self.ring[index];
        let all = requests.frames.len() as u64;
        let count = if requests.is_whole { all } else { all.min(self.left) } as usize;
        self.left = self.left.saturating_sub(count as u64);
        let end = requests.end(count);
        match &mut self.verify {
            None => requests.draw(&mut self.keys, end, |_| {}),
            Some(verify) => verify.note(client, index as u32, requests, &mut self.keys, end),
        }
        let Requests { bytes, frames, .. } = requests;
        Some(Batch { bytes: &mut bytes[..end], frames: &frames[..count], tag: index as u32 })
    }

    #[inline]
    fn done(&mut self, done: Done) {
        self.latency.saturating_record_n(done.since_due_ns, u64::from(done.count));
        if let Some(service) = &mut self.service {
            service.saturating_record_n(done.since_sent_ns, u64::from(done.count));
        }
        if self.kinds.is_empty() {
            return;
        }
        let kinds = &self.ring[done.tag as usize].kinds[done.first as usize..][..done.count as usize];
        for &kind in kinds {
            let kind = &mut self.kinds[usize::from(kind)];
            kind.replies += 1;
            kind.latency.saturating_record(done.since_due_ns);
        }
    }

    fn wants_values(&self) -> bool {
        self.verify.as_ref().is_some_and(Verify::wants_values)
    }

    fn wants_kinds(&self) -> bool {
        self.verify.as_ref().is_some_and(Verify::wants_kinds)
    }

    fn kind(&mut self, client: u32, request: u32, kind: fleet::Kind) {
        if let Some(verify) = &mut self.verify {
            verify.kind(&self.ring, client, request, kind);
        }
    }

    fn value(&mut self, client: u32, request: u32, part: u32, bytes: Option<&[u8]>) {
        if let Some(verify) = &mut self.verify {
            verify.check(&self.ring, client, request, part, bytes);
        }
    }

    fn tick(&mut self, counts: &Counts) {
        if let Some(live) = &self.live
            && let Ok(mut live) = live.lock()
        {
            live.counts.clone_from(counts);
            live.latency.clone_from(&self.latency);
        }
    }
}
