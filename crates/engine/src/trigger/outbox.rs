//! Owns: what triggers do afterwards: entries of the catalogue that are appended in the group of the change and removed
//! in that of what was done, attempts, back-off, dead letters; and events of keys that went by themselves. Does not
//! own: when there is time for it (`crate::background`).
//!
//! ```text
//!  0        1     2        6
//! +--------+-----+--------+-------------------------------------+
//! | kind   | db  | depth  | trigger, key, command: u32 length … |
//! +--------+-----+--------+-------------------------------------+
//!   u8       u8    u32
//! ```
//! Of one key one is done after the other, in their order; one that waits for its next attempt holds back those of
//! its key and no others. With a log each is done at least once. Events of keys that went by themselves are kept in
//! memory only.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weft_store::{Effect, Op, Section, Worker};

use super::definition::{Action, Trigger, kind};
use super::event::{Event, kind_of};
use super::fire::run_command;
use super::{DEPTH_MAX, Figures};
use crate::acl::LogPlace;
use crate::args::Composed;
use crate::blocking;
use crate::commands::program::run_stored;
use crate::context::{Context, Hold, Local};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode};
use crate::inner::Inner;
use crate::mailbox::Address;
use crate::reply::{Protocol, Wire};
use crate::session::{ConnectionInfo, Session};

/// Entries that may wait; one more refuses the write.
const WAITING_MAX: usize = 100_000;
/// Events of keys that went by themselves that may wait; further ones are counted as lost.
const BY_ITSELF_MAX: usize = 100_000;
/// Attempts before an entry is given up.
const ATTEMPTS_MAX: u32 = 8;
/// Before the second attempt; each further one waits twice as long.
const BACK_OFF_MS: u64 = 50;
/// Entries that are looked at in one step.
const STEP: usize = 64;
/// The stream that is told of what was given up.
const DEAD_LETTERS: &[u8] = b"weft:triggers:dead";

/// What is to be done afterwards.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The number of the last entry.
    last: AtomicU64,
    /// Events of keys that went by themselves, with the triggers that they fire.
    by_itself: Mutex<VecDeque<(Arc<Trigger>, Event)>>,
    /// How many of them were too many.
    pub lost: AtomicU64,
}

/// An entry.
struct Entry {
    trigger: Box<[u8]>,
    command: Box<[u8]>,
    depth: u32,
    event: Event,
}

impl Entry {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.event.kind, self.event.db];
        bytes.extend_from_slice(&self.depth.to_be_bytes());
        for text in [&self.trigger, &self.event.key, &self.command] {
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
        Some(Self { trigger, command, depth: u32::from_be_bytes(*depth), event: Event { kind, db, key } })
    }
}

impl Outbox {
    /// Goes on behind the entries that there are.
    pub(crate) fn begin(&self, engine: &Engine) {
        let entries = engine.keyspace.catalogue().entries(Section::Outbox);
        let last = entries.last().and_then(|(name, _)| Some(u64::from_be_bytes(*name.first_chunk()?)));
        self.last.fetch_max(last.unwrap_or(0), Relaxed);
    }

    /// Adds what a trigger does afterwards, in the group of the change.
    pub(super) fn add(
        &self,
        context: &mut Context<'_, '_>,
        trigger: &Trigger,
        event: &Event,
        command: &str,
    ) -> Result<(), Error> {
        if context.engine.keyspace.catalogue().len(Section::Outbox) >= WAITING_MAX {
            let text = format!("{WAITING_MAX} things wait to be done by triggers: try again later");
            return Err(Error::new(ErrorCode::Limit, text));
        }
        let depth = context.depth + 1;
        if depth > DEPTH_MAX {
            return Err(Error::new(ErrorCode::Limit, format!("triggers fire {DEPTH_MAX} deep at most")));
        }
        let (trigger, command) = (trigger.name.clone(), command.as_bytes().into());
        let entry = Entry { trigger, command, depth, event: event.clone() }.bytes();
        let number = self.last.fetch_add(1, Relaxed) + 1;
        let key = context.engine.keyspace.key(&event.key);
        let (shard, mut op) = context.shard_in(event.db, &key)?;
        shard.set_entry(&mut op, Section::Outbox, &number.to_be_bytes(), Some(&entry));
        Ok(())
    }
    /// A key went by itself.
    #[cold]
    pub(crate) fn note(&self, engine: &Engine, db: u8, key: &[u8], effect: &Effect<'_>) {
        let Some(kind) = kind_of(effect) else { return };
        let event = Event { kind, db, key: key.into() };
        for trigger in engine.triggers.index().find(db, key, kind) {
            let mut waiting = self.by_itself.lock();
            if waiting.len() < BY_ITSELF_MAX {
                waiting.push_back((trigger, event.clone()));
            } else {
                self.lost.fetch_add(1, Relaxed);
            }
        }
    }
    /// Whether anything waits.
    pub(crate) fn waits(&self, engine: &Engine) -> bool {
        !engine.triggers.is_empty() && self.len(engine) > 0
    }
    /// Entries that wait.
    #[must_use]
    pub fn len(&self, engine: &Engine) -> usize {
        engine.keyspace.catalogue().len(Section::Outbox) + self.by_itself.lock().len()
    }
}

