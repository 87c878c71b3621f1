//! Owns: what triggers do afterwards: entries of the catalogue that are appended in the group of the change and removed
//! in that of what was done, attempts, back-off, dead letters. Does not own: events of keys that went by themselves
//! (`crate::trigger`), when there is time for it (`crate::background`).
//!
//! ```text
//!  0        1     2        6
//! +--------+-----+--------+------------------------------------------+
//! | kind   | db  | depth  | trigger, key, command, way: u32 length … |
//! +--------+-----+--------+------------------------------------------+
//!   u8       u8    u32
//! ```
//! The way is the names of the triggers that have led to it; an entry may lack it.
//! Of one key one is done after the other, in their order; one that waits for its next attempt holds back those of
//! its key and no others: each key has a queue. With a log each is done at least once. Events of keys that went by
//! themselves are kept in memory only. Both have numbers, which are taken under the lock of the key.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use weft_store::{Keyspace, Op, Section, Worker, World};

use super::fire::{WHEN, at, run_command};
use crate::acl::{LogPlace, User};
use crate::args::Composed;
use crate::blocking;
use crate::context::{Context, Local, Locked};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::inner::Inner;
use crate::mailbox::Address;
use crate::reply::{Protocol, Wire};
use crate::session::{ConnectionInfo, Session};
use crate::trigger::definition::{Action, Trigger, kind};
use crate::trigger::event::Event;
use crate::trigger::{DEPTH_MAX, Figures, WAITING_BYTES_MAX, Way};

/// Entries that may wait; one more refuses the write.
const WAITING_MAX: usize = 100_000;
/// Bytes of an error that the stream of dead letters is told of.
const DEAD_ERROR_BYTES_MAX: usize = 1024;
/// Attempts before an entry is given up.
const ATTEMPTS_MAX: u32 = 8;
/// Before the second attempt; each further one waits twice as long.
const BACK_OFF_MS: u64 = 50;
/// Entries that are taken up, and attempts that are made, in one step, for which everything is locked once.
const STEP: usize = 64;
/// No further attempt begins in a step that has taken so long.
const STEP_TIME: Duration = Duration::from_millis(1);
/// The stream that is told of what was given up.
const DEAD_LETTERS: &[u8] = b"weft:triggers:dead";

/// An entry.
struct Entry {
    trigger: Box<[u8]>,
    command: Box<[u8]>,
    depth: u32,
    way: String,
    event: Event,
}

impl Entry {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.event.kind, self.event.db];
        bytes.extend_from_slice(&self.depth.to_be_bytes());
        for text in [&self.trigger, &self.event.key, &self.command, self.way.as_bytes()] {
            bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
            bytes.extend_from_slice(text);
        }
        bytes
    }
    fn of(bytes: &[u8]) -> Option<Self> {
        let (&[kind, db], rest) = bytes.split_first_chunk()?;
        let (depth, mut rest) = rest.split_first_chunk()?;
        let mut text = || {
            let (len, behind) = rest.split_first_chunk()?;
            let (text, behind) = behind.split_at_checked(u32::from_be_bytes(*len) as usize)?;
            rest = behind;
            Some(Box::<[u8]>::from(text))
        };
        let (trigger, key, command) = (text()?, text()?, text()?);
        let way = text().map_or_else(String::new, |way| String::from_utf8_lossy(&way).into_owned());
        let event = Event { kind, db, key };
        Some(Self { trigger, command, depth: u32::from_be_bytes(*depth), way, event })
    }
}

/// What of the entries that there are cannot be read: nothing is done for these, and they go when their turn comes.
pub(super) fn unreadable(keyspace: &Keyspace) -> Vec<String> {
    let entries = keyspace.catalogue().entries(Section::Outbox);
    let number = |name: &[u8]| name.first_chunk().map_or(0, |name| u64::from_be_bytes(*name));
    let cut = entries.iter().filter(|(_, bytes)| Entry::of(bytes).is_none());
    cut.map(|(name, _)| format!("number {} of what waits for triggers cannot be read", number(name)))
        .collect()
}

