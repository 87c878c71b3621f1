//! Users: the language of their rules, what these allow, and when a change of them holds.

mod support;

use support::{ALL, Bench, cpu_ns, show};
use weft_engine::mailbox::Kill;
use weft_engine::reply::Protocol;
use weft_protocol::Reply;

/// A client that is the user `u` with these rules, beside one that may do everything.
fn with_user(protocol: Protocol, rules: &str) -> (Bench, u32, u32) {
    let (mut bench, [admin, user]) = Bench::with_clients([protocol; 2]);
    assert_eq!(bench.text(admin, &format!("ACL SETUSER u on >pw {rules}")), "OK", "{rules}");
    assert_eq!(bench.text(user, "AUTH u pw"), "OK");
    (bench, admin, user)
}

fn described(bench: &mut Bench, client: u32, name: &str) -> String {
    let Reply::Array(lines) = bench.one(client, "ACL LIST") else { panic!("an array") };
    let prefix = format!("user {name} ");
    let line = lines.iter().map(show).find(|line| line.starts_with(&prefix)).expect("a user");
    line[prefix.len()..].to_owned()
}

#[test]
fn rules_read_back_as_they_were_written() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    assert_eq!(described(&mut bench, a, "default"), "on nopass ~* &* +@all");
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    for (rules, expected) in [
        ("on", "on resetchannels -@all"),
        ("on >test", &format!("on #{hash} resetchannels -@all")),
        (&format!("#{hash} <test nopass"), "off nopass resetchannels -@all"),
        ("~a %R~b %W~c %RW~d ~a", "off ~a %R~b %W~c ~d resetchannels -@all"),
        ("%R~k %W~k", "off ~k resetchannels -@all"),
        ("allkeys allchannels allcommands", "off ~* &* +@all"),
        ("&a &b &a", "off resetchannels &a &b -@all"),
        ("+get +set -get", "off resetchannels -@all +set -get"),
        ("+@all -@dangerous +keys", "off resetchannels +@all -@dangerous +keys"),
        ("+config|get +client", "off resetchannels -@all +config|get +client"),
        ("+client|id +client", "off resetchannels -@all +client"),
        ("+client -client|kill", "off resetchannels -@all +client -client|kill"),
        ("+select|0 +select|1", "off resetchannels -@all +select|0 +select|1"),
        ("db=2,1,2", "off resetchannels db=1,2 -@all"),
        ("resetdbs", "off resetchannels resetdbs -@all"),
        ("db=1 alldbs", "off resetchannels -@all"),
        (
            "(+get ~x) (+set ~y)",
            "off resetchannels -@all (~x resetchannels -@all +get) (~y resetchannels -@all +set)",
        ),
        ("(+get ~x) clearselectors", "off resetchannels -@all"),
        ("on ~a +get (+@all) reset", "off resetchannels -@all"),
        ("sanitize-payload skip-sanitize-payload", "off resetchannels -@all"),
        ("ON ~A +GET", "on ~A resetchannels -@all +get"),
    ] {
        bench.text(a, "ACL DELUSER u");
        assert_eq!(bench.text(a, &format!("ACL SETUSER u {rules}")), "OK", "{rules}");
        assert_eq!(described(&mut bench, a, "u"), expected, "{rules}");
        // And what is written creates the same.
        assert_eq!(bench.text(a, &format!("ACL SETUSER copy reset {expected}")), "OK", "{expected}");
        assert_eq!(described(&mut bench, a, "copy"), expected);
    }
}

