//! Writes the conformance vectors as lines that `clib/tests/vectors.c` reads, so that the C side needs no JSON.
//!
//! `vectors_to_lines CONFORMANCE_VECTORS_FOLDER`. It translates notation and computes nothing: what decoding must give
//! comes from the files. The lines:
//!
//! ```text
//! vector ID          begins one
//! protocol 2|3|4     profile NAME     direction request|reply     limit NAME NUMBER
//! wire BYTES         argv BYTES    canonical BYTES    folded 1    encode_only 1
//! error NAME OFFSET  for an invalid one; otherwise
//! frame NAME  channel N  command NAME  options N  number N  last N  opcode N
//! v KIND …           one line for each value, in order: `v bytes BYTES`, `v integer N`, `v double BITS`, `v array N`,
//! … end
//! ```
//!
//! BYTES are hex, or pieces with commas between them, a piece being hex or `hex*count`; `-` is no bytes.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde_json::Value as Json;

fn text(json: &Json) -> &str {
    json.as_str().expect("a string")
}

/// BYTES of hex or of an array of pieces.
fn bytes(json: &Json) -> String {
    let pieces = match json {
        Json::Array(pieces) => pieces.iter().map(piece).collect::<Vec<_>>().join(","),
        other => piece(other),
    };
    if pieces.is_empty() { "-".to_owned() } else { pieces }
}

fn piece(json: &Json) -> String {
    match json {
        Json::String(hex) => hex.clone(),
        other => format!("{}*{}", text(&other["repeat"]), other["count"]),
    }
}

/// BYTES of `{"text": …}` or `{"bytes": …}`.
fn content(json: &Json) -> String {
    match json.get("text") {
        Some(text) => {
            let hex = self::text(text).bytes().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            if hex.is_empty() { "-".to_owned() } else { hex }
        }
        None => bytes(&json["bytes"]),
    }
}

/// The elements of an array with its repetitions written out.
fn elements(json: &Json) -> Vec<&Json> {
    let mut out = Vec::new();
    for element in json.as_array().expect("an array") {
        match element.get("repeat") {
            Some(group) => {
                for _ in 0..element["count"].as_u64().expect("a count") {
                    out.extend(group.as_array().expect("a group"));
                }
            }
            None => out.push(element),
        }
    }
    out
}

/// One argument.
fn argument(out: &mut String, json: &Json) {
    let _ = match json {
        json if json.get("int").is_some() => writeln!(out, "v integer {}", text(&json["int"])),
        json if json.get("double").is_some() => writeln!(out, "v double {}", text(&json["bits"])),
        json if json.get("keyword").is_some() => {
            writeln!(out, "v keyword {}", content(&serde_json::json!({"text": json["keyword"]})))
        }
        json => writeln!(out, "v bytes {}", content(json)),
    };
}

/// A reply, aggregates before their elements.
fn reply(out: &mut String, json: &Json) {
    let (name, value) = json.as_object().and_then(|object| object.iter().next()).expect("a value");
    if json.get("nest").is_some() {
        return nest(out, json);
    }
    if json.get("attribute").is_some() {
        pairs(out, "attribute", &json["attribute"]);
        return reply(out, &json["value"]);
    }
    if json.get("double").is_some() {
        let _ = writeln!(out, "v double {}", text(&json["bits"]));
        return;
    }
    let _ = match name.as_str() {
        "simple" | "error" | "big" => writeln!(out, "v {name} {}", content(value)),
        "bulk" => writeln!(out, "v bytes {}", content(value)),
        "verbatim" => writeln!(out, "v verbatim {} {}", text(&value[0]), content(&value[1])),
        "int" => writeln!(out, "v integer {}", text(value)),
        "bool" => writeln!(out, "v boolean {}", u8::from(value == &Json::Bool(true))),
        "null" | "null_array" => writeln!(out, "v {name}"),
        "map" => return pairs(out, "map", value),
        "array" | "set" | "push" => {
            let all = elements(value);
            let _ = writeln!(out, "v {name} {}", all.len());
            return all.into_iter().for_each(|element| reply(out, element));
        }
        other => panic!("no such value: {other}"),
    };
}

fn pairs(out: &mut String, name: &str, json: &Json) {
    let all = elements(json);
    let _ = writeln!(out, "v {name} {}", all.len());
    for pair in all {
        reply(out, &pair[0]);
        reply(out, &pair[1]);
    }
}

