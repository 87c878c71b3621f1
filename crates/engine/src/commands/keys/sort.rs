//! Owns: SORT and SORT_RO. Does not own: the collections.
//!
//! BY and GET make names of keys out of elements, and STORE may stand anywhere: with any of them the whole keyspace is
//! locked while it runs.

use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;
use weft_store::{Digits, End, Expiry, List, ListLimit, ListMut, NewValue, Object, ObjectRef, ValueRef};

use crate::acl::User;
use crate::args::Args;
use crate::context::Context;
use crate::error::{Error, ErrorCode, Result};
use crate::handler::{Entry, Scope};
use crate::keys::has_unnamed;
use crate::notify;
use crate::reply::ReplySink;

pub(crate) const LIST: &[Entry] = &[
    ("SORT", Scope::KeysOrWorld(has_unnamed), |context, args, sink| sort(context, args, sink, false)),
    ("SORT_RO", Scope::KeysOrWorld(has_unnamed), |context, args, sink| sort(context, args, sink, true)),
];

#[derive(Default)]
struct Options<'a> {
    descending: bool,
    alpha: bool,
    limit: Option<(i64, i64)>,
    by: Option<&'a [u8]>,
    /// Some BY was no pattern: the elements stay in the order they have.
    keeps_order: bool,
    /// Some BY was one.
    looks_up: bool,
    get: Vec<&'a [u8]>,
    store: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: &Args<'a>, read_only: bool) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 2;
        while at < args.len() {
            let more = args.len() - at - 1;
            if args.is(at, "ASC") {
                options.descending = false;
            } else if args.is(at, "DESC") {
                options.descending = true;
            } else if args.is(at, "ALPHA") {
                options.alpha = true;
            } else if args.is(at, "LIMIT") && more >= 2 {
                options.limit = Some((args.int(at + 1)?, args.int(at + 2)?));
                at += 2;
            } else if !read_only && args.is(at, "STORE") && more >= 1 {
                options.store = Some(args.bytes(at + 1));
                at += 1;
            } else if args.is(at, "BY") && more >= 1 {
                let by = args.bytes(at + 1);
                let is_pattern = by.contains(&b'*');
                options.by = Some(by);
                options.looks_up |= is_pattern;
                options.keeps_order |= !is_pattern;
                at += 1;
            } else if args.is(at, "GET") && more >= 1 {
                options.get.push(args.bytes(at + 1));
                at += 1;
            } else {
                return Err(ErrorCode::Syntax.into());
            }
            at += 1;
        }
        Ok(options)
    }
}

/// Elements in the order that the collection has, and whether that order means something.
struct Source {
    elements: Vec<Box<[u8]>>,
    is_set: bool,
}

fn source(context: &mut Context<'_, '_>, args: &Args<'_>) -> Result<Source> {
    let key = context.key(args, 1);
    let (shard, mut op) = context.shard(&key)?;
    let Some(value) = shard.get(&mut op, &key) else {
        return Ok(Source { elements: Vec::new(), is_set: false });
    };
    Ok(match value {
        ValueRef::Object(ObjectRef::List(list)) => {
            Source { elements: list.iter().map(Into::into).collect(), is_set: false }
        }
        ValueRef::Object(ObjectRef::Set(set)) => {
            Source { elements: set.iter().map(|member| (*member).into()).collect(), is_set: true }
        }
        ValueRef::Object(ObjectRef::SortedSet(set)) => {
            let members = set.iter(0..set.len()).map(|scored| scored.member.into());
            Source { elements: members.collect(), is_set: false }
        }
        _ => return Err(ErrorCode::WrongType.into()),
    })
}

/// What a pattern stands for with an element in place of its `*`: a string, or with `->` a field of a hash.
fn look_up(context: &mut Context<'_, '_>, pattern: &[u8], element: &[u8]) -> Result<Option<Vec<u8>>> {
    if pattern == b"#" {
        return Ok(Some(element.to_vec()));
    }
    let Some(star) = pattern.iter().position(|&byte| byte == b'*') else { return Ok(None) };
    let (before, behind) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = behind.windows(2).position(|pair| pair == b"->").filter(|&at| at + 2 < behind.len());
    let (behind, field) = match arrow {
        Some(at) => (&behind[..at], Some(&behind[at + 2..])),
        None => (behind, None),
    };
    let name = [before, element, behind].concat();
    let key = context.key_of(&name);
    let (shard, mut op) = context.shard(&key)?;
    let Some(value) = shard.get(&mut op, &key) else { return Ok(None) };
    Ok(match (field, value) {
        (Some(field), ValueRef::Object(ObjectRef::Hash(hash))) => hash.get(field).map(<[u8]>::to_vec),
        (Some(_), _) => None,
        (None, value) => value.as_bytes(&mut Digits::default()).map(<[u8]>::to_vec),
    })
}

fn weight(text: &[u8]) -> Result<f64> {
    crate::number::parse_double(text).ok_or_else(not_a_weight)
}

fn not_a_weight() -> Error {
    Error::err("One or more scores can't be converted into double")
}

