//! Owns: what a request in front of a cluster is, as far as its way to a node and back depends on it. Does not own: the
//! request (`crate::orders`).

use weft_engine::forward::{BlockTime, Kind, Merge};

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Plain,
    /// A script's or function's, as a transaction that queues so many requests.
    Logic(u32),
    Select(u8),
    Exec(u32),
    Blocks(BlockTime),
    Watch,
    Alone,
    Scan,
}

impl What {
    pub(crate) fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Select(db) => Self::Select(*db),
            Kind::Exec(queued) => Self::Exec(*queued),
            Kind::Blocks(time) => Self::Blocks(*time),
            Kind::Watch => Self::Watch,
            Kind::Alone => Self::Alone,
            Kind::Scan => Self::Scan,
            Kind::Everywhere(Merge::Killed) => Self::Alone,
            Kind::Plain
            | Kind::Scatter(..)
            | Kind::Everywhere(_)
            | Kind::Subscribe(..)
            | Kind::Track(_)
            | Kind::Release => Self::Plain,
        }
    }
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Plain => Kind::Plain,
            Self::Select(db) => Kind::Select(db),
            Self::Exec(queued) | Self::Logic(queued) => Kind::Exec(queued),
            Self::Blocks(time) => Kind::Blocks(time),
            Self::Watch => Kind::Watch,
            Self::Alone => Kind::Alone,
            Self::Scan => Kind::Scan,
        }
    }
}
