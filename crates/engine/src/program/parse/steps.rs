//! Owns: reading steps. Does not own: expressions (`super::expr`), what steps do (`crate::logic`).

use std::sync::Arc;
use weft_protocol::table::flag;

use super::{BLOCKS_MAX, Parser, Place, Problem};
use crate::args::{self, Composed, check_arity};
use crate::program::expr::Expr;
use crate::program::json::Json;
use crate::program::quick::Quick;
use crate::program::steps::{At, Command, Fail, For, Over, Step, Steps, What};
use crate::program::value::Value;

/// The members that a step may have, by the one that says what it does.
const KINDS: [(&str, &[&str]); 9] = [
    ("do", &["do", "as"]),
    ("let", &["let"]),
    ("if", &["if", "then", "else"]),
    ("switch", &["switch", "cases", "default"]),
    ("break", &["break"]),
    ("return", &["return"]),
    ("fail", &["fail", "message"]),
    ("assert", &["assert", "code", "message"]),
    ("block", &["block"]),
];
/// Those of a loop, whose block is called `do` too.
const LOOP: &[&str] = &["for", "index", "in", "range", "keys", "limit", "do"];

impl Parser {
    /// Steps, one after the other.
    pub(super) fn block(&mut self, place: &Place<'_>) -> Result<Steps, Problem> {
        if self.blocks == BLOCKS_MAX {
            return Err(place.wrong(format!("blocks stand {BLOCKS_MAX} deep in each other at most")));
        }
        self.blocks += 1;
        let steps = self.scope(|parser| {
            let steps = place.elements("an array of steps")?;
            let pointer: Arc<str> = if steps.len() == 0 { Arc::default() } else { place.pointer().into() };
            let step = |(number, place)| {
                let at = At { block: Arc::clone(&pointer), number };
                Ok(Step { at, what: parser.what(&place)? })
            };
            steps.enumerate().map(step).collect::<Result<_, _>>()
        });
        self.blocks -= 1;
        steps
    }

    /// The block of a member; an empty one where there is none.
    fn member_block(&mut self, place: &Place<'_>, name: &str) -> Result<Steps, Problem> {
        place.member(name).map_or(Ok(Steps::default()), |place| self.block(&place))
    }

    fn what(&mut self, place: &Place<'_>) -> Result<What, Problem> {
        match place.json {
            Json::List(_) => self.command(place, None),
            Json::Object(_) if place.json.get("for").is_some() => self.loops(place),
            Json::Object(_) => self.other(place),
            _ => Err(place.expected("a step: an array with a command, or an object")),
        }
    }

    fn other(&mut self, place: &Place<'_>) -> Result<What, Problem> {
        let Some((kind, members)) = KINDS.iter().find(|(kind, _)| place.json.get(kind).is_some()) else {
            let kinds = KINDS.map(|(kind, _)| kind).join(", ");
            return Err(place.wrong(format!("expected a step with one of the members for, {kinds}")));
        };
        place.only(members)?;
        let Some(of) = place.member(kind) else { return Err(place.expected("a step")) };
        Ok(match *kind {
            "do" => self.command(&of, place.member("as"))?,
            "let" => {
                let mut all = Vec::new();
                for (name, place) in of.members("an object of names and values")? {
                    // The value is read before its name is seen.
                    let value = self.expr(&place)?;
                    all.push((self.assign(name, &place)?, value));
                }
                What::Let(all.into())
            }
            "if" => {
                let condition = self.expr(&of)?;
                let then = place.member("then").ok_or_else(|| place.wrong("expected the member \"then\""))?;
                What::If(condition, self.block(&then)?, self.member_block(place, "else")?)
            }
            "switch" => self.switch(&of, place)?,
            "break" => {
                if self.loops == 0 {
                    return Err(of.wrong("there is no loop around it to be ended"));
                }
                What::Break(match of.json {
                    Json::Bool(true) => None,
                    _ => Some(self.expr(&of)?),
                })
            }
            "return" => What::Return(self.expr(&of)?),
            "fail" => self.fail(None, Some(of), place)?,
            "assert" => {
                let unless = self.expr(&of)?;
                self.fail(Some(unless), place.member("code"), place)?
            }
            _ => What::Block(self.block(&of)?),
        })
    }

    fn switch(&mut self, of: &Place<'_>, place: &Place<'_>) -> Result<What, Problem> {
        let of = self.expr(of)?;
        let cases = place.member("cases").ok_or_else(|| place.wrong("expected the member \"cases\""))?;
        let mut all = Vec::new();
        for case in cases.elements("an array of cases")? {
            case.only(&["is", "then"])?;
            let (Some(is), Some(then)) = (case.member("is"), case.member("then")) else {
                return Err(case.wrong("expected a case with the members is and then"));
            };
            let values = match is.json {
                Json::List(_) => {
                    is.elements("values")?.map(|place| self.expr(&place)).collect::<Result<_, _>>()?
                }
                _ => [self.expr(&is)?].into(),
            };
            all.push((values, self.block(&then)?));
        }
        Ok(What::Switch(of, all.into(), self.member_block(place, "default")?))
    }

