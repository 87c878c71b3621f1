//! Owns: how much of its time a thread is on a CPU. Does not own: what follows from it (`super::driver`).

/// A window in which a thread's load is taken, at least. The last tick and the wait behind it may make it longer.
pub(super) const WINDOW_US: u64 = 10_000;
/// How long it takes until the load of now is what counts: many clients that come at once are no load yet.
const MEMORY_US: u64 = 100_000;

/// How much of its time a thread is on a CPU, an average that forgets.
#[derive(Default)]
pub(super) struct Load {
    /// In thousandths.
    share: u64,
}

impl Load {
    /// Per cent, after another window. The first round that ends behind [`WINDOW_US`] closes it, so a long window is
    /// some work and one long wait. The work counts first, and gives the figure; then the wait.
    pub(super) fn after(&mut self, cpu_us: u64, wall_us: u64) -> u32 {
        let worked_us = wall_us.min(cpu_us.max(WINDOW_US));
        self.pass(cpu_us, worked_us);
        let percent = self.share / 10;
        self.pass(0, wall_us - worked_us);
        percent as u32
    }

    fn pass(&mut self, cpu_us: u64, wall_us: u64) {
        let share = (cpu_us * 1000 / wall_us.max(1)).min(1000);
        let weight_us = wall_us.min(MEMORY_US);
        self.share = (self.share * (MEMORY_US - weight_us) + share * weight_us) / MEMORY_US;
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::BUSY_PERCENT;
    use super::*;

    #[test]
    fn a_thread_is_busy_when_it_has_been_for_a_while() {
        let mut load = Load::default();
        let windows = (1..100).find(|_| load.after(WINDOW_US, WINDOW_US) >= BUSY_PERCENT);
        assert_eq!(windows, Some(7));
        assert!((0..100).all(|_| load.after(WINDOW_US, WINDOW_US) >= BUSY_PERCENT));
        assert!(
            (0..100)
                .map(|_| load.after(WINDOW_US / 2, WINDOW_US))
                .last()
                .is_some_and(|it| (49..51).contains(&it))
        );
    }

    #[test]
    fn one_long_tick_counts_although_a_long_wait_follows() {
        let mut load = Load::default();
        // A tenth of a second of work and a second of nothing.
        assert_eq!(load.after(2 * MEMORY_US, 20 * MEMORY_US), 100);
        assert_eq!(load.after(0, WINDOW_US), 0);
        assert_eq!(load.after(0, 0), 0);
    }
}
