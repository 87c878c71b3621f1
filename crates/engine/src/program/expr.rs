//! Owns: expressions in the form that they run in, and giving their values. Does not own: reading them
//! (`super::parse`), what each function does (`super::functions`).
//!
//! Names have been turned into places of the frame, texts into parts, names of functions into numbers: nothing is
//! looked up or parsed when they run.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::budget::{Budget, LITTLE_BYTES};
use super::functions::{self, ELEMENTS_PER_MEMBER, Function};
use super::value::{Members, Value};

/// What an expression cannot give a value for.
pub type Fault = Cow<'static, str>;

/// An expression.
#[derive(Debug)]
pub enum Expr {
    /// A value of the program's text.
    Literal(Value),
    /// What stands at a place of the frame.
    Var(usize),
    /// What a path leads to from there.
    Path(usize, Box<[Segment]>),
    /// Texts and values in turn.
    Template(Box<[Part]>),
    /// A list of values.
    List(Box<[Expr]>),
    /// An object of values.
    Object(Box<[(Box<[u8]>, Expr)]>),
    /// A function of values.
    Call(Function, Box<[Expr]>),
    /// The last value if all hold, else the first that does not.
    And(Box<[Expr]>),
    /// The first value that holds, else the last.
    Or(Box<[Expr]>),
    /// The second if the first holds, else the third.
    If(Box<[Expr; 3]>),
    /// The first that is not null.
    Coalesce(Box<[Expr]>),
    /// Something of each element.
    Each(Box<Each>),
    /// The time of the program, in milliseconds divided by this.
    Now(u64),
}

/// A step of a path.
#[derive(Debug)]
pub enum Segment {
    /// A member.
    Name(Box<[u8]>),
    /// An element, from the end if it is negative; also the member of that name.
    Index(i64),
}

/// A part of a template.
#[derive(Debug)]
pub enum Part {
    /// As it is.
    Text(Box<[u8]>),
    /// A value's text.
    Value(Expr),
}

/// What is done with each element of a list.
#[derive(Debug)]
pub struct Each {
    /// What.
    pub kind: EachKind,
    /// The list.
    pub list: Expr,
    /// Where the element stands meanwhile.
    pub slot: usize,
    /// Of each.
    pub body: Expr,
}

/// What is made of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EachKind {
    /// A list of what each gives.
    Map,
    /// A list of the elements for which it holds.
    Filter,
    /// Whether it holds for any.
    Any,
    /// Whether it holds for all.
    All,
}

/// What expressions are evaluated over.
#[derive(Debug)]
pub struct Frame {
    /// Parameters and variables, by place.
    pub values: Vec<Value>,
    /// The time of the program.
    pub now_ms: u64,
    /// What is left to be done.
    pub budget: Budget,
}

impl Expr {
    /// Calls `visit` with it and everything inside.
    pub fn each(&self, visit: &mut dyn FnMut(&Self)) {
        visit(self);
        match self {
            Self::Literal(_) | Self::Var(_) | Self::Path(..) | Self::Now(_) => {}
            Self::Template(parts) => parts.iter().for_each(|part| match part {
                Part::Text(_) => {}
                Part::Value(expr) => expr.each(visit),
            }),
            Self::List(all) | Self::Call(_, all) | Self::And(all) | Self::Or(all) | Self::Coalesce(all) => {
                all.iter().for_each(|expr| expr.each(visit));
            }
            Self::Object(members) => members.iter().for_each(|(_, expr)| expr.each(visit)),
            Self::If(three) => three.iter().for_each(|expr| expr.each(visit)),
            Self::Each(each) => {
                each.list.each(visit);
                each.body.each(visit);
            }
        }
    }
}

