// Owns: ioredis as a client that knows clusters and as one that does not, through a gateway in front of a cluster. Does not own: the
// gateway, which the runner starts; WEFT_PORT says where it is.

import assert from "node:assert/strict";
import { test } from "node:test";
import Redis from "ioredis";

const port = Number(process.env.WEFT_PORT);
const options = { connectTimeout: 240_000, maxRetriesPerRequest: null };

for (const [name, connect] of [
  ["plain", () => new Redis({ port, ...options })],
  ["as a cluster", () => new Redis.Cluster([{ host: "127.0.0.1", port }], { redisOptions: options })],
]) {
  test(name, async () => {
    const redis = connect();
    const keys = Array.from({ length: 100 }, (_, number) => `${name}:${number}`);
    await Promise.all(keys.map((key, number) => redis.set(key, number)));
    assert.deepEqual(await Promise.all(keys.map((key) => redis.get(key))), keys.map((_, number) => String(number)));
    const together = await redis.multi().incr(`{${name}}a`).incr(`{${name}}a`).exec();
    assert.deepEqual(together, [[null, 1], [null, 2]]);
    const digest = await redis.script("LOAD", "return redis.call('INCRBY', KEYS[1], 2)");
    const scripts = keys.slice(0, 20).map((key) => redis.evalsha(digest, 1, key));
    assert.deepEqual(await Promise.all(scripts), Array.from({ length: 20 }, (_, number) => number + 2));
    const waits = connect();
    const popped = waits.blpop(`${name}:list`, 240);
    await redis.rpush(`${name}:list`, "x");
    assert.deepEqual(await popped, [`${name}:list`, "x"]);
    if (name === "plain") {
      assert.deepEqual((await redis.mget(...keys)).length, 100);
      assert.equal(await redis.del(...keys), 100);
    }
    waits.disconnect();
    redis.disconnect();
  });
}
