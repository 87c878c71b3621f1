//! Scripts, libraries and the rights of who runs them, by Weft and by Valkey: what they find, what they are told, how
//! that is counted. Does not own: random ones (`crates/engine/tests/differential`), those that take long
//! (`scripts.rs`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use common::servers::Server;
use weft_client::{Connection, Protocol, Reply};

/// A connection to each of both, Valkey's first, with some keys; nothing where there is no Valkey 9.
fn both() -> Option<[(Server, Connection); 2]> {
    Some([Server::valkey_9(&[])?, Server::weft(&[])].map(|server| {
        let mut connection = server.connect(Protocol::Resp2);
        for command in [
            &["SET", "text", "abc"][..],
            &["HSET", "h", "a", "1"],
            &["SADD", "set", "x"],
            &["ZADD", "z", "1.5", "a"],
        ] {
            connection.command(command).unwrap();
        }
        (server, connection)
    }))
}

/// What a request is answered; addresses of functions are all the same.
fn answer(connection: &mut Connection, words: &[&str]) -> String {
    let told = format!("{:?}", connection.command(words));
    let mut parts = told.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "0x" + part.trim_start_matches(|character: char| character.is_ascii_hexdigit())
    })
}

/// Asks both the same.
fn compare(connections: &mut [Connection; 2], words: &[&str], different: &mut Vec<String>) {
    let [theirs, ours] = connections.each_mut().map(|connection| answer(connection, words));
    if theirs != ours {
        different.push(format!("{words:?}\n  Valkey: {theirs}\n  Weft:   {ours}"));
    }
}

/// What is said of a value, tables included.
const TOLD: &str = "local function told(t) if type(t) ~= 'table' then return type(t) .. ':' .. tostring(t) end \
    local all = {} for k, v in pairs(t) do all[#all + 1] = tostring(k) .. '=' .. told(v) end table.sort(all) \
    return '{' .. table.concat(all, ',') .. '}' end ";

/// What is raised.
const RAISED: [&str; 17] = [
    "nil",
    "1.5",
    "'x'",
    "''",
    "'a\\nb'",
    "true",
    "{}",
    "{err='X y'}",
    "{err=5}",
    "{err={}}",
    "{err=''}",
    "{err='-A b'}",
    "{err='ONE'}",
    "{err='X y',source='s',line=3}",
    "{err='X y',ignore_error_stats_update=true}",
    "{ok='x'}",
    "setmetatable({},{__index={err='Z z'}})",
];

/// How. `@` is that.
const RAISES: [&str; 14] = [
    "error(@)",
    "error(@,0)",
    "error(@,2)",
    "assert(false,@)",
    "return told({pcall(error,@)})",
    "return told({xpcall(function() error(@) end,function(e) return type(e) end)})",
    "local _,e = pcall(error,@) error(e)",
    "return @",
    "return {1,@}",
    "coroutine.wrap(function() error(@) end)()",
    "return told({coroutine.resume(coroutine.create(function() error(@) end))})",
    "return redis.error_reply(@)",
    "return redis.status_reply(@)",
    "return __redis__err__handler(@)",
];

/// What is called by `redis.call` and `redis.pcall`.
const CALLS: [&str; 36] = [
    "",
    "{}",
    "'get'",
    "'get',true",
    "'nosuch'",
    "'incr','text'",
    "'lpush','text','x'",
    "'set','a','b','ex','0'",
    "'select','100'",
    "'config','nosuch'",
    "'config'",
    "'object','freq','text'",
    "'xreadgroup','group','g','c','streams','s','>'",
    "'blpop','none','0'",
    "'xread','block','0','streams','s','$'",
    "'multi'",
    "'exec'",
    "'watch','a'",
    "'eval','return 1','0'",
    "'evalsha','x','0'",
    "'fcall','x','0'",
    "'script','flush'",
    "'function','list'",
    "'subscribe','a'",
    "'monitor'",
    "'reset'",
    "'quit'",
    "'hello','3'",
    "'auth','a','b'",
    "'client','reply','off'",
    "'debug','object','text'",
    "'shutdown'",
    "'save'",
    "'acl','nosuch'",
    "'psync'",
    "'restore','r','0','xx'",
];

