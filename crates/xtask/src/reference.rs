//! Generates `docs/commands.md`: the command reference, by group.
//!
//! It owns the page's form. Every fact on it comes from `spec/commands/`, and what is not served from the table of
//! `docs/compatibility.md`, which a test of the engine compares with the server.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

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

<!-- Generated from spec/commands/ and docs/compatibility.md by `xtask gen`; edit those files, not this one. -->

Every command of the table. What Weft does not serve is *in italics* in the list, with the reason in its entry; all
others are served. `COMMAND LIST` says so on a running server.

Notation: capitals are typed as they are (case does not matter), `<name>` stands for a value, `[…]` may be left out,
`(a | b)` is one of several, `…` marks what may be repeated. *Since* names the Valkey or Redis version that brought the
command, for module commands that of the module. *RESPB* gives the opcode and the layout of the frame after its header
(`spec/RESPB.md`); `args` means the arguments as they are.
";

/// Where it stands what is not served, from the root of the repository.
pub const COMPATIBILITY: &str = "docs/compatibility.md";

/// Names of commands that are not served, `*` at the end for all that begin so, and why.
pub(crate) struct Unserved(Vec<(String, String)>);

impl Unserved {
    pub(crate) fn read(root: &Path) -> Result<Unserved> {
        let page = fs::read_to_string(root.join(COMPATIBILITY)).context(COMPATIBILITY)?;
        let mut all = Vec::new();
        for row in page.lines().filter(|line| line.starts_with("| `")) {
            let mut cells = row.trim_matches('|').split('|').map(str::trim);
            let (names, why) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
            all.extend(names.split(", ").map(|name| (name.trim_matches('`').to_owned(), why.to_owned())));
        }
        ensure!(!all.is_empty(), "{COMPATIBILITY} has no table of commands that are not served");
        Ok(Unserved(all))
    }

    /// Why a command is not served, if it is not. HELP of a container always is.
    pub(crate) fn reason(&self, name: &str) -> Option<&str> {
        let is = |row: &str| match row.strip_suffix('*') {
            Some(start) => name.starts_with(start) || name == start.trim_end(),
            None => row == name,
        };
        let found = self.0.iter().find(|(row, _)| is(row)).map(|(_, why)| why.as_str());
        found.filter(|_| !name.ends_with(" HELP"))
    }
}

/// The whole page.
///
/// # Errors
/// When the page that says what is not served cannot be read.
pub fn generate(root: &Path, commands: &[Command]) -> Result<String> {
    let unserved = Unserved::read(root)?;
    let mut page = INTRODUCTION.to_owned();
    for (group, title) in GROUPS {
        let names = of_group(commands, group).map(|command| {
            let name = command.full_name();
            let mark = if unserved.reason(&name).is_some() { "*" } else { "" };
            format!("{mark}[{name}](#{}){mark}", anchor(&name))
        });
        // Writing to a String cannot fail.
        let _ =
            write!(page, "\n**[{title}](#{})**: {}\n", anchor(title), names.collect::<Vec<_>>().join(" · "));
    }
    for (group, title) in GROUPS {
        let _ = write!(page, "\n## {title}\n");
        for command in of_group(commands, group) {
            entry(&mut page, command, unserved.reason(&command.full_name()));
        }
    }
    Ok(page)
}

fn of_group<'a>(commands: &'a [Command], group: &'a str) -> impl Iterator<Item = &'a Command> {
    commands.iter().filter(move |command| command.group == group)
}

/// The anchor that Markdown renderers make of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|each| each.is_alphanumeric() || matches!(each, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn entry(page: &mut String, command: &Command, unserved: Option<&str>) {
    let _ = write!(page, "\n### {}\n\n", command.full_name());
    let _ = write!(page, "```\n{}\n```\n\n{}.\n\n", syntax::line(command), command.summary);
    if let Some(why) = unserved {
        let _ = writeln!(page, "- **Not served**: {why}");
    }
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
    fn what_is_not_served_is_marked() {
        let row = |name: &str| (name.to_owned(), "planned".to_owned());
        let unserved = Unserved(vec![row("EVAL"), row("SCRIPT *"), row("FT.*")]);
        for name in ["EVAL", "SCRIPT", "SCRIPT LOAD", "FT.INFO"] {
            assert_eq!(unserved.reason(name), Some("planned"), "{name}");
        }
        for name in ["EVALSHA", "SCRIPT HELP", "GET", "FTX"] {
            assert_eq!(unserved.reason(name), None, "{name}");
        }
        let page = generate(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), &[]);
        assert!(page.is_ok_and(|page| page.contains("*in italics*")));
    }

    #[test]
    fn anchors() {
        assert_eq!(anchor("CLIENT LIST"), "client-list");
        assert_eq!(anchor("JSON.SET"), "jsonset");
        assert_eq!(anchor("FT._LIST"), "ft_list");
    }
}
