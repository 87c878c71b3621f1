//! Rules about the text of a file, whatever it is about.
//!
//! It owns the limits and the words. This file holds the words that it looks for in pieces, or it would find itself.

use regex_lite::Regex;

use super::layers::is_comment;
use super::{File, Finding};

/// Lines of a file of code that somebody wrote.
const FILE_LINES_MAX: usize = 700;
/// Characters of a line of Rust or of Markdown.
const LINE_CHARS_MAX: usize = 120;

/// Extensions of code that people write.
const CODE: &[&str] = &["rs", "go", "c", "h", "py", "lua"];

/// Files of code begin by saying what they own. Generated ones say what they are generated from. In Go the comment may
/// also stand before the package clause of a `doc.go`, or follow the package clause.
pub(super) fn opening_comments(files: &[File]) -> Vec<Finding> {
    let missing = |file: &&File| {
        let mut lines = file.text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        match file.path.rsplit_once('.').map(|(_, extension)| extension) {
            _ if file.is_generated() => false,
            Some("rs") => !first.starts_with("//!"),
            Some("go") => {
                let directive = first.starts_with("//go:build");
                let first = if directive { lines.next().unwrap_or_default() } else { first };
                let second =
                    if first.starts_with("package ") { lines.next().unwrap_or_default() } else { first };
                !second.starts_with("//") && !second.starts_with("/*")
            }
            Some("c" | "h") => !first.starts_with("/*") && !first.starts_with("//"),
            Some("lua") => !first.starts_with("--"),
            Some("py") => {
                !first.starts_with("\"\"\"") && !lines.next().unwrap_or_default().starts_with("\"\"\"")
            }
            _ if first.starts_with("#!") => !lines.next().unwrap_or_default().starts_with("# "),
            _ if file.path.ends_with("Makefile") => !first.starts_with('#'),
            _ => false,
        }
    };
    let finding = |file: &File| file.finding(1, "begins without saying what the file owns");
    files.iter().filter(missing).map(finding).collect()
}

/// No file of code is longer than people read.
pub(super) fn file_length(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| CODE.iter().any(|code| file.is(code)) && !file.is_generated()) {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            findings.push(
                file.finding(
                    0,
                    format!("{lines} lines, at most {FILE_LINES_MAX}: split it by responsibility"),
                ),
            );
        }
    }
    findings
}

/// No line of Rust or Markdown is longer than a screen. Excepted: tables, links, code blocks, which show what programs
/// print, lines that hold text in quotes, which must stay whole to be found, and generated files.
pub(super) fn line_length(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| (file.is("rs") || file.is("md")) && !file.is_generated()) {
        let mut block = false;
        for (number, line) in file.lines() {
            let trimmed = line.trim_start();
            block ^= file.is("md") && trimmed.starts_with("```");
            let chars = line.chars().count();
            let excepted = if file.is("md") {
                block || trimmed.starts_with('|') || !line.trim().contains(' ')
            } else {
                line.contains('"') && !is_comment(line) || trimmed.starts_with('|')
            };
            if chars > LINE_CHARS_MAX && !excepted {
                findings.push(file.finding(number, format!("{chars} characters, at most {LINE_CHARS_MAX}")));
            }
        }
    }
    findings
}

/// Nothing is left for later in a comment, no debugging output is left over, no test is passed over without a reason.
pub(super) fn unfinished(files: &[File]) -> Vec<Finding> {
    let words = concat!(r"\b(TO", r"DO|FIX", r"ME)\b|\bdbg", r"!\(|#\[ign", r"ore\]");
    let words = Regex::new(words).expect("the pattern is a constant");
    every_line(files, &[concat!("TO", "DO"), concat!("FIX", "ME"), "dbg", concat!("#[ign", "ore]")], |line| {
        let found = words.find(line)?;
        Some(format!("{:?} is left over: finish it, file an issue, or give the reason", found.as_str()))
    })
}

/// Nothing names a place on one person's machine.
pub(super) fn machine_paths(files: &[File]) -> Vec<Finding> {
    let paths = concat!(r"(^|[^\w.)}*/-])(/(home|root|Users|wo", r"rk|t", r"mp)/[\w.]+)");
    let paths = Regex::new(paths).expect("the pattern is a constant");
    let signs = [
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        "/Users/",
        concat!("/wo", "rk/"),
        concat!("/t", "mp/"),
    ];
    every_line(files, &signs, |line| {
        let found = paths.captures(line)?.get(2)?;
        Some(format!("{} is a place on one machine", found.as_str()))
    })
}

/// Nothing names the host of a package registry: which one serves is the machine's business.
pub(super) fn registry_hosts(files: &[File]) -> Vec<Finding> {
    let hosts = concat!(
        r"\b(crates\.i",
        r"o|pypi\.or",
        r"g|pythonhosted\.or",
        r"g|(proxy|sum)\.golang\.or",
        r"g|registry\.npmjs\.or",
        r"g|",
        r"repo1?\.maven\.(apache\.)?or",
        r"g|(deb|security|ftp)\.debian\.or",
        r"g)\b"
    );
    let hosts = Regex::new(hosts).expect("the pattern is a constant");
    // Cargo writes the name of its default registry into lock files, wherever packages came from.
    let files: Vec<File> = files.iter().filter(|file| !file.path.ends_with("Cargo.lock")).cloned().collect();
    let signs = ["crates.", "pypi.", "pythonhosted.", "golang.", "npmjs.", "maven.", "debian."];
    every_line(&files, &signs, |line| {
        Some(format!("{} is the host of a registry", hosts.find(line)?.as_str()))
    })
}

