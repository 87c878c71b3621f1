//! Owns: which triggers a key may fire: by the bytes that a pattern begins with and ends with, and by the whole key
//! where it has no wildcard. Does not own: their other conditions.
//!
//! A tree over literal beginnings: a look-up costs steps for the bytes that the key has in common with beginnings, and
//! not for the number of triggers; a key whose first byte none begins with costs one bit, and what all have in common
//! is compared at once. Of many triggers with one
//! beginning those are asked that end as the key does: a look-up for each length that their ends have. Where neither
//! says anything (`a*b*`), each is asked whether its pattern matches.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::definition::Trigger;
use crate::glob;

/// Nodes behind a node that are looked for one by one; of more there is a table.
const FEW: usize = 6;
/// Bytes of a label that are compared at once.
const HEAD_BYTES: usize = size_of::<u64>();
/// Triggers that are found for a key without an allocation.
const FOUND_FEW: usize = 4;
/// Patterns of one beginning that are asked one by one; more are told apart by how they end.
const ENDS_MIN: usize = 8;

/// Which triggers keys may fire.
#[derive(Debug, Default)]
pub struct Index {
    /// The first bytes of keys that any may fire; of all if one pattern begins with a wildcard.
    first: [u64; 4],
    /// What all begin with, and the node behind it.
    trunk: Trunk,
    nodes: Vec<Node>,
    triggers: Vec<Arc<Trigger>>,
}

/// The way from the first node on, as long as there is one way and nothing ends on it.
#[derive(Debug, Default)]
struct Trunk {
    bytes: Box<[u8]>,
    /// Its first and last [`HEAD_BYTES`], which overlap in a short one.
    ends: (u64, u64),
    /// The node that it leads to.
    node: usize,
}

/// A place behind some bytes.
#[derive(Debug, Default)]
struct Node {
    /// The bytes that lead here from the node before, behind the one that it is found by.
    label: Box<[u8]>,
    /// The first [`HEAD_BYTES`] of them as one number, and which of its bits count.
    head: (u64, u64),
    next: Next,
    /// Some end here and have something behind it: `open`, `patterns` or `ends` has any.
    asks: bool,
    /// Triggers whose patterns have a star here and nothing behind it: they match.
    open: Vec<u32>,
    /// Those whose patterns have another wildcard here, each of which is asked.
    patterns: Vec<u32>,
    /// Those that end in a way of their own, if they are many.
    ends: Option<Box<Ends>>,
    /// Those whose pattern is the whole key.
    exact: Vec<u32>,
}

/// The nodes behind a node, by the first byte of what leads there. None is the first node of all.
#[derive(Debug)]
enum Next {
    Few(Vec<(u8, u32)>),
    Many(Box<[u32; 256]>),
}

/// Triggers by the bytes that their patterns end with.
#[derive(Debug, Default)]
struct Ends {
    /// The lengths that there are.
    lens: Vec<usize>,
    by_end: HashMap<Box<[u8]>, Vec<u32>>,
}

