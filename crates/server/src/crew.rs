//! Owns: which thread drives which workers. Does not own: what a worker does (`crate::worker`), when its sockets are
//! looked at (`crate::pace`).
//!
//! A worker is a part of the connections with all that serves them, and never changes; a thread drives one or several.
//! As long as one thread is enough it drives them all, and the others sleep: a request then finds warm caches and is
//! served together with more others, and nobody is woken for it (ADR 0022).
//!
//! - A thread that drives several and has been on a CPU for half of the last tenth of a second gives half of them to
//!   one that sleeps.
//! - A thread that was given some gives them back when it and who gave them have had little to do for a while: for
//!   longer each time that giving back soon proved wrong.
//! - Workers are given between two rounds, whole. Their connections and mailboxes notice nothing; their sockets are
//!   registered with the epoll of their new thread, which is the one of its first worker.
//!
//! `threads-always-active yes` gives each worker its thread at any time.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use weft_engine::Engine;

use crate::clock::cpu_ns;
use crate::limits::SWEEP_MS;
use crate::pace::{Cycles, Pace};
use crate::poll::{Ready, Waker};
use crate::signals;
use crate::worker::Worker;

/// A window in which a thread's load is taken, at least. The last tick and the wait behind it may make it longer.
const WINDOW_US: u64 = 10_000;
/// How long it takes until the load of now is what counts: many clients that come at once are no load yet.
const MEMORY_US: u64 = 100_000;
/// Per cent of its time on a CPU from which a thread gives workers away. More would wait for what may never come: where
/// clients share the cores with the server, or let requests gather (`crate::pace`), a thread with too much to do is on
/// a CPU for two thirds of its time.
const BUSY_PERCENT: u32 = 50;
/// Per cent that two threads may have together for one to become enough. One that does the work of both needs less than
/// they do, and is then far enough below the other limit.
const CALM_PERCENT: u32 = 40;
/// How long two threads are calm before one of them gives its workers back, at first and at most.
const CALM_US_MIN: u64 = 500_000;
const CALM_US_MAX: u64 = 32_000_000;
/// A thread has weighed itself at most this long ago, when it is not in a tick that takes long: no wait is longer than
/// [`SWEEP_MS`].
const FRESH_US: u64 = SWEEP_MS * 1100;
/// Giving workers away so soon after they were given back proves that giving back was wrong.
const REGRET_US: u64 = 10_000_000;

/// The threads of a server and what they share.
pub(crate) struct Crew<'e> {
    engine: &'e Engine,
    /// By thread.
    posts: Box<[Post]>,
    state: Mutex<State<'e>>,
    /// Workers were given to a thread that has none, or all workers are over.
    changed: Condvar,
}

/// What others may know of a thread without a lock.
#[derive(Default)]
struct Post {
    /// Its load of late.
    busy_percent: AtomicU32,
    /// When that was found.
    weighed_us: AtomicU64,
    /// Somebody has given it workers.
    is_given: AtomicBool,
}

struct State<'e> {
    seats: Vec<Seat<'e>>,
    /// Workers that are not over.
    left: usize,
    /// How long two threads are calm before one gives back.
    calm_us: u64,
    /// When workers were last given back.
    returned_us: Option<u64>,
}

/// A thread's place.
#[derive(Default)]
struct Seat<'e> {
    /// Which thread its workers are from. Without one it sleeps, or is the first.
    giver: Option<usize>,
    /// Workers on their way to it.
    given: Vec<Worker<'e>>,
    /// What wakes it when it waits for its sockets.
    waker: Option<Waker>,
    /// The thread has ended before its time.
    is_gone: bool,
}

impl<'e> Crew<'e> {
    /// As many threads as there are workers.
    pub(crate) fn new(engine: &'e Engine, workers: Vec<Worker<'e>>) -> Self {
        let mut seats: Vec<Seat<'_>> = workers.iter().map(|_| Seat::default()).collect();
        let crew = Self {
            engine,
            posts: workers.iter().map(|_| Post::default()).collect(),
            changed: Condvar::new(),
            state: Mutex::new(State {
                seats: Vec::new(),
                left: workers.len(),
                calm_us: CALM_US_MIN,
                returned_us: None,
            }),
        };
        let spread = crew.is_always_active();
        let active = if spread { workers.len() } else { 1 };
        engine.stats.active_threads.store(active as u32, Relaxed);
        for (at, worker) in workers.into_iter().enumerate() {
            let thread = if spread { at } else { 0 };
            seats[thread].giver = (thread > 0).then_some(0);
            seats[thread].given.push(worker);
        }
        crew.state().seats = seats;
        crew
    }

