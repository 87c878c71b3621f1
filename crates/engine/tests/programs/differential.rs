//! Random programs beside a plain interpreter, which reads their JSON as it goes and works on a map: what they answer,
//! what then stands in the keyspace, and that nothing has changed where they fail.
//!
//! `WEFT_PROGRAMS_SECONDS` runs as long; `WEFT_PROGRAMS_SEED` begins with a seed.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use weft_engine::reply::Protocol;

use crate::support::{Bench, show};

/// Programs where no time is given.
const PROGRAMS: u64 = 1500;
const KEYS: [&str; 4] = ["a", "b", "c", "d"];
/// The key of a list, whose commands are given several arguments as one value. The model has a letter for an element.
const LIST: &str = "l";

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Makes programs. Names are `v` and a number: those of the blocks around are seen.
struct Maker {
    dice: Dice,
    seen: Vec<(String, bool)>,
    given: usize,
    loops: usize,
}

impl Maker {
    fn name(&self, dice_at: usize) -> Option<String> {
        (!self.seen.is_empty()).then(|| self.seen[dice_at % self.seen.len()].0.clone())
    }
    fn expr(&mut self, depth: usize) -> Json {
        let kinds = if depth == 0 { 6 } else { 17 };
        let two = |maker: &mut Self| json!([maker.expr(depth - 1), maker.expr(depth - 1)]);
        match self.dice.below(kinds) {
            0 => json!(self.dice.below(20) as i64 - 5),
            1 => json!(*self.dice.of(&[i64::MAX, i64::MIN, 1 << 62, 0])),
            2 => json!(*self.dice.of(&["a", "b", "7", "-3", "05", "x y", "", "$$"])),
            3 => self.dice.of(&[Json::Null, json!(true), json!(false)]).clone(),
            4 | 5 => {
                let at = self.dice.below(64);
                let template = self.dice.below(3) == 0;
                match self.name(at) {
                    Some(name) if template => json!(format!("p${{{name}}}-")),
                    Some(name) => json!(format!("${{{name}}}")),
                    None => json!(1),
                }
            }
            6..=8 => {
                let name = *self.dice.of(&["+", "-", "*"]);
                json!({ name: two(self) })
            }
            9 | 10 => {
                let name = *self.dice.of(&["==", "!=", "<", "<=", ">", ">="]);
                json!({ name: two(self) })
            }
            11 => {
                let name = *self.dice.of(&["and", "or", "coalesce", "text"]);
                json!({ name: two(self) })
            }
            12 => json!({ "not": [self.expr(depth - 1)] }),
            13 => json!({ "if": [self.expr(depth - 1), self.expr(depth - 1), self.expr(depth - 1)] }),
            14 => two(self),
            15 => json!({ "type": [self.expr(depth - 1)] }),
            _ => {
                let (kind, part) = *self.dice.of(&[
                    ("map", "give"),
                    ("filter", "where"),
                    ("any", "where"),
                    ("all", "where"),
                ]);
                let list = two(self);
                let name = self.give(true);
                let body = self.expr(depth - 1);
                self.seen.pop();
                json!({ kind: { "in": list, "as": name, part: body } })
            }
        }
    }
    fn give(&mut self, fixed: bool) -> String {
        self.given += 1;
        let name = format!("v{}", self.given);
        self.seen.push((name.clone(), fixed));
        name
    }
    /// A name that is given a value: a new one, or one that may be changed.
    fn assigned(&mut self) -> String {
        let free: Vec<String> =
            self.seen.iter().filter(|(_, fixed)| !fixed).map(|(name, _)| name.clone()).collect();
        if free.is_empty() || self.dice.below(2) == 0 {
            self.give(false)
        } else {
            self.dice.of(&free).clone()
        }
    }
    fn block(&mut self, depth: usize) -> Json {
        let (seen, count) = (self.seen.len(), 1 + self.dice.below(4));
        let steps: Vec<Json> = (0..count).map(|_| self.step(depth)).collect();
        self.seen.truncate(seen);
        json!(steps)
    }
    fn step(&mut self, depth: usize) -> Json {
        match self.dice.below(if depth == 0 { 10 } else { 16 }) {
            0..=5 => {
                let command = self.command();
                if self.dice.below(2) == 0 {
                    command
                } else {
                    json!({ "do": command, "as": self.assigned() })
                }
            }
            6 | 7 => {
                let value = self.expr(2);
                json!({ "let": { self.assigned(): value } })
            }
            8 => match self.dice.below(4) {
                0 => json!({ "return": self.expr(2) }),
                1 => json!({ "fail": "MADE" }),
                2 => json!({ "assert": self.expr(2) }),
                _ if self.loops > 0 => json!({ "break": self.expr(1) }),
                _ => json!({ "block": [] }),
            },
            9 | 10 => json!({ "if": self.expr(2), "then": self.nested(depth), "else": self.nested(depth) }),
            11 => json!({ "if": self.expr(2), "then": self.nested(depth) }),
            12 => {
                let of = self.expr(1);
                let cases = json!([
                    { "is": self.expr(1), "then": self.nested(depth) },
                    { "is": [self.expr(1), self.expr(0)], "then": self.nested(depth) },
                ]);
                json!({ "switch": of, "cases": cases, "default": self.nested(depth) })
            }
            13 => json!({ "block": self.nested(depth) }),
            _ => {
                let (kind, over) = if self.dice.below(2) == 0 {
                    let from = self.dice.below(3) as i64;
                    ("range", json!([from, from + 3, 1 + self.dice.below(2)]))
                } else {
                    ("in", json!([self.expr(1), self.expr(1)]))
                };
                let seen = self.seen.len();
                let (name, index) = (self.give(true), self.give(true));
                self.loops += 1;
                let body = self.nested(depth);
                self.loops -= 1;
                self.seen.truncate(seen);
                json!({ "for": name, "index": index, kind: over, "do": body })
            }
        }
    }
    fn nested(&mut self, depth: usize) -> Json {
        if depth == 0 { json!([]) } else { self.block(depth - 1) }
    }
    /// Mostly one that a command takes.
    fn argument(&mut self) -> Json {
        if self.dice.below(4) == 0 { self.expr(1) } else { json!(self.dice.below(9)) }
    }
    fn command(&mut self) -> Json {
        let key = *self.dice.of(&KEYS);
        match self.dice.below(7) {
            0 | 1 => json!(["GET", key]),
            2 => json!(["SET", key, self.argument()]),
            3 => json!(["INCRBY", key, self.argument()]),
            4 => json!(["APPEND", key, self.argument()]),
            5 => json!(["RPUSH", LIST, [self.argument(), self.argument(), self.dice.below(9)]]),
            _ => json!([*self.dice.of(&["DEL", "EXISTS"]), key]),
        }
    }
}

