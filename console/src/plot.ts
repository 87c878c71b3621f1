// Owns: one plot over time, in the page's colours and as wide as its place.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { h } from "./dom";

export interface Series {
  label: string;
  colour: string;
}

export interface Plot {
  element: HTMLElement;
  update(data: (number | null)[][]): void;
}

const HEIGHT = 150;

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A canvas takes no light-dark(): the colour that it is now, of an element that has it. */
function resolved(name: string): string {
  const probe = h("span", { class: "probe" });
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value || colour(name);
}

function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}

/** `least` is what the vertical axis reaches at least. */
export function plot(title: string, series: Series[], format: (value: number) => string, least: number, signal: AbortSignal): Plot {
  const place = h("div", { class: "place" });
  const now = h("span", { class: "faint" });
  const element = h("section", { class: "plot card" }, h("h2", {}, title, now), place);
  let chart: uPlot | undefined;
  let data: (number | null)[][] = [[], ...series.map(() => [])];
  const draw = () => {
    chart?.destroy();
    const faint = resolved("--faint");
    const axis = { stroke: faint, grid: { stroke: resolved("--line"), width: 1 }, ticks: { show: false } };
    chart = new uPlot(
      {
        width: place.clientWidth || 300,
        height: HEIGHT,
        cursor: { y: false, sync: { key: "weft" } },
        legend: { show: true, live: true },
        scales: {
          // A minute at least, and so much that its figures differ.
          x: { range: (_, min, max) => [Math.min(min, max - 60), max] },
          y: { range: (_, __, max) => [0, Math.max((max ?? 0) * 1.1, least)] },
        },
        axes: [
          { ...axis, size: 28, space: 80, values: (_, times) => times.map(clock) },
          { ...axis, size: 64, values: (_, values) => values.map(format) },
        ],
        series: [
          { value: (_, time) => (time === null ? "–" : clock(time)) },
          ...series.map((one) => ({
            label: one.label,
            stroke: resolved(one.colour),
            width: 1.5,
            points: { show: false },
            value: (_: uPlot, value: number | null) => (value === null ? "–" : format(value)),
          })),
        ],
      },
      data as uPlot.AlignedData,
      place,
    );
  };
  const resized = new ResizeObserver(() => chart?.setSize({ width: place.clientWidth, height: HEIGHT }));
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", draw, { signal });
  addEventListener("weft-scheme", draw, { signal });
  resized.observe(place);
  signal.addEventListener("abort", () => {
    resized.disconnect();
    chart?.destroy();
  });
  return {
    element,
    update(next) {
      data = next;
      if (chart === undefined) draw();
      else chart.setData(data as uPlot.AlignedData);
      const last = series.map((one, at) => {
        const value = data[at + 1]?.at(-1);
        return value === null || value === undefined ? "" : `${series.length > 1 ? `${one.label} ` : ""}${format(value)}`;
      });
      now.textContent = ` ${last.filter((text) => text !== "").join(" · ")}`;
    },
  };
}
