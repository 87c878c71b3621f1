//! What a client may say of itself, ask about others, and do to them: HELLO, AUTH, RESET, CLIENT, COMMAND.

mod support;

use support::{ALL, Bench, show};
use weft_engine::blocking::End;
use weft_engine::mailbox::Kill;
use weft_engine::reply::Protocol;
use weft_engine::session::Then;
use weft_protocol::Reply;
use weft_protocol::table::{TABLE_HASH, TABLE_VERSION};

/// The value of a field of a map, or of an array of pairs.
fn field(reply: &Reply, name: &str) -> String {
    let is = |key: &Reply| show(key) == name;
    match reply {
        Reply::Map(pairs) => pairs.iter().find(|(key, _)| is(key)).map(|(_, value)| show(value)),
        Reply::Array(items) => items.chunks(2).find(|pair| is(&pair[0])).map(|pair| show(&pair[1])),
        _ => None,
    }
    .unwrap_or_else(|| panic!("no {name} in {}", show(reply)))
}

#[test]
fn hello_tells_who_is_there_and_changes_the_protocol() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    let reply = bench.one(a, "HELLO");
    assert!(matches!(reply, Reply::Array(_)));
    assert_eq!((field(&reply, "server"), field(&reply, "version")), ("redis".into(), "7.4.0".into()));
    let reply = bench.one(a, "HELLO 3 SETNAME tester");
    assert!(matches!(reply, Reply::Map(_)));
    assert_eq!((field(&reply, "proto"), field(&reply, "mode")), ("3".into(), "standalone".into()));
    assert_eq!(bench.text(a, "CLIENT GETNAME"), "tester");
    assert!(matches!(bench.one(a, "HELLO 2"), Reply::Array(_)));
    for (command, expected) in [
        ("HELLO 4", "-NOPROTO unsupported protocol version"),
        ("HELLO x", "-ERR Protocol version is not an integer or out of range"),
        ("HELLO 3 AUTH a", "-ERR Syntax error in HELLO option 'AUTH'"),
        ("HELLO 2 PROTO respb", "-ERR Syntax error in HELLO option 'PROTO'"),
        ("HELLO 3 PROTO foo", "-ERR Syntax error in HELLO option 'PROTO'"),
        ("HELLO 3 CAPS x", "-ERR CAPS is not an integer or out of range"),
        ("HELLO 3 AUTH a b", "-WRONGPASS invalid username-password pair or user is disabled."),
    ] {
        assert_eq!(bench.text(a, command), expected);
        assert_eq!(bench.session(a).wire.protocol, Protocol::Resp2, "{command}");
    }
}

#[test]
fn hello_leads_to_respb() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.text(a, "MULTI");
    let refused = bench.text(a, "HELLO 3 PROTO respb");
    assert!(refused.starts_with("-ERR HELLO with PROTO"), "{refused}");
    bench.text(a, "DISCARD");
    assert_eq!(bench.session(a).then, Then::GoOn);
    let reply = bench.one(a, "HELLO 3 PROTO RESPB CAPS 255");
    let Reply::Map(pairs) = &reply else { panic!("{reply:?}") };
    let respb = &pairs.iter().find(|(key, _)| show(key) == "respb").expect("an entry").1;
    assert_eq!((field(respb, "version"), field(respb, "capabilities")), ("1".into(), "1".into()));
    assert!(
        field(respb, "limits").contains("channels:65536 unauthenticated_channels:16 queue_bytes:1048576")
    );
    assert_eq!(bench.session(a).then, Then::SwitchToRespb);
    let b = bench.connect(Protocol::Respb);
    let reply = bench.one(b, "HELLO 3 PROTO respb");
    assert_eq!(field(&reply, "proto"), "3");
    assert!(field(&reply, "respb").contains("capabilities:0"));
    assert!(field(&reply, "respb").contains("profiles:[channels typed flow cancel passthrough]"));
    let table = format!("table:{{name:weft version:{TABLE_VERSION} hash:{TABLE_HASH}}}");
    assert!(field(&reply, "respb").contains(&table), "{}", field(&reply, "respb"));
    // The first HELLO has fixed what the client can.
    assert!(field(&bench.one(b, "HELLO 3 CAPS 1"), "respb").contains("capabilities:0"));
    assert_eq!(bench.session(b).then, Then::GoOn);
    assert_eq!(bench.text(b, "HELLO 2"), "-NOPROTO unsupported protocol version");
}