impl Frame {
    /// The value of an expression that needs no work.
    #[inline]
    pub(super) fn peek<'v>(&'v self, expr: &'v Expr) -> Option<&'v Value> {
        match expr {
            Expr::Literal(value) => Some(value),
            Expr::Var(slot) => Some(&self.values[*slot]),
            Expr::Path(slot, path) => self.follow(*slot, path),
            _ => None,
        }
    }
    fn follow<'v>(&'v self, slot: usize, path: &[Segment]) -> Option<&'v Value> {
        path.iter().try_fold(&self.values[slot], |value, segment| match segment {
            Segment::Name(name) => functions::member(value, name),
            Segment::Index(index) => functions::element(value, *index),
        })
    }

    /// Appends the text of an expression's value.
    pub fn write_text(&mut self, expr: &Expr, out: &mut Vec<u8>) -> Result<(), Fault> {
        let no_text = |kind| Fault::from(format!("{kind} has no text: coalesce or to_json give it one"));
        match expr {
            Expr::Literal(value) => {
                self.budget.take_joined(value, out.len())?;
                value.write_text(out).map_err(no_text)
            }
            Expr::Var(slot) => {
                let value = &self.values[*slot];
                self.budget.take_joined(value, out.len())?;
                value.write_text(out).map_err(no_text)
            }
            Expr::Template(parts) => {
                self.budget.take_elements(parts.len())?;
                for part in parts {
                    let text = match part {
                        Part::Text(text) => text,
                        Part::Value(expr) => match self.peek(expr) {
                            Some(Value::Text(text)) if text.len() < LITTLE_BYTES => &**text,
                            _ => {
                                self.write_text(expr, out)?;
                                continue;
                            }
                        },
                    };
                    let (bytes, before) = (text.len(), out.len());
                    out.extend_from_slice(text);
                    self.budget.take_joined_bytes(bytes, before)?;
                }
                Ok(())
            }
            _ => {
                let value = self.eval(expr)?;
                self.budget.take_joined(&value, out.len())?;
                value.write_text(out).map_err(no_text)
            }
        }
    }

    /// Whether an expression holds.
    pub fn holds(&mut self, expr: &Expr) -> Result<bool, Fault> {
        // Most are comparisons of values that are there.
        if let Expr::Call(function, both) = expr
            && let [one, two] = &**both
            && let Some(decide) = function.decides()
            && let (Some(one), Some(two)) = (self.peek(one), self.peek(two))
            && !one.is_long_beside(two)
        {
            return Ok(decide(one.compare(two)));
        }
        match self.peek(expr) {
            Some(value) => Ok(value.holds()),
            None => self.eval(expr).map(|value| value.holds()),
        }
    }

    /// The value of an expression.
    pub fn eval(&mut self, expr: &Expr) -> Result<Value, Fault> {
        match expr {
            Expr::Literal(value) => Ok(value.clone()),
            Expr::Var(slot) => Ok(self.values[*slot].clone()),
            Expr::Path(slot, path) => Ok(self.follow(*slot, path).cloned().unwrap_or_default()),
            Expr::Template(_) => {
                let mut text = Vec::new();
                self.write_text(expr, &mut text)?;
                self.made(Value::text(&text))
            }
            Expr::List(elements) => {
                self.budget.take_elements(elements.len())?;
                let list = elements.iter().map(|element| self.eval(element)).collect::<Result<_, _>>()?;
                self.made(Value::list(list))
            }
            Expr::Object(members) => {
                self.budget.take_elements(members.len().saturating_mul(ELEMENTS_PER_MEMBER))?;
                let mut object = Members::new();
                for (name, value) in members {
                    object.insert(name.clone(), self.eval(value)?);
                }
                self.made(Value::object(object))
            }
            Expr::Call(function, arguments) => self.call(*function, arguments),
            Expr::And(all) => self.until(all, |value| !value.holds()),
            Expr::Or(all) => self.until(all, Value::holds),
            Expr::Coalesce(all) => self.until(all, |value| !matches!(value, Value::Null)),
            Expr::If(three) => {
                self.budget.take_elements(1)?;
                let [condition, then, otherwise] = &**three;
                let chosen = if self.holds(condition)? { then } else { otherwise };
                self.eval(chosen)
            }
            Expr::Each(each) => self.each(each),
            Expr::Now(divisor) => Ok(Value::Int((self.now_ms / divisor) as i64)),
        }
    }

    /// The first value that ends the search, else the last.
    fn until(&mut self, all: &[Expr], ends: impl Fn(&Value) -> bool) -> Result<Value, Fault> {
        let mut last = Value::Null;
        for expr in all {
            self.budget.take_elements(1)?;
            last = self.eval(expr)?;
            if ends(&last) {
                break;
            }
        }
        Ok(last)
    }

    fn call(&mut self, function: Function, arguments: &[Expr]) -> Result<Value, Fault> {
        // Comparisons look at values where they stand.
        if let ([one, two], Some(decide)) = (arguments, function.decides()) {
            if let (Some(one), Some(two)) = (self.peek(one), self.peek(two))
                && !one.is_long_beside(two)
            {
                return Ok(Value::Bool(decide(one.compare(two))));
            }
            self.budget.take_elements(arguments.len())?;
            let (one, two) = (self.eval(one)?, self.eval(two)?);
            return Ok(Value::Bool(decide(self.compare(&one, &two)?)));
        }
        let values: Vec<Value> = arguments.iter().map(|expr| self.eval(expr)).collect::<Result<_, _>>()?;
        self.budget.take_elements(values.len() + functions::elements(function, &values))?;
        if let Some(extent) = functions::walked(function, &values) {
            self.budget.take_walk(extent)?;
        }
        if let Some((extent, steps)) = functions::made(function, &values) {
            self.budget.check_extent(extent)?;
            self.budget.take_work(steps)?;
        }
        let value = functions::call(function, values)?;
        self.made(value)
    }

    /// The order of two values, which is paid for.
    pub(crate) fn compare(&mut self, one: &Value, two: &Value) -> Result<Ordering, Fault> {
        match (one, two) {
            (Value::Text(one), Value::Text(two)) if one.len().min(two.len()) >= LITTLE_BYTES => {
                self.budget.take_compared(one.len().min(two.len()))?;
            }
            _ if one.is_whole() && two.is_whole() => {
                self.budget.take_walk(one.extent().lesser(two.extent()))?;
            }
            _ => {}
        }
        Ok(one.compare(two))
    }

    /// Counts a value that was made.
    fn made(&mut self, value: Value) -> Result<Value, Fault> {
        self.budget.take_memory(value.bytes())?;
        if value.is_whole() {
            self.budget.check_extent(value.extent())?;
        }
        Ok(value)
    }

    fn each(&mut self, each: &Each) -> Result<Value, Fault> {
        let list = match self.eval(&each.list)? {
            Value::List(list) => list,
            Value::Null => Arc::default(),
            other => return Err(format!("expected a list, met a {}", other.type_name()).into()),
        };
        let mut made = Vec::new();
        for element in list.iter() {
            self.budget.take_step()?;
            self.values[each.slot] = element.clone();
            match each.kind {
                EachKind::Map => made.push(self.eval(&each.body)?),
                EachKind::Filter if self.holds(&each.body)? => made.push(element.clone()),
                EachKind::Any if self.holds(&each.body)? => return Ok(Value::Bool(true)),
                EachKind::All if !self.holds(&each.body)? => return Ok(Value::Bool(false)),
                EachKind::Filter | EachKind::Any | EachKind::All => {}
            }
        }
        match each.kind {
            EachKind::Map | EachKind::Filter => self.made(Value::list(made)),
            EachKind::Any => Ok(Value::Bool(false)),
            EachKind::All => Ok(Value::Bool(true)),
        }
    }
}
