//! Owns: functions of texts, times as texts, values as JSON texts. Does not own: which function is meant by which name
//! (`super::functions`).
//!
//! Texts are bytes: places and lengths count bytes, letters are those of ASCII.

use super::arithmetic::whole;
use super::expr::Fault;
use super::functions::{Function, text_of};
use super::value::{Number, Value, write_float};
use crate::calendar;
use crate::find::find;

/// Bytes of a text that a function makes longer.
const TEXT_BYTES_MAX: usize = 16 << 20;

pub(super) fn call(function: Function, arguments: &[Value]) -> Result<Value, Fault> {
    let text = |at: usize| text_of(&arguments[at]);
    Ok(match function {
        Function::Text => {
            let mut all = Vec::new();
            for argument in arguments {
                all.extend_from_slice(&text_of(argument)?);
            }
            Value::text(&all)
        }
        Function::Join => join(&arguments[0], &text(1)?)?,
        Function::Split => split(&text(0)?, &text(1)?)?,
        Function::Substring => substring(&text(0)?, whole(&arguments[1])?, arguments.get(2))?,
        Function::Upper => Value::text(&text(0)?.to_ascii_uppercase()),
        Function::Lower => Value::text(&text(0)?.to_ascii_lowercase()),
        Function::Trim => Value::text(text(0)?.trim_ascii()),
        Function::Replace => replace(&text(0)?, &text(1)?, &text(2)?)?,
        Function::StartsWith => Value::Bool(text(0)?.starts_with(&text(1)?)),
        Function::EndsWith => Value::Bool(text(0)?.ends_with(&text(1)?)),
        Function::Pad => pad(&text(0)?, whole(&arguments[1])?, &text(2)?)?,
        Function::Date => date(whole(&arguments[0])?, &text(1)?)?,
        other => return Err(format!("{other:?} is not a function of texts").into()),
    })
}

fn join(list: &Value, between: &[u8]) -> Result<Value, Fault> {
    let mut all = Vec::new();
    if let Value::List(list) = list {
        for (at, element) in list.iter().enumerate() {
            if at > 0 {
                all.extend_from_slice(between);
            }
            all.extend_from_slice(&text_of(element)?);
            within(all.len())?;
        }
    } else if !matches!(list, Value::Null) {
        return Err(format!("expected a list, met a {}", list.type_name()).into());
    }
    Ok(Value::text(&all))
}

fn within(len: usize) -> Result<(), Fault> {
    if len > TEXT_BYTES_MAX {
        return Err(format!("a text has {TEXT_BYTES_MAX} bytes at most").into());
    }
    Ok(())
}

fn split(text: &[u8], between: &[u8]) -> Result<Value, Fault> {
    if between.is_empty() {
        return Err("a text is split at something, not at nothing".into());
    }
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(at) = find(rest, between) {
        parts.push(Value::text(&rest[..at]));
        rest = &rest[at + between.len()..];
    }
    parts.push(Value::text(rest));
    Ok(Value::list(parts))
}

fn substring(text: &[u8], from: i64, len: Option<&Value>) -> Result<Value, Fault> {
    let from = if from < 0 {
        text.len().saturating_sub(usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX))
    } else {
        usize::try_from(from).unwrap_or(usize::MAX).min(text.len())
    };
    let len = len.map_or(Ok(i64::MAX), whole)?;
    let rest = &text[from..];
    Ok(Value::text(&rest[..usize::try_from(len).unwrap_or(0).min(rest.len())]))
}

fn replace(text: &[u8], what: &[u8], by: &[u8]) -> Result<Value, Fault> {
    if what.is_empty() {
        return Err("something is replaced, not nothing".into());
    }
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some(at) = find(rest, what) {
        all.extend_from_slice(&rest[..at]);
        all.extend_from_slice(by);
        within(all.len())?;
        rest = &rest[at + what.len()..];
    }
    all.extend_from_slice(rest);
    Ok(Value::text(&all))
}

fn pad(text: &[u8], len: i64, with: &[u8]) -> Result<Value, Fault> {
    let [with] = with else { return Err("padding is one byte".into()) };
    let len = usize::try_from(len).unwrap_or(0);
    within(len)?;
    let mut all = vec![*with; len.saturating_sub(text.len())];
    all.extend_from_slice(text);
    Ok(Value::text(&all))
}

