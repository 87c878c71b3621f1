//! Vectors of RESP2 and RESP3 replies: every type, streamed forms, attributes, pushes, and each way to be wrong.
//!
//! It owns the cases. The lines of the usual forms are [`super::tree`]'s; other spellings are written out here.

use serde_json::json;

use super::bytes::Bytes;
use super::tree::{Nest, Tree, bulk, bulk_of};
use super::vector::{File, Outcome, Uses, Vector};

/// The files.
#[must_use]
pub fn files() -> Vec<File> {
    let (at, past) = limits();
    vec![
        File::new("resp2/valid/reply.json", "Replies of RESP2.", resp2()),
        File::new(
            "resp2/invalid/reply.json",
            "Replies whose lines are wrong, in types that RESP2 has.",
            wrong(2),
        ),
        File::new("resp3/valid/reply.json", "Replies of RESP3.", resp3()),
        File::new(
            "resp3/valid/reply-spellings.json",
            "Replies in other spellings than an encoder's, streamed ones among them.",
            spellings(),
        ),
        File::new(
            "resp3/invalid/reply.json",
            "Replies that are wrong, in types that only RESP3 has.",
            wrong(3),
        ),
        File::new("resp3/valid/reply-limits.json", "Replies that need all of a limit.", at),
        File::new("resp3/invalid/reply-limits.json", "Replies one past a limit.", past),
    ]
}

fn vector(version: u8, id: &str, comment: &str, tree: &Tree, wire: Bytes) -> Vector {
    let usual = tree.to_resp(version);
    let canonical = usual == wire;
    let frame = if matches!(tree, Tree::Push(_)) { "push" } else { "reply" };
    let outcome = Outcome::Valid {
        value: json!({"frame": frame, "reply": tree.to_json()}),
        argv: None,
        canonical,
        canonical_wire: (!canonical).then_some(usual),
        uses: Uses::All,
    };
    Vector {
        id: format!("resp{version}.reply.{id}"),
        section: "resp",
        comment: comment.into(),
        direction: "reply",
        limits: Vec::new(),
        wire,
        outcome,
    }
}

fn usual(version: u8, id: &str, comment: &str, tree: &Tree) -> Vector {
    vector(version, id, comment, tree, tree.to_resp(version))
}

/// Values that both versions have.
fn common() -> Vec<(String, Tree)> {
    let mut out = vec![
        ("ok".into(), Tree::Simple("OK".into())),
        ("simple-empty".into(), Tree::Simple(Bytes::new())),
        ("simple-high-bytes".into(), Tree::Simple(Bytes::of(b"\xC3\xA9\xFF"))),
        ("simple-65536".into(), Tree::Simple(Bytes::repeated(b"s", 65_536))),
        ("error".into(), Tree::Error("ERR no such key".into())),
        ("error-empty".into(), Tree::Error(Bytes::new())),
        ("null".into(), Tree::Null),
        ("bulk-of-lines".into(), Tree::Bulk(Bytes::of(b"a\r\nb\r\n"))),
        ("bulk-of-zeros".into(), Tree::Bulk(Bytes::of(&[0; 4]))),
        ("array-empty".into(), Tree::Array(vec![])),
        (
            "array".into(),
            Tree::Array(vec![Tree::Int(1), bulk("two"), Tree::Simple("three".into()), Tree::Null]),
        ),
        (
            "array-of-errors".into(),
            Tree::Array(vec![Tree::Error("ERR a".into()), Tree::Error("WRONGTYPE b".into())]),
        ),
        (
            "array-in-array".into(),
            Tree::Array(vec![
                Tree::Array(vec![Tree::Int(1), Tree::Array(vec![])]),
                Tree::Array(vec![]),
                Tree::Int(2),
            ]),
        ),
    ];
    for value in [i64::MIN, -1, 0, 1, 9, 10, 255, 256, i64::MAX] {
        out.push((format!("int{value}"), Tree::Int(value)));
    }
    for len in [0usize, 1, 9, 10, 99, 100, 255, 256, 65_535, 65_536] {
        out.push((format!("bulk-{len}"), bulk_of(len)));
    }
    for count in [9usize, 10, 255, 256, 65_536] {
        out.push((format!("array-{count}"), Tree::Many(Box::new(Tree::Int(7)), count)));
    }
    for depth in [1usize, 2, 8, 127, 128] {
        out.push((format!("depth-{depth}"), Tree::Nest(Nest::Array, depth, Box::new(Tree::Int(1)))));
        let empty = Tree::Array(vec![]);
        let empty = if depth == 1 { empty } else { Tree::Nest(Nest::Array, depth - 1, Box::new(empty)) };
        out.push((format!("depth-{depth}-empty"), empty));
    }
    out
}

