//! Owns: programs and triggers that queued commands bring as texts, read when they are queued: EXEC runs them with
//! everything locked. Does not own: what is kept of other requests between their locks and their run
//! (`crate::program::prepared`).

use super::Seen;
use super::definition::{self, Trigger};
use crate::args::Args;
use crate::error::full_name;
use crate::program::prepared::{Prepared, Read};
use crate::program::stored::Programs;

/// Bytes that a trigger takes for one of its text, in the form that it is used in.
const BYTES_PER_BYTE: usize = 30;

/// A text that a command brings, read.
#[derive(Debug)]
pub(crate) enum Ahead {
    Program(Read),
    Trigger(Box<definition::Read>),
}

/// What a command brings: the text, and whether it is a trigger with that name.
fn text<'a>(args: &Args<'a>) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    args.spec.container?;
    match &*full_name(args.spec) {
        "program|set" => Some((args.bytes(3), None)),
        "program|eval" => Some((args.bytes(2), None)),
        "program|dryrun" | "program|explain" => Some((args.bytes(2), None)).filter(|(text, _)| {
            // Else it is the name of one.
            text.trim_ascii_start().starts_with(b"{")
        }),
        "trigger|set" => Some((args.bytes(3), Some(args.bytes(2)))),
        _ => None,
    }
}

impl Ahead {
    /// Whether a command brings a text.
    pub(crate) fn is_of(args: &Args<'_>) -> bool {
        text(args).is_some()
    }
    /// Reads it, if it does.
    pub(crate) fn read(programs: &Programs, args: &Args<'_>) -> Option<Self> {
        Some(match text(args)? {
            (text, None) => Self::Program(Read::kept(programs, text)),
            (text, Some(name)) => Self::Trigger(Box::new(definition::Read::of(name, text))),
        })
    }
    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Program(read) => read.bytes(),
            Self::Trigger(read) => read.text_bytes() * BYTES_PER_BYTE,
        }
    }
    /// The command runs next.
    pub(crate) fn hand_over(self, (programs, triggers): (&mut Prepared, &mut Seen)) {
        match self {
            Self::Program(read) => programs.has_read(read),
            Self::Trigger(read) => triggers.has_read(*read),
        }
    }
}

/// How triggers have been read before: what the last one that is to be stored was.
impl Seen {
    /// A trigger was read before everything is locked.
    pub(crate) fn has_read(&mut self, read: definition::Read) {
        self.read = Some(read);
    }
    /// The trigger of a text, to be stored with these.
    pub(crate) fn take_read(
        &mut self,
        (name, text): (&[u8], &[u8]),
        (version, enabled, owner): (u64, bool, &str),
    ) -> Result<Trigger, crate::program::Problem> {
        let read = self.read.take().filter(|read| read.is_of(name, text));
        let mut trigger = read.unwrap_or_else(|| definition::Read::of(name, text)).trigger?;
        (trigger.version, trigger.enabled, trigger.owner) = (version, enabled, owner.into());
        Ok(trigger)
    }
}
