// Owns: @upstash/redis, as it comes from npm, against the server: every operation that it offers, or the list of those
// that are not served. Does not own: the server, which the runner starts; WEFT_PORT says where it is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "@upstash/redis";

const url = `http://127.0.0.1:${process.env.WEFT_PORT}`;
const options = { url, token: "any", enableTelemetry: true, retry: false };

// Operations without a server for them in Weft, by the command that is then unknown. When one is served this fails, and
// the operation gets a case below.
const NOT_SERVED = {
  xackdel: "XACKDEL", xdelex: "XDELEX",
  arcount: "ARCOUNT", ardel: "ARDEL", ardelrange: "ARDELRANGE", arget: "ARGET", argetrange: "ARGETRANGE",
  argrep: "ARGREP", arinfo: "ARINFO", arinsert: "ARINSERT", arlastitems: "ARLASTITEMS", arlen: "ARLEN",
  armget: "ARMGET", armset: "ARMSET", arnext: "ARNEXT", arop: "AROP", arring: "ARRING", arscan: "ARSCAN",
  arseek: "ARSEEK", arset: "ARSET",
};
// Groups of operations that are objects of their own: JSON, vectors and search need modules.
const GROUPS_NOT_SERVED = { json: "JSON.GET", search: "SEARCH.QUERY", vector: "VECTOR.GET" };
// What is about the client itself, or is looked at by tests of its own below.
const ELSEWHERE = [
  "addTelemetry", "autoPipeline", "use", "multi", "pipeline", "subscribe", "psubscribe", "exec", "createScript",
  "eval", "evalRo", "evalsha", "evalshaRo", "scriptExists", "scriptFlush", "scriptLoad", "functions", "readYourWritesSyncToken",
];

const called = new Set();
// Each request by itself; pipelines of themselves have a test of their own.
const redis = new Proxy(new Redis({ ...options, enableAutoPipelining: false }), {
  get(client, name) {
    called.add(name);
    const value = client[name];
    return typeof value === "function" ? value.bind(client) : value;
  },
});
const is = async (promise, expected) => assert.deepEqual(await promise, expected);

test("strings and keys", async () => {
  await is(redis.flushall(), "OK");
  await is(redis.flushdb(), "OK");
  await is(redis.set("k", "v", { ex: 100 }), "OK");
  await is(redis.set("k", "w", { nx: true }), null);
  await is(redis.set("k", "w", { xx: true, get: true, keepTtl: true }), "v");
  await is(redis.get("k"), "w");
  await is(redis.append("k", "x"), 2);
  await is(redis.strlen("k"), 2);
  await is(redis.getrange("k", 0, 0), "w");
  await is(redis.setrange("k", 1, "yz"), 3);
  await is(redis.getset("k", "1"), "wyz");
  await is(redis.incr("k"), 2);
  await is(redis.incrby("k", 10), 12);
  await is(redis.decr("k"), 11);
  await is(redis.decrby("k", 2), 9);
  await is(redis.incrbyfloat("k", 0.5), 9.5);
  await is(redis.getex("k", { ex: 10 }), 9.5);
  await is(redis.getdel("k"), 9.5);
  await is(redis.get("k"), null);
  await is(redis.setex("k", 10, "v"), "OK");
  await is(redis.psetex("k", 10_000, "v"), "OK");
  await is(redis.setnx("k", "v"), 0);
  await is(redis.mset({ a: 1, b: "two" }), "OK");
  await is(redis.msetnx({ a: 1, c: 3 }), 0);
  await is(redis.mget("a", "b", "none"), [1, "two", null]);
  await is(redis.exists("a", "b", "none"), 2);
  await is(redis.touch("a", "none"), 1);
  await is(redis.type("a"), "string");
  await is(redis.expire("a", 100), 1);
  await is(redis.ttl("a"), 100);
  await is(redis.persist("a"), 1);
  await is(redis.pexpire("a", 100_000), 1);
  assert((await redis.pttl("a")) > 90_000);
  const later = Math.floor(Date.now() / 1000) + 1000;
  await is(redis.expireat("a", later), 1);
  await is(redis.pexpireat("a", later * 1000), 1);
  await is(redis.rename("a", "c"), "OK");
  await is(redis.renamenx("c", "b"), 0);
  await is(redis.copy("c", "d"), "COPIED");
  await is(redis.unlink("c"), 1);
  await is(redis.del("d", "b", "k"), 3);
  await is(redis.dbsize(), 0);
  await is(redis.randomkey(), null);
  await redis.set("only", 1);
  await is(redis.keys("on*"), ["only"]);
  await is(redis.scan(0, { match: "o*", count: 1000 }), ["0", ["only"]]);
  await is(redis.randomkey(), "only");
  await is(redis.echo("hello"), "hello");
  await is(redis.ping(), "PONG");
  assert.equal((await redis.time()).length, 2);
  await is(redis.clientSetinfo("LIB-NAME", "test"), "OK");
});

