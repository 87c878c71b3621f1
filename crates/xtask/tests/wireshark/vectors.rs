//! The conformance vectors through the dissector: every valid one is shown as what it is, to its last byte, and every
//! invalid one is marked with its error and offset.
//!
//! Owns the comparison. It reads the vectors' JSON itself and renders their values itself, so that it shares nothing
//! with the dissector.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::capture::{Capture, From};
use crate::{hex, tshark};

/// Of the frames longer than this one in so many is taken: all of them would take a minute.
const WIRE_BYTES_MAX: usize = 70_000;
const LONG_ONES: usize = 20;
/// Fewer than `NODES_MAX` of the script.
const ARGUMENTS_SHOWN_MAX: usize = 2_000;

/// Summaries show all of an argument and all arguments up to these.
const SETTINGS: [&str; 4] = ["-o", "respb.argument_bytes:100000", "-o", "respb.arguments:100000"];

/// Types and values of more elements than this are not compared: the dissector does not show them.
const VALUES_MAX: usize = 700;

struct Vector {
    id: String,
    wire: Vec<u8>,
    json: Value,
}

impl Vector {
    fn from(&self) -> From {
        if self.json["direction"] == "request" { From::Client } else { From::Server }
    }
}

/// The vectors of `valid` or `invalid`, of all profiles and both directions.
fn vectors(kind: &str) -> Vec<Vector> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/vectors/respb");
    let folders = fs::read_dir(root).unwrap().map(|profile| profile.unwrap().path().join(kind));
    let mut files: Vec<PathBuf> =
        folders.flat_map(|dir| fs::read_dir(dir).unwrap()).map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let content: Value = serde_json::from_str(&text).unwrap();
        // What is only encoded is not what its bytes say.
        let shown = content["vectors"].as_array().unwrap().iter().filter(|json| json["encode_only"] != true);
        for json in shown {
            let id = json["id"].as_str().unwrap().to_owned();
            all.push(Vector { id, wire: bytes(&json["wire"]), json: json.clone() });
        }
    }
    all
}

/// Hexadecimal digits, or a list of them with `repeat` and `count`.
fn bytes(json: &Value) -> Vec<u8> {
    match json {
        Value::String(digits) => hex(digits),
        Value::Array(parts) => parts.iter().flat_map(bytes).collect(),
        _ => bytes(&json["repeat"]).repeat(json["count"].as_u64().unwrap() as usize),
    }
}

/// `{"text": …}` or `{"bytes": …}`.
fn text(json: &Value) -> Vec<u8> {
    json["text"].as_str().map_or_else(|| bytes(&json["bytes"]), |text| text.as_bytes().to_vec())
}

/// What the dissector makes of bytes: printable text.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for symbol in chunk.valid().chars() {
            match symbol {
                '\\' => out.push_str("\\\\"),
                '\0'..='\x1f' | '\x7f' => out.push_str(&format!("\\x{:02x}", symbol as u32)),
                _ => out.push(symbol),
            }
        }
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out
}

/// A command in RESP as one line.
fn line(argv: &[u8]) -> (String, usize) {
    let mut words = Vec::new();
    let mut rest = &argv[argv.iter().position(|byte| *byte == b'\n').unwrap() + 1..];
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
        let len: usize = std::str::from_utf8(&rest[1..end - 1]).unwrap().parse().unwrap();
        let word = &rest[end + 1..end + 1 + len];
        let shown = escaped(word);
        let is_plain = !word.is_empty() && !shown.contains([' ', '"', '|']);
        words.push(if is_plain { shown } else { format!("\"{}\"", shown.replace('"', "\\\"")) });
        rest = &rest[end + 1 + len + 2..];
    }
    (words.join(" "), words.len())
}

/// The types of a reply and all that is in it, in the order of their bytes, and the integers and texts likewise.
#[derive(Default)]
struct Values {
    types: Vec<String>,
    ints: Vec<String>,
    bulks: Vec<String>,
    doubles: usize,
}

