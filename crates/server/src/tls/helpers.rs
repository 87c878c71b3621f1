//! Owns: the threads that do the expensive steps of handshakes, signatures above all, so that no client of a worker
//! waits for them. Does not own: connections, which lend what a step needs and get it back.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use rustls::server::ServerConnection;

use crate::listener::Inbox;

/// Threads at most. More would take cores from the workers.
const THREADS_MAX: usize = 4;
/// How much less urgent they are than workers: a handshake that takes a millisecond longer holds up itself alone.
const NICE: i32 = 10;

/// A connection whose handshake is to go a step further.
pub(crate) struct Step {
    pub(crate) tls: Box<ServerConnection>,
    /// Whose it is: its place, and the client that had it, since the place may have a new owner meanwhile.
    pub(crate) index: u32,
    pub(crate) client: u64,
    /// The worker that it goes back to.
    pub(crate) worker: Arc<Inbox>,
}

/// A step that has been done.
pub(crate) struct Stepped {
    pub(crate) tls: Box<ServerConnection>,
    pub(crate) index: u32,
    pub(crate) client: u64,
    pub(crate) result: Result<(), rustls::Error>,
}

/// Steps that wait. There is at most one for each connection.
#[derive(Default)]
struct Queue {
    steps: Mutex<VecDeque<Step>>,
    has_more: Condvar,
}

/// The threads, which start with the first step.
#[derive(Default)]
pub(crate) struct Helpers {
    queue: Arc<Queue>,
    started: OnceLock<bool>,
}

impl Helpers {
    /// Hands a step over. Where no thread can be had, it is done at once.
    pub(crate) fn take(&self, step: Step) {
        if !*self.started.get_or_init(|| start(&self.queue)) {
            return step.run();
        }
        self.queue.steps.lock().unwrap_or_else(PoisonError::into_inner).push_back(step);
        self.queue.has_more.notify_one();
    }
}

/// Starts threads, which live as long as the process; whether there is one at least.
fn start(queue: &Arc<Queue>) -> bool {
    let count = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS_MAX));
    let mut started = false;
    for id in 0..count {
        let queue = Arc::clone(queue);
        let thread = std::thread::Builder::new().name(format!("weft-tls-{id}"));
        started |= thread.spawn(move || run(&queue)).is_ok();
    }
    started
}

fn run(queue: &Queue) {
    // Where it fails, a handshake is as urgent as a request.
    let _ = rustix::process::nice(NICE);
    let mut steps = queue.steps.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match steps.pop_front() {
            Some(step) => {
                drop(steps);
                step.run();
                steps = queue.steps.lock().unwrap_or_else(PoisonError::into_inner);
            }
            None => steps = queue.has_more.wait(steps).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

impl Step {
    fn run(self) {
        let Self { mut tls, index, client, worker } = self;
        let result = tls.process_new_packets().map(|_| ());
        worker.give_back(Stepped { tls, index, client, result });
    }
}
