//! Owns: who is subscribed to what, and handing a message to all of them in one order. Does not own: the commands, what
//! a session itself knows of its subscriptions, writing pushes.
//!
//! A channel's subscribers stand in one of many parts, each with a lock; a message is put into its receivers' mailboxes
//! under that lock, so all receivers see a channel's messages in the same order. Pattern subscribers have one list; it,
//! and before it how long it is, is read under the channel's lock, which keeps that order for them too. A message is
//! compared with those patterns that begin and end like its channel, before and behind what is special in them.

use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use weft_store::KeyHasher;

use crate::forwards::SubscriptionKind;
use crate::glob;
use crate::mailbox::{Audience, Mailboxes, Recipient};
use crate::push::Push;

/// Parts of the table of channels.
const PARTS: usize = 64;

/// Which of the two name spaces a channel is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// SUBSCRIBE and PUBLISH.
    Global,
    /// SSUBSCRIBE and SPUBLISH.
    Shard,
}

/// A message of an operation that may be taken back.
#[derive(Debug)]
pub(crate) struct PendingMessage {
    /// Bytes of all that wait up to this one.
    pub(crate) bytes: usize,
    pub(crate) space: Space,
    pub(crate) channel: Box<[u8]>,
    pub(crate) payload: Box<[u8]>,
}

/// With more patterns a message is timed by itself.
const PATTERNS_QUICK_MAX: usize = 64;

/// From as many subscribers on those of a worker are told together.
const AUDIENCE_MIN: usize = 4;

/// Those who are subscribed to a channel or a pattern.
#[derive(Debug, Default)]
struct Subscribers {
    all: Vec<Recipient>,
    /// The same by worker, made for the first message since one has come or gone.
    audiences: OnceLock<Box<[Audience]>>,
}

impl Subscribers {
    fn join(&mut self, who: Recipient) {
        self.all.push(who);
        self.audiences.take();
    }
    /// Says whether nobody is left.
    fn leave(&mut self, client: u64) -> bool {
        self.all.retain(|who| who.client != client);
        self.audiences.take();
        self.all.is_empty()
    }
    /// Puts a message into the mailbox of each; says how many that are.
    fn tell(&self, mailboxes: &Mailboxes, message: &Arc<Push>) -> usize {
        if self.all.len() < AUDIENCE_MIN {
            self.all.iter().for_each(|&who| mailboxes.push(who, message));
        } else {
            let audiences = self.audiences.get_or_init(|| self.audiences());
            audiences.iter().for_each(|audience| mailboxes.push_all(audience, message));
        }
        self.all.len()
    }
    fn audiences(&self) -> Box<[Audience]> {
        let mut all = self.all.clone();
        all.sort_unstable_by_key(|who| (who.address.worker, who.address.connection, who.address.channel));
        all.chunk_by(|one, next| one.address.worker == next.address.worker).map(Audience::from).collect()
    }
}

/// The names are what messages carry. Their hash here is another than a part's number: it has their length too.
type Channels = HashMap<Arc<[u8]>, Subscribers, KeyHasher>;

#[derive(Debug)]
struct Part {
    global: Channels,
    shard: Channels,
}

impl Part {
    fn new(hasher: &KeyHasher) -> Self {
        let [global, shard] = std::array::from_fn(|_| HashMap::with_hasher(hasher.clone()));
        Self { global, shard }
    }
    fn space(&mut self, space: Space) -> &mut Channels {
        match space {
            Space::Global => &mut self.global,
            Space::Shard => &mut self.shard,
        }
    }
}

/// The lengths of what patterns begin and end with, and the hash of both.
type Place = (usize, usize, u64);

/// Subscriptions to patterns.
#[derive(Debug)]
struct Patterns {
    hasher: KeyHasher,
    list: BTreeMap<Arc<[u8]>, Subscribers>,
    /// Those with something special.
    by_ends: HashMap<Place, BTreeSet<Arc<[u8]>>, KeyHasher>,
    /// These lengths, and how many have each: of the beginning, and with it of the end.
    lengths: BTreeMap<usize, BTreeMap<usize, usize>>,
}

impl Default for Patterns {
    fn default() -> Self {
        let hasher = KeyHasher::from_entropy();
        let by_ends = HashMap::with_hasher(hasher.clone());
        Self { hasher, list: BTreeMap::new(), by_ends, lengths: BTreeMap::new() }
    }
}

