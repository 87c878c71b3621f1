//! Owns: what keeps a log or a snapshot from being read, in words that say what to do. Does not own: who says them.

use std::fmt;
use std::io;

use crate::disk::cause;
use crate::frames::Strange;
use crate::reader::Fault;

/// Why something that was kept cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The system could not.
    Io {
        /// The file.
        file: String,
        /// What it said.
        why: String,
    },
    /// The manifest is not what was written.
    Manifest {
        /// The file.
        file: String,
        /// What is wrong.
        why: &'static str,
    },
    /// There are files of a log, and nothing that says which of them count.
    NoManifest {
        /// Where it would be.
        file: String,
    },
    /// A file of the log is not there.
    Missing {
        /// The file.
        file: String,
    },
    /// A file is not what its name says.
    Foreign {
        /// The file.
        file: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Bytes that were on the disk are damaged.
    Damage {
        /// The file.
        file: String,
        /// Where the damage begins.
        at: u64,
        /// The next place that is as it was, if there is one.
        next: Option<u64>,
        /// Where the file ends.
        end: u64,
    },
    /// A block is whole and says what cannot be taken.
    Strange {
        /// The file.
        file: String,
        /// Where the block begins: what is in it may be packed.
        at: u64,
        /// What is wrong.
        why: &'static str,
    },
}

impl Problem {
    /// The file.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        let (Self::Io { file, .. }
        | Self::Manifest { file, .. }
        | Self::NoManifest { file }
        | Self::Missing { file }
        | Self::Foreign { file, .. }
        | Self::Damage { file, .. }
        | Self::Strange { file, .. }) = self;
        Some(file)
    }
    pub(crate) fn io(file: String, error: &io::Error) -> Self {
        Self::Io { file, why: cause(error) }
    }
    pub(crate) fn of(file: String, fault: Fault) -> Self {
        match fault {
            Fault::Io(error) if error.kind() == io::ErrorKind::NotFound => Self::Missing { file },
            Fault::Io(error) => Self::io(file, &error),
            Fault::Head(why) => Self::Foreign { file, why },
            Fault::Damage { at, next, end } => Self::Damage { file, at, next, end },
        }
    }
    /// What a block of a file says is strange.
    #[must_use]
    pub fn strange(file: String, block: u64, strange: Strange) -> Self {
        Self::Strange { file, at: block, why: strange.why }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SALVAGE: &str = "nothing was changed; restore the folder from a backup, or write what is whole of it into \
                               another one with weft log repair";
        match self {
            Self::Io { file, why } => write!(f, "{file} cannot be read: {why}"),
            Self::Manifest { file, why } => {
                write!(f, "{file} says which files the log has, and {why}; {SALVAGE}")
            }
            Self::NoManifest { file } => write!(
                f,
                "there are files of a log, but {file}, which says which of them count, is not there; {SALVAGE}"
            ),
            Self::Missing { file } => {
                write!(f, "{file} is a part of the log and is not there; {SALVAGE}")
            }
            Self::Foreign { file, why } => write!(f, "{file} cannot be used: {why}"),
            Self::Damage { file, at, next: Some(next), .. } => write!(
                f,
                "{file} is damaged at byte {at}: the {} bytes up to {next}, where it is whole again, are lost; {SALVAGE}",
                next - at
            ),
            Self::Damage { file, at, next: None, end } => write!(
                f,
                "{file} is damaged at byte {at}: the {} bytes to its end are lost; {SALVAGE}",
                end.saturating_sub(*at)
            ),
            Self::Strange { file, at, why } => {
                write!(f, "{file} says in the block at byte {at} what cannot be taken: {why}")
            }
        }
    }
}

impl std::error::Error for Problem {}
