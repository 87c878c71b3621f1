//! Owns: the functions of expressions: their names, how many arguments they take, what they give. Does not own:
//! evaluating arguments, forms that do not evaluate all of them (`super::expr`).
//!
//! Each takes values and gives a value, and knows nothing else: no key, no clock, no dice.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::arithmetic::{self, whole};
use super::budget::{ELEMENTS_PER_STEP, STEP_NS};
use super::expr::Fault;
use super::json::{JSON_BYTE_NS, JSON_VALUE_BYTES, JSON_VALUE_NS, Json, values_in};
use super::text;
use super::value::{Extent, Members, Value};
use crate::find;

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $min:literal..=$max:expr;)*) => {
        /// A function.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Function { $($(#[$doc])* $name,)* }

        /// Functions with their names, and how many arguments they take at least and at most.
        pub const FUNCTIONS: &[(&str, Function, usize, usize)] =
            &[$(($word, Function::$name, $min, $max),)*];
    };
}

/// Arguments of a function that takes any number.
const MANY: usize = 1024;

functions! {
    /// The sum; integers stay integers.
    Add = "+", 2..=MANY;
    /// The first less the others.
    Subtract = "-", 1..=MANY;
    /// The product.
    Multiply = "*", 2..=MANY;
    /// The quotient: an integer if it is one.
    Divide = "/", 2..=2;
    /// The quotient rounded down.
    Div = "div", 2..=2;
    /// What `div` leaves: it has the sign of the divisor.
    Mod = "mod", 2..=2;
    /// Without its sign.
    Abs = "abs", 1..=1;
    /// The least of the arguments, or of one list.
    Min = "min", 1..=MANY;
    /// The greatest of the arguments, or of one list.
    Max = "max", 1..=MANY;
    /// The sum of a list.
    Sum = "sum", 1..=1;
    /// Rounded down.
    Floor = "floor", 1..=1;
    /// Rounded up.
    Ceil = "ceil", 1..=1;
    /// Rounded, halves away from 0.
    Round = "round", 1..=1;

    /// Whether both are the same.
    Equal = "==", 2..=2;
    /// Whether they are not.
    NotEqual = "!=", 2..=2;
    /// Whether the first comes before the second.
    Less = "<", 2..=2;
    /// Whether it does not come behind it.
    LessOrEqual = "<=", 2..=2;
    /// Whether it comes behind it.
    Greater = ">", 2..=2;
    /// Whether it does not come before it.
    GreaterOrEqual = ">=", 2..=2;
    /// Whether it does not hold.
    Not = "not", 1..=1;
    /// Whether the first is an element, a member's name or a part of the second.
    In = "in", 2..=2;

    /// The texts of all, one behind the other.
    Text = "text", 1..=MANY;
    /// The texts of a list, with another between them.
    Join = "join", 2..=2;
    /// The parts of a text between another.
    Split = "split", 2..=2;
    /// The bytes of a text from a place on, so many or all.
    Substring = "substring", 2..=3;
    /// In upper-case letters (ASCII).
    Upper = "upper", 1..=1;
    /// In lower-case letters (ASCII).
    Lower = "lower", 1..=1;
    /// Without the blanks around it.
    Trim = "trim", 1..=1;
    /// With each occurrence of the second replaced by the third.
    Replace = "replace", 3..=3;
    /// Whether a text begins with another.
    StartsWith = "starts_with", 2..=2;
    /// Whether a text ends with another.
    EndsWith = "ends_with", 2..=2;
    /// With so many bytes at least, others before it: `["7", 3, "0"]` is `007`.
    Pad = "pad", 3..=3;
    /// A time in milliseconds as `strftime` writes it, in UTC.
    Date = "date", 2..=2;

    /// Bytes of a text, elements of a list, members of an object; of null 0.
    Length = "length", 1..=1;
    /// What keys and places lead to, one by one; null where nothing is.
    Get = "get", 2..=MANY;
    /// A list from a place on, so many elements or all.
    Slice = "slice", 2..=3;
    /// A list with further elements.
    Append = "append", 2..=MANY;
    /// Lists, one behind the other.
    Concat = "concat", 1..=MANY;
    /// A list from its end.
    Reverse = "reverse", 1..=1;
    /// A list in order.
    Sort = "sort", 1..=1;
    /// A list in order, each element once.
    Unique = "unique", 1..=1;
    /// The integers from the first up to the second, which is not among them, in steps of the third.
    Range = "range", 2..=3;
    /// The names of an object's members.
    Names = "names", 1..=1;
    /// The values of an object's members.
    Values = "values", 1..=1;
    /// An object with one member more, or changed.
    With = "with", 3..=3;
    /// An object without a member.
    Without = "without", 2..=2;
    /// Objects in one: of members with one name the last stays.
    Merge = "merge", 1..=MANY;
    /// An object of a list of names and values in turn.
    Pairs = "pairs", 1..=1;

    /// What it is: `null`, `bool`, `int`, `float`, `text`, `list` or `object`.
    Type = "type", 1..=1;
    /// The number that a text is, in any form; null if it is none.
    Number = "number", 1..=1;
    /// The integer of a number, its fraction cut off; null if it has none.
    Int = "int", 1..=1;
    /// What a JSON text says; null if it is none.
    FromJson = "from_json", 1..=1;
    /// A JSON text of any value.
    ToJson = "to_json", 1..=1;
}

