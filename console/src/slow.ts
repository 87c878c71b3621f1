// Owns: Slow and hot: the slow log, statistics and times of commands, errors by kind, the keys that are asked for most.

import { call, follow, pipeline, Refusal, type Reply } from "./api";
import { count, micro, ofBase64, shown, toText, type Bytes } from "./bytes";
import { attempt, confirm, fill, h, say, table } from "./dom";
import { openKey } from "./keys";
import { type Page, repeat } from "./page";
import { may } from "./rights";

const EVERY_MS = 5000;
const ENTRIES = 128;
const RETRY_MS = 1000;

interface Stat {
  name: string;
  calls: number;
  us: number;
  rejected: number;
  failed: number;
  buckets: [number, number][];
}

/** What the server's samples say, each second. */
interface Hot {
  requests_per_s: number;
  keys: { db: number; base64: string; bytes: number; per_s: number }[];
}

/** What so many of all calls do not exceed, from the powers of two that the server counts. */
function percentile({ buckets }: Stat, part: number): number {
  const total = buckets.at(-1)?.[1] ?? 0;
  return buckets.find(([, seen]) => seen >= total * part)?.[0] ?? 0;
}

/** A histogram as bars: how many took up to how long. */
function bars({ name, buckets }: Stat): HTMLElement {
  let before = 0;
  const each = buckets.map(([us, seen]) => {
    const here = seen - before;
    before = seen;
    return [us, here] as const;
  });
  const most = Math.max(1, ...each.map(([, here]) => here));
  const bar = ([us, here]: readonly [number, number]) => {
    const element = h("i", { title: `up to ${micro(us)}: ${count(here)}` });
    element.style.blockSize = `${Math.max(6, (here / most) * 100)}%`;
    return element;
  };
  return h("span", { class: "bars", role: "img", "aria-label": `${name}: ${each.map(([us, here]) => `${count(here)} up to ${micro(us)}`).join(", ")}` }, ...each.map(bar));
}

function lines(text: string, prefix: string): [string, Record<string, number>][] {
  return text
    .split("\r\n")
    .filter((line) => line.startsWith(prefix))
    .map((line) => {
      const colon = line.indexOf(":");
      const facts = line.slice(colon + 1).split(",").map((part) => part.split("="));
      return [line.slice(prefix.length, colon), Object.fromEntries(facts.map(([name, value]) => [name ?? "", Number(value)]))];
    });
}

export const slow: Page = {
  name: "slow",
  title: "Slow and hot",
  needs: ["slowlog|get"],
  show(into, signal) {
    const log = h("div");
    const stats = h("div");
    const errors = h("div");
    const hot = h("div");
    void showHot(hot, signal);
    const reset = () =>
      attempt(async () => {
        if ((await confirm("Empty the slow log?", "", { verb: "Empty it", danger: true })) === null) return;
        await call(0, ["SLOWLOG", "RESET"]);
        say("The slow log is empty.");
        await look();
      });
    fill(
      into,
      h("section", {}, h("div", { class: "row" }, h("h2", {}, "Slow log"), h("span", { class: "row end" }, may("slowlog|reset") && h("button", { type: "button", onclick: () => void reset() }, "Empty it …"))), log),
      h("section", {}, h("h2", {}, "Hot keys"), hot),
      h("section", {}, h("h2", {}, "Commands"), stats),
      h("section", {}, h("h2", {}, "Errors"), errors),
    );
    const look = async () => {
      const [entries, info, histogram] = await pipeline(0, [["SLOWLOG", "GET", ENTRIES], ["INFO", "commandstats", "errorstats"], ["LATENCY", "HISTOGRAM"]], signal);
      const text = info instanceof Uint8Array ? toText(info) : "";
      const buckets = histogram instanceof Refusal ? new Map<string, [number, number][]>() : readHistograms(histogram as Reply[]);
      if (entries instanceof Refusal) fill(log, h("p", { class: "bad" }, entries.message));
      else {
        fill(
          log,
          table(
            "Slow log",
            [
              { title: "When", of: (row) => new Date((row[1] as number) * 1000).toLocaleString(), sort: (row) => row[1] as number },
              { title: "Took", number: true, of: (row) => micro(row[2] as number), sort: (row) => row[2] as number },
              { title: "Command", of: (row) => h("code", { class: "wrap" }, (row[3] as Bytes[]).map((word) => shown(word, 128)).join(" ")) },
              { title: "Client", of: (row) => `${shown(row[4] as Bytes)} ${shown(row[5] as Bytes)}` },
            ],
            entries as Reply[][],
            "nothing was slow",
          ),
        );
      }
      const rows = lines(text, "cmdstat_").map(([name, facts]): Stat => ({ name, calls: facts["calls"] ?? 0, us: facts["usec"] ?? 0, rejected: facts["rejected_calls"] ?? 0, failed: facts["failed_calls"] ?? 0, buckets: buckets.get(name) ?? [] }));
      rows.sort((one, other) => other.us - one.us);
      fill(
        stats,
        table(
          "Commands",
          [
            { title: "Command", of: (row) => row.name.replace("|", " "), sort: (row) => row.name },
            { title: "Calls", number: true, of: (row) => count(row.calls), sort: (row) => row.calls },
            { title: "Time", number: true, of: (row) => micro(row.us), sort: (row) => row.us },
            { title: "Each", number: true, of: (row) => micro(row.calls === 0 ? 0 : row.us / row.calls), sort: (row) => (row.calls === 0 ? 0 : row.us / row.calls) },
            { title: "99 % within", number: true, of: (row) => (row.buckets.length === 0 ? "–" : micro(percentile(row, 0.99))), sort: (row) => percentile(row, 0.99) },
            { title: "How long", of: (row) => (row.buckets.length === 0 ? "" : bars(row)) },
            { title: "Refused", number: true, of: (row) => count(row.rejected), sort: (row) => row.rejected },
            { title: "Failed", number: true, of: (row) => count(row.failed), sort: (row) => row.failed },
          ],
          rows,
        ),
      );
      fill(errors, table("Errors", [{ title: "Kind", of: ([name]) => name }, { title: "Times", number: true, of: ([, facts]) => count(facts["count"] ?? 0), sort: ([, facts]) => facts["count"] ?? 0 }], lines(text, "errorstat_"), "no errors"));
    };
    repeat(EVERY_MS, signal, async () => {
      // What somebody reads does not move under him.
      if (!into.contains(document.activeElement) || stats.childElementCount === 0) await look();
    });
  },
};

