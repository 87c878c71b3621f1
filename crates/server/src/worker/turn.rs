//! Owns: whose programs that take long have their turn: of all workers of a thread one in a round, behind what the
//! others have sent. Does not own: when a turn is over (`weft_engine::executor`), the round (`crate::crew`).

use super::Worker;

/// What a tick may do of programs that take long.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    /// Those that come now wait for the next one.
    pub(super) is_over: bool,
    /// It is for those of this worker that wait.
    pub(super) is_own: bool,
}

impl Turn {
    /// Of a worker that has its thread to itself.
    pub(super) fn of_one(worker: &Worker<'_>) -> Self {
        Self { is_over: worker.waits_for_turn() || worker.has_run_long, is_own: true }
    }
}

impl Worker<'_> {
    /// Whether programs wait for a turn.
    fn waits_for_turn(&self) -> bool {
        !self.io.turns.is_empty()
    }
}

/// The turns of the workers of a thread.
#[derive(Default)]
pub(crate) struct Turns {
    /// Programs have taken long in this round, or wait: whoever has come meanwhile is before all others.
    is_over: bool,
    /// They have taken long in this round, which the next one is told of.
    has_run_long: bool,
    /// The worker that has its turn in this round, if one waits for it; and the one that is asked first in the next.
    own: Option<usize>,
    next: usize,
}

impl Turns {
    /// A round begins. Gives the workers in the order of their ticks: who has the turn is the last one.
    pub(crate) fn begin(&mut self, workers: &[Worker<'_>]) -> impl Iterator<Item = usize> + use<> {
        let count = workers.len();
        let places = (self.next..self.next + count).map(|at| at % count);
        self.own = places.clone().find(|at| workers[*at].waits_for_turn());
        self.next = self.own.map_or(self.next, |own| own + 1);
        self.is_over = std::mem::take(&mut self.has_run_long) || self.own.is_some();
        let own = self.own;
        (0..count).filter(move |at| Some(*at) != own).chain(own)
    }
    /// That of one of them.
    pub(crate) fn of(&self, place: usize) -> Turn {
        Turn { is_over: self.is_over, is_own: self.own == Some(place) }
    }
    /// One has had its tick.
    pub(crate) fn had(&mut self, worker: &Worker<'_>) {
        self.has_run_long |= worker.has_run_long;
        self.is_over |= worker.has_run_long;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::Alone;

    #[test]
    fn one_worker_of_a_thread_has_its_turn_in_a_round_behind_the_others() {
        let mut workers: Vec<Worker<'_>> = (0..3).map(|_| Alone::new().worker).collect();
        let mut turns = Turns::default();
        let round = |turns: &mut Turns, workers: &[Worker<'_>]| {
            let order: Vec<usize> = turns.begin(workers).collect();
            let own: Vec<usize> = (0..3).filter(|at| turns.of(*at).is_own).collect();
            (order, own, turns.of(0).is_over)
        };
        assert_eq!(round(&mut turns, &workers), (vec![0, 1, 2], vec![], false), "nobody waits");
        for worker in &mut workers[..2] {
            worker.io.turns.push_back((0, 0));
        }
        assert_eq!(round(&mut turns, &workers), (vec![1, 2, 0], vec![0], true));
        assert_eq!(round(&mut turns, &workers), (vec![0, 2, 1], vec![1], true), "each in its turn");
        assert_eq!(round(&mut turns, &workers), (vec![1, 2, 0], vec![0], true));
        for worker in &mut workers {
            worker.io.turns.clear();
        }
        assert!(!round(&mut turns, &workers).2);
        // One has taken long: those behind it have no turn in this round, and none has one in the next.
        workers[1].has_run_long = true;
        turns.had(&workers[0]);
        assert!(!turns.of(2).is_over);
        turns.had(&workers[1]);
        assert!(turns.of(2).is_over);
        assert!(round(&mut turns, &workers).2);
        assert!(!round(&mut turns, &workers).2);
    }
}
