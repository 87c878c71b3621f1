//! Owns: making connections, on threads that may wait, and asking of each what the gateway counts on. Does not own:
//! when one is made, what goes over it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;
use weft_client::fleet::Wire;
use weft_client::{Address, Config, Connection, Protocol, Reply, Timeouts};
use weft_engine::Postponed;
use weft_engine::mailbox::Recipient;

use crate::atlas::Atlas;
use crate::options::{Options, Sentinel};

/// A connection on which nothing comes for so long is looked at by the system, which gives it up after as long again.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TRIES: u32 = 3;

/// The longest that one of several is waited for, any of which would do.
const ONE_WAIT: Duration = Duration::from_secs(1);

/// In the place of a connection's CLIENT ID: of what it is to be able to do it was asked nothing.
pub(crate) const UNCHECKED: i64 = 0;

/// What every connection must be able to do.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// The highest database that a client has selected: there must be as many behind each connection, or what is meant
    /// for one of them would run in another.
    pub(crate) db_max: AtomicU8,
    /// Whether another server may take its place: one that only takes reads is left for whoever has.
    pub(crate) moves: bool,
    /// When it was told last that the server takes only reads, and nobody says which other one does not.
    pub(crate) warned_ms: AtomicU64,
}

/// What another thread has done for a worker.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A connection of an attempt, with its CLIENT ID, or why there is none.
    Link(u64, Result<(Wire, i64), String>),
    /// What a client wants to subscribe to comes, or does not: with the names, if some of them were asked for, and
    /// which connection brings it.
    Subscribed(Recipient, Box<Postponed>, Result<u64, String>),
}

