//! Owns: what a request for a resource asks beside its command: conditions, ranges, tags. Does not own: asking it
//! (`crate::resource`), HTTP.

use crate::reply::Tag;

/// Which tags a condition names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    /// `*`: any, if the key is there.
    Any,
    /// One of these; those that no value here can have are left out.
    These(Box<[Tag]>),
}

/// Which bytes of a string are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// From one byte to another, inclusive, or to the end.
    From(u64, Option<u64>),
    /// So many of the last ones.
    Last(u64),
}

impl ByteRange {
    /// The first byte and the one behind the last, of a string of so many; nothing where it has none of them.
    pub(crate) fn within(self, len: usize) -> Option<(usize, usize)> {
        let whole = len as u64;
        let (from, end) = match self {
            Self::From(from, to) => (from, to.map_or(whole, |to| to.saturating_add(1).min(whole))),
            Self::Last(count) => (whole.saturating_sub(count), whole),
        };
        (from < end).then_some((from as usize, end as usize))
    }
}

/// What is done with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// GET: the bytes of a string, or a collection as JSON. PROGRAM GET and TRIGGER GET: the text.
    Read,
    /// SET, APPEND, SETRANGE; PROGRAM SET, TRIGGER SET.
    Write,
    /// DEL; PROGRAM DEL, TRIGGER DEL.
    Remove,
    /// SCAN: an object with the cursor and the keys.
    List,
    /// SCAN, which does not run: the client may list keys, and so follow what happens to those that it may read.
    Follow,
    /// MSETEX: all or, where its condition does not hold, nothing.
    WriteAll,
    /// INFO: what it tells, as metrics.
    Metrics(Form),
}

/// What is stored under a name outside of databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// A program.
    Program,
    /// A trigger.
    Trigger,
}

/// What a request asks beside its command.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is done.
    pub does: Does,
    /// With a program or a trigger; nothing for keys.
    pub stored: Option<Stored>,
    /// `If-Match`: one of these must be the key's tag.
    pub matching: Option<Tags>,
    /// `If-None-Match`: none of these may be.
    pub none_matching: Option<Tags>,
    /// `Range`.
    pub range: Option<ByteRange>,
    /// `If-Range`: the range counts only while the key has this tag.
    pub range_of: Option<Tags>,
}

impl Asked {
    /// A request that has no conditions.
    #[must_use]
    pub const fn plainly(does: Does) -> Self {
        Self { does, stored: None, matching: None, none_matching: None, range: None, range_of: None }
    }
    /// Whether the answer depends on the tag that the key has before.
    pub(crate) fn needs_tag(&self) -> bool {
        let names = |tags: &Option<Tags>| matches!(tags, Some(Tags::These(_)));
        names(&self.matching) || names(&self.none_matching)
    }
}

/// In which form it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// What Prometheus has always read.
    Prometheus,
    /// What it asks for first today.
    OpenMetrics,
}
