//! Owns: which keys a program will come to, before it runs: those that it declares, or those that its commands name by
//! constants and parameters. Does not own: locking them (`crate::executor`).
//!
//! What `let` gives once, from constants and parameters, is as good as those.
//!
//! Keys that are declared are all that a program may come to. Those that are found are a guess: a program that comes
//! to another one is taken back and runs again with the keyspace to itself. Where a command's keys follow from what
//! the program reads, or all keys are meant, it is run so from the start.

use std::collections::HashSet;

use weft_store::{Clock, Keyspace};

use super::budget::{Budget, Limits};
use super::expr::{Expr, Fault, Frame};
use super::steps::{Over, Program, Step, What};
use super::stored::Programs;
use super::value::Value;
use crate::args::Composed;
use crate::config::Settings;
use crate::error::{Error, ErrorCode, Result};
use crate::keys::{self, Needs};

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

/// What was found at a step: a key argument of its command, or a value that keys follow from.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Steps to it: places in blocks.
    path: Box<[usize]>,
    /// Which argument; of `let`, which value.
    at: usize,
}

/// Found keys that are looked up; a program with more takes the whole keyspace.
const FOUND_MAX: usize = 256;

/// A search for keys.
struct Search {
    /// Places of the frame whose values follow from constants and parameters.
    known: HashSet<usize>,
    /// Places that are given a value more than once: what they hold depends on the way.
    changed: HashSet<usize>,
    found: Vec<Found>,
    path: Vec<usize>,
}

type Unknown = (Box<str>, &'static str);

/// What is looked at before a program runs.
#[derive(Clone, Copy)]
pub(crate) struct Before<'e> {
    pub(crate) keyspace: &'e Keyspace,
    pub(crate) clock: &'e dyn Clock,
    pub(crate) settings: &'e Settings,
    pub(crate) programs: &'e Programs,
}

impl Program {
    /// A frame with these parameters.
    pub(crate) fn frame(&self, params: Vec<Value>, now_ms: u64, limits: Limits) -> Frame {
        let mut values = params;
        values.resize(self.slots, Value::Null);
        Frame { values, now_ms, budget: Budget::new(self.limits.within(limits)) }
    }
    fn frame_before(&self, before: Before<'_>, params: Vec<Value>) -> Frame {
        self.frame(params, before.clock.now_ms(), Limits::of(before.settings))
    }
    /// What a run needs with these parameters, which are given back.
    pub(crate) fn needs(&self, before: Before<'_>, params: Vec<Value>) -> (Needs, Vec<Value>) {
        let given = params.len();
        let mut frame = self.frame_before(before, params);
        let needs = self.keys.needs(before.keyspace, &self.steps, &mut frame);
        frame.values.truncate(given);
        (needs, frame.values)
    }
    /// The names of the keys that a run with these parameters will come to, as far as they are known.
    pub(crate) fn named_keys(&self, before: Before<'_>, params: Vec<Value>) -> Result<Vec<Box<[u8]>>> {
        let keys = self.keys.list(&self.steps, &mut self.frame_before(before, params));
        keys.map_err(|fault| Error::new(ErrorCode::Program, fault))
    }
}

impl Keys {
    /// The keys that steps name by constants and parameters, of which there are so many.
    pub(super) fn find(steps: &[Step], params: usize) -> Self {
        let changed = changed(steps);
        let mut search =
            Search { known: (0..params).collect(), changed, found: Vec::new(), path: Vec::new() };
        match search.block(steps, 0) {
            Ok(()) => Self::Found(search.found),
            Err((at, why)) => Self::World(at, why),
        }
    }

    /// What a run needs with these parameters. A fault is told again by the run itself.
    fn needs(&self, keyspace: &Keyspace, steps: &[Step], frame: &mut Frame) -> Needs {
        let mut shards = Vec::new();
        let mut key = |bytes: &[u8]| shards.push(keyspace.shard_of(&keyspace.key(bytes)));
        let outcome = match self {
            Self::World(..) => return Needs::World,
            Self::Declared(exprs) => names(exprs, frame).map(|names| names.iter().for_each(|name| key(name))),
            Self::Found(found) => each_found(found, steps, frame, |name| key(name)),
        };
        // Who cannot say its keys does not come to them either.
        drop::<Result<(), Fault>>(outcome);
        Needs::Shards(shards)
    }

    /// What a run would lock, for EXPLAIN.
    fn list(&self, steps: &[Step], frame: &mut Frame) -> Result<Vec<Box<[u8]>>, Fault> {
        match self {
            Self::World(..) => Ok(Vec::new()),
            Self::Declared(exprs) => names(exprs, frame),
            Self::Found(found) => {
                let mut all: Vec<Box<[u8]>> = Vec::new();
                each_found(found, steps, frame, |name| all.push(name.into()))?;
                all.sort_unstable();
                all.dedup();
                Ok(all)
            }
        }
    }
}

