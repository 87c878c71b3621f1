//! Vectors of limits on what is neither an argument nor a plain value: attributes, counts, control frames; and of
//! fields that a limit does not bound.
//!
//! It owns these cases; [`super::limits`] has the others and the two halves of a pair.

use serde_json::json;

use super::argument::{Arg, Args};
use super::bytes::Bytes;
use super::frames::{argv, command, control};
use super::layout::{Length, Number, Plan, command_header, fields, long_frame, sample};
use super::limits::Pairs;
use super::replies::{Tree, bulk, reply};
use super::requests::{id, not_canonical, request, typed_vector, value};
use super::vector::Vector;
use crate::model::Command;

/// All of them.
#[must_use]
pub fn pairs(commands: &[Command]) -> Pairs {
    let mut pairs = Pairs::default();
    nesting(&mut pairs);
    elements(&mut pairs);
    controls(&mut pairs);
    unbounded(commands, &mut pairs);
    high(commands, &mut pairs);
    pairs
}

/// Limits so high that a decoder need not check them for every field, and frames that meet them all the same.
fn high(commands: &[Command], pairs: &mut Pairs) {
    for name in ["GET", "SET", "APPEND", "HGET", "INCRBY", "MGET", "DEL", "SADD", "MSET", "HSET"] {
        let command = command(commands, name);
        let Some(fields) = fields(command) else { continue };
        let list = fields.iter().position(|field| !field.items.is_empty()).map(|index| (index, 2));
        let plan = Plan { length: Length::Exact(65_535), list, ..Plan::SMALLEST };
        let built = sample(command, fields, &plan);
        let vector = typed_vector(command, fields, "limit-high", "10", "byte fields of 65,535 bytes", &plan);
        let last = built.fields.last().map_or(4, |(.., offset)| *offset);
        pairs.add(&vector, "frame_bytes_max", &[], built.wire.len(), ("frame-too-long", last));
    }
    for (name, options) in [("SET", Some(0)), ("APPEND", None)] {
        let command = command(commands, name);
        let mut args = Args::texts(&["key"]);
        args.push(Arg::Bytes(Bytes::repeated(b"v", 70_000)));
        let mut wire = command_header(command, 0).and(&[0, 3]).and(b"key").and(&70_000u32.to_be_bytes());
        wire.push_repeat(b"v", 70_000);
        wire.push(if options.is_some() { &[0] } else { &[] });
        let value = value(command, 0, options, &args);
        let comment = format!("{name} of 70,000 bytes");
        let vector = request(&id(command, "limit-70000"), "10", comment, wire, value, &args.named(name));
        pairs.add(&vector, "argument_bytes_max", &[], 70_000, ("argument-too-long", 9));
    }
}

fn about(value: Tree) -> Tree {
    Tree::Attribute(vec![(bulk("a"), Tree::Int(1))], Box::new(value))
}

/// An attribute is a level for its pairs. The value that it describes comes after that level.
fn nesting(pairs: &mut Pairs) {
    let array = |tree: Tree| Tree::Array(vec![tree]);
    let with_array = |value: Tree| Tree::Attribute(vec![(bulk("a"), array(Tree::Int(1)))], Box::new(value));
    let empty = |value: Tree| Tree::Attribute(vec![], Box::new(value));
    let in_value = Tree::Attribute(vec![(bulk("a"), about(Tree::Int(1)))], Box::new(Tree::Null));
    let in_key = Tree::Attribute(vec![(about(bulk("a")), Tree::Int(1))], Box::new(Tree::Null));
    for (name, comment, tree, needed, offset) in [
        ("attribute", "an attribute is a level", about(Tree::Int(1)), 1, 0),
        ("attribute-empty", "an attribute of no pairs is one as well", empty(Tree::Int(1)), 1, 0),
        ("attribute-in-array", "an attribute in an array", array(about(Tree::Int(1))), 2, 8),
        ("attribute-empty-in-array", "one of no pairs in an array", array(empty(Tree::Int(1))), 2, 8),
        ("array-in-attribute", "an array among the pairs", with_array(Tree::Int(1)), 2, 10),
        ("array-in-attribute-in-array", "the same in an array", array(with_array(Tree::Int(1))), 3, 15),
        ("attribute-in-attribute", "an attribute on a value of one", in_value, 2, 10),
        ("attribute-in-key", "an attribute on a key of one", in_key, 2, 8),
        (
            "attribute-on-array",
            "its value, an array, is on its level, not in it",
            about(array(Tree::Int(1))),
            1,
            0,
        ),
        ("attribute-on-array-in-array", "the same in an array", array(about(array(Tree::Int(1)))), 2, 8),
        ("attribute-on-deep", "an array of an array as its value", about(array(array(Tree::Int(1)))), 2, 16),
        ("attributes-on-one", "three attributes on one value", about(about(about(Tree::Int(1)))), 1, 0),
        ("attribute-in-push", "an attribute in a push", Tree::Push(vec![about(Tree::Int(1))]), 2, 8),
    ] {
        let vector = reply(&format!("limit.deep-{name}"), "10", comment, 1, &tree);
        pairs.add(&vector, "nesting_max", &[], needed, ("too-deep", offset));
    }
}

