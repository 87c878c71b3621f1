//! Owns: the real server that Weft is compared with: finding, starting, stopping it, and connections to it. Does not
//! own: what is asked.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weft_protocol::reply::ReplyBuilder;
use weft_protocol::{Limits, Malformed, Outcome, Reply, WireError, resp};

/// How long a reply may take before it counts as missing: longer than a busy machine keeps the server waiting.
const REPLY_WAIT: Duration = Duration::from_secs(60);
/// How long one look for something may last. A longer one means that this process stood still, and counts as this.
/// Short, since a client that waits on the server by mistake costs one for each try to make its round shorter.
const LOOK: Duration = Duration::from_millis(20);

/// A time limit that counts only while this process runs: where it is frozen together with the server, for longer than
/// the limit, the reply is still to come.
pub(crate) struct Patience {
    left: Duration,
    seen: Instant,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self { left: REPLY_WAIT, seen: Instant::now() }
    }
    /// Whether some of it is left.
    pub(crate) fn lasts(&mut self) -> bool {
        let passed = self.seen.elapsed().min(LOOK);
        self.seen = Instant::now();
        self.left = self.left.saturating_sub(passed);
        !self.left.is_zero()
    }
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    folder: PathBuf,
    /// `valkey` or `redis`, and its version.
    pub(crate) kind: &'static str,
    pub(crate) version: String,
}

/// The program: the one that `WEFT_DIFF_SERVER` names, Valkey as scripts/valkey-driver builds it, or what is installed.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("WEFT_DIFF_SERVER") {
        return Some(path.into());
    }
    let cache = std::env::var_os("WEFT_CACHE").map(PathBuf::from).or_else(|| {
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let base = base.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")))?;
        Some(base.join("weft"))
    });
    let built = cache.map(|cache| cache.join("valkey-9.1.2/source/src/valkey-server"));
    let path: OsString = std::env::var_os("PATH").unwrap_or_default();
    let installed = ["valkey-server", "redis-server"].into_iter().flat_map(|name| {
        std::env::split_paths(&path).map(move |folder| folder.join(name)).collect::<Vec<_>>()
    });
    built.into_iter().chain(installed).find(|program| program.is_file())
}

impl Server {
    /// Starts a server in a folder of its own, without a port, and waits until it says that it is ready.
    pub(crate) fn start(program: &Path) -> Self {
        let folder = std::env::temp_dir().join(format!("weft-differential-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the server");
        let mut child = Command::new(program)
            .args(["--port", "0", "--unixsocket", "s", "--save", "", "--appendonly", "no", "--dir"])
            .arg(&folder)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it was piped"));
        let mut line = String::new();
        while !line.to_ascii_lowercase().contains("ready to accept connections") {
            line.clear();
            let len = lines.read_line(&mut line).expect("what the server says");
            assert!(len > 0, "the server has ended");
        }
        // So that it never waits for a reader.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let mut server = Self { child, folder, kind: "redis", version: String::new() };
        let Reply::Bulk(info) = server.connect(2).ask(&[b"INFO", b"server"]) else { panic!("INFO") };
        let info = String::from_utf8_lossy(&info).into_owned();
        let line = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::to_string);
        if let Some(version) = line("valkey_version:") {
            (server.kind, server.version) = ("valkey", version);
        } else {
            server.version = line("redis_version:").unwrap_or_default();
        }
        server
    }

    /// A connection that speaks RESP2 or RESP3.
    pub(crate) fn connect(&self, protocol: u8) -> Connection {
        let stream = UnixStream::connect(self.folder.join("s")).expect("the server listens");
        stream.set_read_timeout(Some(LOOK)).expect("a time limit");
        let mut connection = Connection { stream, bytes: Vec::new(), at: 0 };
        if protocol == 3 {
            let hello = connection.ask(&[b"HELLO", b"3"]);
            assert!(matches!(hello, Reply::Map(_)), "{hello:?}");
        }
        connection
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A client of the server.
pub(crate) struct Connection {
    stream: UnixStream,
    bytes: Vec<u8>,
    at: usize,
}

impl Connection {
    /// Sends commands together.
    pub(crate) fn send_all<'w>(&mut self, commands: impl Iterator<Item = &'w [&'w [u8]]>) {
        let mut bytes = Vec::new();
        for words in commands {
            resp::encode::request(None, &weft_protocol::request::Texts(words), &mut bytes);
        }
        self.stream.write_all(&bytes).expect("the server reads");
    }
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Reply {
        self.send_all(std::iter::once(words));
        self.receive().expect("a reply")
    }
    /// The next reply, if it is there already.
    pub(crate) fn try_receive(&mut self) -> Option<Reply> {
        self.stream.set_nonblocking(true).expect("a socket");
        let reply = self.receive_while(|| false);
        self.stream.set_nonblocking(false).expect("a socket");
        reply
    }
    /// The next reply; nothing when it does not come in one look.
    pub(crate) fn look(&mut self) -> Option<Reply> {
        self.receive_while(|| false)
    }
    /// The next reply; nothing when it does not come in time.
    pub(crate) fn receive(&mut self) -> Option<Reply> {
        let mut patience = Patience::new();
        self.receive_while(|| patience.lasts())
    }
    /// The next reply; nothing when there is none and `goes_on` says no.
    fn receive_while(&mut self, mut goes_on: impl FnMut() -> bool) -> Option<Reply> {
        loop {
            let mut builder = ReplyBuilder::new();
            match resp::ReplyDecoder::new(Limits::DEFAULT).decode(&self.bytes[self.at..], &mut builder) {
                Outcome::Complete(frame) => {
                    self.at += frame.len;
                    if self.at == self.bytes.len() {
                        self.bytes.clear();
                        self.at = 0;
                    }
                    return builder.take();
                }
                Outcome::Incomplete { .. } => {}
                // Valkey shows in some errors what it was sent as it is (`FUNCTION LIST` and a line end): a blank in
                // Weft's, as in its own others.
                Outcome::Invalid(WireError { kind: Malformed::BadLine, offset, .. })
                    if self.bytes[self.at..].get(offset).is_some_and(|byte| b"\r\n".contains(byte)) =>
                {
                    self.bytes[self.at + offset] = b' ';
                    continue;
                }
                Outcome::Invalid(error) => panic!("the server's reply is malformed: {error:?}"),
            }
            let mut part = [0; 65536];
            match self.stream.read(&mut part) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    if !goes_on() {
                        return None;
                    }
                }
                Ok(0) | Err(_) => return None,
                Ok(len) => self.bytes.extend_from_slice(&part[..len]),
            }
        }
    }
}
