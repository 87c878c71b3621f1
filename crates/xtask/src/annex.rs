//! `spec/layouts.md`, Annex A of the specification: the layout of every command.
//!
//! It owns the page; the notation of a layout is `notation`'s.

use std::fmt::Write as _;

use crate::model::Command;
use crate::notation;
use crate::respb::Layout;
use crate::rust_table::{TABLE_NAME, TABLE_VERSION};

const HEAD: &str = r#"# Annex A: layouts

Generated from `spec/commands` by `cargo run -p xtask -- gen`. Do not edit.

The payload behind the header of each command's frame (spec section 4). Opcodes are hexadecimal; a module's command has
three numbers: F000, module, command. Subcommands travel in their container's frame and have no line.

| notation | meaning |
|---|---|
| `name:type` | a field |
| `name:type!` | a field that is a key |
| `"WORD" name:type` | in the argument form, WORD stands before the field; it has no bytes of its own |
| `u8(A\|B)` | value 0 is A, 1 is B; several words of a value are several arguments |
| `list16(…)+` `list16(…)*` | at least one item; any number |
| `#list16` | in the argument form, the number of items stands before them |
| `^list16` | in the argument form, all first fields, then all second ones |
| `opts8{A B(x:i64) ?c(y:i64)<A; A^B}` | bit 0 is A, bit 1 is B with a payload, bit 2 has no keyword in the argument form and needs A; A and B exclude each other. A keyword of two words is written A_B |
| `args` | `u32` total length, then arguments of `u32` length each |
| – | a header and nothing else |

"#;

/// Opcode, command and layout, in the order of the opcodes.
fn rows(commands: &[Command]) -> Vec<(String, &Command, String)> {
    let mut rows: Vec<(String, &Command, String)> = commands
        .iter()
        .filter(|command| command.container.is_none())
        .filter_map(|command| {
            let respb = command.respb.as_ref()?;
            Some((notation::opcode(respb), command, notation::layout(respb)))
        })
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

/// The hash of the table (spec section 13.2): FNV-1a of 64 bits over a line for each row.
#[must_use]
pub fn hash(commands: &[Command]) -> String {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for (opcode, command, layout) in rows(commands) {
        for byte in format!("{opcode}\t{}\t{layout}\n", command.name).bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    format!("{hash:016x}")
}

/// The whole page.
#[must_use]
pub fn generate(commands: &[Command]) -> String {
    let mut page = String::from(HEAD);
    let rows = rows(commands);
    let typed = commands
        .iter()
        .filter_map(|command| command.respb.as_ref())
        .filter(|respb| matches!(respb.layout(), Some(Layout::Typed(_))))
        .count();
    let _ = writeln!(
        page,
        "Table `{TABLE_NAME}`, version {TABLE_VERSION}, hash `{}`: {} commands, {typed} typed layouts.\n",
        hash(commands),
        rows.len()
    );
    page.push_str("| opcode | command | payload |\n|---|---|---|\n");
    for (opcode, command, layout) in rows {
        let layout =
            if layout.is_empty() { "–".to_owned() } else { format!("`{}`", layout.replace('|', "\\|")) };
        let _ = writeln!(page, "| {opcode} | {} | {layout} |", command.name);
    }
    page
}
