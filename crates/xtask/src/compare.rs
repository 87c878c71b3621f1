//! Compares the command table with what a live server says about its commands (`COMMAND INFO` and `COMMAND DOCS`).
//!
//! It owns the comparison. Both sides become facts: for each command a map from a member to its value as text; the
//! differences of the maps are the result. Summary, complexity, notes and history texts are ours alone and are not
//! compared, of the history only its versions are. What a server is too old to have is left out on our side, by the
//! `since` of commands and arguments and the versions of the history.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use crate::model::{Argument, ArgumentType, BeginSearch, Command, FindKeys};
use crate::resp2::{Client, Value};

/// Redis 7.2 gave new names and new nesting to most arguments, and Valkey began from there; the trees of an older
/// server are not compared.
const ARGUMENTS_SINCE: Version = Version([7, 2, 0]);

/// What the name of a Sentinel ends in.
const SENTINEL_SUFFIX: &str = "-sentinel";

/// Member and value, both as text.
pub type Facts = BTreeMap<String, String>;

/// What a server says of itself and its commands.
pub struct Server {
    /// `valkey`, `redis` or what else the server calls itself; with `-sentinel` after it for a Sentinel.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Facts of each command, by ACL name.
    pub commands: BTreeMap<String, Facts>,
}

impl Server {
    /// True for a Sentinel process, which has few commands of a server and some of its own.
    #[must_use]
    pub fn is_sentinel(&self) -> bool {
        self.name.ends_with(SENTINEL_SUFFIX)
    }
}

/// Three numbers, compared in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u32; 3]);

impl Version {
    /// Reads `9.1.2`; parts that are missing or no number count as 0.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
        Self(std::array::from_fn(|_| parts.next().unwrap_or(0)))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch] = self.0;
        write!(formatter, "{major}.{minor}.{patch}")
    }
}

/// The result of a comparison.
#[derive(Default)]
pub struct Comparison {
    /// Commands that both sides have.
    pub compared: usize,
    /// Facts compared of them.
    pub facts: usize,
    /// Commands of the table that the server is too old for.
    pub newer: usize,
    /// Commands of the table that only a Sentinel has, and the server is none.
    pub sentinel: usize,
    /// Commands of the table that a Sentinel does not have, and the server is one.
    pub sentinel_lacks: usize,
    /// Commands of the table whose module the server has not loaded.
    pub module: usize,
    /// One line for each difference: command, member, both values.
    pub differences: BTreeSet<String>,
}

/// Asks the server at `HOST:PORT`.
///
/// # Errors
/// When the server cannot be reached or does not know `COMMAND DOCS`.
pub fn ask(address: &str) -> Result<Server> {
    let mut client = Client::connect(address)?;
    let info = client.call(&["INFO", "server"])?;
    let field = |name: &str| {
        info.text()
            .lines()
            .find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
    };
    let (mut name, version) = match (field("server_name"), field("valkey_version")) {
        (Some(name), Some(version)) => (name, version),
        (Some(name), None) => {
            let version = field(&format!("{name}_version")).or_else(|| field("redis_version"));
            (name, version.context("INFO has no version")?)
        }
        (None, _) => ("redis".to_owned(), field("redis_version").context("INFO has no version")?),
    };
    if field("server_mode").or_else(|| field("redis_mode")).as_deref() == Some("sentinel") {
        name.push_str(SENTINEL_SUFFIX);
    }
    let mut commands = BTreeMap::new();
    for command in client.call(&["COMMAND", "INFO"])?.items() {
        collect_info(command, &mut commands);
    }
    for (name, docs) in client.call(&["COMMAND", "DOCS"])?.pairs() {
        collect_docs(name, docs, &mut commands);
    }
    Ok(Server { name, version: Version::parse(&version), commands })
}

/// Compares the table with what a server said.
#[must_use]
pub fn compare(table: &[Command], server: &Server) -> Comparison {
    let mut result = Comparison::default();
    let mut known = BTreeSet::new();
    for command in table {
        let name = command.acl_name();
        known.insert(name.clone());
        let Some(theirs) = server.commands.get(&name) else {
            if server.is_sentinel() && !command.is_sentinel() {
                result.sentinel_lacks += 1;
            } else if command.is_sentinel_only() {
                result.sentinel += 1;
            } else if command.module.is_some() {
                result.module += 1;
            } else if Version::parse(&command.since) > server.version {
                result.newer += 1;
            } else {
                result.differences.insert(format!("{name}: the server does not have it"));
            }
            continue;
        };
        result.compared += 1;
        let ours = facts(command, server.version);
        result.facts += ours.len();
        for member in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
            let (one, other) = (ours.get(member), theirs.get(member));
            let passed_over = member.starts_with("arguments") && server.version < ARGUMENTS_SINCE;
            if one != other && !passed_over {
                let show = |value: Option<&String>| {
                    value.map_or_else(|| "nothing".to_owned(), |text| format!("`{text}`"))
                };
                result.differences.insert(format!(
                    "{name}: {member}: table {}, server {}",
                    show(one),
                    show(other)
                ));
            }
        }
    }
    for name in server.commands.keys().filter(|name| !known.contains(*name)) {
        result.differences.insert(format!("{name}: the table does not have it"));
    }
    result
}

