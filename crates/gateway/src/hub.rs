//! Owns: subscriptions at the servers behind: which connection brings what, which of it is confirmed, when nobody wants
//! it any more, and the end of all when a connection breaks. Does not own: one connection (`crate::lines`), who is
//! subscribed here (`weft_engine::pubsub`).
//!
//! A client's SUBSCRIBE runs here when the server has confirmed every name of it: a message that is published behind
//! its answer reaches it. Names that nobody wants any more are given up by and by. A connection on which nothing comes
//! is asked whether its server is there; it ends as any other that nothing comes over of what is due.
//!
//! In front of one server there is one connection for all. In front of a cluster one node brings what is published
//! anywhere, and what is published here goes to it, so that its count has who listens here; the owner of a shard
//! channel's slot brings that; events of keys are brought by each primary, for its own. Where another node takes a
//! primary's place or a slot moves, whoever could miss something is closed.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use weft_client::Address;
use weft_client::fleet::Wire;
use weft_engine::forward::SubscriptionKind;
use weft_engine::mailbox::{Kill, Message, Recipient};
use weft_engine::pubsub::Space;
use weft_engine::{Engine, Postponed, keys};

use crate::answer::Redirect;
use crate::atlas::NOBODY;
use crate::dial::{self, Arrival, Inbox};
use crate::lines::{Brought, Line, Name, is_of_events, may_be_of_events, nothing_came};
use crate::options::Options;

/// How often names are looked for that nobody wants any more.
const LOOK: Duration = Duration::from_secs(1);
/// The pause after a connection could not be made, in which whoever subscribes is refused.
const PAUSE: Duration = Duration::from_millis(500);
/// The pause before a slot's owner is looked for again, and before what is due is looked at.
const AGAIN: Duration = Duration::from_millis(50);
/// How long a node may be none of the cluster until it is left.
const STRANGE: Duration = Duration::from_secs(30);
/// What is taken of one connection before the others, and whoever wants something, have their turn.
const EVENTS_MAX: usize = 256;
/// The connection for all that is not of one node.
const ANY: u64 = 0;

/// What somebody wants.
#[derive(Debug)]
struct Wish {
    to: Recipient,
    kind: SubscriptionKind,
    request: Box<Postponed>,
    inbox: Arc<Inbox>,
    /// Nobody waits for longer.
    until: Instant,
}

impl Wish {
    fn names(&self) -> Vec<Box<[u8]>> {
        self.request.args.args().rest(1).map(Into::into).collect()
    }
    fn has_events(&self) -> bool {
        self.kind != SubscriptionKind::Shard
            && self.names().iter().any(|name| may_be_of_events(name, self.kind == SubscriptionKind::Pattern))
    }
    fn answer(self, result: Result<u64, String>) {
        self.inbox.put(Arrival::Subscribed(self.to, self.request, result));
    }
}

/// What is known of wishes between the hub's thread and the workers.
#[derive(Debug, Default)]
struct Desk {
    wishes: Vec<Wish>,
    /// Wishes that were answered and that workers have not seen to.
    answered: u64,
}

/// Subscriptions of all clients.
#[derive(Debug)]
pub(crate) struct Hub {
    desk: Mutex<Desk>,
    wake: OwnedFd,
    /// Another number after each loss.
    generation: AtomicU64,
    /// The node of a cluster that brings what is published anywhere.
    brings: Mutex<Option<Address>>,
    options: Arc<Options>,
    engine: Reference,
}

