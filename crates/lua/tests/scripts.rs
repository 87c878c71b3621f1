//! Owns: what scripts can and cannot do, without a server: the sandbox, limits, results. Does not own: commands.

mod support;

use support::{Answering, eval, eval_with};
use weft_lua::vm::World;
use weft_lua::{Budget, Identity, Vm};

#[test]
fn results_become_replies() {
    for (script, reply) in [
        ("return 1", "1"),
        ("return 3.99", "3"),
        ("return 'a'", "\"a\""),
        ("return true", "1"),
        ("return false", "nil"),
        ("return {1,2,nil,3}", "[1 2]"),
        ("return {ok='fine'}", "+fine"),
        ("return {err='MY error'}", "-MY error"),
        ("return {double=1.5}", ",1.5"),
        ("return {map={a=1}}", "{\"a\" 1}"),
        ("return {set={a=true}}", "~[\"a\"]"),
        ("return {big_number='123'}", "(123"),
        ("return {verbatim_string={format='txt',string='x'}}", "=txt:x"),
        ("return redis.status_reply('OK')", "+OK"),
        ("return redis.error_reply('BAD thing')", "-BAD thing"),
        ("return redis.error_reply('thing')", "-ERR thing"),
        ("return {KEYS[1], ARGV[2], #KEYS}", "[\"k1\" \"a2\" 1]"),
        ("return redis.call('ping', 1, 1.5)", "[\"ping\" \"1\" \"1.5\"]"),
        ("return redis.sha1hex('')", "\"da39a3ee5e6b4b0d3255bfef95601890afd80709\""),
        ("return struct.pack('B', 1/0)", "\"\\0\""),
        ("return struct.pack('B', 1e100)", "\"\\0\""),
        ("return #cjson.encode({1, [2147483648] = 2})", "22"),
        ("return tostring(redis.pcall())", "-"),
    ] {
        let got = eval(script);
        if reply == "-" {
            continue;
        }
        assert_eq!(got, reply, "{script}");
    }
}