#[test]
fn bad_rules_change_nothing() {
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    bench.text(a, "ACL SETUSER u on ~k +get");
    for (rules, word, text) in [
        ("+nothing", "+nothing", "Unknown command or category name in ACL"),
        ("+@nothing", "+@nothing", "Unknown command or category name in ACL"),
        ("+config|nothing", "+config|nothing", "Unknown command or category name in ACL"),
        ("-select|0", "-select|0", "Unknown command or category name in ACL"),
        ("+config|get|x", "+config|get|x", "Allowing first-arg of a subcommand is not supported"),
        ("+select|", "+select|", "Syntax error"),
        ("foo", "foo", "Syntax error"),
        ("%X~a", "%X~a", "Syntax error"),
        ("%~a", "%~a", "Syntax error"),
        ("%Ra", "%Ra", "Syntax error"),
        (
            "allkeys ~a",
            "~a",
            "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not \
                              have any effect. Try 'resetkeys' to start with an empty list of patterns",
        ),
        (
            "&* &a",
            "&a",
            "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not \
                         have any effect. Try 'resetchannels' to start with an empty list of channels",
        ),
        ("<nothing", "<nothing", "The password you are trying to remove from the user does not exist"),
        (
            "#12",
            "#12",
            "The password hash must be exactly 64 characters and contain only lowercase hexadecimal \
                        characters",
        ),
        ("db=x", "db=x", "Syntax error"),
        ("db=1,", "db=1,", "Syntax error"),
        ("db=-1", "db=-1", "The provided database ID is out of range"),
        ("(+nothing)", "(+nothing)", "Unknown command or category name in ACL"),
    ] {
        let reply = bench.text(a, &format!("ACL SETUSER u off {rules}"));
        assert_eq!(reply, format!("-ERR Error in ACL SETUSER modifier '{word}': {text}"), "{rules}");
    }
    let open = "-ERR Unmatched parenthesis in acl selector starting at '(+get'.";
    assert_eq!(bench.text(a, "ACL SETUSER u (+get ~x"), open);
    let spaces = bench.run_args(a, &[b"ACL", b"SETUSER", b"a b"]);
    assert_eq!(show(&spaces[0]), "-ERR Usernames can't contain spaces or null characters");
    assert_eq!(described(&mut bench, a, "u"), "on ~k resetchannels -@all +get");
}

/// Each word is compared with what is there, so that without a limit a list of a million would hold up everybody.
#[test]
fn a_user_has_so_many_rules_and_what_describes_it_reads_back() {
    // The root's own four words.
    const RULES: usize = 4096 - 4;
    const WORDS: usize = 4096 + 16;
    let numbered = |count: usize, rule: &str| -> Vec<String> {
        (0..count).map(|at| rule.replace('N', &at.to_string())).collect()
    };
    let (mut bench, a) = Bench::with(Protocol::Resp2);
    let set = |bench: &mut Bench, name: &str, rules: &[String]| {
        let words = ["ACL", "SETUSER", name].into_iter().chain(rules.iter().map(String::as_str));
        let words: Vec<&[u8]> = words.map(str::as_bytes).collect();
        show(&bench.run_args(a, &words)[0])
    };
    let too_many = "-ERR A user has at most 4096 rules";
    for (rule, fit) in [
        ("~N", RULES),
        ("&N", RULES),
        (">N", RULES),
        ("+select|N", RULES),
        // A selector has four of its own, and one.
        ("(~N)", RULES / 5),
    ] {
        bench.text(a, "ACL DELUSER u");
        let mut rules = numbered(fit + 1, rule);
        assert_eq!(set(&mut bench, "u", &rules), too_many, "{rule}");
        assert_eq!(bench.text(a, "ACL GETUSER u"), "nil", "{rule}");
        let last = rules.pop().expect("there are some");
        assert_eq!(set(&mut bench, "u", &rules), "OK", "{rule}");
        // Nor one behind the other.
        assert_eq!(set(&mut bench, "u", &[last]), too_many, "{rule}");
        let before = described(&mut bench, a, "u");
        let words: Vec<String> = ["reset"].into_iter().chain(before.split(' ')).map(Into::into).collect();
        assert_eq!(set(&mut bench, "copy", &words), "OK", "{rule}");
        assert_eq!(described(&mut bench, a, "copy"), before, "{rule}");
    }
    // The same word over and over takes time, though it leaves nothing. Words of a selector count.
    for (inside, count) in [(1, WORDS), (3, WORDS / 3)] {
        let word = format!("({})", vec!["~k"; inside].join(" "));
        let mut rules = numbered(count, if inside == 1 { "~k" } else { &word });
        let one_more = rules[0].clone();
        let fits = set(&mut bench, "words", &rules);
        assert_eq!(fits, if inside == 1 { "OK" } else { too_many });
        rules.push(one_more);
        assert_eq!(
            set(&mut bench, "words", &rules),
            format!("-ERR A list of ACL rules has at most {WORDS} words")
        );
    }
}

