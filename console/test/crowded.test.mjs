// Owns: the console in Chromium before a server with a million keys and a large hash: each page, light, dark and at 400 px, by
// axe-core; looking through keys and pages of a hash. Screenshots go to SCREENSHOTS, or nowhere.
//
// CONSOLE_KEYS and CONSOLE_FIELDS say how many there are.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { axeFinds, close, launch, open, picture, skip, until } from "./browser.mjs";
import { crowd, fillWith, freePort, furnish, Server, WIDE, WIDE_DB } from "./server.mjs";

const KEYS = Number(process.env.CONSOLE_KEYS ?? 1_000_000);
const PAGES = ["overview", "keys", "command", "clients", "slow", "live", "programs", "persistence"];

let server, hostile;

before(async () => {
  if (skip) return;
  server = new Server(await freePort());
  await server.start();
  await furnish(server);
  await fillWith(server);
  hostile = connect(server.port, "127.0.0.1");
  hostile.write("CLIENT SETNAME <script>window.hacked=1</script>\r\n");
  await crowd(server, KEYS);
  await launch();
});

after(async () => {
  hostile?.destroy();
  await close();
  await server?.end();
});

/** Whether a page shows what it is for. */
const SHOWN = {
  overview: async (page) => {
    await page.locator(".plot canvas").nth(5).waitFor();
    await page.locator(".tiles dd").first().waitFor();
  },
  keys: async (page) => {
    // A scan ends between two replies; other tests add some.
    await page.getByText(new RegExp(`^10\\d,\\d+ of ${Math.floor(KEYS / 1000).toLocaleString("en")},\\d+ keys`)).waitFor();
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
    await page.getByRole("button", { name: "count", exact: true }).click();
    await until(() => page.getByLabel("JSON").inputValue(), /app:count/);
    await page.getByLabel("Arguments").fill("[2]");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await until(() => page.getByLabel("Answer").textContent(), /./);
    assert.match(await page.getByLabel("Answer").textContent(), /^\(integer\) \d+$/);
  },
  persistence: async (page) => {
    await page.getByText("Last snapshot").first().waitFor();
    // Of a log that is not written nothing can be cut.
    assert.equal(await page.getByRole("button", { name: "Cut the log" }).count(), 0);
  },
};

for (const [scheme, width] of [
  ["light", 1280],
  ["dark", 1280],
  ["light", 400],
]) {
  test(`each page, ${scheme}, ${width} px`, { skip }, async () => {
    const tab = await open(server, { scheme, width });
    for (const name of PAGES) {
      await tab.see(name, async () => {
        await tab.go(name);
        await SHOWN[name](tab.page);
        assert.deepEqual(await tab.page.locator(".said .bad").allTextContents(), []);
        const violations = await axeFinds(tab.page);
        await picture(tab.page, `${name}-${scheme}-${width}`);
        assert.deepEqual(violations, []);
        const wide = await tab.page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `it is ${wide} px wide`);
      });
    }
    await tab.done();
  });
}

test("a million keys are looked through, a part at a time", { skip }, async () => {
  const tab = await open(server);
  const { page } = tab;
  await page.addInitScript(() => {
    window.longest = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((task) => (window.longest = Math.max(window.longest, task.duration)))).observe({ entryTypes: ["longtask"] });
  });
  await tab.go("keys");
  const passed = (thousands) => page.getByText(new RegExp(`^${thousands},\\d+ of [\\d,]+ keys`)).waitFor();
  const rows = page.locator(".keys-list [role=option]");
  await passed("10\\d");
  await page.getByRole("button", { name: "Continue" }).click();
  await passed("20\\d");
  await page.getByText(/, the last 10\d,\d+ here/).waitFor();
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
  const tab = await open(server);
  const { page } = tab;
  await tab.go("keys");
  await page.getByLabel("Database").fill(String(WIDE_DB));
  await page.getByRole("button", { name: "Scan" }).click();
  await page.getByText(/^1 of 1 key$/).waitFor();
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
