// Owns: one key: its value as its type is, editing it, its time, its name, its end. Does not own: which keys there are (`./keys`).

import { call, getString, putString, type Argument, type Reply } from "./api";
import { asText, count, duration, editable, many, ofHex, ofText, shown, size, toHex, toText, type Bytes } from "./bytes";
import { attempt, type Column, confirm, field, fill, h, say, table } from "./dom";
import { compact, pretty } from "./json";
import { may } from "./rights";

/** Bytes of a string that are shown; more is read by programs. */
const STRING_BYTES_MAX = 1 << 20;
const PAGE = 100;

type Changed = (kind: "gone" | "renamed", name?: Bytes) => void;

/** What the parts of this page share. */
interface Shown {
  db: number;
  key: Bytes;
  signal: AbortSignal;
  run(...words: Argument[]): Promise<Reply>;
  /** Shows the key anew. */
  again(): Promise<void>;
}

export async function showKey(into: HTMLElement, db: number, key: Bytes, signal: AbortSignal, changed: Changed): Promise<void> {
  const run = (...words: Argument[]) => call(db, words, signal);
  const again = () => attempt(() => draw());
  const shownKey: Shown = { db, key, signal, run, again };
  const draw = async () => {
    const type = toText((await run("TYPE", key)) as Bytes);
    if (signal.aborted) return;
    if (type === "none") {
      fill(into, h("h2", { class: "wrap" }, shown(key)), h("p", { class: "faint" }, "This key is gone: deleted, or its time has come."));
      return;
    }
    const [ttl, bytes, encoding] = await Promise.all([
      run("PTTL", key).catch(() => null),
      run("MEMORY", "USAGE", key).catch(() => null),
      run("OBJECT", "ENCODING", key).catch(() => null),
    ]);
    const body = h("div", { class: "value" });
    const facts = [
      type,
      encoding instanceof Uint8Array ? toText(encoding) : "",
      typeof bytes === "number" ? size(bytes) : "",
      typeof ttl === "number" && ttl >= 0 ? `${duration(ttl)} left` : "kept until it is deleted",
    ];
    fill(
      into,
      h("h2", { class: "wrap" }, shown(key)),
      h("p", { class: "faint" }, facts.filter((fact) => fact !== "").join(" · ")),
      h(
        "p",
        { class: "row" },
        h("button", { type: "button", onclick: () => void again() }, "Look again"),
        may("expire", "persist") && h("button", { type: "button", onclick: () => void attempt(time) }, "Time …"),
        may("renamenx") && h("button", { type: "button", onclick: () => void attempt(rename) }, "Rename …"),
        may("unlink") && h("button", { type: "button", class: "danger", onclick: () => void attempt(remove) }, "Delete …"),
      ),
      body,
    );
    const viewer = VIEWERS[type];
    if (viewer === undefined) fill(body, h("p", { class: "faint" }, `A ${type} is not shown here.`));
    else await viewer(body, shownKey);
  };
  const time = async () => {
    const text = await confirm("Time to live", "Seconds from now; nothing for no time.", { verb: "Set", field: { label: "Seconds", value: "3600", optional: true } });
    if (text === null) return;
    await (text.trim() === "" ? run("PERSIST", key) : run("EXPIRE", key, text.trim()));
    say("The key's time is set.");
    await draw();
  };
  const rename = async () => {
    const name = await confirm("Rename", shown(key), { verb: "Rename", field: { label: "New name", value: asText(key) ?? "" } });
    if (name === null) return;
    if ((await run("RENAMENX", key, name)) !== 1) throw new Error("There is a key of this name already.");
    say("The key has a new name.");
    changed("renamed", ofText(name));
  };
  const remove = async () => {
    if ((await confirm("Delete this key?", shown(key), { verb: "Delete", danger: true })) === null) return;
    await run("UNLINK", key);
    say("The key is deleted.");
    changed("gone");
    await draw();
  };
  await attempt(draw);
}

