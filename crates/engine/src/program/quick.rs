//! Owns: which commands of a program run without being asked about, since the answers are known before; which programs
//! always take about the same short time; which of their writes need not be able to be taken back. Does not own:
//! running them (`super::run`), which also asks whether anything is special.
//!
//! A program is all or nothing, so what it writes can be taken back as long as anything behind it can fail. Behind the
//! last command of most programs nothing can: a command that fails has changed nothing, and what is left looks at
//! values that are there. That write needs no journal, and where it is the only one there is none.
//!
//! What reads a key mostly writes it: keys of commands in shorter forms that follow from constants and parameters have
//! numbers, and of two neighbours with one number the second is not composed.

use std::collections::{HashMap, HashSet};

use weft_protocol::table::{CommandId, Cost, flag, policy};

use super::expr::{Expr, Fault, Frame, Part};
use super::short::Short;
use super::steps::{Command, Step, What, each_expr};
use super::value::Value;
use crate::args::{Args, check_arity};
use crate::error::full_name;
use crate::traits;

/// Arguments that are not asked about.
pub(crate) const FEW: usize = 32;
/// Steps of a quick program: it ends before it would look at the clock.
const STEPS_MAX: usize = 31;
/// Expressions, with those inside of them, in all of its steps together.
const EXPRESSIONS_MAX: usize = 256;

/// A command that always takes about the same short time, and has one key, its first argument.
#[derive(Clone, Copy)]
pub struct Quick {
    /// Which.
    pub(crate) id: CommandId,
    /// Bytes of its name, which count among what it brings.
    pub(crate) name_len: usize,
    /// Its shorter form.
    pub(crate) short: Option<Short>,
    /// Whether it writes.
    pub(crate) writes: bool,
    /// Nothing behind it can fail.
    pub(crate) last: bool,
    /// The number of its key in a quick program, if that follows from constants and parameters: commands of the same
    /// number have the same key. Else 0.
    pub(crate) key: u32,
}

