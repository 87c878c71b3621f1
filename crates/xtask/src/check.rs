//! Checks of the command table: the schema, and what a schema cannot say because it concerns several members or files.
//!
//! It owns the rules; each finding names its file and member. The `respb` member has its rules in `check_respb`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::arity;
use crate::check_respb;
use crate::model::{Argument, ArgumentType, BeginSearch, Command, CommandFile, FindKeys, KeySpec, Keys};
use crate::schema::Schema;

/// The schema of a command file, from the root of the repository.
pub const SCHEMA_PATH: &str = "spec/schema/command.schema.json";

/// `COMMAND INFO` prints flags in this order.
pub const FLAGS: [&str; 20] = [
    "write",
    "readonly",
    "denyoom",
    "module",
    "admin",
    "pubsub",
    "noscript",
    "blocking",
    "loading",
    "stale",
    "skip_monitor",
    "skip_commandlog",
    "asking",
    "fast",
    "no_auth",
    "no_mandatory_keys",
    "no_async_loading",
    "no_multi",
    "movablekeys",
    "allow_busy",
];

/// `COMMAND INFO` prints ACL categories in this order; those of modules follow in the order of loading.
pub const ACL_CATEGORIES: [&str; 24] = [
    "@keyspace",
    "@read",
    "@write",
    "@set",
    "@sortedset",
    "@list",
    "@hash",
    "@string",
    "@bitmap",
    "@hyperloglog",
    "@geo",
    "@stream",
    "@pubsub",
    "@admin",
    "@fast",
    "@slow",
    "@blocking",
    "@dangerous",
    "@connection",
    "@transaction",
    "@scripting",
    "@json",
    "@bloom",
    "@search",
];

/// `COMMAND INFO` prints the flags of a key spec in this order.
pub const KEY_FLAGS: [&str; 11] = [
    "RO",
    "RW",
    "OW",
    "RM",
    "access",
    "update",
    "insert",
    "delete",
    "not_key",
    "incomplete",
    "variable_flags",
];

/// One thing that is wrong with one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file's name.
    pub file: String,
    /// The member.
    pub member: String,
    /// What is wrong.
    pub problem: String,
}

impl Finding {
    /// Of a member of `command`.
    pub fn new(command: &Command, member: &str, problem: impl Into<String>) -> Self {
        Self { file: command.file_name(), member: member.to_owned(), problem: problem.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}: {}", self.file, self.member, self.problem)
    }
}

/// Runs all checks over the files under `root`. Returns the number of files with what was found.
///
/// # Errors
/// When files cannot be read or do not even have the shape of the model.
pub fn check_tree(root: &Path) -> Result<(usize, Vec<Finding>)> {
    let text = std::fs::read_to_string(root.join(SCHEMA_PATH))
        .with_context(|| format!("cannot read {SCHEMA_PATH}"))?;
    let schema = Schema::parse(&text)?;
    let files = crate::model::load_files(root)?;
    let mut findings = Vec::new();
    for file in &files {
        findings.extend(check_file(&schema, file)?);
    }
    let commands: Vec<Command> = files.into_iter().map(|file| file.command).collect();
    findings.extend(check_commands(&commands));
    Ok((commands.len(), findings))
}

/// What the text of one file must satisfy: schema, name and canonical form.
///
/// # Errors
/// When the text is not JSON.
pub fn check_file(schema: &Schema, file: &CommandFile) -> Result<Vec<Finding>> {
    let value = serde_json::from_str(&file.text).with_context(|| format!("{}: not JSON", file.file))?;
    let finding = |member: &str, problem: String| Finding {
        file: file.file.clone(),
        member: member.to_owned(),
        problem,
    };
    let violations = schema.violations(&value);
    let mut findings: Vec<_> =
        violations.into_iter().map(|each| finding(&each.member, each.problem)).collect();
    if file.file != file.command.file_name() {
        findings.push(finding("name", format!("belongs in {}", file.command.file_name())));
    }
    if file.text != file.command.to_text()? {
        let problem =
            "not in canonical form (member order, two blanks); `xtask commands fmt` writes it".to_owned();
        findings.push(finding("(whole file)", problem));
    }
    Ok(findings)
}

