//! Owns: reading a program's JSON: its parts, names and their places, and what is wrong with it and where. Does not
//! own: JSON (`super::json`), steps and expressions (the modules below).
//!
//! Names are seen from where they are given to the end of the block that gives them; `let` of a name that a block
//! around it has given changes that one. What can be known of a program before it runs is checked here: unknown
//! names, members and commands never wait for the step to be reached.

mod expr;
mod steps;

use std::collections::HashMap;

pub(crate) use steps::is_code;

use super::budget::Limits;
use super::expr::Expr;
use super::json::Json;
use super::keys::Keys;
use super::members::members_of;
use super::quick;
use super::steps::{Param, ParamKind, Program, direct, each_expr};
use super::value::Value;
use crate::error::Error;

/// Bytes of a program.
pub const PROGRAM_BYTES_MAX: usize = 1 << 20;
/// Blocks inside of blocks.
pub const BLOCKS_MAX: usize = 24;
/// Expressions inside of expressions.
pub const EXPRESSIONS_MAX: usize = 64;
/// Parameters of a program.
pub const PARAMS_MAX: usize = 64;
/// Keys that a program declares.
pub const DECLARED_KEYS_MAX: usize = 256;
/// Names that a program gives.
pub const NAMES_MAX: usize = 1024;

/// What is wrong with a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: a JSON pointer.
    pub at: String,
    /// What was expected.
    pub text: String,
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::err(format!("program {problem}"))
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", if self.at.is_empty() { "/" } else { &self.at }, self.text)
    }
}

/// A place in a document.
#[derive(Clone, Copy)]
pub(crate) struct Place<'d> {
    parent: Option<&'d Place<'d>>,
    step: Step<'d>,
    pub(crate) json: &'d Json,
}

#[derive(Clone, Copy)]
enum Step<'d> {
    Member(&'d str),
    Element(usize),
}

impl<'d> Place<'d> {
    pub(crate) const fn root(json: &'d Json) -> Self {
        Self { parent: None, step: Step::Element(0), json }
    }
    /// A JSON pointer to it.
    pub(super) fn pointer(&self) -> String {
        let mut pointer = String::new();
        self.write_pointer(&mut pointer);
        pointer
    }
    fn write_pointer(&self, pointer: &mut String) {
        let Some(parent) = self.parent else { return };
        parent.write_pointer(pointer);
        pointer.push('/');
        match self.step {
            Step::Member(name) => pointer.push_str(&name.replace('~', "~0").replace('/', "~1")),
            Step::Element(at) => pointer.push_str(itoa::Buffer::new().format(at)),
        }
    }
    /// Something is wrong here.
    pub(crate) fn wrong(&self, text: impl Into<String>) -> Problem {
        Problem { at: self.pointer(), text: text.into() }
    }
    /// Something else was expected here.
    pub(crate) fn expected(&self, what: &str) -> Problem {
        self.wrong(format!("expected {what}, met {}", self.json.kind()))
    }
    /// A member of an object.
    pub(crate) fn member(&'d self, name: &'d str) -> Option<Place<'d>> {
        let json = self.json.get(name)?;
        Some(Place { parent: Some(self), step: Step::Member(name), json })
    }
    fn members(&'d self, what: &str) -> Result<impl Iterator<Item = (&'d str, Place<'d>)>, Problem> {
        let Json::Object(members) = self.json else { return Err(self.expected(what)) };
        Ok(members.iter().map(move |(name, json)| {
            (name.as_str(), Place { parent: Some(self), step: Step::Member(name), json })
        }))
    }
    pub(crate) fn elements(
        &'d self,
        what: &str,
    ) -> Result<impl ExactSizeIterator<Item = Place<'d>>, Problem> {
        let Json::List(list) = self.json else { return Err(self.expected(what)) };
        let place = move |(at, json)| Place { parent: Some(self), step: Step::Element(at), json };
        Ok(list.iter().enumerate().map(place))
    }
    pub(crate) fn text(&self, what: &str) -> Result<&'d str, Problem> {
        let Json::Text(text) = self.json else { return Err(self.expected(what)) };
        Ok(text)
    }
    /// That an object has no members but these.
    pub(crate) fn only(&'d self, names: &[&str]) -> Result<(), Problem> {
        for (name, place) in self.members("an object")? {
            if !names.contains(&name) {
                return Err(place.wrong(format!("unknown member; expected one of {}", names.join(", "))));
            }
        }
        Ok(())
    }
}

