//! Owns: `newproxy`, which scripts have with `lua-enable-insecure-api` alone: objects that are nothing but their
//! metatable. Does not own: other metatables (`super::base`).
//!
//! A proxy has no finalizer: it would run wherever something is collected, also where a function of Rust runs. So its
//! metatable takes no `__gc`: what it shows as its own metatable, and nobody can take away, refuses that, as `rawset`
//! does.

use crate::frame::{Answer, Frame, Kind, Raise, c_function};
use crate::libs::set_functions;

/// Where the registry keeps the metatable of the metatables of proxies.
const GUARD: &str = "weft.proxies.metatable";

const FINALIZER: &[u8] = b"__gc";

/// Opens the function.
pub(super) fn open(frame: &mut Frame<'_>, names: i32) {
    frame.push_copy(names);
    set_functions(frame, &[("newproxy", c_function!(newproxy))]);
    frame.pop_any(1);
    frame.push_table(0, 2);
    frame.push_function(c_function!(set), 0);
    frame.set_field(-2, "__newindex");
    frame.push_boolean(false);
    frame.set_field(-2, "__metatable");
    frame.set_field(Frame::REGISTRY, GUARD);
}

fn newproxy(frame: &mut Frame<'_>) -> Answer {
    let first = frame.kind(1);
    frame.push_object(());
    let proxy = frame.absolute(-1);
    match first {
        Kind::None | Kind::Nil => {}
        Kind::Boolean if !frame.truth(1) => {}
        Kind::Boolean => {
            frame.push_table(0, 0);
            frame.field(Frame::REGISTRY, GUARD);
            frame.set_metatable(-2);
            frame.set_metatable(proxy);
        }
        Kind::Userdata if frame.metatable(1) && is_guarded(frame, -1) => frame.set_metatable(proxy),
        _ => return Err(frame.arg_error(1, "boolean or proxy expected")),
    }
    frame.push_copy(proxy);
    Ok(1)
}

/// Whether a table is the metatable of proxies.
fn is_guarded(frame: &mut Frame<'_>, at: i32) -> bool {
    if !frame.metatable(at) {
        return false;
    }
    frame.field(Frame::REGISTRY, GUARD);
    let is_theirs = frame.raw_equal(-1, -2);
    frame.pop(2);
    is_theirs
}

/// The error of whoever gives proxies a finalizer: of a table and a key, whether they are that.
pub(super) fn check_set(frame: &mut Frame<'_>, table: i32, key: i32) -> Result<(), Raise> {
    let is_finalizer = frame.kind(key) == Kind::String && frame.bytes(key) == Some(FINALIZER);
    if is_finalizer && is_guarded(frame, table) {
        return Err(frame.error("a proxy has no finalizer here"));
    }
    Ok(())
}

fn set(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    check_set(frame, 1, 2)?;
    super::base::set_raw(frame)?;
    Ok(0)
}
