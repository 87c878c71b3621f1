// Generated from spec/commands by `cargo xtask gen`. Do not edit.

use super::{Bit, Field, Kind, Layout, List, Options, Shape};

pub(super) const APPEND: Layout = Layout::Fields { shape: Shape::SB, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const ASKING: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const AUTH: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "username", token: &[], fields: &[Field { name: "username", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }, Field { name: "password", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const BF_ADD: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "item", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const BF_CARD: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const BF_EXISTS: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "item", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const BF_INFO: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const BF_INSERT: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "CAPACITY", token: &["CAPACITY"], fields: &[Field { name: "capacity", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "ERROR", token: &["ERROR"], fields: &[Field { name: "error_rate", kind: Kind::F64, key: false, token: &[] }], requires: 0 }, Bit { name: "EXPANSION", token: &["EXPANSION"], fields: &[Field { name: "expansion", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "NOCREATE", token: &["NOCREATE"], fields: &[], requires: 0 }, Bit { name: "NONSCALING", token: &["NONSCALING"], fields: &[], requires: 0 }], exclusive: &[20] }), key: false, token: &[] }, Field { name: "items", kind: Kind::List(&List { items: &[Field { name: "item", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &["ITEMS"] }] };

pub(super) const BF_LOAD: Layout = Layout::Fields { shape: Shape::SB, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "data", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const BF_MADD: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "items", kind: Kind::List(&List { items: &[Field { name: "item", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const BF_MEXISTS: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "items", kind: Kind::List(&List { items: &[Field { name: "item", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const BF_RESERVE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "error_rate", kind: Kind::F64, key: false, token: &[] }, Field { name: "capacity", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "EXPANSION", token: &["EXPANSION"], fields: &[Field { name: "expansion", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "NONSCALING", token: &["NONSCALING"], fields: &[], requires: 0 }], exclusive: &[3] }), key: false, token: &[] }] };

pub(super) const BGREWRITEAOF: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const BGSAVE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "SCHEDULE", token: &["SCHEDULE"], fields: &[], requires: 0 }, Bit { name: "CANCEL", token: &["CANCEL"], fields: &[], requires: 0 }], exclusive: &[3] }), key: false, token: &[] }] };

pub(super) const BITCOUNT: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "range", token: &[], fields: &[Field { name: "start", kind: Kind::I64, key: false, token: &[] }, Field { name: "end", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "BYTE", token: &["BYTE"], fields: &[], requires: 1 }, Bit { name: "BIT", token: &["BIT"], fields: &[], requires: 1 }], exclusive: &[6] }), key: false, token: &[] }] };

pub(super) const BITOP: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "operation", kind: Kind::Enum(&[&["AND"], &["OR"], &["XOR"], &["NOT"]]), key: false, token: &[] }, Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const BITPOS: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "bit", kind: Kind::U8, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "start", token: &[], fields: &[Field { name: "start", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "end", token: &[], fields: &[Field { name: "end", kind: Kind::I64, key: false, token: &[] }], requires: 1 }, Bit { name: "BYTE", token: &["BYTE"], fields: &[], requires: 2 }, Bit { name: "BIT", token: &["BIT"], fields: &[], requires: 2 }], exclusive: &[12] }), key: false, token: &[] }] };

pub(super) const BLMOVE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "source", kind: Kind::Str16, key: true, token: &[] }, Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "wherefrom", kind: Kind::Enum(&[&["LEFT"], &["RIGHT"]]), key: false, token: &[] }, Field { name: "whereto", kind: Kind::Enum(&[&["LEFT"], &["RIGHT"]]), key: false, token: &[] }, Field { name: "timeout", kind: Kind::F64, key: false, token: &[] }] };

pub(super) const BLMPOP: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "timeout", kind: Kind::F64, key: false, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "where", kind: Kind::Enum(&[&["LEFT"], &["RIGHT"]]), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const BLPOP: Layout = Layout::Fields { shape: Shape::LD, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "timeout", kind: Kind::F64, key: false, token: &[] }] };

pub(super) const BRPOP: Layout = Layout::Fields { shape: Shape::LD, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "timeout", kind: Kind::F64, key: false, token: &[] }] };

pub(super) const BRPOPLPUSH: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "source", kind: Kind::Str16, key: true, token: &[] }, Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "timeout", kind: Kind::F64, key: false, token: &[] }] };

pub(super) const BZMPOP: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "timeout", kind: Kind::F64, key: false, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "where", kind: Kind::Enum(&[&["MIN"], &["MAX"]]), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const BZPOPMAX: Layout = Layout::Fields { shape: Shape::LD, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "timeout", kind: Kind::F64, key: false, token: &[] }] };

pub(super) const BZPOPMIN: Layout = Layout::Fields { shape: Shape::LD, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "timeout", kind: Kind::F64, key: false, token: &[] }] };

