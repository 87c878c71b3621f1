//! Owns: a program in the form that it runs in. Does not own: reading it (`super::parse`), running it (`super::run`).

use std::fmt;
use std::sync::Arc;

use weft_protocol::table::{CommandSpec, Cost, flag};

use super::budget::Limits;
use super::expr::Expr;
use super::keys::Keys;
use super::quick::Quick;
use super::value::Value;
use crate::args::OwnedArgs;

/// A program that has been read and checked.
#[derive(Debug)]
pub struct Program {
    /// What it says of itself.
    pub description: Box<str>,
    /// Its parameters, which have the first places of the frame.
    pub params: Vec<Param>,
    /// Which keys it will come to.
    pub keys: Keys,
    /// It runs with the rights of whoever stored it.
    pub as_owner: bool,
    /// What it may do, within what is configured.
    pub limits: Limits,
    /// What it does.
    pub steps: Steps,
    /// Places of its frame.
    pub slots: usize,
    /// Whether any of its commands writes.
    pub writes: bool,
    /// Whether it always takes about the same short time.
    pub quick: bool,
    /// What it looks at of its first parameter, if that is an event: bits of `crate::trigger::event::member`.
    pub event: u8,
    /// All that it does, if that is one quick command about one key with constant arguments.
    pub direct: Option<OwnedArgs>,
}

/// Bytes of the arguments of a command that is kept as it is run.
const DIRECT_BYTES_MAX: usize = 256;

/// The only command of a program, if it writes one key, always takes about the same short time, and its arguments are
/// constants.
pub(super) fn direct(steps: &[Step]) -> Option<OwnedArgs> {
    let [Step { what: What::Command(command), .. }] = steps else { return None };
    let Command { spec, args, bind: None, .. } = &**command else { return None };
    let texts = args.iter().map(|arg| match arg {
        Expr::Literal(value) => value.to_text().ok(),
        _ => None,
    });
    let texts = texts.collect::<Option<Vec<_>>>()?;
    let bytes = texts.iter().map(|text| text.len()).sum::<usize>();
    let one_key = spec.keys == (1, 1, 1) && spec.key_specs.len() == 1 && texts.len() > 1;
    let short = spec.flags & flag::FAST != 0 && spec.cost == Cost::Arguments && bytes <= DIRECT_BYTES_MAX;
    (spec.flags & flag::WRITE != 0 && one_key && short)
        .then(|| OwnedArgs::new(spec, texts.iter().map(|text| &**text)))
}

/// A parameter.
#[derive(Debug)]
pub struct Param {
    /// Its name.
    pub name: Box<str>,
    /// Its type.
    pub kind: ParamKind,
    /// What it is where it is not given.
    pub default: Option<Value>,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// Any bytes.
    Text,
    /// An integer.
    Int,
    /// A number.
    Number,
    /// true or false, 1 or 0.
    Bool,
    /// A list, given as JSON.
    List,
    /// An object, given as JSON.
    Object,
    /// Anything, given as JSON.
    Any,
}

impl ParamKind {
    /// Kinds by their names.
    pub const NAMES: [(&str, Self); 7] = [
        ("text", Self::Text),
        ("int", Self::Int),
        ("number", Self::Number),
        ("bool", Self::Bool),
        ("list", Self::List),
        ("object", Self::Object),
        ("any", Self::Any),
    ];
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// Steps, one after the other.
pub type Steps = Box<[Step]>;

/// A step.
#[derive(Debug)]
pub struct Step {
    /// Where it stands.
    pub at: At,
    /// What it does.
    pub what: What,
}

/// Where a step stands, which is written as a JSON pointer.
#[derive(Debug)]
pub struct At {
    /// The pointer to its block, which all steps of the block share.
    pub(super) block: Arc<str>,
    /// The number of the step there.
    pub(super) number: usize,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.block, self.number)
    }
}

