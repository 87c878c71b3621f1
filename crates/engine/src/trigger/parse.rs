//! Owns: reading a trigger's JSON. Does not own: what it does (`crate::trigger`).

use super::definition::{Action, kind};
use crate::program::expr::Expr;
use crate::program::json::Json;
use crate::program::parse::{Parser, Place, Problem};

/// What a trigger's document says.
#[derive(Debug)]
pub(crate) struct TriggerParts {
    pub(crate) on: u8,
    pub(crate) db: Option<u8>,
    pub(crate) pattern: Box<[u8]>,
    pub(crate) when: Option<Expr>,
    pub(crate) action: Action,
    pub(crate) slots: usize,
}

const MEMBERS: [&str; 10] =
    ["description", "on", "db", "key", "when", "inside", "after", "stream", "publish", "$schema"];

impl TriggerParts {
    pub(crate) fn of(json: &Json) -> Result<Self, Problem> {
        let root = Place::root(json);
        root.only(&MEMBERS)?;
        let mut parser = Parser::default();
        parser.give("event", true, &root)?;
        let on = match root.member("on") {
            None => kind::SET | kind::DELETE,
            Some(place) => kinds(&place)?,
        };
        let db = match root.member("db") {
            None => None,
            Some(place) => {
                let Json::Int(db) = place.json else {
                    return Err(place.expected("the number of a database"));
                };
                let wrong = |_| place.wrong("expected the number of a database, 0 to 255");
                Some(u8::try_from(*db).map_err(wrong)?)
            }
        };
        let key = root.member("key").ok_or_else(|| root.wrong("expected the member \"key\""))?;
        let pattern = key.text("a pattern of keys")?.as_bytes().into();
        let when = root.member("when").map(|place| parser.expr(&place)).transpose()?;
        let action = action(&mut parser, &root, on)?;
        Ok(Self { on, db, pattern, when, action, slots: parser.slots })
    }
}

fn kinds(place: &Place<'_>) -> Result<u8, Problem> {
    let one = |place: &Place<'_>| {
        let word = place.text("a kind of change")?;
        let found = kind::NAMES.iter().find(|(name, _)| *name == word).map(|(_, bit)| *bit);
        found.ok_or_else(|| place.wrong("unknown kind of change; expected one of set, delete, expire, evict"))
    };
    let Json::List(_) = place.json else { return one(place) };
    let bits = place.elements("kinds of changes")?.try_fold(0, |bits, place| Ok(bits | one(&place)?))?;
    if bits == 0 { Err(place.wrong("expected one of set, delete, expire, evict at least")) } else { Ok(bits) }
}

fn action(parser: &mut Parser, root: &Place<'_>, on: u8) -> Result<Action, Problem> {
    let mut actions = ["inside", "after", "stream", "publish"].into_iter().filter_map(|name| {
        let place = root.member(name)?;
        Some((name, place))
    });
    let (Some((name, place)), None) = (actions.next(), actions.next()) else {
        return Err(root.wrong("expected one of the members inside, after, stream, publish"));
    };
    Ok(match name {
        "inside" if on & kind::BY_ITSELF != 0 => {
            let text = "what happens by itself (expire, evict) cannot fail: use after or publish";
            return Err(place.wrong(text));
        }
        "inside" => Action::Inside(place.text("the name of a program")?.as_bytes().into()),
        "after" => Action::After(place.text("the name of a program")?.as_bytes().into()),
        "stream" if on & kind::BY_ITSELF != 0 => {
            return Err(place.wrong(
                "what happens by itself (expire, evict) has no group to be told in: use after or publish",
            ));
        }
        "stream" => Action::Stream(parser.expr(&place)?),
        _ => Action::Publish(parser.expr(&place)?),
    })
}
