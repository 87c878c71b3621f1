//! The command table as constants that C can read, and layouts in the notation of the specification's annex A.
//!
//! Owns the notation. The contents are the protocol crate's.

use core::ffi::c_char;
use core::ptr;

use weft_protocol::table::{self, COMMANDS, CommandId, Field, Kind, Layout, List, Opcode, Options, flag};
use weft_protocol::{Buffer, FixedBuffer};

use crate::errors::zero_ended;
use crate::memory;
use crate::types::NO_COMMAND;

/// Longest name, with the zero byte at its end.
const NAME_MAX: usize = 32;

/// `respb_command`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Command {
    /// Its name.
    pub name: *const c_char,
    /// Arguments with the name, negative for a minimum.
    pub arity: i32,
    /// Bits of [`flag`].
    pub flags: u32,
    /// Index in the table.
    pub id: u16,
    /// Index of its container.
    pub container: u16,
    /// Its opcode.
    pub opcode: u16,
    /// Its module.
    pub module: u16,
    /// Its number in the module.
    pub module_command: u16,
    /// Position of the first key.
    pub key_first: i16,
    /// Position of the last key.
    pub key_last: i16,
    /// Distance between keys.
    pub key_step: i16,
}

/// How many commands there are.
const COUNT: usize = COMMANDS.len();

static NAMES: [[u8; NAME_MAX]; COUNT] = {
    let (mut out, mut at) = ([[0; NAME_MAX]; COUNT], 0);
    while at < COUNT {
        out[at] = zero_ended(COMMANDS[at].name);
        at += 1;
    }
    out
};

/// Commands, with pointers to [`NAMES`].
struct Table([Command; COUNT]);

// SAFETY: the pointers are to constants, and nobody can write through them.
unsafe impl Sync for Table {}

static TABLE: Table = {
    let none = Command {
        name: ptr::null(),
        arity: 0,
        flags: 0,
        id: 0,
        container: NO_COMMAND,
        opcode: 0,
        module: 0,
        module_command: 0,
        key_first: 0,
        key_last: 0,
        key_step: 0,
    };
    let (mut out, mut at) = ([none; COUNT], 0);
    while at < COUNT {
        let spec = &COMMANDS[at];
        let (opcode, module, module_command) = match spec.opcode {
            Opcode::Core(opcode) => (opcode, 0, 0),
            Opcode::Module { module, command } => (weft_protocol::respb::frame::MODULE, module, command),
        };
        out[at] = Command {
            name: (&raw const NAMES[at]).cast(),
            arity: spec.arity as i32,
            flags: spec.flags,
            id: at as u16,
            container: match spec.container {
                Some(id) => id.0,
                None => NO_COMMAND,
            },
            opcode,
            module,
            module_command,
            key_first: spec.keys.0,
            key_last: spec.keys.1,
            key_step: spec.keys.2,
        };
        at += 1;
    }
    Table(out)
};

fn entry(id: Option<CommandId>) -> *const Command {
    id.and_then(|id| TABLE.0.get(usize::from(id.0))).map_or(ptr::null(), ptr::from_ref)
}

/// How many commands there are.
#[unsafe(no_mangle)]
pub extern "C" fn respb_command_count() -> u16 {
    COUNT as u16
}

/// A command by its index.
#[unsafe(no_mangle)]
pub extern "C" fn respb_command_get(id: u16) -> *const Command {
    entry(Some(CommandId(id)))
}

/// A command by its name.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_command_by_name(name: *const u8, len: usize) -> *const Command {
    // SAFETY: the caller's promise, handed on.
    entry(unsafe { memory::bytes(name, len) }.and_then(table::by_name))
}

/// A command by its opcode.
#[unsafe(no_mangle)]
pub extern "C" fn respb_command_by_opcode(opcode: u16) -> *const Command {
    entry(table::by_opcode(opcode))
}

/// A module's command.
#[unsafe(no_mangle)]
pub extern "C" fn respb_command_by_module(module: u16, command: u16) -> *const Command {
    entry(table::by_module(module, command))
}

