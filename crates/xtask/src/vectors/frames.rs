//! Vectors of the frames that belong to no single command: ARGV, passthrough, control frames, frames of later versions,
//! channels, and what an encoder chooses between them.
//!
//! It owns the requests of sections 3.2, 3.5 to 3.7, 8 and 9 and of Annex E. Those that are wrong stand in
//! [`super::wrong_frames`].

use serde_json::{Value as Json, json};

use super::argument::{Arg, Args};
use super::bytes::Bytes;
use super::layout::{Length, Plan, Sample, argv_frame, fields, long_frame, sample};
use super::requests::{not_canonical, request, typed_vector, value};
use super::vector::{Outcome, Uses, Vector};
use crate::model::Command;

/// The command of this full name.
///
/// # Panics
/// When the table has none: the generator's own cases name commands that exist.
#[must_use]
pub fn command<'a>(commands: &'a [Command], name: &str) -> &'a Command {
    commands
        .iter()
        .find(|command| command.full_name() == name)
        .expect("the generator names commands that exist")
}

fn plain_value(channel: u16, frame: &str, args: &Args) -> Json {
    json!({"channel": channel, "frame": frame, "args": args.to_json()})
}

/// An ARGV vector that an encoder would write itself.
#[must_use]
pub fn argv(id: &str, section: &'static str, comment: &str, channel: u16, args: &Args) -> Vector {
    let value = plain_value(channel, "argv", args);
    request(&format!("respb.argv.{id}"), section, comment.into(), argv_frame(channel, args), value, args)
}

/// Arguments of equal bytes.
#[must_use]
pub fn many(first: &[&str], arg: &str, count: usize) -> Args {
    let mut args = Args::texts(first);
    args.push_repeat(vec![Arg::Bytes(Bytes::from(arg))], count);
    args
}

fn with_long(first: &[&str], len: usize, last: &[&str]) -> Args {
    let mut args = Args::texts(first);
    args.push(Arg::Bytes(Bytes::repeated(b"v", len)));
    last.iter().for_each(|text| args.push(Arg::Bytes(Bytes::from(*text))));
    args
}

