//! Owns: everything that can be said of a request before it runs: whether it exists, has enough arguments, may be run
//! by this user now; and queuing it in MULTI. Does not own: running it.
//!
//! The order is Valkey's: authentication, unknown, arity, rights, what is being loaded or cannot be kept, a script that
//! takes its time, memory, event streams, MONITOR, subscriber mode, pause, transaction.
//!
//! Neighbours are not asked (`super::neighbours`, what of the engine is special to each: `special::EACH`), nor are
//! commands inside of operations (`Inner::admit`).

use std::sync::atomic::Ordering::Relaxed;
use weft_lua::shebang;
use weft_protocol::table::{CommandId, CommandSpec, flag, policy};

use super::{Core, Tier};
use crate::args::{Args, check_arity};
use crate::config::Settings;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result, full_name};
use crate::excerpt::{SHOWN_BYTES_MAX, shown};
use crate::forward;
use crate::handler::{Handler, Scope};
use crate::reply::ReplySink;
use crate::requests::What;
use crate::respb;
use crate::script::{
    self,
    space::{Loading, Space},
};
use crate::session::{Session, client_flag};
use crate::special;
use crate::stats::bump;
use crate::trigger::Ahead;

/// What is to be done with a request.
pub(super) enum Verdict {
    /// It runs.
    Run(CommandId, Handler),
    /// MULTI is open: it is kept.
    Queue,
    /// CLIENT PAUSE: not before this time.
    Pause(u64),
}