test("bits and counts", async () => {
  await redis.flushall();
  await is(redis.setbit("b", 7, 1), 0);
  await is(redis.getbit("b", 7), 1);
  await is(redis.bitcount("b", 0, -1), 1);
  await is(redis.bitpos("b", 1), 7);
  await is(redis.bitop("not", "n", "b"), 1);
  await is(redis.bitfield("f").set("u8", 0, 200).incrby("u8", 0, 100).get("u8", 0).exec(), [0, 44, 44]);
  await is(redis.pfadd("p", "a", "b"), 1);
  await is(redis.pfcount("p"), 2);
  await is(redis.pfmerge("q", "p"), "OK");
});

test("hashes", async () => {
  await redis.flushall();
  await is(redis.hset("h", { a: 1, b: "two", c: { deep: [1, null] } }), 3);
  await is(redis.hget("h", "c"), { deep: [1, null] });
  await is(redis.hgetall("h"), { a: 1, b: "two", c: { deep: [1, null] } });
  await is(redis.hgetall("none"), null);
  await is(redis.hmget("h", "a", "none"), { a: 1, none: null });
  await is(redis.hmset("h", { d: 4 }), "OK");
  await is(redis.hsetnx("h", "d", 5), 0);
  await is(redis.hexists("h", "d"), 1);
  await is(redis.hincrby("h", "a", 2), 3);
  await is(redis.hincrbyfloat("h", "a", 0.5), 3.5);
  await is(redis.hlen("h"), 4);
  await is(redis.hstrlen("h", "b"), 3);
  await is(redis.hdel("h", "c", "d"), 2);
  await is(redis.hkeys("h"), ["a", "b"]);
  await is(redis.hvals("h"), [3.5, "two"]);
  await is(redis.hscan("h", 0), ["0", ["a", 3.5, "b", "two"]]);
  assert(["a", "b"].includes(await redis.hrandfield("h")));
  await is(redis.hexpire("h", "a", 100), [1]);
  await is(redis.httl("h", "a"), [100]);
  await is(redis.hpexpire("h", "a", 100_000), [1]);
  assert((await redis.hpttl("h", "a"))[0] > 90_000);
  const later = Math.floor(Date.now() / 1000) + 1000;
  await is(redis.hexpireat("h", "a", later), [1]);
  await is(redis.hexpiretime("h", "a"), [later]);
  await is(redis.hpexpireat("h", "a", later * 1000), [1]);
  await is(redis.hpexpiretime("h", "a"), [later * 1000]);
  await is(redis.hpersist("h", "a"), [1]);
  await is(redis.hsetex("h", { expiration: { ex: 100 } }, { e: 1, f: "x" }), 1);
  await is(redis.hgetex("h", { ex: 50 }, "e", "none"), { e: 1, none: null });
  await is(redis.hgetdel("h", "e", "f"), { e: 1, f: "x" });
});

test("lists", async () => {
  await redis.flushall();
  await is(redis.rpush("l", "a", "b", "c"), 3);
  await is(redis.lpush("l", "z"), 4);
  await is(redis.lpushx("none", "z"), 0);
  await is(redis.rpushx("l", "d"), 5);
  await is(redis.lrange("l", 0, -1), ["z", "a", "b", "c", "d"]);
  await is(redis.lindex("l", 1), "a");
  await is(redis.llen("l"), 5);
  await is(redis.linsert("l", "before", "b", "x"), 6);
  await is(redis.lset("l", 0, "y"), "OK");
  await is(redis.lrem("l", 1, "x"), 1);
  await is(redis.lpos("l", "b"), 2);
  await is(redis.lmove("l", "m", "left", "right"), "y");
  await is(redis.lmpop(2, ["none", "l"], "LEFT", 2), ["l", ["a", "b"]]);
  await is(redis.lpop("l"), "c");
  await is(redis.rpop("l", 2), ["d"]);
  await is(redis.ltrim("m", 0, 0), "OK");
});

