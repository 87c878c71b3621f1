//! The description of the HTTP wire for tools and for people, from the command table: `/v1/openapi.json` (OpenAPI 3.1)
//! and `/v1/docs`, a page that needs neither scripts nor the network.
//!
//! It owns both forms, and how a command's arguments become a path and a query: what must be given, up to the first
//! argument that may be left out, stands in the path; words that may be left out are names of the query, as
//! `?EX=10&NX=`. What neither can say is sent as JSON, which the page says too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};

use crate::model::{Argument, ArgumentType, Command};
use crate::reference::Unserved;
use crate::syntax;

/// What would leave a request without its answer, and is refused over HTTP.
const UNANSWERED: [&str; 2] = ["CLIENT REPLY", "QUIT"];

/// Commands that are described: those that are served, and not containers, of which each subcommand is a command.
fn described<'c>(root: &Path, commands: &'c [Command]) -> Result<Vec<&'c Command>> {
    let unserved = Unserved::read(root)?;
    let containers: Vec<&str> = commands.iter().filter_map(|command| command.container.as_deref()).collect();
    let streams = |command: &Command| command.policy.iter().any(|word| word == "streams");
    Ok(commands
        .iter()
        .filter(|command| !command.is_sentinel_only() && !streams(command))
        .filter(|command| !UNANSWERED.contains(&command.full_name().as_str()))
        .filter(|command| unserved.reason(&command.full_name()).is_none())
        .filter(|command| {
            command.container.is_some() || !containers.contains(&command.name.as_str()) || command.arity > 0
        })
        .collect())
}

/// Whether a GET may ask for it: as the server decides (`server::http::access::only_reads`).
fn is_read(command: &Command) -> bool {
    let has = |flag: &str| command.flags.iter().chain(&command.hidden_flags).any(|own| own == flag);
    let in_category = |name: &&str| command.acl_categories.iter().any(|own| own == name);
    let harmful = ["@admin", "@dangerous", "@scripting", "@pubsub", "@write", "@transaction", "@blocking"];
    let is_mild =
        !(has("write") || has("may_replicate") || has("no_auth") || harmful.iter().any(in_category));
    is_mild || has("readonly") && !in_category(&"@scripting")
}

/// The path of a command with names for what must be given.
struct Shape<'c> {
    path: String,
    given: Vec<&'c Argument>,
    /// The last of them may be followed by more of its kind.
    repeats: bool,
    /// Words that may be left out, with what stands behind them.
    query: Vec<(&'c str, Option<&'c Argument>)>,
    /// Something in its syntax can only be sent as JSON.
    rest: bool,
}

fn is_plain(argument: &Argument) -> bool {
    !argument.optional
        && argument.token.is_none()
        && !matches!(argument.kind, ArgumentType::Oneof | ArgumentType::Block | ArgumentType::PureToken)
}

fn shape(command: &Command) -> Shape<'_> {
    let mut path = format!("/{}", command.full_name().to_lowercase().replace(' ', "/"));
    let (mut given, mut query, mut rest, mut repeats) = (Vec::new(), Vec::new(), false, false);
    let mut arguments = command.arguments.iter().peekable();
    while let Some(argument) = arguments.next_if(|argument| is_plain(argument) && !repeats) {
        let _ = write!(path, "/{{{}}}", name(argument, &given));
        repeats = argument.multiple;
        given.push(argument);
    }
    for argument in arguments {
        rest |= !options(argument, &mut query);
    }
    // What repeats in the path would swallow what follows it.
    rest |= repeats && !query.is_empty();
    if repeats {
        query.clear();
    }
    Shape { path, given, repeats, query, rest }
}

/// A name for a place in the path: unique there.
fn name(argument: &Argument, before: &[&Argument]) -> String {
    let same = before.iter().filter(|other| other.name == argument.name).count();
    if same == 0 { argument.name.clone() } else { format!("{}{}", argument.name, same + 1) }
}

