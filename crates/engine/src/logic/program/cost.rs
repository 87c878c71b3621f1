//! Owns: what a command of a program costs, said by the table, its arguments and the sizes of its keys before it runs,
//! so that what is too much is not begun. Does not own: what is left (`crate::program::budget`), which command goes
//! through what (`spec/commands`, `cost`).
//!
//! A step is [`STEP_NS`] of time. How long an element takes is an upper bound of what was measured with 300,000 of
//! them, what may have to be taken back included (`make bench-programs`).

use weft_protocol::table::{self, flag, key_flag, policy};
use weft_store::{ObjectRef, ValueRef};

use crate::args::Args;
use crate::commands::lists::span;
use crate::commands::sorted_sets::sorted_set_range::{By, spanned};
use crate::context::Context;
use crate::engine::Engine;
use crate::keys;
use crate::program::budget::{LITTLE_WORK, STEP_NS, WORK_PER_STEP};
use crate::program::quick::FEW;
use crate::pubsub::Space;

/// An element that is read.
const LOOK_NS: u64 = 150;
/// An element that is gathered in a collection or put in an order, or changed and taken back.
const CHANGE_NS: u64 = 1_000;
/// An element of a list, which stands beside others in one piece of memory.
const CHANGE_LISTED_NS: u64 = 300;
/// An element that is copied or set aside together with its neighbours.
const BLOCK_NS: u64 = 30;
/// Bytes of a string that are looked at or copied in a nanosecond.
const BYTES_PER_NS: u64 = 2;
/// One who is told a message, whose bytes are copied for him.
const DELIVERY_NS: u64 = 250;
const DELIVERY_BYTES_PER_NS: u64 = 16;
/// Places of two strings that LCS compares in a nanosecond: one.
const PAIRS_PER_NS: u64 = 1;
/// Bytes of a value in the form of DUMP that hold an element, or more.
const PAYLOAD_BYTES: u64 = 4;
/// A key that is looked at without being named: one step, as in a loop over keys.
const WALK_NS: u64 = STEP_NS;

/// Bytes of a name, where what matching it takes is asked for before.
const NAME_BYTES: usize = 64;

/// What a command may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Steps, for what it goes through.
    pub(super) steps: u64,
    /// Bytes that its string grows by beyond what it brings.
    pub(super) bytes: u64,
}

/// What a key holds.
#[derive(Clone, Copy, Default)]
struct Size {
    elements: u64,
    /// Of a string.
    bytes: u64,
}

impl Cost {
    /// Of a command that is not [short](crate::program::quick::is_short).
    pub(super) fn of(context: &mut Context<'_, '_>, args: &Args<'_>) -> Self {
        let each = element_ns(args);
        let given = (args.len().saturating_sub(FEW) as u64).saturating_mul(each);
        let ns = given.saturating_add(gone_through(context, args, each));
        let bytes = reaches(args).map_or(0, |to| to.saturating_sub(size(context, args.bytes(1)).bytes));
        Self { steps: ns / STEP_NS, bytes }
    }
}

/// How long a command takes for an element.
fn element_ns(args: &Args<'_>) -> u64 {
    match args.spec {
        spec if matches!(spec.cost, table::Cost::Gathered | table::Cost::Least) => CHANGE_NS,
        spec if spec.flags & flag::WRITE == 0 => LOOK_NS,
        spec if spec.group == "list" => CHANGE_LISTED_NS,
        _ => CHANGE_NS,
    }
}

