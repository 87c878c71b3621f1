//! Owns: listening sockets, accepting, handing connections to workers in turn, refusing those over `maxclients` and, in
//! protected mode, those from other machines. Does not own: what who is refused is told (`crate::doorstep`), what a
//! connection does.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType};
use weft_engine::Engine;
use weft_engine::session::ConnectionInfo;

use crate::doorstep::{Doorstep, Refused};
use crate::poll::{Poll, Ready, Waker};
use crate::shared::Shared;
use crate::tls::Stepped;
use crate::{notice, warning};

/// Congestion controls of these names pace what they send; this one, which every system has, does not.
const PACING: &str = "bbr";
const NOT_PACING: &str = "reno";

/// Connections accepted in a row before other listeners get a turn.
const ACCEPTS_MAX: usize = 256;

/// A connection that has been accepted.
pub(crate) struct Arrival {
    pub(crate) fd: OwnedFd,
    pub(crate) info: ConnectionInfo,
    pub(crate) speaks: Speaks,
}

/// What is spoken on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// What the first bytes say.
    Any,
    /// TLS only.
    Tls,
    /// HTTP only.
    Http,
}

/// Connections on their way to one worker, and what comes back of those that it has.
#[derive(Default)]
pub(crate) struct Inbox {
    queue: Mutex<VecDeque<Arrival>>,
    /// Steps of handshakes that helpers have done.
    stepped: Mutex<VecDeque<Stepped>>,
    waker: OnceLock<Waker>,
    shared: Arc<Shared>,
}

impl Inbox {
    /// An inbox that counts together with others.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, ..Self::default() }
    }
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
    pub(crate) fn set_waker(&self, waker: Waker) {
        // A second one would be a second worker on one inbox, which `run` does not make.
        let _ = self.waker.set(waker);
    }
    pub(crate) fn put(&self, arrival: Arrival) {
        self.shared.connections.fetch_add(1, Relaxed);
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(arrival);
        self.wake();
    }
    /// A step of a handshake has been done.
    pub(crate) fn give_back(&self, stepped: Stepped) {
        self.stepped.lock().unwrap_or_else(PoisonError::into_inner).push_back(stepped);
        self.wake();
    }
    fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }
    pub(crate) fn take_stepped(&self) -> Option<Stepped> {
        self.stepped.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
    /// Steps that wait to be taken back.
    #[cfg(test)]
    pub(crate) fn stepped(&self) -> usize {
        self.stepped.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
    pub(crate) fn take(&self) -> Option<Arrival> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
    /// A connection that came through here is gone.
    pub(crate) fn closed(&self) {
        self.shared.connections.fetch_sub(1, Relaxed);
    }
}

/// A socket that listens.
pub(crate) enum Listener {
    Tcp(Bound),
    /// TLS only.
    Tls(Bound),
    /// HTTP only.
    Http(Bound),
    Unix(OwnedFd, PathBuf),
    /// A Unix socket that is another's: its file stays.
    Given(OwnedFd),
}

/// A TCP socket that listens.
pub(crate) struct Bound {
    fd: OwnedFd,
    address: SocketAddr,
    /// The congestion control that connections from elsewhere get back, where those of the loopback have another.
    congestion_elsewhere: Option<String>,
}

impl Listener {
    /// Listens on a TCP address.
    pub(crate) fn tcp(address: SocketAddr, backlog: i32) -> io::Result<Self> {
        listening(address, backlog).map(Self::Tcp)
    }

    /// Listens on a TCP address where TLS is spoken only.
    pub(crate) fn tls(address: SocketAddr, backlog: i32) -> io::Result<Self> {
        listening(address, backlog).map(Self::Tls)
    }

    /// Listens on a TCP address where HTTP is spoken only.
    pub(crate) fn http(address: SocketAddr, backlog: i32) -> io::Result<Self> {
        listening(address, backlog).map(Self::Http)
    }

    /// A socket that systemd listens on; by the name `tls` TLS only, by the name `http` HTTP only.
    pub(crate) fn inherited(fd: OwnedFd, name: &str) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(match ip(rustix::net::getsockname(&fd)?) {
            Some(address) if name == "tls" => Self::Tls(Bound { fd, address, congestion_elsewhere: None }),
            Some(address) if name == "http" => Self::Http(Bound { fd, address, congestion_elsewhere: None }),
            Some(address) => Self::Tcp(Bound { fd, address, congestion_elsewhere: None }),
            None => Self::Given(fd),
        })
    }

    /// Listens on a path; a socket that nobody answers on is replaced.
    pub(crate) fn unix(path: &Path, mode: Option<u32>, backlog: i32) -> io::Result<Self> {
        if let Ok(there) = fs::symlink_metadata(path) {
            if !there.file_type().is_socket() {
                let why = "there is something that is no socket";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
            if std::os::unix::net::UnixStream::connect(path).is_err() {
                fs::remove_file(path)?;
            }
        }
        let fd = bound_unix(path, mode)?;
        rustix::net::listen(&fd, backlog)?;
        Ok(Self::Unix(fd, path.to_path_buf()))
    }

    /// What it listens on, for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Tcp(bound) => bound.address.to_string(),
            Self::Tls(bound) => format!("{} (TLS)", bound.address),
            Self::Http(bound) => format!("{} (HTTP)", bound.address),
            Self::Unix(_, path) => path.display().to_string(),
            Self::Given(_) => "a Unix socket of systemd".to_string(),
        }
    }
    const fn speaks(&self) -> Speaks {
        match self {
            Self::Tls(..) => Speaks::Tls,
            Self::Http(..) => Speaks::Http,
            Self::Tcp(..) | Self::Unix(..) | Self::Given(_) => Speaks::Any,
        }
    }
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(bound) | Self::Tls(bound) | Self::Http(bound) => bound.fd.as_fd(),
            Self::Unix(fd, _) | Self::Given(fd) => fd.as_fd(),
        }
    }

    fn accept(&self, engine: &Engine) -> io::Result<(OwnedFd, ConnectionInfo, bool)> {
        let (fd, peer) =
            rustix::net::acceptfrom_with(self.fd(), SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        match self {
            Self::Unix(..) | Self::Given(_) => {
                let name: Box<str> = format!("{}:0", self.name()).into();
                let info = ConnectionInfo {
                    peer: name.clone(),
                    local: name,
                    fd: fd.as_raw_fd(),
                    unix: true,
                    ..ConnectionInfo::default()
                };
                Ok((fd, info, true))
            }
            Self::Tcp(bound) | Self::Tls(bound) | Self::Http(bound) => {
                let peer = peer.and_then(ip);
                let here = peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback());
                tune(&fd, engine, bound.congestion_elsewhere.as_deref().filter(|_| !here));
                let local = rustix::net::getsockname(&fd).ok().and_then(ip);
                let text =
                    |address: Option<SocketAddr>| address.map_or_else(|| "?:0".into(), |it| it.to_string());
                let info = ConnectionInfo {
                    peer: text(peer).into(),
                    local: text(local).into(),
                    fd: fd.as_raw_fd(),
                    ..ConnectionInfo::default()
                };
                Ok((fd, info, here))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = fs::remove_file(path);
        }
    }
}

