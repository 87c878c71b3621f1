//! Owns: one shard's slots for entries up to 1,152 bytes: size classes 8 bytes apart, spans with room by class, and
//! evacuating sparse spans. Does not own: spans' memory (`pages`), what is in a slot, the references to it.
//!
//! Stock allocators have 4 to 8 classes a doubling, so they lose 6 to 12 % to rounding; here it is at most 7 bytes. The
//! price is one half-filled span for each class and shard, which is too much when every size is rare: 1,000 entries of
//! random sizes in 140 classes would leave half of the memory empty. So only a class that has many of the recent
//! allocations opens spans of its own; the others share the coarse classes, of which a page holds a whole number
//! (1024, 816, 680, 584, 512, …), about 20 above 128 bytes. Measured with random sizes of 1 to 1,000 bytes: see
//! the example's `churn`.
//!
//! The same price comes later when sizes go out of use: each leaves a span with few live slots in each shard. So while
//! a slab holds much more than is used, even the last span of a class that does not grow is emptied, into room that
//! other classes have.

pub(crate) mod os;
pub(crate) mod pages;
pub(crate) mod runs;
pub(crate) mod span;

use pages::{PAGE_BYTES, PageSource, desc_of};
use span::{
    CLASSES, COARSE_OF, Desc, NO_SLOT, PAGES_OF, SLOT_BYTES_MIN, SLOTS_OF, class_of, free_word, is_live,
    next_free,
};
use std::ptr::NonNull;

/// A class with this many of the last 256 to 512 allocations that found no room has spans of its own.
const DEMAND_OWN_MIN: u8 = 16;
/// So has a class that fills this many already.
const SPANS_OWN_MIN: u32 = 2;
/// Spans of a class that are looked at to find a sparse one.
const SPARSE_LOOK_MAX: usize = 64;
/// A slab is wasteful when it holds so many bytes beyond those that are used, and so large a part of what it holds.
const WASTE_BYTES_MIN: usize = 4 * PAGE_BYTES;
const WASTE_PART_MIN: usize = 8;
/// A span of a class that does not grow is worth emptying when 1 in so many of its slots are free.
const WANING_FREE_PART: u32 = 4;
/// A slot that is moved into the room of another class may be larger by 1 in so many.
const ROOM_LOSS_PART: usize = 5;

#[derive(Clone, Copy, Default)]
struct Class {
    /// Spans with room; the one allocated from is the first.
    room: Option<NonNull<Desc>>,
    spans: u32,
    used: u32,
    /// What `used` was when the class was last looked at.
    seen: u32,
    /// What `used` was when emptying a span has won nothing.
    settled: u32,
}

/// A span being emptied, and how far.
struct Evacuation {
    span: NonNull<u8>,
    desc: NonNull<Desc>,
    /// Next slot to look at, in 8-byte units.
    at: u16,
    /// Bytes of all pages before it began.
    held_bytes: usize,
}

/// What was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Live slots.
    pub(crate) slots: usize,
    /// What they hold.
    pub(crate) bytes: usize,
}

/// The slab of one shard. All calls must come with the same page source.
pub(crate) struct Slab {
    classes: Box<[Class; CLASSES]>,
    /// Recent allocations that found no room in their class, halved every 256.
    demand: Box<[u8; CLASSES]>,
    demands: u8,
    used_bytes: usize,
    /// Bytes of the pages of all spans.
    held_bytes: usize,
    evacuation: Option<Evacuation>,
    /// The class at which the search for sparse spans goes on.
    look_at: usize,
}

// SAFETY: the pointers lead to descriptors of spans that this slab alone holds.
unsafe impl Send for Slab {}

impl Slab {
    pub(crate) fn new() -> Self {
        Self {
            classes: Box::new([Class::default(); CLASSES]),
            demand: Box::new([0; CLASSES]),
            demands: 0,
            used_bytes: 0,
            held_bytes: 0,
            evacuation: None,
            look_at: 0,
        }
    }
    /// Bytes of live slots.
    pub(crate) const fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// A slot of at least `bytes` (`SLOT_BYTES_MIN` to `SLOT_BYTES_MAX`): about 5 ns, and a page source's lock once a
    /// span.
    #[inline]
    pub(crate) fn alloc(&mut self, bytes: usize, source: &PageSource) -> NonNull<u8> {
        debug_assert!((SLOT_BYTES_MIN..=span::SLOT_BYTES_MAX).contains(&bytes));
        let class = class_of(bytes);
        match self.classes[class].room {
            Some(desc) => self.alloc_from(desc),
            None => self.alloc_elsewhere(class, source),
        }
    }