pub(super) const CLUSTERSCAN: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "cursor", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "MATCH", token: &["MATCH"], fields: &[Field { name: "pattern", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }, Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "TYPE", token: &["TYPE"], fields: &[Field { name: "type", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }, Bit { name: "SLOT", token: &["SLOT"], fields: &[Field { name: "slot", kind: Kind::U16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const COPY: Layout = Layout::Fields { shape: Shape::SSO, fields: &[Field { name: "source", kind: Kind::Str16, key: true, token: &[] }, Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "DB", token: &["DB"], fields: &[Field { name: "destination_db", kind: Kind::U16, key: false, token: &[] }], requires: 0 }, Bit { name: "REPLACE", token: &["REPLACE"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const DBSIZE: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const DECR: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const DECRBY: Layout = Layout::Fields { shape: Shape::SI, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "decrement", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const DEL: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const DELIFEQ: Layout = Layout::Fields { shape: Shape::SB, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const DISCARD: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const DUMP: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const ECHO: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "message", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const EVAL: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "script", kind: Kind::Blob32, key: false, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 0 }), key: false, token: &[] }, Field { name: "arguments", kind: Kind::List(&List { items: &[Field { name: "argument", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const EVALSHA: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "sha1", kind: Kind::Str16, key: false, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 0 }), key: false, token: &[] }, Field { name: "arguments", kind: Kind::List(&List { items: &[Field { name: "argument", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const EVALSHA_RO: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "sha1", kind: Kind::Str16, key: false, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 0 }), key: false, token: &[] }, Field { name: "arguments", kind: Kind::List(&List { items: &[Field { name: "argument", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const EVAL_RO: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "script", kind: Kind::Blob32, key: false, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 0 }), key: false, token: &[] }, Field { name: "arguments", kind: Kind::List(&List { items: &[Field { name: "argument", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const EXEC: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const EXISTS: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const EXPIRE: Layout = Layout::Fields { shape: Shape::SIO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "seconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "GT", token: &["GT"], fields: &[], requires: 0 }, Bit { name: "LT", token: &["LT"], fields: &[], requires: 0 }], exclusive: &[3, 5, 9, 12] }), key: false, token: &[] }] };

pub(super) const EXPIREAT: Layout = Layout::Fields { shape: Shape::SIO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "unix_seconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "GT", token: &["GT"], fields: &[], requires: 0 }, Bit { name: "LT", token: &["LT"], fields: &[], requires: 0 }], exclusive: &[3, 5, 9, 12] }), key: false, token: &[] }] };

pub(super) const EXPIRETIME: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const FAILOVER: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "TO", token: &["TO"], fields: &[Field { name: "host", kind: Kind::Str16, key: false, token: &[] }, Field { name: "port", kind: Kind::U16, key: false, token: &[] }], requires: 0 }, Bit { name: "FORCE", token: &["FORCE"], fields: &[], requires: 1 }, Bit { name: "ABORT", token: &["ABORT"], fields: &[], requires: 0 }, Bit { name: "TIMEOUT", token: &["TIMEOUT"], fields: &[Field { name: "milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const FCALL: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "function", kind: Kind::Str16, key: false, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 0 }), key: false, token: &[] }, Field { name: "arguments", kind: Kind::List(&List { items: &[Field { name: "argument", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const FCALL_RO: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "function", kind: Kind::Str16, key: false, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 0 }), key: false, token: &[] }, Field { name: "arguments", kind: Kind::List(&List { items: &[Field { name: "argument", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const FLUSHALL: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "ASYNC", token: &["ASYNC"], fields: &[], requires: 0 }, Bit { name: "SYNC", token: &["SYNC"], fields: &[], requires: 0 }], exclusive: &[3] }), key: false, token: &[] }] };

pub(super) const FLUSHDB: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "ASYNC", token: &["ASYNC"], fields: &[], requires: 0 }, Bit { name: "SYNC", token: &["SYNC"], fields: &[], requires: 0 }], exclusive: &[3] }), key: false, token: &[] }] };

pub(super) const FT_DROPINDEX: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "index", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "DD", token: &["DD"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const FT_INFO: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "index", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const FT__LIST: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const GEOADD: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "CH", token: &["CH"], fields: &[], requires: 0 }], exclusive: &[3] }), key: false, token: &[] }, Field { name: "members", kind: Kind::List(&List { items: &[Field { name: "longitude", kind: Kind::F64, key: false, token: &[] }, Field { name: "latitude", kind: Kind::F64, key: false, token: &[] }, Field { name: "member", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const GEODIST: Layout = Layout::Fields { shape: Shape::SSSO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "member1", kind: Kind::Str16, key: false, token: &[] }, Field { name: "member2", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "M", token: &["M"], fields: &[], requires: 0 }, Bit { name: "KM", token: &["KM"], fields: &[], requires: 0 }, Bit { name: "FT", token: &["FT"], fields: &[], requires: 0 }, Bit { name: "MI", token: &["MI"], fields: &[], requires: 0 }], exclusive: &[15] }), key: false, token: &[] }] };

pub(super) const GEOHASH: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "members", kind: Kind::List(&List { items: &[Field { name: "member", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const GEOPOS: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "members", kind: Kind::List(&List { items: &[Field { name: "member", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const GEORADIUS: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "longitude", kind: Kind::F64, key: false, token: &[] }, Field { name: "latitude", kind: Kind::F64, key: false, token: &[] }, Field { name: "radius", kind: Kind::F64, key: false, token: &[] }, Field { name: "unit", kind: Kind::Enum(&[&["M"], &["KM"], &["FT"], &["MI"]]), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "WITHCOORD", token: &["WITHCOORD"], fields: &[], requires: 0 }, Bit { name: "WITHDIST", token: &["WITHDIST"], fields: &[], requires: 0 }, Bit { name: "WITHHASH", token: &["WITHHASH"], fields: &[], requires: 0 }, Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "ANY", token: &["ANY"], fields: &[], requires: 8 }, Bit { name: "ASC", token: &["ASC"], fields: &[], requires: 0 }, Bit { name: "DESC", token: &["DESC"], fields: &[], requires: 0 }], exclusive: &[96] }), key: false, token: &[] }] };

pub(super) const GEORADIUSBYMEMBER: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "member", kind: Kind::Str16, key: false, token: &[] }, Field { name: "radius", kind: Kind::F64, key: false, token: &[] }, Field { name: "unit", kind: Kind::Enum(&[&["M"], &["KM"], &["FT"], &["MI"]]), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "WITHCOORD", token: &["WITHCOORD"], fields: &[], requires: 0 }, Bit { name: "WITHDIST", token: &["WITHDIST"], fields: &[], requires: 0 }, Bit { name: "WITHHASH", token: &["WITHHASH"], fields: &[], requires: 0 }, Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "ANY", token: &["ANY"], fields: &[], requires: 8 }, Bit { name: "ASC", token: &["ASC"], fields: &[], requires: 0 }, Bit { name: "DESC", token: &["DESC"], fields: &[], requires: 0 }], exclusive: &[96] }), key: false, token: &[] }] };

pub(super) const GEORADIUSBYMEMBER_RO: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "member", kind: Kind::Str16, key: false, token: &[] }, Field { name: "radius", kind: Kind::F64, key: false, token: &[] }, Field { name: "unit", kind: Kind::Enum(&[&["M"], &["KM"], &["FT"], &["MI"]]), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "WITHCOORD", token: &["WITHCOORD"], fields: &[], requires: 0 }, Bit { name: "WITHDIST", token: &["WITHDIST"], fields: &[], requires: 0 }, Bit { name: "WITHHASH", token: &["WITHHASH"], fields: &[], requires: 0 }, Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "ANY", token: &["ANY"], fields: &[], requires: 8 }, Bit { name: "ASC", token: &["ASC"], fields: &[], requires: 0 }, Bit { name: "DESC", token: &["DESC"], fields: &[], requires: 0 }], exclusive: &[96] }), key: false, token: &[] }] };

