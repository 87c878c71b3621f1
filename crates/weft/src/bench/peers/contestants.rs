//! The servers that are compared: how each is started and what it says of itself. Owns their processes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use weft_client::{Config, Connection, Protocol, Reply, Timeouts, TlsConfig};

use super::super::process::Usage;
use super::super::run::Server;

/// How long a server may take until it answers.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks whether it does.
const START_LOOK: Duration = Duration::from_millis(10);

/// What kind of server it is, which decides its command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// This program: `weft serve`.
    Weft,
    /// Redis, or a Valkey.
    Redis,
    /// `weft peers --stub`: answers everything and does nothing.
    Stub,
}

/// A server that can be started.
#[derive(Clone, Debug)]
pub(super) struct Contestant {
    /// What results call it.
    pub(super) id: &'static str,
    pub(super) kind: Kind,
    pub(super) program: PathBuf,
    /// What the program says its version is.
    pub(super) version: String,
}

/// The contestants by the names that `scripts/peers` gives them.
const PEERS: [(&str, &str); 3] =
    [("valkey", "valkey"), ("valkey-debian", "valkey-debian"), ("redis", "redis")];

/// What is there, and a line for each thing that is not.
#[derive(Debug, Default)]
pub(super) struct Field {
    pub(super) contestants: Vec<Contestant>,
    pub(super) valkey_benchmark: Option<PathBuf>,
    pub(super) absent: Vec<String>,
    /// Another build of Weft, which takes part in nothing but the part of its name.
    before: Option<Contestant>,
}

impl Field {
    /// Gathers what `scripts/peers` printed, and this program.
    pub(super) fn gather(peers: &str) -> Result<Field> {
        let mut field = Field::default();
        let path = |name: &str| {
            let line = peers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.map(PathBuf::from).filter(|path| path.exists())
        };
        let own = std::env::current_exe().context("this program's own path")?;
        if serves(&own) {
            let version = format!("weft {}", env!("CARGO_PKG_VERSION"));
            field.contestants.push(Contestant {
                id: "weft",
                kind: Kind::Weft,
                program: own.clone(),
                version,
            });
        } else {
            field.absent.push("weft serve: this program has no server".to_string());
        }
        field.before = path("before").map(|program| {
            let version = version(&program);
            Contestant { id: "before", kind: Kind::Weft, program, version }
        });
        for (id, name) in PEERS {
            match path(name) {
                Some(program) => {
                    let version = version(&program);
                    field.contestants.push(Contestant { id, kind: Kind::Redis, program, version });
                }
                None => field.absent.push(format!("{name}: scripts/peers says why")),
            }
        }
        let version = "counts requests, copies a reply".to_string();
        field.contestants.push(Contestant { id: "stub", kind: Kind::Stub, program: own, version });
        field.valkey_benchmark = path("valkey-benchmark");
        if field.valkey_benchmark.is_none() {
            field.absent.push("valkey-benchmark: the RESP columns are left out".to_string());
        }
        Ok(field)
    }

    /// This Weft beside the build of it that was named `before`.
    pub(super) fn with_before(&self) -> Result<Field> {
        let (Some(weft), Some(before)) = (self.get("weft"), &self.before) else {
            bail!("--parts before: name the other build in the file of --peers, before=PATH")
        };
        let contestants = vec![weft.clone(), before.clone()];
        Ok(Field { contestants, valkey_benchmark: self.valkey_benchmark.clone(), ..Field::default() })
    }

    pub(super) fn get(&self, id: &str) -> Option<&Contestant> {
        self.contestants.iter().find(|contestant| contestant.id == id)
    }
}

fn serves(program: &Path) -> bool {
    let help = Command::new(program).arg("--help").output();
    help.is_ok_and(|help| {
        String::from_utf8_lossy(&help.stdout).lines().any(|line| line.trim().starts_with("serve "))
    })
}

fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    output.map_or_else(
        |error| error.to_string(),
        |output| {
            let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
            // "Valkey server v=9.1.2 sha=…": what stands before the build's own marks.
            text.split(" sha=").next().unwrap_or_default().to_string()
        },
    )
}

/// A server that runs; it ends with this value.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    folder: PathBuf,
    pub(super) port: u16,
    pub(super) pid: u32,
    pub(super) kind: Kind,
    /// Whether it is asked by TLS.
    tls: bool,
}

/// How a server is started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) port: u16,
    pub(super) threads: u32,
    /// The core that it may use, if `taskset` is there.
    pub(super) core: Option<usize>,
    /// Bytes of the stub's values.
    pub(super) value_bytes: usize,
    /// Whether memory may be in huge pages, for those who can: Valkey leaves them to the system, which must be asked.
    pub(super) huge_pages: bool,
}

