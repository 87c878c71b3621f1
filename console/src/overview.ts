// Owns: Overview: what the server does, second by second, from the one stream that tells it.

import { follow, Refusal } from "./api";
import { count, duration, micro, short, size } from "./bytes";
import { attempt, h, fill } from "./dom";
import type { Page } from "./page";
import { plot } from "./plot";

/** Seconds that the server keeps, and so the page. */
const SECONDS = 600;
const RETRY_MS = 1000;

type Row = (number | null)[];

const percent = (value: number) => `${short(value * 100)} %`;
const rate = (value: number) => (value >= 1e6 ? `${short(value / 1e6)} M` : value >= 1e4 ? `${short(value / 1e3)} k` : count(value));

export const overview: Page = {
  name: "overview",
  title: "Overview",
  needs: ["info"],
  show(into, signal) {
    const tiles = h("dl", { class: "tiles" });
    const plots = [
      { names: ["commands", "errors"], plot: plot("Commands a second", [{ label: "commands", colour: "--one" }, { label: "errors", colour: "--bad" }], rate, 5, signal) },
      {
        names: ["p50_us", "p99_us", "p999_us"],
        plot: plot(
          "Latency",
          [
            { label: "p50", colour: "--one" },
            { label: "p99", colour: "--two" },
            { label: "p99.9", colour: "--three" },
          ],
          micro,
          100,
          signal,
        ),
      },
      { names: ["used_bytes", "resident_bytes"], plot: plot("Memory", [{ label: "used", colour: "--one" }, { label: "resident", colour: "--two" }], size, 1 << 20, signal, { ofBytes: true }) },
      { names: ["hit_rate"], plot: plot("Reads that found their key", [{ label: "found", colour: "--one" }], percent, 1, signal) },
      { names: ["bytes_in", "bytes_out"], plot: plot("Network a second", [{ label: "in", colour: "--one" }, { label: "out", colour: "--two" }], size, 1024, signal, { ofBytes: true }) },
      { names: ["clients"], plot: plot("Clients", [{ label: "connected", colour: "--one" }], rate, 5, signal) },
    ];
    fill(into, tiles, h("div", { class: "plots" }, ...plots.map((one) => one.plot.element)));

    let names: string[] = [];
    let rows: Row[] = [];
    const at = (row: Row, name: string) => row[names.indexOf(name)] ?? null;
    const hitRate = (row: Row) => {
      const [hits, misses] = [at(row, "hits") ?? 0, at(row, "misses") ?? 0];
      return hits + misses === 0 ? null : hits / (hits + misses);
    };
    const value = (row: Row, name: string) => (name === "hit_rate" ? hitRate(row) : at(row, name));
    const draw = () => {
      const times = rows.map((row) => at(row, "time_s"));
      for (const one of plots) {
        one.plot.update([times, ...one.names.map((name) => rows.map((row) => value(row, name)))]);
      }
      const last = rows.at(-1);
      if (last === undefined) return;
      const tile = (name: string, text: string) => h("div", {}, h("dt", {}, name), h("dd", {}, text));
      const rated = hitRate(last);
      fill(
        tiles,
        tile("commands/s", rate(at(last, "commands") ?? 0)),
        tile("latency, p99", at(last, "p99_us") === null ? "–" : micro(at(last, "p99_us")!)),
        tile("memory", size(at(last, "used_bytes") ?? 0)),
        tile("keys", count(at(last, "keys") ?? 0)),
        tile("clients", count(at(last, "clients") ?? 0)),
        tile("hit rate", rated === null ? "–" : percent(rated)),
        tile("CPU", percent((at(last, "cpu_ms") ?? 0) / 1000)),
        tile("up", duration((at(last, "up_s") ?? 0) * 1000)),
      );
    };
    const told = (data: string, event: string) => {
      if (event === "begin") {
        const begin = JSON.parse(data) as { names: string[]; rows: Row[] };
        names = begin.names;
        rows = begin.rows;
      } else {
        rows.push(JSON.parse(data) as Row);
        if (rows.length > SECONDS) rows.shift();
      }
      draw();
    };
    const run = async () => {
      let refused = false;
      await attempt(() => follow("/v1/console/stream", { signal }, told).catch((error: unknown) => ((refused = error instanceof Refusal), Promise.reject(error))));
      // The server has gone, or was started anew: it is asked again until it is there.
      if (!signal.aborted && !refused) setTimeout(() => void run(), RETRY_MS);
    };
    void run();
  },
};
