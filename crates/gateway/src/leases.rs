//! Owns: which connections are lent to one client at a time, and who waits for one, in which order. Does not own: the
//! connections.

use std::collections::{BTreeMap, HashMap};

use crate::answer::Whose;
use crate::blocks::Since;
use crate::kept_bytes::Share;
use crate::link::Expect;

/// Somebody who waits for a connection to himself.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) to: Whose,
    pub(crate) bytes: Box<[u8]>,
    /// They, as they are counted.
    pub(crate) _share: Share,
    pub(crate) expect: Expect,
    pub(crate) db: u8,
    pub(crate) resp2: bool,
    pub(crate) silent: bool,
    /// Replies before its own that are passed over.
    pub(crate) skip: u32,
    pub(crate) since: Since,
    /// He is told that there is none at this time, since when he waits for one.
    pub(crate) until_ms: u64,
    pub(crate) begun_ms: u64,
}

/// A worker's connections to be lent.
#[derive(Debug)]
pub(crate) struct Leases {
    /// As many as there may be, those that are being made among them.
    pub(crate) max: usize,
    pub(crate) count: usize,
    /// Being made.
    pub(crate) coming: usize,
    /// Asked to speak another protocol.
    pub(crate) turning: usize,
    /// Free ones, by their places; the one that was used last is taken first.
    pub(crate) free: Vec<u32>,
    pub(crate) waiting: Line,
    /// Who has one, by the client's id.
    pub(crate) owners: HashMap<u64, u32>,
}

impl Leases {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            count: 0,
            coming: 0,
            turning: 0,
            free: Vec::new(),
            waiting: Line::default(),
            owners: HashMap::new(),
        }
    }
    /// Whether one more is to be made.
    pub(crate) fn wants_more(&self) -> bool {
        self.free.is_empty() && self.coming + self.turning < self.waiting.len() && self.count < self.max
    }
    /// Whether the one who has waited longest speaks RESP2, if a connection is free for him.
    pub(crate) fn next_speaks(&self) -> Option<bool> {
        let is_there = !self.free.is_empty() && self.turning < self.waiting.len();
        is_there.then(|| self.waiting.iter().next().is_some_and(|waiting| waiting.resp2))
    }
    /// Has somebody be the next who needs no more than a connection. Says whether there is one.
    pub(crate) fn alone_first(&mut self) -> bool {
        let is_alone = |waiting: &&Waiting| matches!(waiting.expect, Expect::Alone);
        let Some(client) = self.waiting.iter().find(is_alone).map(|waiting| waiting.to.client()) else {
            return false;
        };
        let waiting = self.waiting.remove(client);
        waiting.into_iter().for_each(|waiting| self.waiting.push_front(waiting));
        true
    }
    /// Those whose time is over.
    pub(crate) fn take_late(&mut self, now_ms: u64) -> Vec<Waiting> {
        // One that was put before the others came later.
        let is_late = |waiting: &&Waiting| waiting.until_ms <= now_ms;
        let late: Vec<u64> = self.waiting.iter().filter(is_late).map(|waiting| waiting.to.client()).collect();
        late.into_iter().filter_map(|client| self.waiting.remove(client)).collect()
    }
    /// A client has the connection of this place no more; it may have another one by now.
    pub(crate) fn disown(&mut self, client: u64, at: u32) {
        if self.owners.get(&client) == Some(&at) {
            self.owners.remove(&client);
        }
    }
    /// Takes a client out of those who wait.
    pub(crate) fn leave(&mut self, client: u64) -> Option<Waiting> {
        self.waiting.remove(client)
    }
}

/// Those who wait, each once, in their order; a client is found without a look at the others.
#[derive(Debug, Default)]
pub(crate) struct Line {
    all: BTreeMap<i64, Waiting>,
    places: HashMap<u64, i64>,
}

impl Line {
    /// Whether a client waits with what may block.
    pub(crate) fn blocks(&self, client: u64) -> bool {
        let place = self.places.get(&client).and_then(|place| self.all.get(place));
        place.is_some_and(|waiting| matches!(waiting.expect, Expect::Block(_)))
    }
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.all.values()
    }
    fn put(&mut self, place: i64, waiting: Waiting) {
        self.places.insert(waiting.to.client(), place);
        self.all.insert(place, waiting);
    }
    pub(crate) fn push_back(&mut self, waiting: Waiting) {
        let place = self.all.last_key_value().map_or(0, |(last, _)| last + 1);
        self.put(place, waiting);
    }
    fn push_front(&mut self, waiting: Waiting) {
        let place = self.all.first_key_value().map_or(0, |(first, _)| first - 1);
        self.put(place, waiting);
    }
    pub(crate) fn pop_front(&mut self) -> Option<Waiting> {
        let (_, waiting) = self.all.pop_first()?;
        self.places.remove(&waiting.to.client());
        Some(waiting)
    }
    fn remove(&mut self, client: u64) -> Option<Waiting> {
        self.all.remove(&self.places.remove(&client)?)
    }
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Waiting> + use<> {
        std::mem::take(self).all.into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::client;

    #[test]
    fn who_is_put_first_keeps_nobody_waiting() {
        let mut leases = Leases::new(1);
        for (number, expect, until_ms) in
            [(1, Expect::Watch, 5), (2, Expect::Watch, 6), (3, Expect::Alone, 9)]
        {
            let (to, bytes) = (client(number).into(), Box::default());
            let (db, resp2, silent, skip) = (0, false, false, 0);
            let _share = Share::default();
            leases.waiting.push_back(Waiting {
                to,
                bytes,
                _share,
                expect,
                db,
                resp2,
                silent,
                skip,
                since: Since::default(),
                until_ms,
                begun_ms: 0,
            });
        }
        assert!(leases.alone_first());
        let clients = |leases: &Leases| -> Vec<u64> {
            leases.waiting.iter().map(|waiting| waiting.to.client()).collect()
        };
        assert_eq!(clients(&leases), [3, 1, 2]);
        assert!(leases.take_late(4).is_empty());
        let late: Vec<u64> = leases.take_late(6).iter().map(|waiting| waiting.to.client()).collect();
        assert_eq!((late, clients(&leases)), (vec![1, 2], vec![3]));
        assert!(leases.leave(1).is_none() && leases.leave(3).is_some() && leases.waiting.len() == 0);
    }
}
