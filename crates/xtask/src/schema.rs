//! A checker for the part of JSON Schema 2020-12 that `spec/schema/` uses.
//!
//! It owns the meaning of the keywords it lists; any other keyword in a schema is an error, so that nothing in a schema
//! is silently without effect. It is no general validator: references stay within the document.

use anyhow::{Context, Result, bail, ensure};
use regex_lite::Regex;
use serde_json::{Map, Value};

/// Keywords that describe and never reject.
const ANNOTATIONS: [&str; 6] = ["$schema", "$id", "$defs", "title", "description", "$comment"];

/// Keywords that the checker enforces.
const ASSERTIONS: [&str; 20] = [
    "$ref",
    "type",
    "enum",
    "const",
    "pattern",
    "minLength",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minimum",
    "maximum",
    "oneOf",
    "anyOf",
];

/// One way in which a value is not what the schema asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The member, as `arguments[2].type`; empty for the whole value.
    pub member: String,
    /// What is wrong with it.
    pub problem: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let member = if self.member.is_empty() { "(whole file)" } else { &self.member };
        write!(formatter, "{member}: {}", self.problem)
    }
}

/// A schema document.
pub struct Schema {
    root: Value,
}

impl Schema {
    /// Takes a schema and makes sure that every keyword in it is one that is enforced.
    ///
    /// # Errors
    /// When the text is no JSON or uses a keyword or reference the checker does not know.
    pub fn parse(text: &str) -> Result<Self> {
        let root: Value = serde_json::from_str(text).context("schema: not JSON")?;
        let schema = Self { root };
        schema.check_keywords(&schema.root)?;
        Ok(schema)
    }

