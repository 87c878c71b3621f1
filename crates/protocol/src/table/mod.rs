//! The command table: what every codec, the dispatcher, ACL and the documentation know of a command.
//!
//! The types stand here; the contents are generated from `spec/commands/*.json` by `cargo xtask gen` into
//! `commands_gen.rs` (one [`CommandSpec`] each), `arguments_gen.rs` (what each takes), `docs_gen.rs` (what
//! documentation needs beside that), `layouts_gen.rs` (the RESPB layouts) and `index_gen.rs` (look-up).

#[rustfmt::skip]
mod arguments_gen;
#[rustfmt::skip]
mod commands_gen;
mod cost;
mod docs;
#[rustfmt::skip]
mod docs_gen;
#[rustfmt::skip]
mod index_gen;
#[rustfmt::skip]
mod layouts_gen;
pub mod policy;

pub use commands_gen::{COMMANDS, TABLE_HASH, TABLE_NAME, TABLE_VERSION};
pub use cost::Cost;
pub use docs::Docs;

/// Whether a server with this table knows every opcode of ours (spec section 13.2): a later version of the same table
/// does, since opcodes and layouts never change.
pub fn is_shared(name: &[u8], version: i64, hash: &[u8]) -> bool {
    name == TABLE_NAME.as_bytes()
        && (version > i64::from(TABLE_VERSION)
            || version == i64::from(TABLE_VERSION) && hash == TABLE_HASH.as_bytes())
}

/// Index of a command in [`COMMANDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u16);

impl CommandId {
    /// The command.
    pub fn spec(self) -> &'static CommandSpec {
        &COMMANDS[usize::from(self.0)]
    }

    /// What the command takes, as `COMMAND DOCS` tells it.
    pub fn arguments(self) -> &'static [Argument] {
        arguments_gen::ARGUMENTS[usize::from(self.0)]
    }
}

/// One command or subcommand.
#[derive(Debug)]
pub struct CommandSpec {
    /// Upper-case name; a subcommand's own word.
    pub name: &'static str,
    /// The container of a subcommand.
    pub container: Option<CommandId>,
    /// Arguments with the name, negative for a minimum; a subcommand's counts its container's name as well.
    pub arity: i16,
    /// Bits of [`flag`].
    pub flags: u32,
    /// Bits of [`policy`].
    pub policy: u64,
    /// What it goes through.
    pub cost: Cost,
    /// Bits of [`acl`].
    pub acl: u32,
    /// Position of the first key, of the last (negative counts from the end) and the step; zeros where there is none.
    pub keys: (i16, i16, i16),
    /// Where keys stand, in full.
    pub key_specs: &'static [KeySpec],
    /// Version of the first server that had it.
    pub since: &'static str,
    /// Group, as `COMMAND DOCS` names it.
    pub group: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Running time.
    pub complexity: &'static str,
    /// Opcode on RESPB; a subcommand has its container's.
    pub opcode: Opcode,
    /// Payload on RESPB.
    pub layout: Layout,
}

/// Kinds of argument, by the words of `COMMAND DOCS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A key.
    Key,
    /// Any bytes.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Double,
    /// A glob pattern.
    Pattern,
    /// A point in time, Unix.
    UnixTime,
    /// A keyword that stands for itself.
    PureToken,
    /// Exactly one of the nested arguments.
    Oneof,
    /// All of the nested arguments.
    Block,
}

impl ArgumentKind {
    /// The word of `COMMAND DOCS`.
    pub const fn name(self) -> &'static str {
        match self {
            ArgumentKind::Key => "key",
            ArgumentKind::String => "string",
            ArgumentKind::Integer => "integer",
            ArgumentKind::Double => "double",
            ArgumentKind::Pattern => "pattern",
            ArgumentKind::UnixTime => "unix-time",
            ArgumentKind::PureToken => "pure-token",
            ArgumentKind::Oneof => "oneof",
            ArgumentKind::Block => "block",
        }
    }
}

/// One argument of a command, or a group of them.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// Name, unique among its siblings.
    pub name: &'static str,
    /// Kind.
    pub kind: ArgumentKind,
    /// Keyword before the argument, or the argument itself for a pure token; may be empty or several words.
    pub token: Option<&'static str>,
    /// What to show in place of the name.
    pub display_text: Option<&'static str>,
    /// For a key: which of the command's key specs finds it.
    pub key_spec_index: Option<u8>,
    /// First version that had the argument.
    pub since: Option<&'static str>,
    /// Version since which the argument is deprecated.
    pub deprecated_since: Option<&'static str>,
    /// It may be left out.
    pub optional: bool,
    /// It may be repeated.
    pub multiple: bool,
    /// The token is repeated with it.
    pub multiple_token: bool,
    /// Nested arguments of a group.
    pub arguments: &'static [Argument],
}

