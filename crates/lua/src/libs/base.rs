//! Owns: faces, and the basic functions that must know of them or could load or loop what they must not: `pcall`,
//! `next`, `rawset`, `setmetatable`, `load` and their like. Does not own: the libraries.
//!
//! A face is an empty table with a metatable of its own:
//!
//! | field | what |
//! |---|---|
//! | `__index` | the real table |
//! | `__newindex` | an error: "Attempt to modify a readonly table" |
//! | [`FACE`] | the real table: how the functions here tell a face, under a key that scripts cannot have |

use crate::frame::{Answer, CFunction, Frame, Kind, Raise, c_function};
use crate::libs::{replace_functions, set_functions};
use std::ffi::{CString, c_void};

/// The key of a face's metatable under which the real table stands: a pointer that no script has.
static FACE: u8 = 0;

const READ_ONLY: &str = "Attempt to modify a readonly table";

fn push_face_key(frame: &mut Frame<'_>) {
    frame.push_pointer(std::ptr::from_ref(&FACE).cast::<c_void>());
}

/// Takes a table from the top and pushes its face. `called`: the real table gets the face under this name.
pub(super) fn face(frame: &mut Frame<'_>, called: Option<&str>) {
    let real = frame.absolute(-1);
    frame.push_table(0, 0);
    frame.push_table(0, 3);
    frame.push_copy(real);
    frame.set_field(-2, "__index");
    frame.push_function(c_function!(refuse_write), 0);
    frame.set_field(-2, "__newindex");
    push_face_key(frame);
    frame.push_copy(real);
    frame.raw_set(-3);
    frame.set_metatable(-2);
    if let Some(name) = called {
        frame.push_copy(-1);
        frame.set_field(real, name);
    }
    frame.remove(real);
}
/// Pushes the metatable of a face, for those who made it.
pub(super) fn metatable_of_face(frame: &mut Frame<'_>, at: i32) {
    frame.metatable(at);
}

/// Reading a name that the table has not is an error.
pub(super) fn name_missing(frame: &mut Frame<'_>, table: i32) {
    set_index(frame, table, c_function!(missing));
}
/// The same, where KEYS and ARGV are made when they are asked for.
pub(super) fn name_missing_given(frame: &mut Frame<'_>, table: i32) {
    set_index(frame, table, c_function!(missing_given));
}
fn set_index(frame: &mut Frame<'_>, table: i32, index: CFunction) {
    let table = frame.absolute(table);
    frame.push_table(0, 1);
    frame.push_function(index, 0);
    frame.set_field(-2, "__index");
    frame.set_metatable(table);
}

/// Puts faces in the place of libraries.
pub(super) fn close_libraries(frame: &mut Frame<'_>, names: i32, libraries: &[&str]) {
    for library in libraries {
        frame.field(names, library);
        if frame.kind(-1) != Kind::Table {
            frame.pop_any(1);
            continue;
        }
        face(frame, None);
        frame.set_field(names, library);
    }
}
/// What strings have as their metatable is shown by a face too.
pub(super) fn close_strings(frame: &mut Frame<'_>, names: i32) {
    frame.push_bytes(b"");
    frame.metatable(-1);
    frame.push_table(0, 1);
    frame.field(names, "string");
    frame.set_field(-2, "__index");
    face(frame, None);
    frame.set_field(-2, "__metatable");
    frame.pop_any(2);
}

/// What scripts see as the metatable of their global names.
const GLOBALS_METATABLE: &str = "weft.globals.metatable";

/// Opens the functions here.
pub(super) fn open(frame: &mut Frame<'_>, names: i32) {
    frame.push_copy(names);
    set_functions(
        frame,
        &[
            ("pcall", c_function!(pcall)),
            ("xpcall", c_function!(xpcall)),
            ("next", c_function!(next)),
            ("pairs", c_function!(pairs)),
            ("rawget", c_function!(rawget)),
            ("rawset", c_function!(rawset)),
            ("getmetatable", c_function!(getmetatable)),
            ("setmetatable", c_function!(setmetatable)),
            ("loadstring", c_function!(loadstring)),
            ("load", c_function!(load)),
            ("collectgarbage", c_function!(collectgarbage)),
        ],
    );
    frame.pop_any(1);
    replace_functions(frame, names, "string", &[("dump", c_function!(dump))]);
    frame.push_table(0, 1);
    frame.push_function(c_function!(missing), 0);
    frame.set_field(-2, "__index");
    face(frame, None);
    frame.set_field(Frame::REGISTRY, GLOBALS_METATABLE);
}

/// Whether a value is a face, which nothing may write to.
pub(crate) fn is_protected(frame: &mut Frame<'_>, at: i32) -> bool {
    let found = push_real(frame, at);
    if found {
        frame.pop_any(1);
    }
    found
}
/// Pushes the real table of a face; nothing where it is none.
fn push_real(frame: &mut Frame<'_>, at: i32) -> bool {
    if frame.kind(at) != Kind::Table || !frame.metatable(at) {
        return false;
    }
    push_face_key(frame);
    frame.raw_get(-2);
    let metatable = frame.absolute(-2);
    frame.remove(metatable);
    let found = frame.kind(-1) == Kind::Table;
    if !found {
        frame.pop_any(1);
    }
    found
}
/// The error of whoever writes to a table that is closed.
pub(super) fn writable(frame: &mut Frame<'_>, at: i32) -> Result<(), Raise> {
    if is_protected(frame, at) { Err(frame.plain_error(READ_ONLY)) } else { Ok(()) }
}

