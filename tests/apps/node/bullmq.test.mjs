// Owns: BullMQ's queues and workers as an application uses them: plain, delayed, repeated, failing, rate-limited jobs, parents
// of jobs, priorities. Does not own: the server.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import Redis from "ioredis";
import { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } from "bullmq";

import { connection, expected, jobs } from "./connection.mjs";

const open = [];
const raw = new Redis(connection);
after(async () => {
    await Promise.all(open.map((one) => one.close()));
    await raw.quit();
});

function queue(name, options = {}) {
    const made = new Queue(name, { connection, ...options });
    open.push(made);
    return made;
}
function worker(name, work, options = {}) {
    const made = new Worker(name, work, { connection, ...options });
    made.on("error", (error) => console.error(`${name}: ${error}`));
    open.unshift(made);
    return made;
}
// Resolves when the worker has completed so many jobs.
function completed(of, count) {
    const { done, resolve } = expected();
    const seen = [];
    of.on("completed", (job) => seen.push(job) === count && resolve(seen));
    return done;
}

test(`${jobs} jobs, each once, by four workers`, async () => {
    const name = "many";
    const all = queue(name);
    for (let from = 0; from < jobs; from += 500) {
        const slice = Array.from({ length: Math.min(500, jobs - from) }, (_, at) => ({ name: "one", data: { at: from + at } }));
        await all.addBulk(slice);
    }
    assert.equal(await all.getWaitingCount(), jobs);
    const times = new Array(jobs).fill(0);
    let left = jobs;
    const { done, resolve } = expected();
    const work = async (job) => {
        times[job.data.at] += 1;
        return job.data.at * 2;
    };
    for (let at = 0; at < 4; at++) {
        worker(name, work, { concurrency: 25 }).on("completed", () => --left === 0 && resolve());
    }
    await done;
    assert.deepEqual(times, new Array(jobs).fill(1));
    const counts = await all.getJobCounts();
    assert.equal(counts.completed, jobs);
    assert.equal(counts.waiting + counts.active + counts.failed + counts.delayed, 0);
    const [last] = await all.getCompleted(0, 0);
    assert.equal(last.returnvalue, last.data.at * 2);
});

test("delayed jobs run in the order of their times, and not before", async () => {
    const delayed = queue("delayed");
    const order = [];
    const at = worker("delayed", async (job) => {
        order.push(job.data.ms);
        assert.ok(Date.now() >= job.timestamp + job.data.ms, "not before its time");
    });
    const done = completed(at, 4);
    await delayed.addBulk([400, 100, 300, 200].map((ms) => ({ name: "late", data: { ms }, opts: { delay: ms } })));
    await done;
    assert.deepEqual(order, [100, 200, 300, 400]);
});

test("a repeated job comes again until its limit", async () => {
    const repeated = queue("repeated");
    const at = worker("repeated", async (job) => job.data.of);
    const done = completed(at, 3);
    await repeated.upsertJobScheduler("every", { every: 100, limit: 3 }, { name: "tick", data: { of: "clock" } });
    const seen = await done;
    assert.deepEqual(seen.map((job) => job.returnvalue), ["clock", "clock", "clock"]);
    await repeated.removeJobScheduler("every");
    assert.equal((await repeated.getJobSchedulers()).length, 0);
});

test("a job that fails is tried again, with its error kept; one that cannot recover is not", async () => {
    const failing = queue("failing");
    const tries = {};
    const at = worker("failing", async (job) => {
        tries[job.name] = (tries[job.name] ?? 0) + 1;
        if (job.name === "hopeless") throw new UnrecoverableError("no way");
        if (tries[job.name] < 3) throw new Error(`try ${tries[job.name]}`);
        return "at last";
    });
    const events = new QueueEvents("failing", { connection });
    open.unshift(events);
    await events.waitUntilReady();
    const attempts = { attempts: 3, backoff: { type: "exponential", delay: 20 } };
    const good = await failing.add("good", {}, attempts);
    const hopeless = await failing.add("hopeless", {}, attempts);
    assert.equal(await good.waitUntilFinished(events), "at last");
    await assert.rejects(hopeless.waitUntilFinished(events), /no way/);
    assert.deepEqual(tries, { good: 3, hopeless: 1 });
    const kept = await failing.getJob(hopeless.id);
    assert.equal(kept.failedReason, "no way");
    assert.equal(await kept.getState(), "failed");
    await kept.remove();
    assert.equal(await failing.getFailedCount(), 0);
    assert.ok(at.isRunning());
});

test("a rate limit is kept to", async () => {
    const limited = queue("limited");
    const begun = [];
    const at = worker("limited", async () => void begun.push(Date.now()), { limiter: { max: 5, duration: 300 } });
    const done = completed(at, 15);
    await limited.addBulk(Array.from({ length: 15 }, (_, at) => ({ name: "one", data: { at } })));
    await done;
    // Three windows of five: the third begins when two have passed.
    assert.ok(begun[14] - begun[0] >= 550, `15 jobs took ${begun[14] - begun[0]} ms`);
});

test("a parent runs behind its children and has what they give; a priority goes first", async () => {
    const flow = new FlowProducer({ connection });
    open.unshift(flow);
    const at = worker("family", async (job) => {
        if (job.name === "child") return job.data.value;
        return Object.values(await job.getChildrenValues()).reduce((sum, one) => sum + one, 0);
    });
    const done = completed(at, 4);
    const children = [1, 2, 3].map((value) => ({ name: "child", queueName: "family", data: { value } }));
    await flow.add({ name: "parent", queueName: "family", children });
    const order = (await done).map((job) => [job.name, job.returnvalue]);
    assert.deepEqual(order[3], ["parent", 6]);

    const urgent = queue("urgent");
    await urgent.addBulk([3, 1, 2].map((priority) => ({ name: `p${priority}`, data: {}, opts: { priority } })));
    const by = worker("urgent", async () => {});
    assert.deepEqual((await completed(by, 3)).map((job) => job.name), ["p1", "p2", "p3"]);
});

test("a paused queue stands still, a drained one is empty, an obliterated one is gone", async () => {
    const still = queue("still");
    await still.addBulk(Array.from({ length: 10 }, (_, at) => ({ name: "one", data: { at } })));
    await still.pause();
    assert.ok(await still.isPaused());
    await still.drain();
    assert.equal(await still.getWaitingCount(), 0);
    await still.add("one", {}, { jobId: "same" });
    await still.add("one", {}, { jobId: "same" });
    assert.equal(await still.count(), 1, "a job of the same name is one job");
    await still.resume();
    await still.obliterate({ force: true });
    assert.equal((await raw.keys("bull:still:*")).length, 0);
});
