//! Owns: bodies in JSON, which are commands: arrays of their arguments, or arrays of those. Does not own: JSON
//! (`serde_json`), what replies look like (`weft_engine::reply`).
//!
//! An argument is a slice of the body where nothing in it is escaped, and stands in the side buffer else. Numbers keep
//! the digits that they were sent with.

use std::collections::{BTreeMap, HashSet};
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use weft_engine::args::{Slot, Slots};
use weft_engine::base64;
use weft_protocol::request::ArgVisitor;

/// Arguments of all commands of one body.
pub(crate) const ARGUMENTS_MAX: usize = 1 << 20;

/// Where a body lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'b> {
    pub(crate) body: &'b [u8],
    /// Where it begins in its request; nothing when it is not there in one piece.
    pub(crate) at: Option<usize>,
}

/// The commands of a body.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    slots: Slots,
    /// Where the slots of each end.
    ends: Vec<u32>,
    /// How many have been given out.
    given: usize,
}

impl Commands {
    /// `[["SET","k","v"],["GET","k"]]`.
    pub(crate) fn read(place: Place<'_>) -> Result<Self, String> {
        let mut commands = Self::default();
        // Most arguments have so many bytes at least, with quotes and comma, and most commands two arguments.
        commands.slots.list.reserve(place.body.len() / 12);
        commands.ends.reserve(place.body.len() / 24);
        let mut json = serde_json::Deserializer::from_str(text(place.body)?);
        let read = json.deserialize_seq(Lists { place, commands: &mut commands });
        read.and_then(|()| json.end()).map_err(|error| wrong(&error, "an array of commands"))?;
        Ok(commands)
    }
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
    pub(crate) fn is_over(&self) -> bool {
        self.given == self.ends.len()
    }
    /// Their names. `request`: what the bodies' place is counted from.
    pub(crate) fn names<'c>(&'c self, request: &'c [u8]) -> impl Iterator<Item = &'c [u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.take(self.ends.len()).filter_map(move |begin| match *self.slots.list.get(begin as usize)? {
            Slot::Frame { offset, len } => request.get(offset as usize..)?.get(..len as usize),
            Slot::Side { offset, len } => self.slots.side.get(offset as usize..)?.get(..len as usize),
            _ => None,
        })
    }
    /// Gives the arguments of the next one.
    pub(crate) fn give(&mut self, into: &mut Slots) {
        let from = self.given.checked_sub(1).map_or(0, |before| self.ends[before]);
        let Some(&end) = self.ends.get(self.given) else { return };
        for slot in &self.slots.list[from as usize..end as usize] {
            match *slot {
                Slot::Side { offset, len } => {
                    let text = &self.slots.side[offset as usize..][..len as usize];
                    into.aside(|side| side.extend_from_slice(text));
                }
                slot => into.list.push(slot),
            }
        }
        self.given += 1;
    }
}

/// `["SET","k","v"]`.
pub(crate) fn command(place: Place<'_>, slots: &mut Slots) -> Result<(), String> {
    let mut json = serde_json::Deserializer::from_str(text(place.body)?);
    let read = json.deserialize_seq(Words { place, slots });
    read.and_then(|()| json.end()).map_err(|error| wrong(&error, "a command as an array of its arguments"))
}

/// A body as text: looked at as a whole, so that its parts need not be.
fn text(body: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(body).map_err(|_| "ERR the body is not UTF-8, which JSON is".to_owned())
}

fn wrong(error: &serde_json::Error, wanted: &str) -> String {
    format!("ERR the body is not {wanted}, in JSON: {error}")
}

/// Takes commands.
struct Lists<'p, 'c> {
    place: Place<'p>,
    commands: &'c mut Commands,
}

impl<'de> Visitor<'de> for Lists<'_, '_> {
    type Value = ();

    fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text.write_str("an array of commands")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Words { place: self.place, slots: &mut self.commands.slots })?.is_some() {
            self.commands.ends.push(self.commands.slots.list.len() as u32);
        }
        Ok(())
    }
}

/// Takes the arguments of one command.
struct Words<'p, 's> {
    place: Place<'p>,
    slots: &'s mut Slots,
}

impl<'de> DeserializeSeed<'de> for Words<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Words<'_, '_> {
    type Value = ();

    fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text.write_str("a command, which is an array of its arguments")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let before = self.slots.list.len();
        while let Some(value) = seq.next_element::<&RawValue>()? {
            if self.slots.list.len() >= ARGUMENTS_MAX {
                return Err(A::Error::custom(format_args!("more than {ARGUMENTS_MAX} arguments")));
            }
            push(self.place, self.slots, value.get())?;
        }
        if self.slots.list.len() == before {
            Err(A::Error::custom("a command without a name"))
        } else {
            Ok(())
        }
    }
}

