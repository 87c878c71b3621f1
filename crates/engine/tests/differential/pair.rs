//! Owns: running the same commands on Weft and on the server, and finding where they differ. Does not own: which
//! commands.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use weft_engine::reply::Protocol;
use weft_protocol::Reply;

use crate::accepted::{self, Accepted, SERVES, WAITS, accepts, ends_round};
use crate::compare::{Rule, show};
use crate::server::{Connection, Patience, Server};
use crate::support::Bench;

/// Clients of a round. One more compares the states, and another hears the keyspace events.
pub(crate) const CLIENTS: usize = 3;
const LISTENER: usize = CLIENTS + 1;
/// The events that are compared. Those of missed keys (`m`) too where `WEFT_DIFF_EVENTS` says so: which look-up of a
/// command counts as one is the same for strings, lists, hashes, sets, sorted sets and keys, not yet for all others.
const EVENTS: &str = "AKEn";
/// Commands that are sent to the server together at most.
const BATCH_MAX: usize = 100;

/// A command of a round.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Who runs it.
    pub(crate) client: usize,
    /// Its words.
    pub(crate) words: Vec<Vec<u8>>,
    /// How its replies are compared.
    pub(crate) rule: Rule,
}

impl Step {
    /// A step of the client that compares states.
    pub(crate) fn look(rule: Rule, words: &[&[u8]]) -> Self {
        Self { client: CLIENTS, words: words.iter().map(|word| word.to_vec()).collect(), rule }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}> {}", self.client, command(&self.words))
    }
}

/// A command as text: what is not plain is in quotes, long words are cut.
pub(crate) fn command(words: &[Vec<u8>]) -> String {
    let show = |word: &Vec<u8>| {
        let plain = !word.is_empty() && word.iter().all(|&byte| byte.is_ascii_graphic() && byte != b'"');
        let text = word.escape_ascii().to_string();
        let text = if text.len() > 200 { format!("{}...({} bytes)", &text[..60], word.len()) } else { text };
        if plain { text } else { format!("\"{text}\"") }
    };
    words.iter().map(show).collect::<Vec<_>>().join(" ")
}

/// Where the two differ.
#[derive(Debug)]
pub(crate) struct Difference {
    step: Option<Step>,
    ours: String,
    theirs: String,
}

impl Difference {
    pub(crate) fn other(text: &str) -> Self {
        Self { step: None, ours: text.into(), theirs: String::new() }
    }
    /// What differences of one cause have in common, as far as can be told.
    pub(crate) fn kind(&self) -> String {
        let name = self
            .step
            .as_ref()
            .map_or(String::new(), |step| String::from_utf8_lossy(&step.words[0]).to_ascii_uppercase());
        let cut = |text: &str| {
            let error = text.starts_with('-');
            text.chars().take(if error { 40 } else { 1 }).collect::<String>()
        };
        format!("{name}: {} / {}", cut(&self.ours), cut(&self.theirs))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = &self.step {
            writeln!(f, "{step}")?;
        }
        let cut = |text: &str| text.chars().take(2000).collect::<String>();
        write!(f, "    Weft:   {}\n    server: {}", cut(&self.ours), cut(&self.theirs))
    }
}

/// One client, on both sides.
struct Client {
    ours: u32,
    theirs: Connection,
    /// Its CLIENT ID on the server.
    id: i64,
    /// The command that it waits with.
    waiting: Option<Step>,
    /// What it has queued.
    queued: Vec<Step>,
}

/// Weft and the server.
pub(crate) struct Pair {
    pub(crate) bench: Bench,
    pub(crate) server: Server,
    admin: Connection,
    pub(crate) accepted: Vec<Accepted>,
    clients: Vec<Client>,
    /// What a client has run here and not yet there.
    batch: Vec<(Step, Vec<Reply>)>,
    /// What the last transaction ran.
    executed: Vec<Step>,
    /// An accepted difference has come that goes on to what follows: the round ends.
    over: bool,
    /// The keyspace events of the round, each with the command that it comes from.
    events: Vec<(Step, Reply)>,
    /// How many were compared.
    pub(crate) events_compared: u64,
    /// Commands that both have run.
    pub(crate) commands: u64,
    /// Of those, commands that waited.
    pub(crate) waits: u64,
    /// Keys whose state was compared.
    pub(crate) keys_compared: u64,
}