/// The function of a name, with how many arguments it takes.
pub(super) fn by_name(name: &str) -> Option<&'static (&'static str, Function, usize, usize)> {
    static BY_NAME: LazyLock<HashMap<&str, usize>> =
        LazyLock::new(|| FUNCTIONS.iter().enumerate().map(|(at, (name, ..))| (*name, at)).collect());
    BY_NAME.get(name).map(|at| &FUNCTIONS[*at])
}

impl Function {
    /// What a comparison makes of the order of its two arguments.
    #[inline]
    #[must_use]
    pub const fn decides(self) -> Option<fn(Ordering) -> bool> {
        Some(match self {
            Self::Equal => Ordering::is_eq,
            Self::NotEqual => Ordering::is_ne,
            Self::Less => Ordering::is_lt,
            Self::LessOrEqual => Ordering::is_le,
            Self::Greater => Ordering::is_gt,
            Self::GreaterOrEqual => Ordering::is_ge,
            _ => return None,
        })
    }
    /// Whether it goes through all of something, or makes what is long.
    pub(super) const fn may_take_long(self) -> bool {
        matches!(
            self,
            Self::In
                | Self::Split
                | Self::Replace
                | Self::Pad
                | Self::Range
                | Self::Sort
                | Self::Unique
                | Self::FromJson
                | Self::ToJson
        )
    }
}

/// A member of an object; an element of a list, if its name is a place.
pub(super) fn member<'v>(value: &'v Value, name: &[u8]) -> Option<&'v Value> {
    match value {
        Value::Object(members) => members.get(name),
        Value::List(_) => element(value, weft_store::parse_int(name)?),
        _ => None,
    }
}

/// An element of a list, from its end if the place is negative; a member of an object with that name.
pub(super) fn element(value: &Value, index: i64) -> Option<&Value> {
    match value {
        Value::List(list) => list.get(place(index, list.len())?),
        Value::Object(members) => members.get(itoa::Buffer::new().format(index).as_bytes()),
        _ => None,
    }
}

/// A place counted from 0, or from the end if it is negative.
fn place(index: i64, len: usize) -> Option<usize> {
    if index < 0 {
        len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
    } else {
        usize::try_from(index).ok()
    }
}

/// Elements of a list that cost what a member of an object does.
pub(super) const ELEMENTS_PER_MEMBER: usize = 4;

