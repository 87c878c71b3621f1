//! Owns: what Weft's engine is compared with, as [`Pair`](crate::pair::Pair) needs it; and one of two, a real server.
//! Does not own: the other, which is Weft itself on its full way (`crate::twin`); finding and starting a server.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use weft_engine::reply::Protocol;
use weft_protocol::Reply;

use crate::pair::{LISTENER, TRACKER};
use crate::server::{Connection, Patience, Server};

/// Somebody who runs the same commands. Clients have the numbers that the pair gives them.
pub(crate) trait Peer {
    /// `valkey`, `redis`, or `weft`.
    fn kind(&self) -> &'static str;
    /// Whether it has a command.
    fn has(&mut self, command: &str) -> bool;
    /// Runs a command of nobody's whose reply is not compared.
    fn admin(&mut self, words: &[&[u8]]) -> Reply;
    /// What the time is there; nothing where it passes as it is told.
    fn now_ms(&self) -> Option<u64>;
    /// Time passes, where it passes as it is told.
    fn pass(&mut self, ms: u64);
    fn connect(&mut self, client: usize, protocol: Protocol);
    /// Runs a command that a client begins with, whose reply is not compared.
    fn greet(&mut self, client: usize, words: &[&[u8]]);
    /// Runs commands of a client.
    fn send(&mut self, client: usize, commands: &[Vec<Vec<u8>>]);
    /// The next reply to a client. Nothing when there is none, or the client waits.
    fn answer(&mut self, client: usize) -> Option<Reply>;
    /// The next reply to a client, if it is there already.
    fn answer_now(&mut self, client: usize) -> Option<Reply>;
    /// Whether a client waits for a key, now. Who is served is so together with the command that serves him.
    fn is_waiting(&mut self, client: usize) -> bool;
    /// The pushes that a client has been sent.
    fn heard(&mut self, client: usize) -> Vec<Reply>;
    /// Ends all clients; when this returns, nobody waits any more.
    fn end(&mut self);
}

/// A real server.
pub(crate) struct Remote {
    pub(crate) server: Server,
    admin: Connection,
    /// Each with its CLIENT ID.
    clients: BTreeMap<usize, (Connection, String)>,
}

impl Remote {
    pub(crate) fn new(server: Server) -> Self {
        let admin = server.connect(2);
        Self { server, admin, clients: BTreeMap::new() }
    }
    fn client(&mut self, client: usize) -> &mut Connection {
        &mut self.clients.get_mut(&client).expect("it has connected").0
    }
}

impl Peer for Remote {
    fn kind(&self) -> &'static str {
        self.server.kind
    }
    fn has(&mut self, command: &str) -> bool {
        let reply = self.admin.ask(&[b"COMMAND", b"INFO", command.as_bytes()]);
        !matches!(&reply, Reply::Array(items) if matches!(items[..], [Reply::Null | Reply::NullArray]))
    }
    fn admin(&mut self, words: &[&[u8]]) -> Reply {
        self.admin.ask(words)
    }
    fn now_ms(&self) -> Option<u64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
        Some(now.as_millis() as u64)
    }
    fn pass(&mut self, _: u64) {}

    fn connect(&mut self, client: usize, protocol: Protocol) {
        let mut connection = self.server.connect(if protocol == Protocol::Resp2 { 2 } else { 3 });
        let Reply::Int(id) = connection.ask(&[b"CLIENT", b"ID"]) else { panic!("CLIENT ID") };
        self.clients.insert(client, (connection, id.to_string()));
    }

    fn greet(&mut self, client: usize, words: &[&[u8]]) {
        if client != TRACKER {
            self.client(client).ask(words);
        }
    }

    fn send(&mut self, client: usize, commands: &[Vec<Vec<u8>>]) {
        let words: Vec<Vec<&[u8]>> =
            commands.iter().map(|words| words.iter().map(Vec::as_slice).collect()).collect();
        self.client(client).send_all(words.iter().map(Vec::as_slice));
    }

    fn answer(&mut self, client: usize) -> Option<Reply> {
        let mut patience = Patience::new();
        loop {
            let reply = self.client(client).look();
            if reply.is_some() {
                return reply;
            }
            if self.is_waiting(client) {
                // What the server had for a client before it waited is sent when it answers somebody else again.
                self.admin.ask(&[b"PING"]);
                return self.client(client).try_receive();
            }
            if !patience.lasts() {
                return None;
            }
        }
    }

    fn answer_now(&mut self, client: usize) -> Option<Reply> {
        self.client(client).try_receive()
    }

    fn is_waiting(&mut self, client: usize) -> bool {
        let id = self.clients[&client].1.clone();
        let Reply::Bulk(line) = self.admin.ask(&[b"CLIENT", b"LIST", b"ID", id.as_bytes()]) else {
            return false;
        };
        let flags = line.split(|&byte| byte == b' ').find_map(|word| word.strip_prefix(b"flags="));
        flags.is_some_and(|flags| flags.contains(&b'b'))
    }

    fn heard(&mut self, client: usize) -> Vec<Reply> {
        if client != LISTENER || self.kind() == "redis" {
            // Redis 7.0 has other events where a time has passed already.
            return Vec::new();
        }
        let listener = self.client(client);
        listener.send_all(std::iter::once(&[&b"PING"[..]][..]));
        let mut heard = Vec::new();
        while let Some(reply) = listener.receive() {
            match reply {
                Reply::Array(ref words) | Reply::Push(ref words) if words.len() == 4 => heard.push(reply),
                _ => break,
            }
        }
        heard
    }

    fn end(&mut self) {
        let clients = std::mem::take(&mut self.clients);
        let kills: Vec<[&[u8]; 4]> =
            clients.values().map(|(_, id)| [&b"CLIENT"[..], b"KILL", b"ID", id.as_bytes()]).collect();
        self.admin.send_all(kills.iter().map(|kill| &kill[..]));
        for _ in &kills {
            assert!(self.admin.receive().is_some(), "CLIENT KILL");
        }
    }
}