/// How long what a command goes through takes in nanoseconds, each element taking this long.
fn gone_through(context: &mut Context<'_, '_>, args: &Args<'_>, each: u64) -> u64 {
    let all = |all: Size| (all.elements.saturating_mul(each)).saturating_add(all.bytes / BYTES_PER_NS);
    let some = |count: u64| count.saturating_mul(each);
    match args.spec.cost {
        table::Cost::Arguments => 0,
        table::Cost::Keys | table::Cost::Gathered => all(sum(context, args)),
        table::Cost::Least => {
            let (mut least, mut keys) = (u64::MAX, 0);
            read_keys(context, args, |size| (least, keys) = (least.min(size.elements), keys + 1));
            if keys == 0 { 0 } else { least.saturating_mul(each.saturating_add(keys * LOOK_NS)) }
        }
        table::Cost::Product => {
            let mut product = 1_u64;
            read_keys(context, args, |size| product = product.saturating_mul(size.bytes));
            product / PAIRS_PER_NS
        }
        table::Cost::Blocks => {
            let Size { elements, bytes } = sum(context, args);
            elements.saturating_mul(BLOCK_NS).saturating_add(bytes / BYTES_PER_NS)
        }
        table::Cost::Count(at) => some(count(args, at.into()).unwrap_or(1).min(sum(context, args).elements)),
        // Of many some are drawn several times, or all are put in an order.
        table::Cost::Sample(at) => match args.int(at.into()) {
            Ok(count @ 0..) => some(count.unsigned_abs().min(sum(context, args).elements)).saturating_mul(2),
            Ok(count) => some(count.unsigned_abs()),
            Err(_) => 0,
        },
        table::Cost::Option(from, otherwise) => {
            let elements = sum(context, args).elements;
            let otherwise = if otherwise == 0 { elements } else { otherwise.into() };
            let elements = option(args, from.into()).unwrap_or(otherwise).min(elements);
            some(elements).saturating_add(elements.saturating_mul(match_ns(args)))
        }
        table::Cost::Ranks(at) => {
            let Size { elements, bytes } = within(context, args, at.into());
            some(elements).saturating_add(bytes / BYTES_PER_NS)
        }
        table::Cost::Beyond(at) => {
            let inside = between(context, args, at.into(), By::Rank);
            some(sum(context, args).elements.saturating_sub(inside))
        }
        table::Cost::Scores(at) => some(between(context, args, at.into(), By::Score)),
        table::Cost::Names(at) => some(between(context, args, at.into(), By::Lex)),
        table::Cost::Trim => trimmed(context, args).saturating_mul(BLOCK_NS),
        table::Cost::Payload(at) => match args.bytes(at.into()) {
            // A string.
            payload @ [0, ..] => payload.len() as u64 / BYTES_PER_NS,
            payload => some(payload.len() as u64 / PAYLOAD_BYTES),
        },
        table::Cost::Receivers => delivery_ns(context.engine, args),
        table::Cost::Walk => keys_of(context).saturating_mul(WALK_NS + match_ns(args)),
        table::Cost::WalkSome(otherwise) => {
            let keys = option(args, 2).unwrap_or(otherwise.into()).min(keys_of(context));
            keys.saturating_mul(WALK_NS + match_ns(args))
        }
    }
}

/// How long telling all takes who get a message, which is done behind the operation.
pub(crate) fn delivery_ns(engine: &Engine, args: &Args<'_>) -> u64 {
    let (channel, payload) = (args.bytes(1), args.bytes(2).len() as u64);
    // A shard's channel stands where a key would.
    let space = if args.spec.key_specs.is_empty() { Space::Global } else { Space::Shard };
    let receivers = engine.pubsub.receivers(space, channel) as u64;
    receivers.saturating_mul(DELIVERY_NS.saturating_add(payload / DELIVERY_BYTES_PER_NS))
}

/// How long a name takes that a command holds against its pattern, if that is more than looking at it.
fn match_ns(args: &Args<'_>) -> u64 {
    let pattern = match args.spec.cost {
        table::Cost::Walk => (args.len() > 1).then_some(1),
        _ => (2..args.len() - 1).rev().find(|at| args.is(*at, "MATCH")).map(|at| at + 1),
    };
    let work = pattern.map_or(0, |at| crate::glob::work(args.bytes(at), NAME_BYTES));
    if work < LITTLE_WORK { 0 } else { work.saturating_mul(STEP_NS) / WORK_PER_STEP }
}

/// A number that is an argument.
fn count(args: &Args<'_>, at: usize) -> Option<u64> {
    if at < args.len() { args.int(at).ok().and_then(|count| u64::try_from(count).ok()) } else { None }
}

/// What an option COUNT says: the largest, where keys or patterns have that name. XINFO and ranges take all with 0.
fn option(args: &Args<'_>, from: usize) -> Option<u64> {
    let options = (from..args.len()).take_while(|at| !args.is(*at, "STREAMS"));
    let counts = options.filter(|at| args.is(*at, "COUNT")).filter_map(|at| count(args, at + 1));
    counts.max().filter(|count| *count > 0)
}

/// Elements between two ends that the arguments say.
fn between(context: &mut Context<'_, '_>, args: &Args<'_>, at: usize, by: By) -> u64 {
    let mut elements = 0_u64;
    each_read(context, args, |value| {
        let between = match value {
            ValueRef::Object(ObjectRef::SortedSet(set)) => spanned(args, at, by, set),
            ValueRef::Object(ObjectRef::List(list)) => match (args.int(at), args.int(at + 1)) {
                (Ok(start), Ok(end)) => span(start, end, list.len()).len(),
                _ => 0,
            },
            _ => 0,
        };
        elements = elements.saturating_add(between as u64);
    });
    elements
}

