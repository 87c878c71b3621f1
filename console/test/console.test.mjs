// Owns: the console in Debian's Chromium: each page, light, dark and at 400 px, by keyboard, for a user who may little, with the
// server away and back; axe-core, errors, foreign requests, hostile values. Screenshots go to SCREENSHOTS, or nowhere.
//
// Without Chromium the tests are skipped, and say so.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fillWith, freePort, HOSTILE, PATIENCE_MS, Server, WIDE } from "./server.mjs";

const require = createRequire(import.meta.url);
const chromium = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => path && existsSync(path));
const skip = chromium === undefined ? "Chromium is missing: apt-get install chromium" : false;
const KEYS = Number(process.env.CONSOLE_KEYS ?? 1_000_000);
const shots = process.env.SCREENSHOTS;
const PAGES = ["overview", "keys", "command", "clients", "slow", "live", "programs", "persistence"];

let server, browser, hostile, axe;

before(async () => {
  if (skip) return;
  const { chromium: driver } = require("playwright-core");
  axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  server = new Server(await freePort());
  await server.start();
  await fillWith(server, KEYS);
  hostile = connect(server.port, "127.0.0.1");
  hostile.write("CLIENT SETNAME <script>window.hacked=1</script>\r\n");
  browser = await driver.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
  if (shots) mkdirSync(shots, { recursive: true });
});

after(async () => {
  hostile?.destroy();
  await browser?.close();
  if (server?.process.exitCode === null) await server.stop();
});

