//! `weft cli --cluster` and `-c` with clusters of real servers, Redis and Valkey: made, filled, broken and mended; what
//! `check` and `info` print is what redis-cli prints of the same cluster.
//!
//! Without either server the tests say so and pass.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Command;
use std::time::Instant;

use common::cluster::{Node, binaries};
use common::servers::LONG;
use common::{Folder, output, run, stderr};

/// Keys that are stored, in slots of all nodes.
const KEYS: usize = 60;

/// Nodes with what is done to them.
struct Cluster(Vec<Node>);

impl Cluster {
    fn start(binary: &std::path::PathBuf, count: usize) -> Cluster {
        Cluster((0..count).map(|_| Node::of_cluster(binary)).collect())
    }

    fn address(&self, index: usize) -> String {
        self.0[index].address()
    }

    /// `weft cli --cluster …`: status and output.
    fn manage(&self, words: &[&str]) -> (bool, String) {
        let output = run(&[&["cli", "--cluster"][..], words].concat(), b"");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text + &stderr(&output))
    }

    fn good(&self, words: &[&str]) -> String {
        let (good, text) = self.manage(words);
        assert!(good, "{words:?}: {text}");
        text
    }

    /// Lines of commands to one node; with `-c` it follows redirections.
    fn cli(&self, index: usize, flags: &[&str], lines: &str) -> String {
        let port = self.0[index].port.to_string();
        let output = run(&[&["cli", "-p", &port][..], flags].concat(), lines.as_bytes());
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn id(&self, index: usize) -> String {
        self.cli(index, &[], "CLUSTER MYID").trim().to_string()
    }

    /// What is told to one node reaches the others some time later, and each says some time later that all is well.
    fn settle(&self) {
        let began = Instant::now();
        loop {
            let (good, text) = self.manage(&["check", &self.address(0)]);
            let (_, states) = self.manage(&["call", &self.address(0), "CLUSTER", "INFO"]);
            if good && states.matches("cluster_state:ok").count() == text.matches(" slots) ").count() {
                return;
            }
            assert!(began.elapsed() < LONG, "{text}");
        }
    }

    fn fill(&self) {
        let lines: String = (0..KEYS).map(|n| format!("SET key:{n} value:{n}\n")).collect();
        let said = self.cli(0, &["-c"], &lines);
        assert_eq!(said.matches("OK\n").count(), KEYS, "{said}");
        assert!(said.contains("-> Redirected to slot ["), "{said}");
    }

    fn is_full(&self) {
        let lines: String = (0..KEYS).map(|n| format!("GET key:{n}\n")).collect();
        let said = self.cli(1, &["-c"], &lines);
        let values: Vec<&str> = said.lines().filter(|line| line.starts_with("value:")).collect();
        let expected: Vec<String> = (0..KEYS).map(|n| format!("value:{n}")).collect();
        assert_eq!(values, expected);
    }

    /// What redis-cli prints, if there is one.
    fn as_redis_cli(words: &[&str]) {
        let mut redis_cli = Command::new("redis-cli");
        if redis_cli.arg("--version").output().is_err() {
            common::skipped::left_out("there is no redis-cli to compare with");
            return;
        }
        // On a terminal of a better kind it colours, also where nobody sees it.
        let theirs = output(Command::new("redis-cli").arg("--cluster").args(words).env("TERM", "dumb"), b"");
        let ours = run(&[&["cli", "--cluster"][..], words].concat(), b"");
        assert_eq!(
            String::from_utf8_lossy(&ours.stdout),
            String::from_utf8_lossy(&theirs.stdout),
            "{words:?}"
        );
        assert_eq!(ours.status.code(), theirs.status.code(), "{words:?}");
    }
}

