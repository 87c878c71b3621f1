//! Vectors of the folded mode (spec section E.1): names and keywords in any case, options in any order, and what stays
//! ARGV.
//!
//! It owns the spellings, written by hand; the typed frames are [`super::layout`]'s. Where a command has a typed frame,
//! the test below checks that the spelling has the same words as the frame's argument form.

use super::argument::Args;
use super::bytes::Bytes;
use super::frames::{argv, command};
use super::layout::{Plan, fields, sample};
use super::requests::{id, request, value};
use super::vector::{Outcome, Uses, Vector};
use crate::model::Command;

/// Spellings that fold: name of the case, command, option bits, list and its items, enumeration and its value,
/// arguments.
type Folds =
    (&'static str, &'static str, u16, Option<(usize, usize)>, (usize, usize), &'static [&'static str]);

const NO: (usize, usize) = (0, 0);

/// The values are those of [`Plan::SMALLEST`]: a text is its field's name, integers count from 1, doubles are 1.5.
const FOLDS: &[Folds] = &[
    ("lower-case", "GET", 0, None, NO, &["get", "key"]),
    ("mixed-case", "GET", 0, None, NO, &["gEt", "key"]),
    ("lower-case", "PING", 0, None, NO, &["ping"]),
    ("lower-case", "SET", 0, None, NO, &["set", "key", "value"]),
    ("flag", "SET", 0b1, None, NO, &["SET", "key", "value", "nx"]),
    ("reordered", "SET", 0b1001, None, NO, &["set", "key", "value", "ex", "1", "nx"]),
    ("reordered-upper-case", "SET", 0b110, None, NO, &["SET", "key", "value", "GET", "XX"]),
    ("three-reordered", "SET", 0b1_0110, None, NO, &["Set", "key", "value", "Px", "1", "GeT", "xX"]),
    ("keepttl", "SET", 0b1000_0001, None, NO, &["SET", "key", "value", "KEEPTTL", "NX"]),
    ("persist", "GETEX", 0b1_0000, None, NO, &["getex", "key", "persist"]),
    ("lower-case", "ZADD", 0b1_0001, Some((2, 1)), NO, &["zadd", "key", "nx", "ch", "1.5", "member"]),
    ("reordered", "ZADD", 0b1_0001, Some((2, 1)), NO, &["zadd", "key", "ch", "nx", "1.5", "member"]),
    ("reordered", "GEOADD", 0b101, Some((2, 1)), NO, &["geoadd", "key", "ch", "nx", "1.5", "1.5", "member"]),
    ("reordered", "ZRANGE", 0b11, None, NO, &["zrange", "key", "1", "2", "withscores", "rev"]),
    ("lower-case", "LMOVE", 0, None, (3, 1), &["lmove", "source", "destination", "left", "right"]),
    ("lower-case", "LINSERT", 0, None, (1, 1), &["linsert", "key", "after", "pivot", "element"]),
    ("two-words", "XTRIM", 0, None, (1, 2), &["xtrim", "key", "maxlen", "~", "1"]),
    ("km", "GEODIST", 0b10, None, NO, &["geodist", "key", "member1", "member2", "km"]),
    (
        "two-words",
        "ZUNION",
        0b1010,
        Some((0, 1)),
        NO,
        &["zunion", "1", "key", "withscores", "aggregate", "min"],
    ),
    (
        "lower-case",
        "XREAD",
        0b11,
        Some((1, 1)),
        NO,
        &["xread", "count", "1", "block", "2", "streams", "key", "id"],
    ),
    (
        "reordered",
        "XREAD",
        0b11,
        Some((1, 1)),
        NO,
        &["XREAD", "BLOCK", "2", "COUNT", "1", "STREAMS", "key", "id"],
    ),
    ("reordered", "SCAN", 0b111, None, NO, &["scan", "1", "type", "type", "count", "2", "match", "pattern"]),
    (
        "reordered",
        "HELLO",
        0b11,
        None,
        NO,
        &["hello", "1", "setname", "clientname", "auth", "username", "password"],
    ),
    (
        "reordered",
        "XCLAIM",
        0b11,
        Some((4, 1)),
        NO,
        &["xclaim", "key", "group", "consumer", "1", "id", "justid", "force"],
    ),
    (
        "before-a-list",
        "HEXPIRE",
        0b1,
        Some((3, 1)),
        NO,
        &["hexpire", "key", "1", "nx", "fields", "1", "field"],
    ),
    ("reordered", "COPY", 0b11, None, NO, &["copy", "source", "destination", "replace", "db", "1"]),
    ("positional", "LPOP", 0b1, None, NO, &["lpop", "key", "1"]),
    ("positional", "ZRANDMEMBER", 0b11, None, NO, &["zrandmember", "key", "1", "withscores"]),
    ("positional", "BITCOUNT", 0b101, None, NO, &["BITCOUNT", "key", "1", "2", "bit"]),
    ("lower-case", "JSON.SET", 0b1, None, NO, &["json.set", "key", "path", "json", "nx"]),
    ("lower-case", "JSON.DEL", 0b1, None, NO, &["Json.Del", "key", "path"]),
    ("lower-case", "BF.RESERVE", 0b10, None, NO, &["bf.reserve", "key", "1.5", "1", "nonscaling"]),
    ("lower-case", "FT.INFO", 0, None, NO, &["ft.info", "index"]),
];