/** A page of the browser that notes what must not be. */
async function open({ width = 1280, height = 900, scheme = "light", to = server } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const faults = [];
  let expects = false;
  page.on("console", (message) => {
    // Of a request that fails the browser says so by itself; those that are expected to are.
    if (message.type() === "error" && !(expects && message.text().includes("Failed to load resource"))) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => faults.push(`a dialog: ${dialog.message()}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(to.url) && !request.url().startsWith("data:")) faults.push(`a request to ${request.url()}`);
  });
  await page.addInitScript(axe);
  return {
    page,
    expectFailures: () => (expects = true),
    go: async (name) => {
      await page.goto(`${to.url}/console#/${name}`);
      await page.locator("main h1").waitFor();
    },
    async done() {
      assert.equal(await page.evaluate(() => window.hacked), undefined, "a stored value ran");
      assert.deepEqual(faults, []);
      await context.close();
    },
  };
}

/**
 * Does something until a page shows it: when a page has begun to be told, nobody says. At a pace that the page can follow:
 * one that is flooded draws nothing.
 */
async function untilSeen(locator, does) {
  for (const end = Date.now() + PATIENCE_MS; ; ) {
    await does();
    if (await locator.waitFor({ timeout: 500 }).then(() => true, () => false)) return;
    assert.ok(Date.now() < end, `not seen: ${locator}`);
  }
}

/** Whether a page shows what it is for. */
const SHOWN = {
  overview: async (page) => {
    await page.locator(".plot canvas").nth(5).waitFor();
    await page.locator(".tiles dd").first().waitFor();
  },
  keys: async (page) => {
    // Other tests add some.
    await page.getByText(new RegExp(`^100,\\d+ of ${Math.floor(KEYS / 1000).toLocaleString("en")},\\d+ keys`)).waitFor();
    await page.getByRole("button", { name: "Continue" }).waitFor();
    await page.locator(".keys-list [role=option]").first().waitFor();
  },
  command: async (page) => {
    await page.getByLabel("weft>").fill("HGETALL app:hash");
    await page.keyboard.press("Enter");
    await page.locator(".entry pre").first().waitFor();
  },
  clients: async (page) => void (await page.locator("tbody tr", { hasText: "<script>" }).waitFor()),
  slow: async (page) => void (await page.locator("td code", { hasText: "onerror" }).first().waitFor()),
  live: async (page) => void (await page.getByRole("button", { name: "Follow" }).waitFor()),
  programs: async (page) => {
    await page.getByRole("button", { name: "count" }).click();
    await page.getByLabel("Arguments").fill("[2]");
    // On a machine that is busy with other things it may pass its limit of time: then it is run again.
    for (let tries = 0; ; tries++) {
      await page.getByRole("button", { name: "Run", exact: true }).click();
      const good = page.locator("pre.good", { hasText: /\d/ }).waitFor({ timeout: 5000 });
      if (await good.then(() => true, () => false)) break;
      const said = await page.getByLabel("Answer").textContent();
      assert.ok(tries < 5 && /too much time/.test(said), `the program answers: ${said}`);
    }
    assert.match(await page.getByLabel("JSON").inputValue(), /app:count/);
  },
  persistence: async (page) => void (await page.getByText("Last snapshot").first().waitFor()),
};

for (const [scheme, width] of [
  ["light", 1280],
  ["dark", 1280],
  ["light", 400],
]) {
  test(`each page, ${scheme}, ${width} px`, { skip }, async () => {
    const tab = await open({ scheme, width });
    for (const name of PAGES) {
      await tab.go(name);
      await SHOWN[name](tab.page);
      assert.deepEqual(await tab.page.locator(".said .bad").allTextContents(), [], name);
      const found = await tab.page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
      const violations = found.violations.map((one) => `${name}: ${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`);
      if (shots) await tab.page.screenshot({ path: join(shots, `${name}-${scheme}-${width}.png`) });
      assert.deepEqual(violations, []);
      const wide = await tab.page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${name} is ${wide} px wide`);
    }
    await tab.done();
  });
}

test("each type is shown, edited and stays text", { skip }, async () => {
  const tab = await open();
  const { page } = tab;
  await tab.go("keys");
  await page.getByLabel("Pattern").fill("app:*");
  await page.getByLabel("tree by").uncheck();
  await page.getByRole("button", { name: "Scan" }).click();
  const choose = async (name) => {
    await page.locator(".keys-list [role=option]").filter({ hasText: name }).first().click();
    await page.locator(".detail h2", { hasText: name }).waitFor();
  };
  for (const name of ["app:hash", "app:list", "app:set", "app:zset", "app:stream"]) {
    await choose(name);
    await page.locator(".detail td", { hasText: "onerror" }).first().waitFor();
    if (shots) await page.screenshot({ path: join(shots, `key-${name.slice(4)}.png`) });
  }
  await choose("app:hostile");
  assert.equal(await page.locator(".detail textarea").inputValue(), HOSTILE);
  await choose("app:json");
  assert.match(await page.locator(".detail textarea").inputValue(), /\n  "name": "Ada"/);
  await choose("app:bytes");
  assert.equal(await page.locator(".detail textarea").inputValue(), "00 ff 80 0a 41");
  await page.locator(".detail textarea").fill("00 ff 80 42");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  const stored = await fetch(`${server.url}/v1/db/0/keys/app:bytes`);
  assert.deepEqual([...new Uint8Array(await stored.arrayBuffer())], [0, 255, 128, 0x42]);
  // Somebody else is faster: it is not lost without being asked.
  await choose("app:text");
  // What it was when it was shown is there: what comes now is somebody else's.
  await page.locator(".detail textarea").waitFor();
  await server.run(["SET", "app:text", "theirs"]);
  await page.locator(".detail textarea").fill("mine");
  tab.expectFailures();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Changed meanwhile" }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await server.run(["GET", "app:text"]), ["theirs"]);
  await page.getByRole("button", { name: "Delete …" }).click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("The key is deleted.").waitFor();
  assert.deepEqual(await server.run(["EXISTS", "app:text"]), [0]);
  await tab.done();
});

test("keys are filtered, and get a time, a name, members", { skip }, async () => {
  const tab = await open();
  const { page } = tab;
  // In a database of its own: a scan of a million for each filter would take its time.
  const run = async (...commands) => (await server.run(["SELECT", "1"], ...commands)).slice(1);
  await run(["HSET", "edit:hash", "name", "Ada"], ["SET", "edit:short", "1", "EX", 1000], ["SET", "edit:long", "x".repeat(5000)], ["RPUSH", "edit:list", "a", "b"]);
  await tab.go("keys");
  await page.getByLabel("Database").fill("1");
  await page.getByLabel("tree by").uncheck();
  await page.getByLabel("Pattern").fill("edit:*");
  const finds = async (...names) => {
    await page.getByRole("button", { name: "Scan" }).click();
    const shown = () => page.locator(".keys-list [role=option] .name").allTextContents();
    // What was found before stands there until something is found.
    const end = Date.now() + PATIENCE_MS;
    for (let found = []; ; found = await shown()) {
      if (String(found.sort()) === String(names.sort())) return;
      assert.ok(Date.now() < end, `found are ${found}, not ${names}`);
    }
  };
  await finds("edit:hash", "edit:list", "edit:long", "edit:short");
  await page.getByLabel("Type").selectOption("hash");
  await finds("edit:hash");
  await page.getByLabel("Type").selectOption("any");
  await page.getByLabel("Time").selectOption("has a time");
  await finds("edit:short");
  await page.getByLabel("Time").selectOption("any");
  await page.getByLabel("At least bytes").fill("4000");
  await finds("edit:long");
  await page.getByLabel("At least bytes").fill("");
  await finds("edit:hash", "edit:list", "edit:long", "edit:short");
  const answer = async (button, text, verb) => {
    await page.getByRole("button", { name: button, exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox").fill(text);
    await dialog.getByRole("button", { name: verb }).click();
    await dialog.waitFor({ state: "detached" });
  };
  const until = async (command, wanted) => {
    for (;;) {
      const [got] = await run(command);
      if (JSON.stringify(got) === JSON.stringify(wanted)) return;
    }
  };
  await page.locator(".keys-list [role=option]").filter({ hasText: "edit:hash" }).click();
  await page.locator(".detail td", { hasText: "Ada" }).waitFor();
  await answer("Edit name", "Grace", "Save");
  await until(["HGET", "edit:hash", "name"], "Grace");
  await page.getByRole("button", { name: "Add …" }).click();
  await page.getByRole("dialog", { name: "New field" }).getByRole("textbox").fill("born");
  await page.getByRole("button", { name: "Go on" }).click();
  await page.getByRole("dialog", { name: "born" }).getByRole("textbox").fill("1906");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await until(["HGET", "edit:hash", "born"], "1906");
  await page.locator(".detail td", { hasText: "1906" }).waitFor();
  await page.getByRole("button", { name: "Remove name", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await until(["HLEN", "edit:hash"], 1);
  await answer("Time …", "5000", "Set");
  await page.locator(".detail", { hasText: "left" }).waitFor();
  assert.ok((await run(["TTL", "edit:hash"]))[0] > 4000);
  await answer("Rename …", "edit:renamed", "Rename");
  await page.locator(".detail h2", { hasText: "edit:renamed" }).waitFor();
  assert.deepEqual(await run(["EXISTS", "edit:renamed", "edit:hash"]), [1]);
  await page.locator(".keys-list [role=option]").filter({ hasText: "edit:list" }).click();
  await page.locator(".detail h2", { hasText: "edit:list" }).waitFor();
  await answer("Edit element 1", "c", "Save");
  await until(["LRANGE", "edit:list", 0, -1], ["a", "c"]);
  await answer("Add last …", "d", "Add");
  await until(["LRANGE", "edit:list", 0, -1], ["a", "c", "d"]);
  await tab.done();
});

test("clients with their channels, and the end of one", { skip }, async () => {
  const tab = await open();
  const { page } = tab;
  const victim = connect(server.port, "127.0.0.1");
  victim.write("CLIENT SETNAME victim\r\n");
  const ended = new Promise((resolve) => victim.once("close", resolve));
  victim.resume();
  // RESPB: GET of `mykey` on three channels.
  const channels = connect(server.port, "127.0.0.1");
  for (const channel of [0, 1, 2]) channels.write(Buffer.concat([Buffer.from([0, 0, 0, channel, 0, 5]), Buffer.from("mykey")]));
  await tab.go("clients");
  await page.locator("tbody td.below", { hasText: "channel 2" }).waitFor();
  await page.getByText(/connections, 2 channels beside them/).waitFor();
  if (shots) await page.screenshot({ path: join(shots, "clients-channels.png") });
  await page.getByLabel("Filter clients").fill("victim");
  await page.locator("tbody tr", { hasText: "victim" }).getByRole("button").click();
  await page.getByRole("button", { name: "End it", exact: true }).click();
  await ended;
  await page.getByText("The client is gone.").waitFor();
  channels.destroy();
  await tab.done();
});

test("a program is tried without changing anything", { skip }, async () => {
  const tab = await open();
  const { page } = tab;
  await server.run(["PROGRAM", "SET", "tries", '{"steps":[{"do":["SET","app:tried","1"],"as":"done"},{"return":"${done}"}]}']);
  await tab.go("programs");
  await page.getByRole("button", { name: "tries" }).click();
  await page.getByRole("button", { name: "Try, change nothing" }).click();
  await page.locator("pre.good", { hasText: "app:tried" }).waitFor();
  assert.deepEqual(await server.run(["EXISTS", "app:tried"]), [0]);
  await tab.done();
});

test("by keyboard alone", { skip }, async () => {
  const tab = await open();
  const { page } = tab;
  await server.run(["SET", "board:one", "by keys"], ["SET", "board:two", "2"]);
  await tab.go("overview");
  const until = async (wanted) => {
    for (let steps = 0; steps < 60; steps++) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const element = document.activeElement;
        return element?.getAttribute("aria-label") ?? element?.labels?.[0]?.textContent ?? element?.textContent ?? "";
      });
      if (at === wanted) return;
    }
    assert.fail(`Tab does not come to ${wanted}`);
  };
  await until("Keys");
  await page.keyboard.press("Enter");
  await page.locator("main h1", { hasText: "Keys" }).waitFor();
  await until("Pattern");
  await page.keyboard.type("board:*");
  await page.keyboard.press("Enter");
  // Behind the number of keys stands something as long as the scan goes on; then the list is drawn as it stays.
  await page.getByText(/^2 of [\d,]+ keys$/).waitFor();
  await until("Keys");
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await page.locator(".keys-list [role=option]").nth(2).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator(".detail textarea").waitFor();
  assert.equal(await page.locator(".detail textarea").inputValue(), "by keys");
  await tab.go("command");
  await page.keyboard.type("zad");
  await page.getByRole("option", { name: "ZADD" }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.type("board:z 1 a");
  await page.keyboard.press("Enter");
  await page.locator(".entry pre", { hasText: "(integer) 1" }).waitFor();
  await page.keyboard.type("FLUSHALL");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Run this?" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.getByLabel("weft>").inputValue(), "FLUSHALL");
  assert.deepEqual(await server.run(["EXISTS", "board:one"]), [1]);
  await tab.done();
});

test("a million keys are looked through, a part at a time", { skip }, async () => {
  const tab = await open();
  const { page } = tab;
  await page.addInitScript(() => {
    window.longest = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((task) => (window.longest = Math.max(window.longest, task.duration)))).observe({ entryTypes: ["longtask"] });
  });
  await tab.go("keys");
  const passed = (thousands) => page.getByText(new RegExp(`^${thousands},\\d+ of [\\d,]+ keys`)).waitFor();
  const rows = page.locator(".keys-list [role=option]");
  await passed(100);
  await page.getByRole("button", { name: "Continue" }).click();
  await passed("20\\d");
  await page.getByText(/, the last 100,\d+ here/).waitFor();
  // One folder of a hundred thousand keys, opened, from its beginning to its end: what is an element is what is seen.
  await rows.filter({ hasText: "many:" }).first().click();
  const list = page.locator(".keys-list");
  for (const key of ["End", "PageUp", "Home", "PageDown", "ArrowDown", "End"]) {
    await list.press(key);
    await page.locator(".keys-list [aria-selected=true]").waitFor();
    assert.ok((await rows.count()) <= 60, `${await rows.count()} rows are elements`);
  }
  assert.match(await page.locator(".keys-list [aria-selected=true]").textContent(), /string/);
  console.log(`the longest task of the page took ${Math.round(await page.evaluate(() => window.longest))} ms`);
  await tab.done();
});

test("a page of a large hash asks for a page", { skip }, async () => {
  const tab = await open();
  const { page } = tab;
  await tab.go("keys");
  await page.getByLabel("Pattern").fill("app:wide");
  await page.getByRole("button", { name: "Scan" }).click();
  await page.getByText(/^1 of [\d,]+ keys$/).waitFor();
  await server.run(["CONFIG", "RESETSTAT"], ["SLOWLOG", "RESET"], ["CONFIG", "SET", "slowlog-log-slower-than", "1000"]);
  await page.locator(".keys-list [role=option]").first().click();
  await page.getByText(`shown of ${WIDE.toLocaleString("en")}`).waitFor();
  await page.getByRole("button", { name: "Next page" }).click();
  await page.locator(".detail tbody tr").nth(90).waitFor();
  const [stats, slow] = await server.run(["INFO", "commandstats"], ["SLOWLOG", "GET", "10"], ["CONFIG", "SET", "slowlog-log-slower-than", "10000"]);
  const ran = Object.fromEntries([...stats.matchAll(/cmdstat_([^:]+):calls=(\d+),usec=(\d+)/g)].map(([, name, calls, us]) => [name, { calls: Number(calls), us: Number(us) }]));
  const own = ["type", "pttl", "memory|usage", "object|encoding", "hlen", "hscan"];
  for (const name of own) assert.ok(ran[name]?.calls <= (name === "hscan" ? 2 : 3), `${name}: ${JSON.stringify(ran[name])}`);
  assert.equal(ran.hgetall, undefined);
  const spent = own.reduce((sum, name) => sum + ran[name].us, 0);
  console.log(`two pages of a hash of ${WIDE} fields: ${spent} µs of the server, ${slow.length} steps over 1 ms`);
  await tab.done();
});

test("what is hot is seen while somebody looks, and leads to the key", { skip }, async () => {
  const tab = await open();
  const { page } = tab;
  await server.run(["SET", "sun", "bright"]);
  await tab.go("slow");
  const name = page.getByRole("region", { name: "Hot keys" }).getByRole("button", { name: "sun", exact: true });
  let seen = false;
  void name.waitFor().then(() => (seen = true), () => {});
  while (!seen) await server.run(...Array.from({ length: 60 }, () => ["GET", "sun"]));
  if (shots) await page.screenshot({ path: join(shots, "slow-hot.png") });
  await name.click();
  await page.locator(".detail textarea").waitFor();
  assert.equal(await page.locator(".detail textarea").inputValue(), "bright");
  await tab.done();
});

test("words are offered by the command table and the schema", { skip }, async () => {
  const tab = await open();
  const { page } = tab;
  await tab.go("command");
  const line = page.getByLabel("weft>");
  await line.pressSequentially("set offered 1 e");
  await page.getByRole("option", { name: "EXAT" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.match(await line.inputValue(), /^set offered 1 EX $/);
  await page.keyboard.type("100 n");
  await page.getByRole("option", { name: "NX" }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.locator(".entry pre", { hasText: "OK" }).waitFor();
  assert.deepEqual(await server.run(["GET", "offered"]), ["1"]);
  await tab.go("programs");
  const source = page.getByLabel("JSON");
  await source.fill("");
  await source.focus();
  await page.keyboard.type('{"st');
  await page.getByRole("option", { name: "steps" }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.type('[{"d');
  await page.getByRole("option", { name: "do" }).first().waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.type('["incrb');
  await page.getByRole("option", { name: "INCRBY", exact: true }).waitFor();
  if (shots) await page.screenshot({ path: join(shots, "programs-words.png") });
  const found = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
  assert.deepEqual(found.violations.map((one) => one.id), []);
  await page.keyboard.press("Tab");
  await page.keyboard.type(',"offered",1]}]}');
  assert.deepEqual(JSON.parse(await source.inputValue()), { steps: [{ do: ["INCRBY", "offered", 1] }] });
  await tab.done();
});

test("live shows what comes, as text", { skip }, async () => {
  const tab = await open();
  await tab.go("live");
  await tab.page.getByRole("button", { name: "Follow" }).click();
  await tab.page.locator(".line", { hasText: "subscribe,news" }).waitFor();
  await server.run(["PUBLISH", "news", HOSTILE]);
  await tab.page.locator(".line", { hasText: "onerror" }).waitFor();
  await tab.page.locator("main select").selectOption("events");
  await tab.page.getByRole("button", { name: "Follow" }).click();
  await tab.page.getByText("It is followed.").waitFor();
  await untilSeen(tab.page.locator(".line", { hasText: '"event":"set"' }).first(), () =>
    server.run(["SET", `app:hostile:${HOSTILE}`, HOSTILE]),
  );
  await tab.page.locator("main select").selectOption("stream");
  await tab.page.getByRole("textbox", { name: "Key", exact: true }).fill("app:live");
  await server.run(["XADD", "app:live", "1-1", "before", "1"]);
  await tab.page.getByRole("button", { name: "Follow" }).click();
  await untilSeen(tab.page.locator(".line", { hasText: "onerror" }).first(), () =>
    server.run(["XADD", "app:live", "*", "field", HOSTILE]),
  );
  assert.equal(await tab.page.locator(".line", { hasText: "before" }).count(), 0);
  await tab.page.locator("main select").selectOption("monitor");
  await tab.page.getByRole("button", { name: "Follow" }).click();
  await tab.page.locator(".line", { hasText: "OK" }).waitFor();
  await server.run(["GET", HOSTILE]);
  await tab.page.locator(".line", { hasText: "onerror" }).waitFor();
  if (shots) await tab.page.screenshot({ path: join(shots, "live-monitor.png") });
  await tab.done();
});

test("who may little is shown little", { skip }, async () => {
  const guarded = new Server(await freePort());
  await guarded.start();
  try {
    await fillWith(guarded, 10);
    await guarded.run(["CONFIG", "SET", "requirepass", "grown-up"]);
    const tab = await open({ to: guarded });
    tab.expectFailures();
    const { page } = tab;
    await tab.go("");
    await page.getByLabel("Password").fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    const found = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
    assert.deepEqual(found.violations.map((one) => one.id), []);
    if (shots) await page.screenshot({ path: join(shots, "sign-in.png") });
    await page.getByLabel("User").fill("reader");
    await page.getByLabel("Password").fill("secret");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Keys" }).waitFor();
    const pages = await page.getByRole("navigation").getByRole("link").allTextContents();
    assert.ok(pages.includes("Keys") && !pages.includes("Overview") && !pages.includes("Clients and channels") && !pages.includes("Slow and hot"), String(pages));
    await page.getByRole("link", { name: "Keys" }).click();
    await page.locator(".keys-list [role=option]").first().waitFor();
    if (shots) await page.screenshot({ path: join(shots, "reader.png") });
    // Nothing that says who it is stands where another tab or a log finds it.
    assert.equal(await page.evaluate(() => document.cookie + localStorage.length), "0");
    assert.ok(!page.url().includes("secret"));
    await page.getByRole("button", { name: "Leave" }).click();
    await page.getByLabel("Password").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.getItem("weft.authorization")), null);
    await tab.done();
  } finally {
    await guarded.stop();
  }
});

test("the server goes and comes back", { skip }, async () => {
  const own = new Server(await freePort());
  await own.start();
  const tab = await open({ to: own });
  tab.expectFailures();
  const { page } = tab;
  await tab.go("overview");
  await page.locator(".tiles dd").first().waitFor();
  await own.stop();
  await page.locator("p.away").waitFor();
  if (shots) await page.screenshot({ path: join(shots, "away.png") });
  await own.start();
  try {
    await page.locator("p.away").waitFor({ state: "hidden" });
    await page.locator(".tiles dd", { hasText: /^\d s$/ }).waitFor();
    await tab.done();
  } finally {
    await own.stop();
  }
});
