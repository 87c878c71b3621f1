//! Owns: PFADD, PFCOUNT, PFMERGE, PFDEBUG, PFSELFTEST. Does not own: the bytes (`crate::hyperloglog`).

use std::sync::atomic::Ordering::Relaxed;
use weft_store::{Expiry, Key, Rng};

use super::bitmap::{put_bytes, with_string};
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::hyperloglog::{self as hll, Corrupt, Union};
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("PFADD", Scope::Keys, pfadd),
    ("PFCOUNT", Scope::Keys, pfcount),
    ("PFMERGE", Scope::Keys, pfmerge),
    ("PFDEBUG", Scope::Keys, pfdebug),
    ("PFSELFTEST", Scope::None, pfselftest),
];

impl From<Corrupt> for Error {
    fn from(_: Corrupt) -> Self {
        ErrorCode::InvalidObject.into()
    }
}

/// Shows a HyperLogLog, or nothing where the key is missing.
fn with_hll<R>(
    context: &mut Context<'_, '_>,
    key: &Key<'_>,
    show: impl FnOnce(Option<&[u8]>) -> R,
) -> Result<R> {
    with_string(context, key, |bytes| match bytes {
        Some(bytes) if !hll::is_valid(bytes) => {
            Err(Error::new(ErrorCode::WrongType, "Key is not a valid HyperLogLog string value."))
        }
        bytes => Ok(show(bytes)),
    })?
}

fn sparse_bytes_max(context: &Context<'_, '_>) -> usize {
    context.engine.settings.hll_sparse_max_bytes.load(Relaxed)
}

fn pfadd(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let key = context.key(args, 1);
    let max = sparse_bytes_max(context);
    let sparse = with_hll(context, &key, |bytes| match bytes {
        None => Some((hll::create(), true)),
        Some(bytes) => (!hll::is_dense(bytes)).then(|| (bytes.to_vec(), false)),
    })?;
    let changed = match sparse {
        Some((mut bytes, mut changed)) => {
            for element in args.rest(2) {
                changed |= hll::add(&mut bytes, element, max)?;
            }
            if changed {
                hll::forget_count(&mut bytes);
                put_bytes(context, &key, bytes, Expiry::Keep)?;
            }
            changed
        }
        None => add_dense(context, args, &key)?,
    };
    if changed {
        context.notify(notify::STRING, "pfadd", &key);
    }
    sink.int(i64::from(changed));
    Ok(())
}

/// Adds to the dense form: a byte or two for each element, in place.
fn add_dense(context: &mut Context<'_, '_>, args: &Args<'_>, key: &Key<'_>) -> Result<bool> {
    let mut changed = false;
    for element in args.rest(2) {
        let change =
            with_hll(context, key, |bytes| bytes.and_then(|bytes| hll::dense_change(bytes, element)))?;
        if let Some((at, bytes, len)) = change {
            write(context, key, at, &bytes[..len])?;
            changed = true;
        }
    }
    if changed {
        let mut head = with_hll(context, key, |bytes| bytes.unwrap_or_default()[..16].to_vec())?;
        hll::forget_count(&mut head);
        let place = hll::count_place();
        write(context, key, place, &head[place..])?;
    }
    Ok(changed)
}

fn write(context: &mut Context<'_, '_>, key: &Key<'_>, at: usize, bytes: &[u8]) -> Result {
    let (shard, mut op) = context.shard(key)?;
    shard.set_range(&mut op, key, at, bytes)?;
    Ok(())
}

fn pfcount(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    if args.len() > 2 {
        let mut union = Union::default();
        for name in args.rest(1) {
            let key = context.key_of(name);
            with_hll(context, &key, |bytes| bytes.map_or(Ok(()), |bytes| union.add(bytes)))??;
        }
        sink.int(union.count() as i64);
        return Ok(());
    }
    let key = context.key(args, 1);
    let (count, cached) = with_hll(context, &key, |bytes| match bytes {
        None => Ok((0, true)),
        Some(bytes) => match hll::cached_count(bytes) {
            Some(count) => Ok((count, true)),
            None => hll::count(bytes).map(|count| (count, false)),
        },
    })??;
    if !cached {
        // The count is kept with the value, as Valkey does: a read that writes.
        write(context, &key, hll::count_place(), &hll::count_bytes(count))?;
        // Whoever has read the key before is told; who counts now reads what he has written. Inside an operation that
        // is seen to at its end.
        if !context.is_inner {
            let by = context.session.id();
            context.engine.invalidate_tracked(&mut context.local.effects, Some(by));
        }
    }
    sink.int(count as i64);
    Ok(())
}

