//! Owns: keys, programs and triggers as resources, which HTTP has: what a request says of one beside its command (what
//! it must hold, which part of it is wanted), asked under the command's own locks, and what its answer says beside the
//! value. Does not own: the commands (GET, SET, DEL, APPEND, SETRANGE and whatever reads a collection; PROGRAM,
//! TRIGGER), HTTP.
//!
//! A request for a resource is its command, admitted, locked, run, undone and told like any other; [`run`] stands
//! between the locks and the runner, where the session says that more was [asked](Asked).

use weft_store::{Digest, Key};

use crate::acl::LogPlace;
use crate::args::{Args, Composed, find};
pub use crate::asked::{Asked, ByteRange, Does, Stored, Tags};
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::Handler;
use crate::inner::Inner;
use crate::metrics;
use crate::reply::{Captured, Item, ReplySink};
pub use crate::reply::{ResourceOutcome, ResourceState, Tag};
use crate::runner;

/// Strings of so many bytes have a tag, and collections that take so much memory are read as one.
pub const TAG_BYTES_MAX: usize = 1 << 20;
/// Tags that one condition may name.
pub const TAGS_MAX: usize = 32;

impl Tags {
    fn hold(&self, present: Option<&Present>) -> bool {
        match (self, present) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::These(tags), Some(present)) => present.tag.is_some_and(|tag| tags.contains(&tag)),
        }
    }
}

/// A key, a program or a trigger that is there.
#[derive(Clone, Copy, Debug)]
struct Present {
    tag: Option<Tag>,
    type_name: &'static str,
    left_ms: Option<u64>,
    /// Memory that it takes, or the bytes of a string.
    bytes: usize,
}

impl Present {
    fn is_string(&self) -> bool {
        self.type_name == "string"
    }
    const fn state(present: Option<&Self>, outcome: ResourceOutcome) -> ResourceState {
        match present {
            Some(&Self { tag, type_name, left_ms, .. }) => {
                ResourceState { outcome, tag, type_name: Some(type_name), left_ms }
            }
            None => ResourceState { outcome, tag: None, type_name: None, left_ms: None },
        }
    }
}

/// Runs a command for a request that asks more of its key.
pub(crate) fn run(
    context: &mut Context<'_, '_>,
    asked: &Asked,
    (handler, args): (Handler, &Args<'_>),
    sink: &mut ReplySink<'_>,
) -> Result {
    match asked.does {
        Does::Read => read(context, asked, (handler, args), sink),
        Does::Write | Does::Remove => write(context, asked, (handler, args), sink),
        Does::List => list(context, handler, args, sink),
        Does::Follow => {
            sink.ok();
            Ok(())
        }
        Does::WriteAll => write_all(context, handler, args, sink),
        Does::Metrics(form) => {
            sink.raw(metrics::metrics(context.engine, form, context.now_ms).as_bytes());
            sink.resource_state(Present::state(None, ResourceOutcome::Page(form.content_type())));
            Ok(())
        }
    }
}

/// What is known of the resource that a command is about; its tag where that is wanted.
fn look(
    context: &mut Context<'_, '_>,
    stored: Option<Stored>,
    (args, tagged): (&Args<'_>, bool),
) -> Result<Option<Present>> {
    match stored {
        Some(stored) => Ok(stored.text(context, args.bytes(2)).map(|(version, _)| Present {
            tag: Some(Tag::Version(version)),
            type_name: stored.type_name(),
            left_ms: None,
            bytes: 0,
        })),
        None => look_at_key(context, &context.key(args, 1), tagged),
    }
}

impl Stored {
    const fn type_name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Trigger => "trigger",
        }
    }
    const fn missing(self) -> ErrorCode {
        match self {
            Self::Program => ErrorCode::NoProgram,
            Self::Trigger => ErrorCode::NoTrigger,
        }
    }
    /// Its version and its text.
    fn text(self, context: &Context<'_, '_>, name: &[u8]) -> Option<(u64, Box<[u8]>)> {
        match self {
            Self::Program => {
                let stored = context.engine.programs.get(name)?;
                Some((stored.version, stored.text.as_ref().into()))
            }
            Self::Trigger => {
                let trigger = context.engine.triggers.get(name)?;
                Some((trigger.version, trigger.text.as_ref().into()))
            }
        }
    }
}