/// Looks at every line of the files that have one of the signs somewhere, which spares vectors and tables the pattern.
fn every_line(files: &[File], signs: &[&str], broken: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| signs.iter().any(|sign| file.text.contains(sign))) {
        for (number, line) in file.lines() {
            if let Some(message) = broken(line) {
                findings.push(file.finding(number, message));
            }
        }
    }
    findings
}

/// Where the engine may see a command's name: to print it.
const NAME_FILES: &[&str] = &["exchange/args.rs", "exchange/error.rs", "commands/common/help.rs"];

/// What the engine and the server do about some commands and not about others is data of the command table (`policy`),
/// so that nothing else than a reply asks for a name.
pub(super) fn command_names(files: &[File]) -> Vec<Finding> {
    let name = Regex::new(concat!(r"spec(\(\))?\.na", r"me\b")).expect("a regular expression");
    let mut findings = Vec::new();
    for file in files {
        let sources = ["crates/engine/src/", "crates/server/src/"];
        let Some(path) = sources.iter().find_map(|folder| file.path.strip_prefix(folder)) else { continue };
        if NAME_FILES.contains(&path) || path.starts_with("commands/command/") {
            continue;
        }
        for (number, _) in file.lines().filter(|(_, line)| name.is_match(line)) {
            findings
                .push(file.finding(number, "looks at a command's name: give it a policy in spec/commands"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::broken;
    use super::*;

    #[test]
    fn a_file_without_opening_comment_is_found() {
        for (path, bad, good) in [
            ("a.rs", "use x;\n", "//! A.\nuse x;\n"),
            ("a.rs", "// A.\n", "// Generated from spec/ by `cargo xtask gen`. Do not edit.\n"),
            ("a.go", "package a\n\nimport x\n", "package a\n\n// This file owns x.\n"),
            (
                "a.go",
                "//go:build unix\n\npackage a\n\nvar b = 1\n",
                "//go:build unix\n\n// Package a.\npackage a\n",
            ),
            ("a.c", "int a;\n", "/* A. */\nint a;\n"),
            ("a.lua", "local a\n", "-- A.\n"),
            ("a.py", "import a\n", "\"\"\"A.\"\"\"\n"),
            ("scripts/a", "#!/bin/sh\nset -e\n", "#!/bin/sh\n# A.\n"),
            ("Makefile", "all:\n", "# A.\nall:\n"),
        ] {
            assert_eq!(broken(opening_comments, path, bad), [1], "{path}");
            assert!(broken(opening_comments, path, good).is_empty(), "{path}");
        }
    }

    #[test]
    fn a_long_file_is_found() {
        let long = "//! A.\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(broken(file_length, "a.rs", &long), [0]);
        assert!(broken(file_length, "a.rs", &long[7..]).is_empty());
        assert!(broken(file_length, "a.rs", &format!("// Generated from x\n{long}")).is_empty());
        assert!(broken(file_length, "a.md", &long).is_empty());
    }

    #[test]
    fn a_long_line_is_found() {
        let long = format!("// {}\n", "é".repeat(LINE_CHARS_MAX - 2));
        assert_eq!(broken(line_length, "a.rs", &long), [1]);
        assert!(broken(line_length, "a.rs", &long.replacen('é', "", 1)).is_empty());
        assert_eq!(broken(line_length, "a.md", &long), [1]);
        assert!(broken(line_length, "a.md", &format!("| {long}")).is_empty());
        assert!(broken(line_length, "a.json", &long).is_empty());
    }

    #[test]
    fn a_test_of_a_name_is_found() {
        let text = concat!("if args.spec.na", "me == \"GET\" {\nid.spec().na", "me\nspec.names\n");
        assert_eq!(broken(command_names, "crates/engine/src/acl/mod.rs", text), [1, 2]);
        assert_eq!(broken(command_names, "crates/server/src/channels/heirs.rs", text), [1, 2]);
        assert!(broken(command_names, "crates/engine/src/exchange/error.rs", text).is_empty());
        assert!(broken(command_names, "crates/weft/src/a.rs", text).is_empty());
    }

    #[test]
    fn unfinished_work_is_found() {
        let text = concat!(
            "TO",
            "DO\nfix",
            "me\n// FIX",
            "ME: x\ndbg",
            "!(x)\n#[ign",
            "ore]\n#[ign",
            "ore = \"why\"]\n"
        );
        assert_eq!(broken(unfinished, "a.rs", text), [1, 3, 4, 5]);
    }

    #[test]
    fn places_on_a_machine_are_found() {
        let text = concat!(
            "see /ho",
            "me/ada/x\n\"/t",
            "mp/x\"\n/wo",
            "rk/x\n./wo",
            "rk/x\na/t",
            "mp/x\n$DIR/t",
            "mp/x\n"
        );
        assert_eq!(broken(machine_paths, "a.md", text), [1, 2, 3]);
    }

    #[test]
    fn registry_hosts_are_found() {
        let text = concat!("https://pypi.or", "g/x\ncrates.i", "o\nexample.org\n");
        assert_eq!(broken(registry_hosts, "a.md", text), [1, 2]);
        assert!(broken(registry_hosts, "tests/fuzz/Cargo.lock", text).is_empty());
    }
}
