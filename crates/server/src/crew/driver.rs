//! Owns: one thread of the crew: its rounds, and when it gives workers away or back. Does not own: the other threads
//! (`super`), the tick (`crate::worker`).

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use super::load::{Load, WINDOW_US};
use super::{Crew, Post, Seat};
use crate::clock::cpu_ns;
use crate::limits::SWEEP_MS;
use crate::poll::Ready;
use crate::worker::{Turns, Worker};

/// Per cent of its time on a CPU from which a thread gives workers away. More would wait for what may never come: where
/// clients share the cores with the server, or let requests gather (`crate::pace`), a thread with too much to do is on
/// a CPU for two thirds of its time.
pub(super) const BUSY_PERCENT: u32 = 50;
/// Per cent that two threads may have together for one to become enough. One that does the work of both needs less than
/// they do, and is then far enough below the other limit.
const CALM_PERCENT: u32 = 40;
/// How long two threads are calm before one of them gives its workers back, at first and at most.
pub(super) const CALM_US_MIN: u64 = 500_000;
const CALM_US_MAX: u64 = 32_000_000;
/// A thread has weighed itself at most this long ago, when it is not in a tick that takes long: no wait is longer than
/// [`SWEEP_MS`].
const FRESH_US: u64 = SWEEP_MS * 1100;
/// Giving workers away so soon after they were given back proves that giving back was wrong.
const REGRET_US: u64 = 10_000_000;

/// A thread and the workers that it drives.
pub(super) struct Driver<'c, 'e> {
    crew: &'c Crew<'e>,
    thread: usize,
    /// They wait with the epoll of the first one.
    pub(super) workers: Vec<Worker<'e>>,
    /// What a look has brought, while it is handed out.
    news: Vec<Ready>,
    /// Where each worker stands in them.
    places: Box<[usize]>,
    turns: Turns,
    giver: Option<usize>,
    /// The beginning of the present window, and the thread's CPU time then.
    window_us: u64,
    window_cpu_us: u64,
    load: Load,
    /// Since when this thread and its giver are calm.
    calm_since_us: u64,
}

impl<'c, 'e> Driver<'c, 'e> {
    pub(super) fn new(crew: &'c Crew<'e>, thread: usize) -> Self {
        Self {
            crew,
            thread,
            workers: Vec::new(),
            news: Vec::new(),
            places: crew.posts.iter().map(|_| 0).collect(),
            turns: Turns::default(),
            giver: None,
            window_us: 0,
            window_cpu_us: 0,
            load: Load::default(),
            calm_since_us: 0,
        }
    }

    /// Until all workers are over.
    pub(super) fn run(&mut self) -> io::Result<()> {
        while self.has_workers()? {
            self.round()?;
        }
        Ok(())
    }