    /// What a thread does until the server has stopped.
    pub(crate) fn drive(&self, thread: usize) -> io::Result<()> {
        crate::pace::prepare();
        let mut driver = Driver::new(self, thread);
        let result = driver.run();
        if result.is_err() {
            // A server that has lost a thread would go on accepting clients that nobody answers.
            signals::request_stop();
        }
        result
    }

    /// A thread could not be started.
    pub(crate) fn do_without(&self, thread: usize) {
        drop(Driver::new(self, thread));
    }

    fn state(&self) -> MutexGuard<'_, State<'e>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn is_always_active(&self) -> bool {
        self.engine.settings.threads_always_active.load(Relaxed)
    }
    /// Hands workers to a thread, which may sleep.
    fn give(&self, state: &mut State<'e>, to: usize, workers: Vec<Worker<'e>>) {
        let seat = &mut state.seats[to];
        seat.given.extend(workers);
        self.posts[to].is_given.store(true, Relaxed);
        if let Some(waker) = &seat.waker {
            waker.wake();
        }
        self.changed.notify_all();
        self.engine.stats.thread_handovers.fetch_add(1, Relaxed);
    }
    /// Workers have stopped.
    fn ended(&self, workers: usize) {
        self.state().left -= workers;
        self.changed.notify_all();
    }
}

/// A thread and the workers that it drives.
struct Driver<'c, 'e> {
    crew: &'c Crew<'e>,
    thread: usize,
    /// They wait with the epoll of the first one.
    workers: Vec<Worker<'e>>,
    /// What a look has brought, while it is handed out.
    news: Vec<Ready>,
    /// Where each worker stands in them.
    places: Box<[usize]>,
    giver: Option<usize>,
    pace: Pace,
    /// Of the connections of all its workers.
    cycles: Cycles,
    /// The beginning of the present window, and the thread's CPU time then.
    window_us: u64,
    window_cpu_us: u64,
    load: Load,
    /// Since when this thread and its giver are calm.
    calm_since_us: u64,
}

impl<'c, 'e> Driver<'c, 'e> {
    fn new(crew: &'c Crew<'e>, thread: usize) -> Self {
        Self {
            crew,
            thread,
            workers: Vec::new(),
            news: Vec::new(),
            cycles: Cycles::default(),
            places: crew.posts.iter().map(|_| 0).collect(),
            giver: None,
            pace: Pace::new(),
            window_us: 0,
            window_cpu_us: 0,
            load: Load::default(),
            calm_since_us: 0,
        }
    }

    /// Until all workers are over.
    fn run(&mut self) -> io::Result<()> {
        while self.has_workers()? {
            self.round()?;
        }
        Ok(())
    }

    fn post(&self) -> &'c Post {
        &self.crew.posts[self.thread]
    }

    /// Takes what was given, and waits for it when there is nothing to drive. Nothing will come when all are over.
    fn has_workers(&mut self) -> io::Result<bool> {
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
        self.pause();
        let timeout_ms = self.workers.iter().map(|worker| worker.timeout_ms()).min().unwrap_or(0);
        let first = &mut self.workers[0];
        first.look(timeout_ms)?;
        let brought = first.news_len();
        let now_ms = self.crew.engine.clock.now_ms();
        let now_us = first.clock_us();
        self.pace.looked(now_us, brought);
        let is_over = if self.workers.len() == 1 {
            self.workers[0].tick(now_ms, now_us, &mut self.cycles)
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
                worker.tell(event);
            }
        }
        let mut is_over = false;
        for worker in &mut self.workers {
            if worker.is_due(now_ms) {
                is_over |= worker.tick(now_ms, now_us, &mut self.cycles);
                now_us = worker.clock_us();
            }
        }
        is_over
    }

    /// Lets requests gather when the thread is faster than many clients.
    fn pause(&mut self) {
        let interval_us = u64::from(self.crew.engine.settings.poll_interval_us.load(Relaxed));
        if interval_us == 0 || !self.workers.iter().all(|worker| worker.may_pause()) {
            return;
        }
        let cycle_us = self.cycles.average_us();
        if let Some(moment) = self.pace.moment(interval_us, cycle_us, || self.workers[0].clock_us()) {
            crate::pace::sleep(moment);
        }
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
    fn give_half(&mut self, now_us: u64) {
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
    fn give_back(&mut self, giver: usize, now_us: u64) {
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

/// How much of its time a thread is on a CPU, an average that forgets.
#[derive(Default)]
struct Load {
    /// In thousandths.
    share: u64,
}

impl Load {
    /// Per cent, after another window. The first round that ends behind [`WINDOW_US`] closes it, so a long window is
    /// some work and one long wait. The work counts first, and gives the figure; then the wait.
    fn after(&mut self, cpu_us: u64, wall_us: u64) -> u32 {
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
