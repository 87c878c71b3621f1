//! Owns: SUBSCRIBE and its relatives, PUBLISH, PUBSUB. Does not own: who is subscribed (`crate::pubsub`).
//!
//! Over RESP every name gets a reply of its own, in the form of a push; over RESPB, and inside EXEC, one array has one
//! element for each name, so that one request has one reply (spec section 8.3).

use crate::args::Args;
use crate::charge::of_name;
use crate::commands::common::help::subcommand_syntax;
use crate::context::Context;
use crate::error::Result;
use crate::handler::{Entry, Scope};
use crate::pubsub::Space;
use crate::reply::ReplySink;
use crate::session::{Session, Subscriptions};

pub(crate) const LIST: &[Entry] = &[
    ("SUBSCRIBE", Scope::None, |context, args, sink| subscribe(context, args, sink, Kind::Channel)),
    ("PSUBSCRIBE", Scope::None, |context, args, sink| subscribe(context, args, sink, Kind::Pattern)),
    ("SSUBSCRIBE", Scope::None, |context, args, sink| subscribe(context, args, sink, Kind::Shard)),
    ("UNSUBSCRIBE", Scope::None, |context, args, sink| unsubscribe(context, args, sink, Kind::Channel)),
    ("PUNSUBSCRIBE", Scope::None, |context, args, sink| unsubscribe(context, args, sink, Kind::Pattern)),
    ("SUNSUBSCRIBE", Scope::None, |context, args, sink| unsubscribe(context, args, sink, Kind::Shard)),
    ("PUBLISH", Scope::None, |context, args, sink| publish(context, args, sink, Space::Global)),
    ("SPUBLISH", Scope::None, |context, args, sink| publish(context, args, sink, Space::Shard)),
    ("PUBSUB CHANNELS", Scope::None, |context, args, sink| channels(context, args, sink, Space::Global)),
    ("PUBSUB SHARDCHANNELS", Scope::None, |context, args, sink| channels(context, args, sink, Space::Shard)),
    ("PUBSUB NUMSUB", Scope::None, |context, args, sink| numsub(context, args, sink, Space::Global)),
    ("PUBSUB SHARDNUMSUB", Scope::None, |context, args, sink| numsub(context, args, sink, Space::Shard)),
    ("PUBSUB NUMPAT", Scope::None, numpat),
    ("PUBSUB HELP", Scope::None, crate::commands::common::help::help),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Channel,
    Pattern,
    Shard,
}

impl Kind {
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Channel => ("subscribe", "unsubscribe"),
            Self::Pattern => ("psubscribe", "punsubscribe"),
            Self::Shard => ("ssubscribe", "sunsubscribe"),
        }
    }
    fn set(self, subscriptions: &mut Subscriptions) -> &mut std::collections::BTreeSet<Box<[u8]>> {
        match self {
            Self::Channel => &mut subscriptions.channels,
            Self::Pattern => &mut subscriptions.patterns,
            Self::Shard => &mut subscriptions.shard_channels,
        }
    }
    /// The number that the answer to a subscription carries.
    fn count(self, session: &Session) -> usize {
        let Some(subscriptions) = &session.subscriptions else { return 0 };
        if self == Self::Shard { subscriptions.shard_channels.len() } else { subscriptions.count() }
    }
}

/// One answer for each name, in the form that the wire has for it.
fn answer(sink: &mut ReplySink<'_>, kind: &str, name: Option<&[u8]>, count: usize) {
    sink.answer(3);
    sink.bulk(kind.as_bytes());
    match name {
        Some(name) => sink.bulk(name),
        None => sink.null(),
    }
    sink.count(count);
}

/// What a subscription holds: its name here, and where messages are handed out.
const fn of_subscription(name: &[u8]) -> usize {
    2 * of_name(name)
}

fn subscribe(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, kind: Kind) -> Result {
    let connection = std::sync::Arc::clone(&context.session.info.connection);
    connection.check_room(args.rest(1).map(of_subscription).sum())?;
    // Inside EXEC too, as ever: an answer for each channel, of which EXEC has announced one.
    sink.answers(args.len() - 1);
    let who = context.session.info.recipient();
    for name in args.rest(1) {
        let subscriptions = context.session.subscriptions.get_or_insert_default();
        if kind.set(subscriptions).insert(name.into()) {
            subscriptions.charge.add(&connection, of_subscription(name));
            match kind {
                Kind::Channel => context.engine.pubsub.subscribe(Space::Global, name, who),
                Kind::Shard => context.engine.pubsub.subscribe(Space::Shard, name, who),
                Kind::Pattern => context.engine.pubsub.subscribe_pattern(name, who),
            }
        }
        answer(sink, kind.names().0, Some(name), kind.count(context.session));
    }
    context.engine.look_at_events();
    context.session.show_subscriptions();
    Ok(())
}

fn unsubscribe(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    kind: Kind,
) -> Result {
    let names: Vec<Box<[u8]>> = if args.len() > 1 {
        args.rest(1).map(Into::into).collect()
    } else {
        let all = context.session.subscriptions.as_mut().map(|all| kind.set(all).iter().cloned().collect());
        all.unwrap_or_default()
    };
    sink.answers(names.len().max(1));
    for name in &names {
        let had = context.session.subscriptions.as_mut().is_some_and(|all| {
            let had = kind.set(all).remove(name);
            if had {
                all.charge.remove(of_subscription(name));
            }
            had
        });
        if had {
            context.session.has_left = true;
            leave(context, kind, name);
        }
        answer(sink, kind.names().1, Some(name), kind.count(context.session));
    }
    if names.is_empty() {
        answer(sink, kind.names().1, None, kind.count(context.session));
    }
    context.engine.look_at_events();
    context.session.show_subscriptions();
    Ok(())
}

fn leave(context: &Context<'_, '_>, kind: Kind, name: &[u8]) {
    let (pubsub, id) = (&context.engine.pubsub, context.session.id());
    match kind {
        Kind::Channel => pubsub.unsubscribe(Space::Global, name, id),
        Kind::Shard => pubsub.unsubscribe(Space::Shard, name, id),
        Kind::Pattern => pubsub.unsubscribe_pattern(name, id),
    }
}

fn publish(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, space: Space) -> Result {
    let (engine, channel, payload) = (context.engine, args.bytes(1), args.bytes(2));
    let local = &mut *context.local;
    let receivers = if local.effects.recorder.has_journal() {
        // Nobody hears of what may be taken back.
        local.publish_later(space, channel, payload);
        engine.pubsub.receivers(space, channel)
    } else {
        engine.pubsub.publish(&engine.mailboxes, space, channel, payload)
    };
    sink.count(receivers);
    Ok(())
}

fn channels(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
    space: Space,
) -> Result {
    if args.len() > 3 {
        return Err(subcommand_syntax(args));
    }
    let pattern = (args.len() > 2).then(|| args.bytes(2));
    let names = context.engine.pubsub.channels(space, pattern);
    sink.array(names.len());
    names.iter().for_each(|name| sink.bulk(name));
    Ok(())
}

fn numsub(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, space: Space) -> Result {
    sink.array(2 * (args.len() - 2));
    for name in args.rest(2) {
        sink.bulk(name);
        sink.count(context.engine.pubsub.subscribers(space, name));
    }
    Ok(())
}

fn numpat(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    sink.count(context.engine.pubsub.pattern_count());
    Ok(())
}
