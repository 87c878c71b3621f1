//! Scripts that take their time: others are told BUSY, and may end them, although one thread drives all workers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::io::{BufRead as _, Read as _};

use common::client::Client;
use common::servers::Server;
use weft_protocol::table::{COMMANDS, CommandSpec};

impl Client {
    /// A list of two bulk strings.
    fn bulk_pair(&mut self) -> (String, String) {
        assert_eq!(self.line(), "*2");
        let [one, two] = [(); 2].map(|()| {
            self.line();
            self.line()
        });
        (one, two)
    }
    /// Asks until a script takes its time: each answer is an event of the server's.
    fn until_busy(&mut self) {
        while !self.ask(&["PING"]).starts_with("-BUSY") {}
    }
    fn until_calm(&mut self) {
        while self.ask(&["PING"]).starts_with("-BUSY") {}
    }
}

fn serve(more: &[&str]) -> Server {
    let mut flags = vec!["--threads", "1", "--busy-reply-threshold", "20"];
    flags.extend_from_slice(more);
    Server::weft(&flags)
}

const KILLED: &str = "-ERR Script killed by user with SCRIPT KILL. script: on @user_script:1.";

#[test]
fn a_script_that_loops_is_killed_on_the_one_thread_that_there_is() {
    let server = serve(&[]);
    let (mut looping, mut other) = (Client::new(&server), Client::new(&server));
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "return string.rep('a', 100000):find('.-.-.-.-b')",
        "local n = redis.call('get', KEYS[1]) while true do n = redis.call('get', KEYS[1]) end",
        "redis.call('keys', '*') while true do end",
        "table.sort({1, 2, 3}, function() while true do end end)",
        "return setmetatable({}, {__index = function() while true do end end}).x",
        "local t = {} for i = 1, 7900 do t[i] = i end while true do local a = unpack(t) end",
    ] {
        looping.send(&["EVAL", script, "1", "key"]);
        looping.send(&["PING"]);
        other.until_busy();
        assert!(other.ask(&["GET", "key"]).starts_with("-BUSY"));
        assert_eq!(other.ask(&["MULTI"]), "+OK");
        assert!(other.ask(&["SET", "key", "1"]).starts_with("-BUSY"));
        assert_eq!(other.ask(&["DISCARD"]), "+OK");
        assert!(other.ask(&["FUNCTION", "KILL"]).starts_with("-BUSY"));
        assert_eq!(other.ask(&["SCRIPT", "KILL"]), "+OK");
        assert_eq!(looping.line(), KILLED, "{script}");
        assert_eq!(looping.line(), "+PONG");
        other.until_calm();
        assert_eq!(other.ask(&["SET", "key", "1"]), "+OK");
    }
}

/// As Valkey 9.1.2 has it: nothing of the keyspace is another one.
#[test]
fn a_script_that_has_told_others_something_can_be_killed() {
    let server = serve(&[]);
    let (mut looping, mut other) = (Client::new(&server), Client::new(&server));
    for tells in ["redis.call('publish', 'c', 'm')", "redis.call('pfcount', 'none')"] {
        looping.send(&["EVAL", &format!("{tells} while true do end"), "0"]);
        other.until_busy();
        assert_eq!(other.ask(&["SCRIPT", "KILL"]), "+OK", "{tells}");
        assert_eq!(looping.line(), KILLED, "{tells}");
        other.until_calm();
    }
}

/// A library whose functions loop, one of them behind a write.
const LOOPING: &str = "#!lua name=looping\n\
    redis.register_function('loops', function() while true do end end) \
    redis.register_function('writes', function(keys) redis.call('set', keys[1], 'x') while true do end end)";
const ONLY_FUNCTION_KILL: &str =
    "-BUSY Valkey is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