/// The names that expressions give: each a text or a list of texts; in their bytes' order, each once.
pub(crate) fn names(exprs: &[Expr], frame: &mut Frame) -> Result<Vec<Box<[u8]>>, Fault> {
    let mut names: Vec<Box<[u8]>> = Vec::new();
    for expr in exprs {
        match frame.eval(expr)? {
            Value::List(list) => {
                for element in list.iter() {
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

/// Calls `visit` with the names of the keys that were found. What they follow from is put into the frame.
fn each_found(
    found: &[Found],
    steps: &[Step],
    frame: &mut Frame,
    mut visit: impl FnMut(&[u8]),
) -> Result<(), Fault> {
    let mut text = Vec::new();
    for found in found {
        // The way to a block goes past those before it.
        frame.budget.take_elements(found.path.iter().sum())?;
        match found.what(steps) {
            Some(What::Command(command)) => {
                let Some(expr) = command.args.get(found.at) else { continue };
                text.clear();
                frame.write_text(expr, &mut text)?;
                visit(&text);
            }
            Some(What::Let(all)) => {
                let Some((slot, expr)) = all.get(found.at) else { continue };
                // A way that is not gone may have none.
                frame.values[*slot] = frame.eval(expr).unwrap_or_default();
            }
            _ => {}
        }
    }
    Ok(())
}

/// The places that steps give a value more than once.
fn changed(steps: &[Step]) -> HashSet<usize> {
    fn note(steps: &[Step], given: &mut HashSet<usize>, changed: &mut HashSet<usize>) {
        let mut give = |slot: usize| {
            if !given.insert(slot) {
                changed.insert(slot);
            }
        };
        for step in steps {
            match &step.what {
                What::Let(all) => all.iter().for_each(|(slot, _)| give(*slot)),
                What::Command(command) => command.bind.into_iter().for_each(&mut give),
                _ => {}
            }
        }
        steps.iter().flat_map(|step| step.what.blocks()).for_each(|block| note(block, given, changed));
    }
    let (mut given, mut changed) = Default::default();
    note(steps, &mut given, &mut changed);
    changed
}

impl Found {
    /// How many steps there are to it.
    pub(super) fn depth(&self) -> usize {
        self.path.len()
    }
    fn what<'p>(&self, steps: &'p [Step]) -> Option<&'p What> {
        let (&last, path) = self.path.split_last()?;
        let mut block = steps;
        for pair in path.chunks(2) {
            let [step, inside] = pair else { return None };
            block = block.get(*step)?.what.blocks().nth(*inside)?;
        }
        Some(&block.get(last)?.what)
    }
}

impl Search {
    fn block(&mut self, steps: &[Step], depth: usize) -> Result<(), Unknown> {
        for (at, step) in steps.iter().enumerate() {
            self.path.truncate(depth);
            self.path.push(at);
            match &step.what {
                What::Command(command) => {
                    self.command(command).map_err(|why| (step.at.to_string().into(), why))?;
                }
                What::Let(all) => {
                    for (at, (slot, expr)) in all.iter().enumerate() {
                        if !self.changed.contains(slot) && self.is_known(expr) {
                            self.known.insert(*slot);
                            self.found.push(Found { path: self.path.clone().into(), at });
                        }
                    }
                }
                What::For(each) if matches!(each.over, Over::Keys(..)) => {
                    return Err((step.at.to_string().into(), "a loop over keys looks at all of them"));
                }
                _ => {}
            }
            for (number, block) in step.what.blocks().enumerate() {
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
        if keys::looks_at_all(&args) {
            return Err("the command looks at all keys");
        }
        let (mut found, mut unknown) = (Vec::new(), false);
        keys::each(&args, |argument| {
            let known = argument < certain && self.is_known(&command.args[argument]);
            unknown |= !known;
            found.push(Found { path: self.path.clone().into(), at: argument });
        });
        if unknown {
            return Err("a key follows from what the program reads, not from its parameters alone");
        }
        self.found.append(&mut found);
        if self.found.len() > FOUND_MAX { Err("the program names more than 256 keys") } else { Ok(()) }
    }

    /// Whether an expression follows from constants and parameters.
    fn is_known(&self, expr: &Expr) -> bool {
        let (mut known, mut own) = (true, HashSet::new());
        expr.each(&mut |expr| match expr {
            // An element is known where its list is.
            Expr::Each(each) => drop(own.insert(each.slot)),
            Expr::Var(slot) | Expr::Path(slot, _) => known &= self.known.contains(slot) || own.contains(slot),
            _ => {}
        });
        known
    }
}
