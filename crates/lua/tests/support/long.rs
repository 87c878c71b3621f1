//! Owns: loops whose every instruction goes through all of a long string or table, and a host that says how long nobody
//! looked. Does not own: any test.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use weft_lua::vm::World;
use weft_lua::{Budget, Called, Frame, Host, Identity, Level, Verdict, Vm};

/// What is done again and again, and what is made before: `n` is a number of bytes.
pub const LOOPS: &[(&str, &str, &str)] = &[
    ("lower", "local s = ('A'):rep(n)", "s:lower()"),
    ("upper", "local s = ('a'):rep(n)", "s:upper()"),
    ("reverse", "local s = ('ab'):rep(n / 2)", "s:reverse()"),
    ("sub", "local s = ('a'):rep(n)", "s:sub(2)"),
    ("sub, all of it", "local s = ('a'):rep(n)", "s:sub(1)"),
    ("rep", "", "('a'):rep(n)"),
    ("byte", "local s = ('a'):rep(n)", "s:byte(1, 7000)"),
    ("concatenation", "local s = ('a'):rep(n)", "local x = s .. 'b'"),
    ("concatenation, made before", "local s = ('a'):rep(n) local t = s .. 'b'", "local x = s .. 'b'"),
    ("comparison", "local s = ('a'):rep(n) local t = s .. 'b'", "local x = s < t"),
    ("comparison of zeros", "local s = ('\\0'):rep(n / 20) local t = s .. 'b'", "local x = s < t"),
    ("as a number", "local s = (' '):rep(n) .. '1'", "local x = s + 1"),
    ("tonumber", "local s = (' '):rep(n) .. '1'", "tonumber(s)"),
    ("format", "local s = ('a'):rep(n)", "string.format('%s..', s)"),
    ("format, quoted", "local s = ('a'):rep(n / 4)", "string.format('%q', s)"),
    ("find", "local s = ('a'):rep(n)", "s:find('b', 1, true)"),
    ("find, long", "local s = ('a'):rep(n) local t = ('a'):rep(n / 2) .. 'b'", "s:find(t, 1, true)"),
    ("gmatch", "local s = ('a'):rep(n)", "for w in s:gmatch('.') do break end"),
    ("gsub", "local s = ('a'):rep(n)", "s:gsub('a+', '%0')"),
    ("table.concat", "local t = {} for i = 1, 8 do t[i] = ('a'):rep(n / 8) .. i end", "table.concat(t, ',')"),
    ("sort", "local s = ('a'):rep(n / 8) local t = {}", "for i = 1, 8 do t[i] = s .. i end table.sort(t)"),
    ("maxn", "local t = {} for i = 1, n / 64 do t[i] = i end", "table.maxn(t)"),
    ("foreach", "local t = {} for i = 1, n / 64 do t[i] = i end", "table.foreach(t, type)"),
    ("foreachi", "local t = {} for i = 1, n / 64 do t[i] = i end", "table.foreachi(t, type)"),
    (
        "next of an emptied table",
        "local t = {} for i = 1, n / 64 do t[-i] = i end for i = 1, n / 64 do t[-i] = nil end",
        "next(t)",
    ),
    ("garbage", "local t = {} for i = 1, n / 128 do t[i] = {} end", "collectgarbage()"),
    ("error", "local s = ('a'):rep(n)", "pcall(error, s)"),
    ("loadstring", "local s = ('x=1 '):rep(n / 64)", "loadstring(s)"),
    ("sha1hex", "local s = ('a'):rep(n)", "redis.sha1hex(s)"),
    ("cjson.encode", "local s = ('a'):rep(n)", "cjson.encode(s)"),
    ("cjson.encode, escapes", "local s = ('\\n'):rep(n / 4)", "cjson.encode(s)"),
    ("cjson.decode", "local s = '\"' .. ('a'):rep(n) .. '\"'", "cjson.decode(s)"),
    ("cjson.decode, escapes", "local s = '\"' .. ('\\\\n'):rep(n / 2) .. '\"'", "cjson.decode(s)"),
    ("cmsgpack.pack", "local s = ('a'):rep(n)", "cmsgpack.pack(s)"),
    ("cmsgpack.unpack", "local s = cmsgpack.pack(('a'):rep(n))", "cmsgpack.unpack(s)"),
    ("struct.pack", "local s = ('a'):rep(n)", "struct.pack('s', s)"),
    ("struct.unpack", "local s = ('a'):rep(n) .. '\\0'", "struct.unpack('s', s)"),
    (
        "in a coroutine of before",
        "local s local f = coroutine.wrap(function() while true do local x = s .. 'b' coroutine.yield() local y = s .. 'b' end end)",
        "s = s or ('a'):rep(n) f()",
    ),
    (
        "in one that does not yield",
        "local s local f = coroutine.wrap(function() coroutine.yield() while true do local x = s .. 'b' end end) f()",
        "s = s or ('a'):rep(n) f()",
    ),
    (
        "in coroutines of short lives",
        "local s = ('a'):rep(n) local t = s .. 'b'",
        "coroutine.wrap(function() for i = 1, 20 do local x = s < t end end)()",
    ),
    (
        "strings of one hash",
        "local s = ('a'):rep(9000) local kept = {}",
        "for i = 1, n / 10000 do kept[i] = s .. ('%06d'):format(i) .. ('a'):rep(50) end",
    ),
];

/// Asks for the time at each look.
#[derive(Debug)]
pub struct Watch<C> {
    pub clock: C,
    pub last: Duration,
    pub longest: Duration,
    pub looks: u32,
    /// It ends then.
    pub most: (u32, Duration),
}

impl<C: FnMut() -> Duration> Watch<C> {
    pub fn new(mut clock: C, (looks, time): (u32, Duration)) -> Self {
        let last = clock();
        Self { clock, last, longest: Duration::ZERO, looks: 0, most: (looks, last + time) }
    }
    fn look(&mut self) {
        let now = (self.clock)();
        self.longest = self.longest.max(now.saturating_sub(self.last));
        self.last = now;
        self.looks += 1;
    }
}

impl<C: FnMut() -> Duration> Host for Watch<C> {
    fn call(&mut self, _: &[&[u8]], reply: &mut Frame<'_>) -> Called {
        reply.push_error("ERR no commands here");
        Called::Error
    }
    fn tick(&mut self) -> Verdict {
        self.look();
        let over = self.looks >= self.most.0 || self.last >= self.most.1;
        if over { Verdict::End("ERR told to end".into()) } else { Verdict::GoOn }
    }
    fn log(&mut self, _: Level, _: &[u8]) {}
    fn set_resp(&mut self, _: u8) {}
    fn may(&mut self, _: &[&[u8]]) -> Option<bool> {
        None
    }
}

/// Runs one of them, and gives what it said.
pub fn run<C: FnMut() -> Duration>(
    (_, before, again): (&str, &str, &str),
    bytes: usize,
    watch: &mut Watch<C>,
) -> String {
    let identity =
        Identity { redis_version: "7.4.0", valkey_version: "9.1.0", server_name: "weft", insecure: false };
    let mut vm = Vm::new(Arc::new(Budget::new(256 << 20)), &identity).expect("there is memory");
    let source = format!("local n = {bytes} {before} while true do {again} end");
    let chunk = vm.compile(source.as_bytes()).expect("it compiles");
    watch.last = (watch.clock)();
    let said = vm.call(World::Scripts, &chunk, (&[], &[]), watch);
    watch.look();
    said.map_or_else(
        |error| String::from_utf8_lossy(&error.line).into_owned(),
        |()| "it has ended".to_owned(),
    )
}