/// The same for a key.
fn look_at_key(context: &mut Context<'_, '_>, key: &Key<'_>, tagged: bool) -> Result<Option<Present>> {
    let now_ms = context.now_ms;
    let (shard, mut op) = context.shard(key)?;
    let Some(expire_ms) = shard.expire_ms(&mut op, key) else { return Ok(None) };
    let memory_bytes = shard.info(&mut op, key).map_or(0, |info| info.memory_bytes);
    let Some(value) = shard.peek(&mut op, key) else { return Ok(None) };
    let bytes = value.string_len().unwrap_or(memory_bytes);
    Ok(Some(Present {
        tag: (tagged && bytes <= TAG_BYTES_MAX).then(|| Tag::of(Digest::of_value(value))),
        type_name: value.type_name(),
        left_ms: expire_ms.map(|expire_ms| expire_ms.saturating_sub(now_ms)),
        bytes,
    }))
}

fn read(
    context: &mut Context<'_, '_>,
    asked: &Asked,
    (handler, args): (Handler, &Args<'_>),
    sink: &mut ReplySink<'_>,
) -> Result {
    let present = look(context, asked.stored, (args, true))?;
    if asked.matching.as_ref().is_some_and(|tags| !tags.hold(present.as_ref())) {
        return Err(ErrorCode::Precondition.into());
    }
    if asked.none_matching.as_ref().is_some_and(|tags| tags.hold(present.as_ref())) {
        sink.resource_state(Present::state(present.as_ref(), ResourceOutcome::NotModified));
        return Ok(());
    }
    if let Some(stored) = asked.stored {
        let (_, text) = stored.text(context, args.bytes(2)).ok_or(stored.missing())?;
        sink.raw(&text);
        sink.resource_state(Present::state(present.as_ref(), ResourceOutcome::Whole));
        return Ok(());
    }
    if let Some(present) = present.filter(|present| !present.is_string()) {
        return read_collection(context, &present, args, sink);
    }
    // Also where the key is not there: that counts as a miss.
    let reply = captured(context, handler, args)?;
    let value = reply.items().next();
    let (Some(present), Some(value)) = (present, value) else { return Err(ErrorCode::NoSuchKey.into()) };
    let bytes = match value {
        Item::Bulk(bytes) => bytes,
        Item::Shared(value) => value.as_slice(),
        _ => return Err(ErrorCode::NoSuchKey.into()),
    };
    let counts = asked.range_of.as_ref().is_none_or(|tags| tags.hold(Some(&present)));
    let range = asked.range.filter(|_| counts);
    match (range.map(|range| range.within(bytes.len())), value) {
        (Some(None), _) => {
            sink.resource_state(Present::state(Some(&present), ResourceOutcome::OutOfRange(bytes.len())));
            return Err(ErrorCode::NotInRange.into());
        }
        (Some(Some((from, end))), _) => {
            sink.resource_state(Present::state(
                Some(&present),
                ResourceOutcome::Part(from, end, bytes.len()),
            ));
            sink.raw(&bytes[from..end]);
        }
        (None, Item::Shared(value)) => {
            sink.resource_state(Present::state(Some(&present), ResourceOutcome::Whole));
            sink.raw_shared(value);
        }
        (None, _) => {
            sink.resource_state(Present::state(Some(&present), ResourceOutcome::Whole));
            sink.raw(bytes);
        }
    }
    Ok(())
}

/// Reads a collection with the command that reads all of its type, which the user must be allowed too.
fn read_collection(
    context: &mut Context<'_, '_>,
    present: &Present,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    if present.bytes > TAG_BYTES_MAX {
        let text = format!(
            "the {} takes {} bytes, and {TAG_BYTES_MAX} are read at once: read it in parts by its commands",
            present.type_name, present.bytes
        );
        return Err(Error::new(ErrorCode::TooLarge, text));
    }
    let (name, behind): (&[u8], &[&[u8]]) = match present.type_name {
        "list" => (b"LRANGE", &[b"0", b"-1"]),
        "hash" => (b"HGETALL", &[]),
        "set" => (b"SMEMBERS", &[]),
        "zset" => (b"ZRANGE", &[b"0", b"-1", b"WITHSCORES"]),
        "stream" => (b"XRANGE", &[b"-", b"+"]),
        _ => return Err(ErrorCode::WrongType.into()),
    };
    let Some(id) = find(name, None) else { return Err(ErrorCode::WrongType.into()) };
    let mut composed = Composed::default();
    composed.push(name);
    composed.push(args.bytes(1));
    behind.iter().for_each(|argument| composed.push(argument));
    let args = composed.args(id.spec());
    let mut inner = Inner::new(context, LogPlace::TopLevel);
    let handler = inner.admit(&args)?;
    inner.run_to(handler, &args, sink)?;
    sink.resource_state(Present::state(Some(present), ResourceOutcome::Whole));
    Ok(())
}

fn write(
    context: &mut Context<'_, '_>,
    asked: &Asked,
    (handler, args): (Handler, &Args<'_>),
    sink: &mut ReplySink<'_>,
) -> Result {
    let may_read = asked.stored.is_some() || may_read(context, args);
    if asked.needs_tag() && !may_read {
        let text = "a condition that names a tag compares what the key holds, which this user may not read";
        return Err(Error::new(ErrorCode::NoPerm, text));
    }
    let before = look(context, asked.stored, (args, asked.needs_tag()))?;
    let fails = asked.matching.as_ref().is_some_and(|tags| !tags.hold(before.as_ref()))
        || asked.none_matching.as_ref().is_some_and(|tags| tags.hold(before.as_ref()));
    if fails {
        return Err(ErrorCode::Precondition.into());
    }
    let removes = asked.does == Does::Remove;
    match &before {
        None if removes => {
            return Err(asked.stored.map_or(ErrorCode::NoSuchKey, Stored::missing).into());
        }
        Some(present) if !removes && !present.is_string() && asked.stored.is_none() => {
            return Err(ErrorCode::Collection.into());
        }
        _ => {}
    }
    captured(context, handler, args)?;
    let after = if removes { None } else { look(context, asked.stored, (args, may_read))? };
    let outcome = match (&before, removes) {
        (_, true) => ResourceOutcome::Removed,
        (None, _) => ResourceOutcome::Created,
        (Some(_), _) => ResourceOutcome::Changed,
    };
    let after = after.map(|present| Present { left_ms: present.left_ms.filter(|_| may_read), ..present });
    sink.resource_state(Present::state(after.as_ref(), outcome));
    Ok(())
}

/// Whether the user may read the key that a command writes: a tag says what the key holds to whoever can guess it.
fn may_read(context: &Context<'_, '_>, args: &Args<'_>) -> bool {
    let session = &*context.session;
    session.user.all || session.user.reads_key_in(session.db, args.bytes(1))
}

/// Runs the command that the request stands for, and keeps its reply.
fn captured(context: &mut Context<'_, '_>, handler: Handler, args: &Args<'_>) -> Result<Captured> {
    let mut reply = Captured::default();
    runner::run(context, handler, args, &mut reply.sink())?;
    Ok(reply)
}

fn list(
    context: &mut Context<'_, '_>,
    handler: Handler,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    let reply = captured(context, handler, args)?;
    let names: Vec<Item<'_>> = reply.items().filter(|item| !matches!(item, Item::Open(..))).collect();
    let Some((Item::Bulk(cursor), names)) = names.split_first() else {
        return Err(ErrorCode::Generic.into());
    };
    sink.map(2);
    sink.bulk(b"cursor");
    sink.bulk(cursor);
    sink.bulk(b"keys");
    sink.array(names.len());
    for name in names {
        if let Item::Bulk(name) = name {
            sink.bulk(name);
        }
    }
    Ok(())
}

fn write_all(
    context: &mut Context<'_, '_>,
    handler: Handler,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result {
    let reply = captured(context, handler, args)?;
    if reply.items().next() == Some(Item::Int(0)) {
        return Err(ErrorCode::Precondition.into());
    }
    sink.resource_state(Present::state(None, ResourceOutcome::Changed));
    Ok(())
}
