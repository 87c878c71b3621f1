//! Weft's server: sockets in front of the engine.
//!
//! Owns: listening, workers and their loops, connections, RESPB channels, limits of input and output, background work.
//! Does not own: commands (`weft-engine`), codecs (`weft-protocol`).
//!
//! # Map
//!
//! | module | owns |
//! |---|---|
//! | `listener` | listening, accepting, handing connections to workers in turn |
//! | `doorstep` | what those are told that are refused |
//! | `crew` | which thread drives which workers, and the loop |
//! | `persistence` | the thread that keeps what the engine tells: log, snapshots, loading |
//! | `pace` | how long requests of busy clients gather |
//! | `worker` | a worker's tick: receive, decode, run, send |
//! | `worker::feed`, `worker::aftermath`, `worker::messages` | bytes to requests; what follows them; what others send |
//! | `worker::mail` | what others have sent and has not been told yet, and in which order it is told |
//! | `worker::handshake`, `worker::farewell` | how a connection begins with TLS; how the server ends one |
//! | `worker::http`, `worker::followers`, `worker::watchers` | whose HTTP request is next; who follows what |
//! | `worker::upstream` | of a gateway: what goes to the servers behind, and their answers |
//! | `worker::upkeep` | idle connections, spare memory, those that have ended, the end of the worker |
//! | `io` | a worker's connections and buffers, as the executor's host |
//! | `client` | a logical client: its session, and its requests that wait to run |
//! | `connection` | one connection: socket, input, output, whose it is |
//! | `channels` | RESPB: channels, queues, credit, slices |
//! | `http` | HTTP: requests, answers, event streams |
//! | `tls` | TLS: its connections, its setup, the threads that help with handshakes |
//! | `alone` | a worker without a server, for tests and for counting |
//! | `timers` | times at which something is to be looked at |
//! | `poll` | waiting for sockets with epoll, and receiving |
//! | `supervisor` | what systemd is told |
//! | `heap` | memory that buffers and values had goes back to the system |
//! | `sys` | sockets of another process, the C library's allocator: the only `unsafe` code |
//! | `background` | the thread that runs expiry, eviction and maintenance |
//! | `clock` | how long something took, by the wall and on a CPU |
//! | `huge` | full memory into huge pages |
//! | `carrier` | sending the keys of MIGRATE |
//! | `limits`, `shared` | limits of connections and of a tick; what all workers count together |

#![deny(unsafe_code)]

#[doc(hidden)]
pub mod alone;
mod background;
mod carrier;
mod channels;
mod client;
mod clock;
mod connection;
mod crew;
mod doorstep;
mod heap;
mod http;
mod huge;
mod io;
mod limits;
mod listener;
pub mod log;
pub mod options;
mod persistence;
mod poll;
mod shared;
mod signals;
mod start;
mod supervisor;
#[allow(unsafe_code)]
mod sys;
mod timers;
mod tls;
mod worker;

pub use options::{Options, OptionsError, Own};

/// What a configuration can say.
pub mod directives {
    pub use weft_engine::config::directive::Directive;
    pub use weft_engine::config::table::about;
}
pub use persistence::{Import, ImportCommand};
pub use start::{check, gateway, run};

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use weft_engine::Engine;
use weft_engine::mailbox::Message;
use weft_gateway::Gateway;

use crew::Crew;
use listener::{Acceptor, Inbox, Listener};
use persistence::Persistence;
use poll::Poll;
use shared::Shared;
use signals::Signals;
use supervisor::State;
use worker::Worker;

/// Where a server listens, and with how many threads.
#[derive(Clone, Debug)]
pub(crate) struct Listen {
    /// TCP addresses; port 0 takes a free one.
    pub tcp: Vec<SocketAddr>,
    /// TCP addresses where TLS is spoken only.
    pub tls: Vec<SocketAddr>,
    /// TCP addresses where HTTP is spoken only.
    pub http: Vec<SocketAddr>,
    /// A Unix socket, and its permissions.
    pub unix: Option<(PathBuf, Option<u32>)>,
    /// Connections that may wait to be accepted.
    pub backlog: i32,
    /// Workers; the engine was made for as many.
    pub threads: u16,
}

/// A server that listens and does not run yet.
pub(crate) struct Server<'e> {
    engine: &'e Engine,
    workers: Vec<Worker<'e>>,
    acceptor: Acceptor<'e>,
    names: Vec<String>,
}

