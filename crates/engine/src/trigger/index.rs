//! Owns: which triggers a key may fire: by the bytes that a pattern begins with, and by the whole key where it has no
//! wildcard. Does not own: their other conditions.
//!
//! A tree over literal beginnings: a look-up costs steps for the bytes that the key has in common with beginnings, and
//! not for the number of triggers; a key whose first byte none begins with costs one bit. Of triggers with one
//! beginning each is asked whether its pattern matches.

use std::sync::Arc;

use super::definition::Trigger;
use crate::glob;

/// Which triggers keys may fire.
#[derive(Debug, Default)]
pub struct Index {
    /// The first bytes of keys that any may fire; of all if one pattern begins with a wildcard.
    first: [u64; 4],
    nodes: Vec<Node>,
    triggers: Vec<Arc<Trigger>>,
}

/// A place behind some bytes.
#[derive(Debug, Default)]
struct Node {
    /// The bytes that lead here from the node before.
    label: Box<[u8]>,
    /// Nodes behind it, by the first byte of their labels.
    next: Vec<(u8, u32)>,
    /// Triggers whose patterns have a wildcard here.
    patterns: Vec<u32>,
    /// Those whose pattern is the whole key.
    exact: Vec<u32>,
}

/// The bytes before a pattern's first wildcard, and whether there is one.
fn literal(pattern: &[u8]) -> (&[u8], bool) {
    match pattern.iter().position(|byte| b"*?[\\".contains(byte)) {
        Some(at) => (&pattern[..at], true),
        None => (pattern, false),
    }
}

impl Index {
    /// Of these triggers, which come in the order of their names.
    #[must_use]
    pub fn new(triggers: Vec<Arc<Trigger>>) -> Self {
        let mut index = Self { first: [0; 4], nodes: vec![Node::default()], triggers: Vec::new() };
        for (number, trigger) in triggers.iter().enumerate() {
            let (literal, has_wildcard) = literal(&trigger.pattern);
            match literal.first() {
                Some(byte) => index.first[usize::from(*byte) / 64] |= 1 << (byte % 64),
                None => index.first = [u64::MAX; 4],
            }
            let node = index.insert(literal);
            let list =
                if has_wildcard { &mut index.nodes[node].patterns } else { &mut index.nodes[node].exact };
            list.push(number as u32);
        }
        index.triggers = triggers;
        index
    }

    /// The node behind these bytes, made if it is not there.
    fn insert(&mut self, mut rest: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&byte) = rest.first() {
            let found = self.nodes[at].next.binary_search_by_key(&byte, |(byte, _)| *byte);
            let place = match found {
                Err(place) => {
                    let made = self.nodes.len();
                    self.nodes.push(Node { label: rest.into(), ..Node::default() });
                    self.nodes[at].next.insert(place, (byte, made as u32));
                    return made;
                }
                Ok(place) => place,
            };
            let child = self.nodes[at].next[place].1 as usize;
            let label = &self.nodes[child].label;
            let common = label.iter().zip(rest).take_while(|(one, two)| one == two).count();
            if common < label.len() {
                let (before, behind): (Box<[u8]>, Box<[u8]>) =
                    (label[..common].into(), label[common..].into());
                let made = self.nodes.len();
                let next = vec![(behind[0], child as u32)];
                self.nodes[child].label = behind;
                self.nodes.push(Node { label: before, next, ..Node::default() });
                self.nodes[at].next[place].1 = made as u32;
                at = made;
            } else {
                at = child;
            }
            rest = &rest[common..];
        }
        at
    }

    /// Calls `visit` with the triggers whose pattern a key matches, in no order, until it says `false`.
    #[inline]
    fn each<'i>(&'i self, key: &[u8], mut visit: impl FnMut(u32, &'i Arc<Trigger>) -> bool) {
        let mut rest = key;
        let Some(mut node) = self.nodes.first() else { return };
        loop {
            for &number in &node.patterns {
                let trigger = &self.triggers[number as usize];
                if glob::matches(&trigger.pattern, key) && !visit(number, trigger) {
                    return;
                }
            }
            let Some(&byte) = rest.first() else { break };
            let Ok(place) = node.next.binary_search_by_key(&byte, |(byte, _)| *byte) else { return };
            node = &self.nodes[node.next[place].1 as usize];
            let Some(behind) = rest.strip_prefix(&*node.label) else { return };
            rest = behind;
        }
        for &number in &node.exact {
            if !visit(number, &self.triggers[number as usize]) {
                return;
            }
        }
    }
    /// Whether a key may fire any.
    #[inline]
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        let byte = key.first().copied().unwrap_or(0);
        if self.first[usize::from(byte) / 64] >> (byte % 64) & 1 == 0 {
            return false;
        }
        self.find_any(key)
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
    #[must_use]
    pub fn find(&self, db: u8, key: &[u8], kinds: u8) -> Vec<Arc<Trigger>> {
        let mut found = Vec::new();
        self.each(key, |number, trigger| {
            if trigger.on & kinds != 0 && trigger.db.is_none_or(|other| other == db) {
                found.push((number, Arc::clone(trigger)));
            }
            true
        });
        found.sort_unstable_by_key(|(number, _)| *number);
        found.into_iter().map(|(_, trigger)| trigger).collect()
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
                found.iter().map(|trigger| String::from_utf8_lossy(&trigger.pattern).into_owned()).collect();
            assert_eq!(found, wanted, "{key}");
            assert!(index.has(key.as_bytes()));
            assert_eq!(without_star.has(key.as_bytes()), wanted.len() > 1, "{key}");
        }
        assert!(!Index::default().has(b"x") && Index::default().find(0, b"x", 1).is_empty());
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
            let patterns: Vec<String> = (0..20).map(|_| text("aab*?")).collect();
            let index = Index::new(triggers(&patterns.iter().map(String::as_str).collect::<Vec<_>>()));
            for _ in 0..40 {
                let key = text("abc");
                let wanted = patterns.iter().filter(|p| glob::matches(p.as_bytes(), key.as_bytes())).count();
                assert_eq!(index.find(0, key.as_bytes(), 1).len(), wanted, "{key} of {patterns:?}");
            }
        }
    }
}