impl Patterns {
    fn place(&self, (first, last): (&[u8], &[u8])) -> Place {
        (first.len(), last.len(), self.hasher.hash(&[first, last].concat()))
    }
    fn join(&mut self, pattern: &[u8], who: Recipient) {
        if let Some(subscribers) = self.list.get_mut(pattern) {
            return subscribers.join(who);
        }
        let name: Arc<[u8]> = pattern.into();
        self.list.entry(Arc::clone(&name)).or_default().join(who);
        let Some(ends) = glob::ends(pattern) else { return };
        let place = self.place(ends);
        self.by_ends.entry(place).or_default().insert(name);
        *self.lengths.entry(ends.0.len()).or_default().entry(ends.1.len()).or_default() += 1;
    }
    fn leave(&mut self, pattern: &[u8], client: u64) {
        let Some(subscribers) = self.list.get_mut(pattern) else { return };
        if !subscribers.leave(client) {
            return;
        }
        self.list.remove(pattern);
        let Some(ends) = glob::ends(pattern) else { return };
        let place = self.place(ends);
        if let Some(names) = self.by_ends.get_mut(&place) {
            names.remove(pattern);
            if names.is_empty() {
                self.by_ends.remove(&place);
            }
        }
        let Some(lasts) = self.lengths.get_mut(&place.0) else { return };
        if let Some(count) = lasts.get_mut(&place.1) {
            *count -= 1;
            if *count == 0 {
                lasts.remove(&place.1);
            }
        }
        if lasts.is_empty() {
            self.lengths.remove(&place.0);
        }
    }
    /// Those that a channel matches.
    fn each(&self, channel: &[u8], mut visit: impl FnMut(&Arc<[u8]>, &Subscribers)) {
        // A pattern that begins like the channel has nothing special before that ends.
        let common = glob::literal(channel).len();
        if let Some((name, subscribers)) =
            self.list.get_key_value(channel).filter(|_| common == channel.len())
        {
            visit(name, subscribers);
        }
        for (&first, lasts) in self.lengths.range(..=common) {
            for (&last, _) in lasts.range(..=channel.len() - first) {
                let ends = (&channel[..first], &channel[channel.len() - last..]);
                let names = self.by_ends.get(&self.place(ends));
                for name in names.into_iter().flatten().filter(|name| stands_for(name, channel)) {
                    if let Some(subscribers) = self.list.get(name) {
                        visit(name, subscribers);
                    }
                }
            }
        }
    }
}

/// All subscriptions.
#[derive(Debug)]
pub struct PubSub {
    hasher: KeyHasher,
    parts: [Mutex<Part>; PARTS],
    patterns: RwLock<Patterns>,
    /// How many there are, for who would find none. It is stored before PSUBSCRIBE has its reply, so that a request
    /// that comes behind that sees it, and read under the channel's lock, so that of two messages the later one sees no
    /// older one.
    pattern_count: AtomicUsize,
    /// Subscriptions to channels and patterns that may be of keyspace events.
    of_events: AtomicUsize,
}

impl Default for PubSub {
    fn default() -> Self {
        let hasher = KeyHasher::from_entropy();
        Self {
            parts: std::array::from_fn(|_| Mutex::new(Part::new(&hasher))),
            hasher,
            patterns: RwLock::default(),
            pattern_count: AtomicUsize::new(0),
            of_events: AtomicUsize::new(0),
        }
    }
}

fn join(channels: &mut Channels, name: &[u8], who: Recipient) {
    channels.entry(name.into()).or_default().join(who);
}

fn leave(channels: &mut Channels, name: &[u8], client: u64) {
    let Some(subscribers) = channels.get_mut(name) else { return };
    if subscribers.leave(client) {
        channels.remove(name);
    }
}

/// 1 if a channel may be one of keyspace events.
fn of_events(space: Space, channel: &[u8]) -> usize {
    usize::from(space == Space::Global && may_be_heard_by(channel, false))
}

impl PubSub {
    fn part(&self, channel: &[u8]) -> &Mutex<Part> {
        &self.parts[self.hasher.hash(channel) as usize % PARTS]
    }

