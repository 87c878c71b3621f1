// Owns: that what is edited comes back as it was: JSON laid out and taken together again, bytes as texts. Without a browser.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";

async function load(name) {
  const entry = join(import.meta.dirname, "../src", name);
  const built = await build({ entryPoints: [entry], bundle: true, write: false, format: "esm", logLevel: "error" });
  return import(`data:text/javascript,${encodeURIComponent(built.outputFiles[0].text)}`);
}
const { compact, pretty } = await load("json.ts");
const { asText, editable, ofHex, ofText, toHex, toText } = await load("bytes.ts");

test("JSON is laid out and taken together token by token", () => {
  const texts = ['{"a":1.0,"a":2,"b":[],"c":{}}', "[12345678901234567890,1e400,-0]", '["\\u00e9","a: b, [c]","\\\\","\\""]', '{"a":[{"b":null},[true]]}', '"x"', "7"];
  for (const text of texts) {
    assert.equal(compact(pretty(text)), text);
    assert.deepEqual(JSON.parse(pretty(text)), JSON.parse(text));
  }
  assert.equal(pretty('{"a":[1,{}],"b":[]}'), '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}');
  assert.equal(compact(' { "a b" : [ 1 , 2 ] } '), '{"a b":[1,2]}');
});

test("bytes that are a text are the same bytes again", () => {
  for (const text of ["", "a", "a\nb\n", "a\r\nb\r\n", "\ufeffmark", "日本 🙂", "a\tb"]) {
    const { text: shown, back } = editable(ofText(text));
    assert.ok(!shown.includes("\r"), "a field would drop it");
    assert.deepEqual([...back(shown)], [...ofText(text)], JSON.stringify(text));
    assert.equal(toText(ofText(text)), text);
  }
  assert.deepEqual([...editable(ofText("a\r\nb")).back("a\nc\nb")], [...ofText("a\r\nc\r\nb")]);
  // Line ends of two kinds, and what is no text, are edited as bytes.
  for (const bytes of [ofText("a\r\nb\n"), ofText("a\rb"), new Uint8Array([0xff]), new Uint8Array([0])]) {
    assert.equal(editable(bytes), null);
    assert.deepEqual([...ofHex(toHex(bytes))], [...bytes]);
  }
  assert.equal(asText(new Uint8Array([0xed, 0xa0, 0x80])), null, "half of a pair is no text");
});
