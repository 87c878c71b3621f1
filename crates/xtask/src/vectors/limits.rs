//! Vectors of the named limits: each at the limit, which is still accepted, and one past it.
//!
//! It owns which limit meets which frame. A vector names only the limits that differ from the defaults.

use super::argument::{Arg, Args};
use super::bytes::Bytes;
use super::frames::command;
use super::layout::{Length, Plan, argv_frame, command_header, fields, long_frame, sample};
use super::replies::{Tree, bulk_of, reply};
use super::requests::{id, request, typed_vector, value};
use super::vector::{Outcome, Vector};
use crate::model::Command;

/// Valid and invalid ones.
#[derive(Debug, Default)]
pub struct Pairs {
    /// At the limit.
    pub valid: Vec<Vector>,
    /// One past it.
    pub invalid: Vec<Vector>,
}

impl Pairs {
    /// `vector` at `limit` = `value`, and refused with `error` at `value − 1`.
    pub(super) fn add(
        &mut self,
        vector: &Vector,
        name: &'static str,
        limits: &[(&'static str, usize)],
        value: usize,
        error: (&'static str, usize),
    ) {
        let suffix = if limits.is_empty() { String::new() } else { "-unauthenticated".into() };
        let mut at = vector.clone().limit(name, value);
        let mut past = vector.clone().limit(name, value - 1);
        for (name, value) in limits {
            (at, past) = (at.limit(name, *value), past.limit(name, *value));
        }
        let what = name.replace('_', "-");
        at.id = format!("{}.{what}{suffix}-at", vector.id);
        past.id = format!("{}.{what}{suffix}-past", vector.id);
        (at.section, past.section) = ("10", "10");
        at.comment = format!("{}: {name} is {value}, which it needs", vector.comment);
        past.comment = format!("{}: {name} is {}, one less than it needs", vector.comment, value - 1);
        past.outcome = Outcome::Invalid { error: error.0, offset: error.1 };
        self.valid.push(at);
        self.invalid.push(past);
    }
}

const UNAUTHENTICATED: &[(&str, usize)] = &[("unauthenticated", 1)];

/// Requests on RESPB.
#[must_use]
pub fn requests(commands: &[Command]) -> Pairs {
    let mut pairs = Pairs::default();
    typed(commands, &mut pairs);
    sized(commands, &mut pairs);
    pairs
}

/// Bit 3 of SET is EX, bit 0 of ZADD is NX.
const WITH_OPTION: &[(&str, u16)] = &[("SET", 8), ("GETEX", 1), ("XREAD", 1), ("HELLO", 1)];

fn typed(commands: &[Command], pairs: &mut Pairs) {
    let plain = [
        "GET",
        "SET",
        "APPEND",
        "INCRBY",
        "LRANGE",
        "HGET",
        "MGET",
        "DEL",
        "SADD",
        "MSET",
        "HSET",
        "ZADD",
        "ZINCRBY",
        "XREAD",
        "EVAL",
        "SINTERCARD",
        "BLPOP",
        "HEXPIRE",
        "GEOADD",
        "LINSERT",
        "JSON.DEL",
        "BF.MADD",
        "JSON.SET",
        "XCLAIM",
    ];
    for (name, bits) in plain.map(|name| (name, 0)).into_iter().chain(WITH_OPTION.iter().copied()) {
        let command = command(commands, name);
        let Some(fields) = fields(command) else { continue };
        let list = fields.iter().position(|field| !field.items.is_empty()).map(|index| (index, 2));
        let plan = Plan { bits, list, ..Plan::SMALLEST };
        let built = sample(command, fields, &plan);
        let suffix = if bits == 0 { "limit" } else { "limit-with-option" };
        let vector = typed_vector(command, fields, suffix, "10", "limit", &plan);
        let last = built.fields.last().map_or(4, |(.., offset)| *offset);
        pairs.add(&vector, "frame_bytes_max", &[], built.wire.len(), ("frame-too-long", last));
        // The last argument is that of the last field, unless that is an options field without a bit.
        let counting = built.fields.iter().rev().find(|(.., kind, _)| {
            !matches!(kind, crate::respb::FieldType::Opts8 | crate::respb::FieldType::List16)
        });
        if let Some((.., offset)) = counting {
            let arguments = built.args.count() + 1;
            // Where a counted list is empty and last, its count is the last argument, and no scalar.
            if name != "EVAL" {
                pairs.add(&vector, "arguments_max", &[], arguments, ("too-many-arguments", *offset));
                pairs.add(
                    &vector,
                    "arguments_max",
                    UNAUTHENTICATED,
                    arguments,
                    ("unauthenticated-arguments", *offset),
                );
            }
        }
        let plan = Plan { length: Length::Exact(300), ..plan };
        let built = sample(command, fields, &plan);
        let first = built.fields.iter().find(|(_, kind, _)| {
            matches!(kind, crate::respb::FieldType::Str16 | crate::respb::FieldType::Blob32)
        });
        if let Some((.., offset)) = first {
            let vector = typed_vector(
                command,
                fields,
                &format!("{suffix}-300"),
                "10",
                "byte fields of 300 bytes",
                &plan,
            );
            pairs.add(&vector, "argument_bytes_max", &[], 300, ("argument-too-long", *offset));
            pairs.add(
                &vector,
                "argument_bytes_max",
                UNAUTHENTICATED,
                300,
                ("unauthenticated-argument", *offset),
            );
        }
    }
}

/// Frames of sized arguments: `args` layouts, ARGV, passthrough.
fn sized(commands: &[Command], pairs: &mut Pairs) {
    let mut args = Args::texts(&["SUB"]);
    args.push(Arg::Bytes(Bytes::repeated(b"x", 300)));
    for name in ["CLIENT", "FT.SEARCH"] {
        let command = command(commands, name);
        let head = command_header(command, 0);
        let at = head.len();
        let wire = head.join(&args.sized());
        let comment = format!("{name} with an argument of 300 bytes");
        let vector = request(
            &id(command, "limit"),
            "10",
            comment,
            wire.clone(),
            value(command, 0, None, &args),
            &args.named(name),
        );
        let last = at + 4 + 4 + 3;
        pairs.add(&vector, "frame_bytes_max", &[], wire.len(), ("frame-too-long", at));
        pairs.add(&vector, "arguments_max", &[], 3, ("too-many-arguments", last));
        pairs.add(&vector, "arguments_max", UNAUTHENTICATED, 3, ("unauthenticated-arguments", last));
        pairs.add(&vector, "argument_bytes_max", &[], 300, ("argument-too-long", last));
        pairs.add(&vector, "argument_bytes_max", UNAUTHENTICATED, 300, ("unauthenticated-argument", last));
    }
    let args = args.named("NOSUCH");
    let json = |frame: &str| serde_json::json!({"channel": 0, "frame": frame, "args": args.to_json()});
    let wire = argv_frame(0, &args);
    let vector = request(
        "respb.argv.limit",
        "10",
        "ARGV with an argument of 300 bytes".into(),
        wire.clone(),
        json("argv"),
        &args,
    );
    let last = 4 + 4 + (4 + 6) + (4 + 3);
    pairs.add(&vector, "frame_bytes_max", &[], wire.len(), ("frame-too-long", 4));
    pairs.add(&vector, "arguments_max", &[], 3, ("too-many-arguments", last));
    pairs.add(&vector, "arguments_max", UNAUTHENTICATED, 3, ("unauthenticated-arguments", last));
    pairs.add(&vector, "argument_bytes_max", &[], 300, ("argument-too-long", last));
    pairs.add(&vector, "argument_bytes_max", UNAUTHENTICATED, 300, ("unauthenticated-argument", last));
    let wire = long_frame(0xFFFF, 0, &args.to_resp());
    let mut vector = request(
        "respb.passthrough.limit",
        "10",
        "passthrough with an argument of 300 bytes".into(),
        wire.clone(),
        json("passthrough"),
        &args,
    );
    super::requests::not_canonical(&mut vector, Some(argv_frame(0, &args)));
    let last = 8 + 4 + 12 + 9;
    pairs.add(&vector, "frame_bytes_max", &[], wire.len(), ("frame-too-long", 4));
    pairs.add(&vector, "arguments_max", &[], 3, ("multibulk-length", 8));
    pairs.add(&vector, "arguments_max", UNAUTHENTICATED, 3, ("unauthenticated-arguments", 8));
    pairs.add(&vector, "argument_bytes_max", &[], 300, ("bulk-length", last));
    pairs.add(&vector, "argument_bytes_max", UNAUTHENTICATED, 300, ("unauthenticated-argument", last));
}

/// Replies on RESPB.
#[must_use]
pub fn replies() -> Pairs {
    let mut pairs = Pairs::default();
    let deep = Tree::Array(vec![Tree::Array(vec![Tree::Set(vec![Tree::Int(1)])])]);
    let wide =
        Tree::Array(vec![Tree::Int(1), Tree::Map(vec![(Tree::Int(1), Tree::Int(2)); 3]), Tree::Int(4)]);
    let texts = |len: usize| Tree::Array(vec![Tree::Int(1), bulk_of(len)]);
    let deep = reply("limit.deep", "10", "three levels", 1, &deep);
    pairs.add(&deep, "nesting_max", &[], 3, ("too-deep", 13));
    let wide = reply("limit.wide", "10", "a map of three pairs in an array of three", 1, &wide);
    pairs.add(&wide, "elements_max", &[], 3, ("too-many-elements", 0));
    let map = reply(
        "limit.map",
        "10",
        "a map of three pairs",
        1,
        &Tree::Array(vec![Tree::Map(vec![(Tree::Int(1), Tree::Int(2)); 3])]),
    );
    pairs.add(&map, "elements_max", &[], 3, ("too-many-elements", 8));
    for (name, tree, field) in [
        ("bulk-300", bulk_of(300), 4usize),
        ("bulk-100", bulk_of(100), 0),
        ("simple-100", Tree::Simple(Bytes::repeated(b"s", 100)), 0),
        ("simple-300", Tree::Simple(Bytes::repeated(b"s", 300)), 4),
        ("error-300", Tree::Error(Bytes::repeated(b"E", 300)), 4),
        ("error-70000", Tree::Error(Bytes::repeated(b"E", 70_000)), 4),
        ("big-300", Tree::Big(Bytes::repeated(b"9", 300)), 4),
        ("verbatim-300", Tree::Verbatim("txt", Bytes::repeated(b"v", 300)), 7),
        ("element-100", texts(100), 9),
        ("element-300", texts(300), 10),
    ] {
        let vector = reply(&format!("limit.{name}"), "10", "text", 1, &tree);
        let len = tree.text_len();
        let wire = vector.wire.len();
        pairs.add(&vector, "argument_bytes_max", &[], len, ("argument-too-long", field));
        pairs.add(&vector, "frame_bytes_max", &[], wire, ("frame-too-long", field));
    }
    for (name, tree, field) in [
        ("int", Tree::Array(vec![Tree::Int(1), Tree::Int(2)]), 9usize),
        ("i32", Tree::Array(vec![Tree::Int(1), Tree::Int(1000)]), 10),
        ("i64", Tree::Array(vec![Tree::Int(1), Tree::Int(i64::MAX)]), 10),
        ("null", Tree::Array(vec![Tree::Int(1), Tree::Null]), 9),
        ("double", Tree::Array(vec![Tree::Int(1), Tree::Double(1.5, "1.5")]), 10),
        ("array", Tree::Array(vec![Tree::Int(1), Tree::Array(vec![])]), 10),
        ("top-double", Tree::Double(1.5, "1.5"), 4),
    ] {
        let vector = reply(&format!("limit.frame-{name}"), "10", "a value that ends the frame", 1, &tree);
        let wire = vector.wire.len();
        pairs.add(&vector, "frame_bytes_max", &[], wire, ("frame-too-long", field));
    }
    pairs
}
