//! Decoding allocates nothing: every vector through a visitor that keeps nothing, under an allocator that counts.
//!
//! Owns the allocator. It is a test binary of its own because there is one allocator in a program.

#![allow(clippy::unwrap_used, reason = "a vector file that cannot be read fails the test")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use support::{Protocol, Vector};
use weft_protocol::{Aggregate, ArgVisitor, ReplyVisitor, Text, resp, respb};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches no memory of its own but a thread local
// that needs no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Keeps a sum, so that nothing can be left out.
#[derive(Default)]
struct Sum(u64);

impl ArgVisitor for Sum {
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.0 = self.0.wrapping_add((offset + bytes.len()) as u64);
    }
    fn int(&mut self, value: i64) {
        self.0 = self.0.wrapping_add(value as u64);
    }
    fn double(&mut self, value: f64) {
        self.0 = self.0.wrapping_add(value.to_bits());
    }
    fn keyword(&mut self, word: &'static str) {
        self.0 = self.0.wrapping_add(word.len() as u64);
    }
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        ArgVisitor::bytes(self, offset, raw);
    }
}

impl ReplyVisitor for Sum {
    fn text(&mut self, _kind: Text, offset: usize, bytes: &[u8]) {
        ArgVisitor::bytes(self, offset, bytes);
    }
    fn int(&mut self, value: i64) {
        ArgVisitor::int(self, value);
    }
    fn double(&mut self, value: f64) {
        ArgVisitor::double(self, value);
    }
    fn boolean(&mut self, value: bool) {
        self.0 += u64::from(value);
    }
    fn null(&mut self, array: bool) {
        self.0 += u64::from(array);
    }
    fn open(&mut self, _kind: Aggregate, len: Option<u32>) {
        self.0 += u64::from(len.unwrap_or(1));
    }
    fn close(&mut self) {}
    fn open_text(&mut self) {}
}

/// Decodes the wire whole, and then in two pieces.
fn decode(vector: &Vector, sum: &mut Sum) {
    let wire = vector.wire.as_slice();
    let half = &wire[..wire.len() / 2];
    match (vector.protocol, vector.request) {
        (Protocol::Respb, true) => {
            for first in [wire, half] {
                let mut decoder = respb::RequestDecoder::new(vector.limits);
                let _ = black_box(decoder.decode(first, sum));
                if first.len() < wire.len() {
                    let _ = black_box(decoder.decode(wire, sum));
                }
            }
        }
        (Protocol::Respb, false) => {
            for first in [wire, half] {
                let mut decoder = respb::ReplyDecoder::new(vector.limits);
                let _ = black_box(decoder.decode(first, sum));
                if first.len() < wire.len() {
                    let _ = black_box(decoder.decode(wire, sum));
                }
            }
        }
        (_, true) => {
            for first in [wire, half] {
                let mut decoder = resp::RequestDecoder::new(vector.limits);
                let _ = black_box(decoder.decode(first, sum));
                if first.len() < wire.len() {
                    let _ = black_box(decoder.decode(wire, sum));
                }
            }
        }
        (_, false) => {
            for first in [wire, half] {
                let mut decoder = resp::ReplyDecoder::new(vector.limits);
                let _ = black_box(decoder.decode(first, sum));
                if first.len() < wire.len() {
                    let _ = black_box(decoder.decode(wire, sum));
                }
            }
        }
    }
}

#[test]
fn decoding_allocates_nothing() {
    let vectors = support::load();
    let before = ALLOCATIONS.with(Cell::get);
    assert!(before > 1000, "the allocator does not count: {before}");
    let mut sum = Sum::default();
    for vector in &vectors {
        let before = ALLOCATIONS.with(Cell::get);
        decode(vector, &mut sum);
        let allocations = ALLOCATIONS.with(Cell::get) - before;
        assert_eq!(allocations, 0, "{} allocates", vector.id);
    }
    println!("{} vectors, no allocation; sum {:016x}", vectors.len(), sum.0);
}