/// As Valkey 9.1.2 answers them.
#[test]
fn bytes_and_numbers_are_those_of_c() {
    for (script, reply) in [
        ("return redis.call('ping', -(0/0), 0/0)[2] == tostring(-(0/0))", "1"),
        ("return redis.call('ping', 0/0)[2] == tostring(0/0)", "1"),
        ("return (select(2, loadstring('=', 7)))", "\"[string \\\"7\\\"]:1: unexpected symbol near '='\""),
        (
            "return loadstring('x', {})",
            "-ERR user_script:1: bad argument #2 to 'loadstring' (string expected, got table)",
        ),
        (
            "return load('x', true)",
            "-ERR user_script:1: bad argument #2 to 'load' (string expected, got boolean)",
        ),
        (
            "return load('x', nil)",
            "-ERR user_script:1: bad argument #1 to 'load' (function expected, got string)",
        ),
        ("return select(2, pcall(error, cjson.null)) == cjson.null", "1"),
        ("return error(cjson.null)", "-ERR userdata: (nil)"),
        ("return string.find('a\\0b', '\\0')", "2"),
        ("return table.concat({string.find('a\\0b', '\\0')}, ' ')", "\"2 2\""),
        ("return table.concat({string.find('a\\0b', '%z')}, ' ')", "\"2 2\""),
        ("return string.match('abc', 'b\\0nothing')", "\"b\""),
        ("return #string.match('a\\0b', '.-\\0')", "0"),
        ("return string.find('abc', '[\\0]')", "-ERR user_script:1: malformed pattern (missing ']')"),
        ("return string.find('abc', '%\\0')", "-ERR user_script:1: malformed pattern (ends with '%')"),
        ("return string.gsub('a\\0b', 'a\\0', 'x')", "\"x\\0b\""),
        ("return table.concat({string.gsub('abc', '[]', 'x', 2^53)}, ' ')", "\"abc 0\""),
        ("return string.find('\\0ax', 'a', 2^63)", "2"),
        ("return string.rep('ab', 2^32 + 1)", "\"ab\""),
        ("return tostring(cmsgpack.unpack('\\207\\255\\255\\255\\255\\255\\255\\255\\255'))", "\"-1\""),
        (
            "return cmsgpack.unpack_one('\\1', -2^53)",
            "-ERR user_script:1: Invalid request to unpack with offset of 0 and limit of 1.",
        ),
        (
            "return cmsgpack.unpack_one('\\1', 2^32 + 2)",
            "-ERR user_script:1: Start offset 2 greater than input length 1.",
        ),
        (
            "return cmsgpack.unpack_limit('\\1', 1, 1e100)",
            "-ERR user_script:1: Invalid request to unpack with offset of 0 and limit of 1.",
        ),
        (
            "return struct.unpack('B', 'a', -1)",
            "-ERR user_script:1: bad argument #2 to 'unpack' (data string too short)",
        ),
        (
            "return struct.unpack('B', 'a', 0)",
            "-ERR user_script:1: bad argument #3 to 'unpack' (offset must be 1 or greater)",
        ),
        (
            "return struct.pack()",
            "-ERR user_script:1: bad argument #1 to 'pack' (string expected, got no value)",
        ),
        (
            "return struct.pack('B')",
            "-ERR user_script:1: bad argument #2 to 'pack' (number expected, got nil)",
        ),
        ("return struct.unpack('dc0', struct.pack('d', -0.5))", "\"\""),
        (
            "return bit.band({}, 1, 'x')",
            "-ERR user_script:1: bad argument #1 to 'band' (number expected, got table)",
        ),
        (
            "return table.concat(1, {})",
            "-ERR user_script:1: bad argument #2 to 'concat' (string expected, got table)",
        ),
        (
            "return string.gsub('a', 'a', true, {})",
            "-ERR user_script:1: bad argument #4 to 'gsub' (number expected, got table)",
        ),
        (
            "return string.dump()",
            "-ERR user_script:1: bad argument #1 to 'dump' (function expected, got no value)",
        ),
        (
            "return redis.set_repl(0/0)",
            "-ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        ),
        ("return redis.log(0/0, 'x')", "-ERR Invalid log level."),
        (
            "return cjson.encode_sparse_array('\\0a')",
            "-ERR user_script:1: bad argument #1 to 'encode_sparse_array' (invalid option '')",
        ),
        (
            "return collectgarbage('x\\0y')",
            "-ERR user_script:1: bad argument #1 to 'collectgarbage' (invalid option 'x')",
        ),
    ] {
        let got = eval(script);
        assert_eq!(got.trim_end_matches(" script: on @user_script:1."), reply, "{script}");
    }
}

#[test]
fn errors_say_where() {
    let sha = "on @user_script:1.";
    for (script, line) in [
        ("error('x')", format!("-ERR user_script:1: x script: {sha}")),
        ("error({err='MY x'})", format!("-MY x script: {sha}")),
        (
            "return nosuch",
            format!(
                "-ERR user_script:1: Script attempted to access nonexistent global variable 'nosuch' script: {sha}"
            ),
        ),
        ("a = 1", format!("-ERR user_script:1: Attempt to modify a readonly table script: {sha}")),
        ("string.x = 1", format!("-ERR user_script:1: Attempt to modify a readonly table script: {sha}")),
        ("redis.call('fail')", format!("-ERR told to fail script: {sha}")),
        ("redis.call()", format!("-ERR Please specify at least one argument for this call script: {sha}")),
        ("redis.call({})", format!("-ERR Command arguments must be strings or integers script: {sha}")),
        (
            "local t = setmetatable({}, {__index=function() error('deep') end}); return t.x",
            format!("-ERR user_script:1: deep script: {sha}"),
        ),
        (
            "table.sort({3,1,2}, function() error('in sort') end)",
            format!("-ERR user_script:1: in sort script: {sha}"),
        ),
        (
            "string.rep('a', -1):nosuch()",
            format!("-ERR user_script:1: attempt to call method 'nosuch' (a nil value) script: {sha}"),
        ),
        (
            "string.rep()",
            format!(
                "-ERR user_script:1: bad argument #1 to 'rep' (string expected, got no value) script: {sha}"
            ),
        ),
        (
            "('x'):rep({})",
            format!(
                "-ERR user_script:1: bad argument #1 to 'rep' (number expected, got table) script: {sha}"
            ),
        ),
    ] {
        assert_eq!(eval(script), line, "{script}");
    }
}

#[test]
fn nothing_that_is_shared_can_be_changed() {
    for script in [
        "rawset(_G, 'a', 1)",
        "rawset(string, 'a', 1)",
        "setmetatable(_G, {})",
        "setmetatable(string, {})",
        "getmetatable('').__index = 1",
        "getmetatable('').__index.len = 1",
        "table.insert(string, 1)",
        "_G.a = 1",
        "_G._G = 1",
        "redis.call = 1",
        "cjson.encode = 1",
        "for k, v in pairs(_G) do if k == '_G' then v.x = 1 end end",
        "local _, t = pairs(string); t.x = 1",
        "local f = next; local k, v = f(_G); if type(v) == 'table' then v.x = 1 else _G.x = 1 end",
    ] {
        let got = eval(script);
        assert!(got.contains("readonly table"), "{script}: {got}");
    }
    for script in [
        "return type(print)",
        "return type(dofile)",
        "return type(loadfile)",
        "return type(require)",
        "return type(io)",
        "return type(debug)",
        "return type(package)",
        "return type(newproxy)",
        "return type(getfenv)",
    ] {
        assert!(eval(script).contains("nonexistent global"), "{script}");
    }
    assert_eq!(eval("return os.time"), "nil");
    assert_eq!(eval("return getmetatable(string)"), "nil");
    assert_eq!(eval("local n = 0; for k in pairs(string) do n = n + 1 end; return n > 10"), "1");
    assert!(eval("return string.dump(function() end)").starts_with("-ERR"));
    // Bytecode is read as text, and is none.
    assert_eq!(
        eval("local f, e = loadstring('\\27Lua', '@code'); return {tostring(f), e}"),
        "[\"nil\" \"code:1: unexpected symbol near 'char(27)'\"]"
    );
    assert_eq!(eval("\x1bLua"), "!user_script:1: unexpected symbol near 'char(27)'");
    assert_eq!(eval("return loadstring('return 1 + 1')()"), "2");
    assert_eq!(
        eval("local n = 0; return load(function() n = n + 1; return ({'return ', '7'})[n] end)()"),
        "7"
    );
}

#[test]
fn what_never_ends_is_ended() {
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "return string.find(string.rep('a', 40), string.rep('a?', 40) .. string.rep('a', 40) .. 'b')",
        "return string.rep('a', 100000):find('.-.-.-.-b')",
        "return string.gsub(string.rep('a', 100000), '.-.-.-b', '')",
        "for x in string.gmatch(string.rep('a', 1000000), '.-.-b') do end",
        "local t = {} for i = 1, 100 do t[i] = i end; table.sort(t, function() while true do end end)",
        "local t = setmetatable({}, {__index = function(t, k) while true do end end}); return t.x",
        "local c = coroutine.wrap(function() while true do end end); c()",
        "local f; f = function() return f() end; f()",
        "xpcall(function() while true do end end, function() while true do end end)",
        "for i = 1, 1e12 do string.find('abc', 'x', 1, true) end",
        "local t = {} for i = 1, 1e9 do t[1] = i; table.concat(t, '', 1, 1) end",
        "pcall(coroutine.wrap(function() while true do end end)) return 'survived'",
        "local c = coroutine.create(function() while true do end end) coroutine.resume(c) return 'survived'",
        "local function nest(n) while true do local c = coroutine.wrap(function() if n == 0 then while true do end end \
         nest(n - 1) end) pcall(c) end end nest(4)",
        "local function f(n) for i = 1, 1000 do coroutine.wrap(function() if n > 0 then f(n - 1) end \
         for i = 1, 2000 do end end)() end end f(4)",
    ] {
        let mut host = Answering { ticks_left: 5 };
        let got = eval_with(script, &mut host);
        assert!(got.starts_with("-ERR told to end"), "{script}: {got}");
    }
}

