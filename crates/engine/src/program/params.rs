//! Owns: what a program is given: reading its arguments by the types of its parameters. Does not own: what they are
//! called (`super::parse`).

use super::budget::{Limits, exceeded};
use super::expr::Fault;
use super::json::{JSON_BYTE_NS, JSON_VALUE_BYTES, JSON_VALUE_NS, Json, values_in};
use super::steps::{Param, ParamKind, Program};
use super::text;
use super::value::Value;
use crate::config::Settings;
use crate::error::{Error, ErrorCode, Result};
use crate::excerpt::shown;

/// What the JSON of a program's arguments may take: half of its time, and its memory. Said by their bytes before they
/// are read.
pub(crate) struct Readable {
    limits: Limits,
    /// Nanoseconds.
    left: u64,
    memory: u64,
}

impl Readable {
    pub(crate) fn of(limits: Limits) -> Self {
        Self { limits, left: limits.time_ms.saturating_mul(1_000_000 / 2), memory: limits.memory }
    }
    pub(crate) fn take(&mut self, text: &[u8]) -> Result<(), Fault> {
        let limits = self.limits;
        let slow = || exceeded("too much JSON in arguments", "time-ms", limits.time_ms);
        // What is far too long is not even looked through.
        let bytes = text.len() as u64;
        let left = self.left.checked_sub(bytes * JSON_BYTE_NS).ok_or_else(slow)?;
        let values = values_in(text);
        self.left = left.checked_sub(values * JSON_VALUE_NS).ok_or_else(slow)?;
        let memory = values * JSON_VALUE_BYTES + bytes;
        let large = || exceeded("too much JSON in arguments", "memory", limits.memory);
        self.memory = self.memory.checked_sub(memory).ok_or_else(large)?;
        Ok(())
    }
}

impl ParamKind {
    /// Whether it is written as JSON.
    const fn is_json(self) -> bool {
        matches!(self, Self::List | Self::Object | Self::Any)
    }
    /// Whether a value is of this type.
    pub(super) fn takes(self, value: &Value) -> bool {
        match self {
            Self::Text => !matches!(value, Value::List(_) | Value::Object(_) | Value::Null),
            Self::Int => matches!(value, Value::Int(_)),
            Self::Number => matches!(value, Value::Int(_) | Value::Float(_)),
            Self::Bool => matches!(value, Value::Bool(_)),
            Self::List => matches!(value, Value::List(_)),
            Self::Object => matches!(value, Value::Object(_)),
            Self::Any => true,
        }
    }
    /// The value that an argument's bytes are.
    fn read(self, bytes: &[u8]) -> Option<Value> {
        let value = match self {
            Self::Text => Value::text(bytes),
            Self::Int => Value::Int(weft_store::parse_int(bytes)?),
            Self::Number => text::number(&Value::text(bytes)),
            Self::Bool => match bytes {
                b"true" | b"1" => Value::Bool(true),
                b"false" | b"0" => Value::Bool(false),
                _ => return None,
            },
            Self::List | Self::Object | Self::Any => Value::from(&Json::parse(bytes).ok()?),
        };
        self.takes(&value).then_some(value)
    }
}

impl Program {
    /// The parameters that arguments give, in their order.
    pub(crate) fn params<'b>(
        &self,
        settings: &Settings,
        arguments: impl Iterator<Item = &'b [u8]>,
    ) -> Result<Vec<Value>> {
        self.params_in((Vec::new(), settings), arguments)
    }
    /// The same in memory that is there.
    pub(crate) fn params_in<'b>(
        &self,
        (mut values, settings): (Vec<Value>, &Settings),
        mut arguments: impl Iterator<Item = &'b [u8]>,
    ) -> Result<Vec<Value>> {
        values.reserve(self.slots);
        let mut readable = None;
        for param in &self.params {
            // As most are.
            let argument = arguments.next();
            let value = match (param.kind, argument) {
                (ParamKind::Text, Some(bytes)) => Some(Value::text(bytes)),
                (ParamKind::Int, Some(bytes)) => weft_store::parse_int(bytes).map(Value::Int),
                (kind, Some(bytes)) if kind.is_json() => {
                    let readable = readable
                        .get_or_insert_with(|| Readable::of(self.limits.within(Limits::of(settings))));
                    readable.take(bytes).map_err(|fault| Error::new(ErrorCode::Program, fault))?;
                    None
                }
                _ => None,
            };
            values.push(match value {
                Some(value) => value,
                None => param.value(argument)?,
            });
        }
        if arguments.next().is_some() {
            return Err(Error::err(format!("the program takes {} arguments at most", self.params.len())));
        }
        Ok(values)
    }
}

/// An event that somebody has made up: what it may take is what a program's arguments may that says nothing.
pub(crate) fn made_up_event(settings: &Settings, text: &[u8]) -> Result<Value> {
    let mut readable = Readable::of(Limits::DEFAULT.within(Limits::of(settings)));
    readable.take(text).map_err(|fault| Error::new(ErrorCode::Program, format!("event: {fault}")))?;
    let json = Json::parse(text).map_err(|text| Error::err(format!("event: {text}")))?;
    Ok(Value::from(&json))
}

impl Program {
    /// The parameters of a run that an event sets going: the first one is the event, the others have defaults.
    pub(crate) fn event_params(&self, event: impl FnOnce() -> Value) -> Result<Vec<Value>> {
        let Some((first, rest)) = self.params.split_first() else { return Ok(Vec::new()) };
        let event = event();
        if !first.kind.takes(&event) {
            return Err(first.wrong("an event, which is an object"));
        }
        std::iter::once(Ok(event)).chain(rest.iter().map(|param| param.value(None))).collect()
    }
}

impl Param {
    #[inline(never)]
    fn value(&self, argument: Option<&[u8]>) -> Result<Value> {
        match (argument, &self.default) {
            (Some(bytes), _) => {
                self.kind.read(bytes).ok_or_else(|| self.wrong(&format!("'{}'", shown(bytes))))
            }
            (None, Some(default)) => Ok(default.clone()),
            (None, None) => Err(Error::err(format!("the parameter '{}' is missing", self.name))),
        }
    }
    fn wrong(&self, met: &str) -> Error {
        let (name, kind) = (&self.name, self.kind.name());
        Error::err(format!("the parameter '{name}' is of the type {kind}; met {met}"))
    }
}