    /// Everything in `value` that the schema does not allow, in document order.
    #[must_use]
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        self.visit(&self.root, value, "", &mut found);
        found
    }

    fn check_keywords(&self, schema: &Value) -> Result<()> {
        let Value::Object(object) = schema else { bail!("schema: {schema} is not an object") };
        for (keyword, argument) in object {
            let known = ANNOTATIONS.contains(&keyword.as_str()) || ASSERTIONS.contains(&keyword.as_str());
            ensure!(known, "schema: keyword {keyword:?} is not one the checker enforces");
            match (keyword.as_str(), argument) {
                ("$defs" | "properties", Value::Object(children)) => {
                    children.values().try_for_each(|child| self.check_keywords(child))?;
                }
                ("oneOf" | "anyOf" | "prefixItems", Value::Array(children)) => {
                    children.iter().try_for_each(|child| self.check_keywords(child))?;
                }
                ("items", child) => self.check_keywords(child)?,
                ("$ref", reference) => {
                    self.resolve(reference)
                        .with_context(|| format!("schema: $ref {reference} leads nowhere"))?;
                }
                ("pattern", Value::String(pattern)) => {
                    Regex::new(pattern).with_context(|| format!("schema: pattern {pattern}"))?;
                }
                ("additionalProperties", child @ Value::Object(_)) => self.check_keywords(child)?,
                ("additionalProperties", argument) => {
                    ensure!(
                        argument == &Value::Bool(false),
                        "schema: additionalProperties is a schema or false"
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn resolve(&self, reference: &Value) -> Option<&Value> {
        self.root.pointer(reference.as_str()?.strip_prefix('#')?)
    }

    fn visit(&self, schema: &Value, value: &Value, member: &str, found: &mut Vec<Violation>) {
        let Value::Object(keywords) = schema else { return };
        for (keyword, argument) in keywords {
            match (keyword.as_str(), argument) {
                ("$ref", reference) => {
                    if let Some(target) = self.resolve(reference) {
                        self.visit(target, value, member, found);
                    }
                }
                ("oneOf" | "anyOf", Value::Array(branches)) => {
                    self.visit_branches(branches, keyword == "oneOf", value, member, found);
                }
                _ => {
                    if let Some(problem) = scalar_problem(keyword, argument, value) {
                        found.push(Violation { member: member.to_owned(), problem });
                    }
                }
            }
        }
        match value {
            Value::Object(members) => self.visit_object(keywords, members, member, found),
            Value::Array(items) => self.visit_array(keywords, items, member, found),
            _ => {}
        }
    }

    fn visit_object(
        &self,
        keywords: &Map<String, Value>,
        members: &Map<String, Value>,
        path: &str,
        found: &mut Vec<Violation>,
    ) {
        let properties = keywords.get("properties").and_then(Value::as_object);
        for name in keywords.get("required").and_then(Value::as_array).into_iter().flatten() {
            if !name.as_str().is_some_and(|name| members.contains_key(name)) {
                found.push(Violation {
                    member: path.to_owned(),
                    problem: format!("member {name} is missing"),
                });
            }
        }
        for (name, child) in members {
            let member = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match properties.and_then(|properties| properties.get(name)) {
                Some(schema) => self.visit(schema, child, &member, found),
                None => match keywords.get("additionalProperties") {
                    Some(schema @ Value::Object(_)) => self.visit(schema, child, &member, found),
                    Some(_) => found.push(Violation { member, problem: "no such member".to_owned() }),
                    None => {}
                },
            }
        }
    }

    fn visit_array(
        &self,
        keywords: &Map<String, Value>,
        items: &[Value],
        path: &str,
        found: &mut Vec<Violation>,
    ) {
        let prefix = keywords.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = prefix.get(index).or_else(|| keywords.get("items")) {
                self.visit(schema, item, &format!("{path}[{index}]"), found);
            }
        }
    }

    /// When no branch fits, reports what is wrong by the branch that gets furthest into the value.
    fn visit_branches(
        &self,
        branches: &[Value],
        exactly_one: bool,
        value: &Value,
        member: &str,
        found: &mut Vec<Violation>,
    ) {
        let mut nearest: Option<(usize, Vec<Violation>)> = None;
        let mut fits = 0;
        for branch in branches {
            let mut problems = Vec::new();
            self.visit(branch, value, member, &mut problems);
            if problems.is_empty() {
                fits += 1;
                continue;
            }
            let shallow = problems.iter().filter(|problem| problem.member.len() == member.len()).count();
            let distance = shallow * 100 + problems.len();
            if nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
                nearest = Some((distance, problems));
            }
        }
        if fits == 0 {
            found.extend(nearest.into_iter().flat_map(|(_, problems)| problems));
        } else if exactly_one && fits > 1 {
            let problem = format!("fits {fits} of the alternatives, must fit one");
            found.push(Violation { member: member.to_owned(), problem });
        }
    }
}

/// What a keyword without nested schemas says against a value.
fn scalar_problem(keyword: &str, argument: &Value, value: &Value) -> Option<String> {
    let count = |array: &Vec<Value>| array.len() as u64;
    let wrong = match keyword {
        "type" => !has_type(argument.as_str()?, value),
        "enum" => !argument.as_array()?.contains(value),
        "const" => argument != value,
        "pattern" => !Regex::new(argument.as_str()?).ok()?.is_match(value.as_str()?),
        "minLength" => (value.as_str()?.chars().count() as u64) < argument.as_u64()?,
        "minProperties" => (value.as_object()?.len() as u64) < argument.as_u64()?,
        "maxProperties" => value.as_object()?.len() as u64 > argument.as_u64()?,
        "minItems" => value.as_array().map(count)? < argument.as_u64()?,
        "maxItems" => value.as_array().map(count)? > argument.as_u64()?,
        "minimum" => value.as_f64()? < argument.as_f64()?,
        "maximum" => value.as_f64()? > argument.as_f64()?,
        "uniqueItems" => {
            let items = value.as_array()?;
            items.iter().enumerate().any(|(index, item)| items[..index].contains(item))
        }
        _ => false,
    };
    wrong.then(|| format!("{value} does not satisfy {keyword} {argument}"))
}

fn has_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(schema: &str, value: &Value) -> Vec<String> {
        Schema::parse(schema).unwrap().violations(value).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unknown_keywords_are_refused() {
        let error = Schema::parse(r#"{"properties": {"a": {"propertyNames": 1}}}"#).err().unwrap();
        assert!(error.to_string().contains("propertyNames"), "{error}");
        assert!(Schema::parse(r#"{"additionalProperties": {"propertyNames": 1}}"#).is_err());
        assert!(Schema::parse(r##"{"$ref": "#/$defs/nothing"}"##).is_err());
        assert!(Schema::parse(r#"{"additionalProperties": true}"#).is_err());
    }

    #[test]
    fn members_are_named() {
        let schema = r#"{"type": "object", "additionalProperties": false, "required": ["a"],
            "properties": {"a": {"items": {"minimum": 3}}}}"#;
        assert_eq!(problems(schema, &json!({"a": [3, 4]})), Vec::<String>::new());
        assert_eq!(problems(schema, &json!({"a": [3, 2]})), ["a[1]: 2 does not satisfy minimum 3"]);
        assert_eq!(
            problems(schema, &json!({"b": 1})),
            [r#"(whole file): member "a" is missing"#, "b: no such member"]
        );
    }

    #[test]
    fn members_of_any_name_are_counted_and_looked_at() {
        let schema =
            r#"{"minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "integer"}}"#;
        assert_eq!(problems(schema, &json!({"a": 1, "b": 2})), Vec::<String>::new());
        assert_eq!(problems(schema, &json!({"a": "x"})), [r#"a: "x" does not satisfy type "integer""#]);
        assert!(problems(schema, &json!({}))[0].contains("minProperties 1"));
        assert!(problems(schema, &json!({"a": 1, "b": 2, "c": 3}))[0].contains("maxProperties 2"));
    }

    #[test]
    fn one_of_reports_the_nearest_branch() {
        let schema = r#"{"oneOf": [
            {"const": "unknown"},
            {"type": "object", "required": ["pos"], "properties": {"pos": {"type": "integer"}}}
        ]}"#;
        assert_eq!(problems(schema, &json!("unknown")), Vec::<String>::new());
        assert_eq!(problems(schema, &json!({"pos": "1"})), [r#"pos: "1" does not satisfy type "integer""#]);
        assert_eq!(problems(r#"{"oneOf": [{"type": "integer"}, {"minimum": 0}]}"#, &json!(1)).len(), 1);
    }
}
