// Owns: a weft of the tests' own and what is in it. WEFT names the program. Does not own: what is tested.

import { spawn } from "node:child_process";
import { createServer } from "node:net";

/** What must come is waited for so long: never reached when all is well, however busy the machine is. */
export const PATIENCE_MS = 120_000;

/** Fields of the large hash; `CONSOLE_FIELDS=10000000` to see what those cost. */
export const WIDE = Number(process.env.CONSOLE_FIELDS ?? 100_000);

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
  }
  async start(...flags) {
    const words = ["serve", "--port", this.port, "--bind", "127.0.0.1", "--threads", "2", "--enable-debug-command", "local", ...flags];
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
  async run(...commands) {
    const answer = await fetch(`${this.url}/pipeline`, { method: "POST", body: JSON.stringify(commands) });
    const replies = await answer.json();
    if (!answer.ok) throw new Error(JSON.stringify(replies));
    return replies.map((reply) => reply.result ?? reply.error);
  }
}

/** Something of each kind, hostile where it can be. */
export async function fillWith(server, keys) {
  await server.run(["DEBUG", "POPULATE", keys, "many", "20"]);
  await server.run(
    ["SET", "app:text", "hello"],
    ["SET", "app:json", '{"name":"Ada","tags":["a","b"]}', "EX", 3600],
    ["SET", `app:hostile:${HOSTILE}`, HOSTILE],
    ["HSET", "app:hash", "name", "Ada", "note", HOSTILE, HOSTILE, "1"],
    ["RPUSH", "app:list", "one", "two", HOSTILE],
    ["SADD", "app:set", "a", "b", HOSTILE],
    ["ZADD", "app:zset", 1, "one", 2.5, "two", 3, HOSTILE],
    ["XADD", "app:stream", "*", "field", HOSTILE],
    ["XGROUP", "CREATE", "app:stream", "workers", "0"],
    ["PROGRAM", "SET", "count", '{"params":[{"name":"by","type":"int"}],"steps":[{"do":["INCRBY","app:count","${by}"],"as":"now"},{"return":"${now}"}]}'],
    ["CONFIG", "SET", "slowlog-log-slower-than", "0"],
    ["GET", HOSTILE],
    ["CONFIG", "SET", "slowlog-log-slower-than", "10000"],
    [HOSTILE],
    ["EVAL", "for i = 1, ARGV[1] do redis.call('HSET', KEYS[1], 'field:' .. i, i) end", 1, "app:wide", WIDE],
    ["ACL", "SETUSER", "reader", "on", ">secret", "~app:*", "&*", "+@read", "+@connection", "+acl|whoami", "-@dangerous"],
  );
  // Bytes that are no text, and a client that is called something hostile.
  await fetch(`${server.url}/v1/db/0/keys/app:bytes`, { method: "PUT", body: new Uint8Array([0, 255, 128, 10, 65]) });
}
