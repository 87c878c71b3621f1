// Owns: Keys: what was scanned, as a list or as a tree, filtered, and one key beside it. Does not own: a key's value (`./value`).
//
// Millions of keys are never all here: SCAN goes on to KEYS_MAX, then waits for a button, and those that were here make room for
// the next. They are kept in order as they come. Of the list only the rows that can be seen are elements, and of them alone type,
// time and size are asked for.

import { call, pipeline, Refusal, type Reply } from "./api";
import { asText, count, duration, many, ofText, same, shown, size, toText, type Bytes } from "./bytes";
import { attempt, confirm, field, fill, h } from "./dom";
import type { Page } from "./page";
import { may } from "./rights";
import { showKey } from "./value";

const KEYS_MAX = 100_000;
/** Half a millisecond of the server. */
const SCAN_COUNT = 4000;
const ROW_PX = 28;

export interface Facts {
  type: string;
  ttl_ms: number;
  bytes: number | null;
}

interface Entry {
  key: Bytes;
  text: string;
  /** The text tells it from all other keys: that of bytes that are none may be another key's. */
  isText: boolean;
  facts?: Facts | "asked";
}

/** A row of the list: a key, or a folder of the tree. */
type Row = { entry: Entry; depth: number; label: string } | { folder: string; depth: number; label: string; count: number };

/** The key that another page asks this one to show. */
let asked: { db: number; key: Bytes } | undefined;

/** Goes to Keys and shows this one. */
export function openKey(db: number, key: Bytes): void {
  asked = { db, key };
  location.hash = "#/keys";
}

