//! Owns: one run of a script or function: what it calls runs under the request's locks; what it must not do is refused;
//! when it comes to keys that it has not declared it is taken back and runs again with everything. Does not own: Lua,
//! running a command inside an operation (`crate::inner`), which locks were taken (`super`).

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use weft_lua::{Called, Frame, Host, Level, Verdict, shebang};
use weft_protocol::table::{CommandId, CommandSpec, flag};

use super::convert;
use super::logged::Logged;
use crate::acl::LogPlace;
use crate::args::{Args, Composed, find};
use crate::context::{Local, Locked};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result, full_name};
use crate::excerpt::shown;
use crate::executor::JobOutcome;
use crate::inner::{Inner, Refusal, Undoing};
use crate::keys;
use crate::requests::is_container;
use crate::script::Running;
use crate::special;

/// What is run.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'s> {
    /// The script's SHA-1, or the function's name.
    pub name: &'s [u8],
    /// Whether it is a script.
    pub is_eval: bool,
    /// Bits of [`shebang::flag`].
    pub flags: u32,
    /// By a `_RO` command.
    pub read_only: bool,
}

/// A run.
pub(crate) struct ScriptRun<'r, 'c, 'a, 'b> {
    inner: Inner<'c, 'a, 'b>,
    subject: Subject<'r>,
    /// The request.
    args: &'r Args<'r>,
    /// What `setresp` has chosen.
    pub resp: u8,
    /// It must not write.
    read_only: bool,
    wrote: bool,
    /// `script-kill-undo`, as it was when it began.
    takes_back: bool,
    undoing: Option<Undoing>,
    /// It has come to more than is locked.
    pub strayed: bool,
    killed: bool,
    /// It has come to keys that it does not declare, and to their locks at once.
    undeclared: bool,
    /// It has run for so long that others see it.
    shown: bool,
    taking: Taking,
    /// What it has said in the log, as long as it may be taken back and run again, and what that takes in bytes.
    said: Vec<(Level, Box<[u8]>)>,
    said_bytes: usize,
    /// What its commands take.
    logged: Logged,
}

/// The time that something of a script takes: others see it, are served meanwhile, and may end it.
pub(super) struct Taking {
    started: Instant,
    /// When it began, or was gone on with.
    since: Instant,
}

impl Taking {
    pub(super) const fn new(started: Instant) -> Self {
        Self { started, since: started }
    }
    /// It has run for a while, for a function or script that a request names. Says whether it is to end.
    pub(super) fn look(
        &mut self,
        engine: &Engine,
        local: &Local,
        (name, is_eval, args): (&[u8], bool, &Args<'_>),
    ) -> bool {
        let (place, started) = (engine.scripts.place(local.worker), self.started);
        place.show(|| Running {
            name: name.into(),
            command: (0..args.len()).map(|at| args.bytes(at).into()).collect(),
            is_eval,
            since: started,
        });
        let threshold_ms = engine.settings.busy_reply_ms.load(Relaxed);
        if threshold_ms > 0
            && started.elapsed().as_millis() >= u128::from(threshold_ms)
            && self.since.elapsed() >= SLICE
            && let Some(door) = &local.door
        {
            // Others are served; it goes on when the door lets it in again.
            let _ = door.give(JobOutcome::Left);
            self.since = Instant::now();
        }
        place.is_killed()
    }
}

/// Why a command did not run, or has failed.
struct Failure {
    /// What the script is told.
    line: String,
    /// As what it counts among errors, where the line says something else.
    counts_as: Option<ErrorCode>,
}

impl From<String> for Failure {
    fn from(line: String) -> Self {
        Self { line, counts_as: None }
    }
}

/// What is kept of a script's writes and messages so that they can be taken back, in bytes. One that comes to more runs
/// again with the keyspace to itself, where nothing of it need be; where it can be killed behind a write
/// (`script-kill-undo`) it is an error.
const UNDO_BYTES_MAX: usize = 64 << 20;

/// What is kept of the lines that a script beside others says in the log, until it is known that it does not run again,
/// in bytes. One that says more runs again with the keyspace to itself, where nothing need be kept.
const SAID_BYTES_MAX: usize = 1 << 20;

/// What a script is told whose writes could not be taken back any more. They stay.
const TOO_MUCH_TO_UNDO: &str = "ERR this script writes more than can be taken back (script-kill-undo): do less in one script, or turn that off";

/// How long one that takes its time runs before others are served again.
const SLICE: Duration = Duration::from_millis(5);

/// What a script that strayed is told, which nobody sees: all of it is taken back.
const STRAYED: &str = "ERR the script runs again with the whole keyspace";

impl<'r, 'c, 'a, 'b> ScriptRun<'r, 'c, 'a, 'b> {
    /// A run that has not begun.
    pub(crate) fn new(mut inner: Inner<'c, 'a, 'b>, subject: Subject<'r>, args: &'r Args<'r>) -> Self {
        if !inner.has_world() {
            // If it runs again what it has run counts for nothing.
            inner.context().local.counted.begin();
        }
        let now = inner.context().local.began.unwrap_or_else(Instant::now);
        let engine = inner.context().engine;
        let writes_nothing = subject.flags & (shebang::flag::COMPAT | shebang::flag::NO_WRITES);
        Self {
            inner,
            subject,
            args,
            resp: 2,
            read_only: subject.read_only || writes_nothing == shebang::flag::NO_WRITES,
            wrote: false,
            takes_back: engine.settings.script_kill_undo.load(Relaxed),
            undoing: None,
            strayed: false,
            killed: false,
            undeclared: false,
            shown: false,
            taking: Taking::new(now),
            said: Vec::new(),
            said_bytes: 0,
            logged: Logged::new(engine),
        }
    }

