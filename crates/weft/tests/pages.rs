//! The command blocks of README.md, of the pages under docs/ and of what leads to the examples and the SDK, run as they
//! are written.
//!
//! A block marked `sh` is a script that must end with status 0; one marked `console` has commands behind `$ `, each
//! with what it prints, where `…` stands for anything; one marked `conf` is a configuration that the server takes. A
//! block without a mark is no command. Comments in the page, which a reader does not see, say the rest, on the line
//! before the block:
//!
//! - `<!-- not run: REASON -->`
//! - `<!-- before: COMMANDS -->`: what the block takes for granted, such as a file; as many as it takes
//!
//! A page has a folder of its own with links to what is in the repository, and a `weft serve` of its own on a socket
//! there, of which `weft cli`, `bench`, `import`, `export` and `token`, `redis-cli` and `curl` are told where a command
//! names no other. `weft serve` in a block looks at all that it is given (`--check-config`) and serves nothing.
//!
//! Blocks of programs and triggers run in `crates/engine/tests/programs`; Rust is compiled by `crates/client`'s tests
//! of its documentation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use common::Folder;
use common::servers::{LONG, Server};

/// Pages whose blocks are what a program printed once, or generated syntax, and not for a reader to type.
const NOT_TYPED: &[(&str, &str)] = &[
    ("docs/commands.md", "generated: the syntax of each command"),
    ("docs/benchmarks/go-cache.md", "a report: what a profiler printed"),
    ("docs/benchmarks/load.md", "a report, written by scripts/load-report, which runs its commands"),
];
/// Words with which a line of a block without a mark would be a command.
const PROGRAMS: &[&str] = &[
    "weft",
    "target/release/weft",
    "redis-cli",
    "make",
    "cargo",
    "scripts/",
    "tshark",
    "cc",
    "go",
    "time",
    "$",
];
/// Programs that a page may take for granted, and that are not everywhere.
const OPTIONAL: &[&str] = &["redis-cli", "tshark", "curl"];
/// Marks of blocks that are run.
const RUN: &[&str] = &["sh", "console", "conf"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// README.md and those of the examples and of the SDK, and every page under docs/.
fn pages() -> Vec<(String, String)> {
    let root = root();
    let mut found =
        ["README.md", "examples/README.md", "sdk/go/README.md"].map(|page| root.join(page)).to_vec();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "md") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// A block of a page.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The line of its fence, from 1.
    line: usize,
    mark: String,
    not_run: Option<String>,
    before: Option<String>,
    lines: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let lines: Vec<&str> = page.lines().collect();
    let (mut blocks, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let Some(mark) = lines[at].trim().strip_prefix("```") else {
            at += 1;
            continue;
        };
        let end = (at + 1..lines.len()).find(|&end| lines[end].trim() == "```").expect("a block ends");
        let said = |what: &str| {
            let above = lines[..at].iter().rev().take_while(|line| line.starts_with("<!--")).count();
            let said = lines[at - above..at].iter().filter_map(|line| {
                line.strip_prefix("<!-- ")?.strip_prefix(what)?.strip_suffix(" -->").map(str::trim)
            });
            let said: Vec<&str> = said.collect();
            (!said.is_empty()).then(|| said.join("\n"))
        };
        blocks.push(Block {
            line: at + 1,
            mark: mark.to_string(),
            not_run: said("not run:"),
            before: said("before:"),
            lines: lines[at + 1..end].iter().map(|line| (*line).to_string()).collect(),
        });
        at = end + 1;
    }
    blocks
}

/// Where the blocks of a page are run: a folder with links to what is in the repository, a server on a socket.
struct Place {
    folder: Folder,
    server: Server,
}

/// Flags with which a command names a server itself, or needs none.
const OWN: &str = "-h | -p | -s | -u | --help | --version";
/// `weft cli` and `weft bench`, told the server where no flag does; redis-cli and curl likewise.
const SHIM: &str = r#"#!/bin/bash
for word in "$@"; do
    case $word in OWN) exec "$PROGRAM" "$@" ;; esac
done
TELL
exec "$PROGRAM" "$@"
"#;

