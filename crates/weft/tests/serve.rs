//! `weft serve` from outside: its command line, its file, its log, its end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use common::client::rest;
use common::{Folder, resp, run, stderr, weft};

/// How long to wait for what must come: only a hang takes as long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server that listens on a Unix socket in a folder of its own.
struct Served {
    child: Child,
    log: BufReader<ChildStdout>,
    /// What the log said until it listened.
    said: String,
    socket: String,
}

impl Served {
    /// Starts it and waits until it listens.
    fn new(folder: &Folder, words: &[&str]) -> Self {
        let socket = folder.path("weft.sock");
        let mut command = weft();
        command.arg("serve").args(words).args(["--port", "0", "--threads", "1", "--unixsocket"]).arg(&socket);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("Listening on") {
            assert!(log.read_line(&mut said).unwrap() > 0, "the server has ended");
        }
        Self { child, log, said, socket }
    }
    /// Sends commands on a connection of their own and gives all replies, up to the end of the connection.
    fn ask(&self, commands: &[&[&str]]) -> String {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| resp(command)).collect();
        self.ask_raw(&[bytes, resp(&["QUIT"])].concat())
    }
    /// The same for bytes that make the server close the connection.
    fn ask_raw(&self, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.write_all(bytes).unwrap();
        rest(stream)
    }
    /// Ends it by SHUTDOWN and gives the rest of its log.
    fn end(mut self) -> String {
        self.ask(&[&["SHUTDOWN", "NOSAVE"]]);
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        assert!(self.child.wait().unwrap().success());
        log
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended already, or the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_file_is_read_and_written() {
    let folder = Folder::new();
    let file = folder.path("weft.conf");
    std::fs::write(&file, "# mine\nmaxmemory 100mb\nuser ann on >secret ~* +@all\n").unwrap();
    let served = Served::new(&folder, &[&file, "--timeout", "7"]);
    let replies = served.ask(&[
        &["CONFIG", "GET", "maxmemory", "timeout"],
        &["AUTH", "ann", "secret"],
        &["CONFIG", "SET", "hz", "20", "loglevel", "verbose"],
        &["CONFIG", "REWRITE"],
        &["INFO", "server"],
    ]);
    assert!(replies.starts_with(
        "*4\r\n$9\r\nmaxmemory\r\n$9\r\n104857600\r\n$7\r\ntimeout\r\n$1\r\n7\r\n+OK\r\n+OK\r\n+OK\r\n"
    ));
    assert!(replies.contains("\r\nserver_name:weft\r\n") && replies.contains("listener0:name=unix,bind="));
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# mine\nmaxmemory 100mb\nuser ann on >secret ~* +@all\n"), "{written}");
    assert!(written.contains("\nhz 20\n") && written.contains("\nloglevel verbose\n"), "{written}");
    assert!(served.end().contains("Weft has stopped"));
}

/// CONFIG REWRITE keeps users where there is no ACL file, as ACL SAVE's error says. A line that is true stays as it was
/// written, what an included file says is left to it.
#[test]
fn config_rewrite_writes_users() {
    let folder = Folder::new();
    let part = folder.file("part.conf", b"user far on >away ~far:*\n");
    let ann = "# mine\nuser ann on >secret ~* +@all\n";
    let old = format!("{ann}user Bob on >x ~b\n# gone\nuser gone on >y\ninclude {part}\n");
    let file = folder.file("weft.conf", old.as_bytes());
    let served = Served::new(&folder, &[&file]);
    let quotes = "~a\"b'c\\\\#";
    let replies = served.ask(&[
        &["ACL", "SETUSER", "Bob", "~c"],
        &["ACL", "DELUSER", "gone"],
        &["ACL", "SETUSER", "we\"ird", "on", "nopass", quotes, "(~d +get)"],
        &["ACL", "SETUSER", "far", "~near"],
        &["CONFIG", "SET", "requirepass", "word"],
        &["CONFIG", "REWRITE"],
    ]);
    assert_eq!(replies, "+OK\r\n:1\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
    let list: &[&[&str]] = &[&["AUTH", "word"], &["ACL", "LIST"]];
    let before = served.ask(list);
    served.ask(&[&["AUTH", "word"], &["SHUTDOWN", "NOSAVE"]]);
    drop(served);
    let written = std::fs::read_to_string(&file).unwrap();
    let x = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let kept =
        format!("{ann}user Bob on #{x} ~b ~c resetchannels -@all\n# gone\ninclude {part}\n# Generated");
    assert!(written.starts_with(&kept), "{written}");
    let weird =
        r#"user "we\"ird" on nopass "~a\"b'c\\\\#" resetchannels -@all (~d resetchannels -@all +get)"#;
    assert!(written.ends_with(&format!("{weird}\n")), "{written}");

    let served = Served::new(&folder, &[&file]);
    let far = before.replace(" ~near", "").replace("$110\r\nuser far", "$104\r\nuser far");
    assert_eq!(served.ask(list), far);
    served.ask(&[list[0], &["ACL", "SETUSER", "default", "-flushall"], &["CONFIG", "REWRITE"]]);
    let again = std::fs::read_to_string(&file).unwrap();
    let default = again.strip_prefix(&written).unwrap();
    assert!(
        default.starts_with("user default on #") && default.ends_with(" ~* &* +@all -flushall\n"),
        "{again}"
    );
    served.ask(&[list[0], &["SHUTDOWN", "NOSAVE"]]);
}

#[test]
fn a_password_and_limits_hold_for_connections() {
    let folder = Folder::new();
    let served = Served::new(&folder, &["--requirepass", "secret", "--client-query-buffer-limit", "1mb"]);
    let value = "x".repeat(2 << 20);
    let begun = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2097152\r\n";
    let commands = [resp(&["PING"]), resp(&["AUTH", "secret"]), resp(&["PING"]), begun.to_vec()].concat();
    let replies = served.ask_raw(&commands);
    let expected = "-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n-ERR Protocol error";
    assert!(replies.starts_with(expected), "{replies}");
    served.ask(&[
        &["AUTH", "secret"],
        &["CONFIG", "SET", "requirepass", "", "client-query-buffer-limit", "1gb"],
    ]);
    assert_eq!(served.ask(&[&["SET", "k", &value], &["STRLEN", "k"]]), "+OK\r\n:2097152\r\n+OK\r\n");
    let traffic = served.ask(&[&["INFO", "stats"]]);
    let bytes_in = traffic.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:")).unwrap();
    assert!(bytes_in.parse::<u64>().unwrap() > 2 << 20, "{bytes_in}");
}

#[test]
fn what_is_wrong_is_said_before_anything_starts() {
    let folder = Folder::new();
    let file = folder.path("weft.conf");
    std::fs::write(&file, "port 7000\nmaxmemroy 1gb\n").unwrap();
    for (words, expected) in [
        (vec!["serve", &file], "weft.conf:2: there is no directive 'maxmemroy'; is 'maxmemory' meant?"),
        (vec!["serve", "--appendonly", "maybe"], "argument must be 'yes' or 'no'"),
        (vec!["serve", "--port"], "weft serve: --port: needs a value behind it"),
    ] {
        let output = run(&words, b"");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    let help = run(&["serve", "--help"], b"");
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(
        help.status.success() && text.contains("--maxmemory-policy") && text.contains("[noeviction]"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 120), "a line of the help is too long");
}

#[test]
fn the_log_has_three_formats() {
    for (format, expected) in [
        ("legacy", " * Weft has stopped\n"),
        ("logfmt", " level=notice message=\"Weft has stopped\"\n"),
        ("json", ",\"level\":\"notice\",\"message\":\"Weft has stopped\"}\n"),
    ] {
        let folder = Folder::new();
        let log = Served::new(&folder, &["--log-format", format]).end();
        assert!(log.ends_with(expected), "{log}");
    }
}

/// What Debian's redis.conf (7.0) sets, besides folders and the port.
const DEBIAN: &str = "\
protected-mode yes
tcp-backlog 511
timeout 0
tcp-keepalive 300
daemonize yes
loglevel notice
databases 16
always-show-logo no
set-proc-title yes
proc-title-template \"{title} {listen-addr} {server-mode}\"
stop-writes-on-bgsave-error yes
rdbcompression yes
rdbchecksum yes
dbfilename dump.rdb
rdb-del-sync-files no
replica-serve-stale-data yes
replica-read-only yes
repl-diskless-sync yes
repl-diskless-sync-delay 5
repl-diskless-sync-max-replicas 0
repl-diskless-load disabled
repl-disable-tcp-nodelay no
replica-priority 100
acllog-max-len 128
lazyfree-lazy-eviction no
lazyfree-lazy-expire no
lazyfree-lazy-server-del no
replica-lazy-flush no
lazyfree-lazy-user-del no
lazyfree-lazy-user-flush no
oom-score-adj no
oom-score-adj-values 0 200 800
disable-thp yes
appendonly no
appendfilename \"appendonly.aof\"
appenddirname \"appendonlydir\"
appendfsync everysec
no-appendfsync-on-rewrite no
auto-aof-rewrite-percentage 100
auto-aof-rewrite-min-size 64mb
aof-load-truncated yes
aof-use-rdb-preamble yes
aof-timestamp-enabled no
slowlog-log-slower-than 10000
slowlog-max-len 128
latency-monitor-threshold 0
notify-keyspace-events \"\"
hash-max-listpack-entries 512
hash-max-listpack-value 64
list-max-listpack-size -2
list-compress-depth 0
set-max-intset-entries 512
zset-max-listpack-entries 128
zset-max-listpack-value 64
hll-sparse-max-bytes 3000
stream-node-max-bytes 4096
stream-node-max-entries 100
activerehashing yes
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit replica 256mb 64mb 60
client-output-buffer-limit pubsub 32mb 8mb 60
hz 10
dynamic-hz yes
aof-rewrite-incremental-fsync yes
rdb-save-incremental-fsync yes
jemalloc-bg-thread yes
";

#[test]
fn debians_file_starts_with_one_hint_and_nothing_is_kept() {
    let folder = Folder::new();
    let log_file = folder.path("log");
    let file = folder.file("redis.conf", format!("{DEBIAN}logfile {log_file}\n").as_bytes());
    // The log is read from the process's output: the flag wins over the file.
    let served = Served::new(&folder, &[&file, "--logfile", ""]);
    let before = served.said.clone();
    let warnings: Vec<&str> = before.lines().filter(|line| line.contains(" # ")).collect();
    assert!(
        matches!(warnings[..], [one] if one.contains("daemonize yes: Weft stays in the foreground")),
        "{before}"
    );
    assert!(before.contains("Keys live in memory alone"), "{before}");
    served.ask(&[&["SET", "a", "1"], &["SELECT", "9"], &["SET", "b", "2"]]);
    let after = served.end();
    assert!(after.contains("with this process, 2 of them"), "{after}");
    assert!(!std::path::Path::new(&log_file).exists());
}

fn terminate(child: &Child) {
    let id = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
}

#[test]
fn sigterm_between_listening_and_serving_leaves_no_file() {
    let folder = Folder::new();
    let (socket, pidfile) = (folder.path("s"), folder.path("pid"));
    // The server writes its pidfile behind listening, and waits there until somebody reads this one.
    assert!(Command::new("mkfifo").arg(&pidfile).status().unwrap().success());
    let words = ["serve", "--port", "0", "--threads", "1", "--save", "", "--unixsocket", &socket];
    let mut child = weft().args(words).args(["--pidfile", &pidfile]).stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while UnixStream::connect(&socket).is_err() {
        assert!(begun.elapsed() < PATIENCE && child.try_wait().unwrap().is_none(), "it does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    terminate(&child);
    // Without waiting for a writer: if the signal has ended the process, there is none.
    let nonblocking = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let reader = OpenOptions::new().read(true).custom_flags(nonblocking).open(&pidfile).unwrap();
    let status = child.wait().unwrap();
    drop(reader);
    assert!(status.success(), "{status}");
    assert!(!fs::exists(&pidfile).unwrap() && !fs::exists(&socket).unwrap());
}

#[test]
fn sigterm_says_that_nothing_is_kept_and_try_it_fits_the_password() {
    let folder = Folder::new();
    let file = folder.file("weft.conf", b"appendonly yes\nsave 900 1\n");
    let socket = folder.path("s");
    let flags = ["--appendonly", "no", "--save", "", "--port", "0", "--unixsocket", &socket];
    let mut child = weft().arg("serve").arg(&file).args(flags).stdout(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("Listening on") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "the server has ended");
    }
    let reply = run(&["cli", "-s", &socket, "SET", "k", "v"], b"");
    assert_eq!(reply.stdout, b"OK\n");
    terminate(&child);
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(rest.contains("with this process, 1 of them"), "{rest}");
    for (flags, wanted) in
        [(&[][..], "redis-cli -p"), (&["--requirepass", "x"], "--askpass set greeting hello")]
    {
        // A port that is free now: whoever takes it meanwhile makes the start fail, and the next one is tried.
        let said = (0..20).find_map(|_| {
            let port =
                std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
            let mut child = weft()
                .args(["serve", "--bind", "127.0.0.1", "--port", &port])
                .args(flags)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
            let said = lines.into_iter().find(|line| line.contains("Try it: "));
            child.kill().unwrap();
            child.wait().unwrap();
            said
        });
        assert!(said.as_ref().is_some_and(|said| said.contains(wanted)), "{said:?}");
        assert_eq!(said.unwrap().contains("--askpass"), !flags.is_empty());
    }
}