/// What a step does.
#[derive(Debug)]
pub enum What {
    /// Runs a command.
    Command(Box<Command>),
    /// Gives places values.
    Let(Box<[(usize, Expr)]>),
    /// One of two blocks.
    If(Expr, Steps, Steps),
    /// The block of the first case that has the value, or the last one.
    Switch(Expr, Box<[(Box<[Expr]>, Steps)]>, Steps),
    /// A block for each of many.
    For(Box<For>),
    /// Ends the loop around it, if there is no condition or it holds.
    Break(Option<Expr>),
    /// Ends the program with a value.
    Return(Expr),
    /// Ends the program with an error, unless the condition, if there is one, holds.
    Fail(Box<Fail>),
    /// Steps.
    Block(Steps),
}

/// A command of a program.
#[derive(Debug)]
pub struct Command {
    /// Which.
    pub spec: &'static CommandSpec,
    /// Its arguments, the name first.
    pub args: Box<[Expr]>,
    /// Where its reply goes.
    pub bind: Option<usize>,
    /// How it runs where nothing is special, if that is known.
    pub quick: Option<Quick>,
}

/// A loop.
#[derive(Debug)]
pub struct For {
    /// Where the element stands.
    pub slot: usize,
    /// Where its number stands.
    pub index: Option<usize>,
    /// Over what.
    pub over: Over,
    /// For each.
    pub body: Steps,
}

/// What a loop goes over.
#[derive(Debug)]
pub enum Over {
    /// The elements of a list, the names of an object's members.
    Elements(Expr),
    /// Integers from the first up to the second, which is not among them, in steps of the third.
    Range(Box<[Expr; 3]>),
    /// The names of keys that match a pattern, of which there are not more than the second says, in their bytes' order.
    Keys(Expr, Expr),
}

/// An end with an error.
#[derive(Debug)]
pub struct Fail {
    /// What holds where nothing is wrong.
    pub unless: Option<Expr>,
    /// The first word of the error.
    pub code: Expr,
    /// The rest.
    pub message: Expr,
}

impl What {
    /// The blocks inside, in their order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &[Step]> {
        let (some, cases): ([Option<&[Step]>; 2], &[_]) = match self {
            Self::If(_, then, otherwise) => ([Some(then), Some(otherwise)], &[]),
            Self::Switch(_, cases, default) => ([Some(default), None], cases),
            Self::For(each) => ([Some(&each.body), None], &[]),
            Self::Block(steps) => ([Some(steps), None], &[]),
            _ => ([None, None], &[]),
        };
        some.into_iter().flatten().chain(cases.iter().map(|(_, steps)| &**steps))
    }
    /// Calls `visit` with its own expressions, not with those of the steps inside.
    fn exprs<'s>(&'s self, visit: &mut dyn FnMut(&'s Expr)) {
        match self {
            Self::Command(command) => command.args.iter().for_each(visit),
            Self::Let(all) => all.iter().for_each(|(_, expr)| visit(expr)),
            Self::If(expr, ..) | Self::Return(expr) => visit(expr),
            Self::Switch(of, cases, _) => {
                visit(of);
                cases.iter().flat_map(|(values, _)| values).for_each(visit);
            }
            Self::For(each) => match &each.over {
                Over::Elements(list) => visit(list),
                Over::Range(ends) => ends.iter().for_each(visit),
                Over::Keys(pattern, limit) => [pattern, limit].into_iter().for_each(visit),
            },
            Self::Break(condition) => condition.iter().for_each(visit),
            Self::Fail(fail) => fail.unless.iter().chain([&fail.code, &fail.message]).for_each(visit),
            Self::Block(_) => {}
        }
    }
}

/// Calls `visit` with every expression of steps and of those inside. As deep as blocks stand in each other.
pub(super) fn each_expr<'s>(steps: &'s [Step], visit: &mut dyn FnMut(&'s Expr)) {
    for step in steps {
        step.what.exprs(visit);
        step.what.blocks().for_each(|block| each_expr(block, visit));
    }
}