    /// Whether it may run at all, by what it says of itself.
    pub(crate) fn check(&mut self) -> Result {
        let flags = self.subject.flags;
        if flags & shebang::flag::COMPAT != 0 {
            return Ok(());
        }
        if flags & shebang::flag::NO_WRITES == 0 && self.subject.read_only {
            return Err(Error::err("Can not execute a script with write flag using *_ro command."));
        }
        let engine = self.inner.context().engine;
        let may_be_full = shebang::flag::ALLOW_OOM | shebang::flag::NO_WRITES;
        if flags & may_be_full == 0
            && engine.special.has(special::LIMITED)
            && !engine.has_room()
            && !engine.makes_room()
        {
            return Err(ErrorCode::OutOfMemory.into());
        }
        Ok(())
    }

    /// The run is over. What it wrote stays, unless it runs again or was ended and that takes back.
    pub(crate) fn end(&mut self) -> Result {
        let engine = self.inner.context().engine;
        let worker = self.inner.context().local.worker;
        let stops = self.killed && engine.scripts.place(worker).is_stopped();
        if self.shown || self.wrote {
            engine.scripts.place(worker).clear();
        }
        let undo = self.strayed || self.killed;
        self.inner.forget_reply();
        match self.undoing.take() {
            Some(undoing) if undo => self.inner.abandon(undoing),
            Some(undoing) => self.inner.commit(undoing),
            None => {}
        }
        if stops {
            super::stop(self.inner.context());
        }
        if self.undeclared && !self.strayed {
            engine.scripts.undeclared.fetch_add(1, Relaxed);
        }
        if self.strayed {
            return Err(ErrorCode::NeedsWorld.into());
        }
        self.said.iter().for_each(|(level, text)| engine.facts.script_log(*level, text));
        self.logged.note_all(self.inner.context());
        Ok(())
    }

    /// A command that is about to write, or to tell others something: from now on there is something to take back.
    /// A write is not for who has been ended meanwhile, and whose writes would stay.
    fn begin_writing(&mut self, is_write: bool) -> Result<(), String> {
        if is_write && !self.wrote {
            let context = self.inner.context();
            if !context.engine.scripts.place(context.local.worker).writes(self.takes_back) {
                return Err(killed(self.subject.is_eval).to_owned());
            }
            self.wrote = true;
        }
        if self.undoing.is_none() && (self.takes_back || !self.inner.has_world()) {
            self.undoing = Some(self.inner.begin_undo());
        }
        Ok(())
    }