/// What the generated arguments leave out.
const NO_ARGUMENT: Argument = Argument {
    name: "",
    kind: ArgumentKind::String,
    token: None,
    display_text: None,
    key_spec_index: None,
    since: None,
    deprecated_since: None,
    optional: false,
    multiple: false,
    multiple_token: false,
    arguments: &[],
};

/// How RESPB names a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A core command, 0x0000 to 0x07FF.
    Core(u16),
    /// A command of a module, behind 0xF000.
    Module {
        /// The module's number.
        module: u16,
        /// The command's number within it.
        command: u16,
    },
}

/// How RESPB lays out a command's payload.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// Fields, in this order. None means that the header is the whole frame.
    Fields {
        /// The fields.
        fields: &'static [Field],
        /// The fast path that decodes them, where there is one.
        shape: Shape,
    },
    /// `u32` total length, then arguments of `u32` length each.
    Args,
}

/// Layouts so common that the decoder has straight code for them. All others are read from the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Shape {
    /// No opcode of this version, or a decoder that walks everything: by its limits, or because it was asked to.
    Walked,
    /// No payload.
    Empty,
    /// `str16`
    S,
    /// `str16 str16`
    SS,
    /// `str16 blob32`
    SB,
    /// `str16 i64`
    SI,
    /// `str16 i64 i64`
    SII,
    /// `str16 blob32 opts8`, where the common case has no bit set
    SBO,
    /// `str16 str16 blob32 opts8`, where the common case has no bit set; modules only
    SSBO,
    /// `list16(str16)` without a count
    L,
    /// `str16 list16(str16)` without a count
    SL,
    /// `list16(str16 blob32)` without a count
    LSB,
    /// `str16 list16(str16 blob32)` without a count
    SLSB,
    /// `str16 opts8`, where the common case has no bit set
    SO,
    /// `str16 opts8 list16(f64 str16)` without a count, where the common case has no bit set
    SOLDS,
    /// `str16 str16 list16(str16 blob32)` without a count
    SSLSB,
    /// No layout of its own: the opcode that all commands of modules share, whose shape follows from what is behind it.
    Module,
    /// No layout of a command: ARGV.
    Argv,
    /// `str16 str16 i64`
    SSI,
    /// `str16 f64 str16`
    SDS,
    /// `str16 str16 opts8`
    SSO,
    /// `str16 i64 opts8`
    SIO,
    /// `str16 i64 i64 opts8`
    SIIO,
    /// `str16 str16 str16 opts8`
    SSSO,
    /// `str16 str16 list16(str16)` without a count
    SSL,
    /// `list16(str16) f64` without a count
    LD,
    /// Another layout: read ahead from the table where a frame is there as a whole.
    Ahead,
}

/// One field of a layout.
#[derive(Debug)]
pub struct Field {
    /// Its name in the specification.
    pub name: &'static str,
    /// Its encoding.
    pub kind: Kind,
    /// Whether it is a key.
    pub key: bool,
    /// Keywords that stand before it in the argument form.
    pub token: &'static [&'static str],
}

