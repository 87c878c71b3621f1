//! Owns: running the same commands on Weft and on its peer, and finding where they differ. Does not own: which
//! commands, how Weft runs them (`crate::ours`).

use std::collections::BTreeMap;
use std::fmt;
use std::mem::take;

use weft_engine::reply::Protocol;
use weft_protocol::Reply;

use crate::accepted::{self, Accepted, SERVES, WAITS, accepts, ends_round};
use crate::compare::{Rule, counts, each_key, reruns, show};
use crate::mode::{Mode, Part};
use crate::ours::{Came, Entry, Heard, Ours, team_of_event};
use crate::peer::Peer;
use crate::server::Patience;

/// Clients that run the commands of a round on one thread; of two threads they are [`RUNNERS`].
pub(crate) const TEAM: usize = 3;
pub(crate) const RUNNERS: usize = 2 * TEAM;
/// The client that compares states, the one that hears the keyspace events, the one that tracks keys, and the one that
/// administrates Weft's side alone.
const LOOKER: usize = RUNNERS;
pub(crate) const LISTENER: usize = RUNNERS + 1;
pub(crate) const TRACKER: usize = RUNNERS + 2;
pub(crate) const ADMIN: usize = RUNNERS + 3;
/// Commands that are sent to the peer together at most.
const TOGETHER_MAX: usize = 100;

/// A command of a round.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Who runs it.
    pub(crate) client: usize,
    /// Its words.
    pub(crate) words: Vec<Vec<u8>>,
    /// How its replies are compared.
    pub(crate) rule: Rule,
    /// Whether a batch ends with it.
    pub(crate) ends_batch: bool,
    /// The time that passes behind it, when a batch ends with it.
    pub(crate) after_ms: u64,
}

impl Step {
    /// A step of the first client, and a batch of its own.
    pub(crate) const fn new(rule: Rule, words: Vec<Vec<u8>>) -> Self {
        Self { client: 0, words, rule, ends_batch: true, after_ms: 0 }
    }
    /// A step of the client that compares states.
    pub(crate) fn look(rule: Rule, words: &[&[u8]]) -> Self {
        Self { client: LOOKER, ..Self::new(rule, words.iter().map(|word| word.to_vec()).collect()) }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = match (self.ends_batch, self.after_ms) {
            (false, _) => "",
            (true, 0) => "  |",
            (true, ms) => &format!("  | {ms} ms pass"),
        };
        write!(f, "{}> {}{after}", self.client, command(&self.words))
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
        write!(f, "    Weft: {}\n    peer: {}", cut(&self.ours), cut(&self.theirs))
    }
}

/// What was compared so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Commands that both have run.
    pub(crate) commands: u64,
    /// Of those, commands that waited.
    waits: u64,
    /// Events and invalidations.
    events: u64,
    /// Keys whose state was compared.
    pub(crate) keys: u64,
}

impl Tally {
    /// What has come since then, in words.
    pub(crate) fn since(self, before: Self) -> String {
        let (commands, waits) = (self.commands - before.commands, self.waits - before.waits);
        let (events, keys) = (self.events - before.events, self.keys - before.keys);
        format!("{commands} commands, {waits} of them waited; compared: {keys} keys, {events} events")
    }
}

/// What is known of a client while its replies are compared.
#[derive(Default)]
struct Client {
    /// The command that it waits with.
    waiting: Option<Step>,
    /// What it has queued.
    queued: Vec<Step>,
}

