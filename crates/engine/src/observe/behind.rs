//! Owns: what a gateway tells of the servers behind it, for INFO and metrics. Does not own: the figures themselves
//! (`weft-gateway`).

use std::fmt;
use std::sync::OnceLock;

/// Whether a server behind can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nobody has wanted anything of it yet.
    #[default]
    Unused,
    /// It could not be reached: nothing is sent to it for a while.
    Down,
    /// A connection is being made.
    Trying,
    /// A connection stands.
    Up,
}

impl State {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unused => "unused",
            Self::Down => "down",
            Self::Trying => "trying",
            Self::Up => "up",
        }
    }
}

/// A figure of a server behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name in INFO; in metrics `weft_` stands before it.
    pub name: &'static str,
    /// It only grows.
    pub is_counter: bool,
    /// What it is.
    pub help: &'static str,
}

/// One server behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Where it is.
    pub address: String,
    /// Whether it can be reached.
    pub state: State,
    /// Its figures, in the order of [`Nodes::figures`].
    pub values: Vec<u64>,
}

/// Tells of all servers behind.
pub trait Nodes: Send + Sync {
    /// Figures of all of them together, with their values.
    fn of_all(&self) -> Vec<(&'static Figure, u64)>;
    /// Which figures each has.
    fn figures(&self) -> &'static [Figure];
    /// The servers, each once.
    fn nodes(&self) -> Vec<Node>;
}

/// What is behind, once it is there.
#[derive(Default)]
pub struct Behind(OnceLock<Box<dyn Nodes>>);

impl fmt::Debug for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Behind")
    }
}

impl Behind {
    /// From now on there is something behind.
    pub fn set(&self, nodes: Box<dyn Nodes>) {
        // There is one gateway in a process.
        let _ = self.0.set(nodes);
    }
    /// Who tells of it, if there is something.
    pub fn get(&self) -> Option<&dyn Nodes> {
        self.0.get().map(AsRef::as_ref)
    }
}
