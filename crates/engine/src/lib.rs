//! The engine of Weft: commands against the keyspace, for clients of any wire.
//!
//! Owns: sessions, dispatch, locks of a command, transactions, publish/subscribe, blocking, what each command does and
//! answers. Does not own: sockets, decoding, threads; the server brings requests and sends replies.
//!
//! # Rooms
//!
//! Folders that build on each other in this order: each may use those above it (`cargo xtask tidy`). A module of a room
//! is named without it: [`glob`], not `text::glob`. State stands in the room that it is about, [`engine`] puts it
//! together, and what needs several of them comes behind. What runs commands inside of a command stands behind it, in
//! `logic`, and is called as handlers are ([`handler`]).
//!
//! | room | owns |
//! |---|---|
//! | `text` | numbers, patterns, dates, names in bytes |
//! | `exchange` | what comes in: [`args`], [`requests`], [`keys`], what is asked of a command; [`error`] |
//! | [`reply`] | one value or one error out, on any wire |
//! | [`acl`] | users and what they may do |
//! | [`config`] | settings, and what they act on |
//! | `formats` | values in bytes that others know: [`rdb`], [`hyperloglog`] |
//! | `sessions` | logical clients ([`session`]), what they listen to and wait for, what workers send to them |
//! | `observe` | what is counted ([`stats`]), measured, noted; who looks on ([`monitor`], [`feed`], [`history`]) |
//! | `keeping` | what is known of stored data beside the keyspace: [`durable`], [`safe`], `catalogue`, [`carrier`] |
//! | [`script`] | sources of scripts and functions, a worker's state of Lua |
//! | [`program`], [`trigger`] | programs and triggers, from their JSON to the form that is run |
//! | [`engine`] | what all workers share; what a handler is ([`handler`]) and works with ([`context`]) |
//! | `notices` | what clients are told unasked: [`notify`], messages, invalidations; what is noted of a command |
//! | `access` | who a client is, and whether it may |
//! | `upkeep` | following settings, [`eviction`], writes that are refused, the catalogue |
//! | [`info`], [`metrics`] | figures as text: INFO, Prometheus |
//! | the ground floor | checking a request, running it ([`executor`], `runner`, [`inner`]), who waits ([`blocking`]) |
//! | `commands` | what each command does and answers |
//! | `logic` | the commands of scripts, functions, programs and triggers, and running these |
//! | [`background`] | what no command waits for |
//!
//! On the ground floor, beside: [`resource`] has keys as resources, [`forward`] requests that another server runs.
//!
//! # A request's way
//!
//! The server decodes into [`requests::Requests`] and calls [`executor::Executor::run`] with itself as the
//! [`executor::Host`]. The executor prefetches the keys of the whole batch, and then, for each request: checks it,
//! locks the shards of its keys, runs its handler with a [`context::Context`], serves those who waited for what it
//! wrote, unlocks, and goes on. Replies stand in the outputs that the host lent.

#![forbid(unsafe_code)]

mod access;
pub mod acl;
pub mod background;
pub mod blocking;
mod commands;
pub mod config;
pub mod engine;
mod exchange;
pub mod executor;
mod formats;
pub mod forward;
pub mod info;
pub mod inner;
mod keeping;
mod logic;
pub mod metrics;
mod notices;
mod observe;
pub mod program;
pub mod reply;
pub mod resource;
mod runner;
pub mod script;
mod sessions;
mod text;
pub mod trigger;
mod upkeep;

/// The version of Redis whose commands and replies clients may count on: what HELLO and INFO call `redis_version`.
pub const REDIS_VERSION: &str = "7.4.0";
/// The version of Valkey whose behaviour is the model: what scripts find as `redis.VALKEY_VERSION`.
pub const VALKEY_VERSION: &str = "9.1.2";

pub use engine::{Engine, Setup, context, handler};
pub(crate) use engine::{job, plan};
pub use error::{Error, ErrorCode};
pub use exchange::{args, error, keys, queued, requests, special, traits};
pub use executor::{Executor, Host, Lent};
pub use formats::{hyperloglog, rdb};
pub(crate) use keeping::catalogue;
pub use keeping::{carrier, durable, safe};
pub use notices::notify;
pub use observe::{behind, command_log, feed, histogram, history, hot, latency, monitor, stats};
pub use requests::{Postponed, Requests};
pub use sessions::{
    asked, charge, clients, forwards, mailbox, pubsub, push, respb, session, tracking, transaction, waits,
};
pub use text::{base64, calendar, extended, glob, near, number, words};
pub(crate) use text::{excerpt, files, find};
pub use upkeep::eviction;

impl Engine {
    /// An engine with all commands, without clients.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self::with(setup, handlers(), (None, false))
    }
    /// An engine without keys: another server, or a cluster, runs what these ways say.
    #[must_use]
    pub fn forwarding(setup: Setup, ways: forwards::Ways, is_cluster: bool) -> Self {
        let engine = Self::with(setup, handlers().forwarding(ways), (Some(ways), is_cluster));
        engine.special.set(special::ELSEWHERE, true);
        engine
    }
}

fn handlers() -> handler::Handlers {
    handler::Handlers::of(commands::LISTS.iter().copied().flatten().chain(logic::LISTS), logic::LOGIC)
}