/// Adds what a trigger does afterwards, in the group of the change, which those `before` it have led to.
pub(super) fn add(
    context: &mut Context<'_, '_>,
    (trigger, before): (&Trigger, &str),
    event: &Event,
    command: &str,
) -> Result {
    if context.engine.keyspace.catalogue().len(Section::Outbox) >= WAITING_MAX {
        let text = format!("{WAITING_MAX} things wait to be done by triggers: try again later");
        return Err(Error::new(ErrorCode::Limit, text));
    }
    let depth = context.depth + 1;
    if depth > DEPTH_MAX {
        context.local.way.is_too_deep = true;
        return Err(Error::new(ErrorCode::Limit, format!("triggers fire {DEPTH_MAX} deep at most")));
    }
    let (trigger, command) = (trigger.name.clone(), command.as_bytes().into());
    let way = context.local.way.and(before);
    let entry = Entry { trigger, command, depth, way, event: event.clone() }.bytes();
    let catalogue = context.engine.keyspace.catalogue();
    let key = context.engine.keyspace.key(&event.key);
    let (shard, mut op) = context.shard_in(event.db, &key)?;
    if catalogue.bytes(Section::Outbox).saturating_add(entry.len()) > WAITING_BYTES_MAX {
        let text =
            format!("what waits to be done by triggers may take {WAITING_BYTES_MAX} bytes: try again later");
        return Err(Error::new(ErrorCode::Limit, text));
    }
    let number = catalogue.next_number();
    shard.set_entry(&mut op, Section::Outbox, &number.to_be_bytes(), Some(&entry));
    Ok(())
}

/// A key whose entries stand in a queue.
type Whose = (u8, Box<[u8]>);

/// What is to be done for a key.
#[derive(Debug)]
enum Due {
    /// The entry of this number.
    Entry(u64),
    /// It went by itself: the trigger that this fires, of which kind it was, and its number.
    Gone(Arc<Trigger>, u8, u64),
}

/// What is to be done for one key, in its order.
#[derive(Debug, Default)]
struct Queue {
    due: VecDeque<Due>,
    /// Attempts at the first one that failed.
    attempts: u32,
    /// How often there was no memory for it, or for telling of it: it is not given up for that.
    without_room: u32,
}

/// Who does what waits.
pub(crate) struct OutboxRunner {
    local: Local,
    session: Session,
    /// Up to which number entries stand in queues, and since which load.
    seen: (u64, u64),
    queues: HashMap<Whose, Queue>,
    /// Keys whose first entry may be done, in the order in which that came to be so.
    ready: VecDeque<Whose>,
    /// Keys whose first entry waits until then for its next attempt.
    waiting: BTreeSet<(u64, Whose)>,
    /// Names of entries that cannot be read, which are to go.
    unreadable: Vec<Box<[u8]>>,
}

impl std::fmt::Debug for OutboxRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutboxRunner").finish_non_exhaustive()
    }
}

impl OutboxRunner {
    pub(crate) fn new(engine: &Engine) -> Self {
        let wire = Wire { protocol: Protocol::Resp3, channel: 0 };
        let address = Address { worker: 0, connection: u32::MAX, channel: 0 };
        let session = engine.connect(address, wire, Arc::new(ConnectionInfo::default()), None);
        // It is no client.
        engine.clients.leave(session.id());
        Self {
            local: Local::of_thread(engine.clock.now_ms()),
            session,
            seen: (0, 0),
            queues: HashMap::new(),
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            unreadable: Vec::new(),
        }
    }

