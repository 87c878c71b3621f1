//! The keyspace of Weft: keys, values, expiry, eviction, watches and waiters, in memory, shared by many workers.
//!
//! Owns: everything a command does to keys, under locks of its own. Does not own: sockets, protocols, commands,
//! threads, and time: the caller brings `now_ms`, the recorder, and the moments for background work.
//!
//! # Map
//!
//! | module | owns |
//! |---|---|
//! | [`keyspace`] | shards, workers, locks, the world gate, SCAN |
//! | [`shard`] | what is done under one lock: get, set, expire, change objects |
//! | `entry`, `entry::heap` | the bytes of an entry; entries, tables and slab bound together |
//! | `table` | buckets, resizing, hash order, the expiry index |
//! | `slab` | size classes, spans, pages, compaction |
//! | `epoch` | pins, the limbo, the gate |
//! | [`value`] | what a key can hold |
//! | [`list`], [`hash_object`], [`set`], [`sorted_set`], [`stream`] | the types; each says which command uses what |
//! | `counted`, `packed`, `dict` | one buffer for a small collection; a table over records for a large one |
//! | [`reaper`] | what takes long to free |
//! | [`expire`], [`evict`], [`maintain`] | background work, in bounded steps |
//! | [`effect`], [`recorder`] | what can happen, and who writes it down |
//! | [`groups`], [`replay`] | groups of effects in one order; applying them elsewhere |
//! | [`undo`] | journals, savepoints, rollback |
//! | [`catalogue`] | named entries outside of databases |
//! | [`digest`] | a number for all that is there |
//! | [`ahead`] | what the next requests will look for |
//! | [`watch`], [`waiters`] | WATCH and blocking |
//!
//! # A command, from the engine's side
//!
//! ```
//! use weft_store::{Config, Expiry, Keyspace, NewValue, Op, Recorder, ValueRef};
//!
//! let keyspace = Keyspace::new(Config::default());
//! let mut worker = keyspace.worker().expect("workers are left");
//! let mut batch = worker.enter();
//! let key = keyspace.key(b"greeting");
//! batch.prefetch_bucket(0, key.hash(), false);
//! batch.prefetch_entries(0, [(key.hash(), true)]); // of the keys that were asked for
//!
//! let mut recorder = Recorder::default();
//! let mut op = Op::new(0, 1_700_000_000_000, &mut recorder);
//! let mut shard = batch.lock(&key);
//! shard.set(&mut op, &key, NewValue::string(b"hello"), Expiry::None);
//! assert!(matches!(shard.get(&mut op, &key), Some(ValueRef::Bytes(b"hello"))));
//! ```
//!
//! # Which command uses what
//!
//! | command | calls |
//! |---|---|
//! | GET, STRLEN, GETRANGE, MGET | [`ShardGuard::get`], [`ValueRef::as_bytes`]; keep a clone of [`SharedBytes`] to send
//! later |
//! | SET NX, XX, GET, KEEPTTL, EX … | [`ShardGuard::peek`] for the conditions and the old value, [`ShardGuard::set`]
//! with [`Expiry`] |
//! | GETEX, EXPIRE…, PERSIST, TTL | [`ShardGuard::expire_ms`], [`ShardGuard::set_expire_ms`] |
//! | INCR…, DECR… | [`ShardGuard::increment`]; INCRBYFLOAT: `peek`, then `set` with `Keep` |
//! | APPEND, SETRANGE, SETBIT | [`ShardGuard::append`], [`ShardGuard::set_range`] |
//! | DEL, UNLINK, GETDEL | [`ShardGuard::remove`], [`ShardGuard::take`]; give the [`Garbage`] to
//! [`Keyspace::discard`] |
//! | RENAME, MOVE, COPY | [`Batch::lock_keys`], [`ShardGuard::take`] or [`ShardGuard::copy`], then
//! [`ShardGuard::put`] |
//! | LPUSH, LRANGE, … | [`ShardGuard::change_list`] for writes, [`ShardGuard::get`] for reads |
//! | XADD, XREADGROUP, … | [`ShardGuard::change_stream`] for writes, `get` for reads |
//! | HSET, SADD, ZADD, … | [`ShardGuard::change_hash`] and its like for writes, `get_hash` and its like for reads |
//! | SINTER, ZUNION, … | `get` or `exists` on each key, then [`Guards::view`] for all of them together |
//! | SCAN, RANDOMKEY, DBSIZE | [`Batch::scan`], [`Batch::random_key`], [`Keyspace::len`] |
//! | OBJECT, MEMORY USAGE, TYPE | [`ShardGuard::info`], [`ValueRef::type_name`] |
//! | WATCH, EXEC | [`ShardGuard::watches`]; at EXEC call `exists` on each watched key first, so that expiry counts |
//! | BLPOP, BLMOVE, … | [`ShardGuard::waiters`] |
//! | FLUSHALL, SWAPDB, KEYS, undeclared keys | [`Worker::world`] |

