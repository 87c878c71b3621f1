// Owns: Command line: tabs, each with its database and what was said in it; history; completion and help from the server's own
// command table. Does not own: how a reply looks (`./reply`).

import { call, Refusal, type Reply } from "./api";
import { toText, type Bytes } from "./bytes";
import { confirm, fill, h } from "./dom";
import { offers } from "./offers";
import type { Page } from "./page";
import { formatted, words } from "./reply";
import type { Offer } from "./schema";

const HISTORY_MAX = 200;
const ENTRIES_MAX = 200;
const HISTORY = "weft.history";

/** What is asked about before it is done: it cannot be taken back, or others feel it. */
const DANGEROUS = new Set(
  ("FLUSHALL FLUSHDB SHUTDOWN SWAPDB DEBUG KEYS SAVE FAILOVER REPLICAOF SLAVEOF MIGRATE CONFIG|SET CONFIG|REWRITE CONFIG|RESETSTAT " +
    "ACL|SETUSER ACL|DELUSER ACL|LOAD ACL|SAVE SCRIPT|FLUSH SCRIPT|KILL FUNCTION|FLUSH FUNCTION|DELETE FUNCTION|RESTORE " +
    "CLIENT|KILL CLIENT|PAUSE PROGRAM|DEL TRIGGER|DEL").split(" "),
);
/** What holds a secret is not kept. */
const SECRET = /^\s*(auth|hello|acl\s+setuser|config\s+set|migrate)\b/i;
/** These stay on a connection, or end it: here each command is by itself. */
const ELSEWHERE: Record<string, string> = {
  SUBSCRIBE: "Live follows channels.",
  PSUBSCRIBE: "Live follows channels.",
  SSUBSCRIBE: "Live follows channels.",
  MONITOR: "Live shows what runs.",
  MULTI: "Each line is by itself here; a program or a script changes things together.",
  WATCH: "Each line is by itself here; a program or a script changes things together.",
};

interface Doc {
  summary: string;
  syntax: string;
  complexity: string;
  /** The words that stand for themselves among its arguments, and what each is in. */
  tokens: Map<string, string>;
}

let docs: Map<string, Doc> | undefined;

interface Tab {
  db: number;
  entries: HTMLElement[];
  draft: string;
}

const prompted = ({ db }: Tab) => (db === 0 ? "weft>" : `weft[${db}]>`);

const tabs: Tab[] = [{ db: 0, entries: [], draft: "" }];
let current = 0;

