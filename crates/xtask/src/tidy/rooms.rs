//! The rooms of the engine: folders of `crates/engine/src` that build on each other in one order.
//!
//! It owns that order, which modules have no folder yet, and which imports still go upwards. All three lists may only
//! become better: a file outside of them, an import upwards that is not listed, and an entry that is no longer so, are
//! findings.

use std::collections::BTreeMap;

use regex_lite::Regex;

use super::{File, Finding};

/// Where the engine is.
const ENGINE: &str = "crates/engine/src/";

/// A room, and the modules of it that stand on the ground floor, outside of any folder of rooms.
struct Room {
    name: &'static str,
    ground: &'static [&'static str],
}

const fn room(name: &'static str, ground: &'static [&'static str]) -> Room {
    Room { name, ground }
}

/// The lowest first: each may use those before it.
const ROOMS: &[Room] = &[
    room("text", &[]),
    room("exchange", &[]),
    room("reply", &[]),
    room("config", &[]),
    room("formats", &[]),
    room("acl", &[]),
    room("sessions", &[]),
    room("observe", &[]),
    room("keeping", &[]),
    room("engine", &["engine"]),
    room("info", &[]),
    room("metrics", &[]),
    room("dispatch", DISPATCH),
    room("script", &[]),
    room("program", &[]),
    room("trigger", &[]),
    room("commands", &[]),
];

/// The ground floor: checking a request, running it under its locks, and who waits.
const DISPATCH: &[&str] = &[
    "blocking", "carrier", "context", "executor", "forward", "handler", "inner", "plan", "resource", "runner",
];

/// Imports upwards that there still are: each makes a circle of the rooms between.
const UPWARDS: &[(&str, &str)] = &[
    ("acl", "engine"),
    ("acl", "sessions"),
    ("config", "engine"),
    ("dispatch", "commands"),
    ("dispatch", "program"),
    ("dispatch", "script"),
    ("dispatch", "trigger"),
    ("engine", "dispatch"),
    ("engine", "program"),
    ("engine", "script"),
    ("engine", "trigger"),
    ("keeping", "dispatch"),
    ("keeping", "engine"),
    ("keeping", "trigger"),
    ("observe", "dispatch"),
    ("observe", "engine"),
    ("program", "commands"),
    ("program", "trigger"),
    ("sessions", "dispatch"),
    ("sessions", "engine"),
];

/// No import goes upwards, and every file is in a room.
pub(super) fn rooms(files: &[File]) -> Vec<Finding> {
    judge(files, ROOMS, UPWARDS)
}

fn judge(files: &[File], rooms: &[Room], upwards: &[(&str, &str)]) -> Vec<Finding> {
    let engine: Vec<(&File, &str)> = files
        .iter()
        .filter_map(|file| Some((file, file.path.strip_prefix(ENGINE)?.strip_suffix(".rs")?)))
        .filter(|(_, path)| *path != "lib")
        .collect();
    let Some((first, _)) = engine.first() else { return Vec::new() };
    let mut findings = Vec::new();
    let root = files.iter().find(|file| file.path.strip_prefix(ENGINE) == Some("lib.rs"));
    let mut places = places_at_root(rooms, root.map_or("", |file| &file.text));
    for &(file, path) in &engine {
        match place_of(rooms, path) {
            Some(place) => {
                places.insert(path.split('/').next().unwrap_or(path).to_string(), place);
            }
            None => findings.push(file.finding(0, "belongs to no room: tidy/rooms.rs has the list")),
        }
    }
    for room in rooms {
        for module in room.ground {
            if !engine.iter().any(|(_, path)| path.split('/').next() == Some(module)) {
                let message = format!("{module} is not on the ground floor: take it off tidy/rooms.rs");
                findings.push(first.finding(0, message));
            }
        }
    }
    let mut seen = Vec::new();
    for &(file, path) in &engine {
        let Some(own) = place_of(rooms, path) else { continue };
        for (line, name) in imports(&file.text) {
            let Some(&other) = places.get(&name).filter(|&&other| other > own) else { continue };
            let pair = (rooms[own].name, rooms[other].name);
            if upwards.contains(&pair) {
                seen.push(pair);
            } else {
                findings.push(file.finding(
                    line,
                    format!("{} must not use {} ({name}), which builds on it", pair.0, pair.1),
                ));
            }
        }
    }
    for (from, to) in upwards.iter().filter(|pair| !seen.contains(pair)) {
        findings.push(first.finding(0, format!("{from} uses {to} no more: take it off tidy/rooms.rs")));
    }
    findings
}

/// The place of the room that a file is in.
fn place_of(rooms: &[Room], path: &str) -> Option<usize> {
    let (first, inside) = path.split_once('/').map_or((path, false), |(first, _)| (first, true));
    rooms.iter().position(|room| inside && room.name == first || room.ground.contains(&first))
}

/// The places of what the crate's root takes from rooms, by name: modules, which `crate::` has without their room, and
/// types.
fn places_at_root(rooms: &[Room], root: &str) -> BTreeMap<String, usize> {
    let path = Regex::new(r"(?s)\buse (\w+)::(?:(\w+)|\{([^}]*)\});").expect("the pattern is a constant");
    let mut places = BTreeMap::new();
    for found in path.captures_iter(root) {
        let Some(place) =
            rooms.iter().position(|room| room.name == &found[1] || room.ground.contains(&&found[1]))
        else {
            continue;
        };
        let names = found.get(2).or(found.get(3)).map_or("", |names| names.as_str());
        places.extend(names.split(',').map(|name| (name.trim().to_string(), place)));
    }
    places
}

/// The names behind `crate::` in what is no comment and no test, each with its line.
fn imports(text: &str) -> Vec<(usize, String)> {
    let path = Regex::new(r"\bcrate::(\w+)").expect("the pattern is a constant");
    let group = Regex::new(r"\bcrate::\{").expect("the pattern is a constant");
    let code: Vec<&str> = text
        .lines()
        .take_while(|line| *line != "#[cfg(test)]")
        .map(|line| if line.trim_start().starts_with("//") { "" } else { line })
        .collect();
    let mut found = Vec::new();
    for (index, line) in code.iter().enumerate() {
        found.extend(path.captures_iter(line).map(|name| (index + 1, name[1].to_string())));
        if let Some(start) = group.find(line) {
            let rest = [&line[start.end()..]].into_iter().chain(code[index + 1..].iter().copied());
            found.extend(of_group(rest).into_iter().map(|name| (index + 1, name)));
        }
    }
    found
}

/// The first name of each path of `{a, b::c, d::{e, f}}`, from behind its first bracket on.
fn of_group<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<String> {
    let (mut names, mut name, mut depth) = (Vec::new(), String::new(), 1);
    for character in lines.flat_map(|line| line.chars().chain(['\n'])) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && character == ',' {
            names.push(std::mem::take(&mut name));
        } else {
            name.push(character);
        }
        if depth == 0 {
            break;
        }
    }
    let first = |path: &String| path.trim().split([':', ' ']).next().unwrap_or_default().to_string();
    names.iter().map(first).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::file;
    use super::*;

    const THREE: &[Room] = &[room("low", &[]), room("middle", &["door"]), room("high", &[])];

    fn found(path: &str, text: &str, upwards: &[(&str, &str)]) -> Vec<String> {
        let path = format!("{ENGINE}{path}");
        let files: Vec<File> = [
            ("lib.rs", "pub use high::b;\npub use low::{\n    a,\n    c,\n};\npub use door::Door;\n"),
            ("low/a.rs", ""),
            ("door.rs", ""),
            ("high/mod.rs", ""),
            ("high/b.rs", ""),
        ]
        .map(|(path, text)| file(&format!("{ENGINE}{path}"), text))
        .into_iter()
        .filter(|file| file.path != path)
        .chain([file(&path, text)])
        .collect();
        judge(&files, THREE, upwards).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn an_import_upwards_is_found() {
        assert!(found("high/b.rs", "use crate::door::X;\nuse crate::{a, high};", &[]).is_empty());
        assert_eq!(found("low/a.rs", "use crate::door::X;", &[]).len(), 1);
        assert_eq!(found("low/a.rs", "fn x() { crate::b::y() }", &[]).len(), 1);
        assert_eq!(found("low/a.rs", "use crate::Door;", &[]).len(), 1);
        assert_eq!(found("door.rs", "use crate::{\n    a::{C, D}, b::E,\n};", &[]).len(), 1);
        assert!(found("low/a.rs", "// crate::door\n#[cfg(test)]\nuse crate::door;", &[]).is_empty());
    }

    #[test]
    fn what_is_listed_is_let_pass_while_it_is_so() {
        let upwards = [("low", "middle")];
        assert!(found("low/a.rs", "use crate::door::X;", &upwards).is_empty());
        assert_eq!(found("low/a.rs", "", &upwards), ["low uses middle no more: take it off tidy/rooms.rs"]);
    }

    #[test]
    fn a_file_without_a_room_is_found() {
        assert_eq!(found("window.rs", "", &[]), ["belongs to no room: tidy/rooms.rs has the list"]);
        assert_eq!(judge(&[file(&format!("{ENGINE}low/a.rs"), "")], THREE, &[]).len(), 1, "door is gone");
    }
}
