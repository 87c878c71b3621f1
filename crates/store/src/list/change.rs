//! Owns: every way to change a list. Each tells what it does and what takes it back, if anybody wants to know
//! (`crate::recorder`). Does not own: the structure.

use super::{End, List, ListLimit, ListRef};
use crate::effect::Effect;
use crate::recorder::Pen;
use crate::undo::Undo;

/// A list, to be changed. The limit is `list-max-listpack-size`, which CONFIG SET may have changed since it was made.
#[derive(Debug)]
pub struct ListMut<'a> {
    list: &'a mut List,
    limit: ListLimit,
    pen: Option<Pen<'a>>,
}

impl<'a> ListMut<'a> {
    /// To change a list that is not in a shard: when a value is built before it is set.
    pub const fn new(list: &'a mut List, limit: ListLimit) -> Self {
        Self { list, limit, pen: None }
    }
    pub(crate) const fn with(list: &'a mut List, limit: ListLimit, pen: Option<Pen<'a>>) -> Self {
        Self { list, limit, pen }
    }
    /// To read it.
    #[must_use]
    pub fn view(&self) -> ListRef<'_> {
        self.list.view()
    }
    /// Elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.list.len()
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
    /// Whether it is one chunk, a `listpack`.
    #[must_use]
    pub const fn is_compact(&self) -> bool {
        self.list.is_compact()
    }
    /// Makes a compact list a row of chunks if `count` more elements of `bytes` together are too much for it. What adds
    /// several elements at once calls it before the first.
    pub fn expect(&mut self, bytes: usize, count: usize) {
        self.list.expect(bytes, count, self.limit);
    }
    /// Adds an element at an end: O(1) amortised.
    pub fn push(&mut self, end: End, element: &[u8]) {
        self.list.push(end, element, self.limit);
        if let Some(pen) = &mut self.pen {
            pen.tell(&Effect::ListPush { end, element });
            if pen.undoes() {
                pen.undo(Undo::ListPop(end, self.limit));
            }
        }
    }
    /// Removes the element at an end after showing it to `taken`: O(1) amortised.
    pub fn pop<R>(&mut self, end: End, taken: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if self.pen.is_none() {
            return self.list.pop(end, self.limit, taken);
        }
        let element = self.keep(|list| list.peek(end));
        let result = self.list.pop(end, self.limit, taken)?;
        self.told(&Effect::ListPop { end, count: 1 });
        self.removed(element, |element, limit| Undo::ListPush(end, element, limit));
        Some(result)
    }
    /// Replaces the element at `index`. Says whether there is one.
    pub fn set(&mut self, index: usize, element: &[u8]) -> bool {
        if self.pen.is_none() {
            return self.list.set(index, element, self.limit);
        }
        let before = self.keep(|list| list.get(index));
        let is_set = self.list.set(index, element, self.limit);
        if is_set {
            self.told(&Effect::ListSet { index: index as u64, element });
            self.removed(before, |element, limit| Undo::ListSet(index, element, limit));
        }
        is_set
    }
    /// Inserts before `index` (at most `len`). A full chunk is split there.
    pub fn insert(&mut self, index: usize, element: &[u8]) {
        self.list.insert(index, element, self.limit);
        if let Some(pen) = &mut self.pen {
            pen.tell(&Effect::ListInsert { index: index as u64, element });
            if pen.undoes() {
                pen.undo(Undo::ListRemove(index, self.limit));
            }
        }
    }
    /// Removes elements equal to `element`: `count` from the front, −`count` from the back, all for 0. Returns how
    /// many.
    pub fn remove(&mut self, count: i64, element: &[u8]) -> usize {
        let places = if self.pen.is_some() { self.places(count, element) } else { Vec::new() };
        let removed = self.list.remove(count, element, self.limit);
        // From the last one on, so that each stands where it stood.
        for &index in &places {
            self.told(&Effect::ListRemove { index: index as u64 });
        }
        let kept = self.keeps().then(|| Box::from(element));
        for index in places {
            self.removed(kept.clone(), |element, limit| Undo::ListInsert(index, element, limit));
        }
        removed
    }
    /// Where the elements stand that [`ListMut::remove`] removes, descending.
    #[cold]
    fn places(&self, count: i64, element: &[u8]) -> Vec<usize> {
        let equal = self.view().iter().enumerate().filter(|(_, other)| *other == element);
        let mut places: Vec<usize> = equal.map(|(index, _)| index).collect();
        let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match count {
            1.. => places.truncate(wanted),
            0 => {}
            _ => drop(places.drain(..places.len().saturating_sub(wanted))),
        }
        places.reverse();
        places
    }
    /// Removes the element at `index`, if there is one.
    pub fn remove_at(&mut self, index: usize) {
        let element = self.keep(|list| list.get(index));
        if index < self.list.len() {
            self.list.remove_at(index, self.limit);
            self.told(&Effect::ListRemove { index: index as u64 });
            self.removed(element, |element, limit| Undo::ListInsert(index, element, limit));
        }
    }
    /// Keeps the elements `start..end`.
    pub fn trim(&mut self, start: usize, end: usize) {
        if self.pen.is_none() {
            return self.list.trim(start, end, self.limit);
        }
        let len = self.list.len();
        let end = end.min(len);
        let (front, back) = if start < end { (start, len - end) } else { (0, len) };
        let kept: Vec<Box<[u8]>> = if self.keeps() {
            // In the order in which pops would give them: the back from the last one on, then the front.
            let behind = self.view().iter_back_from(len).take(back);
            behind.chain(self.view().iter().take(front)).map(Box::from).collect()
        } else {
            Vec::new()
        };
        self.list.trim(start, end, self.limit);
        for (end, count) in [(End::Back, back), (End::Front, front)] {
            if count > 0 {
                self.told(&Effect::ListPop { end, count: count as u64 });
            }
        }
        for (at, element) in kept.into_iter().enumerate() {
            let end = if at < back { End::Back } else { End::Front };
            self.removed(Some(element), |element, limit| Undo::ListPush(end, element, limit));
        }
    }

    fn keeps(&self) -> bool {
        self.pen.as_ref().is_some_and(Pen::undoes)
    }
    /// An element that is about to go, if it may have to come back.
    fn keep(&self, element: impl FnOnce(&List) -> Option<&[u8]>) -> Option<Box<[u8]>> {
        self.keeps().then(|| element(self.list)).flatten().map(Box::from)
    }
    fn told(&mut self, effect: &Effect<'_>) {
        if let Some(pen) = &mut self.pen {
            pen.tell(effect);
        }
    }
    /// An element is gone.
    fn removed(&mut self, element: Option<Box<[u8]>>, undo: impl FnOnce(Box<[u8]>, ListLimit) -> Undo) {
        if let (Some(pen), Some(element)) = (&mut self.pen, element) {
            pen.undo(undo(element, self.limit));
        }
    }
}

