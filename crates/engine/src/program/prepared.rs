//! Owns: the program of a request and what it is given, from asking for its locks to running it. Does not own: the
//! programs (`super::stored`), the locks.

use std::sync::Arc;

use super::Program;
use super::keys::Keys;
use super::stored::{Programs, Stored};
use super::value::Value;
use crate::args::Args;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode};
use crate::handler::Needs;

/// A stored program, or one that came as a text.
#[derive(Clone, Debug)]
pub(crate) enum Which {
    Stored(Arc<Stored>),
    Text(Arc<Program>),
}

impl Which {
    pub(crate) fn program(&self) -> &Program {
        match self {
            Self::Stored(stored) => &stored.program,
            Self::Text(program) => program,
        }
    }
    fn of(programs: &Programs, by: By, named: &[u8]) -> Result<Self, Error> {
        match by {
            By::Text => Ok(Self::Text(programs.of_text(named)?)),
            By::Either if named.trim_ascii_start().starts_with(b"{") => Self::of(programs, By::Text, named),
            By::Name | By::Either => programs.get(named).map(Self::Stored).ok_or_else(|| unknown(named)),
        }
    }
}

/// What a request says its program by: no name begins as JSON does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Name,
    Text,
    Either,
}

/// The error about a program that is not stored.
pub(crate) fn unknown(name: &[u8]) -> Error {
    Error::new(ErrorCode::NoProgram, format!("no program '{}' is stored", String::from_utf8_lossy(name)))
}

/// A program with its parameters.
type Given = (Which, Vec<Value>);

/// What a worker has looked up.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// The last stored one: at which version of all, its name.
    last: Option<(u64, Box<[u8]>, Arc<Stored>)>,
    /// For the run that follows.
    next: Option<Given>,
}

impl Prepared {
    /// The program that an argument says.
    pub(crate) fn find(&mut self, programs: &Programs, by: By, named: &[u8]) -> Result<Which, Error> {
        let version = programs.version();
        if by != By::Text
            && let Some((at, name, stored)) = &self.last
            && *at == version
            && **name == *named
        {
            return Ok(Which::Stored(Arc::clone(stored)));
        }
        let which = Which::of(programs, by, named)?;
        if let Which::Stored(stored) = &which {
            self.last = Some((version, named.into(), Arc::clone(stored)));
        }
        Ok(which)
    }
    /// What a run needs: its locks are taken next, under which it [takes](Self::take) what was found. Where everything
    /// is `open` no shard is named. A mistake in the request is told by the run.
    pub(crate) fn needs(&mut self, engine: &Engine, by: By, args: &Args<'_>, open: bool) -> Needs {
        self.next = None;
        let Ok((which, params)) = self.look_up(engine, by, args) else { return Needs::Shards(Vec::new()) };
        let (needs, params) = match &which.program().keys {
            Keys::World(..) => return Needs::World,
            _ if open => (Needs::Shards(Vec::new()), params),
            _ => which.program().needs(engine, params),
        };
        self.next = Some((which, params));
        needs
    }
    /// The program of a request with its parameters.
    pub(crate) fn take(&mut self, engine: &Engine, by: By, args: &Args<'_>) -> Result<Given, Error> {
        self.next.take().map_or_else(|| self.look_up(engine, by, args), Ok)
    }
    fn look_up(&mut self, engine: &Engine, by: By, args: &Args<'_>) -> Result<Given, Error> {
        let which = self.find(&engine.programs, by, args.bytes(2))?;
        let params = which.program().params(args.rest(3))?;
        Ok((which, params))
    }
}
