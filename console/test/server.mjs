// Owns: a weft of the tests' own and what is in it. WEFT names the program. Does not own: what is tested.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What must come is waited for so long: never reached when all is well, however busy the machine is. */
export const PATIENCE_MS = 120_000;

/** Fields of the large hash; `CONSOLE_FIELDS=10000000` to see what those cost. */
export const WIDE = Number(process.env.CONSOLE_FIELDS ?? 100_000);

/** Where it is, alone, so that looking for it takes no time. */
export const WIDE_DB = 2;

export const HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

export class Server {
  constructor(port) {
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
    this.folder = mkdtempSync(join(tmpdir(), "weft-console-"));
  }
  async start(...flags) {
    const words = ["serve", "--port", this.port, "--bind", "127.0.0.1", "--threads", "2", "--dir", this.folder, "--enable-debug-command", "local", ...flags];
    this.process = spawn(process.env.WEFT ?? "weft", words.map(String), { stdio: ["ignore", "ignore", "inherit"] });
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      // Nothing tells when a socket begins to listen but trying.
      if (await fetch(`${this.url}/healthz`).then((answer) => answer.ok, () => false)) return;
      if (this.process.exitCode !== null || Date.now() > end) throw new Error("weft serve has not started");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  stop() {
    return new Promise((resolve) => {
      this.process.once("exit", resolve);
      this.process.kill("SIGTERM");
    });
  }
  /** Stops it, if it runs, and forgets what it has written. */
  async end() {
    if (this.process?.exitCode === null) await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
  async run(...commands) {
    const answer = await fetch(`${this.url}/pipeline`, { method: "POST", body: JSON.stringify(commands) });
    const replies = await answer.json();
    if (!answer.ok) throw new Error(JSON.stringify(replies));
    return replies.map((reply) => reply.result ?? reply.error);
  }
}

/** Something of each kind, hostile where it can be. */
export async function fillWith(server, db = 0) {
  await server.run(
    ["SELECT", db],
    ["SET", "app:text", "hello"],
    ["SET", "app:json", '{"name":"Ada","tags":["a","b"],"rate":1.0}', "EX", 3600],
    ["SET", "app:lines", "one\r\ntwo\r\n"],
    ["SET", `app:hostile:${HOSTILE}`, HOSTILE],
    ["HSET", "app:hash", "name", "Ada", "note", HOSTILE, HOSTILE, "1", "poem", "roses\nare"],
    ["RPUSH", "app:list", "one", "two", HOSTILE],
    ["SADD", "app:set", "a", "b", HOSTILE],
    ["ZADD", "app:zset", 1, "one", 2.5, "two", 3, HOSTILE],
    ["XADD", "app:stream", "*", "field", HOSTILE],
    ["XGROUP", "CREATE", "app:stream", "workers", "0"],
    ["XREADGROUP", "GROUP", "workers", HOSTILE, "COUNT", "1", "STREAMS", "app:stream", ">"],
  );
  // Bytes that are no text.
  await fetch(`${server.url}/v1/db/${db}/keys/app:bytes`, { method: "PUT", body: new Uint8Array([0, 255, 128, 10, 65]) });
}

/** What is no key: a program, a slow command, errors, a user who may little. */
export async function furnish(server) {
  await server.run(
    // A program that is allowed it takes its time: it may be stopped for longer than it runs.
    ["CONFIG", "SET", "program-time-ms-max", "60000"],
    ["PROGRAM", "SET", "count", '{"limits":{"time-ms":60000},"params":[{"name":"by","type":"int"}],"steps":[{"do":["INCRBY","app:count","${by}"],"as":"now"},{"return":"${now}"}]}'],
    ["CONFIG", "SET", "slowlog-log-slower-than", "0"],
    ["GET", HOSTILE],
    // On a machine that is busy with other things any step is slow: of hundreds the log would forget this one.
    ["CONFIG", "SET", "slowlog-log-slower-than", "-1"],
    [HOSTILE],
    ["ACL", "SETUSER", "reader", "on", ">secret", "%R~app:*", "&*", "+@read", "+unlink", "+@connection", "+acl|whoami", "-@dangerous", "+lastsave"],
  );
}

/** More keys than are shown at once, and a hash that is read by pages. */
export async function crowd(server, keys) {
  const fill = "for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], 'field:' .. i, i) end";
  await server.run(["DEBUG", "POPULATE", keys, "many", "20"]);
  await server.run(["SELECT", WIDE_DB], ["EVAL", fill, 1, "app:wide", WIDE]);
}
