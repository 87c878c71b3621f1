//! Owns: which triggers a key may fire: by the bytes that a pattern begins with and ends with, and by the whole key
//! where it has no wildcard. Does not own: their other conditions, the tree (`super::tree`).
//!
//! A look-up costs steps for the bytes that the key has in common with beginnings, and not for the number of triggers;
//! a key whose first byte none begins with costs one bit, and what all have in common is compared at once. Of many
//! triggers with one beginning those are asked that end as the key does, by a tree of their ends from the last byte on.
//! Where neither says anything (`a*b*`), each is asked whether its pattern matches, as long as that goes over no more
//! than [`ASKED_BYTES_MAX`]; who looks for several keys says by an [`Asked`] whether that is for all of them.
//!
//! A change costs steps for the bytes of a pattern, and for the triggers that have its beginning and its end: whoever
//! looks at an index keeps the one that he has, and shares with the next one what is the same in both.

use std::sync::Arc;
use std::time::Instant;

use super::FIRED_MAX;
use super::definition::Trigger;
use super::tree::{HEAD_BYTES, Node, word};
use crate::glob;

/// Triggers that are found for a key without an allocation.
const FOUND_FEW: usize = 4;
/// As many of one key are more than a command may fire: no further ones are looked for.
const FOUND_MAX: usize = FIRED_MAX as usize + 1;
/// So many that were looked at for one key have taken no time worth asking for.
const LOOKED_FEW: usize = 64;
/// What patterns that are asked one by one go over, of themselves and of the key, for one key: some milliseconds.
/// Beyond it no further one is asked, and whoever needs to know is told so.
const ASKED_BYTES_MAX: u64 = 4 << 20;
/// Who has gone over so much has taken a time that is to be counted.
const ASKED_BYTES_LONG: u64 = 64 << 10;
/// Patterns of one beginning that are asked one by one; more are told apart by how they end.
const ENDS_MIN: usize = 8;

/// Which triggers keys may fire.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// The first bytes of keys that any may fire; of all if one pattern begins with a wildcard.
    first: [u64; 4],
    /// What all begin with, and the node behind it.
    trunk: Trunk,
    root: Arc<Node>,
    /// How many there are.
    len: usize,
}

/// The way from the first node on, as long as there is one way and nothing ends on it.
#[derive(Clone, Debug, Default)]
struct Trunk {
    bytes: Box<[u8]>,
    /// Its first and last [`HEAD_BYTES`], which overlap in a short one.
    ends: (u64, u64),
    /// The node that it leads to.
    node: Arc<Node>,
}

/// The bytes that every key ends with which a pattern with a wildcard stands for, from the last one on.
fn end(pattern: &[u8]) -> Vec<u8> {
    glob::ends(pattern).map_or(Vec::new(), |(_, end)| end.iter().rev().copied().collect())
}

/// A pattern as the tree has it.
struct Parts<'t> {
    literal: &'t [u8],
    how: How,
}

/// How a pattern goes on behind its literal beginning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Exact,
    Open,
    Wildcards,
}

impl<'t> Parts<'t> {
    fn of(pattern: &'t [u8]) -> Self {
        let literal = glob::literal(pattern);
        let how = match &pattern[literal.len()..] {
            b"" => How::Exact,
            b"*" => How::Open,
            _ => How::Wildcards,
        };
        Self { literal, how }
    }
}

fn put_into(node: &mut Node, how: How, trigger: &Arc<Trigger>) {
    let list = match how {
        How::Exact => &mut node.exact,
        How::Open => &mut node.open,
        How::Wildcards => {
            put_pattern(node, trigger);
            return;
        }
    };
    list.push(Arc::clone(trigger));
}