/// Our facts of one command, without what is newer than `version`.
fn facts(command: &Command, version: Version) -> Facts {
    let mut facts = Facts::new();
    let mut put = |member: &str, value: String| {
        if !value.is_empty() {
            facts.insert(member.to_owned(), value);
        }
    };
    put("arity", command.arity.to_string());
    put("flags", command.flags.join(" "));
    put("keys", format!("{} {} {}", command.keys.first, command.keys.last, command.keys.step));
    put("acl_categories", command.acl_categories.join(" "));
    put("hints", sorted(command.hints.iter().map(String::as_str)));
    put("since", command.since.clone());
    put("group", if command.module.is_some() { "module".to_owned() } else { command.group.clone() });
    put("module", command.module.clone().unwrap_or_default());
    put("doc_flags", command.doc_flags.join(" "));
    put("deprecated_since", command.deprecated_since.clone().unwrap_or_default());
    put("replaced_by", command.replaced_by.clone().unwrap_or_default());
    let versions = command.history.iter().map(|(since, _)| since.as_str());
    put("history", versions.filter(|since| Version::parse(since) <= version).collect::<Vec<_>>().join(" "));
    for (index, spec) in command.key_specs.iter().enumerate() {
        put(&format!("key_specs[{index}].flags"), spec.flags.join(" "));
        put(&format!("key_specs[{index}].begin_search"), begin_search(&spec.begin_search));
        put(&format!("key_specs[{index}].find_keys"), find_keys(&spec.find_keys));
    }
    argument_facts(&command.arguments, "arguments", version, &mut facts);
    facts
}

fn begin_search(search: &BeginSearch) -> String {
    match search {
        BeginSearch::Index { pos } => format!("index {pos}"),
        BeginSearch::Keyword { keyword, startfrom } => format!("keyword {keyword} {startfrom}"),
        BeginSearch::Unknown => "unknown".to_owned(),
    }
}

fn find_keys(keys: &FindKeys) -> String {
    match keys {
        FindKeys::Range { lastkey, step, limit } => format!("range {lastkey} {step} {limit}"),
        FindKeys::Keynum { keynumidx, firstkey, step } => format!("keynum {keynumidx} {firstkey} {step}"),
        FindKeys::Unknown => "unknown".to_owned(),
    }
}

fn argument_facts(arguments: &[Argument], path: &str, version: Version, facts: &mut Facts) {
    let since = |argument: &Argument| argument.since.as_deref().map(Version::parse);
    let there: Vec<_> =
        arguments.iter().filter(|each| since(each).is_none_or(|since| since <= version)).collect();
    put_names(there.iter().map(|each| each.name.as_str()), path, facts);
    for argument in there {
        let nests = matches!(argument.kind, ArgumentType::Oneof | ArgumentType::Block);
        let shown = argument.display_text.as_ref().unwrap_or(&argument.name);
        let mut words = vec![kind_name(argument.kind).to_owned()];
        let mut put = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("{name}={value}")));
        };
        put("display_text", (!nests).then(|| shown.clone()));
        put("key_spec_index", argument.key_spec_index.map(|index| index.to_string()));
        put("token", argument.token.clone());
        put("since", argument.since.clone());
        put("deprecated_since", argument.deprecated_since.clone());
        for (flag, set) in [
            ("optional", argument.optional),
            ("multiple", argument.multiple),
            ("multiple_token", argument.multiple_token),
        ] {
            words.extend(set.then(|| flag.to_owned()));
        }
        let member = format!("{path}.{}", argument.name);
        facts.insert(member.clone(), words.join(" "));
        argument_facts(&argument.arguments, &member, version, facts);
    }
}