/// Who does what waits.
pub(crate) struct Runner {
    local: Local,
    session: Session,
    /// Attempts that failed, and when the next one is due, by entry.
    failed: HashMap<Box<[u8]>, (u32, u64)>,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").finish_non_exhaustive()
    }
}

impl Runner {
    pub(crate) fn new(engine: &Engine) -> Self {
        let wire = Wire { protocol: Protocol::Resp3, channel: 0 };
        let address = Address { worker: 0, connection: u32::MAX, channel: 0 };
        let session = engine.connect(address, wire, Arc::new(ConnectionInfo::default()), None);
        // It is no client.
        engine.clients.leave(session.id());
        Self { local: Local::of_thread(engine.clock.now_ms()), session, failed: HashMap::new() }
    }

    /// Does some of what waits. Says whether there was anything.
    pub(crate) fn step(&mut self, engine: &Engine, worker: &mut Worker<'_>) -> bool {
        let outbox = &engine.triggers.outbox;
        let mut busy = false;
        for _ in 0..STEP {
            let Some((trigger, event)) = outbox.by_itself.lock().pop_front() else { break };
            busy = true;
            let entry = Entry { trigger: trigger.name.clone(), command: [].into(), depth: 1, event };
            if self.attempt(engine, worker, &entry, None).is_err() {
                Figures::count(&trigger.figures.failed);
            }
        }
        let mut held: HashSet<(u8, Box<[u8]>)> = HashSet::new();
        for (name, bytes) in engine.keyspace.catalogue().some(Section::Outbox, STEP) {
            let Some(entry) = Entry::of(&bytes) else {
                debug_assert!(false, "an entry is read as it was written");
                continue;
            };
            let whose = (entry.event.db, entry.event.key.clone());
            let now_ms = engine.clock.now_ms();
            let waits = self.failed.get(&name).is_some_and(|(_, due_ms)| *due_ms > now_ms);
            if waits || held.contains(&whose) {
                held.insert(whose);
                continue;
            }
            busy = true;
            match self.attempt(engine, worker, &entry, Some(&name)) {
                Ok(()) => drop(self.failed.remove(&name)),
                Err(error) => {
                    let attempts = self.failed.get(&name).map_or(0, |(attempts, _)| *attempts) + 1;
                    if attempts >= ATTEMPTS_MAX {
                        self.failed.remove(&name);
                        self.give_up(engine, worker, &entry, &name, &error);
                    } else {
                        self.failed.insert(name, (attempts, now_ms + (BACK_OFF_MS << (attempts - 1))));
                        held.insert(whose);
                    }
                }
            }
        }
        busy
    }

    /// Does what an entry says, and removes it in the same group.
    fn attempt(
        &mut self,
        engine: &Engine,
        worker: &mut Worker<'_>,
        entry: &Entry,
        name: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.with_world(engine, worker, entry.event.db, |context| {
            context.depth = entry.depth;
            // A trigger that is gone, or switched off, does nothing any more.
            if let Some(trigger) = engine.triggers.get(&entry.trigger).filter(|trigger| trigger.enabled) {
                act(context, &trigger, entry)?;
            }
            remove(context, entry, name);
            Ok(())
        })
    }