/// What the commands must satisfy, each alone and all together.
#[must_use]
pub fn check_commands(commands: &[Command]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for command in commands {
        check_words(command, &mut findings);
        check_flags(command, &mut findings);
        check_keys(command, &mut findings);
        check_arguments(command, &command.arguments, "arguments", &mut findings);
        arity::check(command, &mut findings);
    }
    check_containers(commands, &mut findings);
    check_respb::check(commands, &mut findings);
    findings
}

/// Members that imply each other.
fn check_words(command: &Command, findings: &mut Vec<Finding>) {
    let has = |flags: &[String], flag: &str| flags.iter().any(|each| each == flag);
    if has(&command.flags, "module") != command.module.is_some() {
        findings.push(Finding::new(command, "module", "goes together with the flag module"));
    }
    if has(&command.doc_flags, "deprecated") != command.deprecated_since.is_some() {
        findings.push(Finding::new(
            command,
            "deprecated_since",
            "goes together with the doc flag deprecated",
        ));
    }
    if command.replaced_by.is_some() && command.deprecated_since.is_none() {
        findings.push(Finding::new(command, "replaced_by", "only of a deprecated command"));
    }
}

/// Order of flags and categories, and which of them imply each other.
fn check_flags(command: &Command, findings: &mut Vec<Finding>) {
    if !is_ordered(&command.flags, &FLAGS) {
        findings.push(Finding::new(command, "flags", "not in the order of COMMAND INFO"));
    }
    if !is_ordered(&command.acl_categories, &ACL_CATEGORIES) {
        findings.push(Finding::new(command, "acl_categories", "not in the order of COMMAND INFO"));
    }
    let flag = |name: &str| command.flags.iter().any(|each| each == name);
    let category = |name: &str| command.acl_categories.iter().any(|each| each == name);
    for (name, its_category) in
        [("write", "@write"), ("fast", "@fast"), ("blocking", "@blocking"), ("pubsub", "@pubsub")]
    {
        if flag(name) != category(its_category) {
            let problem = format!("{its_category} goes together with the flag {name}");
            findings.push(Finding::new(command, "acl_categories", problem));
        }
    }
    if flag("readonly") && !category("@read") && !category("@scripting") {
        findings.push(Finding::new(command, "acl_categories", "the flag readonly asks for @read"));
    }
    if flag("admin") && command.module.is_none() && !(category("@admin") && category("@dangerous")) {
        findings.push(Finding::new(
            command,
            "acl_categories",
            "the flag admin asks for @admin and @dangerous",
        ));
    }
    if category("@fast") == category("@slow") {
        findings.push(Finding::new(command, "acl_categories", "exactly one of @fast and @slow"));
    }
}

fn is_ordered(words: &[String], order: &[&str]) -> bool {
    let places: Vec<_> = words.iter().map(|word| order.iter().position(|each| each == word)).collect();
    places.iter().all(Option::is_some) && places.is_sorted()
}

/// Key specs, and the triple and the flag that follow from them.
fn check_keys(command: &Command, findings: &mut Vec<Finding>) {
    for (index, spec) in command.key_specs.iter().enumerate() {
        let member = format!("key_specs[{index}].flags");
        if !is_ordered(&spec.flags, &KEY_FLAGS) {
            findings.push(Finding::new(command, &member, "not in the order of COMMAND INFO"));
        }
        let access = spec.flags.iter().filter(|flag| flag.len() == 2).count();
        if access > 1 || (access == 0 && !spec.flags.iter().any(|flag| flag == "not_key")) {
            findings.push(Finding::new(command, &member, "exactly one of RO, RW, OW and RM"));
        }
    }
    let (keys, movable) = legacy_keys(&command.key_specs);
    if keys != command.keys {
        let Keys { first, last, step } = keys;
        let problem = format!("key_specs make it first {first}, last {last}, step {step}");
        findings.push(Finding::new(command, "keys", problem));
    }
    if movable != command.flags.iter().any(|flag| flag == "movablekeys") {
        let problem =
            if movable { "movablekeys is missing: keys are no plain range" } else { "movablekeys is wrong" };
        findings.push(Finding::new(command, "flags", problem));
    }
}