#[test]
fn a_password_is_asked_for_once_there_is_one() {
    for protocol in ALL {
        let (mut bench, early) = Bench::with(protocol);
        assert!(bench.text(early, "AUTH x").starts_with("-ERR AUTH <password> called without any password"));
        assert_eq!(bench.text(early, "AUTH default x"), "OK");
        bench.engine.set_default_password(Some(b"secret"));
        assert_eq!(bench.text(early, "GET k"), "nil");
        let a = bench.connect(protocol);
        assert_eq!(bench.text(a, "GET k"), "-NOAUTH Authentication required.");
        assert_eq!(bench.text(a, "PING"), "-NOAUTH Authentication required.");
        for nothing in ["NOSUCH", "GET", "CONFIG", "CONFIG NOSUCH", "COMMAND DOCS"] {
            assert_eq!(bench.text(a, nothing), "-NOAUTH Authentication required.", "{nothing}");
        }
        assert_eq!(bench.text(a, "AUTH"), "-ERR wrong number of arguments for 'auth' command");
        assert!(bench.text(a, "HELLO 3").starts_with("-NOAUTH HELLO must be called"));
        let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
        assert_eq!(bench.text(a, "AUTH wrong"), wrong);
        assert_eq!(bench.text(a, "AUTH nobody secret"), wrong);
        assert_eq!(bench.text(a, "AUTH a b c"), "-ERR syntax error");
        assert_eq!(bench.text(a, "AUTH secret"), "OK");
        assert_eq!(bench.text(a, "GET k"), "nil");
        assert_eq!(bench.text(a, "RESET"), "RESET");
        assert_eq!(bench.text(a, "GET k"), "-NOAUTH Authentication required.");
        bench.one(a, "HELLO 3 AUTH default secret");
        assert_eq!(bench.text(a, "GET k"), "nil");
        let b = bench.connect(protocol);
        bench.engine.set_default_password(None);
        assert_eq!(bench.text(b, "GET k"), "nil");
    }
}

#[test]
fn reset_makes_a_client_like_new() {
    for protocol in ALL {
        let (mut bench, a) = Bench::with(protocol);
        for command in
            ["SELECT 3", "CLIENT SETNAME me", "CLIENT NO-TOUCH on", "WATCH k", "SUBSCRIBE x", "RESET"]
        {
            bench.run(a, command);
        }
        let expected = if protocol == Protocol::Respb { Protocol::Respb } else { Protocol::Resp2 };
        assert_eq!(bench.session(a).wire.protocol, expected);
        let info = bench.text(a, "CLIENT INFO");
        assert!(info.contains(" name= ") && info.contains(" flags=N ") && info.contains(" db=0 "), "{info}");
        assert!(info.contains(" sub=0 ") && info.contains(" watch=0 "), "{info}");
        bench.text(a, "MULTI");
        bench.text(a, "SET k v");
        assert_eq!(bench.text(a, "RESET"), "RESET");
        assert_eq!(bench.text(a, "EXEC"), "-ERR EXEC without MULTI");
    }
}

/// As from Valkey: what is queued, and what is refused, is what a client did last.
#[test]
fn a_line_of_client_list_tells_of_requests_that_did_not_run() {
    for protocol in ALL {
        let (mut bench, [a, b]) = Bench::with_clients([protocol; 2]);
        bench.text(a, "PING");
        for (request, command) in [
            ("NOSUCH", "NULL"),
            ("GET", "get"),
            ("CONFIG NOSUCH", "NULL"),
            ("MULTI", "multi"),
            ("SET k v", "set"),
            ("EXEC", "exec"),
        ] {
            bench.pass(5000);
            bench.text(a, request);
            bench.pass(1000);
            let line = bench.text(b, "CLIENT LIST ID 1");
            assert!(
                line.contains(" idle=1 ") && line.contains(&format!(" cmd={command} ")),
                "{request}: {line}"
            );
        }
    }
}

