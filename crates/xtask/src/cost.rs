//! What a command goes through, as its file says it: the table's `Cost`. It does not own what follows from it.

use serde::{Deserialize, Serialize};

use crate::model::Command;

/// What a command goes through; the meanings stand in `crates/protocol/src/table/cost.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Cost {
    /// Nothing but its arguments.
    Arguments {},
    /// All at its keys.
    Keys {},
    /// All at its keys, gathered in a collection or in an order.
    Gathered {},
    /// The smallest of its keys, for each.
    Least {},
    /// The product of their lengths.
    Product {},
    /// All at its keys, in blocks.
    Blocks {},
    /// As many as an argument says.
    Count {
        /// Which.
        at: u8,
    },
    /// The same, also if it is negative.
    Sample {
        /// Which.
        at: u8,
    },
    /// As many as COUNT says.
    Option {
        /// Where options may stand.
        from: u8,
        /// Without it; 0 for all.
        otherwise: u32,
    },
    /// Between two indexes.
    Ranks {
        /// The first of them.
        at: u8,
    },
    /// All others.
    Beyond {
        /// The first of them.
        at: u8,
    },
    /// Between two scores.
    Scores {
        /// The first of them.
        at: u8,
    },
    /// Between two members.
    Names {
        /// The first of them.
        at: u8,
    },
    /// What MAXLEN or MINID takes away.
    Trim {},
    /// A value as DUMP gives it.
    Payload {
        /// Where.
        at: u8,
    },
    /// All who get a message.
    Receivers {},
    /// All keys of the database.
    Walk {},
    /// As many of them as COUNT says.
    WalkSome {
        /// Without it.
        otherwise: u32,
    },
}

impl Cost {
    /// As an expression of the table.
    #[must_use]
    pub fn to_rust(self) -> String {
        let (name, values) = match self {
            Self::Arguments {} => ("Arguments", String::new()),
            Self::Keys {} => ("Keys", String::new()),
            Self::Gathered {} => ("Gathered", String::new()),
            Self::Least {} => ("Least", String::new()),
            Self::Product {} => ("Product", String::new()),
            Self::Blocks {} => ("Blocks", String::new()),
            Self::Count { at } => ("Count", format!("({at})")),
            Self::Sample { at } => ("Sample", format!("({at})")),
            Self::Option { from, otherwise } => ("Option", format!("({from}, {otherwise})")),
            Self::Ranks { at } => ("Ranks", format!("({at})")),
            Self::Beyond { at } => ("Beyond", format!("({at})")),
            Self::Scores { at } => ("Scores", format!("({at})")),
            Self::Names { at } => ("Names", format!("({at})")),
            Self::Trim {} => ("Trim", String::new()),
            Self::Payload { at } => ("Payload", format!("({at})")),
            Self::Receivers {} => ("Receivers", String::new()),
            Self::Walk {} => ("Walk", String::new()),
            Self::WalkSome { otherwise } => ("WalkSome", format!("({otherwise})")),
        };
        format!("Cost::{name}{values}")
    }
}

/// What a command goes through: one whose file says nothing its arguments if it is always quick, else all at its keys.
#[must_use]
pub fn of(command: &Command) -> Cost {
    let is_quick =
        command.flags.iter().any(|flag| flag == "fast") || command.policy.iter().any(|word| word == "quick");
    let by_itself = if is_quick { Cost::Arguments {} } else { Cost::Keys {} };
    command.cost.unwrap_or(by_itself)
}