/// A value, as plainly as can be.
#[derive(Clone, Debug)]
enum Plain {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    List(Vec<Plain>),
}

use Plain::{Bool, Int, List, Null, Text};

/// Why a program ends early.
enum End {
    Failed,
    Returned(Plain),
    Break,
}

impl Plain {
    fn number(&self) -> Option<i64> {
        match self {
            Int(value) => Some(*value),
            Text(text) => text.parse::<i64>().ok().filter(|value| value.to_string() == *text),
            _ => None,
        }
    }
    fn holds(&self) -> bool {
        match self {
            Null => false,
            Bool(value) => *value,
            Int(value) => *value != 0,
            Text(text) => !text.is_empty() && text != "0" && text != "-0",
            List(list) => !list.is_empty(),
        }
    }
    fn rank(&self) -> usize {
        match self {
            Null => 0,
            Bool(_) => 1,
            _ if self.number().is_some() => 2,
            Int(_) | Text(_) => 3,
            List(_) => 4,
        }
    }
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Bool(one), Bool(two)) => one.cmp(two),
            (List(one), List(two)) => {
                let first =
                    one.iter().zip(two).map(|(one, two)| one.compare(two)).find(|order| order.is_ne());
                first.unwrap_or(one.len().cmp(&two.len()))
            }
            _ => match (self.number(), other.number(), self, other) {
                (Some(one), Some(two), ..) => one.cmp(&two),
                (None, None, Text(one), Text(two)) => one.as_bytes().cmp(two.as_bytes()),
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }
    fn text(&self) -> Result<String, End> {
        match self {
            Bool(value) => Ok(if *value { "1" } else { "0" }.to_owned()),
            Int(value) => Ok(value.to_string()),
            Text(text) => Ok(text.clone()),
            Null | List(_) => Err(End::Failed),
        }
    }
    /// As a client sees it.
    fn shown(&self) -> String {
        match self {
            Null => "nil".to_owned(),
            Bool(value) => value.to_string(),
            Int(value) => value.to_string(),
            Text(text) => text.clone(),
            List(list) => format!("[{}]", list.iter().map(Self::shown).collect::<Vec<_>>().join(" ")),
        }
    }
}

