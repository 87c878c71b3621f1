//! Owns: sending the keys of MIGRATE to other servers, on threads of their own. Does not own: which keys, and what
//! follows here (`weft_engine::carrier`).
//!
//! Each target has a thread as long as there is something for it: one cargo after the other, each on a connection of
//! its own and within the time that its client gave it, from when it was handed over to its last answer. So a target
//! that is slow, or does not answer, holds up what is for itself and nothing else.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use weft_engine::Engine;
use weft_engine::carrier::{Arrival, Cargo};
use weft_engine::context::Local;
use weft_protocol::request::Texts;
use weft_protocol::resp;
use weft_store::Worker;

/// The longest line that a target answers with; what is behind is passed over with the connection.
const LINE_BYTES_MAX: u64 = 1024;
/// Targets that are sent to at once: threads, and places in the keyspace.
pub(crate) const TARGETS_MAX: usize = 16;

/// Names that are looked up at once, those counted whose time is over: threads.
const LOOKUPS_MAX: usize = 2 * TARGETS_MAX;

/// A server that keys go to.
type Target = (String, u16);

/// The targets that have a thread, and what waits for it. Each client has one cargo at most, for which it waits, and
/// all of them together have a limit: so the queues are bounded.
#[derive(Default)]
struct Routes(Mutex<HashMap<Target, VecDeque<Box<Cargo>>>>);

impl Routes {
    fn lock(&self) -> MutexGuard<'_, HashMap<Target, VecDeque<Box<Cargo>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The next cargo for a target; nothing, and the target is forgotten, when none waits.
    fn next(&self, target: &Target) -> Option<Box<Cargo>> {
        let mut routes = self.lock();
        let cargo = routes.get_mut(target).and_then(VecDeque::pop_front);
        if cargo.is_none() {
            routes.remove(target);
        }
        cargo
    }
}

/// Takes what MIGRATE sends. What is on its way when the server stops is not waited for.
pub(crate) fn start(engine: &'static Engine) {
    let routes = Arc::new(Routes::default());
    engine.carrier.set(Box::new(move |cargo| dispatch(engine, &routes, cargo)));
}

/// Gives a cargo to the thread of its target, which is started if there is none. Gives it back where that cannot be.
fn dispatch(engine: &'static Engine, routes: &Arc<Routes>, cargo: Box<Cargo>) -> Result<(), Box<Cargo>> {
    let target = (cargo.host.clone(), cargo.port);
    let mut all = routes.lock();
    if let Some(queue) = all.get_mut(&target) {
        queue.push_back(cargo);
        return Ok(());
    }
    let Some(worker) = (all.len() < TARGETS_MAX).then(|| engine.keyspace.worker()).flatten() else {
        return Err(cargo);
    };
    all.insert(target.clone(), VecDeque::from([cargo]));
    let their = Arc::clone(routes);
    let thread = std::thread::Builder::new().name("weft-carrier".into());
    let key = target.clone();
    if thread.spawn(move || run(engine, worker, &their, &key)).is_ok() {
        return Ok(());
    }
    match all.remove(&target).and_then(|mut queue| queue.pop_front()) {
        Some(cargo) => Err(cargo),
        None => Ok(()),
    }
}

/// Runs until nothing waits for a target.
fn run(engine: &Engine, mut worker: Worker<'_>, routes: &Routes, target: &Target) {
    let mut local = Local::of_thread(engine.clock.now_ms());
    while let Some(cargo) = routes.next(target) {
        let arrival = send(engine, &cargo);
        engine.unload(&cargo, arrival, &mut worker, &mut local);
    }
}

/// The time that is left of a cargo's.
fn left(cargo: &Cargo) -> io::Result<Duration> {
    let left = cargo.until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A connection whose reads and writes all end within one time.
struct Stream<'c> {
    stream: TcpStream,
    cargo: &'c Cargo,
}

impl Read for Stream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.cargo)?))?;
        self.stream.read(into)
    }
}

impl Write for Stream<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left(self.cargo)?))?;
        self.stream.write(from)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn send(engine: &Engine, cargo: &Cargo) -> Arrival {
    let failed = |what: &str| Arrival {
        error: Some(("IOERR", format!("error or timeout {what}"))),
        ..Arrival::default()
    };
    let refused = |text: String| Arrival {
        error: Some(("ERR", format!("Target instance replied with error: {text}"))),
        ..Arrival::default()
    };
    let Ok(stream) = connect(cargo) else { return failed("connecting to the client") };
    let mut stream = BufReader::new(stream);
    // Nothing is sent before the target has accepted these: the keys would go into another database.
    for words in greetings(cargo) {
        match ask(&mut stream, &words) {
            Ok(None) => {}
            Ok(Some(text)) => return refused(text),
            Err(_) => return failed("reading to target instance"),
        }
    }
    if write_requests(engine, cargo, stream.get_mut()).is_err() {
        return failed("writing to target instance");
    }
    let mut arrival = Arrival::default();
    for _ in &cargo.items {
        match answer(&mut stream) {
            Ok(answer) => {
                arrival.arrived.push(answer.is_none());
                if let (Some(text), None) = (answer, &arrival.error) {
                    arrival.error = refused(text).error;
                }
            }
            Err(_) => {
                arrival.error = arrival.error.or_else(|| failed("reading to target instance").error);
                break;
            }
        }
    }
    arrival
}