export const command: Page = {
  name: "command",
  title: "Command line",
  needs: ["ping"],
  show(into, signal) {
    const strip = h("div", { class: "row tabs", role: "tablist", "aria-label": "Tabs" });
    const output = h("div", { class: "output", role: "log", "aria-label": "Replies", tabindex: 0 });
    const help = h("p", { class: "help faint", role: "status" });
    const prompt = h("label", { class: "prompt", for: "line" });
    const input = h("input", {
      id: "line",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      role: "combobox",
      "aria-expanded": "false",
    });
    const form = h("form", { class: "line-form" }, prompt, input, h("button", { type: "submit", class: "strong" }, "Run"));

    const history: string[] = JSON.parse(sessionStorage.getItem(HISTORY) ?? "[]") as string[];
    let back = history.length;

    const tab = () => tabs[current]!;
    const draw = () => {
      const buttons = tabs.map((one, at) =>
        h(
          "button",
          {
            type: "button",
            role: "tab",
            "aria-selected": at === current ? "true" : "false",
            tabindex: at === current ? 0 : -1,
            onclick: () => go(at),
            onkeydown: (event: KeyboardEvent) => {
              const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
              if (step === 0) return;
              go((current + step + tabs.length) % tabs.length);
              strip.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
            },
          },
          `${at + 1}: database ${one.db}`,
        ),
      );
      fill(strip, ...buttons);
      fill(output, ...tab().entries);
      output.scrollTop = output.scrollHeight;
      prompt.textContent = prompted(tab());
    };
    const go = (at: number) => {
      tab().draft = input.value;
      current = at;
      draw();
      input.value = tab().draft;
    };
    const add = h("button", { type: "button", onclick: () => void (tabs.push({ db: tab().db, entries: [], draft: "" }), go(tabs.length - 1), input.focus()) }, "New tab");
    const end = h(
      "button",
      {
        type: "button",
        onclick: () => {
          if (tabs.length > 1) tabs.splice(current, 1);
          else tabs[0] = { db: 0, entries: [], draft: "" };
          current = Math.min(current, tabs.length - 1);
          draw();
          input.value = tab().draft;
          input.focus();
        },
      },
      "Close tab",
    );
    const top = h("div", { class: "row" }, strip, h("span", { class: "row end" }, add, end));

    // A reply is told where it was asked for, whichever tab is shown when it comes.
    const put = (own: Tab, line: string, text: string, kind: string) => {
      const entry = h("div", { class: "entry" }, h("div", { class: "asked" }, `${prompted(own)} ${line}`), h("pre", { class: kind }, text));
      own.entries.push(entry);
      if (own.entries.length > ENTRIES_MAX) own.entries.shift();
      if (own !== tab()) return;
      fill(output, ...own.entries);
      output.scrollTop = output.scrollHeight;
    };
    const run = async (own: Tab, line: string) => {
      const asked = words(line);
      if (asked === null) return put(own, line, "A quote is not closed, or something stands right behind one.", "bad");
      if (asked.length === 0) return;
      const text = (at: number) => (typeof asked[at] === "string" ? asked[at] : asked[at] === undefined ? "" : toText(asked[at] as Bytes)).toUpperCase();
      const name = text(0);
      if (name === "CLEAR") {
        own.entries = [];
        return draw();
      }
      if (name === "SELECT") {
        const db = Number(text(1));
        const said = await call(0, ["SELECT", text(1)]);
        put(own, line, String(said), "good");
        own.db = db;
        return draw();
      }
      if (name === "HELP") return put(own, line, await explain(text(2) === "" ? text(1) : `${text(1)}|${text(2)}`), "good");
      const elsewhere = ELSEWHERE[name];
      if (elsewhere !== undefined) return put(own, line, elsewhere, "bad");
      if (DANGEROUS.has(name) || DANGEROUS.has(`${name}|${text(1)}`)) {
        if ((await confirm("Run this?", line, { verb: "Run", danger: true })) === null) return;
      }
      const reply: Reply = await call(own.db, asked);
      put(own, line, formatted(reply), "good");
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const line = input.value;
      if (line.trim() === "") return;
      if (!SECRET.test(line) && history.at(-1) !== line) {
        history.push(line);
        if (history.length > HISTORY_MAX) history.shift();
        sessionStorage.setItem(HISTORY, JSON.stringify(history));
      }
      back = history.length;
      input.value = "";
      complete();
      const own = tab();
      run(own, line).catch((error: unknown) => {
        const text = error instanceof Error ? error.message : String(error);
        put(own, line, error instanceof Refusal ? `(error) ${text}` : text, "bad");
      });
    });

    const explain = async (name: string): Promise<string> => {
      const doc = (await table(signal)).get(name);
      return doc === undefined ? `There is no help for '${name.replace("|", " ")}'.` : `${doc.syntax}\n${doc.summary}\n${doc.complexity}`;
    };
    const complete = () => {
      const text = input.value.trimStart();
      const parts = text.split(/\s+/);
      const [one, two] = [(parts[0] ?? "").toUpperCase(), (parts[1] ?? "").toUpperCase()];
      const doc = docs?.get(`${one}|${two}`) ?? docs?.get(one);
      help.textContent = doc === undefined || text === "" ? "" : `${doc.syntax} – ${doc.summary}`;
      list.show(text === "" || docs === undefined ? [] : names(docs, parts).concat(options(docs, parts)));
    };
    const take = (word: string) => {
      const text = input.value.trimStart();
      // A name of two words takes the place of both.
      const begun = word.includes(" ") ? "" : text.slice(0, text.length - (/\S*$/.exec(text)?.[0].length ?? 0));
      input.value = `${begun}${word} `;
      complete();
      input.focus();
    };
    const list = offers(input, { id: "candidates", label: "Commands", take });
    input.addEventListener("input", complete);
    input.addEventListener("blur", list.hide);
    input.addEventListener("focus", complete);
    input.addEventListener("keydown", (event) => {
      // Whoever walks through what was said before is not in the list.
      const isInHistory = back < history.length && (event.key === "ArrowUp" || event.key === "ArrowDown");
      if (!isInHistory && list.key(event)) return;
      if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        event.preventDefault();
        back = Math.min(history.length, Math.max(0, back + (event.key === "ArrowUp" ? -1 : 1)));
        input.value = history[back] ?? "";
        list.hide();
      }
    });
    fill(into, top, output, list.element, form, help);
    draw();
    input.value = tab().draft;
    input.focus();
    signal.addEventListener("abort", () => (tab().draft = input.value));
    table(signal).then(complete, () => (help.textContent = "There is no completion: COMMAND DOCS is not for this user."));
  },
};