/// A value `depth` levels down.
fn nest(out: &mut String, json: &Json) {
    let depth = json["depth"].as_u64().expect("a depth");
    let kind = text(&json["nest"]);
    for _ in 0..depth {
        out.push_str(match kind {
            "array" => "v array 1\n",
            "set" => "v set 1\n",
            "map_value" => "v map 1\nv bytes 6b\n",
            "map_key" => "v map 1\n",
            other => panic!("no such nest: {other}"),
        });
    }
    reply(out, &json["value"]);
    if kind == "map_key" {
        (0..depth).for_each(|_| out.push_str("v null\n"));
    }
}

/// What a frame says apart from its values.
fn head(out: &mut String, value: &Json) {
    let frame = value.get("frame").map_or("resp", text);
    let number = |name: &str| value.get(name).map(|number| text(number).to_owned());
    let hex = |name: &str| {
        let digits = value.get(name).map(|number| text(number).trim_start_matches("0x").to_owned())?;
        Some(u16::from_str_radix(&digits, 16).expect("hex").to_string())
    };
    let frame = if value.get("ignorable") == Some(&Json::Bool(true)) { "ignored" } else { frame };
    let _ = writeln!(out, "frame {frame}");
    let members = [
        ("channel", value.get("channel").map(Json::to_string)),
        ("command", value.get("command").map(|name| text(name).to_owned())),
        ("options", hex("options")),
        ("opcode", hex("opcode")),
        ("number", number("code").or_else(|| number("sequence")).or_else(|| number("more"))),
        ("last", value.get("last").map(|last| u8::from(last == &Json::Bool(true)).to_string())),
    ];
    for (name, member) in members {
        if let Some(member) = member {
            let _ = writeln!(out, "{name} {member}");
        }
    }
    for member in ["reason", "slice"] {
        if let Some(bytes) = value.get(member) {
            let _ = writeln!(out, "v bytes {}", content(bytes));
        }
    }
}

fn vector(out: &mut String, protocol: u8, profile: &str, json: &Json) {
    let _ = writeln!(out, "vector {}\nprotocol {protocol}\nprofile {profile}", text(&json["id"]));
    let _ = writeln!(out, "direction {}", text(&json["direction"]));
    if let Some(limits) = json.get("limits").and_then(Json::as_object) {
        for (name, value) in limits {
            let number = value.as_u64().unwrap_or_else(|| u64::from(value == &Json::Bool(true)));
            let _ = writeln!(out, "limit {name} {number}");
        }
    }
    let _ = writeln!(out, "wire {}", bytes(&json["wire"]));
    if let Some(error) = json.get("error") {
        let _ = writeln!(out, "error {} {}", text(error), json["offset"]);
    } else {
        for flag in ["folded", "encode_only"] {
            if json.get(flag) == Some(&Json::Bool(true)) {
                let _ = writeln!(out, "{flag} 1");
            }
        }
        if let Some(argv) = json.get("argv") {
            let _ = writeln!(out, "argv {}", bytes(argv));
        }
        let canonical = if json["canonical"] == Json::Bool(true) { "wire" } else { "canonical_wire" };
        if let Some(wire) = json.get(canonical) {
            let _ = writeln!(out, "canonical {}", bytes(wire));
        }
        let value = &json["value"];
        head(out, value);
        if let Some(args) = value.get("args") {
            elements(args).into_iter().for_each(|arg| argument(out, arg));
        }
        if let Some(value) = value.get("reply") {
            reply(out, value);
        }
    }
    out.push_str("end\n");
}

fn main() {
    let root = std::env::args().nth(1).expect("usage: vectors_to_lines FOLDER");
    let (mut stdout, mut count) = (std::io::stdout().lock(), 0);
    let profiles = ["channels", "typed", "flow", "cancel", "passthrough"];
    let respb = profiles.map(|profile| (format!("respb/{profile}"), profile.to_owned(), 4));
    let resp = [2, 3].map(|version| (format!("resp{version}"), "resp".to_owned(), version));
    for (folder, profile, protocol) in resp.into_iter().chain(respb) {
        for kind in ["valid", "invalid"] {
            let folder = Path::new(&root).join(&folder).join(kind);
            let entries = fs::read_dir(&folder).expect("a folder of vectors");
            let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
            paths.sort();
            for path in paths {
                let text = fs::read_to_string(path).expect("a file of vectors");
                let file: Json = serde_json::from_str(&text).expect("JSON");
                for json in file["vectors"].as_array().expect("an array of vectors") {
                    let mut out = String::new();
                    vector(&mut out, protocol, &profile, json);
                    stdout.write_all(out.as_bytes()).expect("standard output takes it");
                    count += 1;
                }
            }
        }
    }
    eprintln!("{count} vectors");
}
