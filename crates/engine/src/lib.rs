//! The engine of Weft: commands against the keyspace, for clients of any wire.
//!
//! Owns: sessions, dispatch, locks of a command, transactions, publish/subscribe, blocking, what each command does and
//! answers. Does not own: sockets, decoding, threads; the server brings requests and sends replies.
//!
//! # Map
//!
//! | module | owns |
//! |---|---|
//! | [`engine`] | what all workers share |
//! | [`requests`] | a batch: requests that are decoded and not yet run |
//! | [`executor`] | a worker's loop over a batch: checks, locks, what follows |
//! | `runner` | running one command under its locks: everything that runs one comes through here |
//! | [`inner`] | commands inside of operations, and taking back |
//! | `catalogue` | changing what stands outside of databases |
//! | [`program`] | programs: conditional, computed, looping changes as JSON, all or nothing |
//! | [`trigger`] | what happens when keys change |
//! | [`special`] | what is special engine-wide, as bits of one word |
//! | [`context`] | what a handler works with |
//! | [`args`], [`reply`], [`error`] | arguments in, one value or one error out, on any wire |
//! | [`handler`], `commands` | from a command to its code |
//! | [`keys`] | where the keys of a command stand |
//! | [`session`], [`clients`] | a logical client, and all of them |
//! | [`transaction`], [`blocking`], [`pubsub`] | MULTI and WATCH; waiting for a key; subscriptions |
//! | [`script`] | scripts and functions: their sources, running them |
//! | [`resource`] | keys as resources: conditions, parts, tags |
//! | [`near`] | which of several names a misspelt one means |
//! | [`forward`] | requests that another server runs |
//! | [`feed`] | what happened to keys, numbered, for who follows it |
//! | [`rdb`], [`hyperloglog`] | dumps of values; the bytes of a HyperLogLog |
//! | [`mailbox`], [`push`] | from worker to worker |
//! | [`background`] | expiry, eviction and maintenance, step by step |
//! | [`safe`] | what replies can wait for |
//! | [`durable`] | what is kept on disk, as the engine knows it |
//! | [`tracking`], [`monitor`] | who is told of changed keys and of commands |
//! | [`respb`] | what HELLO promises to RESPB clients |
//! | [`history`] | each second's figures of the last ten minutes, for the console |
//! | [`metrics`] | what INFO and the logs tell, for Prometheus |
//! | [`acl`], [`config`], [`stats`], [`notify`], `watchers` | users, settings, figures, events |
//!
//! # A request's way
//!
//! The server decodes into [`requests::Requests`] and calls [`executor::Executor::run`] with itself as the
//! [`executor::Host`]. The executor prefetches the keys of the whole batch, and then, for each request: checks it,
//! locks the shards of its keys, runs its handler with a [`context::Context`], serves those who waited for what it
//! wrote, unlocks, and goes on. Replies stand in the outputs that the host lent.

#![forbid(unsafe_code)]

pub mod acl;
pub mod args;
pub mod background;
pub mod base64;
pub mod blocking;
pub mod calendar;
pub mod carrier;
mod catalogue;
pub mod clients;
pub mod command_log;
mod commands;
pub mod config;
pub mod context;
pub mod durable;
pub mod engine;
pub mod error;
pub mod eviction;
pub mod executor;
pub mod extended;
pub mod feed;
mod files;
pub mod forward;
pub mod glob;
pub mod handler;
pub mod held;
pub mod histogram;
pub mod history;
pub mod hot;
pub mod hyperloglog;
pub mod info;
pub mod inner;
pub mod keys;
pub mod latency;
pub mod mailbox;
pub mod metrics;
pub mod monitor;
pub mod near;
pub mod notify;
pub mod number;
mod plan;
pub mod program;
pub mod pubsub;
pub mod push;
pub mod rdb;
pub mod reply;
pub mod requests;
pub mod resource;
pub mod respb;
mod runner;
pub mod safe;
pub mod script;
pub mod session;
pub mod special;
pub mod stats;
pub mod tracking;
pub mod traits;
pub mod transaction;
pub mod trigger;
mod watchers;
mod web;

/// The version of Redis whose commands and replies clients may count on: what HELLO and INFO call `redis_version`.
pub const REDIS_VERSION: &str = "7.4.0";
/// The version of Valkey whose behaviour is the model: what scripts find as `redis.VALKEY_VERSION`.
pub const VALKEY_VERSION: &str = "9.1.2";

pub use engine::{Engine, Setup};
pub use error::{Error, ErrorCode};
pub use executor::{Executor, Host, Lent, Postponed};
pub use requests::Requests;