/// ARGV frames.
#[must_use]
pub fn argvs(commands: &[Command]) -> Vec<Vector> {
    let mut out = vec![
        argv(
            "unknown-command",
            "3.6",
            "a name that the table does not have",
            0,
            &Args::texts(&["NOSUCH", "a", "b"]),
        ),
        argv("name-only", "3.6", "a name and nothing else", 0, &Args::texts(&["NOSUCH"])),
        argv(
            "empty-name",
            "3.6",
            "a name of no bytes: well-formed, an unknown command",
            0,
            &Args::texts(&["", "a"]),
        ),
        argv("empty-arguments", "3.6", "arguments of no bytes", 0, &Args::texts(&["NOSUCH", "", ""])),
        argv(
            "lower-case-name",
            "E.1",
            "a converter keeps the case of a name, and only ARGV can",
            0,
            &Args::texts(&["get", "key"]),
        ),
        argv("mixed-case-name", "E.1", "the same in mixed case", 0, &Args::texts(&["SeT", "key", "value"])),
        argv(
            "lower-case-option",
            "E.1",
            "the case of an option",
            0,
            &Args::texts(&["SET", "key", "value", "nx"]),
        ),
        argv(
            "options-in-another-order",
            "E.2",
            "options not in the order of the bits",
            0,
            &Args::texts(&["SET", "key", "value", "GET", "NX"]),
        ),
        argv(
            "repeated-option",
            "E.1",
            "an option twice",
            0,
            &Args::texts(&["SET", "key", "value", "GET", "GET"]),
        ),
        argv(
            "exclusive-options",
            "E.1",
            "options that exclude each other: a command error, not a wire error",
            0,
            &Args::texts(&["SET", "key", "value", "NX", "XX"]),
        ),
        argv(
            "option-without-value",
            "E.1",
            "an option whose value is missing",
            0,
            &Args::texts(&["SET", "key", "value", "EX"]),
        ),
        argv(
            "missing-requirement",
            "E.1",
            "a unit without the range that it needs",
            0,
            &Args::texts(&["BITCOUNT", "key", "BYTE"]),
        ),
        argv(
            "too-few-arguments",
            "E.1",
            "fewer arguments than the layout has",
            0,
            &Args::texts(&["SET", "key"]),
        ),
        argv(
            "too-many-arguments",
            "E.1",
            "more arguments than the layout has",
            0,
            &Args::texts(&["GET", "a", "b"]),
        ),
        argv(
            "bound-exclusive",
            "E.1",
            "`(1.5` is no double",
            0,
            &Args::texts(&["ZCOUNT", "key", "(1.5", "+inf"]),
        ),
        argv(
            "rare-option",
            "E.1",
            "an option that the layout lacks",
            0,
            &Args::texts(&["ZRANGE", "key", "0", "10", "BYSCORE", "LIMIT", "0", "5"]),
        ),
        argv(
            "wrong-count",
            "E.1",
            "a count that is not that of the items",
            0,
            &Args::texts(&["SINTERCARD", "3", "a", "b"]),
        ),
        argv("odd-pairs", "E.1", "a pair without its second half", 0, &Args::texts(&["MSET", "a", "1", "b"])),
        argv(
            "list-longer-than-u16",
            "E.1",
            "65,536 items do not fit a list16",
            0,
            &many(&["MGET"], "k", 65_536),
        ),
        argv(
            "key-longer-than-u16",
            "E.1",
            "a key of 65,536 bytes does not fit a str16",
            0,
            &with_long(&["GET"], 65_536, &[]),
        ),
        argv(
            "key-and-value-long",
            "E.1",
            "a long key and its value",
            0,
            &with_long(&["SET"], 65_536, &["value"]),
        ),
        argv("256-arguments", "3.6", "256 arguments", 0, &many(&["NOSUCH"], "a", 255)),
        argv("65536-arguments", "3.6", "65,536 arguments", 0, &many(&["NOSUCH"], "a", 65_535)),
    ];
    for len in [1usize, 255, 256, 65_535, 65_536] {
        out.push(argv(
            &format!("length-{len}"),
            "3.6",
            &format!("an argument of {len} bytes"),
            0,
            &with_long(&["NOSUCH"], len, &[]),
        ));
    }
    for text in
        ["+1", "01", "-0", " 1", "1 ", "1.0", "9223372036854775808", "-9223372036854775809", "", "1e3"]
    {
        let comment = format!("{text:?} is no canonical integer");
        out.push(argv(
            &format!("int-{}", slug(text)),
            "E.3",
            &comment,
            0,
            &Args::texts(&["INCRBY", "key", text]),
        ));
    }
    for text in ["+1.5", "1.50", "1e3", ".5", "nan", "Infinity", "+inf", "1.0", "0x10", "", "1e400"] {
        let comment = format!("{text:?} is no canonical double");
        out.push(argv(
            &format!("double-{}", slug(text)),
            "E.3",
            &comment,
            0,
            &Args::texts(&["ZINCRBY", "key", text, "member"]),
        ));
    }
    out.push(argv("u16-too-large", "E.3", "65,536 is no u16", 0, &Args::texts(&["LPOP", "key", "65536"])));
    out.push(argv("u16-negative", "E.3", "-1 is no u16", 0, &Args::texts(&["LPOP", "key", "-1"])));
    for name in
        ["PING", "GET", "SET", "DEL", "MSET", "ZADD", "XREAD", "EVAL", "CLIENT", "JSON.GET", "XPENDING"]
    {
        out.push(typed_as_argv(command(commands, name)));
    }
    out
}

/// A number's text as a part of an identifier.
#[must_use]
pub fn slug(text: &str) -> String {
    let word = |c: char| match c {
        '+' => "plus".into(),
        '-' => "minus".into(),
        ' ' => "blank".into(),
        '.' => "point".into(),
        c => c.to_string(),
    };
    if text.is_empty() { "empty".into() } else { text.chars().map(word).collect() }
}

/// The smallest frame of a command in both forms: its arguments, and its typed or `args` wire.
fn smallest(command: &Command, channel: u16) -> (Args, Bytes) {
    let plan = Plan { channel, ..Plan::SMALLEST };
    let (wire, args) = match fields(command) {
        Some(fields) => {
            let Sample { wire, args, .. } = sample(command, fields, &plan);
            (wire, args)
        }
        None => {
            let args = Args::texts(&["SUB", "one"]);
            (super::layout::command_header(command, channel).join(&args.sized()), args)
        }
    };
    (args.named(&command.full_name()), wire)
}

