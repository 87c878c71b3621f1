// Generated from spec/commands by `cargo xtask gen`. Do not edit.

use super::ArgumentKind::{Block, Double, Integer, Key, Oneof, Pattern, PureToken, String, UnixTime};
use super::{Argument, NO_ARGUMENT as N};

/// The arguments of every command, in the order of `COMMANDS`.
pub(super) static ARGUMENTS: &[&[Argument]] = &[
    // ACL
    &[],
    // ACL CAT
    &[Argument { name: "category", kind: String, optional: true, ..N }],
    // ACL DELUSER
    &[Argument { name: "username", kind: String, multiple: true, ..N }],
    // ACL DRYRUN
    &[Argument { name: "username", kind: String, ..N }, Argument { name: "command", kind: String, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // ACL GENPASS
    &[Argument { name: "bits", kind: Integer, optional: true, ..N }],
    // ACL GETUSER
    &[Argument { name: "username", kind: String, ..N }],
    // ACL HELP
    &[],
    // ACL LIST
    &[],
    // ACL LOAD
    &[],
    // ACL LOG
    &[Argument { name: "operation", kind: Oneof, optional: true, arguments: &[Argument { name: "count", kind: Integer, ..N }, Argument { name: "reset", kind: PureToken, token: Some("RESET"), ..N }], ..N }],
    // ACL SAVE
    &[],
    // ACL SETUSER
    &[Argument { name: "username", kind: String, ..N }, Argument { name: "rule", kind: String, optional: true, multiple: true, ..N }],
    // ACL USERS
    &[],
    // ACL WHOAMI
    &[],
    // APPEND
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "value", kind: String, ..N }],
    // ASKING
    &[],
    // AUTH
    &[Argument { name: "username", kind: String, since: Some("6.0.0"), optional: true, ..N }, Argument { name: "password", kind: String, ..N }],
    // BF.ADD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "item", kind: String, ..N }],
    // BF.CARD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // BF.EXISTS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "item", kind: String, ..N }],
    // BF.INFO
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: Oneof, optional: true, arguments: &[Argument { name: "capacity", kind: PureToken, token: Some("CAPACITY"), ..N }, Argument { name: "size", kind: PureToken, token: Some("SIZE"), ..N }, Argument { name: "filters", kind: PureToken, token: Some("FILTERS"), ..N }, Argument { name: "items", kind: PureToken, token: Some("ITEMS"), ..N }, Argument { name: "error", kind: PureToken, token: Some("ERROR"), ..N }, Argument { name: "expansion", kind: PureToken, token: Some("EXPANSION"), ..N }, Argument { name: "tightening", kind: PureToken, token: Some("TIGHTENING"), ..N }, Argument { name: "maxscaledcapacity", kind: PureToken, token: Some("MAXSCALEDCAPACITY"), ..N }], ..N }],
    // BF.INSERT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "capacity", kind: Integer, token: Some("CAPACITY"), optional: true, ..N }, Argument { name: "error", kind: Double, token: Some("ERROR"), optional: true, ..N }, Argument { name: "expansion", kind: Integer, token: Some("EXPANSION"), optional: true, ..N }, Argument { name: "seed", kind: String, token: Some("SEED"), optional: true, ..N }, Argument { name: "tightening", kind: Double, token: Some("TIGHTENING"), optional: true, ..N }, Argument { name: "validatescaleto", kind: Integer, token: Some("VALIDATESCALETO"), optional: true, ..N }, Argument { name: "nonscaling", kind: PureToken, token: Some("NONSCALING"), optional: true, ..N }, Argument { name: "nocreate", kind: PureToken, token: Some("NOCREATE"), optional: true, ..N }, Argument { name: "item", kind: String, token: Some("ITEMS"), optional: true, multiple: true, ..N }],
    // BF.LOAD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "dump", kind: String, ..N }],
    // BF.MADD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "item", kind: String, multiple: true, ..N }],
    // BF.MEXISTS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "item", kind: String, multiple: true, ..N }],
    // BF.RESERVE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "error-rate", kind: Double, ..N }, Argument { name: "capacity", kind: Integer, ..N }, Argument { name: "scaling", kind: Oneof, optional: true, arguments: &[Argument { name: "expansion", kind: Integer, token: Some("EXPANSION"), ..N }, Argument { name: "nonscaling", kind: PureToken, token: Some("NONSCALING"), ..N }], ..N }],
    // BGREWRITEAOF
    &[],
    // BGSAVE
    &[Argument { name: "operation", kind: Oneof, optional: true, arguments: &[Argument { name: "schedule", kind: PureToken, token: Some("SCHEDULE"), since: Some("3.2.2"), ..N }, Argument { name: "cancel", kind: PureToken, token: Some("CANCEL"), since: Some("8.1.0"), ..N }], ..N }],
    // BITCOUNT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "range", kind: Block, optional: true, arguments: &[Argument { name: "start", kind: Integer, ..N }, Argument { name: "end-unit-block", kind: Block, optional: true, arguments: &[Argument { name: "end", kind: Integer, ..N }, Argument { name: "unit", kind: Oneof, since: Some("7.0.0"), optional: true, arguments: &[Argument { name: "byte", kind: PureToken, token: Some("BYTE"), ..N }, Argument { name: "bit", kind: PureToken, token: Some("BIT"), ..N }], ..N }], ..N }], ..N }],
    // BITFIELD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "operation", kind: Oneof, optional: true, multiple: true, arguments: &[Argument { name: "get-block", kind: Block, token: Some("GET"), arguments: &[Argument { name: "encoding", kind: String, ..N }, Argument { name: "offset", kind: Integer, ..N }], ..N }, Argument { name: "write", kind: Block, arguments: &[Argument { name: "overflow-block", kind: Oneof, token: Some("OVERFLOW"), optional: true, arguments: &[Argument { name: "wrap", kind: PureToken, token: Some("WRAP"), ..N }, Argument { name: "sat", kind: PureToken, token: Some("SAT"), ..N }, Argument { name: "fail", kind: PureToken, token: Some("FAIL"), ..N }], ..N }, Argument { name: "write-operation", kind: Oneof, arguments: &[Argument { name: "set-block", kind: Block, token: Some("SET"), arguments: &[Argument { name: "encoding", kind: String, ..N }, Argument { name: "offset", kind: Integer, ..N }, Argument { name: "value", kind: Integer, ..N }], ..N }, Argument { name: "incrby-block", kind: Block, token: Some("INCRBY"), arguments: &[Argument { name: "encoding", kind: String, ..N }, Argument { name: "offset", kind: Integer, ..N }, Argument { name: "increment", kind: Integer, ..N }], ..N }], ..N }], ..N }], ..N }],
    // BITFIELD_RO
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "get-block", kind: Block, token: Some("GET"), optional: true, multiple: true, multiple_token: true, arguments: &[Argument { name: "encoding", kind: String, ..N }, Argument { name: "offset", kind: Integer, ..N }], ..N }],
    // BITOP
    &[Argument { name: "operation", kind: Oneof, arguments: &[Argument { name: "and", kind: PureToken, token: Some("AND"), ..N }, Argument { name: "or", kind: PureToken, token: Some("OR"), ..N }, Argument { name: "xor", kind: PureToken, token: Some("XOR"), ..N }, Argument { name: "not", kind: PureToken, token: Some("NOT"), ..N }], ..N }, Argument { name: "destkey", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(1), multiple: true, ..N }],
    // BITPOS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "bit", kind: Integer, ..N }, Argument { name: "range", kind: Block, optional: true, arguments: &[Argument { name: "start", kind: Integer, ..N }, Argument { name: "end-unit-block", kind: Block, optional: true, arguments: &[Argument { name: "end", kind: Integer, ..N }, Argument { name: "unit", kind: Oneof, since: Some("7.0.0"), optional: true, arguments: &[Argument { name: "byte", kind: PureToken, token: Some("BYTE"), ..N }, Argument { name: "bit", kind: PureToken, token: Some("BIT"), ..N }], ..N }], ..N }], ..N }],
    // BLMOVE
    &[Argument { name: "source", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "destination", kind: Key, key_spec_index: Some(1), ..N }, Argument { name: "wherefrom", kind: Oneof, arguments: &[Argument { name: "left", kind: PureToken, token: Some("LEFT"), ..N }, Argument { name: "right", kind: PureToken, token: Some("RIGHT"), ..N }], ..N }, Argument { name: "whereto", kind: Oneof, arguments: &[Argument { name: "left", kind: PureToken, token: Some("LEFT"), ..N }, Argument { name: "right", kind: PureToken, token: Some("RIGHT"), ..N }], ..N }, Argument { name: "timeout", kind: Double, ..N }],
    // BLMPOP
    &[Argument { name: "timeout", kind: Double, ..N }, Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "where", kind: Oneof, arguments: &[Argument { name: "left", kind: PureToken, token: Some("LEFT"), ..N }, Argument { name: "right", kind: PureToken, token: Some("RIGHT"), ..N }], ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }],
    // BLPOP
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "timeout", kind: Double, ..N }],
    // BRPOP
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "timeout", kind: Double, ..N }],
    // BRPOPLPUSH
    &[Argument { name: "source", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "destination", kind: Key, key_spec_index: Some(1), ..N }, Argument { name: "timeout", kind: Double, ..N }],
    // BZMPOP
    &[Argument { name: "timeout", kind: Double, ..N }, Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "where", kind: Oneof, arguments: &[Argument { name: "min", kind: PureToken, token: Some("MIN"), ..N }, Argument { name: "max", kind: PureToken, token: Some("MAX"), ..N }], ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }],
    // BZPOPMAX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "timeout", kind: Double, ..N }],
    // BZPOPMIN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "timeout", kind: Double, ..N }],
    // CLIENT
    &[],
    // CLIENT CACHING
    &[Argument { name: "mode", kind: Oneof, arguments: &[Argument { name: "yes", kind: PureToken, token: Some("YES"), ..N }, Argument { name: "no", kind: PureToken, token: Some("NO"), ..N }], ..N }],
    // CLIENT CAPA
    &[Argument { name: "capability", kind: String, multiple: true, ..N }],
    // CLIENT GETNAME
    &[],
    // CLIENT GETREDIR
    &[],
    // CLIENT HELP
    &[],
    // CLIENT ID
    &[],
    // CLIENT IMPORT-SOURCE
    &[Argument { name: "enabled", kind: Oneof, arguments: &[Argument { name: "on", kind: PureToken, token: Some("ON"), ..N }, Argument { name: "off", kind: PureToken, token: Some("OFF"), ..N }], ..N }],
    // CLIENT INFO
    &[],
    // CLIENT KILL
    &[Argument { name: "filter", kind: Oneof, arguments: &[Argument { name: "old-format", kind: String, display_text: Some("ip:port"), deprecated_since: Some("2.8.12"), ..N }, Argument { name: "new-format", kind: Oneof, multiple: true, arguments: &[Argument { name: "client-id", kind: Integer, token: Some("ID"), since: Some("2.8.12"), optional: true, multiple: true, ..N }, Argument { name: "client-type", kind: Oneof, token: Some("TYPE"), since: Some("2.8.12"), optional: true, arguments: &[Argument { name: "normal", kind: PureToken, token: Some("NORMAL"), ..N }, Argument { name: "master", kind: PureToken, token: Some("MASTER"), since: Some("3.2.0"), ..N }, Argument { name: "primary", kind: PureToken, token: Some("PRIMARY"), since: Some("8.0.0"), ..N }, Argument { name: "slave", kind: PureToken, token: Some("SLAVE"), ..N }, Argument { name: "replica", kind: PureToken, token: Some("REPLICA"), since: Some("5.0.0"), ..N }, Argument { name: "pubsub", kind: PureToken, token: Some("PUBSUB"), ..N }], ..N }, Argument { name: "username", kind: String, token: Some("USER"), optional: true, ..N }, Argument { name: "addr", kind: String, token: Some("ADDR"), display_text: Some("ip:port"), optional: true, ..N }, Argument { name: "laddr", kind: String, token: Some("LADDR"), display_text: Some("ip:port"), since: Some("6.2.0"), optional: true, ..N }, Argument { name: "skipme", kind: Oneof, token: Some("SKIPME"), optional: true, arguments: &[Argument { name: "yes", kind: PureToken, token: Some("YES"), ..N }, Argument { name: "no", kind: PureToken, token: Some("NO"), ..N }], ..N }, Argument { name: "maxage", kind: Integer, token: Some("MAXAGE"), since: Some("8.0.0"), optional: true, ..N }, Argument { name: "name", kind: String, token: Some("NAME"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "idle", kind: Integer, token: Some("IDLE"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "flags", kind: String, token: Some("FLAGS"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "lib-name", kind: String, token: Some("LIB-NAME"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "lib-ver", kind: String, token: Some("LIB-VER"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "db", kind: Integer, token: Some("DB"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "capa", kind: String, token: Some("CAPA"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "ip", kind: String, token: Some("IP"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-client-type", kind: Oneof, token: Some("NOT-TYPE"), since: Some("9.0.0"), optional: true, arguments: &[Argument { name: "normal", kind: PureToken, token: Some("NORMAL"), ..N }, Argument { name: "master", kind: PureToken, token: Some("MASTER"), ..N }, Argument { name: "primary", kind: PureToken, token: Some("PRIMARY"), ..N }, Argument { name: "slave", kind: PureToken, token: Some("SLAVE"), ..N }, Argument { name: "replica", kind: PureToken, token: Some("REPLICA"), ..N }, Argument { name: "pubsub", kind: PureToken, token: Some("PUBSUB"), ..N }], ..N }, Argument { name: "not-client-id", kind: Integer, token: Some("NOT-ID"), since: Some("9.0.0"), optional: true, multiple: true, ..N }, Argument { name: "not-username", kind: String, token: Some("NOT-USER"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-addr", kind: String, token: Some("NOT-ADDR"), display_text: Some("ip:port"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-laddr", kind: String, token: Some("NOT-LADDR"), display_text: Some("ip:port"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-name", kind: String, token: Some("NOT-NAME"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-flags", kind: String, token: Some("NOT-FLAGS"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-lib-name", kind: String, token: Some("NOT-LIB-NAME"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-lib-ver", kind: String, token: Some("NOT-LIB-VER"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-db", kind: Integer, token: Some("NOT-DB"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-capa", kind: String, token: Some("NOT-CAPA"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-ip", kind: String, token: Some("NOT-IP"), since: Some("9.0.0"), optional: true, ..N }], ..N }], ..N }],
    // CLIENT LIST
    &[Argument { name: "client-type", kind: Oneof, token: Some("TYPE"), since: Some("5.0.0"), optional: true, arguments: &[Argument { name: "normal", kind: PureToken, token: Some("NORMAL"), ..N }, Argument { name: "master", kind: PureToken, token: Some("MASTER"), ..N }, Argument { name: "replica", kind: PureToken, token: Some("REPLICA"), ..N }, Argument { name: "pubsub", kind: PureToken, token: Some("PUBSUB"), ..N }], ..N }, Argument { name: "client-id", kind: Integer, token: Some("ID"), since: Some("6.2.0"), optional: true, multiple: true, ..N }, Argument { name: "username", kind: String, token: Some("USER"), since: Some("8.1.0"), optional: true, ..N }, Argument { name: "addr", kind: String, token: Some("ADDR"), display_text: Some("ip:port"), since: Some("8.1.0"), optional: true, ..N }, Argument { name: "laddr", kind: String, token: Some("LADDR"), display_text: Some("ip:port"), since: Some("8.1.0"), optional: true, ..N }, Argument { name: "skipme", kind: Oneof, token: Some("SKIPME"), since: Some("8.1.0"), optional: true, arguments: &[Argument { name: "yes", kind: PureToken, token: Some("YES"), ..N }, Argument { name: "no", kind: PureToken, token: Some("NO"), ..N }], ..N }, Argument { name: "maxage", kind: Integer, token: Some("MAXAGE"), since: Some("8.1.0"), optional: true, ..N }, Argument { name: "name", kind: String, token: Some("NAME"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "idle", kind: Integer, token: Some("IDLE"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "flags", kind: String, token: Some("FLAGS"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "lib-name", kind: String, token: Some("LIB-NAME"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "lib-ver", kind: String, token: Some("LIB-VER"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "db", kind: Integer, token: Some("DB"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "capa", kind: String, token: Some("CAPA"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "ip", kind: String, token: Some("IP"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-client-type", kind: Oneof, token: Some("NOT-TYPE"), since: Some("9.0.0"), optional: true, arguments: &[Argument { name: "normal", kind: PureToken, token: Some("NORMAL"), ..N }, Argument { name: "master", kind: PureToken, token: Some("MASTER"), ..N }, Argument { name: "replica", kind: PureToken, token: Some("REPLICA"), ..N }, Argument { name: "pubsub", kind: PureToken, token: Some("PUBSUB"), ..N }], ..N }, Argument { name: "not-client-id", kind: Integer, token: Some("NOT-ID"), since: Some("9.0.0"), optional: true, multiple: true, ..N }, Argument { name: "not-username", kind: String, token: Some("NOT-USER"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-addr", kind: String, token: Some("NOT-ADDR"), display_text: Some("ip:port"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-laddr", kind: String, token: Some("NOT-LADDR"), display_text: Some("ip:port"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-name", kind: String, token: Some("NOT-NAME"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-flags", kind: String, token: Some("NOT-FLAGS"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-lib-name", kind: String, token: Some("NOT-LIB-NAME"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-lib-ver", kind: String, token: Some("NOT-LIB-VER"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-db", kind: Integer, token: Some("NOT-DB"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-capa", kind: String, token: Some("NOT-CAPA"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "not-ip", kind: String, token: Some("NOT-IP"), since: Some("9.0.0"), optional: true, ..N }],
    // CLIENT NO-EVICT
    &[Argument { name: "enabled", kind: Oneof, arguments: &[Argument { name: "on", kind: PureToken, token: Some("ON"), ..N }, Argument { name: "off", kind: PureToken, token: Some("OFF"), ..N }], ..N }],
    // CLIENT NO-TOUCH
    &[Argument { name: "enabled", kind: Oneof, arguments: &[Argument { name: "on", kind: PureToken, token: Some("ON"), ..N }, Argument { name: "off", kind: PureToken, token: Some("OFF"), ..N }], ..N }],
    // CLIENT PAUSE
    &[Argument { name: "timeout", kind: Integer, ..N }, Argument { name: "mode", kind: Oneof, since: Some("6.2.0"), optional: true, arguments: &[Argument { name: "write", kind: PureToken, token: Some("WRITE"), ..N }, Argument { name: "all", kind: PureToken, token: Some("ALL"), ..N }], ..N }],
    // CLIENT REPLY
    &[Argument { name: "action", kind: Oneof, arguments: &[Argument { name: "on", kind: PureToken, token: Some("ON"), ..N }, Argument { name: "off", kind: PureToken, token: Some("OFF"), ..N }, Argument { name: "skip", kind: PureToken, token: Some("SKIP"), ..N }], ..N }],
    // CLIENT SETINFO
    &[Argument { name: "attr", kind: Oneof, arguments: &[Argument { name: "libname", kind: String, token: Some("LIB-NAME"), ..N }, Argument { name: "libver", kind: String, token: Some("LIB-VER"), ..N }], ..N }],
    // CLIENT SETNAME
    &[Argument { name: "connection-name", kind: String, ..N }],
    // CLIENT TRACKING
    &[Argument { name: "status", kind: Oneof, arguments: &[Argument { name: "on", kind: PureToken, token: Some("ON"), ..N }, Argument { name: "off", kind: PureToken, token: Some("OFF"), ..N }], ..N }, Argument { name: "client-id", kind: Integer, token: Some("REDIRECT"), optional: true, ..N }, Argument { name: "prefix", kind: String, token: Some("PREFIX"), optional: true, multiple: true, multiple_token: true, ..N }, Argument { name: "bcast", kind: PureToken, token: Some("BCAST"), optional: true, ..N }, Argument { name: "optin", kind: PureToken, token: Some("OPTIN"), optional: true, ..N }, Argument { name: "optout", kind: PureToken, token: Some("OPTOUT"), optional: true, ..N }, Argument { name: "noloop", kind: PureToken, token: Some("NOLOOP"), optional: true, ..N }],
    // CLIENT TRACKINGINFO
    &[],
    // CLIENT UNBLOCK
    &[Argument { name: "client-id", kind: Integer, ..N }, Argument { name: "unblock-type", kind: Oneof, optional: true, arguments: &[Argument { name: "timeout", kind: PureToken, token: Some("TIMEOUT"), ..N }, Argument { name: "error", kind: PureToken, token: Some("ERROR"), ..N }], ..N }],
    // CLIENT UNPAUSE
    &[],
    // CLUSTER
    &[],
    // CLUSTER ADDSLOTS
    &[Argument { name: "slot", kind: Integer, multiple: true, ..N }],
    // CLUSTER ADDSLOTSRANGE
    &[Argument { name: "range", kind: Block, multiple: true, arguments: &[Argument { name: "start-slot", kind: Integer, ..N }, Argument { name: "end-slot", kind: Integer, ..N }], ..N }],
    // CLUSTER BUMPEPOCH
    &[],
    // CLUSTER CANCELSLOTMIGRATIONS
    &[],
    // CLUSTER COUNT-FAILURE-REPORTS
    &[Argument { name: "node-id", kind: String, ..N }],
    // CLUSTER COUNTKEYSINSLOT
    &[Argument { name: "slot", kind: Integer, ..N }],
    // CLUSTER DELSLOTS
    &[Argument { name: "slot", kind: Integer, multiple: true, ..N }],
    // CLUSTER DELSLOTSRANGE
    &[Argument { name: "range", kind: Block, multiple: true, arguments: &[Argument { name: "start-slot", kind: Integer, ..N }, Argument { name: "end-slot", kind: Integer, ..N }], ..N }],
    // CLUSTER FAILOVER
    &[Argument { name: "options", kind: Oneof, optional: true, arguments: &[Argument { name: "force", kind: PureToken, token: Some("FORCE"), ..N }, Argument { name: "takeover", kind: PureToken, token: Some("TAKEOVER"), ..N }], ..N }],
    // CLUSTER FLUSHSLOT
    &[Argument { name: "slot", kind: Integer, ..N }, Argument { name: "flush-type", kind: Oneof, optional: true, arguments: &[Argument { name: "async", kind: PureToken, token: Some("ASYNC"), ..N }, Argument { name: "sync", kind: PureToken, token: Some("SYNC"), ..N }], ..N }],
    // CLUSTER FLUSHSLOTS
    &[],
    // CLUSTER FORGET
    &[Argument { name: "node-id", kind: String, ..N }],
    // CLUSTER GETKEYSINSLOT
    &[Argument { name: "slot", kind: Integer, ..N }, Argument { name: "count", kind: Integer, ..N }],
    // CLUSTER GETSLOTMIGRATIONS
    &[],
    // CLUSTER HELP
    &[],
    // CLUSTER INFO
    &[],
    // CLUSTER KEYSLOT
    &[Argument { name: "key", kind: String, ..N }],
    // CLUSTER LINKS
    &[],
    // CLUSTER MEET
    &[Argument { name: "ip", kind: String, ..N }, Argument { name: "port", kind: Integer, ..N }, Argument { name: "cluster-bus-port", kind: Integer, since: Some("4.0.0"), optional: true, ..N }],
    // CLUSTER MIGRATESLOTS
    &[Argument { name: "migration-group", kind: Block, multiple: true, arguments: &[Argument { name: "slotsrange-token", kind: PureToken, token: Some("SLOTSRANGE"), ..N }, Argument { name: "range", kind: Block, multiple: true, arguments: &[Argument { name: "start-slot", kind: Integer, ..N }, Argument { name: "end-slot", kind: Integer, ..N }], ..N }, Argument { name: "node-token", kind: PureToken, token: Some("NODE"), ..N }, Argument { name: "node-id", kind: String, ..N }], ..N }],
    // CLUSTER MYID
    &[],
    // CLUSTER MYSHARDID
    &[],
    // CLUSTER NODES
    &[],
    // CLUSTER REPLICAS
    &[Argument { name: "node-id", kind: String, ..N }],
    // CLUSTER REPLICATE
    &[Argument { name: "args", kind: Oneof, arguments: &[Argument { name: "node-id", kind: String, ..N }, Argument { name: "no-one", kind: Block, since: Some("9.0.0"), arguments: &[Argument { name: "no", kind: PureToken, token: Some("NO"), ..N }, Argument { name: "one", kind: PureToken, token: Some("ONE"), ..N }], ..N }], ..N }],
    // CLUSTER RESET
    &[Argument { name: "reset-type", kind: Oneof, optional: true, arguments: &[Argument { name: "hard", kind: PureToken, token: Some("HARD"), ..N }, Argument { name: "soft", kind: PureToken, token: Some("SOFT"), ..N }], ..N }],
    // CLUSTER SAVECONFIG
    &[],
    // CLUSTER SET-CONFIG-EPOCH
    &[Argument { name: "config-epoch", kind: Integer, ..N }],
    // CLUSTER SETSLOT
    &[Argument { name: "slot", kind: Integer, ..N }, Argument { name: "subcommand", kind: Oneof, arguments: &[Argument { name: "importing", kind: String, token: Some("IMPORTING"), display_text: Some("node-id"), ..N }, Argument { name: "migrating", kind: String, token: Some("MIGRATING"), display_text: Some("node-id"), ..N }, Argument { name: "node", kind: String, token: Some("NODE"), display_text: Some("node-id"), ..N }, Argument { name: "stable", kind: PureToken, token: Some("STABLE"), ..N }], ..N }, Argument { name: "timeout", kind: Integer, token: Some("TIMEOUT"), since: Some("8.0.0"), optional: true, ..N }],
    // CLUSTER SHARDS
    &[],
    // CLUSTER SLAVES
    &[Argument { name: "node-id", kind: String, ..N }],
    // CLUSTER SLOT-STATS
    &[Argument { name: "filter", kind: Oneof, arguments: &[Argument { name: "slotsrange", kind: Block, token: Some("SLOTSRANGE"), arguments: &[Argument { name: "start-slot", kind: Integer, ..N }, Argument { name: "end-slot", kind: Integer, ..N }], ..N }, Argument { name: "orderby", kind: Block, token: Some("ORDERBY"), arguments: &[Argument { name: "metric", kind: String, ..N }, Argument { name: "limit", kind: Integer, token: Some("LIMIT"), optional: true, ..N }, Argument { name: "order", kind: Oneof, optional: true, arguments: &[Argument { name: "asc", kind: PureToken, token: Some("ASC"), ..N }, Argument { name: "desc", kind: PureToken, token: Some("DESC"), ..N }], ..N }], ..N }], ..N }],
    // CLUSTER SLOTS
    &[],
    // CLUSTER SYNCSLOTS
    &[],
    // CLUSTERSCAN
    &[Argument { name: "cursor", kind: String, ..N }, Argument { name: "match-pattern", kind: Pattern, token: Some("MATCH"), optional: true, ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }, Argument { name: "type", kind: String, token: Some("TYPE"), optional: true, ..N }, Argument { name: "slot", kind: Integer, token: Some("SLOT"), optional: true, ..N }],
    // COMMAND
    &[],
    // COMMAND COUNT
    &[],
    // COMMAND DOCS
    &[Argument { name: "command-name", kind: String, optional: true, multiple: true, ..N }],
    // COMMAND GETKEYS
    &[Argument { name: "command", kind: String, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // COMMAND GETKEYSANDFLAGS
    &[Argument { name: "command", kind: String, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // COMMAND HELP
    &[],
    // COMMAND INFO
    &[Argument { name: "command-name", kind: String, optional: true, multiple: true, ..N }],
    // COMMAND LIST
    &[Argument { name: "filterby", kind: Oneof, token: Some("FILTERBY"), optional: true, arguments: &[Argument { name: "module-name", kind: String, token: Some("MODULE"), ..N }, Argument { name: "category", kind: String, token: Some("ACLCAT"), ..N }, Argument { name: "pattern", kind: Pattern, token: Some("PATTERN"), ..N }], ..N }],
    // COMMAND OPCODES
    &[Argument { name: "command-name", kind: String, optional: true, multiple: true, ..N }],
    // COMMANDLOG
    &[],
    // COMMANDLOG GET
    &[Argument { name: "count", kind: Integer, ..N }, Argument { name: "type", kind: Oneof, arguments: &[Argument { name: "slow", kind: PureToken, token: Some("SLOW"), ..N }, Argument { name: "large-request", kind: PureToken, token: Some("LARGE-REQUEST"), ..N }, Argument { name: "large-reply", kind: PureToken, token: Some("LARGE-REPLY"), ..N }], ..N }],
    // COMMANDLOG HELP
    &[],
    // COMMANDLOG LEN
    &[Argument { name: "type", kind: Oneof, arguments: &[Argument { name: "slow", kind: PureToken, token: Some("SLOW"), ..N }, Argument { name: "large-request", kind: PureToken, token: Some("LARGE-REQUEST"), ..N }, Argument { name: "large-reply", kind: PureToken, token: Some("LARGE-REPLY"), ..N }], ..N }],
    // COMMANDLOG RESET
    &[Argument { name: "type", kind: Oneof, arguments: &[Argument { name: "slow", kind: PureToken, token: Some("SLOW"), ..N }, Argument { name: "large-request", kind: PureToken, token: Some("LARGE-REQUEST"), ..N }, Argument { name: "large-reply", kind: PureToken, token: Some("LARGE-REPLY"), ..N }], ..N }],
    // CONFIG
    &[],
    // CONFIG GET
    &[Argument { name: "parameter", kind: String, multiple: true, ..N }],
    // CONFIG HELP
    &[],
    // CONFIG RESETSTAT
    &[],
    // CONFIG REWRITE
    &[],
    // CONFIG SET
    &[Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "parameter", kind: String, ..N }, Argument { name: "value", kind: String, ..N }], ..N }],
    // COPY
    &[Argument { name: "source", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "destination", kind: Key, key_spec_index: Some(1), ..N }, Argument { name: "destination-db", kind: Integer, token: Some("DB"), optional: true, ..N }, Argument { name: "replace", kind: PureToken, token: Some("REPLACE"), optional: true, ..N }],
    // DBSIZE
    &[],
    // DEBUG
    &[],
    // DECR
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // DECRBY
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "decrement", kind: Integer, ..N }],
    // DEL
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }],
    // DELIFEQ
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "value", kind: String, ..N }],
    // DISCARD
    &[],
    // DUMP
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // ECHO
    &[Argument { name: "message", kind: String, ..N }],
    // EVAL
    &[Argument { name: "script", kind: String, ..N }, Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), optional: true, multiple: true, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // EVALSHA
    &[Argument { name: "sha1", kind: String, ..N }, Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), optional: true, multiple: true, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // EVALSHA_RO
    &[Argument { name: "sha1", kind: String, ..N }, Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), optional: true, multiple: true, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // EVAL_RO
    &[Argument { name: "script", kind: String, ..N }, Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), optional: true, multiple: true, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // EXEC
    &[],
    // EXISTS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }],
    // EXPIRE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "seconds", kind: Integer, ..N }, Argument { name: "condition", kind: Oneof, since: Some("7.0.0"), optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }, Argument { name: "gt", kind: PureToken, token: Some("GT"), ..N }, Argument { name: "lt", kind: PureToken, token: Some("LT"), ..N }], ..N }],
    // EXPIREAT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "unix-time-seconds", kind: UnixTime, ..N }, Argument { name: "condition", kind: Oneof, since: Some("7.0.0"), optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }, Argument { name: "gt", kind: PureToken, token: Some("GT"), ..N }, Argument { name: "lt", kind: PureToken, token: Some("LT"), ..N }], ..N }],
    // EXPIRETIME
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // FAILOVER
    &[Argument { name: "target", kind: Block, token: Some("TO"), optional: true, arguments: &[Argument { name: "host", kind: String, ..N }, Argument { name: "port", kind: Integer, ..N }, Argument { name: "force", kind: PureToken, token: Some("FORCE"), optional: true, ..N }], ..N }, Argument { name: "abort", kind: PureToken, token: Some("ABORT"), optional: true, ..N }, Argument { name: "milliseconds", kind: Integer, token: Some("TIMEOUT"), optional: true, ..N }],
    // FCALL
    &[Argument { name: "function", kind: String, ..N }, Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), optional: true, multiple: true, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // FCALL_RO
    &[Argument { name: "function", kind: String, ..N }, Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), optional: true, multiple: true, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // FLUSHALL
    &[Argument { name: "flush-type", kind: Oneof, optional: true, arguments: &[Argument { name: "async", kind: PureToken, token: Some("ASYNC"), since: Some("4.0.0"), ..N }, Argument { name: "sync", kind: PureToken, token: Some("SYNC"), since: Some("6.2.0"), ..N }], ..N }],
    // FLUSHDB
    &[Argument { name: "flush-type", kind: Oneof, optional: true, arguments: &[Argument { name: "async", kind: PureToken, token: Some("ASYNC"), since: Some("4.0.0"), ..N }, Argument { name: "sync", kind: PureToken, token: Some("SYNC"), since: Some("6.2.0"), ..N }], ..N }],
    // FT.CREATE
    &[Argument { name: "index", kind: String, ..N }, Argument { name: "source", kind: Oneof, token: Some("ON"), optional: true, arguments: &[Argument { name: "hash", kind: PureToken, token: Some("HASH"), ..N }, Argument { name: "json", kind: PureToken, token: Some("JSON"), ..N }], ..N }, Argument { name: "prefixes", kind: Block, token: Some("PREFIX"), optional: true, arguments: &[Argument { name: "count", kind: Integer, ..N }, Argument { name: "prefix", kind: String, multiple: true, ..N }], ..N }, Argument { name: "score", kind: Double, token: Some("SCORE"), optional: true, ..N }, Argument { name: "language", kind: String, token: Some("LANGUAGE"), optional: true, ..N }, Argument { name: "skipinitialscan", kind: PureToken, token: Some("SKIPINITIALSCAN"), since: Some("1.2.0"), optional: true, ..N }, Argument { name: "minstemsize", kind: Integer, token: Some("MINSTEMSIZE"), since: Some("1.2.0"), optional: true, ..N }, Argument { name: "offsets", kind: Oneof, since: Some("1.2.0"), optional: true, arguments: &[Argument { name: "withoffsets", kind: PureToken, token: Some("WITHOFFSETS"), ..N }, Argument { name: "nooffsets", kind: PureToken, token: Some("NOOFFSETS"), ..N }], ..N }, Argument { name: "stop-words", kind: Oneof, since: Some("1.2.0"), optional: true, arguments: &[Argument { name: "nostopwords", kind: PureToken, token: Some("NOSTOPWORDS"), ..N }, Argument { name: "words", kind: Block, token: Some("STOPWORDS"), arguments: &[Argument { name: "count", kind: Integer, ..N }, Argument { name: "word", kind: String, optional: true, multiple: true, ..N }], ..N }], ..N }, Argument { name: "punctuation", kind: String, token: Some("PUNCTUATION"), since: Some("1.2.0"), optional: true, ..N }, Argument { name: "schema", kind: PureToken, token: Some("SCHEMA"), ..N }, Argument { name: "field", kind: Block, multiple: true, arguments: &[Argument { name: "identifier", kind: String, ..N }, Argument { name: "alias", kind: String, token: Some("AS"), optional: true, ..N }, Argument { name: "field-type", kind: Oneof, arguments: &[Argument { name: "numeric", kind: PureToken, token: Some("NUMERIC"), ..N }, Argument { name: "tag", kind: Block, arguments: &[Argument { name: "tag", kind: PureToken, token: Some("TAG"), ..N }, Argument { name: "separator", kind: String, token: Some("SEPARATOR"), optional: true, ..N }, Argument { name: "casesensitive", kind: PureToken, token: Some("CASESENSITIVE"), optional: true, ..N }], ..N }, Argument { name: "text", kind: Block, since: Some("1.2.0"), arguments: &[Argument { name: "text", kind: PureToken, token: Some("TEXT"), ..N }, Argument { name: "nostem", kind: PureToken, token: Some("NOSTEM"), optional: true, ..N }, Argument { name: "suffix-trie", kind: Oneof, optional: true, arguments: &[Argument { name: "withsuffixtrie", kind: PureToken, token: Some("WITHSUFFIXTRIE"), ..N }, Argument { name: "nosuffixtrie", kind: PureToken, token: Some("NOSUFFIXTRIE"), ..N }], ..N }, Argument { name: "weight", kind: Double, token: Some("WEIGHT"), optional: true, ..N }], ..N }, Argument { name: "vector", kind: Block, arguments: &[Argument { name: "vector", kind: PureToken, token: Some("VECTOR"), ..N }, Argument { name: "algorithm", kind: Oneof, arguments: &[Argument { name: "hnsw", kind: PureToken, token: Some("HNSW"), ..N }, Argument { name: "flat", kind: PureToken, token: Some("FLAT"), ..N }], ..N }, Argument { name: "attribute-count", kind: Integer, ..N }, Argument { name: "attribute", kind: Oneof, multiple: true, arguments: &[Argument { name: "dim", kind: Integer, token: Some("DIM"), ..N }, Argument { name: "data-type", kind: Oneof, token: Some("TYPE"), arguments: &[Argument { name: "float32", kind: PureToken, token: Some("FLOAT32"), ..N }], ..N }, Argument { name: "metric", kind: Oneof, token: Some("DISTANCE_METRIC"), arguments: &[Argument { name: "l2", kind: PureToken, token: Some("L2"), ..N }, Argument { name: "ip", kind: PureToken, token: Some("IP"), ..N }, Argument { name: "cosine", kind: PureToken, token: Some("COSINE"), ..N }], ..N }, Argument { name: "initial-cap", kind: Integer, token: Some("INITIAL_CAP"), ..N }, Argument { name: "m", kind: Integer, token: Some("M"), ..N }, Argument { name: "ef-construction", kind: Integer, token: Some("EF_CONSTRUCTION"), ..N }, Argument { name: "ef-runtime", kind: Integer, token: Some("EF_RUNTIME"), ..N }], ..N }], ..N }], ..N }, Argument { name: "sortable", kind: PureToken, token: Some("SORTABLE"), since: Some("1.2.0"), optional: true, ..N }], ..N }],
    // FT.DROPINDEX
    &[Argument { name: "index", kind: String, ..N }],
    // FT.INFO
    &[Argument { name: "index", kind: String, ..N }, Argument { name: "scope", kind: Oneof, optional: true, arguments: &[Argument { name: "local", kind: PureToken, token: Some("LOCAL"), ..N }, Argument { name: "primary", kind: PureToken, token: Some("PRIMARY"), ..N }, Argument { name: "cluster", kind: PureToken, token: Some("CLUSTER"), ..N }], ..N }, Argument { name: "shard-policy", kind: Oneof, since: Some("1.2.0"), optional: true, arguments: &[Argument { name: "allshards", kind: PureToken, token: Some("ALLSHARDS"), ..N }, Argument { name: "someshards", kind: PureToken, token: Some("SOMESHARDS"), ..N }], ..N }, Argument { name: "consistency", kind: Oneof, since: Some("1.2.0"), optional: true, arguments: &[Argument { name: "consistent", kind: PureToken, token: Some("CONSISTENT"), ..N }, Argument { name: "inconsistent", kind: PureToken, token: Some("INCONSISTENT"), ..N }], ..N }],
    // FT.SEARCH
    &[Argument { name: "index", kind: String, ..N }, Argument { name: "query", kind: String, ..N }, Argument { name: "shard-policy", kind: Oneof, since: Some("1.2.0"), optional: true, arguments: &[Argument { name: "allshards", kind: PureToken, token: Some("ALLSHARDS"), ..N }, Argument { name: "someshards", kind: PureToken, token: Some("SOMESHARDS"), ..N }], ..N }, Argument { name: "consistency", kind: Oneof, since: Some("1.2.0"), optional: true, arguments: &[Argument { name: "consistent", kind: PureToken, token: Some("CONSISTENT"), ..N }, Argument { name: "inconsistent", kind: PureToken, token: Some("INCONSISTENT"), ..N }], ..N }, Argument { name: "dialect", kind: Integer, token: Some("DIALECT"), optional: true, ..N }, Argument { name: "inorder", kind: PureToken, token: Some("INORDER"), since: Some("1.2.0"), optional: true, ..N }, Argument { name: "limit", kind: Block, token: Some("LIMIT"), optional: true, arguments: &[Argument { name: "offset", kind: Integer, ..N }, Argument { name: "count", kind: Integer, ..N }], ..N }, Argument { name: "localonly", kind: PureToken, token: Some("LOCALONLY"), optional: true, ..N }, Argument { name: "nocontent", kind: PureToken, token: Some("NOCONTENT"), optional: true, ..N }, Argument { name: "params", kind: Block, token: Some("PARAMS"), optional: true, arguments: &[Argument { name: "count", kind: Integer, ..N }, Argument { name: "parameter", kind: Block, multiple: true, arguments: &[Argument { name: "name", kind: String, ..N }, Argument { name: "value", kind: String, ..N }], ..N }], ..N }, Argument { name: "return", kind: Block, token: Some("RETURN"), optional: true, arguments: &[Argument { name: "count", kind: Integer, ..N }, Argument { name: "field", kind: Block, optional: true, multiple: true, arguments: &[Argument { name: "identifier", kind: String, ..N }, Argument { name: "alias", kind: String, token: Some("AS"), optional: true, ..N }], ..N }], ..N }, Argument { name: "slop", kind: Integer, token: Some("SLOP"), since: Some("1.2.0"), optional: true, ..N }, Argument { name: "sortby", kind: Block, token: Some("SORTBY"), since: Some("1.2.0"), optional: true, arguments: &[Argument { name: "field", kind: String, ..N }, Argument { name: "order", kind: Oneof, optional: true, arguments: &[Argument { name: "asc", kind: PureToken, token: Some("ASC"), ..N }, Argument { name: "desc", kind: PureToken, token: Some("DESC"), ..N }], ..N }], ..N }, Argument { name: "timeout", kind: Integer, token: Some("TIMEOUT"), optional: true, ..N }, Argument { name: "verbatim", kind: PureToken, token: Some("VERBATIM"), since: Some("1.2.0"), optional: true, ..N }, Argument { name: "withsortkeys", kind: PureToken, token: Some("WITHSORTKEYS"), since: Some("1.2.0"), optional: true, ..N }],
    // FT._LIST
    &[],
    // FUNCTION
    &[],
    // FUNCTION DELETE
    &[Argument { name: "library-name", kind: String, ..N }],
    // FUNCTION DUMP
    &[],
    // FUNCTION FLUSH
    &[Argument { name: "flush-type", kind: Oneof, optional: true, arguments: &[Argument { name: "async", kind: PureToken, token: Some("ASYNC"), ..N }, Argument { name: "sync", kind: PureToken, token: Some("SYNC"), ..N }], ..N }],
    // FUNCTION HELP
    &[],
    // FUNCTION KILL
    &[],
    // FUNCTION LIST
    &[Argument { name: "library-name-pattern", kind: String, token: Some("LIBRARYNAME"), optional: true, ..N }, Argument { name: "withcode", kind: PureToken, token: Some("WITHCODE"), optional: true, ..N }],
    // FUNCTION LOAD
    &[Argument { name: "replace", kind: PureToken, token: Some("REPLACE"), optional: true, ..N }, Argument { name: "function-code", kind: String, ..N }],
    // FUNCTION RESTORE
    &[Argument { name: "serialized-value", kind: String, ..N }, Argument { name: "policy", kind: Oneof, optional: true, arguments: &[Argument { name: "flush", kind: PureToken, token: Some("FLUSH"), ..N }, Argument { name: "append", kind: PureToken, token: Some("APPEND"), ..N }, Argument { name: "replace", kind: PureToken, token: Some("REPLACE"), ..N }], ..N }],
    // FUNCTION STATS
    &[],
    // GEOADD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "condition", kind: Oneof, since: Some("6.2.0"), optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }], ..N }, Argument { name: "change", kind: PureToken, token: Some("CH"), since: Some("6.2.0"), optional: true, ..N }, Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "longitude", kind: Double, ..N }, Argument { name: "latitude", kind: Double, ..N }, Argument { name: "member", kind: String, ..N }], ..N }],
    // GEODIST
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member1", kind: String, ..N }, Argument { name: "member2", kind: String, ..N }, Argument { name: "unit", kind: Oneof, optional: true, arguments: &[Argument { name: "m", kind: PureToken, token: Some("M"), ..N }, Argument { name: "km", kind: PureToken, token: Some("KM"), ..N }, Argument { name: "ft", kind: PureToken, token: Some("FT"), ..N }, Argument { name: "mi", kind: PureToken, token: Some("MI"), ..N }], ..N }],
    // GEOHASH
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, optional: true, multiple: true, ..N }],
    // GEOPOS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, optional: true, multiple: true, ..N }],
    // GEORADIUS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "longitude", kind: Double, ..N }, Argument { name: "latitude", kind: Double, ..N }, Argument { name: "radius", kind: Double, ..N }, Argument { name: "unit", kind: Oneof, arguments: &[Argument { name: "m", kind: PureToken, token: Some("M"), ..N }, Argument { name: "km", kind: PureToken, token: Some("KM"), ..N }, Argument { name: "ft", kind: PureToken, token: Some("FT"), ..N }, Argument { name: "mi", kind: PureToken, token: Some("MI"), ..N }], ..N }, Argument { name: "withcoord", kind: PureToken, token: Some("WITHCOORD"), optional: true, ..N }, Argument { name: "withdist", kind: PureToken, token: Some("WITHDIST"), optional: true, ..N }, Argument { name: "withhash", kind: PureToken, token: Some("WITHHASH"), optional: true, ..N }, Argument { name: "count-block", kind: Block, optional: true, arguments: &[Argument { name: "count", kind: Integer, token: Some("COUNT"), ..N }, Argument { name: "any", kind: PureToken, token: Some("ANY"), since: Some("6.2.0"), optional: true, ..N }], ..N }, Argument { name: "order", kind: Oneof, optional: true, arguments: &[Argument { name: "asc", kind: PureToken, token: Some("ASC"), ..N }, Argument { name: "desc", kind: PureToken, token: Some("DESC"), ..N }], ..N }, Argument { name: "store", kind: Oneof, optional: true, arguments: &[Argument { name: "storekey", kind: Key, token: Some("STORE"), display_text: Some("key"), key_spec_index: Some(1), ..N }, Argument { name: "storedistkey", kind: Key, token: Some("STOREDIST"), display_text: Some("key"), key_spec_index: Some(2), ..N }], ..N }],
    // GEORADIUSBYMEMBER
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, ..N }, Argument { name: "radius", kind: Double, ..N }, Argument { name: "unit", kind: Oneof, arguments: &[Argument { name: "m", kind: PureToken, token: Some("M"), ..N }, Argument { name: "km", kind: PureToken, token: Some("KM"), ..N }, Argument { name: "ft", kind: PureToken, token: Some("FT"), ..N }, Argument { name: "mi", kind: PureToken, token: Some("MI"), ..N }], ..N }, Argument { name: "withcoord", kind: PureToken, token: Some("WITHCOORD"), optional: true, ..N }, Argument { name: "withdist", kind: PureToken, token: Some("WITHDIST"), optional: true, ..N }, Argument { name: "withhash", kind: PureToken, token: Some("WITHHASH"), optional: true, ..N }, Argument { name: "count-block", kind: Block, optional: true, arguments: &[Argument { name: "count", kind: Integer, token: Some("COUNT"), ..N }, Argument { name: "any", kind: PureToken, token: Some("ANY"), optional: true, ..N }], ..N }, Argument { name: "order", kind: Oneof, optional: true, arguments: &[Argument { name: "asc", kind: PureToken, token: Some("ASC"), ..N }, Argument { name: "desc", kind: PureToken, token: Some("DESC"), ..N }], ..N }, Argument { name: "store", kind: Oneof, optional: true, arguments: &[Argument { name: "storekey", kind: Key, token: Some("STORE"), display_text: Some("key"), key_spec_index: Some(1), ..N }, Argument { name: "storedistkey", kind: Key, token: Some("STOREDIST"), display_text: Some("key"), key_spec_index: Some(2), ..N }], ..N }],
    // GEORADIUSBYMEMBER_RO
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, ..N }, Argument { name: "radius", kind: Double, ..N }, Argument { name: "unit", kind: Oneof, arguments: &[Argument { name: "m", kind: PureToken, token: Some("M"), ..N }, Argument { name: "km", kind: PureToken, token: Some("KM"), ..N }, Argument { name: "ft", kind: PureToken, token: Some("FT"), ..N }, Argument { name: "mi", kind: PureToken, token: Some("MI"), ..N }], ..N }, Argument { name: "withcoord", kind: PureToken, token: Some("WITHCOORD"), optional: true, ..N }, Argument { name: "withdist", kind: PureToken, token: Some("WITHDIST"), optional: true, ..N }, Argument { name: "withhash", kind: PureToken, token: Some("WITHHASH"), optional: true, ..N }, Argument { name: "count-block", kind: Block, optional: true, arguments: &[Argument { name: "count", kind: Integer, token: Some("COUNT"), ..N }, Argument { name: "any", kind: PureToken, token: Some("ANY"), optional: true, ..N }], ..N }, Argument { name: "order", kind: Oneof, optional: true, arguments: &[Argument { name: "asc", kind: PureToken, token: Some("ASC"), ..N }, Argument { name: "desc", kind: PureToken, token: Some("DESC"), ..N }], ..N }],
    // GEORADIUS_RO
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "longitude", kind: Double, ..N }, Argument { name: "latitude", kind: Double, ..N }, Argument { name: "radius", kind: Double, ..N }, Argument { name: "unit", kind: Oneof, arguments: &[Argument { name: "m", kind: PureToken, token: Some("M"), ..N }, Argument { name: "km", kind: PureToken, token: Some("KM"), ..N }, Argument { name: "ft", kind: PureToken, token: Some("FT"), ..N }, Argument { name: "mi", kind: PureToken, token: Some("MI"), ..N }], ..N }, Argument { name: "withcoord", kind: PureToken, token: Some("WITHCOORD"), optional: true, ..N }, Argument { name: "withdist", kind: PureToken, token: Some("WITHDIST"), optional: true, ..N }, Argument { name: "withhash", kind: PureToken, token: Some("WITHHASH"), optional: true, ..N }, Argument { name: "count-block", kind: Block, optional: true, arguments: &[Argument { name: "count", kind: Integer, token: Some("COUNT"), ..N }, Argument { name: "any", kind: PureToken, token: Some("ANY"), since: Some("6.2.0"), optional: true, ..N }], ..N }, Argument { name: "order", kind: Oneof, optional: true, arguments: &[Argument { name: "asc", kind: PureToken, token: Some("ASC"), ..N }, Argument { name: "desc", kind: PureToken, token: Some("DESC"), ..N }], ..N }],
    // GEOSEARCH
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "from", kind: Oneof, optional: true, arguments: &[Argument { name: "member", kind: String, token: Some("FROMMEMBER"), ..N }, Argument { name: "fromlonlat", kind: Block, token: Some("FROMLONLAT"), arguments: &[Argument { name: "longitude", kind: Double, ..N }, Argument { name: "latitude", kind: Double, ..N }], ..N }], ..N }, Argument { name: "by", kind: Oneof, arguments: &[Argument { name: "circle", kind: Block, arguments: &[Argument { name: "radius", kind: Double, token: Some("BYRADIUS"), ..N }, Argument { name: "unit", kind: Oneof, arguments: &[Argument { name: "m", kind: PureToken, token: Some("M"), ..N }, Argument { name: "km", kind: PureToken, token: Some("KM"), ..N }, Argument { name: "ft", kind: PureToken, token: Some("FT"), ..N }, Argument { name: "mi", kind: PureToken, token: Some("MI"), ..N }], ..N }], ..N }, Argument { name: "box", kind: Block, arguments: &[Argument { name: "width", kind: Double, token: Some("BYBOX"), ..N }, Argument { name: "height", kind: Double, ..N }, Argument { name: "unit", kind: Oneof, arguments: &[Argument { name: "m", kind: PureToken, token: Some("M"), ..N }, Argument { name: "km", kind: PureToken, token: Some("KM"), ..N }, Argument { name: "ft", kind: PureToken, token: Some("FT"), ..N }, Argument { name: "mi", kind: PureToken, token: Some("MI"), ..N }], ..N }], ..N }, Argument { name: "polygon", kind: Block, since: Some("9.0.0"), arguments: &[Argument { name: "num-vertices", kind: Integer, token: Some("BYPOLYGON"), ..N }, Argument { name: "vertices", kind: Block, multiple: true, arguments: &[Argument { name: "longitude", kind: Double, ..N }, Argument { name: "latitude", kind: Double, ..N }], ..N }], ..N }], ..N }, Argument { name: "order", kind: Oneof, optional: true, arguments: &[Argument { name: "asc", kind: PureToken, token: Some("ASC"), ..N }, Argument { name: "desc", kind: PureToken, token: Some("DESC"), ..N }], ..N }, Argument { name: "count-block", kind: Block, optional: true, arguments: &[Argument { name: "count", kind: Integer, token: Some("COUNT"), ..N }, Argument { name: "any", kind: PureToken, token: Some("ANY"), optional: true, ..N }], ..N }, Argument { name: "withcoord", kind: PureToken, token: Some("WITHCOORD"), optional: true, ..N }, Argument { name: "withdist", kind: PureToken, token: Some("WITHDIST"), optional: true, ..N }, Argument { name: "withhash", kind: PureToken, token: Some("WITHHASH"), optional: true, ..N }],
    // GEOSEARCHSTORE
    &[Argument { name: "destination", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "source", kind: Key, key_spec_index: Some(1), ..N }, Argument { name: "from", kind: Oneof, optional: true, arguments: &[Argument { name: "member", kind: String, token: Some("FROMMEMBER"), ..N }, Argument { name: "fromlonlat", kind: Block, token: Some("FROMLONLAT"), arguments: &[Argument { name: "longitude", kind: Double, ..N }, Argument { name: "latitude", kind: Double, ..N }], ..N }], ..N }, Argument { name: "by", kind: Oneof, arguments: &[Argument { name: "circle", kind: Block, arguments: &[Argument { name: "radius", kind: Double, token: Some("BYRADIUS"), ..N }, Argument { name: "unit", kind: Oneof, arguments: &[Argument { name: "m", kind: PureToken, token: Some("M"), ..N }, Argument { name: "km", kind: PureToken, token: Some("KM"), ..N }, Argument { name: "ft", kind: PureToken, token: Some("FT"), ..N }, Argument { name: "mi", kind: PureToken, token: Some("MI"), ..N }], ..N }], ..N }, Argument { name: "box", kind: Block, arguments: &[Argument { name: "width", kind: Double, token: Some("BYBOX"), ..N }, Argument { name: "height", kind: Double, ..N }, Argument { name: "unit", kind: Oneof, arguments: &[Argument { name: "m", kind: PureToken, token: Some("M"), ..N }, Argument { name: "km", kind: PureToken, token: Some("KM"), ..N }, Argument { name: "ft", kind: PureToken, token: Some("FT"), ..N }, Argument { name: "mi", kind: PureToken, token: Some("MI"), ..N }], ..N }], ..N }, Argument { name: "polygon", kind: Block, since: Some("9.0.0"), arguments: &[Argument { name: "num-vertices", kind: Integer, token: Some("BYPOLYGON"), ..N }, Argument { name: "vertices", kind: Block, multiple: true, arguments: &[Argument { name: "longitude", kind: Double, ..N }, Argument { name: "latitude", kind: Double, ..N }], ..N }], ..N }], ..N }, Argument { name: "order", kind: Oneof, optional: true, arguments: &[Argument { name: "asc", kind: PureToken, token: Some("ASC"), ..N }, Argument { name: "desc", kind: PureToken, token: Some("DESC"), ..N }], ..N }, Argument { name: "count-block", kind: Block, optional: true, arguments: &[Argument { name: "count", kind: Integer, token: Some("COUNT"), ..N }, Argument { name: "any", kind: PureToken, token: Some("ANY"), optional: true, ..N }], ..N }, Argument { name: "storedist", kind: PureToken, token: Some("STOREDIST"), optional: true, ..N }],
    // GET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // GETBIT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "offset", kind: Integer, ..N }],
    // GETDEL
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // GETEX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "expiration", kind: Oneof, optional: true, arguments: &[Argument { name: "seconds", kind: Integer, token: Some("EX"), ..N }, Argument { name: "milliseconds", kind: Integer, token: Some("PX"), ..N }, Argument { name: "unix-time-seconds", kind: UnixTime, token: Some("EXAT"), ..N }, Argument { name: "unix-time-milliseconds", kind: UnixTime, token: Some("PXAT"), ..N }, Argument { name: "persist", kind: PureToken, token: Some("PERSIST"), ..N }], ..N }],
    // GETRANGE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "start", kind: Integer, ..N }, Argument { name: "end", kind: Integer, ..N }],
    // GETSET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "value", kind: String, ..N }],
    // HDEL
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }],
    // HELLO
    &[Argument { name: "arguments", kind: Block, optional: true, arguments: &[Argument { name: "protover", kind: Integer, ..N }, Argument { name: "auth", kind: Block, token: Some("AUTH"), optional: true, arguments: &[Argument { name: "username", kind: String, ..N }, Argument { name: "password", kind: String, ..N }], ..N }, Argument { name: "clientname", kind: String, token: Some("SETNAME"), optional: true, ..N }], ..N }],
    // HEXISTS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, ..N }],
    // HEXPIRE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "seconds", kind: Integer, ..N }, Argument { name: "condition", kind: Oneof, optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }, Argument { name: "gt", kind: PureToken, token: Some("GT"), ..N }, Argument { name: "lt", kind: PureToken, token: Some("LT"), ..N }], ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, ..N }, Argument { name: "field", kind: String, multiple: true, ..N }], ..N }],
    // HEXPIREAT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "unix-time-seconds", kind: Integer, ..N }, Argument { name: "condition", kind: Oneof, since: Some("9.0.0"), optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }, Argument { name: "gt", kind: PureToken, token: Some("GT"), ..N }, Argument { name: "lt", kind: PureToken, token: Some("LT"), ..N }], ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }], ..N }],
    // HEXPIRETIME
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }], ..N }],
    // HGET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, ..N }],
    // HGETALL
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // HGETDEL
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }], ..N }],
    // HGETEX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "expiration", kind: Oneof, optional: true, arguments: &[Argument { name: "seconds", kind: Integer, token: Some("EX"), ..N }, Argument { name: "milliseconds", kind: Integer, token: Some("PX"), ..N }, Argument { name: "unix-time-seconds", kind: UnixTime, token: Some("EXAT"), ..N }, Argument { name: "unix-time-milliseconds", kind: UnixTime, token: Some("PXAT"), ..N }, Argument { name: "persist", kind: PureToken, token: Some("PERSIST"), ..N }], ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }], ..N }],
    // HINCRBY
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, ..N }, Argument { name: "increment", kind: Integer, ..N }],
    // HINCRBYFLOAT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, ..N }, Argument { name: "increment", kind: Double, ..N }],
    // HKEYS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // HLEN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // HMGET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }],
    // HMSET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "field", kind: String, ..N }, Argument { name: "value", kind: String, ..N }], ..N }],
    // HPERSIST
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }], ..N }],
    // HPEXPIRE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "milliseconds", kind: Integer, ..N }, Argument { name: "condition", kind: Oneof, since: Some("9.0.0"), optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }, Argument { name: "gt", kind: PureToken, token: Some("GT"), ..N }, Argument { name: "lt", kind: PureToken, token: Some("LT"), ..N }], ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }], ..N }],
    // HPEXPIREAT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "unix-time-milliseconds", kind: Integer, ..N }, Argument { name: "condition", kind: Oneof, since: Some("9.0.0"), optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }, Argument { name: "gt", kind: PureToken, token: Some("GT"), ..N }, Argument { name: "lt", kind: PureToken, token: Some("LT"), ..N }], ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }], ..N }],
    // HPEXPIRETIME
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }], ..N }],
    // HPTTL
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }], ..N }],
    // HRANDFIELD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "options", kind: Block, optional: true, arguments: &[Argument { name: "count", kind: Integer, ..N }, Argument { name: "withvalues", kind: PureToken, token: Some("WITHVALUES"), optional: true, ..N }], ..N }],
    // HSCAN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "cursor", kind: Integer, ..N }, Argument { name: "pattern", kind: Pattern, token: Some("MATCH"), optional: true, ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }, Argument { name: "novalues", kind: PureToken, token: Some("NOVALUES"), optional: true, ..N }],
    // HSET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "field", kind: String, ..N }, Argument { name: "value", kind: String, ..N }], ..N }],
    // HSETEX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "key-condition", kind: Oneof, optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }], ..N }, Argument { name: "fields-condition", kind: Oneof, optional: true, arguments: &[Argument { name: "fnx", kind: PureToken, token: Some("FNX"), ..N }, Argument { name: "fxx", kind: PureToken, token: Some("FXX"), ..N }], ..N }, Argument { name: "expiration", kind: Oneof, optional: true, arguments: &[Argument { name: "seconds", kind: Integer, token: Some("EX"), ..N }, Argument { name: "milliseconds", kind: Integer, token: Some("PX"), ..N }, Argument { name: "unix-time-seconds", kind: UnixTime, token: Some("EXAT"), ..N }, Argument { name: "unix-time-milliseconds", kind: UnixTime, token: Some("PXAT"), ..N }, Argument { name: "keepttl", kind: PureToken, token: Some("KEEPTTL"), ..N }], ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, key_spec_index: Some(0), ..N }, Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "field", kind: String, ..N }, Argument { name: "value", kind: String, ..N }], ..N }], ..N }],
    // HSETNX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, ..N }, Argument { name: "value", kind: String, ..N }],
    // HSTRLEN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, ..N }],
    // HTTL
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "fields", kind: Block, token: Some("FIELDS"), arguments: &[Argument { name: "numfields", kind: Integer, key_spec_index: Some(0), ..N }, Argument { name: "field", kind: String, multiple: true, ..N }], ..N }],
    // HVALS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // INCR
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // INCRBY
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "increment", kind: Integer, ..N }],
    // INCRBYFLOAT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "increment", kind: Double, ..N }],
    // INFO
    &[Argument { name: "section", kind: String, optional: true, multiple: true, ..N }],
    // JSON.ARRAPPEND
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, ..N }, Argument { name: "json", kind: String, multiple: true, ..N }],
    // JSON.ARRINDEX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, ..N }, Argument { name: "json", kind: String, ..N }, Argument { name: "range", kind: Block, optional: true, arguments: &[Argument { name: "start", kind: Integer, ..N }, Argument { name: "end", kind: Integer, optional: true, ..N }], ..N }],
    // JSON.ARRINSERT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, ..N }, Argument { name: "index", kind: Integer, ..N }, Argument { name: "json", kind: String, multiple: true, ..N }],
    // JSON.ARRLEN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }],
    // JSON.ARRPOP
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "position", kind: Block, optional: true, arguments: &[Argument { name: "path", kind: String, ..N }, Argument { name: "index", kind: Integer, optional: true, ..N }], ..N }],
    // JSON.ARRTRIM
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, ..N }, Argument { name: "start", kind: Integer, ..N }, Argument { name: "end", kind: Integer, ..N }],
    // JSON.CLEAR
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }],
    // JSON.DEBUG
    &[Argument { name: "subcommand", kind: Oneof, arguments: &[Argument { name: "memory", kind: Block, arguments: &[Argument { name: "memory", kind: PureToken, token: Some("MEMORY"), ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }], ..N }, Argument { name: "depth", kind: Block, arguments: &[Argument { name: "depth", kind: PureToken, token: Some("DEPTH"), ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }], ..N }, Argument { name: "fields", kind: Block, arguments: &[Argument { name: "fields", kind: PureToken, token: Some("FIELDS"), ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }], ..N }, Argument { name: "help", kind: PureToken, token: Some("HELP"), ..N }], ..N }],
    // JSON.DEL
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }],
    // JSON.FORGET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }],
    // JSON.GET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "indent", kind: String, token: Some("INDENT"), optional: true, ..N }, Argument { name: "newline", kind: String, token: Some("NEWLINE"), optional: true, ..N }, Argument { name: "space", kind: String, token: Some("SPACE"), optional: true, ..N }, Argument { name: "noescape", kind: PureToken, token: Some("NOESCAPE"), optional: true, ..N }, Argument { name: "path", kind: String, optional: true, multiple: true, ..N }],
    // JSON.MGET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "path", kind: String, ..N }],
    // JSON.MSET
    &[Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, ..N }, Argument { name: "json", kind: String, ..N }], ..N }],
    // JSON.NUMINCRBY
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, ..N }, Argument { name: "number", kind: Double, ..N }],
    // JSON.NUMMULTBY
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, ..N }, Argument { name: "number", kind: Double, ..N }],
    // JSON.OBJKEYS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }],
    // JSON.OBJLEN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }],
    // JSON.RESP
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }],
    // JSON.SET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, ..N }, Argument { name: "json", kind: String, ..N }, Argument { name: "condition", kind: Oneof, optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }], ..N }],
    // JSON.STRAPPEND
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }, Argument { name: "json", kind: String, ..N }],
    // JSON.STRLEN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }],
    // JSON.TOGGLE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }],
    // JSON.TYPE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "path", kind: String, optional: true, ..N }],
    // KEYS
    &[Argument { name: "pattern", kind: Pattern, ..N }],
    // LASTSAVE
    &[],
    // LATENCY
    &[],
    // LATENCY DOCTOR
    &[],
    // LATENCY GRAPH
    &[Argument { name: "event", kind: String, ..N }],
    // LATENCY HELP
    &[],
    // LATENCY HISTOGRAM
    &[Argument { name: "command", kind: String, optional: true, multiple: true, ..N }],
    // LATENCY HISTORY
    &[Argument { name: "event", kind: String, ..N }],
    // LATENCY LATEST
    &[],
    // LATENCY RESET
    &[Argument { name: "event", kind: String, optional: true, multiple: true, ..N }],
    // LCS
    &[Argument { name: "key1", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "key2", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "len", kind: PureToken, token: Some("LEN"), optional: true, ..N }, Argument { name: "idx", kind: PureToken, token: Some("IDX"), optional: true, ..N }, Argument { name: "min-match-len", kind: Integer, token: Some("MINMATCHLEN"), optional: true, ..N }, Argument { name: "withmatchlen", kind: PureToken, token: Some("WITHMATCHLEN"), optional: true, ..N }],
    // LINDEX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "index", kind: Integer, ..N }],
    // LINSERT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "where", kind: Oneof, arguments: &[Argument { name: "before", kind: PureToken, token: Some("BEFORE"), ..N }, Argument { name: "after", kind: PureToken, token: Some("AFTER"), ..N }], ..N }, Argument { name: "pivot", kind: String, ..N }, Argument { name: "element", kind: String, ..N }],
    // LLEN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // LMOVE
    &[Argument { name: "source", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "destination", kind: Key, key_spec_index: Some(1), ..N }, Argument { name: "wherefrom", kind: Oneof, arguments: &[Argument { name: "left", kind: PureToken, token: Some("LEFT"), ..N }, Argument { name: "right", kind: PureToken, token: Some("RIGHT"), ..N }], ..N }, Argument { name: "whereto", kind: Oneof, arguments: &[Argument { name: "left", kind: PureToken, token: Some("LEFT"), ..N }, Argument { name: "right", kind: PureToken, token: Some("RIGHT"), ..N }], ..N }],
    // LMPOP
    &[Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "where", kind: Oneof, arguments: &[Argument { name: "left", kind: PureToken, token: Some("LEFT"), ..N }, Argument { name: "right", kind: PureToken, token: Some("RIGHT"), ..N }], ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }],
    // LOLWUT
    &[Argument { name: "version", kind: Integer, token: Some("VERSION"), optional: true, ..N }],
    // LPOP
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "count", kind: Integer, since: Some("6.2.0"), optional: true, ..N }],
    // LPOS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "element", kind: String, ..N }, Argument { name: "rank", kind: Integer, token: Some("RANK"), optional: true, ..N }, Argument { name: "num-matches", kind: Integer, token: Some("COUNT"), optional: true, ..N }, Argument { name: "len", kind: Integer, token: Some("MAXLEN"), optional: true, ..N }],
    // LPUSH
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "element", kind: String, multiple: true, ..N }],
    // LPUSHX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "element", kind: String, multiple: true, ..N }],
    // LRANGE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "start", kind: Integer, ..N }, Argument { name: "stop", kind: Integer, ..N }],
    // LREM
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "count", kind: Integer, ..N }, Argument { name: "element", kind: String, ..N }],
    // LSET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "index", kind: Integer, ..N }, Argument { name: "element", kind: String, ..N }],
    // LTRIM
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "start", kind: Integer, ..N }, Argument { name: "stop", kind: Integer, ..N }],
    // MEMORY
    &[],
    // MEMORY DOCTOR
    &[],
    // MEMORY HELP
    &[],
    // MEMORY MALLOC-STATS
    &[],
    // MEMORY PURGE
    &[],
    // MEMORY STATS
    &[],
    // MEMORY USAGE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "count", kind: Integer, token: Some("SAMPLES"), optional: true, ..N }],
    // MGET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }],
    // MIGRATE
    &[Argument { name: "host", kind: String, ..N }, Argument { name: "port", kind: Integer, ..N }, Argument { name: "key-selector", kind: Oneof, arguments: &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "empty-string", kind: PureToken, token: Some(""), ..N }], ..N }, Argument { name: "destination-db", kind: Integer, ..N }, Argument { name: "timeout", kind: Integer, ..N }, Argument { name: "copy", kind: PureToken, token: Some("COPY"), since: Some("3.0.0"), optional: true, ..N }, Argument { name: "replace", kind: PureToken, token: Some("REPLACE"), since: Some("3.0.0"), optional: true, ..N }, Argument { name: "authentication", kind: Oneof, optional: true, arguments: &[Argument { name: "auth", kind: String, token: Some("AUTH"), display_text: Some("password"), since: Some("4.0.7"), ..N }, Argument { name: "auth2", kind: Block, token: Some("AUTH2"), since: Some("6.0.0"), arguments: &[Argument { name: "username", kind: String, ..N }, Argument { name: "password", kind: String, ..N }], ..N }], ..N }, Argument { name: "keys", kind: Key, token: Some("KEYS"), display_text: Some("key"), since: Some("3.0.6"), key_spec_index: Some(1), optional: true, multiple: true, ..N }],
    // MODULE
    &[],
    // MODULE HELP
    &[],
    // MODULE LIST
    &[],
    // MODULE LOAD
    &[Argument { name: "path", kind: String, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // MODULE LOADEX
    &[Argument { name: "path", kind: String, ..N }, Argument { name: "configs", kind: Block, token: Some("CONFIG"), optional: true, multiple: true, multiple_token: true, arguments: &[Argument { name: "name", kind: String, ..N }, Argument { name: "value", kind: String, ..N }], ..N }, Argument { name: "args", kind: String, token: Some("ARGS"), optional: true, multiple: true, ..N }],
    // MODULE UNLOAD
    &[Argument { name: "name", kind: String, ..N }],
    // MONITOR
    &[],
    // MOVE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "db", kind: Integer, ..N }],
    // MSET
    &[Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "value", kind: String, ..N }], ..N }],
    // MSETEX
    &[Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "value", kind: String, ..N }], ..N }, Argument { name: "condition", kind: Oneof, optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }], ..N }, Argument { name: "expiration", kind: Oneof, optional: true, arguments: &[Argument { name: "seconds", kind: Integer, token: Some("EX"), ..N }, Argument { name: "milliseconds", kind: Integer, token: Some("PX"), ..N }, Argument { name: "unix-time-seconds", kind: UnixTime, token: Some("EXAT"), ..N }, Argument { name: "unix-time-milliseconds", kind: UnixTime, token: Some("PXAT"), ..N }, Argument { name: "keepttl", kind: PureToken, token: Some("KEEPTTL"), ..N }], ..N }],
    // MSETNX
    &[Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "value", kind: String, ..N }], ..N }],
    // MULTI
    &[],
    // OBJECT
    &[],
    // OBJECT ENCODING
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // OBJECT FREQ
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // OBJECT HELP
    &[],
    // OBJECT IDLETIME
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // OBJECT REFCOUNT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // PERSIST
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // PEXPIRE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "milliseconds", kind: Integer, ..N }, Argument { name: "condition", kind: Oneof, since: Some("7.0.0"), optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }, Argument { name: "gt", kind: PureToken, token: Some("GT"), ..N }, Argument { name: "lt", kind: PureToken, token: Some("LT"), ..N }], ..N }],
    // PEXPIREAT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "unix-time-milliseconds", kind: UnixTime, ..N }, Argument { name: "condition", kind: Oneof, since: Some("7.0.0"), optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }, Argument { name: "gt", kind: PureToken, token: Some("GT"), ..N }, Argument { name: "lt", kind: PureToken, token: Some("LT"), ..N }], ..N }],
    // PEXPIRETIME
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // PFADD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "element", kind: String, optional: true, multiple: true, ..N }],
    // PFCOUNT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }],
    // PFDEBUG
    &[Argument { name: "subcommand", kind: String, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // PFMERGE
    &[Argument { name: "destkey", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "sourcekey", kind: Key, key_spec_index: Some(1), optional: true, multiple: true, ..N }],
    // PFSELFTEST
    &[],
    // PING
    &[Argument { name: "message", kind: String, optional: true, ..N }],
    // PROGRAM
    &[],
    // PROGRAM DEL
    &[Argument { name: "name", kind: String, multiple: true, ..N }],
    // PROGRAM DRYRUN
    &[Argument { name: "name-or-program", kind: String, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // PROGRAM EVAL
    &[Argument { name: "program", kind: String, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // PROGRAM EXPLAIN
    &[Argument { name: "name-or-program", kind: String, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // PROGRAM GET
    &[Argument { name: "name", kind: String, ..N }],
    // PROGRAM HELP
    &[],
    // PROGRAM LIST
    &[Argument { name: "pattern", kind: Pattern, token: Some("MATCH"), optional: true, ..N }],
    // PROGRAM RUN
    &[Argument { name: "name", kind: String, ..N }, Argument { name: "arg", kind: String, optional: true, multiple: true, ..N }],
    // PROGRAM SET
    &[Argument { name: "name", kind: String, ..N }, Argument { name: "program", kind: String, ..N }, Argument { name: "version", kind: Integer, token: Some("VERSION"), optional: true, ..N }],
    // PROGRAM STATS
    &[Argument { name: "name", kind: String, optional: true, ..N }],
    // PSETEX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "milliseconds", kind: Integer, ..N }, Argument { name: "value", kind: String, ..N }],
    // PSUBSCRIBE
    &[Argument { name: "pattern", kind: Pattern, multiple: true, ..N }],
    // PSYNC
    &[Argument { name: "replicationid", kind: String, ..N }, Argument { name: "offset", kind: Integer, ..N }],
    // PTTL
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // PUBLISH
    &[Argument { name: "channel", kind: String, ..N }, Argument { name: "message", kind: String, ..N }],
    // PUBSUB
    &[],
    // PUBSUB CHANNELS
    &[Argument { name: "pattern", kind: Pattern, optional: true, ..N }],
    // PUBSUB HELP
    &[],
    // PUBSUB NUMPAT
    &[],
    // PUBSUB NUMSUB
    &[Argument { name: "channel", kind: String, optional: true, multiple: true, ..N }],
    // PUBSUB SHARDCHANNELS
    &[Argument { name: "pattern", kind: Pattern, optional: true, ..N }],
    // PUBSUB SHARDNUMSUB
    &[Argument { name: "shardchannel", kind: String, optional: true, multiple: true, ..N }],
    // PUNSUBSCRIBE
    &[Argument { name: "pattern", kind: Pattern, optional: true, multiple: true, ..N }],
    // QUIT
    &[],
    // RANDOMKEY
    &[],
    // READONLY
    &[],
    // READWRITE
    &[],
    // RENAME
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "newkey", kind: Key, key_spec_index: Some(1), ..N }],
    // RENAMENX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "newkey", kind: Key, key_spec_index: Some(1), ..N }],
    // REPLCONF
    &[],
    // REPLICAOF
    &[Argument { name: "args", kind: Oneof, arguments: &[Argument { name: "host-port", kind: Block, arguments: &[Argument { name: "host", kind: String, ..N }, Argument { name: "port", kind: Integer, ..N }], ..N }, Argument { name: "no-one", kind: Block, arguments: &[Argument { name: "no", kind: PureToken, token: Some("NO"), ..N }, Argument { name: "one", kind: PureToken, token: Some("ONE"), ..N }], ..N }], ..N }],
    // RESET
    &[],
    // RESTORE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "ttl", kind: Integer, ..N }, Argument { name: "serialized-value", kind: String, ..N }, Argument { name: "replace", kind: PureToken, token: Some("REPLACE"), since: Some("3.0.0"), optional: true, ..N }, Argument { name: "absttl", kind: PureToken, token: Some("ABSTTL"), since: Some("5.0.0"), optional: true, ..N }, Argument { name: "seconds", kind: Integer, token: Some("IDLETIME"), since: Some("5.0.0"), optional: true, ..N }, Argument { name: "frequency", kind: Integer, token: Some("FREQ"), since: Some("5.0.0"), optional: true, ..N }],
    // RESTORE-ASKING
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "ttl", kind: Integer, ..N }, Argument { name: "serialized-value", kind: String, ..N }, Argument { name: "replace", kind: PureToken, token: Some("REPLACE"), since: Some("3.0.0"), optional: true, ..N }, Argument { name: "absttl", kind: PureToken, token: Some("ABSTTL"), since: Some("5.0.0"), optional: true, ..N }, Argument { name: "seconds", kind: Integer, token: Some("IDLETIME"), since: Some("5.0.0"), optional: true, ..N }, Argument { name: "frequency", kind: Integer, token: Some("FREQ"), since: Some("5.0.0"), optional: true, ..N }],
    // ROLE
    &[],
    // RPOP
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "count", kind: Integer, since: Some("6.2.0"), optional: true, ..N }],
    // RPOPLPUSH
    &[Argument { name: "source", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "destination", kind: Key, key_spec_index: Some(1), ..N }],
    // RPUSH
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "element", kind: String, multiple: true, ..N }],
    // RPUSHX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "element", kind: String, multiple: true, ..N }],
    // SADD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, multiple: true, ..N }],
    // SAVE
    &[],
    // SCAN
    &[Argument { name: "cursor", kind: Integer, ..N }, Argument { name: "pattern", kind: Pattern, token: Some("MATCH"), optional: true, ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }, Argument { name: "type", kind: String, token: Some("TYPE"), since: Some("6.0.0"), optional: true, ..N }],
    // SCARD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // SCRIPT
    &[],
    // SCRIPT DEBUG
    &[Argument { name: "mode", kind: Oneof, arguments: &[Argument { name: "yes", kind: PureToken, token: Some("YES"), ..N }, Argument { name: "sync", kind: PureToken, token: Some("SYNC"), ..N }, Argument { name: "no", kind: PureToken, token: Some("NO"), ..N }], ..N }, Argument { name: "engine", kind: String, since: Some("9.1.0"), optional: true, ..N }],
    // SCRIPT EXISTS
    &[Argument { name: "sha1", kind: String, multiple: true, ..N }],
    // SCRIPT FLUSH
    &[Argument { name: "flush-type", kind: Oneof, since: Some("6.2.0"), optional: true, arguments: &[Argument { name: "async", kind: PureToken, token: Some("ASYNC"), ..N }, Argument { name: "sync", kind: PureToken, token: Some("SYNC"), ..N }], ..N }],
    // SCRIPT HELP
    &[],
    // SCRIPT KILL
    &[],
    // SCRIPT LOAD
    &[Argument { name: "script", kind: String, ..N }],
    // SCRIPT SHOW
    &[Argument { name: "sha1", kind: String, ..N }],
    // SDIFF
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }],
    // SDIFFSTORE
    &[Argument { name: "destination", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(1), multiple: true, ..N }],
    // SELECT
    &[Argument { name: "index", kind: Integer, ..N }],
    // SENTINEL
    &[],
    // SENTINEL CKQUORUM
    &[Argument { name: "primary-name", kind: String, ..N }],
    // SENTINEL CONFIG
    &[Argument { name: "action", kind: Oneof, arguments: &[Argument { name: "set", kind: Block, token: Some("SET"), multiple: true, arguments: &[Argument { name: "parameter", kind: String, ..N }, Argument { name: "value", kind: String, ..N }], ..N }, Argument { name: "parameter", kind: String, token: Some("GET"), multiple: true, ..N }], ..N }],
    // SENTINEL DEBUG
    &[Argument { name: "data", kind: Block, optional: true, multiple: true, arguments: &[Argument { name: "parameter", kind: String, ..N }, Argument { name: "value", kind: String, ..N }], ..N }],
    // SENTINEL FAILOVER
    &[Argument { name: "primary-name", kind: String, ..N }, Argument { name: "coordinated", kind: PureToken, token: Some("COORDINATED"), since: Some("9.0.0"), optional: true, ..N }],
    // SENTINEL FLUSHCONFIG
    &[],
    // SENTINEL GET-MASTER-ADDR-BY-NAME
    &[Argument { name: "primary-name", kind: String, ..N }],
    // SENTINEL GET-PRIMARY-ADDR-BY-NAME
    &[Argument { name: "primary-name", kind: String, ..N }],
    // SENTINEL HELP
    &[],
    // SENTINEL INFO-CACHE
    &[Argument { name: "nodename", kind: String, multiple: true, ..N }],
    // SENTINEL IS-MASTER-DOWN-BY-ADDR
    &[Argument { name: "ip", kind: String, ..N }, Argument { name: "port", kind: Integer, ..N }, Argument { name: "current-epoch", kind: Integer, ..N }, Argument { name: "runid", kind: String, ..N }],
    // SENTINEL IS-PRIMARY-DOWN-BY-ADDR
    &[Argument { name: "ip", kind: String, ..N }, Argument { name: "port", kind: Integer, ..N }, Argument { name: "current-epoch", kind: Integer, ..N }, Argument { name: "runid", kind: String, ..N }],
    // SENTINEL MASTER
    &[Argument { name: "primary-name", kind: String, ..N }],
    // SENTINEL MASTERS
    &[],
    // SENTINEL MONITOR
    &[Argument { name: "name", kind: String, ..N }, Argument { name: "ip", kind: String, ..N }, Argument { name: "port", kind: Integer, ..N }, Argument { name: "quorum", kind: Integer, ..N }],
    // SENTINEL MYID
    &[],
    // SENTINEL PENDING-SCRIPTS
    &[],
    // SENTINEL PRIMARIES
    &[],
    // SENTINEL PRIMARY
    &[Argument { name: "primary-name", kind: String, ..N }],
    // SENTINEL REMOVE
    &[Argument { name: "primary-name", kind: String, ..N }],
    // SENTINEL REPLICAS
    &[Argument { name: "primary-name", kind: String, ..N }],
    // SENTINEL RESET
    &[Argument { name: "pattern", kind: Pattern, ..N }],
    // SENTINEL SENTINELS
    &[Argument { name: "primary-name", kind: String, ..N }],
    // SENTINEL SET
    &[Argument { name: "primary-name", kind: String, ..N }, Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "option", kind: String, ..N }, Argument { name: "value", kind: String, ..N }], ..N }],
    // SENTINEL SIMULATE-FAILURE
    &[Argument { name: "mode", kind: Oneof, multiple: true, arguments: &[Argument { name: "crash-after-election", kind: PureToken, token: Some("CRASH-AFTER-ELECTION"), ..N }, Argument { name: "crash-after-promotion", kind: PureToken, token: Some("CRASH-AFTER-PROMOTION"), ..N }, Argument { name: "help", kind: PureToken, token: Some("HELP"), ..N }], ..N }],
    // SENTINEL SLAVES
    &[Argument { name: "primary-name", kind: String, ..N }],
    // SET
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "value", kind: String, ..N }, Argument { name: "condition", kind: Oneof, optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), since: Some("2.6.12"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), since: Some("2.6.12"), ..N }, Argument { name: "comparison-value", kind: String, token: Some("IFEQ"), since: Some("8.1.0"), ..N }], ..N }, Argument { name: "get", kind: PureToken, token: Some("GET"), since: Some("6.2.0"), optional: true, ..N }, Argument { name: "expiration", kind: Oneof, optional: true, arguments: &[Argument { name: "seconds", kind: Integer, token: Some("EX"), since: Some("2.6.12"), ..N }, Argument { name: "milliseconds", kind: Integer, token: Some("PX"), since: Some("2.6.12"), ..N }, Argument { name: "unix-time-seconds", kind: UnixTime, token: Some("EXAT"), since: Some("6.2.0"), ..N }, Argument { name: "unix-time-milliseconds", kind: UnixTime, token: Some("PXAT"), since: Some("6.2.0"), ..N }, Argument { name: "keepttl", kind: PureToken, token: Some("KEEPTTL"), since: Some("6.0.0"), ..N }], ..N }],
    // SETBIT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "offset", kind: Integer, ..N }, Argument { name: "value", kind: Integer, ..N }],
    // SETEX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "seconds", kind: Integer, ..N }, Argument { name: "value", kind: String, ..N }],
    // SETNX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "value", kind: String, ..N }],
    // SETRANGE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "offset", kind: Integer, ..N }, Argument { name: "value", kind: String, ..N }],
    // SHUTDOWN
    &[Argument { name: "abort-selector", kind: Oneof, optional: true, arguments: &[Argument { name: "save-selector-block", kind: Block, arguments: &[Argument { name: "save-selector", kind: Oneof, optional: true, arguments: &[Argument { name: "nosave", kind: PureToken, token: Some("NOSAVE"), ..N }, Argument { name: "save", kind: PureToken, token: Some("SAVE"), ..N }], ..N }, Argument { name: "now", kind: PureToken, token: Some("NOW"), since: Some("7.0.0"), optional: true, ..N }, Argument { name: "force", kind: PureToken, token: Some("FORCE"), since: Some("7.0.0"), optional: true, ..N }, Argument { name: "safe", kind: PureToken, token: Some("SAFE"), since: Some("9.0.0"), optional: true, ..N }, Argument { name: "failover", kind: PureToken, token: Some("FAILOVER"), since: Some("9.0.0"), optional: true, ..N }], ..N }, Argument { name: "abort", kind: PureToken, token: Some("ABORT"), since: Some("7.0.0"), ..N }], ..N }],
    // SINTER
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }],
    // SINTERCARD
    &[Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "limit", kind: Integer, token: Some("LIMIT"), optional: true, ..N }],
    // SINTERSTORE
    &[Argument { name: "destination", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(1), multiple: true, ..N }],
    // SISMEMBER
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, ..N }],
    // SLAVEOF
    &[Argument { name: "args", kind: Oneof, arguments: &[Argument { name: "host-port", kind: Block, arguments: &[Argument { name: "host", kind: String, ..N }, Argument { name: "port", kind: Integer, ..N }], ..N }, Argument { name: "no-one", kind: Block, arguments: &[Argument { name: "no", kind: PureToken, token: Some("NO"), ..N }, Argument { name: "one", kind: PureToken, token: Some("ONE"), ..N }], ..N }], ..N }],
    // SLOWLOG
    &[],
    // SLOWLOG GET
    &[Argument { name: "count", kind: Integer, optional: true, ..N }],
    // SLOWLOG HELP
    &[],
    // SLOWLOG LEN
    &[],
    // SLOWLOG RESET
    &[],
    // SMEMBERS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // SMISMEMBER
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, multiple: true, ..N }],
    // SMOVE
    &[Argument { name: "source", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "destination", kind: Key, key_spec_index: Some(1), ..N }, Argument { name: "member", kind: String, ..N }],
    // SORT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "by-pattern", kind: Pattern, token: Some("BY"), display_text: Some("pattern"), key_spec_index: Some(1), optional: true, ..N }, Argument { name: "limit", kind: Block, token: Some("LIMIT"), optional: true, arguments: &[Argument { name: "offset", kind: Integer, ..N }, Argument { name: "count", kind: Integer, ..N }], ..N }, Argument { name: "get-pattern", kind: Pattern, token: Some("GET"), display_text: Some("pattern"), key_spec_index: Some(1), optional: true, multiple: true, multiple_token: true, ..N }, Argument { name: "order", kind: Oneof, optional: true, arguments: &[Argument { name: "asc", kind: PureToken, token: Some("ASC"), ..N }, Argument { name: "desc", kind: PureToken, token: Some("DESC"), ..N }], ..N }, Argument { name: "sorting", kind: PureToken, token: Some("ALPHA"), optional: true, ..N }, Argument { name: "destination", kind: Key, token: Some("STORE"), key_spec_index: Some(2), optional: true, ..N }],
    // SORT_RO
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "by-pattern", kind: Pattern, token: Some("BY"), display_text: Some("pattern"), key_spec_index: Some(1), optional: true, ..N }, Argument { name: "limit", kind: Block, token: Some("LIMIT"), optional: true, arguments: &[Argument { name: "offset", kind: Integer, ..N }, Argument { name: "count", kind: Integer, ..N }], ..N }, Argument { name: "get-pattern", kind: Pattern, token: Some("GET"), display_text: Some("pattern"), key_spec_index: Some(1), optional: true, multiple: true, multiple_token: true, ..N }, Argument { name: "order", kind: Oneof, optional: true, arguments: &[Argument { name: "asc", kind: PureToken, token: Some("ASC"), ..N }, Argument { name: "desc", kind: PureToken, token: Some("DESC"), ..N }], ..N }, Argument { name: "sorting", kind: PureToken, token: Some("ALPHA"), optional: true, ..N }],
    // SPOP
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "count", kind: Integer, since: Some("3.2.0"), optional: true, ..N }],
    // SPUBLISH
    &[Argument { name: "shardchannel", kind: String, ..N }, Argument { name: "message", kind: String, ..N }],
    // SRANDMEMBER
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "count", kind: Integer, since: Some("2.6.0"), optional: true, ..N }],
    // SREM
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, multiple: true, ..N }],
    // SSCAN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "cursor", kind: Integer, ..N }, Argument { name: "pattern", kind: Pattern, token: Some("MATCH"), optional: true, ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }],
    // SSUBSCRIBE
    &[Argument { name: "shardchannel", kind: String, multiple: true, ..N }],
    // STRLEN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // SUBSCRIBE
    &[Argument { name: "channel", kind: String, multiple: true, ..N }],
    // SUBSTR
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "start", kind: Integer, ..N }, Argument { name: "end", kind: Integer, ..N }],
    // SUNION
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }],
    // SUNIONSTORE
    &[Argument { name: "destination", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(1), multiple: true, ..N }],
    // SUNSUBSCRIBE
    &[Argument { name: "shardchannel", kind: String, optional: true, multiple: true, ..N }],
    // SWAPDB
    &[Argument { name: "index1", kind: Integer, ..N }, Argument { name: "index2", kind: Integer, ..N }],
    // SYNC
    &[],
    // TIME
    &[],
    // TOUCH
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }],
    // TRIGGER
    &[],
    // TRIGGER DEL
    &[Argument { name: "name", kind: String, multiple: true, ..N }],
    // TRIGGER DISABLE
    &[Argument { name: "name", kind: String, ..N }],
    // TRIGGER ENABLE
    &[Argument { name: "name", kind: String, ..N }],
    // TRIGGER GET
    &[Argument { name: "name", kind: String, ..N }],
    // TRIGGER HELP
    &[],
    // TRIGGER LIST
    &[Argument { name: "pattern", kind: Pattern, token: Some("MATCH"), optional: true, ..N }],
    // TRIGGER SET
    &[Argument { name: "name", kind: String, ..N }, Argument { name: "trigger", kind: String, ..N }, Argument { name: "version", kind: Integer, token: Some("VERSION"), optional: true, ..N }],
    // TRIGGER STATS
    &[Argument { name: "name", kind: String, optional: true, ..N }],
    // TRIGGER TEST
    &[Argument { name: "name", kind: String, ..N }, Argument { name: "event", kind: String, ..N }],
    // TTL
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // TYPE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // UNLINK
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }],
    // UNSUBSCRIBE
    &[Argument { name: "channel", kind: String, optional: true, multiple: true, ..N }],
    // UNWATCH
    &[],
    // WAIT
    &[Argument { name: "numreplicas", kind: Integer, ..N }, Argument { name: "timeout", kind: Integer, ..N }],
    // WAITAOF
    &[Argument { name: "numlocal", kind: Integer, ..N }, Argument { name: "numreplicas", kind: Integer, ..N }, Argument { name: "timeout", kind: Integer, ..N }],
    // WATCH
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }],
    // XACK
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "group", kind: String, ..N }, Argument { name: "id", kind: String, multiple: true, ..N }],
    // XADD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "nomkstream", kind: PureToken, token: Some("NOMKSTREAM"), since: Some("6.2.0"), optional: true, ..N }, Argument { name: "trim", kind: Block, optional: true, arguments: &[Argument { name: "strategy", kind: Oneof, arguments: &[Argument { name: "maxlen", kind: PureToken, token: Some("MAXLEN"), ..N }, Argument { name: "minid", kind: PureToken, token: Some("MINID"), since: Some("6.2.0"), ..N }], ..N }, Argument { name: "operator", kind: Oneof, optional: true, arguments: &[Argument { name: "equal", kind: PureToken, token: Some("="), ..N }, Argument { name: "approximately", kind: PureToken, token: Some("~"), ..N }], ..N }, Argument { name: "threshold", kind: String, ..N }, Argument { name: "count", kind: Integer, token: Some("LIMIT"), since: Some("6.2.0"), optional: true, ..N }], ..N }, Argument { name: "id-selector", kind: Oneof, arguments: &[Argument { name: "auto-id", kind: PureToken, token: Some("*"), ..N }, Argument { name: "id", kind: String, ..N }], ..N }, Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "field", kind: String, ..N }, Argument { name: "value", kind: String, ..N }], ..N }],
    // XAUTOCLAIM
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "group", kind: String, ..N }, Argument { name: "consumer", kind: String, ..N }, Argument { name: "min-idle-time", kind: String, ..N }, Argument { name: "start", kind: String, ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }, Argument { name: "justid", kind: PureToken, token: Some("JUSTID"), optional: true, ..N }],
    // XCLAIM
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "group", kind: String, ..N }, Argument { name: "consumer", kind: String, ..N }, Argument { name: "min-idle-time", kind: String, ..N }, Argument { name: "id", kind: String, multiple: true, ..N }, Argument { name: "ms", kind: Integer, token: Some("IDLE"), optional: true, ..N }, Argument { name: "unix-time-milliseconds", kind: UnixTime, token: Some("TIME"), optional: true, ..N }, Argument { name: "count", kind: Integer, token: Some("RETRYCOUNT"), optional: true, ..N }, Argument { name: "force", kind: PureToken, token: Some("FORCE"), optional: true, ..N }, Argument { name: "justid", kind: PureToken, token: Some("JUSTID"), optional: true, ..N }, Argument { name: "lastid", kind: String, token: Some("LASTID"), optional: true, ..N }],
    // XDEL
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "id", kind: String, multiple: true, ..N }],
    // XGROUP
    &[],
    // XGROUP CREATE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "group", kind: String, ..N }, Argument { name: "id-selector", kind: Oneof, arguments: &[Argument { name: "id", kind: String, ..N }, Argument { name: "new-id", kind: PureToken, token: Some("$"), ..N }], ..N }, Argument { name: "mkstream", kind: PureToken, token: Some("MKSTREAM"), optional: true, ..N }, Argument { name: "entriesread", kind: Integer, token: Some("ENTRIESREAD"), display_text: Some("entries-read"), optional: true, ..N }],
    // XGROUP CREATECONSUMER
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "group", kind: String, ..N }, Argument { name: "consumer", kind: String, ..N }],
    // XGROUP DELCONSUMER
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "group", kind: String, ..N }, Argument { name: "consumer", kind: String, ..N }],
    // XGROUP DESTROY
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "group", kind: String, ..N }],
    // XGROUP HELP
    &[],
    // XGROUP SETID
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "group", kind: String, ..N }, Argument { name: "id-selector", kind: Oneof, arguments: &[Argument { name: "id", kind: String, ..N }, Argument { name: "new-id", kind: PureToken, token: Some("$"), ..N }], ..N }, Argument { name: "entriesread", kind: Integer, token: Some("ENTRIESREAD"), display_text: Some("entries-read"), optional: true, ..N }],
    // XINFO
    &[],
    // XINFO CONSUMERS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "group", kind: String, ..N }],
    // XINFO GROUPS
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // XINFO HELP
    &[],
    // XINFO STREAM
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "full-block", kind: Block, optional: true, arguments: &[Argument { name: "full", kind: PureToken, token: Some("FULL"), ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }], ..N }],
    // XLEN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // XPENDING
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "group", kind: String, ..N }, Argument { name: "filters", kind: Block, optional: true, arguments: &[Argument { name: "min-idle-time", kind: Integer, token: Some("IDLE"), since: Some("6.2.0"), optional: true, ..N }, Argument { name: "start", kind: String, ..N }, Argument { name: "end", kind: String, ..N }, Argument { name: "count", kind: Integer, ..N }, Argument { name: "consumer", kind: String, optional: true, ..N }], ..N }],
    // XRANGE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "start", kind: String, ..N }, Argument { name: "end", kind: String, ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }],
    // XREAD
    &[Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }, Argument { name: "milliseconds", kind: Integer, token: Some("BLOCK"), optional: true, ..N }, Argument { name: "streams", kind: Block, token: Some("STREAMS"), arguments: &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "id", kind: String, multiple: true, ..N }], ..N }],
    // XREADGROUP
    &[Argument { name: "group-block", kind: Block, token: Some("GROUP"), arguments: &[Argument { name: "group", kind: String, ..N }, Argument { name: "consumer", kind: String, ..N }], ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }, Argument { name: "milliseconds", kind: Integer, token: Some("BLOCK"), optional: true, ..N }, Argument { name: "noack", kind: PureToken, token: Some("NOACK"), optional: true, ..N }, Argument { name: "streams", kind: Block, token: Some("STREAMS"), arguments: &[Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "id", kind: String, multiple: true, ..N }], ..N }],
    // XREVRANGE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "end", kind: String, ..N }, Argument { name: "start", kind: String, ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }],
    // XSETID
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "last-id", kind: String, ..N }, Argument { name: "entries-added", kind: Integer, token: Some("ENTRIESADDED"), since: Some("7.0.0"), optional: true, ..N }, Argument { name: "max-deleted-id", kind: String, token: Some("MAXDELETEDID"), since: Some("7.0.0"), optional: true, ..N }],
    // XTRIM
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "trim", kind: Block, arguments: &[Argument { name: "strategy", kind: Oneof, arguments: &[Argument { name: "maxlen", kind: PureToken, token: Some("MAXLEN"), ..N }, Argument { name: "minid", kind: PureToken, token: Some("MINID"), since: Some("6.2.0"), ..N }], ..N }, Argument { name: "operator", kind: Oneof, optional: true, arguments: &[Argument { name: "equal", kind: PureToken, token: Some("="), ..N }, Argument { name: "approximately", kind: PureToken, token: Some("~"), ..N }], ..N }, Argument { name: "threshold", kind: String, ..N }, Argument { name: "count", kind: Integer, token: Some("LIMIT"), since: Some("6.2.0"), optional: true, ..N }], ..N }],
    // ZADD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "condition", kind: Oneof, since: Some("3.0.2"), optional: true, arguments: &[Argument { name: "nx", kind: PureToken, token: Some("NX"), ..N }, Argument { name: "xx", kind: PureToken, token: Some("XX"), ..N }], ..N }, Argument { name: "comparison", kind: Oneof, since: Some("6.2.0"), optional: true, arguments: &[Argument { name: "gt", kind: PureToken, token: Some("GT"), ..N }, Argument { name: "lt", kind: PureToken, token: Some("LT"), ..N }], ..N }, Argument { name: "change", kind: PureToken, token: Some("CH"), since: Some("3.0.2"), optional: true, ..N }, Argument { name: "increment", kind: PureToken, token: Some("INCR"), since: Some("3.0.2"), optional: true, ..N }, Argument { name: "data", kind: Block, multiple: true, arguments: &[Argument { name: "score", kind: Double, ..N }, Argument { name: "member", kind: String, ..N }], ..N }],
    // ZCARD
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }],
    // ZCOUNT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "min", kind: Double, ..N }, Argument { name: "max", kind: Double, ..N }],
    // ZDIFF
    &[Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "withscores", kind: PureToken, token: Some("WITHSCORES"), optional: true, ..N }],
    // ZDIFFSTORE
    &[Argument { name: "destination", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(1), multiple: true, ..N }],
    // ZINCRBY
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "increment", kind: Integer, ..N }, Argument { name: "member", kind: String, ..N }],
    // ZINTER
    &[Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "weight", kind: Integer, token: Some("WEIGHTS"), optional: true, multiple: true, ..N }, Argument { name: "aggregate", kind: Oneof, token: Some("AGGREGATE"), optional: true, arguments: &[Argument { name: "sum", kind: PureToken, token: Some("SUM"), ..N }, Argument { name: "min", kind: PureToken, token: Some("MIN"), ..N }, Argument { name: "max", kind: PureToken, token: Some("MAX"), ..N }], ..N }, Argument { name: "withscores", kind: PureToken, token: Some("WITHSCORES"), optional: true, ..N }],
    // ZINTERCARD
    &[Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "limit", kind: Integer, token: Some("LIMIT"), optional: true, ..N }],
    // ZINTERSTORE
    &[Argument { name: "destination", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(1), multiple: true, ..N }, Argument { name: "weight", kind: Integer, token: Some("WEIGHTS"), optional: true, multiple: true, ..N }, Argument { name: "aggregate", kind: Oneof, token: Some("AGGREGATE"), optional: true, arguments: &[Argument { name: "sum", kind: PureToken, token: Some("SUM"), ..N }, Argument { name: "min", kind: PureToken, token: Some("MIN"), ..N }, Argument { name: "max", kind: PureToken, token: Some("MAX"), ..N }], ..N }],
    // ZLEXCOUNT
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "min", kind: String, ..N }, Argument { name: "max", kind: String, ..N }],
    // ZMPOP
    &[Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "where", kind: Oneof, arguments: &[Argument { name: "min", kind: PureToken, token: Some("MIN"), ..N }, Argument { name: "max", kind: PureToken, token: Some("MAX"), ..N }], ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }],
    // ZMSCORE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, multiple: true, ..N }],
    // ZPOPMAX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "count", kind: Integer, optional: true, ..N }],
    // ZPOPMIN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "count", kind: Integer, optional: true, ..N }],
    // ZRANDMEMBER
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "options", kind: Block, optional: true, arguments: &[Argument { name: "count", kind: Integer, ..N }, Argument { name: "withscores", kind: PureToken, token: Some("WITHSCORES"), optional: true, ..N }], ..N }],
    // ZRANGE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "start", kind: String, ..N }, Argument { name: "stop", kind: String, ..N }, Argument { name: "sortby", kind: Oneof, since: Some("6.2.0"), optional: true, arguments: &[Argument { name: "byscore", kind: PureToken, token: Some("BYSCORE"), ..N }, Argument { name: "bylex", kind: PureToken, token: Some("BYLEX"), ..N }], ..N }, Argument { name: "rev", kind: PureToken, token: Some("REV"), since: Some("6.2.0"), optional: true, ..N }, Argument { name: "limit", kind: Block, token: Some("LIMIT"), since: Some("6.2.0"), optional: true, arguments: &[Argument { name: "offset", kind: Integer, ..N }, Argument { name: "count", kind: Integer, ..N }], ..N }, Argument { name: "withscores", kind: PureToken, token: Some("WITHSCORES"), optional: true, ..N }],
    // ZRANGEBYLEX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "min", kind: String, ..N }, Argument { name: "max", kind: String, ..N }, Argument { name: "limit", kind: Block, token: Some("LIMIT"), optional: true, arguments: &[Argument { name: "offset", kind: Integer, ..N }, Argument { name: "count", kind: Integer, ..N }], ..N }],
    // ZRANGEBYSCORE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "min", kind: Double, ..N }, Argument { name: "max", kind: Double, ..N }, Argument { name: "withscores", kind: PureToken, token: Some("WITHSCORES"), since: Some("2.0.0"), optional: true, ..N }, Argument { name: "limit", kind: Block, token: Some("LIMIT"), optional: true, arguments: &[Argument { name: "offset", kind: Integer, ..N }, Argument { name: "count", kind: Integer, ..N }], ..N }],
    // ZRANGESTORE
    &[Argument { name: "dst", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "src", kind: Key, key_spec_index: Some(1), ..N }, Argument { name: "min", kind: String, ..N }, Argument { name: "max", kind: String, ..N }, Argument { name: "sortby", kind: Oneof, optional: true, arguments: &[Argument { name: "byscore", kind: PureToken, token: Some("BYSCORE"), ..N }, Argument { name: "bylex", kind: PureToken, token: Some("BYLEX"), ..N }], ..N }, Argument { name: "rev", kind: PureToken, token: Some("REV"), optional: true, ..N }, Argument { name: "limit", kind: Block, token: Some("LIMIT"), optional: true, arguments: &[Argument { name: "offset", kind: Integer, ..N }, Argument { name: "count", kind: Integer, ..N }], ..N }],
    // ZRANK
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, ..N }, Argument { name: "withscore", kind: PureToken, token: Some("WITHSCORE"), optional: true, ..N }],
    // ZREM
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, multiple: true, ..N }],
    // ZREMRANGEBYLEX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "min", kind: String, ..N }, Argument { name: "max", kind: String, ..N }],
    // ZREMRANGEBYRANK
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "start", kind: Integer, ..N }, Argument { name: "stop", kind: Integer, ..N }],
    // ZREMRANGEBYSCORE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "min", kind: Double, ..N }, Argument { name: "max", kind: Double, ..N }],
    // ZREVRANGE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "start", kind: Integer, ..N }, Argument { name: "stop", kind: Integer, ..N }, Argument { name: "withscores", kind: PureToken, token: Some("WITHSCORES"), optional: true, ..N }],
    // ZREVRANGEBYLEX
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "max", kind: String, ..N }, Argument { name: "min", kind: String, ..N }, Argument { name: "limit", kind: Block, token: Some("LIMIT"), optional: true, arguments: &[Argument { name: "offset", kind: Integer, ..N }, Argument { name: "count", kind: Integer, ..N }], ..N }],
    // ZREVRANGEBYSCORE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "max", kind: Double, ..N }, Argument { name: "min", kind: Double, ..N }, Argument { name: "withscores", kind: PureToken, token: Some("WITHSCORES"), optional: true, ..N }, Argument { name: "limit", kind: Block, token: Some("LIMIT"), optional: true, arguments: &[Argument { name: "offset", kind: Integer, ..N }, Argument { name: "count", kind: Integer, ..N }], ..N }],
    // ZREVRANK
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, ..N }, Argument { name: "withscore", kind: PureToken, token: Some("WITHSCORE"), optional: true, ..N }],
    // ZSCAN
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "cursor", kind: Integer, ..N }, Argument { name: "pattern", kind: Pattern, token: Some("MATCH"), optional: true, ..N }, Argument { name: "count", kind: Integer, token: Some("COUNT"), optional: true, ..N }, Argument { name: "noscores", kind: PureToken, token: Some("NOSCORES"), optional: true, ..N }],
    // ZSCORE
    &[Argument { name: "key", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "member", kind: String, ..N }],
    // ZUNION
    &[Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(0), multiple: true, ..N }, Argument { name: "weight", kind: Integer, token: Some("WEIGHTS"), optional: true, multiple: true, ..N }, Argument { name: "aggregate", kind: Oneof, token: Some("AGGREGATE"), optional: true, arguments: &[Argument { name: "sum", kind: PureToken, token: Some("SUM"), ..N }, Argument { name: "min", kind: PureToken, token: Some("MIN"), ..N }, Argument { name: "max", kind: PureToken, token: Some("MAX"), ..N }], ..N }, Argument { name: "withscores", kind: PureToken, token: Some("WITHSCORES"), optional: true, ..N }],
    // ZUNIONSTORE
    &[Argument { name: "destination", kind: Key, key_spec_index: Some(0), ..N }, Argument { name: "numkeys", kind: Integer, ..N }, Argument { name: "key", kind: Key, key_spec_index: Some(1), multiple: true, ..N }, Argument { name: "weight", kind: Integer, token: Some("WEIGHTS"), optional: true, multiple: true, ..N }, Argument { name: "aggregate", kind: Oneof, token: Some("AGGREGATE"), optional: true, arguments: &[Argument { name: "sum", kind: PureToken, token: Some("SUM"), ..N }, Argument { name: "min", kind: PureToken, token: Some("MIN"), ..N }, Argument { name: "max", kind: PureToken, token: Some("MAX"), ..N }], ..N }],
];
