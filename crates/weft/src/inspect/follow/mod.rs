//! `weft inspect --follow`: between clients and a server, both directions live.
//!
//! Owns the listening, the signals and the end. [`relay`] moves the bytes of one connection, [`view`] shows what they
//! are once [`skim`] has found where a frame ends, [`tally`] counts for the summary. The bytes go on untouched whatever
//! the view makes of them.

mod relay;
mod skim;
mod tally;
mod view;

use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weft_client::PORT;

use self::tally::Tally;
use super::render::Paint;

/// Connections at once; each costs two threads. More are closed at once, and the view says so.
const CONNECTIONS_MAX: usize = 1000;

/// What all connections share: the output and the counts.
struct Shared {
    server: String,
    json: bool,
    paint: Paint,
    tally: Mutex<Tally>,
    open: AtomicUsize,
}

impl Shared {
    /// Prints a line. Whoever read our output and is gone has seen enough: the command ends.
    fn print(&self, text: &str) {
        let mut out = io::stdout().lock();
        if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
            std::process::exit(0);
        }
    }

    /// A remark about a connection.
    fn note(&self, connection: u64, event: &str, text: &str) {
        if self.json {
            return self.print(
                &json!({ "time": view::now_text(), "connection": connection, "event": event, "text": text })
                    .to_string(),
            );
        }
        let time = self.paint.dim(&view::now_text());
        self.print(&format!("{time}  #{connection} {}  {text}", self.paint.yellow(event)));
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) -> ! {
        let tally = self.tally();
        match self.json {
            true => self.print(&json!({ "event": "summary", "summary": tally.json() }).to_string()),
            false => self.print(tally.text().trim_end()),
        }
        std::process::exit(0)
    }
}

/// An address without a port is that of a server on the usual one.
fn with_port(server: &str) -> String {
    let has_port = server.parse::<std::net::SocketAddr>().is_ok()
        || (server.matches(':').count() == 1 && !server.ends_with(':'));
    match server.parse::<std::net::Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{PORT}"),
        Err(_) if has_port => server.to_string(),
        Err(_) => format!("{}:{PORT}", server.trim_end_matches(':')),
    }
}

/// Runs until a signal.
pub(super) fn run(server: &str, listen: &str, json: bool, paint: Paint) -> Result<ExitCode> {
    let listener = TcpListener::bind(listen).with_context(|| format!("cannot listen on {listen}"))?;
    let address = listener.local_addr().context("the address that is listened on")?;
    let shared = Arc::new(Shared {
        server: with_port(server),
        json,
        paint,
        tally: Mutex::new(Tally::default()),
        open: AtomicUsize::new(0),
    });
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
    let for_signals = Arc::clone(&shared);
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            for_signals.end();
        }
    });
    match json {
        true => shared.print(&json_listening(&address.to_string(), server).to_string()),
        false => shared.print(&format!("listening on {address}, server {server}; ^C ends with a summary")),
    }
    for (id, client) in (1u64..).zip(listener.incoming()) {
        match client {
            Ok(client) => accept(&shared, client, id),
            // A client that is gone again, or no more file descriptors: the others go on.
            Err(error) => shared.note(id, "refused", &error.to_string()),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn json_listening(address: &str, server: &str) -> Value {
    json!({ "event": "listening", "address": address, "server": server })
}

fn accept(shared: &Arc<Shared>, client: TcpStream, id: u64) {
    if shared.open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
        return shared.note(id, "refused", &format!("{CONNECTIONS_MAX} connections are open"));
    }
    shared.open.fetch_add(1, Ordering::Relaxed);
    let for_thread = Arc::clone(shared);
    thread::spawn(move || {
        relay::run(&for_thread, client, id);
        for_thread.open.fetch_sub(1, Ordering::Relaxed);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_alone_is_a_server_on_the_usual_port() {
        for (given, whole) in [
            ("127.0.0.1", "127.0.0.1:6379"),
            ("127.0.0.1:7000", "127.0.0.1:7000"),
            ("example.org", "example.org:6379"),
            ("example.org:", "example.org:6379"),
            ("example.org:1", "example.org:1"),
            ("::1", "[::1]:6379"),
            ("[::1]", "[::1]:6379"),
            ("[::1]:7000", "[::1]:7000"),
        ] {
            assert_eq!(with_port(given), whole);
        }
    }
}