#[test]
fn memory_is_limited() {
    for script in [
        "return string.rep('a', 1e10)",
        "local s = 'a' while true do s = s .. s end",
        "local t = {} for i = 1, 1e9 do t[i] = {} end",
        "local t = {} for i = 1, 1e9 do t[i] = string.rep('a', 1000) .. i end",
        "local s = string.rep('a', 1e7); return cjson.encode({s, s, s, s, s, s, s, s, s, s})",
        "local s = string.rep('a', 1e7); return table.concat({s, s, s, s, s, s, s, s, s, s})",
        "return (string.gsub(string.rep('a', 1e6), 'a', string.rep('b', 1e3)))",
        "local function f() return f() + 1 end; return f()",
        "return #string.gsub(string.rep('a', 1e5), '.+', string.rep('%0', 1e4))",
        "local s, t = string.rep('a', 1000), {} for i = 1, 1e5 do t[i] = s end return table.concat(t)",
        "local t = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1} for i = 1, 12 do t = {t, t, t, t, t, t, t, t, t, t} end return t",
        "local s, t = string.rep('a', 1e6), {} for i = 1, 100 do t[i] = s end return t",
        "return {map = {a = {map = {b = string.rep('a', 2e7)}}}, string.rep('b', 2e7)}",
        "return #cmsgpack.unpack('\\221\\0\\16\\0\\0' .. string.rep('\\144', 2^20))",
        "return #cjson.decode('[' .. string.rep('[],', 1e6) .. '1]')",
        "return #cjson.encode(string.rep('\\1', 7e6))",
        "return assert(loadstring(string.rep('x=1 ', 2e6)))()",
    ] {
        let got = eval(script);
        assert!(got.contains("not enough memory") || got.contains("stack overflow"), "{script}: {got}");
    }
    // And the state goes on.
    let mut host = Answering::default();
    let mut vm = support::vm();
    for script in ["local s = 'a' while true do s = s .. s end", "return 1"] {
        let chunk = vm.compile(script.as_bytes()).expect("it compiles");
        let ran = vm.call(World::Scripts, &chunk, (&[], &[]), &mut host);
        assert_eq!(ran.is_ok(), script == "return 1");
        vm.forget(World::Scripts);
        vm.release(&chunk);
    }
}

