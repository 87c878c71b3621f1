//! Owns: the form of the answers of `OBJECT HELP` and its likes. Does not own: their lines.

use crate::reply::ReplySink;

/// Answers the lines of a container's subcommands, between a head and the lines about HELP itself. `container` is
/// upper-case.
pub(crate) fn answer(sink: &mut ReplySink<'_>, container: &str, lines: &[&str]) {
    sink.array(lines.len() + 3);
    sink.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| sink.simple(line));
    sink.simple("HELP");
    sink.simple("    Print this help.");
}