fn as_texts(args: &Args) -> Args {
    args.as_texts()
}

fn typed_as_argv(command: &Command) -> Vector {
    let (args, typed) = smallest(command, 0);
    let name = command.full_name();
    let args = as_texts(&args);
    let mut vector = argv(
        &format!("typed-{}", name.to_lowercase()),
        "E.1",
        &format!("{name} as ARGV: a typed frame says the same"),
        0,
        &args,
    );
    not_canonical(&mut vector, Some(typed));
    vector
}

/// Passthrough frames.
#[must_use]
pub fn passthroughs(commands: &[Command]) -> Vec<Vector> {
    let vector = |id: &str, comment: &str, channel: u16, args: &Args, wire: Bytes, canonical: Bytes| {
        let id = format!("respb.passthrough.{id}");
        let mut vector =
            request(&id, "3.7", comment.into(), wire, plain_value(channel, "passthrough", args), args);
        not_canonical(&mut vector, Some(canonical));
        vector
    };
    let frame = |channel: u16, args: &Args| long_frame(0xFFFF, channel, &args.to_resp());
    let mut out = Vec::new();
    for (channel, name) in [(0, "GET"), (1, "PING"), (255, "SET"), (65_535, "CLIENT"), (256, "JSON.GET")] {
        let (args, typed) = smallest(command(commands, name), channel);
        let args = as_texts(&args);
        let comment = format!("{name} in RESP");
        out.push(vector(&name.to_lowercase(), &comment, channel, &args, frame(channel, &args), typed));
    }
    for (id, comment, args) in [
        ("unknown-command", "a name that the table does not have", Args::texts(&["NOSUCH", "a"])),
        ("lower-case", "the case of the name is kept", Args::texts(&["get", "key"])),
        ("empty-argument", "an argument of no bytes", Args::texts(&["NOSUCH", ""])),
        ("key-longer-than-u16", "a key of 65,536 bytes", with_long(&["GET"], 65_536, &[])),
        ("256-arguments", "256 arguments", many(&["NOSUCH"], "a", 255)),
    ] {
        out.push(vector(id, comment, 0, &args, frame(0, &args), argv_frame(0, &args)));
    }
    out
}

/// A frame that carries no arguments.
#[must_use]
pub fn control(
    direction: &'static str,
    id: &str,
    section: &'static str,
    comment: &str,
    wire: Bytes,
    value: Json,
) -> Vector {
    let outcome =
        Outcome::Valid { value, argv: None, canonical: true, canonical_wire: None, uses: Uses::All };
    Vector {
        id: format!("respb.{direction}.{id}"),
        section,
        comment: comment.into(),
        direction,
        limits: Vec::new(),
        wire,
        outcome,
    }
}

fn close(direction: &'static str, id: &str, comment: &str, channel: u16, code: u16, reason: &[u8]) -> Vector {
    let payload = if code == 0 && reason.is_empty() {
        Bytes::new()
    } else {
        Bytes::of(&code.to_be_bytes()).and(reason)
    };
    let reason_value = Bytes::of(reason).to_value();
    let value =
        json!({"channel": channel, "frame": "close", "code": code.to_string(), "reason": reason_value});
    control(direction, &format!("close.{id}"), "8.4", comment, long_frame(0xFF01, channel, &payload), value)
}

/// GOAWAY: a receiver does not look at the channel.
fn goaway(id: &str, channel: u16, code: u16, reason: &[u8]) -> Vector {
    let payload = Bytes::of(&code.to_be_bytes()).and(reason);
    let reason = Bytes::of(reason).to_value();
    let value = json!({"channel": channel, "frame": "goaway", "code": code.to_string(), "reason": reason});
    let wire = long_frame(0xFF04, channel, &payload);
    let comment = format!("GOAWAY with code {code}, named channel {channel}");
    control("reply", &format!("goaway.{id}"), "8.5", &comment, wire, value)
}