/// A socket that listens on a TCP address.
fn listening(address: SocketAddr, backlog: i32) -> io::Result<Bound> {
    let fd = bound(address)?;
    let congestion_elsewhere = without_pacing(&fd);
    rustix::net::listen(&fd, backlog)?;
    // The port that port 0 became.
    let listener = TcpListener::from(fd);
    let address = listener.local_addr()?;
    Ok(Bound { fd: listener.into(), address, congestion_elsewhere })
}

/// Nothing is lost or shared on the loopback: there what paces costs timers and nothing else. A connection that has
/// begun to pace does so whatever it is set to later, so it is who listens that is set to what does not. Gives what it
/// was, if it was changed.
fn without_pacing(fd: &OwnedFd) -> Option<String> {
    let congestion = sockopt::tcp_congestion(fd).ok().filter(|name| name.starts_with(PACING))?;
    sockopt::set_tcp_congestion(fd, NOT_PACING).is_ok().then_some(congestion)
}

/// A socket at an address that does not listen yet.
pub(crate) fn bound(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&fd, true)?;
    }
    rustix::net::bind(&fd, &address)?;
    Ok(fd)
}

/// A socket at a path, with its mode, that does not listen yet: nobody gets in before the mode is set.
fn bound_unix(path: &Path, mode: Option<u32>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&fd, &SocketAddrUnix::new(path)?)?;
    if let Some(mode) = mode {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    Ok(fd)
}

fn ip(address: SocketAddrAny) -> Option<SocketAddr> {
    address.try_into().ok()
}

/// Options of an accepted socket. None is needed for it to work.
fn tune(fd: &OwnedFd, engine: &Engine, congestion: Option<&str>) {
    let _ = sockopt::set_tcp_nodelay(fd, true);
    if let Some(congestion) = congestion {
        let _ = sockopt::set_tcp_congestion(fd, congestion);
    }
    let keepalive_s = engine.settings.keepalive_s.load(Relaxed);
    if keepalive_s > 0 {
        let idle = Duration::from_secs(u64::from(keepalive_s));
        let _ = sockopt::set_socket_keepalive(fd, true);
        let _ = sockopt::set_tcp_keepidle(fd, idle);
        let _ = sockopt::set_tcp_keepintvl(fd, (idle / 3).max(Duration::from_secs(1)));
        let _ = sockopt::set_tcp_keepcnt(fd, 3);
    }
}

