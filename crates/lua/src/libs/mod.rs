//! Owns: what scripts and functions find: global names, which of Lua's own are kept, and how both worlds are closed to
//! changes. Does not own: each library (its own file).
//!
//! What is shared between scripts is a *face*: an empty table whose metatable shows the real one and refuses writes.
//! Nothing that a script can reach gives it the real table (`base`).

pub(crate) mod base;
mod bits;
pub(crate) mod dice;
pub(crate) mod json;
mod json_decode;
mod msgpack;
mod pattern;
mod proxies;
pub(crate) mod reply;
pub(crate) mod server;
mod strings;
mod structs;
mod tables;

use mlua_sys as ffi;

use crate::frame::{CFunction, Frame, Kind, Raise};
use crate::vm::{Chunk, Identity, keep};

/// Where the registry keeps what a world's global names are.
const SCRIPTS: &str = "weft.scripts";
const FUNCTIONS: &str = "weft.functions";
/// What the face of functions shows: their global names, or those while a library is loaded.
const FUNCTION_NAMES: &str = "weft.functions.names";
const LIBRARY_NAMES: &str = "weft.library.names";
const FUNCTION_FACE: &str = "weft.functions.metatable";

/// Libraries, which are shown by faces.
const LIBRARIES: &[&str] =
    &["string", "table", "math", "os", "bit", "struct", "cjson", "cmsgpack", "coroutine"];
/// Names of Lua's own basic library that scripts do not get.
const REFUSED: &[&str] = &["dofile", "loadfile", "print", "module", "require"];
/// Only with `lua-enable-insecure-api`.
const INSECURE: &[&str] = &["setfenv", "getfenv", "newproxy"];

/// What makes a table of an error, as scripts could always call it.
const ERROR_HANDLERS: &[&str] = &["__server__err__handler", "__redis__err__handler"];

