//! Owns: the threads that do the expensive steps of handshakes, signatures above all, so that no client of a worker
//! waits for them. Does not own: connections, which lend what a step needs and get it back.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

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
    /// The connection's sign of life.
    pub(crate) owner: Weak<()>,
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

/// Steps of connections that are gone which stay in line until there are so many more of them than of others.
const STALE_MAX: usize = 256;

/// Steps that wait: at most one for each connection that is there, and twice as many or [`STALE_MAX`] together with
/// those of connections that are gone, which nobody does.
#[derive(Default)]
struct Line {
    steps: VecDeque<Step>,
    /// How many there may be before those are taken out that nobody waits for.
    look_at: usize,
}

impl Line {
    fn push(&mut self, step: Step) {
        self.steps.push_back(step);
        if self.steps.len() > self.look_at.max(STALE_MAX) {
            self.steps.retain(Step::is_wanted);
            self.look_at = 2 * self.steps.len();
        }
    }
    /// The next one that somebody waits for.
    fn next(&mut self) -> Option<Step> {
        loop {
            let step = self.steps.pop_front()?;
            if step.is_wanted() {
                return Some(step);
            }
        }
    }
}

#[derive(Default)]
struct Queue {
    line: Mutex<Line>,
    has_more: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        self.queue.lock().push(step);
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
    let mut line = queue.lock();
    loop {
        match line.next() {
            Some(step) => {
                drop(line);
                step.run();
                line = queue.lock();
            }
            None => line = queue.has_more.wait(line).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

impl Step {
    /// Whether its connection is there.
    fn is_wanted(&self) -> bool {
        self.owner.strong_count() > 0
    }
    fn run(self) {
        let Self { mut tls, index, client, worker, .. } = self;
        let result = tls.process_new_packets().map(|_| ());
        worker.give_back(Stepped { tls, index, client, result });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::{Setup, Tls};

    #[test]
    fn steps_of_who_is_gone_are_not_done_and_do_not_pile_up() {
        let mut values = weft_engine::config::Values::default();
        values.set(b"tls-self-signed", &[b"yes"]).expect("it is a directive");
        let setup = Arc::new(Setup::of(&values).expect("it can be had").expect("there is a certificate"));
        let worker = Arc::new(Inbox::default());
        let mut line = Line::default();
        let mut step = |index: u32| {
            let mut tls = Tls::new(Arc::clone(&setup)).expect("it can begin");
            let step = Step {
                tls: tls.state_of_new(),
                index,
                client: 0,
                owner: tls.sign_of_life(),
                worker: Arc::clone(&worker),
            };
            line.push(step);
            (tls, line.steps.len())
        };
        let (one, _) = step(0);
        for _ in 0..4 * STALE_MAX as u32 {
            let (_, count) = step(1);
            assert!(count <= STALE_MAX + 1, "{count}");
        }
        let (last, _) = step(2);
        assert_eq!(
            [line.next().map(|step| step.index), line.next().map(|step| step.index)],
            [Some(0), Some(2)]
        );
        assert!(line.next().is_none());
        drop((one, last));
    }
}