    fn fail(
        &mut self,
        unless: Option<Expr>,
        code: Option<Place<'_>>,
        place: &Place<'_>,
    ) -> Result<What, Problem> {
        let default = if unless.is_some() { "ASSERT" } else { "FAILED" };
        let code = match code {
            None => Expr::Literal(Value::text(default.as_bytes())),
            Some(code) => {
                let expr = self.expr(&code)?;
                if let Expr::Literal(value) = &expr
                    && !value.to_text().is_ok_and(|text| is_code(&text))
                {
                    return Err(code.wrong("expected a code: upper-case letters, digits and _"));
                }
                expr
            }
        };
        let message = match place.member("message") {
            None => Expr::Literal(Value::text(b"")),
            Some(message) => self.expr(&message)?,
        };
        Ok(What::Fail(Box::new(Fail { unless, code, message })))
    }

    fn loops(&mut self, place: &Place<'_>) -> Result<What, Problem> {
        place.only(LOOP)?;
        let over = match (place.member("in"), place.member("range"), place.member("keys")) {
            (Some(list), None, None) => Over::Elements(self.expr(&list)?),
            (None, Some(range), None) => self.range(&range)?,
            (None, None, Some(keys)) => {
                let limit = place.member("limit").ok_or_else(|| {
                    place.wrong("expected the member \"limit\": how many keys may match at most")
                })?;
                Over::Keys(self.expr(&keys)?, self.expr(&limit)?)
            }
            _ => return Err(place.wrong("expected one of the members in, range and keys")),
        };
        if let (Some(limit), false) = (place.member("limit"), matches!(over, Over::Keys(..))) {
            return Err(limit.wrong("a limit belongs to a loop over keys"));
        }
        let (Some(name), Some(body)) = (place.member("for"), place.member("do")) else {
            return Err(place.wrong("expected the member \"do\""));
        };
        let index = place.member("index");
        self.loops += 1;
        let read = self.scope(|parser| {
            let slot = parser.give(name.text("a name")?, true, &name)?;
            let index = match index {
                None => None,
                Some(place) => Some(parser.give(place.text("a name")?, true, &place)?),
            };
            Ok(What::For(Box::new(For { slot, index, over, body: parser.block(&body)? })))
        });
        self.loops -= 1;
        read
    }

    fn range(&mut self, place: &Place<'_>) -> Result<Over, Problem> {
        let mut ends: Vec<Expr> = place
            .elements("an array: from, to, step")?
            .map(|place| self.expr(&place))
            .collect::<Result<_, _>>()?;
        if ends.len() == 2 {
            ends.push(Expr::Literal(Value::Int(1)));
        }
        let three: Result<[Expr; 3], _> = ends.try_into();
        let wrong = |_| place.wrong("expected an array of two or three: from, to, step");
        three.map(|three| Over::Range(Box::new(three))).map_err(wrong)
    }

    fn command(&mut self, place: &Place<'_>, bind: Option<Place<'_>>) -> Result<What, Problem> {
        let mut places = place.elements("an array: a command and its arguments")?;
        let Some(first) = places.next() else { return Err(place.wrong("expected a command's name")) };
        let name = first.text("a command's name")?;
        let mut args = vec![Expr::Literal(Value::text(name.as_bytes()))];
        let mut second = None;
        for (at, place) in places.enumerate() {
            if let (0, Json::Text(text)) = (at, place.json) {
                second = Some(text.as_bytes());
            }
            args.push(self.expr(&place)?);
        }
        let Some(id) = args::find(name.as_bytes(), second) else {
            return Err(first.wrong(format!("unknown command \"{name}\"")));
        };
        let spec = id.spec();
        if spec.flags & (flag::NOSCRIPT | flag::ADMIN) != 0 || crate::requests::is_container(id) {
            return Err(first.wrong(format!("the command \"{name}\" cannot run in a program")));
        }
        // What is no text may be a list, which becomes as many arguments as it has elements.
        if args.iter().all(|arg| matches!(arg, Expr::Literal(_) | Expr::Template(_))) {
            check_arity(spec, args.len()).map_err(|error| place.wrong(error.text))?;
        }
        self.writes |= spec.flags & flag::WRITE != 0;
        let bind = match bind {
            None => None,
            Some(place) => Some(self.assign(place.text("a name")?, &place)?),
        };
        // A path may lead to a list too, and then there are more arguments.
        let mut composed = Composed::default();
        args.iter().for_each(|_| composed.push(b""));
        let quick = Quick::of(id, &composed.args(spec), &args);
        Ok(What::Command(Box::new(Command { spec, args: args.into(), bind, quick })))
    }
}

/// Whether a text may be the first word of an error.
pub(crate) fn is_code(text: &[u8]) -> bool {
    (1..=32).contains(&text.len())
        && text.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
}
