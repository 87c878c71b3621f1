//! Owns connections that are lent out and given back: how many there are, which are fit to be lent again. Does not own
//! what is done with them.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::connection::Connection;
use crate::error::{Error, Result, Waiting};

/// The bounds of a [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Connections at a time, lent and idle.
    pub size_max: usize,
    /// Idle connections that are kept.
    pub idle_max: usize,
    /// One that has been idle for longer is closed when the pool next looks at it.
    pub idle_time_max: Duration,
    /// One that has been idle for longer is asked with PING before it is lent. Every one is looked at for an end that
    /// the server has sent.
    pub check_after: Duration,
    /// The longest wait for a connection to be given back.
    pub wait: Duration,
}

impl Default for PoolConfig {
    fn default() -> Self {
        PoolConfig {
            size_max: 16,
            idle_max: 16,
            idle_time_max: Duration::from_secs(300),
            check_after: Duration::from_secs(10),
            wait: Duration::from_secs(5),
        }
    }
}

/// Connections to one server that threads share by borrowing. Cloning it is cheap, and gives the same pool.
///
/// A connection comes back as it was made, or not at all: one in a transaction, with subscriptions, another database or
/// unreceived replies is closed.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    bounds: PoolConfig,
    state: Mutex<State>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The one used last is at the back, and lent first, so that the others can grow old.
    idle: VecDeque<(Instant, Connection)>,
    lent: usize,
}

/// A connection on loan; dropping it gives it back.
#[derive(Debug)]
pub struct Pooled {
    connection: Option<Connection>,
    shared: Arc<Shared>,
}

impl Pool {
    /// A pool that has no connection yet.
    pub fn new(config: Config, bounds: PoolConfig) -> Self {
        let (state, given_back) = Default::default();
        Pool { shared: Arc::new(Shared { config, bounds, state, given_back }) }
    }

    /// A connection: an idle one that is in order, or a new one, or else the next that is given back.
    pub fn get(&self) -> Result<Pooled> {
        let shared = &self.shared;
        let deadline = Instant::now() + shared.bounds.wait;
        let mut state = shared.lock();
        loop {
            state = shared.close_old(state);
            if let Some((since, connection)) = state.idle.pop_back() {
                state.lent += 1;
                drop(state);
                let mut lent = Pooled { connection: Some(connection), shared: shared.clone() };
                if lent.is_in_order(since) {
                    return Ok(lent);
                }
                lent.connection = None;
                drop(lent);
                state = shared.lock();
                continue;
            }
            if state.lent < shared.bounds.size_max {
                state.lent += 1;
                drop(state);
                // On an error the place is given back by the drop.
                let mut lent = Pooled { connection: None, shared: shared.clone() };
                lent.connection = Some(Connection::connect(&shared.config)?);
                return Ok(lent);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Timeout(Waiting::Pool, shared.bounds.wait));
            }
            state = shared.given_back.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many connections are lent, and how many idle.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.lent, state.idle.len())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes, without the lock, what has been idle for too long.
    fn close_old<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let fresh = |(since, _): &(Instant, Connection)| since.elapsed() <= self.bounds.idle_time_max;
        let old = state.idle.iter().position(fresh).unwrap_or(state.idle.len());
        if old == 0 {
            return state;
        }
        let old: Vec<_> = state.idle.drain(..old).collect();
        drop(state);
        drop(old);
        self.lock()
    }
}

impl Pooled {
    fn is_in_order(&mut self, since: Instant) -> bool {
        if !self.is_open() {
            return false;
        }
        since.elapsed() <= self.shared.bounds.check_after || self.exchange(&["PING"]).is_ok()
    }
}

impl Deref for Pooled {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("a connection is there from `get` to `drop`")
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("a connection is there from `get` to `drop`")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let connection = self.connection.take().filter(|one| one.is_as_made(&self.shared.config));
        let mut state = self.shared.lock();
        state.lent -= 1;
        if let Some(connection) = connection
            && state.idle.len() < self.shared.bounds.idle_max
        {
            state.idle.push_back((Instant::now(), connection));
        }
        drop(state);
        self.shared.given_back.notify_one();
    }
}
