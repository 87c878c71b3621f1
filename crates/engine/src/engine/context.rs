//! Owns: what a handler works with: the locked shards of its keys, the session, the time, and what it leaves behind for
//! after the locks. Does not own: taking the locks (`crate::executor`), what commands do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use weft_protocol::table::{CommandSpec, policy};
use weft_store::effect::TapeMark;
use weft_store::{
    Ahead, Batch, Claim, Cursor, Garbage, Guards, Key, Op, Recorder, ShardGuard, ValueRef, World, XorShift,
    wants,
};

use crate::args::{Args, Composed};
use crate::config::classes;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::forwards::Forwards;
use crate::job::Door;
use crate::program::ends::Ends;
use crate::program::prepared::Prepared;
use crate::pubsub::PendingMessage;
use crate::push::Push;
use crate::reply::Captured;
use crate::script::space::Space;
use crate::session::{Session, client_flag};
use crate::tracking::ReadBehind;
use crate::transaction::Transaction;
use crate::waits::{Blocked, Ready, Serving};
use crate::{special, trigger};

/// Those who wait for what they take, or to hear of its end, whom the writes of a tick serve at once: some 10 ms.
/// Behind them others may come between.
pub(crate) const TAKERS_AT_ONCE: usize = 4096;

/// What a worker keeps from command to command: buffers and dice.
#[derive(Debug)]
pub struct Local {
    /// Chance, for SRANDMEMBER and the like.
    pub rng: XorShift,
    /// What removed values owned: dropped when no lock is held.
    pub garbage: Vec<Garbage>,
    /// Keys that others wait for, in the order of their writes.
    pub(crate) ready: VecDeque<Ready>,
    /// Somebody comes back to go on with `serving`: where nobody does, all are served at once.
    pub(crate) serves_in_steps: bool,
    /// How many more who take are served at once.
    pub(crate) takers_left: usize,
    /// Who waits for what was written, and is served by later steps.
    pub(crate) serving: VecDeque<Serving>,
    /// Waits that are over, and how many of their places have been given back.
    pub(crate) leaving: VecDeque<(Arc<Blocked>, usize)>,
    /// The memory of a transaction that has ended, for the next one.
    pub(crate) spare_transaction: Option<Box<Transaction>>,
    /// What the store tells of changes.
    pub effects: EffectReader,
    /// Messages to be published when what may be taken back stays.
    pub(crate) messages: Vec<PendingMessage>,
    /// What MONITOR shows of the script that runs, once that stays.
    pub(crate) lines: Vec<Arc<Push>>,
    /// This worker's state of Lua, once a script has run.
    pub scripts: Option<Box<Space>>,
    /// Which keys may fire triggers.
    pub(crate) triggers: trigger::Seen,
    /// Which triggers have led to what is done afterwards, if that is what this thread does.
    pub(crate) way: trigger::Way,
    /// What is counted while a request fires that may run again.
    pub(crate) counted: trigger::Counted,
    /// What an operation's last command has answered, and the arguments of its next one.
    pub(crate) reply: Option<Box<Captured>>,
    pub(crate) composed: Composed,
    /// The program that was looked up last, and what it was given, for the run that follows.
    pub(crate) programs: Prepared,
    /// What TIME has answered to the operation that runs, which it answers again; 0 for nothing yet.
    pub(crate) time_us: u64,
    /// When the time of the operation that runs is over, and of all that it fires, where anything may be fired.
    pub(crate) ends: Option<Ends>,
    /// How long telling all will take who get the messages of what the operation has fired, in nanoseconds.
    pub(crate) delivery_ns: u64,
    /// How long what requests have fired has taken, in nanoseconds, since somebody looked.
    pub(crate) fired_ns: u64,
    /// When the present command began, if it is timed.
    pub(crate) began: Option<Instant>,
    /// How an operation leaves its stack when it takes long, if it runs on one of its own.
    pub(crate) door: Option<Door>,
    /// Requests that another server is to run.
    pub(crate) forwards: Forwards,
    /// Which statistics are this worker's.
    pub worker: u16,
}