    #[cold]
    fn alloc_elsewhere(&mut self, class: usize, source: &PageSource) -> NonNull<u8> {
        let coarse = COARSE_OF[class] as usize;
        let owns = self.owns(class);
        // What is left of a coarse page is used up first in any case.
        let desc = match self.classes[coarse].room {
            Some(desc) => desc,
            None => self.open_span(if owns { class } else { coarse }, source),
        };
        self.alloc_from(desc)
    }

    /// Counts an allocation that has found no room in its class, and decides whether the class gets a span of its own.
    fn owns(&mut self, class: usize) -> bool {
        self.demands = self.demands.wrapping_add(1);
        if self.demands == 0 {
            self.demand.iter_mut().for_each(|demand| *demand /= 2);
        }
        self.demand[class] = self.demand[class].saturating_add(1);
        let many = u32::from(SLOTS_OF[class]) * SPANS_OWN_MIN;
        self.demand[class] >= DEMAND_OWN_MIN || self.classes[class].used >= many
    }

    fn open_span(&mut self, class: usize, source: &PageSource) -> NonNull<Desc> {
        let pages = PAGES_OF[class] as usize;
        let span = source.take(pages);
        let (desc, _) = desc_of(span);
        for page in 0..pages {
            let value = if page == 0 { Desc::for_span(class) } else { Desc::for_page(class, page) };
            // SAFETY: the span's descriptors follow each other in its region and belong to whoever holds the span.
            unsafe { desc.add(page).write(value) };
        }
        self.classes[class].spans += 1;
        self.held_bytes += pages * PAGE_BYTES;
        self.link(desc);
        desc
    }

    #[inline]
    fn alloc_from(&mut self, mut at: NonNull<Desc>) -> NonNull<u8> {
        // SAFETY: descriptors in this slab's lists are of spans it holds; no other reference to one exists now.
        let desc = unsafe { at.as_mut() };
        let class = desc.class as usize;
        let base = span_of(at);
        let unit = if desc.free == NO_SLOT { desc.carved } else { desc.free };
        // SAFETY: a listed span has room: the unit is that of a free slot, or of the first one never used.
        let slot = unsafe { base.add(unit as usize * 8) };
        if desc.free == NO_SLOT {
            desc.carved += class as u16;
        } else {
            // SAFETY: a free slot begins with the word that `free` wrote.
            desc.free = next_free(unsafe { slot.cast::<u64>().read() });
        }
        desc.used += 1;
        let full = desc.full();
        self.classes[class].used += 1;
        self.used_bytes += class * 8;
        if full {
            self.unlink(at);
        }
        slot
    }

    /// Frees a slot; a span that becomes empty goes back to the source.
    ///
    /// # Safety
    /// `slot` came from this slab's `alloc` and is not used any more.
    #[inline]
    pub(crate) unsafe fn free(&mut self, slot: NonNull<u8>, source: &PageSource) {
        let mut at = first_desc(slot);
        // SAFETY: by the contract the slot lies in a span of this slab; no other reference to its descriptor exists
        // now.
        let desc = unsafe { at.as_mut() };
        let class = desc.class as usize;
        let base = span_of(at);
        let was_full = desc.full();
        let unit = (slot.as_ptr() as usize - base.as_ptr() as usize) / 8;
        #[cfg(debug_assertions)]
        // SAFETY: the slot is ours and class·8 bytes long. The pattern makes a use after free show itself in tests.
        unsafe {
            slot.write_bytes(0xdd, class * 8);
        }
        // SAFETY: the slot is ours, at least 16 bytes long and 8-aligned.
        unsafe { slot.cast::<u64>().write(free_word(desc.free)) };
        desc.free = unit as u16;
        desc.used -= 1;
        let (empty, listed) = (desc.used == 0, desc.listed());
        self.classes[class].used -= 1;
        self.used_bytes -= class * 8;
        if empty {
            self.close_span(at, source);
        } else if was_full && !listed && !self.evacuates(at) {
            self.link(at);
        }
    }

    fn evacuates(&self, desc: NonNull<Desc>) -> bool {
        self.evacuation.as_ref().is_some_and(|evacuation| evacuation.desc == desc)
    }