impl Contestant {
    /// Starts it and waits until it answers.
    pub(super) fn start(&self, start: Start) -> Result<Running> {
        self.start_with(start, &[])
    }

    /// The same with settings, which both kinds of servers call alike.
    pub(super) fn start_with(&self, start: Start, settings: &[(String, String)]) -> Result<Running> {
        let folder = std::env::temp_dir().join(format!("weft-peers-{}-{}", std::process::id(), self.id));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let mut command = match start.core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.arg("-c").arg(core.to_string()).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        let (port, threads) = (start.port.to_string(), start.threads.to_string());
        match self.kind {
            Kind::Weft => command
                .args(["serve", "--port", &port, "--threads", &threads])
                .args(["--huge-pages", if start.huge_pages { "yes" } else { "no" }]),
            Kind::Stub => {
                command.args(["peers", "--stub", &port, "--stub-value", &start.value_bytes.to_string()])
            }
            Kind::Redis => command
                .args(["--port", &port, "--save", "", "--appendonly", "no", "--daemonize", "no"])
                .args(["--io-threads", &threads, "--maxclients", "20000"])
                .args(["--disable-thp", if start.huge_pages { "no" } else { "yes" }, "--dir"])
                .arg(&folder),
        };
        if self.kind != Kind::Stub {
            settings.iter().for_each(|(name, value)| {
                command.arg(format!("--{name}")).arg(value);
            });
        }
        let log = File::create(folder.join("log")).context("the server's log")?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).current_dir(&folder);
        let child =
            command.spawn().with_context(|| format!("{}: cannot be started", self.program.display()))?;
        let pid = child.id();
        let tls = settings.iter().any(|(name, _)| name == "tls-port");
        let mut running = Running { child, folder, port: start.port, pid, kind: self.kind, tls };
        running.wait_until_it_answers().with_context(|| self.id)?;
        Ok(running)
    }
}

impl Running {
    fn wait_until_it_answers(&mut self) -> Result<()> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                bail!("ended with {status}: {}", log.lines().last().unwrap_or("it said nothing"));
            }
            if let Ok(mut connection) = Connection::connect(&self.config(Protocol::Resp2))
                && connection.command(&["PING"]).is_ok()
            {
                return Ok(());
            }
            if began.elapsed() > START_PATIENCE {
                bail!("did not answer within {} s", START_PATIENCE.as_secs());
            }
            std::thread::sleep(START_LOOK);
        }
    }

    pub(super) fn config(&self, protocol: Protocol) -> Config {
        let timeouts = Timeouts::all(Some(Duration::from_secs(30)));
        // Its certificate is of this run alone.
        let tls = self.tls.then(|| TlsConfig { insecure: true, ..TlsConfig::default() });
        Config { protocol, timeouts, tls, ..Config::new("127.0.0.1", self.port) }
    }

    pub(super) fn server(&self, protocol: Protocol) -> Server {
        Server::alone(self.config(protocol), Some(self.pid))
    }

    pub(super) fn usage(&self) -> Result<Usage> {
        Usage::of(self.pid).context("the server's process is gone")
    }

    /// A command's reply, an error being one.
    pub(super) fn ask(&self, argv: &[&str]) -> Result<Reply> {
        let mut connection = Connection::connect(&self.config(Protocol::Resp2))?;
        Ok(connection.exchange(argv)?)
    }

    /// A number of INFO.
    pub(super) fn info(&self, section: &str, name: &str) -> Option<u64> {
        let Ok(Reply::Bulk(text) | Reply::Verbatim(_, text)) = self.ask(&["INFO", section]) else {
            return None;
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.trim().parse().ok()
    }

    /// Whether it knows a command.
    pub(super) fn knows(&self, argv: &[String]) -> bool {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        match self.ask(&argv) {
            Ok(Reply::Error(text)) => !text.starts_with(b"ERR unknown command"),
            Ok(_) => true,
            Err(_) => false,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; its files are of no use to anyone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_named() {
        let field = Field::gather("valkey=/nowhere/valkey-server\nredis=/bin/sh\n").unwrap();
        assert!(field.with_before().is_err(), "nobody named another build");
        assert!(field.get("valkey").is_none() && field.get("redis").is_some() && field.get("stub").is_some());
        for name in ["valkey:", "valkey-debian:", "valkey-benchmark:"] {
            assert!(field.absent.iter().any(|line| line.starts_with(name)), "{name} {:?}", field.absent);
        }
    }
}