impl Local {
    /// For a thread that is no worker.
    #[must_use]
    pub fn of_thread(seed: u64) -> Self {
        Self::new(seed, 0)
    }
    /// From now on those whom one write serves are served in steps.
    pub(crate) const fn serve_in_steps(&mut self) {
        self.serves_in_steps = true;
        self.takers_left = TAKERS_AT_ONCE;
    }
    /// Others have had their turns.
    pub(crate) const fn begin_step(&mut self) {
        if self.serves_in_steps {
            self.takers_left = TAKERS_AT_ONCE;
        }
    }
    /// Nothing yet, for this worker.
    #[must_use]
    pub(crate) fn new(seed: u64, worker: u16) -> Self {
        Self {
            rng: XorShift::new(seed),
            garbage: Vec::new(),
            serves_in_steps: false,
            takers_left: usize::MAX,
            serving: VecDeque::new(),
            leaving: VecDeque::new(),
            ready: VecDeque::new(),
            spare_transaction: None,
            effects: EffectReader::default(),
            messages: Vec::new(),
            lines: Vec::new(),
            scripts: None,
            triggers: trigger::Seen::default(),
            way: trigger::Way::default(),
            counted: trigger::Counted::default(),
            reply: None,
            composed: Composed::default(),
            programs: Prepared::default(),
            time_us: 0,
            ends: None,
            delivery_ns: 0,
            fired_ns: 0,
            began: None,
            door: None,
            forwards: Forwards::default(),
            worker,
        }
    }
}

/// This worker's recorder, and what is read from it here: for keyspace notifications and for who tracks keys.
#[derive(Debug, Default)]
pub struct EffectReader {
    /// Who writes down what operations do.
    pub recorder: Recorder,
    /// The classes of keyspace notifications that are wanted, as bits of [`classes`].
    classes: u32,
    /// How far its tape has been read.
    pub(crate) read: TapeMark,
    /// Keys that were changed in the present command, and whether by themselves. Of all databases: who tracks is told
    /// of a key by its name.
    pub(crate) changed: Vec<(Box<[u8]>, bool)>,
    /// How many of them those who have read them were told of.
    pub(crate) invalidated: usize,
    /// What the present operation has read behind its writes.
    pub(crate) read_behind: ReadBehind,
    /// All keys of a database may have changed.
    pub(crate) flushed: bool,
    /// What the next requests will look for.
    pub(crate) ahead: Ahead,
}

impl EffectReader {
    /// Before something else than the last one's requests: what is wanted, and nothing ahead.
    pub fn begin(&mut self, engine: &Engine) {
        self.recorder.attach(&engine.keyspace);
        self.ahead = Ahead::default();
        self.look_at_settings(engine);
    }
    /// Looks at what is wanted.
    pub fn look_at_settings(&mut self, engine: &Engine) {
        self.classes = engine.events();
        let wanted = self.classes != 0 || engine.special.has(special::TRIGGERS_BY_ITSELF);
        self.recorder.want(if wanted { wants::EVENTS } else { 0 });
    }
    /// Before a command: looks at whether a key that it does not find is told as missed. It is, but for writes that
    /// look for the key they are about to write.
    #[inline]
    pub(crate) fn begin_command(&mut self, spec: &CommandSpec) {
        if self.classes & classes::KEY_MISS != 0 {
            self.recorder.want_also(wants::MISSES, spec.policy & policy::LOOKS_TO_WRITE == 0);
        }
    }
    /// Whether nothing has happened that somebody waits for.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recorder.is_clear() && self.changed.is_empty() && !self.flushed
    }
    /// What became true together is told: before another lock is taken.
    #[inline]
    pub(crate) fn end_group(&mut self) {
        self.recorder.end_group();
    }
    /// Nothing of what would have become true together is told, nor of what follows: the server stops in the middle.
    pub(crate) fn forget_rest(&mut self) {
        self.recorder.forget_rest();
    }
    /// Forgets what was told behind a mark, which nobody wants.
    pub(crate) fn forget_from(&mut self, mark: TapeMark) {
        self.recorder.forget_from(mark);
        if self.read.is_behind(mark) {
            self.read = mark;
        }
    }
    /// All that was told has been read.
    pub(crate) fn clear(&mut self) {
        self.recorder.clear();
        self.read = TapeMark::default();
    }
}