test("sets", async () => {
  await redis.flushall();
  await is(redis.sadd("s", "a", "b", 3), 3);
  await redis.sadd("t", "b");
  await is(redis.scard("s"), 3);
  await is(redis.sismember("s", "a"), 1);
  await is(redis.smismember("s", ["a", "x"]), [1, 0]);
  assert.deepEqual(new Set(await redis.smembers("s")), new Set(["a", "b", 3]));
  assert.deepEqual(new Set(await redis.sdiff("s", "t")), new Set(["a", 3]));
  await is(redis.sdiffstore("d", "s", "t"), 2);
  await is(redis.sinter("s", "t"), ["b"]);
  await is(redis.sintercard(["s", "t"]), 1);
  await is(redis.sinterstore("d", "s", "t"), 1);
  assert.equal((await redis.sunion("s", "t")).length, 3);
  await is(redis.sunionstore("d", "s", "t"), 3);
  await is(redis.smove("s", "t", "a"), 1);
  await is(redis.srem("s", 3), 1);
  await is(redis.srandmember("s"), "b");
  await is(redis.sscan("s", 0), ["0", ["b"]]);
  await is(redis.spop("s"), "b");
});

test("sorted sets and positions", async () => {
  await redis.flushall();
  await is(redis.zadd("z", { score: 1, member: "a" }, { score: 2.5, member: "b" }, { score: 3, member: "c" }), 3);
  await is(redis.zcard("z"), 3);
  await is(redis.zcount("z", 1, 2.5), 2);
  await is(redis.zincrby("z", 0.5, "c"), 3.5);
  await is(redis.zscore("z", "b"), 2.5);
  await is(redis.zmscore("z", ["a", "none"]), [1, null]);
  await is(redis.zrank("z", "b"), 1);
  await is(redis.zrevrank("z", "b"), 1);
  await is(redis.zrange("z", 0, -1, { withScores: true }), ["a", 1, "b", 2.5, "c", 3.5]);
  await is(redis.zrange("z", 1, 3, { byScore: true, rev: true }).catch((error) => error.name), []);
  await is(redis.zlexcount("z", "-", "+"), 3);
  await is(redis.zscan("z", 0), ["0", ["a", 1, "b", 2.5, "c", 3.5]]);
  await redis.zadd("y", { score: 10, member: "a" });
  await is(redis.zdiffstore("d", 2, "z", "y"), 2);
  await is(redis.zinterstore("d", 2, ["z", "y"]), 1);
  await is(redis.zunionstore("d", 2, ["z", "y"], { aggregate: "max" }), 3);
  await is(redis.zunion(2, ["z", "y"], { withScores: true }), ["b", 2.5, "c", 3.5, "a", 11]);
  await is(redis.zpopmin("z"), ["a", 1]);
  await is(redis.zpopmax("z", 1), ["c", 3.5]);
  await is(redis.zrem("z", "none"), 0);
  await is(redis.zremrangebylex("z", "[x", "[y"), 0);
  await is(redis.zremrangebyrank("z", 5, 6), 0);
  await is(redis.zremrangebyscore("z", 2, 3), 1);
  await is(redis.geoadd("g", { longitude: 13.361389, latitude: 38.115556, member: "Palermo" }), 1);
  await redis.geoadd("g", { longitude: 15.087269, latitude: 37.502669, member: "Catania" });
  assert(Math.abs((await redis.geodist("g", "Palermo", "Catania", "KM")) - 166.27) < 0.1);
  await is(redis.geohash("g", "Palermo"), ["sqc8b49rny0"]);
  assert(Math.abs((await redis.geopos("g", "Palermo"))[0].lng - 13.361389) < 1e-5);
  const near = await redis.geosearch("g", { type: "FROMLONLAT", coordinate: { lon: 15, lat: 37 } },
    { type: "BYRADIUS", radius: 200, radiusType: "KM" }, "ASC");
  assert.deepEqual(near.map(({ member }) => member), ["Catania", "Palermo"]);
  await is(redis.geosearchstore("h", "g", { type: "FROMLONLAT", coordinate: { lon: 15, lat: 37 } },
    { type: "BYRADIUS", radius: 200, radiusType: "KM" }, "ASC"), 2);
});