    /// Does some of what waits. Says whether there was anything.
    pub(crate) fn step(&mut self, engine: &Engine, worker: &mut Worker<'_>) -> bool {
        let (outbox, now_ms) = (&engine.triggers.outbox, engine.clock.now_ms());
        // What triggers do are writes as those of clients are.
        if engine.pause.until_ms() > now_ms {
            return false;
        }
        while self.waiting.first().is_some_and(|(due_ms, _)| *due_ms <= now_ms)
            && let Some((_, whose)) = self.waiting.pop_first()
        {
            self.ready.push_back(whose);
        }
        let loads = outbox.loads.load(Relaxed);
        let has_more = self.seen != (engine.keyspace.catalogue().last_number(), loads);
        if self.ready.is_empty() && !has_more && outbox.by_itself.lock().is_empty() {
            return false;
        }
        self.local.effects.begin(engine);
        let began = Instant::now();
        {
            let world = worker.world();
            // What waits was added by what is not kept.
            if engine.stops_in_the_middle() {
                return false;
            }
            self.take_up(engine, loads);
            for name in std::mem::take(&mut self.unreadable) {
                // Whose it was is not known.
                let event = Event { kind: 0, db: 0, key: Box::default() };
                self.with_world(engine, &world, 0, |context| remove(context, &event, &name));
            }
            let mut done = 0;
            while done < STEP && (done == 0 || began.elapsed() < STEP_TIME) && self.do_next(engine, &world) {
                done += 1;
            }
        }
        if !self.local.effects.is_empty() {
            engine.after_background(&mut self.local.effects);
        }
        self.local.garbage.drain(..).for_each(|garbage| engine.keyspace.discard(garbage));
        true
    }

    /// Puts the entries and events that came since the last time into the queues of their keys, in their order. With
    /// the keyspace to itself no number has been taken whose entry is still to come.
    fn take_up(&mut self, engine: &Engine, loads: u64) {
        let outbox = &engine.triggers.outbox;
        let mut by_itself = outbox.by_itself.lock();
        let last = engine.keyspace.catalogue().last_number();
        if self.seen.1 != loads {
            self.seen = (0, loads);
            self.take_back(&mut by_itself);
        }
        let entries =
            engine.keyspace.catalogue().some_behind(Section::Outbox, &self.seen.0.to_be_bytes(), STEP);
        let (are_all, mut room) = (entries.len() < STEP, STEP);
        for (name, bytes) in entries {
            let number = name.first_chunk().map_or(0, |name| u64::from_be_bytes(*name));
            self.take_up_gone(&mut by_itself, number.saturating_sub(1), &mut room);
            if room == 0 {
                return;
            }
            room -= 1;
            self.seen.0 = self.seen.0.max(number);
            let Some(entry) = Entry::of(&bytes) else {
                outbox.lost.fetch_add(1, Relaxed);
                self.unreadable.push(name);
                continue;
            };
            self.put((entry.event.db, entry.event.key), Due::Entry(number));
        }
        if are_all {
            self.seen.0 = last;
        }
        self.take_up_gone(&mut by_itself, self.seen.0, &mut room);
    }
    /// The events up to this number, as far as there is room.
    fn take_up_gone(
        &mut self,
        by_itself: &mut VecDeque<(u64, Arc<Trigger>, Event)>,
        number: u64,
        room: &mut usize,
    ) {
        while *room > 0
            && by_itself.front().is_some_and(|(other, ..)| *other <= number)
            && let Some((number, trigger, Event { kind, db, key })) = by_itself.pop_front()
        {
            *room -= 1;
            self.put((db, key), Due::Gone(trigger, kind, number));
        }
    }
    fn put(&mut self, whose: Whose, due: Due) {
        let queue = self.queues.entry(whose.clone()).or_default();
        if queue.due.is_empty() {
            self.ready.push_back(whose);
        }
        queue.due.push_back(due);
    }
    /// Empties the queues: what stood in them is taken up anew.
    fn take_back(&mut self, by_itself: &mut VecDeque<(u64, Arc<Trigger>, Event)>) {
        (self.ready, self.waiting) = Default::default();
        for ((db, key), queue) in self.queues.drain() {
            for due in queue.due {
                if let Due::Gone(trigger, kind, number) = due {
                    by_itself.push_back((number, trigger, Event { kind, db, key: key.clone() }));
                }
            }
        }
        by_itself.make_contiguous().sort_by_key(|(number, ..)| *number);
    }