/// Texts of resources: `["key", …]`, or `{"key": "value"}` and `[["key", "value"], …]`, in which what is no text is
/// `{"base64": "…"}`. `each` gets them one by one.
pub(crate) fn texts(body: &[u8], is_pairs: bool, each: impl FnMut(Vec<u8>)) -> Result<(), String> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = json.deserialize_any(Texts { is_pairs, left: ARGUMENTS_MAX, each });
    let wanted =
        if is_pairs { "an object of keys and values, or an array of pairs" } else { "an array of keys" };
    read.and_then(|()| json.end()).map_err(|error| wrong(&error, wanted))
}

/// Arguments of a program, `[3,"x",{"a":1}]`: strings are their text, all else is its JSON.
pub(crate) fn arguments(body: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let list: Vec<&RawValue> =
        serde_json::from_slice(body).map_err(|error| wrong(&error, "an array of the program's arguments"))?;
    list.iter().map(|argument| argument_of(argument.get())).collect()
}

fn argument_of(argument: &str) -> Result<Vec<u8>, String> {
    match argument.as_bytes() {
        [b'"', ..] => serde_json::from_str::<String>(argument)
            .map(String::into_bytes)
            .map_err(|error| wrong(&error, "an array of the program's arguments")),
        text => Ok(text.to_vec()),
    }
}

/// A program that is not stored, with its arguments: `{"program": {…}, "args": […]}`.
pub(crate) fn run(body: &[u8]) -> Result<(Vec<u8>, Vec<Vec<u8>>), String> {
    const WANTED: &str = "an object with a \"program\" and perhaps its \"args\"";
    let Members(members) =
        serde_json::from_slice::<Members<&RawValue>>(body).map_err(|error| wrong(&error, WANTED))?;
    if let Some(other) = members.keys().find(|name| !matches!(name.as_str(), "program" | "args")) {
        return Err(format!("ERR the body is {WANTED}, and has '{other}'"));
    }
    let program = members.get("program").filter(|program| program.get().starts_with('{'));
    let program = program.ok_or_else(|| format!("ERR the body is {WANTED}"))?;
    let args = members.get("args").map_or(Ok(Vec::new()), |args| arguments(args.get().as_bytes()))?;
    Ok((program.get().as_bytes().to_vec(), args))
}

/// The members of an object, in which no name stands twice.
struct Members<T>(BTreeMap<String, T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_map(TakesMembers(PhantomData))
    }
}

struct TakesMembers<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TakesMembers<T> {
    type Value = Members<T>;

    fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<T>, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, T>()? {
            if members.contains_key(&name) {
                return Err(twice(&name));
            }
            members.insert(name, value);
        }
        Ok(Members(members))
    }
}

/// Who reads the first of them and who reads the last would read two bodies.
fn twice<E: serde::de::Error>(name: &str) -> E {
    E::custom(format_args!("the member \"{}\" stands twice", name.chars().take(64).collect::<String>()))
}

/// Takes texts.
struct Texts<F> {
    is_pairs: bool,
    left: usize,
    each: F,
}

impl<F: FnMut(Vec<u8>)> Texts<F> {
    fn give<E: serde::de::Error>(&mut self, text: Vec<u8>) -> Result<(), E> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| E::custom(format_args!("more than {ARGUMENTS_MAX} texts")))?;
        (self.each)(text);
        Ok(())
    }
}

impl<'de, F: FnMut(Vec<u8>)> Visitor<'de> for Texts<F> {
    type Value = ();

    fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text.write_str(if self.is_pairs { "an object of keys and values" } else { "an array of keys" })
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        if self.is_pairs {
            while let Some([key, value]) = seq.next_element::<[&RawValue; 2]>()? {
                self.give(text_of(key.get())?)?;
                self.give(text_of(value.get())?)?;
            }
        } else {
            while let Some(key) = seq.next_element::<&RawValue>()? {
                self.give(text_of(key.get())?)?;
            }
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        if !self.is_pairs {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self));
        }
        let mut seen = HashSet::new();
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            if !seen.insert(key.clone()) {
                return Err(twice(&key));
            }
            self.give(key.into_bytes())?;
            self.give(text_of(value.get())?)?;
        }
        Ok(())
    }
}

/// The bytes that a value stands for.
fn text_of<E: serde::de::Error>(value: &str) -> Result<Vec<u8>, E> {
    match value.as_bytes() {
        [b'"', ..] => serde_json::from_str::<String>(value).map(String::into_bytes).map_err(E::custom),
        [b'{', ..] => {
            let Members(members) = serde_json::from_str::<Members<String>>(value).map_err(E::custom)?;
            let text = members.get("base64").filter(|_| members.len() == 1);
            text.and_then(|text| base64::decode(text.as_bytes()))
                .ok_or_else(|| E::custom("an object stands for bytes: {\"base64\": \"…\"} and nothing else"))
        }
        [b'n' | b'[', ..] => {
            Err(E::custom("a key or a value is a string, a number, true, false or {\"base64\": …}"))
        }
        text => Ok(text.to_vec()),
    }
}

