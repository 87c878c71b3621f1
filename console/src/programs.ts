// Owns: Programs and triggers: which there are, their text, storing, running and trying them, their figures.

import { call, type Reply } from "./api";
import { count, micro, toText, type Bytes } from "./bytes";
import { table as commandTable } from "./command";
import { attempt, confirm, field, fill, h, say, table } from "./dom";
import { offers } from "./offers";
import { pretty } from "./json";
import type { Page } from "./page";
import programSchema from "./program.schema.json";
import { formatted } from "./reply";
import { may } from "./rights";
import { place as placeOf, type Schema } from "./schema";
import triggerSchema from "./trigger.schema.json";

type Facts = Record<string, Reply>;

function facts(reply: Reply): Facts {
  const list = reply as Reply[];
  const out: Facts = {};
  for (let at = 0; at + 1 < list.length; at += 2) out[toText(list[at] as Bytes)] = list[at + 1]!;
  return out;
}

const text = (reply: Reply | undefined) => (reply instanceof Uint8Array ? toText(reply) : typeof reply === "number" || typeof reply === "string" ? String(reply) : "–");
const number = (reply: Reply | undefined) => (typeof reply === "number" ? reply : Number(text(reply)) || 0);
const percentiles: Record<string, string> = { "p50-us": "p50", "p99-us": "p99", "p999-us": "p99.9" };
const EXAMPLES = {
  PROGRAM: { steps: [{ do: ["GET", "counter"], as: "now" }, { return: { coalesce: ["${now}", 0] } }] },
  TRIGGER: { key: "user:*", on: "set", after: "count" },
};