    /// Does the first thing that is to be done for one key. Says whether there was one.
    fn do_next(&mut self, engine: &Engine, world: &World<'_>) -> bool {
        let Some(whose) = self.ready.pop_front() else { return false };
        let Some(queue) = self.queues.get(&whose) else { return true };
        let (number, attempts) = match queue.due.front() {
            Some(Due::Gone(trigger, kind, _)) => {
                let event = Event { kind: *kind, db: whose.0, key: whose.1.clone() };
                let (trigger, command, way) = (trigger.name.clone(), [].into(), String::new());
                let entry = Entry { trigger, command, depth: 1, way, event };
                // There is no other attempt: that it failed is counted.
                drop(self.attempt(engine, world, &entry, None));
                let outbox = &engine.triggers.outbox;
                outbox.gone.fetch_sub(1, Relaxed);
                outbox.gone_bytes.fetch_sub(whose.1.len(), Relaxed);
                self.go_on_with(whose);
                return true;
            }
            Some(Due::Entry(number)) => (*number, queue.attempts + 1),
            None => return true,
        };
        let name = number.to_be_bytes();
        let entry = engine.keyspace.catalogue().get(Section::Outbox, &name);
        if let Some(entry) = entry.and_then(|bytes| Entry::of(&bytes))
            && let Err(error) = self.attempt(engine, world, &entry, Some(&name))
        {
            if self.is_without_room(&error) {
                self.wait_for_room(engine, whose);
                return true;
            }
            if attempts < ATTEMPTS_MAX && !self.local.way.is_too_deep {
                if let Some(queue) = self.queues.get_mut(&whose) {
                    queue.attempts = attempts;
                }
                let due_ms = engine.clock.now_ms() + (BACK_OFF_MS << (attempts - 1));
                self.waiting.insert((due_ms, whose));
                return true;
            }
            if !self.give_up(engine, world, &entry, &name, &error) {
                self.wait_for_room(engine, whose);
                return true;
            }
        }
        self.go_on_with(whose);
        true
    }
    /// Whether an attempt has failed because there is no memory for it, be it for a trigger that it has fired. A
    /// program may fail with the same word, which is its own.
    fn is_without_room(&self, error: &Error) -> bool {
        error.code == ErrorCode::OutOfMemory || error.code == ErrorCode::Trigger && self.local.way.has_no_room
    }
    /// The first thing of a key waits until there is memory for it.
    fn wait_for_room(&mut self, engine: &Engine, whose: Whose) {
        let Some(queue) = self.queues.get_mut(&whose) else { return };
        let due_ms = engine.clock.now_ms() + (BACK_OFF_MS << queue.without_room);
        queue.without_room = (queue.without_room + 1).min(ATTEMPTS_MAX - 1);
        self.waiting.insert((due_ms, whose));
    }
    /// The first thing of a key is done with: the next one is for later, behind those of other keys.
    fn go_on_with(&mut self, whose: Whose) {
        let Some(queue) = self.queues.get_mut(&whose) else { return };
        queue.due.pop_front();
        (queue.attempts, queue.without_room) = (0, 0);
        if queue.due.is_empty() {
            self.queues.remove(&whose);
        } else {
            self.ready.push_back(whose);
        }
    }

    /// Does what an entry says, and removes it in the same group. One that fails is counted.
    fn attempt(&mut self, engine: &Engine, world: &World<'_>, entry: &Entry, name: Option<&[u8]>) -> Result {
        let names = String::from_utf8_lossy(&entry.trigger);
        let names = Way { names: entry.way.clone(), ..Way::default() }.and(&names);
        self.local.way = Way { names, ..Way::default() };
        self.with_world(engine, world, entry.event.db, |context| {
            context.depth = entry.depth;
            // A trigger that is gone, or switched off, does nothing any more.
            if let Some(trigger) = engine.triggers.get(&entry.trigger).filter(|trigger| trigger.enabled) {
                act(context, &trigger, entry).inspect_err(|_| Figures::count(&trigger.figures.failed))?;
            }
            if let Some(name) = name {
                remove(context, &entry.event, name);
            }
            Ok(())
        })
    }

