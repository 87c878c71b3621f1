//! Whether replies are what they must be. Owns what can be expected of a command's replies, and the comparison.

use std::sync::Arc;

use weft_client::fleet::Kind;

use super::generator::Recipe;
use super::keys::Keys;
use super::sizes::{Filler, Sizes};
use super::template::{RANDOM, Requests};

/// Bytes of a wrong value that are shown.
const WRONG_BYTES_MAX: usize = 40;

/// What the replies to a command must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// Anything but an error.
    Any,
    /// `OK`, `QUEUED` or another word.
    Word,
    /// A whole number.
    Integer,
    /// A number, which RESP2 writes as a text.
    Number,
    /// The value of its key; null is counted.
    Value,
    /// The value of its key, which is there.
    Present,
    /// The values of its keys, in order.
    Values,
    /// Fields and values: each value is one of its key.
    Pairs,
    /// A list, a set or a map.
    List,
    /// A list, or null.
    ListOrNull,
}

impl Expect {
    /// What a workload's file calls them.
    pub(super) const NAMES: [(&str, Expect); 10] = [
        ("any", Expect::Any),
        ("word", Expect::Word),
        ("integer", Expect::Integer),
        ("number", Expect::Number),
        ("value", Expect::Value),
        ("present", Expect::Present),
        ("values", Expect::Values),
        ("pairs", Expect::Pairs),
        ("list", Expect::List),
        ("list-or-null", Expect::ListOrNull),
    ];

    /// What can be said of a command that nothing is said of: GET and MGET of keys that are drawn.
    pub(super) fn of(argv: &[String]) -> Expect {
        let drawn = argv.get(1..).is_some_and(|keys| keys.iter().all(|key| key.contains(RANDOM)));
        match argv.first().map(|name| name.to_uppercase()).as_deref() {
            Some("GET" | "MGET") if drawn => Expect::Values,
            _ => Expect::Any,
        }
    }

    /// Whether a reply may be of this kind. An error is counted where it is read.
    fn allows(self, kind: Kind) -> bool {
        match (self, kind) {
            (Expect::Any | Expect::Values, _) | (_, Kind::Error) => true,
            (Expect::Word, kind) => kind == Kind::Simple,
            (Expect::Integer, kind) => kind == Kind::Integer,
            (Expect::Number, kind) => matches!(kind, Kind::Integer | Kind::Scalar | Kind::Text),
            (Expect::Value, kind) => matches!(kind, Kind::Text | Kind::Null),
            (Expect::Present, kind) => kind == Kind::Text,
            (Expect::Pairs | Expect::List, kind) => kind == Kind::Aggregate,
            (Expect::ListOrNull, kind) => matches!(kind, Kind::Aggregate | Kind::Null),
        }
    }

    /// Whether part number `part` of a reply is a value of the request's key.
    fn is_value(self, part: u32) -> bool {
        match self {
            Expect::Value | Expect::Present | Expect::Values => true,
            Expect::Pairs => part % 2 == 1,
            _ => false,
        }
    }
}

/// A reply that was not what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The key, or the command where the whole reply is of a wrong kind.
    pub(crate) key: String,
    /// The first bytes.
    pub(crate) held: Vec<u8>,
    pub(crate) held_bytes: usize,
    /// The kind of the reply, where that is what was wrong.
    pub(crate) kind: Option<Kind>,
}

/// What values must be.
pub(super) struct Verify {
    /// Of each command, name and arguments: for the name of a key.
    commands: Vec<Vec<String>>,
    expects: Vec<Expect>,
    wrong: Option<Wrong>,
    sizes: Sizes,
    filler: Arc<Filler>,
    /// For the name of a key.
    keys: Keys,
    /// Of each client, the keys of its batch and where each request's keys begin.
    clients: Vec<(Vec<u64>, Vec<u32>, u32)>,
    absent: u64,
    checked: u64,
    mismatches: u64,
}

impl Verify {
    pub(super) fn new(recipe: &Recipe<'_>, keys: &Keys) -> Verify {
        Verify {
            commands: recipe.commands.iter().map(|command| command.argv.clone()).collect(),
            expects: recipe.commands.iter().map(|command| command.expect).collect(),
            wrong: None,
            sizes: recipe.sizes.clone(),
            filler: Arc::clone(recipe.filler),
            keys: keys.clone(),
            clients: Vec::new(),
            absent: 0,
            checked: 0,
            mismatches: 0,
        }
    }