#[test]
fn a_line_of_client_list_has_the_fields_of_valkey() {
    for protocol in ALL {
        let (mut bench, a) = Bench::with(protocol);
        bench.text(a, "CLIENT SETINFO LIB-NAME lib(x)");
        bench.text(a, "CLIENT SETINFO lib-ver 1.2");
        bench.text(a, "CLIENT CAPA foo redirect");
        let line = bench.text(a, "CLIENT INFO");
        let names: Vec<&str> = line.split_whitespace().filter_map(|part| part.split('=').next()).collect();
        let expected = "id addr laddr fd name age idle flags capa db sub psub ssub multi watch qbuf qbuf-free \
                        argv-mem multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp lib-name lib-ver \
                        tot-net-in tot-net-out tot-cmds";
        let more = if protocol == Protocol::Respb { " channel" } else { "" };
        assert_eq!(names.join(" "), format!("{expected}{more}"));
        assert!(line.starts_with("id=1 addr=10.0.0.0:5000 laddr=10.0.0.99:6379 fd="), "{line}");
        assert!(line.contains(" capa=r ") && line.contains(" lib-name=lib(x) lib-ver=1.2 "), "{line}");
        assert!(line.contains(" cmd=client|info user=default redir=-1 "), "{line}");
        assert_eq!(bench.text(a, "CLIENT ID"), "1");
        assert_eq!(bench.text(a, "CLIENT SETINFO FOO x"), "-ERR Unrecognized option 'FOO'");
        let spaces = bench.run_args(a, &[b"CLIENT", b"SETNAME", b"a b"]);
        let expected = "-ERR Client names cannot contain spaces, newlines or special characters.";
        assert_eq!(show(&spaces[0]), expected);
        let unknown = "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.";
        assert_eq!(bench.text(a, "CLIENT MAINT_NOTIFICATIONS on"), unknown);
    }
}

#[test]
fn filters_pick_clients() {
    let (mut bench, [a, b, c]) = Bench::with_clients([Protocol::Resp2, Protocol::Resp3, Protocol::Respb]);
    bench.text(b, "CLIENT SETNAME bee");
    bench.text(b, "SELECT 2");
    bench.text(b, "CLIENT SETINFO LIB-NAME lib");
    bench.text(b, "CLIENT CAPA redirect");
    bench.run(c, "SUBSCRIBE x");
    bench.clock.advance(5000);
    let mut ids = |filter: &str| {
        let text = bench.text(a, &format!("CLIENT LIST {filter}"));
        let lines = text.lines().filter_map(|line| line.strip_prefix("id=")?.split(' ').next());
        lines.collect::<Vec<_>>().join(" ")
    };
    for (filter, expected) in [
        ("ID 1 2 9", "1 2"),
        ("ID 1 ID 2", "1 2"),
        ("NOT-ID 1", "2 3"),
        ("TYPE pubsub", "3"),
        ("TYPE replica", ""),
        ("NOT-TYPE pubsub", "1 2"),
        ("ADDR 10.0.0.1:5000", "2"),
        ("NOT-ADDR 10.0.0.1:5000", "1 3"),
        ("LADDR 10.0.0.99:6379 SKIPME yes", "2 3"),
        ("USER default", "1 2 3"),
        ("NAME bee", "2"),
        ("NOT-NAME bee", "1 3"),
        ("LIB-NAME lib", "2"),
        ("NOT-LIB-NAME lib", "1 3"),
        ("DB 2", "2"),
        ("NOT-DB 2", "1 3"),
        ("CAPA r", "2"),
        ("IP 10.0.0.2", "3"),
        ("NOT-IP 10.0.0.2", "1 2"),
        ("FLAGS P", "3"),
        ("FLAGS N", "1 2"),
        ("FLAGS S", ""),
        ("NOT-FLAGS P", "1 2"),
        ("MAXAGE 5", "1 2 3"),
        ("MAXAGE 6", ""),
        ("IDLE 5", "2 3"),
        ("IDLE 5 TYPE normal", "2"),
    ] {
        assert_eq!(ids(filter), expected, "{filter}");
    }
    for (filter, expected) in [
        ("ID", "-ERR syntax error"),
        ("ID 0", "-ERR syntax error"),
        ("ID 1 0", "-ERR client-id should be greater than 0"),
        ("TYPE foo", "-ERR Unknown client type 'foo'"),
        ("USER foo", "-ERR No such user 'foo'"),
        ("MAXAGE 0", "-ERR maxage should be greater than 0"),
        ("MAXAGE x", "-ERR maxage is not an integer or out of range"),
        ("FLAGS Z", "-ERR Unknown flags found in the provided filter: Z"),
        ("NOT-FLAGS Z", "-ERR Unknown flags found in the NOT-FLAGS filter: Z"),
        ("DB 99", "-ERR DB number should be between 0 and 15"),
        ("CAPA z", "-ERR Unknown capa found in the provided filter: z"),
        ("NOT-MAXAGE 1", "-ERR syntax error"),
    ] {
        let text = bench.text(a, &format!("CLIENT LIST {filter}"));
        if filter == "ID 0" {
            assert_eq!(text, "-ERR client-id should be greater than 0");
        } else {
            assert_eq!(text, expected, "{filter}");
        }
    }
}