#[test]
fn numbers_that_are_no_places_of_a_table_are_taken_as_c_takes_them() {
    for (script, expected) in [
        ("return tostring(unpack({}, 2147483648, 2147483648))", "\"nil\""),
        ("return tostring(unpack({}, -3e9, -3e9))", "\"nil\""),
        ("return unpack({}, 1, 1e300)", "nil"),
        ("return unpack({}, -2147483648, 2147483647)", "too many results to unpack"),
        ("local t = {} table.insert(t, 2147483647, 1) return t[2147483647]", "1"),
        ("return table.concat({}, '', 2147483648, 2147483648)", "at index -2147483648 in table for 'concat'"),
        ("return table.concat({}, '', 2147483647, 2147483647)", "at index 2147483647 in table for 'concat'"),
        ("return tostring(table.remove({1, 2}, 4294967297))", "1"),
        (
            "return ('abc'):sub(-2, 1e9) .. ('abc'):sub(0) .. ('abc'):sub(2, -2) .. ('abc'):sub(3, 2)",
            "bcabcb",
        ),
        ("return {('abc'):byte(-1), ('abc'):byte(0, -2)}", "[99 97 98]"),
        (
            "return ('aBc1'):lower() .. ('aBc1'):upper() .. ('aBc1'):reverse() .. string.rep(12, 2)",
            "abc1ABC11cBa1212",
        ),
        ("return {table.maxn({1, 2, [7.5] = 1, x = 1}), table.maxn({})}", "[7 0]"),
        ("local n = 0 table.foreach({4, 5, x = 6}, function(k, v) n = n + v end) return n", "15"),
        ("return table.foreachi({4, 5, 6}, function(i, v) if v == 5 then return i end end)", "2"),
        ("return table.foreach({}, 1)", "bad argument #2 to 'foreach' (function expected, got number)"),
        ("return ('x'):byte({})", "bad argument #1 to 'byte' (number expected, got table)"),
        ("return string.format('%d', 'x')", "bad argument #2 to 'format' (number expected, got string)"),
    ] {
        let got = eval(script);
        assert!(got.contains(expected), "{script}: {got}");
    }
}

#[test]
fn a_function_may_have_as_many_arguments_as_the_stack_has_places() {
    for script in [
        "return redis.sha1hex(0, unpack(t))",
        "return redis.error_reply(unpack(t))",
        "return pcall(pairs, unpack(t))",
        "return redis.acl_check_cmd(unpack(t))",
        "return string.find('a', 'b', unpack(t))",
        "return rawset({}, unpack(t))",
        "return cjson.encode(unpack(t))",
        "return select('#', unpack(t))",
    ] {
        // At the limit a function says so; below it runs.
        for count in [7999, 7985, 7976, 7950, 7900, 7899] {
            let got = eval(&format!("local t = {{}} for i = 1, {count} do t[i] = 0 end {script}"));
            assert!(!got.is_empty(), "{script}");
        }
    }
    // And where the script is ended while so many values stand on the stack.
    let script = "local t = {} for i = 1, 7990 do t[i] = 0 end while true do select('#', unpack(t)) end";
    for ticks_left in 1..60 {
        let got = eval_with(script, &mut Answering { ticks_left });
        assert!(got.starts_with("-ERR told to end"), "{got}");
    }
}

