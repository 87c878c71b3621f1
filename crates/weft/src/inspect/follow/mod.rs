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
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context as _, Result, bail};
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

/// `HOST:PORT` of a server; without a port the usual one, without a host this machine. IPv6 may stand in brackets.
fn with_port(server: &str) -> Result<String> {
    let is_address = server.parse::<Ipv6Addr>().is_ok();
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if !is_address && !server.ends_with(']') => (host, port),
        _ => (server, ""),
    };
    let port = match port {
        "" => PORT,
        port => match port.parse() {
            Ok(port @ 1..) => port,
            _ => bail!("--follow {server}: '{port}' is no port; it is a number from 1 to 65535"),
        },
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.contains(':') && host.parse::<Ipv6Addr>().is_err() {
        bail!("--follow {server}: '{host}' is no host; HOST:PORT, or [IPV6]:PORT");
    }
    Ok(match host {
        "" => format!("127.0.0.1:{port}"),
        host if host.contains(':') => format!("[{host}]:{port}"),
        host => format!("{host}:{port}"),
    })
}

/// Runs until a signal.
pub(super) fn run(server: &str, listen: &str, json: bool, paint: Paint) -> Result<ExitCode> {
    let server = with_port(server)?;
    let listener = TcpListener::bind(listen).with_context(|| format!("cannot listen on {listen}"))?;
    let address = listener.local_addr().context("the address that is listened on")?;
    let shared = Arc::new(Shared {
        server: server.clone(),
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
        true => shared.print(&json_listening(&address.to_string(), &server).to_string()),
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
            (":7000", "127.0.0.1:7000"),
        ] {
            assert_eq!(with_port(given).unwrap(), whole);
        }
        for (given, said) in [
            ("localhost:abc", "'abc' is no port"),
            ("localhost:99999", "'99999' is no port"),
            ("localhost:0", "'0' is no port"),
            ("localhost:-1", "'-1' is no port"),
            ("a:b:7000", "'a:b' is no host"),
        ] {
            let error = with_port(given).unwrap_err().to_string();
            assert!(error.contains(said), "{given}: {error}");
        }
    }
}
