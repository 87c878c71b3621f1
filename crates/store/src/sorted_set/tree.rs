//! Owns: the order of a large sorted set: a B+tree of scores and handles that counts what is below each child, so that
//! a rank is found, and an element by its rank, in O(log n). Does not own: members, which the dictionary has; who comes
//! first at equal scores is asked through the predicates that come with each search.
//!
//! A leaf is 512 bytes and holds up to 42 elements, an inner node 1,000 bytes and up to 31 children. With random order
//! leaves are filled to 0.7 and an element costs 19 bytes; when elements come in order, leaves are left full and it
//! costs 13. Depth: 42 · 31^k, so 5 levels for ten million elements.
//!
//! Nodes are merged with a neighbour when they fall below a quarter and both together fill three quarters at most.

mod walk;

use crate::dict::Handle;
use crate::prefetch;
use std::ops::Range;
use walk::Walk;

/// Elements of a leaf.
const LEAF_MAX: usize = 42;
/// Elements whose members are asked for before they are shown.
const ASK_AHEAD: usize = 10;
/// Children of an inner node.
const INNER_MAX: usize = 31;

/// An element: its score, and its record in the dictionary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) score: f64,
    pub(super) handle: Handle,
}

/// Elements stand from `start` on, so that taking the first one moves none: ZPOPMIN empties a set so.
#[derive(Clone)]
struct Leaf {
    len: u16,
    start: u16,
    scores: [f64; LEAF_MAX],
    handles: [u32; LEAF_MAX],
}
const _: () = assert!(size_of::<Leaf>() == 512);

/// What an inner node knows of a child: its first element, and how many there are below it.
#[derive(Clone, Copy)]
struct Head {
    score: f64,
    handle: u32,
    count: u32,
}

#[derive(Clone)]
struct Inner {
    len: u16,
    heads: [Head; INNER_MAX],
    children: [Option<Node>; INNER_MAX],
}
const _: () = assert!(size_of::<Inner>() <= 1024);

#[derive(Clone)]
enum Node {
    Leaf(Box<Leaf>),
    Inner(Box<Inner>),
}

/// Where a search goes. At a node it is asked for a child, at a leaf for a place.
trait Seek {
    fn child(&mut self, heads: &[Head]) -> usize;
    fn place(&mut self, leaf: &Leaf) -> usize;
}

/// To the element of a rank, or behind the last one. Counts from the nearer end of each node, so that the first and the
/// last are found at once.
struct ByRank {
    /// At most `len`.
    rank: usize,
    /// How many elements there are below the node.
    len: usize,
}

impl Seek for ByRank {
    fn child(&mut self, heads: &[Head]) -> usize {
        let from_start = self.rank < self.len / 2;
        // Elements before it, or from it on.
        let mut left = if from_start { self.rank } else { self.len - self.rank };
        for at in 0..heads.len() {
            let index = if from_start { at } else { heads.len() - 1 - at };
            let len = heads[index].count as usize;
            if left < len + usize::from(!from_start) {
                *self = Self { rank: if from_start { left } else { len - left }, len };
                return index;
            }
            left -= len;
        }
        unreachable!("a rank is at most the count of all children")
    }
    fn place(&mut self, _: &Leaf) -> usize {
        self.rank
    }
}

/// To the first element for which the predicate does not hold: it holds for all before and none after.
struct FirstNot<P>(P);

impl<P: FnMut(Item) -> bool> Seek for FirstNot<P> {
    fn child(&mut self, heads: &[Head]) -> usize {
        heads.partition_point(|head| (self.0)(head.item())).saturating_sub(1)
    }
    fn place(&mut self, leaf: &Leaf) -> usize {
        leaf.partition(0, &mut self.0)
    }
}

/// To where an element of a score stands or belongs. The scores alone are searched; the predicate, which holds for all
/// elements before the place, decides only among equal scores.
struct ToScore<P> {
    score: f64,
    before: P,
    /// To the element itself, for which the predicate holds too; else to the first for which it does not.
    is_there: bool,
}

