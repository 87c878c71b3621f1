//! Owns: a tree of triggers over literal beginnings of keys, or over their ends: finding, adding, taking away. Does not
//! own: what beginning and end of a pattern are (`super::index`).
//!
//! Two trees share the nodes in which they are the same: a change copies those on its way that somebody else has.
//! Nothing here calls itself: a tree is as deep as a pattern is long.

use std::sync::Arc;

use super::definition::Trigger;

/// Nodes behind a node that are looked for one by one; of more there is a table.
const FEW: usize = 6;
/// Bytes of a label that are compared at once.
pub(super) const HEAD_BYTES: usize = size_of::<u64>();

/// A place behind some bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// The bytes that lead here from the node before, behind the one that it is found by.
    pub(super) label: Box<[u8]>,
    /// The first [`HEAD_BYTES`] of them as one number, and which of its bits count.
    head: (u64, u64),
    pub(super) next: Next,
    /// Some end here and have something behind it: `open`, `patterns` or `ends` has any.
    pub(super) asks: bool,
    /// Triggers whose patterns have a star here and nothing behind it: they match. In a tree of ends those of an end.
    pub(super) open: Vec<Arc<Trigger>>,
    /// Those whose patterns have another wildcard here, each of which is asked.
    pub(super) patterns: Vec<Arc<Trigger>>,
    /// Those that end in a way of their own, if they are many: a tree of their ends.
    pub(super) ends: Option<Arc<Node>>,
    /// Those whose pattern is the whole key.
    pub(super) exact: Vec<Arc<Trigger>>,
}

/// The nodes behind a node, by the first byte of what leads there.
#[derive(Clone, Debug)]
pub(super) enum Next {
    Few(Vec<(u8, Arc<Node>)>),
    Many(Box<[Option<Arc<Node>>; 256]>),
}

