//! A worker by itself, on one end of socket pairs, driven tick by tick by whoever has the other ends, and parts of HTTP
//! that need none: for tests, for the program whose instructions are counted (`examples/server_costs`), for fuzz
//! targets. Does not own what they do.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use weft_engine::args::{Slot, Slots};
use weft_engine::session::ConnectionInfo;
use weft_engine::{Engine, Setup};
use weft_store::{Config, KeyHasher, Keyspace, SystemClock};

use crate::http::head::{self, HeadLimits};
use crate::http::json::{Commands, Place};
use crate::http::target;
use crate::listener::{Arrival, Inbox, Speaks};
use crate::poll::Poll;
use crate::shared::Shared;
use crate::worker::Worker;

/// An engine and its only worker.
pub struct Alone {
    /// The engine, which is never taken down.
    pub engine: &'static Engine,
    pub(crate) worker: Worker<'static>,
    pub(crate) inbox: Arc<Inbox>,
}

impl Default for Alone {
    fn default() -> Self {
        Self::new()
    }
}

impl Alone {
    /// One with the limits of every server.
    ///
    /// # Panics
    /// Where the system has no epoll.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Shared::default())
    }
    pub(crate) fn with(shared: Shared) -> Self {
        Self::on(shared, 1)
    }
    /// One with another place in the keyspace: of a stack, so that scripts may take their time, or of a test.
    #[cfg(test)]
    pub(crate) fn with_stack() -> Self {
        Self::on(Shared::default(), 2)
    }
    fn on(shared: Shared, places: usize) -> Self {
        // The same key for every run, so that runs count the same.
        let hasher = KeyHasher::with_seed(7);
        let keyspace = Keyspace::new(Config { shards: 16, workers: places, hasher, ..Config::default() });
        let setup = Setup { keyspace, clock: Box::new(SystemClock), workers: 1 };
        let engine: &Engine = Box::leak(Box::new(Engine::new(setup)));
        let inbox = Arc::new(Inbox::new(Arc::new(shared)));
        let poll = Poll::new(0).expect("there is epoll");
        let worker = Worker::new(engine, 0, Arc::clone(&inbox), poll, Instant::now());
        Self { engine, worker: worker.expect("there is a place for it"), inbox }
    }
    /// A client's end of a connection.
    ///
    /// # Panics
    /// Where no more files can be open.
    pub fn connect(&mut self) -> UnixStream {
        let client = self.arrive();
        self.tick();
        client
    }
    /// The same, not taken yet.
    pub(crate) fn arrive(&self) -> UnixStream {
        let (client, server) = UnixStream::pair().expect("a pair of sockets");
        server.set_nonblocking(true).expect("it can be set");
        let info = ConnectionInfo::default();
        self.inbox.put(Arrival { fd: server.into(), info, speaks: Speaks::Any });
        client
    }
    /// A look at all sockets, and all that they have brought.
    ///
    /// # Panics
    /// Where sockets cannot be looked at.
    pub fn tick(&mut self) {
        self.worker.look(0).expect("sockets can be looked at");
        let (now_ms, now_us) = (self.engine.clock.now_ms(), self.worker.clock_us());
        self.worker.tick(now_ms, now_us);
    }
}

/// The arguments of the commands in a body of `/pipeline`; or why it has none.
///
/// # Errors
/// The text of the answer.
pub fn commands_of_body(body: &[u8], in_frame: bool) -> Result<Vec<Vec<Vec<u8>>>, String> {
    let mut commands = Commands::read(Place { body, at: in_frame.then_some(0) })?;
    let mut all = Vec::new();
    while !commands.is_over() {
        let mut slots = Slots::default();
        commands.give(&mut slots);
        all.push(texts(&slots, body));
    }
    Ok(all)
}

/// The arguments of the command in the target of a request; or why it has none. Nothing where it is no target.
///
/// # Errors
/// The text of the answer.
pub fn command_of_target(request_target: &[u8]) -> Option<Result<Vec<Vec<u8>>, String>> {
    let request = [b"GET ", request_target, b" HTTP/1.1\r\nHost: localhost\r\n\r\n"].concat();
    let limits = HeadLimits { line_bytes: usize::MAX, head_bytes: usize::MAX, headers: 1 };
    let head = head::parse(&request, 0, limits).ok().flatten().filter(|head| head.len == request.len())?;
    let mut slots = Slots::default();
    let read = target::path(&request, head.path, &mut slots)
        .and_then(|()| head.query.map_or(Ok(()), |query| target::query(&request, query, &mut slots)));
    Some(read.map(|()| texts(&slots, &request)))
}

fn texts(slots: &Slots, request: &[u8]) -> Vec<Vec<u8>> {
    let text = |slot: &Slot| match *slot {
        Slot::Frame { offset, len } => request[offset as usize..][..len as usize].to_vec(),
        Slot::Side { offset, len } => slots.side[offset as usize..][..len as usize].to_vec(),
        _ => unreachable!("HTTP has no numbers in binary"),
    };
    slots.list.iter().map(text).collect()
}
