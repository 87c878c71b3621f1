//! Owns: one request of a client on its way out: over which connection it goes, with what before it, and what is due
//! for it. Does not own: connections (`crate::upstream`), lending one (`crate::lending`), what the reply means
//! (`crate::answer`).

use weft_engine::error::{Error, ErrorCode};
use weft_engine::forward::{Forward, Kind};

use crate::answer::{Answer, Front, Whose, deliver, keeps_too_much};
use crate::blocks::Since;
use crate::link::{Due, Expect, Tried};
use crate::orders::ASKING;
use crate::scripts::{requests, words};
use crate::upstream::{EXEC, MULTI, PING, TRACKING, Upstream};

const CACHING: &[u8] = b"*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n";

impl Upstream {
    /// Takes one request. `begun_ms`: since when its client waits. `stamp`: by which it is told from others of its
    /// client. `prefix`: requests before it whose replies are passed over.
    pub(crate) fn forward(
        &mut self,
        forward: Forward,
        (begun_ms, stamp, prefix): (u64, u64, &[u8]),
        bytes: &[u8],
        front: &mut impl Front,
    ) {
        let since = Since::of(&forward.kind, begun_ms);
        let own = self.watched_over(&forward);
        let before = if prefix.is_empty() { 0 } else { requests(prefix).count() as u32 };
        let Some(forward) = self.goes_alone((forward, since), (own, stamp), (before, prefix, bytes), front)
        else {
            return;
        };
        let Forward { to, kind, db, resp2, reads, silent, tracks, .. } = forward;
        let to = Whose { to, stamp };
        // A database is selected where it is used.
        let in_db = if let Kind::Select(db) = kind { db } else { db };
        let at = match own.map_or_else(|| self.shared(resp2, in_db), Ok) {
            Ok(at) => at,
            Err(error) => return deliver(front, to, silent, Answer::NotRun(error)),
        };
        let until_ms = self.options.late_ms(begun_ms);
        if let Some(error) = self.lacks_room(at, prefix.len() + bytes.len()) {
            if let (Kind::Exec(_), Some(own)) = (&kind, own) {
                self.unwatch(own, front);
                return deliver(front, to, silent, Answer::Error(error));
            }
            // Others of its client may be under way: its answer is behind theirs.
            let expect = Expect::Instead(Box::new(error));
            let instead = Due { reads: true, until_ms, ..Due::new(Some(to), expect, silent) };
            return self.ask(at, &[PING], None, instead);
        }
        if own.is_some() {
            self.speak(at, resp2);
        }
        // What must stand right before a command leaves no room for what must stand right before it.
        let noted = tracks.is_some() && !resp2 && own.is_none() && !prefix.ends_with(ASKING);
        let (caching, before) = if noted { (CACHING, before + 1) } else { (&b""[..], before) };
        let due = |expect| Due { reads, tracks, noted, until_ms, ..Due::new(Some(to), expect, silent) };
        match kind {
            Kind::Plain | Kind::Scan | Kind::Scatter(..) | Kind::Everywhere(_) => {
                self.ask(at, &[prefix, caching, bytes], Some(db), due(Expect::Plain).skipping(before));
            }
            Kind::Select(db) => self.ask(at, &[bytes], None, due(Expect::Select(db))),
            Kind::Exec(queued) => {
                let due = due(Expect::Exec).skipping(before).queueing(queued);
                self.ask(at, &[prefix, caching, bytes], Some(db), due);
                // Whatever its client watches from here on is watched over another one.
                self.leases.disown(to.client(), at);
            }
            Kind::Watch => self.ask(at, &[bytes], Some(db), due(Expect::Watch)),
            Kind::Blocks(_) if own.is_some() => {
                let until_ms = since.late_ms(&self.options, self.now_ms);
                let due = Due { until_ms, ..due(Expect::Block(None)) };
                self.ask(at, &[&since.sent(bytes, 0, self.now_ms)], Some(db), due);
                if !front.may_wait(to.to) {
                    self.hurry(to.to, front);
                }
            }
            Kind::Blocks(_) => {
                // It is not blocked by this, however long it has been elsewhere.
                let until_ms = self.options.late_ms(self.now_ms);
                let _share = self.share(bytes.len());
                let expect = Expect::Try(Box::new(Tried { bytes: bytes.into(), db, since, _share }), None);
                let due = Due { until_ms, ..due(expect).queueing(1) };
                self.ask(at, &[MULTI, bytes, EXEC], Some(db), due);
            }
            Kind::Alone => self.ask(at, &[bytes], Some(db), due(Expect::Alone)),
            Kind::Track(request) if self.link(at).is_some_and(|link| link.tracks) => {
                front.answer(to, Answer::Confirmed(Box::new(request)));
            }
            Kind::Track(request) => self.ask(at, &[TRACKING], None, due(Expect::Track(Box::new(request)))),
            Kind::Subscribe(..) | Kind::Release => {}
        }
    }

