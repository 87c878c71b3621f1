//! `weft cli --cluster`, `--rdb`, `--functions-rdb`, `--replica` and `-c` with servers of others that speak TLS and
//! nothing else, Redis and Valkey. What they do is tested without TLS (`cli_cluster.rs`, `cli_replica.rs`); here, that
//! every connection that they make is one of TLS, with the certificate that was given. And what is said where a
//! certificate is not trusted, or only one side speaks TLS.
//!
//! Without a server that has TLS, or without openssl, the tests say so and pass.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use common::cluster::{Node, free_port, tls_binaries};
use common::servers::{LONG, Server};
use common::{Folder, run, stderr, weft};

/// Keys that are stored, in slots of all nodes.
const KEYS: usize = 60;

/// An authority, and a certificate of it for 127.0.0.1 that servers and clients show.
struct Certificates(Folder);

impl Certificates {
    fn make() -> Option<Certificates> {
        let folder = Folder::new();
        folder.file("ext", b"subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n");
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for words in [
            format!("req -x509 {key} -days 2 -subj /CN=test-ca -keyout ca.key -out ca.pem"),
            format!("req {key} -subj /CN=localhost -keyout key.pem -out request.pem"),
            "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out cert.pem"
                .into(),
        ] {
            match Command::new("openssl").args(words.split(' ')).current_dir(&folder.0).output() {
                Ok(output) => assert!(output.status.success(), "{output:?}"),
                Err(error) => {
                    println!("left out: openssl cannot be started: {error}");
                    return None;
                }
            }
        }
        Some(Certificates(folder))
    }

    /// Lines of a server's configuration: it speaks TLS only, to clients that show a certificate only.
    fn options(&self) -> String {
        let [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map(|name| self.0.path(name));
        format!(
            "port 0\ntls-port PORT\ntls-cert-file {cert}\ntls-key-file {key}\ntls-ca-cert-file {ca}\ntls-replication yes\n"
        )
    }

    /// The flags of `weft cli`.
    fn flags(&self) -> Vec<String> {
        let [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map(|name| self.0.path(name));
        ["--tls", "--cacert", &ca, "--cert", &cert, "--key", &key].map(str::to_string).into()
    }

    fn cli(&self, words: &[&str], lines: &str) -> (bool, String) {
        let flags = self.flags();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let output = run(&[&["cli"][..], &flags, words].concat(), lines.as_bytes());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text + &stderr(&output))
    }

    fn good(&self, words: &[&str], lines: &str) -> String {
        let (good, text) = self.cli(words, lines);
        assert!(good, "{words:?}: {text}");
        text
    }
}

fn node(binary: &PathBuf, certificates: &Certificates, more: &str) -> Node {
    Node::start(binary, &(certificates.options() + more))
}

#[test]
fn a_cluster_of_tls_alone_is_made_looked_at_moved_backed_up_and_filled() {
    let Some(certificates) = Certificates::make() else { return };
    for binary in tls_binaries() {
        let options = certificates.options() + "tls-cluster yes\n";
        let nodes: Vec<Node> = (0..3).map(|_| Node::of_cluster_with(&binary, &options)).collect();
        let all: Vec<String> = nodes.iter().map(Node::address).collect();
        let places: Vec<&str> = all.iter().map(String::as_str).collect();
        // Without TLS nobody is there.
        let port = nodes[0].port.to_string();
        let output = run(&["cli", "--cluster", "check", &all[0]], b"");
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));

        let create = [&["--cluster", "create"][..], &places, &["--cluster-yes"]].concat();
        let text = certificates.good(&create, "");
        assert!(text.contains("[OK] All 16384 slots covered."), "{text}");
        settle(&certificates, &all[0]);

        let lines: String = (0..KEYS).map(|n| format!("SET key:{n} value:{n}\n")).collect();
        let said = certificates.good(&["-p", &port, "-c"], &lines);
        assert_eq!(said.matches("OK\n").count(), KEYS, "{said}");
        assert!(said.contains("-> Redirected to slot ["), "{said}");

        // MIGRATE goes from node to node, which is theirs; weft tells both ends.
        let id =
            |port: u16| certificates.good(&["-p", &port.to_string()], "CLUSTER MYID\n").trim().to_string();
        let (from, to) = (id(nodes[0].port), id(nodes[1].port));
        let reshard = ["--cluster", "reshard", &all[0], "--cluster-from", &from, "--cluster-to", &to];
        let text =
            certificates.good(&[&reshard[..], &["--cluster-slots", "50", "--cluster-yes"]].concat(), "");
        assert!(text.contains("Moving slot 0 from 127.0.0.1:"), "{text}");
        settle(&certificates, &all[0]);
        let text = certificates.good(&["--cluster", "call", &all[0], "DBSIZE"], "");
        assert_eq!(text.lines().filter(|line| line.starts_with("127.0.0.1:")).count(), 3, "{text}");