/// Reads programs.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// Names that are seen, with their places.
    names: Vec<Name>,
    /// Where they stand there, by themselves: the last one of a name counts.
    by_name: HashMap<Box<str>, Vec<usize>>,
    pub(crate) slots: usize,
    loops: usize,
    blocks: usize,
    expressions: usize,
    writes: bool,
}

#[derive(Debug)]
struct Name {
    name: Box<str>,
    slot: usize,
    /// `let` may not change it: a parameter, or what a loop gives.
    fixed: bool,
}

/// What a program's document may have.
const MEMBERS: [&str; 8] = ["description", "params", "keys", "as", "limits", "steps", "cases", "$schema"];

impl Program {
    /// Reads a program.
    pub fn parse(text: &[u8]) -> Result<Self, Problem> {
        if text.len() > PROGRAM_BYTES_MAX {
            let text =
                format!("a program has {PROGRAM_BYTES_MAX} bytes at most, this one has {}", text.len());
            return Err(Problem { at: String::new(), text });
        }
        let json = Json::parse(text).map_err(|text| Problem { at: String::new(), text })?;
        Self::of(&json)
    }
    /// Reads a program of a document.
    pub fn of(json: &Json) -> Result<Self, Problem> {
        let root = Place::root(json);
        root.only(&MEMBERS)?;
        let mut parser = Parser::default();
        let params = root.member("params").map_or(Ok(Vec::new()), |place| parser.params(&place))?;
        let declared = root.member("keys").map(|place| parser.declared_keys(&place)).transpose()?;
        let steps = root.member("steps").ok_or_else(|| root.wrong("expected the member \"steps\""))?;
        let mut steps = parser.block(&steps)?;
        let quick = quick::mark(&mut steps);
        let description = root.member("description").map_or(Ok(""), |place| place.text("a string"))?;
        let as_owner = match root.member("as") {
            None => false,
            Some(place) => match place.text("\"caller\" or \"owner\"")? {
                "owner" => true,
                "caller" => false,
                _ => return Err(place.wrong("expected \"caller\" or \"owner\"")),
            },
        };
        let limits = root.member("limits").map_or(Ok(Limits::DEFAULT), |place| limits(&place))?;
        let keys = match declared {
            Some(keys) => Keys::Declared(keys),
            None => Keys::find(&steps, params.len()),
        };
        let mut event = 0;
        let mut look = |expr: &Expr| event |= members_of(expr);
        each_expr(&steps, &mut look);
        if let Keys::Declared(exprs) = &keys {
            exprs.iter().for_each(&mut look);
        }
        // One that says nothing else of itself, and to which an event may be given.
        let takes_event = matches!(params[..], [] | [Param { kind: ParamKind::Object | ParamKind::Any, .. }]);
        let is_plain =
            takes_event && !as_owner && limits == Limits::DEFAULT && matches!(keys, Keys::Found(_));
        let direct = if is_plain { direct(&steps) } else { None };
        let description = description.into();
        let (slots, writes) = (parser.slots, parser.writes);
        Ok(Self { description, params, keys, as_owner, limits, steps, slots, writes, quick, event, direct })
    }
}

fn limits(place: &Place<'_>) -> Result<Limits, Problem> {
    let mut limits = Limits::DEFAULT;
    for (name, place) in place.members("an object of limits")? {
        let limit = match name {
            "steps" => &mut limits.steps,
            "keys" => &mut limits.keys,
            "bytes" => &mut limits.bytes,
            "memory" => &mut limits.memory,
            "time-ms" => &mut limits.time_ms,
            _ => return Err(place.wrong("unknown limit; expected steps, keys, bytes, memory or time-ms")),
        };
        let Json::Int(value) = place.json else { return Err(place.expected("a positive integer")) };
        *limit = u64::try_from(*value)
            .ok()
            .filter(|value| *value > 0)
            .ok_or_else(|| place.wrong("expected a positive integer"))?;
    }
    Ok(limits)
}

