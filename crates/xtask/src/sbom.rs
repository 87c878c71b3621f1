//! What is in a release: a list of parts in CycloneDX's JSON (1.5), for `scripts/release`.
//!
//! Owns which parts there are and what is said of each. They are the crates of `cargo metadata` that the `weft` binary
//! is made of on one target, with their checksums of `Cargo.lock`, and what is not a crate: the C code that crates
//! bring, the C library, the console's library. Crates that only run while it is built have the scope `excluded`.
//!
//! The same commit gives the same bytes: there is no time and no number of chance in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// C code that stands in a crate under a name and a licence of its own.
const INSIDE: &[(&str, &str, &str, &str)] = &[
    ("lua-src", "lua", "5.1.5", "MIT"),
    ("aws-lc-sys", "aws-lc", "", "ISC AND Apache-2.0 AND MIT AND BSD-3-Clause"),
];

/// The list for a target, as text.
pub fn sbom(root: &Path, target: &str, libc: &str) -> Result<String> {
    let output = Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1", "--filter-platform", target])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock"))?;
    let console = std::fs::read_to_string(root.join("console/package-lock.json"))?;
    let list = document(&metadata, &checksums(&lock), &serde_json::from_str(&console)?, (target, libc))?;
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

/// The checksums of `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut all = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")))?;
            line.strip_suffix('"').map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(sum)) = (field("name"), field("version"), field("checksum")) {
            all.insert((name, version), sum);
        }
    }
    all
}

/// A crate, and whether the binary has anything of it or it only runs while that is built.
type Reached = BTreeMap<String, bool>;

/// What is reached from a package: first by what is linked, then by what builds it.
fn reached(nodes: &BTreeMap<&str, &Value>, macros: &BTreeSet<&str>, first: &str) -> Reached {
    let mut all = Reached::new();
    let mut open = vec![(first.to_owned(), true)];
    while let Some((id, linked)) = open.pop() {
        let linked = linked && !macros.contains(id.as_str());
        match all.get_mut(&id) {
            Some(before) if *before || !linked => continue,
            Some(before) => *before = true,
            None => drop(all.insert(id.clone(), linked)),
        }
        for dependency in
            nodes.get(id.as_str()).and_then(|node| node["deps"].as_array()).into_iter().flatten()
        {
            let kinds: Vec<&Value> =
                dependency["dep_kinds"].as_array().into_iter().flatten().map(|kind| &kind["kind"]).collect();
            let Some(on) = dependency["pkg"].as_str() else { continue };
            if kinds.iter().any(|kind| kind.is_null()) {
                open.push((on.to_owned(), linked));
            } else if kinds.iter().any(|kind| *kind == "build") {
                open.push((on.to_owned(), false));
            }
        }
    }
    all
}

