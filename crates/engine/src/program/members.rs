//! Owns: which members of a trigger's event an expression reads. Does not own: events (`crate::trigger`).

use super::expr::{Expr, Segment};

/// Members of an event, as bits.
pub mod member {
    /// `kind`.
    pub const KIND: u8 = 1;
    /// `command`.
    pub const COMMAND: u8 = 2;
    /// `db`.
    pub const DB: u8 = 4;
    /// `key`.
    pub const KEY: u8 = 8;
    /// `type`, `length` and `value`: of the key as it is now.
    pub const STATE: u8 = 16;
    /// All of them.
    pub const ALL: u8 = 31;
    /// Bits by the names of the members.
    pub(crate) const NAMES: [(&str, u8); 7] = [
        ("kind", KIND),
        ("command", COMMAND),
        ("db", DB),
        ("key", KEY),
        ("type", STATE),
        ("length", STATE),
        ("value", STATE),
    ];
}

/// The [`member`]s of an event at the first place of the frame that an expression looks at.
#[must_use]
pub fn members_of(expr: &Expr) -> u8 {
    let mut read = 0;
    expr.each(&mut |expr| {
        read |= match expr {
            Expr::Var(0) => member::ALL,
            Expr::Path(0, path) => match path.first() {
                Some(Segment::Name(name)) => {
                    let named = member::NAMES.iter().find(|(other, _)| other.as_bytes() == &**name);
                    named.map_or(0, |(_, bit)| *bit)
                }
                _ => member::ALL,
            },
            _ => 0,
        };
    });
    read
}