    /// Tells the stream of dead letters, and removes the entry; neither if there is no memory for it, which `false`
    /// says.
    fn give_up(
        &mut self,
        engine: &Engine,
        world: &World<'_>,
        entry: &Entry,
        name: &[u8],
        error: &Error,
    ) -> bool {
        let told = self.with_world(engine, world, 0, |context| {
            // It is the server that tells it, whatever the owner may do.
            context.session.user = User::of_server();
            context.depth = DEPTH_MAX;
            context.fires = false;
            let mut args = Composed::default();
            let (number, mut line) = (entry.event.db.to_string(), error.line().into_bytes());
            line.truncate(DEAD_ERROR_BYTES_MAX);
            let pairs: [(&str, &[u8]); 6] = [
                ("trigger", &entry.trigger),
                ("kind", kind::name(entry.event.kind).as_bytes()),
                ("db", number.as_bytes()),
                ("key", &entry.event.key),
                ("command", &entry.command),
                ("error", &line),
            ];
            [&b"XADD"[..], DEAD_LETTERS, b"MAXLEN", b"~", b"10000", b"*"]
                .iter()
                .for_each(|word| args.push(word));
            for (field, value) in pairs {
                args.push(field.as_bytes());
                args.push(value);
            }
            let told = run_command(&mut Inner::new(context, LogPlace::Script), b"XADD", &args);
            let has_no_room = told.is_err_and(|error| error.code == ErrorCode::OutOfMemory);
            if !has_no_room {
                remove(context, &entry.event, name);
            }
            !has_no_room
        });
        if !told {
            return false;
        }
        // Where the stream's name is that of something else, the figures alone say it.
        if let Some(trigger) = engine.triggers.get(&entry.trigger) {
            Figures::count(&trigger.figures.dead);
        }
        true
    }

    fn with_world<R>(
        &mut self,
        engine: &Engine,
        world: &World<'_>,
        db: u8,
        work: impl FnOnce(&mut Context<'_, '_>) -> R,
    ) -> R {
        let now_ms = engine.clock.now_ms();
        self.session.db = db;
        let mut guards = world.guards();
        let locked = Locked::World(world, &mut guards);
        let mut context =
            Context::new(engine, &mut self.session, &mut self.local, now_ms, locked).without_blocking();
        let result = work(&mut context);
        self.local.effects.end_group();
        if !self.local.ready.is_empty() {
            blocking::serve_covered(engine, &mut self.local, &mut guards, now_ms);
        }
        result
    }
}

/// What a trigger does, with its owner's rights.
fn act(context: &mut Context<'_, '_>, trigger: &Trigger, entry: &Entry) -> Result {
    let (engine, by_itself) = (context.engine, entry.event.kind & kind::BY_ITSELF);
    // It may be another one by now, which does nothing afterwards.
    let is_its =
        if by_itself == 0 { matches!(trigger.action, Action::After(_)) } else { trigger.on & by_itself != 0 };
    if !is_its {
        return Ok(());
    }
    context.session.user = engine.acl.owner(&trigger.owner, "its")?;
    let stored = trigger.program(&engine.programs);
    let read = trigger.reads | stored.as_ref().map_or(0, |stored| stored.program.event);
    let value = entry.event.value(read, &entry.command, context);
    let mut frame = trigger.frame(engine, context.now_ms, value.clone());
    // What was asked when a key changed is not asked again.
    if by_itself != 0
        && let Some(when) = &trigger.when
        && !frame.holds(when).map_err(|fault| at(WHEN, &fault))?
    {
        Figures::count(&trigger.figures.passed_over);
        return Ok(());
    }
    match &trigger.action {
        Action::After(_) => {
            let stored = stored.ok_or_else(|| trigger.no_program())?;
            let params = stored.program.event_params(|| value)?;
            Inner::new(context, LogPlace::Script).whole(|inner| stored.run_inside(inner, params))?;
        }
        Action::Publish(channel) => {
            trigger.publish(&mut Inner::new(context, LogPlace::Script), channel, &value)?;
        }
        Action::Inside(_) | Action::Stream(_) => {}
    }
    if by_itself != 0 {
        Figures::count(&trigger.figures.fired);
    }
    Ok(())
}

/// Removes an entry, under the lock of its key.
fn remove(context: &mut Context<'_, '_>, event: &Event, name: &[u8]) {
    let key = context.engine.keyspace.key(&event.key);
    if let Locked::World(_, guards) = &mut context.locked {
        let mut op = Op::untouched(event.db, context.now_ms, &mut context.local.effects.recorder);
        guards.shard(&key).set_entry(&mut op, Section::Outbox, name, None);
    }
}