/// What a value is in an error's text.
pub(crate) fn text_of(frame: &mut Frame<'_>, at: i32) -> Vec<u8> {
    match frame.kind(at) {
        Kind::String | Kind::Number => {
            frame.push_copy(at);
            let text = frame.bytes(-1).unwrap_or_default().to_vec();
            frame.pop_any(1);
            text
        }
        Kind::Boolean => if frame.truth(at) { "true" } else { "false" }.into(),
        Kind::Nil | Kind::None => b"nil".to_vec(),
        kind => match frame.address(at) {
            // As C has it.
            none if none.is_null() => format!("{}: (nil)", kind.name()).into_bytes(),
            address => format!("{}: {address:p}", kind.name()).into_bytes(),
        },
    }
}

fn refuse_write(frame: &mut Frame<'_>) -> Answer {
    Err(frame.error(READ_ONLY))
}

fn missing(frame: &mut Frame<'_>) -> Answer {
    let name = String::from_utf8_lossy(frame.arg_bytes(2)?).into_owned();
    Err(frame.error(format!("Script attempted to access nonexistent global variable '{name}'")))
}

fn missing_given(frame: &mut Frame<'_>) -> Answer {
    let name = frame.arg_bytes(2)?;
    if super::push_given(frame, name) { Ok(1) } else { missing(frame) }
}

/// As scripts know it from before errors were tables: of such an error it gives the line.
fn pcall(frame: &mut Frame<'_>) -> Answer {
    let args = frame.args();
    if args == 0 {
        // What Valkey's finds in the function's place.
        frame.push_boolean(false);
        frame.push_bytes(b"attempt to call a boolean value");
        return Ok(2);
    }
    frame.reserve(args + 2)?;
    let before = frame.top();
    for at in 1..=args {
        frame.push_copy(at as i32);
    }
    if frame.call(args - 1, -1).is_ok() {
        let results = frame.top() - before;
        frame.reserve(1)?;
        frame.push_boolean(true);
        frame.insert(before as i32 + 1);
        return Ok(results + 1);
    }
    if frame.kind(-1) == Kind::Table {
        push_line(frame)?;
        if matches!(frame.kind(-1), Kind::String | Kind::Number) {
            frame.remove(before as i32 + 1);
        }
    }
    // As Valkey's leaves it: where the line is none it stands behind the table.
    let results = frame.top() - before;
    frame.push_boolean(false);
    frame.insert(before as i32 + 1);
    Ok(results + 1)
}

/// Pushes the field `err` of the table on top. An error that has a metatable may have it from there.
pub(crate) fn push_line(frame: &mut Frame<'_>) -> Result<(), Raise> {
    frame.field(-1, LINE);
    if frame.kind(-1) != Kind::Nil || !frame.metatable(-2) {
        return Ok(());
    }
    // The table stands below nil and the metatable.
    frame.pop(2);
    frame.push_bytes(LINE.as_bytes());
    frame.get_caught(-2)
}
/// The field of an error's table that has its line.
pub(crate) const LINE: &str = "err";

/// The handler runs behind the error and not where it was raised: there Lua calls no hook if it was the hook that
/// raised
/// it, and a handler that loops would never end.
fn xpcall(frame: &mut Frame<'_>) -> Answer {
    frame.arg_any(2)?;
    let before = frame.top();
    frame.push_copy(1);
    if frame.call(0, -1).is_ok() {
        let results = frame.top() - before;
        frame.reserve(1)?;
        frame.push_boolean(true);
        frame.insert(before as i32 + 1);
        return Ok(results + 1);
    }
    frame.push_copy(2);
    frame.insert(-2);
    if frame.call(1, 1).is_err() {
        frame.pop(1);
        frame.push_bytes(b"error in error handling");
    }
    frame.push_boolean(false);
    frame.insert(before as i32 + 1);
    Ok(2)
}

fn next(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    if push_real(frame, 1) {
        super::show_given(frame, -1);
    } else {
        frame.push_copy(1);
    }
    let table = frame.absolute(-1);
    if frame.args() > 1 {
        frame.push_copy(2);
    } else {
        frame.push_nil();
    }
    match frame.next(table) {
        Some(true) => Ok(2),
        Some(false) => {
            frame.push_nil();
            Ok(1)
        }
        None => Err(frame.plain_error("invalid key to 'next'")),
    }
}

fn pairs(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    frame.push_function(c_function!(next), 0);
    frame.push_copy(1);
    frame.push_nil();
    Ok(3)
}

fn rawget(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    frame.arg_any(2)?;
    if push_real(frame, 1) {
        super::show_given(frame, -1);
    } else {
        frame.push_copy(1);
    }
    frame.push_copy(2);
    frame.raw_get(-2);
    Ok(1)
}