/// What is locked while a handler runs.
pub enum Locked<'a, 'b> {
    /// Nothing, and nothing may be locked: a script keeps what it has.
    Nothing,
    /// No shard: the handler locks what it needs for itself, one at a time.
    Batch(&'a Batch<'b>),
    /// The shards of the command's keys.
    Guards(&'a mut Guards<'b>),
    /// The shard of the command's one key.
    Key(&'a mut ShardGuard<'b>),
    /// Everything: nobody else is in a batch. Shards are locked as they are touched.
    World(&'b World<'b>, &'a mut Guards<'b>),
}

/// What a handler works with.
pub struct Context<'a, 'b> {
    /// What all workers share.
    pub engine: &'a Engine,
    /// Whose request it is. When a blocked request is served by somebody else it is a stand-in, whose changes are lost.
    pub session: &'a mut Session,
    /// What the worker keeps.
    pub local: &'a mut Local,
    /// The time of this command, EXEC or script.
    pub now_ms: u64,
    /// The database.
    pub db: u8,
    pub(crate) may_block: bool,
    /// It is a command of an operation: of a script, a program, a trigger.
    pub(crate) is_inner: bool,
    /// What it writes may fire triggers.
    pub(crate) fires: bool,
    /// How many triggers have led to it.
    pub(crate) depth: u32,
    pub(crate) claim: Option<Claim>,
    pub(crate) locked: Locked<'a, 'b>,
}

impl<'a, 'b> Context<'a, 'b> {
    /// What a handler works with for a session of its own worker, under locks that are held.
    #[inline]
    pub(crate) fn new(
        engine: &'a Engine,
        session: &'a mut Session,
        local: &'a mut Local,
        now_ms: u64,
        locked: Locked<'a, 'b>,
    ) -> Self {
        let db = session.db;
        let (may_block, is_inner, fires) = (true, false, true);
        Self { engine, session, local, now_ms, db, may_block, is_inner, fires, depth: 0, claim: None, locked }
    }
    /// The command must answer at once: in EXEC and in scripts.
    #[must_use]
    pub(crate) fn without_blocking(self) -> Self {
        Self { may_block: false, ..self }
    }
    /// The command runs for a client that waits, if the claim is still to be had, under the locks of whoever wrote: it
    /// fires nothing.
    #[must_use]
    pub(crate) fn for_waiter(self, claim: &Claim) -> Self {
        Self { may_block: false, fires: false, claim: Some(claim.clone()), ..self }
    }
}