    /// A client's first subscription to a channel.
    pub fn subscribe(&self, space: Space, channel: &[u8], who: Recipient) {
        self.of_events.fetch_add(of_events(space, channel), Relaxed);
        join(self.part(channel).lock().space(space), channel, who);
    }
    /// The end of one.
    pub fn unsubscribe(&self, space: Space, channel: &[u8], client: u64) {
        leave(self.part(channel).lock().space(space), channel, client);
        self.of_events.fetch_sub(of_events(space, channel), Relaxed);
    }
    /// A client's first subscription to a pattern.
    pub fn subscribe_pattern(&self, pattern: &[u8], who: Recipient) {
        self.of_events.fetch_add(usize::from(may_be_heard_by(pattern, true)), Relaxed);
        self.change_patterns(|patterns| patterns.join(pattern, who));
    }
    /// The end of one.
    pub fn unsubscribe_pattern(&self, pattern: &[u8], client: u64) {
        self.change_patterns(|patterns| patterns.leave(pattern, client));
        self.of_events.fetch_sub(usize::from(may_be_heard_by(pattern, true)), Relaxed);
    }
    fn change_patterns(&self, change: impl FnOnce(&mut Patterns)) {
        let mut patterns = self.patterns.write();
        change(&mut patterns);
        self.pattern_count.store(patterns.list.len(), Relaxed);
    }
    /// Whether a message is compared with so many patterns that it may take long.
    pub(crate) fn may_take_long(&self) -> bool {
        self.pattern_count() > PATTERNS_QUICK_MAX
    }
    /// Whether anybody is subscribed who may get keyspace events.
    pub(crate) fn may_hear_events(&self) -> bool {
        self.of_events.load(Relaxed) != 0
    }

    /// Hands a message to all who are subscribed; returns how many get it, once for each subscription that matches.
    pub fn publish(&self, mailboxes: &Mailboxes, space: Space, channel: &[u8], payload: &[u8]) -> usize {
        let mut part = self.part(channel).lock();
        let mut receivers = Self::hand_over(mailboxes, &mut part, (space, channel), payload);
        if space == Space::Global {
            receivers += self.publish_to_patterns(mailboxes, channel, payload);
        }
        receivers
    }
    /// The same to those of the channel alone: another server says by itself which patterns match.
    pub fn publish_to_channel(
        &self,
        mailboxes: &Mailboxes,
        space: Space,
        channel: &[u8],
        payload: &[u8],
    ) -> usize {
        Self::hand_over(mailboxes, &mut self.part(channel).lock(), (space, channel), payload)
    }
    fn hand_over(
        mailboxes: &Mailboxes,
        part: &mut Part,
        (space, channel): (Space, &[u8]),
        payload: &[u8],
    ) -> usize {
        let Some((channel, subscribers)) = part.space(space).get_key_value(channel) else { return 0 };
        let kind = if space == Space::Shard { "smessage" } else { "message" };
        let push = Push::message(kind, channel, payload, subscribers.all.len());
        subscribers.tell(mailboxes, &Arc::new(push))
    }

    /// How many would get a message now.
    #[must_use]
    pub fn receivers(&self, space: Space, channel: &[u8]) -> usize {
        let mut count = 0;
        if space == Space::Global {
            self.each_pattern(channel, |_, subscribers| count += subscribers.all.len());
        }
        count + self.subscribers(space, channel)
    }

    fn publish_to_patterns(&self, mailboxes: &Mailboxes, channel: &[u8], payload: &[u8]) -> usize {
        let mut receivers = 0;
        self.each_pattern(channel, |pattern, subscribers| {
            receivers += subscribers.tell(mailboxes, &pattern_message(pattern, channel, payload));
        });
        receivers
    }
    /// The patterns that a channel matches.
    fn each_pattern(&self, channel: &[u8], visit: impl FnMut(&Arc<[u8]>, &Subscribers)) {
        if self.pattern_count() > 0 {
            self.patterns.read().each(channel, visit);
        }
    }

    /// A message for those who are subscribed to one pattern, which matches the channel.
    pub fn publish_to_pattern(
        &self,
        mailboxes: &Mailboxes,
        pattern: &[u8],
        channel: &[u8],
        payload: &[u8],
    ) -> usize {
        let patterns = self.patterns.read();
        let Some((pattern, subscribers)) = patterns.list.get_key_value(pattern) else { return 0 };
        subscribers.tell(mailboxes, &pattern_message(pattern, channel, payload))
    }
    /// Whether anybody is subscribed to a pattern.
    #[must_use]
    pub fn has_pattern(&self, pattern: &[u8]) -> bool {
        self.patterns.read().list.contains_key(pattern)
    }

