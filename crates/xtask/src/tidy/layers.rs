//! Who may depend on whom, who may open a socket, and where `unsafe` may stand.
//!
//! It owns the dependency direction of ARCHITECTURE.md as a table. A crate that is not in the table is a finding: its
//! place is a decision.

use regex_lite::Regex;

use super::{File, Finding};

/// A crate's folder, and the crates of the workspace that it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("measure", &[]),
    ("protocol", &[]),
    ("store", &[]),
    ("lua", &["protocol"]),
    ("engine", &["protocol", "store", "lua"]),
    ("persist", &["protocol", "store"]),
    ("client", &["protocol"]),
    ("gateway", &["protocol", "engine", "client"]),
    ("server", &["protocol", "store", "engine", "persist", "client", "gateway"]),
    ("weft", &["protocol", "store", "engine", "persist", "server", "client", "gateway", "measure"]),
    ("xtask", &["protocol"]),
];

/// Crates that may open sockets and depend on what drives them.
const SOCKETS: &[&str] = &["server", "client", "gateway", "xtask"];

/// Modules elsewhere that stand between other programs' sockets: a relay is no server and no client.
const RELAYS: &[&str] = &["crates/weft/src/inspect/follow/"];

/// Event loops and network stacks.
const RUNTIMES: &[&str] = &[
    "async-io",
    "async-std",
    "hyper",
    "io-uring",
    "mio",
    "polling",
    "reqwest",
    "smol",
    "socket2",
    "tokio",
    "ureq",
];

/// Where `unsafe` may stand: the modules that a decision names, and tests and benches that count allocations.
const UNSAFE: &[&str] = &[
    "crates/lua/src/fiber",
    "crates/lua/src/frame",
    "crates/lua/src/memory",
    "crates/lua/src/vm",
    "crates/protocol/src/scan",
    "crates/server/src/sys",
    "crates/store/src/entry",
    "crates/store/src/guarded",
    "crates/store/src/prefetch",
    "crates/store/src/slab",
    "crates/store/src/table",
    "crates/weft/src/heap",
];

/// The crate's folder and the path inside it.
fn in_crate(file: &File) -> Option<(&str, &str)> {
    file.path.strip_prefix("crates/")?.split_once('/')
}

/// Every dependency of every manifest goes downwards, and runtimes stay at the top. Those for tests are free.
pub(super) fn dependencies(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let Some((name, "Cargo.toml")) = in_crate(file) else { continue };
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
            findings.push(file.finding(0, "has no place in the layers; give it one in tidy/layers.rs"));
            continue;
        };
        for (line, dependency) in dependencies_of(file) {
            let own = dependency.strip_prefix("weft-").unwrap_or(&dependency);
            let is_own = dependency == "weft" || dependency.starts_with("weft-") || dependency == "xtask";
            if is_own && !allowed.contains(&own) {
                findings.push(file.finding(line, format!("{name} must not depend on {own}")));
            }
            if RUNTIMES.contains(&dependency.as_str()) && !SOCKETS.contains(&name) {
                findings
                    .push(file.finding(line, format!("{name} must not depend on a runtime: {dependency}")));
            }
        }
    }
    findings
}

/// Names under `[dependencies]`, `[build-dependencies]` and the same of a target, with their lines.
fn dependencies_of(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (number, line) in file.lines() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
            if let Some((table, name)) = section.rsplit_once("dependencies.")
                && !table.ends_with("dev-")
            {
                found.push((number, name.trim_matches('"').to_string()));
            }
        } else if inside
            && let Some((name, _)) = line.split_once('=')
            && !line.starts_with('#')
        {
            let name = name.trim();
            found.push((
                number,
                name.strip_suffix(".workspace").unwrap_or(name).trim_matches('"').to_string(),
            ));
        }
    }
    found
}

/// Sockets are named only where they may be opened.
pub(super) fn sockets(files: &[File]) -> Vec<Finding> {
    let names = Regex::new(concat!(
        r"\b(std::net|std::os::(unix|fd)::net|core::net|mio|tokio|socket2)\b|std::\{[^}]*\bnet\b|",
        r"\blibc::(socket|connect|bind|accept4?)\b"
    ))
    .expect("the pattern is a constant");
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is("rs")) {
        let Some((name, path)) = in_crate(file) else { continue };
        let relay = RELAYS.iter().any(|relay| file.path.starts_with(relay));
        if SOCKETS.contains(&name) || path.starts_with("tests/") || relay {
            continue;
        }
        for (number, line) in file.lines() {
            if !is_comment(line) && names.is_match(line) {
                findings.push(file.finding(number, "only server and client touch sockets"));
            }
        }
    }
    findings
}

