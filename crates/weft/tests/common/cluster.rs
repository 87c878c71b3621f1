//! Clusters of real servers for tests: Redis and Valkey, as many nodes as asked for, each with a folder and ports of
//! its own.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use super::Folder;
use super::servers::{LONG, built_valkey};
use super::skipped::skipped;

/// Attempts to start a node: somebody else may take its port first.
const ATTEMPTS: usize = 10;

/// The servers that can be nodes: `redis-server`, and `valkey-server` where it is installed or where
/// `scripts/valkey-driver` has built it.
pub(crate) fn binaries() -> Vec<PathBuf> {
    let valkey = built_valkey().filter(|path| path.exists()).unwrap_or_else(|| "valkey-server".into());
    let found = |path: &PathBuf| Command::new(path).arg("--version").output().is_ok();
    let all: Vec<PathBuf> = [PathBuf::from("redis-server"), valkey].into_iter().filter(found).collect();
    if all.is_empty() {
        skipped("neither redis-server nor valkey-server is installed");
    }
    all
}

/// Those that have TLS: `redis-server`, and Valkey as `scripts/valkey-tls` has built it.
pub(crate) fn tls_binaries() -> Vec<PathBuf> {
    let beside = |path: &PathBuf| {
        let text = path.to_str()?;
        text.contains("/source/src/").then(|| text.replace("/source/src/", "/source-tls/src/").into())
    };
    let all = binaries().into_iter().map(|path| beside(&path).unwrap_or(path));
    // A server without TLS does not know the directive; one with it does not like the value.
    let has = |path: &PathBuf| {
        let said = Command::new(path).args(["--tls-cluster", "none"]).output();
        said.is_ok_and(|said| {
            let text = [said.stdout, said.stderr].concat();
            String::from_utf8_lossy(&text).contains("must be 'yes' or 'no'")
        })
    };
    let all: Vec<PathBuf> = all.filter(has).collect();
    if all.is_empty() {
        println!("left out: no server of others is installed that has TLS");
    }
    all
}

/// A server over TCP, which ends with the value.
pub(crate) struct Node {
    child: Child,
    pub(crate) port: u16,
    _folder: Folder,
}

impl Node {
    /// `options` are lines of the configuration, in which `PORT` stands for the port.
    pub(crate) fn start(binary: &PathBuf, options: &str) -> Node {
        let started = (0..ATTEMPTS).find_map(|_| Node::attempt(binary, options));
        started.unwrap_or_else(|| panic!("{} starts on a free port", binary.display()))
    }

    /// A node of a cluster, which knows nobody yet.
    pub(crate) fn of_cluster(binary: &PathBuf) -> Node {
        Node::of_cluster_with(binary, "")
    }

    pub(crate) fn of_cluster_with(binary: &PathBuf, options: &str) -> Node {
        let bus = free_port();
        let options =
            format!("{options}cluster-enabled yes\ncluster-port {bus}\ncluster-node-timeout 10000\n");
        Node::start(binary, &options)
    }

    fn attempt(binary: &PathBuf, options: &str) -> Option<Node> {
        let folder = Folder::new();
        let port = free_port();
        let folder_path = folder.path("");
        let options = options.replace("PORT", &port.to_string());
        let config = format!(
            "port {port}\nbind 127.0.0.1\nsave \"\"\nappendonly no\nrepl-diskless-sync-delay 0\ndir {folder_path}\n{options}"
        );
        let config = folder.file("server.conf", config.as_bytes());
        let mut child = Command::new(binary)
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let output = child.stdout.take()?;
        let (ready, is_ready) = mpsc::channel();
        // Read to its end, so that the server never waits for whoever reads it.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if line.contains("eady to accept connections") {
                    let _ = ready.send(());
                }
            }
        });
        let node = Node { child, port, _folder: folder };
        // A server that cannot listen ends, and with it the thread that reads.
        is_ready.recv_timeout(LONG).ok().map(|()| node)
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("a listener has an address").port()
}
