//! Owns: walking over a sorted set's tree from a rank on, in both directions. Does not own: what it shows.

use super::{ByRank, Inner, Item, Leaf, Node, Seek};

/// A place in the tree, and the way to it.
pub(in crate::sorted_set) struct Walk<'t> {
    path: Vec<(&'t Inner, usize)>,
    pub(super) leaf: &'t Leaf,
    pub(super) place: usize,
}

impl<'t> Walk<'t> {
    pub(super) fn new(root: &'t Node, mut seek: ByRank) -> Self {
        let mut path = Vec::with_capacity(6);
        let mut node = root;
        loop {
            match node {
                Node::Leaf(leaf) => return Self { path, leaf, place: seek.place(leaf) },
                Node::Inner(inner) => {
                    let index = seek.child(inner.heads());
                    path.push((inner, index));
                    node = inner.child(index);
                }
            }
        }
    }
    /// Goes to the next leaf, or the one before.
    pub(super) fn turn(&mut self, forward: bool) -> Option<()> {
        let mut node = loop {
            let (inner, index) = self.path.last_mut()?;
            let next = if forward { *index + 1 } else { index.wrapping_sub(1) };
            if next < inner.len() {
                *index = next;
                break inner.child(next);
            }
            self.path.pop();
        };
        loop {
            match node {
                Node::Leaf(leaf) => {
                    self.leaf = leaf;
                    self.place = if forward { 0 } else { leaf.len() };
                    return Some(());
                }
                Node::Inner(inner) => {
                    let index = if forward { 0 } else { inner.len() - 1 };
                    self.path.push((inner, index));
                    node = inner.child(index);
                }
            }
        }
    }
    /// Asks for the leaf that comes next, if it has the same parent.
    pub(super) fn ask_for_next(&self, forward: bool) {
        let Some((inner, index)) = self.path.last() else { return };
        let next = if forward { *index + 1 } else { index.wrapping_sub(1) };
        if next < inner.len()
            && let Node::Leaf(leaf) = inner.child(next)
        {
            leaf.prefetch();
        }
    }
    pub(super) fn back(&mut self) -> Option<Item> {
        if self.place == 0 {
            self.turn(false)?;
        }
        self.place -= 1;
        Some(self.leaf.at(self.place))
    }
}

impl Iterator for Walk<'_> {
    type Item = Item;
    fn next(&mut self) -> Option<Item> {
        if self.place == self.leaf.len() {
            self.turn(true)?;
        }
        let item = self.leaf.at(self.place);
        self.place += 1;
        Some(item)
    }
}