impl Parser {
    fn params(&mut self, place: &Place<'_>) -> Result<Vec<Param>, Problem> {
        let all = place.elements("an array of parameters")?;
        if all.len() > PARAMS_MAX {
            return Err(place.wrong(format!("a program has {PARAMS_MAX} parameters at most")));
        }
        let mut params: Vec<Param> = Vec::new();
        for place in all {
            let param = param(&place)?;
            if params.iter().any(|other| other.name == param.name) {
                return Err(place.wrong(format!("the parameter \"{}\" stands twice", param.name)));
            }
            if param.default.is_none() && params.last().is_some_and(|last| last.default.is_some()) {
                return Err(place.wrong("a parameter without a default stands behind one with a default"));
            }
            self.give(&param.name, true, &place)?;
            params.push(param);
        }
        Ok(params)
    }

    fn declared_keys(&mut self, place: &Place<'_>) -> Result<Box<[super::expr::Expr]>, Problem> {
        let all = place.elements("an array of keys")?;
        if all.len() > DECLARED_KEYS_MAX {
            return Err(place.wrong(format!("a program declares {DECLARED_KEYS_MAX} keys at most")));
        }
        all.map(|place| self.expr(&place)).collect()
    }

    /// A new name with a place of its own.
    pub(crate) fn give(&mut self, name: &str, fixed: bool, place: &Place<'_>) -> Result<usize, Problem> {
        check_name(name, place)?;
        let slot = self.slots;
        if slot == NAMES_MAX {
            return Err(place.wrong(format!("a program gives {NAMES_MAX} names at most")));
        }
        self.slots += 1;
        self.by_name.entry(name.into()).or_default().push(self.names.len());
        self.names.push(Name { name: name.into(), slot, fixed });
        Ok(slot)
    }
    /// The place of a name that is given a value: its own if it is seen here, else a new one.
    fn assign(&mut self, name: &str, place: &Place<'_>) -> Result<usize, Problem> {
        match self.known(name) {
            Some(Name { fixed: true, .. }) => {
                Err(place
                    .wrong(format!("\"{name}\" is a parameter or what a loop gives, and cannot be changed")))
            }
            Some(known) => Ok(known.slot),
            None => self.give(name, false, place),
        }
    }
    fn slot_of(&self, name: &str) -> Option<usize> {
        self.known(name).map(|known| known.slot)
    }
    fn known(&self, name: &str) -> Option<&Name> {
        self.by_name.get(name).and_then(|places| Some(&self.names[*places.last()?]))
    }
    /// Names that are given inside are not seen behind it.
    fn scope<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let seen = self.names.len();
        let result = work(self);
        for name in self.names.drain(seen..) {
            if let Some(places) = self.by_name.get_mut(&name.name) {
                places.pop();
            }
        }
        result
    }
}

/// Bytes of a name.
const NAME_BYTES_MAX: usize = 64;

fn check_name(name: &str, place: &Place<'_>) -> Result<(), Problem> {
    let is_name = name.len() <= NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name {
        return Ok(());
    }
    Err(place.wrong(format!("expected a name: a letter, then up to {NAME_BYTES_MAX} letters, digits and _")))
}

fn param(place: &Place<'_>) -> Result<Param, Problem> {
    place.only(&["name", "type", "default", "description"])?;
    let name = place.member("name").ok_or_else(|| place.wrong("expected the member \"name\""))?;
    let kind = match place.member("type") {
        None => ParamKind::Text,
        Some(place) => {
            let word = place.text("a type")?;
            let found = ParamKind::NAMES.iter().find(|(name, _)| *name == word);
            let names = || ParamKind::NAMES.map(|(name, _)| name).join(", ");
            found.ok_or_else(|| place.wrong(format!("unknown type; expected one of {}", names())))?.1
        }
    };
    if let Some(place) = place.member("description") {
        place.text("a string")?;
    }
    let default = match place.member("default") {
        None => None,
        Some(place) => {
            let value = Value::from(place.json);
            if !kind.takes(&value) {
                return Err(place.expected(&format!("a default of the type {}", kind.name())));
            }
            Some(value)
        }
    };
    Ok(Param { name: name.text("a name")?.into(), kind, default })
}