pub(super) const GEORADIUS_RO: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "longitude", kind: Kind::F64, key: false, token: &[] }, Field { name: "latitude", kind: Kind::F64, key: false, token: &[] }, Field { name: "radius", kind: Kind::F64, key: false, token: &[] }, Field { name: "unit", kind: Kind::Enum(&[&["M"], &["KM"], &["FT"], &["MI"]]), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "WITHCOORD", token: &["WITHCOORD"], fields: &[], requires: 0 }, Bit { name: "WITHDIST", token: &["WITHDIST"], fields: &[], requires: 0 }, Bit { name: "WITHHASH", token: &["WITHHASH"], fields: &[], requires: 0 }, Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "ANY", token: &["ANY"], fields: &[], requires: 8 }, Bit { name: "ASC", token: &["ASC"], fields: &[], requires: 0 }, Bit { name: "DESC", token: &["DESC"], fields: &[], requires: 0 }], exclusive: &[96] }), key: false, token: &[] }] };

pub(super) const GET: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const GETBIT: Layout = Layout::Fields { shape: Shape::SI, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "offset", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const GETDEL: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const GETEX: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "EX", token: &["EX"], fields: &[Field { name: "seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PX", token: &["PX"], fields: &[Field { name: "milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "EXAT", token: &["EXAT"], fields: &[Field { name: "unix_seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PXAT", token: &["PXAT"], fields: &[Field { name: "unix_milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PERSIST", token: &["PERSIST"], fields: &[], requires: 0 }], exclusive: &[31] }), key: false, token: &[] }] };

pub(super) const GETRANGE: Layout = Layout::Fields { shape: Shape::SII, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "start", kind: Kind::I64, key: false, token: &[] }, Field { name: "end", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const GETSET: Layout = Layout::Fields { shape: Shape::SB, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const HDEL: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const HELLO: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "protover", kind: Kind::U8, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "AUTH", token: &["AUTH"], fields: &[Field { name: "username", kind: Kind::Str16, key: false, token: &[] }, Field { name: "password", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }, Bit { name: "SETNAME", token: &["SETNAME"], fields: &[Field { name: "clientname", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }, Bit { name: "CAPS", token: &["CAPS"], fields: &[Field { name: "capabilities", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const HEXISTS: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "field", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const HEXPIRE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "seconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "GT", token: &["GT"], fields: &[], requires: 0 }, Bit { name: "LT", token: &["LT"], fields: &[], requires: 0 }], exclusive: &[3, 5, 9, 12] }), key: false, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HEXPIREAT: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "unix_seconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "GT", token: &["GT"], fields: &[], requires: 0 }, Bit { name: "LT", token: &["LT"], fields: &[], requires: 0 }], exclusive: &[3, 5, 9, 12] }), key: false, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HEXPIRETIME: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HGET: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "field", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const HGETALL: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const HGETDEL: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HGETEX: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "EX", token: &["EX"], fields: &[Field { name: "seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PX", token: &["PX"], fields: &[Field { name: "milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "EXAT", token: &["EXAT"], fields: &[Field { name: "unix_seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PXAT", token: &["PXAT"], fields: &[Field { name: "unix_milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PERSIST", token: &["PERSIST"], fields: &[], requires: 0 }], exclusive: &[31] }), key: false, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HINCRBY: Layout = Layout::Fields { shape: Shape::SSI, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "field", kind: Kind::Str16, key: false, token: &[] }, Field { name: "increment", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const HINCRBYFLOAT: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "field", kind: Kind::Str16, key: false, token: &[] }, Field { name: "increment", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const HKEYS: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const HLEN: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const HMGET: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const HMSET: Layout = Layout::Fields { shape: Shape::SLSB, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "pairs", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const HPERSIST: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HPEXPIRE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "milliseconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "GT", token: &["GT"], fields: &[], requires: 0 }, Bit { name: "LT", token: &["LT"], fields: &[], requires: 0 }], exclusive: &[3, 5, 9, 12] }), key: false, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HPEXPIREAT: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "unix_milliseconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "GT", token: &["GT"], fields: &[], requires: 0 }, Bit { name: "LT", token: &["LT"], fields: &[], requires: 0 }], exclusive: &[3, 5, 9, 12] }), key: false, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HPEXPIRETIME: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HPTTL: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HRANDFIELD: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "count", token: &[], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }, Bit { name: "WITHVALUES", token: &["WITHVALUES"], fields: &[], requires: 1 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const HSCAN: Layout = Layout::Fields { shape: Shape::SIO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "cursor", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "MATCH", token: &["MATCH"], fields: &[Field { name: "pattern", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }, Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "NOVALUES", token: &["NOVALUES"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const HSET: Layout = Layout::Fields { shape: Shape::SLSB, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "pairs", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const HSETEX: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "FNX", token: &["FNX"], fields: &[], requires: 0 }, Bit { name: "FXX", token: &["FXX"], fields: &[], requires: 0 }, Bit { name: "EX", token: &["EX"], fields: &[Field { name: "seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PX", token: &["PX"], fields: &[Field { name: "milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "EXAT", token: &["EXAT"], fields: &[Field { name: "unix_seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PXAT", token: &["PXAT"], fields: &[Field { name: "unix_milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "KEEPTTL", token: &["KEEPTTL"], fields: &[], requires: 0 }], exclusive: &[3, 124] }), key: false, token: &[] }, Field { name: "pairs", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HSETNX: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "field", kind: Kind::Str16, key: false, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const HSTRLEN: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "field", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const HTTL: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "fields", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &["FIELDS"] }] };

pub(super) const HVALS: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const INCR: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const INCRBY: Layout = Layout::Fields { shape: Shape::SI, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "increment", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const INCRBYFLOAT: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "increment", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const INFO: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "sections", kind: Kind::List(&List { items: &[Field { name: "section", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const JSON_ARRAPPEND: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "path", kind: Kind::Str16, key: false, token: &[] }, Field { name: "values", kind: Kind::List(&List { items: &[Field { name: "json", kind: Kind::Blob32, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const JSON_ARRINDEX: Layout = Layout::Fields { shape: Shape::SSBO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "path", kind: Kind::Str16, key: false, token: &[] }, Field { name: "json", kind: Kind::Blob32, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "start", token: &[], fields: &[Field { name: "start", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "stop", token: &[], fields: &[Field { name: "stop", kind: Kind::I64, key: false, token: &[] }], requires: 1 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const JSON_ARRINSERT: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "path", kind: Kind::Str16, key: false, token: &[] }, Field { name: "index", kind: Kind::I64, key: false, token: &[] }, Field { name: "values", kind: Kind::List(&List { items: &[Field { name: "json", kind: Kind::Blob32, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const JSON_ARRLEN: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "path", token: &[], fields: &[Field { name: "path", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const JSON_ARRPOP: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "path", token: &[], fields: &[Field { name: "path", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }, Bit { name: "index", token: &[], fields: &[Field { name: "index", kind: Kind::I64, key: false, token: &[] }], requires: 1 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const JSON_ARRTRIM: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "path", kind: Kind::Str16, key: false, token: &[] }, Field { name: "start", kind: Kind::I64, key: false, token: &[] }, Field { name: "stop", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const JSON_CLEAR: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "path", token: &[], fields: &[Field { name: "path", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const JSON_DEL: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "path", token: &[], fields: &[Field { name: "path", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const JSON_FORGET: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "path", token: &[], fields: &[Field { name: "path", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const JSON_GET: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "paths", kind: Kind::List(&List { items: &[Field { name: "path", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const JSON_MGET: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "path", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const JSON_MSET: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "triples", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "path", kind: Kind::Str16, key: false, token: &[] }, Field { name: "json", kind: Kind::Blob32, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const JSON_NUMINCRBY: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "path", kind: Kind::Str16, key: false, token: &[] }, Field { name: "number", kind: Kind::F64, key: false, token: &[] }] };

pub(super) const JSON_NUMMULTBY: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "path", kind: Kind::Str16, key: false, token: &[] }, Field { name: "number", kind: Kind::F64, key: false, token: &[] }] };

pub(super) const JSON_OBJKEYS: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "path", token: &[], fields: &[Field { name: "path", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const JSON_OBJLEN: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "path", token: &[], fields: &[Field { name: "path", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const JSON_RESP: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "path", token: &[], fields: &[Field { name: "path", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const JSON_SET: Layout = Layout::Fields { shape: Shape::SSBO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "path", kind: Kind::Str16, key: false, token: &[] }, Field { name: "json", kind: Kind::Blob32, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }], exclusive: &[3] }), key: false, token: &[] }] };

pub(super) const JSON_STRAPPEND: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "path", kind: Kind::Str16, key: false, token: &[] }, Field { name: "json", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const JSON_STRLEN: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "path", token: &[], fields: &[Field { name: "path", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const JSON_TOGGLE: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "path", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const JSON_TYPE: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "path", token: &[], fields: &[Field { name: "path", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const KEYS: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "pattern", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const LASTSAVE: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const LCS: Layout = Layout::Fields { shape: Shape::SSO, fields: &[Field { name: "key1", kind: Kind::Str16, key: true, token: &[] }, Field { name: "key2", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "LEN", token: &["LEN"], fields: &[], requires: 0 }, Bit { name: "IDX", token: &["IDX"], fields: &[], requires: 0 }, Bit { name: "WITHMATCHLEN", token: &["WITHMATCHLEN"], fields: &[], requires: 0 }], exclusive: &[3] }), key: false, token: &[] }] };

pub(super) const LINDEX: Layout = Layout::Fields { shape: Shape::SI, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "index", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const LINSERT: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "where", kind: Kind::Enum(&[&["BEFORE"], &["AFTER"]]), key: false, token: &[] }, Field { name: "pivot", kind: Kind::Str16, key: false, token: &[] }, Field { name: "element", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const LLEN: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const LMOVE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "source", kind: Kind::Str16, key: true, token: &[] }, Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "wherefrom", kind: Kind::Enum(&[&["LEFT"], &["RIGHT"]]), key: false, token: &[] }, Field { name: "whereto", kind: Kind::Enum(&[&["LEFT"], &["RIGHT"]]), key: false, token: &[] }] };

pub(super) const LMPOP: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "where", kind: Kind::Enum(&[&["LEFT"], &["RIGHT"]]), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const LOLWUT: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "arguments", kind: Kind::List(&List { items: &[Field { name: "argument", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const LPOP: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "count", token: &[], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const LPOS: Layout = Layout::Fields { shape: Shape::SSO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "element", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "RANK", token: &["RANK"], fields: &[Field { name: "rank", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }, Bit { name: "MAXLEN", token: &["MAXLEN"], fields: &[Field { name: "maxlen", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const LPUSH: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "elements", kind: Kind::List(&List { items: &[Field { name: "element", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const LPUSHX: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "elements", kind: Kind::List(&List { items: &[Field { name: "element", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const LRANGE: Layout = Layout::Fields { shape: Shape::SII, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "start", kind: Kind::I64, key: false, token: &[] }, Field { name: "stop", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const LREM: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "count", kind: Kind::I64, key: false, token: &[] }, Field { name: "element", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const LSET: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "index", kind: Kind::I64, key: false, token: &[] }, Field { name: "element", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const LTRIM: Layout = Layout::Fields { shape: Shape::SII, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "start", kind: Kind::I64, key: false, token: &[] }, Field { name: "stop", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const MGET: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const MIGRATE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "host", kind: Kind::Str16, key: false, token: &[] }, Field { name: "port", kind: Kind::U16, key: false, token: &[] }, Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "destination_db", kind: Kind::U16, key: false, token: &[] }, Field { name: "timeout", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "COPY", token: &["COPY"], fields: &[], requires: 0 }, Bit { name: "REPLACE", token: &["REPLACE"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const MONITOR: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const MOVE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "db", kind: Kind::U16, key: false, token: &[] }] };

pub(super) const MSET: Layout = Layout::Fields { shape: Shape::LSB, fields: &[Field { name: "pairs", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const MSETEX: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "pairs", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "EX", token: &["EX"], fields: &[Field { name: "seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PX", token: &["PX"], fields: &[Field { name: "milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "EXAT", token: &["EXAT"], fields: &[Field { name: "unix_seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PXAT", token: &["PXAT"], fields: &[Field { name: "unix_milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "KEEPTTL", token: &["KEEPTTL"], fields: &[], requires: 0 }], exclusive: &[3, 124] }), key: false, token: &[] }] };

pub(super) const MSETNX: Layout = Layout::Fields { shape: Shape::LSB, fields: &[Field { name: "pairs", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const MULTI: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const PERSIST: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const PEXPIRE: Layout = Layout::Fields { shape: Shape::SIO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "milliseconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "GT", token: &["GT"], fields: &[], requires: 0 }, Bit { name: "LT", token: &["LT"], fields: &[], requires: 0 }], exclusive: &[3, 5, 9, 12] }), key: false, token: &[] }] };

pub(super) const PEXPIREAT: Layout = Layout::Fields { shape: Shape::SIO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "unix_milliseconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "GT", token: &["GT"], fields: &[], requires: 0 }, Bit { name: "LT", token: &["LT"], fields: &[], requires: 0 }], exclusive: &[3, 5, 9, 12] }), key: false, token: &[] }] };

pub(super) const PEXPIRETIME: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const PFADD: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "elements", kind: Kind::List(&List { items: &[Field { name: "element", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const PFCOUNT: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const PFDEBUG: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "subcommand", kind: Kind::Str16, key: false, token: &[] }, Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const PFMERGE: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const PFSELFTEST: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const PING: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const PSETEX: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "milliseconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const PSUBSCRIBE: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "patterns", kind: Kind::List(&List { items: &[Field { name: "pattern", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const PSYNC: Layout = Layout::Fields { shape: Shape::SI, fields: &[Field { name: "replication_id", kind: Kind::Str16, key: false, token: &[] }, Field { name: "offset", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const PTTL: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const PUBLISH: Layout = Layout::Fields { shape: Shape::SB, fields: &[Field { name: "channel", kind: Kind::Str16, key: false, token: &[] }, Field { name: "message", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const PUNSUBSCRIBE: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "patterns", kind: Kind::List(&List { items: &[Field { name: "pattern", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const QUIT: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const RANDOMKEY: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const READONLY: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const READWRITE: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const RENAME: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "newkey", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const RENAMENX: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "newkey", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const REPLCONF: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "arguments", kind: Kind::List(&List { items: &[Field { name: "argument", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const REPLICAOF: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "host", kind: Kind::Str16, key: false, token: &[] }, Field { name: "port", kind: Kind::U16, key: false, token: &[] }] };

pub(super) const RESET: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const RESTORE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "ttl", kind: Kind::I64, key: false, token: &[] }, Field { name: "serialized_value", kind: Kind::Blob32, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "REPLACE", token: &["REPLACE"], fields: &[], requires: 0 }, Bit { name: "ABSTTL", token: &["ABSTTL"], fields: &[], requires: 0 }, Bit { name: "IDLETIME", token: &["IDLETIME"], fields: &[Field { name: "seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "FREQ", token: &["FREQ"], fields: &[Field { name: "frequency", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const RESTORE_ASKING: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "ttl", kind: Kind::I64, key: false, token: &[] }, Field { name: "serialized_value", kind: Kind::Blob32, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "REPLACE", token: &["REPLACE"], fields: &[], requires: 0 }, Bit { name: "ABSTTL", token: &["ABSTTL"], fields: &[], requires: 0 }, Bit { name: "IDLETIME", token: &["IDLETIME"], fields: &[Field { name: "seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "FREQ", token: &["FREQ"], fields: &[Field { name: "frequency", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ROLE: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const RPOP: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "count", token: &[], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const RPOPLPUSH: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "source", kind: Kind::Str16, key: true, token: &[] }, Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const RPUSH: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "elements", kind: Kind::List(&List { items: &[Field { name: "element", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const RPUSHX: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "elements", kind: Kind::List(&List { items: &[Field { name: "element", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const SADD: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "members", kind: Kind::List(&List { items: &[Field { name: "member", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const SAVE: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const SCAN: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "cursor", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "MATCH", token: &["MATCH"], fields: &[Field { name: "pattern", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }, Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "TYPE", token: &["TYPE"], fields: &[Field { name: "type", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const SCARD: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const SDIFF: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const SDIFFSTORE: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const SELECT: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "index", kind: Kind::U16, key: false, token: &[] }] };

pub(super) const SET: Layout = Layout::Fields { shape: Shape::SBO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "GET", token: &["GET"], fields: &[], requires: 0 }, Bit { name: "EX", token: &["EX"], fields: &[Field { name: "seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PX", token: &["PX"], fields: &[Field { name: "milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "EXAT", token: &["EXAT"], fields: &[Field { name: "unix_seconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "PXAT", token: &["PXAT"], fields: &[Field { name: "unix_milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "KEEPTTL", token: &["KEEPTTL"], fields: &[], requires: 0 }], exclusive: &[3, 248] }), key: false, token: &[] }] };

pub(super) const SETBIT: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "offset", kind: Kind::I64, key: false, token: &[] }, Field { name: "value", kind: Kind::U8, key: false, token: &[] }] };

pub(super) const SETEX: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "seconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const SETNX: Layout = Layout::Fields { shape: Shape::SB, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const SETRANGE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "offset", kind: Kind::I64, key: false, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const SHUTDOWN: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NOSAVE", token: &["NOSAVE"], fields: &[], requires: 0 }, Bit { name: "SAVE", token: &["SAVE"], fields: &[], requires: 0 }, Bit { name: "NOW", token: &["NOW"], fields: &[], requires: 0 }, Bit { name: "FORCE", token: &["FORCE"], fields: &[], requires: 0 }, Bit { name: "SAFE", token: &["SAFE"], fields: &[], requires: 0 }, Bit { name: "FAILOVER", token: &["FAILOVER"], fields: &[], requires: 0 }, Bit { name: "ABORT", token: &["ABORT"], fields: &[], requires: 0 }], exclusive: &[3, 65, 66, 68, 72, 80, 96] }), key: false, token: &[] }] };

pub(super) const SINTER: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const SINTERCARD: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "LIMIT", token: &["LIMIT"], fields: &[Field { name: "limit", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const SINTERSTORE: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const SISMEMBER: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "member", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const SLAVEOF: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "host", kind: Kind::Str16, key: false, token: &[] }, Field { name: "port", kind: Kind::U16, key: false, token: &[] }] };

pub(super) const SMEMBERS: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const SMISMEMBER: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "members", kind: Kind::List(&List { items: &[Field { name: "member", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const SMOVE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "source", kind: Kind::Str16, key: true, token: &[] }, Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "member", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const SPOP: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "count", token: &[], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const SPUBLISH: Layout = Layout::Fields { shape: Shape::SB, fields: &[Field { name: "shardchannel", kind: Kind::Str16, key: false, token: &[] }, Field { name: "message", kind: Kind::Blob32, key: false, token: &[] }] };

pub(super) const SRANDMEMBER: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "count", token: &[], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const SREM: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "members", kind: Kind::List(&List { items: &[Field { name: "member", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const SSCAN: Layout = Layout::Fields { shape: Shape::SIO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "cursor", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "MATCH", token: &["MATCH"], fields: &[Field { name: "pattern", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }, Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const SSUBSCRIBE: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "shardchannels", kind: Kind::List(&List { items: &[Field { name: "shardchannel", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const STRLEN: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const SUBSCRIBE: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "channels", kind: Kind::List(&List { items: &[Field { name: "channel", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const SUBSTR: Layout = Layout::Fields { shape: Shape::SII, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "start", kind: Kind::I64, key: false, token: &[] }, Field { name: "end", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const SUNION: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const SUNIONSTORE: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const SUNSUBSCRIBE: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "shardchannels", kind: Kind::List(&List { items: &[Field { name: "shardchannel", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const SWAPDB: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "index1", kind: Kind::U16, key: false, token: &[] }, Field { name: "index2", kind: Kind::U16, key: false, token: &[] }] };

pub(super) const SYNC: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const TIME: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const TOUCH: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const TTL: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const TYPE: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const UNLINK: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const UNSUBSCRIBE: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "channels", kind: Kind::List(&List { items: &[Field { name: "channel", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 0 }), key: false, token: &[] }] };

pub(super) const UNWATCH: Layout = Layout::Fields { shape: Shape::Empty, fields: &[] };

pub(super) const WAIT: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "numreplicas", kind: Kind::I64, key: false, token: &[] }, Field { name: "timeout", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const WAITAOF: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "numlocal", kind: Kind::I64, key: false, token: &[] }, Field { name: "numreplicas", kind: Kind::I64, key: false, token: &[] }, Field { name: "timeout", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const WATCH: Layout = Layout::Fields { shape: Shape::L, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const XACK: Layout = Layout::Fields { shape: Shape::SSL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "group", kind: Kind::Str16, key: false, token: &[] }, Field { name: "ids", kind: Kind::List(&List { items: &[Field { name: "id", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const XADD: Layout = Layout::Fields { shape: Shape::SSLSB, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "id", kind: Kind::Str16, key: false, token: &[] }, Field { name: "pairs", kind: Kind::List(&List { items: &[Field { name: "field", kind: Kind::Str16, key: false, token: &[] }, Field { name: "value", kind: Kind::Blob32, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const XAUTOCLAIM: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "group", kind: Kind::Str16, key: false, token: &[] }, Field { name: "consumer", kind: Kind::Str16, key: false, token: &[] }, Field { name: "min_idle_milliseconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "start", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "JUSTID", token: &["JUSTID"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const XCLAIM: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "group", kind: Kind::Str16, key: false, token: &[] }, Field { name: "consumer", kind: Kind::Str16, key: false, token: &[] }, Field { name: "min_idle_milliseconds", kind: Kind::I64, key: false, token: &[] }, Field { name: "ids", kind: Kind::List(&List { items: &[Field { name: "id", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "FORCE", token: &["FORCE"], fields: &[], requires: 0 }, Bit { name: "JUSTID", token: &["JUSTID"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const XDEL: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "ids", kind: Kind::List(&List { items: &[Field { name: "id", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const XLEN: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const XPENDING: Layout = Layout::Fields { shape: Shape::SSO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "group", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "IDLE", token: &["IDLE"], fields: &[Field { name: "min_idle_milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 2 }, Bit { name: "range", token: &[], fields: &[Field { name: "start", kind: Kind::Str16, key: false, token: &[] }, Field { name: "end", kind: Kind::Str16, key: false, token: &[] }, Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "consumer", token: &[], fields: &[Field { name: "consumer", kind: Kind::Str16, key: false, token: &[] }], requires: 2 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const XRANGE: Layout = Layout::Fields { shape: Shape::SSSO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "start", kind: Kind::Str16, key: false, token: &[] }, Field { name: "end", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const XREAD: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "BLOCK", token: &["BLOCK"], fields: &[Field { name: "milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }, Field { name: "streams", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "id", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: true, min: 1 }), key: false, token: &["STREAMS"] }] };

pub(super) const XREADGROUP: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "group", kind: Kind::Str16, key: false, token: &["GROUP"] }, Field { name: "consumer", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "BLOCK", token: &["BLOCK"], fields: &[Field { name: "milliseconds", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "NOACK", token: &["NOACK"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }, Field { name: "streams", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "id", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: true, min: 1 }), key: false, token: &["STREAMS"] }] };

pub(super) const XREVRANGE: Layout = Layout::Fields { shape: Shape::SSSO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "end", kind: Kind::Str16, key: false, token: &[] }, Field { name: "start", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const XSETID: Layout = Layout::Fields { shape: Shape::SSO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "last_id", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "ENTRIESADDED", token: &["ENTRIESADDED"], fields: &[Field { name: "entries_added", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "MAXDELETEDID", token: &["MAXDELETEDID"], fields: &[Field { name: "max_deleted_id", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const XTRIM: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "strategy", kind: Kind::Enum(&[&["MAXLEN"], &["MAXLEN", "="], &["MAXLEN", "~"], &["MINID"], &["MINID", "="], &["MINID", "~"]]), key: false, token: &[] }, Field { name: "threshold", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "LIMIT", token: &["LIMIT"], fields: &[Field { name: "limit", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZADD: Layout = Layout::Fields { shape: Shape::SOLDS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "NX", token: &["NX"], fields: &[], requires: 0 }, Bit { name: "XX", token: &["XX"], fields: &[], requires: 0 }, Bit { name: "GT", token: &["GT"], fields: &[], requires: 0 }, Bit { name: "LT", token: &["LT"], fields: &[], requires: 0 }, Bit { name: "CH", token: &["CH"], fields: &[], requires: 0 }, Bit { name: "INCR", token: &["INCR"], fields: &[], requires: 0 }], exclusive: &[3, 12, 5, 9] }), key: false, token: &[] }, Field { name: "members", kind: Kind::List(&List { items: &[Field { name: "score", kind: Kind::F64, key: false, token: &[] }, Field { name: "member", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const ZCARD: Layout = Layout::Fields { shape: Shape::S, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }] };

pub(super) const ZCOUNT: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "min", kind: Kind::F64, key: false, token: &[] }, Field { name: "max", kind: Kind::F64, key: false, token: &[] }] };

pub(super) const ZDIFF: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "WITHSCORES", token: &["WITHSCORES"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZDIFFSTORE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const ZINCRBY: Layout = Layout::Fields { shape: Shape::SDS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "increment", kind: Kind::F64, key: false, token: &[] }, Field { name: "member", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const ZINTER: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "AGGREGATE SUM", token: &["AGGREGATE", "SUM"], fields: &[], requires: 0 }, Bit { name: "AGGREGATE MIN", token: &["AGGREGATE", "MIN"], fields: &[], requires: 0 }, Bit { name: "AGGREGATE MAX", token: &["AGGREGATE", "MAX"], fields: &[], requires: 0 }, Bit { name: "WITHSCORES", token: &["WITHSCORES"], fields: &[], requires: 0 }], exclusive: &[7] }), key: false, token: &[] }] };

pub(super) const ZINTERCARD: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "LIMIT", token: &["LIMIT"], fields: &[Field { name: "limit", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZINTERSTORE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "AGGREGATE SUM", token: &["AGGREGATE", "SUM"], fields: &[], requires: 0 }, Bit { name: "AGGREGATE MIN", token: &["AGGREGATE", "MIN"], fields: &[], requires: 0 }, Bit { name: "AGGREGATE MAX", token: &["AGGREGATE", "MAX"], fields: &[], requires: 0 }], exclusive: &[7] }), key: false, token: &[] }] };

pub(super) const ZLEXCOUNT: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "min", kind: Kind::Str16, key: false, token: &[] }, Field { name: "max", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const ZMPOP: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "where", kind: Kind::Enum(&[&["MIN"], &["MAX"]]), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZMSCORE: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "members", kind: Kind::List(&List { items: &[Field { name: "member", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const ZPOPMAX: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "count", token: &[], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZPOPMIN: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "count", token: &[], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZRANDMEMBER: Layout = Layout::Fields { shape: Shape::SO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "count", token: &[], fields: &[Field { name: "count", kind: Kind::U16, key: false, token: &[] }], requires: 0 }, Bit { name: "WITHSCORES", token: &["WITHSCORES"], fields: &[], requires: 1 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZRANGE: Layout = Layout::Fields { shape: Shape::SIIO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "start", kind: Kind::I64, key: false, token: &[] }, Field { name: "stop", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "REV", token: &["REV"], fields: &[], requires: 0 }, Bit { name: "WITHSCORES", token: &["WITHSCORES"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZRANGEBYLEX: Layout = Layout::Fields { shape: Shape::SSSO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "min", kind: Kind::Str16, key: false, token: &[] }, Field { name: "max", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "LIMIT", token: &["LIMIT"], fields: &[Field { name: "offset", kind: Kind::I64, key: false, token: &[] }, Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZRANGEBYSCORE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "min", kind: Kind::F64, key: false, token: &[] }, Field { name: "max", kind: Kind::F64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "WITHSCORES", token: &["WITHSCORES"], fields: &[], requires: 0 }, Bit { name: "LIMIT", token: &["LIMIT"], fields: &[Field { name: "offset", kind: Kind::I64, key: false, token: &[] }, Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZRANGESTORE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "source", kind: Kind::Str16, key: true, token: &[] }, Field { name: "start", kind: Kind::I64, key: false, token: &[] }, Field { name: "stop", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "REV", token: &["REV"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZRANK: Layout = Layout::Fields { shape: Shape::SSO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "member", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "WITHSCORE", token: &["WITHSCORE"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZREM: Layout = Layout::Fields { shape: Shape::SL, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "members", kind: Kind::List(&List { items: &[Field { name: "member", kind: Kind::Str16, key: false, token: &[] }], counted: false, transposed: false, min: 1 }), key: false, token: &[] }] };

pub(super) const ZREMRANGEBYLEX: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "min", kind: Kind::Str16, key: false, token: &[] }, Field { name: "max", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const ZREMRANGEBYRANK: Layout = Layout::Fields { shape: Shape::SII, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "start", kind: Kind::I64, key: false, token: &[] }, Field { name: "stop", kind: Kind::I64, key: false, token: &[] }] };

pub(super) const ZREMRANGEBYSCORE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "min", kind: Kind::F64, key: false, token: &[] }, Field { name: "max", kind: Kind::F64, key: false, token: &[] }] };

pub(super) const ZREVRANGE: Layout = Layout::Fields { shape: Shape::SIIO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "start", kind: Kind::I64, key: false, token: &[] }, Field { name: "stop", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "WITHSCORES", token: &["WITHSCORES"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZREVRANGEBYLEX: Layout = Layout::Fields { shape: Shape::SSSO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "max", kind: Kind::Str16, key: false, token: &[] }, Field { name: "min", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "LIMIT", token: &["LIMIT"], fields: &[Field { name: "offset", kind: Kind::I64, key: false, token: &[] }, Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZREVRANGEBYSCORE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "max", kind: Kind::F64, key: false, token: &[] }, Field { name: "min", kind: Kind::F64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "WITHSCORES", token: &["WITHSCORES"], fields: &[], requires: 0 }, Bit { name: "LIMIT", token: &["LIMIT"], fields: &[Field { name: "offset", kind: Kind::I64, key: false, token: &[] }, Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZREVRANK: Layout = Layout::Fields { shape: Shape::SSO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "member", kind: Kind::Str16, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "WITHSCORE", token: &["WITHSCORE"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZSCAN: Layout = Layout::Fields { shape: Shape::SIO, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "cursor", kind: Kind::I64, key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "MATCH", token: &["MATCH"], fields: &[Field { name: "pattern", kind: Kind::Str16, key: false, token: &[] }], requires: 0 }, Bit { name: "COUNT", token: &["COUNT"], fields: &[Field { name: "count", kind: Kind::I64, key: false, token: &[] }], requires: 0 }, Bit { name: "NOSCORES", token: &["NOSCORES"], fields: &[], requires: 0 }], exclusive: &[] }), key: false, token: &[] }] };

pub(super) const ZSCORE: Layout = Layout::Fields { shape: Shape::SS, fields: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }, Field { name: "member", kind: Kind::Str16, key: false, token: &[] }] };

pub(super) const ZUNION: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "AGGREGATE SUM", token: &["AGGREGATE", "SUM"], fields: &[], requires: 0 }, Bit { name: "AGGREGATE MIN", token: &["AGGREGATE", "MIN"], fields: &[], requires: 0 }, Bit { name: "AGGREGATE MAX", token: &["AGGREGATE", "MAX"], fields: &[], requires: 0 }, Bit { name: "WITHSCORES", token: &["WITHSCORES"], fields: &[], requires: 0 }], exclusive: &[7] }), key: false, token: &[] }] };

pub(super) const ZUNIONSTORE: Layout = Layout::Fields { shape: Shape::Ahead, fields: &[Field { name: "destination", kind: Kind::Str16, key: true, token: &[] }, Field { name: "keys", kind: Kind::List(&List { items: &[Field { name: "key", kind: Kind::Str16, key: true, token: &[] }], counted: true, transposed: false, min: 1 }), key: false, token: &[] }, Field { name: "options", kind: Kind::Options(&Options { bits: &[Bit { name: "AGGREGATE SUM", token: &["AGGREGATE", "SUM"], fields: &[], requires: 0 }, Bit { name: "AGGREGATE MIN", token: &["AGGREGATE", "MIN"], fields: &[], requires: 0 }, Bit { name: "AGGREGATE MAX", token: &["AGGREGATE", "MAX"], fields: &[], requires: 0 }], exclusive: &[7] }), key: false, token: &[] }] };
