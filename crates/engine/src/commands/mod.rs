//! Owns: what each command does and answers. Does not own: locks, what is asked before (`crate::executor`); the
//! commands of scripts, programs and triggers (`crate::logic`).
//!
//! One folder for each family, one file for each group of the command table, with a list that says under which locks
//! its handlers run. A family uses those above it (`cargo xtask tidy`):
//!
//! | family | commands |
//! |---|---|
//! | `common` | none: what several have in common |
//! | `strings` | GET, APPEND, INCR, BITCOUNT, LCS, PFADD and their like |
//! | `keys` | of any type: DEL, EXPIRE, SCAN, DUMP, MIGRATE, SORT |
//! | `lists`, `hashes`, `sets`, `sorted_sets`, `geo`, `streams` | of one type |
//! | `clients` | of a client: HELLO, CLIENT, MULTI, SUBSCRIBE |
//! | `server` | of the server: INFO, CONFIG, ACL, COMMAND, MEMORY, SLOWLOG, DEBUG |
//!
//! # How a command is written
//!
//! ```text
//! fn getdel(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result<(), Error> {
//!     let key = context.key(args, 1);                       // places count as in RESP: 0 is the name
//!     let (shard, mut op) = context.shard(&key)?;            // its shard is locked: Scope::Keys
//!     match shard.get(&mut op, &key) {
//!         None => sink.null(),
//!         Some(ValueRef::Object(_)) => return Err(ErrorCode::WrongType.into()),
//!         Some(value) => {
//!             sink.value(&value);
//!             let garbage = shard.remove(&mut op, &key);
//!             context.discard(garbage.unwrap_or_default());
//!             context.notify(notify::GENERIC, "del", &key);
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Rules: number of arguments, rights, memory, MULTI and MONITOR have been seen to. A handler checks all arguments
//! before its first effect; it writes exactly one value, or returns an error (what it wrote is then taken back); what
//! it removes goes to `context.discard`; a key that it changed is told to `context.notify`, as Valkey names the event.
//! Whoever waits for a key of a write command is served by the dispatcher.

use crate::handler::Entry;

pub(crate) mod clients;
pub(crate) mod common;
pub(crate) mod geo;
pub(crate) mod hashes;
pub(crate) mod keys;
pub(crate) mod lists;
pub(crate) mod server;
pub(crate) mod sets;
pub(crate) mod sorted_sets;
pub(crate) mod streams;
pub(crate) mod strings;

/// The handlers, by family.
pub(crate) const LISTS: &[&[&[Entry]]] = &[
    clients::LISTS,
    &[geo::LIST],
    hashes::LISTS,
    keys::LISTS,
    &[lists::LIST],
    server::LISTS,
    sets::LISTS,
    sorted_sets::LISTS,
    &[streams::LIST],
    strings::LISTS,
];