fn document(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
    console: &Value,
    (target, libc): (&str, &str),
) -> Result<Value> {
    let packages: BTreeMap<&str, &Value> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let is_macro = |package: &&Value| {
        let targets = package["targets"].as_array();
        targets.into_iter().flatten().any(|target| target["kind"].to_string().contains("proc-macro"))
    };
    let macros: BTreeSet<&str> =
        packages.iter().filter(|(_, package)| is_macro(package)).map(|(&id, _)| id).collect();
    let Some((&weft, _)) = packages.iter().find(|(_, package)| package["name"] == "weft") else {
        bail!("cargo metadata knows no package weft");
    };
    let name = |id: &str, field: &str| packages[id][field].as_str().unwrap_or_default().to_owned();
    let reference = |id: &str| format!("pkg:cargo/{}@{}", name(id, "name"), name(id, "version"));
    let all = reached(&nodes, &macros, weft);
    let mut components = Vec::new();
    for (id, linked) in all.iter().filter(|(id, _)| id.as_str() != weft) {
        let (package, version) = (name(id, "name"), name(id, "version"));
        let mut component = json!({
            "type": "library",
            "bom-ref": reference(id),
            "name": package,
            "version": version,
            "scope": if *linked { "required" } else { "excluded" },
            "licenses": licenses(&name(id, "license")),
            "purl": reference(id),
        });
        match checksums.get(&(package.clone(), version)) {
            Some(sum) => component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]),
            // A part of this repository.
            None => drop(component.as_object_mut().and_then(|component| component.remove("purl"))),
        }
        for (_, inner, version, license) in INSIDE.iter().filter(|(outer, ..)| *outer == package) {
            component["components"] = json!([{"type": "library", "name": inner, "version": version, "licenses": licenses(license)}]);
        }
        components.push(component);
    }
    components.push(json!({
        "type": "library", "bom-ref": "libc", "name": "glibc", "version": libc, "scope": "required",
        "licenses": licenses("LGPL-2.1-or-later"), "description": "linked statically",
    }));
    for (path, package) in console["packages"].as_object().into_iter().flatten() {
        let Some(name) = path.strip_prefix("node_modules/") else { continue };
        if package["dev"] == true {
            continue;
        }
        let version = package["version"].as_str().unwrap_or_default();
        components.push(json!({
            "type": "library", "bom-ref": format!("pkg:npm/{name}@{version}"), "name": name, "version": version,
            "scope": "required", "licenses": licenses(package["license"].as_str().unwrap_or_default()),
            "purl": format!("pkg:npm/{name}@{version}"), "description": "in the console's script",
        }));
    }
    let dependencies: Vec<Value> = all
        .keys()
        .map(|id| {
            let deps = nodes.get(id.as_str()).and_then(|node| node["deps"].as_array());
            let on: BTreeSet<String> = deps
                .into_iter()
                .flatten()
                .filter_map(|dependency| dependency["pkg"].as_str())
                .filter(|on| all.contains_key(*on))
                .map(reference)
                .collect();
            json!({"ref": reference(id), "dependsOn": on})
        })
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": reference(weft),
                "name": "weft",
                "version": name(weft, "version"),
                "licenses": licenses(&name(weft, "license")),
            },
            "properties": [{"name": "target", "value": target}],
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// A licence by its name, or several as an expression. Old crates write `/` for OR.
fn licenses(text: &str) -> Value {
    let text = text.replace('/', " OR ");
    match text.as_str() {
        "" => json!([]),
        one if !one.contains(' ') => json!([{"license": {"id": one}}]),
        _ => json!([{"expression": text}]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_and_what_only_builds_are_told_apart() -> Result<()> {
        let package = |name: &str, kind: &str| {
            json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                   "targets": [{"kind": [kind]}]})
        };
        let needs =
            |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind, "target": null}]});
        let metadata = json!({
            "packages": [package("weft", "bin"), package("linked", "lib"), package("builder", "lib"),
                         package("derive", "proc-macro"), package("parser", "lib"), package("tested", "lib"),
                         package("elsewhere", "lib")],
            "resolve": {"nodes": [
                {"id": "weft", "deps": [needs("linked", Value::Null), needs("derive", Value::Null),
                                        needs("tested", json!("dev"))]},
                {"id": "linked", "deps": [needs("builder", json!("build"))]},
                {"id": "derive", "deps": [needs("parser", Value::Null)]},
            ]},
        });
        let lock = "[[package]]\nname = \"linked\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        let console = json!({"packages": {"": {}, "node_modules/uplot": {"version": "1", "license": "MIT"},
                                          "node_modules/tool": {"version": "1", "dev": true}}});
        let list = document(&metadata, &checksums(lock), &console, ("here", "2.36"))?;
        let found: BTreeMap<String, String> = list["components"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| (one["name"].to_string(), one["scope"].to_string()))
            .collect();
        let expected = [
            ("builder", "excluded"),
            ("derive", "excluded"),
            ("glibc", "required"),
            ("linked", "required"),
            ("parser", "excluded"),
            ("uplot", "required"),
        ];
        let expected = expected.map(|(name, scope)| (format!("\"{name}\""), format!("\"{scope}\"")));
        assert_eq!(found, expected.into());
        let linked = list["components"].as_array().into_iter().flatten().find(|one| one["name"] == "linked");
        let linked = linked.context("linked is there")?;
        assert_eq!(linked["hashes"][0]["content"], "abc");
        assert_eq!(linked["licenses"], json!([{"expression": "MIT OR Apache-2.0"}]));
        Ok(())
    }
}
