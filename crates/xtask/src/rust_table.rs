//! The Rust tables of `crates/protocol/src/table`: commands, RESPB layouts, look-up.
//!
//! It owns their text. The types that the text builds stand in `table/mod.rs` of the protocol crate; the hash here and
//! `fold_hash` there are the same function.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use crate::cost;
use crate::model::{BeginSearch, Command, FindKeys, KeySpec};
use crate::respb::{Bit, Count, Field, FieldType, Layout, Order};

/// Name of the command table: a fork that numbers its own commands takes another.
pub const TABLE_NAME: &str = "weft";
/// Version of the command table. It grows with every opcode that is added.
pub const TABLE_VERSION: u16 = 1;

/// First line of every generated Rust file.
pub(crate) const HEADER: &str = "// Generated from spec/commands by `cargo xtask gen`. Do not edit.\n\n";

/// `commands_gen.rs`: one entry for each command, in the order of full names.
#[must_use]
pub fn commands(commands: &[Command]) -> String {
    let ids: HashMap<&str, usize> = commands
        .iter()
        .enumerate()
        .filter(|(_, c)| c.container.is_none())
        .map(|(i, c)| (c.name.as_str(), i))
        .collect();
    let mut out = String::from(HEADER);
    out.push_str(
        "use super::{CommandId, CommandSpec, Cost, KeyBegin, KeyFind, KeySpec, Opcode, acl, flag, key_flag, policy};\n\n",
    );
    let _ = writeln!(
        out,
        "/// Name of the table.\npub const TABLE_NAME: &str = {TABLE_NAME:?};\n/// Version of the table.\n\
         pub const TABLE_VERSION: u16 = {TABLE_VERSION};\n/// Hash of the table.\n\
         pub const TABLE_HASH: &str = {:?};\n",
        crate::annex::hash(commands)
    );
    out.push_str("/// Every command and subcommand, sorted by name; subcommands behind their container.\n");
    out.push_str("pub static COMMANDS: &[CommandSpec] = &[\n");
    for command in commands {
        let container = match &command.container {
            Some(name) => format!("Some(CommandId({}))", ids[name.as_str()]),
            None => "None".into(),
        };
        let flags = union(
            "flag",
            command.flags.iter().map(String::as_str).chain(command.hidden_flags.iter().map(String::as_str)),
        );
        let policy = union("policy", command.policy.iter().map(String::as_str));
        let cost = cost::of(command).to_rust();
        let categories = union("acl", command.acl_categories.iter().map(|name| name.trim_start_matches('@')));
        let keys = command.keys;
        let _ = writeln!(
            out,
            "    CommandSpec {{ name: {:?}, container: {container}, arity: {}, flags: {flags}, policy: {policy}, cost: {cost}, acl: {categories}, \
             keys: ({}, {}, {}), key_specs: &[{}], since: {:?}, group: {:?}, summary: {:?}, complexity: {:?}, \
             opcode: {}, layout: {} }},",
            command.name,
            command.arity,
            keys.first,
            keys.last,
            keys.step,
            command.key_specs.iter().map(key_spec).collect::<Vec<_>>().join(", "),
            command.since,
            command.group,
            command.summary,
            command.complexity,
            opcode(command),
            layout_name(command),
        );
    }
    out.push_str("];\n");
    out
}

/// `layouts_gen.rs`: the fields of every typed layout.
#[must_use]
pub fn layouts(commands: &[Command]) -> String {
    let mut out = String::from(HEADER);
    out.push_str("use super::{Bit, Field, Kind, Layout, List, Options, Shape};\n");
    for command in commands.iter().filter(|command| command.container.is_none()) {
        let Some(Layout::Typed(fields)) = command.respb.as_ref().and_then(|respb| respb.layout()) else {
            continue;
        };
        let _ = write!(
            out,
            "\npub(super) const {}: Layout = Layout::Fields {{ shape: Shape::{}, fields: {} }};\n",
            constant(command),
            shape(fields),
            fields_text(fields),
        );
    }
    out
}