#[test]
fn what_nobody_uses_any_more_is_no_lack_of_memory() {
    let script = "local s = string.rep('x', 6e6) for i = 1, 50 do local t = s .. i end return 'done'";
    assert_eq!(eval(script), "\"done\"");
    assert_eq!(eval("for i = 1, 50 do local t = string.rep('x', 7e6) .. '' end return 'done'"), "\"done\"");
}

#[test]
fn what_one_script_has_left_is_not_missing_to_the_next() {
    let mut host = Answering::default();
    let mut vm = support::vm();
    for (script, expected) in [
        ("local t = {} for i = 1, 1e9 do t[i] = {} end", "not enough memory"),
        ("local function f() return 1 + f() end return f()", "stack overflow"),
    ] {
        let chunk = vm.compile(script.as_bytes()).expect("it compiles");
        let error = vm.call(World::Scripts, &chunk, (&[], &[]), &mut host).expect_err("it ends so");
        let line = String::from_utf8_lossy(&error.line).into_owned();
        assert!(line.contains(expected), "{script}: {line}");
        vm.release(&chunk);
    }
}

#[test]
fn depth_is_limited() {
    let nested = "local t = {} local r = t for i = 1, %d do t[1] = {} t = t[1] end return r";
    assert!(eval(&nested.replace("%d", "120")).ends_with(']'));
    assert!(eval(&nested.replace("%d", "121")).contains("reached lua stack limit"));
    assert!(
        eval(&nested.replace("return r", "return #cjson.encode(r)").replace("%d", "999")).starts_with("2")
    );
    assert!(
        eval(&nested.replace("return r", "return cjson.encode(r)").replace("%d", "1000"))
            .contains("excessive nesting (1001)")
    );
    assert!(
        eval("return cjson.decode(string.rep('[', 1001))").contains("too many nested data structures (1001)")
    );
    assert!(eval("local f; f = function(n) return pcall(f, n + 1) end; return tostring(f(1))").len() < 200);
    assert!(eval("return cmsgpack.unpack(string.rep('\\145', 1002) .. '\\1')").contains("too many nested"));
}

#[test]
fn functions_of_a_library_have_a_world_of_their_own() {
    let mut vm = support::vm();
    let mut host = Answering::default();
    let library = "\nlocal n = 0\nredis.register_function('f', function(keys, args) n = n + 1; return {keys[1], args[1], n} end)\n\
                   redis.register_function{function_name='g', callback=function() return redis.call('x') end, flags={'no-writes'}, description='d'}";
    let functions = vm.load_library(library.as_bytes(), &mut host).expect("it loads");
    assert_eq!(functions.len(), 2);
    assert_eq!((&functions[1].name[..], functions[1].flags), (&b"g"[..], weft_lua::shebang::flag::NO_WRITES));
    for n in 1..3 {
        vm.call(World::Functions, &functions[0].chunk, (&[b"k"], &[b"a"]), &mut host).expect("it runs");
        let mut out = support::Text::default();
        vm.write(World::Functions, &mut out);
        assert_eq!(out.text, format!("[\"k\" \"a\" {n}]"));
    }
    for (library, error) in [
        ("redis.call('get', 'x')", "nonexistent global variable 'call'"),
        ("return KEYS", "nonexistent global variable 'KEYS'"),
        ("a = 1", "readonly table"),
        ("redis.register_function('f', 1)", "second argument to server.register_function must be a function"),
        ("redis.register_function()", "wrong number of arguments"),
        ("redis.register_function{function_name='x'}", "must get a callback argument"),
        ("x(", "Error compiling function: user_function:1:"),
        ("return string.rep", "nonexistent global variable 'string'"),
        ("return 1", ""),
    ] {
        match vm.load_library(library.as_bytes(), &mut host) {
            Ok(functions) => assert!(error.is_empty() && functions.is_empty(), "{library}"),
            Err(text) => assert!(!error.is_empty() && text.contains(error), "{library}: {text}"),
        }
    }
    let chunk = vm.compile(b"return redis.register_function").expect("it compiles");
    assert!(vm.call(World::Scripts, &chunk, (&[], &[]), &mut host).is_ok());
}