/// Whether an error of accepting is that of the connection that was to be accepted, which is gone.
fn is_of_one(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let of_one = [
        Errno::CONNABORTED,
        Errno::INTR,
        Errno::PROTO,
        Errno::PERM,
        Errno::HOSTDOWN,
        Errno::HOSTUNREACH,
        Errno::NETDOWN,
        Errno::NETUNREACH,
        Errno::TIMEDOUT,
    ];
    Errno::from_io_error(error).is_some_and(|errno| of_one.contains(&errno))
}

/// What keeps connections from being accepted, mostly too few descriptors: it is said when it begins and when it ends,
/// and asked about less and less often.
#[derive(Debug, Default)]
struct Trouble {
    /// Errors in a row.
    errors: u32,
}

/// The pauses after such an error, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

impl Trouble {
    /// Another error: how long to wait before the next attempt.
    fn met(&mut self, error: &io::Error) -> Duration {
        if self.errors == 0 {
            warning!(
                "cannot accept connections: {error}; they wait until there is room. Raise the limit on open files \
                 (ulimit -n), or lower maxclients"
            );
        }
        let pause = PAUSE_MIN.saturating_mul(1 << self.errors.min(10)).min(PAUSE_MAX);
        self.errors = self.errors.saturating_add(1);
        pause
    }
    fn is_over(&mut self) {
        if self.errors > 0 {
            notice!("connections are accepted again, after {} attempts", self.errors);
            self.errors = 0;
        }
    }
}

/// Accepts connections until it is told to stop.
pub(crate) struct Acceptor<'e> {
    engine: &'e Engine,
    listeners: Vec<Listener>,
    inboxes: Vec<Arc<Inbox>>,
    shared: Arc<Shared>,
    next: usize,
    poll: Poll,
    trouble: Trouble,
    doorstep: Doorstep,
}

impl<'e> Acceptor<'e> {
    pub(crate) fn new(
        engine: &'e Engine,
        listeners: Vec<Listener>,
        inboxes: Vec<Arc<Inbox>>,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        let poll = Poll::new(0)?;
        for (at, listener) in listeners.iter().enumerate() {
            poll.add_listener(listener.fd(), at as u64)?;
        }
        let (trouble, doorstep) = (Trouble::default(), Doorstep::default());
        Ok(Self { engine, listeners, inboxes, shared, next: 0, poll, trouble, doorstep })
    }
    /// What makes it look whether it is to stop.
    pub(crate) fn waker(&self) -> Waker {
        self.poll.waker()
    }

    /// Runs until `stop` says so.
    pub(crate) fn run(&mut self, stop: impl Fn() -> bool) -> io::Result<()> {
        let mut ready: Vec<Ready> = Vec::new();
        while !stop() {
            self.poll.wait(self.doorstep.timeout_ms().min(1000), &mut ready)?;
            for event in &ready {
                // Not the waker, and nobody on the doorstep.
                if (event.place as usize) < self.listeners.len() {
                    self.accept_from(event.place as usize);
                }
            }
            self.doorstep.look(self.engine.clock.now_ms());
        }
        Ok(())
    }