fn kind_name(kind: ArgumentType) -> &'static str {
    match kind {
        ArgumentType::Key => "key",
        ArgumentType::String => "string",
        ArgumentType::Integer => "integer",
        ArgumentType::Double => "double",
        ArgumentType::Pattern => "pattern",
        ArgumentType::UnixTime => "unix-time",
        ArgumentType::PureToken => "pure-token",
        ArgumentType::Oneof => "oneof",
        ArgumentType::Block => "block",
    }
}

/// The order of the arguments of a list is a fact of its own.
fn put_names<'a>(names: impl Iterator<Item = &'a str>, path: &str, facts: &mut Facts) {
    let names: Vec<_> = names.collect();
    if !names.is_empty() {
        facts.insert(format!("{path} in order"), names.join(" "));
    }
}

fn sorted<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut words: Vec<_> = words.collect();
    words.sort_unstable();
    words.join(" ")
}

fn texts(value: &Value) -> Vec<&str> {
    value.items().iter().map(Value::text).collect()
}

/// Facts from one entry of `COMMAND INFO`, and from those of its subcommands.
fn collect_info(entry: &Value, commands: &mut BTreeMap<String, Facts>) {
    let [name, arity, flags, first, last, step, categories, tips, specs, subcommands] = entry.items() else {
        return;
    };
    let facts = commands.entry(name.text().to_owned()).or_default();
    let mut put = |member: &str, value: String| {
        if !value.is_empty() {
            facts.insert(member.to_owned(), value);
        }
    };
    let number = |value: &Value| value.integer().unwrap_or_default().to_string();
    put("arity", number(arity));
    put("flags", texts(flags).join(" "));
    put("keys", format!("{} {} {}", number(first), number(last), number(step)));
    put("acl_categories", texts(categories).join(" "));
    put("hints", sorted(texts(tips).into_iter()));
    for (index, spec) in specs.items().iter().enumerate() {
        put(&format!("key_specs[{index}].flags"), spec.get("flags").map(texts).unwrap_or_default().join(" "));
        for member in ["begin_search", "find_keys"] {
            let value = spec.get(member).map(search_text).unwrap_or_default();
            put(&format!("key_specs[{index}].{member}"), value);
        }
    }
    subcommands.items().iter().for_each(|subcommand| collect_info(subcommand, commands));
}

/// `begin_search` and `find_keys` as the server sends them, in the words of [`begin_search`] and [`find_keys`].
fn search_text(value: &Value) -> String {
    let mut words = vec![value.get("type").map(Value::text).unwrap_or_default().to_owned()];
    let spec = value.get("spec");
    for name in ["index", "keyword", "startfrom", "lastkey", "keynumidx", "firstkey", "keystep", "limit"] {
        match spec.and_then(|spec| spec.get(name)) {
            Some(Value::Text(text)) => words.push(text.clone()),
            Some(Value::Integer(number)) => words.push(number.to_string()),
            _ => {}
        }
    }
    words.join(" ")
}

/// Facts from one entry of `COMMAND DOCS`, and from those of its subcommands.
fn collect_docs(name: &str, docs: &Value, commands: &mut BTreeMap<String, Facts>) {
    let facts = commands.entry(name.to_owned()).or_default();
    for member in ["since", "group", "module", "deprecated_since", "replaced_by"] {
        if let Some(value) = docs.get(member) {
            facts.insert(member.to_owned(), value.text().replace('`', ""));
        }
    }
    if let Some(flags) = docs.get("doc_flags") {
        facts.insert("doc_flags".to_owned(), texts(flags).join(" "));
    }
    if let Some(history) = docs.get("history") {
        let versions: Vec<_> = history.items().iter().filter_map(|entry| entry.items().first()).collect();
        facts.insert(
            "history".to_owned(),
            versions.iter().map(|each| each.text()).collect::<Vec<_>>().join(" "),
        );
    }
    if let Some(arguments) = docs.get("arguments") {
        collect_arguments(arguments, "arguments", facts);
    }
    for (name, docs) in docs.get("subcommands").into_iter().flat_map(Value::pairs) {
        collect_docs(name, docs, commands);
    }
}