impl Default for Next {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Next {
    #[inline]
    fn find(&self, byte: u8) -> Option<usize> {
        let found = match self {
            Self::Few(few) => few.iter().find(|(other, _)| *other == byte).map_or(0, |(_, node)| *node),
            Self::Many(all) => all[usize::from(byte)],
        };
        (found != 0).then_some(found as usize)
    }
    fn put(&mut self, byte: u8, node: usize) {
        let node = node as u32;
        match self {
            Self::Many(all) => all[usize::from(byte)] = node,
            Self::Few(few) => match few.iter().position(|(other, _)| *other == byte) {
                Some(at) => few[at].1 = node,
                None if few.len() < FEW => few.push((byte, node)),
                None => {
                    let mut all = Box::new([0; 256]);
                    few.iter().for_each(|(byte, node)| all[usize::from(*byte)] = *node);
                    all[usize::from(byte)] = node;
                    *self = Self::Many(all);
                }
            },
        }
    }
}

/// The bytes before a pattern's first wildcard, and whether there is one.
fn literal(pattern: &[u8]) -> (&[u8], bool) {
    match pattern.iter().position(|byte| b"*?[\\".contains(byte)) {
        Some(at) => (&pattern[..at], true),
        None => (pattern, false),
    }
}

/// The bytes behind a pattern's last wildcard. A pattern with a class of letters has none: where a class ends is not
/// looked at here.
fn end(pattern: &[u8]) -> &[u8] {
    if pattern.iter().any(|byte| b"[\\".contains(byte)) {
        return b"";
    }
    let wildcard = pattern.iter().rposition(|byte| b"*?".contains(byte));
    wildcard.map_or(b"", |at| &pattern[at + 1..])
}

impl Index {
    /// Of these triggers, which come in the order of their names.
    #[must_use]
    pub fn new(triggers: Vec<Arc<Trigger>>) -> Self {
        let mut index = Self { nodes: vec![Node::default()], ..Self::default() };
        for (number, trigger) in triggers.iter().enumerate() {
            let (literal, has_wildcard) = literal(&trigger.pattern);
            match literal.first() {
                Some(byte) => index.first[usize::from(*byte) / 64] |= 1 << (byte % 64),
                // The empty key begins with nothing, and is asked for as if it began with 0.
                None if !has_wildcard => index.first[0] |= 1,
                None => index.first = [u64::MAX; 4],
            }
            let node = index.insert(literal);
            let is_open = trigger.pattern[literal.len()..] == *b"*";
            let node = &mut index.nodes[node];
            let list = match has_wildcard {
                true if is_open => &mut node.open,
                true => &mut node.patterns,
                false => &mut node.exact,
            };
            list.push(number as u32);
        }
        for node in index.nodes.iter_mut().filter(|node| node.patterns.len() > ENDS_MIN) {
            node.split_by_end(&triggers);
        }
        index.nodes.iter_mut().for_each(Node::settle);
        index.trunk = Trunk::of(&index.nodes);
        index.triggers = triggers;
        index
    }

    fn add(&mut self, label: &[u8], next: Next) -> usize {
        self.nodes.push(Node { label: label.into(), next, ..Node::default() });
        self.nodes.len() - 1
    }
    /// The node behind these bytes, made if it is not there.
    fn insert(&mut self, mut rest: &[u8]) -> usize {
        let mut at = 0;
        while let Some((&byte, behind)) = rest.split_first() {
            let Some(child) = self.nodes[at].next.find(byte) else {
                let made = self.add(behind, Next::default());
                self.nodes[at].next.put(byte, made);
                return made;
            };
            let label = std::mem::take(&mut self.nodes[child].label);
            let common = label.iter().zip(behind).take_while(|(one, two)| one == two).count();
            match label[common..].split_first() {
                // What they have in common is a node of its own, before the other.
                Some((&first, tail)) => {
                    self.nodes[child].label = tail.into();
                    let made = self.add(&label[..common], Next::Few(vec![(first, child as u32)]));
                    self.nodes[at].next.put(byte, made);
                    at = made;
                }
                None => {
                    self.nodes[child].label = label;
                    at = child;
                }
            }
            rest = &behind[common..];
        }
        at
    }