fn resp2() -> Vec<Vector> {
    let mut out: Vec<Vector> =
        common().iter().map(|(name, tree)| usual(2, name, &name.replace('-', " "), tree)).collect();
    out.push(usual(2, "null-array", "RESP2's other null", &Tree::NullArray));
    out.push(usual(
        2,
        "nulls-in-array",
        "both nulls as elements",
        &Tree::Array(vec![Tree::Null, Tree::NullArray]),
    ));
    out.push(vector(2, "int-plus", "a sign that RESP allows", &Tree::Int(5), Bytes::from(":+5\r\n")));
    out
}

fn resp3() -> Vec<Vector> {
    let mut values = common();
    let pair = |key: &str, value: Tree| (bulk(key), value);
    let attributed = |value| Tree::Attribute(vec![pair("ttl", Tree::Int(1))], Box::new(value));
    let more = vec![
        ("true", Tree::Bool(true)),
        ("false", Tree::Bool(false)),
        ("big", Tree::Big("3492890328409238509324850943850943825024385".into())),
        ("big-minus", Tree::Big("-12345678901234567890".into())),
        ("big-zero", Tree::Big("0".into())),
        ("verbatim", Tree::Verbatim("txt", "some text".into())),
        ("verbatim-empty", Tree::Verbatim("mkd", Bytes::new())),
        ("verbatim-lines", Tree::Verbatim("txt", Bytes::of(b"a\r\nb"))),
        ("bulk-error", Tree::Error(Bytes::of(b"ERR a\r\nb"))),
        ("map", Tree::Map(vec![pair("a", Tree::Int(1)), (Tree::Int(2), Tree::Null)])),
        ("map-empty", Tree::Map(vec![])),
        ("map-in-map", Tree::Map(vec![(Tree::Map(vec![]), Tree::Map(vec![pair("a", Tree::Set(vec![]))]))])),
        ("set", Tree::Set(vec![bulk("a"), Tree::Bool(true), Tree::Double(1.5, "1.5")])),
        ("set-empty", Tree::Set(vec![])),
        ("push", Tree::Push(vec![bulk("message"), bulk("channel"), bulk("text")])),
        ("push-empty", Tree::Push(vec![])),
        ("push-nested", Tree::Push(vec![bulk("invalidate"), Tree::Array(vec![bulk("key")])])),
        ("attribute", attributed(bulk("value"))),
        ("attribute-empty", Tree::Attribute(vec![], Box::new(Tree::Int(1)))),
        ("attribute-on-element", Tree::Array(vec![attributed(Tree::Int(1)), Tree::Int(2)])),
        ("attribute-on-last", Tree::Array(vec![Tree::Int(1), attributed(Tree::Array(vec![]))])),
        ("attribute-on-pair", Tree::Map(vec![(attributed(bulk("k")), attributed(bulk("v")))])),
        ("attribute-on-attribute", attributed(attributed(Tree::Int(1)))),
        (
            "attribute-in-attribute",
            Tree::Attribute(vec![pair("a", attributed(Tree::Int(2)))], Box::new(Tree::Null)),
        ),
        ("attribute-on-array", attributed(Tree::Array(vec![Tree::Int(1), Tree::Int(2)]))),
    ];
    values.extend(more.into_iter().map(|(name, tree)| (name.to_string(), tree)));
    for (name, value, text) in super::requests::DOUBLES {
        values.push((format!("double-{name}"), Tree::Double(*value, text)));
    }
    values.push(("double-nan".into(), Tree::Double(NAN, "nan")));
    values.push(("double-exponent".into(), Tree::Double(1e20, "1e+20")));
    for depth in [8usize, 128] {
        for (name, nest) in [("map", Nest::MapKey), ("map-value", Nest::MapValue), ("set", Nest::Set)] {
            values.push((format!("depth-{depth}-{name}"), Tree::Nest(nest, depth, Box::new(Tree::Int(1)))));
        }
    }
    values.iter().map(|(name, tree)| usual(3, name, &name.replace('-', " "), tree)).collect()
}

