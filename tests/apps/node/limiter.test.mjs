// Owns: rate-limiter-flexible and redlock (Node) as an application uses them. Does not own: the server.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import Redis from "ioredis";
import { BurstyRateLimiter, RateLimiterRedis } from "rate-limiter-flexible";
import redlock from "redlock";

import { connection } from "./connection.mjs";

const Redlock = redlock.default ?? redlock;
const client = new Redis(connection);
after(() => client.quit());

test("rate-limiter-flexible: points are consumed once each, by callers beside each other", async () => {
    const limiter = new RateLimiterRedis({ storeClient: client, keyPrefix: "points", points: 50, duration: 60 });
    const outcomes = await Promise.allSettled(Array.from({ length: 200 }, () => limiter.consume("user")));
    const granted = outcomes.filter((one) => one.status === "fulfilled").map((one) => one.value);
    assert.equal(granted.length, 50);
    assert.deepEqual(granted.map((one) => one.remainingPoints).sort((a, b) => a - b), Array.from({ length: 50 }, (_, at) => at));
    const refused = outcomes.find((one) => one.status === "rejected").reason;
    assert.equal(refused.remainingPoints, 0);
    assert.ok(refused.msBeforeNext > 0 && refused.msBeforeNext <= 60_000);
    await limiter.reward("user", 3);
    assert.equal((await limiter.get("user")).consumedPoints, 197);
    assert.ok(await limiter.delete("user"));
    assert.equal(await limiter.get("user"), null);
});

test("rate-limiter-flexible: a block, a window that ends, a burst", async () => {
    const blocking = new RateLimiterRedis({ storeClient: client, keyPrefix: "blocked", points: 1, duration: 1, blockDuration: 100 });
    await blocking.consume("user");
    const blocked = await blocking.consume("user").catch((refused) => refused);
    assert.ok(blocked.msBeforeNext > 1000, "blocked for longer than the window");

    const short = new RateLimiterRedis({ storeClient: client, keyPrefix: "short", points: 1, duration: 1 });
    await short.consume("user");
    const { msBeforeNext } = await short.consume("user").catch((refused) => refused);
    assert.ok(msBeforeNext > 0 && msBeforeNext <= 1000);
    // The subject is the time itself: the window's end.
    await new Promise((resolve) => setTimeout(resolve, msBeforeNext + 20));
    await short.consume("user");

    const burst = new BurstyRateLimiter(
        new RateLimiterRedis({ storeClient: client, keyPrefix: "steady", points: 2, duration: 60 }),
        new RateLimiterRedis({ storeClient: client, keyPrefix: "burst", points: 3, duration: 60 }),
    );
    const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => burst.consume("user")));
    assert.equal(outcomes.filter((one) => one.status === "fulfilled").length, 5);
});

test("redlock: one holder at a time, an extension, a release that only the holder can do", async () => {
    const locks = new Redlock([client], { retryCount: 400, retryDelay: 5, retryJitter: 5 });
    let inside = 0;
    let done = 0;
    await Promise.all(
        Array.from({ length: 20 }, () =>
            locks.using(["{lock}a", "{lock}b"], 20_000, async () => {
                inside += 1;
                assert.equal(inside, 1, "two hold the lock");
                await new Promise((resolve) => setImmediate(resolve));
                inside -= 1;
                done += 1;
            }),
        ),
    );
    assert.equal(done, 20);

    const impatient = new Redlock([client], { retryCount: 0 });
    const held = await impatient.acquire(["lock"], 20_000);
    await assert.rejects(impatient.acquire(["lock"], 20_000));
    const longer = await held.extend(60_000);
    assert.ok((await client.pttl("lock")) > 20_000);
    await longer.release();
    assert.equal(await client.exists("lock"), 0);
    const lost = await impatient.acquire(["lock"], 20_000);
    await client.set("lock", "somebody else's");
    await assert.rejects(lost.release());
    assert.equal(await client.get("lock"), "somebody else's");
});
