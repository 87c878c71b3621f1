//! The engine of Weft: commands against the keyspace, for clients of any wire.
//!
//! Owns: sessions, dispatch, locks of a command, transactions, publish/subscribe, blocking, what each command does and
//! answers. Does not own: sockets, decoding, threads; the server brings requests and sends replies.
//!
//! # Rooms
//!
//! Folders that build on each other in this order: each may use those above it, and `cargo xtask tidy` has the imports
//! that do not keep to it yet (`tidy/rooms.rs`). A module of a room is named without it: [`glob`], not `text::glob`.
//!
//! | room | owns |
//! |---|---|
//! | `text` | numbers, patterns, dates, names in bytes |
//! | `exchange` | what comes in: [`args`], [`requests`], [`keys`], what is asked of a command; [`error`] |
//! | [`reply`] | one value or one error out, on any wire |
//! | [`config`] | settings, and what follows from them |
//! | `formats` | values in bytes that others know: [`rdb`], [`hyperloglog`] |
//! | [`acl`] | users and what they may do |
//! | `sessions` | logical clients ([`session`]), what they listen to, what is sent to them from worker to worker |
//! | `observe` | what is counted ([`stats`]), measured, noted, and who is told ([`notify`], [`monitor`], [`feed`]) |
//! | `keeping` | stored data beside commands: [`durable`], [`safe`], `catalogue`, [`background`], [`eviction`] |
//! | [`engine`] | what all workers share |
//! | [`info`], [`metrics`] | figures as text: INFO, Prometheus |
//! | the ground floor | checking a request and running it ([`executor`], `runner`), who waits ([`blocking`]) |
//! | [`script`], [`program`], [`trigger`] | what runs commands inside of an operation ([`inner`]) |
//! | `commands` | what each command does and answers |
//!
//! On the ground floor, beside: [`context`] is what a handler works with, [`handler`] leads from a command to its code,
//! [`resource`] has keys as resources, [`forward`] requests that another server runs, [`carrier`] MIGRATE's way.
//!
//! # A request's way
//!
//! The server decodes into [`requests::Requests`] and calls [`executor::Executor::run`] with itself as the
//! [`executor::Host`]. The executor prefetches the keys of the whole batch, and then, for each request: checks it,
//! locks the shards of its keys, runs its handler with a [`context::Context`], serves those who waited for what it
//! wrote, unlocks, and goes on. Replies stand in the outputs that the host lent.

#![forbid(unsafe_code)]

pub mod acl;
pub mod blocking;
pub mod carrier;
mod commands;
pub mod config;
pub mod context;
pub mod engine;
mod exchange;
pub mod executor;
mod formats;
pub mod forward;
pub mod handler;
pub mod info;
pub mod inner;
mod keeping;
pub mod metrics;
mod observe;
mod plan;
pub mod program;
pub mod reply;
pub mod resource;
mod runner;
pub mod script;
mod sessions;
mod text;
pub mod trigger;

/// The version of Redis whose commands and replies clients may count on: what HELLO and INFO call `redis_version`.
pub const REDIS_VERSION: &str = "7.4.0";
/// The version of Valkey whose behaviour is the model: what scripts find as `redis.VALKEY_VERSION`.
pub const VALKEY_VERSION: &str = "9.1.2";

pub use engine::{Engine, Setup};
pub use error::{Error, ErrorCode};
pub use exchange::{args, error, keys, requests, special, traits};
pub use executor::{Executor, Host, Lent, Postponed};
pub use formats::{hyperloglog, rdb};
pub(crate) use keeping::catalogue;
pub use keeping::{background, durable, eviction, safe};
pub use observe::{behind, command_log, feed, histogram, history, hot, latency, monitor, notify, stats};
pub use requests::Requests;
pub use sessions::{clients, held, mailbox, pubsub, push, respb, session, tracking, transaction};
pub(crate) use text::excerpt;
pub use text::{base64, calendar, extended, glob, near, number};