fn rawset(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    frame.arg_any(2)?;
    frame.arg_any(3)?;
    writable(frame, 1)?;
    super::proxies::check_set(frame, 1, 2)?;
    set_raw(frame)?;
    frame.push_copy(1);
    Ok(1)
}
/// Sets the third argument in the table that is the first, under the key that is the second.
pub(super) fn set_raw(frame: &mut Frame<'_>) -> Result<(), Raise> {
    check_key(frame, 2)?;
    frame.push_copy(2);
    frame.push_copy(3);
    frame.raw_set(1);
    Ok(())
}
/// The error of whoever sets what can be no key of a table.
pub(super) fn check_key(frame: &mut Frame<'_>, key: i32) -> Result<(), Raise> {
    match frame.kind(key) {
        Kind::Nil | Kind::None => Err(frame.plain_error("table index is nil")),
        Kind::Number if frame.number(key).is_some_and(f64::is_nan) => {
            Err(frame.plain_error("table index is NaN"))
        }
        _ => Ok(()),
    }
}

fn getmetatable(frame: &mut Frame<'_>) -> Answer {
    frame.arg_any(1)?;
    if frame.raw_equal(1, Frame::GLOBALS) {
        frame.field(Frame::REGISTRY, GLOBALS_METATABLE);
        return Ok(1);
    }
    if is_protected(frame, 1) || !frame.metatable(1) {
        frame.push_nil();
        return Ok(1);
    }
    frame.field(-1, "__metatable");
    if frame.kind(-1) == Kind::Nil {
        frame.pop(1);
    }
    Ok(1)
}

fn setmetatable(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    if !matches!(frame.kind(2), Kind::Nil | Kind::Table) || frame.args() < 2 {
        return Err(frame.arg_error(2, "nil or table expected"));
    }
    writable(frame, 1)?;
    if frame.metatable(1) {
        frame.field(-1, "__metatable");
        if frame.kind(-1) != Kind::Nil {
            return Err(frame.error("cannot change a protected metatable"));
        }
    }
    frame.push_copy(2);
    frame.set_metatable(1);
    frame.push_copy(1);
    Ok(1)
}

/// What compiling gives: the function, or nil and why there is none.
fn loaded(frame: &mut Frame<'_>, source: &[u8], name: &[u8]) -> Answer {
    let name = CString::new(name.split(|byte| *byte == 0).next().unwrap_or_default()).unwrap_or_default();
    if frame.load(source, &name).is_ok() {
        return Ok(1);
    }
    frame.push_nil();
    let below = frame.absolute(-2);
    frame.insert(below);
    Ok(2)
}

fn loadstring(frame: &mut Frame<'_>) -> Answer {
    let source = frame.arg_bytes(1)?;
    let name = name_or(frame, source)?;
    loaded(frame, source, name)
}

/// The second argument, a name, or what stands in for it.
fn name_or<'f>(frame: &mut Frame<'f>, otherwise: &'f [u8]) -> Result<&'f [u8], Raise> {
    if matches!(frame.kind(2), Kind::None | Kind::Nil) { Ok(otherwise) } else { frame.arg_bytes(2) }
}

fn load(frame: &mut Frame<'_>) -> Answer {
    let name = name_or(frame, b"=(load)")?;
    if frame.kind(1) != Kind::Function {
        return Err(frame.type_error(1, "function"));
    }
    let mut source = Vec::new();
    loop {
        frame.step(1)?;
        frame.push_copy(1);
        if frame.call(0, 1).is_err() {
            frame.push_nil();
            let below = frame.absolute(-2);
            frame.insert(below);
            return Ok(2);
        }
        let piece = match frame.kind(-1) {
            Kind::Nil => break,
            Kind::String => frame.bytes(-1).unwrap_or_default().len(),
            _ => return Err(frame.error("reader function must return a string")),
        };
        if piece == 0 {
            break;
        }
        frame.fits(source.len() + piece)?;
        source.extend_from_slice(frame.bytes(-1).unwrap_or_default());
        frame.pop(1);
    }
    frame.pop(1);
    loaded(frame, &source, name)
}

/// Only what cannot stop collecting for those who come later.
fn collectgarbage(frame: &mut Frame<'_>) -> Answer {
    let words = ["collect", "step", "count", "stop", "restart", "setpause", "setstepmul"];
    let what = match frame.kind(1) {
        Kind::None | Kind::Nil => 0,
        _ => frame.arg_option(1, &words)?,
    };
    match what {
        0 => {
            frame.collect();
            frame.push_number(0.0);
        }
        // A step of any size goes through all of it.
        1 => {
            frame.collect();
            frame.push_boolean(true);
        }
        2 => {
            let used = frame.shared().memory.used_bytes();
            frame.push_number(used as f64 / 1024.0);
        }
        _ => frame.push_number(0.0),
    }
    Ok(1)
}

fn dump(frame: &mut Frame<'_>) -> Answer {
    frame.arg_function(1)?;
    Err(frame.error("unable to dump given function"))
}