/// Puts the elements in order.
fn order(context: &mut Context<'_, '_>, elements: &mut Vec<Box<[u8]>>, options: &Options<'_>) -> Result {
    let turn = |order: Ordering| if options.descending { order.reverse() } else { order };
    if !options.alpha {
        let mut weighed = Vec::with_capacity(elements.len());
        for element in elements.drain(..) {
            let weight = match options.by {
                None => weight(&element)?,
                Some(by) => look_up(context, by, &element)?.map_or(Ok(0.0), |text| weight(&text))?,
            };
            weighed.push((weight, element));
        }
        weighed.sort_by(|one, two| turn(one.0.total_cmp(&two.0).then_with(|| one.1.cmp(&two.1))));
        elements.extend(weighed.into_iter().map(|(_, element)| element));
        return Ok(());
    }
    match options.by {
        None => elements.sort_by(|one, two| turn(one.cmp(two))),
        Some(by) => {
            let mut named = Vec::with_capacity(elements.len());
            for element in elements.drain(..) {
                named.push((look_up(context, by, &element)?, element));
            }
            named.sort_by(|one, two| turn(one.0.cmp(&two.0)));
            elements.extend(named.into_iter().map(|(_, element)| element));
        }
    }
    Ok(())
}

/// The elements that LIMIT leaves.
fn window(len: usize, limit: Option<(i64, i64)>) -> std::ops::Range<usize> {
    let Some((start, count)) = limit else { return 0..len };
    let start = usize::try_from(start.max(0)).unwrap_or(usize::MAX).min(len);
    let count = usize::try_from(count).unwrap_or(len).min(len);
    start..start.saturating_add(count).min(len)
}

fn sort(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>, read_only: bool) -> Result {
    let mut options = Options::parse(args, read_only)?;
    let (user, db_count) = (&context.session.user, context.engine.keyspace.database_count());
    check_rights(user, args, &options, (context.db, db_count))?;
    let Source { mut elements, is_set } = source(context, args)?;
    if options.keeps_order {
        if is_set && (options.store.is_some() || context.is_inner) {
            // The order of a set is nobody's: what is stored should be the same wherever it is done, and what scripts
            // make of it.
            (options.by, options.alpha) = (None, true);
            order(context, &mut elements, &options)?;
        } else if options.descending && !is_set {
            elements.reverse();
        }
    } else {
        order(context, &mut elements, &options)?;
    }
    let shown = &elements[window(elements.len(), options.limit)];
    match options.store {
        Some(name) => store(context, sink, shown, &options, name),
        None => reply(context, sink, shown, &options),
    }
}

/// The same for one that another server runs, which is refused there if it is no such command.
pub(crate) fn check_rights_of(user: &User, args: &Args<'_>, dbs: (u8, usize)) -> Result {
    Options::parse(args, false).map_or(Ok(()), |options| check_rights(user, args, &options, dbs))
}

/// What the command table cannot say: STORE's key must be allowed, and for BY and GET every key.
fn check_rights(user: &User, args: &Args<'_>, options: &Options<'_>, (db, db_count): (u8, usize)) -> Result {
    if user.all {
        return Ok(());
    }
    if options.store.is_some_and(|name| !user.allows_key(name, false, true)) {
        return Err(Error::new(ErrorCode::NoPerm, "No permissions to access a key"));
    }
    let denied =
        |what| Err(Error::err(format!("{what} option of SORT denied due to insufficient ACL permissions.")));
    if user.reads_every_key(args, db, db_count) {
        return Ok(());
    }
    if options.looks_up {
        return denied("BY");
    }
    if options.get.is_empty() { Ok(()) } else { denied("GET") }
}

fn reply(
    context: &mut Context<'_, '_>,
    sink: &mut ReplySink<'_>,
    shown: &[Box<[u8]>],
    options: &Options<'_>,
) -> Result {
    sink.array(shown.len() * options.get.len().max(1));
    for element in shown {
        if options.get.is_empty() {
            sink.bulk(element);
        }
        for pattern in &options.get {
            match look_up(context, pattern, element)? {
                Some(value) => sink.bulk(&value),
                None => sink.null(),
            }
        }
    }
    Ok(())
}

fn store(
    context: &mut Context<'_, '_>,
    sink: &mut ReplySink<'_>,
    shown: &[Box<[u8]>],
    options: &Options<'_>,
    name: &[u8],
) -> Result {
    let limit = ListLimit::from_config(context.engine.settings.list_max_listpack_size.load(Relaxed));
    let mut built = List::default();
    let mut list = ListMut::new(&mut built, limit);
    for element in shown {
        if options.get.is_empty() {
            list.push(End::Back, element);
        }
        for pattern in &options.get {
            let value = look_up(context, pattern, element)?.unwrap_or_default();
            list.push(End::Back, &value);
        }
    }
    let (key, len) = (context.key_of(name), list.len());
    if len == 0 {
        context.delete(&key)?;
    } else {
        let value = NewValue::Object(Box::new(Object::List(built)));
        let (shard, mut op) = context.shard(&key)?;
        let (garbage, _) = shard.set(&mut op, &key, value, Expiry::None);
        context.discard(garbage);
        context.notify(notify::LIST, "sortstore", &key);
        // The table does not name this key.
        context.written(&key);
    }
    sink.count(len);
    Ok(())
}
