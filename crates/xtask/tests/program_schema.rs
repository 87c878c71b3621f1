//! The schemas of programs and triggers beside what the pages show and what is refused.

use serde_json::Value;
use xtask::schema::Schema;

fn read(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn schema(of: &str) -> Schema {
    Schema::parse(&read(&format!("spec/schema/{of}.schema.json"))).expect("a schema that the checker knows")
}

/// The programs of a page, and the triggers in its cases.
fn examples(page: &str) -> (Vec<Value>, Vec<Value>) {
    let text = read(page);
    let programs = text.split("```json program=").skip(1).map(|rest| {
        let body = rest.split_once('\n').expect("a name").1.split("\n```").next().expect("a block ends");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{page}: {error}:\n{body}"))
    });
    let triggers = text.lines().filter_map(|line| line.strip_prefix("> TRIGGER SET ")).map(|rest| {
        let trigger = rest.split_once(' ').expect("a name and a trigger").1;
        serde_json::from_str(trigger).unwrap_or_else(|error| panic!("{page}: {error}: {trigger}"))
    });
    (programs.collect(), triggers.collect())
}

#[test]
fn every_example_is_what_its_schema_says() {
    let (programs, triggers) = (schema("program"), schema("trigger"));
    let (mut of_programs, mut of_triggers) = (0, 0);
    for page in ["docs/programs.md", "docs/triggers.md", "docs/json-cache-vocabulary.md"] {
        let (some, more) = examples(page);
        (of_programs, of_triggers) = (of_programs + some.len(), of_triggers + more.len());
        for (schema, values) in [(&programs, &some), (&triggers, &more)] {
            for value in values {
                let violations = schema.violations(value);
                assert!(violations.is_empty(), "{page}: {value}: {violations:?}");
            }
        }
    }
    assert!(of_programs > 25 && of_triggers > 1, "{of_programs} programs, {of_triggers} triggers");
}

/// The engine's tests see that its parser refuses the same, and where.
#[test]
fn what_is_malformed_is_refused() {
    let malformed: Value = serde_json::from_str(&read("conformance/programs/malformed.json")).expect("JSON");
    for (of, schema) in [("programs", schema("program")), ("triggers", schema("trigger"))] {
        let all = malformed[of].as_array().expect("a list");
        assert!(all.len() > 9, "{} {of}", all.len());
        for one in all {
            assert!(!schema.violations(&one["text"]).is_empty(), "{}: {}", one["wrong"], one["text"]);
        }
    }
}
