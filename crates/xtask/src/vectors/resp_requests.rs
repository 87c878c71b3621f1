//! Vectors of RESP requests: arrays of bulks and inline lines, which are the same in RESP2 and RESP3.
//!
//! It owns the cases and the bytes.

use serde_json::json;

use super::argument::{Arg, Args};
use super::bytes::Bytes;
use super::vector::{File, Outcome, Uses, Vector};

/// The files.
#[must_use]
pub fn files() -> Vec<File> {
    let (at, past) = limits();
    vec![
        File::new("resp2/valid/request.json", "Requests as arrays of bulks; RESP3 has the same.", arrays()),
        File::new("resp2/valid/request-inline.json", "Inline requests; RESP3 has the same.", inlines()),
        File::new("resp2/valid/request-limits.json", "Requests that need all of a limit.", at),
        File::new("resp2/invalid/request-limits.json", "Requests one past a limit.", past),
        File::new("resp2/invalid/request.json", "Requests that are wrong.", wrong()),
    ]
}

fn vector(id: &str, comment: &str, wire: Bytes, args: &Args) -> Vector {
    let canonical = args.to_resp();
    let same = canonical == wire;
    let outcome = Outcome::Valid {
        value: json!({"args": args.to_json()}),
        argv: None,
        canonical: same,
        // Nothing is sent for an empty line, so nothing is canonical.
        canonical_wire: (!same && args.count() > 0).then_some(canonical),
        uses: Uses::All,
    };
    Vector {
        id: format!("resp.request.{id}"),
        section: "resp",
        comment: comment.into(),
        direction: "request",
        limits: Vec::new(),
        wire,
        outcome,
    }
}

fn array(id: &str, comment: &str, args: &Args) -> Vector {
    vector(id, comment, args.to_resp(), args)
}

fn many(first: &str, arg: Bytes, count: usize) -> Args {
    let mut args = Args::texts(&[first]);
    args.push_repeat(vec![Arg::Bytes(arg)], count);
    args
}

fn arrays() -> Vec<Vector> {
    let mut out = vec![
        array("ping", "one argument", &Args::texts(&["PING"])),
        array("get", "two arguments", &Args::texts(&["GET", "key"])),
        array("set-ex", "options", &Args::texts(&["SET", "key", "value", "EX", "60", "NX"])),
        array("lower-case", "a name in lower case", &Args::texts(&["get", "key"])),
        array("unknown", "a name that no table has", &Args::texts(&["NOSUCH", "a"])),
        array("empty-name", "a name of no bytes", &Args::texts(&[""])),
        array("empty-arguments", "arguments of no bytes", &Args::texts(&["SET", "", ""])),
        array("zadd", "numbers", &Args::texts(&["ZADD", "key", "1.5", "member", "-inf", "other"])),
        array(
            "xread",
            "a transposed list",
            &Args::texts(&["XREAD", "COUNT", "2", "STREAMS", "a", "b", "0", "$"]),
        ),
        array("client", "a container", &Args::texts(&["CLIENT", "SETNAME", "weft"])),
        array(
            "not-canonical-int",
            "a number that is not canonical stays as it is",
            &Args::texts(&["INCRBY", "key", "+01"]),
        ),
        array("binary", "bytes that look like lines", &many("SET", Bytes::of(b"\r\n$3\r\n\0\xFF"), 2)),
        vector(
            "empty-array",
            "an array of no arguments is passed over",
            Bytes::from("*0\r\n"),
            &Args::default(),
        ),
        vector("null-array", "a null array is passed over", Bytes::from("*-1\r\n"), &Args::default()),
        vector("negative-count", "so is any negative count", Bytes::from("*-10\r\n"), &Args::default()),
        vector(
            "least-count",
            "down to the least",
            Bytes::from("*-9223372036854775808\r\n"),
            &Args::default(),
        ),
    ];
    for count in [9usize, 10, 11, 99, 100, 255, 256, 65_535, 65_536] {
        let args = many("MGET", Bytes::from("k"), count - 1);
        out.push(array(&format!("{count}-arguments"), &format!("{count} arguments"), &args));
    }
    for len in [0usize, 1, 9, 10, 99, 100, 255, 256, 999, 1000, 65_535, 65_536, 1_000_000] {
        let args = many("SET", Bytes::repeated(b"v", len), 2);
        out.push(array(&format!("length-{len}"), &format!("arguments of {len} bytes"), &args));
    }
    out
}

/// Identifier, line without its end, arguments.
type Inline = (&'static str, &'static [u8], &'static [&'static [u8]]);

