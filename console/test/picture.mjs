// Owns: the pictures of the console that README shows: `node test/picture.mjs FOLDER` writes console.png and console-dark.png, the
// overview of a server that has worked for some time. WEFT names the program. Does not own: what is tested.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { close, launch, open, skip } from "./browser.mjs";
import { freePort, Server } from "./server.mjs";

/** The overview has a point a second: enough of them for its lines to be seen. */
const SECONDS = 100;
/** What is asked meanwhile, by whom and how much of it. */
const LOADS = [
  ["-3", "-c", "40", "--mix", "get=80,set=15,hset=5", "--rps", "9000"],
  ["-4", "-c", "4", "--mux", "100", "--mix", "get=9,incr=1", "--rps", "14000"],
];

const folder = process.argv[2];
if (skip || folder === undefined) {
  console.error(skip || "picture.mjs FOLDER");
  process.exit(2);
}
const server = new Server(await freePort());
await server.start();
const loads = LOADS.map((flags) => {
  const words = ["bench", "-p", server.port, "-r", "200000", "-d", "120", "--duration", SECONDS, ...flags];
  return spawn(process.env.WEFT, words.map(String), { stdio: "ignore" });
});
const worked = loads.map((load) => once(load, "exit"));
await launch();
try {
  const tabs = [];
  for (const scheme of ["light", "dark"]) {
    const tab = await open(server, { width: 1320, height: 740, scheme });
    await tab.go("overview");
    tabs.push([tab, scheme === "light" ? "console.png" : "console-dark.png"]);
  }
  console.log(`the server works for ${SECONDS} seconds`);
  await Promise.race(worked);
  for (const [{ page }, name] of tabs) {
    await page.screenshot({ path: join(folder, name) });
    console.log(join(folder, name));
  }
} finally {
  loads.forEach((load) => load.kill());
  await close();
  await server.end();
}