impl<P: FnMut(Item) -> bool> Seek for ToScore<P> {
    fn child(&mut self, heads: &[Head]) -> usize {
        let below = below(heads.iter().map(|head| head.score), self.score);
        let is_tied = heads.get(below).is_some_and(|head| head.score == self.score);
        let tied = if is_tied { &heads[below..] } else { &[] };
        (below + tied.partition_point(|head| (self.before)(head.item()))).saturating_sub(1)
    }
    fn place(&mut self, leaf: &Leaf) -> usize {
        let scores = leaf.scores();
        let below = below(scores.iter().copied(), self.score);
        let is_tied = |at: usize| scores.get(at).is_some_and(|score| *score == self.score);
        match (self.is_there, is_tied(below)) {
            // The only one of its score.
            (true, true) if !is_tied(below + 1) => below,
            (true, _) => leaf.partition(below, &mut self.before).checked_sub(1).unwrap_or(leaf.len()),
            (false, true) => leaf.partition(below, &mut self.before),
            (false, false) => below,
        }
    }
}

/// How many of some scores are below one. All are looked at: that is no branch to be guessed wrong, and their lines
/// come together.
#[inline]
fn below(scores: impl Iterator<Item = f64>, score: f64) -> usize {
    scores.map(|other| usize::from(other < score)).sum()
}

impl Head {
    const fn item(&self) -> Item {
        Item { score: self.score, handle: Handle(self.handle) }
    }
}