/// What comes before the keys: AUTH and SELECT.
fn greetings(cargo: &Cargo) -> Vec<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    if !cargo.credentials.is_empty() {
        all.push([vec![b"AUTH".to_vec()], cargo.credentials.clone()].concat());
    }
    all.push(vec![b"SELECT".to_vec(), cargo.target_db.to_string().into_bytes()]);
    all
}

fn ask(stream: &mut BufReader<Stream<'_>>, words: &[Vec<u8>]) -> io::Result<Option<String>> {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let mut bytes = Vec::new();
    resp::encode::request(None, &Texts(&words), &mut bytes);
    stream.get_mut().write_all(&bytes)?;
    answer(stream)
}

/// Names that are looked up, or whose server does not answer.
static LOOKUPS: AtomicUsize = AtomicUsize::new(0);

fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// The addresses of a target, within a time: the system's resolver takes as long as it likes, and cannot be told to
/// end. So it has a thread, which is left behind when the time is over.
fn addresses(
    host: &str,
    port: u16,
    time: Duration,
    look_up: impl FnOnce(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + 'static,
) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    if LOOKUPS.fetch_add(1, Relaxed) >= LOOKUPS_MAX {
        LOOKUPS.fetch_sub(1, Relaxed);
        return Err(io::Error::other("too many names are being looked up"));
    }
    let (give, take) = mpsc::channel();
    let host = host.to_owned();
    let lookup = move || {
        let found = look_up(&host, port);
        LOOKUPS.fetch_sub(1, Relaxed);
        // Nobody waits for it any more where the time is over.
        let _ = give.send(found);
    };
    if let Err(error) = std::thread::Builder::new().name("weft-resolve".into()).spawn(lookup) {
        LOOKUPS.fetch_sub(1, Relaxed);
        return Err(error);
    }
    take.recv_timeout(time).map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

fn connect(cargo: &Cargo) -> io::Result<Stream<'_>> {
    let mut error = io::ErrorKind::NotFound.into();
    for address in addresses(&cargo.host, cargo.port, left(cargo)?, look_up)? {
        match TcpStream::connect_timeout(&address, left(cargo)?) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(Stream { stream, cargo });
            }
            Err(other) => error = other,
        }
    }
    Err(error)
}

/// Writes a RESTORE for each key; one of them is copied at a time.
fn write_requests(engine: &Engine, cargo: &Cargo, stream: &mut Stream<'_>) -> io::Result<()> {
    let mut bytes = Vec::new();
    let now_ms = engine.clock.now_ms();
    for item in &cargo.items {
        // What has expired on the way expires there too.
        let ttl_ms = item.expire_ms.map_or(0, |at| at.saturating_sub(now_ms).max(1));
        let ttl = ttl_ms.to_string();
        let mut words: Vec<&[u8]> = vec![b"RESTORE", &item.key, ttl.as_bytes(), &item.payload];
        if cargo.replace {
            words.push(b"REPLACE");
        }
        bytes.clear();
        resp::encode::request(None, &Texts(&words), &mut bytes);
        stream.write_all(&bytes)?;
    }
    Ok(())
}

/// One line: nothing for OK, the text of an error.
fn answer(stream: &mut BufReader<Stream<'_>>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    let line = line.strip_suffix(b"\r\n").ok_or(io::ErrorKind::InvalidData)?;
    match line {
        [b'-', text @ ..] => Ok(Some(String::from_utf8_lossy(text).into_owned())),
        [b'+', ..] => Ok(None),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time that only a hang reaches.
    const PATIENCE: Duration = Duration::from_secs(120);

    #[test]
    fn a_name_that_is_never_found_takes_no_longer_than_there_is_time() {
        let address = SocketAddr::from(([127, 0, 0, 1], 7));
        assert_eq!(
            addresses("127.0.0.1", 7, Duration::ZERO, |_, _| unreachable!()).ok(),
            Some(vec![address])
        );
        assert_eq!(addresses("here", 7, PATIENCE, move |_, _| Ok(vec![address])).ok(), Some(vec![address]));
        let ends: Vec<_> = (0..LOOKUPS_MAX)
            .map(|_| {
                let (end, wait) = mpsc::channel::<()>();
                let never = move |_: &str, _| {
                    let _ = wait.recv();
                    Err(io::ErrorKind::NotFound.into())
                };
                let error = addresses("nowhere", 7, Duration::ZERO, never).expect_err("the time is over");
                assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                end
            })
            .collect();
        let error =
            addresses("here", 7, PATIENCE, |_, _| Ok(Vec::new())).expect_err("too many are left behind");
        assert_eq!(error.kind(), io::ErrorKind::Other);
        assert!(
            addresses("::1", 7, Duration::ZERO, |_, _| unreachable!()).is_ok(),
            "an address needs no look-up"
        );
        drop(ends);
    }
}
