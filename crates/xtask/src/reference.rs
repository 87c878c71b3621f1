//! Generates `docs/commands.md`: the command reference, by group.
//!
//! It owns the page's form. Every fact on it comes from `spec/commands/`.

use std::fmt::Write as _;

use crate::model::Command;
use crate::respb::{Bit, Count, Field, FieldType, Layout, Order, Respb};
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
        let number = match (respb.module, respb.command) {
            (Some(module), Some(number)) => format!("{} {module} {number}", respb.opcode),
            _ => respb.opcode.to_string(),
        };
        let _ = writeln!(page, "- RESPB: {number}, `{}`", layout(respb));
    }
    for (version, change) in &command.history {
        let _ = writeln!(page, "- {version}: {}", markdown(change));
    }
}

/// Keeps `*` and `<` from being read as markup.
fn markdown(text: &str) -> String {
    text.replace('*', "\\*").replace('<', "&lt;")
}

/// One line for a layout: `key:str16 opts8(EX=seconds:i64 | NX)`; `header only` when there are no fields.
#[must_use]
pub fn layout(respb: &Respb) -> String {
    match respb.layout() {
        Some(Layout::Typed([])) => "header only".to_owned(),
        Some(Layout::Typed(fields)) => field_list(fields),
        Some(Layout::Args) => "args".to_owned(),
        Some(Layout::Via(container)) => format!("args of {container}"),
        None => String::new(),
    }
}

fn field_list(fields: &[Field]) -> String {
    fields.iter().map(field).collect::<Vec<_>>().join(" ")
}

fn field(field: &Field) -> String {
    let name = format!("{}:{}", field.name, field.kind.name());
    match field.kind {
        FieldType::U8 if !field.values.is_empty() => format!("{name}({})", field.values.join(" | ")),
        FieldType::List16 => {
            let order = if field.order == Some(Order::Transposed) { " transposed" } else { "" };
            let count = if field.count == Some(Count::Argument) { " counted" } else { "" };
            format!("{name}({}){order}{count}", field_list(&field.items))
        }
        FieldType::Opts8 | FieldType::Opts16 => {
            format!("{name}({})", field.bits.iter().map(bit).collect::<Vec<_>>().join(" | "))
        }
        _ => name,
    }
}

fn bit(bit: &Bit) -> String {
    let label = bit.token.as_deref().unwrap_or_else(|| bit.label());
    if bit.fields.is_empty() { label.to_owned() } else { format!("{label}={}", field_list(&bit.fields)) }
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

    #[test]
    fn layouts() {
        let respb = |text: &str| layout(&serde_json::from_str(text).unwrap());
        assert_eq!(respb(r#"{"opcode": "0x0300", "fields": []}"#), "header only");
        assert_eq!(respb(r#"{"opcode": "0x0307", "layout": "args"}"#), "args");
        assert_eq!(respb(r#"{"opcode": "0x0307", "via": "CLIENT"}"#), "args of CLIENT");
        let fields = r#"{"opcode": "0x0001", "fields": [
            {"name": "key", "type": "str16", "key": true},
            {"name": "options", "type": "opts8", "bits": [
                {"token": "EX", "fields": [{"name": "seconds", "type": "i64"}]}, {"token": "NX"}]},
            {"name": "pairs", "type": "list16", "count": "none", "min": 1, "items": [
                {"name": "field", "type": "str16"}, {"name": "value", "type": "blob32"}]}]}"#;
        assert_eq!(
            respb(fields),
            "key:str16 options:opts8(EX=seconds:i64 | NX) pairs:list16(field:str16 value:blob32)"
        );
    }
}