    #[cold]
    fn close_span(&mut self, at: NonNull<Desc>, source: &PageSource) {
        // SAFETY: the descriptor is of a span that this slab holds.
        let (class, listed) = unsafe { (at.as_ref().class as usize, at.as_ref().listed()) };
        if listed {
            self.unlink(at);
        }
        let pages = PAGES_OF[class] as usize;
        self.classes[class].spans -= 1;
        self.held_bytes -= pages * PAGE_BYTES;
        if self.evacuates(at) {
            let before = self.evacuation.take().map_or(0, |evacuation| evacuation.held_bytes);
            if self.held_bytes >= before {
                self.classes[class].settled = self.classes[class].used;
            }
        }
        // SAFETY: the span was taken from this source with this length, and its last slot has just been freed.
        unsafe { source.give(span_of(at), pages) };
    }

    fn link(&mut self, mut at: NonNull<Desc>) {
        // SAFETY: `at` and the list's head are descriptors of spans of this slab, and different ones.
        unsafe {
            let desc = at.as_mut();
            let class = &mut self.classes[desc.class as usize];
            desc.set_listed(true);
            desc.prev = None;
            desc.next = class.room;
            if let Some(mut head) = class.room {
                head.as_mut().prev = Some(at);
            }
            class.room = Some(at);
        }
    }

    fn unlink(&mut self, mut at: NonNull<Desc>) {
        // SAFETY: `at` is listed, so it and its neighbours are descriptors of spans of this slab, all different.
        unsafe {
            let desc = at.as_mut();
            let class = &mut self.classes[desc.class as usize];
            match desc.prev {
                Some(mut prev) => prev.as_mut().next = desc.next,
                None => class.room = desc.next,
            }
            if let Some(mut next) = desc.next {
                next.as_mut().prev = desc.prev;
            }
            (desc.next, desc.prev) = (None, None);
            desc.set_listed(false);
        }
    }

    /// Whether much more is held than is used.
    const fn is_wasteful(&self) -> bool {
        let waste = self.held_bytes - self.used_bytes;
        waste >= WASTE_BYTES_MIN && waste * WASTE_PART_MIN >= self.held_bytes
    }

    /// Chooses a span to empty, if one is being emptied already or some class has more free slots than a span and than
    /// 1/10 of its slots; in a wasteful slab also one with room, of a class that has not grown since the last look, if
    /// less is held then. Looks at at most 64 spans of a class. Returns whether there is one.
    pub(crate) fn choose_sparse(&mut self) -> bool {
        if self.evacuation.is_some() {
            return true;
        }
        let wasteful = self.is_wasteful();
        for _ in 0..CLASSES {
            self.look_at = if self.look_at + 1 < CLASSES { self.look_at + 1 } else { 2 };
            let class = self.look_at;
            let Class { spans, used, seen, settled, .. } = self.classes[class];
            self.classes[class].seen = used;
            let slots = u32::from(SLOTS_OF[class]);
            let free = spans * slots - used;
            let several = free > slots && free * 10 >= spans * slots;
            let waning = wasteful && used <= seen && used != settled && free * WANING_FREE_PART >= slots;
            if !several && !waning {
                continue;
            }
            let Some(desc) = self.sparsest(class) else { continue };
            // SAFETY: a listed descriptor is of a span that this slab holds.
            let live = u32::from(unsafe { desc.as_ref().used });
            if !several && ((slots - live) * WANING_FREE_PART < slots || !self.others_have_room(class, live))
            {
                continue;
            }
            self.unlink(desc);
            let held_bytes = self.held_bytes;
            self.evacuation = Some(Evacuation { span: span_of(desc), desc, at: 0, held_bytes });
            // The next search looks at this class first: one evacuation is seldom enough.
            self.look_at = class - 1;
            return true;
        }
        false
    }

    /// Whether a span's live slots go elsewhere and less is held then: into other spans of their class, or of those
    /// that are little larger, or into new ones of the coarse class, which are shorter.
    fn others_have_room(&self, class: usize, live: u32) -> bool {
        let free = |class: usize| {
            let Class { spans, used, .. } = self.classes[class];
            spans * u32::from(SLOTS_OF[class]) - used
        };
        let own = free(class) - (u32::from(SLOTS_OF[class]) - live);
        let coarse = COARSE_OF[class] as usize;
        let shorter = if coarse == class {
            0
        } else {
            // One page less than the span has.
            u32::from(PAGES_OF[class] - 1) / u32::from(PAGES_OF[coarse]) * u32::from(SLOTS_OF[coarse])
        };
        own + shorter + (class + 1..=largest_near(class)).map(free).sum::<u32>() >= live
    }

