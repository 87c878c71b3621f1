//! Code generation from `spec/` and checks of the repository; run as `cargo run -p xtask --`.
//!
//! It owns the command line. What a subcommand does lives in a module of its own.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use xtask::{check, citations, compare, compared, r#gen, lines, model, sbom, tidy, vectors};

const USAGE: &str = "\
usage: xtask commands check             check spec/commands/ against its schema and against itself
       xtask commands fmt               write spec/commands/ in canonical form
       xtask commands --from HOST:PORT  compare the table with a live server
       xtask gen                        write the generated files
       xtask gen --check                fail when a generated file is not up to date
       xtask tidy                       check the rules of the repository that no compiler checks
       xtask citations                  fail when a MUST of spec/RESPB.md names no proof, or one that is not there
       xtask vectors                    write conformance/vectors
       xtask vectors --check            fail when a vector file is not up to date
       xtask lines                      print how many lines were written by hand, by crate and folder
       xtask sbom TARGET LIBC           print what a release for TARGET is made of, LIBC being glibc's version";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = match find_root() {
        Ok(root) => root,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    let root = root.as_path();
    let outcome = match words[..] {
        ["commands", "check"] => check_commands(root),
        ["commands", "fmt"] => format_commands(root),
        ["commands", "--from", address] => compare_commands(root, address),
        ["gen"] => generate(root),
        ["gen", "--check"] => check_generated(root),
        ["tidy"] => check_rules(root),
        ["lines"] => lines::table(root).map(|text| {
            print!("{text}");
            true
        }),
        ["citations"] => check_citations(root),
        ["vectors"] => write_vectors(root),
        ["vectors", "--check"] => check_vectors(root),
        ["sbom", target, libc] => sbom::sbom(root, target, libc).map(|text| {
            print!("{text}");
            true
        }),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository: the working directory, or the nearest folder above it that has the command files.
fn find_root() -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    let root = here.ancestors().find(|dir| dir.join(model::COMMANDS_DIR).is_dir());
    root.map(Path::to_path_buf).with_context(|| format!("no {} here or above", model::COMMANDS_DIR))
}

fn check_commands(root: &Path) -> Result<bool> {
    let (count, findings) = check::check_tree(root)?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    println!("{count} command files, {} findings", findings.len());
    Ok(findings.is_empty())
}

fn format_commands(root: &Path) -> Result<bool> {
    let mut written = 0;
    for file in model::load_files(root)? {
        let text = file.command.to_text()?;
        if text != file.text {
            let path = root.join(model::COMMANDS_DIR).join(&file.file);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", file.file))?;
            written += 1;
        }
    }
    println!("{written} command files rewritten");
    Ok(true)
}

fn compare_commands(root: &Path, address: &str) -> Result<bool> {
    let table = model::load(root)?;
    let accepted = compared::load(root)?;
    let server = compare::ask(address)?;
    let result = compare::compare(&table, &server);
    let verdict = accepted.judge(&server, &result);
    for line in &verdict.unexplained {
        println!("{line}");
    }
    for line in &verdict.gone {
        println!("accepted, but no longer so: {line}");
    }
    println!("{} {} has {} commands and subcommands", server.name, server.version, server.commands.len());
    println!(
        "compared: {} commands, {} facts; texts are our own and are not compared",
        result.compared, result.facts
    );
    println!(
        "left out: {} newer than the server, {} of modules it has not loaded, {} of Sentinel only, {} not of Sentinel",
        result.newer, result.module, result.sentinel, result.sentinel_lacks
    );
    println!("differences: {} accepted, {} not", verdict.accepted, verdict.unexplained.len());
    Ok(verdict.unexplained.is_empty() && verdict.gone.is_empty())
}

fn generate(root: &Path) -> Result<bool> {
    for path in r#gen::write(root, &model::load(root)?)? {
        println!("wrote {path}");
    }
    Ok(true)
}

fn check_generated(root: &Path) -> Result<bool> {
    let stale = r#gen::stale(root, &model::load(root)?)?;
    for (path, _) in &stale {
        eprintln!("{path}: not what spec/ generates; run `xtask gen`");
    }
    Ok(stale.is_empty())
}

fn check_rules(root: &Path) -> Result<bool> {
    let (count, findings) = tidy::tidy(root)?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    println!("{count} files, {} findings", findings.len());
    Ok(findings.is_empty())
}

fn check_citations(root: &Path) -> Result<bool> {
    let findings = citations::check(root)?;
    findings.iter().for_each(|finding| eprintln!("{finding}"));
    Ok(findings.is_empty())
}

fn write_vectors(root: &Path) -> Result<bool> {
    let commands = model::load(root)?;
    for path in vectors::write(root, &commands)? {
        println!("wrote {}", path.display());
    }
    for (folder, count) in vectors::counts(&commands)? {
        println!("{count:>5} {folder}");
    }
    Ok(true)
}

fn check_vectors(root: &Path) -> Result<bool> {
    let stale = vectors::stale(root, &model::load(root)?)?;
    for (path, _) in &stale {
        eprintln!("{}: not what spec/ generates; run `xtask vectors`", path.display());
    }
    Ok(stale.is_empty())
}
