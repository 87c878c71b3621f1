//! CONFIG: every name is there, values are checked and kept, several are set together or not at all.

mod support;

use support::{Bench, show};
use weft_engine::config::directive::{Change, Kind};
use weft_engine::config::table::DIRECTIVES;
use weft_engine::config::{Settings, Values};
use weft_engine::reply::Protocol;
use weft_protocol::Reply;

#[test]
fn settings_begin_as_the_table_says() {
    let bench = Bench::new();
    bench.engine.configure(Values::default());
    assert_eq!(format!("{:?}", bench.engine.settings), format!("{:?}", Settings::default()));
}

#[test]
fn get_takes_patterns_names_and_aliases() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    assert_eq!(bench.text(a, "CONFIG GET maxmemory"), "{maxmemory:0}");
    assert_eq!(bench.text(a, "CONFIG GET MaxMemory-Policy nosuch"), "{MaxMemory-Policy:noeviction}");
    assert_eq!(
        bench.text(a, "CONFIG GET hash-max-*-entries timeout"),
        "{hash-max-listpack-entries:512 hash-max-ziplist-entries:512 timeout:0}"
    );
    assert_eq!(bench.text(a, "CONFIG GET nosuch"), "{}");
    let b = bench.connect(Protocol::Resp2);
    assert_eq!(bench.text(b, "CONFIG GET slowlog-*"), "[slowlog-log-slower-than 10000 slowlog-max-len 128]");
    let Reply::Map(all) = bench.one(a, "CONFIG GET *") else { panic!("a map") };
    let names: Vec<String> = all.iter().map(|(name, _)| show(name)).collect();
    assert!(names.is_sorted() && names.len() > 240, "{}", names.len());
    assert!(names.iter().all(|name| name != "watchdog-period"));
    assert_eq!(bench.text(a, "CONFIG GET watchdog-period"), "{watchdog-period:0}");
}

/// The value that CONFIG GET shows is one that CONFIG SET takes and that changes nothing.
#[test]
fn every_default_can_be_set_again() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    for directive in DIRECTIVES.iter().filter(|directive| directive.change == Change::Always) {
        let Reply::Map(pairs) = bench.one(a, &format!("CONFIG GET {}", directive.name)) else { panic!() };
        let value = show(&pairs[0].1);
        let reply =
            bench.run_args(a, &[b"CONFIG", b"SET", directive.name.as_bytes(), value.as_bytes()]).remove(0);
        assert_eq!(show(&reply), "OK", "{} {value:?}", directive.name);
    }
    assert_eq!(format!("{:?}", bench.engine.settings), format!("{:?}", Settings::default()));
}

#[test]
fn values_are_checked() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    let failed = |name: &str, why: &str| {
        format!("-ERR CONFIG SET failed (possibly related to argument '{name}') - {why}")
    };
    for (name, value, why) in [
        (
            "maxmemory",
            "lots",
            "argument must be a memory value: bytes, or a number with k, m, g (powers of 1000), kb, mb, gb or kib, mib, \
             gib (of 1024)",
        ),
        ("maxmemory-samples", "65", "argument must be between 1 and 64 inclusive"),
        ("maxmemory-samples", "x", "argument couldn't be parsed into an integer"),
        ("appendonly", "maybe", "argument must be 'yes' or 'no'"),
        (
            "loglevel",
            "loud",
            "argument(s) must be one of the following: debug, verbose, notice, warning, nothing",
        ),
        ("port", "1", "can't set immutable config"),
        ("dir", "/", "can't set protected config"),
        ("notify-keyspace-events", "?", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
        ("save", "900", "Invalid save parameters"),
        ("strict-reads", "maybe", "argument must be 'yes' or 'no'"),
        (
            "client-output-buffer-limit",
            "normal 0 0",
            "Wrong number of arguments in buffer limit configuration.",
        ),
        (
            "latency-tracking-info-percentiles",
            "101",
            "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]",
        ),
    ] {
        let reply = bench.run_args(a, &[b"CONFIG", b"SET", name.as_bytes(), value.as_bytes()]).remove(0);
        assert_eq!(show(&reply), failed(name, why));
    }
    for (name, value, shown) in [
        ("maxmemory", "100mb", "104857600"),
        ("maxmemory", "1K", "1000"),
        ("appendonly", "NO", "no"),
        ("save", "900 1 60 10000", "900 1 60 10000"),
        ("save", "", ""),
        ("appendfsync", "ALWAYS", "always"),
        ("notify-keyspace-events", "KEA", "AKE"),
        (
            "client-output-buffer-limit",
            "replica 1mb 0 5",
            "normal 0 0 0 slave 1048576 0 5 pubsub 33554432 8388608 60",
        ),
        ("latency-tracking-info-percentiles", "50.00 99.9", "50 99.9"),
        ("shutdown-on-sigterm", "now NOSAVE", "nosave now"),
        ("lua-time-limit", "7", "7"),
    ] {
        let reply = bench.run_args(a, &[b"CONFIG", b"SET", name.as_bytes(), value.as_bytes()]).remove(0);
        assert_eq!(show(&reply), "OK", "{name} {value}");
        assert_eq!(bench.text(a, &format!("CONFIG GET {name}")), format!("{{{name}:{shown}}}"));
    }
    assert_eq!(bench.text(a, "CONFIG GET busy-reply-threshold"), "{busy-reply-threshold:7}");
}

