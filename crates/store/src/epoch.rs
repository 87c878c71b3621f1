//! Owns: the workers' slots: each worker's pin (its epoch while a batch runs), the world gate, and the limbo of things
//! that a pinned worker may still read. Does not own: what is retired; the counters that share a worker's line.
//!
//! One store and one fence a batch buy both: a pinned worker may read published arrays without a lock, and whoever
//! closes the gate waits until no other worker is in a batch.
//!
//! **Invariant of the limbo.** A thing retired at epoch e was unpublished before; it is freed when no slot shows a pin
//! at or below e. A worker writes its pin, fences, then reads published pointers; the collector fences after the
//! unpublishing, then reads the slots. So either the collector sees the pin, or the worker sees the unpublishing.
//!
//! **Invariant of the gate.** The same with the `closed` flag: either the closer sees the pin and waits, or the worker
//! sees the flag and goes back out. Waiting workers block on the gate's mutex, which the closer holds, and go in under
//! it: while somebody holds it the flag is his.
//!
//! **Order at the gate.** Closers stand in a queue of their own. The first of it closes the gate when all are inside
//! who wait to be, so a batch waits for one of them, however many there are; while the gate is open nobody comes to
//! wait.
//!
//! **Who waits in time gives up.** Whoever keeps what he has for long says so ([`Domain::set_kept`]). Workers that wait
//! for the gate, or for others to leave, then go back as they came; one who was about to close it opens it again.
//!
//! **A batch alone.** A worker that is the only one to run commands closes the gate for the length of a batch, unless
//! somebody is inside, waits to come in or to close: then nobody is held up, and the batch is an ordinary one.

use crate::sync::{
    AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, Pause, fence, lock, lock_for_step, try_lock,
};
use std::collections::VecDeque;

/// The most workers that a keyspace may have: each costs a slot, and closing the gate looks at all.
pub const WORKERS_MAX: usize = 1024;
/// A slot outside a batch. Epochs start at 1.
const IDLE: u64 = 0;

/// A worker's pin, alone on its pair of cache lines: it is written at every batch.
#[repr(align(128))]
struct Slot {
    pin: AtomicU64,
    taken: AtomicBool,
}

/// Epochs and gate of one keyspace.
pub(crate) struct Domain<T> {
    epoch: AtomicU64,
    closed: AtomicBool,
    /// Somebody keeps what he has for long.
    kept: AtomicBool,
    gate: Mutex<()>,
    /// Workers that found the gate closed and are not in yet: when they come in it becomes less under the gate's mutex.
    waiting: AtomicU64,
    /// Whose turn it is to close.
    closers: Mutex<()>,
    /// Who has it, or waits for it, and has not closed yet.
    closing: AtomicU64,
    /// Slots that have ever been taken: those behind them are idle.
    joined: AtomicU64,
    slots: Box<[Slot]>,
    limbo: Mutex<VecDeque<(u64, T)>>,
}

/// Proof that a worker is inside a batch: what was published when it started stays allocated until it ends.
pub(crate) struct Pin<'d, T> {
    domain: &'d Domain<T>,
    slot: usize,
}

/// A pin in epochs of its own.
pub(crate) struct Apart<'d, T>(Pin<'d, T>);

/// Proof that no other worker is inside a batch.
pub(crate) struct Closed<'d, T> {
    domain: &'d Domain<T>,
    _gate: MutexGuard<'d, ()>,
    /// Given back behind the gate; a batch alone has none.
    _turn: Option<MutexGuard<'d, ()>>,
}

impl<T> Domain<T> {
    pub(crate) fn new(workers: usize) -> Self {
        let slot = || Slot { pin: AtomicU64::new(IDLE), taken: AtomicBool::new(false) };
        Self {
            epoch: AtomicU64::new(1),
            closed: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            gate: Mutex::new(()),
            waiting: AtomicU64::new(0),
            closers: Mutex::new(()),
            closing: AtomicU64::new(0),
            joined: AtomicU64::new(0),
            slots: (0..workers.clamp(1, WORKERS_MAX)).map(|_| slot()).collect(),
            limbo: Mutex::new(VecDeque::new()),
        }
    }

