//! Vectors of replies on RESPB: every form of a value at the top and as an element, nested, and in forms that are
//! longer than they need be.
//!
//! It owns the cases. The bytes of the shortest forms are [`super::tree`]'s; longer forms are written out here.

use serde_json::json;

use super::bytes::Bytes;
use super::layout::header;
pub use super::tree::{Nest, Tree, bulk, bulk_of};
use super::vector::{Outcome, Uses, Vector};

/// A reply in its shortest form.
#[must_use]
pub fn reply(id: &str, section: &'static str, comment: &str, channel: u16, tree: &Tree) -> Vector {
    reply_as(id, section, comment, channel, tree, tree.to_respb(channel))
}

/// A reply in this form, which is canonical when it is the shortest.
fn reply_as(
    id: &str,
    section: &'static str,
    comment: &str,
    channel: u16,
    tree: &Tree,
    wire: Bytes,
) -> Vector {
    let shortest = tree.to_respb(channel);
    let canonical = wire == shortest;
    let frame = if is_push(tree) { "push" } else { "reply" };
    let value = json!({"channel": channel, "frame": frame, "reply": tree.to_json()});
    let outcome = Outcome::Valid {
        value,
        argv: None,
        canonical,
        canonical_wire: (!canonical).then_some(shortest),
        uses: Uses::All,
    };
    Vector {
        id: format!("respb.reply.{id}"),
        section,
        comment: comment.into(),
        direction: "reply",
        limits: Vec::new(),
        wire,
        outcome,
    }
}

fn is_push(tree: &Tree) -> bool {
    matches!(tree, Tree::Push(_))
}

/// Doubles, as the requests have them, and what only replies may carry.
fn doubles() -> Vec<(&'static str, f64, &'static str)> {
    let mut doubles = super::requests::DOUBLES.to_vec();
    doubles.push(("one-and-a-half", 1.5, "1.5"));
    doubles.push(("nan", f64::from_bits(0x7FF8_0000_0000_0000), "nan"));
    doubles.push(("whole", 1e20, "1e+20"));
    doubles
}

/// One value of each kind, by name: what stands at the top and as an element.
fn scalars() -> Vec<(String, &'static str, Tree)> {
    let mut out = vec![
        ("ok".into(), "5.2", Tree::Simple("OK".into())),
        ("ok-lower-case".into(), "5.2", Tree::Simple("ok".into())),
        ("queued".into(), "5.2", Tree::Simple("QUEUED".into())),
        ("error".into(), "5.2", Tree::Error("ERR no such key".into())),
        ("error-of-lines".into(), "5.2", Tree::Error(Bytes::of(b"ERR one\r\ntwo"))),
        ("null".into(), "5.2", Tree::Null),
        ("true".into(), "5.2", Tree::Bool(true)),
        ("false".into(), "5.2", Tree::Bool(false)),
        ("verbatim-empty".into(), "5.2", Tree::Verbatim("txt", Bytes::new())),
        ("verbatim".into(), "5.2", Tree::Verbatim("mkd", "# title".into())),
        ("verbatim-65536".into(), "5.2", Tree::Verbatim("txt", Bytes::repeated(b"v", 65_536))),
        ("bulk-of-line-ends".into(), "5.2", Tree::Bulk(Bytes::of(b"\r\n\r\n"))),
        ("bulk-of-zeros".into(), "5.2", Tree::Bulk(Bytes::of(&[0; 5]))),
    ];
    let ints = [
        i64::MIN,
        i64::from(i32::MIN) - 1,
        i64::from(i32::MIN),
        -65_536,
        -32_769,
        -256,
        -129,
        -128,
        -2,
        -1,
        0,
        1,
        62,
        63,
        64,
        127,
        128,
        254,
        255,
        256,
        257,
        32_767,
        65_535,
        65_536,
        i64::from(i32::MAX),
        i64::from(i32::MAX) + 1,
        i64::MAX,
    ];
    out.extend(ints.map(|value| (format!("int{value}"), "5.4", Tree::Int(value))));
    for len in [0usize, 1, 2, 126, 127, 128, 129, 254, 255, 256, 257, 65_535, 65_536] {
        out.push((format!("bulk-{len}"), "5.4", bulk_of(len)));
        out.push((format!("error-{len}"), "5.4", Tree::Error(Bytes::repeated(b"E", len))));
        if len <= 65_535 {
            out.push((format!("simple-{len}"), "5.4", Tree::Simple(Bytes::repeated(b"s", len))));
        }
    }
    for (name, digits) in [
        ("zero", Bytes::from("0")),
        ("minus", Bytes::from("-3492890328409238509324850943850943825024385")),
        ("70000-digits", Bytes::repeated(b"7", 70_000)),
        ("small", Bytes::from("12")),
    ] {
        out.push((format!("big-{name}"), "5.2", Tree::Big(digits)));
    }
    out.extend(
        doubles()
            .into_iter()
            .map(|(name, value, text)| (format!("double-{name}"), "5.2", Tree::Double(value, text))),
    );
    out
}

