//! Owns: when memory that buffers, values and scripts had goes back to the system. Does not own: pages of the keyspace,
//! which have a way of their own (`weft_store`), the calls (`crate::sys::heap`).
//!
//! The allocator keeps what is freed between other blocks, for whoever asks next. Ten thousand clients that are gone
//! leave most of what they had that way. So the thread in the background looks how much is free, and when that has
//! grown gives back what are whole pages (ADR 0046).

use std::time::{Duration, Instant};

use weft_engine::info::Memory;

use crate::sys::heap;

/// Free bytes at the end of an arena that stay there; what is as large is mapped by itself.
const KEPT_BYTES: i32 = 1 << 20;
/// Free bytes, beyond those that there were when some were last given back, of which it is worth it.
const GROWTH_BYTES: usize = 1 << 20;
/// Between two looks, and at least so many times what the last one took, since it holds the arenas' locks; but no
/// longer than this. Millions of blocks that have just been freed make one look long, and the next ones short.
const REST: Duration = Duration::from_secs(1);
const REST_FACTOR: u32 = 1000;
const REST_MAX: Duration = Duration::from_secs(10);
/// The same where somebody has asked for it: a tenth of the time, however often he does.
const ASKED_FACTOR: u32 = 10;

/// To be called before there are threads.
pub(crate) fn begin() {
    heap::keep_at_most(KEPT_BYTES);
}

/// What was seen of it.
pub(crate) struct Heap {
    /// Free bytes that are not worth giving back: behind most of them is no memory any more.
    known_bytes: usize,
    /// What was in memory when some were last given back, or least since.
    resident_bytes: usize,
    /// When the last look began, and how long it took.
    last: Option<(Instant, Duration)>,
    /// MEMORY PURGE was run since.
    asked: bool,
}

impl Heap {
    pub(crate) fn new() -> Self {
        Self { known_bytes: 0, resident_bytes: 0, last: None, asked: false }
    }
    /// When it is time for the next look.
    fn next(&self) -> Option<Instant> {
        let (began, took) = self.last?;
        let rest = if self.asked { took * ASKED_FACTOR } else { REST.max(took * REST_FACTOR).min(REST_MAX) };
        Some(began + took.max(rest))
    }
    /// Looks, if it is time, and gives back, if it is worth it or asked for.
    pub(crate) fn look(&mut self, asked: bool) {
        self.asked |= asked;
        let began = Instant::now();
        if self.next().is_some_and(|next| began < next) {
            return;
        }
        let free_bytes = heap::free_bytes();
        // What is taken from them has memory again, and is worth it when it is free the next time.
        self.known_bytes = self.known_bytes.min(free_bytes);
        let resident_bytes = Memory::now().resident_bytes;
        self.resident_bytes = self.resident_bytes.min(resident_bytes);
        // What was taken and freed between two looks has memory, and was free at both.
        let touched_bytes = free_bytes.min(resident_bytes - self.resident_bytes);
        if self.asked || free_bytes - self.known_bytes > GROWTH_BYTES || touched_bytes > GROWTH_BYTES {
            heap::give_back();
            self.known_bytes = heap::free_bytes();
            self.resident_bytes = Memory::now().resident_bytes;
        }
        self.last = Some((began, began.elapsed()));
        self.asked = false;
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use std::process::Command;

    use super::*;

    /// Says that the process runs one test alone.
    const ALONE: &str = "WEFT_TEST_ALONE";

    /// What is in memory beyond `before`, in MiB.
    fn grown_mib(before: usize) -> usize {
        Memory::now().resident_bytes.saturating_sub(before) >> 20
    }

    #[test]
    fn what_is_freed_between_other_blocks_goes_back() {
        // What is in memory is the process's: the other tests would take and free some meanwhile.
        if std::env::var_os(ALONE).is_none() {
            let mut alone = Command::new(std::env::current_exe().unwrap());
            alone.args(["heap::tests::what_is_freed_between_other_blocks_goes_back", "--exact"]);
            let output = alone.env(ALONE, "1").output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && told.contains("1 passed"), "{told}");
            return;
        }
        let mut heap = Heap::new();
        let before = Memory::now().resident_bytes;
        let mut blocks: Vec<Vec<u8>> = (0..6 << 10).map(|_| vec![1; 16 << 10]).collect();
        assert!(grown_mib(before) > 90, "{} MiB", grown_mib(before));
        let mut at = 0;
        blocks.retain(|_| {
            at += 1;
            at % 16 == 0
        });
        assert!(grown_mib(before) > 60, "the allocator keeps them by itself: {} MiB", grown_mib(before));
        heap.look(false);
        assert!(grown_mib(before) < 30, "{} MiB", grown_mib(before));

        assert!(heap.known_bytes > 60 << 20, "they are still free, and not worth a second time");

        // Taken and freed again before anybody looks: as much is free as before, and it has memory.
        let taken: Vec<Vec<u8>> = (0..4 << 10).map(|_| vec![1; 16 << 10]).collect();
        drop(taken);
        assert!(grown_mib(before) > 60, "{} MiB", grown_mib(before));
        heap.last = None;
        heap.look(false);
        assert!(grown_mib(before) < 30, "{} MiB", grown_mib(before));
        drop(blocks);

        // While it rests, whoever asks for it gets it.
        let blocks: Vec<Vec<u8>> = (0..6 << 10).map(|_| vec![1; 16 << 10]).collect();
        let between: Vec<Vec<u8>> = blocks
            .into_iter()
            .enumerate()
            .filter_map(|(at, block)| (at % 16 == 0).then_some(block))
            .collect();
        heap.last = Some((Instant::now(), Duration::from_millis(1)));
        heap.look(false);
        assert!(grown_mib(before) > 60, "it rests: {} MiB", grown_mib(before));
        while grown_mib(before) > 30 {
            assert!(
                heap.asked || heap.last.is_some_and(|(_, took)| took == Duration::from_millis(1)),
                "it has looked"
            );
            heap.look(true);
        }
        drop(between);
    }

    #[test]
    fn it_rests_between_looks() {
        let mut heap = Heap::new();
        heap.look(false);
        let last = heap.last;
        heap.look(false);
        assert_eq!(heap.last, last, "it is not looked before its time");
        for (took_ms, asked, rest_ms) in [
            (0, false, 1000),
            (2, false, 2000),
            (300, false, 10_000),
            (300, true, 3000),
            (20_000, false, 20_000),
        ] {
            let began = Instant::now();
            (heap.last, heap.asked) = (Some((began, Duration::from_millis(took_ms))), asked);
            assert_eq!(heap.next(), Some(began + Duration::from_millis(rest_ms)), "after {took_ms} ms");
        }
    }
}
