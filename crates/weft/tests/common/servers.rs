//! Real servers for tests: Debian's redis-server, and `weft serve`, each on a socket in a folder of its own.

use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use weft_client::{Config, Connection, Protocol, Timeouts};

use super::{Folder, skipped, weft};

/// Where `scripts/valkey-driver` leaves the Valkey that it builds.
pub(crate) fn built_valkey() -> Option<PathBuf> {
    let cache = std::env::var_os("WEFT_CACHE").map(PathBuf::from).or_else(|| {
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        Some(base.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?.join("weft"))
    });
    Some(cache?.join("valkey-9.1.2/source/src/valkey-server"))
}

/// How long what must come is waited for.
pub(crate) const LONG: Duration = Duration::from_secs(240);

/// A server, which ends with the value.
pub(crate) struct Server {
    child: Child,
    pub(crate) socket: String,
    pub(crate) folder: Folder,
    /// Whether it speaks RESPB.
    pub(crate) respb: bool,
}

impl Server {
    /// None where it is not installed; then the test says that it is skipped.
    pub(crate) fn redis(options: &[&str]) -> Option<Server> {
        let server = Self::redis_if_there(options);
        if server.is_none() {
            skipped::skipped("redis-server is not installed");
        }
        server
    }

    fn redis_if_there(options: &[&str]) -> Option<Server> {
        let mut command = Command::new("redis-server");
        command.args(["--save", "", "--appendonly", "no"]).args(options);
        Self::start(command, false)
    }

    /// It with such options, if it is installed, and Weft with the same.
    pub(crate) fn both(options: &[&str]) -> Vec<Server> {
        let redis = Self::redis_if_there(options);
        if redis.is_none() {
            skipped::left_out("redis-server is not installed");
        }
        redis.into_iter().chain([Self::weft(options)]).collect()
    }

    pub(crate) fn weft(options: &[&str]) -> Server {
        let mut command = weft();
        command.arg("serve").args(options);
        Self::start(command, true).expect("weft serve starts")
    }

    /// Each kind of server of others that is there: Debian's Redis and Valkey, Valkey as scripts/peers builds it.
    pub(crate) fn others(options: &[&str]) -> Vec<Server> {
        let programs = [Some(PathBuf::from("redis-server")), Some("valkey-server".into()), built_valkey()];
        let started = programs.into_iter().flatten().filter_map(|program| {
            let mut command = Command::new(program);
            command.args(["--save", ""]).args(options);
            Self::start(command, false)
        });
        let servers: Vec<Server> = started.collect();
        if servers.is_empty() {
            skipped::skipped("no server of others is installed");
        }
        servers
    }

    /// Valkey 9, if it is there; else the test says that it is skipped.
    pub(crate) fn valkey_9(options: &[&str]) -> Option<Server> {
        let valkey = Self::others(options).into_iter().rfind(|server| {
            let info: String = server.connect(Protocol::Resp2).query(&["INFO", "server"]).expect("a text");
            info.contains("valkey_version:9.")
        });
        if valkey.is_none() {
            skipped::skipped("no Valkey 9: scripts/valkey-driver");
        }
        valkey
    }

    /// A program of others', with its own defaults but for these options.
    pub(crate) fn of(program: &str, options: &[&str]) -> Server {
        let mut command = Command::new(program);
        command.args(options);
        Self::start(command, false).expect("the server starts")
    }

    /// Every server there is.
    pub(crate) fn all() -> Vec<Server> {
        Self::both(&[])
    }

    fn start(mut command: Command, respb: bool) -> Option<Server> {
        let folder = Folder::new();
        let socket = folder.path("socket");
        command.args(["--port", "0", "--unixsocket", &socket, "--dir"]).arg(&folder.0);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
        let (ready, is_ready) = mpsc::channel();
        let streams: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take()?), Box::new(child.stderr.take()?)];
        for stream in streams {
            let ready = ready.clone();
            // Read to its end, so that the server never waits for whoever reads it.
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let redis = line.to_ascii_lowercase().contains("ready to accept connections unix")
                        || line.contains("ready to accept connections at /");
                    if redis || (line.contains("Listening on /") || line.contains("Try it")) {
                        let _ = ready.send(());
                    }
                }
            });
        }
        drop(ready);
        let server = Server { child, socket, folder, respb };
        match is_ready.recv_timeout(LONG) {
            Ok(()) => Some(server),
            Err(error) => panic!("the server does not say that it is ready: {error}"),
        }
    }

    pub(crate) fn config(&self, protocol: Protocol) -> Config {
        Config::unix(&self.socket).with_protocol(protocol).with_timeouts(Timeouts::all(Some(LONG)))
    }

    /// How often the server says that it ran a command.
    pub(crate) fn calls(&self, command: &str) -> u64 {
        let mut connection = self.connect(Protocol::Resp2);
        let text: String = connection.query(&["INFO", "commandstats"]).expect("INFO is a text");
        let prefix = format!("cmdstat_{command}:calls=");
        let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
        line.map_or(0, |rest| rest.split(',').next().and_then(|calls| calls.parse().ok()).expect("a count"))
    }

    pub(crate) fn connect(&self, protocol: Protocol) -> Connection {
        Connection::connect(&self.config(protocol)).expect("the server takes a connection")
    }

    /// Waits for the server to end by itself. Its folder is there as long as the value is.
    pub(crate) fn exit(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            match self.child.try_wait().expect("a child can be asked for") {
                Some(status) => return status,
                None => assert!(began.elapsed() < LONG, "the server does not end"),
            }
            std::thread::yield_now();
        }
    }

    /// The flags of the protocols that it speaks.
    pub(crate) fn flags(&self) -> &'static [&'static str] {
        if self.respb { &["-2", "-3", "-4"] } else { &["-2", "-3"] }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