#[test]
fn a_function_that_loops_is_ended_by_function_kill_alone() {
    let mut server = serve(&[]);
    let (mut looping, mut other) = (Client::new(&server), Client::new(&server));
    other.send(&["FUNCTION", "LOAD", LOOPING]);
    assert_eq!((other.line(), other.line()), ("$7".into(), "looping".into()));
    looping.send(&["FCALL", "loops", "0"]);
    other.until_busy();
    for command in [&["GET", "key"][..], &["SCRIPT", "KILL"], &["FCALL", "loops", "0"], &["FUNCTION", "LIST"]]
    {
        assert_eq!(other.ask(command), ONLY_FUNCTION_KILL, "{command:?}");
    }
    let stats = other.bulks(&["FUNCTION", "STATS"]);
    assert_eq!(stats[..6], ["running_script", "name", "loops", "command", "FCALL", "loops"], "{stats:?}");
    assert_eq!(other.ask(&["FUNCTION", "KILL"]), "+OK");
    let ended = looping.line();
    assert!(ended.starts_with("-ERR Script killed by user with FUNCTION KILL."), "{ended}");
    other.until_calm();
    // One that has written is taken back, where that is wanted; otherwise only the server's end ends it.
    other.ask(&["SET", "key", "before"]);
    other.ask(&["CONFIG", "SET", "script-kill-undo", "yes"]);
    looping.send(&["FCALL", "writes", "1", "key"]);
    other.until_busy();
    assert_eq!(other.ask(&["FUNCTION", "KILL"]), "+OK");
    let ended = looping.line();
    assert!(ended.starts_with("-ERR Script killed by user with FUNCTION KILL."), "{ended}");
    other.until_calm();
    assert_eq!((other.ask(&["GET", "key"]), other.line()), ("$6".into(), "before".into()));
    other.ask(&["CONFIG", "SET", "script-kill-undo", "no"]);
    looping.send(&["FCALL", "writes", "1", "key"]);
    other.until_busy();
    let refused = other.ask(&["FUNCTION", "KILL"]);
    assert!(refused.starts_with("-UNKILLABLE Sorry the script already executed write commands"), "{refused}");
    other.send(&["SHUTDOWN", "NOSAVE"]);
    server.exit();
}

/// A script that was held back behind a command that waits is left, too, and what its client sends then waits for it.
#[test]
fn what_stands_behind_a_wait_and_takes_long_is_answered_in_order() {
    let server = serve(&[]);
    let (mut looping, mut other) = (Client::new(&server), Client::new(&server));
    for round in 0..2 {
        looping.send(&["BLPOP", "list", "0"]);
        looping.send(&["EVAL", "while true do end", "0"]);
        looping.send(&["ECHO", "before"]);
        while !other.bulks(&["INFO", "clients"])[0].contains("blocked_clients:1") {}
        assert_eq!(other.ask(&["RPUSH", "list", "element"]), ":1");
        assert_eq!(looping.bulk_pair(), ("list".into(), "element".into()), "round {round}");
        other.until_busy();
        looping.send(&["ECHO", "meanwhile"]);
        // The server has had time to read that: it answers others one after the other.
        for _ in 0..3 {
            assert!(other.ask(&["PING"]).starts_with("-BUSY"));
        }
        assert_eq!(other.ask(&["SCRIPT", "KILL"]), "+OK");
        assert_eq!(looping.line(), KILLED);
        for text in ["before", "meanwhile"] {
            assert_eq!((looping.line(), looping.line()), (format!("${}", text.len()), text.into()));
        }
        assert_eq!(looping.ask(&["PING"]), "+PONG");
        other.until_calm();
    }
}

/// Sends a command over HTTP.
fn http(client: &mut Client, command: &str) {
    let head = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", command.len());
    client.write(&[head.as_bytes(), command.as_bytes()].concat());
}
/// The status and the body of the next answer.
fn http_answer(client: &mut Client) -> (u16, String) {
    let status = client.line().split(' ').nth(1).unwrap().parse().unwrap();
    let mut len = 0;
    loop {
        let line = client.line().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            len = value.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; len];
    client.0.read_exact(&mut body).unwrap();
    (status, String::from_utf8(body).unwrap())
}

