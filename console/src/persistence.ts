// Owns: Persistence: what is kept, since when, whether that goes well, and asking for a snapshot.

import { call } from "./api";
import { count, duration, size, toText, type Bytes } from "./bytes";
import { attempt, confirm, fill, h, say, table } from "./dom";
import { type Page, repeat } from "./page";
import { may } from "./rights";

const EVERY_MS = 2000;

export const persistence: Page = {
  name: "persistence",
  title: "Persistence",
  needs: ["lastsave"],
  show(into, signal) {
    const place = h("div");
    const ask = (title: string, ...words: string[]) =>
      h(
        "button",
        {
          type: "button",
          onclick: () =>
            void attempt(async () => {
              if ((await confirm(`${title}?`, "It runs beside what the server does.", { verb: title })) === null) return;
              const said = await call(0, words);
              say(said instanceof Uint8Array ? toText(said) : String(said));
              await look();
            }),
        },
        `${title} …`,
      );
    const cut = ask("Cut the log behind a snapshot", "BGREWRITEAOF");
    fill(into, h("p", { class: "row" }, may("bgsave") && ask("Make a snapshot", "BGSAVE"), may("bgrewriteaof") && cut), place);
    const look = async () => {
      const text = toText((await call(0, ["INFO", "persistence"], signal)) as Bytes);
      const facts = new Map(text.split("\r\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]));
      const of = (name: string) => facts.get(name) ?? "";
      const number = (name: string) => Number(of(name));
      const went = (name: string) => (of(name) === "ok" ? "went well" : h("b", { class: "bad" }, "failed"));
      const seconds = (name: string) => (number(name) < 0 ? "–" : duration(number(name) * 1000));
      const on = of("aof_enabled") === "1";
      cut.hidden = !on;
      // Without one the time is that of the start, as Redis has it.
      const isNone = number("rdb_saves") === 0;
      const log: [string, Node | string][] = [
        ["Log", on ? "is written" : "is off: a crash loses what came after the last snapshot"],
        ...(on
          ? ([
              ["Its bytes", size(number("aof_current_size"))],
              ["After the last snapshot", size(number("aof_base_size"))],
              ["Written, not synced", size(number("aof_unsynced_bytes"))],
              ["Syncs", count(number("aof_syncs"))],
              ["Last write", went("aof_last_write_status")],
              ["Last cut", went("aof_last_bgrewrite_status")],
              ["Last cut took", seconds("aof_last_rewrite_time_sec")],
            ] as [string, Node | string][])
          : []),
      ];
      const snapshot: [string, Node | string][] = [
        ["Last snapshot", isNone ? "none since the start" : new Date(number("rdb_last_save_time") * 1000).toLocaleString()],
        ["Changes since", count(number("rdb_changes_since_last_save"))],
        ["Last attempt", isNone && of("rdb_last_bgsave_status") === "ok" ? "none since the start" : went("rdb_last_bgsave_status")],
        ["It took", seconds("rdb_last_bgsave_time_sec")],
        ["One is being made", of("rdb_bgsave_in_progress") === "1" ? `${count(number("current_save_keys_processed"))} of ${count(number("current_save_keys_total"))} keys` : "no"],
        ["Snapshots since the start", count(number("rdb_saves"))],
      ];
      const recovery: [string, Node | string][] = [
        ["Loading", of("loading") === "1" ? `${of("loading_loaded_perc")} %` : "no"],
        ["Keys that were loaded", count(number("rdb_last_load_keys_loaded"))],
      ];
      const one = (title: string, rows: [string, Node | string][]) =>
        h("section", {}, h("h2", {}, title), table(title, [{ title: "Figure", of: ([name]) => name }, { title: "Value", of: ([, value]) => value }], rows));
      fill(place, one("Log", log), one("Snapshots", snapshot), one("Recovery", recovery));
    };
    repeat(EVERY_MS, signal, look);
  },
};