/// The plain interpreter.
#[derive(Clone, Default)]
struct Model {
    keys: BTreeMap<String, String>,
    names: Vec<(String, Plain)>,
}

impl Model {
    fn of(&self, name: &str) -> Plain {
        self.names.iter().rev().find(|(other, _)| other == name).expect("a name that is seen").1.clone()
    }
    fn assign(&mut self, name: &str, value: Plain) {
        match self.names.iter_mut().rev().find(|(other, _)| other == name) {
            Some(place) => place.1 = value,
            None => self.names.push((name.to_owned(), value)),
        }
    }
    fn expr(&mut self, expr: &Json) -> Result<Plain, End> {
        let members = match expr {
            Json::Null => return Ok(Null),
            Json::Bool(value) => return Ok(Bool(*value)),
            Json::Number(number) => return Ok(Int(number.as_i64().expect("an integer"))),
            Json::String(text) => return self.template(text),
            Json::Array(list) => {
                return list.iter().map(|expr| self.expr(expr)).collect::<Result<_, _>>().map(List);
            }
            Json::Object(members) => members,
        };
        let (name, of) = members.iter().next().expect("one member");
        if let Json::Object(each) = of {
            return self.each(name, each);
        }
        let of = of.as_array().expect("arguments");
        match name.as_str() {
            "and" | "or" | "coalesce" => {
                let mut last = Null;
                for expr in of {
                    last = self.expr(expr)?;
                    let ends = match name.as_str() {
                        "and" => !last.holds(),
                        "or" => last.holds(),
                        _ => !matches!(last, Null),
                    };
                    if ends {
                        break;
                    }
                }
                return Ok(last);
            }
            "if" => {
                let holds = self.expr(&of[0])?.holds();
                return self.expr(&of[if holds { 1 } else { 2 }]);
            }
            _ => {}
        }
        let values: Vec<Plain> = of.iter().map(|expr| self.expr(expr)).collect::<Result<_, _>>()?;
        let order = || values[0].compare(&values[1]);
        Ok(match name.as_str() {
            "==" => Bool(order().is_eq()),
            "!=" => Bool(order().is_ne()),
            "<" => Bool(order().is_lt()),
            "<=" => Bool(order().is_le()),
            ">" => Bool(order().is_gt()),
            ">=" => Bool(order().is_ge()),
            "not" => Bool(!values[0].holds()),
            "text" => Text(values[0].text()? + &values[1].text()?),
            "type" => Text(
                match values[0] {
                    Null => "null",
                    Bool(_) => "bool",
                    Int(_) => "int",
                    Text(_) => "text",
                    List(_) => "list",
                }
                .to_owned(),
            ),
            _ => {
                let (Some(one), Some(two)) = (values[0].number(), values[1].number()) else {
                    return Err(End::Failed);
                };
                let result = match name.as_str() {
                    "+" => one.checked_add(two),
                    "-" => one.checked_sub(two),
                    _ => one.checked_mul(two),
                };
                Int(result.ok_or(End::Failed)?)
            }
        })
    }
    fn each(&mut self, kind: &str, each: &serde_json::Map<String, Json>) -> Result<Plain, End> {
        let List(list) = self.expr(&each["in"])? else { return Err(End::Failed) };
        let name = each["as"].as_str().expect("a name").to_owned();
        let body = each.get("give").or(each.get("where")).expect("a body").clone();
        let mut made = Vec::new();
        for element in list {
            self.names.push((name.clone(), element.clone()));
            let value = self.expr(&body);
            self.names.pop();
            let value = value?;
            match kind {
                "map" => made.push(value),
                "filter" if value.holds() => made.push(element),
                "any" if value.holds() => return Ok(Bool(true)),
                "all" if !value.holds() => return Ok(Bool(false)),
                _ => {}
            }
        }
        Ok(match kind {
            "any" => Bool(false),
            "all" => Bool(true),
            _ => List(made),
        })
    }
    /// A string is plain, one name, or a name between two texts.
    fn template(&self, text: &str) -> Result<Plain, End> {
        let Some((before, rest)) = text.split_once("${") else { return Ok(Text(text.replace("$$", "$"))) };
        let (name, behind) = rest.split_once('}').expect("an end");
        let value = self.of(name);
        if before.is_empty() && behind.is_empty() {
            return Ok(value);
        }
        Ok(Text(format!("{before}{}{behind}", value.text()?)))
    }
    fn block(&mut self, steps: &Json) -> Result<(), End> {
        let seen = self.names.len();
        let outcome = steps.as_array().expect("steps").iter().try_for_each(|step| self.step(step));
        self.names.truncate(seen);
        outcome
    }
    fn step(&mut self, step: &Json) -> Result<(), End> {
        if step.is_array() {
            return self.command(step).map(drop);
        }
        let has = |name: &str| step.get(name).is_some();
        let nothing = json!([]);
        match () {
            () if has("for") => return self.loops(step),
            () if has("do") => {
                let value = self.command(&step["do"])?;
                self.assign(step["as"].as_str().expect("a name"), value);
            }
            () if has("let") => {
                let (name, expr) = step["let"].as_object().expect("names").iter().next().expect("one");
                let value = self.expr(expr)?;
                self.assign(name, value);
            }
            () if has("if") => {
                let holds = self.expr(&step["if"])?.holds();
                return self.block(if holds { &step["then"] } else { step.get("else").unwrap_or(&nothing) });
            }
            () if has("switch") => {
                let of = self.expr(&step["switch"])?;
                for case in step["cases"].as_array().expect("cases") {
                    let candidates = match &case["is"] {
                        Json::Array(all) => all.clone(),
                        one => vec![one.clone()],
                    };
                    for candidate in candidates {
                        if self.expr(&candidate)?.compare(&of).is_eq() {
                            return self.block(&case["then"]);
                        }
                    }
                }
                return self.block(&step["default"]);
            }
            () if has("break") => {
                if self.expr(&step["break"])?.holds() {
                    return Err(End::Break);
                }
            }
            () if has("return") => return Err(End::Returned(self.expr(&step["return"])?)),
            () if has("fail") => return Err(End::Failed),
            () if has("assert") => {
                if !self.expr(&step["assert"])?.holds() {
                    return Err(End::Failed);
                }
            }
            () => return self.block(&step["block"]),
        }
        Ok(())
    }
    fn loops(&mut self, step: &Json) -> Result<(), End> {
        let elements = match step.get("range") {
            Some(range) => {
                let at = |index: usize| range[index].as_i64().expect("an integer");
                (at(0)..at(1)).step_by(at(2) as usize).map(Int).collect()
            }
            None => {
                let List(list) = self.expr(&step["in"])? else { return Err(End::Failed) };
                list
            }
        };
        let name = |member: &str| step[member].as_str().expect("a name").to_owned();
        for (at, element) in elements.into_iter().enumerate() {
            let seen = self.names.len();
            self.names.push((name("for"), element));
            self.names.push((name("index"), Int(at as i64)));
            let outcome = self.block(&step["do"]);
            self.names.truncate(seen);
            match outcome {
                Err(End::Break) => break,
                outcome => outcome?,
            }
        }
        Ok(())
    }
    fn command(&mut self, command: &Json) -> Result<Plain, End> {
        let word = |at: usize| command[at].as_str().expect("a word");
        let key = word(1).to_owned();
        let argument = match command.get(2) {
            None => String::new(),
            Some(expr) => match self.expr(expr)? {
                List(list) if word(0) == "RPUSH" => {
                    list.iter().try_for_each(|element| element.text().map(drop))?;
                    let all = self.keys.entry(key).or_default();
                    all.extend(list.iter().map(|_| 'x'));
                    return Ok(Int(all.len() as i64));
                }
                // A list becomes as many arguments: only one of one element is as many as there may be.
                List(list) => match &list[..] {
                    [one] => one.text()?,
                    _ => return Err(End::Failed),
                },
                value => value.text()?,
            },
        };
        Ok(match word(0) {
            "GET" => self.keys.get(&key).cloned().map_or(Null, Text),
            "SET" => {
                self.keys.insert(key, argument);
                Text("OK".to_owned())
            }
            "APPEND" => {
                let text = self.keys.entry(key).or_default();
                text.push_str(&argument);
                Int(text.len() as i64)
            }
            "INCRBY" => {
                let whole = |text: &str| Text(text.to_owned()).number().ok_or(End::Failed);
                let before = self.keys.get(&key).map_or(Ok(0), |text| whole(text))?;
                let value = before.checked_add(whole(&argument)?).ok_or(End::Failed)?;
                self.keys.insert(key, value.to_string());
                Int(value)
            }
            "DEL" => Int(self.keys.remove(&key).is_some().into()),
            _ => Int(self.keys.contains_key(&key).into()),
        })
    }
}