impl Core<'_> {
    #[inline]
    pub(super) fn admit(
        &mut self,
        tier: Tier<'_>,
        what: What,
        args: &Args<'_>,
        session: &mut Session,
    ) -> Result<Verdict> {
        if session.acl_epoch != self.engine.acl.epoch() {
            self.engine.refresh_user(session);
        }
        if !session.authenticated && !needs_no_auth(what) && self.engine.needs_auth(session) {
            return Err(ErrorCode::NoAuth.into());
        }
        let What::Command(id) = what else { return Err(unknown(what, args)) };
        let spec = id.spec();
        let Some(handler) = self.engine.handler(id) else { return Err(unserved(id, args)) };
        check_arity(spec, args.len())?;
        if !session.user.all {
            // It is answered so whoever asks.
            if spec.flags & flag::NO_MULTI != 0 && session.in_multi() {
                return Err(not_in_multi(spec));
            }
            self.engine.check_acl(session, args, session.log_place(), self.now_ms)?;
            self.check_reach(args, session, session.next_db())?;
        }
        let special = self.engine.special.bits();
        if special & (special::LOADING | special::REFUSING) != 0 {
            self.check_kept(special, handler, spec, session)?;
        }
        if special & special::BUSY != 0 && spec.flags & flag::ALLOW_BUSY == 0 {
            return Err(self.engine.scripts.busy_error());
        }
        // Any command makes room, as in Valkey: a limit that was lowered is kept also by who only reads.
        if special & special::LIMITED != 0
            && let Tier::Batch(batch) = tier
            && !self.make_room(batch)
            && (needs_memory(self.engine, handler, spec, session) || self.script_needs_memory(args))
        {
            match &mut session.transaction {
                // A script has begun to take its time, and keeps what would make room.
                _ if self.engine.is_busy() && spec.flags & flag::ALLOW_BUSY == 0 => {
                    return Err(self.engine.scripts.busy_error());
                }
                Some(transaction) if matches!(handler.scope, Scope::Exec) => transaction.no_room = true,
                _ => return Err(ErrorCode::OutOfMemory.into()),
            }
        }
        if spec.policy & policy::STREAMS != 0 && !session.has_streams() {
            return Err(no_stream(spec));
        }
        if session.info.has(client_flag::MONITOR) {
            check_monitor(spec)?;
        }
        if session.in_resp2_pubsub() {
            check_subscriber(spec)?;
        }
        if special & (special::PAUSED | special::BEHIND) != 0
            && let Some(until_ms) = self.paused(handler, args, session)
        {
            return Ok(Verdict::Pause(until_ms));
        }
        if session.in_multi() {
            if let Some(way) = self.engine.ways()
                && spec.policy & policy::IN_MULTI == 0
                && spec.flags & flag::NO_MULTI == 0
            {
                forward::check_queued(way(id), spec)?;
            }
            return in_multi(id, handler, args, session);
        }
        Ok(Verdict::Run(id, handler))
    }

    /// What was kept is being loaded, or what is written could not be kept.
    #[cold]
    fn check_kept(&self, special: u32, handler: Handler, spec: &CommandSpec, session: &Session) -> Result {
        if special & special::LOADING != 0 {
            let runs =
                session.loads || spec.flags & flag::LOADING != 0 || spec.policy & policy::FAST_PING != 0;
            return if runs { Ok(()) } else { Err(self.engine.loading_error()) };
        }
        match self.engine.refusal() {
            // What is published changes nothing that is kept.
            Some(error) if writes(handler, spec, session) && spec.flags & flag::MAY_REPLICATE == 0 => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Until when CLIENT PAUSE holds a command.
    fn paused(&mut self, handler: Handler, args: &Args<'_>, session: &Session) -> Option<u64> {
        let (spec, pause) = (args.spec, &self.engine.pause);
        let until_ms = pause.until_ms();
        let writes = match &session.transaction {
            Some(transaction) if matches!(handler.scope, Scope::Exec) => {
                transaction.queued.iter().any(|args| self.may_write(&args))
            }
            _ => self.may_write(args),
        };
        if writes && self.engine.special.has(special::BEHIND) && spec.policy & policy::CONTROL == 0 {
            return Some(self.engine.held_back_until_ms(self.now_ms));
        }
        // It must not hold the command that ends it, nor what comes before it and behind it on a connection.
        let held = (writes || !pause.writes_only()) && spec.policy & policy::CONTROL == 0;
        (held && until_ms > self.now_ms).then_some(until_ms)
    }

    /// Whether a command may write, or tell others of what is no write; where a script or function says in its first
    /// line what it does, that counts.
    fn may_write(&mut self, args: &Args<'_>) -> bool {
        match self.flags_of_script(args) {
            Some(flags) => flags & shebang::flag::NO_WRITES == 0,
            None => args.spec.flags & (flag::WRITE | flag::MAY_REPLICATE) != 0,
        }
    }
    /// Whether a script or function is refused where there is no memory, by what it says of itself.
    fn script_needs_memory(&mut self, args: &Args<'_>) -> bool {
        let may_be_full = shebang::flag::ALLOW_OOM | shebang::flag::NO_WRITES;
        self.flags_of_script(args).is_some_and(|flags| flags & may_be_full == 0)
    }
    /// The flags of the script or function that a command runs, if it is there and says some.
    fn flags_of_script(&mut self, args: &Args<'_>) -> Option<u32> {
        let (engine, policy) = (self.engine, args.spec.policy);
        let flags = match () {
            () if policy & policy::RUNS_SCRIPT != 0 => shebang::script(args.bytes(1)).ok()?.flags,
            () if policy & policy::RUNS_SHA != 0 => {
                engine.scripts.get(&script::sha_of(args.bytes(1))?)?.flags
            }
            () if policy & policy::RUNS_FUNCTION != 0 => {
                let insecure = engine.settings.lua_insecure.load(Relaxed);
                let mut space = Space::taken(&mut self.local.scripts, &engine.scripts, insecure).ok()?;
                let looked =
                    space.look(&engine.scripts, &engine.keyspace, &mut Loading::again(&engine.facts, None));
                debug_assert!(looked.is_ok(), "nobody can end it");
                let flags = space.function(args.bytes(1)).map(|function| function.flags);
                self.local.scripts = Some(space);
                flags?
            }
            () => return None,
        };
        (flags & shebang::flag::COMPAT == 0).then_some(flags)
    }

    /// Answers an error instead of running a request; inside MULTI the transaction is lost.
    pub(super) fn refuse(
        &mut self,
        tier: Tier<'_>,
        what: What,
        session: &mut Session,
        mut error: Error,
        sink: &mut ReplySink<'_>,
    ) {
        if let What::Command(id) = what
            && self.engine.handler(id).is_some_and(|handler| matches!(handler.scope, Scope::Exec))
        {
            error = abort(error);
            end_transaction(tier, session);
            self.local.forwards.release(session);
        } else if let Some(transaction) = &mut session.transaction
            && transaction.open
        {
            transaction.refused = true;
        }
        if let What::Command(id) = what {
            bump(&self.stats.by_command[usize::from(id.0)].rejected, 1);
        }
        self.stats.error(&error);
        sink.error(&error);
    }

    /// What others see of a request that does not run: that the client has sent it.
    pub(super) fn show_command(&self, what: What, session: &Session) {
        let info = &session.info;
        info.active_ms.store(self.now_ms, Relaxed);
        info.last_command.store(if let What::Command(id) = what { id.0 } else { u16::MAX }, Relaxed);
    }
}

fn not_in_multi(spec: &CommandSpec) -> Error {
    Error::err(format!("Command '{}' not allowed inside a transaction", full_name(spec)))
}

/// What EXEC answers when it is refused itself.
pub(super) fn abort(error: Error) -> Error {
    let prefix = if error.prefix() == "ERR" { String::new() } else { format!("{} ", error.prefix()) };
    Error::new(ErrorCode::ExecAbort, format!("Transaction discarded because of: {prefix}{}", error.text))
}

/// Ends MULTI and WATCH as DISCARD does. While a script has the shards of the watches, they stay there and count no
/// more.
pub(super) fn end_transaction(tier: Tier<'_>, session: &mut Session) {
    if let Some(mut transaction) = session.transaction.take() {
        if let Tier::Batch(batch) = tier {
            transaction.unwatch(batch);
        }
        session.transaction = transaction.ended();
        session.show_queued(None);
        session.info.watched.store(0, Relaxed);
    }
}

/// Whether a command writes; EXEC, if any of its commands does.
fn writes(handler: Handler, spec: &CommandSpec, session: &Session) -> bool {
    spec.flags & (flag::WRITE | flag::MAY_REPLICATE) != 0
        || matches!(handler.scope, Scope::Exec)
            && session
                .transaction
                .as_ref()
                .is_some_and(|transaction| transaction.any(|spec| spec.flags & flag::WRITE != 0))
}

/// Whether a command may store more than it frees; EXEC, if any of its commands may.
fn needs_memory(engine: &Engine, handler: Handler, spec: &CommandSpec, session: &Session) -> bool {
    let needs = |spec: &CommandSpec| !engine.may_run_without_room(spec);
    needs(spec)
        || matches!(handler.scope, Scope::Exec)
            && session.transaction.as_ref().is_some_and(|transaction| transaction.any(needs))
}

fn in_multi(id: CommandId, handler: Handler, args: &Args<'_>, session: &Session) -> Result<Verdict> {
    let spec = id.spec();
    if spec.flags & flag::NO_MULTI != 0 {
        return Err(not_in_multi(spec));
    }
    if spec.policy & policy::IN_MULTI != 0 {
        return Ok(Verdict::Run(id, handler));
    }
    // The bytes behind EXEC would be read in another protocol than the client knows when it sends them. Over RESPB the
    // option changes nothing.
    let switches = spec.policy & policy::SWITCHES_WIRE != 0 && session.wire.protocol.is_resp();
    if switches && (2..args.len()).any(|index| args.is(index, "PROTO")) {
        return Err(Error::err(respb::NO_SWITCH));
    }
    Ok(Verdict::Queue)
}

/// Keeps a command for EXEC, with the text that it brings as that was read.
pub(super) fn queue(
    settings: &Settings,
    session: &mut Session,
    (args, ahead): (&Args<'_>, Option<Ahead>),
    sink: &mut ReplySink<'_>,
) {
    let Some(transaction) = &mut session.transaction else { return };
    if args.spec.policy & policy::SELECTS_DB != 0
        && let Some(db) = args.int(1).ok().and_then(|db| u8::try_from(db).ok())
    {
        transaction.db = Some(db);
    }
    let (limit, directive) = if session.wire.protocol.is_resp() {
        (&settings.query_bytes_max, "client-query-buffer-limit")
    } else {
        (&settings.respb_connection_queue_bytes_max, "respb-connection-queue-bytes")
    };
    let of_connection = session.info.connection.queued_bytes.load(Relaxed);
    let bytes = transaction.queued.push(args) + ahead.as_ref().map_or(0, Ahead::bytes);
    if of_connection + bytes as u64 > limit.load(Relaxed) as u64 {
        transaction.refused = true;
        (transaction.queued, transaction.ahead) = Default::default();
        transaction.queued_bytes = 0;
        session.show_queued(Some((0, 0)));
        let text = format!("the transactions of this connection have queued too much ({directive})");
        return sink.error(&Error::new(ErrorCode::Limit, text));
    }
    transaction.queued_bytes += bytes;
    let place = transaction.queued.len() - 1;
    transaction.ahead.extend(ahead.map(|ahead| (place, Box::new(ahead) as _)));
    let queued = (transaction.queued.len(), transaction.queued_bytes);
    session.show_queued(Some(queued));
    sink.simple("QUEUED");
}

/// Which frames there are, which says nothing of what is kept, may be asked before authentication too.
fn needs_no_auth(what: What) -> bool {
    match what {
        What::Command(id) => id.spec().flags & flag::NO_AUTH != 0,
        What::UnknownFrame(_) => true,
        What::UnknownCommand | What::UnknownSubcommand(_) => false,
    }
}

/// What it asks for comes without end, and this wire has one answer to a request.
#[cold]
fn no_stream(spec: &CommandSpec) -> Error {
    let streams = "/subscribe, /psubscribe, /monitor and /v1/events are event streams";
    Error::err(format!(
        "'{}' is no single answer, and is not served over HTTP as one: {streams}",
        full_name(spec)
    ))
}

/// Who watches what others run has nothing to do with keys: that would be mixed with the lines that it is sent.
#[cold]
fn check_monitor(spec: &CommandSpec) -> Result {
    if spec.flags & (flag::READONLY | flag::WRITE | flag::MAY_REPLICATE) == 0 {
        return Ok(());
    }
    Err(Error::err("Replica can't interact with the keyspace"))
}

fn check_subscriber(spec: &CommandSpec) -> Result {
    if spec.policy & policy::SUBSCRIBER != 0 {
        return Ok(());
    }
    Err(Error::err(format!(
        "Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
        full_name(spec)
    )))
}

/// The message about something that is no command.
pub(crate) fn unknown(what: What, args: &Args<'_>) -> Error {
    match what {
        What::UnknownFrame(opcode) => Error::err(format!("unknown frame 0x{opcode:04X}")),
        What::UnknownSubcommand(container) => Error::err(format!(
            "unknown subcommand '{}'. Try {} HELP.",
            shown(args.bytes(1)),
            full_name(container.spec()).to_ascii_uppercase()
        )),
        What::UnknownCommand | What::Command(_) => {
            let mut list = String::new();
            for argument in args.rest(1) {
                if list.len() >= SHOWN_BYTES_MAX {
                    break;
                }
                let left = SHOWN_BYTES_MAX - list.len();
                let argument = &argument[..argument.len().min(left)];
                list.push_str(&format!("'{}' ", String::from_utf8_lossy(argument)));
            }
            Error::err(format!(
                "unknown command '{}', with args beginning with: {list}",
                shown(args.bytes(0))
            ))
        }
    }
}

/// A command of the table that has no handler: a container called without a subcommand, or one that is not served.
fn unserved(id: CommandId, args: &Args<'_>) -> Error {
    if crate::requests::is_container(id) {
        return match args.len() {
            0 | 1 => Error::arity(id.spec()),
            _ => unknown(What::UnknownSubcommand(id), args),
        };
    }
    if id.spec().container.is_some() {
        return Error::err(format!(
            "unknown subcommand '{}'. Try {} HELP.",
            shown(args.bytes(1)),
            String::from_utf8_lossy(args.bytes(0)).to_ascii_uppercase()
        ));
    }
    unknown(What::UnknownCommand, args)
}