impl<'b> Context<'_, 'b> {
    /// A key argument, hashed.
    #[inline]
    #[must_use]
    pub fn key<'k>(&self, args: &Args<'k>, index: usize) -> Key<'k> {
        args.key(&self.engine.keyspace, index)
    }
    /// A key from bytes.
    #[inline]
    #[must_use]
    pub fn key_of<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.engine.keyspace.key(bytes)
    }

    /// The locked shard of a key, with the operation that each of its calls takes. Every access to a key goes through
    /// here.
    ///
    /// # Errors
    /// When the key is not one that was declared for the command: its lock is not held.
    #[inline]
    pub fn shard(&mut self, key: &Key<'_>) -> Result<(&mut ShardGuard<'b>, Op<'_>)> {
        let touch = !self.session.info.has(client_flag::NO_TOUCH);
        let sees_expired = self.sees_expired();
        let EffectReader { ahead, recorder, .. } = &mut self.local.effects;
        let op = Op { db: self.db, now_ms: self.now_ms, touch, sees_expired, ahead: *ahead, recorder };
        let guard = match &mut self.locked {
            Locked::Key(guard) => guard.is_of(key).then_some(&mut **guard),
            Locked::Guards(guards) | Locked::World(_, guards) => guards.find_shard(key),
            Locked::Batch(_) | Locked::Nothing => None,
        };
        match guard {
            Some(guard) => Ok((guard, op)),
            None => Err(undeclared(key)),
        }
    }
    /// As [`shard`](Self::shard), in another database than the session's: MOVE, COPY.
    pub fn shard_in(&mut self, db: u8, key: &Key<'_>) -> Result<(&mut ShardGuard<'b>, Op<'_>)> {
        let (guard, op) = self.shard(key)?;
        Ok((guard, Op { db, ..op }))
    }
    /// The locked shard of a key, for watches and waiters.
    pub fn guard(&mut self, key: &Key<'_>) -> Result<&mut ShardGuard<'b>> {
        self.shard(key).map(|(guard, _)| guard)
    }
    /// Whether the session brings keys in, and so sees those whose time has come.
    #[inline]
    pub(crate) fn sees_expired(&self) -> bool {
        self.session.info.has(client_flag::IMPORT_SOURCE) && self.engine.keyspace.is_importing()
    }
    /// The time at which keys that are read together are seen: see [`view`](Self::view).
    pub(crate) fn seen_ms(&self) -> u64 {
        if self.sees_expired() { 0 } else { self.now_ms }
    }
    /// Whether a time to live that is given has come: none has while keys are brought in.
    pub(crate) fn has_come(&self) -> impl Fn(u64) -> bool + Copy + use<> {
        let until_ms = (!self.engine.keyspace.is_importing()).then_some(self.now_ms);
        move |at_ms| until_ms.is_some_and(|until_ms| at_ms <= until_ms)
    }
    /// Whether a database of this number exists.
    pub fn has_db(&self, db: i64) -> bool {
        usize::try_from(db).is_ok_and(|db| db < self.engine.keyspace.database_count())
    }

    /// SCAN from a cursor on: about `count` keys of the session's database. Scope::Walk or Scope::World.
    ///
    /// # Errors
    /// When a script keeps a shard that the walk comes to: it may be begun again with everything.
    pub fn scan(
        &mut self,
        cursor: Cursor,
        count: u64,
        visit: impl FnMut(&[u8], ValueRef<'_>),
    ) -> Result<Cursor> {
        let sees_expired = self.sees_expired();
        let op = Op::untouched(self.db, self.now_ms, &mut self.local.effects.recorder);
        let mut op = Op { sees_expired, ..op };
        match &mut self.locked {
            Locked::Batch(batch) => {
                batch.scan(&mut op, cursor, count, visit).ok_or_else(|| ErrorCode::NeedsWorld.into())
            }
            Locked::World(_, guards) => Ok(guards.scan(&mut op, cursor, count, visit)),
            Locked::Guards(_) | Locked::Key(_) | Locked::Nothing => {
                unreachable!("a walk does not run under the locks of some keys")
            }
        }
    }

    /// Removes a key whose expiry was set to a time that has come: it counts and is told as expired. Says whether it
    /// was there.
    pub fn expire_now(&mut self, key: &Key<'_>) -> Result<bool> {
        let (shard, mut op) = self.shard(key)?;
        let Some(garbage) = shard.expire(&mut op, key) else { return Ok(false) };
        self.discard(garbage);
        Ok(true)
    }
    /// Keeps what a removed value owned until the locks are gone.
    #[inline]
    pub fn discard(&mut self, garbage: Garbage) {
        if !matches!(garbage, Garbage::Nothing) {
            self.local.garbage.push(garbage);
        }
    }
}

/// What a command answers that comes to a key which nobody has declared for it.
#[cold]
fn undeclared(key: &Key<'_>) -> Error {
    let name = String::from_utf8_lossy(key.bytes());
    Error::new(ErrorCode::Undeclared, format!("the key '{name}' was not declared for this command"))
}