/// Adds the words of an argument that may be left out; false if it has more than those.
fn options<'c>(argument: &'c Argument, query: &mut Vec<(&'c str, Option<&'c Argument>)>) -> bool {
    if argument.multiple || !argument.optional {
        return false;
    }
    let alternatives = match argument.kind {
        ArgumentType::Oneof if argument.token.is_none() => &argument.arguments[..],
        _ => std::slice::from_ref(argument),
    };
    alternatives.iter().all(|alternative| {
        let Some(token) =
            alternative.token.as_deref().filter(|token| !token.contains(' ') && !token.is_empty())
        else {
            return false;
        };
        let value = match alternative.kind {
            ArgumentType::PureToken => None,
            ArgumentType::Oneof | ArgumentType::Block => return false,
            _ if alternative.multiple => return false,
            _ => Some(alternative),
        };
        if query.iter().all(|&(name, _)| name != token) {
            query.push((token, value));
        }
        true
    })
}

fn schema(kind: ArgumentType) -> Value {
    match kind {
        ArgumentType::Integer | ArgumentType::UnixTime => json!({"type": "integer"}),
        ArgumentType::Double => json!({"type": "number"}),
        _ => json!({"type": "string"}),
    }
}

fn parameters(shape: &Shape<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    for (at, argument) in shape.given.iter().enumerate() {
        let name = name(argument, &shape.given[..at]);
        let mut parameter =
            json!({"name": name, "in": "path", "required": true, "schema": schema(argument.kind)});
        if shape.repeats && at + 1 == shape.given.len() {
            parameter["description"] = json!("More may follow, each behind another /.");
        }
        all.push(parameter);
    }
    for (token, value) in &shape.query {
        let schema =
            value.map_or_else(|| json!({"type": "string", "maxLength": 0}), |value| schema(value.kind));
        let mut parameter = json!({"name": token, "in": "query", "required": false, "schema": schema});
        if value.is_none() {
            parameter["allowEmptyValue"] = json!(true);
        }
        all.push(parameter);
    }
    all
}

fn operation(command: &Command, shape: &Shape<'_>, method: &str) -> Value {
    let id = format!("{method}_{}", command.full_name().to_lowercase().replace([' ', '.', '-'], "_"));
    let mut description = format!("`{}`\n\nCost: {}.", syntax::line(command), command.complexity);
    if shape.rest {
        description.push_str(" What its path and query cannot say is sent as JSON to `/`.");
    }
    let mut operation = json!({
        "operationId": id,
        "tags": [command.group],
        "summary": command.summary,
        "description": description,
        "responses": {"200": {"$ref": "#/components/responses/Reply"}, "default": {"$ref": "#/components/responses/Error"}},
    });
    if method == "post" {
        operation["requestBody"] = json!({"$ref": "#/components/requestBodies/LastArgument"});
    }
    if command.deprecated_since.is_some() {
        operation["deprecated"] = json!(true);
    }
    operation
}

