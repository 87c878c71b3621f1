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
//!
//! | file | owns |
//! |---|---|
//! | here | who has which workers, handing them over |
//! | `driver` | one thread: its rounds, and when it gives workers away or back |
//! | `load` | how much of its time a thread is on a CPU |

mod driver;
mod load;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use weft_engine::Engine;

use crate::poll::Waker;
use crate::signals;
use crate::worker::Worker;
use driver::{CALM_US_MIN, Driver};

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