/// What groups may change.
const FRESH: &[&[u8]] = &[
    b"CONFIG",
    b"SET",
    b"hash-max-listpack-entries",
    b"512",
    b"hash-max-listpack-value",
    b"64",
    b"set-max-intset-entries",
    b"512",
    b"zset-max-listpack-entries",
    b"128",
    b"zset-max-listpack-value",
    b"64",
    // Redis 7.0 has not those that follow.
    b"set-max-listpack-entries",
    b"128",
    b"set-max-listpack-value",
    b"64",
];

impl Pair {
    pub(crate) fn new(server: Server) -> Self {
        let (bench, accepted) = (Bench::new(), accepted::read(server.kind));
        let mut admin = server.connect(2);
        let events = std::env::var("WEFT_DIFF_EVENTS").unwrap_or(EVENTS.into());
        admin.ask(&[b"CONFIG", b"SET", b"notify-keyspace-events", events.as_bytes()]);
        let flags = weft_engine::notify::parse(&events).expect("letters of events");
        bench.engine.settings.notify_flags.store(flags, Relaxed);
        Self {
            bench,
            server,
            admin,
            accepted,
            clients: Vec::new(),
            batch: Vec::new(),
            executed: Vec::new(),
            over: false,
            events: Vec::new(),
            events_compared: 0,
            commands: 0,
            waits: 0,
            keys_compared: 0,
        }
    }

    /// Whether the server has a command.
    pub(crate) fn server_has(&mut self, name: &str) -> bool {
        let reply = self.admin.ask(&[b"COMMAND", b"INFO", name.as_bytes()]);
        !matches!(&reply, Reply::Array(items) if matches!(items[..], [Reply::Null | Reply::NullArray]))
    }

    /// Runs a round from empty databases.
    pub(crate) fn round(&mut self, steps: &[Step], protocol: Protocol) -> Result<(), Difference> {
        for _ in 0..=LISTENER {
            let mut theirs = self.server.connect(if protocol == Protocol::Resp2 { 2 } else { 3 });
            let Reply::Int(id) = theirs.ask(&[b"CLIENT", b"ID"]) else { panic!("CLIENT ID") };
            let ours = self.bench.connect(protocol);
            self.clients.push(Client { ours, theirs, id, waiting: None, queued: Vec::new() });
        }
        let outcome = self.run(steps);
        self.end();
        outcome
    }

    fn run(&mut self, steps: &[Step]) -> Result<(), Difference> {
        self.step(&Step::look(Rule::Exact, &[b"FLUSHALL"]))?;
        self.step(&Step::look(
            Rule::Exact,
            if self.server.kind == "redis" { &FRESH[..FRESH.len() - 4] } else { FRESH },
        ))?;
        self.catch_up()?;
        // The forms of this answer differ, which is known.
        let listen: [&[u8]; 2] = [b"PSUBSCRIBE", b"__key*__:*"];
        self.bench.run_args(self.clients[LISTENER].ours, &listen);
        self.clients[LISTENER].theirs.ask(&listen);
        for step in steps {
            let reply = self.step(step)?;
            if self.over
                || reply.is_some_and(|reply| ends_round(&self.accepted, &command(&step.words), &show(&reply)))
            {
                return self.catch_up();
            }
        }
        self.catch_up()?;
        for at in 0..CLIENTS {
            if self.clients[at].waiting.is_some() {
                self.see_waiting(at)?;
            }
        }
        crate::state::compare(self)?;
        self.catch_up()?;
        self.compare_events()
    }