    /// Takes a free slot for a worker's lifetime.
    pub(crate) fn join(&self) -> Option<usize> {
        let slot = self.slots.iter().position(|slot| !slot.taken.swap(true, Ordering::AcqRel))?;
        self.joined.fetch_max(slot as u64 + 1, Ordering::AcqRel);
        Some(slot)
    }

    /// Gives a slot back.
    pub(crate) fn leave(&self, slot: usize) {
        self.slots[slot].taken.store(false, Ordering::Release);
    }

    /// Starts a batch: one store, one fence, one load; waits only while the gate is closed. The slot must be idle.
    pub(crate) fn enter(&self, slot: usize) -> Pin<'_, T> {
        let pin = self.pin_of(slot);
        if !self.try_enter(pin) {
            self.wait_to_enter(pin, false);
        }
        Pin { domain: self, slot }
    }
    /// The same; nothing if somebody keeps what he has while the gate is closed.
    #[inline]
    pub(crate) fn enter_in_time(&self, slot: usize) -> Option<Pin<'_, T>> {
        let pin = self.pin_of(slot);
        (self.try_enter(pin) || self.wait_to_enter(pin, true)).then(|| Pin { domain: self, slot })
    }
    #[inline]
    fn pin_of(&self, slot: usize) -> &AtomicU64 {
        let pin = &self.slots[slot].pin;
        debug_assert_eq!(pin.load(Ordering::Relaxed), IDLE, "a worker runs one batch at a time");
        pin
    }
    /// Goes in behind whoever has closed the gate. Says whether it is in: always, where it does not give up.
    #[cold]
    fn wait_to_enter(&self, pin: &AtomicU64, gives_up: bool) -> bool {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let gate = if gives_up { self.in_time(&self.gate) } else { Some(lock(&self.gate)) };
        let is_in = gate.is_some();
        assert!(!is_in || self.try_enter(pin), "who holds the gate's mutex has not closed it");
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        is_in
    }
    /// A mutex; nothing if somebody keeps what he has while another holds it.
    fn in_time<'m>(&self, mutex: &'m Mutex<()>) -> Option<MutexGuard<'m, ()>> {
        if let Some(guard) = try_lock(mutex) {
            return Some(guard);
        }
        loop {
            if self.is_kept() {
                return None;
            }
            if let Some(guard) = lock_for_step(mutex) {
                return Some(guard);
            }
        }
    }

    /// Somebody keeps what he has, a batch, locks or the gate, for longer than others are to wait for him; or all have
    /// given it back. Whoever waits in time sees it within two [`STEP`](crate::sync::STEP)s.
    pub(crate) fn set_kept(&self, is_kept: bool) {
        self.kept.store(is_kept, Ordering::Release);
    }
    /// Whether somebody does.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Acquire)
    }

    /// Goes in unless the gate is closed.
    #[inline]
    fn try_enter(&self, pin: &AtomicU64) -> bool {
        // Released, though the fence follows: who sees this pin has then seen the end of the batch before it too.
        pin.store(self.epoch.load(Ordering::Acquire), Ordering::Release);
        fence(Ordering::SeqCst);
        if !self.closed.load(Ordering::Acquire) {
            return true;
        }
        pin.store(IDLE, Ordering::Release);
        false
    }

    /// The present epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
    /// Begins an epoch. All workers have left those below the one returned: whoever reads the epoch inside a batch that
    /// begins from now on reads a later one.
    pub(crate) fn advance(&self) -> u64 {
        let next = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        fence(Ordering::SeqCst);
        next.min(self.oldest_pin())
    }
    /// Marks a slot as inside for whoever has closed the gate: what he does belongs to epochs of its own, which no
    /// batch before or behind it shares, also if somebody begins some meanwhile.
    pub(crate) fn enter_closed<'d>(&'d self, slot: usize, _: &Closed<'d, T>) -> Apart<'d, T> {
        let epoch = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        self.slots[slot].pin.store(epoch, Ordering::Release);
        fence(Ordering::SeqCst);
        Apart(Pin { domain: self, slot })
    }

    /// Starts a batch and closes the gate behind it, if nobody else is inside or waits to be, or to close: never waits
    /// for others to leave. The slot must be idle.
    pub(crate) fn enter_alone(&self, slot: usize) -> (Pin<'_, T>, Option<Closed<'_, T>>) {
        self.close_behind(self.enter(slot))
    }
    /// The same; nothing if somebody keeps what he has while the gate is closed.
    #[inline]
    pub(crate) fn enter_alone_in_time(&self, slot: usize) -> Option<(Pin<'_, T>, Option<Closed<'_, T>>)> {
        self.enter_in_time(slot).map(|pin| self.close_behind(pin))
    }
    #[inline]
    fn close_behind<'d>(&'d self, pin: Pin<'d, T>) -> (Pin<'d, T>, Option<Closed<'d, T>>) {
        let slot = pin.slot;
        if self.waiting.load(Ordering::Acquire) != 0 || self.closing.load(Ordering::Acquire) != 0 {
            return (pin, None);
        }
        let Some(gate) = try_lock(&self.gate) else { return (pin, None) };
        self.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let joined = self.joined.load(Ordering::Acquire) as usize;
        let is_inside = |(at, other): (usize, &Slot)| at != slot && other.pin.load(Ordering::Acquire) != IDLE;
        // Dropping it opens the gate again.
        let closed = Closed { domain: self, _gate: gate, _turn: None };
        let alone = !self.slots[..joined].iter().enumerate().any(is_inside);
        (pin, alone.then_some(closed))
    }

    /// Closes the gate, when all are inside who wait to be, and waits until every batch has ended: at most as long as
    /// the longest batch. The caller must not be in a batch itself, which `crate::keyspace::Worker` makes sure of by
    /// borrowing.
    pub(crate) fn close(&self) -> Closed<'_, T> {
        let gate = self.turn_to_close(false).expect("who does not give up comes to it");
        let closed = self.shut(gate);
        self.wait_for_others(false);
        closed
    }
    /// The same; nothing, and the gate stays open, if somebody keeps what he has while this waits.
    pub(crate) fn close_in_time(&self) -> Option<Closed<'_, T>> {
        // Dropping it opens the gate again.
        let closed = self.shut(self.turn_to_close(true)?);
        self.wait_for_others(true).then_some(closed)
    }
    /// Its turn to close, and the gate's mutex, when nobody waits to go in.
    fn turn_to_close(&self, gives_up: bool) -> Option<[MutexGuard<'_, ()>; 2]> {
        self.closing.fetch_add(1, Ordering::AcqRel);
        let gate = self.wait_to_close(gives_up);
        self.closing.fetch_sub(1, Ordering::AcqRel);
        gate
    }
    fn wait_to_close(&self, gives_up: bool) -> Option<[MutexGuard<'_, ()>; 2]> {
        let take = |mutex| if gives_up { self.in_time(mutex) } else { Some(lock(mutex)) };
        let turn = take(&self.closers)?;
        let mut pause = Pause::default();
        loop {
            let gate = take(&self.gate)?;
            if self.waiting.load(Ordering::Acquire) == 0 {
                return Some([turn, gate]);
            }
            // Those who wait for it take it one behind the other, and so may a batch alone, for as long as it lasts.
            drop(gate);
            if gives_up && self.is_kept() {
                return None;
            }
            pause.wait();
        }
    }
    fn shut<'d>(&'d self, [turn, gate]: [MutexGuard<'d, ()>; 2]) -> Closed<'d, T> {
        self.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Closed { domain: self, _gate: gate, _turn: Some(turn) }
    }
    /// Waits until nobody is in a batch. Says whether that is so: always, where it does not give up.
    fn wait_for_others(&self, gives_up: bool) -> bool {
        let mut pause = Pause::default();
        for slot in &self.slots {
            while slot.pin.load(Ordering::Acquire) != IDLE {
                if gives_up && self.is_kept() {
                    return false;
                }
                pause.wait();
            }
        }
        true
    }

    /// Takes something that is no longer published and frees it when no pin can reach it. The queue is as long as what
    /// is retired during the longest batch.
    pub(crate) fn retire(&self, thing: T) {
        fence(Ordering::SeqCst);
        {
            let mut limbo = lock(&self.limbo);
            limbo.push_back((self.epoch.fetch_add(1, Ordering::AcqRel), thing));
        }
        self.collect();
    }

    /// Frees what can be freed; for idle time, when the last retirement came while someone was pinned. What waits
    /// stands in the order of its stamps, so that nothing behind the first that must wait is walked through.
    pub(crate) fn collect(&self) {
        let mut free = Vec::new();
        {
            let mut limbo = lock(&self.limbo);
            if limbo.is_empty() {
                return;
            }
            fence(Ordering::SeqCst);
            let oldest = self.oldest_pin();
            let count = limbo.partition_point(|(stamp, _)| *stamp < oldest);
            free.extend(limbo.drain(..count));
        }
        drop(free);
    }

    fn oldest_pin(&self) -> u64 {
        let pins = self.slots.iter().map(|slot| slot.pin.load(Ordering::Acquire));
        pins.filter(|&pin| pin != IDLE).min().unwrap_or(u64::MAX)
    }

    /// Panics when a pin of another domain is used: that would not protect this domain's arrays.
    #[inline]
    pub(crate) fn assert_own(&self, pin: &Pin<'_, T>) {
        assert!(std::ptr::eq(self, pin.domain), "a pin protects the arrays of its own keyspace only");
    }

    /// Sum of something over what waits in the limbo.
    pub(crate) fn limbo_sum(&self, measure: impl Fn(&T) -> usize) -> usize {
        lock(&self.limbo).iter().map(|(_, thing)| measure(thing)).sum()
    }
}

