//! The Wireshark dissector, `spec/wireshark/respb.lua`: the tables are made from the commands, the logic is in the Lua
//! files beside this one, and the script is one after the other.
//!
//! It owns the tables' form. What the script does with them is the business of the Lua files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};

use crate::model::Command;
use crate::respb::{Bit, Count, Field, FieldType, Layout, MODULE_OPCODE, Order, Respb};

const HEAD: &str = include_str!("wireshark/head.lua");

/// The logic, in the order in which Lua must see it.
const PARTS: &[&str] = &[
    include_str!("wireshark/text.lua"),
    include_str!("wireshark/reader.lua"),
    include_str!("wireshark/request.lua"),
    include_str!("wireshark/resp.lua"),
    include_str!("wireshark/control.lua"),
    include_str!("wireshark/reply.lua"),
    include_str!("wireshark/frame.lua"),
    include_str!("wireshark/fields.lua"),
    include_str!("wireshark/stream.lua"),
    include_str!("wireshark/show.lua"),
    include_str!("wireshark/dissector.lua"),
];

/// The text of the script.
///
/// # Errors
/// When a command's layout has no form in the tables.
pub fn generate(commands: &[Command]) -> Result<String> {
    let names = FieldNames::collect(commands);
    let mut out = String::from(HEAD);
    out.push_str(LEGEND);
    layouts(&mut out, commands, &names)?;
    subcommands(&mut out, commands);
    keys(&mut out, commands);
    names.write(&mut out);
    for part in PARTS {
        out.push_str(part);
    }
    Ok(out)
}

const LEGEND: &str = "\
-- The command table ---------------------------------------------------------------------------------------------------
--
-- A command has `args` when its layout is that of section 4.4, else `fields`. A field has `n`, its name, `t`, its type
-- (section 4.1), and `f`, the filter that shows it; lists have `items`, and `counted` or `transposed` (section 4.2);
-- options have `bits`, and `exclusive` and `requires` as masks of bits (section 4.3).
";

/// `CORE` by opcode, `MODULES` by module and command, and the modules' names.
fn layouts(out: &mut String, commands: &[Command], names: &FieldNames) -> Result<()> {
    let (mut core, mut modules, mut module_names) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for command in commands {
        let Some(respb) = &command.respb else { continue };
        let name = command.full_name();
        let Some(entry) = entry(&name, respb, names).with_context(|| format!("{name}: no form"))? else {
            continue;
        };
        if respb.opcode != MODULE_OPCODE {
            core.insert(respb.opcode.0, entry);
            continue;
        }
        let (Some(module), Some(number)) = (respb.module, respb.command) else {
            bail!("{name}: opcode {MODULE_OPCODE} without module and command");
        };
        modules.insert((module.0, number.0), entry);
        module_names.insert(module.0, name.split('.').next().unwrap_or_default().to_owned());
    }
    out.push_str("\nlocal CORE = {\n");
    for (opcode, entry) in core {
        writeln!(out, "  [0x{opcode:04X}] = {entry},")?;
    }
    out.push_str("}\n\n-- Module times 65,536, plus command.\nlocal MODULES = {\n");
    for ((module, number), entry) in modules {
        writeln!(out, "  [0x{module:04X}{number:04X}] = {entry},")?;
    }
    out.push_str("}\n\nlocal MODULE_NAMES = {\n");
    for (number, name) in module_names {
        writeln!(out, "  [{number}] = {name:?},")?;
    }
    out.push_str("}\n");
    Ok(())
}

/// The table of one command; none for a subcommand, which travels in its container's frame.
fn entry(name: &str, respb: &Respb, names: &FieldNames) -> Result<Option<String>> {
    Ok(match respb.layout().context("not exactly one of via, layout and fields")? {
        Layout::Via(_) => None,
        Layout::Args => Some(format!("{{ name = {name:?}, args = true }}")),
        Layout::Typed(fields) => {
            Some(format!("{{ name = {name:?}, fields = {} }}", field_list(fields, names)?))
        }
    })
}

fn field_list(list: &[Field], names: &FieldNames) -> Result<String> {
    let fields: Result<Vec<String>> = list.iter().map(|entry| field(entry, names)).collect();
    Ok(braced(&fields?))
}

fn field(field: &Field, names: &FieldNames) -> Result<String> {
    let mut members = vec![format!("n = {:?}", field.name), format!("t = {:?}", field.kind.name())];
    if let Some(filter) = names.filter(field) {
        members.push(format!("f = {filter:?}"));
    }
    if let Some(token) = &field.token {
        members.push(format!("token = {token:?}"));
    }
    if !field.values.is_empty() {
        let values: Vec<String> = field.values.iter().map(|value| format!("{value:?}")).collect();
        members.push(format!("values = {}", braced(&values)));
    }
    if field.kind == FieldType::List16 {
        members.push(format!("items = {}", field_list(&field.items, names)?));
    }
    if field.count == Some(Count::Argument) {
        members.push("counted = true".to_owned());
    }
    if field.order == Some(Order::Transposed) {
        members.push("transposed = true".to_owned());
    }
    if matches!(field.kind, FieldType::Opts8) {
        members.push(format!("bits = {}", bits(&field.bits, names)?));
    }
    if !field.exclusive.is_empty() {
        let masks: Result<Vec<String>> =
            field.exclusive.iter().map(|set| Ok(mask(&field.bits, set)?.to_string())).collect();
        members.push(format!("exclusive = {}", braced(&masks?)));
    }
    Ok(braced(&members))
}