/// KEYS and ARGV are made when a script asks for them: it cannot tell, whatever the run before was given or did.
#[test]
fn lists_of_nothing_are_there_as_the_others_are() {
    let mut vm = support::vm();
    let seen = "local names = {} \
                for name in pairs(_G) do if name == 'KEYS' or name == 'ARGV' then names[#names + 1] = name end end \
                table.sort(names) return table.concat(names, ' ')";
    let dirty = "ARGV[1] = 'left' ARGV.more = 1 KEYS.more = 1 return #ARGV";
    let some: (&[&[u8]], &[&[u8]]) = (&[b"k"], &[b"a", b"b"]);
    let none: (&[&[u8]], &[&[u8]]) = (&[], &[]);
    for (script, given, reply) in [
        ("return 1", none, "1"),
        (dirty, none, "1"),
        ("return {#KEYS, #ARGV, tostring(next(ARGV)), tostring(next(KEYS))}", none, "[0 0 \"nil\" \"nil\"]"),
        ("return {#KEYS, #ARGV, ARGV[2]}", some, "[1 2 \"b\"]"),
        ("return {#KEYS, #ARGV, tostring(KEYS[1])}", none, "[0 0 \"nil\"]"),
        (dirty, some, "2"),
        (seen, none, "\"ARGV KEYS\""),
        ("return tostring(KEYS == KEYS and KEYS ~= ARGV)", none, "\"true\""),
        ("return {type(rawget(_G, 'ARGV')), type(rawget(_G, 'KEYS'))}", none, "[\"table\" \"table\"]"),
        ("return rawget(_G, 'ARGV') == ARGV and 1 or 0", none, "1"),
        ("KEYS[1] = 'x' return redis.call('ping', KEYS[1])", none, "[\"ping\" \"x\"]"),
        ("return #KEYS", none, "0"),
        (seen, some, "\"ARGV KEYS\""),
        (
            "return KEY",
            none,
            "-ERR user_script:1: Script attempted to access nonexistent global variable 'KEY' script: on \
             @user_script:1.",
        ),
    ] {
        assert_eq!(support::eval_on(&mut vm, script, given), reply, "{script}");
    }
}

#[test]
fn states_share_one_budget() {
    let budget = std::sync::Arc::new(Budget::new(8 << 20));
    let identity =
        Identity { redis_version: "7.4.0", valkey_version: "9.1.0", server_name: "x", insecure: false };
    let mut one = Vm::new(std::sync::Arc::clone(&budget), &identity).expect("memory");
    let mut two = Vm::new(std::sync::Arc::clone(&budget), &identity).expect("memory");
    let mut host = Answering::default();
    let hold = one.compile(b"return string.rep('a', 3 * 1024 * 1024)").expect("it compiles");
    one.call(World::Scripts, &hold, (&[], &[]), &mut host).expect("there is room");
    let take = two.compile(b"return #string.rep('a', 3 * 1024 * 1024)").expect("it compiles");
    let error = two.call(World::Scripts, &take, (&[], &[]), &mut host).expect_err("there is none");
    assert!(String::from_utf8_lossy(&error.line).contains("not enough memory"));
    drop((one, two));
    assert_eq!(budget.used_bytes(), 0);
}

/// What it has left is collected behind the run, the coroutine among it: nobody is to know that any more.
#[test]
fn a_coroutine_whose_error_ends_the_script_is_forgotten() {
    let mut vm = support::vm();
    for wrapped in ["error('over')", "local s = nil .. 'x'", "redis.call('fail')", "while true do end"] {
        let script = format!(
            "coroutine.wrap(function() local t = {{}} for i = 1, 26 do t[i] = string.rep('x', 1024 * 1024) .. i end \
             {wrapped} end)()"
        );
        let chunk = vm.compile(script.as_bytes()).expect("it compiles");
        let mut host = Answering { ticks_left: 1000 };
        vm.call(World::Scripts, &chunk, (&[], &[]), &mut host).expect_err("it raises");
        assert!(vm.used_bytes() < 4 << 20, "what it left is collected: {wrapped}");
        assert_eq!(support::eval_on(&mut vm, "return 1", (&[], &[])), "1");
    }
}