/// Others.
const SCRIPTS: [&str; 53] = [
    // As long as they are, on every wire.
    "error(string.rep('x',70000))",
    "return redis.status_reply(string.rep('x',70000))",
    "redis.setresp(3) return {big_number=string.rep('1',70000)}",
    "return told({pcall()})",
    "return told({pcall(1)})",
    "return told({xpcall(function() redis.call('incr','text') end,function(e) return e end)})",
    "return told({xpcall(function() error('x') end,function(e) error(e) end)})",
    "local x = nil\nx.y = 1",
    "loadstring('error(\"x\")','=name')()",
    "table.sort({3,2,1},function() error({err='S s'}) end)",
    "string.gsub('a','a',function() error({err='S s'}) end)",
    "return tostring(coroutine.running())",
    "return type(coroutine.isyieldable)",
    "coroutine.yield(1)",
    "return told({coroutine.resume(coroutine.create(function() pcall(coroutine.yield,1) return 5 end))})",
    "return told({coroutine.resume(coroutine.create(function() table.sort({1,2},coroutine.yield) end))})",
    "return told({pcall(coroutine.resume,1)})",
    "return told({pcall(coroutine.wrap,redis.call)})",
    "local c c = coroutine.wrap(function() c() end) c()",
    "local c = coroutine.wrap(function() end) c() c()",
    "local function f() return coroutine.wrap(f)() end f()",
    "local function f() f() return 1 end f()",
    "local t = {} for k, v in pairs(_G) do t[#t + 1] = k .. type(v) end table.sort(t) return t",
    "local t = {} for k, v in pairs(redis) do t[#t + 1] = k .. type(v) end table.sort(t) return t",
    "local t = {} for k, v in pairs(cjson) do t[#t + 1] = k .. type(v) end table.sort(t) return t",
    "return type(rawget(_G,'newproxy'))",
    "redis.x = 1",
    "x = 1",
    "return getfenv",
    "cjson.encode_max_depth(7) return {cjson.encode_max_depth(), cjson.new().encode_max_depth()}",
    "return cjson.encode_max_depth()",
    "local j = cjson.new() j.encode_number_precision(3) return {j.encode(1/3), cjson.encode(1/3)}",
    "return told({pcall(cjson.encode_number_precision,17)})",
    "return redis.error_reply('a\\r\\nb c')",
    "return redis.error_reply('\\r\\n')",
    "return {err='\\r\\n'}",
    "return redis.status_reply('a\\r\\nb')",
    "return {big_number='1\\r\\n2'}",
    "return {verbatim_string={format='t\\r\\n',string='x'}}",
    "redis.setresp(3) return {true,false,nil,1}",
    "redis.setresp(3) return redis.call('hgetall','h')",
    "redis.setresp(3) return redis.call('smembers','set')",
    "redis.setresp(3) return redis.call('zscore','z','a')",
    "redis.setresp(4)",
    "redis.log()",
    "redis.acl_check_cmd('nosuch')",
    "redis.sha1hex()",
    "return type(redis.call('command')[1])",
    "return redis.call('cluster')",
    // What has nothing to change is changed by nobody.
    "return {table.remove(cjson), table.remove(redis, 5), table.sort(string)}",
    "table.insert(string, 'x')",
    "table.remove(redis, 'x')",
    "table.insert(redis, 1, 2, 3)",
];

#[test]
fn scripts_find_and_are_told_what_they_are_in_valkey() {
    let Some([(valkey, theirs), (weft, ours)]) = both() else { return };
    let mut two = [theirs, ours];
    let (mut different, mut count) = (Vec::new(), 0);
    let mut run = |two: &mut [Connection; 2], script: &str| {
        count += 1;
        compare(two, &["EVAL", &format!("{TOLD}{script}"), "0"], &mut different);
    };
    let reset = |two: &mut [Connection; 2]| {
        for connection in two {
            connection.command(&["CONFIG", "RESETSTAT"]).unwrap();
        }
    };
    reset(&mut two);
    for raised in RAISED {
        RAISES.iter().for_each(|how| run(&mut two, &how.replace('@', raised)));
    }
    for call in CALLS {
        run(&mut two, &format!("return redis.call({call})"));
        run(&mut two, &format!("return told(redis.pcall({call}))"));
        run(
            &mut two,
            &format!("return told({{pcall(redis.call{}{call})}})", if call.is_empty() { "" } else { "," }),
        );
    }
    SCRIPTS.iter().for_each(|script| run(&mut two, script));
    // How all that was counted.
    let counted = two.each_mut().map(|connection| {
        let text: String = connection.query(&["INFO", "errorstats"]).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    });
    assert_eq!(counted[0], counted[1]);
    two = [&valkey, &weft].map(|server| server.connect(Protocol::Resp3));
    SCRIPTS.iter().for_each(|script| run(&mut two, script));
    assert!(different.is_empty(), "{} of {count}:\n{}", different.len(), different.join("\n"));
}