#[test]
fn a_cluster_is_made_filled_and_its_slots_are_moved() {
    for binary in binaries() {
        let cluster = Cluster::start(&binary, 6);
        let all: Vec<String> = (0..6).map(|index| cluster.address(index)).collect();
        let mut create = vec!["create"];
        create.extend(all.iter().map(String::as_str));
        create.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        let text = cluster.good(&create);
        assert!(text.contains("[OK] All 16384 slots covered."), "{text}");
        cluster.settle();
        cluster.fill();
        cluster.is_full();
        let first = &cluster.address(0);
        let port = cluster.0[0].port.to_string();
        for words in
            [&["check", first][..], &["info", first], &["check", "127.0.0.1", &port], &["bogus", first]]
        {
            Cluster::as_redis_cli(words);
        }
        Cluster::as_redis_cli(&["check", first, "--cluster-search-multiple-owners"]);
        Cluster::as_redis_cli(&["call", first, "CONFIG", "GET", "cluster-enabled"]);
        Cluster::as_redis_cli(&["call", first, "PING", "--cluster-only-replicas"]);
        // An error reply is an answer; and the last part of a reply may be empty.
        Cluster::as_redis_cli(&["call", first, "NOSUCH", "a b"]);
        Cluster::as_redis_cli(&["call", first, "CONFIG", "GET", "save"]);

        let (from, to) = (cluster.id(0), cluster.id(1));
        let reshard =
            ["reshard", first, "--cluster-from", &from, "--cluster-to", &to, "--cluster-slots", "100"];
        let text = cluster.good(&[&reshard[..], &["--cluster-yes"]].concat());
        assert!(
            text.contains("Ready to move 100 slots.") && text.contains("Moving slot 0 from 127.0.0.1:"),
            "{text}"
        );
        cluster.settle();
        cluster.is_full();
        let info = cluster.good(&["info", first]);
        assert!(info.contains(" | 5361 slots | ") && info.contains(" | 5561 slots | "), "{info}");
        // Nobody says yes.
        let (good, text) = cluster.manage(&reshard);
        assert!(!good && text.contains("nobody answers"), "{text}");
        let text = cluster.good(&["rebalance", first, "--cluster-threshold", "1"]);
        assert!(text.contains(">>> Rebalancing across 3 nodes. Total weight = 3.00"), "{text}");
        cluster.settle();
        cluster.is_full();
        let text = cluster.good(&["rebalance", first]);
        assert!(text.contains("*** No rebalancing needed!"), "{text}");

        let text = cluster.good(&["set-timeout", first, "12000"]);
        assert!(text.contains("6 OK, 0 ERR."), "{text}");
        assert!(cluster.cli(3, &[], "CONFIG GET cluster-node-timeout").contains("12000"));
    }
}

#[test]
fn what_is_broken_in_a_cluster_is_mended() {
    for binary in binaries() {
        let cluster = Cluster::start(&binary, 3);
        let all: Vec<String> = (0..3).map(|index| cluster.address(index)).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        cluster.good(&[&["create"][..], &all, &["--cluster-yes"]].concat());
        cluster.settle();
        cluster.fill();
        let first = &cluster.address(0);
        // Slot 12539 is that of key:0, and of the third node; on its way to the first, as far as both know.
        let slot = cluster.cli(0, &[], "CLUSTER KEYSLOT key:0").trim().to_string();
        let nodes = cluster.cli(0, &[], "CLUSTER SLOTS");
        assert!(nodes.contains(&cluster.0[2].port.to_string()));
        let number: u16 = slot.parse().unwrap();
        let owner = usize::from(number / 5462).min(2);
        let other = (owner + 1) % 3;
        let (owner_id, other_id) = (cluster.id(owner), cluster.id(other));
        cluster.cli(other, &[], &format!("CLUSTER SETSLOT {slot} IMPORTING {owner_id}"));
        cluster.cli(owner, &[], &format!("CLUSTER SETSLOT {slot} MIGRATING {other_id}"));
        let (good, text) = cluster.manage(&["check", first]);
        assert!(
            !good && text.contains(&format!("[WARNING] The following slots are open: {slot}.")),
            "{text}"
        );
        Cluster::as_redis_cli(&["check", first]);
        let text = cluster.good(&["fix", first]);
        assert!(text.contains(&format!(">>> Case 1: Moving slot {slot} from")), "{text}");
        cluster.settle();
        cluster.is_full();

        // Now it is the other's. One imports, nobody migrates.
        cluster.cli(owner, &[], &format!("CLUSTER SETSLOT {slot} IMPORTING {other_id}"));
        let text = cluster.good(&["fix", first]);
        assert!(text.contains(">>> Case 2: "), "{text}");
        cluster.settle();
        // One migrates, nobody imports.
        cluster.cli(other, &[], &format!("CLUSTER SETSLOT {slot} MIGRATING {owner_id}"));
        let text = cluster.good(&["fix", first]);
        assert!(text.contains(">>> Case 4: "), "{text}");
        cluster.settle();

        // Slots that nobody has: the one with keys, and one without.
        let empty = if number == 1 { 2 } else { 1 };
        // What a node was told by another before that one forgot it, it has to forget again.
        let began = Instant::now();
        let text = loop {
            for index in 0..3 {
                cluster.cli(index, &[], &format!("CLUSTER DELSLOTS {slot}\nCLUSTER DELSLOTS {empty}\n"));
            }
            let (good, text) = cluster.manage(&["check", first]);
            assert!(!good, "{text}");
            if text.contains("[OK] All nodes agree") {
                break text;
            }
            assert!(began.elapsed() < LONG, "{text}");
        };
        assert!(text.contains("[ERR] Not all 16384 slots are covered by nodes."), "{text}");
        let text = cluster.good(&["fix", first, "--cluster-yes"]);
        assert!(text.contains(">>> Fixing slots coverage..."), "{text}");
        cluster.settle();
        cluster.is_full();

        members(&cluster, &binary);
    }
}