impl Default for Next {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Next {
    #[inline]
    pub(super) fn find(&self, byte: u8) -> Option<&Node> {
        match self {
            Self::Few(few) => few.iter().find(|(other, _)| *other == byte).map(|(_, node)| &**node),
            Self::Many(all) => all[usize::from(byte)].as_deref(),
        }
    }
    fn find_mut(&mut self, byte: u8) -> Option<&mut Arc<Node>> {
        match self {
            Self::Few(few) => few.iter_mut().find(|(other, _)| *other == byte).map(|(_, node)| node),
            Self::Many(all) => all[usize::from(byte)].as_mut(),
        }
    }
    /// Puts a node where none is.
    fn put(&mut self, byte: u8, node: Arc<Node>) {
        match self {
            Self::Many(all) => all[usize::from(byte)] = Some(node),
            Self::Few(few) if few.len() < FEW => few.push((byte, node)),
            Self::Few(few) => {
                let mut all = Box::new([const { None }; 256]);
                few.drain(..).for_each(|(byte, node)| all[usize::from(byte)] = Some(node));
                all[usize::from(byte)] = Some(node);
                *self = Self::Many(all);
            }
        }
    }
    fn remove(&mut self, byte: u8) {
        match self {
            Self::Few(few) => few.retain(|(other, _)| *other != byte),
            Self::Many(all) => {
                all[usize::from(byte)] = None;
                if all.iter().flatten().count() < FEW {
                    *self = Self::Few(self.take());
                }
            }
        }
    }
    /// All of them, which it has no more.
    fn take(&mut self) -> Vec<(u8, Arc<Node>)> {
        match std::mem::take(self) {
            Self::Few(few) => few,
            Self::Many(mut all) => {
                let all = all.iter_mut().zip(0..=u8::MAX);
                all.filter_map(|(node, byte)| Some((byte, node.take()?))).collect()
            }
        }
    }
    pub(super) fn each(&self, mut visit: impl FnMut(u8, &Arc<Node>)) {
        match self {
            Self::Few(few) => few.iter().for_each(|(byte, node)| visit(*byte, node)),
            Self::Many(all) => {
                let all = all.iter().zip(0..=u8::MAX);
                all.for_each(|(node, byte)| node.iter().for_each(|node| visit(byte, node)));
            }
        }
    }
    /// The only one. One of a table has others beside it.
    pub(super) fn only(&self) -> Option<(u8, &Arc<Node>)> {
        match self {
            Self::Few(few) if few.len() == 1 => few.first().map(|(byte, node)| (*byte, node)),
            _ => None,
        }
    }
    const fn is_empty(&self) -> bool {
        matches!(self, Self::Few(few) if few.is_empty())
    }
}

/// Bytes as one number, to be compared at once; those of a shorter text are none.
pub(super) fn word(bytes: Option<&[u8; HEAD_BYTES]>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

impl Node {
    fn behind_label(label: &[u8]) -> Self {
        let mut node = Self::default();
        node.label = label.into();
        node
    }
    /// Whether nothing ends here, and nothing comes behind it.
    pub(super) const fn is_empty(&self) -> bool {
        !self.ends_any() && self.next.is_empty()
    }
    const fn ends_any(&self) -> bool {
        self.asks || !self.exact.is_empty()
    }

    /// Changes the node of a tree behind these bytes, which is made if it is not there, and goes if nothing is left of
    /// it.
    pub(super) fn change(root: &mut Arc<Self>, bytes: &[u8], change: impl FnOnce(&mut Self)) {
        let (mut at, mut rest, mut depth) = (&mut *root, bytes, 0);
        loop {
            let node = Arc::make_mut(at);
            let Some((&byte, behind)) = rest.split_first() else {
                change(node);
                node.settle();
                break;
            };
            if node.next.find(byte).is_none() {
                let mut made = Self::behind_label(behind);
                change(&mut made);
                made.settle();
                if !made.is_empty() {
                    node.next.put(byte, Arc::new(made));
                }
                return;
            }
            let Some(child) = node.next.find_mut(byte) else { return };
            let common = child.label.iter().zip(behind).take_while(|(one, two)| one == two).count();
            if common < child.label.len() {
                child.split(common);
            }
            (at, rest, depth) = (child, &behind[common..], depth + 1);
        }
        Self::prune(root, bytes, depth);
    }
    /// Makes what the first bytes of its label lead to a node of its own, before it.
    fn split(self: &mut Arc<Self>, common: usize) {
        let mut upper = Self::behind_label(&self.label[..common]);
        let mut lower = std::mem::take(self);
        let (first, tail) = (lower.label[common], lower.label[common + 1..].into());
        let below = Arc::make_mut(&mut lower);
        below.label = tail;
        below.settle();
        upper.next.put(first, lower);
        upper.settle();
        *self = Arc::new(upper);
    }
    /// Takes the node away that these bytes lead to, `depth` nodes below the first one, if nothing is left of it, and
    /// joins what then has one way on.
    fn prune(root: &mut Arc<Self>, bytes: &[u8], depth: usize) {
        let Some(above) = depth.checked_sub(1) else { return };
        let (node, rest) = Self::below(root, bytes, above);
        let Some(&byte) = rest.first() else { return };
        if node.next.find(byte).is_some_and(Self::is_empty) {
            Arc::make_mut(node).next.remove(byte);
            if above > 0 {
                node.join();
            }
        } else if let Some(child) = Arc::make_mut(node).next.find_mut(byte) {
            child.join();
        }
    }
    /// The node so many nodes below the first one on the way of these bytes, and what is left of them.
    fn below<'t, 'b>(
        root: &'t mut Arc<Self>,
        bytes: &'b [u8],
        depth: usize,
    ) -> (&'t mut Arc<Self>, &'b [u8]) {
        let (mut at, mut rest) = (root, bytes);
        for _ in 0..depth {
            let Some(&byte) = rest.first() else { break };
            // It was there, since somebody has gone this way.
            let Some(child) = Arc::make_mut(at).next.find_mut(byte) else { unreachable!("no way") };
            rest = &rest[1 + child.label.len()..];
            at = child;
        }
        (at, rest)
    }
    /// Becomes one with the only node behind it, if nothing ends here.
    fn join(self: &mut Arc<Self>) {
        if self.ends_any() {
            return;
        }
        let Some((byte, next)) = self.next.only() else { return };
        let label = [&self.label, &[byte][..], &next.label].concat();
        let mut joined = Arc::clone(next);
        *self = Arc::default();
        let node = Arc::make_mut(&mut joined);
        node.label = label.into();
        node.settle();
        *self = joined;
    }

    /// What is looked at on the way to others, when it is as it will be.
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
    pub(super) fn behind<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let (begins, behind) = key.split_at_checked(self.label.len())?;
        let Some(first) = key.first_chunk() else {
            return begins.iter().zip(&self.label).all(|(one, two)| one == two).then_some(behind);
        };
        let (head, mask) = self.head;
        let same = (u64::from_ne_bytes(*first) ^ head) & mask == 0;
        (same && (begins.len() <= HEAD_BYTES || begins[HEAD_BYTES..] == self.label[HEAD_BYTES..]))
            .then_some(behind)
    }
    /// What comes before its label, which is read from the last byte on.
    pub(super) fn before<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let (before, ends) = key.split_at(key.len().checked_sub(self.label.len())?);
        ends.iter().rev().eq(&self.label).then_some(before)
    }
}

impl Drop for Node {
    /// One behind the other, however deep they stand.
    fn drop(&mut self) {
        let mut all = self.next.take();
        while let Some((_, node)) = all.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                all.append(&mut node.next.take());
            }
        }
    }
}
