//! Rules about what ARCHITECTURE.md and CONTRIBUTING.md tell somebody who changes the code: a place that is named is
//! there, a walk is short, a command that is to be typed exists.

use std::collections::{BTreeMap, BTreeSet};

use regex_lite::Regex;

use super::{File, Finding};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const CONTRIBUTING: &str = "CONTRIBUTING.md";
/// The part of ARCHITECTURE.md that goes through the code step by step, and the steps that a walk may have.
const WALKS: &str = "## Walks";
const STEPS_MAX: usize = 10;
/// The part of CONTRIBUTING.md with a table of what to run.
const WHAT_TO_RUN: &str = "## What to run";

fn find<'a>(files: &'a [File], path: &str) -> Option<&'a File> {
    files.iter().find(|file| file.path == path)
}

fn has(files: &[File], path: &str) -> bool {
    files.iter().any(|file| file.path == path)
}

/// A link whose text is code and that leads to Rust: the name must be defined in that file. A file of Rust that
/// ARCHITECTURE.md names without a link, from whatever folder on, must be there.
pub(super) fn places(files: &[File]) -> Vec<Finding> {
    let link = Regex::new(r"\[`(?:\w+::)*(\w+)!?`\]\(([^)\s]+\.rs)\)").expect("the pattern is a constant");
    let path = Regex::new(r"`([\w/-]+\.rs)`").expect("the pattern is a constant");
    let mut findings = Vec::new();
    if let Some(page) = find(files, ARCHITECTURE) {
        for (number, line) in page.lines() {
            let named = path.captures_iter(line).map(|found| found[1].to_string());
            let is_there = |name: &str| {
                let ends = |path: &str| {
                    path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
                };
                files.iter().any(|file| ends(&file.path))
            };
            findings.extend(
                named
                    .filter(|name| !is_there(name))
                    .map(|name| page.finding(number, format!("no file ends in {name}"))),
            );
        }
    }
    for file in files.iter().filter(|file| file.is("md") && !file.is_generated()) {
        for (number, line) in file.lines() {
            for found in link.captures_iter(line) {
                let (name, target) = (&found[1], super::documents::resolve(&file.path, &found[2]));
                // That the file is there is the rule of links.
                let defined = find(files, &target).is_none_or(|target| defines(&target.text, name));
                if !defined {
                    findings.push(file.finding(number, format!("{target} defines no `{name}`")));
                }
            }
        }
    }
    findings
}

/// What ARCHITECTURE.md names in code without a link to its place: a path, from whatever folder on, must be there, and
/// a name of Rust be defined somewhere. Words in small letters may be anything, and are not asked about.
pub(super) fn mentions(files: &[File]) -> Vec<Finding> {
    let Some(page) = find(files, ARCHITECTURE) else { return Vec::new() };
    let code = Regex::new("`([^`]+)`").expect("the pattern is a constant");
    let path = Regex::new(r"^[\w.*-][\w.*/-]*/[\w.*/-]*$").expect("the pattern is a constant");
    let name = Regex::new(r"^(?:\w+::)*(\w+)!?$").expect("the pattern is a constant");
    let defined = defined(files);
    let mut findings = Vec::new();
    let mut fenced = false;
    for (number, line) in page.lines() {
        fenced ^= line.starts_with("```");
        for found in code.captures_iter(line).filter(|_| !fenced) {
            let span = &found[1];
            if path.is_match(span) && !span.contains("NAME") {
                let parts: Vec<&str> = span.trim_end_matches('/').split('/').collect();
                if !files.iter().any(|file| passes(&file.path, &parts)) {
                    findings.push(page.finding(number, format!("{span} is not there")));
                }
            } else if let Some(found) = name.captures(span)
                && (span.contains("::") || span.contains('_') || is_type(span))
                && !defined.contains(&found[1])
            {
                findings.push(page.finding(number, format!("nothing is called {span}")));
            }
        }
    }
    findings
}

/// Whether a path goes through these parts, one behind the other; `*` stands for any characters of one.
fn passes(path: &str, parts: &[&str]) -> bool {
    let is = |part: &str, wanted: &str| match wanted.split_once('*') {
        Some((head, tail)) => part.starts_with(head) && part.ends_with(tail),
        None => part == wanted,
    };
    let all: Vec<&str> = path.split('/').collect();
    all.windows(parts.len()).any(|some| some.iter().zip(parts).all(|(part, wanted)| is(part, wanted)))
}