/// Every crate forbids `unsafe`, or denies it and allows it in the modules of [`UNSAFE`] alone.
pub(super) fn unsafe_code(files: &[File]) -> Vec<Finding> {
    let keyword =
        Regex::new(r"\bunsafe\s*(\{|fn\b|impl\b|extern\b|trait\b)").expect("the pattern is a constant");
    let forbids = Regex::new(r"#!\[(forbid|deny)\(.*\bunsafe_code\b").expect("the pattern is a constant");
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is("rs")) {
        let Some((name, path)) = in_crate(file) else { continue };
        let named = UNSAFE.iter().any(|place| file.path.starts_with(place));
        let measures =
            path.starts_with("tests/") || path.starts_with("benches/") || path.starts_with("examples/");
        if (path == "src/lib.rs" || path == "src/main.rs")
            && !named
            && !file.text.lines().any(|line| forbids.is_match(line))
        {
            findings.push(file.finding(0, format!("{name} must forbid unsafe_code")));
        }
        if named || measures {
            continue;
        }
        for (number, line) in file.lines() {
            if !is_comment(line) && keyword.is_match(line) {
                findings.push(file.finding(number, "unsafe outside the modules that may have it"));
            }
        }
    }
    findings
}

pub(super) fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::super::tests::broken;
    use super::*;

    #[test]
    fn upward_dependencies_are_found() {
        let manifest = "[dependencies]\nitoa = \"1\"\nweft-store = { path = \"../store\" }\n";
        assert_eq!(broken(dependencies, "crates/protocol/Cargo.toml", manifest), [3]);
        assert!(broken(dependencies, "crates/engine/Cargo.toml", manifest).is_empty());
        let workspace = "[target.'cfg(unix)'.dependencies]\nweft-server.workspace = true\n";
        assert_eq!(broken(dependencies, "crates/engine/Cargo.toml", workspace), [2]);
        let table = "[dependencies.weft-server]\npath = \"../server\"\n";
        assert_eq!(broken(dependencies, "crates/engine/Cargo.toml", table), [1]);
        let tests = "[dev-dependencies]\nweft-server = \"0\"\n[dev-dependencies.tokio]\nversion = \"1\"\n";
        assert!(broken(dependencies, "crates/engine/Cargo.toml", tests).is_empty());
    }

    #[test]
    fn runtimes_stay_out_of_the_core() {
        let manifest = "[dependencies]\n# tokio = \"1\"\ntokio = \"1\"\n";
        assert_eq!(broken(dependencies, "crates/store/Cargo.toml", manifest), [3]);
        assert!(broken(dependencies, "crates/client/Cargo.toml", manifest).is_empty());
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        assert_eq!(broken(dependencies, "crates/misc/Cargo.toml", "[package]\n"), [0]);
    }

    #[test]
    fn sockets_are_found() {
        let code =
            "// std::net is not for us\nuse std::net::TcpStream;\nuse std::{io, net};\nlet tokio_like = 1;\n";
        assert_eq!(broken(sockets, "crates/engine/src/a.rs", code), [2, 3]);
        assert!(broken(sockets, "crates/server/src/a.rs", code).is_empty());
    }

    #[test]
    fn unsafe_code_is_found() {
        let code = concat!("//! A.\nfn f() {\n    uns", "afe { g() }\n}\n// uns", "afe { no }\n");
        assert_eq!(broken(unsafe_code, "crates/engine/src/a.rs", code), [3]);
        assert!(broken(unsafe_code, "crates/store/src/slab/pages.rs", code).is_empty());
        assert!(broken(unsafe_code, "crates/engine/tests/allocation.rs", code).is_empty());
    }

    #[test]
    fn a_crate_that_does_not_forbid_unsafe_is_found() {
        assert_eq!(broken(unsafe_code, "crates/engine/src/lib.rs", "//! E.\n"), [0]);
        assert!(broken(unsafe_code, "crates/engine/src/lib.rs", "#![forbid(unsafe_code)]\n").is_empty());
        assert!(
            broken(unsafe_code, "crates/store/src/lib.rs", "#![deny(unsafe_code, missing_docs)]\n")
                .is_empty()
        );
    }
}
