//! Generates `docs/commands.md`: the command reference, by group.
//!
//! It owns the page's form. Every fact on it comes from `spec/commands/`.

use std::fmt::Write as _;

use crate::model::Command;
use crate::notation;
use crate::syntax;

/// Groups in the order of the page, with their titles.
const GROUPS: [(&str, &str); 20] = [
    ("string", "Strings"),
    ("list", "Lists"),
    ("set", "Sets"),
    ("sorted-set", "Sorted sets"),
    ("hash", "Hashes"),
    ("stream", "Streams"),
    ("bitmap", "Bitmaps"),
    ("hyperloglog", "HyperLogLog"),
    ("geo", "Geospatial indexes"),
    ("generic", "Keys of any type"),
    ("pubsub", "Publish and subscribe"),
    ("transactions", "Transactions"),
    ("scripting", "Scripts and functions"),
    ("connection", "Connection"),
    ("server", "Server"),
    ("cluster", "Cluster mode"),
    ("sentinel", "Sentinel mode"),
    ("json", "JSON documents"),
    ("bloom", "Bloom filters"),
    ("search", "Search"),
];

/// What stands above the table of contents.
const INTRODUCTION: &str = "\
# Commands

<!-- Generated from spec/commands/ by `xtask gen`; edit those files, not this one. -->

Every command of the table, whether Weft serves it yet or not; `COMMAND LIST` on a running server says what it serves.

Notation: capitals are typed as they are (case does not matter), `<name>` stands for a value, `[…]` may be left out,
`(a | b)` is one of several, `…` marks what may be repeated. *Since* names the Valkey or Redis version that brought the
command, for module commands that of the module. *RESPB* gives the opcode and the layout of the frame after its header
(`spec/RESPB.md`); `args` means the arguments as they are.
";

/// The whole page.
#[must_use]
pub fn generate(commands: &[Command]) -> String {
    let mut page = INTRODUCTION.to_owned();
    for (group, title) in GROUPS {
        let names = of_group(commands, group).map(|command| {
            let name = command.full_name();
            format!("[{name}](#{})", anchor(&name))
        });
        // Writing to a String cannot fail.
        let _ =
            write!(page, "\n**[{title}](#{})**: {}\n", anchor(title), names.collect::<Vec<_>>().join(" · "));
    }
    for (group, title) in GROUPS {
        let _ = write!(page, "\n## {title}\n");
        for command in of_group(commands, group) {
            entry(&mut page, command);
        }
    }
    page
}

fn of_group<'a>(commands: &'a [Command], group: &'a str) -> impl Iterator<Item = &'a Command> {
    commands.iter().filter(move |command| command.group == group)
}

/// The anchor that Markdown renderers make of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|each| each.is_alphanumeric() || matches!(each, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn entry(page: &mut String, command: &Command) {
    let _ = write!(page, "\n### {}\n\n", command.full_name());
    let _ = write!(page, "```\n{}\n```\n\n{}.\n\n", syntax::line(command), command.summary);
    let since = match &command.module {
        Some(module) => format!("{} of module {module}", command.since),
        None => command.since.clone(),
    };
    let _ = writeln!(page, "- Since: {since}");
    if let Some(version) = &command.deprecated_since {
        let instead = command.replaced_by.as_ref().map_or_else(String::new, |name| format!("; use {name}"));
        let _ = writeln!(page, "- Deprecated since: {version}{instead}");
    }
    let _ = writeln!(page, "- Cost: {}", markdown(&command.complexity));
    let _ = writeln!(page, "- ACL: {}", command.acl_categories.join(", "));
    if let Some(respb) = &command.respb {
        let layout = notation::layout(respb);
        let layout = if layout.is_empty() { "header only".to_owned() } else { format!("`{layout}`") };
        let _ = writeln!(page, "- RESPB: {}, {layout}", notation::opcode(respb));
    }
    for (version, change) in &command.history {
        let _ = writeln!(page, "- {version}: {}", markdown(change));
    }
}

/// Keeps `*` and `<` from being read as markup.
fn markdown(text: &str) -> String {
    text.replace('*', "\\*").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors() {
        assert_eq!(anchor("CLIENT LIST"), "client-list");
        assert_eq!(anchor("JSON.SET"), "jsonset");
        assert_eq!(anchor("FT._LIST"), "ft_list");
    }
}