#[test]
fn clients_are_closed_by_others_and_by_themselves() {
    for protocol in ALL {
        let (mut bench, [a, b]) = Bench::with_clients([protocol; 2]);
        assert_eq!(bench.text(a, "CLIENT KILL 1.2.3.4:5"), "-ERR No such client");
        assert_eq!(bench.text(a, "CLIENT KILL ID 99"), "0");
        assert_eq!(bench.text(a, "CLIENT KILL TYPE normal"), "1");
        assert_eq!(std::mem::take(&mut bench.killed), [(b, Kill::Command)]);
        assert_eq!(bench.text(a, "CLIENT LIST").lines().count(), 1);
        assert_eq!(bench.text(a, "CLIENT KILL TYPE normal"), "0");
        assert_eq!(bench.session(a).then, Then::GoOn);
        assert_eq!(bench.text(a, "CLIENT KILL 10.0.0.0:5000"), "OK");
        assert_eq!(bench.session(a).then, Then::Killed);
        assert!(bench.killed.is_empty(), "{:?}", bench.killed);
    }
}

#[test]
fn replies_are_switched_off() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let (mut bench, a) = Bench::with(protocol);
        assert!(bench.run(a, "CLIENT REPLY SKIP").is_empty());
        assert!(bench.run(a, "PING").is_empty());
        assert_eq!(bench.text(a, "PING"), "PONG");
        assert!(bench.run(a, "CLIENT REPLY off").is_empty());
        assert!(bench.run(a, "PING").is_empty());
        assert_eq!(bench.text(a, "CLIENT REPLY on"), "OK");
        assert_eq!(bench.text(a, "CLIENT REPLY x"), "-ERR syntax error");
    }
    let (mut bench, a) = Bench::with(Protocol::Respb);
    assert_eq!(bench.text(a, "CLIENT REPLY OFF"), "-ERR CLIENT REPLY is not available over RESPB");
}

/// What waits is answered later: that is the reply which is skipped, and none that comes before or behind it.
#[test]
fn replies_of_what_waits_are_skipped_too() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let (mut bench, [waits, writes]) = Bench::with_clients([protocol; 2]);
        let blocks = [
            ("BLPOP l 0", "RPUSH l x"),
            ("BLMOVE l m LEFT LEFT 0", "RPUSH l x"),
            ("BZPOPMIN z 0", "ZADD z 1 x"),
            ("XREAD BLOCK 0 STREAMS s $", "XADD s * f v"),
        ];
        for (command, write) in blocks {
            assert!(bench.run(waits, "CLIENT REPLY SKIP").is_empty());
            assert!(bench.run(waits, command).is_empty());
            bench.text(writes, write);
            assert!(bench.hear(waits).is_empty(), "{command}");
            assert_eq!(bench.text(waits, "ECHO next"), "next", "{command}");
        }
        assert!(bench.run(waits, "CLIENT REPLY OFF").is_empty());
        assert!(bench.run(waits, "BLPOP l 0").is_empty());
        bench.text(writes, "RPUSH l x");
        assert!(bench.hear(waits).is_empty());
        assert!(bench.run(waits, "PING").is_empty());
        assert_eq!(bench.text(waits, "CLIENT REPLY ON"), "OK");
        // Ended by somebody else.
        let id = bench.text(waits, "CLIENT ID");
        assert!(bench.run(waits, "CLIENT REPLY SKIP").is_empty());
        assert!(bench.run(waits, "BLPOP none 0").is_empty());
        assert_eq!(bench.text(writes, &format!("CLIENT UNBLOCK {id}")), "1");
        assert!(bench.end_wait(waits, End::Timeout).is_empty());
        assert!(bench.hear(waits).is_empty());
        assert_eq!(bench.text(waits, "ECHO next"), "next");
    }
}

