//! Owns: MIGRATE's two halves: its arguments and looking the keys up, and what follows when they have arrived. Does not
//! own: what is sent and who takes it (`crate::carrier`), sending it.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use weft_store::{Batch, Key, Worker};

use crate::args::Args;
use crate::blocking::{self, Empty};
use crate::carrier::{Arrival, Cargo};
use crate::context::{Context, Local};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::keys::{self, MIGRATE_KEY_AT, MIGRATE_OPTIONS_AT};
use crate::reply::ReplySink;

use super::dump;

pub(crate) const LIST: &[Entry] = &[("MIGRATE", Scope::Keys, migrate)];

/// When the client says no time, or none that makes sense.
const TIMEOUT_MS: u64 = 1000;
/// A day is longer than any transfer.
const TIMEOUT_MS_MAX: u64 = 86_400_000;

#[derive(Default)]
struct Options {
    copy: bool,
    replace: bool,
    credentials: Vec<Vec<u8>>,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut at = MIGRATE_OPTIONS_AT;
        while at < args.len() {
            let more = args.len() - at - 1;
            if args.is(at, "COPY") {
                options.copy = true;
            } else if args.is(at, "REPLACE") {
                options.replace = true;
            } else if args.is(at, "AUTH") && more >= 1 {
                options.credentials = vec![args.bytes(at + 1).to_vec()];
                at += 1;
            } else if args.is(at, "AUTH2") && more >= 2 {
                options.credentials = vec![args.bytes(at + 1).to_vec(), args.bytes(at + 2).to_vec()];
                at += 2;
            } else if args.is(at, "KEYS") {
                if !args.bytes(MIGRATE_KEY_AT).is_empty() {
                    return Err(Error::err(
                        "When using MIGRATE KEYS option, the key argument must be set to the empty string",
                    ));
                }
                break;
            } else {
                return Err(ErrorCode::Syntax.into());
            }
            at += 1;
        }
        Ok(options)
    }
}

fn migrate(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let options = Options::parse(args)?;
    let (timeout_ms, target_db) = (args.int(5)?, args.int(4)?);
    let timeout_ms = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0).unwrap_or(TIMEOUT_MS);
    let engine = context.engine;
    check_host(engine, args)?;
    let (mut places, mut items, mut weight) = (Vec::new(), Vec::new(), engine.carrier.weight());
    let bytes_max = engine.settings.migrate_bytes_max.load(Relaxed);
    keys::each(args, |index| places.push(index));
    for index in places {
        let key = context.key(args, index);
        let Some(item) = dump::item(context, &key)? else { continue };
        if !weight.add(&item, bytes_max) {
            return Err(Error::err(TOO_MUCH));
        }
        items.push(item);
    }
    if items.is_empty() {
        sink.simple("NOKEY");
        return Ok(());
    }
    let Some(send) = engine.carrier.get().filter(|_| context.may_block()) else {
        return Err(Error::err("MIGRATE waits for another server: it cannot run inside a transaction"));
    };
    let io_error = || Error::with_prefix("IOERR", "error or timeout connecting to the client");
    let port = args.int(2).ok().and_then(|port| u16::try_from(port).ok()).ok_or_else(io_error)?;
    let host = String::from_utf8(args.bytes(1).to_vec()).map_err(|_| io_error())?;
    context.block(args.to_owned_args(), (0..0, &[]), (0, Empty::Null))?;
    let Some(wait) = context.session.wait.as_ref().map(|wait| wait.shared()) else { return Ok(()) };
    let cargo = Box::new(Cargo {
        host,
        port,
        until: Instant::now() + Duration::from_millis(timeout_ms.min(TIMEOUT_MS_MAX)),
        credentials: options.credentials,
        target_db,
        replace: options.replace,
        copy: options.copy,
        items,
        weight,
        wait,
    });
    if let Err(cargo) = send(cargo) {
        engine.give_back(&cargo, &Error::err(TOO_MANY));
    }
    Ok(())
}