fn bits(list: &[Bit], names: &FieldNames) -> Result<String> {
    let mut entries = Vec::new();
    for bit in list {
        let mut members = vec![format!("n = {:?}", bit.label())];
        if let Some(token) = &bit.token {
            members.push(format!("token = {token:?}"));
        }
        if !bit.fields.is_empty() {
            members.push(format!("fields = {}", field_list(&bit.fields, names)?));
        }
        if let Some(other) = &bit.requires {
            members.push(format!("requires = {}", mask(list, std::slice::from_ref(other))?));
        }
        entries.push(braced(&members));
    }
    Ok(braced(&entries))
}

/// The bits of these names as a number.
fn mask(bits: &[Bit], labels: &[String]) -> Result<u32> {
    let mut mask = 0;
    for label in labels {
        let index = bits.iter().position(|bit| bit.label() == label);
        mask |= 1 << index.with_context(|| format!("no bit {label}"))?;
    }
    Ok(mask)
}

fn braced(members: &[String]) -> String {
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) }
}

/// `SUBCOMMANDS`: container and subcommand, so that an argument can be told from one.
fn subcommands(out: &mut String, commands: &[Command]) {
    out.push_str("\nlocal SUBCOMMANDS = {\n");
    for command in commands.iter().filter(|command| command.container.is_some()) {
        out.push_str(&format!("  [{:?}] = true,\n", command.full_name()));
    }
    out.push_str("}\n");
}

/// `KEYS`: first key, last key and step, for what travels as arguments.
fn keys(out: &mut String, commands: &[Command]) {
    out.push_str("\n-- First key, last key (negative from the end) and step, the name being argument 0.\n");
    out.push_str("local KEYS = {\n");
    for command in commands.iter().filter(|command| command.keys.first > 0) {
        let keys = command.keys;
        let step = keys.step.max(1);
        let line = format!("  [{:?}] = {{ {}, {}, {step} }},\n", command.full_name(), keys.first, keys.last);
        out.push_str(&line);
    }
    out.push_str("}\n");
}

/// What a filter holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Int,
    Text,
    Double,
    Keyword,
}

impl Kind {
    fn of(field: &Field) -> Option<Kind> {
        match field.kind {
            FieldType::Str16 | FieldType::Blob32 => Some(Kind::Text),
            FieldType::U8 if !field.values.is_empty() => Some(Kind::Keyword),
            FieldType::I64 | FieldType::U16 | FieldType::U8 => Some(Kind::Int),
            FieldType::F64 => Some(Kind::Double),
            FieldType::List16 | FieldType::Opts8 => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Int => "int",
            Kind::Text => "text",
            Kind::Double => "double",
            Kind::Keyword => "keyword",
        }
    }
}

/// The filters `respb.arg.…`. Wireshark wants one type for each, so where commands give one name to different kinds of
/// field, all kinds but the commonest have the kind as a suffix.
struct FieldNames {
    /// The kinds of each name and how many fields have them, the commonest first.
    kinds: BTreeMap<String, Vec<(Kind, usize)>>,
}

impl FieldNames {
    fn collect(commands: &[Command]) -> FieldNames {
        let mut names = FieldNames { kinds: BTreeMap::new() };
        for respb in commands.iter().filter_map(|command| command.respb.as_ref()) {
            if let Some(Layout::Typed(fields)) = respb.layout() {
                names.add(fields);
            }
        }
        for kinds in names.kinds.values_mut() {
            kinds.sort_by_key(|(kind, count)| (usize::MAX - count, *kind));
        }
        names
    }

    fn add(&mut self, fields: &[Field]) {
        for field in fields {
            if let Some(kind) = Kind::of(field).filter(|_| !field.key) {
                let kinds = self.kinds.entry(field.name.clone()).or_default();
                match kinds.iter_mut().find(|(known, _)| *known == kind) {
                    Some((_, count)) => *count += 1,
                    None => kinds.push((kind, 1)),
                }
            }
            self.add(&field.items);
            field.bits.iter().for_each(|bit| self.add(&bit.fields));
        }
    }

    /// The key in the script's `fields` of what shows this field.
    fn filter(&self, field: &Field) -> Option<String> {
        if field.key {
            return Some("key".to_owned());
        }
        let kind = Kind::of(field)?;
        Some(format!("arg_{}", self.abbreviation(&field.name, kind)))
    }

    fn abbreviation(&self, name: &str, kind: Kind) -> String {
        let first = self.kinds.get(name).and_then(|kinds| kinds.first());
        if first.is_none_or(|(first, _)| *first == kind) {
            name.to_owned()
        } else {
            format!("{name}_{}", kind.name())
        }
    }

    fn write(&self, out: &mut String) {
        out.push_str("\n-- The filters respb.arg.…: name and type.\nlocal ARGUMENTS = {\n");
        for (name, kinds) in &self.kinds {
            for (kind, _) in kinds {
                let abbreviation = self.abbreviation(name, *kind);
                out.push_str(&format!("  [{abbreviation:?}] = {{ n = {name:?}, t = {:?} }},\n", kind.name()));
            }
        }
        out.push_str("}\n");
    }
}
