//! Generates `clib/respb_table.h`, the command table for the C library, and `clib/respb_errors.h`, its wire errors.
//!
//! It owns the generated files; the structs that the table fills stand in the handwritten `clib/part/table.h`, the
//! numbers of the errors in `clib/respb.h`. In the table everything is an index into a flat array, so that a program
//! that is loaded has nothing to relocate but names and texts.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::model::Command;
use crate::notation;
use crate::respb::{Bit, Count, Field, FieldType, Layout, Order};
use crate::rust_table::{NONE, TABLE_NAME, index_of, shape};

/// Flags by the bits that `respb.h` gives them, which are those of the Rust table.
const FLAGS: &[&str] = &[
    "write",
    "readonly",
    "denyoom",
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
    "may_replicate",
    "only_sentinel",
    "sentinel",
    "no_async_loading",
    "no_multi",
    "movablekeys",
    "allow_busy",
    "no_mandatory_keys",
    "protected",
    "touches_arbitrary_keys",
    "all_dbs",
    "module",
];

/// Fields that say: arguments as they are.
const ARGS: u8 = 255;

/// The arrays while they are filled.
#[derive(Default)]
struct Arrays {
    words: Vec<String>,
    words_len: usize,
    words_at: HashMap<String, usize>,
    fields: Vec<String>,
    lists: Vec<String>,
    options: Vec<String>,
    bits: Vec<String>,
    sets: Vec<String>,
    values: Vec<String>,
}

/// The wire errors and their texts.
pub const ERRORS_PATH: &str = "spec/errors.json";

/// The names and texts of the wire errors.
///
/// # Errors
/// When the file cannot be read, or an error lacks its name or its text.
pub fn errors(root: &Path) -> Result<String> {
    let file: Value = serde_json::from_str(&fs::read_to_string(root.join(ERRORS_PATH))?)?;
    let mut out =
        String::from("/* Generated from spec/errors.json by `cargo xtask gen`. Do not edit. */\n\n");
    out.push_str("static const char *const ERRORS[][2] = {\n");
    for error in file["errors"].as_array().context("no errors")? {
        let name = error["name"].as_str().context("an error without a name")?;
        let text = error["text"].as_str().with_context(|| format!("{name} has no text"))?;
        let number = name.replace('-', "_").to_uppercase();
        let _ = writeln!(out, "    [RESPB_ERR_{number}] = {{{name:?}, {text:?}}},");
    }
    out.push_str("};\n");
    Ok(out)
}