/// Whether `migrate-allow` names the target, or nobody.
fn check_host(engine: &Engine, args: &Args<'_>) -> Result {
    let allowed = engine.config.text("migrate-allow");
    let target = [args.bytes(1), b":", args.bytes(2)].concat();
    let mut named = allowed.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).peekable();
    let is_free = named.peek().is_none();
    if is_free
        || named.any(|word| word.eq_ignore_ascii_case(args.bytes(1)) || word.eq_ignore_ascii_case(&target))
    {
        return Ok(());
    }
    Err(Error::err("MIGRATE to this host is not allowed: migrate-allow names those that keys may be sent to"))
}

/// When somebody whose keys a script keeps is looked at again.
const AGAIN: Duration = Duration::from_millis(10);
const TOO_MUCH: &str = "MIGRATE: all keys that are on their way to other servers would take more memory than \
                        migrate-bytes allows; send fewer at once, or try again later";
const TOO_MANY: &str = "MIGRATE: keys are on their way to too many servers at once; try again later";

impl Engine {
    /// Tells the client of a cargo that nobody could take: its keys stay.
    pub(crate) fn give_back(&self, cargo: &Cargo, error: &Error) {
        blocking::refuse(self, &cargo.wait, error);
    }

    /// The second half of a MIGRATE: takes away what has arrived and answers the client. On a thread of its own, with
    /// its own place in the keyspace and its own `local`. It is in the keyspace only as long as it does something.
    pub fn unload(&self, cargo: &Cargo, arrival: Arrival, worker: &mut Worker<'_>, local: &mut Local) {
        let now_ms = self.clock.now_ms();
        self.take_out((cargo, arrival, now_ms), &worker.enter(), local);
        // Nobody comes back for those whom this thread cannot serve as long as a script runs.
        while !local.serving.is_empty() {
            std::thread::sleep(AGAIN);
            blocking::serve_some(self, local, &worker.enter(), now_ms);
        }
        self.after_background(&mut local.effects);
        local.garbage.drain(..).for_each(|garbage| self.keyspace.discard(garbage));
    }

    fn take_out(
        &self,
        (cargo, arrival, now_ms): (&Cargo, Arrival, u64),
        batch: &Batch<'_>,
        local: &mut Local,
    ) {
        local.effects.begin(self);
        let keys: Vec<Key<'_>> = cargo.items.iter().map(|item| self.keyspace.key(&item.key)).collect();
        let mut guards = batch.lock_keys(&keys);
        blocking::answer_locked(self, local, &mut guards, (&cargo.wait, now_ms), |context, _, sink| {
            // Who was unblocked, cancelled or closed keeps its keys.
            if !context.commit() {
                return Ok(());
            }
            let changed = take_away(context, cargo, &arrival.arrived)?;
            match arrival.error {
                Some((prefix, text)) => Err(Error::with_prefix(prefix, text)),
                None if changed => Err(Error::with_prefix("TRYAGAIN", CHANGED)),
                None => {
                    sink.ok();
                    Ok(())
                }
            }
        });
        local.effects.end_group();
        if !local.ready.is_empty() {
            blocking::serve_covered(self, local, &mut guards, now_ms);
        }
        drop(guards);
        blocking::serve_rest(self, local, batch, now_ms);
    }
}

/// Removes the keys that have arrived and are as they were. Says whether others were changed meanwhile.
fn take_away(context: &mut Context<'_, '_>, cargo: &Cargo, arrived: &[bool]) -> Result<bool> {
    let mut changed = false;
    let arrived = cargo.items.iter().zip(arrived).filter(|(_, arrived)| **arrived && !cargo.copy);
    for (item, _) in arrived {
        let key = context.key_of(&item.key);
        if dump::item(context, &key)?.as_ref() == Some(item) {
            context.delete(&key)?;
            context.written(&key);
        } else {
            changed = true;
        }
    }
    Ok(changed)
}

/// What a client is told whose key has been changed while it was on its way.
const CHANGED: &str = "A key was changed while it was sent: it stays here, and the target has it as it was";