/// Whether a word is written as types are.
fn is_type(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && word.contains(|letter: char| letter.is_ascii_lowercase())
}

/// Names that Rust defines: items, and members that a line begins with.
fn defined(files: &[File]) -> BTreeSet<&str> {
    let item = Regex::new(r"\b(?:fn|struct|enum|trait|type|const|static|mod|macro_rules!)\s+(\w+)");
    let member = Regex::new(r"^\s*(?:pub(?:\([\w ]+\))? )?(\w+)(?:: |,|\(| \{)");
    let forms = [item, member].map(|form| form.expect("the pattern is a constant"));
    let lines = files.iter().filter(|file| file.is("rs")).flat_map(|file| file.text.lines());
    lines
        .flat_map(|line| forms.iter().filter_map(move |form| form.captures(line)?.get(1)))
        .map(|found| found.as_str())
        .collect()
}

/// Whether Rust defines a name. A module that stands in another file is not defined where it is declared.
fn defines(text: &str, name: &str) -> bool {
    let keyword = r"(fn|struct|enum|trait|type|const|static|macro_rules!)";
    let defined = format!(r"\b{keyword}\s+{name}\b|\bmod\s+{name}\s*\{{");
    Regex::new(&defined).expect("a name is no pattern").is_match(text)
}

/// Each walk of ARCHITECTURE.md has few steps, numbered, and each step names where it happens.
pub(super) fn walks(files: &[File]) -> Vec<Finding> {
    let Some(file) = find(files, ARCHITECTURE) else { return Vec::new() };
    let place = Regex::new(r"\[`[\w:]+`\]\([^)\s]+\.rs\)").expect("the pattern is a constant");
    let mut findings = Vec::new();
    let mut walks = 0;
    // The line of a step that has named no place yet.
    let mut step: Option<usize> = None;
    let mut steps = 0;
    let nameless = |line| file.finding(line, "the step names no place, as [`name`](crates/…/file.rs)");
    for (number, line) in section(file, WALKS).into_iter().chain([(0, "### ")]) {
        let text = line.split_once(". ").filter(|(head, _)| head.parse::<usize>().is_ok());
        if line.starts_with("### ") {
            findings.extend(step.take().map(nameless));
            (walks, steps) = (walks + 1, 0);
        } else if text.is_some() {
            findings.extend(step.replace(number).map(nameless));
            steps += 1;
            if steps > STEPS_MAX {
                findings.push(file.finding(number, format!("a walk has at most {STEPS_MAX} steps")));
            }
        }
        if place.is_match(line) {
            step = None;
        }
    }
    if walks < 2 {
        findings.push(file.finding(0, format!("has no walk below `{WALKS}`")));
    }
    findings
}

/// The lines of a section, without its heading.
fn section<'a>(file: &'a File, heading: &str) -> Vec<(usize, &'a str)> {
    let lines = file.lines().skip_while(|(_, line)| *line != heading).skip(1);
    lines.take_while(|(_, line)| !line.starts_with("## ")).collect()
}

/// What CONTRIBUTING.md says to type exists, its table of what to run names paths that are there, and every crate.
pub(super) fn commands(files: &[File]) -> Vec<Finding> {
    let Some(file) = find(files, CONTRIBUTING) else { return Vec::new() };
    let code = Regex::new("`([^`]+)`").expect("the pattern is a constant");
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        for found in code.captures_iter(line) {
            findings.extend(unknown(files, &found[1]).map(|what| file.finding(number, what)));
        }
    }
    let mut rows = Vec::new();
    for (number, line) in section(file, WHAT_TO_RUN) {
        let Some((changed, run)) = line.strip_prefix("| ").and_then(|row| row.split_once(" | ")) else {
            continue;
        };
        let paths: Vec<String> = code.captures_iter(changed).map(|found| found[1].to_string()).collect();
        for path in &paths {
            let folder = format!("{}/", path.trim_end_matches('/'));
            if !files.iter().any(|file| file.path == *path || file.path.starts_with(&folder)) {
                findings.push(file.finding(number, format!("{path} is not there")));
            }
        }
        if !paths.is_empty() && !code.is_match(run) {
            findings.push(file.finding(number, "the row names no command"));
        }
        rows.extend(paths);
    }
    for folder in packages(files).into_values().filter(|folder| folder.starts_with("crates/")) {
        if !rows.iter().any(|path| format!("{path}/").starts_with(&format!("{folder}/"))) {
            findings.push(file.finding(0, format!("the table of what to run has no row for {folder}")));
        }
    }
    findings
}