    /// The keyspace events of a round are the same, in the same order.
    fn compare_events(&mut self) -> Result<(), Difference> {
        if self.server.kind == "redis" {
            // Redis 7.0 has other events where a time has passed already.
            return Ok(());
        }
        let listener = &mut self.clients[LISTENER];
        listener.theirs.send_all(std::iter::once(&[&b"PING"[..]][..]));
        let mut theirs = Vec::new();
        while let Some(reply) = listener.theirs.receive() {
            match reply {
                Reply::Array(ref words) | Reply::Push(ref words) if words.len() == 4 => theirs.push(reply),
                _ => break,
            }
        }
        let mut theirs = theirs.into_iter();
        for (step, ours) in std::mem::take(&mut self.events) {
            self.events_compared += 1;
            let theirs = theirs.next().as_ref().map_or("no event".into(), show);
            if show(&ours) != theirs {
                return Err(Difference { step: Some(step), ours: show(&ours), theirs });
            }
        }
        match theirs.next() {
            Some(more) => Err(Difference { step: None, ours: "no event".into(), theirs: show(&more) }),
            None => Ok(()),
        }
    }

    /// Ends all clients on both sides; when this returns, nobody waits any more.
    fn end(&mut self) {
        self.batch.clear();
        self.events.clear();
        self.over = false;
        let clients = std::mem::take(&mut self.clients);
        let ids: Vec<String> = clients.iter().map(|client| client.id.to_string()).collect();
        let kills: Vec<Vec<&[u8]>> =
            ids.iter().map(|id| vec![&b"CLIENT"[..], b"KILL", b"ID", id.as_bytes()]).collect();
        self.admin.send_all(kills.iter().map(Vec::as_slice));
        for client in clients {
            self.bench.disconnect(client.ours);
            assert!(self.admin.receive().is_some(), "CLIENT KILL");
        }
        self.bench.maintain();
    }

    /// Both see the same time.
    fn set_clock(&self) {
        let real = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis() as u64;
        let ours = weft_store::Clock::now_ms(&*self.bench.clock);
        self.bench.clock.advance(real.saturating_sub(ours));
    }

    /// Runs a command on both sides and gives Weft's reply, if it does not wait. The server may get it later, together
    /// with those that the same client runs next: a round trip costs more than fifty commands.
    pub(crate) fn step(&mut self, step: &Step) -> Result<Option<Reply>, Difference> {
        let at = step.client;
        if self.clients[at].waiting.is_some() {
            return Ok(None);
        }
        if self.batch.len() >= BATCH_MAX || self.batch.last().is_some_and(|(last, _)| last.client != at) {
            self.catch_up()?;
        }
        self.commands += 1;
        self.set_clock();
        let words: Vec<&[u8]> = step.words.iter().map(Vec::as_slice).collect();
        let own = self.bench.run_args(self.clients[at].ours, &words);
        let given = own.first().cloned();
        self.batch.push((step.clone(), own));
        let heard = self.bench.take(self.clients[LISTENER].ours);
        self.events.extend(heard.into_iter().map(|event| (step.clone(), event)));
        for other in 0..LISTENER {
            for reply in self.bench.take(self.clients[other].ours) {
                self.catch_up()?;
                let waiting = self.clients[other].waiting.take();
                if let Some(waiting) = &waiting
                    && self.is_waiting_there(other)
                {
                    self.over = self.may_leave_waiting(step);
                    let ours = format!("serves {waiting}: {}", show(&reply));
                    let difference = Difference { step: Some(step.clone()), ours, theirs: WAITS.into() };
                    return if self.over { Ok(given) } else { Err(difference) };
                }
                let step = waiting.unwrap_or_else(|| step.clone());
                self.meet(other, &step, &reply)?;
            }
        }
        if self.bench.is_waiting(self.clients[at].ours) {
            self.catch_up()?;
            self.waits += 1;
            self.clients[at].waiting = Some(step.clone());
            self.see_waiting(at)?;
        }
        Ok(given)
    }

    /// Has the server run what it has not run yet.
    fn catch_up(&mut self) -> Result<(), Difference> {
        let batch = std::mem::take(&mut self.batch);
        let Some((first, _)) = batch.first() else { return Ok(()) };
        let at = first.client;
        let words: Vec<Vec<&[u8]>> =
            batch.iter().map(|(step, _)| step.words.iter().map(Vec::as_slice).collect()).collect();
        self.clients[at].theirs.send_all(words.iter().map(Vec::as_slice));
        for (step, replies) in &batch {
            for reply in replies {
                self.meet(at, step, reply)?;
            }
        }
        Ok(())
    }

