//! Owns: what a command of a program costs, said by its arguments and the sizes of its keys before it runs, so that
//! what is too much is not begun. Does not own: what is left (`super::budget`).

use weft_protocol::table::policy;
use weft_store::{ObjectRef, ValueRef};

use crate::args::Args;
use crate::context::Context;
use crate::keys;

/// Elements of keys that a command which may take long looks at for one step.
pub(super) const ELEMENTS_PER_STEP: u64 = 128;
/// Bytes of a string that are looked at in the time of one element.
const BYTES_PER_ELEMENT: u64 = 64;
/// Keys that SCAN looks at where it is not told.
const SCAN_KEYS: u64 = 10;

/// What a command may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Steps, for what it looks at.
    pub(super) steps: u64,
    /// Bytes that its string grows by beyond what it brings.
    pub(super) bytes: u64,
}

impl Cost {
    /// Of a command that does not always take about the same short time.
    pub(super) fn of(context: &mut Context<'_, '_>, args: &Args<'_>) -> Self {
        let multiplies = args.spec.policy & policy::MULTIPLIES != 0;
        let (mut sum, mut product) = (0_u64, 1_u64);
        keys::each(args, |index| {
            let elements = elements_of(context, args.bytes(index));
            sum = sum.saturating_add(elements);
            product = product.saturating_mul(elements.saturating_mul(BYTES_PER_ELEMENT));
        });
        let elements = if multiplies { product } else { sum }.saturating_add(repeats(args).unwrap_or(0));
        let steps = (elements / ELEMENTS_PER_STEP).saturating_add(walked(context, args));
        let bytes = reaches(args).map_or(0, |to| to.saturating_sub(length_of(context, args.bytes(1))));
        Self { steps, bytes }
    }
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

/// How many answers a negative count asks for.
fn repeats(args: &Args<'_>) -> Option<u64> {
    if args.spec.policy & policy::REPEATS == 0 || args.len() < 3 {
        return None;
    }
    args.int(2).ok().filter(|count| *count < 0).map(i64::unsigned_abs)
}

/// Keys that a command looks at without naming them: each is a step, as it is in a loop over keys.
fn walked(context: &Context<'_, '_>, args: &Args<'_>) -> u64 {
    let all = context.engine.keyspace.len(context.db) as u64;
    match args.spec.policy {
        policy if policy & policy::WALKS != 0 => all,
        policy if policy & policy::WALKS_SOME != 0 => {
            let count = (2..args.len()).find(|at| args.is(*at, "COUNT")).and_then(|at| args.int(at + 1).ok());
            count.and_then(|count| u64::try_from(count).ok()).unwrap_or(SCAN_KEYS).min(all)
        }
        _ => 0,
    }
}

fn length_of(context: &mut Context<'_, '_>, name: &[u8]) -> u64 {
    with_value(context, name, |value| match value {
        ValueRef::Bytes(bytes) => bytes.len() as u64,
        ValueRef::Shared(bytes) => bytes.as_slice().len() as u64,
        _ => 0,
    })
}

/// Elements of a key: members, entries, or parts of a string.
fn elements_of(context: &mut Context<'_, '_>, name: &[u8]) -> u64 {
    with_value(context, name, |value| match value {
        ValueRef::Bytes(bytes) => bytes.len() as u64 / BYTES_PER_ELEMENT,
        ValueRef::Shared(bytes) => bytes.as_slice().len() as u64 / BYTES_PER_ELEMENT,
        ValueRef::Object(object) => match object {
            ObjectRef::List(list) => list.len() as u64,
            ObjectRef::Hash(hash) => hash.len() as u64,
            ObjectRef::Set(set) => set.len() as u64,
            ObjectRef::SortedSet(set) => set.len() as u64,
            ObjectRef::Stream(stream) => stream.log().len(),
            _ => 0,
        },
        _ => 0,
    })
}

fn with_value(context: &mut Context<'_, '_>, name: &[u8], look: impl FnOnce(ValueRef<'_>) -> u64) -> u64 {
    let key = context.engine.keyspace.key(name);
    let Ok((shard, mut op)) = context.shard(&key) else { return 0 };
    shard.peek(&mut op, &key).map_or(0, look)
}