/// Control frames and frames of later versions, in one direction.
#[must_use]
pub fn controls(direction: &'static str) -> Vec<Vector> {
    let mut out = vec![
        close(direction, "plain", "CLOSE without a reason", 1, 0, b""),
        close(direction, "code", "CLOSE with a code", 1, 1, b""),
        close(direction, "reason", "CLOSE with a code and a text", 256, 2, b"queue is full"),
        close(direction, "reason-without-code", "CLOSE with code 0 and a text", 65_535, 0, b"bye"),
        close(direction, "channel-0", "CLOSE of channel 0", 0, 0, b""),
        close(
            direction,
            "largest-code",
            "CLOSE with the greatest code and a reason of 300 bytes",
            1,
            65_535,
            &[b'r'; 300],
        ),
    ];
    let mut spelled = close(direction, "spelled-out", "CLOSE with code 0 written out", 1, 0, b"");
    spelled.wire = long_frame(0xFF01, 1, &Bytes::of(&[0, 0]));
    not_canonical(&mut spelled, Some(long_frame(0xFF01, 1, &Bytes::new())));
    out.push(spelled);
    if direction == "request" {
        for (value, channel) in [(0u32, 0u16), (1, 1), (256, 255), (u32::MAX, 65_535)] {
            let payload = Bytes::of(&value.to_be_bytes());
            let cancel = json!({"channel": channel, "frame": "cancel", "sequence": value.to_string()});
            let comment = format!("CANCEL of request {value}");
            out.push(control(
                direction,
                &format!("cancel.{value}"),
                "8.6",
                &comment,
                long_frame(0xFF02, channel, &payload),
                cancel,
            ));
            let window = json!({"channel": channel, "frame": "window", "more": value.to_string()});
            let comment = format!("WINDOW of {value} bytes");
            out.push(control(
                direction,
                &format!("window.{value}"),
                "9.2",
                &comment,
                long_frame(0xFF03, channel, &payload),
                window,
            ));
        }
    } else {
        for (id, channel, code, reason) in [
            ("shutdown", 0u16, 6u16, &b"the server shuts down"[..]),
            ("code", 0, 5, b""),
            ("code-0", 0, 0, b""),
            ("unreadable", 0, 8, b"ERR Protocol error: unknown opcode 0x07FF"),
            ("largest", 0, 65_535, &[b'r'; 300]),
            ("any-channel", 7, 6, b""),
        ] {
            out.push(goaway(id, channel, code, reason));
        }
        for (last, len) in [(false, 1usize), (true, 1), (false, 0), (true, 0), (false, 65_536), (true, 256)] {
            let slice = Bytes::repeated(&[0x80], len);
            let payload = Bytes::of(&[u8::from(last)]).join(&slice);
            let value = json!({"channel": 9, "frame": "fragment", "last": last, "slice": slice.to_value()});
            let id = format!("fragment.{}-{len}", if last { "last" } else { "more" });
            let comment =
                format!("FRAGMENT of {len} bytes, {}", if last { "the last" } else { "more follow" });
            out.push(control(direction, &id, "9.1", &comment, long_frame(0xFF10, 9, &payload), value));
        }
    }
    for opcode in [0xF002u16, 0xF003, 0xF7FF, 0xFEFE, 0xFEFF, 0xFF00, 0xFF05, 0xFF0F, 0xFF11, 0xFF80, 0xFFFE]
    {
        for len in [0usize, 1, 300] {
            let ignorable = opcode >= 0xFF00;
            let name = format!("0x{opcode:04x}");
            let value = json!({"channel": 3, "frame": "unknown", "opcode": name, "ignorable": ignorable});
            let what = if ignorable { "ignored" } else { "passed over, with an error to a client" };
            let comment = format!("opcode {opcode:#06x} of a later version, {len} bytes: {what}");
            let wire = long_frame(opcode, 3, &Bytes::repeated(&[0xEE], len));
            let mut vector =
                control(direction, &format!("unknown.{opcode:04x}-{len}"), "3.5", &comment, wire, value);
            not_canonical(&mut vector, None);
            out.push(vector);
        }
    }
    out
}