impl Values {
    fn add(&mut self, json: &Value) {
        let members = json.as_object().unwrap();
        let has = |name: &str| members.contains_key(name);
        if has("nest") {
            return self.nested(json);
        } else if has("repeat") {
            for _ in 0..json["count"].as_u64().unwrap() {
                json["repeat"].as_array().unwrap().iter().for_each(|value| self.add(value));
            }
            return;
        }
        let kinds = [
            ("array", "array"),
            ("set", "set"),
            ("push", "push"),
            ("map", "map"),
            ("attribute", "attribute"),
            ("int", "integer"),
            ("bulk", "bulk"),
            ("simple", "simple"),
            ("error", "error"),
            ("null", "null"),
            ("bool", "boolean"),
            ("double", "double"),
            ("big", "big-number"),
            ("big_number", "big-number"),
            ("verbatim", "verbatim"),
        ];
        let (member, kind) =
            kinds.into_iter().find(|(member, _)| has(member)).unwrap_or_else(|| panic!("{json}"));
        let content = &json[member];
        let is_ok = kind == "simple" && text(content) == b"OK";
        self.types.push(if is_ok { "ok".to_owned() } else { kind.to_owned() });
        match kind {
            "integer" => self.ints.push(content.as_str().unwrap().to_owned()),
            "bulk" => self.bulks.extend(Some(escaped(&text(content))).filter(|text| !text.is_empty())),
            "double" => self.doubles += 1,
            "array" | "set" | "push" => content.as_array().unwrap().iter().for_each(|value| self.add(value)),
            "map" | "attribute" => self.pairs(content),
            _ => {}
        }
        if kind == "attribute" {
            self.add(&json["value"]);
        }
    }

    fn pairs(&mut self, json: &Value) {
        for pair in json.as_array().unwrap() {
            match pair.as_array() {
                Some(pair) => pair.iter().for_each(|value| self.add(value)),
                None => {
                    for _ in 0..pair["count"].as_u64().unwrap() {
                        self.pairs(&pair["repeat"]);
                    }
                }
            }
        }
    }

    /// `depth` aggregates inside each other.
    fn nested(&mut self, json: &Value) {
        let name = json["nest"].as_str().unwrap();
        for _ in 0..json["depth"].as_u64().unwrap() {
            self.types.push(name.split('_').next().unwrap().to_owned());
            if name == "map_value" {
                self.types.push("bulk".to_owned());
                self.bulks.push("k".to_owned());
            }
        }
        if name == "map_key" || name == "attribute" {
            // What follows the nested value repeats outwards; the types up to it are enough.
            self.types.clear();
            return;
        }
        self.add(&json["value"]);
    }
}

const NAMES: [&str; 16] = [
    "respb.malformed",
    "respb.malformed.offset",
    "respb.frame",
    "respb.channel",
    "respb.frame_length",
    "respb.command",
    "respb.argv",
    "respb.argc",
    "respb.type",
    "respb.int",
    "respb.bulk",
    "respb.double",
    "respb.close.code",
    "respb.close.reason",
    "respb.cancel",
    "respb.window",
];

/// Sends each vector on a connection of its own, behind a PING so that it is not the first frame; gives each row.
fn dissect(vectors: &[Vector]) -> Vec<tshark::Row> {
    let mut capture = Capture::new();
    let mut places = Vec::new();
    for (port, vector) in (8_000..).zip(vectors) {
        capture.send(port, From::Client, &hex("0300 0000"));
        places.push(capture.send(port, vector.from(), &vector.wire));
    }
    let rows = tshark::fields(&capture, &NAMES, &SETTINGS);
    places.into_iter().map(|place| rows[place - 1].clone()).collect()
}

fn cell<'a>(row: &'a tshark::Row, name: &str) -> &'a [String] {
    &row[NAMES.iter().position(|known| *known == name).unwrap()]
}