impl<T> Drop for Pin<'_, T> {
    fn drop(&mut self) {
        self.domain.slots[self.slot].pin.store(IDLE, Ordering::Release);
    }
}

impl<T> Drop for Apart<'_, T> {
    fn drop(&mut self) {
        self.0.domain.epoch.fetch_add(1, Ordering::AcqRel);
    }
}

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        self.domain.closed.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn limbo_keeps_what_a_pin_may_read() {
        let domain = Domain::new(2);
        let (one, two) = (domain.join().unwrap(), domain.join().unwrap());
        assert!(domain.join().is_none());
        let thing = Arc::new(());
        let early = domain.enter(one);
        domain.retire(Arc::clone(&thing));
        assert_eq!(Arc::strong_count(&thing), 2);
        let late = domain.enter(two);
        drop(early);
        domain.collect();
        assert_eq!(Arc::strong_count(&thing), 1, "a pin that came later does not hold it");
        drop(late);
    }

    #[test]
    fn a_batch_alone_gives_way() {
        let domain = Domain::<()>::new(2);
        let (one, two) = (domain.join().unwrap(), domain.join().unwrap());
        let inside = std::sync::atomic::AtomicUsize::new(0);
        let alone = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                for _ in 0..500 {
                    let _pin = domain.enter(two);
                    inside.fetch_add(1, Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                }
            });
            // It must not keep the other out by coming back at once, again and again.
            while !other.is_finished() {
                let (_pin, closed) = domain.enter_alone(one);
                if closed.is_some() {
                    assert_eq!(inside.load(Ordering::SeqCst), 0);
                    alone.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        let (pin, closed) = domain.enter_alone(one);
        assert!(closed.is_some(), "nobody is there");
        drop((pin, closed));
        let _inside = domain.enter(two);
        assert!(domain.enter_alone(one).1.is_none(), "somebody is");
    }

    /// However many close the gate one behind the other, a batch that waits begins behind the one that it has met.
    #[test]
    fn who_waits_is_let_in_before_the_next_one_closes() {
        for round in 0..200 {
            let domain = Domain::<()>::new(1);
            let slot = domain.join().unwrap();
            let order = std::sync::Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                let first = domain.close();
                for _ in 0..3 {
                    scope.spawn(|| {
                        let _closed = domain.close();
                        order.lock().unwrap().push("closed");
                    });
                }
                scope.spawn(|| {
                    let _pin = domain.enter(slot);
                    order.lock().unwrap().push("in");
                });
                while domain.waiting.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                drop(first);
            });
            assert_eq!(*order.lock().unwrap(), ["in", "closed", "closed", "closed"], "round {round}");
        }
    }

    /// Who closes gets to it, though somebody goes in and out all the time.
    #[test]
    fn who_closes_is_not_kept_out_by_batches() {
        let domain = Domain::<()>::new(2);
        let slots = [domain.join().unwrap(), domain.join().unwrap()];
        let closed = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for slot in slots {
                let (domain, closed) = (&domain, &closed);
                scope.spawn(move || {
                    while !closed.load(Ordering::SeqCst) {
                        drop(domain.enter_alone(slot));
                    }
                });
            }
            for _ in 0..100 {
                drop(domain.close());
            }
            closed.store(true, Ordering::SeqCst);
        });
    }

    #[test]
    fn who_waits_in_time_gives_up_what_is_kept() {
        let domain = Domain::<()>::new(3);
        let [one, two, three] = [(); 3].map(|()| domain.join().unwrap());
        let pin = domain.enter(one);
        std::thread::scope(|scope| {
            let closes = scope.spawn(|| domain.close_in_time().is_some());
            // Whether or not the other has closed the gate.
            let enters = scope.spawn(|| drop(domain.enter_in_time(two)));
            domain.set_kept(true);
            assert!(!closes.join().unwrap(), "somebody is inside for long");
            enters.join().unwrap();
            domain.set_kept(false);
            let closes = scope.spawn(|| domain.close_in_time().is_some());
            drop(pin);
            assert!(closes.join().unwrap());
        });
        let closed = domain.close_in_time();
        assert!(closed.is_some(), "nobody is inside");
        domain.set_kept(true);
        assert!(domain.enter_in_time(two).is_none() && domain.enter_alone_in_time(two).is_none());
        assert!(domain.close_in_time().is_none());
        drop(closed);
        assert!(domain.enter_in_time(three).is_some(), "the gate is open, whoever keeps something");
    }

    #[test]
    fn gate_excludes_batches() {
        let domain = Domain::<()>::new(3);
        let counter = std::sync::atomic::AtomicUsize::new(0);
        let inside = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let slot = domain.join().unwrap();
                    for _ in 0..2000 {
                        let _pin = domain.enter(slot);
                        inside.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
            for _ in 0..200 {
                let _closed = domain.close();
                assert_eq!(inside.load(Ordering::SeqCst), 0);
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        assert_eq!(counter.into_inner(), 200);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;

    /// Stands for an array; dropping it marks it freed, as the allocator would.
    struct Array(Arc<AtomicBool>);

    impl Drop for Array {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn read_published(domain: &Domain<Array>, head: &AtomicUsize, freed: &[Arc<AtomicBool>; 2]) {
        let slot = domain.join().expect("one slot is free");
        let pin = domain.enter(slot);
        let seen = head.load(Ordering::Acquire);
        assert!(!freed[seen].load(Ordering::Relaxed), "a pinned reader sees no freed array");
        loom::thread::yield_now();
        assert!(!freed[seen].load(Ordering::Relaxed), "and it is not freed while the pin lasts");
        drop(pin);
        domain.leave(slot);
    }

    #[test]
    fn published_array_is_not_freed_under_a_pin() {
        loom::model(|| {
            let domain = Arc::new(Domain::new(1));
            let freed = [Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false))];
            let head = Arc::new(AtomicUsize::new(0));
            let reader = {
                let (domain, head, freed) = (domain.clone(), head.clone(), freed.clone());
                loom::thread::spawn(move || read_published(&domain, &head, &freed))
            };
            head.store(1, Ordering::Release);
            domain.retire(Array(freed[0].clone()));
            reader.join().expect("the reader does not panic");
            domain.collect();
            assert!(freed[0].load(Ordering::Relaxed), "without pins everything is freed");
        });
    }

    #[test]
    fn two_who_would_be_alone_are_not() {
        loom::model(|| {
            let domain = Arc::new(Domain::<()>::new(2));
            let slots = [domain.join().expect("a slot"), domain.join().expect("a slot")];
            let busy = Arc::new(AtomicBool::new(false));
            let run = |domain: &Domain<()>, slot: usize, busy: &AtomicBool| {
                if let (_pin, Some(_closed)) = domain.enter_alone(slot) {
                    assert!(!busy.swap(true, Ordering::Relaxed), "two at once");
                    busy.store(false, Ordering::Relaxed);
                }
            };
            let other = {
                let (domain, busy) = (domain.clone(), busy.clone());
                loom::thread::spawn(move || run(&domain, slots[1], &busy))
            };
            run(&domain, slots[0], &busy);
            other.join().expect("the other does not panic");
        });
    }

    #[test]
    fn a_batch_alone_excludes_others() {
        loom::model(|| {
            let domain = Arc::new(Domain::<()>::new(2));
            let slots = [domain.join().expect("a slot"), domain.join().expect("a slot")];
            let busy = Arc::new(AtomicBool::new(false));
            let other = {
                let (domain, busy) = (domain.clone(), busy.clone());
                loom::thread::spawn(move || {
                    let _pin = domain.enter(slots[1]);
                    assert!(!busy.swap(true, Ordering::Relaxed), "two at once");
                    busy.store(false, Ordering::Relaxed);
                })
            };
            if let (_pin, Some(_closed)) = domain.enter_alone(slots[0]) {
                assert!(!busy.swap(true, Ordering::Relaxed), "two at once");
                busy.store(false, Ordering::Relaxed);
            }
            other.join().expect("the other does not panic");
        });
    }

    /// Two who close and one who goes in: all of them come to it, whoever waits for whom.
    #[test]
    fn two_who_close_and_a_batch_exclude_each_other() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let domain = Arc::new(Domain::<()>::new(1));
            let slot = domain.join().expect("one slot is free");
            let busy = Arc::new(AtomicBool::new(false));
            let alone = |busy: &AtomicBool| {
                assert!(!busy.swap(true, Ordering::Relaxed), "two at once");
                busy.store(false, Ordering::Relaxed);
            };
            let others = [true, false].map(|closes| {
                let (domain, busy) = (domain.clone(), busy.clone());
                loom::thread::spawn(move || {
                    if closes {
                        let _closed = domain.close();
                        alone(&busy);
                    } else {
                        let _pin = domain.enter(slot);
                        alone(&busy);
                    }
                })
            });
            let closed = domain.close();
            alone(&busy);
            drop(closed);
            others.into_iter().for_each(|other| other.join().expect("the other does not panic"));
        });
    }

    #[test]
    fn who_gives_up_leaves_the_gate_open() {
        loom::model(|| {
            let domain = Arc::new(Domain::<()>::new(1));
            let slot = domain.join().expect("a slot");
            let busy = Arc::new(AtomicBool::new(false));
            let closer = {
                let (domain, busy) = (domain.clone(), busy.clone());
                loom::thread::spawn(move || {
                    if let Some(_closed) = domain.close_in_time() {
                        assert!(!busy.swap(true, Ordering::Relaxed), "two at once");
                        busy.store(false, Ordering::Relaxed);
                    }
                })
            };
            if let Some(_pin) = domain.enter_in_time(slot) {
                assert!(!busy.swap(true, Ordering::Relaxed), "two at once");
                domain.set_kept(true);
                busy.store(false, Ordering::Relaxed);
            }
            closer.join().expect("the closer does not panic");
            assert!(domain.enter_in_time(slot).is_some(), "nobody has closed it");
        });
    }

    #[test]
    fn gate_and_batch_exclude_each_other() {
        loom::model(|| {
            let domain = Arc::new(Domain::<()>::new(1));
            let busy = Arc::new(AtomicBool::new(false));
            let alone = |busy: &AtomicBool| {
                assert!(!busy.swap(true, Ordering::Relaxed), "two at once");
                busy.store(false, Ordering::Relaxed);
            };
            let worker = {
                let (domain, busy) = (domain.clone(), busy.clone());
                loom::thread::spawn(move || {
                    let slot = domain.join().expect("one slot is free");
                    let _pin = domain.enter(slot);
                    alone(&busy);
                })
            };
            let closed = domain.close();
            alone(&busy);
            drop(closed);
            worker.join().expect("the worker does not panic");
        });
    }
}