/// Weft and its peer.
pub(crate) struct Pair {
    ours: Ours,
    pub(crate) peer: Box<dyn Peer>,
    mode: Mode,
    pub(crate) accepted: Vec<Accepted>,
    protocol: Protocol,
    clients: BTreeMap<usize, Client>,
    /// What a client has run here and not yet there.
    pending: Vec<(Step, Reply)>,
    /// What the last transaction ran.
    executed: Vec<Step>,
    /// An accepted difference has come that goes on to what follows: the round ends.
    over: bool,
    pub(crate) tally: Tally,
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
    pub(crate) fn new(mut peer: Box<dyn Peer>, mode: Mode) -> Self {
        for line in mode.settings() {
            peer.admin(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        }
        Self {
            ours: Ours::new(mode),
            mode,
            accepted: accepted::read(peer.kind()),
            peer,
            protocol: Protocol::Resp2,
            clients: BTreeMap::new(),
            pending: Vec::new(),
            executed: Vec::new(),
            over: false,
            tally: Tally::default(),
        }
    }

    pub(crate) fn serves(&self, id: weft_protocol::table::CommandId) -> bool {
        self.ours.serves(id)
    }
    /// Whether the peer is Weft too, to which nothing is left to chance.
    pub(crate) fn is_twin(&self) -> bool {
        self.peer.kind() == "weft"
    }

    /// Runs a round from empty databases.
    pub(crate) fn round(&mut self, steps: &[Step], protocol: Protocol) -> Result<(), Difference> {
        self.protocol = protocol;
        self.ours.begin(protocol);
        self.client(LISTENER);
        if self.is_twin() {
            // What clients say first is not counted on either side.
            (0..self.mode.teams() * TEAM).chain([TRACKER]).for_each(|client| {
                self.client(client);
            });
        }
        let outcome = self.run(steps);
        self.pending.clear();
        self.clients.clear();
        self.over = false;
        self.ours.end();
        self.peer.end();
        outcome
    }

    fn run(&mut self, steps: &[Step]) -> Result<(), Difference> {
        self.look(Rule::Exact, &[b"FLUSHALL"])?;
        self.look(Rule::Exact, &[b"FUNCTION", b"FLUSH"])?;
        self.look(Rule::Exact, if self.peer.kind() == "redis" { &FRESH[..FRESH.len() - 4] } else { FRESH })?;
        if self.is_twin() {
            self.look(Rule::Exact, &[b"CONFIG", b"RESETSTAT"])?;
        }
        self.catch_up()?;
        self.set_clock();
        let entries = self.ours.run(steps);
        self.follow(entries)?;
        self.catch_up()?;
        if self.over {
            return Ok(());
        }
        for at in self.ours.waiting() {
            self.see_waiting(at)?;
        }
        crate::state::compare(self)?;
        self.catch_up()?;
        if self.mode.has(Part::Events) {
            let (ours, theirs) = (self.ours.take_events(), self.peer.heard(LISTENER));
            if self.peer.kind() != "redis" {
                self.compare_heard(ours, theirs)?;
            }
        }
        if self.mode.has(Part::Tracked) && self.is_twin() && !self.mode.has(Part::Threads) {
            let (ours, theirs) = (self.ours.take_pushes(), self.peer.heard(TRACKER));
            let ours = ours.into_iter().flat_map(|(_, push)| each_key(push)).map(|key| (None, key));
            self.compare_heard(ours.collect(), theirs.into_iter().flat_map(each_key).collect())?;
        }
        if self.is_twin() { self.compare_counts() } else { Ok(()) }
    }

    /// Who a client is on the other side; it connects when it is first needed.
    fn client(&mut self, at: usize) -> &mut Client {
        if !self.clients.contains_key(&at) {
            // Whoever tracks is sent pushes.
            let resp3 = at == TRACKER && self.protocol == Protocol::Resp2;
            self.peer.connect(at, if resp3 { Protocol::Resp3 } else { self.protocol });
            for line in self.mode.greeting(at) {
                self.peer.greet(at, &line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
            }
        }
        self.clients.entry(at).or_default()
    }

    /// What was heard is the same, in the same order.
    fn compare_heard(&mut self, ours: Heard, mut theirs: Vec<Reply>) -> Result<(), Difference> {
        theirs.sort_by_key(team_of_event);
        let mut theirs = theirs.into_iter();
        for (step, ours) in ours {
            self.tally.events += 1;
            let theirs = theirs.next().as_ref().map_or("nothing".into(), show);
            if show(&ours) != theirs {
                return Err(Difference { step, ours: show(&ours), theirs });
            }
        }
        match theirs.next() {
            Some(more) => Err(Difference { step: None, ours: "nothing".into(), theirs: show(&more) }),
            None => Ok(()),
        }
    }

    /// What INFO counts of the commands and the keys is the same.
    fn compare_counts(&mut self) -> Result<(), Difference> {
        let info: [&[u8]; 2] = [b"INFO", b"everything"];
        let (ours, theirs) = (self.ours.admin(&info), self.peer.admin(&info));
        // A script that met a key which another thread had locked ran again, and what it ran before counts too.
        if reruns(&ours) != reruns(&theirs) {
            return Ok(());
        }
        let (ours, theirs) = (counts(&ours), counts(&theirs));
        let missing = |one: &[String], other: &[String]| -> String {
            one.iter().filter(|line| !other.contains(line)).cloned().collect::<Vec<_>>().join("; ")
        };
        if ours == theirs {
            return Ok(());
        }
        let (ours, theirs) = (missing(&ours, &theirs), missing(&theirs, &ours));
        Err(Difference { step: None, ours: format!("counts {ours}"), theirs: format!("counts {theirs}") })
    }

    /// Both see the same time.
    fn set_clock(&mut self) {
        if let Some(now_ms) = self.peer.now_ms() {
            self.ours.set_clock(now_ms);
        }
    }

    /// Runs a command of the client that compares on both sides and gives Weft's reply.
    pub(crate) fn look(&mut self, rule: Rule, words: &[&[u8]]) -> Result<Option<Reply>, Difference> {
        self.set_clock();
        let entries = self.ours.run(std::slice::from_ref(&Step::look(rule, words)));
        let reply = entries.iter().find_map(|entry| match entry {
            Entry::Ran(_, Came::Reply(reply)) => Some(reply.clone()),
            _ => None,
        });
        self.follow(entries)?;
        Ok(reply)
    }

    /// Has the peer do what Weft has done, and compares. The last commands may be left to [`Self::catch_up`]: a round
    /// trip costs more than fifty commands.
    fn follow(&mut self, entries: Vec<Entry>) -> Result<(), Difference> {
        for at in 0..entries.len() {
            let outcome = self.follow_one(&entries[at]);
            if self.over {
                return Ok(());
            }
            if let Err(difference) = outcome {
                // Behind it, yet from the same batch, may stand why.
                let excuse = entries[at..].iter().find_map(|entry| match entry {
                    Entry::Served { client, by, .. } => Some((*client, by)),
                    _ => None,
                });
                if let Some((client, by)) = excuse
                    && self.may_leave_waiting(by)
                    && self.peer.is_waiting(client)
                {
                    self.over = true;
                    return Ok(());
                }
                return Err(difference);
            }
        }
        Ok(())
    }

    fn follow_one(&mut self, entry: &Entry) -> Result<(), Difference> {
        match entry {
            Entry::Ran(step, Came::Reply(reply)) => {
                self.tally.commands += 1;
                let full = self.pending.len() >= TOGETHER_MAX;
                if full || self.pending.last().is_some_and(|(last, _)| last.client != step.client) {
                    self.catch_up()?;
                }
                self.pending.push((step.clone(), reply.clone()));
                if ends_round(&self.accepted, &command(&step.words), &show(reply)) {
                    self.catch_up()?;
                    self.over = true;
                }
            }
            Entry::Ran(step, came) => {
                self.tally.commands += 1;
                self.catch_up()?;
                self.client(step.client);
                self.peer.send(step.client, &[self.mode.sent(step)]);
                if matches!(came, Came::Nothing) {
                    let theirs = self.peer.answer(step.client).as_ref().map_or("no reply".into(), show);
                    return Err(Difference { step: Some(step.clone()), ours: "no reply".into(), theirs });
                }
                self.tally.waits += 1;
                self.client(step.client).waiting = Some(step.clone());
                self.see_waiting(step.client)?;
            }
            Entry::Served { client, reply, by } => {
                self.catch_up()?;
                let waiting = self.client(*client).waiting.take().expect("who is served has waited");
                if self.peer.is_waiting(*client) {
                    self.over = self.may_leave_waiting(by);
                    let ours = format!("serves {waiting}: {}", show(reply));
                    let step = by.last().cloned();
                    return if self.over {
                        Ok(())
                    } else {
                        Err(Difference { step, ours, theirs: WAITS.into() })
                    };
                }
                self.meet(*client, &waiting, reply)?;
            }
            Entry::Extra { client, reply } => {
                self.catch_up()?;
                let ours = format!("one more reply for {client}: {}", show(reply));
                return Err(Difference { step: None, ours, theirs: "nothing".into() });
            }
            Entry::Passed(ms) => {
                self.catch_up()?;
                self.peer.pass(*ms);
            }
        }
        Ok(())
    }

    /// Has the peer run what it has not run yet.
    fn catch_up(&mut self) -> Result<(), Difference> {
        let pending = take(&mut self.pending);
        let Some((first, _)) = pending.first() else { return Ok(()) };
        let at = first.client;
        self.client(at);
        let words: Vec<Vec<Vec<u8>>> = pending.iter().map(|(step, _)| self.mode.sent(step)).collect();
        self.peer.send(at, &words);
        pending.iter().try_for_each(|(step, reply)| self.meet(at, step, reply))
    }

    /// Compares a reply of Weft with the peer's next one to the same client.
    fn meet(&mut self, at: usize, step: &Step, ours: &Reply) -> Result<(), Difference> {
        let theirs = self.peer.answer(at);
        let client = self.client(at);
        let queued = match ours {
            Reply::Simple(text) if text == b"QUEUED" => {
                client.queued.push(step.clone());
                Vec::new()
            }
            Reply::Array(_) | Reply::Error(_) | Reply::Simple(_) | Reply::Null | Reply::NullArray
                if ends_multi(step) =>
            {
                take(&mut client.queued)
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
        let none = if self.peer.is_waiting(at) { WAITS } else { "no reply" };
        let (ours, theirs) = (show(ours), theirs.as_ref().map_or(none.into(), show));
        Err(Difference { step: Some(step.clone()), ours, theirs })
    }

    /// Whether one of some commands, or of the last transaction, may serve somebody who waits on the server.
    fn may_leave_waiting(&self, by: &[Step]) -> bool {
        let ran = by.iter().chain(&self.executed);
        ran.into_iter().any(|step| accepts(&self.accepted, &command(&step.words), SERVES, WAITS))
    }

    /// Whether two replies are the same, or differ as they are meant to.
    fn agree(&self, step: &Step, ours: &Reply, theirs: &Reply) -> bool {
        step.rule.agree(ours, theirs)
            || accepts(&self.accepted, &command(&step.words), &show(ours), &show(theirs))
    }

    /// Sees to it that a client that waits on our side waits on the other too.
    fn see_waiting(&mut self, at: usize) -> Result<(), Difference> {
        let mut patience = Patience::new();
        while patience.lasts() {
            if self.peer.is_waiting(at) {
                return Ok(());
            }
            if let Some(reply) = self.peer.answer_now(at) {
                let step = self.client(at).waiting.clone();
                return Err(Difference { step, ours: WAITS.into(), theirs: show(&reply) });
            }
            if self.is_twin() {
                break;
            }
        }
        Err(Difference::other("a client waits here and is not seen waiting on the other side"))
    }
}

fn ends_multi(step: &Step) -> bool {
    ["EXEC", "DISCARD"].iter().any(|name| step.words[0].eq_ignore_ascii_case(name.as_bytes()))
}
