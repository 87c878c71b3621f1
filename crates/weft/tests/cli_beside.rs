//! `weft cli` beside the real redis-cli: what both print for every shape of a reply, in every format, and for every
//! command that redis-cli treats in a way of its own, byte for byte. A stub answers both with the same bytes.
//!
//! Owns what is compared, and the list of what differs on purpose. Without redis-cli there is nothing to compare with:
//! then the tests say so and pass; `cli.rs` and the unit tests of `output.rs` hold the same in writing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use common::servers::Server;
use common::{Folder, output, stderr, weft};
use nix::pty::openpty;

/// A server that answers HELLO with a map, `SHAPE n` with the n-th reply, SHUTDOWN by ending the connection, and every
/// other command with the first reply.
struct Stub {
    socket: String,
    port: u16,
    replies: Arc<Mutex<Vec<Vec<u8>>>>,
    _folder: Folder,
}

impl Stub {
    /// None where there is no redis-cli to compare with; then the test says so and passes.
    fn new() -> Option<Stub> {
        if !is_there() {
            return None;
        }
        let folder = Folder::new();
        let socket = folder.path("s");
        let replies = Arc::new(Mutex::new(Vec::new()));
        let listener = UnixListener::bind(&socket).unwrap();
        let accept = move || listener.accept().and_then(|(stream, _)| Ok((stream.try_clone()?, stream)));
        listen(accept, &replies);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let accept = move || listener.accept().and_then(|(stream, _)| Ok((stream.try_clone()?, stream)));
        listen(accept, &replies);
        Some(Stub { socket, port, replies, _folder: folder })
    }

    /// From now on `SHAPE n` is answered with the n-th of these, and all else with the first.
    fn answer(&self, replies: &[&[u8]]) {
        *self.replies.lock().unwrap() = replies.iter().map(|reply| reply.to_vec()).collect();
    }

    fn both(&self, flags: &[&str], command: &[&str], input: &[u8]) -> [Shown; 2] {
        both(&self.socket, &[flags, command].concat(), input)
    }

    /// Compares all replies in one format: at once, and, where that differs, one by one.
    fn compare(&self, flags: &[&str], replies: &[&[u8]], tally: &mut Tally) {
        self.answer(replies);
        let lines: String = (0..replies.len()).map(|n| format!("SHAPE {n}\n")).collect();
        let each = replies.iter().enumerate().map(|(index, reply)| {
            let name = format!("{:?}", String::from_utf8_lossy(reply));
            (name, vec!["SHAPE".to_string(), index.to_string()])
        });
        self.compare_lines(flags, &lines, each.collect(), tally);
    }

    /// Compares what lines of standard input bring, and, where that differs, their commands one by one, by their names.
    fn compare_lines(
        &self,
        flags: &[&str],
        lines: &str,
        each: Vec<(String, Vec<String>)>,
        tally: &mut Tally,
    ) {
        tally.compared += each.len();
        let at_once = self.both(flags, &[], lines.as_bytes());
        if at_once[0] == at_once[1] {
            return;
        }
        let before = tally.differ.len();
        for (name, command) in each {
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            tally.note(&format!("{flags:?} {name}"), self.both(flags, &command, b""));
        }
        if tally.differ.len() == before {
            tally.note(&format!("{flags:?}, as lines"), at_once);
        }
    }
}

/// Serves whoever comes, each by a thread.
fn listen<S: Read + Write + Send + 'static>(
    accept: impl Fn() -> std::io::Result<(S, S)> + Send + 'static,
    replies: &Arc<Mutex<Vec<Vec<u8>>>>,
) {
    let replies = Arc::clone(replies);
    std::thread::spawn(move || {
        while let Ok((reader, writer)) = accept() {
            let replies = Arc::clone(&replies);
            std::thread::spawn(move || serve(BufReader::new(reader), writer, &replies));
        }
    });
}

/// redis-cli and `weft cli`, ready to be run against a socket.
fn programs(socket: &str, words: &[&str]) -> [Command; 2] {
    let mut ours = weft();
    ours.arg("cli");
    let mut programs = [Command::new("redis-cli"), ours];
    for program in &mut programs {
        program.args(["-s", socket]).args(words).env_remove("REDISCLI_AUTH");
    }
    programs
}

