//! The rules of this repository that no compiler checks: `cargo xtask tidy`.
//!
//! It owns the list of files that the rules look at and the list of rules. A rule is a function from the files to its
//! findings, so that a test can hand it files that break it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

mod documents;
mod guides;
mod layers;
mod rooms;
mod text;

/// A text file, by its path from the root of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Path from the root, with `/`.
    pub path: String,
    /// Contents.
    pub text: String,
}

impl File {
    /// Whether the name ends with `.extension`.
    fn is(&self, extension: &str) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, found)| found == extension)
    }

    /// Whether it says at its top that it is generated.
    pub(crate) fn is_generated(&self) -> bool {
        self.text.lines().take(3).any(|line| line.contains("Generated ") || line.contains("Code generated"))
    }

    /// The lines, counted from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

/// A rule that is broken, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// The line, or 0 for the file as a whole.
    pub line: usize,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

type Rule = fn(&[File]) -> Vec<Finding>;

/// All rules, by name.
const RULES: &[(&str, Rule)] = &[
    ("dependency direction", layers::dependencies),
    ("rooms", rooms::rooms),
    ("sockets", layers::sockets),
    ("unsafe", layers::unsafe_code),
    ("opening comment", text::opening_comments),
    ("file length", text::file_length),
    ("line length", text::line_length),
    ("command names", text::command_names),
    ("unfinished", text::unfinished),
    ("machine paths", text::machine_paths),
    ("registry hosts", text::registry_hosts),
    ("decisions", documents::decisions),
    ("change log", documents::change_log),
    ("links", documents::links),
    ("places", guides::places),
    ("mentions", guides::mentions),
    ("walks", guides::walks),
    ("commands to type", guides::commands),
];

/// Applies every rule to the files that Git knows or would take; gives how many files there are and the findings.
pub fn tidy(root: &Path) -> Result<(usize, Vec<Finding>)> {
    let files = files(root)?;
    Ok((files.len(), apply(&files)))
}

fn apply(files: &[File]) -> Vec<Finding> {
    let named = |(name, rule): &(&str, Rule)| {
        let name = *name;
        let name_it =
            move |found: Finding| Finding { message: format!("{name}: {}", found.message), ..found };
        rule(files).into_iter().map(name_it).collect::<Vec<_>>()
    };
    RULES.iter().flat_map(named).collect()
}

/// The text files that Git knows or would take.
pub(crate) fn files(root: &Path) -> Result<Vec<File>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(list).current_dir(root).output().context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    let mut files = Vec::new();
    for path in String::from_utf8_lossy(&output.stdout).split_terminator('\0') {
        // A file may be deleted and not yet committed as such; what is no text, such as a seed, has no rules.
        let Ok(bytes) = std::fs::read(root.join(path)) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        files.push(File { path: path.to_string(), text });
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn file(path: &str, text: &str) -> File {
        File { path: path.to_string(), text: text.to_string() }
    }

    /// The lines that a rule complains about, of one file.
    pub(super) fn broken(rule: Rule, path: &str, text: &str) -> Vec<usize> {
        rule(&[file(path, text)]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn findings_name_rule_file_and_line() {
        let findings = apply(&[file("crates/x/src/a.rs", "//! A.\n// FIX\u{4d}E: later\n")]);
        let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.starts_with("crates/x/src/a.rs:2: unfinished: ")), "{texts:?}");
    }
}