/// What is wrong with the row of a valid vector.
fn differences(vector: &Vector, row: &tshark::Row) -> Vec<String> {
    let mut found = Vec::new();
    let mut expect = |name: &str, expected: &[String]| {
        // Slices that are no reply of their own add the fields of nothing.
        if cell(row, name) != expected {
            found.push(format!("{}: {name} is {:?}, not {expected:?}", vector.id, cell(row, name)));
        }
    };
    let value = &vector.json["value"];
    let one = |text: &str| vec![text.to_owned()];
    expect("respb.malformed", &[]);
    expect("respb.channel", &one(&value["channel"].to_string()));
    expect("respb.frame_length", &one(&vector.wire.len().to_string()));
    let frame = value["frame"].as_str().unwrap();
    let is_ignored = frame == "unknown" && value["ignorable"] == true;
    expect("respb.frame", &one(if is_ignored { "ignored" } else { frame }));
    // A folded vector's arguments are spelled in another way than its frame.
    if !vector.json["argv"].is_null() && vector.json["folded"] != true {
        let (line, count) = line(&bytes(&vector.json["argv"]));
        // A line of more arguments than the tree has room for is cut.
        if count <= ARGUMENTS_SHOWN_MAX {
            expect("respb.argv", &one(&line));
        }
        expect("respb.argc", &one(&count.to_string()));
        let first = line.split(' ').next().unwrap().to_uppercase();
        let command = value["command"].as_str().unwrap_or(&first);
        expect(
            "respb.command",
            &Some(command.to_owned()).filter(|name| name != "\"\"").into_iter().collect::<Vec<_>>(),
        );
    }
    if !value["reply"].is_null() {
        let mut values = Values::default();
        values.add(&value["reply"]);
        if !values.types.is_empty() && values.types.len() < VALUES_MAX {
            // OK in a form for any text is a simple string like others.
            if !vector.id.contains(".longer.") {
                expect("respb.type", &values.types);
            }
            expect("respb.int", &values.ints);
            let is_short = values.bulks.iter().all(|bulk| bulk.len() < 4_000);
            if is_short {
                expect("respb.bulk", &values.bulks);
            }
        }
    }
    let number = |name: &str| value[name].as_str().map(str::to_owned).into_iter().collect::<Vec<_>>();
    match frame {
        "cancel" => expect("respb.cancel", &number("sequence")),
        "window" => expect("respb.window", &number("more")),
        "close" | "goaway" if vector.wire.len() > 8 => {
            expect("respb.close.code", &number("code"));
            let reason = escaped(&text(&value["reason"]));
            expect(
                "respb.close.reason",
                &Some(reason).filter(|text| !text.is_empty()).into_iter().collect::<Vec<_>>(),
            );
        }
        _ => {}
    }
    found
}

#[test]
fn valid_vectors_are_shown_as_what_they_are() {
    let all = vectors("valid");
    let count = all.len();
    let (mut vectors, long): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|vector| vector.wire.len() <= WIRE_BYTES_MAX);
    vectors.extend(long.into_iter().step_by(LONG_ONES));
    assert!(count >= 4_000 && vectors.len() >= 3_800, "{} of {count} vectors", vectors.len());
    let rows = dissect(&vectors);
    let found: Vec<String> =
        vectors.iter().zip(&rows).flat_map(|(vector, row)| differences(vector, row)).collect();
    assert!(
        found.is_empty(),
        "{} differences, such as:\n{}",
        found.len(),
        found[..found.len().min(20)].join("\n")
    );
    println!("{} of {count} valid vectors", vectors.len());
}

#[test]
fn invalid_vectors_are_marked() {
    let vectors = vectors("invalid");
    let rows = dissect(&vectors);
    let mut found = Vec::new();
    let mut by_defaults = 0;
    for (vector, row) in vectors.iter().zip(&rows) {
        let marked = [cell(row, "respb.malformed"), cell(row, "respb.malformed.offset")].concat();
        let expected =
            vec![vector.json["error"].as_str().unwrap().to_owned(), vector.json["offset"].to_string()];
        // A limit that the connection has set is not in the capture: under the defaults most of these frames are good.
        let limited = !vector.json["limits"].is_null();
        by_defaults += usize::from(!limited);
        if marked != expected && !(limited && marked.is_empty()) {
            found.push(format!("{}: {marked:?}, not {expected:?}", vector.id));
        }
    }
    assert!(
        found.is_empty(),
        "{} differences, such as:\n{}",
        found.len(),
        found[..found.len().min(20)].join("\n")
    );
    assert!(by_defaults >= 500, "{by_defaults} vectors");
    println!("{by_defaults} invalid vectors, and {} of limits", vectors.len() - by_defaults);
}
