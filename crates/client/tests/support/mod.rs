//! Owns what the tests of the client share: a real server as a child process, and a scripted peer.

// Each test program uses its part; a test may unwrap.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod peer;

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a test waits for what must come: never reached when all is well, however busy the machine is.
pub const LONG: Duration = Duration::from_secs(240);

/// A Redis server on a port of its own, which ends with the value.
pub struct Server {
    child: Child,
    pub port: u16,
    pub socket: PathBuf,
    pub options: Vec<String>,
    dir: PathBuf,
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Server {
    /// None, with a line that says so, where no server is installed.
    pub fn start(options: &[&str]) -> Option<Server> {
        Self::start_with(|| options.iter().map(|option| option.to_string()).collect())
    }

    /// The same with options that are made anew for each try, as those with a port of their own must be.
    pub fn start_with(options: impl Fn() -> Vec<String>) -> Option<Server> {
        for _ in 0..5 {
            match Self::start_at(free_port(), options()) {
                Ok(Some(server)) => return Some(server),
                Ok(None) => continue,
                Err(error) => {
                    println!("left out: redis-server cannot be started: {error}");
                    return None;
                }
            }
        }
        panic!("five ports were taken");
    }

    /// None when the port is taken.
    fn start_at(port: u16, options: Vec<String>) -> std::io::Result<Option<Server>> {
        let dir = std::env::temp_dir().join(format!("weft-client-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        let socket = dir.join("redis.sock");
        let mut child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--save", "", "--daemonize", "no"])
            .arg("--unixsocket")
            .arg(&socket)
            .args(&options)
            .current_dir(&dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            if line.contains("Ready to accept connections")
                || line.contains("ready to accept connections at /")
            {
                // Whatever it says later is read and forgotten, so that it never blocks on its output.
                std::thread::spawn(move || lines.lines().count());
                return Ok(Some(Server { child, port, socket, options, dir }));
            }
            line.clear();
        }
        child.wait()?;
        Ok(None)
    }

    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