/// A pattern with a wildcard that is told apart by its end, once there are many; but for those that end in one.
fn put_pattern(node: &mut Node, trigger: &Arc<Trigger>) {
    let put_by_end = |trigger: &Arc<Trigger>, ends: &mut Option<Arc<Node>>| {
        let end = end(&trigger.pattern);
        if end.is_empty() {
            return false;
        }
        let place = |node: &mut Node| node.open.push(Arc::clone(trigger));
        Node::change(ends.get_or_insert_default(), &end, place);
        true
    };
    let Node { patterns, ends, .. } = node;
    if patterns.len() == ENDS_MIN {
        patterns.retain(|trigger| !put_by_end(trigger, ends));
    }
    if (ends.is_some() || patterns.len() >= ENDS_MIN) && put_by_end(trigger, ends) {
        return;
    }
    patterns.push(Arc::clone(trigger));
}

fn take_from(node: &mut Node, how: How, trigger: &Trigger) {
    let is_other = |other: &Arc<Trigger>| other.name != trigger.name;
    match how {
        How::Exact => node.exact.retain(is_other),
        How::Open => node.open.retain(is_other),
        How::Wildcards => {
            node.patterns.retain(is_other);
            let end = end(&trigger.pattern);
            if let Some(ends) = node.ends.as_mut().filter(|_| !end.is_empty()) {
                Node::change(ends, &end, |node| node.open.retain(is_other));
                if ends.is_empty() {
                    node.ends = None;
                }
            }
        }
    }
}

impl Index {
    /// Has triggers in it that were not, or not any more: `old` goes, `new` comes.
    pub(super) fn change<'t>(
        &mut self,
        changes: impl IntoIterator<Item = (Option<&'t Arc<Trigger>>, Option<&'t Arc<Trigger>>)>,
    ) {
        // What it leads to is not to be copied.
        self.trunk = Trunk::default();
        for (old, new) in changes {
            if let Some(old) = old.filter(|trigger| trigger.enabled) {
                let Parts { literal, how } = Parts::of(&old.pattern);
                Node::change(&mut self.root, literal, |node| take_from(node, how, old));
                self.len -= 1;
            }
            if let Some(new) = new.filter(|trigger| trigger.enabled) {
                let Parts { literal, how } = Parts::of(&new.pattern);
                Node::change(&mut self.root, literal, |node| put_into(node, how, new));
                self.len += 1;
            }
        }
        self.first = match (self.root.asks, &self.root.exact[..]) {
            (true, _) => [u64::MAX; 4],
            (false, exact) => {
                // The empty key begins with nothing, and is asked for as if it began with 0.
                let mut first = [u64::from(!exact.is_empty()), 0, 0, 0];
                self.root.next.each(|byte, _| first[usize::from(byte) / 64] |= 1 << (byte % 64));
                first
            }
        };
        self.trunk = Trunk::of(&self.root);
    }
    /// Whether there is none.
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Calls `visit` with the triggers whose pattern a key matches, in no order, until it says `false`. `rest` is what
    /// comes in it behind the trunk. Says whether it went on until those that are asked were too many.
    #[inline]
    fn each<'i>(
        &'i self,
        key: &[u8],
        mut rest: &[u8],
        asked: &mut Asked,
        mut visit: impl FnMut(&'i Arc<Trigger>) -> bool,
    ) -> bool {
        let mut node = &*self.trunk.node;
        loop {
            if node.asks && !visit_open(node, (key, &mut *asked), &mut visit) {
                return asked.are_too_many();
            }
            let Some((&byte, behind)) = rest.split_first() else { break };
            let Some(next) = node.next.find(byte) else { return false };
            node = next;
            rest = behind;
            // As where numbers follow: each digit is a node.
            if !node.label.is_empty() {
                let Some(behind) = node.behind(rest) else { return false };
                rest = behind;
            }
        }
        // Of two that end here the first says enough to who asks for any.
        let _ = node.exact.iter().all(&mut visit);
        false
    }
    /// Whether a key may fire any: also where that would take too long to find out.
    #[inline]
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        self.has_beside(key, &mut Asked::default())
    }
    /// The same of one of several keys, where finding out may take as long for all of them as it may for one.
    #[inline]
    pub(crate) fn has_beside(&self, key: &[u8], asked: &mut Asked) -> bool {
        self.may_have(key) && self.trunk.behind(key).is_some_and(|rest| self.find_any(key, rest, asked))
    }
    /// Whether any begins with the first byte of a key.
    #[inline]
    fn may_have(&self, key: &[u8]) -> bool {
        let byte = key.first().copied().unwrap_or(0);
        self.first[usize::from(byte) / 64] >> (byte % 64) & 1 != 0
    }
    #[inline(never)]
    fn find_any(&self, key: &[u8], rest: &[u8], asked: &mut Asked) -> bool {
        let mut found = false;
        let too_many = self.each(key, rest, asked, |_| {
            found = true;
            false
        });
        found || too_many
    }
    /// Those that a change of such a kind of a key fires, in the order of their names; where they are more than a
    /// command may fire, so many of them in no order.
    pub fn find<'i>(&'i self, db: u8, key: &[u8], kinds: u8) -> Found<'i> {
        self.find_beside((db, key, kinds), &mut Asked::default())
    }
    /// The same of one of several keys: see [`Index::has_beside`].
    pub(crate) fn find_beside<'i>(
        &'i self,
        (db, key, kinds): (u8, &[u8], u8),
        asked: &mut Asked,
    ) -> Found<'i> {
        let mut found = Found {
            few: [None; FOUND_FEW],
            len: 0,
            more: Vec::new(),
            at: 0,
            looked: 0,
            long_since: None,
            is_cut: false,
        };
        if self.may_have(key)
            && let Some(rest) = self.trunk.behind(key)
        {
            let is_cut = self.each(key, rest, asked, |trigger| {
                found.looked += 1;
                if found.looked == LOOKED_FEW {
                    found.long_since = Some(Instant::now());
                }
                if trigger.on & kinds != 0 && trigger.db.is_none_or(|other| other == db) {
                    found.push(trigger);
                }
                found.len < FOUND_MAX
            });
            found.is_cut = is_cut;
        }
        if (2..FOUND_MAX).contains(&found.len) {
            found.found_mut().sort_unstable_by(|one, two| {
                let name = |found: &Option<&'i Arc<Trigger>>| found.map(|trigger| &trigger.name);
                name(one).cmp(&name(two))
            });
        }
        found
    }
}