    /// Compares a reply of Weft with the server's next one to the same client.
    fn meet(&mut self, at: usize, step: &Step, ours: &Reply) -> Result<(), Difference> {
        let theirs = self.answer(at);
        let client = &mut self.clients[at];
        let queued = match ours {
            Reply::Simple(text) if text == b"QUEUED" => {
                client.queued.push(step.clone());
                Vec::new()
            }
            Reply::Array(_) | Reply::Error(_) | Reply::Simple(_) | Reply::Null | Reply::NullArray
                if ends_multi(step) =>
            {
                std::mem::take(&mut client.queued)
            }
            _ => Vec::new(),
        };
        self.executed.clone_from(&queued);
        let agree = match (&theirs, ours) {
            (Some(Reply::Array(theirs)), Reply::Array(ours))
                if queued.len() == ours.len() && ends_multi(step) =>
            {
                let mut each = queued.iter().zip(ours).zip(theirs);
                theirs.len() == ours.len()
                    && each.all(|((step, ours), theirs)| self.agree(step, ours, theirs))
            }
            (Some(theirs), ours) => self.agree(step, ours, theirs),
            (None, _) => false,
        };
        if agree {
            return Ok(());
        }
        let none = if self.is_waiting_there(at) { WAITS } else { "no reply" };
        let (ours, theirs) = (show(ours), theirs.as_ref().map_or(none.into(), show));
        Err(Difference { step: Some(step.clone()), ours, theirs })
    }

    /// The server's next reply to a client. Nothing when there is none in time, and soon when the client waits there.
    fn answer(&mut self, at: usize) -> Option<Reply> {
        let mut patience = Patience::new();
        loop {
            let reply = self.clients[at].theirs.look();
            if reply.is_some() {
                return reply;
            }
            if self.is_waiting_there(at) {
                // What the server had for a client before it waited is sent when it answers somebody else again.
                self.admin.ask(&[b"PING"]);
                return self.clients[at].theirs.try_receive();
            }
            if !patience.lasts() {
                return None;
            }
        }
    }

    /// Whether a client waits for a key on the server, now. Who is served is so together with the command that serves
    /// him, so that this is certain behind the reply to that command.
    fn is_waiting_there(&mut self, at: usize) -> bool {
        let id = self.clients[at].id.to_string();
        let Reply::Bulk(line) = self.admin.ask(&[b"CLIENT", b"LIST", b"ID", id.as_bytes()]) else {
            return false;
        };
        let flags = line.split(|&byte| byte == b' ').find_map(|word| word.strip_prefix(b"flags="));
        flags.is_some_and(|flags| flags.contains(&b'b'))
    }

    /// Whether a command, or a transaction with it, may serve somebody who waits on the server.
    fn may_leave_waiting(&self, step: &Step) -> bool {
        let ran = if ends_multi(step) { &self.executed[..] } else { std::slice::from_ref(step) };
        ran.iter().any(|step| accepts(&self.accepted, &command(&step.words), SERVES, WAITS))
    }

    /// Whether two replies are the same, or differ as they are meant to.
    fn agree(&self, step: &Step, ours: &Reply, theirs: &Reply) -> bool {
        step.rule.agree(ours, theirs)
            || accepts(&self.accepted, &command(&step.words), &show(ours), &show(theirs))
    }

    /// Sees to it that a client that waits on our side waits on the server too.
    fn see_waiting(&mut self, at: usize) -> Result<(), Difference> {
        let mut patience = Patience::new();
        while patience.lasts() {
            if self.is_waiting_there(at) {
                return Ok(());
            }
            if let Some(reply) = self.clients[at].theirs.try_receive() {
                let step = self.clients[at].waiting.clone();
                return Err(Difference { step, ours: WAITS.into(), theirs: show(&reply) });
            }
        }
        Err(Difference::other("a client waits here and is not seen waiting on the server"))
    }
}

fn ends_multi(step: &Step) -> bool {
    ["EXEC", "DISCARD"].iter().any(|name| step.words[0].eq_ignore_ascii_case(name.as_bytes()))
}
