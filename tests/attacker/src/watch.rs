//! Owns: how long each thread has been at one thing, and the end of a run in which one takes too long: the finding is
//! told at once, and the servers are killed, which ends every wait for them. Does not own: what they do.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

static BOARD: Mutex<Board> = Mutex::new(Board { next: 0, steps: BTreeMap::new(), servers: Vec::new() });

struct Board {
    next: u64,
    /// What is under way, and since when.
    steps: BTreeMap<u64, (String, Instant)>,
    servers: Vec<Pid>,
}

fn board() -> MutexGuard<'static, Board> {
    BOARD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that has an end, and is over when this is dropped.
pub(crate) struct Step(u64);

/// Something begins that has an end.
pub(crate) fn step(what: String) -> Step {
    let mut board = board();
    board.next += 1;
    let number = board.next;
    board.steps.insert(number, (what, Instant::now()));
    Step(number)
}

impl Drop for Step {
    fn drop(&mut self) {
        board().steps.remove(&self.0);
    }
}

/// These are what the run waits for.
pub(crate) fn servers(pids: Vec<Pid>) {
    board().servers = pids;
}

/// Watches from now on: nothing takes longer than this.
pub(crate) fn begin(step_max: Duration) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(LOOK);
            end_if_late(step_max);
        }
    });
}

fn end_if_late(step_max: Duration) {
    let mut board = board();
    let is_late = |(_, (_, since)): &(&u64, &(String, Instant))| since.elapsed() > step_max;
    if board.servers.is_empty() || !board.steps.iter().any(|step| is_late(&step)) {
        return;
    }
    for (_, (what, since)) in board.steps.iter().filter(is_late) {
        eprintln!("FOUND: after {:.0?} still under way: {what}", since.elapsed());
    }
    for (_, (what, since)) in board.steps.iter().filter(|step| !is_late(step)) {
        eprintln!("beside it, for {:.1?}: {what}", since.elapsed());
    }
    for server in std::mem::take(&mut board.servers) {
        // It may have ended by itself.
        let _ = kill_process(server, Signal::KILL);
    }
}
