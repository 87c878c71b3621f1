//! Owns: what the engine does about a command besides running it, as bits. A new way to treat some commands apart is a
//! bit here and a word in their files, so that nobody has to test a name. Does not own: which command has which bits
//! (`spec/commands`), what follows from them (the engine).

/// Nothing behind it may be decoded before it has run: it may change how bytes are read, or end the connection.
pub const BARRIER: u64 = 1 << 0;
/// CLIENT PAUSE does not hold it.
pub const CONTROL: u64 = 1 << 1;
/// Inside MULTI it runs and is not queued.
pub const IN_MULTI: u64 = 1 << 2;
/// With PROTO it changes the protocol, which it must not do inside MULTI.
pub const SWITCHES_WIRE: u64 = 1 << 3;
/// Inside MULTI what is queued behind it is for the database that it names.
pub const SELECTS_DB: u64 = 1 << 4;
/// A RESP2 client that has subscriptions may run it.
pub const SUBSCRIBER: u64 = 1 << 5;
/// It is answered by pushes, which CLIENT REPLY OFF does not hold back.
pub const ANSWERS_BY_PUSH: u64 = 1 << 6;
/// CLIENT CACHING holds on behind it.
pub const KEEPS_CACHING: u64 = 1 << 7;
/// It reads the key that it is about to write: one that is not there is not told as missed.
pub const LOOKS_TO_WRITE: u64 = 1 << 8;
/// What it reads is noted for client-side caching read by read.
pub const NOTES_OWN_READS: u64 = 1 << 9;
/// All its arguments are secret.
pub const SECRET_ALL: u64 = 1 << 10;
/// A user and a password stand behind AUTH, and are secret.
pub const SECRET_AUTH: u64 = 1 << 11;
/// Values of directives may be secret.
pub const SECRET_VALUES: u64 = 1 << 12;
/// What stands behind the subcommand is secret.
pub const SECRET_NAMES: u64 = 1 << 13;
/// SORT: a key behind STORE, which the table cannot tell from the value of an option.
pub const KEYS_SORT: u64 = 1 << 14;
/// GEORADIUS: of several keys behind STORE and STOREDIST the last one counts.
pub const KEYS_RADIUS: u64 = 1 << 15;
/// MIGRATE: keys behind KEYS, or the third argument.
pub const KEYS_MIGRATE: u64 = 1 << 16;
/// Its key is read if GET is among the options.
pub const ACCESS_SET: u64 = 1 << 17;
/// Its key is written only if SET or INCRBY is among the operations.
pub const ACCESS_BITFIELD: u64 = 1 << 18;
/// Its first argument names a database.
pub const DB_FIRST: u64 = 1 << 19;
/// Its first two arguments name databases.
pub const DB_BOTH: u64 = 1 << 20;
/// Its second argument names a database.
pub const DB_SECOND: u64 = 1 << 21;
/// Options DB name databases.
pub const DB_OPTIONS: u64 = 1 << 22;
/// Each argument names a channel.
pub const CHANNELS_EACH: u64 = 1 << 23;
/// Each argument is a pattern of channels.
pub const PATTERNS_EACH: u64 = 1 << 24;
/// Its first argument names a channel.
pub const CHANNEL_FIRST: u64 = 1 << 25;
/// Its second argument, behind the key, is a member or field that it looks for.
pub const MEMBER_SECOND: u64 = 1 << 26;
/// Its third argument is.
pub const MEMBER_THIRD: u64 = 1 << 27;
/// It always takes about the same short time, as commands with the flag `fast` do.
pub const QUICK: u64 = 1 << 28;
/// GET: the engine has a shorter form of it.
pub const FAST_GET: u64 = 1 << 29;
/// SET.
pub const FAST_SET: u64 = 1 << 30;
/// PING.
pub const FAST_PING: u64 = 1 << 31;
/// MGET.
pub const FAST_MGET: u64 = 1 << 32;
/// MSET.
pub const FAST_MSET: u64 = 1 << 33;
/// While it waits for a key it must hear that the key goes away.
pub const HEARS_OF_END: u64 = 1 << 34;
/// It adds to the stream at its key, or puts one there.
pub const BRINGS: u64 = 1 << 35;
/// What it names by its first argument behind the subcommand can be allowed by itself.
pub const RULE_BY_NAME: u64 = 1 << 37;
/// A password stands behind AUTH, a user and a password behind AUTH2, and are secret.
pub const SECRET_AUTH2: u64 = 1 << 36;
/// What it asks for comes later, without end: over a wire that has one answer to a request it is refused.
pub const STREAMS: u64 = 1 << 38;
/// Its second argument is an offset in bytes, up to which its string grows.
pub const REACHES_BYTES: u64 = 1 << 39;
/// Its second argument is an offset in bits, up to which its string grows.
pub const REACHES_BITS: u64 = 1 << 40;
/// What it answers is a number or a status, whatever its options are.
pub const ANSWERS_LITTLE: u64 = 1 << 41;
/// Behind it a client may have another user: a channel that is opened behind it waits for it.
pub const CHANGES_USER: u64 = 1 << 42;
/// It can make keys take more memory though it has not the flag `denyoom`: it is refused far above `maxmemory` only.
pub const GROWS: u64 = 1 << 43;
/// INCR: programs and triggers have a shorter form of it.
pub const INCREMENTS: u64 = 1 << 44;
/// Its first argument is a script, whose first line says what it does.
pub const RUNS_SCRIPT: u64 = 1 << 45;
/// Its first argument is the SHA-1 of a script.
pub const RUNS_SHA: u64 = 1 << 46;
/// Its first argument is the name of a function.
pub const RUNS_FUNCTION: u64 = 1 << 47;
/// It looks at all keys of a database, or changes them.
pub const LOOKS_AT_ALL: u64 = 1 << 48;
/// It runs programs, or has some run from now on.
pub const RUNS_STORED: u64 = 1 << 49;
/// SORT: what its options look up stands in other keys.
pub const LOOKS_UP: u64 = 1 << 50;
/// Its first argument says for how many seconds it blocks.
pub const TIME_FIRST: u64 = 1 << 51;
/// Its last argument does.
pub const TIME_LAST: u64 = 1 << 52;
/// It blocks if its option BLOCK says so, for as many milliseconds.
pub const TIME_OPTION: u64 = 1 << 53;
/// Its first argument is a script, which it only brings.
pub const BRINGS_SCRIPT: u64 = 1 << 54;
/// Its first argument is a channel, of no slot, that it publishes to.
pub const PUBLISHES: u64 = 1 << 55;
/// The server has no scripts behind it.
pub const FORGETS_SCRIPTS: u64 = 1 << 56;
/// MULTI: what comes behind it is queued.
pub const OPENS_TRANSACTION: u64 = 1 << 57;
/// EXEC: what was queued runs. It is a barrier where that may be one.
pub const ENDS_TRANSACTION: u64 = 1 << 58;