impl<'e> Server<'e> {
    /// Listens. The error names what could not be listened on, and why.
    pub(crate) fn new(
        engine: &'e Engine,
        listen: &Listen,
        shared: Arc<Shared>,
        gateway: Option<&Gateway>,
    ) -> std::io::Result<Self> {
        let mut listeners = sys::inherited::sockets()
            .into_iter()
            .map(|(fd, name)| Listener::inherited(fd, &name))
            .collect::<std::io::Result<Vec<_>>>()?;
        // What systemd listens on is all there is.
        let listen = if listeners.is_empty() {
            listen
        } else {
            &Listen { tcp: Vec::new(), tls: Vec::new(), http: Vec::new(), unix: None, ..listen.clone() }
        };
        for &address in &listen.tcp {
            let listener = Listener::tcp(address, listen.backlog);
            listeners.push(listener.map_err(|error| cannot_listen(&address.to_string(), &error))?);
        }
        for &address in &listen.tls {
            let listener = Listener::tls(address, listen.backlog);
            listeners.push(listener.map_err(|error| cannot_listen(&address.to_string(), &error))?);
        }
        for &address in &listen.http {
            let listener = Listener::http(address, listen.backlog);
            listeners.push(listener.map_err(|error| cannot_listen(&address.to_string(), &error))?);
        }
        if let Some((path, mode)) = &listen.unix {
            let listener = Listener::unix(path, *mode, listen.backlog);
            listeners.push(listener.map_err(|error| cannot_listen(&path.display().to_string(), &error))?);
        }
        let names = listeners.iter().map(Listener::name).collect();
        let inboxes: Vec<_> =
            (0..listen.threads).map(|_| Arc::new(Inbox::new(Arc::clone(&shared)))).collect();
        let began = Instant::now();
        let workers = inboxes.iter().zip(0..).map(|(inbox, id)| {
            let mut worker = Worker::new(engine, id, Arc::clone(inbox), Poll::new(id)?, began)?;
            if let Some(gateway) = gateway {
                let waker = worker.waker();
                worker.set_upstream(gateway.upstream(listen.threads, move || waker.wake()));
            }
            Ok::<_, std::io::Error>(worker)
        });
        Ok(Self {
            workers: workers.collect::<Result<_, _>>()?,
            acceptor: Acceptor::new(engine, listeners, inboxes, shared)?,
            engine,
            names,
        })
    }

    /// Whether an address is one of this machine's: `bind -ADDRESS` passes over those that are not.
    fn can_listen(address: SocketAddr) -> bool {
        let free = SocketAddr::new(address.ip(), 0);
        Listener::tcp(free, 1).is_ok()
    }

    /// Binds to an address, and lets go of it without having listened.
    fn bind(address: SocketAddr) -> std::io::Result<()> {
        listener::bound(address).map(drop)
    }

    /// What it listens on: addresses with their ports, paths.
    #[must_use]
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether keys are to outlive it.
    pub(crate) fn keeps(&self) -> bool {
        let text = |name: &str| self.engine.config.text(name);
        text("appendonly") == b"yes" || !text("save").is_empty()
    }

    /// Serves until SIGTERM, SIGINT or SHUTDOWN; then stops accepting, sends what it owes and closes. Calls `leave`
    /// where it loads still: that may take long, and has nothing to write.
    pub(crate) fn run(
        self,
        persistence: Persistence,
        signals: Signals,
        reload: impl Fn() + Send + 'static,
        leave: impl FnOnce(),
    ) -> std::io::Result<()> {
        let Self { engine, workers, mut acceptor, .. } = self;
        signals.follow(acceptor.waker(), reload)?;
        let stop = background::StopFlag::default();
        let desk = persistence.desk();
        let count = workers.len();
        let crew = Crew::new(engine, workers);
        std::thread::scope(|scope| {
            let named = |name: String| std::thread::Builder::new().name(name);
            let keeper = named("weft-log".into()).spawn_scoped(scope, move || {
                let result = persistence.run(scope);
                if result.is_err() {
                    // A server without what was kept must not serve.
                    signals::request_stop();
                }
                result
            });
            let mut threads = Vec::new();
            let started = (0..count).try_for_each(|id| {
                let crew = &crew;
                let thread = named(format!("weft-worker-{id}"));
                threads.push(thread.spawn_scoped(scope, move || crew.drive(id))?);
                Ok(())
            });
            // Whoever gives a thread of the rest something would wait for it for ever.
            (threads.len()..count).for_each(|id| crew.do_without(id));
            let started = started.and_then(|()| {
                named("weft-background".into()).spawn_scoped(scope, || background::run(engine, &stop))?;
                if engine.keyspace.has_huge_pages() {
                    named("weft-huge-pages".into()).spawn_scoped(scope, || huge::run(engine, &stop))?;
                }
                Ok(())
            });
            supervisor::notify(State::Ready);
            let accepted = started.and_then(|()| acceptor.run(signals::is_stop_requested));
            supervisor::notify(State::Stopping);
            drop(acceptor);
            engine.post_all(|| Message::Stop);
            let results = threads.into_iter().map(|thread| match thread.join() {
                Ok(result) => result,
                Err(_) => Err(std::io::Error::other("a worker has panicked")),
            });
            let results: Vec<_> = results.collect();
            stop.stop();
            let is_well = accepted.is_ok() && results.iter().all(Result::is_ok);
            if desk.stop() && is_well {
                leave();
            }
            let kept = keeper.and_then(|thread| {
                thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the log's thread has panicked")))
            });
            results.into_iter().chain([kept, accepted]).collect()
        })
    }
}

fn cannot_listen(what: &str, error: &std::io::Error) -> std::io::Error {
    let hint = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            " Another server has it: stop that one, or choose another port with --port."
        }
        std::io::ErrorKind::PermissionDenied => " Ports below 1024 need root; choose another with --port.",
        _ => "",
    };
    std::io::Error::new(error.kind(), format!("cannot listen on {what}: {error}.{hint}"))
}