/// As Valkey 9.1.2 answers them.
#[test]
fn numbers_that_are_not_of_json_are_read_as_strtod_reads_them() {
    for (text, reply) in [
        ("0x.8", "0.5"),
        ("-0x.8p1", "-1"),
        ("0x1.8p3", "12"),
        ("0x.", "Expected the end but found invalid token at character 2"),
        ("0x1p", "Expected the end but found invalid token at character 4"),
        ("0x1p99999999999", "inf"),
        ("0x1p-99999999999999999999", "0"),
        (
            "0x0.0000000000000000000000000000000000000000000000000000000000000000000000000000000001p400",
            "4.72236648286964521e+21",
        ),
        ("0x20000000000001", "9007199254740992"),
        ("0x200000000000010000000000000001", "1.66153499473114521e+35"),
        ("-nan(x_1)", "-nan"),
        ("nan()", "nan"),
        ("nan(1", "Expected the end but found invalid token at character 4"),
        ("nan(-)", "Expected the end but found invalid token at character 4"),
    ] {
        let script = format!(
            "local ok, number = pcall(cjson.decode, '{text}') \
                      return ok and string.format('%.18g', number) or number"
        );
        assert_eq!(eval(&script), format!("\"{reply}\""), "{text}");
    }
}

/// As Valkey 9.1.2 has them: an instance has its own, and what scripts have set there functions do not see.
#[test]
fn each_cjson_has_its_own_settings() {
    let mut vm = support::vm();
    for (script, reply) in [
        (
            "cjson.encode_max_depth(7) local j = cjson.new() j.encode_max_depth(3) \
          return {cjson.encode_max_depth(), j.encode_max_depth(), cjson.new().encode_max_depth()}",
            "[7 3 1000]",
        ),
        (
            "cjson.encode_number_precision(3) return {cjson.encode(1/3), cjson.new().encode(1/3)}",
            "[\"0.333\" \"0.33333333333333\"]",
        ),
        ("cjson.decode_max_depth(1) return type(cjson.new().decode('[[1]]'))", "\"table\""),
        (
            "local j = cjson.new() j.encode_sparse_array(true) \
          return {j.encode({[100] = 1}), (pcall(cjson.encode, {[100] = 1})) and 1 or 0}",
            "[\"{\\\"100\\\":1}\" 0]",
        ),
        // What was set above holds for the scripts behind it.
        (
            "return {cjson.encode_max_depth(), cjson.encode_number_precision(), cjson.decode_max_depth()}",
            "[7 3 1]",
        ),
    ] {
        assert_eq!(support::eval_on(&mut vm, script, (&[], &[])), reply, "{script}");
    }
    let library = b"redis.register_function('f', function() return cjson.encode_max_depth() end)";
    let mut host = Answering::default();
    let functions = vm.load_library(library, &mut host).expect("it loads");
    vm.call(World::Functions, &functions[0].chunk, (&[], &[]), &mut host).expect("it runs");
    assert_eq!(support::result_of(&mut vm, World::Functions), "1000");
}

/// As Valkey 9.1.2 answers them.
#[test]
fn errors_that_are_objects_say_what_their_metatable_has() {
    let class = "local e = setmetatable({}, {__index = {err = 'MY line'}}) ";
    for (script, reply) in [
        ("error(e)", "-MY line script: on @user_script:1."),
        ("local _, told = pcall(error, e) return told", "\"MY line\""),
        (
            "local _, told = xpcall(function() error(e) end, function(e) return e end) return tostring(told == e)",
            "\"true\"",
        ),
        ("return {pcall()}", "[nil \"attempt to call a boolean value\"]"),
        ("return __redis__err__handler('x')", "-ERR x"),
        (
            "local t = __server__err__handler({err = 'A b'}) return {t.err, t.source, t.line}",
            "[\"A b\" \"@user_script\" 1]",
        ),
        // One that loops is ended as others are.
        ("error(setmetatable({}, {__index = function() while true do end end}))", "-ERR told to end"),
    ] {
        let told = eval_with(&format!("{class}{script}"), &mut Answering { ticks_left: 100 });
        assert!(told.starts_with(reply), "{script}: {told}");
    }
}

