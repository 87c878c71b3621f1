//! Owns: which shards a command needs, and whether it needs all. Does not own: the locks (`weft_store`).

use weft_protocol::table::flag;
use weft_store::{Batch, Guards, Keyspace};

use crate::args::Args;
use crate::context::Local;
use crate::engine::{Engine, command_id};
use crate::handler::{Handler, Scope};
use crate::keys::Needs;
use crate::runner::may_fire_at;
use crate::session::Session;
use crate::{keys, special, traits};

/// Locks the shards of a command's keys; nothing if an operation needs all, or somebody keeps one of them for long: who
/// then asks for everything hears that it cannot be had either.
#[inline]
pub(super) fn guards<'b>(
    engine: &Engine,
    local: &mut Local,
    batch: &'b Batch<'_>,
    (handler, db, args): (Handler, u8, &Args<'_>),
) -> Option<Guards<'b>> {
    if engine.special.has(special::TRIGGERS)
        && args.spec.flags & flag::WRITE != 0
        && let Some(needs) = (engine.logic().fire_needs)(engine, local, (db, args), batch.is_alone())
    {
        let keyspace = &engine.keyspace;
        let own = |shards: &mut Vec<u32>| {
            keys::each(args, |index| shards.push(keyspace.shard_of(&args.key(keyspace, index))));
        };
        return with(batch, needs, own);
    }
    match handler.scope {
        Scope::Operation(needs) => with(batch, needs(engine, args), |_| {}),
        Scope::Brief(needs) => with(batch, needs(engine, local, args, batch.is_alone()), |_| {}),
        _ => key_guards(&engine.keyspace, batch, args),
    }
}

/// Locks what is needed, and more; nothing if that is all, or is kept.
#[inline]
fn with<'b>(batch: &'b Batch<'_>, needs: Needs, more: impl FnOnce(&mut Vec<u32>)) -> Option<Guards<'b>> {
    let Needs::Shards(mut shards) = needs else { return None };
    if let Some(guards) = batch.guards_alone() {
        return Some(guards);
    }
    more(&mut shards);
    batch.lock_shards_in_time(shards)
}

#[inline]
fn key_guards<'b>(keyspace: &Keyspace, batch: &'b Batch<'_>, args: &Args<'_>) -> Option<Guards<'b>> {
    if traits::of(command_id(args)) & traits::ONE_KEY != 0 {
        return batch.lock_one_in_time(keyspace.shard_of(&args.key(keyspace, 1)));
    }
    if let Some(guards) = batch.guards_alone() {
        return Some(guards);
    }
    let mut shards = Shards::default();
    match args.all_hashes() {
        Some(hashes) => {
            hashes.for_each(|hash| shards.add(keyspace.shard_of_hash(hash)));
            debug_assert!(shards == Shards::of(keyspace, args), "no key is left out");
        }
        None => shards = Shards::of(keyspace, args),
    }
    shards.lock(batch)
}

/// Shards to be locked together, which often are one.
#[derive(Default, PartialEq)]
pub(super) struct Shards {
    first: Option<u32>,
    more: Vec<u32>,
}

impl Shards {
    /// Those of a command's keys.
    fn of(keyspace: &Keyspace, args: &Args<'_>) -> Self {
        let mut shards = Self::default();
        keys::each(args, |index| shards.add(keyspace.shard_of(&args.key(keyspace, index))));
        shards
    }
    #[inline]
    pub(super) fn add(&mut self, shard: u32) {
        match self.first {
            None => self.first = Some(shard),
            Some(first) if first == shard => {}
            Some(_) => self.more.push(shard),
        }
    }
    /// Nothing, if somebody keeps one of them for long.
    #[inline]
    pub(super) fn lock<'b>(self, batch: &'b Batch<'_>) -> Option<Guards<'b>> {
        match self.first {
            Some(first) if self.more.is_empty() && !batch.is_alone() => batch.lock_one_in_time(first),
            first => batch.lock_shards_in_time(first.into_iter().chain(self.more)),
        }
    }
}

/// Whether a command needs the whole keyspace.
pub(super) fn needs_world(
    (engine, local): (&Engine, &mut Local),
    handler: Handler,
    args: &Args<'_>,
    session: &Session,
) -> bool {
    match handler.scope {
        Scope::World => true,
        Scope::KeysOrWorld(asks) => asks(args),
        // An operation is asked when its locks are taken.
        Scope::Keys
        | Scope::None
        | Scope::Walk
        | Scope::Unwatch
        | Scope::Forward(_)
        | Scope::Operation(_)
        | Scope::Brief(_) => false,
        Scope::Exec if engine.forwards() => false,
        Scope::Exec => session.transaction.as_ref().is_some_and(|transaction| {
            transaction.queued.iter().any(|args| {
                // What they may fire is known when they run; that none stands at their keys is known now.
                if engine.special.has(special::TRIGGERS)
                    && args.spec.flags & flag::WRITE != 0
                    && may_fire_at(engine, local, &args)
                {
                    return true;
                }
                engine.handler(command_id(&args)).is_some_and(|handler| match handler.scope {
                    // What an operation needs may have changed by the time that it runs.
                    Scope::World
                    | Scope::Walk
                    | Scope::Unwatch
                    | Scope::Exec
                    | Scope::Operation(_)
                    | Scope::Brief(_) => true,
                    Scope::KeysOrWorld(asks) => asks(&args),
                    Scope::Keys | Scope::None | Scope::Forward(_) => false,
                })
            })
        }),
    }
}
