//! What Go helpers make of replies: a Go type for each command, or the reason why there is none.
//!
//! It owns the lists; `go_helpers.rs` makes methods of them, and fails when a command of the table is in none. What
//! each converter does stands in `sdk/go/respb`: `result.go`, `typed.go` and `about.go`.

/// What the reply of a command is made into: the converter, its Go type, the commands. HELP is a list of lines.
pub const RESULTS: [(&str, &str, &str); 47] = [
    ("asLastingSeconds", "[]time.Duration", "HTTL"),
    ("asLastingMilliseconds", "[]time.Duration", "HPTTL"),
    ("asLine", "map[string]string", "CLIENT|INFO"),
    ("asCounts", "map[string]int64", "PUBSUB|NUMSUB PUBSUB|SHARDNUMSUB"),
    ("asCounters", "[]*int64", "BITFIELD BITFIELD_RO"),
    ("asKilled", "int64", "CLIENT|KILL"),
    ("asStreamInfo", "StreamInfo", "XINFO|STREAM"),
    ("asGroups", "[]GroupInfo", "XINFO|GROUPS"),
    ("asConsumers", "[]ConsumerInfo", "XINFO|CONSUMERS"),
    ("asPending", "Pending", "XPENDING"),
    ("asLog", "[]LogEntry", "COMMANDLOG|GET SLOWLOG|GET"),
    ("asLatencies", "[]LatencyEvent", "LATENCY|LATEST"),
    ("asSamples", "[]LatencySample", "LATENCY|HISTORY"),
    ("asRole", "Role", "ROLE"),
    ("asTrackingInfo", "TrackingInfo", "CLIENT|TRACKINGINFO"),
    ("asLibraries", "[]Library", "FUNCTION|LIST"),
    ("asSlots", "[]SlotRange", "CLUSTER|SLOTS"),
    ("asCommandKeys", "[]CommandKey", "COMMAND|GETKEYSANDFLAGS"),
    (
        "asValues",
        "map[string]Value",
        "ACL|GETUSER BF.INFO FUNCTION|STATS LATENCY|HISTOGRAM MEMORY|STATS PROGRAM|DRYRUN PROGRAM|EXPLAIN \
         PROGRAM|GET SENTINEL|MASTER SENTINEL|PRIMARY TRIGGER|GET TRIGGER|STATS TRIGGER|TEST",
    ),
    (
        "asRecords",
        "[]map[string]Value",
        "ACL|LOG CLUSTER|GETSLOTMIGRATIONS CLUSTER|LINKS CLUSTER|SHARDS MODULE|LIST PROGRAM|LIST \
         PROGRAM|STATS SENTINEL|MASTERS SENTINEL|PRIMARIES SENTINEL|REPLICAS SENTINEL|SENTINELS SENTINEL|SLAVES \
         TRIGGER|LIST",
    ),
    ("asSeconds", "time.Duration", "OBJECT|IDLETIME TTL"),
    ("asMilliseconds", "time.Duration", "PTTL"),
    ("asUnixSeconds", "time.Time", "EXPIRETIME LASTSAVE"),
    ("asUnixMilliseconds", "time.Time", "PEXPIRETIME"),
    ("asServerTime", "time.Time", "TIME"),
    ("asScan", "Page", "CLUSTERSCAN HSCAN SCAN SSCAN ZSCAN"),
    ("asEntries", "[]Entry", "XCLAIM XRANGE XREVRANGE"),
    ("asStreams", "[]Stream", "XREAD XREADGROUP"),
    ("asClaimed", "Claimed", "XAUTOCLAIM"),
    (
        "asScored",
        "[]Scored",
        "ZDIFF ZINTER ZPOPMAX ZPOPMIN ZRANGE ZRANGEBYSCORE ZREVRANGE ZREVRANGEBYSCORE ZUNION",
    ),
    ("asPopped", "Popped", "BZMPOP BZPOPMAX BZPOPMIN ZMPOP"),
    ("asListPopped", "ListPopped", "BLMPOP LMPOP"),
    ("asRank", "Rank", "ZRANK ZREVRANK"),
    ("asFloats", "[]*float64", "ZMSCORE"),
    ("asPositions", "[]*Position", "GEOPOS"),
    ("asPlaces", "[]Place", "GEORADIUS GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH"),
    ("asLines", "[]map[string]string", "CLIENT|LIST"),
    ("asBools", "[]bool", "BF.INSERT BF.MADD BF.MEXISTS SCRIPT|EXISTS SMISMEMBER"),
    ("asInts", "[]int64", "HEXPIRE HEXPIREAT HEXPIRETIME HPERSIST HPEXPIRE HPEXPIREAT HPEXPIRETIME WAITAOF"),
    (
        "asNone",
        "None",
        "ACL|DELUSER ACL|LOAD ACL|SAVE ACL|SETUSER ASKING AUTH BF.LOAD BF.RESERVE BGREWRITEAOF BGSAVE \
         CLIENT|CACHING CLIENT|CAPA CLIENT|IMPORT-SOURCE CLIENT|NO-EVICT CLIENT|NO-TOUCH CLIENT|PAUSE \
         CLIENT|SETINFO CLIENT|SETNAME CLIENT|TRACKING CLIENT|UNPAUSE CLUSTER|ADDSLOTS \
         CLUSTER|ADDSLOTSRANGE CLUSTER|BUMPEPOCH CLUSTER|CANCELSLOTMIGRATIONS CLUSTER|DELSLOTS \
         CLUSTER|DELSLOTSRANGE CLUSTER|FAILOVER CLUSTER|FLUSHSLOT CLUSTER|FLUSHSLOTS CLUSTER|FORGET \
         CLUSTER|MEET CLUSTER|MIGRATESLOTS CLUSTER|REPLICATE CLUSTER|RESET CLUSTER|SAVECONFIG \
         CLUSTER|SET-CONFIG-EPOCH CLUSTER|SETSLOT COMMANDLOG|RESET CONFIG|RESETSTAT CONFIG|REWRITE \
         CONFIG|SET DISCARD FAILOVER FLUSHALL FLUSHDB FT.CREATE FT.DROPINDEX FUNCTION|DELETE \
         FUNCTION|FLUSH FUNCTION|KILL FUNCTION|RESTORE HMSET JSON.MSET LSET LTRIM MEMORY|PURGE \
         MIGRATE MODULE|LOAD MODULE|LOADEX MODULE|UNLOAD MONITOR MSET MULTI PFMERGE PSETEX READONLY \
         READWRITE RENAME REPLICAOF RESTORE RESTORE-ASKING SAVE SCRIPT|DEBUG SCRIPT|FLUSH SCRIPT|KILL \
         SELECT SENTINEL|FAILOVER SENTINEL|FLUSHCONFIG SENTINEL|MONITOR SENTINEL|REMOVE SENTINEL|SET \
         SENTINEL|SIMULATE-FAILURE SETEX SHUTDOWN SLAVEOF SLOWLOG|RESET SWAPDB UNWATCH WATCH \
         XGROUP|CREATE XGROUP|SETID XSETID",
    ),
    (
        "asInt",
        "int64",
        "APPEND BF.CARD BITCOUNT BITOP BITPOS CLIENT|GETREDIR CLIENT|ID CLIENT|UNBLOCK \
         CLUSTER|COUNT-FAILURE-REPORTS CLUSTER|COUNTKEYSINSLOT CLUSTER|KEYSLOT COMMANDLOG|LEN \
         COMMAND|COUNT COPY DBSIZE DECR DECRBY DEL EXISTS EXPIREAT GEOADD GEOSEARCHSTORE GETBIT HDEL \
         HINCRBY HLEN HSET HSTRLEN INCR INCRBY LATENCY|RESET LINSERT LLEN LPUSH LPUSHX LREM \
         MEMORY|USAGE OBJECT|FREQ OBJECT|REFCOUNT PFADD PFCOUNT PROGRAM|DEL PROGRAM|SET \
         PUBLISH PUBSUB|NUMPAT RPUSH RPUSHX \
         SADD SCARD SDIFFSTORE SENTINEL|RESET SETBIT SETRANGE SINTERCARD SINTERSTORE SLOWLOG|LEN \
         SPUBLISH SREM STRLEN SUNIONSTORE TOUCH TRIGGER|DEL TRIGGER|DISABLE TRIGGER|ENABLE \
         TRIGGER|SET UNLINK WAIT XACK XDEL XGROUP|CREATECONSUMER \
         XGROUP|DELCONSUMER XLEN XTRIM ZADD ZCARD ZCOUNT ZDIFFSTORE ZINTERCARD ZINTERSTORE ZLEXCOUNT \
         ZRANGESTORE ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE",
    ),
    (
        "asBool",
        "bool",
        "BF.ADD BF.EXISTS DELIFEQ EXPIRE HEXISTS HSETEX HSETNX MOVE MSETEX MSETNX PERSIST PEXPIRE \
         PEXPIREAT RENAMENX SETNX SISMEMBER SMOVE XGROUP|DESTROY",
    ),
    ("asFloat", "float64", "GEODIST HINCRBYFLOAT INCRBYFLOAT ZINCRBY ZSCORE"),
    (
        "asString",
        "string",
        "ACL|DRYRUN ACL|GENPASS ACL|WHOAMI BLMOVE BRPOPLPUSH CLIENT|GETNAME CLUSTER|INFO CLUSTER|MYID \
         CLUSTER|MYSHARDID CLUSTER|NODES DUMP ECHO FUNCTION|DUMP FUNCTION|LOAD GET GETDEL GETEX \
         GETRANGE GETSET HGET INFO JSON.GET JSON.SET LATENCY|DOCTOR LATENCY|GRAPH LINDEX LMOVE LOLWUT \
         MEMORY|DOCTOR MEMORY|MALLOC-STATS OBJECT|ENCODING PING RANDOMKEY RPOPLPUSH SCRIPT|LOAD \
         SCRIPT|SHOW SENTINEL|CKQUORUM SENTINEL|MYID SET SUBSTR TYPE XADD",
    ),
    (
        "asStrings",
        "[]string",
        "ACL|CAT ACL|LIST ACL|USERS BLPOP BRPOP CLUSTER|GETKEYSINSLOT CLUSTER|REPLICAS CLUSTER|SLAVES \
         COMMAND|GETKEYS COMMAND|LIST FT._LIST GEOHASH HKEYS HVALS JSON.OBJKEYS KEYS LRANGE \
         PUBSUB|CHANNELS PUBSUB|SHARDCHANNELS SDIFF SENTINEL|GET-MASTER-ADDR-BY-NAME \
         SENTINEL|GET-PRIMARY-ADDR-BY-NAME SINTER SMEMBERS SORT_RO SUNION ZRANGEBYLEX ZREVRANGEBYLEX",
    ),
    ("asPointers", "[]*string", "HGETDEL HGETEX HMGET JSON.MGET MGET"),
    ("asMap", "map[string]string", "CONFIG|GET HGETALL"),
];