#[test]
fn the_table_of_commands_is_told() {
    for protocol in ALL {
        let (mut bench, a) = Bench::with(protocol);
        let Reply::Array(all) = bench.one(a, "COMMAND") else { panic!("an array") };
        assert_eq!(bench.text(a, "COMMAND COUNT"), all.len().to_string());
        let reply = bench.text(a, "COMMAND INFO get nothing");
        assert!(reply.starts_with("[[get 2 [readonly fast] 1 1 1 [@read @string @fast] [] ["), "{reply}");
        assert!(reply.ends_with(" nil]"), "{reply}");
        assert!(bench.text(a, "COMMAND INFO client|id").starts_with("[[client|id 2 ["));
        assert_eq!(bench.text(a, "COMMAND LIST FILTERBY PATTERN g?t"), "[get]");
        assert_eq!(bench.text(a, "COMMAND LIST FILTERBY MODULE x"), "[]");
        assert!(bench.text(a, "COMMAND LIST FILTERBY ACLCAT string").contains("get"));
        assert_eq!(bench.text(a, "COMMAND LIST x"), "-ERR syntax error");
        assert_eq!(bench.text(a, "COMMAND GETKEYS set k v"), "[k]");
        assert_eq!(bench.text(a, "COMMAND GETKEYSANDFLAGS set k v"), "[[k [OW update]]]");
        assert_eq!(bench.text(a, "COMMAND GETKEYSANDFLAGS set k v get"), "[[k [RW access update]]]");
        let sort = bench.text(a, "COMMAND GETKEYSANDFLAGS sort a by store get store store b");
        assert_eq!(sort, "[[a [RO access]] [b [OW update]]]");
        assert_eq!(bench.text(a, "COMMAND GETKEYS ping"), "-ERR The command has no key arguments");
        assert_eq!(bench.text(a, "COMMAND GETKEYS nothing"), "-ERR Invalid command specified");
        let arity = "-ERR Invalid number of arguments specified for command";
        assert_eq!(bench.text(a, "COMMAND GETKEYS get"), arity);
        let docs = bench.text(a, "COMMAND DOCS get nothing");
        assert!(
            docs.contains("get") && docs.contains("display_text") && docs.contains("key_spec_index"),
            "{docs}"
        );
        let opcodes = bench.text(a, "COMMAND OPCODES get client");
        assert!(opcodes.contains(TABLE_HASH), "{opcodes}");
        assert!(opcodes.contains("[0 nil nil key:str16!]") && opcodes.contains("nil nil args]"), "{opcodes}");
        let help = bench.text(a, "COMMAND HELP");
        assert!(
            help.starts_with("[COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"),
            "{help}"
        );
    }
}

#[test]
fn hello_tells_of_the_zone_that_is_set() {
    for protocol in ALL {
        let (mut bench, a) = Bench::with(protocol);
        assert!(!bench.text(a, "HELLO 3").contains("zone"));
        bench.text(a, "CONFIG SET availability-zone z1");
        let told = bench.text(a, "HELLO 3");
        assert!(told.contains("modules:[] availability_zone:z1"), "{told}");
    }
}

/// What MULTI queues is bounded for all clients of a connection together, and given back when a transaction ends or its
/// client goes.
#[test]
fn transactions_of_a_connection_queue_no_more_than_a_limit() {
    for (protocol, limit) in
        [(Protocol::Resp2, "client-query-buffer-limit"), (Protocol::Respb, "respb-connection-queue-bytes")]
    {
        let (mut bench, [admin, client]) = Bench::with_clients([Protocol::Resp3, protocol]);
        let other = if protocol == Protocol::Respb { bench.connect_channel(client, 7) } else { client };
        let max = if protocol == Protocol::Respb { 100_000 } else { 1_048_576 };
        assert_eq!(bench.text(admin, &format!("CONFIG SET {limit} {max}")), "OK");
        let value = "x".repeat(10_000);
        let set = format!("SET k {value}");
        bench.text(client, "MULTI");
        if other != client {
            bench.text(other, "MULTI");
        }
        let mut queued = 0;
        let refused = loop {
            let reply = bench.text(if queued % 2 == 0 { client } else { other }, &set);
            if reply != "QUEUED" {
                break reply;
            }
            queued += 1;
            assert!(queued * 10_000 < max + 10_000, "there is no limit");
        };
        assert_eq!(
            refused,
            format!("-ERR the transactions of this connection have queued too much ({limit})")
        );
        assert!(queued * 10_000 > max - max / 5, "{queued}");
        let which = if queued % 2 == 0 { client } else { other };
        let whole = if which == client { other } else { client };
        assert!(bench.text(which, "EXEC").starts_with("-EXECABORT"));
        if whole != which {
            // The other one was not touched, and there is room again.
            assert_eq!(bench.text(whole, &set), "QUEUED");
            assert_eq!(bench.text(whole, "DISCARD"), "OK");
        }
        for _ in 0..3 {
            bench.text(client, "MULTI");
            assert_eq!(bench.text(client, &set), "QUEUED", "what has ended counts no more");
            bench.text(client, "RESET");
            bench.text(client, "HELLO 3");
        }
        assert_eq!(
            bench.session(client).info.connection.queued_bytes.load(std::sync::atomic::Ordering::Relaxed),
            0
        );
    }
}
