//! Owns: Weft's side of a round: gathering batches, running them on one thread or two, and what came of it, in the
//! order in which it ran. Does not own: what it is compared with.

use std::collections::{BTreeMap, VecDeque};
use std::mem::take;
use std::thread;

use weft_engine::reply::Protocol;
use weft_protocol::Reply;

use crate::mode::{Mode, Part};
use crate::pair::{ADMIN, LISTENER, RUNNERS, Step, TEAM, TRACKER};
use crate::support::Bench;

/// Shards of an engine here. A round looks at all of them dozens of times, and of a server's thousand most would have
/// no key; in a few more keys meet.
pub(crate) const SHARDS: usize = 16;

/// What a step came to.
#[derive(Clone, Debug)]
pub(crate) enum Came {
    Reply(Reply),
    /// The client waits for a key.
    Waits,
    /// Neither, which is a mistake.
    Nothing,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Ran(Step, Came),
    /// A client that waited was answered, behind one of these steps.
    Served {
        client: usize,
        reply: Reply,
        by: Vec<Step>,
    },
    /// A reply that nobody asked for, which is a mistake.
    Extra {
        client: usize,
        reply: Reply,
    },
    /// Time passed.
    Passed(u64),
}

/// What was heard by who listens, with the step behind which it was.
pub(crate) type Heard = Vec<(Option<Step>, Reply)>;

/// A client of this side.
struct Client {
    number: u32,
    /// It waits for a key.
    waits: bool,
    /// Steps that a pause holds.
    held: VecDeque<Step>,
}

/// A worker and its clients.
struct Team {
    bench: Bench,
    mode: Mode,
    clients: BTreeMap<usize, Client>,
    /// The batch that is being gathered.
    fed: Vec<Step>,
    entries: Vec<Entry>,
    /// Keyspace events, and what who tracks keys is told.
    events: Heard,
    pushes: Heard,
}

/// Weft.
pub(crate) struct Ours {
    teams: Vec<Team>,
    mode: Mode,
    protocol: Protocol,
    /// Who sets the modes up.
    admin: u32,
}

impl Ours {
    pub(crate) fn new(mode: Mode) -> Self {
        let team = |bench| Team {
            bench,
            mode,
            clients: BTreeMap::new(),
            fed: Vec::new(),
            entries: Vec::new(),
            events: Vec::new(),
            pushes: Vec::new(),
        };
        let mut teams: Vec<Team> =
            Bench::team_of_shards(SHARDS, mode.teams() as u16).into_iter().map(team).collect();
        teams[0].bench.allow_debug();
        let admin = teams[0].bench.connect(Protocol::Resp2);
        let mut ours = Self { teams, mode, protocol: Protocol::Resp2, admin };
        for line in mode.settings().into_iter().chain(mode.own_settings()) {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            assert_eq!(ours.admin(&words), Reply::Simple("OK".into()), "{line}");
        }
        ours
    }

    /// Runs a command of nobody's.
    pub(crate) fn admin(&mut self, words: &[&[u8]]) -> Reply {
        let (admin, team) = (self.admin, &mut self.teams[0]);
        team.bench.run_args(admin, words).remove(0)
    }

    pub(crate) fn serves(&self, id: weft_protocol::table::CommandId) -> bool {
        self.teams[0].bench.engine.serves(id)
    }

    /// Both see the same time, if the other's passes by itself.
    pub(crate) fn set_clock(&self, now_ms: u64) {
        let bench = &self.teams[0].bench;
        bench.pass(now_ms.saturating_sub(bench.clock_ms()));
    }

    /// A round begins. Everybody connects, before a pause could hold what they say first.
    pub(crate) fn begin(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        for (at, team) in self.teams.iter_mut().enumerate() {
            for client in at * TEAM..(at + 1) * TEAM {
                team.number(client, protocol);
            }
        }
        for client in [LISTENER, TRACKER] {
            self.teams[0].number(client, protocol);
        }
    }

    /// Runs the steps of a round, each team's on a thread of its own.
    pub(crate) fn run(&mut self, steps: &[Step]) -> Vec<Entry> {
        let protocol = self.protocol;
        if steps.iter().all(|step| team_of(step.client) == 0) {
            steps.iter().for_each(|step| self.teams[0].step(step, protocol));
        } else {
            thread::scope(|scope| {
                for (at, team) in self.teams.iter_mut().enumerate() {
                    let own = steps.iter().filter(move |step| team_of(step.client) == at);
                    scope.spawn(move || {
                        own.for_each(|step| team.step(step, protocol));
                        team.run_batch();
                    });
                }
            });
        }
        self.finish();
        self.teams.iter_mut().flat_map(|team| take(&mut team.entries)).collect()
    }