        let backup = Folder::new();
        let text = certificates.good(&["--cluster", "backup", &all[0], &backup.path("")], "");
        assert!(text.contains("Saved cluster configuration"), "{text}");
        let copies = std::fs::read_dir(&backup.0).unwrap().map(|entry| entry.unwrap().file_name());
        let copies = copies.filter(|name| Path::new(name).extension().is_some_and(|end| end == "rdb"));
        assert_eq!(copies.count(), 3);

        let lines: String = (0..KEYS).map(|n| format!("GET key:{n}\n")).collect();
        let said = certificates.good(&["-p", &port, "-c"], &lines);
        assert_eq!(said.lines().filter(|line| line.starts_with("value:")).count(), KEYS, "{said}");
    }
}

/// What is told to one node reaches the others some time later.
fn settle(certificates: &Certificates, place: &str) {
    let began = Instant::now();
    loop {
        let (good, text) = certificates.cli(&["--cluster", "check", place], "");
        let (_, states) = certificates.cli(&["--cluster", "call", place, "CLUSTER", "INFO"], "");
        if good && states.matches("cluster_state:ok").count() == 3 {
            return;
        }
        assert!(began.elapsed() < LONG, "{text}");
    }
}

#[test]
fn the_data_and_the_functions_of_a_server_are_copied_under_tls() {
    let Some(certificates) = Certificates::make() else { return };
    for binary in tls_binaries() {
        for diskless in ["yes", "no"] {
            let server = node(&binary, &certificates, &format!("repl-diskless-sync {diskless}\n"));
            let port = server.port.to_string();
            let big = "x".repeat(200_000);
            let library = "#!lua name=lib\\nredis.register_function('f', function() return 7 end)";
            certificates.good(
                &["-p", &port],
                &format!("SET greeting hello\nSET big {big}\nFUNCTION LOAD \"{library}\"\n"),
            );
            for (flag, line, expected) in [
                ("--rdb", "GET greeting\nSTRLEN big\nFCALL f 0\n", "hello\n200000\n7\n"),
                ("--functions-rdb", "DBSIZE\nFCALL f 0\n", "0\n7\n"),
            ] {
                let folder = Folder::new();
                let said = certificates.good(&["-p", &port, flag, &folder.path("copy.rdb")], "");
                assert!(said.contains("Transfer finished with success"), "{said}");
                let copy = format!("dbfilename copy.rdb\ndir {}\n", folder.path(""));
                let again = Node::start(&binary, &copy);
                let output = run(&["cli", "-p", &again.port.to_string()], line.as_bytes());
                assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{flag}");
            }
        }
    }
}