/** Shows which keys are asked for most. The server takes samples only as long as this is followed, so it is not while nobody can
 * see the page. */
async function showHot(into: HTMLElement, signal: AbortSignal): Promise<void> {
  fill(into, h("p", { class: "faint" }, "Samples are taken while this page is shown."));
  while (!signal.aborted) {
    await new Promise<void>((seen) => {
      const look = () => {
        if (document.hidden && !signal.aborted) return;
        document.removeEventListener("visibilitychange", look);
        seen();
      };
      document.addEventListener("visibilitychange", look);
      signal.addEventListener("abort", look, { once: true });
      look();
    });
    const own = new AbortController();
    const end = () => own.abort();
    const hide = () => document.hidden && own.abort();
    signal.addEventListener("abort", end);
    document.addEventListener("visibilitychange", hide);
    try {
      if (!signal.aborted) await follow("/v1/console/hot", { signal: own.signal }, (data, event) => event === "message" && drawHot(into, JSON.parse(data) as Hot));
    } catch (error) {
      if (error instanceof Refusal) return fill(into, h("p", { class: "bad" }, error.message));
    } finally {
      signal.removeEventListener("abort", end);
      document.removeEventListener("visibilitychange", hide);
    }
    // The server has gone: it is asked again until it is there.
    if (!signal.aborted && !document.hidden) await new Promise((over) => setTimeout(over, RETRY_MS));
  }
}

function drawHot(into: HTMLElement, found: Hot): void {
  // A key that somebody is about to open does not move away under him.
  if (into.contains(document.activeElement) || into.matches(":hover")) return;
  const part = (per_s: number) => Math.min(1, per_s / Math.max(1, found.requests_per_s));
  const rows = found.keys.map((key) => ({ ...key, name: ofBase64(key.base64) }));
  const name = (row: (typeof rows)[number]) => {
    const text = shown(row.name, 200);
    if (row.name.length < row.bytes) return h("span", { class: "wrap" }, `${text} … (${count(row.bytes)} bytes)`);
    return h("button", { type: "button", class: "plain wrap", onclick: () => openKey(row.db, row.name) }, text);
  };
  fill(
    into,
    table(
      "Hot keys",
      [
        { title: "Key", of: name },
        { title: "Database", number: true, of: (row) => count(row.db) },
        { title: "Requests a second", number: true, of: (row) => count(row.per_s) },
        { title: "Of all", number: true, of: (row) => `${(100 * part(row.per_s)).toFixed(1)} %` },
      ],
      rows,
      "no key is asked for often",
    ),
    h("p", { class: "faint" }, `By samples of the last ten seconds, in which ${count(found.requests_per_s)} requests a second had keys. What scripts, programs and transactions do is counted by their keys when they are asked for.`),
  );
}

function readHistograms(list: Reply[]): Map<string, [number, number][]> {
  const all = new Map<string, [number, number][]>();
  for (let at = 0; at + 1 < list.length; at += 2) {
    const facts = list[at + 1] as Reply[];
    const place = facts.findIndex((item) => item instanceof Uint8Array && toText(item) === "histogram_usec");
    const flat = (facts[place + 1] ?? []) as number[];
    const buckets: [number, number][] = [];
    for (let bucket = 0; bucket + 1 < flat.length; bucket += 2) buckets.push([flat[bucket]!, flat[bucket + 1]!]);
    all.set(toText(list[at] as Bytes), buckets);
  }
  return all;
}
