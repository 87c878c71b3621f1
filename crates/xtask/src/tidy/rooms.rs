//! The rooms of the engine: folders of `crates/engine/src` that build on each other in one order, and the families of
//! commands, which do so inside of theirs.
//!
//! It owns these orders, and which modules stand on the ground floor. An import upwards, a call upwards of what rooms
//! give `Engine` and `Context`, a file outside of the rooms, and a module of the list that is gone, are findings.

use std::collections::BTreeMap;

use regex_lite::Regex;

use super::{File, Finding};

/// A house: a folder of rooms.
struct House {
    /// Where it is.
    folder: &'static str,
    /// The file that is its map, without `.rs`.
    map: &'static str,
    /// What its rooms are called by, from anywhere in the crate.
    path: &'static str,
    /// The lowest first: each may use those before it.
    rooms: &'static [Room],
}

const ENGINE: House = House { folder: "crates/engine/src/", map: "lib", path: "crate", rooms: ROOMS };

const COMMANDS: House =
    House { folder: "crates/engine/src/commands/", map: "mod", path: "crate::commands", rooms: FAMILIES };

/// A room, and the modules of it that stand on the ground floor, outside of any folder of rooms.
struct Room {
    name: &'static str,
    ground: &'static [&'static str],
}

const fn room(name: &'static str, ground: &'static [&'static str]) -> Room {
    Room { name, ground }
}

const ROOMS: &[Room] = &[
    room("text", &[]),
    room("exchange", &[]),
    room("reply", &[]),
    room("acl", &[]),
    room("config", &[]),
    room("formats", &[]),
    room("sessions", &[]),
    room("observe", &[]),
    room("keeping", &[]),
    room("script", &[]),
    room("program", &[]),
    room("trigger", &[]),
    room("engine", &[]),
    room("notices", &[]),
    room("access", &[]),
    room("upkeep", &[]),
    room("info", &[]),
    room("metrics", &[]),
    room("dispatch", DISPATCH),
    room("commands", &[]),
    room("logic", &[]),
    room("background", &[]),
];

/// The ground floor: checking a request, running it under its locks, and who waits.
const DISPATCH: &[&str] = &["blocking", "executor", "forward", "inner", "resource", "runner"];

const FAMILIES: &[Room] = &[
    room("common", &[]),
    room("strings", &[]),
    room("keys", &[]),
    room("lists", &[]),
    room("hashes", &[]),
    room("sets", &[]),
    room("sorted_sets", &[]),
    room("geo", &[]),
    room("streams", &[]),
    room("clients", &[]),
    room("server", &[]),
];

/// No import goes upwards, and every file is in a room.
pub(super) fn rooms(files: &[File]) -> Vec<Finding> {
    [ENGINE, COMMANDS].iter().flat_map(|house| judge(files, house)).collect()
}

fn judge(files: &[File], house: &House) -> Vec<Finding> {
    let rooms = house.rooms;
    let inside = |file: &File| Some(file.path.strip_prefix(house.folder)?.strip_suffix(".rs")?.to_string());
    let all: Vec<(&File, String)> = files.iter().filter_map(|file| Some((file, inside(file)?))).collect();
    let (maps, all): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, path)| path == house.map);
    let Some((first, _)) = all.first() else { return Vec::new() };
    let mut findings = Vec::new();
    let mut places = places_at_map(rooms, maps.first().map_or("", |(file, _)| &file.text));
    for (file, path) in &all {
        match place_of(rooms, path) {
            Some(place) => {
                places.insert(path.split('/').next().unwrap_or(path).to_string(), place);
            }
            None => findings.push(file.finding(0, "belongs to no room: tidy/rooms.rs has the list")),
        }
    }
    for room in rooms {
        for module in room.ground {
            if !all.iter().any(|(_, path)| path.split('/').next() == Some(module)) {
                let message = format!("{module} is not on the ground floor: take it off tidy/rooms.rs");
                findings.push(first.finding(0, message));
            }
        }
    }
    let defined = shared_methods(&all, rooms);
    for (file, path) in &all {
        let Some(own) = place_of(rooms, path) else { continue };
        let imported = imports(&file.text, house.path).into_iter();
        let imported = imported.filter_map(|(line, name)| Some((line, *places.get(&name)?, name)));
        let called = calls(&file.text).into_iter();
        let called = called.filter_map(|(line, name)| Some((line, *defined.get(&name)?, name.1)));
        for (line, other, name) in imported.chain(called).filter(|&(_, other, _)| other > own) {
            let (own, other) = (rooms[own].name, rooms[other].name);
            let message = format!("{own} must not use {other} ({name}), which builds on it");
            findings.push(file.finding(line, message));
        }
    }
    findings
}

/// The place of the room that a file is in.
fn place_of(rooms: &[Room], path: &str) -> Option<usize> {
    let (first, inside) = path.split_once('/').map_or((path, false), |(first, _)| (first, true));
    rooms.iter().position(|room| inside && room.name == first || room.ground.contains(&first))
}