    pub(super) fn wrong(&self) -> Option<&Wrong> {
        self.wrong.as_ref()
    }

    /// Values that were looked at, replies that were wrong, and what was asked for and not there.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        (self.checked, self.mismatches, self.absent)
    }

    pub(super) fn wants_values(&self) -> bool {
        self.expects.iter().any(|expect| expect.is_value(1))
    }

    pub(super) fn wants_kinds(&self) -> bool {
        self.expects.iter().any(|expect| !matches!(expect, Expect::Any | Expect::Values))
    }

    /// Draws the numbers of a batch, and notes them.
    pub(super) fn note(
        &mut self,
        client: u32,
        tag: u32,
        requests: &mut Requests,
        keys: &mut Keys,
        end: usize,
    ) {
        if self.clients.len() <= client as usize {
            self.clients.resize_with(client as usize + 1, Default::default);
        }
        let (noted, starts, batch) = &mut self.clients[client as usize];
        *batch = tag;
        noted.clear();
        starts.clear();
        requests.draw(keys, end, |key| noted.push(key));
        // A command that draws no number has the key of the one before it, if it has any.
        let mut at = 0u32;
        for index in 0..requests.frames.len() {
            let numbers = requests.numbers(index);
            starts.push(if numbers == 0 { at.saturating_sub(1) } else { at });
            at += numbers;
        }
    }

    /// Looks at what a reply is.
    pub(super) fn kind(&mut self, ring: &[Requests], client: u32, request: u32, kind: Kind) {
        let Some((_, _, tag)) = self.clients.get(client as usize) else { return };
        let command = usize::from(ring[*tag as usize].kinds[request as usize]);
        if self.expects[command].allows(kind) {
            return;
        }
        self.mismatches += 1;
        let key = || self.commands[command].join(" ");
        self.wrong.get_or_insert_with(|| Wrong {
            key: key(),
            held: Vec::new(),
            held_bytes: 0,
            kind: Some(kind),
        });
    }

    /// Looks at a part of a reply.
    pub(super) fn check(
        &mut self,
        ring: &[Requests],
        client: u32,
        request: u32,
        part: u32,
        bytes: Option<&[u8]>,
    ) {
        let Some((keys, starts, tag)) = self.clients.get(client as usize) else { return };
        let command = usize::from(ring[*tag as usize].kinds[request as usize]);
        let expect = self.expects[command];
        if !expect.is_value(part) {
            return;
        }
        let Some(bytes) = bytes else {
            self.absent += 1;
            return;
        };
        self.checked += 1;
        // Of pairs all values are the one key's.
        let index = if expect == Expect::Values { part } else { 0 };
        let key = keys.get((starts[request as usize] + index) as usize);
        let right = key.is_some_and(|&key| self.sizes.has(bytes.len()) && self.filler.is_value(bytes, key));
        if right {
            return;
        }
        self.mismatches += 1;
        if self.wrong.is_none() {
            let pattern = self.commands[command].get(index as usize + 1);
            let name = pattern.zip(key).map(|(pattern, &key)| self.keys.name(pattern, key));
            self.wrong = Some(Wrong {
                key: name.unwrap_or_default(),
                held: bytes[..bytes.len().min(WRONG_BYTES_MAX)].to_vec(),
                held_bytes: bytes.len(),
                kind: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expectation_refuses_some_reply() {
        let kinds = [Kind::Simple, Kind::Integer, Kind::Scalar, Kind::Text, Kind::Null, Kind::Aggregate];
        for (name, expect) in Expect::NAMES {
            let allowed = kinds.iter().filter(|kind| expect.allows(**kind)).count();
            let all = matches!(expect, Expect::Any | Expect::Values);
            assert!(allowed > 0 && (allowed < kinds.len()) != all, "{name}: {allowed}");
        }
        assert!(Expect::Present.allows(Kind::Text) && !Expect::Present.allows(Kind::Null));
        assert_eq!((Expect::Pairs.is_value(0), Expect::Pairs.is_value(1)), (false, true));
    }

    #[test]
    fn a_get_of_drawn_keys_gives_values() {
        let of = |text: &str| Expect::of(&super::super::cases::words(text));
        assert_eq!(of("get key:__rand_int__"), Expect::Values);
        assert_eq!(of("MGET key:__rand_int__ other"), Expect::Any);
        assert_eq!(of("INCR key:__rand_int__"), Expect::Any);
    }
}
