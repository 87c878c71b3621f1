//! Owns: the loops of a program: over elements, ranges, and keys by a pattern. Does not own: the steps inside
//! (`super`).

use weft_store::Cursor;

use super::{End, Flow, Machine, not_all};
use crate::args::{Composed, find};
use crate::error::ErrorCode;
use crate::excerpt::shown;
use crate::glob;
use crate::inner::Refusal;
use crate::program::arithmetic::whole;
use crate::program::expr::{Expr, Fault};
use crate::program::steps::{For, Over, Step};
use crate::program::value::Value;

/// Keys that a loop looks at between two looks at what is left.
const KEYS_PER_LOOK: u64 = 64;

/// The command that answers what a loop over keys goes through.
const KEYS: &[u8] = b"KEYS";

impl<'p> Machine<'p, '_, '_, '_, '_> {
    pub(super) fn each(&mut self, step: &'p Step, each: &'p For) -> Result<Flow, End> {
        let elements = match &each.over {
            Over::Elements(list) => match self.frame.eval(list)? {
                Value::List(list) => {
                    return self.rounds(step, each, (0..list.len()).map(|at| list[at].clone()));
                }
                Value::Object(members) => {
                    return self.rounds(step, each, members.keys().map(|name| Value::text(name)));
                }
                Value::Null => return Ok(Flow::GoOn),
                other => {
                    return Err(Fault::from(format!("expected a list, met a {}", other.type_name())).into());
                }
            },
            Over::Range(ends) => return self.range(step, each, ends),
            Over::Keys(pattern, limit) => self.matching(pattern, limit)?,
        };
        self.rounds(step, each, elements.into_iter())
    }
    fn rounds(
        &mut self,
        step: &'p Step,
        each: &'p For,
        elements: impl Iterator<Item = Value>,
    ) -> Result<Flow, End> {
        for (at, element) in elements.enumerate() {
            match self.round(step, each, element, at)? {
                Flow::GoOn => {}
                Flow::Break => break,
                ended => return Ok(ended),
            }
        }
        Ok(Flow::GoOn)
    }

    fn range(&mut self, step: &'p Step, each: &'p For, ends: &[Expr; 3]) -> Result<Flow, End> {
        let [from, to, by] = ends;
        let mut whole = |expr| whole(&self.frame.eval(expr)?);
        let (mut next, to, by) = (whole(from)?, whole(to)?, whole(by)?);
        if by == 0 {
            return Err(Fault::from("a loop in steps of 0 has no end").into());
        }
        let mut at = 0;
        while if by > 0 { next < to } else { next > to } {
            match self.round(step, each, Value::Int(next), at)? {
                Flow::GoOn => {}
                Flow::Break => break,
                ended => return Ok(ended),
            }
            let Some(after) = next.checked_add(by) else { break };
            (next, at) = (after, at + 1);
        }
        Ok(Flow::GoOn)
    }

    fn round(&mut self, step: &'p Step, each: &'p For, element: Value, at: usize) -> Result<Flow, End> {
        self.at = step;
        self.frame.budget.take_step()?;
        self.frame.values[each.slot] = element;
        if let Some(index) = each.index {
            self.frame.values[index] = Value::Int(at as i64);
        }
        self.block(&each.body)
    }

    /// Who may not ask KEYS for the names does not get them from a loop either.
    fn may_see_names(&mut self, pattern: &[u8]) -> Result<(), End> {
        let (mut args, id) = (Composed::default(), find(KEYS, None));
        args.push(KEYS);
        args.push(pattern);
        let refusal = match id {
            Some(id) => self.inner.admit(&args.args(id.spec())).err(),
            None => Some(Refusal::Unknown),
        };
        refusal.map_or(Ok(()), |refusal| Err(End::Fault(refusal.into())))
    }

    /// The names of the keys that match a pattern, in their bytes' order.
    fn matching(&mut self, pattern: &Expr, limit: &Expr) -> Result<Vec<Value>, End> {
        if self.declared.is_some() {
            return Err(not_all("the loop"));
        }
        if !self.inner.has_world() {
            return Err(End::Fault(ErrorCode::NeedsWorld.into()));
        }
        let mut text = Vec::new();
        self.frame.write_text(pattern, &mut text)?;
        self.may_see_names(&text)?;
        let limit = whole(&self.frame.eval(limit)?)?;
        let limit = usize::try_from(limit).map_err(|_| Fault::from("a limit is not negative"))?;
        let (mut names, mut cursor): (Vec<Box<[u8]>>, _) = (Vec::new(), Cursor::START);
        loop {
            let (mut looked, mut outcome) = (0, Ok(()));
            let (context, budget) = (self.inner.context(), &mut self.frame.budget);
            // As a step KEYS does, of the database that SELECT has chosen.
            let began_in = std::mem::replace(&mut context.db, context.session.db);
            cursor = context.scan(cursor, KEYS_PER_LOOK, |name, _| {
                looked += 1;
                if outcome.is_ok() {
                    outcome = budget.take_match(glob::work(&text, name.len()));
                }
                if outcome.is_ok() && glob::matches(&text, name) {
                    names.push(name.into());
                }
            });
            context.db = began_in;
            outcome?;
            self.frame.budget.take_steps(looked)?;
            if names.len() > limit {
                let text = format!("more keys match '{}' than its limit of {limit}", shown(&text));
                return Err(Fault::from(text).into());
            }
            if cursor == Cursor::START {
                break;
            }
        }
        names.sort_unstable();
        names.dedup();
        self.frame.budget.take_memory(names.iter().map(|name| name.len() + size_of::<Value>()).sum())?;
        Ok(names.iter().map(|name| Value::text(name)).collect())
    }
}