type Viewer = (into: HTMLElement, key: Shown) => Promise<void>;

const VIEWERS: Record<string, Viewer> = {
  string: showString,
  hash: (into, key) => showPages(into, key, hashPages),
  list: showList,
  set: (into, key) => showPages(into, key, setPages),
  zset: (into, key) => showPages(into, key, sortedSetPages),
  stream: showStream,
};

async function showString(into: HTMLElement, { db, key, signal, run, again }: Shown): Promise<void> {
  const len = (await run("STRLEN", key)) as number;
  if (len > STRING_BYTES_MAX) {
    const begin = (await run("GETRANGE", key, 0, 4095)) as Bytes;
    fill(into, h("p", { class: "faint" }, `${size(len)}: the first 4096 bytes`), h("pre", { class: "wrap", tabindex: 0 }, asText(begin) ?? toHex(begin)));
    return;
  }
  const { bytes: before, tag } = await getString(db, key, signal);
  const written = editable(before);
  const text = written?.text ?? "";
  const forms = written === null ? ["hex"] : isJson(text) ? ["JSON", "text", "hex"] : ["text", "hex"];
  const form = h("select", {}, ...forms.map((name) => h("option", {}, name)));
  const edit = h("textarea", { class: "code", spellcheck: "false", rows: 14, readonly: !may("set") });
  const show = () => {
    if (form.value === "hex") edit.value = toHex(before);
    else edit.value = form.value === "JSON" ? pretty(text) : text;
  };
  const edited = (): Bytes | null => {
    if (form.value === "hex" || written === null) return ofHex(edit.value);
    if (form.value === "text") return written.back(edit.value);
    if (!isJson(edit.value)) throw new Error("This is not JSON; choose text to store it anyway.");
    // The lines that are shown are not stored where there were none.
    return written.back(compact(text) === text ? compact(edit.value) : edit.value);
  };
  const save = async () => {
    const bytes = edited();
    if (bytes === null) throw new Error("These are no bytes in hexadecimal digits.");
    if (!(await putString(db, key, bytes, tag))) {
      const text = "Somebody has changed this value since it was shown.";
      if ((await confirm("Changed meanwhile", text, { verb: "Overwrite", danger: true })) === null) return;
      await putString(db, key, bytes, "*");
    }
    say("Saved.");
    await again();
  };
  form.addEventListener("change", show);
  show();
  fill(into, h("div", { class: "row" }, field("As", form), h("span", { class: "faint" }, size(before.length))), field("Value", edit), may("set") && h("p", { class: "row end" }, h("button", { type: "button", class: "strong", onclick: () => void attempt(save) }, "Save")));
}

function isJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** How the pages of a collection are asked for. */
interface Pages {
  columns: string[];
  size: string;
  scan: string;
  /** How many items of a reply are one member. */
  width: number;
  put(member: string, value: Bytes): Argument[];
  remove(member: Bytes): Argument[];
  /** What a value is called; nothing where there is none. */
  value?: string;
}

const ofKey = (command: string) => command;
const hashPages: Pages = { columns: ["Field", "Value"], size: ofKey("HLEN"), scan: "HSCAN", width: 2, value: "Value", put: (field, value) => ["HSET", field, value], remove: (field) => ["HDEL", field] };
const setPages: Pages = { columns: ["Member"], size: ofKey("SCARD"), scan: "SSCAN", width: 1, put: (member) => ["SADD", member], remove: (member) => ["SREM", member] };
const sortedSetPages: Pages = { columns: ["Member", "Score"], size: ofKey("ZCARD"), scan: "ZSCAN", width: 2, value: "Score", put: (member, score) => ["ZADD", score, member], remove: (member) => ["ZREM", member] };

const nameOf = (words: Argument[]) => String(words[0]).toLowerCase();