/// Commands that answer differently by an argument, and so have more than one helper: the command, what its name gets,
/// the arguments that are left out and those that must be given, the converter, its Go type.
pub const FORMS: [Form; 18] = [
    Form::new("LPOP", "", "count", "", "asString", "string"),
    Form::new("LPOP", "N", "", "count", "asStrings", "[]string"),
    Form::new("RPOP", "", "count", "", "asString", "string"),
    Form::new("RPOP", "N", "", "count", "asStrings", "[]string"),
    Form::new("SPOP", "", "count", "", "asString", "string"),
    Form::new("SPOP", "N", "", "count", "asStrings", "[]string"),
    Form::new("SRANDMEMBER", "", "count", "", "asString", "string"),
    Form::new("SRANDMEMBER", "N", "", "count", "asStrings", "[]string"),
    Form::new("HRANDFIELD", "", "options", "", "asString", "string"),
    Form::new("HRANDFIELD", "N", "", "options", "asFields", "[]Field"),
    Form::new("ZRANDMEMBER", "", "options", "", "asString", "string"),
    Form::new("ZRANDMEMBER", "N", "", "options", "asScored", "[]Scored"),
    Form::new("LPOS", "", "num-matches", "", "asInt", "int64"),
    Form::new("LPOS", "N", "", "num-matches", "asInts", "[]int64"),
    Form::new("SORT", "", "destination", "", "asStrings", "[]string"),
    Form::new("SORT", "Store", "", "destination", "asInt", "int64"),
    Form::new("LCS", "", "len idx min-match-len withmatchlen", "", "asString", "string"),
    Form::new("LCS", "Idx", "len", "idx", "asCommon", "Common"),
];

