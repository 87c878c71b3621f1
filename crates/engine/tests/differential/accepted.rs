//! Owns: the differences that are meant to be, from `accepted.txt`. Does not own: their reasons, which stand there.
//!
//! A line is `server | command | Weft's reply | the server's reply | reason`. `server` is `any`, `redis` or `valkey`;
//! the next three are globs. A difference is accepted if a line fits all of it; how often each was needed is printed,
//! so that lines that nobody needs any more are seen. Inside EXEC a line counts for the command that was queued.
//!
//! Where a difference would go on to other commands, both replies are `not run`: then the command is left out
//! of the rounds. Where it would only after some reply of Weft's, the server's is `ends the round`: nothing behind that
//! reply is compared. Where a command serves a client that the server leaves waiting, Weft's is `serves` and the
//! server's `waits`, and the round ends too.

use std::cell::Cell;
use weft_engine::glob;

/// In place of replies: the command is not run.
const NOT_RUN: &str = "not run";

/// In place of the server's reply: the round ends.
const ENDS_ROUND: &str = "ends the round";

/// In place of Weft's reply: the command serves a client that waits.
pub(crate) const SERVES: &str = "serves";

/// In place of a reply: there is none, because the client waits for a key.
pub(crate) const WAITS: &str = "waits";

/// One line.
pub(crate) struct Accepted {
    line: &'static str,
    fields: [&'static str; 4],
    used: Cell<u64>,
}

/// All lines that count for a server. Of Weft itself nothing is accepted.
///
/// # Panics
/// When a line lacks a field, or a reason.
pub(crate) fn read(server: &str) -> Vec<Accepted> {
    let text = include_str!("accepted.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let fields: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [server, command, ours, theirs, reason] = fields[..] else {
            panic!("accepted.txt: five fields are needed: {line}")
        };
        assert!(reason.len() > 10, "accepted.txt: a reason is needed: {line}");
        assert!(["any", "redis", "valkey"].contains(&server), "accepted.txt: which server? {line}");
        assert!(command != "*", "accepted.txt: a line is for one command: {line}");
        Accepted { line, fields: [server, command, ours, theirs], used: Cell::new(0) }
    });
    let counts = |accepted: &Accepted| server != "weft" && ["any", server].contains(&accepted.fields[0]);
    parsed.filter(counts).collect()
}

/// Whether a command is left out.
pub(crate) fn leaves_out(list: &[Accepted], command: &str) -> bool {
    let left_out = list.iter().filter(|accepted| accepted.fields[2] == NOT_RUN);
    left_out.into_iter().any(|accepted| {
        let fits = glob::matches_nocase(accepted.fields[1].as_bytes(), command.as_bytes());
        accepted.used.set(accepted.used.get() + u64::from(fits));
        fits
    })
}

/// Whether a difference is meant to be.
pub(crate) fn accepts(list: &[Accepted], command: &str, ours: &str, theirs: &str) -> bool {
    let fits = |accepted: &&Accepted| {
        let [_, for_command, for_ours, for_theirs] = accepted.fields;
        glob::matches_nocase(for_command.as_bytes(), command.as_bytes())
            && glob::matches(for_ours.as_bytes(), ours.as_bytes())
            && glob::matches(for_theirs.as_bytes(), theirs.as_bytes())
    };
    let found = list.iter().find(fits);
    if let Some(accepted) = found {
        accepted.used.set(accepted.used.get() + 1);
    }
    found.is_some()
}

/// Whether a round ends with a reply of Weft's.
pub(crate) fn ends_round(list: &[Accepted], command: &str, ours: &str) -> bool {
    let ends = list.iter().find(|accepted| {
        let [_, for_command, for_ours, theirs] = accepted.fields;
        theirs == ENDS_ROUND
            && glob::matches_nocase(for_command.as_bytes(), command.as_bytes())
            && glob::matches(for_ours.as_bytes(), ours.as_bytes())
    });
    if let Some(accepted) = ends {
        accepted.used.set(accepted.used.get() + 1);
    }
    ends.is_some()
}

/// What was needed, for the end of a run.
pub(crate) fn report(list: &[Accepted]) {
    for accepted in list.iter().filter(|accepted| accepted.used.get() > 0) {
        println!("accepted {} times: {}", accepted.used.get(), accepted.line);
    }
}