/// Every scalar, at the top and as an element of each aggregate's kind.
#[must_use]
pub fn values() -> Vec<Vector> {
    let mut out = Vec::new();
    for (name, section, tree) in scalars() {
        out.push(reply(&name, section, &format!("{name} as a reply"), 1, &tree));
        let array = Tree::Array(vec![Tree::Int(7), tree.clone(), Tree::Int(8)]);
        out.push(reply(&format!("element.{name}"), "5.3", &format!("{name} as an element"), 1, &array));
    }
    for value in 0..=255 {
        if !scalars().iter().any(|(.., tree)| matches!(tree, Tree::Int(other) if *other == value))
            && value % 16 == 5
        {
            out.push(reply(&format!("int{value}"), "5.4", "an integer in the opcode", 1, &Tree::Int(value)));
        }
    }
    for channel in [0u16, 255, 256, 65_535] {
        for (name, tree) in [
            ("ok", Tree::Simple("OK".into())),
            ("int", Tree::Int(5)),
            ("bulk", bulk("value")),
            ("array", Tree::Array(vec![bulk("a")])),
        ] {
            out.push(reply(
                &format!("{name}.channel-{channel}"),
                "3.1",
                &format!("on channel {channel}"),
                channel,
                &tree,
            ));
        }
    }
    out
}

/// Aggregates: empty, of one and of many, nested, with attributes, as pushes.
#[must_use]
pub fn aggregates() -> Vec<Vector> {
    let pair = |key: &str, value: Tree| (bulk(key), value);
    let kinds: Vec<(&str, Vec<Tree>)> = vec![
        ("array", (0..3).map(|n| Tree::Array(vec![bulk("a"); n])).collect()),
        ("set", (0..3).map(|n| Tree::Set(vec![Tree::Int(n as i64); n])).collect()),
        ("map", (0..3).map(|n| Tree::Map(vec![pair("k", Tree::Int(1)); n])).collect()),
        ("push", (0..3).map(|n| Tree::Push(vec![bulk("message"); n])).collect()),
        (
            "attribute",
            (0..3)
                .map(|n| Tree::Attribute(vec![pair("ttl", Tree::Int(300)); n], Box::new(bulk("value"))))
                .collect(),
        ),
    ];
    let mut out = Vec::new();
    for (name, trees) in kinds {
        for (count, tree) in trees.into_iter().enumerate() {
            let section = match name {
                "attribute" => "5.5",
                "push" => "5.6",
                _ => "5.2",
            };
            out.push(reply(&format!("{name}-{count}"), section, &format!("{name} of {count}"), 1, &tree));
            if name != "push" {
                let inside = Tree::Array(vec![tree.clone(), Tree::Int(9), tree]);
                out.push(reply(
                    &format!("element.{name}-{count}"),
                    "5.3",
                    &format!("{name} of {count} as an element"),
                    1,
                    &inside,
                ));
            }
        }
    }
    for count in [255usize, 256, 65_535, 65_536] {
        out.push(reply(
            &format!("array-{count}"),
            "5.2",
            &format!("an array of {count}"),
            1,
            &Tree::Many(Box::new(bulk("ab")), count),
        ));
    }
    for depth in [1usize, 2, 8, 127, 128] {
        for (name, nest) in Nest::ALL {
            let full = Tree::Nest(nest, depth, Box::new(Tree::Int(1)));
            let comment = format!("{name} nested {depth} deep");
            out.push(reply(&format!("depth-{depth}-{name}"), "10", &comment, 1, &full));
            let innermost = nest.around(None);
            let empty = if depth == 1 { innermost } else { Tree::Nest(nest, depth - 1, Box::new(innermost)) };
            let comment = format!("{name} nested {depth} deep, the last empty");
            out.push(reply(&format!("depth-{depth}-{name}-empty"), "10", &comment, 1, &empty));
        }
    }
    out.extend(mixed());
    out
}

