//! Checks of the `respb` members: numbers are unique, subcommands follow their container, layouts are well formed.
//!
//! It owns the rules that the schema cannot say. It does not know what the layouts mean on the wire.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::Finding;
use crate::model::{Command, KeySpec};
use crate::respb::{Bit, Count, Field, FieldType, Layout, MODULE_OPCODE, Respb};

/// Reports what is wrong with the `respb` members of all commands. Either all files have the member or none has.
pub fn check(commands: &[Command], findings: &mut Vec<Finding>) {
    if commands.iter().all(|command| command.respb.is_none()) {
        return;
    }
    let mut owners: BTreeMap<(u16, u16, u16), String> = BTreeMap::new();
    for command in commands {
        let Some(respb) = &command.respb else {
            findings.push(Finding::new(command, "respb", "missing, and other files have it"));
            continue;
        };
        match respb.layout() {
            None => findings.push(Finding::new(command, "respb", "exactly one of fields, layout and via")),
            Some(Layout::Via(container)) => check_via(commands, command, respb, container, findings),
            Some(layout) => {
                check_number(command, respb, &mut owners, findings);
                if let Layout::Typed(fields) = layout {
                    check_layout(command, fields, findings);
                }
            }
        }
    }
}

/// A subcommand names its own container and has that container's opcode.
fn check_via(
    commands: &[Command],
    command: &Command,
    respb: &Respb,
    container: &str,
    findings: &mut Vec<Finding>,
) {
    if command.container.as_deref() != Some(container) {
        findings.push(Finding::new(command, "respb.via", "not the command's container"));
    }
    let parent = commands.iter().find(|each| each.container.is_none() && each.name == container);
    let opcode = parent.and_then(|parent| parent.respb.as_ref()).map(|respb| respb.opcode);
    if opcode != Some(respb.opcode) {
        findings.push(Finding::new(command, "respb.opcode", "not the opcode of the container"));
    }
}

/// Opcodes, and module and command numbers, have one owner.
fn check_number(
    command: &Command,
    respb: &Respb,
    owners: &mut BTreeMap<(u16, u16, u16), String>,
    findings: &mut Vec<Finding>,
) {
    if command.container.is_some() {
        findings.push(Finding::new(command, "respb.via", "missing from a subcommand"));
    }
    let in_module = respb.opcode == MODULE_OPCODE;
    if in_module != command.module.is_some()
        || in_module != (respb.module.is_some() && respb.command.is_some())
    {
        findings.push(Finding::new(
            command,
            "respb.opcode",
            format!("{MODULE_OPCODE} is for module commands"),
        ));
    }
    let number =
        (respb.opcode.0, respb.module.map_or(0, |each| each.0), respb.command.map_or(0, |each| each.0));
    if let Some(owner) = owners.insert(number, command.full_name()) {
        findings.push(Finding::new(command, "respb.opcode", format!("{owner} has the same number")));
    }
}

/// A typed layout as a whole.
fn check_layout(command: &Command, fields: &[Field], findings: &mut Vec<Finding>) {
    let mut report = |member: &str, problem: String| findings.push(Finding::new(command, member, problem));
    check_fields(fields, "respb.fields", &mut report);
    if has_key(fields) && command.key_specs.is_empty() {
        report("respb.fields", "a field is a key, and there are no key specs".to_owned());
    }
    // Shard channels are routed like keys and are none.
    let is_key = |spec: &KeySpec| !spec.flags.iter().any(|flag| flag == "not_key");
    if !has_key(fields) && command.key_specs.iter().any(is_key) {
        report("respb.fields", "no field is a key, and there are key specs".to_owned());
    }
    let (least, most) = words(fields);
    let arity = command.arity.unsigned_abs() as usize;
    if command.arity > 0 && (least + 1 > arity || most.is_some_and(|most| most + 1 < arity)) {
        report("respb.fields", format!("they make {} arguments at least, the arity is {arity}", least + 1));
    }
    if command.arity < 0 && most.is_some_and(|most| most + 1 < arity) {
        report("respb.fields", "they make fewer arguments than the arity asks for".to_owned());
    }
}

fn has_key(fields: &[Field]) -> bool {
    fields
        .iter()
        .any(|field| field.key || has_key(&field.items) || field.bits.iter().any(|bit| has_key(&bit.fields)))
}

/// Members that belong to one type are on that type and nowhere else; names are unique and references lead somewhere.
fn check_fields(fields: &[Field], path: &str, report: &mut impl FnMut(&str, String)) {
    let mut names = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let member = format!("{path}[{index}]");
        if !names.insert(&field.name) {
            report(&format!("{member}.name"), format!("{:?} stands twice in its list", field.name));
        }
        let is_list = field.kind == FieldType::List16;
        let bit_room = match field.kind {
            FieldType::Opts8 => 8,
            _ => 0,
        };
        if !field.values.is_empty() && field.kind != FieldType::U8 {
            report(&format!("{member}.values"), "only of u8".to_owned());
        }
        if is_list == field.items.is_empty() {
            report(&format!("{member}.items"), "of list16, and of nothing else".to_owned());
        }
        if (bit_room > 0) == field.bits.is_empty() || field.bits.len() > bit_room {
            report(&format!("{member}.bits"), format!("{} holds {bit_room} bits", field.kind.name()));
        }
        check_fields(&field.items, &format!("{member}.items"), report);
        check_bits(field, &member, report);
    }
}

fn check_bits(field: &Field, member: &str, report: &mut impl FnMut(&str, String)) {
    let known = |label: &String| {
        let is_it = |bit: &Bit| bit.name.as_ref() == Some(label) || bit.token.as_ref() == Some(label);
        field.bits.iter().any(is_it)
    };
    for (index, bit) in field.bits.iter().enumerate() {
        let member = format!("{member}.bits[{index}]");
        if field.bits[..index].iter().any(|other| other.label() == bit.label()) {
            report(&member, format!("{:?} stands twice", bit.label()));
        }
        if bit.requires.as_ref().is_some_and(|label| !known(label)) {
            report(&format!("{member}.requires"), "there is no such bit".to_owned());
        }
        check_fields(&bit.fields, &format!("{member}.fields"), report);
    }
    for (index, label) in field.exclusive.iter().flatten().enumerate() {
        if !known(label) {
            report(&format!("{member}.exclusive"), format!("entry {index}: there is no bit {label:?}"));
        }
    }
}

/// Least and greatest number of arguments that fields stand for; no greatest with a list.
fn words(fields: &[Field]) -> (usize, Option<usize>) {
    fields
        .iter()
        .map(field_words)
        .fold((0, Some(0)), |sum, own| (sum.0 + own.0, sum.1.zip(own.1).map(|(one, another)| one + another)))
}

fn field_words(field: &Field) -> (usize, Option<usize>) {
    let count_words = |token: &Option<String>| token.as_deref().map_or(0, |token| token.split(' ').count());
    let token = count_words(&field.token);
    match field.kind {
        FieldType::List16 => {
            let count = usize::from(field.count == Some(Count::Argument));
            (token + count + usize::from(field.min.unwrap_or(0)) * words(&field.items).0, None)
        }
        FieldType::Opts8 => {
            let all =
                field.bits.iter().map(|bit| words(&bit.fields).1.map(|most| most + count_words(&bit.token)));
            (token, all.sum::<Option<usize>>().map(|most| token + most))
        }
        _ => (token + 1, Some(token + 1)),
    }
}
