//! Owns: reading expressions. Does not own: what they give (`crate::program::expr`).
//!
//! | JSON | gives |
//! |---|---|
//! | a number, true, false, null | itself |
//! | `"${name.path}"` | the value that stands there |
//! | another string | its text, `${…}` filled in; `$$` is a dollar sign |
//! | an array | a list of what its elements give |
//! | an object with one member | the function of that name |

use super::{EXPRESSIONS_MAX, Parser, Place, Problem};
use crate::base64;
use crate::program::expr::{Each, EachKind, Expr, Part, Segment};
use crate::program::functions;
use crate::program::json::Json;
use crate::program::value::Value;

/// Forms that do not evaluate all of their arguments, or name something.
pub(super) const FORMS: [&str; 13] = [
    "and", "or", "if", "coalesce", "map", "filter", "any", "all", "now", "object", "literal", "base64", "var",
];

impl Parser {
    /// Reads an expression.
    pub(crate) fn expr(&mut self, place: &Place<'_>) -> Result<Expr, Problem> {
        if self.expressions == EXPRESSIONS_MAX {
            return Err(
                place.wrong(format!("expressions stand {EXPRESSIONS_MAX} deep in each other at most"))
            );
        }
        self.expressions += 1;
        let expr = match place.json {
            Json::Text(text) => self.template(text, place),
            Json::List(_) => place
                .elements("an array")?
                .map(|place| self.expr(&place))
                .collect::<Result<_, _>>()
                .map(Expr::List),
            Json::Object(_) => self.function(place),
            simple => Ok(Expr::Literal(Value::from(simple))),
        };
        self.expressions -= 1;
        expr
    }

    fn function(&mut self, place: &Place<'_>) -> Result<Expr, Problem> {
        let mut members = place.members("an object")?;
        let (Some((name, of)), None) = (members.next(), members.next()) else {
            return Err(place.wrong("expected an object with one member, the name of a function"));
        };
        if FORMS.contains(&name) {
            return self.form(name, &of);
        }
        let Some(&(_, function, min, max)) = functions::by_name(name) else {
            return Err(of.wrong(format!("unknown function \"{name}\"")));
        };
        let arguments = self.arguments(&of)?;
        if !(min..=max).contains(&arguments.len()) {
            let wanted = if min == max { min.to_string() } else { format!("{min} to {max}") };
            let (met, word) = (arguments.len(), if wanted == "1" { "argument" } else { "arguments" });
            return Err(of.wrong(format!("\"{name}\" takes {wanted} {word} in an array, not {met}")));
        }
        Ok(Expr::Call(function, arguments))
    }

    /// The arguments of a function: the elements of an array, or the one that is no array.
    fn arguments(&mut self, of: &Place<'_>) -> Result<Box<[Expr]>, Problem> {
        match of.json {
            Json::List(_) => of.elements("an array")?.map(|place| self.expr(&place)).collect(),
            _ => Ok([self.expr(of)?].into()),
        }
    }

    fn form(&mut self, name: &str, of: &Place<'_>) -> Result<Expr, Problem> {
        match name {
            "and" | "or" | "coalesce" => {
                let all = self.arguments(of)?;
                if all.is_empty() {
                    return Err(of.wrong(format!("\"{name}\" takes one argument at least")));
                }
                Ok(match name {
                    "and" => Expr::And(all),
                    "or" => Expr::Or(all),
                    _ => Expr::Coalesce(all),
                })
            }
            "if" => {
                let three: Result<[Expr; 3], _> = self.arguments(of)?.into_vec().try_into();
                let wrong = |_| of.wrong("\"if\" takes a condition and two values in an array");
                three.map(|three| Expr::If(Box::new(three))).map_err(wrong)
            }
            "map" => self.each(EachKind::Map, "give", of),
            "filter" => self.each(EachKind::Filter, "where", of),
            "any" => self.each(EachKind::Any, "where", of),
            "all" => self.each(EachKind::All, "where", of),
            "now" => match of.text("\"ms\" or \"s\"")? {
                "ms" => Ok(Expr::Now(1)),
                "s" => Ok(Expr::Now(1000)),
                _ => Err(of.wrong("expected \"ms\" or \"s\"")),
            },
            "object" => {
                let mut members = Vec::new();
                for (name, place) in of.members("an object of expressions")? {
                    members.push((name.as_bytes().into(), self.expr(&place)?));
                }
                Ok(Expr::Object(members.into()))
            }
            "literal" => Ok(Expr::Literal(Value::from(of.json))),
            "base64" => {
                let bytes = base64::decode(of.text("a string of base64")?.as_bytes());
                bytes
                    .map(|bytes| Expr::Literal(Value::text(&bytes)))
                    .ok_or_else(|| of.wrong("expected base64"))
            }
            _ => self.path(of.text("a name with its path")?, of),
        }
    }

    fn each(&mut self, kind: EachKind, body: &'static str, of: &Place<'_>) -> Result<Expr, Problem> {
        of.only(&["in", "as", body])?;
        let part = |name: &'static str| {
            of.member(name).ok_or_else(|| of.wrong(format!("expected the members in, as and {body}")))
        };
        let list = self.expr(&part("in")?)?;
        let name = part("as")?;
        let place = part(body)?;
        let (slot, body) = self.scope(|parser| {
            let slot = parser.give(name.text("a name")?, true, &name)?;
            Ok((slot, parser.expr(&place)?))
        })?;
        Ok(Expr::Each(Box::new(Each { kind, list, slot, body })))
    }

    /// A string with `${…}` in it. One that is nothing else gives the value, and not its text.
    fn template(&self, text: &str, place: &Place<'_>) -> Result<Expr, Problem> {
        let (mut parts, mut literal, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some(at) = rest.find('$') {
            literal.extend_from_slice(&rest.as_bytes()[..at]);
            let behind = &rest[at + 1..];
            if let Some(behind) = behind.strip_prefix('$') {
                literal.push(b'$');
                rest = behind;
                continue;
            }
            let inside = behind.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            let Some((path, behind)) = inside else {
                return Err(place.wrong("expected ${name} or $$ behind a dollar sign"));
            };
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal).into()));
            }
            parts.push(Part::Value(self.path(path, place)?));
            rest = behind;
        }
        literal.extend_from_slice(rest.as_bytes());
        if parts.is_empty() {
            return Ok(Expr::Literal(Value::text(&literal)));
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal.into()));
        }
        match parts.pop() {
            Some(Part::Value(only)) if parts.is_empty() => Ok(only),
            last => {
                parts.extend(last);
                Ok(Expr::Template(parts.into()))
            }
        }
    }

    /// `name.member.0`
    fn path(&self, path: &str, place: &Place<'_>) -> Result<Expr, Problem> {
        let mut words = path.split('.');
        let name = words.next().unwrap_or_default();
        let slot =
            self.slot_of(name).ok_or_else(|| place.wrong(format!("no name \"{name}\" is seen here")))?;
        let mut segments = Vec::new();
        for word in words {
            if word.is_empty() {
                return Err(place.wrong("expected a member's name or a place between two dots"));
            }
            segments.push(match weft_store::parse_int(word.as_bytes()) {
                Some(index) => Segment::Index(index),
                None => Segment::Name(word.as_bytes().into()),
            });
        }
        Ok(if segments.is_empty() { Expr::Var(slot) } else { Expr::Path(slot, segments.into()) })
    }
}