impl Place {
    fn new() -> Place {
        let (folder, server) = (Folder::new(), Server::weft(&[]));
        for entry in fs::read_dir(root()).unwrap().map(Result::unwrap) {
            if entry.file_name() != "target" {
                symlink(entry.path(), folder.0.join(entry.file_name())).unwrap();
            }
        }
        let place = Place { folder, server };
        let tell = r#"case $1 in
    cli | bench | import) set -- "$1" -s "$SOCKET" "${@:2}" ;;
    export | token) set -- "$1" "$2" -s "$SOCKET" "${@:3}" ;;
    serve) set -- "$@" --check-config ;;
esac"#;
        place.program("bin/weft", env!("CARGO_BIN_EXE_weft"), OWN, tell);
        place.program("target/release/weft", env!("CARGO_BIN_EXE_weft"), OWN, tell);
        for (name, own, tell) in [
            ("redis-cli", OWN, r#"set -- -s "$SOCKET" "$@""#),
            // Without its own settings; a status that is an error ends it with one.
            ("curl", "--unix-socket", r#"set -- --unix-socket "$SOCKET" --fail-with-body -sS "$@""#),
        ] {
            if let Some(program) = installed(name) {
                place.program(&format!("bin/{name}"), program.to_str().unwrap(), own, tell);
            }
        }
        place
    }

    fn program(&self, name: &str, program: &str, own: &str, tell: &str) {
        let path = self.folder.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = SHIM.replace("$PROGRAM", program).replace("OWN", own).replace("TELL", tell);
        let text = text.replace("$SOCKET", &self.server.socket);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What a script prints, errors too, and whether it ended well.
    fn run(&self, script: &str) -> (String, bool) {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut child = Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", &format!("exec 2>&1\n{script}")])
            .current_dir(&self.folder.0)
            .env("PATH", format!("{}:{path}", self.folder.0.join("bin").display()))
            .env("HOME", &self.folder.0)
            .env("LC_ALL", "C.UTF-8")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash is there");
        let mut output = child.stdout.take().unwrap();
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = output.read_to_end(&mut text);
            let _ = done.send(String::from_utf8_lossy(&text).into_owned());
        });
        let Ok(text) = is_done.recv_timeout(LONG) else {
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
            let _ = child.wait();
            return (format!("(it does not end)\n{script}"), false);
        };
        (text, child.wait().unwrap().success())
    }

    /// Runs a block; says what is wrong.
    fn block(&self, block: &Block) -> Result<(), String> {
        if let Some(before) = &block.before {
            let (text, good) = self.run(before);
            if !good {
                return Err(format!("what stands before it failed: {text}"));
            }
        }
        if block.mark == "sh" {
            let (text, good) = self.run(&block.lines.join("\n"));
            return if good { Ok(()) } else { Err(text) };
        }
        if block.mark == "conf" {
            self.folder.file("page.conf", block.lines.join("\n").as_bytes());
            let (text, good) = self.run("weft serve page.conf");
            return if good { Ok(()) } else { Err(text) };
        }
        let mut rest = block.lines.as_slice();
        while let [command, behind @ ..] = rest {
            let command = command.strip_prefix("$ ").ok_or("a console begins with a command behind '$ '")?;
            let count = behind.iter().take_while(|line| !line.starts_with("$ ")).count();
            let (printed, _) = self.run(command);
            let printed: Vec<&str> = printed.trim_end_matches('\n').lines().collect();
            let same = printed.len() == count && behind.iter().zip(&printed).all(|(a, b)| is_like(a, b));
            if !same {
                return Err(format!(
                    "{command}\n--- the page:\n{}\n--- printed:\n{}",
                    behind[..count].join("\n"),
                    printed.join("\n")
                ));
            }
            rest = &behind[count..];
        }
        Ok(())
    }
}

/// Whether a line is what the page says, `…` being anything.
fn is_like(page: &str, line: &str) -> bool {
    let mut parts = page.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// What keeps a block from being run here, if that is no fault of the page.
fn lacks(block: &Block) -> Option<&'static str> {
    let script = block.lines.iter().chain(&block.before).flat_map(|line| line.split_whitespace());
    let words: Vec<&str> = script.collect();
    OPTIONAL.iter().find(|program| words.contains(program) && installed(program).is_none()).copied()
}

