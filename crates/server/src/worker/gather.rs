//! Owns: whether what clients of a gateway have asked for is given to the server behind now, or waits for what the next
//! looks at the sockets bring. Does not own: giving it (`super::upstream`).
//!
//! A server pays for each piece that it reads, however much is in it (ADR 0075). So plain requests wait while many
//! clients ask at once; whatever is not plain goes, and all before it.

use weft_engine::forward::{Forwards, Kind};

/// So many clients ask at once.
const CROWD: usize = 16;
/// Ticks that a request waits at most.
const TICKS_MAX: u8 = 3;
/// Of the clients that have asked lately at most one in so many waits: the server has the others' to run meanwhile.
const SHARE: usize = 4;
/// Bytes that are as many as a server reads at once.
const BYTES_MAX: usize = 16 << 10;
/// What lately is.
const LATELY_MS: u64 = 100;

#[derive(Debug, Default)]
pub(super) struct Gather {
    /// So many requests have been looked at, of so many clients, each tick's counted anew.
    seen: usize,
    clients: usize,
    ticks: u8,
    lately: Lately,
}

impl Gather {
    /// The tick is over: whether what has been asked waits for the next one.
    pub(super) fn keeps(&mut self, forwards: &Forwards, now_ms: u64) -> bool {
        let newer = forwards.list.get(self.seen..).unwrap_or_default();
        self.lately.turn(now_ms);
        newer.iter().for_each(|forward| self.lately.note(forward.to.client));
        // A client's requests of one piece stand side by side.
        let ask = newer.chunk_by(|one, next| one.to.client == next.to.client).count();
        self.seen = forwards.list.len();
        self.clients += ask;
        let waits = ask >= CROWD
            && self.ticks < TICKS_MAX
            && self.clients <= self.lately.clients() / SHARE
            && forwards.bytes.len() < BYTES_MAX
            && newer.iter().all(|forward| matches!(forward.kind, Kind::Plain));
        self.ticks += u8::from(waits);
        waits
    }
    /// All of it has been given away.
    pub(super) fn begin_anew(&mut self) {
        (self.seen, self.clients, self.ticks) = (0, 0, 0);
    }
}

/// Words of 64 bits of [`Lately`]: of more clients than it has bits a quarter asks for more than [`BYTES_MAX`].
const WORDS: usize = 64;

/// About how many clients have asked lately: a bit for each, by the end of its number.
#[derive(Debug)]
struct Lately {
    bits: [u64; WORDS],
    /// So many are set.
    count: usize,
    /// So many were, in the time before.
    before: usize,
    since_ms: u64,
}

impl Default for Lately {
    fn default() -> Self {
        Self { bits: [0; WORDS], count: 0, before: 0, since_ms: 0 }
    }
}

impl Lately {
    fn turn(&mut self, now_ms: u64) {
        // The clock may be set back.
        if now_ms.abs_diff(self.since_ms) >= LATELY_MS {
            *self = Self { before: self.count, since_ms: now_ms, ..Self::default() };
        }
    }
    fn note(&mut self, client: u64) {
        let (word, bit) = (client as usize / 64 % WORDS, 1 << (client % 64));
        self.count += usize::from(self.bits[word] & bit == 0);
        self.bits[word] |= bit;
    }
    fn clients(&self) -> usize {
        self.count.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use weft_engine::forward::Forward;
    use weft_engine::mailbox::{Address, Recipient};

    use super::*;

    /// What clients of these numbers ask, behind the others.
    fn ask(forwards: &mut Forwards, clients: Range<u64>, kind: fn() -> Kind, bytes: usize) {
        for client in clients {
            let to = Recipient { address: Address { worker: 0, connection: 0, channel: 0 }, client };
            forwards.bytes.extend_from_slice(&b"GET"[..bytes.min(3)].repeat(bytes / 3 + 1));
            forwards.list.push(Forward { end: forwards.bytes.len(), ..Forward::of(to, kind()) });
        }
    }

    /// After how many ticks that wait it goes, where so many clients have asked before and each tick brings some.
    fn after(lately: u64, each: &[Range<u64>], bytes: usize) -> Vec<usize> {
        let mut gather = Gather::default();
        (0..lately).for_each(|client| gather.lately.note(client));
        let (mut forwards, mut waited, mut all) = (Forwards::default(), 0, Vec::new());
        for clients in each {
            ask(&mut forwards, clients.clone(), || Kind::Plain, bytes);
            if gather.keeps(&forwards, 50) {
                waited += 1;
            } else {
                all.push(std::mem::take(&mut waited));
                forwards = Forwards::default();
                gather.begin_anew();
            }
        }
        all
    }

    #[test]
    fn only_a_crowd_waits_and_never_for_long() {
        let each = |clients: u64, ticks: usize| vec![0..clients; ticks];
        assert_eq!(after(2_000, &each(16, 8), 20), [3, 3], "three ticks");
        assert_eq!(after(2_000, &each(15, 3), 20), [0; 3], "few");
        assert_eq!(after(2_000, &[0..20, 0..3, 0..20, 0..0], 20), [1, 1], "until few come, or none");
        assert_eq!(after(2_000, &each(200, 6), 20), [2, 2], "a quarter of the clients");
        assert_eq!(after(64, &each(16, 2), 20), [1], "a quarter of few");
        assert_eq!(after(63, &each(16, 2), 20), [0; 2], "less than a quarter of fewer");
        assert_eq!(after(2_000, &each(16, 3), BYTES_MAX / 16), [0; 3], "much");
    }

    #[test]
    fn requests_of_one_client_are_no_crowd() {
        let (mut gather, mut forwards) = (Gather::default(), Forwards::default());
        (0..2_000).for_each(|client| gather.lately.note(client));
        (0..64).for_each(|_| ask(&mut forwards, 7..8, || Kind::Plain, 20));
        assert!(!gather.keeps(&forwards, 50));
    }

    #[test]
    fn what_is_not_plain_goes_with_all_before_it() {
        let (mut gather, mut forwards) = (Gather::default(), Forwards::default());
        (0..2_000).for_each(|client| gather.lately.note(client));
        ask(&mut forwards, 0..20, || Kind::Plain, 20);
        assert!(gather.keeps(&forwards, 50));
        ask(&mut forwards, 20..40, || Kind::Plain, 20);
        ask(&mut forwards, 0..1, || Kind::Release, 0);
        assert!(!gather.keeps(&forwards, 50));
    }

    #[test]
    fn who_has_not_asked_lately_does_not_count() {
        let mut lately = Lately::default();
        lately.turn(1_000);
        (0..3_000).chain(0..3_000).for_each(|client| lately.note(client));
        assert_eq!(lately.clients(), 3_000);
        lately.turn(1_000 + LATELY_MS - 1);
        (0..50).for_each(|client| lately.note(client));
        assert_eq!(lately.clients(), 3_000);
        lately.turn(1_000 + LATELY_MS);
        (0..50).for_each(|client| lately.note(client));
        assert_eq!(lately.clients(), 3_000, "those of the time before");
        lately.turn(1_000 + 2 * LATELY_MS);
        assert_eq!(lately.clients(), 50);
        lately.turn(0);
        assert_eq!(lately.clients(), 0, "the clock was set back");
    }
}
