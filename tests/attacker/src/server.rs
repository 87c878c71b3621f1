//! Owns: the server under attack, a child process with a port and a folder of its own, and what /proc tells of it; if
//! it is a gateway, the server behind it too. Does not own: who attacks it.

use std::fs::{self, OpenOptions};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::watch;

/// The password of the default user, who administers.
pub(crate) const PASSWORD: &str = "the administrator";
/// The longest string, and with it the longest argument. Small, so that what hostile clients store stays small.
pub(crate) const STRING_BYTES_MAX: usize = 1 << 20;
/// The longest body over HTTP.
pub(crate) const HTTP_BODY_BYTES_MAX: usize = 1 << 20;
/// All that scripts may keep, so that one that wants too much has it soon.
const SCRIPT_MEMORY_BYTES_MAX: usize = 32 << 20;
/// Milliseconds of a script after which others are told, and it can be killed.
const BUSY_MS: u64 = 20;
/// Commands that take as long are told of where a client has waited for too long.
const SLOW_US: u64 = 1_000_000;
/// What a client may leave unread.
const OUTPUT_BYTES_MAX: usize = 8 << 20;
/// How long it may take to start or to stop, which only a hang reaches.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often another port is tried when somebody takes the one that was free.
const STARTS_MAX: u32 = 5;
/// Between two looks at what nothing tells of.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
const PAGE_BYTES: u64 = 4096;

pub(crate) struct Server {
    child: Child,
    /// The server that has the keys, if the attacked one is a gateway.
    behind: Option<(Child, u16)>,
    pub(crate) port: u16,
    folder: PathBuf,
    flags: Flags,
}

/// What it is started with.
struct Flags {
    program: PathBuf,
    threads: usize,
    more: Vec<(String, String)>,
    /// What stands behind a gateway limits its output, too.
    limits_behind: bool,
}

/// What is attacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Server,
    /// A gateway; whether the server behind limits what a connection leaves unread, which all clients share.
    Gateway {
        limits_behind: bool,
    },
}

/// What a gateway may keep for its connections behind when they are idle: buffers, of what came and of what went.
const KEPT_BEHIND_BYTES: u64 = 8 << 20;

/// Connections that clients of a gateway can have to themselves: few, so that all of them are there soon.
const LEASES: &str = "4";

impl Server {
    /// Starts it with so many threads, and flags beside those that all have; in front of another one, if it is to be a
    /// gateway.
    pub(crate) fn start(
        program: &Path,
        threads: usize,
        more: &[(String, String)],
        role: Role,
    ) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("weft-attacked-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let limits_behind = role == Role::Gateway { limits_behind: true };
        let flags = Flags { program: program.into(), threads, more: more.to_vec(), limits_behind };
        let behind = if role != Role::Server {
            let folder = folder.join("behind");
            fs::create_dir_all(&folder)?;
            Some(started(&flags, &folder, Place::Behind)?)
        } else {
            None
        };
        let place = behind.as_ref().map_or(Place::Alone, |(_, port)| Place::Before(*port));
        let (child, port) = started(&flags, &folder, place)?;
        let server = Self { child, behind, port, folder, flags };
        server.is_watched();
        Ok(server)
    }

