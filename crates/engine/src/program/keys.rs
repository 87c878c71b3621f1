//! Owns: which keys a program will come to, before it runs: those that it declares, or those that its commands name by
//! constants and parameters. Does not own: locking them (`crate::executor`).
//!
//! Keys that are declared are all that a program may come to. Those that are found are a guess: a program that comes
//! to another one is taken back and runs again with the keyspace to itself. Where a command's keys follow from what
//! the program reads, or all keys are meant, it is run so from the start.

use super::expr::{Expr, Fault, Frame, Part};
use super::steps::{Over, Step, What};
use super::value::Value;
use crate::args::Composed;
use crate::engine::Engine;
use crate::handler::{Needs, Scope, scope_of};
use crate::keys;

/// The keys of a program.
#[derive(Debug)]
pub enum Keys {
    /// It says which, by expressions over its parameters.
    Declared(Box<[Expr]>),
    /// They were found in its commands.
    Found(Vec<Found>),
    /// They cannot be known: where, and why.
    World(Box<str>, &'static str),
}

/// A key argument that was found: that of a step's command, whose place is behind it.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Steps to it: places in blocks.
    path: Box<[usize]>,
    /// Which argument.
    argument: usize,
}

/// Found keys that are looked up; a program with more takes the whole keyspace.
const FOUND_MAX: usize = 256;

/// A search for keys.
struct Search {
    params: usize,
    found: Vec<Found>,
    path: Vec<usize>,
}