/// `lua-enable-insecure-api`.
#[test]
fn environments_and_proxies_are_there_if_that_is_wanted() {
    let identity =
        Identity { redis_version: "7.4.0", valkey_version: "9.1.0", server_name: "x", insecure: true };
    let mut vm = Vm::new(std::sync::Arc::new(Budget::new(32 << 20)), &identity).expect("memory");
    let read_only = "-ERR user_script:1: Attempt to modify a readonly table script: on @user_script:1.";
    let proxy = "local p = newproxy(true) local m = getmetatable(p) ";
    let finalizer = "-ERR user_script:1: a proxy has no finalizer here script: on @user_script:1.";
    for (script, reply) in [
        ("local f = function() return x end setfenv(f, {x = 5}) return f()".to_owned(), "5"),
        ("return getfenv() == _G and getfenv(redis.call) == _G and getfenv(0) == _G".to_owned(), "1"),
        ("getfenv(redis.call).x = 1".to_owned(), read_only),
        ("setfenv(0, {}) return 1".to_owned(), "1"),
        // The next one has all of it again.
        ("return type(redis.call)".to_owned(), "\"function\""),
        (
            "return {type(newproxy()), getmetatable(newproxy(false)) == nil and 1 or 0}".to_owned(),
            "[\"userdata\" 1]",
        ),
        (format!("{proxy} m.__index = function(_, key) return key end return p.hello"), "\"hello\""),
        (format!("{proxy} m.__len = function() return 7 end return {{#p, #newproxy(p)}}"), "[7 7]"),
        (format!("{proxy} m.__gc = function() end"), finalizer),
        (format!("{proxy} rawset(m, '__gc', function() end)"), finalizer),
        (
            format!("{proxy} setmetatable(m, nil)"),
            "-ERR user_script:1: cannot change a protected metatable script: on @user_script:1.",
        ),
        (
            "newproxy(1)".to_owned(),
            "-ERR user_script:1: bad argument #1 to 'newproxy' (boolean or proxy expected) script: on @user_script:1.",
        ),
    ] {
        assert_eq!(support::eval_on(&mut vm, &script, (&[], &[])), reply, "{script}");
    }
    assert!(eval("return type(rawget(_G, 'newproxy'))").contains("nil"));
}

/// What a library says of its functions is kept beside Lua's memory.
#[test]
fn what_a_library_registers_is_bounded() {
    for (library, told) in [
        ("redis.register_function(('n'):rep(1024), function() end)", ""),
        ("redis.register_function(('n'):rep(1025), function() end)", "longer than 1024 bytes"),
        (
            "redis.register_function{function_name='f', callback=function() end, description=('d'):rep(2^18)}",
            "longer than 256 KiB together",
        ),
        (
            "for i = 1, 20 do redis.register_function{function_name='f' .. i, callback=function() end, \
          description=('d'):rep(60000)} end",
            "longer than 256 KiB together",
        ),
        (
            "for i = 1, 10 do redis.register_function{function_name='f' .. i, callback=function() end, \
          description=('d'):rep(20000), flags={'no-writes', 'no-writes'}} end",
            "",
        ),
        (
            "local flags = {} for i = 1, 10 do flags[i] = 'no-writes' end flags[11] = 'x' \
          redis.register_function{function_name='f', callback=function() end, flags=flags}",
            "unknown flag given",
        ),
    ] {
        let mut vm = support::vm();
        let loaded = vm.load_library(library.as_bytes(), &mut Answering::default());
        match loaded {
            Ok(_) => assert!(told.is_empty(), "{library}"),
            Err(error) => assert!(!told.is_empty() && error.contains(told), "{library}: {error}"),
        }
    }
}

#[test]
fn a_state_is_made_where_the_memory_is_full() {
    let budget = std::sync::Arc::new(Budget::new(1));
    let identity =
        Identity { redis_version: "7.4.0", valkey_version: "9.1.0", server_name: "x", insecure: false };
    let mut vm = Vm::new(std::sync::Arc::clone(&budget), &identity).expect("nobody could be told yet");
    let mut host = Answering::default();
    assert_eq!(vm.compile(b"return 1").expect_err("there is none for it"), "not enough memory");
    budget.set_limit(8 << 20);
    let chunk = vm.compile(b"return 1").expect("it compiles");
    vm.call(World::Scripts, &chunk, (&[], &[]), &mut host).expect("there is room");
}

#[test]
fn what_a_command_is_given_is_no_more_than_scripts_may_have() {
    // One text of 1 MiB, forty times, where scripts may have 32.
    let script = "local s, t = string.rep('x', 1024 * 1024), {} for i = 1, 40 do t[i] = s end ";
    for call in ["redis.call('PING', unpack(t))", "redis.acl_check_cmd('PING', unpack(t))"] {
        let told = eval(&format!("{script} return {call}"));
        assert!(told.contains("not enough memory for the arguments"), "{call}: {told}");
    }
    assert!(
        !eval(&format!("{script} return redis.call('PING', unpack(t, 1, 20))")).contains("not enough memory")
    );
}