    /// Nothing is left to run.
    fn finish(&mut self) {
        self.teams.iter_mut().for_each(Team::run_batch);
        if self.mode.has(Part::Pause) {
            self.admin(&[b"CLIENT", b"UNPAUSE"]);
            self.teams.iter_mut().for_each(Team::resume);
        }
        self.teams.iter_mut().for_each(Team::collect);
    }

    /// Who is still waiting.
    pub(crate) fn waiting(&self) -> Vec<usize> {
        let clients = self.teams.iter().flat_map(|team| &team.clients);
        clients.filter(|(_, client)| client.waits).map(|(&at, _)| at).collect()
    }

    /// Keyspace events, those of the databases of each team together.
    pub(crate) fn take_events(&mut self) -> Heard {
        let mut events = take(&mut self.teams[0].events);
        if self.mode.has(Part::Threads) {
            events.iter_mut().for_each(|(step, _)| *step = None);
        }
        events.sort_by_key(|(_, event)| team_of_event(event));
        events
    }

    /// What who tracks keys was told.
    pub(crate) fn take_pushes(&mut self) -> Heard {
        take(&mut self.teams[0].pushes)
    }

    /// Ends all clients.
    pub(crate) fn end(&mut self) {
        for team in &mut self.teams {
            team.fed.clear();
            team.bench.run_fed();
            for client in take(&mut team.clients).into_values() {
                team.bench.disconnect(client.number);
            }
            team.entries.clear();
            team.events.clear();
            team.pushes.clear();
        }
        self.teams[0].bench.maintain();
    }
}

/// Which team a client belongs to.
fn team_of(client: usize) -> usize {
    usize::from((TEAM..RUNNERS).contains(&client))
}

/// Which team's databases an event is about.
pub(crate) fn team_of_event(event: &Reply) -> usize {
    let (Reply::Push(words) | Reply::Array(words)) = event else { return 0 };
    let of_second = |word: &Reply| match word {
        Reply::Bulk(word) => [&b"@2__:"[..], b"@3__:"]
            .iter()
            .any(|db| word.starts_with(b"__key") && word.windows(db.len()).any(|part| part == *db)),
        _ => false,
    };
    usize::from(words.get(2).is_some_and(of_second))
}

impl Team {
    /// Who a client is here; it connects when it is first needed.
    fn number(&mut self, client: usize, protocol: Protocol) -> u32 {
        if let Some(known) = self.clients.get(&client) {
            return known.number;
        }
        // Whoever tracks is sent pushes.
        let protocol =
            if client == TRACKER && protocol == Protocol::Resp2 { Protocol::Resp3 } else { protocol };
        let first = team_of(client) * TEAM;
        let shares = self.mode.has(Part::Channels) && protocol == Protocol::Respb;
        let number = match self.clients.get(&first) {
            Some(first_client) if shares && client < RUNNERS => {
                self.bench.connect_channel(first_client.number, (client - first) as u16)
            }
            _ => self.bench.connect(protocol),
        };
        self.clients.insert(client, Client { number, waits: false, held: VecDeque::new() });
        for line in self.mode.greeting(client) {
            self.bench.run(number, line);
        }
        number
    }

    /// The client itself, or another of its team if it waits.
    fn awake(&self, client: usize) -> Option<usize> {
        let waits = |client: &usize| self.clients.get(client).is_some_and(|client| client.waits);
        let first = team_of(client) * TEAM;
        let others = (first..first + TEAM).filter(|_| client < RUNNERS);
        std::iter::once(client).chain(others).find(|client| !waits(client))
    }

    fn step(&mut self, step: &Step, protocol: Protocol) {
        if step.client == ADMIN {
            return self.administrate(step, protocol);
        }
        let Some(client) = self.awake(step.client) else { return };
        let step = &Step { client, ..step.clone() };
        let number = self.number(client, protocol);
        let words = self.mode.sent(step);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let full = self.bench.feed(number, &words);
        self.fed.push(step.clone());
        if full || step.ends_batch {
            self.run_batch();
            if step.after_ms > 0 {
                self.bench.pass(step.after_ms);
                self.entries.push(Entry::Passed(step.after_ms));
            }
        }
    }

    /// Something that only this side does, between two batches.
    fn administrate(&mut self, step: &Step, protocol: Protocol) {
        self.run_batch();
        let number = self.number(ADMIN, protocol);
        let words: Vec<&[u8]> = step.words.iter().map(Vec::as_slice).collect();
        assert_eq!(self.bench.run_args(number, &words), [Reply::Simple("OK".into())], "{step}");
        self.resume();
    }

