//! The command table as it is committed, and what the checks say when it is broken.
//!
//! Each break changes one file of the real table and asserts the file and the member that are reported.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use xtask::check::{self, Finding};
use xtask::model::{self, Command, CommandFile};
use xtask::schema::Schema;
use xtask::{r#gen, reference};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The committed commands, without the `respb` members, so that the tests of those begin from nothing.
fn commands() -> Vec<Command> {
    let mut commands = model::load(&root()).unwrap();
    commands.iter_mut().for_each(|command| command.respb = None);
    commands
}

fn find<'a>(commands: &'a mut [Command], name: &str) -> &'a mut Command {
    commands.iter_mut().find(|command| command.full_name() == name).unwrap()
}

/// Applies a change to one command and asserts that exactly one finding names its file and the member.
fn breaks(name: &str, member: &str, change: impl FnOnce(&mut Command)) {
    let mut commands = commands();
    change(find(&mut commands, name));
    assert_found(&check::check_commands(&commands), name, member);
}

fn assert_found(findings: &[Finding], name: &str, member: &str) {
    let file = format!("{}.json", name.to_lowercase().replace(' ', "-"));
    assert!(
        findings.iter().any(|finding| finding.file == file && finding.member == member),
        "{file}: {member}: not among {findings:#?}"
    );
}

/// Changes the text of one file and returns what is said about it; the schema's findings come first, and as the members
/// are now in another order, a finding about the canonical form comes last.
fn break_text(name: &str, change: impl FnOnce(&mut Value)) -> Vec<String> {
    let schema = Schema::parse(&std::fs::read_to_string(root().join(check::SCHEMA_PATH)).unwrap()).unwrap();
    let mut file = model::load_files(&root()).unwrap().into_iter().find(|file| file.file == name).unwrap();
    let mut value: Value = serde_json::from_str(&file.text).unwrap();
    change(&mut value);
    file.text = serde_json::to_string_pretty(&value).unwrap() + "\n";
    check::check_file(&schema, &file).unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn the_table_is_sound() {
    let (count, findings) = check::check_tree(&root()).unwrap();
    assert_eq!(findings, []);
    let commands = commands();
    assert_eq!(count, commands.len());
    assert_eq!(commands.iter().filter(|command| command.module.is_some()).count(), 37);
    // Those of Valkey 9.1; COMMAND OPCODES, which is of RESPB; PROGRAM and TRIGGER with their subcommands.
    assert_eq!(commands.iter().filter(|command| command.module.is_none()).count(), 425 + 1 + 21);
}

#[test]
fn generated_files_are_up_to_date() {
    let stale = r#gen::stale(&root(), &model::load(&root()).unwrap()).unwrap();
    let paths: Vec<_> = stale.iter().map(|(path, _)| *path).collect();
    assert_eq!(paths, [""; 0], "run `xtask gen`");
}

#[test]
fn the_reference_has_every_command_once() {
    let commands = commands();
    let page = reference::generate(&root(), &commands).expect("the page of what is not served is there");
    let headings: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let names: BTreeSet<_> = commands.iter().map(Command::full_name).collect();
    assert_eq!(headings.len(), names.len());
    assert_eq!(headings.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), names);
}

#[test]
fn texts_are_one_line_and_do_not_repeat() {
    let mut seen = BTreeSet::new();
    for command in commands() {
        assert!(command.summary.len() <= 120, "{}: {}", command.file_name(), command.summary);
        let cost = &command.complexity;
        let is_cost = ["O(", "Depends on ", "As DUMP and DEL", "Not of interest"]
            .iter()
            .any(|each| cost.starts_with(each));
        assert!(is_cost, "{}: {cost}", command.file_name());
        let is_help = command.name == "HELP";
        assert!(
            is_help || seen.insert(command.summary.clone()),
            "{}: {}",
            command.file_name(),
            command.summary
        );
    }
}