/// The last moment whose year has four digits.
const DATE_MS_MAX: i64 = 253_402_300_799_999;

/// A time as text: `%Y %m %d %H %M %S`, `%L` milliseconds, `%j` day of the year, `%u` day of the week from Monday as
/// 1; `%%` is a percent sign.
fn date(ms: i64, format: &[u8]) -> Result<Value, Fault> {
    if !(0..=DATE_MS_MAX).contains(&ms) {
        return Err("a date lies between 1970 and 9999".into());
    }
    let (days, ms_of_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = calendar::date(days);
    let (first_of_year, seconds) = (days_before(year), ms_of_day / 1000);
    let mut out = Vec::new();
    let mut rest = format.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let (value, digits) = match rest.next() {
            Some(b'Y') => (year, 4),
            Some(b'm') => (month, 2),
            Some(b'd') => (day, 2),
            Some(b'H') => (seconds / 3600, 2),
            Some(b'M') => (seconds / 60 % 60, 2),
            Some(b'S') => (seconds % 60, 2),
            Some(b'L') => (ms_of_day % 1000, 3),
            Some(b'j') => (days - first_of_year + 1, 3),
            Some(b'u') => ((days + 3) % 7 + 1, 1),
            Some(b'%') => {
                out.push(b'%');
                continue;
            }
            _ => return Err("a date knows %Y %m %d %H %M %S %L %j %u and %%".into()),
        };
        out.extend_from_slice(format!("{value:0digits$}").as_bytes());
    }
    within(out.len())?;
    Ok(Value::text(&out))
}

/// Days from 1970 to the first one of a year.
const fn days_before(year: i64) -> i64 {
    let years = year - 1;
    365 * (year - 1970) + years / 4 - years / 100 + years / 400 - 477
}

/// The number that a value is, or its text in any form that the keyspace reads; null if it is none.
pub(super) fn number(value: &Value) -> Value {
    if let Some(number) = value.number() {
        return number.into();
    }
    let Value::Text(bytes) = value else { return Value::Null };
    let text = bytes.trim_ascii();
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        return parsed.map_or(Value::Null, Value::Int);
    }
    let parsed = crate::number::parse_double(text).filter(|value| value.is_finite());
    parsed.map_or(Value::Null, |value| Number::Float(value).into())
}

/// Appends a value as JSON. What is not UTF-8 is an object with the one member `base64`.
pub(super) fn write_json(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Int(value) => out.extend_from_slice(itoa::Buffer::new().format(*value).as_bytes()),
        Value::Float(value) => write_float(*value, out),
        Value::Text(bytes) => write_string(bytes, out),
        Value::List(list) => {
            out.push(b'[');
            for (at, element) in list.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_json(element, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (at, (name, value)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                push_quoted(&String::from_utf8_lossy(name), out);
                out.push(b':');
                write_json(value, out);
            }
            out.push(b'}');
        }
    }
}

fn write_string(bytes: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => push_quoted(text, out),
        Err(_) => {
            out.extend_from_slice(b"{\"base64\":");
            crate::reply::push_base64(out, bytes);
            out.push(b'}');
        }
    }
}

fn push_quoted(text: &str, out: &mut Vec<u8>) {
    // A string can be written, and a vector takes it.
    drop(serde_json::to_writer(&mut *out, text));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date_of(ms: i64, format: &str) -> String {
        String::from_utf8(date(ms, format.as_bytes()).unwrap().to_text().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date_of(0, "%Y-%m-%d %H:%M:%S.%L %j %u"), "1970-01-01 00:00:00.000 001 4");
        assert_eq!(date_of(951_782_400_000, "%Y-%m-%d %j %u"), "2000-02-29 060 2");
        assert_eq!(date_of(1_735_689_599_999, "%Y%m%d%H%M%S%L %j"), "20241231235959999 366");
        assert_eq!(date_of(DATE_MS_MAX, "%Y-%m-%d %% %j"), "9999-12-31 % 365");
        assert!(date(DATE_MS_MAX + 1, b"%Y").is_err() && date(-1, b"%Y").is_err() && date(0, b"%Q").is_err());
    }
}