/// The command table.
#[must_use]
pub fn generate(commands: &[Command]) -> String {
    let mut arrays = Arrays { words: vec!["0,".to_owned()], words_len: 1, ..Arrays::default() };
    let index = index_of(commands);
    let ids: HashMap<&str, usize> = commands
        .iter()
        .enumerate()
        .filter(|(_, command)| command.container.is_none())
        .map(|(id, command)| (command.name.as_str(), id))
        .collect();
    let (mut rows, mut layouts, mut texts) = (String::new(), Vec::new(), String::new());
    for (id, command) in commands.iter().enumerate() {
        let container = command.container.as_ref().map_or(usize::from(NONE), |name| ids[name.as_str()]);
        rows.push_str(&row(id, container, command));
        layouts.push(match command.respb.as_ref().and_then(|respb| respb.layout()) {
            Some(Layout::Typed(fields)) => {
                let first = arrays.fields(fields);
                format!("{{{first}, {}, {}}}", fields.len(), known(shape(fields)))
            }
            _ => format!("{{0, {ARGS}, SHAPE_WALKED}}"),
        });
        let text = command.respb.as_ref().map_or_else(String::new, notation::layout);
        let _ = writeln!(texts, "    {text:?},");
    }
    let mut out = String::from("/* Generated from spec/commands by `cargo xtask gen`. Do not edit. */\n\n");
    let longest = commands.iter().map(|command| command.name.len()).max().unwrap_or(0);
    let _ = writeln!(out, "#define TABLE_NAME {TABLE_NAME:?}");
    let _ = writeln!(out, "#define TABLE_HASH {:?}", crate::annex::hash(commands));
    let _ = writeln!(out, "#define COMMANDS_LEN {}\n#define NAME_MAX_LEN {longest}", commands.len());
    let _ = writeln!(out, "#define NAMES_MASK {}", index.names.len() - 1);
    let _ = writeln!(out, "#define MODULES_LEN {}\n", index.modules.len());
    array(&mut out, "unsigned char WORDS", &arrays.words, " ", 12);
    array(&mut out, "struct field FIELDS", &arrays.fields, ", ", 6);
    array(&mut out, "struct list LISTS", &arrays.lists, ", ", 8);
    array(&mut out, "struct options OPTIONS", &arrays.options, ", ", 8);
    array(&mut out, "struct bit BITS", &arrays.bits, ", ", 8);
    array(&mut out, "uint8_t SETS", &arrays.sets, ", ", 24);
    array(&mut out, "uint16_t VALUES", &arrays.values, ", ", 16);
    array(&mut out, "struct layout LAYOUTS", &layouts, ", ", 6);
    let core: Vec<String> = index.core.iter().map(|(id, _)| entry(*id)).collect();
    array(&mut out, "struct core CORE", &core, ", ", 6);
    let shapes: Vec<String> = index.core.iter().map(|(_, shape)| known(shape)).collect();
    array(&mut out, "uint8_t SHAPES", &shapes, ", ", 6);
    let mut starts = vec![0];
    starts.extend(index.modules.iter().scan(0, |sum, numbers| {
        *sum += numbers.len();
        Some(*sum)
    }));
    array(&mut out, "uint16_t MODULES", &numbers(&starts), ", ", 16);
    array(&mut out, "uint16_t MODULE_COMMANDS", &numbers(&index.modules.concat()), ", ", 16);
    array(&mut out, "uint16_t NAMES", &numbers(&index.names), ", ", 16);
    let _ = write!(out, "static const respb_command COMMANDS[] = {{\n{rows}}};\n\n");
    let _ = write!(out, "static const char *const LAYOUT_TEXTS[] = {{\n{texts}}};\n\n");
    let names: Vec<String> = FLAGS.iter().map(|name| format!("{name:?}")).collect();
    array(&mut out, "char *const FLAG_NAMES", &names, ", ", 6);
    out.pop();
    out
}

fn entry(id: u16) -> String {
    if id == NONE { "NO_ENTRY".to_owned() } else { format!("{{{id}, RESPB_FRAME_CORE, 0}}") }
}

fn row(id: usize, container: usize, command: &Command) -> String {
    let bit = |name: &String| FLAGS.iter().position(|each| each == name).map_or(0, |bit| 1u32 << bit);
    let flags: u32 = command.flags.iter().chain(&command.hidden_flags).map(bit).sum();
    let (opcode, module, number) = command.respb.as_ref().map_or((0, 0, 0), |respb| {
        (
            respb.opcode.0,
            respb.module.map_or(0, |module| module.0),
            respb.command.map_or(0, |number| number.0),
        )
    });
    let keys = command.keys;
    format!(
        "    {{{:?}, {}, {flags}u, {id}, {container}, {opcode}, {module}, {number}, {}, {}, {}}},\n",
        command.name, command.arity, keys.first, keys.last, keys.step
    )
}

fn numbers<T: ToString>(numbers: &[T]) -> Vec<String> {
    numbers.iter().map(T::to_string).collect()
}

fn array(out: &mut String, name: &str, items: &[String], between: &str, width: usize) {
    let _ = writeln!(out, "static const {name}[] = {{");
    for row in items.chunks(width) {
        let _ = writeln!(out, "    {}{}", row.join(between), between.trim_end());
    }
    out.push_str("};\n\n");
}