/// Commands that folding leaves as they are, and why.
const KEPT: &[(&str, &str, &[&str])] = &[
    ("option-twice", "an option twice", &["set", "key", "value", "nx", "nx"]),
    ("option-twice-apart", "an option twice, another between", &["SET", "key", "value", "NX", "GET", "nx"]),
    (
        "option-twice-with-values",
        "an option and its value twice",
        &["SET", "key", "value", "EX", "10", "EX", "10"],
    ),
    ("exclusive-options", "options that exclude each other", &["set", "key", "value", "xx", "nx"]),
    ("option-without-value", "an option whose value is missing", &["set", "key", "value", "ex"]),
    ("option-unknown", "an option without a bit", &["set", "key", "value", "ifeq", "other"]),
    ("integer", "a number in another spelling", &["set", "key", "value", "ex", "+10"]),
    ("double", "a double in another spelling", &["zadd", "key", "1.0", "member"]),
    ("double-inf", "an infinity in upper case", &["zadd", "key", "INF", "member"]),
    ("count", "a count in another spelling", &["sintercard", "01", "key"]),
    (
        "positional-after-word",
        "the range of BITCOUNT behind its unit",
        &["BITCOUNT", "key", "BIT", "0", "-1"],
    ),
    ("positional-after-word-lower-case", "the same in lower case", &["bitcount", "key", "bit", "0", "-1"]),
    (
        "positional-after-flag",
        "the count of ZRANDMEMBER behind a flag",
        &["zrandmember", "key", "withscores", "1"],
    ),
    ("positional-text", "a count that is no number", &["lpop", "key", "count"]),
    ("positional-too-large", "a count that is no u16", &["lpop", "key", "65536"]),
    (
        "options-behind-list",
        "options behind the list that they stand before",
        &["zadd", "key", "1.5", "member", "nx"],
    ),
    (
        "odd-streams",
        "three words behind STREAMS, one of them an option's",
        &["xread", "streams", "key", "0", "count"],
    ),
    ("words-apart", "two words of one keyword apart", &["zunion", "1", "key", "min", "aggregate"]),
    ("enum-unknown", "a word that the enumeration lacks", &["lmove", "a", "b", "left", "middle"]),
    ("unknown-command", "a name that the table lacks keeps its case", &["NoSuch", "a"]),
    ("too-few-arguments", "fewer arguments than the layout has", &["set", "key"]),
    ("not-ascii", "letters whose case is not ASCII's", &["\u{17f}et", "key", "value"]),
];

fn folded(mut vector: Vector) -> Vector {
    if let Outcome::Valid { uses, .. } = &mut vector.outcome {
        *uses = Uses::Folded;
    }
    vector
}

/// All of them.
#[must_use]
pub fn vectors(commands: &[Command]) -> Vec<Vector> {
    let mut out = Vec::new();
    for (name, command_name, bits, list, choice, words) in FOLDS {
        let command = command(commands, command_name);
        let Some(fields) = fields(command) else { continue };
        let plan = Plan { bits: *bits, list: *list, choice: *choice, ..Plan::SMALLEST };
        let built = sample(command, fields, &plan);
        let comment = format!("`{}` folds", words.join(" "));
        let value = value(command, 0, built.options, &built.args);
        let id = id(command, &format!("folded-{name}"));
        out.push(folded(request(&id, "E.1", comment, built.wire, value, &Args::texts(words))));
    }
    // The `args` layout folds its name and nothing else.
    for (name, words) in [("CLIENT", ["client", "list"]), ("FT.SEARCH", ["Ft.Search", "Index"])] {
        let command = command(commands, name);
        let args = Args::texts(&words[1..]);
        let wire = super::layout::command_header(command, 0).join(&args.sized());
        let comment = format!("`{}`: the name folds, the arguments stay", words.join(" "));
        let value = value(command, 0, None, &args);
        out.push(folded(request(&id(command, "folded"), "E.1", comment, wire, value, &Args::texts(&words))));
    }
    for (name, comment, words) in KEPT {
        let args = Args::texts(words);
        out.push(folded(argv(&format!("folded-{name}"), "E.1", &format!("{comment}: not folded"), 0, &args)));
    }
    let mut args = Args::texts(&["get"]);
    args.push(super::argument::Arg::Bytes(Bytes::repeated(b"k", 65_536)));
    out.push(folded(argv("folded-long-key", "E.1", "a key that is too long: not folded", 0, &args)));
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn spellings_have_the_words_of_their_frames() {
        let commands = crate::model::load(std::path::Path::new("../..")).unwrap();
        let words = |bytes: &Bytes| {
            let text = String::from_utf8(bytes.expand()).unwrap().to_lowercase();
            let mut words: Vec<String> = text.split("\r\n").map(str::to_string).collect();
            words.sort();
            words
        };
        for (_, name, bits, list, choice, spelled) in FOLDS {
            let command = command(&commands, name);
            let plan = Plan { bits: *bits, list: *list, choice: *choice, ..Plan::SMALLEST };
            let built = sample(command, fields(command).unwrap(), &plan);
            let canonical = built.args.named(name).to_resp();
            assert_eq!(words(&canonical), words(&Args::texts(spelled).to_resp()), "{name}");
            assert_ne!(canonical, Args::texts(spelled).to_resp(), "{name}");
        }
    }
}