test("streams", async () => {
  await redis.flushall();
  await is(redis.xadd("x", "1-1", { field: "v", n: 1 }), "1-1");
  await redis.xadd("x", "2-1", { field: "w" });
  await is(redis.xlen("x"), 2);
  await is(redis.xrange("x", "-", "+"), { "1-1": { field: "v", n: 1 }, "2-1": { field: "w" } });
  await is(redis.xrevrange("x", "+", "-", 1), { "2-1": { field: "w" } });
  await is(redis.xread("x", "1-1"), [["x", [["2-1", ["field", "w"]]]]]);
  await is(redis.xgroup("x", { type: "CREATE", group: "g", id: "0" }), "OK");
  assert.equal((await redis.xreadgroup("g", "c", "x", ">"))[0][1].length, 2);
  assert.equal((await redis.xpending("x", "g", "-", "+", 10)).length, 2);
  assert.equal((await redis.xclaim("x", "g", "d", 0, "1-1")).length, 1);
  assert.equal((await redis.xautoclaim("x", "g", "e", 0, "0")).length, 3);
  await is(redis.xack("x", "g", "1-1"), 1);
  assert.equal((await redis.xinfo("x", { type: "GROUPS" })).length, 1);
  await is(redis.xtrim("x", { strategy: "MAXLEN", threshold: 1, exactness: "=" }), 1);
  await is(redis.xdel("x", "2-1"), 1);
});

test("values that are hard to keep", async () => {
  for (const value of ["", " ", "OK", "null", "ü€😀", "\u0000\u0001", "\"quoted\\", "line\nline", "a".repeat(100_000)]) {
    await redis.set("value", value);
    const got = await redis.get("value");
    assert.equal(value === "null" ? String(got) : got, value);
  }
  await is(redis.set("n", 9007199254740991).then(() => redis.get("n")), 9007199254740991);
  await is(redis.set("n", "9007199254740993").then(() => redis.get("n")), "9007199254740993");
  await is(redis.set("n", 1.5e300).then(() => redis.get("n")), 1.5e300);
  await is(redis.set("n", true).then(() => redis.get("n")), true);
  await is(redis.set("n", { a: [1, "2", null] }).then(() => redis.get("n")), { a: [1, "2", null] });
  await is(redis.set("key/with ?&#%", 1).then(() => redis.get("key/with ?&#%")), 1);
  const plain = new Redis({ ...options, responseEncoding: false, automaticDeserialization: false });
  await is(plain.set("k", "ü\n").then(() => plain.get("k")), "ü\n");
  await is(plain.mget("k", "none"), ["ü\n", null]);
  await assert.rejects(redis.lpop("value"), /WRONGTYPE/);
});

test("pipelines, by hand and of themselves", async () => {
  const pipeline = redis.pipeline();
  pipeline.set("p", 1).incr("p").get("p").hset("ph", { a: 1 }).hgetall("ph").get("none");
  await is(pipeline.exec(), ["OK", 2, 2, 1, { a: 1 }, null]);
  const wrong = redis.pipeline().set("p", "text").incr("p").get("p");
  const results = await wrong.exec({ keepErrors: true });
  assert.deepEqual([results[0].result, results[2].result], ["OK", "text"]);
  assert.match(results[1].error, /not an integer/);
  const auto = new Redis({ ...options, enableAutoPipelining: true });
  const all = await Promise.all(Array.from({ length: 300 }, (_, at) => auto.set(`auto:${at}`, at)));
  assert(all.every((reply) => reply === "OK"));
  const read = await Promise.all(Array.from({ length: 300 }, (_, at) => auto.get(`auto:${at}`)));
  assert.deepEqual(read, Array.from({ length: 300 }, (_, at) => at));
});

test("transactions", async () => {
  await is(redis.multi().set("t", 1).incr("t").get("t").mget("t", "none").exec(), ["OK", 2, 2, [2, null]]);
  await assert.rejects(redis.multi().set("t", 5).lpop().exec(), /EXECABORT/);
  await is(redis.get("t"), 2);
});

