// Owns: Command line: tabs, each with its database and what was said in it; history; completion and help from the server's own
// command table. Does not own: how a reply looks (`./reply`).

import { call, Refusal, type Reply } from "./api";
import { toText, type Bytes } from "./bytes";
import { confirm, fill, h } from "./dom";
import type { Page } from "./page";
import { formatted, words } from "./reply";

const HISTORY_MAX = 200;
const ENTRIES_MAX = 200;
const CANDIDATES_MAX = 12;
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
}

let docs: Map<string, Doc> | undefined;

interface Tab {
  db: number;
  entries: HTMLElement[];
  draft: string;
}

const tabs: Tab[] = [{ db: 0, entries: [], draft: "" }];
let current = 0;

export const command: Page = {
  name: "command",
  title: "Command line",
  needs: ["PING"],
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
      "aria-controls": "candidates",
      "aria-autocomplete": "list",
    });
    const candidates = h("ul", { id: "candidates", class: "candidates", role: "listbox", "aria-label": "Commands", hidden: true });
    const form = h("form", { class: "line-form" }, prompt, input, h("button", { type: "submit", class: "strong" }, "Run"));
    fill(into, strip, output, candidates, form, help);

    const history: string[] = JSON.parse(sessionStorage.getItem(HISTORY) ?? "[]") as string[];
    let back = history.length;
    let marked = -1;

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
      prompt.textContent = tab().db === 0 ? "weft>" : `weft[${tab().db}]>`;
      input.value = tab().draft;
    };
    const go = (at: number) => {
      tab().draft = input.value;
      current = at;
      draw();
    };
    const add = h("button", { type: "button", onclick: () => void (tabs.push({ db: tab().db, entries: [], draft: "" }), go(tabs.length - 1), input.focus()) }, "New tab");
    const end = h(
      "button",
      {
        type: "button",
        onclick: () => {
          if (tabs.length > 1) tabs.splice(current, 1);
          else tab().entries = [];
          current = Math.min(current, tabs.length - 1);
          draw();
          input.focus();
        },
      },
      "Close tab",
    );
    const top = h("div", { class: "row" }, strip, h("span", { class: "row end" }, add, end));
    into.prepend(top);

    const put = (line: string, text: string, kind: string) => {
      const entry = h("div", { class: "entry" }, h("div", { class: "asked" }, `${prompt.textContent ?? ""} ${line}`), h("pre", { class: kind }, text));
      const own = tab();
      own.entries.push(entry);
      if (own.entries.length > ENTRIES_MAX) own.entries.shift();
      fill(output, ...own.entries);
      output.scrollTop = output.scrollHeight;
    };
    const run = async (line: string) => {
      const asked = words(line);
      if (asked === null) return put(line, "A quote is not closed, or something stands right behind one.", "bad");
      if (asked.length === 0) return;
      const text = (at: number) => (typeof asked[at] === "string" ? asked[at] : asked[at] === undefined ? "" : toText(asked[at] as Bytes)).toUpperCase();
      const name = text(0);
      if (name === "CLEAR") {
        tab().entries = [];
        return draw();
      }
      if (name === "SELECT") {
        const db = Number(text(1));
        const said = await call(0, ["SELECT", text(1)]);
        tab().db = db;
        put(line, String(said), "good");
        return draw();
      }
      if (name === "HELP") return put(line, await explain(text(2) === "" ? text(1) : `${text(1)}|${text(2)}`), "good");
      const elsewhere = ELSEWHERE[name];
      if (elsewhere !== undefined) return put(line, elsewhere, "bad");
      if (DANGEROUS.has(name) || DANGEROUS.has(`${name}|${text(1)}`)) {
        if ((await confirm("Run this?", line, { verb: "Run", danger: true })) === null) return;
      }
      const reply: Reply = await call(tab().db, asked);
      put(line, formatted(reply), "good");
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
      tab().draft = "";
      complete();
      run(line).catch((error: unknown) => {
        const text = error instanceof Error ? error.message : String(error);
        put(line, error instanceof Refusal ? `(error) ${text}` : text, "bad");
      });
    });

    const explain = async (name: string): Promise<string> => {
      const doc = (await table(signal)).get(name);
      return doc === undefined ? `There is no help for '${name.replace("|", " ")}'.` : `${doc.syntax}\n${doc.summary}\n${doc.complexity}`;
    };
    const complete = () => {
      marked = -1;
      const text = input.value.trimStart().toUpperCase();
      const all = docs;
      const parts = text.split(/\s+/);
      const full = parts.length > 1 ? `${parts[0]}|${parts[1]}` : "";
      const doc = all?.get(full) ?? all?.get(parts[0] ?? "");
      help.textContent = doc === undefined || text === "" ? "" : `${doc.syntax} – ${doc.summary}`;
      const wanted = parts.join("|");
      const found =
        text === "" || all === undefined || parts.length > 2
          ? []
          : [...all.keys()].filter((name) => name.startsWith(wanted) && name !== wanted && (parts.length > 1 || !name.includes("|"))).sort().slice(0, CANDIDATES_MAX);
      fill(
        candidates,
        ...found.map((name, at) => h("li", { role: "option", id: `candidate${at}`, "aria-selected": "false", onmousedown: (event: MouseEvent) => (event.preventDefault(), take(name)) }, name.replace("|", " "))),
      );
      candidates.hidden = found.length === 0;
      input.setAttribute("aria-expanded", String(found.length > 0));
      input.removeAttribute("aria-activedescendant");
    };
    const take = (name: string) => {
      input.value = `${name.replace("|", " ")} `;
      complete();
      input.focus();
    };
    const mark = (at: number) => {
      const all = [...candidates.children];
      marked = (at + all.length) % all.length;
      all.forEach((one, index) => one.setAttribute("aria-selected", String(index === marked)));
      input.setAttribute("aria-activedescendant", `candidate${marked}`);
    };
    input.addEventListener("input", complete);
    input.addEventListener("blur", () => (candidates.hidden = true));
    input.addEventListener("focus", complete);
    input.addEventListener("keydown", (event) => {
      const isOpen = !candidates.hidden;
      if (event.key === "Tab" && !event.shiftKey && isOpen) {
        event.preventDefault();
        take((candidates.children[Math.max(marked, 0)]?.textContent ?? "").replace(" ", "|"));
      } else if (event.key === "Escape") {
        candidates.hidden = true;
      } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && isOpen && marked >= 0) {
        event.preventDefault();
        mark(marked + (event.key === "ArrowDown" ? 1 : -1));
      } else if (event.key === "ArrowDown" && isOpen && back === history.length) {
        event.preventDefault();
        mark(0);
      } else if (event.key === "Enter" && isOpen && marked >= 0) {
        event.preventDefault();
        take((candidates.children[marked]?.textContent ?? "").replace(" ", "|"));
      } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        event.preventDefault();
        back = Math.min(history.length, Math.max(0, back + (event.key === "ArrowUp" ? -1 : 1)));
        input.value = history[back] ?? "";
        candidates.hidden = true;
      }
    });
    draw();
    input.focus();
    table(signal).then(complete, () => (help.textContent = "There is no completion: COMMAND DOCS is not for this user."));
  },
};

/** The command table, asked for once. */
async function table(signal: AbortSignal): Promise<Map<string, Doc>> {
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
    const given = ((facts["arguments"] as Reply[] | undefined) ?? []).map((argument) => syntax(argument as Reply[])).join(" ");
    into.set(name, { summary: text("summary"), complexity: text("complexity"), syntax: `${name.replace("|", " ")} ${given}`.trim() });
    if (facts["subcommands"] !== undefined) readDocs(facts["subcommands"] as Reply[], into);
  }
}

function pairs(list: Reply[]): Record<string, Reply> {
  const out: Record<string, Reply> = {};
  for (let at = 0; at + 1 < list.length; at += 2) out[toText(list[at] as Bytes)] = list[at + 1]!;
  return out;
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
