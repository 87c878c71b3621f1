//! Guards the cost of requests from their bytes to those of the reply: instructions per request, counted by callgrind,
//! against `instructions.json`, and how much more they are under conditions that are common in use, against
//! `cliffs.json`. Sockets are not in it.
//!
//! `cliffs.json` has for each command its instructions where nothing is special, for the other conditions how many
//! times that a request may cost. The table is printed by
//! `cargo test -p weft-engine --test instructions cliffs -- --include-ignored --nocapture`. Its requests come from
//! several clients, 16 of each, so that they cost more than those of `instructions.json`, where 64 neighbours are one
//! client's.

#[allow(dead_code)]
#[path = "../../protocol/tests/support/callgrind.rs"]
mod callgrind;

use std::collections::BTreeMap;

use serde_json::Value;

/// Where nothing is special.
const PLAIN: &str = "plain";
/// What a cell of cliffs.json may allow: a condition that makes a request dearer than this is a cliff.
const CLIFF: f64 = 1.3;
/// The condition under which more is done for a request; its cells keep that from growing.
const DOES_MORE: &str = "a trigger that counts SETs";

#[test]
#[cfg_attr(debug_assertions, ignore = "counts a release build: make test-instructions")]
fn requests_cost_no_more_than_they_did() {
    callgrind::check("engine_costs", Some("requests"), include_str!("instructions.json"));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "counts a release build: make test-instructions")]
fn there_are_no_new_cliffs() {
    let example = callgrind::build("engine_costs");
    let counts = Cliffs::new(&callgrind::parts(&example, "cliffs", "*counted_batch*", "*end_of_cell*"));
    println!("{}", counts.table());
    let table: Value = serde_json::from_str(include_str!("cliffs.json")).expect("the table is JSON");
    let wrong = counts.judge(&table);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Instructions per request, by condition and command.
#[derive(Default)]
struct Cliffs {
    /// In the order in which they were counted.
    conditions: Vec<String>,
    commands: Vec<String>,
    counts: BTreeMap<(String, String), f64>,
}

impl Cliffs {
    /// From the lines of the example, `condition | command | requests`, and the instructions of each.
    fn new(parts: &[(String, u64)]) -> Self {
        let mut cliffs = Self::default();
        for (line, instructions) in parts {
            let fields: Vec<&str> = line.split(" | ").collect();
            let [condition, command, requests] = fields[..] else { panic!("no cell: {line}") };
            let requests: u64 = requests.parse().expect("a number of requests");
            for (list, name) in [(&mut cliffs.conditions, condition), (&mut cliffs.commands, command)] {
                if !list.iter().any(|known| known == name) {
                    list.push(name.to_owned());
                }
            }
            let cell = (condition.to_owned(), command.to_owned());
            cliffs.counts.insert(cell, *instructions as f64 / requests as f64);
        }
        cliffs
    }

    fn count(&self, condition: &str, command: &str) -> f64 {
        self.counts[&(condition.to_owned(), command.to_owned())]
    }

    /// How many times what it costs where nothing is special.
    fn factor(&self, condition: &str, command: &str) -> f64 {
        self.count(condition, command) / self.count(PLAIN, command)
    }

    fn table(&self) -> String {
        let mut lines = vec![format!("| instructions | {} |", self.commands.join(" | "))];
        lines.push(format!("|---|{}", "---:|".repeat(self.commands.len())));
        for condition in &self.conditions {
            let cell = |command: &String| match condition.as_str() {
                PLAIN => format!("{:.0}", self.count(condition, command)),
                _ => format!("{:.2}", self.factor(condition, command)),
            };
            let cells: Vec<String> = self.commands.iter().map(cell).collect();
            lines.push(format!("| {condition} | {} |", cells.join(" | ")));
        }
        lines.join("\n")
    }

    /// Says which cells are above what the table allows, and which of the two lacks one that the other has.
    fn judge(&self, table: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        for (condition, command) in self.counts.keys() {
            let Some(allowed) = table[condition][command].as_f64() else {
                wrong.push(format!("{condition}, {command}: stands in no cell of cliffs.json"));
                continue;
            };
            let name = format!("{condition}, {command}");
            if condition != PLAIN && condition != DOES_MORE && allowed > CLIFF {
                wrong.push(format!(
                    "{name}: cliffs.json allows {allowed} times the plain one, and may allow {CLIFF}"
                ));
            }
            if condition == PLAIN {
                let count = self.count(condition, command);
                wrong.extend(callgrind::judge(&name, count, allowed, f64::INFINITY));
            } else if self.factor(condition, command) > allowed {
                let factor = self.factor(condition, command);
                wrong.push(format!("{name}: costs {factor:.2} times the plain one, {allowed} are allowed"));
            }
        }
        for (condition, row) in table.as_object().expect("the table is an object") {
            for command in row.as_object().expect("a row is an object").keys() {
                if !self.counts.contains_key(&(condition.clone(), command.clone())) {
                    wrong.push(format!("{condition}, {command}: was not counted"));
                }
            }
        }
        wrong
    }
}

#[test]
fn cliffs_are_seen() {
    let parts = |get: u64, events: u64| {
        [("plain | GET | 10".to_owned(), get), ("events | GET | 10".to_owned(), events)]
    };
    let table = serde_json::json!({ "plain": { "GET": 100 }, "events": { "GET": 1.3 } });
    let judge = |get, events| Cliffs::new(&parts(get, events)).judge(&table).join("; ");
    assert_eq!(judge(1000, 1300), "");
    assert!(judge(1000, 1310).contains("events, GET: costs 1.31 times"));
    assert!(judge(1101, 1300).contains("plain, GET: 110.1 instructions"));
    let careless = serde_json::json!({ "plain": { "GET": 100 }, "events": { "GET": 1.4 } });
    let allows = Cliffs::new(&parts(1000, 1300)).judge(&careless).join("; ");
    assert!(allows.contains("events, GET: cliffs.json allows 1.4 times"), "{allows}");
    let missing = Cliffs::new(&parts(1000, 1000)[..1]).judge(&table);
    assert!(missing.iter().any(|line| line.contains("events, GET: was not counted")), "{missing:?}");
    let table = serde_json::json!({ "plain": { "GET": 100 } });
    let unknown = Cliffs::new(&parts(1000, 1000)).judge(&table);
    assert!(unknown.iter().any(|line| line.contains("stands in no cell")), "{unknown:?}");
}