#![deny(unsafe_code, unsafe_op_in_unsafe_fn)]

pub mod access;
pub mod ahead;
pub mod catalogue;
mod choice;
pub mod clock;
mod counted;
pub mod counters;
mod dict;
pub mod digest;
pub mod effect;
#[allow(unsafe_code)]
mod entry;
mod epoch;
pub mod evict;
pub mod expire;
pub mod groups;
#[allow(unsafe_code)]
mod guarded;
pub mod hash;
pub mod hash_object;
pub mod keyspace;
mod leb;
pub mod list;
pub mod maintain;
mod packed;
#[allow(unsafe_code)]
mod prefetch;
pub mod reaper;
pub mod recorder;
pub mod replay;
pub mod save;
pub mod set;
pub mod shard;
#[allow(unsafe_code)]
mod slab;
pub mod sorted_set;
pub mod stream;
mod sync;
#[allow(unsafe_code)]
pub(crate) mod table;
pub mod undo;
pub mod value;
pub mod waiters;
pub mod watch;

pub use access::AccessMode;
pub use ahead::Ahead;
pub use catalogue::{Catalogue, Section};
pub use clock::{Clock, ManualClock, Rng, SystemClock, XorShift};
pub use counters::{Counter, DATABASES_MAX};
pub use digest::Digest;
pub use effect::{Cause, Effect, KeyedEffect, wants};
pub use entry::heap::Key;
pub use entry::{Garbage, INLINE_BYTES_MAX};
pub use epoch::WORKERS_MAX;
pub use evict::{Evictor, Policy};
pub use expire::ExpiryCycle;
pub use groups::{Group, Merger, Overrun, Polled};
pub use hash::{KeyHasher, SHARDS_MAX};
pub use hash_object::{Field, FieldExpiry, Hash, HashLimits, HashMut, HashRef};
pub use keyspace::{
    Batch, Collapse, Config, Cursor, Guards, Keyspace, Reads, ReadsOf, Rewrites, Worker, World,
};
pub use list::{End, List, ListLimit, ListMut, ListRef};
pub use maintain::Maintenance;
pub use reaper::Backing;
pub use recorder::Recorder;
pub use replay::{ReplayLimits, Replayer};
pub use save::Saver;
pub use set::{Member, Set, SetLimits, SetMut, SetRef};
pub use shard::{Changed, Expiry, KeyInfo, NumberError, Op, ShardGuard, Taken, WrongType};
pub use slab::pages::PageStats;
pub use sorted_set::{LexBound, ScoreRange, Scored, SortedSet, SortedSetLimits, SortedSetMut, SortedSetRef};
pub use stream::{Stream, StreamId, StreamLimit, StreamMut};
pub use undo::Savepoint;
pub use value::{Digits, NewValue, Object, ObjectRef, SharedBytes, ValueRef, parse_int};
pub use waiters::{Claim, Waiter, Waiters};
pub use watch::{WatchVersion, Watches};