/// What patterns have gone over that were asked whether keys match them.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    bytes: u64,
}

impl Asked {
    pub(crate) const fn are_too_many(&self) -> bool {
        self.bytes > ASKED_BYTES_MAX
    }
    /// Whether asking them has taken a time that is to be counted.
    pub(crate) const fn is_long(&self) -> bool {
        self.bytes > ASKED_BYTES_LONG
    }
    /// Others were asked too, for themselves.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
    /// Whether one more may be asked.
    fn may_ask(&mut self, pattern: &[u8], key: &[u8]) -> bool {
        self.bytes = self.bytes.saturating_add(glob::work(pattern, key.len()));
        !self.are_too_many()
    }
}

/// Calls `visit` with those that end at a node and have something behind it, as far as they match. Says whether to go
/// on.
fn visit_open<'i>(
    node: &'i Node,
    (key, asked): (&[u8], &mut Asked),
    visit: &mut impl FnMut(&'i Arc<Trigger>) -> bool,
) -> bool {
    if !node.open.iter().all(&mut *visit) || !ask(&node.patterns, (key, &mut *asked), visit) {
        return false;
    }
    let Some(ends) = &node.ends else { return true };
    let (mut node, mut rest) = (&**ends, key);
    while let Some((&byte, before)) = rest.split_last()
        && let Some(next) = node.next.find(byte)
        && let Some(before) = next.before(before)
    {
        (node, rest) = (next, before);
        if !ask(&node.open, (key, &mut *asked), visit) {
            return false;
        }
    }
    true
}

