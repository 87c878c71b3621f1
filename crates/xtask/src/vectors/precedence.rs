//! Vectors of frames that are wrong in two ways at one place: which error is told.
//!
//! It owns the order of the checks: of option bits, of an argument's own limits before the number of arguments, of an
//! aggregate's place, count and depth. And of arguments that have no field of their own: where one too many is
//! reported.

use super::argument::{Arg, Args};
use super::bytes::Bytes;
use super::frames::command;
use super::layout::{Length, Plan, argv_frame, command_header, fields, header, sample};
use super::vector::Vector;
use crate::model::Command;

type Limit = (&'static str, usize);

/// A connection that has not authenticated.
const EARLY: Limit = ("unauthenticated", 1);

/// Name, comment, limits, command, plan, the error and the path of its field.
type Case<'a> = (&'a str, &'a str, &'a [Limit], &'a str, Plan, (&'static str, &'a str));

fn wrong(
    direction: &'static str,
    id: &str,
    comment: &str,
    limits: &[Limit],
    wire: Bytes,
    error: (&'static str, usize),
) -> Vector {
    let id = format!("respb.{direction}.bad.precedence-{id}");
    let vector = Vector::invalid(direction, id, "11", comment, wire, error);
    limits.iter().fold(vector, |vector, (name, value)| vector.limit(name, *value))
}

/// Requests.
#[must_use]
pub fn requests(commands: &[Command]) -> Vec<Vector> {
    let mut out = option_bits(commands);
    out.extend(typed(commands));
    out.extend(sized(commands));
    out
}

/// A frame of the plan, wrong at the field of this path.
fn planned(
    commands: &[Command],
    (id, comment, limits): (&str, &str, &[Limit]),
    name: &str,
    plan: &Plan,
    (error, path): (&'static str, &str),
) -> Vector {
    let command = command(commands, name);
    let built = sample(command, fields(command).unwrap_or_default(), plan);
    let offset = built.offset(path);
    wrong("request", id, comment, limits, built.wire, (error, offset))
}

fn option_bits(commands: &[Command]) -> Vec<Vector> {
    let cases = [
        ("unknown-before-exclusive", "ZADD", 0b1000_0011, "unknown-bit"),
        ("unknown-before-missing", "BITCOUNT", 0b1000_0010, "unknown-bit"),
        ("exclusive-before-missing", "BITCOUNT", 0b0110, "exclusive-bits"),
        ("unknown-before-both", "BITCOUNT", 0b1000_0110, "unknown-bit"),
        ("exclusive-before-missing-of-two", "BITPOS", 0b1110, "exclusive-bits"),
        ("unknown-before-both-of-two", "BITPOS", 0b1_1110, "unknown-bit"),
    ];
    let vector = |(id, name, bits, error)| {
        let plan = Plan { bits, ..Plan::SMALLEST };
        let comment = format!("{name} with option bits {bits:#04x}, wrong in more ways than one");
        planned(commands, (id, &comment, &[]), name, &plan, (error, "options"))
    };
    cases.into_iter().map(vector).collect()
}

fn typed(commands: &[Command]) -> Vec<Vector> {
    let long = Plan { length: Length::Exact(300), ..Plan::SMALLEST };
    let item = |raw: &[u8], path: &str| Plan { raw: Some((path.into(), raw.to_vec())), ..Plan::SMALLEST };
    let nan = f64::NAN.to_bits().to_be_bytes();
    let cases: Vec<Case<'_>> = vec![
        (
            "argument-before-frame",
            "a key longer than an argument, and than the frame",
            &[("argument_bytes_max", 10), ("frame_bytes_max", 10)],
            "GET",
            long.clone(),
            ("argument-too-long", "key"),
        ),
        (
            "argument-before-frame-list",
            "an item longer than an argument, and than the frame",
            &[("argument_bytes_max", 10), ("frame_bytes_max", 10)],
            "MGET",
            long.clone(),
            ("argument-too-long", "keys.key"),
        ),
        (
            "argument-before-frame-value",
            "a value of 2 GiB: more than either limit",
            &[],
            "SET",
            item(&[0x7F, 0xFF, 0xFF, 0xFF], "value"),
            ("argument-too-long", "value"),
        ),
        (
            "argument-before-arguments",
            "an item that is too long, and one argument too many",
            &[("argument_bytes_max", 299), ("arguments_max", 1)],
            "MGET",
            long.clone(),
            ("argument-too-long", "keys.key"),
        ),
        (
            "argument-before-arguments-unauthenticated",
            "the same before authentication",
            &[("argument_bytes_max", 299), ("arguments_max", 1), EARLY],
            "MGET",
            long.clone(),
            ("unauthenticated-argument", "keys.key"),
        ),
        (
            "argument-before-arguments-transposed",
            "the same in a list that is transposed",
            &[("argument_bytes_max", 299), ("arguments_max", 2)],
            "XREAD",
            long.clone(),
            ("argument-too-long", "streams.key"),
        ),
        (
            "frame-before-arguments",
            "a key that ends behind the limit, and one argument too many",
            &[("frame_bytes_max", 100), ("arguments_max", 1)],
            "GET",
            long,
            ("frame-too-long", "key"),
        ),
        (
            "number-before-arguments",
            "NaN in a field that is one argument too many",
            &[("arguments_max", 2)],
            "ZINCRBY",
            item(&nan, "increment"),
            ("bad-number", "increment"),
        ),
        (
            "enum-before-arguments",
            "no value of the enumeration, and one argument too many",
            &[("arguments_max", 3)],
            "LMOVE",
            item(&[9], "wherefrom"),
            ("bad-enum", "wherefrom"),
        ),
        // Arguments without a field of their own.
        (
            "count-of-a-list",
            "the count of a list is one argument too many: told at the list",
            &[("arguments_max", 1)],
            "SINTERCARD",
            Plan::SMALLEST,
            ("too-many-arguments", "keys"),
        ),
        (
            "count-of-a-list-unauthenticated",
            "the same before authentication",
            &[("arguments_max", 1), EARLY],
            "SINTERCARD",
            Plan::SMALLEST,
            ("unauthenticated-arguments", "keys"),
        ),
        (
            "count-of-an-empty-list",
            "the count of an empty list is one argument too many",
            &[("arguments_max", 2)],
            "EVAL",
            Plan::SMALLEST,
            ("too-many-arguments", "keys"),
        ),
        (
            "token-of-a-list",
            "the keyword before a list is one argument too many: told at the list",
            &[("arguments_max", 3)],
            "HEXPIRE",
            Plan::SMALLEST,
            ("too-many-arguments", "fields"),
        ),
        (
            "count-behind-token",
            "the count behind the keyword is one too many: told at the list",
            &[("arguments_max", 4)],
            "HEXPIRE",
            Plan::SMALLEST,
            ("too-many-arguments", "fields"),
        ),
        (
            "token-of-a-transposed-list",
            "STREAMS is one argument too many: told at the list",
            &[("arguments_max", 1)],
            "XREAD",
            Plan::SMALLEST,
            ("too-many-arguments", "streams"),
        ),
        (
            "second-word-of-an-enum",
            "the second word of an enumeration is one too many: told at its byte",
            &[("arguments_max", 3)],
            "XTRIM",
            Plan { choice: (1, 2), ..Plan::SMALLEST },
            ("too-many-arguments", "strategy"),
        ),
        (
            "keyword-of-a-bit",
            "an option's keyword is one argument too many: told at its payload",
            &[("arguments_max", 3)],
            "SET",
            Plan { bits: 8, ..Plan::SMALLEST },
            ("too-many-arguments", "options.EX.seconds"),
        ),
        (
            "flag-before-payload",
            "a flag is one argument too many: told where the next payload begins",
            &[("arguments_max", 3)],
            "SET",
            Plan { bits: 9, ..Plan::SMALLEST },
            ("too-many-arguments", "options.EX.seconds"),
        ),
    ];
    let mut out: Vec<Vector> = cases
        .into_iter()
        .map(|(id, comment, limits, name, plan, error)| {
            planned(commands, (id, comment, limits), name, &plan, error)
        })
        .collect();
    let set = command(commands, "SET");
    let built = sample(set, fields(set).unwrap_or_default(), &Plan { bits: 1, ..Plan::SMALLEST });
    let end = built.wire.len();
    let comment = "a flag is one argument too many: told where its payload would begin, the frame's end";
    let limits = [("arguments_max", 3)];
    out.push(wrong("request", "flag-at-end", comment, &limits, built.wire, ("too-many-arguments", end)));
    out
}

/// Frames of sized arguments.
fn sized(commands: &[Command]) -> Vec<Vector> {
    let mut args = Args::texts(&["ab"]);
    args.push(Arg::Bytes(Bytes::repeated(b"x", 300)));
    let client = command_header(command(commands, "CLIENT"), 0).join(&args.sized());
    let named = argv_frame(0, &args);
    let last = 4 + 4 + (4 + 2);
    let too_long: &[Limit] = &[("argument_bytes_max", 299), ("arguments_max", 1)];
    let past_end =
        header(0xF001, 0).and(&[0, 0, 0, 14, 0, 0, 0, 2]).and(b"ab").and(&[0, 0, 1, 0]).and(b"abcd");
    let case = |id: &str, comment: &str, limits: &[Limit], wire: &Bytes, error| {
        wrong("request", id, comment, limits, wire.clone(), (error, last))
    };
    vec![
        case(
            "argv-argument-before-arguments",
            "an argument that is too long, and one too many",
            too_long,
            &named,
            "argument-too-long",
        ),
        case(
            "args-argument-before-arguments",
            "the same in the layout `args`",
            &[("argument_bytes_max", 299), ("arguments_max", 2)],
            &client,
            "argument-too-long",
        ),
        case(
            "argv-length-before-arguments",
            "an argument that ends behind the total, and one too many",
            &[("arguments_max", 1)],
            &past_end,
            "length-mismatch",
        ),
        case(
            "argv-length-before-argument",
            "an argument that ends behind the total, and is too long",
            &[("argument_bytes_max", 255)],
            &past_end,
            "length-mismatch",
        ),
        wrong(
            "request",
            "argv-frame-before-argument",
            "a frame that is too long, and an argument in it: the total comes first",
            &[("argument_bytes_max", 10), ("frame_bytes_max", 100)],
            named.clone(),
            ("frame-too-long", 4),
        ),
    ]
}

/// Replies.
#[must_use]
pub fn replies() -> Vec<Vector> {
    let case = |id: &str, comment: &str, limits: &[Limit], opcode: u16, payload: &[u8], error, offset| {
        wrong("reply", id, comment, limits, header(opcode, 1).and(payload), (error, offset))
    };
    let tight: &[Limit] = &[("argument_bytes_max", 10), ("frame_bytes_max", 10)];
    let inner = |tag: u8, count: u8| [0, 0, 0, 1, tag, 0, 0, 0, count];
    let mut out = vec![
        case(
            "argument-before-frame-bulk",
            "a bulk of 2 GiB: more than either limit",
            &[],
            0x8003,
            &[0x7F, 0xFF, 0xFF, 0xFF],
            "argument-too-long",
            4,
        ),
        case(
            "argument-before-frame-short-bulk",
            "a bulk of 255 bytes, its length in the opcode",
            tight,
            0x82FF,
            &[],
            "argument-too-long",
            0,
        ),
        case(
            "argument-before-frame-short-simple",
            "a simple string of 255 bytes, its length in the opcode",
            tight,
            0x83FF,
            &[],
            "argument-too-long",
            0,
        ),
        case(
            "argument-before-frame-element",
            "a bulk of 127 bytes, its length in the tag",
            tight,
            0x8004,
            &[0, 0, 0, 1, 0xFF],
            "argument-too-long",
            8,
        ),
        case(
            "argument-before-frame-error",
            "an error of 65,535 bytes",
            tight,
            0x8001,
            &[0xFF, 0xFF],
            "argument-too-long",
            4,
        ),
        case(
            "misplaced-before-elements",
            "a push inside an array, with too many elements",
            &[("elements_max", 2)],
            0x8004,
            &inner(0x0A, 3),
            "misplaced",
            8,
        ),
        case(
            "misplaced-before-deep",
            "a push inside an array, one level too deep",
            &[("nesting_max", 1)],
            0x8004,
            &inner(0x0A, 1),
            "misplaced",
            8,
        ),
    ];
    for (name, tag) in [("array", 0x04u8), ("map", 0x08), ("set", 0x09), ("attribute", 0x0E)] {
        out.push(case(
            &format!("elements-before-deep-{name}"),
            "too many elements, one level too deep",
            &[("elements_max", 2), ("nesting_max", 1)],
            0x8004,
            &inner(tag, 3),
            "too-many-elements",
            8,
        ));
    }
    out
}