export const keys: Page = {
  name: "keys",
  title: "Keys",
  needs: ["scan"],
  show(into, signal) {
    const db = h("input", { type: "number", min: 0, max: 255, value: 0, class: "narrow" });
    const pattern = h("input", { type: "search", placeholder: "*", value: "" });
    const types = ["any", "string", "hash", "list", "set", "zset", "stream"].map((type) => h("option", { value: type === "any" ? "" : type }, type));
    const type = h("select", {}, ...types);
    const ttl = h("select", {}, h("option", { value: "" }, "any"), h("option", { value: "some" }, "has a time"), h("option", { value: "none" }, "has none"));
    const least = h("input", { type: "number", min: 0, placeholder: "0", class: "narrow" });
    const separator = h("input", { value: ":", class: "tiny", maxlength: 4 });
    const tree = h("input", { type: "checkbox", checked: true });
    const status = h("p", { class: "faint", role: "status" });
    const more = h("button", { type: "button", hidden: true }, "Continue");
    const stop = h("button", { type: "button", hidden: true }, "Stop");
    const form = h(
      "form",
      { class: "row filters" },
      field("Database", db),
      field("Pattern", pattern),
      field("Type", type),
      field("Time", ttl),
      field("At least bytes", least),
      h("button", { class: "strong", type: "submit" }, "Scan"),
      stop,
      may("set") && h("button", { type: "button", onclick: () => void attempt(create) }, "New key"),
    );
    const list = h("div", { class: "keys-list", tabindex: 0, role: "listbox", "aria-label": "Keys" });
    const tall = h("div", { class: "tall" });
    list.append(tall);
    const detail = h("section", { class: "detail card", "aria-label": "Key" }, h("p", { class: "faint" }, "Choose a key."));
    const options = h("div", { class: "row middle" }, h("label", { class: "line" }, tree, "tree by"), h("label", { class: "line" }, h("span", { class: "hidden" }, "Separator"), separator), status, more);
    fill(into, form, options, h("div", { class: "split" }, list, detail));

    let entries: Entry[] = [];
    // The same in the order of their names, but for those that came since the list was last drawn.
    let sorted: Entry[] = [];
    let fresh: Entry[] = [];
    // How many made room for others.
    let passed = 0;
    let cursor = "0";
    let total = 0;
    let scanning: AbortController | undefined;
    let open = new Set<string>();
    let rows: Row[] = [];
    let chosen = -1;
    let showing: AbortController | undefined;
    signal.addEventListener("abort", () => {
      scanning?.abort();
      showing?.abort();
    });

    const rowsOf = () => {
      const by = separator.value;
      if (!tree.checked || by === "") return entries.map((entry): Row => ({ entry, depth: 0, label: entry.text }));
      // Keys with a common beginning stand together, since they are sorted.
      sorted = merged(sorted, fresh);
      fresh = [];
      const out: Row[] = [];
      const walk = (from: number, to: number, prefix: string, depth: number) => {
        let at = from;
        while (at < to) {
          const entry = sorted[at]!;
          const rest = entry.text.slice(prefix.length);
          const cut = rest.indexOf(by);
          let end = at + 1;
          if (cut < 0) {
            out.push({ entry, depth, label: rest === "" ? "(this)" : rest });
          } else {
            const folder = prefix + rest.slice(0, cut + by.length);
            end = endOf(sorted, folder, end, to);
            if (end - at === 1) {
              out.push({ entry, depth, label: rest });
            } else {
              out.push({ folder, depth, label: rest.slice(0, cut + by.length), count: end - at });
              if (open.has(folder)) walk(at, end, folder, depth + 1);
            }
          }
          at = end;
        }
      };
      walk(0, sorted.length, "", 0);
      return out;
    };
    const redraw = () => {
      rows = rowsOf();
      chosen = Math.min(chosen, rows.length - 1);
      tall.style.height = `${rows.length * ROW_PX}px`;
      draw();
    };
    let asking = false;
    const draw = () => {
      const first = Math.max(0, Math.floor(list.scrollTop / ROW_PX) - 5);
      const last = Math.min(rows.length, first + Math.ceil((list.clientHeight || 400) / ROW_PX) + 10);
      const wanted: Entry[] = [];
      const elements = rows.slice(first, last).map((row, offset) => {
        const at = first + offset;
        const element = h("div", {
          class: `key${at === chosen ? " chosen" : ""}`,
          role: "option",
          id: `row${at}`,
          "aria-selected": at === chosen ? "true" : "false",
          onclick: () => choose(at),
        });
        element.style.top = `${at * ROW_PX}px`;
        element.style.paddingInlineStart = `${8 + row.depth * 16}px`;
        if ("folder" in row) {
          fill(element, h("span", { class: "arrow", "aria-hidden": "true" }, open.has(row.folder) ? "▾" : "▸"), h("span", { class: "name" }, row.label), h("span", { class: "faint" }, count(row.count)));
          return element;
        }
        const { entry } = row;
        if (entry.facts === undefined) wanted.push(entry);
        const facts = typeof entry.facts === "object" ? entry.facts : undefined;
        fill(
          element,
          h("span", { class: "arrow" }),
          h("span", { class: "name" }, row.label),
          h("span", { class: "faint" }, facts === undefined ? "" : facts.ttl_ms >= 0 ? duration(facts.ttl_ms) : ""),
          h("span", { class: "type" }, facts?.type ?? ""),
          h("span", { class: "faint size" }, facts?.bytes === null || facts === undefined ? "" : size(facts.bytes)),
        );
        return element;
      });
      fill(tall, ...elements);
      if (chosen >= 0) list.setAttribute("aria-activedescendant", `row${chosen}`);
      if (wanted.length > 0 && !asking) {
        asking = true;
        wanted.forEach((entry) => (entry.facts = "asked"));
        void attempt(async () => {
          await learn(Number(db.value), wanted, signal);
        }).finally(() => {
          asking = false;
          if (!signal.aborted) draw();
        });
      }
    };
    const choose = (at: number) => {
      const row = rows[at];
      if (row === undefined) return;
      chosen = at;
      list.scrollTop = Math.min(Math.max(list.scrollTop, (at + 1) * ROW_PX - list.clientHeight), at * ROW_PX);
      if ("folder" in row) {
        if (!open.delete(row.folder)) open.add(row.folder);
        redraw();
        return;
      }
      draw();
      present(row.entry.key);
    };
    const present = (key: Bytes) => {
      showing?.abort();
      showing = new AbortController();
      const changed = (kind: "gone" | "renamed", name?: Bytes) => {
        const isOther = (entry: Entry) => !same(entry.key, key);
        [entries, sorted, fresh] = [entries.filter(isOther), sorted.filter(isOther), fresh.filter(isOther)];
        if (kind === "renamed" && name !== undefined) {
          put([entryOf(name)]);
          present(name);
        }
        redraw();
      };
      void showKey(detail, Number(db.value), key, showing.signal, changed);
    };
    const put = (more: Entry[]) => {
      for (const entry of more) {
        entries.push(entry);
        fresh.push(entry);
      }
    };
    const create = async () => {
      const name = await confirm("New key", "A string without anything in it; other types begin with their command.", { verb: "Make it", field: { label: "Name", value: "" } });
      if (name === null) return;
      const made = await call(Number(db.value), ["SET", name, "", "NX"]);
      if (made === null) throw new Refusal("there is a key of this name already", 409);
      const entry = entryOf(ofText(name));
      put([entry]);
      redraw();
      present(entry.key);
    };

    const say = () => {
      const here = passed === 0 ? "" : `, the last ${count(entries.length)} here`;
      const what = `${count(passed + entries.length)} of ${many(total, "key", "keys")}${here}`;
      const end = cursor === "0" ? "" : scanning === undefined ? ", stopped" : " …";
      status.textContent = what + end;
      more.hidden = cursor === "0" || scanning !== undefined;
      stop.hidden = scanning === undefined;
    };
    const wantedFacts = () => ttl.value !== "" || Number(least.value) > 0;
    const isWanted = (entry: Entry) => {
      if (typeof entry.facts !== "object") return false;
      if (ttl.value === "some" && entry.facts.ttl_ms < 0) return false;
      if (ttl.value === "none" && entry.facts.ttl_ms >= 0) return false;
      return (entry.facts.bytes ?? 0) >= Number(least.value);
    };
    const scan = () =>
      attempt(async () => {
        scanning?.abort();
        const own = new AbortController();
        scanning = own;
        const database = Number(db.value);
        const seen = new Set(entries.map(unique));
        // Drawing costs more the more there are: it has a tenth of the time.
        let due = performance.now();
        try {
          total = (await call(database, ["DBSIZE"], own.signal)) as number;
          do {
            const words = ["SCAN", cursor, "COUNT", SCAN_COUNT];
            if (pattern.value !== "") words.push("MATCH", pattern.value);
            if (type.value !== "") words.push("TYPE", type.value);
            const [next, names] = (await call(database, words, own.signal)) as [Bytes, Bytes[]];
            cursor = toText(next);
            let found = names.map(entryOf);
            found = found.filter((entry) => !seen.has(unique(entry)) && seen.add(unique(entry)));
            if (wantedFacts() && found.length > 0) {
              await learn(database, found, own.signal);
              found = found.filter(isWanted);
            }
            put(found);
            if (performance.now() > due) {
              const began = performance.now();
              redraw();
              due = performance.now() + Math.max(250, 9 * (performance.now() - began));
            }
            say();
          } while (cursor !== "0" && entries.length < KEYS_MAX);
        } finally {
          if (scanning === own) scanning = undefined;
          redraw();
          say();
        }
      });
    const clear = () => {
      [entries, sorted, fresh] = [[], [], []];
      chosen = -1;
      list.scrollTop = 0;
    };
    const begin = () => {
      clear();
      passed = 0;
      open = new Set();
      cursor = "0";
      void scan();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      begin();
    });
    stop.addEventListener("click", () => scanning?.abort());
    more.addEventListener("click", () => {
      if (entries.length >= KEYS_MAX) {
        passed += entries.length;
        clear();
      }
      void scan();
    });
    tree.addEventListener("change", redraw);
    separator.addEventListener("input", redraw);
    list.addEventListener("scroll", draw, { passive: true });
    list.addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.floor(list.clientHeight / ROW_PX) - 1);
      const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length };
      const step = steps[event.key];
      if (step !== undefined) {
        event.preventDefault();
        chosen = Math.min(rows.length - 1, Math.max(0, chosen + step));
        list.scrollTop = Math.min(Math.max(list.scrollTop, (chosen + 1) * ROW_PX - list.clientHeight), chosen * ROW_PX);
        draw();
      } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose(chosen);
      }
    });
    const wanted = asked;
    asked = undefined;
    if (wanted !== undefined) db.value = String(wanted.db);
    begin();
    if (wanted !== undefined) present(wanted.key);
  },
};

