//! Owns: subscriptions at the server behind: one connection for those of all clients, which of them the server has
//! confirmed, when nobody wants one any more, and the end of all when the connection breaks. Does not own: who is
//! subscribed here (`weft_engine::pubsub`).
//!
//! A client's SUBSCRIBE runs here when the server has confirmed every name of it: a message that is published behind
//! its answer reaches it. Names that nobody wants any more are given up by and by.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use weft_client::{Connection, Event, Reply};
use weft_engine::forward::SubscriptionKind;
use weft_engine::mailbox::{Kill, Message, Recipient};
use weft_engine::pubsub::Space;
use weft_engine::{Engine, Postponed};

use crate::dial::{self, Arrival, Inbox};
use crate::options::Options;

/// How often names are looked for that nobody wants any more.
const LOOK: Duration = Duration::from_secs(1);
/// The pause after the connection could not be made, in which whoever subscribes is refused.
const PAUSE: Duration = Duration::from_millis(500);

type Name = (SubscriptionKind, Box<[u8]>);

/// What somebody wants.
#[derive(Debug)]
struct Wish {
    to: Recipient,
    kind: SubscriptionKind,
    request: Box<Postponed>,
    inbox: Arc<Inbox>,
}

impl Wish {
    fn names(&self) -> Vec<Box<[u8]>> {
        self.request.args.args().rest(1).map(Into::into).collect()
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
    /// Which connection brings messages now: another number after each loss.
    generation: AtomicU64,
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
            options,
            engine: Reference(engine),
        });
        let own = Arc::clone(&hub);
        let run = move || State { hub: &own, ..State::new(&own) }.run();
        thread::Builder::new().name("weft-hub".into()).spawn(run)?;
        Ok(hub)
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client wants to be subscribed; its worker hears by its inbox.
    pub(crate) fn subscribe(
        &self,
        inbox: &Arc<Inbox>,
        to: Recipient,
        kind: SubscriptionKind,
        request: Postponed,
    ) {
        self.desk().wishes.push(Wish { to, kind, request: Box::new(request), inbox: Arc::clone(inbox) });
        // Fails only when the counter is full, and then the thread is about to wake anyway.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Whether what was confirmed for a connection still comes.
    pub(crate) fn is_current(&self, generation: u64) -> bool {
        self.generation.load(Relaxed) == generation
    }

    /// A worker has seen to a wish: its client is subscribed here, if it is still there. Should the connection have
    /// ended meanwhile, the client is closed as all others were.
    pub(crate) fn settled(&self, to: Recipient, generation: u64) {
        let mut desk = self.desk();
        desk.answered -= 1;
        if !self.is_current(generation) {
            self.engine.0.post(Message::Kill(to, Kill::Upstream));
        }
    }
}

/// The thread's own.
struct State<'h> {
    hub: &'h Hub,
    connection: Option<Connection>,
    /// Names that were asked for, and by which request of the connection.
    names: HashMap<Name, u64>,
    /// Wishes that wait for a request to be confirmed.
    waiting: VecDeque<(u64, Wish)>,
    /// Requests that were sent, and that were answered.
    sent: u64,
    confirmed: u64,
    down_until: Option<(Instant, String)>,
    looked: Instant,
}

impl<'h> State<'h> {
    fn new(hub: &'h Hub) -> Self {
        Self {
            hub,
            connection: None,
            names: HashMap::new(),
            waiting: VecDeque::new(),
            sent: 0,
            confirmed: 0,
            down_until: None,
            looked: Instant::now(),
        }
    }

    fn run(mut self) {
        loop {
            let wishes = std::mem::take(&mut self.hub.desk().wishes);
            for wish in wishes {
                self.wish(wish);
            }
            if self.connection.is_some()
                && let Err(why) = self.receive()
            {
                self.end(&why);
            }
            if self.looked.elapsed() >= LOOK {
                self.looked = Instant::now();
                if let Err(why) = self.give_up_unwanted() {
                    self.end(&why);
                }
            }
            self.wait();
        }
    }

    /// Waits for the server, a wish, or the next look.
    fn wait(&self) {
        let mut fds = vec![PollFd::new(&self.hub.wake, PollFlags::IN)];
        if let Some(connection) = &self.connection {
            fds.push(PollFd::from_borrowed_fd(connection.as_fd(), PollFlags::IN));
        }
        let limit = Timespec { tv_sec: LOOK.as_secs() as i64, tv_nsec: 0 };
        // A signal, or whatever else: the loop looks at all again.
        let _ = poll(&mut fds, Some(&limit));
        let _ = rustix::io::read(&self.hub.wake, &mut [0; 8]);
    }

    fn wish(&mut self, wish: Wish) {
        if let Err(why) = self.connect() {
            return wish.answer_refused(why);
        }
        let mut new = Vec::new();
        let mut behind = self.confirmed;
        for name in wish.names() {
            let request = *self.names.entry((wish.kind, name.clone())).or_insert_with(|| {
                new.push(name);
                self.sent + 1
            });
            behind = behind.max(request);
        }
        if !new.is_empty() {
            self.sent += 1;
            if let Err(why) = self.send(command(wish.kind, true), &new) {
                wish.answer_refused(why.clone());
                return self.end(&why);
            }
        }
        if behind > self.confirmed {
            self.waiting.push_back((behind, wish));
        } else {
            self.answer(wish);
        }
    }