/// Elements that a function may have to look at, or makes.
pub(super) fn elements(function: Function, arguments: &[Value]) -> usize {
    if function == Function::Range {
        return in_range(arguments).map_or(0, |(count, ..)| usize::try_from(count).unwrap_or(usize::MAX));
    }
    // It is known.
    if function == Function::Length {
        return 0;
    }
    let times = match function {
        Function::Names
        | Function::Values
        | Function::With
        | Function::Without
        | Function::Merge
        | Function::Pairs => ELEMENTS_PER_MEMBER,
        _ => 1,
    };
    let of = |value: &Value| match value {
        Value::List(list) => list.len(),
        Value::Object(members) => members.len(),
        Value::Text(bytes) => bytes.len() / 64,
        _ => 0,
    };
    arguments.iter().map(of).sum::<usize>().saturating_mul(times)
}

/// Bytes that are put together in the time of a step.
const JOINED_PER_STEP: u64 = super::budget::JOINED_PER_STEP as u64;
/// Values and bytes that take no time worth asking for.
const LITTLE: u64 = 1024;

/// What a function goes through beyond the elements of its arguments: all that is inside of them, some more than once.
pub(super) fn walked(function: Function, arguments: &[Value]) -> Option<Extent> {
    let all = || arguments.iter().fold(Extent::default(), |all, value| all.and(value.extent()));
    match function {
        Function::In if !arguments[1].is_whole() => Some(searched(&arguments[1])),
        Function::ToJson | Function::In | Function::Min | Function::Max => {
            arguments.iter().any(Value::is_whole).then(all)
        }
        // Its bytes; what it makes is counted when they have been paid for.
        Function::FromJson => {
            let bytes = arguments[0].extent().bytes;
            let values = bytes * JSON_BYTE_NS * ELEMENTS_PER_STEP as u64 / STEP_NS;
            Some(Extent { values, ..Extent::default() })
        }
        // A part is looked for byte by byte.
        Function::Split | Function::Replace => Some(searched(&arguments[0])),
        Function::Sort | Function::Unique => {
            let Extent { depth, values, bytes } = all();
            let times = u64::from(values.max(1).ilog2()) + 1;
            Some(Extent { depth, values: values.saturating_mul(times), bytes: bytes.saturating_mul(times) })
        }
        _ => None,
    }
}

/// What looking for a part in a text is: going over a value is eight bytes of it.
fn searched(text: &Value) -> Extent {
    let bytes = text.extent().bytes;
    Extent { values: if bytes < LITTLE { 0 } else { bytes / 8 }, ..Extent::default() }
}

/// What a function is about to make of such arguments, if that may be more than they are, and the steps that making it
/// takes: asked before it is made.
pub(super) fn made(function: Function, arguments: &[Value]) -> Option<(Extent, u64)> {
    let (text, bytes) = (|at: usize| arguments[at].to_text().ok(), arguments[0].extent().bytes);
    let all = || arguments.iter().map(|value| value.extent().bytes).fold(0, u64::saturating_add);
    let whole = |value: &Value| whole(value).ok().and_then(|value| u64::try_from(value).ok());
    let (values, bytes, steps) = match function {
        Function::Pad => {
            let bytes = whole(&arguments[1])?;
            (1, bytes, bytes / 512)
        }
        Function::Date => {
            let bytes = arguments[1].extent().bytes;
            (1, bytes, bytes / 8)
        }
        Function::Range => {
            let (count, ..) = in_range(arguments).ok()?;
            (u64::try_from(count).ok()?, 0, 0)
        }
        // As what arguments have: little of it too, since a short text may be many lists.
        Function::FromJson => {
            let values = values_in(&text(0)?);
            let extent =
                Extent { depth: 1, values: 0, bytes: bytes.saturating_add(values * JSON_VALUE_BYTES) };
            return Some((extent, values * JSON_VALUE_NS / STEP_NS));
        }
        Function::Text => (1, all(), all() / JOINED_PER_STEP),
        Function::Join => {
            let Value::List(list) = &arguments[0] else { return None };
            let between = (list.len() as u64).saturating_mul(arguments[1].extent().bytes);
            let bytes = bytes.saturating_add(between);
            (1, bytes, bytes / JOINED_PER_STEP)
        }
        Function::Split if bytes >= LITTLE => {
            let parts = find::occurrences(&text(0)?, &text(1)?) as u64 + 1;
            (parts, bytes, parts / 8)
        }
        Function::Replace if bytes >= LITTLE => {
            let (what, by) = (text(1)?, text(2)?);
            let times = find::occurrences(&text(0)?, &what) as u64;
            let bytes = bytes.saturating_add(times.saturating_mul(by.len() as u64));
            (1, bytes, bytes / 512 + times / 16)
        }
        _ => return None,
    };
    (values.max(bytes) >= LITTLE).then_some((Extent { depth: 1, values, bytes }, steps))
}