    /// Tells the stream of dead letters, and removes the entry.
    fn give_up(
        &mut self,
        engine: &Engine,
        worker: &mut Worker<'_>,
        entry: &Entry,
        name: &[u8],
        error: &Error,
    ) {
        if let Some(trigger) = engine.triggers.get(&entry.trigger) {
            Figures::count(&trigger.figures.dead);
        }
        let told = self.with_world(engine, worker, 0, |context| {
            context.depth = DEPTH_MAX;
            context.fires = false;
            let mut args = Composed::default();
            let (number, line) = (entry.event.db.to_string(), error.line());
            let pairs: [(&str, &[u8]); 6] = [
                ("trigger", &entry.trigger),
                ("kind", kind::name(entry.event.kind).as_bytes()),
                ("db", number.as_bytes()),
                ("key", &entry.event.key),
                ("command", &entry.command),
                ("error", line.as_bytes()),
            ];
            [&b"XADD"[..], DEAD_LETTERS, b"MAXLEN", b"~", b"10000", b"*"]
                .iter()
                .for_each(|word| args.push(word));
            for (field, value) in pairs {
                args.push(field.as_bytes());
                args.push(value);
            }
            let told = run_command(&mut Inner::new(context, LogPlace::Script), b"XADD", &args);
            remove(context, entry, Some(name));
            told
        });
        // Without room for it the figures alone say that it was given up.
        drop(told);
    }

    fn with_world<R>(
        &mut self,
        engine: &Engine,
        worker: &mut Worker<'_>,
        db: u8,
        work: impl FnOnce(&mut Context<'_, '_>) -> R,
    ) -> R {
        self.local.effects.begin(engine);
        let now_ms = engine.clock.now_ms();
        self.session.db = db;
        let result = {
            let world = worker.world();
            let mut guards = world.guards();
            let hold = Hold::World(&world, &mut guards);
            let mut context =
                Context::new(engine, &mut self.session, &mut self.local, now_ms, hold).without_blocking();
            let result = work(&mut context);
            self.local.effects.end_group();
            if !self.local.ready.is_empty() {
                blocking::serve_covered(engine, &mut self.local, &mut guards, now_ms);
            }
            result
        };
        if !self.local.effects.is_empty() {
            engine.after_background(&mut self.local.effects);
        }
        self.local.garbage.drain(..).for_each(|garbage| engine.keyspace.discard(garbage));
        result
    }
}

/// What a trigger does, with its owner's rights.
fn act(context: &mut Context<'_, '_>, trigger: &Trigger, entry: &Entry) -> Result<(), Error> {
    let engine = context.engine;
    let owner = engine.acl.user(trigger.owner.as_bytes()).ok_or_else(|| {
        Error::new(ErrorCode::NoPerm, format!("its owner '{}' is no user any more", trigger.owner))
    })?;
    context.session.user = owner;
    let value = entry.event.value(&String::from_utf8_lossy(&entry.command), context);
    let mut frame = trigger.frame(engine, value.clone());
    let failed = |fault| Error::new(ErrorCode::Program, fault);
    // What was asked when a key changed is not asked again.
    if entry.event.kind & kind::BY_ITSELF != 0
        && let Some(when) = &trigger.when
        && !frame.holds(when).map_err(failed)?
    {
        Figures::count(&trigger.figures.passed_over);
        return Ok(());
    }
    match &trigger.action {
        Action::After(name) => {
            let stored = engine.programs.get(name).ok_or(ErrorCode::NoProgram)?;
            let params = stored.program.event_params(value)?;
            run_stored(context, &stored, params)?;
        }
        Action::Publish(channel) => {
            let mut args = Composed::default();
            args.push(b"PUBLISH");
            args.push_with(|text| frame.write_text(channel, text)).map_err(failed)?;
            args.push(&value.to_json());
            run_command(&mut Inner::new(context, LogPlace::Script), b"PUBLISH", &args)?;
        }
        Action::Inside(_) | Action::Stream(_) => {}
    }
    if entry.event.kind & kind::BY_ITSELF != 0 {
        Figures::count(&trigger.figures.fired);
    }
    Ok(())
}

/// Removes an entry, under the lock of its key.
fn remove(context: &mut Context<'_, '_>, entry: &Entry, name: Option<&[u8]>) {
    let key = context.engine.keyspace.key(&entry.event.key);
    let Some(name) = name else { return };
    if let Hold::World(_, guards) = &mut context.hold {
        let mut op = Op::untouched(entry.event.db, context.now_ms, &mut context.local.effects.recorder);
        guards.shard(&key).set_entry(&mut op, Section::Outbox, name, None);
    }
}