type Unknown = (Box<str>, &'static str);

impl Keys {
    /// The keys that steps name by constants and parameters, of which there are so many.
    pub(super) fn find(steps: &[Step], params: usize) -> Self {
        let mut search = Search { params, found: Vec::new(), path: Vec::new() };
        match search.block(steps, 0) {
            Ok(()) => Self::Found(search.found),
            Err((at, why)) => Self::World(at, why),
        }
    }

    /// What a run needs with these parameters. A fault is told again by the run itself.
    pub(super) fn needs(&self, engine: &Engine, steps: &[Step], frame: &mut Frame) -> Needs {
        let keyspace = &engine.keyspace;
        let mut shards = Vec::new();
        let mut key = |bytes: &[u8]| shards.push(keyspace.shard_of(&keyspace.key(bytes)));
        let outcome = match self {
            Self::World(..) => return Needs::World,
            Self::Declared(exprs) => names(exprs, frame).map(|names| names.iter().for_each(|name| key(name))),
            Self::Found(found) => {
                let mut text = Vec::new();
                found.iter().filter_map(|found| found.expr(steps)).try_for_each(|expr| {
                    text.clear();
                    frame.write_text(expr, &mut text)?;
                    key(&text);
                    Ok(())
                })
            }
        };
        // Who cannot say its keys does not come to them either.
        drop::<Result<(), Fault>>(outcome);
        Needs::Shards(shards)
    }

    /// What a run would lock, for EXPLAIN.
    pub(super) fn list(&self, steps: &[Step], frame: &mut Frame) -> Result<Vec<Box<[u8]>>, Fault> {
        match self {
            Self::World(..) => Ok(Vec::new()),
            Self::Declared(exprs) => names(exprs, frame),
            Self::Found(found) => {
                let mut all: Vec<Box<[u8]>> = Vec::new();
                for expr in found.iter().filter_map(|found| found.expr(steps)) {
                    let mut text = Vec::new();
                    frame.write_text(expr, &mut text)?;
                    all.push(text.into());
                }
                all.sort_unstable();
                all.dedup();
                Ok(all)
            }
        }
    }
}

/// The names that expressions give: each a text or a list of texts; in their bytes' order, each once.
pub(super) fn names(exprs: &[Expr], frame: &mut Frame) -> Result<Vec<Box<[u8]>>, Fault> {
    let mut names: Vec<Box<[u8]>> = Vec::new();
    for expr in exprs {
        match frame.eval(expr)? {
            Value::List(list) => {
                for element in &*list {
                    names.push(super::functions::text_of(element)?.into());
                }
            }
            other => names.push(super::functions::text_of(&other)?.into()),
        }
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

impl Found {
    fn expr<'p>(&self, steps: &'p [Step]) -> Option<&'p Expr> {
        let (&last, path) = self.path.split_last()?;
        let mut block = steps;
        for pair in path.chunks(2) {
            let [step, inside] = pair else { return None };
            block = inner_blocks(&block.get(*step)?.what).nth(*inside)?;
        }
        match &block.get(last)?.what {
            What::Command(command) => command.args.get(self.argument),
            _ => None,
        }
    }
}

/// The blocks inside a step, in their order.
pub(super) fn inner_blocks(what: &What) -> impl Iterator<Item = &[Step]> {
    let (some, cases): ([Option<&[Step]>; 2], &[_]) = match what {
        What::If(_, then, otherwise) => ([Some(then), Some(otherwise)], &[]),
        What::Switch(_, cases, default) => ([Some(default), None], cases),
        What::For(each) => ([Some(&each.body), None], &[]),
        What::Block(steps) => ([Some(steps), None], &[]),
        _ => ([None, None], &[]),
    };
    some.into_iter().flatten().chain(cases.iter().map(|(_, steps)| &**steps))
}

impl Search {
    fn block(&mut self, steps: &[Step], depth: usize) -> Result<(), Unknown> {
        for (at, step) in steps.iter().enumerate() {
            self.path.truncate(depth);
            self.path.push(at);
            match &step.what {
                What::Command(command) => {
                    self.command(command).map_err(|why| (step.at.clone(), why))?;
                }
                What::For(each) if matches!(each.over, Over::Keys(..)) => {
                    return Err((step.at.clone(), "a loop over keys looks at all of them"));
                }
                _ => {}
            }
            for (number, block) in inner_blocks(&step.what).enumerate() {
                self.path.truncate(depth + 1);
                self.path.push(number);
                self.block(block, depth + 2)?;
            }
        }
        Ok(())
    }

    fn command(&mut self, command: &super::steps::Command) -> Result<(), &'static str> {
        let mut composed = Composed::default();
        let mut certain = 0;
        for (at, arg) in command.args.iter().enumerate() {
            let is_one = matches!(arg, Expr::Literal(_) | Expr::Template(_) | Expr::Var(_) | Expr::Path(..));
            if is_one && certain == at {
                certain = at + 1;
            }
            let literal = if let Expr::Literal(value) = arg { value.to_text().ok() } else { None };
            composed.push(&literal.unwrap_or_default());
        }
        let args = composed.args(command.spec);
        let needs_all = match scope_of(crate::engine::command_id(&args)) {
            Some(Scope::World | Scope::Walk) => true,
            Some(Scope::KeysOrWorld(asks)) => asks(&args),
            _ => false,
        };
        if needs_all {
            return Err("the command looks at all keys");
        }
        let (mut found, mut unknown) = (Vec::new(), false);
        keys::each(&args, |argument| {
            let known = argument < certain && self.is_of_params(&command.args[argument]);
            unknown |= !known;
            found.push(Found { path: self.path.clone().into(), argument });
        });
        if unknown {
            return Err("a key follows from what the program reads, not from its parameters alone");
        }
        self.found.append(&mut found);
        if self.found.len() > FOUND_MAX { Err("the program names more than 256 keys") } else { Ok(()) }
    }

    /// Whether an expression is a text of constants and parameters.
    fn is_of_params(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Literal(_) => true,
            Expr::Var(slot) | Expr::Path(slot, _) => *slot < self.params,
            Expr::Template(parts) => parts.iter().all(|part| match part {
                Part::Text(_) => true,
                Part::Value(expr) => self.is_of_params(expr),
            }),
            _ => false,
        }
    }
}
