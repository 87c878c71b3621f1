//! How many arguments a command takes by its argument tree, and whether that agrees with its arity.
//!
//! It owns the counting. The arity is what a server checks before it looks at a command at all; the tree says more, so
//! the tree may ask for more than the arity, never for less.

use crate::check::Finding;
use crate::model::{Argument, ArgumentType, Command};

/// Least and greatest number of words; no greatest when something may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Least number.
    pub least: usize,
    /// Greatest number.
    pub most: Option<usize>,
}

impl Count {
    const fn exactly(count: usize) -> Self {
        Self { least: count, most: Some(count) }
    }

    fn plus(self, other: Self) -> Self {
        let most = self.most.zip(other.most).map(|(one, another)| one + another);
        Self { least: self.least + other.least, most }
    }

    fn either(self, other: Self) -> Self {
        let most = self.most.zip(other.most).map(|(one, another)| one.max(another));
        Self { least: self.least.min(other.least), most }
    }
}

/// Commands whose least number of words a tree cannot say: the centre is optional because BYPOLYGON goes without one,
/// and a polygon has three points at least.
const TREE_TOO_LENIENT: [&str; 2] = ["GEOSEARCH", "GEOSEARCHSTORE"];

/// Counts the words that a list of arguments stands for.
#[must_use]
pub fn count(arguments: &[Argument]) -> Count {
    arguments.iter().map(count_one).fold(Count::exactly(0), Count::plus)
}

fn count_one(argument: &Argument) -> Count {
    let mut total = count_given(argument);
    if argument.optional {
        total.least = 0;
    }
    total
}

/// As if the argument were not optional.
fn count_given(argument: &Argument) -> Count {
    let own = match argument.kind {
        ArgumentType::Block => count(&argument.arguments),
        ArgumentType::Oneof => {
            // One alternative is taken, so that a mark `optional` on an alternative says nothing.
            argument.arguments.iter().map(count_given).reduce(Count::either).unwrap_or(Count::exactly(0))
        }
        ArgumentType::PureToken => Count::exactly(0),
        _ => Count::exactly(1),
    };
    let words = argument.token.as_deref().map_or(0, |token| token.split(' ').count());
    let mut total = own.plus(Count::exactly(words));
    if argument.multiple {
        total.most = None;
    }
    total
}

/// Reports a command whose tree takes fewer words than its arity asks for, or whose fixed arity the tree cannot meet.
pub fn check(command: &Command, findings: &mut Vec<Finding>) {
    let name_words = if command.container.is_some() { 2 } else { 1 };
    let needed = command.arity.unsigned_abs() as usize;
    if command.arguments.is_empty() && command.arity < 0 {
        // A container, or a command whose arguments are nobody's business (`DEBUG`).
        return;
    }
    let tree = count(&command.arguments).plus(Count::exactly(name_words));
    if tree.least < needed && !TREE_TOO_LENIENT.contains(&command.full_name().as_str()) {
        let problem = format!("the argument tree takes {} words at least", tree.least);
        findings.push(Finding::new(command, "arity", problem));
    }
    if command.arity > 0 && (tree.least > needed || tree.most.is_none_or(|most| most > needed)) {
        let most = tree.most.map_or_else(|| "any number of".to_owned(), |most| most.to_string());
        let problem = format!("the argument tree takes {} to {most} words", tree.least);
        findings.push(Finding::new(command, "arity", problem));
    }
}