const NAN: f64 = f64::from_bits(0x7FF8_0000_0000_0000);

fn spellings() -> Vec<Vector> {
    let ints = |all: &[i64]| all.iter().map(|&value| Tree::Int(value)).collect::<Vec<_>>();
    let cases: Vec<(&str, &str, Tree, &[u8])> = vec![
        ("null-bulk", "RESP2's null", Tree::Null, b"$-1\r\n"),
        ("null-array", "RESP2's null array", Tree::NullArray, b"*-1\r\n"),
        ("int-plus", "a plus sign", Tree::Int(12), b":+12\r\n"),
        ("double-whole", "a fraction of zeros", Tree::Double(1.0, "1"), b",1.00\r\n"),
        ("double-exponent", "an exponent", Tree::Double(1500.0, "1500"), b",1.5e3\r\n"),
        ("double-capital-exponent", "a capital exponent", Tree::Double(0.015, "0.015"), b",1.5E-2\r\n"),
        ("double-plus", "a plus sign", Tree::Double(1.5, "1.5"), b",+1.5\r\n"),
        ("double-plus-inf", "a plus sign before inf", Tree::Double(f64::INFINITY, "inf"), b",+inf\r\n"),
        ("double-minus-nan", "a sign before nan", Tree::Double(NAN, "nan"), b",-nan\r\n"),
        (
            "error-bulk",
            "an error without line ends as a bulk",
            Tree::Error("ERR a".into()),
            b"!5\r\nERR a\r\n",
        ),
        ("text-streamed", "a string in two chunks", bulk("abcde"), b"$?\r\n;2\r\nab\r\n;3\r\ncde\r\n;0\r\n"),
        ("text-streamed-empty", "a string of no chunk", bulk(""), b"$?\r\n;0\r\n"),
        (
            "text-streamed-lines",
            "chunks of line ends",
            Tree::Bulk(Bytes::of(b"\r\n;0\r\n")),
            b"$?\r\n;2\r\n\r\n\r\n;4\r\n;0\r\n\r\n;0\r\n",
        ),
        (
            "array-streamed",
            "an array without its length",
            Tree::Array(ints(&[1, 2])),
            b"*?\r\n:1\r\n:2\r\n.\r\n",
        ),
        ("array-streamed-empty", "an empty one", Tree::Array(vec![]), b"*?\r\n.\r\n"),
        ("set-streamed", "a set without its length", Tree::Set(ints(&[1])), b"~?\r\n:1\r\n.\r\n"),
        (
            "map-streamed",
            "a map without its length",
            Tree::Map(vec![(Tree::Int(1), Tree::Int(2))]),
            b"%?\r\n:1\r\n:2\r\n.\r\n",
        ),
        (
            "streamed-in-array",
            "a streamed array as an element",
            Tree::Array(vec![Tree::Array(ints(&[1])), Tree::Int(2)]),
            b"*2\r\n*?\r\n:1\r\n.\r\n:2\r\n",
        ),
        (
            "array-in-streamed",
            "arrays inside a streamed one",
            Tree::Array(vec![Tree::Array(ints(&[1])), Tree::Array(vec![])]),
            b"*?\r\n*1\r\n:1\r\n*0\r\n.\r\n",
        ),
        (
            "streamed-in-streamed",
            "streamed ones in each other",
            Tree::Array(vec![Tree::Map(vec![]), Tree::Set(vec![Tree::Array(vec![])])]),
            b"*?\r\n%?\r\n.\r\n~?\r\n*?\r\n.\r\n.\r\n.\r\n",
        ),
        (
            "text-streamed-in-array",
            "a streamed string as an element",
            Tree::Array(vec![bulk("ab"), Tree::Int(1)]),
            b"*2\r\n$?\r\n;2\r\nab\r\n;0\r\n:1\r\n",
        ),
        (
            "text-streamed-in-map",
            "a streamed string as a key",
            Tree::Map(vec![(bulk("a"), bulk("b"))]),
            b"%1\r\n$?\r\n;1\r\na\r\n;0\r\n$?\r\n;1\r\nb\r\n;0\r\n",
        ),
        (
            "attribute-in-streamed",
            "an attribute inside a streamed array",
            Tree::Array(vec![Tree::Attribute(vec![(bulk("a"), Tree::Int(1))], Box::new(Tree::Int(2)))]),
            b"*?\r\n|1\r\n$1\r\na\r\n:1\r\n:2\r\n.\r\n",
        ),
        (
            "attribute-on-streamed",
            "an attribute on a streamed array",
            Tree::Attribute(vec![(bulk("a"), Tree::Int(1))], Box::new(Tree::Array(ints(&[2])))),
            b"|1\r\n$1\r\na\r\n:1\r\n*?\r\n:2\r\n.\r\n",
        ),
        (
            "attribute-in-streamed-map",
            "attributes on a key and a value of a streamed map",
            Tree::Map(vec![(
                Tree::Attribute(vec![], Box::new(Tree::Int(1))),
                Tree::Attribute(vec![], Box::new(Tree::Int(2))),
            )]),
            b"%?\r\n|0\r\n:1\r\n|0\r\n:2\r\n.\r\n",
        ),
    ];
    cases
        .into_iter()
        .map(|(id, comment, tree, wire)| vector(3, &format!("spelled.{id}"), comment, &tree, Bytes::of(wire)))
        .collect()
}