impl ListRef<'_> {
    /// See [`crate::value::ObjectRef::tell_piece`]: places are chunks, which are told whole.
    pub(crate) fn tell_piece(self, pen: &mut Pen<'_>, from: u64, bytes_max: usize) -> Option<u64> {
        for at in from as usize..self.chunk_count() {
            if pen.told_bytes() >= bytes_max {
                return Some(at as u64);
            }
            let chunk = self.chunk(at);
            let mut offset = chunk.first_offset();
            while let Some((element, next)) = chunk.element(offset) {
                pen.tell(&Effect::ListPush { end: End::Back, element });
                offset = next;
            }
        }
        None
    }
}

impl List {
    /// Takes a change back.
    pub(crate) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::ListPop(end, limit) => drop(self.pop(end, limit, |_| ())),
            Undo::ListPush(end, element, limit) => self.push(end, &element, limit),
            Undo::ListSet(index, element, limit) => drop(self.set(index, &element, limit)),
            Undo::ListInsert(index, element, limit) => self.insert(index, &element, limit),
            Undo::ListRemove(index, limit) => self.remove_at(index, limit),
            _ => debug_assert!(false, "only what a list does"),
        }
        // A compact list is kept as a whole, so this was a row of chunks, which it may not be when it is short.
        self.row();
    }
}
