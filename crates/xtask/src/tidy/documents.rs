//! Rules about the documents: decisions are numbered and linked, the change log has a place for what is new, links lead
//! somewhere.

use std::collections::BTreeSet;

use regex_lite::Regex;

use super::{File, Finding};

const DECISIONS: &str = "docs/adr/";
const DECISIONS_INDEX: &str = "docs/adr/README.md";
const CHANGE_LOG: &str = "CHANGELOG.md";

/// The sections of a decision, in this order.
const SECTIONS: &[&str] = &["## Context", "## Decision", "## Alternatives", "## Consequences"];

/// Decisions are numbered without a gap, have their sections, and stand in the index.
pub(super) fn decisions(files: &[File]) -> Vec<Finding> {
    let Some(index) = files.iter().find(|file| file.path == DECISIONS_INDEX) else {
        return vec![Finding { path: DECISIONS_INDEX.into(), line: 0, message: "is missing".into() }];
    };
    let mut decisions: Vec<(&str, &File)> = files
        .iter()
        .filter_map(|file| Some((file.path.strip_prefix(DECISIONS)?, file)))
        .filter(|(name, file)| file.is("md") && *name != "README.md")
        .collect();
    decisions.sort_by_key(|(name, _)| *name);
    let mut findings = Vec::new();
    for (position, (name, file)) in decisions.iter().enumerate() {
        let number = format!("{:04}", position + 1);
        if !name.starts_with(&format!("{number}-")) {
            findings.push(file.finding(0, format!("the next decision is {number}-….md")));
        }
        if !file.text.starts_with(&format!("# {}. ", name.get(..4).unwrap_or_default())) {
            findings.push(file.finding(1, "the title is `# NUMBER. TITLE`"));
        }
        let sections = file.text.lines().filter(|line| SECTIONS.contains(line));
        if !sections.eq(SECTIONS.iter().copied()) {
            findings.push(file.finding(0, format!("the sections are {}", SECTIONS.join(", "))));
        }
        if !index.text.contains(&format!("]({name})")) {
            findings.push(index.finding(0, format!("{name} is not linked")));
        }
    }
    findings
}

/// The change log has a section for what is not released.
pub(super) fn change_log(files: &[File]) -> Vec<Finding> {
    match files.iter().find(|file| file.path == CHANGE_LOG) {
        None => vec![Finding { path: CHANGE_LOG.into(), line: 0, message: "is missing".into() }],
        Some(log) if log.text.lines().any(|line| line == "## Unreleased") => Vec::new(),
        Some(log) => vec![log.finding(0, "has no section `## Unreleased`")],
    }
}

/// Every relative link of a Markdown file leads to a file or folder of the repository.
pub(super) fn links(files: &[File]) -> Vec<Finding> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("the pattern is a constant");
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for file in files {
        known.insert(&file.path);
        known.extend(file.path.match_indices('/').map(|(end, _)| &file.path[..end]));
    }
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is("md") && !file.is_generated()) {
        let mut fenced = false;
        for (number, line) in file.lines() {
            fenced ^= line.trim_start().starts_with("```");
            for found in link.captures_iter(line).filter(|_| !fenced) {
                let target = found.get(1).map_or("", |target| target.as_str());
                let target = target.split('#').next().unwrap_or_default();
                if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                if !known.contains(resolve(&file.path, target).as_str()) {
                    findings.push(file.finding(number, format!("{target} is not there")));
                }
            }
        }
    }
    findings
}

/// A path relative to a file, from the root.
pub(super) fn resolve(file: &str, target: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::tests::file;
    use super::*;

    fn paths(findings: Vec<Finding>) -> Vec<String> {
        findings.into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn decisions_that_are_out_of_order_are_found() {
        let body = |title: &str| format!("# {title}\n\n{}\n", SECTIONS.join("\n\n"));
        let index = file(DECISIONS_INDEX, "[1](0001-a.md) [2](0002-b.md)");
        let first = file("docs/adr/0001-a.md", &body("0001. A"));
        let second = file("docs/adr/0002-b.md", &body("0002. B"));
        assert!(decisions(&[index.clone(), first.clone(), second.clone()]).is_empty());
        let gap = file("docs/adr/0003-b.md", &body("0003. B"));
        assert_eq!(
            paths(decisions(&[index.clone(), first.clone(), gap])),
            ["docs/adr/0003-b.md", DECISIONS_INDEX]
        );
        let unlinked = file(DECISIONS_INDEX, "[1](0001-a.md)");
        assert_eq!(paths(decisions(&[unlinked, first.clone(), second.clone()])), [DECISIONS_INDEX]);
        let title = file("docs/adr/0001-a.md", &body("0007. A"));
        assert_eq!(paths(decisions(&[index.clone(), title, second.clone()])), ["docs/adr/0001-a.md"]);
        let sections = file("docs/adr/0001-a.md", "# 0001. A\n\n## Context\n");
        assert_eq!(paths(decisions(&[index, sections, second])), ["docs/adr/0001-a.md"]);
        assert_eq!(paths(decisions(&[first])), [DECISIONS_INDEX]);
    }

    #[test]
    fn a_change_log_without_unreleased_is_found() {
        assert!(change_log(&[file(CHANGE_LOG, "# Changes\n\n## Unreleased\n")]).is_empty());
        assert_eq!(paths(change_log(&[file(CHANGE_LOG, "# Changes\n\n## 0.1.0\n")])), [CHANGE_LOG]);
        assert_eq!(paths(change_log(&[])), [CHANGE_LOG]);
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        let page = |text: &str| {
            links(&[file("docs/a.md", text), file("docs/b.md", ""), file("crates/x/src/lib.rs", "")])
        };
        assert!(
            page(
                "[b](b.md#part) [x](../crates/x) [w](https://example.org) [h](#here)\n```\n[n](n.md)\n```\n"
            )
            .is_empty()
        );
        assert_eq!(page("text\n[c](c.md)\n").len(), 1);
        assert_eq!(page("[up](../a.md)\n").len(), 1);
    }
}
