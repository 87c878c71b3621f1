//! Owns: what is late at one server: replies, waits for a connection, servers that say nothing, connections that nobody
//! uses. Does not own: what becomes of a connection that is given up (`crate::upstream`).

use weft_engine::error::{Error, ErrorCode};

use crate::answer::{Answer, Front, deliver};
use crate::figures::bump;
use crate::lines::nothing_came;
use crate::link::{Due, Expect};
use crate::upstream::{PING, Upstream};

/// A connection to be lent that nobody takes for so long is closed.
const IDLE_LEASE_MS: u64 = 60_000;

impl Upstream {
    /// Looks for what is late.
    pub(crate) fn look(&mut self, front: &mut impl Front) {
        self.refuse_waiting(front);
        self.give_up_late(front);
        self.wake_again(front);
        for at in 0..self.links.len() as u32 {
            self.look_at(at, front);
        }
        // Of a cluster's nodes only those are tried that somebody wants: others may be gone for good.
        for lane in 0..self.lanes.len() {
            if !self.is_routed && self.lanes[lane].breaker.is_open() {
                self.probe(lane);
            }
        }
        self.show();
    }

    fn refuse_waiting(&mut self, front: &mut impl Front) {
        for waiting in self.leases.take_late(self.now_ms) {
            let waited_ms = waiting.until_ms.saturating_sub(waiting.begun_ms);
            let text = format!(
                "no connection to the server behind the gateway came free in {waited_ms} ms (leases, {} of this \
                 worker): others watch keys or block",
                self.leases.max
            );
            deliver(front, waiting.to, waiting.silent, Answer::Error(Error::new(ErrorCode::Limit, text)));
        }
    }

    /// Whose request takes too long is told so, and its reply will be nobody's.
    fn give_up_late(&mut self, front: &mut impl Front) {
        let (now_ms, limit_ms) = (self.now_ms, self.options.command_timeout_ms);
        let (mut blocked, mut tried) = (Vec::new(), Vec::new());
        let places = self.links.iter_mut().zip(0..).filter_map(|(link, at)| Some((link.as_mut()?, at)));
        // Without a limit only who blocks, over a connection of his own, has waited for too long.
        let places = places.filter(|(link, _)| limit_ms > 0 || link.is_lease);
        for (due, at) in places.flat_map(|(link, at)| link.due().iter_mut().map(move |due| (due, at))) {
            let is_late = due.until_ms > 0 && due.until_ms <= now_ms;
            if is_late && matches!(due.expect, Expect::Block(_)) {
                blocked.push(at);
            } else if let Some(to) = due.to.filter(|_| is_late) {
                tried.extend(due.tried().map(|_| (at, due.begin)));
                due.to = None;
                self.tries.remove(&to.client());
                bump(&self.figures.late, 1);
                let text = format!(
                    "the server behind the gateway has not answered in {limit_ms} ms (command-timeout): whether the \
                     request has run is not known"
                );
                deliver(front, to, due.silent, Answer::Doubt(Error::new(ErrorCode::Upstream, text)));
            }
        }
        for (at, begin) in tried {
            self.link(at).into_iter().for_each(|link| link.void(begin));
        }
        blocked.dedup();
        for at in blocked {
            // What it would still bring would be lost: its server takes it for a client that leaves.
            bump(&self.figures.late, 1);
            self.end(at, "it has not answered when the time to block was over", front);
        }
    }

    fn look_at(&mut self, at: u32, front: &mut impl Front) {
        let (now_ms, timeout_ms) = (self.now_ms, self.options.timeout_ms);
        let silent_ms = self.options.silent_ms();
        let Some(link) = self.link(at).filter(|link| link.is_up()) else { return };
        let still_ms = now_ms.saturating_sub(link.stirred_ms);
        let (is_lease, is_free, resp2) = (link.is_lease, link.is_lease && link.owner.is_none(), link.resp2);
        match link.due().front().map(|due| matches!(due.expect, Expect::Block(_))) {
            Some(false) if still_ms > timeout_ms => {
                let why = nothing_came(timeout_ms);
                if !is_lease {
                    let lane = self.lane_at(at, resp2);
                    self.lanes[lane].breaker.fails(now_ms, &why);
                }
                self.end(at, &why, front);
            }
            None if is_free && still_ms > IDLE_LEASE_MS => {
                self.forget(at);
            }
            None if !is_lease && still_ms > silent_ms => {
                self.ask(at, &[PING], None, Due::new(None, Expect::Aside, true));
            }
            _ => {}
        }
    }
}
