// Owns: ioredis against the server: ready check, pipeline, transaction, publish and subscribe, blocking. Does not own:
// the server, which the runner starts; WEFT_PORT says where it is.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Redis from "ioredis";

const port = Number(process.env.WEFT_PORT);
let redis;

before(async () => {
  // It gives up connecting after ten seconds, and a request after twenty new connections: not what is tested.
  redis = new Redis({ port, connectTimeout: 240_000, maxRetriesPerRequest: null });
  await redis.flushall();
});
after(() => redis.disconnect());

test("values", async () => {
  assert.equal(await redis.set("k", "v"), "OK");
  assert.equal(await redis.get("k"), "v");
  assert.equal(await redis.hset("h", { a: 1, b: 2 }), 2);
  assert.deepEqual(await redis.hgetall("h"), { a: "1", b: "2" });
});

test("a pipeline", async () => {
  const pipeline = redis.pipeline();
  for (let i = 0; i < 500; i++) pipeline.incr("n");
  const results = await pipeline.exec();
  assert.equal(results.length, 500);
  assert.deepEqual(results[499], [null, 500]);
});

test("a transaction", async () => {
  const results = await redis.multi().set("t", "1").incr("t").get("t").exec();
  assert.deepEqual(results, [[null, "OK"], [null, 2], [null, "2"]]);
});

test("publish and subscribe", async () => {
  const subscriber = redis.duplicate();
  await subscriber.subscribe("news");
  const message = new Promise((resolve) => subscriber.on("message", (channel, text) => resolve([channel, text])));
  assert.equal(await redis.publish("news", "hello"), 1);
  assert.deepEqual(await message, ["news", "hello"]);
  subscriber.disconnect();
});

test("blocking", async () => {
  const blocked = redis.duplicate();
  const popped = blocked.blpop("list", 240);
  while ((await redis.info("clients")).includes("blocked_clients:0")) await new Promise(setImmediate);
  await redis.rpush("list", "x");
  assert.deepEqual(await popped, ["list", "x"]);
  blocked.disconnect();
});

test("TLS, without a certificate of its own and with one", async () => {
  const file = (name) => readFileSync(join(process.env.WEFT_CERTIFICATES, name));
  const own = { cert: file("client.crt"), key: file("client.key") };
  for (const [client, user] of [[{}, "default"], [own, "client"]]) {
    const tls = { ca: file("ca.crt"), servername: "localhost", ...client };
    const secure = new Redis({ port, tls, connectTimeout: 240_000, maxRetriesPerRequest: null });
    assert.equal(await secure.acl("WHOAMI"), user);
    const pipeline = secure.pipeline();
    for (let i = 0; i < 500; i++) pipeline.set(`tls:${i}`, i);
    assert.equal((await pipeline.exec()).length, 500);
    secure.disconnect();
  }
});
