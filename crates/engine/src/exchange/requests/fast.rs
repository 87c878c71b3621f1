//! Owns: which requests may run without their handlers. Does not own: running them (`crate::executor`).

use crate::args::Slot;
use crate::traits;

/// Keys of a request that has a fast function, at most: it is not timed by itself.
const FAST_KEYS_MAX: usize = 32;

/// The fast function that can run a request where nothing is special (`crate::executor`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fast {
    /// Nothing.
    No,
    /// GET of one key.
    Get,
    /// SET of one key, without options.
    Set,
    /// PING without a message.
    Ping,
    /// MGET of a few keys.
    MGet,
    /// MSET of a few keys.
    MSet,
}

impl Fast {
    /// How a request of these traits, arguments and options can be run without its handler: none of its arguments but
    /// pieces of its frame.
    #[inline(always)]
    pub(super) fn of(traits: u16, args: &[Slot], options: u16) -> Self {
        match (traits & traits::FAST, args) {
            (traits::FAST_GET, [Slot::Frame { .. }]) => Self::Get,
            (traits::FAST_SET, [Slot::Frame { .. }, Slot::Frame { .. }]) if options == 0 => Self::Set,
            (traits::FAST_PING, []) => Self::Ping,
            (traits::FAST_MGET, keys) if (1..=FAST_KEYS_MAX).contains(&keys.len()) => Self::MGet,
            (traits::FAST_MSET, pairs)
                if (1..=FAST_KEYS_MAX).contains(&(pairs.len() / 2)) && pairs.len().is_multiple_of(2) =>
            {
                Self::MSet
            }
            _ => Self::No,
        }
    }
    /// Whether it looks at nothing but the values of its keys.
    pub(crate) const fn reads(self) -> bool {
        matches!(self, Self::Get | Self::MGet)
    }
}