/// The value of a function. The number of its arguments has been seen to.
pub(super) fn call(function: Function, mut arguments: Vec<Value>) -> Result<Value, Fault> {
    if let [one, two] = &arguments[..]
        && let Some(decide) = function.decides()
    {
        return Ok(Value::Bool(decide(one.compare(two))));
    }
    match function {
        Function::Add
        | Function::Subtract
        | Function::Multiply
        | Function::Divide
        | Function::Div
        | Function::Mod
        | Function::Abs
        | Function::Sum
        | Function::Floor
        | Function::Ceil
        | Function::Round => arithmetic::call(function, &arguments),
        Function::Min | Function::Max => extreme(function, &arguments),
        Function::Not => Ok(Value::Bool(!arguments[0].holds())),
        Function::In => contains(&arguments[0], &arguments[1]).map(Value::Bool),
        Function::Length => length(&arguments[0]).map(|len| Value::Int(len as i64)),
        Function::Get => Ok(get(&arguments)),
        Function::Type => Ok(Value::text(arguments[0].type_name().as_bytes())),
        Function::Number => Ok(text::number(&arguments[0])),
        Function::Int => Ok(arithmetic::int(&arguments[0])),
        Function::FromJson => {
            let text = text_of(&arguments[0])?;
            Ok(Json::parse(&text).map_or(Value::Null, |json| Value::from(&json)))
        }
        Function::ToJson => Ok(Value::text(&arguments[0].to_json())),
        Function::Names
        | Function::Values
        | Function::With
        | Function::Without
        | Function::Merge
        | Function::Pairs => object_call(function, &mut arguments),
        Function::Slice
        | Function::Append
        | Function::Concat
        | Function::Reverse
        | Function::Sort
        | Function::Unique
        | Function::Range => list_call(function, &mut arguments),
        _ => text::call(function, &arguments),
    }
}

pub(super) fn text_of(value: &Value) -> Result<std::borrow::Cow<'_, [u8]>, Fault> {
    value.to_text().map_err(|kind| format!("expected a text, met a {kind}").into())
}

/// The elements of a list; of null none.
fn list_of(value: &Value) -> Result<&[Value], Fault> {
    match value {
        Value::List(list) => Ok(list),
        Value::Null => Ok(&[]),
        other => Err(format!("expected a list, met a {}", other.type_name()).into()),
    }
}

/// The members of an object, to be changed; of null none.
fn members_of(value: &mut Value) -> Result<Members, Fault> {
    let members = std::mem::take(value).into_members();
    members.or_else(|other| match other {
        Value::Null => Ok(Members::new()),
        other => Err(format!("expected an object, met a {}", other.type_name()).into()),
    })
}

fn extreme(function: Function, arguments: &[Value]) -> Result<Value, Fault> {
    let all = if let [one] = arguments { list_of(one)? } else { arguments };
    let best = match function {
        Function::Min => all.iter().min_by(|one, two| one.compare(two)),
        _ => all.iter().max_by(|one, two| one.compare(two)),
    };
    Ok(best.cloned().unwrap_or_default())
}

fn contains(part: &Value, whole: &Value) -> Result<bool, Fault> {
    match whole {
        Value::Null => Ok(false),
        Value::List(list) => Ok(list.contains(part)),
        Value::Object(members) => Ok(members.contains_key(&*text_of(part)?)),
        _ => Ok(find::find(&text_of(whole)?, &text_of(part)?).is_some()),
    }
}