fn pfmerge(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let mut union = Union::default();
    let mut dense = false;
    // What the destination holds: it is looked at once, as a missing key is told of once.
    let mut own = None;
    for (place, name) in args.rest(1).enumerate() {
        let key = context.key_of(name);
        with_hll(context, &key, |bytes| {
            let Some(bytes) = bytes else { return Ok(()) };
            if place == 0 {
                own = Some(bytes.to_vec());
            }
            dense |= hll::is_dense(bytes);
            union.add(bytes)
        })??;
    }
    let key = context.key(args, 1);
    let max = sparse_bytes_max(context);
    let mut bytes = own.unwrap_or_else(hll::create);
    union.write_into(&mut bytes, dense, max)?;
    put_bytes(context, &key, bytes, Expiry::Keep)?;
    context.notify(notify::STRING, "pfadd", &key);
    sink.ok();
    Ok(())
}

fn pfdebug(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let command = args.bytes(1).to_ascii_uppercase();
    if command == b"SIMD" {
        if !args.is(2, "ON") && !args.is(2, "OFF") {
            return Err(Error::err("Argument must be ON or OFF"));
        }
        // There is nothing to switch: one way of counting serves all machines.
        sink.simple("disabled");
        return Ok(());
    }
    let key = context.key(args, 2);
    let bytes = with_hll(context, &key, |bytes| bytes.map(<[u8]>::to_vec))?;
    let bytes = bytes.ok_or_else(|| Error::err("The specified key does not exist"))?;
    match command.as_slice() {
        b"GETREG" => {
            let registers = hll::registers(&bytes)?;
            make_dense(context, &key, &bytes)?;
            sink.array(registers.len());
            registers.iter().for_each(|&register| sink.int(i64::from(register)));
        }
        b"DECODE" if hll::is_dense(&bytes) => return Err(Error::err("HLL encoding is not sparse")),
        b"DECODE" => sink.bulk(hll::decode(&bytes).as_bytes()),
        b"ENCODING" => sink.simple(if hll::is_dense(&bytes) { "dense" } else { "sparse" }),
        b"TODENSE" => {
            let converted = make_dense(context, &key, &bytes)?;
            sink.int(i64::from(converted));
        }
        _ => {
            let name = String::from_utf8_lossy(args.bytes(1)).into_owned();
            return Err(Error::err(format!("Unknown PFDEBUG subcommand '{name}'")));
        }
    }
    Ok(())
}

/// Puts the dense form in place of the sparse one. Says whether it was sparse.
fn make_dense(context: &mut Context<'_, '_>, key: &Key<'_>, bytes: &[u8]) -> Result<bool> {
    if hll::is_dense(bytes) {
        return Ok(false);
    }
    put_bytes(context, key, hll::to_dense(bytes)?, Expiry::Keep)?;
    Ok(true)
}

/// Elements of the self-test. Valkey takes ten times as many, which is seconds.
const SELF_TEST_ELEMENTS: u64 = 1_000_000;

/// Adds many different elements to both forms: they must agree, and the error must be within six standard errors.
fn pfselftest(context: &mut Context<'_, '_>, _: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let seed = context.local.rng.next_u64();
    let (mut sparse, mut dense) = (hll::create(), hll::to_dense(&hll::create())?);
    let standard_error = 1.04 / (hll::REGISTERS as f64).sqrt();
    let mut checkpoint = 1;
    for number in 1..=SELF_TEST_ELEMENTS {
        let element = (number ^ seed).to_le_bytes();
        hll::add(&mut dense, &element, 0)?;
        hll::add(&mut sparse, &element, sparse_bytes_max(context))?;
        if number != checkpoint {
            continue;
        }
        let count = hll::count(&dense)?;
        if count != hll::count(&sparse)? {
            return Err(Error::err("TESTFAILED dense/sparse disagree"));
        }
        let off = count.abs_diff(checkpoint);
        let allowed = if checkpoint == 10 { 1.0 } else { (standard_error * 6.0 * checkpoint as f64).ceil() };
        if off as f64 > allowed {
            return Err(Error::err(format!("TESTFAILED Too big error. card:{checkpoint} abserr:{off}")));
        }
        checkpoint *= 10;
    }
    sink.ok();
    Ok(())
}
