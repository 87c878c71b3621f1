// Owns: one plot over time, in the page's colours and as wide as its place, and what its figures are now, or where the pointer is.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { fill, h } from "./dom";

export interface Series {
  label: string;
  colour: string;
}

export interface Plot {
  element: HTMLElement;
  update(data: (number | null)[][]): void;
}

const HEIGHT = 170;
const SPAN_MIN_S = 60;
/** Steps of an axis of bytes, which are not those of ten. */
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** A canvas takes no light-dark(): the colour that it is now, of an element that has it. */
function resolved(name: string): string {
  const probe = h("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}

/** `least` is what the vertical axis reaches at least. */
export function plot(title: string, series: Series[], format: (value: number) => string, least: number, signal: AbortSignal, { ofBytes = false } = {}): Plot {
  const place = h("div", { class: "place" });
  const when = h("span", { class: "faint" });
  const figures = series.map(() => h("b"));
  const legend = series.map(({ label, colour }, at) => {
    const swatch = h("i");
    swatch.style.background = `var(${colour})`;
    return h("span", {}, swatch, label, " ", figures[at]);
  });
  const element = h("section", { class: "plot card" }, h("h2", {}, title, " ", when), h("p", { class: "legend faint" }, ...legend), place);
  let chart: uPlot | undefined;
  let data: (number | null)[][] = [[], ...series.map(() => [])];
  const tell = () => {
    const pointed = chart?.cursor.idx ?? null;
    const at = pointed ?? data[0]!.length - 1;
    when.textContent = pointed === null ? "" : clock(data[0]![at] ?? 0);
    figures.forEach((figure, index) => {
      const value = data[index + 1]?.[at] ?? null;
      fill(figure, value === null ? "–" : format(value));
    });
  };
  const draw = () => {
    chart?.destroy();
    const faint = resolved("--faint");
    const axis = { stroke: faint, grid: { stroke: resolved("--line"), width: 1 }, ticks: { show: false } };
    chart = new uPlot(
      {
        width: place.clientWidth || 300,
        height: HEIGHT,
        padding: [8, 30, 0, 0],
        cursor: { y: false, sync: { key: "weft" } },
        legend: { show: false },
        hooks: { setCursor: [tell] },
        scales: {
          x: { range: (_, min, max) => [Math.min(min, max - SPAN_MIN_S), max] },
          y: { range: (_, __, max) => [0, Math.max((max ?? 0) * 1.1, least)] },
        },
        axes: [
          { ...axis, size: 28, space: 80, values: (_, times) => times.map(clock) },
          { ...axis, size: 64, values: (_, values) => values.map(format), ...(ofBytes ? { incrs: POWERS_OF_TWO } : {}) },
        ],
        series: [{}, ...series.map((one) => ({ label: one.label, stroke: resolved(one.colour), width: 1.5, points: { show: false } }))],
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
      // Of no second there is nothing to draw, and no time that an axis could show.
      if (chart !== undefined) chart.setData(data as uPlot.AlignedData);
      else if (data[0]!.length > 0) draw();
      tell();
    },
  };
}
