//! Owns: what a request asks for, by its name and its first argument. Does not own: requests.

use weft_protocol::table::{self, CommandId, CommandSpec};

use crate::traits;

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// A command of the table, or a subcommand.
    Command(CommandId),
    /// No command of the table.
    UnknownCommand,
    /// A container without such a subcommand.
    UnknownSubcommand(CommandId),
    /// A RESPB frame of F002 to FEFF.
    UnknownFrame(u16),
}

impl What {
    /// The command of a name and, for a container, of the first argument.
    #[must_use]
    pub fn of(name: &[u8], first: Option<&[u8]>) -> Self {
        table::by_name(name).map_or(Self::UnknownCommand, |id| Self::within(id, first))
    }
    /// The subcommand, if the command is a container.
    #[must_use]
    pub fn within(id: CommandId, first: Option<&[u8]>) -> Self {
        match first {
            Some(first) if is_container(id) => {
                table::subcommand(id, first).map_or(Self::UnknownSubcommand(id), Self::Command)
            }
            _ => Self::Command(id),
        }
    }
    /// The command's entry; of what is unknown, one that stands for it.
    #[must_use]
    pub fn spec(self) -> &'static CommandSpec {
        match self {
            Self::Command(id) | Self::UnknownSubcommand(id) => id.spec(),
            Self::UnknownCommand | Self::UnknownFrame(_) => CommandId(0).spec(),
        }
    }
}

/// Whether a command has subcommands.
#[must_use]
pub fn is_container(id: CommandId) -> bool {
    traits::of(id) & traits::CONTAINER != 0
}