/// The triple of `COMMAND INFO` for key specs, and whether they say more than the triple can.
#[must_use]
pub fn legacy_keys(specs: &[KeySpec]) -> (Keys, bool) {
    let incomplete = |spec: &KeySpec| spec.flags.iter().any(|flag| flag == "incomplete");
    if let [spec] = specs
        && let Some((first, last, step)) = plain_range(spec)
    {
        return (Keys { first, last, step }, incomplete(spec));
    }
    let mut movable = false;
    let mut found: Option<Keys> = None;
    for spec in specs {
        movable |= incomplete(spec);
        match (plain_range(spec), found) {
            (Some((first, last, 1)), None) => found = Some(Keys { first, last, step: 1 }),
            (Some((first, last, 1)), Some(keys)) if keys.last + 1 == first => {
                found = Some(Keys { first: keys.first, last, step: 1 });
            }
            _ => movable = true,
        }
    }
    (found.unwrap_or(Keys { first: 0, last: 0, step: 0 }), movable || (found.is_none() && !specs.is_empty()))
}

fn plain_range(spec: &KeySpec) -> Option<(i32, i32, i32)> {
    match (&spec.begin_search, &spec.find_keys) {
        (BeginSearch::Index { pos }, FindKeys::Range { lastkey, step, .. }) => {
            Some((*pos, if *lastkey < 0 { *lastkey } else { pos + lastkey }, *step))
        }
        _ => None,
    }
}

/// The shape of the argument tree: what each kind must and must not have.
fn check_arguments(command: &Command, arguments: &[Argument], path: &str, findings: &mut Vec<Finding>) {
    let mut names = BTreeSet::new();
    for (index, argument) in arguments.iter().enumerate() {
        let member = format!("{path}[{index}]");
        let mut report = |name: &str, problem: &str| {
            findings.push(Finding::new(command, &format!("{member}.{name}"), problem));
        };
        if !names.insert(&argument.name) {
            report("name", &format!("{:?} stands twice in its list", argument.name));
        }
        let nests = matches!(argument.kind, ArgumentType::Oneof | ArgumentType::Block);
        if nests == argument.arguments.is_empty() {
            report("arguments", "of oneof and block, and of nothing else");
        }
        if argument.kind == ArgumentType::PureToken && argument.token.is_none() {
            report("token", "missing from a pure token");
        }
        if argument.multiple_token && !(argument.multiple && argument.token.is_some()) {
            report("multiple_token", "needs multiple and a token");
        }
        match argument.key_spec_index {
            Some(spec) if spec >= command.key_specs.len() => {
                report("key_spec_index", &format!("there are {} key specs", command.key_specs.len()));
            }
            None if argument.kind == ArgumentType::Key => report("key_spec_index", "missing from a key"),
            _ => {}
        }
        check_arguments(command, &argument.arguments, &format!("{member}.arguments"), findings);
    }
}

/// Names are unique; a container exists, is itself no subcommand, and shares its group.
fn check_containers(commands: &[Command], findings: &mut Vec<Finding>) {
    let mut by_name: BTreeMap<String, &Command> = BTreeMap::new();
    for command in commands {
        if by_name.insert(command.full_name(), command).is_some() {
            findings.push(Finding::new(command, "name", "another file has the same name"));
        }
    }
    for command in commands {
        let Some(container) = &command.container else { continue };
        match by_name.get(container) {
            None => {
                findings.push(Finding::new(command, "container", format!("there is no command {container}")))
            }
            Some(parent) if parent.group != command.group => {
                findings.push(Finding::new(command, "group", format!("the container's is {}", parent.group)));
            }
            Some(_) => {}
        }
    }
}
