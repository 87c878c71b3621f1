// Owns: making what the server embeds from the sources: one script, one style sheet, one page. `node build.mjs FOLDER` writes it
// elsewhere, which is how `scripts/console --check` compares. The same sources and versions give the same bytes.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const here = import.meta.dirname;
const out = process.argv[2] ?? join(here, "../crates/server/src/http/console");
mkdirSync(out, { recursive: true });
// Its licence wants to stand wherever it is.
const licence = readFileSync(join(here, "node_modules/uplot/LICENSE"), "utf8").trim();
await build({
  entryPoints: { app: join(here, "src/app.ts") },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: { js: `/*! It has uPlot, https://github.com/leeoniya/uPlot:\n${licence}\n*/` },
  absWorkingDir: here,
  logLevel: "warning",
});
copyFileSync(join(here, "src/index.html"), join(out, "index.html"));