impl Leaf {
    const fn empty() -> Self {
        Self { len: 0, start: 0, scores: [0.0; LEAF_MAX], handles: [0; LEAF_MAX] }
    }
    const fn len(&self) -> usize {
        self.len as usize
    }
    /// Asks for all of its lines at once: a search through them would wait for one after the other.
    fn prefetch(&self) {
        let start = std::ptr::from_ref(self).cast::<u8>();
        (0..size_of::<Self>()).step_by(64).for_each(|at| prefetch::line(start.wrapping_add(at)));
    }
    #[inline]
    const fn at(&self, place: usize) -> Item {
        let at = self.start as usize + place;
        Item { score: self.scores[at], handle: Handle(self.handles[at]) }
    }
    /// The handles of all.
    fn handles_mut(&mut self) -> &mut [u32] {
        let start = self.start as usize;
        &mut self.handles[start..start + self.len as usize]
    }
    /// Moves all to the front.
    fn pack(&mut self) {
        let (start, end) = (self.start as usize, self.start as usize + self.len());
        if start > 0 {
            self.scores.copy_within(start..end, 0);
            self.handles.copy_within(start..end, 0);
            self.start = 0;
        }
    }
    fn scores(&self) -> &[f64] {
        &self.scores[self.start as usize..][..self.len()]
    }
    /// The first place from `low` on for whose element the predicate does not hold.
    fn partition(&self, mut low: usize, holds: &mut impl FnMut(Item) -> bool) -> usize {
        let mut high = self.len();
        while low < high {
            let middle = low.midpoint(high);
            if holds(self.at(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
    fn insert(&mut self, place: usize, item: Item) {
        let at = if place == 0 && self.start > 0 {
            self.start -= 1;
            self.start as usize
        } else {
            if self.start as usize + self.len() == LEAF_MAX {
                self.pack();
            }
            let (at, end) = (self.start as usize + place, self.start as usize + self.len());
            self.scores.copy_within(at..end, at + 1);
            self.handles.copy_within(at..end, at + 1);
            at
        };
        self.scores[at] = item.score;
        self.handles[at] = item.handle.0;
        self.len += 1;
    }
    fn remove(&mut self, place: usize) -> Item {
        let item = self.at(place);
        if place == 0 {
            self.start += 1;
        } else {
            let (at, end) = (self.start as usize + place, self.start as usize + self.len());
            self.scores.copy_within(at + 1..end, at);
            self.handles.copy_within(at + 1..end, at);
        }
        self.len -= 1;
        if self.len == 0 {
            self.start = 0;
        }
        item
    }
    fn split_off(&mut self, from: usize) -> Self {
        self.pack();
        let mut right = Self::empty();
        let moved = self.len() - from;
        right.scores[..moved].copy_from_slice(&self.scores[from..self.len()]);
        right.handles[..moved].copy_from_slice(&self.handles[from..self.len()]);
        right.len = moved as u16;
        self.len = from as u16;
        right
    }
    fn append(&mut self, other: &Self) {
        self.pack();
        let (len, more, start) = (self.len(), other.len(), other.start as usize);
        self.scores[len..len + more].copy_from_slice(&other.scores[start..start + more]);
        self.handles[len..len + more].copy_from_slice(&other.handles[start..start + more]);
        self.len += other.len;
    }
}

impl Inner {
    fn empty() -> Self {
        Self {
            len: 0,
            heads: [Head { score: 0.0, handle: 0, count: 0 }; INNER_MAX],
            children: [const { None }; INNER_MAX],
        }
    }
    const fn len(&self) -> usize {
        self.len as usize
    }
    fn heads(&self) -> &[Head] {
        &self.heads[..self.len()]
    }
    fn child(&self, index: usize) -> &Node {
        self.children[index].as_ref().expect("there is a child below len")
    }
    fn child_mut(&mut self, index: usize) -> &mut Node {
        self.children[index].as_mut().expect("there is a child below len")
    }
    fn count(&self) -> usize {
        self.heads().iter().map(|head| head.count as usize).sum()
    }
    /// Writes down anew what begins a child, which has got so many elements more.
    fn adjust(&mut self, index: usize, more: i32) {
        let Item { score, handle } = self.child(index).first();
        let count = self.heads[index].count.wrapping_add_signed(more);
        self.heads[index] = Head { score, handle: handle.0, count };
    }
    /// Writes down anew what a child is: its elements are counted by its children.
    fn refresh(&mut self, index: usize) {
        self.heads[index] = self.child(index).head();
    }
    fn insert(&mut self, index: usize, node: Node) {
        let len = self.len();
        self.heads.copy_within(index..len, index + 1);
        self.children[index..=len].rotate_right(1);
        self.children[index] = Some(node);
        self.len += 1;
        self.refresh(index);
    }
    fn remove(&mut self, index: usize) -> Node {
        let len = self.len();
        self.heads.copy_within(index + 1..len, index);
        self.children[index..len].rotate_left(1);
        self.len -= 1;
        self.children[len - 1].take().expect("there is a child below len")
    }
    fn split_off(&mut self, from: usize) -> Self {
        let mut right = Self::empty();
        let moved = self.len() - from;
        right.heads[..moved].copy_from_slice(&self.heads[from..self.len()]);
        for (to, child) in right.children.iter_mut().zip(&mut self.children[from..]) {
            *to = child.take();
        }
        right.len = moved as u16;
        self.len = from as u16;
        right
    }
    fn append(&mut self, mut other: Self) {
        let (len, more) = (self.len(), other.len());
        self.heads[len..len + more].copy_from_slice(&other.heads[..more]);
        for (to, child) in self.children[len..].iter_mut().zip(&mut other.children[..more]) {
            *to = child.take();
        }
        self.len += other.len;
    }
    /// After a removal below `index`: drops an empty child, joins a small one with a neighbour.
    fn settle(&mut self, index: usize) {
        if self.child(index).len() == 0 {
            drop(self.remove(index));
            return;
        }
        self.adjust(index, -1);
        let child = self.child(index);
        if child.len() * 4 >= child.max() {
            return;
        }
        let left = if index + 1 < self.len() { index } else { index.saturating_sub(1) };
        let together = left + 1 < self.len() && {
            let (one, two) = (self.child(left), self.child(left + 1));
            (one.len() + two.len()) * 4 <= one.max() * 3
        };
        if together {
            let right = self.remove(left + 1);
            self.child_mut(left).append(right);
            self.refresh(left);
        }
    }
}

impl Node {
    fn len(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Inner(inner) => inner.len(),
        }
    }
    const fn max(&self) -> usize {
        match self {
            Self::Leaf(_) => LEAF_MAX,
            Self::Inner(_) => INNER_MAX,
        }
    }
    /// Its first element.
    fn first(&self) -> Item {
        match self {
            Self::Leaf(leaf) => leaf.at(0),
            Self::Inner(inner) => inner.heads[0].item(),
        }
    }
    fn head(&self) -> Head {
        match self {
            Self::Leaf(leaf) => {
                let Item { score, handle } = leaf.at(0);
                Head { score, handle: handle.0, count: u32::from(leaf.len) }
            }
            Self::Inner(inner) => Head { count: inner.count() as u32, ..inner.heads[0] },
        }
    }
    fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Leaf(one), Self::Leaf(two)) => one.append(&two),
            (Self::Inner(one), Self::Inner(two)) => one.append(*two),
            _ => unreachable!("children of one node are of one kind"),
        }
    }