fn collect_arguments(arguments: &Value, path: &str, facts: &mut Facts) {
    let name_of =
        |argument: &Value| argument.get("name").map(|name| name.text().to_owned()).unwrap_or_default();
    let names: Vec<_> = arguments.items().iter().map(name_of).collect();
    put_names(names.iter().map(String::as_str), path, facts);
    for (argument, name) in arguments.items().iter().zip(names) {
        let text = |member: &str| argument.get(member).map(|value| value.text().to_owned());
        let mut words = vec![text("type").unwrap_or_default()];
        for member in ["display_text", "key_spec_index", "token", "since", "deprecated_since"] {
            let value = argument.get(member);
            let value =
                value.map(|each| each.integer().map_or_else(|| each.text().to_owned(), |n| n.to_string()));
            words.extend(value.map(|value| format!("{member}={value}")));
        }
        words.extend(argument.get("flags").map(texts).unwrap_or_default().into_iter().map(str::to_owned));
        let member = format!("{path}.{name}");
        facts.insert(member.clone(), words.join(" "));
        if let Some(nested) = argument.get("arguments") {
            collect_arguments(nested, &member, facts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    /// A table of one command.
    fn table() -> Vec<Command> {
        let text = r#"{"name": "X", "group": "string", "summary": "s", "complexity": "c", "since": "1.0.0",
            "arity": -2, "flags": ["write"], "acl_categories": ["@write"],
            "key_specs": [{"flags": ["RW"], "begin_search": {"index": {"pos": 1}},
                "find_keys": {"range": {"lastkey": 0, "step": 1, "limit": 0}}}],
            "keys": {"first": 1, "last": 1, "step": 1},
            "arguments": [{"name": "key", "type": "key", "key_spec_index": 0},
                {"name": "new", "type": "pure-token", "token": "NEW", "since": "9.0.0", "optional": true}]}"#;
        vec![crate::model::parse("x.json", text).unwrap()]
    }

    fn bulk(text: &str) -> String {
        format!("${}\r\n{text}\r\n", text.len())
    }

    fn array(items: &[String]) -> String {
        format!("*{}\r\n{}", items.len(), items.concat())
    }

    fn texts(words: &[&str]) -> String {
        array(&words.iter().map(|word| bulk(word)).collect::<Vec<_>>())
    }

    /// A server that answers the three questions with what version 8.0.0 would say, but for the arity.
    fn serve(arity: i32) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let number = |number: i32| format!(":{number}\r\n");
        let index = array(&[bulk("type"), bulk("index"), bulk("spec"), array(&[bulk("index"), number(1)])]);
        let range =
            array(&[bulk("lastkey"), number(0), bulk("keystep"), number(1), bulk("limit"), number(0)]);
        let range = array(&[bulk("type"), bulk("range"), bulk("spec"), range]);
        let spec = [bulk("flags"), texts(&["RW"]), bulk("begin_search"), index, bulk("find_keys"), range];
        let info = [
            bulk("x"),
            number(arity),
            texts(&["write"]),
            number(1),
            number(1),
            number(1),
            texts(&["@write"]),
            array(&[]),
            array(&[array(&spec)]),
            array(&[]),
        ];
        let key = ["name", "key", "type", "key", "display_text", "key", "key_spec_index"].map(bulk);
        let key = array(&[&key[..], &[number(0)]].concat());
        let docs =
            [bulk("since"), bulk("1.0.0"), bulk("group"), bulk("string"), bulk("arguments"), array(&[key])];
        let replies = [
            bulk("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.0\r\n"),
            array(&[array(&info)]),
            array(&[bulk("x"), array(&docs)]),
        ];
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for reply in replies {
                let mut request = [0; 256];
                assert!(stream.read(&mut request).unwrap() > 0);
                stream.write_all(reply.as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn newer_arguments_are_left_out() {
        let server = ask(&serve(-2)).unwrap();
        assert_eq!((server.name.as_str(), server.version), ("valkey", Version([8, 0, 0])));
        let result = compare(&table(), &server);
        assert_eq!(result.differences, BTreeSet::new());
        assert_eq!(result.compared, 1);
    }

    #[test]
    fn differences_name_command_and_member() {
        let server = ask(&serve(3)).unwrap();
        let mut table = table();
        table[0].arguments[0].name = "other".to_owned();
        let differences: Vec<_> = compare(&table, &server).differences.into_iter().collect();
        assert_eq!(differences.len(), 4, "{differences:?}");
        assert!(differences.contains(&"x: arity: table `-2`, server `3`".to_owned()), "{differences:?}");
        assert!(differences.contains(&"x: arguments in order: table `other`, server `key`".to_owned()));
    }

    #[test]
    fn commands_of_one_side_only() {
        let mut server = ask(&serve(-2)).unwrap();
        let facts = server.commands.remove("x").unwrap();
        server.commands.insert("y".to_owned(), facts);
        let differences: Vec<_> = compare(&table(), &server).differences.into_iter().collect();
        assert_eq!(differences, ["x: the server does not have it", "y: the table does not have it"]);
        let mut newer = table();
        newer[0].since = "8.0.1".to_owned();
        assert_eq!(compare(&newer, &server).newer, 1);
    }
}
