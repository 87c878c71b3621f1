//! Whether every MUST of the specification says what proves it, and whether what it names exists.
//!
//! It owns the form of a citation: in brackets behind the sentence, identifiers of vectors in backquotes (`*` for any
//! text), or words such as *scenario*, for which the table of scenarios has the section, and tests that there are. It
//! does not judge whether a vector, or a test, proves the rule.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// The specification, from the root of the repository.
const SPECIFICATION: &str = "spec/RESPB.md";

/// The folder of the vectors, from the root of the repository.
const VECTORS: &str = "conformance/vectors";

/// The rules for clients, from the root of the repository.
const CLIENTS: &str = "conformance/clients";

/// The table of scenarios, and where its tests are.
const SCENARIOS: &str = "conformance/scenarios/README.md";
const TESTS: [&str; 4] = ["tests/e2e", "crates/client", "crates/server/src/worker", "sdk/go/respb"];

/// What is wrong with the citations, one line each.
///
/// # Errors
/// When the specification or a vector file cannot be read.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(SPECIFICATION))
        .with_context(|| format!("cannot read {SPECIFICATION}"))?;
    let mut ids = BTreeSet::new();
    collect_ids(&root.join(VECTORS), &mut ids)?;
    collect_ids(&root.join(CLIENTS), &mut ids)?;
    let scenarios =
        fs::read_to_string(root.join(SCENARIOS)).with_context(|| format!("cannot read {SCENARIOS}"))?;
    let mut tests = BTreeSet::new();
    for folder in TESTS {
        collect_tests(&root.join(folder), &mut tests)?;
    }
    let mut findings = findings(&text, &ids);
    findings.extend(scenario_findings(&text, &scenarios, &tests));
    Ok(findings)
}

/// The names of all functions below a folder, in whichever language.
fn collect_tests(dir: &Path, names: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect_tests(&path, names)?;
        } else if path.extension().is_some_and(|end| ["rs", "py", "go"].iter().any(|known| end == *known)) {
            let text = fs::read_to_string(&path)?;
            let heads = text.lines().filter_map(|line| {
                ["fn ", "def ", "func "].iter().find_map(|head| line.trim_start().strip_prefix(head))
            });
            names.extend(heads.filter_map(|rest| rest.split('(').next()).map(str::to_owned));
        }
    }
    Ok(())
}

/// Rows of the table without a test that there is, and rules that are scenarios and have no row for their section.
fn scenario_findings(text: &str, scenarios: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut sections = BTreeSet::new();
    for row in scenarios.lines().filter(|line| line.starts_with("| S")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, id, _, _, section, named, _] = cells[..] else {
            findings.push(format!("{SCENARIOS}: no row of five cells: {row}"));
            continue;
        };
        sections.extend(section.split(", "));
        let named: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            findings.push(format!("{SCENARIOS}, {id}: no test in backquotes"));
        }
        for name in named.iter().filter(|name| !tests.contains(**name)) {
            findings.push(format!("{SCENARIOS}, {id}: no test has the name `{name}`"));
        }
    }
    let mut section = String::new();
    for paragraph in paragraphs(text) {
        if let Some(heading) = paragraph.strip_prefix('#') {
            let number = heading.trim_start_matches('#').trim().split(' ').next().unwrap_or_default();
            section = number.trim_end_matches('.').to_owned();
        }
        let is_scenario =
            paragraph.contains("MUST") && brackets(&paragraph).any(|cited| cited.contains("scenario"));
        if is_scenario && section != "2" && !sections.contains(&*section) {
            findings.push(format!("{SCENARIOS}: no row for section {section}: {}", start(&paragraph)));
        }
    }
    findings
}

fn collect_ids(dir: &Path, ids: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect_ids(&path, ids)?;
            continue;
        }
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let file: Value =
            serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
        let vectors =
            ["vectors", "cases", "conversations"].iter().filter_map(|list| file[list].as_array()).flatten();
        ids.extend(vectors.filter_map(|vector| vector["id"].as_str()).map(str::to_owned));
    }
    Ok(())
}

