//! The command table as Rust values: one [`Command`] per file of `spec/commands/`, and how the files are read.
//!
//! It owns the shape of a file (an unknown member is an error) and its canonical text; whether the members of
//! different files agree with each other is `check`'s business, and what is generated from them `gen`'s.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::respb::Respb;

/// The folder of the command files, from the root of the repository.
pub const COMMANDS_DIR: &str = "spec/commands";

/// A command, or a subcommand of a container, as its file says it. The order of the members is that of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// Upper-case name; of a subcommand its own word only.
    pub name: String,
    /// The container's name, on subcommands only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Group as `COMMAND DOCS` names it; `json`, `bloom` or `search` for module commands.
    pub group: String,
    /// The module that brings the command; none for core commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// What the command does, one line without a full stop.
    pub summary: String,
    /// Cost, as a formula and what its letters mean.
    pub complexity: String,
    /// First version that had the command: the server's, or the module's for a module command.
    pub since: String,
    /// Number of arguments with the name; negative when that is a minimum.
    pub arity: i32,
    /// Flags in the order `COMMAND INFO` prints them.
    pub flags: Vec<String>,
    /// Flags that a server knows and `COMMAND INFO` never prints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden_flags: Vec<String>,
    /// What this engine does about the command besides running it, as bits of the protocol's `table::policy`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<String>,
    /// What the command goes through, where that is not plain from its flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// `deprecated` or `syscmd`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doc_flags: Vec<String>,
    /// Version since which the command is deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated_since: Option<String>,
    /// What to use in place of a deprecated command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    /// Version and what changed in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<(String, String)>,
    /// Hints for clients and proxies, as `COMMAND INFO` prints them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// ACL categories with their `@`, complete, in the order `COMMAND INFO` prints them.
    pub acl_categories: Vec<String>,
    /// Where the keys stand.
    pub key_specs: Vec<KeySpec>,
    /// The older, less exact form of the same: first key, last key, step.
    pub keys: Keys,
    /// The arguments after the name, as a tree.
    pub arguments: Vec<Argument>,
    /// Opcode and layout; none while they have not been assigned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub respb: Option<Respb>,
}

impl Command {
    /// Name as a user types it: `GET`, `CLIENT LIST`.
    #[must_use]
    pub fn full_name(&self) -> String {
        self.joined(' ')
    }

    /// Name as ACL rules and `COMMAND INFO` write it: `get`, `client|list`.
    #[must_use]
    pub fn acl_name(&self) -> String {
        self.joined('|').to_lowercase()
    }

    /// Name of the file that holds the command, without the folder.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.json", self.joined('-').to_lowercase())
    }

    /// True when only a Sentinel process has the command.
    #[must_use]
    pub fn is_sentinel_only(&self) -> bool {
        self.hidden_flags.iter().any(|flag| flag == "only_sentinel")
    }

    /// True when a Sentinel process has the command, alone or like any server.
    #[must_use]
    pub fn is_sentinel(&self) -> bool {
        self.hidden_flags.iter().any(|flag| flag == "only_sentinel" || flag == "sentinel")
    }

    /// The file's text in canonical form: member order of the model, two blanks, newline at the end.
    ///
    /// # Errors
    /// None that can be met in practice; serialisation to memory does not fail.
    pub fn to_text(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    fn joined(&self, separator: char) -> String {
        match &self.container {
            Some(container) => format!("{container}{separator}{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Where one group of keys stands and what the command does with them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySpec {
    /// Access (`RO`, `RW`, `OW`, `RM`) and purpose, in the order `COMMAND INFO` prints them.
    pub flags: Vec<String>,
    /// Why the flags are what they are, where that is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Where the search for keys begins.
    pub begin_search: BeginSearch,
    /// How the keys are found from there.
    pub find_keys: FindKeys,
}

/// Where the search for keys begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum BeginSearch {
    /// At a fixed argument, the name being 0.
    Index {
        /// The argument.
        pos: i32,
    },
    /// Right after a keyword.
    Keyword {
        /// The keyword, upper-case.
        keyword: String,
        /// Argument to look from; negative counts from the end and looks backwards.
        startfrom: i32,
    },
    /// Only the command itself knows.
    Unknown,
}

/// How the keys are found once the search has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum FindKeys {
    /// A range of arguments.
    Range {
        /// Last key from the begin; negative counts from the end of the command.
        lastkey: i32,
        /// Distance from one key to the next.
        step: i32,
        /// With a negative `lastkey`: stop at this fraction (2 is half) of the rest.
        limit: i32,
    },
    /// A number says how many keys there are.
    Keynum {
        /// Where that number stands, from the begin.
        keynumidx: i32,
        /// Where the first key stands, from the begin.
        firstkey: i32,
        /// Distance from one key to the next.
        step: i32,
    },
    /// Only the command itself knows.
    Unknown,
}

/// First key, last key and step; all 0 when there are no keys or they are not a plain range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// Position of the first key, the name being 0.
    pub first: i32,
    /// Position of the last key; negative counts from the end.
    pub last: i32,
    /// Distance from one key to the next.
    pub step: i32,
}

/// Kinds of argument, by the words of `COMMAND DOCS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArgumentType {
    /// A key.
    Key,
    /// Any bytes.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Double,
    /// A glob pattern.
    Pattern,
    /// A point in time, Unix.
    UnixTime,
    /// A keyword that stands for itself.
    PureToken,
    /// Exactly one of the nested arguments.
    Oneof,
    /// All of the nested arguments.
    Block,
}

/// One argument, or a group of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// Name, unique among its siblings.
    pub name: String,
    /// Kind.
    #[serde(rename = "type")]
    pub kind: ArgumentType,
    /// What to show in place of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_text: Option<String>,
    /// For a key: the key spec that finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_spec_index: Option<usize>,
    /// Keyword before the argument, or the argument itself for a pure token; may be empty or several words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// First version that had the argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Version since which the argument is deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated_since: Option<String>,
    /// It may be left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
    /// It may be repeated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub multiple: bool,
    /// The token is repeated with it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub multiple_token: bool,
    /// Nested arguments of `oneof` and `block`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<Argument>,
}

/// For `skip_serializing_if`.
#[must_use]
pub fn is_false(value: &bool) -> bool {
    !value
}

/// A command together with the file it came from, for messages and for checks of the text itself.
pub struct CommandFile {
    /// Name of the file without its folder.
    pub file: String,
    /// The text as it stands on disk.
    pub text: String,
    /// What the text says.
    pub command: Command,
}

/// Reads one command from the text of its file.
///
/// # Errors
/// Names the file, and the member and line where it is wrong.
pub fn parse(file: &str, text: &str) -> Result<Command> {
    serde_json::from_str(text).with_context(|| format!("{file}: not a command file"))
}

/// Reads every file of `spec/commands/` under `root`, sorted by full name.
///
/// # Errors
/// When a file cannot be read or is not a command file; the message names it.
pub fn load_files(root: &Path) -> Result<Vec<CommandFile>> {
    let dir = root.join(COMMANDS_DIR);
    let mut files = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "json") {
            bail!("{COMMANDS_DIR}/{file}: only .json files belong here");
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
        let command = parse(&file, &text)?;
        files.push(CommandFile { file, text, command });
    }
    files.sort_by_key(|file| file.command.full_name());
    Ok(files)
}

/// Reads every command under `root`, sorted by full name.
///
/// # Errors
/// As [`load_files`].
pub fn load(root: &Path) -> Result<Vec<Command>> {
    Ok(load_files(root)?.into_iter().map(|file| file.command).collect())
}