#[test]
fn a_script_over_http_holds_nobody_up_either() {
    let server = serve(&[]);
    let (mut looping, mut asking, mut other) =
        (Client::new(&server), Client::new(&server), Client::new(&server));
    for script in ["while true do end", "redis.call('set', KEYS[1], 'x') while true do end"] {
        other.ask(&["SET", "key", "before"]);
        other.ask(&["CONFIG", "SET", "script-kill-undo", "yes"]);
        http(&mut looping, &format!(r#"["EVAL","{script}","1","key"]"#));
        // Behind it on the same connection: what comes then waits for its turn.
        http(&mut looping, r#"["GET","key"]"#);
        other.until_busy();
        http(&mut asking, r#"["GET","key"]"#);
        let (status, body) = http_answer(&mut asking);
        assert!(status == 503 && body.contains("BUSY"), "{status} {body}");
        assert_eq!(other.ask(&["SCRIPT", "KILL"]), "+OK");
        let (status, body) = http_answer(&mut looping);
        assert!(status == 400 && body.contains(&KILLED[1..]), "{status} {body}");
        assert_eq!(http_answer(&mut looping), (200, r#"{"result":"before"}"#.to_owned()));
        other.until_calm();
    }
    // As elements of a list, with an error among them, and as the last of a transaction.
    let list =
        r#"[["EVAL","return 1",0],["EVAL","return redis.call('nosuch')",0],["EVAL","return {1,'a'}",0]]"#;
    let refused = "ERR Unknown command called from script script: on @user_script:1.";
    let expected = format!(r#"[{{"result":1}},{{"error":"{refused}"}},{{"result":[1,"a"]}}]"#);
    for path in ["/pipeline", "/multi-exec"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{list}",
            list.len()
        );
        asking.write(head.as_bytes());
        assert_eq!(http_answer(&mut asking), (200, expected.clone()), "{path}");
    }
    // A status follows from the error.
    http(&mut asking, r#"["EVALSHA","ffffffffffffffffffffffffffffffffffffffff",0]"#);
    let (status, body) = http_answer(&mut asking);
    assert!(status == 404 && body.contains("NOSCRIPT"), "{status} {body}");
}

#[test]
fn libraries_go_to_valkey_and_come_back() {
    let Some(valkey) = Server::valkey_9(&[]) else { return };
    let weft = serve(&[]);
    let code = format!(
        "#!lua name=lib\n{}redis.register_function('f', function(keys) return redis.call('incr', keys[1]) end)",
        "-- what compresses well\n".repeat(40)
    );
    for (from, to) in [(&weft, &valkey), (&valkey, &weft)] {
        let (mut from, mut to) = (Client::new(from), Client::new(to));
        from.ask(&["FUNCTION", "FLUSH"]);
        to.ask(&["FUNCTION", "FLUSH"]);
        assert_eq!(from.bulks(&["FUNCTION", "LOAD", &code]), ["lib"]);
        let dump = from.byte_bulks(&["FUNCTION", "DUMP"]).remove(0);
        assert_eq!(to.ask(&[&b"FUNCTION"[..], b"RESTORE", &dump]), "+OK");
        to.ask(&["DEL", "n"]);
        assert_eq!(to.ask(&["FCALL", "f", "1", "n"]), ":1");
        let listed = to.bulks(&["FUNCTION", "LIST", "WITHCODE"]);
        assert_eq!(listed.last(), Some(&code), "the source is the same");
        assert!(to.ask(&[&b"FUNCTION"[..], b"RESTORE", &dump]).contains("already exists"));
        assert_eq!(to.ask(&[&b"FUNCTION"[..], b"RESTORE", &dump, b"FLUSH"]), "+OK");
    }
}

/// What is not asked while a script takes long: it ends the script, the server or the connection, or answers with more
/// than one line of its own; and what Weft says otherwise on purpose (docs/scripts.md).
const NOT_ASKED: [&str; 21] = [
    // Valkey refuses these by its settings.
    "DEBUG",
    "MODULE LOAD",
    "MODULE LOADEX",
    "MODULE UNLOAD",
    // Weft has none: it is no node of a cluster.
    "RESTORE-ASKING",
    "SCRIPT KILL",
    "FUNCTION KILL",
    "SHUTDOWN",
    "QUIT",
    "MONITOR",
    "SYNC",
    "PSYNC",
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "SSUBSCRIBE",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "WATCH",
    "CLIENT REPLY",
    "HELLO",
];

/// The words that call a command with as few arguments as it takes.
fn shortest(spec: &CommandSpec) -> Vec<&'static str> {
    let mut words: Vec<&str> = spec.container.iter().map(|id| id.spec().name).chain([spec.name]).collect();
    words.resize(usize::from(spec.arity.unsigned_abs()).max(words.len()), "1");
    words
}

#[test]
fn every_command_is_answered_as_in_valkey_while_a_script_takes_long() {
    let Some(valkey) = Server::valkey_9(&["--busy-reply-threshold", "20"]) else { return };
    let weft = serve(&[]);
    let [theirs, ours] = [&valkey, &weft].map(|server| {
        let (mut looping, mut other) = (Client::new(server), Client::new(server));
        looping.send(&["EVAL", "while true do end", "0"]);
        other.until_busy();
        let mut all = Vec::new();
        for spec in COMMANDS {
            let words = shortest(spec);
            let name = if spec.container.is_some() { words[..2].join(" ") } else { spec.name.to_owned() };
            if !NOT_ASKED.contains(&&*name) {
                // What a command leaves on its connection goes with it.
                all.push((name, Client::new(server).ask(&words)));
            }
        }
        other.ask(&["SCRIPT", "KILL"]);
        all
    });
    let (mut compared, mut busy, mut different) = (0, 0, Vec::new());
    for ((name, theirs), (_, ours)) in theirs.iter().zip(&ours) {
        if theirs.contains("unknown command") || theirs.contains("unknown subcommand") {
            continue;
        }
        compared += 1;
        let is_busy = theirs.starts_with("-BUSY");
        busy += u32::from(is_busy);
        if is_busy != ours.starts_with("-BUSY") || is_busy && ours != theirs {
            different.push(format!("{name}: {ours}, Valkey: {theirs}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    println!("{compared} commands, {busy} of them are told BUSY");
    assert!(compared > 300 && busy > 300, "{compared} commands, {busy} of them are told BUSY");
}

#[test]
fn a_transaction_that_is_told_busy_is_over() {
    let server = serve(&[]);
    let (mut looping, mut other, mut third) =
        (Client::new(&server), Client::new(&server), Client::new(&server));
    assert_eq!(other.ask(&["WATCH", "watched"]), "+OK");
    assert_eq!(other.ask(&["MULTI"]), "+OK");
    assert_eq!(other.ask(&["SET", "key", "never"]), "+QUEUED");
    looping.send(&["EVAL", "while true do end", "0"]);
    third.until_busy();
    // As in Valkey. Whoever were still in MULTI would have his next commands queued.
    let refused = other.ask(&["EXEC"]);
    assert!(refused.starts_with("-EXECABORT Transaction discarded because of: BUSY"), "{refused}");
    assert_eq!(other.ask(&["PING"]), third.ask(&["PING"]), "nothing is queued");
    assert_eq!(third.ask(&["SCRIPT", "KILL"]), "+OK");
    assert_eq!(looping.line(), KILLED);
    third.until_calm();
    // What was watched then counts no more; what is watched now does.
    assert_eq!(third.ask(&["SET", "watched", "1"]), "+OK");
    for (changed, answer) in [(false, "*1"), (true, "*-1")] {
        assert_eq!(other.ask(&["WATCH", "watched"]), "+OK");
        assert_eq!(other.ask(&["MULTI"]), "+OK");
        assert_eq!(other.ask(&["PING"]), "+QUEUED");
        if changed {
            assert_eq!(third.ask(&["SET", "watched", "2"]), "+OK");
        }
        assert_eq!(other.ask(&["EXEC"]), answer);
        if !changed {
            assert_eq!(other.line(), "+PONG");
        }
    }
    assert_eq!(other.ask(&["EXISTS", "key"]), ":0");
}

#[test]
fn a_script_that_has_written_is_ended_by_shutdown_alone_or_taken_back() {
    let server = serve(&[]);
    let (mut looping, mut other) = (Client::new(&server), Client::new(&server));
    other.ask(&["SET", "key", "before"]);
    other.ask(&["CONFIG", "SET", "script-kill-undo", "yes"]);
    let script = "redis.call('set', KEYS[1], 'x') redis.call('set', 'made', 1) while true do end";
    looping.send(&["EVAL", script, "1", "key"]);
    other.until_busy();
    assert_eq!(other.ask(&["SCRIPT", "KILL"]), "+OK");
    assert_eq!(looping.line(), KILLED);
    other.until_calm();
    assert_eq!((other.ask(&["GET", "key"]), other.line()), ("$6".into(), "before".into()));
    assert_eq!(other.ask(&["EXISTS", "made"]), ":0");
    other.ask(&["CONFIG", "SET", "script-kill-undo", "no"]);
    looping.send(&["EVAL", script, "1", "key"]);
    other.until_busy();
    assert!(other.ask(&["SCRIPT", "KILL"]).starts_with("-UNKILLABLE"));
    // Only NOSAVE gives up what a script is in the middle of.
    for shutdown in [&["SHUTDOWN"][..], &["SHUTDOWN", "SAVE"], &["SHUTDOWN", "NOW", "FORCE"]] {
        assert!(other.ask(shutdown).starts_with("-BUSY"), "{shutdown:?}");
    }
    other.send(&["SHUTDOWN", "NOSAVE"]);
    let mut rest = String::new();
    // The server ends, script or not.
    while looping.0.read_line(&mut rest).unwrap_or(0) > 0 {}
}

/// Writes of every kind of value, which a script does and is killed then.
const WRITES: &str = "local r = redis.call r('SET', 's', 'x') r('SET', 'new', 'x') r('PERSIST', 'fades') \
    r('EXPIRE', 's', '100') r('INCR', 'n') r('LPOP', 'l') r('LMOVE', 'l', 'made', 'LEFT', 'RIGHT') \
    r('LPUSH', 'waited', 'x') r('HDEL', 'h', 'a') r('HEXPIRE', 'h', '50', 'FIELDS', '1', 'b') r('SPOP', 'set') \
    r('SADD', 'set', 'more') r('ZINCRBY', 'z', '5', 'a') r('ZPOPMIN', 'z') r('XADD', 'x', '3-1', 'f', 'v') \
    r('XDEL', 'x', '1-1') r('XREADGROUP', 'GROUP', 'g', 'other', 'STREAMS', 'x', '>') r('XACK', 'x', 'g', '1-1') \
    r('XGROUP', 'CREATE', 'x', 'g2', '0') r('XTRIM', 'x', 'MAXLEN', '0') r('PFADD', 'hll', 'b') \
    r('SETBIT', 'bits', '0', '1') r('APPEND', 'long', 'more') r('RENAME', 's', 'renamed') r('DEL', 'del') \
    r('GETEX', 'fades', 'EX', '5') r('PUBLISH', 'channel', 'said') r('SELECT', '1') r('SET', 'elsewhere', 'x') \
    while true do end";

#[test]
fn all_that_a_killed_script_has_done_is_taken_back() {
    let server = serve(&["--script-kill-undo", "yes", "--notify-keyspace-events", "KEA"]);
    let [mut looping, mut other, mut watching, mut waiting, mut listening] =
        [(); 5].map(|()| Client::new(&server));
    let long = "l".repeat(20_000);
    for command in [
        &["SET", "s", "v"][..],
        &["SET", "fades", "v", "PX", "600000"],
        &["SET", "n", "5"],
        &["RPUSH", "l", "a", "b", "c"],
        &["HSET", "h", "a", "1", "b", "2"],
        &["SADD", "set", "a", "b"],
        &["ZADD", "z", "1", "a", "2", "b"],
        &["XADD", "x", "1-1", "f", "v"],
        &["XADD", "x", "2-1", "f", "v"],
        &["XGROUP", "CREATE", "x", "g", "0"],
        &["PFADD", "hll", "a"],
        &["SETBIT", "bits", "7", "1"],
        &["SET", "long", &long],
        &["SET", "del", "v"],
    ] {
        assert!(!other.ask(command).starts_with('-'), "{command:?}");
        // The rest of the bulk string.
        if command[0] == "XADD" {
            other.line();
        }
    }
    other.byte_bulks(&["XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "x", ">"]);
    let library = format!("#!lua name=l\nredis.register_function('f', function() {WRITES} end)");
    other.byte_bulks(&["FUNCTION", "LOAD", &library]);
    let all = |other: &mut Client| {
        let mut keys = other.bulks(&["KEYS", "*"]);
        keys.sort();
        let of = |key: String| {
            let kept = (other.byte_bulks(&["DUMP", &key]), other.ask(&["PEXPIRETIME", &key]));
            (key, kept)
        };
        keys.into_iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(watching.ask(&["WATCH", "s", "l", "x", "new", "del"]), "+OK");
    waiting.send(&["BLPOP", "waited", "0"]);
    listening.send(&["PSUBSCRIBE", "*"]);
    for _ in 0..6 {
        listening.line();
    }
    while other.bulks(&["INFO", "clients"]).iter().all(|info| !info.contains("blocked_clients:1")) {}
    let before = all(&mut other);
    let changes = |other: &mut Client| {
        let info = other.bulks(&["INFO", "persistence"]).concat();
        info.lines().find(|line| line.starts_with("rdb_changes_since_last_save")).map(str::to_owned)
    };
    let changed = changes(&mut other);
    for (run, kill) in [(&["EVAL", WRITES, "0"][..], "SCRIPT"), (&["FCALL", "f", "0"], "FUNCTION")] {
        looping.send(run);
        other.until_busy();
        assert_eq!(other.ask(&[kill, "KILL"]), "+OK");
        let ended = looping.line();
        assert!(ended.starts_with(&format!("-ERR Script killed by user with {kill} KILL.")), "{ended}");
        other.until_calm();
        assert_eq!(all(&mut other), before, "{kill}");
        assert_eq!(changes(&mut other), changed);
        assert_eq!(
            [other.ask(&["SELECT", "1"]), other.ask(&["DBSIZE"]), other.ask(&["SELECT", "0"])],
            ["+OK", ":0", "+OK"]
        );
    }
    assert_eq!(watching.ask(&["MULTI"]), "+OK");
    assert_eq!(watching.ask(&["PING"]), "+QUEUED");
    assert_eq!([watching.ask(&["EXEC"]), watching.line()], ["*1", "+PONG"]);
    // Nobody was served or told anything: what comes first is of this.
    assert_eq!(other.ask(&["PUBLISH", "channel", "now"]), ":1");
    let told: Vec<String> = (0..9).map(|_| listening.line()).collect();
    assert_eq!(told[8], "now", "{told:?}");
    assert_eq!(other.ask(&["RPUSH", "waited", "served"]), ":1");
    assert_eq!(waiting.bulk_pair(), ("waited".into(), "served".into()));
}

#[test]
fn a_client_that_leaves_while_its_script_runs_does_not_end_it() {
    let server = serve(&[]);
    let mut other = Client::new(&server);
    let mut leaving = Client::new(&server);
    let script = "local t = os.clock() while os.clock() - t < 0.2 do end redis.call('set', KEYS[1], 'done')";
    leaving.send(&["EVAL", script, "1", "key"]);
    other.until_busy();
    drop(leaving);
    other.until_calm();
    assert_eq!((other.ask(&["GET", "key"]), other.line()), ("$4".into(), "done".into()));
}

/// What a script answers, the bytes of a bulk string behind its head.
fn answer(client: &mut Client, command: &str, script: &str) -> String {
    let head = client.ask(&[command, script, "1", "key", "value"]);
    match head.strip_prefix('$') {
        Some("-1") | None => head,
        Some(_) => client.line(),
    }
}

#[test]
fn what_scripts_must_not_do_is_an_error_and_the_server_goes_on() {
    let server = serve(&["--script-memory-limit", "32mb", "--busy-reply-threshold", "0"]);
    let mut client = Client::new(&server);
    let million = 1 << 20;
    let long = format!("return #'{}'", "a".repeat(million));
    let commented = format!("--{}\nreturn 7", " ".repeat(million));
    let nested = format!("return {}1{}", "(".repeat(million), ")".repeat(million));
    let call_itself = "local function f() return 1 + f() end return f()";
    for (script, expected) in [
        (&long[..], ":1048576"),
        (&commented, ":7"),
        (
            &nested,
            "-ERR Error compiling script (new function): user_script:1: chunk has too many syntax levels",
        ),
        ("return string.rep('a', 1e10)", "not enough memory"),
        ("local s = 'a' while true do s = s .. s end", "not enough memory"),
        ("local t = {} while true do t[#t + 1] = {} end", "not enough memory"),
        ("local t = {} while true do t[#t + 1] = #t .. 'x' end", "not enough memory"),
        (call_itself, "stack overflow"),
        ("local function f() return pcall(f) end return tostring(f())", "true"),
        ("return string.gsub('a', '.', function() error('inside') end)", "inside"),
        ("error({})", "-ERR unknown error"),
        ("error({err = 'MINE said'})", "-MINE said"),
        ("error()", "-ERR"),
        ("return 'a\0b'", "a\0b"),
        ("local t = 1 for i = 1, 100 do t = {t} end return #t", ":1"),
        ("local t = 1 for i = 1, 1000 do t = {t} end return cjson.encode(t):sub(1, 3)", "[[["),
        ("local t = 1 for i = 1, 1001 do t = {t} end return cjson.encode(t)", "excessive nesting (1001)"),
        ("return redis.call('NOSUCH')", "-ERR Unknown command called from script"),
        ("return redis.call('BLPOP', KEYS[1], 0)", "*-1"),
        ("return redis.call('XREAD', 'BLOCK', 0, 'STREAMS', KEYS[1], '$')", "*-1"),
        ("return redis.call('SUBSCRIBE', 'c')", "not allowed from script"),
        ("return redis.call('EVAL', 'return 1', 0)", "not allowed from script"),
        ("return redis.call('MULTI')", "not allowed from script"),
        ("return redis.call('WATCH', KEYS[1])", "not allowed from script"),
        ("return redis.call('SHUTDOWN')", "not allowed from script"),
    ] {
        let got = answer(&mut client, "EVAL", script);
        let is_null = expected == "*-1" && got == "$-1";
        assert!(got.contains(expected) || is_null, "{:.80}: {got}", script);
        assert_eq!(client.ask(&["PING"]), "+PONG", "{script:.80}");
    }
    let got = answer(&mut client, "EVAL_RO", "return redis.call('SET', KEYS[1], ARGV[1])");
    assert!(got.contains("-ERR Write commands are not allowed from read-only scripts."), "{got}");
    assert_eq!(client.ask(&["EXISTS", "key"]), ":0");
    // What the scripts took is given back.
    assert_eq!(answer(&mut client, "EVAL", "return #string.rep('a', 10000000)"), ":10000000");
}

/// A field of INFO memory.
fn memory(client: &mut Client, name: &str) -> u64 {
    let info = client.bulks(&["INFO", "memory"]).remove(0);
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.parse().ok());
    value.unwrap()
}

#[test]
fn what_scripts_have_left_goes_with_script_flush() {
    let server = serve(&[]);
    let mut client = Client::new(&server);
    // Garbage that waits to be collected.
    let script = "local all = {} for i = 1, 100000 do all[i] = 'text ' .. i end return #all";
    assert_eq!(client.ask(&["EVAL", script, "0"]), ":100000");
    assert!(memory(&mut client, "used_memory_lua") > 1 << 20);
    assert_eq!(client.ask(&["SCRIPT", "FLUSH"]), "+OK");
    // Each answer is an event of the server's; nobody runs a script.
    while memory(&mut client, "used_memory_lua") > 1 << 20 {}
    assert_eq!(client.ask(&["EVAL", "return 7", "0"]), ":7");
}

/// Clients of two threads that want the key of a script: who waits on the other thread when the time is over is told
/// so, and everybody who comes to that thread is answered.
#[test]
fn a_script_is_ended_by_clients_of_every_thread() {
    let server =
        Server::weft(&["--threads", "2", "--threads-always-active", "yes", "--busy-reply-threshold", "300"]);
    let mut clients: Vec<Client> = (0..8).map(|_| Client::new(&server)).collect();
    let mut scripts: Vec<Client> = (0..4).map(|_| Client::new(&server)).collect();
    assert_eq!(clients[0].ask(&["SET", "key", "before"]), "+OK");
    let wanted = [&["SET", "key", "after"][..], &["FLUSHALL"], &["EVAL", "return 1", "1", "key"]];
    for (round, wants) in wanted.iter().cycle().take(4 * wanted.len()).enumerate() {
        let script = ["while true do end", "redis.call('keys', '*') while true do end"][round % 2];
        let looping = &mut scripts[round % 4];
        looping.send(&["EVAL", script, "1", "key"]);
        // It is told as soon as it has run for a moment, by whoever is on the other thread.
        while !clients[0].bulks(&["FUNCTION", "STATS"]).is_empty() {}
        clients.iter_mut().for_each(|client| client.send(wants));
        for client in &mut clients {
            let told = client.line();
            assert!(told.starts_with("-BUSY"), "{wants:?} beside {script}: {told}");
        }
        let mut new: Vec<Client> = (0..4).map(|_| Client::new(&server)).collect();
        for client in &mut new {
            assert!(client.ask(&["PING"]).starts_with("-BUSY"));
        }
        assert_eq!(new[round % 4].ask(&["SCRIPT", "KILL"]), "+OK");
        assert_eq!(looping.line(), KILLED);
        for client in &mut clients {
            client.until_calm();
            assert_eq!((client.ask(&["GET", "key"]), client.line()), ("$6".into(), "before".into()));
        }
    }
}
