//! Owns: what a run has come to, cell by cell: a group in a mode, with the commands that both have run and the kinds of
//! differences. Does not own: running them.

use std::collections::BTreeMap;

/// A group in a mode, or all groups together in one.
pub(crate) struct Cell {
    pub(crate) mode: String,
    pub(crate) group: String,
    pub(crate) commands: u64,
    /// Each kind with how often it came.
    pub(crate) kinds: BTreeMap<String, u64>,
}

impl Cell {
    /// Its differences in words.
    pub(crate) fn differences(&self) -> impl Iterator<Item = String> + '_ {
        let Self { mode, group, .. } = self;
        self.kinds.iter().map(move |(kind, count)| format!("{mode}, {group}: {kind}, {count} times"))
    }
}

/// A line for each group and a column for each mode, in the order in which they ran: thousands of commands, and how
/// many kinds of differences there were.
pub(crate) fn table(cells: &[Cell]) -> String {
    let (mut modes, mut groups): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for cell in cells {
        for (list, name) in [(&mut modes, cell.mode.as_str()), (&mut groups, cell.group.as_str())] {
            if !list.contains(&name) {
                list.push(name);
            }
        }
    }
    let mut lines = vec!["thousands of commands in each mode, and kinds of differences:".to_owned()];
    lines.extend(modes.iter().enumerate().map(|(at, mode)| format!("mode {}: {mode}", at + 1)));
    let numbers = (1..=modes.len()).map(|number| number.to_string());
    lines.push(line("group", numbers.chain(["differences".to_owned()])));
    lines.push(format!("|---|{}", "--:|".repeat(modes.len() + 1)));
    for group in groups {
        let of_group = |mode: &str| cells.iter().find(|cell| cell.group == group && cell.mode == mode);
        let commands =
            modes.iter().map(|mode| of_group(mode).map_or("–".into(), |cell| thousands(cell.commands)));
        let kinds: usize = cells.iter().filter(|cell| cell.group == group).map(|cell| cell.kinds.len()).sum();
        lines.push(line(group, commands.chain([kinds.to_string()])));
    }
    let (commands, kinds) = cells
        .iter()
        .fold((0, 0), |(commands, kinds), cell| (commands + cell.commands, kinds + cell.kinds.len()));
    lines.push(format!("{} cells, {commands} commands, {kinds} kinds of differences", cells.len()));
    lines.join("\n")
}

fn line(name: &str, fields: impl Iterator<Item = String>) -> String {
    format!("| {name} | {} |", fields.collect::<Vec<_>>().join(" | "))
}

fn thousands(commands: u64) -> String {
    format!("{:.1}", commands as f64 / 1000.0)
}

#[test]
fn a_table_has_every_cell_and_counts_differences() {
    let cell = |mode: &str, group: &str, commands, kinds: &[&str]| Cell {
        mode: mode.into(),
        group: group.into(),
        commands,
        kinds: kinds.iter().map(|kind| ((*kind).to_owned(), 2)).collect(),
    };
    let cells = [
        cell("single", "lists", 1234, &[]),
        cell("batches", "lists", 60, &["LPOP", "LPUSH"]),
        cell("batches", "sets", 5000, &[]),
    ];
    let expected = [
        "thousands of commands in each mode, and kinds of differences:",
        "mode 1: single",
        "mode 2: batches",
        "| group | 1 | 2 | differences |",
        "|---|--:|--:|--:|",
        "| lists | 1.2 | 0.1 | 2 |",
        "| sets | – | 5.0 | 0 |",
        "3 cells, 6294 commands, 2 kinds of differences",
    ];
    assert_eq!(table(&cells), expected.join("\n"));
    let told: Vec<String> = cells[1].differences().collect();
    assert_eq!(told, ["batches, lists: LPOP, 2 times", "batches, lists: LPUSH, 2 times"]);
}