/// The places of what a house's map takes from rooms, by name: modules, which `crate::` has without their room, and
/// types.
fn places_at_map(rooms: &[Room], map: &str) -> BTreeMap<String, usize> {
    let path = Regex::new(r"(?s)\buse (\w+)::(?:(\w+)|\{([^}]*)\});").expect("the pattern is a constant");
    let mut places = BTreeMap::new();
    for found in path.captures_iter(map) {
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

/// What every room may have a part of: methods of these are called without an import.
const SHARED: [&str; 2] = ["Engine", "Context"];

/// The methods of what is shared, by type and name, with the place of the lowest room that has one of that name.
fn shared_methods(all: &[(&File, String)], rooms: &[Room]) -> BTreeMap<(usize, String), usize> {
    let method = Regex::new(r"\bfn (\w+)").expect("the pattern is a constant");
    let mut defined = BTreeMap::new();
    for (file, path) in all {
        let Some(own) = place_of(rooms, path) else { continue };
        for (_, line, of) in lines_of_shared(&file.text) {
            let names = of.into_iter().flat_map(|of| method.captures_iter(line).map(move |name| (of, name)));
            for (of, name) in names {
                let place = defined.entry((of, name[1].to_string())).or_insert(own);
                *place = own.min(*place);
            }
        }
    }
    defined
}

/// The calls of methods of what is shared, each with its line.
fn calls(text: &str) -> Vec<(usize, (usize, String))> {
    let call = Regex::new(r"\b(engine|context|self)\.(\w+)\(").expect("the pattern is a constant");
    let mut found = Vec::new();
    for (number, line, of) in lines_of_shared(text) {
        found.extend(call.captures_iter(line).filter_map(|call| {
            let of = match &call[1] {
                "engine" => 0,
                "context" => 1,
                _ => of?,
            };
            Some((number, (of, call[2].to_string())))
        }));
    }
    found
}

/// The lines that are no comment and no test, and of which of [`SHARED`] each is a part.
fn lines_of_shared(text: &str) -> Vec<(usize, &str, Option<usize>)> {
    let begin = Regex::new(r"^impl(?:<[^>]*>)? (\w+)").expect("the pattern is a constant");
    let mut of = None;
    let code = text.lines().enumerate().take_while(|(_, line)| *line != "#[cfg(test)]");
    code.filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(index, line)| {
            if let Some(found) = begin.captures(line) {
                of = SHARED.iter().position(|name| *name == &found[1]).filter(|_| !line.contains(" for "));
            }
            let part = of;
            if line == "}" {
                of = None;
            }
            (index + 1, line, part)
        })
        .collect()
}

/// The names behind a path in what is no comment and no test, each with its line.
fn imports(text: &str, path: &str) -> Vec<(usize, String)> {
    let group = Regex::new(&format!(r"\b{path}::\{{")).expect("paths are constants");
    let path = Regex::new(&format!(r"\b{path}::(\w+)")).expect("paths are constants");
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

    const HOUSE: House = House { folder: "house/", map: "lib", path: "crate", rooms: THREE };

    fn found(path: &str, text: &str) -> Vec<String> {
        let path = format!("house/{path}");
        let files: Vec<File> = [
            ("lib.rs", "pub use high::b;\npub use low::{\n    a,\n    c,\n};\npub use door::Door;\n"),
            ("low/a.rs", ""),
            ("door.rs", ""),
            ("high/mod.rs", ""),
            ("high/b.rs", ""),
        ]
        .map(|(path, text)| file(&format!("house/{path}"), text))
        .into_iter()
        .filter(|file| file.path != path)
        .chain([file(&path, text)])
        .collect();
        judge(&files, &HOUSE).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn an_import_upwards_is_found() {
        assert!(found("high/b.rs", "use crate::door::X;\nuse crate::{a, high};").is_empty());
        assert_eq!(found("low/a.rs", "use crate::door::X;").len(), 1);
        assert_eq!(found("low/a.rs", "fn x() { crate::b::y() }").len(), 1);
        assert_eq!(found("low/a.rs", "use crate::Door;").len(), 1);
        assert_eq!(found("door.rs", "use crate::{\n    a::{C, D}, b::E,\n};").len(), 1);
        assert!(found("low/a.rs", "// crate::door\n#[cfg(test)]\nuse crate::door;").is_empty());
    }

    #[test]
    fn a_call_upwards_of_what_is_shared_is_found() {
        let low = |text: &str| {
            let files = [
                ("low/a.rs", text),
                ("high/b.rs", "impl Engine {\n    pub fn high(&self) {\n    }\n}\nfn other() {}\n"),
                ("door.rs", "impl<'b> Context<'_, 'b> {\n    fn middle(&self) {}\n}\n"),
            ]
            .map(|(path, text)| file(&format!("house/{path}"), text));
            judge(&files, &HOUSE).into_iter().map(|finding| finding.message).collect::<Vec<_>>()
        };
        assert_eq!(
            low("fn x() { self.engine.high() }"),
            ["low must not use high (high), which builds on it"]
        );
        assert_eq!(
            low("fn x() { context.middle() }"),
            ["low must not use middle (middle), which builds on it"]
        );
        assert_eq!(low("impl Engine {\n    fn x(&self) { self.high() }\n}").len(), 1);
        assert!(low("impl Other {\n    fn x(&self) { self.high(); engine.other() }\n}").is_empty());
    }

    #[test]
    fn families_of_commands_are_judged_by_their_own_paths() {
        let of = |text: &str| {
            let files = ["keys/a.rs", "strings/b.rs"].map(|path| {
                file(&format!("{}{path}", COMMANDS.folder), if path == "strings/b.rs" { text } else { "" })
            });
            judge(&files, &COMMANDS).into_iter().map(|finding| finding.message).collect::<Vec<_>>()
        };
        assert!(of("use crate::commands::strings::c;\nuse crate::keys;").is_empty());
        let expected = ["strings must not use keys (keys), which builds on it"];
        assert_eq!(of("use crate::commands::keys::a;"), expected);
        assert_eq!(of("use crate::commands::{common::x, keys::a};"), expected);
    }

    #[test]
    fn a_file_without_a_room_is_found() {
        assert_eq!(found("window.rs", ""), ["belongs to no room: tidy/rooms.rs has the list"]);
        assert_eq!(judge(&[file("house/low/a.rs", "")], &HOUSE).len(), 1, "door is gone");
    }
}
