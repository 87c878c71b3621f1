// Owns: Debian's Chromium for the tests of the console, a page in it that notes what must not be, what all of them do with one.
//
// Without Chromium the tests are skipped, and say so.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { PATIENCE_MS } from "./server.mjs";

const require = createRequire(import.meta.url);
const chromium = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => path && existsSync(path));
const shots = process.env.SCREENSHOTS;
export const skip = chromium === undefined ? "Chromium is missing: apt-get install chromium" : false;

/** So much of a page is told of a failure. */
const SHOWN_MAX = 3000;

let browser, axe;

export async function launch() {
  axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  browser = await require("playwright-core").chromium.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
  if (shots) mkdirSync(shots, { recursive: true });
}

/** Keeps what a page looks like, where somebody wants to see it. */
export async function picture(page, name) {
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`) });
}

export async function close() {
  await browser?.close();
}

/** A page of the browser that notes what must not be. */
export async function open(to, { width = 1280, height = 900, scheme = "light" } = {}) {
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
      // Until it is shown the page before it stands there.
      await page.locator(name === "" ? "main .page, .sign-in" : `main .page.${name}`).first().waitFor();
    },
    /** Does something; where that fails, it is told what the page shows, and what was noted. */
    async see(name, action) {
      try {
        await action();
      } catch (error) {
        const shows = await page.locator("body").innerText().catch((gone) => String(gone));
        error.message = `${name}: ${error.message}\nnoted: ${JSON.stringify(faults)}\nthe page shows: ${shows.slice(0, SHOWN_MAX)}`;
        throw error;
      }
    },
    async done() {
      assert.equal(await page.evaluate(() => window.hacked), undefined, "a stored value ran");
      assert.deepEqual(faults, []);
      await context.close();
    },
  };
}

/** Asks until what is answered is what is wanted. */
export async function until(asks, wanted) {
  for (const end = Date.now() + PATIENCE_MS; ; ) {
    const got = await asks();
    if (wanted instanceof RegExp ? wanted.test(got) : JSON.stringify(got) === JSON.stringify(wanted)) return;
    assert.ok(Date.now() < end, `it is ${JSON.stringify(got)}, not ${wanted instanceof RegExp ? wanted : JSON.stringify(wanted)}`);
  }
}

/** Says yes in a dialog, with a text where it asks for one. */
export async function answer(page, verb, text) {
  const dialog = page.getByRole("dialog");
  if (text !== undefined) await dialog.getByRole("textbox").fill(text);
  await dialog.getByRole("button", { name: verb, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}

/** What axe-core finds, which looks at a page of one moment: without `preload` it waits for nothing while the page goes on. */
export async function axeFinds(page) {
  const found = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"], preload: false }));
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`);
}
