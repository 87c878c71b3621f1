// Owns: which words the editor of programs offers where, without a browser: `‸` is where the cursor stands.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";

const here = join(import.meta.dirname, "../src");
const built = await build({ entryPoints: [join(here, "schema.ts")], bundle: true, write: false, format: "esm", logLevel: "error" });
const { place } = await import(`data:text/javascript,${encodeURIComponent(built.outputFiles[0].text)}`);
const schema = (name) => JSON.parse(readFileSync(join(here, `${name}.schema.json`), "utf8"));
const [program, trigger] = [schema("program"), schema("trigger")];

const offered = (of, text) => {
  const found = place(of, text.split("‸")[0], ["GET", "GETEX", "SET", "ZADD"]);
  return { ...found, words: found.offers.map(({ word }) => word) };
};

test("names of an object that may stand there, without those that do", () => {
  const { words, before, after } = offered(program, '{"params": [], ‸');
  assert.deepEqual([before, after], ['"', '": ']);
  assert.deepEqual(words, ["description", "keys", "as", "limits", "steps", "cases"]);
  assert.deepEqual(offered(program, '{"params": [{"name": "a", "t‸').words, ["type"]);
  assert.equal(offered(program, '{"st‸').before, "");
});

test("what a step may have is what goes with what it has", () => {
  const any = offered(program, '{"steps": [{"‸').words;
  for (const word of ["do", "let", "if", "switch", "for", "return"]) assert.ok(any.includes(word), word);
  assert.deepEqual(offered(program, '{"steps": [{"if": true, "‸').words, ["then", "else"]);
  const beside = offered(program, '{"steps": [{"do": ["GET", "k"], "‸').words;
  assert.equal(beside[0], "as");
  assert.ok(!beside.includes("let") && !beside.includes("if"), String(beside));
  assert.ok(!offered(program, '{"steps": [{"let": {"a": 1}, "‸').words.includes("do"));
});

test("values, functions and commands", () => {
  assert.deepEqual(offered(program, '{"params": [{"type": "i‸').words, ["int"]);
  assert.deepEqual(offered(program, '{"steps": [{"do": ["ge‸').words, ["GET", "GETEX"]);
  assert.deepEqual(offered(program, '{"steps": [["z‸').words, ["ZADD"]);
  assert.deepEqual(offered(program, '{"steps": [["ZADD", "g‸').words, [], "an argument is no command");
  assert.ok(offered(program, '{"steps": [{"return": {"co‸').words.includes("coalesce"));
  assert.deepEqual(offered(program, '{"steps": [{"return": {"coalesce": [1], "‸').words, [], "a function stands alone");
  assert.deepEqual(offered(program, '{"steps": [{"for": "x", "in": [], "do": [{"if": {"‸').words.includes("and"), true);
  assert.deepEqual(offered(trigger, '{"on": "e‸').words, ["expire", "evict"]);
  assert.deepEqual(offered(trigger, '{"on": ["set", "‸').words, ["set", "delete", "expire", "evict"]);
});

test("what is no JSON yet is no reason to fail", () => {
  for (const text of ["", "}", "]]]", '"', '{"a\\"', "{]", '{"a":::', '[{"', "\u0000", '{"steps": [{"do": ["\\']) {
    assert.ok(Array.isArray(offered(program, `${text}‸`).words), text);
  }
  assert.deepEqual(offered(program, '{"description": "{ \\" [ ", "‸').words.includes("steps"), true);
});