function entryOf(key: Bytes): Entry {
  const text = asText(key);
  return { key, text: text ?? shown(key, 4096), isText: text !== null };
}

/** What no other key is called. */
const unique = (entry: Entry) => (entry.isText ? entry.text : `\0${entry.text}`);

/** Two lists in the order of their names as one; only the second one has to be sorted. */
function merged(sorted: Entry[], fresh: Entry[]): Entry[] {
  if (fresh.length === 0) return sorted;
  const more = [...fresh].sort((one, other) => (one.text < other.text ? -1 : 1));
  const out: Entry[] = [];
  let at = 0;
  for (const entry of sorted) {
    while (at < more.length && more[at]!.text < entry.text) out.push(more[at++]!);
    out.push(entry);
  }
  while (at < more.length) out.push(more[at++]!);
  return out;
}

/** Where the names that begin so end, in steps that grow and then shrink: a folder of thousands takes some twenty looks. */
function endOf(sorted: Entry[], folder: string, from: number, to: number): number {
  const begins = (at: number) => sorted[at]!.text.startsWith(folder);
  let [low, step] = [from, 1];
  while (low + step < to && begins(low + step)) [low, step] = [low + step, step * 2];
  let high = Math.min(to, low + step);
  // All below low begin so, none from high on does.
  while (low < high) {
    const middle = (low + high) >> 1;
    if (begins(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Asks for type, time and size of some keys. */
async function learn(db: number, entries: Entry[], signal: AbortSignal): Promise<void> {
  const ours = entries.filter((entry) => entry.isText);
  for (const entry of entries) if (!entry.isText) entry.facts = { type: "", ttl_ms: -1, bytes: null };
  const commands = ours.flatMap(({ key }) => [["TYPE", key], ["PTTL", key], ["MEMORY", "USAGE", key, "SAMPLES", 5]]);
  if (commands.length === 0) return;
  const replies = await pipeline(db, commands, signal);
  const number = (reply: Reply | Refusal | undefined) => (typeof reply === "number" ? reply : null);
  ours.forEach((entry, at) => {
    const [type, ttl, bytes] = replies.slice(3 * at, 3 * at + 3);
    const name = type instanceof Uint8Array ? toText(type) : "";
    entry.facts = { type: name === "none" ? "gone" : name, ttl_ms: number(ttl) ?? -1, bytes: number(bytes) };
  });
}