/// From opcode, module and name to command, for tables of any language.
pub(crate) struct Index {
    /// Id and fast path of each core opcode.
    pub(crate) core: Vec<(u16, &'static str)>,
    /// Ids of the commands of each module.
    pub(crate) modules: Vec<Vec<u16>>,
    /// An open-addressed hash table of the names, at most half full.
    pub(crate) names: Vec<u16>,
}

pub(crate) fn index_of(commands: &[Command]) -> Index {
    let mut core = vec![(NONE, "Walked"); 0x800];
    let mut modules: Vec<Vec<u16>> = Vec::new();
    for (id, command) in commands.iter().enumerate().filter(|(_, command)| command.container.is_none()) {
        let Some(respb) = &command.respb else { continue };
        match (respb.module, respb.command) {
            (Some(module), Some(number)) => {
                let module = usize::from(module.0);
                modules.resize_with(modules.len().max(module + 1), Vec::new);
                let numbers = &mut modules[module];
                numbers.resize(numbers.len().max(usize::from(number.0) + 1), NONE);
                numbers[usize::from(number.0)] = id as u16;
            }
            _ => {
                let shape = match respb.layout() {
                    Some(Layout::Typed(fields)) => shape(fields),
                    _ => "Ahead",
                };
                core[usize::from(respb.opcode.0)] = (id as u16, shape);
            }
        }
    }
    Index { core, modules, names: names(commands) }
}

/// `index_gen.rs`: from opcode, module and name to command.
#[must_use]
pub fn index(commands: &[Command]) -> String {
    let Index { core, modules, names } = index_of(commands);
    let mut out = String::from(HEADER);
    out.push_str("use super::Shape;\n");
    let shapes: BTreeSet<&str> = core.iter().map(|(_, shape)| *shape).collect();
    let shapes = shapes.into_iter().collect::<Vec<_>>().join(", ");
    let _ = writeln!(out, "use super::Shape::{{{shapes}}};\n");
    let _ = writeln!(out, "pub(super) const NONE: u16 = {NONE};");
    let longest = commands.iter().map(|command| command.name.len()).max().unwrap_or(0);
    let _ = writeln!(out, "pub(super) const NAME_MAX: usize = {longest};\n");
    number_table(&mut out, "CORE", "u16", &core.iter().map(|(id, _)| id.to_string()).collect::<Vec<_>>());
    number_table(
        &mut out,
        "SHAPES",
        "Shape",
        &core.iter().map(|(_, shape)| (*shape).to_string()).collect::<Vec<_>>(),
    );
    let starts = std::iter::once(0).chain(modules.iter().scan(0, |sum, numbers| {
        *sum += numbers.len();
        Some(*sum)
    }));
    number_table(&mut out, "MODULES", "u16", &starts.map(|start| start.to_string()).collect::<Vec<_>>());
    number_table(
        &mut out,
        "MODULE_COMMANDS",
        "u16",
        &modules.concat().iter().map(u16::to_string).collect::<Vec<_>>(),
    );
    number_table(&mut out, "NAMES", "u16", &names.iter().map(u16::to_string).collect::<Vec<_>>());
    out
}

/// No command.
pub(crate) const NONE: u16 = u16::MAX;

/// An open-addressed hash table of the names, at most half full.
fn names(commands: &[Command]) -> Vec<u16> {
    let containers: HashMap<&str, usize> = commands
        .iter()
        .enumerate()
        .filter(|(_, c)| c.container.is_none())
        .map(|(i, c)| (c.name.as_str(), i))
        .collect();
    let size = (commands.len() * 2).next_power_of_two();
    let mut table = vec![NONE; size];
    for (id, command) in commands.iter().enumerate() {
        let seed = command.container.as_ref().map_or(0, |name| containers[name.as_str()] as u32 + 1);
        let mut slot = fold_hash(seed, command.name.as_bytes()) as usize & (size - 1);
        while table[slot] != NONE {
            slot = (slot + 1) & (size - 1);
        }
        table[slot] = id as u16;
    }
    table
}

fn fold_hash(seed: u32, name: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5u32 ^ seed;
    for byte in name {
        hash = (hash ^ u32::from(byte.to_ascii_uppercase())).wrapping_mul(0x0100_0193);
    }
    hash ^ (hash >> 15)
}

fn number_table(out: &mut String, name: &str, kind: &str, values: &[String]) {
    let _ = writeln!(out, "pub(super) const {name}: [{kind}; {}] = [", values.len());
    for row in values.chunks(16) {
        let _ = writeln!(out, "    {},", row.join(", "));
    }
    out.push_str("];\n");
}

fn union<'a>(module: &str, names: impl Iterator<Item = &'a str>) -> String {
    let bits: Vec<String> = names.map(|name| format!("{module}::{}", name.to_uppercase())).collect();
    if bits.is_empty() { "0".into() } else { bits.join(" | ") }
}

