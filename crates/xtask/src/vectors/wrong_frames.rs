//! Vectors of frames on RESPB that are wrong apart from any command's layout: opcodes, lengths, passthrough, control
//! frames, reply values.
//!
//! It owns one case or more for each error of a frame. Errors of fields stand in [`super::requests`], limits in
//! [`super::limits`].

use super::bytes::Bytes;
use super::layout::{header, long_frame};
use super::vector::Vector;
use crate::model::Command;

fn wrong(
    direction: &'static str,
    id: &str,
    section: &'static str,
    comment: &str,
    wire: Bytes,
    error: (&'static str, usize),
) -> Vector {
    Vector::invalid(direction, format!("respb.{direction}.bad.{id}"), section, comment, wire, error)
}

/// Requests.
#[must_use]
pub fn requests(commands: &[Command]) -> Vec<Vector> {
    let mut out = opcodes(commands);
    out.extend(argv());
    out.extend(passthrough());
    out.extend(control("request"));
    out
}

fn opcodes(commands: &[Command]) -> Vec<Vector> {
    let used: Vec<u16> =
        commands.iter().filter_map(|command| command.respb.as_ref()).map(|respb| respb.opcode.0).collect();
    let free = (0..0x0800u16).find(|opcode| !used.contains(opcode)).unwrap_or(0x07FF);
    let mut out = Vec::new();
    for opcode in [free, 0x07FF, 0x0800, 0x1603, 0x2A31, 0x4745, 0x7FFF, 0x9000, 0xEFFF] {
        let comment = format!("opcode {opcode:#06x} is no command: the length of its frame is unknown");
        out.push(wrong(
            "request",
            &format!("opcode-{opcode:04x}"),
            "3.2",
            &comment,
            header(opcode, 1),
            ("unknown-opcode", 0),
        ));
    }
    for opcode in [0x8000u16, 0x8001, 0x8105, 0x82FF, 0x8FFF, 0xFF04, 0xFF10] {
        let comment = format!("opcode {opcode:#06x} belongs to replies");
        let wire =
            if opcode >= 0xFF00 { long_frame(opcode, 1, &Bytes::of(&[1, 0x80])) } else { header(opcode, 1) };
        out.push(wrong(
            "request",
            &format!("direction-{opcode:04x}"),
            "3.2",
            &comment,
            wire,
            ("wrong-direction", 0),
        ));
    }
    for (id, comment, numbers) in [
        ("module", "a module that the table does not have", [0x00, 0xFF, 0x00, 0x00]),
        ("module-ffff", "the last module number", [0xFF, 0xFF, 0x00, 0x00]),
        ("module-command", "a command that the module does not have", [0x00, 0x00, 0x0F, 0xFF]),
        ("module-command-ffff", "the last command number", [0x00, 0x00, 0xFF, 0xFF]),
    ] {
        out.push(wrong(
            "request",
            id,
            "3.4",
            comment,
            header(0xF000, 1).and(&numbers),
            ("unknown-opcode", 4),
        ));
    }
    out
}

fn argv() -> Vec<Vector> {
    let case = |id: &str, comment: &str, payload: &[u8], error| {
        wrong("request", &format!("argv-{id}"), "3.6", comment, header(0xF001, 1).and(payload), error)
    };
    vec![
        case("empty", "no argument, not even a name", &[0, 0, 0, 0], ("empty-command", 4)),
        case("half-length", "less than a length", &[0, 0, 0, 3, 0, 0, 0], ("length-mismatch", 8)),
        case(
            "past-end",
            "an argument that ends behind the total",
            &[0, 0, 0, 6, 0, 0, 0, 3, b'a', b'b'],
            ("length-mismatch", 8),
        ),
        case(
            "length-left-over",
            "a byte left over",
            &[0, 0, 0, 6, 0, 0, 0, 1, b'a', 0],
            ("length-mismatch", 13),
        ),
        case(
            "second-past-end",
            "the second argument ends behind the total",
            &[0, 0, 0, 11, 0, 0, 0, 1, b'a', 0, 0, 0, 3, b'b', b'c'],
            ("length-mismatch", 13),
        ),
        case(
            "huge-argument",
            "an argument of 4 GiB in a frame of 8 bytes",
            &[0, 0, 0, 8, 0xFF, 0xFF, 0xFF, 0xFF, b'a', b'a', b'a', b'a'],
            ("length-mismatch", 8),
        ),
        case("huge-total", "a frame of 4 GiB", &[0xFF, 0xFF, 0xFF, 0xFF], ("frame-too-long", 4)),
    ]
}

fn passthrough() -> Vec<Vector> {
    let case = |id: &str, comment: &str, payload: &[u8], error: &'static str, offset: usize| {
        let wire = long_frame(0xFFFF, 1, &Bytes::of(payload));
        wrong("request", &format!("passthrough-{id}"), "3.7", comment, wire, (error, 8 + offset))
    };
    let ping: &[u8] = b"*1\r\n$4\r\nPING\r\n";
    vec![
        case("two-commands", "two commands", &[ping, ping].concat(), "not-one-command", ping.len()),
        case(
            "left-over",
            "a byte behind the command",
            &[ping, b"\n"].concat(),
            "not-one-command",
            ping.len(),
        ),
        case("inline", "an inline command", b"PING\r\n", "not-one-command", 0),
        case("reply", "a reply", b"+OK\r\n", "not-one-command", 0),
        case("empty", "nothing", b"", "not-one-command", 0),
        case("no-arguments", "an array of no arguments", b"*0\r\n", "not-one-command", 0),
        case("null-array", "a null array", b"*-1\r\n", "not-one-command", 0),
        case("truncated-count", "an array without its line end", b"*1\r", "not-one-command", 3),
        case(
            "truncated-argument",
            "an argument that ends behind the frame",
            b"*1\r\n$4\r\nPI",
            "not-one-command",
            10,
        ),
        case(
            "missing-argument",
            "fewer arguments than announced",
            b"*2\r\n$4\r\nPING\r\n",
            "not-one-command",
            ping.len(),
        ),
        case("bad-count", "a count that is no number", b"*x\r\n", "multibulk-length", 0),
        case("no-bulk", "an argument that is no bulk", b"*1\r\n:1\r\n", "expected-bulk", 4),
        case("bad-length", "a length that is no number", b"*1\r\n$x\r\n", "bulk-length", 4),
        case("bad-end", "an argument without its line end", b"*1\r\n$4\r\nPINGxx", "bulk-end", 12),
        case("huge-argument", "an argument longer than the limit", b"*1\r\n$536870913\r\n", "bulk-length", 4),
    ]
}