    /// Runs the batch that was gathered, and sorts out what came of it.
    fn run_batch(&mut self) {
        let fed = take(&mut self.fed);
        if fed.is_empty() {
            return;
        }
        self.bench.served.clear();
        self.bench.run_fed();
        let mut left: BTreeMap<usize, usize> = BTreeMap::new();
        for step in &fed {
            *left.entry(step.client).or_default() += 1;
        }
        // The last of a client's steps are held, if any.
        for (client, left) in &mut left {
            let client = &self.clients[client];
            let (postponed, held) = (self.bench.postponed(client.number), client.held.len());
            assert!(
                (held..=held + *left).contains(&postponed),
                "{postponed} are postponed, {held} + {left}: {fed:?}"
            );
            *left -= postponed - held;
        }
        let mut replies: BTreeMap<usize, VecDeque<Reply>> = BTreeMap::new();
        for &client in left.keys() {
            replies.insert(client, self.take(client).into());
        }
        let mut served = Vec::new();
        for step in &fed {
            let left = left.get_mut(&step.client).expect("it was counted");
            if *left == 0 {
                let client = self.clients.get_mut(&step.client).expect("it has connected");
                client.held.push_back(step.clone());
                continue;
            }
            *left -= 1;
            let reply = replies.get_mut(&step.client).and_then(VecDeque::pop_front);
            let client = &self.clients[&step.client];
            // It waited, and somebody behind it in the batch served it.
            if *left == 0 && !client.waits && self.bench.served.contains(&client.number) {
                self.entries.push(Entry::Ran(step.clone(), Came::Waits));
                served.extend(reply.map(|reply| Entry::Served {
                    client: step.client,
                    reply,
                    by: fed.clone(),
                }));
            } else {
                self.came(step, reply);
            }
        }
        self.entries.extend(served);
        for (client, replies) in replies {
            self.entries.extend(replies.into_iter().map(|reply| Entry::Extra { client, reply }));
        }
        self.served(&fed);
        self.resume();
    }

    /// A step has run.
    fn came(&mut self, step: &Step, reply: Option<Reply>) {
        let client = self.clients.get_mut(&step.client).expect("it has connected");
        let came = match reply {
            Some(reply) => Came::Reply(reply),
            None if self.bench.is_waiting(client.number) && !client.waits => Came::Waits,
            None => Came::Nothing,
        };
        client.waits |= matches!(came, Came::Waits);
        self.entries.push(Entry::Ran(step.clone(), came));
    }

    /// Runs what a pause has held, client by client, as far as it may.
    fn resume(&mut self) {
        loop {
            let mut ran = false;
            let holding: Vec<usize> =
                self.clients.iter().filter(|(_, it)| !it.held.is_empty()).map(|(&at, _)| at).collect();
            for client in holding {
                while self.bench.resume_one(self.clients[&client].number) {
                    ran = true;
                    let held = &mut self.clients.get_mut(&client).expect("it has connected").held;
                    let step = held.pop_front().expect("what runs was held");
                    let mut replies = self.take(client);
                    let reply = (!replies.is_empty()).then(|| replies.remove(0));
                    self.came(&step, reply);
                    self.entries.extend(replies.into_iter().map(|reply| Entry::Extra { client, reply }));
                    self.served(&[step]);
                }
            }
            if !ran {
                return;
            }
        }
    }

    /// Whoever waited and has been answered; and what was heard.
    fn served(&mut self, by: &[Step]) {
        let connected: Vec<usize> = self.clients.keys().copied().collect();
        for client in connected {
            for reply in self.take(client) {
                let waits = &mut self.clients.get_mut(&client).expect("it has connected").waits;
                if take(waits) {
                    self.entries.push(Entry::Served { client, reply, by: by.to_vec() });
                } else {
                    self.entries.push(Entry::Extra { client, reply });
                }
            }
        }
        self.hear(by.last());
    }

    /// Takes what has come since.
    fn collect(&mut self) {
        self.bench.deliver();
        self.served(&[]);
    }

    fn hear(&mut self, step: Option<&Step>) {
        if let Some(number) = self.clients.get(&LISTENER).map(|client| client.number) {
            let heard = self.bench.take(number);
            self.events.extend(heard.into_iter().map(|event| (step.cloned(), event)));
        }
    }

    /// The replies that a client has got. Pushes are kept apart.
    fn take(&mut self, client: usize) -> Vec<Reply> {
        if client == LISTENER {
            return Vec::new();
        }
        let mut replies = self.bench.take(self.clients[&client].number);
        let is_push = |reply: &Reply| matches!(reply, Reply::Push(_));
        self.pushes.extend(replies.iter().filter(|reply| is_push(reply)).map(|push| (None, push.clone())));
        replies.retain(|reply| !is_push(reply));
        replies
    }
}
