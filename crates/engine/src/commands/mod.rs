//! Owns: what each command does. One file for each group of the command table; each ends its head with a list that says
//! under which locks its handlers run.
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

mod acl;
mod bitfield;
mod bitmap;
mod client;
mod collection;
mod command;
mod config;
mod connection;
mod debug;
pub(crate) mod dump;
pub(crate) mod expiry;
mod front;
mod generic;
mod geo;
mod hash;
mod hash_expiry;
pub(crate) mod help;
mod hyperloglog;
pub(crate) mod keyspace;
mod lcs;
pub(crate) mod list;
mod logs;
mod memory;
mod migrate;
mod named;
pub(crate) mod number;
mod object;
pub(crate) mod program;
mod pubsub;
mod replication;
mod script;
mod server;
mod set;
mod sort;
mod sorted_set;
mod sorted_set_algebra;
mod sorted_set_pop;
pub(crate) mod sorted_set_range;
mod standalone;
mod stream;
mod string;
mod text;
mod transaction;
mod trigger;
mod ttl;

/// All handlers.
pub(crate) const LISTS: &[&[Entry]] = &[
    acl::LIST,
    bitfield::LIST,
    bitmap::LIST,
    client::LIST,
    command::LIST,
    config::LIST,
    connection::LIST,
    debug::LIST,
    dump::LIST,
    generic::LIST,
    geo::LIST,
    hash::LIST,
    hash_expiry::LIST,
    hyperloglog::LIST,
    keyspace::LIST,
    lcs::LIST,
    list::LIST,
    logs::LIST,
    memory::LIST,
    migrate::LIST,
    number::LIST,
    object::LIST,
    program::LIST,
    pubsub::LIST,
    replication::LIST,
    script::FUNCTIONS,
    script::LIST,
    server::LIST,
    standalone::LIST,
    set::LIST,
    sort::LIST,
    sorted_set::LIST,
    sorted_set_algebra::LIST,
    sorted_set_pop::LIST,
    sorted_set_range::LIST,
    stream::LIST,
    string::LIST,
    text::LIST,
    transaction::LIST,
    trigger::LIST,
    ttl::LIST,
];