fn control(direction: &'static str) -> Vec<Vector> {
    let case = |id: &str, section, comment: &str, opcode, payload: &[u8]| {
        wrong(direction, id, section, comment, long_frame(opcode, 1, &Bytes::of(payload)), ("bad-control", 8))
    };
    let mut out = vec![case("close-1", "8.4", "CLOSE with half a code", 0xFF01, &[1])];
    if direction == "request" {
        for len in [0usize, 3, 5, 8] {
            let payload = [0u8; 8];
            out.push(case(
                &format!("cancel-{len}"),
                "8.6",
                &format!("CANCEL of {len} bytes"),
                0xFF02,
                &payload[..len],
            ));
            out.push(case(
                &format!("window-{len}"),
                "9.2",
                &format!("WINDOW of {len} bytes"),
                0xFF03,
                &payload[..len],
            ));
        }
    } else {
        out.push(case("goaway-empty", "8.5", "GOAWAY without a code", 0xFF04, &[]));
        out.push(case("goaway-1", "8.5", "GOAWAY with half a code", 0xFF04, &[0]));
        out.push(case("fragment-empty", "9.1", "FRAGMENT without flags", 0xFF10, &[]));
        out.push(case("fragment-flags-2", "9.1", "FRAGMENT with an unknown flag", 0xFF10, &[2, 0x80]));
        out.push(case("fragment-flags-ff", "9.1", "FRAGMENT with all flags", 0xFF10, &[0xFF]));
        let slice = Bytes::of(&[1]).join(&Bytes::repeated(&[0x80], 65_537));
        let wire = long_frame(0xFF10, 1, &slice);
        let comment = "FRAGMENT with a slice of one byte too many";
        out.push(wrong(direction, "fragment-65537", "9.1", comment, wire, ("bad-control", 8)));
    }
    out
}

/// Replies.
#[must_use]
pub fn replies() -> Vec<Vector> {
    let mut out = Vec::new();
    for opcode in [
        0x8011u16, 0x801F, 0x8020, 0x8040, 0x8080, 0x80FF, 0x8400, 0x8FFF, 0x0800, 0x2B4F, 0x7FFF, 0x9000,
        0xEFFF,
    ] {
        let comment = format!("opcode {opcode:#06x} is no reply: the length of its frame is unknown");
        out.push(wrong(
            "reply",
            &format!("opcode-{opcode:04x}"),
            "5.1",
            &comment,
            header(opcode, 1),
            ("unknown-opcode", 0),
        ));
    }
    for opcode in [0x0000u16, 0x0001, 0x07FF, 0xF000, 0xF001, 0xFF02, 0xFF03, 0xFFFF] {
        let comment = format!("opcode {opcode:#06x} belongs to requests");
        out.push(wrong(
            "reply",
            &format!("direction-{opcode:04x}"),
            "3.2",
            &comment,
            header(opcode, 1),
            ("wrong-direction", 0),
        ));
    }
    out.extend(control("reply"));
    out.extend(values());
    out
}