fn key_spec(spec: &KeySpec) -> String {
    let flags = union("key_flag", spec.flags.iter().map(String::as_str));
    let begin = match &spec.begin_search {
        BeginSearch::Index { pos } => format!("KeyBegin::Index({pos})"),
        BeginSearch::Keyword { keyword, startfrom } => format!("KeyBegin::Keyword({keyword:?}, {startfrom})"),
        BeginSearch::Unknown => "KeyBegin::Unknown".into(),
    };
    let find = match &spec.find_keys {
        FindKeys::Range { lastkey, step, limit } => {
            format!("KeyFind::Range {{ last: {lastkey}, step: {step}, limit: {limit} }}")
        }
        FindKeys::Keynum { keynumidx, firstkey, step } => {
            format!("KeyFind::Count {{ at: {keynumidx}, first: {firstkey}, step: {step} }}")
        }
        FindKeys::Unknown => "KeyFind::Unknown".into(),
    };
    format!("KeySpec {{ flags: {flags}, begin: {begin}, find: {find} }}")
}

fn opcode(command: &Command) -> String {
    match &command.respb {
        Some(respb) => match (respb.module, respb.command) {
            (Some(module), Some(number)) => {
                format!("Opcode::Module {{ module: {module}, command: {number} }}")
            }
            _ => format!("Opcode::Core({})", respb.opcode),
        },
        None => unreachable!("`xtask commands check` refuses a command without an opcode"),
    }
}

fn layout_name(command: &Command) -> String {
    match command.respb.as_ref().and_then(|respb| respb.layout()) {
        Some(Layout::Typed(_)) => format!("super::layouts_gen::{}", constant(command)),
        _ => "super::Layout::Args".into(),
    }
}

fn constant(command: &Command) -> String {
    command.full_name().replace(|c: char| !c.is_ascii_alphanumeric(), "_").to_uppercase()
}