/// Nodes come and go; data is taken in and copied.
fn members(cluster: &Cluster, binary: &std::path::PathBuf) {
    let first = &cluster.address(0);
    let fourth = Node::of_cluster(binary);
    let text = cluster.good(&["add-node", &fourth.address(), first, "--cluster-slave"]);
    assert!(
        text.contains("Automatically selected master") && text.contains("[OK] New node added correctly."),
        "{text}"
    );
    cluster.settle();
    let (good, text) = cluster.manage(&["add-node", &fourth.address(), first]);
    assert!(!good && text.contains("is not empty"), "{text}");
    let id = String::from_utf8(run(&["cli", "-p", &fourth.port.to_string(), "CLUSTER", "MYID"], b"").stdout)
        .unwrap();
    cluster.good(&["del-node", first, id.trim()]);
    let (good, text) = cluster.manage(&["del-node", first, &cluster.id(1)]);
    assert!(!good && text.contains("is not empty! Reshard data away"), "{text}");

    let source = Node::start(binary, "");
    let lines: String = (0..20).map(|n| format!("SET imported:{n} value:{n}\n")).collect();
    run(&["cli", "-p", &source.port.to_string()], lines.as_bytes());
    let text = cluster.good(&["import", first, "--cluster-from", &source.address()]);
    assert!(text.contains("*** Importing 20 keys from DB 0"), "{text}");
    assert_eq!(cluster.cli(2, &["-c", "--no-raw"], "GET imported:7").lines().last(), Some("\"value:7\""));
    assert_eq!(run(&["cli", "-p", &source.port.to_string(), "DBSIZE"], b"").stdout, b"0\n");

    let folder = Folder::new();
    let text = cluster.good(&["backup", first, &folder.path("copy")]);
    assert!(text.contains(">>> Node 127.0.0.1:"), "{text}");
    let files: Vec<_> =
        std::fs::read_dir(folder.path("copy")).unwrap().map(|file| file.unwrap().path()).collect();
    let copies = files.iter().filter(|path| path.extension().is_some_and(|end| end == "rdb"));
    for copy in copies.clone() {
        let bytes = common::read(copy);
        assert!(bytes.starts_with(b"REDIS") || bytes.starts_with(b"VALKEY"), "{}", copy.display());
    }
    assert_eq!((copies.count(), files.len()), (3, 4));
}

#[test]
fn what_cannot_be_is_said_before_anything_is_done() {
    let Some(binary) = binaries().into_iter().next() else { return };
    let alone = Node::start(&binary, "");
    let address = alone.address();
    for (words, said) in [
        (&["--cluster", "check", &address][..], "is not configured as a cluster node."),
        (&["--cluster", "create", &address], "requires at least 3 master nodes"),
        (&["--cluster", "check", "nowhere"], "'nowhere' is no HOST:PORT"),
        (&["--cluster", "check"], "Wrong number of arguments"),
        (&["--cluster", "call", &address], "Wrong number of arguments"),
        (&["--cluster", "bogus", &address], "Unknown --cluster subcommand: bogus"),
        (&["--cluster", "import", &address], "is not configured as a cluster node."),
    ] {
        let output = run(&[&["cli"][..], words].concat(), b"");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        // What is wrong with a cluster is told on the standard output, as by redis-cli.
        let of_the_cluster = said.starts_with("is not configured");
        let text =
            if of_the_cluster { String::from_utf8_lossy(&output.stdout).into() } else { stderr(&output) };
        assert!(text.contains(said), "{words:?}: {text}");
        assert!(text.lines().count() < 5, "the help is for who asks for it: {text}");
        assert_eq!((of_the_cluster, output.stderr.is_empty()), (output.stderr.is_empty(), of_the_cluster));
    }
    Cluster::as_redis_cli(&["check", &address]);
    Cluster::as_redis_cli(&["check"]);
    Cluster::as_redis_cli(&["check", "127.0.0.1:1"]);
    let help = run(&["cli", "--cluster", "help"], b"");
    assert!(help.status.success() && help.stdout.starts_with(b"Cluster Manager Commands:\n"));
}