    fn post(&self) -> &'c Post {
        &self.crew.posts[self.thread]
    }

    /// Takes what was given, and waits for it when there is nothing to drive. Nothing will come when all are over.
    pub(super) fn has_workers(&mut self) -> io::Result<bool> {
        if !self.workers.is_empty() && !self.post().is_given.load(Relaxed) {
            return Ok(true);
        }
        let mut state = self.crew.state();
        loop {
            let given = std::mem::take(&mut state.seats[self.thread].given);
            self.post().is_given.store(false, Relaxed);
            self.giver = state.seats[self.thread].giver;
            if !given.is_empty() {
                if self.workers.is_empty() {
                    self.window_us = given[0].clock_us();
                    self.window_cpu_us = cpu_ns() / 1000;
                    self.load = Load::default();
                    self.calm_since_us = self.window_us;
                }
                self.workers.extend(given);
                drop(state);
                return self.gather().map(|()| true);
            }
            if !self.workers.is_empty() || state.left == 0 {
                return Ok(!self.workers.is_empty());
            }
            state.seats[self.thread].waker = None;
            state = self.crew.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets all workers wait with the first one. Those that do already go on as they are.
    fn gather(&mut self) -> io::Result<()> {
        for (place, worker) in self.workers.iter().enumerate() {
            self.places[usize::from(worker.id())] = place;
        }
        let Some((first, others)) = self.workers.split_first_mut() else { return Ok(()) };
        self.crew.state().seats[self.thread].waker = Some(first.waker());
        first.wait_with(None)?;
        others.iter_mut().try_for_each(|other| other.wait_with(Some(first)))
    }

    /// One round: wait, and a tick of every worker that has something to do.
    fn round(&mut self) -> io::Result<()> {
        let timeout_ms = self.workers.iter().map(|worker| worker.timeout_ms()).min().unwrap_or(0);
        let first = &mut self.workers[0];
        first.look(timeout_ms)?;
        let now_ms = self.crew.engine.clock.now_ms();
        let now_us = first.clock_us();
        let is_over = if self.workers.len() == 1 {
            self.workers[0].tick(now_ms, now_us)
        } else {
            self.tick_each(now_ms, now_us)
        };
        if is_over {
            self.bury()?;
        } else if self.crew.posts.len() > 1 && now_us - self.window_us >= WINDOW_US {
            self.weigh();
        }
        Ok(())
    }

    /// A tick of each worker of which the look has brought something, or whose time has come.
    fn tick_each(&mut self, now_ms: u64, mut now_us: u64) -> bool {
        self.workers[0].swap_news(&mut self.news);
        for event in self.news.drain(..) {
            // A worker that has left takes no event of another one.
            let place = self.places[usize::from(event.worker)];
            if let Some(worker) = self.workers.get_mut(place) {
                worker.add_news(event);
            }
        }
        let mut is_over = false;
        for place in self.turns.begin(&self.workers) {
            let worker = &mut self.workers[place];
            if worker.is_due(now_ms) {
                is_over |= worker.tick_in_turn(now_ms, now_us, self.turns.of(place));
                self.turns.had(worker);
                now_us = worker.clock_us();
            }
        }
        is_over
    }

    /// Takes away workers that have stopped.
    fn bury(&mut self) -> io::Result<()> {
        let before = self.workers.len();
        self.workers.retain(|worker| !worker.is_over());
        self.crew.ended(before - self.workers.len());
        // The first one may be gone.
        self.gather()
    }

    /// A window is over: this thread may have too much to do, or so little that it can be done without it.
    fn weigh(&mut self) {
        // The tick that ended the window belongs to it, by both clocks.
        let (now_us, cpu_us) = (self.workers[0].clock_us(), cpu_ns() / 1000);
        let busy_percent = self.load.after(cpu_us - self.window_cpu_us, now_us - self.window_us);
        (self.window_us, self.window_cpu_us) = (now_us, cpu_us);
        self.post().busy_percent.store(busy_percent, Relaxed);
        self.post().weighed_us.store(now_us, Relaxed);
        let always = self.crew.is_always_active();
        if self.workers.iter().any(|worker| worker.is_stopping() || worker.is_busy()) {
            return;
        }
        if self.workers.len() > 1 && (always || busy_percent >= BUSY_PERCENT) {
            self.give_half(now_us);
        }
        let Some(giver) = self.giver else { return };
        let post = &self.crew.posts[giver];
        let together = busy_percent + post.busy_percent.load(Relaxed);
        let is_stuck = now_us.saturating_sub(post.weighed_us.load(Relaxed)) > FRESH_US;
        if always || is_stuck || together >= CALM_PERCENT {
            self.calm_since_us = now_us;
        } else {
            self.give_back(giver, now_us);
        }
    }

    /// Gives half of the workers to a thread that sleeps, if there is one.
    pub(super) fn give_half(&mut self, now_us: u64) {
        let crew = self.crew;
        let mut state = crew.state();
        let sleeps = |(thread, seat): (usize, &Seat<'_>)| {
            (thread > 0 && seat.giver.is_none() && !seat.is_gone).then_some(thread)
        };
        let Some(to) = state.seats.iter().enumerate().find_map(sleeps) else { return };
        let given = self.workers.split_off(self.workers.len().div_ceil(2));
        // Taken, since what follows is not to be regretted twice.
        if let Some(returned_us) = state.returned_us.take()
            && !crew.is_always_active()
        {
            let is_regretted = now_us.saturating_sub(returned_us) < REGRET_US;
            state.calm_us = if is_regretted { (state.calm_us * 2).min(CALM_US_MAX) } else { CALM_US_MIN };
        }
        state.seats[to].giver = Some(self.thread);
        crew.give(&mut state, to, given);
        crew.engine.stats.active_threads.fetch_add(1, Relaxed);
    }

    /// Gives all workers back, if that is due, nobody has any of this thread, and none are on their way to it.
    pub(super) fn give_back(&mut self, giver: usize, now_us: u64) {
        let crew = self.crew;
        let mut state = crew.state();
        let has_lent = state.seats.iter().any(|seat| seat.giver == Some(self.thread));
        let is_given = !state.seats[self.thread].given.is_empty();
        let is_due = now_us.saturating_sub(self.calm_since_us) >= state.calm_us;
        if has_lent || is_given || !is_due || state.seats[giver].is_gone {
            return;
        }
        let given = std::mem::take(&mut self.workers);
        state.returned_us = Some(now_us);
        state.seats[self.thread].giver = None;
        self.post().busy_percent.store(0, Relaxed);
        crew.give(&mut state, giver, given);
        crew.engine.stats.active_threads.fetch_sub(1, Relaxed);
    }
}

impl Drop for Driver<'_, '_> {
    fn drop(&mut self) {
        // A thread that ends in an error does not keep the others from ending: what it drives, and what is on its way
        // to it, is over, and nothing more is given to it.
        let mut state = self.crew.state();
        let given = std::mem::take(&mut state.seats[self.thread].given);
        state.left -= self.workers.len() + given.len();
        state.seats[self.thread].is_gone = true;
        drop(state);
        self.crew.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_engine::Engine;

    /// A crew of workers that wait with epoll.
    fn crew(workers: u16) -> Crew<'static> {
        let keyspace = weft_store::Keyspace::new(weft_store::Config {
            shards: 16,
            workers: usize::from(workers),
            ..weft_store::Config::default()
        });
        let clock = Box::new(weft_store::SystemClock);
        let engine: &Engine =
            Box::leak(Box::new(Engine::new(weft_engine::Setup { keyspace, clock, workers })));
        let began = std::time::Instant::now();
        let worker = |id| {
            let poll = crate::poll::Poll::new(id).expect("there is epoll");
            Worker::new(engine, id, std::sync::Arc::default(), poll, began).expect("there is a place for it")
        };
        Crew::new(engine, (0..workers).map(worker).collect())
    }

    #[test]
    fn workers_on_their_way_to_a_thread_keep_it_from_giving_back() {
        let crew = crew(4);
        let mut drivers: Vec<_> = (0..4).map(|thread| Driver::new(&crew, thread)).collect();
        let active = || crew.engine.stats.active_threads.load(Relaxed);
        let later_us = CALM_US_MAX + 10 * REGRET_US;
        assert!(drivers[0].has_workers().expect("sockets can be moved"));
        drivers[0].give_half(1);
        assert!(drivers[1].has_workers().expect("sockets can be moved"));
        drivers[1].give_half(1);
        assert!(drivers[2].has_workers().expect("sockets can be moved"));
        assert_eq!((active(), drivers[2].workers.len()), (3, 1));

        drivers[1].give_back(0, later_us);
        assert_eq!(drivers[1].workers.len(), 1, "it has lent one");
        drivers[2].give_back(1, later_us);
        drivers[1].give_back(0, later_us);
        assert_eq!(drivers[1].workers.len(), 1, "one is on its way back to it");
        assert!(drivers[1].has_workers().expect("sockets can be moved"));
        drivers[1].give_back(0, later_us);
        assert!(drivers[0].has_workers().expect("sockets can be moved"));
        assert_eq!((active(), drivers[0].workers.len()), (1, 4));
    }

    #[test]
    fn a_thread_that_ends_takes_with_it_what_is_on_its_way_to_it() {
        let crew = crew(4);
        let mut first = Driver::new(&crew, 0);
        assert!(first.has_workers().expect("sockets can be moved"));
        first.give_half(1);
        crew.do_without(1);
        assert_eq!(crew.state().left, 2);
        first.give_half(1);
        assert!(crew.state().seats[1].given.is_empty(), "nothing is given to a thread that is gone");
        drop(first);
        // The half of the rest went to the next one that slept.
        crew.do_without(2);
        assert_eq!(crew.state().left, 0);
    }
}
