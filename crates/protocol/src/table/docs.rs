//! What only COMMAND DOCS, COMMAND INFO and COMMAND OPCODES need to know of a command. The contents are generated into
//! `docs_gen.rs`.

use super::CommandId;
use super::docs_gen::DOCS;

/// Documentation of one command, beside what [`CommandSpec`](super::CommandSpec) has.
#[derive(Debug)]
pub struct Docs {
    /// Hints for clients and proxies, as `COMMAND INFO` prints them.
    pub hints: &'static [&'static str],
    /// `deprecated` or `syscmd`.
    pub flags: &'static [&'static str],
    /// The module that brings the command.
    pub module: Option<&'static str>,
    /// Version since which the command is deprecated.
    pub deprecated_since: Option<&'static str>,
    /// What to use in its place.
    pub replaced_by: Option<&'static str>,
    /// Versions and what changed in them.
    pub history: &'static [(&'static str, &'static str)],
    /// Notes on the key specs, one for each; none at all where no spec has one.
    pub key_notes: &'static [Option<&'static str>],
    /// The payload on RESPB, in the notation of Annex A of the specification.
    pub layout: &'static str,
}

impl CommandId {
    /// The documentation of the command.
    pub fn docs(self) -> &'static Docs {
        &DOCS[usize::from(self.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{COMMANDS, by_name};
    use super::*;

    #[test]
    fn every_command_has_documentation() {
        assert_eq!(COMMANDS.len(), DOCS.len());
        let layout = |name: &[u8]| by_name(name).map(|id| id.docs().layout);
        assert_eq!(layout(b"GET"), Some("key:str16!"));
        assert_eq!(layout(b"CLIENT"), Some("args"));
    }
}