const INLINES: &[Inline] = &[
    ("ping", b"PING", &[b"PING"]),
    ("words", b"SET key value", &[b"SET", b"key", b"value"]),
    ("blanks", b"  SET \t key\x0B\x0Cvalue  ", &[b"SET", b"key", b"value"]),
    ("empty", b"", &[]),
    ("only-blanks", b"  \t ", &[]),
    ("double-quotes", b"SET key \"a b\"", &[b"SET", b"key", b"a b"]),
    ("single-quotes", b"SET key 'a b'", &[b"SET", b"key", b"a b"]),
    ("empty-quotes", b"SET \"\" ''", &[b"SET", b"", b""]),
    ("escapes", b"SET key \"\\n\\r\\t\\b\\a\\\\\\\"\\q\"", &[b"SET", b"key", b"\n\r\t\x08\x07\\\"q"]),
    ("hex-escapes", b"SET key \"\\x00\\xfF\\x41\"", &[b"SET", b"key", b"\x00\xFFA"]),
    ("half-hex-escape", b"SET key \"\\x4g\\xg4\\x\"", &[b"SET", b"key", b"x4gxg4x"]),
    ("single-quote-escape", b"SET key 'it\\'s \\n'", &[b"SET", b"key", b"it's \\n"]),
    ("quotes-inside-quotes", b"SET \"'\" '\"'", &[b"SET", b"'", b"\""]),
    ("quote-inside-word", b"SET ke\"y 1\"", &[b"SET", b"key 1"]),
    ("backslash-outside", b"SET a\\n b", &[b"SET", b"a\\n", b"b"]),
    ("nul-ends-line", b"PING\0 more", &[b"PING"]),
    ("high-bytes", b"SET \xC3\xA9 \xFF", &[b"SET", b"\xC3\xA9", b"\xFF"]),
    ("carriage-return-inside", b"PING\rmore", &[b"PING", b"more"]),
    ("dollar", b"$3", &[b"$3"]),
];

fn inlines() -> Vec<Vector> {
    let mut out = Vec::new();
    for (id, line, texts) in INLINES {
        let mut args = Args::default();
        texts.iter().for_each(|text| args.push(Arg::Bytes(Bytes::of(text))));
        for (suffix, end) in [("crlf", &b"\r\n"[..]), ("lf", b"\n")] {
            let comment = format!("inline: {}, ended by {suffix}", id.replace('-', " "));
            out.push(vector(&format!("inline.{id}-{suffix}"), &comment, Bytes::of(line).and(end), &args));
        }
    }
    let long = many("SET", Bytes::repeated(b"a", 3000), 1);
    let wire = Bytes::from("SET ").join(&Bytes::repeated(b"a", 3000)).and(b"\r\n");
    out.push(vector("inline.long-word", "inline: a word of 3,000 bytes", wire, &long));
    let words = many("DEL", Bytes::from("k"), 1000);
    let wire = Bytes::from("DEL").join(&Bytes::repeated(b" k", 1000)).and(b"\r\n");
    out.push(vector("inline.many-words", "inline: 1,001 words", wire, &words));
    out
}