    /// Whether there is room to take back what is done next.
    fn check_undo(&mut self) -> Result<(), String> {
        if self.undoing.is_none() || self.inner.undo_bytes() <= UNDO_BYTES_MAX {
            return Ok(());
        }
        if self.inner.has_world() {
            return Err(TOO_MUCH_TO_UNDO.to_owned());
        }
        self.strayed = true;
        Err(String::new())
    }

    /// Whether the locks of a command's keys are held or can be had at once. The hash of the first one, where it was
    /// needed here, goes with the arguments.
    fn covers_keys(&mut self, args: &mut Args<'_>) -> bool {
        let context = self.inner.context();
        let keyspace = &context.engine.keyspace;
        let Locked::Guards(guards) = &mut context.locked else { return true };
        let (mut all, mut added, mut first) = (true, false, None);
        keys::each(args, |index| {
            let key = args.key(keyspace, index);
            first.get_or_insert((index, key.hash()));
            if !guards.covers(&key) {
                added = true;
                all = all && guards.try_cover(&key);
            }
        });
        self.undeclared |= added;
        if let Some((index, hash)) = first
            && let Ok(index) = u16::try_from(index)
        {
            args.set_key(index, hash);
        }
        all
    }

    /// Why a command does not run; nothing is told where the script has strayed.
    fn refuse(&mut self, refusal: Refusal) -> Failure {
        let counts_as = matches!(refusal, Refusal::Denied(..)).then_some(ErrorCode::NoPerm);
        let line = match refusal {
            Refusal::Unknown => "ERR Unknown command called from script".to_owned(),
            Refusal::Arity(_) => "ERR Wrong number of args calling command from script".to_owned(),
            Refusal::Forbidden(_) => "ERR This Valkey command is not allowed from script".to_owned(),
            Refusal::Denied(_, text) => format!("ERR ACL failure in script: {text}"),
            Refusal::NoRoom => Error::from(ErrorCode::OutOfMemory).line(),
            Refusal::NotKept(error) => error.line(),
            Refusal::NeedsWorld => {
                self.strayed = true;
                String::new()
            }
        };
        Failure { line, counts_as }
    }

    /// Runs a command, whose reply is `self.inner`'s; otherwise says why not.
    fn run(&mut self, words: &[&[u8]]) -> Result<(), Failure> {
        let Some(id) = find(words[0], words.get(1).copied()) else {
            return Err("ERR Unknown command called from script".to_owned().into());
        };
        // COMMAND by itself is one too.
        let is_command = words.len() == 1 && self.inner.context().engine.handler(id).is_some();
        if is_container(id) && !is_command {
            return Err(of_container(id.spec(), words).into());
        }
        let mut composed = std::mem::take(&mut self.inner.context().local.composed);
        composed.clear();
        words.iter().for_each(|word| composed.push(word));
        let ran = self.run_found(id, &mut composed.args(id.spec()));
        composed.clear();
        self.inner.context().local.composed = composed;
        ran
    }
    fn run_found(&mut self, id: CommandId, args: &mut Args<'_>) -> Result<(), Failure> {
        // What may be told to others counts as a write: a pause of writes lets what is read-only pass.
        let writes = id.spec().flags & (flag::WRITE | flag::MAY_REPLICATE) != 0;
        let handler = match self.inner.admit(args) {
            // Only before its first write is a script stopped by a lack of memory: it could not take that back.
            Err(Refusal::NoRoom) if self.wrote || self.may_be_full() => {
                self.inner.rejected(id, -1);
                self.inner.context().engine.handler(id).ok_or_else(String::new)?
            }
            Err(refusal) => return Err(self.refuse(refusal)),
            Ok(handler) => handler,
        };
        if writes && self.read_only {
            self.inner.rejected(id, 1);
            return Err(READ_ONLY.to_owned().into());
        }
        if !self.covers_keys(args) {
            self.strayed = true;
            return Err(String::new().into());
        }
        if writes {
            self.begin_writing(id.spec().flags & flag::WRITE != 0)?;
            self.check_undo()?;
        }
        let begun = self.logged.begin(id);
        let outcome = self.inner.run(handler, args);
        self.logged.end(&mut self.inner, args, begun, (self.resp, outcome.as_ref().err()));
        self.inner.context().note_call(args);
        match outcome {
            Ok(()) => Ok(()),
            Err(error) if matches!(error.code, ErrorCode::Undeclared | ErrorCode::NeedsWorld) => {
                self.strayed = true;
                Err(String::new().into())
            }
            Err(error) => Err(error.line().into()),
        }
    }
    fn may_be_full(&self) -> bool {
        let flags = shebang::flag::COMPAT | shebang::flag::ALLOW_OOM;
        self.subject.flags & flags == shebang::flag::ALLOW_OOM
    }
}

impl Host for ScriptRun<'_, '_, '_, '_> {
    fn call(&mut self, args: &[&[u8]], reply: &mut Frame<'_>) -> Called {
        if self.strayed {
            reply.push_error(STRAYED);
            return Called::Error;
        }
        match self.run(args) {
            Ok(()) => {
                let engine = self.inner.context().engine;
                if let Some(reply) = self.inner.captured() {
                    engine.scripts.tracer.trace(args, Ok(reply));
                }
                self.push_again(reply)
            }
            Err(_) if self.strayed => {
                reply.push_error(STRAYED);
                Called::Error
            }
            Err(Failure { line, counts_as }) => {
                let context = self.inner.context();
                context.engine.scripts.tracer.trace(args, Err(&line));
                let worker = usize::from(context.local.worker);
                let counted = counts_as.map_or_else(|| convert::error_of(line.as_bytes()), Error::from);
                context.engine.stats.workers[worker].error(&counted);
                convert::push_error(reply, &line, true);
                Called::Error
            }
        }
    }