/// The encoding of a field. All numbers are big endian.
#[derive(Debug)]
pub enum Kind {
    /// `u16` length and as many bytes.
    Str16,
    /// `u32` length and as many bytes.
    Blob32,
    /// A signed integer of 8 bytes.
    I64,
    /// An IEEE 754 double of 8 bytes, never NaN.
    F64,
    /// An unsigned integer of 2 bytes.
    U16,
    /// An unsigned integer of 1 byte.
    U8,
    /// A byte that chooses one of these; each is one or more keywords.
    Enum(&'static [&'static [&'static str]]),
    /// `u16` count and as many times the items.
    List(&'static List),
    /// One byte of option bits, then the fields of each bit that is set, in the order of the bits.
    Options(&'static Options),
}

/// A list of items.
#[derive(Debug)]
pub struct List {
    /// The fields of one item; scalars only.
    pub items: &'static [Field],
    /// Whether the argument form carries the count before the items.
    pub counted: bool,
    /// Whether the argument form has all first fields, then all second ones (XREAD).
    pub transposed: bool,
    /// The smallest count that the command accepts.
    pub min: u8,
}

/// Options of a layout.
#[derive(Debug)]
pub struct Options {
    /// The bits, from bit 0.
    pub bits: &'static [Bit],
    /// Sets of bits of which at most one may be set.
    pub exclusive: &'static [u16],
}

/// One option bit.
#[derive(Debug)]
pub struct Bit {
    /// Its name: the keyword, or a name for an optional argument that has none.
    pub name: &'static str,
    /// The keywords of the argument form; none for an optional positional argument.
    pub token: &'static [&'static str],
    /// What follows the options field when the bit is set; scalars only.
    pub fields: &'static [Field],
    /// A bit that must be set as well, as a mask; 0 for none.
    pub requires: u16,
}

/// Where a command's keys stand.
#[derive(Debug)]
pub struct KeySpec {
    /// What the command does with the keys: bits of [`key_flag`].
    pub flags: u16,
    /// Where they begin.
    pub begin: KeyBegin,
    /// How to find them from there.
    pub find: KeyFind,
}

/// Where keys begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyBegin {
    /// At this argument.
    Index(i16),
    /// After this keyword, searched from this argument (negative: from the end, backwards).
    Keyword(&'static str, i16),
    /// Not to be told from the arguments alone.
    Unknown,
}

/// How to find the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFind {
    /// Up to `last`, by `step`; of the rest only the first part when `limit` is above 1.
    Range {
        /// Relative to the beginning; negative counts from the end of the command.
        last: i16,
        /// Distance between keys.
        step: i16,
        /// Divisor of what remains, 0 or 1 for all.
        limit: i16,
    },
    /// A number says how many.
    Count {
        /// Where the number is, relative to the beginning.
        at: i16,
        /// Where the first key is, relative to the beginning.
        first: i16,
        /// Distance between keys.
        step: i16,
    },
    /// Not to be told from the arguments alone.
    Unknown,
}

macro_rules! bits {
    ($(#[$doc:meta])* $module:ident : $type:ty { $($name:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        pub mod $module {
            bits!(@each $type, 0; $($name = $text,)*);
            /// The bits with their names, in order.
            pub const NAMES: &[($type, &str)] = &[$(($name, $text),)*];
        }
    };
    (@each $type:ty, $n:expr; $name:ident = $text:literal, $($rest:tt)*) => {
        #[doc = concat!("`", $text, "`")]
        pub const $name: $type = 1 << ($n);
        bits!(@each $type, $n + 1; $($rest)*);
    };
    (@each $type:ty, $n:expr;) => {};
}

bits! {
    /// Command flags, by the names that `COMMAND INFO` prints.
    flag: u32 {
        WRITE = "write", READONLY = "readonly", DENYOOM = "denyoom", ADMIN = "admin", PUBSUB = "pubsub",
        NOSCRIPT = "noscript", BLOCKING = "blocking", LOADING = "loading", STALE = "stale",
        SKIP_MONITOR = "skip_monitor", SKIP_COMMANDLOG = "skip_commandlog", ASKING = "asking", FAST = "fast",
        NO_AUTH = "no_auth", MAY_REPLICATE = "may_replicate", ONLY_SENTINEL = "only_sentinel", SENTINEL = "sentinel",
        NO_ASYNC_LOADING = "no_async_loading", NO_MULTI = "no_multi", MOVABLEKEYS = "movablekeys",
        ALLOW_BUSY = "allow_busy", NO_MANDATORY_KEYS = "no_mandatory_keys", PROTECTED = "protected",
        TOUCHES_ARBITRARY_KEYS = "touches_arbitrary_keys", ALL_DBS = "all_dbs", MODULE = "module",
    }
}

bits! {
    /// ACL categories, without their `@`.
    acl: u32 {
        KEYSPACE = "keyspace", READ = "read", WRITE = "write", SET = "set", SORTEDSET = "sortedset", LIST = "list",
        HASH = "hash", STRING = "string", BITMAP = "bitmap", HYPERLOGLOG = "hyperloglog", GEO = "geo",
        STREAM = "stream", PUBSUB = "pubsub", ADMIN = "admin", FAST = "fast", SLOW = "slow", BLOCKING = "blocking",
        DANGEROUS = "dangerous", CONNECTION = "connection", TRANSACTION = "transaction", SCRIPTING = "scripting",
        JSON = "json", BLOOM = "bloom", SEARCH = "search",
    }
}

bits! {
    /// Flags of a key, by the names that `COMMAND INFO` prints.
    key_flag: u16 {
        RO = "RO", RW = "RW", OW = "OW", RM = "RM", ACCESS = "access", UPDATE = "update", INSERT = "insert",
        DELETE = "delete", NOT_KEY = "not_key", INCOMPLETE = "incomplete", VARIABLE_FLAGS = "variable_flags",
    }
}

/// Number of core opcodes that the specification reserves for requests: 0x0000 to 0x07FF.
pub const CORE_OPCODES: usize = 0x0800;

/// The command behind a core opcode.
#[inline]
pub fn by_opcode(opcode: u16) -> Option<CommandId> {
    index_gen::CORE.get(usize::from(opcode)).copied().filter(|&id| id != index_gen::NONE).map(CommandId)
}

/// The fast path of every opcode there can be, so that the look-up needs no comparison, by the opcode's two bytes as
/// they stand in memory, so that it needs no swap. Of its 64 KiB only the pages that are used become resident.
pub(crate) type Shapes = [Shape; 1 << 16];

/// The fast paths of the table.
pub(crate) static SHAPES: Shapes = {
    let mut shapes = NO_SHAPES;
    let mut opcode = 0;
    while opcode < CORE_OPCODES {
        shapes[(opcode as u16).to_be() as usize] = index_gen::SHAPES[opcode];
        opcode += 1;
    }
    shapes[crate::respb::frame::MODULE.to_be() as usize] = Shape::Module;
    shapes[crate::respb::frame::ARGV.to_be() as usize] = Shape::Argv;
    shapes
};

/// No fast path for any opcode.
pub(crate) static NO_SHAPES: Shapes = [Shape::Walked; 1 << 16];

/// The command behind a module's opcode.
pub fn by_module(module: u16, command: u16) -> Option<CommandId> {
    let start = *index_gen::MODULES.get(usize::from(module))?;
    let end = *index_gen::MODULES.get(usize::from(module) + 1)?;
    let index = start.checked_add(command).filter(|&index| index < end)?;
    index_gen::MODULE_COMMANDS.get(usize::from(index)).copied().map(CommandId)
}

/// The longest name of a command.
const NAME_MAX: usize = index_gen::NAME_MAX;

/// The command of a name, in any case. Containers and commands; subcommands by [`subcommand`].
pub fn by_name(name: &[u8]) -> Option<CommandId> {
    find(&fold_hash(None, name)?, |id| id.spec().container.is_none() && same(id, name))
}

/// The subcommand of a container, in any case.
pub fn subcommand(container: CommandId, name: &[u8]) -> Option<CommandId> {
    find(&fold_hash(Some(container), name)?, |id| id.spec().container == Some(container) && same(id, name))
}

/// All subcommands of a container.
pub fn subcommands(container: CommandId) -> impl Iterator<Item = CommandId> {
    (0..COMMANDS.len() as u16).map(CommandId).filter(move |id| id.spec().container == Some(container))
}

fn same(id: CommandId, name: &[u8]) -> bool {
    let own = id.spec().name.as_bytes();
    // Most write it as it stands here, and bytes that are alike are compared many at once.
    *own == *name || own.eq_ignore_ascii_case(name)
}

fn find(hash: &u32, matches: impl Fn(CommandId) -> bool) -> Option<CommandId> {
    let mask = index_gen::NAMES.len() - 1;
    let mut slot = *hash as usize & mask;
    // The generated table is at most half full: the probe ends.
    while index_gen::NAMES[slot] != index_gen::NONE {
        let id = CommandId(index_gen::NAMES[slot]);
        if matches(id) {
            return Some(id);
        }
        slot = (slot + 1) & mask;
    }
    None
}

/// FNV-1a over the upper-case name, started from the container. `xtask` builds the table with the same function.
fn fold_hash(container: Option<CommandId>, name: &[u8]) -> Option<u32> {
    if name.is_empty() || name.len() > NAME_MAX {
        return None;
    }
    let mut hash = 0x811c_9dc5u32 ^ container.map_or(0, |id| u32::from(id.0) + 1);
    for byte in name {
        hash = (hash ^ u32::from(byte.to_ascii_uppercase())).wrapping_mul(0x0100_0193);
    }
    Some(hash ^ (hash >> 15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_beside_their_command() {
        assert_eq!(arguments_gen::ARGUMENTS.len(), COMMANDS.len());
        let get = by_name(b"get").unwrap().arguments();
        assert_eq!((get.len(), get[0].kind, get[0].key_spec_index), (1, ArgumentKind::Key, Some(0)));
        let set = by_name(b"SET").unwrap().arguments();
        assert_eq!(set[2].arguments[0].token, Some("NX"));
        let kill = subcommand(by_name(b"CLIENT").unwrap(), b"KILL").unwrap();
        assert!(!kill.arguments().is_empty());
    }
}