/// The folders of the workspace's packages, by their names.
fn packages(files: &[File]) -> BTreeMap<String, String> {
    let name = Regex::new("(?m)^\\[package\\]\nname = \"([^\"]+)\"").expect("the pattern is a constant");
    let manifests = files.iter().filter_map(|file| Some((file, file.path.strip_suffix("/Cargo.toml")?)));
    manifests
        .filter_map(|(file, folder)| Some((name.captures(&file.text)?[1].to_string(), folder.into())))
        .collect()
}

/// What of a command there is not, if it is one of ours.
fn unknown(files: &[File], command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().take_while(|word| *word != "--").collect();
    let text = |path: &str| find(files, path).map_or("", |file| &file.text);
    match words[..] {
        ["make", ref words @ ..] => {
            let (makefile, targets) = match words {
                ["-C", folder, targets @ ..] => (format!("{folder}/Makefile"), targets),
                targets => ("Makefile".to_string(), targets),
            };
            let rules = text(&makefile);
            let rule = |target: &str| rules.lines().any(|line| line.starts_with(&format!("{target}:")));
            let target = targets.iter().find(|word| !word.contains('=') && !rule(word))?;
            Some(format!("{makefile} has no target {target}"))
        }
        ["cargo", "xtask", word, ..] => {
            let usage = text("crates/xtask/src/main.rs");
            (!usage.contains(&format!(" xtask {word}"))).then(|| format!("there is no `cargo xtask {word}`"))
        }
        ["cargo", "test", ref words @ ..] => untested(files, words),
        [script, ..] if script.starts_with("scripts/") && !has(files, script) => {
            Some(format!("{script} is not there"))
        }
        _ => None,
    }
}