    fn push_again(&mut self, reply: &mut Frame<'_>) -> Called {
        let mut items = self.inner.reply();
        let is_error = items.are_error();
        match convert::push(reply, &mut items, self.resp) {
            Ok(()) if is_error => Called::Error,
            Ok(()) => Called::Reply,
            Err(convert::NoRoom) => Called::NoRoom,
        }
    }

    fn tick(&mut self) -> Verdict {
        if self.strayed {
            return Verdict::End(STRAYED.into());
        }
        let Subject { name, is_eval, .. } = self.subject;
        let context = self.inner.context();
        context.show_notes();
        self.shown = true;
        if !self.taking.look(context.engine, context.local, (name, is_eval, self.args)) {
            return Verdict::GoOn;
        }
        self.killed = true;
        Verdict::End(killed(is_eval).into())
    }

    fn log(&mut self, level: Level, text: &[u8]) {
        if self.inner.has_world() {
            self.inner.context().engine.facts.script_log(level, text);
        } else if !self.strayed {
            self.said_bytes += text.len() + size_of::<(Level, Box<[u8]>)>();
            self.strayed = self.said_bytes > SAID_BYTES_MAX;
            if !self.strayed {
                self.said.push((level, text.into()));
            }
        }
    }
    fn set_resp(&mut self, version: u8) {
        self.resp = version;
    }
    fn may(&mut self, args: &[&[u8]]) -> Option<bool> {
        let id = find(args[0], args.get(1).copied())?;
        // A subcommand that there is not is no command.
        if is_container(id) && args.len() > 1 {
            return None;
        }
        let mut composed = Composed::default();
        args.iter().for_each(|word| composed.push(word));
        let context = self.inner.context();
        let session = &*context.session;
        let count = context.engine.keyspace.database_count();
        Some(session.user.all || session.user.check(&composed.args(id.spec()), session.db, count).is_ok())
    }
}

const READ_ONLY: &str = "ERR Write commands are not allowed from read-only scripts.";

/// What who was ended is told.
const fn killed(is_eval: bool) -> &'static str {
    if is_eval {
        "ERR Script killed by user with SCRIPT KILL."
    } else {
        "ERR Script killed by user with FUNCTION KILL."
    }
}

/// What a container without one of its subcommands answers.
fn of_container(spec: &CommandSpec, words: &[&[u8]]) -> String {
    let Some(word) = words.get(1) else {
        return "ERR Wrong number of args calling command from script".to_owned();
    };
    format!("ERR unknown subcommand '{}'. Try {} HELP.", shown(word), full_name(spec).to_ascii_uppercase())
}

/// Where the commands inside were, as ACL LOG says it.
pub(crate) const PLACE: LogPlace = LogPlace::Lua;
