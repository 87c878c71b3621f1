//! What was converted, counted for each command, and printed as a table or as JSON.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use weft_protocol::table::{self, COMMANDS, CommandId};

use crate::text::grouped;

/// Names outside of the table that are counted one by one; the others are counted together.
const OTHER_NAMES_MAX: usize = 1000;

/// How a command stood in the RESPB stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Typed,
    Argv,
    Passthrough,
}

/// One command's counts.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// By [`Form`].
    forms: [u64; 3],
    before: u64,
    after: u64,
}

impl Row {
    fn count(&self) -> u64 {
        self.forms.iter().sum()
    }

    fn add(&mut self, form: Form, before: usize, after: usize) {
        self.forms[form as usize] += 1;
        self.before += before as u64;
        self.after += after as u64;
    }

    /// Percent saved; 0 of nothing.
    fn saved(&self) -> f64 {
        if self.before == 0 { 0.0 } else { 100.0 * (1.0 - self.after as f64 / self.before as f64) }
    }
}

/// What was passed over, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PassedOver {
    /// Lines that begin with `#`: timestamps of an append-only file.
    pub(super) annotations: u64,
    /// `*0` and empty lines.
    pub(super) empty_requests: u64,
    /// CLOSE, CANCEL, WINDOW and unknown frames that are to be ignored.
    pub(super) control_frames: u64,
    /// Frames of 0xF002 to 0xFEFF, which this version does not know.
    pub(super) unknown_frames: u64,
    /// Commands of channels that were not asked for.
    pub(super) other_channels: u64,
    /// Bytes of RDB.
    pub(super) rdb_bytes: u64,
}

/// All counts.
#[derive(Debug)]
pub(super) struct Stats {
    /// By [`CommandId`].
    known: Vec<Row>,
    other: HashMap<Vec<u8>, Row>,
    pub(super) passed_over: PassedOver,
}

impl Stats {
    pub(super) fn new() -> Stats {
        Stats {
            known: vec![Row::default(); COMMANDS.len()],
            other: HashMap::new(),
            passed_over: PassedOver::default(),
        }
    }

    /// A command of the table.
    #[inline]
    pub(super) fn known(&mut self, id: CommandId, form: Form, before: usize, after: usize) {
        self.known[usize::from(id.0)].add(form, before, after);
    }

    /// A command by its name, which the table need not have.
    pub(super) fn named(&mut self, name: &[u8], form: Form, before: usize, after: usize) {
        if let Some(id) = table::by_name(name) {
            return self.known(id, form, before, after);
        }
        if let Some(row) = self.other.get_mut(name) {
            return row.add(form, before, after);
        }
        let key = if self.other.len() < OTHER_NAMES_MAX && name.len() <= 64 { name } else { b"(others)" };
        self.other.entry(key.to_vec()).or_default().add(form, before, after);
    }

    /// Rows with something in them, most bytes first, and their sum.
    fn rows(&self) -> (Vec<(String, Row)>, Row) {
        let known = self.known.iter().zip(COMMANDS).map(|(row, spec)| (spec.name.to_string(), *row));
        let other = self
            .other
            .iter()
            .map(|(name, row)| (String::from_utf8_lossy(name).escape_debug().to_string(), *row));
        let mut rows: Vec<_> = known.chain(other).filter(|(_, row)| row.count() > 0).collect();
        rows.sort_by(|(a, x), (b, y)| y.before.cmp(&x.before).then(a.cmp(b)));
        let mut total = Row::default();
        for (_, row) in &rows {
            (0..3).for_each(|form| total.forms[form] += row.forms[form]);
            total.before += row.before;
            total.after += row.after;
        }
        (rows, total)
    }

    /// A line for each command.
    pub(super) fn table(&self) -> String {
        let (mut rows, total) = self.rows();
        rows.push(("total".into(), total));
        let head =
            ["command", "count", "typed", "argv", "passthrough", "bytes before", "bytes after", "saved"];
        let cells = rows.iter().map(|(name, row)| {
            [
                name.clone(),
                grouped(row.count()),
                grouped(row.forms[0]),
                grouped(row.forms[1]),
                grouped(row.forms[2]),
                grouped(row.before),
                grouped(row.after),
                format!("{:.1}%", row.saved()),
            ]
        });
        let lines: Vec<[String; 8]> = std::iter::once(head.map(String::from)).chain(cells).collect();
        let mut text = String::new();
        for line in &lines {
            for (column, cell) in line.iter().enumerate() {
                let width = lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
                // Writing to a String cannot fail.
                let _ = match column {
                    0 => write!(text, "{cell:<width$}"),
                    _ => write!(text, "  {cell:>width$}"),
                };
            }
            text.push('\n');
        }
        for (name, count) in self.passed_over_named().into_iter().filter(|(_, count)| *count > 0) {
            let _ = writeln!(text, "passed over: {} {}", grouped(count), name.replace('_', " "));
        }
        text
    }

    fn passed_over_named(&self) -> [(&'static str, u64); 6] {
        let passed = &self.passed_over;
        [
            ("annotations", passed.annotations),
            ("empty_requests", passed.empty_requests),
            ("control_frames", passed.control_frames),
            ("unknown_frames", passed.unknown_frames),
            ("commands_of_other_channels", passed.other_channels),
            ("rdb_bytes", passed.rdb_bytes),
        ]
    }

    /// The same as one JSON object.
    pub(super) fn json(&self) -> Value {
        let (rows, total) = self.rows();
        let object = |row: &Row| {
            json!({
                "count": row.count(),
                "typed": row.forms[0],
                "argv": row.forms[1],
                "passthrough": row.forms[2],
                "bytes_before": row.before,
                "bytes_after": row.after,
                "saved_percent": (row.saved() * 100.0).round() / 100.0,
            })
        };
        let commands: Vec<Value> = rows
            .iter()
            .map(|(name, row)| {
                let mut line = json!({ "command": name });
                if let (Some(line), Value::Object(counts)) = (line.as_object_mut(), object(row)) {
                    line.extend(counts);
                }
                line
            })
            .collect();
        let passed: serde_json::Map<String, Value> =
            self.passed_over_named().into_iter().map(|(name, count)| (name.into(), count.into())).collect();
        json!({ "commands": commands, "total": object(&total), "passed_over": passed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_command_whatever_the_case() {
        let mut stats = Stats::new();
        stats.named(b"get", Form::Argv, 30, 33);
        stats.named(b"GET", Form::Typed, 30, 15);
        stats.named(b"NO.SUCH", Form::Argv, 100, 90);
        stats.passed_over.annotations = 2;
        let json = stats.json();
        assert_eq!(json["commands"][0]["command"], "NO.SUCH");
        assert_eq!(json["commands"][1]["count"], 2);
        assert_eq!(json["commands"][1]["argv"], 1);
        assert_eq!(json["total"]["bytes_after"], 138);
        assert_eq!(json["passed_over"]["annotations"], 2);
        let table = stats.table();
        assert!(table.contains("passed over: 2 annotations"), "{table}");
        assert!(table.lines().nth(2).is_some_and(|line| line.ends_with("20.0%")), "{table}");
    }

    #[test]
    fn names_outside_of_the_table_are_bounded() {
        let mut stats = Stats::new();
        for i in 0..2 * OTHER_NAMES_MAX {
            stats.named(format!("X{i}").as_bytes(), Form::Argv, 1, 1);
        }
        assert_eq!(stats.other.len(), OTHER_NAMES_MAX + 1);
        assert_eq!(stats.rows().1.count(), 2 * OTHER_NAMES_MAX as u64);
    }
}