#[test]
fn unknown_members_are_refused_by_the_model() {
    let error = model::parse("set.json", r#"{"name": "SET", "sumary": "x"}"#).err().unwrap();
    let error = format!("{error:#}");
    assert!(error.contains("set.json") && error.contains("sumary"), "{error}");
    let error = format!("{:#}", model::parse("set.json", "{").err().unwrap());
    assert!(error.contains("set.json"), "{error}");
}

#[test]
fn the_schema_names_file_and_member() {
    let found = break_text("set.json", |file| file["group"] = json!("strings"));
    assert!(found[0].starts_with("set.json: group: "), "{found:?}");
    let found = break_text("set.json", |file| file["arguments"][2]["arguments"][0]["type"] = json!("token"));
    assert!(found[0].starts_with("set.json: arguments[2].arguments[0].type: "), "{found:?}");
    let found = break_text("set.json", |file| file["summary"] = json!("Set a key."));
    assert!(found[0].starts_with("set.json: summary: "), "{found:?}");
    let found =
        break_text("set.json", |file| file["key_specs"][0]["begin_search"] = json!({"index": {"pos": 0}}));
    assert!(found[0].starts_with("set.json: key_specs[0].begin_search.index.pos: "), "{found:?}");
    let found = break_text("set.json", |file| file["history"][0][0] = json!("2.6"));
    assert!(found[0].starts_with("set.json: history[0][0]: "), "{found:?}");
}

#[test]
fn the_schema_checks_layouts() {
    let respb = |value: Value| break_text("set.json", move |file| file["respb"] = value);
    let key = json!({"name": "key", "type": "str16", "key": true});
    let only_form = |found: Vec<String>| found.iter().all(|line| line.contains("canonical form"));
    assert!(only_form(respb(json!({"opcode": "0x0001", "fields": [key]}))));
    assert!(only_form(respb(json!({"opcode": "0x0001", "layout": "args"}))));
    assert!(only_form(respb(
        json!({"opcode": "0xF000", "module": "0x0001", "command": "0x0000", "fields": []})
    )));
    assert!(only_form(respb(json!({"opcode": "0x0307", "via": "CLIENT"}))));
    let list = json!({"name": "keys", "type": "list16", "items": [key], "count": "argument", "min": 1});
    assert!(only_form(respb(json!({"opcode": "0x0001", "fields": [list]}))));
    let options = json!({"name": "options", "type": "opts8", "exclusive": [["NX", "XX"]], "bits": [
        {"token": "EX", "fields": [{"name": "seconds", "type": "i64"}]}, {"token": "NX"}, {"token": "XX"}]});
    assert!(only_form(respb(json!({"opcode": "0x0001", "fields": [key, options]}))));
    for wrong in [
        json!({"opcode": "0x0800", "fields": []}),
        json!({"opcode": "0x0001"}),
        json!({"opcode": "0x0001", "fields": [], "layout": "args"}),
        json!({"opcode": "0x0001", "fields": [{"name": "key", "type": "str8"}]}),
        json!({"opcode": "0x0001", "fields": [{"name": "key", "type": "i64", "values": ["A", "B"]}]}),
        json!({"opcode": "0x0001", "fields": [{"name": "keys", "type": "list16", "items": [key]}]}),
        json!({"opcode": "0x0001", "fields": [{"name": "options", "type": "opts8"}]}),
    ] {
        let found = respb(wrong.clone());
        assert!(found.iter().any(|line| line.starts_with("set.json: respb")), "{wrong}: {found:?}");
    }
}

#[test]
fn text_and_file_name_are_canonical() {
    let schema = Schema::parse("{}").unwrap();
    let file = |file: &str, change: fn(String) -> String| {
        let mut found =
            model::load_files(&root()).unwrap().into_iter().find(|each| each.file == "get.json").unwrap();
        found.text = change(found.text);
        check::check_file(&schema, &CommandFile { file: file.to_owned(), ..found }).unwrap()
    };
    assert_eq!(file("get.json", |text| text), []);
    assert_eq!(file("got.json", |text| text)[0].member, "name");
    assert_eq!(file("get.json", |text| text.replace("  ", "\t"))[0].member, "(whole file)");
}

#[test]
fn members_that_contradict_each_other() {
    breaks("GET", "acl_categories", |get| get.flags.retain(|flag| flag != "fast"));
    breaks("GET", "flags", |get| get.flags.reverse());
    breaks("GET", "acl_categories", |get| get.acl_categories.reverse());
    breaks("GET", "acl_categories", |get| get.acl_categories.push("@slow".to_owned()));
    breaks("GET", "arity", |get| get.arity = 3);
    breaks("SET", "arity", |set| set.arity = -4);
    breaks("SET", "arity", |set| set.arity = 3);
    breaks("GET", "keys", |get| get.keys.last = 2);
    breaks("GET", "key_specs[0].flags", |get| get.key_specs[0].flags.clear());
    breaks("GET", "arguments[0].key_spec_index", |get| get.arguments[0].key_spec_index = Some(1));
    breaks("GET", "arguments[0].key_spec_index", |get| get.arguments[0].key_spec_index = None);
    breaks("SORT", "flags", |sort| sort.flags.retain(|flag| flag != "movablekeys"));
    breaks("SET", "arguments[2].arguments", |set| set.arguments[2].arguments.clear());
    breaks("SET", "arguments[2].arguments[0].token", |set| set.arguments[2].arguments[0].token = None);
    breaks("MSET", "arguments[0].arguments[1].name", |mset| {
        mset.arguments[0].arguments[1].name = "key".to_owned()
    });
    breaks("SLAVEOF", "deprecated_since", |slaveof| slaveof.deprecated_since = None);
    breaks("JSON.SET", "module", |set| set.module = None);
}

#[test]
fn files_that_contradict_each_other() {
    breaks("CLIENT LIST", "group", |list| list.group = "server".to_owned());
    let mut orphans = commands();
    orphans.retain(|command| command.full_name() != "CLIENT");
    assert_found(&check::check_commands(&orphans), "CLIENT LIST", "container");
    let mut commands = commands();
    commands.push(commands[0].clone());
    let name = commands[0].full_name();
    assert_found(&check::check_commands(&commands), &name, "name");
}

/// Gives every command a `respb` member that passes.
fn commands_with_layouts() -> Vec<Command> {
    let mut commands = commands();
    let mut numbers = std::collections::BTreeMap::new();
    for command in &commands {
        if command.container.is_none() {
            let number = numbers.len();
            numbers.insert(command.name.clone(), number);
        }
    }
    for command in &mut commands {
        let number = |name: &str| format!("0x{:04X}", numbers[name]);
        let respb = match (&command.container, &command.module) {
            (Some(container), _) => json!({"opcode": number(container), "via": container}),
            (None, None) => json!({"opcode": number(&command.name), "layout": "args"}),
            (None, Some(_)) => {
                let number = number(&command.name);
                json!({"opcode": "0xF000", "module": "0x0001", "command": number, "layout": "args"})
            }
        };
        command.respb = Some(serde_json::from_value(respb).unwrap());
    }
    commands
}

/// Replaces one command's layout and asserts which member is reported.
fn breaks_layout(name: &str, member: &str, respb: Value) {
    let mut commands = commands_with_layouts();
    let opcode = find(&mut commands, name).respb.as_ref().unwrap().opcode;
    let mut respb = respb;
    if respb.get("opcode").is_none() {
        respb["opcode"] = json!(opcode.to_string());
    }
    find(&mut commands, name).respb = Some(serde_json::from_value(respb).unwrap());
    assert_found(&check::check_commands(&commands), name, member);
}

#[test]
fn layouts_that_contradict_each_other() {
    assert_eq!(check::check_commands(&commands_with_layouts()), []);
    let mut commands = commands_with_layouts();
    find(&mut commands, "GET").respb = None;
    assert_found(&check::check_commands(&commands), "GET", "respb");
    breaks_layout("GET", "respb", json!({}));
    breaks_layout("GET", "respb.opcode", json!({"opcode": "0x0000", "layout": "args"}));
    breaks_layout(
        "GET",
        "respb.opcode",
        json!({"opcode": "0xF000", "module": "0x0009", "command": "0x0000", "fields": []}),
    );
    breaks_layout("CLIENT LIST", "respb.opcode", json!({"opcode": "0x0000", "via": "CLIENT"}));
    breaks_layout("CLIENT LIST", "respb.via", json!({"via": "ACL"}));
    breaks_layout("CLIENT LIST", "respb.via", json!({"layout": "args"}));
    breaks_layout("GET", "respb.fields", json!({"fields": []}));
    breaks_layout("SET", "respb.fields", json!({"fields": [{"name": "key", "type": "str16", "key": true}]}));
    breaks_layout(
        "ECHO",
        "respb.fields",
        json!({"fields": [{"name": "message", "type": "str16", "key": true}]}),
    );
}

#[test]
fn fields_that_are_malformed() {
    let key = json!({"name": "key", "type": "str16", "key": true});
    let value = json!({"name": "value", "type": "blob32"});
    let set = |member: &str, options: Value| {
        breaks_layout("SET", member, json!({"fields": [key.clone(), value.clone(), options]}));
    };
    set("respb.fields[2].name", json!({"name": "key", "type": "i64"}));
    set("respb.fields[2].values", json!({"name": "x", "type": "u16", "values": ["A", "B"]}));
    set("respb.fields[2].items", json!({"name": "x", "type": "list16", "count": "none", "min": 1}));
    set("respb.fields[2].bits", json!({"name": "x", "type": "opts8"}));
    let bits: Vec<Value> = (0..9).map(|bit| json!({"token": format!("T{bit}")})).collect();
    set("respb.fields[2].bits", json!({"name": "x", "type": "opts8", "bits": bits}));
    let two = json!([{"token": "NX"}, {"token": "NX"}]);
    set("respb.fields[2].bits[1]", json!({"name": "x", "type": "opts8", "bits": two}));
    let needy = json!([{"token": "NX", "requires": "COUNT"}]);
    set("respb.fields[2].bits[0].requires", json!({"name": "x", "type": "opts8", "bits": needy}));
    let options =
        json!({"name": "x", "type": "opts8", "bits": [{"token": "NX"}], "exclusive": [["NX", "XX"]]});
    set("respb.fields[2].exclusive", options);
}

#[test]
fn drift_is_seen_and_mended() {
    let dir = std::env::temp_dir().join(format!("xtask-drift-{}", std::process::id()));
    for source in [xtask::c_table::ERRORS_PATH, xtask::compared::ACCEPTED_PATH, reference::COMPATIBILITY] {
        std::fs::create_dir_all(dir.join(source).parent().unwrap()).unwrap();
        std::fs::copy(root().join(source), dir.join(source)).unwrap();
    }
    let commands = model::load(&root()).unwrap();
    let written = r#gen::write(&dir, &commands).unwrap();
    assert_eq!(written.len(), r#gen::GENERATED.len());
    assert_eq!(r#gen::stale(&dir, &commands).unwrap(), []);
    std::fs::write(dir.join("spec/commands.csv"), "edited by hand\n").unwrap();
    let stale = r#gen::stale(&dir, &commands).unwrap();
    assert_eq!(stale.iter().map(|(path, _)| *path).collect::<Vec<_>>(), ["spec/commands.csv"]);
    std::fs::remove_dir_all(&dir).unwrap();
}