    /// Inserts where `seek` goes. A node that was full gives its right part away.
    fn insert(&mut self, seek: &mut impl Seek, item: Item, nodes: &mut Nodes) -> Option<Self> {
        match self {
            Self::Leaf(leaf) => {
                leaf.prefetch();
                let place = seek.place(leaf);
                if leaf.len() < LEAF_MAX {
                    leaf.insert(place, item);
                    return None;
                }
                nodes.leaves += 1;
                // At an end, most likely more come in order: what is full stays full.
                let from = if place == LEAF_MAX {
                    LEAF_MAX
                } else if place == 0 {
                    0
                } else {
                    LEAF_MAX / 2
                };
                let mut right = leaf.split_off(from);
                if place > from || from == LEAF_MAX {
                    right.insert(place - from, item);
                } else {
                    leaf.insert(place, item);
                }
                Some(Self::Leaf(Box::new(right)))
            }
            Self::Inner(inner) => {
                let index = seek.child(inner.heads());
                let Some(more) = inner.child_mut(index).insert(seek, item, nodes) else {
                    inner.adjust(index, 1);
                    return None;
                };
                inner.refresh(index);
                if inner.len() < INNER_MAX {
                    inner.insert(index + 1, more);
                    return None;
                }
                nodes.inners += 1;
                let from = if index + 1 == INNER_MAX { INNER_MAX - 1 } else { INNER_MAX / 2 };
                let mut right = inner.split_off(from);
                if index + 1 > from {
                    right.insert(index + 1 - from, more);
                } else {
                    inner.insert(index + 1, more);
                }
                Some(Self::Inner(Box::new(right)))
            }
        }
    }

    fn remove(&mut self, seek: &mut impl Seek, nodes: &mut Nodes) -> Option<Item> {
        match self {
            Self::Leaf(leaf) => {
                leaf.prefetch();
                let place = seek.place(leaf);
                (place < leaf.len()).then(|| leaf.remove(place))
            }
            Self::Inner(inner) => {
                let index = seek.child(inner.heads());
                let item = inner.child_mut(index).remove(seek, nodes)?;
                let before = inner.len();
                let leaf = matches!(inner.child(index), Self::Leaf(_));
                inner.settle(index);
                let gone = before - inner.len();
                *(if leaf { &mut nodes.leaves } else { &mut nodes.inners }) -= gone;
                Some(item)
            }
        }
    }

    /// Lends the handles of the leaf where `seek` goes. Returns the place in it.
    fn change_handles(&mut self, seek: &mut impl Seek, change: impl FnOnce(&mut [u32])) -> usize {
        match self {
            Self::Leaf(leaf) => {
                leaf.prefetch();
                let place = seek.place(leaf);
                change(leaf.handles_mut());
                place
            }
            Self::Inner(inner) => {
                let index = seek.child(inner.heads());
                let place = inner.child_mut(index).change_handles(seek, change);
                inner.heads[index].handle = inner.child(index).first().handle.0;
                place
            }
        }
    }
}