    /// PUBSUB CHANNELS: the channels with subscribers that match a pattern, or all.
    #[must_use]
    pub fn channels(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let mut names = Vec::new();
        for part in &self.parts {
            let mut part = part.lock();
            let matching = |name: &[u8]| pattern.is_none_or(|pattern| stands_for(pattern, name));
            names.extend(part.space(space).keys().filter(|name| matching(name)).cloned());
        }
        names
    }
    /// PUBSUB NUMSUB: a channel's subscribers.
    #[must_use]
    pub fn subscribers(&self, space: Space, channel: &[u8]) -> usize {
        self.part(channel).lock().space(space).get(channel).map_or(0, |subscribers| subscribers.all.len())
    }
    /// Those who are subscribed to what a question picks. Costs a look at every subscription.
    pub fn subscribers_where(&self, picks: impl Fn(&[u8], SubscriptionKind) -> bool) -> Vec<Recipient> {
        let mut found: Vec<Recipient> = Vec::new();
        let mut look = |name: &[u8], who: &Subscribers, kind| {
            if picks(name, kind) {
                found.extend(&who.all);
            }
        };
        for part in &self.parts {
            let part = part.lock();
            part.global.iter().for_each(|(name, who)| look(name, who, SubscriptionKind::Channel));
            part.shard.iter().for_each(|(name, who)| look(name, who, SubscriptionKind::Shard));
        }
        self.patterns.read().list.iter().for_each(|(name, who)| look(name, who, SubscriptionKind::Pattern));
        found.sort_unstable_by_key(|who| who.client);
        found.dedup();
        found
    }
    /// PUBSUB NUMPAT: patterns that anybody is subscribed to.
    #[must_use]
    pub fn pattern_count(&self) -> usize {
        self.pattern_count.load(Relaxed)
    }
}

/// Whether a pattern stands for a channel: as in Valkey, for that without a name only the pattern without a byte.
fn stands_for(pattern: &[u8], channel: &[u8]) -> bool {
    glob::matches(pattern, channel) && (!channel.is_empty() || pattern.is_empty())
}

fn pattern_message(pattern: &Arc<[u8]>, channel: &[u8], payload: &[u8]) -> Arc<Push> {
    let (pattern, [channel, payload]) = (Arc::clone(pattern), [channel, payload].map(Into::into));
    Arc::new(Push::PatternMessage { pattern, channel, payload })
}

/// What every channel of an event begins with.
const CHANNELS: &[u8] = b"__key";

/// Whether a channel may be one of events, or a pattern stand for one.
fn may_be_heard_by(name: &[u8], is_pattern: bool) -> bool {
    let literal = if is_pattern { glob::literal(name) } else { name };
    let common = literal.len().min(CHANNELS.len());
    literal[..common] == CHANNELS[..common]
        && (is_pattern && literal.len() < name.len() || common == CHANNELS.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Address;

    #[test]
    fn the_patterns_that_match_are_found_by_their_ends() {
        let pieces: [&[u8]; 8] = [b"", b"a", b"ab", b"*", b"?", b"[ab]", b"\\*", b"b"];
        let who = Recipient { client: 7, address: Address { worker: 0, channel: 0, connection: 0 } };
        let mut patterns = Patterns::default();
        let mut all = std::collections::BTreeSet::new();
        for one in pieces {
            for two in pieces {
                for three in pieces {
                    all.insert([one, two, three].concat());
                }
            }
        }
        all.iter().for_each(|pattern| patterns.join(pattern, who));
        for channel in [&b""[..], b"a", b"ab", b"aba", b"b", b"abab", b"*", b"a*b", b"[ab]", b"?", b"\\*"] {
            let mut found = Vec::new();
            patterns.each(channel, |pattern, _| found.push(pattern.to_vec()));
            found.sort();
            let expected: Vec<_> =
                all.iter().filter(|pattern| stands_for(pattern, channel)).cloned().collect();
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(channel));
            assert!(!channel.is_empty() || found == [b""], "a channel without a name is heard by no star");
        }
        all.iter().for_each(|pattern| patterns.leave(pattern, 7));
        assert!(patterns.list.is_empty() && patterns.lengths.is_empty() && patterns.by_ends.is_empty());
    }
}