#[test]
fn what_a_server_tells_its_replicas_is_shown_under_tls() {
    let Some(certificates) = Certificates::make() else { return };
    for binary in tls_binaries() {
        let server = node(&binary, &certificates, "");
        let port = server.port.to_string();
        let mut child = weft()
            .arg("cli")
            .args(certificates.flags())
            .args(["-p", &port, "--replica"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let said: Vec<String> = said.take_while(|line| !line.contains("Logging commands")).collect();
        assert!(said.iter().any(|line| line.starts_with("SYNC with master, discarding")), "{said:?}");
        certificates.good(&["-p", &port], "SET after 1\n");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut shown = lines.filter(|line| !line.eq_ignore_ascii_case("\"PING\""));
        assert_eq!(shown.next().unwrap().to_uppercase(), "\"SELECT\",\"0\"");
        assert_eq!(shown.next().unwrap(), r#""SET","after","1""#);
        // The end of the server is the end.
        drop(server);
        assert_eq!(shown.count(), 0);
        assert!(child.wait().unwrap().success());
    }
}

/// A certificate that signs itself, of `openssl req -x509`, with these names: its file and that of its key.
fn self_signed(folder: &Folder, name: &str, names: &str) -> Option<[String; 2]> {
    let [pem, key] = [format!("{name}.pem"), format!("{name}.key")];
    let line = format!(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext \
         subjectAltName={names} -keyout {key} -out {pem}"
    );
    let made = Command::new("openssl").args(line.split(' ')).current_dir(&folder.0).output();
    let Ok(made) = made else {
        println!("left out: openssl cannot be started");
        return None;
    };
    assert!(made.status.success(), "{made:?}");
    Some([folder.path(&pem), folder.path(&key)])
}

#[test]
fn a_certificate_that_signs_itself_is_trusted_where_it_is_given() {
    let folder = Folder::new();
    let Some([cert, key]) = self_signed(&folder, "server", "DNS:localhost,IP:127.0.0.1") else { return };
    let Some([other, _]) = self_signed(&folder, "other", "DNS:localhost,IP:127.0.0.1") else { return };
    let port = free_port().to_string();
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-auth-clients", "no"];
    let _server = Server::weft(&[&["--tls-port", &port][..], &files].concat());
    let cli = |flags: &[&str]| {
        let output = run(&[&["cli", "-p", &port], flags, &["PING"]].concat(), b"");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output))
    };
    for protocol in ["-2", "-3", "-4", "--http"] {
        for host in ["localhost", "127.0.0.1"] {
            let said = cli(&[protocol, "-h", host, "--tls", "--cacert", &cert]);
            assert_eq!(said, (true, "PONG\n".into()), "{protocol} {host}");
        }
        assert_eq!(cli(&[protocol, "--tls", "--insecure"]), (true, "PONG\n".into()));
        // Nobody vouches for it; it is not for that name; there is no TLS in what is sent.
        for (flags, hint) in [
            (&["--tls"][..], "--cacert FILE trusts an authority"),
            (&["--tls", "--cacert", &other], "--cacert FILE trusts an authority"),
            (&["--tls", "--cacert", &cert, "--sni", "elsewhere"], "--sni NAME"),
            (&[], "(--tls speaks it)"),
        ] {
            let (good, said) = cli(&[&[protocol][..], flags].concat());
            assert!(!good && said.contains(hint), "{protocol} {flags:?}: {said}");
            // Names of structures of Rust are nothing to anybody.
            assert!(!said.contains("UnknownIssuer") && !said.contains("DnsName"), "{said}");
            assert!(said.starts_with("Could not connect to the server at 127.0.0.1:"), "{said}");
        }
    }
    for tool in ["--scan", "--stat", "--bigkeys", "--latency"] {
        let output = run(&["cli", "-p", &port, tool], b"");
        assert!(stderr(&output).contains("(--tls speaks it)"), "{tool}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{tool}");
    }
}

#[test]
fn a_server_that_wants_a_certificate_is_said_to_want_one() {
    let folder = Folder::new();
    let Some([cert, key]) = self_signed(&folder, "server", "IP:127.0.0.1") else { return };
    let port = free_port().to_string();
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &cert];
    let _server = Server::weft(&[&["--tls-port", &port, "--tls-auth-clients", "yes"][..], &files].concat());
    for flags in [&["-2", "PING"][..], &["-3", "PING"], &["-4", "PING"], &["--http", "PING"], &["--scan"]] {
        let output = run(&[&["cli", "-p", &port, "--tls", "--cacert", &cert], flags].concat(), b"");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{flags:?}: {said}");
        assert!(
            said.contains("the server refused: it wants a certificate of the client"),
            "{flags:?}: {said}"
        );
        assert!(said.contains("(--cert FILE and --key FILE show one)"), "{flags:?}: {said}");
    }
    let output = run(&["bench", "-p", &port, "--tls", "--cacert", &cert, "-t", "get", "-n", "1"], b"");
    assert!(stderr(&output).contains("--cert FILE"), "{}", stderr(&output));
}

/// Redis waits for the rest of what it takes for a long request.
#[test]
fn a_port_that_never_answers_a_handshake_is_suspected_to_be_without_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let words = [
        &["cli", "-p", &port, "--tls", "-t", "0.2", "PING"][..],
        &["bench", "-p", &port, "--tls", "--timeout", "0.2", "-t", "get", "-n", "1"],
    ];
    for words in words {
        let output = run(words, b"");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("(does it offer TLS on this port?)"), "{}", stderr(&output));
    }
    drop(listener);
}

#[test]
fn a_port_without_tls_is_said_to_be_one() {
    // As servers answer what they cannot read.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut hello = [0; 64];
            assert!(stream.read(&mut hello).unwrap() > 0);
            stream.write_all(b"-ERR Protocol error\r\n").unwrap();
        }
    });
    for protocol in ["-2", "-3", "-4", "--http"] {
        let output = run(&["cli", "-p", &port, "--tls", protocol, "PING"], b"");
        assert!(stderr(&output).contains("the server answers without TLS"), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(1));
    }
}