export const programs: Page = {
  name: "programs",
  title: "Programs and triggers",
  needs: ["program|list"],
  show(into, signal) {
    const place = { PROGRAM: h("div"), TRIGGER: h("div") };
    const name = h("input", { required: true, pattern: "[A-Za-z0-9_.:\\-]{1,128}" });
    const kind = h("select", {}, h("option", { value: "PROGRAM" }, "program"), h("option", { value: "TRIGGER" }, "trigger"));
    const source = h("textarea", { class: "code", rows: 14, wrap: "off", spellcheck: "false", required: true });
    // What may stand where the cursor is, by the schema that the server's own tools check with.
    let commands: string[] = [];
    const schemas: Record<"PROGRAM" | "TRIGGER", Schema> = { PROGRAM: programSchema as Schema, TRIGGER: triggerSchema as Schema };
    const here = () => placeOf(schemas[chosen()], source.value.slice(0, source.selectionStart), commands);
    const list = offers(source, {
      id: "words",
      label: "Words that may stand here",
      take: (word) => {
        const { from, before, after } = here();
        const behind = source.value.slice(source.selectionEnd).replace(/^"(\s*:\s*)?/, "");
        const begun = source.value.slice(0, from) + before + word + after;
        source.value = begun + behind;
        source.setSelectionRange(begun.length, begun.length);
        offer();
      },
    });
    const offer = () => {
      list.show(source.selectionStart === source.selectionEnd ? here().offers : []);
      // Below the cursor: the list has the editor's letters, all of one width.
      const before = source.value.slice(0, source.selectionStart).split("\n");
      const line_px = parseFloat(getComputedStyle(source).lineHeight);
      list.element.style.insetBlockStart = `${source.offsetTop + before.length * line_px + 8 - source.scrollTop}px`;
      list.element.style.insetInlineStart = `min(calc(${before.at(-1)!.length}ch + ${8 - source.scrollLeft}px), 100% - 15rem)`;
    };
    source.addEventListener("input", offer);
    source.addEventListener("blur", list.hide);
    source.addEventListener("click", list.hide);
    source.addEventListener("keydown", (event) => {
      if (event.ctrlKey && event.key === " ") {
        event.preventDefault();
        offer();
      } else list.key(event);
    });
    commandTable(signal).then((docs) => (commands = [...docs.keys()].filter((command) => !command.includes("|"))), () => {});
    const args = h("input", { placeholder: '["7", 2]' });
    const answer = h("pre", { class: "wrap", role: "status", tabindex: 0, "aria-label": "Answer" });
    const chosen = () => kind.value as "PROGRAM" | "TRIGGER";
    const run = (...words: string[]) => call(0, [chosen(), ...words], signal);
    const answered = (action: () => Promise<Reply>) => async () => {
      try {
        fill(answer, formatted(await action()));
        answer.className = "wrap good";
      } catch (error) {
        answer.className = "wrap bad";
        fill(answer, error instanceof Error ? error.message : String(error));
      }
    };
    const given = () => {
      const list = JSON.parse(args.value === "" ? "[]" : args.value) as unknown;
      if (!Array.isArray(list)) throw new Error("Arguments are a JSON array.");
      return list.map((item) => (typeof item === "string" ? item : JSON.stringify(item)));
    };
    const button = (title: string, action: () => Promise<void>, style = "") => h("button", { type: "button", class: style, onclick: () => void attempt(action) }, title);
    const mayDo = (what: string) => may(`${chosen().toLowerCase()}|${what}`);
    const running = h("span", { class: "row" }, may("program|run") && button("Run", answered(async () => run("RUN", name.value, ...given()))), may("program|dryrun") && button("Try, change nothing", answered(async () => run("DRYRUN", name.value, ...given()))), may("program|explain") && button("Explain", answered(async () => run("EXPLAIN", name.value, ...given()))));
    const switching = h("span", { class: "row", hidden: true }, may("trigger|enable") && button("Enable", answered(() => run("ENABLE", name.value).finally(() => void look()))), may("trigger|disable") && button("Disable", answered(() => run("DISABLE", name.value).finally(() => void look()))));
    const store = h("button", { type: "submit", class: "strong" }, "Store");
    const remove = button(
      "Delete …",
      async () => {
        if ((await confirm("Delete it?", name.value, { verb: "Delete", danger: true })) === null) return;
        await run("DEL", name.value);
        say("It is deleted.");
        await look();
      },
      "danger",
    );
    const form = h(
      "form",
      { class: "card" },
      h("div", { class: "row" }, field("Kind", kind), field("Name", name)),
      h("div", { class: "words" }, field("JSON", source), list.element),
      h("p", { class: "row" }, store, remove),
      h("div", { class: "row" }, field("Arguments", args), running, switching),
      answer,
    );
    fill(into, h("section", {}, h("h2", {}, "Programs"), place.PROGRAM), h("section", {}, h("h2", {}, "Triggers"), place.TRIGGER), h("h2", {}, "Edit"), form);
    const changed = () => {
      running.hidden = chosen() !== "PROGRAM";
      switching.hidden = !running.hidden;
      args.disabled = running.hidden;
      store.hidden = !mayDo("set");
      remove.hidden = !mayDo("del");
    };
    changed();
    kind.addEventListener("change", () => {
      changed();
      source.value = JSON.stringify(EXAMPLES[chosen()], null, 2);
    });
    source.value = JSON.stringify(EXAMPLES.PROGRAM, null, 2);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void attempt(async () => {
        try {
          JSON.parse(source.value);
        } catch (error) {
          throw new Error(`This is not JSON: ${(error as Error).message}`);
        }
        await run("SET", name.value, source.value);
        say("It is stored.");
        await look();
      });
    });
    const edit = (which: "PROGRAM" | "TRIGGER", named: string) =>
      attempt(async () => {
        kind.value = which;
        changed();
        name.value = named;
        source.value = laidOut(text(facts(await run("GET", named))[which.toLowerCase()]));
        source.focus();
      });
    const open = (which: "PROGRAM" | "TRIGGER", named: string) => h("button", { type: "button", class: "plain", onclick: () => void edit(which, named) }, named);
    const look = async () => {
      const stats = ((await call(0, ["PROGRAM", "STATS"], signal)) as Reply[]).map(facts);
      fill(
        place.PROGRAM,
        table(
          "Programs",
          [
            { title: "Name", of: (row) => open("PROGRAM", text(row["name"])), sort: (row) => text(row["name"]) },
            { title: "Runs", number: true, of: (row) => count(number(row["runs"])), sort: (row) => number(row["runs"]) },
            { title: "Failures", number: true, of: (row) => count(number(row["failures"])), sort: (row) => number(row["failures"]) },
            ...Object.keys(stats[0] ?? {})
              .filter((key) => !["name", "runs", "failures"].includes(key))
              .map((key) => ({ title: percentiles[key] ?? key, number: true, of: (row: Facts) => (key in percentiles ? micro(number(row[key])) : text(row[key])) })),
          ],
          stats,
          "no programs",
        ),
      );
      const all = facts(await call(0, ["TRIGGER", "STATS"], signal));
      const rows = ((all["triggers"] ?? []) as Reply[]).map(facts);
      const figures = ["fired", "failed", "passed-over", "dead"];
      fill(
        place.TRIGGER,
        table(
          "Triggers",
          [
            { title: "Name", of: (row) => open("TRIGGER", text(row["name"])), sort: (row) => text(row["name"]) },
            ...figures.map((figure) => ({ title: figure[0]!.toUpperCase() + figure.slice(1).replace("-", " "), number: true, of: (row: Facts) => count(number(row[figure])) })),
          ],
          rows,
          "no triggers",
        ),
        h("p", { class: "faint" }, `${count(number(all["waiting"]))} wait to be done afterwards, ${count(number(all["lost"]))} were lost`),
      );
    };
    void attempt(look);
  },
};

function laidOut(stored: string): string {
  try {
    return (JSON.parse(stored), pretty(stored));
  } catch {
    return stored;
  }
}
