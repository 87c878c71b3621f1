//! The differences between the table and real servers that are accepted, each with its reason.
//!
//! It owns `spec/commands-accepted.json`: reading it, holding a comparison against it, and generating
//! `spec/commands-compared.md` from it. The file is written by hand.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::compare::{Comparison, Server};

/// The accepted differences, from the root of the repository.
pub const ACCEPTED_PATH: &str = "spec/commands-accepted.json";

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// One entry per server that has been compared.
    pub servers: Vec<AcceptedServer>,
}

/// What is accepted of one server.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedServer {
    /// Name, as the server calls itself.
    pub name: String,
    /// Version; patch levels count.
    pub version: String,
    /// Where it came from, for readers.
    pub source: String,
    /// The differences, grouped by reason.
    pub reasons: Vec<Reason>,
}

/// Differences with the same reason.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Why they are accepted.
    pub why: String,
    /// The lines that the comparison prints.
    pub differences: Vec<String>,
}

/// A comparison held against the accepted list.
pub struct Verdict {
    /// Differences that nobody has accepted.
    pub unexplained: Vec<String>,
    /// Accepted differences that are no longer there.
    pub gone: Vec<String>,
    /// Number of differences that are accepted.
    pub accepted: usize,
}

/// Reads the accepted list under `root`.
///
/// # Errors
/// When the file is missing or has another shape.
pub fn load(root: &Path) -> Result<Accepted> {
    let text = fs::read_to_string(root.join(ACCEPTED_PATH))
        .with_context(|| format!("cannot read {ACCEPTED_PATH}"))?;
    serde_json::from_str(&text).with_context(|| format!("{ACCEPTED_PATH}: not as expected"))
}

impl Accepted {
    /// Sorts the differences of a comparison into accepted and unexplained ones.
    #[must_use]
    pub fn judge(&self, server: &Server, comparison: &Comparison) -> Verdict {
        let version = server.version.to_string();
        let mine = self.servers.iter().filter(|each| each.name == server.name && each.version == version);
        let accepted: BTreeSet<&String> =
            mine.flat_map(|each| &each.reasons).flat_map(|reason| &reason.differences).collect();
        let found: BTreeSet<&String> = comparison.differences.iter().collect();
        Verdict {
            unexplained: found.difference(&accepted).map(|each| (*each).clone()).collect(),
            gone: accepted.difference(&found).map(|each| (*each).clone()).collect(),
            accepted: found.intersection(&accepted).count(),
        }
    }
}

/// What stands above the servers.
const INTRODUCTION: &str = "\
# The command table against real servers

<!-- Generated from spec/commands-accepted.json by `xtask gen`; edit that file, not this one. -->

`xtask commands --from HOST:PORT` asks a server for `COMMAND INFO` and `COMMAND DOCS` and compares every fact with
`spec/commands/`: name, arity, flags, key positions and key specs, ACL categories, hints, group, since, deprecation,
versions of the history, and the whole argument tree with types, tokens, order and flags. Not compared are the texts
(summary, complexity, notes, what the history says), which are our own. Left out as too new for the server are commands
and arguments by their `since` and history entries by their version; commands of modules that are not loaded and those
of a Sentinel are left out as well. The table describes Valkey 9.1.2; these are the servers it has been compared with
and what differs. Any other difference makes the comparison fail.
";

/// The page about what has been compared.
///
/// # Errors
/// As [`load`].
pub fn generate(root: &Path) -> Result<String> {
    let mut page = INTRODUCTION.to_owned();
    for server in load(root)?.servers {
        let count: usize = server.reasons.iter().map(|reason| reason.differences.len()).sum();
        // Writing to a String cannot fail.
        let _ = write!(
            page,
            "\n## {} {}\n\n{}. Differences: {count}.\n",
            server.name, server.version, server.source
        );
        for reason in server.reasons {
            let _ = write!(page, "\n**{}** ({})\n\n", reason.why, reason.differences.len());
            for difference in reason.differences {
                let _ = writeln!(page, "- {difference}");
            }
        }
    }
    Ok(page)
}