/// Identifier, comment, wire, error, offset, and the version whose types it has.
type Wrong = (&'static str, &'static str, &'static [u8], &'static str, usize, u8);

const WRONG: &[Wrong] = &[
    ("type-letter", "a letter", b"PONG\r\n", "unknown-type", 0, 2),
    ("type-zero", "a zero byte", b"\0", "unknown-type", 0, 2),
    ("type-high", "a high byte", b"\x80", "unknown-type", 0, 2),
    ("type-chunk", "a chunk without its string", b";1\r\na\r\n", "unknown-type", 0, 3),
    ("type-in-array", "an element of no type", b"*1\r\nx", "unknown-type", 4, 2),
    ("line-lf", "LF without CR", b"+OK\n", "bad-line", 3, 2),
    ("line-cr", "CR without LF", b"+OK\rx", "bad-line", 3, 2),
    ("line-cr-cr", "two CR", b"-ERR\r\r\n", "bad-line", 4, 2),
    ("int-empty", "an integer of no digits", b":\r\n", "bad-number", 0, 2),
    ("int-letter", "an integer with a letter", b":1a\r\n", "bad-number", 0, 2),
    ("int-point", "an integer with a point", b":1.0\r\n", "bad-number", 0, 2),
    ("int-past-i64", "an integer past 64 bits", b":9223372036854775808\r\n", "bad-number", 0, 2),
    ("int-zeros", "a leading zero", b":01\r\n", "bad-number", 0, 2),
    ("int-two-signs", "two signs", b":+-1\r\n", "bad-number", 0, 2),
    ("int-in-array", "an element that is no integer", b"*2\r\n:1\r\n:x\r\n", "bad-number", 8, 2),
    ("bulk-letter", "a length with a letter", b"$x\r\n", "bad-length", 0, 2),
    ("bulk-empty", "a length of no digits", b"$\r\n", "bad-length", 0, 2),
    ("bulk-negative", "a length of -2", b"$-2\r\n", "bad-length", 0, 2),
    ("bulk-zeros", "a length with a leading zero", b"$01\r\na\r\n", "bad-length", 0, 2),
    ("bulk-past-limit", "512 MiB and a byte", b"$536870913\r\n", "argument-too-long", 0, 2),
    ("bulk-end", "a bulk that is longer than it says", b"$2\r\nabc\r\n", "bulk-end", 6, 2),
    ("bulk-end-cr", "CR without LF behind a bulk", b"$2\r\nab\rx", "bulk-end", 6, 2),
    ("array-letter", "a count with a letter", b"*x\r\n", "bad-length", 0, 2),
    ("array-negative", "a count of -2", b"*-2\r\n", "bad-length", 0, 2),
    ("array-past-u32", "a count of 2^32", b"*4294967296\r\n", "bad-length", 0, 2),
    ("map-negative", "a map of -1", b"%-1\r\n", "bad-length", 0, 3),
    ("set-letter", "a set of x", b"~x\r\n", "bad-length", 0, 3),
    ("push-streamed", "a push has its length", b">?\r\n", "bad-length", 0, 3),
    ("attribute-streamed", "an attribute has its length", b"|?\r\n", "bad-length", 0, 3),
    ("error-streamed", "an error has its length", b"!?\r\n", "bad-length", 0, 3),
    ("verbatim-null", "a verbatim string of -1", b"=-1\r\n", "bad-length", 0, 3),
    ("verbatim-short", "a verbatim string without its format", b"=3\r\ntxt\r\n", "bad-verbatim", 4, 3),
    ("verbatim-colon", "a format without its colon", b"=5\r\ntxt-a\r\n", "bad-verbatim", 4, 3),
    ("bool-letter", "a boolean that is x", b"#x\r\n", "bad-bool", 0, 3),
    ("bool-empty", "a boolean that is nothing", b"#\r\n", "bad-bool", 0, 3),
    ("bool-word", "a boolean that is a word", b"#true\r\n", "bad-bool", 0, 3),
    ("null-text", "a null with text", b"_x\r\n", "bad-line", 0, 3),
    ("double-empty", "a double of no digits", b",\r\n", "bad-number", 0, 3),
    ("double-letter", "a double with a letter", b",1x\r\n", "bad-number", 0, 3),
    ("double-infinity", "another word for inf", b",infinity\r\n", "bad-number", 0, 3),
    ("double-sign", "a sign alone", b",-\r\n", "bad-number", 0, 3),
    ("double-exponent", "an exponent of no digits", b",1e\r\n", "bad-number", 0, 3),
    ("big-empty", "a big number of no digits", b"(\r\n", "bad-number", 0, 3),
    ("big-letter", "a big number with a letter", b"(12a\r\n", "bad-number", 0, 3),
    ("push-in-array", "a push inside an array", b"*1\r\n>1\r\n:1\r\n", "misplaced", 4, 3),
    ("push-in-push", "a push inside a push", b">1\r\n>0\r\n", "misplaced", 4, 3),
    (
        "attribute-before-end",
        "an attribute before the end of a streamed array",
        b"*?\r\n|1\r\n:1\r\n:2\r\n.\r\n",
        "misplaced",
        16,
        3,
    ),
    ("attribute-empty-before-end", "an empty one", b"*?\r\n:1\r\n|0\r\n.\r\n", "misplaced", 12, 3),
    ("end-alone", "the end of nothing", b".\r\n", "bad-stream", 0, 3),
    ("end-in-array", "the end of an array that has its length", b"*1\r\n.\r\n", "bad-stream", 4, 3),
    ("end-text", "an end with text", b"*?\r\n.x\r\n", "bad-stream", 4, 3),
    ("map-odd", "a streamed map that ends after a key", b"%?\r\n:1\r\n.\r\n", "bad-stream", 8, 3),
    (
        "map-odd-nested",
        "the same, the key being an array",
        b"%?\r\n:1\r\n:2\r\n*1\r\n:1\r\n.\r\n",
        "bad-stream",
        20,
        3,
    ),
    ("chunk-other", "another type between chunks", b"$?\r\n;1\r\na\r\n:1\r\n", "bad-stream", 11, 3),
    ("chunk-letter", "a chunk's length with a letter", b"$?\r\n;x\r\n", "bad-length", 4, 3),
    ("chunk-end", "a chunk that is longer than it says", b"$?\r\n;1\r\nab\r\n", "bulk-end", 9, 3),
];

