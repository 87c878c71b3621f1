//! `docs/configuration.md` has what the table of directives has. `WEFT_WRITE=1 cargo test -p weft-engine --test
//! configuration_page` writes it (`make gen` does).

use std::fmt::Write as _;
use std::path::Path;

use weft_engine::config::directive::{Actor, Change, Directive, Kind};
use weft_engine::config::table::DIRECTIVES;
use weft_engine::config::table::about::{ABOUT, about};

/// Everything from this line on is generated.
const MARK: &str =
    "<!-- generated from crates/engine/src/config/table: change it there, then `make gen` -->\n";

/// What a directive takes, in words.
fn values(directive: &Directive) -> String {
    let list = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    match directive.kind {
        Kind::Bool => "`yes`, `no`".into(),
        Kind::Int { min, max } if max >= i64::from(i32::MAX) => format!("a number from {min}"),
        Kind::Int { min, max } => format!("{min} to {max}"),
        Kind::Octal { .. } => "octal".into(),
        Kind::Memory { .. } => "bytes".into(),
        Kind::MemoryOrPercent => "bytes or percent".into(),
        Kind::Enum(words) => list(words),
        Kind::Flags(words) => format!("some of {}", list(words)),
        Kind::Text(_) => "text".into(),
        Kind::Folder => "a folder".into(),
        Kind::Addresses => "addresses".into(),
        Kind::SavePoints => "seconds, changes, …".into(),
        Kind::OutputLimits => "class, bytes, bytes, seconds, …".into(),
        Kind::OomScores => "three numbers".into(),
        Kind::Events => "letters".into(),
        Kind::Percentiles => "percentages".into(),
        Kind::Primary => "host and port".into(),
    }
}

fn name(directive: &Directive) -> String {
    match directive.alias {
        "" => format!("`{}`", directive.name),
        alias => format!("`{}`, `{alias}`", directive.name),
    }
}

fn default(directive: &Directive) -> String {
    if directive.default.is_empty() { "—".into() } else { format!("`{}`", directive.default) }
}

/// A table with its columns as wide as they must be.
fn table(page: &mut String, head: [&str; 5], rows: &[[String; 5]], columns: usize) {
    let _ = writeln!(page, "| {} |", head[..columns].join(" | "));
    let _ = writeln!(page, "|{}", "---|".repeat(columns));
    for row in rows {
        let _ = writeln!(page, "| {} |", row[..columns].join(" | "));
    }
}

fn generated() -> String {
    let mut page = String::from(MARK);
    page.push_str("\n## Directives that act\n");
    for (group, list) in ABOUT {
        let _ = write!(page, "\n### {group}\n\n");
        let rows: Vec<[String; 5]> = list
            .iter()
            .map(|(wanted, what)| {
                let directive = Directive::named(wanted).unwrap_or_else(|| panic!("there is no {wanted}"));
                let when = match directive.change {
                    Change::Always => "",
                    Change::AtStart => "at the start only",
                    Change::Protected => "protected",
                };
                let what = match when {
                    "" => (*what).to_string(),
                    when => format!("{what} ({when})"),
                };
                [name(directive), values(directive), default(directive), what, String::new()]
            })
            .collect();
        table(&mut page, ["directive", "values", "default", "what it does", ""], &rows, 4);
    }
    page.push_str("\n## Values that are refused\n\nThey would promise what is not served.\n\n");
    let rows: Vec<[String; 5]> = DIRECTIVES
        .iter()
        .filter_map(|directive| {
            let (only, why) = directive.only?;
            let only: Vec<String> = only
                .iter()
                .map(|value| if value.is_empty() { "`\"\"`".to_string() } else { format!("`{value}`") })
                .collect();
            Some([name(directive), only.join(", "), why.to_string(), String::new(), String::new()])
        })
        .collect();
    table(&mut page, ["directive", "what is taken", "why no more", "", ""], &rows, 3);
    page.push_str("\n## Directives that are kept\n\n");
    page.push_str(
        "They are checked, kept and shown, so that files and tools work as they are; nothing follows.\n\n",
    );
    let kept: Vec<&Directive> = DIRECTIVES
        .iter()
        .filter(|directive| about(directive.name).is_none() && directive.only.is_none())
        .collect();
    let rows: Vec<[String; 5]> = kept
        .iter()
        .map(|directive| {
            [name(directive), values(directive), default(directive), String::new(), String::new()]
        })
        .collect();
    table(&mut page, ["directive", "values", "default", "", ""], &rows, 3);
    page
}

#[test]
fn the_page_has_what_the_table_has() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let head = page.split(MARK).next().unwrap_or_default();
    let wanted = format!("{head}{}", generated());
    if std::env::var_os("WEFT_WRITE").is_some() {
        std::fs::write(&path, &wanted).expect("the page can be written");
    } else {
        assert!(page == wanted, "docs/configuration.md is not what the table says: run `make gen`");
    }
}

#[test]
fn what_acts_is_described_and_what_is_described_acts() {
    for (_, list) in ABOUT {
        for (wanted, _) in *list {
            let directive = Directive::named(wanted).unwrap_or_else(|| panic!("there is no {wanted}"));
            assert_eq!(directive.name, *wanted, "an alias is described");
            let acts = !matches!(directive.actor, Actor::Kept)
                || matches!(directive.kind, Kind::Folder | Kind::Percentiles);
            assert!(acts, "{wanted} is described and does nothing");
        }
    }
    for directive in DIRECTIVES.iter().filter(|directive| matches!(directive.actor, Actor::Server)) {
        assert!(about(directive.name).is_some(), "{} acts and is not described", directive.name);
    }
}