#[test]
fn random_programs_do_what_a_plain_interpreter_does() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, seconds) = (number("WEFT_PROGRAMS_SEED").unwrap_or(1), number("WEFT_PROGRAMS_SECONDS"));
    let began = Instant::now();
    let (mut bench, mut ran, mut failed, mut returned) = (Bench::new(), 0, 0, 0);
    let client = bench.connect(Protocol::Resp3);
    bench.text(client, "CONFIG SET program-time-ms-max 60000");
    let mut model = Model::default();
    let goes_on = |ran: u64| match seconds {
        Some(seconds) => began.elapsed() < Duration::from_secs(seconds),
        None => ran < PROGRAMS,
    };
    while goes_on(ran) {
        let dice = Dice((seed + ran).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut maker = Maker { dice, seen: Vec::new(), given: 0, loops: 0 };
        let mut steps = maker.block(3);
        if let Json::Array(steps) = &mut steps {
            steps.push(json!({ "return": maker.expr(1) }));
        }
        let program = json!({ "limits": { "time-ms": 60000 }, "steps": steps }).to_string();
        let mut after = model.clone();
        let outcome = after.block(&steps);
        let replies = bench.run_args(client, &[b"PROGRAM", b"EVAL", program.as_bytes()]);
        let answer = replies.iter().map(show).collect::<Vec<_>>().join(" ");
        let at = format!("seed {}: {program}", seed + ran);
        match outcome {
            Err(End::Failed) => {
                assert!(answer.starts_with('-'), "{at}: {answer}, and it fails");
                failed += 1;
            }
            outcome => {
                let value = if let Err(End::Returned(value)) = outcome { value } else { Null };
                assert_eq!(answer, value.shown(), "{at}");
                returned += u64::from(!matches!(value, Null));
                model.keys = after.keys;
            }
        }
        for key in KEYS {
            let wanted = model.keys.get(key).map_or("nil", String::as_str);
            let reply = bench.run_args(client, &[b"GET", key.as_bytes()]);
            assert_eq!(reply.iter().map(show).collect::<Vec<_>>(), [wanted], "{at}: {key}");
        }
        let wanted = model.keys.get(LIST).map_or(0, String::len).to_string();
        assert_eq!(bench.text(client, &format!("LLEN {LIST}")), wanted, "{at}: {LIST}");
        // What has grown for long says no more than what has not.
        if model.keys.values().any(|text| text.len() > 64) {
            model.keys.clear();
            bench.text(client, "FLUSHALL");
        }
        ran += 1;
    }
    println!("{ran} programs, {failed} failed, {returned} answered something");
    assert!(ran < 100 || failed > ran / 20 && returned > ran / 20, "{failed} failed, {returned} answered");
}
