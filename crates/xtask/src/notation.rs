//! The notation of RESPB layouts, one line each, as Annex A of the specification explains it.
//!
//! It owns the text. It leaves nothing out: two layouts that differ on the wire or in the argument form differ in
//! notation.

use crate::respb::{Bit, Count, Field, FieldType, Layout, Order, Respb};

/// The layout of a command: its fields, `args`, or nothing for a frame that is only a header.
#[must_use]
pub fn layout(respb: &Respb) -> String {
    match respb.layout() {
        Some(Layout::Typed(fields)) => fields_text(fields),
        Some(Layout::Args) => "args".to_owned(),
        Some(Layout::Via(container)) => format!("args of {container}"),
        None => String::new(),
    }
}

/// The opcode of a command, with module and command number where there are any.
#[must_use]
pub fn opcode(respb: &Respb) -> String {
    match (respb.module, respb.command) {
        (Some(module), Some(number)) => format!("{:04X} {:04X} {:04X}", respb.opcode.0, module.0, number.0),
        _ => format!("{:04X}", respb.opcode.0),
    }
}

fn fields_text(fields: &[Field]) -> String {
    fields.iter().map(field).collect::<Vec<_>>().join(" ")
}

fn field(field: &Field) -> String {
    let token = field.token.as_ref().map_or(String::new(), |token| format!("\"{token}\" "));
    let key = if field.key { "!" } else { "" };
    format!("{token}{}:{}{key}", field.name, kind(field))
}

fn kind(field: &Field) -> String {
    let name = field.kind.name();
    match field.kind {
        FieldType::U8 if !field.values.is_empty() => format!("{name}({})", field.values.join("|")),
        FieldType::List16 => {
            let counted = if field.count == Some(Count::Argument) { "#" } else { "" };
            let transposed = if field.order == Some(Order::Transposed) { "^" } else { "" };
            let least = if field.min == Some(0) { "*" } else { "+" };
            format!("{counted}{transposed}{name}({}){least}", fields_text(&field.items))
        }
        FieldType::Opts8 => {
            let bits = field.bits.iter().map(bit).collect::<Vec<_>>().join(" ");
            let sets = field
                .exclusive
                .iter()
                .map(|set| set.join("^").replace(' ', "_"))
                .collect::<Vec<_>>()
                .join("; ");
            if sets.is_empty() { format!("{name}{{{bits}}}") } else { format!("{name}{{{bits}; {sets}}}") }
        }
        _ => name.to_owned(),
    }
}

fn bit(bit: &Bit) -> String {
    let label = bit.token.as_ref().map_or_else(|| bit.label().to_owned(), |token| token.replace(' ', "_"));
    let fields =
        if bit.fields.is_empty() { String::new() } else { format!("({})", fields_text(&bit.fields)) };
    let requires = bit.requires.as_ref().map_or(String::new(), |other| format!("<{other}"));
    let positional = if bit.token.is_none() { "?" } else { "" };
    format!("{positional}{label}{fields}{requires}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_all_that_a_layout_has() {
        let respb = |text: &str| layout(&serde_json::from_str(text).unwrap());
        assert_eq!(respb(r#"{"opcode": "0x0300", "fields": []}"#), "");
        assert_eq!(respb(r#"{"opcode": "0x0307", "layout": "args"}"#), "args");
        assert_eq!(respb(r#"{"opcode": "0x0307", "via": "CLIENT"}"#), "args of CLIENT");
        let fields = r#"{"opcode": "0x0001", "fields": [
            {"name": "key", "type": "str16", "key": true},
            {"name": "where", "type": "u8", "values": ["LEFT", "RIGHT"]},
            {"name": "options", "type": "opts8", "bits": [
                {"token": "EX", "fields": [{"name": "seconds", "type": "i64"}]}, {"token": "PX"},
                {"name": "count", "requires": "EX", "fields": [{"name": "count", "type": "u16"}]}],
             "exclusive": [["EX", "PX"]]},
            {"name": "pairs", "type": "list16", "token": "FIELDS", "count": "argument", "min": 1,
             "order": "transposed", "items": [{"name": "field", "type": "str16"}]}]}"#;
        assert_eq!(
            respb(fields),
            "key:str16! where:u8(LEFT|RIGHT) options:opts8{EX(seconds:i64) PX ?count(count:u16)<EX; EX^PX} \
             \"FIELDS\" pairs:#^list16(field:str16)+"
        );
    }
}
