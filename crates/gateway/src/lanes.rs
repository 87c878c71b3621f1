//! Owns: which of the connections that clients share a request goes over: one for each protocol, and one for each of
//! few databases beside 0. Does not own: the connections (`crate::upstream`).
//!
//! Where the database changes on a connection what is behind waits for the answer to SELECT. So a database that is in
//! use has a connection of its own, as long as there are few; all others share that of database 0. A database stays
//! where it is while anything of it is under way: a client's replies come in the order of one connection.

use weft_engine::error::Error;

use crate::answer::unreachable;
use crate::breaker::Breaker;
use crate::figures::bump;
use crate::upstream::Upstream;

/// Databases beside 0 that have a connection of their own, in each protocol.
pub(crate) const OWN_DATABASES_MAX: usize = 3;
/// One over which nothing goes for so long may be another database's.
const UNUSED_MS: u64 = 60_000;

/// What a shared connection is at.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) resp2: bool,
    /// The database that is alone on it; the others, where there is none.
    db: Option<u8>,
    used_ms: u64,
    /// The connection, which may be being made.
    pub(crate) link: Option<u32>,
    pub(crate) breaker: Breaker,
}

impl Lane {
    /// Those of all databases: over RESP3, and over RESP2.
    pub(crate) fn first() -> Vec<Self> {
        [false, true].map(|resp2| Self::new(resp2, None)).into()
    }
    fn new(resp2: bool, db: Option<u8>) -> Self {
        Self { resp2, db, used_ms: 0, link: None, breaker: Breaker::default() }
    }
}

impl Upstream {
    /// The shared connection for a database that speaks one of the two protocols; it may be being made. The error says
    /// why there is none.
    pub(crate) fn shared(&mut self, resp2: bool, db: u8) -> Result<u32, Error> {
        let lane = self.lane_of(resp2, db);
        self.over(lane)
    }

    /// The same, of a lane.
    pub(crate) fn over(&mut self, lane: usize) -> Result<u32, Error> {
        if let Some(at) = self.lanes[lane].link
            && (!self.lanes[lane].breaker.is_open() || self.link(at).is_some_and(|link| link.is_up()))
        {
            return Ok(at);
        }
        self.probe(lane);
        let Lane { link, breaker, .. } = &self.lanes[lane];
        match link {
            Some(at) if !breaker.is_open() => Ok(*at),
            _ => {
                bump(&self.figures.refused, 1);
                Err(unreachable(breaker.why()))
            }
        }
    }

    /// Whether the connection of all databases stands; it is made, if there is none. The error says why there will be
    /// none for now.
    pub(crate) fn stands(&mut self, resp2: bool) -> Result<bool, Error> {
        let at = self.shared(resp2, 0)?;
        Ok(self.link(at).is_some_and(|link| link.is_up()))
    }

    /// Has the connection of a lane made, if there is none, unless it is to be left alone for now.
    pub(crate) fn probe(&mut self, lane: usize) {
        let Lane { resp2, link, breaker, .. } = &self.lanes[lane];
        if link.is_none() && (!breaker.is_open() || breaker.is_over(self.now_ms)) {
            let at = self.dial(*resp2, false);
            self.lanes[lane].link = Some(at);
            self.show();
        }
    }

    /// The lane of a connection that is shared; of one that is not, that of all databases.
    pub(crate) fn lane_at(&self, at: u32, resp2: bool) -> usize {
        self.lanes.iter().position(|lane| lane.link == Some(at)).unwrap_or(usize::from(resp2))
    }

    /// The lane of a database, which is given one, if it may have one.
    fn lane_of(&mut self, resp2: bool, db: u8) -> usize {
        let all = usize::from(resp2);
        if db == 0 {
            return all;
        }
        let now_ms = self.now_ms;
        let is_of = |lane: &Lane| lane.resp2 == resp2 && lane.db == Some(db);
        if let Some(lane) = self.lanes.iter().position(is_of) {
            self.lanes[lane].used_ms = now_ms;
            return lane;
        }
        let is_own = |lane: &Lane| lane.resp2 == resp2 && lane.db.is_some();
        let lane = if self.lanes.iter().filter(|lane| is_own(lane)).count() < self.options.own_databases_max {
            // It has not been used before.
            self.lanes.push(Lane::new(resp2, None));
            self.lanes.len() - 1
        } else {
            let is_still = |at: Option<u32>| {
                let link = at.and_then(|at| self.links.get(at as usize)?.as_ref());
                link.is_none_or(|link| link.asked() == 0)
            };
            let is_unused =
                |lane: &Lane| is_own(lane) && now_ms > lane.used_ms + UNUSED_MS && is_still(lane.link);
            match self.lanes.iter().position(is_unused) {
                // Something of it may be under way where all others are.
                Some(lane) if is_still(self.lanes[all].link) => lane,
                _ => return all,
            }
        };
        (self.lanes[lane].db, self.lanes[lane].used_ms) = (Some(db), now_ms);
        lane
    }
}
