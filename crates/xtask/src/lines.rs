//! How many lines there are that somebody wrote: `cargo xtask lines`.
//!
//! It owns what counts as written by hand, as a test, and as a part of the repository. Lines that are empty or only a
//! comment count as any other: fewer of them is no aim.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::tidy::{self, File};

/// Ends of names of what is a program.
const PROGRAMS: &[&str] = &["rs", "go", "c", "h", "ts", "mjs", "py", "lua", "sh"];

/// The lines of a part of the repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    code: usize,
    tests: usize,
}

/// A table of the parts, the largest first, with their sum.
///
/// # Errors
/// When Git does not tell its files.
pub fn table(root: &Path) -> Result<String> {
    Ok(as_text(&count(&tidy::files(root)?)))
}

fn count(files: &[File]) -> BTreeMap<String, Lines> {
    let mut parts: BTreeMap<String, Lines> = BTreeMap::new();
    for file in files.iter().filter(|file| is_program(file) && !file.is_generated()) {
        let part = parts.entry(part_of(&file.path)).or_default();
        let all = file.text.lines().count();
        let code = if is_test(&file.path) {
            0
        } else {
            file.text.lines().take_while(|line| !ends_code(line)).count()
        };
        part.code += code;
        part.tests += all - code;
    }
    parts
}

/// Behind it stand the tests of a Rust file.
fn ends_code(line: &str) -> bool {
    line == "#[cfg(test)]"
}

fn is_program(file: &File) -> bool {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((_, end)) => PROGRAMS.contains(&end),
        // Scripts have no ending, but a first line that says what runs them.
        None => file.text.starts_with("#!"),
    }
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/")
        || path.contains("/tests/")
        || path.ends_with("/tests.rs")
        || path.ends_with("_test.go")
}

/// A crate, or a folder at the root.
fn part_of(path: &str) -> String {
    match path.split('/').collect::<Vec<_>>()[..] {
        [top @ ("crates" | "sdk" | "tests"), inner, _, ..] => format!("{top}/{inner}"),
        [top, _, ..] => top.to_string(),
        _ => ".".to_string(),
    }
}

fn as_text(parts: &BTreeMap<String, Lines>) -> String {
    let mut rows: Vec<(&str, Lines)> = parts.iter().map(|(part, lines)| (part.as_str(), *lines)).collect();
    rows.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.code + lines.tests));
    let sum = |of: fn(&Lines) -> usize| rows.iter().map(|(_, lines)| of(lines)).sum();
    rows.push(("all", Lines { code: sum(|lines| lines.code), tests: sum(|lines| lines.tests) }));
    let mut text = format!("{:<20} {:>8} {:>8}\n", "part", "code", "tests");
    for (part, Lines { code, tests }) in rows {
        text.push_str(&format!("{part:<20} {code:>8} {tests:>8}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_by_hand_is_counted_by_part() {
        let file = |path: &str, text: &str| File { path: path.to_string(), text: text.to_string() };
        let parts = count(&[
            file("crates/a/src/lib.rs", "//! A.\n\nfn a() {}\n#[cfg(test)]\nmod tests {}\n"),
            file("crates/a/src/table_gen.rs", "// Generated from it\nx\n"),
            file("crates/a/tests/b.rs", "//! B.\n"),
            file("scripts/run", "#!/bin/bash\nrun\n"),
            file("scripts/data", "1\n"),
            file("docs/a.md", "text\n"),
        ]);
        let expected = [
            ("crates/a".to_string(), Lines { code: 3, tests: 3 }),
            ("scripts".to_string(), Lines { code: 2, tests: 0 }),
        ];
        assert_eq!(parts, BTreeMap::from(expected));
        assert!(as_text(&parts).ends_with("all                         5        3\n"), "{}", as_text(&parts));
    }
}