fn length(value: &Value) -> Result<usize, Fault> {
    Ok(match value {
        Value::Null => 0,
        Value::List(list) => list.len(),
        Value::Object(members) => members.len(),
        other => text_of(other)?.len(),
    })
}

fn get(arguments: &[Value]) -> Value {
    let found = arguments[1..].iter().try_fold(&arguments[0], |value, step| match (value, step) {
        (_, Value::Int(index)) => element(value, *index),
        (_, step) => member(value, &step.to_text().ok()?),
    });
    found.cloned().unwrap_or_default()
}

fn object_call(function: Function, arguments: &mut [Value]) -> Result<Value, Fault> {
    let [first, rest @ ..] = arguments else { return Ok(Value::Null) };
    match function {
        Function::Names => Ok(Value::list(members_of(first)?.keys().map(|name| Value::text(name)).collect())),
        Function::Values => Ok(Value::list(members_of(first)?.values().cloned().collect())),
        Function::With => {
            let name = text_of(&rest[0])?.into();
            let mut members = members_of(first)?;
            members.insert(name, rest[1].clone());
            Ok(Value::object(members))
        }
        Function::Without => {
            let mut members = members_of(first)?;
            members.remove(&*text_of(&rest[0])?);
            Ok(Value::object(members))
        }
        Function::Merge => {
            let mut merged = members_of(first)?;
            for other in rest {
                merged.append(&mut members_of(other)?);
            }
            Ok(Value::object(merged))
        }
        _ => {
            if let Value::Object(_) = first {
                return Ok(std::mem::take(first));
            }
            let list = list_of(first)?;
            let mut members = Members::new();
            for pair in list.chunks(2) {
                members.insert(text_of(&pair[0])?.into(), pair.get(1).cloned().unwrap_or_default());
            }
            Ok(Value::object(members))
        }
    }
}

fn list_call(function: Function, arguments: &mut [Value]) -> Result<Value, Fault> {
    if function == Function::Range {
        return range(arguments);
    }
    let [first, rest @ ..] = arguments else { return Ok(Value::Null) };
    let mut list = list_of(first)?.to_vec();
    match function {
        Function::Slice => {
            let from = whole(&rest[0])?;
            let from = place(from, list.len()).map_or(0, |at| at.min(list.len()));
            let count = rest.get(1).map_or(Ok(i64::MAX), whole)?;
            list = list.split_off(from);
            list.truncate(usize::try_from(count).unwrap_or(0));
        }
        Function::Append => list.extend(rest.iter_mut().map(std::mem::take)),
        Function::Concat => {
            for other in rest {
                list.extend_from_slice(list_of(other)?);
            }
        }
        Function::Reverse => list.reverse(),
        _ => list.sort_by(Value::compare),
    }
    if function == Function::Unique {
        list.dedup();
    }
    Ok(Value::list(list))
}

/// Integers that one `range` may give.
pub const RANGE_MAX: u64 = 100_000;

/// How many integers a range gives, the first one, and the step between two.
fn in_range(arguments: &[Value]) -> Result<(i128, i128, i128), Fault> {
    let (from, to) = (i128::from(whole(&arguments[0])?), i128::from(whole(&arguments[1])?));
    let step = i128::from(arguments.get(2).map_or(Ok(1), whole)?);
    if step == 0 {
        return Err("a range in steps of 0 has no end".into());
    }
    let (span, by) = (if step > 0 { to - from } else { from - to }, step.abs());
    let count = (span.max(0) + by - 1) / by;
    if count > i128::from(RANGE_MAX) {
        return Err(format!("a range has {RANGE_MAX} integers at most").into());
    }
    Ok((count, from, step))
}

fn range(arguments: &[Value]) -> Result<Value, Fault> {
    let (count, from, step) = in_range(arguments)?;
    Ok(Value::list((0..count).map(|at| Value::Int((from + at * step) as i64)).collect()))
}