/// Every kind of request on channels around the sizes of the field.
#[must_use]
pub fn channels(commands: &[Command]) -> Vec<Vector> {
    let mut out = Vec::new();
    for channel in [0u16, 1, 255, 256, 65_535] {
        for name in [
            "PING", "QUIT", "GET", "SET", "MGET", "MSET", "SADD", "HSET", "INCRBY", "LRANGE", "LREM", "ZADD",
            "XREAD", "JSON.DEL",
        ] {
            let command = command(commands, name);
            let Some(fields) = fields(command) else { continue };
            let plan = Plan { channel, ..Plan::SMALLEST };
            out.push(typed_vector(
                command,
                fields,
                &format!("channel-{channel}"),
                "3.1",
                &format!("on channel {channel}"),
                &plan,
            ));
        }
        let args = Args::texts(&["LIST"]);
        let client = command(commands, "CLIENT");
        let wire = super::layout::command_header(client, channel).join(&args.sized());
        let id = format!("respb.client.channel-{channel}");
        let comment = format!("CLIENT on channel {channel}");
        out.push(request(
            &id,
            "3.1",
            comment,
            wire,
            value(client, channel, None, &args),
            &args.named("CLIENT"),
        ));
        let args = Args::texts(&["NOSUCH", "a"]);
        out.push(argv(
            &format!("channel-{channel}"),
            "3.1",
            &format!("ARGV on channel {channel}"),
            channel,
            &args,
        ));
    }
    out
}

/// Frames whose arguments read another way than they were written.
#[must_use]
pub fn look_alikes(commands: &[Command]) -> Vec<Vector> {
    let raw = |name: &str, path: &str, bytes: &[u8]| {
        let command = command(commands, name);
        let text = Bytes::of(bytes);
        let plan = Plan {
            raw: Some((path.into(), [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat())),
            ..Plan::SMALLEST
        };
        let built = fields(command).map(|fields| sample(command, fields, &plan));
        (command, text, built.expect("these commands have typed layouts"))
    };
    let mut out = Vec::new();
    // XCLAIM's identifiers end at the first option: one that is spelled like an option ends them too early.
    let (xclaim, _, built) = raw("XCLAIM", "ids.id", b"FORCE");
    let wire = built.wire.clone();
    let mut args = built.args.clone();
    args.replace_text("id", "FORCE");
    let named = args.named("XCLAIM");
    let mut vector = request(
        "respb.xclaim.id-like-an-option",
        "E.1",
        "XCLAIM: an identifier FORCE would be read as the option: sent as ARGV".into(),
        wire,
        value(xclaim, 0, built.options, &args),
        &named,
    );
    not_canonical(&mut vector, Some(argv_frame(0, &named)));
    out.push(vector);
    for (name, path, word) in [
        ("SET", "key", "EX"),
        ("GETEX", "key", "PERSIST"),
        ("MGET", "keys.key", "MGET"),
        ("LPOP", "key", "COUNT"),
    ] {
        let (command, _, built) = raw(name, path, word.as_bytes());
        let mut args = built.args.clone();
        args.replace_text("key", word);
        let id = format!("respb.{}.key-like-an-option", name.to_lowercase());
        let comment = format!("{name}: a key {word} is a key");
        let named = args.named(name);
        out.push(request(&id, "E.1", comment, built.wire, value(command, 0, built.options, &args), &named));
    }
    out
}

/// The straight decoders at the places where a request can be cut: long items between short ones.
#[must_use]
pub fn mixed_lengths(commands: &[Command]) -> Vec<Vector> {
    let mut out = Vec::new();
    for name in ["MGET", "SADD", "MSET", "HSET", "DEL", "LPUSH", "BLPOP", "SINTERCARD"] {
        let command = command(commands, name);
        let Some(fields) = fields(command) else { continue };
        let Some(list) = fields.iter().position(|field| !field.items.is_empty()) else { continue };
        for (suffix, length, count) in
            [("64-of-200", Length::Exact(200), 64), ("3000-empty", Length::Exact(0), 3000)]
        {
            let plan = Plan { length, list: Some((list, count)), ..Plan::SMALLEST };
            out.push(typed_vector(command, fields, suffix, "4.2", &format!("{count} items"), &plan));
        }
    }
    out
}