fn mixed() -> Vec<Vector> {
    let attributed = |value| Tree::Attribute(vec![(bulk("a"), Tree::Int(1))], Box::new(value));
    let all = Tree::Array(
        scalars().into_iter().filter(|(.., tree)| tree.text_len() < 200).map(|(.., tree)| tree).collect(),
    );
    let hello = Tree::Map(vec![
        (bulk("server"), bulk("weft")),
        (bulk("proto"), Tree::Int(3)),
        (bulk("modules"), Tree::Array(vec![])),
    ]);
    let message = Tree::Push(vec![bulk("message"), bulk("news"), bulk_of(300)]);
    vec![
        reply("every-scalar", "5.3", "an array of every scalar", 1, &all),
        reply("hello", "5.2", "a map as HELLO answers", 1, &hello),
        reply("message", "5.6", "a message of a subscription", 1, &message),
        reply(
            "invalidate",
            "5.6",
            "a push with an array inside",
            1,
            &Tree::Push(vec![bulk("invalidate"), Tree::Array(vec![bulk("key")])]),
        ),
        reply(
            "attribute-on-element",
            "5.5",
            "an attribute on an element: it does not count",
            1,
            &Tree::Array(vec![attributed(Tree::Int(1)), Tree::Int(2)]),
        ),
        reply(
            "attribute-on-key",
            "5.5",
            "an attribute on a key and on a value",
            1,
            &Tree::Map(vec![(attributed(bulk("k")), attributed(bulk("v")))]),
        ),
        reply(
            "attribute-on-last",
            "5.5",
            "an attribute on the last element",
            1,
            &Tree::Array(vec![Tree::Int(1), attributed(Tree::Array(vec![]))]),
        ),
        reply(
            "attribute-on-attribute",
            "5.5",
            "two attributes on one value",
            1,
            &attributed(attributed(Tree::Int(1))),
        ),
        reply(
            "attribute-in-attribute",
            "5.5",
            "an attribute on a value of an attribute",
            1,
            &Tree::Attribute(vec![(bulk("a"), attributed(Tree::Int(1)))], Box::new(Tree::Null)),
        ),
        reply(
            "attribute-on-array",
            "5.5",
            "an attribute on an array",
            1,
            &attributed(Tree::Array(vec![Tree::Int(1), Tree::Array(vec![Tree::Int(2)])])),
        ),
        reply(
            "attribute-in-push",
            "5.5",
            "an attribute on an element of a push",
            1,
            &Tree::Push(vec![bulk("x"), attributed(Tree::Int(1))]),
        ),
        reply(
            "tree",
            "5.3",
            "arrays, sets and maps in each other",
            1,
            &Tree::Array(vec![
                Tree::Map(vec![(bulk("a"), Tree::Set(vec![Tree::Int(1), Tree::Array(vec![])]))]),
                Tree::Array(vec![Tree::Array(vec![Tree::Null, Tree::Bool(true)]), Tree::Map(vec![])]),
                Tree::Double(1.5, "1.5"),
            ]),
        ),
    ]
}