    /// Calls `visit` with the triggers whose pattern a key matches, in no order, until it says `false`.
    #[inline]
    fn each<'i>(&'i self, key: &[u8], mut visit: impl FnMut(u32, &'i Arc<Trigger>) -> bool) {
        let Some(mut rest) = self.trunk.behind(key) else { return };
        let Some(mut node) = self.nodes.get(self.trunk.node) else { return };
        let mut all = |numbers: &[u32]| numbers.iter().all(|&at| visit(at, &self.triggers[at as usize]));
        loop {
            if node.asks && !self.visit_open(node, key, &mut all) {
                return;
            }
            let Some((&byte, behind)) = rest.split_first() else { break };
            let Some(next) = node.next.find(byte) else { return };
            node = &self.nodes[next];
            rest = behind;
            // As where numbers follow: each digit is a node.
            if !node.label.is_empty() {
                let Some(behind) = node.behind(rest) else { return };
                rest = behind;
            }
        }
        all(&node.exact);
    }
    /// The same for those that end at a node and have something behind it. Says whether to go on.
    fn visit_open(&self, node: &Node, key: &[u8], visit: &mut impl FnMut(&[u32]) -> bool) -> bool {
        if !visit(&node.open) || !self.ask(&node.patterns, key, visit) {
            return false;
        }
        let Some(ends) = &node.ends else { return true };
        ends.of(key).all(|numbers| self.ask(numbers, key, visit))
    }
    /// Calls `visit` with those of these triggers whose pattern matches. Says whether to go on.
    fn ask(&self, numbers: &[u32], key: &[u8], visit: &mut impl FnMut(&[u32]) -> bool) -> bool {
        numbers.iter().all(|number| {
            !glob::matches(&self.triggers[*number as usize].pattern, key)
                || visit(std::slice::from_ref(number))
        })
    }
    /// Whether a key may fire any.
    #[inline]
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        self.may_have(key) && self.trunk.behind(key).is_some() && self.find_any(key)
    }
    /// Whether any begins with the first byte of a key.
    #[inline]
    fn may_have(&self, key: &[u8]) -> bool {
        let byte = key.first().copied().unwrap_or(0);
        self.first[usize::from(byte) / 64] >> (byte % 64) & 1 != 0
    }
    #[inline(never)]
    fn find_any(&self, key: &[u8]) -> bool {
        let mut found = false;
        self.each(key, |_, _| {
            found = true;
            false
        });
        found
    }
    /// Those that a change of such a kind of a key fires, in the order of their names.
    pub fn find<'i>(&'i self, db: u8, key: &[u8], kinds: u8) -> Found<'i> {
        let mut found =
            Found { triggers: &self.triggers, few: [0; FOUND_FEW], len: 0, more: Vec::new(), at: 0 };
        if self.may_have(key) {
            self.each(key, |number, trigger| {
                if trigger.on & kinds != 0 && trigger.db.is_none_or(|other| other == db) {
                    found.push(number);
                }
                true
            });
        }
        if found.len > 1 {
            found.numbers_mut().sort_unstable();
        }
        found
    }
}

/// Triggers that were found for a key, in the order of their names.
#[derive(Debug)]
pub struct Found<'i> {
    triggers: &'i [Arc<Trigger>],
    few: [u32; FOUND_FEW],
    len: usize,
    /// All of them, if they are not few.
    more: Vec<u32>,
    at: usize,
}

impl Found<'_> {
    fn push(&mut self, number: u32) {
        match self.few.get_mut(self.len) {
            Some(place) => *place = number,
            None => {
                if self.more.is_empty() {
                    self.more.extend_from_slice(&self.few);
                }
                self.more.push(number);
            }
        }
        self.len += 1;
    }
    fn numbers_mut(&mut self) -> &mut [u32] {
        if self.more.is_empty() { &mut self.few[..self.len] } else { &mut self.more }
    }
}

impl<'i> Iterator for Found<'i> {
    type Item = &'i Arc<Trigger>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        self.at += 1;
        let number = if self.more.is_empty() { self.few[..self.len].get(at) } else { self.more.get(at) };
        number.map(|number| &self.triggers[*number as usize])
    }
}

impl Trunk {
    fn of(nodes: &[Node]) -> Self {
        let (mut bytes, mut node) = (Vec::new(), 0);
        while !nodes[node].asks
            && nodes[node].exact.is_empty()
            && let Next::Few(few) = &nodes[node].next
            && let [(byte, next)] = few[..]
        {
            bytes.push(byte);
            node = next as usize;
            bytes.extend_from_slice(&nodes[node].label);
        }
        let word = |bytes: Option<&[u8; HEAD_BYTES]>| bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let ends = (word(bytes.first_chunk()), word(bytes.last_chunk()));
        Self { bytes: bytes.into(), ends, node }
    }
    /// What comes behind it in a key that begins with it.
    #[inline]
    fn behind<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let (begins, behind) = key.split_at_checked(self.bytes.len())?;
        let same = match (begins.first_chunk(), begins.last_chunk()) {
            (Some(first), Some(last)) => {
                (u64::from_ne_bytes(*first), u64::from_ne_bytes(*last)) == self.ends
                    && (begins.len() <= 2 * HEAD_BYTES || *begins == *self.bytes)
            }
            _ => begins.iter().zip(&self.bytes).all(|(one, two)| one == two),
        };
        same.then_some(behind)
    }
}