test("messages", async () => {
  const text = "text";
  const messages = [];
  const subscriber = redis.subscribe(["news", "more"]);
  const patterns = redis.psubscribe(["ne*"]);
  const count = (target, kind, wanted) => new Promise((resolve, reject) => {
    let seen = 0;
    target.on("error", reject);
    target.on(kind, (message) => {
      messages.push(message);
      if (++seen === wanted) resolve();
    });
  });
  await Promise.all([count(subscriber, "subscribe", 2), count(patterns, "psubscribe", 1)]);
  messages.length = 0;
  const come = Promise.all([count(subscriber, "message", 3), count(patterns, "pmessage", 2)]);
  await is(redis.publish("news", { deep: [text] }), 2);
  await is(redis.publish("more", "ü,comma"), 1);
  await is(redis.publish("news", "7"), 2);
  await come;
  assert(messages.some(({ channel, message }) => channel === "more" && message === "ü,comma"));
  assert(messages.some(({ pattern, message }) => pattern === "ne*" && message?.deep?.[0] === text));
  await subscriber.unsubscribe();
  await patterns.unsubscribe();
});

test("scripts and functions", async () => {
  await is(redis.scriptFlush(), "OK");
  await is(redis.eval("return {KEYS[1], ARGV[1], 7}", ["k"], ["ü"]), ["k", "ü", 7]);
  await is(redis.evalRo("return redis.call('GET', KEYS[1])", ["none"], []), null);
  await assert.rejects(redis.evalRo("return redis.call('SET', KEYS[1], 1)", ["k"], []), /Write commands are not allowed/);
  const source = "return {KEYS[1], ARGV[1]}";
  const sha = await redis.scriptLoad(source);
  await is(redis.evalsha(sha, ["k"], ["a"]), ["k", "a"]);
  await is(redis.evalshaRo(sha, ["k"], ["a"]), ["k", "a"]);
  await is(redis.scriptExists(sha, "0".repeat(40)), [1, 0]);
  await is(redis.scriptFlush({ async: true }), "OK");
  await is(redis.createScript(source).exec(["k"], ["b"]), ["k", "b"]);
  await is(redis.createScript(source, { readonly: true }).evalRo(["k"], ["c"]), ["k", "c"]);
  await assert.rejects(redis.evalsha("0".repeat(40), [], []), /NOSCRIPT/);

  const code = `#!lua name=lib
    redis.register_function('stored', function(keys, args) return redis.call('SET', keys[1], args[1]) end)
    redis.register_function{function_name='read', callback=function(keys) return redis.call('GET', keys[1]) end, flags={'no-writes'}}`;
  await is(redis.functions.load({ code, replace: true }), "lib");
  await is(redis.functions.call("stored", ["f"], ["v"]), "OK");
  await is(redis.functions.callRo("read", ["f"]), "v");
  assert.equal((await redis.functions.list({ libraryName: "lib" }))[0].libraryName, "lib");
  await is(redis.functions.delete("lib"), "OK");
  await is(redis.functions.flush(), "OK");
});

test("what is offered is served, or listed", async (t) => {
  for (const [name, command] of Object.entries(NOT_SERVED)) {
    assert(name in redis, `${name} is no longer offered`);
    await assert.rejects(new Redis(options).exec([command, "k", "x", "y"]), /unknown command/, `${command} is served`);
  }
  for (const [group, command] of Object.entries(GROUPS_NOT_SERVED)) {
    await assert.rejects(new Redis(options).exec([command, "k"]), /unknown command/, `${group} is served`);
  }
  const client = new Redis(options);
  const own = Object.keys(client).filter((name) => typeof client[name] === "function");
  const inherited = Object.getOwnPropertyNames(Object.getPrototypeOf(Object.getPrototypeOf(client)) ?? {});
  const offered = [...own, ...inherited].filter((name) => name !== "constructor" && !name.startsWith("_"));
  const listed = new Set([...called, ...ELSEWHERE, ...Object.keys(NOT_SERVED), ...Object.keys(GROUPS_NOT_SERVED)]);
  const forgotten = offered.filter((name) => !listed.has(name));
  assert.deepEqual(forgotten, []);
  const missing = offered.filter((name) => name in NOT_SERVED || name in GROUPS_NOT_SERVED).length;
  const own_tests = offered.filter((name) => ELSEWHERE.includes(name)).length;
  t.diagnostic(`${offered.length} offered: ${offered.length - missing - own_tests} called, ${own_tests} of the client itself or ` +
    `in tests of their own, ${missing} not served`);
});
