//! Owns: CONFIG. Does not own: what directives there are and what follows from them (`crate::config`).
//!
//! | locks | commands |
//! |---|---|
//! | none | all |

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use crate::args::Args;
use crate::blocking::Empty;
use crate::commands::common::help;
use crate::config::directive::Kind;
use crate::config::table::{self, DIRECTIVES};
use crate::config::{PROTECTED, SetError};
use crate::context::Context;
use crate::durable::Order;
use crate::error::{Error, ErrorCode, Result};
use crate::glob;
use crate::handler::{Entry, Scope};
use crate::reply::ReplySink;
use crate::session::Session;
use crate::special;

pub(crate) const LIST: &[Entry] = &[
    ("CONFIG GET", Scope::None, get),
    ("CONFIG SET", Scope::None, set),
    ("CONFIG RESETSTAT", Scope::None, resetstat),
    ("CONFIG REWRITE", Scope::None, rewrite),
    ("CONFIG HELP", Scope::None, config_help),
];

fn get(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let mut found: BTreeMap<&[u8], usize> = BTreeMap::new();
    for pattern in args.rest(2) {
        if !pattern.iter().any(|byte| b"[*?".contains(byte)) {
            if let Some(at) = table::find(pattern) {
                found.insert(pattern, at);
            }
            continue;
        }
        for (name, at) in table::names() {
            if !DIRECTIVES[at].hidden && glob::matches_nocase(pattern, name.as_bytes()) {
                found.insert(name.as_bytes(), at);
            }
        }
    }
    let values = context.engine.config.values();
    sink.map(found.len());
    for (name, at) in found {
        sink.bulk(name);
        match DIRECTIVES[at].kind {
            Kind::Folder => {
                let folder = std::env::current_dir().unwrap_or_default();
                sink.bulk(folder.as_os_str().as_encoded_bytes());
            }
            _ => sink.bulk(&values.at(at).text),
        }
    }
    Ok(())
}

fn set(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() % 2 == 1 {
        return Err(ErrorCode::Syntax.into());
    }
    let pairs: Vec<(&[u8], &[u8])> =
        (2..args.len()).step_by(2).map(|at| (args.bytes(at), args.bytes(at + 1))).collect();
    let engine = context.engine;
    let protected = is_allowed(engine.settings.protected_configs.load(Relaxed), context.session);
    engine.set_config(&pairs, protected).map_err(|SetError { name, why }| {
        Error::err(match why {
            None => {
                let like = table::suggest(&name).map(|like| format!("; is '{like}' meant?"));
                let like = like.unwrap_or_default();
                format!("Unknown option or number of arguments for CONFIG SET - '{name}'{like}")
            }
            Some(why) => format!("CONFIG SET failed (possibly related to argument '{name}') - {why}"),
        })
    })?;
    let sets = |directive: &[u8]| pairs.iter().any(|(name, _)| name.eq_ignore_ascii_case(directive));
    if sets(b"appendfsync") && engine.special.has(special::WITHHELD) {
        // What was answered before replies waited is on the disk when this is answered, also in a transaction.
        context.local.effects.recorder.waits_for_all(&engine.keyspace);
    }
    if sets(b"appendonly") && context.may_block() && engine.durable.check().is_ok() {
        // What is answered from then on is kept, or is not.
        return context.await_order(args, (0, Empty::Null), Order::Settled);
    }
    sink.ok();
    Ok(())
}

/// Whether a directive of [`PROTECTED`] lets this client do what it guards.
pub(super) fn is_allowed(number: u8, session: &Session) -> bool {
    match PROTECTED.get(usize::from(number)) {
        Some(&"yes") => true,
        Some(&"local") => {
            let connection = &session.info.connection;
            connection.unix || connection.peer.starts_with("127.") || connection.peer.starts_with("[::1]")
        }
        _ => false,
    }
}

fn resetstat(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    context.engine.reset_stats(context.local.worker);
    sink.ok();
    Ok(())
}

fn rewrite(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let Some(file) = context.engine.config.file() else {
        return Err(Error::err("The server is running without a config file"));
    };
    context
        .engine
        .rewrite_config(file)
        .map_err(|error| Error::err(format!("Rewriting config file: {error}")))?;
    sink.ok();
    Ok(())
}

fn config_help(_: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    help::answer(
        sink,
        "CONFIG",
        &[
            "GET <pattern>",
            "    Return parameters matching the glob-like <pattern> and their values.",
            "SET <directive> <value>",
            "    Set the configuration <directive> to <value>.",
            "RESETSTAT",
            "    Reset statistics reported by the INFO command.",
            "REWRITE",
            "    Rewrite the configuration file.",
        ],
    );
    Ok(())
}