/// How many nodes there are, for the memory count.
#[derive(Clone, Copy, Debug, Default)]
struct Nodes {
    leaves: usize,
    inners: usize,
}

/// The tree.
#[derive(Clone)]
pub(super) struct Tree {
    root: Node,
    len: usize,
    nodes: Nodes,
}

impl Tree {
    pub(super) fn new() -> Self {
        let root = Node::Leaf(Box::new(Leaf::empty()));
        Self { root, len: 0, nodes: Nodes { leaves: 1, inners: 0 } }
    }
    pub(super) const fn len(&self) -> usize {
        self.len
    }
    pub(super) const fn memory_bytes(&self) -> usize {
        self.nodes.leaves * size_of::<Leaf>() + self.nodes.inners * size_of::<Inner>()
    }
    /// Inserts before the first element for which `before` does not hold; it is asked only about equal scores.
    pub(super) fn insert(&mut self, item: Item, before: impl FnMut(Item) -> bool) {
        let mut seek = ToScore { score: item.score, before, is_there: false };
        if let Some(right) = self.root.insert(&mut seek, item, &mut self.nodes) {
            let mut inner = Inner::empty();
            let left = std::mem::replace(&mut self.root, Node::Leaf(Box::new(Leaf::empty())));
            inner.insert(0, left);
            inner.insert(1, right);
            self.root = Node::Inner(Box::new(inner));
            self.nodes.inners += 1;
        }
        self.len += 1;
    }
    /// Removes the last element for which `holds` does, which is there and has this score; it is asked only about equal
    /// scores.
    pub(super) fn remove(&mut self, score: f64, holds: impl FnMut(Item) -> bool) -> Option<Item> {
        self.remove_by(&mut ToScore { score, before: holds, is_there: true })
    }
    /// Asks for the leaf where a score belongs.
    pub(super) fn ask_for(&self, score: f64) {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf.prefetch(),
                Node::Inner(inner) => {
                    let below = below(inner.heads().iter().map(|head| head.score), score);
                    node = inner.child(below.saturating_sub(1));
                }
            }
        }
    }
    /// Removes the element of a rank.
    pub(super) fn remove_at(&mut self, rank: usize) -> Option<Item> {
        let mut seek = self.by_rank(rank);
        self.remove_by(&mut seek)
    }
    fn remove_by(&mut self, seek: &mut impl Seek) -> Option<Item> {
        let item = self.root.remove(seek, &mut self.nodes)?;
        self.len -= 1;
        while let Node::Inner(inner) = &mut self.root
            && inner.len() < 2
        {
            self.nodes.inners -= 1;
            self.root = if inner.len() == 1 {
                inner.remove(0)
            } else {
                self.nodes.leaves += 1;
                Node::Leaf(Box::new(Leaf::empty()))
            };
        }
        Some(item)
    }
    /// Lends the handles of all elements in the leaf of a rank, to be changed for others of the same elements. Returns
    /// how many of them stand before that rank.
    pub(super) fn change_handles(&mut self, rank: usize, change: impl FnOnce(&mut [u32])) -> usize {
        let mut seek = self.by_rank(rank);
        self.root.change_handles(&mut seek, change)
    }
    /// The handles of some elements from an end, counted from there; those of the leaf at that end only.
    pub(super) fn near_end<const N: usize>(&self, last: bool, places: [usize; N]) -> [Option<Handle>; N] {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(leaf) => {
                    return places.map(|place| {
                        let place = if last { leaf.len().checked_sub(place + 1)? } else { place };
                        (place < leaf.len()).then(|| leaf.at(place).handle)
                    });
                }
                Node::Inner(inner) => node = inner.child(if last { inner.len() - 1 } else { 0 }),
            }
        }
    }
    /// How many elements there are before the first for which `before` does not hold.
    pub(super) fn count(&self, before: impl FnMut(Item) -> bool) -> usize {
        let mut seek = FirstNot(before);
        let mut rank = 0;
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(leaf) => return rank + seek.place(leaf),
                Node::Inner(inner) => {
                    let index = seek.child(inner.heads());
                    rank += inner.heads[..index].iter().map(|head| head.count as usize).sum::<usize>();
                    node = inner.child(index);
                }
            }
        }
    }
    fn by_rank(&self, rank: usize) -> ByRank {
        ByRank { rank: rank.min(self.len), len: self.len }
    }
    /// The elements from a rank on.
    pub(super) fn iter_from(&self, rank: usize) -> Walk<'_> {
        Walk::new(&self.root, self.by_rank(rank))
    }
    /// The elements before a rank, backwards.
    pub(super) fn iter_back_from(&self, rank: usize) -> impl Iterator<Item = Item> + '_ {
        let mut walk = Walk::new(&self.root, self.by_rank(rank));
        std::iter::from_fn(move || walk.back())
    }
    /// Shows the elements of some ranks, forwards or backwards. `ask` is told of each a while before, so that what its
    /// handle names can be asked for.
    pub(super) fn visit(
        &self,
        ranks: Range<usize>,
        back: bool,
        ask: impl Fn(Handle),
        mut visit: impl FnMut(Item),
    ) {
        let end = ranks.end.min(self.len);
        let mut left = end.saturating_sub(ranks.start);
        let mut walk = Walk::new(&self.root, self.by_rank(if back { end } else { ranks.start }));
        while left > 0 {
            let leaf_end = if back { 0 } else { walk.leaf.len() };
            if walk.place == leaf_end && walk.turn(!back).is_none() {
                return;
            }
            walk.ask_for_next(!back);
            let (leaf, place) = (walk.leaf, walk.place);
            let places = if back {
                place.saturating_sub(left)..place
            } else {
                place..leaf.len().min(place.saturating_add(left))
            };
            let (first, count) = (places.start, places.len());
            // The nth of them in the order in which they are shown.
            let nth = |n: usize| if back { first + count - 1 - n } else { first + n };
            (0..count.min(ASK_AHEAD)).for_each(|n| ask(leaf.at(nth(n)).handle));
            for n in 0..count {
                if n + ASK_AHEAD < count {
                    ask(leaf.at(nth(n + ASK_AHEAD)).handle);
                }
                visit(leaf.at(nth(n)));
            }
            walk.place = if back { first } else { first + count };
            left -= count;
        }
    }
    /// Frees up to `leaves` leaves from the end of a tree that nobody uses any more. Returns whether that was all.
    pub(super) fn free_step(&mut self, leaves: usize) -> bool {
        for _ in 0..leaves {
            let mut node = &mut self.root;
            loop {
                let Node::Inner(inner) = node else { return true };
                let Some(last) = inner.len().checked_sub(1) else { return true };
                let is_bottom = match inner.child(last) {
                    Node::Leaf(_) => true,
                    Node::Inner(below) => below.len() == 0,
                };
                if is_bottom {
                    if matches!(inner.remove(last), Node::Leaf(_)) {
                        self.nodes.leaves -= 1;
                    } else {
                        self.nodes.inners -= 1;
                    }
                    break;
                }
                node = inner.child_mut(last);
            }
        }
        matches!(&self.root, Node::Inner(inner) if inner.len() == 0)
    }
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut nodes = Nodes::default();
        check(&self.root, &mut nodes, true);
        assert_eq!((nodes.leaves, nodes.inners), (self.nodes.leaves, self.nodes.inners));
        assert_eq!(self.root.head().count as usize, self.len);
    }
}

#[cfg(test)]
fn check(node: &Node, nodes: &mut Nodes, root: bool) {
    assert!(root || node.len() > 0);
    match node {
        Node::Leaf(leaf) => {
            nodes.leaves += 1;
            assert!(leaf.scores[leaf.start as usize..][..leaf.len()].is_sorted());
        }
        Node::Inner(inner) => {
            nodes.inners += 1;
            for index in 0..inner.len() {
                let (head, real) = (inner.heads[index], inner.child(index).head());
                assert_eq!((head.item(), head.count), (real.item(), real.count));
                check(inner.child(index), nodes, false);
            }
        }
    }
}