/// Calls `visit` with those of these triggers whose pattern matches. Says whether to go on.
fn ask<'i>(
    triggers: &'i [Arc<Trigger>],
    (key, asked): (&[u8], &mut Asked),
    visit: &mut impl FnMut(&'i Arc<Trigger>) -> bool,
) -> bool {
    triggers.iter().all(|trigger| {
        asked.may_ask(&trigger.pattern, key) && (!glob::matches(&trigger.pattern, key) || visit(trigger))
    })
}

/// Triggers that were found for a key, in the order of their names.
#[derive(Debug)]
pub struct Found<'i> {
    few: [Option<&'i Arc<Trigger>>; FOUND_FEW],
    len: usize,
    /// All of them, if they are not few.
    more: Vec<Option<&'i Arc<Trigger>>>,
    at: usize,
    /// How many were looked at, and since when that has been many.
    looked: usize,
    long_since: Option<Instant>,
    /// There may be more: too many would have had to be asked.
    is_cut: bool,
}

impl<'i> Found<'i> {
    fn push(&mut self, trigger: &'i Arc<Trigger>) {
        match self.few.get_mut(self.len) {
            Some(place) => *place = Some(trigger),
            None => {
                if self.more.is_empty() {
                    self.more.extend_from_slice(&self.few);
                }
                self.more.push(Some(trigger));
            }
        }
        self.len += 1;
    }
    /// How many there are.
    pub(crate) const fn total(&self) -> usize {
        self.len
    }
    /// Whether there may be more, which would take too long to find out.
    pub(crate) const fn is_cut(&self) -> bool {
        self.is_cut
    }
    /// Since when looking for them has taken a time that is to be counted, if it has.
    pub(crate) const fn long_since(&self) -> Option<Instant> {
        self.long_since
    }
    fn found_mut(&mut self) -> &mut [Option<&'i Arc<Trigger>>] {
        if self.more.is_empty() { &mut self.few[..self.len] } else { &mut self.more }
    }
}

impl<'i> Iterator for Found<'i> {
    type Item = &'i Arc<Trigger>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        self.at += 1;
        *if self.more.is_empty() { self.few[..self.len].get(at) } else { self.more.get(at) }?
    }
}