/// Opens all libraries and makes both worlds. What stands on the stack behind it is of no use.
pub(crate) fn open(frame: &mut Frame<'_>, identity: &Identity) -> Result<Given, Raise> {
    for library in
        [ffi::luaopen_base, ffi::luaopen_table, ffi::luaopen_string, ffi::luaopen_math, ffi::luaopen_os]
    {
        frame.push_function(CFunction(library), 0);
        frame.call(0, 0)?;
    }
    frame.push_copy(Frame::GLOBALS);
    let names = frame.absolute(-1);
    for name in REFUSED.iter().chain(INSECURE.iter().filter(|_| !identity.insecure)) {
        frame.push_nil();
        frame.set_field(names, name);
    }
    only_clock(frame, names);
    crate::vm::open_originals(frame, names);
    strings::open(frame, names);
    tables::open(frame, names);
    dice::open(frame, names);
    base::open(frame, names);
    if identity.insecure {
        proxies::open(frame, names);
    }
    for (name, open) in [
        ("bit", bits::open as fn(&mut Frame<'_>)),
        ("struct", structs::open),
        ("cjson", json::open),
        ("cmsgpack", msgpack::open),
    ] {
        open(frame);
        frame.set_field(names, name);
    }
    base::close_libraries(frame, names, LIBRARIES);
    base::close_strings(frame, names);

    // What functions of libraries find is the same without what only scripts have.
    copy_of(frame, names);
    let own = frame.absolute(-1);
    // But for what was set in it.
    json::open(frame);
    base::face(frame, None);
    frame.set_field(own, "cjson");
    server::open(frame, identity, server::Part::Functions);
    base::face(frame, None);
    frame.push_copy(-1);
    frame.set_field(own, "redis");
    frame.set_field(own, "server");
    base::name_missing(frame, own);
    frame.push_copy(own);
    frame.set_field(Frame::REGISTRY, FUNCTION_NAMES);
    base::face(frame, Some("_G"));
    base::metatable_of_face(frame, -1);
    frame.set_field(Frame::REGISTRY, FUNCTION_FACE);
    frame.set_field(Frame::REGISTRY, FUNCTIONS);

    frame.push_table(0, 2);
    let library = frame.absolute(-1);
    server::open(frame, identity, server::Part::Loading);
    base::name_missing(frame, -1);
    base::face(frame, None);
    frame.push_copy(-1);
    frame.set_field(library, "redis");
    frame.set_field(library, "server");
    base::name_missing(frame, library);
    frame.set_field(Frame::REGISTRY, LIBRARY_NAMES);

    for name in ERROR_HANDLERS {
        frame.push_function(crate::vm::HANDLER, 0);
        frame.set_field(names, name);
    }
    server::open(frame, identity, server::Part::Scripts);
    base::face(frame, None);
    frame.push_copy(-1);
    frame.set_field(names, "redis");
    frame.set_field(names, "server");
    base::name_missing_given(frame, names);
    frame.push_copy(names);
    let given = Given::new(frame);
    base::face(frame, Some("_G"));
    frame.set_field(Frame::REGISTRY, SCRIPTS);
    Ok(given)
}

/// KEYS and ARGV: where they are set, and which of them stand there. One in which nothing is stands there when a script
/// asks for it; most scripts that have no arguments do not.
pub(crate) struct Given {
    names: Chunk,
    lists: [List; 2],
}
struct List {
    name: Chunk,
    stands: bool,
}

/// Their names.
const GIVEN: [&[u8]; 2] = [b"KEYS", b"ARGV"];

impl Given {
    /// Takes the table from the top.
    fn new(frame: &mut Frame<'_>) -> Self {
        let names = keep(frame);
        let lists = GIVEN.map(|name| {
            frame.push_bytes(name);
            List { name: keep(frame), stands: false }
        });
        Self { names, lists }
    }
    /// Makes the keys and arguments of a run global names of scripts.
    pub(crate) fn set(&mut self, frame: &mut Frame<'_>, keys: &[&[u8]], args: &[&[u8]]) {
        for (list, given) in self.lists.iter_mut().zip([keys, args]) {
            let stands = !given.is_empty();
            if stands || list.stands {
                frame.kept_value(&self.names);
                frame.kept_value(&list.name);
                if stands {
                    frame.push_list(given)
                } else {
                    frame.push_nil()
                }
                frame.raw_set(-3);
                frame.pop_any(1);
            }
            list.stands = stands;
        }
    }
    /// Has both stand there if this is the table where they do.
    fn show(&mut self, frame: &mut Frame<'_>, table: i32) {
        frame.kept_value(&self.names);
        let is_theirs = frame.raw_equal(-1, table);
        frame.pop_any(1);
        for list in self.lists.iter_mut().filter(|list| is_theirs && !list.stands) {
            frame.kept_value(&list.name);
            frame.push_table(0, 0);
            frame.raw_set(table);
            list.stands = true;
        }
    }
}

/// Somebody looks at a table without its metamethods: KEYS and ARGV stand there, if it is that table.
fn show_given(frame: &mut Frame<'_>, table: i32) {
    let table = frame.absolute(table);
    if let Some(mut given) = frame.shared().given.take() {
        given.show(frame, table);
        frame.shared().given = Some(given);
    }
}
/// A script has asked for a name that is not there. Pushes the list, if it is that of one: it stands there from now on.
fn push_given(frame: &mut Frame<'_>, name: &[u8]) -> bool {
    let at = GIVEN.iter().position(|given| *given == name);
    let Some(list) = at.zip(frame.shared().given.as_mut()).map(|(at, given)| &mut given.lists[at]) else {
        return false;
    };
    list.stands = true;
    frame.push_table(0, 0);
    frame.push_copy(2);
    frame.push_copy(-2);
    frame.raw_set(1);
    true
}

/// The thread sees the world of scripts from now on.
pub(crate) fn enter_scripts(frame: &mut Frame<'_>) {
    frame.field(Frame::REGISTRY, SCRIPTS);
    frame.replace(Frame::GLOBALS);
}
/// The thread sees the world of functions from now on.
pub(crate) fn enter_functions(frame: &mut Frame<'_>) {
    frame.field(Frame::REGISTRY, FUNCTIONS);
    frame.replace(Frame::GLOBALS);
}
/// The world of functions is that of a library which is loaded.
pub(crate) fn begin_library(frame: &mut Frame<'_>) {
    show(frame, LIBRARY_NAMES);
}
/// It is loaded.
pub(crate) fn end_library(frame: &mut Frame<'_>) {
    show(frame, FUNCTION_NAMES);
}
fn show(frame: &mut Frame<'_>, names: &str) {
    frame.field(Frame::REGISTRY, FUNCTION_FACE);
    frame.field(Frame::REGISTRY, names);
    frame.set_field(-2, "__index");
    frame.pop_any(1);
}

/// Of `os` only the clock is left.
fn only_clock(frame: &mut Frame<'_>, names: i32) {
    frame.field(names, "os");
    frame.push_table(0, 1);
    frame.field(-2, "clock");
    frame.set_field(-2, "clock");
    frame.set_field(names, "os");
    frame.pop_any(1);
}

/// Pushes a table with the same fields.
fn copy_of(frame: &mut Frame<'_>, table: i32) {
    frame.push_table(0, 0);
    let copy = frame.absolute(-1);
    frame.push_nil();
    while frame.next(table) == Some(true) {
        frame.push_copy(-2);
        frame.insert(-2);
        frame.raw_set(copy);
    }
}

/// Sets functions as fields of the table on top.
pub(crate) fn set_functions(frame: &mut Frame<'_>, functions: &[(&str, CFunction)]) {
    debug_assert_eq!(frame.kind(-1), Kind::Table);
    for (name, function) in functions {
        frame.push_function(*function, 0);
        frame.set_field(-2, name);
    }
}
/// Sets functions as fields of a library that is there.
pub(crate) fn replace_functions(
    frame: &mut Frame<'_>,
    names: i32,
    library: &str,
    functions: &[(&str, CFunction)],
) {
    frame.field(names, library);
    set_functions(frame, functions);
    frame.pop_any(1);
}