    fn accept_from(&mut self, at: usize) {
        for _ in 0..ACCEPTS_MAX {
            match self.listeners[at].accept(self.engine) {
                Ok((fd, info, here)) => {
                    self.trouble.is_over();
                    let speaks = self.listeners[at].speaks();
                    self.admit(Arrival { fd, info, speaks }, here);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_of_one(&error) => {}
                // They come back when connections end; not to be asked again at once.
                Err(error) => return std::thread::sleep(self.trouble.met(&error)),
            }
        }
    }

    fn admit(&mut self, arrival: Arrival, here: bool) {
        let settings = &self.engine.settings;
        let refused = if self.shared.connections.load(Relaxed) >= settings.clients_max.load(Relaxed) {
            Some(Refused::Full)
        } else if !here && settings.protected_mode.load(Relaxed) && !settings.auth_required.load(Relaxed) {
            Some(Refused::Protected)
        } else {
            None
        };
        if let Some(why) = refused {
            self.engine.stats.rejected_connections.fetch_add(1, Relaxed);
            let now_ms = self.engine.clock.now_ms();
            return self.doorstep.refuse((arrival.fd, arrival.speaks), why, (&self.poll, now_ms));
        }
        self.inboxes[self.next].put(arrival);
        self.next = (self.next + 1) % self.inboxes.len();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_has_its_mode_before_anybody_can_connect() {
        let path = std::env::temp_dir().join(format!("weft-listener-{}.sock", std::process::id()));
        let fd = bound_unix(&path, Some(0o600)).expect("the path is free");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        let refused = UnixStream::connect(&path).expect_err("nobody listens yet");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        rustix::net::listen(&fd, 1).expect("it can listen");
        UnixStream::connect(&path).expect("now somebody does");
        drop(Listener::Unix(fd, path.clone()));
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_socket_stays() {
        let path = std::env::temp_dir().join(format!("weft-listener-{}.txt", std::process::id()));
        fs::write(&path, "data").expect("it can be written");
        let refused = Listener::unix(&path, None, 1).err().expect("it is not its to take");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).expect("it is there"), b"data");
        fs::remove_file(&path).expect("it is there");
        // A socket on which nobody answers any more is replaced.
        drop(bound_unix(&path, None).expect("the path is free"));
        drop(Listener::unix(&path, None, 1).expect("it is replaced"));
        assert!(!path.exists());
    }

    #[test]
    fn strangers_are_admitted_by_a_password_or_without_protected_mode() {
        let engine = crate::alone::Alone::new().engine;
        let inbox = Arc::new(Inbox::new(Arc::new(Shared::default())));
        let mut acceptor =
            Acceptor::new(engine, Vec::new(), vec![Arc::clone(&inbox)], Arc::new(Shared::default()))
                .expect("there is epoll");
        let set = |name: &str, value: &str| {
            engine.set_config(&[(name.as_bytes(), value.as_bytes())], false).expect("it can be set");
        };
        let mut is_admitted = |here: bool| {
            let (mut client, server) = UnixStream::pair().expect("a pair of sockets");
            io::Write::write_all(&mut client, b"PING\r\n").expect("it fits");
            let info = ConnectionInfo::default();
            acceptor.admit(Arrival { fd: server.into(), info, speaks: Speaks::Any }, here);
            let admitted = inbox.take().is_some();
            if !admitted {
                let mut told = String::new();
                io::Read::read_to_string(&mut client, &mut told).expect("it ends");
                assert!(told.starts_with("-DENIED "), "{told}");
            }
            admitted
        };
        assert!(is_admitted(true) && !is_admitted(false));
        set("requirepass", "secret");
        assert!(is_admitted(false), "who has the password is no stranger");
        set("requirepass", "");
        assert!(!is_admitted(false));
        set("protected-mode", "no");
        assert!(is_admitted(false));
    }

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew() {
        let mut trouble = Trouble::default();
        let error = io::Error::from(rustix::io::Errno::MFILE);
        assert!(!is_of_one(&error) && is_of_one(&rustix::io::Errno::CONNABORTED.into()));
        let pauses: Vec<u128> = (0..8).map(|_| trouble.met(&error).as_millis()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 500, 500]);
        (0..100).for_each(|_| assert_eq!(trouble.met(&error), PAUSE_MAX));
        trouble.is_over();
        assert_eq!(trouble.met(&error), PAUSE_MIN);
    }

    /// A connection that was BBR's once paces for as long as it lives, so it must never have been.
    #[test]
    fn connections_of_the_loopback_do_not_pace_and_others_do_as_the_system_does() {
        let engine = crate::alone::Alone::new().engine;
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let fd = bound(address).expect("there is a port");
        if sockopt::set_tcp_congestion(&fd, "bbr").is_err() {
            println!("left out: this system has no BBR");
            return;
        }
        let congestion_elsewhere = without_pacing(&fd);
        assert_eq!(congestion_elsewhere.as_deref(), Some("bbr"));
        rustix::net::listen(&fd, 8).expect("it listens");
        let listener = TcpListener::from(fd);
        let address = listener.local_addr().expect("it has an address");
        let listener = Listener::Tcp(Bound { fd: listener.into(), address, congestion_elsewhere });
        let _client = std::net::TcpStream::connect(address).expect("somebody listens");
        let (accepted, ..) = loop {
            match listener.accept(engine) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                accepted => break accepted.expect("it is accepted"),
            }
        };
        assert_eq!(sockopt::tcp_congestion(&accepted).expect("it has one"), NOT_PACING);
        tune(&accepted, engine, Some("bbr"));
        assert_eq!(sockopt::tcp_congestion(&accepted).expect("it has one"), "bbr");
    }
}