impl Trunk {
    fn of(root: &Arc<Node>) -> Self {
        let (mut bytes, mut node) = (Vec::new(), root);
        while !node.asks
            && node.exact.is_empty()
            && let Some((byte, next)) = node.next.only()
        {
            bytes.push(byte);
            node = next;
            bytes.extend_from_slice(&node.label);
        }
        let ends = (word(bytes.first_chunk()), word(bytes.last_chunk()));
        Self { bytes: bytes.into(), ends, node: Arc::clone(node) }
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

    fn index(triggers: &[Arc<Trigger>]) -> Index {
        let mut index = Index::default();
        index.change(triggers.iter().map(|trigger| (None, Some(trigger))));
        index
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
        let index = index(&all);
        let mut without_star = index.clone();
        without_star.change(all.iter().filter(|t| t.pattern.starts_with(b"*")).map(|t| (Some(t), None)));
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
            let index = index(&triggers(&patterns.each_ref().map(String::as_str)));
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
        let two = index(&triggers(&["user:*", "user:1:*"]));
        assert_eq!(&*two.trunk.bytes, b"user:");
        assert!(two.has(b"user:") && two.has(b"user:1:2") && !two.has(b"user"));
        let all = index(&triggers(&["*", "user:1:*"]));
        assert!(all.trunk.bytes.is_empty() && all.has(b"x"));
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
            let index = index(&triggers(&patterns.iter().map(String::as_str).collect::<Vec<_>>()));
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
        let mut all = triggers(&patterns.iter().map(String::as_str).collect::<Vec<_>>());
        let mut index = index(&all);
        let node = &index.trunk.node;
        assert!(node.ends.is_some() && node.patterns.is_empty(), "none is asked for every key");
        let found: Vec<_> = index.find(0, b"user:7:field77", 1).map(|found| found.pattern.clone()).collect();
        assert_eq!(found, [b"user:*:field77".as_slice().into()]);
        assert!(!index.has(b"user:7:field1000") && !index.has(b"user:") && index.has(b"user::field0"));
        let others = all.split_off(1);
        index.change(others.iter().map(|trigger| (Some(trigger), None)));
        assert!(index.has(b"user:7:field0") && !index.has(b"user:7:field77"));
        index.change([(Some(&all[0]), None)]);
        assert!(index.is_empty() && index.root.is_empty(), "nothing is left of them");
    }

    /// Those that are in an index, whatever order they came in: what it is made of.
    fn shape(node: &Node) -> usize {
        let mut nodes = 1;
        node.next.each(|_, node| nodes += shape(node));
        nodes + node.ends.as_ref().map_or(0, |ends| shape(ends))
    }

    #[test]
    fn what_was_changed_one_by_one_is_as_if_it_had_been_made_at_once() {
        let mut state = 9_u64;
        let mut next = move |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let mut texts = |letters: &[u8], len: usize| -> String {
            (0..next(len)).map(|_| char::from(letters[next(letters.len())])).collect()
        };
        let patterns: Vec<String> = (0..300).map(|_| texts(b"aabc*?", 9)).collect();
        let keys: Vec<String> = (0..100).map(|_| texts(b"abc", 9)).collect();
        let all = triggers(&patterns.iter().map(String::as_str).collect::<Vec<_>>());
        let found = |index: &Index, key: &str| -> Vec<Box<[u8]>> {
            index.find(0, key.as_bytes(), 1).map(|trigger| trigger.name.clone()).collect()
        };
        let (mut present, mut changed) = (vec![false; all.len()], Index::default());
        for round in 0..3000 {
            let at = (round * 7919 + round / 300) % all.len();
            let before = (round % 50 == 0).then(|| (changed.clone(), present.clone()));
            changed.change([if present[at] { (Some(&all[at]), None) } else { (None, Some(&all[at])) }]);
            present[at] = !present[at];
            let of = |present: &[bool]| -> Vec<Arc<Trigger>> {
                all.iter()
                    .zip(present)
                    .filter(|(_, is)| **is)
                    .map(|(trigger, _)| Arc::clone(trigger))
                    .collect()
            };
            let Some((old, was)) = before else { continue };
            let (at_once, old_at_once) = (index(&of(&present)), index(&of(&was)));
            for key in &keys {
                assert_eq!(found(&changed, key), found(&at_once, key), "{key}, round {round}");
                // Whoever has looked at it before still has what was then.
                assert_eq!(found(&old, key), found(&old_at_once, key), "{key} before, round {round}");
            }
            assert!(shape(&changed.root) <= shape(&at_once.root) + ENDS_MIN * 10, "round {round}");
        }
        let rest: Vec<_> = all.iter().zip(&present).filter(|(_, is)| **is).map(|(one, _)| one).collect();
        changed.change(rest.into_iter().map(|trigger| (Some(trigger), None)));
        assert!(changed.is_empty() && changed.root.is_empty() && changed.first == [0; 4]);
    }

    #[test]
    fn one_behind_the_other_as_deep_as_patterns_are_long_takes_no_stack() {
        let patterns: Vec<String> = (1..4000).map(|len| "a".repeat(len)).collect();
        let all = triggers(&patterns.iter().map(String::as_str).collect::<Vec<_>>());
        let work = move || {
            let mut index = index(&all);
            assert_eq!(index.find(0, patterns[3000].as_bytes(), 1).count(), 1);
            let copy = index.clone();
            index.change(all.iter().map(|trigger| (Some(trigger), None)));
            assert!(index.is_empty() && copy.has(b"aaa"));
        };
        let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(work).unwrap();
        thread.join().unwrap();
    }
}