/// `/v1/openapi.json`.
pub fn openapi(root: &Path, commands: &[Command]) -> Result<String> {
    let mut paths = wire_paths();
    paths.extend(crate::openapi_resources::paths());
    for command in described(root, commands)? {
        let shape = shape(command);
        let mut item = Map::new();
        let parameters = parameters(&shape);
        if !parameters.is_empty() {
            item.insert("parameters".into(), Value::Array(parameters));
        }
        if is_read(command) {
            item.insert("get".into(), operation(command, &shape, "get"));
        }
        item.insert("post".into(), operation(command, &shape, "post"));
        let before = paths.insert(shape.path.clone(), Value::Object(item));
        ensure!(before.is_none(), "two commands have the path {}", shape.path);
    }
    let mut components = components();
    crate::openapi_resources::add_components(&mut components);
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Weft",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "An in-memory store, as HTTP and JSON",
            "description": "Each command is a path with its arguments, or a JSON array sent to `/`. Replies are \
                            `{\"result\": …}`, errors `{\"error\": \"…\"}` with a status.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"basic": []}, {"query": []}, {}],
        "paths": paths,
        "components": components,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn components() -> Value {
    json!({
        "securitySchemes": {
            "token": {"type": "http", "scheme": "bearer", "description": "A token of `weft token create`, or the default user's password."},
            "basic": {"type": "http", "scheme": "basic"},
            "query": {"type": "apiKey", "in": "query", "name": "_token", "description": "A token, where no header can be sent."},
        },
        "schemas": {
            "Command": {
                "description": "A command with its arguments.",
                "type": "array",
                "minItems": 1,
                "items": {"type": ["string", "number", "boolean"]},
                "examples": [["SET", "greeting", "hello", "EX", 60]],
            },
            "Reply": {
                "type": "object",
                "required": ["result"],
                "properties": {"result": {"description": "What the command answers: a string, an integer, an array, or null."}},
            },
            "Error": {
                "type": "object",
                "required": ["error"],
                "properties": {"error": {"type": "string", "examples": ["WRONGTYPE Operation against a key holding the wrong kind of value"]}},
            },
        },
        "requestBodies": {
            "Command": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Command"}}}},
            "Commands": {
                "required": true,
                "content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Command"}}}},
            },
            "LastArgument": {
                "description": "The last argument, as its bytes; it may be left out where the path has them all.",
                "required": false,
                "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            },
        },
        "responses": {
            "Reply": {"description": "What the command answers", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Reply"}}}},
            "Error": {"description": "Why it was not done", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
            "Replies": {
                "description": "A reply or an error for each command, in order",
                "content": {"application/json": {"schema": {"type": "array", "items": {"anyOf": [
                    {"$ref": "#/components/schemas/Reply"},
                    {"$ref": "#/components/schemas/Error"},
                ]}}}},
            },
            "Events": {"description": "Server-sent events", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
            "Text": {"description": "A line of text", "content": {"text/plain": {"schema": {"type": "string"}}}},
        },
    })
}

/// What is not a command of its own.
fn wire_paths() -> BTreeMap<String, Value> {
    let error = json!({"$ref": "#/components/responses/Error"});
    let answers =
        |kind: &str| json!({"200": {"$ref": format!("#/components/responses/{kind}")}, "default": error});
    let operation = |id: &str, summary: &str, kind: &str| json!({"operationId": id, "tags": ["wire"], "summary": summary, "responses": answers(kind)});
    let with_body = |mut operation: Value, body: &str| {
        operation["requestBody"] = json!({"$ref": format!("#/components/requestBodies/{body}")});
        operation
    };
    let name = |name: &str| {
        json!([{"name": name, "in": "path", "required": true, "schema": {"type": "string"},
            "description": "More may follow, each behind another /."}])
    };
    let events = |id: &str, summary: &str, parameter: &str| {
        json!({
            "parameters": name(parameter),
            "get": operation(&format!("get_{id}"), summary, "Events"),
            "post": operation(&format!("post_{id}"), summary, "Events"),
        })
    };
    let health = |id: &str, summary: &str| {
        let mut operation = operation(id, summary, "Text");
        operation["security"] = json!([{}]);
        json!({ "get": operation })
    };
    BTreeMap::from([
        (
            "/".to_owned(),
            json!({"post": with_body(operation("command", "Run a command", "Reply"), "Command")}),
        ),
        (
            "/pipeline".into(),
            json!({"post": with_body(operation("pipeline", "Run commands, each by itself", "Replies"), "Commands")}),
        ),
        (
            "/multi-exec".into(),
            json!({"post": with_body(operation("transaction", "Run commands, all or none", "Replies"), "Commands")}),
        ),
        ("/subscribe/{channel}".into(), events("subscribe", "Receive the messages of channels", "channel")),
        (
            "/psubscribe/{pattern}".into(),
            events("psubscribe", "Receive the messages of the channels that match patterns", "pattern"),
        ),
        (
            "/monitor".into(),
            json!({"post": operation("monitor", "Receive every command that runs", "Events")}),
        ),
        ("/metrics".into(), json!({"get": operation("metrics", "What INFO tells, for Prometheus", "Text")})),
        ("/healthz".into(), health("healthz", "Whether the server lives")),
        ("/readyz".into(), health("readyz", "Whether the server serves")),
    ])
}

/// `/v1/docs`.
pub fn page(root: &Path, commands: &[Command]) -> Result<String> {
    let mut groups: BTreeMap<&str, Vec<&Command>> = BTreeMap::new();
    for command in described(root, commands)? {
        groups.entry(&command.group).or_default().push(command);
    }
    let mut page = String::from(HEAD);
    let links: Vec<String> = groups.keys().map(|group| format!("<a href=\"#{group}\">{group}</a>")).collect();
    let _ = writeln!(page, "<p>{}</p>", links.join(" · "));
    page.push_str(crate::openapi_resources::PAGE);
    for (group, commands) in groups {
        let _ = writeln!(page, "<h2 id=\"{group}\">{group}</h2>");
        for command in commands {
            entry(&mut page, command);
        }
    }
    page.push_str("</html>\n");
    Ok(page)
}

fn entry(page: &mut String, command: &Command) {
    let shape = shape(command);
    let method = if is_read(command) { "GET" } else { "POST" };
    let mut path = shape.path.clone();
    if shape.repeats {
        path.push_str("/…");
    }
    let words: Vec<String> = shape
        .query
        .iter()
        .map(|(token, value)| format!("{token}={}", value.map_or("", |value| value.name.as_str())))
        .collect();
    if !words.is_empty() {
        let _ = write!(path, "[?{}]", words.join("&"));
    }
    let _ = writeln!(
        page,
        "<h3>{}</h3>\n<pre>{method} {}\n{}</pre>\n<p>{}. <small>{}</small></p>",
        escaped(&command.full_name()),
        escaped(&path),
        escaped(&syntax::line(command)),
        escaped(&command.summary),
        escaped(&command.complexity),
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>Weft over HTTP</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:52em;margin:2em auto;padding:0 1em}pre{font:13px/1.5 \
monospace;background:#f3f3f3;padding:.6em 1em;overflow:auto}h3{margin-bottom:.2em}small{color:#555}</style>
<h1>Weft over HTTP</h1>
<p>Each command is a path with its arguments, <code>/get/KEY</code>, or a JSON array in the body of a POST to \
<code>/</code>, which can say everything: <code>[\"SET\",\"k\",\"v\",\"EX\",10]</code>. The body of a POST to a path is \
its last argument. A reply is <code>{\"result\":…}</code>, an error <code>{\"error\":\"…\"}</code>. A GET without \
credentials only reads. The same for tools: <a href=\"/v1/openapi.json\">/v1/openapi.json</a>.</p>
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }
    fn commands() -> Vec<Command> {
        model::load_files(&root()).expect("the table is there").into_iter().map(|file| file.command).collect()
    }

    #[test]
    fn a_path_has_what_must_be_given_and_a_query_the_words() {
        let all = commands();
        let of =
            |name: &str| shape(all.iter().find(|command| command.full_name() == name).expect("a command"));
        let set = of("SET");
        assert_eq!(set.path, "/set/{key}/{value}");
        let words: Vec<&str> = set.query.iter().map(|(token, _)| *token).collect();
        assert!(["NX", "GET", "EX", "KEEPTTL"].iter().all(|word| words.contains(word)), "{words:?}");
        assert!(!set.rest && !set.repeats);
        let mget = of("MGET");
        assert_eq!((mget.path.as_str(), mget.repeats), ("/mget/{key}", true));
        assert_eq!(of("CLIENT SETNAME").path, "/client/setname/{connection-name}");
        assert!(of("HSET").rest, "pairs are sent as JSON");
    }

    #[test]
    fn each_command_that_is_served_is_described_once() {
        let document: Value =
            serde_json::from_str(&openapi(&root(), &commands()).expect("it is made")).expect("JSON");
        let paths = document["paths"].as_object().expect("paths");
        assert!(paths["/get/{key}"]["get"].is_object() && paths["/get/{key}"]["post"].is_object());
        assert!(paths["/set/{key}/{value}"].get("get").is_none(), "what writes has no GET");
        let mut ids: Vec<&str> = paths
            .values()
            .flat_map(|item| {
                ["get", "post"].into_iter().filter_map(|method| item[method]["operationId"].as_str())
            })
            .collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert!(count > 300 && ids.len() == count, "{count} operations, {} names", ids.len());
        let page = page(&root(), &commands()).expect("it is made");
        assert!(page.contains("<pre>GET /get/{key}\nGET &lt;key&gt;</pre>"));
        assert!(!page.contains("<script") && !page.contains("http://"));
    }
}
