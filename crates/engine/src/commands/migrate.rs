//! Owns: MIGRATE's arguments and its first half: looking the keys up. Does not own: sending them, and what follows when
//! they have arrived (`crate::carrier`).

use std::time::Duration;

use crate::args::Args;
use crate::blocking::Empty;
use crate::carrier::Cargo;
use crate::context::Context;
use crate::error::{Error, ErrorCode};
use crate::handler::{Entry, Scope};
use crate::keys::{self, MIGRATE_KEY_AT, MIGRATE_OPTIONS_AT};
use crate::reply::ReplySink;

use super::dump;

pub(super) const LIST: &[Entry] = &[("MIGRATE", Scope::Keys, migrate)];

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
    fn parse(args: &Args<'_>) -> Result<Self, Error> {
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

fn migrate(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
    let options = Options::parse(args)?;
    let (timeout_ms, target_db) = (args.int(5)?, args.int(4)?);
    let timeout_ms = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0).unwrap_or(TIMEOUT_MS);
    let (mut places, mut items) = (Vec::new(), Vec::new());
    keys::each(args, |index| places.push(index));
    for index in places {
        let key = context.key(args, index);
        items.extend(dump::item(context, &key)?);
    }
    if items.is_empty() {
        sink.simple("NOKEY");
        return Ok(());
    }
    let engine = context.engine;
    let Some(send) = engine.carrier.get().filter(|_| context.may_block()) else {
        return Err(Error::err("MIGRATE waits for another server: it cannot run inside a transaction"));
    };
    let io_error = || Error::with_prefix("IOERR", "error or timeout connecting to the client");
    let port = args.int(2).ok().and_then(|port| u16::try_from(port).ok()).ok_or_else(io_error)?;
    let host = String::from_utf8(args.bytes(1).to_vec()).map_err(|_| io_error())?;
    context.block(&[], (0, Empty::Null), args.to_owned_args())?;
    let Some(wait) = context.session.wait.as_ref().map(|wait| wait.shared()) else { return Ok(()) };
    send(Cargo {
        host,
        port,
        timeout: Duration::from_millis(timeout_ms.min(TIMEOUT_MS_MAX)),
        credentials: options.credentials,
        target_db,
        replace: options.replace,
        copy: options.copy,
        items,
        db: context.db,
        wait,
    });
    Ok(())
}