/// A subcommand by its name.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_subcommand(container: u16, name: *const u8, len: usize) -> *const Command {
    // SAFETY: the caller's promise, handed on.
    let name = unsafe { memory::bytes(name, len) };
    entry(name.and_then(|name| table::subcommand(CommandId(container), name)))
}

/// The notation of a layout.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_command_layout(id: u16, buffer: *mut u8, capacity: usize) -> usize {
    // SAFETY: the caller's promise, handed on.
    let Some(buffer) = (unsafe { memory::buffer(buffer, capacity) }) else { return 0 };
    let mut out = FixedBuffer::new(buffer, 0);
    match COMMANDS.get(usize::from(id)) {
        Some(spec) => layout(&mut out, spec.container, spec.layout),
        None => return 0,
    }
    let len = out.len();
    if let Some(end) = buffer.get_mut(len.min(capacity.saturating_sub(1))) {
        *end = 0;
    }
    len
}

/// Writes a layout, `key:str16 options:opts8(EX=seconds:i64 | NX)`.
fn layout(out: &mut impl Buffer, container: Option<CommandId>, layout: Layout) {
    match (layout, container) {
        (Layout::Fields { fields: [], .. }, _) => out.extend_from_slice(b"header only"),
        (Layout::Fields { fields, .. }, _) => field_list(out, fields),
        (Layout::Args, None) => out.extend_from_slice(b"args"),
        (Layout::Args, Some(container)) => {
            out.extend_from_slice(b"args of ");
            out.extend_from_slice(container.spec().name.as_bytes());
        }
    }
}

fn field_list(out: &mut impl Buffer, fields: &[Field]) {
    separated(out, fields, b" ", |out, field| {
        out.extend_from_slice(field.name.as_bytes());
        out.push(b':');
        kind_of(out, &field.kind);
    });
}

fn kind_of(out: &mut impl Buffer, kind: &Kind) {
    let name: &[u8] = match kind {
        Kind::Str16 => b"str16",
        Kind::Blob32 => b"blob32",
        Kind::I64 => b"i64",
        Kind::F64 => b"f64",
        Kind::U16 => b"u16",
        Kind::U8 | Kind::Enum(_) => b"u8",
        Kind::List(_) => b"list16",
        Kind::Options(_) => b"opts8",
    };
    out.extend_from_slice(name);
    match kind {
        Kind::Enum(values) => {
            out.push(b'(');
            separated(out, values, b" | ", |out, words| {
                separated(out, words, b" ", |out, word| out.extend_from_slice(word.as_bytes()));
            });
            out.push(b')');
        }
        Kind::List(list) => list_of(out, list),
        Kind::Options(options) => options_of(out, options),
        _ => {}
    }
}

fn list_of(out: &mut impl Buffer, list: &List) {
    out.push(b'(');
    field_list(out, list.items);
    out.push(b')');
    if list.transposed {
        out.extend_from_slice(b" transposed");
    }
    if list.counted {
        out.extend_from_slice(b" counted");
    }
}

fn options_of(out: &mut impl Buffer, options: &Options) {
    out.push(b'(');
    separated(out, options.bits, b" | ", |out, bit| {
        if bit.token.is_empty() {
            out.extend_from_slice(bit.name.as_bytes());
        } else {
            separated(out, bit.token, b" ", |out, word| out.extend_from_slice(word.as_bytes()));
        }
        if !bit.fields.is_empty() {
            out.push(b'=');
            field_list(out, bit.fields);
        }
    });
    out.push(b')');
}

/// Writes items with something between them.
fn separated<B: Buffer, T>(out: &mut B, items: &[T], between: &[u8], write: impl Fn(&mut B, &T)) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(between);
        }
        write(out, item);
    }
}

static FLAG_NAMES: [[u8; NAME_MAX]; flag::NAMES.len()] = {
    let (mut out, mut at) = ([[0; NAME_MAX]; flag::NAMES.len()], 0);
    while at < flag::NAMES.len() {
        out[at] = zero_ended(flag::NAMES[at].1);
        at += 1;
    }
    out
};

/// The name of a flag.
#[unsafe(no_mangle)]
pub extern "C" fn respb_flag_name(bit: u32) -> *const c_char {
    FLAG_NAMES.get(bit as usize).map_or(ptr::null(), |name| name.as_ptr().cast())
}