/// Pairs are counted, not keys and values.
fn elements(pairs: &mut Pairs) {
    let members = || vec![(Tree::Int(1), Tree::Int(2)); 3];
    let three = || vec![Tree::Int(1); 3];
    let attribute = || Tree::Attribute(members(), Box::new(Tree::Null));
    let first = |tree: Tree| Tree::Array(vec![tree]);
    for (name, tree, offset) in [
        ("array", Tree::Array(three()), 0),
        ("set", Tree::Set(three()), 0),
        ("map", Tree::Map(members()), 0),
        ("attribute", attribute(), 0),
        ("push", Tree::Push(three()), 0),
        ("element.array", first(Tree::Array(three())), 8),
        ("element.set", first(Tree::Set(three())), 8),
        ("element.attribute", first(attribute()), 8),
    ] {
        let vector = reply(&format!("limit.count-{name}"), "10", &format!("{name} of three"), 1, &tree);
        pairs.add(&vector, "elements_max", &[], 3, ("too-many-elements", offset));
    }
}

/// The limit on frames holds for control frames and unknown ones; that on arguments does not.
fn controls(pairs: &mut Pairs) {
    let frame = |direction, name: &str, opcode: u16, payload: &Bytes, value| {
        let id = format!("{name}.limit");
        control(direction, &id, "10", name, long_frame(opcode, 1, payload), value)
    };
    let reason = Bytes::repeated(b"r", 100);
    let mut vectors = Vec::new();
    for direction in ["request", "reply"] {
        let value = json!({"channel": 1, "frame": "close", "code": "2", "reason": reason.to_value()});
        vectors.push(frame(direction, "close", 0xFF01, &Bytes::of(&[0, 2]).join(&reason), value));
        for opcode in [0xF002u16, 0xFF05] {
            let value = json!({"channel": 1, "frame": "unknown", "opcode": format!("0x{opcode:04x}"), "ignorable": opcode >= 0xFF00});
            let mut unknown = frame(direction, &format!("unknown.{opcode:04x}"), opcode, &reason, value);
            not_canonical(&mut unknown, None);
            vectors.push(unknown);
        }
    }
    let value = json!({"channel": 0, "frame": "goaway", "code": "6", "reason": reason.to_value()});
    let goaway = long_frame(0xFF04, 0, &Bytes::of(&[0, 6]).join(&reason));
    vectors.push(control("reply", "goaway.limit", "10", "goaway", goaway, value));
    let number = Bytes::of(&[0, 0, 0, 7]);
    let value = json!({"channel": 1, "frame": "cancel", "sequence": "7"});
    vectors.push(frame("request", "cancel", 0xFF02, &number, value));
    let value = json!({"channel": 1, "frame": "window", "more": "7"});
    vectors.push(frame("request", "window", 0xFF03, &number, value));
    let value = json!({"channel": 1, "frame": "fragment", "last": true, "slice": reason.to_value()});
    vectors.push(frame("reply", "fragment", 0xFF10, &Bytes::of(&[1]).join(&reason), value));
    for vector in &vectors {
        pairs.add(vector, "frame_bytes_max", &[], vector.wire.len(), ("frame-too-long", 4));
    }
    for vector in vectors.into_iter().filter(|vector| vector.wire.len() > 100) {
        let comment = format!("{}: no argument, so the limit on arguments is another's", vector.comment);
        pairs.valid.push(roomy(vector, comment, "argument_bytes_max", 10));
    }
}

/// A vector whose value a limit does not bound.
fn roomy(mut vector: Vector, comment: String, name: &'static str, value: usize) -> Vector {
    vector.id = format!("{}.{}-unbounded", vector.id, name.replace('_', "-"));
    vector.comment = comment;
    vector.limit(name, value)
}

/// Only byte strings have a length on the wire, so only they can be too long: not numbers, keywords, counts and names.
fn unbounded(commands: &[Command], pairs: &mut Pairs) {
    let least = Plan { length: Length::Exact(1), number: Number::Least, ..Plan::SMALLEST };
    let double = Plan {
        length: Length::Exact(1),
        double: (f64::MIN, "-1.7976931348623157e+308".into()),
        ..Plan::SMALLEST
    };
    for (suffix, comment, name, plan) in [
        ("int-text", "an integer whose text is longer than an argument", "INCRBY", least.clone()),
        ("double-text", "a double whose text is longer than an argument", "ZINCRBY", double),
        (
            "keyword",
            "a keyword and a number that are longer than an argument",
            "SET",
            Plan { bits: 8, ..least.clone() },
        ),
        ("enum", "an enumeration whose words are longer than an argument", "LMOVE", least.clone()),
        (
            "list",
            "a list whose count and keyword are longer than an argument",
            "HEXPIRE",
            Plan { list: Some((3, 10)), ..least },
        ),
    ] {
        let command = command(commands, name);
        let Some(fields) = fields(command) else { continue };
        let vector = typed_vector(command, fields, &format!("limit-{suffix}"), "10", comment, &plan);
        let comment = vector.comment.clone();
        pairs.valid.push(roomy(vector, comment, "argument_bytes_max", 1));
    }
    // As ARGV the same number is a byte string like any other.
    let mut args = Args::texts(&["INCRBY", "k"]);
    args.push(Arg::Bytes(Bytes::from("-9223372036854775808")));
    let mut vector = argv("int-text", "10", "a number is a byte string here", 0, &args);
    let mut wire = super::layout::header(0x000A, 0).and(&[0, 1]).and(b"k");
    wire.push(&i64::MIN.to_be_bytes());
    not_canonical(&mut vector, Some(wire));
    pairs.add(&vector, "argument_bytes_max", &[], 20, ("argument-too-long", 4 + 4 + (4 + 6) + (4 + 1)));
    // A reply's numbers have no length either.
    let numbers = Tree::Array(vec![Tree::Int(i64::MIN), Tree::Double(1.5, "1.5"), Tree::Bool(true)]);
    let vector = reply("limit.numbers", "10", "numbers have no length to bound", 1, &numbers);
    let comment = vector.comment.clone();
    pairs.valid.push(roomy(vector, comment, "argument_bytes_max", 1));
}