fn findings(text: &str, ids: &BTreeSet<String>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut section = String::new();
    for paragraph in paragraphs(text) {
        if let Some(heading) = paragraph.strip_prefix('#') {
            section = heading.trim_start_matches('#').trim().to_owned();
        }
        // The paragraph that explains the words is no rule.
        if section.starts_with("2.") || !paragraph.contains("MUST") {
            continue;
        }
        let cited: Vec<&str> = brackets(&paragraph).collect();
        if cited.is_empty() {
            findings
                .push(format!("{SPECIFICATION}, {section}: no citation behind MUST: {}", start(&paragraph)));
        }
        for pattern in cited.iter().flat_map(|text| text.split('`').skip(1).step_by(2)) {
            if ["resp", "client."].iter().any(|head| pattern.starts_with(head))
                && !ids.iter().any(|id| matches(pattern, id))
            {
                findings.push(format!("{SPECIFICATION}, {section}: no vector has the id `{pattern}`"));
            }
        }
    }
    findings
}

/// Paragraphs, list items and table rows, each as one line.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in text.lines() {
        let starts = line.is_empty() || ["- ", "|", "#", "```"].iter().any(|mark| line.starts_with(mark));
        match paragraphs.last_mut() {
            Some(last) if !starts => {
                last.push(' ');
                last.push_str(line);
            }
            _ => paragraphs.push(line.to_owned()),
        }
    }
    paragraphs
}

/// What stands in brackets and is no link.
fn brackets(paragraph: &str) -> impl Iterator<Item = &str> {
    paragraph.split('[').skip(1).filter_map(|rest| {
        let (inside, behind) = rest.split_once(']')?;
        let is_citation = inside.contains("resp")
            || ["`client.", "scenario", "vector", "tests", "encoders"]
                .iter()
                .any(|word| inside.contains(word));
        (is_citation && !behind.starts_with('(')).then_some(inside)
    })
}

fn start(paragraph: &str) -> String {
    paragraph.trim().chars().take(60).collect()
}

/// Whether a pattern with `*` for any text covers the whole of `id`.
fn matches(pattern: &str, id: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == id,
        Some((head, rest)) => id.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len()).any(|skip| tail.is_char_boundary(skip) && matches(rest, &tail[skip..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn a_rule_without_proof_is_found() {
        let text = "## 3. Frames\n\nA server MUST answer.\n";
        assert_eq!(findings(text, &ids(&[])).len(), 1);
        assert!(findings("A server MUST answer [scenario].\n", &ids(&[])).is_empty());
    }

    #[test]
    fn a_citation_of_nothing_is_found() {
        let text = "It MUST be so [`respb.get.*`].\n";
        assert_eq!(findings(text, &ids(&["respb.set.smallest"])).len(), 1);
        assert!(findings(text, &ids(&["respb.get.smallest"])).is_empty());
    }

    #[test]
    fn a_scenario_without_a_row_or_a_test_is_found() {
        let text = "## 3. Frames\n\nA server MUST answer [scenario].\n";
        let row = "| S1 | channels | it answers | 3 | `test_one` |\n";
        assert!(scenario_findings(text, row, &ids(&["test_one"])).is_empty());
        assert_eq!(scenario_findings(text, row, &ids(&["test_two"])).len(), 1);
        assert_eq!(scenario_findings(text, "", &ids(&[])).len(), 1);
        let unnamed = "| S1 | channels | it answers | 3 | a rule for clients |\n";
        assert_eq!(scenario_findings(text, unnamed, &ids(&[])).len(), 1);
    }

    #[test]
    fn patterns() {
        assert!(matches("a.*.c", "a.b.c"));
        assert!(matches("a.*", "a."));
        assert!(!matches("a.*.c", "a.b.d"));
        assert!(!matches("a", "ab"));
    }
}
