// Owns: @upstash/ratelimit, as it comes from npm, against the server: its algorithms are scripts. Does not own: the server, which the runner
// starts; WEFT_PORT says where it is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Ratelimit } from "@upstash/ratelimit";
import { Redis } from "@upstash/redis";

const redis = new Redis({ url: `http://127.0.0.1:${process.env.WEFT_PORT}`, token: "any", retry: false });
// Longer than any stall of the machine: no window ends within a test.
const WINDOW = "1 h";
const algorithms = {
  fixedWindow: Ratelimit.fixedWindow(3, WINDOW),
  slidingWindow: Ratelimit.slidingWindow(3, WINDOW),
  tokenBucket: Ratelimit.tokenBucket(1, WINDOW, 3),
};

for (const [name, limiter] of Object.entries(algorithms)) {
  test(`${name} lets so many through, and no more`, async () => {
    await redis.flushall();
    const ratelimit = new Ratelimit({ redis, limiter, prefix: name, ephemeralCache: false });
    const results = [];
    for (let count = 0; count < 5; count++) results.push(await ratelimit.limit("a"));
    assert.deepEqual(results.map(({ success }) => success), [true, true, true, false, false]);
    assert.deepEqual(results.map(({ remaining }) => Math.max(remaining, 0)), [2, 1, 0, 0, 0]);
    assert(results.every(({ limit, reset }) => limit === 3 && reset > Date.now()));
    assert.equal((await ratelimit.getRemaining("a")).remaining, 0);
    assert.equal((await ratelimit.limit("b")).success, true, "another has a limit of his own");
    assert.equal((await ratelimit.limit("c", { rate: 2 })).remaining, 1, "one that counts twice");
    await ratelimit.resetUsedTokens("a");
    assert.equal((await ratelimit.limit("a")).success, true);
  });

  test(`${name} counts each of many at once`, async () => {
    await redis.flushall();
    const ratelimit = new Ratelimit({ redis, limiter, prefix: name, ephemeralCache: false });
    const results = await Promise.all(Array.from({ length: 20 }, () => ratelimit.limit("a")));
    assert.equal(results.filter(({ success }) => success).length, 3);
  });
}

test("a script that the server has forgotten is sent again", async () => {
  await redis.flushall();
  const ratelimit = new Ratelimit({ redis, limiter: algorithms.slidingWindow, ephemeralCache: false });
  assert.equal((await ratelimit.limit("a")).success, true);
  await redis.scriptFlush();
  assert.equal((await ratelimit.limit("a")).remaining, 1);
});