impl Arrays {
    /// Where words stand in `WORDS`: their number, then each with its length before it. 0 for no words.
    fn words(&mut self, token: Option<&str>) -> usize {
        let Some(token) = token else { return 0 };
        if let Some(at) = self.words_at.get(token) {
            return *at;
        }
        let at = self.words_len;
        let words: Vec<&str> = token.split(' ').collect();
        let mut text = format!("{},", words.len());
        self.words_len += 1;
        for word in words {
            let _ = write!(text, "{},", word.len());
            for letter in word.chars() {
                let _ = write!(text, "'{letter}',");
            }
            self.words_len += 1 + word.len();
        }
        self.words.push(text);
        self.words_at.insert(token.to_owned(), at);
        at
    }

    /// Adds fields that stand together; returns where the first one does.
    fn fields(&mut self, fields: &[Field]) -> usize {
        let made: Vec<String> = fields.iter().map(|field| self.field(field)).collect();
        let first = self.fields.len();
        self.fields.extend(made);
        first
    }

    fn field(&mut self, field: &Field) -> String {
        let (kind, sub) = match field.kind {
            FieldType::Str16 => ("STR16", 0),
            FieldType::Blob32 => ("BLOB32", 0),
            FieldType::I64 => ("I64", 0),
            FieldType::F64 => ("F64", 0),
            FieldType::U16 => ("U16", 0),
            FieldType::U8 if field.values.is_empty() => ("U8", 0),
            FieldType::U8 => ("ENUM", self.values(&field.values)),
            FieldType::List16 => ("LIST", self.list(field)),
            FieldType::Opts8 => ("OPTS8", self.options(field)),
        };
        let words = self.words(field.token.as_deref());
        format!("{{{words}, {sub}, {kind}, {}}}", u8::from(field.key))
    }

    fn values(&mut self, values: &[String]) -> usize {
        let words: Vec<usize> = values.iter().map(|value| self.words(Some(value))).collect();
        let at = self.values.len();
        self.values.push(values.len().to_string());
        self.values.extend(words.iter().map(usize::to_string));
        at
    }

    fn list(&mut self, field: &Field) -> usize {
        let items = self.fields(&field.items);
        let counted = u8::from(field.count == Some(Count::Argument));
        let transposed = u8::from(field.order == Some(Order::Transposed));
        let min = field.min.unwrap_or(0);
        self.lists.push(format!("{{{items}, {}, {counted}, {transposed}, {min}}}", field.items.len()));
        self.lists.len() - 1
    }

    fn options(&mut self, field: &Field) -> usize {
        let bits: Vec<String> = field.bits.iter().map(|bit| self.bit(bit, &field.bits)).collect();
        let (first, set) = (self.bits.len(), self.sets.len());
        self.bits.extend(bits);
        self.sets.extend(field.exclusive.iter().map(|names| mask(names, &field.bits).to_string()));
        self.options.push(format!("{{{first}, {set}, {}, {}}}", field.bits.len(), field.exclusive.len()));
        self.options.len() - 1
    }

    fn bit(&mut self, bit: &Bit, bits: &[Bit]) -> String {
        let words = self.words(bit.token.as_deref());
        let fields = self.fields(&bit.fields);
        format!("{{{words}, {fields}, {}, {}}}", bit.fields.len(), mask(bit.requires.as_slice(), bits))
    }
}

fn mask(names: &[String], bits: &[Bit]) -> u32 {
    let position = |name: &String| bits.iter().position(|bit| bit.label() == name).map_or(0, |i| 1 << i);
    names.iter().map(position).sum()
}

/// The fast path of a layout in the C library (`clib/part/table.h`), which walks all others.
fn known(shape: &str) -> String {
    const ALL: [&str; 15] = [
        "Empty", "S", "L", "SBO", "SL", "SS", "SB", "SI", "SII", "SSBO", "LSB", "SLSB", "SO", "SOLDS",
        "SSLSB",
    ];
    format!("SHAPE_{}", if ALL.contains(&shape) { shape.to_uppercase() } else { "WALKED".into() })
}