fn wrong(version: u8) -> Vec<Vector> {
    let make = |id: &str, comment: &str, wire, error| {
        Vector::invalid("reply", format!("resp{version}.reply.bad.{id}"), "resp", comment, wire, error)
    };
    let cases = WRONG.iter().filter(|(.., of)| *of == version);
    let mut out: Vec<Vector> = cases
        .map(|(id, comment, wire, error, offset, _)| make(id, comment, Bytes::of(wire), (*error, *offset)))
        .collect();
    let kinds: &[(&str, &str)] = if version == 2 {
        &[("array", "*1\r\n")]
    } else {
        &[("map", "%1\r\n"), ("set", "~1\r\n"), ("streamed", "*?\r\n")]
    };
    for (name, open) in kinds {
        let deep = Bytes::repeated(open.as_bytes(), 129);
        out.push(make(
            &format!("depth-129-{name}"),
            "one level more than the limit",
            deep,
            ("too-deep", 512),
        ));
    }
    out
}

fn limits() -> (Vec<Vector>, Vec<Vector>) {
    let (mut valid, mut invalid) = (Vec::new(), Vec::new());
    let mut add = |id: &str, tree: &Tree, name: &'static str, value: usize, error: (&'static str, usize)| {
        let vector = usual(3, "", "", tree);
        let (mut at, mut past) = (vector.clone().limit(name, value), vector.limit(name, value - 1));
        at.id = format!("resp3.reply.limit.{id}-at");
        past.id = format!("resp3.reply.limit.{id}-past");
        at.comment = format!("{name} is {value}, which it needs");
        past.comment = format!("{name} is {}, one less than it needs", value - 1);
        past.outcome = Outcome::Invalid { error: error.0, offset: error.1 };
        valid.push(at);
        invalid.push(past);
    };
    let pairs = vec![(Tree::Int(1), Tree::Int(2)); 3];
    let deep = Tree::Array(vec![Tree::Set(vec![Tree::Map(vec![(Tree::Int(1), Tree::Null)])])]);
    add("nesting", &deep, "nesting_max", 3, ("too-deep", 8));
    add("nesting-empty", &Tree::Array(vec![Tree::Array(vec![])]), "nesting_max", 2, ("too-deep", 4));
    add("elements", &Tree::Array(vec![Tree::Int(1); 3]), "elements_max", 3, ("too-many-elements", 0));
    add("pairs", &Tree::Array(vec![Tree::Map(pairs)]), "elements_max", 3, ("too-many-elements", 4));
    add("line", &Tree::Simple(Bytes::repeated(b"s", 100)), "inline_bytes_max", 100, ("line-too-long", 0));
    add(
        "line-in-array",
        &Tree::Array(vec![Tree::Error(Bytes::repeated(b"e", 100))]),
        "inline_bytes_max",
        100,
        ("line-too-long", 4),
    );
    add("bulk", &bulk_of(300), "argument_bytes_max", 300, ("argument-too-long", 0));
    add(
        "verbatim",
        &Tree::Verbatim("txt", Bytes::repeated(b"v", 300)),
        "argument_bytes_max",
        304,
        ("argument-too-long", 0),
    );
    for (name, last) in [
        ("bulk", bulk_of(300)),
        ("line", Tree::Simple("OK".into())),
        ("int", Tree::Int(5)),
        ("null", Tree::Null),
        ("array", Tree::Array(vec![])),
        ("verbatim", Tree::Verbatim("txt", "a".into())),
    ] {
        let tree = Tree::Array(vec![Tree::Int(1), last]);
        let len = tree.to_resp(3).len();
        add(&format!("frame-{name}"), &tree, "frame_bytes_max", len, ("frame-too-long", 8));
    }
    (valid, invalid)
}