impl Node {
    /// What is looked at on the way to others, when all are there.
    fn settle(&mut self) {
        let (mut head, mut mask) = ([0; HEAD_BYTES], [0; HEAD_BYTES]);
        for ((byte, bits), label) in head.iter_mut().zip(&mut mask).zip(&self.label) {
            (*byte, *bits) = (*label, u8::MAX);
        }
        self.head = (u64::from_ne_bytes(head), u64::from_ne_bytes(mask));
        self.asks = !self.open.is_empty() || !self.patterns.is_empty() || self.ends.is_some();
    }
    /// What comes behind its label. Labels are short: a call that compares many bytes costs more than they do.
    #[inline]
    fn behind<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let (begins, behind) = key.split_at_checked(self.label.len())?;
        let Some(first) = key.first_chunk() else {
            return begins.iter().zip(&self.label).all(|(one, two)| one == two).then_some(behind);
        };
        let (head, mask) = self.head;
        let same = (u64::from_ne_bytes(*first) ^ head) & mask == 0;
        (same && (begins.len() <= HEAD_BYTES || begins[HEAD_BYTES..] == self.label[HEAD_BYTES..]))
            .then_some(behind)
    }
    /// Has its patterns found by how they end, but for those that end in a wildcard.
    fn split_by_end(&mut self, triggers: &[Arc<Trigger>]) {
        let mut lens = BTreeSet::new();
        let mut ends = Ends::default();
        self.patterns.retain(|&number| {
            let end = end(&triggers[number as usize].pattern);
            if !end.is_empty() {
                lens.insert(end.len());
                ends.by_end.entry(end.into()).or_default().push(number);
            }
            end.is_empty()
        });
        ends.lens = lens.into_iter().collect();
        self.ends = (!ends.lens.is_empty()).then(|| Box::new(ends));
    }
}

