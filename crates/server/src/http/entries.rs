//! Owns: `/v1/db/N/streams/KEY`: the entries of a stream as server-sent events: the command that reads on, and what its
//! reply becomes. Does not own: XREAD and waiting (`weft_engine`), when it is read on (`crate::worker::http`).
//!
//! `id: 1764000000000-0`, then `data: {"id":"1764000000000-0","fields":["f","v"]}`. It is read on when all that was
//! read has been sent, so that a slow reader costs no memory: what he has not had stays in the stream. Waiting ends in
//! time for a heartbeat.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::value::RawValue;
use weft_engine::args::Slots;
use weft_engine::base64;

use super::answer::{About, Answer};
use super::events::{HEARTBEAT, HEARTBEAT_MS};
use super::resources::{Asks, wrong};
use super::target;

/// Entries that are read at once.
const ENTRIES_PER_READ: &str = "128";

/// What a client reads, and how far he is.
#[derive(Debug)]
pub(crate) struct Entries {
    key: Box<[u8]>,
    /// The last entry that he knows of; nothing: what is there already is not told.
    after: Option<Box<str>>,
    begun: bool,
    /// All that was read has been sent.
    is_due: bool,
    /// Of the request.
    pub(super) about: About,
}

/// An entry's ID, and its fields and values in turn.
type Entry<'r> = (&'r str, &'r RawValue);

impl Entries {
    /// From behind an entry on, or with the next one that comes.
    fn new(key: Vec<u8>, after: Option<&str>) -> Self {
        Self {
            key: key.into(),
            after: after.map(Into::into),
            begun: false,
            is_due: true,
            about: About::default(),
        }
    }
    pub(crate) fn make_due(&mut self) {
        self.is_due = true;
    }
    /// Writes the arguments of the command that reads on, if one is due. The first of all waits for nothing.
    pub(crate) fn give(&mut self, slots: &mut Slots) -> bool {
        if !std::mem::take(&mut self.is_due) {
            return false;
        }
        let mut words = |words: &[&[u8]]| {
            words.iter().for_each(|word| slots.aside(|side| side.extend_from_slice(word)));
        };
        match &self.after {
            None => words(&[b"XREVRANGE", &self.key, b"+", b"-", b"COUNT", b"1"]),
            Some(after) => {
                words(&[b"XREAD", b"COUNT", ENTRIES_PER_READ.as_bytes()]);
                if self.begun {
                    words(&[b"BLOCK", HEARTBEAT_MS.to_string().as_bytes()]);
                }
                words(&[b"STREAMS", &self.key, after.as_bytes()]);
            }
        }
        true
    }

    /// What is told of a reply.
    pub(crate) fn events(&mut self, reply: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        let is_first = !std::mem::replace(&mut self.begun, true);
        let Some(after) = &self.after else {
            // What will be added has greater IDs than what is there.
            let last: Vec<Entry<'_>> = serde_json::from_slice(reply).unwrap_or_default();
            let after = last.first().map_or("0-0", |(id, _)| id);
            ready(&mut text, after);
            self.after = Some(after.into());
            return text;
        };
        if is_first {
            ready(&mut text, after);
        }
        let of_keys: Option<BTreeMap<String, Vec<Entry<'_>>>> =
            serde_json::from_slice(reply).unwrap_or_default();
        let before = text.len();
        for (id, fields) in of_keys.iter().flat_map(BTreeMap::values).flatten() {
            // A Vec takes all that is written.
            let _ = write!(text, "id: {id}\ndata: {{\"id\":\"{id}\",\"fields\":{fields}}}\n\n");
            self.after = Some((*id).into());
        }
        if text.len() == before && !is_first {
            text.extend_from_slice(HEARTBEAT);
        }
        text
    }
}

fn ready(text: &mut Vec<u8>, after: &str) {
    let _ = write!(text, "event: ready\nid: {after}\ndata: {{}}\n\n");
}

impl Asks<'_> {
    /// What a request for the entries of a stream reads.
    pub(super) fn entries(&self) -> Result<Entries, Box<Answer>> {
        self.only(&[b"key64", b"after"])?;
        let rest = self.rest()?.strip_prefix(b"streams").unwrap_or_default();
        let key = match (rest.strip_prefix(b"/"), self.parameter(b"key64")?) {
            (Some(path), None) => {
                let mut key = Vec::new();
                target::decode(path, false, &mut key).map_err(|why| Answer::error(400, &why))?;
                key
            }
            (None, Some(key)) => base64::decode(&key).ok_or_else(|| wrong("key64 is no base64"))?,
            _ => return Err(wrong("the stream is named by /streams/KEY, or by /streams?key64=")),
        };
        let after = self.parameter(b"after")?;
        let last = self.head.last_event.map(|last| last.of(self.request).to_vec());
        let after = last.filter(|last| !last.is_empty()).or(after).filter(|after| after != b"$");
        let is_id = |id: &[u8]| id.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
        match after.map(|after| if is_id(&after) { String::from_utf8(after).ok() } else { None }) {
            Some(None) => {
                Err(wrong("an entry is named by its ID, as in after=1764000000000-0; after=0 is before all"))
            }
            after => Ok(Entries::new(key, after.flatten().as_deref())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_become_events() {
        let text = |told: Vec<u8>| String::from_utf8(told).expect("it is text");
        let mut new = Entries::new(b"k".to_vec(), None);
        assert_eq!(text(new.events(br#"[["7-1",["f","v"]]]"#)), "event: ready\nid: 7-1\ndata: {}\n\n");
        assert_eq!(text(new.events(b"null")), ":\n\n");
        let reply = r#"{"{\"base64\":\"/w==\"}":[["8-0",["f","v"]],["8-1",["g",{"base64":"/w=="}]]]}"#;
        let events = "id: 8-0\ndata: {\"id\":\"8-0\",\"fields\":[\"f\",\"v\"]}\n\n\
                      id: 8-1\ndata: {\"id\":\"8-1\",\"fields\":[\"g\",{\"base64\":\"/w==\"}]}\n\n";
        assert_eq!(text(new.events(reply.as_bytes())), events);
        assert_eq!(new.after.as_deref(), Some("8-1"));
        let mut old = Entries::new(b"k".to_vec(), Some("0"));
        assert_eq!(
            text(old.events(reply.as_bytes())),
            format!("event: ready\nid: 0\ndata: {{}}\n\n{events}")
        );
        assert_eq!(text(Entries::new(Vec::new(), None).events(b"[]")), "event: ready\nid: 0-0\ndata: {}\n\n");
    }
}