    /// A slot for what is moved out of a span of `from`: room that there is, a little larger if need be, before a new
    /// span, which is one of the coarse class.
    fn alloc_moved(&mut self, bytes: usize, from: usize, source: &PageSource) -> NonNull<u8> {
        let class = class_of(bytes);
        let near = (class..=largest_near(class)).chain([from]).find_map(|class| self.classes[class].room);
        let desc = near.unwrap_or_else(|| self.open_span(COARSE_OF[class] as usize, source));
        self.alloc_from(desc)
    }

    fn sparsest(&self, class: usize) -> Option<NonNull<Desc>> {
        let mut best: Option<(u16, NonNull<Desc>)> = None;
        let mut at = self.classes[class].room;
        for _ in 0..SPARSE_LOOK_MAX {
            let Some(desc) = at else { break };
            // SAFETY: listed descriptors are of spans of this slab.
            let (used, next) = unsafe { (desc.as_ref().used, desc.as_ref().next) };
            if best.is_none_or(|(fewest, _)| used < fewest) {
                best = Some((used, desc));
            }
            at = next;
        }
        best.map(|(_, desc)| desc)
    }

    /// Moves up to `slots_max` live slots out of the span that [`Slab::choose_sparse`] chose. `bytes_of` says how many
    /// bytes a slot was asked for with; its class may be a larger one. For each, `moved(old, new)` must make the one
    /// reference to `old` point to `new`, which already has the same bytes. Returns how many slots were moved, and
    /// their bytes.
    ///
    /// # Safety
    /// `bytes_of` says at least what is in use of a slot, and at most its size. Every live slot's one reference is
    /// known to `moved`, and nothing else points into the slots.
    pub(crate) unsafe fn evacuate(
        &mut self,
        slots_max: usize,
        source: &PageSource,
        bytes_of: impl Fn(NonNull<u8>) -> usize,
        mut moved: impl FnMut(NonNull<u8>, NonNull<u8>),
    ) -> Moved {
        let mut done = Moved::default();
        while done.slots < slots_max {
            let Some(Evacuation { span, desc, at, .. }) = &mut self.evacuation else { break };
            let (span, desc) = (*span, *desc);
            // SAFETY: the span under evacuation is held by this slab.
            let (class, carved) = unsafe { (desc.as_ref().class, desc.as_ref().carved) };
            if *at >= carved {
                // Everything live has been moved, so the last free has closed the span; a new entry cannot have come.
                break;
            }
            // SAFETY: the unit is that of a carved slot of the span.
            let old = unsafe { span.add(*at as usize * 8) };
            *at += u16::from(class);
            // SAFETY: a carved slot's first word is an entry's header or a free word.
            if !is_live(unsafe { old.cast::<u64>().read() }) {
                continue;
            }
            let bytes = class_of(bytes_of(old).max(SLOT_BYTES_MIN)) * 8;
            debug_assert!(bytes <= class as usize * 8);
            let new = self.alloc_moved(bytes, class as usize, source);
            // SAFETY: both slots are live, different, and of at least this size.
            unsafe { new.copy_from_nonoverlapping(old, bytes) };
            moved(old, new);
            // SAFETY: the reference to `old` now points to `new`.
            unsafe { self.free(old, source) };
            done.slots += 1;
            done.bytes += bytes;
        }
        done
    }
}

/// The largest class whose slots may take what is moved out of a class.
const fn largest_near(class: usize) -> usize {
    let largest = class + class / ROOM_LOSS_PART;
    if largest < CLASSES { largest } else { CLASSES - 1 }
}

/// The descriptor of the span that an address lies in.
#[inline]
fn first_desc(slot: NonNull<u8>) -> NonNull<Desc> {
    let (desc, _) = desc_of(slot);
    // SAFETY: a span's later pages count back to its first page's descriptor, which lies before theirs.
    unsafe { desc.sub(desc.as_ref().pages_back()) }
}

/// The first byte of the span of a first descriptor.
#[inline]
fn span_of(desc: NonNull<Desc>) -> NonNull<u8> {
    let address = desc.as_ptr() as usize;
    let base = address & !(pages::REGION_BYTES - 1);
    let page = (address - base) / size_of::<Desc>();
    let first = desc.as_ptr().cast::<u8>().map_addr(|_| base + page * PAGE_BYTES);
    // SAFETY: an address inside a region is not null.
    unsafe { NonNull::new_unchecked(first) }
}

#[cfg(test)]
mod tests;
