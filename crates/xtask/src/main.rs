//! Code generation from `spec/` and checks of the repository; run from its root as `cargo run -p xtask --`.
//!
//! It owns the command line. What a subcommand does lives in a module of its own.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use xtask::{model, vectors};

const USAGE: &str = "\
usage: xtask vectors                    write conformance/vectors
       xtask vectors --check            fail when a vector file is not up to date";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(".");
    let outcome = match words[..] {
        ["vectors"] => write_vectors(root),
        ["vectors", "--check"] => check_vectors(root),
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
