//! Reading the conformance vectors (`conformance/README.md` says what the members mean).
//!
//! Owns the JSON: files, hex, the repeat notation. What is done with a vector stands in the tests.

pub(crate) mod subject;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value as Json;
use weft_protocol::Limits;

/// The protocol whose folder a vector stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// RESP2, and requests of RESP3.
    Resp2,
    /// RESP3.
    Resp3,
    /// RESPB.
    Respb,
}

/// A vector.
#[derive(Debug)]
pub(crate) struct Vector {
    /// Its folder.
    pub(crate) protocol: Protocol,
    /// Its name.
    pub(crate) id: String,
    /// A request, not a reply.
    pub(crate) request: bool,
    /// The limits it is decoded with.
    pub(crate) limits: Limits,
    /// The limits are the defaults.
    pub(crate) default_limits: bool,
    /// The frame.
    pub(crate) wire: Vec<u8>,
    /// What decoding gives.
    pub(crate) expected: Expected,
}

/// What decoding a vector gives.
#[derive(Debug)]
pub(crate) enum Expected {
    /// A value.
    Valid {
        /// The value.
        value: Json,
        /// The argument form as a RESP array.
        argv: Option<Vec<u8>>,
        /// Encoding the value gives the wire.
        canonical: bool,
        /// What encoding the value gives, where that is another wire.
        canonical_wire: Option<Vec<u8>>,
        /// `argv` is encoded in folded mode.
        folded: bool,
        /// It is not decoded: that gives another value.
        encode_only: bool,
    },
    /// An error.
    Invalid {
        /// Its name.
        error: String,
        /// Offset of the field at fault.
        offset: usize,
    },
}

/// Reads every vector, in the order of the paths.
pub(crate) fn load() -> Vec<Vector> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/vectors");
    let mut vectors = Vec::new();
    for (name, protocol) in [
        ("resp2", Protocol::Resp2),
        ("resp3", Protocol::Resp3),
        ("respb/channels", Protocol::Respb),
        ("respb/typed", Protocol::Respb),
        ("respb/flow", Protocol::Respb),
        ("respb/cancel", Protocol::Respb),
        ("respb/passthrough", Protocol::Respb),
    ] {
        for kind in ["valid", "invalid"] {
            let dir = root.join(name).join(kind);
            let mut paths: Vec<_> = fs::read_dir(&dir)
                .unwrap_or_else(|error| panic!("{name}/{kind}: {error}"))
                .map(|entry| entry.unwrap().path())
                .collect();
            paths.sort();
            for path in paths {
                let file: Json = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
                for json in file["vectors"].as_array().unwrap() {
                    vectors.push(vector(protocol, json));
                }
            }
        }
    }
    vectors
}

fn vector(protocol: Protocol, json: &Json) -> Vector {
    let text = |member: &str| json[member].as_str().unwrap_or_else(|| panic!("{json}: {member}")).to_string();
    let optional = |member: &str| json.get(member).map(bytes);
    let expected = match json.get("error") {
        Some(_) => {
            Expected::Invalid { error: text("error"), offset: json["offset"].as_u64().unwrap() as usize }
        }
        None => Expected::Valid {
            value: json["value"].clone(),
            argv: optional("argv"),
            canonical: json["canonical"].as_bool().unwrap(),
            canonical_wire: optional("canonical_wire"),
            folded: json.get("folded").is_some(),
            encode_only: json.get("encode_only").is_some(),
        },
    };
    Vector {
        protocol,
        id: text("id"),
        request: text("direction") == "request",
        limits: limits(json.get("limits")),
        default_limits: json.get("limits").is_none(),
        wire: bytes(&json["wire"]),
        expected,
    }
}

fn limits(json: Option<&Json>) -> Limits {
    let mut limits = Limits::DEFAULT;
    let Some(json) = json else { return limits };
    for (name, value) in json.as_object().unwrap() {
        let number = || u32::try_from(value.as_u64().unwrap()).unwrap();
        match name.as_str() {
            "arguments_max" => limits.arguments_max = number(),
            "argument_bytes_max" => limits.argument_bytes_max = number(),
            "frame_bytes_max" => limits.frame_bytes_max = number(),
            "inline_bytes_max" => limits.inline_bytes_max = number(),
            "nesting_max" => limits.nesting_max = number() as u8,
            "elements_max" => limits.elements_max = number(),
            "unauthenticated" => limits.unauthenticated = value.as_bool().unwrap(),
            other => panic!("no such limit: {other}"),
        }
    }
    limits
}

/// Hex, or an array of hex and repeated hex.
pub(crate) fn bytes(json: &Json) -> Vec<u8> {
    match json {
        Json::String(text) => unhex(text),
        Json::Array(pieces) => pieces.iter().flat_map(bytes).collect(),
        Json::Object(piece) => {
            unhex(piece["repeat"].as_str().unwrap()).repeat(piece["count"].as_u64().unwrap() as usize)
        }
        other => panic!("no bytes: {other}"),
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// `{"text": …}` or `{"bytes": …}`.
pub(crate) fn content(json: &Json) -> Vec<u8> {
    match json.get("text") {
        Some(text) => text.as_str().unwrap().as_bytes().to_vec(),
        None => bytes(&json["bytes"]),
    }
}

/// The elements of an array with its repetitions written out.
pub(crate) fn elements(json: &Json) -> Vec<&Json> {
    let mut out = Vec::new();
    for element in json.as_array().unwrap() {
        match element.get("repeat") {
            Some(group) => {
                for _ in 0..element["count"].as_u64().unwrap() {
                    out.extend(group.as_array().unwrap());
                }
            }
            None => out.push(element),
        }
    }
    out
}

/// The first bytes of a frame, for messages.
pub(crate) fn show(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in &bytes[..bytes.len().min(48)] {
        let _ = write!(out, "{byte:02x}");
    }
    if bytes.len() > 48 {
        let _ = write!(out, "… ({} bytes)", bytes.len());
    }
    out
}