#[test]
fn every_command_on_every_page_does_what_stands_there() {
    let (mut wrong, mut run, mut left) = (Vec::new(), 0, 0);
    for (name, text) in pages() {
        let typed: Vec<Block> =
            blocks(&text).into_iter().filter(|block| RUN.contains(&&*block.mark)).collect();
        if typed.is_empty() || NOT_TYPED.iter().any(|(page, _)| *page == name) {
            continue;
        }
        let place = Place::new();
        for block in typed {
            if let Some(why) = &block.not_run {
                left += 1;
                println!("{name}:{}: not run: {why}", block.line);
            } else if let Some(program) = lacks(&block) {
                common::skipped::left_out(&format!("{name}:{}: {program} is not installed", block.line));
            } else {
                run += 1;
                wrong.extend(place.block(&block).err().map(|why| format!("{name}:{}: {why}", block.line)));
            }
        }
    }
    println!("{run} blocks run, {left} marked as not run");
    assert!(wrong.is_empty(), "{} of {run} blocks:\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(run >= 12, "{run} blocks: are they still marked?");
}

#[test]
fn the_go_that_the_readme_names_is_what_the_modules_need() {
    let (mut folders, mut newest) = (vec![root().join("sdk"), root().join("examples")], 0);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name == "go.mod") {
                let text = fs::read_to_string(path).unwrap();
                let line = text.lines().find_map(|line| line.strip_prefix("go 1.")).unwrap();
                newest = newest.max(line.split('.').next().unwrap().parse::<u32>().unwrap());
            }
        }
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains(&format!("Go 1.{newest} or later")), "README.md: Go 1.{newest}");
}

/// What stands between single backticks outside of blocks and begins with `weft `.
fn named(page: &str) -> Vec<String> {
    // But for what the page says is not there.
    let page: Vec<&str> = page.lines().filter(|line| !line.contains("do not exist")).collect();
    let page = page.join("\n");
    let outside: Vec<&str> = page.split("```").step_by(2).collect();
    let spans = outside.iter().flat_map(|text| text.split('`').skip(1).step_by(2));
    let words = spans.map(|span| span.split_whitespace().collect::<Vec<&str>>().join(" "));
    words.filter(|span| span.starts_with("weft ")).collect()
}

/// The subcommand of `weft` that a text names, or one of its flags, that does not exist.
fn missing(text: &str) -> Option<String> {
    let all: Vec<&str> = text.split(' ').filter(|word| *word != "help").collect();
    if all.get(1).is_none_or(|word| *word == "COMMAND") {
        return None;
    }
    let about = |words: &[&str]| {
        let output = common::run(words, b"");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).replace('\\', ""))
    };
    let Some(mut known) = about(&["man", all[1]]) else { return Some(all[1].to_string()) };
    if let Some(next) = all.get(2).filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())) {
        known.push_str(&about(&[all[1], next, "--help"]).unwrap_or_default());
    }
    let flags =
        all.iter().filter_map(|word| word.strip_prefix("--").map(|_| word.split('=').next().unwrap()));
    flags.filter(|flag| !known.contains(*flag)).map(str::to_string).next()
}

#[test]
fn the_commands_and_flags_that_pages_name_in_passing_exist() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (name, text) in pages().into_iter().filter(|(name, _)| !name.starts_with("docs/adr/")) {
        for text in named(&text) {
            count += 1;
            wrong.extend(missing(&text).map(|missing| format!("{name}: {text}: there is no {missing}")));
        }
    }
    assert!(wrong.is_empty() && count >= 30, "{count} named\n{}", wrong.join("\n"));
    assert_eq!(
        named("a `weft cli\n--x` b\n```sh\n`weft no`\n```\n`other` `weft y`"),
        ["weft cli --x", "weft y"]
    );
    for (text, expected) in
        [("weft cli --scann", "--scann"), ("weft clii", "clii"), ("weft token create --usr", "--usr")]
    {
        assert_eq!(missing(text).as_deref(), Some(expected), "{text}");
    }
}

/// Pages that list the flags of a command, and which command that is.
const FLAGS: &[(&str, &[&str])] = &[
    ("docs/bench.md", &["bench"]),
    ("docs/cli.md", &["cli"]),
    ("docs/convert.md", &["convert"]),
    ("docs/debugging.md", &["inspect"]),
    ("docs/import-export.md", &["export", "rdb"]),
    ("docs/import-export.md", &["import"]),
    ("docs/persistence.md", &["log", "check"]),
    ("docs/persistence.md", &["log", "dump"]),
    ("docs/persistence.md", &["log", "repair"]),
    ("docs/scripts.md", &["script", "run"]),
];