/// What of the packages and test files that `cargo test` is given there is not.
fn untested(files: &[File], words: &[&str]) -> Option<String> {
    let packages = packages(files);
    let named = |flag: &'static str| {
        words.windows(2).filter(move |pair| pair[0] == flag).map(|pair| pair[1]).collect::<Vec<_>>()
    };
    let chosen = named("-p");
    if let Some(package) = chosen.iter().find(|package| !packages.contains_key(**package)) {
        return Some(format!("there is no package {package}"));
    }
    let is_there =
        |path: &str| chosen.iter().any(|package| has(files, &format!("{}/{path}", packages[*package])));
    let no_test = named("--test")
        .into_iter()
        .find(|test| !is_there(&format!("tests/{test}.rs")) && !is_there(&format!("tests/{test}/main.rs")));
    if let Some(test) = no_test {
        return Some(format!("there is no test {test} in {}", chosen.join(", ")));
    }
    let part = [("--lib", "src/lib.rs"), ("--bins", "src/main.rs")];
    let gone = part.iter().find(|(flag, path)| words.contains(flag) && !is_there(path));
    gone.map(|(flag, _)| format!("{} takes no {flag}", chosen.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::file;
    use super::*;

    fn messages(findings: Vec<Finding>) -> Vec<String> {
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn what_is_mentioned_and_not_there_is_found() {
        let code = file(
            "crates/x/src/a.rs",
            "struct Store {\n    pub(crate) kept_bytes: u64,\n}\nfn look_up() {}\n",
        );
        let count = |text: &str| mentions(&[file(ARCHITECTURE, text), code.clone()]).len();
        for text in [
            "`crates/x` `crates/x/src/` `x/src/*.rs` `src/a.rs` `spec/NAME.json` `/metrics`",
            "`Store` `Store::kept_bytes` `look_up` `any` `GET` `a b`",
            "```\n`crates/y`\n```",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
        for text in ["`crates/y`", "`x/src/*.c`", "`c/a.rs`", "`Stored`", "`Store::kept`", "`look_at`"] {
            assert_eq!(count(text), 1, "{text}");
        }
    }

    #[test]
    fn a_place_that_is_not_defined_is_found() {
        let page = |text: &str| {
            messages(places(&[
                file("docs/a.md", text),
                file(
                    "crates/x/src/a.rs",
                    "pub fn one() {}\nconst TWO: u8 = 2;\nmacro_rules! three {}\nmod four {}\nmod five;",
                ),
            ]))
        };
        assert!(page("[`A::one`](../crates/x/src/a.rs), [`TWO`](../crates/x/src/a.rs)").is_empty());
        assert!(page("[the file](../crates/x/src/a.rs), [`a.rs`](../crates/x/src/a.rs)").is_empty());
        assert!(page("[`three!`](../crates/x/src/a.rs), [`four`](../crates/x/src/a.rs)").is_empty());
        assert_eq!(page("[`on`](../crates/x/src/a.rs)"), ["crates/x/src/a.rs defines no `on`"]);
        assert_eq!(page("[`thre!`](../crates/x/src/a.rs)"), ["crates/x/src/a.rs defines no `thre`"]);
        assert_eq!(page("[`five`](../crates/x/src/a.rs)"), ["crates/x/src/a.rs defines no `five`"]);
    }

    #[test]
    fn a_file_that_is_named_and_not_there_is_found() {
        let page = |path: &str, text: &str| {
            messages(places(&[file(path, text), file("crates/x/src/part/some_one.rs", "")]))
        };
        let there =
            "`some_one.rs`, `part/some_one.rs`, `x/src/part/some_one.rs`, `crates/x/src/part/some_one.rs`";
        assert!(page(ARCHITECTURE, there).is_empty());
        for gone in ["one.rs", "part/one.rs", "art/some_one.rs", "parts/some_one.rs", "x/part/some_one.rs"] {
            assert_eq!(page(ARCHITECTURE, &format!("`{gone}`")), [format!("no file ends in {gone}")]);
            assert!(page("docs/a.md", &format!("`{gone}`")).is_empty());
        }
    }

    #[test]
    fn a_walk_that_is_long_or_names_no_place_is_found() {
        let page = |text: &str| messages(walks(&[file(ARCHITECTURE, text)]));
        let step = |number: usize| format!("{number}. It\n   is [`x`](crates/x/src/a.rs).\n");
        let walk = |steps: usize| {
            format!(
                "{WALKS}\n\n### One\n\n{}## Next\n\n1. No place\n",
                (1..=steps).map(step).collect::<String>()
            )
        };
        assert!(page(&walk(STEPS_MAX)).is_empty());
        assert_eq!(page(&walk(STEPS_MAX + 1)).len(), 1);
        assert_eq!(page(&format!("{WALKS}\n\n### One\n\n1. It is\n{}", step(2))).len(), 1);
        assert_eq!(page(&format!("{WALKS}\n\n### One\n\n{}2. It is\n", step(1))).len(), 1);
        assert_eq!(page("# Architecture\n").len(), 1);
    }

    #[test]
    fn a_command_that_is_not_there_is_found() {
        let page = |text: &str| {
            messages(commands(&[
                file(CONTRIBUTING, text),
                file("Makefile", "quick: check\ncheck: ## x\n"),
                file("part/Makefile", "one:\n"),
                file("scripts/step", ""),
                file("crates/x/Cargo.toml", "[package]\nname = \"weft-x\"\n"),
                file("crates/x/src/lib.rs", ""),
                file("crates/x/tests/one.rs", ""),
                file("crates/x/tests/two/main.rs", ""),
                file("crates/xtask/src/main.rs", "usage: xtask tidy\n"),
            ]))
        };
        let table = "## What to run\n\n| changed | run |\n|---|---|\n| `crates/x` | `make quick` |\n\n";
        let says = |command: &str| page(&format!("{table}`{command}`"));
        for there in [
            "make quick ROUNDS=2 check",
            "make -C part one",
            "cargo xtask tidy",
            "cargo test -p weft-x --lib --test one --test two name -- --nocapture",
            "cargo test --release",
            "scripts/step --summary",
            "go test ./...",
        ] {
            assert!(says(there).is_empty(), "{there}");
        }
        for gone in [
            "make quic",
            "make -C part two",
            "make -C whole one",
            "cargo xtask tide",
            "cargo test -p weft-y",
            "cargo test -p weft-x --test three",
            "cargo test -p weft-x --bins",
            "scripts/stop",
        ] {
            assert_eq!(says(gone).len(), 1, "{gone}");
        }
        assert_eq!(page("## What to run\n"), ["the table of what to run has no row for crates/x"]);
        assert_eq!(page(&table.replace("`crates/x`", "`crates/x`, `crates/y`")), ["crates/y is not there"]);
        assert_eq!(page(&table.replace("`make quick`", "nothing")), ["the row names no command"]);
    }
}
