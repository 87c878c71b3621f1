//! The part of the HTTP wire's description that no command of the table has: resources, `/v1/…`. It owns their paths,
//! headers and answers in OpenAPI, and their part of the page; what they do says docs/http.md.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Their part of `/v1/docs`.
pub(crate) const PAGE: &str = include_str!("openapi_resources.html");

fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

fn parameters(names: &[&str]) -> Value {
    names.iter().map(|name| reference("parameters", name)).collect()
}

/// An operation with its answers: statuses and the responses of the components.
fn operation(id: &str, summary: &str, names: &[&str], answers: &[(&str, &str)]) -> Value {
    let mut responses: serde_json::Map<String, Value> =
        answers.iter().map(|(status, name)| ((*status).to_owned(), reference("responses", name))).collect();
    responses.insert("default".into(), reference("responses", "Error"));
    json!({"operationId": id, "tags": ["resources"], "summary": summary, "parameters": parameters(names),
        "responses": responses})
}

fn with_body(mut operation: Value, body: &str) -> Value {
    operation["requestBody"] = reference("requestBodies", body);
    operation
}

/// An operation that needs no credentials.
fn for_all(id: &str, summary: &str, answer: &str) -> Value {
    let mut operation = operation(id, summary, &[], &[("200", answer)]);
    operation["security"] = json!([{}]);
    operation
}