impl std::fmt::Debug for Quick {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quick")
            .field("writes", &self.writes)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl Quick {
    /// A command with arguments of which only the number is known, and the expressions that they come from.
    pub(super) fn of(id: CommandId, args: &Args<'_>, exprs: &[Expr]) -> Option<Self> {
        let spec = id.spec();
        let is_quick = may_be_quick(id) && check_arity(spec, args.len()).is_ok() && is_short(args);
        is_quick.then(|| Self {
            id,
            name_len: full_name(spec).len(),
            short: Short::of(spec, exprs),
            writes: spec.flags & flag::WRITE != 0,
            last: false,
            key: 0,
        })
    }
}

/// Whether a command runs under the lock of its one key, and takes a short time with some arguments.
pub(crate) fn may_be_quick(id: CommandId) -> bool {
    let wanted = traits::ONE_KEY | traits::QUICK;
    traits::of(id) & (wanted | traits::BARRIER) == wanted
        && id.spec().flags & (flag::NOSCRIPT | flag::MAY_REPLICATE) == 0
}

/// Whether a command takes about the same short time whatever its keys hold, with these arguments.
#[inline]
pub(crate) fn is_short(args: &Args<'_>) -> bool {
    let short = match args.spec.cost {
        Cost::Arguments => {
            args.spec.policy & (policy::REACHES_BYTES | policy::REACHES_BITS | policy::ACCESS_BITFIELD) == 0
        }
        Cost::Count(at) | Cost::Sample(at) => args.len() <= usize::from(at),
        _ => false,
    };
    short && args.len() <= FEW
}

/// Whether also what is left suffices for all that stands behind the last write of a quick program: its expressions go
/// through nothing that is large, since there is none.
#[inline]
pub(crate) fn nothing_fails_behind(frame: &mut Frame) -> Result<bool, Fault> {
    Ok(frame.budget.settle()? && !frame.values.iter().any(Value::is_large))
}

/// Says whether steps always take about the same short time, and marks the writes behind which nothing can fail.
pub(super) fn mark(steps: &mut [Step]) -> bool {
    let is_quick = count(steps).is_some_and(|steps| steps <= STEPS_MAX)
        && expressions(steps) <= EXPRESSIONS_MAX
        && !may_take_long(steps);
    if is_quick {
        mark_last(steps, true);
        let given = given(steps);
        number_keys(steps, &given, &mut HashMap::new());
    }
    is_quick
}

/// The places that steps give values.
fn given(steps: &[Step]) -> HashSet<usize> {
    fn note(steps: &[Step], given: &mut HashSet<usize>) {
        for step in steps {
            match &step.what {
                What::Let(all) => given.extend(all.iter().map(|(slot, _)| *slot)),
                What::Command(command) => given.extend(command.bind),
                What::For(each) => given.extend(each.index.into_iter().chain([each.slot])),
                _ => {}
            }
            step.what.blocks().for_each(|block| note(block, given));
        }
    }
    let mut all = HashSet::new();
    note(steps, &mut all);
    each_expr(steps, &mut |expr| {
        expr.each(&mut |expr| {
            if let Expr::Each(each) = expr {
                all.insert(each.slot);
            }
        });
    });
    all
}

/// Gives the keys of commands in shorter forms their numbers. `known`: those that there are, by what they are made of.
fn number_keys(steps: &mut [Step], given: &HashSet<usize>, known: &mut HashMap<Vec<u8>, u32>) {
    for step in steps {
        match &mut step.what {
            What::Command(command) => {
                let Command { args, quick, .. } = &mut **command;
                if let Some(quick) = quick.as_mut().filter(|quick| quick.short.is_some())
                    && let Some(parts) = args.get(1).and_then(|key| parts(key, given))
                {
                    let next = known.len() as u32 + 1;
                    quick.key = *known.entry(parts).or_insert(next);
                }
            }
            What::If(_, then, otherwise) => {
                number_keys(then, given, known);
                number_keys(otherwise, given, known);
            }
            What::Switch(_, cases, default) => {
                cases.iter_mut().for_each(|(_, block)| number_keys(block, given, known));
                number_keys(default, given, known);
            }
            What::For(each) => number_keys(&mut each.body, given, known),
            What::Block(steps) => number_keys(steps, given, known),
            What::Let(_) | What::Return(_) | What::Fail(_) | What::Break(_) => {}
        }
    }
}

/// What a key is made of, if that follows from constants and parameters: the same of two that are always the same.
fn parts(key: &Expr, given: &HashSet<usize>) -> Option<Vec<u8>> {
    fn add(expr: &Expr, given: &HashSet<usize>, all: &mut Vec<u8>) -> bool {
        fn text(text: &[u8], all: &mut Vec<u8>) -> bool {
            all.push(b't');
            all.extend_from_slice(&text.len().to_le_bytes());
            all.extend_from_slice(text);
            true
        }
        match expr {
            Expr::Literal(value) => value.to_text().is_ok_and(|value| text(&value, all)),
            Expr::Var(slot) if !given.contains(slot) => {
                all.push(b'v');
                all.extend_from_slice(&slot.to_le_bytes());
                true
            }
            Expr::Template(parts) => parts.iter().all(|part| match part {
                Part::Text(bytes) => text(bytes, all),
                Part::Value(expr) => add(expr, given, all),
            }),
            _ => false,
        }
    }
    let mut all = Vec::new();
    add(key, given, &mut all).then_some(all)
}

/// How many steps there are, if none of them is a loop or a command that is not quick.
fn count(steps: &[Step]) -> Option<usize> {
    steps.iter().try_fold(0, |sum, step| {
        let quick = match &step.what {
            What::Command(command) => command.quick.is_some(),
            What::For(_) | What::Break(_) => false,
            _ => true,
        };
        let inside = step.what.blocks().try_fold(0, |sum, block| Some(sum + count(block)?))?;
        quick.then_some(sum + 1 + inside)
    })
}

/// How many expressions there are, and parts of texts.
fn expressions(steps: &[Step]) -> usize {
    let mut all = 0;
    each_expr(steps, &mut |expr| {
        expr.each(&mut |expr| all += if let Expr::Template(parts) = expr { 1 + parts.len() } else { 1 });
    });
    all
}

/// Whether an expression may take long, as a loop does.
fn may_take_long(steps: &[Step]) -> bool {
    let mut any = false;
    each_expr(steps, &mut |expr| any |= expr.may_take_long());
    any
}

impl Expr {
    /// Whether it goes through all of something, or makes what is long.
    pub(crate) fn may_take_long(&self) -> bool {
        let mut any = false;
        self.each(&mut |expr| {
            any |= match expr {
                Self::Each(_) => true,
                Self::Call(function, _) => function.may_take_long(),
                _ => false,
            };
        });
        any
    }
}

/// Goes through steps from their end. `calm`: nothing behind them can fail. Says whether nothing of them can either.
fn mark_last(steps: &mut [Step], mut calm: bool) -> bool {
    for step in steps.iter_mut().rev() {
        calm = match &mut step.what {
            What::Command(command) => {
                let answers_little = command.spec.policy & policy::ANSWERS_LITTLE != 0;
                let last = calm && (command.bind.is_none() || answers_little);
                command.quick.iter_mut().for_each(|quick| quick.last = last);
                false
            }
            What::Let(all) => calm && all.iter().all(|(_, expr)| is_calm(expr)),
            What::If(condition, then, otherwise) => {
                let blocks = [mark_last(then, calm), mark_last(otherwise, calm)];
                is_calm(condition) && blocks == [true; 2]
            }
            What::Switch(of, cases, default) => {
                let values = cases.iter().flat_map(|(values, _)| values).all(is_calm);
                let blocks: Vec<bool> = cases.iter_mut().map(|(_, block)| mark_last(block, calm)).collect();
                mark_last(default, calm) && is_calm(of) && values && blocks.iter().all(|calm| *calm)
            }
            What::Return(expr) => is_calm(expr),
            What::Block(steps) => mark_last(steps, calm),
            What::Fail(_) | What::For(_) | What::Break(_) => false,
        };
    }
    calm
}

/// Whether an expression has a value whatever it is about, and makes nothing that takes memory.
fn is_calm(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value) => !value.is_whole(),
        Expr::Var(_) | Expr::Path(..) | Expr::Now(_) => true,
        Expr::Call(function, both) => function.decides().is_some() && both.iter().all(is_calm),
        Expr::And(all) | Expr::Or(all) | Expr::Coalesce(all) => all.iter().all(is_calm),
        Expr::If(three) => three.iter().all(is_calm),
        Expr::Template(_) | Expr::List(_) | Expr::Object(_) | Expr::Each(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::program::Program;
    use crate::program::steps::{Step, What};

    /// Whether a program is quick, and of its writes which are the last.
    fn of(steps: &str) -> (bool, Vec<bool>) {
        fn writes(steps: &[Step], all: &mut Vec<bool>) {
            for step in steps {
                match &step.what {
                    What::Command(command) => {
                        all.extend(command.quick.filter(|quick| quick.writes).map(|quick| quick.last));
                    }
                    what => what.blocks().for_each(|block| writes(block, all)),
                }
            }
        }
        let program = Program::parse(format!(r#"{{"params":[{{"name":"p"}}],"steps":{steps}}}"#).as_bytes());
        let (program, mut all) = (program.unwrap(), Vec::new());
        writes(&program.steps, &mut all);
        (program.quick, all)
    }

    #[test]
    fn the_last_write_is_the_one_behind_which_nothing_can_fail() {
        assert_eq!(of(r#"[["SET","k","v"]]"#), (true, vec![true]));
        assert_eq!(of(r#"[["SET","k","v"],["INCR","n"]]"#), (true, vec![false, true]));
        assert_eq!(of(r#"[["SET","k","v"],["GET","n"]]"#), (true, vec![false]));
        assert_eq!(of(r#"[["SET","k","v"],{"return":{"+":["${p}",1]}}]"#), (true, vec![false]));
        assert_eq!(of(r#"[["SET","k","v"],{"return":{">":["${p}",1]}}]"#), (true, vec![true]));
        assert_eq!(of(r#"[["SET","k","v"],{"fail":"NO"}]"#), (true, vec![false]));
        assert_eq!(of(r#"[["SET","k","v"],{"return":1},{"fail":"NO"}]"#), (true, vec![true]));
        let either = r#"[{"if":"${p}","then":[["SET","k","v"]],"else":[["INCR","n"]]},{"return":"${p}"}]"#;
        assert_eq!(of(either), (true, vec![true, true]));
        let behind = r#"[{"if":"${p}","then":[["SET","k","v"]]},["INCR","n"]]"#;
        assert_eq!(of(behind), (true, vec![false, true]));
    }

    #[test]
    fn keys_have_one_number_where_they_are_always_the_same() {
        fn numbers(steps: &[Step], all: &mut Vec<u32>) {
            for step in steps {
                match &step.what {
                    What::Command(command) => all.extend(command.quick.map(|quick| quick.key)),
                    what => what.blocks().for_each(|block| numbers(block, all)),
                }
            }
        }
        let of = |steps: &str| {
            let text = format!(r#"{{"params":[{{"name":"p"}},{{"name":"q"}}],"steps":{steps}}}"#);
            let (program, mut all) = (Program::parse(text.as_bytes()).unwrap(), Vec::new());
            numbers(&program.steps, &mut all);
            all
        };
        assert_eq!(
            of(r#"[["GET","a${p}"],["SET","a${p}","v"],["INCR","b${p}"],["GET","a${q}"]]"#),
            [1, 1, 2, 3]
        );
        assert_eq!(of(r#"[["GET","${p}"],{"if":"${q}","then":[["INCR","${p}"]]},["GET","p"]]"#), [1, 1, 2]);
        // What is given on the way may be another value by then.
        assert_eq!(of(r#"[{"let":{"k":"a"}},["GET","${k}"],{"let":{"k":"b"}},["INCR","${k}"]]"#), [0, 0]);
        assert_eq!(of(r#"[{"do":["GET","${p}"],"as":"k"},["INCR","${k}"],["GET","${p}"]]"#), [1, 0, 1]);
        assert_eq!(of(r#"[["GET",{"join":[["a"],"b"]}]]"#), [0]);
    }

    #[test]
    fn a_bound_answer_that_may_be_large_can_fail() {
        assert_eq!(of(r#"[{"do":["INCR","n"],"as":"n"},{"return":"${n}"}]"#), (true, vec![true]));
        assert_eq!(of(r#"[{"do":["GETSET","k","v"],"as":"v"},{"return":"${v}"}]"#), (true, vec![false]));
        assert_eq!(of(r#"[["GETSET","k","v"]]"#), (true, vec![true]));
    }

    #[test]
    fn loops_and_commands_that_may_take_long_are_not_quick() {
        assert!(!of(r#"[{"for":"i","range":[0,2],"do":[["INCR","n"]]}]"#).0);
        assert!(!of(r#"[["DEL","a","b"]]"#).0);
        assert!(!of(r#"[["SETRANGE","k",100000,"v"]]"#).0);
        assert!(!of(r#"[["PUBLISH","c","v"]]"#).0);
        for expr in [
            r#"{"map":{"in":"${p}","as":"x","give":"${x}"}}"#,
            r#"{"if":["${p}",{"pad":["",9000,"0"]},1]}"#,
            r#"["a",{"sort":"${p}"}]"#,
            r#"{"from_json":"${p}"}"#,
        ] {
            assert!(!of(&format!(r#"[["GET","k"],{{"return":{expr}}}]"#)).0, "{expr}");
        }
        assert!(of(r#"[["GET","k"],{"return":{"+":[{"length":"${p}"},1]}}]"#).0);
        let many = format!("[{}]", [r#"["GET","k"]"#; 32].join(","));
        assert!(!of(&many).0 && of(&many.replacen(r#"["GET","k"],"#, "", 1)).0);
    }
}