/// Forms that a decoder takes and an encoder does not write.
#[must_use]
pub fn longer_forms() -> Vec<Vector> {
    let mut out = Vec::new();
    let mut add = |name: String, tree: Tree, kind: u8, payload: Bytes| {
        let wire = header(0x8000 | u16::from(kind), 1).join(&payload);
        out.push(reply_as(
            &format!("longer.{name}"),
            "5.4",
            &format!("{name}, longer than it need be"),
            1,
            &tree,
            wire,
        ));
        let element = Bytes::of(&[kind]).join(&payload);
        let array = Tree::Array(vec![tree.clone(), tree]);
        let wire = header(0x8004, 1).and(&[0, 0, 0, 2]).join(&element).join(&element);
        out.push(reply_as(
            &format!("longer.element.{name}"),
            "5.4",
            &format!("{name} as an element, in its full form"),
            1,
            &array,
            wire,
        ));
    };
    for value in [i64::from(i32::MIN), -2, -1, 0, 62, 63, 255, 256, i64::from(i32::MAX)] {
        add(format!("i64-{value}"), Tree::Int(value), 0x02, Bytes::of(&value.to_be_bytes()));
    }
    for value in [-2i32, -1, 0, 1, 62, 63, 64, 254, 255] {
        add(format!("i32-{value}"), Tree::Int(value.into()), 0x10, Bytes::of(&value.to_be_bytes()));
    }
    for bits in [0xFFF8_0000_0000_0000u64, 0x7FF8_0000_0000_0001, 0xFFFF_FFFF_FFFF_FFFF] {
        let tree = Tree::Double(f64::from_bits(bits), "nan");
        add(format!("nan-{bits:016x}"), tree, 0x07, Bytes::of(&bits.to_be_bytes()));
    }
    for len in [0usize, 1, 127, 128, 255] {
        let text = Bytes::repeated(b"b", len);
        let sized32 = Bytes::of(&(len as u32).to_be_bytes()).join(&text);
        let sized16 = Bytes::of(&(len as u16).to_be_bytes()).join(&text);
        add(format!("bulk-{len}"), Tree::Bulk(text.clone()), 0x03, sized32.clone());
        add(format!("simple-{len}"), Tree::Simple(text.clone()), 0x0B, sized16);
        add(format!("error-{len}"), Tree::Error(text), 0x0F, sized32);
    }
    add("ok".into(), Tree::Simple("OK".into()), 0x0B, Bytes::of(&[0, 2]).and(b"OK"));
    out.push(reply_as(
        "longer.ok-in-opcode",
        "5.4",
        "OK with its length in the opcode",
        1,
        &Tree::Simple("OK".into()),
        header(0x8302, 1).and(b"OK"),
    ));
    out
}

/// Values that encode to a frame that says another one: decoders do not get them back.
#[must_use]
pub fn encode_only() -> Vec<Vector> {
    let long = Tree::Simple(Bytes::repeated(b"s", 65_536));
    let as_bulk = bulk_of_letter(b's', 65_536);
    let inside = |tree: &Tree| Tree::Array(vec![Tree::Int(7), tree.clone(), Tree::Int(8)]);
    let cases = [
        ("simple-65536", long.clone(), as_bulk.clone()),
        ("element.simple-65536", inside(&long), inside(&as_bulk)),
        (
            "map.simple-65536",
            Tree::Map(vec![(long.clone(), long)]),
            Tree::Map(vec![(as_bulk.clone(), as_bulk)]),
        ),
    ];
    let vector = |(name, tree, sent): (&str, Tree, Tree)| {
        let comment = "a simple string that is too long for its type is sent as a bulk";
        let mut vector = reply(&format!("encode.{name}"), "5.4", comment, 1, &tree);
        vector.wire = sent.to_respb(1);
        if let Outcome::Valid { uses, .. } = &mut vector.outcome {
            *uses = Uses::EncodeOnly;
        }
        vector
    };
    cases.into_iter().map(vector).collect()
}

fn bulk_of_letter(letter: u8, len: usize) -> Tree {
    Tree::Bulk(Bytes::repeated(&[letter], len))
}