#[test]
fn a_page_about_a_command_names_all_of_its_flags() {
    // How to reach a server is said once, in the page of the command line.
    let everywhere = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let mut wrong = Vec::new();
    for (page, command) in FLAGS {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let help = common::good(&[command, &["--help"][..]].concat(), b"");
        let help = String::from_utf8(help).unwrap();
        let options = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
        let flags: Vec<&str> = options
            .filter_map(|line| line.split([' ', ',', '=', '[']).find(|word| word.starts_with("--")))
            // Those of clusters are redis-cli's, and `--cluster help` has them.
            .filter(|flag| !["--help", "--version"].contains(flag) && !flag.starts_with("--cluster-"))
            .collect();
        assert!(!flags.is_empty() || command == &["log", "check"], "{command:?}: {help}");
        let names = |text: &str, flag: &str| {
            text.match_indices(flag).any(|(at, _)| {
                !text[at + flag.len()..].starts_with(|c: char| c == '-' || c.is_ascii_alphanumeric())
            })
        };
        let missing = flags.into_iter().filter(|flag| !names(&text, flag) && !names(&everywhere, flag));
        wrong.extend(missing.map(|flag| format!("{page}: {flag} of weft {}", command.join(" "))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_stands_in_the_index() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    for entry in fs::read_dir(root().join("docs")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let link = if entry.path().is_dir() { format!("({name}/README.md)") } else { format!("({name})") };
        assert!(name == "README.md" || index.contains(&link), "docs/README.md does not lead to {name}");
    }
}

#[test]
fn blocks_of_commands_are_marked_and_reasons_given() {
    let mut wrong = Vec::new();
    for (name, text) in pages() {
        if NOT_TYPED.iter().any(|(page, _)| *page == name) {
            continue;
        }
        for block in blocks(&text) {
            let place = format!("{name}:{}", block.line);
            let first =
                block.lines.first().map_or("", |line| line.split_whitespace().next().unwrap_or_default());
            if block.mark.is_empty() && PROGRAMS.contains(&first) {
                wrong.push(format!("{place}: commands, without a mark: sh or console"));
            }
            if block.not_run.as_ref().is_some_and(|why| why.len() < 10) {
                wrong.push(format!("{place}: not run, without a reason"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (page, why) in NOT_TYPED {
        assert!(root().join(page).is_file() && !why.is_empty(), "{page}");
    }
}

#[test]
fn what_a_page_says_wrongly_is_noticed() {
    let page = "text\n\n<!-- before: echo b > f -->\n```console\n$ cat f\nb\n$ echo 1 2 3; false\n1 … 3\n```\n\n<!-- not run: no reason \
                -->\n```sh\nfalse\n```\n```\nx\n```\n";
    let blocks = blocks(page);
    let marks: Vec<(&str, bool)> =
        blocks.iter().map(|block| (&*block.mark, block.not_run.is_some())).collect();
    assert_eq!(marks, [("console", false), ("sh", true), ("", false)]);
    let place = Place::new();
    assert_eq!(place.block(&blocks[0]), Ok(()));
    assert!(place.block(&blocks[1]).is_err(), "a script that fails");
    let console = |lines: &[&str]| Block {
        line: 1,
        mark: "console".into(),
        not_run: None,
        before: None,
        lines: lines.iter().map(|line| (*line).to_string()).collect(),
    };
    for lines in [
        &["$ echo a", "b"][..],
        &["$ echo a"],
        &["$ echo a", "a", "a"],
        &["a"],
        &["$ weft cli --bogus", "OK"],
        &["$ weft serve --maxmemry 1gb"],
    ] {
        assert!(place.block(&console(lines)).is_err(), "{lines:?}");
    }
    for (line, good) in [("maxmemory 1gb", true), ("maxmemory 1xb", false), ("maxmemry 1gb", false)] {
        let conf = Block { mark: "conf".into(), ..console(&[line]) };
        assert_eq!(place.block(&conf).is_ok(), good, "{line}");
    }
    assert_eq!(place.block(&console(&["$ weft cli set k v", "OK", "$ redis-cli get k | cat", "v"])), Ok(()));
    for (page, line, like) in [
        ("a…c", "abc", true),
        ("a…c", "abd", false),
        ("…", "", true),
        ("a…b…", "ab", true),
        ("ab", "abc", false),
    ] {
        assert_eq!(is_like(page, line), like, "{page} {line}");
    }
}