/// Arguments that no helper has, since the reply would be another: INCR makes ZADD a ZINCRBY, which there is.
pub const LEFT_OUT: [(&str, &str); 1] = [("ZADD", "increment")];

/// Replies that stay a `Value`: what they are, and the commands.
pub const RAW: [(&str, &str); 7] = [
    (
        "what the script, function or program returns",
        "EVAL EVALSHA EVALSHA_RO EVAL_RO FCALL FCALL_RO PROGRAM|EVAL PROGRAM|RUN",
    ),
    ("those of the commands between MULTI and EXEC", "EXEC"),
    (
        "one value or a list of them, by the form of the path",
        "JSON.ARRAPPEND JSON.ARRINDEX JSON.ARRINSERT JSON.ARRLEN JSON.ARRPOP JSON.ARRTRIM JSON.CLEAR \
         JSON.DEL JSON.FORGET JSON.NUMINCRBY JSON.NUMMULTBY JSON.OBJLEN JSON.RESP JSON.STRAPPEND \
         JSON.STRLEN JSON.TOGGLE JSON.TYPE",
    ),
    ("as its options say", "FT.INFO FT.SEARCH"),
    (
        "a description of commands, nested as deep as they are",
        "COMMAND COMMAND|DOCS COMMAND|INFO COMMAND|OPCODES",
    ),
    (
        "that of a tool for who works on the server, different in each version",
        "DEBUG JSON.DEBUG PFDEBUG PFSELFTEST SENTINEL|CONFIG SENTINEL|DEBUG SENTINEL|INFO-CACHE \
         SENTINEL|PENDING-SCRIPTS",
    ),
    (
        "what the nodes of a cluster tell each other",
        "CLUSTER|SLOT-STATS CLUSTER|SYNCSLOTS SENTINEL|IS-MASTER-DOWN-BY-ADDR \
         SENTINEL|IS-PRIMARY-DOWN-BY-ADDR",
    ),
];

/// Helpers that have a second form, for values that are bytes: the converter, its Go type, the commands.
pub const BYTES: [(&str, &str, &str); 2] = [
    ("asBytes", "[]byte", "DUMP FUNCTION|DUMP GET GETDEL GETEX GETRANGE GETSET HGET LINDEX LPOP RPOP"),
    ("asBytesList", "[][]byte", "HMGET HVALS LRANGE MGET SMEMBERS"),
];

/// One of several helpers of a command.
pub struct Form {
    /// As ACL names it, in capitals.
    pub command: &'static str,
    /// What its name gets.
    pub suffix: &'static str,
    /// Arguments that it has not.
    pub without: &'static str,
    /// Arguments that must be given.
    pub with: &'static str,
    /// The converter.
    pub convert: &'static str,
    /// The Go type.
    pub result: &'static str,
}

impl Form {
    const fn new(
        command: &'static str,
        suffix: &'static str,
        without: &'static str,
        with: &'static str,
        convert: &'static str,
        result: &'static str,
    ) -> Self {
        Self { command, suffix, without, with, convert, result }
    }
}