async function showPages(into: HTMLElement, { key, run, again }: Shown, pages: Pages): Promise<void> {
  const total = (await run(pages.size, key)) as number;
  const match = h("input", { type: "search", placeholder: "*" });
  const place = h("div");
  const more = h("button", { type: "button" }, "Next page");
  const status = h("span", { class: "faint" });
  const mayPut = may(nameOf(pages.put("", ofText(""))));
  const mayRemove = may(nameOf(pages.remove(ofText(""))));
  let cursor = "0";
  const withKey = (words: Argument[]): Argument[] => [words[0]!, key, ...words.slice(1)];
  const page = async (from: string) => {
    const words: Argument[] = [pages.scan, key, from, "COUNT", PAGE];
    if (match.value !== "") words.push("MATCH", match.value);
    const [next, items] = (await run(...words)) as [Bytes, Bytes[]];
    cursor = toText(next);
    const rows: Bytes[][] = [];
    for (let at = 0; at < items.length; at += pages.width) rows.push(items.slice(at, at + pages.width));
    const columns: Column<Bytes[]>[] = pages.columns.map((title, at) => ({
      title,
      number: title === "Score",
      sort: (row) => (title === "Score" ? Number(toText(row[at]!)) : toText(row[at]!)),
      of: (row) => h("span", { class: "wrap" }, shown(row[at]!)),
    }));
    columns.push({
      title: "",
      of: (row) =>
        h(
          "span",
          { class: "row end" },
          pages.value !== undefined && mayPut && h("button", { type: "button", class: "small", "aria-label": `Edit ${shown(row[0]!, 60)}`, onclick: () => void attempt(() => put(row)) }, "Edit"),
          mayRemove && h("button", { type: "button", class: "small", "aria-label": `Remove ${shown(row[0]!, 60)}`, onclick: () => void attempt(() => remove(row[0]!)) }, "Remove"),
        ),
    });
    fill(place, table(pages.columns.join(", "), columns, rows, "nothing on this page"));
    status.textContent = `${count(rows.length)} shown of ${count(total)}`;
    more.hidden = cursor === "0" && from === "0";
    more.textContent = cursor === "0" ? "From the beginning" : "Next page";
  };
  const put = async (row?: Bytes[]) => {
    const name = row === undefined ? await confirm(`New ${pages.columns[0]!.toLowerCase()}`, "", { verb: "Go on", field: { label: pages.columns[0]!, value: "" } }) : asText(row[0]!);
    if (name === null) {
      if (row !== undefined) throw new Error("Its name is no text: use the command line.");
      return;
    }
    let value: Bytes = ofText("");
    if (pages.value !== undefined) {
      const old = editable(row?.[1] ?? value);
      if (old === null) throw new Error("Its value is no text: use the command line.");
      const answer = await confirm(name, "", { verb: "Save", field: { label: pages.value, value: old.text, lines: pages.value === "Value" } });
      if (answer === null) return;
      value = old.back(answer);
    }
    await run(...withKey(pages.put(name, value)));
    say("Saved.");
    await again();
  };
  const remove = async (member: Bytes) => {
    if ((await confirm("Remove it?", shown(member), { verb: "Remove", danger: true })) === null) return;
    await run(...withKey(pages.remove(member)));
    say("Removed.");
    await again();
  };
  more.addEventListener("click", () => void attempt(() => page(cursor)));
  match.addEventListener("change", () => void attempt(() => page("0")));
  fill(into, h("div", { class: "row" }, field("Match", match), mayPut && h("button", { type: "button", onclick: () => void attempt(() => put()) }, "Add …"), status), place, h("p", { class: "row end" }, more));
  await page("0");
}

