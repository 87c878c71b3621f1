// Owns: replies as `weft cli` shows them.

import type { Reply } from "./api";
import { escaped, type Bytes } from "./bytes";

/** Lines of one reply; more are counted. */
const LINES_MAX = 5000;

export function formatted(reply: Reply): string {
  const lines: string[] = [];
  write(reply, "", lines);
  if (lines.length <= LINES_MAX) return lines.join("\n");
  return [...lines.slice(0, LINES_MAX), `… ${lines.length - LINES_MAX} lines more`].join("\n");
}

function write(reply: Reply, indent: string, lines: string[]): void {
  if (!Array.isArray(reply) || reply.length === 0) {
    lines.push(one(reply));
    return;
  }
  const width = String(reply.length).length;
  reply.forEach((item, at) => {
    const head = `${String(at + 1).padStart(width)}) `;
    const inner: string[] = [];
    write(item, indent + " ".repeat(head.length), inner);
    inner.forEach((line, row) => lines.push((row === 0 ? head : " ".repeat(head.length)) + line));
  });
}

function one(reply: Reply): string {
  if (reply === null) return "(nil)";
  if (typeof reply === "number") return `(integer) ${reply}`;
  if (typeof reply === "string") return reply;
  if (Array.isArray(reply)) return "(empty array)";
  return `"${escaped(reply as Bytes)}"`;
}

/** Splits a line as the prompt does: quotes, escapes in double quotes. Null where a quote is open. */
export function words(line: string): (string | Bytes)[] | null {
  const out: (string | Bytes)[] = [];
  let at = 0;
  for (;;) {
    while (/\s/.test(line[at] ?? "")) at++;
    if (at >= line.length) return out;
    const quote = line[at] === '"' || line[at] === "'" ? line[at] : undefined;
    if (quote === undefined) {
      const begin = at;
      while (at < line.length && !/\s/.test(line[at]!)) at++;
      out.push(line.slice(begin, at));
      continue;
    }
    at++;
    const bytes: number[] = [];
    const encoder = new TextEncoder();
    for (;;) {
      const char = line[at];
      if (char === undefined) return null;
      if (char === quote) break;
      const hex = /^\\x([0-9a-fA-F]{2})/.exec(line.slice(at, at + 4));
      if (quote === '"' && hex !== null) {
        bytes.push(parseInt(hex[1]!, 16));
        at += 4;
        continue;
      }
      if (char === "\\" && at + 1 < line.length && (quote === '"' || line[at + 1] === "'")) {
        const named: Record<string, string> = { n: "\n", r: "\r", t: "\t", b: "\b", a: "\u0007" };
        const next = line[at + 1]!;
        bytes.push(...encoder.encode(quote === '"' ? (named[next] ?? next) : next));
        at += 2;
        continue;
      }
      const whole = String.fromCodePoint(line.codePointAt(at)!);
      bytes.push(...encoder.encode(whole));
      at += whole.length;
    }
    at++;
    if (at < line.length && !/\s/.test(line[at]!)) return null;
    out.push(new Uint8Array(bytes));
  }
}
