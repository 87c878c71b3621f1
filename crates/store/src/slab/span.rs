//! Owns: the shape of a span: its descriptor, the size classes, and how many pages each class takes. Does not own:
//! lists of spans (`crate::slab`), memory (`pages`).
//!
//! A span's slots are all of one class. A free slot keeps its neighbour in the free list in its first word, in a form
//! that no live entry can have, so a walk over a span tells the two apart:
//!
//! ```text
//!   live:  | kind 1..15 in the low 4 bits | rest of the entry's header |
//!   free:  | 0 in the low 8 bits | next free slot, in 8-byte units, bits 16..32 |
//! ```

use super::pages::PAGE_BYTES;
use std::ptr::NonNull;

/// The smallest slot: two words of a free one.
pub(crate) const SLOT_BYTES_MIN: usize = 16;
/// The largest slot: a 1 KiB value with a key of up to 120 bytes still fits.
pub(crate) const SLOT_BYTES_MAX: usize = 1152;
/// Classes are 8 bytes apart; class c has slots of 8·c bytes. The smallest in use is 2.
pub(crate) const CLASSES: usize = SLOT_BYTES_MAX / 8 + 1;
/// The longest span: 32 KiB.
pub(crate) const SPAN_PAGES_MAX: usize = 8;
/// The end of a free list.
pub(crate) const NO_SLOT: u16 = u16::MAX;

/// What is known of one page; for a span, its first page's descriptor counts.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Desc {
    /// Neighbours in the list of spans with room.
    pub(crate) next: Option<NonNull<Desc>>,
    pub(crate) prev: Option<NonNull<Desc>>,
    /// Live slots.
    pub(crate) used: u16,
    /// First free slot in 8-byte units, or `NO_SLOT`.
    pub(crate) free: u16,
    /// Slots at or after this (in 8-byte units) have never been used.
    pub(crate) carved: u16,
    pub(crate) class: u8,
    /// Pages from the span's first to this one, in the low 4 bits; bit 7: not in the list (full or being evacuated).
    pub(crate) back: u8,
}
const _: () = assert!(size_of::<Desc>() == 24 && CLASSES <= 256);

const UNLISTED: u8 = 0x80;

impl Desc {
    /// Descriptor 0 of a region: keeps the region's index where a span keeps its counts.
    pub(crate) const fn for_region(index: usize) -> Self {
        let (low, high) = (index as u16, (index >> 16) as u16);
        Self { next: None, prev: None, used: low, free: high, carved: 0, class: 0, back: 0 }
    }
    /// The index that `for_region` was given.
    pub(crate) const fn region_index(&self) -> usize {
        self.used as usize | (self.free as usize) << 16
    }
    /// An empty span's first descriptor.
    pub(crate) const fn for_span(class: usize) -> Self {
        Self { next: None, prev: None, used: 0, free: NO_SLOT, carved: 0, class: class as u8, back: UNLISTED }
    }
    /// The descriptor of a span's later page.
    pub(crate) const fn for_page(class: usize, back: usize) -> Self {
        Self {
            next: None,
            prev: None,
            used: 0,
            free: NO_SLOT,
            carved: 0,
            class: class as u8,
            back: back as u8,
        }
    }
    pub(crate) const fn pages_back(&self) -> usize {
        (self.back & 0x0f) as usize
    }
    pub(crate) const fn listed(&self) -> bool {
        self.back & UNLISTED == 0
    }
    pub(crate) const fn set_listed(&mut self, listed: bool) {
        self.back = if listed { 0 } else { UNLISTED };
    }
    pub(crate) const fn full(&self) -> bool {
        self.used as usize == SLOTS_OF[self.class as usize] as usize
    }
}

/// The class of an allocation of `bytes`.
#[inline]
pub(crate) const fn class_of(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

/// Pages in a span of each class: the fewest that lose at most 1/40 to the tail, or else those that lose least.
pub(crate) static PAGES_OF: [u8; CLASSES] = {
    let mut pages_of = [1; CLASSES];
    let mut class = 2;
    while class < CLASSES {
        let mut best_loss = usize::MAX;
        let mut pages = 1;
        while pages <= SPAN_PAGES_MAX {
            let bytes = pages * PAGE_BYTES;
            // The tail in 1/1024 of the span.
            let loss = (bytes % (class * 8)) * 1024 / bytes;
            if loss < best_loss && best_loss > 1024 / 40 {
                best_loss = loss;
                pages_of[class] = pages as u8;
            }
            pages += 1;
        }
        class += 1;
    }
    pages_of
};

/// Slots in a span of each class.
pub(crate) static SLOTS_OF: [u16; CLASSES] = {
    let mut slots_of = [0; CLASSES];
    let mut class = 2;
    while class < CLASSES {
        slots_of[class] = (PAGES_OF[class] as usize * PAGE_BYTES / (class * 8)) as u16;
        class += 1;
    }
    slots_of
};

/// The coarse class of each class: the next that divides a page without loss, as far as there is one, else the largest.
pub(crate) static COARSE_OF: [u8; CLASSES] = {
    let mut coarse_of = [0; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        // Slots of this size in a page, and the largest size of which as many fit.
        let slots = if class == 0 { 1 } else { PAGE_BYTES / (class * 8) };
        let largest = PAGE_BYTES / slots / 8;
        coarse_of[class] = if largest < CLASSES { largest as u8 } else { CLASSES as u8 - 1 };
        class += 1;
    }
    coarse_of
};

/// The first word of a free slot.
pub(crate) const fn free_word(next: u16) -> u64 {
    (next as u64) << 16
}
/// The next free slot, from the first word of a free one.
pub(crate) const fn next_free(word: u64) -> u16 {
    (word >> 16) as u16
}
/// Whether the first word of a slot is that of a live entry.
pub(crate) const fn is_live(word: u64) -> bool {
    word & 0xff != 0
}