fn values() -> Vec<Vector> {
    let top = |id: &str, section, comment: &str, opcode: u16, payload: &[u8], error, offset| {
        wrong("reply", id, section, comment, header(opcode, 1).and(payload), (error, offset))
    };
    let array = |items: &[u8]| [&[0, 0, 0, 2, 0x40][..], items].concat();
    let mut out = vec![
        top("bool-2", "5.2", "a boolean that is 2", 0x8006, &[2], "bad-bool", 4),
        top("bool-ff", "5.2", "a boolean that is 255", 0x8006, &[0xFF], "bad-bool", 4),
        top(
            "bool-in-array",
            "5.3",
            "a boolean that is 2, as an element",
            0x8004,
            &array(&[0x06, 2]),
            "bad-bool",
            10,
        ),
        top("big-empty", "5.2", "a big number of no digits", 0x800C, &[0, 0, 0, 0], "bad-number", 8),
        top("big-sign", "5.2", "a big number that is a sign", 0x800C, &[0, 0, 0, 1, b'-'], "bad-number", 8),
        top(
            "big-letter",
            "5.2",
            "a big number with a letter",
            0x800C,
            &[0, 0, 0, 3, b'1', b'a', b'2'],
            "bad-number",
            8,
        ),
        top(
            "big-in-array",
            "5.3",
            "a big number with a point, as an element",
            0x8004,
            &array(&[0x0C, 0, 0, 0, 3, b'1', b'.', b'2']),
            "bad-number",
            14,
        ),
        top(
            "push-in-array",
            "5.6",
            "a push inside an array",
            0x8004,
            &array(&[0x0A, 0, 0, 0, 0]),
            "misplaced",
            9,
        ),
        top(
            "push-in-map",
            "5.6",
            "a push as the key of a map",
            0x8008,
            &[0, 0, 0, 1, 0x0A, 0, 0, 0, 0, 0x40],
            "misplaced",
            8,
        ),
        top(
            "push-in-push",
            "5.6",
            "a push inside a push",
            0x800A,
            &[0, 0, 0, 1, 0x0A, 0, 0, 0, 0],
            "misplaced",
            8,
        ),
        top(
            "push-after-attribute",
            "5.5",
            "a push as the value of an attribute",
            0x800E,
            &[0, 0, 0, 1, 0x40, 0x41, 0x0A, 0, 0, 0, 0],
            "misplaced",
            10,
        ),
        top("bulk-4-gib", "10", "a bulk of 4 GiB", 0x8003, &[0xFF; 4], "argument-too-long", 4),
        top("error-4-gib", "10", "an error of 4 GiB", 0x800F, &[0xFF; 4], "argument-too-long", 4),
        top(
            "verbatim-4-gib",
            "10",
            "a verbatim string of 4 GiB",
            0x800D,
            b"txt\xFF\xFF\xFF\xFF",
            "argument-too-long",
            7,
        ),
        top(
            "bulk-in-array-4-gib",
            "10",
            "a bulk of 4 GiB as an element",
            0x8004,
            &array(&[0x03, 0xFF, 0xFF, 0xFF, 0xFF]),
            "argument-too-long",
            10,
        ),
    ];
    for tag in [0x11u8, 0x1F, 0x20, 0x2A, 0x3F] {
        out.push(top(
            &format!("tag-{tag:02x}"),
            "5.3",
            &format!("element tag {tag:#04x} is reserved"),
            0x8004,
            &array(&[tag]),
            "unknown-tag",
            9,
        ));
        out.push(top(
            &format!("tag-{tag:02x}-nested"),
            "5.3",
            &format!("element tag {tag:#04x}, one level down"),
            0x8009,
            &[0, 0, 0, 1, 0x04, 0, 0, 0, 1, tag],
            "unknown-tag",
            13,
        ));
    }
    for (name, tag) in [("array", 0x04u8), ("set", 0x09), ("map", 0x08)] {
        // A map's first element is its key: one nested key after the other.
        let mut wire = header(0x8000 | u16::from(tag), 1).and(&[0, 0, 0, 1]);
        wire.push_repeat(&[tag, 0, 0, 0, 1], 127);
        let offset = wire.len();
        wire.push(&[tag, 0, 0, 0, 0]);
        out.push(wrong(
            "reply",
            &format!("depth-129-{name}"),
            "10",
            "one level more than the limit, an empty one",
            wire,
            ("too-deep", offset),
        ));
    }
    out
}