#[test]
fn commands_keys_and_channels_are_checked() {
    for protocol in ALL {
        let (mut bench, _, u) =
            with_user(protocol, "~a:* %R~r:* %W~w:* &ch:* +@all -@admin -select +select|1");
        for command in [
            "SET a:1 x",
            "GET a:1",
            "GET r:1",
            "SET w:1 x",
            "PUBLISH ch:1 x",
            "MGET a:1 r:1",
            "SELECT 1",
            "DEL w:1",
            "COPY r:1 w:1",
            "OBJECT HELP",
        ] {
            let reply = bench.text(u, command);
            assert!(!reply.starts_with("-NOPERM"), "{command}: {reply}");
        }
        let key = "-NOPERM No permissions to access a key";
        for (command, expected) in [
            ("GET other", key),
            ("SET r:1 x", key),
            ("GET w:1", key),
            ("SET w:1 x GET", key),
            ("INCR w:1", key),
            ("MGET a:1 w:1", key),
            ("COPY w:1 a:1", key),
            ("PUBLISH other x", "-NOPERM No permissions to access a channel"),
            ("SUBSCRIBE ch:1 other", "-NOPERM No permissions to access a channel"),
            ("PSUBSCRIBE ch:1*", "-NOPERM No permissions to access a channel"),
            ("SELECT 2", "-NOPERM User u has no permissions to run the 'select' command"),
            ("CLIENT KILL ID 1", "-NOPERM User u has no permissions to run the 'client|kill' command"),
            ("ACL LIST", "-NOPERM User u has no permissions to run the 'acl|list' command"),
        ] {
            assert_eq!(bench.text(u, command), expected, "{protocol:?}");
        }
        bench.run(u, "PSUBSCRIBE ch:*");
        assert_eq!(bench.text(u, "RESET"), "RESET");
        assert_eq!(bench.text(u, "GET other"), "nil");
    }
}

#[test]
fn one_selector_must_allow_all_of_a_command() {
    let (mut bench, a, u) = with_user(Protocol::Resp3, "+get ~root (+set ~x) (+@read ~y)");
    assert_eq!(bench.text(u, "GET root"), "nil");
    assert_eq!(bench.text(u, "SET x 1"), "OK");
    assert_eq!(bench.text(u, "GET y"), "nil");
    assert_eq!(bench.text(u, "GET x"), "-NOPERM No permissions to access a key");
    assert_eq!(bench.text(u, "SET root 1"), "-NOPERM No permissions to access a key");
    assert_eq!(bench.text(u, "DEL x"), "-NOPERM User u has no permissions to run the 'del' command");
    let user = bench.text(a, "ACL GETUSER u");
    assert!(user.contains("flags:[on] passwords:["), "{user}");
    assert!(
        user.contains("commands:-@all +get keys:~root channels: databases:alldbs selectors:[{"),
        "{user}"
    );
    assert_eq!(bench.text(a, "ACL GETUSER nobody"), "nil");
}

#[test]
fn databases_are_checked() {
    let (mut bench, _, u) = with_user(Protocol::Resp2, "+@all ~* db=0,3");
    assert_eq!(bench.text(u, "SET k 1"), "OK");
    let denied = "-NOPERM No permissions to access database";
    assert_eq!(bench.text(u, "SELECT 1"), denied);
    assert_eq!(bench.text(u, "SWAPDB 0 1"), denied);
    assert_eq!(bench.text(u, "MOVE k 1"), denied);
    assert_eq!(bench.text(u, "FLUSHALL"), denied);
    for options in ["DB 1", "REPLACE DB 1", "DB 3 DB 1", "DB 1 DB 3", "DB 3 REPLACE DB 2 DB 3"] {
        assert_eq!(bench.text(u, &format!("COPY k to {options}")), denied, "{options}");
    }
    assert_eq!(bench.text(u, "COPY k DB DB 3"), "1");
    assert_eq!(bench.text(u, "SELECT 3"), "OK");
    assert_eq!(bench.text(u, "GET k"), "nil");
    // The channel of a shard stands where keys do, and is in no database.
    let (mut bench, _, u) = with_user(Protocol::Resp2, "+@all ~* &* db=1");
    assert_eq!(bench.text(u, "GET k"), denied);
    for command in ["PUBLISH c m", "SPUBLISH c m", "PING"] {
        assert!(!bench.text(u, command).starts_with('-'), "{command}");
    }
}