/// Where a worker finds what others have done for it.
pub(crate) struct Inbox {
    arrivals: Mutex<Vec<Arrival>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

impl Inbox {
    pub(crate) fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self { arrivals: Mutex::default(), wake: Box::new(wake) }
    }
    pub(crate) fn put(&self, arrival: Arrival) {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).push(arrival);
        (self.wake)();
    }
    pub(crate) fn take(&self) -> Vec<Arrival> {
        std::mem::take(&mut *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Begins to make a connection.
pub(crate) fn begin(
    options: &Arc<Options>,
    checks: &Arc<Checks>,
    inbox: &Arc<Inbox>,
    (attempt, resp2): (u64, bool),
) {
    let (options, checks, to) = (Arc::clone(options), Arc::clone(checks), Arc::clone(inbox));
    let work = move || {
        let made = connect(&options, &checks, resp2).map_err(|error| error.to_string());
        to.put(Arrival::Link(attempt, made));
    };
    if let Err(error) = thread::Builder::new().name("weft-dial".into()).spawn(work) {
        inbox.put(Arrival::Link(attempt, Err(format!("no thread to connect on: {error}"))));
    }
}

/// How long each of several is waited for.
fn one_of_several(to: &Config) -> Timeouts {
    Timeouts::all(Some(to.timeouts.reply.map_or(ONE_WAIT, |wait| wait.min(ONE_WAIT))))
}

/// Connects to any node of a cluster over RESP3, and gives its address. One that says nothing holds up nobody for long.
pub(crate) fn any_node(options: &Options, atlas: &Atlas) -> weft_client::Result<(Connection, Address)> {
    let to = options.to.clone().with_protocol(Protocol::Resp3).with_timeouts(one_of_several(&options.to));
    let mut last = weft_client::Error::Unexpected("no node of the cluster is known");
    for address in atlas.nodes() {
        match Connection::connect(&Config { address: address.clone(), ..to.clone() }) {
            Ok(connection) => return Ok((connection, address)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Connects to the server, wherever it is now.
pub(crate) fn server(options: &Options, resp2: bool) -> weft_client::Result<Connection> {
    let to = options.to.clone().with_protocol(if resp2 { Protocol::Resp2 } else { Protocol::Resp3 });
    let Some(sentinel) = &options.sentinel else { return Connection::connect(&to) };
    let mut connection = Connection::connect(&Config { address: find(sentinel, &to)?, ..to })?;
    // Sentinel may name one that is a master no more, or not yet.
    let role = connection.command(&["ROLE"])?;
    match role {
        Reply::Array(parts) if matches!(parts.first(), Some(Reply::Bulk(role)) if role == b"master") => {
            Ok(connection)
        }
        _ => Err(weft_client::Error::Unexpected("the server that Sentinel names is no master yet")),
    }
}

/// Asks one Sentinel after the other where the master is, from the one that answered last on. One that says nothing
/// holds up nobody for long.
fn find(sentinel: &Sentinel, to: &Config) -> weft_client::Result<Address> {
    let mut last = weft_client::Error::Unexpected("no Sentinel knows a master of that name");
    let (count, first) = (sentinel.addresses.len(), sentinel.last.load(Relaxed));
    for at in (0..count).map(|step| (first + step) % count) {
        let asked = Connection::connect(
            &Config { tls: to.tls.clone(), ..Config::at(sentinel.addresses[at].clone()) }
                .with_protocol(Protocol::Resp2)
                .with_timeouts(one_of_several(to)),
        )
        .and_then(|mut asked| asked.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &sentinel.name]));
        match asked {
            Ok(Reply::Array(parts)) => {
                if let [Reply::Bulk(host), Reply::Bulk(port)] = parts.as_slice()
                    && let (Ok(host), Ok(port)) = (std::str::from_utf8(host), std::str::from_utf8(port))
                    && let Ok(port) = port.parse()
                {
                    sentinel.last.store(at, Relaxed);
                    return Ok(Address::Tcp(host.into(), port));
                }
            }
            Ok(_) => {}
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whoever blocks may wait for hours in which nothing comes: that the other end is gone is asked of the system.
pub(crate) fn keep_alive(connection: &Connection) {
    // Over a Unix socket there is nothing to be asked.
    let _ = sockopt::set_tcp_keepidle(connection, KEEP_ALIVE);
    let _ = sockopt::set_tcp_keepintvl(connection, KEEP_ALIVE / KEEP_ALIVE_TRIES);
    let _ = sockopt::set_tcp_keepcnt(connection, KEEP_ALIVE_TRIES);
}

fn connect(options: &Options, checks: &Checks, resp2: bool) -> weft_client::Result<(Wire, i64)> {
    let mut connection = server(options, resp2)?;
    keep_alive(&connection);
    if options.reads_only {
        connection.command(&["READONLY"])?;
    }
    // It runs a script: who ends that needs no more than a connection.
    if let Err(weft_client::Error::Server(error)) = connection.command(&["PING"])
        && error.code() == "BUSY"
    {
        return Ok((connection.without_waiting()?, UNCHECKED));
    }
    let id = connection.query::<i64>(&["CLIENT", "ID"])?;
    // Where MULTI is refused, what is behind it would run at once.
    connection.command(&["MULTI"])?;
    if connection.command(&["EXEC"])? != Reply::Array(Vec::new()) {
        return Err(weft_client::Error::Unexpected("an empty transaction has no empty answer"));
    }
    let db_max = checks.db_max.load(Relaxed);
    if db_max > 0 {
        connection.command(&["SELECT", &db_max.to_string()])?;
        connection.command(&["SELECT", "0"])?;
    }
    Ok((connection.without_waiting()?, id))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;
    use crate::testing::Peer;

    /// Far beyond what an address that says nothing is waited for, far below what a server behind is.
    const SOON: Duration = Duration::from_secs(60);
    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_node_that_says_nothing_holds_up_nobody_for_long() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let peer = Peer::start(|_| None);
        let ports = [silent.local_addr().expect("it is bound").port(), peer.port];
        let mut options = Options::to("cluster://127.0.0.1:1").expect("it is a URL");
        options.to.timeouts = Timeouts::all(Some(LONG));
        let atlas = Atlas::unasked(ports.map(|port| Address::Tcp("127.0.0.1".into(), port)).into());
        let begun = Instant::now();
        let (_, node) = any_node(&options, &atlas).expect("one is there");
        assert_eq!(node, Address::Tcp("127.0.0.1".into(), peer.port));
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    }

    /// Who listens and says nothing, and the master that the other one knows.
    #[test]
    fn a_sentinel_that_says_nothing_holds_up_nobody_for_long() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let speaks = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let port = |listener: &TcpListener| listener.local_addr().expect("it is bound").port();
        let url = format!("sentinel://127.0.0.1:{},127.0.0.1:{}/main", port(&silent), port(&speaks));
        thread::spawn(move || {
            for stream in speaks.incoming().flatten() {
                let (mut stream, mut piece) = (stream, [0; 4096]);
                while let Ok(len @ 1..) = stream.read(&mut piece) {
                    let asked = String::from_utf8_lossy(&piece[..len]).to_ascii_uppercase();
                    let answer = match asked.contains("GET-MASTER-ADDR-BY-NAME") {
                        true => "*2\r\n$1\r\nh\r\n$2\r\n42\r\n".to_string(),
                        false => "+OK\r\n".repeat(asked.matches("\r\n*").count() + 1),
                    };
                    if stream.write_all(answer.as_bytes()).is_err() {
                        break;
                    }
                }
            }
        });
        let options = Options::to(&url).expect("it is a URL");
        let sentinel = options.sentinel.as_ref().expect("there is one");
        let to = options.to.clone().with_timeouts(Timeouts::all(Some(LONG)));
        let begun = Instant::now();
        for _ in 0..2 {
            let found = find(sentinel, &to).expect("one knows it");
            assert_eq!(found, Address::Tcp("h".into(), 42));
            // The second time it is asked first.
            assert_eq!(sentinel.last.load(Relaxed), 1);
        }
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    }
}
