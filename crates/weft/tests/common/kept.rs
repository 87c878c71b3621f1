//! A server whose folder outlives it: started, killed, stopped, started again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use weft_client::{Config, Connection, Protocol, Reply, Timeouts};

use super::servers::LONG;
use super::{Folder, weft};

/// A server in a folder that outlives it.
pub(crate) struct Server {
    child: Child,
    pub(crate) socket: String,
    said: Mutex<Receiver<String>>,
}

impl Server {
    pub(crate) fn start(folder: &Folder, options: &[&str]) -> Self {
        Self::of(spawn(folder, options))
    }
    /// One whose disk fails or takes its time as files in `faults` say.
    pub(crate) fn start_on(disk: &FailingDisk, folder: &Folder, options: &[&str]) -> Self {
        let (mut command, socket) = command(folder, options);
        command.env("LD_PRELOAD", disk.0.path("disk.so")).env("WEFT_DISK", &disk.0.0);
        Self::of((command.spawn().unwrap(), socket))
    }
    /// One that loads for as long as its disk, or a pipe, lets it.
    pub(crate) fn loading(disk: &FailingDisk, folder: &Folder, options: &[&str]) -> Self {
        let (mut command, socket) = command(folder, options);
        command.env("LD_PRELOAD", disk.0.path("disk.so")).env("WEFT_DISK", &disk.0.0);
        let server = Self::up((command.spawn().unwrap(), socket));
        assert!(server.is_loading());
        server
    }
    fn of(started: (Child, String)) -> Self {
        let server = Self::up(started);
        while server.is_loading() {
            thread::yield_now();
        }
        server
    }
    fn up((mut child, socket): (Child, String)) -> Self {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let is_up = lines.any(|line| line.contains("Listening on /"));
        assert!(is_up, "the server listens");
        let errors = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        // Why it has ended, where a test fails for that.
        thread::spawn(move || errors.for_each(|line| println!("{line}")));
        let (say, said) = mpsc::channel();
        // Read to its end, so that the server never waits for whoever reads it.
        thread::spawn(move || {
            for line in lines {
                println!("{line}");
                // The test may not listen any more.
                let _ = say.send(line);
            }
        });
        Self { child, socket, said: Mutex::new(said) }
    }
    pub(crate) fn terminate(&self) {
        let id = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
    }
    /// It ends by itself, and not well.
    pub(crate) fn ends_badly(mut self) {
        assert!(!self.child.wait().unwrap().success());
    }
    /// A connection that came before the default user had its password back is closed: there is more to load, too.
    fn is_loading(&self) -> bool {
        let reply = self.connect(Protocol::Resp2).exchange(&["DBSIZE"]);
        reply.map_or(true, |reply| show(reply).starts_with("LOADING"))
    }
    pub(crate) fn connect(&self, protocol: Protocol) -> Connection {
        let config =
            Config::unix(&self.socket).with_protocol(protocol).with_timeouts(Timeouts::all(Some(LONG)));
        Connection::connect(&config).expect("the server takes a connection")
    }
    pub(crate) fn ask(&self, words: &[&str]) -> String {
        show(self.connect(Protocol::Resp2).exchange(words).unwrap())
    }
    pub(crate) fn info(&self, field: &str) -> String {
        let text = self.ask(&["INFO", "persistence"]);
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("INFO has no {field}")).to_string()
    }
    pub(crate) fn wait_for(&self, field: &str, value: &str) {
        while self.info(field) != value {
            thread::yield_now();
        }
    }
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
    pub(crate) fn stop(self, words: &[&str]) {
        self.send_only(words);
        self.ends();
    }
    /// Asks something to which there is no answer.
    pub(crate) fn send_only(&self, words: &[&str]) {
        let _ = self.connect(Protocol::Resp2).exchange(words);
    }
    pub(crate) fn ends(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
    /// It ends well, and has said this of what nobody has listened to yet.
    pub(crate) fn ends_saying(mut self) -> String {
        assert!(self.child.wait().unwrap().success());
        let said = self.said.lock().unwrap();
        said.iter().map(|line| line + "\n").collect()
    }
    /// Waits for a line of its log.
    pub(crate) fn says(&self, text: &str) {
        let said = self.said.lock().unwrap();
        while !said.recv_timeout(LONG).expect("it says so").contains(text) {}
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn spawn(folder: &Folder, options: &[&str]) -> (Child, String) {
    let (mut command, socket) = command(folder, options);
    (command.spawn().unwrap(), socket)
}
fn command(folder: &Folder, options: &[&str]) -> (Command, String) {
    let socket = folder.path("socket");
    let mut command = weft();
    command.args(["serve", "--port", "0", "--unixsocket", &socket, "--dir"]).arg(&folder.0).args(options);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    (command, socket)
}

/// A disk that does what a test says (`disk.c`), for one server.
pub(crate) struct FailingDisk(Folder);

impl FailingDisk {
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/disk.c");
        let words = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", &folder.path("disk.so"), source];
        // What links this test.
        assert!(Command::new("cc").args(words).status().unwrap().success());
        Self(folder)
    }
    /// From now on this happens.
    pub(crate) fn begin(&self, what: &str) {
        self.0.file(what, b"");
    }
    pub(crate) fn end(&self, what: &str) {
        std::fs::remove_file(self.0.path(what)).unwrap();
    }
}

/// The server does not start, and says why.
pub(crate) fn refused(folder: &Folder, options: &[&str]) -> String {
    let (mut child, _) = spawn(folder, options);
    let mut text = String::new();
    let late = Instant::now() + LONG;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > late {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("a server that was to refuse has started: {options:?}");
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(!child.wait().unwrap().success(), "{text}");
    text
}

pub(crate) fn show(reply: Reply) -> String {
    match reply {
        Reply::Simple(text) | Reply::Error(text) | Reply::Bulk(text) => String::from_utf8(text).unwrap(),
        Reply::Int(number) => number.to_string(),
        Reply::Array(items) => items.into_iter().map(show).collect::<Vec<_>>().join(" "),
        other => format!("{other:?}"),
    }
}

pub(crate) fn digest(server: &Server) -> String {
    server.ask(&["DEBUG", "DIGEST"])
}

/// What each key of few is worth, a line each: which one differs is then seen.
pub(crate) fn digests(server: &Server) -> Vec<String> {
    let mut connection = server.connect(Protocol::Resp2);
    let mut lines = vec![digest(server)];
    for database in ["0", "1", "2"] {
        connection.exchange(&["SELECT", database]).unwrap();
        let Reply::Array(mut keys) = connection.exchange(&["KEYS", "*"]).unwrap() else { panic!("no keys") };
        keys.sort_by_key(|key| show(key.clone()));
        for key in keys {
            let key = show(key);
            let worth = show(connection.exchange(&["DEBUG", "DIGEST-VALUE", &key]).unwrap());
            let expiry = show(connection.exchange(&["PEXPIRETIME", &key]).unwrap());
            lines.push(format!("{database} {key} {worth} {expiry}"));
        }
    }
    lines
}