#[test]
fn all_or_none() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    assert_eq!(bench.text(a, "CONFIG SET timeout 5 hz 20"), "OK");
    assert_eq!(bench.text(a, "CONFIG GET timeout hz"), "{hz:20 timeout:5}");
    for wrong in ["CONFIG SET timeout 6 hz x", "CONFIG SET timeout 6 nosuch 1", "CONFIG SET timeout 6 port 1"]
    {
        assert!(bench.text(a, wrong).starts_with("-ERR "), "{wrong}");
        assert_eq!(bench.text(a, "CONFIG GET timeout"), "{timeout:5}", "{wrong}");
    }
    assert_eq!(
        bench.text(a, "CONFIG SET timeout 6 nosuch 1"),
        "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'"
    );
    assert_eq!(
        bench.text(a, "CONFIG SET maxmemroy 1gib"),
        "-ERR Unknown option or number of arguments for CONFIG SET - 'maxmemroy'; is 'maxmemory' meant?"
    );
    for (given, bytes) in [("1gib", 1 << 30), ("2MiB", 2 << 20), ("3kib", 3 << 10), ("4g", 4_000_000_000_u64)]
    {
        assert_eq!(bench.text(a, &format!("CONFIG SET maxmemory {given}")), "OK", "{given}");
        assert_eq!(bench.text(a, "CONFIG GET maxmemory"), format!("{{maxmemory:{bytes}}}"));
    }
    assert_eq!(bench.text(a, "CONFIG SET maxmemory 0"), "OK");
    assert_eq!(
        bench.text(a, "CONFIG SET slowlog-max-len 6 commandlog-slow-execution-max-len 7"),
        "-ERR CONFIG SET failed (possibly related to argument 'commandlog-slow-execution-max-len') - duplicate parameter"
    );
    assert_eq!(bench.text(a, "CONFIG SET timeout 6 hz"), "-ERR syntax error");
    assert_eq!(bench.engine.settings.idle_timeout_s.load(std::sync::atomic::Ordering::Relaxed), 5);
}

#[test]
fn a_hook_can_refuse() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    bench.engine.config.set_hook(Box::new(|directive, value| match directive.name {
        "loglevel" if &*value.text == b"debug" => Err("not today".into()),
        _ => Ok(()),
    }));
    assert_eq!(bench.text(a, "CONFIG SET loglevel verbose"), "OK");
    assert_eq!(
        bench.text(a, "CONFIG SET timeout 9 loglevel debug"),
        "-ERR CONFIG SET failed (possibly related to argument 'loglevel') - not today"
    );
    assert_eq!(bench.text(a, "CONFIG GET timeout loglevel"), "{loglevel:verbose timeout:0}");
    assert_eq!(bench.engine.settings.idle_timeout_s.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn rewrite_needs_a_file() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    assert_eq!(bench.text(a, "CONFIG REWRITE"), "-ERR The server is running without a config file");
    let folder = std::env::temp_dir().join(format!("weft-rewrite-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("weft.conf");
    std::fs::write(&file, "# mine\ntimeout 1\n").unwrap();
    bench.engine.config.set_file(file.clone());
    bench.text(a, "CONFIG SET timeout 3 maxmemory 1gb");
    assert_eq!(bench.text(a, "CONFIG REWRITE"), "OK");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "# mine\ntimeout 3\n# Generated by CONFIG REWRITE\nmaxmemory 1gb\n"
    );
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn help_and_kinds() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    assert!(bench.text(a, "CONFIG HELP").starts_with("[CONFIG <subcommand> [<arg> [value] [opt] ...]."));
    // What a list's parser reads must be marked as a list, or a file's line could not say it.
    for directive in DIRECTIVES.iter() {
        let words = directive.default.split(' ').count();
        assert!(words == 1 || directive.kind.takes_many() || matches!(directive.kind, Kind::Text(_)));
    }
}

/// What TLS is served with is read anew, by SIGHUP, while somebody sets it: what was set last is in force in the end.
#[test]
fn what_is_read_anew_is_not_older_than_what_is_set() {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};

    let engine = support::engine().0;
    let in_force = Arc::new(Mutex::new(Vec::new()));
    let (begun, has_begun): (Sender<()>, Receiver<()>) = channel();
    let (go_on, may_go_on): (Sender<()>, Receiver<()>) = channel();
    let (seen, may_go_on) = (Arc::clone(&in_force), Mutex::new(may_go_on));
    engine.config.set_tls_hook(Box::new(move |values| {
        let asked_for = values.get("tls-auth-clients").str().into_owned();
        let _ = begun.send(());
        let _ = may_go_on.lock().expect("nobody has panicked").recv();
        seen.lock().expect("nobody has panicked").push(asked_for);
        Ok(())
    }));
    std::thread::scope(|scope| {
        let anew = scope.spawn(|| engine.config.follow_tls_again());
        has_begun.recv().expect("it follows");
        let set = scope.spawn(|| engine.set_config(&[(b"tls-auth-clients", b"optional")], false));
        // Both may go on; the one that sets has to wait for the other.
        (0..2).for_each(|_| go_on.send(()).expect("it waits"));
        anew.join().expect("it ends").expect("it can be followed");
        set.join().expect("it ends").expect("it can be set");
    });
    let last = in_force.lock().expect("nobody has panicked").last().cloned();
    assert_eq!(last.as_deref(), Some("optional"));
}