/// Elements between two ranks that the arguments say, or bytes of a string between two places.
fn within(context: &mut Context<'_, '_>, args: &Args<'_>, at: usize) -> Size {
    let (elements, mut bytes) = (between(context, args, at, By::Rank), 0_u64);
    if let (Ok(start), Ok(end)) = (args.int(at), args.int(at + 1)) {
        each_read(context, args, |value| {
            bytes = bytes.saturating_add(span(start, end, Size::of(value).bytes as usize).len() as u64);
        });
    }
    Size { elements, bytes }
}

/// Entries of a stream that MAXLEN or MINID takes away at most.
fn trimmed(context: &mut Context<'_, '_>, args: &Args<'_>) -> u64 {
    // An entry's names and values stand behind its id, and may have the names of options.
    let Some(at) = (2..args.len()).take(3).find(|at| args.is(*at, "MAXLEN") || args.is(*at, "MINID")) else {
        return 0;
    };
    let kept = [at + 1, at + 2].into_iter().find_map(|at| count(args, at)).filter(|_| args.is(at, "MAXLEN"));
    (sum(context, args).elements + 1).saturating_sub(kept.unwrap_or(0))
}

/// Up to which length a command has its string grow, where it says so by an offset.
fn reaches(args: &Args<'_>) -> Option<u64> {
    let offset = |index: usize| args.int(index).ok().and_then(|at| u64::try_from(at).ok());
    match args.spec.policy {
        policy if policy & policy::REACHES_BYTES != 0 => offset(2),
        policy if policy & policy::REACHES_BITS != 0 => offset(2).map(|bit| bit / 8 + 1),
        policy if policy & policy::ACCESS_BITFIELD != 0 => {
            // GET grows nothing, and an offset may be counted in fields of up to 64 bits.
            let fields = (2..args.len()).filter(|at| args.is(*at, "SET") || args.is(*at, "INCRBY"));
            let offsets = fields.filter_map(|at| {
                let text = args.bytes(at + 2);
                let (text, bits) = text.strip_prefix(b"#").map_or((text, 1), |text| (text, 64));
                let offset = weft_store::parse_int(text).and_then(|at| u64::try_from(at).ok())?;
                Some(offset.saturating_mul(bits) / 8 + 9)
            });
            offsets.max()
        }
        _ => None,
    }
}

fn keys_of(context: &Context<'_, '_>) -> u64 {
    context.engine.keyspace.len(context.session.db) as u64
}

/// All that is at the keys that a command reads or changes.
fn sum(context: &mut Context<'_, '_>, args: &Args<'_>) -> Size {
    let mut all = Size::default();
    read_keys(context, args, |size| {
        all.elements = all.elements.saturating_add(size.elements);
        all.bytes = all.bytes.saturating_add(size.bytes);
    });
    all
}

fn read_keys(context: &mut Context<'_, '_>, args: &Args<'_>, mut visit: impl FnMut(Size)) {
    each_read(context, args, |value| visit(Size::of(value)));
}

/// Calls `look` with the values at the keys of a command, but for those that it replaces.
fn each_read(context: &mut Context<'_, '_>, args: &Args<'_>, mut look: impl FnMut(ValueRef<'_>)) {
    keys::each_with_flags(args, |index, flags| {
        if flags & key_flag::OW == 0 {
            with_value(context, args.bytes(index), &mut look);
        }
    });
}

fn size(context: &mut Context<'_, '_>, name: &[u8]) -> Size {
    let mut size = Size::default();
    with_value(context, name, &mut |value| size = Size::of(value));
    size
}

fn with_value(context: &mut Context<'_, '_>, name: &[u8], look: &mut impl FnMut(ValueRef<'_>)) {
    let (key, db) = (context.engine.keyspace.key(name), context.session.db);
    let Ok((shard, mut op)) = context.shard_in(db, &key) else { return };
    if let Some(value) = shard.peek(&mut op, &key) {
        look(value);
    }
}

impl Size {
    fn of(value: ValueRef<'_>) -> Self {
        let elements = match value {
            ValueRef::Bytes(bytes) => return Self { bytes: bytes.len() as u64, elements: 0 },
            ValueRef::Shared(bytes) => return Self { bytes: bytes.as_slice().len() as u64, elements: 0 },
            ValueRef::Object(object) => match object {
                ObjectRef::List(list) => list.len() as u64,
                ObjectRef::Hash(hash) => hash.len() as u64,
                ObjectRef::Set(set) => set.len() as u64,
                ObjectRef::SortedSet(set) => set.len() as u64,
                ObjectRef::Stream(stream) => {
                    let pending = stream.groups().map(|(_, group)| group.pending_len() as u64).sum::<u64>();
                    stream.log().len().saturating_add(pending)
                }
                _ => 0,
            },
            _ => 0,
        };
        Self { elements, bytes: 0 }
    }
}