/// The engine, which lives as long as the process.
struct Reference(&'static Engine);

impl std::fmt::Debug for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl Hub {
    /// Starts the thread.
    pub(crate) fn start(options: Arc<Options>, engine: &'static Engine) -> io::Result<Arc<Self>> {
        let hub = Arc::new(Self {
            desk: Mutex::default(),
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            generation: AtomicU64::new(0),
            brings: Mutex::default(),
            options,
            engine: Reference(engine),
        });
        if let Some(atlas) = &hub.options.atlas {
            let woken = Arc::downgrade(&hub);
            atlas.wake_by(Arc::new(move || woken.upgrade().iter().for_each(|hub| hub.wake())));
        }
        let own = Arc::clone(&hub);
        thread::Builder::new().name("weft-hub".into()).spawn(move || State::new(own).run())?;
        Ok(hub)
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn wake(&self) {
        // Fails only when the counter is full, and then the thread is about to wake anyway.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// A client wants to be subscribed; its worker hears by its inbox.
    pub(crate) fn subscribe(
        &self,
        inbox: &Arc<Inbox>,
        to: Recipient,
        kind: SubscriptionKind,
        request: Postponed,
    ) {
        let until = Instant::now() + Duration::from_millis(self.options.timeout_ms);
        self.desk().wishes.push(Wish {
            to,
            kind,
            request: Box::new(request),
            inbox: Arc::clone(inbox),
            until,
        });
        self.wake();
    }

    /// The node of a cluster that brings what is published anywhere, if one does.
    pub(crate) fn brought_by(&self) -> Option<Address> {
        self.brings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn is_brought_by(&self, node: Option<Address>) {
        *self.brings.lock().unwrap_or_else(PoisonError::into_inner) = node;
    }

    /// Whether what was confirmed for a connection still comes.
    pub(crate) fn is_current(&self, generation: u64) -> bool {
        self.generation.load(Relaxed) == generation
    }

    /// A worker has seen to a wish: its client is subscribed here, if it is still there. Should a connection have
    /// ended meanwhile, the client is closed as all others were.
    pub(crate) fn settled(&self, to: Recipient, generation: u64) {
        let mut desk = self.desk();
        desk.answered -= 1;
        if !self.is_current(generation) {
            self.engine.0.post(Message::Kill(to, Kill::Upstream));
        }
    }

    /// What some are subscribed to comes no more: nobody may think that he is.
    fn close(&self, names: &HashSet<Name>) {
        if names.is_empty() {
            return;
        }
        let names: HashSet<(SubscriptionKind, &[u8])> =
            names.iter().map(|(kind, name)| (*kind, &**name)).collect();
        let engine = self.engine.0;
        // Behind this, who was confirmed before is closed when he is subscribed.
        self.generation.fetch_add(1, Relaxed);
        let _desk = self.desk();
        for who in engine.pubsub.subscribers_where(|name, kind| names.contains(&(kind, name))) {
            engine.post(Message::Kill(who, Kill::Upstream));
        }
    }
}

/// Names, and the node that brings them; nothing where any will do.
type Source = (Option<Address>, Vec<Box<[u8]>>);
/// A wish, and the requests that must be answered: of which connection, which.
type Waiting = (Vec<(u64, u64)>, Wish);
/// A connection that was made: for whom, by which attempt; and to which node, where any would do.
type Made = (u64, u64, Result<(Wire, Option<Address>), String>);

/// The thread's own.
struct State {
    hub: Arc<Hub>,
    /// By their numbers, which are never used again.
    lines: BTreeMap<u64, Line>,
    numbers: u64,
    waiting: Vec<Waiting>,
    /// Wishes of which is not known who could fulfil them.
    later: Vec<Wish>,
    made: (Sender<Made>, Receiver<Made>),
    /// The cluster's primaries and all its nodes, and by which map.
    primaries: Vec<Address>,
    nodes: Vec<Address>,
    version: u64,
    /// When the node that brings what is published anywhere was last one of them, if it was.
    met: Option<Instant>,
    looked: Instant,
    begun: Instant,
}

impl State {
    fn new(hub: Arc<Hub>) -> Self {
        Self {
            hub,
            lines: BTreeMap::from([(ANY, Line::default())]),
            numbers: ANY,
            waiting: Vec::new(),
            later: Vec::new(),
            made: channel(),
            primaries: Vec::new(),
            nodes: Vec::new(),
            version: 0,
            met: None,
            looked: Instant::now(),
            begun: Instant::now(),
        }
    }

    fn run(mut self) {
        loop {
            self.look_at_map();
            while let Ok((number, attempt, made)) = self.made.1.try_recv() {
                self.made(number, attempt, made);
            }
            let new = std::mem::take(&mut self.hub.desk().wishes);
            for wish in std::mem::take(&mut self.later).into_iter().chain(new) {
                self.wish(wish);
            }
            if self.looked.elapsed() >= LOOK {
                self.looked = Instant::now();
                self.leave_strangers();
                self.give_up_unwanted();
            }
            for number in self.numbers() {
                if let Err(why) = self.receive(number).and_then(|()| self.look(number)) {
                    self.end(number, &why);
                }
            }
            self.answer_confirmed();
            self.answer_late();
            self.wait();
        }
    }
    fn now_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }
    fn numbers(&self) -> Vec<u64> {
        self.lines.keys().copied().collect()
    }

    /// Waits for a server, a wish, a connection, or the next look.
    fn wait(&self) {
        let mut fds = vec![PollFd::new(&self.hub.wake, PollFlags::IN)];
        for (socket, has_unsent) in self.lines.values().filter_map(Line::socket) {
            let flags = if has_unsent { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::from_borrowed_fd(socket, flags));
        }
        let is_due = !self.later.is_empty()
            || !self.waiting.is_empty()
            || self.lines.values().any(|line| line.socket().is_some() && line.is_due());
        let limit = match () {
            () if self.lines.values().any(|line| line.unread) => Duration::ZERO,
            () if is_due => AGAIN,
            () => LOOK,
        };
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
        // A signal, or whatever else: the loop looks at all again.
        let _ = poll(&mut fds, Some(&limit));
        let _ = rustix::io::read(&self.hub.wake, &mut [0; 8]);
    }

    /// Where a wish's names come from.
    fn sources(&self, wish: &Wish) -> Result<Vec<Source>, String> {
        let names = wish.names();
        let Some(atlas) = &self.hub.options.atlas else { return Ok(vec![(None, names)]) };
        if wish.kind == SubscriptionKind::Shard {
            // They have one slot, or the engine had refused them.
            let slot = keys::key_slot(names.first().map_or(&b""[..], AsRef::as_ref));
            let map = atlas.map()?;
            let owner = map.primaries.get(usize::from(map.owners[usize::from(slot)]));
            let owner = owner.ok_or_else(|| format!("no node has slot {slot}"))?;
            return Ok(vec![(Some(owner.clone()), names)]);
        }
        let is_pattern = wish.kind == SubscriptionKind::Pattern;
        let events: Vec<_> =
            names.iter().filter(|name| may_be_of_events(name, is_pattern)).cloned().collect();
        let mut sources = vec![(None, names)];
        if !events.is_empty() {
            if self.primaries.is_empty() {
                return Err("no primary is known".into());
            }
            sources.extend(self.primaries.iter().map(|primary| (Some(primary.clone()), events.clone())));
        }
        Ok(sources)
    }

    fn wish(&mut self, wish: Wish) {
        let sources = match self.sources(&wish) {
            Ok(sources) => sources,
            Err(why) => return self.not_now(wish, &why),
        };
        let mut needs = Vec::new();
        for (to, names) in sources {
            let number = match self.line(to) {
                Ok(number) => number,
                Err(why) => return self.not_now(wish, &why),
            };
            let now_ms = self.now_ms();
            match self.lines.get_mut(&number).map(|line| line.want(wish.kind, &names, now_ms)) {
                Some(Ok(request)) => needs.push((number, request)),
                // It would be too much later, too.
                Some(Err(why)) => return wish.answer(Err(why)),
                None => {}
            }
        }
        self.waiting.push((needs, wish));
    }

    /// Who could bring a wish's names is not there: in front of a cluster another node may be soon.
    fn not_now(&mut self, wish: Wish, why: &str) {
        match &self.hub.options.atlas {
            Some(atlas) if Instant::now() < wish.until => {
                atlas.want();
                self.later.push(wish);
            }
            _ => wish.answer(Err(why.to_string())),
        }
    }

    /// The connection to a node, which may be being made.
    fn line(&mut self, to: Option<Address>) -> Result<u64, String> {
        let known = self.lines.iter().find(|(_, line)| line.to == to);
        let number = known.map(|(number, _)| *number).unwrap_or_else(|| {
            self.numbers += 1;
            self.lines.insert(self.numbers, Line::to(to));
            self.numbers
        });
        let now_ms = self.now_ms();
        let Some(line) = self.lines.get_mut(&number) else { return Ok(number) };
        if !line.is_there() {
            if let Some((until, why)) = &line.down
                && Instant::now() < *until
            {
                return Err(why.clone());
            }
            self.numbers += 1;
            line.begins(self.numbers, now_ms);
            if let Err(why) = self.dial(number, self.numbers) {
                self.end(number, &why);
                return Err(why);
            }
        }
        Ok(number)
    }

    fn dial(&self, number: u64, attempt: u64) -> Result<(), String> {
        let to = self.lines.get(&number).and_then(|line| line.to.as_ref());
        let options = match to {
            Some(address) => Arc::new(self.hub.options.at(address, false)),
            None => Arc::clone(&self.hub.options),
        };
        let (hub, made) = (Arc::clone(&self.hub), self.made.0.clone());
        let work = move || {
            let connection = match &options.atlas {
                Some(atlas) if number == ANY => {
                    dial::any_node(&options, atlas).map(|(connection, node)| (connection, Some(node)))
                }
                _ => dial::server(&options, false).map(|connection| (connection, None)),
            };
            let wire = connection.and_then(|(connection, node)| {
                dial::keep_alive(&connection);
                Ok((connection.without_waiting()?, node))
            });
            // The hub's thread lives as long as the process.
            let _ = made.send((number, attempt, wire.map_err(|error| error.to_string())));
            hub.wake();
        };
        let thread = thread::Builder::new().name("weft-dial".into()).spawn(work);
        thread.map(|_| ()).map_err(|error| format!("no thread to connect on: {error}"))
    }

    fn made(&mut self, number: u64, attempt: u64, made: Result<(Wire, Option<Address>), String>) {
        let now_ms = self.now_ms();
        let Some(line) = self.lines.get_mut(&number).filter(|line| line.is_made_by(attempt)) else { return };
        match made {
            Ok((wire, node)) => {
                if number == ANY {
                    // Before anybody hears that he is subscribed.
                    self.hub.is_brought_by(node);
                }
                line.stands(wire, now_ms);
            }
            Err(why) => {
                line.down = Some((Instant::now() + PAUSE, why.clone()));
                self.end(number, &why);
            }
        }
    }

    /// Tells those whose names all come now.
    fn answer_confirmed(&mut self) {
        let lines = &self.lines;
        let comes = |(needs, _): &mut Waiting| {
            let is_there = |(line, request): &(u64, u64)| {
                lines.get(line).is_some_and(|line| line.has_confirmed(*request))
            };
            needs.iter().all(is_there)
        };
        for (_, wish) in self.waiting.extract_if(.., comes).collect::<Vec<_>>() {
            // Before the worker can have seen to it.
            self.hub.desk().answered += 1;
            wish.answer(Ok(self.hub.generation.load(Relaxed)));
        }
    }

    /// Tells those who have waited for too long.
    fn answer_late(&mut self) {
        let now = Instant::now();
        for (_, wish) in self.waiting.extract_if(.., |(_, wish)| wish.until <= now) {
            wish.answer(Err(nothing_came(self.hub.options.timeout_ms)));
        }
    }

    /// Sends what waits on one connection, and takes what has come, if it is not too much.
    fn receive(&mut self, number: u64) -> Result<(), String> {
        let (now_ms, mut is_drained) = (self.now_ms(), false);
        if let Some(line) = self.lines.get_mut(&number) {
            line.unread = false;
            line.flush()?;
        }
        for _ in 0..EVENTS_MAX {
            let Some(line) = self.lines.get_mut(&number) else { return Ok(()) };
            match line.next()? {
                Some(Brought::Message(parts)) => self.publish(number, &parts),
                Some(Brought::Answer) => line.confirm(),
                Some(Brought::Refusal(text)) => self.refused(number, &text),
                None if is_drained => return Ok(()),
                None => is_drained = !line.receive(now_ms)?,
            }
        }
        self.lines.get_mut(&number).into_iter().for_each(|line| line.unread = true);
        Ok(())
    }
    fn look(&mut self, number: u64) -> Result<(), String> {
        let (options, now_ms) = (Arc::clone(&self.hub.options), self.now_ms());
        let Some(line) = self.lines.get_mut(&number) else { return Ok(()) };
        line.look(now_ms, options.silent_ms(), options.timeout_ms)?;
        line.flush()
    }

    /// A server has refused a request.
    fn refused(&mut self, number: u64, text: &[u8]) {
        let Some(request) = self.lines.get_mut(&number).map(Line::refuse) else { return };
        let is_elsewhere = Redirect::of(&[b"-", text].concat()).is_some();
        let concerned = self.waiting.extract_if(.., |(needs, _)| needs.contains(&(number, request)));
        for (_, wish) in concerned {
            if is_elsewhere && Instant::now() < wish.until {
                self.later.push(wish);
            } else {
                wish.answer(Err(String::from_utf8_lossy(text).into_owned()));
            }
        }
        if let (true, Some(atlas)) = (is_elsewhere, &self.hub.options.atlas) {
            atlas.want();
        }
    }

    /// Hands a message to those who want it.
    fn publish(&mut self, number: u64, parts: &[Vec<u8>]) {
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let engine = self.hub.engine.0;
        match parts.as_slice() {
            [b"message", channel, payload] if self.brings(number, channel) => {
                engine.pubsub.publish_to_channel(&engine.mailboxes, Space::Global, channel, payload);
            }
            [b"smessage", channel, payload] => {
                engine.pubsub.publish_to_channel(&engine.mailboxes, Space::Shard, channel, payload);
            }
            [b"pmessage", pattern, channel, payload] if self.brings(number, channel) => {
                engine.pubsub.publish_to_pattern(&engine.mailboxes, pattern, channel, payload);
            }
            // Its slot has moved.
            [b"sunsubscribe", channel, ..] => {
                let name = (SubscriptionKind::Shard, Box::from(*channel));
                if self.lines.get_mut(&number).is_some_and(|line| line.forget(&name)) {
                    self.hub.close(&HashSet::from([name]));
                    self.hub.options.atlas.iter().for_each(|atlas| atlas.want());
                }
            }
            _ => {}
        }
    }

    /// Whether messages of a channel are taken from a connection: each from one, though several may bring it.
    fn brings(&self, number: u64, channel: &[u8]) -> bool {
        if self.hub.options.atlas.is_none() || !is_of_events(channel) {
            return number == ANY;
        }
        let to = self.lines.get(&number).and_then(|line| line.to.as_ref());
        to.is_some_and(|to| self.primaries.contains(to))
    }

    /// Takes a new map, and closes whoever could miss something by it.
    fn look_at_map(&mut self) {
        let Some(atlas) = self.hub.options.atlas.clone() else { return };
        if atlas.version() == self.version {
            return;
        }
        self.version = atlas.version();
        let Ok(map) = atlas.map() else { return };
        let is_as_before = map.primaries.len() == self.primaries.len()
            && map.primaries.iter().all(|primary| self.primaries.contains(primary));
        self.primaries.clone_from(&map.primaries);
        self.nodes.clone_from(&map.nodes);
        if !is_as_before {
            let concerned = self.waiting.extract_if(.., |(_, wish)| wish.has_events());
            self.later.extend(concerned.map(|(_, wish)| wish));
        }
        let mut lost = HashSet::new();
        for number in self.numbers() {
            let Some(line) = self.lines.get_mut(&number) else { continue };
            let Some(to) = line.to.clone() else { continue };
            if !self.primaries.contains(&to) {
                self.end(number, "it is no primary any more");
                continue;
            }
            let is_lost = |(kind, name): &Name| match kind {
                SubscriptionKind::Shard => {
                    let owner = map.owners[usize::from(keys::key_slot(name))];
                    owner == NOBODY || map.primaries.get(usize::from(owner)) != Some(&to)
                }
                SubscriptionKind::Channel | SubscriptionKind::Pattern => !is_as_before,
            };
            let gone: Vec<Name> = line.names().filter(|name| is_lost(name)).cloned().collect();
            // A slot that comes back has to be asked about again.
            gone.iter()
                .filter(|(kind, _)| *kind == SubscriptionKind::Shard)
                .for_each(|name| _ = line.forget(name));
            lost.extend(gone);
        }
        self.hub.close(&lost);
    }

    /// A node that is none of the cluster any more brings nothing of the others. One that has just lost its slots is
    /// not told of for a while.
    fn leave_strangers(&mut self) {
        let Some(node) = self.hub.brought_by() else { return };
        if self.nodes.contains(&node) {
            self.met = Some(self.looked);
        } else if self.met.is_some_and(|met| met.elapsed() > STRANGE) {
            self.end(ANY, "it is no node of the cluster any more");
        }
    }

    /// Gives up names that nobody is subscribed to here, unless somebody is about to be.
    fn give_up_unwanted(&mut self) {
        let desk = self.hub.desk();
        if desk.answered > 0 || !desk.wishes.is_empty() || !self.waiting.is_empty() || !self.later.is_empty()
        {
            return;
        }
        drop(desk);
        let pubsub = &self.hub.engine.0.pubsub;
        let is_wanted = |(kind, name): &Name| match kind {
            SubscriptionKind::Channel => pubsub.subscribers(Space::Global, name) > 0,
            SubscriptionKind::Shard => pubsub.subscribers(Space::Shard, name) > 0,
            SubscriptionKind::Pattern => pubsub.has_pattern(name),
        };
        let now_ms = self.now_ms();
        for number in self.numbers() {
            let Some(line) = self.lines.get_mut(&number) else { continue };
            if let Err(why) = line.give_up(now_ms, is_wanted) {
                self.end(number, &why);
            } else if number != ANY && line.names().next().is_none() && !line.is_being_made() {
                self.lines.remove(&number);
            }
        }
    }

    /// A connection has broken, or could not be made.
    fn end(&mut self, number: u64, why: &str) {
        let Some(line) = self.lines.get_mut(&number) else { return };
        let names = line.end();
        if number == ANY {
            self.hub.is_brought_by(None);
            self.met = None;
        }
        self.hub.close(&names);
        let is_of = |(needs, _): &mut Waiting| needs.iter().any(|(line, _)| *line == number);
        for (_, wish) in self.waiting.extract_if(.., is_of).collect::<Vec<_>>() {
            self.not_now(wish, why);
        }
    }
}