async function showList(into: HTMLElement, { key, run, again }: Shown): Promise<void> {
  const total = (await run("LLEN", key)) as number;
  const place = h("div");
  const from = h("input", { type: "number", min: 0, max: Math.max(0, total - 1), value: 0, class: "narrow" });
  const page = async () => {
    const begin = Math.max(0, Number(from.value));
    const items = (await run("LRANGE", key, begin, begin + PAGE - 1)) as Bytes[];
    const rows = items.map((item, at) => ({ at: begin + at, item }));
    fill(
      place,
      table(
        "Elements",
        [
          { title: "Index", number: true, of: (row) => count(row.at) },
          { title: "Element", of: (row) => h("span", { class: "wrap" }, shown(row.item)) },
          { title: "", of: (row) => may("lset") && h("button", { type: "button", class: "small", "aria-label": `Edit element ${row.at}`, onclick: () => void attempt(() => edit(row.at, row.item)) }, "Edit") },
        ],
        rows,
      ),
    );
  };
  const edit = async (at: number, item: Bytes) => {
    const old = editable(item);
    if (old === null) throw new Error("It is no text: use the command line.");
    const text = await confirm(`Element ${at}`, "", { verb: "Save", field: { label: "Element", value: old.text, lines: true } });
    if (text === null) return;
    await run("LSET", key, at, old.back(text));
    await again();
  };
  const push = (end: string) => async () => {
    const text = await confirm(end === "LPUSH" ? "New first element" : "New last element", "", { verb: "Add", field: { label: "Element", value: "", lines: true } });
    if (text === null) return;
    await run(end, key, text);
    await again();
  };
  from.addEventListener("change", () => void attempt(page));
  fill(
    into,
    h(
      "div",
      { class: "row" },
      field("From", from),
      h("span", { class: "faint" }, `${many(total, "element", "elements")}, ${PAGE} a page`),
      may("lpush") && h("button", { type: "button", onclick: () => void attempt(push("LPUSH")) }, "Add first …"),
      may("rpush") && h("button", { type: "button", onclick: () => void attempt(push("RPUSH")) }, "Add last …"),
    ),
    place,
  );
  await page();
}

async function showStream(into: HTMLElement, { key, run }: Shown): Promise<void> {
  const total = (await run("XLEN", key)) as number;
  const place = h("div");
  const before = h("input", { value: "+", placeholder: "+" });
  const page = async () => {
    const entries = (await run("XREVRANGE", key, before.value || "+", "-", "COUNT", PAGE)) as [Bytes, Bytes[]][];
    fill(
      place,
      table(
        "Entries",
        [
          { title: "ID", of: ([id]) => h("span", { class: "together" }, toText(id)) },
          {
            title: "Fields",
            of: ([, fields]) => {
              const parts: string[] = [];
              for (let at = 0; at + 1 < fields.length; at += 2) parts.push(`${shown(fields[at]!, 200)}: ${shown(fields[at + 1]!)}`);
              return h("span", { class: "wrap" }, parts.join(", "));
            },
          },
        ],
        entries,
        "no entries",
      ),
    );
  };
  const flat = (reply: Reply) => {
    const all: Record<string, Reply> = {};
    const items = reply as Reply[];
    for (let at = 0; at + 1 < items.length; at += 2) all[toText(items[at] as Bytes)] = items[at + 1]!;
    return all;
  };
  const groups = ((await run("XINFO", "GROUPS", key)) as Reply[]).map(flat);
  const figure = (group: Record<string, Reply>, name: string) => (typeof group[name] === "number" ? count(group[name] as number) : group[name] instanceof Uint8Array ? toText(group[name] as Bytes) : "–");
  before.addEventListener("change", () => void attempt(page));
  fill(
    into,
    h("div", { class: "row" }, field("Up to ID", before), h("span", { class: "faint" }, `${many(total, "entry", "entries")}, the newest first`)),
    place,
    h("h3", {}, "Groups"),
    table(
      "Groups",
      [
        { title: "Name", of: (group) => figure(group, "name") },
        { title: "Consumers", number: true, of: (group) => figure(group, "consumers") },
        { title: "Pending", number: true, of: (group) => figure(group, "pending") },
        { title: "Delivered up to", of: (group) => figure(group, "last-delivered-id") },
        { title: "Lag", number: true, of: (group) => figure(group, "lag") },
      ],
      groups,
      "no groups",
    ),
  );
  await page();
}