#[test]
fn watch_within_multi_is_refused_as_such_before_rights_are() {
    for rules in ["+@all ~* -watch", "+@all ~a*"] {
        let (mut bench, a, u) = with_user(Protocol::Resp2, rules);
        assert!(bench.text(u, "WATCH k").starts_with("-NOPERM"));
        assert_eq!(bench.text(a, "ACL LOG RESET"), "OK");
        assert_eq!(bench.text(u, "MULTI"), "OK");
        assert_eq!(bench.text(u, "WATCH k"), "-ERR Command 'watch' not allowed inside a transaction");
        assert_eq!(bench.text(u, "EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
        assert_eq!(bench.text(a, "ACL LOG"), "[]");
    }
}

#[test]
fn a_change_holds_from_the_next_command_on() {
    for protocol in ALL {
        let (mut bench, a, u) = with_user(protocol, "+@all ~*");
        assert_eq!(bench.text(u, "GET k"), "nil");
        bench.text(u, "MULTI");
        bench.text(u, "GET k");
        bench.text(u, "ECHO x");
        bench.text(a, "ACL SETUSER u -get");
        assert_eq!(
            bench.text(u, "EXEC"),
            "[-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. \
             This command is no longer allowed for the following reason: no permission to execute the command or \
             subcommand x]"
        );
        assert_eq!(bench.text(u, "GET k"), "-NOPERM User u has no permissions to run the 'get' command");
        bench.text(u, "MULTI");
        assert_eq!(bench.text(u, "GET k"), "-NOPERM User u has no permissions to run the 'get' command");
        assert_eq!(bench.text(u, "EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
        // Switched off: who is there stays, nobody comes.
        bench.text(a, "ACL SETUSER u off");
        assert_eq!(bench.text(u, "ECHO x"), "x");
        let late = bench.connect(protocol);
        assert!(bench.text(late, "AUTH u pw").starts_with("-WRONGPASS"));
    }
}

#[test]
fn clients_of_deleted_users_are_closed() {
    for protocol in ALL {
        let (mut bench, a, u) = with_user(protocol, "+@all ~*");
        assert_eq!(bench.text(a, "ACL DELUSER default"), "-ERR The 'default' user cannot be removed");
        assert_eq!(bench.text(a, "ACL DELUSER u nobody"), "1");
        assert_eq!(bench.killed, [(u, Kill::User)]);
        // Before the message has come, and even if the name is made anew.
        bench.text(a, "ACL SETUSER u on nopass +@all ~*");
        assert_eq!(bench.text(u, "GET k"), "-NOAUTH Authentication required.");
        assert_eq!(bench.text(a, "ACL USERS"), "[default u]");
    }
}

#[test]
fn subscribers_lose_what_they_may_not_hear() {
    let (mut bench, a, u) = with_user(Protocol::Resp3, "+@all &one &two");
    bench.run(u, "SUBSCRIBE one two");
    bench.text(a, "ACL SETUSER u &three");
    assert!(bench.killed.is_empty());
    bench.text(a, "ACL SETUSER u resetchannels &one");
    assert_eq!(bench.killed, [(u, Kill::User)]);
}

#[test]
fn denials_are_logged() {
    for protocol in ALL {
        let (mut bench, a, u) = with_user(protocol, "+@all -get ~a &b");
        for command in
            ["GET a", "GET a", "SET k 1", "PUBLISH c x", "MULTI", "SET k 1", "DISCARD", "AUTH u wrong"]
        {
            bench.run(u, command);
        }
        let Reply::Array(entries) = bench.one(a, "ACL LOG") else { panic!("an array") };
        let fields = |entry: &Reply| {
            let pairs: Vec<(String, String)> = match entry {
                Reply::Map(pairs) => pairs.iter().map(|(key, value)| (show(key), show(value))).collect(),
                Reply::Array(items) => items.chunks(2).map(|pair| (show(&pair[0]), show(&pair[1]))).collect(),
                other => panic!("{other:?}"),
            };
            assert_eq!(pairs.len(), 10);
            assert!(pairs[6].1.contains("id=2 "), "{pairs:?}");
            pairs[..5].iter().map(|(_, value)| value.clone()).collect::<Vec<_>>().join(" ")
        };
        let entries: Vec<String> = entries.iter().map(fields).collect();
        let expected = [
            "1 auth toplevel AUTH u",
            "1 key multi k u",
            "1 channel toplevel c u",
            "1 key toplevel k u",
            "2 command toplevel get u",
        ];
        assert_eq!(entries, expected, "{protocol:?}");
        assert!(matches!(bench.one(a, "ACL LOG 1"), Reply::Array(entries) if entries.len() == 1));
        assert_eq!(bench.text(a, "ACL LOG RESET"), "OK");
        assert_eq!(bench.text(a, "ACL LOG"), "[]");
        bench.text(a, "CONFIG SET acllog-max-len 1");
        bench.text(u, "GET a");
        bench.text(u, "SET k 1");
        assert!(matches!(bench.one(a, "ACL LOG"), Reply::Array(entries) if entries.len() == 1));
    }
}

#[test]
fn smaller_commands() {
    for protocol in ALL {
        let (mut bench, a, u) = with_user(protocol, "+get +acl|whoami ~k");
        assert_eq!(bench.text(u, "ACL WHOAMI"), "u");
        assert_eq!(bench.text(a, "ACL WHOAMI"), "default");
        assert_eq!(bench.text(a, "ACL DRYRUN u get k"), "OK");
        let key = "User u has no permissions to access the 'x' key";
        assert_eq!(bench.text(a, "ACL DRYRUN u get x"), key);
        let command = "User u has no permissions to run the 'set' command";
        assert_eq!(bench.text(a, "ACL DRYRUN u set k v"), command);
        assert_eq!(bench.text(a, "ACL DRYRUN nobody get k"), "-ERR User 'nobody' not found");
        assert_eq!(bench.text(a, "ACL DRYRUN u nothing k"), "-ERR Command 'nothing' not found");
        let arity = "-ERR wrong number of arguments for 'get' command";
        assert_eq!(bench.text(a, "ACL DRYRUN u get"), arity);
        assert_eq!(bench.text(a, "ACL GENPASS").len(), 64);
        assert_eq!(bench.text(a, "ACL GENPASS 5").len(), 2);
        assert!(
            bench
                .text(a, "ACL GENPASS 0")
                .starts_with("-ERR ACL GENPASS argument must be the number of bits")
        );
        assert!(bench.text(a, "ACL CAT").starts_with("[keyspace read write set"));
        assert!(bench.text(a, "ACL CAT pubsub").contains("pubsub|channels"));
        assert_eq!(bench.text(a, "ACL CAT nothing"), "-ERR Unknown category 'nothing'");
        assert!(
            bench.text(a, "ACL SAVE").starts_with("-ERR This instance is not configured to use an ACL file.")
        );
        assert!(bench.text(a, "ACL NOTHING").starts_with("-ERR unknown subcommand 'NOTHING'. Try ACL HELP."));
    }
}

#[test]
fn users_are_kept_in_a_file() {
    let folder = std::env::temp_dir().join(format!("weft-acl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("users.acl");
    let (mut bench, [a, u]) = Bench::with_clients([Protocol::Resp2; 2]);
    *bench.engine.acl.file.lock() = Some(path.clone());
    bench.text(a, "ACL SETUSER u on >pw ~k +get (+set ~x)");
    bench.text(u, "AUTH u pw");
    assert_eq!(bench.text(a, "ACL SAVE"), "OK");
    let before = bench.text(a, "ACL LIST");
    bench.text(a, "ACL SETUSER u +@all");
    bench.text(a, "ACL SETUSER v on");
    assert_eq!(bench.text(a, "ACL LOAD"), "OK");
    assert_eq!(bench.text(a, "ACL LIST"), before);
    assert_eq!(bench.text(u, "GET k"), "nil");
    assert_eq!(bench.text(u, "SET k 1"), "-NOPERM No permissions to access a key");
    std::fs::write(&path, "user w on +nothing\nnonsense\nuser w2 on foo\nuser w2 on\n").expect("a file");
    let shown = path.display();
    assert_eq!(
        bench.text(a, "ACL LOAD"),
        format!(
            "-ERR {shown}:1: Error in applying operation '+nothing': Unknown command or category name in ACL. \
             {shown}:2 should start with user keyword followed by the username. {shown}:3: Syntax error. WARNING: ACL \
             errors detected, no change to the previously active ACL rules was performed"
        )
    );
    for (rules, said) in
        [(4092, None), (4093, Some("A user has at most 4096 rules")), (5000, Some("4112 words"))]
    {
        let keys: String = (0..rules).map(|at| format!(" ~{at}")).collect();
        let lines =
            format!("user default on nopass ~* &* +@all\nuser u on >pw ~k +get (+set ~x)\nuser w on{keys}\n");
        std::fs::write(&path, lines).expect("a file");
        let reply = bench.text(a, "ACL LOAD");
        assert!(said.map_or(reply == "OK", |said| reply.contains(said)), "{rules}: {reply}");
        bench.text(a, "ACL DELUSER w");
    }
    assert_eq!(bench.text(a, "ACL LIST"), before);
    assert!(bench.killed.is_empty());
    std::fs::write(&path, "user default on nopass ~* &* +@all\n").expect("a file");
    assert_eq!(bench.text(a, "ACL LOAD"), "OK");
    assert_eq!(bench.killed, [(u, Kill::User)]);
    std::fs::remove_dir_all(&folder).expect("it is ours");
}

#[test]
fn who_is_not_known_costs_as_much_as_who_is() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    bench.text(client, "ACL SETUSER known on >secret");
    let password = "x".repeat(1 << 20);
    let mut cost = |name: &str| {
        let before = cpu_ns();
        for _ in 0..3 {
            bench.run_args(client, &[b"AUTH", name.as_bytes(), password.as_bytes()]);
        }
        cpu_ns() - before
    };
    let (known, unknown) = (cost("known"), cost("nobody"));
    assert!(unknown * 2 > known, "{unknown} ns for one that is not known, {known} for one that is");
}