    /// Takes what goes over no connection that others share, nor over the one that its client has. Gives back what
    /// does.
    fn goes_alone(
        &mut self,
        (forward, since): (Forward, Since),
        (own, stamp): (Option<u32>, u64),
        (before, prefix, bytes): (u32, &[u8], &[u8]),
        front: &mut impl Front,
    ) -> Option<Forward> {
        let Forward { to, db, resp2, silent, watches, .. } = forward;
        let whose = Whose { to, stamp };
        let who = (whose, db, resp2, silent);
        match forward.kind {
            Kind::Release => self.release(to, front),
            Kind::Subscribe(kind, args) => {
                if silent {
                    self.silent.insert(to.client);
                }
                self.hub.subscribe(&self.inbox, to, kind, args);
            }
            Kind::Exec(_) if watches > 0 && !self.has_watched(own, watches) => {
                if let Some(at) = own {
                    self.unwatch(at, front);
                }
                deliver(front, whose, silent, Answer::Null);
            }
            Kind::Watch if own.is_none() => {
                self.wait_for_lease(who, (0, bytes), (Expect::Watch, since), front);
            }
            Kind::Alone if own.is_none() => {
                self.wait_for_lease(who, (0, bytes), (Expect::Alone, since), front);
            }
            // There is no trying it with what must stand right before it; nor what reads behind the last entry that
            // there is, which the next time would be another one.
            Kind::Blocks(_) if own.is_none() && (before > 0 || reads_behind_last(bytes)) => {
                let bytes = [prefix, bytes].concat();
                self.wait_for_lease(who, (before, &bytes), (Expect::Block(None), since), front);
            }
            _ => return Some(forward),
        }
        None
    }

    /// The connection over which a request's client watches keys.
    fn watched_over(&self, forward: &Forward) -> Option<u32> {
        let at = *self.leases.owners.get(&forward.to.client).filter(|_| forward.watches > 0)?;
        self.links[at as usize].as_ref().is_some_and(|link| link.watches).then_some(at)
    }
    /// Whether all that a client watches is watched over the connection that it has: each WATCH was answered OK there.
    /// If it was lost since, or any WATCH was, elsewhere refused, or is not answered, EXEC must do nothing.
    fn has_watched(&mut self, own: Option<u32>, watches: u32) -> bool {
        own.and_then(|at| self.link(at)).is_some_and(|link| link.watched == watches)
    }

    /// Why there is no room for so many bytes more on a connection, if there is none.
    fn lacks_room(&mut self, at: u32, bytes: usize) -> Option<Error> {
        let max = self.options.waiting_bytes_max;
        if self.link(at).is_some_and(|link| link.waiting() + bytes > max) {
            let text =
                format!("too much waits on a connection to the server behind the gateway ({max} bytes)");
            return Some(Error::new(ErrorCode::Limit, text));
        }
        self.lacks_room_in_all(bytes)
    }
    /// The same of all that the worker keeps.
    pub(crate) fn lacks_room_in_all(&self, bytes: usize) -> Option<Error> {
        let max = self.options.kept_bytes_max;
        let is_full = self.kept.as_ref().is_some_and(|kept| kept.bytes() + bytes > max);
        is_full.then(|| keeps_too_much(max))
    }
}

/// Whether XREAD waits for what comes behind the last entry that a stream has when it runs.
fn reads_behind_last(bytes: &[u8]) -> bool {
    let mut words = words(bytes);
    words.next().is_some_and(|name| name.eq_ignore_ascii_case(b"XREAD")) && words.any(|word| word == b"$")
}