fn limits() -> (Vec<Vector>, Vec<Vector>) {
    let (mut valid, mut invalid) = (Vec::new(), Vec::new());
    let mut add = |id: &str,
                   vector: &Vector,
                   name: &'static str,
                   value: usize,
                   error: (&'static str, usize),
                   unauthenticated: bool| {
        let (mut at, mut past) = (vector.clone().limit(name, value), vector.clone().limit(name, value - 1));
        if unauthenticated {
            (at, past) = (at.limit("unauthenticated", 1), past.limit("unauthenticated", 1));
        }
        at.id = format!("resp.request.limit.{id}-at");
        past.id = format!("resp.request.limit.{id}-past");
        at.comment = format!("{name} is {value}, which it needs");
        past.comment = format!("{name} is {}, one less than it needs", value - 1);
        past.outcome = Outcome::Invalid { error: error.0, offset: error.1 };
        valid.push(at);
        invalid.push(past);
    };
    let three = array("", "", &Args::texts(&["SET", "key", "value"]));
    add("arguments", &three, "arguments_max", 3, ("multibulk-length", 0), false);
    add("arguments-unauthenticated", &three, "arguments_max", 3, ("unauthenticated-arguments", 0), true);
    let ten = array("", "", &many("MGET", Bytes::from("k"), 11));
    add("12-arguments", &ten, "arguments_max", 12, ("multibulk-length", 0), false);
    for len in [9usize, 10, 99, 100, 300] {
        let long = array("", "", &many("GET", Bytes::repeated(b"x", len), 1));
        add(&format!("argument-{len}"), &long, "argument_bytes_max", len, ("bulk-length", 13), false);
        add(
            &format!("argument-{len}-unauthenticated"),
            &long,
            "argument_bytes_max",
            len,
            ("unauthenticated-argument", 13),
            true,
        );
        add(
            &format!("frame-{len}"),
            &long,
            "frame_bytes_max",
            long.wire.len(),
            ("frame-too-long", 13),
            false,
        );
    }
    let line = Bytes::from("SET key value");
    let args = Args::texts(&["SET", "key", "value"]);
    for (end, name) in [(&b"\r\n"[..], "crlf"), (b"\n", "lf")] {
        let inline = vector("", "", line.clone().and(end), &args);
        add(&format!("inline-{name}"), &inline, "inline_bytes_max", 13, ("inline-too-long", 12), false);
    }
    let inline = vector("", "", line.and(b"\r\n"), &args);
    add("inline-arguments", &inline, "arguments_max", 3, ("too-many-arguments", 8), false);
    add("inline-argument", &inline, "argument_bytes_max", 5, ("argument-too-long", 8), false);
    (valid, invalid)
}

fn wrong() -> Vec<Vector> {
    let case = |id: &str, comment: &str, wire: &[u8], error: &'static str, offset: usize| {
        Vector::invalid(
            "request",
            format!("resp.request.bad.{id}"),
            "resp",
            comment,
            Bytes::of(wire),
            (error, offset),
        )
    };
    let mut out = vec![
        case("expected-bulk", "an argument that is an integer", b"*1\r\n:1\r\n", "expected-bulk", 4),
        case(
            "expected-bulk-second",
            "the second argument is no bulk",
            b"*2\r\n$3\r\nGET\r\nkey\r\n",
            "expected-bulk",
            13,
        ),
        case("nested", "an array inside", b"*1\r\n*1\r\n$1\r\na\r\n", "expected-bulk", 4),
        case("bulk-end", "an argument that is longer than it says", b"*1\r\n$3\r\nGETX\r\n", "bulk-end", 11),
        case("bulk-end-lf", "LF alone behind an argument", b"*1\r\n$3\r\nGET\n\n", "bulk-end", 11),
        case("bulk-end-cr", "CR without LF behind an argument", b"*1\r\n$3\r\nGET\rx", "bulk-end", 11),
        case("null-argument", "a null argument", b"*1\r\n$-1\r\n", "bulk-length", 4),
        case("quotes-open", "a quote that is not closed", b"SET key \"a b\r\n", "unbalanced-quotes", 8),
        case(
            "single-quotes-open",
            "a single quote that is not closed",
            b"SET key 'a b\r\n",
            "unbalanced-quotes",
            8,
        ),
        case(
            "quotes-followed",
            "a closing quote that does not end the word",
            b"SET key \"a\"b\r\n",
            "unbalanced-quotes",
            8,
        ),
        case(
            "single-quotes-followed",
            "the same with single quotes",
            b"SET 'a''b'\r\n",
            "unbalanced-quotes",
            4,
        ),
        case(
            "quotes-escaped-open",
            "an escape that eats the closing quote",
            b"SET \"a\\\"\r\n",
            "unbalanced-quotes",
            4,
        ),
        case("quotes-nul", "a NUL inside quotes", b"SET \"a\0b\"\r\n", "unbalanced-quotes", 4),
    ];
    for (name, text) in [
        ("letter", "x"),
        ("empty", ""),
        ("plus", "+1"),
        ("zero-first", "01"),
        ("minus-zero", "-0"),
        ("blank", " 1"),
        ("blank-after", "1 "),
        ("point", "1.0"),
        ("past-i64", "9223372036854775808"),
        ("past-u64", "18446744073709551617"),
        ("minus", "-"),
        ("hex", "0x1"),
    ] {
        let wire = format!("*{text}\r\n");
        out.push(case(
            &format!("count-{name}"),
            &format!("a count {text:?}"),
            wire.as_bytes(),
            "multibulk-length",
            0,
        ));
        let wire = format!("*1\r\n${text}\r\n");
        out.push(case(
            &format!("length-{name}"),
            &format!("a length {text:?}"),
            wire.as_bytes(),
            "bulk-length",
            4,
        ));
    }
    out.push(case("count-past-limit", "2^31 arguments", b"*2147483648\r\n", "multibulk-length", 0));
    out.push(case("length-past-limit", "512 MiB and a byte", b"*1\r\n$536870913\r\n", "bulk-length", 4));
    out.push(case("count-cr", "CR without LF behind the count", b"*1\rx", "multibulk-length", 0));
    out.push(case("length-cr", "CR without LF behind a length", b"*1\r\n$1\rx", "bulk-length", 4));
    let digits = Bytes::repeated(b"1", 64);
    let endless = |id: &str, comment: &str, wire: Bytes, error: (&'static str, usize)| {
        Vector::invalid("request", format!("resp.request.bad.{id}"), "resp", comment, wire, error)
    };
    out.push(endless(
        "count-endless",
        "a count of 64 digits",
        Bytes::from("*").join(&digits),
        ("multibulk-line", 0),
    ));
    out.push(endless(
        "length-endless",
        "a length of 64 digits",
        Bytes::from("*1\r\n$").join(&digits),
        ("bulk-line", 4),
    ));
    out.push(endless(
        "inline-endless",
        "a line of 65,538 bytes",
        Bytes::repeated(b"a", 65_538),
        ("inline-too-long", 65_536),
    ));
    out
}