impl Ends {
    /// The triggers whose patterns end as a key does.
    fn of<'i>(&'i self, key: &[u8]) -> impl Iterator<Item = &'i [u32]> {
        let ends = self.lens.iter().map_while(|len| Some(&key[key.len().checked_sub(*len)?..]));
        ends.filter_map(|end| self.by_end.get(end)).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triggers(patterns: &[&str]) -> Vec<Arc<Trigger>> {
        let one = |(at, pattern): (usize, &&str)| {
            let text = format!("{{\"key\":{},\"publish\":\"c\"}}", serde_json::to_string(pattern).unwrap());
            Arc::new(Trigger::parse(format!("{at:03}").as_bytes(), text.as_bytes(), (1, true, "u")).unwrap())
        };
        patterns.iter().enumerate().map(one).collect()
    }

    #[test]
    fn a_key_finds_those_whose_pattern_it_matches_and_no_other() {
        let patterns = [
            "user:*",
            "user:1",
            "user:1*",
            "use*",
            "u?er:1",
            "*",
            "order:[ab]",
            "",
            "user:12:cart",
            "user:13:cart",
            "\\*",
            "us",
            "userx*",
        ];
        let all = triggers(&patterns);
        let index = Index::new(all.clone());
        let without_star = Index::new(all.iter().filter(|t| !t.pattern.starts_with(b"*")).cloned().collect());
        for key in [
            "user:1",
            "user:12:cart",
            "user:",
            "use",
            "us",
            "u",
            "",
            "order:a",
            "order:c",
            "*",
            "x",
            "userx",
            "user",
        ] {
            let wanted: Vec<&str> = patterns
                .iter()
                .copied()
                .filter(|pattern| glob::matches(pattern.as_bytes(), key.as_bytes()))
                .collect();
            let found = index.find(0, key.as_bytes(), 1);
            let found: Vec<String> =
                found.map(|trigger| String::from_utf8_lossy(&trigger.pattern).into_owned()).collect();
            assert_eq!(found, wanted, "{key}");
            assert!(index.has(key.as_bytes()));
            assert_eq!(without_star.has(key.as_bytes()), wanted.len() > 1, "{key}");
        }
        assert!(!Index::default().has(b"x") && Index::default().find(0, b"x", 1).next().is_none());
    }

    #[test]
    fn what_all_begin_with_is_compared_at_once() {
        for trunk in ["", "u", "user:", "user:17:", "user:17:c", "user:17:carts:16", "user:17:carts:of:anna:"]
        {
            let patterns = [format!("{trunk}1:*"), format!("{trunk}2:*"), format!("{trunk}3")];
            let index = Index::new(triggers(&patterns.each_ref().map(String::as_str)));
            assert_eq!(*index.trunk.bytes, *trunk.as_bytes());
            for (rest, wanted) in
                [("1:x", true), ("2:", true), ("3", true), ("3x", false), ("", false), ("4", false)]
            {
                assert_eq!(index.has(format!("{trunk}{rest}").as_bytes()), wanted, "{trunk}{rest}");
            }
            for at in 0..trunk.len() {
                let mut other = format!("{trunk}1:x").into_bytes();
                other[at] ^= 1;
                assert!(
                    !index.has(&other) && index.find(0, &other, 1).next().is_none(),
                    "{trunk}, byte {at}"
                );
                assert!(!index.has(&trunk.as_bytes()[..at]), "{at} bytes of {trunk}");
            }
        }
        // What ends on the way ends it.
        let index = Index::new(triggers(&["user:*", "user:1:*"]));
        assert_eq!(&*index.trunk.bytes, b"user:");
        assert!(index.has(b"user:") && index.has(b"user:1:2") && !index.has(b"user"));
        let index = Index::new(triggers(&["*", "user:1:*"]));
        assert!(index.trunk.bytes.is_empty() && index.has(b"x"));
    }

    #[test]
    fn random_patterns_are_found_as_one_by_one() {
        let mut state = 5_u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let mut text = |letters: &str| -> String {
            let len = next(6);
            (0..len).map(|_| char::from(letters.as_bytes()[next(letters.len() as u64) as usize])).collect()
        };
        for _ in 0..200 {
            let patterns: Vec<String> = (0..40).map(|_| text("aab*?[\\]")).collect();
            let index = Index::new(triggers(&patterns.iter().map(String::as_str).collect::<Vec<_>>()));
            for _ in 0..40 {
                let key = text("abc*]");
                let wanted = patterns.iter().filter(|p| glob::matches(p.as_bytes(), key.as_bytes())).count();
                assert_eq!(index.find(0, key.as_bytes(), 1).count(), wanted, "{key} of {patterns:?}");
            }
        }
    }

    #[test]
    fn many_of_one_beginning_are_told_apart_by_how_they_end() {
        let patterns: Vec<String> = (0..1000).map(|at| format!("user:*:field{at}")).collect();
        let index = Index::new(triggers(&patterns.iter().map(String::as_str).collect::<Vec<_>>()));
        let ends: Vec<&Node> = index.nodes.iter().filter(|node| node.ends.is_some()).collect();
        assert!(matches!(ends[..], [node] if node.patterns.is_empty()), "none is asked for every key");
        assert_eq!(ends[0].ends.as_ref().unwrap().lens.len(), 3, "as many look-ups as there are lengths");
        let found: Vec<_> = index.find(0, b"user:7:field77", 1).map(|found| found.pattern.clone()).collect();
        assert_eq!(found, [b"user:*:field77".as_slice().into()]);
        assert!(!index.has(b"user:7:field1000") && !index.has(b"user:") && index.has(b"user::field0"));
    }
}
