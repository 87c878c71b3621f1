//! Owns: sending the keys of MIGRATE to another server, on a thread of its own. Does not own: which keys, and what
//! follows here (`weft_engine::carrier`).
//!
//! One cargo after the other: who sends to a server that does not answer holds the others up for its timeout. A
//! connection is made for each cargo.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, channel};

use weft_engine::Engine;
use weft_engine::carrier::{Arrival, Cargo};
use weft_engine::context::Local;
use weft_protocol::request::Texts;
use weft_protocol::resp;

/// The longest line that a target answers with; what is behind is passed over with the connection.
const LINE_BYTES_MAX: u64 = 1024;

/// Starts the thread. It lives as long as the process: what is on its way when the server stops is not waited for.
pub(crate) fn start(engine: &'static Engine) -> io::Result<()> {
    let (sender, cargoes) = channel();
    // Each client has one cargo at most, for which it waits: the queue is as long as there are clients.
    engine.carrier.set(Box::new(move |cargo| {
        // It is gone only when the process ends.
        let _ = sender.send(cargo);
    }));
    std::thread::Builder::new().name("weft-carrier".into()).spawn(move || run(engine, &cargoes))?;
    Ok(())
}

/// Runs until there is nobody left who sends.
fn run(engine: &Engine, cargoes: &Receiver<Cargo>) {
    let Some(mut worker) = engine.keyspace.worker() else { return };
    let mut local = Local::of_thread(engine.clock.now_ms());
    while let Ok(cargo) = cargoes.recv() {
        let arrival = send(engine, &cargo);
        let batch = worker.enter();
        engine.unload(&cargo, arrival, &batch, &mut local);
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
    if stream.get_mut().write_all(&requests(engine, cargo)).is_err() {
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

fn ask(stream: &mut BufReader<TcpStream>, words: &[Vec<u8>]) -> io::Result<Option<String>> {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let mut bytes = Vec::new();
    resp::encode::request(None, &Texts(&words), &mut bytes);
    stream.get_mut().write_all(&bytes)?;
    answer(stream)
}

fn connect(cargo: &Cargo) -> io::Result<TcpStream> {
    let mut error = io::ErrorKind::NotFound.into();
    for address in (cargo.host.as_str(), cargo.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, cargo.timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(cargo.timeout))?;
                stream.set_write_timeout(Some(cargo.timeout))?;
                return Ok(stream);
            }
            Err(other) => error = other,
        }
    }
    Err(error)
}

fn requests(engine: &Engine, cargo: &Cargo) -> Vec<u8> {
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
        resp::encode::request(None, &Texts(&words), &mut bytes);
    }
    bytes
}

/// One line: nothing for OK, the text of an error.
fn answer(stream: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    let line = line.strip_suffix(b"\r\n").ok_or(io::ErrorKind::InvalidData)?;
    match line {
        [b'-', text @ ..] => Ok(Some(String::from_utf8_lossy(text).into_owned())),
        [b'+', ..] => Ok(None),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