    /// Starts one that has stopped, with what it has kept; on another port, since this one may be taken.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        let place = self.behind.as_ref().map_or(Place::Alone, |(_, port)| Place::Before(*port));
        (self.child, self.port) = started(&self.flags, &self.folder, place)?;
        self.is_watched();
        Ok(())
    }

    fn is_watched(&self) {
        let children = std::iter::once(&self.child).chain(self.behind.iter().map(|(child, _)| child));
        watch::servers(children.map(rustix::process::Pid::from_child).collect());
    }

    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/statm", self.child.id()))?;
        let pages = text.split_whitespace().nth(1).context("statm has no second field")?;
        Ok(pages.parse::<u64>()? * PAGE_BYTES)
    }
    /// Memory that it may have more than before, beside what any server may.
    pub(crate) const fn kept_bytes(&self) -> u64 {
        if self.behind.is_some() { KEPT_BEHIND_BYTES } else { 0 }
    }
    pub(crate) fn descriptors(&self) -> Result<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }
    /// How it has ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        if let Some((behind, _)) = &mut self.behind
            && let Some(status) = behind.try_wait()?
        {
            bail!("the server behind the gateway has ended with {status}");
        }
        Ok(self.child.try_wait()?)
    }
    /// What it has written.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Asks it to stop and waits until it has.
    pub(crate) fn stop(&mut self) -> Result<ExitStatus> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if began.elapsed() > PATIENCE {
                bail!("the server does not stop after {} s", PATIENCE.as_secs());
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended where all went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some((behind, _)) = &mut self.behind {
            let _ = behind.kill();
            let _ = behind.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Where one stands: by itself, behind a gateway, or as the gateway before the one of this port.
#[derive(Clone, Copy)]
enum Place {
    Alone,
    Behind,
    Before(u16),
}

/// A server that listens, and where.
fn started(flags: &Flags, folder: &Path, place: Place) -> Result<(Child, u16)> {
    let log = folder.join("log");
    for _ in 0..STARTS_MAX {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let said = OpenOptions::new().create(true).append(true).open(&log)?;
        let child = command(flags, folder, port, place).stdout(Stdio::null()).stderr(said).spawn();
        let mut child = child.with_context(|| format!("{} does not start", flags.program.display()))?;
        if answers(&mut child, port)? {
            return Ok((child, port));
        }
    }
    bail!("the server does not start: {}", fs::read_to_string(log).unwrap_or_default())
}

/// Waits until somebody listens; whether it is this server, which has not ended.
fn answers(child: &mut Child, port: u16) -> Result<bool> {
    let began = Instant::now();
    loop {
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(child.try_wait()?.is_none());
        }
        if began.elapsed() > PATIENCE {
            // Whoever waits for it in vain leaves none behind.
            let _ = child.kill();
            let _ = child.wait();
            bail!("the server does not listen after {} s", PATIENCE.as_secs());
        }
        // Nothing tells when a socket begins to listen but trying.
        std::thread::sleep(LOOK);
    }
}

fn command(flags: &Flags, folder: &Path, port: u16, place: Place) -> Command {
    let mut command = Command::new(&flags.program);
    // Behind a gateway all share a connection, which one of them would have closed.
    let is_shared = matches!(place, Place::Behind) && !flags.limits_behind;
    let normal = if is_shared { 0 } else { OUTPUT_BYTES_MAX };
    let limits = format!("normal {normal} 0 0 pubsub {OUTPUT_BYTES_MAX} 0 0");
    let own = [
        ("--bind", "127.0.0.1"),
        ("--port", &port.to_string()),
        ("--dir", &folder.to_string_lossy()),
        ("--threads", &flags.threads.to_string()),
        ("--requirepass", PASSWORD),
        ("--proto-max-bulk-len", &STRING_BYTES_MAX.to_string()),
        ("--client-output-buffer-limit", &limits),
        // A connection that must end does so for a better reason.
        ("--auth-timeout", "600"),
        ("--http-body-bytes", &HTTP_BODY_BYTES_MAX.to_string()),
        ("--script-memory-limit", &SCRIPT_MEMORY_BYTES_MAX.to_string()),
        ("--busy-reply-threshold", &BUSY_MS.to_string()),
        ("--tls-self-signed", "yes"),
        ("--loglevel", "warning"),
    ];
    match place {
        Place::Alone | Place::Behind => {
            command.args(["serve", "--slowlog-log-slower-than", &SLOW_US.to_string()])
        }
        Place::Before(to) => {
            let to = format!("redis://:{}@127.0.0.1:{to}", PASSWORD.replace(' ', "%20"));
            command.args(["gateway", "--to", &to, "--leases", LEASES])
        }
    };
    for (name, value) in own {
        command.args([name, value]);
    }
    for (name, value) in &flags.more {
        command.args([name, value]);
    }
    command
}