/// Users with few rights.
const USERS: [&str; 9] = [
    "+@scripting +get ~a*",
    "+@all -set ~*",
    "+eval +@read %R~r* %W~w* +set +copy",
    "+@all ~a* &c*",
    "+eval ~* +config|get +client|id",
    "-@all +eval ~* (+set ~s*) (+get ~g*)",
    "+@all -eval ~*",
    "+@all -@dangerous ~*",
    "+eval +set ~* db=1",
];

/// What their scripts call.
const ASKED: [&str; 22] = [
    "'get','a'",
    "'get','b'",
    "'set','s1','1'",
    "'get','g1'",
    "'get','r1'",
    "'set','w1','1'",
    "'copy','r1','w1'",
    "'copy','w1','r1'",
    "'config','get','maxmemory'",
    "'config','set','maxmemory','0'",
    "'client','no-evict','off'",
    "'publish','c1','x'",
    "'publish','d1','x'",
    "'keys','none*'",
    "'acl','whoami'",
    "'mget','a','b'",
    "'sort','a','by','b*'",
    "'select','1'",
    "'debug','object','a'",
    "'multi'",
    "'nosuch'",
    "'xread','streams','a','0'",
];

#[test]
fn scripts_of_users_with_few_rights_are_answered_as_in_valkey() {
    let Some([(valkey, mut theirs), (weft, mut ours)]) = both() else { return };
    let mut different = Vec::new();
    for rules in USERS {
        let words: Vec<&str> =
            ["ACL", "SETUSER", "u", "reset", "on", "nopass"].into_iter().chain(rules.split(' ')).collect();
        // What stands in brackets is one word.
        let words =
            words.join(" ").replace("(+set ~s*)", "(+set\u{1}~s*)").replace("(+get ~g*)", "(+get\u{1}~g*)");
        let words: Vec<String> = words.split(' ').map(|word| word.replace('\u{1}', " ")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for connection in [&mut theirs, &mut ours] {
            connection.command(&words).unwrap();
            connection.command(&["ACL", "LOG", "RESET"]).unwrap();
        }
        let mut two = [&valkey, &weft].map(|server| server.connect(Protocol::Resp2));
        compare(&mut two, &["AUTH", "u", "x"], &mut different);
        for asked in ASKED {
            for how in [
                "return redis.call(@)",
                "return told(redis.pcall(@))",
                "return told({pcall(redis.acl_check_cmd,@)})",
            ] {
                compare(
                    &mut two,
                    &["EVAL", &format!("{TOLD}{}", how.replace('@', asked)), "0"],
                    &mut different,
                );
            }
            let declared = format!("#!lua\n{TOLD}return told(redis.pcall({asked}))");
            compare(&mut two, &["EVAL", &declared, "1", "a1"], &mut different);
        }
        for words in [
            &["EVAL", "return 1", "1", "other"][..],
            &["EVAL_RO", "return 1", "1", "other"],
            &["EVALSHA", "ffffffffffffffffffffffffffffffffffffffff", "1", "other"],
            &["FCALL", "f", "1", "other"],
            &["FCALL_RO", "f", "0"],
            &["SCRIPT", "LOAD", "return 1"],
            &["FUNCTION", "LIST"],
            &["EVAL", "redis.call('select','1') return redis.call('set','s','v')", "0"],
        ] {
            compare(&mut two, words, &mut different);
        }
        // Why, which object and whose: the fields of ACL LOG that are of neither's clock.
        let logged = [&mut theirs, &mut ours].map(|connection| {
            let entries = list(connection, &["ACL", "LOG", "128"]);
            let shown = |entry: &Reply| match entry {
                Reply::Array(fields) => format!("{:?}", &fields[..10]),
                other => panic!("{other:?}"),
            };
            let mut shown: Vec<String> = entries.iter().map(shown).collect();
            shown.sort();
            shown
        });
        if logged[0] != logged[1] {
            different.push(format!("ACL LOG of {rules}:\n{:#?}\n{:#?}", logged[0], logged[1]));
        }
    }
    assert!(different.is_empty(), "{}:\n{}", different.len(), different.join("\n"));
}

/// A reply that is a list.
fn list(connection: &mut Connection, words: &[&str]) -> Vec<Reply> {
    match connection.command(words) {
        Ok(Reply::Array(entries)) => entries,
        other => panic!("{words:?}: {other:?}"),
    }
}

/// The arguments of what a log has, the newest first, and whose it was; of large replies how long they were.
fn logged(connection: &mut Connection, log: &str) -> Vec<String> {
    let entries = list(connection, &["COMMANDLOG", "GET", "100", log]);
    let shown = |entry: &Reply| match entry {
        Reply::Array(fields) if log == "slow" => format!("{:?} {:?}", fields[3], fields[5]),
        Reply::Array(fields) => format!("{:?} {:?} {:?}", fields[2], fields[3], fields[5]),
        other => panic!("{other:?}"),
    };
    entries.iter().map(shown).collect()
}

#[test]
fn what_scripts_call_is_logged_as_in_valkey() {
    let Some([(_valkey, theirs), (_weft, ours)]) = both() else { return };
    let (mut two, mut different) = ([theirs, ours], Vec::new());
    let library = "#!lua name=logged\nredis.register_function('f', function(keys) \
                   redis.call('set', keys[1], 'x') return redis.call('get', keys[1]) end)";
    for words in [
        &["CLIENT", "SETNAME", "me"][..],
        &["FUNCTION", "LOAD", library],
        &["CONFIG", "SET", "slowlog-log-slower-than", "0"],
        &["CONFIG", "SET", "commandlog-reply-larger-than", "0"],
        &["COMMANDLOG", "RESET", "slow"],
        &["COMMANDLOG", "RESET", "large-reply"],
        &["CONFIG", "RESETSTAT"],
        &["EVAL", "redis.setresp(3) redis.call('hgetall', 'h') return redis.call('zscore', 'z', 'a')", "0"],
        &["EVAL", "redis.call('set', KEYS[1], 'x') return redis.call('lrange', 'none', 0, -1)", "1", "key"],
        &["EVAL", "redis.pcall('incr', 'text') redis.pcall('get') return redis.pcall('nosuch')", "0"],
        &[
            "EVAL",
            "redis.call('sadd', 's', 1, 2) redis.call('spop', 's') return redis.call('incrbyfloat', 'f', 1.5)",
            "0",
        ],
        &[
            "EVAL",
            "local t = {} for i = 1, 40 do t[i] = string.rep('x', i * 5) end return redis.call('del', unpack(t))",
            "0",
        ],
        &["EVAL_RO", "return redis.pcall('set', 'a', 'b')", "0"],
        &["EVAL", "error('x')", "0"],
        &["FCALL", "f", "1", "key"],
        &["CONFIG", "SET", "slowlog-log-slower-than", "-1", "commandlog-reply-larger-than", "-1"],
    ] {
        compare(&mut two, words, &mut different);
    }
    let processed = two.each_mut().map(|connection| {
        let text: String = connection.query(&["INFO", "stats"]).unwrap();
        text.lines().find(|line| line.starts_with("total_commands_processed:")).map(str::to_owned)
    });
    assert_eq!(processed[0], processed[1]);
    for log in ["slow", "large-reply"] {
        let logs = two.each_mut().map(|connection| logged(connection, log));
        assert!(logs[1].len() > 15, "{log}: {:#?}", logs[1]);
        assert_eq!(logs[0], logs[1], "{log}");
    }
    assert!(different.is_empty(), "{}:\n{}", different.len(), different.join("\n"));
}

#[test]
fn libraries_are_refused_as_in_valkey() {
    let Some([(_valkey, theirs), (_weft, ours)]) = both() else { return };
    let (mut two, mut different) = ([theirs, ours], Vec::new());
    let library = |name: &str, body: &str| format!("#!lua name={name}\n{body}");
    let good = library("good", "redis.register_function('f',function() return 1 end)");
    let again = library("other", "redis.register_function('f',function() return 1 end)");
    for words in [
        &["FUNCTION", "LOAD", "REPLACE", "x", &good][..],
        &["FUNCTION", "LOAD", "x", &good],
        &["FUNCTION", "LOAD", &good, "REPLACE"],
        &["FUNCTION", "LOAD", "REPLACE"],
        &["FUNCTION", "LOAD"],
        &["FUNCTION", "LOAD", ""],
        &["FUNCTION", "LOAD", "REPLACE", "REPLACE", &good],
        &["FUNCTION", "LOAD", "replace", &good],
        &["FUNCTION", "LOAD", &good],
        &["FUNCTION", "LOAD", &again],
        &["FUNCTION", "LOAD", "#!LUA name=a flags=x\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua engine=x name=a\n"],
        &["FUNCTION", "LOAD", "#!lua name=a name=b\n"],
        &["FUNCTION", "LOAD", "#!lua name=a-b\n"],
        &["FUNCTION", "LOAD", "#!lua\n"],
        &["FUNCTION", "LOAD", "#!js name=a\n"],
        &["FUNCTION", "LOAD", "lua name=a\n"],
        &["FUNCTION", "DELETE", "none"],
        &["FUNCTION", "DELETE", "good", "x"],
        &["FUNCTION", "LIST", "WITHCODE", "WITHCODE"],
        &["FUNCTION", "LIST", "LIBRARYNAME"],
        &["FUNCTION", "FLUSH", "x"],
        &["FUNCTION", "RESTORE", "x", "y"],
        &["FUNCTION", "KILL"],
        &["FUNCTION", "nosuch"],
        &["FCALL", "f", "-1"],
        &["FCALL", "f", "x"],
        &["FCALL", "f", "1"],
        &["FCALL", "none", "0"],
        &["FCALL_RO", "f", "0"],
        &["EVAL", "#!lua flags=x\nreturn 1", "0"],
        &["EVAL", "#!lua name=x\nreturn 1", "0"],
        &["EVAL", "#!lua", "0"],
        &["EVAL_RO", "#!lua\nreturn 1", "0"],
        &["EVAL", "#!lua flags=no-writes\nredis.call('set','x','y')", "0"],
        &["SCRIPT", "LOAD", "syntax error"],
        &["SCRIPT", "FLUSH", "x"],
        &["SCRIPT", "KILL"],
        &["SCRIPT", "SHOW", "x"],
    ] {
        compare(&mut two, words, &mut different);
    }
    for body in [
        "return 1",
        "error('x')",
        "error({err='x y'})",
        "redis.call('get','x')",
        "x = 1",
        "syntax error",
        "server.setresp(3)",
        "return KEYS",
        "redis.register_function()",
        "redis.register_function('a')",
        "redis.register_function('a',1)",
        "redis.register_function(1,function() end)",
        "redis.register_function('a',function() end,1)",
        "redis.register_function('a b',function() end)",
        "redis.register_function('',function() end)",
        "redis.register_function{'a',function() end}",
        "redis.register_function{function_name='a'}",
        "redis.register_function{callback=function() end}",
        "redis.register_function{function_name='a',callback=1}",
        "redis.register_function{function_name='a',callback=function() end,flags='no-writes'}",
        "redis.register_function{function_name='a',callback=function() end,flags={'x'}}",
        "redis.register_function{function_name='a',callback=function() end,flags={'no-writes','no-writes'}}",
        "redis.register_function{function_name='a',callback=function() end,description=5}",
        "redis.register_function{function_name='a',callback=function() end,other=5}",
        "redis.register_function('a',function() end) redis.register_function('a',function() end)",
    ] {
        compare(&mut two, &["FUNCTION", "LOAD", "REPLACE", &library("tried", body)], &mut different);
    }
    compare(&mut two, &["FUNCTION", "LIST", "LIBRARYNAME", "tried", "WITHCODE"], &mut different);
    assert!(different.is_empty(), "{}:\n{}", different.len(), different.join("\n"));
}

/// Otherwise a script could end the connections of clients, and that which a gateway shares among them.
#[test]
fn results_are_nested_and_long_as_every_wire_takes_them() {
    let server = Server::weft(&[]);
    for protocol in [Protocol::Resp2, Protocol::Resp3, Protocol::Respb] {
        let mut connection = server.connect(protocol);
        for (open, close) in [("{", "}"), ("{map={[1]=", "}}"), ("{set={[", "]=true}}")] {
            for depth in [100, 119, 120, 121, 127, 128, 129, 150] {
                let script = format!(
                    "redis.setresp(3) local t = 1 for i = 1, {depth} do t = {open} t {close} end return t"
                );
                connection.command(&["EVAL", &script, "0"]).unwrap();
                connection.command(&["MULTI"]).unwrap();
                connection.command(&["EVAL", &script, "0"]).unwrap();
                connection.command(&["EXEC"]).unwrap();
            }
        }
        for made in ["redis.error_reply(ARGV[1])", "redis.status_reply(ARGV[1])", "{big_number=ARGV[1]}"] {
            let told = connection.command(&["EVAL", &format!("return {{{made}}}"), "0", &"1".repeat(70_000)]);
            assert!(format!("{:?}", told.unwrap()).len() > 70_000, "{made}");
        }
        assert_eq!(connection.query::<String>(&["PING"]).unwrap(), "PONG");
    }
}