    fn answer(&self, wish: Wish) {
        // Before the worker can have seen to it.
        self.hub.desk().answered += 1;
        wish.answer(Ok(self.hub.generation.load(Relaxed)));
    }

    fn connect(&mut self) -> Result<(), String> {
        if self.connection.is_some() {
            return Ok(());
        }
        if let Some((until, why)) = &self.down_until
            && Instant::now() < *until
        {
            return Err(why.clone());
        }
        match dial::server(&self.hub.options, false) {
            Ok(connection) => {
                self.connection = Some(connection);
                (self.sent, self.confirmed, self.down_until) = (0, 0, None);
                Ok(())
            }
            Err(error) => {
                self.down_until = Some((Instant::now() + PAUSE, error.to_string()));
                Err(error.to_string())
            }
        }
    }

    fn send(&mut self, command: &str, names: &[Box<[u8]>]) -> Result<(), String> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let words: Vec<&[u8]> =
            std::iter::once(command.as_bytes()).chain(names.iter().map(AsRef::as_ref)).collect();
        connection.send(&words).and_then(|_| connection.flush()).map_err(|error| error.to_string())
    }

    /// Takes all that has come.
    fn receive(&mut self) -> Result<(), String> {
        loop {
            let Some(connection) = &mut self.connection else { return Ok(()) };
            match connection.next_event(Some(Duration::ZERO)).map_err(|error| error.to_string())? {
                None => return Ok(()),
                Some(Event::Reply(Reply::Error(text))) => {
                    return Err(String::from_utf8_lossy(&text).into_owned());
                }
                Some(Event::Reply(_)) => {
                    self.confirmed += 1;
                    while self.waiting.front().is_some_and(|(request, _)| *request <= self.confirmed) {
                        if let Some((_, wish)) = self.waiting.pop_front() {
                            self.answer(wish);
                        }
                    }
                }
                Some(Event::Push(push)) => self.publish(push),
            }
        }
    }

    /// Hands a message to those who want it.
    fn publish(&self, push: Reply) {
        let Reply::Push(parts) = push else { return };
        let parts: Vec<&[u8]> = parts
            .iter()
            .map(|part| match part {
                Reply::Bulk(bytes) | Reply::Simple(bytes) => bytes.as_slice(),
                _ => b"",
            })
            .collect();
        let engine = self.hub.engine.0;
        match parts.as_slice() {
            [b"message", channel, payload] => {
                engine.pubsub.publish_to_channel(&engine.mailboxes, Space::Global, channel, payload);
            }
            [b"smessage", channel, payload] => {
                engine.pubsub.publish_to_channel(&engine.mailboxes, Space::Shard, channel, payload);
            }
            [b"pmessage", pattern, channel, payload] => {
                engine.pubsub.publish_to_pattern(&engine.mailboxes, pattern, channel, payload);
            }
            _ => {}
        }
    }

    /// Gives up names that nobody is subscribed to here, unless somebody is about to be.
    fn give_up_unwanted(&mut self) -> Result<(), String> {
        let desk = self.hub.desk();
        if desk.answered > 0 || !desk.wishes.is_empty() || !self.waiting.is_empty() {
            return Ok(());
        }
        drop(desk);
        let pubsub = &self.hub.engine.0.pubsub;
        for kind in [SubscriptionKind::Channel, SubscriptionKind::Pattern, SubscriptionKind::Shard] {
            let is_wanted = |name: &[u8]| match kind {
                SubscriptionKind::Channel => pubsub.subscribers(Space::Global, name) > 0,
                SubscriptionKind::Shard => pubsub.subscribers(Space::Shard, name) > 0,
                SubscriptionKind::Pattern => pubsub.has_pattern(name),
            };
            let unwanted: Vec<Box<[u8]>> = self
                .names
                .keys()
                .filter(|(of, name)| *of == kind && !is_wanted(name))
                .map(|(_, name)| name.clone())
                .collect();
            if !unwanted.is_empty() {
                self.sent += 1;
                self.send(command(kind, false), &unwanted)?;
                for name in unwanted {
                    self.names.remove(&(kind, name));
                }
            }
        }
        Ok(())
    }

    /// The connection has broken: nobody may think that he is subscribed.
    fn end(&mut self, why: &str) {
        self.connection = None;
        self.names.clear();
        let engine = self.hub.engine.0;
        // Behind this, who was confirmed for it is closed when he is subscribed.
        self.hub.generation.fetch_add(1, Relaxed);
        let _desk = self.hub.desk();
        for who in engine.pubsub.subscribers_where(|_, _| true) {
            engine.post(Message::Kill(who, Kill::Upstream));
        }
        for (_, wish) in std::mem::take(&mut self.waiting) {
            wish.answer_refused(why.to_string());
        }
    }
}

impl Wish {
    fn answer_refused(self, why: String) {
        self.answer(Err(why));
    }
}

const fn command(kind: SubscriptionKind, begins: bool) -> &'static str {
    match (kind, begins) {
        (SubscriptionKind::Channel, true) => "SUBSCRIBE",
        (SubscriptionKind::Channel, false) => "UNSUBSCRIBE",
        (SubscriptionKind::Pattern, true) => "PSUBSCRIBE",
        (SubscriptionKind::Pattern, false) => "PUNSUBSCRIBE",
        (SubscriptionKind::Shard, true) => "SSUBSCRIBE",
        (SubscriptionKind::Shard, false) => "SUNSUBSCRIBE",
    }
}
