//! One vector as a value, its JSON, and the file that holds it with others.
//!
//! It owns the members and their order, as `conformance/schema/vector.schema.json` describes them.

use serde_json::{Value as Json, json};

use super::bytes::Bytes;

/// A vector, valid or invalid.
#[derive(Clone, Debug)]
pub struct Vector {
    /// Unique and stable.
    pub id: String,
    /// Section of the specification.
    pub section: &'static str,
    /// What it shows.
    pub comment: String,
    /// `request` or `reply`.
    pub direction: &'static str,
    /// Limits that differ from the defaults.
    pub limits: Vec<(&'static str, u64)>,
    /// The frame.
    pub wire: Bytes,
    /// What it means, or why it is wrong.
    pub outcome: Outcome,
}

/// What decoding gives.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A value.
    Valid {
        /// The value as JSON.
        value: Json,
        /// Requests on RESPB: the argument form as a RESP array.
        argv: Option<Bytes>,
        /// Whether encoding the value gives the wire.
        canonical: bool,
        /// What encoding gives where that is another wire.
        canonical_wire: Option<Bytes>,
        /// How it is used, where that is not in every way.
        uses: Uses,
    },
    /// An error.
    Invalid {
        /// Its name.
        error: &'static str,
        /// Offset of the field at fault.
        offset: usize,
    },
}

/// Which ways a valid vector is used in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uses {
    /// Decoded and encoded.
    #[default]
    All,
    /// `argv` is encoded in folded mode.
    Folded,
    /// Only encoded: decoding gives another value.
    EncodeOnly,
}

impl Vector {
    /// An invalid one.
    #[must_use]
    pub fn invalid(
        direction: &'static str,
        id: impl Into<String>,
        section: &'static str,
        comment: impl Into<String>,
        wire: Bytes,
        (error, offset): (&'static str, usize),
    ) -> Self {
        let (id, comment) = (id.into(), comment.into());
        let outcome = Outcome::Invalid { error, offset };
        Vector { id, section, comment, direction, limits: Vec::new(), wire, outcome }
    }

    /// With a limit.
    #[must_use]
    pub fn limit(mut self, name: &'static str, value: usize) -> Self {
        self.limits.push((name, value as u64));
        self
    }

    /// One line of JSON, the members in the order in which one reads them.
    fn line(&self) -> String {
        let mut members = vec![
            ("id", json!(self.id)),
            ("section", json!(self.section)),
            ("comment", json!(self.comment)),
            ("direction", json!(self.direction)),
        ];
        if !self.limits.is_empty() {
            let limit = |(name, value): &(&str, u64)| match *name {
                "unauthenticated" => ((*name).to_string(), json!(true)),
                _ => ((*name).to_string(), json!(value)),
            };
            members.push(("limits", Json::Object(self.limits.iter().map(limit).collect())));
        }
        members.push(("wire", self.wire.to_json()));
        match &self.outcome {
            Outcome::Valid { value, argv, canonical, canonical_wire, uses } => {
                members.push(("value", value.clone()));
                members.extend(argv.iter().map(|argv| ("argv", argv.to_json())));
                members.push(("canonical", json!(canonical)));
                members.extend(canonical_wire.iter().map(|wire| ("canonical_wire", wire.to_json())));
                match uses {
                    Uses::All => {}
                    Uses::Folded => members.push(("folded", json!(true))),
                    Uses::EncodeOnly => members.push(("encode_only", json!(true))),
                }
            }
            Outcome::Invalid { error, offset } => {
                members.extend([("error", json!(error)), ("offset", json!(offset))]);
            }
        }
        let members: Vec<String> =
            members.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
        format!("{{{}}}", members.join(","))
    }
}

/// A file of vectors.
#[derive(Debug)]
pub struct File {
    /// Path below `conformance/vectors`.
    pub path: String,
    /// What is in it.
    pub comment: String,
    /// The vectors.
    pub vectors: Vec<Vector>,
}

impl File {
    /// A file.
    #[must_use]
    pub fn new(path: impl Into<String>, comment: impl Into<String>, vectors: Vec<Vector>) -> Self {
        File { path: path.into(), comment: comment.into(), vectors }
    }

    /// The text: one vector a line, so that a change shows as the lines it changes.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.vectors.iter().map(Vector::line).collect();
        format!("{{\n\"comment\": {},\n\"vectors\": [\n{}\n]\n}}\n", json!(self.comment), lines.join(",\n"))
    }
}