/// The paths of resources.
pub(crate) fn paths() -> BTreeMap<String, Value> {
    const CONDITIONS: [&str; 2] = ["IfMatch", "IfNoneMatch"];
    let read = [&CONDITIONS[..], &["Range", "IfRange"]].concat();
    let put = [&CONDITIONS[..], &["Ttl", "TtlMs", "Nx", "Xx"]].concat();
    let patch = [&CONDITIONS[..], &["ContentRange"]].concat();
    let got = [("200", "Value"), ("206", "Value"), ("304", "Unchanged")];
    let written = [("201", "Written"), ("204", "Written")];
    let key = json!({
        "parameters": parameters(&["Database", "Key"]),
        "get": operation("get_key", "Read a key: the bytes of a string, a collection as JSON", &read, &got),
        "put": with_body(operation("put_key", "Set a key", &put, &written), "Value"),
        "patch": with_body(operation("patch_key", "Append to a string, or write a part of it", &patch, &written), "Value"),
        "delete": operation("delete_key", "Delete a key", &CONDITIONS, &[("204", "Written")]),
    });
    let with_key64 = |names: &[&'static str]| [&["Key64"], names].concat();
    let list = with_key64(&["Match", "Cursor", "Limit", "Type"]);
    // What is described of a key counts for one that is named by `key64`, too.
    let of_key64 = |id: &str, summary: &str, names: &[&'static str], answers: &[(&str, &str)]| {
        let mut named = operation(id, summary, &with_key64(names), answers);
        named["parameters"][0] = reference("parameters", "KeyHas64");
        named
    };
    let keys = json!({
        "parameters": parameters(&["Database"]),
        "get": operation("list_keys", "List keys, page by page; with `key64`, read one", &list, &[("200", "KeysOrValue"), ("206", "Value"), ("304", "Unchanged")]),
        "put": with_body(of_key64("put_key64", "Set the key of `key64`", &put, &written), "Value"),
        "patch": with_body(of_key64("patch_key64", "Append to the key of `key64`, or write a part of it", &patch, &written), "Value"),
        "delete": of_key64("delete_key64", "Delete the key of `key64`", &CONDITIONS, &[("204", "Written")]),
    });
    let get_all = operation("mget_keys", "Read strings", &[], &[("200", "Values")]);
    let set_all = operation(
        "mset_keys",
        "Set strings, all or none",
        &["Ttl", "TtlMs", "Nx", "Xx"],
        &[("204", "Written")],
    );
    let kinds = ["Match", "Kinds", "FollowedDatabase", "LastEventId"];
    let mut events = operation("follow", "Follow what happens to keys", &kinds, &[("200", "Events")]);
    events["description"] = json!("Server-sent events; `event: reset` where some are missing.");
    let messages = ["Channel", "Pattern"];
    let mut channels =
        operation("channels", "Receive the messages of channels", &messages, &[("200", "Events")]);
    channels["description"] = json!("Server-sent events. Channels, or patterns of them, not both.");
    let entries = |id: &str, names: &[&str]| {
        let mut entries = operation(id, "Receive the entries of a stream", names, &[("200", "Events")]);
        entries["description"] = json!("Server-sent events: what is added from now on, or behind an entry.");
        entries
    };
    let mut seconds =
        operation("watch", "Follow each second's figures, for the console", &[], &[("200", "Events")]);
    seconds["description"] = json!("First `event: begin`, all that are kept; then a row each second.");
    let mut hot = operation("watch_hot", "Follow which keys are asked for most", &[], &[("200", "Events")]);
    hot["description"] =
        json!("Each second what samples of the last ten say; they are taken while somebody asks.");
    let mut rights =
        operation("rights", "Which commands whoever asks may run, for the console", &[], &[("200", "Json")]);
    rights["description"] = json!("`user` and `commands`, by their full names; keys are another question.");
    let mut all = BTreeMap::from([
        ("/v1/events".to_owned(), json!({"get": events})),
        ("/v1/console/stream".into(), json!({"get": seconds})),
        ("/v1/console/hot".into(), json!({"get": hot})),
        ("/v1/console/rights".into(), json!({"get": rights})),
        ("/v1/channels".into(), json!({"get": channels})),
        (
            "/v1/db/{db}/streams/{key}".into(),
            json!({"parameters": parameters(&["Database", "Key"]), "get": entries("entries", &["After", "LastEventId"])}),
        ),
        (
            "/v1/db/{db}/streams".into(),
            json!({"parameters": parameters(&["Database", "KeyHas64"]), "get": entries("entries_key64", &["After", "LastEventId"])}),
        ),
        ("/v1/openapi.json".into(), json!({"get": for_all("openapi", "This description", "Json")})),
        ("/v1/docs".into(), json!({"get": for_all("docs", "The same for people", "Page")})),
        ("/console".into(), json!({"get": for_all("console", "The console, for people", "Page")})),
        ("/v1/db/{db}/keys/{key}".to_owned(), key),
        ("/v1/db/{db}/keys".into(), keys),
        (
            "/v1/db/{db}/mget".into(),
            json!({"parameters": parameters(&["Database"]), "post": with_body(get_all, "Keys")}),
        ),
        (
            "/v1/db/{db}/mset".into(),
            json!({"parameters": parameters(&["Database"]), "post": with_body(set_all, "Pairs")}),
        ),
    ]);
    all.extend(stored_paths());
    all
}

/// The paths of programs and triggers.
fn stored_paths() -> BTreeMap<String, Value> {
    const CONDITIONS: [&str; 2] = ["IfMatch", "IfNoneMatch"];
    let json_answer = [("200", "Json")];
    let mut all = BTreeMap::new();
    for (kind, verbs) in
        [("program", &["run", "dryrun", "explain"][..]), ("trigger", &["enable", "disable", "test"])]
    {
        let root = format!("/v1/{kind}s");
        let id = |verb: &str| format!("{verb}_{kind}");
        let got = [("200", "Stored"), ("304", "Unchanged")];
        let put = [&CONDITIONS[..], &["Nx", "Xx"]].concat();
        let put = operation(
            &id("put"),
            &format!("Store a {kind}"),
            &put,
            &[("201", "Written"), ("204", "Written")],
        );
        all.insert(
            format!("{root}/{{name}}"),
            json!({
                "parameters": parameters(&["Name"]),
                "get": operation(&id("get"), &format!("Read a {kind}"), &CONDITIONS, &got),
                "put": with_body(put, "Stored"),
                "delete": operation(&id("delete"), &format!("Remove a {kind}"), &CONDITIONS, &[("204", "Written")]),
            }),
        );
        let list = operation(&id("list"), &format!("Each {kind} that is stored"), &["Match"], &json_answer);
        let mut whole = json!({ "get": list });
        if kind == "program" {
            let run = operation("run", "Run a program that is not stored", &[], &json_answer);
            whole["post"] = with_body(run, "Run");
        }
        all.insert(root.clone(), whole);
        for verb in verbs {
            let mut operation = operation(&id(verb), &format!("{verb} a {kind}"), &[], &json_answer);
            if !matches!(*verb, "enable" | "disable") {
                operation = with_body(operation, if *verb == "test" { "Stored" } else { "Arguments" });
            }
            let item = json!({"parameters": parameters(&["Name"]), "post": operation});
            all.insert(format!("{root}/{{name}}/{verb}"), item);
        }
        let stats = operation(&id("stats_of"), &format!("Figures of a {kind}"), &[], &json_answer);
        let item = json!({"parameters": parameters(&["Name"]), "get": stats});
        all.insert(format!("{root}/{{name}}/stats"), item);
    }
    all
}

fn add(components: &mut Value, kind: &str, all: Value) {
    if let (Some(own), Value::Object(all)) = (components[kind].as_object_mut(), &all) {
        own.extend(all.clone());
    } else {
        components[kind] = all;
    }
}

/// Adds what their paths refer to.
pub(crate) fn add_components(components: &mut Value) {
    let text = json!({"type": "string"});
    let header = |name: &str, description: &str| json!({"name": name, "in": "header", "required": false, "description": description, "schema": text});
    let query = |name: &str, description: &str, schema: &Value| json!({"name": name, "in": "query", "required": false, "description": description, "schema": schema});
    let number = json!({"type": "integer", "minimum": 1});
    let flag = |name: &str, description: &str| {
        let mut flag = query(name, description, &json!({"type": "string", "maxLength": 0}));
        flag["allowEmptyValue"] = json!(true);
        flag
    };
    add(
        components,
        "parameters",
        json!({
            "Database": {"name": "db", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 0}},
            "Key": {"name": "key", "in": "path", "required": true, "schema": text, "description": "The key, escaped; `/` too is a part of it. `/v1/db/{db}/keys?key64=` names one that no path can say."},
            "Name": {"name": "name", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^[A-Za-z0-9_.:-]+$"}},
            "Key64": query("key64", "The key in base64, of either alphabet, with padding or without.", &text),
            "KeyHas64": {"name": "key64", "in": "query", "required": true, "description": "The key in base64, of either alphabet, with padding or without.", "schema": text},
            "After": query("after", "The entry behind which it begins; `0` is before all.", &text),
            "Channel": query("channel", "A channel; it may stand there often.", &json!({"type": "array", "items": text})),
            "Pattern": query("pattern", "A pattern of channels; it may stand there often.", &json!({"type": "array", "items": text})),
            "Kinds": query("kinds", "Kinds of events, with commas between them; without it all but `new`.", &text),
            "FollowedDatabase": query("db", "One database; without it all.", &json!({"type": "integer", "minimum": 0})),
            "LastEventId": header("Last-Event-ID", "The last event that was seen."),
            "IfMatch": header("If-Match", "`*`, or tags one of which the resource must have."),
            "IfNoneMatch": header("If-None-Match", "`*`, or tags none of which the resource may have."),
            "Range": header("Range", "`bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-COUNT`."),
            "IfRange": header("If-Range", "The tag that the resource must have for Range to count."),
            "ContentRange": header("Content-Range", "`bytes FIRST-LAST/*`: where the body is written."),
            "Ttl": query("ttl", "Seconds until it expires, or `keep`.", &text),
            "TtlMs": query("ttl_ms", "Milliseconds until it expires.", &number),
            "Nx": flag("nx", "Only if it is not there."),
            "Xx": flag("xx", "Only if it is there."),
            "Match": query("match", "A pattern, as of SCAN.", &text),
            "Cursor": query("cursor", "The cursor of the page before.", &text),
            "Limit": query("limit", "About how many keys a page has.", &json!({"type": "integer", "minimum": 1, "maximum": 1000})),
            "Type": query("type", "Keys of one type.", &json!({"enum": ["string", "list", "set", "zset", "hash", "stream"]})),
        }),
    );
    let texts = json!({"anyOf": [{"type": ["string", "number", "boolean"]}, reference("schemas", "Binary")]});
    add(
        components,
        "schemas",
        json!({
            "Binary": {"description": "Bytes that are no text.", "type": "object", "required": ["base64"], "properties": {"base64": text}, "additionalProperties": false},
            "Text": {"anyOf": [text, reference("schemas", "Binary")]},
            "Keys": {
                "description": "A page of keys; the last one's cursor is 0.", "type": "object", "required": ["cursor", "keys"],
                "properties": {"cursor": text, "keys": {"type": "array", "items": reference("schemas", "Text")}},
            },
        }),
    );
    let json_of = |schema: Value| json!({"application/json": {"schema": schema}});
    add(
        components,
        "requestBodies",
        json!({
            "Value": {"required": true, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
            "Stored": {"required": true, "content": json_of(json!({"type": "object"}))},
            "Arguments": {"description": "The program's arguments, in their order.", "required": false, "content": json_of(json!({"type": "array"}))},
            "Run": {"required": true, "content": json_of(json!({
                "type": "object", "required": ["program"], "additionalProperties": false,
                "properties": {"program": {"type": "object"}, "args": {"type": "array"}},
            }))},
            "Keys": {"required": true, "content": json_of(json!({"type": "array", "minItems": 1, "items": texts}))},
            "Pairs": {"required": true, "content": json_of(json!({"anyOf": [
                {"type": "object", "additionalProperties": texts},
                {"type": "array", "items": {"type": "array", "prefixItems": [texts, texts], "items": false, "minItems": 2}},
            ]}))},
        }),
    );
    let said = |description: &str| json!({"description": description, "schema": text});
    let headers = json!({
        "ETag": said("Stands for the value."),
        "Weft-Type": said("The type of the value."),
        "Weft-TTL-Ms": said("Milliseconds that are left to it."),
    });
    add(
        components,
        "responses",
        json!({
            "Value": {"description": "The value, or a part of it", "headers": headers, "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
                "application/json": {"schema": {}},
            }},
            "Stored": {"description": "The text as it was stored", "headers": headers, "content": json_of(json!({"type": "object"}))},
            "Json": {"description": "What the command answers", "content": json_of(json!({}))},
            "Unchanged": {"description": "The client has it already", "headers": headers},
            "Written": {"description": "Done", "headers": headers},
            "KeysOrValue": {"description": "A page of keys; with `key64` the value of the key", "content": {
                "application/json": {"schema": {"anyOf": [reference("schemas", "Keys"), {}]}},
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            }},
            "Page": {"description": "A page", "content": {"text/html": {"schema": {"type": "string"}}}},
            "Values": {"description": "A value or null for each key, in order", "content": json_of(json!({
                "type": "array", "items": {"anyOf": [reference("schemas", "Text"), {"type": "null"}]},
            }))},
        }),
    );
}