/** Names of commands that begin as what stands there does. */
function names(docs: Map<string, Doc>, parts: string[]): Offer[] {
  const wanted = parts.join("|").toUpperCase();
  if (parts.length > 2) return [];
  const found = [...docs.keys()].filter((name) => name.startsWith(wanted) && name !== wanted && (parts.length > 1 || !name.includes("|")));
  return found.sort().map((name) => ({ word: name.replace("|", " "), help: docs.get(name)?.summary ?? "" }));
}

/** Words of the command's own that begin as the last one there, and do not stand there yet. */
function options(docs: Map<string, Doc>, parts: string[]): Offer[] {
  const upper = parts.map((part) => part.toUpperCase());
  const doc = docs.get(`${upper[0]}|${upper[1]}`) ?? docs.get(upper[0] ?? "");
  const last = upper.at(-1) ?? "";
  if (doc === undefined || parts.length < 2 || last === "") return [];
  const before = upper.slice(1, -1);
  return [...doc.tokens].filter(([token]) => token.startsWith(last) && token !== last && !before.includes(token)).map(([word, help]) => ({ word, help }));
}

/** The command table, asked for once. */
export async function table(signal: AbortSignal): Promise<Map<string, Doc>> {
  if (docs !== undefined) return docs;
  const found = new Map<string, Doc>();
  readDocs((await call(0, ["COMMAND", "DOCS"], signal)) as Reply[], found);
  docs = found;
  return found;
}

function readDocs(list: Reply[], into: Map<string, Doc>): void {
  for (let at = 0; at + 1 < list.length; at += 2) {
    const name = toText(list[at] as Bytes).toUpperCase();
    const facts = pairs(list[at + 1] as Reply[]);
    const text = (key: string) => (facts[key] instanceof Uint8Array ? toText(facts[key] as Bytes) : "");
    const given = (facts["arguments"] as Reply[] | undefined) ?? [];
    const line = given.map((argument) => syntax(argument as Reply[])).join(" ");
    const tokens = new Map<string, string>();
    readTokens(given, tokens);
    into.set(name, { tokens, summary: text("summary"), complexity: text("complexity"), syntax: `${name.replace("|", " ")} ${line}`.trim() });
    if (facts["subcommands"] !== undefined) readDocs(facts["subcommands"] as Reply[], into);
  }
}

function pairs(list: Reply[]): Record<string, Reply> {
  const out: Record<string, Reply> = {};
  for (let at = 0; at + 1 < list.length; at += 2) out[toText(list[at] as Bytes)] = list[at + 1]!;
  return out;
}

function readTokens(list: Reply[], into: Map<string, string>): void {
  for (const argument of list) {
    const facts = pairs(argument as Reply[]);
    const token = facts["token"] instanceof Uint8Array ? toText(facts["token"]).toUpperCase() : "";
    // What is no word is typed faster than it is chosen.
    if (/^[A-Z]{2,}/.test(token) && !into.has(token)) into.set(token, syntax(argument as Reply[]));
    readTokens((facts["arguments"] as Reply[] | undefined) ?? [], into);
  }
}

/** An argument as help has it: `[EX seconds | PX milliseconds]`. */
function syntax(argument: Reply[]): string {
  const facts = pairs(argument);
  const text = (key: string) => (facts[key] instanceof Uint8Array ? toText(facts[key] as Bytes) : "");
  const flags = ((facts["flags"] as Reply[] | undefined) ?? []).map((flag) => (flag instanceof Uint8Array ? toText(flag) : String(flag)));
  const inner = ((facts["arguments"] as Reply[] | undefined) ?? []).map((one) => syntax(one as Reply[]));
  const type = text("type");
  let body = text("display_text") || text("name");
  if (type === "oneof") body = inner.join(" | ");
  else if (type === "block") body = inner.join(" ");
  else if (type === "pure-token") body = "";
  if (flags.includes("multiple")) body = `${body} [${body} …]`;
  body = `${text("token")} ${body}`.trim();
  if (flags.includes("optional")) return `[${body}]`;
  return type === "oneof" && inner.length > 1 ? `<${body}>` : body;
}