/// What they print, and their status.
fn both(socket: &str, words: &[&str], input: &[u8]) -> [Shown; 2] {
    programs(socket, words).map(|mut program| {
        let output = output(&mut program, input);
        Shown(String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
    })
}

/// What has been compared, and what of it differs.
#[derive(Default)]
struct Tally {
    compared: usize,
    differ: Vec<String>,
}

impl Tally {
    fn compare(&mut self, what: &str, shown: [Shown; 2]) {
        self.compared += 1;
        self.note(what, shown);
    }

    fn note(&mut self, what: &str, [theirs, ours]: [Shown; 2]) {
        if theirs != ours {
            self.differ.push(format!("{what}\n  redis-cli {theirs:?}\n  weft cli  {ours:?}"));
        }
    }

    fn end(self) {
        let Tally { compared, differ } = self;
        println!("{compared} compared, {} differ", differ.len());
        assert!(differ.is_empty(), "{} of {compared} differ:\n{}", differ.len(), differ.join("\n"));
    }
}

/// What a program printed, and its status.
#[derive(Debug, PartialEq, Eq)]
struct Shown(String, Option<i32>);

fn serve(mut reader: impl BufRead, mut writer: impl Write, replies: &Mutex<Vec<Vec<u8>>>) {
    while let Some(argv) = request(&mut reader) {
        let index = match &argv[..] {
            [name, index] if name == b"SHAPE" => String::from_utf8_lossy(index).parse().unwrap(),
            _ => 0,
        };
        if argv[0].eq_ignore_ascii_case(b"shutdown") {
            return;
        }
        let hello = argv[0].eq_ignore_ascii_case(b"hello");
        let hello = hello.then(|| b"%1\r\n+proto\r\n:3\r\n".to_vec());
        let answer = hello.unwrap_or_else(|| replies.lock().unwrap()[index].clone());
        if writer.write_all(&answer).is_err() || listens(&argv[0]) {
            // What a subscriber is told has an end here, and with it the connection.
            return;
        }
    }
}

fn listens(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(b"subscribe") || name == b"monitor"
}

fn request(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    fn number(reader: &mut impl BufRead) -> Option<usize> {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        line.get(1..)?.trim_end().parse().ok()
    }
    let count = number(reader)?;
    let mut argv = Vec::new();
    for _ in 0..count {
        let mut word = vec![0; number(reader)? + 2];
        reader.read_exact(&mut word).ok()?;
        word.truncate(word.len() - 2);
        argv.push(word);
    }
    Some(argv)
}

/// Whether there is a redis-cli to compare with, of the generation that the tables are for.
fn is_there() -> bool {
    let version = Command::new("redis-cli").arg("--version").output();
    let there = version.is_ok_and(|output| output.stdout.starts_with(b"redis-cli 7."));
    if !there {
        common::skipped::skipped("there is no redis-cli 7");
    }
    there
}

/// Every type and nesting that RESP2 has.
const RESP2: &[&[u8]] = &[
    b"+OK\r\n",
    b"+\r\n",
    b"+with 'quotes' and \\\r\n",
    b"-ERR it is wrong\r\n",
    b"-WRONGTYPE 'q'\r\n",
    b":0\r\n",
    b":-9223372036854775808\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"$0\r\n\r\n",
    b"$5\r\nplain\r\n",
    b"$5\r\nab\\c'\r\n",
    b"$9\r\n\x00\x01\x07\x08\t\n\r\x0b\x0c\r\n",
    b"$5\r\n\x1b\x7f\x80\xfe\xff\r\n",
    b"$6\r\n\xc3\xa9\xe2\x82\xac/\r\n",
    b"$6\r\nline\r\n\r\n",
    b"*0\r\n",
    b"*1\r\n$1\r\na\r\n",
    b"*3\r\n$1\r\na\r\n:1\r\n$-1\r\n",
    b"*2\r\n*0\r\n*-1\r\n",
    b"*2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n*2\r\n:1\r\n:2\r\n",
    b"*11\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n:10\r\n*2\r\n:11\r\n:12\r\n",
    b"*2\r\n+QUEUED\r\n-ERR inside\r\n",
    b"*1\r\n-ERR alone inside\r\n",
];

/// What RESP3 has besides.
const RESP3: &[&[u8]] = &[
    b"_\r\n",
    b"#t\r\n",
    b"#f\r\n",
    b",1.5\r\n",
    b",3\r\n",
    b",-0\r\n",
    b",1e+20\r\n",
    b",17179869184\r\n",
    b"=9\r\ntxt:a'b\nc\r\n",
    b"=4\r\nmkd:\r\n",
    b"%0\r\n",
    b"~0\r\n",
    b"%1\r\n$1\r\nk\r\n$1\r\nv\r\n",
    b"%2\r\n$1\r\nk\r\n%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n:7\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n",
    b"%2\r\n+status\r\n*0\r\n$-1\r\n%0\r\n",
    b"%3\r\n#t\r\n#f\r\n,1.5\r\n_\r\n:12\r\n~1\r\n:1\r\n",
    b"%1\r\n*2\r\n:1\r\n:2\r\n:3\r\n",
    b"%1\r\n=5\r\ntxt:k\r\n=5\r\ntxt:v\r\n",
    b"~2\r\n$1\r\na\r\n~1\r\n$1\r\nb\r\n",
    b"*2\r\n%1\r\n$1\r\nk\r\n*2\r\n:1\r\n:2\r\n~1\r\n%1\r\n:1\r\n:2\r\n",
    b"%10\r\n:1\r\n:1\r\n:2\r\n:2\r\n:3\r\n:3\r\n:4\r\n:4\r\n:5\r\n:5\r\n:6\r\n:6\r\n:7\r\n:7\r\n:8\r\n:8\r\n:9\r\n:9\r\n:10\r\n*2\r\n:1\r\n:2\r\n",
];

/// Texts with a quote: all but `--quoted-json` show them alike.
const QUOTED: &[&[u8]] =
    &[b"+with \"quotes\" and \\\r\n", b"-WRONGTYPE \"q\"\r\n", b"$6\r\na\"b\\c'\r\n", b"*1\r\n$1\r\n\"\r\n"];

/// What JSON has no number for.
const INFINITE: &[&[u8]] = &[b",inf\r\n", b",-inf\r\n"];

/// What differs on purpose, and what it is here; `docs/cli.md` says so. Where redis-cli shows nothing and ends with
/// status 1, it cannot read the type.
const ON_PURPOSE: &[(&str, &[u8], &str, &str)] = &[
    // A double has the fewest digits that read back as the same number, as Weft and Valkey send it; redis-cli shows
    // the digits that came, and Redis 7.0 sends 17.
    ("--no-raw", b",3.1400000000000001\r\n", "(double) 3.1400000000000001\n", "(double) 3.14\n"),
    ("--raw", b",100000000000000000000\r\n", "100000000000000000000\n", "1e+20\n"),
    ("--json", b",1.0000000000000001e-05\r\n", "1.0000000000000001e-05\n", "0.00001\n"),
    // What calls itself JSON is JSON.
    ("--json", b",inf\r\n", "inf\n", "\"inf\"\n"),
    ("--json", b",-inf\r\n", "-inf\n", "\"-inf\"\n"),
    ("--quoted-json", b"$3\r\na\"b\r\n", "\"a\\\\\"b\"\n", "\"a\\\\\\\"b\"\n"),
    ("--no-raw", b",nan\r\n", "", "(double) nan\n"),
    ("--no-raw", b"(-1\r\n", "", "(big number) -1\n"),
    ("--json", b"*1\r\n(12\r\n", "", "[12]\n"),
    ("--json", b"%1\r\n*1\r\n$1\r\na\r\n:1\r\n", "{\"[\"a\"]\":1}\n", "{\"[\\\"a\\\"]\":1}\n"),
];

#[test]
fn what_differs_on_purpose_is_what_the_guide_says() {
    let Some(stub) = Stub::new() else { return };
    for (format, reply, theirs, ours) in ON_PURPOSE {
        stub.answer(&[reply]);
        let shown = stub.both(&["-3", format], &["GET", "k"], b"").map(|shown| shown.0);
        assert_eq!(shown, [*theirs, *ours], "{format} {:?}", String::from_utf8_lossy(reply));
    }
}

const FORMATS: &[&[&str]] = &[
    &["--no-raw"],
    &["--raw"],
    &[],
    &["--csv"],
    &["--json"],
    &["--quoted-json"],
    &["-d", ", "],
    &["-D", "<end>"],
    &["-d", "", "-D", ""],
    &["--csv", "-d", ";", "-D", "!"],
];

#[test]
fn every_reply_in_every_format_is_shown_as_redis_cli_shows_it() {
    let Some(stub) = Stub::new() else { return };
    let mut tally = Tally::default();
    for (protocol, replies) in [("-2", RESP2), ("-3", RESP2), ("-3", RESP3)] {
        for format in FORMATS {
            stub.compare(&[&[protocol][..], format].concat(), replies, &mut tally);
            if *format != ["--quoted-json"] {
                stub.compare(&[&[protocol][..], format].concat(), QUOTED, &mut tally);
            }
            if protocol == "-3" && !format.iter().any(|flag| flag.ends_with("json")) {
                stub.compare(&[&[protocol][..], format].concat(), INFINITE, &mut tally);
            }
        }
    }
    // Of a command line, `-e` gives the error alone to the standard error.
    for (index, reply) in RESP2.iter().chain(QUOTED).enumerate() {
        // What is answered first stands for COMMAND DOCS, which redis-cli asks for.
        stub.answer(&[b"+OK\r\n", reply]);
        let flags = ["-e", ["--raw", "--no-raw"][index % 2]];
        tally.compare(&format!("-e {reply:?}"), stub.both(&flags, &["SHAPE", "1"], b""));
        // As lines it changes what is printed in neither of them; the status differs on purpose.
        let [theirs, ours] = stub.both(&flags, &[], b"SHAPE 1\nSHAPE 1\n");
        let is_error = reply.starts_with(b"-");
        assert_eq!((theirs.1, ours.1), (Some(0), Some(i32::from(is_error))), "{reply:?}");
        tally.compare(&format!("-e {reply:?}, as lines"), [theirs, Shown(ours.0, Some(0))]);
    }
    tally.end();
}

/// An aggregate of these parts: of a map, keys and values by turns.
fn aggregate(kind: char, parts: &[&[u8]]) -> Vec<u8> {
    let count = if kind == '%' { parts.len() / 2 } else { parts.len() };
    [format!("{kind}{count}\r\n").as_bytes(), &parts.concat()].concat()
}

/// Every way in which lists, sets and maps of none, one or two parts lie within each other, so many levels deep. A key
/// that is itself an aggregate stands where `keys` says so: in JSON it differs on purpose.
fn nested(levels: usize, keys: bool) -> Vec<Vec<u8>> {
    let leaf = b"$1\r\na\r\n".to_vec();
    let (mut all, mut inner) = (Vec::new(), vec![leaf.clone()]);
    for _ in 0..levels {
        let mut outer: Vec<Vec<u8>> = vec![aggregate('*', &[]), aggregate('~', &[]), aggregate('%', &[])];
        for part in &inner {
            for kind in ['*', '~'] {
                outer.extend(
                    [vec![part], vec![part, part], vec![&leaf, part], vec![part, &leaf]].map(|parts| {
                        aggregate(kind, &parts.into_iter().map(Vec::as_slice).collect::<Vec<_>>())
                    }),
                );
            }
            outer.extend([aggregate('%', &[&leaf, part]), aggregate('%', &[&leaf, part, &leaf, part])]);
            if keys {
                outer.extend([aggregate('%', &[part, &leaf]), aggregate('%', &[part, part])]);
            }
        }
        outer.sort();
        outer.dedup();
        all.extend(outer.iter().cloned());
        inner = outer;
    }
    all
}

#[test]
fn replies_within_replies_are_shown_as_redis_cli_shows_them() {
    let Some(stub) = Stub::new() else { return };
    let mut tally = Tally::default();
    for (keys, formats) in [(true, &["--no-raw", "--raw", "--csv"][..]), (false, &["--json"])] {
        let replies = nested(3, keys);
        let replies: Vec<&[u8]> = replies.iter().map(Vec::as_slice).collect();
        for format in formats {
            // Of all that differ the first tell enough.
            for replies in replies.chunks(200) {
                // redis-cli asks for COMMAND DOCS, and takes what the first reply is for it.
                let replies = [&[&b"+OK\r\n"[..]], replies].concat();
                if tally.differ.is_empty() {
                    stub.compare(&["-3", format], &replies, &mut tally);
                }
            }
        }
    }
    tally.end();
}

#[test]
fn the_end_that_was_asked_for_is_no_error() {
    let Some(stub) = Stub::new() else { return };
    stub.answer(&[b"+OK\r\n"]);
    for protocol in ["-2", "-3"] {
        for command in [&["SHUTDOWN"][..], &["shutdown", "nosave"], &["shutdown", "nosave", "force"]] {
            let [theirs, ours] = stub.both(&[protocol], command, b"");
            assert_eq!(ours, theirs, "{protocol} {command:?}");
            assert_eq!(ours, Shown(String::new(), Some(0)));
            let lines = format!("PING\n{}\nPING\n", command.join(" "));
            let [theirs, ours] = stub.both(&[protocol], &[], lines.as_bytes());
            assert_eq!(ours, theirs, "{protocol} {lines:?}");
        }
    }
}

#[test]
fn lines_say_more_than_commands_as_redis_cli_has_it() {
    let Some(stub) = Stub::new() else { return };
    stub.answer(&[b"+first\r\n", b"$1\r\na\r\n"]);
    for lines in [
        "3 SHAPE 1\nSHAPE 0\n".to_string(),
        "clear\nSHAPE 1\nCLEAR\n".into(),
        "3\n'2' SHAPE 1\nclear all\n-x SHAPE\n3x SHAPE 1\n".into(),
        format!("connect 127.0.0.1 {}\nSHAPE 1\n", stub.port),
        "connect 127.0.0.1\nquit\nSHAPE 1\n".into(),
        "SHAPE 1\nEXIT\nSHAPE 1\n".into(),
    ] {
        for format in ["--raw", "--no-raw", "--json"] {
            let [theirs, ours] = stub.both(&["-2", format], &[], lines.as_bytes());
            assert_eq!(ours, theirs, "{format} {lines:?}");
        }
    }
}

#[test]
fn pushes_are_shown_where_redis_cli_shows_them() {
    let Some(stub) = Stub::new() else { return };
    let pushes: [&[u8]; 4] = [
        b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n",
        b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\nk\r\n$3\r\nl m\r\n",
        b">2\r\n$10\r\ninvalidate\r\n_\r\n",
        b">2\r\n$6\r\nserver\r\n:1\r\n",
    ];
    for push in pushes {
        stub.answer(&[b"+OK\r\n", &[push, b"+OK\r\n"].concat()]);
        for shown in [&[][..], &["--show-pushes", "yes"], &["--show-pushes", "no"]] {
            for format in ["--no-raw", "--raw", "--csv", "--json"] {
                let flags = [&["-3", format], shown].concat();
                for (command, input) in [(&["SHAPE", "1"][..], ""), (&[], "SHAPE 1\nSHAPE 0\nSHAPE 1\n")] {
                    let [theirs, ours] = stub.both(&flags, command, input.as_bytes());
                    assert_eq!(ours, theirs, "{flags:?} {:?}", String::from_utf8_lossy(push));
                }
            }
        }
    }
}

/// Commands whose reply redis-cli shows as it stands, whatever the format; and, for each, neighbours that are shown as
/// all others are.
const COMMANDS: &[&[&str]] = &[
    &["INFO"],
    &["info", "server"],
    &["LOLWUT"],
    &["LOLWUT", "VERSION", "5"],
    &["CLIENT", "LIST"],
    &["client", "list", "ID", "3"],
    &["CLIENT", "INFO"],
    &["MEMORY", "DOCTOR"],
    &["memory", "malloc-stats"],
    &["LATENCY", "DOCTOR"],
    &["LATENCY", "GRAPH", "command"],
    &["CLUSTER", "INFO"],
    &["CLUSTER", "NODES"],
    &["DEBUG", "HTSTATS", "0"],
    &["DEBUG", "HTSTATS-KEY", "k"],
    &["DEBUG", "CLIENT-EVICTION"],
    &["PROXY", "INFO"],
    &["GET", "INFO"],
    &["MEMORY", "USAGE", "k"],
    &["MEMORY", "DOCTOR", "more"],
    &["CLIENT", "GETNAME"],
    &["CLIENT"],
    &["LATENCY", "DOCTOR", "more"],
    &["LATENCY", "GRAPH"],
    &["LATENCY", "HISTORY", "command"],
    &["CLUSTER", "INFO", "more"],
    &["CLUSTER", "SLOTS"],
    &["CLUSTER", "SHARDS"],
    &["DEBUG", "OBJECT", "k"],
    &["ACL", "LIST"],
    &["CONFIG", "GET", "*"],
    &["COMMAND", "DOCS"],
    &["EVAL", "return 1", "0"],
    &["SCRIPT", "HELP"],
    &["AUTH", "p"],
    &["SELECT", "1"],
    &["MULTI"],
    &["EXEC"],
    &["RESET"],
    &["FUNCTION", "DUMP"],
    &["DUMP", "k"],
];

#[test]
fn commands_that_redis_cli_treats_in_its_own_way_are_treated_so() {
    const REPLIES: &[&[u8]] = &[
        b"$13\r\n# A\r\na:1\r\nb:'\r\n",
        b"=17\r\ntxt:# A\r\na:1\r\nb:'\r\n",
        b"$3\r\nend\r\n",
        b"$0\r\n\r\n",
        b"-ERR no\r\n",
        b"+OK\r\n",
    ];
    let Some(stub) = Stub::new() else { return };
    let mut tally = Tally::default();
    for reply in REPLIES {
        stub.answer(&[reply]);
        for protocol in ["-2", "-3"] {
            for format in [&["--no-raw"][..], &["--raw"], &["--csv"], &["--json"], &["--quoted-json"]] {
                // Each of them alone would take a program's start; a line is treated as a command line is.
                let lines: String = COMMANDS
                    .iter()
                    .map(|command| command.iter().map(|word| format!("'{word}' ")).collect::<String>() + "\n")
                    .collect();
                let flags = [&[protocol][..], format].concat();
                let each = COMMANDS.iter().map(|command| {
                    (format!("{command:?}"), command.iter().map(|word| word.to_string()).collect())
                });
                stub.compare_lines(&flags, &lines, each.collect(), &mut tally);
            }
        }
    }
    tally.end();
}

/// What a server says to who subscribes: confirmations, then messages; over RESP3 as pushes.
fn told(kind: u8, words: &[&[&str]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for words in words {
        bytes.extend(format!("{}{}\r\n", char::from(kind), words.len()).into_bytes());
        for word in *words {
            match word.strip_prefix(':') {
                Some(number) => bytes.extend(format!(":{number}\r\n").into_bytes()),
                None => bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes()),
            }
        }
    }
    bytes
}

#[test]
fn subscribers_and_monitors_are_shown_what_redis_cli_shows() {
    let Some(stub) = Stub::new() else { return };
    let channels: &[&[&str]] = &[
        &["subscribe", "a", ":1"],
        &["subscribe", "b c", ":2"],
        &["message", "a", "it's\tsaid"],
        &["message", "b c", ""],
    ];
    let patterns: &[&[&str]] = &[&["psubscribe", "a*", ":1"], &["pmessage", "a*", "a1", "line\r\n"]];
    let sharded: &[&[&str]] = &[&["ssubscribe", "s", ":1"], &["smessage", "s", "m"]];
    let monitor =
        b"+OK\r\n+1700000000.123456 [0 127.0.0.1:5] \"SET\" \"k\" \"v\"\r\n+1700000001.5 [2 lua] \"GET\" \"k\"\r\n";
    let mut tally = Tally::default();
    for (protocol, kind) in [("-2", b'*'), ("-3", b'>')] {
        let commands: [(&[&str], Vec<u8>); 5] = [
            (&["SUBSCRIBE", "a", "b c"], told(kind, channels)),
            (&["subscribe", "a", "b c"], told(kind, channels)),
            (&["PSUBSCRIBE", "a*"], told(kind, patterns)),
            (&["SSUBSCRIBE", "s"], told(kind, sharded)),
            (&["MONITOR"], monitor.to_vec()),
        ];
        for (command, reply) in commands {
            stub.answer(&[&reply]);
            for format in [&["--no-raw"][..], &["--raw"], &[], &["--csv"], &["--json"], &["--quoted-json"]] {
                if format == ["--quoted-json"] && command == ["MONITOR"] {
                    continue; // a quote in it differs on purpose
                }
                let shown = stub.both(&[&[protocol][..], format].concat(), command, b"");
                tally.compare(&format!("{protocol} {format:?} {command:?}"), shown);
            }
        }
    }
    tally.end();
}

#[test]
fn tools_print_what_redis_cli_prints() {
    if !is_there() {
        return;
    }
    for server in Server::redis(&["--maxmemory-policy", "allkeys-lfu"]).into_iter().chain([Server::weft(&[])])
    {
        // Above what one step of SCAN looks at, and of each type.
        let mut lines: String = (0..40).map(|n| format!("SET string:{n} {}\n", "x".repeat(n))).collect();
        lines += "RPUSH list a b c\nHSET hash f v\nSADD set a b\nZADD zset 1 a\nXADD stream * f v\nSET 'a\\x00b' v\n";
        let both = |flags: &[&str], input: &[u8]| both(&server.socket, flags, input);
        both(&[], lines.as_bytes());
        let commands = b"*2\r\n$3\r\nGET\r\n$4\r\nnone\r\nPING\r\n".repeat(10);
        for flags in [
            &["--scan"][..],
            &["--scan", "--pattern", "*:1*"],
            &["--scan", "--quoted-pattern", "\"a\\x00*\""],
            &["--scan", "--no-raw"],
            &["--scan", "--json"],
            &["--bigkeys"],
            &["--memkeys"],
            &["--memkeys", "--memkeys-samples", "0"],
            &["--bigkeys", "--pattern", "string:*"],
            &["--hotkeys"],
            &["--pipe"],
        ] {
            let [theirs, ours] = both(flags, &commands);
            assert_eq!(ours, theirs, "{flags:?}, RESPB {}", server.respb);
        }
        for format in [&[][..], &["--raw"], &["--no-raw"], &["--csv"], &["--json"], &["--json", "--no-raw"]] {
            let flags = [&["--scan", "--pattern", "*:1*"][..], format].concat();
            let [theirs, ours] = programs(&server.socket, &flags).map(on_a_terminal);
            assert_eq!(ours, theirs, "{flags:?}, on a terminal");
            assert!(ours.contains("string:1"), "{ours}");
        }
    }
}

/// What a program prints on a terminal.
fn on_a_terminal(mut program: Command) -> String {
    let pty = openpty(None, None).unwrap();
    let mut line = File::from(pty.slave);
    let mut child = program.stdin(Stdio::null()).stdout(line.try_clone().unwrap()).spawn().unwrap();
    drop(program);
    // Of a terminal that nobody has open for writing any more the last lines may be lost, so an end is written to it.
    let ending = std::thread::spawn(move || {
        let status = child.wait().unwrap();
        line.write_all(b"\0").unwrap();
        (status, line)
    });
    let mut shown = Vec::new();
    BufReader::new(File::from(pty.master)).read_until(0, &mut shown).unwrap();
    assert_eq!(shown.pop(), Some(0));
    assert!(ending.join().unwrap().0.success());
    String::from_utf8(shown).unwrap()
}

#[test]
fn of_the_flags_that_say_how_a_reply_is_shown_the_last_counts() {
    let Some(stub) = Stub::new() else { return };
    stub.answer(&[b"*2\r\n$1\r\na\r\n$3\r\n\xc3\xa9x\r\n"]);
    let flags = ["--raw", "--no-raw", "--csv", "--json", "--quoted-json"];
    let mut tally = Tally::default();
    for first in flags {
        for last in flags {
            let shown = stub.both(&[first, last], &["LRANGE", "l", "0", "1"], b"");
            tally.compare(&format!("{first} {last}"), shown);
        }
    }
    tally.end();
}

#[test]
fn what_a_handshake_ends_with_is_said_in_redis_clis_words() {
    if !is_there() {
        return;
    }
    let Some(server) = Server::redis(&["--requirepass", "secret"]) else { return };
    for flags in [
        &["-a", "secret", "-n", "99"][..],
        &["-3", "-a", "secret", "-n", "99"],
        &["-a", "wrong"],
        &["-3", "-a", "wrong"],
        &["-3"],
    ] {
        let words = [&["--no-auth-warning"], flags, &["PING"]].concat();
        let [theirs, ours] = programs(&server.socket, &words).map(|mut program| {
            let said = stderr(&output(&mut program, b""));
            said.lines().next().unwrap_or_default().to_string()
        });
        assert!(theirs.contains(" failed: "), "{flags:?}: {theirs}");
        assert_eq!(ours, theirs, "{flags:?}");
    }
}
