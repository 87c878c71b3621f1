//! Owns `help` at the prompt. Does not own what it says of commands, which is the command table's.

use weft_engine::near::nearest;
use weft_protocol::table::{self, COMMANDS, CommandId, Opcode};

use super::grammar;

const ABOUT: &str = "\
Commands of the server are typed as they are: SET key value. What else there is:

  help COMMAND           what a command does and takes; help @GROUP lists a group
  peek KEY               what is in a key, whatever its type
  COMMAND | PROGRAM      the raw reply to a program: GET k | jq .
  N COMMAND              the command N times
  connect HOST PORT      another server
  :set hints|nohints     argument hints on and off
  :set pager PROGRAM     show what is longer than the screen with a program; :set nopager
  clear, quit

Tab completes commands, options and keys. Ctrl-R searches the history. Ctrl-C ends a command that waits, SUBSCRIBE and
MONITOR, and leaves a line; Ctrl-D leaves.
";

/// The text for `help` and the words behind it.
pub(super) fn text(words: &[Vec<u8>]) -> String {
    let Some(first) = words.first() else { return ABOUT.to_string() };
    if let Some(group) = first.strip_prefix(b"@") {
        return of_group(&String::from_utf8_lossy(group).to_ascii_lowercase());
    }
    let Some(command) = table::by_name(first) else {
        let names = similar(first);
        return match &names[..] {
            [] => "There is no such command in the table; a server may have more.\n".to_string(),
            [only] => format!("There is no such command in the table. Is it {only}?\n"),
            names => format!("There is no such command in the table. Is it one of {}?\n", names.join(", ")),
        };
    };
    match words.get(1).map(|sub| table::subcommand(command, sub)) {
        Some(Some(sub)) => of_command(sub),
        _ => {
            let mut out = of_command(command);
            table::subcommands(command).for_each(|sub| out.push_str(&of_command(sub)));
            out
        }
    }
}

fn of_command(id: CommandId) -> String {
    let spec = id.spec();
    let opcode = match spec.opcode {
        Opcode::Core(opcode) => format!("{opcode:04X}"),
        Opcode::Module { module, command } => format!("F000 {module:04X} {command:04X}"),
    };
    format!(
        "\n  {}\n  summary: {}\n  since: {}\n  group: {}\n  complexity: {}\n  RESPB: {opcode}\n",
        grammar::syntax(id),
        spec.summary,
        spec.since,
        spec.group,
        spec.complexity,
    )
}

fn of_group(group: &str) -> String {
    let ids: Vec<_> =
        (0..COMMANDS.len() as u16).map(CommandId).filter(|id| id.spec().group == group).collect();
    if ids.is_empty() {
        return format!("There is no such group. There are {}.\n", groups().join(", "));
    }
    let lines = ids.into_iter().map(|id| format!("  {}\n    {}\n", grammar::syntax(id), id.spec().summary));
    lines.collect()
}

/// All groups, with their `@`.
pub(super) fn groups() -> Vec<String> {
    let mut groups: Vec<String> = COMMANDS.iter().map(|spec| format!("@{}", spec.group)).collect();
    groups.sort();
    groups.dedup();
    groups
}

/// Commands that may have been meant: the one that is most like it, and a few with the same beginning.
fn similar(name: &[u8]) -> Vec<&'static str> {
    const SHOWN_MAX: usize = 6;
    let start = &name[..name.len().min(3)];
    let all = || COMMANDS.iter().filter(|spec| spec.container.is_none()).map(|spec| spec.name);
    let same =
        |own: &&str| own.len() >= start.len() && own.as_bytes()[..start.len()].eq_ignore_ascii_case(start);
    let mut names: Vec<&'static str> = nearest(&String::from_utf8_lossy(name), all()).into_iter().collect();
    for own in all().filter(same) {
        if names.len() < SHOWN_MAX && !names.contains(&own) {
            names.push(own);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        text(&line.split(' ').filter(|word| !word.is_empty()).map(|word| word.into()).collect::<Vec<_>>())
    }

    #[test]
    fn commands_groups_and_mistakes() {
        let get = of("get");
        assert!(get.contains("\n  GET key\n  summary: ") && get.contains("RESPB: 0000"), "{get}");
        assert!(of("client setname").contains("CLIENT SETNAME connection-name"));
        assert!(of("client").contains("CLIENT KILL"));
        assert!(of("@string").contains("APPEND key value"));
        assert!(of("@nosuch").contains("@stream"));
        assert!(of("sett").contains("Is it one of SET, "), "{}", of("sett"));
        assert!(of("gte").ends_with("Is it GET?\n"), "{}", of("gte"));
        assert!(of("qqqqqqqq").contains("a server may have more"));
        assert!(of("").contains("peek KEY"));
    }
}