/// The decoder's fast path for a layout, by the name of `table::Shape`.
pub(crate) fn shape(fields: &[Field]) -> &'static str {
    use FieldType::{Blob32, F64, I64, List16, Opts8, Str16};
    if fields.iter().any(|field| field.token.is_some()) {
        return "Ahead";
    }
    let kinds: Vec<FieldType> = fields.iter().map(|field| field.kind).collect();
    let items: Option<Vec<FieldType>> = fields
        .iter()
        .find(|field| field.kind == List16)
        .filter(|list| list.count == Some(Count::None) && list.order != Some(Order::Transposed))
        .map(|list| list.items.iter().map(|item| item.kind).collect());
    match (kinds.as_slice(), items.as_deref()) {
        ([], _) => "Empty",
        ([Str16], _) => "S",
        ([Str16, Str16], _) => "SS",
        ([Str16, Blob32], _) => "SB",
        ([Str16, I64], _) => "SI",
        ([Str16, I64, I64], _) => "SII",
        ([Str16, Blob32, Opts8], _) => "SBO",
        // Straight code has it for modules only; a core command of this layout would be walked.
        ([Str16, Str16, Blob32, Opts8], _) => "SSBO",
        ([List16], Some([Str16])) => "L",
        ([Str16, List16], Some([Str16])) => "SL",
        ([List16], Some([Str16, Blob32])) => "LSB",
        ([Str16, List16], Some([Str16, Blob32])) => "SLSB",
        ([Str16, Opts8], _) => "SO",
        ([Str16, Opts8, List16], Some([F64, Str16])) => "SOLDS",
        ([Str16, Str16, List16], Some([Str16, Blob32])) => "SSLSB",
        ([Str16, Str16, I64], _) => "SSI",
        ([Str16, F64, Str16], _) => "SDS",
        ([Str16, Str16, Opts8], _) => "SSO",
        ([Str16, I64, Opts8], _) => "SIO",
        ([Str16, I64, I64, Opts8], _) => "SIIO",
        ([Str16, Str16, Str16, Opts8], _) => "SSSO",
        ([Str16, Str16, List16], Some([Str16])) => "SSL",
        ([List16, F64], Some([Str16])) => "LD",
        _ => "Ahead",
    }
}

fn fields_text(fields: &[Field]) -> String {
    format!("&[{}]", fields.iter().map(field_text).collect::<Vec<_>>().join(", "))
}

fn field_text(field: &Field) -> String {
    let kind = match field.kind {
        FieldType::Str16 => "Kind::Str16".into(),
        FieldType::Blob32 => "Kind::Blob32".into(),
        FieldType::I64 => "Kind::I64".into(),
        FieldType::F64 => "Kind::F64".into(),
        FieldType::U16 => "Kind::U16".into(),
        FieldType::U8 if field.values.is_empty() => "Kind::U8".into(),
        FieldType::U8 => {
            format!(
                "Kind::Enum(&[{}])",
                field.values.iter().map(|v| words(Some(v))).collect::<Vec<_>>().join(", ")
            )
        }
        FieldType::List16 => format!(
            "Kind::List(&List {{ items: {}, counted: {}, transposed: {}, min: {} }})",
            fields_text(&field.items),
            field.count == Some(Count::Argument),
            field.order == Some(Order::Transposed),
            field.min.unwrap_or(0),
        ),
        FieldType::Opts8 => format!(
            "Kind::Options(&Options {{ bits: &[{}], exclusive: &[{}] }})",
            field.bits.iter().map(|bit| bit_text(bit, &field.bits)).collect::<Vec<_>>().join(", "),
            field
                .exclusive
                .iter()
                .map(|set| mask(set, &field.bits).to_string())
                .collect::<Vec<_>>()
                .join(", "),
        ),
    };
    format!(
        "Field {{ name: {:?}, kind: {kind}, key: {}, token: {} }}",
        field.name,
        field.key,
        words(field.token.as_ref())
    )
}

fn bit_text(bit: &Bit, bits: &[Bit]) -> String {
    format!(
        "Bit {{ name: {:?}, token: {}, fields: {}, requires: {} }}",
        bit.label(),
        words(bit.token.as_ref()),
        fields_text(&bit.fields),
        mask(bit.requires.as_slice(), bits),
    )
}

fn mask(names: &[String], bits: &[Bit]) -> u16 {
    let position = |name: &String| bits.iter().position(|bit| bit.label() == name).map_or(0, |i| 1 << i);
    names.iter().map(position).sum()
}

fn words(token: Option<&String>) -> String {
    let words: Vec<String> =
        token.into_iter().flat_map(|text| text.split(' ')).map(|word| format!("{word:?}")).collect();
    format!("&[{}]", words.join(", "))
}