fn push<E: serde::de::Error>(place: Place<'_>, slots: &mut Slots, value: &str) -> Result<(), E> {
    let text = match value.as_bytes() {
        [b'"', text @ .., b'"'] if !text.contains(&b'\\') => text,
        [b'"', ..] => {
            let text: String = serde_json::from_str(value).map_err(E::custom)?;
            slots.aside(|side| side.extend_from_slice(text.as_bytes()));
            return Ok(());
        }
        [b'n', ..] => return Err(E::custom("null is no argument: leave it out, or send an empty string")),
        [b'[' | b'{', ..] => {
            return Err(E::custom(
                "an array or an object is no argument: send it as a string that holds its JSON",
            ));
        }
        text => text,
    };
    match place.at {
        Some(at) => slots.bytes(at + (text.as_ptr().addr() - place.body.as_ptr().addr()), text),
        None => slots.aside(|side| side.extend_from_slice(text)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(slots: &Slots, request: &[u8]) -> Vec<Vec<u8>> {
        let text = |slot: &Slot| match *slot {
            Slot::Frame { offset, len } => request[offset as usize..][..len as usize].to_vec(),
            Slot::Side { offset, len } => slots.side[offset as usize..][..len as usize].to_vec(),
            _ => panic!("no other slots"),
        };
        slots.list.iter().map(text).collect()
    }
    fn read(body: &str) -> Result<Vec<Vec<u8>>, String> {
        let request = [b"head\r\n\r\n", body.as_bytes()].concat();
        let mut slots = Slots::default();
        command(Place { body: &request[8..], at: Some(8) }, &mut slots)?;
        let texts = texts(&slots, &request);
        let mut aside = Slots::default();
        command(Place { body: &request[8..], at: None }, &mut aside)?;
        assert_eq!(self::texts(&aside, b""), texts);
        Ok(texts)
    }

    #[test]
    fn arguments_are_what_was_sent() {
        let text = r#" [ "SET" ,"k\u00e9\n\ud83d\ude00","","ü", 1.10, -0, 1e400, 12345678901234567890123, true,false ] "#;
        let words =
            ["SET", "ké\n😀", "", "ü", "1.10", "-0", "1e400", "12345678901234567890123", "true", "false"];
        assert_eq!(read(text).expect("it is one"), words.map(|word| word.as_bytes().to_vec()));
        let mut slots = Slots::default();
        command(Place { body: br#"["GET","plain"]"#, at: Some(0) }, &mut slots).expect("it is one");
        assert!(slots.side.is_empty(), "what has no escape is not copied");
    }

    #[test]
    fn what_is_no_argument_is_refused_with_the_reason() {
        for (body, why) in [
            ("[]", "a command without a name"),
            (r#"["GET",null]"#, "null is no argument"),
            (r#"["GET",["a"]]"#, "an array or an object is no argument"),
            (r#"["GET",{"a":1}]"#, "an array or an object is no argument"),
            (r#"{"GET":"k"}"#, "an array"),
            (r#""GET""#, "an array"),
            (r#"["GET","k"] x"#, "trailing characters"),
            (r#"["GET","\ud800"]"#, "hex escape"),
            ("[\"GET\",\"\u{1}\"]", "control character"),
            (r#"["GET",01]"#, "column"),
            (r#"["GET",NaN]"#, "column"),
            ("", "EOF"),
        ] {
            let error = read(body).expect_err(body);
            assert!(error.starts_with("ERR the body is not") && error.contains(why), "{body}: {error}");
        }
        let deep = format!("[\"GET\",{}", "[".repeat(1 << 20));
        assert!(read(&deep).is_err());
    }

    #[test]
    fn a_body_that_is_cut_is_refused_wherever_it_is_cut() {
        let text = r#"[["SET","k\u00e9","v",1.5e3],["GET","k"],["MGET",true,false]]"#;
        let commands = |text: &[u8]| Commands::read(Place { body: text, at: Some(0) });
        for end in 0..text.len() {
            assert!(commands(&text.as_bytes()[..end]).is_err(), "{}", &text[..end]);
        }
        let mut all = commands(text.as_bytes()).expect("it is whole");
        let mut words = Vec::new();
        while !all.is_over() {
            let mut slots = Slots::default();
            all.give(&mut slots);
            words.push(texts(&slots, text.as_bytes()));
        }
        assert_eq!(words[0], [&b"SET"[..], "ké".as_bytes(), b"v", b"1.5e3"]);
        assert_eq!(words[2], [&b"MGET"[..], b"true", b"false"]);
        assert_eq!((words.len(), all.len()), (3, 3));
    }

    #[test]
    fn invalid_utf8_is_refused() {
        let mut slots = Slots::default();
        assert!(command(Place { body: b"[\"GET\",\"\xff\"]", at: Some(0) }, &mut slots).is_err());
    }

    #[test]
    fn arguments_have_a_limit() {
        let body = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
        assert_eq!(read(&body(ARGUMENTS_MAX)).map(|words| words.len()), Ok(ARGUMENTS_MAX));
        assert!(read(&body(ARGUMENTS_MAX + 1)).is_err_and(|why| why.contains("more than 1048576 arguments")));
    }
}
