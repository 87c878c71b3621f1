//! Owns: the check of `docs/compatibility.md` against the engine: each command of `spec/commands` that is not served
//! stands there with its reason, and none that is.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use support::Bench;
use weft_engine::reply::Protocol;
use weft_protocol::table::{COMMANDS, CommandId};

fn full_name(id: CommandId) -> String {
    let spec = id.spec();
    spec.container
        .map_or(spec.name.to_owned(), |container| format!("{} {}", container.spec().name, spec.name))
}

/// The rows of the page's table of commands: names, or a name and `*` for all that begin so, with a reason.
fn rows() -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let mut all = BTreeMap::new();
    for row in rows {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let (names, reason) = (cells.next().expect("names"), cells.next().unwrap_or_default());
        for name in names.split(", ") {
            all.insert(name.trim_matches('`').to_owned(), reason.to_owned());
        }
    }
    all
}

#[test]
fn what_is_not_served_has_its_reason() {
    let bench = Bench::new();
    let rows = rows();
    let row_of = |name: &str| {
        rows.keys().find(|row| match row.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *row == name,
        })
    };
    let (mut used, mut wrong, mut count) = (BTreeSet::new(), Vec::new(), 0);
    for id in (0..COMMANDS.len() as u16).map(CommandId) {
        let name = full_name(id);
        let is_container =
            (0..COMMANDS.len() as u16).any(|sub| CommandId(sub).spec().container.is_some_and(|of| of == id));
        match (bench.engine.serves(id) || is_container, row_of(&name)) {
            (true, None) => {}
            // HELP of a container says that there is nothing else.
            (true, Some(_)) if is_container || id.spec().name == "HELP" => {}
            (true, Some(row)) => wrong.push(format!("{name} is served, and stands under {row}")),
            (false, None) => wrong.push(format!("{name} is not served, without a reason")),
            (false, Some(row)) => {
                count += 1;
                used.insert(row.clone());
            }
        }
    }
    wrong.extend(
        rows.keys().filter(|row| !used.contains(*row)).map(|row| format!("{row} is no such command")),
    );
    wrong
        .extend(rows.iter().filter(|(_, why)| why.is_empty()).map(|(row, _)| format!("{row} has no reason")));
    assert!(wrong.is_empty(), "docs/compatibility.md:\n{}", wrong.join("\n"));
    println!("{count} of {} commands are not served", COMMANDS.len());
}

#[test]
fn help_of_every_container_answers() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    let mut count = 0;
    for id in (0..COMMANDS.len() as u16).map(CommandId) {
        let Some(container) = id.spec().container.filter(|_| id.spec().name == "HELP") else { continue };
        let name = container.spec().name;
        let reply = bench.text(client, &format!("{name} HELP"));
        count += 1;
        assert!(reply.contains(&format!("{name} <subcommand>")), "{name}: {reply}");
        assert!(reply.contains("Print this help."), "{name}: {reply}");
    }
    assert!(count > 10, "{count}");
}
